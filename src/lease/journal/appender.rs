//! The task that appends to one journal.
//!
//! Rules that carry the safety:
//! * A slot that was sent bytes is sent the same bytes until it is decided, also after its callers were
//!   told that the outcome is unknown ([`Pending`]).
//! * After every lost slot the winner's record is folded and the operations are evaluated again: going
//!   on to the next number without folding loses data in two steps.
//! * An operation is evaluated again only while its caller is waiting.
//! * A false "lost" leaks, a false "won" destroys: nothing but our own bytes in the slot is a win.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{error, warn};

use super::{Answer, JournalError, Message, Receipt, Request};
use crate::digest::Sha256Digest;
use crate::lease::batch::{Added, Batch};
use crate::lease::evaluate::{Operation, Refusal};
use crate::lease::open::OpenError;
use crate::lease::pace::Pace;
use crate::lease::record::Record;
use crate::lease::site::Site;
use crate::lease::slot::{self, Outcome, Stored};
use crate::lease::view::View;
use crate::limits::{JOURNAL_SLOT_DEADLINE, MAX_RECORD_ENTRIES};
use crate::store::{StoreError, StoreErrorKind};

/// Bytes that were sent to a slot whose outcome is unknown.
#[derive(Debug, Clone)]
struct Pending {
    seq: u64,
    bytes: Bytes,
}

/// What a request waits for, once its batch was built.
#[derive(Debug)]
enum Waiting {
    /// Its entries are in the record.
    Entry(Request),
    /// It is so already, or cannot be; perhaps only through an entry of the record.
    Answer {
        request: Request,
        refusal: Option<Refusal>,
        rests_on_batch: bool,
    },
}

#[derive(Debug)]
pub(super) struct Appender {
    site: Site,
    messages: mpsc::Receiver<Message>,
    /// Who waits until everything that was asked before is answered.
    drained: Vec<oneshot::Sender<()>>,
    queue: VecDeque<Request>,
    view: Option<View>,
    pending: Option<Pending>,
    pace: Pace,
    /// Before this the other writers have their turn.
    not_before: Instant,
    /// Whether they had one, so that the next slot is probably taken: a look costs less than a write.
    looks_first: bool,
}

impl Appender {
    pub(super) fn new(site: Site, messages: mpsc::Receiver<Message>) -> Self {
        Self {
            site,
            messages,
            drained: Vec::new(),
            queue: VecDeque::new(),
            view: None,
            pending: None,
            pace: Pace::default(),
            not_before: Instant::now(),
            looks_first: false,
        }
    }

    pub(super) async fn run(mut self) {
        while self.receive().await {
            // Readers need not wait for the other writers' turn.
            let is_reading = |request: &Request| request.operation == Operation::Read;
            if self.not_before > Instant::now() && !self.queue.iter().all(is_reading) {
                sleep_until(self.not_before).await;
                self.receive_waiting();
            }
            if let Err(error) = self.serve().await {
                // Nothing of what is queued was sent anywhere.
                self.view = None;
                for request in self.queue.drain(..) {
                    request.answer(Err(error.clone()));
                }
            }
        }
    }

    /// Waits for something to do; `false` when there will be nothing any more.
    async fn receive(&mut self) -> bool {
        while self.queue.is_empty() {
            for drained in self.drained.drain(..) {
                let _ = drained.send(());
            }
            match self.messages.recv().await {
                Some(message) => self.take(message),
                None => return false,
            }
        }
        self.receive_waiting();
        true
    }

