//! Kinds: what sorts of documents there are. A kind is one file in the Firestone resource format with our part under
//! `metadata.x-flux`; everything the core knows about it is read from that file once.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::canonical::{self, Canonical};
use crate::document::PATCHES;
use crate::grammar;
use crate::ids::{CLUSTERS, DECOMMISSIONED, KINDS, KindName, PLATFORM_COMPONENTS};
use crate::schema::Schema;

/// The kind files that ship in the binary.
const SHIPPED: [&str; 4] = [
    include_str!("../../../resources/clusters.yaml"),
    include_str!("../../../resources/namespaces.yaml"),
    include_str!("../../../resources/platform_components.yaml"),
    include_str!("../../../resources/rolebindings.yaml"),
];

/// What the core makes of a kind's documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A cluster: who phones home, and what it refers to.
    Cluster,
    /// A component of the catalog: carries the merge rules.
    Component,
    /// An id and fields: namespaces, rolebindings and every added kind.
    Definition,
}

/// How the guard counts the removal of an input of this kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuardClass {
    /// Against the few deletions an hour: its removal takes data with it.
    Each,
    /// Against the many removals an hour.
    Ordinary,
}

/// A property that a kind's schema declares, and what an input shows when neither reference nor definition set it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Property {
    pub(crate) name: Box<str>,
    pub(crate) otherwise: Box<str>,
}

/// A kind, read from its file.
#[derive(Debug)]
pub struct Kind {
    name: KindName,
    path: Box<str>,
    singular: Box<str>,
    shape: Shape,
    guard: GuardClass,
    reserved: Vec<String>,
    reserved_because: String,
    pub(crate) properties: Box<[Property]>,
    file: Map<String, Value>,
    schema: Schema,
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

/// A kind file that cannot be used, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the kind `{kind}` cannot be used: {}", .problems.join("; "))]
pub struct BadKind {
    /// The kind's name as far as it could be read.
    pub kind: String,
    /// Everything that is wrong with it.
    pub problems: Vec<String>,
}

/// Names that a kind cannot have: fixed routes, and what stands beside `{ref}` under a cluster.
const TAKEN: [&str; 20] = [
    KINDS,
    DECOMMISSIONED,
    "api",
    "batch",
    "changes",
    "diff",
    "explain",
    "feed",
    "health",
    "history",
    "inputs",
    "metrics",
    "openapi",
    "ready",
    "revisions",
    "static",
    "tokens",
    "ui",
    "users",
    "watch",
];

/// What the typed core reads of its two shapes, with the types it expects.
const CLUSTER_CORE: [(&str, &str); 10] = [
    ("id", "string"),
    ("cluster_name", "string"),
    ("cluster_dns", "string"),
    ("environment", "string"),
    ("platform_components", "array"),
    ("namespaces", "array"),
    ("rolebindings", "array"),
    ("patches", "object"),
    ("labels", "object"),
    ("protected", "boolean"),
];
const COMPONENT_CORE: [(&str, &str); 8] = [
    ("id", "string"),
    ("component_path", "string"),
    ("component_version", "string"),
    ("oci_url", "string"),
    ("oci_tag", "string"),
    ("cluster_env_enabled", "boolean"),
    ("depends_on", "array"),
    ("delivery", "string"),
];

impl Kind {
    /// The four kinds that ship in the binary.
    ///
    /// # Panics
    /// Never in a binary whose tests have passed: they are compiled in.
    pub fn shipped() -> Vec<Self> {
        SHIPPED
            .iter()
            .map(|text| Self::parse(text).expect("a shipped kind is right: a test says so"))
            .collect()
    }

    /// Reads a kind from its file, YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, BadKind> {
        let bad = |problem: String| BadKind { kind: "?".to_owned(), problems: vec![problem] };
        match serde_saphyr::from_str::<Value>(text) {
            Ok(Value::Object(file)) => Self::from_file(file),
            Ok(_) => Err(bad("a kind file is one object".to_owned())),
            Err(error) => Err(bad(format!("it is not YAML: {error}"))),
        }
    }

    /// Reads a kind from the object in its file, and refuses one that breaks a rule.
    fn from_file(file: Map<String, Value>) -> Result<Self, BadKind> {
        let (kind, bad) = Self::read(file);
        match kind {
            Some(kind) if bad.problems.is_empty() => Ok(kind),
            _ => Err(bad),
        }
    }

    /// Reads a kind that the ledger holds: rules that it breaks today do not matter, if it can be used at all.
    pub(crate) fn stored(file: Map<String, Value>) -> Result<Self, BadKind> {
        let (kind, bad) = Self::read(file);
        kind.ok_or(bad)
    }

    fn read(file: Map<String, Value>) -> (Option<Self>, BadKind) {
        let name = file.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut problems = Vec::new();
        let kind = read(&name, file, &mut problems);
        (kind, BadKind { kind: name, problems })
    }

    /// Its name, spelt with underscores.
    pub fn name(&self) -> &KindName {
        &self.name
    }

