//! What can be asked of the fleet.

use std::sync::Arc;

use serde_json::Value;

use crate::commit::Origin;
use crate::guard::ConfirmDigest;
use crate::ids::Revision;
use crate::kind::Kind;
use crate::patch::Patch;
use crate::selector::Selector;
use crate::space::{Grant, Seeding};

/// Operations that happen all together or not at all.
#[derive(Debug)]
pub struct Transaction {
    /// What to do. Rules are checked on what comes of all of them, not in between.
    pub operations: Vec<Operation>,
    /// Whether the operations were worked out from something else (a revert, what a directory no longer holds) and not spelt by
    /// whoever asks: then no removal is named, and each needs a confirmation.
    pub derived: bool,
    /// What the guard asked about was shown to whoever asks, and is meant.
    pub confirm: Option<ConfirmDigest>,
    /// Who asks, when and why.
    pub origin: Origin,
}

/// One thing to do. `kind` is always spelt with underscores.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Make a document that is not there.
    Create {
        /// Its kind.
        kind: Box<str>,
        /// The document.
        body: Value,
        /// Whether a cluster may take the DNS name of a decommissioned one.
        replace_decommissioned: bool,
    },
    /// Replace a document that is there.
    Put {
        /// Its kind.
        kind: Box<str>,
        /// Its id.
        id: Box<str>,
        /// The document.
        body: Value,
        /// The revision it must have.
        expect: Option<Revision>,
    },
    /// Change a document that is there, or each of the selected clusters.
    Patch {
        /// Its kind.
        kind: Box<str>,
        /// Which.
        target: Target,
        /// How.
        patch: Patch,
    },
    /// Delete a document, or decommission clusters.
    Delete {
        /// Its kind.
        kind: Box<str>,
        /// Which.
        target: Target,
    },
    /// Set one reference of a cluster, or of each of the selected ones.
    Assign {
        /// Which clusters.
        clusters: Target,
        /// The kind of what is referred to.
        kind: Box<str>,
        /// The id of what is referred to.
        id: Box<str>,
        /// The overrides: an object, or `null` for none.
        overrides: Value,
    },
    /// Change one reference of a cluster, or of each of the selected ones that have it.
    PatchReference {
        /// Which clusters.
        clusters: Target,
        /// The kind of what is referred to.
        kind: Box<str>,
        /// The id of what is referred to.
        id: Box<str>,
        /// How.
        patch: Patch,
    },
    /// Change the patches of a cluster for a component, or of each of the selected ones that have it.
    PatchValues {
        /// Which clusters.
        clusters: Target,
        /// The component.
        component: Box<str>,
        /// Values to set, `null` for those to remove; `null` in place of all of it removes them all.
        values: Value,
    },
    /// Remove one reference of a cluster, or of each of the selected ones that have it, with the patches for it.
    RemoveReference {
        /// Which clusters.
        clusters: Target,
        /// The kind of what is referred to.
        kind: Box<str>,
        /// The id of what is referred to.
        id: Box<str>,
    },
    /// Forget a decommissioned cluster: its polls are answered with "unknown" from then on.
    Forget {
        /// The DNS name of the decommission record.
        dns: Box<str>,
    },
    /// Bring a kind into force, or change it.
    Define(Arc<Kind>),
    /// Allow somebody more removals than the guard's hourly budgets.
    Allow(Grant),
    /// Take an allowance back.
    Disallow {
        /// Its id.
        id: Box<str>,
    },
    /// Note that a seed is being loaded; none when it is complete. Only the service itself does this, when it fills a new store.
    Seed(Option<Seeding>),
}

/// Which documents an operation is about.
#[derive(Clone, Debug)]
pub enum Target {
    /// The one with this id.
    One {
        /// Its id.
        id: Box<str>,
        /// The revision it must have.
        expect: Option<Revision>,
    },
    /// All clusters that the selector selects, at least one.
    Selected(Selector),
}

impl Target {
    /// The document with this id, at whatever revision.
    pub fn one(id: &str) -> Self {
        Self::One { id: id.into(), expect: None }
    }
}
