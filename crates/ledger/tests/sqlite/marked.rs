//! The head mark: a store that has gone back is refused, whoever opens it, until somebody accepts it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fleet::{Position, Revision};
use ledger::{Access, AppendError, FeedError, Sqlite};
use ledger_conformance::fixture::{ALL, Fleet, Writing, filled, grow};

use crate::place::Place;

/// What a process is told that opens and loads the store: the revision, or why not.
fn outcome(store: &Path, access: Access) -> Result<Revision, FeedError> {
    let opened = Sqlite::open(store, access)?;
    Ok(opened.follow.load()?.head().revision)
}

/// What both kinds of process are told, which must be the same kind of refusal.
fn refusal(place: &Place) -> String {
    let told = [Access::Read, Access::Write]
        .map(|access| outcome(&place.store(), access).expect_err("it is refused"));
    assert_eq!(told[0], told[1]);
    let FeedError::Behind(why) = &told[0] else { panic!("{}", told[0]) };
    assert!(
        why.contains("Bring back the newest database") && why.contains("`flux-resourceset accept-store"),
        "{why}"
    );
    why.clone()
}

/// A store of three commits in which an older copy, of two, has taken the place of the database.
fn gone_back() -> (Place, Position, Fleet) {
    let place = Place::new();
    let mut fleet = filled(&mut place.writer(), &["a"]);
    let older = fleet.state.head();
    place.copy("store.db", "older.db");
    grow(&mut place.writer(), &mut fleet, "b");
    place.replace_with("older.db");
    (place, older, fleet)
}

#[test]
fn an_older_copy_is_refused_and_the_message_says_what_to_do() {
    let (place, older, fleet) = gone_back();
    let why = refusal(&place);
    let (path, head) = (place.store(), fleet.state.head());
    let said = format!(
        "{0} holds revision 2 ({1}), but its head mark {0}-mark says that revision 3 ({2}) was acknowledged",
        path.display(),
        older.hash,
        head.hash
    );
    assert!(why.starts_with(&said), "{why}");
    assert!(why.ends_with(&format!("accept-store --expect 2:{}`", older.hash)), "{why}");
}

#[test]
fn a_store_that_is_accepted_is_the_one_to_go_on_with() {
    let (place, older, fleet) = gone_back();
    let path = place.store();
    let found = Sqlite::inspect(&path).expect("it is whole");
    assert_eq!((found.position(), &found.mark, found.is_behind), (older, &Ok(fleet.state.head()), true));
    assert_eq!(found.head.as_ref().expect("a commit").actor, "tester");
    assert_eq!((&*found.role, found.wal_problem.as_deref()), ("origin", None));
    refusal(&place);

    let expect = fleet.state.head();
    assert_eq!(Sqlite::accept(&path, expect), Err(FeedError::NotAsExpected { at: older, expect }));
    refusal(&place);

    Sqlite::accept(&path, older).expect("accepted");
    assert_eq!(outcome(&path, Access::Read), Ok(Revision(2)));
    let mut writer = place.writer();
    let mut fleet = Fleet::at(writer.follow.load().expect("a fleet"));
    grow(&mut writer, &mut fleet, "c");
    drop(writer);
    assert_eq!(Sqlite::inspect(&path).expect("it is whole").mark, Ok(fleet.state.head()));
}

#[test]
fn a_copy_that_went_another_way_is_refused() {
    let place = Place::new();
    let mut fleet = filled(&mut place.writer(), &["a"]);
    place.copy("store.db", "fork.db");
    let mut fork = fleet.clone();
    grow(&mut place.writer(), &mut fleet, "b");
    let mut other = Sqlite::open(&place.path("fork.db"), Access::Write).expect("it opens");
    grow(&mut other, &mut fork, "c");
    grow(&mut other, &mut fork, "d");
    drop(other);
    place.replace_with("fork.db");
    let why = refusal(&place);
    assert!(why.contains("holds revision 4") && why.contains("says that revision 3"), "{why}");
}

#[test]
fn another_store_is_refused() {
    let place = Place::new();
    filled(&mut place.writer(), &["a"]);
    filled(&mut Sqlite::open(&place.path("other.db"), Access::Write).expect("it opens"), &["a"]);
    place.replace_with("other.db");
    assert!(refusal(&place).contains("is of store"));
}

