//! The service as its clients meet it, beside servers that do nothing but send bytes: the real binary on a generated fleet in SQLite,
//! bare hyper, and nginx if it is installed. `make bench` runs it, and it writes what it measured into the book.
//!
//! The machine may be busy, so what counts is CPU time per request, and the servers take turns: round by round, each way to poll, each
//! server. What is reported is the median of the rounds.

mod answers;
mod bare;
mod counters;
mod nginx;
mod polls;
mod report;
mod writes;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use bench::{Process, Start, store};

use polls::{Cost, Way, poll};
use writes::{Written, write};

/// What was measured at one size of the fleet.
pub(crate) struct Measured {
    pub(crate) clusters: usize,
    /// The mean size of an answer, plain and compressed.
    pub(crate) answer: (usize, usize),
    /// By server, in the order in which they take turns: the rounds of each way to poll.
    pub(crate) polls: Vec<(Server, [Vec<Cost>; 3])>,
    pub(crate) starts: Vec<Start>,
    /// One client, and 64.
    pub(crate) writes: Vec<[Written; 2]>,
    pub(crate) seed: Option<Seeded>,
}

/// How a seed was loaded.
pub(crate) struct Seeded {
    pub(crate) start: Start,
    pub(crate) seed_mib: f64,
    pub(crate) database_mib: f64,
    pub(crate) wal_mib: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Server {
    Hyper,
    Ours,
    /// The binary of `BENCH_BEFORE`, to be compared with.
    Before,
    Nginx,
}

impl Server {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Hyper => "bare hyper",
            Self::Ours => "the service",
            Self::Before => "before",
            Self::Nginx => "nginx",
        }
    }
}

/// What is to be measured.
struct Plan {
    sizes: Vec<usize>,
    rounds: usize,
    binary: PathBuf,
    before: Option<PathBuf>,
    /// Where the figures are written; nowhere if only a part is measured.
    book: Option<PathBuf>,
}

impl Plan {
    fn from_env() -> Self {
        let number = |text: &str| text.trim().parse().expect("BENCH_CLUSTERS and BENCH_ROUNDS are numbers");
        let sizes: Option<Vec<usize>> =
            std::env::var("BENCH_CLUSTERS").ok().map(|sizes| sizes.split(',').map(number).collect());
        Self {
            book: (sizes.is_none() && std::env::var_os("BENCH_BEFORE").is_none())
                .then(|| PathBuf::from("docs/src")),
            sizes: sizes.unwrap_or_else(|| vec![10, 10_000, 100_000]),
            rounds: std::env::var("BENCH_ROUNDS").map_or(5, |rounds| number(&rounds)),
            before: std::env::var_os("BENCH_BEFORE").map(PathBuf::from),
            binary: bench::binary(),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {}
        ["bare-hyper", answers] => return bare::serve(Path::new(answers)),
        // A generated fleet to try something by hand on.
        ["store", path, clusters] => return store(Path::new(path), clusters.parse().expect("a number")),
        _ => panic!("arguments: none, or `store <path> <clusters>`"),
    }
    let plan = Plan::from_env();
    let (mut measured, mut folders) = (Vec::new(), Vec::new());
    if !counters::available() {
        println!("no instructions: this machine has no hardware counters, or no `perf`");
    }
    if nginx::version().is_none() {
        println!("no nginx: it is not installed");
    }
    for clusters in plan.sizes.iter().copied() {
        let folder = tempfile::tempdir().expect("a folder");
        measured.push(measure(&plan, clusters, folder.path()));
        // It takes minutes to remove that many files.
        folders.push(folder);
        println!("{}", report::text(measured.last().expect("one")));
    }
    if let Some(book) = &plan.book {
        report::write(book, &measured);
    }
}

fn measure(plan: &Plan, clusters: usize, folder: &Path) -> Measured {
    let database = folder.join("store.db");
    store(&database, clusters);
    let mut starts = Vec::new();
    for _ in 1..plan.rounds.min(3) {
        starts.push(Process::service(&plan.binary, &database, None).1);
    }
    let (service, start) = Process::service(&plan.binary, &database, None);
    starts.push(start);
    let file = folder.join("answers");
    let answer = answers::record(&service.address, clusters, &file);
    let this = std::env::current_exe().expect("this program");
    let hyper = Process::listening(Command::new(this).arg("bare-hyper").arg(&file));
    let mut servers = vec![(Server::Hyper, hyper), (Server::Ours, service)];
    if let Some(before) = &plan.before {
        let database = folder.join("before.db");
        store(&database, clusters);
        servers.push((Server::Before, Process::service(before, &database, None).0));
    }
    if nginx::version().is_some() {
        servers.push((Server::Nginx, nginx::serve(&file, folder)));
    }
    let mut polls: Vec<(Server, [Vec<Cost>; 3])> =
        servers.iter().map(|(server, _)| (*server, Default::default())).collect();
    // The first round warms up caches and is not counted.
    for round in 0..=plan.rounds {
        for (n, way) in Way::ALL.into_iter().enumerate() {
            for ((_, server), (_, costs)) in servers.iter().zip(&mut polls) {
                let cost = poll(server, clusters, way);
                if round > 0 {
                    costs[n].push(cost);
                }
            }
        }
    }
    let writes =
        (0..plan.rounds.min(3)).map(|_| [1, 64].map(|clients| write(&servers[1].1, clusters, clients)));
    let writes = writes.collect();
    drop(servers);
    Measured { clusters, answer, polls, starts, writes, seed: Some(seed(plan, clusters, folder)) }
}

/// Loads the same fleet from a seed file.
fn seed(plan: &Plan, clusters: usize, folder: &Path) -> Seeded {
    let file = folder.join("seed.json");
    let mut out = std::io::BufWriter::new(std::fs::File::create(&file).expect("a file"));
    bench::write_seed(&mut out, clusters).and_then(|()| out.flush()).expect("written");
    drop(out);
    let database = folder.join("seeded.db");
    let (service, start) = Process::service(&plan.binary, &database, Some(&file));
    let mib = |path: &Path| {
        let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        f64::from(u32::try_from(bytes >> 10).unwrap_or(u32::MAX)) / 1_024.0
    };
    let wal = folder.join("seeded.db-wal");
    let seeded = Seeded { start, seed_mib: mib(&file), database_mib: mib(&database), wal_mib: mib(&wal) };
    drop(service);
    seeded
}
