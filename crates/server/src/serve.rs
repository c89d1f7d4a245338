//! Sockets. HTTP/1.1 only: a poll is one request on a connection of its own, and gains nothing from anything newer.
//!
//! Whoever is slow, or leaves a connection open, costs a place and a little memory, for a limited time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use http::{HeaderValue, header};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::metrics::gauge::Gauge;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use crate::metrics::Metrics;
use crate::requests;

/// How long a client may take to send a request's head, and how long it may keep an idle connection.
const HEAD_DEADLINE: Duration = Duration::from_secs(15);
/// The most that is kept of a request's head: what a slow client can make us hold.
const MAX_HEAD: usize = 64 * 1024;
/// How long a client may not take a byte of its answer.
const WRITE_DEADLINE: Duration = Duration::from_secs(30);
/// How long new connections are still taken when the process is told to stop, unless there is a lull before.
const LAST_CONNECTIONS: Duration = Duration::from_millis(250);
/// How long nobody has to come for that.
const LULL: Duration = Duration::from_millis(10);
/// How long connections may go on by themselves when the process is told to stop; after that, idle ones are closed.
const LAST_REQUESTS: Duration = Duration::from_secs(2);
/// How long requests that have begun may take when the process is told to stop: longer than any deadline of a request.
const LAST_ANSWERS: Duration = Duration::from_secs(35);
/// Descriptors that are not for connections: the store, the log, the runtime.
const RESERVED_DESCRIPTORS: u64 = 128;
/// The most connections, however many descriptors there are.
const MAX_CONNECTIONS: u64 = 60_000;

/// Raises the limit of open descriptors as far as it goes, and says how many connections that allows.
pub fn raise_descriptor_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.unwrap_or(u64::MAX).min(1 << 20);
    if current.is_some_and(|current| current < most)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum })
    {
        warn!(%error, "the limit of open files could not be raised");
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let connections = limit.saturating_sub(RESERVED_DESCRIPTORS).clamp(16, MAX_CONNECTIONS);
    usize::try_from(connections).unwrap_or(1_024)
}

/// What all connections share.
struct Desk {
    router: Router,
    metrics: Metrics,
    /// The last answers are being given: each says that its connection ends.
    draining: AtomicBool,
}

impl Desk {
    async fn answer(&self, request: http::Request<Body>) -> http::Response<Body> {
        let mut response = requests::answer(self.router.clone(), &self.metrics, request).await;
        if self.draining.load(Ordering::Acquire) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// A connection that is counted, and has a place, until it is dropped in whatever way.
struct Open {
    count: Gauge,
    _place: OwnedSemaphorePermit,
}

impl Open {
    fn new(count: Gauge, place: OwnedSemaphorePermit) -> Self {
        count.inc();
        Self { count, _place: place }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.count.dec();
    }
}

/// Answers requests with a router until it is told to stop.
pub struct Server {
    desk: Arc<Desk>,
    places: Arc<Semaphore>,
    /// Idle connections are to be closed.
    close_idle: CancellationToken,
    /// Every connection is to be closed.
    close_all: CancellationToken,
    connections: TaskTracker,
}

impl Server {
    /// One with so many places for connections.
    pub fn new(router: Router, metrics: Metrics, places: usize) -> Self {
        Self {
            desk: Arc::new(Desk { router, metrics, draining: AtomicBool::new(false) }),
            places: Arc::new(Semaphore::new(places)),
            close_idle: CancellationToken::new(),
            close_all: CancellationToken::new(),
            connections: TaskTracker::new(),
        }
    }

    /// Serves until it is told to stop, and then until what has begun is answered.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        loop {
            let Some(place) = self.place(&stop).await else { break };
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.connect(stream, peer, place),
                Err(error) => {
                    // Mostly too many open files. It passes; a busy loop would not help it.
                    warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        self.drain(listener).await;
    }

    async fn place(&self, stop: &CancellationToken) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Some(place);
        }
        self.desk.metrics.connections_full.inc();
        tokio::select! {
            () = stop.cancelled() => None,
            place = self.places.clone().acquire_owned() => place.ok(),
        }
    }

    fn connect(&self, stream: TcpStream, peer: SocketAddr, place: OwnedSemaphorePermit) {
        let (desk, close_idle, close_all) =
            (self.desk.clone(), self.close_idle.clone(), self.close_all.clone());
        let open = Open::new(self.desk.metrics.connections.clone(), place);
        self.connections.spawn(async move {
            let _open = open;
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let desk = desk.clone();
                async move { Ok::<_, Infallible>(desk.answer(request.map(Body::new)).await) }
            });
            let _ = stream.set_nodelay(true);
            let mut stream = TimeoutStream::new(stream);
            stream.set_write_timeout(Some(WRITE_DEADLINE));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_DEADLINE)
                .max_buf_size(MAX_HEAD)
                // Whoever has said everything may still listen.
                .half_close(true)
                .serve_connection(TokioIo::new(Box::pin(stream)), service);
            tokio::pin!(connection);
            let gracefully = async {
                tokio::select! {
                    outcome = connection.as_mut() => outcome,
                    () = close_idle.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                }
            };
            tokio::select! {
                outcome = gracefully => if let Err(error) = outcome {
                    debug!(%peer, %error, "a connection has ended badly");
                },
                () = close_all.cancelled() => {}
            }
        });
    }

    /// Nothing that was sent is lost: who is already connected is answered, and told that the connection ends.
    async fn drain(self, listener: TcpListener) {
        self.desk.draining.store(true, Ordering::Release);
        // Connections that the kernel has accepted for us may have sent their request. New ones may never cease to come.
        let end = Instant::now() + LAST_CONNECTIONS;
        while let Ok(place) = self.places.clone().try_acquire_owned()
            && let wait = end.saturating_duration_since(Instant::now()).min(LULL)
            && let Ok(Ok((stream, peer))) = tokio::time::timeout(wait, listener.accept()).await
        {
            self.connect(stream, peer, place);
        }
        self.close(listener);
        self.connections.close();
        if tokio::time::timeout(LAST_REQUESTS, self.connections.wait()).await.is_ok() {
            return;
        }
        self.close_idle.cancel();
        if tokio::time::timeout(LAST_ANSWERS, self.connections.wait()).await.is_err() {
            warn!(left = self.connections.len(), "closing connections that were still open at the end");
            self.close_all.cancel();
            self.connections.wait().await;
        }
    }

    /// Closes right after a look that found nobody waiting: the kernel resets whoever it has accepted by then.
    fn close(&self, listener: TcpListener) {
        let Ok(listener) = listener.into_std() else { return };
        while let Ok(place) = self.places.clone().try_acquire_owned()
            && let Ok((stream, peer)) = listener.accept()
            && stream.set_nonblocking(true).is_ok()
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            self.connect(stream, peer, place);
        }
    }
}
