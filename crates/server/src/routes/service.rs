//! How the service itself is: open to everybody, and without a name of the fleet in it.

use std::sync::Arc;
use std::time::Duration;

use api::{GuardLimits, READY, Standing, WRITER_FAILED};
use axum::Json;
use axum::extract::State as Shared;
use axum::response::IntoResponse;
use axum::routing::MethodFilter;
use http::{HeaderValue, StatusCode, Uri, header};
use serde_json::json;

use super::{App, Table};
use crate::identity::Access;
use crate::problem::Answered;
use crate::query::Query;

pub(super) fn routes(table: &mut Table) {
    table.add(MethodFilter::GET, "/health", Access::Open, health);
    table.add(MethodFilter::GET, "/ready", Access::Open, ready);
    if table.app.serves_metrics {
        metrics_route(table);
    }
}

pub(super) fn metrics_route(table: &mut Table) {
    table.add(MethodFilter::GET, "/metrics", Access::Open, metrics);
}

/// The process lives.
async fn health(uri: Uri) -> Answered {
    Query::read(uri.query(), &[])?;
    Ok(Json(json!({"status": "ok"})).into_response())
}

/// 200 exactly while polls are answered.
async fn ready(Shared(app): Shared<Arc<App>>, uri: Uri) -> Answered {
    Query::read(uri.query(), &[])?;
    let serving = app.replica.serving();
    let known = app.replica.known();
    let status = if serving.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let writer =
        app.writer.as_ref().map(|writer| if writer.has_failed() { WRITER_FAILED } else { "running" });
    let store = match (app.replica.trouble(), app.replica.millis_behind()) {
        (None, Some(_)) => "reachable",
        (None, None) => "not asked yet",
        (Some(_), _) => "not confirmed",
    };
    let body = Standing {
        status: if serving.is_ok() { READY } else { "not ready" }.to_owned(),
        because: serving.err().map(|not_serving| not_serving.to_string()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        mode: app.mode.to_string(),
        revision: known.as_ref().map(|state| state.head().revision.0),
        hash: known.as_ref().map(|state| state.head().hash.to_string()),
        store: store.to_owned(),
        seconds_behind: app.replica.millis_behind().map(|millis| millis / 1_000),
        writer: writer.map(ToOwned::to_owned),
        guard: GuardLimits {
            clusters: app.policy.guard_clusters,
            deletions_per_hour: app.policy.deletions_per_hour,
            removals_per_hour: app.policy.removals_per_hour,
        },
    };
    let headers = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((status, headers, Json(body)).into_response())
}

async fn metrics(Shared(app): Shared<Arc<App>>, uri: Uri) -> Answered {
    Query::read(uri.query(), &[])?;
    let revision = app.replica.known().map_or(0, |state| state.head().revision.0);
    let behind = app.replica.millis_behind().map(Duration::from_millis);
    let writer_failed = app.writer.as_ref().is_some_and(crate::writer::Writer::has_failed);
    app.metrics.standing(revision, behind, app.replica.serving().is_ok(), writer_failed);
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], app.metrics.text()).into_response())
}
