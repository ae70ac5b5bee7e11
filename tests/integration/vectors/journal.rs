//! The cases about journals and leases: the ancestor's files are checked by its own rules, its transitions
//! and folds are ours.

use anyhow::{Context as _, bail, ensure};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use spillbox::digest::Sha256Digest;
use spillbox::ids::ArtifactId;
use spillbox::lease::entry::{
    AbortReason, CondemnReason, Condemned, Entry, OwnerMode, Prepared, ReleaseReason,
};
use spillbox::lease::evaluate::{Operation, Refusal, Verdict, evaluate};
use spillbox::lease::jsonl::{Claim, check, event_sha256, intent_sha256};
use spillbox::lease::state::State;

use super::Vector;

/// Runs a case of a kind that is known here.
pub(super) fn run(vector: &Vector) -> Option<anyhow::Result<()>> {
    if vector.system != "workbuddy-s13" {
        return None;
    }
    let given = &vector.given;
    let outcome = match (vector.area.as_str(), vector.when.as_str()) {
        ("journal", when) if given.get("record").is_some() && when.starts_with("hash ") => {
            hashes(vector)
        }
        ("journal", when) if given.get("record").is_some() && when.starts_with("replay ") => {
            replayed(vector)
        }
        ("journal", "recover each") if given.get("damage").is_some() => damaged(vector),
        ("journal", "append every other phase") => transitions(vector),
        ("journal", when) if when.starts_with("commit again") => {
            again("committed", Step::Commit, vector)
        }
        ("journal", when) if when.starts_with("prepare the same id and claim") => {
            again("prepared", Step::Prepare, vector)
        }
        ("journal", "publish again under the same id") => published_again(vector),
        ("journal", "publish, restart, recover, run GC") => unfinished(vector),
        ("journal", "publish, recover, run GC") => rejected(vector),
        ("journal", "publish a reference") => missing(vector),
        ("journal", "fold") => folded(vector),
        ("journal", "prepare at the same time") => together(vector),
        ("security", "construct each claim (other fields valid)") => claims(vector),
        _ => return None,
    };
    Some(outcome)
}

fn hashes(vector: &Vector) -> anyhow::Result<()> {
    let record = vector.given["record"].to_string();
    let event = event_sha256(&record).context("a record")?;
    ensure!(vector.expect["event_sha256"] == event, "{event}");
    if let Some(expected) = vector.expect.get("intent_sha256") {
        let intent = intent_sha256(&record).context("an intent")?;
        ensure!(*expected == intent, "{intent}");
    }
    // The hash stands beside what it covers and changes nothing.
    let mut stored = vector.given["record"].clone();
    stored["event_sha256"] = json!(event);
    ensure!(event_sha256(&stored.to_string()).as_deref() == Some(event.as_str()));
    Ok(())
}

fn replayed(vector: &Vector) -> anyhow::Result<()> {
    let mut record = vector.given["record"].clone();
    let event = event_sha256(&record.to_string()).context("a record")?;
    ensure!(vector.expect["event_sha256"] == event, "{event}");
    record["event_sha256"] = json!(event);
    let report = check(format!("{record}\n").as_bytes());
    let is_ok = report.status.as_str() == "ok";
    ensure!(vector.expect["accepted"] == is_ok, "{:?}", report.findings);
    ensure!(vector.expect["records"] == report.records);
    ensure!(vector.expect["pending"] == json!(report.pending));
    Ok(())
}

/// The lines of a journal of the ancestor, each with its right hashes.
fn ancestor_journal(phases: &[(&str, &str)], spoil: impl Fn(usize, &mut Value)) -> Vec<String> {
    let mut previous = "0".repeat(64);
    let mut lines = Vec::new();
    for (index, (name, phase)) in phases.iter().enumerate() {
        let mut record = json!({
            "schema_version": 1, "sequence": index + 1, "session_id": "run-7", "transaction_id": name,
            "phase": phase, "recorded_at": "2026-10-05T08:30:00+00:00", "previous_sha256": previous,
            "intent": {
                "transaction_id": name, "session_id": "run-7", "prepared_at": "2026-10-05T08:30:00+00:00",
                "claim": {
                    "source_id": "artifact:run-7:tool_result_001.txt:a365bdf36416",
                    "content_sha256": "a365bdf36416e4bb9b2c7937324664e0bab301fca78b85f3ea897a9a25af71fe",
                    "reference_count": 1, "retain_until": null,
                },
            },
        });
        record["intent_sha256"] = json!(intent_sha256(&record.to_string()));
        if *phase != "prepared" {
            record.as_object_mut().unwrap().remove("intent");
        }
        spoil(index, &mut record);
        if record.get("event_sha256").is_none() {
            record["event_sha256"] = json!(event_sha256(&record.to_string()));
        }
        previous = record["event_sha256"].as_str().unwrap().to_owned();
        lines.push(record.to_string());
    }
    lines
}

