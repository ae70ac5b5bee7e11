//! How an endpoint is reached: settings, the credential chain, and the client configuration that the
//! rest of the backend relies on (no SDK retries, no SDK checksums, path style where it is needed).

use std::path::PathBuf;
use std::time::Duration;

use aws_config::imds;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    Builder, Region, RequestChecksumCalculation, ResponseChecksumValidation,
    StalledStreamProtectionConfig,
};

/// Region that is signed for when an endpoint is given and nothing names one; servers other than AWS
/// hardly ever look at it.
const FALLBACK_REGION: &str = "us-east-1";

/// A machine that is no cloud instance must not wait for the instance metadata service.
const IMDS_TIMEOUT: Duration = Duration::from_secs(1);

/// A download that brings no byte for this long is given up.
const DOWNLOAD_GRACE: Duration = Duration::from_secs(20);

/// Whether uploads carry a checksum that the store verifies and keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChecksumMode {
    /// Each put and part carries `x-amz-checksum-crc32`, computed here. Never a trailer: trailers
    /// need aws-chunked framing, which several servers refuse or store inside the object.
    #[default]
    Header,
    /// No checksum header, for servers that refuse it.
    Off,
}

/// Where a bucket is and how to talk to it. Credentials never stand here: they come from the
/// environment, a profile, web identity, a container or the instance metadata service.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct S3Settings {
    /// The bucket.
    pub bucket: String,
    /// The endpoint's URL; without one `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, else AWS.
    pub endpoint: Option<String>,
    /// The region; without one the default chain, and `us-east-1` where an endpoint is given.
    pub region: Option<String>,
    /// Bucket in the path instead of the host name; without a value: on where an endpoint is given.
    pub path_style: Option<bool>,
    /// Upload checksums.
    pub checksum: ChecksumMode,
    /// Sign the payload's SHA-256 too; costs a second pass over each body and one contiguous copy.
    /// Without a value: on over plain HTTP, off over TLS.
    pub sign_payload: Option<bool>,
    /// The profile that the credentials are taken from, instead of the default chain.
    pub profile: Option<String>,
    /// The file that the profile is looked up in, instead of the usual ones.
    pub credentials_file: Option<PathBuf>,
    /// Time to reach the endpoint.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
    /// Time of a request that moves little (heads, listings, manifests, the first byte of a read).
    #[serde(with = "humantime_serde")]
    pub request_timeout: Duration,
    /// Time of a request that moves a body or a part, or that assembles parts.
    #[serde(with = "humantime_serde")]
    pub transfer_timeout: Duration,
}

impl Default for S3Settings {
    fn default() -> Self {
        Self {
            bucket: String::new(),
            endpoint: None,
            region: None,
            path_style: None,
            checksum: ChecksumMode::default(),
            sign_payload: None,
            profile: None,
            credentials_file: None,
            connect_timeout: Duration::from_secs(3),
            request_timeout: Duration::from_secs(20),
            transfer_timeout: Duration::from_secs(120),
        }
    }
}

/// The settings cannot lead to a bucket; no request was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum S3SetupError {
    /// No bucket is named.
    #[error("no bucket is named: set the store's `bucket`")]
    NoBucket,
    /// The endpoint is no HTTP URL.
    #[error("the endpoint `{0}` is not a URL: it must begin with http:// or https://")]
    BadEndpoint(String),
    /// Neither an endpoint nor a region.
    #[error("no region is known: set the store's `region`, AWS_REGION, or an `endpoint`")]
    NoRegion,
}

/// The settings with every default decided.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    pub(super) bucket: String,
    pub(super) sends_checksum: bool,
    pub(super) signs_payload: bool,
    pub(super) request_timeouts: TimeoutConfig,
    pub(super) transfer_timeouts: TimeoutConfig,
}

impl S3Settings {
    /// Decides what the settings leave open, given the endpoint that is in force.
    pub(super) fn resolve(&self, endpoint: Option<&str>) -> Resolved {
        let is_plain_http = endpoint.is_some_and(|url| url.starts_with("http:"));
        let within = |limit: Duration| {
            TimeoutConfig::builder()
                .connect_timeout(self.connect_timeout)
                .operation_attempt_timeout(limit)
                .operation_timeout(limit)
                .build()
        };
        Resolved {
            bucket: self.bucket.clone(),
            sends_checksum: self.checksum == ChecksumMode::Header,
            signs_payload: self.sign_payload.unwrap_or(is_plain_http),
            request_timeouts: within(self.request_timeout),
            transfer_timeouts: within(self.transfer_timeout),
        }
    }

