//! Multipart uploads.

use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart};

use super::S3Store;
use super::classify::Call;
use super::object::{checksum_of, crc32_header};
use super::reply::Probe;
use crate::store::keys::Key;
use crate::store::{ETag, Part, Payload, PutReceipt, StoreError, StoreErrorKind, Upload};

impl S3Store {
    pub(super) async fn create_multipart_upload(&self, key: &Key) -> Result<Upload, StoreError> {
        let site = self.site(Call::Write, "create upload", key.as_str());
        let probe = Probe::default();
        let algorithm = self
            .settings
            .sends_checksum
            .then_some(ChecksumAlgorithm::Crc32);
        let request = self
            .client
            .create_multipart_upload()
            .bucket(self.bucket())
            .key(key.as_str())
            .set_checksum_algorithm(algorithm)
            .customize()
            .interceptor(probe.clone())
            .config_override(self.small());
        let output = Box::pin(request.send())
            .await
            .map_err(|error| site.fail(probe.reply(), error))?;
        let upload_id = output
            .upload_id()
            .filter(|id| !id.is_empty())
            .ok_or_else(|| site.foreign("an upload without an id"))?;
        Ok(Upload {
            key: key.clone(),
            upload_id: upload_id.to_owned(),
        })
    }

    pub(super) async fn upload_part(
        &self,
        upload: &Upload,
        number: u32,
        payload: &Payload,
    ) -> Result<Part, StoreError> {
        let site = self.site(Call::Write, "put part", upload.key.as_str());
        let invalid = |_| {
            site.error(
                StoreErrorKind::Rejected,
                "the part number or size is invalid",
            )
        };
        let request = self
            .client
            .upload_part()
            .bucket(self.bucket())
            .key(upload.key.as_str())
            .upload_id(&upload.upload_id)
            .part_number(i32::try_from(number).map_err(invalid)?)
            .content_length(i64::try_from(payload.size_bytes()).map_err(invalid)?)
            .set_checksum_crc32(self.checksum_header(payload))
            .body(self.upload_body(payload));
        let probe = Probe::default();
        let mut request = request
            .customize()
            .interceptor(probe.clone())
            .config_override(self.transfer());
        if !self.settings.signs_payload {
            request = request.disable_payload_signing();
        }
        let output = Box::pin(request.send())
            .await
            .map_err(|error| site.fail(probe.reply(), error))?;
        let etag = output
            .e_tag()
            .ok_or_else(|| site.foreign("a part was answered without an ETag"))?;
        Ok(Part {
            number,
            etag: ETag(etag.to_owned()),
            crc32: payload.crc32(),
            size_bytes: payload.size_bytes(),
        })
    }

    pub(super) async fn complete_multipart_upload(
        &self,
        upload: &Upload,
        parts: &[Part],
    ) -> Result<PutReceipt, StoreError> {
        let site = self.site(Call::Write, "complete upload", upload.key.as_str());
        // Servers disagree on a list that names nothing: 400, 404, or an empty object.
        if parts.is_empty() {
            return Err(site.error(StoreErrorKind::Rejected, "an upload needs a part"));
        }
        let mut listed = CompletedMultipartUpload::builder();
        for part in parts {
            let number = i32::try_from(part.number)
                .map_err(|_| site.error(StoreErrorKind::Rejected, "the part number is invalid"))?;
            let checksum = self
                .settings
                .sends_checksum
                .then(|| crc32_header(part.crc32));
            listed = listed.parts(
                CompletedPart::builder()
                    .part_number(number)
                    .e_tag(&part.etag.0)
                    .set_checksum_crc32(checksum)
                    .build(),
            );
        }
        let probe = Probe::default();
        let request = self
            .client
            .complete_multipart_upload()
            .bucket(self.bucket())
            .key(upload.key.as_str())
            .upload_id(&upload.upload_id)
            .multipart_upload(listed.build())
            .customize()
            .interceptor(probe.clone())
            .config_override(self.transfer());
        let output = Box::pin(request.send())
            .await
            .map_err(|error| site.fail(probe.reply(), error))?;
        // A 200 that names no object is a reply that was cut, or none of S3: the object may be there.
        let etag = output.e_tag().ok_or_else(|| {
            site.error(
                StoreErrorKind::Ambiguous,
                "the upload was completed without an ETag in the reply",
            )
        })?;
        Ok(PutReceipt {
            etag: ETag(etag.to_owned()),
            version_id: self.note_version(output.version_id()),
            checksum: checksum_of!(output),
            date: probe.date(),
        })
    }

    pub(super) async fn abort_multipart_upload(&self, upload: &Upload) -> Result<(), StoreError> {
        let site = self.site(Call::Delete, "abort upload", upload.key.as_str());
        let probe = Probe::default();
        let request = self
            .client
            .abort_multipart_upload()
            .bucket(self.bucket())
            .key(upload.key.as_str())
            .upload_id(&upload.upload_id)
            .customize()
            .interceptor(probe.clone())
            .config_override(self.small());
        match Box::pin(request.send()).await {
            Ok(_) => Ok(()),
            Err(error) => match site.fail(probe.reply(), error) {
                error if error.is(StoreErrorKind::NotFound) => Ok(()),
                error => Err(error),
            },
        }
    }
}