    fn receive_waiting(&mut self) {
        while self.queue.len() < MAX_RECORD_ENTRIES {
            match self.messages.try_recv() {
                Ok(message) => self.take(message),
                Err(_) => break,
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Ask(request) => self.queue.push_back(request),
            Message::Drain(drained) => self.drained.push(drained),
        }
    }

    /// Builds and decides one record, or answers what needs none. An error concerns everything that is
    /// queued, of which nothing was sent.
    async fn serve(&mut self) -> Result<(), JournalError> {
        self.drop_unwanted();
        if self.queue.is_empty() && self.pending.is_none() {
            return Ok(());
        }
        let mut view = self.take_view().await?;
        self.decide_pending(&mut view).await?;
        if std::mem::take(&mut self.looks_first) {
            view.catch_up(&self.site, &mut self.pace).await?;
        }
        if view.has_lost_date() {
            // Without a view the next round opens the journal, and its replies bring a date.
            return Ok(());
        }
        let mut batch = Batch::new(view.next_seq(), view.as_of(), view.state());
        let waiting = self.fill(&mut batch);
        if batch.entries().is_empty() {
            self.answer_fresh(view, waiting).await;
        } else {
            self.append(view, batch, waiting).await;
        }
        Ok(())
    }

    /// Lets go of operations that nobody waits for, and of those that lost slots for too long.
    fn drop_unwanted(&mut self) {
        let now = Instant::now();
        for request in std::mem::take(&mut self.queue) {
            if !request.is_waited_for() {
                continue;
            }
            if request.deadline <= now {
                request.answer(Err(JournalError::Contended));
            } else {
                self.queue.push_back(request);
            }
        }
    }

    async fn take_view(&mut self) -> Result<View, OpenError> {
        match self.view.take() {
            Some(view) if !view.is_stale() => Ok(view),
            Some(_) | None => View::open(&self.site, &mut self.pace).await,
        }
    }

    /// Decides the slot that an earlier batch left undecided: with the same bytes, whoever waits.
    async fn decide_pending(&mut self, view: &mut View) -> Result<(), JournalError> {
        let Some(pending) = self.pending.take() else {
            return Ok(());
        };
        if pending.seq < view.next_seq() {
            // The fold has passed it: it is occupied, by us or by somebody else.
            return Ok(());
        }
        while view.next_seq() < pending.seq && !view.prove(&self.site, &mut self.pace).await? {}
        if view.next_seq() != pending.seq {
            let is_passed = view.next_seq() > pending.seq;
            self.pending = Some(pending).filter(|_| !is_passed);
            let older = || self.shows_an_older_state(view.next_seq());
            return if is_passed { Ok(()) } else { Err(older()) };
        }
        match self.decide(&pending, true).await {
            Outcome::Won { date } => {
                let bytes = pending.bytes;
                view.fold_own(&Stored { bytes, date }, &mut self.pace)?;
            }
            Outcome::Lost(stored) => {
                view.fold_others(&self.site, &stored, &mut self.pace)
                    .await?;
            }
            Outcome::Failed(error) | Outcome::Unknown(error) => {
                self.pending = Some(pending);
                return Err(JournalError::Store(error));
            }
        }
        Ok(())
    }

    fn shows_an_older_state(&self, next_seq: u64) -> JournalError {
        JournalError::Store(StoreError::new(
            StoreErrorKind::Unavailable,
            "get",
            self.site.record_key(next_seq),
            "the store shows an older state than it did",
        ))
    }

    /// Puts as much of the queue into the batch as fits.
    fn fill(&mut self, batch: &mut Batch) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        while let Some(request) = self.queue.pop_front() {
            let has_conflict = self.site.has_conflict();
            if has_conflict && request.operation.is_destructive() {
                request.answer(Err(JournalError::Refused(Refusal::Suspect)));
                continue;
            }
            waiting.push(match batch.add(&request.operation) {
                Added::Appended => Waiting::Entry(request),
                Added::Settled { rests_on_batch } => Waiting::Answer {
                    request,
                    refusal: None,
                    rests_on_batch,
                },
                Added::Refused {
                    refusal,
                    rests_on_batch,
                } => Waiting::Answer {
                    request,
                    refusal: Some(refusal),
                    rests_on_batch,
                },
                Added::Full => {
                    self.queue.push_front(request);
                    break;
                }
            });
        }
        waiting
    }

