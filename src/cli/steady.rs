//! A body whose source may fall silent for minutes, as a build's output does.
//!
//! Services and proxies close a request on which nothing moves, and a stream cannot say that it is
//! still there except by a byte. So the last few KiB are always held back, and while the source is
//! silent they go out one byte at a time.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use tokio::time::{Instant, timeout_at};

/// A source that brings nothing for this long is silent; a quarter of what services allow.
const SILENCE: Duration = Duration::from_secs(15);

/// Bytes that are held back: at one each 15 s they last 17 hours, longer than any upload may.
const RESERVE_BYTES: usize = 4 << 10;

/// Bytes that go out together while the source is busy; tools write in pieces of any smallness.
const BLOCK_BYTES: usize = 60 << 10;

struct Steady<S> {
    /// `None` after its end.
    source: Option<Pin<Box<S>>>,
    held: BytesMut,
    /// When something moved last.
    moved: Instant,
}

/// Returns the same bytes, in larger pieces, with something always moving.
pub fn steady<S>(source: S) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static
where
    S: Stream<Item = io::Result<Bytes>> + Send + 'static,
{
    let start = Steady {
        source: Some(Box::pin(source)),
        held: BytesMut::new(),
        moved: Instant::now(),
    };
    stream::unfold(start, |mut state| async {
        let piece = state.next().await?;
        state.moved = Instant::now();
        Some((piece, state))
    })
}

impl<S: Stream<Item = io::Result<Bytes>>> Steady<S> {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        while let Some(source) = &mut self.source {
            // A source that trickles refills the reserve and is silent all the same.
            let due = self.moved + SILENCE;
            if Instant::now() >= due && !self.held.is_empty() {
                return Some(Ok(self.give(1)));
            }
            let waiting = source.next();
            let arrived = if self.held.is_empty() {
                waiting.await
            } else {
                match timeout_at(due, waiting).await {
                    Ok(arrived) => arrived,
                    Err(_) => continue,
                }
            };
            match arrived {
                Some(Ok(piece)) => {
                    self.held.extend_from_slice(&piece);
                    if self.held.len() >= RESERVE_BYTES + BLOCK_BYTES {
                        return Some(Ok(self.give(self.held.len() - RESERVE_BYTES)));
                    }
                }
                Some(Err(error)) => {
                    self.source = None;
                    self.held.clear();
                    return Some(Err(error));
                }
                None => self.source = None,
            }
        }
        let rest_bytes = self.held.len();
        (rest_bytes > 0).then(|| Ok(self.give(rest_bytes)))
    }

    /// Copies, so that what waits in memory for its part to be sent is no larger than its bytes.
    fn give(&mut self, count: usize) -> Bytes {
        let piece = Bytes::copy_from_slice(&self.held[..count]);
        self.held.advance(count);
        piece
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use tokio::time::timeout;

    use super::*;

    /// A source that brings each piece after so many seconds.
    fn source(
        pieces: Vec<(Vec<u8>, u64)>,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        stream::iter(pieces).then(|(piece, seconds)| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(Bytes::from(piece))
        })
    }

    #[tokio::test(start_paused = true)]
    async fn no_pause_of_the_source_is_a_pause_of_the_body() {
        let mut pieces = vec![
            (vec![b'a'; 100_000], 0),
            (vec![b'b'; 10], 3_600),
            (vec![], 300),
        ];
        pieces.extend((0..1_000).map(|_| (vec![b'c'], 14)));
        let mut body = Box::pin(steady(source(pieces)));
        let mut bytes = Vec::new();
        loop {
            let next = timeout(Duration::from_secs(16), body.next()).await;
            let Some(piece) = next.expect("no pause is longer than 16 s") else {
                break;
            };
            bytes.extend_from_slice(&piece.unwrap());
        }
        let expected = [&[b'a'; 100_000][..], &[b'b'; 10], &[b'c'; 1_000]].concat();
        assert!(bytes == expected);
    }

    #[tokio::test]
    async fn a_source_that_breaks_ends_with_its_error() {
        let pieces = [
            Ok(Bytes::from_static(b"half")),
            Err(io::Error::other("gone")),
        ];
        let mut body = Box::pin(steady(stream::iter(pieces)));
        assert!(body.next().await.unwrap().is_err());
        assert!(body.next().await.is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_byte_arrives_once_and_in_order(
            pieces in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..40_000), 0_u64..60), 0..8),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .unwrap();
            let expected: Vec<u8> = pieces.iter().flat_map(|(piece, _)| piece.clone()).collect();
            let arrived: Vec<Bytes> = runtime.block_on(async {
                let body = steady(source(pieces));
                body.map(|piece| piece.unwrap()).collect().await
            });
            prop_assert!(arrived.concat() == expected);
        }
    }
}