#[test]
fn a_store_whose_mark_was_removed_emptied_or_cut_is_refused() {
    for spoilt in [None, Some(0), Some(512), Some(4_095)] {
        let place = Place::new();
        filled(&mut place.writer(), &["a"]);
        match spoilt {
            None => place.remove("store.db-mark"),
            Some(length) => place.truncate_file("store.db-mark", length),
        }
        let why = refusal(&place);
        assert!(why.contains("nothing tells whether"), "{why}");
        let found = Sqlite::inspect(&place.store()).expect("it is whole");
        assert!(found.mark.is_err() && found.is_behind);
        Sqlite::accept(&place.store(), found.position()).expect("accepted");
        assert_eq!(outcome(&place.store(), Access::Write), Ok(Revision(2)));
    }
}

#[test]
fn a_store_without_commits_gets_its_mark_from_the_writer() {
    let place = Place::new();
    drop(place.writer());
    place.remove("store.db-mark");
    assert_eq!(outcome(&place.store(), Access::Read), Ok(Revision(0)));
    assert!(!place.path("store.db-mark").exists(), "a reader creates nothing");
    filled(&mut place.writer(), &["a"]);
    assert_eq!(outcome(&place.store(), Access::Read), Ok(Revision(2)));
}

/// A store that lost everything looks like a new one, and would be filled from the seed.
#[test]
fn a_new_store_beside_the_mark_of_an_old_one_is_refused() {
    let place = Place::new();
    drop(Sqlite::open(&place.path("new.db"), Access::Write).expect("it opens"));
    filled(&mut place.writer(), &["a"]);
    place.replace_with("new.db");
    refusal(&place);
    let found = Sqlite::inspect(&place.store()).expect("it can be read");
    assert_eq!((found.head.clone(), found.is_behind), (None, true), "what is refused can be accepted");
    Sqlite::accept(&place.store(), found.position()).expect("accepted");
    assert_eq!(outcome(&place.store(), Access::Write), Ok(Revision(0)));
}

/// It was refused with "run accept-store", and `accept-store` said that there was nothing to accept.
#[test]
fn a_store_without_commits_beside_an_unreadable_mark_is_refused_and_can_be_accepted() {
    let place = Place::new();
    drop(place.writer());
    std::fs::write(place.path("store.db-mark"), "spoilt").expect("written");
    refusal(&place);
    let found = Sqlite::inspect(&place.store()).expect("it can be read");
    let said = "it does not have the length that it was made with".to_owned();
    assert_eq!((found.mark.clone(), found.is_behind), (Err(said), true));
    Sqlite::accept(&place.store(), found.position()).expect("accepted");
    assert_eq!(outcome(&place.store(), Access::Write), Ok(Revision(0)));
}

#[test]
fn a_writer_that_was_killed_before_it_wrote_the_mark_is_no_reason_to_refuse() {
    let place = Place::new();
    let mut writer = place.writer();
    let mut fleet = filled(&mut writer, &["a"]);
    place.copy_file("store.db-mark", "earlier");
    grow(&mut writer, &mut fleet, "b");
    place.copy_file("earlier", "store.db-mark");
    drop(writer);
    assert_eq!(outcome(&place.store(), Access::Read), Ok(Revision(3)));
    drop(place.writer());
    assert_eq!(
        Sqlite::inspect(&place.store()).expect("whole").mark,
        Ok(fleet.state.head()),
        "the next one writes it"
    );
}

/// `accept-store` was run by root, and the service, another user, could not open the mark.
#[test]
fn a_mark_belongs_to_the_owner_of_the_database_whoever_makes_it() {
    let place = Place::new();
    filled(&mut place.writer(), &["a"]);
    place.remove("store.db-mark");
    // Only root can give a file away; for anybody else there is one owner.
    let _ = std::os::unix::fs::chown(place.store(), Some(65_534), Some(65_534));
    let found = Sqlite::inspect(&place.store()).expect("it can be read");
    Sqlite::accept(&place.store(), found.position()).expect("accepted");
    let owner = |name: &str| {
        let file = std::fs::metadata(place.path(name)).expect("a file");
        (file.uid(), file.gid(), file.mode() & 0o777)
    };
    assert_eq!(owner("store.db-mark"), owner("store.db"));
}

