//! The database is removed, cut short, or replaced under a process that is being polled. It answers what it knows until
//! `MAX_STALENESS`, then 503, and never what the other file says; and it goes on by itself when its own file is back.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use harness::within;
use rustix::process::Signal;
use serde_json::json;

use crate::fleet::{Folder, admin, label, small_fleet};
use crate::http::Client;
use crate::pollers::{Pollers, Right};
use crate::service::{Service, Settings};

/// `MAX_STALENESS` is two seconds. A busy machine may be late.
const A_FEW_SECONDS: Duration = Duration::from_secs(15);

const PARTS: [&str; 4] = ["store.db", "store.db-wal", "store.db-shm", "store.db-mark"];

/// What happens to the database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Removed,
    Emptied,
    Halved,
    OnePageShort,
    /// The file alone: the `-wal` beside it is still that of the store before.
    AnotherStore,
    AnotherStoreWithItsWal,
    OlderCopy,
}

const FAULTS: [Fault; 7] = [
    Fault::Removed,
    Fault::Emptied,
    Fault::Halved,
    Fault::OnePageShort,
    Fault::AnotherStore,
    Fault::AnotherStoreWithItsWal,
    Fault::OlderCopy,
];

/// Stores to work with: one, the same some revisions earlier, and another one. Each is a folder that no process uses.
struct Stores {
    now: Folder,
    earlier: Folder,
    another: Folder,
    right: Right,
}

/// Puts a store into a folder, each file whole, the database last: what is written *into* a file that a process has mapped kills it
/// (see `a_file_that_is_overwritten_in_place_…`).
fn copy(from: &Path, to: &Path) {
    for part in PARTS.into_iter().rev().filter(|part| from.join(part).exists()) {
        place(&from.join(part), &to.join(part));
    }
}

fn place(from: &Path, to: &Path) {
    let new = to.with_extension("new");
    fs::copy(from, &new).expect("copied");
    fs::rename(new, to).expect("put into place");
}

impl Stores {
    fn make() -> Self {
        let seed = small_fleet(["spare".to_owned()]);
        let now = Folder::new(&seed);
        let settings = Settings::crud(&now);
        let service = settings.start().ready();
        write_some(&service, "earlier", 250);
        service.kill();
        let earlier = Folder::new(&seed);
        copy(now.path(), earlier.path());
        let service = settings.start().ready();
        write_some(&service, "now", 250);
        // What the older copy would say is different.
        let patch = admin("PATCH", "/platform_components/podinfo", &[], Some(&json!({"oci_tag": "6.8.0"})));
        service.exchange(&patch).expect(200);
        let right = Right::of(&service);
        // A clean stop brings everything into the file.
        service.terminate();
        assert!(
            fs::metadata(now.database()).expect("a file").len() > 100_000,
            "most of it is in the file itself"
        );

        let mut less = seed;
        less["clusters"][0]["platform_components"] = json!([]);
        less["clusters"][0]["patches"] = json!({});
        less["clusters"][0]["namespaces"] = json!([]);
        less["clusters"].as_array_mut().expect("a list").pop();
        let another = Folder::new(&less);
        Settings::crud(&another).start().ready().kill();
        Self { now, earlier, another, right }
    }
}

fn write_some(service: &Service, name: &str, number: u32) {
    let mut client = Client::new(service.address);
    for n in 0..number {
        let request = label("spare", name, &n.to_string(), &"a longer reason ".repeat(20));
        client.exchange(&request).expect("an answer").expect(200);
    }
}

/// A fault that has happened, and can be undone.
enum Undo {
    /// Files that were moved away, to be moved back: they stay the same files.
    MoveBack(Vec<(PathBuf, PathBuf)>),
    /// What was cut off.
    Append(PathBuf, u64, Vec<u8>),
}

impl Fault {
    fn happen(self, folder: &Folder, stores: &Stores) -> Undo {
        let cut = |length: fn(u64) -> u64| {
            let bytes = fs::read(folder.database()).expect("read");
            let left = length(bytes.len() as u64);
            let file = OpenOptions::new().write(true).open(folder.database()).expect("opened");
            file.set_len(left).expect("cut short");
            let at = usize::try_from(left).expect("a small file");
            Undo::Append(folder.database(), left, bytes[at..].to_vec())
        };
        match self {
            Self::Removed => away(folder, &PARTS[..1]),
            Self::Emptied => cut(|_| 0),
            Self::Halved => cut(|length| length / 2),
            Self::OnePageShort => cut(|length| length - 4096),
            Self::AnotherStore => {
                let undo = away(folder, &PARTS[..1]);
                place(&stores.another.database(), &folder.database());
                undo
            }
            Self::AnotherStoreWithItsWal => {
                let undo = away(folder, &PARTS);
                copy(stores.another.path(), folder.path());
                undo
            }
            Self::OlderCopy => {
                let undo = away(folder, &PARTS);
                copy(stores.earlier.path(), folder.path());
                undo
            }
        }
    }
}

fn away(folder: &Folder, parts: &[&str]) -> Undo {
    let moves = parts.iter().map(|part| (folder.file(&format!("{part}.away")), folder.file(part)));
    let moves: Vec<_> = moves.filter(|(_, here)| here.exists()).collect();
    for (there, here) in &moves {
        fs::rename(here, there).expect("moved away");
    }
    Undo::MoveBack(moves)
}

