//! Two listings made one: manifests and bodies of a tenant, joined by `{skey}/{aid}`.
//!
//! Both come in key order, page by page, and nothing is kept but the pages at hand. A listing that goes
//! backwards is an error: what it did not show would be taken for absent.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::ArtifactRef;
use crate::lease::canonical::MAX_INTEGER;
use crate::store::Listed;

/// What a listing says of one object; a plan freezes it, and apply compares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// Its size.
    pub size_bytes: u64,
    /// Its ETag.
    pub etag: String,
    /// When it was written, by the store's clock; whole seconds on most stores.
    pub last_modified: Timestamp,
}

impl From<&Listed> for Seen {
    fn from(listed: &Listed) -> Self {
        Self {
            // No object is larger; a number beyond could not be written down exactly.
            size_bytes: listed.size_bytes.min(MAX_INTEGER),
            etag: listed.etag.0.clone(),
            last_modified: listed.last_modified,
        }
    }
}

/// What the two listings show of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The artifact.
    pub artifact: ArtifactRef,
    /// What stands at its manifest key: a manifest, or its tombstone.
    pub manifest: Option<Seen>,
    /// Its body.
    pub body: Option<Seen>,
}

impl Pair {
    /// Returns the size of the body, 0 where there is none.
    pub fn body_bytes(&self) -> u64 {
        self.body.as_ref().map_or(0, |body| body.size_bytes)
    }
}

/// One step of the join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The next name.
    Pair(Pair),
    /// A key that is none of ours.
    Foreign {
        /// The key.
        key: String,
        /// Its size.
        size_bytes: u64,
    },
    /// The next page of this listing is needed first.
    Need(Side),
    /// Both listings are at their end.
    End,
}

/// One of the two listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// `a/`.
    Manifests,
    /// `b/`.
    Bodies,
}

/// A page cannot be part of the listing that it was read for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InventoryError {
    /// A key does not begin with the prefix that was asked for.
    #[error("the listing of `{prefix}` brings `{key}`")]
    WrongPrefix {
        /// What was asked for.
        prefix: String,
        /// What came.
        key: String,
    },
    /// A key is not after the one before.
    #[error("the listing of `{prefix}` is out of order at `{key}`")]
    OutOfOrder {
        /// What was asked for.
        prefix: String,
        /// What came.
        key: String,
    },
}

#[derive(Debug)]
struct Feed {
    /// `…/a/` or `…/b/`: what a name is made of follows.
    prefix: String,
    ahead: VecDeque<Listed>,
    last: Option<String>,
    is_finished: bool,
}

impl Feed {
    fn name(&self) -> Option<&str> {
        let key = &self.ahead.front()?.key;
        Some(
            key.strip_prefix(&self.prefix)
                .expect("`push` has checked the prefix"),
        )
    }

    fn needs_more(&self) -> bool {
        self.ahead.is_empty() && !self.is_finished
    }
}

/// The join of both listings of one tenant.
#[derive(Debug)]
pub struct Inventory {
    manifests: Feed,
    bodies: Feed,
}

impl Inventory {
    /// Joins the listings under `manifests` (`…/a/`) and `bodies` (`…/b/`).
    pub fn new(manifests: impl Into<String>, bodies: impl Into<String>) -> Self {
        let feed = |prefix| Feed {
            prefix,
            ahead: VecDeque::new(),
            last: None,
            is_finished: false,
        };
        Self {
            manifests: feed(manifests.into()),
            bodies: feed(bodies.into()),
        }
    }

    fn feed(&mut self, side: Side) -> &mut Feed {
        match side {
            Side::Manifests => &mut self.manifests,
            Side::Bodies => &mut self.bodies,
        }
    }

    /// Takes the next page of one listing.
    ///
    /// # Errors
    /// See [`InventoryError`]; the inventory is of no use then.
    pub fn push(&mut self, side: Side, page: Vec<Listed>) -> Result<(), InventoryError> {
        let feed = self.feed(side);
        for listed in page {
            let (prefix, key) = (feed.prefix.clone(), listed.key.clone());
            if !listed.key.starts_with(&feed.prefix) {
                return Err(InventoryError::WrongPrefix { prefix, key });
            }
            if feed.last.as_ref().is_some_and(|last| *last >= listed.key) {
                return Err(InventoryError::OutOfOrder { prefix, key });
            }
            feed.last = Some(key);
            feed.ahead.push_back(listed);
        }
        Ok(())
    }

    /// Says that one listing has no further page.
    pub fn finish(&mut self, side: Side) {
        self.feed(side).is_finished = true;
    }

    /// Returns the next name in key order, or which page is missing for telling it.
    pub fn next_step(&mut self) -> Step {
        for side in [Side::Manifests, Side::Bodies] {
            if self.feed(side).needs_more() {
                return Step::Need(side);
            }
        }
        let (take_manifest, take_body) = match (self.manifests.name(), self.bodies.name()) {
            (None, None) => return Step::End,
            (Some(_), None) => (true, false),
            (None, Some(_)) => (false, true),
            (Some(a), Some(b)) => (a <= b, b <= a),
        };
        let mut take = |side, wanted: bool| {
            let feed = self.feed(side);
            let name = feed.name().filter(|_| wanted)?.to_owned();
            Some((name, feed.ahead.pop_front()?))
        };
        let manifest = take(Side::Manifests, take_manifest);
        let body = take(Side::Bodies, take_body);
        let (name, listed) = manifest.as_ref().or(body.as_ref()).expect("one was there");
        match artifact_of(name) {
            Some(artifact) => Step::Pair(Pair {
                artifact,
                manifest: manifest.as_ref().map(|(_, listed)| listed.into()),
                body: body.as_ref().map(|(_, listed)| listed.into()),
            }),
            None => {
                // Two foreign keys of one name: the body comes as a step of its own.
                let foreign = Step::Foreign {
                    key: listed.key.clone(),
                    size_bytes: listed.size_bytes,
                };
                if let (Some(_), Some((_, other))) = (&manifest, body) {
                    self.bodies.ahead.push_front(other);
                }
                foreign
            }
        }
    }
}

/// Reads `{skey}/{aid}`; `None` for any other spelling.
fn artifact_of(name: &str) -> Option<ArtifactRef> {
    let (session_key, artifact_id) = name.split_once('/')?;
    Some(ArtifactRef {
        session_key: session_key.parse().ok()?,
        artifact_id: artifact_id.parse().ok()?,
    })
}

#[cfg(test)]
mod tests;
