//! Turns the first failure at an endpoint into a sentence that names the cause and the setting.
//!
//! Pure: it reads the error's kind and the text that the backend put into its detail, in which the
//! store's own error code stands.

use serde::{Deserialize, Serialize};

use crate::store::{StoreError, StoreErrorKind};

/// Why an endpoint cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// No credentials were found.
    NoCredentials,
    /// The source of credentials (a role, a metadata service) fails.
    CredentialSource,
    /// The store does not know the access key.
    AccessKey,
    /// The signature is wrong: the secret key is not the access key's.
    SecretKey,
    /// Temporary credentials have run out.
    ExpiredCredentials,
    /// The credentials are right and may not do this.
    Permission,
    /// This host's clock and the store's are too far apart for a signature.
    Clock,
    /// The bucket does not exist.
    Bucket,
    /// The bucket is in another region.
    Region,
    /// A web page came back: a proxy's, a console's.
    WebPage,
    /// Something else than S3 answers.
    NotS3,
    /// The host name cannot be resolved.
    HostName,
    /// Nobody listens there, or no way leads there.
    Connection,
    /// The TLS handshake failed.
    Tls,
    /// No answer in time.
    Timeout,
    /// The store, or a proxy before it, fails by itself.
    ServerError,
    /// The store asks for patience.
    Busy,
    /// No space, or a quota.
    Full,
    /// No endpoint is configured.
    NoEndpoint,
    /// None of these.
    Other,
}

/// A cause, said in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The cause.
    pub cause: Cause,
    /// What is wrong and which setting to change.
    pub sentence: String,
    /// What the store or the network said.
    pub said: String,
}

/// Phrases of a detail, the most telling first, and what they mean. All lower case.
const PHRASES: &[(&str, Cause)] = &[
    ("no credentials", Cause::NoCredentials),
    ("source of credentials fails", Cause::CredentialSource),
    ("requesttimetooskewed", Cause::Clock),
    ("requestexpired", Cause::Clock),
    ("invalidaccesskeyid", Cause::AccessKey),
    ("notsignedup", Cause::AccessKey),
    ("invalidtoken", Cause::ExpiredCredentials),
    ("expiredtoken", Cause::ExpiredCredentials),
    ("signaturedoesnotmatch", Cause::SecretKey),
    ("nosuchbucket", Cause::Bucket),
    ("invalidbucketname", Cause::Bucket),
    ("does not exist", Cause::Bucket),
    ("permanentredirect", Cause::Region),
    ("authorizationheadermalformed", Cause::Region),
    ("illegallocationconstraint", Cause::Region),
    ("in another region", Cause::Region),
    ("a web page", Cause::WebPage),
    ("is not one of s3", Cause::NotS3),
    ("without an s3 error code", Cause::NotS3),
    ("no reply in time", Cause::Timeout),
    ("certificate", Cause::Tls),
    ("handshake", Cause::Tls),
    ("invalidcontenttype", Cause::Tls),
    ("corrupt message", Cause::Tls),
    ("dns error", Cause::HostName),
    ("failed to lookup address", Cause::HostName),
    ("cannot connect", Cause::Connection),
    ("invalid http", Cause::NotS3),
    ("unexpected message from connection", Cause::NotS3),
    ("connection refused", Cause::Connection),
    ("connection closed before", Cause::NotS3),
    ("the connection failed", Cause::Connection),
];

impl Cause {
    fn of(error: &StoreError) -> Self {
        let detail = error.detail.to_lowercase();
        let named = PHRASES.iter().find(|(phrase, _)| detail.contains(phrase));
        if let Some((_, cause)) = named {
            return *cause;
        }
        match error.kind {
            StoreErrorKind::Denied => Self::Permission,
            StoreErrorKind::Throttled | StoreErrorKind::Conflict => Self::Busy,
            StoreErrorKind::Full => Self::Full,
            StoreErrorKind::Ambiguous | StoreErrorKind::Unavailable => Self::ServerError,
            // A plain PUT is what every S3 can: who cannot is none.
            StoreErrorKind::NotImplemented => Self::NotS3,
            StoreErrorKind::NotFound
            | StoreErrorKind::AlreadyExists
            | StoreErrorKind::PreconditionFailed
            | StoreErrorKind::InvalidRange
            | StoreErrorKind::Rejected => Self::Other,
        }
    }

