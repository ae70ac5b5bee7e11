//! Imports point down only. This file is the rule, and this table is its comment:
//!
//! | Layer | Files | May use from our crate | Crates that only it may name |
//! |---|---|---|---|
//! | L0 base | clock, limits, error, ids, digest | L0 | |
//! | L1 store | store | L0, store | `aws_*` in `store/s3*` only; the file system in `store/local*` (and L4) only |
//! | L2 domain | artifact, policy, decision, lease, gc, auth | L0, L1, itself; gc: lease, artifact; lease, policy: artifact; decision: policy, artifact | |
//! | L3 edges | http, mcp | L0, L2, L3 | axum, tower, hyper (and L4) |
//! | L4 wiring | main, cli, server, open_store, settings, store_metrics, store_watch, telemetry, audit_log, usage_watch | everything | anyhow, clap, figment, indicatif, reqwest, … |
//! | L4 wiring | main, cli, server, open_store, owner_client, settings, store_metrics, store_watch, telemetry, audit_log | everything | anyhow, clap, figment, indicatif, reqwest, … |
//!
//! It reads names, not types: comments, literals and `#[cfg(test)]` items are blanked out, then every
//! `crate::…`, `super::…` that leaves its module, and every path that begins with an outside crate is
//! checked. A module that the table does not know fails, so that a new one gets its place here.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use source::Source;

#[path = "layering/source.rs"]
mod source;

const BASE: &[&str] = &["clock", "digest", "error", "ids", "limits"];
const STORE: &[&str] = &["store"];
const DOMAIN: &[&str] = &["artifact", "auth", "decision", "gc", "lease", "policy"];
const EDGES: &[&str] = &["http", "mcp"];
const WIRING: &[&str] = &[
    "audit_log",
    "cli",
    "main",
    "open_store",
    "owner_client",
    "server",
    "settings",
    "store_metrics",
    "store_watch",
    "telemetry",
    "usage_watch",
];

/// Modules of the domain that may use another one. A lease is claimed on a confirmed live manifest, so
/// `lease` knows artifacts; what artifacts want of leases is a trait of theirs that `lease` implements.
const DOMAIN_USES: &[(&str, &[&str])] = &[
    ("decision", &["artifact", "policy"]),
    ("gc", &["artifact", "lease"]),
    ("lease", &["artifact"]),
    ("policy", &["artifact"]),
];

/// Crates that only the edges and the wiring may name.
const EDGE_CRATES: &[&str] = &[
    "axum",
    "axum_core",
    "governor",
    "hyper",
    "metrics",
    "metrics_exporter_prometheus",
    "rmcp",
    "tower",
    "tower_http",
];

/// Crates that only the wiring may name.
const WIRING_CRATES: &[&str] = &[
    "anyhow",
    "clap",
    "figment",
    "hyper_util",
    "indicatif",
    "reqwest",
    "tracing_subscriber",
];

/// Paths that reach the file system.
const FILE_SYSTEM: &[&str] = &["rustix", "std::fs", "tokio::fs"];

#[derive(Debug, PartialEq, Eq)]
struct Violation {
    file: String,
    line: usize,
    rule: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "src/{}:{}: {}", self.file, self.line, self.rule)
    }
}

/// Returns the layer's number, 0 to 4, or `None` for a module that has no place yet.
fn layer_of(module: &str) -> Option<usize> {
    [BASE, STORE, DOMAIN, EDGES, WIRING]
        .iter()
        .position(|layer| layer.contains(&module))
}

fn may_use(from: &str, to: &str) -> Result<(), String> {
    let place = |module: &str| {
        layer_of(module).ok_or(format!(
            "module `{module}` has no layer in tests/layering.rs"
        ))
    };
    let (lower, upper) = (place(to)?, place(from)?);
    if from == to {
        return Ok(());
    }
    let listed = DOMAIN_USES
        .iter()
        .any(|(user, used)| *user == from && used.contains(&to));
    let allowed = match upper {
        0 | 1 => lower == 0,
        2 => lower < 2 || listed,
        3 => matches!(lower, 0 | 2 | 3),
        _ => true,
    };
    if allowed {
        Ok(())
    } else {
        Err(format!("L{upper} `{from}` may not use L{lower} `{to}`"))
    }
}

