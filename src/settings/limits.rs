//! `[limits]`: what one request, one caller and one replica may take.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits;

/// `[limits]`: what one request, one caller and one replica may take. In every quota 0 means none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Cap of one body, in bytes.
    pub max_body_bytes: u64,
    /// Uploads at once; more are answered `saturated`.
    pub max_concurrent_uploads: usize,
    /// Memory that the bodies of all uploads may take, in bytes; more are answered `saturated`.
    pub upload_memory_bytes: u64,
    /// Searches at once; 0 means all cores but one.
    pub max_concurrent_searches: usize,
    /// Wall time of one page of a search.
    #[serde(with = "humantime_serde")]
    pub search_deadline: Duration,
    /// Bytes that one session may have stored; soft.
    pub session_bytes: u64,
    /// Bytes that one tenant may have stored; soft.
    pub tenant_bytes: u64,
    /// Requests of one principal in the long run.
    pub requests_per_second: u32,
    /// Requests of one principal at once.
    pub requests_burst: u32,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            max_body_bytes: limits::DEFAULT_MAX_BODY_BYTES,
            max_concurrent_uploads: limits::MAX_CONCURRENT_UPLOADS,
            upload_memory_bytes: limits::DEFAULT_UPLOAD_MEMORY_BYTES,
            max_concurrent_searches: 0,
            search_deadline: limits::SEARCH_DEADLINE,
            session_bytes: 0,
            tenant_bytes: 0,
            requests_per_second: 0,
            requests_burst: limits::DEFAULT_REQUESTS_BURST,
        }
    }
}

impl LimitSettings {
    /// Returns the first key whose value breaks a bound, with the rule.
    pub(super) fn broken_bound(&self) -> Option<(&'static str, String)> {
        let largest_body = limits::PART_BYTES as u64 * limits::MAX_PARTS;
        let connections = limits::MAX_CONNECTIONS;
        let memory = limits::STREAMED_UPLOAD_BYTES..=limits::MAX_UPLOAD_MEMORY_BYTES;
        let deadline = limits::MIN_SEARCH_DEADLINE..=limits::MAX_SEARCH_DEADLINE;
        let rate = limits::MAX_REQUESTS_PER_SECOND;
        let rules = [
            (
                (1..=largest_body).contains(&self.max_body_bytes),
                "limits.max_body_bytes",
                format!("from 1 to {largest_body} bytes"),
            ),
            (
                (1..=connections).contains(&self.max_concurrent_uploads),
                "limits.max_concurrent_uploads",
                format!("from 1 to {connections}"),
            ),
            (
                memory.contains(&self.upload_memory_bytes),
                "limits.upload_memory_bytes",
                format!(
                    "from {} (one large upload) to {} bytes",
                    memory.start(),
                    memory.end()
                ),
            ),
            (
                self.max_concurrent_searches <= connections,
                "limits.max_concurrent_searches",
                format!("from 1 to {connections}, or 0 for all cores but one"),
            ),
            (
                deadline.contains(&self.search_deadline),
                "limits.search_deadline",
                "from 100ms to 60s".to_owned(),
            ),
            (
                self.requests_per_second <= rate,
                "limits.requests_per_second",
                format!("from 1 to {rate}, or 0 for none"),
            ),
            (
                (1..=rate).contains(&self.requests_burst),
                "limits.requests_burst",
                format!("from 1 to {rate}"),
            ),
        ];
        rules
            .into_iter()
            .find(|(holds, _, _)| !holds)
            .map(|(_, key, rule)| (key, rule))
    }
}
