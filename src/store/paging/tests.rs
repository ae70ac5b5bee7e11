use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;

use super::*;
use crate::store::keys::Key;
use crate::store::{
    DeleteFence, DeleteReceipt, ETag, GetOptions, GetReply, Head, Listed, ListedUpload, Part,
    Payload, PutMode, PutReceipt, Upload, Versioning,
};

/// A store whose listings answer from a script, and which records the tokens it was asked with.
#[derive(Debug, Default)]
struct Scripted {
    pages: Mutex<VecDeque<Result<ListPage, StoreError>>>,
    upload_pages: Mutex<VecDeque<UploadPage>>,
    tokens: Mutex<Vec<Option<String>>>,
}

impl Scripted {
    fn of(pages: impl IntoIterator<Item = Result<ListPage, StoreError>>) -> Self {
        Self {
            pages: Mutex::new(pages.into_iter().collect()),
            ..Self::default()
        }
    }
}

fn page(keys: &[&str], is_truncated: bool, next: Option<&str>) -> Result<ListPage, StoreError> {
    let listed = |key: &&str| Listed {
        key: (*key).to_owned(),
        size_bytes: 1,
        etag: ETag("\"e\"".into()),
        last_modified: jiff::Timestamp::UNIX_EPOCH,
    };
    Ok(ListPage {
        objects: keys.iter().map(listed).collect(),
        is_truncated,
        next: next.map(str::to_owned),
        ..ListPage::default()
    })
}

fn unscripted<T>() -> Result<T, StoreError> {
    let kind = StoreErrorKind::NotImplemented;
    Err(StoreError::new(kind, "other", "", "not in the script"))
}

#[async_trait]
impl ObjectStore for Scripted {
    async fn list(&self, request: &ListRequest) -> Result<ListPage, StoreError> {
        assert_eq!(request.prefix, "p/");
        self.tokens
            .lock()
            .unwrap()
            .push(request.continuation.clone());
        self.pages.lock().unwrap().pop_front().unwrap()
    }
    async fn list_uploads(&self, continuation: Option<&str>) -> Result<UploadPage, StoreError> {
        self.tokens
            .lock()
            .unwrap()
            .push(continuation.map(str::to_owned));
        Ok(self.upload_pages.lock().unwrap().pop_front().unwrap())
    }
    async fn put(&self, _: &Key, _: Payload, _: PutMode) -> Result<PutReceipt, StoreError> {
        unscripted()
    }
    async fn get(&self, _: &Key, _: GetOptions) -> Result<GetReply, StoreError> {
        unscripted()
    }
    async fn head(&self, _: &Key) -> Result<Head, StoreError> {
        unscripted()
    }
    async fn delete(&self, _: &Key, _: DeleteFence) -> Result<DeleteReceipt, StoreError> {
        unscripted()
    }
    async fn create_upload(&self, _: &Key) -> Result<Upload, StoreError> {
        unscripted()
    }
    async fn put_part(&self, _: &Upload, _: u32, _: Payload) -> Result<Part, StoreError> {
        unscripted()
    }
    async fn complete_upload(&self, _: &Upload, _: &[Part]) -> Result<PutReceipt, StoreError> {
        unscripted()
    }
    async fn abort_upload(&self, _: &Upload) -> Result<(), StoreError> {
        unscripted()
    }
    async fn versioning(&self) -> Result<Versioning, StoreError> {
        unscripted()
    }
    async fn list_versions(&self, _: &str, _: Option<&str>) -> Result<VersionPage, StoreError> {
        unscripted()
    }
}

fn request() -> ListRequest {
    ListRequest {
        prefix: "p/".into(),
        ..ListRequest::default()
    }
}

/// Follows all pages; returns the keys seen before the end or the error.
async fn follow(store: &Scripted) -> (Vec<String>, Option<StoreError>) {
    let mut pages = list(store, request());
    let mut keys = Vec::new();
    loop {
        match pages.next_page().await {
            Ok(Some(page)) => keys.extend(page.objects.into_iter().map(|listed| listed.key)),
            Ok(None) => return (keys, None),
            Err(error) => return (keys, Some(error)),
        }
    }
}

