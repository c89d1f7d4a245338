//! A cluster: who phones home, and what it should run.
//!
//! There may be a hundred thousand of them, so it is kept small: names are shared, a reference without overrides is one
//! pointer pair, and patches are held once, as the very bytes that are sent.

use serde_json::{Map, Value};

use super::component::{ids_to_value, take_ids};
use super::{Fields, Interner, require_text, take, take_flag, take_text};
use crate::canonical;
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
        let mut start = 0;
        self.index.iter().map(move |entry| {
            let (middle, end) = (entry.patches_end as usize, entry.values_end as usize);
            let (patches, values) = (&self.text[start..middle], &self.text[middle..end]);
            start = end;
            ComponentPatches { component: &entry.component, patches, values }
        })
    }

    pub(crate) fn get(&self, component: &str) -> Option<ComponentPatches<'_>> {
        self.iter().find(|of| of.component.as_str() == component)
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
    pub labels: Option<Box<[(Box<str>, Box<str>)]>>,
    /// The components it runs, sorted by id.
    pub components: Box<[Reference<ComponentOverrides>]>,
    /// Its references to every other kind, sorted by kind and id. A kind that it refers to nowhere is absent.
    pub references: Box<[(KindName, Box<[Reference<Fields>]>)]>,
    pub(crate) patches: Patches,
    /// Whatever else the document has.
    pub rest: Fields,
}

impl Cluster {
    pub(crate) fn decode(mut map: Map<String, Value>, kinds: &Kinds, names: &mut Interner<'_>) -> Result<Self, Finding> {
        let id = Id::from(&*require_text(&mut map, "id")?);
        let components = take(&mut map, PLATFORM_COMPONENTS, "a list of references", |array| {
            references(array, PLATFORM_COMPONENTS, names, component_overrides)
        })?;
        let mut others = Vec::new();
        for kind in kinds.referable().filter(|kind| kind.shape() == Shape::Definition) {
            let name = kind.name().as_str();
            let found = take(&mut map, name, "a list of references", |array| {
                references(array, name, names, |map, _| Some(Fields::of(map)))
            })?;
            if let Some(found) = found.filter(|found| !found.is_empty()) {
                others.push((kind.name().clone(), found));
            }
        }
        Ok(Self {
            id,
            dns: Dns::from(&*require_text(&mut map, "cluster_dns")?),
            name: require_text(&mut map, "cluster_name")?,
            environment: names.share("", &require_text(&mut map, "environment")?),
            protected: take_flag(&mut map, "protected")?,
            labels: take(&mut map, "labels", "a map of strings", |labels| match labels {
                Value::Object(labels) => labels.into_iter().map(|(key, value)| Some((key.into(), value.as_str()?.into()))).collect(),
                _ => None,
            })?,
            components: components.unwrap_or_default(),
            references: others.into(),
            patches: take(&mut map, "patches", "a map of maps of strings", |patches| match patches {
                Value::Object(patches) => Patches::of(patches, names),
                _ => None,
            })?
            .unwrap_or_default(),
            rest: Fields::of(map),
        })
    }

    pub(crate) fn to_map(&self) -> Map<String, Value> {
        let mut map = Map::new();
        self.rest.put_into(&mut map);
        let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
        put("id", self.id.as_str().into());
        put("cluster_dns", self.dns.as_str().into());
        put("cluster_name", (*self.name).into());
        put("environment", self.environment.as_str().into());
        if let Some(protected) = self.protected {
            put("protected", protected.into());
        }
        if let Some(labels) = &self.labels {
            put("labels", labels.iter().map(|(key, value)| (key.to_string(), Value::from(&**value))).collect());
        }
        if !self.components.is_empty() {
            put(PLATFORM_COMPONENTS, self.components.iter().map(component_reference).collect());
        }
        for (kind, references) in &self.references {
            put(kind.as_str(), references.iter().map(definition_reference).collect());
        }
        let patches: Map<String, Value> = self.patches.iter().map(|of| (of.component.to_string(), patches_value(of))).collect();
        if !patches.is_empty() {
            put("patches", patches.into());
        }
        map
    }

