//! The writer: one thread that decides about every change, in order. It applies what has come in since the last time, appends all of
//! it in one go, publishes the new fleet, and only then answers.
//!
//! Nobody is told anything, not even of a refusal, before what it rests on is safe in the store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use fleet::{
    Applied, Commit, CommitId, Operation, Origin, Policy, Rejection, Removals, RemovalsDigest, Revision,
    State, Timestamp, Transaction, apply,
};
use ledger::{AppendError, Budget, Ledger};
use tokio::sync::{mpsc, oneshot};
use tracing::{error, warn};
use uuid::Uuid;

use crate::follower::{self, BUDGET};
use crate::metrics::Metrics;
use crate::replica::{self, Replica};

/// The most transactions that are appended together.
const GROUP: usize = 256;
/// The most bytes of bodies that are appended together, but for a single transaction that is larger.
const GROUP_BYTES: usize = 8 * 1024 * 1024;
/// How many may wait. Whoever comes then waits before the queue.
const QUEUE: usize = 1_024;

/// What somebody wants changed.
#[derive(Debug)]
pub struct Request {
    /// What to do.
    pub operations: Vec<Operation>,
    /// The removals that they confirm.
    pub confirm: Option<RemovalsDigest>,
    /// The revision that the fleet must still be at: the one that they saw a plan of this on.
    pub planned_on: Option<Revision>,
    /// Who they are.
    pub actor: Arc<str>,
    /// Why.
    pub reason: Option<Box<str>>,
    /// Which request it is.
    pub request: Box<str>,
}

impl Request {
    /// The transaction, as of now.
    pub fn transaction(self) -> Transaction {
        let origin = Origin {
            commit: CommitId(Uuid::now_v7().as_u128()),
            time: now(),
            actor: (*self.actor).into(),
            reason: self.reason,
            request: Some(self.request),
        };
        Transaction { operations: self.operations, derived: false, confirm: self.confirm, origin }
    }
}

/// The time of day.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// What has come of it. It is safe in the store.
#[derive(Debug)]
pub struct Written {
    /// The fleet with it.
    pub state: State,
    /// The entries that it changed, and whether each is still there.
    pub changed: Vec<(fleet::Key, bool)>,
    /// What Flux deletes.
    pub removals: Removals,
    /// What one should know about it.
    pub warnings: Vec<String>,
}

/// Why nothing has come of it.
#[derive(Debug, thiserror::Error)]
pub enum NotWritten {
    /// It was refused.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The fleet is not where it was planned on.
    #[error("the fleet is at revision {now}, and this was planned on revision {planned_on}; plan it again")]
    Stale {
        /// The revision that it was planned on.
        planned_on: Revision,
        /// The revision that the fleet is at.
        now: Revision,
    },
    /// The store cannot take it now. Nothing has happened.
    #[error("nothing was written: {0}")]
    Unavailable(String),
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

type Reply = oneshot::Sender<Result<Written, NotWritten>>;

struct Job {
    planned_on: Option<Revision>,
    transaction: Transaction,
    reply: Reply,
}

impl Job {
    fn new(request: Request, reply: Reply) -> Self {
        Self { planned_on: request.planned_on, transaction: request.transaction(), reply }
    }

    fn decide(&self, state: &State, policy: &Policy) -> Result<Applied, NotWritten> {
        still_at(state, self.planned_on)?;
        Ok(apply(state, policy, &self.transaction)?)
    }
}

/// Takes changes to the writer.
pub struct Writer {
    jobs: mpsc::Sender<Job>,
    failed: Arc<AtomicBool>,
}

impl Writer {
    /// Starts the writer. The thread ends when every handle is gone and nobody waits any more.
    pub fn start(
        ledger: Arc<dyn Ledger>,
        replica: Arc<Replica>,
        policy: Policy,
        metrics: Metrics,
    ) -> std::io::Result<(Self, std::thread::JoinHandle<()>)> {
        let (jobs, mut queue) = mpsc::channel(QUEUE);
        let failed = Arc::new(AtomicBool::new(false));
        let desk = Desk { ledger, replica, policy, metrics, runtime: tokio::runtime::Handle::current() };
        let mark = failed.clone();
        let thread = std::thread::Builder::new().name("writer".to_owned()).spawn(move || {
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| desk.work(&mut queue))) {
                Ok(Ok(())) => return,
                Ok(Err(Ended(why))) => error!(why, "the writer has ended; this process writes no more"),
                Err(_) => error!("the writer has panicked; this process writes no more"),
            }
            mark.store(true, Ordering::Release);
            // Nobody looked at these: they can be certain.
            queue.close();
            refuse(std::iter::from_fn(|| queue.try_recv().ok()), ENDED);
        })?;
        Ok((Self { jobs, failed }, thread))
    }

    /// Whether it has ended for good.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Has a change made, and returns when it is safe in the store, or certain not to be.
    pub async fn write(&self, request: Request) -> Result<Written, NotWritten> {
        let (reply, answer) = oneshot::channel();
        let job = Job::new(request, reply);
        self.jobs.send(job).await.map_err(|_| NotWritten::Unavailable(ENDED.to_owned()))?;
        // A writer that ends without an answer may have appended before.
        answer.await.unwrap_or_else(|_| Err(NotWritten::Unknown(ENDED.to_owned())))
    }
}

