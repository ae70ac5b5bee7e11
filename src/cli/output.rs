//! Standard output: data only, never raw to a terminal unasked, and quiet when nobody reads it.

use std::io::{self, IsTerminal, Write};

use crate::artifact::escape::Shown;
use crate::cli::failure::{Failure, Stop};

/// How bytes that may hold control characters reach the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raw {
    /// As they are: the output is no terminal, or the user asked for it.
    Yes,
    /// Control characters must not act on the terminal.
    No,
}

impl Raw {
    /// Decides for this process's standard output.
    pub fn for_stdout(is_asked_for: bool) -> Self {
        if is_asked_for || !io::stdout().is_terminal() {
            Self::Yes
        } else {
            Self::No
        }
    }
}

/// Writes bytes to standard output as they are.
///
/// # Errors
/// The reader is gone, or the write failed (a full disk).
pub fn write_bytes(bytes: &[u8]) -> Result<(), Stop> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).map_err(stop_of)
}

/// Writes text, with control characters shown as pictures where they must not act.
///
/// # Errors
/// See [`write_bytes`].
pub fn write_text(text: &str, raw: Raw) -> Result<(), Stop> {
    match raw {
        Raw::Yes => write_bytes(text.as_bytes()),
        Raw::No => write_bytes(Shown::of(text.as_bytes()).text.as_bytes()),
    }
}

/// Writes a JSON value on one line.
///
/// # Errors
/// See [`write_bytes`].
pub fn write_json(value: &serde_json::Value) -> Result<(), Stop> {
    write_bytes(format!("{}\n", escape_json(&value.to_string())).as_bytes())
}

/// Escapes what JSON allows raw and a terminal acts upon: DEL, the C1 controls, and the characters that
/// turn the direction of text. The value stays the same.
fn escape_json(json: &str) -> String {
    let acts = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if acts(c) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Hands everything to the reader. To be called last: a full disk shows here at the latest.
///
/// # Errors
/// See [`write_bytes`].
pub fn flush() -> Result<(), Stop> {
    io::stdout().lock().flush().map_err(stop_of)
}

/// Writes a line for people to standard error; it is not the result, so a failure is nobody's.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

fn stop_of(error: io::Error) -> Stop {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Stop::OutputClosed
    } else {
        Failure::new(format!("cannot write to standard output: {error}")).into()
    }
}

/// Text whose bytes arrive in pieces, watched for what would act on a terminal.
#[derive(Debug, Default)]
pub struct TerminalGuard {
    /// The start of a character whose rest is in the next piece.
    open: Vec<u8>,
}

impl TerminalGuard {
    /// Returns what may be shown of the body so far, or `None` when this piece may not.
    pub fn pass(&mut self, piece: &[u8]) -> Option<String> {
        self.open.extend_from_slice(piece);
        let valid_to = match std::str::from_utf8(&self.open) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return None,
        };
        let rest = self.open.split_off(valid_to);
        let text = String::from_utf8(std::mem::replace(&mut self.open, rest)).ok()?;
        let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
        (!text.contains(acts)).then_some(text)
    }

    /// Returns whether the body ended between two characters.
    pub fn is_complete(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_passes_text_in_any_pieces_and_stops_what_acts() {
        let text = "é界🙂\r\n\tx";
        for cut in 0..text.len() {
            let mut guard = TerminalGuard::default();
            let mut shown = guard.pass(&text.as_bytes()[..cut]).unwrap();
            shown.push_str(&guard.pass(&text.as_bytes()[cut..]).unwrap());
            assert_eq!(shown, text);
            assert!(guard.is_complete());
        }
        for bad in [&b"\x1b[2J"[..], b"\0", b"\xff", b"\xc2\x9b"] {
            assert_eq!(TerminalGuard::default().pass(bad), None, "{bad:?}");
        }
    }
}
