//! Sockets. HTTP/1.1 only: a poll is one request on a connection of its own, and gains nothing from anything newer.
//!
//! A slow client, or one that leaves a connection open, costs a place and a little memory, for a limited time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, header};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tracing::{debug, warn};

use crate::clock;
use crate::connections::{Answering, Connections, Order};
use crate::metrics::Metrics;
use crate::requests;
use crate::routes::Routes;

/// The most that a request's head may have: what a slow client can make us hold. More is 431.
const MAX_HEAD: usize = 16 * 1024;
/// A body of at most so many bytes is handed over as a whole.
const AT_ONCE: u64 = 16 * 1024;
/// How often it is looked for an idle connection, while none was to be had for a new one.
const LOOK_FOR_A_PLACE: Duration = Duration::from_millis(20);
/// How long new connections are still taken when the process is told to stop, unless there is a lull before.
const LAST_CONNECTIONS: Duration = Duration::from_millis(250);
/// How long nobody has to come for that.
const LULL: Duration = Duration::from_millis(10);
/// How long a response of unknown length may go on when the process is told to stop: a stream has no end of its own to wait for.
const LAST_FRAMES: Duration = Duration::from_millis(500);
/// How long connections may go on by themselves after that; then idle ones are closed.
const LAST_REQUESTS: Duration = Duration::from_millis(1_500);
/// How long requests that have begun may take when the process is told to stop: longer than any one deadline of a request. One that uses up
/// two of them, for its body and for the writer, is cut off.
const LAST_ANSWERS: Duration = Duration::from_secs(35);
/// Descriptors that are not for connections: the store, the log, the runtime.
const RESERVED_DESCRIPTORS: u64 = 128;
/// The most connections, however many descriptors there are: each with a head that does not end costs 25 KB. A poll is a matter of
/// milliseconds, and who is idle makes room.
const MAX_CONNECTIONS: u64 = 10_000;

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
struct Shared {
    routes: Routes,
    metrics: Metrics,
    /// The last answers are being given: each says that its connection ends.
    draining: AtomicBool,
    /// Responses of unknown length are to end.
    end_streams: CancellationToken,
}

impl Shared {
    async fn answer(&self, request: http::Request<Incoming>, answering: Answering) -> http::Response<Body> {
        let (mut response, _) = requests::answer(&self.routes, &self.metrics, request).await;
        if self.draining.load(Ordering::Acquire) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        match response.body().size_hint().exact() {
            // It is handed over at once, and whether the client takes it, the connection knows.
            Some(size) if size <= AT_ONCE => return response,
            Some(size) => {
                let answering = answering.sending(size);
                return response.map(|body| Body::new(Large { body, _answering: answering }));
            }
            None => {}
        }
        let stop = Box::pin(self.end_streams.clone().cancelled_owned());
        let answering = answering.streaming();
        response.map(|stream| Body::new(UntilStop { stream, stop, _answering: answering }))
    }
}

/// A body that is sent in more than one piece. Until then its connection is not idle.
struct Large {
    body: Body,
    _answering: Answering,
}

impl http_body::Body for Large {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body of unknown length that ends, between two frames, when the process stops. No route has one yet; the feed will.
struct UntilStop {
    stream: Body,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    _answering: Answering,
}

impl http_body::Body for UntilStop {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // The stop first: a stream that always has another frame must end, too.
        if self.stop.as_mut().poll(context).is_ready() {
            // Not as if it were complete: a list that is cut off must not look like a shorter one.
            return Poll::Ready(Some(Err(axum::Error::new("the process is stopping"))));
        }
        Pin::new(&mut self.stream).poll_frame(context)
    }
}

/// Answers requests with a router until it is told to stop.
pub struct Server {
    shared: Arc<Shared>,
    open: Arc<Connections>,
    connections: TaskTracker,
}

impl Server {
    /// One with so many places for connections.
    pub fn new(routes: impl Into<Routes>, metrics: Metrics, places: usize) -> Self {
        let open = Connections::new(places, metrics.connections.clone());
        Self {
            shared: Arc::new(Shared {
                routes: routes.into(),
                metrics,
                draining: AtomicBool::new(false),
                end_streams: CancellationToken::new(),
            }),
            open,
            connections: TaskTracker::new(),
        }
    }

