//! The fleet as this process knows it, behind an atomic swap: a poll takes it, and waits for nobody.
//!
//! It never goes backwards, and it says how long ago it was known to be the store's head: past `MAX_STALENESS` it gives nothing out. An
//! answer that is missing harms no cluster; an old one beside another replica's new one makes Flux uninstall and install again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use fleet::State;
use rustix::time::{ClockId, clock_gettime};

/// Why nothing is given out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotServing {
    /// Nothing was loaded and confirmed yet.
    #[error("the fleet is not loaded yet")]
    NotLoaded,
    /// The store's head could not be confirmed for too long.
    #[error("the store has not been confirmed for {0} seconds")]
    Stale(u64),
}

/// The fleet as this process knows it.
pub struct Replica {
    current: ArcSwapOption<State>,
    /// When it was last known to be the store's head, in milliseconds of [`now`]. 0 for never.
    confirmed: AtomicU64,
    max_staleness: Option<Duration>,
    /// States that a poll may still hold. They are let go here, so that no poll has to take one apart.
    retired: Mutex<Vec<Arc<State>>>,
    /// What keeps the head from being confirmed.
    trouble: Mutex<Option<String>>,
}

/// Milliseconds since the machine started, time asleep included: a suspended machine's fleet gets old too.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000 + 1
}

impl Replica {
    /// One that knows nothing yet.
    pub fn new(max_staleness: Option<Duration>) -> Self {
        Self {
            current: ArcSwapOption::empty(),
            confirmed: AtomicU64::new(0),
            max_staleness,
            retired: Mutex::default(),
            trouble: Mutex::default(),
        }
    }

    /// The fleet, if it may be given out.
    pub fn serving(&self) -> Result<Arc<State>, NotServing> {
        // In this order: whoever is held up in between has a later state than was confirmed, not an earlier one.
        let behind = self.millis_behind();
        let state = self.current.load_full().ok_or(NotServing::NotLoaded)?;
        let Some(most) = self.max_staleness else { return Ok(state) };
        match behind {
            None => Err(NotServing::NotLoaded),
            Some(behind) if u128::from(behind) > most.as_millis() => Err(NotServing::Stale(behind / 1_000)),
            Some(_) => Ok(state),
        }
    }

    /// The fleet as far as it is known, however old that is: to go on from, not to give out.
    pub fn known(&self) -> Option<Arc<State>> {
        self.current.load_full()
    }

    /// How long ago the head was confirmed; none if it never was.
    pub fn millis_behind(&self) -> Option<u64> {
        match self.confirmed.load(Ordering::Acquire) {
            0 => None,
            confirmed => Some(now().saturating_sub(confirmed)),
        }
    }

    /// What keeps the head from being confirmed, if something does.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a later state. One that is not later is passed over: the writer and the follower may both bring the same.
    pub fn publish(&self, state: Arc<State>) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.current.load_full();
        if known.as_ref().is_some_and(|known| known.head().revision >= state.head().revision) {
            return;
        }
        self.current.store(Some(state));
        retired.extend(known);
        retired.retain(|old| Arc::strong_count(old) > 1);
    }

    /// Notes that at some moment the store's head was what is known here.
    pub fn confirm(&self, moment: u64) {
        self.confirmed.fetch_max(moment, Ordering::AcqRel);
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Notes what keeps the head from being confirmed; `true` if that is news.
    pub fn note(&self, trouble: &str) -> bool {
        let mut noted = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let news = noted.as_deref() != Some(trouble);
        *noted = Some(trouble.to_owned());
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_served_before_it_is_loaded_and_confirmed() {
        let replica = Replica::new(Some(Duration::from_mins(1)));
        assert_eq!(replica.serving().err(), Some(NotServing::NotLoaded));
        replica.publish(Arc::new(State::empty()));
        assert_eq!(replica.serving().err(), Some(NotServing::NotLoaded), "loaded is not confirmed");
        replica.confirm(now());
        assert!(replica.serving().is_ok());
    }

    #[test]
    fn what_was_not_confirmed_for_too_long_is_not_served() {
        let replica = Replica::new(Some(Duration::from_mins(1)));
        replica.publish(Arc::new(State::empty()));
        replica.confirm(now().saturating_sub(61_000).max(1));
        assert!(matches!(replica.serving(), Err(NotServing::Stale(seconds)) if seconds >= 61));
        let unlimited = Replica::new(None);
        unlimited.publish(Arc::new(State::empty()));
        assert!(unlimited.serving().is_ok());
    }

    #[test]
    fn a_late_confirmation_of_an_early_moment_does_not_make_it_older() {
        let replica = Replica::new(Some(Duration::from_mins(1)));
        replica.publish(Arc::new(State::empty()));
        replica.confirm(now());
        replica.confirm(1);
        assert!(replica.serving().is_ok());
    }
}
