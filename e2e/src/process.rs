//! A process of the world: its log in a file, and its end bound to ours. However we end, by a signal too, the kernel ends it as well.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::wait::within;

/// How a process is started, again and again if need be.
#[derive(Clone, Debug)]
pub struct Program {
    name: String,
    binary: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    log: PathBuf,
}

impl Program {
    /// A program whose log is `<logs>/<name>.log`. It gets no variable of ours but `PATH` and `HOME`.
    pub fn new(name: &str, binary: &Path, logs: &Path) -> Self {
        Self {
            name: name.to_owned(),
            binary: binary.to_owned(),
            arguments: Vec::new(),
            variables: Vec::new(),
            log: logs.join(format!("{name}.log")),
        }
    }

    #[must_use]
    pub fn arguments<S: Into<String>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// With a variable, in place of what it was.
    #[must_use]
    pub fn with(self, name: &str, value: impl Into<String>) -> Self {
        let mut this = self.without(name);
        this.variables.push((name.to_owned(), value.into()));
        this
    }

    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self
    }

    /// Starts it. The log is continued.
    pub fn start(&self) -> Result<Process> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .with_context(|| self.log.display().to_string())?;
        // `setpriv` asks the kernel to end the process when the thread that started it ends, and then becomes it.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&self.binary)
            .args(&self.arguments)
            .env_clear()
            .envs(["PATH", "HOME"].iter().filter_map(|name| Some((name, std::env::var(name).ok()?))))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            // So that it can be told whose it is.
            .current_dir(self.log.parent().unwrap_or(Path::new(".")))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", self.binary.display()))?;
        Ok(Process { program: self.clone(), child })
    }
}

/// A program that runs. Dropping it ends it.
#[derive(Debug)]
pub struct Process {
    program: Program,
    child: Child,
}

impl Process {
    /// An error with the end of its log, if it has ended.
    pub fn alive(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            let log = std::fs::read_to_string(&self.program.log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            bail!(
                "{} ended with {status}:\n{}",
                self.program.name,
                lines[lines.len().saturating_sub(10)..].join("\n")
            );
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended already.
            let _ = kill_process(pid, signal);
        }
    }

    /// Asks it to end, and waits until it has.
    pub fn stop(mut self) -> Result<()> {
        self.signal(Signal::TERM);
        let name = self.program.name.clone();
        within(Duration::from_mins(1), &format!("{name} ends"), || match self.child.try_wait()? {
            Some(_) => Ok(()),
            None => bail!("it runs"),
        })
    }

    /// Ends it at once.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// The memory that it holds, in MiB.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
