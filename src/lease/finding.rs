//! What a verification can find, by name: a closed list, each name with its own meaning.
//!
//! An operator acts on the name. A single "tampered" for a lost record, a second writer, a newer version
//! and an edit would send them the wrong way every time.

use std::fmt;

use serde::{Serialize, Serializer};

/// One kind of finding. The names are stable for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// Records are missing, although later ones, a checkpoint or a receipt say that they were there.
    Gap,
    /// A record stands at its place and at a later one too.
    Duplicate,
    /// Two histories: somebody goes on from, or holds a receipt of, another record than the stored one.
    Fork,
    /// A record's bytes are not the ones that its successor, a checkpoint or a receipt names.
    BadHash,
    /// A record names another predecessor than the one before it.
    BadLink,
    /// A record of another tenant or session.
    ForeignSession,
    /// Written by a version that this one does not know.
    UnknownSchema,
    /// Not a record at all.
    Unreadable,
    /// The chain holds, but what it says cannot be trusted: entries without effect, or a checkpoint that
    /// differs.
    Suspect,
}

impl FindingKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Gap,
        Self::Duplicate,
        Self::Fork,
        Self::BadHash,
        Self::BadLink,
        Self::ForeignSession,
        Self::UnknownSchema,
        Self::Unreadable,
        Self::Suspect,
    ];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Duplicate => "duplicate",
            Self::Fork => "fork",
            Self::BadHash => "bad_hash",
            Self::BadLink => "bad_link",
            Self::ForeignSession => "foreign_session",
            Self::UnknownSchema => "unknown_schema",
            Self::Unreadable => "unreadable",
            Self::Suspect => "suspect",
        }
    }

    /// Returns how bad it is.
    pub const fn severity(self) -> Severity {
        match self {
            Self::Gap
            | Self::Duplicate
            | Self::Fork
            | Self::BadHash
            | Self::BadLink
            | Self::ForeignSession
            | Self::Unreadable => Severity::Broken,
            Self::UnknownSchema | Self::Suspect => Severity::Restricted,
        }
    }
}

/// What a finding stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is destroyed on this journal's word; the rest goes on as far as this version can read.
    Restricted,
    /// The chain is broken: no new lease, nothing destroyed.
    Broken,
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for FindingKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its name.
    pub name: FindingKind,
    /// The first record concerned.
    pub first_seq: u64,
    /// The last record concerned; the same one except for gaps.
    pub last_seq: u64,
    /// What was seen, in a sentence.
    pub detail: String,
}

impl Finding {
    /// Creates a finding about one record.
    pub fn at(name: FindingKind, seq: u64, detail: impl Into<String>) -> Self {
        Self {
            name,
            first_seq: seq,
            last_seq: seq,
            detail: detail.into(),
        }
    }

    /// Creates a finding about missing records.
    pub fn gap(first_seq: u64, last_seq: u64, detail: impl Into<String>) -> Self {
        Self {
            name: FindingKind::Gap,
            first_seq,
            last_seq,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            first_seq,
            last_seq,
            detail,
        } = self;
        match name {
            FindingKind::Gap => write!(f, "{name}({first_seq}..{last_seq}): {detail}"),
            FindingKind::Duplicate
            | FindingKind::Fork
            | FindingKind::BadHash
            | FindingKind::BadLink
            | FindingKind::ForeignSession
            | FindingKind::UnknownSchema
            | FindingKind::Unreadable
            | FindingKind::Suspect => write!(f, "{name}({first_seq}): {detail}"),
        }
    }
}

/// Returns the one finding that says most: of the worst severity, and there the earliest, which is most
/// likely the cause of the others.
pub fn worst(findings: &[Finding]) -> Option<&Finding> {
    findings.iter().min_by_key(|finding| {
        let severity = std::cmp::Reverse(finding.name.severity());
        (severity, finding.first_seq)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_words_and_findings_read_alone() {
        let mut names: Vec<_> = FindingKind::ALL.iter().map(|kind| kind.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FindingKind::ALL.len());
        let gap = Finding::gap(3, 5, "missing");
        assert_eq!(gap.to_string(), "gap(3..5): missing");
        let fork = Finding::at(FindingKind::Fork, 7, "two");
        assert_eq!(fork.to_string(), "fork(7): two");
        assert_eq!(
            serde_json::to_value(&gap).unwrap(),
            serde_json::json!({"name": "gap", "first_seq": 3, "last_seq": 5, "detail": "missing"})
        );
    }

    #[test]
    fn a_break_says_more_than_a_restriction_and_the_first_one_most() {
        let suspect = Finding::at(FindingKind::Suspect, 0, "");
        let late = Finding::at(FindingKind::BadHash, 9, "");
        let early = Finding::at(FindingKind::BadLink, 4, "");
        let all = [suspect.clone(), late, early.clone()];
        assert_eq!(worst(&all), Some(&early));
        assert_eq!(worst(&all[..1]), Some(&suspect));
        assert_eq!(worst(&[]), None);
    }
}
