//! UTF-8 validity of bytes that arrive in pieces.

/// Finds the first ill-formed byte sequence, across the borders of pieces.
#[derive(Debug, Default)]
pub struct Utf8Scan {
    seen_bytes: u64,
    /// A code point that the last piece left unfinished.
    pending: [u8; 4],
    pending_len: usize,
    first_invalid: Option<u64>,
}

impl Utf8Scan {
    /// Adds `piece`.
    pub fn push(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while self.first_invalid.is_none() && self.pending_len > 0 {
            let Some((byte, after)) = rest.split_first() else {
                break;
            };
            self.pending[self.pending_len] = *byte;
            self.pending_len += 1;
            match std::str::from_utf8(&self.pending[..self.pending_len]) {
                Ok(_) => self.pending_len = 0,
                // At most 3 bytes can be an unfinished code point, so a fourth always decides.
                Err(error) if error.error_len().is_none() => {}
                Err(_) => {
                    let before = self.pending_len as u64 - 1;
                    self.first_invalid =
                        Some(self.seen_bytes + (piece.len() - rest.len()) as u64 - before);
                }
            }
            rest = after;
        }
        if self.first_invalid.is_none()
            && let Err(error) = std::str::from_utf8(rest)
        {
            let valid = error.valid_up_to();
            if error.error_len().is_none() {
                let open = &rest[valid..];
                self.pending[..open.len()].copy_from_slice(open);
                self.pending_len = open.len();
            } else {
                self.first_invalid =
                    Some(self.seen_bytes + (piece.len() - rest.len() + valid) as u64);
            }
        }
        self.seen_bytes += piece.len() as u64;
    }

    /// Returns the offset of the first ill-formed sequence (its first byte), or `None` for UTF-8.
    pub fn finish(self) -> Option<u64> {
        let unfinished = (self.pending_len > 0).then(|| self.seen_bytes - self.pending_len as u64);
        self.first_invalid.or(unfinished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(bytes: &[u8]) -> Option<u64> {
        std::str::from_utf8(bytes)
            .err()
            .map(|error| error.valid_up_to() as u64)
    }

    fn in_pieces(bytes: &[u8], piece_bytes: usize) -> Option<u64> {
        let mut scan = Utf8Scan::default();
        for piece in bytes.chunks(piece_bytes) {
            scan.push(piece);
        }
        scan.finish()
    }

    #[test]
    fn the_first_bad_byte_is_found_at_every_split() {
        for bytes in [
            &b"A\xff\xfeB"[..],
            b"ok \xf0\x9f\x99\x82 \xe7\x95",
            b"\xf0\x9f\x99A",
            b"\xe7\xe7\x95\x8c",
            b"\xed\xa0\x80",
            b"",
            "ab🙂界é".as_bytes(),
        ] {
            for piece_bytes in 1..=bytes.len().max(1) {
                assert_eq!(in_pieces(bytes, piece_bytes), naive(bytes), "{bytes:x?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_split_agrees_with_the_standard_library(
            parts in proptest::collection::vec(
                prop_oneof![
                    ".{0,3}".prop_map(String::into_bytes),
                    proptest::collection::vec(any::<u8>(), 0..3),
                ], 0..8),
            piece_bytes in 1_usize..7,
        ) {
            let bytes = parts.concat();
            prop_assert_eq!(in_pieces(&bytes, piece_bytes), naive(&bytes));
        }
    }
}
