//! Damage to any byte of any file of a store, at rest and under running processes. What comes out is the full fleet as it was last
//! acknowledged, or a refusal; never less. How many of each is asserted too: a store that refused everything would not pass.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use fleet::{Position, State, StateDigest};
use ledger::{Access, AppendError, FeedError, Sqlite};
use ledger_conformance::fixture::{ALL, Fleet, Writing, filled, grow};

use crate::place::Place;

const DATABASE: &str = "store.db";
const WAL: &str = "store.db-wal";
const SHM: &str = "store.db-shm";
const MARK: &str = "store.db-mark";
const FILES: [&str; 4] = [DATABASE, WAL, SHM, MARK];

/// The files of a store, to the byte.
type Files = BTreeMap<&'static str, Vec<u8>>;

/// What a store must hold.
type Whole = (Position, StateDigest);

fn whole(state: &State) -> Whole {
    (state.head(), state.digest())
}

/// A store at four moments of its life.
struct Life {
    /// Stopped cleanly, long ago.
    early: Files,
    /// Killed, some commits later.
    middle: Files,
    /// Killed, at the end.
    killed: Files,
    /// Stopped cleanly, at the end.
    clean: Files,
    fleet: Fleet,
}

impl Life {
    fn lived() -> Self {
        let place = Place::new();
        let mut writer = place.writer();
        let mut fleet = filled(&mut writer, &["a", "b", "c", "d"]);
        drop(writer);
        let early = files(&place);
        let mut writer = place.writer();
        for id in ["e", "f", "g"] {
            grow(&mut writer, &mut fleet, id);
        }
        let middle = files(&place);
        let at = fleet.state.head();
        writer.append(at, &[fleet.label("a", "x"), fleet.delete("b")]).expect("appended");
        for id in ["h", "i", "j"] {
            grow(&mut writer, &mut fleet, id);
        }
        let killed = files(&place);
        drop(writer);
        Self { early, middle, killed, clean: files(&place), fleet }
    }
}

/// Read by another process: closing a database here would drop the locks of this one.
fn files(place: &Place) -> Files {
    let read = |name: &'static str| {
        (name, Command::new("cat").arg(place.path(name)).output().expect("cat runs").stdout)
    };
    FILES.into_iter().map(read).collect()
}

fn put(files: &Files) -> Place {
    let place = Place::new();
    for (name, bytes) in files {
        std::fs::write(place.path(name), bytes).expect("written");
    }
    place
}

/// What happens to one file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip(usize, u8),
    Remove,
    Cut(usize),
}

/// How somebody puts an older file in place of another: `mv` gives the path another file, `cp` the file other contents.
const WAYS: [&str; 2] = ["mv", "cp"];

impl Damage {
    /// To a store that nobody has open.
    fn at_rest(self, files: &mut Files, name: &'static str) {
        match self {
            Self::Remove => drop(files.remove(name)),
            Self::Flip(at, bit) => files.get_mut(name).expect("a file")[at] ^= 1 << bit,
            Self::Cut(length) => files.get_mut(name).expect("a file").truncate(length),
        }
    }

    /// By another process, to a store that this one has open.
    fn under_way(self, place: &Place, name: &str, bytes: &[u8]) {
        match self {
            Self::Remove => place.remove(name),
            Self::Cut(length) => place.truncate_file(name, length as u64),
            Self::Flip(at, bit) => {
                let octal = format!(r"printf '\{:03o}'", bytes[at] ^ (1 << bit));
                let write =
                    format!("{octal} | dd of='{}' bs=1 seek={at} conv=notrunc", place.path(name).display());
                let status = Command::new("sh").args(["-c", &write]).stderr(Stdio::null()).status();
                assert!(status.expect("a shell").success());
            }
        }
    }
}

/// Places that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    fn flips(&mut self, number: usize, length: usize) -> Vec<Damage> {
        let mut flip = || Damage::Flip(self.below(length), u8::try_from(self.below(8)).expect("small"));
        (0..number).map(|_| flip()).collect()
    }
}

/// How often a store was read in full, and how often it was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Tally {
    answered: usize,
    refused: usize,
}

