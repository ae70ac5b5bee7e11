//! One simulation: a store, hosts that come and go, and what their callers know.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::SignedDuration;
use spillbox::artifact::confirmed::ConfirmedManifest;
use spillbox::digest::Sha256Digest;
use spillbox::ids::{ArtifactRef, SessionId, SessionKey, Tenant};
use spillbox::lease::evaluate::Operation;
use spillbox::lease::failure::{LeaseError, PrepareError};
use spillbox::lease::journal::{JournalError, Receipt};
use spillbox::lease::leases::LeaseAnswer;
use spillbox::store::attest::Fence;
use uuid::Uuid;

use crate::gate::Pulse;
use crate::history::{Call, Told};
use crate::host::Host;
use crate::random::Dice;
use crate::store::SimStore;

/// Hosts at a time.
pub(crate) const HOSTS: u16 = 3;

/// An artifact that somebody got a receipt of.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) session: usize,
    pub(crate) artifact: ArtifactRef,
    pub(crate) manifest: ConfirmedManifest,
    pub(crate) bytes: Bytes,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) sim: Arc<SimStore>,
    pub(crate) dice: Arc<Dice>,
    pub(crate) tenant: Tenant,
    /// The second one is a fork of the first.
    pub(crate) sessions: [SessionId; 2],
    hosts: Mutex<Vec<Arc<Host>>>,
    lives: AtomicU64,
    fence: Fence,
    events: AtomicU64,
    pub(crate) saved: Mutex<Vec<Known>>,
    pub(crate) plans: Mutex<Vec<(Uuid, Sha256Digest)>>,
    pub(crate) calls: Mutex<Vec<Call>>,
    /// Whether anything is erased here.
    pub(crate) erases: bool,
    /// Numbers transactions.
    pub(crate) transactions: AtomicU64,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that has begun.
pub(crate) struct Begun {
    session: usize,
    operation: Option<Operation>,
    at: u64,
    records: u64,
}

impl World {
    pub(crate) fn new(sim: Arc<SimStore>, dice: Arc<Dice>, fence: Fence, erases: bool) -> Self {
        let sessions: [SessionId; 2] = ["s0", "s1"].map(|name| name.parse().unwrap());
        for session in &sessions {
            sim.oracle.watch(&sim.truth, session);
        }
        let world = Self {
            tenant: Tenant::default(),
            sessions,
            hosts: Mutex::default(),
            lives: AtomicU64::new(0),
            fence,
            events: AtomicU64::new(0),
            saved: Mutex::default(),
            plans: Mutex::default(),
            calls: Mutex::default(),
            erases,
            transactions: AtomicU64::new(0),
            sim,
            dice,
        };
        for index in 0..HOSTS {
            let host = world.new_host(index);
            lock(&world.hosts).push(host);
        }
        world
    }

    fn new_host(&self, index: u16) -> Arc<Host> {
        let life = u16::try_from(self.lives.fetch_add(1, Ordering::Relaxed)).unwrap();
        let skew = match self.dice.below(10) {
            0..=5 => SignedDuration::ZERO,
            6 => SignedDuration::from_secs(200),
            7 => SignedDuration::from_secs(-200),
            8 => SignedDuration::from_hours(49),
            _ => SignedDuration::from_hours(-49),
        };
        Arc::new(Host::start(&self.sim, (index, life), skew, self.fence))
    }

    /// A host with empty caches and a true clock, for those that look at the end.
    pub(crate) fn judge(&self) -> Arc<Host> {
        let life = u16::try_from(self.lives.fetch_add(1, Ordering::Relaxed)).unwrap();
        Arc::new(Host::start(
            &self.sim,
            (9, life),
            SignedDuration::ZERO,
            self.fence,
        ))
    }

    pub(crate) fn any_host(&self) -> Arc<Host> {
        Arc::clone(self.dice.pick(&lock(&self.hosts)))
    }

    /// A host dies, and another one starts in its place.
    pub(crate) fn kill(&self, index: u16) {
        let new = self.new_host(index);
        let old = std::mem::replace(&mut lock(&self.hosts)[usize::from(index)], new);
        self.sim.note(&old.name, "dies");
        old.gate.set(Pulse::Dead);
    }

