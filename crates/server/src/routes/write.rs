//! What all writes have in common: their headers, the dry run, the guard's question, and the answer.

use std::sync::Arc;
use std::time::Duration;

use api::{Plan, ProblemName};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use fleet::{Effects, Operation, Patch, RemovalsDigest, Revision, State};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;

use super::answer::{self, json_of};
use super::call::Call;
use super::curl::curl;
use crate::json;
use crate::problem::{Answered, Refusal};
use crate::query::{self, Query};
use crate::wire;
use crate::writer::{self, NotWritten, Request, Written};

/// The query parameters that every write has.
pub(super) const DRY_RUN: &str = "dry_run";
/// How a change is confirmed.
const X_CONFIRM: &str = "x-confirm";
/// The revision of the fleet that a change was planned on.
pub(super) const X_PLAN_REVISION: &str = "x-plan-revision";
/// Why a change is made.
pub(super) const X_CHANGE_REASON: &str = "x-change-reason";
/// How long a client waits for the store before it is told that nothing is known.
const WRITE_DEADLINE: Duration = Duration::from_secs(30);
/// The longest reason.
const MAX_REASON: usize = 1_024;
const X_REVISION: HeaderName = HeaderName::from_static("x-revision");

/// A write that was either made or only tried.
pub(super) enum Outcome {
    /// It was made.
    Made(Box<Written>),
    /// It was tried; this is the answer.
    Tried(Response),
}

/// Makes a change, or tries it. `body` is the request's, to say how it is confirmed.
pub(super) async fn write(
    call: &Call,
    query: &Query,
    operations: Vec<Operation>,
    body: &Bytes,
) -> Answered<Outcome> {
    let Some(writer) = &call.app.writer else {
        return Err(Refusal::internal("a write route without a writer"));
    };
    call.app.replica.serving()?;
    let request = request(call, operations)?;
    if query.switch(DRY_RUN)? {
        return tried(call, request).await.map(Outcome::Tried);
    }
    let outcome = tokio::time::timeout(WRITE_DEADLINE, writer.write(request)).await;
    let late = |_| Err(NotWritten::Unknown("the store did not answer in time".to_owned()));
    match outcome.unwrap_or_else(late) {
        Ok(written) => Ok(Outcome::Made(Box::new(written))),
        Err(error) => {
            let refusal = Refusal::from(error);
            if refusal.asks_to_confirm() {
                call.app.metrics.stopped_by_guard.inc();
            }
            Err(refusal.with_curl(|digest| curl(call, digest, body)))
        }
    }
}

fn request(call: &Call, operations: Vec<Operation>) -> Answered<Request> {
    for (name, instead) in [
        ("idempotency-key", "it is not in this version yet; leave it out"),
        ("if-none-match", "it is not for changes; to create what is not there, use POST"),
    ] {
        if call.headers.contains_key(name) {
            return Err(Refusal::bad_request(format!("the header `{name}` is not accepted: {instead}")));
        }
    }
    let confirm = call.header(X_CONFIRM)?.map(|text| {
        RemovalsDigest::parse(text).ok_or_else(|| {
            Refusal::bad_request("`X-Confirm` must be the 64 hexadecimal digits that `confirm` gave you")
        })
    });
    let planned_on = call.header(X_PLAN_REVISION)?.map(|text| {
        query::digits(text).map(Revision).ok_or_else(|| {
            Refusal::bad_request(format!(
                "`X-Plan-Revision` is `{text}`; it must be the number that a dry run gave as `revision`"
            ))
        })
    });
    let reason = call.header(X_CHANGE_REASON)?.filter(|reason| !reason.is_empty());
    if reason.is_some_and(|reason| reason.chars().any(char::is_control)) {
        return Err(Refusal::bad_request("`X-Change-Reason` must be one line without control characters"));
    }
    if let Some(reason) = reason.filter(|reason| reason.len() > MAX_REASON) {
        let detail = format!("`X-Change-Reason` has {} bytes; {MAX_REASON} are the most", reason.len());
        return Err(Refusal::bad_request(detail));
    }
    let actor = call.principal.as_ref().map(|principal| principal.name.clone());
    Ok(Request {
        operations,
        confirm: confirm.transpose()?,
        planned_on: planned_on.transpose()?,
        actor: actor.ok_or_else(|| Refusal::internal("a write by nobody"))?,
        reason: reason.map(Into::into),
        request: (&*call.id.0).into(),
    })
}

/// Everything but the append.
async fn tried(call: &Call, request: Request) -> Answered {
    let before = call.app.replica.serving()?;
    let policy = call.app.policy;
    let plan = tokio::task::spawn_blocking(move || plan(&before, &policy, request)).await;
    let plan = plan.map_err(|error| Refusal::internal(format!("a dry run has panicked: {error}")))??;
    json_of(&plan)
}

