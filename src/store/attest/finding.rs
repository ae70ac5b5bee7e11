//! What a finding is called, what it means and what to do about it.

use serde::{Deserialize, Serialize};

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Note,
    /// Should be looked at; the product is safe without.
    Warning,
    /// Part of the product works with less than it should.
    Restriction,
    /// The store is not used for writing.
    Refusal,
    /// Nothing could be concluded.
    Unreachable,
}

/// The closed set of findings; stable names, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingCode {
    /// An endpoint cannot be used at all.
    Unreachable,
    /// A check that everything rests on came to no end.
    AttestationIncomplete,
    /// The credentials may not write.
    WriteDenied,
    /// A second create replaced what was there.
    CreateIgnored,
    /// The store says that it has no create-if-absent.
    CreateUnsupported,
    /// Several writers won one key.
    CreateNotAtomic,
    /// A slow writer undid a faster one.
    CreateLosesToSlowWriter,
    /// Reads do not see writes at once.
    StaleReads,
    /// Listings do not see writes at once.
    StaleListings,
    /// A changed or deleted object is called unchanged.
    FalseNotModified,
    /// Bytes come back other than they were sent.
    BytesAltered,
    /// No delete can be fenced.
    NoDeleteFence,
    /// The bucket has versions, and deletes of versions do not work.
    VersionDeleteBroken,
    /// A plain delete does not delete.
    DeleteBroken,
    /// Whether the bucket keeps versions is not known.
    VersioningUnknown,
    /// The store's clock differs from the host's.
    ClockDiffers,
    /// The endpoints' clocks differ.
    EndpointClocksDiffer,
    /// Replies have no date.
    DateMissing,
    /// A permission is missing.
    PermissionDenied,
    /// The slow writer could not be tried.
    SlowWriterNotProbed,
    /// `DELETE If-Match` does not protect; another fence does.
    DeleteIgnoresIfMatch,
    /// `PUT If-Match` is not exact.
    ReplaceNotExact,
    /// Unchanged objects are sent whole.
    NoConditionalGet,
    /// Large bodies cannot be stored.
    MultipartBroken,
    /// A check that no safety rests on came to no end.
    NotDetermined,
    /// Versioning is suspended.
    VersioningSuspended,
    /// Wrong checksums are taken.
    ChecksumNotVerified,
    /// Whether wrong checksums are taken is not known.
    ChecksumUnknown,
    /// The store tells no checksum, or a wrong one.
    ChecksumNotKept,
    /// No default encryption.
    EncryptionOff,
    /// Default encryption is not known.
    EncryptionUnknown,
    /// Everybody may read.
    BucketPublic,
    /// Nothing keeps the bucket from being made public.
    PublicAccessNotBlocked,
    /// Public access is not known.
    PublicAccessUnknown,
    /// Object lock is on.
    ObjectLockOn,
    /// Object lock is not known.
    ObjectLockUnknown,
    /// No rule aborts stale uploads.
    StaleUploadsKept,
    /// Whether a rule aborts stale uploads is not known.
    StaleUploadsUnknown,
    /// Probes could not be removed.
    ProbesLeft,
}

