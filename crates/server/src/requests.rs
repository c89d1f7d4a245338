//! The outermost layer of every request: its id, its metrics, its log line, what becomes of a panic, and the form of the answer.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use tracing::{debug, error, info, warn};
use uuid::Uuid;

use crate::gzip;
use crate::heavy::{self, Place};
use crate::metrics::{Answered, Metrics};
use crate::problem::{ProblemBody, Refusal};
use crate::routes::{Route, Routes};

/// The name under which a request is found again in the log and in the audit trail.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestId(pub Arc<str>);

const REQUEST_ID: &str = "x-request-id";

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

/// Answers a request.
pub async fn answer(routes: impl Into<Routes>, metrics: &Metrics, mut request: Request<Body>) -> Response {
    let start = Instant::now();
    let id = RequestId::of(request.headers());
    let gzip = gzip::wanted(request.headers());
    let is_operator = request
        .headers()
        .get(header::USER_AGENT)
        .is_some_and(|agent| agent.as_bytes().starts_with(b"flux-operator/"));
    let method = request.method().clone();
    request.extensions_mut().insert(id.clone());
    let answer = AssertUnwindSafe(routes.into().answer(request)).catch_unwind().await;
    let mut response = match answer {
        Ok(response) => response,
        Err(_) => Refusal::internal("a handler has panicked").into_response(),
    };
    let route = response.extensions().get::<&'static Route>().map_or("(none)", |route| route.path);
    let status = response.status();
    if let Some(body) = response.extensions_mut().remove::<ProblemBody>() {
        response = with_problem(response, body, &id);
    }
    if gzip {
        response = compressed(response).await;
    }
    if let Some(place) = response.extensions_mut().remove::<Place>() {
        response = heavy::holding(response, place);
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
    let labels = Answered { method: method_name(&method), route, status: status.as_u16() };
    metrics.requests.get_or_create(&labels).inc();
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let status = status.as_u16();
    if method == Method::GET || method == Method::HEAD {
        debug!(%method, route, status, micros, request = &*id.0, "answered");
    } else {
        info!(%method, route, status, micros, request = &*id.0, "answered");
    }
    response
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

/// Compresses an answer whose length is known: it is in memory as a whole. A stream is sent as it is.
pub(crate) async fn compressed(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    if body.size_hint().exact().is_none_or(|size| size == 0)
        || parts.headers.contains_key(header::CONTENT_ENCODING)
    {
        return Response::from_parts(parts, body);
    }
    let Ok(whole) = body.collect().await else {
        return Refusal::internal("an answer's body broke off").into_response();
    };
    let bytes = whole.to_bytes();
    match gzip::compress(&bytes) {
        Some(packed) => {
            parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.remove(header::CONTENT_LENGTH);
            Response::from_parts(parts, Body::from(packed))
        }
        None => Response::from_parts(parts, Body::from(bytes)),
    }
}
