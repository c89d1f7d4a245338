//! The audit log: what was changed, by whom, when and why.

use api::{DocumentChange, DocumentVersion, RevisionDetail};
use axum::response::Response;
use axum::routing::MethodFilter;
use fleet::{Canonical, Id, Key, Revision};
use ledger::Query as Asked;
use serde_json::Value;

use super::Table;
use super::answer::json_of;
use super::call::{Call, Segments, no_document};
use crate::identity::Access;
use crate::paging;
use crate::problem::{Answered, Refusal};
use crate::query;
use crate::wire;

pub(super) fn routes(table: &mut Table) {
    table.add(MethodFilter::GET, "/revisions", Access::Read, revisions);
    table.add(MethodFilter::GET, "/revisions/{n}", Access::Read, revision);
    table.add(MethodFilter::GET, "/{kind}/{id}/history", Access::Read, of_document);
}

/// The next page of something that is told newest first.
fn link_older(call: &Call, response: &mut Response, oldest: u64) {
    let before = [("before", &*oldest.to_string())];
    paging::link_next(response.headers_mut(), &call.uri, &before, &[]);
}

async fn revisions(call: Call) -> Answered {
    let query = call.query(&["actor", "kind", "id", "since", "until", "before", "limit"])?;
    let limit = query.limit()?;
    let asked = Asked {
        before: query.revision("before")?,
        actor: query.get("actor").map(ToOwned::to_owned),
        kind: query.get("kind").map(Into::into),
        id: query.get("id").map(Id::from),
        since: query.time("since")?,
        until: query.time("until")?,
        ..Asked::newest(limit + 1)
    };
    let records = call.app.ledger.history(asked).await?;
    let (page, is_last) = paging::cut(records.iter().map(wire::revision), limit);
    let mut response = json_of(&page)?;
    if let (false, Some(last)) = (is_last, page.last()) {
        link_older(&call, &mut response, last.revision);
    }
    Ok(response)
}

async fn revision(call: Call, Segments(n): Segments<String>) -> Answered {
    let query = call.query(&["limit", "offset"])?;
    let (limit, offset) = (query.limit()?, query.offset("offset")?);
    let missing = || Refusal::missing(format!("there is no revision `{n}`"));
    let revision = Revision(query::digits(&n).ok_or_else(missing)?);
    let found = call.app.ledger.history(Asked { revision: Some(revision), ..Asked::newest(1) }).await?;
    let record = found.first().ok_or_else(missing)?;
    let mut changes = Vec::new();
    for change in call.app.ledger.changes(revision, offset, limit).await? {
        changes.push(DocumentChange {
            document: wire::key(change.key()),
            before: before(&call, change.key(), revision).await?,
            after: change.after().map(value),
        });
    }
    let told = offset.saturating_add(changes.len());
    let detail = RevisionDetail { revision: wire::revision(record), changes };
    let mut response = json_of(&detail)?;
    if told < record.changes {
        let offset = [("offset", &*told.to_string())];
        paging::link_next(response.headers_mut(), &call.uri, &offset, &[]);
    }
    Ok(response)
}

/// What a document was before a revision.
async fn before(call: &Call, key: &Key, revision: Revision) -> Answered<Option<Value>> {
    let Some(before) = revision.0.checked_sub(1) else { return Ok(None) };
    let body = call.app.ledger.document_at(key.clone(), Revision(before)).await?;
    Ok(body.as_ref().map(value))
}

fn value(body: &Canonical) -> Value {
    serde_json::from_str(body.as_str()).unwrap_or(Value::Null)
}

async fn of_document(call: Call, Segments((kind, id)): Segments<(String, String)>) -> Answered {
    let query = call.query(&["before", "limit"])?;
    let limit = query.limit()?;
    let kind = call.kind(&kind)?;
    let key = Key::new(kind.name().as_str(), &id);
    let asked = Asked {
        before: query.revision("before")?,
        kind: Some(key.kind.clone()),
        id: Some(key.id.clone()),
        ..Asked::newest(limit + 1)
    };
    let records = call.app.ledger.history(asked).await?;
    if records.is_empty() && query.get("before").is_none() {
        return Err(no_document(&kind, &id));
    }
    let (records, is_last) = paging::cut(records, limit);
    let mut versions = Vec::new();
    for record in &records {
        let after = call.app.ledger.document_at(key.clone(), record.at.revision).await?;
        let api::Revision { revision, time, actor, reason, request_id, .. } = wire::revision(record);
        let before = before(&call, &key, record.at.revision).await?;
        let after = after.as_ref().map(value);
        versions.push(DocumentVersion { revision, time, actor, reason, request_id, before, after });
    }
    let mut response = json_of(&versions)?;
    if let (false, Some(last)) = (is_last, versions.last()) {
        link_older(&call, &mut response, last.revision);
    }
    Ok(response)
}
