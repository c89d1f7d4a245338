//! Changes that are decided before they come to the writer: a seed must be good as a whole before any of it is written, and to decide
//! about it twice would take twice as long.

use fleet::{Applied, Policy, Position, Rejection, State, apply};

use super::Request;

/// A change that was decided before it came to the writer, on a state that may still be the fleet. What `apply` says depends on nothing
/// else, so it is not asked again.
pub struct Decided {
    pub(super) on: Position,
    pub(super) applied: Applied,
}

impl Decided {
    /// Decides about a request.
    pub fn on(state: &State, policy: &Policy, request: Request) -> Result<Self, Rejection> {
        Ok(Self { on: state.head(), applied: apply(state, policy, &request.transaction())? })
    }

    /// The fleet after it.
    pub fn next(&self) -> &State {
        &self.applied.next
    }

    /// Why it is to be made.
    pub fn reason(&self) -> &str {
        let commit = self.applied.commit.as_ref();
        commit.and_then(|commit| commit.header.origin.reason.as_deref()).unwrap_or_default()
    }
}
