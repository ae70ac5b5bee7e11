//! `spillbox journal verify --jsonl FILE`: an ancestor's journal, without any store.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::json;

use crate::cli::failure::{Failure, Stop};
use crate::cli::journal::exit_of;
use crate::cli::output;
use crate::lease::jsonl::{JsonlChecker, JsonlReport};
use crate::limits::MAX_JOURNAL_LINE_BYTES;

/// Checks the file. A link is not followed: the ancestor's journal is a file of its own.
///
/// # Errors
/// It cannot be read.
pub fn run(path: &Path, is_json: bool) -> Result<u8, Stop> {
    let report = check(path)?;
    let document = json!(report);
    if is_json {
        output::write_json(&document)?;
    } else {
        output::write_bytes(summary(&report).as_bytes())?;
    }
    exit_of(&document)
}

fn check(path: &Path) -> Result<JsonlReport, Failure> {
    let shown = path.display();
    let cannot = |error: std::io::Error| Failure::new(format!("cannot read `{shown}`: {error}"));
    let no_follow = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(no_follow.bits()).unwrap_or_default();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(cannot)?;
    if !file.metadata().map_err(cannot)?.is_file() {
        return Err(Failure::new(format!("`{shown}` is not a regular file")));
    }
    let mut lines = BufReader::new(file);
    let mut checker = JsonlChecker::default();
    loop {
        let mut line = Vec::new();
        // One byte more than any line may have, and its end.
        let most = MAX_JOURNAL_LINE_BYTES as u64 + 2;
        let read = lines.by_ref().take(most).read_until(b'\n', &mut line);
        if read.map_err(cannot)? == 0 {
            return Ok(checker.finish(0));
        }
        if line.pop_if(|last| *last == b'\n').is_some() {
            checker.line(&line);
            continue;
        }
        // Longer than any line, or cut off at the end of the file.
        let rest = skip_line(&mut lines).map_err(cannot)?;
        let is_whole = rest.is_some();
        let bytes = line.len() as u64 + rest.unwrap_or_default();
        if !is_whole {
            return Ok(checker.finish(bytes));
        }
        checker.line(&line);
    }
}

/// Skips to the end of a line; `None` where the file ends first.
fn skip_line(lines: &mut impl BufRead) -> std::io::Result<Option<u64>> {
    let mut skipped = 0;
    loop {
        let buffer = lines.fill_buf()?;
        if buffer.is_empty() {
            return Ok(None);
        }
        let (used, ends) = match memchr::memchr(b'\n', buffer) {
            Some(end) => (end + 1, true),
            None => (buffer.len(), false),
        };
        lines.consume(used);
        skipped += used as u64;
        if ends {
            return Ok(Some(skipped));
        }
    }
}

fn summary(report: &JsonlReport) -> String {
    let mut text: String = report
        .findings
        .iter()
        .map(|finding| format!("line {finding}\n"))
        .collect();
    text.push_str(&format!(
        "{}: {} records, {} of them pending",
        report.status.as_str(),
        report.records,
        report.pending.len(),
    ));
    if report.cut_off_bytes > 0 {
        let bytes = report.cut_off_bytes;
        text.push_str(&format!(
            "; the last {bytes} bytes are a write that was cut off"
        ));
    }
    text.push('\n');
    text
}
