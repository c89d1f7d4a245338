//! Rules of one cluster beside the catalog: references exist, patches fit, dependencies can be met.

use std::collections::{BTreeMap, BTreeSet};

use super::{MAX_DOCUMENT, secrets};
use crate::document::{Cluster, Component, ComponentOverrides, ComponentPatches, Delivery, Reference};
use crate::finding::Finding;
use crate::grammar;
use crate::ids::{Id, PATCHES, PLATFORM_COMPONENTS};
use crate::key::DocumentKey;
use crate::kind::{Kind, Shape};
use crate::pointer::Pointer;
use crate::state::State;
use crate::values;

/// What the identity of a cluster defines already; a patch of that name would be overridden.
const IDENTITY: [&str; 4] = ["CLUSTER_NAME", "CLUSTER_DNS", "ENVIRONMENT", "INTERNAL_API_URL"];

pub(super) const PLUS_IN_TAG: &str =
    "a tag in an OCI registry cannot have a `+`; registries use `_` in its place";

pub(super) fn other_delivery(component: &Component, dependency: &Component) -> String {
    let (one, other) = (component.effective_delivery().as_str(), dependency.effective_delivery().as_str());
    format!(
        "`{}` is delivered by {one} and depends on `{}`, which is delivered by {other}: Flux would wait for ever; a component can only depend on components of its own delivery",
        component.id, dependency.id
    )
}

/// Everything that is wrong with a cluster, given the catalog.
pub(super) fn findings(
    before: &State,
    next: &State,
    cluster: &Cluster,
    unreadable: &BTreeSet<DocumentKey>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for kind in next.kinds().referable().filter(|kind| kind.shape() == Shape::Definition) {
        let name = kind.name().as_str();
        for (n, reference) in cluster.references_to(name).iter().enumerate() {
            let id = reference.id.as_str();
            if let Some(size) =
                reference.overrides.as_ref().map(|o| o.len()).filter(|size| *size > MAX_DOCUMENT)
            {
                let message =
                    format!("the overrides of `{id}` have {size} bytes; {MAX_DOCUMENT} are the most");
                findings.push(Finding::new(Pointer::to(name).item(n), message));
            }
            if next.definition(name, id).is_none() && !unreadable.contains(&DocumentKey::new(name, id)) {
                let at = Pointer::to(name).item(n);
                findings.push(Finding::new(
                    at,
                    format!("there is no {} `{id}`; create it first", kind.singular()),
                ));
            }
        }
    }
    for kind in next.kinds().referable().filter(|kind| !kind.decomposes()) {
        findings.extend(override_findings(next, cluster, kind, None));
    }
    for reference in cluster.components.iter() {
        let unproven = |component: &Component| {
            let of = cluster.patches.get(component.id.as_str())?;
            (!were_right(before, cluster, component, of)).then_some(of)
        };
        findings.extend(component_findings(next, cluster, reference, unreadable, unproven));
    }
    for of in cluster.patches.iter().filter(|of| cluster.component(of.component.as_str()).is_none()) {
        let message = format!(
            "`{}` is not among the cluster's platform_components; assign it, or remove its patches",
            of.component
        );
        findings.push(Finding::new(Pointer::to(PATCHES).join(of.component.as_str()), message));
    }
    findings.extend(cycle(next, cluster));
    findings
}

/// Everything that is wrong with a cluster because a component of the catalog has other dependencies or another delivery.
pub(super) fn findings_about(
    before: &State,
    next: &State,
    cluster: &Cluster,
    component: &Id,
) -> Vec<Finding> {
    let by_itself = cluster
        .own_dependencies()
        .filter(|(reference, own)| own.contains(component) && reference.id != *component)
        .map(|(reference, _)| reference);
    let mut concerned = cluster.component(component.as_str()).into_iter().chain(by_itself).peekable();
    if concerned.peek().is_none() {
        return Vec::new();
    }
    // The cluster itself is as it was, so its patches are right as long as the delivery is the same.
    let unproven = |component: &Component| {
        let was = before.component(component.id.as_str()).map(|stored| stored.doc.effective_delivery());
        if was == Some(component.effective_delivery()) {
            return None;
        }
        cluster.patches.get(component.id.as_str())
    };
    let findings = concerned
        .flat_map(|reference| component_findings(next, cluster, reference, &BTreeSet::new(), unproven));
    findings.chain(cycle(next, cluster)).collect()
}

