//! What was asked of the server, in order, so that request budgets are ordinary tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, Request};

/// One kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Op {
    Put,
    Get,
    Head,
    Delete,
    List,
    Versions,
    Uploads,
    Versioning,
    CreateUpload,
    Part,
    Complete,
    Abort,
    HeadBucket,
    Other,
}

impl Op {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Head => "head",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Versions => "versions",
            Self::Uploads => "uploads",
            Self::Versioning => "versioning",
            Self::CreateUpload => "create_upload",
            Self::Part => "part",
            Self::Complete => "complete",
            Self::Abort => "abort",
            Self::HeadBucket => "head_bucket",
            Self::Other => "other",
        }
    }
}

/// A request as the log and the fault plan see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) op: Op,
    /// The letter after the tenant (`a`, `b`, `c`, …), else the word after `v1/`, else `-`.
    pub(crate) class: String,
    /// The key, or the prefix of a listing.
    pub(crate) key: String,
    /// `if-none-match`, `if-match`, `range`, `version-id`.
    pub(crate) conditions: Vec<&'static str>,
    /// Headers by lower-case name, for tests of what travels.
    pub(crate) headers: BTreeMap<String, String>,
}

impl Seen {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let path = request.uri().path().trim_start_matches('/');
        let query: BTreeMap<String, String> = request
            .uri()
            .query()
            .unwrap_or_default()
            .split('&')
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (name.to_owned(), decode(value))
            })
            .collect();
        let key = path.split_once('/').map_or("", |(_, key)| key);
        let has = |name: &str| query.contains_key(name);
        let op = match (request.method(), key.is_empty()) {
            (&Method::GET, true) if has("versioning") => Op::Versioning,
            (&Method::GET, true) if has("uploads") => Op::Uploads,
            (&Method::GET, true) if has("versions") => Op::Versions,
            (&Method::GET, true) if has("list-type") => Op::List,
            (&Method::HEAD, true) => Op::HeadBucket,
            (&Method::GET, false) => Op::Get,
            (&Method::HEAD, false) => Op::Head,
            (&Method::PUT, false) if has("uploadId") => Op::Part,
            (&Method::PUT, false) => Op::Put,
            (&Method::DELETE, false) if has("uploadId") => Op::Abort,
            (&Method::DELETE, false) => Op::Delete,
            (&Method::POST, false) if has("uploads") => Op::CreateUpload,
            (&Method::POST, false) if has("uploadId") => Op::Complete,
            _ => Op::Other,
        };
        let key = match query.get("prefix") {
            Some(prefix) if key.is_empty() => prefix.clone(),
            Some(_) | None => decode(key),
        };
        let mut conditions: Vec<&'static str> = ["if-none-match", "if-match", "range"]
            .into_iter()
            .filter(|name| request.headers().contains_key(*name))
            .collect();
        if has("versionId") {
            conditions.push("version-id");
        }
        let headers = request
            .headers()
            .iter()
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                (name.as_str().to_owned(), value)
            })
            .collect();
        Self {
            op,
            class: class_of(&key).to_owned(),
            key,
            conditions,
            headers,
        }
    }

    /// `put:a`, `list:b`, …
    pub(crate) fn label(&self) -> String {
        format!("{}:{}", self.op.name(), self.class)
    }
}

fn decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}

/// The key class of a key or prefix.
pub(crate) fn class_of(key: &str) -> &str {
    let rest = match key.find("v1/") {
        Some(at) if at == 0 || key.as_bytes()[at - 1] == b'/' => &key[at + 3..],
        Some(_) | None => return "-",
    };
    let mut segments = rest.split('/');
    match segments.next() {
        Some("t") => segments
            .nth(1)
            .filter(|class| !class.is_empty())
            .unwrap_or("t"),
        Some(first) if !first.is_empty() => first,
        Some(_) | None => "-",
    }
}

/// One request of the log. `start` and `end` are ticks of one counter: what started after another one
/// ended had to wait for it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) seen: Seen,
    pub(crate) start: u64,
    /// `None`: still running, or its caller went away.
    pub(crate) end: Option<u64>,
    /// `None`: no reply was given.
    pub(crate) status: Option<u16>,
}

#[derive(Debug, Default)]
struct Ledger {
    entries: Vec<Entry>,
    tick: u64,
}

/// The log; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestLog(Arc<Mutex<Ledger>>);

impl RequestLog {
    fn with<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn begin(&self, seen: Seen) -> u64 {
        self.with(|ledger| {
            ledger.tick += 1;
            let start = ledger.tick;
            ledger.entries.push(Entry {
                seen,
                start,
                end: None,
                status: None,
            });
            start
        })
    }

    pub(crate) fn finish(&self, start: u64, status: Option<u16>) {
        self.with(|ledger| {
            ledger.tick += 1;
            let end = ledger.tick;
            // A log that was cleared meanwhile has forgotten the request.
            if let Some(entry) = ledger.entries.iter_mut().find(|e| e.start == start) {
                entry.end = Some(end);
                entry.status = status;
            }
        });
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.with(|ledger| ledger.entries.clone())
    }

    /// Forgets what was recorded; the ticks go on.
    pub(crate) fn clear(&self) {
        self.with(|ledger| ledger.entries.clear());
    }

    /// Requests by label (`put:a`), for whole-budget comparisons.
    pub(crate) fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.entries() {
            *counts.entry(entry.seen.label()).or_default() += 1;
        }
        counts
    }

    /// Requests of one label.
    pub(crate) fn count(&self, label: &str) -> usize {
        self.counts().get(label).copied().unwrap_or(0)
    }

    /// The longest chain of requests each of which began after the one before had ended.
    pub(crate) fn round_trips(&self) -> usize {
        let entries = self.entries();
        let mut depths: Vec<usize> = Vec::with_capacity(entries.len());
        for entry in &entries {
            let before = entries
                .iter()
                .zip(&depths)
                .filter(|(earlier, _)| earlier.end.is_some_and(|end| end < entry.start))
                .map(|(_, depth)| *depth)
                .max();
            depths.push(before.unwrap_or(0) + 1);
        }
        depths.into_iter().max().unwrap_or(0)
    }
}
