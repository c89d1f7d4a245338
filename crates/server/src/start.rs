//! How a process that may write gets its store ready: makes it if it is not there, fills a new one, and adds the kinds that it ships and
//! that are not in force. Everything is written by the writer. A kind that is in force is not changed: two versions would change it back
//! and forth.

use std::path::Path;
use std::sync::Arc;

use fleet::{Kind, Operation, Policy, Revision, State};
use ledger::{Access, FeedError, Follow, Memory, Opened, Sqlite};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::{Config, Mode, Store};
use crate::replica::{self, NotNext, Replica};
use crate::seed::{BadSeed, Seed};
use crate::writer::{Decided, NotWritten, Request, Writer};

/// Why a process does not start.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    #[error(transparent)]
    Seed(#[from] BadSeed),
    /// The store is not to be used.
    #[error(transparent)]
    Store(#[from] FeedError),
    /// The store could not be written to.
    #[error(transparent)]
    Write(#[from] NotWritten),
    /// Something else has loaded a fleet before.
    #[error(transparent)]
    NotNext(#[from] NotNext),
    /// A seed was interrupted, and the same file is not given again.
    #[error(
        "loading the seed was interrupted: start with the same SEED_FILE to continue, or remove the store to start over"
    )]
    Interrupted,
}

/// Whether this process makes, fills and changes its store.
pub fn may_write(config: &Config) -> bool {
    config.mode == Mode::Crud || config.store == Store::Memory
}

/// What is to be written into a store that holds nothing, worked out before it is made: a bad seed must not even leave an empty store
/// behind.
pub type First = Option<Vec<Decided>>;

/// Opens the store, and makes it if it is not there and this process may.
pub fn open(config: &Config) -> Result<(Opened, First), NotStarted> {
    match &config.store {
        Store::Memory => {
            info!("the store is in memory: it begins anew, and ends with this process");
            Ok((Memory::new().open(), None))
        }
        Store::Sqlite(path) if may_write(config) => {
            let first = if path.exists() {
                None
            } else {
                Some(changes(&State::empty(), config.seed.as_deref(), &config.policy)?)
            };
            let opened = Sqlite::open(path, Access::Write)?;
            info!(store = opened.store_id, file = %path.display(), "the store is open");
            Ok((opened, first))
        }
        Store::Sqlite(path) => Ok((Sqlite::open(path, Access::Read)?, None)),
    }
}

/// Loads the fleet, fills a new store, adds kinds that are missing, and confirms the head; gives up between two parts of a seed if the
/// process is told to stop. Blocks.
pub fn prepare(
    store: (&dyn Follow, First),
    replica: &Replica,
    writer: &Writer,
    config: (Option<&Path>, &Policy),
    stop: &CancellationToken,
) -> Result<(), NotStarted> {
    let ((follow, first), (seed, policy)) = (store, config);
    let moment = replica::now();
    let state = follow.load()?;
    let is_new = state.head().revision == Revision(0);
    let mut missing = match first.filter(|_| is_new) {
        Some(changes) => changes,
        None => changes(&state, seed, policy)?,
    };
    replica.turn().begin(state)?;
    while let Err(overtaken) = write_all(missing, writer, stop) {
        let NotWritten::Stale { .. } = overtaken else { return Err(overtaken.into()) };
        // Another process has written since. What is missing now is another question: it may have filled the store.
        let known = replica.known().ok_or(NotNext)?;
        missing = changes(&known, seed, policy)?;
    }
    if !stop.is_cancelled() {
        replica.confirm(moment);
    }
    Ok(())
}

/// Writes one change after the other, each only on what the one before it left.
fn write_all(changes: Vec<Decided>, writer: &Writer, stop: &CancellationToken) -> Result<(), NotWritten> {
    for change in changes {
        if stop.is_cancelled() {
            return Ok(());
        }
        let reason = change.reason().to_owned();
        let written = writer.write_decided(change)?;
        let at = written.state.head().revision;
        info!(revision = at.0, %reason, "the service has written to the store");
    }
    Ok(())
}

/// What is to be written before the fleet is served.
fn changes(state: &State, seed: Option<&Path>, policy: &Policy) -> Result<Vec<Decided>, NotStarted> {
    let kinds = missing_kinds(state);
    let is_new = state.head().revision == Revision(0);
    match (seed, state.seeding()) {
        (Some(file), None) if is_new => {
            let seed = Seed::read(file, &Kind::shipped())?;
            Ok(seed.changes(state, policy, kinds)?)
        }
        (Some(file), Some(interrupted)) => {
            let seed = Seed::read(file, &Kind::shipped())?;
            if seed.hash() != interrupted.file {
                return Err(NotStarted::Interrupted);
            }
            warn!(file = %file.display(), "a seed was interrupted; going on with it");
            Ok(seed.changes(state, policy, kinds)?)
        }
        (None, Some(_)) => Err(NotStarted::Interrupted),
        (seed, None) => {
            if let Some(file) = seed {
                info!(file = %file.display(), "the store has held something before: the seed file is not read");
            }
            warn_of_other_kinds(state);
            let reason = if is_new { "a new store" } else { "kinds that were not in force" };
            let added = add(kinds, reason).map(|request| Decided::on(state, policy, request));
            Ok(added.transpose().map_err(NotWritten::from)?.into_iter().collect())
        }
    }
}

/// The shipped kinds that are not in force. A kind that is in force stays as it is.
fn missing_kinds(state: &State) -> Vec<Kind> {
    let is_missing = |kind: &Kind| state.kinds().get(kind.name().as_str()).is_none();
    Kind::shipped().into_iter().filter(is_missing).collect()
}

fn add(kinds: Vec<Kind>, reason: &str) -> Option<Request> {
    let operations: Vec<Operation> =
        kinds.into_iter().map(|kind| Operation::Define(Arc::new(kind))).collect();
    (!operations.is_empty()).then(|| Request::of_service(operations, reason))
}

/// Says which kinds in force are not those of this version.
fn warn_of_other_kinds(state: &State) {
    for kind in Kind::shipped() {
        if state.kinds().get(kind.name().as_str()).is_some_and(|in_force| **in_force != kind) {
            warn!(kind = %kind.name(), "the kind in force is not the one that this version ships; it stays as it is");
        }
    }
}
