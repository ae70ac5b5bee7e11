//! Every integration test, in one binary: linking once is what keeps the suite fast.
#![allow(
    clippy::unwrap_used,
    reason = "what a test cannot set up is a failed test"
)]

#[path = "../support"]
mod support {
    pub(crate) mod s3_server;
}

mod attest;
mod conformance;
mod s3_store;
