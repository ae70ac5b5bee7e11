//! Canonical JSON: one value, one sequence of bytes (the subset of RFC 8785 that has no fractions).
//!
//! Keys are sorted at every depth, no white space, non-ASCII text raw, numbers are integers of at most
//! 2^53 - 1, so that every JSON reader in any language sees the same value. The encoder sorts by itself:
//! a dependency that switched `serde_json` to insertion order would not change one stored byte.

use serde_json::Value;

/// The largest integer that every JSON reader keeps exactly.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;

/// The value or the bytes are outside the canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// A number is a fraction, negative, or 2^53 and more.
    #[error("`{0}` is not an integer between 0 and 2^53 - 1")]
    Number(String),
    /// The bytes are not JSON.
    #[error("not JSON: {0}")]
    Syntax(String),
    /// The bytes are JSON, but another spelling of it: white space, key order, escapes, a key twice.
    #[error("JSON, but not in its canonical form")]
    Spelling,
}

/// Returns the canonical bytes of `value`.
///
/// # Errors
/// [`CanonicalError::Number`].
pub fn encode(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    let mut bytes = Vec::new();
    write(value, &mut bytes)?;
    Ok(bytes)
}

/// Reads canonical bytes.
///
/// # Errors
/// See [`CanonicalError`]; bytes that encode the same value in another way are refused.
pub fn decode(bytes: &[u8]) -> Result<Value, CanonicalError> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| CanonicalError::Syntax(error.to_string()))?;
    if encode(&value)? != bytes {
        return Err(CanonicalError::Spelling);
    }
    Ok(value)
}

fn write(value: &Value, bytes: &mut Vec<u8>) -> Result<(), CanonicalError> {
    match value {
        Value::Null => bytes.extend_from_slice(b"null"),
        Value::Bool(true) => bytes.extend_from_slice(b"true"),
        Value::Bool(false) => bytes.extend_from_slice(b"false"),
        Value::Number(number) => match number.as_u64() {
            Some(integer) if integer <= MAX_INTEGER => {
                bytes.extend_from_slice(integer.to_string().as_bytes());
            }
            _ => return Err(CanonicalError::Number(number.to_string())),
        },
        Value::String(text) => write_text(text, bytes),
        Value::Array(items) => {
            bytes.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    bytes.push(b',');
                }
                write(item, bytes)?;
            }
            bytes.push(b']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            bytes.push(b'{');
            for (index, (name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    bytes.push(b',');
                }
                write_text(name, bytes);
                bytes.push(b':');
                write(member, bytes)?;
            }
            bytes.push(b'}');
        }
    }
    Ok(())
}

fn write_text(text: &str, bytes: &mut Vec<u8>) {
    serde_json::to_writer(bytes, text).expect("a string written to memory");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_at_every_depth_and_text_stays_raw() {
        let value =
            json!({"b": [{"z": 1, "a": null}], "a": "e\u{301} \u{1f980} \u{2028}\u{1}\"\\/"});
        assert_eq!(
            String::from_utf8(encode(&value).unwrap()).unwrap(),
            "{\"a\":\"e\u{301} \u{1f980} \u{2028}\\u0001\\\"\\\\/\",\"b\":[{\"a\":null,\"z\":1}]}"
        );
    }

    /// If this fails, a dependency has switched on `serde_json/preserve_order`: nothing stored changes
    /// (the encoder sorts), but whoever prints values elsewhere loses the order.
    #[test]
    fn serde_json_objects_are_still_sorted() {
        let object: Value = serde_json::from_str(r#"{"b":1,"a":2}"#).unwrap();
        assert_eq!(object.to_string(), r#"{"a":2,"b":1}"#);
    }

    #[test]
    fn fractions_negatives_and_large_integers_are_refused() {
        for bad in [json!(1.5), json!(-1), json!(1_u64 << 53), json!(1e3)] {
            assert!(
                matches!(encode(&bad), Err(CanonicalError::Number(_))),
                "{bad}"
            );
        }
        assert_eq!(encode(&json!(MAX_INTEGER)).unwrap(), b"9007199254740991");
        // As text, any digits pass.
        assert!(encode(&json!("9007199254740993")).is_ok());
    }

    #[test]
    fn another_spelling_of_the_same_value_is_refused() {
        for bad in [
            r#"{"a":1, "b":2}"#,
            r#"{"b":2,"a":1}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a":"\u0041"}"#,
            "{\"a\":1}\n",
            r#"{"a":01}"#,
            r#"{"a":1.0}"#,
            r#"{"a":"\ud800"}"#,
            "",
        ] {
            assert!(decode(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(decode(b"{\"a\":\"\xff\"}").is_err());
        assert!(decode(br#"{"a":1,"b":[true,false,null,"x"]}"#).is_ok());
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..=MAX_INTEGER).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_comes_back(value in any_value()) {
            prop_assert_eq!(decode(&encode(&value).unwrap()).unwrap(), value);
        }
    }
}
