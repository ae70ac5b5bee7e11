use super::*;

const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn txn() -> TransactionId {
    "tx-1".parse().unwrap()
}

fn generation(text: &str) -> OwnerGeneration {
    text.parse().unwrap()
}

fn claim() -> Publication {
    Publication {
        source_id: "artifact:s:a:9f86d081884c".to_owned(),
        sha256: Sha256Digest::from_hex(DIGEST).unwrap(),
    }
}

fn answered(status: u16, etag: &str, body: &str) -> OwnerReply {
    OwnerReply::Answered {
        status,
        etag: (!etag.is_empty()).then(|| etag.to_owned()),
        body: body.as_bytes().to_vec(),
    }
}

fn seen(etag: &str, body: &str) -> Result<Observation, Unclear> {
    answered(200, etag, body).observation(&txn())
}

fn published(digest: &str) -> String {
    format!(
        r#"{{"state":"published","source_id":"artifact:s:a:9f86d081884c","sha256":"{digest}","more":[1]}}"#
    )
}

#[test]
fn an_observation_is_read_from_a_200_with_a_strong_tag() {
    for digest in [
        DIGEST.to_owned(),
        format!("sha256:{DIGEST}"),
        DIGEST.to_uppercase(),
    ] {
        let observation = seen("\"17\"", &published(&digest)).unwrap();
        assert_eq!(observation.generation, generation("17"));
        assert_eq!(observation.presence, Presence::Published(claim()));
    }
    for (body, presence) in [
        (r#"{"state":"absent"}"#, Presence::Absent),
        (
            r#"{"state":"absent","source_id":null,"sha256":null}"#,
            Presence::Absent,
        ),
        (
            r#"{"state":"sealed_absent","transaction_id":"tx-1"}"#,
            Presence::SealedAbsent,
        ),
        (r#"{"state":"removed","sha256":"x"}"#, Presence::Removed),
    ] {
        assert_eq!(seen("\"0\"", body).unwrap().presence, presence, "{body}");
    }
}

#[test]
fn a_contradiction_is_no_observation() {
    for body in [
        r#"{"state":"published"}"#,
        r#"{"state":"published","source_id":"a","sha256":null}"#,
        r#"{"state":"published","source_id":null,"sha256":"00"}"#,
        r#"{"state":"published","source_id":7,"sha256":"00"}"#,
        r#"{"state":"absent","source_id":"a"}"#,
        r#"{"state":"sealed_absent","sha256":"00"}"#,
        r#"{"state":"sealed_published"}"#,
        r#"{"state":"unknown"}"#,
        r#"{"state":true}"#,
        r#"{"State":"absent"}"#,
        r#"{}"#,
        r#"[]"#,
        r#"{"state":"absent"} and more"#,
        "absent",
        "",
    ] {
        let refused = seen("\"1\"", body);
        assert!(matches!(refused, Err(Unclear::Unknown(_))), "{body}");
    }
    for etag in [
        "", "1", "-1", "true", "W/\"1\"", "\"", "\"\"", "\"a\"b\"", "\"a\nb\"",
    ] {
        let refused = seen(etag, r#"{"state":"absent"}"#);
        assert!(matches!(refused, Err(Unclear::Unknown(_))), "{etag}");
    }
    let long = format!("\"{}\"", "x".repeat(257));
    assert!(seen(&long, r#"{"state":"absent"}"#).is_err());
}

#[test]
fn nothing_but_200_says_anything() {
    for status in [
        0, 199, 201, 204, 206, 301, 302, 304, 400, 401, 403, 404, 410, 429, 500, 503,
    ] {
        let reply = answered(status, "\"1\"", r#"{"state":"absent"}"#);
        let unclear = reply.observation(&txn()).unwrap_err();
        assert_eq!(
            unclear,
            Unclear::Unknown(format!("the owner answered {status}"))
        );
    }
    let lost = OwnerReply::Lost("no answer".to_owned()).observation(&txn());
    assert_eq!(lost, Err(Unclear::Unknown("no answer".to_owned())));
}

#[test]
fn an_answer_about_another_transaction_is_a_conflict() {
    let other = seen("\"1\"", r#"{"state":"absent","transaction_id":"tx-2"}"#);
    assert_eq!(other, Err(Unclear::OtherTransaction));
    let Verdict::Stay(finding) = judge(&claim(), false, other) else {
        panic!("nothing is appended");
    };
    assert_eq!(finding.status, Status::PendingConflict);
    assert_eq!(finding.reason, Why::OwnerTransactionMismatch);
}

#[test]
fn only_what_the_owner_decided_ends_a_lease() {
    let at = |presence| {
        Ok(Observation {
            presence,
            generation: generation("5"),
        })
    };
    let other = Publication {
        sha256: Sha256Digest::of(b"other"),
        ..claim()
    };
    let moved = Publication {
        source_id: "artifact:t:a:9f86d081884c".to_owned(),
        ..claim()
    };
    let conflict = |reason| Verdict::Stay(Finding::conflict(reason));
    for (presence, prepared) in [
        (
            Presence::Published(claim()),
            Verdict::Commit(generation("5")),
        ),
        (
            Presence::Published(other.clone()),
            conflict(Why::OwnerReferenceMismatch),
        ),
        (
            Presence::Published(moved),
            conflict(Why::OwnerReferenceMismatch),
        ),
        (Presence::Absent, Verdict::Seal(generation("5"))),
        (
            Presence::SealedAbsent,
            Verdict::Abort(Why::OwnerSealedAbsence),
        ),
        (
            Presence::Removed,
            Verdict::Abort(Why::OwnerRemovedReference),
        ),
    ] {
        assert_eq!(judge(&claim(), false, at(presence.clone())), prepared);
        // A committed lease ends by a removal alone.
        let committed = judge(&claim(), true, at(presence.clone()));
        let ends = !matches!(committed, Verdict::Stay(_));
        assert_eq!(ends, presence == Presence::Removed, "{committed:?}");
    }
    let unknown = judge(&claim(), false, Err(Unclear::Unknown("x".to_owned())));
    let finding = Finding::new(Status::PendingUnknown, Why::OwnerResultUnknown).because("x");
    assert_eq!(unknown, Verdict::Stay(finding));
}

#[test]
fn a_seal_counts_when_the_owner_says_so_and_has_moved_on() {
    let judged = |status, etag: &str, body: &str| {
        judge_seal(
            &generation("5"),
            answered(status, etag, body).sealing(&txn()),
        )
    };
    let sealed = r#"{"state":"sealed_absent"}"#;
    assert_eq!(judged(200, "\"6\"", sealed), Sealing::Sealed);
    assert_eq!(judged(201, "\"6\"", sealed), Sealing::Sealed);
    assert_eq!(
        judged(200, "\"6\"", r#"{"state":"removed"}"#),
        Sealing::Sealed
    );
    assert_eq!(judged(200, "\"5\"", sealed), Sealing::NotAdvanced);
    assert_eq!(judged(409, "", r#"{"state":"published"}"#), Sealing::Moved);
    assert_eq!(judged(412, "", ""), Sealing::Moved);
    let other = r#"{"state":"sealed_absent","transaction_id":"tx-2"}"#;
    assert_eq!(judged(200, "\"6\"", other), Sealing::OtherTransaction);
    for (status, etag, body) in [
        (200, "", sealed),
        (200, "6", sealed),
        (200, "\"6\"", r#"{"state":"absent"}"#),
        (200, "\"6\"", r#"{"state":"published"}"#),
        (200, "\"6\"", ""),
        (204, "\"6\"", ""),
        (302, "\"6\"", sealed),
        (404, "", ""),
        (500, "", sealed),
    ] {
        let judged = judged(status, etag, body);
        assert!(matches!(judged, Sealing::Unclear(_)), "{status} {body}");
    }
}

#[test]
fn a_lease_that_an_operator_ended_is_watched() {
    let at = |presence| {
        Ok(Observation {
            presence,
            generation: generation("5"),
        })
    };
    let shown = judge_ended(Status::AlreadyAborted, at(Presence::Published(claim())));
    assert!(shown.status.is_alarm());
    for presence in [Presence::Absent, Presence::SealedAbsent, Presence::Removed] {
        let finding = judge_ended(Status::AlreadyReleased, at(presence));
        assert_eq!(finding.status, Status::AlreadyReleased);
    }
    let unknown = judge_ended(Status::AlreadyAborted, Err(Unclear::Unknown("x".into())));
    assert_eq!(unknown.status, Status::AlreadyAborted);
}

#[test]
fn the_words_of_the_enums_are_those_of_the_wire() {
    for status in Status::ALL {
        assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
    }
    for why in Why::ALL {
        assert_eq!(serde_json::to_value(why).unwrap(), why.as_str());
    }
}
