//! Results of several parts: text, images, anything.
//!
//! Only text is ever taken out of the prompt, and of a result the largest part of it; every other part
//! stays where it is, as it is.

use serde_json::Value;

use crate::artifact::measure::Measures;

/// A part that is no object with a `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("part {0} must be an object with a `type`; one of type `text` has a string `text`")]
pub struct InvalidPartError(
    /// Its place, from 0.
    pub usize,
);

/// The parts of a result, as the caller wrote them.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts(Vec<Value>);

impl Parts {
    /// Takes the parts of a result.
    ///
    /// # Errors
    /// One of them is no part.
    pub fn new(parts: Vec<Value>) -> Result<Self, InvalidPartError> {
        for (place, part) in parts.iter().enumerate() {
            let kind = part.get("type").and_then(Value::as_str);
            let is_part = match kind {
                Some("text") => part.get("text").is_some_and(Value::is_string),
                Some(_) => true,
                None => false,
            };
            if !is_part {
                return Err(InvalidPartError(place));
            }
        }
        Ok(Self(parts))
    }

    /// Returns the text of a text part.
    pub fn text(&self, place: usize) -> Option<&str> {
        text_of(self.0.get(place)?)
    }

    /// Returns the place of the largest text part; of equal ones the first. `None` where there is no
    /// text.
    pub fn largest_text(&self) -> Option<usize> {
        let texts = self.0.iter().enumerate();
        let texts = texts.filter_map(|(place, part)| Some((place, text_of(part)?.len())));
        let largest = texts.reduce(|best, next| if next.1 > best.1 { next } else { best });
        largest.map(|(place, _)| place)
    }

    /// Returns the length of all text parts together; the other parts are not counted.
    pub fn text_size(&self) -> Measures {
        let mut size = Measures::default();
        for text in self.0.iter().filter_map(text_of) {
            size.push(text.as_bytes());
        }
        size
    }

    /// Returns whether a part is not text.
    pub fn is_mixed(&self) -> bool {
        self.0.iter().any(|part| text_of(part).is_none())
    }

    /// Returns whether there is a text, and whether nothing of any can be seen.
    pub fn is_blank(&self) -> bool {
        self.0
            .iter()
            .filter_map(text_of)
            .all(super::decide::is_blank)
    }

    /// Returns the parts with another text at `place`; its other members stay.
    pub fn with_text(&self, place: usize, text: String) -> Vec<Value> {
        let mut parts = self.0.clone();
        if let Some(part) = parts.get_mut(place).and_then(Value::as_object_mut) {
            part.insert("text".to_owned(), Value::String(text));
        }
        parts
    }

    /// Returns the parts as they came.
    pub fn as_values(&self) -> &[Value] {
        &self.0
    }
}

fn text_of(part: &Value) -> Option<&str> {
    let is_text = part.get("type").and_then(Value::as_str) == Some("text");
    is_text.then(|| part.get("text")?.as_str()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_largest_text_is_found_and_everything_else_stays() {
        let image = json!({"type": "image", "data": "iVBOR", "text": 7});
        let parts = vec![
            image.clone(),
            json!({"type": "text", "text": "é".repeat(400)}),
            json!({"type": "text", "text": "q".repeat(900), "cache": true}),
            json!({"type": "text", "text": "r".repeat(900)}),
        ];
        let parts = Parts::new(parts).unwrap();
        assert_eq!(parts.largest_text(), Some(2));
        assert_eq!(parts.text_size().characters, 2_200);
        assert_eq!(parts.text_size().bytes, 2_600);
        assert!(parts.is_mixed() && !parts.is_blank());
        let replaced = parts.with_text(2, "R".to_owned());
        assert_eq!(
            replaced[2],
            json!({"type": "text", "text": "R", "cache": true})
        );
        assert_eq!(replaced[0], image);
        assert_eq!(replaced[3], parts.as_values()[3]);
        let none = Parts::new(vec![image]).unwrap();
        assert_eq!((none.largest_text(), none.is_blank()), (None, true));
    }

    #[test]
    fn what_is_no_part_is_named_by_its_place() {
        for bad in [
            json!("text"),
            json!({}),
            json!({"type": 1}),
            json!({"type": "text"}),
        ] {
            let parts = vec![json!({"type": "image"}), bad];
            assert_eq!(Parts::new(parts).unwrap_err(), InvalidPartError(1));
        }
    }
}
