//! What goes from what clusters are served. Each DNS name is compared with itself, whatever the cluster behind it is called, and so is
//! the list of each environment's clusters.
//!
//! It is worked out from the clusters and components that changed, never by rendering the fleet.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::tally::Tally;
use crate::document::{Cluster, Component, Delivery, Reference};
use crate::hash::{self, Hash};
use crate::ids::{CLUSTERS, Id, KindName, NAMESPACES, PLATFORM_COMPONENTS};
use crate::key::{DocumentKey, Key};
use crate::kind::{GuardClass, Shape};
use crate::space::Space;
use crate::state::{Served, State};

/// Why an input is deleted from a cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cause {
    /// The whole cluster is decommissioned.
    Decommissioned,
    /// The reference is gone.
    Removed,
    /// The reference is there, but disabled.
    Disabled,
    /// It is installed in another way: Flux uninstalls the old one.
    Redelivered,
    /// It comes from another place: another artifact, or another path because of the environment. Flux removes what only the old place
    /// held.
    Moved,
    /// The namespace that its Helm release lives in goes, and everything in it, though the component stays.
    Evicted,
    /// Another cluster has taken over the DNS name, and does not have it.
    Replaced,
    /// The cluster has left the list of its environment's clusters, by which machines are made and deleted.
    LeftEnvironment,
}

impl Cause {
    /// The word for it. It is part of what a confirmation confirms.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Decommissioned => "decommissioned",
            Self::Removed => "removed",
            Self::Disabled => "disabled",
            Self::Redelivered => "redelivered",
            Self::Moved => "moved",
            Self::Evicted => "evicted",
            Self::Replaced => "replaced",
            Self::LeftEnvironment => "left_environment",
        }
    }
}

/// An input that was there and enabled, and will not be. Of a cluster that leaves an environment's list, the kind is that of clusters
/// and the input is the environment.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Removal {
    /// The cluster that loses it.
    pub cluster: Id,
    /// Its kind.
    pub kind: KindName,
    /// What it is.
    pub input: Id,
    /// Why.
    pub cause: Cause,
    /// Whether the request spelt this very reference or cluster.
    pub named: bool,
    /// How its kind is guarded, before or after.
    pub guard: GuardClass,
    /// What it becomes, if it is installed otherwise or is in another list: whoever confirms that confirms nothing else.
    becomes: Option<Box<str>>,
}

/// The same input that goes from some clusters for the same reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemovalGroup<'a> {
    pub kind: &'a KindName,
    pub input: &'a Id,
    pub cause: Cause,
    pub guard: GuardClass,
    /// The clusters, sorted.
    pub clusters: Vec<&'a Id>,
}

/// Everything that a transaction makes Flux delete.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Removals {
    /// The clusters that are decommissioned, sorted.
    pub decommissions: Vec<Id>,
    /// The inputs that go, sorted by cluster, kind and id.
    pub inputs: Vec<Removal>,
    /// Those decommissions that the request did not spell.
    pub(super) unnamed_decommissions: Vec<Id>,
}

/// What the request spelt: only these removals are named.
#[derive(Default, Debug)]
pub(crate) struct Named {
    pub(crate) decommissions: BTreeSet<Id>,
    pub(crate) references: BTreeSet<(Id, KindName, Id)>,
    /// The clusters whose environment it spelt.
    pub(crate) environments: BTreeSet<Id>,
}

