//! The outermost layer of every request: its id, its metrics, its log line, what becomes of a panic, and the form of the answer.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use tracing::{debug, error, info, warn};
use uuid::Uuid;

use crate::gzip;
use crate::metrics::{Answered, Metrics};
use crate::problem::{ProblemBody, Refusal};
use crate::routes::{IncomingBody, Route, Routes};

/// The name under which a request is found again in the log and in the audit trail.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestId(pub Arc<str>);

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

impl RequestId {
    /// One that no other request of this or another process has: a poll must not wait for random numbers, so only its first half is
    /// drawn, once.
    fn new() -> Self {
        static PROCESS: LazyLock<u64> = LazyLock::new(|| Uuid::now_v7().as_u64_pair().1);
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let uuid = Uuid::from_u64_pair(*PROCESS, COUNT.fetch_add(1, Ordering::Relaxed));
        Self((*uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer())).into())
    }

    /// The one that the client or a proxy gave, if it can be used, or a new one.
    fn of(headers: &HeaderMap) -> Self {
        let usable =
            |text: &&str| (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        match headers.get(REQUEST_ID).and_then(|value| value.to_str().ok()).filter(usable) {
            Some(given) => Self(given.into()),
            None => Self::new(),
        }
    }
}

/// Answers a request, and says which route it was, if it was one.
pub async fn answer(
    routes: &Routes,
    metrics: &Metrics,
    request: Request<impl IncomingBody>,
) -> (Response, Option<&'static Route>) {
    let start = Instant::now();
    let id = RequestId::of(request.headers());
    let gzip = gzip::wanted(request.headers());
    let is_operator = request
        .headers()
        .get(header::USER_AGENT)
        .is_some_and(|agent| agent.as_bytes().starts_with(b"flux-operator/"));
    let method = request.method().clone();
    let answer = AssertUnwindSafe(routes.answer(request, &id)).catch_unwind().await;
    let (mut response, route) =
        answer.unwrap_or_else(|_| (Refusal::internal("a handler has panicked").into_response(), None));
    let path = route.map_or("(none)", |route| route.path);
    let status = response.status();
    if let Some(body) = response.extensions_mut().remove::<ProblemBody>() {
        response = with_problem(response, body, &id);
    }
    if gzip {
        response = gzip::compressed(response).await;
    }
    let headers = response.headers_mut();
    if is_operator {
        // It leaves every connection open and idle, and never uses one again.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        headers.insert(REQUEST_ID, value);
    }
    let took = start.elapsed();
    metrics.duration.observe(took.as_secs_f64());
    let labels = Answered { method: method_name(&method), route: path, status: status.as_u16() };
    metrics.requests.get_or_create(&labels).inc();
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let status = status.as_u16();
    if method == Method::GET || method == Method::HEAD {
        debug!(%method, route = path, status, micros, request = &*id.0, "answered");
    } else {
        info!(%method, route = path, status, micros, request = &*id.0, "answered");
    }
    (response, route)
}

/// A client can invent methods; a label must not grow with them.
fn method_name(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

fn with_problem(response: Response, body: ProblemBody, id: &RequestId) -> Response {
    let ProblemBody { mut problem, log } = body;
    if let Some(log) = log {
        if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
            error!(request = &*id.0, "{log}");
        } else {
            warn!(request = &*id.0, "{log}");
        }
    }
    problem.request_id = Some(id.0.to_string());
    let (mut parts, _) = response.into_parts();
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    parts.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    parts.headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding, Authorization"));
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(body))
}
