//! The guard. Flux turns whatever is missing from an answer into deletion, so what a transaction would make Flux delete is
//! worked out before it happens, and what nobody asked for by name, or more than a little, needs a confirmation of exactly
//! that.
//!
//! Removals are read off the changed documents, never by rendering the fleet.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::document::{Cluster, Delivery, Reference};
use crate::hash::{self, Hash};
use crate::ids::{Id, KindName, NAMESPACES, PLATFORM_COMPONENTS, Timestamp};
use crate::key::{DocumentKey, Key};
use crate::kind::{GuardClass, Shape};
use crate::sample::Sample;
use crate::space::Space;
use crate::state::State;

/// How much may be removed by name without a confirmation. It can be raised, not switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// On how many clusters one transaction may remove something.
    pub guard_clusters: u32,
    /// How many decommissions and removals of kinds that are guarded each there may be in an hour.
    pub deletions_per_hour: u32,
    /// How many other removals there may be in an hour.
    pub removals_per_hour: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self { guard_clusters: 3, deletions_per_hour: 10, removals_per_hour: 50 }
    }
}

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
    /// Its path depends on the environment, and that has changed: Flux removes what the old path held.
    Moved,
    /// The namespace that its Helm release lives in goes, and everything in it, though the component stays.
    Evicted,
}

/// An input that was there and enabled, and will not be.
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
    unnamed_decommissions: Vec<Id>,
}

/// A digest of removals and of nothing else, so that an unrelated write does not spoil a confirmation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemovalsDigest(Hash);

impl RemovalsDigest {
    /// Reads what `Display` wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Hash::parse(text).map(Self)
    }
}

impl fmt::Display for RemovalsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RemovalsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many removals a commit made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Clusters decommissioned.
    pub decommissions: u32,
    /// Removed inputs of kinds that are guarded each, but for those of decommissioned clusters.
    pub each: u32,
    /// Removed inputs of other kinds, but for those of decommissioned clusters.
    pub ordinary: u32,
    /// Whether somebody confirmed exactly these.
    pub confirmed: bool,
}

impl Tally {
    /// What counts against the deletions of an hour.
    pub fn deletions(self) -> u32 {
        self.decommissions + self.each
    }
}

