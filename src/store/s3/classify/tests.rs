use rstest::rstest;

use super::Call::*;
use super::*;

#[rstest]
#[case::missing(Read, 404, "NoSuchKey", Kind::NotFound)]
#[case::missing_head(Head, 404, "", Kind::NotFound)]
#[case::missing_head_coded(Head, 404, "NotFound", Kind::NotFound)]
#[case::not_an_s3(Read, 404, "", Kind::Rejected)]
#[case::no_bucket_is_not_a_missing_key(Read, 404, "NoSuchBucket", Kind::Rejected)]
#[case::no_bucket_on_create(Create, 404, "NoSuchBucket", Kind::Rejected)]
#[case::no_bucket_on_fenced_delete(DeleteIfMatch, 404, "NoSuchBucket", Kind::Rejected)]
#[case::replace_of_missing(Replace, 404, "NoSuchKey", Kind::PreconditionFailed)]
#[case::fenced_delete_of_missing(DeleteIfMatch, 404, "NoSuchKey", Kind::PreconditionFailed)]
#[case::no_upload(Write, 404, "NoSuchUpload", Kind::NotFound)]
#[case::create_lost(Create, 412, "PreconditionFailed", Kind::AlreadyExists)]
#[case::create_lost_uncoded(Create, 412, "", Kind::AlreadyExists)]
#[case::replace_lost(Replace, 412, "PreconditionFailed", Kind::PreconditionFailed)]
#[case::read_condition(Read, 412, "PreconditionFailed", Kind::PreconditionFailed)]
#[case::conflict(Create, 409, "ConditionalRequestConflict", Kind::Conflict)]
#[case::conflict_uncoded(Create, 409, "", Kind::Conflict)]
#[case::denied(Head, 403, "", Kind::Denied)]
#[case::denied_coded(Read, 403, "AccessDenied", Kind::Denied)]
#[case::unauthorized(Read, 401, "", Kind::Denied)]
#[case::skewed(Read, 403, "RequestTimeTooSkewed", Kind::Denied)]
#[case::slow_down(Create, 503, "SlowDown", Kind::Throttled)]
#[case::slow_down_read(Create, 503, "SlowDownRead", Kind::Throttled)]
#[case::too_many(Read, 429, "", Kind::Throttled)]
#[case::bare_503_write(Create, 503, "", Kind::Ambiguous)]
#[case::bare_503_read(Read, 503, "", Kind::Unavailable)]
#[case::internal_write(Write, 500, "InternalError", Kind::Ambiguous)]
#[case::internal_read(Read, 500, "InternalError", Kind::Unavailable)]
#[case::internal_delete(Delete, 500, "InternalError", Kind::Ambiguous)]
#[case::gateway_write(Create, 502, "", Kind::Ambiguous)]
#[case::in_success(Write, 200, "InternalError", Kind::Ambiguous)]
#[case::in_success_slow(Write, 200, "SlowDown", Kind::Throttled)]
#[case::in_success_denied(Write, 200, "AccessDenied", Kind::Denied)]
#[case::in_success_part(Write, 200, "InvalidPart", Kind::Rejected)]
#[case::in_success_unknown(Write, 200, "Whatever", Kind::Ambiguous)]
#[case::unsupported(Write, 501, "NotImplemented", Kind::NotImplemented)]
#[case::not_allowed(Read, 405, "MethodNotAllowed", Kind::NotImplemented)]
#[case::range(Read, 416, "InvalidRange", Kind::InvalidRange)]
#[case::range_uncoded(Read, 416, "", Kind::InvalidRange)]
#[case::full(Create, 507, "", Kind::Full)]
#[case::full_minio(Create, 507, "XMinioStorageFull", Kind::Full)]
#[case::quota(Create, 403, "QuotaExceeded", Kind::Full)]
#[case::bad_digest(Create, 400, "BadDigest", Kind::Rejected)]
#[case::bad_request(Create, 400, "", Kind::Rejected)]
#[case::region(Read, 301, "PermanentRedirect", Kind::Rejected)]
#[case::body_late(Create, 400, "RequestTimeout", Kind::Unavailable)]
fn answers_are_classified_by_status_and_code(
    #[case] call: Call,
    #[case] status: u16,
    #[case] code: &str,
    #[case] kind: Kind,
) {
    assert_eq!(kind_of(call, status, code), kind);
}

fn site(call: Call) -> Site<'static> {
    Site {
        call,
        operation: "put",
        key: "k",
        bucket: "bucket-of-mine",
    }
}

fn reply(status: u16) -> Reply {
    Reply {
        status,
        date: None,
        request_id: Some("REQ-1".into()),
        is_html: false,
    }
}

#[test]
fn the_detail_names_status_code_request_and_bucket() {
    let error = site(Create).answer(
        &reply(404),
        Some("NoSuchBucket"),
        Some("The bucket\r\ndoes not exist"),
    );
    let text = error.to_string();
    for part in ["404", "NoSuchBucket", "REQ-1", "bucket-of-mine"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains('\n'), "{text}");
}

#[test]
fn a_web_page_is_told_from_an_answer() {
    let page = Reply {
        is_html: true,
        ..reply(404)
    };
    let error = site(Read).answer(&page, None, None);
    assert_eq!(error.kind, Kind::Rejected);
    assert!(error.detail.contains("endpoint"), "{error}");
    let gateway = Reply {
        is_html: true,
        ..reply(502)
    };
    assert_eq!(
        site(Create).answer(&gateway, None, None).kind,
        Kind::Ambiguous
    );
}
