//! What the handlers of the REST API take from a request.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use fleet::{Kind, State};
use http::request::Parts;
use http::{HeaderMap, Method, Uri};
use ledger::History;
use serde::de::DeserializeOwned;

use super::App;
use super::description::{RequestHeader, Route};
use super::guard::{Admitted, whole};
use crate::gzip;
use crate::heavy::Room;
use crate::identity::{Action, Principal};
use crate::problem::{Answered, Refusal};
use crate::query::Query;
use crate::requests::RequestId;

/// A request that the guard has let through, without its body.
pub(super) struct Call {
    pub(super) app: Arc<App>,
    pub(super) id: RequestId,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    admitted: Arc<Admitted>,
}

impl Call {
    /// The description of its route.
    pub(super) fn route(&self) -> &'static Route {
        self.admitted.route
    }

    /// The query, with the parameters of the route's description.
    pub(super) fn query(&self) -> &Query {
        &self.admitted.query
    }

    /// Who is asking.
    pub(super) fn principal(&self) -> Answered<&Principal> {
        self.admitted.principal.as_ref().ok_or_else(|| Refusal::internal("an open route asks who it is"))
    }

    /// What the principal was allowed to do.
    pub(super) fn action(&self) -> Option<Action> {
        self.admitted.action
    }

    /// A kind by its name in this API.
    pub(super) fn kind(&self, name: &str) -> Answered<Arc<Kind>> {
        kind_of(&Fleet::now(&self.app)?.0, name)
    }

    /// Answers with what takes long to read: much of the fleet, or the past. On another thread, unless too many wait for that.
    pub(super) async fn read(
        &self,
        work: impl FnOnce(&dyn History) -> Answered + Send + 'static,
    ) -> Answered {
        self.app.heavy.read(gzip::wanted(&self.headers), work).await
    }

    /// Answers with a plan, in the same way.
    pub(super) async fn plan(&self, work: impl FnOnce() -> Answered + Send + 'static) -> Answered {
        self.app.heavy.plan(gzip::wanted(&self.headers), work).await
    }

    /// A header that the route's description has.
    pub(super) fn header(&self, header: RequestHeader) -> Answered<Option<&str>> {
        let name = header.name();
        if !self.route().headers.contains(&header) {
            return Err(Refusal::internal(format!("the route does not describe `{name}`, and reads it")));
        }
        self.header_of_body(name)
    }

    /// A header that every request with a body may have.
    pub(super) fn header_of_body(&self, name: &str) -> Answered<Option<&str>> {
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
        let admitted = parts.extensions.get::<Arc<Admitted>>().cloned();
        Ok(Self {
            app: app.clone(),
            id: parts.extensions.get::<RequestId>().cloned().unwrap_or_default(),
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
            admitted: admitted.ok_or_else(|| Refusal::internal("a handler without a guard"))?,
        })
    }
}

/// The fleet as it may be served, or the 503 that says why not. A handler sees the one that the guard has checked the request against,
/// if it had to.
#[derive(Clone)]
pub(super) struct Fleet(pub(super) Arc<State>);

impl Fleet {
    /// The fleet at this moment.
    pub(super) fn now(app: &App) -> Answered<Self> {
        Ok(Self(app.replica.serving()?))
    }
}

impl FromRequestParts<Arc<App>> for Fleet {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refusal> {
        match parts.extensions.get::<Self>() {
            Some(fleet) => Ok(fleet.clone()),
            None => Self::now(app),
        }
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

/// The whole body. What it is as JSON or as a patch, [`super::content`] says.
pub(super) struct Content(
    pub(super) Bytes,
    #[expect(dead_code, reason = "it is held, not used")] Option<Room>,
);

impl FromRequest<Arc<App>> for Content {
    type Rejection = Refusal;

    async fn from_request(request: Request<Body>, app: &Arc<App>) -> Result<Self, Refusal> {
        let (bytes, room) = whole(&app.heavy, request.into_body()).await?;
        Ok(Self(bytes, room))
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
