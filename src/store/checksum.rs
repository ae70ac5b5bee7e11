//! The checksum that S3 keeps of an object, and what ours is: a store that took other bytes than were
//! sent is found before a locator exists, where it tells what it kept.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::store::{Part, Payload};

/// Writes a CRC-32 as S3 does, with its algorithm: `crc32:<base64 of 4 bytes, big endian>`.
pub fn of_payload(payload: &Payload) -> String {
    encode(payload.crc32())
}

/// Writes the checksum of a multipart object: the CRC-32 of the parts' CRC-32s, and their number.
pub fn of_parts(parts: &[Part]) -> String {
    let sums: Vec<u8> = parts
        .iter()
        .flat_map(|part| part.crc32.to_be_bytes())
        .collect();
    format!("{}-{}", of_payload(&Payload::from(sums)), parts.len())
}

/// Says how the checksum that the store kept contradicts ours; `None` where it tells none, or one of
/// another kind (another algorithm, or a full-object sum of a multipart object).
pub fn contradiction(kept: Option<&str>, ours: &str) -> Option<String> {
    let kept = kept.filter(|kept| kept.starts_with("crc32:"))?;
    let is_same_kind = kept.contains('-') == ours.contains('-');
    (is_same_kind && kept != ours)
        .then(|| format!("the stored object's checksum is {kept} instead of {ours}"))
}

fn encode(crc32: u32) -> String {
    format!("crc32:{}", STANDARD.encode(crc32.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ETag;

    #[test]
    fn checksums_are_written_as_s3_writes_them() {
        // The CRC-32 check value of "123456789" is cbf43926.
        assert_eq!(of_payload(&Payload::from("123456789")), "crc32:y/Q5Jg==");
        let part = |number| Part {
            number,
            etag: ETag(String::new()),
            crc32: 0xcbf4_3926,
            size_bytes: 9,
        };
        assert!(of_parts(&[part(1), part(2)]).ends_with("-2"));
    }

    #[test]
    fn only_a_checksum_of_the_same_kind_contradicts() {
        let ours = "crc32:y/Q5Jg==";
        for agreeing in [
            None,
            Some(ours),
            Some("crc64nvme:AAAA"),
            Some("crc32:AAAAAA==-2"),
            Some(""),
        ] {
            assert_eq!(contradiction(agreeing, ours), None, "{agreeing:?}");
        }
        assert!(contradiction(Some("crc32:AAAAAA=="), ours).is_some());
    }
}
