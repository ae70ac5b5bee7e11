//! What the file system's errors mean to a caller of the store.

use std::fmt::Display;
use std::io;

use rustix::io::Errno;

use crate::store::{StoreError, StoreErrorKind};

/// A failure of file work, before it is known which operation and key it concerns.
#[derive(Debug)]
pub(super) struct Fault {
    kind: StoreErrorKind,
    detail: String,
}

impl Fault {
    pub(super) fn new(kind: StoreErrorKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
        }
    }

    /// Something that this store never makes stands where one of its files or directories belongs.
    pub(super) fn foreign(name: &str) -> Self {
        let detail = format!("`{name}` is not of this store; symbolic links are never followed");
        Self::new(StoreErrorKind::Denied, detail)
    }

    /// The object is visible already: whether it lasts is not known.
    pub(super) fn after_publishing(self) -> Self {
        Self {
            kind: StoreErrorKind::Ambiguous,
            ..self
        }
    }

    pub(super) fn is(&self, kind: StoreErrorKind) -> bool {
        self.kind == kind
    }

    pub(super) fn at(self, operation: &'static str, key: impl Display) -> StoreError {
        StoreError::new(self.kind, operation, key, self.detail)
    }
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Self::new(kind_of(Some(errno)), errno.to_string())
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::new(kind_of(Errno::from_io_error(&error)), error.to_string())
    }
}

/// Returns what a caller can do about a failed system call.
fn kind_of(errno: Option<Errno>) -> StoreErrorKind {
    match errno {
        Some(Errno::NOSPC | Errno::DQUOT) => StoreErrorKind::Full,
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::LOOP | Errno::NOTDIR) => {
            StoreErrorKind::Denied
        }
        Some(Errno::NOENT) => StoreErrorKind::NotFound,
        Some(Errno::FBIG | Errno::NAMETOOLONG | Errno::INVAL) => StoreErrorKind::Rejected,
        Some(_) | None => StoreErrorKind::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_full_disk_and_a_full_quota_are_told_from_missing_rights() {
        let cases = [
            (Errno::NOSPC, StoreErrorKind::Full),
            (Errno::DQUOT, StoreErrorKind::Full),
            (Errno::ACCESS, StoreErrorKind::Denied),
            (Errno::PERM, StoreErrorKind::Denied),
            (Errno::ROFS, StoreErrorKind::Denied),
            (Errno::IO, StoreErrorKind::Unavailable),
            (Errno::MFILE, StoreErrorKind::Unavailable),
        ];
        for (errno, kind) in cases {
            assert_eq!(kind_of(Some(errno)), kind, "{errno}");
            let error = io::Error::from_raw_os_error(errno.raw_os_error());
            assert_eq!(Fault::from(error).kind, kind, "{errno}");
        }
    }

    #[test]
    fn a_write_to_a_full_device_is_full() {
        let mut device = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let error = device.write_all(b"x").unwrap_err();
        let error = Fault::from(error).at("put", "k");
        assert_eq!(error.kind, StoreErrorKind::Full);
        assert!(error.to_string().starts_with("put `k`: "), "{error}");
    }
}
