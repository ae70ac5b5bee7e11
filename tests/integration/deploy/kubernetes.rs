//! `deploy/k8s/`: what the schemas cannot know.

use serde_json::Value;
use spillbox::http::app::path::{LIVEZ, READYZ};

use super::files::{below, documents, strings, text, yaml};

const BASE: &str = "deploy/k8s/base";

/// Every object of the base with its file.
fn objects() -> Vec<(String, Value)> {
    let files = below(BASE).into_iter();
    files
        .filter(|path| !path.ends_with("kustomization.yaml"))
        .flat_map(|path| {
            let documents = documents(&path).into_iter();
            documents.map(move |document| (path.clone(), document))
        })
        .collect()
}

/// The pod that a Deployment or a CronJob makes.
fn pod(object: &Value) -> Option<&Value> {
    match object["kind"].as_str() {
        Some("Deployment") => Some(&object["spec"]["template"]),
        Some("CronJob") => Some(&object["spec"]["jobTemplate"]["spec"]["template"]),
        _ => None,
    }
}

/// The containers of an object; none for what makes no pods.
pub(super) fn containers(object: &Value) -> Vec<Value> {
    let containers = pod(object).map(|pod| pod["spec"]["containers"].clone());
    let containers = containers.and_then(|list| list.as_array().cloned());
    containers.unwrap_or_default()
}

fn of_kind(kind: &str) -> Vec<(String, Value)> {
    let mut objects = objects();
    objects.retain(|(_, object)| object["kind"] == kind);
    assert!(!objects.is_empty(), "{kind}");
    objects
}

/// The names of the scheduled jobs, in order.
pub(super) fn jobs() -> Vec<String> {
    let jobs = of_kind("CronJob").into_iter();
    let mut names: Vec<_> = jobs
        .map(|(_, job)| job["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn the_base_lists_every_file() {
    let listed = strings(&yaml(&format!("{BASE}/kustomization.yaml"))["resources"]);
    let mut listed: Vec<_> = listed.iter().map(|name| format!("{BASE}/{name}")).collect();
    listed.push(format!("{BASE}/kustomization.yaml"));
    listed.sort();
    assert_eq!(listed, below(BASE));
}

#[test]
fn a_job_runs_once_at_a_time_and_is_not_tried_again() {
    for (path, job) in of_kind("CronJob") {
        let spec = &job["spec"];
        assert_eq!(spec["concurrencyPolicy"], "Forbid", "{path}");
        assert!(spec["startingDeadlineSeconds"].is_u64(), "{path}");
        let of_job = &spec["jobTemplate"]["spec"];
        assert_eq!(of_job["backoffLimit"], 0, "{path}");
        assert!(of_job["activeDeadlineSeconds"].is_u64(), "{path}");
        let pod = &of_job["template"]["spec"];
        assert_eq!(pod["restartPolicy"], "Never", "{path}");
        assert_eq!(pod["serviceAccountName"], "spillbox-collector", "{path}");
        for container in containers(&job) {
            // Exit status 3 would be a failure to Kubernetes.
            assert_eq!(container["args"][0], "job", "{path}");
        }
    }
}

#[test]
fn no_pod_may_more_than_it_needs() {
    let user = text("deploy/Dockerfile");
    for (path, object) in objects() {
        let Some(pod) = pod(&object) else { continue };
        let spec = &pod["spec"];
        assert_eq!(spec["automountServiceAccountToken"], false, "{path}");
        let context = &spec["securityContext"];
        assert_eq!(context["runAsNonRoot"], true, "{path}");
        assert_eq!(
            context["seccompProfile"]["type"], "RuntimeDefault",
            "{path}"
        );
        let ids = format!("USER {}:{}\n", context["runAsUser"], context["runAsGroup"]);
        assert!(user.contains(&ids), "{path}: {ids}");
        for container in containers(&object) {
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], false, "{path}");
            assert_eq!(context["readOnlyRootFilesystem"], true, "{path}");
            assert_eq!(context["capabilities"]["drop"][0], "ALL", "{path}");
            assert!(
                container["resources"]["limits"]["memory"].is_string(),
                "{path}"
            );
        }
    }
}