impl FindingCode {
    /// Returns how much it weighs, what it means and what to do.
    pub(super) const fn text(self) -> (Severity, &'static str, &'static str) {
        use Severity::{Note, Refusal, Restriction, Unreachable, Warning};
        match self {
            Self::Unreachable => (
                Unreachable,
                "the store cannot be used as it is configured",
                "see the sentence above",
            ),
            Self::AttestationIncomplete => (
                Unreachable,
                "too little was answered to say whether the store keeps what everything rests on; it is not trusted until that is known",
                "try again; where writers of one key are slow on this server, lower the number of contenders",
            ),
            Self::WriteDenied => (
                Refusal,
                "the credentials may not write, so create-if-absent could not be tried; reading works with --read-only",
                "grant s3:PutObject on the bucket and prefix of `store.url`",
            ),
            Self::CreateIgnored => (
                Refusal,
                "PUT If-None-Match: * is ignored: two writers of one key would both be told that they won, and one would lose its data",
                "use another store, or a newer version of this one; --read-only serves what is there",
            ),
            Self::CreateUnsupported => (
                Refusal,
                "the store has no PUT If-None-Match: *, which decides every register of this product",
                "use another store, or a newer version of this one; --read-only serves what is there",
            ),
            Self::CreateNotAtomic => (
                Refusal,
                "create-if-absent is checked and then written in two steps: of writers at the same moment several win, and data is lost without an error",
                "use another store, or a newer version of this one; --read-only serves what is there",
            ),
            Self::CreateLosesToSlowWriter => (
                Refusal,
                "create-if-absent is checked before the body is there: a writer whose body comes late replaces what a faster one created",
                "use another store, or a newer version of this one; --read-only serves what is there",
            ),
            Self::StaleReads => (
                Refusal,
                "a read may miss the write or delete before it, so that an erased artifact could still be served",
                "use a store with read-after-write consistency, and no cache between it and this host",
            ),
            Self::StaleListings => (
                Refusal,
                "a listing may miss the write or delete before it, so that an erase could miss a version",
                "use a store with consistent listings, and no cache between it and this host",
            ),
            Self::FalseNotModified => (
                Refusal,
                "a conditional read calls a changed or deleted object unchanged, so that an erased artifact could still be served",
                "remove the cache between this host and the store",
            ),
            Self::BytesAltered => (
                Refusal,
                "bytes come back other than they were sent",
                "look for a proxy that changes bodies; set `store.checksum` to `off` where the server stores upload framing",
            ),
            Self::NoDeleteFence => (
                Restriction,
                "deletes cannot be fenced in this mode; collecting stays safe, since condemned keys are never used again, but a fence would stop a mistake too",
                "enable versioning on the bucket, then the version_id fence is used",
            ),
            Self::VersionDeleteBroken => (
                Restriction,
                "the bucket has versions and a delete of one version does not do just that, so that erased content may stay",
                "use a bucket that never had versioning, or another store",
            ),
            Self::DeleteBroken => (
                Restriction,
                "a delete does not delete, so that nothing can be erased or collected",
                "look for a rule or proxy that keeps deletes from the bucket",
            ),
            Self::VersioningUnknown => (
                Restriction,
                "whether the bucket keeps versions is not known; nothing is deleted until it is",
                "grant s3:GetBucketVersioning",
            ),
            Self::ClockDiffers => (
                Restriction,
                "this host's clock and the store's differ by more than 5 minutes; signatures are refused from 15 on",
                "synchronise both clocks (NTP)",
            ),
            Self::EndpointClocksDiffer => (
                Restriction,
                "the clocks of the endpoints differ by more than 5 minutes, and ages are measured by them",
                "synchronise the servers' clocks (NTP)",
            ),
            Self::DateMissing => (
                Restriction,
                "replies have no Date header, and ages are measured by it",
                "let the proxy before the store pass the Date header on",
            ),
            Self::PermissionDenied => (
                Restriction,
                "the credentials lack a permission",
                "grant it on the bucket and prefix of `store.url`",
            ),
            Self::SlowWriterNotProbed => (
                Warning,
                "the case of a writer whose body comes late could not be tried; the races alone speak for this store",
                "run doctor again without a proxy that collects bodies",
            ),
            Self::DeleteIgnoresIfMatch => (
                Note,
                "DELETE If-Match does not protect here; the version_id fence is used instead",
                "keep versioning enabled",
            ),
            Self::ReplaceNotExact => (
                Warning,
                "PUT If-Match is not exact; nothing of this product rests on it",
                "nothing",
            ),
            Self::NoConditionalGet => (
                Warning,
                "unchanged objects are sent again instead of a 304: each use of a cached manifest costs its bytes",
                "nothing, or a store with conditional reads",
            ),
            Self::MultipartBroken => (
                Warning,
                "multipart uploads do not work: bodies over 8 MiB cannot be stored and are answered with an error",
                "use a store with multipart uploads",
            ),
            Self::NotDetermined => (
                Warning,
                "a check came to no end; nothing is taken from it",
                "run doctor again",
            ),
            Self::VersioningSuspended => (
                Note,
                "versioning is suspended: new writes replace the version `null`, so a version id is no full fence",
                "enable versioning again",
            ),
            Self::ChecksumNotVerified => (
                Warning,
                "the store takes bodies that do not match their checksum; every read is verified by this product",
                "nothing; a damaged upload is found when it is read",
            ),
            Self::ChecksumUnknown => (
                Note,
                "whether the store verifies checksums is not known; every read is verified by this product",
                "nothing",
            ),
            Self::ChecksumNotKept => (
                Note,
                "the store keeps no checksum; before a delete the body is read to verify it",
                "nothing",
            ),
            Self::EncryptionOff => (
                Warning,
                "the bucket has no default encryption",
                "set it, where the bytes should be encrypted at rest",
            ),
            Self::EncryptionUnknown => (
                Note,
                "whether the bucket encrypts at rest is not known: the store has no such question, or it is not allowed",
                "grant s3:GetEncryptionConfiguration, or look at the store's own settings",
            ),
            Self::BucketPublic => (
                Warning,
                "the bucket's policy makes it public: everybody may get at tool outputs",
                "remove the public statement from the bucket's policy, and block public access",
            ),
            Self::PublicAccessNotBlocked => (
                Warning,
                "nothing keeps the bucket from being made public",
                "block public access on the bucket",
            ),
            Self::PublicAccessUnknown => (
                Note,
                "whether the bucket is public is not known: the store has no such question, or it is not allowed",
                "grant s3:GetBucketPolicyStatus and s3:GetBucketPublicAccessBlock, or look at the store's own settings",
            ),
            Self::ObjectLockOn => (
                Warning,
                "object lock is on: objects under retention can be neither erased nor collected",
                "use a bucket without default retention",
            ),
            Self::ObjectLockUnknown => (
                Note,
                "whether object lock is on is not known: the store has no such question, or it is not allowed",
                "grant s3:GetBucketObjectLockConfiguration, or look at the store's own settings",
            ),
            Self::StaleUploadsKept => (
                Note,
                "no lifecycle rule aborts stale multipart uploads; the collector does, while it runs",
                "add a rule that aborts incomplete uploads after a day, where the store takes one",
            ),
            Self::StaleUploadsUnknown => (
                Note,
                "whether a lifecycle rule aborts stale multipart uploads is not known; the collector does, while it runs",
                "grant s3:GetLifecycleConfiguration",
            ),
            Self::ProbesLeft => (
                Warning,
                "probe objects of this attestation could not be removed; the collector does it later",
                "grant s3:DeleteObject (s3:DeleteObjectVersion and s3:ListBucketVersions with versions) on the prefix's v1/probe/",
            ),
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name.
    pub code: FindingCode,
    /// How much it weighs.
    pub severity: Severity,
    /// What it means.
    pub meaning: String,
    /// What to do about it.
    pub what_to_do: String,
    /// What was seen.
    pub evidence: String,
}

impl Finding {
    /// Builds a finding with the usual text.
    pub(super) fn new(code: FindingCode, evidence: impl Into<String>) -> Self {
        let (severity, meaning, what_to_do) = code.text();
        Self {
            code,
            severity,
            meaning: meaning.to_owned(),
            what_to_do: what_to_do.to_owned(),
            evidence: evidence.into(),
        }
    }
}
