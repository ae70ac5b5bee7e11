//! One object: put, get, head, delete.

use std::ops::Range;

use aws_sdk_s3::operation::get_object::GetObjectOutput;
use aws_sdk_s3::primitives::DateTime;
use aws_sdk_s3::types::ChecksumMode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::body::{self, Window};
use super::classify::{Call, Site};
use super::reply::{Probe, timestamp};
use super::{S3Store, SMALL_PUT_BYTES};
use crate::store::keys::Key;
use crate::store::{
    DeleteFence, DeleteReceipt, ETag, GetOptions, GetReply, Head, Object, ObjectMeta, Payload,
    PutMode, PutReceipt, StoreError, StoreErrorKind, VersionId,
};

/// Returns the checksum that an output names, as `algorithm:value`.
macro_rules! checksum_of {
    ($output:expr) => {
        [
            ("crc32", $output.checksum_crc32()),
            ("crc32c", $output.checksum_crc32_c()),
            ("crc64nvme", $output.checksum_crc64_nvme()),
            ("sha256", $output.checksum_sha256()),
            ("sha1", $output.checksum_sha1()),
        ]
        .into_iter()
        .find_map(|(name, value)| value.map(|value| format!("{name}:{value}")))
    };
}
pub(super) use checksum_of;

/// Writes a CRC-32 as S3 does: base64 of its big-endian bytes.
pub(super) fn crc32_header(crc32: u32) -> String {
    STANDARD.encode(crc32.to_be_bytes())
}

/// A put's body and what is said of it.
pub(super) struct Outgoing {
    pub(super) size_bytes: u64,
    /// The value of our checksum header, if it is sent.
    pub(super) crc32: Option<String>,
    pub(super) body: aws_sdk_s3::primitives::ByteStream,
    pub(super) signs_payload: bool,
}

impl S3Store {
    pub(super) async fn put_object(
        &self,
        key: &Key,
        payload: &Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        let outgoing = Outgoing {
            size_bytes: payload.size_bytes(),
            crc32: self.checksum_header(payload),
            body: self.upload_body(payload),
            signs_payload: self.settings.signs_payload,
        };
        self.send_put(key, outgoing, mode).await
    }

    /// Sends one put, whatever its body.
    pub(super) async fn send_put(
        &self,
        key: &Key,
        outgoing: Outgoing,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        let call = match mode {
            PutMode::CreateIfAbsent => Call::Create,
            PutMode::ReplaceIfMatch(_) => Call::Replace,
            PutMode::Overwrite => Call::Write,
        };
        let site = self.site(call, "put", key.as_str());
        let length = i64::try_from(outgoing.size_bytes)
            .map_err(|_| site.error(StoreErrorKind::Rejected, "the payload is too large"))?;
        let request = self
            .client
            .put_object()
            .bucket(self.bucket())
            .key(key.as_str())
            .content_length(length)
            .set_checksum_crc32(outgoing.crc32)
            .body(outgoing.body);
        let request = match mode {
            PutMode::CreateIfAbsent => request.if_none_match("*"),
            PutMode::ReplaceIfMatch(etag) => request.if_match(etag.0),
            PutMode::Overwrite => request,
        };
        let probe = Probe::default();
        let limits = if outgoing.size_bytes > SMALL_PUT_BYTES {
            self.transfer()
        } else {
            self.small()
        };
        let mut request = request
            .customize()
            .interceptor(probe.clone())
            .config_override(limits);
        if !outgoing.signs_payload {
            request = request.disable_payload_signing();
        }
        let output = Box::pin(request.send())
            .await
            .map_err(|error| site.fail(probe.reply(), error))?;
        let etag = output
            .e_tag()
            .ok_or_else(|| site.foreign("a put was answered without an ETag"))?;
        Ok(PutReceipt {
            etag: ETag(etag.to_owned()),
            version_id: self.note_version(output.version_id()),
            checksum: checksum_of!(output),
            date: probe.date(),
        })
    }

    /// The value of our own checksum header, where it is sent.
    pub(super) fn checksum_header(&self, payload: &Payload) -> Option<String> {
        self.settings
            .sends_checksum
            .then(|| crc32_header(payload.crc32()))
    }

