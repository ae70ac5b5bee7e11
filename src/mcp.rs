//! The edge of the Model Context Protocol: tools by which an agent reads and stores artifacts.
//!
//! A tool call becomes one request of the HTTP API, sent to whatever [`Ask`] stands for: the service's own
//! router (`POST /mcp`), or the service or store that `spillbox mcp` was given. So a tool can do nothing
//! that its caller could not do over HTTP, and authorisation, audit, limits and errors are the same.
//!
//! Danger: a locator comes from a model, which may have it from tool output. Only its `{skey}.{aid}` is
//! used; no URL is ever fetched. Replies have a bound, since they go straight into a prompt.

pub mod answer;
pub mod arguments;
pub mod ask;
pub mod handler;
mod reading;
mod saving;

pub use ask::{Ask, NoAnswerError};
pub use handler::ArtifactTools;
