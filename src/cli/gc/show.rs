//! Plans and reports as people and scripts read them.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::gc::plan::Placed;
use crate::gc::planner::Planned;
use crate::gc::report::Report;
use crate::gc::selection::Aged;
use crate::gc::status::{Counts, Status};
use crate::ids::ArtifactRef;

/// Candidates that an explanation names.
const NAMED: usize = 10;

/// Returns a report as JSON, with the sum per status beside the reasons.
pub(super) fn json(report: &Report) -> Value {
    let mut document = serde_json::to_value(report).expect("text, numbers and lists serialise");
    document["counts"] = counts_json(&report.counts);
    document["reasons"] = reasons_json(&report.counts);
    document
}

/// Returns what a plan says, with its digest.
pub(super) fn plan_json(planned: &Planned) -> Value {
    let plan = &planned.plan;
    json!({
        "plan_id": plan.plan_id,
        "sha256": planned.sha256.to_hex(),
        "counts": counts_json(&plan.counts),
        "reasons": reasons_json(&plan.counts),
        "live": plan.live,
        "tombstones": plan.tombstones,
        "is_partial": plan.is_partial,
        "server_date": plan.server_date,
        "policy": plan.policy,
        "scope": plan.scope,
        "alarms": plan.alarms,
    })
}

/// Every status with its number, 0 included, so that a script finds each.
fn counts_json(counts: &Counts) -> Value {
    let of = |status: &Status| (status.as_str().to_owned(), json!(counts.of(*status).count));
    Value::Object(Status::ALL.iter().map(of).collect::<Map<_, _>>())
}

fn reasons_json(counts: &Counts) -> Value {
    let rows = counts.iter().map(|(status, reason, tally)| {
        json!({"status": status, "reason": reason, "count": tally.count, "bytes": tally.bytes})
    });
    Value::Array(rows.collect())
}

fn counts_table(counts: &Counts, has_reasons: bool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, count: u64, bytes: u64| {
        writeln!(text, "{name:<58} {count:>10} {bytes:>16} bytes").expect("writing to a string");
    };
    for status in Status::ALL {
        let sum = counts.of(*status);
        if sum.count == 0 {
            continue;
        }
        line(status.as_str(), sum.count, sum.bytes);
        let rows = counts.iter().filter(|(of, ..)| has_reasons && of == status);
        for (_, reason, tally) in rows {
            line(&format!("  {reason}"), tally.count, tally.bytes);
        }
    }
    text
}

/// Returns a plan for people.
pub(super) fn plan(planned: &Planned, is_explained: bool) -> String {
    let plan = &planned.plan;
    let mut text = counts_table(&plan.counts, is_explained);
    let mut add = |line: std::fmt::Arguments<'_>| {
        text.write_fmt(line).expect("writing to a string");
        text.push('\n');
    };
    if is_explained {
        let mut oldest: Vec<&Placed> = planned.candidates.iter().collect();
        oldest.sort_by_key(|placed| placed.last_modified());
        let mut largest: Vec<&Placed> = planned.candidates.iter().collect();
        largest.sort_by_key(|placed| std::cmp::Reverse(placed.body_bytes()));
        for (title, candidates) in [("oldest", oldest), ("largest", largest)] {
            for placed in candidates.into_iter().take(NAMED) {
                let artifact = ArtifactRef {
                    session_key: placed.anchor.session_key,
                    artifact_id: placed.candidate.artifact_id,
                };
                let (tenant, date) = (&placed.anchor.tenant, placed.last_modified());
                let (bytes, reason) = (placed.body_bytes(), placed.candidate.reason);
                add(format_args!(
                    "{title} {tenant} {artifact} {date} {bytes} bytes {reason}"
                ));
            }
        }
    }
    for alarm in &plan.alarms {
        let (status, reason) = (alarm.status, alarm.reason);
        add(format_args!(
            "alarm {} {} {status} {reason}",
            alarm.tenant, alarm.artifact
        ));
    }
    if plan.policy.allow_short_times {
        add(format_args!(
            "gc.allow_short_times is on: this store promises nothing"
        ));
    }
    add(format_args!(
        "plan {} of {}",
        plan.plan_id, plan.server_date
    ));
    add(format_args!(
        "apply it with: spillbox gc apply {} --sha256 {}",
        plan.plan_id,
        planned.sha256.to_hex()
    ));
    text
}

/// Returns a report for people.
pub(super) fn report(report: &Report) -> String {
    let mut text = counts_table(&report.counts, true);
    for failure in &report.failures {
        let (tenant, session) = (&failure.tenant, &failure.session_key);
        writeln!(text, "left {tenant} {session}: {}", failure.detail).expect("writing to a string");
    }
    let state = if report.is_complete {
        "complete"
    } else {
        "not complete: run it again"
    };
    writeln!(
        text,
        "plan {} applied at {}, {state}",
        report.plan_id, report.server_date
    )
    .expect("writing to a string");
    text
}
