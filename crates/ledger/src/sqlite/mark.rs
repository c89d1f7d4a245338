//! The head mark: a small file beside the database, `<database>-mark`, that says which commit was acknowledged last. It is a lower
//! bound: a store that ends before it, or has another commit there, has gone back, however consistent it looks. SQLite alone cannot
//! tell: a `-wal` that is damaged, removed or replaced is read up to where it still fits, and that is an older fleet.
//!
//! Eight slots of 512 bytes, each one line with a checksum; the greatest valid one counts, and a new one is written into the slot
//! after it. So a torn write spoils one slot, and what the slot held was less than what another one holds. Written after each commit
//! and without a sync, which is enough for a lower bound: the database is synced first. It must not know what a store holds beyond
//! its id and its head.

use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fleet::{Hash, Position, Revision};

use super::Access;
use super::fault::PERMISSIONS;
use super::file::{self, FileId, MODE, sibling, unreachable};
use super::identity::StoreId;
use crate::error::FeedError;

const SLOT: usize = 512;
const SLOTS: usize = 8;
const LENGTH: usize = SLOT * SLOTS;

/// What a mark says: this store was at this position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bound {
    pub(super) store: StoreId,
    pub(super) at: Position,
}

impl Bound {
    /// The line, to the end of its slot.
    fn encode(self) -> [u8; SLOT] {
        let said = format!("flux-resourceset mark 1 {} {} {}", self.store, self.at.revision, self.at.hash);
        let line = format!("{said} {}\n", blake3::hash(said.as_bytes()));
        let mut slot = [b' '; SLOT];
        slot[..line.len()].copy_from_slice(line.as_bytes());
        slot
    }

    fn decode(slot: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(slot).ok()?;
        let mut words = text.strip_prefix("flux-resourceset mark 1 ")?.split_ascii_whitespace();
        let bound = Self {
            store: StoreId::parse(words.next()?)?,
            at: Position {
                revision: Revision(words.next()?.parse().ok()?),
                hash: Hash::parse(words.next()?)?,
            },
        };
        // One form only: this compares the checksum and everything else.
        (bound.encode() == slot).then_some(bound)
    }
}

/// The slots of a mark.
#[derive(Clone, PartialEq, Eq)]
struct Slots([u8; LENGTH]);

impl Slots {
    fn all(bound: Bound) -> Self {
        let mut slots = [0; LENGTH];
        slots.chunks_exact_mut(SLOT).for_each(|slot| slot.copy_from_slice(&bound.encode()));
        Self(slots)
    }

    /// The greatest valid slot and its index; none if no slot is valid, or they speak of several stores.
    fn greatest(&self) -> Option<(usize, Bound)> {
        let valid = || {
            let slots = self.0.chunks_exact(SLOT).enumerate();
            slots.filter_map(|(index, slot)| Some((index, Bound::decode(slot)?)))
        };
        let greatest = valid().max_by_key(|(_, bound)| bound.at.revision)?;
        valid().all(|(_, bound)| bound.store == greatest.1.store).then_some(greatest)
    }
}

/// What some slots say. To work that out is a tenth of what a small append costs, and mostly they are those of the last time.
struct Decoded {
    slots: Slots,
    index: usize,
    bound: Bound,
}

/// An open mark, with a shared lock on it for as long as it is open: [`Mark::lock`] finds out whether any process has the store open.
pub(super) struct Mark {
    path: PathBuf,
    file: File,
    id: FileId,
    last: Mutex<Option<Decoded>>,
}

/// Why a mark says nothing, as the end of a sentence about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unusable(&'static str);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// How long a writer waits for another process that is writing the mark. It is a matter of microseconds.
const TURN: Duration = Duration::from_millis(1);
const TURNS: usize = 1_000;

