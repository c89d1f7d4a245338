//! `apply` decides. All validation of the product is here and nowhere else; the same state, policy and transaction give the
//! same answer on every store, in every process, at any time.

mod check;
mod cluster;
mod draft;
mod normalise;
mod operations;
mod poison;
mod secrets;
mod size;
mod tombstones;

use crate::commit::{Change, ChangesDigest, Commit, Header, Origin};
use crate::guard::{Named, Policy, Removals, Tally};
use crate::hash::{Hash, Position};
use crate::rejection::{Confirmation, Rejection};
use crate::state::State;
use crate::transaction::Transaction;

use draft::Draft;

/// The largest document, but for clusters.
pub const MAX_DOCUMENT: usize = 64 * 1024;
/// The largest cluster document.
pub const MAX_CLUSTER: usize = 1024 * 1024;

/// The most entries that one transaction changes.
pub const MAX_CHANGES: usize = 10_000;
/// The most bytes that the entries which one transaction changes have together.
pub const MAX_CHANGED_BYTES: usize = 32 * 1024 * 1024;

/// A transaction that was accepted.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The fleet after it.
    pub next: State,
    /// What to append to the ledger; none if the transaction changes nothing.
    pub commit: Option<Commit>,
    /// What Flux will delete because of it.
    pub removals: Removals,
    /// What whoever asked should know.
    pub warnings: Vec<String>,
}

impl Applied {
    /// The entries that it changes, sorted by key.
    pub fn changes(&self) -> &[Change] {
        self.commit.as_ref().map(|commit| &*commit.changes).unwrap_or_default()
    }
}

/// Decides about a transaction. A rejected one changes nothing; an accepted one has happened once its commit is appended.
pub fn apply(state: &State, policy: &Policy, transaction: &Transaction) -> Result<Applied, Rejection> {
    match decide(state, policy, transaction)? {
        (applied, None) => Ok(applied),
        (applied, Some(because)) => {
            let digest = applied.removals.digest();
            Err(Rejection::Confirm(Box::new(Confirmation { removals: applied.removals, digest, because })))
        }
    }
}

/// Everything that [`apply`] does but the last word of the guard: what would happen, and why it needs a confirmation if it does.
pub(crate) fn decide(
    state: &State,
    policy: &Policy,
    transaction: &Transaction,
) -> Result<(Applied, Option<String>), Rejection> {
    let mut draft = Draft::new(state, &transaction.operations);
    for (n, operation) in transaction.operations.iter().enumerate() {
        operations::run(&mut draft, n, operation);
    }
    let origin = Origin { time: transaction.origin.time.max(state.time()), ..transaction.origin.clone() };
    let revision = state.head().revision.next();
    let mut outcome = draft.finish(revision, origin.commit)?;
    if transaction.derived {
        outcome.named = Named::default();
    }

    let changed = outcome.changes.iter().map(Change::key);
    let removals = Removals::between(state, &outcome.next, changed, &outcome.named);
    let confirmed = transaction.confirm.map(|digest| digest == removals.digest());
    let unconfirmed = match confirmed {
        // A confirmed request that is sent again has nothing left to do.
        _ if outcome.changes.is_empty() => None,
        Some(true) => None,
        Some(false) => Some("what would be removed is not what was confirmed".to_owned()),
        None => removals.need_confirmation(policy, state, &outcome.next, origin.time),
    };
    let mut tally = removals.tally();
    tally.confirmed = confirmed == Some(true) && !removals.is_empty();

    let (next, commit) = if outcome.changes.is_empty() {
        (state.clone(), None)
    } else {
        let spending = state.spending().after(origin.time, tally);
        let commit = commit(state, &outcome.next, origin, tally, outcome.changes);
        (outcome.next.at(&commit.header, spending), Some(commit))
    };
    Ok((Applied { next, commit, removals, warnings: outcome.warnings }, unconfirmed))
}

fn commit(
    before: &State,
    after: &State,
    origin: Origin,
    removals: Tally,
    mut changes: Vec<Change>,
) -> Commit {
    changes.sort_by(|a, b| a.key().cmp(b.key()));
    let mut header = Header {
        at: Position { revision: before.head().revision.next(), hash: Hash::default() },
        previous: before.head().hash,
        epoch: before.epoch(),
        state: after.digest(),
        origin,
        removals,
        changes: ChangesDigest::of(&changes),
    };
    header.at.hash = header.expected_hash();
    Commit { header, changes }
}
