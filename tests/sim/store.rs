//! The simulated store: true state inside, and between it and the hosts everything that a network and
//! a lax store do to requests. A request that was sent is on its way whatever becomes of its sender.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use spillbox::clock::{Clock, SharedClock};
use spillbox::store::keys::{Key, KeySpace};
use spillbox::store::memory::MemoryStore;
use spillbox::store::{
    DeleteFence, DeleteReceipt, GetOptions, GetReply, Head, ListPage, ListRequest, Listed, Object,
    ObjectMeta, ObjectStore, Part, Payload, PutMode, PutReceipt, StoreError, StoreErrorKind,
    Upload, UploadPage, VersionPage, Versioning,
};

use crate::clock::StoreClock;
use crate::fault::{Fate, Profile, Sight};
use crate::gate::{Gate, Pulse};
use crate::oracle::Oracle;
use crate::random::Dice;
use crate::request::{Reply, Request};
use crate::short::short;
use crate::trace::Trace;
use crate::truth::Truth;

/// An earlier state of one key.
#[derive(Debug, Clone)]
struct Snapshot {
    meta: ObjectMeta,
    bytes: Bytes,
}

/// The store, the network, and what is known of both.
#[derive(Debug)]
pub(crate) struct SimStore {
    pub(crate) truth: Truth,
    pub(crate) clock: Arc<StoreClock>,
    pub(crate) dice: Arc<Dice>,
    pub(crate) profile: Profile,
    pub(crate) trace: Arc<Trace>,
    pub(crate) oracle: Oracle,
    pub(crate) counts: Counts,
    /// What each key showed, oldest first; every one began absent.
    past: Mutex<BTreeMap<String, Vec<Option<Snapshot>>>>,
}

