//! The contract of [`ObjectStore`] in executable form.
//!
//! It is library code, so that the same cases run over the backends in the tests and over a real
//! endpoint from a script. A backend is finished when every case that applies to it passes, races
//! included: checks one after another pass on servers that lose data.
//!
//! A case panics with a sentence when the store breaks the contract. It works under a prefix of its
//! own and removes what it made, also when it fails. Run it on a runtime with several threads: on one
//! thread the races are none.

mod basic;
mod late;
mod listing;
mod multipart;
mod race;
mod read;
mod versioned;

use std::panic::AssertUnwindSafe;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};

use crate::store::keys::Key;
use crate::store::{
    ByteStream, DeleteFence, ETag, GetOptions, GetReply, ListRequest, Object, ObjectStore, Payload,
    PutMode, PutReceipt, SharedStore, StoreError, StoreErrorKind, Upload, VersionId, Versioning,
    paging,
};

/// Requests in flight where a case only fills or empties the store.
const IN_FLIGHT: usize = 16;

/// What is known of the store under trial before it is tried.
#[derive(Debug, Clone, Copy)]
pub struct Capabilities {
    /// How many writers race for one key. 32 shows most faults; some servers serialise writers of one
    /// key so slowly that they need fewer.
    pub contenders: usize,
    /// What `versioning` must answer, and so which versioned cases apply.
    pub versioning: Versioning,
    /// Deletes honour `if_match`; many real servers ignore it.
    pub delete_if_match: bool,
    /// They honour it also while the object is being overwritten. SeaweedFS 4.48 in a versioned bucket
    /// refuses a stale delete of an object at rest, but lets one take an overwrite that it races with.
    pub delete_if_match_in_races: bool,
    /// A delete by version is refused where versioning was never enabled; several real servers delete
    /// the current object then, which is why nobody may send one.
    pub refuses_unversioned_fence: bool,
    /// The keys `d` and `d/e` may both be created; the product does not need it. SeaweedFS 4.48 answers
    /// 412 to the second.
    pub nested_keys: bool,
    /// A completion that names the ETag of a part that was sent again with other bytes is refused.
    /// SeaweedFS 4.48 takes it. The product sends a part again with the same bytes only.
    pub refuses_replaced_parts: bool,
    /// A prefix with an empty segment is the prefix of no key of ours. SeaweedFS 4.48 reads `a//` as
    /// `a/`. No prefix of the product has one.
    pub exact_prefixes: bool,
    /// Keys list in byte order also where one begins another. SeaweedFS 4.48 keeps `d` of a versioned
    /// bucket as `d.versions` and lists it there, after `d-x`. What the product lists in order
    /// (manifests, bodies, journal records, checkpoints) has keys of one length.
    pub byte_order: bool,
}

impl Capabilities {
    /// Everything that the trait promises, with 32 contenders, on a store without versioning.
    pub const fn full() -> Self {
        Self {
            contenders: 32,
            versioning: Versioning::NeverEnabled,
            delete_if_match: true,
            refuses_unversioned_fence: true,
            delete_if_match_in_races: true,
            nested_keys: true,
            refuses_replaced_parts: true,
            exact_prefixes: true,
            byte_order: true,
        }
    }
}

/// What a case asks of a store beyond the minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Any,
    /// [`Capabilities::delete_if_match`].
    DeleteIfMatch,
    /// [`Capabilities::refuses_unversioned_fence`], and no versioning.
    RefusedFence,
    /// [`Capabilities::delete_if_match_in_races`].
    DeleteIfMatchInRaces,
    /// [`Capabilities::nested_keys`].
    NestedKeys,
    /// [`Capabilities::refuses_replaced_parts`].
    RefusedParts,
    /// [`Capabilities::exact_prefixes`].
    ExactPrefixes,
    /// [`Capabilities::byte_order`].
    ByteOrder,
    /// Versioning is enabled.
    Enabled,
    /// Versioning is suspended.
    Suspended,
}

