//! Heavy tasks: plans, lists, and questions about the past. Few of them run at a time, on threads of their own that give way to those which
//! answer polls; some wait; whoever comes then is told to come again. So a hundred fleet-wide plans cost a poll next to nothing, and memory
//! is bounded by how many there can be, not by how many are asked for.
//!
//! The past is reachable through here only, and what a route wants worked out elsewhere than on the thread that answers it, it has worked
//! out here. It must not know what the tasks are about.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use api::MAX_BODY;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::FutureExt;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use ledger::History;
use prometheus_client::metrics::counter::Counter;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::warn;

use crate::gzip;
use crate::metrics::Metrics;
use crate::problem::{Answered, Refusal};

/// How many tasks of a sort run at a time, at most.
const AT_ONCE: usize = 2;
/// How many plans wait.
const PLANS_WAIT: usize = 8;
/// How many reads wait: they are done in a fraction of the time of a plan.
const READS_WAIT: usize = 30;
/// The most bytes of the bodies of requests that are being read, wait, or are decided: four of the largest.
const BODIES: usize = 4 * MAX_BODY;
/// A body of more bytes than this takes longer to be read than a poll to be answered.
pub const LARGE: usize = 64 * 1024;
/// How far the threads stand back behind those that answer polls, as `nice` counts: as far as they can.
const NICENESS: i32 = 19;
/// An answer is handed over in pieces of so many bytes: polls get their turn in between.
const PIECE: usize = 16 * 1024;

pub struct Heavy {
    plans: Lane,
    reads: Lane,
    history: Arc<dyn History>,
    bodies: Arc<Semaphore>,
    bodies_refused: Counter,
}

impl Heavy {
    /// On a machine with so many cores. Half of them are enough for tasks of a sort: the others answer polls.
    pub fn start(history: Arc<dyn History>, cores: usize, metrics: &Metrics) -> std::io::Result<Self> {
        let at_once = (cores / 2).clamp(1, AT_ONCE);
        Ok(Self {
            plans: Lane::start("plan", at_once, PLANS_WAIT, metrics)?,
            reads: Lane::start("read", at_once, READS_WAIT, metrics)?,
            history,
            bodies: Arc::new(Semaphore::new(BODIES)),
            bodies_refused: metrics.refused("body"),
        })
    }

    /// Works out the plan of a change.
    pub async fn plan(&self, gzip: bool, work: impl FnOnce() -> Answered + Send + 'static) -> Answered {
        self.plans.answer(gzip, work).await
    }

    /// Looks through much of the fleet, or asks about the past.
    pub async fn read(
        &self,
        gzip: bool,
        work: impl FnOnce(&dyn History) -> Answered + Send + 'static,
    ) -> Answered {
        let history = self.history.clone();
        self.reads.answer(gzip, move || work(&*history)).await
    }

    /// Room for the body of a request that has turned out to be large; it is taken until what this returns is dropped.
    pub fn room_for(&self, size: usize) -> Answered<Room> {
        let room = u32::try_from(size.min(MAX_BODY)).ok();
        let room = room.and_then(|size| self.bodies.clone().try_acquire_many_owned(size).ok());
        room.map(Room).ok_or_else(|| {
            self.bodies_refused.inc();
            Refusal::unavailable(
                "the service is busy with other large requests; nothing has changed: send it again",
            )
        })
    }
}

/// Does what takes a while with so many bytes of a request. Before that, the other tasks of this thread, polls among them, are handed over
/// to another one.
pub fn with_bytes<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let can_hand_over =
        Handle::try_current().is_ok_and(|on| on.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > LARGE && can_hand_over { tokio::task::block_in_place(work) } else { work() }
}

/// Has this thread stand back behind those that answer polls, as far as `nice` counts.
pub fn stand_back(niceness: i32) {
    // On Linux this is about the thread that calls it.
    if let Err(error) = rustix::process::setpriority_process(None, niceness) {
        warn!(%error, "the priority of a thread could not be lowered");
    }
}

