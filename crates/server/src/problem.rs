//! Every answer that is not a success. What the core and the ledger refuse is mapped to HTTP here and nowhere else.

use api::{Problem, ProblemName, Violation};
use axum::response::{IntoResponse, Response};
use fleet::{NoClusterList, Reason, Rejection};
use http::{HeaderValue, StatusCode, header};
use ledger::FeedError;

use crate::identity::{Forbidden, Unauthenticated};
use crate::replica::NotServing;
use crate::wire;
use crate::writer::NotWritten;

/// A refusal on its way to the client.
#[derive(Debug)]
pub struct Refusal {
    problem: Box<Problem>,
    /// What only the log is told.
    log: Option<String>,
    headers: Vec<(header::HeaderName, HeaderValue)>,
}

/// A `Result` whose error becomes an answer.
pub type Answered<T = Response> = Result<T, Refusal>;

impl Refusal {
    /// A problem of a sort, with what is wrong and what would be right.
    pub fn new(status: StatusCode, name: ProblemName, detail: impl Into<String>) -> Self {
        let problem = Problem {
            urn: name.urn(),
            title: name.title().to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            request_id: None,
            violations: Vec::new(),
            removals: None,
            confirm: None,
            allowance: None,
            curl: None,
            outcome_unknown: false,
        };
        Self { problem: Box::new(problem), log: None, headers: Vec::new() }
    }

    /// The request cannot be understood.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ProblemName::Invalid, detail)
    }

    /// There is no such thing.
    pub fn missing(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ProblemName::Missing, detail)
    }

    /// The next page of a plan that is another one by now.
    pub fn plan_moved() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            ProblemName::Stale,
            "this is another plan by now than the one that the pages before were of; ask again without `after`",
        )
    }

    /// The service cannot answer now.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ProblemName::Unavailable, detail)
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("5"))
    }

    /// A mistake of the service: the client learns no more than that.
    pub fn internal(log: impl Into<String>) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            ProblemName::Internal,
            "this is a bug in the service, not a mistake in your request; its log has more under the request id",
        )
        .with_log(log)
    }

    /// With a header.
    #[must_use]
    pub fn with_header(mut self, name: header::HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// With something that only the log is told.
    #[must_use]
    pub fn with_log(mut self, log: impl Into<String>) -> Self {
        self.log = Some(log.into());
        self
    }

    /// With the request that asked for a confirmation, ready to be sent again.
    #[must_use]
    pub fn with_curl(mut self, curl: impl FnOnce(&str) -> String) -> Self {
        self.problem.curl = self.problem.confirm.as_deref().map(curl);
        self
    }

    /// Whether the guard has stopped it.
    pub fn was_stopped_by_guard(&self) -> bool {
        self.problem.removals.is_some()
    }

    /// With everything that is wrong.
    #[must_use]
    pub fn with_violations(mut self, violations: Vec<Violation>) -> Self {
        self.problem.violations = violations;
        self
    }
}

/// The body of a problem, as an extension of the response: the outermost layer writes it, because only that knows the request's id.
#[derive(Clone)]
pub struct ProblemBody {
    pub(crate) problem: Problem,
    pub(crate) log: Option<String>,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self { problem, log, headers } = self;
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        for (name, value) in headers {
            response.headers_mut().append(name, value);
        }
        response.extensions_mut().insert(ProblemBody { problem: *problem, log });
        response
    }
}

impl From<Unauthenticated> for Refusal {
    fn from(unauthenticated: Unauthenticated) -> Self {
        let detail = match unauthenticated {
            Unauthenticated::NoCredential => {
                "send a token as `Authorization: Bearer <token>`, or as the password of basic authentication"
            }
            Unauthenticated::Unreadable => {
                "the `Authorization` header is neither `Bearer <token>` nor `Basic <base64 of user:token>`"
            }
            Unauthenticated::Twice => "there are two `Authorization` headers; send one",
            Unauthenticated::Unknown => "invalid token",
        };
        Self::new(StatusCode::UNAUTHORIZED, ProblemName::Unauthorised, detail).with_header(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer, Basic realm=\"flux-resourceset\""),
        )
    }
}

