//! Reading one body against its manifest.

use std::time::Duration;

use futures_util::TryStreamExt;
use tokio::time::Instant;

use super::{ABSENT_PAUSE, Chosen, Damage};
use crate::artifact::manifest::{Manifest, ManifestEntry};
use crate::digest::Sha256Hasher;
use crate::gc::collector::{Collector, Stands};
use crate::store::register::Attempts;
use crate::store::{GetOptions, GetReply, StoreError, StoreErrorKind};

/// Keeps reads below a rate.
#[derive(Debug)]
pub struct Pace {
    bytes_per_second: u64,
    began: Instant,
    bytes: u64,
}

impl Pace {
    /// Begins now.
    pub fn starting(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second: bytes_per_second.max(1),
            began: Instant::now(),
            bytes: 0,
        }
    }

    async fn took(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let pause = pause(self.bytes, self.bytes_per_second, self.began.elapsed());
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
}

/// Returns how long to wait after `bytes` in `elapsed`.
pub(super) fn pause(bytes: u64, bytes_per_second: u64, elapsed: Duration) -> Duration {
    let micros = u128::from(bytes) * 1_000_000 / u128::from(bytes_per_second.max(1));
    let due = Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
    due.saturating_sub(elapsed)
}

/// What a body turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Read {
    /// What was saved, in so many bytes.
    Sound(u64),
    /// The artifact was deleted meanwhile, or is deleted.
    Gone,
    /// Something is wrong.
    Damaged(Damage, String),
}

enum Bytes {
    Same,
    Other(String),
    Absent,
}

impl Collector {
    /// Reads one body and compares it with its manifest.
    pub(super) async fn read_back(&self, chosen: &Chosen, pace: &mut Pace) -> Read {
        let mut attempts = Attempts::new();
        let mut was_absent = false;
        loop {
            match self.read_once(chosen, pace).await {
                Ok(Read::Damaged(Damage::Missing, _)) if !was_absent => {
                    was_absent = true;
                    tokio::time::sleep(ABSENT_PAUSE).await;
                }
                Ok(read) => return read,
                Err(error) if error.kind.is_transient() && attempts.pause().await => {}
                Err(error) => return Read::Damaged(Damage::Unreadable, error.to_string()),
            }
        }
    }

    async fn read_once(&self, chosen: &Chosen, pace: &mut Pace) -> Result<Read, StoreError> {
        let Chosen { tenant, artifact } = chosen;
        let manifest = match self.read_manifest(tenant, artifact).await? {
            Stands::Nothing => return Ok(Read::Gone),
            Stands::Unreadable(error) => {
                return Ok(Read::Damaged(Damage::Unreadable, error.to_string()));
            }
            Stands::Entry(entry, _) => match *entry {
                ManifestEntry::Tombstone(_) => return Ok(Read::Gone),
                ManifestEntry::Live(manifest) => manifest,
            },
        };
        Ok(match self.compare(chosen, &manifest, pace).await? {
            Bytes::Same => Read::Sound(manifest.head.body.size_bytes),
            Bytes::Other(detail) => Read::Damaged(Damage::Corrupt, detail),
            Bytes::Absent => {
                let detail = "its body is not there".to_owned();
                Read::Damaged(Damage::Missing, detail)
            }
        })
    }

    async fn compare(
        &self,
        chosen: &Chosen,
        manifest: &Manifest,
        pace: &mut Pace,
    ) -> Result<Bytes, StoreError> {
        let key = self.keys.body(&chosen.tenant, &chosen.artifact);
        let object = match self.store.get(&key, GetOptions::default()).await {
            Ok(GetReply::Found(object)) => object,
            Ok(GetReply::NotModified { .. }) => {
                let detail = "304 to an unconditional request";
                let kind = StoreErrorKind::Rejected;
                return Err(StoreError::new(kind, "get", &key, detail));
            }
            Err(error) if error.is(StoreErrorKind::NotFound) => return Ok(Bytes::Absent),
            Err(error) => return Err(error),
        };
        let (mut hasher, mut size_bytes) = (Sha256Hasher::default(), 0_u64);
        let mut body = object.body;
        while let Some(piece) = body.try_next().await? {
            hasher.update(&piece);
            size_bytes += piece.len() as u64;
            pace.took(piece.len()).await;
        }
        let saved = &manifest.head.body;
        let sha256 = hasher.finish();
        Ok(if size_bytes != saved.size_bytes {
            Bytes::Other(format!(
                "{size_bytes} bytes instead of {}",
                saved.size_bytes
            ))
        } else if sha256 != saved.sha256 {
            Bytes::Other(format!("{sha256} instead of {}", saved.sha256))
        } else {
            Bytes::Same
        })
    }
}
