//! The S3 trait: each operation checks the bucket and hands on.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use s3s::dto::*;
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};

use super::service::{Backend, Directives, Incoming, crc32_of};
use super::state::{BucketVersioning, UploadedPart, Uploading, etag_of};

/// A handle that `s3s` can own.
#[derive(Debug, Clone)]
pub(crate) struct Operations(pub(crate) Arc<Backend>);

fn directives<T>(request: &S3Request<T>) -> Directives {
    request.extensions.get().copied().unwrap_or_default()
}

#[async_trait::async_trait]
impl S3 for Operations {
    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let directives = directives(&request);
        let input = request.input;
        self.0.check_bucket(&input.bucket)?;
        let crc32 = input.checksum_crc32.clone();
        let put = Incoming {
            key: input.key,
            body: input.body,
            crc32: input.checksum_crc32,
            if_none_match: input.if_none_match,
            if_match: input.if_match,
        };
        let (etag, version_id) = self.0.put(put, directives).await?;
        Ok(S3Response::new(PutObjectOutput {
            e_tag: Some(ETag::Strong(etag)),
            version_id,
            checksum_crc32: crc32.filter(|_| self.0.quirks.keeps_checksums),
            ..PutObjectOutput::default()
        }))
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        self.0.get(&request.input).map(S3Response::new)
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = request.input;
        let get = GetObjectInput {
            bucket: input.bucket,
            key: input.key,
            version_id: input.version_id,
            if_match: input.if_match,
            if_none_match: input.if_none_match,
            ..GetObjectInput::default()
        };
        let found = self.0.get(&get)?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: found.content_length,
            e_tag: found.e_tag,
            last_modified: found.last_modified,
            version_id: found.version_id,
            checksum_crc32: found
                .checksum_crc32
                .filter(|_| input.checksum_mode.is_some()),
            ..HeadObjectOutput::default()
        }))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let input = request.input;
        self.0.check_bucket(&input.bucket)?;
        self.0.delete(
            &input.key,
            input.version_id.as_deref(),
            input.if_match.as_ref(),
        )?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let directives = directives(&request);
        self.0.list(&request.input, directives).map(S3Response::new)
    }

    async fn list_object_versions(
        &self,
        request: S3Request<ListObjectVersionsInput>,
    ) -> S3Result<S3Response<ListObjectVersionsOutput>> {
        if !self.0.quirks.has_versioning {
            return Err(s3_error!(NotImplemented));
        }
        self.0.list_versions(&request.input).map(S3Response::new)
    }

    async fn list_multipart_uploads(
        &self,
        request: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        self.0.list_uploads(&request.input).map(S3Response::new)
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.0.check_bucket(&request.input.bucket)?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn get_bucket_versioning(
        &self,
        request: S3Request<GetBucketVersioningInput>,
    ) -> S3Result<S3Response<GetBucketVersioningOutput>> {
        self.0.check_bucket(&request.input.bucket)?;
        if !self.0.quirks.has_versioning {
            return Err(s3_error!(NotImplemented));
        }
        let status = match self.0.bucket().versioning {
            BucketVersioning::Never => None,
            BucketVersioning::Enabled => Some(BucketVersioningStatus::ENABLED),
            BucketVersioning::Suspended => Some(BucketVersioningStatus::SUSPENDED),
        };
        Ok(S3Response::new(GetBucketVersioningOutput {
            status: status.map(BucketVersioningStatus::from_static),
            ..GetBucketVersioningOutput::default()
        }))
    }

    async fn put_bucket_lifecycle_configuration(
        &self,
        request: S3Request<PutBucketLifecycleConfigurationInput>,
    ) -> S3Result<S3Response<PutBucketLifecycleConfigurationOutput>> {
        self.0.check_bucket(&request.input.bucket)?;
        let aborts = request
            .input
            .lifecycle_configuration
            .is_some_and(|configuration| {
                configuration
                    .rules
                    .iter()
                    .any(|rule| rule.abort_incomplete_multipart_upload.is_some())
            });
        if aborts && self.0.quirks.refuses_abort_rule {
            return Err(s3_error!(InvalidArgument));
        }
        Ok(S3Response::new(
            PutBucketLifecycleConfigurationOutput::default(),
        ))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let input = request.input;
        self.0.check_bucket(&input.bucket)?;
        let initiated = self.0.now();
        let mut bucket = self.0.bucket();
        let id = bucket.issue('u');
        let upload = Uploading {
            key: input.key.clone(),
            initiated,
            parts: Default::default(),
        };
        bucket.uploads.insert(id.clone(), upload);
        Ok(S3Response::new(CreateMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(id),
            ..CreateMultipartUploadOutput::default()
        }))
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let directives = directives(&request);
        let input = request.input;
        self.0.check_bucket(&input.bucket)?;
        let bytes = self.0.body(input.body, directives).await?;
        self.0
            .verify(&bytes, input.checksum_crc32.as_deref(), directives)?;
        let etag = etag_of(&bytes);
        let mut bucket = self.0.bucket();
        let upload = bucket
            .uploads
            .get_mut(&input.upload_id)
            .filter(|upload| upload.key == input.key)
            .ok_or_else(|| s3_error!(NoSuchUpload))?;
        let part = UploadedPart {
            bytes,
            etag: etag.clone(),
            crc32: input.checksum_crc32.clone(),
        };
        upload.parts.insert(input.part_number, part);
        Ok(S3Response::new(UploadPartOutput {
            e_tag: Some(ETag::Strong(etag)),
            checksum_crc32: input.checksum_crc32,
            ..UploadPartOutput::default()
        }))
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let input = request.input;
        self.0.check_bucket(&input.bucket)?;
        let mut bucket = self.0.bucket();
        let upload = bucket
            .uploads
            .get(&input.upload_id)
            .filter(|upload| upload.key == input.key)
            .ok_or_else(|| s3_error!(NoSuchUpload))?;
        let asked = input
            .multipart_upload
            .and_then(|listed| listed.parts)
            .unwrap_or_default();
        let (mut bytes, mut etags, mut last) = (Vec::new(), String::new(), 0);
        // Composite, as S3 has it: the CRC-32 of the parts' CRC-32s, with the number of parts.
        let mut crc32s = Some(Vec::new());
        for (at, part) in asked.iter().enumerate() {
            let number = part.part_number.unwrap_or(0);
            let stored = upload
                .parts
                .get(&number)
                .filter(|stored| {
                    part.e_tag
                        .as_ref()
                        .is_some_and(|e| e.value() == stored.etag)
                })
                .filter(|stored| {
                    part.checksum_crc32.is_none() || part.checksum_crc32 == stored.crc32
                })
                .ok_or_else(|| s3_error!(InvalidPart))?;
            if number <= last {
                return Err(s3_error!(InvalidPartOrder));
            }
            if at + 1 < asked.len() && stored.bytes.len() < 5 << 20 {
                return Err(s3_error!(EntityTooSmall));
            }
            last = number;
            bytes.extend_from_slice(&stored.bytes);
            etags.push_str(&stored.etag);
            let part_crc32 = stored.crc32.as_ref().and_then(|v| STANDARD.decode(v).ok());
            crc32s = crc32s.zip(part_crc32).map(|(all, one)| [all, one].concat());
        }
        if asked.is_empty() {
            return Err(s3_error!(MalformedXML));
        }
        let composite = crc32s.map(|all| format!("{}-{}", crc32_of(&all), asked.len()));
        let mut version = self.0.version_of(bytes.into(), composite);
        version.etag = format!("{}-{}", etag_of(etags.as_bytes()), asked.len());
        let (etag, crc32) = (version.etag.clone(), version.crc32.clone());
        bucket.uploads.remove(&input.upload_id);
        let version_id = bucket.write(&input.key, version);
        Ok(S3Response::new(CompleteMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            e_tag: Some(ETag::Strong(etag)),
            checksum_crc32: crc32,
            version_id,
            ..CompleteMultipartUploadOutput::default()
        }))
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let input = request.input;
        self.0.check_bucket(&input.bucket)?;
        let mut bucket = self.0.bucket();
        bucket
            .uploads
            .remove(&input.upload_id)
            .ok_or_else(|| s3_error!(NoSuchUpload))?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }
}