impl Mark {
    /// Opens the mark of a database; none if there is none.
    pub(super) fn open(database: &Path, access: Access) -> Result<Option<Self>, FeedError> {
        let Some(mark) = Self::open_unlocked(database, access)? else { return Ok(None) };
        match mark.file.try_lock_shared() {
            Ok(()) => Ok(Some(mark)),
            Err(TryLockError::WouldBlock) => Err(FeedError::Unreachable(format!(
                "{} is locked: `accept-store` is running",
                mark.path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(unreachable(&mark.path, &error)),
        }
    }

    /// Opens the mark and makes sure that no other process has the store open.
    pub(super) fn lock(database: &Path) -> Result<Option<Self>, FeedError> {
        let Some(mark) = Self::open_unlocked(database, Access::Write)? else { return Ok(None) };
        match mark.file.try_lock() {
            Ok(()) => Ok(Some(mark)),
            Err(TryLockError::WouldBlock) => Err(in_use(database)),
            Err(TryLockError::Error(error)) => Err(unreachable(&mark.path, &error)),
        }
    }

    fn open_unlocked(database: &Path, access: Access) -> Result<Option<Self>, FeedError> {
        let path = sibling(database, "-mark");
        let opened = OpenOptions::new().read(true).write(access == Access::Write).open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(FeedError::Unreachable(format!("{}: {error}; {PERMISSIONS}", path.display())));
            }
            Err(error) => return Err(unreachable(&path, &error)),
        };
        let found = file.metadata().map_err(|error| unreachable(&path, &error))?;
        let id = FileId { device: found.dev(), inode: found.ino() };
        Ok(Some(Self { path, file, id, last: Mutex::default() }))
    }

    /// Makes a mark, unless there is one by then. Whole or not at all, and synced.
    pub(super) fn create(database: &Path, bound: Bound) -> Result<(), FeedError> {
        let path = sibling(database, "-mark");
        let draft = sibling(&path, &format!(".{}.new", StoreId::draw()?));
        let made = make(&draft, &path, database, &Slots::all(bound));
        // Nothing to be done about it, and nothing that does harm.
        let _ = fs::remove_file(&draft);
        made.and_then(|()| File::open(file::directory(database))?.sync_all())
            .map_err(|error| unreachable(&path, &error))
    }

    /// Whether the path still leads to this file.
    pub(super) fn is_in_place(&self) -> Result<bool, FeedError> {
        Ok(file::look(&self.path)?.is_some_and(|look| look.id == self.id))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the mark says.
    pub(super) fn read(&self) -> Result<Bound, FeedError> {
        self.look()?.map_err(|unusable| self.refusal(unusable))
    }

    /// What the mark says, or why it says nothing.
    pub(super) fn look(&self) -> Result<Result<Bound, Unusable>, FeedError> {
        Ok(self.decoded(&mut self.last())?.map(|decoded| decoded.bound))
    }

    fn last(&self) -> MutexGuard<'_, Option<Decoded>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the slots, and what they say.
    fn decoded<'a>(
        &self,
        last: &'a mut Option<Decoded>,
    ) -> Result<Result<&'a mut Decoded, Unusable>, FeedError> {
        let mut slots = Slots([0; LENGTH]);
        let length = self.file.metadata().map_err(|error| unreachable(&self.path, &error))?.len();
        match self.file.read_exact_at(&mut slots.0, 0) {
            Ok(()) if length == LENGTH as u64 => {}
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => {
                return Err(unreachable(&self.path, &error));
            }
            _ => return Ok(Err(Unusable("does not have the length that it was made with"))),
        }
        if last.as_ref().is_none_or(|last| last.slots != slots) {
            let greatest = slots.greatest();
            *last = greatest.map(|(index, bound)| Decoded { slots, index, bound });
        }
        Ok(last.as_mut().ok_or(Unusable("holds no valid line")))
    }

    fn refusal(&self, unusable: Unusable) -> FeedError {
        FeedError::Behind(format!(
            "the head mark {} {unusable}, so nothing tells whether the store holds every acknowledged commit. {}",
            self.path.display(),
            advice(None)
        ))
    }

