//! The real program as a process, for the tests of several packages: built, started, waited for, ended. It knows the program by what an
//! operator sees of it: the line of its log that says where it listens, and `/ready`.
//!
//! It is for tests: whatever goes wrong is a panic that shows the log.

#![allow(clippy::missing_panics_doc)]

mod build;
mod process;

pub use build::programs;
pub use process::Process;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take. The machine may be busy.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// What something gives sooner or later.
#[track_caller]
pub fn eventually<T>(what: &str, attempt: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, attempt)
}

/// What something gives in this time.
#[track_caller]
pub fn within<T>(patience: Duration, what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + patience;
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(Instant::now() < end, "there is not {what} within {patience:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process says that it is ready.
pub fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut connection) = TcpStream::connect(address) else { return false };
    let mut answer = String::new();
    let asked = connection
        .write_all(b"GET /ready HTTP/1.0\r\n\r\n")
        .and_then(|()| connection.read_to_string(&mut answer));
    asked.is_ok() && answer.split(' ').nth(1) == Some("200")
}
