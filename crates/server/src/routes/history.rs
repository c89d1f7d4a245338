//! The audit log: what was changed, by whom, when and why.

use api::{DocumentChange, DocumentVersion, RevisionDetail};
use axum::response::Response;
use fleet::{Canonical, Key, Revision};
use http::Uri;
use ledger::{Edit, Most, Query as Asked};
use serde_json::Value;

use super::answer::json_of;
use super::call::{Call, Fleet, Segments, no_document};
use super::{Answer, Payload, Problem, QueryOf, Route, Table, TargetFrom};
use crate::identity::Action;
use crate::paging::{self, PAGE_BYTES};
use crate::problem::{Answered, Refusal};
use crate::query::{self, Parameter, ValueType};
use crate::wire;

const ACTOR: Parameter =
    Parameter::new("actor", ValueType::Text, "Only what this actor did, such as `file:alice`.");
const KIND: Parameter = Parameter::new("kind", ValueType::Text, "Only what changed a document of this kind.");
const ID: Parameter = Parameter::new("id", ValueType::Text, "Only what changed a document with this id.");
const SINCE: Parameter =
    Parameter::new("since", ValueType::Time, "Only what was done at this time or later.");
const UNTIL: Parameter = Parameter::new("until", ValueType::Time, "Only what was done before this time.");
const BEFORE: Parameter = Parameter::new("before", ValueType::Number, "Only revisions before this one.");
const OFFSET: Parameter = Parameter::new("offset", ValueType::Number, "Skip this many changes.");

static REVISIONS: Route =
    Route::get("/revisions", "List what was changed, newest first.", Action::Read, TargetFrom::Fleet)
        .query(QueryOf::Only(&[ACTOR, KIND, ID, SINCE, UNTIL, BEFORE, Parameter::LIMIT]))
        .answers(&[Answer(200, Payload::Revisions)])
        .problems(&[Problem::UNAVAILABLE]);
static REVISION: Route =
    Route::get("/revisions/{n}", "Read one revision, with its changes.", Action::Read, TargetFrom::Fleet)
        .query(QueryOf::Only(&[Parameter::LIMIT, OFFSET]))
        .answers(&[Answer(200, Payload::RevisionDetail)])
        .problems(&[Problem::MISSING, Problem::UNAVAILABLE]);
static OF_DOCUMENT: Route = Route::get(
    "/{kind}/{id}/history",
    "The revisions of one document, newest first.",
    Action::Read,
    TargetFrom::Document("kind", "id"),
)
.query(QueryOf::Only(&[BEFORE, Parameter::LIMIT]))
.answers(&[Answer(200, Payload::DocumentVersions)])
.problems(&[Problem::MISSING, Problem::UNAVAILABLE]);

pub(super) fn routes(table: &mut Table<'_>) {
    table.add(&REVISIONS, revisions);
    table.add(&REVISION, revision);
    table.add(&OF_DOCUMENT, of_document);
}

/// The next page of something that is told newest first.
fn link_older(uri: &Uri, response: &mut Response, oldest: u64) {
    let before = [("before", &*oldest.to_string())];
    paging::link_next(response.headers_mut(), uri, &before, &[]);
}

/// What one page of changed documents holds.
fn page_of(limit: usize) -> Most {
    Most { items: limit, bytes: PAGE_BYTES }
}

async fn revisions(call: Call, Fleet(_): Fleet) -> Answered {
    let query = call.query();
    let limit = query.limit()?;
    let asked = Asked {
        before: query.revision(&BEFORE)?,
        actor: query.text(&ACTOR)?.map(ToOwned::to_owned),
        space: query.text(&KIND)?.map(wire::space),
        id: query.text(&ID)?.map(ToOwned::to_owned),
        since: query.time(&SINCE)?,
        until: query.time(&UNTIL)?,
        ..Asked::newest(limit + 1)
    };
    let uri = call.uri.clone();
    call.read(move |past| {
        let records = past.history(&asked)?;
        let (page, is_last) = paging::cut(records.iter().map(wire::revision), limit);
        let mut response = json_of(&page)?;
        if let (false, Some(last)) = (is_last, page.last()) {
            link_older(&uri, &mut response, last.revision);
        }
        Ok(response)
    })
    .await
}

async fn revision(call: Call, Fleet(_): Fleet, Segments(n): Segments<String>) -> Answered {
    let (limit, offset) = (call.query().limit()?, call.query().offset(&OFFSET)?);
    let missing = move |n: &str| Refusal::missing(format!("there is no revision `{n}`"));
    let revision = Revision(query::digits(&n).ok_or_else(|| missing(&n))?);
    let uri = call.uri.clone();
    call.read(move |past| {
        let found = past.history(&Asked { revision: Some(revision), ..Asked::newest(1) })?;
        let record = found.first().ok_or_else(|| missing(&n))?;
        let edits = past.changes(revision, offset, page_of(limit))?;
        let told = offset.saturating_add(edits.len());
        let changes = edits.iter().map(document_change).collect();
        let detail = RevisionDetail { revision: wire::revision(record), changes };
        let mut response = json_of(&detail)?;
        if told < record.header.changes.count as usize {
            let offset = [("offset", &*told.to_string())];
            paging::link_next(response.headers_mut(), &uri, &offset, &[]);
        }
        Ok(response)
    })
    .await
}

/// A change as the audit log shows it. Of an entry that this version does not understand, only the key.
fn document_change(Edit { before, change }: &Edit) -> DocumentChange {
    let shown = |body: Option<&Canonical>| body.filter(|_| change.key().shows_body()).map(value);
    DocumentChange {
        document: wire::key(change.key()),
        before: shown(before.as_ref()),
        after: shown(change.after()),
    }
}

fn value(body: &Canonical) -> Value {
    wire::json(body.as_str())
}

async fn of_document(call: Call, Segments((kind, id)): Segments<(String, String)>) -> Answered {
    let (limit, before_revision) = (call.query().limit()?, call.query().revision(&BEFORE)?);
    let kind = call.kind(&kind)?;
    let key = Key::document(kind.name(), &*id);
    let uri = call.uri.clone();
    call.read(move |past| {
        let versions = past.versions(&key, before_revision, page_of(limit))?;
        let Some(oldest) = versions.items.last() else {
            return if before_revision.is_some() {
                json_of::<[DocumentVersion; 0]>(&[])
            } else {
                Err(no_document(&kind, &id))
            };
        };
        let oldest = oldest.header.at.revision.0;
        let mut response = json_of(&versions.items.iter().map(document_version).collect::<Vec<_>>())?;
        if versions.more {
            link_older(&uri, &mut response, oldest);
        }
        Ok(response)
    })
    .await
}

fn document_version(version: &ledger::Version) -> DocumentVersion {
    let origin = &version.header.origin;
    DocumentVersion {
        revision: version.header.at.revision.0,
        time: wire::time(origin.time),
        actor: origin.actor.to_string(),
        reason: origin.reason.as_deref().map(ToOwned::to_owned),
        request_id: origin.request.as_deref().map(ToOwned::to_owned),
        before: version.before.as_ref().map(value),
        after: version.after.as_ref().map(value),
    }
}
