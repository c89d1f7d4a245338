//! Who may do what to what. Denied unless allowed here.

use super::{Principal, Role};

/// What somebody wants to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Ask who they are.
    Whoami,
    /// Get a cluster's inputs, as its Flux does.
    Poll,
    /// Get the list of all clusters, as Flux does.
    ListClusters,
    /// Read documents, kinds or history.
    Read,
    /// Work out what a change would do, without making it.
    Plan,
    /// Change the fleet.
    Write,
    /// Allow somebody more than the guard's budgets.
    Allow,
}

/// What they want to do it to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    /// The service itself.
    Service,
    /// The whole fleet, or what is not of one document.
    Fleet,
    /// A cluster, live or decommissioned, by its DNS name.
    Cluster(&'a str),
    /// All documents of a kind, or the kind itself.
    Kind(&'a str),
    /// One document.
    Document {
        /// Its kind, as the path spells it.
        kind: &'a str,
        /// Its id.
        id: &'a str,
    },
}

/// A principal may not do what they want to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a credential with the role `{}` may not do this", .0.as_str())]
pub struct Forbidden(pub Role);

/// Decides. Nothing else does.
pub fn authorise(principal: &Principal, action: Action, target: Target<'_>) -> Result<(), Forbidden> {
    let is_allowed = match principal.role {
        Role::Admin => true,
        Role::Poller => matches!(
            (action, target),
            (Action::Whoami, Target::Service)
                | (Action::Poll, Target::Cluster(_))
                | (Action::ListClusters, Target::Fleet)
        ),
    };
    if is_allowed { Ok(()) } else { Err(Forbidden(principal.role)) }
}
