//! Following the pages of a listing.
//!
//! What must hold: **a listing that failed is never a short listing.** A collector that believes a
//! page to be the last one although it was not takes what it did not see for absent. So a page that
//! contradicts itself (truncated without a token, a token without progress) is an error, and so is a
//! token that was there before: following it would never end.

use std::collections::HashSet;
use std::fmt;

use futures_util::future::BoxFuture;

use crate::store::{
    ListPage, ListRequest, ObjectStore, StoreError, StoreErrorKind, UploadPage, VersionPage,
};

/// What following pages needs to know of a page.
pub trait Page {
    /// Returns whether the page brings nothing.
    fn is_empty(&self) -> bool;
    /// Returns whether the store says that more follows.
    fn is_truncated(&self) -> bool;
    /// Returns the token of the next page.
    fn next_token(&self) -> Option<&str>;
}

impl Page for ListPage {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.common_prefixes.is_empty()
    }
    fn is_truncated(&self) -> bool {
        self.is_truncated
    }
    fn next_token(&self) -> Option<&str> {
        self.next.as_deref()
    }
}

impl Page for VersionPage {
    fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }
    fn is_truncated(&self) -> bool {
        self.is_truncated
    }
    fn next_token(&self) -> Option<&str> {
        self.next.as_deref()
    }
}

impl Page for UploadPage {
    fn is_empty(&self) -> bool {
        self.uploads.is_empty()
    }
    fn is_truncated(&self) -> bool {
        self.is_truncated
    }
    fn next_token(&self) -> Option<&str> {
        self.next.as_deref()
    }
}

type Fetch<'a, P> =
    Box<dyn Fn(Option<String>) -> BoxFuture<'a, Result<P, StoreError>> + Send + Sync + 'a>;

/// The pages of one listing, read one at a time by [`Pages::next_page`].
pub struct Pages<'a, P> {
    operation: &'static str,
    scope: String,
    fetch: Fetch<'a, P>,
    token: Option<String>,
    /// A token per page, so a million keys keep a thousand of them.
    seen: HashSet<String>,
    is_finished: bool,
}

impl<P> fmt::Debug for Pages<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("operation", &self.operation)
            .field("scope", &self.scope)
            .field("token", &self.token)
            .field("is_finished", &self.is_finished)
            .finish_non_exhaustive()
    }
}

/// Follows the pages of a listing of keys; `request.continuation` says where to begin.
pub fn list(store: &dyn ObjectStore, request: ListRequest) -> Pages<'_, ListPage> {
    let token = request.continuation.clone();
    Pages::new("list", request.prefix.clone(), token, move |token| {
        let request = ListRequest {
            continuation: token,
            ..request.clone()
        };
        Box::pin(async move { store.list(&request).await })
    })
}

/// Follows the pages of a listing of versions.
pub fn list_versions<'a>(store: &'a dyn ObjectStore, prefix: &str) -> Pages<'a, VersionPage> {
    let prefix = prefix.to_owned();
    Pages::new("list versions", prefix.clone(), None, move |token| {
        let prefix = prefix.clone();
        Box::pin(async move { store.list_versions(&prefix, token.as_deref()).await })
    })
}

/// Follows the pages of a listing of the bucket's unfinished uploads.
pub fn list_uploads(store: &dyn ObjectStore) -> Pages<'_, UploadPage> {
    Pages::new("list uploads", String::new(), None, move |token| {
        Box::pin(async move { store.list_uploads(token.as_deref()).await })
    })
}

impl<'a, P: Page> Pages<'a, P> {
    fn new(
        operation: &'static str,
        scope: String,
        token: Option<String>,
        fetch: impl Fn(Option<String>) -> BoxFuture<'a, Result<P, StoreError>> + Send + Sync + 'a,
    ) -> Self {
        Self {
            operation,
            scope,
            fetch: Box::new(fetch),
            seen: token.iter().cloned().collect(),
            token,
            is_finished: false,
        }
    }

    /// Reads the next page; `None` after the last one.
    ///
    /// # Errors
    /// What the store answered; the same page may then be asked for again.
    /// [`StoreErrorKind::Rejected`] where the page contradicts itself.
    pub async fn next_page(&mut self) -> Result<Option<P>, StoreError> {
        if self.is_finished {
            return Ok(None);
        }
        let page = (self.fetch)(self.token.clone()).await?;
        if !page.is_truncated() {
            // Some stores send a token with the last page too; "not truncated" is what counts.
            self.is_finished = true;
            return Ok(Some(page));
        }
        let Some(token) = page.next_token() else {
            return Err(self.reject("a page says that more follows and brings no token"));
        };
        if page.is_empty() {
            return Err(self.reject("an empty page says that more follows"));
        }
        if self.seen.contains(token) {
            return Err(self.reject("a page brings a token that was there before"));
        }
        self.seen.insert(token.to_owned());
        self.token = Some(token.to_owned());
        Ok(Some(page))
    }

    fn reject(&self, why: &str) -> StoreError {
        let detail = format!("{why}; the listing cannot be trusted");
        StoreError::new(
            StoreErrorKind::Rejected,
            self.operation,
            &self.scope,
            detail,
        )
    }
}

#[cfg(test)]
mod tests;