#[tokio::test]
async fn pages_are_followed_to_the_end_with_the_tokens_given() {
    let store = Scripted::of([
        page(&["p/a"], true, Some("t1")),
        page(&["p/b"], true, Some("t2")),
        // Not truncated is the end, whatever token comes with it; an empty last page is fine.
        page(&[], false, Some("t2")),
    ]);
    let (keys, error) = follow(&store).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(keys, ["p/a", "p/b"]);
    let tokens = store.tokens.lock().unwrap().clone();
    assert_eq!(tokens, [None, Some("t1".into()), Some("t2".into())]);
}

#[tokio::test]
async fn a_page_that_contradicts_itself_is_an_error_and_never_the_end() {
    let scripts = [
        ("no token", vec![page(&["p/a"], true, None)]),
        ("an empty page", vec![page(&[], true, Some("t1"))]),
        (
            "there before",
            vec![
                page(&["p/a"], true, Some("t1")),
                page(&["p/b"], true, Some("t2")),
                page(&["p/c"], true, Some("t1")),
            ],
        ),
    ];
    for (words, script) in scripts {
        let (_, error) = follow(&Scripted::of(script)).await;
        let error = error.expect("the listing must fail");
        assert!(error.is(StoreErrorKind::Rejected), "{error}");
        assert!(error.detail.contains(words), "{error}");
        assert_eq!(error.key, "p/");
    }
}

#[tokio::test]
async fn a_page_of_common_prefixes_alone_is_not_empty() {
    let mut first = page(&[], true, Some("t1")).unwrap();
    first.common_prefixes.push("p/x/".into());
    let store = Scripted::of([Ok(first), page(&["p/y"], false, None)]);
    let (keys, error) = follow(&store).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(keys, ["p/y"]);
}

#[tokio::test]
async fn a_failed_page_can_be_asked_for_again_with_the_same_token() {
    let lost = || StoreError::new(StoreErrorKind::Unavailable, "list", "p/", "gone");
    let store = Scripted::of([
        page(&["p/a"], true, Some("t1")),
        Err(lost()),
        page(&["p/b"], false, None),
    ]);
    let mut pages = list(&store, request());
    assert!(pages.next_page().await.unwrap().is_some());
    assert!(
        pages
            .next_page()
            .await
            .unwrap_err()
            .is(StoreErrorKind::Unavailable)
    );
    assert_eq!(
        pages.next_page().await.unwrap().unwrap().objects[0].key,
        "p/b"
    );
    assert!(pages.next_page().await.unwrap().is_none());
    let tokens = store.tokens.lock().unwrap().clone();
    assert_eq!(tokens, [None, Some("t1".into()), Some("t1".into())]);
}

#[tokio::test]
async fn the_token_that_a_listing_began_with_counts_as_seen() {
    let store = Scripted::of([page(&["p/a"], true, Some("t1"))]);
    let begun = ListRequest {
        continuation: Some("t1".into()),
        ..request()
    };
    let error = list(&store, begun).next_page().await.unwrap_err();
    assert!(error.is(StoreErrorKind::Rejected), "{error}");
}

#[tokio::test]
async fn uploads_are_followed_by_the_same_rules() {
    let upload = |id: &str| ListedUpload {
        key: "k".into(),
        upload_id: id.into(),
        initiated: None,
    };
    let page = |id: &str, next: Option<&str>| UploadPage {
        uploads: vec![upload(id)],
        is_truncated: true,
        next: next.map(str::to_owned),
        date: None,
    };
    let store = Scripted::default();
    *store.upload_pages.lock().unwrap() = [page("1", Some("m")), page("2", None)].into();
    let mut pages = list_uploads(&store);
    assert_eq!(
        pages.next_page().await.unwrap().unwrap().uploads,
        [upload("1")]
    );
    assert!(
        pages
            .next_page()
            .await
            .unwrap_err()
            .is(StoreErrorKind::Rejected)
    );
}
