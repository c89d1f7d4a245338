//! The forms of answers that routes share.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use fleet::{Revision, State};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use crate::problem::{Answered, Refusal};

/// A document as GET answers it; none if it is not there.
pub(super) fn document(status: StatusCode, state: &State, kind: &str, id: &str) -> Option<Response> {
    let (body, revision) = state.body(kind, id)?;
    let mut response = (status, json_body(body.as_str().to_owned())).into_response();
    response.headers_mut().insert(header::ETAG, etag(revision));
    Some(response)
}

/// The entity tag of a document: its revision.
pub(super) fn etag(revision: Revision) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{revision}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// What can be written as JSON, so written.
pub(super) fn json_of<T: Serialize>(value: &T) -> Answered {
    let body = serde_json::to_string(value).map_err(|error| Refusal::internal(error.to_string()))?;
    Ok(json_body(body))
}

/// JSON that belongs to whoever asked.
pub(super) fn json_body(body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    // As many as an answer gets: these, its tag, its length, its encoding, the request's id, and what becomes of the connection.
    headers.reserve(8);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding, Authorization"));
    response
}
