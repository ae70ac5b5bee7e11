//! All integration tests, as one binary.
#![allow(
    clippy::unwrap_used,
    reason = "what a test cannot set up is a failed test"
)]

mod conformance;
