//! Requests held against the contract: what the service accepted must be what the contract allows.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::HeaderMap;
use jsonschema::Validator;
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// A parameter by its operation's template and method, its place (`query`, `header`) and its name.
type ParameterKey = (String, String, String, String);

/// What each operation takes.
#[derive(Debug)]
pub(super) struct Requests {
    parameters: BTreeMap<ParameterKey, (Value, Validator)>,
    /// Operations that take a capability in place of a token.
    capable: BTreeSet<(String, String)>,
    /// The body's schema, and whether there has to be one.
    bodies: BTreeMap<(String, String), (Validator, bool)>,
}

impl Requests {
    pub(super) fn load(document: &Value, compile: &dyn Fn(Value) -> Validator) -> Self {
        let mut requests = Self {
            parameters: BTreeMap::new(),
            capable: BTreeSet::new(),
            bodies: BTreeMap::new(),
        };
        for (template, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let schemes = operation["security"].as_array();
                let mut schemes = schemes.into_iter().flatten();
                if schemes.any(|scheme| !scheme["capability"].is_null()) {
                    requests.capable.insert((template.clone(), method.clone()));
                }
                let listed = operation["parameters"].as_array();
                for parameter in listed.into_iter().flatten() {
                    let parameter = resolve(document, parameter);
                    let word = |name: &str| parameter[name].as_str().unwrap().to_owned();
                    let name = word("name").to_ascii_lowercase();
                    let key = (template.clone(), method.clone(), word("in"), name);
                    let schema = parameter["schema"].clone();
                    let validator = compile(schema.clone());
                    requests.parameters.insert(key, (schema, validator));
                }
                let body = resolve(document, &operation["requestBody"]);
                let schema = &body["content"]["application/json"]["schema"];
                if !schema.is_null() {
                    let key = (template.clone(), method.clone());
                    let is_required = body["required"] == true;
                    let validator = compile(schema.clone());
                    requests.bodies.insert(key, (validator, is_required));
                }
            }
        }
        requests
    }

    pub(super) fn takes_json(&self, template: &str, method: &str) -> bool {
        let key = (template.to_owned(), method.to_owned());
        self.bodies.contains_key(&key)
    }

    /// Holds an accepted request against its operation.
    pub(super) fn judge(
        &self,
        (template, method): (&str, &str),
        query: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) {
        let place = format!("{method} {template}?{query}");
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name), decode(value));
            let operation = (template.to_owned(), method.to_owned());
            if name == "capability" && self.capable.contains(&operation) {
                continue;
            }
            let known = self.parameter((template, method), "query", &name);
            let Some((schema, validator)) = known else {
                panic!("{place}: accepted, but `{name}` is not in the contract");
            };
            fits(schema, validator, &value, &format!("{place}: `{name}`"));
        }
        for (name, value) in headers {
            let known = self.parameter((template, method), "header", name.as_str());
            if let (Some((schema, validator)), Ok(value)) = (known, value.to_str()) {
                fits(schema, validator, value, &format!("{place}: header {name}"));
            }
        }
        let key = (template.to_owned(), method.to_owned());
        if let Some((validator, is_required)) = self.bodies.get(&key)
            && (*is_required || !body.is_empty())
        {
            super::check(validator, body, &place);
        }
    }

    fn parameter(
        &self,
        (template, method): (&str, &str),
        place: &str,
        name: &str,
    ) -> Option<&(Value, Validator)> {
        let words = [template, method, place, name].map(str::to_owned);
        let [template, method, place, name] = words;
        self.parameters.get(&(template, method, place, name))
    }
}

fn resolve<'a>(document: &'a Value, node: &'a Value) -> &'a Value {
    let place = node["$ref"]
        .as_str()
        .and_then(|place| place.strip_prefix('#'));
    place.map_or(node, |pointer| document.pointer(pointer).unwrap())
}

/// A query writes a space as `+` or `%20`.
fn decode(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

/// Reads the text as the type that the schema asks for: the wire has only text.
fn fits(schema: &Value, validator: &Validator, text: &str, place: &str) {
    let value = match schema["type"].as_str() {
        Some("integer" | "number" | "boolean") => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
        }
        Some(_) | None => Value::from(text),
    };
    let errors: Vec<_> = validator
        .iter_errors(&value)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{place} was accepted: {errors:?}");
}