    /// Notes a position, if it is beyond what is noted. `turn` is a file whose lock writers of all processes take in turns, so that
    /// none overwrites what another has noted in between.
    pub(super) fn raise(&self, bound: Bound, turn: Option<&File>) -> Result<(), FeedError> {
        let locked = turn.filter(|turn| take_turn(turn));
        let mut last = self.last();
        let decoded = self.decoded(&mut last);
        let decoded = decoded.and_then(|decoded| decoded.map_err(|unusable| self.refusal(unusable)));
        let raised = decoded.and_then(|decoded| {
            let noted = decoded.bound;
            if noted.store != bound.store {
                return Err(self.refusal(Unusable("belongs to another store")));
            }
            if noted.at.revision == bound.at.revision && noted.at.hash != bound.at.hash {
                return Err(self.refusal(Unusable("belongs to another history")));
            }
            if noted.at.revision >= bound.at.revision {
                return Ok(());
            }
            let index = (decoded.index + 1) % SLOTS;
            let (line, at) = (bound.encode(), index * SLOT);
            self.file.write_all_at(&line, at as u64).map_err(|error| unreachable(&self.path, &error))?;
            decoded.slots.0[at..at + SLOT].copy_from_slice(&line);
            (decoded.index, decoded.bound) = (index, bound);
            Ok(())
        });
        if let Some(turn) = locked {
            // Closing the file would unlock it as well.
            let _ = turn.unlock();
        }
        raised
    }

