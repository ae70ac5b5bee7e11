//! The rows: which path is held against which bare request.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use spillbox::clock::{Clock as _, SystemClock};
use spillbox::ids::SystemIds;
use spillbox::limits::CHUNK_BYTES;
use spillbox::store::keys::Key;
use uuid::Uuid;

use crate::direct;
use crate::measure::{Row, WARM_UP};
use crate::place::{PREFIX, Place};

const MIB: usize = 1 << 20;

/// Measures every row.
pub(crate) async fn measure_all(place: &Place) -> anyhow::Result<Vec<Row>> {
    let mut rows = vec![
        save(place, "save 64 KiB", 64 << 10, 60).await?,
        save(place, "save 1 MiB", MIB, 40).await?,
        save(place, "save 8 MiB", 8 * MIB, 20).await?,
        save_streamed(place).await?,
    ];
    rows.extend(reads(place).await?);
    Ok(rows)
}

async fn timed<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<Duration> {
    let began = Instant::now();
    work.await?;
    Ok(began.elapsed())
}

/// Runs bare and service in turns.
async fn pairs<A, B>(
    count: usize,
    mut bare: impl FnMut() -> A,
    mut service: impl FnMut() -> B,
) -> anyhow::Result<Vec<(Duration, Duration)>>
where
    A: Future<Output = anyhow::Result<()>>,
    B: Future<Output = anyhow::Result<()>>,
{
    let mut pairs = Vec::with_capacity(count);
    for turn in 0..WARM_UP + count {
        let pair = (timed(bare()).await?, timed(service()).await?);
        if turn >= WARM_UP {
            pairs.push(pair);
        }
    }
    Ok(pairs)
}

fn fresh_uuid() -> Uuid {
    SystemIds::shared().uuid(SystemClock.now())
}

fn fresh_key() -> Key {
    Key::parse(format!("{PREFIX}/bare/{}", fresh_uuid())).expect("of the key alphabet")
}

/// An ordinary log of exactly `size` bytes, with one line that a search can look for near its end.
fn log(size: usize) -> Bytes {
    let mut bytes = Vec::with_capacity(size + 200);
    let mut number = 0_u64;
    while bytes.len() < size {
        let id = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let line = format!(
            "2026-11-30T12:00:00Z info worker={number} id={id:016x} took {} us\n",
            id % 5_000
        );
        bytes.extend_from_slice(line.as_bytes());
        number += 1;
    }
    bytes.truncate(size);
    let needle = b"\nthe only line with a needle\n";
    let at = size.saturating_sub(4_096);
    if at + needle.len() < size {
        bytes[at..at + needle.len()].copy_from_slice(needle);
    }
    bytes.into()
}

/// No two saves have equal bytes, as no two outputs have.
fn distinct(body: &Bytes) -> Bytes {
    let mut bytes = body.to_vec();
    let mark = fresh_uuid().simple().to_string();
    bytes[..mark.len()].copy_from_slice(mark.as_bytes());
    bytes.into()
}

async fn save(place: &Place, path: &'static str, size: usize, count: usize) -> anyhow::Result<Row> {
    let body = log(size);
    let pairs = pairs(
        count,
        || {
            let body = distinct(&body);
            async move { direct::put(&place.bare, &fresh_key(), &body).await }
        },
        || {
            let body = distinct(&body);
            async move { place.service.save(body).await.map(drop) }
        },
    );
    Ok(Row {
        path,
        baseline: "one PUT",
        bound: None,
        pairs: pairs.await?,
    })
}

async fn save_streamed(place: &Place) -> anyhow::Result<Row> {
    let body = log(100 * MIB);
    let pairs = pairs(
        10,
        || {
            let body = distinct(&body);
            async move { direct::put_parts(&place.bare, &fresh_key(), &body).await }
        },
        || {
            let body = distinct(&body);
            async move { place.service.save(body).await.map(drop) }
        },
    );
    Ok(Row {
        path: "save 100 MiB",
        baseline: "multipart upload, 8 MiB parts, 2 at once",
        bound: None,
        pairs: pairs.await?,
    })
}

/// Where the service keeps the body that a path reads.
fn body_key(path: &str) -> anyhow::Result<Key> {
    let (session, artifact) = path
        .strip_prefix("/a/")
        .and_then(|name| name.split_once('.'))
        .context("a path of an artifact")?;
    Ok(Key::parse(format!(
        "{PREFIX}/v1/t/default/b/{session}/{artifact}"
    ))?)
}

async fn reads(place: &Place) -> anyhow::Result<Vec<Row>> {
    let size = 100 * MIB;
    let receipt = place.service.save(log(size)).await?;
    let path = place.service.path_of(&receipt)?;
    let key = body_key(&path)?;
    let whole = || async {
        let bytes = direct::get(&place.bare, &key, None).await?;
        ensure!(bytes == size as u64, "{bytes} bytes of {size}");
        Ok(())
    };

    let lines = format!("{path}/lines?offset=500000&limit=200&max_bytes=1048576");
    let page = place.service.json(&lines).await?;
    let at = |name: &str| page[name].as_u64().context("a byte offset");
    let chunk = CHUNK_BYTES as u64;
    let chunks = at("start_byte")? / chunk * chunk..at("end_byte")?.div_ceil(chunk) * chunk;
    let range = chunks.clone();
    let bare_page = || {
        let range = range.clone();
        async { direct::get(&place.bare, &key, Some(range)).await.map(drop) }
    };
    let service_page = || async { place.service.read(&lines).await.map(drop) };

    let grep = format!("{path}/grep?pattern=needle");
    let found = place.service.json(&grep).await?;
    let hits = found["matches"].as_array().map_or(0, Vec::len);
    ensure!(hits == 1, "{hits} hits, not 1");
    let service_grep = || async { place.service.read(&grep).await.map(drop) };
    let regex = format!("{path}/grep?pattern=needle%24&mode=regex&ignore_case=true");
    let service_regex = || async { place.service.read(&regex).await.map(drop) };
    let service_whole = || async {
        let bytes = place.service.read(&path).await?;
        ensure!(bytes == size as u64, "{bytes} bytes of {size}");
        Ok(())
    };

    Ok(vec![
        Row {
            path: "GET 100 MiB",
            baseline: "whole GET",
            bound: None,
            pairs: pairs(15, whole, service_whole).await?,
        },
        Row {
            path: "200 lines in the middle of 100 MiB",
            baseline: "range GET of the same chunks",
            bound: Some(1.5),
            pairs: pairs(100, bare_page, service_page).await?,
        },
        Row {
            path: "grep, literal, 100 MiB",
            baseline: "whole GET",
            bound: Some(1.15),
            pairs: pairs(15, whole, service_grep).await?,
        },
        Row {
            path: "grep, regex ignoring case, 100 MiB",
            baseline: "whole GET",
            bound: None,
            pairs: pairs(15, whole, service_regex).await?,
        },
    ])
}
