//! From what was seen to what may be done: pure.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::finding::{Finding, FindingCode as Code, Severity};
use super::{Check, CheckName, Mode, Observations, Outcome};
use crate::limits;
use crate::store::probe::{BucketFacts, Encryption, PublicAccess};

/// Counted up when checks are added or judged otherwise: an older attestation is then made again.
pub(super) const FORMAT: u32 = 1;

/// What the store may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything.
    Trusted,
    /// Everything, with the restrictions that the findings name.
    Restricted,
    /// Reading only.
    Refused,
    /// Not known: the store could not be reached, or answered too little.
    Unreachable,
}

/// The strongest way to keep a late delete from taking a newer object, as seen to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fence {
    /// `DELETE ?versionId=`.
    VersionId,
    /// `DELETE If-Match`.
    IfMatch,
    /// None; the journal's order alone protects.
    None,
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRow {
    /// What was tried.
    pub check: CheckName,
    /// How it ended, and what was seen.
    #[serde(flatten)]
    pub end: Check,
}

/// The outcome of an attestation; as JSON it is what `doctor --json` prints and what the store keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attestation {
    /// Which checks and rules it was made by.
    pub format: u32,
    /// What the store may be used for.
    pub verdict: Verdict,
    /// The fence that deletes use.
    pub delete_fence: Fence,
    /// Whether the bucket keeps versions.
    pub mode: Mode,
    /// What was attested.
    pub fingerprint: String,
    /// When, by the store's clock where it told one.
    pub measured_at: Timestamp,
    /// Writers of one key.
    pub contenders: usize,
    /// Races for a key whose end was clear.
    pub rounds: usize,
    /// How long it took.
    pub elapsed_ms: u64,
    /// What the bucket says of itself.
    pub facts: BucketFacts,
    /// What was found, the gravest first.
    pub findings: Vec<Finding>,
    /// Every check.
    pub checks: Vec<CheckRow>,
}

impl Attestation {
    /// Returns the exit code of `doctor`: 0 trusted, 3 usable with restrictions, 4 refused,
    /// 1 unreachable.
    pub const fn exit_code(&self) -> u8 {
        match self.verdict {
            Verdict::Trusted => 0,
            Verdict::Restricted => 3,
            Verdict::Refused => 4,
            Verdict::Unreachable => 1,
        }
    }

    /// Returns whether the store may be written to.
    pub const fn is_writable(&self) -> bool {
        matches!(self.verdict, Verdict::Trusted | Verdict::Restricted)
    }
}

/// Judges what was seen.
pub fn evaluate(seen: &Observations) -> Attestation {
    let delete_fence = fence(seen);
    let mut findings = Findings::default();
    if let Some(diagnosis) = &seen.unreachable {
        let mut finding = Finding::new(Code::Unreachable, diagnosis.said.clone());
        let (meaning, what_to_do) = diagnosis
            .sentence
            .split_once(": ")
            .unwrap_or((diagnosis.sentence.as_str(), "see the evidence"));
        finding.meaning = meaning.to_owned();
        finding.what_to_do = what_to_do.to_owned();
        findings.0.push(finding);
    } else {
        create(seen, &mut findings);
        truth(seen, &mut findings);
        if seen.outcome(CheckName::CreateTwice) != Outcome::Denied {
            deletes(seen, delete_fence, &mut findings);
            clocks(seen, &mut findings);
            conveniences(seen, &mut findings);
            facts(&seen.facts, &mut findings);
        }
        for permission in &seen.denied {
            findings.add(Code::PermissionDenied, permission.clone());
        }
    }
    if seen.left_behind > 0 {
        let what = format!("probes left: {}", seen.left_behind);
        findings.add(Code::ProbesLeft, what);
    }
    let mut findings = findings.0;
    // Stable, so that findings of one weight keep the order of the rules.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Attestation {
        format: FORMAT,
        verdict: verdict(&findings),
        delete_fence,
        mode: seen.mode,
        fingerprint: seen.fingerprint.clone(),
        measured_at: seen.measured_at,
        contenders: seen.contenders,
        rounds: seen.rounds,
        elapsed_ms: seen.elapsed_ms,
        facts: seen.facts.clone(),
        findings,
        checks: rows(seen),
    }
}

/// A refusal is certain knowledge, and outweighs what could not be found out.
fn verdict(findings: &[Finding]) -> Verdict {
    let has = |severity| findings.iter().any(|f| f.severity == severity);
    if has(Severity::Refusal) {
        Verdict::Refused
    } else if has(Severity::Unreachable) {
        Verdict::Unreachable
    } else if has(Severity::Restriction) {
        Verdict::Restricted
    } else {
        Verdict::Trusted
    }
}

