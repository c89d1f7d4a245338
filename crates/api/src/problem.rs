//! Errors as RFC 9457 has them.

use serde::{Deserialize, Serialize};

use crate::NeededAllowance;
use crate::plan::Removals;

/// What sort of problem it is; its `type` is this name behind `urn:flux-resourceset:`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProblemName {
    /// The request cannot be understood, or breaks a rule.
    Invalid,
    /// There is already one.
    Exists,
    /// Something still refers to it, or it is protected.
    InUse,
    /// The guard asks for a confirmation.
    Confirm,
    /// The guard's budget is used up.
    Allowance,
    /// It is not at the expected revision.
    Stale,
    /// Something is over its limit.
    TooLarge,
    /// No credential, or a wrong one.
    Unauthorised,
    /// A credential that may not do this.
    Forbidden,
    /// There is no such thing.
    Missing,
    /// The service cannot answer now; it may later.
    Unavailable,
    /// A mistake of the service.
    Internal,
}

impl ProblemName {
    /// The word in the URN.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Exists => "exists",
            Self::InUse => "in-use",
            Self::Confirm => "confirm",
            Self::Allowance => "allowance",
            Self::Stale => "stale",
            Self::TooLarge => "too-large",
            Self::Unauthorised => "unauthorised",
            Self::Forbidden => "forbidden",
            Self::Missing => "missing",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
        }
    }

    /// The `type` member.
    pub fn urn(self) -> String {
        format!("urn:flux-resourceset:{}", self.as_str())
    }

    /// The `title` member: the same for every problem of this sort.
    pub fn title(self) -> &'static str {
        match self {
            Self::Invalid => "The request is not acceptable",
            Self::Exists => "There is already one",
            Self::InUse => "It is in use or protected",
            Self::Confirm => "Flux would delete things: please confirm",
            Self::Allowance => "The guard's budget of the hour is used up",
            Self::Stale => "It has changed in the meantime",
            Self::TooLarge => "It is too large",
            Self::Unauthorised => "A credential is needed",
            Self::Forbidden => "This credential may not do that",
            Self::Missing => "There is no such thing",
            Self::Unavailable => "The service cannot answer now",
            Self::Internal => "The service has made a mistake",
        }
    }
}

/// The body of every answer that is not a success.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// The sort of problem, as a URN.
    #[serde(rename = "type")]
    pub urn: String,
    /// The sort of problem, in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong, and what would be right.
    pub detail: String,
    /// The request, to find it in the log and in the audit trail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Everything that is wrong with what was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// What Flux would delete, if the guard has stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removals: Option<Removals>,
    /// What to send as `X-Confirm` to confirm exactly these removals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// What somebody must be allowed before it goes through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance: Option<NeededAllowance>,
    /// The same request with the confirmation, ready to paste.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curl: Option<String>,
    /// Whether the change may have been made all the same: then it is not to be repeated before somebody has looked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outcome_unknown: bool,
}

/// The `detail` where there is no route: a client has perhaps asked a process of the other mode.
pub const NO_SUCH_PATH: &str =
    "there is no such path here; see the documentation for the routes of each mode";

/// One thing that is wrong with what was sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Violation {
    /// The index of the operation, 0 for a single write.
    pub operation: usize,
    /// The document, as `kind/id`, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// Where in the resulting document.
    pub pointer: String,
    /// What is wrong and what would be right.
    pub message: String,
    /// In how many more documents of the operation exactly this is wrong.
    #[serde(default, skip_serializing_if = "is_none")]
    pub also: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_none(number: &usize) -> bool {
    *number == 0
}
