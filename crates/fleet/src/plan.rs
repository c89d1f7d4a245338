//! A plan: everything that a transaction would do, worked out and not done. Complete at any size; whoever shows it decides how much of
//! it to show.

use std::collections::BTreeMap;
use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::apply::{self, Applied, Decided};
use crate::commit::Change;
use crate::difference::{FieldChange, differences, without_id};
use crate::document::{Delivery, is_production};
use crate::effects::{Effects, InputChange};
use crate::guard::{ConfirmDigest, Policy, Questions, RemovalGroup};
use crate::hash::{self, Hash};
use crate::ids::{CLUSTERS, Id, PLATFORM_COMPONENTS, Revision};
use crate::key::Key;
use crate::rejection::Rejection;
use crate::sample::Sample;
use crate::state::{Served, State};
use crate::transaction::Transaction;

/// Fields of inputs that the templates of `cluster/` make nothing of. A test holds them to it.
pub const UNUSED_BY_TEMPLATES: [&str; 3] = ["/cluster/dns", "/cluster/name", "/component_version"];

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
    /// How much of it happens in each environment, production first, then by name.
    pub environments: Vec<EnvironmentTotals>,
    /// What Flux may do because of it beyond what inputs show.
    pub warnings: Vec<String>,
    /// What else is good to know about it.
    pub notes: Vec<String>,
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

/// What happens to a document.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum DocumentChange {
    /// It is made; what it says, as JSON without its id. None of an entry that follows from others, or that people are not shown.
    Added(Option<String>),
    Changed(Vec<FieldChange>),
    Removed,
}

/// The same thing happening to some documents of a kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocumentGroup<'a> {
    pub change: DocumentChange,
    /// Which: clusters of production first, then by id. Never empty.
    pub keys: Vec<&'a Key>,
}

/// How much of a plan happens in one environment: the one that a cluster has before the change, or gets if it is new.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnvironmentTotals {
    pub environment: Id,
    /// How many clusters see a change.
    pub clusters: usize,
    /// How many inputs Flux deletes.
    pub removals: usize,
}

/// Works out what would come of a transaction: everything that `apply` does but the last word of the guard.
pub fn plan(state: &State, policy: &Policy, transaction: &Transaction) -> Result<Plan, Rejection> {
    let Decided { applied, questions, digest: confirm, effects } = apply::decide(state, policy, transaction)?;
    let effects =
        effects.unwrap_or_else(|| Effects::between(state, &applied.next, applied.changes().map(Change::key)));
    let digest = digest(state, &applied, &effects);
    let environments = environments(state, &applied, &effects);
    let warnings = paths(&applied.next, &effects);
    let notes = unused(&effects).into_iter().chain(forgotten(&applied)).collect();
    let before = state.clone();
    Ok(Plan { before, applied, questions, confirm, effects, environments, warnings, notes, digest })
}

impl Plan {
    /// The revision that it was worked out on.
    pub fn revision(&self) -> Revision {
        self.before.head().revision
    }

    /// How many entries would change.
    pub fn changed(&self) -> usize {
        self.applied.changes().count()
    }

    /// How many clusters it reaches: those that see a change, and those without any input that are decommissioned or leave a list.
    pub fn reached(&self) -> usize {
        let removed = self.applied.removals.clusters();
        if removed.is_empty() {
            return self.effects.clusters;
        }
        let seen: FxHashSet<&Id> = self.effects.effects.iter().flat_map(|effect| &effect.clusters).collect();
        seen.len() + removed.into_iter().filter(|cluster| !seen.contains(cluster)).count()
    }

    /// The entries that would change, by kind; those to which the same happens together. Each is compared when this is asked for.
    pub fn documents(&self) -> Vec<DocumentGroup<'_>> {
        let mut groups: Vec<DocumentGroup<'_>> = Vec::new();
        let mut changes: Vec<&Change> = self.applied.changes().collect();
        for of_kind in changes.chunk_by_mut(|one, other| one.key().space() == other.key().space()) {
            if of_kind[0].key().space() == CLUSTERS {
                of_kind.sort_by_cached_key(|change| !self.is_of_production(change.key().id()));
            }
            let mut known: FxHashMap<DocumentChange, usize> = FxHashMap::default();
            for change in of_kind {
                let happens = self.compared(change);
                match known.get(&happens) {
                    Some(&group) => groups[group].keys.push(change.key()),
                    None => {
                        known.insert(happens.clone(), groups.len());
                        groups.push(DocumentGroup { change: happens, keys: vec![change.key()] });
                    }
                }
            }
        }
        groups
    }

    /// The same removal on several clusters once: what matters most first, and of the clusters production.
    pub fn removals(&self) -> Vec<RemovalGroup<'_>> {
        let mut groups = self.applied.removals.groups();
        for group in &mut groups {
            group.clusters.sort_by_cached_key(|cluster| !self.is_of_production(cluster.as_str()));
        }
        groups
    }

    fn is_of_production(&self, cluster: &str) -> bool {
        environment(&self.before, &self.applied.next, cluster).is_some_and(is_production)
    }

    fn compared(&self, change: &Change) -> DocumentChange {
        let Some(after) = change.after() else { return DocumentChange::Removed };
        // The record of a decommission follows from the cluster that goes.
        let is_shown = change.key().shows_body() && !matches!(change.key(), Key::Tombstone(_));
        match self.before.canonical_of(change.key()) {
            None => DocumentChange::Added(is_shown.then(|| without_id(after.as_str()))),
            Some(before) if is_shown => DocumentChange::Changed(differences(before.as_str(), after.as_str())),
            Some(_) => DocumentChange::Changed(Vec::new()),
        }
    }
}

