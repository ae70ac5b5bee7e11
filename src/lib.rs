//! Spillbox keeps large tool outputs byte for byte in an S3-compatible bucket and hands back what
//! belongs in the prompt: a bounded preview, a short locator, and a hint how to read the rest.
//!
//! The layers, top down; imports point down only (`tests/layering.rs`):
//!
//! ```text
//! L4 wiring   main  cli/  server  open_store  settings  telemetry  audit_log  store_watch
//!             store_metrics
//! L3 edges    http/  mcp/
//! L2 domain   artifact/  auth/  gc/  lease/
//! L1 store    store/
//! L0 base     clock  limits  error  ids  digest
//! ```

pub mod artifact;
pub mod audit_log;
pub mod auth;
pub mod cli;
pub mod clock;
pub mod decision;
pub mod digest;
pub mod error;
pub mod gc;
pub mod http;
pub mod ids;
pub mod lease;
pub mod limits;
pub mod mcp;
pub mod open_store;
pub mod owner_client;
pub mod policy;
pub mod server;
pub mod settings;
pub mod store;
pub mod store_metrics;
pub mod store_watch;
pub mod telemetry;
pub mod usage_watch;
