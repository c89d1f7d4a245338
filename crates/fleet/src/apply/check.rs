//! Rules that concern more than one document, checked on the fleet as the whole transaction leaves it.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::cluster;
use crate::document::{Cluster, Component, Delivery, Stored};
use crate::finding::Finding;
use crate::fragment::Size;
use crate::ids::{CLUSTERS, Id, KindName, PLATFORM_COMPONENTS};
use crate::key::{DocumentKey, Key};
use crate::kind::{Kind, Shape};
use crate::pointer::Pointer;
use crate::rejection::{Reason, Violations};
use crate::render::{self, MAX_INPUTS, MAX_SENT, MAX_STORED};
use crate::sample::Sample;
use crate::shelf::Shelf;
use crate::space::Space;
use crate::state::State;
use crate::work::Work;

/// What a transaction touched.
#[derive(Default)]
pub(super) struct Touched {
    /// The entries that are different now, and the operation that made each so.
    pub(super) keys: Vec<(usize, Key)>,
    /// Documents that could not be read at all: what refers to them is not wrong on top of that.
    pub(super) unreadable: BTreeSet<DocumentKey>,
}

pub(super) fn rules(
    before: &State,
    next: &State,
    touched: &Touched,
    violations: &mut Violations,
    work: &mut Work,
) {
    let mut catalog = CatalogChange::default();
    let is_component = |key: &Key| key.as_document().is_some_and(|key| key.kind.shape() == Shape::Component);
    let touches_catalog = touched.keys.iter().any(|(_, key)| is_component(key));
    let dependents = if touches_catalog { Dependents::of(next) } else { Dependents::default() };
    for (operation, key) in &touched.keys {
        if work.is_too_much() {
            return;
        }
        match key {
            Key::Kind(name) => redefined(before, next, *operation, name, touched, violations),
            Key::Document(key) => match key.kind.shape() {
                Shape::Cluster => {
                    catalog.checked.insert(key.id.as_str());
                    if let Some(stored) = next.cluster(key.id.as_str()) {
                        let found = cluster::findings(before, next, &stored.doc, &touched.unreadable);
                        violations.invalid(*operation, key, found);
                        let kinds: Vec<&Kind> = next.kinds().referable().map(|kind| &**kind).collect();
                        for finding in oversized(next, stored, &kinds) {
                            violations.add(*operation, Some(key.into()), Reason::TooLarge, finding);
                        }
                    }
                }
                Shape::Component => match next.component(key.id.as_str()) {
                    Some(component) => {
                        if dependents.has_circle {
                            // Each of them looks for it.
                            work.look(next.components().count());
                        }
                        let found =
                            component_findings(next, &component.doc, &touched.unreadable, &dependents);
                        violations.invalid(*operation, key, found);
                        catalog.note(before, next, *operation, key);
                    }
                    None => {
                        deleted(next, *operation, key, &dependents, violations, work);
                    }
                },
                Shape::Definition => match next.definition(key.kind.as_str(), key.id.as_str()) {
                    Some(_) => catalog.note(before, next, *operation, key),
                    None => {
                        deleted(next, *operation, key, &dependents, violations, work);
                    }
                },
            },
            // Nothing of the fleet refers to these.
            Key::Tombstone(_) => {}
            Key::System(key) => match key.space {
                Space::Seed | Space::Allowances | Space::Unknown(_) => {}
            },
        }
    }
    catalog.check_users(before, next, violations, work);
}

/// Nothing may refer to what is deleted.
fn deleted(
    next: &State,
    operation: usize,
    key: &DocumentKey,
    dependents: &Dependents<'_>,
    violations: &mut Violations,
    work: &mut Work,
) {
    let id = key.id.as_str();
    let mut in_use = |by: Sample<Id>, message: String| {
        let finding = Finding::new(Pointer::root(), message);
        violations.add(operation, Some(key.into()), Reason::InUse { by }, finding);
    };
    if next.usage(key) > 0 {
        // All references of a cluster.
        work.walk(next.cluster_count(), 4);
        let users = next.users(key.kind.as_str(), id).map(|cluster| cluster.doc.id.clone());
        let by = users.collect::<Sample<Id>>();
        let message = format!("`{key}` is still referred to by the clusters {by}; remove it from them first");
        in_use(by, message);
    }
    if key.kind.shape() == Shape::Component {
        let mut dependents: Vec<Id> =
            dependents.on(&key.id).iter().map(|component| component.id.clone()).collect();
        dependents.sort();
        if !dependents.is_empty() {
            let by = dependents.into_iter().collect::<Sample<Id>>();
            let message =
                format!("the components {by} still depend on `{id}`; change their `depends_on` first");
            in_use(by, message);
        }
    }
}

