//! The canonical encoding of a state. What can be found again from the rest is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ArtifactRecord, ArtifactStatus, Lease, Reference, State};
use crate::ids::ArtifactId;
use crate::lease::names::TransactionId;

#[derive(Serialize, Deserialize)]
struct Encoded {
    features: Vec<String>,
    leases: BTreeMap<TransactionId, Lease>,
    artifacts: BTreeMap<ArtifactId, EncodedArtifact>,
    ineffective: BTreeSet<u64>,
    as_of: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
struct EncodedArtifact {
    status: ArtifactStatus,
    last_seq: u64,
    last_reference: Option<Reference>,
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let leases = self.leases.iter();
        let artifacts = self.artifacts.iter().map(|(artifact_id, record)| {
            let encoded = EncodedArtifact {
                status: record.status.clone(),
                last_seq: record.last_seq,
                last_reference: record.last_reference,
            };
            (*artifact_id, encoded)
        });
        Encoded {
            features: self.features.clone(),
            leases: leases
                .map(|(name, lease)| (name.clone(), Lease::clone(lease)))
                .collect(),
            artifacts: artifacts.collect(),
            ineffective: self.ineffective.clone(),
            as_of: self.as_of,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let encoded = Encoded::deserialize(deserializer)?;
        let mut artifacts: BTreeMap<ArtifactId, ArtifactRecord> = BTreeMap::new();
        for (artifact_id, artifact) in encoded.artifacts {
            let record = ArtifactRecord {
                status: artifact.status,
                last_seq: artifact.last_seq,
                last_reference: artifact.last_reference,
                protectors: BTreeSet::new(),
            };
            artifacts.insert(artifact_id, record);
        }
        for (name, lease) in &encoded.leases {
            if *name != lease.intent.transaction_id {
                return Err(D::Error::custom("a lease under another name"));
            }
            if lease.phase.protects() {
                // Leaving one out would unprotect it: such a state is refused, not repaired.
                let Some(artifact) = artifacts.get_mut(&lease.intent.artifact_id) else {
                    return Err(D::Error::custom(
                        "a lease on an artifact that is not listed",
                    ));
                };
                if artifact.status != ArtifactStatus::Live {
                    return Err(D::Error::custom("a lease protects what is condemned"));
                }
                artifact.protectors.insert(name.clone());
            }
        }
        let shared = |(artifact_id, record)| (artifact_id, Arc::new(record));
        Ok(Self {
            features: encoded.features,
            leases: encoded
                .leases
                .into_iter()
                .map(|(name, lease)| (name, Arc::new(lease)))
                .collect(),
            artifacts: artifacts.into_iter().map(shared).collect(),
            ineffective: encoded.ineffective,
            as_of: encoded.as_of,
        })
    }
}