/// Overrides that fit by themselves but not together with the definition, for kinds whose schema looks at several fields at once.
pub(super) fn override_findings(
    next: &State,
    cluster: &Cluster,
    kind: &Kind,
    only: Option<&Id>,
) -> Vec<Finding> {
    let name = kind.name().as_str();
    let mut findings = Vec::new();
    for (n, reference) in cluster.references_to(name).iter().enumerate() {
        let concerned = only.is_none_or(|id| *id == reference.id);
        let (Some(overrides), Some(definition)) =
            (&reference.overrides, next.definition(name, reference.id.as_str()))
        else {
            continue;
        };
        if concerned {
            let mut merged = definition.doc.canonical().to_map();
            overrides.put_into(&mut merged);
            let mut found = Vec::new();
            kind.schema().check(&merged.into(), &mut found);
            let at = Pointer::to(name).item(n);
            findings.extend(found.into_iter().map(|Finding { pointer, message }| {
                Finding::new(
                    at.then(&pointer),
                    format!("with the overrides of `{}`: {message}", reference.id),
                )
            }));
        }
    }
    findings
}

/// Everything that is wrong with one component of a cluster; `unproven` gives those of its patches that were not found right before.
fn component_findings<'a>(
    next: &State,
    cluster: &'a Cluster,
    reference: &Reference<ComponentOverrides>,
    unreadable: &BTreeSet<DocumentKey>,
    unproven: impl Fn(&Component) -> Option<ComponentPatches<'a>>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let place = || {
        let n = cluster.components.binary_search_by(|other| other.id.cmp(&reference.id)).unwrap_or_default();
        Pointer::to(PLATFORM_COMPONENTS).item(n)
    };
    let Some(stored) = next.component(reference.id.as_str()) else {
        if !unreadable.contains(&DocumentKey::new(PLATFORM_COMPONENTS, &reference.id)) {
            findings.push(Finding::new(
                place(),
                format!("there is no platform_component `{}`; create it first", reference.id),
            ));
        }
        return findings;
    };
    let component = &stored.doc;
    let own_tag = reference.overrides.as_ref().and_then(|overrides| overrides.oci_tag.as_deref());
    if component.comes_from_oci() && own_tag.is_some_and(|tag| tag.contains('+')) {
        findings.push(Finding::new(place().join("oci_tag"), PLUS_IN_TAG));
    }
    dependencies(next, cluster, reference, component, place, &mut findings);
    if let Some(of) = unproven(component) {
        patches(component.effective_delivery(), of, &mut findings);
    }
    findings
}

/// Whether the same patches were accepted for the same delivery before.
fn were_right(before: &State, cluster: &Cluster, component: &Component, of: ComponentPatches<'_>) -> bool {
    let delivery = before.component(of.component.as_str()).map(|stored| stored.doc.effective_delivery());
    if delivery != Some(component.effective_delivery()) {
        return false;
    }
    let was = before.cluster(cluster.id.as_str()).map(|stored| &stored.doc);
    was.is_some_and(|was| was.patches.get(of.component.as_str()).is_some_and(|was| was.patches == of.patches))
}

