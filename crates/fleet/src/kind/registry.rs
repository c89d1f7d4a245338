//! All kinds in force at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{BadKind, Kind, Shape};
use crate::ids::{CLUSTERS, KindName, PATCHES};
use crate::schema::Schema;

/// All kinds in force, and the cluster's schema that follows from them: one reference array for each kind but itself.
#[derive(Debug)]
pub struct Kinds {
    by_name: BTreeMap<KindName, Arc<Kind>>,
    cluster: Option<Schema>,
    /// Whether the members of a cluster can be judged one by one.
    clusters_decompose: bool,
}

impl PartialEq for Kinds {
    fn eq(&self, other: &Self) -> bool {
        self.by_name == other.by_name
    }
}

impl Kinds {
    pub(crate) fn new(kinds: impl IntoIterator<Item = Arc<Kind>>) -> Result<Self, BadKind> {
        let by_name: BTreeMap<KindName, Arc<Kind>> =
            kinds.into_iter().map(|kind| (kind.name.clone(), kind)).collect();
        let cluster = by_name.get(CLUSTERS).map(|clusters| cluster_schema(clusters, &by_name)).transpose()?;
        let clusters_decompose = by_name.get(CLUSTERS).is_some_and(|clusters| {
            let required =
                clusters.document_schema()["required"].as_array().map(Vec::as_slice).unwrap_or_default();
            let separable = |name: &Value| {
                name.as_str().is_some_and(|name| name == PATCHES || by_name.contains_key(name))
            };
            clusters.decomposes() && !required.iter().any(separable)
        });
        Ok(Self { by_name, cluster, clusters_decompose })
    }

    pub(crate) fn none() -> Self {
        Self { by_name: BTreeMap::new(), cluster: None, clusters_decompose: false }
    }

    /// Kinds that cannot stand beside the cluster's own fields.
    pub(crate) fn collisions(&self) -> Vec<BadKind> {
        let Some(clusters) = self.get(CLUSTERS) else { return Vec::new() };
        let collides = |kind: &&Arc<Kind>| {
            let declared = clusters.document_schema().pointer(&format!("/properties/{}", kind.name));
            declared.is_some_and(|property| property.get("type") != Some(&json!("array")))
        };
        let problem = "a cluster has a field of that name which is no list of references";
        let bad =
            |kind: &Arc<Kind>| BadKind { kind: kind.name.to_string(), problems: vec![problem.to_owned()] };
        self.referable().filter(collides).map(bad).collect()
    }

    /// A kind by its name.
    pub fn get(&self, name: &str) -> Option<&Arc<Kind>> {
        self.by_name.get(name)
    }

    /// A kind that clusters refer to, by its name in a Flux endpoint.
    pub fn by_path(&self, path: &str) -> Option<&Arc<Kind>> {
        // Names and paths differ in one character only, so the path leads straight to the name.
        let kind = if path.contains('-') { self.get(&path.replace('-', "_")) } else { self.get(path) };
        kind.filter(|kind| &*kind.path == path && kind.shape != Shape::Cluster)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.by_name.values()
    }

    /// Those that clusters refer to.
    pub fn referable(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.iter().filter(|kind| kind.shape != Shape::Cluster)
    }

    /// Whether no keyword of the cluster's schema looks at several members at once, so that members which did not change need
    /// not be looked at again.
    pub(crate) fn clusters_decompose(&self) -> bool {
        self.clusters_decompose
    }

    pub(crate) fn schema_of(&self, kind: &Kind) -> Option<&Schema> {
        match kind.shape {
            Shape::Cluster => self.cluster.as_ref(),
            Shape::Component | Shape::Definition => self.get(kind.name.as_str()).map(|kind| kind.schema()),
        }
    }

    /// The environments that a cluster may be in.
    pub fn environments(&self) -> Vec<&str> {
        let environments = self
            .get(CLUSTERS)
            .and_then(|kind| kind.document_schema().pointer("/properties/environment/enum"));
        environments.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

fn cluster_schema(clusters: &Kind, kinds: &BTreeMap<KindName, Arc<Kind>>) -> Result<Schema, BadKind> {
    let mut schema = clusters.document_schema().clone();
    schema["additionalProperties"] = json!(false);
    for kind in kinds.values().filter(|kind| kind.shape != Shape::Cluster) {
        let declared = clusters.document_schema().pointer(&format!("/properties/{}", kind.name));
        schema["properties"][kind.name.as_str()] = kind.reference_schema(declared);
    }
    Schema::compile(schema).map_err(|problem| BadKind { kind: CLUSTERS.to_owned(), problems: vec![problem] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::file::tests::definition;
    use crate::kind::{GuardClass, Kind, Reserved};

    #[test]
    fn the_shipped_kinds_are_right() {
        use GuardClass::{Each, Ordinary};
        use Shape::{Cluster, Component, Definition};
        let kinds = Kinds::new(Kind::shipped().into_iter().map(Arc::new)).expect("they fit together");
        let told: Vec<_> =
            kinds.iter().map(|k| (k.name().as_str(), k.path(), k.singular(), k.shape(), k.guard())).collect();
        assert_eq!(
            told,
            [
                ("clusters", "clusters", "cluster", Cluster, Ordinary),
                ("namespaces", "namespaces", "namespace", Definition, Each),
                ("platform_components", "platform-components", "platform_component", Component, Ordinary),
                ("rolebindings", "rolebindings", "rolebinding", Definition, Ordinary),
            ]
        );
        assert_eq!(kinds.environments(), ["dev", "qa", "uat", "prod"]);
    }

    #[test]
    fn a_flux_path_is_spelt_with_hyphens_and_clusters_have_none() {
        let kinds = Kinds::new(Kind::shipped().into_iter().map(Arc::new)).expect("they fit together");
        assert!(kinds.by_path("platform-components").is_some());
        assert!(kinds.by_path("platform_components").is_none());
        assert!(kinds.by_path("clusters").is_none());
        assert!(kinds.by_path("nonsense").is_none());
    }

    #[test]
    fn a_kind_cannot_take_the_name_of_a_clusters_field() {
        let file = definition(&json!({"kind": "labels"})).to_string();
        let labels = Kind::parse(&file, &Reserved::none()).expect("good by itself");
        let all = Kind::shipped().into_iter().chain([labels]).map(Arc::new);
        assert_eq!(Kinds::new(all).expect("each is usable").collisions()[0].kind, "labels");
    }
}
