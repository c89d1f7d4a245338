//! Documents: list, create, read, replace, change, delete, and who uses them. One set of routes for every kind.

use std::fmt::Write as _;

use bytes::Bytes;
use fleet::{CLUSTERS, Key, Kind, Listing, Operation, QueryParameter, Selector, Shape, Target};
use http::{HeaderValue, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::answer::{document, json_body, json_of};
use super::call::{Call, Content, Fleet, Segments, kind_of, no_document};
use super::write::{self, Outcome, deleted};
use super::{Answer, DRY_RUN, Payload, Problem, QueryOf, RequestBody, Route, Table, TargetFrom, Verb, flux};
use crate::identity::Action;
use crate::paging::{self, PAGE_BYTES};
use crate::problem::{Answered, Refusal};
use crate::query::{Parameter, ValueType};

const SELECTOR: Parameter =
    Parameter::new("selector", ValueType::Text, "Only documents that this selector matches.");
const OFFSET: Parameter =
    Parameter::new("offset", ValueType::Number, "Skip this many of the documents that match.");
const AFTER: Parameter = Parameter::new("after", ValueType::Text, "Only what comes after this id.");
const REVISIONS: Parameter =
    Parameter::new("revisions", ValueType::Switch, "`true`: each document comes with its revision.");
const REPLACE_DECOMMISSIONED: Parameter = Parameter::new(
    "replace_decommissioned",
    ValueType::Switch,
    "`true`: a new cluster may take the DNS name of a decommissioned one.",
);

const KIND: TargetFrom = TargetFrom::Kind("kind");
const DOCUMENT: TargetFrom = TargetFrom::Document("kind", "id");

static LIST: Route = Route::get("/{kind}", "List the documents of a kind.", Action::Read, KIND)
    .query(QueryOf::WithFilters(&[SELECTOR, Parameter::LIMIT, OFFSET, AFTER, REVISIONS]))
    .answers(&[Answer(200, Payload::Documents)])
    .problems(&[Problem::MISSING, Problem::UNAVAILABLE]);
static CREATE: Route = Route::write(Verb::Post, "/{kind}", "Create a document.", KIND)
    .query(QueryOf::Only(&[DRY_RUN, super::PLAN_AFTER, REPLACE_DECOMMISSIONED]))
    .without_if_match("what is created has no revision yet")
    .body(RequestBody::Json("the document"))
    .answers(&[Answer(201, Payload::Document)])
    .problems(&[Problem::EXISTS]);
static READ: Route = Route::get("/{kind}/{id}", "Read a document.", Action::Read, DOCUMENT)
    .answers(&[Answer(200, Payload::Document)])
    .problems(&[Problem::MISSING, Problem::UNAVAILABLE]);
static REPLACE: Route = Route::write(Verb::Put, "/{kind}/{id}", "Replace a document.", DOCUMENT)
    .body(RequestBody::Json("the document"))
    .answers(&[Answer(200, Payload::Document)]);
static CHANGE: Route = Route::write(Verb::Patch, "/{kind}/{id}", "Change a part of a document.", DOCUMENT)
    .body(RequestBody::Patch("of the document"))
    .answers(&[Answer(200, Payload::Document)]);
static DELETE: Route =
    Route::write(Verb::Delete, "/{kind}/{id}", "Delete a document, or decommission a cluster.", DOCUMENT)
        .answers(&[Answer(204, Payload::Nothing)])
        .problems(&[Problem::IN_USE]);
static USERS: Route =
    Route::get("/{kind}/{id}/users", "The clusters that refer to a document.", Action::Read, DOCUMENT)
        .query(QueryOf::Only(&[Parameter::LIMIT, AFTER]))
        .answers(&[Answer(200, Payload::Ids)])
        .problems(&[Problem::MISSING, Problem::UNAVAILABLE]);
static INPUTS: Route = Route::get(
    "/clusters/{id}/inputs/{kind}",
    "The inputs that a cluster gets.",
    Action::Read,
    TargetFrom::DocumentOf(CLUSTERS, "id"),
)
.answers(&[Answer(200, Payload::Inputs)])
.problems(&[Problem::MISSING, Problem::UNAVAILABLE]);

pub(super) fn routes(table: &mut Table<'_>) {
    table.add(&LIST, list);
    table.add(&CREATE, create);
    table.add(&READ, read);
    table.add(&REPLACE, replace);
    table.add(&CHANGE, change);
    table.add(&DELETE, delete);
    table.add(&USERS, users);
    table.add(&INPUTS, inputs);
}

/// The filters of a kind. One with the name of a parameter that every list has is none: the ledger may hold a kind from before the
/// parameter existed.
fn filters(kind: &Kind) -> impl Iterator<Item = &QueryParameter> {
    let own = LIST.query.parameters();
    kind.query_parameters().iter().filter(|filter| own.iter().all(|own| *own.name != *filter.name))
}

async fn list(call: Call, Fleet(state): Fleet, Segments(kind): Segments<String>) -> Answered {
    let kind = kind_of(&state, &kind)?;
    let query = call.query();
    let selector = query.text(&SELECTOR)?.map(Selector::parse).transpose();
    let selector = selector.map_err(|bad| Refusal::bad_request(format!("`selector`: {bad}")))?;
    let (limit, offset) = (query.limit()?, query.offset(&OFFSET)?);
    let with_revisions = query.switch(&REVISIONS)?;
    let after = query.text(&AFTER)?.map(ToOwned::to_owned);
    let mut wanted: Vec<(String, String)> = Vec::new();
    for filter in filters(&kind) {
        if let Some(value) = query.filter(&filter.name) {
            filter.check(value).map_err(|right| {
                Refusal::bad_request(format!("`{}` is `{value}`; it must be {right}", filter.name))
            })?;
            wanted.push((filter.name.to_string(), value.to_owned()));
        }
    }
    let uri = call.uri.clone();
    call.read(move |_| {
        let listing = Listing {
            kind: &kind,
            filters: wanted.iter().map(|(name, value)| (&**name, &**value)).collect(),
            selector: selector.as_ref(),
            after: after.as_deref(),
            offset,
            limit,
        };
        let page = state.list(&listing);
        let mut text = String::from("[");
        let mut last = None;
        for id in &page.ids {
            if text.len() > PAGE_BYTES {
                break;
            }
            if let Some((body, revision)) = state.body(kind.name().as_str(), id.as_str()) {
                text.push_str(if text.len() > 1 { "," } else { "" });
                if with_revisions {
                    // An `api::Revisioned`, around a body that is text already.
                    let _ = write!(text, "{{\"revision\":{revision},\"document\":{}}}", body.as_str());
                } else {
                    text.push_str(body.as_str());
                }
            }
            last = Some(*id);
        }
        text.push(']');
        let is_cut = last != page.ids.last().copied();
        let mut response = json_body(text);
        response.headers_mut().insert(paging::X_TOTAL_COUNT, HeaderValue::from(page.total));
        if let Some(last) = last.filter(|_| page.more || is_cut) {
            let after = [("after", last.as_str())];
            paging::link_next(response.headers_mut(), &uri, &after, &["offset"]);
        }
        Ok(response)
    })
    .await
}

async fn create(call: Call, Segments(kind): Segments<String>, body: Content) -> Answered {
    let kind = call.kind(&kind)?;
    let replace_decommissioned = call.query().switch(&REPLACE_DECOMMISSIONED)?;
    let value = body.json(&call)?;
    let id = value.get("id").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
    let operation =
        Operation::Create { kind: kind.name().as_str().into(), body: value, replace_decommissioned };
    let outcome = write::write(&call, vec![operation], &body.0).await?;
    let is_made = matches!(outcome, Outcome::Made(_));
    let mut response = write::answered(outcome, StatusCode::CREATED, kind.name().as_str(), &id)?;
    let location = format!("/{}/{}", kind.name(), utf8_percent_encode(&id, NON_ALPHANUMERIC));
    if let (true, Ok(location)) = (is_made, HeaderValue::from_str(&location.replace("%2D", "-"))) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

async fn read(Fleet(state): Fleet, Segments((kind, id)): Segments<(String, String)>) -> Answered {
    let kind = kind_of(&state, &kind)?;
    document(StatusCode::OK, &state, kind.name().as_str(), &id).ok_or_else(|| no_document(&kind, &id))
}

async fn replace(call: Call, Segments((kind, id)): Segments<(String, String)>, body: Content) -> Answered {
    let kind = call.kind(&kind)?;
    let operation = Operation::Put {
        kind: kind.name().as_str().into(),
        id: (&*id).into(),
        body: body.json(&call)?,
        expect: write::expected(&call)?,
    };
    let outcome = write::write(&call, vec![operation], &body.0).await?;
    write::answered(outcome, StatusCode::OK, kind.name().as_str(), &id)
}

async fn change(call: Call, Segments((kind, id)): Segments<(String, String)>, body: Content) -> Answered {
    let kind = call.kind(&kind)?;
    let operation = Operation::Patch {
        kind: kind.name().as_str().into(),
        target: Target::One { id: (&*id).into(), expect: write::expected(&call)? },
        patch: body.patch(&call)?,
    };
    let outcome = write::write(&call, vec![operation], &body.0).await?;
    write::answered(outcome, StatusCode::OK, kind.name().as_str(), &id)
}

async fn delete(call: Call, Segments((kind, id)): Segments<(String, String)>) -> Answered {
    let kind = call.kind(&kind)?;
    let operation = Operation::Delete {
        kind: kind.name().as_str().into(),
        target: Target::One { id: (&*id).into(), expect: write::expected(&call)? },
    };
    Ok(deleted(write::write(&call, vec![operation], &Bytes::new()).await?))
}

async fn users(
    call: Call,
    Fleet(state): Fleet,
    Segments((kind, id)): Segments<(String, String)>,
) -> Answered {
    let limit = call.query().limit()?;
    let kind = kind_of(&state, &kind)?;
    if kind.shape() == Shape::Cluster {
        return Err(Refusal::missing("nothing refers to clusters"));
    }
    if state.revision_of(&Key::document(kind.name(), &*id)).is_none() {
        return Err(no_document(&kind, &id));
    }
    let after = call.query().text(&AFTER)?.map(ToOwned::to_owned);
    let uri = call.uri.clone();
    call.read(move |_| {
        let users: Vec<&str> =
            state.users(kind.name().as_str(), &id).map(|cluster| cluster.doc.id.as_str()).collect();
        let rest = users.iter().filter(|id| after.as_deref().is_none_or(|after| **id > after));
        let (page, is_last) = paging::cut(rest, limit);
        let mut response = json_of(&page)?;
        response.headers_mut().insert(paging::X_TOTAL_COUNT, HeaderValue::from(users.len()));
        if let (false, Some(last)) = (is_last, page.last()) {
            let after = [("after", **last)];
            paging::link_next(response.headers_mut(), &uri, &after, &[]);
        }
        Ok(response)
    })
    .await
}

/// What a live cluster gets, for people who look at it.
async fn inputs(Fleet(state): Fleet, Segments((id, kind)): Segments<(String, String)>) -> Answered {
    let kind = kind_of(&state, &kind)?;
    let Some(cluster) = state.cluster(&id) else {
        return Err(Refusal::missing(format!("there is no cluster `{id}`")));
    };
    match fleet::render(&state, cluster.doc.dns.as_str(), kind.path()) {
        fleet::Answer::Inputs(inputs) => Ok(flux::polled(&inputs.etag(), inputs.into_body())),
        fleet::Answer::UnknownKind => {
            Err(Refusal::missing(format!("clusters have no inputs of the kind `{}`", kind.name())))
        }
        fleet::Answer::UnknownCluster => Err(Refusal::internal("a live cluster is not served")),
        fleet::Answer::Fault(fault) => Err(flux::unanswerable(&fault.to_string())),
    }
}
