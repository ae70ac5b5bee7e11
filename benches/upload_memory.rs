//! Resident memory of uploads through the whole service: a real socket, the real router, a store that
//! throws the bytes away. Prints the growth over the idle service for several sizes; it must stay under
//! 40 MiB and must not grow with the size.
//!
//! `cargo bench --bench upload_memory`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use spillbox::artifact::format::StoreFormat;
use spillbox::artifact::library::{Library, LibraryOptions};
use spillbox::auth::Authenticator;
use spillbox::clock::SystemClock;
use spillbox::http::app::{AppState, router};
use spillbox::http::request_id::RequestIds;
use spillbox::ids::{SystemIds, Tenant};
use spillbox::server::{ServerOptions, run};
use spillbox::store::keys::{Key, KeySpace};
use spillbox::store::memory::MemoryStore;
use spillbox::store::{
    DeleteFence, DeleteReceipt, ETag, GetOptions, GetReply, Head, ListPage, ListRequest,
    ObjectMeta, ObjectStore, Part, Payload, PutMode, PutReceipt, StoreError, Upload, UploadPage,
    VersionPage, Versioning,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Keeps small objects, forgets the bytes of parts; a part takes as long as a store at 400 MB/s.
#[derive(Debug)]
struct DiscardingStore {
    small: MemoryStore,
    streamed_bytes: AtomicU64,
}

#[async_trait]
impl ObjectStore for DiscardingStore {
    async fn put(
        &self,
        key: &Key,
        payload: Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        self.small.put(key, payload, mode).await
    }
    async fn get(&self, key: &Key, options: GetOptions) -> Result<GetReply, StoreError> {
        self.small.get(key, options).await
    }
    async fn head(&self, key: &Key) -> Result<Head, StoreError> {
        let mut head = self.small.head(key).await?;
        head.meta = ObjectMeta {
            size_bytes: self.streamed_bytes.load(Ordering::Relaxed),
            checksum: None,
            ..head.meta
        };
        Ok(head)
    }
    async fn list(&self, request: &ListRequest) -> Result<ListPage, StoreError> {
        self.small.list(request).await
    }
    async fn delete(&self, key: &Key, fence: DeleteFence) -> Result<DeleteReceipt, StoreError> {
        self.small.delete(key, fence).await
    }
    async fn create_upload(&self, key: &Key) -> Result<Upload, StoreError> {
        self.streamed_bytes.store(0, Ordering::Relaxed);
        Ok(Upload {
            key: key.clone(),
            upload_id: "1".into(),
        })
    }
    async fn put_part(
        &self,
        _: &Upload,
        number: u32,
        payload: Payload,
    ) -> Result<Part, StoreError> {
        let size_bytes = payload.size_bytes();
        self.streamed_bytes.fetch_add(size_bytes, Ordering::Relaxed);
        tokio::time::sleep(std::time::Duration::from_micros(size_bytes / 400)).await;
        Ok(Part {
            number,
            etag: ETag(number.to_string()),
            crc32: payload.crc32(),
            size_bytes,
        })
    }
    async fn complete_upload(&self, upload: &Upload, _: &[Part]) -> Result<PutReceipt, StoreError> {
        self.small
            .put(&upload.key, Payload::from("forgotten"), PutMode::Overwrite)
            .await
    }
    async fn abort_upload(&self, _: &Upload) -> Result<(), StoreError> {
        Ok(())
    }
    async fn list_uploads(&self, continuation: Option<&str>) -> Result<UploadPage, StoreError> {
        self.small.list_uploads(continuation).await
    }
    async fn versioning(&self) -> Result<Versioning, StoreError> {
        self.small.versioning().await
    }
    async fn list_versions(
        &self,
        prefix: &str,
        continuation: Option<&str>,
    ) -> Result<VersionPage, StoreError> {
        self.small.list_versions(prefix, continuation).await
    }
}

/// Resident memory now, in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux process");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("VmRSS");
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("a number");
    kib * 1024
}

async fn upload(address: std::net::SocketAddr, size_bytes: u64) -> u64 {
    let mut socket = tokio::net::TcpStream::connect(address)
        .await
        .expect("a connection");
    let head = format!(
        "POST /v1/sessions/bench/artifacts?tool=bench HTTP/1.1\r\nhost: bench\r\ncontent-length: {size_bytes}\r\nconnection: close\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.expect("the head");
    let line = b"a line of an ordinary log, long enough to look like one of many others\n";
    let block: Vec<u8> = line.iter().copied().cycle().take(256 << 10).collect();
    let mut peak = 0;
    let mut sent = 0;
    while sent < size_bytes {
        let piece = block
            .len()
            .min(usize::try_from(size_bytes - sent).unwrap_or(usize::MAX));
        socket.write_all(&block[..piece]).await.expect("the body");
        sent += piece as u64;
        if sent.is_multiple_of(4 << 20) {
            peak = peak.max(resident_bytes());
        }
    }
    let mut reply = String::new();
    socket.read_to_string(&mut reply).await.expect("a reply");
    assert!(reply.starts_with("HTTP/1.1 201"), "{reply}");
    peak
}

#[tokio::main]
async fn main() {
    let store = Arc::new(DiscardingStore {
        small: MemoryStore::new(SystemClock::shared()),
        streamed_bytes: AtomicU64::new(0),
    });
    let format = StoreFormat {
        v: 1,
        orphan_ttl_seconds: 86_400,
    };
    let keys = KeySpace::new("").expect("no prefix");
    let (clock, ids) = (SystemClock::shared(), SystemIds::shared());
    let library = Library::new(
        store,
        keys,
        format,
        Arc::clone(&clock),
        Arc::clone(&ids),
        LibraryOptions::default(),
    );
    let state = AppState::opened(
        library,
        Authenticator::anonymous(Tenant::default()),
        Vec::new(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    let app = router(state, RequestIds::new(clock, ids));
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move {
        run(
            listener,
            app,
            ServerOptions::default(),
            std::future::pending(),
        )
        .await;
    });
    upload(address, 1 << 20).await;
    let idle = resident_bytes();
    println!("idle service: {} MiB resident", idle >> 20);
    println!("{:>10} {:>12} {:>10}", "upload", "growth MiB", "MB/s");
    for mebibytes in [16, 64, 256, 1024] {
        let size_bytes = mebibytes << 20;
        let started = Instant::now();
        let peak = upload(address, size_bytes).await;
        let rate = size_bytes as f64 / started.elapsed().as_secs_f64() / 1e6;
        let growth = peak.saturating_sub(idle) as f64 / f64::from(1 << 20);
        println!("{:>6} MiB {growth:>12.1} {rate:>10.0}", mebibytes);
    }
}
