//! What stands before every handler: who is asking, what about, whether they may, and whether the request is one that the route's
//! description allows.

use std::pin::Pin;
use std::sync::Arc;

use api::{MAX_BODY, ProblemName};
use axum::body::Body;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::{Duration, timeout};

use super::App;
use super::call::{Fleet, kind_of};
use super::description::{DRY_RUN, QueryOf, RequestBody, RequestHeader, Route};
use super::params::Params;
use crate::give_way::LARGE;
use crate::heavy::{Heavy, Room};
use crate::identity::{Action, Principal, Target, authorise};
use crate::problem::{Answered, Refusal};
use crate::query::Query;

/// How long a client may take to send a body.
const BODY_DEADLINE: Duration = Duration::from_secs(30);

/// A handler behind the guard of its route.
#[derive(Clone)]
pub(super) struct RouteGuard<H> {
    pub(super) route: &'static Route,
    pub(super) handler: H,
}

impl<H, T> Handler<T, Arc<App>> for RouteGuard<H>
where
    H: Handler<T, Arc<App>>,
{
    type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

    fn call(self, request: Request, app: Arc<App>) -> Self::Future {
        Box::pin(async move {
            let Self { route, handler } = self;
            let mut response = match admit(route, &app, request).await {
                Ok(request) => handler.call(request, app).await,
                Err(refusal) => refusal.into_response(),
            };
            response.extensions_mut().insert(route);
            response
        })
    }
}

/// What the guard has found out about a request.
pub(super) struct Admitted {
    pub(super) route: &'static Route,
    /// None on a route that is open to everybody.
    pub(super) principal: Option<Principal>,
    /// What they were allowed to do: of a write, whether to make it or only to plan it.
    pub(super) action: Option<Action>,
    pub(super) query: Query,
}

async fn admit(route: &'static Route, app: &App, request: Request) -> Answered<Request> {
    let (mut parts, body) = request.into_parts();
    let principal = match route.action {
        Some(_) => Some(app.identity.authenticate(&parts.headers)?),
        None => None,
    };
    let params = Params::read(&mut parts, route.path).await?;
    let query = match route.query {
        QueryOf::Ignored => Ok(Query::default()),
        QueryOf::Only(_) | QueryOf::WithFilters(_) => Query::parse(parts.uri.query()),
    };
    let action = action(route, query.as_ref().ok());
    if let (Some(principal), Some(action)) = (&principal, action) {
        let no_target = || Refusal::internal(format!("`{}` lacks what its target needs", route.path));
        authorise(principal, action, route.target.of(&params).ok_or_else(no_target)?)?;
    }
    // Whoever may not do this learns nothing from here on.
    let query = match route.query {
        QueryOf::Ignored => query?,
        QueryOf::Only(parameters) => query?.described_by(parameters, &[])?,
        QueryOf::WithFilters(parameters) => {
            let fleet = Fleet::now(app)?;
            let kind = kind_of(&fleet.0, params.get("kind").unwrap_or_default())?;
            let filters: Vec<&str> = kind.query_parameters().iter().map(|filter| &*filter.name).collect();
            let query = query?.described_by(parameters, &filters)?;
            parts.extensions.insert(fleet);
            query
        }
    };
    let body = if route.is_write() { checked(route, &parts, body).await? } else { body };
    parts.extensions.insert(Arc::new(Admitted { route, principal, action, query }));
    Ok(Request::from_parts(parts, body))
}

/// The same for a poll, whose path has been read and which has nothing else that counts.
pub(super) fn admit_poll(route: &'static Route, app: &App, headers: &HeaderMap, dns: &str) -> Answered<()> {
    let principal = app.identity.authenticate(headers)?;
    Ok(authorise(&principal, route.action.unwrap_or(Action::Write), Target::Cluster(dns))?)
}

/// What a request to this route does. A dry run of a write plans it; a query that cannot be read counts as the write itself.
fn action(route: &Route, query: Option<&Query>) -> Option<Action> {
    let plans = route.query.parameters().contains(&DRY_RUN)
        && query.is_some_and(|query| query.filter(DRY_RUN.name) == Some("true"));
    if route.is_write() && plans { Some(Action::Plan) } else { route.action }
}

/// A write whose headers the route honours, and without a body if it takes none.
async fn checked(route: &Route, parts: &Parts, body: Body) -> Answered<Body> {
    refuse_headers(route, &parts.headers)?;
    if route.body != RequestBody::None {
        return Ok(body);
    }
    if !body.is_end_stream() && in_time(has_bytes(body)).await? {
        return Err(Refusal::bad_request(format!("a {} has no body here", route.method.method())));
    }
    Ok(Body::empty())
}

fn refuse_headers(route: &Route, headers: &HeaderMap) -> Answered<()> {
    let not_honoured = |header: &&RequestHeader| !route.headers.contains(header);
    for header in RequestHeader::ALL.iter().filter(not_honoured) {
        let name = header.name();
        if !headers.contains_key(name) {
            continue;
        }
        let instead = match header {
            RequestHeader::IfMatch => {
                let instead = route.without_if_match.unwrap_or("leave it out");
                return Err(Refusal::bad_request(format!("`If-Match` has no meaning here; {instead}")));
            }
            RequestHeader::IdempotencyKey => "it is not in this version yet; leave it out",
            RequestHeader::IfNoneMatch => "it is not for changes; to create what is not there, use POST",
            RequestHeader::Confirm | RequestHeader::PlanRevision | RequestHeader::ChangeReason => {
                "this route does not use it; leave it out"
            }
        };
        return Err(Refusal::bad_request(format!("the header `{name}` is not accepted: {instead}")));
    }
    Ok(())
}

/// Whether a body is not empty. No more of it is read than that takes.
async fn has_bytes(mut body: Body) -> Answered<bool> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| unreadable(&error))?;
        if frame.data_ref().is_some_and(|data| !data.is_empty()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads a whole body. It takes room once it has turned out to be large, not when it says that it will be.
pub(super) async fn whole(heavy: &Heavy, body: Body) -> Answered<(Bytes, Option<Room>)> {
    let announced = body.size_hint().upper().and_then(|size| usize::try_from(size).ok());
    in_time(async {
        let mut body = Limited::new(body, MAX_BODY);
        let (mut bytes, mut room) = (Vec::new(), None);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                if error.is::<LengthLimitError>() { too_large() } else { unreadable(&error) }
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if room.is_none() && bytes.len() + data.len() > LARGE {
                room = Some(heavy.room_for(announced.unwrap_or(MAX_BODY))?);
            }
            bytes.extend_from_slice(&data);
        }
        Ok((bytes.into(), room))
    })
    .await
}

async fn in_time<T>(reading: impl Future<Output = Answered<T>>) -> Answered<T> {
    timeout(BODY_DEADLINE, reading).await.unwrap_or_else(|_| {
        let detail = format!("the body did not arrive within {} seconds", BODY_DEADLINE.as_secs());
        Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, ProblemName::Invalid, detail))
    })
}

fn too_large() -> Refusal {
    let detail = format!("the body has more than {MAX_BODY} bytes; send it in parts");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, ProblemName::TooLarge, detail)
}

fn unreadable(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::bad_request(format!("the body could not be read: {error}"))
}
