//! The suite over the S3 backend and the servers that it must work on.

use super::*;
use crate::support::s3_server::{BucketVersioning, Quirks, S3Server};

fn capabilities(quirks: Quirks, versioning: Versioning) -> Capabilities {
    Capabilities {
        versioning,
        delete_if_match: quirks.name != Quirks::MINIO.name,
        // The backend sends what it is told to: not to fence by version there is its caller's duty.
        refuses_unversioned_fence: false,
        ..Capabilities::full()
    }
}

fn open(quirks: Quirks, versioning: Versioning) -> (SharedStore, S3Server) {
    let versioning = match versioning {
        Versioning::NeverEnabled => BucketVersioning::Never,
        Versioning::Enabled => BucketVersioning::Enabled,
        Versioning::Suspended => BucketVersioning::Suspended,
    };
    let server = S3Server::builder()
        .quirks(quirks)
        .versioning(versioning)
        .start();
    (Arc::new(server.store()), server)
}

/// The suite's order, with the cases that need a fence or a kind of versioning left to the caller.
macro_rules! s3_conformance {
    (
        $backend:ident, $quirks:expr, $versioning:expr,
        fence: [$($fence:ident),*], fence_races: [$($fence_race:ident),*],
        versioned: [$($versioned:ident),*]
    ) => {
        conformance!(
            $backend,
            capabilities($quirks, $versioning),
            open($quirks, $versioning),
            [
                a_created_object_reads_back_as_written,
                creating_on_a_taken_key_leaves_its_bytes,
                replace_if_match_replaces_only_what_it_names,
                overwrite_always_takes_effect,
                an_absent_key_is_not_found,
                zero_bytes_are_an_object,
                a_delete_without_fence_succeeds_twice,
                $($fence,)*
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
                $($fence_race,)*
                creates_and_deletes_do_not_disturb_their_neighbours,
                readers_see_whole_objects_while_they_are_overwritten,
                listings_are_exact_while_others_write,
                $($versioned,)*
            ]
        );
    };
}

s3_conformance!(
    aws,
    Quirks::AWS,
    Versioning::NeverEnabled,
    fence: [delete_if_match_takes_only_what_it_names],
    fence_races: [
        a_stale_delete_keeps_the_object,
        a_stale_delete_never_takes_a_racing_overwrite
    ],
    versioned: []
);

s3_conformance!(
    aws_versioned,
    Quirks::AWS,
    Versioning::Enabled,
    fence: [delete_if_match_takes_only_what_it_names],
    fence_races: [
        a_stale_delete_keeps_the_object,
        a_stale_delete_never_takes_a_racing_overwrite
    ],
    versioned: [
        create_only_is_refused_over_a_current_version,
        create_only_succeeds_over_a_delete_marker,
        deleting_an_old_version_keeps_the_newer,
        versions_list_newest_first,
        deleting_a_delete_marker_brings_the_object_back
    ]
);

s3_conformance!(
    aws_suspended,
    Quirks::AWS,
    Versioning::Suspended,
    fence: [delete_if_match_takes_only_what_it_names],
    fence_races: [
        a_stale_delete_keeps_the_object,
        a_stale_delete_never_takes_a_racing_overwrite
    ],
    versioned: [suspended_writes_replace_the_null_version]
);

s3_conformance!(
    minio,
    Quirks::MINIO,
    Versioning::NeverEnabled,
    fence: [],
    fence_races: [],
    versioned: []
);

s3_conformance!(
    minio_versioned,
    Quirks::MINIO,
    Versioning::Enabled,
    fence: [],
    fence_races: [],
    versioned: [
        create_only_is_refused_over_a_current_version,
        create_only_succeeds_over_a_delete_marker,
        deleting_an_old_version_keeps_the_newer,
        versions_list_newest_first,
        deleting_a_delete_marker_brings_the_object_back
    ]
);