#[test]
fn whoever_selects_pods_selects_some() {
    let objects = objects();
    let pods: Vec<_> = objects
        .iter()
        .filter_map(|(_, object)| pod(object))
        .collect();
    let is_part = |selector: &Value, labels: &Value| {
        let selector = selector.as_object().unwrap();
        selector.len() >= 2 && selector.iter().all(|(name, value)| labels[name] == *value)
    };
    for (path, object) in &objects {
        let spec = &object["spec"];
        let selector = match object["kind"].as_str().unwrap() {
            "Service" => &spec["selector"],
            "Deployment" | "PodDisruptionBudget" => &spec["selector"]["matchLabels"],
            "NetworkPolicy" => &spec["podSelector"]["matchLabels"],
            _ => continue,
        };
        let selected = pods
            .iter()
            .filter(|pod| is_part(selector, &pod["metadata"]["labels"]));
        assert!(selected.count() >= 1, "{path}: {selector}");
    }
}

#[test]
fn probes_services_and_rules_name_ports_that_exist() {
    let deployment = of_kind("Deployment").remove(0).1;
    let container = containers(&deployment).remove(0);
    let ports: Vec<_> = container["ports"].as_array().unwrap().iter().collect();
    let exists = |name: &Value| ports.iter().any(|port| port["name"] == *name);
    let probe = |name: &str| container[name]["httpGet"].clone();
    assert_eq!(probe("livenessProbe")["path"], LIVEZ);
    assert_eq!(probe("readinessProbe")["path"], READYZ);
    assert!(exists(&probe("livenessProbe")["port"]));
    // The API's own listener: that is where requests go.
    assert_eq!(probe("readinessProbe")["port"], "http");
    for (path, service) in of_kind("Service") {
        for port in service["spec"]["ports"].as_array().unwrap() {
            assert!(exists(&port["targetPort"]), "{path}");
        }
    }
    for (path, policy) in of_kind("NetworkPolicy") {
        for rule in policy["spec"]["ingress"].as_array().into_iter().flatten() {
            for port in rule["ports"].as_array().unwrap() {
                assert!(exists(&port["port"]), "{path}");
            }
        }
    }
    let grace = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"].as_u64();
    let drain = spillbox::limits::DRAIN_TIMEOUT.as_secs();
    assert!(grace.unwrap() >= drain + 10);
}

#[test]
fn what_a_pod_mounts_or_reads_is_made_somewhere() {
    let objects = objects();
    let overlay = yaml("deploy/k8s/overlays/example/kustomization.yaml");
    let named = |kind: &str, name: &str| {
        let in_base = objects
            .iter()
            .any(|(_, object)| object["kind"] == kind && object["metadata"]["name"] == name);
        let generators = overlay["configMapGenerator"].as_array().unwrap();
        in_base || (kind == "ConfigMap" && generators.iter().any(|one| one["name"] == name))
    };
    for (path, object) in &objects {
        let Some(pod) = pod(object) else { continue };
        let account = pod["spec"]["serviceAccountName"].as_str().unwrap();
        assert!(named("ServiceAccount", account), "{path}: {account}");
        for volume in pod["spec"]["volumes"].as_array().unwrap() {
            if let Some(name) = volume["configMap"]["name"].as_str() {
                assert!(named("ConfigMap", name), "{path}: {name}");
            }
            if let Some(name) = volume["secret"]["secretName"].as_str() {
                let how = text("deploy/k8s/overlays/example/kustomization.yaml");
                assert!(how.contains(&format!("secret generic {name} ")), "{path}");
            }
        }
        for container in containers(object) {
            for from in container["envFrom"].as_array().into_iter().flatten() {
                let name = from["configMapRef"]["name"].as_str().unwrap();
                assert!(named("ConfigMap", name), "{path}: {name}");
            }
        }
    }
}
