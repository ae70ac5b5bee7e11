use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt;

use super::*;
use crate::clock::ManualClock;

const PATH: &str = "/a/00000000000000000000000001.00000000000000000000000002";

fn clock() -> SharedClock {
    Arc::new(ManualClock::new(
        Timestamp::from_second(1_800_000_000).unwrap(),
    ))
}

fn request(path: &str) -> Request {
    Request::builder().uri(path).body(Body::empty()).unwrap()
}

fn pieces(pieces: &[Result<&'static str, &'static str>]) -> Body {
    let pieces = pieces
        .iter()
        .map(|piece| piece.map(Bytes::from).map_err(std::io::Error::other));
    Body::from_stream(stream::iter(pieces.collect::<Vec<_>>()))
}

async fn line_of(sink: &AuditSink) -> AuditLine {
    let place = sink.reserve().await.unwrap();
    place.begin(Operation::Read, &request(PATH))
}

async fn begin() -> (AuditLine, mpsc::Receiver<AuditEvent>) {
    let (sink, lines) = AuditSink::new(clock());
    (line_of(&sink).await, lines)
}

#[tokio::test]
async fn a_line_says_who_what_which_and_how_many_bytes() {
    let (mut line, mut lines) = begin().await;
    line.recognise(&Principal::anonymous("acme".parse().unwrap()), PATH);
    let reply = line.follow(Response::new(pieces(&[Ok("abc"), Ok("de")])));
    assert!(lines.try_recv().is_err(), "not before the reply ended");
    reply.into_body().collect().await.unwrap();
    let line = serde_json::to_string(&lines.try_recv().unwrap()).unwrap();
    assert_eq!(
        line,
        "{\"time\":\"2027-01-15T08:00:00Z\",\"request_id\":\"\",\"principal\":\"anonymous\",\
         \"tenant\":\"acme\",\"operation\":\"read\",\"session_key\":\"00000000000000000000000001\",\
         \"artifact_id\":\"00000000000000000000000002\",\"outcome\":\"ok\",\"bytes_served\":5}"
    );
}

#[tokio::test]
async fn each_way_to_end_has_its_word() {
    let (line, mut lines) = begin().await;
    drop(line);
    assert_eq!(lines.try_recv().unwrap().outcome, Outcome::Cut);

    let (line, mut lines) = begin().await;
    let reply = line.follow(Response::new(pieces(&[Ok("abc"), Err("gone")])));
    assert!(reply.into_body().collect().await.is_err());
    let event = lines.try_recv().unwrap();
    assert_eq!((event.outcome, event.bytes_served), (Outcome::Cut, 3));

    let (line, mut lines) = begin().await;
    drop(line.follow(Response::new(Body::empty())));
    assert_eq!(lines.try_recv().unwrap().outcome, Outcome::Ok);

    let (line, mut lines) = begin().await;
    let problem = Problem::new(ErrorCode::ArtifactNotFound, "no such artifact");
    drop(line.follow(axum::response::IntoResponse::into_response(problem)));
    let event = lines.try_recv().unwrap();
    assert_eq!(event.outcome.as_str(), "artifact_not_found");
    assert_eq!(event.bytes_served, 0);
}

#[tokio::test]
async fn a_connection_that_stops_asking_at_the_promised_length_took_everything() {
    let (line, mut lines) = begin().await;
    let mut reply = Response::new(pieces(&[Ok("abc"), Ok("de"), Ok("")]));
    reply.headers_mut().insert("content-length", 5.into());
    let mut body = line.follow(reply).into_body();
    for _ in 0..2 {
        body.frame().await.unwrap().unwrap();
    }
    drop(body);
    assert_eq!(lines.try_recv().unwrap().outcome, Outcome::Ok);
}

#[tokio::test]
async fn a_panic_leaves_a_line() {
    let (sink, mut lines) = AuditSink::new(clock());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let _line = line_of(&sink).await;
        panic!("a defect");
    });
    assert!(tasks.join_next().await.unwrap().is_err());
    let event = lines.recv().await.unwrap();
    assert_eq!(event.outcome, Outcome::Failed(ErrorCode::Internal));
}

#[tokio::test(start_paused = true)]
async fn without_a_place_nothing_runs_and_nobody_waits_for_ever() {
    let (sink, mut lines) = AuditSink::with_capacity(clock(), 1);
    let first = line_of(&sink).await;
    let refused = sink.reserve().await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Saturated);
    // Sent, but not written yet: the place is still taken.
    drop(first);
    assert!(sink.reserve().await.is_err());
    assert!(lines.recv().await.is_some());
    assert!(sink.reserve().await.is_ok());
    drop(lines);
    let refused = sink.reserve().await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Saturated);
}
