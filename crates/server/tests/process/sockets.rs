//! Clients that leave connections open, or send half of something. They cost little, and nobody else notices.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use harness::within;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::fleet::{ADMIN, Folder, POLLS, READER, poll, small_fleet};
use crate::http::{Connection, request};
use crate::service::{Service, Settings};

/// Descriptors for the connections that a test leaves open.
fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("raised");
    let limit = getrlimit(Resource::Nofile).current;
    assert!(limit.is_none_or(|limit| limit >= 4_096), "this needs 4,096 descriptors, and has {limit:?}");
}

/// How many sockets the process has open.
fn sockets(service: &Service) -> usize {
    let entries = fs::read_dir(format!("/proc/{}/fd", service.pid())).expect("a process");
    let links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

#[test]
fn three_thousand_polls_of_operators_that_never_close_leave_no_connection_behind() {
    raise_descriptor_limit();
    let folder = Folder::new(&small_fleet([]));
    let service = Settings::crud(&folder).start().ready();
    let bearer = format!("Bearer {READER}");
    let headers = [
        ("authorization", &*bearer),
        ("user-agent", "flux-operator/v0.58.0"),
        ("accept", "application/json"),
    ];
    let asked = request("GET", POLLS[0], &headers, None);
    let before = sockets(&service);
    let mut left_open = Vec::new();
    for n in 1..=3_000 {
        let mut connection = Connection::open(service.address).expect("a connection");
        let answer = connection.exchange(&asked).expect("an answer").expect(200);
        assert_eq!(answer.header("connection"), Some("close"));
        left_open.push(connection);
        if n % 250 == 0 {
            let open = sockets(&service);
            assert!(open <= before + 16, "after {n} polls {open} sockets are open; before, it was {before}");
        }
    }
    assert_eq!(left_open.len(), 3_000);
    within(Duration::from_secs(5), "as few sockets as before", || {
        (sockets(&service) <= before).then_some(())
    });
    let metrics = service.get("/metrics").expect(200).text();
    assert!(metrics.contains("flux_resourceset_connections 1\n"), "only that one is open: {metrics}");
}

/// Reads until the other side ends the connection; how long that took, and what came.
fn until_closed(mut stream: TcpStream, patience: Duration) -> (Duration, io::Result<Vec<u8>>) {
    let start = Instant::now();
    stream.set_read_timeout(Some(patience)).expect("set");
    let mut bytes = Vec::new();
    let outcome = stream.read_to_end(&mut bytes).map(|_| bytes);
    (start.elapsed(), outcome)
}

#[test]
fn slow_senders_are_cut_off_and_do_not_hurt_polls() {
    raise_descriptor_limit();
    let folder = Folder::new(&small_fleet([]));
    let service = Settings::crud(&folder).start().ready();
    let right = service.poll(POLLS[0]).expect(200).body;
    let connect = || TcpStream::connect(service.address).expect("a connection");

    let mut half_heads: Vec<TcpStream> = (0..500).map(|_| connect()).collect();
    for stream in &mut half_heads {
        stream.write_all(format!("GET {} HTTP/1.1\r\nhost: flee", POLLS[0]).as_bytes()).expect("sent");
    }
    let begun = Instant::now();
    let mut no_body = connect();
    let head = format!(
        "POST /batch HTTP/1.1\r\nhost: fleet\r\nauthorization: Bearer {ADMIN}\r\n\
         content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{\"operations\":"
    );
    no_body.write_all(head.as_bytes()).expect("sent");

    thread::scope(|scope| {
        let body = scope.spawn(|| until_closed(no_body, Duration::from_mins(1)));
        let heads = scope.spawn(|| {
            for stream in half_heads {
                let (_, outcome) = until_closed(stream, Duration::from_mins(1));
                assert!(
                    outcome.is_ok_and(|bytes| !bytes.starts_with(b"HTTP/1.1 200")),
                    "half a head is answered"
                );
            }
            begun.elapsed()
        });
        // Others are answered as ever, while the slow ones are there.
        let mut slowest = Duration::ZERO;
        while begun.elapsed() < Duration::from_secs(10) {
            let start = Instant::now();
            let answer = service.exchange(&poll(POLLS[0])).expect(200);
            slowest = slowest.max(start.elapsed());
            assert_eq!(answer.body, right);
            thread::sleep(Duration::from_millis(20));
        }
        assert!(sockets(&service) > 500, "the slow ones are still there");
        assert!(slowest < Duration::from_secs(2), "a poll took {slowest:?}");
        let took = heads.join().expect("they are closed");
        assert!((14..=25).contains(&took.as_secs()), "half heads were closed after {took:?}");
        let (took, outcome) = body.join().expect("it is closed");
        let told = String::from_utf8_lossy(&outcome.expect("an answer")).into_owned();
        assert!(told.starts_with("HTTP/1.1 408 "), "{told}");
        assert!((29..=40).contains(&took.as_secs()), "the body was waited for {took:?}");
    });
    assert_eq!(service.get("/revisions").expect(200).json().as_array().map(Vec::len), Some(1));
}

#[test]
fn when_all_places_are_taken_others_wait_for_one_and_are_answered() {
    let folder = Folder::new(&small_fleet([]));
    let few_files = ["sh", "-c", "ulimit -n 160; exec \"$@\"", "sh"].map(Into::into);
    let service = Settings::crud(&folder).under(few_files).start().ready();
    // 160 less those that are kept for other things.
    let idle: Vec<TcpStream> =
        (0..32).map(|_| TcpStream::connect(service.address).expect("the kernel takes it")).collect();
    let begun = Instant::now();
    assert_eq!(service.poll(POLLS[0]).status, 200);
    let waited = begun.elapsed();
    assert!(waited > Duration::from_secs(5) && waited < Duration::from_secs(40), "{waited:?}");
    let metrics = service.get("/metrics").expect(200).text();
    let full = metrics.lines().find_map(|line| line.strip_prefix("flux_resourceset_connections_full_total "));
    assert_ne!(full, Some("0"), "{metrics}");
    drop(idle);
}
