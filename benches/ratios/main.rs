//! What the service costs over the bare store: each path as an interleaved A/B ratio.
//!
//! A is a request of the S3 client straight to the store, B the same bytes through a `spillbox serve`
//! process before that store, both over loopback sockets, in turns (A B A B …), so that whatever else
//! the machine does hits both. The figure is the median of the ratios of the pairs; a row whose baseline
//! itself spreads over 15 % says so and is no verdict. Without a network between them and with a store
//! that takes no time, a service can only look bad here: the ratios are upper bounds.
//!
//! `cargo bench --bench ratios` runs on the S3 server of the tests, in this process. With the variables
//! that `scripts/stores.sh up NAME` prints it runs on that server (`scripts/bench.sh` does both). Raw
//! samples go to `target/bench/ratios-STORE.jsonl`.

use std::io::Write as _;
use std::path::PathBuf;

mod direct;
mod measure;
mod place;
mod rows;
mod service;
#[path = "../../tests/support"]
#[allow(
    unused_imports,
    reason = "shared support: no user of it uses all of it"
)]
mod support {
    pub(crate) mod s3_server;
}

use self::place::Place;

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let place = Place::find().await?;
        let rows = rows::measure_all(&place).await?;
        println!("store: {}", place.name);
        println!("{}", measure::table(&rows));
        let raw = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/bench");
        std::fs::create_dir_all(&raw)?;
        let raw = raw.join(format!("ratios-{}.jsonl", place.name));
        let mut file = std::fs::File::create(&raw)?;
        file.write_all(measure::samples(&rows).as_bytes())?;
        println!("raw samples: {}", raw.display());
        Ok(())
    })
}
