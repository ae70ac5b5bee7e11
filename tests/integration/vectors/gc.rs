//! The cases about collecting: the decisions are ours, on the ancestors' situations.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spillbox::digest::Sha256Digest;
use spillbox::gc::classify::{Cutoff, Folded, JournalView, Judged, judge};
use spillbox::gc::inventory::{Inventory, Pair, Seen, Side, Step};
use spillbox::gc::plan::{Plan, PlanRefusal};
use spillbox::gc::policy::{PolicyRequest, Share};
use spillbox::gc::status::{Reason, Status};
use spillbox::ids::{ArtifactId, ArtifactRef, SessionKey, Tenant};
use spillbox::lease::entry::{Entry, OwnerMode, Prepared};
use spillbox::lease::state::State;
use spillbox::limits::DEFAULT_ORPHAN_TTL;

use super::Vector;
use crate::support::app::Backend;
use crate::support::collection::World;

/// Runs a case of a kind that is known here.
pub(super) fn run(vector: &Vector) -> Option<anyhow::Result<()>> {
    let given = &vector.given;
    let kind = (
        vector.system.as_str(),
        vector.area.as_str(),
        vector.when.as_str(),
    );
    let outcome = match kind {
        ("workbuddy-s13", "gc", "plan and apply") if given.get("dry_run").is_some() => {
            collected(vector)
        }
        ("workbuddy-s13", "gc", when) if when.contains("raw-claims entry") => without_journal(),
        ("workbuddy-s13", "gc", "construct each") => policies(vector),
        ("workbuddy-s13", "security", when) if when.starts_with("apply, and plan with claims") => {
            of_another_session(vector)
        }
        ("hermes", "gc", "clean") if given.get("files").is_some() => by_age(vector),
        ("hermes", "gc", "clean") => nothing_there(vector),
        ("opencode", "gc", "clean") => wrapped_ids(vector),
        _ => return None,
    };
    Some(outcome)
}

fn now() -> Timestamp {
    "2026-12-10T00:00:00Z".parse().expect("a time")
}

fn cutoff() -> Cutoff {
    Cutoff {
        now: now(),
        orphan_ttl: DEFAULT_ORPHAN_TTL,
    }
}

/// An artifact that was written so many hours ago.
fn pair(artifact_id: ArtifactId, age_h: f64) -> Pair {
    #[expect(clippy::cast_possible_truncation, reason = "hours of a case")]
    let age = SignedDuration::from_secs((age_h * 3_600.0) as i64);
    let seen = Seen {
        size_bytes: 5,
        etag: "\"e\"".to_owned(),
        last_modified: now() - age,
    };
    Pair {
        artifact: ArtifactRef {
            session_key: SessionKey::derive(&Tenant::default(), &"s".parse().expect("a session")),
            artifact_id,
        },
        manifest: Some(seen.clone()),
        body: Some(seen),
    }
}

fn journal(entries: &[Entry]) -> anyhow::Result<JournalView> {
    let mut state = State::default();
    for (seq, entry) in (0..).zip(entries) {
        ensure!(state.apply(seq, Some(now()), entry).is_ok(), "{entry:?}");
    }
    Ok(JournalView::Folded(Folded::new(Arc::new(state), false)))
}

fn status(pair: &Pair, journal: &JournalView) -> anyhow::Result<Status> {
    let judged = judge(pair, &cutoff(), Some(journal), None);
    let Judged::Is(status, _) = judged else {
        anyhow::bail!("{judged:?}");
    };
    Ok(status)
}

fn aid(n: u64) -> ArtifactId {
    ArtifactId::new(n, [0; 10])
}

/// The whole way over a store: ages are twice the grace.
fn collected(vector: &Vector) -> anyhow::Result<()> {
    let files = vector.given["files"].as_array().context("files")?;
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build()?;
    runtime.block_on(async {
        let world = World::new(Backend::Memory);
        let mut references = None;
        for (n, file) in files.iter().enumerate() {
            let saved = world.save("s", &format!("file {n}")).await;
            if let Some(count) = file["claim"]["reference_count"].as_u64() {
                let mut intent = World::intent(&saved, "t");
                intent.reference_count = count;
                let (tenant, session) = (Tenant::default(), "s".parse()?);
                let prepared = world.leases().prepare(&tenant, &session, intent).await?;
                references = Some(prepared.lease.reference_count);
            }
        }
        ensure!(vector.expect["reported_reference_count"] == json!(references));
        world.wait(48);
        let planned = world.plan().await;
        let mut expected = Vec::new();
        for status in vector.expect["plan"].as_array().context("plan")? {
            expected.push(status.as_str().context("a status")?);
        }
        for status in Status::ALL {
            let of_plan = planned.plan.counts.of(*status).count;
            let named = expected.iter().filter(|name| **name == status.as_str());
            ensure!(of_plan == named.count() as u64, "{status}: {of_plan}");
        }
        world.wait(1);
        let report = world.apply(&planned).await;
        ensure!(
            json!(report.counts.of(Status::Deleted).count) == vector.expect["counts"]["deleted"]
        );
        let text = String::from_utf8(report.encode())?;
        let has_path = text.contains("/b/") || text.contains("/a/");
        ensure!(
            json!(has_path) == vector.expect["physical_path_in_report"],
            "{text}"
        );
        Ok(())
    })
}

