//! The collector: what may go, decided from two listings and the sessions' journals, and how it goes.
//!
//! A **plan** lists candidates and is never an authority: whoever applies it, on any host, later, folds
//! each journal again, and an artifact is deleted only after `condemned` has taken a slot of its
//! session's journal, which no lease on it survived and none can follow. Age is necessary and never
//! sufficient; it is measured on the store's own clock, and a wrong clock costs an unleased artifact its
//! grace, never a leased one its bytes.
//!
//! What must hold: a listing that failed is never a short listing; what cannot be read is kept and
//! reported; what is not ours is never touched; everything condemned is finally gone.
//!
//! The deciding parts are pure: [`policy`], [`inventory`], [`classify`], [`selection`], [`plan`],
//! [`report`], [`why`].

pub mod apply;
pub mod classify;
pub mod collector;
pub mod document;
pub mod erase;
pub mod expiry;
pub mod failure;
pub mod identity;
pub mod inventory;
pub mod plan;
pub mod planner;
pub mod policy;
pub mod remove;
pub mod report;
pub mod run;
pub mod scrub;
pub mod selection;
mod session_keys;
pub mod shard;
pub mod status;
pub mod stock;
pub mod store_clock;
pub mod sweep;
pub mod unfinished;
pub mod usage;
pub mod walk;
pub mod why;
