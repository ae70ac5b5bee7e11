//! Bytes on their way to the store.

use bytes::{Bytes, BytesMut};

/// Bytes to be written, as segments: the frames that arrived are handed on without copying them into
/// one buffer. The CRC-32 (ISO-HDLC, S3's `x-amz-checksum-crc32`) is computed while collecting.
#[derive(Debug, Clone)]
pub struct Payload {
    segments: Vec<Bytes>,
    size_bytes: u64,
    crc32: crc_fast::Digest,
}

impl Default for Payload {
    fn default() -> Self {
        Self {
            segments: Vec::new(),
            size_bytes: 0,
            crc32: crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32IsoHdlc),
        }
    }
}

impl Payload {
    /// Appends a segment.
    pub fn push(&mut self, segment: Bytes) {
        if segment.is_empty() {
            return;
        }
        self.crc32.update(&segment);
        self.size_bytes += segment.len() as u64;
        self.segments.push(segment);
    }

    /// Returns the size in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Returns the CRC-32 of the whole payload.
    pub fn crc32(&self) -> u32 {
        u32::try_from(self.crc32.finalize()).expect("a CRC-32 has 32 bits")
    }

    /// Returns the segments in order.
    pub fn segments(&self) -> &[Bytes] {
        &self.segments
    }

    /// Gives the memory back, emptied, where the payload is one piece and nobody else holds it.
    pub fn into_buffer(mut self) -> Option<BytesMut> {
        let only = self.segments.pop().filter(|_| self.segments.is_empty())?;
        let mut buffer = only.try_into_mut().ok()?;
        buffer.clear();
        Some(buffer)
    }

    /// Returns the bytes in one piece; copies when there is more than one segment.
    pub fn to_bytes(&self) -> Bytes {
        match self.segments.as_slice() {
            [] => Bytes::new(),
            [one] => one.clone(),
            many => many.concat().into(),
        }
    }
}

impl<T: Into<Bytes>> From<T> for Payload {
    fn from(bytes: T) -> Self {
        let mut payload = Self::default();
        payload.push(bytes.into());
        payload
    }
}