/// What a simulation was made of.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requests: AtomicU64,
    pub(crate) faults: AtomicU64,
    pub(crate) lies: AtomicU64,
    pub(crate) late: AtomicU64,
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl SimStore {
    pub(crate) fn new(
        dice: Arc<Dice>,
        profile: Profile,
        clock: Arc<StoreClock>,
        trace: Arc<Trace>,
    ) -> Self {
        let keys = KeySpace::new("").unwrap();
        let memory = MemoryStore::new(Arc::clone(&clock) as SharedClock);
        Self {
            oracle: Oracle::new(!profile.is_stale_everywhere, !profile.is_stale_in_journals),
            truth: Truth::new(memory, keys),
            clock,
            dice,
            profile,
            trace,
            counts: Counts::default(),
            past: Mutex::default(),
        }
    }

    pub(crate) fn note(&self, host: &str, text: &str) {
        self.trace.line(self.clock.elapsed(), host, text);
    }

    /// A host's way to the store.
    pub(crate) fn seen_from(self: &Arc<Self>, host: String, gate: Arc<Gate>) -> Arc<HostStore> {
        let sim = Arc::clone(self);
        Arc::new(HostStore { sim, host, gate })
    }

    /// Applies a write to the true state; every invariant is looked at.
    fn apply(&self, host: &str, request: Request) -> Result<Reply, StoreError> {
        let request = match request {
            Request::Delete(key, DeleteFence::IfMatch(_))
                if self.profile.ignores_delete_conditions =>
            {
                Request::Delete(key, DeleteFence::None)
            }
            other => other,
        };
        let changed = request.changes().cloned();
        let sent = request.clone();
        if let Some(key) = &changed {
            self.oracle.before(&self.truth, host, &sent, key);
        }
        let reply = request.apply(&self.truth.memory);
        if let (Some(key), true) = (changed, reply.is_ok()) {
            self.remember(&key);
            self.oracle.applied(&self.truth, &sent, &key);
        }
        reply
    }

    fn remember(&self, key: &Key) {
        let now = self.truth.read(key.as_str());
        let now = now.map(|(bytes, meta)| Snapshot { meta, bytes });
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        past.entry(key.as_str().to_owned()).or_default().push(now);
    }

    /// An earlier state of a key, absence included; `None` where there is no earlier one.
    fn older(&self, key: &Key) -> Option<Option<Snapshot>> {
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let states = past.get(key.as_str())?;
        let nth = self.dice.index(states.len());
        Some(nth.checked_sub(1).and_then(|nth| states[nth].clone()))
    }

    fn older_reply(&self, request: &Request) -> Option<Result<Reply, StoreError>> {
        let date = Some(self.clock.now());
        let absent = |operation, key: &Key| {
            let kind = StoreErrorKind::NotFound;
            Err(StoreError::new(kind, operation, key, "an older state"))
        };
        match request {
            Request::Head(key) => Some(match self.older(key)? {
                Some(Snapshot { meta, .. }) => Ok(Reply::Head(Head { meta, date })),
                None => absent("head", key),
            }),
            Request::Get(key, options) => Some(match self.older(key)? {
                None => absent("get", key),
                Some(Snapshot { meta, bytes }) => {
                    let is_other = |etag| etag != &meta.etag;
                    if options.if_match.as_ref().is_some_and(is_other) {
                        let kind = StoreErrorKind::PreconditionFailed;
                        return Some(Err(StoreError::new(kind, "get", key, "an older state")));
                    }
                    if options.if_none_match.as_ref() == Some(&meta.etag) {
                        return Some(Ok(Reply::Get(GetReply::NotModified { date })));
                    }
                    let range = options.range.clone().unwrap_or(0..meta.size_bytes);
                    let end = range.end.min(meta.size_bytes);
                    if range.start > end {
                        return None;
                    }
                    let piece = bytes.slice(range.start as usize..end as usize);
                    Ok(Reply::Get(GetReply::Found(Object {
                        meta,
                        range: range.start..end,
                        body: futures_util::stream::iter([Ok(piece)]).boxed(),
                        date,
                    })))
                }
            }),
            _ => None,
        }
    }

    /// A page that leaves out what it likes, and shows what was deleted.
    fn lie(&self, request: &ListRequest, page: &mut ListPage) {
        match self.dice.below(3) {
            // An older prefix of what a sequence of keys has grown to.
            0 => page
                .objects
                .truncate(self.dice.index(page.objects.len() + 1)),
            1 => page.objects.retain(|_| !self.dice.chance(300)),
            _ => {
                let mut objects: BTreeMap<String, Listed> = BTreeMap::new();
                let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
                for (key, states) in past.range(request.prefix.clone()..) {
                    let is_after = request.start_after.as_ref().is_none_or(|after| key > after);
                    if !key.starts_with(&request.prefix) || !is_after || request.delimiter.is_some()
                    {
                        continue;
                    }
                    if let (Some(None), true) = (states.last(), self.dice.chance(500)) {
                        let last = states.iter().rev().flatten().next();
                        objects.extend(last.map(|last| (key.clone(), listed(key, &last.meta))));
                    }
                }
                let shown = page.objects.drain(..);
                objects.extend(shown.map(|listed| (listed.key.clone(), listed)));
                page.objects = objects.into_values().collect();
                page.objects
                    .truncate(usize::from(request.max_keys.unwrap_or(1_000)));
            }
        }
    }

    /// Everything that is not a write.
    fn read(&self, request: Request, sight: Sight) -> (Result<Reply, StoreError>, &'static str) {
        let key = request.key().map_or(String::new(), Key::to_string);
        match sight {
            Sight::Failed(kind) => {
                add(&self.counts.faults);
                let error = StoreError::new(kind, request.name(), key, "simulated");
                return (Err(error), "failed");
            }
            Sight::Older => {
                if let Some(reply) = self.older_reply(&request) {
                    add(&self.counts.lies);
                    return (reply, "older");
                }
            }
            Sight::True => {}
        }
        let lies = match &request {
            Request::List(list) => self.profile.list_lies(&self.dice).then(|| list.clone()),
            _ => None,
        };
        let mut reply = request.apply(&self.truth.memory);
        if let (Some(list), Ok(Reply::List(page))) = (lies, &mut reply) {
            add(&self.counts.lies);
            self.lie(&list, page);
            return (reply, "lies");
        }
        (reply, "")
    }

    /// Carries a request to the store and its reply back.
    async fn carry(self: Arc<Self>, host: String, gate: Arc<Gate>, request: Request) -> Carried {
        add(&self.counts.requests);
        tokio::time::sleep(self.profile.way_there(&self.dice)).await;
        let what = format!(
            "{:<15} {}",
            request.name(),
            short(&self.truth.keys, &request)
        );
        if !request.is_write() {
            let is_of_journal = request
                .key()
                .is_some_and(|key| self.truth.is_of_journal(key));
            let sight = self.profile.sight(&self.dice, is_of_journal);
            let (reply, lie) = self.read(request, sight);
            self.note(&host, &format!("{what} {lie} -> {}", answer(&reply)));
            tokio::time::sleep(self.profile.way_back(&self.dice)).await;
            return reply;
        }
        if gate.pulse() == Pulse::Dead && self.dice.chance(400) {
            self.note(&host, &format!("{what} lost with its host"));
            return Err(lost(&request));
        }
        let fate = self.profile.fate(&self.dice);
        if fate != Fate::Applied {
            add(&self.counts.faults);
        }
        let reply = match fate {
            Fate::Applied => self.apply(&host, request),
            Fate::Refused(kind) => Err(simulated(kind, &request)),
            Fate::ReplyLost => {
                let error = lost(&request);
                let applied = self.apply(&host, request);
                self.note(&host, &format!("{what} applied: {}", answer(&applied)));
                Err(error)
            }
            Fate::Late(kind, after) => {
                let error = simulated(kind, &request);
                self.deliver_late(&host, request, after);
                Err(error)
            }
            Fate::Twice(after) => {
                let reply = self.apply(&host, request.clone());
                self.deliver_late(&host, request, after);
                reply
            }
        };
        let fate = if fate == Fate::Applied {
            String::new()
        } else {
            format!("{fate:?}")
        };
        self.note(&host, &format!("{what} {fate} -> {}", answer(&reply)));
        tokio::time::sleep(self.profile.way_back(&self.dice)).await;
        reply
    }

    fn deliver_late(self: &Arc<Self>, host: &str, request: Request, after: Duration) {
        let (sim, host) = (Arc::clone(self), host.to_owned());
        add(&sim.counts.late);
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let what = format!(
                "{:<15} {}",
                request.name(),
                short(&sim.truth.keys, &request)
            );
            let reply = sim.apply(&host, request);
            sim.note(&host, &format!("{what} arrives late -> {}", answer(&reply)));
        });
    }
}

