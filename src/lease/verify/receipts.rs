//! Receipts that owners hold: what a journal once said, kept where the journal's store cannot change it.

use serde::Deserialize;

use crate::lease::journal::Receipt;

/// A line is no receipt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is no receipt {{\"session\", \"seq\", \"sha256\"}}: {detail}")]
pub struct InvalidReceiptError {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub detail: String,
}

/// Reads one line of JSON: a receipt, or a reply that holds one as `receipt`, so that whoever keeps whole
/// replies can hand those in. Further members are allowed.
///
/// # Errors
/// It is neither.
pub fn parse_line(line: u64, bytes: &[u8]) -> Result<Receipt, InvalidReceiptError> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Line {
        Bare(Receipt),
        Reply { receipt: Receipt },
    }
    match serde_json::from_slice(bytes) {
        Ok(Line::Bare(receipt) | Line::Reply { receipt }) => Ok(receipt),
        Err(error) => Err(InvalidReceiptError {
            line,
            detail: error.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Sha256Digest;

    #[test]
    fn a_line_is_a_receipt_or_a_reply_with_one() {
        let sha256 = Sha256Digest::of(b"x");
        let bare = format!("{{\"session\":\"s\",\"seq\":4,\"sha256\":\"{sha256}\",\"more\":1}}");
        let reply = format!("{{\"receipt\":{bare},\"lease\":{{}}}}");
        for text in [&bare, &reply] {
            let receipt = parse_line(1, text.as_bytes()).unwrap();
            assert_eq!((receipt.seq, receipt.sha256), (4, sha256));
        }
        for bad in [
            "",
            "[]",
            "{}",
            "{\"session\":\"s\",\"seq\":-1}",
            "\u{feff}{}",
        ] {
            let error = parse_line(7, bad.as_bytes()).unwrap_err();
            assert_eq!(error.line, 7, "{bad}");
        }
    }
}
