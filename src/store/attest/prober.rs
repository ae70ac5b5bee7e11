//! The hands of an attestation: fresh probe keys, unique bodies, patient set-up requests, and a
//! record of what has to be removed and of what was refused.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryStreamExt};
use tokio::time::{Duration, Instant};

use super::{AttestOptions, Check, CheckName, Diagnosis, Outcome, Target, diagnose};
use crate::clock::Clock;
use crate::ids::IdSource;
use crate::limits;
use crate::store::keys::Key;
use crate::store::probe::BucketFacts;
use crate::store::{
    DeleteFence, GetOptions, GetReply, Payload, PutMode, PutReceipt, SharedStore, StoreError,
    StoreErrorKind, Upload,
};

/// A check's steps: `Err` ends it early, with its end.
pub(super) type Step<T = Check> = Result<T, Check>;

/// Times that a set-up request is sent while its outcome is undecided.
const TRIES: u32 = 4;

/// Pause between them; with jitter it would be kinder, but only losers of a race come here.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Prober<'a> {
    pub(super) target: &'a Target,
    pub(super) clock: &'a dyn Clock,
    pub(super) options: AttestOptions,
    /// No check goes on past this; the rest of the deadline is for cleaning up.
    pub(super) until: Instant,
    ids: &'a dyn IdSource,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keys: BTreeSet<String>,
    uploads: Vec<Upload>,
    denied: BTreeSet<String>,
    /// The first refusal of the credentials as such.
    rejected: Option<Diagnosis>,
}

impl<'a> Prober<'a> {
    pub(super) fn new(
        target: &'a Target,
        clock: &'a dyn Clock,
        ids: &'a dyn IdSource,
        options: AttestOptions,
        began: Instant,
    ) -> Self {
        let reserve = limits::ATTEST_CLEANUP_RESERVE.min(options.deadline / 2);
        Self {
            target,
            clock,
            options,
            until: began + options.deadline.saturating_sub(reserve),
            ids,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one check and gives it an end in any case.
    pub(super) fn run<'b>(
        &'b self,
        name: CheckName,
        check: BoxFuture<'b, Step>,
    ) -> BoxFuture<'b, (CheckName, Check)> {
        async move {
            let end = match tokio::time::timeout_at(self.until, check).await {
                Ok(Ok(check) | Err(check)) => check,
                Err(_) => Check::unknown("not answered in time"),
            };
            (name, end)
        }
        .boxed()
    }

    /// The bucket through one of its endpoints, in turn.
    pub(super) fn store(&self, turn: usize) -> &SharedStore {
        // `attest` is not entered without an endpoint (`contact_all`).
        &self.target.endpoints[turn % self.target.endpoints.len()].store
    }

    /// A key that nobody else has, to be removed at the end.
    pub(super) fn key(&self) -> Key {
        let key = self.target.keys.probe(&self.ids.uuid(self.clock.now()));
        self.state().keys.insert(key.to_string());
        key
    }

    /// A small body that nobody else sends.
    pub(super) fn body(&self) -> Bytes {
        format!("spillbox probe {}", self.ids.uuid(self.clock.now())).into()
    }

    pub(super) fn keys(&self) -> BTreeSet<String> {
        self.state().keys.clone()
    }

    /// Nothing was written under a key: there is nothing to remove.
    pub(super) fn forget_key(&self, key: &Key) {
        self.state().keys.remove(key.as_str());
    }

    pub(super) fn note_upload(&self, upload: &Upload) {
        self.state().uploads.push(upload.clone());
    }

    pub(super) fn forget_upload(&self, upload: &Upload) {
        self.state().uploads.retain(|noted| noted != upload);
    }

    pub(super) fn uploads(&self) -> Vec<Upload> {
        self.state().uploads.clone()
    }

    pub(super) fn denied(&self) -> BTreeSet<String> {
        self.state().denied.clone()
    }

    /// Why the credentials are not taken any more, if that was so: a permission has nothing to do with it.
    pub(super) fn rejected(&self) -> Option<Diagnosis> {
        self.state().rejected.clone()
    }

