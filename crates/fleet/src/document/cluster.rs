//! A cluster: who phones home, and what it should run.
//!
//! There may be a hundred thousand of them, so it is kept small: names are shared, a reference without overrides is one
//! pointer pair, and patches are held once, as the very bytes that are sent.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::component::take_ids;
use super::{Fields, Interner, require_text, take, take_flag, take_text};
use crate::canonical::{self, Canonical};
use crate::ids::{Dns, Id, KindName, PLATFORM_COMPONENTS};
use crate::kind::{Kind, Kinds, Shape};
use crate::pointer::Pointer;
use crate::rejection::Finding;
use crate::values;

/// A reference to a document, and what this cluster overrides of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference<O> {
    /// What is referred to.
    pub id: Id,
    /// What is different here.
    pub overrides: Option<Box<O>>,
}

/// What a cluster may say about one of its components.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ComponentOverrides {
    /// Whether it is installed; unset means yes.
    pub enabled: Option<bool>,
    /// Another tag or version.
    pub oci_tag: Option<Box<str>>,
    /// Another path.
    pub component_path: Option<Box<str>>,
    /// Other dependencies, sorted.
    pub depends_on: Option<Box<[Id]>>,
    /// Whatever else the reference has.
    pub rest: Fields,
}

impl Reference<ComponentOverrides> {
    /// Whether the component is installed.
    pub fn enabled(&self) -> bool {
        self.overrides.as_ref().and_then(|overrides| overrides.enabled).unwrap_or(true)
    }

    /// The dependencies that this cluster sets for the component, if it does.
    pub fn own_dependencies(&self) -> Option<&[Id]> {
        self.overrides.as_ref()?.depends_on.as_deref()
    }
}

/// Patches of all components of one cluster, ready to be sent: for each component `{"key":"value"}` and the same as a tree of
/// Helm values, one after the other in one text.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Patches {
    text: Box<str>,
    index: Box<[PatchesOf]>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct PatchesOf {
    component: Id,
    patches_end: u32,
    values_end: u32,
}

/// The patches of one component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ComponentPatches<'a> {
    pub(crate) component: &'a Id,
    pub(crate) patches: &'a str,
    pub(crate) values: &'a str,
}

impl Patches {
    fn of(patches: Map<String, Value>, names: &mut Interner<'_>) -> Option<Self> {
        let mut text = String::new();
        let mut index = Vec::new();
        for (component, patches) in patches {
            let patches = patches.as_object()?;
            let mut pairs = Vec::new();
            for (key, value) in patches {
                pairs.push((key.as_str(), value.as_str()?));
            }
            text.push_str(&canonical::encode(patches));
            let patches_end = u32::try_from(text.len()).ok()?;
            text.push_str(&canonical::encode(&values::tree(pairs).0));
            let values_end = u32::try_from(text.len()).ok()?;
            let component = names.share(PLATFORM_COMPONENTS, &component);
            index.push(PatchesOf { component, patches_end, values_end });
        }
        Some(Self { text: text.into(), index: index.into() })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = ComponentPatches<'_>> {
        (0..self.index.len()).map(|n| self.nth(n))
    }

    pub(crate) fn get(&self, component: &str) -> Option<ComponentPatches<'_>> {
        self.index.binary_search_by(|of| of.component.as_str().cmp(component)).ok().map(|n| self.nth(n))
    }

    fn nth(&self, n: usize) -> ComponentPatches<'_> {
        let start = n.checked_sub(1).map_or(0, |before| self.index[before].values_end as usize);
        let PatchesOf { component, patches_end, values_end } = &self.index[n];
        let (middle, end) = (*patches_end as usize, *values_end as usize);
        ComponentPatches { component, patches: &self.text[start..middle], values: &self.text[middle..end] }
    }

    /// How many bytes all of it is.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }
}

impl ComponentPatches<'_> {
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        let map: std::collections::BTreeMap<String, String> =
            serde_json::from_str(self.patches).expect("it was encoded from a map of strings");
        map.into_iter().collect()
    }
}

/// The member of a cluster's document that holds its patches.
pub(crate) const PATCHES: &str = "patches";

/// Members of a cluster's document, of its reference arrays and its patches, that a change does not touch: they are taken over as
/// they are, without being taken apart and put together again.
pub(crate) struct Kept {
    pub(crate) from: Cluster,
    pub(crate) members: Vec<Box<str>>,
}

impl Kept {
    pub(crate) fn holds(&self, member: &str) -> bool {
        self.members.iter().any(|kept| **kept == *member)
    }
}

/// Labels, sorted by key.
pub type Labels = Box<[(Box<str>, Box<str>)]>;
/// A kind, and references to documents of it, sorted by id.
pub type References = (KindName, Arc<[Reference<Fields>]>);

