//! What a replica knows of a journal: a verified prefix, kept warm.
//!
//! The prefix may be behind; it is never wrong. An append is aimed at the first slot that it does not
//! know, and the store says whether somebody was there first. An answer that appends nothing is given
//! only after that slot was seen absent since it was asked for.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::digest::Sha256Digest;
use crate::lease::chain::Chain;
use crate::lease::checkpoint::Tail;
use crate::lease::open::{self, OpenError};
use crate::lease::pace::Pace;
use crate::lease::record::Record;
use crate::lease::site::Site;
use crate::lease::slot::{self, Stored};
use crate::lease::state::State;
use crate::limits::{JOURNAL_FAR_BEHIND, JOURNAL_PROOF_AGE};

/// Slots that are looked at together once one was lost: a winner is often followed by another.
const LOOK_AHEAD: u64 = 3;

/// A warm prefix.
#[derive(Debug)]
pub struct View {
    chain: Chain,
    tail: Tail,
    /// When the store last showed that this prefix is the journal, by its date and by our stopwatch.
    proof: (Option<Timestamp>, Instant),
    /// The store's date as it was last told.
    date: (Option<Timestamp>, Instant),
}

impl View {
    /// Folds the journal anew. Where that took long, a checkpoint is written for the next one.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(site: &Site, pace: &mut Pace) -> Result<Self, OpenError> {
        let asked = Instant::now();
        let opened = open::open(site).await?;
        for writer in opened.writers {
            pace.saw(writer);
        }
        let mut view = Self {
            chain: opened.chain,
            tail: opened.tail,
            proof: (opened.date, asked),
            date: (opened.date, asked),
        };
        if view.tail.is_long() {
            view.write_checkpoint(site);
        }
        Ok(view)
    }

    /// Folds the journal anew, and requires that our record `seq` stands on it: as its end, or named by
    /// the record after it. `None` where it does not. That the slot holds our bytes proves nothing: it
    /// may have been emptied behind us, and what is written there then is read by nobody.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open_with(
        site: &Site,
        seq: u64,
        own: &[u8],
        pace: &mut Pace,
    ) -> Result<Option<Self>, OpenError> {
        let mut view = Self::open(site, pace).await?;
        if view.next_seq() <= seq {
            // A listing that does not show it yet.
            while !view.prove(site, pace).await? {}
        }
        let own = Sha256Digest::of(own);
        let is_on_it = match view.next_seq().checked_sub(seq) {
            None | Some(0) => false,
            Some(1) => view.chain.head() == own,
            Some(_) => {
                let next = slot::read(&*site.around().store, &site.record_key(seq + 1)).await?;
                let (tenant, session) = (site.tenant().clone(), site.session().clone());
                let mut ours = Chain::resume(tenant, session, seq + 1, own, Arc::default());
                next.is_some_and(|next| ours.push(&next.bytes).is_ok())
            }
        };
        Ok(is_on_it.then_some(view))
    }

    /// Returns the first slot that this prefix does not know.
    pub fn next_seq(&self) -> u64 {
        self.chain.next_seq()
    }

    /// Returns the prefix.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Returns the folded state.
    pub fn state(&self) -> &Arc<State> {
        self.chain.state()
    }

    /// Returns the store's date as it was last told, where that is not long ago.
    pub fn as_of(&self) -> Option<Timestamp> {
        let (date, told) = self.date;
        date.filter(|_| told.elapsed() < JOURNAL_PROOF_AGE)
    }

    /// Returns whether the store tells dates and the last one is too long ago: a reference that is appended
    /// now would have none, and what was last referred to at no time is never old.
    pub fn has_lost_date(&self) -> bool {
        self.date.0.is_some() && self.as_of().is_none()
    }

    /// Returns whether the last proof is too old to trust the prefix without folding it anew.
    pub fn is_stale(&self) -> bool {
        self.proof.1.elapsed() >= JOURNAL_PROOF_AGE
    }

    /// Returns whether a reply of this date came so long after the last proof that the slot may have
    /// been emptied and filled again in between.
    pub fn is_unproven_at(&self, date: Option<Timestamp>) -> bool {
        let Some((proven, date)) = self.proof.0.zip(date) else {
            return self.is_stale();
        };
        let age = date.duration_since(proven);
        Duration::try_from(age).is_ok_and(|age| age >= JOURNAL_PROOF_AGE)
    }

    /// Folds our own record, which the store has taken.
    ///
    /// # Errors
    /// [`OpenError::Broken`]: we built a record that does not follow its prefix, a defect.
    pub fn fold_own(&mut self, stored: &Stored, pace: &mut Pace) -> Result<(), OpenError> {
        let seq = self.next_seq();
        let record = self.chain.push(&stored.bytes);
        let record = record.map_err(|error| OpenError::Broken { seq, error })?;
        self.note(&record, stored, pace);
        Ok(())
    }

    /// Folds what stands in the first unknown slot, and whatever follows it.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn fold_others(
        &mut self,
        site: &Site,
        stored: &Stored,
        pace: &mut Pace,
    ) -> Result<(), OpenError> {
        self.fold_other(site, stored, pace).await?;
        self.catch_up(site, pace).await
    }

    /// Folds what stands in the first unknown slot.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn fold_other(
        &mut self,
        site: &Site,
        stored: &Stored,
        pace: &mut Pace,
    ) -> Result<(), OpenError> {
        let seq = self.next_seq();
        let record = open::push(site, &mut self.chain, seq, stored).await?;
        self.note(&record, stored, pace);
        Ok(())
    }

    /// Folds the records that follow, as far as they are there. Far behind, it opens anew.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn catch_up(&mut self, site: &Site, pace: &mut Pace) -> Result<(), OpenError> {
        let behind_from = self.next_seq();
        let mut is_absent = false;
        while !is_absent {
            let next = self.next_seq();
            if next - behind_from > JOURNAL_FAR_BEHIND {
                *self = Self::open(site, pace).await?;
                return Ok(());
            }
            let keys = (next..next.saturating_add(LOOK_AHEAD)).map(|seq| site.record_key(seq));
            let store = &*site.around().store;
            let reads = keys.map(|key| async move { slot::read(store, &key).await });
            for read in join_all(reads).await {
                // Only a contiguous run is folded; what lies beyond a hole is met again later.
                match read? {
                    Some(stored) if !is_absent => self.fold_other(site, &stored, pace).await?,
                    Some(_) => {}
                    None => is_absent = true,
                }
            }
        }
        Ok(())
    }

    /// Looks at the first unknown slot; `true` when it was absent, so that the prefix is the journal as
    /// of now. Else what is there was folded, and the question must be asked again.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn prove(&mut self, site: &Site, pace: &mut Pace) -> Result<bool, OpenError> {
        let asked = Instant::now();
        let key = site.record_key(self.next_seq());
        match slot::read(&*site.around().store, &key).await? {
            None => {
                // An absence brings no date; the last one and the time since stand for it.
                let (date, told) = self.date;
                let since = jiff::SignedDuration::try_from(asked.duration_since(told)).ok();
                let now = date.zip(since).and_then(|(d, s)| d.checked_add(s).ok());
                self.proof = (now, asked);
                Ok(true)
            }
            Some(stored) => {
                self.fold_others(site, &stored, pace).await?;
                Ok(false)
            }
        }
    }

    /// Writes the checkpoint through our record `seq` in the background, where it is due.
    pub fn checkpoint_if_due(&mut self, site: &Site) {
        self.tail.checkpoint_bytes = self.tail.checkpoint_bytes.max(site.checkpoint_bytes());
        if self.tail.is_due(self.next_seq().saturating_sub(1)) {
            self.write_checkpoint(site);
        }
    }

    fn write_checkpoint(&mut self, site: &Site) {
        let (site_of_task, chain) = (site.clone(), self.chain.clone());
        self.tail = Tail {
            checkpoint_bytes: self.tail.checkpoint_bytes,
            ..Tail::default()
        };
        site.around()
            .tracker
            .spawn(async move { open::write_checkpoint(&site_of_task, &chain).await });
    }

    fn note(&mut self, record: &Record, stored: &Stored, pace: &mut Pace) {
        pace.saw(record.writer);
        self.tail.records += 1;
        self.tail.bytes += stored.bytes.len() as u64;
        let now = Instant::now();
        if stored.date.is_some() {
            self.date = (stored.date, now);
            self.proof = (stored.date, now);
        } else {
            self.proof.1 = now;
        }
    }
}

#[cfg(test)]
mod tests;
