//! What a route is, as a value: what it takes, who may use it, and what it can answer. The router, its guard, the names that kinds
//! cannot have and the table test are all made from descriptions, so that none of them can say anything else.

use api::ProblemName;
use axum::routing::MethodFilter;
use http::{Method, header};

use super::params::Params;
use crate::identity::{Action, Target};
use crate::query::{Parameter, ValueType};

/// Work out a write and answer with its plan.
pub const DRY_RUN: Parameter = Parameter::new(
    "dry_run",
    ValueType::Switch,
    "`true`: check the change, work out what it would do, and do not make it.",
);

/// The next page of a plan.
pub const PLAN_AFTER: Parameter = Parameter::new(
    "after",
    ValueType::Text,
    "With `dry_run`: the next page of the same plan, from what the page before gave as `next`. 409 if it is another plan by now.",
);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The method. A `GET` route answers `HEAD`, too.
    pub method: Verb,
    /// The template of its path.
    pub path: &'static str,
    /// Whether a process in `read-only` mode has it.
    pub in_read_only: bool,
    /// What somebody must be allowed to do; none for a route that is open to everybody.
    pub action: Option<Action>,
    /// What the action is about.
    pub target: TargetFrom,
    /// Its query parameters.
    pub query: QueryOf,
    /// The headers that it honours.
    pub headers: &'static [RequestHeader],
    /// Why it does not honour `If-Match`, if it is a write that does not.
    pub without_if_match: Option<&'static str>,
    /// The body that it takes.
    pub body: RequestBody,
    /// Its successes, besides the plan of a dry run.
    own_answers: &'static [Answer],
    /// Its problems, besides those that follow from the rest of the description.
    own_problems: &'static [Problem],
}

/// The method of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    /// As HTTP has it.
    pub fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }

    pub(super) fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Put => MethodFilter::PUT,
            Self::Patch => MethodFilter::PATCH,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

/// How the target of a request is found. The texts are names of parameters in the path's template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TargetFrom {
    /// The service itself.
    Service,
    /// The fleet.
    Fleet,
    /// The cluster whose DNS name is this parameter.
    Cluster(&'static str),
    /// The kind whose name is this parameter.
    Kind(&'static str),
    /// The document whose kind and id are these parameters.
    Document(&'static str, &'static str),
    /// The document of this kind whose id is this parameter.
    DocumentOf(&'static str, &'static str),
}

impl TargetFrom {
    /// The parameters of the path that it needs.
    pub fn parameters(self) -> Vec<&'static str> {
        match self {
            Self::Service | Self::Fleet => vec![],
            Self::Cluster(name) | Self::Kind(name) | Self::DocumentOf(_, name) => vec![name],
            Self::Document(kind, id) => vec![kind, id],
        }
    }

    /// The target of a request whose path has these parameters; none if one that it needs is missing.
    pub(super) fn of(self, params: &Params) -> Option<Target<'_>> {
        Some(match self {
            Self::Service => Target::Service,
            Self::Fleet => Target::Fleet,
            Self::Cluster(dns) => Target::Cluster(params.get(dns)?),
            Self::Kind(kind) => Target::Kind(params.get(kind)?),
            Self::Document(kind, id) => Target::Document { kind: params.get(kind)?, id: params.get(id)? },
            Self::DocumentOf(kind, id) => Target::Document { kind, id: params.get(id)? },
        })
    }
}

/// The query parameters of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueryOf {
    /// These and no others.
    Only(&'static [Parameter]),
    /// These, and the filters that the kind in the path's `{kind}` declares.
    WithFilters(&'static [Parameter]),
    /// Whatever is there is ignored: the Flux Operator may add parameters of its own to a poll.
    Ignored,
}

impl QueryOf {
    /// The parameters that the route has by itself.
    pub fn parameters(self) -> &'static [Parameter] {
        match self {
            Self::Only(parameters) | Self::WithFilters(parameters) => parameters,
            Self::Ignored => &[],
        }
    }
}

