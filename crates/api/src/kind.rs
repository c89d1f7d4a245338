//! The kinds of documents that a service has.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The shape of clusters.
pub const CLUSTER: &str = "cluster";
/// The shape of components.
pub const COMPONENT: &str = "component";
/// How the guard sees what takes data with it.
pub const EACH: &str = "each";
/// What kinds themselves are called where the name of a kind stands.
pub const KINDS: &str = "kinds";

/// A kind, as `GET /kinds` tells it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Kind {
    /// Its name in paths and documents: a plural, with underscores.
    pub name: String,
    /// Its name in the paths that clusters poll, with hyphens.
    pub path: String,
    /// What one of them is called.
    pub singular: String,
    /// `cluster`, `component` or `definition`.
    pub shape: String,
    /// `each` if its deletion takes data with it, else `ordinary`.
    pub guard: String,
    /// What it is.
    pub description: Option<String>,
    /// What a list of them can be filtered by.
    pub query_parameters: Vec<String>,
    /// The JSON Schema of a document.
    pub schema: Value,
}