/// The dependencies of the catalog the other way round, found once for a transaction.
#[derive(Default)]
struct Dependents<'a> {
    on: FxHashMap<&'a Id, Vec<&'a Component>>,
    /// Whether they go round in a circle anywhere; only then is it worth to look where.
    has_circle: bool,
}

impl<'a> Dependents<'a> {
    fn of(next: &'a State) -> Self {
        let mut on: FxHashMap<&Id, Vec<&Component>> = FxHashMap::default();
        let mut waits_for: FxHashMap<&Id, usize> = FxHashMap::default();
        for stored in next.components() {
            let known = stored.doc.dependencies().iter().filter(|id| next.component(id.as_str()).is_some());
            waits_for.insert(&stored.doc.id, known.count());
            for id in stored.doc.dependencies() {
                on.entry(id).or_default().push(&stored.doc);
            }
        }
        // What waits for nothing is taken away, until nothing is left, or a circle.
        let mut free: Vec<&Id> =
            waits_for.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
        let mut left = waits_for.len();
        while let Some(id) = free.pop() {
            left -= 1;
            for dependent in on.get(id).into_iter().flatten() {
                if let Some(count) = waits_for.get_mut(&dependent.id) {
                    *count -= 1;
                    if *count == 0 {
                        free.push(&dependent.id);
                    }
                }
            }
        }
        Self { on, has_circle: left > 0 }
    }

    fn on(&self, id: &Id) -> &[&'a Component] {
        self.on.get(id).map(Vec::as_slice).unwrap_or_default()
    }
}

/// What must hold for a component of the catalog beside others.
fn component_findings(
    next: &State,
    component: &Component,
    unreadable: &BTreeSet<DocumentKey>,
    dependents: &Dependents<'_>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if component.comes_from_oci() && component.oci_tag.contains('+') {
        findings.push(Finding::new(Pointer::to("oci_tag"), cluster::PLUS_IN_TAG));
    }
    let delivery = component.effective_delivery();
    if delivery == Delivery::Kustomize && !component.comes_from_oci() {
        // Flux would refuse the source, and with it every component of the cluster.
        let problem = "an `https://` source is a chart repository; a component of delivery `kustomize` comes from an `oci://` artifact";
        findings.push(Finding::new(Pointer::to("oci_url"), problem));
    }
    if component.rest.get("verify").is_some() && !component.comes_from_oci() {
        let problem =
            "Flux verifies signatures of `oci://` artifacts only; remove `verify`, or use an `oci://` source";
        findings.push(Finding::new(Pointer::to("verify"), problem));
    }
    for (n, id) in component.dependencies().iter().enumerate() {
        let at = Pointer::to("depends_on").item(n);
        let problem = match next.component(id.as_str()) {
            _ if id == &component.id => "a component cannot depend on itself".to_owned(),
            None if unreadable.contains(&DocumentKey::new(PLATFORM_COMPONENTS, id)) => continue,
            None => format!("there is no component `{id}` in the catalog"),
            Some(other) if other.doc.effective_delivery() != delivery => {
                cluster::other_delivery(component, &other.doc)
            }
            Some(_) => continue,
        };
        findings.push(Finding::new(at, problem));
    }
    for dependent in dependents.on(&component.id) {
        if dependent.effective_delivery() != delivery {
            let problem = cluster::other_delivery(dependent, component);
            findings.push(Finding::new(Pointer::to("delivery"), problem));
        }
    }
    let dependencies = |id: &Id| next.component(id.as_str()).map(|component| component.doc.dependencies());
    if dependents.has_circle
        && !component.dependencies().contains(&component.id)
        && let Some(cycle) = cluster::cycle_through(&component.id, dependencies)
    {
        findings.push(Finding::new(
            Pointer::to("depends_on"),
            format!("the dependencies go round in a circle: {cycle}"),
        ));
    }
    findings
}

