//! A directory with a store in it, and what can happen to its files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use ledger::{Access, Follow, Opened, Sqlite};
use tempfile::TempDir;

pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn directory(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store.db")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    pub(crate) fn writer(&self) -> Opened {
        Sqlite::open(&self.store(), Access::Write).expect("it opens")
    }

    /// What a process that only reads follows the store with.
    pub(crate) fn reader(&self) -> Arc<dyn Follow> {
        Sqlite::open(&self.store(), Access::Read).expect("it opens").follow
    }

    /// The names of all files, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory()).expect("a directory");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Copies a store with its `-wal` and its mark, as it is on disk.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        for suffix in ["", "-wal", "-mark"] {
            self.copy_file(&format!("{from}{suffix}"), &format!("{to}{suffix}"));
        }
    }

    /// Copies one file, over what may be there. By another process: closing a file here would drop this process's locks on it.
    pub(crate) fn copy_file(&self, from: &str, to: &str) {
        let copied = Command::new("cp").arg(self.path(from)).arg(self.path(to)).status().expect("cp runs");
        assert!(copied.success());
    }

    /// Puts a copy in the store's place, with its own `-wal`. The mark stays.
    pub(crate) fn replace_with(&self, copy: &str) {
        self.rename(copy, "store.db");
        self.rename(&format!("{copy}-wal"), "store.db-wal");
        let _ = std::fs::remove_file(self.path("store.db-shm"));
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        std::fs::rename(self.path(from), self.path(to)).expect("renamed");
    }

    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).expect("removed");
    }

    /// Cuts the database, as another process would.
    pub(crate) fn truncate(&self, length: u64) {
        self.truncate_file("store.db", length);
    }

    pub(crate) fn truncate_file(&self, name: &str, length: u64) {
        let cut = Command::new("truncate").arg(format!("--size={length}")).arg(self.path(name)).status();
        assert!(cut.expect("truncate runs").success());
    }

    pub(crate) fn length(&self) -> u64 {
        std::fs::metadata(self.store()).expect("it is there").len()
    }
}

/// Moves what is in the `-wal` into the file itself.
pub(crate) fn checkpoint(path: &Path) {
    let connection = rusqlite::Connection::open(path).expect("it opens");
    let busy: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).expect("done");
    assert_eq!(busy, 0);
}
