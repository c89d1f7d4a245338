//! A line in the log for each commit that becomes visible, at level `debug`, whoever made it; a warning if its time is in the future.
//!
//! It is mostly the last that holds a commit, and freeing ten thousand documents takes ten milliseconds. So it has a thread of its own, of the
//! lowest priority: polls go first.

use std::sync::Arc;

use fleet::Commit;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::clock;
use crate::give_way::lower_priority;
use crate::replica::Replica;

/// The priority of the thread, as `nice` counts.
const NICENESS: i32 = 19;

/// Logs commits, on another thread, until it is told to stop.
pub fn start(replica: Arc<Replica>, stop: CancellationToken) -> std::io::Result<()> {
    let runtime = Handle::current();
    std::thread::Builder::new().name("commit-log".to_owned()).spawn(move || {
        lower_priority(NICENESS);
        runtime.block_on(follow(replica, stop));
    })?;
    Ok(())
}

/// If there are more than it can follow, it begins again with the next one.
async fn follow(replica: Arc<Replica>, stop: CancellationToken) {
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
            }
            debug!("more commits than the log could follow");
        }
    };
    stop.run_until_cancelled(logged).await;
}