impl Tally {
    /// Less than everything is neither.
    #[track_caller]
    fn count(&mut self, outcome: &Result<Whole, FeedError>, allowed: &[Whole], what: &str) {
        match outcome {
            Ok(found) => {
                assert!(allowed.contains(found), "{what}: it has {:?}, not {:?}", found.0, allowed[0].0);
                self.answered += 1;
            }
            Err(error) => {
                let said = error.to_string();
                let ways_out = ["accept-store", "Restore", "restore", "Put back", "is back"];
                assert!(ways_out.iter().any(|way| said.contains(way)), "{what}: {said}");
                self.refused += 1;
            }
        }
    }
}

fn load(store: &Path, access: Access) -> Result<Whole, FeedError> {
    Sqlite::open(store, access)?.follow.load().map(|state| whole(&state))
}

/// Opens a store that nobody has open, as a reader and as a writer; the writer, if it is let in, appends, and what it is told of stays.
fn judge(files: &Files, fleet: &Fleet, tally: &mut Tally, what: &str) {
    let all = whole(&fleet.state);
    let place = put(files);
    tally.count(&load(&place.store(), Access::Read), &[all], what);
    let place = put(files);
    let mut opened = match Sqlite::open(&place.store(), Access::Write) {
        Ok(opened) => opened,
        Err(error) => return tally.count(&Err(error), &[all], what),
    };
    let loaded = opened.follow.load().map(|state| whole(&state));
    tally.count(&loaded, &[all], what);
    if loaded.is_ok() {
        let mut next = fleet.clone();
        let appended = opened.append(all.0, &[next.namespace("late")]);
        drop(opened);
        let allowed = allowed(&appended, all, whole(&next.state));
        Tally::default().count(&load(&place.store(), Access::Read), &allowed, what);
    }
}

/// What a store may hold after an append, by what its author was told.
fn allowed(appended: &Result<(), AppendError>, before: Whole, after: Whole) -> Vec<Whole> {
    match appended {
        Ok(()) => vec![after],
        Err(AppendError::Refused(_) | AppendError::Conflict) => vec![before],
        Err(AppendError::Unknown { .. } | AppendError::Fatal(_)) => vec![before, after],
    }
}

fn flips(life: &Life, at_rest: &Files, name: &'static str, number: usize) -> Tally {
    let mut tally = Tally::default();
    for damage in Dice(7).flips(number, at_rest[name].len()) {
        let mut files = at_rest.clone();
        damage.at_rest(&mut files, name);
        judge(&files, &life.fleet, &mut tally, &format!("{name} {damage:?}"));
    }
    println!("{name}: {number} flipped bits, {tally:?}");
    tally
}

#[test]
fn a_flipped_bit_after_a_clean_stop_shrinks_nothing() {
    let life = Life::lived();
    assert_eq!(life.clean[WAL].len(), 0);
    let database = flips(&life, &life.clean, DATABASE, 100);
    assert!(database.answered > 20 && database.refused > 20, "{database:?}");
    assert_eq!(flips(&life, &life.clean, SHM, 15).refused, 0, "it is made anew");
    assert_eq!(flips(&life, &life.clean, MARK, 30).refused, 0, "the other slots are good");
}

#[test]
fn a_flipped_bit_after_a_kill_shrinks_nothing() {
    let life = Life::lived();
    let database = flips(&life, &life.killed, DATABASE, 60);
    assert!(database.answered > 20, "{database:?}");
    assert_eq!(flips(&life, &life.killed, WAL, 120).answered, 0, "every frame counts");
    assert_eq!(flips(&life, &life.killed, SHM, 15).refused, 0, "it is made anew");
    assert_eq!(flips(&life, &life.killed, MARK, 30).refused, 0, "the other slots are good");
}

#[test]
fn a_file_that_is_removed_cut_or_older_shrinks_nothing() {
    let life = Life::lived();
    let mut tally = Tally::default();
    for at_rest in [&life.clean, &life.killed] {
        for name in FILES {
            let length = at_rest[name].len();
            let cuts = [0, 1, length / 3, length / 2, length - length.min(4_096), length - length.min(1)];
            for damage in cuts.into_iter().map(Damage::Cut).chain([Damage::Remove]) {
                let mut files = at_rest.clone();
                damage.at_rest(&mut files, name);
                judge(&files, &life.fleet, &mut tally, &format!("{name} {damage:?}"));
            }
        }
        // Any of the files, alone or together, as it was earlier. Not with the mark: an older store with its older mark is a good store
        // to whoever has not seen the newer one.
        let sets: [&[&str]; 8] = [
            &[MARK],
            &[DATABASE],
            &[WAL],
            &[SHM],
            &[DATABASE, WAL],
            &[DATABASE, SHM],
            &[WAL, SHM],
            &[DATABASE, WAL, SHM],
        ];
        for (older, set) in
            [&life.early, &life.middle].into_iter().flat_map(|older| sets.map(|set| (older, set)))
        {
            let mut files = at_rest.clone();
            files
                .iter_mut()
                .filter(|(name, _)| set.contains(name))
                .for_each(|(name, file)| file.clone_from(&older[name]));
            judge(&files, &life.fleet, &mut tally, &format!("older {set:?}"));
        }
    }
    println!("removed, cut or older: {tally:?}");
    assert!(tally.answered > 40 && tally.refused > 40, "{tally:?}");
}

