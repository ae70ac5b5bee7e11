use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, Uri};
use rstest::rstest;

use super::drain::Which;
use super::*;
use crate::cli::transport::{ServiceTransport, Transport};

const URL: &str = "http://service";

fn spool_in(directory: &Path, most_bytes: u64) -> Spool {
    Spool {
        directory: directory.to_owned(),
        most_bytes,
        url: URL.to_owned(),
    }
}

fn path(call_id: &str) -> ApiPath {
    ApiPath::artifacts(&"s".parse().unwrap()).with("call_id", Some(call_id))
}

fn names(spool: &Spool) -> Vec<String> {
    let listed = std::fs::read_dir(&spool.directory).unwrap();
    let name = |entry: io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    listed
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect()
}

/// What a service was sent: path with query, and body.
type Received = Arc<Mutex<Vec<(String, Bytes)>>>;

/// A service that answers each save with `answer`.
async fn service(answer: fn(&Uri) -> (StatusCode, &'static str)) -> (Transport, String, Received) {
    let received = Received::default();
    let seen = Arc::clone(&received);
    let router = Router::new().fallback(move |uri: Uri, body: Bytes| {
        seen.lock().unwrap().push((uri.to_string(), body));
        std::future::ready(answer(&uri))
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, router).await });
    tasks.detach_all();
    let transport = Transport::Service(ServiceTransport::new(&url, None).unwrap());
    (transport, url, received)
}

fn taken(_: &Uri) -> (StatusCode, &'static str) {
    (StatusCode::CREATED, r#"{"replacement":"r","locator":"l"}"#)
}

#[rstest]
#[case::empty(0, 10, 10, true)]
#[case::full(1, 10, 10, false)]
#[case::no_wrap(u64::MAX, 1, u64::MAX, true)]
#[case::none(0, 1, 0, false)]
fn the_cap_is_of_all_entries_together(
    #[case] used: u64,
    #[case] more: u64,
    #[case] most: u64,
    #[case] expected: bool,
) {
    assert_eq!(fits(used, more, most), expected);
}

#[tokio::test]
async fn only_its_owner_reads_a_spool_and_the_cap_holds_for_all_entries() {
    let parent = tempfile::tempdir().unwrap();
    let spool = spool_in(&parent.path().join("a/spool"), 3_000);
    spool
        .keep_bytes(&path("1"), vec![b'x'; 1_000])
        .await
        .unwrap();
    // It may have been made by somebody with other manners, and hold what a process that died left.
    std::fs::set_permissions(&spool.directory, Permissions::from_mode(0o755)).unwrap();
    create(&spool.directory.join(PART)).unwrap();
    spool
        .keep_bytes(&path("2"), vec![b'x'; 1_000])
        .await
        .unwrap();
    let refused = spool.keep_bytes(&path("3"), vec![b'x'; 1_000]).await;
    assert!(matches!(
        refused,
        Err(KeepError::Full { most_bytes: 3_000 })
    ));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&spool.directory), 0o700);
    let entries = spool.entries(&[WAITING]).unwrap();
    assert_eq!(
        entries.iter().map(|path| mode(path)).collect::<Vec<_>>(),
        [0o600; 2]
    );
    assert_eq!(names(&spool).len(), 2);
}

#[tokio::test]
async fn a_body_that_ends_early_is_not_kept() {
    let directory = tempfile::tempdir().unwrap();
    let spool = spool_in(directory.path(), 3_000);
    let kept = spool.keep(&path("1"), &mut &b"short"[..], 6);
    assert!(matches!(kept, Err(KeepError::Io(_))));
    assert_eq!(names(&spool), Vec::<String>::new());
}

#[tokio::test]
async fn a_copy_leaves_nothing_behind_unless_it_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let spool = spool_in(directory.path(), 3_000);
    let mut dropped = SpoolCopy::start(spool.clone());
    dropped.push(b"dropped").await;
    drop(dropped);
    let mut too_large = SpoolCopy::start(spool.clone());
    for _ in 0..4 {
        too_large.push(&[b'x'; 1_000]).await;
    }
    assert!(matches!(
        too_large.keep(path("1")).await,
        Err(KeepError::Full { .. })
    ));
    assert_eq!(names(&spool), Vec::<String>::new());
    let mut kept = SpoolCopy::start(spool.clone());
    kept.push(b"one ").await;
    kept.push(b"two").await;
    kept.keep(path("2")).await.unwrap();
    let entry = std::fs::read(&spool.entries(&[WAITING]).unwrap()[0]).unwrap();
    assert_eq!(
        String::from_utf8(entry).unwrap(),
        "{\"path\":\"/v1/sessions/s/artifacts?call_id=2\",\"url\":\"http://service\"}\none two"
    );
}

