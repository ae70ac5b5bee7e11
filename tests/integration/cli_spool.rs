//! What commands keep while their service is away, and send when it is back.

use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::program::{Place, Service, bare, outcome, store_in, text};

/// A directory with a store and a spool, and the address of a service that is not there yet: who comes
/// is let through once it is. The address is held all the time, so that nobody else gets it.
struct Away {
    dir: tempfile::TempDir,
    listen: String,
    service: Arc<Mutex<Option<String>>>,
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

impl Away {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = listener.local_addr().unwrap().to_string();
        let service: Arc<Mutex<Option<String>>> = Arc::default();
        let address = Arc::clone(&service);
        std::thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let Some(address) = address.lock().unwrap().clone() else {
                    continue;
                };
                let service = TcpStream::connect(address).unwrap();
                let (answer, reader) = (service.try_clone().unwrap(), caller.try_clone().unwrap());
                std::thread::spawn(move || pass(reader, service));
                std::thread::spawn(move || pass(answer, caller));
            }
        });
        let dir = tempfile::tempdir().unwrap();
        Self {
            dir,
            listen,
            service,
        }
    }

    fn spool(&self) -> PathBuf {
        self.dir.path().join("spool")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = bare(arguments);
        command
            .env("SPILLBOX_URL", format!("http://{}", self.listen))
            .env("SPILLBOX_SPOOL", self.spool())
            .env("SPILLBOX_SPOOL_BYTES", "50000000");
        command
    }

    fn starts(&self) -> Service {
        let service = Service::start(&store_in(self.dir.path()), &[]);
        let address = service.url.trim_start_matches("http://").to_owned();
        *self.service.lock().unwrap() = Some(address);
        service
    }

    fn entries(&self) -> Vec<PathBuf> {
        files(&self.spool())
    }

    fn listed(&self, session: &str) -> Vec<Value> {
        let (status, listed, errors) =
            outcome(self.command(&["ls", "--json", "--session", session]));
        assert_eq!(status, 0, "{errors}");
        let listed: Value = serde_json::from_slice(&listed).unwrap();
        listed["artifacts"].as_array().unwrap().clone()
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(listed) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    listed.map(|entry| entry.unwrap().path()).collect()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_run_while_the_service_is_away_is_stored_later_under_its_call_id() {
    let away = Away::new();
    let script = "seq 1 400000; exit 3";
    let arguments = ["run", "--call-id", "call 1", "--", "sh", "-c", script];
    let (status, shown, errors) = outcome(away.command(&arguments));
    let shown = text(shown);
    assert_eq!(status, 3, "{errors}");
    assert!(shown.starts_with("[spillbox] NOT STORED YET: "), "{shown}");
    assert!(shown.contains("\n1\n2\n") && shown.ends_with("\n400000\n"));
    assert!(!shown.contains("lost"), "{shown}");
    assert!(errors.contains("note: it is kept in "), "{errors}");
    let entries = away.entries();
    assert_eq!(entries.len(), 1);
    assert_eq!((mode(&away.spool()), mode(&entries[0])), (0o700, 0o600));

    let (status, _, errors) = outcome(away.command(&["drain"]));
    assert_eq!(status, 1, "{errors}");
    assert_eq!(away.entries(), entries);

    let _service = away.starts();
    // Any number of processes may drain at once.
    let drains: Vec<_> = (0..3)
        .map(|_| {
            away.command(&["drain"])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let printed: String = drains
        .into_iter()
        .map(|drain| text(drain.wait_with_output().unwrap().stdout))
        .collect();
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert_eq!(away.entries(), Vec::<PathBuf>::new());
    let listed = away.listed("default");
    assert_eq!(listed.len(), 1);
    let whole: String = (1..=400_000).map(|n| format!("{n}\n")).collect();
    let (_, body, _) = outcome(away.command(&["cat", printed.trim_end()]));
    assert!(body == whole.as_bytes());
    // The same call again meets what the drain has stored.
    let (status, _, errors) = outcome(away.command(&arguments));
    assert_eq!((status, errors.as_str()), (3, ""));
    assert_eq!(away.listed("default").len(), 1);
}

#[test]
fn the_next_run_sends_what_waits_and_a_small_one_sends_nothing() {
    let away = Away::new();
    let large = ["run", "--", "seq", "1", "20000"];
    let (_, shown, _) = outcome(away.command(&[&large[..1], &["--json"], &large[1..]].concat()));
    let decision: Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(
        (&decision["stored"], &decision["kept"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(away.entries().len(), 1);
    let _service = away.starts();
    outcome(away.command(&["run", "--", "echo", "small"]));
    assert_eq!(away.entries().len(), 1, "nothing was asked of the service");
    let (status, _, errors) = outcome(away.command(&["run", "--", "seq", "1", "30000"]));
    assert_eq!(status, 0);
    assert!(
        errors.contains("stored now what waited on the spool: 1"),
        "{errors}"
    );
    assert_eq!((away.entries().len(), away.listed("default").len()), (0, 2));
}

#[test]
fn over_the_cap_nothing_is_kept_and_it_is_said_and_zero_turns_it_off() {
    let away = Away::new();
    let large = ["run", "--", "seq", "1", "200000"];
    for (bytes, told) in [("100000", true), ("0", false)] {
        let mut command = away.command(&large);
        command.env("SPILLBOX_SPOOL_BYTES", bytes);
        let (status, shown, errors) = outcome(command);
        assert_eq!(status, 0);
        assert!(text(shown).starts_with("[spillbox] NOT STORED: "));
        assert_eq!(
            errors.contains("the spool may hold 100000 bytes"),
            told,
            "{errors}"
        );
        assert_eq!(away.entries().len(), 0);
    }
    // A store of this process is no service.
    let mut straight = bare(&[
        "run",
        "--store",
        "local:/dev/null",
        "--",
        "seq",
        "1",
        "200000",
    ]);
    straight
        .env("SPILLBOX_SPOOL", away.spool())
        .env("SPILLBOX_SPOOL_BYTES", "50000000");
    outcome(straight);
    assert_eq!(away.entries().len(), 0);
}

fn hooked(mut command: Command, event: &Value) -> (i32, String, String) {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(event.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn a_hook_keeps_what_the_prompt_should_not_have_had_and_the_next_one_sends_it() {
    let away = Away::new();
    let large: String = (1..=20_000).map(|n| format!("line {n}\n")).collect();
    let event = |call: &str, stdout: &str| {
        json!({
            "session_id": "run", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": call,
            "tool_response": {"stdout": stdout, "stderr": "small", "interrupted": false},
        })
    };
    let hook = || away.command(&["hook", "claude-code"]);
    let (status, stdout, errors) = hooked(hook(), &event("toolu_0", "small"));
    assert_eq!((status, stdout.as_str()), (0, ""));
    assert!(
        errors.starts_with("warning: ") || errors.contains("the original stays"),
        "{errors}"
    );
    assert_eq!(
        away.entries().len(),
        0,
        "what stays in a prompt need not be stored"
    );
    let (status, stdout, errors) = hooked(hook(), &event("toolu_1", &large));
    assert_eq!((status, stdout.as_str()), (0, ""), "{errors}");
    assert!(errors.contains("the original stays"), "{errors}");
    assert_eq!(away.entries().len(), 1);

    let _service = away.starts();
    let (status, stdout, errors) = hooked(hook(), &event("toolu_2", &large));
    assert_eq!(status, 0, "{errors}");
    assert!(stdout.contains("updatedToolOutput"), "{stdout}");
    assert_eq!(away.entries().len(), 0, "{errors}");
    assert_eq!(away.listed("run").len(), 2);
    // Asked again, the call is decided now, and its bytes are there already.
    hooked(hook(), &event("toolu_1", &large));
    assert_eq!(away.listed("run").len(), 2);
}

#[test]
fn a_drain_needs_a_service_and_a_spool() {
    let place = Place::store();
    let (status, _, errors) = outcome(place.command(&["drain"]));
    assert_eq!(status, 2, "{errors}");
    let (status, _, errors) = outcome(bare(&["drain", "--url", "http://127.0.0.1:1"]));
    assert_eq!(status, 2, "{errors}");
    assert!(errors.contains("hint: "), "{errors}");
}
