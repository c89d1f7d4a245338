//! What clusters poll. Whatever goes wrong here must not look like an empty list: a 200 is made from [`fleet::Inputs`] and from
//! [`fleet::ClusterList`] only, and neither can be made from an error.

use std::sync::Arc;

use api::ProblemName;
use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::MethodFilter;
use fleet::{Answer, NoClusterList, list_clusters, render};
use http::{HeaderValue, StatusCode, Uri, header};

use super::answer::json_body;
use super::call::Segments;
use super::{App, Table};
use crate::identity::Access;
use crate::problem::{Answered, Refusal};
use crate::query::Query;

pub(super) fn routes(table: &mut Table) {
    table.add(MethodFilter::GET, "/api/v2/flux/clusters", Access::ClusterList, clusters);
    table.add(MethodFilter::GET, "/api/v2/flux/clusters/{dns}/{kind}", Access::Inputs, inputs);
}

async fn inputs(
    Shared(app): Shared<Arc<App>>,
    Segments((dns, kind)): Segments<(String, String)>,
) -> Answered {
    let state = app.replica.serving()?;
    match render(&state, &dns, &kind) {
        Answer::Inputs(inputs) => {
            let etag = inputs.etag();
            Ok(polled(&etag, inputs.into_body()))
        }
        Answer::UnknownCluster => Err(Refusal::missing("no cluster with this DNS name is known here")),
        Answer::UnknownKind => Err(Refusal::missing("there is no such kind here")),
        Answer::Fault(fault) => Err(unanswerable(&fault.to_string())),
    }
}

/// The cluster is known and its answer cannot be made: nothing may be concluded from that.
pub(super) fn unanswerable(fault: &str) -> Refusal {
    Refusal::unavailable("the answer cannot be given").with_log(fault)
}

/// Whoever acts on this list makes and deletes clusters, so it is never cut, and never empty by accident. Its parameters are
/// strict, unlike those of a poll: a misspelt filter must not look like the whole fleet.
async fn clusters(Shared(app): Shared<Arc<App>>, uri: Uri) -> Answered {
    let query = Query::read(uri.query(), &["environment", "allow_empty"])?;
    let allow_empty = query.switch("allow_empty")?;
    let state = app.replica.serving()?;
    match list_clusters(&state, query.get("environment"), allow_empty) {
        Ok(list) => Ok(polled(&list.etag(), list.body().to_vec())),
        Err(none) => Err(match none {
            NoClusterList::UnknownEnvironment { .. } => Refusal::bad_request(none.to_string()),
            NoClusterList::NoMatch => Refusal::missing(none.to_string()),
            NoClusterList::TooLarge { .. } => {
                Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, ProblemName::TooLarge, none.to_string())
            }
        }),
    }
}

pub(super) fn polled(etag: &str, body: Vec<u8>) -> Response {
    let mut response = json_body(body);
    if let Ok(etag) = HeaderValue::from_str(etag) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    response
}
