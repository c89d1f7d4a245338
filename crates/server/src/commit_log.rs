//! A line in the log for each commit that becomes visible, at level `debug`, whoever made it; a warning if its time is in the future.

use std::sync::Arc;

use fleet::Commit;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::clock;
use crate::heavy;
use crate::replica::Replica;

/// Logs commits until it is told to stop. If there are more than it can follow, it begins again with the next one.
pub async fn follow(replica: Arc<Replica>, stop: CancellationToken) {
    let logged = async {
        loop {
            let mut commits = replica.subscribe();
            while let Some(commit) = commits.next().await {
                let Commit { header, changes } = &*commit;
                if let Some(behind) = clock::behind(header.origin.time, clock::now()) {
                    warn!(
                        revision = header.at.revision.0,
                        seconds = behind.as_secs(),
                        "this process's clock is behind the time of a commit: one of the clocks is or was wrong. Until that time is reached, commits keep it, and the guard's hourly numbers do not come back"
                    );
                }
                debug!(
                    revision = header.at.revision.0,
                    actor = &*header.origin.actor,
                    reason = header.origin.reason.as_deref(),
                    changes = changes.len(),
                    "a commit is visible"
                );
                // Nobody else may have it any more, and the largest have ten thousand documents to be freed.
                heavy::with_bytes(commit.body_bytes(), || drop(commit));
            }
            debug!("more commits than the log could follow");
        }
    };
    stop.run_until_cancelled(logged).await;
}
