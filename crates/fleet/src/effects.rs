//! What a change does to which clusters: for each cluster whose answers change, which inputs are added, changed (field by field) or
//! removed. Identical changes are one effect with many clusters.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::difference::{FieldChange, differences};
use crate::document::Cluster;
use crate::hash::{self, Hash};
use crate::ids::{Id, KindName};
use crate::key::{DocumentKey, Key};
use crate::kind::{Kind, Shape};
use crate::render;
use crate::space::Space;
use crate::state::State;

/// What happens to an input.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InputChange {
    /// It was not there before.
    Added,
    /// It is not there any more.
    Removed,
    /// It is different.
    Changed(Vec<FieldChange>),
}

/// The same thing happening to the same input on some clusters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// The kind of the input.
    pub kind: KindName,
    /// The input.
    pub input: Id,
    /// What happens to it.
    pub change: InputChange,
    /// Where: production first, then by id.
    pub clusters: Vec<Id>,
}

/// How many inputs of a kind are concerned, over all clusters.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// How many are added.
    pub added: usize,
    /// How many are different.
    pub changed: usize,
    /// How many are removed.
    pub removed: usize,
}

/// Everything that a change does to the answers of the fleet.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Effects {
    /// How many inputs of each kind.
    pub totals: BTreeMap<KindName, Totals>,
    /// What happens, by kind, input and change.
    pub effects: Vec<Effect>,
    /// On how many clusters something happens.
    pub clusters: usize,
    /// On how many of each environment: the one that a cluster has before the change, or gets if it is new.
    pub environments: BTreeMap<Id, usize>,
}

impl Effects {
    /// The effects of going from one state to another, which differ in the given entries only.
    pub fn between<'k>(before: &State, after: &State, changed: impl IntoIterator<Item = &'k Key>) -> Self {
        let mut collected = Collected {
            before,
            after,
            groups: Vec::new(),
            by_change: FxHashMap::default(),
            alike: FxHashMap::default(),
            reached: BTreeMap::new(),
            kinds: BTreeSet::new(),
        };
        let mut clusters = BTreeSet::new();
        let mut catalog: BTreeMap<DocumentKey, Arc<Kind>> = BTreeMap::new();
        for key in changed {
            match key {
                Key::Document(key) => match key.kind.shape() {
                    Shape::Cluster => {
                        clusters.insert(&key.id);
                    }
                    Shape::Component | Shape::Definition => {
                        let kind = after.kinds().get(key.kind.as_str());
                        catalog.extend(kind.map(|kind| (key.clone(), kind.clone())));
                    }
                },
                Key::Kind(name) => {
                    let kind = after.kinds().get(name.as_str());
                    if let Some(kind) = kind.filter(|kind| kind.shape() == Shape::Definition) {
                        let ids = after.ids(name.as_str()).into_iter();
                        catalog.extend(ids.map(|id| (DocumentKey::new(name, id), kind.clone())));
                    }
                }
                // What a cluster gets that is decommissioned is told with the cluster.
                Key::Tombstone(_) => {}
                Key::System(key) => match key.space {
                    Space::Seed | Space::Allowances | Space::Unknown(_) => {}
                },
            }
        }
        collected.kinds.extend(catalog.keys().map(|key| key.kind.clone()));
        // What no cluster refers to, none sees; those that change themselves are compared as a whole.
        catalog.retain(|key, _| after.usage(key) > 0);
        for id in &clusters {
            collected.changed_cluster(
                before.cluster(id.as_str()).map(|c| &c.doc),
                after.cluster(id.as_str()).map(|c| &c.doc),
            );
        }
        if !catalog.is_empty() {
            for cluster in after.clusters().filter(|cluster| !clusters.contains(&cluster.doc.id)) {
                let mut sees = false;
                for (key, kind) in &catalog {
                    sees |= collected.changed_definition(&cluster.doc, kind, &key.id);
                }
                if sees {
                    collected.reach(&cluster.doc);
                }
            }
        }
        collected.finish()
    }

    /// What happens on one cluster.
    pub fn on<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = &'a Effect> {
        self.effects.iter().filter(move |effect| effect.clusters.iter().any(|id| id.as_str() == cluster))
    }

    /// A digest of every effect on every cluster.
    pub(crate) fn digest(&self) -> Hash {
        let mut parts: Vec<Cow<'_, [u8]>> = Vec::new();
        let count = |n: usize| Cow::from(Vec::from(n.to_be_bytes()));
        let bytes = |text| Cow::from(str::as_bytes(text));
        for effect in &self.effects {
            parts.push(bytes(effect.kind.as_str()));
            parts.push(bytes(effect.input.as_str()));
            match &effect.change {
                InputChange::Added => parts.push(bytes("added")),
                InputChange::Removed => parts.push(bytes("removed")),
                InputChange::Changed(fields) => {
                    parts.push(count(fields.len()));
                    for field in fields {
                        parts.push(bytes(field.pointer.as_str()));
                        // No value is the empty text.
                        parts.push(bytes(field.old.as_deref().unwrap_or_default()));
                        parts.push(bytes(field.new.as_deref().unwrap_or_default()));
                    }
                }
            }
            parts.push(count(effect.clusters.len()));
            parts.extend(effect.clusters.iter().map(|cluster| bytes(cluster.as_str())));
        }
        hash::tagged("effects", &parts.iter().map(|part| &**part).collect::<Vec<_>>())
    }

    /// Whether nothing happens.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }
}