    /// Its references to a kind other than components.
    pub fn references_to(&self, kind: &str) -> &[Reference<Fields>] {
        let at = self.references.binary_search_by(|(name, _)| name.as_str().cmp(kind));
        at.map_or(&[], |at| &self.references[at].1)
    }

    /// Its reference to a component.
    pub fn component(&self, id: &str) -> Option<&Reference<ComponentOverrides>> {
        self.components.binary_search_by(|reference| reference.id.as_str().cmp(id)).ok().map(|at| &self.components[at])
    }

    /// The ids of what it refers to, of one kind, and whether each is installed.
    pub fn inputs_of(&self, kind: &str) -> impl Iterator<Item = (&Id, bool)> {
        let components = if kind == PLATFORM_COMPONENTS { &*self.components } else { &[] };
        let components = components.iter().map(|reference| (&reference.id, reference.enabled()));
        components.chain(self.references_to(kind).iter().map(|reference| (&reference.id, true)))
    }

    /// Whether it refers to a document, as a reference or as a dependency that it sets itself.
    pub fn refers_to(&self, kind: &str, id: &str) -> bool {
        match kind {
            PLATFORM_COMPONENTS => {
                self.component(id).is_some()
                    || self.components.iter().any(|r| r.own_dependencies().is_some_and(|ids| ids.iter().any(|d| d.as_str() == id)))
            }
            _ => self.references_to(kind).binary_search_by(|reference| reference.id.as_str().cmp(id)).is_ok(),
        }
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
) -> Option<Box<[Reference<O>]>> {
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

fn component_reference(reference: &Reference<ComponentOverrides>) -> Value {
    let mut map = Map::new();
    if let Some(overrides) = &reference.overrides {
        overrides.rest.put_into(&mut map);
        let mut put = |name: &str, value: Option<Value>| value.and_then(|value| map.insert(name.to_owned(), value));
        put("enabled", overrides.enabled.map(Value::from));
        put("oci_tag", overrides.oci_tag.as_deref().map(Value::from));
        put("component_path", overrides.component_path.as_deref().map(Value::from));
        put("depends_on", overrides.depends_on.as_deref().map(ids_to_value));
    }
    map.insert("id".to_owned(), reference.id.as_str().into());
    map.into()
}

fn definition_reference(reference: &Reference<Fields>) -> Value {
    let mut map = Map::new();
    if let Some(overrides) = &reference.overrides {
        overrides.put_into(&mut map);
    }
    map.insert("id".to_owned(), reference.id.as_str().into());
    map.into()
}

fn patches_value(of: ComponentPatches<'_>) -> Value {
    serde_json::from_str(of.patches).expect("it was encoded from a value")
}

/// Brings an object into the one form that its meaning has: no `null`, references and dependencies sorted, no empty
/// reference array and no empty patches. Tells which references are there twice.
pub(crate) fn normalise(kind: &Kind, kinds: &Kinds, map: &mut Map<String, Value>, findings: &mut Vec<Finding>) {
    canonical::drop_nulls_in(map);
    match kind.shape() {
        Shape::Definition => {}
        Shape::Component => sort_ids(map),
        Shape::Cluster => {
            for kind in kinds.referable() {
                normalise_references(kind, map, findings);
            }
            if let Some(Value::Object(patches)) = map.get_mut("patches") {
                patches.retain(|_, of| of.as_object().is_none_or(|of| !of.is_empty()));
                if patches.is_empty() {
                    map.remove("patches");
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
            findings.push(Finding::new(at, format!("`{one}` is there twice; list each {} once", kind.singular())));
        }
    }
}

fn sort_ids(map: &mut Map<String, Value>) {
    if let Some(Value::Array(ids)) = map.get_mut("depends_on") {
        ids.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
}
