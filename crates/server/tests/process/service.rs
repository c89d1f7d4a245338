//! A process of the service: started, asked, killed.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::fleet::{ADMIN, Folder, READER, admin, poll};
use crate::http::{Answer, Connection};

/// How long a process may take to start or to end. The machine may be busy.
const PATIENCE: Duration = Duration::from_mins(1);

/// How a process is started.
#[derive(Clone)]
pub(crate) struct Settings {
    launcher: Vec<OsString>,
    variables: Vec<(String, OsString)>,
}

impl Settings {
    /// A process without any setting.
    pub(crate) fn none() -> Self {
        Self { launcher: Vec::new(), variables: Vec::new() }
    }

    fn usual(mode: &str, folder: &Folder) -> Self {
        let url = format!("sqlite://{}", folder.database().display());
        Self::none()
            .with("API_MODE", mode)
            .with("DATABASE_URL", url)
            .with("AUTH_TOKEN", READER)
            .with("LISTEN_ADDR", "127.0.0.1:0")
            .with("LOG_FORMAT", "json")
    }

    pub(crate) fn crud(folder: &Folder) -> Self {
        Self::usual("crud", folder).with("CRUD_AUTH_TOKEN", ADMIN).with("SEED_FILE", folder.seed())
    }

    pub(crate) fn read_only(folder: &Folder) -> Self {
        Self::usual("read-only", folder)
    }

    /// With a variable, in place of what it was.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self
    }

    /// Started by another program, which becomes it.
    pub(crate) fn under(mut self, launcher: impl IntoIterator<Item = OsString>) -> Self {
        self.launcher = launcher.into_iter().collect();
        self
    }

    fn command(&self) -> Command {
        let program = OsString::from(env!("CARGO_BIN_EXE_flux-resourceset"));
        let mut words = self.launcher.iter().chain([&program]);
        let mut command = Command::new(words.next().unwrap_or(&program));
        command.args(words).env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts it, with a log that is not ours to read.
    pub(crate) fn spawn(&self) -> Child {
        self.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
    }

    /// Starts it, and returns when it listens.
    pub(crate) fn start(&self) -> Service {
        let mut child = self.command().spawn().expect("a process");
        let (listening, told) = mpsc::channel();
        let log = Log::default();
        let readers = vec![
            log.read(child.stdout.take().expect("a pipe"), None),
            log.read(child.stderr.take().expect("a pipe"), Some(listening)),
        ];
        let mut service = Service { child, address: SocketAddr::from(([0; 4], 0)), log, readers };
        match told.recv_timeout(PATIENCE) {
            Ok(address) => service.address = address,
            Err(why) => panic!("it does not listen ({why}): {}", service.log.text()),
        }
        service
    }

    /// Starts one that is to end by itself; its exit code and everything that it printed.
    pub(crate) fn run(&self) -> (Option<i32>, String) {
        let mut child = self.command().spawn().expect("a process");
        let log = Log::default();
        let readers = vec![
            log.read(child.stdout.take().expect("a pipe"), None),
            log.read(child.stderr.take().expect("a pipe"), None),
        ];
        let mut service = Service { child, address: SocketAddr::from(([0; 4], 0)), log, readers };
        let status = service.wait();
        (status.code(), service.log.text())
    }
}

/// Everything that a process has printed.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn read(
        &self,
        pipe: impl Read + Send + 'static,
        listening: Option<mpsc::Sender<SocketAddr>>,
    ) -> JoinHandle<()> {
        let log = self.clone();
        thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = String::from_utf8_lossy(&line);
                if let (Some(listening), Some(address)) = (&listening, address(&text, "listening")) {
                    let _ = listening.send(address);
                }
                log.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
                line.clear();
            }
        })
    }
}

/// The address in a line of the log that has this message.
fn address(line: &str, message: &str) -> Option<SocketAddr> {
    let line: Value = serde_json::from_str(line).ok()?;
    if line["message"] != message {
        return None;
    }
    line["address"].as_str()?.parse().ok()
}

/// A process that listens. It is killed when it is dropped.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
    log: Log,
    readers: Vec<JoinHandle<()>>,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Service {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    pub(crate) fn log(&self) -> String {
        self.log.text()
    }

    /// The address in a line of its log.
    pub(crate) fn told_address(&self, message: &str) -> SocketAddr {
        eventually("an address in the log", || self.log().lines().find_map(|line| address(line, message)))
    }

    /// One request on a connection of its own.
    pub(crate) fn try_exchange(&self, request: &[u8]) -> std::io::Result<Answer> {
        Connection::open(self.address)?.exchange(request)
    }

    pub(crate) fn exchange(&self, request: &[u8]) -> Answer {
        self.try_exchange(request).unwrap_or_else(|error| panic!("{error}: {}", self.log()))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.exchange(&admin("GET", path, &[("connection", "close")], None))
    }

    pub(crate) fn poll(&self, path: &str) -> Answer {
        self.exchange(&poll(path))
    }

    /// Waits until it answers polls.
    pub(crate) fn ready(self) -> Self {
        eventually("a process that is ready", || (self.get("/ready").status == 200).then_some(()));
        self
    }

    /// kill -9.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("killed");
        self.wait();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("signalled");
    }

    /// SIGTERM; how it has ended, and everything that it printed.
    pub(crate) fn terminate(mut self) -> (ExitStatus, String) {
        self.signal(Signal::TERM);
        let status = self.wait();
        (status, self.log())
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            assert!(Instant::now() < end, "it does not end: {}", self.log());
            thread::sleep(Duration::from_millis(1));
        };
        for reader in self.readers.drain(..) {
            reader.join().expect("the log is read");
        }
        status
    }
}

/// What something gives sooner or later.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, attempt: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, attempt)
}

/// What something gives in this time.
#[track_caller]
pub(crate) fn within<T>(patience: Duration, what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + patience;
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(Instant::now() < end, "there is not {what} within {patience:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A port that stays free between two processes: below those that the kernel gives out by itself, where a client that asks for it in
/// vain could be given it as its own, and so talk to itself.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + u16::try_from(std::process::id() % 15_000).expect("a small number");
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
