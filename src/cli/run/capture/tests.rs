use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use futures_util::StreamExt;
use proptest::prelude::*;

use super::*;
use crate::artifact::format::StoreFormat;
use crate::artifact::library::{Library, LibraryOptions};
use crate::auth::Authenticator;
use crate::cli::transport::StoreTransport;
use crate::clock::SystemClock;
use crate::http::app::AppState;
use crate::ids::SystemIds;
use crate::ids::Tenant;
use crate::store::keys::KeySpace;
use crate::store::memory::MemoryStore;

/// What a recording service saw of one body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    bytes: Vec<u8>,
    is_whole: bool,
}

type Record = Arc<Mutex<Seen>>;

async fn record(State(seen): State<Record>, body: Body) -> (StatusCode, &'static str) {
    let mut body = body.into_data_stream();
    while let Some(piece) = body.next().await {
        let Ok(piece) = piece else {
            return (StatusCode::BAD_REQUEST, "cut");
        };
        let mut seen = seen.lock().unwrap();
        seen.bytes.extend_from_slice(&piece);
    }
    seen.lock().unwrap().is_whole = true;
    (StatusCode::CREATED, r#"{"replacement":"stored"}"#)
}

/// A transport to `router`, whatever it does with a save.
fn transport(router: Router) -> Target {
    let format = StoreFormat {
        v: 1,
        orphan_ttl_seconds: 86_400,
    };
    let library = Library::new(
        Arc::new(MemoryStore::new(SystemClock::shared())),
        KeySpace::new("").unwrap(),
        format,
        SystemClock::shared(),
        SystemIds::shared(),
        LibraryOptions::default(),
    );
    let anonymous = Authenticator::anonymous(Tenant::default());
    let state = AppState::opened(library, anonymous, Vec::new());
    let store = StoreTransport { router, state };
    Target::Open(Transport::Store(Box::new(store)))
}

fn recording() -> (Target, Record) {
    let seen = Record::default();
    let router = Router::new().fallback(record).with_state(Arc::clone(&seen));
    (transport(router), seen)
}

fn path() -> ApiPath {
    ApiPath::artifacts(&"s".parse().unwrap())
}

fn output(bytes: &[u8]) -> Event {
    Event::Output(Bytes::copy_from_slice(bytes))
}

#[tokio::test]
async fn what_is_too_large_is_sent_while_the_tool_still_runs() {
    let (target, seen) = recording();
    let mut capture = Capture::new(target, path());
    let body: Vec<u8> = (0..200_000_u32).map(|n| (n % 91) as u8 + 32).collect();
    capture.take(output(&body)).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(seen.lock().unwrap().bytes.len() > 100_000);
    let captured = capture.finish().await;
    assert!(matches!(captured, Captured::Stored(saved) if saved.replacement == "stored"));
    let seen = seen.lock().unwrap().clone();
    assert!(seen.bytes == body && seen.is_whole);
}

#[tokio::test]
async fn small_text_is_held_in_any_pieces_and_nothing_is_sent() {
    let (target, seen) = recording();
    let mut capture = Capture::new(target, path());
    let text = "aé";
    capture.take(output(&text.as_bytes()[..2])).await;
    capture.take(output(&text.as_bytes()[2..])).await;
    assert!(matches!(capture.finish().await, Captured::Inline(inline) if inline == text));
    assert_eq!(*seen.lock().unwrap(), Seen::default());
}

#[tokio::test]
async fn an_output_that_breaks_is_never_stored_as_whole() {
    let (target, seen) = recording();
    let mut capture = Capture::new(target, path());
    capture.take(output(&[b'x'; 500_000])).await;
    capture
        .take(Event::Broken(std::io::Error::other("gone")))
        .await;
    let captured = capture.finish().await;
    assert!(matches!(captured, Captured::Lost { failure, .. } if failure.message.contains("gone")));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!seen.lock().unwrap().is_whole);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_does_not_hold_the_result_for_ever() {
    async fn hang() {
        std::future::pending::<()>().await;
    }
    let mut capture = Capture::new(transport(Router::new().fallback(hang)), path());
    let mut body = Vec::new();
    for n in 0..20_000 {
        body.extend_from_slice(format!("line {n}\n").as_bytes());
    }
    for piece in body.chunks(10_000) {
        capture.take(output(piece)).await;
    }
    let Captured::Lost { windows, failure } = capture.finish().await else {
        panic!("nothing can be stored");
    };
    assert!(failure.message.contains("180 s"), "{failure}");
    assert_eq!(windows.size_bytes(), body.len() as u64);
    assert!(body.ends_with(windows.tail()) && body.starts_with(windows.head()));
}

#[tokio::test]
async fn a_refusal_in_the_middle_keeps_both_ends() {
    async fn refuse() -> (StatusCode, &'static str) {
        let body = r#"{"code":"store_full","detail":"no space left"}"#;
        (StatusCode::INSUFFICIENT_STORAGE, body)
    }
    let mut capture = Capture::new(transport(Router::new().fallback(refuse)), path());
    for _ in 0..100 {
        capture.take(output(&[b'x'; 10_000])).await;
    }
    capture.take(output(b"the end")).await;
    let Captured::Lost { windows, failure } = capture.finish().await else {
        panic!("nothing was stored");
    };
    assert_eq!(failure.code.as_deref(), Some("store_full"));
    assert_eq!(windows.size_bytes(), 1_000_007);
    assert!(windows.tail().ends_with(b"the end"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_byte_arrives_once_and_in_order(
        pieces in proptest::collection::vec(1_usize..9_000, 0..24),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (target, seen) = recording();
            let mut capture = Capture::new(target, path());
            let mut body = Vec::new();
            for size in pieces {
                let piece: Vec<u8> = (0..size).map(|n| b'a' + ((body.len() + n) % 26) as u8).collect();
                body.extend_from_slice(&piece);
                capture.take(output(&piece)).await;
            }
            match capture.finish().await {
                Captured::Inline(text) => {
                    prop_assert!(body.len() as u64 <= DEFAULT_INLINE_BYTES);
                    prop_assert_eq!(text.as_bytes(), &body[..]);
                }
                Captured::Stored(_) => {
                    prop_assert!(body.len() as u64 > DEFAULT_INLINE_BYTES);
                    let seen = seen.lock().unwrap().clone();
                    prop_assert!(seen.bytes == body && seen.is_whole);
                }
                Captured::Lost { failure, .. } => prop_assert!(false, "{}", failure),
            }
            Ok(())
        })?;
    }
}
