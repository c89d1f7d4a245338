//! What each operation makes of the documents it is about.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::draft::Draft;
use super::size::ADVICE;
use super::{Lacking, MAX_CHANGES};
use crate::canonical;
use crate::finding::Finding;
use crate::ids::{CLUSTERS, Dns, Id, KindName, PATCHES, PLATFORM_COMPONENTS, Revision};
use crate::key::{DocumentKey, Key};
use crate::kind::{Kind, Shape};
use crate::patch::{Patch, SpeltOut};
use crate::pointer::Pointer;
use crate::rejection::Reason;
use crate::selector::Selector;
use crate::space::{Allowance, Grant, Seeding};
use crate::transaction::{Operation, Target};

pub(super) fn run(draft: &mut Draft<'_>, n: usize, operation: &Operation) {
    let done = match operation {
        Operation::Create { kind, body, replace_decommissioned } => {
            create(draft, n, kind, body, *replace_decommissioned)
        }
        Operation::Put { kind, id, body, expect } => put(draft, n, kind, id, body, *expect),
        Operation::Patch { kind, target, patch } => patch_documents(draft, n, kind, target, patch),
        Operation::Delete { kind, target } => delete(draft, n, kind, target),
        Operation::Assign { clusters, kind, id, overrides } => {
            assign(draft, n, clusters, kind, id, overrides)
        }
        Operation::PatchReference { clusters, kind, id, patch } => {
            patch_reference(draft, n, clusters, kind, id, patch)
        }
        Operation::PatchValues { clusters, component, values } => {
            patch_values(draft, n, clusters, component, values)
        }
        Operation::RemoveReference { clusters, kind, id } => remove_reference(draft, n, clusters, kind, id),
        Operation::Forget { dns } => forget(draft, n, dns),
        Operation::Allow(grant) => {
            allow(draft, n, grant);
            Ok(())
        }
        Operation::Disallow { id } => disallow(draft, n, id),
        // Taken up before any other operation.
        Operation::Define(_) => Ok(()),
        Operation::Seed(seeding) => {
            draft.write_system(n, Seeding::change(seeding.as_ref()));
            Ok(())
        }
    };
    if let Err(Refusal { key, reason, finding }) = done {
        draft.violations.add(n, key.map(|key| *key), reason, finding);
    }
}

/// An operation that cannot even be carried out.
struct Refusal {
    key: Option<Box<Key>>,
    reason: Reason,
    finding: Finding,
}

type Done = Result<(), Refusal>;

fn refuse(
    key: Option<&DocumentKey>,
    reason: Reason,
    pointer: Pointer,
    message: impl Into<String>,
) -> Refusal {
    Refusal { key: key.map(|key| Box::new(key.into())), reason, finding: Finding::new(pointer, message) }
}

fn invalid(key: Option<&DocumentKey>, message: impl Into<String>) -> Refusal {
    refuse(key, Reason::Invalid, Pointer::root(), message)
}

fn missing(key: Option<Key>, message: impl Into<String>) -> Refusal {
    let finding = Finding::new(Pointer::root(), message);
    Refusal { key: key.map(Box::new), reason: Reason::Missing, finding }
}

/// The kind of that name, held apart from the draft so that both can be used.
fn kind_of(draft: &Draft<'_>, name: &str) -> Result<std::sync::Arc<Kind>, Refusal> {
    let unknown = || {
        let known = draft.kinds.iter().map(|kind| kind.name().as_str()).collect::<Vec<_>>().join(", ");
        missing(Some(Key::kind(name)), format!("there is no kind `{name}`; there are {known}"))
    };
    draft.kinds.get(name).cloned().ok_or_else(unknown)
}

/// The kind of a reference, and the cluster kind that holds it.
fn reference_kind(draft: &Draft<'_>, name: &str) -> Result<std::sync::Arc<Kind>, Refusal> {
    let kind = kind_of(draft, name)?;
    match kind.shape() {
        Shape::Cluster => Err(invalid(None, "a cluster has no references to clusters")),
        Shape::Component | Shape::Definition => Ok(kind),
    }
}

fn object(key: Option<&DocumentKey>, body: &Value) -> Result<Map<String, Value>, Refusal> {
    body.as_object()
        .cloned()
        .ok_or_else(|| invalid(key, format!("must be an object, not {}", crate::schema::shown(body))))
}

