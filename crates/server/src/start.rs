//! How a process that may write gets its store ready: makes it if it is not there, fills a new one, and brings the kinds that it ships
//! into force.

use std::path::Path;
use std::sync::Arc;

use fleet::{
    Applied, CommitId, Kind, Operation, Origin, Policy, Rejection, Revision, State, Transaction, apply,
};
use ledger::{Access, AppendError, FeedError, Ledger, Memory, Sqlite};
use tracing::{info, warn};
use uuid::Uuid;

use crate::config::{Config, Mode, Store};
use crate::seed::{BadSeed, Seed};
use crate::writer;

/// The actor of what the service does by itself.
const ACTOR: &str = "flux-resourceset";

/// Why a process does not start.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// The seed file is bad.
    #[error(transparent)]
    Seed(#[from] BadSeed),
    /// The store is not to be used.
    #[error(transparent)]
    Store(#[from] FeedError),
    /// The store could not be written to.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// Stored documents do not fit the kinds that this version ships.
    #[error("the kinds of this version do not fit what is stored:\n{0}")]
    Kinds(String),
}

/// Whether this process makes, fills and changes its store.
pub fn may_write(config: &Config) -> bool {
    config.mode == Mode::Crud || config.store == Store::Memory
}

/// Opens the store, and makes it if it is not there and this process may.
pub fn open(config: &Config) -> Result<Arc<dyn Ledger>, NotStarted> {
    match &config.store {
        Store::Memory => {
            info!("the store is in memory: it begins anew, and ends with this process");
            Ok(Arc::new(Memory::new()))
        }
        Store::Sqlite(path) if may_write(config) => {
            if !path.exists() {
                // A bad seed must not even leave an empty store behind.
                first(config.seed.as_deref(), &config.policy)?;
            }
            let store = Sqlite::open(path, Access::Write)?;
            info!(store = store.store_id(), file = %path.display(), "the store is open");
            Ok(Arc::new(store))
        }
        Store::Sqlite(path) => Ok(Arc::new(Sqlite::open(path, Access::Read)?)),
    }
}

/// Fills a new store, or brings the kinds of this version into force, and gives the fleet as it is then.
pub async fn prepare(ledger: &dyn Ledger, config: &Config) -> Result<State, NotStarted> {
    loop {
        let state = ledger.load().await?;
        let is_new = state.head().revision == Revision(0);
        let applied = if is_new {
            first(config.seed.as_deref(), &config.policy)?
        } else {
            if let Some(seed) = &config.seed {
                info!(file = %seed.display(), "the store has held something before: the seed file is not read");
            }
            kinds_of_this_version(&state, &config.policy)?
        };
        let Some(commit) = applied.commit else { return Ok(state) };
        match ledger.append(state.head(), vec![commit]).await {
            Ok(()) => {
                info!(
                    revision = applied.next.head().revision.0,
                    "{}",
                    if is_new { "the store is filled" } else { "the kinds of this version are in force" }
                );
                return Ok(applied.next);
            }
            Err(AppendError::Conflict) => warn!("another process was faster; looking again"),
            Err(error) => return Err(error.into()),
        }
    }
}

fn origin(reason: &str) -> Origin {
    Origin {
        commit: CommitId(Uuid::now_v7().as_u128()),
        time: writer::now(),
        actor: ACTOR.into(),
        reason: Some(reason.into()),
        request: None,
    }
}

fn transaction(operations: Vec<Operation>, reason: &str) -> Transaction {
    Transaction { operations, derived: false, confirm: None, origin: origin(reason) }
}

/// The first commit of a store: the kinds, and the seed.
fn first(seed_file: Option<&Path>, policy: &Policy) -> Result<Applied, NotStarted> {
    let kinds = Kind::shipped();
    let seed = seed_file.map(|file| Seed::read(file, &kinds)).transpose()?;
    let mut operations: Vec<Operation> =
        kinds.into_iter().map(|kind| Operation::Define(Arc::new(kind))).collect();
    let before = operations.len();
    let reason = match seed_file {
        Some(file) => format!("a new store, filled from {}", file.display()),
        None => "a new store".to_owned(),
    };
    operations.extend(seed.iter().flat_map(|seed| seed.operations.iter().cloned()));
    let outcome = apply(&State::empty(), policy, &transaction(operations, &reason));
    let violations = outcome.as_ref().err().map(Rejection::violations).unwrap_or_default();
    if let (Some(seed), Some(file)) = (&seed, seed_file) {
        seed.verdict(file, violations, before)?;
    }
    outcome.map_err(|rejection| NotStarted::Kinds(rejection.to_string()))
}

fn kinds_of_this_version(state: &State, policy: &Policy) -> Result<Applied, NotStarted> {
    let changed = Kind::shipped()
        .into_iter()
        .filter(|kind| state.kinds().get(kind.name().as_str()).is_none_or(|in_force| **in_force != *kind));
    let operations: Vec<Operation> = changed.map(|kind| Operation::Define(Arc::new(kind))).collect();
    let reason = format!("the kinds of version {}", env!("CARGO_PKG_VERSION"));
    apply(state, policy, &transaction(operations, &reason)).map_err(|rejection| {
        let told = rejection.violations().iter().map(|violation| {
            let key = violation.key.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("  {key} {}: {}", violation.pointer.as_str(), violation.message)
        });
        NotStarted::Kinds(told.collect::<Vec<_>>().join("\n"))
    })
}
