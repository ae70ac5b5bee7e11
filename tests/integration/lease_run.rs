//! `spillbox reconcile`: the job over the leases of one session, or of all.

use std::time::Duration;

use bytes::Bytes;
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};
use spillbox::artifact::library::Library;
use spillbox::artifact::save::Saved;
use spillbox::ids::{SessionId, Tenant};
use spillbox::lease::leases::{LeaseOptions, Leases, Owners};
use spillbox::lease::owner::Status;
use spillbox::lease::reconcile::run::{Line, RunRequest};
use spillbox::lease::reconcile::summary::Summary;
use spillbox::lease::walk::JournalScope;
use spillbox::store::keys::Key;
use spillbox::store::{DeleteFence, ListRequest, PutMode, paging};

use crate::support::app::Backend;
use crate::support::collection::World;
use crate::support::leases::{claim, txn};
use crate::support::library::{body, request};
use crate::support::owner::{Said, Script, memory_at, published, reference, says};
use crate::support::program::{Place, bare, text, write};

fn session(name: &str) -> SessionId {
    name.parse().unwrap()
}

async fn save(library: &Library, tenant: &Tenant, name: &str) -> Saved {
    let mut request = request(name, None);
    request.tenant = tenant.clone();
    let bytes = Bytes::from_static(b"what was found");
    library.save(request, body(&bytes)).await.unwrap()
}

fn leases(world: &World, owners: Owners) -> Leases {
    let options = LeaseOptions {
        is_read_only: false,
        owners,
    };
    let journals = world.journals_over(&world.store);
    Leases::new(world.library(), journals, options)
}

async fn prepare(leases: &Leases, tenant: &Tenant, name: &str, saved: &Saved) {
    let mut claim = claim(name, saved);
    claim.owner = Some("memory".parse().unwrap());
    let session = &saved.manifest.head.session;
    leases.prepare(tenant, session, claim).await.unwrap();
}

async fn ran(leases: &Leases, request: &RunRequest) -> (Vec<Line>, Summary) {
    let mut lines = Vec::new();
    let summary = leases.reconcile_all(request, |line| lines.push(line)).await;
    (lines, summary.unwrap())
}

async fn delete(world: &World, is_wanted: impl Fn(&str) -> bool) {
    let mut pages = paging::list(&*world.store, ListRequest::default());
    while let Some(page) = pages.next_page().await.unwrap() {
        for listed in page.objects.iter().filter(|listed| is_wanted(&listed.key)) {
            let key = Key::parse(listed.key.clone()).unwrap();
            world.store.delete(&key, DeleteFence::None).await.unwrap();
        }
    }
}

fn shown(lines: &[Line]) -> Vec<Value> {
    let mut shown: Vec<_> = lines
        .iter()
        .map(|line| {
            let name = line
                .lease
                .as_ref()
                .map(|lease| lease.transaction_id.as_str());
            let status = line.finding.as_ref().map(|finding| finding.status.as_str());
            json!([line.tenant, line.session, name, status])
        })
        .collect();
    shown.sort_by_key(Value::to_string);
    shown
}

#[rstest]
#[tokio::test]
async fn a_run_sees_every_lease_of_every_tenant_and_leaves_nothing(
    #[values(Backend::Memory, Backend::Local, Backend::S3Versioned)] backend: Backend,
) {
    let world = World::new(backend);
    let owner = reference(None).await;
    let leases = leases(&world, memory_at(&owner.url));
    let library = world.library();
    let (one, other) = (Tenant::default(), "other".parse().unwrap());
    for (tenant, name) in [(&one, "a"), (&one, "b/ü"), (&other, "a")] {
        let saved = save(&library, tenant, name).await;
        let txn_name = format!("{tenant}-{name}");
        prepare(&leases, tenant, &txn_name, &saved).await;
    }
    // One that is committed already, and a hold: neither is pending.
    let saved = save(&library, &one, "c").await;
    prepare(&leases, &one, "c", &saved).await;
    let committed = leases.commit(&one, &session("c"), &txn("c"), None).await;
    committed.unwrap();
    let hold = txn("hold:n:0190a5d2-0000-7000-8000-000000000000");
    let artifact = saved.manifest.head.artifact_ref();
    leases.hold(&one, &artifact, hold, None).await.unwrap();

    let whole = RunRequest {
        audits: 0,
        ..RunRequest::new(JournalScope::All)
    };
    let (lines, summary) = ran(&leases, &whole).await;
    assert_eq!(
        shown(&lines),
        [
            json!(["default", "a", "default-a", "aborted"]),
            json!(["default", "b/ü", "default-b/ü", "aborted"]),
            json!(["other", "a", "other-a", "aborted"]),
        ]
    );
    assert!(summary.is_clean(), "{summary:?}");
    assert_eq!((summary.journals, summary.leases), (4, 5));
    assert_eq!(summary.of(Status::Skipped), 1);
    // What it left is kept for the metrics of every replica.
    let kept = leases.last_reconciliation().await.unwrap().unwrap();
    assert_eq!(kept.summary, summary);
    // Again: everything is decided.
    let (lines, summary) = ran(&leases, &whole).await;
    assert!(lines.is_empty() && summary.is_clean(), "{lines:?}");
}

