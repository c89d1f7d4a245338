//! Kinds: what sorts of documents there are. A kind is one file in the Firestone resource format with our part under
//! `metadata.x-flux`; everything the core knows about it is read from that file once.

mod file;
mod query;
mod registry;
mod reserved;

use serde_json::{Map, Value, json};

pub use query::{ParameterType, QueryParameter};
pub use registry::Kinds;
pub use reserved::Reserved;

use crate::canonical::Canonical;
use crate::document::Field;
use crate::grammar;
use crate::ids::{CLUSTERS, KindName, PLATFORM_COMPONENTS};
use crate::schema::Schema;

/// The kind files that ship in the binary.
const SHIPPED: &[&str] = &[
    include_str!("../../../../resources/clusters.yaml"),
    include_str!("../../../../resources/namespaces.yaml"),
    include_str!("../../../../resources/platform_components.yaml"),
    include_str!("../../../../resources/rolebindings.yaml"),
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

impl Shape {
    /// The word for it in kind files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Component => "component",
            Self::Definition => "definition",
        }
    }

    /// What the core makes of the documents of a kind, by its name.
    pub fn of(kind: &str) -> Self {
        match kind {
            CLUSTERS => Self::Cluster,
            PLATFORM_COMPONENTS => Self::Component,
            _ => Self::Definition,
        }
    }
}

impl KindName {
    pub fn shape(&self) -> Shape {
        Shape::of(self.as_str())
    }
}

/// How the guard counts the removal of an input of this kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum GuardClass {
    /// Against the few deletions an hour: its removal takes data with it.
    Each,
    /// Against the many removals an hour.
    Ordinary,
}

impl GuardClass {
    /// As `GET /kinds` tells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Each => "each",
            Self::Ordinary => "ordinary",
        }
    }
}

/// A property that a kind's schema declares, and what an input shows when neither reference nor definition set it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Property {
    pub(crate) name: Box<str>,
    pub(crate) otherwise: Field,
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
    query_parameters: Box<[QueryParameter]>,
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

impl Kind {
    /// The kinds that ship in the binary.
    ///
    /// # Panics
    /// Never in a binary whose tests have passed: they are compiled in.
    pub fn shipped() -> Vec<Self> {
        SHIPPED
            .iter()
            .map(|text| {
                Self::parse(text, &Reserved::none()).expect("a shipped kind is right: a test says so")
            })
            .collect()
    }

    /// Reads a kind from its file, YAML or JSON, and refuses a name that is taken.
    pub fn parse(text: &str, taken: &Reserved) -> Result<Self, BadKind> {
        let bad = |problem: String| BadKind { kind: "?".to_owned(), problems: vec![problem] };
        match serde_saphyr::from_str::<Value>(text) {
            Ok(Value::Object(file)) => Self::from_file(file, taken),
            Ok(_) => Err(bad("a kind file is one object".to_owned())),
            Err(error) => Err(bad(format!("it is not YAML: {error}"))),
        }
    }

    /// Reads a kind from the object in its file, and refuses one that breaks a rule.
    fn from_file(file: Map<String, Value>, taken: &Reserved) -> Result<Self, BadKind> {
        let (kind, bad) = Self::read(file, taken);
        match kind {
            Some(kind) if bad.problems.is_empty() => Ok(kind),
            _ => Err(bad),
        }
    }

    /// Reads a kind that the ledger holds: rules that it breaks today do not matter, if it can be used at all.
    pub(crate) fn stored(file: Map<String, Value>) -> Result<Self, BadKind> {
        let (kind, bad) = Self::read(file, &Reserved::none());
        kind.ok_or(bad)
    }

    fn read(file: Map<String, Value>, taken: &Reserved) -> (Option<Self>, BadKind) {
        let name = file.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut problems = Vec::new();
        let kind = file::read(&name, file, taken, &mut problems);
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

    /// The filters that its lists have, as the file declares them.
    pub fn query_parameters(&self) -> &[QueryParameter] {
        &self.query_parameters
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
