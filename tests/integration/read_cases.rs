//! The cases of the vectors file that need a stored artifact, and the pages of lines once more through
//! the whole service.

use std::collections::BTreeSet;

use axum::http::{Method, StatusCode};
use serde_json::Value;
use spillbox::error::ErrorCode;

use crate::support::app::{Backend, Saved, TestApp};
use crate::vectors::{ids_for_read_cases, vector};

/// The cases that this file runs, beside S13-R01 to R05.
const HERE: [&str; 7] = [
    "S13-N06", "S13-R06", "S13-R07", "DSH-N13", "DSH-S01", "DSH-S02", "HER-F06",
];

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no {pointer} in {value}"))
}

#[test]
fn every_case_that_is_listed_for_here_is_here() {
    assert_eq!(ids_for_read_cases(), BTreeSet::from(HERE));
}

async fn bare(app: &TestApp, saved: &Saved, query: &str) -> (u64, Vec<u8>) {
    let path = saved.at(&format!("/lines?{query}"));
    let page = app
        .ask(Method::GET, &path, &[("Accept", "text/plain")])
        .await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text());
    let total = page.header("spillbox-total-lines").parse().unwrap();
    (total, page.body.to_vec())
}

#[tokio::test]
async fn s13_r01_to_r05_lines_end_at_lf_alone_and_past_the_end_is_stated() {
    let app = TestApp::new(Backend::Local).await;
    let case = vector("S13-R01");
    let saved = app
        .put("", text(&case.given, "/output/text").to_owned())
        .await;
    let (total, bytes) = bare(&app, &saved, "offset=1&limit=2").await;
    assert_eq!(total, 4);
    let wanted = text(&case.expect, "/body").as_bytes();
    assert_eq!(bytes.strip_suffix(b"\n").unwrap(), wanted);

    // S13-R02, decided differently: bytes after the last LF are a line only when there are any.
    let case = vector("S13-R02");
    let saved = app
        .put("", text(&case.given, "/output/text").to_owned())
        .await;
    let (total, bytes) = bare(&app, &saved, "").await;
    assert_eq!((total, bytes.as_slice()), (1, &b"a\n"[..]));

    // S13-R03, a hazard: no inverted range, but an empty page that says so.
    let case = vector("S13-R03");
    let saved = app
        .put("", text(&case.given, "/output/text").to_owned())
        .await;
    let page = app.get(&saved.at("/lines?offset=10&limit=5")).await.json();
    assert_eq!(page["past_end"], true);
    assert_eq!(page["total_lines"], 4);
    assert!(page.get("start_line").is_none() && page.get("end_line").is_none());

    let app = TestApp::new(Backend::S3).await;
    let case = vector("S13-R04");
    let saved = app
        .put("", text(&case.given, "/output/text").to_owned())
        .await;
    let log = app.s3.as_ref().unwrap().log();
    log.clear();
    for query in ["offset=-1", "limit=0"] {
        let reply = app.get(&saved.at(&format!("/lines?{query}"))).await;
        reply.is_problem(ErrorCode::InvalidParameter);
    }
    assert_eq!(log.entries().len() as u64, case.expect["io_performed"]);

    let case = vector("S13-R05");
    let saved = app
        .put("", text(&case.given, "/output/text").to_owned())
        .await;
    let (total, bytes) = bare(&app, &saved, "").await;
    assert_eq!(total, case.expect["line_count"]);
    assert_eq!(bytes, text(&case.expect, "/body").as_bytes());
}

#[tokio::test]
async fn s13_r06_a_changed_body_is_an_error_and_nothing_of_it_is_returned() {
    let case = vector("S13-R06");
    for backend in Backend::ALL {
        let app = TestApp::new(backend).await;
        let saved = app
            .put("", text(&case.given, "/output/text").to_owned())
            .await;
        let body = app.keys_of('b').await.remove(0);
        let other = text(&case.given, "/bytes_replaced_with/text");
        app.overwrite(&body, other.to_owned()).await;
        for rest in ["", "/lines"] {
            let reply = app.get(&saved.at(rest)).await;
            reply.is_problem(ErrorCode::BodyCorrupt);
            assert!(!reply.text().contains(other));
        }
    }
}

#[tokio::test]
async fn s13_r07_no_path_leads_out_of_the_callers_artifacts() {
    let case = vector("S13-R07");
    assert_eq!(text(&case.expect, "/error"), "outside the owned root");
    let app = TestApp::new(Backend::Local).await;
    let saved = app.put("", "x").await;
    let body = app.keys_of('b').await.remove(0);
    let locator = saved.path.strip_prefix("/a/").unwrap();
    for outside in [
        "..%2f..%2f..%2fetc%2fpasswd".to_owned(),
        "%2fetc%2fpasswd".to_owned(),
        body.replace('/', "%2f"),
        format!("..%2f{locator}"),
        format!("{locator}%00"),
        format!("{locator}%2f..%2f{locator}"),
    ] {
        let reply = app.get(&format!("/a/{outside}")).await;
        reply.is_problem(ErrorCode::ArtifactNotFound);
    }
    // A caller's names are data: none of them becomes a path.
    let name = "..%2F..%2Foutside";
    let query = format!("name={name}&label={name}&tool={name}&call_id={name}");
    let before = app.keys_of('b').await.len();
    app.put(&query, "y").await;
    assert_eq!(app.keys_of('b').await.len(), before + 1);
    assert!(!app.keys().await.iter().any(|key| key.contains("outside")));
}

