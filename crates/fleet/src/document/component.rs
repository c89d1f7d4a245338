//! A component of the catalog.

use serde_json::{Map, Value};

use super::{Fields, Interner, encode, require_text, take, take_flag, take_text};
use crate::canonical::Canonical;
use crate::finding::Finding;
use crate::fragment::ComponentFragment;
use crate::ids::{Id, PLATFORM_COMPONENTS};

/// How a component is installed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Delivery {
    /// As a Helm release.
    Helm,
    /// As a Flux Kustomization.
    Kustomize,
}

impl Delivery {
    /// The word for it in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Helm => "helm",
            Self::Kustomize => "kustomize",
        }
    }
}

/// A component of the catalog, with its input ready to be sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Component {
    /// Its id.
    pub id: Id,
    /// The directory in the artifact, or the chart's name.
    pub component_path: Box<str>,
    /// A version for people to read.
    pub component_version: Option<Box<str>>,
    /// Where it comes from.
    pub oci_url: Box<str>,
    /// Which tag or version of it.
    pub oci_tag: Box<str>,
    /// Whether the environment is part of the path.
    pub cluster_env_enabled: Option<bool>,
    /// What must be ready first, sorted.
    pub depends_on: Option<Box<[Id]>>,
    /// How it is installed, if the document says so.
    pub delivery: Option<Delivery>,
    /// Whatever else the document has.
    pub rest: Fields,
    pub(crate) fragment: ComponentFragment,
}

impl Component {
    pub(crate) fn decode(mut map: Map<String, Value>, names: &mut Interner<'_>) -> Result<Self, Finding> {
        let id = names.share(PLATFORM_COMPONENTS, &require_text(&mut map, "id")?);
        let delivery = take(&mut map, "delivery", "helm or kustomize", |value| match value.as_str() {
            Some("helm") => Some(Delivery::Helm),
            Some("kustomize") => Some(Delivery::Kustomize),
            _ => None,
        })?;
        let mut component = Self {
            id,
            component_path: require_text(&mut map, "component_path")?,
            component_version: take_text(&mut map, "component_version")?,
            oci_url: require_text(&mut map, "oci_url")?,
            oci_tag: require_text(&mut map, "oci_tag")?,
            cluster_env_enabled: take_flag(&mut map, "cluster_env_enabled")?,
            depends_on: take_ids(&mut map, "depends_on", names)?,
            delivery,
            rest: Fields::of(map),
            fragment: ComponentFragment::default(),
        };
        component.fragment = ComponentFragment::of(&component);
        Ok(component)
    }

    pub(crate) fn canonical(&self) -> Canonical {
        Canonical::stored(encode::component(self))
    }

    /// How it is installed: what the document says, else what its source suggests.
    pub fn effective_delivery(&self) -> Delivery {
        self.delivery.unwrap_or(if self.comes_from_oci() { Delivery::Kustomize } else { Delivery::Helm })
    }

    /// Whether its source is an OCI registry.
    pub fn comes_from_oci(&self) -> bool {
        self.oci_url.starts_with("oci://")
    }

    /// Whether the template appends the cluster's environment to the path.
    pub fn follows_environment(&self) -> bool {
        self.cluster_env_enabled.unwrap_or(false)
    }

    /// What must be ready first, unless a cluster's reference says otherwise.
    pub fn dependencies(&self) -> &[Id] {
        self.depends_on.as_deref().unwrap_or_default()
    }
}

pub(super) fn take_ids(
    map: &mut Map<String, Value>,
    name: &str,
    names: &mut Interner<'_>,
) -> Result<Option<Box<[Id]>>, Finding> {
    take(map, name, "a list of ids", |value| {
        let mut ids = Vec::new();
        for id in value.as_array()? {
            ids.push(names.share(PLATFORM_COMPONENTS, id.as_str()?));
        }
        Some(ids.into())
    })
}
