//! A line in the log for each commit that becomes visible, at level `debug`, whoever made it; a warning if its time is in the future.

use std::sync::Arc;

use fleet::Commit;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::clock;
use crate::give_way::{LARGE, handing_over};
use crate::replica::Replica;

/// More changes than this take longer to free than a poll takes to answer.
const FEW: usize = 500;

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
                // This may be the last reference, and freeing ten thousand documents takes longer than a poll.
                handing_over(changes.len() > FEW || commit.body_bytes() > LARGE, || drop(commit));
            }
            debug!("more commits than the log could follow");
        }
    };
    stop.run_until_cancelled(logged).await;
}