/// Every stored document must satisfy a kind's new schema, and every answer of the kind must stay within its limits.
fn redefined(
    before: &State,
    next: &State,
    operation: usize,
    name: &KindName,
    touched: &Touched,
    violations: &mut Violations,
) {
    let Some(kind) = next.kinds().get(name.as_str()) else { return };
    if before.kinds().get(name.as_str()).is_none() {
        already_taken(next, operation, name, violations);
    }
    let checked: BTreeSet<&DocumentKey> =
        touched.keys.iter().filter_map(|(_, key)| key.as_document()).collect();
    let clusters = next.kinds().get(CLUSTERS);
    for of in [Some(kind), clusters.filter(|clusters| *clusters != kind)].into_iter().flatten() {
        let Some(schema) = next.kinds().schema_of(of) else { continue };
        for id in next.ids(of.name().as_str()) {
            let document = DocumentKey::new(of.name(), id);
            if checked.contains(&document) {
                continue;
            }
            let Some((map, _)) = next.document(of.name().as_str(), id.as_str()) else { continue };
            let mut findings = Vec::new();
            schema.check(&map.into(), &mut findings);
            findings.extend(of.reserves(id.as_str()).map(|problem| Finding::new(Pointer::to("id"), problem)));
            for Finding { pointer, message } in findings {
                let message = format!("the stored `{document}` does not satisfy the new schema: {message}");
                violations.invalid(operation, &document, [Finding::new(pointer, message)]);
            }
        }
    }
    if kind.shape() == Shape::Definition {
        for stored in next.clusters() {
            let key = DocumentKey::new(CLUSTERS, &stored.doc.id);
            if !kind.decomposes() {
                violations.invalid(
                    operation,
                    &key,
                    cluster::override_findings(next, &stored.doc, kind, None),
                );
            }
            for finding in oversized(next, stored, &[&**kind]) {
                violations.add(operation, Some((&key).into()), Reason::TooLarge, finding);
            }
        }
    }
}

/// A new kind's references go where clusters may already hold something else.
fn already_taken(next: &State, operation: usize, kind: &KindName, violations: &mut Violations) {
    for stored in next.clusters().filter(|stored| stored.doc.rest.get(kind.as_str()).is_some()) {
        let cluster = DocumentKey::new(CLUSTERS, &stored.doc.id);
        let message = format!(
            "the stored `{cluster}` has a field `{kind}` already, which would become its references; remove it first"
        );
        violations.invalid(operation, cluster, [Finding::new(Pointer::to(kind.as_str()), message)]);
    }
}

/// The answers of a cluster that the Flux Operator would cut or refuse.
fn oversized(next: &State, stored: &Stored<Cluster>, kinds: &[&Kind]) -> Vec<Finding> {
    let too_large = |kind: &&Kind| {
        // A dangling reference is told by the rules about references.
        let (count, size) = render::measure(next, stored, kind).ok()?;
        (count > MAX_INPUTS || size.sent > MAX_SENT || size.stored > MAX_STORED).then(|| {
            let message = format!(
                "the {} of the cluster `{}` would be {count} inputs and {} bytes ({} as the Flux Operator stores them); it takes at most {MAX_INPUTS}, {MAX_SENT} and {MAX_STORED}: assign fewer, or shorten what they hold",
                kind.name(),
                stored.doc.id,
                size.sent,
                size.stored,
            );
            Finding::new(Pointer::to(kind.name().as_str()), message)
        })
    };
    kinds.iter().filter_map(too_large).collect()
}

