//! Leases over any store, as one replica of the service has them.

use std::sync::Arc;

use spillbox::artifact::manifest::Manifest;
use spillbox::artifact::save::Saved;
use spillbox::clock::SystemClock;
use spillbox::ids::{SessionId, SystemIds, Tenant};
use spillbox::lease::journal::Receipt;
use spillbox::lease::journals::Journals;
use spillbox::lease::leases::{LeaseAnswer, LeaseOptions, Leases, PrepareRequest};
use spillbox::lease::names::TransactionId;
use spillbox::store::SharedStore;
use spillbox::store::keys::KeySpace;

use super::library::replica_under;

/// A replica with empty caches.
pub(crate) fn replica(store: &SharedStore) -> Leases {
    replica_under_keys(store, &KeySpace::new("").unwrap())
}

/// A replica with empty caches whose keys begin with a prefix.
pub(crate) fn replica_under_keys(store: &SharedStore, keys: &KeySpace) -> Leases {
    Leases::new(
        replica_under(store, keys),
        journals(store, keys),
        LeaseOptions::default(),
    )
}

/// The journals of a replica.
pub(crate) fn journals(store: &SharedStore, keys: &KeySpace) -> Journals {
    Journals::new(
        Arc::clone(store),
        keys.clone(),
        SystemClock::shared(),
        SystemIds::shared(),
    )
}

pub(crate) fn txn(name: &str) -> TransactionId {
    name.parse().unwrap()
}

pub(crate) fn session() -> SessionId {
    "s".parse().unwrap()
}

/// One reference without end on a saved artifact.
pub(crate) fn claim(name: &str, saved: &Saved) -> PrepareRequest {
    let manifest: &Manifest = &saved.manifest;
    PrepareRequest {
        transaction_id: txn(name),
        source_id: manifest.head.source_id(),
        content_sha256: manifest.head.body.sha256,
        reference_count: 1,
        retain_until: None,
        owner: None,
        mode: None,
    }
}

/// Whether the record that a receipt names stands in the journal.
pub(crate) async fn is_on_the_journal(leases: &Leases, receipt: &Receipt) -> bool {
    let tenant = Tenant::default();
    let journals = leases.journals();
    let stored = journals.hash_of(&tenant, &receipt.session, receipt.seq);
    stored.await.unwrap() == Some(receipt.sha256)
}

/// Checks that an answer's receipt is on the journal.
pub(crate) async fn assert_receipt(leases: &Leases, answer: &LeaseAnswer, context: &str) {
    let receipt = answer.receipt.as_ref().unwrap();
    assert!(is_on_the_journal(leases, receipt).await, "{context}");
}
