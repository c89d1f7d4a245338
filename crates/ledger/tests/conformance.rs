//! The conformance suite on the backends of this crate.

use ledger::{Access, Memory, Sqlite};
use ledger_conformance::{Store, conformance};

fn in_memory() -> Store {
    let memory = Memory::new();
    Store::new(move || memory.open())
}

fn in_a_file() -> Store {
    let directory = tempfile::tempdir().expect("a directory");
    Store::new(move || Sqlite::open(&directory.path().join("store.db"), Access::Write).expect("it opens"))
}

conformance!(memory, crate::in_memory);
conformance!(sqlite, crate::in_a_file);