fn create(draft: &mut Draft<'_>, n: usize, kind: &str, body: &Value, replaces: bool) -> Done {
    let kind = kind_of(draft, kind)?;
    let map = object(None, body)?;
    let Some(id) = map.get("id").and_then(Value::as_str) else {
        return Err(refuse(
            None,
            Reason::Invalid,
            Pointer::to("id"),
            "`id` is required and must be a string",
        ));
    };
    let key = DocumentKey::new(kind.name(), id);
    if draft.exists(&key) {
        let message = format!("the {} `{id}` exists already; change it instead", kind.singular());
        return Err(refuse(Some(&key), Reason::Exists, Pointer::to("id"), message));
    }
    if kind.shape() == Shape::Cluster && draft.has_deleted(&key) {
        return Err(invalid(
            Some(&key),
            "a cluster cannot be decommissioned and made again in one transaction; make two",
        ));
    }
    draft.work.documents(1);
    draft.write(n, &kind, key.clone(), map, None);
    if replaces {
        draft.may_replace_decommissioned(&key);
    }
    Ok(())
}

fn put(
    draft: &mut Draft<'_>,
    n: usize,
    kind: &str,
    id: &str,
    body: &Value,
    expect: Option<Revision>,
) -> Done {
    let kind = kind_of(draft, kind)?;
    let key = DocumentKey::new(kind.name(), id);
    require(draft, &kind, &key, expect)?;
    let mut map = object(Some(&key), body)?;
    if kind.shape() == Shape::Cluster {
        draft.named.environments.insert(key.id.clone());
    }
    map.entry("id").or_insert_with(|| id.into());
    draft.work.documents(1);
    draft.write(n, &kind, key, map, None);
    Ok(())
}

/// The document is there, at the expected revision.
fn require(draft: &Draft<'_>, kind: &Kind, key: &DocumentKey, expect: Option<Revision>) -> Done {
    if !draft.exists(key) {
        return Err(missing(Some(key.into()), format!("there is no {} `{}`", kind.singular(), key.id)));
    }
    let now = draft.before.revision_of(&key.into());
    match (expect, now) {
        (Some(expected), Some(now)) if expected != now => {
            let message =
                format!("`{key}` is at revision {now}, not {expected}; read it again and decide anew");
            Err(refuse(Some(key), Reason::Stale { now }, Pointer::root(), message))
        }
        (Some(expected), None) => {
            let message = format!(
                "`{key}` is made in this very transaction and has no revision yet; do not expect {expected}"
            );
            Err(invalid(Some(key), message))
        }
        _ => Ok(()),
    }
}

/// The documents that a target means.
struct Targets {
    keys: Vec<DocumentKey>,
    /// Whether each was spelt by its id.
    by_id: bool,
    /// The selected clusters that lack a reference which must be there.
    lacking: Vec<Id>,
}

/// The documents that a target means. Of selected clusters only those that have a reference, if an operation is about one that must be
/// there.
fn targets(
    draft: &mut Draft<'_>,
    kind: &Kind,
    target: &Target,
    having: Option<(&Kind, &str)>,
) -> Result<Targets, Refusal> {
    match target {
        Target::One { id, expect } => {
            let key = DocumentKey::new(kind.name(), &**id);
            require(draft, kind, &key, *expect)?;
            draft.work.documents(1);
            Ok(Targets { keys: vec![key], by_id: true, lacking: Vec::new() })
        }
        Target::Selected(_) if kind.shape() != Shape::Cluster => Err(invalid(
            None,
            format!("a selector selects clusters; name each {} by its id", kind.singular()),
        )),
        Target::Selected(selector) => {
            let mut lacking = Vec::new();
            let keys = draft.select(selector.comparisons() + 1, |cluster| {
                let is_selected = selector.selects(cluster);
                let has_it = having.is_none_or(|(kind, id)| cluster.refers_to(kind.name().as_str(), id));
                if is_selected && !has_it {
                    lacking.push(cluster.id.clone());
                }
                is_selected && has_it
            });
            if keys.is_empty() && lacking.is_empty() {
                return Err(missing(None, format!("no cluster matches `{selector}`")));
            }
            few_enough(selector, keys.len())?;
            draft.work.documents(keys.len());
            Ok(Targets { keys, by_id: false, lacking })
        }
    }
}

