//! Named sets of deviations, each standing for a server that was measured.

/// How a condition header is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Checked and applied in one step.
    Exact,
    /// Checked before the body is read, applied after it: sequential tests pass, races do not.
    CheckThenWrite,
    /// Never read; the reply is a success.
    Ignored,
    /// Exact in a bucket without versions, ignored in one with them.
    IgnoredWhenVersioned,
    /// Always false (the quoted ETag never equals the stored one).
    NeverMatches,
}

/// What `DELETE ?versionId=` does where versioning was never enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionDelete {
    /// 204 and nothing happens unless the id is `null`.
    Keeps,
    /// 204 and the current object is gone, whatever the id.
    DeletesCurrent,
    /// 501.
    NotImplemented,
}

/// One server's deviations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quirks {
    pub(crate) name: &'static str,
    pub(crate) put_if_none_match: Condition,
    pub(crate) put_if_match: Condition,
    /// Status of a put with `If-Match` on a missing key: 404 or 412.
    pub(crate) put_if_match_missing: u16,
    pub(crate) delete_if_match: Condition,
    /// Status of a delete with `If-Match` on a missing key: 404 or 412.
    pub(crate) delete_if_match_missing: u16,
    /// `?versionId` together with `If-Match` is 501.
    pub(crate) refuses_two_fences: bool,
    pub(crate) version_delete: VersionDelete,
    /// `?versioning`, versions and their listing exist.
    pub(crate) has_versioning: bool,
    pub(crate) honours_ranges: bool,
    pub(crate) get_if_match: bool,
    pub(crate) get_if_none_match: bool,
    /// A wrong checksum is 400.
    pub(crate) verifies_checksums: bool,
    /// A wrong checksum is 400 and the body is stored all the same.
    pub(crate) stores_before_verifying: bool,
    /// Checksums are kept and told by HEAD.
    pub(crate) keeps_checksums: bool,
    /// A lifecycle rule that aborts uploads is 400.
    pub(crate) refuses_abort_rule: bool,
    /// A conditional put holds its key's lock while its body arrives.
    pub(crate) locks_key_during_body: bool,
}

impl Quirks {
    /// AWS as documented and measured by others.
    pub(crate) const AWS: Self = Self {
        name: "aws",
        put_if_none_match: Condition::Exact,
        put_if_match: Condition::Exact,
        put_if_match_missing: 404,
        delete_if_match: Condition::Exact,
        delete_if_match_missing: 404,
        refuses_two_fences: true,
        version_delete: VersionDelete::Keeps,
        has_versioning: true,
        honours_ranges: true,
        get_if_match: true,
        get_if_none_match: true,
        verifies_checksums: true,
        stores_before_verifying: false,
        keeps_checksums: true,
        refuses_abort_rule: false,
        locks_key_during_body: false,
    };

    /// Exact conditional puts, every condition on DELETE ignored.
    pub(crate) const MINIO: Self = Self {
        name: "minio",
        delete_if_match: Condition::Ignored,
        refuses_two_fences: false,
        refuses_abort_rule: true,
        locks_key_during_body: true,
        ..Self::AWS
    };

    /// Exact conditions, 412 for missing keys, `?versionId` deletes the current object of a bucket
    /// without versions.
    pub(crate) const SEAWEEDFS: Self = Self {
        name: "seaweedfs",
        put_if_match_missing: 412,
        delete_if_match_missing: 412,
        refuses_two_fences: false,
        version_delete: VersionDelete::DeletesCurrent,
        ..Self::AWS
    };

    /// Create-if-absent only without versions, `If-Match` never true, deletes unconditional,
    /// checksums not looked at.
    pub(crate) const CEPH16: Self = Self {
        name: "ceph16",
        put_if_none_match: Condition::IgnoredWhenVersioned,
        put_if_match: Condition::NeverMatches,
        put_if_match_missing: 412,
        delete_if_match: Condition::Ignored,
        refuses_two_fences: false,
        verifies_checksums: false,
        keeps_checksums: false,
        ..Self::AWS
    };

    /// Ignores every condition and ranges.
    pub(crate) const RCLONE: Self = Self {
        name: "rclone",
        put_if_none_match: Condition::Ignored,
        put_if_match: Condition::Ignored,
        delete_if_match: Condition::Ignored,
        refuses_two_fences: false,
        version_delete: VersionDelete::NotImplemented,
        has_versioning: false,
        honours_ranges: false,
        get_if_match: false,
        verifies_checksums: false,
        keeps_checksums: false,
        ..Self::AWS
    };

    /// Checks first and writes later; only a race shows it.
    pub(crate) const S3S_FS: Self = Self {
        name: "s3s-fs",
        put_if_none_match: Condition::CheckThenWrite,
        put_if_match: Condition::CheckThenWrite,
        put_if_match_missing: 412,
        delete_if_match: Condition::Ignored,
        refuses_two_fences: false,
        version_delete: VersionDelete::DeletesCurrent,
        has_versioning: false,
        get_if_match: false,
        get_if_none_match: false,
        stores_before_verifying: true,
        ..Self::AWS
    };

    /// Every set, for suites that walk over all of them.
    pub(crate) const ALL: [Self; 6] = [
        Self::AWS,
        Self::MINIO,
        Self::SEAWEEDFS,
        Self::CEPH16,
        Self::RCLONE,
        Self::S3S_FS,
    ];
}
