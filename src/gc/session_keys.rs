//! The sessions of a tenant that have objects of one class, in key order, without listing the objects.

use std::collections::VecDeque;

use crate::ids::SessionKey;
use crate::store::paging::{self, Pages};
use crate::store::{ListPage, ListRequest, ObjectStore, StoreError};

/// The names directly below a prefix.
#[derive(Debug)]
pub(in crate::gc) struct SessionKeys<'a> {
    pages: Pages<'a, ListPage>,
    prefix: String,
    ahead: VecDeque<SessionKey>,
}

impl<'a> SessionKeys<'a> {
    /// Walks the sessions below `prefix` (`…/j/`, say). What stands there and is none is passed over.
    pub(in crate::gc) fn below(store: &'a dyn ObjectStore, prefix: String) -> Self {
        let request = ListRequest {
            prefix: prefix.clone(),
            delimiter: Some('/'),
            ..ListRequest::default()
        };
        Self {
            pages: paging::list(store, request),
            prefix,
            ahead: VecDeque::new(),
        }
    }

    /// Returns the next session; `None` at the end.
    pub(in crate::gc) async fn next(&mut self) -> Result<Option<SessionKey>, StoreError> {
        while self.ahead.is_empty() {
            let Some(page) = self.pages.next_page().await? else {
                return Ok(None);
            };
            let names = page.common_prefixes.iter();
            let names = names.filter_map(|common| common.strip_prefix(&self.prefix));
            let sessions =
                names.filter_map(|name| name.strip_suffix('/')?.parse::<SessionKey>().ok());
            self.ahead.extend(sessions);
        }
        Ok(self.ahead.pop_front())
    }
}

/// Walks two orders of sessions side by side and returns the next one that is in both.
pub(in crate::gc) async fn next_in_both(
    first: &mut SessionKeys<'_>,
    second: &mut SessionKeys<'_>,
) -> Result<Option<SessionKey>, StoreError> {
    let (mut left, mut right) = (first.next().await?, second.next().await?);
    loop {
        let (Some(one), Some(other)) = (left, right) else {
            return Ok(None);
        };
        match one.cmp(&other) {
            std::cmp::Ordering::Equal => return Ok(Some(one)),
            std::cmp::Ordering::Less => left = first.next().await?,
            std::cmp::Ordering::Greater => right = second.next().await?,
        }
    }
}
