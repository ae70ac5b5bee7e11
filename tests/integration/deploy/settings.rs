//! Every setting that a shipped file makes exists, has a value that is taken, and agrees with the others.

use std::ffi::OsString;
use std::path::Path;

use serde_json::Value;
use spillbox::digest::Sha256Digest;
use spillbox::settings::{Environment, Flag, ServerSettings, Settings, load};

use super::files::{below, documents, interpolated, root, text, yaml};
use super::{compose, kubernetes};
use crate::support::program::write;

fn environment<'a>(variables: impl IntoIterator<Item = (&'a str, String)>) -> Environment {
    let home = ("HOME", "/nonexistent".to_owned());
    let all = variables.into_iter().chain([home]);
    all.map(|(name, value)| (OsString::from(name), OsString::from(value)))
        .collect()
}

fn loaded(origin: &str, file: Option<&Path>, environment: &Environment) -> Settings {
    load(file, environment, &[]).unwrap_or_else(|error| panic!("{origin}: {error}"))
}

fn loaded_text(origin: &str, text: &str) -> Settings {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    write(&path, text.as_bytes());
    loaded(origin, Some(&path), &environment([]))
}

/// `NAME=value` pairs of the image.
fn image_environment() -> Vec<(String, String)> {
    let dockerfile = text("deploy/Dockerfile").replace("\\\n", " ");
    let line = dockerfile
        .lines()
        .find_map(|line| line.strip_prefix("ENV "));
    let pairs = line.unwrap().split_whitespace();
    pairs
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn the_image_listens_on_the_ports_that_it_exposes() {
    let pairs = image_environment();
    let variables = pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()));
    let server = loaded("deploy/Dockerfile", None, &environment(variables)).server;
    assert_eq!(
        server.listen.port(),
        ServerSettings::default().listen.port()
    );
    let admin = server.admin_listen.unwrap().port();
    let exposed = format!("EXPOSE {} {admin}\n", server.listen.port());
    assert!(text("deploy/Dockerfile").contains(&exposed), "{exposed}");
    assert!(server.listen.ip().is_unspecified());
}

#[test]
fn compose_sets_what_exists_and_its_tokens_are_those_that_it_names() {
    let file = root().join("deploy/compose/spillbox.toml");
    for (name, service) in compose::services() {
        if !compose::is_ours(&service) {
            continue;
        }
        let variables = service["environment"].as_object().unwrap();
        let ours = variables.iter().map(|(name, value)| {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), interpolated);
            (name.as_str(), value)
        });
        let settings = loaded(&name, Some(&file), &environment(ours.clone()));
        // SPILLBOX_STORE is the command line's own, and has a flag's rank.
        let store = ours
            .clone()
            .find(|(name, _)| *name == "SPILLBOX_STORE")
            .unwrap();
        let flag = Flag {
            name: "SPILLBOX_STORE",
            key: "store.url",
            value: store.1,
        };
        assert!(load(None, &environment([]), &[flag]).is_ok(), "{name}");
        // With every variable at its default, the collector's times are the defaults.
        let defaults = loaded("defaults", None, &environment([]));
        assert_eq!(settings.gc, defaults.gc, "{name}");
    }
    let tokens = text("deploy/compose/tokens.toml");
    let table = Settings {
        tokens: Vec::new(),
        ..loaded_text("tokens", &tokens)
    };
    assert!(table.tokens.is_empty());
    let entries = loaded_text("deploy/compose/tokens.toml", &tokens).tokens;
    let named: Vec<_> = tokens
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| line.starts_with("sbx_"))
        .map(|token| Sha256Digest::of(token.as_bytes()).to_hex())
        .collect();
    let hashes: Vec<_> = entries.iter().map(|entry| entry.sha256.clone()).collect();
    assert_eq!(named, hashes);
    let sandbox = &compose::services()["sandbox"]["environment"]["SPILLBOX_TOKEN"];
    let of_sandbox = Sha256Digest::of(sandbox.as_str().unwrap().as_bytes()).to_hex();
    assert_eq!(of_sandbox, hashes[0]);
    assert_eq!(entries[0].scopes, ["save", "read"]);
}

/// The settings file in a ConfigMap, and what an overlay puts in its place.
fn kubernetes_configs() -> Vec<(String, String)> {
    let of_base = documents("deploy/k8s/base/config.yaml");
    let config = of_base[0]["data"]["config.toml"].as_str().unwrap();
    let mut configs = vec![("base".to_owned(), config.to_owned())];
    for path in below("deploy/k8s/overlays") {
        if !path.ends_with("kustomization.yaml") {
            continue;
        }
        for patch in yaml(&path)["patches"].as_array().into_iter().flatten() {
            let Some(operations) = patch["patch"].as_str() else {
                continue;
            };
            let operations: Vec<Value> = serde_saphyr::from_str(operations).unwrap();
            for operation in operations {
                if operation["path"] == "/data/config.toml" {
                    let text = operation["value"].as_str().unwrap();
                    configs.push((path.clone(), text.to_owned()));
                }
            }
        }
    }
    configs
}

#[test]
fn kubernetes_listens_where_its_ports_and_probes_are() {
    let configs = kubernetes_configs();
    assert_eq!(configs.len(), 2);
    for (origin, text) in configs {
        let server = loaded_text(&origin, &text).server;
        let deployment = yaml("deploy/k8s/base/deployment.yaml");
        let container = kubernetes::containers(&deployment).remove(0);
        let port = |name: &str| {
            let ports = container["ports"].as_array().unwrap();
            let port = ports.iter().find(|port| port["name"] == name).unwrap();
            port["containerPort"].as_u64().unwrap()
        };
        assert_eq!(port("http"), u64::from(server.listen.port()), "{origin}");
        let admin = server.admin_listen.unwrap().port();
        assert_eq!(port("admin"), u64::from(admin), "{origin}");
        assert!(
            server.public_url.is_some(),
            "{origin}: replicas must share one"
        );
    }
    for path in below("deploy/k8s/overlays") {
        if !path.ends_with("kustomization.yaml") {
            continue;
        }
        let generators = yaml(&path)["configMapGenerator"].clone();
        for literal in generators.as_array().unwrap().iter().flat_map(|one| {
            let literals = one["literals"].as_array().unwrap();
            literals.iter().map(|one| one.as_str().unwrap().to_owned())
        }) {
            let (name, value) = literal.split_once('=').unwrap();
            if name == "SPILLBOX_STORE" {
                let variables = [("SPILLBOX_STORE__URL", value.to_owned())];
                loaded(&path, None, &environment(variables));
            } else {
                assert!(name.starts_with("AWS_"), "{path}: {name}");
            }
        }
    }
}

#[test]
fn units_set_what_exists() {
    for path in below("deploy/systemd") {
        let unit = text(&path);
        let set = unit
            .lines()
            .filter_map(|line| line.strip_prefix("Environment="));
        let set: Vec<_> = set.map(|pair| pair.split_once('=').unwrap()).collect();
        let variables = set.iter().map(|(name, value)| (*name, (*value).to_owned()));
        loaded(&path, None, &environment(variables));
    }
}
