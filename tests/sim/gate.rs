//! Whether a host runs: it is stopped at each of its store requests, before it is sent or before its
//! answer is seen, for a while or for ever.

use futures_util::future::{Either, pending, select};
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pulse {
    Runs,
    Paused,
    Dead,
}

#[derive(Debug)]
pub(crate) struct Gate(watch::Sender<Pulse>);

impl Gate {
    pub(crate) fn open() -> Self {
        Self(watch::Sender::new(Pulse::Runs))
    }

    pub(crate) fn pulse(&self) -> Pulse {
        *self.0.borrow()
    }

    pub(crate) fn set(&self, pulse: Pulse) {
        self.0.send_replace(pulse);
    }

    /// Waits while the host is paused; a dead one waits for ever.
    pub(crate) async fn pass(&self) {
        let mut pulse = self.0.subscribe();
        let seen = pulse.wait_for(|pulse| *pulse != Pulse::Paused).await;
        let seen = seen.map_or(Pulse::Dead, |pulse| *pulse);
        if seen == Pulse::Dead {
            pending::<()>().await;
        }
    }

    /// Waits for an answer of the host; `None` when it died first.
    pub(crate) async fn unless_dead<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let mut pulse = self.0.subscribe();
        let death = pulse.wait_for(|pulse| *pulse == Pulse::Dead);
        let (answer, death) = (std::pin::pin!(answer), std::pin::pin!(death));
        match select(answer, death).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(_) => None,
        }
    }
}