const ENDED: &str = "the writer of this process has ended; restart it";

/// The writer ends for good.
struct Ended(String);

struct Desk {
    ledger: Arc<dyn Ledger>,
    replica: Arc<Replica>,
    policy: Policy,
    metrics: Metrics,
    runtime: tokio::runtime::Handle,
}

/// Changes that were decided one after the other, to be appended together.
struct Group {
    /// What they rest on.
    base: Arc<State>,
    /// What comes of them.
    state: State,
    /// To be appended; taken when they are.
    commits: Vec<Commit>,
    /// How many commits there are.
    size: usize,
    /// What each will be told once it is safe.
    outcomes: Vec<Result<Written, NotWritten>>,
}

impl Group {
    /// Decides about the first of those who wait, as many as fit.
    fn decide(base: Arc<State>, policy: &Policy, jobs: &VecDeque<Job>) -> Self {
        let mut group =
            Self { state: (*base).clone(), base, commits: Vec::new(), size: 0, outcomes: Vec::new() };
        let mut bytes = 0;
        for job in jobs.iter().take(GROUP) {
            let outcome = job.decide(&group.state, policy).map(|applied| {
                let changes = applied.commit.as_ref().map(|commit| &*commit.changes).unwrap_or_default();
                let written = Written {
                    changed: changes.iter().map(|c| (c.key().clone(), c.after().is_some())).collect(),
                    state: applied.next.clone(),
                    removals: applied.removals,
                    warnings: applied.warnings,
                };
                bytes += applied.commit.as_ref().map_or(0, Commit::body_bytes);
                group.state = applied.next;
                group.commits.extend(applied.commit);
                written
            });
            group.outcomes.push(outcome);
            if bytes >= GROUP_BYTES {
                break;
            }
        }
        group.size = group.commits.len();
        group
    }
}

impl Desk {
    fn work(&self, queue: &mut mpsc::Receiver<Job>) -> Result<(), Ended> {
        let mut waiting = VecDeque::new();
        loop {
            if waiting.is_empty() {
                match queue.blocking_recv() {
                    Some(job) => waiting.push_back(job),
                    None => return Ok(()),
                }
            }
            while waiting.len() < GROUP
                && let Ok(job) = queue.try_recv()
            {
                waiting.push_back(job);
            }
            // Who has been told that nothing is known, and has gone, would be surprised by a change that comes later.
            waiting.retain(|job| !job.reply.is_closed());
            if let Err(ended) = self.one_group(&mut waiting) {
                refuse(waiting.drain(..), ENDED);
                return Err(ended);
            }
        }
    }

    fn one_group(&self, waiting: &mut VecDeque<Job>) -> Result<(), Ended> {
        let Some(base) = self.replica.known() else {
            refuse(waiting.drain(..), "the fleet is not loaded yet");
            return Ok(());
        };
        let moment = replica::now();
        let mut group = Group::decide(base, &self.policy, waiting);
        let mut outcome = self.append(&mut group);
        if outcome == Err(AppendError::Conflict) {
            self.metrics.conflicts.inc();
            (group, outcome) = self.again(group, waiting);
        }
        let jobs = waiting.drain(..group.outcomes.len());
        match outcome {
            Ok(appended) => {
                self.replica.publish(Arc::new(group.state));
                if appended {
                    self.replica.confirm(moment);
                    self.metrics.group(group.size);
                }
                for (job, outcome) in jobs.zip(group.outcomes) {
                    // Whoever asked may have gone.
                    let _ = job.reply.send(outcome);
                }
                Ok(())
            }
            Err(AppendError::Fatal(why)) => {
                for job in jobs {
                    let _ = job.reply.send(Err(NotWritten::Unknown(why.clone())));
                }
                Err(Ended(why))
            }
            Err(error) => {
                refuse(jobs, &error.to_string());
                Ok(())
            }
        }
    }

    /// Appends what was decided; says whether there was anything to append.
    fn append(&self, group: &mut Group) -> Result<bool, AppendError> {
        if group.commits.is_empty() {
            // A refusal, or that nothing is to be done, is as true as what it was decided on: another process may have written since.
            let one = Budget { commits: 1, bytes: 0 };
            let missed = self.runtime.block_on(self.ledger.read(group.base.head(), one))?;
            return if missed.is_empty() { Ok(false) } else { Err(AppendError::Conflict) };
        }
        let commits = std::mem::take(&mut group.commits);
        let outcome = self.runtime.block_on(self.ledger.append(group.base.head(), commits));
        self.known_outcome(outcome).map(|()| true)
    }

