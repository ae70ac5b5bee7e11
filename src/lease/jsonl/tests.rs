use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// Writes records as the ancestor does, each with its right hashes.
struct Writer {
    text: String,
    previous: String,
    sequence: u64,
}

impl Writer {
    fn new() -> Self {
        Self {
            text: String::new(),
            previous: NOTHING.to_owned(),
            sequence: 0,
        }
    }

    fn record(&self, name: &str, phase: &str) -> Value {
        let intent = json!({
            "transaction_id": name, "session_id": "run-7", "prepared_at": "2026-10-05T08:30:00+00:00",
            "claim": {
                "source_id": "artifact:run-7:tool_result_001.txt:a365bdf36416",
                "content_sha256": "a365bdf36416e4bb9b2c7937324664e0bab301fca78b85f3ea897a9a25af71fe",
                "reference_count": 1, "retain_until": null,
            },
        });
        let mut record = json!({
            "schema_version": 1, "sequence": self.sequence + 1, "session_id": "run-7",
            "transaction_id": name, "phase": phase, "recorded_at": "2026-10-05T08:30:00+00:00",
            "previous_sha256": self.previous, "intent": intent,
        });
        let hash = intent_sha256(&record.to_string()).unwrap();
        record["intent_sha256"] = json!(hash);
        if phase != "prepared" {
            record.as_object_mut().unwrap().remove("intent");
        }
        record
    }

    fn push(&mut self, mut record: Value) {
        record.as_object_mut().unwrap().remove("event_sha256");
        let hash = event_sha256(&record.to_string()).unwrap();
        record["event_sha256"] = json!(hash);
        self.text.push_str(&record.to_string());
        self.text.push('\n');
        self.sequence = record["sequence"].as_u64().unwrap_or(self.sequence + 1);
        self.previous = hash;
    }

    fn write(&mut self, name: &str, phase: &str) {
        self.push(self.record(name, phase));
    }

    fn whole() -> Self {
        let mut writer = Self::new();
        for (name, phase) in [("a", "prepared"), ("b", "prepared"), ("a", "committed")] {
            writer.write(name, phase);
        }
        writer
    }
}

fn found(text: &[u8]) -> Vec<(FindingKind, u64, u64)> {
    let report = check(text);
    let facts = |f: &Finding| (f.name, f.first_seq, f.last_seq);
    report.findings.iter().map(facts).collect()
}

fn one(kind: FindingKind, line: u64) -> Vec<(FindingKind, u64, u64)> {
    vec![(kind, line, line)]
}

#[test]
fn a_whole_file_is_ok_and_a_cut_off_write_is_no_damage() {
    let mut writer = Writer::whole();
    writer.write("a", "released");
    let report = check(writer.text.as_bytes());
    assert_eq!(report.findings, []);
    assert_eq!(
        (report.records, report.pending.as_slice()),
        (4, &["b".to_owned()][..])
    );
    assert_eq!(report.head.as_deref(), Some(writer.previous.as_str()));
    assert_eq!(report.leases["released"], 1);
    let cut = format!("{}{{\"schema_ver", writer.text);
    let report = check(cut.as_bytes());
    assert_eq!((report.status, report.cut_off_bytes), (Status::Ok, 12));
    assert_eq!(check(b"").status, Status::Ok);
}

#[test]
fn a_line_separator_inside_text_ends_no_line() {
    let mut writer = Writer::whole();
    let mut record = writer.record("c", "prepared");
    record["note"] = json!("kept\u{2028}whole \u{85}\u{754c} e\u{301}");
    writer.push(record);
    let report = check(writer.text.as_bytes());
    assert_eq!((report.findings.as_slice(), report.records), (&[][..], 4));
}

#[rstest]
#[case::no_json("x\n")]
#[case::empty_line("\n")]
#[case::not_an_object("[]\n")]
#[case::a_key_twice("{\"schema_version\":1,\"schema_version\":1}\n")]
fn a_whole_line_that_is_no_record_is_unreadable(#[case] line: &str) {
    let mut writer = Writer::whole();
    writer.text.push_str(line);
    assert_eq!(
        found(writer.text.as_bytes()),
        one(FindingKind::Unreadable, 4)
    );
}

