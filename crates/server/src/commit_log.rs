//! A line in the log for each commit that becomes visible, at level `debug`, whoever made it.

use std::sync::Arc;

use fleet::Commit;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::replica::Replica;

/// Logs commits until it is told to stop. If there are more than it can follow, it begins again with the next one.
pub async fn follow(replica: Arc<Replica>, stop: CancellationToken) {
    let logged = async {
        loop {
            let mut commits = replica.subscribe();
            while let Some(commit) = commits.next().await {
                let Commit { header, changes } = &*commit;
                debug!(
                    revision = header.at.revision.0,
                    actor = &*header.origin.actor,
                    reason = header.origin.reason.as_deref(),
                    changes = changes.len(),
                    "a commit is visible"
                );
            }
            debug!("more commits than the log could follow");
        }
    };
    stop.run_until_cancelled(logged).await;
}
