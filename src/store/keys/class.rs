//! What an object is for, read off its key: the rows of the table of [`keys`](super), for accounts.

use super::KeySpace;

/// A row of the table of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyClass {
    /// The format marker.
    Format,
    /// Scratch of attestation and clock probes.
    Probe,
    /// The last attestation.
    Attest,
    /// Session descriptors.
    Session,
    /// Bodies.
    Body,
    /// Manifests and tombstones.
    Manifest,
    /// Call records.
    CallRecord,
    /// Turn decisions.
    Turn,
    /// Journal records.
    Journal,
    /// Checkpoints.
    Checkpoint,
    /// Plans of the collector.
    Plan,
    /// Reports of the collector.
    Report,
    /// What the last reconciliation left.
    Reconciliation,
    /// A key that no row describes: somebody else's, or a defect.
    Foreign,
}

impl KeyClass {
    /// Every class.
    pub const ALL: [Self; 14] = [
        Self::Format,
        Self::Probe,
        Self::Attest,
        Self::Session,
        Self::Body,
        Self::Manifest,
        Self::CallRecord,
        Self::Turn,
        Self::Journal,
        Self::Checkpoint,
        Self::Plan,
        Self::Report,
        Self::Reconciliation,
        Self::Foreign,
    ];

    /// Returns the class's word in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Probe => "probe",
            Self::Attest => "attest",
            Self::Session => "session",
            Self::Body => "body",
            Self::Manifest => "manifest",
            Self::CallRecord => "call_record",
            Self::Turn => "turn",
            Self::Journal => "journal",
            Self::Checkpoint => "checkpoint",
            Self::Plan => "plan",
            Self::Report => "report",
            Self::Reconciliation => "reconciliation",
            Self::Foreign => "foreign",
        }
    }
}

impl KeySpace {
    /// Returns which row of the table a key, or a prefix of keys, belongs to.
    pub fn class_of(&self, key: &str) -> KeyClass {
        let Some(rest) = key.strip_prefix(self.prefix.as_str()) else {
            return KeyClass::Foreign;
        };
        let mut segments = rest.split('/');
        if segments.next() != Some("v1") {
            return KeyClass::Foreign;
        }
        match segments.next() {
            Some("format.json") => KeyClass::Format,
            Some("probe") => KeyClass::Probe,
            Some("attest") => KeyClass::Attest,
            Some("gc") => match segments.next() {
                Some("plans") => KeyClass::Plan,
                Some("reports") => KeyClass::Report,
                Some("reconciliation.json") => KeyClass::Reconciliation,
                Some(_) | None => KeyClass::Foreign,
            },
            // `t/{tenant}/{class}/…`
            Some("t") => match segments.nth(1) {
                Some("s") => KeyClass::Session,
                Some("b") => KeyClass::Body,
                Some("a") => KeyClass::Manifest,
                Some("c") => KeyClass::CallRecord,
                Some("d") => KeyClass::Turn,
                Some("j") => KeyClass::Journal,
                Some("k") => KeyClass::Checkpoint,
                Some(_) | None => KeyClass::Foreign,
            },
            Some(_) | None => KeyClass::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shapes of all keys, as the builders spell them: every builder's is found, also a new one's.
    fn shapes() -> Vec<&'static str> {
        let source = include_str!("../keys.rs");
        let source = source.split("#[cfg(test)]").next().unwrap();
        let built = source.split("format_args!(").skip(1);
        let texts = source.split("format!(").skip(1);
        built
            .map(|rest| ("", rest))
            .chain(texts.map(|rest| ("{}v1/", rest)))
            .filter_map(|(start, rest)| {
                let literal = rest.trim_start().strip_prefix('"')?;
                let shape = literal.split('"').next()?;
                shape.strip_prefix(start)
            })
            // The marks of the root, of the builder itself, of all tenants and of all that collections
            // write, which no single row is.
            .filter(|shape| {
                !shape.is_empty() && !shape.starts_with('{') && !["t/", "gc/"].contains(shape)
            })
            .collect()
    }

    #[test]
    fn every_key_builder_has_a_class() {
        let shapes = shapes();
        assert!(shapes.len() >= 10, "{shapes:?}");
        for prefix in ["", "team-a/spill"] {
            let space = KeySpace::new(prefix).unwrap();
            for shape in &shapes {
                let key = format!("{}{shape}", space.root());
                assert_ne!(space.class_of(&key), KeyClass::Foreign, "{key}");
            }
        }
    }

    #[test]
    fn every_row_of_the_table_has_its_own_class() {
        let table = include_str!("../keys.rs");
        let rows: Vec<_> = table
            .lines()
            .filter_map(|line| line.strip_prefix("//! | `"))
            .map(|row| row.split('`').next().unwrap())
            .collect();
        let space = KeySpace::new("").unwrap();
        let mut classes: Vec<_> = rows.iter().map(|row| space.class_of(row)).collect();
        assert!(!classes.contains(&KeyClass::Foreign), "{rows:?}");
        classes.sort_unstable();
        classes.dedup();
        // All but `foreign`.
        assert_eq!(classes.len(), KeyClass::ALL.len() - 1, "{rows:?}");
    }

    #[test]
    fn other_keys_are_foreign() {
        let space = KeySpace::new("p").unwrap();
        for key in [
            "",
            "v1/format.json",
            "p/v2/format.json",
            "p/v1/",
            "p/v1/t/x",
            "p/v1/t/x/z/y",
        ] {
            assert_eq!(space.class_of(key), KeyClass::Foreign, "{key}");
        }
    }
}
