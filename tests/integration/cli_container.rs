//! What images and schedulers call: `spillbox healthcheck` and `spillbox job`.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::Stdio;

use crate::gc_service::age;
use crate::support::program::{Place, Service, bare, outcome, text};

fn healthcheck(url: &str) -> (i32, Vec<u8>, String) {
    let listen = url.strip_prefix("http://").unwrap();
    outcome(bare(&["healthcheck", "--listen", listen]))
}

#[test]
fn a_ready_service_is_healthy_and_says_nothing() {
    let place = Place::service();
    assert_eq!(healthcheck(place.url()), (0, vec![], String::new()));
    // As an image asks: by the environment that the service has too, whatever proxy is set there.
    let listen = place.url().strip_prefix("http://").unwrap();
    let mut command = bare(&["healthcheck"]);
    command
        .env("SPILLBOX_SERVER__LISTEN", listen)
        .env("HTTP_PROXY", "http://127.0.0.1:1")
        .env_remove("HOME");
    assert_eq!(outcome(command).0, 0);
}

#[test]
fn a_service_whose_store_does_not_answer_is_not_healthy() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let mut serve = bare(&["serve", "--listen", "127.0.0.1:0"]);
    serve
        .args(["--store", "s3://bucket"])
        .env("AWS_ENDPOINT_URL", endpoint)
        .env("AWS_ACCESS_KEY_ID", "a")
        .env("AWS_SECRET_ACCESS_KEY", "b")
        .env("AWS_REGION", "us-east-1");
    let service = Service::spawn(serve);
    let (status, _, errors) = healthcheck(&service.url);
    assert_eq!(status, 1, "{errors}");
    assert!(errors.contains("not opened its store"), "{errors}");
}

#[test]
fn nobody_and_somebody_else_are_not_healthy() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", other.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        use std::io::Write;
        let (mut stream, _) = other.accept().unwrap();
        let mut request = [0; 512];
        let _ = stream.read(&mut request).unwrap();
        stream.write_all(b"SSH-2.0-other\r\n").unwrap();
    });
    let (status, _, errors) = healthcheck(&url);
    answering.join().unwrap();
    assert_eq!(status, 1);
    assert!(errors.contains("no HTTP"), "{errors}");
    // The listener is gone with its thread.
    let (status, _, errors) = healthcheck(&url);
    assert_eq!(status, 1);
    assert!(errors.contains("/readyz"), "{errors}");
    let (status, _, errors) = outcome(bare(&["healthcheck", "--listen", "nowhere"]));
    assert_eq!(status, 2, "{errors}");
}

#[test]
fn a_job_that_leaves_something_for_its_next_run_is_done() {
    let place = Place::store();
    place.put("old.log", b"old and unreferenced\n");
    age(&place, 30);
    let (status, _, errors) = outcome(place.command(&["gc", "plan", "--json"]));
    assert_eq!(status, 3, "{errors}");
    let as_job = ["job", "--", "gc", "plan", "--json"];
    let (status, output, errors) = outcome(place.command(&as_job));
    assert_eq!(status, 0, "{errors}");
    let plan: serde_json::Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(plan["counts"]["planned_delete"], 1);
}

#[test]
fn a_job_fails_as_its_command_does() {
    for (arguments, expected) in [
        (&["job", "--", "cat", "nothing"][..], 1),
        (&["job", "--", "healthcheck", "--listen", "127.0.0.1:1"], 1),
        // Wrong usage would be wrong again.
        (&["job", "--every", "1h", "--", "gc", "collect"], 2),
        (&["job"], 2),
        (&["job", "--every", "10ms", "--", "profiles"], 2),
        (&["job", "--runs", "2", "--", "profiles"], 2),
    ] {
        let (status, _, errors) = outcome(bare(arguments));
        assert_eq!(status, expected, "{arguments:?}: {errors}");
    }
}

#[test]
fn a_job_runs_again_and_again() {
    let once = text(outcome(bare(&["profiles", "dsh"])).1);
    let (status, output, errors) = outcome(bare(&[
        "job", "--every", "1s", "--runs", "2", "--", "profiles", "dsh",
    ]));
    assert_eq!(status, 0, "{errors}");
    assert_eq!(text(output), once.repeat(2));
    assert_eq!(errors.matches("the job ended").count(), 2, "{errors}");
}

#[test]
fn the_end_of_the_schedule_is_the_end_of_the_job() {
    // A service is a job that ends only when it is told to.
    let place = Place::store();
    let mut command = place.command(&["job", "--every", "1h", "--", "serve"]);
    command
        .args(["--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("listening on") {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "the job ended");
    }
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status();
    assert!(killed.unwrap().success());
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest}");
    assert!(rest.contains("stopped"), "{rest}");
}
