//! What all writes have in common: the values of their headers, the dry run, the guard's question, and the answer.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use fleet::{ConfirmDigest, Operation, Policy, Revision, State};
use http::{HeaderName, HeaderValue, StatusCode, header};

use super::answer::{self, json_of};
use super::call::{Call, Fleet};
use super::curl::curl;
use super::{DRY_RUN, PLAN_AFTER, RequestHeader};
use crate::identity::Action;
use crate::plan_page::{self, Cursor};
use crate::problem::{Answered, Refusal};
use crate::query;
use crate::writer::{self, Request, Written};

/// How long a client waits before it is told that its change was given up, or that nothing is known of it.
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
pub(super) async fn write(call: &Call, operations: Vec<Operation>, body: &Bytes) -> Answered<Outcome> {
    write_as(call, operations, false, body).await
}

/// The same for operations that a program may have worked out (`derived`): then they name no removal.
pub(super) async fn write_as(
    call: &Call,
    operations: Vec<Operation>,
    derived: bool,
    body: &Bytes,
) -> Answered<Outcome> {
    let Some(writer) = &call.app.writer else {
        return Err(Refusal::internal("a write route without a writer"));
    };
    Fleet::now(&call.app)?;
    let request = Request { derived, ..request(call, operations)? };
    if !call.query().switch(&DRY_RUN)? && call.query().text(&PLAN_AFTER)?.is_some() {
        return Err(Refusal::bad_request("`after` is for the pages of a dry run; add `dry_run=true`"));
    }
    match (call.query().switch(&DRY_RUN)?, call.action()) {
        (true, Some(Action::Plan)) => return tried(call, request).await.map(Outcome::Tried),
        (false, Some(Action::Write | Action::Allow)) => {}
        _ => return Err(Refusal::internal("a write that is not what was authorised")),
    }
    match writer.write(request, WRITE_DEADLINE).await {
        Ok(written) => Ok(Outcome::Made(Box::new(written))),
        Err(error) => {
            let refusal = Refusal::from(error);
            if refusal.was_stopped_by_guard() {
                call.app.metrics.stopped_by_guard.inc();
            }
            Err(refusal.with_curl(|digest| curl(call, digest, body)))
        }
    }
}

fn request(call: &Call, operations: Vec<Operation>) -> Answered<Request> {
    let confirm = call.header(RequestHeader::Confirm)?.map(|text| {
        ConfirmDigest::parse(text).ok_or_else(|| {
            Refusal::bad_request("`X-Confirm` must be the 64 hexadecimal digits that `confirm` gave you")
        })
    });
    let planned_on = call.header(RequestHeader::PlanRevision)?.map(|text| {
        query::digits(text).map(Revision).ok_or_else(|| {
            Refusal::bad_request(format!(
                "`X-Plan-Revision` is `{text}`; it must be the number that a dry run gave as `revision`"
            ))
        })
    });
    let reason = call.header(RequestHeader::ChangeReason)?.filter(|reason| !reason.is_empty());
    if reason.is_some_and(|reason| reason.chars().any(char::is_control)) {
        return Err(Refusal::bad_request("`X-Change-Reason` must be one line without control characters"));
    }
    if let Some(reason) = reason.filter(|reason| reason.len() > MAX_REASON) {
        let detail = format!("`X-Change-Reason` has {} bytes; {MAX_REASON} are the most", reason.len());
        return Err(Refusal::bad_request(detail));
    }
    Ok(Request {
        operations,
        derived: false,
        confirm: confirm.transpose()?,
        planned_on: planned_on.transpose()?,
        actor: call.principal()?.actor.to_string().into(),
        reason: reason.map(Into::into),
        request: Some((&*call.id.0).into()),
    })
}

/// Everything but the append.
async fn tried(call: &Call, request: Request) -> Answered {
    let Fleet(before) = Fleet::now(&call.app)?;
    let policy = call.app.policy;
    let after = call.query().text(&PLAN_AFTER)?.map(Cursor::parse).transpose()?;
    call.plan(move || json_of(&plan(&before, &policy, request, after.as_ref())?)).await
}

fn plan(before: &State, policy: &Policy, request: Request, after: Option<&Cursor>) -> Answered<api::Plan> {
    writer::still_at(before, request.planned_on)?;
    let transaction = request.transaction();
    plan_page::page(&fleet::plan(before, policy, &transaction)?, &transaction.origin.actor, after)
}

/// The revision that `If-Match` expects.
pub(super) fn expected(call: &Call) -> Answered<Option<Revision>> {
    let Some(text) = call.header(RequestHeader::IfMatch)? else { return Ok(None) };
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

pub(super) fn deleted(outcome: Outcome) -> Response {
    match outcome {
        Outcome::Tried(response) => response,
        Outcome::Made(written) => made(StatusCode::NO_CONTENT.into_response(), &written),
    }
}
