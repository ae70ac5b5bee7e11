//! The cases about reconciliation with owners: what an owner's answer means is decided purely, and decided
//! here; `lease_reconcile` sends the same answers over HTTP.

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use spillbox::digest::Sha256Digest;
use spillbox::lease::evaluate::Operation;
use spillbox::lease::names::{OwnerGeneration, TransactionId};
use spillbox::lease::owner::{
    Finding, OwnerReply, Publication, Sealing, Status, Verdict, Why, judge, judge_seal,
};

use super::Vector;
use super::journal::{Journal, intent, phases};

/// Runs a case of a kind that is known here.
pub(super) fn run(vector: &Vector) -> Option<anyhow::Result<()>> {
    if (vector.system.as_str(), vector.area.as_str()) != ("workbuddy-s13", "journal") {
        return None;
    }
    let outcome = match vector.when.as_str() {
        "reconcile one prepared lease" => rows(vector),
        "reconcile at the same time" => together(vector),
        "construct each" if vector.given.get("observations").is_some() => contradictions(vector),
        "reconcile an absent lease" => standing_still(vector),
        _ => return None,
    };
    Some(outcome)
}

fn txn() -> TransactionId {
    "tx".parse().unwrap()
}

fn claim() -> Publication {
    Publication {
        source_id: "artifact:run-7:a:9f86d081884c".to_owned(),
        sha256: Sha256Digest::of(b"test"),
    }
}

fn answered(generation: &str, document: &Value) -> OwnerReply {
    OwnerReply::Answered {
        status: 200,
        etag: Some(format!("\"{generation}\"")),
        body: document.to_string().into_bytes(),
    }
}

fn shown(sha256: &Sha256Digest) -> Value {
    json!({"state": "published", "source_id": claim().source_id, "sha256": sha256.to_hex()})
}

/// What a look and, where it is called for, a seal lead to.
fn decide(look: OwnerReply, seal: OwnerReply) -> Result<(Status, Why), String> {
    let told = |finding: Finding| (finding.status, finding.reason);
    match judge(&claim(), false, look.observation(&txn())) {
        Verdict::Commit(_) => Ok((Status::Committed, Why::OwnerConfirmedReference)),
        Verdict::Abort(why) => Ok((Status::Aborted, why)),
        Verdict::Stay(finding) => Ok(told(finding)),
        Verdict::Release => Err("released".to_owned()),
        Verdict::Seal(generation) => match judge_seal(&generation, seal.sealing(&txn())) {
            Sealing::Sealed => Ok((Status::Aborted, Why::OwnerSealedAbsence)),
            Sealing::Moved => Ok((Status::PendingStale, Why::OwnerGenerationChanged)),
            Sealing::NotAdvanced => Err("sealing must advance the generation".to_owned()),
            Sealing::Unclear(why) => Err(why),
            Sealing::OtherTransaction => Err("another transaction".to_owned()),
        },
    }
}

fn rows(vector: &Vector) -> anyhow::Result<()> {
    let absent = || answered("5", &json!({"state": "absent"}));
    let sealed = || answered("6", &json!({"state": "sealed_absent"}));
    let refused = || OwnerReply::Answered {
        status: 412,
        etag: None,
        body: Vec::new(),
    };
    for row in vector.given["rows"].as_array().context("rows")? {
        let (view, status, reason) = <(String, String, String)>::deserialize(row)?;
        let (look, seal) = match view.as_str() {
            "published, id and digest equal" => (answered("5", &shown(&claim().sha256)), sealed()),
            "published, digest differs" => {
                (answered("5", &shown(&Sha256Digest::of(b"x"))), sealed())
            }
            "unknown" => (OwnerReply::Lost("no answer".to_owned()), sealed()),
            "absent, seal succeeds" => (absent(), sealed()),
            "absent, owner generation moved before the seal" => (absent(), refused()),
            "observation for another transaction" => {
                let other = json!({"state": "absent", "transaction_id": "other"});
                (answered("5", &other), sealed())
            }
            other => bail!("no such view here: {other}"),
        };
        let decided = decide(look, seal);
        let said = decided.map(|(status, why)| (status.to_string(), why.to_string()));
        ensure!(said == Ok((status, reason)), "{view}: {said:?}");
        // What is pending is not an entry: the lease stays as it was, without end.
    }
    ensure!(vector.expect["pending_rows_stay"] == "prepared, unbounded");
    Ok(())
}

/// Each reconciler was told the same; the journal takes one commit.
fn together(vector: &Vector) -> anyhow::Result<()> {
    ensure!(vector.given["owner"] == "published, match");
    let count = vector.given["reconcilers"]
        .as_u64()
        .context("reconcilers")?;
    let mut journal = Journal::default();
    journal.reach("prepared", &intent("tx", 1, None))?;
    let mut statuses = Vec::new();
    for _ in 0..count {
        let look = answered("5", &shown(&claim().sha256));
        let Verdict::Commit(generation) = judge(&claim(), false, look.observation(&txn())) else {
            bail!("no commit");
        };
        let commit = Operation::Commit {
            transaction_id: txn(),
            owner_generation: Some(generation),
        };
        let is_new = journal
            .ask(&commit)
            .map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
        let status = if is_new {
            Status::Committed
        } else {
            Status::AlreadyCommitted
        };
        statuses.push(status.to_string());
    }
    statuses.sort_unstable();
    ensure!(vector.expect["statuses"] == json!(statuses), "{statuses:?}");
    let written = phases(&journal);
    ensure!(
        vector.expect["phases_in_journal"] == json!(written),
        "{written:?}"
    );
    Ok(())
}

/// The ancestor's constructor takes fields apart; on the wire they are one word, one document, one tag.
fn contradictions(vector: &Vector) -> anyhow::Result<()> {
    let mut accepted = 0;
    for given in vector.given["observations"]
        .as_array()
        .context("observations")?
    {
        let presence = given["presence"].as_str().unwrap_or("absent");
        let is_sealed = given["absence_sealed"] == true;
        let state = match (presence, is_sealed) {
            ("absent", true) => "sealed_absent".to_owned(),
            (other, true) => format!("sealed_{other}"),
            (other, false) => other.to_owned(),
        };
        let mut document = json!({"state": state});
        if presence == "published" {
            document = shown(&claim().sha256);
            document["state"] = json!(state);
        }
        for (ours, theirs) in [("sha256", "digest"), ("source_id", "source_id")] {
            if let Some(value) = given.get(theirs) {
                document[ours] = value.clone();
            }
        }
        let etag = match given.get("generation") {
            Some(generation) => generation.to_string(),
            None => "\"5\"".to_owned(),
        };
        let reply = OwnerReply::Answered {
            status: 200,
            etag: Some(etag),
            body: document.to_string().into_bytes(),
        };
        accepted += u64::from(reply.observation(&txn()).is_ok());
    }
    ensure!(vector.expect["accepted"] == accepted, "{accepted} accepted");
    Ok(())
}

fn standing_still(vector: &Vector) -> anyhow::Result<()> {
    ensure!(vector.given["seal_returns_generation"] == "same as observed");
    let observed: OwnerGeneration = "5".parse()?;
    let sealed = answered(observed.as_str(), &json!({"state": "sealed_absent"}));
    let absent = answered(observed.as_str(), &json!({"state": "absent"}));
    let decided = decide(absent, sealed);
    let error = vector.expect["error"].as_str().context("an error")?;
    ensure!(decided == Err(error.to_owned()), "{decided:?}");
    ensure!(vector.expect["journal"] == "prepared");
    Ok(())
}
