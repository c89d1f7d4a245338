//! Which connections are open, what each of them does, and which has to close: idle for too long, unread for too long, the one that has
//! been idle longest when there is no place for another one, or all of them when the process stops. It must not know HTTP.
//!
//! A connection is idle while no request of it is being answered and no answer waits to be sent, also when it has sent a part of a request.
//! One task looks at all of them now and then, so that a poll sets no timer.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use prometheus_client::metrics::gauge::Gauge;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How long a client may take to send a request's head, and how long it may keep an idle connection.
const IDLE_DEADLINE: Duration = Duration::from_secs(15);
/// How long a client may not take a byte of its answer.
const UNREAD_DEADLINE: Duration = Duration::from_secs(30);
/// How long it may not take one when its place is needed.
const UNREAD_WHEN_FULL: Duration = Duration::from_secs(1);
/// A large answer must be taken within [`UNREAD_DEADLINE`] and the time that its bytes need at this rate, in bytes per millisecond.
const SLOWEST: u64 = 64;
/// How often the deadlines are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// One in so many places is freed at a time, so that a burst does not scan all connections for each newcomer.
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
        let activity = Arc::new(Activity::idle_since(self.now()));
        let mut open = self.lock();
        let number = open.next;
        open.next += 1;
        open.by_number.insert(number, activity.clone());
        drop(open);
        self.count.inc();
        OpenConnection { connections: self.clone(), number, activity, _place: place }
    }

    /// Tells those that have been idle longest to close, or else those that do not read their answers, and says how many.
    pub fn close_oldest(&self) -> usize {
        let open = self.all_open();
        let idle = self.longest(open.iter().filter_map(|activity| Some((activity.idle()?, activity))));
        let closed = idle.iter().filter(|(since, activity)| activity.close_if_idle(*since)).count();
        if closed > 0 {
            return closed;
        }
        let now = self.now();
        let unread = open.iter().filter_map(|activity| Some((activity.unread()?, activity)));
        let unread = self.longest(unread.filter(|(since, _)| is_past(*since, UNREAD_WHEN_FULL, now)));
        for (_, activity) in &unread {
            activity.tell(Order::Close);
        }
        unread.len()
    }

    /// A few of them: those with the earliest moments.
    fn longest<'a>(
        &self,
        all: impl Iterator<Item = (u64, &'a Arc<Activity>)>,
    ) -> Vec<(u64, &'a Arc<Activity>)> {
        let mut all: Vec<_> = all.collect();
        let few = self.all / SHARE + 1;
        if all.len() > few {
            all.select_nth_unstable_by_key(few, |(since, _)| *since);
            all.truncate(few);
        }
        all
    }

    /// Closes, from now on, every connection that is past a deadline.
    pub async fn keep_deadlines(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.close_late(self.now());
        }
    }

    fn close_late(&self, now: u64) {
        for activity in self.all_open() {
            if let Some(since) = activity.idle().filter(|since| is_past(*since, IDLE_DEADLINE, now)) {
                activity.close_if_idle(since);
            }
            let is_unread = activity.unread().is_some_and(|since| is_past(since, UNREAD_DEADLINE, now));
            if is_unread || now >= activity.sent_by.load(Ordering::Acquire) {
                activity.tell(Order::Close);
            }
        }
    }

    /// Tells all of them.
    pub fn tell_all(&self, order: Order) {
        for activity in self.all_open() {
            activity.tell(order);
        }
    }

    fn all_open(&self) -> Vec<Arc<Activity>> {
        self.lock().by_number.values().cloned().collect()
    }

    /// Milliseconds since the start, beginning where no other meaning is.
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(FIRST_MOMENT)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_past(since: u64, deadline: Duration, now: u64) -> bool {
    u128::from(now.saturating_sub(since)) >= deadline.as_millis()
}

/// What a connection is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Order {
    /// To end once it is idle.
    Finish = 1,
    /// To end at once.
    Close = 2,
}