fn plan(before: &Arc<State>, policy: &fleet::Policy, request: Request) -> Answered<Plan> {
    writer::still_at(before, request.planned_on)?;
    let planned = fleet::plan(before, policy, &request.transaction())?;
    let applied = planned.applied;
    let changes = applied.commit.as_ref().map(|commit| &*commit.changes).unwrap_or_default();
    let effects = Effects::between(before, &applied.next, changes.iter().map(fleet::Change::key));
    Ok(Plan {
        revision: before.head().revision.0,
        digest: wire::plan_digest(before, changes, &effects, &applied.removals),
        changed: changes.len(),
        documents: wire::planned(before, changes),
        effects: wire::effects(&effects),
        removals: wire::removals(&applied.removals),
        confirm: planned.unconfirmed.as_ref().map(|_| applied.removals.digest().to_string()),
        because: planned.unconfirmed,
        warnings: applied.warnings,
    })
}

/// The revision that `If-Match` expects.
pub(super) fn expected(call: &Call) -> Answered<Option<Revision>> {
    let Some(text) = call.header(header::IF_MATCH.as_str())? else { return Ok(None) };
    let text = text.trim();
    if text == "*" {
        // That it is there is asked of every change but POST anyway.
        return Ok(None);
    }
    // A proxy that compresses makes a tag weak; it is the same revision.
    let tag = text.strip_prefix("W/").unwrap_or(text);
    let revision = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).and_then(query::digits);
    revision.map(Revision).map(Some).ok_or_else(|| {
        Refusal::bad_request(format!(
            "`If-Match` is `{text}`; it must be one `ETag` as a GET answered it, such as `\"42\"`, or `*`"
        ))
    })
}

/// For changes that are not about one document at one revision.
pub(super) fn expects_nothing(call: &Call, instead: &str) -> Answered<()> {
    if call.headers.contains_key(header::IF_MATCH) {
        return Err(Refusal::bad_request(format!("`If-Match` has no meaning here; {instead}")));
    }
    Ok(())
}

fn content_type(call: &Call) -> Answered<String> {
    if let Some(coding) =
        call.header(header::CONTENT_ENCODING.as_str())?.filter(|coding| *coding != "identity")
    {
        let detail = format!("`Content-Encoding` is `{coding}`; bodies are taken as they are");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ProblemName::Invalid, detail));
    }
    let text = call.header(header::CONTENT_TYPE.as_str())?.unwrap_or_default();
    Ok(text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

fn unsupported(accepted: &str, got: &str) -> Refusal {
    let got = if got.is_empty() {
        "there is no `Content-Type`".to_owned()
    } else {
        format!("`Content-Type` is `{got}`")
    };
    Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ProblemName::Invalid,
        format!("{got}; this route takes {accepted}"),
    )
}

/// The body as JSON.
pub(super) fn document(call: &Call, body: &Bytes) -> Answered<Value> {
    match &*content_type(call)? {
        "application/json" => json::read(body).map_err(Refusal::bad_request),
        other => Err(unsupported("`application/json`", other)),
    }
}

/// The body as a patch, by its content type.
pub(super) fn patch(call: &Call, body: &Bytes) -> Answered<Patch> {
    let make: fn(Value) -> Patch = match &*content_type(call)? {
        "application/json" | "application/strategic-merge-patch+json" => Patch::Strategic,
        "application/merge-patch+json" => Patch::Merge,
        "application/json-patch+json" => Patch::Json,
        other => {
            let accepted = "`application/json` or `application/strategic-merge-patch+json` (references merge by id), `application/merge-patch+json` (RFC 7396) or `application/json-patch+json` (RFC 6902)";
            return Err(unsupported(accepted, other));
        }
    };
    json::read(body).map(make).map_err(Refusal::bad_request)
}

/// Adds to an answer what every write's answer has.
pub(super) fn made(mut response: Response, written: &Written) -> Response {
    let headers = response.headers_mut();
    headers.insert(X_REVISION, HeaderValue::from(written.state.head().revision.0));
    for warning in &written.warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
            headers.append(header::WARNING, value);
        }
    }
    response
}

/// The answer is the document, as a GET of it would be.
pub(super) fn answered(outcome: Outcome, status: StatusCode, kind: &str, id: &str) -> Answered {
    match outcome {
        Outcome::Tried(response) => Ok(response),
        Outcome::Made(written) => {
            let not_there = || Refusal::internal(format!("`{kind}/{id}` was written and is not there"));
            let response = answer::document(status, &written.state, kind, id).ok_or_else(not_there)?;
            Ok(made(response, &written))
        }
    }
}

/// A body that is not looked at may have meant something.
pub(super) fn no_body(body: &[u8]) -> Answered<()> {
    if body.is_empty() { Ok(()) } else { Err(Refusal::bad_request("a DELETE has no body here")) }
}

pub(super) fn deleted(outcome: Outcome) -> Response {
    match outcome {
        Outcome::Tried(response) => response,
        Outcome::Made(written) => made(StatusCode::NO_CONTENT.into_response(), &written),
    }
}
