//! A process, and everything that it prints.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{PATIENCE, eventually, is_ready};

/// A process. It is killed when it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: Log,
    readers: Vec<JoinHandle<()>>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// Starts one that is to end by itself, or whose address is known.
    pub fn spawn(command: Command) -> Self {
        Self::start(command, None)
    }

    /// Starts the service, and returns when it listens, with its address. Its log has to be JSON.
    pub fn listening(command: Command) -> (Self, SocketAddr) {
        let (listening, told) = mpsc::channel();
        let process = Self::start(command, Some(listening));
        match told.recv_timeout(PATIENCE) {
            Ok(address) => (process, address),
            Err(why) => panic!("it does not listen ({why}): {}", process.log()),
        }
    }

    /// Starts the service, and returns when it is ready.
    pub fn ready(command: Command) -> (Self, SocketAddr) {
        let (process, address) = Self::listening(command);
        eventually("a service that is ready", || is_ready(address).then_some(()));
        (process, address)
    }

    fn start(mut command: Command, listening: Option<Sender<SocketAddr>>) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let log = Log::default();
        let readers = vec![
            log.read(child.stdout.take().expect("a pipe"), None),
            log.read(child.stderr.take().expect("a pipe"), listening),
        ];
        Self { child, log, readers }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    pub fn log(&self) -> String {
        self.log.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The address in the line of its log that has this message.
    pub fn told_address(&self, message: &str) -> SocketAddr {
        eventually("an address in the log", || self.log().lines().find_map(|line| address(line, message)))
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.wait();
    }

    /// Waits for its end, and for all of its log.
    pub fn wait(&mut self) -> ExitStatus {
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

/// Everything that a process has printed.
#[derive(Clone, Default, Debug)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn read(
        &self,
        pipe: impl Read + Send + 'static,
        listening: Option<Sender<SocketAddr>>,
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

/// The address in a line of the log, if it has this message.
fn address(line: &str, message: &str) -> Option<SocketAddr> {
    let line: Value = serde_json::from_str(line).ok()?;
    line["address"].as_str().filter(|_| line["message"] == message)?.parse().ok()
}
