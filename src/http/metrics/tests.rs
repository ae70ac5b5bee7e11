use super::*;

#[test]
fn services_in_one_process_do_not_mix() {
    let (one, other) = (Metrics::new(), Metrics::new());
    one.saved(7, true);
    assert!(
        one.render(true, None)
            .contains("spillbox_saved_bytes_total 7")
    );
    assert!(
        !other
            .render(true, None)
            .contains("spillbox_saved_bytes_total 7")
    );
}

#[test]
fn names_follow_the_rules_of_prometheus() {
    for (name, kind, help) in name::ALL {
        let is_word = |b: u8| b.is_ascii_lowercase() || b == b'_';
        assert!(name.bytes().all(is_word), "{name}");
        assert_eq!(
            *kind == name::Kind::Counter,
            name.ends_with("_total"),
            "{name}"
        );
        if *kind == name::Kind::Seconds {
            assert!(name.ends_with("_seconds"), "{name}");
        }
        assert!(name.starts_with("spillbox_") || *name == "process_start_time_seconds");
        assert!(!help.is_empty());
    }
}

#[test]
fn durations_have_the_standard_buckets() {
    let metrics = Metrics::new();
    metrics.answered("GET", "/livez", 200, Duration::from_millis(3));
    let text = metrics.render(true, None);
    let bucket = "spillbox_http_request_duration_seconds_bucket{method=\"GET\",route=\"/livez\",status=\"2xx\",le=";
    for edge in ["0.005", "0.075", "10", "+Inf"] {
        assert!(text.contains(&format!("{bucket}\"{edge}\"}} 1")), "{text}");
    }
    assert!(text.contains("# TYPE spillbox_http_request_duration_seconds histogram"));
    let requests = "spillbox_http_requests_total{method=\"GET\",route=\"/livez\",status=\"200\"} 1";
    assert!(text.contains(requests), "{text}");
}

#[test]
fn what_has_not_failed_is_counted_as_zero() {
    let text = Metrics::new().render(false, None);
    for code in ErrorCode::ALL {
        let line = format!("spillbox_failures_total{{code=\"{code}\"}} 0");
        assert!(text.contains(&line), "{line}");
    }
    assert!(text.contains("spillbox_ready 0"));
    assert!(text.contains("spillbox_build_info{version="));
}

#[test]
fn the_gauges_are_those_of_the_moment() {
    let load = LibraryLoad {
        uploads: 3,
        upload_memory_bytes: 24 << 20,
        searches: 1,
    };
    let text = Metrics::new().render(true, Some((load, 512 << 20)));
    for line in [
        "spillbox_uploads_in_flight 3",
        "spillbox_upload_memory_reserved_bytes 25165824",
        "spillbox_upload_memory_limit_bytes 536870912",
        "spillbox_searches_in_flight 1",
        "spillbox_ready 1",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn the_operators_page_explains_every_metric() {
    let page = include_str!("../../../docs/OPERATIONS.md");
    for (name, _, _) in name::ALL {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