#[tokio::test]
async fn a_run_is_bounded_and_says_so() {
    let world = World::new(Backend::Memory);
    let script = Script::new(vec![Said::Plainly(503, "", String::new())], vec![]);
    let served = script.serve().await;
    let leases = leases(&world, memory_at(&served.url));
    let tenant = Tenant::default();
    let saved = save(&world.library(), &tenant, "s").await;
    for n in 0..6 {
        // By a replica that has just looked at the store's clock.
        let owner = self::leases(&world, Owners::default());
        prepare(&owner, &tenant, &format!("t{n}"), &saved).await;
        world.clock.advance(SignedDuration::from_mins(10));
    }
    let all = RunRequest::new(JournalScope::Session {
        tenant: tenant.clone(),
        session: session("s"),
    });
    let (lines, summary) = ran(&leases, &all).await;
    assert_eq!(
        (lines.len(), summary.pending, summary.is_cut),
        (6, 6, false)
    );
    assert!(!summary.is_clean());
    // The oldest first.
    let few = RunRequest {
        limit: 2,
        ..all.clone()
    };
    let (lines, summary) = ran(&leases, &few).await;
    let names: Vec<_> = lines
        .iter()
        .map(|line| {
            line.lease
                .as_ref()
                .unwrap()
                .transaction_id
                .as_str()
                .to_owned()
        })
        .collect();
    assert_eq!(
        (names, summary.is_cut),
        (vec!["t0".to_owned(), "t1".to_owned()], true)
    );
    let none = RunRequest {
        deadline: Duration::ZERO,
        ..all.clone()
    };
    let (lines, summary) = ran(&leases, &none).await;
    assert!(lines.is_empty() && summary.is_cut);
    // What was claimed a short time ago is not asked about, and is pending all the same.
    script.asked.lock().unwrap().clear();
    let old = RunRequest {
        stuck_for: Some(Duration::from_secs(45 * 60)),
        ..all.clone()
    };
    let (lines, summary) = ran(&leases, &old).await;
    assert_eq!((lines.len(), summary.pending), (2, 6));
    assert_eq!(script.asked.lock().unwrap().len(), 2);
    let others = RunRequest {
        owner: Some("somebody".parse().unwrap()),
        ..all
    };
    let (lines, summary) = ran(&leases, &others).await;
    assert!(lines.is_empty() && summary.is_clean());
    // A run over a part says nothing about the whole.
    assert_eq!(leases.last_reconciliation().await.unwrap(), None);
}

#[rstest]
#[tokio::test]
async fn leases_of_what_is_gone_are_told_also_where_nothing_else_is_left(
    #[values(Backend::Memory, Backend::Local, Backend::S3)] backend: Backend,
) {
    let world = World::new(backend);
    let owner = reference(None).await;
    let leases = leases(&world, memory_at(&owner.url));
    let tenant = Tenant::default();
    let saved = save(&world.library(), &tenant, "s").await;
    prepare(&leases, &tenant, "t", &saved).await;
    let (name, session) = (txn("t"), session("s"));
    let committed = leases.commit(&tenant, &session, &name, None).await;
    committed.unwrap();
    delete(&world, |key| !key.contains("/j/") && key.contains("/t/")).await;
    let whole = RunRequest::new(JournalScope::All);
    let fresh = self::leases(&world, memory_at(&owner.url));
    let looked = RunRequest { audits: 0, ..whole };
    let (lines, summary) = ran(&fresh, &looked).await;
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].session.as_ref(), Some(&session));
    assert_eq!(
        json!(lines[0].missing_referenced),
        json!(["manifest", "body"])
    );
    assert!(summary.has_alarm() && !summary.is_clean());
    // A journal that cannot be read is a line of its own, and the run goes on.
    let artifact = saved.manifest.head.artifact_ref();
    let first = world.keys.journal_record(&tenant, &artifact.session_key, 0);
    let payload = Bytes::from_static(b"{}").into();
    world
        .store
        .put(&first, payload, PutMode::Overwrite)
        .await
        .unwrap();
    let broken = self::leases(&world, memory_at(&owner.url));
    let (lines, summary) = ran(&broken, &looked).await;
    assert_eq!((lines.len(), summary.unreadable), (1, 1), "{lines:?}");
    assert!(lines[0].finding.is_none() && lines[0].error.is_some());
}