#[tokio::test]
async fn entries_are_sent_once_in_order_whoever_drains() {
    let directory = tempfile::tempdir().unwrap();
    let (transport, url, received) = service(taken).await;
    let mut spool = spool_in(directory.path(), 1 << 20);
    spool.url = url;
    for n in 0..20 {
        let body = format!("body {n}").into_bytes();
        spool.keep_bytes(&path(&n.to_string()), body).await.unwrap();
    }
    let drain = || spool.drain(&transport, Which::Waiting, usize::MAX);
    let (one, other) = tokio::join!(drain(), drain());
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.receipts.len() + other.receipts.len(), 20);
    assert_eq!(names(&spool), Vec::<String>::new());
    let mut received = received.lock().unwrap().clone();
    assert_eq!(received.len(), 20);
    received.sort();
    received.dedup();
    assert_eq!(received.len(), 20);
    for (path, body) in received {
        let n = path.rsplit_once('=').unwrap().1;
        assert!(
            path.starts_with("/v1/sessions/s/artifacts?call_id="),
            "{path}"
        );
        assert_eq!(body, format!("body {n}"));
    }
}

#[tokio::test]
async fn what_another_process_sends_and_what_is_for_another_service_is_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let (transport, url, received) = service(taken).await;
    let foreign = spool_in(directory.path(), 1 << 20);
    foreign
        .keep_bytes(&path("foreign"), b"f".to_vec())
        .await
        .unwrap();
    let mut spool = foreign.clone();
    spool.url = url;
    spool
        .keep_bytes(&path("locked"), b"l".to_vec())
        .await
        .unwrap();
    let entries = spool.entries(&[WAITING]).unwrap();
    let held = lock(&entries[1]).unwrap();
    let drained = spool
        .drain(&transport, Which::All, usize::MAX)
        .await
        .unwrap();
    assert_eq!((drained.receipts.len(), drained.passed_over), (0, 2));
    drop(held);
    let drained = spool
        .drain(&transport, Which::All, usize::MAX)
        .await
        .unwrap();
    assert_eq!((drained.receipts.len(), drained.passed_over), (1, 1));
    assert_eq!(received.lock().unwrap()[0].1, "l");
}

static REFUSALS: AtomicUsize = AtomicUsize::new(0);

fn refuses_one_and_goes_away(uri: &Uri) -> (StatusCode, &'static str) {
    match uri.query().unwrap_or_default() {
        "call_id=large" if REFUSALS.fetch_add(1, Ordering::Relaxed) == 0 => (
            StatusCode::PAYLOAD_TOO_LARGE,
            r#"{"code":"body_too_large","detail":"d","retryable":false}"#,
        ),
        "call_id=late" => (StatusCode::BAD_GATEWAY, "<html>"),
        _ => taken(uri),
    }
}

#[tokio::test]
async fn a_refusal_stays_for_whoever_asks_and_an_absence_ends_the_drain() {
    let directory = tempfile::tempdir().unwrap();
    let (transport, url, received) = service(refuses_one_and_goes_away).await;
    let mut spool = spool_in(directory.path(), 1 << 20);
    spool.url = url;
    std::fs::create_dir_all(&spool.directory).unwrap();
    create(&spool.directory.join("0.ready")).unwrap();
    for call_id in ["large", "small", "late", "later"] {
        spool
            .keep_bytes(&path(call_id), b"b".to_vec())
            .await
            .unwrap();
    }
    let drained = spool.drain(&transport, Which::Waiting, 3).await.unwrap();
    assert_eq!((drained.receipts.len(), drained.refused.len()), (1, 2));
    let codes: Vec<_> = drained
        .refused
        .iter()
        .map(|(_, failure)| &failure.code)
        .collect();
    assert_eq!(codes, [&None, &Some("body_too_large".to_owned())]);
    // What was refused counts and waits, but is not sent on the way of other work.
    assert_eq!(spool.entries(&[REFUSED]).unwrap().len(), 2);
    let away = spool
        .drain(&transport, Which::Waiting, usize::MAX)
        .await
        .unwrap_err();
    assert!(away.is_away, "{away}");
    assert_eq!(received.lock().unwrap().len(), 3);
    assert_eq!(spool.entries(&[WAITING]).unwrap().len(), 2);
    let away = spool
        .drain(&transport, Which::All, usize::MAX)
        .await
        .unwrap_err();
    assert!(away.is_away, "{away}");
    assert_eq!(names(&spool).len(), 3, "the large one was taken at last");
}

#[test]
fn a_spool_is_where_it_was_said_and_nowhere_else() {
    let mut variables = Variables::default();
    let args = |spool: Option<&str>, spool_bytes| SpoolArgs {
        spool: spool.map(PathBuf::from),
        spool_bytes,
    };
    let of = |args: &SpoolArgs, variables: &Variables| {
        let spool = Spool::of(args, variables, URL)?;
        Some((spool.directory, spool.most_bytes))
    };
    assert_eq!(of(&args(None, None), &variables), None, "there is no home");
    variables.state_home = Some("/home/u/.local/state".into());
    let default = PathBuf::from("/home/u/.local/state/spillbox/spool");
    assert_eq!(
        of(&args(None, None), &variables),
        Some((default, DEFAULT_SPOOL_BYTES))
    );
    variables.spool = Some("/s".into());
    variables.spool_bytes = Some(0);
    assert_eq!(of(&args(None, None), &variables), None);
    assert_eq!(of(&args(None, Some(7)), &variables), Some(("/s".into(), 7)));
    assert_eq!(
        of(&args(Some("/t"), Some(7)), &variables),
        Some(("/t".into(), 7))
    );
}
