//! One reference of a cluster: set it, change it, remove it, without touching the others. The answer is the cluster.

use std::sync::Arc;

use axum::routing::MethodFilter;
use fleet::{CLUSTERS, Kind, Operation, Target};
use http::{StatusCode, header};
use serde_json::Value;

use super::Table;
use super::answer::etag;
use super::call::{Call, Content, Segments};
use super::write::{self, DRY_RUN, Outcome, deleted, no_body};
use crate::identity::Access;
use crate::problem::{Answered, Refusal};

const PATH: &str = "/clusters/{id}/{kind}/{reference}";

pub(super) fn routes(table: &mut Table) {
    table.add(MethodFilter::PUT, PATH, Access::Write, set);
    table.add(MethodFilter::PATCH, PATH, Access::Write, change);
    table.add(MethodFilter::DELETE, PATH, Access::Write, remove);
}

type Place = (String, String, String);

fn target(call: &Call, cluster: &str) -> Answered<Target> {
    Ok(Target::One { id: cluster.into(), expect: write::expected(call)? })
}

/// A kind that clusters refer to.
fn referable(call: &Call, name: &str) -> Answered<Arc<Kind>> {
    let kind = call.kind(name)?;
    if kind.name().as_str() == CLUSTERS {
        return Err(Refusal::missing("a cluster does not refer to clusters"));
    }
    Ok(kind)
}

async fn set(call: Call, Segments((cluster, kind, id)): Segments<Place>, Content(body): Content) -> Answered {
    let query = call.query(&[DRY_RUN])?;
    let kind = referable(&call, &kind)?;
    let overrides = if body.is_empty() { Value::Null } else { write::document(&call, &body)? };
    let operation = Operation::Assign {
        clusters: target(&call, &cluster)?,
        kind: kind.name().as_str().into(),
        id: id.into(),
        overrides,
    };
    let outcome = write::write(&call, &query, vec![operation], &body).await?;
    write::answered(outcome, StatusCode::OK, CLUSTERS, &cluster)
}

async fn change(
    call: Call,
    Segments((cluster, kind, id)): Segments<Place>,
    Content(body): Content,
) -> Answered {
    let query = call.query(&[DRY_RUN])?;
    let kind = referable(&call, &kind)?;
    let operation = Operation::PatchReference {
        clusters: target(&call, &cluster)?,
        kind: kind.name().as_str().into(),
        id: id.into(),
        patch: write::patch(&call, &body)?,
    };
    let outcome = write::write(&call, &query, vec![operation], &body).await?;
    write::answered(outcome, StatusCode::OK, CLUSTERS, &cluster)
}

async fn remove(
    call: Call,
    Segments((cluster, kind, id)): Segments<Place>,
    Content(body): Content,
) -> Answered {
    let query = call.query(&[DRY_RUN])?;
    let kind = referable(&call, &kind)?;
    no_body(&body)?;
    let operation = Operation::RemoveReference {
        clusters: target(&call, &cluster)?,
        kind: kind.name().as_str().into(),
        id: id.into(),
    };
    let outcome = write::write(&call, &query, vec![operation], &body).await?;
    let etag = match &outcome {
        Outcome::Made(written) => written.state.cluster(&cluster).map(|stored| etag(stored.revision)),
        Outcome::Tried(_) => None,
    };
    let mut response = deleted(outcome);
    if let Some(etag) = etag {
        response.headers_mut().insert(header::ETAG, etag);
    }
    Ok(response)
}
