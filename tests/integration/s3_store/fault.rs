//! What the backend makes of a store that misbehaves.

use spillbox::store::{GetOptions, ListRequest, ObjectStore, PutMode, StoreErrorKind};

use super::meaning::{key, kind_of, read};
use crate::support::s3_server::{Action, Fault, Op, S3Server};

const RETRIED_READS: usize = 3;

#[tokio::test]
async fn a_lost_reply_of_a_create_is_ambiguous_and_sent_once() {
    let server = S3Server::start();
    let store = server.store();
    server.fault(Fault::on(Op::Put, Action::LoseReply));
    let put = store
        .put(&key("k"), "1".into(), PutMode::CreateIfAbsent)
        .await;
    assert_eq!(kind_of(put), StoreErrorKind::Ambiguous);
    assert_eq!(server.log().count("put:-"), 1);
    assert_eq!(server.bytes("k").unwrap(), "1");
    // Its own write is what the repetition meets, and the caller can see that by reading.
    let put = store
        .put(&key("k"), "1".into(), PutMode::CreateIfAbsent)
        .await;
    assert_eq!(kind_of(put), StoreErrorKind::AlreadyExists);
}

#[tokio::test]
async fn a_conflict_is_not_a_lost_race() {
    let server = S3Server::start();
    let store = server.store();
    let action = Action::Refuse {
        status: 409,
        code: "ConditionalRequestConflict",
    };
    server.fault(Fault::on(Op::Put, action).times(2));
    for _ in 0..2 {
        let put = store
            .put(&key("k"), "1".into(), PutMode::CreateIfAbsent)
            .await;
        assert_eq!(kind_of(put), StoreErrorKind::Conflict);
    }
    let put = store
        .put(&key("k"), "1".into(), PutMode::CreateIfAbsent)
        .await;
    put.unwrap();
    assert_eq!(server.log().count("put:-"), 3);
}

#[tokio::test]
async fn denied_is_never_absent() {
    let server = S3Server::start();
    let store = server.store();
    server.hide_missing(true);
    assert_eq!(kind_of(store.head(&key("k")).await), StoreErrorKind::Denied);
    let get = store.get(&key("k"), GetOptions::default()).await;
    assert_eq!(kind_of(get), StoreErrorKind::Denied);
}

#[tokio::test]
async fn a_missing_bucket_is_never_a_missing_key() {
    let server = S3Server::start();
    let mut settings = S3Server::settings();
    settings.bucket = "not-there".into();
    let store = server.store_with(&settings);
    let get = store
        .get(&key("k"), GetOptions::default())
        .await
        .unwrap_err();
    let head = store.head(&key("k")).await.unwrap_err();
    let put = store
        .put(&key("k"), "1".into(), PutMode::CreateIfAbsent)
        .await
        .unwrap_err();
    let list = store.list(&ListRequest::default()).await.unwrap_err();
    for error in [get, head, put, list] {
        assert_eq!(error.kind, StoreErrorKind::Rejected, "{error}");
        assert!(error.detail.contains("not-there"), "{error}");
    }
}

#[tokio::test]
async fn a_cut_body_is_an_error_however_it_ends() {
    for is_silent in [false, true] {
        let server = S3Server::start();
        let store = server.store();
        server.plant("k", vec![b'x'; 1_000]);
        let action = Action::CutBody {
            after_bytes: 600,
            is_silent,
        };
        server.fault(Fault::on(Op::Get, action));
        let got = read(&store, "k", GetOptions::default()).await;
        assert_eq!(kind_of(got), StoreErrorKind::Unavailable);
    }
}

#[tokio::test]
async fn an_error_inside_a_success_is_an_error() {
    for is_applied in [false, true] {
        let server = S3Server::start();
        let store = server.store();
        let upload = store.create_upload(&key("k")).await.unwrap();
        let part = store.put_part(&upload, 1, "x".into()).await.unwrap();
        let action = Action::ErrorInSuccess {
            code: "InternalError",
            is_applied,
        };
        server.fault(Fault::on(Op::Complete, action));
        let complete = store.complete_upload(&upload, &[part]).await;
        assert_eq!(kind_of(complete), StoreErrorKind::Ambiguous);
        assert_eq!(server.bytes("k").is_some(), is_applied);
    }
}

