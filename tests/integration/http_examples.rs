//! Every example of a reply in `openapi.yaml` is a real one: the request that it answers is sent, and
//! the reply must be the example, but for ids and times.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};

use spillbox::artifact::manifest::TombstoneReason;
use spillbox::gc::policy::PolicySettings;

use crate::http_leases::post;
use crate::support::app::{Backend, Reply, Saved, TestApp, request, send_to};
use crate::support::contract::Contract;
use crate::support::owner::{Script, memory_at, published, says};

/// What the examples are of: a service that has seen one small save, and one build log.
struct Stage {
    app: TestApp,
    /// `test`, saved as the example of the parameters says.
    small: Saved,
    /// A log of cargo with two errors.
    build: Saved,
}

const SMALL: &str = "tool=grep&call_id=c-7&name=grep.txt&completeness=complete";

impl Stage {
    async fn set() -> Self {
        let app = TestApp::new(Backend::Memory).await;
        let plain = [("content-type", "text/plain")];
        let saved = app.save("s-42", SMALL, &plain, "test").await;
        let small = Saved::of(&saved);
        let log = build_log();
        let saved = app.save("s-43", "tool=cargo", &plain, log).await;
        let build = Saved::of(&saved);
        Self { app, small, build }
    }

    /// Sends the request whose reply an example shows.
    async fn exchange(&self, operation: &str, status: u16) -> Option<Reply> {
        let app = &self.app;
        let plain = [("content-type", "text/plain")];
        Some(match (operation, status) {
            ("saveArtifact" | "putArtifact", 200) => app.save("s-42", SMALL, &plain, "test").await,
            ("saveArtifact" | "putArtifact", 201) => {
                let fresh = SMALL.replace("c-7", &format!("c-7-{operation}"));
                app.save("s-42", &fresh, &plain, "test").await
            }
            ("decideResult", 200) => {
                let path = "/v1/sessions/s-42/results?tool=grep&call_id=c-8";
                let line = "src/main.rs:1:fn main() {\n".into();
                app.send(request(Method::POST, path, &plain, line)).await
            }
            ("decideTurn", 200) => {
                app.bury(&self.small, TombstoneReason::Expired).await;
                let mut turn = shown_request("decideTurn");
                turn["results"][1]["artifact_id"] = self.small.receipt["artifact_id"].clone();
                let path = "/v1/sessions/s-42/turns/turn-12";
                let json = [("content-type", "application/json")];
                let body = turn.to_string().into();
                app.send(request(Method::POST, path, &json, body)).await
            }
            ("listArtifacts", 200) => app.get("/v1/sessions/s-42/artifacts").await,
            ("readUsage", 200) => {
                app.get(&self.small.path).await;
                app.get("/v1/sessions/s-42/usage").await
            }
            ("readLines", 200) => app.get(&self.build.at("/lines?offset=4000&limit=2")).await,
            ("searchArtifact", 200) => {
                let search = "/grep?pattern=error&context=1&limit=1";
                app.get(&self.build.at(search)).await
            }
            ("readOutline", 200) => app.get(&self.build.at("/outline")).await,
            ("referenceArtifact", 200) => app.get(&self.small.at("/reference")).await,
            ("statArtifact", 200) => app.get(&self.small.at("/stat")).await,
            ("prepareLease", 201) => prepared(app, &self.small).await,
            ("commitLease", 200) => {
                prepared(app, &self.small).await;
                let path = "/v1/sessions/s-42/leases/tx-7/commit";
                app.send(post(path, &json!({"owner_generation": "17"})))
                    .await
            }
            ("reconcileLease", 200) => {
                prepared(app, &self.small).await;
                let receipt = &self.small.receipt;
                let digest = receipt["digest"].as_str().unwrap().parse().unwrap();
                let shown = published(receipt["source_id"].as_str().unwrap(), &digest);
                let owner = Script::new(vec![says("\"17\"", shown)], vec![]);
                let served = owner.serve().await;
                let router = app.with_owners(memory_at(&served.url));
                let path = "/v1/sessions/s-42/leases/tx-7/reconcile";
                send_to(&router, post(path, &json!({}))).await
            }
            ("readJournal" | "verifyJournal", 200) => {
                prepared(app, &self.small).await;
                let path = "/v1/sessions/s-42/leases/tx-7/commit";
                app.send(post(path, &json!({}))).await;
                let journal = "/v1/sessions/s-42/journal";
                if operation == "readJournal" {
                    app.get(journal).await
                } else {
                    app.send(post(&format!("{journal}/verify"), &json!({})))
                        .await
                }
            }
            ("planCollection", 201) => {
                let asked = shown_request("planCollection");
                app.send(post("/v1/gc/plans", &asked)).await
            }
            ("readCollectionReport", 200) => {
                app.state.collect_by(PolicySettings {
                    settle: Duration::ZERO,
                    is_one_host: true,
                    ..PolicySettings::default()
                });
                app.clock.advance(jiff::SignedDuration::from_hours(25));
                let plan = app.send(post("/v1/gc/plans", &json!({}))).await.json();
                app.clock.advance(jiff::SignedDuration::from_hours(1));
                let id = plan["plan_id"].as_str().unwrap();
                let apply = format!("/v1/gc/plans/{id}/apply");
                let digest = json!({"sha256": plan["sha256"]});
                let applied = app.send(post(&apply, &digest)).await;
                assert!(applied.status.is_success(), "{}", applied.text());
                app.get(&format!("/v1/gc/reports/{id}?limit=1")).await
            }
            ("readBytes", 416) => {
                let range = [("range", "bytes=4-")];
                app.ask(Method::GET, &self.small.path, &range).await
            }
            _ => return None,
        })
    }
}