/// A cluster of the fleet.
#[derive(Clone, PartialEq, Debug)]
pub struct Cluster {
    /// Its id.
    pub id: Id,
    /// The DNS name under which it phones home.
    pub dns: Dns,
    /// The name that templates see.
    pub name: Box<str>,
    /// Its tier.
    pub environment: Id,
    /// Whether its deletion is refused, if the document says so.
    pub protected: Option<bool>,
    /// What selectors select by, sorted by key.
    pub labels: Option<Labels>,
    /// The components it runs, sorted by id.
    pub components: Arc<[Reference<ComponentOverrides>]>,
    /// Its references to every other kind, sorted by kind and id. A kind that it refers to nowhere is absent.
    pub references: Box<[References]>,
    pub(crate) patches: Arc<Patches>,
    /// Whatever else the document has.
    pub rest: Fields,
}

impl Cluster {
    /// Reads a cluster from its object; what is kept of an earlier version is not in the object.
    pub(crate) fn decode(
        mut map: Map<String, Value>,
        kept: Option<&Kept>,
        kinds: &Kinds,
        names: &mut Interner<'_>,
    ) -> Result<Self, Finding> {
        let id = Id::from(&*require_text(&mut map, "id")?);
        let kept_of = |member: &str| kept.filter(|kept| kept.holds(member)).map(|kept| &kept.from);
        let components = match kept_of(PLATFORM_COMPONENTS) {
            Some(from) => Some(from.components.clone()),
            None => take(&mut map, PLATFORM_COMPONENTS, "a list of references", |array| {
                references(array, PLATFORM_COMPONENTS, names, component_overrides)
            })?,
        };
        let mut others = Vec::new();
        for kind in kinds.referable().filter(|kind| kind.shape() == Shape::Definition) {
            let name = kind.name().as_str();
            let found = match kept_of(name) {
                Some(from) => from
                    .references
                    .iter()
                    .find(|(kind, _)| kind.as_str() == name)
                    .map(|(_, found)| found.clone()),
                None => take(&mut map, name, "a list of references", |array| {
                    references(array, name, names, |map, _| Some(Fields::of(map)))
                })?,
            };
            if let Some(found) = found.filter(|found| !found.is_empty()) {
                others.push((kind.name().clone(), found));
            }
        }
        let patches = match kept_of(PATCHES) {
            Some(from) => Some(from.patches.clone()),
            None => take(&mut map, PATCHES, "a map of maps of strings", |patches| match patches {
                Value::Object(patches) => Patches::of(patches, names).map(Arc::new),
                _ => None,
            })?,
        };
        Ok(Self {
            id,
            dns: Dns::from(&*require_text(&mut map, "cluster_dns")?),
            name: require_text(&mut map, "cluster_name")?,
            environment: names.share("", &require_text(&mut map, "environment")?),
            protected: take_flag(&mut map, "protected")?,
            labels: take(&mut map, "labels", "a map of strings", |labels| match labels {
                Value::Object(labels) => labels
                    .into_iter()
                    .map(|(key, value)| Some((key.into(), value.as_str()?.into())))
                    .collect(),
                _ => None,
            })?,
            components: components.unwrap_or_default(),
            references: others.into(),
            patches: patches.unwrap_or_default(),
            rest: Fields::of(map),
        })
    }

    pub(crate) fn canonical(&self) -> Canonical {
        Canonical::stored(self.encode(|_| false))
    }

    /// The document as an object, but for the members that are left out.
    pub(crate) fn to_map_without(&self, left_out: impl Fn(&str) -> bool) -> Map<String, Value> {
        serde_json::from_str(&self.encode(left_out)).expect("it was encoded as an object")
    }

    pub(crate) fn to_map(&self) -> Map<String, Value> {
        self.to_map_without(|_| false)
    }

    fn encode(&self, left_out: impl Fn(&str) -> bool) -> String {
        let mut members: Vec<(&str, Member<'_>)> = vec![
            ("cluster_dns", Member::Text(self.dns.as_str())),
            ("cluster_name", Member::Text(&self.name)),
            ("environment", Member::Text(self.environment.as_str())),
            ("id", Member::Text(self.id.as_str())),
        ];
        members.extend(self.labels.as_deref().map(|labels| ("labels", Member::Labels(labels))));
        members.extend(
            self.protected
                .map(|protected| ("protected", Member::Json(if protected { "true" } else { "false" }))),
        );
        members.extend(self.rest.iter().map(|(name, text)| (name, Member::Json(text))));
        if !self.components.is_empty() {
            members.push((PLATFORM_COMPONENTS, Member::Components(&self.components)));
        }
        members
            .extend(self.references.iter().map(|(kind, found)| (kind.as_str(), Member::References(found))));
        if !self.patches.index.is_empty() {
            members.push((PATCHES, Member::Patches(&self.patches)));
        }
        members.retain(|(name, _)| !left_out(name));
        members.sort_unstable_by_key(|(name, _)| *name);
        let mut text = String::with_capacity(256 + 64 * self.components.len() + self.patches.len());
        object(&mut text, members, |text, member| member.write(text));
        text
    }