    /// The payload as the SDK takes it. Without a checksum header the SDK would frame a segmented
    /// body as aws-chunked, and a signed payload must be in one piece.
    pub(super) fn upload_body(&self, payload: &Payload) -> aws_sdk_s3::primitives::ByteStream {
        let is_contiguous = self.settings.signs_payload || !self.settings.sends_checksum;
        body::upload(payload, is_contiguous)
    }

    pub(super) async fn get_object(
        &self,
        key: &Key,
        options: &GetOptions,
    ) -> Result<GetReply, StoreError> {
        let site = self.site(Call::Read, "get", key.as_str());
        let range = match &options.range {
            Some(range) if range.start >= range.end => {
                return Err(site.error(StoreErrorKind::InvalidRange, "the range is empty"));
            }
            Some(range) => Some(format!("bytes={}-{}", range.start, range.end - 1)),
            None => None,
        };
        let probe = Probe::default();
        let text = |etag: &Option<ETag>| etag.as_ref().map(|etag| etag.0.clone());
        let request = self
            .client
            .get_object()
            .bucket(self.bucket())
            .key(key.as_str())
            .set_range(range)
            .set_if_match(text(&options.if_match))
            .set_if_none_match(text(&options.if_none_match))
            .customize()
            .interceptor(probe.clone())
            .config_override(self.small());
        let output = match Box::pin(request.send()).await {
            Ok(output) => output,
            Err(_) if probe.status() == 304 => {
                return Ok(GetReply::NotModified { date: probe.date() });
            }
            Err(error) => return Err(site.fail(probe.reply(), error)),
        };
        found(site, output, options.range.as_ref(), &probe).map(GetReply::Found)
    }

    pub(super) async fn head_object(&self, key: &Key) -> Result<Head, StoreError> {
        let site = self.site(Call::Head, "head", key.as_str());
        let probe = Probe::default();
        let request = self
            .client
            .head_object()
            .bucket(self.bucket())
            .key(key.as_str())
            .set_checksum_mode(
                self.settings
                    .sends_checksum
                    .then_some(ChecksumMode::Enabled),
            )
            .customize()
            .interceptor(probe.clone())
            .config_override(self.small());
        let output = match Box::pin(request.send()).await {
            Ok(output) => output,
            Err(error) => {
                let error = site.fail(probe.reply(), error);
                return Err(self.told_from_missing_bucket(site, error).await);
            }
        };
        let size_bytes = size(site, output.content_length())?;
        let meta = ObjectMeta {
            size_bytes,
            etag: etag(site, output.e_tag())?,
            version_id: version(output.version_id()),
            last_modified: last_modified(site, output.last_modified())?,
            checksum: checksum_of!(output),
        };
        Ok(Head {
            meta,
            date: probe.date(),
        })
    }

    /// A HEAD's 404 has no body that could say whether the object or the whole bucket is missing; a
    /// missing bucket must never pass for a missing object.
    async fn told_from_missing_bucket(&self, site: Site<'_>, error: StoreError) -> StoreError {
        if !error.is(StoreErrorKind::NotFound) {
            return error;
        }
        let probe = Probe::default();
        let request = self
            .client
            .head_bucket()
            .bucket(self.bucket())
            .customize()
            .interceptor(probe.clone())
            .config_override(self.small());
        match Box::pin(request.send()).await {
            Err(_) if probe.status() == 404 => site.error(
                StoreErrorKind::Rejected,
                format!("the bucket `{}` does not exist", self.bucket()),
            ),
            Ok(_) | Err(_) => error,
        }
    }

    pub(super) async fn delete_object(
        &self,
        key: &Key,
        fence: DeleteFence,
    ) -> Result<DeleteReceipt, StoreError> {
        let call = match fence {
            DeleteFence::None | DeleteFence::Version(_) => Call::Delete,
            DeleteFence::IfMatch(_) => Call::DeleteIfMatch,
        };
        let site = self.site(call, "delete", key.as_str());
        let request = self
            .client
            .delete_object()
            .bucket(self.bucket())
            .key(key.as_str());
        // Never both fences at once: AWS answers 501 to that.
        let request = match fence {
            DeleteFence::None => request,
            DeleteFence::IfMatch(etag) => request.if_match(etag.0),
            DeleteFence::Version(version) => request.version_id(version.0),
        };
        let probe = Probe::default();
        let request = request
            .customize()
            .interceptor(probe.clone())
            .config_override(self.small());
        if let Err(error) = Box::pin(request.send()).await {
            let error = site.fail(probe.reply(), error);
            // Some servers say 404 where AWS says 204; without a condition absence is what was asked.
            if !error.is(StoreErrorKind::NotFound) {
                return Err(error);
            }
        }
        Ok(DeleteReceipt { date: probe.date() })
    }
}

