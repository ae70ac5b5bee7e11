//! Plans and reports as people and scripts read them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::gc::document;
use crate::gc::expiry::Expired;
use crate::gc::plan::Placed;
use crate::gc::planner::Planned;
use crate::gc::report::Report;
use crate::gc::selection::Aged;
use crate::gc::status::{Counts, Status};
use crate::gc::stock::Stock;
use crate::gc::unfinished::Finished;
use crate::ids::ArtifactRef;

/// Candidates that an explanation names.
const NAMED: usize = 10;

/// Returns what a plan says; explained, with examples of what is kept and the candidates that matter most.
pub(super) fn plan_json(planned: &Planned, is_explained: bool) -> Value {
    let mut shown = document::of_plan(&planned.plan, &planned.sha256);
    if is_explained {
        let examples = planned.examples.values().flatten();
        shown["examples"] = examples.map(|line| json!(line)).collect();
        for (title, candidates) in notable(planned) {
            shown[title] = candidates.into_iter().map(candidate_json).collect();
        }
    }
    shown
}

fn candidate_json(placed: &Placed) -> Value {
    json!({
        "tenant": placed.anchor.tenant,
        "artifact": artifact_of(placed).to_string(),
        "reason": placed.candidate.reason,
        "last_modified": placed.last_modified(),
        "bytes": placed.body_bytes(),
    })
}

fn artifact_of(placed: &Placed) -> ArtifactRef {
    ArtifactRef {
        session_key: placed.anchor.session_key,
        artifact_id: placed.candidate.artifact_id,
    }
}

/// Returns the candidates that matter most.
fn notable(planned: &Planned) -> [(&'static str, Vec<&Placed>); 2] {
    let mut oldest: Vec<&Placed> = planned.candidates.iter().collect();
    oldest.sort_by_key(|placed| placed.last_modified());
    let mut largest: Vec<&Placed> = planned.candidates.iter().collect();
    largest.sort_by_key(|placed| std::cmp::Reverse(placed.body_bytes()));
    oldest.truncate(NAMED);
    largest.truncate(NAMED);
    [("oldest", oldest), ("largest", largest)]
}

/// Returns what a sweep of what was left did.
pub(super) fn finished_json(finished: &Finished) -> Value {
    let mut shown = json!(finished);
    shown["counts"] = document::counts(&finished.counts);
    shown["reasons"] = document::reasons(&finished.counts);
    shown
}

/// Returns the same for people; nothing where there was nothing to do.
pub(super) fn finished(finished: &Finished) -> String {
    let mut text = counts_table(&finished.counts, true);
    if !text.is_empty() {
        text.insert_str(0, "left by earlier runs\n");
    }
    for failure in &finished.failures {
        let (tenant, session) = (&failure.tenant, &failure.session_key);
        writeln!(text, "left {tenant} {session}: {}", failure.detail).expect("writing to a string");
    }
    text
}

/// Returns what a store holds, and what was expired.
pub(super) fn inventory(expired: &Expired, stock: &Stock) -> String {
    let mut text = String::new();
    for row in &stock.classes {
        let (class, count, bytes) = (row.class, row.count, row.bytes);
        let rule = &row.retention;
        writeln!(text, "{class:<12} {count:>10} {bytes:>16} bytes  {rule}")
            .expect("writing to a string");
    }
    if let Some(uploads) = stock.uploads {
        writeln!(text, "{:<12} {uploads:>10}", "uploads").expect("writing to a string");
    }
    for (what, tally) in [
        ("plans", expired.plans),
        ("reports", expired.reports),
        ("probes", expired.probes),
    ] {
        let (count, bytes) = (tally.count, tally.bytes);
        writeln!(text, "expired {what}: {count}, {bytes} bytes").expect("writing to a string");
    }
    text
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
        for (title, candidates) in notable(planned) {
            for placed in candidates {
                let (artifact, tenant) = (artifact_of(placed), &placed.anchor.tenant);
                let (date, bytes) = (placed.last_modified(), placed.body_bytes());
                let reason = placed.candidate.reason;
                add(format_args!(
                    "{title} {tenant} {artifact} {date} {bytes} bytes {reason}"
                ));
            }
        }
        for line in planned.examples.values().flatten() {
            let (tenant, artifact, bytes) = (&line.tenant, &line.artifact, line.bytes);
            let (status, reason) = (line.status, line.reason);
            add(format_args!(
                "example {tenant} {artifact} {bytes} bytes {status} {reason}"
            ));
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
