//! An attestation as a person reads it.

use std::fmt::Write as _;

use super::{Attestation, Fence, Mode, Outcome, Severity, Verdict};

/// Columns of running text.
const WIDTH: usize = 96;

/// Renders an attestation as plain text: the verdict, every check, and what to do about each finding.
pub fn render_table(attestation: &Attestation) -> String {
    let mut text = String::new();
    head(&mut text, attestation);
    checks(&mut text, attestation);
    findings(&mut text, attestation);
    text
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing into a string cannot fail.
    let _ = text.write_fmt(arguments);
    text.push('\n');
}

fn head(text: &mut String, attestation: &Attestation) {
    let verdict = match attestation.verdict {
        Verdict::Trusted => "trusted",
        Verdict::Restricted => "usable with restrictions",
        Verdict::Refused => "refused for writing (reading works with --read-only)",
        Verdict::Unreachable => "not known: the store cannot be reached, or answers too little",
    };
    let mode = match attestation.mode {
        Mode::NeverEnabled => "never enabled",
        Mode::Enabled => "enabled",
        Mode::Suspended => "suspended",
        Mode::Unknown => "unknown",
    };
    let fence = match attestation.delete_fence {
        Fence::VersionId => "version_id",
        Fence::IfMatch => "if_match",
        Fence::None => "none",
    };
    let seconds = attestation.elapsed_ms / 1_000;
    let tenths = attestation.elapsed_ms % 1_000 / 100;
    line(text, format_args!("verdict       {verdict}"));
    line(text, format_args!("delete fence  {fence}"));
    line(text, format_args!("versioning    {mode}"));
    line(
        text,
        format_args!(
            "races         {} rounds of {} contenders",
            attestation.rounds, attestation.contenders
        ),
    );
    line(
        text,
        format_args!(
            "measured      {} in {seconds}.{tenths} s",
            attestation.measured_at
        ),
    );
}

fn checks(text: &mut String, attestation: &Attestation) {
    let made: Vec<_> = attestation
        .checks
        .iter()
        .filter(|row| row.end.outcome != Outcome::Skipped)
        .collect();
    if made.is_empty() {
        return;
    }
    let title_width = made
        .iter()
        .map(|row| row.check.title().len())
        .max()
        .unwrap_or(0);
    text.push('\n');
    line(
        text,
        format_args!("{:title_width$}  {:11}  seen", "check", "result"),
    );
    for row in made {
        let outcome = match row.end.outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "FAILED",
            Outcome::Unsupported => "unsupported",
            Outcome::Denied => "denied",
            Outcome::Unknown => "unknown",
            Outcome::Skipped => "skipped",
        };
        let title = row.check.title();
        let seen = printable(&row.end.evidence);
        line(
            text,
            format_args!("{title:title_width$}  {outcome:11}  {seen}"),
        );
    }
}

fn findings(text: &mut String, attestation: &Attestation) {
    for finding in &attestation.findings {
        let severity = match finding.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Restriction => "RESTRICTION",
            Severity::Refusal => "REFUSAL",
            Severity::Unreachable => "UNREACHABLE",
        };
        let code = serde_json::to_value(finding.code).unwrap_or_default();
        text.push('\n');
        line(
            text,
            format_args!("{severity}: {}", code.as_str().unwrap_or("finding")),
        );
        wrapped(text, "  ", &finding.meaning);
        if !finding.evidence.is_empty() {
            wrapped(text, "  seen: ", &finding.evidence);
        }
        wrapped(text, "  do:   ", &finding.what_to_do);
    }
}

/// A store's text has no say over the terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Appends text in lines of bounded width; the first begins with `label`, the others are indented.
fn wrapped(text: &mut String, label: &str, words: &str) {
    let indent = " ".repeat(label.len());
    let mut current = label.to_owned();
    let mut is_empty = true;
    for word in printable(words).split_whitespace() {
        if !is_empty && current.len() + 1 + word.len() > WIDTH {
            text.push_str(&current);
            text.push('\n');
            current = indent.clone();
            is_empty = true;
        }
        if !is_empty {
            current.push(' ');
        }
        current.push_str(word);
        is_empty = false;
    }
    text.push_str(&current);
    text.push('\n');
}
