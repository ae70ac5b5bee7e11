//! The conformance suite over every backend, one test a case.

use std::sync::Arc;

use spillbox::clock::{Clock, SystemClock};
use spillbox::ids::{IdSource, SystemIds};
use spillbox::store::local::LocalStore;
use spillbox::store::memory::MemoryStore;
use spillbox::store::testing::{CASES, Capabilities, run_case};
use spillbox::store::{SharedStore, Versioning};

/// Names a backend's cases: the runner shows each, and a case of the suite that applies to the backend
/// and stands in no list is a failure.
macro_rules! conformance {
    ($backend:ident, $capabilities:expr, $open:expr, [$($case:ident),+ $(,)?]) => {
        mod $backend {
            use super::*;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $case() {
                    // The guard keeps what the store needs while it is used.
                    let (store, _guard) = $open;
                    let unique = SystemIds::default().uuid(SystemClock.now());
                    let prefix = format!("conformance/{}/", unique.simple());
                    run_case(stringify!($case), &store, $capabilities, &prefix).await;
                }
            )+

            #[test]
            fn every_case_that_applies_is_run() {
                let listed = [$(stringify!($case)),+];
                let applies: Vec<_> = CASES
                    .iter()
                    .filter(|case| case.applies_to(&$capabilities))
                    .map(|case| case.name)
                    .collect();
                assert_eq!(listed.to_vec(), applies);
            }
        }
    };
}

mod s3;

fn versioned(versioning: Versioning) -> Capabilities {
    Capabilities {
        versioning,
        ..Capabilities::full()
    }
}

fn memory(versioning: Versioning) -> (SharedStore, ()) {
    let store = MemoryStore::new(SystemClock::shared());
    match versioning {
        Versioning::NeverEnabled => {}
        Versioning::Enabled => store.enable_versioning(),
        Versioning::Suspended => store.suspend_versioning(),
    }
    (Arc::new(store), ())
}

fn local() -> (SharedStore, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::open(directory.path(), SystemClock::shared(), SystemIds::shared());
    (Arc::new(store.unwrap()), directory)
}

conformance!(
    memory_store,
    Capabilities::full(),
    memory(Versioning::NeverEnabled),
    [
        a_created_object_reads_back_as_written,
        creating_on_a_taken_key_leaves_its_bytes,
        replace_if_match_replaces_only_what_it_names,
        overwrite_always_takes_effect,
        an_absent_key_is_not_found,
        zero_bytes_are_an_object,
        a_delete_without_fence_succeeds_twice,
        delete_if_match_takes_only_what_it_names,
        a_version_fence_is_refused_without_versions,
        versioning_is_reported,
        dates_are_present_and_last_modified_is_sane,
        every_character_of_our_keys_survives,
        a_key_and_keys_below_it_coexist,
        conditions_of_a_read_are_honoured,
        ranges_give_exactly_their_bytes,
        a_range_past_the_end_is_refused,
        large_objects_read_back_whole_and_in_part,
        a_64_mib_multipart_reads_back_as_sent,
        a_part_sent_again_replaces_the_first,
        an_unfinished_upload_is_listed_and_invisible,
        an_aborted_upload_leaves_nothing,
        a_completion_that_names_another_part_is_refused,
        a_completion_that_names_a_replaced_part_is_refused,
        a_listing_of_2501_keys_is_exact,
        pages_of_every_size_give_the_same_keys,
        keys_that_begin_one_another_list_in_byte_order,
        a_prefix_without_keys_lists_empty,
        a_prefix_with_an_empty_segment_lists_empty,
        creators_of_one_key_have_exactly_one_winner,
        creators_whose_last_byte_comes_late_have_exactly_one_winner,
        a_slow_and_a_fast_writer_have_one_winner,
        compare_and_swap_loses_no_update,
        a_stale_delete_keeps_the_object,
        a_stale_delete_never_takes_a_racing_overwrite,
        creates_and_deletes_do_not_disturb_their_neighbours,
        readers_see_whole_objects_while_they_are_overwritten,
        listings_are_exact_while_others_write,
    ]
);

