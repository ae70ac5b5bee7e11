//! One stored tool output: how it is saved and read back, what is learned of its bytes while they
//! stream in, and what of it stands in the prompt.
//!
//! The deciding parts are pure: no I/O, no clock, no randomness, so that the same save gives the same
//! replacement on every replica and at any date. [`library`] is what the edges call. A line ends at LF
//! (0x0A) and nowhere else; every size is bytes.

pub mod call_record;
pub mod chunk_table;
pub mod completeness;
pub mod confirmed;
pub mod decision_access;
mod describe;
pub mod error_line;
pub mod escape;
pub mod file_name;
pub mod format;
pub mod hint;
mod ingest;
mod inherit;
pub mod keep_alive;
pub mod library;
pub mod line_page;
mod line_scan;
pub mod list;
pub mod locator;
pub mod manifest;
pub mod manifest_access;
pub mod measure;
pub mod notice;
pub mod outline;
mod own_body;
pub mod preview;
pub mod quota;
pub mod read;
pub mod read_lines;
pub mod receipt;
pub mod received;
pub mod rendering;
mod repeat;
pub mod replacement;
pub mod request;
pub mod save;
pub mod scan;
pub mod search;
pub mod session;
mod session_access;
pub mod summary;
mod upload;
mod upload_memory;
pub mod usage;
pub mod utf8_scan;
pub mod windows;
