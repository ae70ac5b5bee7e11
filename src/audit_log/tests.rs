use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::http::audit::Outcome;

fn event(number: u64) -> AuditEvent {
    AuditEvent {
        time: Timestamp::from_second(1_800_000_000).unwrap(),
        request_id: format!("r-{number}"),
        principal: None,
        tenant: None,
        operation: "read",
        session_key: None,
        artifact_id: None,
        outcome: Outcome::Ok,
        bytes_served: number,
    }
}

/// Numbers of the lines in `bytes`; each must be whole.
fn numbers(bytes: &[u8]) -> Vec<u64> {
    let text = std::str::from_utf8(bytes).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    text.lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["bytes_served"].as_u64().unwrap()
        })
        .collect()
}

/// A disk that takes a few bytes at a time, and none while it is full.
#[derive(Clone, Default)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    is_full: Arc<AtomicBool>,
}

impl Output for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut on_disk = self.bytes.lock().unwrap();
        if self.is_full.load(Ordering::Relaxed) && on_disk.len() % 10 == 7 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        on_disk.push(bytes[0]);
        Ok(1)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reopen(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_loses_and_tears_no_line() {
    let disk = Disk::default();
    disk.is_full.store(true, Ordering::Relaxed);
    let (lines, receiver) = mpsc::channel(4);
    let writer = AuditWriter::start_on(disk.clone(), receiver);
    for number in 0..4 {
        lines.send(event(number)).await.unwrap();
    }
    // The first batch is with the writer; the queue is full again behind it.
    tokio::time::sleep(Duration::from_secs(300)).await;
    for number in 4..8 {
        lines.send(event(number)).await.unwrap();
    }
    assert!(lines.try_send(event(99)).is_err());
    assert_eq!(disk.bytes.lock().unwrap().len(), 7);
    disk.is_full.store(false, Ordering::Relaxed);
    writer.finish().await;
    assert_eq!(
        numbers(&disk.bytes.lock().unwrap()),
        (0..8).collect::<Vec<_>>()
    );
    assert!(lines.try_send(event(99)).is_err(), "it takes no more");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_stays_full_does_not_hold_up_the_end() {
    let disk = Disk::default();
    disk.is_full.store(true, Ordering::Relaxed);
    let (lines, receiver) = mpsc::channel(4);
    let writer = AuditWriter::start_on(disk, receiver);
    for number in 0..3 {
        lines.send(event(number)).await.unwrap();
    }
    let unwritten = Arc::clone(&writer.unwritten);
    let started = tokio::time::Instant::now();
    writer.finish().await;
    assert!(started.elapsed() <= AUDIT_END_TIME + Duration::from_secs(1));
    assert_eq!(unwritten.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn the_end_waits_for_the_lines_of_running_requests() {
    let disk = Disk::default();
    let (lines, receiver) = mpsc::channel(4);
    let running = lines.clone().reserve_owned().await.unwrap();
    let writer = AuditWriter::start_on(disk.clone(), receiver);
    let (_, ()) = tokio::join!(writer.finish(), async {
        tokio::task::yield_now().await;
        running.send(event(7));
    });
    assert_eq!(numbers(&disk.bytes.lock().unwrap()), [7]);
}

#[tokio::test]
async fn a_file_is_appended_to_in_whole_lines_and_is_its_users_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let target: AuditTarget = path.to_str().unwrap().parse().unwrap();
    for number in 0..2 {
        let (lines, receiver) = mpsc::channel(4);
        let writer = AuditWriter::start(target.open().unwrap(), receiver);
        lines.send(event(number)).await.unwrap();
        writer.finish().await;
    }
    assert_eq!(numbers(&std::fs::read(&path).unwrap()), [0, 1]);
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // Killed in the middle of a line.
    let length = path.metadata().unwrap().len();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(length - 9).unwrap();
    let (lines, receiver) = mpsc::channel(4);
    let writer = AuditWriter::start(target.open().unwrap(), receiver);
    lines.send(event(2)).await.unwrap();
    writer.finish().await;
    let text = std::fs::read_to_string(&path).unwrap();
    let last = text.lines().last().unwrap();
    assert_eq!(numbers(format!("{last}\n").as_bytes()), [2]);
}

#[tokio::test]
async fn a_rotated_file_is_left_and_a_fresh_one_begun() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (dir.path().join("audit"), dir.path().join("audit.1"));
    let (lines, receiver) = mpsc::channel(4);
    let opened = AuditTarget::File(path.clone()).open().unwrap();
    let writer = AuditWriter::start(opened, receiver);
    lines.send(event(1)).await.unwrap();
    while std::fs::read(&path).unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    std::fs::rename(&path, &old).unwrap();
    writer.reopen.notify_one();
    while !path.exists() {
        tokio::task::yield_now().await;
    }
    lines.send(event(2)).await.unwrap();
    writer.finish().await;
    assert_eq!(numbers(&std::fs::read(&old).unwrap()), [1]);
    assert_eq!(numbers(&std::fs::read(&path).unwrap()), [2]);
}

#[test]
fn what_cannot_be_opened_is_an_error_at_once() {
    for path in ["/nonexistent/audit", "/", ""] {
        let target = AuditTarget::File(path.into());
        assert!(target.open().is_err(), "{path}");
    }
    assert_eq!("stdout".parse(), Ok(AuditTarget::Stdout));
    assert_eq!("./stdout".parse(), Ok(AuditTarget::File("./stdout".into())));
}
