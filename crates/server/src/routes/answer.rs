//! The forms of answers that routes share.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use fleet::{Revision, State};
use http::{HeaderValue, StatusCode, header};

use crate::problem::{Answered, Refusal};

/// A document as GET answers it.
pub(super) fn document(status: StatusCode, state: &State, kind: &str, id: &str) -> Answered {
    let Some((body, revision)) = state.body(kind, id) else {
        return Err(Refusal::internal(format!("`{kind}/{id}` was written and is not there")));
    };
    let mut response = (status, json_body(body.as_str().to_owned())).into_response();
    response.headers_mut().insert(header::ETAG, etag(revision));
    Ok(response)
}

/// The entity tag of a document: its revision.
pub(super) fn etag(revision: Revision) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{revision}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// JSON that belongs to whoever asked.
pub(super) fn json_body(body: impl Into<Body>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        (header::VARY, HeaderValue::from_static("Accept-Encoding, Authorization")),
    ];
    (headers, body.into()).into_response()
}