#[tokio::test]
async fn s13_n06_a_source_id_is_read_from_the_right() {
    let case = vector("S13-N06");
    let app = TestApp::new(Backend::Memory).await;
    // A session may hold colons; the two words after it never do.
    let case_session = text(&case.expect, "/session");
    for session in [case_session, "run:7:tool", "a:b:c:d"] {
        let reply = app.save(session, "", &[], "x").await;
        let receipt = reply.json();
        let source_id = text(&receipt, "/source_id");
        let mut words = source_id.rsplitn(3, ':');
        let prefix = words.next().unwrap();
        assert_eq!(words.next(), receipt["artifact_id"].as_str());
        let rest = words.next().unwrap();
        assert_eq!(rest, format!("artifact:{session}"));
        let digest = text(&receipt, "/digest");
        assert_eq!(prefix.len(), text(&case.expect, "/digest_prefix").len());
        assert!(digest["sha256:".len()..].starts_with(prefix));
    }
}

#[tokio::test]
async fn dsh_n13_a_forks_old_locators_stay_valid_and_its_own_are_its_own() {
    let case = vector("DSH-N13");
    assert_eq!(text(&case.expect, "/new_namespace"), "the child session");
    let app = TestApp::new(Backend::Memory).await;
    let old = Saved::of(&app.save("parent", "call_id=1", &[], "old\n").await);
    let new = app
        .save("child", "parent=parent&call_id=2", &[], "new\n")
        .await;
    let new = Saved::of(&new);
    // The fork replays the same call: the same locator, no copy.
    let replayed = Saved::of(&app.save("child", "call_id=1", &[], "old\n").await);
    assert_eq!(replayed.receipt, old.receipt);
    assert_eq!(app.keys_of('b').await.len(), 2);
    assert_eq!(app.get(&old.path).await.text(), "old\n");
    let stat = app.get(&old.at("/stat")).await.json();
    assert_eq!(stat["session"], "parent");
    let stat = app.get(&new.at("/stat")).await.json();
    assert_eq!(stat["session"], "child");
    assert_eq!(stat["parent_session"], "parent");
    let listed = app.get("/v1/sessions/child/artifacts").await.json();
    assert_eq!(listed["artifacts"].as_array().unwrap().len(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn dsh_s01_files_are_private_and_created_exclusively() {
    use std::os::unix::fs::PermissionsExt;

    let case = vector("DSH-S01");
    let mode = |name: &str| u32::from_str_radix(text(&case.expect, name), 8).unwrap();
    let app = TestApp::new(Backend::Local).await;
    app.put("call_id=c", "secret").await;
    let mut seen = 0;
    let mut directories = vec![app.root().to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let metadata = std::fs::symlink_metadata(entry.path()).unwrap();
            let wanted = if metadata.is_dir() {
                directories.push(entry.path());
                mode("/dir_mode")
            } else {
                mode("/file_mode")
            };
            assert_eq!(
                metadata.permissions().mode() & 0o777,
                wanted,
                "{:?}",
                entry.path()
            );
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
    // Whoever plants a link where the next manifest will stand: ids are random, but a saved one's
    // name can be taken, and a create there must not write through it.
    let outside = tempfile::NamedTempFile::new().unwrap();
    let key = app.keys_of('c').await.remove(0);
    let next = spillbox::store::keys::Key::parse(format!("{key}.1")).unwrap();
    let path = app.local_path(&next);
    std::os::unix::fs::symlink(outside.path(), &path).unwrap();
    let create = spillbox::store::PutMode::CreateIfAbsent;
    let created = app.store.put(&next, "forged".into(), create).await;
    assert!(created.is_err());
    assert_eq!(std::fs::read(outside.path()).unwrap(), b"");
}

#[tokio::test]
async fn dsh_s02_bytes_are_counted_not_characters() {
    let case = vector("DSH-S02");
    let app = TestApp::new(Backend::Memory).await;
    let content = text(&case.given, "/content/text");
    let saved = app.put("", content.to_owned()).await;
    assert_eq!(saved.receipt["size_bytes"], case.expect["bytes_reported"]);
    assert_eq!(app.get(&saved.path).await.text(), content);
    // Opaque: nothing of the content or the session shows in it.
    let locator = text(&saved.receipt, "/locator");
    assert!(locator.is_ascii() && !locator.contains("ółw"));
}

#[tokio::test]
async fn her_f06_a_sandbox_without_the_stores_files_reads_by_the_hint() {
    let case = vector("HER-F06");
    assert_eq!(case.expect["host_copy"], true);
    let app = TestApp::new(Backend::Local).await;
    let saved = app.put("", "line\n".repeat(5_000)).await;
    let replacement = text(&saved.receipt, "/replacement");
    let root = app.root().to_str().unwrap();
    assert!(!replacement.contains(root), "{replacement}");
    // Only HTTP is needed to follow it.
    let hint = text(&saved.receipt, "/retrieval_hint");
    let url = hint.rsplit('\'').nth(1).unwrap();
    let path = url.strip_prefix(crate::support::app::PUBLIC_URL).unwrap();
    let page = app
        .ask(Method::GET, path, &[("Accept", "text/plain")])
        .await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text().starts_with("line\n"));
}