/// In the place of a moment: it is not so.
const NOT: u64 = 0;
/// In the place of a moment: it was told to close.
const CLOSING: u64 = 1;
const FIRST_MOMENT: u64 = 2;
/// In the place of a moment: it does not come.
const NEVER: u64 = u64::MAX;
const NO_ORDER: u64 = 0;

/// What a connection does.
struct Activity {
    /// Since when no request is being answered: [`NOT`] while one is, [`CLOSING`] once it was told to close.
    idle_since: AtomicU64,
    /// Since when the client has taken nothing of what waits to be sent: [`NOT`] if nothing waits.
    unread_since: AtomicU64,
    /// When a large answer must have been taken.
    sent_by: AtomicU64,
    /// Whether the answer is a body of unknown length.
    streams: AtomicBool,
    /// The last [`Order`].
    order: AtomicU64,
    told: Notify,
}

impl Activity {
    fn idle_since(moment: u64) -> Self {
        Self {
            idle_since: AtomicU64::new(moment),
            unread_since: AtomicU64::new(NOT),
            sent_by: AtomicU64::new(NEVER),
            streams: AtomicBool::new(false),
            order: AtomicU64::new(NO_ORDER),
            told: Notify::new(),
        }
    }

    /// Since when it is idle, if it is and was not told to close yet.
    fn idle(&self) -> Option<u64> {
        let since = self.idle_since.load(Ordering::Acquire);
        (![NOT, CLOSING].contains(&since) && self.unread().is_none()).then_some(since)
    }

    fn unread(&self) -> Option<u64> {
        Some(self.unread_since.load(Ordering::Acquire)).filter(|since| *since != NOT)
    }