/// What the request spelt: only these removals are named.
#[derive(Default, Debug)]
pub(crate) struct Named {
    pub(crate) decommissions: BTreeSet<Id>,
    pub(crate) references: BTreeSet<(Id, KindName, Id)>,
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
        let mut redelivered: BTreeSet<&str> = BTreeSet::new();
        for key in changed {
            match key {
                Key::Document(DocumentKey { kind, id }) => match kind.shape() {
                    Shape::Cluster => {
                        clusters.insert(id);
                    }
                    Shape::Component => {
                        redelivered.extend(is_redelivered(before, after, id).then_some(id.as_str()));
                    }
                    // Nothing refers to what goes, and what is different is still there.
                    Shape::Definition => {}
                },
                // A kind never goes. A record that is forgotten turns an empty answer into none, which deletes nothing.
                Key::Kind(_) | Key::Tombstone(_) => {}
                Key::System(key) => match key.space {
                    Space::Seed | Space::Unknown(_) => {}
                },
            }
        }
        let mut reading = Reading { before, after, named, removals: Self::default() };
        for id in &clusters {
            let Some(old) = before.cluster(id.as_str()) else { continue };
            match after.cluster(id.as_str()) {
                Some(new) => reading.of_cluster(&old.doc, &new.doc),
                None => reading.of_decommission(&old.doc),
            }
        }
        if !redelivered.is_empty() {
            let kind = KindName::from(PLATFORM_COMPONENTS);
            for cluster in after.clusters().filter(|cluster| !clusters.contains(&cluster.doc.id)) {
                for reference in
                    redelivered.iter().filter_map(|id| cluster.doc.component(id)).filter(|r| r.enabled())
                {
                    reading.push(&cluster.doc.id, &kind, &reference.id, Cause::Redelivered, false);
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

    /// What to confirm.
    pub fn digest(&self) -> RemovalsDigest {
        let mut parts: Vec<&[u8]> = Vec::with_capacity(1 + self.decommissions.len() + 3 * self.inputs.len());
        let decommissions = self.decommissions.len().to_be_bytes();
        parts.push(&decommissions);
        parts.extend(self.decommissions.iter().map(|id| id.as_str().as_bytes()));
        for Removal { cluster, kind, input, .. } in &self.inputs {
            parts.extend([cluster.as_str().as_bytes(), kind.as_str().as_bytes(), input.as_str().as_bytes()]);
        }
        RemovalsDigest(hash::tagged("removals", &parts))
    }

    /// How many there are. The inputs of a decommissioned cluster are counted with its decommission.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally { decommissions: count(self.decommissions.len()), ..Tally::default() };
        for removal in self.inputs.iter().filter(|removal| removal.cause != Cause::Decommissioned) {
            match removal.guard {
                GuardClass::Each => tally.each += 1,
                GuardClass::Ordinary => tally.ordinary += 1,
            }
        }
        tally
    }

    /// Why these removals need a confirmation, if they do.
    pub(crate) fn need_confirmation(
        &self,
        policy: &Policy,
        before: &State,
        after: &State,
        now: Timestamp,
    ) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let unnamed = self.inputs.iter().filter(|r| !r.named && r.cause != Cause::Decommissioned);
        let clusters = unnamed.clone().map(|removal| &removal.cluster).collect::<BTreeSet<_>>();
        match (unnamed.count(), self.unnamed_decommissions.as_slice()) {
            (0, []) => {}
            (_, [_, ..]) => {
                let by = self.unnamed_decommissions.iter().collect::<Sample<_>>();
                return Some(format!("the decommission of {by} was not asked for by name"));
            }
            (1, []) => {
                return Some(format!(
                    "1 removal was not asked for by name, on {}",
                    clusters.into_iter().collect::<Sample<_>>()
                ));
            }
            (n, []) => {
                return Some(format!(
                    "{n} removals were not asked for by name, on {}",
                    clusters.into_iter().collect::<Sample<_>>()
                ));
            }
        }
        if let [first, _, ..] = self.decommissions.as_slice() {
            return Some(format!(
                "{} clusters are decommissioned at once, the first of them `{first}`",
                self.decommissions.len()
            ));
        }
        let clusters = self.clusters();
        if clusters.len() > policy.guard_clusters as usize {
            return Some(format!(
                "something is removed on {} clusters, more than {} at once",
                clusters.len(),
                policy.guard_clusters
            ));
        }
        self.empties_a_kind(before, after).or_else(|| self.exceeds_the_hour(policy, before, now))
    }

    fn empties_a_kind(&self, before: &State, after: &State) -> Option<String> {
        let mut removed: BTreeMap<(&Id, &KindName), usize> = BTreeMap::new();
        for removal in self.inputs.iter().filter(|removal| removal.cause != Cause::Decommissioned) {
            *removed.entry((&removal.cluster, &removal.kind)).or_default() += 1;
        }
        for ((cluster, kind), removed) in removed {
            let enabled = |state: &State| {
                let cluster = state.cluster(cluster.as_str());
                cluster.map_or(0, |c| c.doc.inputs_of(kind.as_str()).filter(|(_, enabled)| *enabled).count())
            };
            if removed >= 2 && enabled(after) == 0 {
                return Some(format!("`{cluster}` would be left without any {kind}"));
            }
            let had = enabled(before);
            if removed >= 3 && removed * 2 > had {
                return Some(format!("`{cluster}` would lose {removed} of its {had} {kind}"));
            }
        }
        None
    }

    fn exceeds_the_hour(&self, policy: &Policy, before: &State, now: Timestamp) -> Option<String> {
        let (spent, here) = (before.spending().within_the_hour_before(now), self.tally());
        let deletions = spent.deletions() + here.deletions();
        if here.deletions() > 0 && deletions > policy.deletions_per_hour {
            return Some(format!(
                "{deletions} deletions within an hour (clusters, and kinds that are guarded each); {} go without a confirmation",
                policy.deletions_per_hour
            ));
        }
        let ordinary = spent.ordinary + here.ordinary;
        (here.ordinary > 0 && ordinary > policy.removals_per_hour).then(|| {
            format!(
                "{ordinary} removals within an hour; {} go without a confirmation",
                policy.removals_per_hour
            )
        })
    }
}

/// Reads removals off documents before and after.
struct Reading<'a> {
    before: &'a State,
    after: &'a State,
    named: &'a Named,
    removals: Removals,
}

impl Reading<'_> {
    fn of_decommission(&mut self, old: &Cluster) {
        let is_named = self.named.decommissions.contains(&old.id);
        self.removals.decommissions.push(old.id.clone());
        if !is_named {
            self.removals.unnamed_decommissions.push(old.id.clone());
        }
        for kind in self.before.kinds().referable() {
            for (input, _) in old.inputs_of(kind.name().as_str()).filter(|(_, enabled)| *enabled) {
                self.push(&old.id, kind.name(), input, Cause::Decommissioned, is_named);
            }
        }
    }

    fn of_cluster(&mut self, old: &Cluster, new: &Cluster) {
        let (before, after) = (self.before, self.after);
        for kind in before.kinds().referable() {
            let name = kind.name().as_str();
            for (input, _) in old.inputs_of(name).filter(|(_, enabled)| *enabled) {
                let cause = match new.input(name, input) {
                    None => Cause::Removed,
                    Some(false) => Cause::Disabled,
                    Some(true) if kind.shape() != Shape::Component => continue,
                    Some(true) => match still_there(before, after, old, new, input) {
                        Some(cause) => cause,
                        None => continue,
                    },
                };
                let spelt = matches!(cause, Cause::Removed | Cause::Disabled)
                    && self.named.references.contains(&(old.id.clone(), kind.name().clone(), input.clone()));
                self.push(&old.id, kind.name(), input, cause, spelt);
                // The one rule that knows a kind by its name: a Helm release lives in the namespace that is called like its component.
                if name == NAMESPACES && is_home(after, new, input) {
                    self.push(&old.id, &KindName::from(PLATFORM_COMPONENTS), input, Cause::Evicted, false);
                }
            }
        }
    }

    fn push(&mut self, cluster: &Id, kind: &KindName, input: &Id, cause: Cause, named: bool) {
        let class = |state: &State| state.kinds().get(kind.as_str()).map(|kind| kind.guard());
        let is_each = [class(self.before), class(self.after)].contains(&Some(GuardClass::Each));
        let guard = if is_each { GuardClass::Each } else { GuardClass::Ordinary };
        let (cluster, kind, input) = (cluster.clone(), kind.clone(), input.clone());
        self.removals.inputs.push(Removal { cluster, kind, input, cause, named, guard });
    }
}