    /// Its references to a kind other than components.
    pub fn references_to(&self, kind: &str) -> &[Reference<Fields>] {
        let at = self.references.binary_search_by(|(name, _)| name.as_str().cmp(kind));
        at.map_or(&[], |at| &self.references[at].1)
    }

    /// Its reference to a component.
    pub fn component(&self, id: &str) -> Option<&Reference<ComponentOverrides>> {
        self.components
            .binary_search_by(|reference| reference.id.as_str().cmp(id))
            .ok()
            .map(|at| &self.components[at])
    }

    /// The ids of what it refers to, of one kind, and whether each is installed.
    pub fn inputs_of(&self, kind: &str) -> impl Iterator<Item = (&Id, bool)> {
        let components = if kind == PLATFORM_COMPONENTS { &*self.components } else { &[] };
        let components = components.iter().map(|reference| (&reference.id, reference.enabled()));
        components.chain(self.references_to(kind).iter().map(|reference| (&reference.id, true)))
    }

    /// Whether it has an input, and whether that is installed.
    pub(crate) fn input(&self, kind: &str, id: &Id) -> Option<bool> {
        if kind == PLATFORM_COMPONENTS {
            return self.component(id.as_str()).map(Reference::enabled);
        }
        self.references_to(kind).binary_search_by(|reference| reference.id.cmp(id)).is_ok().then_some(true)
    }

    /// Whether it refers to a document, as a reference or as a dependency that it sets itself.
    pub fn refers_to(&self, kind: &str, id: &str) -> bool {
        match kind {
            PLATFORM_COMPONENTS => {
                self.component(id).is_some()
                    || self
                        .components
                        .iter()
                        .any(|r| r.own_dependencies().is_some_and(|ids| ids.iter().any(|d| d.as_str() == id)))
            }
            _ => self.references_to(kind).binary_search_by(|reference| reference.id.as_str().cmp(id)).is_ok(),
        }
    }

    /// Whether it refers to the very same documents as another version of it.
    pub(crate) fn refers_alike(&self, other: &Self) -> bool {
        fn ids<O>(references: &[Reference<O>]) -> impl Iterator<Item = &Id> {
            references.iter().map(|reference| &reference.id)
        }
        let own = |cluster: &Self| {
            cluster
                .components
                .iter()
                .filter_map(|r| r.own_dependencies().map(<[Id]>::to_vec))
                .collect::<Vec<_>>()
        };
        ids(&self.components).eq(ids(&other.components))
            && self.references.len() == other.references.len()
            && self
                .references
                .iter()
                .zip(&other.references)
                .all(|((a, these), (b, those))| a == b && ids(these).eq(ids(those)))
            && own(self) == own(other)
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        let labels = self.labels.as_deref()?;
        labels.binary_search_by(|(known, _)| known.as_ref().cmp(key)).ok().map(|at| &*labels[at].1)
    }

    /// Whether its deletion is refused.
    pub fn is_protected(&self) -> bool {
        self.protected.unwrap_or(false)
    }
}