/// A selection that one transaction can change: of a larger one, not even the first document is made.
fn few_enough(selector: &Selector, selected: usize) -> Done {
    if selected <= MAX_CHANGES {
        return Ok(());
    }
    let message = format!(
        "`{selector}` selects {selected} clusters; at most {MAX_CHANGES} are changed at once: {ADVICE}"
    );
    Err(refuse(None, Reason::TooLarge, Pointer::root(), message))
}

fn patch_documents(draft: &mut Draft<'_>, n: usize, kind: &str, target: &Target, patch: &Patch) -> Done {
    let kind = kind_of(draft, kind)?;
    let Targets { keys, by_id: spelt_by_id, .. } = targets(draft, &kind, target, None)?;
    let bytes = patch.bytes();
    let kinds = draft.kinds.clone();
    let references: Vec<&str> = match kind.shape() {
        Shape::Cluster => kinds.referable().map(|kind| kind.name().as_str()).collect(),
        Shape::Component | Shape::Definition => Vec::new(),
    };
    for key in keys {
        draft.work.merge(bytes);
        if draft.work.is_too_much() {
            return Ok(());
        }
        let opened = match kind.shape() {
            Shape::Cluster => draft.cluster(&key, |member| patch.touches(member), patch.patched_components()),
            Shape::Component | Shape::Definition => draft.document(&key).map(|map| (map, None)),
        };
        let Some((mut map, kept)) = opened else { continue };
        let refused =
            |finding| Refusal { key: Some(Box::new((&key).into())), reason: Reason::Invalid, finding };
        if matches!(patch, Patch::Json(_)) {
            // An absent array of references is the empty one, for paths such as `/namespaces/-` too.
            for name in &references {
                map.entry(*name).or_insert_with(|| Value::Array(Vec::new()));
            }
        }
        let assigned = component_ids(&map);
        let (spelt, wrong_items) = patch.change(&mut map, &references, &mut draft.work).map_err(refused)?;
        draft.violations.invalid(n, &key, wrong_items);
        if spelt_by_id && kind.shape() == Shape::Cluster && patch.touches("environment") {
            draft.named.environments.insert(key.id.clone());
        }
        if matches!(patch, Patch::Strategic(_)) {
            let left = component_ids(&map);
            for component in assigned.difference(&left) {
                drop_patches(draft, &key, &mut map, component);
            }
        }
        for spelt in spelt {
            match spelt.what {
                SpeltOut::DeletedNothing => {
                    draft.warnings.push(format!(
                        "`{}` was to be removed from {} of `{}`, but is not there",
                        spelt.id, spelt.kind, key.id
                    ));
                    continue;
                }
                SpeltOut::Deleted | SpeltOut::Disabled => {}
            }
            if spelt_by_id {
                draft.named.references.insert((
                    key.id.clone(),
                    KindName::from(&*spelt.kind),
                    Id::from(&*spelt.id),
                ));
            }
        }
        draft.write(n, &kind, key, map, kept.as_ref());
    }
    Ok(())
}

fn delete(draft: &mut Draft<'_>, n: usize, kind: &str, target: &Target) -> Done {
    let kind = kind_of(draft, kind)?;
    let Targets { keys, by_id: spelt_by_id, .. } = targets(draft, &kind, target, None)?;
    for key in keys {
        if kind.shape() == Shape::Cluster {
            if draft.before.cluster(key.id.as_str()).is_some_and(|cluster| cluster.doc.is_protected()) {
                let message = format!(
                    "the cluster `{}` is protected; set `protected` to false first, in a change of its own",
                    key.id
                );
                let finding = Finding::new(Pointer::to("protected"), message);
                draft.violations.add(n, Some((&key).into()), Reason::Protected, finding);
                continue;
            }
            if spelt_by_id {
                draft.named.decommissions.insert(key.id.clone());
            }
        }
        draft.delete(n, key);
    }
    Ok(())
}

/// A reference of a cluster that an operation is about.
struct Place<'a> {
    cluster: &'a DocumentKey,
    /// Whether the request spelt the cluster by its id.
    by_id: bool,
    /// Where in the cluster's list the reference is, if it is there.
    at: Option<usize>,
}

impl Place<'_> {
    /// The request spelt the removal of this very reference.
    fn name_removal(&self, draft: &mut Draft<'_>, kind: &Kind, id: &str) {
        if self.by_id {
            draft.named.references.insert((self.cluster.id.clone(), kind.name().clone(), Id::from(id)));
        }
    }
}

