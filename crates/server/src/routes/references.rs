//! One reference of a cluster: set it, change it, remove it, without touching the others. The answer is the cluster.

use std::sync::Arc;

use bytes::Bytes;
use fleet::{CLUSTERS, Kind, Operation, Shape, Target};
use http::{StatusCode, header};

use super::answer::etag;
use super::call::{Call, Content, Segments};
use super::write::{self, Outcome, deleted};
use super::{Answer, Payload, RequestBody, Route, Table, TargetFrom, Verb};
use crate::problem::{Answered, Refusal};

const PATH: &str = "/clusters/{id}/{kind}/{reference}";

const CLUSTER: TargetFrom = TargetFrom::DocumentOf(CLUSTERS, "id");

static SET: Route = Route::write(Verb::Put, PATH, "Set one reference of a cluster.", CLUSTER)
    .body(RequestBody::OptionalJson("the overrides"))
    .answers(&[Answer(200, Payload::Cluster)]);
static CHANGE: Route = Route::write(Verb::Patch, PATH, "Change one reference of a cluster.", CLUSTER)
    .body(RequestBody::Patch("of the overrides"))
    .answers(&[Answer(200, Payload::Cluster)]);
static REMOVE: Route = Route::write(Verb::Delete, PATH, "Remove one reference of a cluster.", CLUSTER)
    .answers(&[Answer(204, Payload::Nothing)]);

pub(super) fn routes(table: &mut Table<'_>) {
    table.add(&SET, set);
    table.add(&CHANGE, change);
    table.add(&REMOVE, remove);
}

type Place = (String, String, String);

fn target(call: &Call, cluster: &str) -> Answered<Target> {
    Ok(Target::One { id: cluster.into(), expect: write::expected(call)? })
}

/// A kind that clusters refer to.
fn referable(call: &Call, name: &str) -> Answered<Arc<Kind>> {
    let kind = call.kind(name)?;
    if kind.shape() == Shape::Cluster {
        return Err(Refusal::missing("a cluster does not refer to clusters"));
    }
    Ok(kind)
}

async fn set(call: Call, Segments((cluster, kind, id)): Segments<Place>, body: Content) -> Answered {
    let kind = referable(&call, &kind)?;
    let overrides = body.optional_json(&call)?;
    let operation = Operation::Assign {
        clusters: target(&call, &cluster)?,
        kind: kind.name().as_str().into(),
        id: id.into(),
        overrides,
    };
    let outcome = write::write(&call, vec![operation], &body.0).await?;
    write::answered(outcome, StatusCode::OK, CLUSTERS, &cluster)
}

async fn change(call: Call, Segments((cluster, kind, id)): Segments<Place>, body: Content) -> Answered {
    let kind = referable(&call, &kind)?;
    let operation = Operation::PatchReference {
        clusters: target(&call, &cluster)?,
        kind: kind.name().as_str().into(),
        id: id.into(),
        patch: body.patch(&call)?,
    };
    let outcome = write::write(&call, vec![operation], &body.0).await?;
    write::answered(outcome, StatusCode::OK, CLUSTERS, &cluster)
}

async fn remove(call: Call, Segments((cluster, kind, id)): Segments<Place>) -> Answered {
    let kind = referable(&call, &kind)?;
    let operation = Operation::RemoveReference {
        clusters: target(&call, &cluster)?,
        kind: kind.name().as_str().into(),
        id: id.into(),
    };
    let outcome = write::write(&call, vec![operation], &Bytes::new()).await?;
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
