use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::*;
use crate::artifact::format::StoreFormat;
use crate::artifact::library::LibraryOptions;
use crate::artifact::request::{BodyStream, SaveRequest};
use crate::clock::{ManualClock, SharedClock};
use crate::ids::{SeededIds, Tenant};
use crate::policy::frozen::Action;
use crate::policy::profile::Given;
use crate::policy::profiles::default;
use crate::policy::template::{Template, VERSION_1};
use crate::store::SharedStore;
use crate::store::keys::KeySpace;
use crate::store::memory::MemoryStore;

/// The words of a release to come.
const VERSION_2: Template = Template {
    version: 2,
    nothing_printed: |_, _| "nothing at all".to_owned(),
    deleted: |_, _| "gone".to_owned(),
};

fn library(store: &SharedStore, seed: u16) -> Library {
    let clock: SharedClock = Arc::new(ManualClock::new("2026-11-30T12:00:00Z".parse().unwrap()));
    let format = StoreFormat {
        v: 1,
        orphan_ttl_seconds: 86_400,
    };
    let ids = Arc::new(SeededIds::new(seed));
    let (keys, options) = (KeySpace::new("").unwrap(), LibraryOptions::default());
    Library::new(Arc::clone(store), keys, format, clock, ids, options)
}

fn body(text: &str) -> BodyStream {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    stream::once(async move { Ok(bytes) }).boxed()
}

fn result(call: &str) -> ResultRequest {
    let mut save = SaveRequest::new(Tenant::default(), "s".parse().unwrap());
    save.call_id = Some(call.parse().unwrap());
    save.tool = Some("make".to_owned());
    ResultRequest {
        save,
        profile: Arc::new(default()),
        given: Given::default(),
    }
}

fn turn(texts: &[(&str, &str)]) -> TurnRequest {
    let results = texts.iter().map(|(call, text)| TurnResult {
        call_id: call.parse().unwrap(),
        tool: Some("make".to_owned()),
        server_max: None,
        content: TurnContent::Text((*text).to_owned()),
    });
    TurnRequest {
        tenant: Tenant::default(),
        session: "s".parse().unwrap(),
        turn: "t".parse().unwrap(),
        parent: None,
        profile: Arc::new(default()),
        means: Vec::new(),
        context_tokens: None,
        results: results.collect(),
    }
}

fn store() -> SharedStore {
    Arc::new(MemoryStore::new(Arc::new(ManualClock::new(
        "2026-11-30T12:00:00Z".parse().unwrap(),
    ))))
}

fn text(answer: &Answer) -> &str {
    match &answer.content {
        Content::Text(text) => text,
        Content::Parts(_) | Content::AsSent => panic!("{answer:?}"),
    }
}

#[tokio::test]
async fn an_upgrade_repeats_the_sentences_of_its_predecessor() {
    let store = store();
    let before = Decider::new(library(&store, 1));
    let old = before.decide_result(result("a"), body("")).await.unwrap();
    let old_turn = before.decide_turn(turn(&[("b", "")])).await.unwrap();
    let upgraded = Templates::new(&VERSION_2, &[VERSION_1]);
    let after = Decider::with_templates(library(&store, 2), upgraded);
    let again = after.decide_result(result("a"), body("")).await.unwrap();
    assert_eq!(text(&again), text(&old));
    let again = after
        .decide_turn(turn(&[("b", ""), ("c", "")]))
        .await
        .unwrap();
    assert_eq!(text(&again.answers[0]), text(&old_turn.answers[0]));
    assert_eq!(text(&again.answers[1]), "nothing at all");
    let new = after.decide_result(result("d"), body("")).await.unwrap();
    assert_eq!(text(&new), "nothing at all");
}

#[tokio::test]
async fn a_decision_of_a_later_release_is_not_guessed() {
    let store = store();
    let later = Decider::with_templates(library(&store, 1), Templates::new(&VERSION_2, &[]));
    later.decide_result(result("a"), body("x")).await.unwrap();
    later.decide_turn(turn(&[("b", "x")])).await.unwrap();
    let earlier = Decider::new(library(&store, 2));
    let answer = earlier.decide_result(result("a"), body("x")).await.unwrap();
    assert_eq!(answer.reason.as_deref(), Some("store_format_unsupported"));
    assert_eq!(text(&answer), "x");
    let answer = earlier.decide_turn(turn(&[("b", "x")])).await.unwrap();
    let answer = &answer.answers[0];
    assert_eq!(answer.reason.as_deref(), Some("store_format_unsupported"));
}

#[tokio::test]
async fn a_read_only_replica_answers_what_it_can() {
    let store = store();
    let writer = Decider::new(library(&store, 1));
    let long = "line\n".repeat(20_000);
    let first = writer
        .decide_result(result("a"), body(&long))
        .await
        .unwrap();
    let mut reader = library(&store, 2);
    reader.make_read_only();
    let reader = Decider::new(reader);
    let small = reader.decide_result(result("b"), body("x")).await.unwrap();
    assert_eq!(
        (text(&small), small.reason.as_deref()),
        ("x", Some("read_only"))
    );
    let large = reader
        .decide_result(result("c"), body(&long))
        .await
        .unwrap();
    assert_eq!(
        (large.action, large.reason.as_deref()),
        (Action::Inline, Some("read_only"))
    );
    let again = reader
        .decide_result(result("a"), body(&long))
        .await
        .unwrap();
    assert_eq!(again.content, first.content);
}
