//! Names that a kind cannot have because the service around the core uses them. The core has no routes, so it is told which they are.

/// Names that are taken by the routes of a service.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reserved {
    /// What no kind can be called.
    pub kinds: Vec<&'static str>,
    /// What no kind's path can be, in the paths that a cluster polls.
    pub cluster_paths: Vec<&'static str>,
    /// What no filter of a kind can be called.
    pub query_parameters: Vec<&'static str>,
}

impl Reserved {
    /// Nothing: for kinds that were checked before, and for tests.
    pub fn none() -> Self {
        Self::default()
    }
}
