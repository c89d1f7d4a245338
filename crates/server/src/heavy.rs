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
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use ledger::History;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::give_way::{handing_over, lower_priority};
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
/// The priority of the threads, as `nice` counts: the lowest.
const NICENESS: i32 = 19;
/// An answer is handed over in pieces of so many bytes.
const PIECE: usize = 16 * 1024;
/// After so many pieces the other tasks of the thread, polls among them, get their turn.
const PIECES: usize = 4;

pub struct Heavy {
    plans: Lane,
    reads: Lane,
    history: Arc<dyn History>,
    bodies: Arc<Semaphore>,
    bodies_refused: Counter,
}

impl Heavy {
    /// On a machine with so many cores: tasks of one sort take half of them at most.
    pub fn start(history: Arc<dyn History>, cores: usize, metrics: &Metrics) -> std::io::Result<Self> {
        let at_once = at_once(cores);
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

fn at_once(cores: usize) -> usize {
    (cores / 2).clamp(1, AT_ONCE)
}

/// Room for the body of a request.
pub struct Room(#[expect(dead_code, reason = "it is held, not used")] OwnedSemaphorePermit);

/// One of the places that tasks of a sort have.
type Place = OwnedSemaphorePermit;

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
                lower_priority(NICENESS);
                while let Some(task) = queue.next() {
                    if task.is_wanted() {
                        task.run();
                    }
                }
            })?;
        }
        let places = Arc::new(Semaphore::new(at_once + wait));
        Ok(Self { name, at_once, places, queue, refused: metrics.refused(name) })
    }

    /// Has an answer worked out, and compressed if that is wanted. It is not, if nobody waits for it any more when its turn comes.
    async fn answer(&self, gzip: bool, work: impl FnOnce() -> Answered + Send + 'static) -> Answered {
        let (reply, answer) = oneshot::channel();
        // Tasks whose client has gone make room. They may be large: they are freed without the lock.
        let gone = self.queue.take_unwanted();
        handing_over(!gone.is_empty(), || drop(gone));
        {
            let mut tasks = self.queue.lock();
            let Ok(place) = self.places.clone().try_acquire_owned() else {
                self.refused.inc();
                return Err(Refusal::unavailable(format!(
                    "{} requests of this sort ({}) are being worked on and others wait; nothing has changed: send it again",
                    self.at_once, self.name
                )));
            };
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

    fn take_unwanted(&self) -> VecDeque<Box<dyn Task>> {
        let mut tasks = self.lock();
        let (wanted, gone) =
            std::mem::take(&mut tasks.waiting).into_iter().partition(|task| task.is_wanted());
        tasks.waiting = wanted;
        gone
    }

    /// Waits for the next task; none once nobody can ask any more.
    fn next(&self) -> Option<Box<dyn Task>> {
        let is_over = |tasks: &mut Tasks| tasks.waiting.is_empty() && !tasks.closed;
        let tasks = self.changed.wait_while(self.lock(), is_over);
        tasks.unwrap_or_else(PoisonError::into_inner).waiting.pop_front()
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
            // It is in memory as a whole, so there is nothing to wait for.
            let in_pieces = async {
                let response = work()?;
                let response = if gzip { gzip::compressed(response).await } else { response };
                in_pieces(response, place).await
            };
            in_pieces.now_or_never().unwrap_or_else(|| Err(Refusal::internal("a heavy answer is a stream")))
        }));
        let answer = worked.unwrap_or_else(|_| Err(Refusal::internal("a heavy task has panicked")));
        // Whoever asked may have gone.
        let _ = reply.send(answer);
    }
}

/// An answer that is sent in pieces, and holds its place until then: what waits for a slow client is in memory.
async fn in_pieces(response: Response, place: Place) -> Answered {
    let (parts, body) = response.into_parts();
    let whole = body.collect().await.map_err(|_| Refusal::internal("a heavy answer broke off"))?;
    Ok(Response::from_parts(parts, Body::new(InPieces { rest: whole.to_bytes(), pieces: 0, _place: place })))
}

struct InPieces {
    rest: Bytes,
    /// How many have been handed over since the last pause.
    pieces: usize,
    _place: Place,
}

impl http_body::Body for InPieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.pieces == PIECES {
            self.pieces = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.pieces += 1;
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

#[cfg(test)]
mod tests {
    use http_body::Body as _;

    use super::*;

    #[test]
    fn tasks_of_a_sort_take_half_of_the_cores_and_no_more_than_two() {
        assert_eq!([1, 2, 3, 4, 64].map(at_once), [1, 1, 1, 2, 2]);
    }

    #[tokio::test]
    async fn an_answer_is_sent_in_pieces_and_holds_its_place_until_then() {
        let places = Arc::new(Semaphore::new(1));
        let place = places.clone().try_acquire_owned().expect("a place");
        let text: Vec<u8> = (0..100_000).map(|n: u32| n.to_le_bytes()[0]).collect();
        let mut body =
            in_pieces(Response::new(Body::from(text.clone())), place).await.expect("an answer").into_body();
        let mut sent = Vec::new();
        while let Some(frame) = body.frame().await {
            let piece = frame.expect("a piece").into_data().expect("data");
            assert!((1..=PIECE).contains(&piece.len()));
            if sent.len() == (PIECES - 1) * PIECE {
                assert!(body.frame().now_or_never().is_none(), "others get their turn");
            }
            sent.extend_from_slice(&piece);
            assert_eq!(body.size_hint().exact(), Some((text.len() - sent.len()) as u64));
            assert_eq!(places.available_permits(), 0);
        }
        assert!(sent == text && body.is_end_stream());
        drop(body);
        assert_eq!(places.available_permits(), 1);
    }
}