    /// Answers operations that append nothing, once the first unknown slot was seen absent.
    async fn answer_fresh(&mut self, mut view: View, waiting: Vec<Waiting>) {
        match view.prove(&self.site, &mut self.pace).await {
            Ok(true) => {
                self.answer_all(&view, waiting);
                self.view = Some(view);
            }
            // Somebody was there: everything is evaluated again on what they left.
            Ok(false) => {
                self.view = Some(view);
                self.requeue(waiting);
            }
            Err(error) => {
                let error = JournalError::from(error);
                for waiting in waiting {
                    waiting.into_request().answer(Err(error.clone()));
                }
            }
        }
    }

    async fn append(&mut self, view: View, batch: Batch, waiting: Vec<Waiting>) {
        let seq = view.next_seq();
        let record = Record {
            tenant: self.site.tenant().clone(),
            session: self.site.session().clone(),
            seq,
            prev: view.chain().head(),
            writer: self.site.around().writer,
            nonce: self.site.fresh_id(),
            as_of: view.as_of(),
            entries: batch.into_entries(),
        };
        let bytes: Bytes = match record.encode() {
            Ok(bytes) => bytes.into(),
            Err(error) => {
                error!(session = %self.site.session(), seq, "a batch that cannot be encoded: {error}");
                for waiting in waiting {
                    let refused = JournalError::Refused(Refusal::TooLarge);
                    waiting.into_request().answer(Err(refused));
                }
                return;
            }
        };
        let pending = Pending { seq, bytes };
        let sent = Instant::now();
        let outcome = self.decide(&pending, false).await;
        match outcome {
            Outcome::Won { date } => {
                self.pace.wrote_in(sent.elapsed());
                self.won(view, pending, date, waiting).await;
            }
            Outcome::Lost(stored) => {
                self.requeue(waiting);
                self.lost(view, &stored).await;
            }
            Outcome::Failed(error) => {
                self.view = Some(view);
                for waiting in waiting {
                    let error = JournalError::Store(error.clone());
                    waiting.into_request().answer(Err(error));
                }
            }
            Outcome::Unknown(error) => {
                self.view = Some(view);
                self.unknown(pending, error, waiting);
            }
        }
    }

    /// Folds the winner's record, waits a moment, and then looks who else was there: what came in the
    /// meantime is met by reads and not by another lost write.
    async fn lost(&mut self, mut view: View, stored: &Stored) {
        let seq = view.next_seq();
        let mut folded = view.fold_other(&self.site, stored, &mut self.pace).await;
        let writer = self.site.around().writer;
        sleep(self.pace.loser_pause(writer, self.site.chance())).await;
        if folded.is_ok() {
            folded = view.catch_up(&self.site, &mut self.pace).await;
        }
        match folded {
            Ok(()) => self.view = Some(view),
            // The operations are not written; the next open says what is wrong.
            Err(error) => {
                warn!(session = %self.site.session(), seq, "a slot was lost to what cannot be folded: {error}");
            }
        }
    }

    async fn decide(&self, pending: &Pending, may_have_landed: bool) -> Outcome {
        let site = &self.site;
        slot::decide(
            &*site.around().store,
            &site.record_key(pending.seq),
            &pending.bytes,
            may_have_landed,
            Instant::now() + JOURNAL_SLOT_DEADLINE,
            &|| site.chance(),
        )
        .await
    }

