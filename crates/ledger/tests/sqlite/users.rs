//! A reader of another user, which has no more than the permissions that the documentation asks for: a directory of mode 2770 and a
//! group. It must be able to start whether or not a writer runs, whatever end the writer came to.

use std::os::unix::fs::{PermissionsExt, chown};

use crate::place::Place;
use crate::process::{NOBODY, Other, Task};
use ledger_conformance::fixture::{Fleet, filled, grow};

fn shared() -> Place {
    let place = Place::new();
    chown(place.directory(), None, Some(NOBODY)).expect("these tests run as root");
    permit(&place, 0o2770);
    place
}

fn permit(place: &Place, mode: u32) {
    std::fs::set_permissions(place.directory(), std::fs::Permissions::from_mode(mode)).expect("permitted");
}

fn load(place: &Place) -> String {
    Other::start_as_nobody(Task::Load, &place.store()).says()
}

#[test]
fn a_reader_of_another_user_reads_while_the_writer_runs() {
    let place = shared();
    let mut writer = place.writer();
    let mut fleet = filled(&mut writer, &["a"]);
    assert_eq!(load(&place), "loaded 2");
    grow(&mut writer, &mut fleet, "b");
    assert_eq!(load(&place), "loaded 3");
}

#[test]
fn a_reader_of_another_user_starts_after_the_writer_has_closed_cleanly() {
    let place = shared();
    filled(&mut place.writer(), &["a"]);
    assert_eq!(
        place.files(),
        ["store.db", "store.db-mark", "store.db-shm", "store.db-wal"],
        "a close keeps what readers need"
    );
    // Not even the directory has to be writable then.
    permit(&place, 0o2750);
    assert_eq!(load(&place), "loaded 2");
    assert_eq!(load(&place), "loaded 2", "nor does a reader's own close take it away");
    grow(&mut place.writer(), &mut Fleet::at(place.reader().load().expect("a fleet")), "b");
    assert_eq!(load(&place), "loaded 3");
}

#[test]
fn a_reader_of_another_user_starts_from_a_store_that_came_without_its_wal() {
    let place = shared();
    filled(&mut place.writer(), &["a"]);
    crate::place::checkpoint(&place.store());
    for name in ["store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(place.path(name));
    }
    assert_eq!(load(&place), "loaded 2");
}

#[test]
fn a_reader_of_another_user_starts_after_the_writer_was_killed() {
    let place = shared();
    let writer = Other::start(Task::Write, &place.store());
    while writer.says() != "5" {}
    writer.kill();
    let loaded = load(&place);
    let revision: u64 = loaded.strip_prefix("loaded ").expect("it loads").parse().expect("a number");
    assert!(revision >= 5, "{revision}");
    // As after a power cut on some file systems.
    place.remove("store.db-shm");
    assert_eq!(load(&place), loaded);
}

#[test]
fn a_reader_without_the_permissions_is_told_which() {
    let place = shared();
    filled(&mut place.writer(), &["a"]);
    std::fs::set_permissions(place.store(), std::fs::Permissions::from_mode(0o640)).expect("permitted");
    let said = load(&place);
    let advice = "must be allowed to read and write the file, its `-wal` and its `-shm`";
    assert!(said.starts_with("the store cannot be reached") && said.contains(advice), "{said}");
}