#[tokio::test]
async fn some_committed_leases_are_asked_about_in_each_run() {
    let world = World::new(Backend::Memory);
    let tenant = Tenant::default();
    let saved = save(&world.library(), &tenant, "s").await;
    let head = &saved.manifest.head;
    let shown = published(&head.source_id(), &head.body.sha256);
    let script = Script::new(vec![says("\"1\"", shown)], vec![]);
    let served = script.serve().await;
    let leases = leases(&world, memory_at(&served.url));
    for n in 0..5 {
        let name = format!("t{n}");
        prepare(&leases, &tenant, &name, &saved).await;
        let committed = leases
            .commit(&tenant, &head.session, &txn(&name), None)
            .await;
        committed.unwrap();
    }
    let some = RunRequest {
        audits: 2,
        ..RunRequest::new(JournalScope::Tenant(tenant))
    };
    let (lines, summary) = ran(&leases, &some).await;
    assert_eq!((lines.len(), summary.leases), (2, 5));
    assert_eq!(summary.of(Status::AlreadyCommitted), 5);
    assert_eq!(script.asked.lock().unwrap().len(), 2);
}

/// The program: settings name the owner, the exit status says whether anything is left.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_prints_a_line_for_each_lease() {
    let owner = reference(None).await;
    let place = tokio::task::spawn_blocking(Place::service).await.unwrap();
    let claim = |name: &str, receipt: &Value, owner: &str| {
        json!({
            "transaction_id": name, "source_id": receipt["source_id"], "content_sha256": receipt["digest"],
            "reference_count": 1, "retain_until": null, "owner": owner,
        })
    };
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = place.url().to_owned();
    let saved = client
        .post(format!("{url}/v1/sessions/run-7/artifacts"))
        .body("what was found");
    let receipt: Value = saved.send().await.unwrap().json().await.unwrap();
    let prepare = async |name: &str, owner: &str| {
        let path = format!("{url}/v1/sessions/run-7/leases");
        let reply = client
            .post(path)
            .json(&claim(name, &receipt, owner))
            .send()
            .await;
        assert_eq!(reply.unwrap().status(), 201);
    };
    prepare("tx-1", "memory").await;
    let settings = format!(
        "[owners.memory]\nmode = \"owner_fenced\"\nbase_url = \"{}\"\nallow_private = true\n",
        owner.url
    );
    write(&place.file("owners.toml"), settings.as_bytes());
    let store = place.store_url();
    let config = place.file("owners.toml").display().to_string();
    let run = async |more: &[&str]| {
        let mut words = vec!["reconcile", "--store", &store, "--config", &config];
        words.extend(more);
        let mut command = bare(&words);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (exit, told, sums) = run(&[]).await;
    assert_eq!(exit, Some(0), "{sums}");
    assert_eq!(
        told,
        "default/run-7 tx-1 memory aborted owner_sealed_absence\n"
    );
    assert_eq!(sums, "1 leases of 1 journals: 1 aborted\n");
    // An owner that nobody configured decides nothing.
    prepare("tx-2", "somebody").await;
    let (exit, told, _) = run(&["--all", "--json"]).await;
    assert_eq!(exit, Some(3));
    let lines: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["status"], "pending_unknown");
    assert_eq!(lines[0]["reason"], "owner_not_configured");
    assert_eq!(lines[0]["lease"]["transaction_id"], "tx-2");
    assert_eq!(lines[1]["summary"]["pending"], 1);
    for (wrong, exit) in [
        (&["--all", "--session", "s"][..], 2),
        (&["--limit", "x"], 2),
        (&["--owner", "UPPER"], 2),
        (&["--store", "s3://x"], 2),
    ] {
        assert_eq!(run(wrong).await.0, Some(exit), "{wrong:?}");
    }
}
