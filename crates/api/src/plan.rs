//! What a change does, or would do, to the clusters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{DECOMMISSIONED, EACH, NeededAllowance};

/// The answer to a dry run: one page of it. The lists `documents`, `effects.changes` and `removals.groups`, in this order, go on from page
/// to page; everything else is the same on each.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The revision that it was worked out on.
    pub revision: u64,
    /// What it does, in short: the same for two plans that do the same to every document and every cluster, wherever they were worked out.
    pub digest: String,
    /// How many documents it would change.
    pub changed: usize,
    /// These, each different change once.
    pub documents: Vec<PlannedDocuments>,
    /// How much of it happens in each environment, production first, then by name.
    pub environments: Vec<EnvironmentTotals>,
    /// How many clusters it reaches: those that see a change, and those without any input that are decommissioned or leave a list.
    pub reached: usize,
    /// What the clusters would see.
    pub effects: Effects,
    /// What Flux would delete.
    pub removals: Removals,
    /// Where a selector chose clusters that lack what was to be changed on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<Lacking>,
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
    /// What else is good to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What to send as `after`, with the same request, for the next page; absent from the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
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

impl Plan {
    /// The kind and the id of each document that would change, and what would happen to it.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str, Change)> {
        let names = |group| {
            let PlannedDocuments { kind, change, ids, .. }: &PlannedDocuments = group;
            ids.iter().map(|id| (&**kind, &**id, *change))
        };
        self.documents.iter().flat_map(names)
    }

    /// Takes in the next page. A group that a page does not hold whole goes on as the first of its list on the next.
    pub fn append(&mut self, page: Self) {
        go_on(&mut self.documents, page.documents, |group| (&mut group.ids, group.count));
        go_on(&mut self.effects.changes, page.effects.changes, |group| (&mut group.clusters, group.count));
        go_on(&mut self.removals.groups, page.removals.groups, |group| (&mut group.clusters, group.count));
        self.next = page.next;
    }
}

fn go_on<T>(groups: &mut Vec<T>, page: Vec<T>, of: impl Fn(&mut T) -> (&mut Vec<String>, usize)) {
    let mut page = page.into_iter();
    if let Some((names, count)) = groups.last_mut().map(&of)
        && names.len() < count
        && let Some(mut rest) = page.next()
    {
        names.append(of(&mut rest).0);
    }
    groups.extend(page);
}

/// The same change of some documents of a kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlannedDocuments {
    /// Their kind; `decommissioned` for the records of decommissioned clusters.
    pub kind: String,
    /// What would happen to them.
    pub change: Change,
    /// Field by field, if they become different. Where a group goes on from the page before, they are not repeated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// What new ones say, without the id. Not repeated either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Value>,
    /// How many there are.
    pub count: usize,
    /// Their ids: clusters of production first, then by id.
    pub ids: Vec<String>,
}

/// How much happens in one environment: the one that a cluster has before the change, or gets if it is new.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EnvironmentTotals {
    /// Its name.
    pub environment: String,
    /// How many clusters see a change.
    pub clusters: usize,
    /// How many inputs Flux deletes.
    pub removals: usize,
}

/// Clusters that a selector chose and that lack what was to be changed on them. They stay as they are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lacking {
    /// The index of the operation, 0 for a single write.
    pub operation: usize,
    /// What chose them.
    pub selector: String,
    /// The kind of what they lack.
    pub kind: String,
    /// What they lack.
    pub id: String,
    /// How many were chosen.
    pub selected: usize,
    /// How many of these lack it.
    pub lacking: usize,
    /// The first of them, production first.
    pub clusters: Vec<String>,
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
    /// Field by field, if it becomes different. Where a group goes on from the page before, they are not repeated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// How many clusters see it.
    pub count: usize,
    /// These: production first, then by id.
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
    /// those of decommissioned clusters last. A plan has all of them; a problem at most 1,000, with 100 clusters each. The counts above are
    /// of all of them.
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
    /// These; in a plan production first, then by id.
    pub clusters: Vec<String>,
}

impl Removals {
    /// How many things go, clusters without any input included.
    pub fn total(&self) -> usize {
        self.inputs + self.decommissions
    }
}

impl RemovalGroup {
    /// Whether its deletion takes data with it.
    pub fn takes_data(&self) -> bool {
        self.guard == EACH
    }

    /// Whether these are clusters that leave the list of an environment, which is then the input.
    pub fn is_left_environment(&self) -> bool {
        self.cause == "left_environment"
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

    fn page(documents: &serde_json::Value, next: Option<&str>) -> Plan {
        from_value(json!({
            "revision": 1, "digest": "d", "changed": 4, "documents": documents, "environments": [],
            "effects": {"clusters": 0, "totals": {}, "changes": []},
            "reached": 0,
            "removals": {"decommissions": 0, "inputs": 0, "clusters": 0, "decommissioned": [], "first": [], "groups": []},
            "confirm": null, "next": next,
        }))
        .expect("a plan")
    }

    #[test]
    fn pages_make_one_plan_and_a_group_that_goes_on_is_one_group() {
        let group = |count: usize, ids: &[&str]| json!({"kind": "clusters", "change": "changed", "fields": [{"pointer": "/a"}], "count": count, "ids": ids});
        let rest = json!({"kind": "clusters", "change": "changed", "count": 3, "ids": ["c"]});
        let mut plan = page(&json!([group(3, &["a", "b"])]), Some("there"));
        plan.append(page(&json!([rest, group(1, &["d"])]), None));
        assert_eq!(plan, page(&json!([group(3, &["a", "b", "c"]), group(1, &["d"])]), None));
        // One that is whole does not go on.
        plan.append(page(&json!([group(1, &["e"])]), None));
        assert_eq!(plan.documents.len(), 3);
    }

    #[test]
    fn a_plan_that_does_not_say_what_it_changes_is_not_taken_for_one_that_changes_nothing() {
        let nothing = json!({
            "revision": 1,
            "effects": {"clusters": 0, "totals": {}, "changes": []},
            "reached": 0,
            "removals": {"decommissions": 0, "inputs": 0, "clusters": 0, "decommissioned": [], "first": [], "groups": []},
            "confirm": null,
        });
        let error = from_value::<Plan>(nothing).expect_err("it has no digest").to_string();
        assert_eq!(error, "missing field `digest`");
    }
}