/// It was refused, and a clean stop then emptied the `-wal` with six acknowledged commits in it.
#[test]
fn a_stop_keeps_commits_in_the_wal_that_a_spoilt_shm_hides() {
    let place = Place::new();
    let mut writer = place.writer();
    let mut fleet = filled(&mut writer, &["a"]);
    place.copy_file("store.db-shm", "earlier");
    for id in ["b", "c", "d"] {
        grow(&mut writer, &mut fleet, id);
    }
    // By another process: closing a file here would drop this process's locks on it.
    place.copy_file("earlier", "store.db-shm");
    let refused = writer.append(fleet.state.head(), &[fleet.clone().namespace("e")]);
    assert!(matches!(refused, Err(AppendError::Refused(_))), "{refused:?}");
    drop(writer);
    assert!(std::fs::metadata(place.path("store.db-wal")).expect("a file").len() > 0, "it stays as it is");
    place.remove("store.db-shm");
    assert_eq!(outcome(&place.store(), Access::Write), Ok(Revision(5)));
}

#[test]
fn a_missing_database_beside_its_mark_is_lost_and_not_yet_to_be_made() {
    let place = Place::new();
    filled(&mut place.writer(), &["a"]);
    for file in ["store.db", "store.db-wal", "store.db-shm"] {
        place.remove(file);
    }
    let lost = FeedError::Lost { file: place.store().display().to_string(), beside: "-mark" };
    for access in [Access::Read, Access::Write] {
        assert_eq!(outcome(&place.store(), access), Err(lost.clone()));
    }
    assert_eq!(Sqlite::inspect(&place.store()), Err(lost));
}

#[test]
fn nothing_is_accepted_while_a_process_has_the_store_open() {
    let in_use = |place: &Place| {
        let refused = Sqlite::inspect(&place.store()).expect_err("it is refused").to_string();
        assert!(refused.contains("Stop all processes that use the store first"), "{refused}");
    };
    let place = Place::new();
    let mut writer = place.writer();
    filled(&mut writer, &["a"]);
    in_use(&place);
    drop(writer);
    let reader = place.reader();
    reader.load().expect("a fleet");
    in_use(&place);
    // Nor if the mark, which has the lock, is gone.
    place.rename("store.db-mark", "elsewhere");
    in_use(&place);
    place.rename("elsewhere", "store.db-mark");
    drop(reader);
    Sqlite::inspect(&place.store()).expect("nobody has it open");
}

/// What a running writer says when one of its files is not what it was.
fn append_refused(spoil: impl FnOnce(&Place)) -> (Place, String) {
    let place = Place::new();
    let mut writer = place.writer();
    let fleet = filled(&mut writer, &["a", "b"]);
    spoil(&place);
    let refused = writer.append(fleet.state.head(), &[fleet.clone().namespace("late")]);
    let Err(AppendError::Refused(refused @ (FeedError::Unreachable(_) | FeedError::Corrupt(_)))) = refused
    else {
        panic!("{refused:?}")
    };
    let why = refused.to_string();
    let ways_out = ["Nothing is written until the file is back", "Restore it from a backup"];
    assert!(ways_out.iter().any(|way| why.contains(way)), "{why}");
    (place, why)
}

/// Six writes were acknowledged after `rm db-wal`, and were gone after a kill.
#[test]
fn a_writer_refuses_when_its_wal_or_its_mark_is_removed_replaced_or_cut() {
    for name in ["store.db-wal", "store.db-mark"] {
        assert!(append_refused(|place| place.remove(name)).1.contains(&format!("{name} is gone")));
        let replace = |place: &Place| {
            place.copy_file(name, "copy");
            place.rename("copy", name);
        };
        assert!(append_refused(replace).1.contains("another file has taken the place of"));
    }
    let (_, why) = append_refused(|place| place.truncate_file("store.db-wal", 8_000));
    assert!(why.contains("store.db-wal was cut short"), "{why}");
}