    /// Says this position and nothing else from now on; on disk when it returns.
    pub(super) fn rewrite(&self, bound: Bound) -> Result<(), FeedError> {
        let written = self.file.write_all_at(&Slots::all(bound).0, 0);
        written
            .and_then(|()| self.file.set_len(LENGTH as u64))
            .and_then(|()| self.file.sync_all())
            .map_err(|error| unreachable(&self.path, &error))
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl Drop for Mark {
    /// Closing the file is not enough: a child that is just being forked has it open too, and the lock with it.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// If somebody keeps the lock, the mark is written all the same: what could be lost then is one step of a bound.
fn take_turn(turn: &File) -> bool {
    for _ in 0..TURNS {
        if turn.try_lock().is_ok() {
            return true;
        }
        std::thread::sleep(TURN);
    }
    false
}

fn make(draft: &Path, path: &Path, database: &Path, slots: &Slots) -> io::Result<()> {
    fs::write(draft, slots.0)?;
    fs::set_permissions(draft, Permissions::from_mode(MODE))?;
    // Only root may; for anybody else the mark is theirs, as the `-wal` would be.
    if let Ok(owner) = fs::metadata(database) {
        let _ = chown(draft, Some(owner.uid()), Some(owner.gid()));
    }
    File::open(draft)?.sync_all()?;
    match fs::hard_link(draft, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn in_use(database: &Path) -> FeedError {
    FeedError::Unreachable(format!(
        "a process has {} open. Stop all processes that use the store first",
        database.display()
    ))
}

/// What to do about a store that is not believed; `holds` is what it holds, if that is known.
pub(super) fn advice(holds: Option<Position>) -> String {
    let expect = holds.map(|at| format!(" --expect {at}")).unwrap_or_default();
    format!(
        "Bring back the newest database with its `-wal` and its `-mark`. If you want to go on with the store as it is, stop all \
         processes that use it and run `flux-resourceset accept-store{expect}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(store: StoreId, revision: u64) -> Bound {
        let hash = Hash(*blake3::hash(&revision.to_be_bytes()).as_bytes());
        Bound { store, at: Position { revision: Revision(revision), hash } }
    }

    fn made() -> (tempfile::TempDir, PathBuf, StoreId) {
        let directory = tempfile::tempdir().expect("a directory");
        let database = directory.path().join("store.db");
        let store = StoreId::draw().expect("an id");
        Mark::create(&database, bound(store, 0)).expect("made");
        (directory, database, store)
    }

    fn open(database: &Path) -> Mark {
        Mark::open(database, Access::Write).expect("no error").expect("a mark")
    }

    #[test]
    fn the_greatest_position_counts_whatever_order_they_are_noted_in() {
        let (_directory, database, store) = made();
        let mark = open(&database);
        for (noted, says) in [(1, 1), (9, 9), (3, 9), (17, 17), (25, 25), (24, 25)] {
            mark.raise(bound(store, noted), None).expect("raised");
            assert_eq!(mark.read(), Ok(bound(store, says)));
        }
    }

    #[test]
    fn another_commit_at_the_same_revision_is_not_noted() {
        let (_directory, database, store) = made();
        let mark = open(&database);
        mark.raise(bound(store, 1), None).expect("raised");
        let mut forked = bound(store, 1);
        forked.at.hash = Hash::default();
        assert!(matches!(mark.raise(forked, None), Err(FeedError::Behind(_))));
        assert_eq!(mark.read(), Ok(bound(store, 1)));
    }

    #[test]
    fn writers_that_race_do_not_lose_the_greatest_position() {
        let (directory, database, store) = made();
        let turn = directory.path().join("turn");
        fs::write(&turn, "").expect("written");
        std::thread::scope(|scope| {
            for first in 1..=4 {
                let (mark, turn) = (open(&database), File::open(&turn).expect("a file"));
                scope.spawn(move || {
                    for revision in (first..=400).step_by(4) {
                        mark.raise(bound(store, revision), Some(&turn)).expect("raised");
                        let noted = mark.read().expect("a position").at.revision;
                        assert!(noted >= Revision(revision), "{noted} after {revision}");
                    }
                });
            }
        });
        assert_eq!(open(&database).read(), Ok(bound(store, 400)));
    }

    #[test]
    fn a_torn_slot_leaves_the_position_before_it() {
        let (_directory, database, store) = made();
        let mark = open(&database);
        for revision in 1..=20 {
            mark.raise(bound(store, revision * 8), None).expect("raised");
        }
        let index = mark.decoded(&mut mark.last()).expect("read").expect("a position").index;
        mark.file.write_all_at(b"torn", (index * SLOT) as u64 + 60).expect("written");
        assert_eq!(mark.read(), Ok(bound(store, 19 * 8)));
    }

    #[test]
    fn every_flipped_bit_of_the_last_slot_is_noticed() {
        let (_directory, database, store) = made();
        let mark = open(&database);
        mark.raise(bound(store, 1), None).expect("raised");
        let (index, last) = {
            let mut last = mark.last();
            let decoded = mark.decoded(&mut last).expect("read").expect("a position");
            (decoded.index, decoded.bound)
        };
        for bit in 0..SLOT * 8 {
            let mut slot = last.encode();
            slot[bit / 8] ^= 1 << (bit % 8);
            mark.file.write_all_at(&slot, (index * SLOT) as u64).expect("written");
            assert_eq!(mark.read(), Ok(bound(store, 0)), "bit {bit}");
        }
    }

    #[test]
    fn a_mark_without_a_valid_slot_or_of_two_stores_is_not_used() {
        let (_directory, database, store) = made();
        let mark = open(&database);
        let other = bound(StoreId::draw().expect("an id"), 5);
        mark.file.write_all_at(&other.encode(), 0).expect("written");
        assert!(matches!(mark.read(), Err(FeedError::Behind(_))));
        mark.file.write_all_at(&[0; LENGTH], 0).expect("written");
        assert!(matches!(mark.read(), Err(FeedError::Behind(_))));
        mark.rewrite(bound(store, 3)).expect("rewritten");
        assert_eq!(mark.read(), Ok(bound(store, 3)));
        mark.file.set_len(SLOT as u64).expect("cut");
        assert!(matches!(mark.read(), Err(FeedError::Behind(_))));
    }

    #[test]
    fn it_is_locked_exclusively_only_while_nobody_has_it_open() {
        let (_directory, database, _) = made();
        let (reader, writer) = (Mark::open(&database, Access::Read).expect("opened"), open(&database));
        assert_eq!(Mark::lock(&database).err(), Some(in_use(&database)));
        drop((reader, writer));
        let locked = Mark::lock(&database).expect("locked");
        assert!(matches!(Mark::open(&database, Access::Read).err(), Some(FeedError::Unreachable(_))));
        drop(locked);
        open(&database);
    }
}
