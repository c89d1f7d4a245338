//! The records of decommissioned clusters: what makes their polls be answered with an empty list.

use api::Decommissioned;
use bytes::Bytes;
use fleet::Operation;
use http::HeaderValue;

use super::answer::json_of;
use super::call::{Call, Fleet, Segments};
use super::write::{self, deleted};
use super::{Answer, Payload, Problem, QueryOf, Route, Table, TargetFrom, Verb};
use crate::identity::Action;
use crate::paging;
use crate::problem::Answered;
use crate::query::{Parameter, ValueType};

const AFTER: Parameter = Parameter::new("after", ValueType::Text, "Only what comes after this DNS name.");

static LIST: Route =
    Route::get("/decommissioned", "List decommissioned clusters.", Action::Read, TargetFrom::Fleet)
        .query(QueryOf::Only(&[Parameter::LIMIT, AFTER]))
        .answers(&[Answer(200, Payload::Decommissioned)])
        .problems(&[Problem::UNAVAILABLE]);
static FORGET: Route = Route::write(
    Verb::Delete,
    "/decommissioned/{dns}",
    "Forget a decommissioned cluster: its polls are 404 from then on.",
    TargetFrom::Cluster("dns"),
)
.without_if_match("the record of a decommissioned cluster never changes")
.answers(&[Answer(204, Payload::Nothing)]);

pub(super) fn routes(table: &mut Table<'_>) {
    table.add(&LIST, list);
    table.add(&FORGET, forget);
}

async fn list(call: Call, Fleet(state): Fleet) -> Answered {
    let (limit, after) = (call.query().limit()?, call.query().text(&AFTER)?.map(ToOwned::to_owned));
    let uri = call.uri.clone();
    call.read(move |_| {
        let all = state.tombstones();
        let is_after = |dns: &str| after.as_deref().is_none_or(|after| dns > after);
        let (page, is_last) =
            paging::cut(all.iter().filter(|stored| is_after(stored.doc.dns.as_str())), limit);
        let told = page.iter().map(|stored| Decommissioned {
            dns: stored.doc.dns.as_str().to_owned(),
            id: stored.doc.id.as_str().to_owned(),
            revision: stored.revision.0,
            uid: stored.doc.uid.to_string(),
        });
        let mut response = json_of(&told.collect::<Vec<_>>())?;
        response.headers_mut().insert(paging::X_TOTAL_COUNT, HeaderValue::from(all.len()));
        if let (false, Some(last)) = (is_last, page.last()) {
            let next = [("after", last.doc.dns.as_str())];
            paging::link_next(response.headers_mut(), &uri, &next, &[]);
        }
        Ok(response)
    })
    .await
}

async fn forget(call: Call, Segments(dns): Segments<String>) -> Answered {
    let operation = Operation::Forget { dns: dns.into() };
    Ok(deleted(write::write(&call, vec![operation], &Bytes::new()).await?))
}
