//! What the handlers of the REST API take from a request.

use std::sync::Arc;
use std::time::Duration;

use api::ProblemName;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use fleet::{Kind, State};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::App;
use crate::identity::Principal;
use crate::problem::{Answered, Refusal};
use crate::query::Query;
use crate::requests::RequestId;

/// The largest body that is read.
const MAX_BODY: usize = 8 * 1024 * 1024;
/// How long a client may take to send one.
const BODY_DEADLINE: Duration = Duration::from_secs(30);

/// A request to the REST API, without its body.
pub(super) struct Call {
    pub(super) app: Arc<App>,
    pub(super) principal: Option<Principal>,
    pub(super) id: RequestId,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
}

impl Call {
    /// The query, of a route that has these parameters.
    pub(super) fn query(&self, known: &[&str]) -> Answered<Query> {
        Query::read(self.uri.query(), known)
    }

    /// A kind by its name in this API.
    pub(super) fn kind(&self, name: &str) -> Answered<Arc<Kind>> {
        kind_of(&*self.app.replica.serving()?, name)
    }

    /// A header as text.
    pub(super) fn header(&self, name: &str) -> Answered<Option<&str>> {
        let mut values = self.headers.get_all(name).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(Refusal::bad_request(format!("the header `{name}` is given twice")));
        }
        std::str::from_utf8(value.as_bytes())
            .map(Some)
            .map_err(|_| Refusal::bad_request(format!("the header `{name}` is not UTF-8")))
    }
}

impl FromRequestParts<Arc<App>> for Call {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refusal> {
        let principal = parts.extensions.get::<Option<Principal>>().cloned().flatten();
        let id = parts.extensions.get::<RequestId>().cloned().unwrap_or_default();
        Ok(Self {
            app: app.clone(),
            principal,
            id,
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
        })
    }
}

/// The variable parts of the path.
pub(super) struct Segments<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Segments<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(rejection) => {
                Err(Refusal::bad_request(format!("the path cannot be read: {}", rejection.body_text())))
            }
        }
    }
}

/// The whole body.
pub(super) struct Content(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for Content {
    type Rejection = Refusal;

    async fn from_request(request: Request<Body>, _: &S) -> Result<Self, Refusal> {
        let body = Limited::new(request.into_body(), MAX_BODY);
        let collected = tokio::time::timeout(BODY_DEADLINE, body.collect()).await.map_err(|_| {
            let detail = format!("the body did not arrive within {} seconds", BODY_DEADLINE.as_secs());
            Refusal::new(StatusCode::REQUEST_TIMEOUT, ProblemName::Invalid, detail)
        })?;
        match collected {
            Ok(body) => Ok(Self(body.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => Err(Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                ProblemName::TooLarge,
                format!("the body has more than {MAX_BODY} bytes; send it in parts"),
            )),
            Err(error) => Err(Refusal::bad_request(format!("the body could not be read: {error}"))),
        }
    }
}

/// A kind by its name in this API.
pub(super) fn kind_of(state: &State, name: &str) -> Answered<Arc<Kind>> {
    state.kinds().get(name).cloned().ok_or_else(|| {
        let known: Vec<String> = state.kinds().iter().map(|kind| format!("`{}`", kind.name())).collect();
        Refusal::missing(format!("there is no kind `{name}`; there are {}", known.join(", ")))
    })
}

pub(super) fn no_document(kind: &Kind, id: &str) -> Refusal {
    Refusal::missing(format!("there is no {} `{id}`", kind.singular()))
}
