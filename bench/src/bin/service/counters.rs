//! Instructions, where the machine counts them and `perf` is installed. Virtual machines mostly do not.

use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// `perf stat` on a process.
pub(crate) struct Counter(Child);

/// Whether instructions are counted here.
pub(crate) fn available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        let said = Command::new("perf").args(["stat", "-x,", "-e", "instructions", "true"]).output();
        said.is_ok_and(|said| instructions(&String::from_utf8_lossy(&said.stderr)).is_some())
    })
}

impl Counter {
    pub(crate) fn start(process: u32) -> Option<Self> {
        let arguments = ["stat", "-x,", "-e", "instructions", "-p"];
        let mut perf = Command::new("perf");
        perf.args(arguments).arg(process.to_string()).stderr(Stdio::piped());
        let child = available().then(|| perf.spawn().ok()).flatten()?;
        // It says nothing when it has begun.
        std::thread::sleep(Duration::from_millis(100));
        Some(Self(child))
    }

    /// How many there were.
    pub(crate) fn end(self) -> Option<f64> {
        let interrupt = Command::new("kill").arg("-INT").arg(self.0.id().to_string()).status();
        interrupt.ok().filter(std::process::ExitStatus::success)?;
        let said = self.0.wait_with_output().ok()?;
        instructions(&String::from_utf8_lossy(&said.stderr))
    }
}

/// The count in a line like `12345,,instructions,…`; there is none in `<not supported>,,instructions,…`.
fn instructions(text: &str) -> Option<f64> {
    text.lines().find(|line| line.contains("instructions"))?.split(',').next()?.parse().ok()
}
