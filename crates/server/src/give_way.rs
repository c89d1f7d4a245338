//! How work that takes a while gives way to polls: threads of a lower priority, and worker threads that hand their other tasks over first.

use rustix::process::{getpriority_process, setpriority_process};
use tokio::runtime::{Handle, RuntimeFlavor};
use tracing::warn;

/// More bytes than this take longer to read, or to free, than a poll takes to answer.
pub(crate) const LARGE: usize = 64 * 1024;

/// The lowest priority that there is.
const LOWEST: i32 = 19;

/// Does what takes a while if it is large. Before that, the other tasks of this thread, polls among them, are handed over to another one.
pub(crate) fn handing_over<T>(is_large: bool, work: impl FnOnce() -> T) -> T {
    let can_hand_over =
        Handle::try_current().is_ok_and(|on| on.runtime_flavor() == RuntimeFlavor::MultiThread);
    if is_large && can_hand_over { tokio::task::block_in_place(work) } else { work() }
}

/// Lowers the priority of this thread by so much, as `nice` counts.
pub(crate) fn lower_priority(by: i32) {
    // On Linux this is about the thread that calls it; elsewhere it would be the whole process.
    if !cfg!(target_os = "linux") {
        return;
    }
    let lowered = getpriority_process(None).and_then(|now| setpriority_process(None, (now + by).min(LOWEST)));
    if let Err(error) = lowered {
        warn!(%error, "cannot lower the priority of a thread");
    }
}