fn dependencies(
    next: &State,
    cluster: &Cluster,
    reference: &Reference<ComponentOverrides>,
    component: &Component,
    place: impl Fn() -> Pointer,
    findings: &mut Vec<Finding>,
) {
    let own = reference.own_dependencies();
    for (n, id) in own.unwrap_or(component.dependencies()).iter().enumerate() {
        let at = || if own.is_some() { place().join("depends_on").item(n) } else { place() };
        if own.is_some() {
            let problem = match next.component(id.as_str()) {
                None => Some(format!("there is no component `{id}` in the catalog")),
                Some(other) if other.doc.effective_delivery() != component.effective_delivery() => {
                    Some(other_delivery(component, &other.doc))
                }
                Some(_) => None,
            };
            if let Some(problem) = problem {
                findings.push(Finding::new(at(), problem));
                continue;
            }
        }
        let problem = match cluster.component(id.as_str()).map(Reference::enabled) {
            _ if !reference.enabled() => continue,
            Some(true) => continue,
            Some(false) => "disabled here",
            None => "not assigned to this cluster",
        };
        let message = format!(
            "`{}` depends on `{id}`, which is {problem}: Flux would wait for ever; assign and enable `{id}`, or override `depends_on` if it is installed by other means",
            reference.id
        );
        findings.push(Finding::new(at(), message));
    }
}

fn patches(delivery: Delivery, of: ComponentPatches<'_>, findings: &mut Vec<Finding>) {
    let at = |key: &str| Pointer::to(PATCHES).join(of.component.as_str()).join(key);
    let pairs = of.pairs();
    for (key, value) in &pairs {
        if let Some(what) = secrets::secret_in(value) {
            let message = format!(
                "this looks like {what}; keep secrets in a secret store and let External Secrets bring them to the cluster"
            );
            findings.push(Finding::new(at(key), message));
        }
    }
    match delivery {
        Delivery::Helm => {
            let (_, bad) = values::tree(pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())));
            findings.extend(bad.into_iter().map(|bad| match bad.key {
                Some(key) => Finding::new(at(&key), bad.problem),
                None => Finding::new(Pointer::to(PATCHES).join(of.component.as_str()), bad.problem),
            }));
        }
        Delivery::Kustomize => {
            for (key, value) in &pairs {
                if !grammar::substitution_name(key) {
                    let message = format!(
                        "`{key}` cannot be a substitution variable: letters, digits and `_`, not beginning with a digit"
                    );
                    findings.push(Finding::new(at(key), message));
                } else if IDENTITY.contains(&key.as_str()) {
                    findings.push(Finding::new(
                        at(key),
                        format!("`{key}` is given by the cluster's identity; use another name"),
                    ));
                }
                if !grammar::substitution_value(value) {
                    let message = "the value is put into YAML as it stands: only letters, digits and `_./:@%+=,-`, and no `:` at the end";
                    findings.push(Finding::new(at(key), message));
                }
            }
        }
    }
}

/// Dependencies that a cluster sets itself may close a circle that the catalog does not have.
fn cycle(next: &State, cluster: &Cluster) -> Option<Finding> {
    let dependencies = |id: &Id| {
        let reference = cluster.component(id.as_str())?;
        let catalog = next.component(id.as_str()).map(|component| component.doc.dependencies());
        reference.own_dependencies().or(catalog)
    };
    let cycle =
        cluster.own_dependencies().find_map(|(reference, _)| cycle_through(&reference.id, dependencies))?;
    Some(Finding::new(
        Pointer::to(PLATFORM_COMPONENTS),
        format!("the dependencies go round in a circle: {cycle}"),
    ))
}

/// A circle of dependencies that leads from a component back to it, in words.
pub(super) fn cycle_through<'a>(
    start: &'a Id,
    dependencies: impl Fn(&Id) -> Option<&'a [Id]>,
) -> Option<String> {
    let mut came_from: BTreeMap<&Id, &Id> = BTreeMap::new();
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for next in dependencies(at).unwrap_or_default() {
            if next == start {
                let mut way = vec![start, at];
                while let Some(previous) = way.last().and_then(|at| came_from.get(at)) {
                    way.push(previous);
                }
                return Some(way.iter().rev().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(" → "));
            }
            if !came_from.contains_key(next) {
                came_from.insert(next, at);
                open.push(next);
            }
        }
    }
    None
}
