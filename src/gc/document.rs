//! Plans and reports as people and scripts get them, the same over HTTP and on the command line.

use serde_json::{Map, Value, json};

use crate::digest::Sha256Digest;
use crate::gc::plan::Plan;
use crate::gc::report::Report;
use crate::gc::status::{Counts, Status};

/// Returns what a plan says, with its digest.
pub fn of_plan(plan: &Plan, sha256: &Sha256Digest) -> Value {
    json!({
        "plan_id": plan.plan_id,
        "sha256": sha256.to_hex(),
        "counts": counts(&plan.counts),
        "reasons": reasons(&plan.counts),
        "live": plan.live,
        "tombstones": plan.tombstones,
        "is_partial": plan.is_partial,
        "server_date": plan.server_date,
        "policy": plan.policy,
        "scope": plan.scope,
        "alarms": plan.alarms,
    })
}

/// Returns a report, with the sum per status beside the reasons.
pub fn of_report(report: &Report) -> Value {
    let mut document = serde_json::to_value(report).expect("text, numbers and lists serialise");
    document["plan_sha256"] = json!(report.plan_sha256.to_hex());
    document["counts"] = counts(&report.counts);
    document["reasons"] = reasons(&report.counts);
    document
}

/// Returns every status with its number, 0 included, so that a script finds each.
pub fn counts(counts: &Counts) -> Value {
    let of = |status: &Status| (status.as_str().to_owned(), json!(counts.of(*status).count));
    Value::Object(Status::ALL.iter().map(of).collect::<Map<_, _>>())
}

/// Returns a row for every status and reason that was met.
pub fn reasons(counts: &Counts) -> Value {
    let rows = counts.iter().map(|(status, reason, tally)| {
        json!({"status": status, "reason": reason, "count": tally.count, "bytes": tally.bytes})
    });
    Value::Array(rows.collect())
}