impl Undo {
    fn undo(self) {
        match self {
            Self::MoveBack(moves) => {
                for (there, here) in moves {
                    fs::rename(there, here).expect("moved back");
                }
            }
            Self::Append(path, at, bytes) => {
                let file = OpenOptions::new().write(true).open(path).expect("opened");
                file.write_all_at(&bytes, at).expect("written");
            }
        }
    }
}

fn refuses_writes(service: &Service) {
    let answer = service.exchange(&label("spare", "refused", "1", "while the store is not there"));
    assert_eq!(answer.status, 503, "{}", answer.text());
}

/// One fault under one process.
fn survives(fault: Fault, stores: &Stores, is_crud: bool) {
    let folder = Folder::new(&small_fleet([]));
    copy(stores.now.path(), folder.path());
    let settings = if is_crud { Settings::crud(&folder) } else { Settings::read_only(&folder) };
    let settings = settings.with("MAX_STALENESS", "2s");
    let service = settings.start().ready();
    let revision = service.get("/ready").expect(200).json()["revision"].clone();
    let pollers = Pollers::start(service.address, 1, Duration::from_millis(10), &stores.right);
    pollers.see_right();

    let undo = fault.happen(&folder, stores);
    let files = folder.names();
    if is_crud {
        refuses_writes(&service);
    }
    within(A_FEW_SECONDS, "a 503", || (service.get("/ready").status == 503).then_some(()));
    let unavailable = pollers.tally().unavailable;
    within(A_FEW_SECONDS, "a poll with a 503", || (pollers.tally().unavailable > unavailable).then_some(()));
    // It stays so.
    let right = pollers.tally().right;
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(50));
        pollers.check();
        if is_crud {
            refuses_writes(&service);
        }
    }
    assert_eq!(pollers.tally().right, right, "it was not served any more");
    assert_eq!(service.get("/ready").expect(503).json()["revision"], revision);
    let made: Vec<String> = folder.names().into_iter().filter(|name| !files.contains(name)).collect();
    // SQLite makes these two beside a database that is there and has none.
    let companions = matches!(fault, Fault::AnotherStoreWithItsWal | Fault::OlderCopy);
    assert!(made.iter().all(|name| companions && PARTS[1..].contains(&name.as_str())), "{made:?}");
    assert_eq!(folder.database().exists(), fault != Fault::Removed);

    undo.undo();
    within(A_FEW_SECONDS, "a 200", || (service.get("/ready").status == 200).then_some(()));
    pollers.see_right();
    if is_crud {
        let answer = service.exchange(&label("spare", "again", "1", "the store is back")).expect(200);
        assert_eq!(answer.json()["labels"].get("refused"), None, "what was refused was not written");
        assert_eq!(Some(answer.revision()), revision.as_u64().map(|revision| revision + 1));
    }
    assert_eq!(Right::of(&service), stores.right);
    pollers.stop();
    service.kill();
    if fault == Fault::AnotherStoreWithItsWal {
        // A restart is how one says that the other store is meant.
        fault.happen(&folder, stores);
        let service = settings.start().ready();
        assert_ne!(Right::of_any(&service), stores.right);
    }
}

fn survives_all(is_crud: bool) {
    let stores = &Stores::make();
    thread::scope(|scope| {
        let threads: Vec<_> =
            FAULTS.map(|fault| (fault, scope.spawn(move || survives(fault, stores, is_crud)))).into();
        for (fault, thread) in threads {
            assert!(thread.join().is_ok(), "{fault:?}");
        }
    });
}

#[test]
fn a_read_only_process_never_serves_a_store_that_was_removed_cut_short_or_replaced() {
    survives_all(false);
}

#[test]
fn a_crud_process_never_serves_or_writes_a_store_that_was_removed_cut_short_or_replaced() {
    survives_all(true);
}

/// Somebody copies a backup over the files of a running process. SQLite maps the `-shm`, so the kernel ends the process at the first page
/// that is no longer there: it cannot answer wrongly, and what was acknowledged is there after its restart.
#[test]
fn a_file_that_is_overwritten_in_place_ends_the_process_and_loses_nothing() {
    for is_crud in [true, false] {
        let folder = Folder::new(&small_fleet(["spare".to_owned()]));
        let writer = Settings::crud(&folder).start().ready();
        writer.exchange(&label("spare", "kept", "1", "before the accident")).expect(200);
        let right = Right::of(&writer);
        let (settings, mut service) = if is_crud {
            (Settings::crud(&folder), writer)
        } else {
            writer.kill();
            let settings = Settings::read_only(&folder);
            let service = settings.start().ready();
            (settings, service)
        };
        OpenOptions::new().write(true).truncate(true).open(folder.file("store.db-shm")).expect("emptied");
        let ended = service.wait();
        assert_eq!(ended.signal(), Some(Signal::BUS.as_raw()), "{ended}: {}", service.log());
        let service = settings.start().ready();
        assert_eq!(Right::of(&service), right);
        if is_crud {
            assert_eq!(service.get("/namespaces/spare").expect(200).json()["labels"]["kept"], "1");
        }
    }
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_as_it_is() {
    let folder = Folder::new(&small_fleet([]));
    fs::write(folder.database(), b"somebody's notes").expect("written");
    let (code, log) = Settings::crud(&folder).run();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("is not an SQLite database"), "{log}");
    assert_eq!(fs::read(folder.database()).expect("read"), b"somebody's notes");
    assert_eq!(folder.names(), ["seed.json", "store.db"]);
}
