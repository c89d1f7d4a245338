//! The kinds in force, with their schemas.

use axum::routing::MethodFilter;
use fleet::Kind;

use super::Table;
use super::answer::json_of;
use super::call::{Call, Segments, kind_of};
use crate::identity::Access;
use crate::problem::Answered;

pub(super) fn routes(table: &mut Table) {
    table.add(MethodFilter::GET, "/kinds", Access::Read, list);
    table.add(MethodFilter::GET, "/kinds/{name}", Access::Read, read);
}

fn told(kind: &Kind) -> api::Kind {
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

async fn list(call: Call) -> Answered {
    call.query(&[])?;
    let state = call.app.replica.serving()?;
    json_of(&state.kinds().iter().map(|kind| told(kind)).collect::<Vec<_>>())
}

async fn read(call: Call, Segments(name): Segments<String>) -> Answered {
    call.query(&[])?;
    let state = call.app.replica.serving()?;
    json_of(&told(&*kind_of(&state, &name)?))
}
