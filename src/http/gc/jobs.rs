//! What goes on after its request is answered: collections, and erasures.
//!
//! A collection is named by its plan; who asks for it again while it runs is told of the same one. Its end
//! is remembered for a while, so that a failure is not only in the log; a result is in the store. Every step
//! of a collection may be cut off and done again, so a shutdown waits for none. An erasure is short, and a
//! shutdown waits for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::error::ErrorCode;
use crate::http::problem::Problem;
use crate::ids::Tenant;
use crate::limits::{GC_JOBS_REMEMBERED, MAX_CONCURRENT_ERASURES, MAX_GC_JOBS};

/// What a job does with its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Makes it.
    Plan,
    /// Applies it; so is the application called.
    Apply(Uuid),
}

impl Work {
    const fn is_same_kind(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Plan, Self::Plan) | (Self::Apply(_), Self::Apply(_))
        )
    }
}

/// How a job ended; none while it runs.
type End = Option<Result<(), Problem>>;

/// A job that was begun.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    tenant: Tenant,
    plan_id: Uuid,
    work: Work,
    end: watch::Receiver<End>,
}

impl Job {
    /// Returns the name of the application.
    pub(crate) const fn run_id(&self) -> Option<Uuid> {
        match self.work {
            Work::Plan => None,
            Work::Apply(run_id) => Some(run_id),
        }
    }

    /// Returns how it has ended; none while it runs.
    pub(crate) fn ended(&self) -> End {
        let end = self.end.borrow().clone();
        // Its task is gone without a word: it panicked.
        let is_lost = end.is_none() && self.end.has_changed().is_err();
        if is_lost {
            let detail = "the collection ended unexpectedly; nothing is lost by asking again";
            return Some(Err(Problem::new(ErrorCode::Internal, detail)));
        }
        end
    }

    /// Waits for its end, but not longer than `most`.
    pub(crate) async fn wait(&mut self, most: Duration) -> End {
        let ending = self.end.wait_for(|end| end.is_some());
        // Late or lost: `ended` tells which.
        let _ = tokio::time::timeout(most, ending).await;
        self.ended()
    }
}

/// The jobs of a service. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Jobs(Arc<Board>);

#[derive(Debug)]
struct Board {
    places: Arc<Semaphore>,
    erasures: Arc<Semaphore>,
    tracker: TaskTracker,
    cut: CancellationToken,
    known: Mutex<VecDeque<Job>>,
}

impl Default for Jobs {
    fn default() -> Self {
        Self(Arc::new(Board {
            places: Arc::new(Semaphore::new(MAX_GC_JOBS)),
            erasures: Arc::new(Semaphore::new(MAX_CONCURRENT_ERASURES)),
            tracker: TaskTracker::new(),
            cut: CancellationToken::new(),
            known: Mutex::default(),
        }))
    }
}

impl Jobs {
    fn known(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last job of this kind on a plan of the tenant.
    pub(crate) fn find(&self, tenant: &Tenant, plan_id: Uuid, work: Work) -> Option<Job> {
        let known = self.known();
        let mut newest_first = known.iter().rev();
        let found = newest_first.find(|job| {
            job.plan_id == plan_id && job.tenant == *tenant && job.work.is_same_kind(work)
        });
        found.cloned()
    }

    /// Begins a job, or joins the one of this kind that runs on the plan.
    ///
    /// # Errors
    /// 503: as many run as may.
    pub(crate) fn begin(
        &self,
        tenant: &Tenant,
        plan_id: Uuid,
        work: Work,
        task: impl Future<Output = Result<(), Problem>> + Send + 'static,
    ) -> Result<Job, Problem> {
        let running = self.find(tenant, plan_id, work);
        if let Some(running) = running.filter(|job| job.ended().is_none()) {
            return Ok(running);
        }
        let Ok(place) = Arc::clone(&self.0.places).try_acquire_owned() else {
            let detail = format!("{MAX_GC_JOBS} collections are running");
            return Err(Problem::new(ErrorCode::Saturated, detail));
        };
        let (ends, end) = watch::channel(None);
        let cut = self.0.cut.clone();
        self.0.tracker.spawn(async move {
            let ended = tokio::select! {
                ended = task => ended,
                () = cut.cancelled() => {
                    let detail = "the service ends; the collection goes on with the next one";
                    Err(Problem::new(ErrorCode::StoreUnavailable, detail))
                }
            };
            if let Err(problem) = &ended {
                let cause = problem.cause().unwrap_or_default();
                tracing::warn!(%plan_id, code = %problem.code(), "a collection failed: {cause}");
            }
            drop(place);
            ends.send_replace(Some(ended));
        });
        let job = Job {
            tenant: tenant.clone(),
            plan_id,
            work,
            end,
        };
        let mut known = self.known();
        known.push_back(job.clone());
        if known.len() > GC_JOBS_REMEMBERED
            && let Some(place) = known.iter().position(|job| job.ended().is_some())
        {
            known.remove(place);
        }
        Ok(job)
    }

    /// Runs an erasure to its end, whether its caller waits for it or not.
    ///
    /// # Errors
    /// 503: as many run as may; else what the erasure says.
    pub(crate) async fn erase<T: Send + 'static>(
        &self,
        erasure: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        let Ok(place) = Arc::clone(&self.0.erasures).try_acquire_owned() else {
            let detail = format!("{MAX_CONCURRENT_ERASURES} erasures are running");
            return Err(Problem::new(ErrorCode::Saturated, detail));
        };
        let task = self.0.tracker.spawn(async move {
            let erased = erasure.await;
            drop(place);
            erased
        });
        task.await.unwrap_or_else(|error| {
            let detail = "the erasure ended unexpectedly; the same request again goes on";
            Err(Problem::new(ErrorCode::Internal, detail).caused_by(error))
        })
    }

