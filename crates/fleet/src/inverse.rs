//! What undoes a commit: operations for `apply`, which decides about them as about any others.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::commit::{Change, Commit};
use crate::ids::{CLUSTERS, DECOMMISSIONED, KINDS, Key};
use crate::state::State;
use crate::transaction::{Operation, Target};

/// A commit that operations cannot undo.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Irreversible {
    /// A kind that came into force stays in force.
    #[error("the kind `{0}` stays in force: documents may depend on it")]
    Kind(Key),
    /// A forgotten decommission is gone.
    #[error("the decommission record of `{0}` was forgotten, and an empty answer is never made from a guess")]
    Forgotten(Key),
}

/// The operations that undo a commit, given the state that it was made on, for a transaction that is marked as `derived`. A cluster that it decommissioned comes back as a
/// new one of the same id and DNS name; of a cluster that it created, the tombstone remains.
pub fn inverse(before: &State, commit: &Commit) -> Result<Vec<Operation>, Irreversible> {
    let mut operations = Vec::new();
    let revived: BTreeSet<String> = commit.changes.iter().filter_map(dns_of_cluster).collect();
    for change in &commit.changes {
        let (kind, id): (Box<str>, Box<str>) =
            (change.key().kind.as_str().into(), change.key().id.as_str().into());
        match &*kind {
            KINDS => return Err(Irreversible::Kind(change.key().clone())),
            // A tombstone goes when its cluster comes back.
            DECOMMISSIONED if change.after().is_some() => continue,
            DECOMMISSIONED => {
                if !revived.contains(&*id) {
                    return Err(Irreversible::Forgotten(change.key().clone()));
                }
                continue;
            }
            _ => {}
        }
        let was = before.document(&kind, &id).map(|(map, _)| Value::Object(map));
        operations.push(match (was, change.after()) {
            (Some(body), Some(_)) => Operation::Put { kind, id, body, expect: None },
            (Some(body), None) => Operation::Create { kind, body, replace_decommissioned: true },
            (None, _) => Operation::Delete { kind, target: Target::one(&id) },
        });
    }
    Ok(operations)
}

/// The DNS name of a cluster that a commit wrote.
fn dns_of_cluster(change: &Change) -> Option<String> {
    let after = change.after().filter(|_| change.key().kind.as_str() == CLUSTERS)?;
    let document = serde_json::from_str::<Value>(after.as_str()).ok()?;
    document["cluster_dns"].as_str().map(str::to_owned)
}