    /// Tells it to close, unless it has begun to answer a request since then.
    fn close_if_idle(&self, since: u64) -> bool {
        let told =
            self.idle_since.compare_exchange(since, CLOSING, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if told {
            self.told.notify_one();
        }
        told
    }

    fn tell(&self, order: Order) {
        self.order.fetch_max(order as u64, Ordering::AcqRel);
        self.told.notify_one();
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
    /// A request has come: it is answered, also if the connection was about to be closed. It is not idle until what this returns is
    /// dropped, and what waits to be sent then is sent.
    pub fn begin(self: &Arc<Self>) -> Answering {
        self.activity.idle_since.store(NOT, Ordering::Release);
        Answering(self.clone())
    }

    /// Whether no request of it is being answered, and no answer waits to be sent.
    pub fn is_idle(&self) -> bool {
        self.activity.idle().is_some()
    }

    /// Whether the answer is a body of unknown length.
    pub fn streams(&self) -> bool {
        self.activity.streams.load(Ordering::Acquire)
    }

    /// What it is told, when it is.
    pub async fn order(&self) -> Order {
        loop {
            self.activity.told.notified().await;
            if self.activity.idle_since.load(Ordering::Acquire) == CLOSING {
                if self.activity.unread().is_none() {
                    return Order::Close;
                }
                // It looked idle while its answer was on the way.
                self.activity.idle_since.store(self.connections.now(), Ordering::Release);
            }
            match self.activity.order.load(Ordering::Acquire) {
                NO_ORDER => {}
                order if order == Order::Finish as u64 => return Order::Finish,
                _ => return Order::Close,
            }
        }
    }

    /// Its stream, which notes whether the client takes what is written.
    pub fn watch<S>(self: &Arc<Self>, stream: S) -> Watched<S> {
        Watched { stream, connection: self.clone(), is_unread: false }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.lock().by_number.remove(&self.number);
        self.connections.count.dec();
    }
}

/// A request of a connection that is being answered.
pub struct Answering(Arc<OpenConnection>);

impl Answering {
    /// The answer has so many bytes, and holds this until it is handed over.
    #[must_use]
    pub fn sending(self, bytes: u64) -> Self {
        let deadline = u64::try_from(UNREAD_DEADLINE.as_millis()).unwrap_or(u64::MAX);
        let sent_by = self.0.connections.now().saturating_add(deadline).saturating_add(bytes / SLOWEST);
        self.0.activity.sent_by.store(sent_by, Ordering::Release);
        self
    }

    /// The answer is a body of unknown length, which holds this from now on.
    #[must_use]
    pub fn streaming(self) -> Self {
        self.0.activity.streams.store(true, Ordering::Release);
        self
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let Self(connection) = self;
        connection.activity.streams.store(false, Ordering::Release);
        connection.activity.sent_by.store(NEVER, Ordering::Release);
        connection.activity.idle_since.store(connection.connections.now(), Ordering::Release);
    }
}

/// The stream of a connection.
pub struct Watched<S> {
    stream: S,
    connection: Arc<OpenConnection>,
    is_unread: bool,
}

impl<S> Watched<S> {
    fn note<T>(&mut self, written: Poll<T>) -> Poll<T> {
        if written.is_pending() != self.is_unread {
            self.is_unread = written.is_pending();
            let OpenConnection { connections, activity, .. } = &*self.connection;
            let now = connections.now();
            // Whoever has just seen it idle sees that it is not, and it has not been idle while something waited.
            let since = activity.idle_since.load(Ordering::Acquire);
            if ![NOT, CLOSING].contains(&since) {
                let moved = now.max(since + 1);
                let _ =
                    activity.idle_since.compare_exchange(since, moved, Ordering::AcqRel, Ordering::Acquire);
            }
            activity.unread_since.store(if self.is_unread { now } else { NOT }, Ordering::Release);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn opened(connections: &Arc<Connections>) -> Arc<OpenConnection> {
        Arc::new(connections.open(connections.free_place().expect("a place")))
    }

    fn order(connection: &OpenConnection) -> Option<Order> {
        connection.order().now_or_never()
    }

    fn orders(connections: &[Arc<OpenConnection>]) -> Vec<Option<Order>> {
        connections.iter().map(|connection| order(connection)).collect()
    }

    #[test]
    fn the_one_that_has_been_idle_longest_makes_room_and_none_that_answers_a_request() {
        let count = Gauge::default();
        let connections = Connections::new(4, count.clone());
        let mut open = Vec::new();
        for _ in 0..4 {
            open.push(opened(&connections));
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(connections.free_place().is_none());
        assert_eq!(count.get(), 4);
        let _first = open[0].begin();
        drop(open[1].begin());
        assert_eq!(connections.close_oldest(), 1);
        assert_eq!(orders(&open), [None, None, Some(Order::Close), None]);
        // A request that comes at this moment is answered, and another connection has to go.
        let _fourth = open[3].begin();
        assert_eq!(connections.close_oldest(), 1);
        assert_eq!(orders(&open), [None, Some(Order::Close), None, None]);
        let _second = open[1].begin();
        assert_eq!(order(&open[1]), None);
        assert_eq!(connections.close_oldest(), 0, "nobody is idle, but the one that closes already");
        open.remove(2);
        assert!(connections.free_place().is_some());
        assert_eq!(count.get(), 3);
    }

    #[test]
    fn deadlines_close_who_is_idle_or_does_not_read_and_nobody_else() {
        let connections = Connections::new(4, Gauge::default());
        let open = [(); 3].map(|()| opened(&connections));
        let [_idle, answered, unread] = &open;
        let _answering = answered.begin();
        drop(unread.begin());
        let (mut near, mut far) = pipe(unread);
        assert!(takes_eight(&mut near));
        let idle = unread.activity.idle().expect("nothing waits");
        assert!(!takes_eight(&mut near));
        assert!(!unread.activity.close_if_idle(idle), "it was idle a moment ago, and is not");
        let after = |deadline: Duration| {
            connections.close_late(connections.now() + u64::try_from(deadline.as_millis()).expect("small"));
        };
        after(IDLE_DEADLINE / 2);
        assert_eq!(orders(&open), [None; 3]);
        after(IDLE_DEADLINE);
        assert_eq!(orders(&open), [Some(Order::Close), None, None]);
        // To try again is no progress.
        assert!(!takes_eight(&mut near));
        after(UNREAD_DEADLINE);
        assert_eq!(orders(&open), [None, None, Some(Order::Close)]);
        // Whoever reads goes on.
        let mut eight = [0; 8];
        let mut read = ReadBuf::new(&mut eight);
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(Pin::new(&mut far).poll_read(&mut context, &mut read).is_ready());
        assert!(takes_eight(&mut near));
        assert_eq!(unread.activity.unread(), None);
    }

    /// A pipe of eight bytes, and whether eight more go into it.
    fn pipe(connection: &Arc<OpenConnection>) -> (Watched<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (near, far) = tokio::io::duplex(8);
        (connection.watch(near), far)
    }

    fn takes_eight(near: &mut Watched<tokio::io::DuplexStream>) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        Pin::new(near).poll_write(&mut context, &[0; 8]).is_ready()
    }

    /// The answer was made, and a moment before it was sent the connection looked idle.
    #[test]
    fn a_connection_is_not_closed_in_the_middle_of_an_answer() {
        let connections = Connections::new(1, Gauge::default());
        let open = opened(&connections);
        let (mut near, _far) = pipe(&open);
        drop(open.begin());
        assert_eq!(connections.close_oldest(), 1);
        assert_eq!([takes_eight(&mut near), takes_eight(&mut near)], [true, false]);
        assert_eq!(order(&open), None);
        assert!(!open.is_idle());
    }

    #[test]
    fn when_nobody_is_idle_those_who_do_not_read_make_room() {
        let mut connections = Connections::new(2, Gauge::default());
        Arc::get_mut(&mut connections).expect("nobody else has it").start -= Duration::from_mins(1);
        let open = [(); 2].map(|()| opened(&connections));
        let mut pipes = open.each_ref().map(pipe);
        for (near, _) in &mut pipes {
            assert_eq!([takes_eight(near), takes_eight(near)], [true, false]);
        }
        assert_eq!(connections.close_oldest(), 0, "they may be about to read");
        open[1].activity.unread_since.fetch_sub(2_000, Ordering::AcqRel);
        assert_eq!(connections.close_oldest(), 1);
        assert_eq!(orders(&open), [None, Some(Order::Close)]);
    }

    #[test]
    fn a_large_answer_that_is_taken_byte_by_byte_has_a_deadline() {
        let connections = Connections::new(1, Gauge::default());
        let open = opened(&connections);
        let sending = open.begin().sending(64 * 10_000);
        let after = |seconds: u64| connections.close_late(connections.now() + 1_000 * seconds);
        after(39);
        assert_eq!(order(&open), None);
        after(41);
        assert_eq!(order(&open), Some(Order::Close));
        drop(sending);
        let open = opened(&Connections::new(1, Gauge::default()));
        drop(open.begin().sending(1));
        assert_eq!(open.activity.sent_by.load(Ordering::Acquire), NEVER);
    }

    #[test]
    fn a_stop_is_told_once_and_a_body_of_unknown_length_holds_its_connection() {
        let connections = Connections::new(2, Gauge::default());
        let open = [(); 2].map(|()| opened(&connections));
        let stream = open[0].begin().streaming();
        assert_eq!([open[0].streams(), open[1].streams()], [true, false]);
        connections.tell_all(Order::Finish);
        assert_eq!(orders(&open), [Some(Order::Finish); 2]);
        assert_eq!(orders(&open), [None; 2]);
        drop(stream);
        assert!(!open[0].streams());
        connections.tell_all(Order::Close);
        assert_eq!(orders(&open), [Some(Order::Close); 2]);
    }
}
