//! Every integration test, in one binary: linking once is what keeps the suite fast.

#[path = "../support"]
mod support {
    pub(crate) mod s3_server;
}

mod s3_store;

//! All integration tests, as one binary.
#![allow(
    clippy::unwrap_used,
    reason = "what a test cannot set up is a failed test"
)]

mod conformance;