#[tokio::test]
async fn reads_are_repeated_and_writes_are_not() {
    let server = S3Server::start();
    let store = server.store();
    server.plant("k", "1");
    let slow_down = Action::Refuse {
        status: 503,
        code: "SlowDown",
    };
    server.fault(Fault::on(Op::Get, slow_down.clone()).times(RETRIED_READS - 1));
    assert_eq!(
        read(&store, "k", GetOptions::default()).await.unwrap(),
        b"1"
    );
    server.fault(Fault::on(Op::Get, slow_down.clone()).times(RETRIED_READS));
    let got = read(&store, "k", GetOptions::default()).await;
    assert_eq!(kind_of(got), StoreErrorKind::Throttled);
    server.fault(Fault::on(Op::Put, slow_down));
    let put = store.put(&key("k"), "2".into(), PutMode::Overwrite).await;
    assert_eq!(kind_of(put), StoreErrorKind::Throttled);
    assert_eq!(server.log().count("put:-"), 1);
}

#[tokio::test]
async fn a_failure_after_the_write_is_ambiguous() {
    let server = S3Server::start();
    let store = server.store();
    let action = Action::ApplyThenRefuse {
        status: 500,
        code: "InternalError",
    };
    server.fault(Fault::on(Op::Put, action));
    let put = store
        .put(&key("k"), "1".into(), PutMode::CreateIfAbsent)
        .await;
    assert_eq!(kind_of(put), StoreErrorKind::Ambiguous);
    assert_eq!(server.bytes("k").unwrap(), "1");
}

#[tokio::test]
async fn late_and_doubled_writes_happen_as_planned() {
    let server = S3Server::start();
    let store = server.store();
    server.fault(Fault::on(Op::Put, Action::ApplyLate));
    let put = store
        .put(&key("late"), "1".into(), PutMode::CreateIfAbsent)
        .await;
    assert_eq!(kind_of(put), StoreErrorKind::Ambiguous);
    assert_eq!(server.bytes("late"), None);
    assert_eq!(server.apply_late().await, 1);
    assert_eq!(server.bytes("late").unwrap(), "1");

    server.fault(Fault::on(Op::Put, Action::ApplyTwice));
    let put = store
        .put(&key("twice"), "1".into(), PutMode::CreateIfAbsent)
        .await;
    assert_eq!(kind_of(put), StoreErrorKind::AlreadyExists);
    assert_eq!(server.bytes("twice").unwrap(), "1");
}

#[tokio::test]
async fn a_web_page_is_named_as_what_it_is() {
    let server = S3Server::start();
    let store = server.store();
    server.plant("k", "1");
    let page = |op, status| server.fault(Fault::on(op, Action::WebPage { status }));
    page(Op::List, 200);
    let list = store.list(&ListRequest::default()).await.unwrap_err();
    page(Op::Put, 200);
    let put = store.put(&key("k"), "2".into(), PutMode::Overwrite).await;
    page(Op::Get, 404);
    let get = store.get(&key("k"), GetOptions::default()).await;
    page(Op::Head, 302);
    let head = store.head(&key("k")).await;
    for error in [list, put.unwrap_err(), get.unwrap_err(), head.unwrap_err()] {
        assert_eq!(error.kind, StoreErrorKind::Rejected, "{error}");
        assert!(error.detail.contains("endpoint"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_answers_is_given_up() {
    let server = S3Server::start();
    let store = server.store();
    server.fault(Fault::on(Op::Put, Action::Hang));
    let put = store
        .put(&key("k"), "1".into(), PutMode::CreateIfAbsent)
        .await;
    assert_eq!(kind_of(put), StoreErrorKind::Ambiguous);
    server.fault(Fault::on(Op::Get, Action::Hang).times(RETRIED_READS));
    let get = store.get(&key("k"), GetOptions::default()).await;
    assert_eq!(kind_of(get), StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn a_short_page_is_followed_to_its_end() {
    let server = S3Server::start();
    let store = server.store();
    for n in 0..5 {
        server.plant(&format!("k{n}"), "x");
    }
    let short = |is_honest| Action::ShortListing { keys: 2, is_honest };
    server.fault(Fault::on(Op::List, short(true)));
    let page = store.list(&ListRequest::default()).await.unwrap();
    assert_eq!((page.objects.len(), page.is_truncated), (2, true));
    let rest = ListRequest {
        continuation: page.next,
        ..ListRequest::default()
    };
    assert_eq!(store.list(&rest).await.unwrap().objects.len(), 3);
    server.fault(Fault::on(Op::List, short(false)));
    let page = store.list(&ListRequest::default()).await.unwrap();
    assert_eq!((page.objects.len(), page.is_truncated), (2, false));
}