    /// Serves until it is told to stop, and then until what has begun is answered.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let _deadlines = AbortOnDropHandle::new(tokio::spawn(self.open.clone().keep_deadlines()));
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => match self.place(&stop).await {
                    Some(place) => self.connect(stream, peer, place),
                    None => break,
                },
                Err(error) => {
                    // Mostly too many open files. It passes; a busy loop would not help it.
                    warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        self.drain(listener).await;
    }

    /// A place for a connection that was accepted. If there is none, idle ones make room.
    async fn place(&self, stop: &CancellationToken) -> Option<OwnedSemaphorePermit> {
        if let Some(place) = self.open.free_place() {
            return Some(place);
        }
        self.shared.metrics.connections_full.inc();
        loop {
            let closed = self.open.close_oldest();
            self.shared.metrics.connections_closed.inc_by(closed as u64);
            tokio::select! {
                () = stop.cancelled() => return self.open.free_place(),
                place = self.open.place() => return place,
                () = tokio::time::sleep(LOOK_FOR_A_PLACE) => {}
            }
        }
    }

    fn connect(&self, stream: TcpStream, peer: SocketAddr, place: OwnedSemaphorePermit) {
        let shared = self.shared.clone();
        let open = Arc::new(self.open.open(place));
        self.connections.spawn(async move {
            let _ = stream.set_nodelay(true);
            let stream = TokioIo::new(open.watch(stream));
            let service = service_fn(|request| {
                let answering = open.begin();
                let answer = shared.answer(request, answering);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let connection = http1::Builder::new()
                // Connections keep the deadlines, without a timer for each request.
                .header_read_timeout(None)
                .auto_date_header(clock::has_http_date(SystemTime::now()))
                .max_buf_size(MAX_HEAD)
                .serve_connection(stream, service);
            let mut connection = pin!(connection);
            loop {
                let order = tokio::select! {
                    // In this order: a request that has come is begun before the connection is told to close.
                    biased;
                    outcome = connection.as_mut() => {
                        if let Err(error) = outcome {
                            debug!(%peer, %error, "a connection has ended badly");
                        }
                        return;
                    }
                    order = open.order() => order,
                };
                // A stream was told to end before. One that has not has a client that does not read it.
                if order == Order::Close || open.streams() || open.is_idle() {
                    debug!(%peer, "closing a connection: idle or unread for too long, its place is needed, or the process is stopping");
                    return;
                }
                connection.as_mut().graceful_shutdown();
            }
        });
    }

    /// Requests in flight are answered before shutdown, and told that their connection ends. Streams are ended.
    async fn drain(self, listener: TcpListener) {
        self.shared.draining.store(true, Ordering::Release);
        // Connections that the kernel has accepted for us may have sent their request. New ones may never cease to come.
        let end = Instant::now() + LAST_CONNECTIONS;
        while let Some(place) = self.open.free_place()
            && let wait = end.saturating_duration_since(Instant::now()).min(LULL)
            && let Ok(Ok((stream, peer))) = tokio::time::timeout(wait, listener.accept()).await
        {
            self.connect(stream, peer, place);
        }
        self.close(listener);
        self.connections.close();
        if tokio::time::timeout(LAST_FRAMES, self.connections.wait()).await.is_ok() {
            return;
        }
        self.shared.end_streams.cancel();
        if tokio::time::timeout(LAST_REQUESTS, self.connections.wait()).await.is_ok() {
            return;
        }
        self.open.tell_all(Order::Finish);
        if tokio::time::timeout(LAST_ANSWERS, self.connections.wait()).await.is_err() {
            warn!(left = self.connections.len(), "closing connections that were still open at the end");
            self.open.tell_all(Order::Close);
            self.connections.wait().await;
        }
    }

    /// Closes right after a look that found nobody waiting: the kernel resets whoever it has accepted by then.
    fn close(&self, listener: TcpListener) {
        let Ok(listener) = listener.into_std() else { return };
        while let Some(place) = self.open.free_place()
            && let Ok((stream, peer)) = listener.accept()
            && stream.set_nonblocking(true).is_ok()
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            self.connect(stream, peer, place);
        }
    }
}
