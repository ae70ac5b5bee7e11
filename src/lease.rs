//! Leases: what a memory system refers to is protected by entries of a hash-chained journal that lives
//! in the bucket, one journal per session.
//!
//! A record is one object, created by create-if-absent under its sequence number; it names the hash of
//! the record before it. **An append is a decision about an exact prefix**: whoever writes record *n*
//! has folded the records 0 to n - 1, and whoever loses slot *n* folds the winner's record and decides
//! again. So `prepared` and `condemned` of one artifact exclude each other without locks and clocks.
//!
//! What must hold: the fold reads no clock; a record's hash is that of its stored bytes; what cannot be
//! read is never taken for "no leases"; and an error leans towards keeping bytes.
//!
//! The deciding parts are pure: [`record`], [`fold`], [`evaluate`], [`batch`], [`checkpoint`].

pub mod batch;
pub mod canonical;
pub mod chain;
pub mod checkpoint;
pub mod entry;
pub mod evaluate;
pub mod failure;
pub mod finding;
pub mod fold;
pub mod journal;
pub mod journals;
pub mod jsonl;
mod keep_alive;
pub mod leases;
pub mod missing;
pub mod names;
pub mod open;
pub mod owner;
pub mod pace;
pub mod publish;
pub mod reconcile;
pub mod record;
pub mod report;
#[cfg(test)]
mod sample;
pub mod show;
pub mod site;
pub mod slot;
pub mod source;
pub mod state;
pub mod verify;
pub mod view;
pub mod walk;
