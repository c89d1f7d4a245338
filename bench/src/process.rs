//! A server as a process, and what it has used: CPU time and memory, as the kernel counts them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::Client;

/// The token that polls.
pub const READER: &str = "bench-reader";
/// The token that writes.
pub const ADMIN: &str = "bench-admin";

/// A server. It is killed when it is dropped.
pub struct Process {
    child: Child,
    pub address: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a start went.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub seconds: f64,
    pub resident_mib: f64,
    pub peak_mib: f64,
}

impl Process {
    /// Starts a server that says where it listens in the first line that has an address.
    pub fn listening(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("a server");
        let mut log = BufReader::new(child.stderr.take().expect("a log"));
        let (mut line, mut told) = (String::new(), String::new());
        let address = loop {
            line.clear();
            let read = log.read_line(&mut line).expect("a line");
            assert!(read > 0, "it has ended: {told}");
            told.push_str(&line);
            if let Some((_, rest)) = line.split_once("\"address\":\"") {
                break rest.split('"').next().unwrap_or_default().to_owned();
            }
        };
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { child, address }
    }

    /// A server whose address was chosen before, once it answers.
    pub fn at(command: &mut Command, address: &str) -> Self {
        let child = command.spawn().expect("a server");
        let end = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(address).is_err() {
            assert!(Instant::now() < end, "nothing listens on {address}");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { child, address: address.to_owned() }
    }

    /// Starts the service on a store, from a seed if there is one, and waits until it is ready.
    pub fn service(binary: &Path, database: &Path, seed: Option<&Path>) -> (Self, Start) {
        let started = Instant::now();
        let mut command = Command::new(binary);
        command
            .env_clear()
            .envs([("API_MODE", "crud"), ("AUTH_TOKEN", READER), ("CRUD_AUTH_TOKEN", ADMIN)])
            .envs([("LISTEN_ADDR", "127.0.0.1:0"), ("LOG_FORMAT", "json"), ("RUST_LOG", "server::run=info")])
            .env("DATABASE_URL", format!("sqlite://{}", database.display()));
        if let Some(seed) = seed {
            command.env("SEED_FILE", seed);
        }
        let service = Self::listening(&mut command);
        while Client::open(&service.address).get("/ready", READER).status != 200 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let seconds = started.elapsed().as_secs_f64();
        let start = Start { seconds, resident_mib: service.mib("VmRSS:"), peak_mib: service.mib("VmHWM:") };
        (service, start)
    }

    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU time of the process, user and system, in microseconds.
    pub fn cpu_micros(&self) -> f64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id())).into_iter().flatten().flatten();
        let nanos = |schedstat: String| schedstat.split(' ').next().and_then(|n| n.parse::<f64>().ok());
        let of_task = |path: std::path::PathBuf| std::fs::read_to_string(path).ok().and_then(nanos);
        tasks.filter_map(|task| of_task(task.path().join("schedstat"))).sum::<f64>() / 1_000.0
    }

    /// A line of `/proc/<pid>/status`, in mebibytes.
    pub fn mib(&self, name: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1_024.0
    }
}