    /// Ends a check by an error that it did not provoke. `permission` is what the call needs.
    pub(super) fn trouble(&self, permission: &str, error: &StoreError) -> Check {
        let outcome = match error.kind {
            StoreErrorKind::Denied => {
                let diagnosis = diagnose(error);
                if diagnosis.cause.is_of_identity() {
                    self.state().rejected.get_or_insert(diagnosis);
                    Outcome::Unknown
                } else {
                    self.state().denied.insert(permission.to_owned());
                    Outcome::Denied
                }
            }
            StoreErrorKind::NotImplemented => Outcome::Unsupported,
            StoreErrorKind::NotFound
            | StoreErrorKind::AlreadyExists
            | StoreErrorKind::PreconditionFailed
            | StoreErrorKind::Conflict
            | StoreErrorKind::Ambiguous
            | StoreErrorKind::Throttled
            | StoreErrorKind::Unavailable
            | StoreErrorKind::InvalidRange
            | StoreErrorKind::Full
            | StoreErrorKind::Rejected => Outcome::Unknown,
        };
        Check::new(outcome, format!("{}: {}", error.operation, error.detail))
    }

    /// Writes whatever is there, and again while the outcome is undecided: the bytes are the same.
    pub(super) async fn set(&self, turn: usize, key: &Key, body: &Bytes) -> Step<PutReceipt> {
        let put = || {
            self.store(turn)
                .put(key, Payload::from(body.clone()), PutMode::Overwrite)
        };
        settled(put)
            .await
            .map_err(|error| self.trouble("s3:PutObject", &error))
    }

    /// Deletes whatever is there.
    pub(super) async fn remove(&self, turn: usize, key: &Key) -> Step<()> {
        settled(|| self.store(turn).delete(key, DeleteFence::None))
            .await
            .map(drop)
            .map_err(|error| self.trouble("s3:DeleteObject", &error))
    }

    /// Reads an object; `None` where it is absent.
    pub(super) async fn read(&self, turn: usize, key: &Key) -> Step<Option<Bytes>> {
        let store = self.store(turn);
        match fetch(store, key, GetOptions::default()).await {
            Ok(Some(bytes)) => Ok(Some(bytes)),
            Ok(None) => Err(Check::failed("a read without a condition answered 304")),
            Err(error) if error.is(StoreErrorKind::NotFound) => Ok(None),
            Err(error) => Err(self.trouble("s3:GetObject", &error)),
        }
    }

    /// Reads an object that should be absent: 403 is what S3 says of absence to those who may not list.
    pub(super) async fn read_absent(&self, turn: usize, key: &Key) -> Step<Option<Bytes>> {
        match fetch(self.store(turn), key, GetOptions::default()).await {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.is(StoreErrorKind::NotFound) => Ok(None),
            Err(error) => Err(self.trouble("s3:ListBucket", &error)),
        }
    }

    /// What the bucket says of itself, if it does so in time.
    pub(super) async fn facts(&self) -> BucketFacts {
        let facts = self.store(0).bucket_facts();
        tokio::time::timeout_at(self.until, facts)
            .await
            .unwrap_or_default()
    }
}

/// Repeats a request whose repetition does no harm while its outcome is undecided.
pub(super) async fn settled<T, F>(send: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    for _ in 1..TRIES {
        match send().await {
            Err(error) if error.kind.is_transient() => tokio::time::sleep(PAUSE).await,
            result => return result,
        }
    }
    send().await
}

/// Reads a whole object; `None` where the store says that it is unchanged.
pub(super) async fn fetch(
    store: &SharedStore,
    key: &Key,
    options: GetOptions,
) -> Result<Option<Bytes>, StoreError> {
    match store.get(key, options).await? {
        GetReply::Found(object) => {
            let pieces: Vec<Bytes> = object.body.try_collect().await?;
            Ok(Some(pieces.concat().into()))
        }
        GetReply::NotModified { .. } => Ok(None),
    }
}
