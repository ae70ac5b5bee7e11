//! Request budgets of results and turns, counted exactly.

use std::collections::BTreeMap;
use std::sync::Arc;

use spillbox::artifact::library::Library;
use spillbox::artifact::request::SaveRequest;
use spillbox::decision::{Answer, Decider, ResultRequest};
use spillbox::digest::Sha256Digest;
use spillbox::limits::PART_BYTES;
use spillbox::policy::frozen::Action;
use spillbox::policy::profile::Given;
use spillbox::policy::profiles::default;
use spillbox::store::SharedStore;

use crate::support::library::{body, log, replica, request};
use crate::support::s3_server::S3Server;

fn open() -> (S3Server, SharedStore) {
    let server = S3Server::builder().start();
    let store: SharedStore = Arc::new(server.store());
    (server, store)
}

async fn decide(library: &Library, save: SaveRequest, size: usize) -> Answer {
    let request = ResultRequest {
        save,
        profile: Arc::new(default()),
        given: Given::default(),
    };
    let decider = Decider::new(library.clone());
    decider
        .decide_result(request, body(&log(size)))
        .await
        .unwrap()
}

fn expected(labels: &[(&str, usize)]) -> BTreeMap<String, usize> {
    labels
        .iter()
        .map(|(label, n)| ((*label).to_owned(), *n))
        .collect()
}

#[tokio::test]
async fn a_spilled_result_is_four_puts_in_two_round_trips() {
    let (server, store) = open();
    let library = replica(&store);
    let first = [("put:s", 1), ("put:c", 2), ("put:b", 1), ("put:a", 1)];
    for (call, labels) in [("one", &first[..]), ("two", &first[1..])] {
        server.log().clear();
        let answer = decide(&library, request("s", Some(call)), 40_000).await;
        assert_eq!(answer.action, Action::Spilled);
        assert_eq!(server.log().counts(), expected(labels));
        assert_eq!(
            server.log().round_trips(),
            2 + usize::from(labels.len() == 4)
        );
    }
}

#[tokio::test]
async fn a_result_that_stays_is_one_put_and_a_repeat_none() {
    let (server, store) = open();
    let library = replica(&store);
    decide(&library, request("s", Some("first")), 10).await;
    server.log().clear();
    decide(&library, request("s", Some("c")), 10).await;
    assert_eq!(server.log().counts(), expected(&[("put:c", 1)]));
    server.log().clear();
    decide(&library, request("s", Some("c")), 10).await;
    assert_eq!(server.log().counts(), expected(&[]));
}

#[tokio::test]
async fn a_repeat_of_a_spilled_result_puts_nothing() {
    for size in [40_000, PART_BYTES + 1] {
        let (server, store) = open();
        let library = replica(&store);
        let mut save = request("s", Some("c"));
        save.expected_digest = Some(Sha256Digest::of(&log(size)));
        let first = decide(&library, save.clone(), size).await;
        server.log().clear();
        let again = decide(&library, save, size).await;
        assert_eq!(again.content, first.content);
        let counts = server.log().counts();
        let puts: Vec<_> = counts
            .keys()
            .filter(|label| !label.starts_with("get:a"))
            .collect();
        assert!(puts.is_empty(), "{counts:?}");
    }
}

#[tokio::test]
async fn a_fork_looks_at_its_parents_in_one_round_trip_of_gets() {
    let (server, store) = open();
    let library = replica(&store);
    decide(&library, request("p", Some("c")), 10).await;
    let mut fork = request("s", Some("c"));
    fork.parent = Some("p".parse().unwrap());
    decide(&library, fork.clone(), 20).await;
    server.log().clear();
    decide(&library, fork, 30).await;
    assert_eq!(
        server.log().counts(),
        expected(&[("get:c", 2), ("put:c", 1)])
    );
    assert_eq!(server.log().round_trips(), 2);
}
