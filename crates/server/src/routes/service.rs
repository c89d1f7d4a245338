//! How the service itself is: open to everybody, and without a name of the fleet in it.

use std::sync::Arc;
use std::time::Duration;

use api::{READY, Standing, WRITER_FAILED};
use axum::Json;
use axum::extract::State as Shared;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use super::{Answer, App, Payload, Route, Table};
use crate::{clock, wire};

static HEALTH: Route =
    Route::open("/health", "Whether the process runs.").answers(&[Answer(200, Payload::Health)]);
static READY_ROUTE: Route = Route::open("/ready", "Whether polls are answered, and why not.")
    .answers(&[Answer(200, Payload::Standing), Answer(503, Payload::Standing)]);
pub(super) static METRICS: Route = Route::open("/metrics", "Figures about the process, in OpenMetrics.")
    .answers(&[Answer(200, Payload::Metrics)]);

pub(super) fn routes(table: &mut Table<'_>) {
    table.add(&HEALTH, health);
    table.add(&READY_ROUTE, ready);
    table.add(&METRICS, metrics);
}

async fn health() -> Response {
    Json(json!({"status": "ok"})).into_response()
}

/// 200 exactly while polls are answered.
async fn ready(Shared(app): Shared<Arc<App>>) -> Response {
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
        needs: app.replica.needs().map(|needs| needs.to_string()),
        clock_behind_seconds: known
            .as_ref()
            .and_then(|state| clock::behind(state.time(), clock::now()))
            .map(|behind| behind.as_secs()),
        seconds_behind: app.replica.millis_behind().map(|millis| millis / 1_000),
        writer: writer.map(ToOwned::to_owned),
        guard: wire::guard_limits(&app.policy),
    };
    let headers = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (status, headers, Json(body)).into_response()
}

async fn metrics(Shared(app): Shared<Arc<App>>) -> Response {
    let revision = app.replica.known().map_or(0, |state| state.head().revision.0);
    let behind = app.replica.millis_behind().map(Duration::from_millis);
    let writer_failed = app.writer.as_ref().is_some_and(|writer| writer.has_failed());
    app.metrics.standing(revision, behind, app.replica.serving().is_ok(), writer_failed);
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], app.metrics.text()).into_response()
}
