use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use figment::providers::Format as _;

use super::*;

fn environment(variables: &[(&str, &str)]) -> Environment {
    let home = [("HOME", "/home/u")];
    let all = home.iter().chain(variables);
    all.map(|(name, value)| ((*name).into(), (*value).into()))
        .collect()
}

fn flag(name: &'static str, key: &'static str, value: &str) -> Flag {
    Flag {
        name,
        key,
        value: value.to_owned(),
    }
}

struct TempFile {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

#[expect(clippy::disallowed_methods, reason = "a test's own file")]
fn file(text: &str) -> TempFile {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("spillbox.toml");
    std::fs::write(&path, text).unwrap();
    TempFile { _dir: dir, path }
}

fn refusal(file: Option<&Path>, variables: &[(&str, &str)], flags: &[Flag]) -> SettingsError {
    load(file, &environment(variables), flags).unwrap_err()
}

#[test]
fn without_any_source_the_defaults_hold() {
    let settings = load(None, &environment(&[]), &[]).unwrap();
    assert_eq!(settings.server.listen.to_string(), "127.0.0.1:8787");
    let url = settings.server.public_url_at(settings.server.listen);
    assert_eq!(url.as_str(), "http://127.0.0.1:8787");
    assert_eq!(
        settings.store.url.to_string(),
        "local:/home/u/.local/share/spillbox"
    );
    assert_eq!(settings.gc.orphan_ttl, Duration::from_secs(24 * 3600));
}

#[test]
fn the_default_store_follows_the_data_directory() {
    let store = |variables: &[(&str, &str)]| {
        load(None, &environment(variables), &[]).map(|settings| settings.store.url.to_string())
    };
    assert_eq!(
        store(&[("XDG_DATA_HOME", "/data")]).unwrap(),
        "local:/data/spillbox"
    );
    for ignored in ["", "relative"] {
        let url = store(&[("XDG_DATA_HOME", ignored)]).unwrap();
        assert_eq!(url, "local:/home/u/.local/share/spillbox");
    }
    let error = store(&[("HOME", "")]).unwrap_err();
    assert_eq!(error.key, "store.url");
    assert!(error.rule.contains("HOME"), "{error}");
    let named = [("HOME", ""), ("SPILLBOX_STORE__URL", "memory:")];
    assert_eq!(store(&named).unwrap(), "memory:");
}

#[test]
fn the_later_source_wins() {
    let file = file("[server]\nlisten = '1.1.1.1:1'\n[store]\nregion = 'f'\nurl = 'memory:'\n");
    let path = Some(file.path.as_path());
    let listen = |variables: &[(&str, &str)], flags: &[Flag]| {
        let settings = load(path, &environment(variables), flags).unwrap();
        assert_eq!(settings.store.region.as_deref(), Some("f"));
        assert_eq!(settings.store.url, StoreUrl::Memory);
        settings.server.listen.to_string()
    };
    let variable = ("SPILLBOX_SERVER__LISTEN", "2.2.2.2:2");
    let by_flag = flag("--listen", "server.listen", "3.3.3.3:3");
    assert_eq!(listen(&[], &[]), "1.1.1.1:1");
    assert_eq!(listen(&[variable], &[]), "2.2.2.2:2");
    assert_eq!(listen(&[variable], &[by_flag]), "3.3.3.3:3");
}

#[test]
fn text_sources_carry_numbers_truth_values_and_durations() {
    let variables = [
        ("SPILLBOX_LIMITS__MAX_BODY_BYTES", "1000"),
        ("SPILLBOX_GC__ORPHAN_TTL", "0s"),
        ("SPILLBOX_GC__ALLOW_SHORT_TIMES", "true"),
        ("SPILLBOX_GC__TOUCH_ON_READ", "false"),
        ("SPILLBOX_STORE__CHECKSUM", "off"),
        ("SPILLBOX_STORE__PATH_STYLE", "true"),
        ("SPILLBOX_SERVER__PUBLIC_URL", "https://spill.example.org"),
    ];
    let settings = load(None, &environment(&variables), &[]).unwrap();
    assert_eq!(settings.limits.max_body_bytes, 1000);
    assert!(settings.gc.allow_short_times);
    assert!(!settings.gc.touch_on_read);
    assert_eq!(settings.gc.orphan_ttl, Duration::ZERO);
    assert_eq!(settings.store.checksum, Checksum::Off);
    assert_eq!(settings.store.path_style, Some(true));
    let url = settings.server.public_url_at(settings.server.listen);
    assert_eq!(url.as_str(), "https://spill.example.org");
}

#[test]
fn a_value_can_stand_in_a_file_of_its_own() {
    let secret = file("memory:\r\n");
    let path = secret.path.to_str().unwrap();
    let variables = [("SPILLBOX_STORE__URL_FILE", path)];
    let settings = load(None, &environment(&variables), &[]).unwrap();
    assert_eq!(settings.store.url, StoreUrl::Memory);

    let twice = [variables[0], ("SPILLBOX_STORE__URL", "memory:")];
    let error = refusal(None, &twice, &[]);
    assert_eq!(error.key, "store.url");
    assert!(error.rule.contains("both"), "{error}");

    let error = refusal(None, &[("SPILLBOX_STORE__URL_FILE", "/nonexistent/x")], &[]);
    assert!(error.origin.contains("SPILLBOX_STORE__URL_FILE"), "{error}");
}

#[test]
fn unknown_settings_are_refused_in_every_source() {
    let in_file = file("[server]\nlissten = '1.1.1.1:1'\n");
    let error = refusal(Some(&in_file.path), &[], &[]);
    assert_eq!(error.key, "server.lissten");
    assert_eq!(error.origin, in_file.path.display().to_string());
    assert!(error.rule.contains("`server.listen`"), "{error}");

    let section = file("[servr]\nlisten = '1.1.1.1:1'\n");
    assert_eq!(refusal(Some(&section.path), &[], &[]).key, "servr");

    let error = refusal(None, &[("SPILLBOX_GC__ORPHAN_TLL", "1h")], &[]);
    assert_eq!(error.key, "gc.orphan_tll");
    assert!(error.origin.contains("SPILLBOX_GC__ORPHAN_TLL"), "{error}");

    let error = refusal(None, &[("SPILLBOX_GCC__X", "1h")], &[]);
    assert!(error.origin.contains("SPILLBOX_GCC__X"), "{error}");
    assert!(load(None, &environment(&[("SPILLBOX_URL", "http://x")]), &[]).is_ok());
}

#[test]
fn a_wrong_value_names_its_source_and_the_rule() {
    let wrong = file("[server]\nlisten = 'nowhere'\n");
    let error = refusal(Some(&wrong.path), &[], &[]);
    assert_eq!(error.key, "server.listen");
    assert_eq!(error.origin, wrong.path.display().to_string());

    let store = flag("--store", "store.url", "s3://b");
    let error = refusal(None, &[], &[store]);
    assert_eq!(
        (error.origin.as_str(), error.key.as_str()),
        ("flag `--store`", "store.url")
    );
    assert!(error.rule.contains("bucket name"), "{error}");

    for (name, value, key) in [
        (
            "SPILLBOX_SERVER__PUBLIC_URL",
            "https://x/",
            "server.public_url",
        ),
        (
            "SPILLBOX_LIMITS__MAX_BODY_BYTES",
            "0",
            "limits.max_body_bytes",
        ),
        (
            "SPILLBOX_LIMITS__MAX_BODY_BYTES",
            "99999999999999",
            "limits.max_body_bytes",
        ),
        (
            "SPILLBOX_LIMITS__MAX_BODY_BYTES",
            "-1",
            "limits.max_body_bytes",
        ),
        (
            "SPILLBOX_LIMITS__MAX_CONCURRENT_UPLOADS",
            "0",
            "limits.max_concurrent_uploads",
        ),
        ("SPILLBOX_GC__ORPHAN_TTL", "59m", "gc.orphan_ttl"),
        ("SPILLBOX_GC__ORPHAN_TTL", "1000years", "gc.orphan_ttl"),
        ("SPILLBOX_GC__ORPHAN_TTL", "soon", "gc.orphan_ttl"),
        (
            "SPILLBOX_GC__ALLOW_SHORT_TIMES",
            "yes",
            "gc.allow_short_times",
        ),
        ("SPILLBOX_STORE__CHECKSUM", "md5", "store.checksum"),
        ("SPILLBOX_STORE__ENDPOINT", "minio:9000", "store.endpoint"),
    ] {
        let error = refusal(None, &[(name, value)], &[]);
        assert_eq!(error.key, key, "{error}");
        assert!(error.origin.contains(name), "{error}");
    }
}

#[test]
fn a_missing_or_broken_file_is_named() {
    let error = refusal(Some(Path::new("/nonexistent/spillbox.toml")), &[], &[]);
    assert_eq!(error.origin, "/nonexistent/spillbox.toml");
    let broken = file("[server\n");
    let error = refusal(Some(&broken.path), &[], &[]);
    assert!(error.origin.ends_with("spillbox.toml"), "{error}");
    assert!(error.rule.contains("TOML"), "{error}");
}

/// The template with every commented-out setting switched on.
fn uncommented_template() -> String {
    let template = include_str!("../../deploy/config.example.toml");
    let switch_on = |line: &str| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
        _ => format!("{line}\n"),
    };
    template.lines().map(switch_on).collect()
}

