//! What the writer's thread does: it decides about what has come in since the last time, appends all of it in one go, makes the new
//! fleet visible, and only then answers.
//!
//! Nobody is told anything, not even of a refusal, before what it rests on is safe in the store.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fleet::Policy;
use ledger::{Append, AppendError, FeedError, Follow};
use tokio::sync::mpsc;
use tracing::{error, warn};

use super::group::{GROUP, Group};
use super::{ENDED, Job, NotWritten};
use crate::follower::{self, BUDGET};
use crate::give_way::lower_priority;
use crate::metrics::Metrics;
use crate::replica::{self, Replica, Turn};

/// How long to wait before an unknown outcome is looked for again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The priority of the thread, as `nice` counts: the largest change takes seconds to decide, and polls go first.
const NICENESS: i32 = 10;

/// The writer ends for good.
struct Ended(String);

pub(super) struct WriterThread {
    pub(super) append: Box<dyn Append>,
    pub(super) follow: Arc<dyn Follow>,
    pub(super) replica: Arc<Replica>,
    pub(super) policy: Policy,
    pub(super) metrics: Metrics,
}

impl WriterThread {
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Job>, failed: &AtomicBool) {
        lower_priority(NICENESS);
        match catch_unwind(AssertUnwindSafe(|| self.work(&mut queue))) {
            Ok(Ok(())) => return,
            Ok(Err(Ended(why))) => error!(why, "the writer has ended; this process writes no more"),
            Err(_) => error!("the writer has panicked; this process writes no more"),
        }
        failed.store(true, Ordering::Release);
        // Nobody looked at these: they can be certain.
        queue.close();
        refuse(std::iter::from_fn(|| queue.try_recv().ok()), ENDED);
    }

    fn work(&mut self, queue: &mut mpsc::Receiver<Job>) -> Result<(), Ended> {
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
            // What nobody waits for any more need not take part in the group. Each is looked at again when its turn comes.
            waiting.retain(|job| !job.reply.is_closed());
            if let Err(ended) = self.one_group(&mut waiting) {
                refuse(waiting.drain(..), ENDED);
                return Err(ended);
            }
        }
    }

    fn one_group(&mut self, waiting: &mut VecDeque<Job>) -> Result<(), Ended> {
        let replica = self.replica.clone();
        let Some(base) = replica.known() else {
            refuse(waiting.drain(..), "the fleet is not loaded yet");
            return Ok(());
        };
        let moment = replica::now();
        let mut group = Group::decide(base, &self.policy, waiting);
        let mut turn = replica.turn();
        let is_head = turn.known().is_some_and(|known| known.head() == group.base.head());
        let mut outcome = if is_head { self.append(&group) } else { Err(AppendError::Conflict) };
        if outcome == Err(AppendError::Conflict) {
            self.metrics.conflicts.inc();
            (group, outcome) = self.again(&mut turn, group, waiting);
        }
        let jobs = waiting.drain(..group.outcomes.len());
        match outcome {
            Ok(()) => {
                let size = group.commits.len();
                if turn.advance(group.state, group.commits).is_err() {
                    return Err(Ended("what was appended does not follow from what is known".to_owned()));
                }
                if size > 0 {
                    replica.confirm(moment);
                    self.metrics.group(size);
                }
                drop(turn);
                for (job, outcome) in jobs.zip(group.outcomes) {
                    job.answer(outcome);
                }
                Ok(())
            }
            Err(AppendError::Fatal(why)) => {
                for job in jobs {
                    job.answer(Err(NotWritten::Unknown(why.clone())));
                }
                Err(Ended(why))
            }
            Err(error) => {
                refuse(jobs, &error.to_string());
                Ok(())
            }
        }
    }

    /// Appends what was decided.
    fn append(&mut self, group: &Group) -> Result<(), AppendError> {
        if group.commits.is_empty() {
            // A refusal, or that nothing is to be done, is as true as what it was decided on: another process may have written since.
            let is_head = self.follow.is_head(group.base.head())?;
            return if is_head { Ok(()) } else { Err(AppendError::Conflict) };
        }
        let outcome = self.append.append(group.base.head(), &group.commits);
        self.known_outcome(outcome)
    }

    /// Somebody else was faster. Takes the lock first, reads what was missed, decides again, and appends.
    fn again(
        &mut self,
        turn: &mut Turn<'_>,
        lost: Group,
        waiting: &VecDeque<Job>,
    ) -> (Group, Result<(), AppendError>) {
        let (group, outcome) = match held(&mut *self.append, turn, &self.policy, waiting) {
            Ok(decided) => decided,
            Err(error) => return (lost, Err(error)),
        };
        let outcome = self.known_outcome(outcome);
        (group, outcome)
    }

    /// An unknown outcome is neither success nor failure: looks for the commit until it is known.
    fn known_outcome(&mut self, outcome: Result<(), AppendError>) -> Result<(), AppendError> {
        let Err(AppendError::Unknown { last, why }) = outcome else { return outcome };
        warn!(why, "whether the last commits were appended is not known; looking for them");
        loop {
            match self.append.find(last) {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => return Err(FeedError::Unreachable(why).into()),
                Err(error) => {
                    self.replica.note(&error.to_string(), None);
                    std::thread::sleep(LOOK_AGAIN);
                }
            }
        }
    }
}

/// Decides and appends while nobody else can append.
fn held(
    append: &mut dyn Append,
    turn: &mut Turn<'_>,
    policy: &Policy,
    waiting: &VecDeque<Job>,
) -> Result<(Group, Result<(), AppendError>), AppendError> {
    let mut held = append.hold()?;
    let base = loop {
        let Some(known) = turn.known() else {
            return Err(FeedError::Unreachable("the fleet is not loaded yet".to_owned()).into());
        };
        let missed = held.read(known.head(), BUDGET)?;
        if missed.is_empty() {
            break known;
        }
        let state =
            follower::replayed(&known, &missed).map_err(|problem| FeedError::from(problem.diverged))?;
        let advanced = turn.advance(state, missed);
        advanced.map_err(|problem| FeedError::Corrupt(problem.to_string()))?;
    };
    let group = Group::decide(base, policy, waiting);
    let outcome = match &*group.commits {
        [] => Ok(()),
        commits => held.append(group.base.head(), commits),
    };
    Ok((group, outcome))
}

fn refuse(jobs: impl Iterator<Item = Job>, why: &str) {
    for job in jobs {
        job.answer(Err(NotWritten::Unavailable(why.to_owned())));
    }
}
