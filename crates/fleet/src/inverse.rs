//! What undoes a commit: operations for `apply`, which decides about them as about any others.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::commit::{Change, Commit};
use crate::key::{DocumentKey, Key, SystemKey};
use crate::kind::Shape;
use crate::space::Space;
use crate::state::State;
use crate::transaction::{Operation, Target};

/// A commit that operations cannot undo.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Irreversible {
    /// A kind that came into force stays in force.
    #[error("the kind `{0}` stays in force: documents may depend on it")]
    Kind(Key),
    /// What the service keeps for itself is not undone.
    #[error("`{0}` is kept by the service itself, and no revert changes it")]
    System(Key),
    /// A forgotten decommission is gone.
    #[error("the decommission record of `{0}` was forgotten, and an empty answer is never made from a guess")]
    Forgotten(Key),
}

/// The operations that undo a commit, given the state that it was made on, for a transaction that is marked as `derived`. A cluster
/// that it decommissioned comes back as a new one of the same id and DNS name; of a cluster that it created, the tombstone remains.
pub fn inverse(before: &State, commit: &Commit) -> Result<Vec<Operation>, Irreversible> {
    let mut operations = Vec::new();
    let is_of_service = commit.changes.iter().all(|change| matches!(change.key(), Key::System(_)));
    let revived: BTreeSet<String> = commit.changes.iter().filter_map(dns_of_cluster).collect();
    for change in &commit.changes {
        let DocumentKey { kind, id } = match change.key() {
            Key::Document(key) => key,
            Key::Kind(_) => return Err(Irreversible::Kind(change.key().clone())),
            // A tombstone goes when its cluster comes back.
            Key::Tombstone(dns) if change.after().is_some() || revived.contains(dns.as_str()) => continue,
            Key::Tombstone(_) => return Err(Irreversible::Forgotten(change.key().clone())),
            // What a commit used of an allowance is used.
            Key::System(SystemKey { space: Space::Allowances, .. }) if !is_of_service => continue,
            Key::System(SystemKey { space: Space::Seed | Space::Allowances | Space::Unknown(_), .. }) => {
                return Err(Irreversible::System(change.key().clone()));
            }
        };
        let (kind, id): (Box<str>, Box<str>) = (kind.as_str().into(), id.as_str().into());
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
    change.key().as_document().filter(|key| key.kind.shape() == Shape::Cluster)?;
    let document = serde_json::from_str::<Value>(change.after()?.as_str()).ok()?;
    document["cluster_dns"].as_str().map(str::to_owned)
}
