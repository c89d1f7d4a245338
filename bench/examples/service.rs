//! The service as its clients meet it: the real binary, on a generated fleet in SQLite. `make bench-service` runs it.
//!
//! The machine may be busy, so what counts is the service's own CPU time per request, in several rounds.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ledger::{Access, Sqlite};

const READER: &str = "bench-reader";
const ADMIN: &str = "bench-admin";
const ROUNDS: usize = 3;

/// A store that holds a generated fleet.
fn store(path: &Path, clusters: usize) {
    let mut ledger =
        Sqlite::open(path, Access::Write).expect("a store").append.expect("it is opened for writing");
    let mut at = fleet::Position::default();
    bench::fleet_by_commits(clusters, |commit| {
        let next = commit.header.at;
        ledger.append(at, &[commit]).expect("appended");
        at = next;
    });
}

struct Service {
    child: Child,
    address: String,
}

impl Service {
    /// Starts the binary and waits until it is ready; says how long that took.
    fn start(binary: &Path, database: &Path) -> (Self, Duration) {
        let started = Instant::now();
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
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        while Client::open(&service.address).get("/ready", READER).0 != 200 {
            std::thread::sleep(Duration::from_millis(10));
        }
        (service, started.elapsed())
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap_or_default()
    }

    /// CPU time of the process, user and system, in microseconds. The kernel counts in hundredths of a second.
    fn cpu_micros(&self) -> u64 {
        let stat = self.proc("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |n: usize| fields.get(n).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        (ticks(11) + ticks(12)) * 10_000
    }

    fn resident_mib(&self) -> usize {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0) / 1024
    }

    /// A counter or gauge from `/metrics`.
    fn metric(&self, name: &str) -> u64 {
        let (_, text) = Client::open(&self.address).get("/metrics", READER);
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or(0)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that is kept.
struct Client(BufReader<TcpStream>);

impl Client {
    fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        Self(BufReader::new(stream))
    }

    fn get(&mut self, path: &str, token: &str) -> (u16, String) {
        self.send("GET", path, token, "curl/8", "")
    }

    fn send(&mut self, method: &str, path: &str, token: &str, agent: &str, body: &str) -> (u16, String) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nUser-Agent: {agent}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(request.as_bytes()).expect("sent");
        let (mut status, mut length, mut line) = (0, 0, String::new());
        loop {
            line.clear();
            self.0.read_line(&mut line).expect("an answer");
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().expect("a status");
            } else if let Some(rest) = line.strip_prefix("content-length: ") {
                length = rest.parse().expect("a length");
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("a body");
        (status, String::from_utf8_lossy(&body).into_owned())
    }
}

fn poll_path(n: usize, clusters: usize) -> String {
    format!("/api/v2/flux/clusters/{}/platform-components", bench::cluster_dns((n * 7919) % clusters))
}

/// CPU microseconds of the service per request, over many.
fn per_request(service: &Service, requests: usize, run: impl FnOnce()) -> f64 {
    let before = service.cpu_micros();
    run();
    let spent = service.cpu_micros() - before;
    f64::from(u32::try_from(spent).unwrap_or(u32::MAX)) / f64::from(u32::try_from(requests).unwrap_or(1))
}

/// So many clients at once: one alone would mostly measure how a thread is woken up.
const POLLERS: usize = 8;

/// Lets some clients run side by side, each with its share of the requests.
fn at_once(requests: usize, client: impl Fn(std::ops::Range<usize>) + Sync) {
    let share = requests / POLLERS;
    std::thread::scope(|scope| {
        for n in 0..POLLERS {
            let client = &client;
            scope.spawn(move || client(n * share..(n + 1) * share));
        }
    });
}

fn polls(service: &Service, clusters: usize) {
    let requests = 20_000;
    let (_, body) = Client::open(&service.address).get(&poll_path(1, clusters), READER);
    for round in 1..=ROUNDS {
        let kept = per_request(service, requests, || {
            at_once(requests, |numbers| {
                let mut client = Client::open(&service.address);
                for n in numbers {
                    assert_eq!(client.get(&poll_path(n, clusters), READER).0, 200);
                }
            });
        });
        let new = per_request(service, requests, || {
            at_once(requests, |numbers| {
                for n in numbers {
                    let (path, operator) = (poll_path(n, clusters), "flux-operator/v0.58.0");
                    let (status, _) = Client::open(&service.address).send("GET", &path, READER, operator, "");
                    assert_eq!(status, 200);
                }
            });
        });
        println!(
            "  round {round}: a poll of {} bytes: {kept:.1} µs CPU on a kept connection, {new:.1} µs on a new one each",
            body.len()
        );
    }
}

fn writes(service: &Service, clusters: usize, clients: usize) {
    let (commits, groups) = (
        service.metric("flux_resourceset_commits_total"),
        service.metric("flux_resourceset_commit_groups_total"),
    );
    let (cpu, started) = (service.cpu_micros(), Instant::now());
    let deadline = started + Duration::from_secs(4);
    let written: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|client| {
                scope.spawn(move || {
                    let mut connection = Client::open(&service.address);
                    let mut count = 0;
                    while Instant::now() < deadline {
                        let path =
                            format!("/clusters/{}", bench::cluster_id((client * 131 + count * 7) % clusters));
                        let body = format!("{{\"labels\":{{\"bench\":\"c{client}-{count}\"}}}}");
                        assert_eq!(connection.send("PATCH", &path, ADMIN, "bench", &body).0, 200);
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("it wrote")).sum()
    });
    let seconds = started.elapsed().as_secs_f64();
    let commits = service.metric("flux_resourceset_commits_total") - commits;
    let groups = service.metric("flux_resourceset_commit_groups_total") - groups;
    let float = |n: u64| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let written = float(written as u64);
    println!(
        "  {clients:>2} writers: {:>6.0} writes/s, {:.1} commits per group (one fsync each), {:.0} µs CPU per write",
        written / seconds,
        float(commits) / float(groups.max(1)),
        float(service.cpu_micros() - cpu) / written,
    );
}

fn main() {
    let sizes: Vec<usize> = match std::env::var("BENCH_CLUSTERS") {
        Ok(one) => vec![one.parse().expect("BENCH_CLUSTERS is a number")],
        Err(_) => vec![10_000, 100_000],
    };
    let binary =
        std::env::var("BENCH_BINARY").unwrap_or_else(|_| "target/release/flux-resourceset".to_owned());
    let folder = tempfile::tempdir().expect("a folder");
    for clusters in sizes {
        let database = folder.path().join(format!("{clusters}.db"));
        store(&database, clusters);
        println!("{clusters} clusters:");
        let (service, took) = Service::start(Path::new(&binary), &database);
        println!("  ready after {:.2} s, {} MiB resident", took.as_secs_f64(), service.resident_mib());
        polls(&service, clusters);
        for _ in 0..ROUNDS {
            writes(&service, clusters, 1);
            writes(&service, clusters, 64);
        }
        println!("  {} MiB resident at the end", service.resident_mib());
    }
}