    pub(crate) fn pause(&self, index: u16) {
        let host = Arc::clone(&lock(&self.hosts)[usize::from(index)]);
        self.sim.note(&host.name, "pauses");
        host.gate.set(Pulse::Paused);
    }

    pub(crate) fn resume(&self, index: u16) {
        let host = Arc::clone(&lock(&self.hosts)[usize::from(index)]);
        if host.gate.pulse() == Pulse::Paused {
            self.sim.note(&host.name, "goes on");
            host.gate.set(Pulse::Runs);
        }
    }

    pub(crate) fn session_key(&self, session: usize) -> SessionKey {
        SessionKey::derive(&self.tenant, &self.sessions[session])
    }

    pub(crate) fn any_saved(&self) -> Option<Known> {
        let saved = lock(&self.saved);
        (!saved.is_empty()).then(|| self.dice.pick(&saved).clone())
    }

    fn event(&self) -> u64 {
        self.events.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn begin(&self, session: usize, operation: Option<Operation>) -> Begun {
        let records = self.sim.oracle.len(&self.session_key(session));
        Begun {
            session,
            operation,
            at: self.event(),
            records,
        }
    }

    /// Writes down what a call was told; what is acknowledged has to stand.
    pub(crate) fn told(&self, host: &Host, begun: Begun, answer: Told) {
        let session = self.session_key(begun.session);
        let operation = begun
            .operation
            .as_ref()
            .map_or("read".to_owned(), |operation| {
                let text = format!("{operation:?}");
                let name = text.split([' ', '(']).next().unwrap_or_default();
                let transaction = crate::history::transaction_of(operation);
                format!(
                    "{name} {}",
                    transaction.map_or("", |transaction| transaction.as_str())
                )
            });
        let text = match &answer {
            Told::Stands {
                is_new,
                receipt,
                lease,
            } => format!(
                "{} by record {} ({})",
                if *is_new { "done" } else { "is so" },
                receipt
                    .as_ref()
                    .map_or("none".to_owned(), |receipt| receipt.seq.to_string()),
                lease.as_ref().map_or("-", |lease| lease.state)
            ),
            Told::Refused(refusal) => format!("refused: {refusal}"),
            Told::Unknown(receipt) => format!("unknown, record {}", receipt.seq),
            Told::Failed => "failed".to_owned(),
        };
        self.sim.note(
            &host.name,
            &format!("* s{} {operation}: {text}", begun.session),
        );
        if let Told::Stands {
            receipt: Some(receipt),
            ..
        } = &answer
        {
            self.sim.oracle.acknowledged(&session, receipt, &operation);
        }
        lock(&self.calls).push(Call {
            name: self.sessions[begun.session].clone(),
            session,
            operation: begun.operation,
            span: (begun.at, self.event()),
            records: (begun.records, self.sim.oracle.len(&session)),
            answer,
        });
    }
}

/// What a journal's answer says.
pub(crate) fn told_of(error: &JournalError) -> Told {
    match error {
        JournalError::Refused(refusal) => Told::Refused(refusal.clone()),
        JournalError::OutcomeUnknown { receipt, .. } => Told::Unknown(Receipt::clone(receipt)),
        JournalError::Unreadable(_)
        | JournalError::Store(_)
        | JournalError::Contended
        | JournalError::Saturated
        | JournalError::Closed => Told::Failed,
    }
}

pub(crate) fn told_of_lease(answer: Option<Result<LeaseAnswer, LeaseError>>) -> Told {
    match answer {
        Some(Ok(answer)) => stands(answer),
        Some(Err(LeaseError::Journal(error))) => told_of(&error),
        Some(Err(LeaseError::ReadOnly | LeaseError::OwnerUnsealed(_))) | None => Told::Failed,
    }
}

pub(crate) fn told_of_prepare(answer: Option<Result<LeaseAnswer, PrepareError>>) -> Told {
    match answer {
        Some(Ok(answer)) => stands(answer),
        Some(Err(PrepareError::Journal(error))) => told_of(&error),
        Some(Err(_)) | None => Told::Failed,
    }
}

fn stands(answer: LeaseAnswer) -> Told {
    Told::Stands {
        is_new: answer.is_new,
        receipt: answer.receipt,
        lease: Some(Box::new(answer.lease)),
    }
}