/// Checks a path that begins with an outside crate, as `["tokio", "fs"]`.
fn may_name(file: &str, module: &str, path: &[String]) -> Result<(), String> {
    let layer = layer_of(module).unwrap_or(0);
    let head = path[0].as_str();
    let two = path.iter().take(2).cloned().collect::<Vec<_>>().join("::");
    let refuse = |where_allowed: &str| Err(format!("`{two}` may be named in {where_allowed} only"));
    if head.starts_with("aws_") && !file.starts_with("store/s3") {
        return refuse("store/s3*.rs");
    }
    if EDGE_CRATES.contains(&head) && layer < 3 {
        return refuse("the edges (L3) and the wiring (L4)");
    }
    if WIRING_CRATES.contains(&head) && layer < 4 {
        return refuse("the wiring (L4)");
    }
    let reaches_files = FILE_SYSTEM
        .iter()
        .any(|known| *known == head || *known == two);
    if reaches_files && layer < 4 && !file.starts_with("store/local") {
        return refuse("store/local*.rs and the wiring (L4)");
    }
    Ok(())
}

/// Checks one file, named relative to `src/`.
fn check(file: &str, text: &str) -> Vec<Violation> {
    let is_test = file.ends_with("/tests.rs") || file.contains("/tests/");
    let module_path: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    // The crate's root only lists modules, and tests may reach anywhere.
    if is_test || file == "lib.rs" {
        return Vec::new();
    }
    let module = module_path[0];
    let mut violations = Vec::new();
    let mut judge = |line: usize, verdict: Result<(), String>| {
        if let Err(rule) = verdict {
            let file = file.to_owned();
            violations.push(Violation { file, line, rule });
            violations.dedup();
        }
    };
    for (line, path) in Source::parse(text).paths() {
        let supers = path.iter().take_while(|part| *part == "super").count();
        let own = if path[0] == "crate" {
            Some(1)
        } else {
            // Enough `super`s lead out of our own module to the root.
            (supers >= module_path.len()).then_some(supers)
        };
        match own {
            Some(skipped) => {
                if let Some(used) = path.get(skipped).filter(|name| name.as_str() != "self") {
                    judge(line, may_use(module, used));
                }
            }
            None => judge(line, may_name(file, module, &path)),
        }
    }
    violations
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                found.extend(rust_files(&path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
        Ok(found)
    };
    list().expect("the package's own sources can be listed")
}

#[test]
fn imports_point_down_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = rust_files(&root);
    files.sort();
    assert!(files.len() > 10, "the sources were found");
    let mut violations = Vec::new();
    for path in files {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
        violations.extend(check(name, &fs::read_to_string(&path).unwrap()));
    }
    let listed: Vec<_> = violations.iter().map(Violation::to_string).collect();
    assert!(listed.is_empty(), "\n{}", listed.join("\n"));
}

fn rules(file: &str, text: &str) -> Vec<(usize, String)> {
    let found = check(file, text);
    found.into_iter().map(|v| (v.line, v.rule)).collect()
}

