//! Runs cases one after another, counts them, and reports every one that failed.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures_util::FutureExt;

/// A suite on one store.
#[derive(Debug)]
pub(super) struct Suite {
    title: String,
    passed: usize,
    failed: Vec<String>,
}

impl Suite {
    pub(super) fn begin(title: String) -> Self {
        Self {
            title,
            passed: 0,
            failed: Vec::new(),
        }
    }

    pub(super) async fn case(&mut self, name: &str, work: impl Future<Output = ()>) {
        let began = Instant::now();
        let result = AssertUnwindSafe(Box::pin(work)).catch_unwind().await;
        let seconds = began.elapsed().as_secs_f64();
        if result.is_ok() {
            println!("  passed {name} ({seconds:.1} s)");
            self.passed += 1;
        } else {
            println!("  FAILED {name} ({seconds:.1} s)");
            self.failed.push(name.to_owned());
        }
    }

    /// Prints the line that scripts count.
    pub(super) fn end(self) {
        let Self {
            title,
            passed,
            failed,
        } = self;
        assert!(failed.is_empty(), "real store {title}: failed: {failed:?}");
        println!("real store {title}: {passed} cases passed");
    }
}
