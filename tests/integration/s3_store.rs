//! The S3 backend through the real AWS client.

mod fault;
mod meaning;
mod quirk;
mod wire;