conformance!(
    versioned_memory_store,
    versioned(Versioning::Enabled),
    memory(Versioning::Enabled),
    [
        a_created_object_reads_back_as_written,
        creating_on_a_taken_key_leaves_its_bytes,
        replace_if_match_replaces_only_what_it_names,
        overwrite_always_takes_effect,
        an_absent_key_is_not_found,
        zero_bytes_are_an_object,
        a_delete_without_fence_succeeds_twice,
        delete_if_match_takes_only_what_it_names,
        versioning_is_reported,
        dates_are_present_and_last_modified_is_sane,
        every_character_of_our_keys_survives,
        a_key_and_keys_below_it_coexist,
        conditions_of_a_read_are_honoured,
        ranges_give_exactly_their_bytes,
        a_range_past_the_end_is_refused,
        large_objects_read_back_whole_and_in_part,
        a_64_mib_multipart_reads_back_as_sent,
        a_part_sent_again_replaces_the_first,
        an_unfinished_upload_is_listed_and_invisible,
        an_aborted_upload_leaves_nothing,
        a_completion_that_names_another_part_is_refused,
        a_completion_that_names_a_replaced_part_is_refused,
        a_listing_of_2501_keys_is_exact,
        pages_of_every_size_give_the_same_keys,
        keys_that_begin_one_another_list_in_byte_order,
        a_prefix_without_keys_lists_empty,
        a_prefix_with_an_empty_segment_lists_empty,
        creators_of_one_key_have_exactly_one_winner,
        creators_whose_last_byte_comes_late_have_exactly_one_winner,
        a_slow_and_a_fast_writer_have_one_winner,
        compare_and_swap_loses_no_update,
        a_stale_delete_keeps_the_object,
        a_stale_delete_never_takes_a_racing_overwrite,
        creates_and_deletes_do_not_disturb_their_neighbours,
        readers_see_whole_objects_while_they_are_overwritten,
        listings_are_exact_while_others_write,
        create_only_is_refused_over_a_current_version,
        create_only_succeeds_over_a_delete_marker,
        deleting_an_old_version_keeps_the_newer,
        versions_list_newest_first,
        deleting_a_delete_marker_brings_the_object_back,
    ]
);

conformance!(
    suspended_memory_store,
    versioned(Versioning::Suspended),
    memory(Versioning::Suspended),
    [
        a_created_object_reads_back_as_written,
        creating_on_a_taken_key_leaves_its_bytes,
        replace_if_match_replaces_only_what_it_names,
        overwrite_always_takes_effect,
        an_absent_key_is_not_found,
        zero_bytes_are_an_object,
        a_delete_without_fence_succeeds_twice,
        delete_if_match_takes_only_what_it_names,
        versioning_is_reported,
        dates_are_present_and_last_modified_is_sane,
        every_character_of_our_keys_survives,
        a_key_and_keys_below_it_coexist,
        conditions_of_a_read_are_honoured,
        ranges_give_exactly_their_bytes,
        a_range_past_the_end_is_refused,
        large_objects_read_back_whole_and_in_part,
        a_64_mib_multipart_reads_back_as_sent,
        a_part_sent_again_replaces_the_first,
        an_unfinished_upload_is_listed_and_invisible,
        an_aborted_upload_leaves_nothing,
        a_completion_that_names_another_part_is_refused,
        a_completion_that_names_a_replaced_part_is_refused,
        a_listing_of_2501_keys_is_exact,
        pages_of_every_size_give_the_same_keys,
        keys_that_begin_one_another_list_in_byte_order,
        a_prefix_without_keys_lists_empty,
        a_prefix_with_an_empty_segment_lists_empty,
        creators_of_one_key_have_exactly_one_winner,
        creators_whose_last_byte_comes_late_have_exactly_one_winner,
        a_slow_and_a_fast_writer_have_one_winner,
        compare_and_swap_loses_no_update,
        a_stale_delete_keeps_the_object,
        a_stale_delete_never_takes_a_racing_overwrite,
        creates_and_deletes_do_not_disturb_their_neighbours,
        readers_see_whole_objects_while_they_are_overwritten,
        listings_are_exact_while_others_write,
        suspended_writes_replace_the_null_version,
    ]
);

conformance!(
    local_store,
    Capabilities::full(),
    local(),
    [
        a_created_object_reads_back_as_written,
        creating_on_a_taken_key_leaves_its_bytes,
        replace_if_match_replaces_only_what_it_names,
        overwrite_always_takes_effect,
        an_absent_key_is_not_found,
        zero_bytes_are_an_object,
        a_delete_without_fence_succeeds_twice,
        delete_if_match_takes_only_what_it_names,
        a_version_fence_is_refused_without_versions,
        versioning_is_reported,
        dates_are_present_and_last_modified_is_sane,
        every_character_of_our_keys_survives,
        a_key_and_keys_below_it_coexist,
        conditions_of_a_read_are_honoured,
        ranges_give_exactly_their_bytes,
        a_range_past_the_end_is_refused,
        large_objects_read_back_whole_and_in_part,
        a_64_mib_multipart_reads_back_as_sent,
        a_part_sent_again_replaces_the_first,
        an_unfinished_upload_is_listed_and_invisible,
        an_aborted_upload_leaves_nothing,
        a_completion_that_names_another_part_is_refused,
        a_completion_that_names_a_replaced_part_is_refused,
        a_listing_of_2501_keys_is_exact,
        pages_of_every_size_give_the_same_keys,
        keys_that_begin_one_another_list_in_byte_order,
        a_prefix_without_keys_lists_empty,
        a_prefix_with_an_empty_segment_lists_empty,
        creators_of_one_key_have_exactly_one_winner,
        creators_whose_last_byte_comes_late_have_exactly_one_winner,
        a_slow_and_a_fast_writer_have_one_winner,
        compare_and_swap_loses_no_update,
        a_stale_delete_keeps_the_object,
        a_stale_delete_never_takes_a_racing_overwrite,
        creates_and_deletes_do_not_disturb_their_neighbours,
        readers_see_whole_objects_while_they_are_overwritten,
        listings_are_exact_while_others_write,
    ]
);