type Carried = Result<Reply, StoreError>;

fn listed(key: &str, meta: &ObjectMeta) -> Listed {
    Listed {
        key: key.to_owned(),
        size_bytes: meta.size_bytes,
        etag: meta.etag.clone(),
        last_modified: meta.last_modified,
    }
}

fn simulated(kind: StoreErrorKind, request: &Request) -> StoreError {
    let key = request.key().map_or(String::new(), Key::to_string);
    StoreError::new(kind, request.name(), key, "simulated")
}

fn lost(request: &Request) -> StoreError {
    simulated(StoreErrorKind::Ambiguous, request)
}

fn answer(reply: &Carried) -> String {
    match reply {
        Ok(Reply::List(page)) => {
            format!("{} keys", page.objects.len() + page.common_prefixes.len())
        }
        Ok(Reply::Versions(page)) => format!("{} versions", page.versions.len()),
        Ok(Reply::Versioning(state)) => format!("{state:?}"),
        Ok(Reply::Get(GetReply::NotModified { .. })) => "not modified".to_owned(),
        Ok(_) => "ok".to_owned(),
        Err(error) => error.kind.as_str().to_owned(),
    }
}

/// One host's way to the store.
#[derive(Debug)]
pub(crate) struct HostStore {
    sim: Arc<SimStore>,
    host: String,
    gate: Arc<Gate>,
}

