//! The records of decommissioned clusters: what makes their polls be answered with an empty list.

use api::Decommissioned;
use axum::routing::MethodFilter;
use fleet::Operation;
use http::HeaderValue;

use super::Table;
use super::answer::json_of;
use super::call::{Call, Content, Segments};
use super::write::{self, DRY_RUN, deleted, no_body};
use crate::identity::Access;
use crate::paging;
use crate::problem::Answered;

pub(super) fn routes(table: &mut Table) {
    table.add(MethodFilter::GET, "/decommissioned", Access::Read, list);
    table.add(MethodFilter::DELETE, "/decommissioned/{dns}", Access::Write, forget);
}

async fn list(call: Call) -> Answered {
    let query = call.query(&["limit", "after"])?;
    let (limit, after) = (query.limit()?, query.get("after"));
    let state = call.app.replica.serving()?;
    let all = state.tombstones();
    let rest = all.iter().filter(|stored| after.is_none_or(|after| stored.doc.dns.as_str() > after));
    let (page, is_last) = paging::cut(rest, limit);
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
        paging::link_next(response.headers_mut(), &call.uri, &next, &[]);
    }
    Ok(response)
}

async fn forget(call: Call, Segments(dns): Segments<String>, Content(body): Content) -> Answered {
    let query = call.query(&[DRY_RUN])?;
    write::expects_nothing(&call, "the record of a decommissioned cluster never changes")?;
    no_body(&body)?;
    let operation = Operation::Forget { dns: dns.into() };
    Ok(deleted(write::write(&call, &query, vec![operation], &body).await?))
}
