//! The log: to standard error, as text or as JSON.
//!
//! Nothing waits for it and nothing fails by it. Lines go through a queue to a thread of their own; if whoever reads them is slow the
//! queue gets full and lines are lost, and if nobody reads them they are all lost. The service goes on either way.

use std::io::{self, Write};
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::config::LogFormat;

/// How many lines may wait to be written.
const QUEUE: usize = 4_096;
/// How long the end of the process may be held up by the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

enum Entry {
    Line(Vec<u8>),
    /// Everything before has been written.
    Flush(SyncSender<()>),
}

/// Takes lines to the thread that writes them.
#[derive(Clone)]
pub struct Log(SyncSender<Entry>);

impl Log {
    fn open() -> io::Result<Self> {
        let (entries, queue) = mpsc::sync_channel(QUEUE);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            for entry in queue {
                match entry {
                    // There is nobody to complain to.
                    Entry::Line(line) => drop(io::stderr().write_all(&line)),
                    Entry::Flush(done) => drop(done.send(())),
                }
            }
        })?;
        Ok(Self(entries))
    }

    /// Waits, not for long, until everything is written.
    pub fn flush(&self) {
        let (done, written) = mpsc::sync_channel(1);
        if self.0.try_send(Entry::Flush(done)).is_ok() {
            let _ = written.recv_timeout(LAST_LINES);
        }
    }
}

impl Write for Log {
    /// The formatter gives a whole line at a time.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = self.0.try_send(Entry::Line(line.to_vec()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Sets up the log for the whole process, panics included.
pub fn start(format: LogFormat, filter: &str) -> io::Result<Log> {
    let writer = Log::open()?;
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer.clone())
        // It would be told on standard error, and panic if that is closed.
        .log_internal_errors(false);
    // A second start in one process, as in tests, keeps the first.
    let _ = match format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).try_init(),
    };
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(place, message, "panic");
    }));
    Ok(writer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_cannot_be_taken_is_lost_and_nobody_waits() {
        let (entries, queue) = mpsc::sync_channel(1);
        let mut log = Log(entries);
        for _ in 0..3 {
            assert_eq!(log.write(b"line\n").expect("never fails"), 5);
        }
        assert_eq!(queue.try_iter().count(), 1);
        drop(queue);
        assert_eq!(log.write(b"line\n").expect("never fails"), 5);
        log.flush();
    }
}
