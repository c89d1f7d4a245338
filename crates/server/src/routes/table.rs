//! The table of routes: each description with its handler.

use std::sync::Arc;

use api::ProblemName;
use axum::Router;
use axum::handler::Handler;
use axum::routing::on;
use http::StatusCode;

use super::guard::RouteGuard;
use super::{App, Route};
use crate::problem::Refusal;

/// Routes as they are added, of which a process has some.
pub(super) struct Table<'a> {
    is_wanted: &'a dyn Fn(&Route) -> bool,
    router: Router<Arc<App>>,
    routes: Vec<&'static Route>,
}

impl<'a> Table<'a> {
    pub(super) fn of(is_wanted: &'a dyn Fn(&Route) -> bool) -> Self {
        Self { is_wanted, router: Router::new(), routes: Vec::new() }
    }

    pub(super) fn add<H, T>(&mut self, route: &'static Route, handler: H)
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        if !(self.is_wanted)(route) {
            return;
        }
        self.routes.push(route);
        let guarded = on(route.method.filter(), RouteGuard { route, handler });
        self.router = std::mem::take(&mut self.router).route(route.path, guarded);
    }

    /// The descriptions.
    pub(super) fn routes(self) -> Vec<&'static Route> {
        self.routes
    }

    /// The router, with answers to what is no route.
    pub(super) fn router(self, app: &Arc<App>) -> Router {
        self.router
            .fallback(async || Refusal::missing(api::NO_SUCH_PATH))
            .method_not_allowed_fallback(async || {
                Refusal::new(
                    StatusCode::METHOD_NOT_ALLOWED,
                    ProblemName::Invalid,
                    "this path does not take that method; the `Allow` header has those that it takes",
                )
            })
            .with_state(app.clone())
    }
}
