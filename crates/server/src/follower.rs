//! Follows the store: loads the fleet, then replays what is appended, and confirms the head at least once a second.
//!
//! A store that is another one, or that has lost or changed what was read before, is not followed. Only a restart makes this process
//! believe it: until then it answers what it knows, for as long as `MAX_STALENESS` allows.

use std::sync::Arc;
use std::time::Duration;

use fleet::{Revision, State};
use ledger::{Budget, Feed, FeedError};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::replica::{self, Replica};

/// How long the head may go unconfirmed when nothing seems to happen.
const TICK: Duration = Duration::from_secs(1);

/// How much to take in at once.
pub const BUDGET: Budget = Budget { commits: 1_000, bytes: 16 * 1024 * 1024 };

/// Follows until it is told to stop.
pub async fn follow<F: Feed + ?Sized>(feed: &F, replica: &Replica, stop: CancellationToken) {
    while !stop.is_cancelled() {
        match catch_up(feed, replica).await {
            Ok(()) => {}
            Err(error) => {
                let is_news = replica.note(&error.to_string());
                match error {
                    // Nothing is wrong: whoever makes the store may start later.
                    FeedError::NotInitialised(_) if is_news => info!(%error, "waiting for the store"),
                    error if is_news => warn!(%error, "the store is not followed"),
                    _ => {}
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(TICK) => {}
            () = feed.changed() => {}
        }
    }
}

/// Takes in everything up to the head, and confirms it.
pub async fn catch_up<F: Feed + ?Sized>(feed: &F, replica: &Replica) -> Result<(), FeedError> {
    loop {
        let moment = replica::now();
        let Some(known) = replica.known() else {
            let state = feed.load().await?;
            if state.head().revision == Revision(0) {
                return Err(FeedError::NotInitialised("it holds nothing yet".to_owned()));
            }
            info!(revision = state.head().revision.0, "the fleet is loaded");
            replica.publish(Arc::new(state));
            continue;
        };
        let commits = feed.read(known.head(), BUDGET).await?;
        if commits.is_empty() {
            replica.confirm(moment);
            return Ok(());
        }
        match replayed(&known, &commits) {
            Ok(state) => replica.publish(Arc::new(state)),
            Err(diverged) => {
                // The store is the one that was followed, so what is wrong is here, or in a commit: the documents tell.
                warn!(%diverged, "a commit does not lead where it says; loading the fleet again");
                replica.publish(Arc::new(feed.load().await?));
                return Err(FeedError::from(diverged));
            }
        }
    }
}

/// The state after some commits.
pub fn replayed(state: &State, commits: &[fleet::Commit]) -> Result<State, fleet::Diverged> {
    let Some((first, rest)) = commits.split_first() else { return Ok(state.clone()) };
    rest.iter().try_fold(state.replay(first)?, |state, commit| state.replay(commit))
}