/// One case of the suite.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name, a sentence.
    pub name: &'static str,
    /// What it needs.
    pub need: Need,
    run: for<'a> fn(&'a Trial) -> BoxFuture<'a, ()>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case")
            .field("name", &self.name)
            .field("need", &self.need)
            .finish_non_exhaustive()
    }
}

impl Case {
    /// Returns whether the case means something for such a store.
    pub fn applies_to(&self, capabilities: &Capabilities) -> bool {
        let versioning = capabilities.versioning;
        match self.need {
            Need::Any => true,
            Need::DeleteIfMatch => capabilities.delete_if_match,
            Need::RefusedFence => {
                capabilities.refuses_unversioned_fence && versioning == Versioning::NeverEnabled
            }
            Need::DeleteIfMatchInRaces => {
                capabilities.delete_if_match && capabilities.delete_if_match_in_races
            }
            Need::NestedKeys => capabilities.nested_keys,
            Need::RefusedParts => capabilities.refuses_replaced_parts,
            Need::ExactPrefixes => capabilities.exact_prefixes,
            Need::ByteOrder => capabilities.byte_order,
            Need::Enabled => versioning == Versioning::Enabled,
            Need::Suspended => versioning == Versioning::Suspended,
        }
    }
}

macro_rules! cases {
    ($($module:ident::$name:ident: $need:ident,)+) => {
        /// Every case of the suite.
        pub const CASES: &[Case] = &[
            $(Case {
                name: stringify!($name),
                need: Need::$need,
                run: |trial| Box::pin($module::$name(trial)),
            },)+
        ];
    };
}

cases! {
    basic::a_created_object_reads_back_as_written: Any,
    basic::creating_on_a_taken_key_leaves_its_bytes: Any,
    basic::replace_if_match_replaces_only_what_it_names: Any,
    basic::overwrite_always_takes_effect: Any,
    basic::an_absent_key_is_not_found: Any,
    basic::zero_bytes_are_an_object: Any,
    basic::a_delete_without_fence_succeeds_twice: Any,
    basic::delete_if_match_takes_only_what_it_names: DeleteIfMatch,
    basic::a_version_fence_is_refused_without_versions: RefusedFence,
    basic::versioning_is_reported: Any,
    basic::dates_are_present_and_last_modified_is_sane: Any,
    basic::every_character_of_our_keys_survives: Any,
    basic::a_key_and_keys_below_it_coexist: NestedKeys,
    read::conditions_of_a_read_are_honoured: Any,
    read::ranges_give_exactly_their_bytes: Any,
    read::a_range_past_the_end_is_refused: Any,
    read::large_objects_read_back_whole_and_in_part: Any,
    multipart::a_64_mib_multipart_reads_back_as_sent: Any,
    multipart::a_part_sent_again_replaces_the_first: Any,
    multipart::an_unfinished_upload_is_listed_and_invisible: Any,
    multipart::an_aborted_upload_leaves_nothing: Any,
    multipart::a_completion_that_names_another_part_is_refused: Any,
    multipart::a_completion_that_names_a_replaced_part_is_refused: RefusedParts,
    listing::a_listing_of_2501_keys_is_exact: Any,
    listing::pages_of_every_size_give_the_same_keys: NestedKeys,
    listing::keys_that_begin_one_another_list_in_byte_order: ByteOrder,
    listing::a_prefix_without_keys_lists_empty: Any,
    listing::a_prefix_with_an_empty_segment_lists_empty: ExactPrefixes,
    race::creators_of_one_key_have_exactly_one_winner: Any,
    late::creators_whose_last_byte_comes_late_have_exactly_one_winner: Any,
    late::a_slow_and_a_fast_writer_have_one_winner: Any,
    race::compare_and_swap_loses_no_update: Any,
    race::a_stale_delete_keeps_the_object: DeleteIfMatch,
    race::a_stale_delete_never_takes_a_racing_overwrite: DeleteIfMatchInRaces,
    race::creates_and_deletes_do_not_disturb_their_neighbours: Any,
    race::readers_see_whole_objects_while_they_are_overwritten: Any,
    race::listings_are_exact_while_others_write: Any,
    versioned::create_only_is_refused_over_a_current_version: Enabled,
    versioned::create_only_succeeds_over_a_delete_marker: Enabled,
    versioned::deleting_an_old_version_keeps_the_newer: Enabled,
    versioned::versions_list_newest_first: Enabled,
    versioned::deleting_a_delete_marker_brings_the_object_back: Enabled,
    versioned::suspended_writes_replace_the_null_version: Suspended,
}

