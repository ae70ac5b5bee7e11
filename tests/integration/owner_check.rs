//! The conformance check of owners: the reference owner passes, and every rule that is broken on purpose
//! is found under its name.

use clap::ValueEnum as _;
use spillbox::clock::{Clock, SystemClock};
use spillbox::ids::SystemIds;
use spillbox::owner_client::Endpoint;
use spillbox::owner_client::check::{Check, CheckOptions, CheckOutcome, check};

use crate::support::owner::{Broken, Said, Script, reference};
use crate::support::program::{binary, isolated, text};

async fn tried(url: &str, can_publish: bool) -> Vec<Check> {
    let endpoint = Endpoint::new(&"memory".parse().unwrap(), url, true).unwrap();
    let options = CheckOptions {
        can_publish,
        rounds: 4,
    };
    let (ids, mut told) = (SystemIds::default(), Vec::new());
    let now = SystemClock.now();
    let checks = check(&endpoint, options, &ids, now, |done| {
        told.push(done.clone())
    })
    .await;
    assert_eq!(checks, told);
    checks
}

fn failed(checks: &[Check]) -> Vec<&'static str> {
    let failed = checks
        .iter()
        .filter(|check| matches!(check.outcome, CheckOutcome::Failed(_)));
    failed.map(|check| check.name).collect()
}

#[tokio::test]
async fn the_reference_owner_keeps_every_rule() {
    let owner = reference(None).await;
    let checks = tried(&owner.url, true).await;
    assert_eq!(checks.len(), 13);
    for check in &checks {
        assert_eq!(check.outcome, CheckOutcome::Passed, "{}", check.name);
    }
    let checks = tried(&owner.url, false).await;
    let skipped = checks
        .iter()
        .filter(|check| check.outcome == CheckOutcome::Skipped);
    assert_eq!((failed(&checks).len(), skipped.count()), (0, 7));
}

#[tokio::test]
async fn every_broken_rule_is_a_named_failing_check() {
    for broken in Broken::value_variants() {
        let name = match broken {
            Broken::NotFound => "absent_is_an_answer",
            Broken::FoldsNames => "transactions_are_told_apart",
            Broken::GenerationStandsStill => "seal_advances_the_generation",
            Broken::SealsOnce => "seal_is_idempotent",
            Broken::AnyGeneration => "seal_at_another_generation_is_refused",
            Broken::SealsToggle => "two_sealers_agree",
            Broken::OldCopy => "publication_is_shown",
            Broken::Replaces => "publication_is_decided_once",
            Broken::SealsPublished => "publication_is_not_sealed",
            Broken::LatePublication => "late_publication_is_refused",
            Broken::TwoSteps => "seal_against_publication",
            Broken::PublishesRemoved => "removal_is_final",
        };
        let owner = reference(Some(*broken)).await;
        let checks = tried(&owner.url, true).await;
        assert!(failed(&checks).contains(&name), "{broken:?}: {checks:#?}");
        if *broken == Broken::AnyGeneration {
            assert!(failed(&checks).contains(&"stale_look_does_not_seal"));
        }
        if matches!(broken, Broken::PublishesRemoved | Broken::Replaces) {
            // One rule, and nothing else seems broken.
            assert_eq!(failed(&checks), [name], "{broken:?}");
        }
    }
}

#[tokio::test]
async fn an_endpoint_that_is_no_owner_fails_everything() {
    let script = Script::new(
        vec![Said::Plainly(200, "\"1\"", "<html>".to_owned())],
        vec![Said::Plainly(405, "", String::new())],
    );
    let served = script.serve().await;
    let checks = tried(&served.url, true).await;
    assert_eq!(failed(&checks).len(), checks.len());
}

/// The program's own words and exit statuses.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_says_which_rule_is_broken() {
    let run = |arguments: Vec<String>| {
        tokio::task::spawn_blocking(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let output = isolated(binary(), &arguments).output().unwrap();
            (
                output.status.code(),
                text(output.stdout),
                text(output.stderr),
            )
        })
    };
    let words = |url: &str, more: &[&str]| {
        let mut words = vec!["owner".to_owned(), "check".to_owned(), url.to_owned()];
        words.extend(more.iter().map(|word| (*word).to_owned()));
        words
    };
    let good = reference(None).await;
    let (exit, told, complaint) = run(words(&good.url, &["--rounds", "2"])).await.unwrap();
    assert_eq!((exit, complaint.as_str()), (Some(0), ""), "{told}");
    assert_eq!(told.lines().count(), 13);
    assert!(
        told.lines().all(|line| line.starts_with("passed  ")),
        "{told}"
    );

    let (exit, told, _) = run(words(&good.url, &["--no-publication", "--json"]))
        .await
        .unwrap();
    assert_eq!(exit, Some(3));
    let last: serde_json::Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
    assert_eq!(last["check"], "removal_is_final");
    assert_eq!(last["outcome"], "skipped");

    let bad = reference(Some(Broken::LatePublication)).await;
    let (exit, told, _) = run(words(&bad.url, &["--rounds", "2"])).await.unwrap();
    assert_eq!(exit, Some(4));
    let line = "failed  late_publication_is_refused: it published under a sealed transaction";
    assert!(told.lines().any(|told| told == line), "{told}");

    let (exit, _, complaint) = run(words("http://127.0.0.1:1", &[])).await.unwrap();
    assert_eq!(exit, Some(1), "{complaint}");
    assert!(complaint.contains("cannot be reached"), "{complaint}");
    let (exit, _, complaint) = run(words("ftp://x", &[])).await.unwrap();
    assert_eq!(exit, Some(2), "{complaint}");
}
