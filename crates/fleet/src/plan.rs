//! A plan: everything that a transaction would do, worked out and not done. Complete at any size; whoever shows it decides how much of
//! it to show.

use std::fmt;

use serde_json::{Map, Value};

use crate::apply::{self, Applied, Decided};
use crate::canonical::Canonical;
use crate::commit::Change;
use crate::effects::Effects;
use crate::guard::{ConfirmDigest, Policy, Questions};
use crate::hash::{self, Hash};
use crate::ids::Revision;
use crate::key::Key;
use crate::rejection::Rejection;
use crate::state::State;
use crate::transaction::Transaction;

/// Everything that a transaction would do.
#[derive(Debug)]
pub struct Plan {
    before: State,
    /// The outcome, if it went through.
    pub applied: Applied,
    /// What the guard asks about it.
    pub questions: Questions,
    /// What confirms it, if that is asked for.
    pub confirm: ConfirmDigest,
    /// What it does to which clusters.
    pub effects: Effects,
    /// Another plan has the same digest exactly if it does the same.
    pub digest: PlanDigest,
}

/// A digest of all that a plan does: every changed document before and after, every effect on every cluster, every removal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlanDigest(Hash);

impl fmt::Display for PlanDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What happens to a document, with the members that are different.
#[derive(Clone, PartialEq, Debug)]
pub enum DocumentChange {
    Added(Map<String, Value>),
    Changed { before: Map<String, Value>, after: Map<String, Value> },
    Removed,
}

/// Works out what would come of a transaction: everything that `apply` does but the last word of the guard.
pub fn plan(state: &State, policy: &Policy, transaction: &Transaction) -> Result<Plan, Rejection> {
    let Decided { applied, questions, digest: confirm, effects } = apply::decide(state, policy, transaction)?;
    let effects = effects
        .unwrap_or_else(|| Effects::between(state, &applied.next, applied.changes().iter().map(Change::key)));
    let digest = digest(state, &applied, &effects);
    Ok(Plan { before: state.clone(), applied, questions, confirm, effects, digest })
}

impl Plan {
    /// The revision that it was worked out on.
    pub fn revision(&self) -> Revision {
        self.before.head().revision
    }

    /// The entries that would change, sorted by key. Each is compared when it is asked for.
    pub fn documents(&self) -> impl ExactSizeIterator<Item = (&Key, DocumentChange)> {
        self.applied.changes().iter().map(|change| (change.key(), self.compared(change)))
    }

    fn compared(&self, change: &Change) -> DocumentChange {
        let Some(after) = change.after() else { return DocumentChange::Removed };
        let members = |body: &Canonical| match change.key() {
            // The record of a decommission follows from the cluster that goes.
            Key::Tombstone(_) => Map::new(),
            key if key.shows_body() => body.to_map(),
            _ => Map::new(),
        };
        let mut after = members(after);
        match self.before.canonical_of(change.key()) {
            None => DocumentChange::Added(after),
            Some(before) => {
                let mut before = members(&before);
                after.retain(|name, value| {
                    let same = before.get(name) == Some(value);
                    if same {
                        before.remove(name);
                    }
                    !same
                });
                DocumentChange::Changed { before, after }
            }
        }
    }
}

fn digest(before: &State, applied: &Applied, effects: &Effects) -> PlanDigest {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for change in applied.changes() {
        parts.push(change.key().to_string().into());
        // The record of a decommission follows from the cluster that goes.
        if !matches!(change.key(), Key::Tombstone(_)) {
            parts.push(before.hash_of(change.key()).unwrap_or_default().0.into());
            parts.push(change.hash().0.into());
        }
    }
    parts.push(effects.digest().0.into());
    parts.push(applied.removals.digest().0.into());
    PlanDigest(hash::tagged("plan", &parts.iter().map(Vec::as_slice).collect::<Vec<_>>()))
}