/// Damages a store under a writer and a reader. They are told of it, or go on; and so is who comes after a kill and after a clean stop.
fn under_way(life: &Life, what: &str, tally: &mut Tally, damage: impl FnOnce(&Place)) {
    let what = format!("{what} under way");
    let place = put(&life.killed);
    let before = whole(&life.fleet.state);
    let (mut writer, reader) = (place.writer(), place.reader());
    assert_eq!(reader.load().map(|state| whole(&state)), Ok(before));
    damage(&place);

    tally.count(&reader.load().map(|state| whole(&state)), &[before], &what);
    if let Ok(commits) = reader.read(before.0, ALL) {
        assert_eq!(commits, [], "{what}");
    }
    tally.count(&load(&place.store(), Access::Read), &[before], &what);
    let mut next = life.fleet.clone();
    let appended = writer.append(before.0, &[next.namespace("late")]);
    let allowed = allowed(&appended, before, whole(&next.state));
    tally.count(&reader.load().map(|state| whole(&state)), &allowed, &what);

    let killed = files_that_are_there(&place);
    tally.count(&load(&put(&killed).store(), Access::Read), &allowed, &format!("{what}, then killed"));
    drop((writer, reader));
    tally.count(&load(&place.store(), Access::Write), &allowed, &format!("{what}, then stopped"));
}

fn files_that_are_there(place: &Place) -> Files {
    let mut files = files(place);
    files.retain(|name, _| place.path(name).exists());
    files
}

#[test]
fn damage_under_running_processes_shrinks_nothing() {
    let life = Life::lived();
    let mut dice = Dice(11);
    let mut all = Tally::default();
    // Of the `-shm`, more often what is in use of it: two copies of the header, the marks of readers, the list of pages.
    let parts = [
        (DATABASE, 30, usize::MAX),
        (WAL, 50, usize::MAX),
        (SHM, 30, 640),
        (SHM, 10, usize::MAX),
        (MARK, 16, usize::MAX),
    ];
    for (name, flips, part) in parts {
        let mut tally = Tally::default();
        let length = life.killed[name].len();
        let mut damages = dice.flips(flips, length.min(part));
        damages.push(Damage::Remove);
        if name != SHM {
            // A process that has the `-shm` mapped is killed by the kernel when it is cut: nothing to be answered, nothing lost.
            damages.extend([Damage::Cut(0), Damage::Cut(length / 2), Damage::Cut(length - 1)]);
        }
        for damage in &damages {
            under_way(&life, &format!("{name} {damage:?}"), &mut tally, |place| {
                damage.under_way(place, name, &files(place)[name]);
            });
        }
        println!("{name}: {} damages under way, {tally:?}", damages.len());
        all = Tally { answered: all.answered + tally.answered, refused: all.refused + tally.refused };
    }
    assert!(all.answered > 200 && all.refused > 100, "{all:?}");
}

/// Not with the mark, and not all of them: a store that goes back as a whole is noticed by who has seen the newer one only.
#[test]
fn a_file_that_is_replaced_by_an_older_one_under_running_processes_shrinks_nothing() {
    let life = Life::lived();
    let mut tally = Tally::default();
    for (older, name) in
        [&life.early, &life.middle].into_iter().flat_map(|older| FILES.map(|name| (older, name)))
    {
        for way in WAYS {
            under_way(&life, &format!("{way} older {name}"), &mut tally, |place| {
                std::fs::write(place.path("older"), &older[name]).expect("written");
                let status = Command::new(way).args([place.path("older"), place.path(name)]).status();
                assert!(status.expect("it runs").success());
            });
        }
    }
    println!("replaced by an older one under way: {tally:?}");
    assert!(tally.answered > 10 && tally.refused > 10, "{tally:?}");
}
