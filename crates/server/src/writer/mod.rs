//! The writer: one thread that decides about every change, in order, and the only thing in the process that can append to the store.
//! This file is its handle, and what goes in and out; `thread` is what it does, `group` how several changes become one append, `decided`
//! what was decided before.

mod decided;
mod group;
mod thread;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use fleet::{
    CommitId, ConfirmDigest, Key, Operation, Origin, Policy, Rejection, Revision, State, Transaction,
};
use ledger::{Append, Follow};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

pub use decided::Decided;

use crate::clock;
use crate::metrics::Metrics;
use crate::replica::Replica;

/// How many may wait. Whoever comes then waits before the queue.
const QUEUE: usize = 1_024;

/// What somebody wants changed.
#[derive(Debug)]
pub struct Request {
    pub operations: Vec<Operation>,
    /// Whether a program worked the operations out: then they name no removal.
    pub derived: bool,
    /// What they confirm.
    pub confirm: Option<ConfirmDigest>,
    /// The revision that the fleet must still be at: the one that they saw a plan of this on.
    pub planned_on: Option<Revision>,
    pub actor: Box<str>,
    pub reason: Option<Box<str>>,
    /// Which request it is.
    pub request: Option<Box<str>>,
}

/// The actor of what the service does by itself.
const SERVICE: &str = "flux-resourceset";

impl Request {
    /// What the service itself wants changed, at its start.
    pub fn of_service(operations: Vec<Operation>, reason: &str) -> Self {
        Self {
            operations,
            derived: false,
            confirm: None,
            planned_on: None,
            actor: SERVICE.into(),
            reason: Some(reason.into()),
            request: None,
        }
    }

    /// The transaction, as of now.
    pub fn transaction(self) -> Transaction {
        let origin = Origin {
            commit: CommitId(Uuid::now_v7().as_u128()),
            time: clock::now(),
            actor: self.actor,
            reason: self.reason,
            request: self.request,
            version: env!("CARGO_PKG_VERSION").into(),
            idempotency: None,
        };
        Transaction { operations: self.operations, derived: self.derived, confirm: self.confirm, origin }
    }
}

/// What has come of it. It is safe in the store.
#[derive(Debug)]
pub struct Written {
    /// The fleet with it.
    pub state: State,
    /// The entries that it changed, and whether each still exists.
    pub changed: Vec<(Key, bool)>,
    pub warnings: Vec<String>,
}

/// Why nothing has come of it.
#[derive(Debug, thiserror::Error)]
pub enum NotWritten {
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The fleet is not where it was planned on.
    #[error("the fleet is at revision {now}, and this was planned on revision {planned_on}; plan it again")]
    Stale { planned_on: Revision, now: Revision },
    /// The store cannot take it now. Nothing has happened.
    #[error("nothing was written: {0}")]
    Unavailable(String),
    /// Its turn has not come in time. Nothing has happened, and nothing will.
    #[error("it has waited for {seconds} seconds behind other changes")]
    Waited { seconds: u64 },
    /// Whether it has happened is not known.
    #[error("whether it was written is not known: {0}")]
    Unknown(String),
}

/// Refuses what was planned on another revision than the one that it is decided on.
pub fn still_at(state: &State, planned_on: Option<Revision>) -> Result<(), NotWritten> {
    let now = state.head().revision;
    match planned_on {
        Some(planned_on) if planned_on != now => Err(NotWritten::Stale { planned_on, now }),
        _ => Ok(()),
    }
}

/// A change that waits to be decided, and where its outcome goes.
struct Job {
    planned_on: Option<Revision>,
    change: Change,
    reply: oneshot::Sender<Result<Written, NotWritten>>,
    turn: Arc<JobTurn>,
}

/// What a job is about.
enum Change {
    Transaction(Transaction),
    Decided(Box<Decided>),
}

/// The outcome of a job. A writer that ends without one may have appended before.
type Outcome = oneshot::Receiver<Result<Written, NotWritten>>;

/// Whether the writer has begun with a job, or whoever asked has given up before: never both.
#[derive(Default)]
struct JobTurn(AtomicU8);

impl JobTurn {
    const WAITS: u8 = 0;
    const BEGUN: u8 = 1;
    const GIVEN_UP: u8 = 2;