    /// Cuts collections off and waits for erasures.
    pub(crate) async fn drain(&self) {
        self.0.cut.cancel();
        self.0.tracker.close();
        self.0.tracker.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    #[tokio::test]
    async fn a_job_runs_once_and_its_end_is_remembered() {
        let jobs = Jobs::default();
        let tenant = Tenant::default();
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let task = async move {
            let _ = gone.await;
            Ok(())
        };
        let mut first = jobs
            .begin(&tenant, plan(1), Work::Apply(plan(7)), task)
            .unwrap();
        let again = async { Err(Problem::new(ErrorCode::Internal, "never run")) };
        let joined = jobs
            .begin(&tenant, plan(1), Work::Apply(plan(8)), again)
            .unwrap();
        assert_eq!(joined.run_id(), Some(plan(7)));
        assert!(first.wait(Duration::ZERO).await.is_none());
        go.send(()).unwrap();
        assert!(first.wait(Duration::from_secs(60)).await.unwrap().is_ok());
        let other: Tenant = "other".parse().unwrap();
        assert!(jobs.find(&other, plan(1), Work::Apply(plan(1))).is_none());
        assert!(jobs.find(&tenant, plan(1), Work::Plan).is_none());
        assert!(jobs.find(&tenant, plan(1), Work::Apply(plan(1))).is_some());
    }

    #[tokio::test]
    async fn too_many_at_once_are_refused_and_a_drain_cuts_them_off() {
        let jobs = Jobs::default();
        let tenant = Tenant::default();
        let endless = std::future::pending::<Result<(), Problem>>;
        let mut begun = Vec::new();
        for n in 0..MAX_GC_JOBS {
            begun.push(
                jobs.begin(&tenant, plan(n as u128), Work::Plan, endless())
                    .unwrap(),
            );
        }
        let refused = jobs
            .begin(&tenant, plan(99), Work::Plan, endless())
            .unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Saturated);
        jobs.drain().await;
        for mut job in begun {
            assert!(job.wait(Duration::from_secs(60)).await.unwrap().is_err());
        }
    }

    #[tokio::test]
    async fn what_a_panic_leaves_is_a_failure() {
        let jobs = Jobs::default();
        let tenant = Tenant::default();
        let task = async { panic!("a defect") };
        let mut job = jobs.begin(&tenant, plan(1), Work::Plan, task).unwrap();
        let ended = job.wait(Duration::from_secs(60)).await.unwrap();
        assert_eq!(ended.unwrap_err().code(), ErrorCode::Internal);
    }

    #[tokio::test]
    async fn an_erasure_goes_on_without_its_caller() {
        let jobs = Jobs::default();
        let (done, is_done) = tokio::sync::oneshot::channel();
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let erasing = jobs.erase(async move {
            let _ = gone.await;
            done.send(())
                .map_err(|()| Problem::new(ErrorCode::Internal, "nobody looks"))
        });
        assert!(tokio::time::timeout(Duration::ZERO, erasing).await.is_err());
        go.send(()).unwrap();
        jobs.drain().await;
        is_done.await.unwrap();
    }

    #[tokio::test]
    async fn only_so_many_ends_are_remembered() {
        let jobs = Jobs::default();
        let tenant = Tenant::default();
        for n in 0..=GC_JOBS_REMEMBERED as u128 {
            let mut job = jobs
                .begin(&tenant, plan(n), Work::Plan, async { Ok(()) })
                .unwrap();
            job.wait(Duration::from_secs(60)).await.unwrap().unwrap();
        }
        assert!(jobs.find(&tenant, plan(0), Work::Plan).is_none());
        assert!(jobs.find(&tenant, plan(1), Work::Plan).is_some());
    }
}
