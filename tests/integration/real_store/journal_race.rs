//! Processes that append to one journal over a real endpoint; see [`crate::lease_race`].

use std::time::Duration;

use spillbox::store::testing::remove_all;
use tokio::time::timeout;

use super::endpoint::{Ground, Mode};
use super::suite::Suite;
use crate::lease_race::{Place, race, verify};

/// A race that takes longer has failed; its processes end with it.
const LONGEST: Duration = Duration::from_secs(240);

async fn races(mode: Mode) {
    let Some(ground) = Ground::open(mode).await else {
        return;
    };
    // A server that slows down under contention says so by its number of contenders.
    let processes = if ground.capabilities.contenders < 6 {
        2
    } else {
        6
    };
    let mut suite = Suite::begin(format!("{} journal race", ground.name));
    let prefix = ground.fresh_prefix();
    let place = Place::Bucket {
        endpoint: ground.url.clone(),
        bucket: ground.bucket.clone(),
        prefix: prefix.clone(),
    };
    let name = format!("{processes}_processes_append_and_nothing_is_lost");
    let work = async {
        let receipts = timeout(LONGEST, race(&place, processes)).await.unwrap();
        verify(&place, processes, &receipts).await;
    };
    suite.case(&name, work).await;
    remove_all(&*ground.store, &prefix).await.unwrap();
    suite.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_race_in_the_plain_bucket() {
    races(Mode::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_race_in_the_versioned_bucket() {
    races(Mode::Versioned).await;
}
