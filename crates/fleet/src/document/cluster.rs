//! A cluster: who phones home, and what it should run.
//!
//! There may be a hundred thousand of them, so it is kept small: names are shared, a reference without overrides is one
//! pointer pair, and patches are held once, as the very bytes that are sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::component::take_ids;
use super::encode::{self, Wanted};
use super::patches::Patches;
use super::{Fields, Interner, Kept, require_text, take, take_flag, take_text};
use crate::canonical::Canonical;
use crate::finding::Finding;
use crate::fragment::{self, ClusterPart};
use crate::hash::InputHash;
use crate::ids::{Dns, Id, KindName, PATCHES, PLATFORM_COMPONENTS};
use crate::kind::{Kinds, Shape};

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
    /// What these add to the hash of the input.
    pub(crate) hash: InputHash,
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
    /// Whether it sets the dependencies of one of its components itself. Few clusters do, and a walk over the fleet that asks for
    /// it need not look into every reference.
    has_own_dependencies: bool,
    /// The components it runs, sorted by id.
    pub components: Arc<[Reference<ComponentOverrides>]>,
    /// Its references to every other kind, sorted by kind and id. A kind that it refers to nowhere is absent.
    pub references: Box<[References]>,
    pub(crate) patches: Arc<Patches>,
    /// Whatever else the document has.
    pub rest: Fields,
    /// What the cluster itself adds to the hash of each of its inputs.
    pub(crate) hash: InputHash,
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
        let kept_of = |member: &str| kept.filter(|kept| kept.holds(member)).map(Kept::from);
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
                Some(from) => {
                    let found = from.references.iter().find(|(kind, _)| kind.as_str() == name);
                    found.map(|(_, found)| found.clone())
                }
                None => take(&mut map, name, "a list of references", |array| {
                    references(array, name, names, |map, _| Some(Fields::of(map)))
                })?,
            };
            if let Some(found) = found.filter(|found| !found.is_empty()) {
                others.push((kind.name().clone(), found));
            }
        }
        let patches = match kept_of(PATCHES) {
            Some(from) => from.patches.clone(),
            None => {
                let read = take(&mut map, PATCHES, "a map of maps of strings", |patches| match patches {
                    Value::Object(patches) => Patches::of(patches, names),
                    _ => None,
                })?;
                let read = read.unwrap_or_default();
                match kept.and_then(|kept| Some((kept.from(), kept.touched_patches()?))) {
                    Some((from, components)) => Arc::new(from.patches.with(components, &read)),
                    None => Arc::new(read),
                }
            }
        };
        let components = components.unwrap_or_default();
        let mut cluster = Self {
            id,
            has_own_dependencies: components.iter().any(|reference| reference.own_dependencies().is_some()),
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
            components,
            references: others.into(),
            patches,
            rest: Fields::of(map),
            hash: InputHash::default(),
        };
        cluster.hash = ClusterPart::hash_of(&cluster);
        Ok(cluster)
    }

    pub(crate) fn canonical(&self) -> Canonical {
        Canonical::stored(encode::cluster(self, &Wanted { member: &|_| true, patches_of: None }))
    }

    /// Takes a cluster apart for a change that touches only some of its reference arrays and patches: an object without the
    /// others, and the others as they are.
    pub(crate) fn take_apart(
        &self,
        kept: Vec<Box<str>>,
        touched_patches: Option<BTreeSet<String>>,
    ) -> (Canonical, Kept) {
        let kept = Kept::new(self.clone(), kept, touched_patches);
        let wanted = Wanted { member: &|member| !kept.holds(member), patches_of: kept.touched_patches() };
        (Canonical::stored(encode::cluster(self, &wanted)), kept)
    }

    /// Its references to a kind other than components.
    pub fn references_to(&self, kind: &str) -> &[Reference<Fields>] {
        let at = self.references.binary_search_by(|(name, _)| name.as_str().cmp(kind));
        at.map_or(&[], |at| &self.references[at].1)
    }

    /// Its reference to a document of a kind other than components.
    pub fn reference(&self, kind: &str, id: &str) -> Option<&Reference<Fields>> {
        let references = self.references_to(kind);
        references.binary_search_by(|reference| reference.id.as_str().cmp(id)).ok().map(|at| &references[at])
    }

    /// Its reference to a component.
    pub fn component(&self, id: &str) -> Option<&Reference<ComponentOverrides>> {
        self.components
            .binary_search_by(|reference| reference.id.as_str().cmp(id))
            .ok()
            .map(|at| &self.components[at])
    }

    /// Its references to components whose dependencies it sets itself, and these.
    pub(crate) fn own_dependencies(&self) -> impl Iterator<Item = (&Reference<ComponentOverrides>, &[Id])> {
        let components = if self.has_own_dependencies { &*self.components } else { &[] };
        components.iter().filter_map(|reference| Some((reference, reference.own_dependencies()?)))
    }

    /// The ids of what it refers to, of one kind, and whether each is installed.
    pub fn inputs_of(&self, kind: &str) -> impl Iterator<Item = (&Id, bool)> {
        let components = if Shape::of(kind) == Shape::Component { &*self.components } else { &[] };
        let components = components.iter().map(|reference| (&reference.id, reference.enabled()));
        components.chain(self.references_to(kind).iter().map(|reference| (&reference.id, true)))
    }

    /// Whether it has an input, and whether that is installed.
    pub(crate) fn input(&self, kind: &str, id: &Id) -> Option<bool> {
        match Shape::of(kind) {
            Shape::Component => self.component(id.as_str()).map(Reference::enabled),
            Shape::Cluster | Shape::Definition => self.reference(kind, id.as_str()).map(|_| true),
        }
    }

    /// Whether it refers to a document, as a reference or as a dependency that it sets itself.
    pub fn refers_to(&self, kind: &str, id: &str) -> bool {
        match Shape::of(kind) {
            Shape::Component => {
                self.component(id).is_some()
                    || self.own_dependencies().any(|(_, ids)| ids.iter().any(|d| d.as_str() == id))
            }
            Shape::Cluster | Shape::Definition => self.reference(kind, id).is_some(),
        }
    }

    /// Whether it refers to the very same documents as another version of it.
    pub(crate) fn refers_alike(&self, other: &Self) -> bool {
        fn ids<O>(references: &[Reference<O>]) -> impl Iterator<Item = &Id> {
            references.iter().map(|reference| &reference.id)
        }
        ids(&self.components).eq(ids(&other.components))
            && self.references.len() == other.references.len()
            && self
                .references
                .iter()
                .zip(&other.references)
                .all(|((a, these), (b, those))| a == b && ids(these).eq(ids(those)))
            && self.own_dependencies().map(|(_, own)| own).eq(other.own_dependencies().map(|(_, own)| own))
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
    let mut overrides = ComponentOverrides {
        enabled: take_flag(&mut map, "enabled").ok()?,
        oci_tag: take_text(&mut map, "oci_tag").ok()?,
        component_path: take_text(&mut map, "component_path").ok()?,
        depends_on: take_ids(&mut map, "depends_on", names).ok()?,
        rest: Fields::of(map),
        hash: InputHash::default(),
    };
    overrides.hash = fragment::hash_of_overrides(&overrides);
    Some(overrides)
}
