//! The bucket's policies against the keys that are built: every class of key is granted, and nothing else is.

use std::collections::BTreeSet;

use serde_json::Value;
use spillbox::ids::{ArtifactId, ArtifactRef, SessionKey, Tenant, TurnHash};
use spillbox::store::keys::{KeyClass, KeySpace};

use super::files::{text, yaml};

/// One key of every class, under the empty prefix.
fn keys() -> Vec<(KeyClass, String)> {
    let space = KeySpace::new("").unwrap();
    let tenant: Tenant = "acme".parse().unwrap();
    let session_id = "s".parse().unwrap();
    let session = SessionKey::derive(&tenant, &session_id);
    let artifact = ArtifactRef {
        session_key: session,
        artifact_id: ArtifactId::new(1, [0; 10]),
    };
    let did = "00000000000000000000000001".parse().unwrap();
    let turn = TurnHash::derive(&tenant, &session_id, &"t".parse().unwrap());
    let id = uuid::Uuid::nil();
    let keys = [
        space.format(),
        space.probe(&id),
        space.attestation("0a1b").unwrap(),
        space.session(&tenant, &session),
        space.body(&tenant, &artifact),
        space.manifest(&tenant, &artifact),
        space.call_record(&tenant, &session, &did, 1),
        space.turn_record(&tenant, &session, &turn, 0),
        space.journal_record(&tenant, &session, 7),
        space.checkpoint(&tenant, &session, 7),
        space.gc_plan(&id),
        space.gc_plan_part(&id, 0),
        space.gc_report(&id, &id),
        space.reconciliation(),
    ];
    let classed = keys.map(|key| (space.class_of(key.as_str()), key.as_str().to_owned()));
    let classes: BTreeSet<_> = classed.iter().map(|(class, _)| *class).collect();
    assert_eq!(
        classes.len(),
        KeyClass::ALL.len() - 1,
        "all but foreign keys"
    );
    classed.into()
}

/// Whether a resource's pattern, in which `*` is any text, covers a key.
fn covers(pattern: &str, key: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == key,
        Some((before, after)) => key.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && covers(after, &rest[at..]))
        }),
    }
}

/// One value or a list of them.
fn list(value: &Value) -> Vec<String> {
    if let Value::String(one) = value {
        return vec![one.clone()];
    }
    super::files::strings(value)
}

/// A statement: what it allows or denies, and for which keys.
struct Statement {
    sid: String,
    effect: String,
    actions: Vec<String>,
    patterns: Vec<String>,
    condition: Value,
}

impl Statement {
    /// `begin` is what stands before the keys in every resource of an object.
    fn all(document: &Value, begin: &str) -> Vec<Self> {
        let statements = document["Statement"].as_array().unwrap();
        let statement = |value: &Value| Self {
            sid: value["Sid"].as_str().unwrap_or_default().to_owned(),
            effect: value["Effect"].as_str().unwrap().to_owned(),
            actions: list(&value["Action"]),
            patterns: list(&value["Resource"])
                .iter()
                .filter_map(|resource| resource.strip_prefix(begin).map(str::to_owned))
                .collect(),
            condition: value["Condition"].clone(),
        };
        statements.iter().map(statement).collect()
    }

    fn covers(&self, key: &str) -> bool {
        self.patterns.iter().any(|pattern| covers(pattern, key))
    }
}

/// The classes of keys on which a role may do `action`; no pattern may be without one.
fn allowed(statements: &[Statement], action: &str) -> BTreeSet<KeyClass> {
    let keys = keys();
    let of_action = statements.iter().filter(|statement| {
        statement.effect == "Allow" && statement.actions.iter().any(|one| one == action)
    });
    let mut classes = BTreeSet::new();
    for statement in of_action {
        for pattern in &statement.patterns {
            let covered = keys.iter().filter(|(_, key)| covers(pattern, key));
            let covered: Vec<_> = covered.map(|(class, _)| *class).collect();
            assert!(!covered.is_empty(), "{pattern} covers no key");
            classes.extend(covered);
        }
    }
    classes.remove(&KeyClass::Foreign);
    classes
}

fn everything() -> BTreeSet<KeyClass> {
    let ours = |class: &KeyClass| *class != KeyClass::Foreign;
    KeyClass::ALL.into_iter().filter(ours).collect()
}

fn assert_roles(service: &[Statement], collector: &[Statement]) {
    for role in [service, collector] {
        for action in ["s3:GetObject", "s3:GetObjectVersion"] {
            assert_eq!(allowed(role, action), everything(), "{action}");
        }
        let bucket = &role[0].actions;
        for action in [
            "s3:ListBucket",
            "s3:ListBucketVersions",
            "s3:ListBucketMultipartUploads",
            "s3:GetBucketVersioning",
        ] {
            assert!(bucket.iter().any(|one| one == action), "{action}");
        }
        for statement in role {
            assert!(statement.actions.iter().all(|one| !one.contains('*')));
        }
    }
    let mut written = everything();
    assert_eq!(allowed(collector, "s3:PutObject"), written);
    // Plans and reports are the collector's, also over HTTP; what a reconciliation left is the job's.
    written.remove(&KeyClass::Plan);
    written.remove(&KeyClass::Report);
    written.remove(&KeyClass::Reconciliation);
    assert_eq!(allowed(service, "s3:PutObject"), written);
    for action in [
        "s3:DeleteObject",
        "s3:DeleteObjectVersion",
        "s3:AbortMultipartUpload",
    ] {
        let own = BTreeSet::from([KeyClass::Probe, KeyClass::Body]);
        assert_eq!(allowed(service, action), own, "{action}");
        let mut collected = own;
        collected.extend([KeyClass::Manifest, KeyClass::Plan, KeyClass::Report]);
        assert_eq!(allowed(collector, action), collected, "{action}");
    }
}

