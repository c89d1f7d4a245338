//! From the core's types to what goes over the wire.

use api::{
    Allowance, Asks, Change, ChangedDocument, Counts, DocumentKey, Guard, GuardLimits, NeededAllowance,
    PlannedDocument, Revision, Spent,
};
use fleet::{
    DocumentChange, GuardClass, InputChange, Key, Passed, Plan, Policy, Questions, State, Tally, Timestamp,
};
use ledger::Record;
use serde_json::Value;

/// How many names are told of many.
const NAMED: usize = 100;
/// At most this many bytes of fields that become different are told.
const TOLD_BYTES: usize = 256 * 1024;
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
    }
}

pub(crate) fn removals(removals: &fleet::Removals) -> api::Removals {
    let removal = |removal: &fleet::Removal| api::Removal {
        cluster: removal.cluster.to_string(),
        kind: removal.kind.to_string(),
        input: removal.input.to_string(),
        cause: removal.cause.as_str().to_owned(),
        named: removal.named,
    };
    let group = |group: fleet::RemovalGroup<'_>| api::RemovalGroup {
        kind: group.kind.to_string(),
        input: group.input.to_string(),
        cause: group.cause.as_str().to_owned(),
        guard: GuardClass::as_str(group.guard).to_owned(),
        count: group.clusters.len(),
        clusters: names(group.clusters.into_iter()),
    };
    api::Removals {
        decommissions: removals.decommissions.len(),
        inputs: removals.inputs.len(),
        clusters: removals.clusters().len(),
        decommissioned: names(removals.decommissions.iter()),
        first: removals.inputs.iter().take(NAMED).map(removal).collect(),
        groups: removals.groups().into_iter().take(NAMED_DOCUMENTS).map(group).collect(),
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
    let tally = removals.tally();
    NeededAllowance { to: actor.to_owned(), deletions: tally.deletions(), removals: tally.ordinary }
}

fn effects(effects: &fleet::Effects) -> api::Effects {
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

/// The first of the documents that a change has changed; with each, whether it is still there.
pub(crate) fn changed(changed: &[(Key, bool)]) -> Vec<ChangedDocument> {
    let document = |(key, is_there): &(Key, bool)| {
        let DocumentKey { kind, id } = self::key(key);
        ChangedDocument { kind, id, deleted: !is_there }
    };
    changed.iter().take(NAMED_DOCUMENTS).map(document).collect()
}

/// A plan: everything is counted, and the first of it is told.
pub(crate) fn plan(plan: &Plan, actor: &str) -> api::Plan {
    let documents = planned(plan);
    let Plan { applied, questions, confirm, effects, digest, .. } = plan;
    let Questions { removals, reach, allowance } = questions;
    let asks = [(removals, Asks::Removals), (reach, Asks::Clusters)];
    let because = [questions.confirmation(), allowance.clone()].into_iter().flatten().collect::<Vec<_>>();
    api::Plan {
        revision: plan.revision().0,
        digest: digest.to_string(),
        changed: plan.documents().len(),
        documents,
        effects: self::effects(effects),
        removals: self::removals(&applied.removals),
        confirm: questions.confirmation().map(|_| confirm.to_string()),
        asks: asks.iter().filter(|(asked, _)| asked.is_some()).map(|(_, asks)| *asks).collect(),
        because: (!because.is_empty()).then(|| because.join("; ")),
        allowance: allowance.as_ref().map(|_| needed_allowance(actor, &applied.removals)),
        warnings: applied.warnings.clone(),
    }
}

/// The first of the documents that a change would change, with the fields that become different as long as that is not too much.
fn planned(plan: &Plan) -> Vec<PlannedDocument> {
    let mut left = TOLD_BYTES;
    let document = |(key, change): (&Key, DocumentChange)| {
        // The record of a decommission is nobody's document.
        let is_record = matches!(key, Key::Tombstone(_));
        let (change, before, after) = match change {
            DocumentChange::Added(after) => (Change::Added, None, Some(after)),
            DocumentChange::Changed { before, after } => (Change::Changed, Some(before), Some(after)),
            DocumentChange::Removed => (Change::Removed, None, None),
        };
        let told = [before, after].map(|side| side.filter(|_| !is_record).map(Value::Object));
        let bytes: usize = told.iter().flatten().map(|side| side.to_string().len()).sum();
        let untold = bytes > left;
        left -= if untold { 0 } else { bytes };
        let [before, after] = told.map(|side| side.filter(|_| !untold));
        let DocumentKey { kind, id } = self::key(key);
        PlannedDocument { kind, id, change, before, after, untold }
    };
    plan.documents().take(NAMED_DOCUMENTS).map(document).collect()
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