const PHASES: &[(&str, &str)] = &[("a", "prepared"), ("b", "prepared"), ("a", "committed")];

/// A journal with that damage.
fn with_damage(damage: &str) -> anyhow::Result<Vec<u8>> {
    let last = PHASES.len() - 1;
    let whole = || ancestor_journal(PHASES, |_, _| {});
    let spoilt = |change: &dyn Fn(&mut Value)| {
        ancestor_journal(PHASES, |index, record| {
            if index == last {
                change(record);
            }
        })
    };
    let mut lines = whole();
    match damage {
        "a whole line that is not JSON" => lines.insert(1, "not JSON".to_owned()),
        "an empty line" => lines.insert(1, String::new()),
        "sequence 1,3" => lines = spoilt(&|record| record["sequence"] = json!(4)),
        "a record of another session" => {
            lines = spoilt(&|record| record["session_id"] = json!("run-8"))
        }
        "schema_version 2" => lines = spoilt(&|record| record["schema_version"] = json!(2)),
        "previous_sha256 of an older record" => {
            lines = spoilt(&|record| record["previous_sha256"] = json!("0".repeat(64)));
        }
        "intent.reference_count edited, hashes kept" => {
            lines[1] = lines[1].replace("\"reference_count\":1", "\"reference_count\":2");
        }
        "a committed record that repeats its intent" => {
            let intent: Value = serde_json::from_str(&lines[0])?;
            lines = spoilt(&|record| record["intent"] = intent["intent"].clone());
        }
        "prepared recorded_at differs from intent.prepared_at" => {
            lines = ancestor_journal(PHASES, |index, record| {
                if index == 1 {
                    record["recorded_at"] = json!("2026-10-05T08:30:01+00:00");
                }
            });
        }
        "event hash in upper case" => {
            let record: Value = serde_json::from_str(&lines[last])?;
            let hash = record["event_sha256"].as_str().context("a hash")?;
            lines[last] = lines[last].replace(hash, &hash.to_uppercase());
        }
        "bytes that are not UTF-8" => {
            let mut bytes = (lines.join("\n") + "\n").into_bytes();
            let at = bytes.len() - 10;
            bytes[at] = 0xff;
            return Ok(bytes);
        }
        other => bail!("no such damage here: {other}"),
    }
    Ok((lines.join("\n") + "\n").into_bytes())
}

fn damaged(vector: &Vector) -> anyhow::Result<()> {
    ensure!(
        check(&(ancestor_journal(PHASES, |_, _| {}).join("\n") + "\n").into_bytes())
            .status
            .as_str()
            == "ok"
    );
    let all = Vec::<String>::deserialize(&vector.given["damage"])?;
    let mut failed = 0;
    for damage in &all {
        let report = check(&with_damage(damage)?);
        ensure!(report.status.as_str() != "ok", "not found: {damage}");
        failed += 1;
    }
    ensure!(vector.expect["all_fail"] == (failed == all.len()));
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Prepare,
    Commit,
    Abort,
    Release,
}

impl Step {
    fn parse(phase: &str) -> anyhow::Result<Self> {
        Ok(match phase {
            "prepared" => Self::Prepare,
            "committed" => Self::Commit,
            "aborted" => Self::Abort,
            "released" => Self::Release,
            other => bail!("phase {other}"),
        })
    }

    fn operation(self, intent: Prepared) -> Operation {
        let transaction_id = intent.transaction_id.clone();
        match self {
            Self::Prepare => Operation::Prepare(Box::new(intent)),
            Self::Commit => Operation::Commit {
                transaction_id,
                owner_generation: None,
            },
            Self::Abort => Operation::Abort {
                transaction_id,
                why: AbortReason::Rejected,
            },
            Self::Release => Operation::Release {
                transaction_id,
                why: ReleaseReason::Removed,
            },
        }
    }
}

fn artifact() -> ArtifactId {
    ArtifactId::new(7, [7; 10])
}

pub(super) fn intent(
    name: &str,
    reference_count: u64,
    retain_until: Option<Timestamp>,
) -> Prepared {
    Prepared {
        transaction_id: name.parse().unwrap(),
        owner: "memory".parse().unwrap(),
        mode: OwnerMode::OwnerFenced,
        artifact_id: artifact(),
        sha256: Sha256Digest::of(b"x"),
        size_bytes: 1,
        etag: "\"e\"".to_owned(),
        version_id: None,
        reference_count,
        retain_until,
        reason: None,
    }
}

/// A state, and how many records it took.
#[derive(Default)]
pub(super) struct Journal {
    state: State,
    next_seq: u64,
    ops: Vec<&'static str>,
}

