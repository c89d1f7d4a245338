//! Decommissioned clusters.

use serde::{Deserialize, Serialize};

/// What the records of decommissioned clusters are called where the name of a kind stands.
pub const DECOMMISSIONED: &str = "decommissioned";

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
