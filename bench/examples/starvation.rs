//! Whether anybody can starve a poll: the real binary on a generated fleet, polled at a steady rate, by turns alone and beside 64 clients
//! that ask for fleet-wide plans, 32 that ask for a history of large documents, and two that send the largest writes. `make bench-starvation`
//! runs it, and it fails if a poll is refused, if the slowest hundredth of them takes more than three times as long, if anybody is told
//! something else than what is right or a 503 with `Retry-After`, or if memory grows too far.
//!
//! The other clients would be on other machines, and take no CPU from polls. Here they are a process of their own that runs only when
//! nobody else does (`chrt --idle`).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
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
/// How many times as long the slowest hundredth of polls may take beside the others.
const RATIO: f64 = 3.0;

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

/// Where the service listens.
struct Remote {
    address: String,
}

struct Service {
    child: Child,
    remote: Remote,
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
        let service = Self { child, remote: Remote { address: address.expect("an address").to_owned() } };
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        while service.remote.ask("GET", "/ready", READER, None).status != 200 {
            thread::sleep(Duration::from_millis(10));
        }
        service
    }

    /// So many MiB of its memory, now or at most.
    fn memory(&self, line: &str) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let value = status.lines().find_map(|found| found.strip_prefix(line)).unwrap_or_default();
        value.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0) / 1024
    }
}

impl Remote {
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

/// Polls at a steady rate for some time. Every answer must be a 200 that names the cluster.
fn polls(service: &Remote, clusters: usize, lasting: Duration) -> Times {
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

/// The other clients. They work from a line on stdin to the next, and say when they have stopped.
fn others(address: &str, clusters: usize) {
    // Whoever is told something wrong ends it for all.
    std::panic::set_hook(Box::new(|wrong| {
        eprintln!("{wrong}");
        std::process::exit(1);
    }));
    let service = Remote { address: address.to_owned() };
    let (plans, histories, writes) = (Tally::default(), Tally::default(), Tally::default());
    let go = Gate::default();
    thread::scope(|scope| {
        let (service, go, plans, histories, writes) = (&service, &go, &plans, &histories, &writes);
        for client in 0..PLANNERS {
            scope.spawn(move || {
                while let Some(_pass) = go.pass() {
                    let body = label_on_all(&format!("plan-{client}"));
                    let answer = service.ask("POST", "/batch?dry_run=true", ADMIN, Some(&body));
                    plans.note(&answer, |answer| {
                        let plan: Value = serde_json::from_slice(&answer.body).expect("JSON");
                        answer.status == 200 && plan["changed"] == clusters
                    });
                }
            });
        }
        for _ in 0..HISTORIANS {
            scope.spawn(move || {
                while let Some(_pass) = go.pass() {
                    let path = format!("/clusters/{}/history?limit=1000", bench::cluster_id(0));
                    let answer = service.ask("GET", &path, ADMIN, None);
                    histories.note(&answer, |answer| {
                        answer.status == 200 && answer.body.ends_with(b"]") && answer.body.len() < 4 << 20
                    });
                }
            });
        }
        for client in 0..WRITERS {
            scope.spawn(move || {
                for turn in 0.. {
                    let Some(_pass) = go.pass() else { return };
                    let body = label_on_all(&format!("write-{client}-{turn}"));
                    let answer = service.ask("POST", "/batch", ADMIN, Some(&body));
                    writes.note(&answer, |answer| answer.status == 200);
                }
            });
        }
        for (n, _line) in std::io::stdin().lines().enumerate() {
            if n % 2 == 0 {
                go.change(|state| state.open = true);
            } else {
                go.close();
                println!("plans: {plans}; histories: {histories}; writes of {clusters} clusters: {writes}");
            }
        }
        go.change(|state| state.over = true);
    });
}

/// Lets clients through while it is open, and knows how many are on their way.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    open: bool,
    over: bool,
    on_the_way: usize,
}

impl Gate {
    /// Waits until it is open. None once nobody is let through any more.
    fn pass(&self) -> Option<Pass<'_>> {
        let state = self.state.lock().expect("not poisoned");
        let is_shut = |state: &mut GateState| !state.open && !state.over;
        let mut state = self.changed.wait_while(state, is_shut).expect("not poisoned");
        if state.over {
            return None;
        }
        state.on_the_way += 1;
        Some(Pass(self))
    }