    /// Its name in the Flux endpoints, spelt with hyphens.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What one document of it is called.
    pub fn singular(&self) -> &str {
        &self.singular
    }

    /// What the core makes of its documents.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How the guard counts removals of it.
    pub fn guard(&self) -> GuardClass {
        self.guard
    }

    /// The whole file.
    pub fn file(&self) -> &Map<String, Value> {
        &self.file
    }

    /// The schema of a document, as the file has it.
    pub fn document_schema(&self) -> &Value {
        &self.file["schema"]["items"]
    }

    /// Whether no keyword of the schema looks at several fields of a document at once.
    pub(crate) fn decomposes(&self) -> bool {
        let one_by_one = [
            "type",
            "properties",
            "required",
            "additionalProperties",
            "title",
            "description",
            "descriptions",
        ];
        self.document_schema()
            .as_object()
            .is_some_and(|schema| schema.keys().all(|keyword| one_by_one.contains(&keyword.as_str())))
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn canonical(&self) -> Canonical {
        Canonical::of(&self.file)
    }

    /// Why a document may not have this id, if it may not.
    pub(crate) fn reserves(&self, id: &str) -> Option<String> {
        let pattern = self.reserved.iter().find(|pattern| grammar::reserved_by(pattern, id))?;
        let because = &self.reserved_because;
        Some(format!("`{id}` is reserved (`{pattern}`): {because}; choose another id"))
    }

    /// The schema of a reference to a document of this kind: its id, and what may be overridden.
    fn reference_schema(&self, declared: Option<&Value>) -> Value {
        let properties = match self.shape {
            // What a cluster may override of a component is part of the cluster's own file.
            Shape::Component => declared.and_then(|array| array.pointer("/items/properties")),
            Shape::Cluster | Shape::Definition => self.document_schema().get("properties"),
        };
        // Keywords that look at several fields are for the whole document: `apply` checks the merged one.
        let items = json!({"type": "object", "properties": properties, "required": ["id"], "additionalProperties": false});
        json!({"type": "array", "items": items})
    }
}

fn read(name: &str, file: Map<String, Value>, problems: &mut Vec<String>) -> Option<Kind> {
    let spelt_right = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
        && name.len() <= 63
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !spelt_right {
        problems.push(
            "`kind` must be a name of at most 63 of a-z, 0-9 and `_`, beginning with a letter".to_owned(),
        );
    }
    if TAKEN.contains(&name) {
        problems.push(format!("`{name}` is the name of a fixed route"));
    }
    let flux = file.get("metadata").and_then(|metadata| metadata.get("x-flux"));
    let text = |field: &str| flux.and_then(|flux| flux.get(field)?.as_str());
    let expected = match name {
        CLUSTERS => Shape::Cluster,
        PLATFORM_COMPONENTS => Shape::Component,
        _ => Shape::Definition,
    };
    let shape = match text("shape") {
        Some("cluster") => Shape::Cluster,
        Some("component") => Shape::Component,
        None | Some("definition") => Shape::Definition,
        Some(other) => {
            problems.push(format!(
                "`metadata.x-flux.shape` must be cluster, component or definition, not `{other}`"
            ));
            expected
        }
    };
    if shape != expected {
        problems.push(format!(
            "`metadata.x-flux.shape` of `{name}` must be {}",
            format!("{expected:?}").to_lowercase()
        ));
    }
    let guard = match text("guard") {
        Some("each") => GuardClass::Each,
        None => GuardClass::Ordinary,
        Some(other) => {
            problems.push(format!("`metadata.x-flux.guard` must be `each` or absent, not `{other}`"));
            GuardClass::Ordinary
        }
    };
    let reserved =
        flux.and_then(|flux| flux.get("reserved")?.as_array()).map(Vec::as_slice).unwrap_or_default();
    let reserved = reserved.iter().filter_map(|pattern| Some(pattern.as_str()?.to_owned())).collect();
    let reserved_because = text("reserved_because").unwrap_or("the kind's file says so").to_owned();
    let singular = text("singular").unwrap_or_else(|| name.strip_suffix('s').unwrap_or(name)).into();

    let Some(items) =
        file.get("schema").and_then(|schema| schema.get("items")).filter(|items| items.is_object())
    else {
        problems.push("`schema.items` must be the JSON Schema of one document".to_owned());
        return None;
    };
    let empty = Map::new();
    let declared = items.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let properties = read_properties(shape, declared, problems);
    if !items.get("required").and_then(Value::as_array).is_some_and(|names| names.contains(&json!("id"))) {
        problems.push("`schema.items.required` must name `id`".to_owned());
    }
    let mut closed = items.clone();
    closed["additionalProperties"] = json!(false);
    let schema = match Schema::compile(closed) {
        Ok(schema) => schema,
        Err(problem) => {
            problems.push(format!("`schema.items` is not a usable JSON Schema: {problem}"));
            return None;
        }
    };
    let path = name.replace('_', "-").into();
    let name = KindName::from(name);
    Some(Kind { name, path, singular, shape, guard, reserved, reserved_because, properties, file, schema })
}

fn read_properties(
    shape: Shape,
    declared: &Map<String, Value>,
    problems: &mut Vec<String>,
) -> Box<[Property]> {
    let core: &[(&str, &str)] = match shape {
        Shape::Cluster => &CLUSTER_CORE,
        Shape::Component => &COMPONENT_CORE,
        Shape::Definition => &[("id", "string")],
    };
    for (name, of_type) in core {
        if declared.get(*name).and_then(|property| property.get("type")) != Some(&json!(of_type)) {
            problems.push(format!(
                "`schema.items.properties.{name}` must be there, of type {of_type}: the service reads it"
            ));
        }
    }
    let mut properties = Vec::new();
    for (name, property) in declared {
        if shape == Shape::Definition && matches!(name.as_str(), "cluster" | "provider") {
            problems.push(format!(
                "a property cannot be called `{name}`: every input has one of that name already"
            ));
        }
        if name.starts_with('$') || canonical::encode(name).len() != name.len() + 2 {
            problems.push(format!("a property cannot be called {name:?}"));
        }
        let empty = match property.get("type").and_then(Value::as_str) {
            Some("string") => json!(""),
            Some("integer" | "number") => json!(0),
            Some("boolean") => json!(false),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => {
                problems.push(format!(
                    "`schema.items.properties.{name}.type` must be one of string, integer, number, boolean, array, object: every input shows the property, if only empty"
                ));
                continue;
            }
        };
        if let Some(default) = property.get("default") {
            let mut findings = Vec::new();
            if let Ok(schema) = Schema::compile(property.clone()) {
                schema.check(default, &mut findings);
            }
            problems.extend(
                findings
                    .into_iter()
                    .map(|f| format!("`schema.items.properties.{name}.default` {}", f.message)),
            );
        }
        let otherwise = canonical::encode(property.get("default").unwrap_or(&empty));
        properties.push(Property { name: name.as_str().into(), otherwise: otherwise.into() });
    }
    properties.into()
}

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