    fn go_to(&self, next: u8) -> bool {
        let at = self.0.compare_exchange(Self::WAITS, next, Ordering::AcqRel, Ordering::Acquire);
        at.is_ok() || at == Err(next)
    }

    /// Whether it can still be given up: then it never happens.
    fn give_up(&self) -> bool {
        self.go_to(Self::GIVEN_UP)
    }
}

impl Job {
    fn of(request: Request) -> (Self, Outcome) {
        Self::new(request.planned_on, Change::Transaction(request.transaction()))
    }

    fn new(planned_on: Option<Revision>, change: Change) -> (Self, Outcome) {
        let (reply, outcome) = oneshot::channel();
        let turn = Arc::default();
        (Self { planned_on, change, reply, turn }, outcome)
    }

    /// Whether to decide about it, now that its turn has come. From then on nobody is told that it certainly does not happen, so that it may
    /// be decided again when another process was faster.
    fn begin(&self) -> bool {
        let is_wanted = !self.reply.is_closed() || self.turn.0.load(Ordering::Acquire) == JobTurn::BEGUN;
        is_wanted && self.turn.go_to(JobTurn::BEGUN)
    }

    /// Whoever asked may have gone.
    fn answer(self, outcome: Result<Written, NotWritten>) {
        let _ = self.reply.send(outcome);
    }
}

/// Takes changes to the writer.
pub struct Writer {
    jobs: mpsc::Sender<Job>,
    failed: Arc<AtomicBool>,
}

const ENDED: &str = "the writer of this process has ended; restart it";

impl Writer {
    /// Starts the writer, which owns the appending side of the store. The thread ends when every handle is gone and nobody waits any
    /// more.
    pub fn start(
        append: Box<dyn Append>,
        follow: Arc<dyn Follow>,
        replica: Arc<Replica>,
        policy: Policy,
        metrics: Metrics,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let failed = Arc::new(AtomicBool::new(false));
        let thread = thread::WriterThread { append, follow, replica, policy, metrics };
        let flag = failed.clone();
        let running =
            std::thread::Builder::new().name("writer".to_owned()).spawn(move || thread.run(queue, &flag))?;
        Ok((Self { jobs, failed }, running))
    }

    /// Whether it has ended for good.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Has a change made, and returns when it is safe in the store, or certain not to be. After some time it is given up: then it is certain
    /// not to be made if its turn had not come, and not known otherwise. The same if this future is dropped.
    pub async fn write(&self, request: Request, patience: Duration) -> Result<Written, NotWritten> {
        let (job, answer) = Job::of(request);
        let (turn, end) = (job.turn.clone(), Instant::now() + patience);
        let waited = || NotWritten::Waited { seconds: patience.as_secs() };
        let sent = timeout_at(end, self.jobs.send(job)).await.map_err(|_| waited())?;
        sent.map_err(|_| NotWritten::Unavailable(ENDED.to_owned()))?;
        match timeout_at(end, answer).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(NotWritten::Unknown(ENDED.to_owned()))),
            Err(_) if turn.give_up() => Err(waited()),
            Err(_) => Err(NotWritten::Unknown("the store did not answer in time".to_owned())),
        }
    }

    /// The same with a change that was decided before, on a thread that may block. If the fleet is not what it was decided on, nothing
    /// happens.
    pub fn write_decided(&self, decided: Decided) -> Result<Written, NotWritten> {
        let (job, answer) = Job::new(Some(decided.on.revision), Change::Decided(Box::new(decided)));
        self.jobs.blocking_send(job).map_err(|_| NotWritten::Unavailable(ENDED.to_owned()))?;
        answer.blocking_recv().unwrap_or_else(|_| Err(NotWritten::Unknown(ENDED.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> (Job, Outcome) {
        Job::of(Request::of_service(Vec::new(), "a test"))
    }

    #[test]
    fn a_job_is_either_begun_or_given_up() {
        let (waiting, _outcome) = job();
        assert!(waiting.turn.give_up());
        assert!(!waiting.begin(), "it was given up");
        let (begun, outcome) = job();
        assert!(begun.begin());
        assert!(!begun.turn.give_up(), "it may be made");
        drop(outcome);
        assert!(begun.begin(), "what was begun may be decided again");
    }

    #[test]
    fn a_job_whose_client_has_gone_is_not_begun() {
        let (waiting, outcome) = job();
        drop(outcome);
        assert!(!waiting.begin());
    }
}