/// The environment of a cluster as it is, or of a new one as it will be.
fn environment<'s>(before: &'s State, after: &'s State, cluster: &str) -> Option<&'s Id> {
    before.cluster(cluster).or_else(|| after.cluster(cluster)).map(|cluster| &cluster.doc.environment)
}

fn environments(before: &State, applied: &Applied, effects: &Effects) -> Vec<EnvironmentTotals> {
    let mut totals: BTreeMap<(bool, &Id), (usize, usize)> = BTreeMap::new();
    for (environment, clusters) in &effects.environments {
        totals.entry((!is_production(environment), environment)).or_default().0 += clusters;
    }
    for of_cluster in applied.removals.inputs.chunk_by(|one, other| one.cluster == other.cluster) {
        let cluster = of_cluster[0].cluster.as_str();
        if let Some(environment) = environment(before, &applied.next, cluster) {
            totals.entry((!is_production(environment), environment)).or_default().1 += of_cluster.len();
        }
    }
    let totals = totals.into_iter().map(|((_, environment), (clusters, removals))| EnvironmentTotals {
        environment: environment.clone(),
        clusters,
        removals,
    });
    totals.collect()
}

/// Components that come from another path or another chart: Flux applies what is there, and deletes the rest. The guard does not know what is
/// in a path or in a chart.
fn paths(after: &State, effects: &Effects) -> Vec<String> {
    let mut moved: BTreeMap<(&Id, &str), usize> = BTreeMap::new();
    for effect in effects.effects.iter().filter(|effect| effect.kind.as_str() == PLATFORM_COMPONENTS) {
        let InputChange::Changed(fields) = &effect.change else { continue };
        let Some(component) = after.component(effect.input.as_str()) else { continue };
        let (what, field) = match component.doc.effective_delivery() {
            Delivery::Kustomize => ("path", "/component_path"),
            Delivery::Helm if component.doc.comes_from_oci() => ("chart", "/source/oci_url"),
            Delivery::Helm => ("chart", "/component_path"),
        };
        if fields.iter().any(|changed| changed.pointer.as_str() == field) {
            *moved.entry((&effect.input, what)).or_default() += effect.clusters.len();
        }
    }
    let told = moved.into_iter().map(|((component, what), clusters)| {
        let clusters = format!("{clusters} cluster{}", if clusters == 1 { "" } else { "s" });
        format!("the {what} of `{component}` changes on {clusters}: Flux deletes what the new {what} lacks")
    });
    told.collect()
}

/// Inputs that become different in nothing that a template uses.
fn unused(effects: &Effects) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let mut inputs = 0;
    for effect in &effects.effects {
        let InputChange::Changed(fields) = &effect.change else { continue };
        if fields.iter().all(|field| UNUSED_BY_TEMPLATES.contains(&field.pointer.as_str())) {
            names.extend(fields.iter().map(|field| field.pointer.as_str()));
            inputs += effect.clusters.len();
        }
    }
    names.sort_unstable();
    names.dedup();
    let names = names.into_iter().map(|pointer| pointer[1..].replace('/', ".")).collect::<Sample<_>>();
    let inputs = match inputs {
        0 => return None,
        1 => "1 input becomes".to_owned(),
        many => format!("{many} inputs become"),
    };
    Some(format!(
        "{inputs} different only in {names}, which the templates of `cluster/` do not use: no object changes, unless your own templates use it"
    ))
}

/// Records that are forgotten: a poll of that name no longer gets an empty list.
fn forgotten(applied: &Applied) -> Option<String> {
    let gone = applied.changes().filter(|change| change.after().is_none());
    let names: Sample<&str> = gone
        .filter_map(|change| match change.key() {
            Key::Tombstone(dns) => Some(dns.as_str()),
            _ => None,
        })
        .filter(|dns| !matches!(applied.next.served(dns), Some(Served::Live(_))))
        .collect();
    (names.total > 0).then(|| {
        format!(
            "polls of {names} get 404 instead of an empty list: a cluster that still polls keeps what it has"
        )
    })
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
