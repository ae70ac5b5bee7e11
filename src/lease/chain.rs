//! A verified prefix of a journal: its state, and the place and hash that the next record has to fit.

use std::sync::Arc;

use crate::digest::Sha256Digest;
use crate::ids::{SessionId, Tenant};
use crate::lease::record::{DecodeError, Expected, Record, genesis_hash};
use crate::lease::state::State;

/// The folded prefix of one journal. Grows by whole records that fit, and by nothing else.
#[derive(Debug, Clone)]
pub struct Chain {
    tenant: Tenant,
    session: SessionId,
    next_seq: u64,
    head: Sha256Digest,
    state: Arc<State>,
}

impl Chain {
    /// Returns the empty prefix.
    pub fn genesis(tenant: Tenant, session: SessionId) -> Self {
        let head = genesis_hash(&tenant, &session);
        Self::resume(tenant, session, 0, head, Arc::default())
    }

    /// Returns a prefix of `next_seq` records that was verified before.
    pub(in crate::lease) fn resume(
        tenant: Tenant,
        session: SessionId,
        next_seq: u64,
        head: Sha256Digest,
        state: Arc<State>,
    ) -> Self {
        Self {
            tenant,
            session,
            next_seq,
            head,
            state,
        }
    }

    /// Appends the stored bytes of the next record.
    ///
    /// # Errors
    /// They are not the next record; nothing was changed.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Record, DecodeError> {
        let expected = Expected {
            tenant: &self.tenant,
            session: &self.session,
            seq: self.next_seq,
            prev: self.head,
            sha256: None,
        };
        let record = Record::decode(bytes, &expected)?;
        Arc::make_mut(&mut self.state).fold(&record);
        self.next_seq += 1;
        self.head = Sha256Digest::of(bytes);
        Ok(record)
    }

    /// Returns the journal's tenant.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Returns the journal's session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the first place that this prefix does not know.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Returns the hash of the last record, or of the journal's name where there is none.
    pub fn head(&self) -> Sha256Digest {
        self.head
    }

    /// Returns the folded state.
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::lease::entry::Entry;

    fn record(chain: &Chain, nonce: u128, entries: Vec<Entry>) -> Vec<u8> {
        let record = Record {
            tenant: chain.tenant().clone(),
            session: chain.session().clone(),
            seq: chain.next_seq(),
            prev: chain.head(),
            writer: Uuid::nil(),
            nonce: Uuid::from_u128(nonce),
            as_of: None,
            entries,
        };
        record.encode().unwrap()
    }

    fn begin() -> Vec<Entry> {
        vec![Entry::Genesis { features: vec![] }, Entry::Noop]
    }

    #[test]
    fn only_the_next_record_fits() {
        let mut chain = Chain::genesis(Tenant::default(), "s".parse().unwrap());
        let first = record(&chain, 1, begin());
        let other_first = record(&chain, 2, begin());
        chain.push(&first).unwrap();
        let second = record(&chain, 3, vec![Entry::Noop]);
        // The same record twice, a fork's second record, and a record of another session.
        assert!(matches!(
            chain.push(&first),
            Err(DecodeError::WrongSequence { .. })
        ));
        let mut fork = Chain::genesis(Tenant::default(), "s".parse().unwrap());
        fork.push(&other_first).unwrap();
        assert!(matches!(
            fork.push(&second),
            Err(DecodeError::BadLink { .. })
        ));
        let mut foreign = Chain::genesis(Tenant::default(), "t".parse().unwrap());
        assert!(matches!(
            foreign.push(&first),
            Err(DecodeError::ForeignSession { .. })
        ));
        assert_eq!((foreign.next_seq(), fork.next_seq()), (0, 1));
        chain.push(&second).unwrap();
        assert_eq!(chain.next_seq(), 2);
        assert_eq!(chain.head(), Sha256Digest::of(&second));
    }

    /// Equal bytes of the first records, equal states.
    #[test]
    fn the_fold_is_a_function_of_the_bytes() {
        let mut a = Chain::genesis(Tenant::default(), "s".parse().unwrap());
        let first = record(&a, 1, begin());
        a.push(&first).unwrap();
        let mut b = Chain::genesis(Tenant::default(), "s".parse().unwrap());
        b.push(&first).unwrap();
        assert_eq!(a.state(), b.state());
        assert_eq!(a.head(), b.head());
    }
}
