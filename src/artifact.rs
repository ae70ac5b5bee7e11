//! One stored tool output: what is learned of its bytes while they stream in, what of it stands in the
//! prompt, and how it is read back.
//!
//! Everything in the modules below is pure: no I/O, no clock, no randomness. Bytes go in, facts and
//! texts come out, so that the same save gives the same replacement on every replica and at any date.
//! A line ends at LF (0x0A) and nowhere else; every size is bytes.

pub mod chunk_table;
pub mod completeness;
pub mod error_line;
pub mod error_search;
pub mod escape;
pub mod file_name;
pub mod hint;
pub mod line_page;
pub mod notice;
pub mod preview;
pub mod replacement;
pub mod scan;
pub mod summary;
pub mod utf8_scan;
pub mod windows;
