//! Many operations in one transaction.

use api::{BatchAnswer, MAX_OPERATIONS, PatchType, Violation};
use axum::Json;
use axum::response::IntoResponse;
use fleet::{Operation, Patch, Revision, Selector, Target};
use http::StatusCode;
use serde_json::Value;

use super::call::{Call, Content};
use super::write::{self, Outcome};
use super::{Answer, Payload, Problem, RequestBody, Route, Table, TargetFrom, Verb};
use crate::json;
use crate::problem::{Answered, Refusal};
use crate::wire;

static BATCH: Route =
    Route::write(Verb::Post, "/batch", "Make many changes as one transaction.", TargetFrom::Fleet)
        .without_if_match("an operation of a batch has `revision` for that")
        .body(RequestBody::Json(
            "`{\"operations\": […]}`; `\"derived\": true` says that a program worked them out, so that they name no removal",
        ))
        .answers(&[Answer(200, Payload::BatchAnswer)])
        .problems(&[Problem::EXISTS, Problem::IN_USE]);

pub(super) fn routes(table: &mut Table<'_>) {
    table.add(&BATCH, batch);
}

async fn batch(call: Call, body: Content) -> Answered {
    let (operations, derived) = operations(body.json(&call)?)?;
    match write::write_as(&call, operations, derived, &body.0).await? {
        Outcome::Tried(response) => Ok(response),
        Outcome::Made(written) => {
            let answer = BatchAnswer {
                revision: written.state.head().revision.0,
                changed: written.changed.len(),
                documents: wire::changed(&written.changed),
            };
            Ok(write::made(Json(answer).into_response(), &written))
        }
    }
}

/// Reads all operations, or says what is wrong with each; and whether a program worked them out.
fn operations(body: Value) -> Answered<(Vec<Operation>, bool)> {
    let shape = "the body must be `{\"operations\": [...]}`, with `\"derived\": true` if a program worked them out, and nothing else";
    let Value::Object(mut body) = body else { return Err(Refusal::bad_request(shape)) };
    let Some(Value::Array(items)) = body.remove("operations") else {
        return Err(Refusal::bad_request(shape));
    };
    let derived = match body.remove("derived") {
        None => false,
        Some(Value::Bool(derived)) => derived,
        Some(_) => return Err(Refusal::bad_request("`derived` must be `true` or `false`")),
    };
    if !body.is_empty() {
        return Err(Refusal::bad_request(shape));
    }
    if items.is_empty() {
        return Err(Refusal::bad_request("`operations` is empty; a batch has at least one"));
    }
    // The writer decides about one batch at a time, and others wait for it.
    if items.len() > MAX_OPERATIONS {
        let detail = format!("the batch has {} operations; {MAX_OPERATIONS} are the most", items.len());
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, api::ProblemName::TooLarge, detail));
    }
    let mut read = Vec::with_capacity(items.len());
    let mut violations = Vec::new();
    for (operation, item) in items.into_iter().enumerate() {
        match json::typed(item).and_then(convert) {
            Ok(operation) => read.push(operation),
            Err(message) => violations.push(Violation {
                operation,
                document: None,
                pointer: String::new(),
                message,
                also: 0,
            }),
        }
    }
    if violations.is_empty() {
        return Ok((read, derived));
    }
    let detail = format!("{} of the operations cannot be read; see `violations`", violations.len());
    Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, api::ProblemName::Invalid, detail)
        .with_violations(violations))
}

fn convert(operation: api::Operation) -> Result<Operation, String> {
    use api::Operation as Wire;
    Ok(match operation {
        Wire::Create { kind, id, body, replace_decommissioned } => {
            if let Some(id) = id.filter(|id| body.get("id") != Some(&Value::from(id.as_str()))) {
                return Err(format!(
                    "`id` is `{id}`, and `/body/id` is not; leave `id` out, or say the same"
                ));
            }
            Operation::Create { kind: kind.into(), body, replace_decommissioned }
        }
        Wire::Put { kind, id, body, revision } => {
            Operation::Put { kind: kind.into(), id: id.into(), body, expect: revision.map(Revision) }
        }
        Wire::Patch { kind, id, selector, body, patch_type, revision } => Operation::Patch {
            kind: kind.into(),
            target: target("id", id, selector, revision)?,
            patch: patch(patch_type, body),
        },
        Wire::Delete { kind, id, selector, revision } => {
            Operation::Delete { kind: kind.into(), target: target("id", id, selector, revision)? }
        }
        Wire::Assign { kind, id, cluster, selector, body } => Operation::Assign {
            clusters: target("cluster", cluster, selector, None)?,
            kind: kind.into(),
            id: id.into(),
            overrides: body,
        },
        Wire::PatchReference { kind, id, cluster, selector, body, patch_type } => Operation::PatchReference {
            clusters: target("cluster", cluster, selector, None)?,
            kind: kind.into(),
            id: id.into(),
            patch: patch(patch_type, body),
        },
        Wire::PatchValues { id, cluster, selector, body } => Operation::PatchValues {
            clusters: target("cluster", cluster, selector, None)?,
            component: id.into(),
            values: body,
        },
        Wire::Unassign { kind, id, cluster, selector } => Operation::RemoveReference {
            clusters: target("cluster", cluster, selector, None)?,
            kind: kind.into(),
            id: id.into(),
        },
        Wire::Forget { dns } => Operation::Forget { dns: dns.into() },
    })
}

fn patch(patch_type: PatchType, body: Value) -> Patch {
    match patch_type {
        PatchType::Strategic => Patch::Strategic(body),
        PatchType::Merge => Patch::Merge(body),
        PatchType::Json => Patch::Json(body),
    }
}

fn target(
    name: &str,
    one: Option<String>,
    selector: Option<String>,
    revision: Option<u64>,
) -> Result<Target, String> {
    match (one, selector) {
        (Some(id), None) => Ok(Target::One { id: id.into(), expect: revision.map(Revision) }),
        (None, Some(_)) if revision.is_some() => {
            Err("`revision` is for one document; clusters that are selected have different ones".to_owned())
        }
        (None, Some(text)) => {
            Selector::parse(&text).map(Target::Selected).map_err(|bad| format!("`selector`: {bad}"))
        }
        _ => Err(format!("it needs either `{name}` or `selector`")),
    }
}
