//! Whether anybody can starve a poll: the real binary on a generated fleet, polled at a steady rate, alone and then beside 64 clients that
//! ask for fleet-wide plans, 32 that ask for a history of large documents, and two that send the largest writes. `make bench-starvation` runs
//! it, and it fails if a poll is refused, if anybody is told something else than what is right or a 503 with `Retry-After`, or if memory
//! grows too far. The figures depend on the machine: the clients run on the same one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ledger::{Access, Sqlite};
use serde_json::{Value, json};

const READER: &str = "bench-reader";
const ADMIN: &str = "bench-admin";
/// Pollers, and how long each waits between two polls: two thousand clusters that poll three kinds every thirty seconds.
const POLLERS: usize = 4;
const PAUSE: Duration = Duration::from_millis(20);
const PLANNERS: usize = 64;
const HISTORIANS: usize = 32;
const WRITERS: usize = 2;
/// How long a client that was told to come again waits. It is impatient: it was told five seconds.
const AGAIN: Duration = Duration::from_millis(250);
/// What the tasks of others may add to the memory of the service, in MiB.
const MEMORY: usize = 1_024;

fn store(path: &Path, clusters: usize) {
    let opened = Sqlite::open(path, Access::Write).expect("a store");
    let mut append = opened.append.expect("it is opened for writing");
    let mut at = fleet::Position::default();
    bench::fleet_by_commits(clusters, |commit| {
        let next = commit.header.at;
        append.append(at, &[commit]).expect("appended");
        at = next;
    });
}

struct Service {
    child: Child,
    address: String,
}

impl Service {
    fn start(binary: &Path, database: &Path) -> Self {
        let mut child = Command::new(binary)
            .envs([("API_MODE", "crud"), ("AUTH_TOKEN", READER), ("CRUD_AUTH_TOKEN", ADMIN)])
            .envs([("LISTEN_ADDR", "127.0.0.1:0"), ("LOG_FORMAT", "json"), ("RUST_LOG", "server::run=info")])
            .env("DATABASE_URL", format!("sqlite://{}", database.display()))
            .stderr(Stdio::piped())
            .spawn()
            .expect("the service starts");
        let mut log = BufReader::new(child.stderr.take().expect("a log"));
        let mut line = String::new();
        log.read_line(&mut line).expect("a line");
        let address = line.split("\"address\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let service = Self { child, address: address.expect("an address").to_owned() };
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        while service.ask("GET", "/ready", READER, None).status != 200 {
            thread::sleep(Duration::from_millis(10));
        }
        service
    }

    /// One request on a connection of its own.
    fn ask(&self, method: &str, path: &str, token: &str, body: Option<&str>) -> Answer {
        let body = body.unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_mins(2))).expect("a socket");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = Vec::new();
        stream.read_to_end(&mut text).expect("an answer");
        let end = text.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&text[..end]).to_ascii_lowercase();
        Answer {
            status: head.get(9..12).and_then(|status| status.parse().ok()).expect("a status"),
            retry_after: head.contains("\r\nretry-after: "),
            body: text.split_off(end + 4),
        }
    }

    /// So many KiB of its memory, now or at most.
    fn memory(&self, line: &str) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let value = status.lines().find_map(|found| found.strip_prefix(line)).unwrap_or_default();
        value.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0) / 1024
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Answer {
    status: u16,
    retry_after: bool,
    body: Vec<u8>,
}

/// How long each of many took.
struct Times(Vec<Duration>);

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    fn at(&self, thousandths: usize) -> Duration {
        self.0.get(self.0.len() * thousandths / 1_000).or(self.0.last()).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (p50, p99, p999, max) = (self.at(500), self.at(990), self.at(999), self.at(1_000));
        write!(f, "{} polls: p50 {p50:.2?}, p99 {p99:.2?}, p99.9 {p999:.2?}, slowest {max:.2?}", self.0.len())
    }
}

/// Polls at a steady rate for some time. Every answer must be a 200 that names the cluster.
fn polls(service: &Service, clusters: usize, lasting: Duration) -> Times {
    let times = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for poller in 0..POLLERS {
            let times = &times;
            scope.spawn(move || {
                let end = Instant::now() + lasting;
                let mut mine = Vec::new();
                for n in (poller..).step_by(POLLERS) {
                    if Instant::now() > end {
                        break;
                    }
                    let dns = bench::cluster_dns((n * 7_919) % clusters);
                    let path = format!("/api/v2/flux/clusters/{dns}/platform-components");
                    let begun = Instant::now();
                    let answer = service.ask("GET", &path, READER, None);
                    mine.push(begun.elapsed());
                    assert_eq!(answer.status, 200, "no poll is refused");
                    let body: Value = serde_json::from_slice(&answer.body).expect("JSON");
                    let inputs = body["inputs"].as_array().expect("inputs");
                    assert!(
                        inputs.len() == bench::COMPONENTS && inputs[0]["cluster"]["dns"] == dns.as_str(),
                        "{path}"
                    );
                    thread::sleep(PAUSE);
                }
                times.lock().expect("not poisoned").extend(mine);
            });
        }
    });
    Times::of(times.into_inner().expect("not poisoned"))
}

