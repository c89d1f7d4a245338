//! Whether anybody can starve a poll: the real binary on a generated fleet, polled at a steady rate, by turns alone and beside 64 clients
//! that ask for fleet-wide plans, 32 that ask for a history of large documents, and two that send the largest writes. `make bench-starvation`
//! runs it, and it fails if a poll is refused, if the slowest hundredth of them takes more than three times as long, if anybody is told
//! something else than what is right or a 503 with `Retry-After`, if the others were not at work, or if memory grows too far.
//!
//! All these clients would be on other machines, and would neither take CPU from the service nor wait for one beside it. So pollers are a
//! process that runs before all others (`chrt --fifo`, for root), and the others one that runs after all others (`chrt --idle`).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bench::{ADMIN, Answer, Client, Process};
use serde_json::{Value, json};

/// Pollers, and how often each polls: two thousand clusters that poll three kinds every thirty seconds.
const POLLERS: usize = 4;
const EVERY: Duration = Duration::from_millis(20);
/// How long a round takes.
const ROUND: Duration = Duration::from_secs(4);
const PLANNERS: usize = 64;
const HISTORIANS: usize = 32;
const WRITERS: usize = 2;
/// How long a client that was told to come again waits. It is impatient: it was told five seconds.
const AGAIN: Duration = Duration::from_millis(250);
/// What the tasks of others may add to the memory of the service, in MiB.
const MEMORY: f64 = 1_024.0;
/// How many times as long the slowest hundredth of polls may take beside the others.
const RATIO: f64 = 3.0;

/// Polls for a round for each line on stdin, and says how long the polls took: in microseconds, sorted.
fn pollers(address: &str, clusters: usize) {
    for _line in std::io::stdin().lines() {
        let times = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for poller in 0..POLLERS {
                let times = &times;
                scope.spawn(move || {
                    let start = Instant::now();
                    let mut mine = Vec::new();
                    let mut due = start;
                    while due < start + ROUND {
                        thread::sleep(due.saturating_duration_since(Instant::now()));
                        let dns = bench::cluster_dns(((mine.len() * POLLERS + poller) * 7_919) % clusters);
                        let path = format!("/api/v2/flux/clusters/{dns}/platform-components");
                        let answer = Client::open(address).poll(&path, true, false);
                        // From when it was due: a poll that is held up holds up those after it.
                        mine.push(due.elapsed());
                        assert_eq!(answer.status, 200, "no poll is refused");
                        let body: Value = serde_json::from_slice(&answer.body).expect("JSON");
                        let inputs = body["inputs"].as_array().expect("inputs");
                        assert!(
                            inputs.len() == bench::COMPONENTS && inputs[0]["cluster"]["dns"] == dns.as_str(),
                            "{path}"
                        );
                        due += EVERY;
                    }
                    times.lock().expect("not poisoned").extend(mine);
                });
            }
        });
        let mut times = times.into_inner().expect("not poisoned");
        times.sort_unstable();
        println!("{}", json!(times.iter().map(Duration::as_micros).collect::<Vec<_>>()));
    }
}

/// What became of the requests of some clients.
#[derive(Default)]
struct Tally {
    right: AtomicUsize,
    refused: AtomicUsize,
}

