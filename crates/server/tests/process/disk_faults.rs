//! A disk that is full, or fails. `strace` makes the kernel say so, about one file alone: the `-wal`, which every commit goes through,
//! or the database itself, which checkpoints go to.
//!
//! It counts per thread, and commits are written by more than one: so a fault begins and ends at some write, not at a certain one.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::fleet::{Folder, label, small_fleet};
use crate::http::Client;
use crate::pollers::{Pollers, Right};
use crate::service::{Service, Settings};

fn strace() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join("strace")).find(|file| file.is_file());
    found.expect("`strace` is not on the PATH; `scripts/install-tools strace` installs it")
}

/// A store, and a process on it to which the kernel will lie.
struct Bench {
    folder: Folder,
    service: Service,
    right: Right,
}

impl Bench {
    fn new(file: &str, faults: &[&str]) -> Self {
        let folder = Folder::new(&small_fleet(["spare".to_owned()]));
        let settings = Settings::crud(&folder);
        let service = settings.start().ready();
        let right = Right::of(&service);
        service.kill();
        let file = folder.file(file).into_os_string();
        // `-D`: the process is ours, and strace its child.
        let mut launcher: Vec<OsString> =
            ["-D", "-f", "-qq", "-e", "trace=pwrite64,fsync,fdatasync", "-P"].map(Into::into).into();
        launcher.extend([file, "-o".into(), folder.file("trace").into_os_string()]);
        for fault in faults {
            launcher.extend(["-e".into(), format!("inject={fault}").into()]);
        }
        launcher.insert(0, strace().into_os_string());
        let service = settings.with("MAX_STALENESS", "2s").under(launcher).start().ready();
        Self { folder, service, right }
    }

    /// Restarts it with an honest kernel; by its reason, the revision of each write that is there.
    fn rows(self) -> HashMap<String, u64> {
        self.service.kill();
        let service = Settings::crud(&self.folder).start().ready();
        assert_eq!(Right::of(&service), self.right);
        let revisions = service.get("/revisions?limit=1000&actor=file:admin").expect(200).json();
        let revisions = revisions.as_array().expect("a list");
        let rows: HashMap<String, u64> = revisions
            .iter()
            .map(|revision| {
                let reason = revision["reason"].as_str().expect("a reason").to_owned();
                (reason, revision["revision"].as_u64().expect("a number"))
            })
            .collect();
        let head = service.get("/ready").json()["revision"].as_u64().expect("a number");
        assert_eq!(rows.len() as u64 + 1, head, "no revision is missing, none is there twice");
        rows
    }
}

/// What somebody who writes was told.
#[derive(Default)]
struct Told {
    /// By its reason, the revision.
    acknowledged: HashMap<String, u64>,
    nothing_changed: Vec<String>,
    not_known: Vec<String>,
}

impl Told {
    /// Writes once; whether it was acknowledged.
    fn write(&mut self, client: &mut Client, n: u64) -> bool {
        let reason = format!("write {n}");
        let answer = client.exchange(&label("spare", "n", &n.to_string(), &reason)).expect("an answer");
        if answer.status == 200 {
            self.acknowledged.insert(reason, answer.revision());
            return true;
        }
        assert_eq!(answer.status, 503, "{}", answer.text());
        let detail = answer.json()["detail"].as_str().expect("a detail").to_owned();
        if detail.contains("nothing has changed") {
            self.nothing_changed.push(reason);
        } else {
            assert!(detail.contains("is not known"), "{detail}");
            self.not_known.push(reason);
        }
        false
    }
}

/// Some writes work, then some do not, and then they do again; nothing else happens.
#[test]
fn a_full_disk_refuses_writes_until_it_has_room() {
    // A commit is some twenty writes.
    let bench = Bench::new("store.db-wal", &["pwrite64:error=ENOSPC:when=70..76"]);
    let pollers = Pollers::start(bench.service.address, 1, Duration::from_millis(20), &bench.right);
    let (mut told, mut client) = (Told::default(), Client::new(bench.service.address));
    let mut since = 0;
    for n in 0..1_000 {
        since = if told.write(&mut client, n) { since + 1 } else { 0 };
        if since >= 30 && !told.nothing_changed.is_empty() {
            break;
        }
    }
    assert!(since >= 30, "it does not work again");
    assert_eq!(told.not_known, Vec::<String>::new());
    let ready = bench.service.get("/ready").expect(200).json();
    assert_eq!(ready["writer"], "running");
    assert_eq!(pollers.stop().unavailable, 0);
    assert_eq!(bench.rows(), told.acknowledged);
}

/// Of the write that failed it is not known whether it was made; nothing is written any more, and polls go on.
fn ends(file: &str, faults: &[&str], not_known: usize) {
    let bench = Bench::new(file, faults);
    let pollers = Pollers::start(bench.service.address, 1, Duration::from_millis(20), &bench.right);
    let (mut told, mut client) = (Told::default(), Client::new(bench.service.address));
    let failed = (0..900).find(|n| !told.write(&mut client, *n)).expect("the disk fails");
    assert!(failed >= 3, "the first ones work");
    // Longer than MAX_STALENESS.
    for n in 0..40 {
        assert!(!told.write(&mut client, 1_000 + n), "nothing is written any more");
        let ready = bench.service.get("/ready").expect(200).json();
        assert_eq!(ready["writer"], "failed");
        thread::sleep(Duration::from_millis(100));
    }
    let tally = pollers.stop();
    assert_eq!((tally.unavailable, tally.failed), (0, 0));
    assert!(tally.right > 20, "{tally:?}");
    let mut rows = bench.rows();
    assert!(told.not_known.len() <= not_known, "{:?}", told.not_known);
    rows.retain(|reason, _| !told.not_known.contains(reason));
    assert_eq!(rows, told.acknowledged);
}

#[test]
fn after_a_failed_fsync_nothing_is_written_any_more_and_polls_go_on() {
    ends("store.db-wal", &["fsync:error=EIO:when=4+", "fdatasync:error=EIO:when=4+"], 1);
}

#[test]
fn after_a_failed_write_nothing_is_written_any_more_and_polls_go_on() {
    ends("store.db-wal", &["pwrite64:error=EIO:when=70+"], 1);
}

/// SQLite keeps the errors of its own checkpoints to itself.
#[test]
fn after_a_checkpoint_that_could_not_be_synced_nothing_is_written_any_more_and_polls_go_on() {
    ends("store.db", &["fsync:error=EIO", "fdatasync:error=EIO"], 1);
}
