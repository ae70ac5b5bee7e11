//! Which store: `local:DIR`, `s3://bucket/prefix` or `memory:`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::store::keys::KeySpace;

/// The place where a service keeps its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A directory of this host.
    Local {
        /// The directory, as written; a relative one is relative to the working directory.
        dir: PathBuf,
    },
    /// A bucket of an S3-compatible service.
    S3 {
        /// The bucket's name.
        bucket: String,
        /// The prefix of every key, without slashes at its ends; empty for none.
        prefix: String,
    },
    /// This process's memory; gone with it.
    Memory,
}

/// The text names no store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreUrlError {
    /// None of the three forms.
    #[error("`{0}` is none of local:DIR, s3://bucket/prefix, memory:")]
    UnknownForm(String),
    /// `local:` without a usable directory.
    #[error("local: needs a directory without NUL, as in local:/var/lib/spillbox")]
    Directory,
    /// Not a bucket's name.
    #[error("`{0}` is not a bucket name: 3 to 63 of letters, digits, `.`, `_`, `-`")]
    Bucket(String),
    /// The prefix holds something that keys may not.
    #[error("`{0}` is not a key prefix: segments of [a-z0-9._-], at most 150 bytes")]
    Prefix(String),
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "memory:" {
            return Ok(Self::Memory);
        }
        if let Some(dir) = text.strip_prefix("local:") {
            if dir.is_empty() || dir.contains('\0') {
                return Err(StoreUrlError::Directory);
            }
            return Ok(Self::Local { dir: dir.into() });
        }
        let Some(rest) = text.strip_prefix("s3://") else {
            return Err(StoreUrlError::UnknownForm(text.to_owned()));
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_bucket_name(bucket) {
            return Err(StoreUrlError::Bucket(bucket.to_owned()));
        }
        let prefix = prefix.trim_matches('/');
        if KeySpace::new(prefix).is_err() {
            return Err(StoreUrlError::Prefix(prefix.to_owned()));
        }
        Ok(Self::S3 {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        })
    }
}

/// Wider than today's rule of AWS (no capitals, no `_`): old buckets and other servers have them.
fn is_bucket_name(text: &str) -> bool {
    (3..=63).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local { dir } => write!(f, "local:{}", dir.display()),
            Self::S3 { bucket, prefix } if prefix.is_empty() => write!(f, "s3://{bucket}"),
            Self::S3 { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
            Self::Memory => f.write_str("memory:"),
        }
    }
}

impl Serialize for StoreUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StoreUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_round_trip() {
        for (text, canonical) in [
            ("memory:", "memory:"),
            ("local:/var/lib/spillbox", "local:/var/lib/spillbox"),
            ("local:./a b/é", "local:./a b/é"),
            ("s3://bucket", "s3://bucket"),
            ("s3://bucket/", "s3://bucket"),
            (
                "s3://My_old.bucket-1//team-a/spill/",
                "s3://My_old.bucket-1/team-a/spill",
            ),
        ] {
            let url: StoreUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(url));
        }
    }

    #[test]
    fn everything_else_is_refused_with_the_rule() {
        for (text, part) in [
            ("", "none of"),
            ("/var/lib", "none of"),
            ("memory:x", "none of"),
            ("S3://bucket", "none of"),
            ("https://bucket", "none of"),
            ("local:", "directory"),
            ("local:a\0b", "directory"),
            ("s3://", "bucket name"),
            ("s3://ab", "bucket name"),
            ("s3://-abc", "bucket name"),
            ("s3://user@bucket", "bucket name"),
            ("s3://bucket?x=1", "bucket name"),
            ("s3://bucket/Upper", "prefix"),
            ("s3://bucket/a//b", "prefix"),
            ("s3://bucket/a/../b", "prefix"),
        ] {
            let error = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
