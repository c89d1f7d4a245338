//! Waiting for what has to come true, with an end and with an account of what was seen instead.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How long something may take that takes seconds. The machine may be busy, and the operator waits for a minute now and then.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// Asks until `seen` is `Ok`, for at most `limit`. An error says what was seen instead.
pub fn within<T>(limit: Duration, what: &str, mut seen: impl FnMut() -> Result<T>) -> Result<T> {
    let until = Instant::now() + limit;
    loop {
        match seen() {
            Ok(value) => return Ok(value),
            Err(instead) if Instant::now() >= until => {
                bail!("{what}: not within {} s: {instead:#}", limit.as_secs())
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// [`within`] the usual patience.
pub fn until<T>(what: &str, seen: impl FnMut() -> Result<T>) -> Result<T> {
    within(PATIENCE, what, seen)
}
