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
use crate::effects::Effects;
use crate::guard::{Case, ConfirmDigest, Named, Policy, Questions, Removals, Tally};
use crate::hash::{Hash, Position};
use crate::ids::{Id, KindName};
use crate::key::Key;
use crate::rejection::{Confirmation, NeedsAllowance, Rejection};
use crate::sample::Sample;
use crate::space::SystemEntry;
use crate::state::State;
use crate::transaction::Transaction;

use draft::{Draft, Outcome};

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
    /// The allowance that it uses. The commit changes that, too, and nobody asked for it.
    allowance: Option<Key>,
    /// Where selectors chose clusters that lack what was to be changed on them.
    pub lacking: Vec<Lacking>,
    /// What whoever asked should know.
    pub warnings: Vec<String>,
}

/// An operation on references that a selector aimed at clusters of which some do not have the reference. They stay as they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lacking {
    /// The index of the operation.
    pub operation: usize,
    pub selector: String,
    pub kind: KindName,
    pub id: Id,
    /// How many clusters the selector chose.
    pub selected: usize,
    /// Those of them that lack it, production first.
    pub clusters: Sample<Id>,
}

impl Applied {
    /// The entries that whoever asked changes, sorted by key.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        let all = self.commit.as_ref().map(|commit| &*commit.changes).unwrap_or_default();
        all.iter().filter(|change| self.allowance.as_ref() != Some(change.key()))
    }
}

/// A transaction that keeps every rule, and what the guard still asks about it.
pub(crate) struct Decided {
    pub(crate) applied: Applied,
    pub(crate) questions: Questions,
    /// What answers those questions that a confirmation answers.
    pub(crate) digest: ConfirmDigest,
    /// What it does to answers, if the guard wanted to know.
    pub(crate) effects: Option<Effects>,
}

/// Decides about a transaction. A rejected one changes nothing; an accepted one has happened once its commit is appended.
pub fn apply(state: &State, policy: &Policy, transaction: &Transaction) -> Result<Applied, Rejection> {
    let Decided { applied, questions, digest, .. } = decide(state, policy, transaction)?;
    if let Some(because) = questions.confirmation() {
        let removals = applied.removals;
        return Err(Rejection::Confirm(Box::new(Confirmation { removals, digest, because })));
    }
    if let Some(because) = questions.allowance {
        let (removals, actor) = (applied.removals, transaction.origin.actor.clone());
        return Err(Rejection::Allowance(Box::new(NeedsAllowance { removals, actor, because })));
    }
    Ok(applied)
}

/// Everything that [`apply`] does but the last word of the guard: what would happen, and what the guard asks about it.
pub(crate) fn decide(
    state: &State,
    policy: &Policy,
    transaction: &Transaction,
) -> Result<Decided, Rejection> {
    let origin = Origin { time: state.time_of_commit(transaction.origin.time), ..transaction.origin.clone() };
    let mut draft = Draft::new(state, &transaction.operations, &origin);
    for (n, operation) in transaction.operations.iter().enumerate() {
        operations::run(&mut draft, n, operation);
        draft.within_bounds(n, transaction.operations.len())?;
    }
    let revision = state.head().revision.next();
    let Outcome { next, mut changes, mut named, lacking, warnings } = draft.finish(revision)?;
    if transaction.derived {
        named = Named::default();
    }
    let removals = Removals::between(state, &next, changes.iter().map(Change::key), &named);
    let wants_effects = policy.changed_clusters.is_some();
    let effects = wants_effects.then(|| Effects::between(state, &next, changes.iter().map(Change::key)));
    let case = Case {
        before: state,
        after: &next,
        removals: &removals,
        effects: effects.as_ref(),
        transaction,
        now: origin.time,
    };
    let judgement = case.judge(policy);
    let digest = judgement.digest;
    if changes.is_empty() {
        // A confirmed request that is sent again has nothing left to do.
        let applied =
            Applied { next: state.clone(), commit: None, removals, allowance: None, lacking, warnings };
        return Ok(Decided { applied, questions: Questions::default(), digest, effects });
    }
    let allowance = judgement.uses.as_ref().map(|(key, _)| Key::System(key.clone()));
    let next = match judgement.uses {
        None => next,
        Some((key, left)) => {
            let (change, step) =
                draft::system_change(state, origin.commit, key, left.map(SystemEntry::Allowance));
            changes.push(change);
            next.advance(revision, None, vec![step])
        }
    };
    let tally = Tally { passed: judgement.passed, ..removals.tally() };
    let spending = state.spending().after(origin.time, tally);
    let commit = commit(state, &next, origin, tally, changes);
    let next = next.at(&commit.header, spending);
    let applied = Applied { next, commit: Some(commit), removals, allowance, lacking, warnings };
    Ok(Decided { applied, questions: judgement.questions, digest, effects })
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