fn keys_of(value: &serde_json::Value, path: &str, keys: &mut BTreeSet<String>) {
    match value.as_object() {
        Some(members) => {
            for (name, member) in members {
                keys_of(member, &format!("{path}.{name}"), keys);
            }
        }
        None => {
            keys.insert(path.to_owned());
        }
    }
}

#[test]
fn the_template_is_valid_as_shipped_and_shows_every_setting_with_its_default() {
    let shipped = file(include_str!("../../deploy/config.example.toml"));
    let defaults = load(None, &environment(&[]), &[]).unwrap();
    let loaded = load(Some(&shipped.path), &environment(&[]), &[]).unwrap();
    assert_eq!(loaded, defaults, "as shipped nothing is switched on");

    let text = uncommented_template();
    let all = file(&text);
    let settings = load(Some(&all.path), &environment(&[]), &[]).unwrap();
    assert_eq!(settings.server.listen, defaults.server.listen);
    assert_eq!(settings.limits, defaults.limits);
    assert_eq!(settings.gc, defaults.gc);
    assert_eq!(settings.store.checksum, defaults.store.checksum);

    let mut in_struct = BTreeSet::new();
    keys_of(
        &serde_json::to_value(&defaults).unwrap(),
        "",
        &mut in_struct,
    );
    let owners = serde_json::to_value(&settings.owners).unwrap();
    keys_of(&owners, ".owners", &mut in_struct);
    let mut in_template = BTreeSet::new();
    let toml: serde_json::Value = figment::Figment::from(figment::providers::Toml::string(&text))
        .extract()
        .unwrap();
    keys_of(&toml, "", &mut in_template);
    assert_eq!(in_template, in_struct);
}

