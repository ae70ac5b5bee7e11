//! The ancestor's canonical JSON: keys sorted, no spaces, text raw; numbers as that system's language
//! writes them, fractions included.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A JSON value. Unlike the usual one it refuses a key that stands twice: one reader would take the
/// first, another the last.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Integer(i128),
    Fraction(f64),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null
            | Self::Bool(_)
            | Self::Integer(_)
            | Self::Fraction(_)
            | Self::List(_)
            | Self::Object(_) => None,
        }
    }

    pub(super) fn integer(&self) -> Option<i128> {
        match self {
            Self::Integer(integer) => Some(*integer),
            Self::Null
            | Self::Bool(_)
            | Self::Fraction(_)
            | Self::Text(_)
            | Self::List(_)
            | Self::Object(_) => None,
        }
    }

    pub(super) fn object(&self) -> Option<&BTreeMap<String, Json>> {
        match self {
            Self::Object(members) => Some(members),
            Self::Null
            | Self::Bool(_)
            | Self::Integer(_)
            | Self::Fraction(_)
            | Self::Text(_)
            | Self::List(_) => None,
        }
    }

    /// Writes the canonical form.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Integer(integer) => out.push_str(&integer.to_string()),
            Self::Fraction(fraction) => out.push_str(&fraction_text(*fraction)),
            Self::Text(text) => out.push_str(&quoted(text)),
            Self::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => write_object(members.iter(), out),
        }
    }
}

/// Writes members that are sorted already.
pub(super) fn write_object<'a>(
    members: impl Iterator<Item = (&'a String, &'a Json)>,
    out: &mut String,
) {
    out.push('{');
    for (index, (name, member)) in members.enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&quoted(name));
        out.push(':');
        member.write(out);
    }
    out.push('}');
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is always JSON")
}

/// Writes a fraction with the fewest digits that give it back; with an exponent below 10^-4 and from
/// 10^16 on.
fn fraction_text(fraction: f64) -> String {
    let scientific = format!("{fraction:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{fraction}");
        return if plain.contains('.') {
            plain
        } else {
            format!("{plain}.0")
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Json;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_unit<E: Error>(self) -> Result<Json, E> {
                Ok(Json::Null)
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
                Ok(Json::Bool(value))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
                Ok(Json::Integer(value.into()))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
                Ok(Json::Integer(value.into()))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
                // Beyond 64 bits an integer arrives as a fraction, its digits lost: its hash cannot be
                // told, and a false "changed" would be worse than "cannot be read".
                if value.fract() == 0.0 && value.abs() >= 9_007_199_254_740_992.0 {
                    return Err(E::custom("a number whose digits cannot be kept"));
                }
                Ok(Json::Fraction(value))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
                Ok(Json::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Json::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, value)) = entries.next_entry::<String, Json>()? {
                    if members.insert(name, value).is_some() {
                        return Err(A::Error::custom("a key stands twice"));
                    }
                }
                Ok(Json::Object(members))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        let value: Json = serde_json::from_str(text).unwrap();
        let mut out = String::new();
        value.write(&mut out);
        out
    }

    #[test]
    fn keys_are_sorted_and_everything_else_stays() {
        assert_eq!(
            canonical(
                "{\"b\": [1, -2, true, null], \"a\": {\"z\": \"\u{754c}\\u2028\\u0001\", \"é\": 0}}"
            ),
            "{\"a\":{\"z\":\"\u{754c}\u{2028}\\u0001\",\"é\":0},\"b\":[1,-2,true,null]}"
        );
    }

    #[test]
    fn fractions_are_written_as_the_ancestors_language_writes_them() {
        for (given, written) in [
            ("1.0", "1.0"),
            ("1.50", "1.5"),
            ("-0.25", "-0.25"),
            ("1e3", "1000.0"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1.25e-7", "1.25e-07"),
            ("0.1", "0.1"),
        ] {
            assert_eq!(canonical(given), written);
        }
    }

    #[test]
    fn what_two_readers_would_take_differently_is_refused() {
        for bad in [
            "{\"a\":1,\"a\":2}",
            "123456789012345678901234567890",
            "1e300",
            "\"\\ud800\"",
            "NaN",
        ] {
            assert!(serde_json::from_str::<Json>(bad).is_err(), "{bad}");
        }
    }
}
