//! Exhaustive models of the protocols that keep Spillbox's promises, explored by a model checker.
//!
//! A model is a small world: a bucket, a wire on which requests are late, lost or doubled, hosts that
//! die at every step, and a few lines per rule of the protocol. The checker visits every state that
//! this world can reach and tries the invariants on each. `docs/MODELS.md` says what is modelled, what
//! is not, and what was found.
//!
//! * [`journal`]: leases, collectors and the journal that orders them.
//! * [`save`]: call records, bodies, manifests, tombstones, erase; forks, digests and results.
//! * [`turn`]: what a turn's record freezes.
//!
//! Each has a table of scenarios, which must hold, and a table of rules, each of which must be missed
//! when it is taken away.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a transition names the states that it leaves; in every other one it changes nothing"
)]

pub mod check;
pub mod journal;
pub mod save;
pub mod scenario;
pub mod selection;
pub mod turn;
