//! Listing over HTTP.

use jiff::SignedDuration;
use rstest::rstest;
use serde_json::Value;
use spillbox::artifact::manifest::TombstoneReason;
use spillbox::clock::Clock;
use spillbox::error::ErrorCode;

use crate::support::app::{Backend, TestApp, escape};

const LIST: &str = "/v1/sessions/s/artifacts";

fn ids(page: &Value) -> Vec<String> {
    let artifacts = page["artifacts"].as_array().unwrap();
    artifacts
        .iter()
        .map(|artifact| artifact["artifact_id"].as_str().unwrap().to_owned())
        .collect()
}

#[rstest]
#[tokio::test]
async fn pages_bring_every_artifact_once_newest_first(
    #[values(
        Backend::Memory,
        Backend::Local,
        Backend::S3,
        Backend::S3Versioned,
        Backend::Minio,
        Backend::MinioVersioned
    )]
    backend: Backend,
) {
    let app = TestApp::new(backend).await;
    assert_eq!(
        app.get(LIST).await.json(),
        serde_json::json!({"artifacts": []})
    );
    let mut saved = Vec::new();
    for number in 0..7 {
        let artifact = app.put("tool=grep", format!("{number}\n")).await;
        saved.push(artifact.receipt["artifact_id"].as_str().unwrap().to_owned());
        app.clock.advance(SignedDuration::from_secs(60));
    }
    app.save("other", "", &[], "x").await;
    saved.reverse();
    let mut seen = Vec::new();
    let mut path = format!("{LIST}?limit=3");
    loop {
        let page = app.get(&path).await.json();
        seen.extend(ids(&page));
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("{LIST}?limit=3&cursor={}", escape(cursor));
        let elsewhere = format!("/v1/sessions/other/artifacts?cursor={}", escape(cursor));
        let foreign = app.get(&elsewhere).await;
        foreign.is_problem(ErrorCode::InvalidParameter);
    }
    assert_eq!(seen, saved);
}

#[tokio::test]
async fn filters_and_tombstones_shorten_a_page() {
    let app = TestApp::new(Backend::Memory).await;
    let mut dates = Vec::new();
    let mut saved = Vec::new();
    for tool in ["grep", "ls", "grep"] {
        dates.push(app.clock.now().to_string());
        saved.push(
            app.put(&format!("tool={tool}&name=n&call_id=c"), tool)
                .await,
        );
        app.clock.advance(SignedDuration::from_secs(60));
    }
    let list = |query: String| {
        let path = format!("{LIST}?{query}");
        let app = &app;
        async move { ids(&app.get(&path).await.json()).len() }
    };
    // The third is a repeat of the first.
    assert_eq!(list(String::new()).await, 2);
    assert_eq!(list("tool=grep".to_owned()).await, 1);
    assert_eq!(list("tool=".to_owned()).await, 0);
    assert_eq!(list(format!("since={}", escape(&dates[1]))).await, 1);
    assert_eq!(list(format!("until={}", escape(&dates[1]))).await, 1);
    let with_offset = "since=2026-01-15T10%3A00%3A00%2B02%3A00".to_owned();
    assert_eq!(list(with_offset).await, 2);
    app.bury(&saved[0], TombstoneReason::Expired).await;
    assert_eq!(list(String::new()).await, 1);
    let page = app.get(LIST).await;
    assert_eq!(page.header("cache-control"), "no-store");
    let artifact = &page.json()["artifacts"][0];
    for member in [
        "artifact_id",
        "locator",
        "source_id",
        "digest",
        "size_bytes",
        "line_count",
    ] {
        assert_eq!(artifact[member], saved[1].receipt[member]);
    }
    assert_eq!(artifact["tool"], "ls");
    assert_eq!(artifact["name"], "n");
    assert_eq!(artifact["call_id"], "c");
    assert_eq!(artifact["binary"], false);
}
