//! A process of the service: started, asked, killed.

use std::ffi::{OsStr, OsString};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use harness::{Process, eventually, is_ready};
use rustix::process::{Pid, Signal, kill_process};

use crate::fleet::{ADMIN, Folder, READER, admin, poll};
use crate::http::{Answer, Connection};

/// How a process is started.
#[derive(Clone)]
pub(crate) struct Settings {
    launcher: Vec<OsString>,
    arguments: Vec<OsString>,
    variables: Vec<(String, OsString)>,
}

impl Settings {
    /// A process without any setting.
    pub(crate) fn none() -> Self {
        Self { launcher: Vec::new(), arguments: Vec::new(), variables: Vec::new() }
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

    /// With words on the command line.
    pub(crate) fn with_arguments<T: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = T>) -> Self {
        self.arguments = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        self
    }

    fn command(&self) -> Command {
        let program = OsString::from(env!("CARGO_BIN_EXE_flux-resourceset"));
        let mut words = self.launcher.iter().chain([&program]);
        let mut command = Command::new(words.next().unwrap_or(&program));
        command.args(words).args(&self.arguments).env_clear();
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts it, with a log that is not ours to read.
    pub(crate) fn spawn(&self) -> Child {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
    }

    /// Starts it, and returns when it listens.
    pub(crate) fn start(&self) -> Service {
        let (process, address) = Process::listening(self.command());
        Service { process, address }
    }

    /// Starts one that is to end by itself; its exit code and everything that it printed.
    pub(crate) fn run(&self) -> (Option<i32>, String) {
        let mut process = Process::spawn(self.command());
        (process.wait().code(), process.log())
    }
}

/// A process that listens. It is killed when it is dropped.
pub(crate) struct Service {
    process: Process,
    pub(crate) address: SocketAddr,
}

impl Service {
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What it has printed so far.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    /// The address in a line of its log.
    pub(crate) fn told_address(&self, message: &str) -> SocketAddr {
        self.process.told_address(message)
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
        eventually("a process that is ready", || is_ready(self.address).then_some(()));
        self
    }

    /// kill -9.
    pub(crate) fn kill(mut self) {
        self.process.kill();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a process id");
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
        self.process.wait()
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
