//! The store's own clock, read from a probe: every age is the difference of two of its times.

use jiff::Timestamp;

use crate::clock::Clock;
use crate::ids::IdSource;
use crate::limits::MAX_CLOCK_DIFFERENCE;
use crate::store::keys::KeySpace;
use crate::store::{DeleteFence, ObjectStore, PutMode, StoreError};

/// The store's date cannot be told or believed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClockError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Two clocks contradict each other: whichever is wrong, ages mean nothing.
    #[error(
        "the clocks differ by {difference_s} s ({what}): nothing is collected over {} s",
        MAX_CLOCK_DIFFERENCE.as_secs()
    )]
    Differs {
        /// By how much.
        difference_s: i64,
        /// Which two.
        what: &'static str,
    },
}

/// Returns the store's date: the earlier of what it says of its reply and of the probe.
///
/// # Errors
/// See [`ClockError`].
pub async fn read(
    store: &dyn ObjectStore,
    keys: &KeySpace,
    clock: &dyn Clock,
    ids: &dyn IdSource,
) -> Result<Timestamp, ClockError> {
    let key = keys.probe(&ids.uuid(clock.now()));
    let put = store
        .put(&key, "clock".into(), PutMode::CreateIfAbsent)
        .await?;
    let ours = clock.now();
    let head = store.head(&key).await;
    // Random and empty of meaning: what stays is swept with the other probes.
    if let Err(error) = store.delete(&key, DeleteFence::None).await {
        tracing::debug!("a clock probe stays: {error}");
    }
    let written = head?.meta.last_modified;
    agree(put.date, written, ours)
}

fn agree(
    date: Option<Timestamp>,
    written: Timestamp,
    ours: Timestamp,
) -> Result<Timestamp, ClockError> {
    let date = date.unwrap_or(written);
    let limit = i64::try_from(MAX_CLOCK_DIFFERENCE.as_secs()).expect("five minutes");
    for (a, b, what) in [
        (date, ours, "the store's and this host's"),
        (date, written, "the store's date and its objects'"),
    ] {
        let difference_s = a.duration_since(b).as_secs();
        if difference_s.abs() > limit {
            return Err(ClockError::Differs { difference_s, what });
        }
    }
    Ok(date.min(written))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_796_083_200 + second).unwrap()
    }

    #[rstest]
    #[case::equal(Some(0), 0, 0, Some(0))]
    #[case::the_earlier_one(Some(3), 2, 0, Some(2))]
    #[case::no_date(None, 2, 0, Some(2))]
    #[case::five_minutes(Some(300), 300, 0, Some(300))]
    #[case::host_behind(Some(301), 301, 0, None)]
    #[case::host_ahead(Some(0), 0, 600, None)]
    #[case::objects_ahead(Some(0), 301, 0, None)]
    fn clocks_agree_or_nothing_is_collected(
        #[case] date: Option<i64>,
        #[case] written: i64,
        #[case] ours: i64,
        #[case] expected: Option<i64>,
    ) {
        let read = agree(date.map(at), at(written), at(ours));
        assert_eq!(read.ok(), expected.map(at));
    }
}