impl From<Forbidden> for Refusal {
    fn from(forbidden: Forbidden) -> Self {
        Self::new(StatusCode::FORBIDDEN, ProblemName::Forbidden, forbidden.to_string())
    }
}

impl From<NotServing> for Refusal {
    fn from(not_serving: NotServing) -> Self {
        Self::unavailable(format!("{not_serving}; this says nothing about any cluster"))
    }
}

impl From<FeedError> for Refusal {
    fn from(error: FeedError) -> Self {
        Self::unavailable("the store cannot be read now").with_log(error.to_string())
    }
}

impl From<NotWritten> for Refusal {
    fn from(error: NotWritten) -> Self {
        match error {
            NotWritten::Rejected(rejection) => rejection.into(),
            stale @ NotWritten::Stale { .. } => {
                Self::new(StatusCode::PRECONDITION_FAILED, ProblemName::Stale, stale.to_string())
            }
            NotWritten::Unavailable(why) => {
                Self::unavailable("the store cannot be written to now; nothing has changed").with_log(why)
            }
            waited @ NotWritten::Waited { .. } => {
                Self::unavailable(format!("{waited} and was given up; nothing has changed"))
            }
            NotWritten::Unknown(why) => {
                let mut refusal = Self::unavailable(
                    "whether this change was made is not known: read the document again before you repeat it",
                );
                refusal.problem.outcome_unknown = true;
                refusal.with_log(why)
            }
        }
    }
}

impl From<NoClusterList> for Refusal {
    fn from(none: NoClusterList) -> Self {
        let detail = none.to_string();
        match none {
            NoClusterList::UnknownEnvironment { .. } => Self::bad_request(detail),
            NoClusterList::NoMatch => Self::missing(detail),
            NoClusterList::TooMany { .. } | NoClusterList::TooLarge { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, ProblemName::TooLarge, detail)
            }
        }
    }
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        match &rejection {
            Rejection::Refused(_) => Self::refused(&rejection),
            Rejection::Confirm(stopped) => {
                let mut refusal = Self::new(StatusCode::CONFLICT, ProblemName::Confirm, &*stopped.because);
                refusal.problem.removals = Some(wire::removals(&stopped.removals));
                refusal.problem.confirm = Some(stopped.digest.to_string());
                refusal
            }
            Rejection::Allowance(stopped) => {
                let mut refusal = Self::new(StatusCode::CONFLICT, ProblemName::Allowance, &*stopped.because);
                refusal.problem.removals = Some(wire::removals(&stopped.removals));
                refusal.problem.allowance = Some(wire::needed_allowance(&stopped.actor, &stopped.removals));
                refusal
            }
        }
    }
}

impl Refusal {
    /// Rules are broken.
    fn refused(rejection: &Rejection) -> Self {
        let violations = rejection.violations().iter().map(wire::violation).collect::<Vec<_>>();
        let (status, name) = match rejection.reason() {
            Some(Reason::Missing) => (StatusCode::NOT_FOUND, ProblemName::Missing),
            Some(Reason::Stale { .. }) => (StatusCode::PRECONDITION_FAILED, ProblemName::Stale),
            Some(Reason::Exists) => (StatusCode::CONFLICT, ProblemName::Exists),
            Some(Reason::Protected | Reason::InUse { .. }) => (StatusCode::CONFLICT, ProblemName::InUse),
            Some(Reason::Invalid) | None => (StatusCode::UNPROCESSABLE_ENTITY, ProblemName::Invalid),
            Some(Reason::TooLarge) => (StatusCode::UNPROCESSABLE_ENTITY, ProblemName::TooLarge),
        };
        let detail = match &*violations {
            [one] if one.also == 0 => one.message.clone(),
            _ => format!("{} things are wrong; see `violations`", rejection.total()),
        };
        Self::new(status, name, detail).with_violations(violations)
    }
}
