//! The routes. One table says which there are, who may use each, and which mode has it; a route cannot be added without saying so.

mod answer;
mod batch;
mod call;
mod curl;
mod decommissioned;
mod documents;
mod flux;
mod history;
mod kinds;
mod references;
mod service;
mod whoami;
mod write;

use std::sync::Arc;

use api::ProblemName;
use axum::Router;
use axum::extract::{Request, State as Shared};
use axum::handler::Handler;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use fleet::Policy;
use http::{HeaderValue, Method, StatusCode, header};
use ledger::Ledger;

use crate::config::Mode;
use crate::identity::{Access, Denied, Identity, Principal};
use crate::metrics::Metrics;
use crate::problem::{Answered, Refusal};
use crate::replica::Replica;
use crate::writer::Writer;

/// What the routes work with.
pub struct App {
    /// What this process does.
    pub mode: Mode,
    /// The fleet.
    pub replica: Arc<Replica>,
    /// The past.
    pub ledger: Arc<dyn Ledger>,
    /// Whoever makes changes; in `crud` mode only.
    pub writer: Option<Writer>,
    /// Who may come in.
    pub identity: Arc<Identity>,
    /// The guard's numbers.
    pub policy: Policy,
    /// What is counted.
    pub metrics: Metrics,
    /// Whether the metrics are served here, and not on an address of their own.
    pub serves_metrics: bool,
}

/// A route, and who may use it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path's template.
    pub path: &'static str,
    /// What one must be allowed to.
    pub access: Access,
}

/// The routes of a process, and the list of them.
pub fn routes(app: &Arc<App>) -> (Router, Vec<Route>) {
    let mut table = Table::new(app);
    service::routes(&mut table);
    flux::routes(&mut table);
    whoami::routes(&mut table);
    if app.mode == Mode::Crud {
        documents::routes(&mut table);
        references::routes(&mut table);
        batch::routes(&mut table);
        history::routes(&mut table);
        decommissioned::routes(&mut table);
        kinds::routes(&mut table);
    }
    table.finish()
}

/// The metrics alone, for an address of their own.
pub fn metrics_only(app: &Arc<App>) -> Router {
    let mut table = Table::new(app);
    service::metrics_route(&mut table);
    table.finish().0
}

struct Table {
    app: Arc<App>,
    router: Router<Arc<App>>,
    routes: Vec<Route>,
}

impl Table {
    fn new(app: &Arc<App>) -> Self {
        Self { app: app.clone(), router: Router::new(), routes: Vec::new() }
    }

    fn add<H, T>(&mut self, method: MethodFilter, path: &'static str, access: Access, handler: H)
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        let name = match method {
            MethodFilter::POST => Method::POST,
            MethodFilter::PUT => Method::PUT,
            MethodFilter::PATCH => Method::PATCH,
            MethodFilter::DELETE => Method::DELETE,
            _ => Method::GET,
        };
        self.routes.push(Route { method: name, path, access });
        let door = Door { app: self.app.clone(), access, path };
        let route = on(method, handler).route_layer(middleware::from_fn_with_state(door, enter));
        self.router = std::mem::take(&mut self.router).route(path, route);
    }

    /// With answers to what is no route.
    fn finish(self) -> (Router, Vec<Route>) {
        let router = self
            .router
            .fallback(async || Refusal::missing(api::NO_SUCH_PATH))
            .method_not_allowed_fallback(async || {
                Refusal::new(
                    StatusCode::METHOD_NOT_ALLOWED,
                    ProblemName::Invalid,
                    "this path does not take that method; the `Allow` header has those that it takes",
                )
            })
            .with_state(self.app);
        (router, self.routes)
    }
}

/// The template of the route that answered, for the metrics.
#[derive(Clone, Copy)]
pub struct Template(pub &'static str);

#[derive(Clone)]
struct Door {
    app: Arc<App>,
    access: Access,
    path: &'static str,
}

/// Lets in whoever may use the route.
async fn enter(Shared(door): Shared<Door>, mut request: Request, next: Next) -> Response {
    let mut response = match admit(&door, &request) {
        Ok(principal) => {
            request.extensions_mut().insert(principal);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    response.extensions_mut().insert(Template(door.path));
    response
}

fn admit(door: &Door, request: &Request) -> Answered<Option<Principal>> {
    if door.access == Access::Open {
        return Ok(None);
    }
    let mut credentials = request.headers().get_all(header::AUTHORIZATION).iter();
    let credential = credentials.next();
    if credentials.next().is_some() {
        return Err(unauthorised(Denied::Twice));
    }
    let principal = door.app.identity.authenticate(credential).map_err(unauthorised)?;
    if !principal.role.may(door.access) {
        let detail = format!("a credential with the role `{}` may not do this", principal.role.as_str());
        return Err(Refusal::new(StatusCode::FORBIDDEN, ProblemName::Forbidden, detail));
    }
    Ok(Some(principal))
}

fn unauthorised(denied: Denied) -> Refusal {
    let detail = match denied {
        Denied::NoCredential => {
            "send a token as `Authorization: Bearer <token>`, or as the password of basic authentication"
        }
        Denied::Unreadable => {
            "the `Authorization` header is neither `Bearer <token>` nor `Basic <base64 of user:token>`"
        }
        Denied::Twice => "there are two `Authorization` headers; send one",
        Denied::Unknown => "this token is not known here",
    };
    Refusal::new(StatusCode::UNAUTHORIZED, ProblemName::Unauthorised, detail).with_header(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static("Bearer, Basic realm=\"flux-resourceset\""),
    )
}
