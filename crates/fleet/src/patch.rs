//! The three ways to change a document. All of them work on the stored document as an object and change nothing else.

use std::collections::{BTreeMap, BTreeSet};

use json_patch::PatchOperation;
use serde_json::{Map, Value};

use crate::canonical::{self, MAX_DEPTH};
use crate::finding::Finding;
use crate::ids::{PATCHES, PLATFORM_COMPONENTS};
use crate::pointer::Pointer;
use crate::work::Work;

/// How to change a document.
#[derive(Clone, Debug)]
pub enum Patch {
    /// Objects merge as in RFC 7396; an array of references merges by id, and `{"id":"x","$patch":"delete"}` removes one.
    Strategic(Value),
    /// RFC 7396 to the letter: an array replaces an array.
    Merge(Value),
    /// RFC 6902; indexes refer to the stored, sorted order.
    Json(Value),
}

/// What a strategic patch said about one reference by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Spelt {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) what: SpeltOut,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SpeltOut {
    /// `$patch: delete` of a reference that was there.
    Deleted,
    /// `$patch: delete` of a reference that was not there.
    DeletedNothing,
    /// `enabled: false`.
    Disabled,
}

/// How many bytes the copies of one RFC 6902 patch may add up to: a patch must not grow a document without bound.
const MAX_COPIED: usize = 2 * 1024 * 1024;

impl Patch {
    /// Whether it may touch a member of a cluster. Removing a component takes its patches along.
    pub(crate) fn touches(&self, member: &str) -> bool {
        match self {
            Self::Strategic(patch) | Self::Merge(patch) => {
                let named = |name: &str| patch.get(name).is_some();
                named(member) || (member == PATCHES && named(PLATFORM_COMPONENTS))
            }
            Self::Json(_) => true,
        }
    }

    /// The components whose patches it touches, if it touches patches of some components only.
    pub(crate) fn patched_components(&self) -> Option<BTreeSet<String>> {
        match self {
            Self::Strategic(patch) | Self::Merge(patch) if patch.get(PLATFORM_COMPONENTS).is_none() => {
                Some(patch.get(PATCHES)?.as_object()?.keys().cloned().collect())
            }
            _ => None,
        }
    }

    /// Whether the patch of a reference itself says that the reference is disabled.
    pub(crate) fn says_disabled(&self) -> bool {
        match self {
            Self::Strategic(patch) | Self::Merge(patch) => patch.get("enabled") == Some(&Value::Bool(false)),
            Self::Json(_) => false,
        }
    }

    /// How many bytes it has as text.
    pub(crate) fn bytes(&self) -> usize {
        let (Self::Strategic(patch) | Self::Merge(patch) | Self::Json(patch)) = self;
        canonical::encode(patch).len()
    }

    /// Changes a document whose members of the given names are arrays of references. Items of such an array that cannot be used
    /// are told, and the rest is done. A JSON patch that becomes too much work is not done to its end: whoever counts the work has
    /// to look.
    pub(crate) fn change(
        &self,
        document: &mut Map<String, Value>,
        references: &[&str],
        work: &mut Work,
    ) -> Result<(Vec<Spelt>, Vec<Finding>), Finding> {
        match self {
            Self::Strategic(patch) => merge_by_id(document, object(patch)?, references),
            Self::Merge(patch) => {
                let mut value = Value::Object(std::mem::take(document));
                json_patch::merge(&mut value, &Value::Object(object(patch)?.clone()));
                *document = into_map(value)?;
                Ok(Default::default())
            }
            Self::Json(patch) => {
                let mut value = Value::Object(std::mem::take(document));
                let changed = operations(patch).and_then(|operations| run(&mut value, &operations, work));
                *document = into_map(value)?;
                changed.map(|()| Default::default())
            }
        }
    }
}

fn object(patch: &Value) -> Result<&Map<String, Value>, Finding> {
    patch.as_object().ok_or_else(|| {
        Finding::new(
            Pointer::root(),
            format!("a patch that merges is an object, not {}", crate::schema::shown(patch)),
        )
    })
}

fn into_map(value: Value) -> Result<Map<String, Value>, Finding> {
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(Finding::new(Pointer::root(), "the patch leaves something that is not an object")),
    }
}

fn operations(patch: &Value) -> Result<Vec<PatchOperation>, Finding> {
    let Some(items) = patch.as_array() else {
        return Err(Finding::new(
            Pointer::root(),
            format!("a JSON patch is an array of operations, not {}", crate::schema::shown(patch)),
        ));
    };
    let read = |(n, item): (usize, &Value)| {
        let wrong = |error: serde_json::Error| {
            Finding::new(
                Pointer::root(),
                format!("item {n} of the patch is no operation of RFC 6902: {error}"),
            )
        };
        serde_json::from_value(item.clone()).map_err(wrong)
    };
    items.iter().enumerate().map(read).collect()
}