/// One case's own corner of a store.
#[derive(Debug)]
pub struct Trial {
    store: SharedStore,
    capabilities: Capabilities,
    /// Ends in a slash.
    prefix: String,
}

/// Runs one case by its name under `prefix`, which ends in a slash and under which nothing else is.
///
/// # Panics
/// The store breaks the contract, the case is unknown, or it does not apply to such a store.
pub async fn run_case(name: &str, store: &SharedStore, capabilities: Capabilities, prefix: &str) {
    let case = CASES.iter().find(|case| case.name == name);
    let case = case.unwrap_or_else(|| panic!("no case `{name}`"));
    let applies = case.applies_to(&capabilities);
    assert!(applies, "`{name}` does not apply to {capabilities:?}");
    let trial = Trial {
        store: SharedStore::clone(store),
        capabilities,
        prefix: prefix.to_owned(),
    };
    let result = AssertUnwindSafe((case.run)(&trial)).catch_unwind().await;
    let cleaned = remove_all(&**store, prefix).await;
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
    cleaned.unwrap_or_else(|error| panic!("cleaning up after `{name}`: {error}"));
}

/// Removes everything below `prefix`, old versions and unfinished uploads too.
///
/// # Errors
/// The store fails or refuses; some of it may be left.
pub async fn remove_all(store: &dyn ObjectStore, prefix: &str) -> Result<(), StoreError> {
    for upload in uploads_below(store, prefix).await? {
        store.abort_upload(&upload).await?;
    }
    let mut doomed: Vec<(Key, DeleteFence)> = Vec::new();
    if store.versioning().await? == Versioning::NeverEnabled {
        let request = ListRequest {
            prefix: prefix.to_owned(),
            ..ListRequest::default()
        };
        let mut pages = paging::list(store, request);
        while let Some(page) = pages.next_page().await? {
            let keys = page.objects.into_iter().map(|listed| listed.key);
            let keys = keys.filter_map(|key| Key::parse(key).ok());
            doomed.extend(keys.map(|key| (key, DeleteFence::None)));
        }
    } else {
        let mut pages = paging::list_versions(store, prefix);
        while let Some(page) = pages.next_page().await? {
            doomed.extend(page.versions.into_iter().filter_map(|version| {
                let fence = DeleteFence::Version(version.version_id);
                Some((Key::parse(version.key).ok()?, fence))
            }));
        }
    }
    let delete = |(key, fence)| async move { store.delete(&key, fence).await };
    let deletes: Vec<_> = doomed.into_iter().map(delete).collect();
    stream::iter(deletes)
        .buffer_unordered(IN_FLIGHT)
        .try_for_each(|_| async { Ok(()) })
        .await
}

async fn uploads_below(store: &dyn ObjectStore, prefix: &str) -> Result<Vec<Upload>, StoreError> {
    let mut found = Vec::new();
    let mut pages = paging::list_uploads(store);
    while let Some(page) = pages.next_page().await? {
        let ours = page
            .uploads
            .into_iter()
            .filter(|u| u.key.starts_with(prefix));
        found.extend(ours.filter_map(|listed| {
            let key = Key::parse(listed.key).ok()?;
            let upload_id = listed.upload_id;
            Some(Upload { key, upload_id })
        }));
    }
    Ok(found)
}

impl Trial {
    fn key(&self, rest: &str) -> Key {
        Key::parse(format!("{}{rest}", self.prefix)).expect("cases use keys of our alphabet")
    }

    async fn create(&self, key: &Key, content: &str) -> PutReceipt {
        let mode = PutMode::CreateIfAbsent;
        let result = self.store.put(key, payload(content), mode).await;
        result.unwrap_or_else(|error| panic!("creating a fresh key failed: {error}"))
    }