/// The names of the entries that were appended, in order.
pub(super) fn phases(journal: &Journal) -> &[&'static str] {
    &journal.ops
}

impl Journal {
    /// Appends what an operation comes to; `false` where it appends nothing.
    pub(super) fn ask(&mut self, operation: &Operation) -> Result<bool, Refusal> {
        match evaluate(&self.state, self.next_seq, operation) {
            Verdict::Append(entries) => {
                for entry in &entries {
                    self.state.apply(self.next_seq, None, entry).unwrap();
                    self.ops.push(entry.op());
                }
                self.next_seq += 1;
                Ok(true)
            }
            Verdict::Settled => Ok(false),
            Verdict::Refused(refusal) => Err(refusal),
        }
    }

    fn step(&mut self, step: Step, intent: &Prepared) -> Result<bool, Refusal> {
        self.ask(&step.operation(intent.clone()))
    }

    /// Brings a lease into a phase.
    pub(super) fn reach(&mut self, phase: &str, intent: &Prepared) -> anyhow::Result<()> {
        let steps: &[Step] = match phase {
            "none" => &[],
            "prepared" => &[Step::Prepare],
            "committed" => &[Step::Prepare, Step::Commit],
            "aborted" => &[Step::Prepare, Step::Abort],
            "released" => &[Step::Prepare, Step::Commit, Step::Release],
            other => bail!("phase {other}"),
        };
        for step in steps {
            ensure!(self.step(*step, intent)?, "{step:?} appended nothing");
        }
        Ok(())
    }
}

/// A listed transition appends one record; the same phase again and every other one append nothing.
fn transitions(vector: &Vector) -> anyhow::Result<()> {
    let table = vector.given["phases_by_current"]
        .as_object()
        .context("phases")?;
    let intent = intent("tx", 1, None);
    for (current, legal) in table {
        let legal = Vec::<String>::deserialize(legal)?;
        for phase in ["prepared", "committed", "aborted", "released"] {
            let mut journal = Journal::default();
            journal.reach(current, &intent)?;
            let outcome = journal.step(Step::parse(phase)?, &intent);
            let appended = matches!(outcome, Ok(true));
            let is_legal = legal.iter().any(|listed| listed == phase);
            ensure!(appended == is_legal, "{current} -> {phase}: {outcome:?}");
            ensure!(is_legal || phase == current || outcome != Ok(true));
        }
    }
    Ok(())
}

fn again(phase: &str, step: Step, vector: &Vector) -> anyhow::Result<()> {
    let intent = intent("tx", 1, None);
    let mut journal = Journal::default();
    journal.reach(phase, &intent)?;
    let before = journal.next_seq;
    let lease = journal.state.lease(&intent.transaction_id).cloned();
    ensure!(journal.step(step, &intent)? == (vector.expect["records_added"] != 0));
    ensure!(journal.next_seq == before);
    // The record that is there is the first one.
    ensure!(journal.state.lease(&intent.transaction_id).cloned() == lease);
    Ok(())
}

/// A transaction that is known is never a new one: the caller meets what is there.
fn published_again(vector: &Vector) -> anyhow::Result<()> {
    ensure!(vector.expect["journal_bytes_changed"] == false);
    for phase in ["prepared", "committed"] {
        let intent = intent("tx", 1, None);
        let mut journal = Journal::default();
        journal.reach(phase, &intent)?;
        ensure!(!journal.step(Step::Prepare, &intent)?, "{phase}: a record");
    }
    Ok(())
}

/// Whatever failed at the owner: prepared it stays, without end, past every time.
fn unfinished(vector: &Vector) -> anyhow::Result<()> {
    let past: Timestamp = "2026-01-01T00:00:00Z".parse()?;
    let later: Timestamp = "2099-01-01T00:00:00Z".parse()?;
    let mut journal = Journal::default();
    journal.reach("prepared", &intent("tx", 1, Some(past)))?;
    let claim = journal.state.claim(artifact(), later).context("a claim")?;
    ensure!(vector.expect["claim_retain_until"].is_null() && claim.retain_until.is_none());
    ensure!(vector.expect["pending"] == claim.reference_count);
    ensure!(journal.state.is_protected(artifact()));
    ensure!(
        journal.ask(&condemn(artifact())).is_err(),
        "it was condemned"
    );
    Ok(())
}

fn condemn(artifact_id: ArtifactId) -> Operation {
    Operation::Condemn(Box::new(Condemned {
        artifact_id,
        decision_id: None,
        sha256: None,
        size_bytes: None,
        etag: None,
        version_id: None,
        store_checksum: None,
        manifest_version_id: None,
        why: CondemnReason::Expired,
        server_date: "2027-01-01T00:00:00Z".parse().unwrap(),
        plan_id: None,
    }))
}