    /// Returns what is wrong and which setting to change.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::NoCredentials => {
                "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give the host a role"
            }
            Self::CredentialSource => {
                "the source of the credentials fails (role, web identity, container or instance metadata): check AWS_PROFILE and AWS_ROLE_ARN, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            }
            Self::AccessKey => {
                "the store does not know this access key: check AWS_ACCESS_KEY_ID, and whether it belongs to the store at `store.endpoint`"
            }
            Self::SecretKey => {
                "the signature is wrong: check AWS_SECRET_ACCESS_KEY; where it is right, a proxy changes the Host header or the path, or `store.region` is wrong"
            }
            Self::ExpiredCredentials => {
                "the temporary credentials are expired or not valid: renew AWS_SESSION_TOKEN and the two keys that came with it"
            }
            Self::Permission => {
                "the credentials may not do this: grant them the named permission on the bucket and prefix of `store.url`"
            }
            Self::Clock => {
                "this host's clock and the store's are more than 15 minutes apart, so signatures are refused: synchronise the host's clock (NTP)"
            }
            Self::Bucket => {
                "the bucket does not exist: check its name in `store.url` (s3://BUCKET/PREFIX), or create it"
            }
            Self::Region => {
                "the bucket is in another region: set `store.region` (or AWS_REGION) to the bucket's"
            }
            Self::WebPage => {
                "a web page came back where S3 should answer: `store.endpoint` leads to a proxy's or a console's page; name the S3 port, and exclude it from HTTP_PROXY by NO_PROXY"
            }
            Self::NotS3 => {
                "what answers there speaks no S3: check host, port and scheme of `store.endpoint`"
            }
            Self::HostName => {
                "the host name cannot be resolved: check the host in `store.endpoint`; where only the bucket's own host name is unknown, set `store.path_style` to true"
            }
            Self::Connection => {
                "no connection can be made: check host and port of `store.endpoint`, whether the server runs, and the firewall between"
            }
            Self::Tls => {
                "the TLS handshake fails: check the scheme of `store.endpoint` (http or https), the name in the server's certificate and who signed it"
            }
            Self::Timeout => {
                "nothing was answered in time: check host and port of `store.endpoint`, and whether the server is overloaded"
            }
            Self::ServerError => {
                "the store, or a proxy before it, fails: look at the logs of what `store.endpoint` leads to"
            }
            Self::Busy => "the store asks for patience: try again, and check its request limits",
            Self::Full => {
                "the store takes no more bytes: make space, or raise the quota of the bucket in `store.url`"
            }
            Self::NoEndpoint => {
                "no endpoint is configured: set `store.url` and, but for AWS, `store.endpoint`"
            }
            Self::Other => {
                "the store refuses a plain write: check `store.url`, `store.endpoint` and the bucket's policy"
            }
        }
    }
}

impl Cause {
    /// Returns whether it is about who asks or when, not about what is asked: then every request fails.
    pub(super) const fn is_of_identity(self) -> bool {
        matches!(
            self,
            Self::NoCredentials
                | Self::CredentialSource
                | Self::AccessKey
                | Self::SecretKey
                | Self::ExpiredCredentials
                | Self::Clock
        )
    }
}

impl Diagnosis {
    pub(super) fn no_endpoint() -> Self {
        Self {
            cause: Cause::NoEndpoint,
            sentence: Cause::NoEndpoint.sentence().to_owned(),
            said: String::new(),
        }
    }

    /// Names the endpoint too.
    pub(super) fn at(mut self, endpoint: &str) -> Self {
        self.said = format!("{endpoint}: {}", self.said);
        self
    }
}

