//! The routes. Each is described by a value, a [`Route`], and cannot be added without one; the table is made from the descriptions.

mod allowances;
mod answer;
mod batch;
mod call;
mod content;
mod curl;
mod decommissioned;
mod description;
mod documents;
mod flux;
mod guard;
mod history;
mod kinds;
mod params;
mod references;
mod reserved;
mod service;
mod table;
mod whoami;
mod write;

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use axum::{BoxError, Router};
use bytes::Bytes;
use fleet::Policy;
use http::Request;

pub use description::{
    Answer, DRY_RUN, PLAN_AFTER, Payload, Problem, QueryOf, RequestBody, RequestHeader, Route, TargetFrom,
    Verb,
};
use table::Table;
use tower::ServiceExt;

use crate::config::Mode;
use crate::heavy::Heavy;
use crate::identity::Identity;
use crate::metrics::Metrics;
use crate::replica::Replica;
use crate::requests::RequestId;
use crate::writer::Writer;

/// What the routes work with.
pub struct App {
    /// What this process does.
    pub mode: Mode,
    /// The fleet.
    pub replica: Arc<Replica>,
    /// What takes long, and the past.
    pub heavy: Heavy,
    /// Whoever makes changes; in `crud` mode only.
    pub writer: Option<Arc<Writer>>,
    /// Who has access.
    pub identity: Arc<Identity>,
    /// The guard's numbers.
    pub policy: Policy,
    /// What is counted.
    pub metrics: Metrics,
    /// Whether the metrics are served here, and not on an address of their own.
    pub serves_metrics: bool,
}

/// Every route that there is. A file's function adds its own, each with its handler.
fn table(is_wanted: &dyn Fn(&Route) -> bool) -> Table<'_> {
    let mut table = Table::of(is_wanted);
    service::routes(&mut table);
    flux::routes(&mut table);
    whoami::routes(&mut table);
    documents::routes(&mut table);
    references::routes(&mut table);
    batch::routes(&mut table);
    history::routes(&mut table);
    decommissioned::routes(&mut table);
    kinds::routes(&mut table);
    allowances::routes(&mut table);
    table
}

/// The routes of all modes.
pub fn all() -> Vec<&'static Route> {
    table(&|_| true).routes()
}

/// The routes that a process has.
pub fn of(app: &App) -> Vec<&'static Route> {
    table(&|route| is_served(app, route)).routes()
}

fn is_served(app: &App, route: &Route) -> bool {
    (app.mode == Mode::Crud || route.in_read_only) && (app.serves_metrics || *route != service::METRICS)
}

/// What answers requests: the router, and before it the one route that is asked all the time.
#[derive(Clone)]
pub struct Routes {
    polls: Option<Arc<App>>,
    router: Router,
}

impl From<Router> for Routes {
    fn from(router: Router) -> Self {
        Self { polls: None, router }
    }
}

/// The body of a request as it comes in.
pub trait IncomingBody: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static {}

impl<B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static> IncomingBody for B {}

impl Routes {
    /// Answers a request, and says which route it was, if it was one.
    pub async fn answer(
        &self,
        request: Request<impl IncomingBody>,
        id: &RequestId,
    ) -> (Response, Option<&'static Route>) {
        if let Some(answer) = self.polls.as_ref().and_then(|app| flux::poll(app, &request)) {
            return answer;
        }
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(id.clone());
        match self.router.clone().oneshot(request).await {
            Ok(response) => {
                let route = response.extensions().get().copied();
                (response, route)
            }
            Err(never) => match never {},
        }
    }
}

/// The routes of a process.
pub fn router(app: &Arc<App>) -> Routes {
    Routes { polls: Some(app.clone()), router: table(&|route| is_served(app, route)).router(app) }
}

/// The metrics alone, for an address of their own.
pub fn metrics_only(app: &Arc<App>) -> Routes {
    table(&|route| *route == service::METRICS).router(app).into()
}

/// The names that a kind and its filters cannot have.
pub fn reserved() -> fleet::Reserved {
    reserved::reserved_by(&all())
}