#[test]
fn an_unknown_setting_is_refused_with_the_nearest_known_one() {
    let in_file = file("[limits]\nmax_body_byte = 1\n");
    let error = refusal(Some(&in_file.path), &[], &[]);
    assert!(error.origin.ends_with("spillbox.toml"), "{error}");
    assert_eq!(error.key, "limits.max_body_byte");
    assert!(error.rule.contains("`limits.max_body_bytes`"), "{error}");

    let elsewhere = file("[server]\norphan_ttl = '24h'\n");
    let error = refusal(Some(&elsewhere.path), &[], &[]);
    assert!(
        error.rule.contains("known here") || error.rule.contains("did you mean"),
        "{error}"
    );
    let section = file("[limit]\nmax_body_bytes = 1\n");
    let error = refusal(Some(&section.path), &[], &[]);
    assert!(error.rule.contains("`limits`"), "{error}");

    let error = refusal(None, &[("SPILLBOX_SERVER__ADMIN_LISTN", "x")], &[]);
    assert!(
        error.origin.contains("SPILLBOX_SERVER__ADMIN_LISTN"),
        "{error}"
    );
    assert!(error.rule.contains("`server.admin_listen`"), "{error}");
    let error = refusal(None, &[("SPILLBOX_LIMITS_MAX_BODY_BYTES", "1")], &[]);
    assert!(
        error.rule.contains("`SPILLBOX_LIMITS__MAX_BODY_BYTES`"),
        "{error}"
    );
    let error = refusal(None, &[("SPILLBOX_NOTHING__LIKE_IT", "1")], &[]);
    assert!(error.rule.contains("known here: server"), "{error}");
    let own = [("SPILLBOX_SESSION", "s"), ("SPILLBOX_URL", "http://x")];
    assert!(load(None, &environment(&own), &[]).is_ok());
}