fn rejected(vector: &Vector) -> anyhow::Result<()> {
    let phases = Vec::<String>::deserialize(&vector.expect["phases"])?;
    let intent = intent("tx", 1, None);
    let mut journal = Journal::default();
    for phase in &phases {
        ensure!(journal.step(Step::parse(phase)?, &intent)?);
    }
    let claim = journal.state.claim(artifact(), Timestamp::UNIX_EPOCH);
    ensure!(vector.expect["claims"] == u64::from(claim.is_some()));
    let is_free = journal.ask(&condemn(artifact())) == Ok(true);
    ensure!(is_free == (vector.expect["gc"] == "deleted"));
    Ok(())
}

/// What the collector has decided to delete can no longer be leased, and nothing is written.
fn missing(vector: &Vector) -> anyhow::Result<()> {
    let mut journal = Journal::default();
    ensure!(journal.ask(&condemn(artifact()))?);
    let before = journal.next_seq;
    let refused = journal.step(Step::Prepare, &intent("tx", 1, None));
    ensure!(refused.is_err(), "{refused:?}");
    ensure!(vector.expect["records"] == journal.next_seq - before);
    Ok(())
}

fn folded(vector: &Vector) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct Given {
        phase: String,
        #[serde(default = "one")]
        count: u64,
        retain_until: Option<Timestamp>,
    }
    fn one() -> u64 {
        1
    }
    let leases = Vec::<Given>::deserialize(&vector.given["leases"])?;
    let mut journal = Journal::default();
    for (index, lease) in leases.iter().enumerate() {
        let intent = intent(&format!("tx-{index}"), lease.count, lease.retain_until);
        journal.reach(&lease.phase, &intent)?;
    }
    let now = Timestamp::deserialize(&vector.given["now"]).unwrap_or(Timestamp::UNIX_EPOCH);
    let claim = journal.state.claim(artifact(), now);
    let expect = &vector.expect;
    ensure!(expect["claims"] == u64::from(claim.is_some()), "{claim:?}");
    if let Some(claim) = claim {
        if let Some(count) = expect.get("reference_count") {
            ensure!(*count == claim.reference_count, "{claim:?}");
        }
        if let Some(end) = expect.get("retain_until") {
            let end = Option::<Timestamp>::deserialize(end)?;
            ensure!(end == claim.retain_until, "{claim:?}");
        }
    }
    Ok(())
}

/// Writers that meet share records here, so only what they add up to is the ancestor's.
fn together(vector: &Vector) -> anyhow::Result<()> {
    let writers = vector.given["writers"].as_u64().context("writers")?;
    let state = std::sync::Arc::new(State::default());
    let mut batch = spillbox::lease::batch::Batch::new(0, None, &state);
    for n in 0..writers {
        batch.add(&Operation::Prepare(Box::new(intent(
            &format!("tx-{n}"),
            1,
            None,
        ))));
    }
    let mut state = State::default();
    for entry in batch.entries() {
        state.apply(0, None, entry)?;
    }
    let claim = state
        .claim(artifact(), Timestamp::UNIX_EPOCH)
        .context("a claim")?;
    ensure!(vector.expect["reference_count"] == claim.reference_count);
    ensure!(vector.expect["pending"] == state.leases().count());
    let prepared = batch.entries().iter();
    let prepared = prepared.filter(|entry| matches!(entry, Entry::Prepared(_)));
    ensure!(vector.expect["sequences"].as_array().map(Vec::len) == Some(prepared.count()));
    Ok(())
}

/// Each is refused by the ancestor's rules; `http_leases` sends such claims to the service.
fn claims(vector: &Vector) -> anyhow::Result<()> {
    let digest = "a365bdf36416e4bb9b2c7937324664e0bab301fca78b85f3ea897a9a25af71fe";
    let valid = json!({
        "source_id": "artifact:run-7:tool_result_001.txt:a365bdf36416",
        "content_sha256": digest, "reference_count": 1, "retain_until": null,
    });
    ensure!(
        Claim::parse(&valid.to_string()).is_ok(),
        "the others are valid"
    );
    let mut accepted = 0;
    for given in vector.given["claims"].as_array().context("claims")? {
        let mut claim = valid.clone();
        for (name, value) in given.as_object().context("a claim")? {
            if name == "source_digest_prefix" {
                let digits = value.as_str().context("digits")?;
                claim["source_id"] = json!(format!("artifact:run-7:tool_result_001.txt:{digits}"));
            } else {
                claim[name] = value.clone();
            }
        }
        accepted += u64::from(Claim::parse(&claim.to_string()).is_ok());
    }
    ensure!(vector.expect["accepted"] == accepted, "{accepted} accepted");
    Ok(())
}