#[test]
fn bytes_that_are_no_text_are_unreadable() {
    let mut bytes = Writer::whole().text.into_bytes();
    bytes.extend(b"{\"a\":\"\xff\"}\n");
    assert_eq!(found(&bytes), one(FindingKind::Unreadable, 4));
    let mut bytes = Writer::whole().text.into_bytes();
    bytes.extend(vec![b' '; MAX_JOURNAL_LINE_BYTES + 1]);
    bytes.push(b'\n');
    assert_eq!(found(&bytes), one(FindingKind::Unreadable, 4));
}

/// Changes the next record before it is hashed.
fn with(change: impl Fn(&mut Value)) -> Vec<(FindingKind, u64, u64)> {
    let mut writer = Writer::whole();
    let mut record = writer.record("b", "committed");
    change(&mut record);
    writer.push(record);
    found(writer.text.as_bytes())
}

#[test]
fn each_damage_has_its_name() {
    assert_eq!(with(|_| {}), []);
    assert_eq!(
        with(|r| r["sequence"] = json!(6)),
        [(FindingKind::Gap, 4, 5)]
    );
    assert_eq!(
        with(|r| r["sequence"] = json!(3)),
        one(FindingKind::Fork, 4)
    );
    assert_eq!(
        with(|r| r["session_id"] = json!("run-8")),
        one(FindingKind::ForeignSession, 4)
    );
    assert_eq!(
        with(|r| r["schema_version"] = json!(2)),
        one(FindingKind::UnknownSchema, 4)
    );
    assert_eq!(
        with(|r| r["schema_version"] = json!(true)),
        one(FindingKind::UnknownSchema, 4)
    );
    assert_eq!(
        with(|r| r["previous_sha256"] = json!(NOTHING)),
        one(FindingKind::BadLink, 4)
    );
    assert_eq!(
        with(|r| r["intent_sha256"] = json!("a".repeat(64))),
        one(FindingKind::BadHash, 4)
    );
    assert_eq!(
        with(|r| r["phase"] = json!("released")),
        one(FindingKind::Suspect, 4)
    );
    assert_eq!(
        with(|r| r["transaction_id"] = json!("nobody")),
        one(FindingKind::Suspect, 4)
    );
    for (name, value) in [
        ("phase", json!("done")),
        ("recorded_at", json!("2026-10-05T08:30:00")),
        ("transaction_id", json!("../x")),
        ("sequence", json!(4.0)),
        ("intent", json!({})),
    ] {
        assert_eq!(
            with(|r| r[name] = value.clone()),
            one(FindingKind::Unreadable, 4),
            "{name}"
        );
    }
}

#[test]
fn a_line_twice_is_a_duplicate_and_an_edit_a_bad_hash() {
    let writer = Writer::whole();
    let last = writer.text.lines().last().unwrap();
    let twice = format!("{}{last}\n", writer.text);
    let names: Vec<_> = found(twice.as_bytes()).into_iter().map(|f| f.0).collect();
    assert_eq!(names[0], FindingKind::Duplicate);
    let edited = writer.text.replacen("08:30:00", "08:31:00", 1);
    assert!(!found(edited.as_bytes()).is_empty());
    let edited = writer
        .text
        .replace("\"phase\":\"committed\"", "\"phase\":\"aborted\"");
    assert_eq!(found(edited.as_bytes()), one(FindingKind::BadHash, 3));
    let upper = last.replace(&writer.previous, &writer.previous.to_uppercase());
    let text = writer.text.replace(last, &upper);
    assert_eq!(found(text.as_bytes()), one(FindingKind::Unreadable, 3));
}

#[test]
fn an_intent_is_whole_and_unchanged() {
    for (name, value) in [
        ("prepared_at", json!("2026-10-05T08:30:01+00:00")),
        ("transaction_id", json!("other")),
        ("claim", json!({})),
    ] {
        let mut writer = Writer::new();
        let mut record = writer.record("a", "prepared");
        record["intent"][name] = value;
        let hash = intent_sha256(&record.to_string()).unwrap();
        record["intent_sha256"] = json!(hash);
        writer.push(record);
        assert_eq!(
            found(writer.text.as_bytes()),
            one(FindingKind::Unreadable, 1),
            "{name}"
        );
    }
    let mut writer = Writer::new();
    let mut record = writer.record("a", "prepared");
    record["intent"]["claim"]["reference_count"] = json!(2);
    writer.push(record);
    assert_eq!(
        found(writer.text.as_bytes()),
        one(FindingKind::Unreadable, 1)
    );
}