/// Changed definitions and components, and what their users must be checked for.
#[derive(Default)]
struct CatalogChange<'a> {
    /// Clusters that were checked as a whole already.
    checked: BTreeSet<&'a str>,
    /// How many documents changed that clusters refer to: each is compared with every cluster, here and for removals and effects.
    in_use: usize,
    /// Those that grew, by kind: answers may become too large.
    grown: BTreeMap<&'a str, Vec<(usize, &'a DocumentKey)>>,
    /// Components whose delivery, source or dependencies are others: the rules of their users may be broken.
    rewired: Vec<(usize, &'a DocumentKey)>,
    /// Definitions whose schema looks at several fields at once: what their users override may no longer fit.
    entangled: Vec<(usize, &'a DocumentKey)>,
}

impl<'a> CatalogChange<'a> {
    fn note(&mut self, before: &State, next: &State, operation: usize, key: &'a DocumentKey) {
        let (kind, id) = (key.kind.as_str(), key.id.as_str());
        if next.usage(key) == 0 {
            return;
        }
        self.in_use += 1;
        // A new one has no users but clusters that are changed themselves.
        let (was, is, more_values) = if key.kind.shape() == Shape::Component {
            let (Some(was), Some(is)) = (before.component(id), next.component(id)) else { return };
            let (was, is) = (&was.doc, &is.doc);
            let wiring =
                |c: &Component| (c.effective_delivery(), c.comes_from_oci(), c.dependencies().to_vec());
            if wiring(was) != wiring(is) {
                self.rewired.push((operation, key));
            }
            let more_values = is.fragment.takes_values() && !was.fragment.takes_values();
            (was.fragment.size(), is.fragment.size(), more_values)
        } else {
            let (Some(was), Some(is)) = (before.definition(kind, id), next.definition(kind, id)) else {
                return;
            };
            if next.kinds().get(kind).is_some_and(|kind| !kind.decomposes()) {
                self.entangled.push((operation, key));
            }
            (was.doc.fragment.size(), is.doc.fragment.size(), false)
        };
        if is.sent > was.sent || is.stored > was.stored || more_values {
            self.grown.entry(kind).or_default().push((operation, key));
        }
    }

    /// How many times rules have to be checked on every cluster.
    fn rules(&self) -> usize {
        self.rewired.len() + self.entangled.len() + self.grown.values().map(Vec::len).sum::<usize>()
    }

    /// One walk over the fleet, whatever has changed: reaching the clusters costs more than looking at them.
    fn check_users(&self, before: &State, next: &State, violations: &mut Violations, work: &mut Work) {
        if self.in_use == 0 {
            return;
        }
        work.walk(next.cluster_count(), self.in_use + self.rules());
        if work.is_too_much() || self.rules() == 0 {
            return;
        }
        let mut rewired = vec![Broken::default(); self.rewired.len()];
        let mut entangled = vec![Broken::default(); self.entangled.len()];
        let grown: Vec<Grown<'_>> =
            self.grown.iter().filter_map(|(kind, keys)| Grown::of(next, kind, keys)).collect();
        let mut too_large = vec![Broken::default(); grown.len()];
        for stored in next.clusters().filter(|stored| !self.checked.contains(stored.doc.id.as_str())) {
            let cluster = &stored.doc;
            for ((_, key), broken) in self.rewired.iter().zip(&mut rewired) {
                add(broken, &cluster.id, cluster::findings_about(before, next, cluster, &key.id));
            }
            for ((_, key), broken) in self.entangled.iter().zip(&mut entangled) {
                if let Some(kind) = next.kinds().get(key.kind.as_str()) {
                    add(broken, &cluster.id, cluster::override_findings(next, cluster, kind, Some(&key.id)));
                }
            }
            for (grown, broken) in grown.iter().zip(&mut too_large) {
                add(broken, &cluster.id, grown.findings(next, stored));
            }
        }
        let broken = self.rewired.iter().zip(rewired).chain(self.entangled.iter().zip(entangled));
        for ((operation, key), broken) in broken {
            report(broken, *operation, key, &Reason::Invalid, violations);
        }
        for (grown, broken) in grown.iter().zip(too_large) {
            let (operation, key) = grown.keys[0];
            report(broken, operation, key, &Reason::TooLarge, violations);
        }
    }
}

/// Definitions of a kind that grew.
struct Grown<'a> {
    kind: &'a Kind,
    keys: &'a [(usize, &'a DocumentKey)],
    /// The largest input of the kind.
    largest: usize,
}