/// Why Flux uninstalls a component that stays enabled, if it does.
fn still_there(before: &State, after: &State, old: &Cluster, new: &Cluster, component: &Id) -> Option<Cause> {
    let was = &before.component(component.as_str())?.doc;
    let is = &after.component(component.as_str())?.doc;
    if was.effective_delivery() != is.effective_delivery() {
        return Some(Cause::Redelivered);
    }
    (old.environment != new.environment && was.follows_environment()).then_some(Cause::Moved)
}

/// Whether a Helm release of a cluster lives in this namespace: its release and its namespace are called like the component.
fn is_home(state: &State, cluster: &Cluster, namespace: &Id) -> bool {
    cluster.component(namespace.as_str()).is_some_and(Reference::enabled)
        && state
            .component(namespace.as_str())
            .is_some_and(|component| component.doc.effective_delivery() == Delivery::Helm)
}

fn is_redelivered(before: &State, after: &State, component: &Id) -> bool {
    let delivery = |state: &State| Some(state.component(component.as_str())?.doc.effective_delivery());
    matches!((delivery(before), delivery(after)), (Some(was), Some(is)) if was != is)
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The unconfirmed removals of the last hour, by commit times.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Spending(Arc<[(Timestamp, Tally)]>);

/// How long unconfirmed removals count, in milliseconds.
pub const GUARD_WINDOW: i64 = 3_600_000;

impl Spending {
    /// From the last hour's commits, oldest first.
    pub(crate) fn of(commits: impl IntoIterator<Item = (Timestamp, Tally)>) -> Self {
        commits.into_iter().fold(Self::default(), |spending, (time, tally)| spending.after(time, tally))
    }

    /// The spending after a commit.
    pub(crate) fn after(&self, time: Timestamp, tally: Tally) -> Self {
        let recent = |(at, _): &&(Timestamp, Tally)| is_within_the_hour(*at, time);
        let counts = !tally.confirmed && tally.deletions() + tally.ordinary > 0;
        if !counts && self.0.iter().all(|spent| recent(&spent)) {
            return self.clone();
        }
        Self(self.0.iter().filter(recent).copied().chain(counts.then_some((time, tally))).collect())
    }

    fn within_the_hour_before(&self, now: Timestamp) -> Tally {
        let mut sum = Tally::default();
        for (_, tally) in self.0.iter().filter(|(at, _)| is_within_the_hour(*at, now)) {
            sum.decommissions = sum.decommissions.saturating_add(tally.decommissions);
            sum.each = sum.each.saturating_add(tally.each);
            sum.ordinary = sum.ordinary.saturating_add(tally.ordinary);
        }
        sum
    }
}

fn is_within_the_hour(at: Timestamp, now: Timestamp) -> bool {
    now.0.saturating_sub(at.0) < GUARD_WINDOW
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removals(n: u32) -> Tally {
        Tally { ordinary: n, ..Tally::default() }
    }

    #[test]
    fn spending_forgets_after_an_hour_to_the_millisecond() {
        let spending = Spending::of([(Timestamp(0), removals(3)), (Timestamp(10), removals(4))]);
        assert_eq!(spending.within_the_hour_before(Timestamp(GUARD_WINDOW - 1)).ordinary, 7);
        assert_eq!(spending.within_the_hour_before(Timestamp(GUARD_WINDOW)).ordinary, 4);
        assert_eq!(spending.within_the_hour_before(Timestamp(GUARD_WINDOW + 10)).ordinary, 0);
        assert_eq!(spending.after(Timestamp(GUARD_WINDOW), removals(1)).0.len(), 2);
    }

    #[test]
    fn a_commit_that_removes_nothing_spends_nothing() {
        assert_eq!(Spending::of([(Timestamp(0), Tally::default())]), Spending::default());
    }

    #[test]
    fn confirmed_removals_are_not_spent() {
        let confirmed = Tally { confirmed: true, ..removals(100) };
        assert_eq!(Spending::of([(Timestamp(0), confirmed)]), Spending::default());
    }
}
