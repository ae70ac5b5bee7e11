//! Leases over HTTP: parse, one call of [`crate::lease::leases::Leases`], the reply.
//!
//! A request that is dropped half-way drops its answer only: the append is the journal's own task, and the
//! same request again finds what became of it.

pub(crate) mod change;
mod fields;
pub(crate) mod hold;
pub(crate) mod list;
pub(crate) mod prepare;
pub(crate) mod reconcile;
pub(crate) mod reply;
mod transaction_path;