/// A header that changes what a write does. A write that does not honour one refuses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestHeader {
    IfMatch,
    Confirm,
    PlanRevision,
    ChangeReason,
    IfNoneMatch,
    IdempotencyKey,
}

impl RequestHeader {
    pub const ALL: [Self; 6] = [
        Self::IfMatch,
        Self::Confirm,
        Self::PlanRevision,
        Self::ChangeReason,
        Self::IfNoneMatch,
        Self::IdempotencyKey,
    ];

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::IfMatch => header::IF_MATCH.as_str(),
            Self::Confirm => "x-confirm",
            Self::PlanRevision => "x-plan-revision",
            Self::ChangeReason => "x-change-reason",
            Self::IfNoneMatch => header::IF_NONE_MATCH.as_str(),
            Self::IdempotencyKey => "idempotency-key",
        }
    }

    /// What it is for.
    pub fn description(self) -> &'static str {
        match self {
            Self::IfMatch => "Make the change only if the document is at this revision: the `ETag` of a GET.",
            Self::Confirm => "Confirms removals: the digest that the guard asked for.",
            Self::PlanRevision => {
                "Make the change only if the fleet is at this revision: that of its dry run."
            }
            Self::ChangeReason => "Why the change is made, for the audit log: one line.",
            Self::IfNoneMatch => "Make the change only if there is no such document.",
            Self::IdempotencyKey => "Make the change once, however often it is sent.",
        }
    }
}