/// Runs the operations one by one, so that an error tells which, and so that neither copies nor work can grow without bound.
fn run(value: &mut Value, operations: &[PatchOperation], work: &mut Work) -> Result<(), Finding> {
    let mut copied = 0;
    for (n, operation) in operations.iter().enumerate() {
        work.item(elements(value, operation));
        if work.is_too_much() {
            return Ok(());
        }
        let path = operation.path();
        let at = Pointer::parsed(path.as_str());
        let moved = match operation {
            PatchOperation::Add(add) => Some(&add.value),
            PatchOperation::Replace(replace) => Some(&replace.value),
            PatchOperation::Copy(copy) => value.pointer(copy.from.as_str()),
            PatchOperation::Move(mv) => value.pointer(mv.from.as_str()),
            PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
        };
        if moved.is_some_and(|moved| at.depth() + depth(moved) > MAX_DEPTH + 1) {
            return Err(Finding::new(
                at,
                format!("item {n} of the patch nests too deeply: {MAX_DEPTH} levels are the most"),
            ));
        }
        if let (PatchOperation::Copy(_), Some(moved)) = (operation, moved) {
            copied += moved.to_string().len();
            if copied > MAX_COPIED {
                return Err(Finding::new(at, format!("the copies of the patch are over {MAX_COPIED} bytes")));
            }
        }
        let wrong = |error: json_patch::PatchError| {
            Finding::new(at, format!("item {n} of the patch: {}", error.kind))
        };
        json_patch::patch(value, std::slice::from_ref(operation)).map_err(wrong)?;
    }
    Ok(())
}

/// How many elements an operation moves or looks at: those of the lists that it takes from and adds to, and what it carries around.
fn elements(value: &Value, operation: &PatchOperation) -> usize {
    /// How often each value that is carried around is looked at.
    const LOOKS: usize = 4;
    let list = |path: &str| {
        let parent = path.rsplit_once('/').and_then(|(parent, _)| value.pointer(parent));
        parent.and_then(Value::as_array).map_or(0, Vec::len)
    };
    let carried = |from: &str| LOOKS * value.pointer(from).map_or(0, nodes);
    let to = list(operation.path().as_str());
    match operation {
        PatchOperation::Add(_) | PatchOperation::Remove(_) => to,
        PatchOperation::Move(of) => to + list(of.from.as_str()) + carried(of.from.as_str()),
        PatchOperation::Copy(of) => to + carried(of.from.as_str()),
        PatchOperation::Replace(_) | PatchOperation::Test(_) => 0,
    }
}

/// How many values a value is made of.
fn nodes(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(nodes).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        _ => 1,
    }
}

/// How deeply a value nests. What is measured has come through a parser or this check, so the recursion is bounded.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn merge_by_id(
    document: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    references: &[&str],
) -> Result<(Vec<Spelt>, Vec<Finding>), Finding> {
    let (mut spelt, mut findings) = (Vec::new(), Vec::new());
    for (name, change) in patch {
        match change {
            Value::Array(items) if references.contains(&name.as_str()) => {
                let stored = document.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
                let Value::Array(stored) = stored else {
                    return Err(Finding::new(Pointer::to(name), "the stored value is not a list"));
                };
                merge_references(name, stored, items, &mut spelt, &mut findings);
            }
            change => merge_member(document, name, change),
        }
    }
    Ok((spelt, findings))
}

fn merge_member(document: &mut Map<String, Value>, name: &str, change: &Value) {
    if change.is_null() {
        document.remove(name);
    } else {
        json_patch::merge(document.entry(name).or_insert(Value::Null), change);
    }
}

fn merge_references(
    kind: &str,
    stored: &mut Vec<Value>,
    items: &[Value],
    spelt: &mut Vec<Spelt>,
    findings: &mut Vec<Finding>,
) {
    if items.is_empty() {
        stored.clear();
        return;
    }
    let places: BTreeMap<String, usize> = stored
        .iter()
        .enumerate()
        .filter_map(|(n, reference)| Some((reference["id"].as_str()?.to_owned(), n)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut deleted = BTreeSet::new();
    for (n, item) in items.iter().enumerate() {
        let at = Pointer::to(kind).item(n);
        let Some(id) = item.get("id").and_then(Value::as_str) else {
            let message = "each item of the patch names the reference that it is about by `id`";
            findings.push(Finding::new(at.join("id"), message));
            continue;
        };
        if !seen.insert(id) {
            findings.push(Finding::new(at, format!("the patch names `{id}` twice")));
            continue;
        }
        let place = places.get(id).copied();
        let mut say = |what| spelt.push(Spelt { kind: kind.to_owned(), id: id.to_owned(), what });
        match item.get("$patch") {
            Some(Value::String(directive)) if directive == "delete" => {
                say(if place.is_some() { SpeltOut::Deleted } else { SpeltOut::DeletedNothing });
                deleted.extend(place);
            }
            Some(other) => {
                let message = format!("the only directive is \"delete\", not {other}");
                findings.push(Finding::new(at.join("$patch"), message));
            }
            None => {
                if item.get("enabled") == Some(&Value::Bool(false)) {
                    say(SpeltOut::Disabled);
                }
                match place {
                    Some(place) => json_patch::merge(&mut stored[place], item),
                    None => stored.push(item.clone()),
                }
            }
        }
    }
    let mut place = 0;
    stored.retain(|_| {
        place += 1;
        !deleted.contains(&(place - 1))
    });
}
