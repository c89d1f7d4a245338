//! What clusters poll. Whatever goes wrong here must not look like an empty list: a 200 is made from [`fleet::Inputs`] and from
//! [`fleet::ClusterList`] only, and neither can be made from an error.

use axum::response::{IntoResponse, Response};
use fleet::{State, list_clusters, render};
use http::{HeaderValue, Method, Request, header};

use super::answer::json_body;
use super::call::{Call, Fleet, Segments};
use super::guard;
use super::{Answer, App, Payload, Problem, QueryOf, Route, Table, TargetFrom};
use crate::give_way::handing_over;
use crate::identity::Action;
use crate::problem::{Answered, Refusal};
use crate::query::{Parameter, ValueType};

const ENVIRONMENT: Parameter =
    Parameter::new("environment", ValueType::Text, "Only clusters of this environment.");
const ALLOW_EMPTY: Parameter =
    Parameter::new("allow_empty", ValueType::Switch, "`true`: no cluster is an empty list, not a 404.");

/// A list of more clusters takes longer than a poll.
const FEW: usize = 200;

static CLUSTERS: Route = Route::get(
    "/api/v2/flux/clusters",
    "All clusters, as inputs of a ResourceSet.",
    Action::ListClusters,
    TargetFrom::Fleet,
)
.in_both_modes()
.query(QueryOf::Only(&[ENVIRONMENT, ALLOW_EMPTY]))
.answers(&[Answer(200, Payload::ClusterList)])
.problems(&[Problem::MISSING, Problem::TOO_LARGE, Problem::UNAVAILABLE]);

static INPUTS: Route = Route::get(
    "/api/v2/flux/clusters/{dns}/{kind}",
    "The inputs of one cluster: what its Flux polls.",
    Action::Poll,
    TargetFrom::Cluster("dns"),
)
.in_both_modes()
.query(QueryOf::Ignored)
.answers(&[Answer(200, Payload::Inputs)])
.problems(&[Problem::MISSING, Problem::UNAVAILABLE]);

pub(super) fn routes(table: &mut Table<'_>) {
    table.add(&CLUSTERS, clusters);
    table.add(&INPUTS, inputs);
}

/// Answers a poll without the router, if the request is one and its path is spelt as clusters spell it: nine requests of ten are. Anything
/// else is for the router, and gets the same answer there.
pub(super) fn poll<B>(app: &App, request: &Request<B>) -> Option<(Response, Option<&'static Route>)> {
    let (prefix, _) = INPUTS.path.split_once('{')?;
    let (dns, kind) = request.uri().path().strip_prefix(prefix)?.split_once('/')?;
    let is_plain = |segment: &str| !segment.is_empty() && !segment.contains(['/', '%']);
    if *request.method() != Method::GET || !is_plain(dns) || !is_plain(kind) {
        return None;
    }
    let admitted = guard::admit_poll(&INPUTS, app, request.headers(), dns);
    let answered = admitted.and_then(|()| answer_poll(&Fleet::now(app)?.0, dns, kind));
    Some((answered.unwrap_or_else(IntoResponse::into_response), Some(&INPUTS)))
}

async fn inputs(Fleet(state): Fleet, Segments((dns, kind)): Segments<(String, String)>) -> Answered {
    answer_poll(&state, &dns, &kind)
}

fn answer_poll(state: &State, dns: &str, kind: &str) -> Answered {
    match render(state, dns, kind) {
        fleet::Answer::Inputs(inputs) => {
            let etag = inputs.etag();
            Ok(polled(&etag, inputs.into_body()))
        }
        fleet::Answer::UnknownCluster => Err(Refusal::missing("no cluster with this DNS name is known here")),
        fleet::Answer::UnknownKind => Err(Refusal::missing("there is no such kind here")),
        fleet::Answer::Fault(fault) => Err(unanswerable(&fault.to_string())),
    }
}

/// The cluster is known and its answer cannot be made: nothing may be concluded from that.
pub(super) fn unanswerable(fault: &str) -> Refusal {
    Refusal::unavailable("the answer cannot be given").with_log(fault)
}

/// Whoever acts on this list makes and deletes clusters, so it is never cut, and never empty by accident. Its parameters are
/// strict, unlike those of a poll: a misspelt filter must not look like the whole fleet.
async fn clusters(call: Call, Fleet(state): Fleet) -> Answered {
    let query = call.query();
    let allow_empty = query.switch(&ALLOW_EMPTY)?;
    let environment = query.text(&ENVIRONMENT)?;
    let list = handing_over(state.cluster_count() > FEW, || list_clusters(&state, environment, allow_empty))?;
    Ok(polled(&list.etag(), list.body().to_vec()))
}

pub(super) fn polled(etag: &str, body: Vec<u8>) -> Response {
    let mut response = json_body(body);
    if let Ok(etag) = HeaderValue::from_str(etag) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    response
}
