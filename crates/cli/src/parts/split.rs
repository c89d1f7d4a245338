//! What is too large for one transaction, in parts: several changes, in an order in which the service accepts each by itself.
//!
//! Documents that others refer to come first, then clusters; a component that gets a new dependency comes last, because until then its
//! clusters need not have that. Whether a part is acceptable, the service decides: some changes cannot be made in parts at all.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use api::{Operation, Problem};
use serde_json::Value;

use crate::change::Change;

/// How much one transaction takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    pub operations: usize,
    /// Bytes of the request.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { operations: api::MAX_OPERATIONS, bytes: api::MAX_BODY }
    }
}

/// When a document is sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stage {
    /// What clusters refer to.
    Catalog,
    Clusters,
    /// Components that get new dependencies, which clusters have to have by then.
    NewDependencies,
}

/// A kind and an id.
pub(crate) type Name = (String, String);

/// One operation, and what it has to do with others.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub operation: Operation,
    /// Where it comes from.
    pub source: String,
    pub name: Name,
    pub stage: Stage,
    /// What the document refers to.
    pub refers_to: Vec<Name>,
    /// Whether it is a component; those that depend on each other stay together if they can.
    pub is_component: bool,
}

/// Which part of how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub number: usize,
    pub of: usize,
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "part {} of {}", self.number, self.of)
    }
}

/// The ids in a list of ids or of references.
pub(crate) fn ids(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(|item| item.as_str().or_else(|| item["id"].as_str()))
}

/// Pieces as one change.
pub(crate) fn change(pieces: &[Piece]) -> Change {
    let (operations, sources) =
        pieces.iter().map(|piece| (piece.operation.clone(), piece.source.clone())).unzip();
    Change { operations, sources }
}

/// Divides what does not fit into one transaction. What fits stays as it is.
pub(crate) fn split(mut pieces: Vec<Piece>, limits: Limits) -> Vec<Vec<Piece>> {
    if Room::of(&pieces).fits(limits) {
        return vec![pieces];
    }
    pieces.sort_by_key(|piece| piece.stage);
    let mut parts: Vec<Vec<Piece>> = vec![Vec::new()];
    let mut taken = Room::default();
    for group in groups(pieces) {
        // What belongs together and cannot stay so goes one by one: each piece comes after what it refers to.
        let units = if Room::of(&group).fits(limits) {
            vec![group]
        } else {
            group.into_iter().map(|piece| vec![piece]).collect()
        };
        for unit in units {
            let more = Room::of(&unit);
            if taken.operations > 0 && !taken.and(more).fits(limits) {
                parts.push(Vec::new());
                taken = Room::default();
            }
            taken = taken.and(more);
            if let Some(part) = parts.last_mut() {
                part.extend(unit);
            }
        }
    }
    parts
}

/// How much of a transaction operations take up.
#[derive(Clone, Copy, Default)]
struct Room {
    operations: usize,
    bytes: usize,
}

impl Room {
    fn of(pieces: &[Piece]) -> Self {
        // Each is followed by a comma.
        let bytes = pieces
            .iter()
            .map(|piece| serde_json::to_string(&piece.operation).map_or(0, |text| text.len()) + 1)
            .sum();
        Self { operations: pieces.len(), bytes }
    }

    fn and(self, other: Self) -> Self {
        Self { operations: self.operations + other.operations, bytes: self.bytes + other.bytes }
    }

    fn fits(self, limits: Limits) -> bool {
        self.operations <= limits.operations && self.bytes + r#"{"operations":[]}"#.len() <= limits.bytes
    }
}

/// Components of a stage that depend on each other as a group, each after what it depends on; anything else as a group of its own.
fn groups(pieces: Vec<Piece>) -> Vec<Vec<Piece>> {
    let of: BTreeMap<(Stage, &Name), usize> = pieces
        .iter()
        .enumerate()
        .filter(|(_, piece)| piece.is_component)
        .map(|(n, piece)| ((piece.stage, &piece.name), n))
        .collect();
    let depends_on = |n: usize| {
        let piece = &pieces[n];
        let names = piece.refers_to.iter().filter(move |_| piece.is_component);
        names.filter_map(|name| of.get(&(piece.stage, name)).copied()).collect::<Vec<usize>>()
    };
    let dependencies: Vec<Vec<usize>> = (0..pieces.len()).map(depends_on).collect();
    let mut neighbours = dependencies.clone();
    for (n, on) in dependencies.iter().enumerate() {
        for other in on {
            neighbours[*other].push(n);
        }
    }
    let mut seen = vec![false; pieces.len()];
    let mut order: Vec<Vec<usize>> = Vec::new();
    for n in 0..pieces.len() {
        let mut group = BTreeSet::new();
        let mut open = vec![n];
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut seen[at], true) {
                group.insert(at);
                open.extend(&neighbours[at]);
            }
        }
        if !group.is_empty() {
            order.push(after_dependencies(&group, &dependencies));
        }
    }
    let mut pieces: Vec<Option<Piece>> = pieces.into_iter().map(Some).collect();
    let take = |group: Vec<usize>| group.into_iter().filter_map(|n| pieces[n].take()).collect();
    order.into_iter().map(take).collect()
}