#[test]
fn a_violating_sample_is_caught_with_its_line_and_rule() {
    let up = "L1 `store` may not use L2 `artifact`";
    for (text, line) in [
        ("use crate::artifact::Manifest;", 1),
        (
            "use crate::{error::ErrorCode,\n    artifact::{read, Manifest}};",
            2,
        ),
        ("fn f() {\n    crate::artifact::read()\n}", 2),
        ("use super::super::artifact;", 1),
        ("pub(crate) use crate::artifact as other;", 1),
        (
            "#[cfg(test)]\nmod tests { use crate::gc; }\nuse crate::artifact::X;",
            3,
        ),
        ("#[cfg(not(test))]\nuse crate::artifact::X;", 2),
    ] {
        assert_eq!(
            rules("store/keys.rs", text),
            [(line, up.to_owned())],
            "{text}"
        );
    }
    for (file, text, part) in [
        (
            "error.rs",
            "use crate::store::StoreError;",
            "L0 `error` may not use L1",
        ),
        (
            "artifact/read.rs",
            "use crate::lease::Lease;",
            "may not use L2 `lease`",
        ),
        ("lease.rs", "use crate::auth;", "may not use L2 `auth`"),
        (
            "http/bytes.rs",
            "use crate::store::keys::Key;",
            "may not use L1 `store`",
        ),
        (
            "http/bytes.rs",
            "use crate::settings::Settings;",
            "may not use L4",
        ),
        (
            "mystery.rs",
            "use crate::error::ErrorCode;",
            "`mystery` has no layer",
        ),
        (
            "artifact.rs",
            "use crate::mystery::X;",
            "`mystery` has no layer",
        ),
        ("store.rs", "use aws_sdk_s3::Client;", "store/s3*.rs only"),
        (
            "cli/serve.rs",
            "aws_config::load().await",
            "store/s3*.rs only",
        ),
        ("artifact.rs", "fn f(r: axum::extract::Request) {}", "L3"),
        ("http.rs", "use clap::Parser;", "L4"),
        ("gc/plan.rs", "fn f() -> anyhow::Result<()> {}", "L4"),
        ("store/memory.rs", "use std::fs::File;", "store/local*.rs"),
        (
            "store/memory.rs",
            "use std::{fmt, fs::{self, File}};",
            "`std::fs`",
        ),
        ("artifact.rs", "let f = tokio::fs::read(p);", "`tokio::fs`"),
        ("artifact.rs", "use ::reqwest::Client;", "L4"),
    ] {
        let found = rules(file, text);
        assert_eq!(found.len(), 1, "{file}: {text}: {found:?}");
        assert!(found[0].1.contains(part), "{found:?}");
    }
}

#[test]
fn what_is_allowed_or_only_text_is_passed() {
    for (file, text) in [
        (
            "store/s3.rs",
            "use aws_sdk_s3::Client; use crate::store::keys::Key;",
        ),
        ("store/s3_upload.rs", "use aws_smithy_types::body::SdkBody;"),
        ("store/local.rs", "use std::fs; use rustix::fs::fsync;"),
        ("store/local/tests.rs", "use crate::artifact::X;"),
        (
            "gc/apply.rs",
            "use crate::{artifact, lease::journal, store};",
        ),
        (
            "http/bytes.rs",
            "use super::problem::Problem; use crate::artifact::read;",
        ),
        (
            "cli.rs",
            "use crate::{http, store::s3}; use anyhow::Context;",
        ),
        (
            "store/keys.rs",
            "// use crate::gc;\n/* /* crate::gc */ crate::gc */\n/// [`crate::gc`]",
        ),
        (
            "store/keys.rs",
            "const A: &str = \"crate::gc\\\" crate::gc\"; const B: char = '\"';",
        ),
        (
            "store/keys.rs",
            "const A: &str = r#\"\"crate::gc\"#; fn f<'a>(x: &'a str) {}",
        ),
        (
            "store/keys.rs",
            "#[cfg(test)]\nmod tests {\n use crate::gc; fn f() { {} }\n}",
        ),
        (
            "store/keys.rs",
            "#[cfg(test)]\n#[path = \"x.rs\"]\nuse crate::gc;",
        ),
        (
            "store/keys.rs",
            "fn f() { self::axum(); my::axum::x(); x.clap(); }",
        ),
    ] {
        assert_eq!(rules(file, text), [], "{file}: {text}");
    }
}

#[test]
fn json_objects_are_written_in_the_order_of_their_keys() {
    let sorted = serde_json::json!({"b": 1, "a": 2}).to_string();
    assert_eq!(
        sorted, r#"{"a":2,"b":1}"#,
        "a dependency switched on serde_json/preserve_order: `cargo tree -e features -i serde_json` \
         names it; stored records of equal content must be equal bytes"
    );
}