impl HostStore {
    async fn ask(&self, request: Request) -> Carried {
        self.gate.pass().await;
        let sent = (
            Arc::clone(&self.sim),
            self.host.clone(),
            Arc::clone(&self.gate),
        );
        let (sim, host, gate) = sent;
        let is_slot = request
            .changes()
            .filter(|key| self.sim.truth.is_record(key))
            .cloned();
        if let (Some(key), Request::Put(_, payload, _)) = (&is_slot, &request) {
            self.sim.oracle.sends(&self.host, key, &payload.to_bytes());
        }
        let read_slot = request
            .key()
            .filter(|key| self.sim.truth.is_record(key))
            .cloned();
        // On a task of its own: a sender that gives up calls nothing back.
        let reply = tokio::spawn(sim.carry(host, gate, request)).await.unwrap();
        self.gate.pass().await;
        if let (Some(key), Ok(Reply::Get(GetReply::Found(_)))) = (&read_slot, &reply) {
            self.sim.oracle.sees(&self.host, key);
        }
        if let Some(key) = is_slot {
            self.sim
                .oracle
                .hears(&self.host, &key, reply.as_ref().err().map(|e| e.kind));
        }
        reply
    }
}

macro_rules! answered {
    ($reply:expr, $kind:ident) => {
        match $reply? {
            Reply::$kind(answer) => Ok(answer),
            other => unreachable!("answered {other:?}"),
        }
    };
}

#[async_trait]
impl ObjectStore for HostStore {
    async fn put(
        &self,
        key: &Key,
        payload: Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        answered!(
            self.ask(Request::Put(key.clone(), payload, mode)).await,
            Put
        )
    }

    async fn get(&self, key: &Key, options: GetOptions) -> Result<GetReply, StoreError> {
        answered!(self.ask(Request::Get(key.clone(), options)).await, Get)
    }

    async fn head(&self, key: &Key) -> Result<Head, StoreError> {
        answered!(self.ask(Request::Head(key.clone())).await, Head)
    }

    async fn list(&self, request: &ListRequest) -> Result<ListPage, StoreError> {
        answered!(self.ask(Request::List(request.clone())).await, List)
    }

    async fn delete(&self, key: &Key, fence: DeleteFence) -> Result<DeleteReceipt, StoreError> {
        answered!(self.ask(Request::Delete(key.clone(), fence)).await, Delete)
    }

    async fn create_upload(&self, key: &Key) -> Result<Upload, StoreError> {
        answered!(self.ask(Request::CreateUpload(key.clone())).await, Upload)
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: u32,
        payload: Payload,
    ) -> Result<Part, StoreError> {
        let request = Request::PutPart(upload.clone(), number, payload);
        answered!(self.ask(request).await, Part)
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[Part],
    ) -> Result<PutReceipt, StoreError> {
        let request = Request::CompleteUpload(upload.clone(), parts.to_vec());
        answered!(self.ask(request).await, Put)
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<(), StoreError> {
        self.ask(Request::AbortUpload(upload.clone())).await?;
        Ok(())
    }

    async fn list_uploads(&self, continuation: Option<&str>) -> Result<UploadPage, StoreError> {
        let request = Request::ListUploads(continuation.map(str::to_owned));
        answered!(self.ask(request).await, Uploads)
    }

    async fn versioning(&self) -> Result<Versioning, StoreError> {
        answered!(self.ask(Request::Versioning).await, Versioning)
    }

    async fn list_versions(
        &self,
        prefix: &str,
        continuation: Option<&str>,
    ) -> Result<VersionPage, StoreError> {
        let request = Request::ListVersions(prefix.to_owned(), continuation.map(str::to_owned));
        answered!(self.ask(request).await, Versions)
    }
}
