//! Documents: list, create, read, replace, change, delete, and who uses them. One set of routes for every kind.

use std::fmt::Write as _;

use axum::routing::MethodFilter;
use fleet::{CLUSTERS, Key, Kind, Listing, Operation, ParameterType, QueryParameter, Selector, Target};
use http::{HeaderValue, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::answer::{document, json_body, json_of};
use super::call::{Call, Content, Segments, kind_of, no_document};
use super::write::{self, DRY_RUN, Outcome, deleted, no_body};
use super::{Table, flux};
use crate::identity::Access;
use crate::paging;
use crate::problem::{Answered, Refusal};

pub(super) fn routes(table: &mut Table) {
    table.add(MethodFilter::GET, "/{kind}", Access::Read, list);
    table.add(MethodFilter::POST, "/{kind}", Access::Write, create);
    table.add(MethodFilter::GET, "/{kind}/{id}", Access::Read, read);
    table.add(MethodFilter::PUT, "/{kind}/{id}", Access::Write, replace);
    table.add(MethodFilter::PATCH, "/{kind}/{id}", Access::Write, change);
    table.add(MethodFilter::DELETE, "/{kind}/{id}", Access::Write, delete);
    table.add(MethodFilter::GET, "/{kind}/{id}/users", Access::Read, users);
    table.add(MethodFilter::GET, "/clusters/{id}/inputs/{kind}", Access::Read, inputs);
}

/// A page ends early when it is larger than this: a thousand large clusters would be a gigabyte.
const PAGE_BYTES: usize = 8 * 1024 * 1024;

/// The query parameters of a list beside those of its kind.
const LIST: [&str; 5] = ["selector", "limit", "offset", "after", "revisions"];

async fn list(call: Call, Segments(kind): Segments<String>) -> Answered {
    let state = call.app.replica.serving()?;
    let kind = kind_of(&state, &kind)?;
    let own: Vec<&str> = kind.query_parameters().iter().map(|parameter| &*parameter.name).collect();
    let query = call.query(&[&own[..], &LIST].concat())?;
    let selector = query.get("selector").map(Selector::parse).transpose();
    let selector = selector.map_err(|bad| Refusal::bad_request(format!("`selector`: {bad}")))?;
    let (limit, offset) = (query.limit()?, query.offset("offset")?);
    let with_revisions = query.switch("revisions")?;
    for parameter in kind.query_parameters() {
        if let Some(value) = query.get(&parameter.name) {
            possible(&kind, parameter, value)?;
        }
    }
    let page = tokio::task::spawn_blocking(move || {
        let own = kind.query_parameters().iter().map(|parameter| &*parameter.name);
        let listing = Listing {
            kind: &kind,
            filters: own.filter_map(|name| Some((name, query.get(name)?))).collect(),
            selector: selector.as_ref(),
            after: query.get("after"),
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
        (text, page.total, last.filter(|_| page.more || is_cut).map(ToString::to_string))
    });
    let (body, total, next) =
        page.await.map_err(|error| Refusal::internal(format!("a list has panicked: {error}")))?;
    let mut response = json_body(body);
    response.headers_mut().insert(paging::X_TOTAL_COUNT, HeaderValue::from(total));
    if let Some(last) = next {
        let after = [("after", &*last)];
        paging::link_next(response.headers_mut(), &call.uri, &after, &["offset"]);
    }
    Ok(response)
}

/// A filter by a value that no document can have would look like an empty fleet.
fn possible(kind: &Kind, parameter: &QueryParameter, value: &str) -> Answered<()> {
    let name = &parameter.name;
    let refused =
        |right: &str| Err(Refusal::bad_request(format!("`{name}` is `{value}`; it must be {right}")));
    match parameter.of_type {
        ParameterType::Boolean if !["true", "false"].contains(&value) => return refused("`true` or `false`"),
        ParameterType::Integer if value.parse::<i64>().is_err() => return refused("a whole number"),
        _ => {}
    }
    let choices = kind.document_schema()["properties"][&**name]["enum"].as_array();
    let choices: Vec<&str> = choices.into_iter().flatten().filter_map(|choice| choice.as_str()).collect();
    if !choices.is_empty() && !choices.contains(&value) {
        return refused(&format!("one of `{}`", choices.join("`, `")));
    }
    Ok(())
}

async fn create(call: Call, Segments(kind): Segments<String>, Content(body): Content) -> Answered {
    let query = call.query(&[DRY_RUN, "replace_decommissioned"])?;
    write::expects_nothing(&call, "what is created has no revision yet")?;
    let kind = call.kind(&kind)?;
    let replace_decommissioned = query.switch("replace_decommissioned")?;
    let value = write::document(&call, &body)?;
    let id = value.get("id").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
    let operation =
        Operation::Create { kind: kind.name().as_str().into(), body: value, replace_decommissioned };
    let outcome = write::write(&call, &query, vec![operation], &body).await?;
    let is_made = matches!(outcome, Outcome::Made(_));
    let mut response = write::answered(outcome, StatusCode::CREATED, kind.name().as_str(), &id)?;
    let location = format!("/{}/{}", kind.name(), utf8_percent_encode(&id, NON_ALPHANUMERIC));
    if let (true, Ok(location)) = (is_made, HeaderValue::from_str(&location.replace("%2D", "-"))) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

async fn read(call: Call, Segments((kind, id)): Segments<(String, String)>) -> Answered {
    call.query(&[])?;
    let state = call.app.replica.serving()?;
    let kind = kind_of(&state, &kind)?;
    document(StatusCode::OK, &state, kind.name().as_str(), &id).ok_or_else(|| no_document(&kind, &id))
}

async fn replace(
    call: Call,
    Segments((kind, id)): Segments<(String, String)>,
    Content(body): Content,
) -> Answered {
    let query = call.query(&[DRY_RUN])?;
    let kind = call.kind(&kind)?;
    let operation = Operation::Put {
        kind: kind.name().as_str().into(),
        id: (&*id).into(),
        body: write::document(&call, &body)?,
        expect: write::expected(&call)?,
    };
    let outcome = write::write(&call, &query, vec![operation], &body).await?;
    write::answered(outcome, StatusCode::OK, kind.name().as_str(), &id)
}

async fn change(
    call: Call,
    Segments((kind, id)): Segments<(String, String)>,
    Content(body): Content,
) -> Answered {
    let query = call.query(&[DRY_RUN])?;
    let kind = call.kind(&kind)?;
    let operation = Operation::Patch {
        kind: kind.name().as_str().into(),
        target: Target::One { id: (&*id).into(), expect: write::expected(&call)? },
        patch: write::patch(&call, &body)?,
    };
    let outcome = write::write(&call, &query, vec![operation], &body).await?;
    write::answered(outcome, StatusCode::OK, kind.name().as_str(), &id)
}

async fn delete(
    call: Call,
    Segments((kind, id)): Segments<(String, String)>,
    Content(body): Content,
) -> Answered {
    let query = call.query(&[DRY_RUN])?;
    let kind = call.kind(&kind)?;
    no_body(&body)?;
    let operation = Operation::Delete {
        kind: kind.name().as_str().into(),
        target: Target::One { id: (&*id).into(), expect: write::expected(&call)? },
    };
    Ok(deleted(write::write(&call, &query, vec![operation], &body).await?))
}

async fn users(call: Call, Segments((kind, id)): Segments<(String, String)>) -> Answered {
    let query = call.query(&["limit", "after"])?;
    let limit = query.limit()?;
    let state = call.app.replica.serving()?;
    let kind = kind_of(&state, &kind)?;
    if kind.name().as_str() == CLUSTERS {
        return Err(Refusal::missing("nothing refers to clusters"));
    }
    if state.document_revision(&Key::new(kind.name().as_str(), &id)).is_none() {
        return Err(no_document(&kind, &id));
    }
    let after = query.get("after").map(ToOwned::to_owned);
    let users = tokio::task::spawn_blocking(move || {
        let ids = state.users(kind.name().as_str(), &id).map(|cluster| cluster.doc.id.to_string());
        ids.collect::<Vec<String>>()
    });
    let users = users.await.map_err(|error| Refusal::internal(format!("a scan has panicked: {error}")))?;
    let total = users.len();
    let rest = users.into_iter().filter(|id| after.as_ref().is_none_or(|after| id > after));
    let (page, is_last) = paging::cut(rest, limit);
    let mut response = json_of(&page)?;
    response.headers_mut().insert(paging::X_TOTAL_COUNT, HeaderValue::from(total));
    if let (false, Some(last)) = (is_last, page.last()) {
        let after = [("after", last.as_str())];
        paging::link_next(response.headers_mut(), &call.uri, &after, &[]);
    }
    Ok(response)
}

/// What a live cluster gets, for people who look at it.
async fn inputs(call: Call, Segments((id, kind)): Segments<(String, String)>) -> Answered {
    call.query(&[])?;
    let state = call.app.replica.serving()?;
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