impl Removals {
    /// What Flux deletes between two states that differ in the given entries only.
    pub(crate) fn between<'k>(
        before: &State,
        after: &State,
        changed: impl IntoIterator<Item = &'k Key>,
        named: &Named,
    ) -> Self {
        let mut clusters: BTreeSet<&Id> = BTreeSet::new();
        let mut reinstalled: BTreeSet<&str> = BTreeSet::new();
        for key in changed {
            match key {
                Key::Document(DocumentKey { kind, id }) => match kind.shape() {
                    Shape::Cluster => {
                        clusters.insert(id);
                    }
                    Shape::Component => {
                        let key = DocumentKey { kind: kind.clone(), id: id.clone() };
                        let is_moved = after.usage(&key) > 0 && is_reinstalled(before, after, id);
                        reinstalled.extend(is_moved.then_some(id.as_str()));
                    }
                    // Nothing refers to what goes, and what is different is still there.
                    Shape::Definition => {}
                },
                // A kind never goes. A record that is forgotten turns an empty answer into none, which deletes nothing.
                Key::Kind(_) | Key::Tombstone(_) => {}
                Key::System(key) => match key.space {
                    Space::Seed | Space::Allowances | Space::Unknown(_) => {}
                },
            }
        }
        let mut reading = Reading { before, after, named, removals: Self::default() };
        for id in &clusters {
            let Some(old) = before.cluster(id.as_str()) else { continue };
            match (after.cluster(id.as_str()), after.served(old.doc.dns.as_str())) {
                (Some(new), _) => reading.of_cluster(&old.doc, &new.doc),
                (None, Some(Served::Live(successor))) => reading.of_successor(&old.doc, &successor.doc),
                (None, _) => reading.of_decommission(&old.doc),
            }
        }
        if !reinstalled.is_empty() {
            for cluster in after.clusters().filter(|cluster| !clusters.contains(&cluster.doc.id)) {
                for reference in
                    reinstalled.iter().filter_map(|id| cluster.doc.component(id)).filter(|r| r.enabled())
                {
                    reading.of_component(&cluster.doc, &cluster.doc, &reference.id);
                }
            }
        }
        let mut removals = reading.removals;
        removals.inputs.sort();
        // An input goes once, whatever it goes for: a component that is installed in another way while its namespace goes, for example.
        removals.inputs.dedup_by(|later, first| {
            (&later.cluster, &later.kind, &later.input) == (&first.cluster, &first.kind, &first.input)
        });
        removals
    }

    /// The clusters on which something is removed.
    pub fn clusters(&self) -> BTreeSet<&Id> {
        self.inputs.iter().map(|removal| &removal.cluster).chain(&self.decommissions).collect()
    }

    /// The same removal on several clusters once; what matters most comes first.
    pub fn groups(&self) -> Vec<RemovalGroup<'_>> {
        let mut groups: BTreeMap<_, Vec<&Id>> = BTreeMap::new();
        for Removal { cluster, kind, input, cause, guard, .. } in &self.inputs {
            groups.entry((kind, input, *cause, *guard)).or_default().push(cluster);
        }
        let group =
            |((kind, input, cause, guard), clusters)| RemovalGroup { kind, input, cause, guard, clusters };
        let mut groups: Vec<RemovalGroup<'_>> = groups.into_iter().map(group).collect();
        groups.sort_by_key(|group| {
            // A decommissioned cluster is named by itself. What takes data with it is to be seen whatever else goes.
            (
                group.cause == Cause::Decommissioned,
                group.guard != GuardClass::Each,
                Reverse(group.clusters.len()),
            )
        });
        groups
    }

    /// Whether nothing is removed.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.decommissions.is_empty()
    }

    /// A digest of these removals with their causes, and of nothing else.
    pub(crate) fn digest(&self) -> Hash {
        let mut parts: Vec<&[u8]> = Vec::with_capacity(1 + self.decommissions.len() + 5 * self.inputs.len());
        let decommissions = self.decommissions.len().to_be_bytes();
        parts.push(&decommissions);
        parts.extend(self.decommissions.iter().map(|id| id.as_str().as_bytes()));
        for Removal { cluster, kind, input, cause, becomes, .. } in &self.inputs {
            let becomes = becomes.as_deref().unwrap_or_default();
            let texts = [cluster.as_str(), kind.as_str(), input.as_str(), cause.as_str(), becomes];
            parts.extend(texts.map(str::as_bytes));
        }
        hash::tagged("removals", &parts)
    }

    /// How many there are. The inputs of a decommissioned cluster are counted with its decommission.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally { decommissions: count(self.decommissions.len()), ..Tally::default() };
        for removal in self.inputs.iter().filter(|removal| removal.cause != Cause::Decommissioned) {
            match removal.guard {
                GuardClass::Each => tally.each += 1,
                GuardClass::Ordinary => tally.ordinary += 1,
            }
        }
        tally
    }
}

/// Reads removals off clusters before and after.
struct Reading<'a> {
    before: &'a State,
    after: &'a State,
    named: &'a Named,
    removals: Removals,
}

