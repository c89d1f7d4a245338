//! Lists of documents.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An item of a list with `?revisions=true`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Revisioned {
    /// The revision that last changed the document: what its `ETag` says.
    pub revision: u64,
    /// The document.
    pub document: Value,
}

impl Revisioned {
    /// The document's id.
    pub fn id(&self) -> &str {
        self.document["id"].as_str().unwrap_or_default()
    }
}
