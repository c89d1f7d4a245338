//! From the core's types to what goes over the wire.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use api::{Change, ChangedDocument, Counts, DocumentKey, PlannedDocument, Revision};
use data_encoding::HEXLOWER;
use fleet::{Canonical, Cause, GuardClass, InputChange, Key, State, Tally, Timestamp};
use ledger::Record;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

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
        groups: removal_groups(&removals.inputs),
    }
}

/// The same on several clusters once. If there are too many to tell, what is cut off is what matters least.
fn removal_groups(removals: &[fleet::Removal]) -> Vec<api::RemovalGroup> {
    let mut groups: BTreeMap<_, Vec<&fleet::Id>> = BTreeMap::new();
    for fleet::Removal { cluster, kind, input, cause, guard, .. } in removals {
        groups.entry((kind, input, *cause, *guard)).or_default().push(cluster);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|((_, _, cause, guard), clusters)| {
        // Decommissioned clusters have been named already. What takes data with it is to be seen whatever else goes.
        (*cause == Cause::Decommissioned, *guard != GuardClass::Each, Reverse(clusters.len()))
    });
    let group = |((kind, input, why, guard), clusters): (_, Vec<&fleet::Id>)| {
        let (kind, input): (&fleet::KindName, &fleet::Id) = (kind, input);
        api::RemovalGroup {
            kind: kind.to_string(),
            input: input.to_string(),
            cause: cause(why).to_owned(),
            guard: GuardClass::as_str(guard).to_owned(),
            count: clusters.len(),
            clusters: names(clusters.into_iter()),
        }
    };
    groups.into_iter().take(NAMED_DOCUMENTS).map(group).collect()
}

fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Decommissioned => api::DECOMMISSIONED,
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

/// The first of the documents that a change has changed; with each, whether it is still there.
pub(crate) fn changed(changed: &[(Key, bool)]) -> Vec<ChangedDocument> {
    let document = |(key, is_there): &(Key, bool)| ChangedDocument {
        kind: key.kind.to_string(),
        id: key.id.to_string(),
        deleted: !is_there,
    };
    changed.iter().take(NAMED_DOCUMENTS).map(document).collect()
}

/// A document as JSON, field by field.
fn fields(body: &Canonical) -> Map<String, Value> {
    serde_json::from_str(body.as_str()).unwrap_or_default()
}

/// The first of the documents that a change would change, with the fields that become different as long as that is not too much.
pub(crate) fn planned(before: &State, changes: &[fleet::Change]) -> Vec<PlannedDocument> {
    let mut left = TOLD_BYTES;
    let document = |change: &fleet::Change| {
        let key = change.key();
        let happens = match (before.document_revision(key), change.after()) {
            (_, None) => Change::Removed,
            (None, Some(_)) => Change::Added,
            (Some(_), Some(_)) => Change::Changed,
        };
        // The record of a decommission is nobody's document.
        let is_record = key.kind.as_str() == fleet::DECOMMISSIONED;
        let mut new = change.after().filter(|_| !is_record).map(fields);
        let mut old = None;
        if let Some(new) = new.as_mut().filter(|_| happens == Change::Changed) {
            let was = before.body(key.kind.as_str(), key.id.as_str()).map(|(body, _)| fields(&body));
            let mut was = was.unwrap_or_default();
            new.retain(|name, value| {
                let same = was.get(name) == Some(value);
                if same {
                    was.remove(name);
                }
                !same
            });
            old = Some(was);
        }
        let told = [old, new].map(|side| side.map(Value::Object));
        let bytes: usize = told.iter().flatten().map(|side| side.to_string().len()).sum();
        let untold = bytes > left;
        left -= if untold { 0 } else { bytes };
        let [before, after] = told.map(|side| side.filter(|_| !untold));
        PlannedDocument {
            kind: key.kind.to_string(),
            id: key.id.to_string(),
            change: happens,
            before,
            after,
            untold,
        }
    };
    changes.iter().take(NAMED_DOCUMENTS).map(document).collect()
}

/// What a plan does, in short: every changed document before and after, every effect on every cluster, every removal. Nothing of it is cut.
pub(crate) fn plan_digest(
    before: &State,
    changes: &[fleet::Change],
    effects: &fleet::Effects,
    removals: &fleet::Removals,
) -> String {
    let mut hasher = Sha256::new();
    // Each part with its length: no two lists of parts are the same bytes.
    let mut part = |text: &str| {
        hasher.update(text.len().to_le_bytes());
        hasher.update(text);
    };
    for change in changes {
        part(&change.key().to_string());
        // The record of a decommission has the revision in it, which is not what the plan does.
        if change.key().kind.as_str() != fleet::DECOMMISSIONED {
            part(&before.hash_of(change.key()).unwrap_or_default().to_string());
            part(&change.hash().to_string());
        }
    }
    for effect in &effects.effects {
        part(effect.kind.as_str());
        part(effect.input.as_str());
        match &effect.change {
            InputChange::Added => part("added"),
            InputChange::Removed => part("removed"),
            InputChange::Changed(fields) => {
                for field in fields {
                    part(field.pointer.as_str());
                    // No value is the empty text.
                    part(field.old.as_deref().unwrap_or_default());
                    part(field.new.as_deref().unwrap_or_default());
                }
            }
        }
        part("on");
        effect.clusters.iter().for_each(|cluster| part(cluster.as_str()));
    }
    part(&removals.digest().to_string());
    HEXLOWER.encode(&hasher.finalize())
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
