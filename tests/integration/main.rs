//! Every integration test, in one binary: linking once is what keeps the suite fast.

#[path = "../support"]
mod support {
    pub(crate) mod s3_server;
}

mod s3_store;
