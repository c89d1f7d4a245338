//! Which connections are open, and which of them are idle: when there is no place for another one, the one that has been idle longest is
//! closed. It must not know HTTP.
//!
//! A connection is idle while no request of it is being answered, also when it has sent a part of one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Of so many places one is made free at once, so that not every connection looks through all of them.
const SHARE: usize = 128;

pub struct Connections {
    places: Arc<Semaphore>,
    all: usize,
    start: Instant,
    count: Gauge,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    by_number: BTreeMap<u64, Arc<Activity>>,
}

impl Connections {
    pub fn new(places: usize, count: Gauge) -> Arc<Self> {
        let (all, places) = (places, Arc::new(Semaphore::new(places)));
        Arc::new(Self { places, all, start: Instant::now(), count, open: Mutex::default() })
    }

    /// A place, if there is one.
    pub fn free_place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    /// A place as soon as there is one.
    pub async fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().acquire_owned().await.ok()
    }

    /// Counts a connection, which is idle at first, until what this returns is dropped.
    pub fn open(self: &Arc<Self>, place: OwnedSemaphorePermit) -> OpenConnection {
        let activity = Arc::new(Activity { idle_since: AtomicU64::new(self.now()), close: Notify::new() });
        let mut open = self.lock();
        let number = open.next;
        open.next += 1;
        open.by_number.insert(number, activity.clone());
        drop(open);
        self.count.inc();
        OpenConnection { connections: self.clone(), number, activity, _place: place }
    }

    /// Tells those that have been idle longest to close, and says how many.
    pub fn close_oldest(&self) -> usize {
        let mut idle: Vec<(u64, Arc<Activity>)> = self
            .lock()
            .by_number
            .values()
            .map(|activity| (activity.idle_since.load(Ordering::Acquire), activity))
            .filter(|(since, _)| ![BUSY, CLOSING].contains(since))
            .map(|(since, activity)| (since, activity.clone()))
            .collect();
        let few = self.all / SHARE + 1;
        if idle.len() > few {
            idle.select_nth_unstable_by_key(few, |(since, _)| *since);
            idle.truncate(few);
        }
        idle.iter().filter(|(since, activity)| activity.tell_to_close(*since)).count()
    }

    /// Milliseconds since the start, beginning where no other meaning is.
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(FIRST)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const BUSY: u64 = 0;
const CLOSING: u64 = 1;
const FIRST: u64 = 2;

/// What a connection does.
struct Activity {
    /// Since when it is idle, or one of the two that are no time.
    idle_since: AtomicU64,
    close: Notify,
}

impl Activity {
    fn tell_to_close(&self, since: u64) -> bool {
        let told =
            self.idle_since.compare_exchange(since, CLOSING, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if told {
            self.close.notify_one();
        }
        told
    }
}

/// A connection that is counted, and has a place, until it is dropped in whatever way.
pub struct OpenConnection {
    connections: Arc<Connections>,
    number: u64,
    activity: Arc<Activity>,
    _place: OwnedSemaphorePermit,
}

impl OpenConnection {
    /// A request has come: it is answered, also if the connection was about to be closed.
    pub fn begin(&self) {
        self.activity.idle_since.store(BUSY, Ordering::Release);
    }

    /// The answer is made.
    pub fn end(&self) {
        self.activity.idle_since.store(self.connections.now(), Ordering::Release);
    }

    /// Returns when it is to make room for another one.
    pub async fn has_to_close(&self) {
        loop {
            self.activity.close.notified().await;
            if self.activity.idle_since.load(Ordering::Acquire) == CLOSING {
                return;
            }
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.lock().by_number.remove(&self.number);
        self.connections.count.dec();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn is_told(connection: &OpenConnection) -> bool {
        connection.has_to_close().now_or_never().is_some()
    }

    #[test]
    fn the_one_that_has_been_idle_longest_makes_room_and_none_that_answers_a_request() {
        let count = Gauge::default();
        let connections = Connections::new(4, count.clone());
        let mut open = Vec::new();
        for _ in 0..4 {
            open.push(connections.open(connections.free_place().expect("a place")));
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert!(connections.free_place().is_none());
        assert_eq!(count.get(), 4);
        open[0].begin();
        open[1].begin();
        open[1].end();
        assert_eq!(connections.close_oldest(), 1);
        assert_eq!(open.iter().map(is_told).collect::<Vec<_>>(), [false, false, true, false]);
        // A request that comes at this moment is answered, and another connection has to go.
        open[3].begin();
        assert_eq!(connections.close_oldest(), 1);
        assert_eq!(open.iter().map(is_told).collect::<Vec<_>>(), [false, true, false, false]);
        open[1].begin();
        assert!(!is_told(&open[1]));
        assert_eq!(connections.close_oldest(), 0, "nobody is idle, but the one that closes already");
        open.remove(2);
        assert!(connections.free_place().is_some());
        assert_eq!(count.get(), 3);
    }
}