impl<'a> Grown<'a> {
    fn of(next: &'a State, kind: &str, keys: &'a [(usize, &'a DocumentKey)]) -> Option<Self> {
        let kind = next.kinds().get(kind)?;
        Some(Self { kind, keys, largest: largest(next, kind) })
    }

    /// Only an answer whose bound is over the limit is measured: as many inputs as there are references, each as large as the
    /// largest of the kind.
    fn findings(&self, next: &State, stored: &Stored<Cluster>) -> Vec<Finding> {
        let concerns = |(_, key): &(usize, &DocumentKey)| {
            stored.doc.refers_to(self.kind.name().as_str(), key.id.as_str())
        };
        if !self.keys.iter().any(concerns) || bound(&stored.doc, self.kind, self.largest) <= MAX_SENT {
            return Vec::new();
        }
        oversized(next, stored, &[self.kind])
    }
}

/// What is wrong on many clusters: on each of the first of them in words, of the rest their number.
type Broken = Sample<Vec<String>>;

fn add(broken: &mut Broken, cluster: &Id, findings: Vec<Finding>) {
    if findings.is_empty() {
        return;
    }
    let tell = |Finding { message, .. }: Finding| {
        let named = message.contains(&format!("`{cluster}`"));
        if named { message } else { format!("on the cluster `{cluster}`: {message}") }
    };
    broken.push(findings.into_iter().map(tell).collect());
}

fn report(broken: Broken, operation: usize, key: &DocumentKey, reason: &Reason, violations: &mut Violations) {
    let more = broken.more();
    let more = (more > 0).then(|| format!("and on {more} more clusters"));
    for message in broken.first.into_iter().flatten().chain(more) {
        let finding = Finding::new(Pointer::root(), message);
        violations.add(operation, Some(key.into()), reason.clone(), finding);
    }
}

fn largest(next: &State, kind: &Kind) -> usize {
    let sizes: Box<dyn Iterator<Item = Size>> = match kind.shape() {
        Shape::Component => Box::new(next.components().map(|stored| stored.doc.fragment.size())),
        Shape::Cluster | Shape::Definition => {
            let definitions = next.definitions(kind.name().as_str()).into_iter().flat_map(Shelf::values);
            Box::new(definitions.map(|stored| stored.doc.fragment.size()))
        }
    };
    sizes.map(|size| size.stored.max(size.sent)).max().unwrap_or(0)
}

/// Not less than what any answer of the kind can measure on this cluster, as it is stored.
fn bound(cluster: &Cluster, kind: &Kind, largest: usize) -> usize {
    /// Punctuation, `enabled`, and the two empty maps of an input.
    const FRAME: usize = 64;
    /// What one byte of text can become.
    const WORST: usize = 6;
    let part = FRAME
        + WORST * (cluster.dns.as_str().len() + cluster.name.len() + cluster.environment.as_str().len());
    let (references, overrides) = match kind.shape() {
        Shape::Component => {
            let overrides = cluster.components.iter().filter_map(|reference| reference.overrides.as_ref());
            let sizes = overrides.map(|o| {
                o.oci_tag.as_ref().map_or(0, |tag| tag.len())
                    + o.component_path.as_ref().map_or(0, |path| path.len())
                    + o.depends_on.as_ref().map_or(0, |ids| ids.iter().map(|id| id.as_str().len() + 3).sum())
            });
            (cluster.components.len(), sizes.sum::<usize>() + cluster.patches.len())
        }
        Shape::Cluster | Shape::Definition => {
            let references = cluster.references_to(kind.name().as_str());
            let overrides = references.iter().filter_map(|reference| reference.overrides.as_ref());
            (references.len(), overrides.map(|fields| fields.len()).sum())
        }
    };
    FRAME + references * (FRAME + part + largest) + WORST * overrides
}
