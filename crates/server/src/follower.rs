//! Follows the store: loads the fleet, then replays what is appended, and confirms the head several times a second.
//!
//! A store that is another one, or that has lost or changed what was read before, is not followed: the process answers what it knows,
//! for as long as `MAX_STALENESS` allows. A commit that does not replay ends following for good. Only a process that knows nothing takes
//! a snapshot.

use std::time::{Duration, Instant};

use fleet::{Commit, Diverged, Revision, State};
use ledger::{Budget, FeedError, Follow};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::replica::{self, NotNext, Replica};

/// How long to wait for news before the head is confirmed again, and a stop is noticed.
const TICK: Duration = Duration::from_millis(200);

/// How long to wait before a store is loaded again that holds something which this version does not understand.
const RELOAD: Duration = Duration::from_secs(10);

/// How much to take in at once.
pub const BUDGET: Budget = Budget { commits: 1_000, bytes: 16 * 1024 * 1024 };

/// Why the fleet is not at the store's head.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotFollowed {
    /// The store cannot be read, or is not to be believed. That may pass.
    #[error(transparent)]
    Store(#[from] FeedError),
    /// Nothing but this thread has the turn, so that is a bug.
    #[error(transparent)]
    NotNext(#[from] NotNext),
    /// That never passes.
    #[error(transparent)]
    Commit(#[from] DoesNotReplay),
}

/// A commit that leads somewhere else than it says, or is not understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("revision {revision} cannot be followed: {diverged}")]
pub struct DoesNotReplay {
    pub revision: Revision,
    pub diverged: Diverged,
}

/// Follows until it is told to stop. Blocks.
pub fn follow(store: &dyn Follow, replica: &Replica, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        let problem = catch_up(store, replica).err();
        if let Some(problem) = &problem {
            note(replica, problem);
        }
        match problem {
            // What is known is served as long as it may be; what comes after it is not for this process.
            Some(problem @ (NotFollowed::Commit(_) | NotFollowed::NotNext(_))) => {
                while !stop.is_cancelled() {
                    std::thread::sleep(TICK);
                    note(replica, &problem);
                }
            }
            // Loading takes long, and most likely the next one ends alike.
            Some(NotFollowed::Store(FeedError::NeedsNewer(_))) => wait(RELOAD, stop),
            _ => store.changed(TICK),
        }
    }
}

fn wait(time: Duration, stop: &CancellationToken) {
    let end = Instant::now() + time;
    while !stop.is_cancelled() && Instant::now() < end {
        std::thread::sleep(TICK);
    }
}

fn note(replica: &Replica, problem: &NotFollowed) {
    let needs = match problem {
        NotFollowed::Store(FeedError::NeedsNewer(needs))
        | NotFollowed::Commit(DoesNotReplay { diverged: Diverged::Newer(needs), .. }) => Some(needs.clone()),
        NotFollowed::Store(_) | NotFollowed::NotNext(_) | NotFollowed::Commit(_) => None,
    };
    if !replica.note(&problem.to_string(), needs) {
        return;
    }
    match problem {
        // Nothing is wrong: the process that makes the store may start later.
        NotFollowed::Store(problem @ FeedError::NotInitialised(_)) => {
            info!(%problem, "waiting for the store")
        }
        NotFollowed::Store(problem) => warn!(%problem, "the store is not followed"),
        NotFollowed::NotNext(_) | NotFollowed::Commit(_) => {
            error!(%problem, "the store is no longer followed")
        }
    }
}

/// Takes in everything up to the head, and confirms it.
pub fn catch_up(store: &dyn Follow, replica: &Replica) -> Result<(), NotFollowed> {
    loop {
        let moment = replica::now();
        let Some(mut turn) = replica.try_turn() else {
            // The writer is appending, and brings what it appends itself. If that takes long, the head is confirmed all the same.
            if let Some(known) = replica.known()
                && store.is_head(known.head())?
            {
                replica.confirm(moment);
            }
            return Ok(());
        };
        let Some(known) = turn.known() else {
            let state = store.load()?;
            if state.head().revision == Revision(0) {
                return Err(FeedError::NotInitialised("it holds nothing yet".to_owned()).into());
            }
            info!(revision = state.head().revision.0, "the fleet is loaded");
            turn.begin(state)?;
            continue;
        };
        let commits = store.read(known.head(), BUDGET)?;
        if commits.is_empty() {
            replica.confirm(moment);
            return Ok(());
        }
        let state = replayed(&known, &commits)?;
        turn.advance(state, commits)?;
    }
}

/// The state after some commits.
pub fn replayed(state: &State, commits: &[Commit]) -> Result<State, DoesNotReplay> {
    commits.iter().try_fold(state.clone(), |state, commit| {
        let revision = commit.header.at.revision;
        state.replay(commit).map_err(|diverged| DoesNotReplay { revision, diverged })
    })
}
