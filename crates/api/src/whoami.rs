//! Who is asking.

use serde::{Deserialize, Serialize};

/// The role that may do everything.
pub const ADMIN: &str = "admin";

/// Whom a credential stands for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Whoami {
    /// The actor in the audit log, such as `file:alice`.
    pub actor: String,
    /// What they may do: `poller` or `admin`.
    pub role: String,
}

impl Whoami {
    /// Whether they may change the fleet.
    pub fn is_admin(&self) -> bool {
        self.role == ADMIN
    }
}
