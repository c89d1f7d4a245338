//! What a change does, or would do, to the clusters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{DECOMMISSIONED, EACH, NeededAllowance};

/// The answer to a dry run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The revision that it was worked out on.
    pub revision: u64,
    /// What it does, in short: the same for two plans that do the same to every document and every cluster, wherever they were worked out.
    pub digest: String,
    /// How many documents it would change.
    pub changed: usize,
    /// The first of these.
    pub documents: Vec<PlannedDocument>,
    /// What the clusters would see.
    pub effects: Effects,
    /// What Flux would delete.
    pub removals: Removals,
    /// What to send as `X-Confirm`, if the guard would ask for it.
    pub confirm: Option<String>,
    /// What the guard would ask about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<Asks>,
    /// Why the guard would stop it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// What somebody must be allowed before it goes through, confirmed or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance: Option<NeededAllowance>,
    /// What one should know about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What the guard asks somebody to confirm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asks {
    /// What goes.
    Removals,
    /// How many clusters it reaches.
    Clusters,
}

/// A document that a change would make, change or remove.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlannedDocument {
    /// Its kind; `decommissioned` for the record of a decommissioned cluster.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// What would happen to it.
    pub change: Change,
    /// Of one that changes, the fields that become different, as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Of one that changes, the fields that become different, as they would be; of a new one, all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Whether these two are missing because there is too much to tell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untold: bool,
}

/// What the clusters see of a change.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Effects {
    /// How many clusters see anything.
    pub clusters: usize,
    /// How much, by kind.
    pub totals: BTreeMap<String, Totals>,
    /// Each different change once, with the clusters that see it.
    pub changes: Vec<Effect>,
}

/// How many inputs of a kind change, counted per cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Totals {
    /// That come.
    pub added: usize,
    /// That become different.
    pub changed: usize,
    /// That go.
    pub removed: usize,
}

/// One change of one input, on all clusters that see exactly this.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Effect {
    /// The kind of the input.
    pub kind: String,
    /// The input.
    pub input: String,
    /// What happens to it.
    pub change: Change,
    /// Field by field, if it becomes different.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// How many clusters see it.
    pub count: usize,
    /// The first of these.
    pub clusters: Vec<String>,
}

/// What happens to an input, or to a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It comes.
    Added,
    /// It becomes different.
    Changed,
    /// It goes.
    Removed,
}

/// One field that becomes different. A side that is absent from the JSON was absent from the input.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FieldChange {
    /// Where in the input.
    pub pointer: String,
    /// What it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// What it becomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// What Flux deletes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Removals {
    /// How many clusters are decommissioned.
    pub decommissions: usize,
    /// How many inputs go, those of decommissioned clusters included.
    pub inputs: usize,
    /// On how many clusters.
    pub clusters: usize,
    /// The first of the decommissioned clusters.
    pub decommissioned: Vec<String>,
    /// The first of the inputs, cluster by cluster.
    pub first: Vec<Removal>,
    /// The same on several clusters once, counted over all of them; those first that take data with them, then those on most clusters, and
    /// those of decommissioned clusters last. At most 1,000 are listed; the counts above are of all of them.
    pub groups: Vec<RemovalGroup>,
}

/// An input that Flux deletes from a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Removal {
    /// The cluster.
    pub cluster: String,
    /// The kind of the input.
    pub kind: String,
    /// The input.
    pub input: String,
    /// Why: `decommissioned`, `removed`, `disabled`, `redelivered`, `moved`, `evicted`, `replaced` or `left_environment`.
    pub cause: String,
    /// Whether the request spelt it out.
    pub named: bool,
}

/// An input that Flux deletes from clusters, for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RemovalGroup {
    /// The kind of the input.
    pub kind: String,
    /// The input.
    pub input: String,
    /// Why, as for a single one.
    pub cause: String,
    /// `each` if its deletion takes data with it, else `ordinary`.
    pub guard: String,
    /// From how many clusters.
    pub count: usize,
    /// The first of these.
    pub clusters: Vec<String>,
}

impl RemovalGroup {
    /// Whether its deletion takes data with it.
    pub fn takes_data(&self) -> bool {
        self.guard == EACH
    }

    /// Whether it goes because its clusters are decommissioned.
    pub fn is_decommission(&self) -> bool {
        self.cause == DECOMMISSIONED
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::Plan;

    #[test]
    fn a_plan_that_does_not_say_what_it_changes_is_not_taken_for_one_that_changes_nothing() {
        let nothing = json!({
            "revision": 1,
            "effects": {"clusters": 0, "totals": {}, "changes": []},
            "removals": {"decommissions": 0, "inputs": 0, "clusters": 0, "decommissioned": [], "first": [], "groups": []},
            "confirm": null,
        });
        let error = from_value::<Plan>(nothing).expect_err("it has no digest").to_string();
        assert_eq!(error, "missing field `digest`");
    }
}
