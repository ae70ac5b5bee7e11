//! The conformance suite, as the endpoint's settings say.

use spillbox::store::testing::{CASES, run_case};

use super::endpoint::{Ground, Mode, setting};
use super::suite::Suite;

async fn conformance(mode: Mode) {
    let Some(ground) = Ground::open(mode).await else {
        return;
    };
    let only = setting("SPILLBOX_TEST_ONLY");
    let mut suite = Suite::begin(format!("{} conformance", ground.name));
    for case in CASES {
        if !case.applies_to(&ground.capabilities)
            || only.as_ref().is_some_and(|only| !case.name.contains(only))
        {
            continue;
        }
        let prefix = ground.fresh_prefix();
        let run = run_case(case.name, &ground.store, ground.capabilities, &prefix);
        suite.case(case.name, run).await;
    }
    suite.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_plain_bucket_passes_the_conformance_suite() {
    conformance(Mode::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_versioned_bucket_passes_the_conformance_suite() {
    conformance(Mode::Versioned).await;
}