fn fence(seen: &Observations) -> Fence {
    let has_versions = match seen.mode {
        Mode::Enabled | Mode::Suspended => true,
        Mode::NeverEnabled => false,
        // No delete is sent then (the design's rule), so there is nothing to fence.
        Mode::Unknown => return Fence::None,
    };
    if has_versions && seen.passed(CheckName::DeleteVersion) {
        Fence::VersionId
    } else if seen.passed(CheckName::DeleteIfMatch) && seen.passed(CheckName::DeleteRace) {
        Fence::IfMatch
    } else {
        Fence::None
    }
}

fn rows(seen: &Observations) -> Vec<CheckRow> {
    CheckName::ALL
        .into_iter()
        .map(|check| CheckRow {
            check,
            end: seen
                .checks
                .get(&check)
                .cloned()
                .unwrap_or_else(|| Check::new(Outcome::Skipped, "")),
        })
        .collect()
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, code: Code, evidence: impl Into<String>) {
        self.0.push(Finding::new(code, evidence));
    }
}

/// Create-if-absent: fails closed. Only what was seen to be exact is called so.
fn create(seen: &Observations, findings: &mut Findings) {
    let rules = [
        (CheckName::CreateTwice, Code::CreateIgnored),
        (CheckName::CreateRace, Code::CreateNotAtomic),
        (CheckName::CreateSlowWriter, Code::CreateLosesToSlowWriter),
    ];
    let mut is_refused = false;
    for (name, code) in rules {
        let code = match (name, seen.outcome(name)) {
            (_, Outcome::Failed) => code,
            (CheckName::CreateTwice, Outcome::Unsupported) => Code::CreateUnsupported,
            (CheckName::CreateTwice, Outcome::Denied) => Code::WriteDenied,
            (_, _) => continue,
        };
        is_refused = true;
        findings.add(code, seen.evidence(name));
    }
    if is_refused {
        return;
    }
    for name in [CheckName::CreateTwice, CheckName::CreateRace] {
        if !seen.passed(name) {
            findings.add(Code::AttestationIncomplete, incomplete(seen, name));
            return;
        }
    }
    if !seen.passed(CheckName::CreateSlowWriter) {
        findings.add(
            Code::SlowWriterNotProbed,
            seen.evidence(CheckName::CreateSlowWriter),
        );
    }
}

fn incomplete(seen: &Observations, name: CheckName) -> String {
    format!("{}: {}", name.title(), seen.evidence(name))
}

/// What reads and erases rest on.
fn truth(seen: &Observations, findings: &mut Findings) {
    let rules = [
        (CheckName::ReadAfterWrite, Code::StaleReads),
        (CheckName::ListAfterWrite, Code::StaleListings),
        (CheckName::ChangedGet, Code::FalseNotModified),
        (CheckName::ByteFidelity, Code::BytesAltered),
    ];
    for (name, code) in rules {
        match seen.outcome(name) {
            Outcome::Failed => findings.add(code, seen.evidence(name)),
            // Not known to hold is not known at all: fails closed.
            Outcome::Unknown | Outcome::Unsupported => {
                findings.add(Code::AttestationIncomplete, incomplete(seen, name));
            }
            // A missing permission is its own finding.
            Outcome::Denied | Outcome::Passed | Outcome::Skipped => {}
        }
    }
}

fn deletes(seen: &Observations, fence: Fence, findings: &mut Findings) {
    if seen.outcome(CheckName::DeletePlain) == Outcome::Failed {
        findings.add(Code::DeleteBroken, seen.evidence(CheckName::DeletePlain));
    }
    let if_match = match seen.outcome(CheckName::DeleteRace) {
        Outcome::Failed => seen.evidence(CheckName::DeleteRace),
        Outcome::Passed
        | Outcome::Unsupported
        | Outcome::Denied
        | Outcome::Unknown
        | Outcome::Skipped => seen.evidence(CheckName::DeleteIfMatch),
    };
    match seen.mode {
        Mode::Unknown => {
            findings.add(
                Code::VersioningUnknown,
                seen.evidence(CheckName::Versioning),
            );
            return;
        }
        Mode::Enabled | Mode::Suspended if !seen.passed(CheckName::DeleteVersion) => {
            findings.add(
                Code::VersionDeleteBroken,
                seen.evidence(CheckName::DeleteVersion),
            );
        }
        Mode::Enabled | Mode::Suspended | Mode::NeverEnabled => {}
    }
    if seen.mode == Mode::Suspended {
        findings.add(Code::VersioningSuspended, "");
    }
    let exact = seen.passed(CheckName::DeleteIfMatch) && seen.passed(CheckName::DeleteRace);
    match fence {
        Fence::None => no_fence(seen, if_match, findings),
        Fence::VersionId if !exact => findings.add(Code::DeleteIgnoresIfMatch, if_match),
        Fence::VersionId | Fence::IfMatch => {}
    }
}

