//! `docker-compose.yml`: who reaches whom, and that the other file swaps in every image.

use std::collections::BTreeMap;

use serde_json::Value;
use spillbox::http::app::path::READYZ;
use spillbox::settings::ServerSettings;

use super::files::{interpolated, root, strings, text, yaml};

/// The services by name.
pub(super) fn services() -> BTreeMap<String, Value> {
    let file = yaml("docker-compose.yml");
    let services = file["services"].as_object().unwrap();
    services
        .iter()
        .map(|(name, service)| (name.clone(), service.clone()))
        .collect()
}

/// Whether it runs our image.
pub(super) fn is_ours(service: &Value) -> bool {
    image(service) == "spillbox"
}

fn image(service: &Value) -> String {
    interpolated(service["image"].as_str().unwrap())
}

/// Its command, with every variable at its default.
pub(super) fn command(service: &Value) -> Vec<String> {
    let command = strings(&service["command"]);
    command.iter().map(|one| interpolated(one)).collect()
}

fn networks(service: &Value) -> Vec<String> {
    strings(&service["networks"])
}

#[test]
fn a_sandbox_reaches_the_proxy_and_nobody_else_does_without_need() {
    let services = services();
    for (name, service) in &services {
        let expected: &[&str] = match name.as_str() {
            "sandbox" => &["sandboxes"],
            "proxy" => &["published", "service", "sandboxes"],
            "spillbox-1" | "spillbox-2" => &["store", "service"],
            // The server, the bucket's maker and the jobs.
            _ => &["store"],
        };
        assert_eq!(networks(service), expected, "{name}");
        let is_published = service.get("ports").is_some();
        assert_eq!(is_published, name == "proxy", "{name}");
    }
    let file = yaml("docker-compose.yml");
    for network in ["store", "service", "sandboxes"] {
        assert_eq!(file["networks"][network]["internal"], true, "{network}");
    }
    let ports = strings(&services["proxy"]["ports"]);
    assert!(ports.iter().all(|port| port.starts_with("127.0.0.1:")));
}

#[test]
fn the_proxy_knows_every_replica_by_its_port_and_its_health() {
    let caddyfile = text("deploy/compose/Caddyfile");
    let port = ServerSettings::default().listen.port();
    let line = caddyfile
        .lines()
        .find(|line| line.contains("reverse_proxy"));
    let line = line.unwrap().trim().trim_end_matches(" {");
    let upstreams: Vec<_> = line.split(' ').skip(1).map(str::to_owned).collect();
    let serving = |service: &Value| command(service).first().is_some_and(|one| one == "serve");
    let services = services();
    let replicas = services.iter().filter(|(_, service)| serving(service));
    let replicas: Vec<_> = replicas.map(|(name, _)| format!("{name}:{port}")).collect();
    assert_eq!(upstreams, replicas);
    assert_eq!(replicas.len(), 2);
    assert!(caddyfile.contains(&format!("health_uri {READYZ}\n")));
    assert!(caddyfile.contains(&format!("\n:{port} {{")));
}

#[test]
fn every_file_that_is_mounted_is_there_and_every_mount_has_one() {
    let file = yaml("docker-compose.yml");
    let configs = file["configs"].as_object().unwrap();
    for (name, config) in configs {
        let path = config["file"].as_str().unwrap();
        assert!(root().join(path).is_file(), "{name}");
    }
    for (name, service) in services() {
        for mount in service["configs"].as_array().into_iter().flatten() {
            let source = mount["source"].as_str().unwrap();
            assert!(configs.contains_key(source), "{name}: {source}");
        }
    }
}

#[test]
fn without_a_registry_every_image_is_a_local_one() {
    let local = yaml("deploy/compose.local.yml");
    for (name, service) in services() {
        if service.get("profiles").is_some() {
            continue;
        }
        let swapped = &local["services"][&name];
        let image = swapped["image"]
            .as_str()
            .unwrap_or_else(|| panic!("{name}"));
        assert!(image.contains("-local:"), "{name}");
        assert_eq!(swapped["pull_policy"], "never", "{name}");
        let script = text("scripts/local-images.sh");
        let (repository, _) = image.split_once(':').unwrap();
        assert!(script.contains(repository), "{image}");
        assert_eq!(service.get("build").is_some(), is_ours(&service), "{name}");
    }
}