/// Room for the body of a request.
pub struct Room(#[expect(dead_code, reason = "it is held, not used")] OwnedSemaphorePermit);

/// One of the places that tasks of a sort have. It is held until the answer is sent: what waits for a slow client is in memory.
#[derive(Clone)]
pub struct Place(#[expect(dead_code, reason = "it is held, not used")] Arc<OwnedSemaphorePermit>);

/// Tasks of one sort, and the threads that do them.
struct Lane {
    name: &'static str,
    at_once: usize,
    places: Arc<Semaphore>,
    queue: Arc<Queue>,
    refused: Counter,
}

impl Lane {
    fn start(name: &'static str, at_once: usize, wait: usize, metrics: &Metrics) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        for n in 1..=at_once {
            let queue = queue.clone();
            std::thread::Builder::new().name(format!("{name}-{n}")).spawn(move || {
                stand_back(NICENESS);
                while let Some(task) = queue.next() {
                    task.run();
                }
            })?;
        }
        let places = Arc::new(Semaphore::new(at_once + wait));
        Ok(Self { name, at_once, places, queue, refused: metrics.refused(name) })
    }

    /// Has an answer worked out, and compressed if that is wanted. It is not, if nobody waits for it any more when its turn comes.
    async fn answer(&self, gzip: bool, work: impl FnOnce() -> Answered + Send + 'static) -> Answered {
        let (reply, answer) = oneshot::channel();
        {
            let mut tasks = self.queue.lock();
            // Who has gone makes room.
            tasks.waiting.retain(|task| task.is_wanted());
            let Ok(place) = self.places.clone().try_acquire_owned() else {
                self.refused.inc();
                return Err(Refusal::unavailable(format!(
                    "{} requests of this sort ({}) are being worked on and others wait; nothing has changed: send it again",
                    self.at_once, self.name
                )));
            };
            let place = Place(Arc::new(place));
            tasks.waiting.push_back(Box::new(Question { work, gzip, reply, place }));
        }
        self.queue.changed.notify_one();
        answer.await.unwrap_or_else(|_| Err(Refusal::internal("a thread for heavy tasks has ended")))
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_all();
    }
}

#[derive(Default)]
struct Queue {
    tasks: Mutex<Tasks>,
    changed: Condvar,
}

#[derive(Default)]
struct Tasks {
    waiting: VecDeque<Box<dyn Task>>,
    closed: bool,
}

impl Queue {
    /// Tasks run without the lock, so nobody panics who has it.
    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next task that somebody waits for; none once nobody can ask any more.
    fn next(&self) -> Option<Box<dyn Task>> {
        let mut tasks = self.lock();
        loop {
            match tasks.waiting.pop_front() {
                Some(task) if task.is_wanted() => return Some(task),
                Some(_) => {}
                None if tasks.closed => return None,
                None => tasks = self.changed.wait(tasks).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

trait Task: Send {
    /// Whether somebody still waits for the answer.
    fn is_wanted(&self) -> bool;
    fn run(self: Box<Self>);
}

struct Question<W> {
    work: W,
    gzip: bool,
    reply: oneshot::Sender<Answered>,
    place: Place,
}

impl<W: FnOnce() -> Answered + Send> Task for Question<W> {
    fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run(self: Box<Self>) {
        let Self { work, gzip, reply, place } = *self;
        let worked = catch_unwind(AssertUnwindSafe(|| {
            let mut response = work()?;
            if gzip {
                // It is in memory as a whole, so there is nothing to wait for.
                let compressed = gzip::compressed(response).now_or_never();
                response = compressed.ok_or_else(|| Refusal::internal("a heavy answer is a stream"))?;
            }
            response.extensions_mut().insert(place);
            Ok(response)
        }));
        let answer = worked.unwrap_or_else(|_| Err(Refusal::internal("a heavy task has panicked")));
        // Whoever asked may have gone.
        let _ = reply.send(answer);
    }
}

/// An answer that holds its place until it is sent.
pub async fn holding(response: Response, place: Place) -> Response {
    let (parts, body) = response.into_parts();
    match body.collect().await {
        Ok(whole) => {
            Response::from_parts(parts, Body::new(Holding { rest: whole.to_bytes(), _place: place }))
        }
        Err(_) => Refusal::internal("an answer's body broke off").into_response(),
    }
}

struct Holding {
    rest: Bytes,
    _place: Place,
}

impl http_body::Body for Holding {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        Poll::Ready((length > 0).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
