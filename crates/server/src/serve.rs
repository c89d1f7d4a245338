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
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use crate::metrics::Metrics;
use crate::requests;

/// How long a client may take to send a request's head, and how long it may keep an idle connection.
const HEAD_DEADLINE: Duration = Duration::from_secs(15);
/// How long a client may not take a byte of its answer.
const WRITE_DEADLINE: Duration = Duration::from_secs(30);
/// How long new connections are still taken when the process is told to stop, unless there is a lull before.
const LAST_CONNECTIONS: Duration = Duration::from_millis(250);
/// How long nobody has to come for that.
const LULL: Duration = Duration::from_millis(10);
/// How long connections may go on by themselves when the process is told to stop; after that, idle ones are closed.
const LAST_REQUESTS: Duration = Duration::from_secs(2);
/// How long requests that have begun may take when the process is told to stop.
const LAST_ANSWERS: Duration = Duration::from_secs(25);
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

/// Answers requests with a router until it is told to stop.
pub struct Server {
    router: Router,
    metrics: Metrics,
    places: Arc<Semaphore>,
    /// The last answers are being given: each says that its connection ends.
    draining: Arc<AtomicBool>,
    /// Idle connections are to be closed.
    close_idle: CancellationToken,
    connections: TaskTracker,
}

impl Server {
    /// One with so many places for connections.
    pub fn new(router: Router, metrics: Metrics, places: usize) -> Self {
        Self {
            router,
            metrics,
            places: Arc::new(Semaphore::new(places)),
            draining: Arc::default(),
            close_idle: CancellationToken::new(),
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

    async fn place(&self, stop: &CancellationToken) -> Option<tokio::sync::OwnedSemaphorePermit> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Some(place);
        }
        self.metrics.connections_full.inc();
        tokio::select! {
            () = stop.cancelled() => None,
            place = self.places.clone().acquire_owned() => place.ok(),
        }
    }

    fn connect(&self, stream: TcpStream, peer: SocketAddr, place: tokio::sync::OwnedSemaphorePermit) {
        let (router, metrics, draining) = (self.router.clone(), self.metrics.clone(), self.draining.clone());
        let close_idle = self.close_idle.clone();
        self.metrics.connections.inc();
        self.connections.spawn(async move {
            let counted = metrics.clone();
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let (router, metrics, draining) = (router.clone(), metrics.clone(), draining.clone());
                async move {
                    let mut response = requests::answer(router, &metrics, request.map(Body::new)).await;
                    if draining.load(Ordering::Acquire) {
                        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                    }
                    Ok::<_, Infallible>(response)
                }
            });
            let _ = stream.set_nodelay(true);
            let mut stream = TimeoutStream::new(stream);
            stream.set_write_timeout(Some(WRITE_DEADLINE));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_DEADLINE)
                .serve_connection(TokioIo::new(Box::pin(stream)), service);
            tokio::pin!(connection);
            let outcome = tokio::select! {
                outcome = connection.as_mut() => outcome,
                () = close_idle.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = outcome {
                debug!(%peer, %error, "a connection has ended badly");
            }
            counted.connections.dec();
            drop(place);
        });
    }

    /// Nothing that was sent is lost: who is already connected is answered, and told that the connection ends.
    async fn drain(self, listener: TcpListener) {
        self.draining.store(true, Ordering::Release);
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
            warn!(left = self.connections.len(), "connections were still open at the end");
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