    /// Puts these settings on a client configuration, whatever its credentials and connector.
    ///
    /// The SDK's own retries are off: it would repeat a conditional write whose reply was lost and
    /// report the 412 that its own first attempt caused. Reads are retried above the client.
    pub fn configure(&self, builder: Builder, endpoint: Option<&str>) -> Builder {
        let resolved = self.resolve(endpoint);
        let mut builder = builder
            .force_path_style(self.path_style.unwrap_or(endpoint.is_some()))
            .retry_config(RetryConfig::disabled())
            .timeout_config(resolved.request_timeouts)
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
            .stalled_stream_protection(
                StalledStreamProtectionConfig::enabled()
                    .upload_enabled(false)
                    .download_enabled(true)
                    .grace_period(DOWNLOAD_GRACE)
                    .build(),
            );
        if let Some(endpoint) = endpoint {
            builder = builder.endpoint_url(endpoint);
        }
        builder
    }

    /// Checks what can be checked without a request.
    pub(super) fn check(&self) -> Result<(), S3SetupError> {
        if self.bucket.is_empty() {
            return Err(S3SetupError::NoBucket);
        }
        match &self.endpoint {
            Some(url) if !is_http_url(url) => Err(S3SetupError::BadEndpoint(url.clone())),
            Some(_) | None => Ok(()),
        }
    }

    /// Takes credentials from a profile and nowhere else: where it is missing, requests are refused instead of
    /// being sent with somebody else's rights.
    fn of_profile(&self, profile: &str) -> ProfileFileCredentialsProvider {
        let builder = ProfileFileCredentialsProvider::builder().profile_name(profile);
        let builder = match &self.credentials_file {
            None => builder,
            Some(file) => builder.profile_files(
                EnvConfigFiles::builder()
                    .with_file(EnvConfigFileKind::Credentials, file)
                    .build(),
            ),
        };
        builder.build()
    }

    /// Reads the default chain: region, credentials, endpoint.
    pub(super) async fn load(&self) -> Result<(SdkConfig, Option<String>), S3SetupError> {
        let from_env = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok().filter(|url| !url.is_empty()));
        let endpoint = self.endpoint.clone().or(from_env);
        let named = RegionProviderChain::first_try(self.region.clone().map(Region::new));
        let region = if endpoint.is_some() {
            // Not the whole chain: its last link asks the metadata service, which no machine with a
            // store of its own needs to wait for.
            named
                .or_else(aws_config::environment::region::EnvironmentVariableRegionProvider::new())
                .or_else(aws_config::profile::region::ProfileFileRegionProvider::new())
                .or_else(Region::new(FALLBACK_REGION))
        } else {
            named.or_default_provider()
        };
        let metadata = imds::Client::builder()
            .connect_timeout(IMDS_TIMEOUT)
            .read_timeout(IMDS_TIMEOUT)
            .max_attempts(1)
            .build();
        let credentials = match &self.profile {
            Some(profile) => SharedCredentialsProvider::new(self.of_profile(profile)),
            None => {
                let chain =
                    aws_config::default_provider::credentials::DefaultCredentialsChain::builder()
                        .imds_client(metadata)
                        .build()
                        .await;
                SharedCredentialsProvider::new(chain)
            }
        };
        let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .region(region)
            .credentials_provider(credentials)
            .load()
            .await;
        let endpoint = endpoint.or_else(|| config.endpoint_url().map(str::to_owned));
        match &endpoint {
            Some(url) if !is_http_url(url) => Err(S3SetupError::BadEndpoint(url.clone())),
            None if config.region().is_none() => Err(S3SetupError::NoRegion),
            Some(_) | None => Ok((config, endpoint)),
        }
    }
}

fn is_http_url(url: &str) -> bool {
    url.parse::<http::Uri>()
        .is_ok_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_what_is_missing() {
        assert_eq!(S3Settings::default().check(), Err(S3SetupError::NoBucket));
        let settings = S3Settings {
            bucket: "b".into(),
            endpoint: Some("minio:9000".into()),
            ..S3Settings::default()
        };
        let error = settings.check().unwrap_err();
        assert!(error.to_string().contains("minio:9000"), "{error}");
    }

    #[test]
    fn payload_signing_follows_the_scheme_unless_it_is_set() {
        let settings = S3Settings::default();
        assert!(
            settings
                .resolve(Some("http://localhost:9000"))
                .signs_payload
        );
        assert!(!settings.resolve(Some("https://s3.example")).signs_payload);
        assert!(!settings.resolve(None).signs_payload);
        let settings = S3Settings {
            sign_payload: Some(false),
            ..S3Settings::default()
        };
        assert!(
            !settings
                .resolve(Some("http://localhost:9000"))
                .signs_payload
        );
    }
}