    async fn won(
        &mut self,
        mut view: View,
        pending: Pending,
        date: Option<jiff::Timestamp>,
        waiting: Vec<Waiting>,
    ) {
        let seq = pending.seq;
        let stored = Stored {
            bytes: pending.bytes,
            date,
        };
        let proven = if view.is_unproven_at(date) {
            View::open_with(&self.site, seq, &stored.bytes, &mut self.pace).await
        } else {
            view.fold_own(&stored, &mut self.pace).map(|()| Some(view))
        };
        match proven {
            Ok(Some(mut view)) => {
                view.checkpoint_if_due(&self.site);
                let linger = self.pace.linger(self.site.chance());
                self.not_before = Instant::now() + linger;
                self.looks_first = !linger.is_zero();
                // The state after our record, which may not be the last by now, is not worth a second
                // fold: what is answered is the state with everything that is known to have landed.
                let receipt = self.receipt(seq, Sha256Digest::of(&stored.bytes));
                self.answer_landed(&view, &receipt, waiting);
                self.view = Some(view);
            }
            // The slot had been emptied behind us: our record stands where nobody reads.
            Ok(None) => self.requeue(waiting),
            Err(error) => {
                warn!(session = %self.site.session(), seq, "a record was written to a journal that cannot be folded: {error}");
                let receipt = Box::new(self.receipt(seq, Sha256Digest::of(&stored.bytes)));
                let cause = match error {
                    OpenError::Store(error) => error,
                    OpenError::Broken { .. } | OpenError::Gap { .. } => StoreError::new(
                        StoreErrorKind::Rejected,
                        "get",
                        self.site.record_key(seq),
                        error.to_string(),
                    ),
                };
                for waiting in waiting {
                    let (receipt, cause) = (receipt.clone(), cause.clone());
                    waiting
                        .into_request()
                        .answer(Err(JournalError::OutcomeUnknown { receipt, cause }));
                }
            }
        }
    }

    /// Tells the callers of an undecided slot; from here on it is decided for its own sake only.
    fn unknown(&mut self, pending: Pending, error: StoreError, waiting: Vec<Waiting>) {
        let receipt = Box::new(self.receipt(pending.seq, Sha256Digest::of(&pending.bytes)));
        for waiting in waiting {
            let rests_on_record = match &waiting {
                Waiting::Entry(_) => true,
                Waiting::Answer { rests_on_batch, .. } => *rests_on_batch,
            };
            let cause = error.clone();
            waiting.into_request().answer(Err(if rests_on_record {
                let receipt = receipt.clone();
                JournalError::OutcomeUnknown { receipt, cause }
            } else {
                JournalError::Store(cause)
            }));
        }
        self.pending = Some(pending);
    }

    fn receipt(&self, seq: u64, sha256: Sha256Digest) -> Receipt {
        Receipt {
            session: self.site.session().clone(),
            seq,
            sha256,
        }
    }

    /// Answers with the journal as it was just seen.
    fn answer_all(&self, view: &View, waiting: Vec<Waiting>) {
        let last = view.next_seq().checked_sub(1);
        let receipt = last.map(|seq| self.receipt(seq, view.chain().head()));
        for waiting in waiting {
            self.answer(view, receipt.clone(), waiting);
        }
    }

    /// Answers with the record that was just written: before its slot was taken it was absent, so that
    /// it proves the state before it as well.
    fn answer_landed(&self, view: &View, receipt: &Receipt, waiting: Vec<Waiting>) {
        for waiting in waiting {
            self.answer(view, Some(receipt.clone()), waiting);
        }
    }

    fn answer(&self, view: &View, receipt: Option<Receipt>, waiting: Waiting) {
        let (request, is_new) = match waiting {
            Waiting::Answer {
                request,
                refusal: Some(refusal),
                ..
            } => return request.answer(Err(JournalError::Refused(refusal))),
            Waiting::Answer { request, .. } => (request, false),
            Waiting::Entry(request) => (request, true),
        };
        request.answer(Ok(Answer {
            is_new,
            receipt,
            state: Arc::clone(view.state()),
            has_conflict: self.site.has_conflict(),
        }));
    }

    /// Puts operations back to the front of the queue, in their order, for as long as somebody waits.
    fn requeue(&mut self, waiting: Vec<Waiting>) {
        for waiting in waiting.into_iter().rev() {
            let request = waiting.into_request();
            if request.is_waited_for() {
                self.queue.push_front(request);
            }
        }
    }
}

impl Waiting {
    fn into_request(self) -> Request {
        match self {
            Self::Entry(request) | Self::Answer { request, .. } => request,
        }
    }
}