/// The body that a route takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestBody {
    /// None. A write refuses one, because it may have meant something.
    None,
    /// JSON.
    Json(&'static str),
    /// JSON, or nothing.
    OptionalJson(&'static str),
    /// A patch: a strategic one, RFC 7396 or RFC 6902, by its content type.
    Patch(&'static str),
}

/// A success: its status, and what its body is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer(pub u16, pub Payload);

/// What the body of a success is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload {
    /// No body.
    Nothing,
    /// A document of the kind in the path.
    Document,
    /// A list of them, plain or with revisions.
    Documents,
    /// A cluster.
    Cluster,
    /// A list of ids.
    Ids,
    /// The inputs of a cluster, as Flux gets them.
    Inputs,
    /// The inputs that name all clusters.
    ClusterList,
    /// [`api::Plan`].
    Plan,
    /// [`api::BatchAnswer`].
    BatchAnswer,
    /// A list of [`api::Revision`].
    Revisions,
    /// [`api::RevisionDetail`].
    RevisionDetail,
    /// A list of [`api::DocumentVersion`].
    DocumentVersions,
    /// A list of [`api::Decommissioned`].
    Decommissioned,
    /// [`api::Kind`].
    Kind,
    /// A list of them.
    Kinds,
    /// [`api::Guard`].
    Guard,
    /// [`api::Allowance`].
    Allowance,
    /// [`api::Whoami`].
    Whoami,
    /// [`api::Standing`].
    Standing,
    /// `{"status": "ok"}`.
    Health,
    /// Text in the format `OpenMetrics`.
    Metrics,
}

/// A problem: its status and its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Problem(pub u16, pub ProblemName);

impl Problem {
    /// What the path names does not exist.
    pub const MISSING: Self = Self(404, ProblemName::Missing);
    /// What would be created exists already.
    pub const EXISTS: Self = Self(409, ProblemName::Exists);
    /// What would be deleted is in use or protected.
    pub const IN_USE: Self = Self(409, ProblemName::InUse);
    /// The answer would be too large.
    pub const TOO_LARGE: Self = Self(422, ProblemName::TooLarge);
    /// The fleet or the store cannot be read now.
    pub const UNAVAILABLE: Self = Self(503, ProblemName::Unavailable);
}

impl Route {
    const fn new(method: Verb, path: &'static str, summary: &'static str, target: TargetFrom) -> Self {
        Self {
            summary,
            method,
            path,
            in_read_only: false,
            action: None,
            target,
            query: QueryOf::Only(&[]),
            headers: &[],
            without_if_match: None,
            body: RequestBody::None,
            own_answers: &[],
            own_problems: &[],
        }
    }

    /// A route that everybody may use, in both modes.
    pub(super) const fn open(path: &'static str, summary: &'static str) -> Self {
        let mut route = Self::new(Verb::Get, path, summary, TargetFrom::Service);
        route.in_read_only = true;
        route
    }

    /// A route that reads, in `crud` mode.
    pub(super) const fn get(
        path: &'static str,
        summary: &'static str,
        action: Action,
        target: TargetFrom,
    ) -> Self {
        let mut route = Self::new(Verb::Get, path, summary, target);
        route.action = Some(action);
        route
    }

    /// A route that changes the fleet, in `crud` mode, with a dry run and all headers of a write.
    pub(super) const fn write(
        method: Verb,
        path: &'static str,
        summary: &'static str,
        target: TargetFrom,
    ) -> Self {
        let mut route = Self::new(method, path, summary, target);
        route.action = Some(Action::Write);
        route.query = QueryOf::Only(&[DRY_RUN, PLAN_AFTER]);
        route.headers = &[
            RequestHeader::IfMatch,
            RequestHeader::Confirm,
            RequestHeader::PlanRevision,
            RequestHeader::ChangeReason,
        ];
        route
    }

    /// A write that needs another action than changing the fleet.
    pub(super) const fn needing(mut self, action: Action) -> Self {
        self.action = Some(action);
        self
    }

    /// A process in `read-only` mode has it, too.
    pub(super) const fn in_both_modes(mut self) -> Self {
        self.in_read_only = true;
        self
    }

    /// With query parameters.
    pub(super) const fn query(mut self, query: QueryOf) -> Self {
        self.query = query;
        self
    }

    /// A write that is not about one document at one revision, and what to do instead.
    pub(super) const fn without_if_match(mut self, instead: &'static str) -> Self {
        self.headers = &[RequestHeader::Confirm, RequestHeader::PlanRevision, RequestHeader::ChangeReason];
        self.without_if_match = Some(instead);
        self
    }

    /// With a body.
    pub(super) const fn body(mut self, body: RequestBody) -> Self {
        self.body = body;
        self
    }

    /// With these successes.
    pub(super) const fn answers(mut self, answers: &'static [Answer]) -> Self {
        self.own_answers = answers;
        self
    }

    /// With these problems, besides those that follow from the rest of the description.
    pub(super) const fn problems(mut self, problems: &'static [Problem]) -> Self {
        self.own_problems = problems;
        self
    }

    /// Whether it changes the fleet.
    pub fn is_write(&self) -> bool {
        matches!(self.action, Some(Action::Write | Action::Allow))
    }

    /// All successes that it can answer with.
    pub fn all_answers(&self) -> Vec<Answer> {
        let plan = self.query.parameters().contains(&DRY_RUN).then_some(Answer(200, Payload::Plan));
        self.own_answers.iter().copied().chain(plan).collect()
    }

    /// All problems that it can answer with.
    pub fn all_problems(&self) -> Vec<Problem> {
        use ProblemName::{Allowance, Confirm, Forbidden, Internal, Invalid, Stale, TooLarge, Unauthorised};
        let mut all = vec![Problem(400, Invalid), Problem(500, Internal)];
        if self.action.is_some() {
            all.extend([Problem(401, Unauthorised), Problem(403, Forbidden)]);
        }
        if self.is_write() {
            all.extend([Problem(408, Invalid), Problem(413, TooLarge)]);
            all.extend([Problem(409, Confirm), Problem(409, Allowance), Problem(409, Stale)]);
            all.push(Problem(412, Stale));
            all.extend([Problem(422, Invalid), Problem::TOO_LARGE]);
            all.extend([Problem::MISSING, Problem::UNAVAILABLE]);
        }
        if self.body != RequestBody::None {
            all.push(Problem(415, Invalid));
        }
        all.extend(self.own_problems);
        all.sort_by_key(|problem| (problem.0, problem.1.as_str()));
        all.dedup();
        all
    }
}