/// Turns a successful GET into an object, whether or not the store honoured the range.
fn found(
    site: Site<'_>,
    output: GetObjectOutput,
    range: Option<&Range<u64>>,
    probe: &Probe,
) -> Result<Object, StoreError> {
    let wire_bytes = size(site, output.content_length())?;
    let (size_bytes, window, range) = match (probe.status(), range) {
        (206, Some(wanted)) => {
            let text = output.content_range().unwrap_or_default();
            let (sent, total) = content_range(text)
                .ok_or_else(|| site.foreign(&format!("Content-Range `{}`", text.escape_debug())))?;
            let end = wanted.end.min(total);
            if sent != (wanted.start..end) || wire_bytes != end - wanted.start {
                return Err(site.error(
                    StoreErrorKind::Rejected,
                    format!("asked for bytes {wanted:?}, the store sent {sent:?} of {total}"),
                ));
            }
            let window = Window {
                wire_bytes,
                skip_bytes: 0,
                take_bytes: wire_bytes,
            };
            (total, window, sent)
        }
        // Some servers ignore ranges and send everything: the part is cut out of it here.
        (200, Some(wanted)) => {
            if wanted.start >= wire_bytes {
                return Err(site.error(
                    StoreErrorKind::InvalidRange,
                    format!("the object has {wire_bytes} bytes"),
                ));
            }
            let end = wanted.end.min(wire_bytes);
            let window = Window {
                wire_bytes,
                skip_bytes: wanted.start,
                take_bytes: end - wanted.start,
            };
            (wire_bytes, window, wanted.start..end)
        }
        (200, None) => {
            let window = Window {
                wire_bytes,
                skip_bytes: 0,
                take_bytes: wire_bytes,
            };
            (wire_bytes, window, 0..wire_bytes)
        }
        (status, _) => return Err(site.foreign(&format!("status {status} to a read"))),
    };
    let meta = ObjectMeta {
        size_bytes,
        etag: etag(site, output.e_tag())?,
        version_id: version(output.version_id()),
        last_modified: last_modified(site, output.last_modified())?,
        checksum: checksum_of!(output),
    };
    Ok(Object {
        meta,
        range,
        body: body::download(output.body, window, site.key.to_owned()),
        date: probe.date(),
    })
}

/// Reads `bytes FIRST-LAST/TOTAL` into a half-open range and the total.
fn content_range(text: &str) -> Option<(Range<u64>, u64)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let total = total.parse().ok()?;
    (first <= last && last < total).then_some((first..last + 1, total))
}

fn size(site: Site<'_>, length: Option<i64>) -> Result<u64, StoreError> {
    length
        .and_then(|length| u64::try_from(length).ok())
        .ok_or_else(|| site.foreign("no Content-Length"))
}

fn etag(site: Site<'_>, etag: Option<&str>) -> Result<ETag, StoreError> {
    etag.map(|etag| ETag(etag.to_owned()))
        .ok_or_else(|| site.foreign("no ETag"))
}

fn version(id: Option<&str>) -> Option<VersionId> {
    id.map(|id| VersionId(id.to_owned()))
}

fn last_modified(site: Site<'_>, time: Option<&DateTime>) -> Result<Timestamp, StoreError> {
    time.and_then(timestamp)
        .ok_or_else(|| site.foreign("no Last-Modified"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_read_strictly() {
        assert_eq!(content_range("bytes 0-4/10"), Some((0..5, 10)));
        assert_eq!(content_range("bytes 9-9/10"), Some((9..10, 10)));
        for bad in [
            "",
            "bytes",
            "bytes 0-4/*",
            "bytes 5-4/10",
            "bytes 0-10/10",
            "items 0-4/10",
        ] {
            assert_eq!(content_range(bad), None, "{bad}");
        }
    }

    #[test]
    fn checksums_are_base64_of_big_endian_bytes() {
        assert_eq!(crc32_header(Payload::from("123456789").crc32()), "y/Q5Jg==");
    }
}