/// The members of a group, each after its dependencies. A circle, which the service refuses, is cut anywhere.
fn after_dependencies(group: &BTreeSet<usize>, dependencies: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(group.len());
    let mut entered = HashSet::new();
    for first in group {
        // A chain may be long: no recursion.
        let mut open = vec![(*first, false)];
        while let Some((at, is_done)) = open.pop() {
            if is_done {
                order.push(at);
            } else if entered.insert(at) {
                open.push((at, true));
                open.extend(dependencies[at].iter().rev().map(|on| (*on, false)));
            }
        }
    }
    order
}

/// The fields, besides references, that are judged beside other documents.
const JUDGED_TOGETHER: [&str; 3] = ["depends_on", "delivery", "patches"];

/// What is wrong with a part whatever becomes of the parts before it. Of a document that refers to one of theirs, what is wrong with its
/// references may be right once they are made; so may the dependencies of a component, once the clusters are as they should be.
pub(crate) fn wrong_anyhow(problem: &Problem, part: &[Piece], before: &[Vec<Piece>]) -> Option<Problem> {
    let earlier: HashSet<&Name> = before.iter().flatten().map(|piece| &piece.name).collect();
    let may_wait = |piece: &Piece, pointer: &str| {
        let field = pointer.split('/').nth(1).unwrap_or_default();
        let is_judged_together = field.is_empty()
            || JUDGED_TOGETHER.contains(&field)
            || piece.refers_to.iter().any(|(kind, _)| kind == field);
        let waits = piece.stage == Stage::NewDependencies
            || piece.refers_to.iter().any(|name| earlier.contains(name));
        waits && is_judged_together
    };
    let (waiting, wrong): (Vec<_>, Vec<_>) = problem.violations.iter().cloned().partition(|violation| {
        part.get(violation.operation).is_some_and(|piece| may_wait(piece, &violation.pointer))
    });
    if wrong.is_empty() && !waiting.is_empty() {
        return None;
    }
    Some(Problem { violations: wrong, ..problem.clone() })
}

#[cfg(test)]
mod tests {
    use api::{Operation, Problem, Violation};
    use serde_json::json;

    use super::{Limits, Piece, Room, Stage, ids, split, wrong_anyhow};

    const LIMITS: Limits = Limits { operations: 3, bytes: 100_000 };

    fn piece(kind: &str, id: &str, stage: Stage, refers_to: &[(&str, &str)]) -> Piece {
        Piece {
            operation: Operation::Create {
                kind: kind.to_owned(),
                id: None,
                body: json!({ "id": id }),
                replace_decommissioned: false,
            },
            source: format!("{id}.yaml"),
            name: (kind.to_owned(), id.to_owned()),
            stage,
            refers_to: refers_to.iter().map(|(kind, id)| ((*kind).to_owned(), (*id).to_owned())).collect(),
            is_component: kind == "components",
        }
    }

    fn component(id: &str, depends_on: &[&str]) -> Piece {
        let on: Vec<(&str, &str)> = depends_on.iter().map(|id| ("components", *id)).collect();
        piece("components", id, Stage::Catalog, &on)
    }

    fn parts(pieces: Vec<Piece>, limits: Limits) -> Vec<String> {
        let told =
            |part: Vec<Piece>| part.into_iter().map(|piece| piece.name.1).collect::<Vec<_>>().join(" ");
        split(pieces, limits).into_iter().map(told).collect()
    }