/// Explains a failed request to a person.
pub fn diagnose(error: &StoreError) -> Diagnosis {
    let cause = Cause::of(error);
    Diagnosis {
        cause,
        sentence: cause.sentence().to_owned(),
        said: format!("{}: {}", error.operation, error.detail),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(
        StoreErrorKind::Denied,
        "no credentials: set AWS_ACCESS_KEY_ID and …",
        Cause::NoCredentials,
        "AWS_ACCESS_KEY_ID"
    )]
    #[case::source(
        StoreErrorKind::Unavailable,
        "the source of credentials fails: no reply in time",
        Cause::CredentialSource,
        "AWS_PROFILE"
    )]
    #[case::key(
        StoreErrorKind::Denied,
        "the credentials are wrong; status 403 InvalidAccessKeyId: …",
        Cause::AccessKey,
        "AWS_ACCESS_KEY_ID"
    )]
    #[case::secret(
        StoreErrorKind::Denied,
        "the credentials are wrong; status 403 SignatureDoesNotMatch",
        Cause::SecretKey,
        "AWS_SECRET_ACCESS_KEY"
    )]
    #[case::expired(
        StoreErrorKind::Denied,
        "the credentials are wrong; status 400 ExpiredToken",
        Cause::ExpiredCredentials,
        "AWS_SESSION_TOKEN"
    )]
    #[case::permission(
        StoreErrorKind::Denied,
        "status 403 AccessDenied: Access Denied (request 1)",
        Cause::Permission,
        "store.url"
    )]
    #[case::skew(
        StoreErrorKind::Denied,
        "this host's clock is wrong; status 403 RequestTimeTooSkewed",
        Cause::Clock,
        "NTP"
    )]
    #[case::bucket(
        StoreErrorKind::Rejected,
        "the bucket `b` does not exist; status 404 NoSuchBucket",
        Cause::Bucket,
        "store.url"
    )]
    #[case::region(
        StoreErrorKind::Rejected,
        "the bucket is in another region: set …; status 301 PermanentRedirect",
        Cause::Region,
        "store.region"
    )]
    #[case::region_signature(
        StoreErrorKind::Rejected,
        "status 400 AuthorizationHeaderMalformed: expecting 'eu-west-1'",
        Cause::Region,
        "store.region"
    )]
    #[case::page(
        StoreErrorKind::Rejected,
        "the endpoint's reply is not one of S3 (status 200, a web page): check …",
        Cause::WebPage,
        "store.endpoint"
    )]
    #[case::foreign(
        StoreErrorKind::Rejected,
        "the endpoint's reply is not one of S3 (a put was answered without an ETag)",
        Cause::NotS3,
        "store.endpoint"
    )]
    #[case::uncoded(
        StoreErrorKind::Rejected,
        "a 404 without an S3 error code: check the store's `endpoint`; status 404 ",
        Cause::NotS3,
        "store.endpoint"
    )]
    #[case::not_allowed(
        StoreErrorKind::NotImplemented,
        "status 405 ",
        Cause::NotS3,
        "store.endpoint"
    )]
    #[case::refused(
        StoreErrorKind::Unavailable,
        "cannot connect to the store's `endpoint`: client error (Connect): tcp connect error: Connection refused",
        Cause::Connection,
        "store.endpoint"
    )]
    #[case::name(
        StoreErrorKind::Unavailable,
        "cannot connect to the store's `endpoint`: client error (Connect): dns error: failed to lookup address information",
        Cause::HostName,
        "store.path_style"
    )]
    #[case::certificate(
        StoreErrorKind::Unavailable,
        "cannot connect …: invalid peer certificate: UnknownIssuer",
        Cause::Tls,
        "certificate"
    )]
    #[case::silence(
        StoreErrorKind::Ambiguous,
        "no reply in time",
        Cause::Timeout,
        "store.endpoint"
    )]
    #[case::gateway(
        StoreErrorKind::Ambiguous,
        "status 502 ",
        Cause::ServerError,
        "store.endpoint"
    )]
    #[case::busy(
        StoreErrorKind::Throttled,
        "status 503 SlowDown",
        Cause::Busy,
        "limits"
    )]
    #[case::full(StoreErrorKind::Full, "status 507 ", Cause::Full, "quota")]
    #[case::other(
        StoreErrorKind::Rejected,
        "status 400 InvalidRequest",
        Cause::Other,
        "store.url"
    )]
    fn a_failure_is_said_with_its_cause_and_setting(
        #[case] kind: StoreErrorKind,
        #[case] detail: &str,
        #[case] cause: Cause,
        #[case] setting: &str,
    ) {
        let diagnosis = diagnose(&StoreError::new(kind, "put", "k", detail));
        assert_eq!(diagnosis.cause, cause);
        assert!(
            diagnosis.sentence.contains(setting),
            "{}",
            diagnosis.sentence
        );
        assert!(diagnosis.said.contains(detail));
    }
}
