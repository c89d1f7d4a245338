//! How the service is.

use serde::{Deserialize, Serialize};

use crate::GuardLimits;

/// The status of a process that answers polls.
pub const READY: &str = "ready";
/// The mode of a process that the fleet is managed with.
pub const CRUD: &str = "crud";
/// What is said of a writer that has ended for good.
pub const WRITER_FAILED: &str = "failed";

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
    /// What it needs to go on, if the store holds something that this version does not understand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// How far its clock is behind the time of the last commit, if that is more than clocks differ: one of the clocks is or was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_behind_seconds: Option<u64>,
    /// How old what it knows is.
    pub seconds_behind: Option<u64>,
    /// `running`, `failed`, or nothing if it does not write.
    pub writer: Option<String>,
    /// What the guard lets pass.
    pub guard: GuardLimits,
}

impl Standing {
    /// Whether polls are answered.
    pub fn is_ready(&self) -> bool {
        self.status == READY
    }

    /// Whether the fleet is managed there.
    pub fn is_crud(&self) -> bool {
        self.mode == CRUD
    }

    /// Whether it makes no change any more.
    pub fn has_failed_writer(&self) -> bool {
        self.writer.as_deref() == Some(WRITER_FAILED)
    }
}
