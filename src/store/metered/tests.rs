use std::sync::Mutex;

use super::*;
use crate::clock::SystemClock;
use crate::store::memory::MemoryStore;
use crate::store::testing;

#[derive(Debug, Default)]
struct Seen(Mutex<Vec<StoreRequest>>);

impl StoreMeter for Seen {
    fn record(&self, request: StoreRequest) {
        self.0.lock().unwrap().push(request);
    }
}

fn metered() -> (SharedStore, KeySpace, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let keys = KeySpace::new("p").unwrap();
    let inner = Arc::new(MemoryStore::new(SystemClock::shared()));
    let meter = Arc::<Seen>::clone(&seen);
    let store = MeteredStore::shared(inner, keys.clone(), meter);
    (store, keys, seen)
}

#[tokio::test]
async fn bytes_are_counted_once_they_are_acknowledged() {
    let (store, keys, seen) = metered();
    let format = keys.format();
    let put = || store.put(&format, "12345".into(), PutMode::CreateIfAbsent);
    put().await.unwrap();
    put().await.unwrap_err();
    let upload = store
        .create_upload(&keys.probe(&uuid::Uuid::nil()))
        .await
        .unwrap();
    store.put_part(&upload, 1, "123".into()).await.unwrap();
    store.abort_upload(&upload).await.unwrap();
    store.versioning().await.unwrap();
    let seen = seen.0.lock().unwrap();
    let rows: Vec<_> = seen
        .iter()
        .map(|request| {
            let failure = request.failure.map_or("ok", StoreErrorKind::as_str);
            let class = request.class.map_or("", KeyClass::as_str);
            (
                request.operation.as_str(),
                class,
                failure,
                request.written_bytes,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("put", "format", "ok", 5),
            ("put", "format", "already_exists", 0),
            ("create_upload", "probe", "ok", 0),
            ("put_part", "probe", "ok", 3),
            ("abort_upload", "probe", "ok", 0),
            ("versioning", "", "ok", 0),
        ]
    );
}

#[tokio::test]
async fn it_is_the_store_that_it_counts() {
    let (store, _, seen) = metered();
    let capabilities = testing::Capabilities::full();
    for case in testing::CASES
        .iter()
        .filter(|case| case.applies_to(&capabilities))
    {
        let name = case.name;
        testing::run_case(name, &store, capabilities, &format!("p/v1/probe/{name}/")).await;
    }
    assert!(seen.0.lock().unwrap().len() > 100);
}
