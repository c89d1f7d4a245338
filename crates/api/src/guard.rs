//! The guard: what goes through without a question, what is used up of it, and what somebody is allowed beyond it.

use serde::{Deserialize, Serialize};

/// From where on the guard asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GuardLimits {
    /// Clusters on which one transaction removes something.
    pub clusters: u32,
    /// Decommissions, and removals that take data with them.
    pub deletions_per_hour: u32,
    /// Other removals.
    pub removals_per_hour: u32,
    /// Transactions that somebody confirms.
    pub confirmations_per_hour: u32,
    /// Clusters that one transaction reaches; absent for any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_clusters: Option<u32>,
}

/// What `GET /guard` tells.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Guard {
    pub limits: GuardLimits,
    /// What is used up of the last hour.
    pub spent: Spent,
    /// The allowances in force, those that end first at the top.
    pub allowances: Vec<Allowance>,
}

/// What is used up of the last hour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Spent {
    pub deletions: u32,
    pub removals: u32,
    pub confirmations: u32,
}

/// What `POST /guard/allowances` takes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The actor, as the audit log and `/whoami` show it.
    #[serde(rename = "for")]
    pub to: String,
    /// Decommissions, and removals that take data with them.
    #[serde(default)]
    pub deletions: u32,
    /// Other removals.
    #[serde(default)]
    pub removals: u32,
    /// For how long.
    pub minutes: u32,
}

/// What somebody is allowed beyond the budgets, as far as it is not used up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Allowance {
    /// Its id.
    pub id: String,
    /// The actor.
    #[serde(rename = "for")]
    pub to: String,
    /// Decommissions, and removals that take data with them, that are left.
    pub deletions: u32,
    /// Other removals that are left.
    pub removals: u32,
    /// When it ends, RFC 3339 in UTC.
    pub until: String,
    /// Who granted it.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// The allowance that a change needs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NeededAllowance {
    /// The actor.
    #[serde(rename = "for")]
    pub to: String,
    /// Decommissions, and removals that take data with them.
    pub deletions: u32,
    /// Other removals.
    pub removals: u32,
}
