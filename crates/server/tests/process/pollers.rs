//! Clusters that poll all the time, and know what they should be told. A 503 or a connection that fails harms no cluster; any other
//! answer than the right one does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use harness::eventually;

use crate::fleet::{POLLS, poll};
use crate::http::{Answer, Client, request};
use crate::service::Service;

/// The right answers, in the order of [`POLLS`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Right(Vec<Vec<u8>>);

impl Right {
    /// What a process that is ready answers now.
    pub(crate) fn of(service: &Service) -> Self {
        let right = Self::of_any(service);
        for (path, body) in POLLS.iter().zip(&right.0) {
            let empty = br#"{"inputs":[]}"#;
            assert!(body.len() > empty.len(), "{path}: {}", String::from_utf8_lossy(body));
        }
        right
    }

    /// The same of a fleet that may have nothing to run.
    pub(crate) fn of_any(service: &Service) -> Self {
        Self(POLLS.iter().map(|path| service.poll(path).expect(200).body).collect())
    }
}

/// What the pollers have seen.
#[derive(Default)]
struct Seen {
    right: AtomicU64,
    unavailable: AtomicU64,
    failed: AtomicU64,
}

/// How often they saw what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    pub(crate) right: u64,
    pub(crate) unavailable: u64,
    pub(crate) failed: u64,
}

pub(crate) struct Pollers {
    stop: Arc<AtomicBool>,
    seen: Arc<Seen>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Pollers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Pollers {
    /// So many that come with a new connection for each poll, and one more that keeps its own.
    pub(crate) fn start(address: SocketAddr, number: usize, pause: Duration, right: &Right) -> Self {
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Seen::default()));
        let threads = (0..=number).map(|n| {
            let (stop, seen, right) = (stop.clone(), seen.clone(), right.clone());
            let is_kept = n == number;
            thread::spawn(move || {
                let mut client = Client::new(address);
                for turn in n.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let which = turn % POLLS.len();
                    let asked = if is_kept { kept(POLLS[which]) } else { poll(POLLS[which]) };
                    match client.exchange(&asked) {
                        Ok(answer) => note(&seen, POLLS[which], &answer, &right.0[which]),
                        Err(_) => {
                            seen.failed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    thread::sleep(pause);
                }
            })
        });
        Self { threads: threads.collect(), stop, seen }
    }

    pub(crate) fn tally(&self) -> Tally {
        Tally {
            right: self.seen.right.load(Ordering::Relaxed),
            unavailable: self.seen.unavailable.load(Ordering::Relaxed),
            failed: self.seen.failed.load(Ordering::Relaxed),
        }
    }

    /// Whether all of them are still content.
    #[track_caller]
    pub(crate) fn check(&self) {
        assert!(self.threads.iter().all(|thread| !thread.is_finished()), "a poller was told something wrong");
    }

    /// Waits until somebody was told what is right, from now on.
    #[track_caller]
    pub(crate) fn see_right(&self) {
        let before = self.tally().right;
        eventually("a right answer", || {
            self.check();
            (self.tally().right > before).then_some(())
        });
    }

    /// The end; fails if any of them was ever told something wrong.
    pub(crate) fn stop(mut self) -> Tally {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a poller was told something wrong");
        }
        self.tally()
    }
}

fn kept(path: &str) -> Vec<u8> {
    let bearer = format!("Bearer {}", crate::fleet::READER);
    request("GET", path, &[("authorization", &bearer)], None)
}

fn note(seen: &Seen, path: &str, answer: &Answer, right: &[u8]) {
    match answer.status {
        200 => {
            assert_eq!(answer.text(), String::from_utf8_lossy(right), "{path}");
            seen.right.fetch_add(1, Ordering::Relaxed);
        }
        503 => {
            seen.unavailable.fetch_add(1, Ordering::Relaxed);
        }
        other => panic!("{path} is answered {other}: {}", answer.text()),
    }
}
