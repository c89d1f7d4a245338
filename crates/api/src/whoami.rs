//! Who is asking.

use serde::{Deserialize, Serialize};

/// Whom a credential stands for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Whoami {
    /// The actor in the audit log.
    pub actor: String,
    /// What they may do: `fleet-reader` or `admin`.
    pub role: String,
}
