//! Reading the receipts that an owner has kept.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::cli::failure::Failure;
use crate::lease::journal::Receipt;
use crate::lease::verify::receipts::parse_line;
use crate::limits::{MAX_RECEIPTS, MAX_RECEIPTS_BYTES};

/// Reads one receipt a line; empty lines are passed over. `-` is standard input.
pub(super) fn read(path: &Path) -> Result<Vec<Receipt>, Failure> {
    let shown = path.display();
    let cannot = |error: io::Error| Failure::usage(format!("cannot read `{shown}`: {error}"));
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(cannot)?)
    };
    let mut lines = BufReader::new(source.take(MAX_RECEIPTS_BYTES as u64 + 1));
    let (mut receipts, mut number, mut bytes) = (Vec::new(), 0, 0);
    loop {
        let mut line = Vec::new();
        let read = lines.read_until(b'\n', &mut line).map_err(cannot)?;
        if read == 0 {
            return Ok(receipts);
        }
        number += 1;
        bytes += read;
        if bytes > MAX_RECEIPTS_BYTES || receipts.len() == MAX_RECEIPTS {
            let detail = format!("`{shown}` holds more than {MAX_RECEIPTS} receipts, or 16 MiB");
            return Err(Failure::usage(detail).with_hint("split the file"));
        }
        let line = line.trim_ascii();
        if !line.is_empty() {
            let receipt = parse_line(number, line);
            receipts.push(receipt.map_err(|error| Failure::usage(format!("`{shown}`: {error}")))?);
        }
    }
}