    #[test]
    fn what_fits_stays_in_the_order_of_the_files() {
        let all = vec![
            piece("clusters", "east", Stage::Clusters, &[]),
            piece("components", "late", Stage::NewDependencies, &[]),
            piece("namespaces", "a", Stage::Catalog, &[]),
        ];
        assert_eq!(parts(all, LIMITS), ["east late a"]);
    }

    #[test]
    fn what_clusters_refer_to_comes_first_and_new_dependencies_last() {
        let all = vec![
            piece("components", "late", Stage::NewDependencies, &[]),
            piece("clusters", "east", Stage::Clusters, &[]),
            piece("clusters", "west", Stage::Clusters, &[]),
            piece("namespaces", "a", Stage::Catalog, &[]),
            piece("namespaces", "b", Stage::Catalog, &[]),
        ];
        assert_eq!(parts(all, LIMITS), ["a b east", "west late"]);
    }

    #[test]
    fn components_that_depend_on_each_other_stay_together() {
        let all = vec![
            component("x", &[]),
            component("y", &[]),
            component("c", &["b"]),
            component("b", &["a", "elsewhere"]),
            component("a", &[]),
        ];
        assert_eq!(parts(all, LIMITS), ["x y", "a b c"]);
    }

    #[test]
    fn or_come_after_what_they_depend_on() {
        let all =
            vec![component("d", &["c"]), component("c", &["b"]), component("b", &["a"]), component("a", &[])];
        assert_eq!(parts(all, LIMITS), ["a b c", "d"]);
        let circle = vec![
            component("a", &["b"]),
            component("b", &["c"]),
            component("c", &["d"]),
            component("d", &["a"]),
        ];
        assert_eq!(parts(circle, LIMITS), ["d c b", "a"]);
    }

    #[test]
    fn a_request_is_no_larger_than_the_service_reads() {
        let all: Vec<Piece> = ["a", "b", "c"].map(|id| piece("namespaces", id, Stage::Catalog, &[])).into();
        let frame = r#"{"operations":[]}"#.len();
        let two = Limits { operations: 10, bytes: Room::of(&all[..2]).bytes + frame };
        assert_eq!(parts(all.clone(), two), ["a b", "c"]);
        assert_eq!(parts(all.clone(), Limits { bytes: two.bytes - 1, ..two }), ["a", "b", "c"]);
        // What is too large by itself is for the service to refuse.
        assert_eq!(parts(all, Limits { bytes: 1, ..two }), ["a", "b", "c"]);
        let sent = json!({"operations": super::change(&split(vec![component("a", &[])], two)[0]).operations});
        let room = Room::of(&[component("a", &[])]);
        assert_eq!(sent.to_string().len(), room.bytes + frame - 1, "one comma more than is sent");
    }

    #[test]
    fn what_is_wrong_is_told_apart_from_what_waits_for_an_earlier_part() {
        let before = vec![vec![piece("namespaces", "new", Stage::Catalog, &[])]];
        let part = [
            piece("clusters", "waits", Stage::Clusters, &[("namespaces", "new")]),
            piece("clusters", "wrong", Stage::Clusters, &[("namespaces", "old")]),
        ];
        let problem = |found: &[(usize, &str)]| -> Problem {
            let violations: Vec<Violation> = found
                .iter()
                .map(|(operation, pointer)| Violation {
                    operation: *operation,
                    document: None,
                    pointer: (*pointer).to_owned(),
                    message: "no".to_owned(),
                    also: 0,
                })
                .collect();
            let problem =
                json!({"type": "t", "title": "t", "status": 422, "detail": "d", "violations": violations});
            serde_json::from_value(problem).expect("a problem")
        };
        let wrong = |found: &[(usize, &str)]| {
            let wrong = wrong_anyhow(&problem(found), &part, &before)?;
            Some(wrong.violations.iter().map(|violation| violation.operation).collect::<Vec<_>>())
        };
        assert_eq!(wrong(&[(0, "/namespaces/0"), (0, "/patches/x"), (0, "")]), None);
        assert_eq!(wrong(&[(0, "/namespaces/0"), (1, "/namespaces/0")]), Some(vec![1]));
        assert_eq!(wrong(&[(0, "/environment"), (0, "/namespaces/0")]), Some(vec![0]));
        assert_eq!(wrong(&[]), Some(vec![]), "a refusal that names nothing is no matter of order");
    }

    #[test]
    fn ids_are_read_from_lists_of_either_sort() {
        assert_eq!(ids(&json!(["a", {"id": "b"}, 7])).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(ids(&json!(null)).count(), 0);
    }
}
