//! SIGTERM under load. Whoever has sent a request gets its answer; whoever comes later finds nobody.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::fleet::{Folder, POLLS, admin, label, poll, small_fleet};
use crate::http::Connection;
use crate::service::Settings;

const WRITERS: usize = 3;

/// What became of the requests of one client.
#[derive(Default, Debug)]
struct Told {
    answered: usize,
    /// Requests that were sent, all of it, and got no answer, or half of one.
    lost: Vec<String>,
    /// The same on connections that were opened when the stop had begun, and were reset without a byte: the kernel had accepted
    /// them, and the process closed its socket without ever seeing them.
    unseen: usize,
    /// The last write that was acknowledged, and the last that was sent.
    acknowledged: u64,
    sent: u64,
}

/// Asks until nobody listens any more; the requests come from `next`, which is told which one it is.
fn ask(address: SocketAddr, stopping: &AtomicBool, is_kept: bool, next: impl Fn(u64) -> Vec<u8>) -> Told {
    let mut told = Told::default();
    let mut kept: Option<(Connection, bool)> = None;
    loop {
        let (mut connection, is_early) = match kept.take() {
            Some(kept) => kept,
            None => match Connection::open(address) {
                Ok(connection) => (connection, !stopping.load(Ordering::SeqCst)),
                Err(_) => return told,
            },
        };
        let request = next(told.sent + 1);
        if connection.send(&request).is_err() {
            told.unseen += 1;
            assert!(!is_early, "a connection has ended without a word");
            continue;
        }
        told.sent += 1;
        match connection.answer() {
            Ok(answer) => {
                told.acknowledged = told.sent;
                told.answered += 1;
                let closes = answer.header("connection") == Some("close");
                answer.expect(200);
                if is_kept && !closes {
                    kept = Some((connection, true));
                }
            }
            Err(error) if !is_early && error.kind() == io::ErrorKind::ConnectionReset => told.unseen += 1,
            Err(error) => told.lost.push(format!("request {}: {error}", told.sent)),
        }
    }
}

/// One process under load, stopped after a while.
fn stops_without_losing_anything(settings: &Settings, round: u64, written: &mut [u64; WRITERS]) -> usize {
    let mut service = settings.start().ready();
    let address = service.address;
    let first = *written;
    let stopping = &AtomicBool::new(false);
    let clients: Vec<Told> = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (writer, first) in first.into_iter().enumerate() {
            let next = move |n: u64| label(&format!("w{writer}"), "n", &(first + n).to_string(), "a write");
            threads.push(scope.spawn(move || ask(address, stopping, writer % 2 == 0, next)));
        }
        threads.push(scope.spawn(|| ask(address, stopping, true, |_| admin("GET", POLLS[0], &[], None))));
        for path in &POLLS[1..3] {
            threads.push(scope.spawn(move || ask(address, stopping, false, |_| poll(path))));
        }
        thread::sleep(Duration::from_millis(100 + round * 13 % 50));
        stopping.store(true, Ordering::SeqCst);
        service.signal(Signal::TERM);
        threads.into_iter().map(|thread| thread.join().expect("a client")).collect()
    });
    let status = service.wait();
    assert_eq!(status.code(), Some(0), "{}", service.log());
    let lost: Vec<&String> = clients.iter().flat_map(|told| &told.lost).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(clients.iter().all(|told| told.unseen <= 1), "the socket is closed once: {clients:?}");

    let service = settings.start().ready();
    for (writer, told) in clients.iter().take(WRITERS).enumerate() {
        let namespace = service.get(&format!("/namespaces/w{writer}")).expect(200).json();
        let value: u64 = namespace["labels"]["n"].as_str().unwrap_or("0").parse().expect("a number");
        let acknowledged = first[writer] + told.acknowledged;
        assert!((acknowledged..=first[writer] + told.sent).contains(&value), "{value}, {acknowledged}");
        written[writer] = value;
    }
    service.kill();
    clients.iter().map(|told| told.answered).sum()
}

#[test]
fn whoever_has_sent_a_request_before_a_stop_gets_the_answer() {
    let folder = Folder::new(&small_fleet((0..WRITERS).map(|n| format!("w{n}"))));
    let settings = Settings::crud(&folder);
    let mut written = [0; WRITERS];
    for round in 0..10 {
        let answered = stops_without_losing_anything(&settings, round, &mut written);
        assert!(answered > 20, "only {answered}");
    }
    assert!(written.iter().all(|written| *written > 10), "{written:?}");
}

#[test]
fn a_stop_ends_connections_that_are_idle_and_waits_for_a_request_that_has_begun() {
    let folder = Folder::new(&small_fleet(["w0".to_owned()]));
    let mut service = Settings::crud(&folder).start().ready();
    let mut idle = Connection::open(service.address).expect("a connection");
    idle.exchange(&admin("GET", "/clusters", &[], None)).expect("an answer").expect(200);
    let mut begun = Connection::open(service.address).expect("a connection");
    let request = label("w0", "n", "1", "slow");
    let (head, rest) = request.split_at(request.len() - 5);
    begun.send(head).expect("sent");
    // Not only in the kernel's hands.
    thread::sleep(Duration::from_millis(200));
    service.signal(Signal::TERM);
    let stopped = Instant::now();
    idle.patience(Duration::from_secs(20)).expect("set");
    assert_eq!(idle.answer().expect_err("it ends").kind(), io::ErrorKind::UnexpectedEof);
    assert!(Connection::open(service.address).is_err(), "nobody listens");
    begun.send(rest).expect("sent");
    let answer = begun.answer().expect("an answer").expect(200);
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(service.wait().code(), Some(0));
    assert!(stopped.elapsed() < Duration::from_secs(20), "{:?}", stopped.elapsed());
    let service = Settings::crud(&folder).start().ready();
    assert_eq!(service.get("/namespaces/w0").expect(200).json()["labels"]["n"], "1");
}

#[test]
fn a_stop_while_the_fleet_is_loaded_is_a_stop() {
    let folder = Folder::new(&small_fleet([]));
    for _ in 0..10 {
        let (status, log) = Settings::crud(&folder).start().terminate();
        assert_eq!(status.code(), Some(0), "{log}");
    }
    Settings::crud(&folder).start().ready();
}