    fn change(&self, change: impl FnOnce(&mut GateState)) {
        change(&mut self.state.lock().expect("not poisoned"));
        self.changed.notify_all();
    }

    /// Closes it, and waits until all are back.
    fn close(&self) {
        self.change(|state| state.open = false);
        let state = self.state.lock().expect("not poisoned");
        drop(self.changed.wait_while(state, |state| state.on_the_way > 0).expect("not poisoned"));
    }
}

/// Held by a client that is on its way.
struct Pass<'a>(&'a Gate);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.on_the_way -= 1);
    }
}

/// The process of the other clients.
struct Others {
    child: Child,
    told: BufReader<ChildStdout>,
}

impl Others {
    fn of(address: &str, clusters: usize) -> Self {
        let this = std::env::current_exe().expect("this program");
        let mut child = Command::new("chrt")
            .args(["--idle", "0"])
            .arg(this)
            .args([address, &clusters.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("chrt, of util-linux");
        let told = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, told }
    }

    fn tell(&mut self) {
        self.child.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("they listen");
    }

    fn begin(&mut self) {
        self.tell();
        thread::sleep(Duration::from_secs(1));
    }

    /// Waits until they have stopped; what they say of all rounds up to now.
    fn end(&mut self) -> String {
        self.tell();
        let mut line = String::new();
        self.told.read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "one of the other clients was told something wrong: see above");
        line.trim_end().to_owned()
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The median over the rounds.
fn median(rounds: &[Times], thousandths: usize) -> Duration {
    let mut times: Vec<Duration> = rounds.iter().map(|times| times.at(thousandths)).collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |number| number.parse().expect(variable))
}

fn main() {
    if let [address, clusters] = &std::env::args().skip(1).collect::<Vec<_>>()[..] {
        return others(address, clusters.parse().expect("a number"));
    }
    let clusters = number("BENCH_CLUSTERS", 10_000);
    let rounds = number("BENCH_ROUNDS", 7);
    let lasting = Duration::from_secs(4);
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
        let path = format!("/clusters/{}", bench::cluster_id(0));
        let answer = service.remote.ask("PATCH", &path, ADMIN, Some(&body));
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    }
    let mut others = Others::of(&service.remote.address, clusters);
    polls(&service.remote, clusters, Duration::from_secs(2));
    let before = service.memory("VmRSS:");
    let (mut alone, mut beside, mut said) = (Vec::new(), Vec::new(), String::new());
    for _ in 0..rounds {
        alone.push(polls(&service.remote, clusters, lasting));
        others.begin();
        beside.push(polls(&service.remote, clusters, lasting));
        said = others.end();
    }
    println!("{clusters} clusters, {rounds} rounds of {lasting:?}, medians of the rounds");
    for (name, rounds) in [("alone", &alone), ("beside the others", &beside)] {
        let [p50, p99, p999] = [500, 990, 999].map(|thousandths| median(rounds, thousandths));
        println!("  polls {name}: p50 {p50:.2?}, p99 {p99:.2?}, p99.9 {p999:.2?}");
    }
    println!("  the others: {PLANNERS} planners, {HISTORIANS} historians, {WRITERS} writers; {said}");
    let (now, peak) = (service.memory("VmRSS:"), service.memory("VmHWM:"));
    println!("  memory: {before} MiB before, {peak} at the most, {now} after");
    let ratio = median(&beside, 990).as_secs_f64() / median(&alone, 990).as_secs_f64();
    println!("  p99 is {ratio:.1} times that of polls alone");
    assert!(peak <= before + MEMORY, "memory grew by more than {MEMORY} MiB");
    assert!(ratio <= RATIO, "a poll beside the others takes more than {RATIO} times as long");
}
