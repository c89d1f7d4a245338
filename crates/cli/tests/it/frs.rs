//! The command line in a folder of its own, with nothing in its environment but what a test puts there.

use std::fmt::{self, Write as _};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::fleet::ADMIN;
use crate::service::Service;

pub(crate) const FRS: &str = env!("CARGO_BIN_EXE_frs");

/// A folder that is home, working and temporary folder, and what is in the environment.
pub(crate) struct Desk {
    home: TempDir,
    variables: Vec<(String, String)>,
}

impl Desk {
    /// An empty one, where no service is known.
    pub(crate) fn empty() -> Self {
        Self { home: tempfile::tempdir().expect("a folder"), variables: Vec::new() }
    }

    /// One with an address, and the admin's token.
    pub(crate) fn at(url: &str) -> Self {
        Self::empty().with("FLUX_API_URL", url).with("FLUX_API_TOKEN", ADMIN)
    }

    /// With a variable, in place of what it was.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Writes a file, and the folders that it is in.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("written");
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The files below a folder, sorted.
    pub(crate) fn files(&self, folder: &str) -> Vec<String> {
        let mut all = Vec::new();
        let mut folders = vec![self.path(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(self.home.path()).expect("a file of the folder");
                    all.push(name.display().to_string());
                }
            }
        }
        all.sort();
        all
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let home = self.home.path();
        command.env_clear().current_dir(home).env("HOME", home).env("TMPDIR", home);
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a line as somebody would type it behind `frs`: quotes hold words together.
    pub(crate) fn frs(&self, line: &str) -> Run {
        self.piped(line, "")
    }

    /// The same with something to read.
    pub(crate) fn piped(&self, line: &str, stdin: &str) -> Run {
        let mut child = self
            .command(FRS)
            .args(words(line))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        // Whoever does not read it need not.
        let _ = child.stdin.take().expect("a pipe").write_all(stdin.as_bytes());
        let output = child.wait_with_output().expect("an end");
        Run {
            line: line.to_owned(),
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// Runs lines one after the other, and tells all of it.
    pub(crate) fn transcript(&self, lines: &[&str]) -> String {
        lines.iter().map(|line| self.frs(line).to_string()).collect::<Vec<_>>().join("\n")
    }
}

/// The words of a line, as a shell takes it apart.
pub(crate) fn words(line: &str) -> Vec<String> {
    shlex::split(line).unwrap_or_else(|| panic!("a quote is open: {line}"))
}

/// What came of a line.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    line: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// The same, which must have ended like this.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "$ frs {}\n-- exit {:?}\n", self.line, self.code.unwrap_or(-1))?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                let end = if text.ends_with('\n') { "" } else { "⏎ missing\n" };
                write!(formatter, "-- {name}\n{text}{end}")?;
            }
        }
        Ok(())
    }
}

/// A service, and a command line that manages it.
pub(crate) struct World {
    pub(crate) service: Service,
    pub(crate) desk: Desk,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::of(Service::start())
    }

    pub(crate) fn of(service: Service) -> Self {
        let desk = Desk::at(&service.url());
        Self { service, desk }
    }

    /// With another environment.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.desk = self.desk.with(name, value);
        self
    }

    pub(crate) fn frs(&self, line: &str) -> Run {
        self.desk.frs(line)
    }

    pub(crate) fn transcript(&self, lines: &[&str]) -> String {
        self.desk.transcript(lines)
    }

    /// The same, of which nothing may change the fleet.
    #[track_caller]
    pub(crate) fn harmless(&self, lines: &[&str]) -> String {
        let before = self.service.head();
        let text = self.transcript(lines);
        assert_eq!(self.service.head(), before, "{text}");
        text
    }

    /// A document, as the service has it.
    pub(crate) fn document(&self, path: &str) -> Value {
        self.service.json(path)
    }
}

/// The content of files, each under its name.
pub(crate) fn told(desk: &Desk, names: &[String]) -> String {
    let mut text = String::new();
    for name in names {
        let _ = write!(text, "==> {name} <==\n{}", desk.read(name));
    }
    text
}

/// Writes a script; what runs it.
pub(crate) fn script(desk: &Desk, name: &str, text: &str) -> String {
    format!("sh {}", desk.file(name, &format!("set -eu\n{text}")).display())
}
