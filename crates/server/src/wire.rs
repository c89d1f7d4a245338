//! From the core's types to what goes over the wire.

use api::{
    Allowance, ChangedDocument, Counts, DocumentKey, Guard, GuardLimits, NeededAllowance, Revision, Spent,
};
use fleet::{GuardClass, Key, Passed, Policy, State, Tally, Timestamp};
use ledger::Record;
use serde_json::Value;

/// How many names are told of many.
const NAMED: usize = 100;
/// How many of the documents that a change changes are told, and of the different things that go.
const NAMED_DOCUMENTS: usize = 1_000;

fn names<'a>(ids: impl Iterator<Item = &'a fleet::Id>) -> Vec<String> {
    ids.take(NAMED).map(ToString::to_string).collect()
}

pub(crate) fn violation(violation: &fleet::Violation) -> api::Violation {
    api::Violation {
        operation: violation.operation,
        document: violation.key.as_ref().map(Key::to_string),
        pointer: violation.pointer.as_str().to_owned(),
        message: violation.message.clone(),
        also: violation.also,
    }
}

/// What goes: everything is counted, and the first of it is told.
pub(crate) fn removals(removals: &fleet::Removals) -> api::Removals {
    let group = |group: &fleet::RemovalGroup<'_>| {
        removal_group(group, group.clusters.iter().take(NAMED).map(ToString::to_string).collect())
    };
    let groups = removals.groups().iter().take(NAMED_DOCUMENTS).map(group).collect();
    api::Removals { groups, ..removals_counted(removals) }
}

/// The same without the groups.
pub(crate) fn removals_counted(removals: &fleet::Removals) -> api::Removals {
    let removal = |removal: &fleet::Removal| api::Removal {
        cluster: removal.cluster.to_string(),
        kind: removal.kind.to_string(),
        input: removal.input.to_string(),
        cause: removal.cause.as_str().to_owned(),
        named: removal.named,
    };
    api::Removals {
        decommissions: removals.decommissions.len(),
        inputs: removals.inputs.len(),
        clusters: removals.clusters().len(),
        decommissioned: names(removals.decommissions.iter()),
        first: removals.inputs.iter().take(NAMED).map(removal).collect(),
        groups: Vec::new(),
    }
}

/// The same that goes from some clusters, with the names of some of these.
pub(crate) fn removal_group(group: &fleet::RemovalGroup<'_>, clusters: Vec<String>) -> api::RemovalGroup {
    api::RemovalGroup {
        kind: group.kind.to_string(),
        input: group.input.to_string(),
        cause: group.cause.as_str().to_owned(),
        guard: GuardClass::as_str(group.guard).to_owned(),
        count: group.clusters.len(),
        clusters,
    }
}

/// What the guard lets through without a question.
pub(crate) fn guard_limits(policy: &Policy) -> GuardLimits {
    GuardLimits {
        clusters: policy.guard_clusters,
        deletions_per_hour: policy.deletions_per_hour,
        removals_per_hour: policy.removals_per_hour,
        confirmations_per_hour: policy.confirmations_per_hour,
        changed_clusters: policy.changed_clusters,
    }
}

/// The guard at a moment.
pub(crate) fn guard(policy: &Policy, state: &State, now: Timestamp) -> Guard {
    let fleet::Spent { deletions, removals, confirmations } = state.spent(now);
    Guard {
        limits: guard_limits(policy),
        spent: Spent { deletions, removals, confirmations },
        allowances: state.allowances(now).into_iter().map(|(id, of)| allowance(id.as_str(), of)).collect(),
    }
}

pub(crate) fn allowance(id: &str, allowance: &fleet::Allowance) -> Allowance {
    Allowance {
        id: id.to_owned(),
        to: allowance.to.to_string(),
        deletions: allowance.deletions,
        removals: allowance.removals,
        until: time(allowance.until),
        by: allowance.by.to_string(),
        reason: allowance.reason.to_string(),
    }
}

/// The allowance that lets these removals of an actor through.
pub(crate) fn needed_allowance(actor: &str, removals: &fleet::Removals) -> NeededAllowance {
    let (deletions, removals) = removals.tally().to_be_allowed();
    NeededAllowance { to: actor.to_owned(), deletions, removals }
}

/// The first of the documents that a change has changed; with each, whether it is still there.
pub(crate) fn changed(changed: &[(Key, bool)]) -> Vec<ChangedDocument> {
    let document = |(key, is_there): &(Key, bool)| {
        let DocumentKey { kind, id } = self::key(key);
        ChangedDocument { kind, id, deleted: !is_there }
    };
    changed.iter().take(NAMED_DOCUMENTS).map(document).collect()
}

/// RFC 3339, in UTC, with milliseconds.
pub(crate) fn time(time: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(time.0)
        .unwrap_or_default()
        .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}

pub(crate) fn key(key: &Key) -> DocumentKey {
    let kind = match key {
        Key::Document(_) | Key::System(_) => key.space(),
        Key::Kind(_) => api::KINDS,
        Key::Tombstone(_) => api::DECOMMISSIONED,
    };
    DocumentKey { kind: kind.to_owned(), id: key.id().to_owned() }
}

/// The space of the ledger that a client calls by this name.
pub(crate) fn space(kind: &str) -> String {
    match kind {
        api::KINDS => Key::KINDS.to_owned(),
        api::DECOMMISSIONED => Key::DECOMMISSIONED.to_owned(),
        kind => kind.to_owned(),
    }
}

pub(crate) fn revision(record: &Record) -> Revision {
    let header = &record.header;
    let Tally { decommissions, each, ordinary, passed } = header.removals;
    Revision {
        revision: header.at.revision.0,
        hash: header.at.hash.to_string(),
        time: time(header.origin.time),
        actor: header.origin.actor.to_string(),
        reason: header.origin.reason.as_deref().map(ToOwned::to_owned),
        request_id: header.origin.request.as_deref().map(ToOwned::to_owned),
        removals: Counts {
            decommissions,
            each,
            ordinary,
            confirmed: passed == Passed::Confirmed,
            allowed: passed == Passed::Allowed,
        },
        changed: header.changes.count as usize,
        documents: record.keys.iter().map(key).collect(),
    }
}

/// What the core holds as JSON text.
pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}