/// Makes this thread give way: the clients that get in the way of polls are on another machine as a rule, and would take no CPU from them.
fn elsewhere() {
    let _ = rustix::process::setpriority_process(None, 19);
}

/// What became of the requests of others.
#[derive(Default)]
struct Tally {
    right: AtomicUsize,
    refused: AtomicUsize,
}

impl Tally {
    fn note(&self, answer: &Answer, is_right: impl FnOnce(&Answer) -> bool) {
        if answer.status == 503 {
            assert!(
                answer.retry_after,
                "a 503 says when to come again: {}",
                String::from_utf8_lossy(&answer.body)
            );
            self.refused.fetch_add(1, Ordering::Relaxed);
            thread::sleep(AGAIN);
        } else {
            assert!(
                is_right(answer),
                "{}: {}",
                answer.status,
                String::from_utf8_lossy(&answer.body[..answer.body.len().min(500)])
            );
            self.right.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (right, refused) = (self.right.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed));
        write!(f, "{right} answered, {refused} told to come again")
    }
}

fn label_on_all(value: &str) -> String {
    let patch =
        json!({"op": "patch", "kind": "clusters", "selector": "id", "body": {"labels": {"wave": value}}});
    json!({"operations": [patch]}).to_string()
}

fn main() {
    let clusters: usize = match std::env::var("BENCH_CLUSTERS") {
        Ok(number) => number.parse().expect("BENCH_CLUSTERS is a number"),
        Err(_) => 10_000,
    };
    let lasting = match std::env::var("BENCH_SECONDS") {
        Ok(number) => Duration::from_secs(number.parse().expect("BENCH_SECONDS is a number")),
        Err(_) => Duration::from_secs(20),
    };
    let binary =
        std::env::var("BENCH_BINARY").unwrap_or_else(|_| "target/release/flux-resourceset".to_owned());
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("store.db");
    store(&database, clusters);
    let service = Service::start(Path::new(&binary), &database);
    // A history of large documents: 300 KB each, before and after.
    let component = bench::component_id(0);
    for n in 0..40 {
        let values: Value = (0..5)
            .map(|k| (format!("key{k}"), json!(format!("{n}{}", "v".repeat(60_000)))))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let body = json!({"patches": {&*component: values}}).to_string();
        let answer = service.ask("PATCH", &format!("/clusters/{}", bench::cluster_id(0)), ADMIN, Some(&body));
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    }
    println!("{clusters} clusters, {} MiB resident", service.memory("VmRSS:"));
    polls(&service, clusters, Duration::from_secs(2));
    let alone = polls(&service, clusters, lasting);
    println!("  alone: {alone}");
    let before = service.memory("VmRSS:");

    let stop = AtomicBool::new(false);
    let (plans, histories, writes) = (Tally::default(), Tally::default(), Tally::default());
    let loaded = thread::scope(|scope| {
        let (service, stop) = (&service, &stop);
        for client in 0..PLANNERS {
            let tally = &plans;
            scope.spawn(move || {
                elsewhere();
                while !stop.load(Ordering::Relaxed) {
                    let body = label_on_all(&format!("plan-{client}"));
                    let answer = service.ask("POST", "/batch?dry_run=true", ADMIN, Some(&body));
                    tally.note(&answer, |answer| {
                        let plan: Value = serde_json::from_slice(&answer.body).expect("JSON");
                        answer.status == 200 && plan["changed"] == clusters
                    });
                }
            });
        }
        for _ in 0..HISTORIANS {
            let tally = &histories;
            scope.spawn(move || {
                elsewhere();
                while !stop.load(Ordering::Relaxed) {
                    let path = format!("/clusters/{}/history?limit=1000", bench::cluster_id(0));
                    let answer = service.ask("GET", &path, ADMIN, None);
                    tally.note(&answer, |answer| {
                        answer.status == 200 && answer.body.ends_with(b"]") && answer.body.len() < 4 << 20
                    });
                }
            });
        }
        for client in 0..WRITERS {
            let tally = &writes;
            scope.spawn(move || {
                elsewhere();
                for turn in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let body = label_on_all(&format!("write-{client}-{turn}"));
                    let answer = service.ask("POST", "/batch", ADMIN, Some(&body));
                    tally.note(&answer, |answer| answer.status == 200);
                }
            });
        }
        thread::sleep(Duration::from_secs(2));
        let loaded = polls(service, clusters, lasting);
        stop.store(true, Ordering::Relaxed);
        loaded
    });
    println!("  beside {PLANNERS} planners, {HISTORIANS} historians and {WRITERS} writers: {loaded}");
    println!("  plans: {plans}; histories: {histories}; writes of {clusters} clusters: {writes}");
    let (now, peak) = (service.memory("VmRSS:"), service.memory("VmHWM:"));
    println!("  memory: {before} MiB before, {peak} at the most, {now} after");
    let ratio = loaded.at(990).as_secs_f64() / alone.at(990).as_secs_f64();
    println!("  p99 is {ratio:.1} times that of polls alone");
    assert!(peak <= before + MEMORY, "memory grew by more than {MEMORY} MiB");
}