/// There is no entry that takes claims from elsewhere: without the journal nothing is decided.
fn without_journal() -> anyhow::Result<()> {
    let judged = judge(&pair(aid(1), 48.0), &cutoff(), None, None);
    ensure!(judged == Judged::NeedsJournal, "{judged:?}");
    Ok(())
}

fn policies(vector: &Vector) -> anyhow::Result<()> {
    let accepted = |policy: &Value| {
        let mut ours = policy.clone();
        if let Some(ttl) = ours.as_object_mut().and_then(|policy| policy.remove("ttl")) {
            ours["orphan_ttl_seconds"] = ttl;
        }
        serde_json::from_value::<PolicyRequest>(ours).is_ok()
    };
    let policies = vector.given["policies"].as_array().context("policies")?;
    let count = policies.iter().filter(|policy| accepted(policy)).count();
    ensure!(vector.expect["accepted"] == count, "{count}");
    let defaults = &vector.expect["defaults"];
    let ours = PolicyRequest::default();
    ensure!(defaults["ttl"] == DEFAULT_ORPHAN_TTL.as_secs());
    ensure!(defaults["max_deletions"] == json!(ours.max_deletions));
    // Making a plan is the dry run; only an application of it deletes.
    ensure!(accepted(&json!({"dry_run": defaults["dry_run"]})));
    Ok(())
}

/// A plan of one place is none of another, and says so before anything is read of it.
fn of_another_session(vector: &Vector) -> anyhow::Result<()> {
    let plan_id = uuid::Uuid::from_u128(7);
    let plan = json!({
        "v": 1, "plan_id": plan_id, "root": "run-7/v1/", "scope": "all",
        "server_date": now(), "counts": {}, "live": 0, "tombstones": 0, "is_partial": false,
        "policy": {
            "orphan_ttl_seconds": 86_400, "max_deletions": null, "max_share": Share::ALL,
            "min_plan_age_seconds": 3_600, "settle_seconds": 60, "allow_short_times": false,
        },
        "uploads": [], "alarms": [], "parts": [],
    });
    let bytes = spillbox::lease::canonical::encode(&plan)?;
    let sha256 = Sha256Digest::of(&bytes);
    ensure!(Plan::decode(&bytes, &sha256, plan_id, "run-7/v1/").is_ok());
    let elsewhere = Plan::decode(&bytes, &sha256, plan_id, "run-8/v1/");
    let renamed = Plan::decode(&bytes, &sha256, uuid::Uuid::from_u128(8), "run-7/v1/");
    let is_foreign =
        |plan: &Result<Plan, PlanRefusal>| matches!(plan, Err(PlanRefusal::Foreign(_)));
    let errors = [elsewhere, renamed]
        .iter()
        .filter(|plan| is_foreign(plan))
        .count();
    ensure!(vector.expect["errors"] == errors, "{errors}");
    ensure!(vector.expect["deleted"] == 0);
    Ok(())
}

/// The ancestor goes by age alone; here age is necessary and not sufficient.
fn by_age(vector: &Vector) -> anyhow::Result<()> {
    ensure!(vector.is_hazard() && vector.given["max_age_h"] == 24);
    let files = vector.given["files"].as_array().context("files")?;
    let (mut removed, mut removed_though_referenced) = (0, 0);
    for (n, file) in (0..).zip(files) {
        let pair = pair(aid(n), file["age_h"].as_f64().context("an age")?);
        removed += u64::from(status(&pair, &journal(&[])?)? == Status::PlannedDelete);
        let lease = Entry::Prepared(Box::new(Prepared {
            transaction_id: "t".parse()?,
            owner: "memory".parse()?,
            mode: OwnerMode::CommitFirst,
            artifact_id: aid(n),
            sha256: Sha256Digest::of(b"x"),
            size_bytes: 5,
            etag: "\"e\"".to_owned(),
            version_id: None,
            reference_count: 1,
            retain_until: None,
            reason: None,
        }));
        let referenced = journal(&[lease])?;
        removed_though_referenced +=
            u64::from(status(&pair, &referenced)? == Status::PlannedDelete);
    }
    ensure!(vector.expect["removed"] == removed, "{removed}");
    ensure!(removed_though_referenced == 0);
    Ok(())
}

fn nothing_there(vector: &Vector) -> anyhow::Result<()> {
    ensure!(vector.given["folder"] == "absent" && vector.expect["removed"] == 0);
    let mut inventory = Inventory::new("v1/t/default/a/", "v1/t/default/b/");
    inventory.finish(Side::Manifests);
    inventory.finish(Side::Bodies);
    ensure!(inventory.next_step() == Step::End);
    Ok(())
}

/// A name holds an order, never an age.
fn wrapped_ids(vector: &Vector) -> anyhow::Result<()> {
    ensure!(vector.expect["removed_after_fix"] == false);
    for named in [0, 1 << 36, (1 << 48) - 1] {
        let young = pair(aid(named), 0.001);
        ensure!(status(&young, &journal(&[])?)? == Status::RetainedRecent);
        let old = pair(aid(named), 48.0);
        let judged = judge(&old, &cutoff(), Some(&journal(&[])?), None);
        let goes = Judged::Is(Status::PlannedDelete, Reason::ExpiredUnreferencedArtifact);
        ensure!(judged == goes, "{judged:?}");
    }
    Ok(())
}