struct Collected<'a> {
    before: &'a State,
    after: &'a State,
    groups: Vec<Group>,
    by_change: FxHashMap<(KindName, Id, InputChange), usize>,
    /// The group of a catalog change on clusters that have nothing of their own in the input; none if it changes nothing.
    alike: FxHashMap<(KindName, Id), Option<usize>>,
    /// How many clusters of each environment see something.
    reached: BTreeMap<Id, usize>,
    /// The kinds of which a document is different.
    kinds: BTreeSet<KindName>,
}

/// An effect in the making.
struct Group {
    kind: KindName,
    input: Id,
    change: InputChange,
    /// Where; with each whether it sorts after production.
    clusters: Vec<(bool, Id)>,
}

impl Collected<'_> {
    fn changed_cluster(&mut self, old: Option<&Cluster>, new: Option<&Cluster>) {
        let Some(place) = old.or(new) else { return };
        let mut sees = false;
        let kinds = self.after.kinds().clone();
        for kind in kinds.referable() {
            let name = kind.name().as_str();
            // A label of many clusters: what they refer to is not even looked at.
            if let (Some(old), Some(new)) = (old, new)
                && !self.kinds.contains(kind.name())
                && is_same_cluster(old, new)
                && old.shares_inputs(new, name)
            {
                continue;
            }
            let ids = |cluster: Option<&Cluster>| {
                cluster
                    .into_iter()
                    .flat_map(|c| c.inputs_of(name))
                    .map(|(id, _)| id.clone())
                    .collect::<BTreeSet<_>>()
            };
            for id in ids(old).union(&ids(new)) {
                if let (Some(old), Some(new)) = (old, new)
                    && self.is_untouched(old, new, kind, id)
                {
                    continue;
                }
                let was = old.and_then(|cluster| render::input(self.before, cluster, kind, id));
                let is = new.and_then(|cluster| render::input(self.after, cluster, kind, id));
                if let Some(change) = difference(was.as_deref(), is.as_deref()) {
                    let group = self.group(kind, id, change);
                    self.put(group, place);
                    sees = true;
                }
            }
        }
        if sees {
            self.reach(place);
        }
    }

    fn put(&mut self, group: usize, cluster: &Cluster) {
        self.groups[group].clusters.push((!cluster.is_production(), cluster.id.clone()));
    }

    fn reach(&mut self, cluster: &Cluster) {
        match self.reached.get_mut(&cluster.environment) {
            Some(clusters) => *clusters += 1,
            None => drop(self.reached.insert(cluster.environment.clone(), 1)),
        }
    }

    /// Whether an input cannot have changed: a cheap test that spares most of the work when many clusters change a little.
    fn is_untouched(&self, old: &Cluster, new: &Cluster, kind: &Kind, id: &Id) -> bool {
        let (name, text) = (kind.name().as_str(), id.as_str());
        if !is_same_cluster(old, new) {
            return false;
        }
        if kind.shape() == Shape::Component {
            let components = self.before.component(text).zip(self.after.component(text));
            return old.component(text) == new.component(text)
                && old.patches.get(text) == new.patches.get(text)
                && components.is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        }
        let definitions = self.before.definition(name, text).zip(self.after.definition(name, text));
        old.reference(name, text) == new.reference(name, text)
            && definitions.is_some_and(|(one, other)| Arc::ptr_eq(one, other))
    }

    /// Whether the cluster sees anything of it.
    fn changed_definition(&mut self, cluster: &Cluster, kind: &Kind, id: &Id) -> bool {
        let name = kind.name().as_str();
        let has_own_part = match kind.shape() {
            Shape::Component => match cluster.component(id.as_str()) {
                None => return false,
                Some(reference) => {
                    // Patches are in the input as they were, unless the delivery decides otherwise about their values.
                    let delivery =
                        |state: &State| Some(state.component(id.as_str())?.doc.effective_delivery());
                    let redelivered = delivery(self.before) != delivery(self.after);
                    reference.overrides.is_some()
                        || (redelivered && cluster.patches.get(id.as_str()).is_some())
                }
            },
            Shape::Cluster | Shape::Definition => match cluster.reference(name, id.as_str()) {
                None => return false,
                Some(reference) => reference.overrides.is_some(),
            },
        };
        let alike = (kind.name().clone(), id.clone());
        let group = match self.alike.get(&alike) {
            Some(group) if !has_own_part => *group,
            _ => {
                let was = render::input(self.before, cluster, kind, id);
                let is = render::input(self.after, cluster, kind, id);
                let group =
                    difference(was.as_deref(), is.as_deref()).map(|change| self.group(kind, id, change));
                if !has_own_part {
                    self.alike.insert(alike, group);
                }
                group
            }
        };
        if let Some(group) = group {
            self.put(group, cluster);
        }
        group.is_some()
    }

    fn group(&mut self, kind: &Kind, id: &Id, change: InputChange) -> usize {
        let next = self.groups.len();
        let group = *self.by_change.entry((kind.name().clone(), id.clone(), change.clone())).or_insert(next);
        if group == next {
            let (kind, input) = (kind.name().clone(), id.clone());
            self.groups.push(Group { kind, input, change, clusters: Vec::new() });
        }
        group
    }

    fn finish(self) -> Effects {
        let mut totals: BTreeMap<KindName, Totals> = BTreeMap::new();
        let mut effects = Vec::with_capacity(self.groups.len());
        for Group { kind, input, change, mut clusters } in self.groups {
            // Mostly sorted by id already: a sort that finds runs is the quicker one.
            clusters.sort();
            let totals = totals.entry(kind.clone()).or_default();
            match change {
                InputChange::Added => totals.added += clusters.len(),
                InputChange::Removed => totals.removed += clusters.len(),
                InputChange::Changed(_) => totals.changed += clusters.len(),
            }
            let clusters = clusters.into_iter().map(|(_, id)| id).collect();
            effects.push(Effect { kind, input, change, clusters });
        }
        effects.sort_by(|a, b| (&a.kind, &a.input, &a.change).cmp(&(&b.kind, &b.input, &b.change)));
        let clusters = self.reached.values().sum();
        Effects { totals, effects, clusters, environments: self.reached }
    }
}

/// Whether the cluster itself is the same in every input.
fn is_same_cluster(old: &Cluster, new: &Cluster) -> bool {
    old.dns == new.dns && old.environment == new.environment && old.name == new.name
}

fn difference(was: Option<&str>, is: Option<&str>) -> Option<InputChange> {
    match (was, is) {
        (None, None) => None,
        (None, Some(_)) => Some(InputChange::Added),
        (Some(_), None) => Some(InputChange::Removed),
        (Some(was), Some(is)) if was == is => None,
        (Some(was), Some(is)) => {
            let mut fields = differences(was, is);
            // It follows from the other fields, and is another one on every cluster.
            fields.retain(|field| field.pointer.as_str() != "/hash");
            Some(InputChange::Changed(fields))
        }
    }
}
