//! Many operations in one transaction.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most operations of one batch.
pub const MAX_OPERATIONS: usize = 10_000;
/// The most bytes of the body of a request.
pub const MAX_BODY: usize = 8 * 1024 * 1024;

/// One operation of `POST /batch`. `kind` is spelt with underscores. Where `selector` is allowed in place of `id` or `cluster`, it selects clusters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// Make a document that is not there.
    Create {
        /// Its kind.
        kind: String,
        /// Its id, if it is to be said here too: that of the document.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The document.
        body: Value,
        /// Whether a cluster may take the DNS name of a decommissioned one.
        #[serde(default)]
        replace_decommissioned: bool,
    },
    /// Replace a document that is there.
    Put {
        /// Its kind.
        kind: String,
        /// Its id.
        id: String,
        /// The document.
        body: Value,
        /// The revision it must have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<u64>,
    },
    /// Change a document, or each of the selected clusters.
    Patch {
        /// Its kind.
        kind: String,
        /// Its id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Which clusters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        selector: Option<String>,
        /// The patch.
        body: Value,
        /// How it is meant.
        #[serde(default)]
        patch_type: PatchType,
        /// The revision it must have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<u64>,
    },
    /// Delete a document, or decommission clusters.
    Delete {
        /// Its kind.
        kind: String,
        /// Its id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Which clusters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        selector: Option<String>,
        /// The revision it must have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<u64>,
    },
    /// Set one reference of a cluster, or of each of the selected ones.
    Assign {
        /// The kind of what is referred to.
        kind: String,
        /// What is referred to.
        id: String,
        /// The cluster.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cluster: Option<String>,
        /// Or which clusters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        selector: Option<String>,
        /// The overrides.
        #[serde(default)]
        body: Value,
    },
    /// Change one reference of a cluster, or of each of the selected ones that have it.
    PatchReference {
        /// The kind of what is referred to.
        kind: String,
        /// What is referred to.
        id: String,
        /// The cluster.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cluster: Option<String>,
        /// Or which clusters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        selector: Option<String>,
        /// The patch.
        body: Value,
        /// How it is meant.
        #[serde(default)]
        patch_type: PatchType,
    },
    /// Change the patches of a cluster for a component, or of each of the selected ones that have it.
    PatchValues {
        /// The component.
        id: String,
        /// The cluster.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cluster: Option<String>,
        /// Or which clusters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        selector: Option<String>,
        /// Values to set, `null` for those to remove; `null` in place of all of it removes them all.
        body: Value,
    },
    /// Remove one reference of a cluster, or of each of the selected ones that have it.
    Unassign {
        /// The kind of what is referred to.
        kind: String,
        /// What is referred to.
        id: String,
        /// The cluster.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cluster: Option<String>,
        /// Or which clusters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        selector: Option<String>,
    },
    /// Forget a decommissioned cluster.
    Forget {
        /// Its DNS name.
        dns: String,
    },
}

/// How a patch is meant.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PatchType {
    /// References merge by id.
    #[default]
    Strategic,
    /// RFC 7396.
    Merge,
    /// RFC 6902.
    Json,
}

/// The answer to a batch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BatchAnswer {
    /// The revision that it made; the head's if it changed nothing.
    pub revision: u64,
    /// How many documents it changed.
    pub changed: usize,
    /// The first of these.
    pub documents: Vec<ChangedDocument>,
}

/// A document that a batch changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChangedDocument {
    /// Its kind.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// Whether it is gone.
    pub deleted: bool,
}