fn template() -> Value {
    yaml("deploy/aws/bucket.yaml")["Resources"].clone()
}

#[test]
fn each_role_may_what_its_work_needs_and_nothing_else() {
    let template = template();
    let of = |role: &str| {
        let policy = &template[role]["Properties"]["Policies"][0]["PolicyDocument"];
        Statement::all(policy, "${Bucket.Arn}/${Prefix}")
    };
    assert_roles(&of("ServiceRole"), &of("CollectorRole"));
}

#[test]
fn minio_gets_the_same_roles() {
    let of = |name: &str| {
        let policy = serde_json::from_str(&text(name)).unwrap();
        Statement::all(&policy, "arn:aws:s3:::spillbox/")
    };
    assert_roles(
        &of("deploy/minio/service-policy.json"),
        &of("deploy/minio/collector-policy.json"),
    );
}

/// What is decided once cannot be written over, whoever asks; a manifest only by the collector.
#[test]
fn conditional_writes_are_required_where_a_key_is_decided_once() {
    let template = template();
    let document = &template["BucketPolicy"]["Properties"]["PolicyDocument"];
    let statements = Statement::all(document, "${Bucket.Arn}/${Prefix}");
    let named = |sid: &str| statements.iter().find(|one| one.sid == sid).unwrap();
    let created_once = named("RecordsAreCreatedOnce");
    let by_collector = named("ManifestsAreOverwrittenByTheCollectorOnly");
    for statement in [created_once, by_collector] {
        assert_eq!(statement.effect, "Deny");
        assert_eq!(statement.actions, ["s3:PutObject"]);
        assert_eq!(statement.condition["Null"]["s3:if-none-match"], "true");
        let of_creation = &statement.condition["Bool"]["s3:ObjectCreationOperation"];
        assert_eq!(of_creation, "true", "an upload's parts carry no condition");
    }
    let exempt = &by_collector.condition["ArnNotEquals"]["aws:PrincipalArn"];
    assert_eq!(exempt, "CollectorRole.Arn");
    for (class, key) in keys() {
        // Bodies may come in parts; probes, attestations and what a reconciliation left are overwritten.
        let is_free = matches!(class, KeyClass::Body | KeyClass::Probe | KeyClass::Attest)
            || key == "v1/gc/reconciliation.json";
        let is_manifest = class == KeyClass::Manifest;
        assert_eq!(created_once.covers(&key), !is_free && !is_manifest, "{key}");
        assert_eq!(by_collector.covers(&key), is_manifest, "{key}");
    }
}

#[test]
fn no_lifecycle_rule_takes_what_only_the_journal_may_give_up() {
    let template = template();
    let bucket = &template["Bucket"]["Properties"];
    assert_eq!(bucket["VersioningConfiguration"]["Status"], "Enabled");
    let block = bucket["PublicAccessBlockConfiguration"]
        .as_object()
        .unwrap();
    assert!(block.len() == 4 && block.values().all(|one| one == true));
    let rules = bucket["LifecycleConfiguration"]["Rules"]
        .as_array()
        .unwrap();
    for rule in rules {
        let prefix = rule["Prefix"].as_str().unwrap();
        let expires = |name: &str| rule.get(name).is_some();
        if expires("ExpirationInDays") || expires("NoncurrentVersionExpiration") {
            let prefix = prefix.strip_prefix("${Prefix}").unwrap();
            for (class, key) in keys() {
                let is_scratch = matches!(class, KeyClass::Probe | KeyClass::Attest);
                assert!(is_scratch || !key.starts_with(prefix), "{prefix}: {key}");
            }
        } else {
            // What `doctor` asks for: for every key, and later than an upload's own end.
            assert_eq!(prefix, "");
            let days = &rule["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"];
            assert!(days.as_u64().unwrap() >= 2);
        }
    }
}

#[test]
fn a_star_is_any_text() {
    for (pattern, key, expected) in [
        ("v1/t/*/j/*", "v1/t/acme/j/x/1", true),
        ("v1/t/*/j/*", "v1/t/acme/k/x/1", false),
        ("v1/t/*/a/*", "v1/t/a/b/x/1", false),
        ("v1/format.json", "v1/format.json", true),
        ("v1/format.json", "v1/format.json2", false),
        ("v1/*", "v2/x", false),
    ] {
        assert_eq!(covers(pattern, key), expected, "{pattern} {key}");
    }
}
