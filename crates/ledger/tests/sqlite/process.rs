//! Other processes: this test binary again, told by a variable what to do. Each ends by itself if nobody kills it.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use ledger::{Access, AppendError, Sqlite};
use tempfile::TempDir;

use ledger_conformance::fixture::{ALL, Fleet, Writing};

/// What a child may do.
#[derive(Clone, Copy)]
pub(crate) enum Task {
    /// Open for reading and load; says the revision, or the error.
    Load,
    /// Open for writing; says which store it is.
    Open,
    /// Append for a minute; says each revision once it is acknowledged.
    Write,
}

const TASK: &str = "LEDGER_TEST_TASK";
const STORE: &str = "LEDGER_TEST_STORE";
const USER: &str = "LEDGER_TEST_USER";
/// Not a user of anything.
pub(crate) const NOBODY: u32 = 65_534;

/// A child and what it says.
pub(crate) struct Other {
    child: Killed,
    lines: Receiver<String>,
    /// Kept as long as it may run.
    _binary: Option<Arc<TempDir>>,
}

/// A child that does not outlive its test.
struct Killed(Child);

impl Other {
    /// Starts a child as this user.
    pub(crate) fn start(task: Task, store: &Path) -> Self {
        Self::spawn(Command::new(std::env::current_exe().expect("this binary")), task, store)
    }

    /// Starts a child as another user. Needs root: a test that cannot do this has failed, and is not to be skipped.
    pub(crate) fn start_as_nobody(task: Task, store: &Path) -> Self {
        let binary = readable_binary();
        let mut command = Command::new(binary.path().join(BINARY));
        command.uid(NOBODY).gid(NOBODY).env(USER, NOBODY.to_string()).current_dir("/");
        Self { _binary: Some(binary), ..Self::spawn(command, task, store) }
    }

    fn spawn(mut command: Command, task: Task, store: &Path) -> Self {
        let task = match task {
            Task::Load => "load",
            Task::Open => "open",
            Task::Write => "write",
        };
        command.args(["--exact", "process::another_process_does_its_task", "--nocapture"]);
        command.env(TASK, task).env(STORE, store).stdout(Stdio::piped());
        let mut child =
            command.spawn().expect("a process; for one of another user, these tests must run as root");
        let stdout = child.stdout.take().expect("its output");
        let (said, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(word) = line.strip_prefix("says ") {
                    let _ = said.send(word.to_owned());
                }
            }
        });
        Self { child: Killed(child), lines, _binary: None }
    }

    /// The next thing it says.
    pub(crate) fn says(&self) -> String {
        self.lines.recv_timeout(Duration::from_mins(1)).expect("it says something in time")
    }

    /// SIGKILL. What it had said until then.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.0.kill().expect("killed");
        self.child.0.wait().expect("it is gone");
        self.lines.iter().collect()
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This binary, where anybody can run it; shared by whoever needs it at the time.
fn readable_binary() -> Arc<TempDir> {
    static COPY: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());
    let mut copy = COPY.lock().expect("nobody failed to copy");
    copy.upgrade().unwrap_or_else(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open.clone()).expect("permitted");
        // By another process: a child that another test forks meanwhile would have the copy open for writing, and it could not be run.
        let copied = Command::new("cp")
            .arg(std::env::current_exe().expect("this binary"))
            .arg(directory.path().join(BINARY))
            .status();
        assert!(copied.expect("cp runs").success());
        std::fs::set_permissions(directory.path().join(BINARY), open).expect("permitted");
        let directory = Arc::new(directory);
        *copy = Arc::downgrade(&directory);
        directory
    })
}

const BINARY: &str = "test";

/// Not a test by itself: what a child runs. Without the variables there is nothing to do.
#[test]
fn another_process_does_its_task() {
    let (Ok(task), Ok(store)) = (std::env::var(TASK), std::env::var(STORE)) else { return };
    if let Ok(user) = std::env::var(USER) {
        let status = std::fs::read_to_string("/proc/self/status").expect("a status");
        let line = status.lines().find(|line| line.starts_with("Uid:")).expect("a user").to_owned();
        assert_eq!(line.split_whitespace().nth(2), Some(user.as_str()), "it runs as the other user");
    }
    let store = PathBuf::from(store);
    match task.as_str() {
        "load" => load(&store),
        "open" => {
            let opened = Sqlite::open(&store, Access::Write).map(|store| store.store_id.expect("an id"));
            println!("\nsays {opened:?}");
        }
        "write" => write(&store),
        other => panic!("no task {other}"),
    }
}

fn load(store: &Path) {
    let reader = Sqlite::open(store, Access::Read).expect("it opens").follow;
    match reader.load() {
        Ok(state) => println!("\nsays loaded {}", state.head().revision),
        Err(error) => println!("\nsays {error}"),
    }
}

fn write(store: &Path) {
    let mut writer = Sqlite::open(store, Access::Write).expect("a store");
    let mut fleet = Fleet::at(writer.follow.load().expect("a fleet"));
    let until = std::time::Instant::now() + Duration::from_mins(1);
    while std::time::Instant::now() < until {
        let before = fleet.clone();
        match writer.append(before.state.head(), &[next(&mut fleet)]) {
            Ok(()) => {}
            Err(AppendError::Conflict) => {
                let mut held = writer.hold().expect("the lock");
                let missed = held.read(before.state.head(), ALL).expect("commits");
                let caught_up = missed
                    .iter()
                    .fold(before.state, |state, commit| state.replay(commit).expect("it follows"));
                fleet = Fleet::at(caught_up);
                let at = fleet.state.head();
                held.append(at, &[next(&mut fleet)]).expect("appended");
            }
            Err(other) => panic!("{other}"),
        }
        println!("\nsays {}", fleet.state.head().revision);
    }
}

/// The kinds first, then a namespace for each revision.
fn next(fleet: &mut Fleet) -> fleet::Commit {
    match fleet.state.head().revision.0 {
        0 => fleet.define_kinds(),
        revision => fleet.namespace(&format!("n{revision}")),
    }
}
