//! A cluster: who phones home, and what it should run.
//!
//! There may be a hundred thousand of them, so it is kept small: names are shared, a reference without overrides is one
//! pointer pair, and patches are held once, as the very bytes that are sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserializer;

use super::encode::{self, Wanted};
use super::patches::Patches;
use super::{Fields, Interner, Kept, missing, read};
use crate::canonical::Canonical;
use crate::finding::Finding;
use crate::fragment::ClusterPart;
use crate::hash::InputHash;
use crate::ids::{Dns, Id, KindName, PATCHES, PLATFORM_COMPONENTS};
use crate::kind::{Kinds, Shape};

/// A reference to a document, and what this cluster overrides of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reference<O> {
    /// What is referred to.
    pub id: Id,
    /// What is different here.
    pub overrides: Option<Arc<O>>,
}

/// What a cluster may say about one of its components.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
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
pub type Labels = Box<[(Id, Id)]>;
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
    pub(crate) patches: Patches,
    /// Whatever else the document has.
    pub rest: Fields,
    /// What the cluster itself adds to the hash of each of its inputs.
    pub(crate) hash: InputHash,
}

impl Cluster {
    /// Reads a cluster from its text or its object; what is kept of an earlier version is not in it.
    pub(crate) fn read<'de>(
        source: impl Deserializer<'de>,
        kept: Option<&Kept>,
        kinds: &Kinds,
        names: &mut Interner<'_>,
    ) -> Result<Self, Finding> {
        let parts = read::parts(source, kinds, names)?;
        let required = |value: Option<Box<str>>, name: &str| value.ok_or_else(|| missing(name));
        let id = Id::from(&*required(parts.id, "id")?);
        let (mut components, mut references) = (parts.components, parts.references);
        let mut patches = None;
        if let Some(kept) = kept {
            let from = kept.from();
            if kept.holds(PLATFORM_COMPONENTS) {
                components = Some(from.components.clone());
            }
            references.retain(|(kind, _)| !kept.holds(kind.as_str()));
            references.extend(from.references.iter().filter(|(kind, _)| kept.holds(kind.as_str())).cloned());
            references.sort_by(|(one, _), (other, _)| one.cmp(other));
            if kept.holds(PATCHES) {
                patches = Some(from.patches.clone());
            } else if let Some(touched) = kept.touched_patches() {
                let read = parts.patches.as_ref();
                patches = Some(from.patches.with(touched, read.unwrap_or(&Patches::default())));
            }
        }
        references.retain(|(_, found)| !found.is_empty());
        let components = components.unwrap_or_default();
        let mut cluster = Self {
            id,
            has_own_dependencies: components.iter().any(|reference| reference.own_dependencies().is_some()),
            dns: Dns::from(&*required(parts.dns, "cluster_dns")?),
            name: required(parts.name, "cluster_name")?,
            environment: parts.environment.ok_or_else(|| missing("environment"))?,
            protected: parts.protected,
            labels: parts.labels,
            components,
            references: references.into(),
            patches: patches.or(parts.patches).unwrap_or_default(),
            rest: Fields::of(parts.rest),
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
        labels.binary_search_by(|(known, _)| known.as_str().cmp(key)).ok().map(|at| labels[at].1.as_str())
    }

    /// Whether another version of this cluster has the very same references of a kind, and for components the same patches. Versions share
    /// what a change does not touch, so this need not look into them; `false` may only mean that they do not share.
    pub(crate) fn shares_inputs(&self, other: &Self, kind: &str) -> bool {
        if kind == PLATFORM_COMPONENTS {
            return Arc::ptr_eq(&self.components, &other.components)
                && self.patches.are_shared(&other.patches);
        }
        let of = |cluster: &Self| {
            cluster
                .references
                .iter()
                .find(|(name, _)| name.as_str() == kind)
                .map(|(_, references)| references.clone())
        };
        match (of(self), of(other)) {
            (Some(one), Some(other)) => Arc::ptr_eq(&one, &other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether its environment is one of production: whoever looks at a change wants to see these first.
    pub fn is_production(&self) -> bool {
        is_production(&self.environment)
    }

    /// Whether its deletion is refused.
    pub fn is_protected(&self) -> bool {
        self.protected.unwrap_or(false)
    }
}

/// Whether an environment is one of production: `prod`, or called like it.
pub(crate) fn is_production(environment: &Id) -> bool {
    environment.as_str().starts_with("prod")
}
