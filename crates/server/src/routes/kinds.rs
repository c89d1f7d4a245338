//! The kinds in force, with their schemas.

use fleet::Kind;

use super::answer::json_of;
use super::call::{Fleet, Segments, kind_of};
use super::{Answer, Payload, Problem, Route, Table, TargetFrom};
use crate::identity::Action;
use crate::problem::Answered;

static LIST: Route =
    Route::get("/kinds", "List the kinds in force, with their schemas.", Action::Read, TargetFrom::Fleet)
        .answers(&[Answer(200, Payload::Kinds)])
        .problems(&[Problem::UNAVAILABLE]);
static READ: Route = Route::get("/kinds/{name}", "Read one kind.", Action::Read, TargetFrom::Kind("name"))
    .answers(&[Answer(200, Payload::Kind)])
    .problems(&[Problem::MISSING, Problem::UNAVAILABLE]);

pub(super) fn routes(table: &mut Table<'_>) {
    table.add(&LIST, list);
    table.add(&READ, read);
}

fn described(kind: &Kind) -> api::Kind {
    api::Kind {
        name: kind.name().as_str().to_owned(),
        path: kind.path().to_string(),
        singular: kind.singular().to_string(),
        shape: kind.shape().as_str().to_owned(),
        guard: kind.guard().as_str().to_owned(),
        description: kind.file()["metadata"]["description"].as_str().map(ToOwned::to_owned),
        query_parameters: kind
            .query_parameters()
            .iter()
            .map(|parameter| parameter.name.to_string())
            .collect(),
        schema: kind.document_schema().clone(),
    }
}

async fn list(Fleet(state): Fleet) -> Answered {
    json_of(&state.kinds().iter().map(|kind| described(kind)).collect::<Vec<_>>())
}

async fn read(Fleet(state): Fleet, Segments(name): Segments<String>) -> Answered {
    json_of(&described(&*kind_of(&state, &name)?))
}