fn no_fence(seen: &Observations, if_match: &str, findings: &mut Findings) {
    let mut finding = Finding::new(Code::NoDeleteFence, if_match);
    let ignores = seen.outcome(CheckName::DeleteIfMatch) == Outcome::Failed
        || seen.outcome(CheckName::DeleteRace) == Outcome::Failed;
    if ignores {
        finding.meaning = format!("DELETE ignores If-Match; {}", finding.meaning);
    }
    if seen.mode != Mode::NeverEnabled {
        "use a bucket whose store deletes single versions".clone_into(&mut finding.what_to_do);
    }
    findings.0.push(finding);
}

fn clocks(seen: &Observations, findings: &mut Findings) {
    let bound = i64::try_from(limits::MAX_CLOCK_DIFFERENCE.as_millis()).unwrap_or(i64::MAX);
    let seconds = |millis: i64| millis / 1_000;
    let mut known = Vec::new();
    for clock in &seen.clocks {
        let Some(ahead) = clock.ahead_ms else {
            findings.add(Code::DateMissing, clock.endpoint.clone());
            continue;
        };
        known.push(ahead);
        if ahead.saturating_abs() > bound {
            let what = format!(
                "{} is {} s ahead of this host",
                clock.endpoint,
                seconds(ahead)
            );
            findings.add(Code::ClockDiffers, what);
        }
    }
    if let (Some(least), Some(most)) = (known.iter().min(), known.iter().max())
        && most.saturating_sub(*least) > bound
    {
        let apart = seconds(most.saturating_sub(*least));
        findings.add(Code::EndpointClocksDiffer, format!("{apart} s apart"));
    }
}

/// What costs time or bytes, but no safety.
fn conveniences(seen: &Observations, findings: &mut Findings) {
    let rules = [
        (CheckName::ReplaceIfMatch, Code::ReplaceNotExact),
        (CheckName::ReplaceRace, Code::ReplaceNotExact),
        (CheckName::ConditionalGet, Code::NoConditionalGet),
        (CheckName::Multipart, Code::MultipartBroken),
        (CheckName::ChecksumVerified, Code::ChecksumNotVerified),
        (CheckName::ChecksumKept, Code::ChecksumNotKept),
    ];
    for (name, code) in rules {
        let code = match (name, seen.outcome(name)) {
            (CheckName::Multipart, Outcome::Failed) => Code::BytesAltered,
            (_, Outcome::Failed) => code,
            (CheckName::ChecksumVerified, Outcome::Unsupported | Outcome::Unknown) => {
                Code::ChecksumUnknown
            }
            (_, Outcome::Unsupported) => code,
            (_, Outcome::Unknown) => Code::NotDetermined,
            (_, Outcome::Passed | Outcome::Denied | Outcome::Skipped) => continue,
        };
        findings.add(code, incomplete(seen, name));
    }
}

fn facts(facts: &BucketFacts, findings: &mut Findings) {
    match &facts.encryption {
        Some(Encryption::On(_)) => {}
        Some(Encryption::Off) => findings.add(Code::EncryptionOff, ""),
        None => findings.add(Code::EncryptionUnknown, ""),
    }
    match facts.public_access {
        Some(PublicAccess::Blocked) => {}
        Some(PublicAccess::NotBlocked) => findings.add(Code::PublicAccessNotBlocked, ""),
        Some(PublicAccess::Public) => findings.add(Code::BucketPublic, ""),
        None => findings.add(Code::PublicAccessUnknown, ""),
    }
    match facts.object_lock {
        Some(false) => {}
        Some(true) => findings.add(Code::ObjectLockOn, ""),
        None => findings.add(Code::ObjectLockUnknown, ""),
    }
    match facts.aborts_stale_uploads {
        Some(true) => {}
        Some(false) => findings.add(Code::StaleUploadsKept, ""),
        None => findings.add(Code::StaleUploadsUnknown, ""),
    }
}

#[cfg(test)]
mod tests;