/// Runs over the clusters that a target means, with the list of references that an operation is about.
fn on_references(
    draft: &mut Draft<'_>,
    n: usize,
    clusters: &Target,
    kind: &Kind,
    id: &str,
    must_be_there: bool,
    mut change: impl FnMut(&mut Draft<'_>, &Place<'_>, &mut Map<String, Value>) -> Result<bool, Refusal>,
) -> Done {
    let cluster_kind = kind_of(draft, CLUSTERS)?;
    let having = must_be_there.then_some((kind, id));
    let Targets { keys, by_id, mut lacking } = targets(draft, &cluster_kind, clusters, having)?;
    let selected = keys.len() + lacking.len();
    for key in keys {
        if draft.work.is_too_much() {
            return Ok(());
        }
        let touched = |member: &str| {
            member == kind.name().as_str() || (member == PATCHES && kind.shape() == Shape::Component)
        };
        let Some((mut map, kept)) = draft.cluster(&key, touched, None) else {
            // What is wrong with it is told already.
            continue;
        };
        let at = list_of(&mut map, kind).iter().position(|reference| reference["id"] == id);
        if change(draft, &Place { cluster: &key, by_id, at }, &mut map)? {
            draft.write(n, &cluster_kind, key, map, kept.as_ref());
        } else {
            lacking.push(key.id);
        }
    }
    if lacking.len() == selected {
        let singular = kind.singular();
        return Err(match clusters {
            Target::One { id: cluster, .. } => {
                let key = Key::document(CLUSTERS, &**cluster);
                missing(Some(key), format!("the cluster `{cluster}` has no {singular} `{id}`"))
            }
            Target::Selected(selector) => {
                missing(None, format!("no cluster that matches `{selector}` has the {singular} `{id}`"))
            }
        });
    }
    if let (Target::Selected(selector), [_, ..]) = (clusters, &*lacking) {
        let before = draft.before;
        let is_other =
            |id: &Id| !before.cluster(id.as_str()).is_some_and(|cluster| cluster.doc.is_production());
        lacking.sort_by_cached_key(is_other);
        draft.lacking.push(Lacking {
            operation: n,
            selector: selector.to_string(),
            kind: kind.name().clone(),
            id: id.into(),
            selected,
            clusters: lacking.into_iter().collect(),
        });
    }
    Ok(())
}

fn list_of<'m>(map: &'m mut Map<String, Value>, kind: &Kind) -> &'m mut Vec<Value> {
    let list = map.entry(kind.name().as_str()).or_insert_with(|| Value::Array(Vec::new()));
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    list.as_array_mut().expect("it was just made one")
}

fn assign(
    draft: &mut Draft<'_>,
    n: usize,
    clusters: &Target,
    kind: &str,
    id: &str,
    overrides: &Value,
) -> Done {
    let kind = reference_kind(draft, kind)?;
    let mut reference = match overrides {
        Value::Null => Map::new(),
        overrides => object(None, overrides)?,
    };
    if reference.get("id").is_some_and(|inside| *inside != id) {
        return Err(refuse(
            None,
            Reason::Invalid,
            Pointer::to("id"),
            format!("must be `{id}`, the reference that the operation is about, or absent"),
        ));
    }
    reference.insert("id".to_owned(), id.into());
    let bytes = canonical::encode(&reference).len();
    on_references(draft, n, clusters, &kind, id, false, |draft, place, map| {
        draft.work.merge(bytes);
        if reference.get("enabled") == Some(&Value::Bool(false)) {
            place.name_removal(draft, &kind, id);
        }
        let list = list_of(map, &kind);
        match place.at {
            Some(at) => list[at] = Value::Object(reference.clone()),
            None => list.push(Value::Object(reference.clone())),
        }
        Ok(true)
    })
}