impl Tally {
    fn note(&self, answer: &Answer, is_right: impl FnOnce(&Answer) -> bool) {
        let text = || String::from_utf8_lossy(&answer.body[..answer.body.len().min(500)]).into_owned();
        if answer.status == 503 {
            assert!(answer.retry_after, "a 503 says when to come again: {}", text());
            self.refused.fetch_add(1, Ordering::Relaxed);
            thread::sleep(AGAIN);
        } else {
            assert!(is_right(answer), "{}: {}", answer.status, text());
            self.right.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn numbers(&self) -> [usize; 2] {
        [self.right.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed)]
    }
}

fn label_on_all(value: &str) -> String {
    let patch =
        json!({"op": "patch", "kind": "clusters", "selector": "id", "body": {"labels": {"wave": value}}});
    json!({"operations": [patch]}).to_string()
}

/// The other clients. They work from a line on stdin to the next, and say what became of their requests when they have stopped.
fn others(address: &str, clusters: usize) {
    let (plans, histories, writes) = (Tally::default(), Tally::default(), Tally::default());
    let ask =
        |method: &str, path: &str, body: &str| Client::open(address).send(method, path, ADMIN, "", body);
    let gate = Gate::default();
    thread::scope(|scope| {
        let (ask, gate, plans, histories, writes) = (&ask, &gate, &plans, &histories, &writes);
        for client in 0..PLANNERS {
            scope.spawn(move || {
                while let Some(_pass) = gate.pass() {
                    let body = label_on_all(&format!("plan-{client}"));
                    plans.note(&ask("POST", "/batch?dry_run=true", &body), |answer| {
                        let plan: Value = serde_json::from_slice(&answer.body).expect("JSON");
                        answer.status == 200 && plan["changed"] == clusters
                    });
                }
            });
        }
        for _ in 0..HISTORIANS {
            scope.spawn(move || {
                while let Some(_pass) = gate.pass() {
                    let path = format!("/clusters/{}/history?limit=1000", bench::cluster_id(0));
                    histories.note(&ask("GET", &path, ""), |answer| {
                        answer.status == 200 && answer.body.ends_with(b"]") && answer.body.len() < 4 << 20
                    });
                }
            });
        }
        for client in 0..WRITERS {
            scope.spawn(move || {
                for turn in 0.. {
                    let Some(_pass) = gate.pass() else { return };
                    let body = label_on_all(&format!("write-{client}-{turn}"));
                    writes.note(&ask("POST", "/batch", &body), |answer| answer.status == 200);
                }
            });
        }
        for (n, _line) in std::io::stdin().lines().enumerate() {
            if n % 2 == 0 {
                gate.change(|state| state.open = true);
            } else {
                gate.close();
                let told = [("plans", plans), ("histories", histories), ("writes", writes)];
                println!("{}", json!(told.map(|(name, tally)| (name, tally.numbers()))));
            }
        }
        gate.change(|state| state.over = true);
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

/// A process of clients: this program, in another role.
struct Clients {
    child: Child,
    told: BufReader<ChildStdout>,
}

impl Clients {
    fn start(priority: &[&str], role: &str, address: &str, clusters: usize) -> Self {
        let this = std::env::current_exe().expect("this program");
        let mut child = Command::new("chrt")
            .args(priority)
            .arg(this)
            .args([role, address, &clusters.to_string()])
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

    fn hear<T: serde::de::DeserializeOwned>(&mut self) -> T {
        let mut line = String::new();
        self.told.read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "a client was told something wrong: see above");
        serde_json::from_str(&line).expect("JSON")
    }

    /// How long the polls of a round took, in microseconds, sorted.
    fn round(&mut self) -> Vec<u64> {
        self.tell();
        self.hear()
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this process may run clients before all others.
fn may_go_first() -> bool {
    Command::new("chrt")
        .args(["--fifo", "1", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|it| it.success())
}

/// The median over the rounds of what so many thousandths of the polls took at most, in milliseconds.
fn median(rounds: &[Vec<u64>], thousandths: usize) -> f64 {
    let of_round = |times: &Vec<u64>| times[(times.len() * thousandths / 1_000).min(times.len() - 1)];
    let mut all: Vec<u64> = rounds.iter().map(of_round).collect();
    all.sort_unstable();
    Duration::from_micros(all[all.len() / 2]).as_secs_f64() * 1_000.0
}

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |number| number.parse().expect(variable))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, address, clusters] = &arguments[..] {
        // A client that is told something wrong ends all.
        std::panic::set_hook(Box::new(|wrong| {
            eprintln!("{wrong}");
            std::process::exit(1);
        }));
        let clusters = clusters.parse().expect("a number");
        return if role == "pollers" { pollers(address, clusters) } else { others(address, clusters) };
    }
    let (clusters, rounds) = (number("BENCH_CLUSTERS", 10_000), number("BENCH_ROUNDS", 7));
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("store.db");
    bench::store(&database, clusters);
    let (service, _) = Process::service(&bench::binary(), &database, None);
    // A history of large documents: 300 KB each, before and after.
    let component = bench::component_id(0);
    for n in 0..40 {
        let values: Value = (0..5)
            .map(|k| (format!("key{k}"), json!(format!("{n}{}", "v".repeat(60_000)))))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let body = json!({"patches": {&*component: values}}).to_string();
        let path = format!("/clusters/{}", bench::cluster_id(0));
        let answer = Client::open(&service.address).send("PATCH", &path, ADMIN, "", &body);
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    }
    let first: &[&str] = if may_go_first() { &["--fifo", "1"] } else { &["--other", "0"] };
    let mut pollers = Clients::start(first, "pollers", &service.address, clusters);
    let mut others = Clients::start(&["--idle", "0"], "others", &service.address, clusters);
    pollers.round();
    let before = service.mib("VmRSS:");
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    let mut told: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for _ in 0..rounds {
        alone.push(pollers.round());
        others.tell();
        thread::sleep(Duration::from_secs(1));
        beside.push(pollers.round());
        others.tell();
        told = others.hear::<Vec<(String, [usize; 2])>>().into_iter().collect();
    }
    println!("{clusters} clusters, medians of {rounds} rounds of {ROUND:?}, pollers by `chrt {}`", first[0]);
    for (name, rounds) in [("alone", &alone), ("beside the others", &beside)] {
        let [p50, p99, slowest] = [500, 990, 1_000].map(|thousandths| median(rounds, thousandths));
        println!("  polls {name}: p50 {p50:.2} ms, p99 {p99:.2} ms, slowest {slowest:.2} ms");
    }
    println!("  the others: {PLANNERS} planners, {HISTORIANS} historians, {WRITERS} writers of all clusters");
    for (name, [right, refused]) in &told {
        println!("  {name}: {right} answered, {refused} told to come again");
    }
    let peak = service.mib("VmHWM:");
    println!("  memory: {before:.0} MiB before, {peak:.0} at the most, {:.0} after", service.mib("VmRSS:"));
    let ratio = median(&beside, 990) / median(&alone, 990);
    println!("  p99 is {ratio:.1} times that of polls alone");
    assert!(peak <= before + MEMORY, "memory grew by more than {MEMORY} MiB");
    assert!(told.values().all(|[right, _]| *right >= rounds), "the others were hardly at work");
    assert!(told["plans"][1] > 0, "more plans were asked for than can wait");
    assert!(ratio <= RATIO, "a poll beside the others takes more than {RATIO} times as long");
}