/// Claims the small save as the example of the contract does.
async fn prepared(app: &TestApp, small: &Saved) -> Reply {
    let claim = json!({
        "transaction_id": "tx-7",
        "source_id": small.receipt["source_id"],
        "content_sha256": small.receipt["digest"],
        "reference_count": 2,
        "retain_until": "2027-01-31T00:00:00Z",
        "owner": "memory",
    });
    app.send(post("/v1/sessions/s-42/leases", &claim)).await
}

fn build_log() -> String {
    let mut log: String = (0..4_000)
        .map(|n| format!("   Compiling unit-{n:04} v0.1.0\n"))
        .collect();
    log.push_str("error[E0308]: mismatched types\n --> src/main.rs:7:5\n");
    log.push_str(&"   |\n".repeat(50));
    log.push_str("error: could not compile `app`\n");
    log.push_str("test result: FAILED. 3 passed; 1 failed; 0 ignored\n");
    log
}

/// Ids, times and hosts differ from run to run; everything else of an example must come out.
fn settled(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(settled_text(text)),
        Value::Array(items) => items.iter().map(settled).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, member)| match name.as_str() {
                // It holds a check of the artifact that it belongs to.
                // Records hold nonces.
                "sha256" | "plan_sha256" => (name.clone(), Value::from("HASH")),
                "next_cursor" => (name.clone(), Value::from("CURSOR")),
                _ => (name.clone(), settled(member)),
            });
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn settled_text(text: &str) -> String {
    let is_id = |word: &str| {
        word.len() == 26
            && word
                .bytes()
                .all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
    };
    let is_time = |word: &str| word.parse::<jiff::Timestamp>().is_ok();
    let is_uuid = |word: &str| uuid::Uuid::try_parse(word).is_ok();
    if is_time(text) {
        return "TIME".to_owned();
    }
    if is_uuid(text) {
        return "UUID".to_owned();
    }
    let text = text
        .replace("http://127.0.0.1:8787", "URL")
        .replace(crate::support::app::PUBLIC_URL, "URL");
    let mut settled = String::new();
    for piece in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let (word, end) = match piece.char_indices().next_back() {
            Some((at, last)) if !last.is_ascii_alphanumeric() => piece.split_at(at),
            _ => (piece, ""),
        };
        settled.push_str(if is_id(word) { "ID" } else { word });
        settled.push_str(end);
    }
    settled
}

/// The example of an operation's JSON request.
fn shown_request(operation: &str) -> Value {
    let paths = Contract::shared().document["paths"].as_object().unwrap();
    let operations = paths
        .values()
        .flat_map(|path| path.as_object().unwrap().values());
    let mut found = operations.filter(|known| known["operationId"] == operation);
    let body = &found.next().unwrap()["requestBody"];
    body["content"]["application/json"]["example"].clone()
}

/// Every example of a reply, with its operation and status.
fn examples() -> Vec<(String, u16, Value)> {
    let document = &Contract::shared().document;
    let mut examples = Vec::new();
    for operations in document["paths"].as_object().unwrap().values() {
        for operation in operations.as_object().unwrap().values() {
            let name = operation["operationId"].as_str();
            for (status, response) in operation["responses"].as_object().into_iter().flatten() {
                let place = response["$ref"].as_str();
                let response = place.map_or(response, |place| {
                    document.pointer(place.strip_prefix('#').unwrap()).unwrap()
                });
                for media in response["content"]
                    .as_object()
                    .into_iter()
                    .flat_map(|m| m.values())
                {
                    let example = &media["example"];
                    // The examples of shared problems are held against the catalogue of codes.
                    if !example.is_null() && place.is_none() {
                        let status = status.parse().unwrap();
                        examples.push((name.unwrap().to_owned(), status, example.clone()));
                    }
                }
            }
        }
    }
    examples
}

#[tokio::test]
async fn every_example_of_a_reply_is_what_the_service_answers() {
    let examples = examples();
    assert!(examples.len() >= 8, "{}", examples.len());
    let mut wrong = Vec::new();
    for (operation, status, example) in examples {
        // Each on a stage of its own: what one leaves behind is not part of the next.
        let Some(reply) = Stage::set().await.exchange(&operation, status).await else {
            wrong.push(format!(
                "{operation} {status}: no exchange for this example"
            ));
            continue;
        };
        assert_eq!(
            reply.status.as_u16(),
            status,
            "{operation}: {}",
            reply.text()
        );
        let (real, shown) = (settled(&reply.json()), settled(&example));
        if real != shown {
            wrong.push(format!(
                "{operation} {status}:\nanswers {:#}\nshown {shown:#}",
                reply.json()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
