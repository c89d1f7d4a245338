//! The guard's budgets, and allowances beyond them.

use api::Grant;
use axum::Json;
use axum::response::IntoResponse;
use bytes::Bytes;
use fleet::Operation;
use http::StatusCode;

use super::answer::json_of;
use super::call::{Call, Content, Fleet, Segments};
use super::write::{self, Outcome, deleted};
use super::{Answer, Payload, Problem, RequestBody, Route, Table, TargetFrom, Verb};
use crate::identity::Action;
use crate::problem::{Answered, Refusal};
use crate::{clock, json, wire};

static GUARD: Route = Route::get(
    "/guard",
    "The guard's limits, what is used up of the last hour, and the allowances in force.",
    Action::Read,
    TargetFrom::Fleet,
)
.answers(&[Answer(200, Payload::Guard)])
.problems(&[Problem::UNAVAILABLE]);
static ALLOW: Route = Route::write(
    Verb::Post,
    "/guard/allowances",
    "Allow somebody more removals than the guard's hourly budgets.",
    TargetFrom::Service,
)
.needing(Action::Allow)
.without_if_match("an allowance is always a new one")
.body(RequestBody::Json("`{\"for\": \"file:alice\", \"deletions\": 40, \"removals\": 0, \"minutes\": 60}`"))
.answers(&[Answer(201, Payload::Allowance)]);
static REVOKE: Route =
    Route::write(Verb::Delete, "/guard/allowances/{id}", "Take an allowance back.", TargetFrom::Service)
        .needing(Action::Allow)
        .without_if_match("whatever is left of the allowance is taken back")
        .answers(&[Answer(204, Payload::Nothing)]);

pub(super) fn routes(table: &mut Table<'_>) {
    table.add(&GUARD, guard);
    table.add(&ALLOW, allow);
    table.add(&REVOKE, revoke);
}

async fn guard(call: Call, Fleet(state): Fleet) -> Answered {
    json_of(&wire::guard(&call.app.policy, &state, state.time_of_commit(clock::now())))
}

async fn allow(call: Call, body: Content) -> Answered {
    let Grant { to, deletions, removals, minutes } =
        json::typed(body.json(&call)?).map_err(Refusal::bad_request)?;
    let operation = Operation::Allow(fleet::Grant { to: to.into(), deletions, removals, minutes });
    match write::write(&call, vec![operation], &body.0).await? {
        Outcome::Tried(response) => Ok(response),
        Outcome::Made(written) => {
            let state = &written.state;
            let granted = |(key, is_there): &(fleet::Key, bool)| is_there.then(|| key.id().to_owned());
            let id = written.changed.iter().find_map(granted);
            let live = state.allowances(state.time());
            let allowance = live.into_iter().find(|(live, _)| Some(live.as_str()) == id.as_deref());
            let (id, allowance) =
                allowance.ok_or_else(|| Refusal::internal("an allowance was granted and is not there"))?;
            let answer = Json(wire::allowance(id.as_str(), allowance));
            Ok(write::made((StatusCode::CREATED, answer).into_response(), &written))
        }
    }
}

async fn revoke(call: Call, Segments(id): Segments<String>) -> Answered {
    let operation = Operation::Disallow { id: id.into() };
    Ok(deleted(write::write(&call, vec![operation], &Bytes::new()).await?))
}