#[test]
fn a_store_whose_wal_was_removed_under_a_writer_that_was_then_killed_is_refused() {
    let place = Place::new();
    let mut writer = place.writer();
    filled(&mut writer, &["a", "b"]);
    place.remove("store.db-wal");
    // As a kill leaves it: no clean stop.
    std::mem::forget(writer);
    place.copy_file("store.db", "killed.db");
    place.copy_file("store.db-mark", "killed.db-mark");
    let refused = outcome(&place.path("killed.db"), Access::Read).expect_err("it is refused").to_string();
    assert!(refused.contains("holds revision 1") && refused.contains("says that revision 3"), "{refused}");
}

/// The case that the mark cannot tell: it was not synced when the power went.
#[test]
fn a_wal_with_damage_in_the_middle_is_refused_even_if_the_mark_is_old() {
    let place = Place::new();
    let mut writer = place.writer();
    let mut fleet = filled(&mut writer, &[]);
    place.copy_file("store.db-mark", "old.db-mark");
    let before = std::fs::metadata(place.path("store.db-wal")).expect("a file").len();
    for id in ["a", "b", "c", "d"] {
        grow(&mut writer, &mut fleet, id);
    }
    place.copy_file("store.db", "old.db");
    place.copy_file("store.db-wal", "old.db-wal");
    let (path, wal) = (place.path("old.db"), place.path("old.db-wal"));
    let mut bytes = std::fs::read(&wal).expect("a file");
    // The first frame after those of the first commit.
    bytes[usize::try_from(before).expect("small") + 100] ^= 1;
    std::fs::write(&wal, bytes).expect("written");
    for access in [Access::Read, Access::Write] {
        let Err(FeedError::Behind(why)) = outcome(&path, access) else { panic!("it was opened") };
        assert!(why.contains("old.db-wal is damaged in frame") && why.contains("accept-store"), "{why}");
    }
    let found = Sqlite::inspect(&path).expect("what can be read is whole");
    assert!(found.wal_problem.is_some());
    Sqlite::accept(&path, found.position()).expect("accepted");
    assert_eq!(outcome(&path, Access::Write), Ok(found.position().revision), "the damaged wal is gone");
    assert!(found.position().revision < fleet.state.head().revision);
}

#[test]
fn a_running_reader_believes_no_store_that_is_behind_what_others_were_told() {
    let place = Place::new();
    let mut writer = place.writer();
    let mut fleet = filled(&mut writer, &["a"]);
    let (reader, slow) = (place.reader(), fleet.state.clone());
    assert_eq!(reader.load(), Ok(slow.clone()));
    grow(&mut writer, &mut fleet, "b");
    place.copy("store.db", "older.db");
    grow(&mut writer, &mut fleet, "c");
    drop(writer);
    place.replace_with("older.db");
    // Its own position is in there: without the mark it would take revision 3 for the head.
    let refused = reader.read(slow.head(), ALL);
    assert!(
        matches!(&refused, Err(FeedError::Behind(why)) if why.contains("holds revision 3")),
        "{refused:?}"
    );
}

#[test]
fn two_writers_leave_the_mark_at_the_later_commit() {
    let place = Place::new();
    let (mut one, mut two) = (place.writer(), place.writer());
    let mut fleet = filled(&mut one, &[]);
    for n in 0..10 {
        grow(&mut one, &mut fleet, &format!("one-{n}"));
        grow(&mut two, &mut fleet, &format!("two-{n}"));
    }
    drop(one);
    grow(&mut two, &mut fleet, "last");
    drop(two);
    assert_eq!(Sqlite::inspect(&place.store()).expect("whole").mark, Ok(fleet.state.head()));
}

/// SQLite follows links and keeps the `-wal` beside the real file; mark and watch looked beside the link, and saw nothing.
#[test]
fn a_store_that_is_opened_by_a_link_has_the_mark_of_the_file_itself() {
    let place = Place::new();
    let link = place.path("link.db");
    std::os::unix::fs::symlink(place.store(), &link).expect("linked");
    // To nothing yet.
    assert!(matches!(Sqlite::open(&link, Access::Write).err(), Some(FeedError::Unreachable(_))));
    let fleet = filled(&mut place.writer(), &["a"]);
    assert_eq!(outcome(&link, Access::Read), Ok(Revision(2)));
    assert_eq!(Sqlite::inspect(&link).expect("it is whole").mark, Ok(fleet.state.head()));
    assert!(!place.path("link.db-mark").exists());
}
