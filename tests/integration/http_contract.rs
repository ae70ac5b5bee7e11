//! `openapi.yaml` and the router say the same.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use serde_json::{Value, json};
use spillbox::error::ErrorCode;
use spillbox::http::app::route_table;
use spillbox::http::route::Guard;

use crate::support::app::{Backend, TestApp};
use crate::support::contract::Contract;

const METHODS: [Method; 5] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::PATCH,
];

fn document() -> &'static Value {
    &Contract::shared().document
}

/// No plan of any test.
const PLAN: &str = "019ad0c4-7d5e-7c3b-8a4f-0123456789ab";

/// A path of the template with something in its place holders.
fn concrete(template: &str) -> String {
    template
        .replace("{session}", "s")
        .replace("{turn}", "t")
        .replace("{txn}", "t")
        .replace("{id}", PLAN)
        .replace("{locator}", &format!("{:026}.{:026}", 0, 0))
}

#[test]
fn every_path_has_a_route_and_every_route_a_path() {
    let routed: BTreeSet<_> = route_table().into_iter().map(|(path, _)| path).collect();
    let described = document()["paths"].as_object().unwrap();
    let described: BTreeSet<_> = described.keys().map(String::as_str).collect();
    assert_eq!(routed, described);
}

#[test]
fn each_operation_names_the_scope_that_its_route_asks_for() {
    for (template, methods) in route_table() {
        for (method, guard) in methods {
            let name = method.as_str().to_ascii_lowercase();
            let stated = &document()["paths"][template][&name]["security"];
            let needed = match guard {
                Guard::Public => json!([]),
                Guard::Needs(operation) if operation.reads_an_artifact() => {
                    json!([{"bearerToken": [operation.scope().as_str()]}, {"capability": []}, {}])
                }
                Guard::Needs(operation) => {
                    json!([{"bearerToken": [operation.scope().as_str()]}, {}])
                }
            };
            assert_eq!(*stated, needed, "{method} {template}");
        }
    }
}

#[tokio::test]
async fn every_operation_is_answered_and_every_other_method_refused() {
    let app = TestApp::new(Backend::Memory).await;
    for (template, _) in route_table() {
        for method in METHODS {
            let reply = app.ask(method.clone(), &concrete(template), &[]).await;
            let name = method.as_str().to_ascii_lowercase();
            let is_described = !document()["paths"][template][&name].is_null();
            let is_refused = reply.status == ErrorCode::MethodNotAllowed.status();
            assert_eq!(is_described, !is_refused, "{method} {template}");
        }
    }
}

#[tokio::test]
async fn the_query_parameters_are_those_of_the_contract() {
    let app = TestApp::new(Backend::Memory).await;
    let parameters = &document()["components"]["parameters"];
    let mut asked = 0;
    for (template, operations) in document()["paths"].as_object().unwrap() {
        for method in METHODS {
            let name = method.as_str().to_ascii_lowercase();
            let operation = &operations[&name];
            if operation.is_null() || operation["tags"][0] == "service" {
                continue;
            }
            let described: BTreeSet<_> = operation["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .map(|parameter| match parameter["$ref"].as_str() {
                    Some(place) => &parameters[place.rsplit('/').next().unwrap()],
                    None => parameter,
                })
                .filter(|parameter| parameter["in"] == "query")
                .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
                .collect();
            let path = format!("{}?no_such_parameter=1", concrete(template));
            let reply = app.ask(method.clone(), &path, &[]).await;
            let detail = reply.is_problem(ErrorCode::InvalidParameter)["detail"].clone();
            let detail = detail.as_str().unwrap();
            let taken: BTreeSet<_> = match detail.split_once("this path takes ").unwrap().1 {
                "none" => BTreeSet::new(),
                names => names.split(", ").map(str::to_owned).collect(),
            };
            assert_eq!(taken, described, "{method} {template}");
            asked += 1;
        }
    }
    assert_eq!(asked, 35);
}

