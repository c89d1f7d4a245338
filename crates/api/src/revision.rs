//! The audit log.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A commit without what it changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Revision {
    /// Its number.
    pub revision: u64,
    /// Its hash, which covers everything before it.
    pub hash: String,
    /// When, RFC 3339 in UTC.
    pub time: String,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: Option<String>,
    /// Which request.
    pub request_id: Option<String>,
    /// What it made Flux delete.
    pub removals: Counts,
    /// How many documents it changed.
    pub changed: usize,
    /// The first of these.
    pub documents: Vec<DocumentKey>,
}

/// How much a commit made Flux delete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Counts {
    /// Clusters.
    pub decommissions: u32,
    /// Inputs of kinds whose deletion takes data with it.
    pub each: u32,
    /// Other inputs.
    pub ordinary: u32,
    /// Whether the guard asked, and somebody confirmed exactly these.
    pub confirmed: bool,
    /// Whether an allowance covered them.
    #[serde(default)]
    pub allowed: bool,
}

/// The name of a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DocumentKey {
    /// Its kind; `kinds` for a kind itself, `decommissioned` for the record of a decommissioned cluster.
    pub kind: String,
    /// Its id.
    pub id: String,
}

impl fmt::Display for DocumentKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.kind, self.id)
    }
}

/// A commit with what it changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RevisionDetail {
    /// The commit.
    #[serde(flatten)]
    pub revision: Revision,
    /// What it changed, or a page of that.
    pub changes: Vec<DocumentChange>,
}

/// What became of a document in a commit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DocumentChange {
    /// Which document.
    #[serde(flatten)]
    pub document: DocumentKey,
    /// What it was; `null` if it was not there.
    pub before: Option<Value>,
    /// What it became; `null` if it is gone.
    pub after: Option<Value>,
}

/// One revision of a document.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DocumentVersion {
    /// The commit's number.
    pub revision: u64,
    /// When, RFC 3339 in UTC.
    pub time: String,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: Option<String>,
    /// Which request.
    pub request_id: Option<String>,
    /// What it was; `null` if it was not there.
    pub before: Option<Value>,
    /// What it became; `null` if it is gone.
    pub after: Option<Value>,
}