#[test]
fn the_bounds_of_the_service_are_held() {
    let refused = [
        ("SPILLBOX_LIMITS__UPLOAD_MEMORY_BYTES", "1000000"),
        ("SPILLBOX_LIMITS__MAX_CONCURRENT_SEARCHES", "100000"),
        ("SPILLBOX_LIMITS__SEARCH_DEADLINE", "1ms"),
        ("SPILLBOX_LIMITS__SEARCH_DEADLINE", "2m"),
        ("SPILLBOX_LIMITS__REQUESTS_PER_SECOND", "1000001"),
        ("SPILLBOX_LIMITS__REQUESTS_BURST", "0"),
        ("SPILLBOX_SERVER__READY_CHECK_INTERVAL", "999ms"),
    ];
    for (name, value) in refused {
        let error = refusal(None, &[(name, value)], &[]);
        assert!(error.origin.contains(name), "{error}");
        assert!(error.rule.starts_with("from "), "{error}");
    }
}

const ENTRY: &str = "[[tokens]]\nsha256 = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'\ntenant = 'acme'\nscopes = ['read']\n";

const OTHER_ENTRY: &str = "[[tokens]]\nsha256 = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ae'\ntenant = 'acme'\nscopes = ['read']\n";

#[test]
fn a_refused_token_is_named_by_its_place_and_key() {
    for (spoil, key, part) in [
        (("'read'", "'reed'"), "tokens[1].scopes", "reed"),
        (("'read'", ""), "tokens[1].scopes", "no scope"),
        (("15ae", "15AE"), "tokens[1].sha256", "lower-case"),
        (("15ae", "15ad"), "tokens[1].sha256", "tokens[0]"),
        (("acme", "ACME"), "tokens[1].tenant", "[a-z0-9]"),
        (("tenant = 'acme'", ""), "tokens[1]", "tenant"),
        (
            ("tenant = 'acme'", "tenant = 7"),
            "tokens[1].tenant",
            "string",
        ),
        (("tenant", "tennant"), "tokens[1].tennant", "unknown"),
        (
            ("scopes = ['read']", "scopes = 'read'"),
            "tokens[1].scopes",
            "sequence",
        ),
    ] {
        let bad = OTHER_ENTRY.replace(spoil.0, spoil.1);
        let file = file(&format!("{ENTRY}{bad}"));
        let error = refusal(Some(&file.path), &[], &[]);
        assert_eq!(error.key, key, "{error}");
        assert!(error.rule.contains(part), "{error}");
        assert_eq!(error.origin, file.path.display().to_string());
    }
}

#[test]
fn tokens_also_come_from_a_file_of_their_own() {
    let settings = file(ENTRY);
    let table = |text: &str| {
        let secret = file(text);
        let path = secret.path.to_str().unwrap();
        let variables = [("SPILLBOX_ACCESS__TOKENS_FROM", path)];
        let settings = load(Some(&settings.path), &environment(&variables), &[]).unwrap();
        settings.token_table()
    };
    assert_eq!(table(OTHER_ENTRY).unwrap().unwrap().len(), 2);
    for (text, key, part) in [
        ("", "tokens", "holds no"),
        (ENTRY, "tokens[0].sha256", "the same token as tokens[0]"),
        ("[[token]]\n", "tokens", "unknown field"),
        ("sbx_secret\n", "tokens", ""),
    ] {
        let error = table(text).unwrap_err();
        assert_eq!(error.key, key, "{error}");
        assert!(error.rule.contains(part), "{error}");
        assert!(error.origin.ends_with("spillbox.toml"), "{error}");
        assert!(!error.to_string().contains("sbx_secret"), "{error}");
    }
    let variables = [("SPILLBOX_ACCESS__TOKENS_FROM", "/nonexistent/tokens")];
    let settings = load(None, &environment(&variables), &[]).unwrap();
    assert!(settings.token_table().is_err());
    let none = load(None, &environment(&[]), &[]).unwrap();
    assert!(none.token_table().unwrap().is_none());
}