#[test]
fn the_error_codes_are_those_of_the_service() {
    let listed = &document()["components"]["schemas"]["ErrorCode"]["enum"];
    let listed: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|code| code.as_str().unwrap())
        .collect();
    let ours: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(listed, ours);
}

#[test]
fn every_announced_status_is_the_status_of_its_codes() {
    let responses = document()["components"]["responses"].as_object().unwrap();
    let mut statuses: BTreeMap<&str, BTreeSet<u16>> = BTreeMap::new();
    for operations in document()["paths"].as_object().unwrap().values() {
        for operation in operations.as_object().unwrap().values() {
            let announced = operation["responses"].as_object();
            for (status, response) in announced.into_iter().flatten() {
                if let Some(place) = response["$ref"].as_str() {
                    let name = place.rsplit('/').next().unwrap();
                    let status = status.parse().unwrap();
                    statuses.entry(name).or_default().insert(status);
                }
            }
        }
    }
    for (name, response) in responses {
        let text = response["description"].as_str().unwrap();
        let named: BTreeSet<_> = ErrorCode::ALL
            .iter()
            .filter(|code| text.contains(&format!("`{code}`")))
            .map(|code| code.status().as_u16())
            .collect();
        assert_eq!(Some(&named), statuses.get(name.as_str()), "{name}");
    }
}

#[test]
fn the_examples_fit_their_schemas() {
    let mut checked = 0;
    visit(document(), &mut |node| {
        let Some(content) = node.get("content").and_then(Value::as_object) else {
            return;
        };
        for media in content.values() {
            let (schema, example) = (&media["schema"], &media["example"]);
            if example.is_null() {
                continue;
            }
            let mut schema = schema.clone();
            schema["components"] = document()["components"].clone();
            let errors: Vec<_> = jsonschema::validator_for(&schema)
                .unwrap()
                .iter_errors(example)
                .map(|error| error.to_string())
                .collect();
            assert!(errors.is_empty(), "{errors:?}");
            checked += 1;
        }
    });
    assert!(checked >= 6, "{checked}");
}

#[test]
fn every_reference_leads_somewhere() {
    let mut seen = 0;
    visit(document(), &mut |node| {
        if let Some(place) = node.get("$ref").and_then(Value::as_str) {
            let pointer = place.strip_prefix('#').unwrap();
            assert!(document().pointer(pointer).is_some(), "{place}");
            seen += 1;
        }
    });
    assert!(seen > 50, "{seen}");
}

fn visit(node: &Value, seen: &mut impl FnMut(&Value)) {
    seen(node);
    match node {
        Value::Array(items) => items.iter().for_each(|item| visit(item, seen)),
        Value::Object(members) => members.values().for_each(|item| visit(item, seen)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn the_service_hands_out_the_contract() {
    let app = TestApp::new(Backend::Memory).await;
    let reply = app.get("/openapi.yaml").await;
    assert_eq!(reply.header("content-type"), "application/yaml");
    assert_eq!(reply.text(), include_str!("../../openapi.yaml"));
}

fn accepted(method: &str, path: &str, query: &str) -> bool {
    let judged = std::panic::catch_unwind(|| {
        let headers = axum::http::HeaderMap::new();
        Contract::shared().judge_accepted(method, (path, query), &headers, b"");
    });
    judged.is_ok()
}

#[test]
fn an_accepted_request_outside_the_contract_fails_its_test() {
    assert!(accepted("GET", "/a/x/lines", "offset=10&limit=5"));
    assert!(accepted("HEAD", "/a/x/lines", "offset=10"));
    for (path, query) in [
        ("/a/x/lines", "limit=0"),
        ("/a/x/lines", "limit=many"),
        ("/a/x/lines", "no_such_parameter=1"),
        ("/a/x/grep", "pattern=x&mode=glob"),
        ("/v1/sessions/s/artifacts", "limit=1001"),
    ] {
        assert!(!accepted("GET", path, query), "{path}?{query}");
    }
}