impl Reading<'_> {
    fn of_decommission(&mut self, old: &Cluster) {
        let is_named = self.decommission(old);
        for kind in self.before.kinds().referable() {
            for (input, _) in old.inputs_of(kind.name().as_str()).filter(|(_, enabled)| *enabled) {
                self.push(&old.id, kind.name(), input, Cause::Decommissioned, is_named);
            }
        }
    }

    /// Notes a cluster that is no longer in any list; whether the request spelt it.
    fn decommission(&mut self, old: &Cluster) -> bool {
        let is_named = self.named.decommissions.contains(&old.id);
        self.removals.decommissions.push(old.id.clone());
        if !is_named {
            self.removals.unnamed_decommissions.push(old.id.clone());
        }
        is_named
    }

    /// A cluster goes, and another takes over its DNS name: whoever polls it gets what that one has.
    fn of_successor(&mut self, old: &Cluster, successor: &Cluster) {
        self.decommission(old);
        self.of_inputs(old, successor, |_| Cause::Replaced);
    }

    fn of_cluster(&mut self, old: &Cluster, new: &Cluster) {
        self.of_inputs(old, new, |gone| gone);
        if old.environment != new.environment {
            let is_named = self.named.environments.contains(&old.id);
            self.push(&old.id, &KindName::from(CLUSTERS), &old.environment, Cause::LeftEnvironment, is_named);
            self.becomes(new.environment.to_string());
        }
    }

    /// The inputs that whoever polls one DNS name no longer gets. `gone` is the cause if the reference went, or was disabled.
    fn of_inputs(&mut self, old: &Cluster, new: &Cluster, gone: impl Fn(Cause) -> Cause) {
        for kind in self.before.kinds().referable() {
            let name = kind.name().as_str();
            for (input, _) in old.inputs_of(name).filter(|(_, enabled)| *enabled) {
                let cause = match new.input(name, input) {
                    None => gone(Cause::Removed),
                    Some(false) => gone(Cause::Disabled),
                    Some(true) => {
                        if kind.shape() == Shape::Component {
                            self.of_component(old, new, input);
                        }
                        continue;
                    }
                };
                let is_named = cause != Cause::Replaced
                    && self.named.references.contains(&(old.id.clone(), kind.name().clone(), input.clone()));
                self.push(&old.id, kind.name(), input, cause, is_named);
                // The one rule that knows a kind by its name: a Helm release lives in the namespace that is called like its component.
                if name == NAMESPACES && is_home(self.after, new, input) {
                    self.push(&old.id, &KindName::from(PLATFORM_COMPONENTS), input, Cause::Evicted, false);
                }
            }
        }
    }

    /// A component that stays enabled, and that Flux uninstalls all the same because it comes in another way or from another place.
    fn of_component(&mut self, old: &Cluster, new: &Cluster, id: &Id) {
        let (was, is) = (Installed::on(self.before, old, id), Installed::on(self.after, new, id));
        if let (Some(was), Some(is)) = (was, is)
            && was != is
        {
            let cause = if was.delivery == is.delivery { Cause::Moved } else { Cause::Redelivered };
            self.push(&old.id, &KindName::from(PLATFORM_COMPONENTS), id, cause, false);
            self.becomes(is.text());
        }
    }

    /// What the last one becomes.
    fn becomes(&mut self, text: String) {
        if let Some(removal) = self.removals.inputs.last_mut() {
            removal.becomes = Some(text.into());
        }
    }

    fn push(&mut self, cluster: &Id, kind: &KindName, input: &Id, cause: Cause, named: bool) {
        let class = |state: &State| state.kinds().get(kind.as_str()).map(|kind| kind.guard());
        let is_each = cause == Cause::LeftEnvironment
            || [class(self.before), class(self.after)].contains(&Some(GuardClass::Each));
        let guard = if is_each { GuardClass::Each } else { GuardClass::Ordinary };
        let (cluster, kind, input) = (cluster.clone(), kind.clone(), input.clone());
        self.removals.inputs.push(Removal { cluster, kind, input, cause, named, guard, becomes: None });
    }
}

/// How a component is installed on a cluster. If this changes, Flux uninstalls what was there.
#[derive(PartialEq)]
struct Installed<'a> {
    delivery: Delivery,
    place: Option<Place<'a>>,
}

/// Where a directory of manifests comes from. A Helm release keeps what it has when its chart comes from elsewhere.
#[derive(PartialEq)]
struct Place<'a> {
    oci_url: &'a str,
    /// The environment, if it is part of the path.
    environment: Option<&'a Id>,
}

impl<'a> Installed<'a> {
    fn text(&self) -> String {
        let place = self.place.as_ref().map(|place| (place.oci_url, place.environment.map(Id::as_str)));
        format!("{} {place:?}", self.delivery.as_str())
    }

    fn on(state: &'a State, cluster: &'a Cluster, component: &Id) -> Option<Self> {
        let component = &state.component(component.as_str())?.doc;
        let delivery = component.effective_delivery();
        let place = (delivery == Delivery::Kustomize).then(|| Place {
            oci_url: &component.oci_url,
            environment: component.follows_environment().then_some(&cluster.environment),
        });
        Some(Self { delivery, place })
    }
}

/// Whether a component that changed may be installed differently on clusters that did not.
fn is_reinstalled(before: &State, after: &State, component: &Id) -> bool {
    let how = |component: &Component| {
        let delivery = component.effective_delivery();
        (delivery, component.follows_environment(), component.oci_url.clone())
    };
    let of = |state: &State| state.component(component.as_str()).map(|component| how(&component.doc));
    matches!((of(before), of(after)), (Some(was), Some(is)) if was != is)
}

/// Whether a Helm release of a cluster lives in this namespace: its release and its namespace are called like the component.
fn is_home(state: &State, cluster: &Cluster, namespace: &Id) -> bool {
    cluster.component(namespace.as_str()).is_some_and(Reference::enabled)
        && state
            .component(namespace.as_str())
            .is_some_and(|component| component.doc.effective_delivery() == Delivery::Helm)
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