    fn definition(extra: &Value) -> Value {
        let mut file = json!({
            "kind": "network_policies", "apiVersion": "v1", "metadata": {"x-flux": {}},
            "schema": {
                "key": {"name": "id", "schema": {"type": "string"}},
                "items": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
            },
        });
        json_patch::merge(&mut file, extra);
        file
    }

    fn problems(extra: &Value) -> Vec<String> {
        Kind::parse(&definition(extra).to_string()).err().map(|bad| bad.problems).unwrap_or_default()
    }

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
    fn an_added_kind_is_read() {
        let kind = Kind::parse(&definition(&json!({"metadata": {"x-flux": {"guard": "each"}}})).to_string())
            .expect("good");
        assert_eq!(
            (kind.path(), kind.singular(), kind.guard()),
            ("network-policies", "network_policie", GuardClass::Each)
        );
    }

    #[test]
    fn every_problem_of_a_kind_file_is_told() {
        assert_eq!(problems(&json!({})), Vec::<String>::new());
        let found = problems(&json!({
            "kind": "batch",
            "metadata": {"x-flux": {"shape": "component", "guard": "all"}},
            "schema": {"items": {"properties": {"provider": {"type": "string"}, "x": {}}, "required": ["x"]}},
        }));
        let starts = [
            "`batch` is the name of a fixed route",
            "`metadata.x-flux.shape` of `batch` must be definition",
            "`metadata.x-flux.guard` must be `each` or absent, not `all`",
            "`schema.items.properties.component_path` must be there, of type string",
        ];
        for start in starts {
            assert!(found.iter().any(|problem| problem.starts_with(start)), "{start} in {found:#?}");
        }
        assert!(found.iter().any(|problem| problem.contains("properties.x.type")), "{found:#?}");
        assert!(
            problems(&json!({"schema": {"items": {"properties": {"provider": {"type": "string"}}}}}))[0]
                .contains("`provider`")
        );
        assert!(
            problems(&json!({"schema": {"items": {"properties": {"id": {"type": "integer"}}}}}))[0]
                .contains("of type string")
        );
        assert!(problems(&json!({"kind": "Bad-Name"}))[0].contains("`kind` must be a name"));
        assert!(
            problems(
                &json!({"schema": {"items": {"properties": {"x": {"type": "string", "pattern": "("}}}}})
            )[0]
            .contains("not a usable JSON Schema")
        );
        assert!(Kind::parse("[]").is_err());
        assert!(Kind::parse("{").is_err());
    }

    #[test]
    fn a_kind_cannot_take_the_name_of_a_clusters_field() {
        let labels =
            Kind::parse(&definition(&json!({"kind": "labels"})).to_string()).expect("good by itself");
        let all = Kind::shipped().into_iter().chain([labels]).map(Arc::new);
        assert_eq!(Kinds::new(all).expect("each is usable").collisions()[0].kind, "labels");
    }
}
