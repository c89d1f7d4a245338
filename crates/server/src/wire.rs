//! From the core's types to what goes over the wire.

use std::collections::BTreeSet;

use api::{Change, Counts, DocumentKey, Revision};
use fleet::{Cause, InputChange, Key, Tally, Timestamp};
use ledger::Record;
use serde_json::Value;

/// How many names are told of many.
const NAMED: usize = 100;

fn names<'a>(ids: impl Iterator<Item = &'a fleet::Id>) -> Vec<String> {
    ids.take(NAMED).map(ToString::to_string).collect()
}

pub(crate) fn violation(violation: &fleet::Violation) -> api::Violation {
    api::Violation {
        operation: violation.operation,
        document: violation.key.as_ref().map(Key::to_string),
        pointer: violation.pointer.as_str().to_owned(),
        message: violation.message.clone(),
    }
}

pub(crate) fn removals(removals: &fleet::Removals) -> api::Removals {
    let clusters: BTreeSet<&fleet::Id> =
        removals.inputs.iter().map(|removal| &removal.cluster).chain(&removals.decommissions).collect();
    let removal = |removal: &fleet::Removal| api::Removal {
        cluster: removal.cluster.to_string(),
        kind: removal.kind.to_string(),
        input: removal.input.to_string(),
        cause: cause(removal.cause).to_owned(),
        named: removal.named,
    };
    api::Removals {
        decommissions: removals.decommissions.len(),
        inputs: removals.inputs.len(),
        clusters: clusters.len(),
        decommissioned: names(removals.decommissions.iter()),
        first: removals.inputs.iter().take(NAMED).map(removal).collect(),
    }
}

fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Decommissioned => "decommissioned",
        Cause::Removed => "removed",
        Cause::Disabled => "disabled",
        Cause::Redelivered => "redelivered",
        Cause::Evicted => "evicted",
        Cause::Moved => "moved",
    }
}

pub(crate) fn effects(effects: &fleet::Effects) -> api::Effects {
    let totals = effects.totals.iter().map(|(kind, totals)| {
        let fleet::Totals { added, changed, removed } = *totals;
        (kind.to_string(), api::Totals { added, changed, removed })
    });
    api::Effects {
        clusters: effects.clusters,
        totals: totals.collect(),
        changes: effects.effects.iter().map(effect).collect(),
    }
}

fn effect(effect: &fleet::Effect) -> api::Effect {
    let (change, fields) = match &effect.change {
        InputChange::Added => (Change::Added, &[][..]),
        InputChange::Removed => (Change::Removed, &[][..]),
        InputChange::Changed(fields) => (Change::Changed, &fields[..]),
    };
    let json =
        |text: &Option<String>| text.as_ref().map(|text| serde_json::from_str(text).unwrap_or(Value::Null));
    let field = |field: &fleet::FieldChange| api::FieldChange {
        pointer: field.pointer.as_str().to_owned(),
        old: json(&field.old),
        new: json(&field.new),
    };
    api::Effect {
        kind: effect.kind.to_string(),
        input: effect.input.to_string(),
        change,
        fields: fields.iter().map(field).collect(),
        count: effect.clusters.len(),
        clusters: names(effect.clusters.iter()),
    }
}

/// RFC 3339, in UTC, with milliseconds.
pub(crate) fn time(time: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(time.0)
        .unwrap_or_default()
        .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}

pub(crate) fn key(key: &Key) -> DocumentKey {
    DocumentKey { kind: key.kind.to_string(), id: key.id.to_string() }
}

pub(crate) fn revision(record: &Record) -> Revision {
    let Tally { decommissions, each, ordinary, confirmed } = record.removals;
    Revision {
        revision: record.at.revision.0,
        hash: record.at.hash.to_string(),
        time: time(record.origin.time),
        actor: record.origin.actor.to_string(),
        reason: record.origin.reason.as_deref().map(ToOwned::to_owned),
        request_id: record.origin.request.as_deref().map(ToOwned::to_owned),
        removals: Counts { decommissions, each, ordinary, confirmed },
        changed: record.changes,
        documents: record.keys.iter().map(key).collect(),
    }
}
