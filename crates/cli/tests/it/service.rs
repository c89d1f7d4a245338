//! A process of the service, with a store in memory that ends with it.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::fleet::{ADMIN, ALICE, READER, fleet};
use crate::http::{Message, request};

/// How long anything may take. The machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The program. Cargo builds for tests only what is of their own package, so it is asked for the rest, once: beside the program that is
/// tested, and together with that package, so that both are built from the same dependencies. `make unit`, which builds everything, says that
/// this is not needed.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_frs")).parent().expect("a folder");
        if std::env::var_os("PROGRAMS_ARE_BUILT").is_none() {
            build(folder);
        }
        folder.join("flux-resourceset")
    })
}

fn build(folder: &Path) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "-p", "server", "-p", "cli", "--bin", "flux-resourceset"])
        .args(["--profile", profile, "--target-dir"])
        .arg(folder.parent().expect("a target folder"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo");
    assert!(built.success(), "the service is not built");
}

/// A process that answers. It is killed when it is dropped.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
    // What it is filled from, and its tokens.
    _folder: TempDir,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Service {
    /// One in crud mode, with the fleet of [`fleet`].
    pub(crate) fn start() -> Self {
        Self::with(&fleet(), &[])
    }

    /// One with another fleet, or other settings.
    pub(crate) fn with(fleet: &Value, settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let write =
            |name: &str, text: String| std::fs::write(folder.path().join(name), text).expect("written");
        write("seed.json", fleet.to_string());
        write("tokens", format!("admin={ADMIN}\nalice={ALICE}\n"));
        let mut child = Command::new(program())
            .env_clear()
            .envs([("API_MODE", "crud"), ("STORE_BACKEND", "memory"), ("LOG_FORMAT", "json")])
            .envs([("AUTH_TOKEN", READER), ("LISTEN_ADDR", "127.0.0.1:0")])
            .current_dir(folder.path())
            .env("SEED_FILE", "seed.json")
            .env("CRUD_AUTH_TOKEN_FILE", "tokens")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        let log = child.stderr.take().expect("a pipe");
        let mut service = Self { child, address: SocketAddr::from(([0; 4], 0)), _folder: folder };
        service.address = listening(log);
        eventually("a service that is ready", || {
            (service.ask("GET", "/ready", None).word(1) == "200").then_some(())
        });
        service
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Asks it as the admin, without the command line.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Message {
        request(method, path, body).exchange(self.address).expect("an answer")
    }

    /// What it answers.
    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.ask("GET", path, None).body).expect("JSON")
    }

    /// The newest revision.
    pub(crate) fn head(&self) -> u64 {
        self.json("/ready")["revision"].as_u64().expect("a revision")
    }
}

/// Reads the log to its end; the address that it names comes first.
fn listening(log: impl Read + Send + 'static) -> SocketAddr {
    let (sender, told) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| line.into());
            let address = line["address"].as_str().and_then(|address| address.parse().ok());
            let _ = sender.send(address.filter(|_| line["message"] == "listening").ok_or(line));
        }
    });
    let mut before = Vec::new();
    loop {
        match told.recv_timeout(PATIENCE) {
            Ok(Ok(address)) => return address,
            Ok(Err(line)) => before.push(line.to_string()),
            Err(why) => panic!("it does not listen ({why}): {}", before.join("\n")),
        }
    }
}

/// What something gives sooner or later.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(Instant::now() < end, "there is not {what} within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(5));
    }
}
