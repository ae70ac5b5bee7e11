//! The alerts and the dashboard against what a service exposes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use spillbox::error::ErrorCode;
use spillbox::http::metrics::name::{self, Kind};

use super::files::{text, yaml};
use crate::support::program::{Place, Service, http_get, isolated, succeed, write};

/// Every query of a shipped file, with where it stands.
fn queries() -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap().to_owned();
        queries.push((name, alert["expr"].as_str().unwrap().to_owned()));
    }
    let dashboard: Value = serde_json::from_str(&text("deploy/grafana/spillbox.json")).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        for target in panel["targets"].as_array().into_iter().flatten() {
            queries.push((
                title.to_owned(),
                target["expr"].as_str().unwrap().to_owned(),
            ));
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if variable["type"] == "query" {
            queries.push((
                "variable".to_owned(),
                variable["query"].as_str().unwrap().to_owned(),
            ));
        }
    }
    assert!(queries.len() > 20);
    queries
}

fn alerts() -> Vec<Value> {
    let file = yaml("deploy/prometheus/alerts.yml");
    let groups = file["groups"].as_array().unwrap().clone();
    let rules = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap().clone());
    rules.collect()
}

/// The words of a query outside its strings: names of metrics, labels and functions.
fn words(query: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (n, part) in query.split('"').enumerate() {
        if n % 2 == 0 {
            let split = part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.extend(split.filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    words
}

fn metrics_of(query: &str) -> BTreeSet<String> {
    let is_metric = |word: &String| {
        let prefixes = ["spillbox_", "process_", "kube_"];
        prefixes.iter().any(|prefix| word.starts_with(prefix))
    };
    words(query).into_iter().filter(is_metric).collect()
}

/// What a service exposes after a save, a read and a failure: each series' name with its labels.
fn exposed() -> BTreeMap<String, BTreeSet<String>> {
    let place = Place::store();
    let service = Service::start(&place.store_url(), &["--admin-listen", "127.0.0.1:0"]);
    let file = place.file("a.log");
    write(&file, b"line\n");
    let url = format!("{}/v1/sessions/s/artifacts?tool=seq", service.url);
    let saved = succeed(isolated(
        "curl",
        &["-fsS", "-T", file.to_str().unwrap(), &url],
    ));
    let receipt: Value = serde_json::from_slice(&saved).unwrap();
    let locator = receipt["locator"].as_str().unwrap();
    assert!(http_get(locator).is_some_and(|(status, _)| status == 200));
    let (_, page) = http_get(service.admin.as_ref().unwrap()).unwrap();
    let mut exposed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let Some((series, _)) = line.rsplit_once(' ') else {
            continue;
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels = labels.split(',').filter_map(|label| label.split_once('='));
        let known = exposed.entry(name.to_owned()).or_default();
        known.extend(labels.map(|(label, _)| label.to_owned()));
    }
    // These begin with the first collection, or the first reconciliation that is seen.
    for later in [
        name::LEASES_PENDING,
        name::LEASES_MISSING,
        name::LEASES_UNPROTECTED,
        name::JOURNALS_UNREADABLE,
    ] {
        exposed.entry(later.to_owned()).or_default();
    }
    let status = BTreeSet::from(["status".to_owned()]);
    exposed.insert(name::GC_ARTIFACTS.to_owned(), status);
    // Kubernetes' own.
    let job_name = BTreeSet::from(["job_name".to_owned()]);
    exposed.insert("kube_job_status_failed".to_owned(), job_name);
    exposed
}

#[test]
fn every_query_asks_for_what_a_service_exposes() {
    let exposed = exposed();
    // Whoever scrapes adds these.
    let of_scrape = ["job", "instance"].map(str::to_owned);
    for (origin, query) in queries() {
        let metrics = metrics_of(&query);
        assert!(!metrics.is_empty(), "{origin}: {query}");
        let mut labels = BTreeSet::from(of_scrape.clone());
        for metric in &metrics {
            let known = exposed.get(metric);
            labels.extend(
                known
                    .unwrap_or_else(|| panic!("{origin}: {metric}"))
                    .clone(),
            );
        }
        for label in labels_of(&query) {
            assert!(
                labels.contains(&label),
                "{origin}: no label {label} in {query}"
            );
        }
    }
}

/// The labels that a query matches or groups by.
fn labels_of(query: &str) -> BTreeSet<String> {
    let mut labels = BTreeSet::new();
    for part in query.split('{').skip(1) {
        let matchers = part.split('}').next().unwrap();
        let matchers = words(matchers);
        labels.extend(matchers);
    }
    for part in query.split("by (").skip(1) {
        labels.extend(words(part.split(')').next().unwrap()));
    }
    labels
}

#[test]
fn every_code_that_an_alert_names_exists() {
    let mut seen = 0;
    for (origin, query) in queries() {
        for part in query.split("code=").skip(1) {
            let pattern = part.trim_start_matches('~').split('"').nth(1).unwrap();
            for alternative in pattern.split('|') {
                let matches = |code: &&ErrorCode| match alternative.strip_suffix(".*") {
                    Some(start) => code.as_str().starts_with(start),
                    None => code.as_str() == alternative,
                };
                assert!(
                    ErrorCode::ALL.iter().any(|code| matches(&code)),
                    "{origin}: {alternative}"
                );
                seen += 1;
            }
        }
    }
    assert!(seen >= 10);
}

#[test]
fn every_alert_is_tried_and_has_a_runbook() {
    let tests = text("deploy/prometheus/alerts.test.yml");
    let page = text("docs/OPERATIONS.md");
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        let fires = format!("alertname: {name}\n        exp_alerts");
        assert!(tests.contains(&fires), "{name} is never seen to fire");
        assert!(
            page.contains(&format!("#### {name}\n")),
            "{name} has no runbook"
        );
        let severity = alert["labels"]["severity"].as_str().unwrap();
        assert!(["critical", "warning"].contains(&severity), "{name}");
    }
    for line in page
        .lines()
        .filter_map(|line| line.strip_prefix("#### Spillbox"))
    {
        let name = format!("Spillbox{line}");
        assert!(
            alerts().iter().any(|alert| alert["alert"] == name),
            "{name}"
        );
    }
}

#[test]
fn the_alert_about_jobs_names_every_job() {
    let (_, query) = queries()
        .into_iter()
        .find(|(name, _)| name == "SpillboxJobFailed")
        .unwrap();
    let named = query.split(['(', ')']).nth(1).unwrap().to_owned();
    let mut named: Vec<_> = named
        .split('|')
        .map(|job| format!("spillbox-{job}"))
        .collect();
    named.sort();
    assert_eq!(named, super::kubernetes::jobs());
}

#[test]
fn the_dashboard_shows_every_metric() {
    let shown: BTreeSet<_> = queries()
        .iter()
        .flat_map(|(_, query)| metrics_of(query))
        .collect();
    for (name, kind, _) in name::ALL {
        let series = match kind {
            Kind::Seconds => format!("{name}_bucket"),
            Kind::Counter | Kind::Gauge => (*name).to_owned(),
        };
        assert!(shown.contains(&series), "{series} is in no query");
    }
}
