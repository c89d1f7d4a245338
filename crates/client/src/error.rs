//! What can go wrong between a client and the service.

use api::{Problem, ProblemName};

/// Why there is no answer to work with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What the client was made with does not work.
    #[error("{0}")]
    Settings(String),
    /// Nothing can have this name.
    #[error("`{0}` names nothing: names begin with a letter or a digit")]
    Name(String),
    /// Nobody answered. Whether a change was made is not known.
    #[error("{url} did not answer: {because}")]
    Unreachable {
        /// What was asked.
        url: String,
        /// What happened.
        because: String,
    },
    /// The service says what is wrong.
    #[error("{}", .0.detail)]
    Problem(Box<Problem>),
    /// Somebody answered, but not as the service does.
    #[error("{url} does not answer like flux-resourceset: {because}")]
    Foreign {
        /// What was asked.
        url: String,
        /// What it answered.
        because: String,
    },
}

impl Error {
    /// The problem that the service tells, if it is that.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// Whether the service tells a problem of this sort.
    pub fn is(&self, name: ProblemName) -> bool {
        self.problem().is_some_and(|problem| problem.urn == name.urn())
    }
}
