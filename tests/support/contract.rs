//! `openapi.yaml` as a judge: every reply that a test sees is held against it, and every request that
//! was accepted.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use axum::http::HeaderMap;
use jsonschema::Validator;
use serde_json::{Value, json};

use self::requests::Requests;

mod requests;

/// The document, and a validator for each JSON reply that it describes.
#[derive(Debug)]
pub(crate) struct Contract {
    pub(crate) document: Value,
    validators: BTreeMap<(String, String, String), Validator>,
    problem: Validator,
    requests: Requests,
}

impl Contract {
    pub(crate) fn shared() -> &'static Self {
        static CONTRACT: OnceLock<Contract> = OnceLock::new();
        CONTRACT.get_or_init(Self::load)
    }

    fn load() -> Self {
        let text = include_str!("../../openapi.yaml");
        let document: Value = serde_saphyr::from_str(text).expect("the contract is YAML");
        let mut components = document["components"].clone();
        close_objects(&mut components["schemas"]);
        let compile = |schema: Value| {
            let mut schema = schema;
            schema["components"] = components.clone();
            jsonschema::validator_for(&schema).expect("a valid schema")
        };
        let mut validators = BTreeMap::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let Some(responses) = operation["responses"].as_object() else {
                    continue;
                };
                for (status, response) in responses {
                    let schema = &response["content"]["application/json"]["schema"];
                    if !schema.is_null() {
                        let key = (path.clone(), method.clone(), status.clone());
                        validators.insert(key, compile(schema.clone()));
                    }
                }
            }
        }
        let problem = compile(json!({"$ref": "#/components/schemas/Problem"}));
        let requests = Requests::load(&document, &compile);
        Self {
            document,
            validators,
            problem,
            requests,
        }
    }

    /// Whether the operation's request is JSON, which is then part of the contract.
    pub(crate) fn takes_json(&self, method: &str, path: &str) -> bool {
        let method = method.to_ascii_lowercase();
        self.template(path)
            .is_some_and(|template| self.requests.takes_json(template, &method))
    }

    /// Holds a request that was accepted against the document.
    pub(crate) fn judge_accepted(
        &self,
        method: &str,
        (path, query): (&str, &str),
        headers: &HeaderMap,
        body: &[u8],
    ) {
        let method = method.to_ascii_lowercase();
        if let Some(template) = self.template(path) {
            // HEAD is answered wherever GET is.
            let operations = &self.document["paths"][template];
            let method = match method.as_str() {
                "head" if operations["head"].is_null() => "get",
                method => method,
            };
            self.requests
                .judge((template, method), query, headers, body);
        }
    }

    /// Returns the path of the document that a request's path belongs to.
    pub(crate) fn template(&self, path: &str) -> Option<&str> {
        let segments: Vec<_> = path.split('/').collect();
        let paths = self.document["paths"].as_object().unwrap();
        paths.keys().map(String::as_str).find(|template| {
            let template: Vec<_> = template.split('/').collect();
            let fits = |(ours, theirs): (&&str, &&str)| ours == theirs || ours.starts_with('{');
            template.len() == segments.len() && template.iter().zip(&segments).all(fits)
        })
    }

    /// Holds a reply against the document: its status is announced, and its JSON fits.
    pub(crate) fn judge(&self, method: &str, path: &str, status: u16, kind: &str, body: &[u8]) {
        let method = method.to_ascii_lowercase();
        let place = format!("{method} {path}: {status}");
        // `/mcp` answers some errors in the form of its own protocol, and says so in the contract.
        let key = |template: &str| (template.to_owned(), method.clone(), status.to_string());
        let has_own_form = kind == "application/json"
            && self
                .template(path)
                .is_some_and(|template| self.validators.contains_key(&key(template)));
        if status >= 400 && !has_own_form {
            assert_eq!(kind, "application/problem+json", "{place}");
            if method != "head" {
                check(&self.problem, body, &place);
            }
        }
        let operation = self
            .template(path)
            .map(|template| (template, &self.document["paths"][template][&method]))
            .filter(|(_, operation)| !operation.is_null());
        let Some((template, operation)) = operation else {
            // HEAD is answered wherever GET is; a foreign host name and an endless path are refused
            // everywhere.
            assert!(
                matches!(status, 404 | 405 | 414 | 421) || method == "head",
                "{place}"
            );
            return;
        };
        let status = status.to_string();
        assert!(
            !operation["responses"][&status].is_null(),
            "{place} is not in the contract"
        );
        if kind == "application/json" && method != "head" {
            let key = (template.to_owned(), method, status);
            let validator = self.validators.get(&key);
            check(
                validator.expect("a schema for every JSON reply"),
                body,
                &place,
            );
        }
    }
}

/// Members that the contract does not know are allowed to clients, not to us.
fn close_objects(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        if object.get("properties").is_some_and(Value::is_object)
            && object.get("type") == Some(&json!("object"))
        {
            object.insert("additionalProperties".to_owned(), json!(false));
        }
        object.values_mut().for_each(close_objects);
    }
}

fn check(validator: &Validator, body: &[u8], place: &str) {
    let value: Value = serde_json::from_slice(body).expect("a JSON reply");
    let errors: Vec<_> = validator
        .iter_errors(&value)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{place}: {errors:?}\n{value:#}");
}