fn references<O>(
    array: Value,
    kind: &str,
    names: &mut Interner<'_>,
    read: impl Fn(Map<String, Value>, &mut Interner<'_>) -> Option<O>,
) -> Option<Arc<[Reference<O>]>> {
    let Value::Array(items) = array else { return None };
    let mut references = Vec::with_capacity(items.len());
    for item in items {
        let Value::Object(mut item) = item else { return None };
        let id = names.share(kind, item.remove("id")?.as_str()?);
        let overrides = if item.is_empty() { None } else { Some(Box::new(read(item, names)?)) };
        references.push(Reference { id, overrides });
    }
    Some(references.into())
}

fn component_overrides(mut map: Map<String, Value>, names: &mut Interner<'_>) -> Option<ComponentOverrides> {
    Some(ComponentOverrides {
        enabled: take_flag(&mut map, "enabled").ok()?,
        oci_tag: take_text(&mut map, "oci_tag").ok()?,
        component_path: take_text(&mut map, "component_path").ok()?,
        depends_on: take_ids(&mut map, "depends_on", names).ok()?,
        rest: Fields::of(map),
    })
}

/// A member of a cluster's document, before it is written.
enum Member<'a> {
    Text(&'a str),
    Json(&'a str),
    Labels(&'a [(Box<str>, Box<str>)]),
    Ids(&'a [Id]),
    Components(&'a [Reference<ComponentOverrides>]),
    References(&'a [Reference<Fields>]),
    Patches(&'a Patches),
}

impl Member<'_> {
    fn write(self, text: &mut String) {
        match self {
            Self::Text(value) => canonical::push_string(text, value),
            Self::Json(json) => text.push_str(json),
            Self::Labels(labels) => {
                object(text, labels.iter().map(|(key, value)| (&**key, &**value)), canonical::push_string)
            }
            Self::Ids(ids) => list(text, ids, |text, id| canonical::push_string(text, id.as_str())),
            Self::Patches(patches) => {
                object(text, patches.iter().map(|of| (of.component.as_str(), of.patches)), |text, json| {
                    text.push_str(json)
                });
            }
            Self::References(references) => list(text, references, |text, Reference { id, overrides }| {
                let overrides = overrides.as_deref().into_iter().flat_map(Fields::iter);
                let members = overrides.map(|(name, json)| (name, Member::Json(json)));
                reference(text, id, members.collect());
            }),
            Self::Components(references) => list(text, references, |text, Reference { id, overrides }| {
                let mut members = Vec::new();
                if let Some(overrides) = overrides {
                    members.extend(overrides.rest.iter().map(|(name, json)| (name, Member::Json(json))));
                    members.extend(
                        overrides
                            .enabled
                            .map(|on| ("enabled", Member::Json(if on { "true" } else { "false" }))),
                    );
                    members.extend(overrides.oci_tag.as_deref().map(|tag| ("oci_tag", Member::Text(tag))));
                    members.extend(
                        overrides
                            .component_path
                            .as_deref()
                            .map(|path| ("component_path", Member::Text(path))),
                    );
                    members
                        .extend(overrides.depends_on.as_deref().map(|ids| ("depends_on", Member::Ids(ids))));
                }
                reference(text, id, members);
            }),
        }
    }
}

fn reference<'a>(text: &mut String, id: &'a Id, mut members: Vec<(&'a str, Member<'a>)>) {
    members.push(("id", Member::Text(id.as_str())));
    members.sort_unstable_by_key(|(name, _)| *name);
    object(text, members, |text, member| member.write(text));
}

fn object<'a, V>(
    text: &mut String,
    members: impl IntoIterator<Item = (&'a str, V)>,
    mut write: impl FnMut(&mut String, V),
) {
    text.push('{');
    for (n, (name, value)) in members.into_iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        canonical::push_string(text, name);
        text.push(':');
        write(text, value);
    }
    text.push('}');
}

fn list<T>(text: &mut String, items: &[T], mut write: impl FnMut(&mut String, &T)) {
    text.push('[');
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        write(text, item);
    }
    text.push(']');
}

/// Brings an object into the one form that its meaning has: no `null`, references and dependencies sorted, no empty
/// reference array and no empty patches. Tells which references are there twice.
pub(crate) fn normalise(
    kind: &Kind,
    kinds: &Kinds,
    map: &mut Map<String, Value>,
    findings: &mut Vec<Finding>,
) {
    canonical::drop_nulls_in(map);
    match kind.shape() {
        Shape::Definition => {}
        Shape::Component => sort_ids(map),
        Shape::Cluster => {
            for kind in kinds.referable() {
                normalise_references(kind, map, findings);
            }
            if let Some(Value::Object(patches)) = map.get_mut(PATCHES) {
                patches.retain(|_, of| of.as_object().is_none_or(|of| !of.is_empty()));
                if patches.is_empty() {
                    map.remove(PATCHES);
                }
            }
        }
    }
}

fn normalise_references(kind: &Kind, map: &mut Map<String, Value>, findings: &mut Vec<Finding>) {
    let name = kind.name().as_str();
    let Some(Value::Array(items)) = map.get_mut(name) else { return };
    if items.is_empty() {
        map.remove(name);
        return;
    }
    if kind.shape() == Shape::Component {
        items.iter_mut().filter_map(Value::as_object_mut).for_each(sort_ids);
    }
    items.sort_by(|a, b| a["id"].as_str().cmp(&b["id"].as_str()));
    for (n, pair) in items.windows(2).enumerate() {
        if let (Some(one), Some(other)) = (pair[0]["id"].as_str(), pair[1]["id"].as_str())
            && one == other
        {
            let at = Pointer::to(name).item(n + 1);
            findings.push(Finding::new(
                at,
                format!("`{one}` is there twice; list each {} once", kind.singular()),
            ));
        }
    }
}

fn sort_ids(map: &mut Map<String, Value>) {
    if let Some(Value::Array(ids)) = map.get_mut("depends_on") {
        ids.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
}
