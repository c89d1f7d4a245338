//! Documents that a story adds to the catalog and assigns to east, in one transaction, and takes away again.

use anyhow::Result;
use e2e::service::Service;
use reqwest::Method;
use serde_json::{Map, Value, json};

/// Documents by their kind.
pub(crate) type Documents<'a> = [(&'a str, &'a [Value])];

/// Makes them, and assigns them to east.
pub(crate) fn assign(service: &Service, documents: &Documents<'_>) -> Result<()> {
    let mut operations = each(
        documents,
        |kind, document| json!({"op": "create", "kind": kind, "id": document["id"], "body": document}),
    );
    operations.push(references(documents, |id| json!({"id": id})));
    service.post("/batch", &json!({"operations": operations})).map(drop)
}

/// Takes them away from east and from the catalog.
pub(crate) fn unassign(service: &Service, documents: &Documents<'_>) -> Result<()> {
    let mut operations = vec![references(documents, |id| json!({"id": id, "$patch": "delete"}))];
    operations.extend(each(
        documents,
        |kind, document| json!({"op": "delete", "kind": kind, "id": document["id"]}),
    ));
    service.confirmed(&Method::POST, "/batch", Some(&json!({"operations": operations}))).map(drop)
}

fn each(documents: &Documents<'_>, operation: impl Fn(&str, &Value) -> Value) -> Vec<Value> {
    let all = documents
        .iter()
        .flat_map(|(kind, documents)| documents.iter().map(move |document| (*kind, document)));
    all.map(|(kind, document)| operation(kind, document)).collect()
}

fn references(documents: &Documents<'_>, reference: impl Fn(&Value) -> Value) -> Value {
    let of_kind = |documents: &[Value]| documents.iter().map(|document| reference(&document["id"])).collect();
    let body: Map<String, Value> =
        documents.iter().map(|(kind, documents)| ((*kind).to_owned(), of_kind(documents))).collect();
    json!({"op": "patch", "kind": "clusters", "id": "east", "body": body})
}
