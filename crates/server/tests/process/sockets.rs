//! Clients that leave connections open, or send half of something. They cost little, and nobody else notices.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use harness::within;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::fleet::{ADMIN, Folder, POLLS, READER, admin, poll, small_fleet};
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
        assert_eq!(answer.header("content-length"), Some(&*answer.body.len().to_string()));
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

#[test]
fn every_answer_to_a_poll_says_how_long_it_is() {
    let folder = Folder::new(&small_fleet([]));
    let service = Settings::crud(&folder).start().ready();
    let bearer = format!("Bearer {READER}");
    let (known, token) = (("authorization", &*bearer), ("authorization", "Bearer nobody-knows-it"));
    for (path, headers, status) in [
        (POLLS[0], &[known][..], 200),
        (POLLS[0], &[known, ("accept-encoding", "gzip")], 200),
        ("/api/v2/flux/clusters/nobody.example.com/namespaces", &[known], 404),
        (POLLS[0], &[token], 401),
    ] {
        let answer = service.exchange(&request("GET", path, headers, None)).expect(status);
        assert_eq!(answer.header("content-length"), Some(&*answer.body.len().to_string()), "{path}");
        assert!(!answer.body.is_empty() && answer.header("transfer-encoding").is_none());
    }
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

/// Many large answers are asked for on one connection, more than the kernel keeps for a client that does not read them.
#[test]
fn a_client_that_does_not_read_is_cut_off_and_one_that_reads_late_gets_everything() {
    const ASKED: usize = 40;
    let folder = Folder::new(&small_fleet([]));
    let service = Settings::crud(&folder).start().ready();
    let values: BTreeMap<String, String> = (0..5).map(|n| (format!("key{n}"), "v".repeat(60_000))).collect();
    let patch = json!({"patches": {"podinfo": values}});
    service.exchange(&admin("PATCH", "/clusters/one", &[], Some(&patch))).expect(200);
    let right = service.poll(POLLS[0]).expect(200).body;
    assert!(right.len() > 500_000, "as patches and as values");
    let ask = || {
        let mut connection = Connection::open(service.address).expect("a connection");
        connection.send(&admin("GET", POLLS[0], &[], None).repeat(ASKED)).expect("sent");
        connection
    };
    let begun = Instant::now();
    let (_never, mut late) = (ask(), ask());
    // By then a connection without an answer that waits would be closed.
    thread::sleep(Duration::from_secs(20));
    for _ in 0..ASKED {
        assert!(late.answer().expect("an answer").expect(200).body == right, "all of it");
    }
    assert_eq!(late.exchange(&admin("GET", POLLS[1], &[], None)).expect("it goes on").status, 200);
    drop(late);
    within(Duration::from_secs(25), "the other one is closed", || {
        (counted(&service, "flux_resourceset_connections ") == 1).then_some(())
    });
    let took = begun.elapsed();
    assert!((29..=40).contains(&took.as_secs()), "it was closed after {took:?}");
}

/// A counter of the service.
fn counted(service: &Service, name: &str) -> u64 {
    let metrics = service.get("/metrics").expect(200).text();
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {name}: {metrics}"))
}

/// They waited 14 seconds, until an idle connection had reached its deadline.
#[test]
fn when_all_places_are_taken_the_connection_that_is_idle_longest_makes_room() {
    let folder = Folder::new(&small_fleet([]));
    let few_files = ["sh", "-c", "ulimit -n 160; exec \"$@\"", "sh"].map(Into::into);
    let service = Settings::crud(&folder).under(few_files).start().ready();
    // 160 less those that are kept for other things: there are 32 places.
    let mut idle: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(service.address).expect("the kernel takes it")).collect();
    for _ in 0..50 {
        let begun = Instant::now();
        assert_eq!(service.poll(POLLS[0]).status, 200);
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(5), "a poll waited for {waited:?}");
    }
    assert!(counted(&service, "flux_resourceset_connections_full_total") > 0);
    assert!(counted(&service, "flux_resourceset_idle_connections_closed_total") >= 200 - 32);
    // The first to come was the first to go.
    let (took, outcome) = until_closed(idle.remove(0), Duration::from_secs(5));
    assert!(took < Duration::from_secs(5) && outcome.is_ok_and(|bytes| bytes.is_empty()), "{took:?}");
}

/// Metrics need no token, so anybody could do this.
#[test]
fn when_all_places_are_taken_by_clients_that_do_not_read_they_make_room() {
    let folder = Folder::new(&small_fleet([]));
    let few_files = ["sh", "-c", "ulimit -n 144; exec \"$@\"", "sh"].map(Into::into);
    let service = Settings::crud(&folder).under(few_files).start().ready();
    // 144 less those that are kept for other things: there are 16 places.
    let asked = request("GET", "/metrics", &[], None).repeat(5_000);
    let _unread: Vec<Connection> = (0..16)
        .map(|_| {
            let mut connection = Connection::open(service.address).expect("a connection");
            connection.send_without_waiting(&asked);
            connection
        })
        .collect();
    thread::sleep(Duration::from_secs(2));
    let begun = Instant::now();
    assert_eq!(service.poll(POLLS[0]).status, 200);
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(5), "a poll waited for {waited:?}");
}

#[test]
fn a_request_whose_head_is_over_16_kib_is_refused_and_one_below_is_answered() {
    let folder = Folder::new(&small_fleet([]));
    let service = Settings::crud(&folder).start().ready();
    let with = |padding: usize| {
        let (bearer, padding) = (format!("Bearer {READER}"), "x".repeat(padding));
        let headers = [("authorization", &*bearer), ("x-padding", &*padding), ("connection", "close")];
        service.try_exchange(&request("GET", POLLS[0], &headers, None))
    };
    assert_eq!(with(15 * 1024).expect("an answer").status, 200);
    assert_eq!(with(17 * 1024).expect("an answer").status, 431);
}

/// How many MiB of memory the process has.
fn resident_mib(service: &Service) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", service.pid())).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is there");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") / 1024
}

/// 15,000 of them, with 60 KB each, took 950 MB.
#[test]
fn heads_that_do_not_end_cost_little_memory() {
    const HEADS: usize = 1_500;
    raise_descriptor_limit();
    let folder = Folder::new(&small_fleet([]));
    let service = Settings::crud(&folder).start().ready();
    let before = resident_mib(&service);
    let head = format!("GET {} HTTP/1.1\r\nhost: fleet\r\nx-padding: {}", POLLS[0], "x".repeat(60_000));
    let open: Vec<TcpStream> = (0..HEADS)
        .map(|_| {
            let mut stream = TcpStream::connect(service.address).expect("a connection");
            // It may be refused before all of it is sent.
            let _ = stream.write_all(head.as_bytes());
            stream
        })
        .collect();
    let short = &head.as_bytes()[..16_000];
    let unfinished: Vec<TcpStream> = (0..HEADS)
        .map(|_| {
            let mut stream = TcpStream::connect(service.address).expect("a connection");
            stream.write_all(short).expect("sent");
            stream
        })
        .collect();
    assert_eq!(service.poll(POLLS[0]).status, 200);
    thread::sleep(Duration::from_millis(500));
    assert!(sockets(&service) >= HEADS, "the unfinished ones are still there");
    let grown = resident_mib(&service).saturating_sub(before);
    // 300 MB for the 10,000 connections that there are at most.
    assert!(grown <= HEADS * 30_000 / (1024 * 1024), "{HEADS} heads that do not end take {grown} MiB");
    drop((open, unfinished));
}
