//! How the service is.

use serde::{Deserialize, Serialize};

/// What `GET /ready` tells, whether it is ready or not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Standing {
    /// `ready` or `not ready`.
    pub status: String,
    /// Why not.
    pub because: Option<String>,
    /// The version of the service.
    pub version: String,
    /// `crud` or `read-only`.
    pub mode: String,
    /// The revision that it answers with.
    pub revision: Option<u64>,
    /// The hash of that revision.
    pub hash: Option<String>,
    /// How it stands with its store.
    pub store: String,
    /// How old what it knows is.
    pub seconds_behind: Option<u64>,
    /// `running`, `failed`, or nothing if it does not write.
    pub writer: Option<String>,
    /// What the guard lets pass.
    pub guard: GuardLimits,
}

/// From where on the guard asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GuardLimits {
    /// Clusters in one transaction.
    pub clusters: u32,
    /// Decommissions, and removals that take data with them.
    pub deletions_per_hour: u32,
    /// Other removals.
    pub removals_per_hour: u32,
}

/// The record of a decommissioned cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Decommissioned {
    /// The DNS name whose polls are answered with an empty list.
    pub dns: String,
    /// What the cluster was called.
    pub id: String,
    /// The revision that decommissioned it.
    pub revision: u64,
    /// Which of the clusters of that name it was.
    pub uid: String,
}