fn patch_reference(
    draft: &mut Draft<'_>,
    n: usize,
    clusters: &Target,
    kind: &str,
    id: &str,
    patch: &Patch,
) -> Done {
    let kind = reference_kind(draft, kind)?;
    let bytes = patch.bytes();
    on_references(draft, n, clusters, &kind, id, true, |draft, place, map| {
        draft.work.merge(bytes);
        let Some(at) = place.at else { return Ok(false) };
        let Some(reference) = list_of(map, &kind)[at].as_object_mut() else { return Ok(false) };
        let was_said = reference.contains_key("enabled");
        let was_disabled = reference.get("enabled") == Some(&Value::Bool(false));
        let pointer_to = Pointer::to(kind.name().as_str()).item(at);
        let refused = |Finding { pointer, message }| {
            refuse(Some(place.cluster), Reason::Invalid, pointer_to.then(&pointer), message)
        };
        patch.change(reference, &[], &mut draft.work).map_err(refused)?;
        if reference.get("id").is_some_and(|inside| *inside != id) {
            return Err(refuse(
                Some(place.cluster),
                Reason::Invalid,
                pointer_to.join("id"),
                "the `id` of a reference cannot be changed",
            ));
        }
        reference.insert("id".to_owned(), id.into());
        let is_disabled = reference.get("enabled") == Some(&Value::Bool(false));
        if kind.shape() == Shape::Component
            && !was_said
            && reference.get("enabled") == Some(&Value::Bool(true))
        {
            // It is so already. Said once more it would change the document, and no answer.
            reference.remove("enabled");
        }
        // Named is what this very patch disables, not what it finds disabled.
        if is_disabled && (!was_disabled || patch.says_disabled()) {
            place.name_removal(draft, &kind, id);
        }
        Ok(true)
    })
}

fn patch_values(draft: &mut Draft<'_>, n: usize, clusters: &Target, component: &str, values: &Value) -> Done {
    if !values.is_object() && !values.is_null() {
        return Err(invalid(None, "the values must be an object, or `null` to remove all of them"));
    }
    let kind = reference_kind(draft, PLATFORM_COMPONENTS)?;
    let bytes = canonical::encode(values).len();
    on_references(draft, n, clusters, &kind, component, true, |draft, place, map| {
        draft.work.merge(bytes);
        if place.at.is_none() {
            return Ok(false);
        }
        let patches = map.entry(PATCHES).or_insert_with(|| Value::Object(Map::new()));
        json_patch::merge(patches, &json!({ component: values }));
        Ok(true)
    })
}

fn remove_reference(draft: &mut Draft<'_>, n: usize, clusters: &Target, kind: &str, id: &str) -> Done {
    let kind = reference_kind(draft, kind)?;
    on_references(draft, n, clusters, &kind, id, true, |draft, place, map| {
        let Some(at) = place.at else { return Ok(false) };
        list_of(map, &kind).remove(at);
        if kind.shape() == Shape::Component {
            drop_patches(draft, place.cluster, map, id);
        }
        place.name_removal(draft, &kind, id);
        Ok(true)
    })
}

fn component_ids(cluster: &Map<String, Value>) -> BTreeSet<String> {
    let references = cluster.get(PLATFORM_COMPONENTS).and_then(Value::as_array);
    references
        .into_iter()
        .flatten()
        .filter_map(|reference| Some(reference["id"].as_str()?.to_owned()))
        .collect()
}

/// Patches for a component that a cluster no longer has would be refused; they go with it, and it is said.
fn drop_patches(draft: &mut Draft<'_>, key: &DocumentKey, map: &mut Map<String, Value>, component: &str) {
    let dropped =
        map.get_mut(PATCHES).and_then(Value::as_object_mut).and_then(|patches| patches.remove(component));
    if dropped.is_some() {
        draft.warnings.push(format!("the patches of `{}` for `{component}` were removed with it", key.id));
    }
}

fn forget(draft: &mut Draft<'_>, n: usize, dns: &str) -> Done {
    if draft.before.tombstone(dns).is_none() {
        let message = format!("no cluster with the DNS name `{dns}` was decommissioned");
        return Err(missing(Some(Key::tombstone(dns)), message));
    }
    draft.forget(n, Dns::from(dns));
    Ok(())
}

fn allow(draft: &mut Draft<'_>, n: usize, grant: &Grant) {
    match grant.changes(draft.before, draft.origin) {
        Ok(changes) => changes.into_iter().for_each(|change| draft.write_system(n, change)),
        Err(findings) => {
            for finding in findings {
                draft.violations.add(n, None, Reason::Invalid, finding);
            }
        }
    }
}

fn disallow(draft: &mut Draft<'_>, n: usize, id: &str) -> Done {
    if draft.before.allowance(id).is_none() {
        return Err(missing(
            None,
            format!("there is no allowance `{id}`; it may have ended or been used up"),
        ));
    }
    draft.write_system(n, Allowance::revocation(id));
    Ok(())
}