    /// Somebody else was faster. Takes the lock first, reads what was missed, decides again, and appends.
    fn again(&self, lost: Group, waiting: &VecDeque<Job>) -> (Group, Result<bool, AppendError>) {
        let outcome = self.runtime.block_on(async {
            let mut held = self.ledger.hold().await?;
            let mut state = (*lost.base).clone();
            loop {
                let missed = held.read(state.head(), BUDGET).await?;
                if missed.is_empty() {
                    break;
                }
                state = follower::replayed(&state, &missed).map_err(ledger::FeedError::from)?;
            }
            let base = Arc::new(state);
            let mut group = Group::decide(base.clone(), &self.policy, waiting);
            self.replica.publish(base);
            if group.commits.is_empty() {
                return Ok((group, Ok(false)));
            }
            let outcome = held.append(group.base.head(), std::mem::take(&mut group.commits)).await;
            Ok((group, outcome.map(|()| true)))
        });
        match outcome {
            Ok((group, Ok(appended))) => (group, Ok(appended)),
            Ok((group, Err(error))) => {
                let outcome = self.known_outcome(Err(error));
                (group, outcome.map(|()| true))
            }
            Err(error) => (lost, Err(error)),
        }
    }

    /// An unknown outcome is neither success nor failure: looks for the commit until it is known.
    fn known_outcome(&self, outcome: Result<(), AppendError>) -> Result<(), AppendError> {
        let Err(AppendError::Unknown { last, why }) = outcome else { return outcome };
        warn!(why, "whether the last commits were appended is not known; looking for them");
        loop {
            match self.runtime.block_on(self.ledger.find(last)) {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => return Err(ledger::FeedError::Unreachable(why).into()),
                Err(error) => {
                    self.replica.note(&error.to_string());
                    std::thread::sleep(Duration::from_millis(200));
                }
            }
        }
    }
}

fn refuse(jobs: impl Iterator<Item = Job>, why: &str) {
    for job in jobs {
        let _ = job.reply.send(Err(NotWritten::Unavailable(why.to_owned())));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fleet() -> Arc<State> {
        let kinds = fleet::Kind::shipped().into_iter().map(|kind| Operation::Define(Arc::new(kind)));
        let applied = apply(&State::empty(), &Policy::default(), &request(kinds.collect()).transaction());
        Arc::new(applied.expect("the kinds are good").next)
    }

    fn request(operations: Vec<Operation>) -> Request {
        Request {
            operations,
            confirm: None,
            planned_on: None,
            actor: "admin".into(),
            reason: None,
            request: "r".into(),
        }
    }

    /// Each of them makes a namespace with about so many bytes.
    fn jobs(number: usize, bytes: usize) -> VecDeque<Job> {
        let job = |n: usize| {
            let body = json!({"id": format!("n{n}"), "annotations": {"text": "x".repeat(bytes)}});
            let create = Operation::Create { kind: "namespaces".into(), body, replace_decommissioned: false };
            Job::new(request(vec![create]), oneshot::channel().0)
        };
        (0..number).map(job).collect()
    }

    #[test]
    fn a_group_is_bounded_by_its_number_and_by_its_bytes() {
        let taken = |jobs: &VecDeque<Job>| {
            let group = Group::decide(fleet(), &Policy::default(), jobs);
            (group.outcomes.len(), group.commits.len(), group.size)
        };
        assert_eq!(taken(&jobs(300, 1)), (GROUP, GROUP, GROUP));
        let some = GROUP_BYTES / 60_000 + 1;
        assert_eq!(taken(&jobs(200, 60_000)), (some, some, some));
    }

    #[test]
    fn each_of_a_group_is_decided_on_what_the_ones_before_it_leave() {
        let twice: VecDeque<Job> = jobs(1, 1).into_iter().chain(jobs(1, 1)).collect();
        let group = Group::decide(fleet(), &Policy::default(), &twice);
        let outcomes: Vec<bool> = group.outcomes.iter().map(Result::is_ok).collect();
        assert_eq!((outcomes, group.size), (vec![true, false], 1));
    }

    #[test]
    fn a_plan_is_stale_once_another_of_the_same_group_has_changed_the_fleet() {
        let fleet = fleet();
        let on_head = |mut job: Job| {
            job.planned_on = Some(fleet.head().revision);
            job
        };
        let nothing = || Job::new(request(Vec::new()), oneshot::channel().0);
        let queue = [nothing()].into_iter().chain(jobs(2, 1)).chain([nothing()]).map(on_head).collect();
        let group = Group::decide(fleet.clone(), &Policy::default(), &queue);
        let told = |outcome: &Result<Written, NotWritten>| match outcome {
            Ok(written) => written.state.head().revision.to_string(),
            Err(error) => error.to_string(),
        };
        let stale = "the fleet is at revision 2, and this was planned on revision 1; plan it again";
        assert_eq!(group.outcomes.iter().map(told).collect::<Vec<_>>(), ["1", "2", stale, stale]);
        assert_eq!(group.size, 1);
    }
}