    async fn overwrite(&self, key: &Key, content: &str) -> PutReceipt {
        let mode = PutMode::Overwrite;
        let result = self.store.put(key, payload(content), mode).await;
        result.unwrap_or_else(|error| panic!("overwriting failed: {error}"))
    }

    async fn open(&self, key: &Key, options: GetOptions) -> Object {
        match self.store.get(key, options).await {
            Ok(GetReply::Found(object)) => object,
            Ok(GetReply::NotModified { .. }) => {
                panic!("`{key}`: 304 without a condition that asks")
            }
            Err(error) => panic!("reading failed: {error}"),
        }
    }

    /// Reads a small object whole.
    async fn read(&self, key: &Key) -> String {
        let object = self.open(key, GetOptions::default()).await;
        let (range, meta) = (object.range, object.meta);
        let bytes = collect(object.body).await;
        assert_eq!(range, 0..meta.size_bytes, "`{key}`: a plain read is whole");
        assert_eq!(
            bytes.len() as u64,
            meta.size_bytes,
            "`{key}`: size and bytes"
        );
        String::from_utf8(bytes).expect("cases write text")
    }

    async fn exists(&self, key: &Key) -> bool {
        match self.store.head(key).await {
            Ok(_) => true,
            Err(error) if error.is(StoreErrorKind::NotFound) => false,
            Err(error) => panic!("head failed: {error}"),
        }
    }

    async fn delete(&self, key: &Key, fence: DeleteFence) -> Result<(), StoreError> {
        self.store.delete(key, fence).await.map(drop)
    }

    /// Lists keys below the trial's prefix, without that prefix.
    async fn list(&self, request: ListRequest) -> Vec<String> {
        let request = ListRequest {
            prefix: format!("{}{}", self.prefix, request.prefix),
            start_after: request
                .start_after
                .map(|key| format!("{}{key}", self.prefix)),
            ..request
        };
        let mut found = Vec::new();
        let mut pages = paging::list(&*self.store, request);
        while let Some(page) = expect(pages.next_page().await, "listing") {
            // In one order, as a merge of keys and rolled-up prefixes.
            let mut both: Vec<_> = page.objects.into_iter().map(|listed| listed.key).collect();
            both.extend(page.common_prefixes);
            both.sort_unstable();
            found.extend(both.iter().map(|key| {
                let rest = key.strip_prefix(&self.prefix);
                rest.unwrap_or_else(|| panic!("`{key}` is not below `{}`", self.prefix))
                    .to_owned()
            }));
        }
        found
    }

    async fn list_all(&self) -> Vec<String> {
        self.list(ListRequest::default()).await
    }

    /// The ids of this trial's unfinished uploads.
    async fn upload_ids(&self) -> Vec<String> {
        let uploads = uploads_below(&*self.store, &self.prefix).await;
        let uploads = expect(uploads, "listing uploads");
        uploads.into_iter().map(|upload| upload.upload_id).collect()
    }
}

fn payload(content: &str) -> Payload {
    content.as_bytes().to_vec().into()
}

async fn collect(mut body: ByteStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        bytes.extend_from_slice(&expect(piece, "reading a body"));
    }
    bytes
}

fn expect<T>(result: Result<T, StoreError>, what: &str) -> T {
    result.unwrap_or_else(|error| panic!("{what} failed: {error}"))
}

/// Asserts that a request failed, and how.
fn expect_kind<T>(result: Result<T, StoreError>, kind: StoreErrorKind, what: &str) {
    match result {
        Ok(_) => panic!("{what}: succeeded, {kind:?} was due"),
        Err(error) => assert_eq!(error.kind, kind, "{what}: {error}"),
    }
}

/// An ETag that no object has.
fn no_etag() -> ETag {
    ETag("\"00000000000000000000000000000000\"".to_owned())
}

fn expect_version(receipt: &PutReceipt) -> VersionId {
    let id = receipt.version_id.clone();
    id.expect("a write to a bucket with versioning answers a version id")
}
