//! The kinds in force, with their schemas.

use axum::routing::MethodFilter;
use fleet::{GuardClass, Kind};
use serde_json::{Value, json};

use super::Table;
use super::answer::json_body;
use super::call::{Call, Segments, kind_of};
use crate::identity::Access;
use crate::problem::Answered;

pub(super) fn routes(table: &mut Table) {
    table.add(MethodFilter::GET, "/kinds", Access::Read, list);
    table.add(MethodFilter::GET, "/kinds/{name}", Access::Read, read);
}

fn told(kind: &Kind) -> Value {
    json!({
        "name": kind.name().as_str(),
        "path": kind.path(),
        "singular": kind.singular(),
        "shape": kind.shape().as_str(),
        "guard": match kind.guard() { GuardClass::Each => "each", GuardClass::Ordinary => "ordinary" },
        "description": kind.file()["metadata"]["description"],
        "query_parameters": kind.query_parameters().iter().map(|parameter| &parameter.name).collect::<Vec<_>>(),
        "schema": kind.document_schema(),
    })
}

async fn list(call: Call) -> Answered {
    call.query(&[])?;
    let state = call.app.replica.serving()?;
    let kinds: Vec<Value> = state.kinds().iter().map(|kind| told(kind)).collect();
    Ok(json_body(Value::from(kinds).to_string()))
}

async fn read(call: Call, Segments(name): Segments<String>) -> Answered {
    call.query(&[])?;
    let state = call.app.replica.serving()?;
    Ok(json_body(told(&*kind_of(&state, &name)?).to_string()))
}
