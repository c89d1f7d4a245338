//! What holds for any sequence of transactions, tried on random ones.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::*;
use crate::naive;
use fleet::{
    Answer, Applied, Change, Commit, Effects, InputChange, Irreversible, MAX_INPUTS, MAX_SENT, Operation,
    Patch, Policy, Reason, Rejection, State, Target, Transaction, apply, inverse, render,
};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

pub(crate) const CLUSTERS: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "fresh"];
pub(crate) const COMPONENTS: [&str; 7] = ["h0", "h1", "h2", "h3", "k0", "k1", "ghost"];
const NAMESPACES: [&str; 5] = ["n0", "n1", "n2", "n3", "ghost"];
const ROLEBINDINGS: [&str; 3] = ["r0", "r1", "ghost"];

/// A policy whose numbers are reached quickly.
const TIGHT: Policy = Policy {
    guard_clusters: 2,
    deletions_per_hour: 3,
    removals_per_hour: 4,
    confirmations_per_hour: 3,
    changed_clusters: None,
};

/// Any of them, but seldom the last, which is not there.
fn one_of(ids: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    let (last, others) = ids.split_last().expect("some");
    prop_oneof![30 => select(others), 1 => Just(*last)]
}

pub(crate) fn start() -> Fleet {
    let mut fleet = Fleet::empty();
    let mut operations = Vec::new();
    for id in &COMPONENTS[..6] {
        let url =
            if id.starts_with('h') { "https://charts.example.com" } else { "oci://registry.example.com/kk" };
        operations.push(create(
            "platform_components",
            json!({"id": id, "component_path": id, "oci_url": url, "oci_tag": "1.0.0"}),
        ));
    }
    operations.extend(NAMESPACES[..4].iter().map(|id| create("namespaces", json!({"id": id}))));
    operations.extend(ROLEBINDINGS[..2].iter().map(|id| {
        create(
            "rolebindings",
            json!({"id": id, "role": "view", "subjects": [{"kind": "Group", "name": "g"}]}),
        )
    }));
    for id in &CLUSTERS[..5] {
        let mut body = cluster(id);
        for (kind, ids) in [("platform_components", &COMPONENTS[..6]), ("namespaces", &NAMESPACES[..4])] {
            body[kind] = ids.iter().map(|id| json!({"id": id})).collect::<Value>();
        }
        operations.push(create("clusters", body));
    }
    fleet.accept(operations);
    fleet.policy = TIGHT;
    fleet
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec![
            "",
            "3",
            "-7",
            "007",
            "true",
            "null",
            "\"3\"",
            "a,b={c}",
            "<<x>>",
            "${X}",
            "{{ y }}",
            "---",
            "#",
            "9007199254740993",
            "\"",
            "\n",
            "ü🚀"
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,12}",
        any::<String>().prop_map(|s| s
            .chars()
            .filter(|c| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}'))
            .collect()),
    ]
}

fn patches() -> impl Strategy<Value = Value> {
    let of_one =
        prop::collection::btree_map(select(naive::PATCH_KEYS.map(|(key, _)| key).to_vec()), text(), 0..3);
    prop::collection::btree_map(select(COMPONENTS[..6].to_vec()), of_one, 0..3)
        .prop_map(|patches| json!(patches))
}

fn component_reference() -> impl Strategy<Value = Value> {
    let overrides = (
        prop::option::weighted(0.3, any::<bool>()),
        prop::option::weighted(0.2, select(vec!["2.0.0", "v3-rc1"])),
        prop::option::weighted(0.1, select(vec!["other/path", "x"])),
        prop::option::weighted(0.1, prop::collection::vec(select(COMPONENTS[..6].to_vec()), 0..2)),
    );
    (one_of(&COMPONENTS), overrides).prop_map(|(id, (enabled, tag, path, depends_on))| {
        let mut reference = Map::new();
        reference.insert("id".into(), json!(id));
        let mut put =
            |name: &str, value: Option<Value>| value.and_then(|value| reference.insert(name.into(), value));
        put("enabled", enabled.map(Value::from));
        put("oci_tag", tag.map(Value::from));
        put("component_path", path.map(Value::from));
        put("depends_on", depends_on.map(|ids| json!(ids)));
        reference.into()
    })
}

fn namespace_reference() -> impl Strategy<Value = Value> {
    let labels = prop::option::weighted(0.2, prop::collection::btree_map("[a-z]{1,4}", "[a-z]{0,4}", 0..3));
    (one_of(&NAMESPACES), labels).prop_map(|(id, labels)| match labels {
        Some(labels) => json!({"id": id, "labels": labels}),
        None => json!({"id": id}),
    })
}

fn cluster_body() -> impl Strategy<Value = Value> {
    (
        (one_of(&CLUSTERS), select(vec!["dev", "qa", "prod"])),
        prop::collection::vec(component_reference(), 0..6),
        prop::collection::vec(namespace_reference(), 0..4),
        prop::collection::vec(one_of(&ROLEBINDINGS), 0..2),
        prop::option::weighted(0.5, patches()),
        prop::option::weighted(0.1, any::<bool>()),
    )
        .prop_map(|((id, environment), components, namespaces, rolebindings, patches, protected)| {
            let mut body = cluster(id);
            body["environment"] = json!(environment);
            body["platform_components"] = json!(unique(components));
            body["namespaces"] = json!(unique(namespaces));
            body["rolebindings"] =
                unique(rolebindings.into_iter().map(|id| json!({"id": id})).collect()).into();
            if let Some(patches) = patches {
                body["patches"] = patches;
            }
            if let Some(protected) = protected {
                body["protected"] = json!(protected);
            }
            body
        })
}

fn unique(references: Vec<Value>) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    references.into_iter().filter(|reference| seen.insert(reference["id"].to_string())).collect()
}

fn component_body() -> impl Strategy<Value = Value> {
    (
        one_of(&COMPONENTS),
        select(vec!["1.0.0", "2.0.0"]),
        prop::option::weighted(0.2, select(vec!["helm", "kustomize"])),
        prop::collection::vec(select(COMPONENTS[..6].to_vec()), 0..2),
        any::<bool>(),
        prop::option::weighted(0.3, text()),
    )
        .prop_map(|(id, tag, delivery, depends_on, env, version)| {
            let url = if id.starts_with('h') { "https://charts.example.com" } else { "oci://registry.example.com/kk" };
            let depends_on: BTreeSet<&str> = depends_on.into_iter().collect();
            let mut body = json!({"id": id, "component_path": id, "oci_url": url, "oci_tag": tag, "depends_on": depends_on, "cluster_env_enabled": env});
            if let Some(delivery) = delivery {
                body["delivery"] = json!(delivery);
            }
            if let Some(version) = version {
                body["component_version"] = json!(version);
            }
            body
        })
}

fn namespace_body() -> impl Strategy<Value = Value> {
    (one_of(&NAMESPACES), prop::collection::btree_map("[a-z]{1,4}", text(), 0..3))
        .prop_map(|(id, notes)| json!({"id": id, "annotations": notes}))
}

fn body() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        4 => cluster_body().prop_map(|body| ("clusters", body)),
        2 => component_body().prop_map(|body| ("platform_components", body)),
        1 => namespace_body().prop_map(|body| ("namespaces", body)),
    ]
}

/// Part of a cluster's document, as a client would patch it.
fn part() -> impl Strategy<Value = Value> {
    let item = prop_oneof![
        3 => component_reference(),
        1 => one_of(&COMPONENTS).prop_map(|id| json!({"id": id, "$patch": "delete"})),
        1 => one_of(&COMPONENTS).prop_map(|id| json!({"id": id, "enabled": false})),
    ];
    prop_oneof![
        prop::collection::vec(item, 0..3).prop_map(|items| json!({"platform_components": unique(items)})),
        prop::collection::vec(namespace_reference(), 0..3)
            .prop_map(|items| json!({"namespaces": unique(items)})),
        one_of(&NAMESPACES).prop_map(|id| json!({"namespaces": [{"id": id, "$patch": "delete"}]})),
        patches().prop_map(|patches| json!({"patches": patches})),
        one_of(&["dev", "qa", "nowhere"]).prop_map(|environment| json!({"environment": environment})),
        any::<bool>().prop_map(|protected| json!({"protected": protected})),
        one_of(&COMPONENTS).prop_map(|id| json!({"patches": {id: null}})),
        one_of(&COMPONENTS).prop_map(|id| json!({"patches": {id: {"replicaCount": null, "LEVEL": "x"}}})),
        Just(json!({"patches": null, "labels": {"a": "b"}})),
    ]
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        6 => one_of(&CLUSTERS).prop_map(Target::one),
        1 => select(vec!["id", "environment=dev", "id in (c0,c1)"]).prop_map(selected),
    ]
}

fn reference() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop_oneof![
        one_of(&COMPONENTS).prop_map(|id| ("platform_components", id)),
        one_of(&NAMESPACES).prop_map(|id| ("namespaces", id)),
        one_of(&ROLEBINDINGS).prop_map(|id| ("rolebindings", id)),
    ]
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    let document = || prop_oneof![reference(), one_of(&CLUSTERS).prop_map(|id| ("clusters", id))];
    prop_oneof![
        2 => (body(), any::<bool>()).prop_map(|((kind, body), replace_decommissioned)| Operation::Create { kind: kind.into(), body, replace_decommissioned }),
        2 => body().prop_map(|(kind, body)| put(kind, body["id"].as_str().expect("an id"), body.clone())),
        4 => (target(), part(), any::<bool>()).prop_map(|(target, part, strategic)| {
            let patch = if strategic { Patch::Strategic(part) } else { Patch::Merge(part) };
            Operation::Patch { kind: "clusters".into(), target, patch }
        }),
        1 => (one_of(&CLUSTERS), 0..6_usize, any::<bool>()).prop_map(|(id, n, namespaces)| {
            let path = format!("/{}/{n}", if namespaces { "namespaces" } else { "platform_components" });
            json_patch("clusters", id, json!([{"op": "remove", "path": path}]))
        }),
        1 => (target(), one_of(&COMPONENTS), any::<bool>()).prop_map(|(clusters, component, all)| {
            let values = if all { Value::Null } else { json!({"replicaCount": "2", "LEVEL": null}) };
            Operation::PatchValues { clusters, component: component.into(), values }
        }),
        3 => document().prop_map(|(kind, id)| delete(kind, id)),
        1 => select(vec!["id=c1", "environment=qa"]).prop_map(|selector| Operation::Delete { kind: "clusters".into(), target: selected(selector) }),
        6 => (target(), component_reference()).prop_map(|(clusters, overrides)| {
            let id = overrides["id"].as_str().expect("an id").into();
            Operation::Assign { clusters, kind: "platform_components".into(), id, overrides }
        }),
        2 => (target(), reference(), any::<bool>()).prop_map(|(clusters, (kind, id), enabled)| {
            Operation::PatchReference { clusters, kind: kind.into(), id: id.into(), patch: Patch::Strategic(json!({"enabled": enabled})) }
        }),
        4 => (target(), reference()).prop_map(|(clusters, (kind, id))| Operation::RemoveReference { clusters, kind: kind.into(), id: id.into() }),
        6 => (target(), reference()).prop_map(|(clusters, (kind, id))| Operation::Assign { clusters, kind: kind.into(), id: id.into(), overrides: Value::Null }),
        1 => one_of(&CLUSTERS).prop_map(|id| Operation::Forget { dns: format!("{id}.k8s.example.com").into() }),
    ]
}

/// Many removals by name in one transaction: on one cluster, over several clusters, or of whole clusters.
pub(crate) fn burst() -> impl Strategy<Value = Vec<Operation>> {
    let ids = |ids: &'static [&'static str]| prop::sample::subsequence(ids, 1..=ids.len());
    let remove = |cluster: &str, kind: &str, id: &str, disable: bool| {
        if disable && kind == "platform_components" {
            patch_reference(cluster, kind, id, json!({"enabled": false}))
        } else {
            unassign(cluster, kind, id)
        }
    };
    prop_oneof![
        3 => (one_of(&CLUSTERS), ids(&COMPONENTS[..6]), any::<bool>())
            .prop_map(move |(cluster, ids, disable)| ids.iter().map(|id| remove(cluster, "platform_components", id, disable)).collect()),
        2 => (one_of(&CLUSTERS), ids(&NAMESPACES[..4])).prop_map(move |(cluster, ids)| ids.iter().map(|id| remove(cluster, "namespaces", id, false)).collect()),
        2 => (ids(&CLUSTERS[..5]), reference(), any::<bool>())
            .prop_map(move |(clusters, (kind, id), disable)| clusters.iter().map(|cluster| remove(cluster, kind, id, disable)).collect()),
        1 => ids(&CLUSTERS[..5]).prop_map(|clusters| clusters.iter().map(|id| delete("clusters", id)).collect()),
    ]
}

/// Transactions, with the minutes that pass before each.
fn transactions() -> impl Strategy<Value = Vec<(i64, Vec<Operation>)>> {
    let operations = prop_oneof![6 => prop::collection::vec(operation(), 1), 2 => prop::collection::vec(operation(), 2..4), 3 => burst()];
    let one = (0..8_i64, operations);
    prop::collection::vec(one, 1..20)
}

/// What a cluster's Flux sees, and would keep or delete: (cluster, kind, input) and what its installation hangs on.
fn installed(state: &State) -> BTreeMap<(String, String, String), Value> {
    let mut installed = BTreeMap::new();
    for cluster in state.clusters() {
        for kind in state.kinds().referable() {
            for input in naive::inputs(state, cluster.doc.id.as_str(), kind) {
                if input["enabled"] != false {
                    let key = (
                        cluster.doc.id.to_string(),
                        kind.name().to_string(),
                        input["id"].as_str().expect("an id").to_owned(),
                    );
                    installed.insert(key, naive::hangs_on(&input));
                }
            }
        }
    }
    installed
}

type Lost = BTreeSet<(String, String, String)>;

/// What Flux would delete between two states, found by comparing everything with everything.
fn lost(before: &State, after: &State) -> Lost {
    let is = installed(after);
    let gone =
        installed(before).into_iter().filter(|(key, was)| is.get(key) != Some(was)).map(|(key, _)| key);
    let left = before.clusters().filter_map(|was| {
        let (id, environment) = (&was.doc.id, &was.doc.environment);
        let left = after.cluster(id.as_str()).is_some_and(|is| is.doc.environment != *environment);
        left.then(|| (id.to_string(), "clusters".to_owned(), environment.to_string()))
    });
    gone.chain(left).collect()
}

/// Whether a transaction spells that removal out.
fn spells(
    operations: &[Operation],
    (cluster, kind, input): &(String, String, String),
    decommissioned: bool,
) -> bool {
    let is = |target: &Target| matches!(target, Target::One { id, .. } if **id == **cluster);
    let disables = |value: &Value| value["enabled"] == false;
    operations.iter().any(|operation| match operation {
        Operation::Put { id, .. } if *kind == "clusters" => **id == **cluster,
        Operation::Patch { target, patch: Patch::Strategic(patch) | Patch::Merge(patch), .. }
            if *kind == "clusters" =>
        {
            is(target) && patch.get("environment").is_some()
        }
        Operation::Delete { kind, target } => decommissioned && **kind == *"clusters" && is(target),
        Operation::RemoveReference { clusters, kind: of, id } => {
            is(clusters) && **of == **kind && **id == **input
        }
        Operation::Assign { clusters, kind: of, id, overrides } => {
            is(clusters) && **of == **kind && **id == **input && disables(overrides)
        }
        Operation::PatchReference { clusters, kind: of, id, patch: Patch::Strategic(patch) } => {
            is(clusters) && **of == **kind && **id == **input && disables(patch)
        }
        Operation::Patch { target, patch: Patch::Strategic(patch), .. } => {
            let items = patch[kind.as_str()].as_array().cloned().unwrap_or_default();
            is(target)
                && items
                    .iter()
                    .any(|item| item["id"] == **input && (disables(item) || item["$patch"] == "delete"))
        }
        _ => false,
    })
}

fn check_answers(state: &State) {
    for cluster in state.clusters() {
        for kind in state.kinds().referable() {
            let Answer::Inputs(answer) = render(state, cluster.doc.dns.as_str(), kind.path()) else {
                panic!("it is live")
            };
            let value: Value = serde_json::from_slice(answer.body()).expect("JSON");
            assert_eq!(value.as_object().map(Map::len), Some(1), "one top-level key");
            let ids: Vec<&str> = value["inputs"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|input| input["id"].as_str().expect("a string"))
                .collect();
            assert!(ids.is_sorted_by(|a, b| a < b), "sorted and unique: {ids:?}");
            assert_eq!(
                ids.len(),
                cluster.doc.inputs_of(kind.name().as_str()).count(),
                "as many as there are references"
            );
            assert_eq!(ids.len(), answer.count());
            assert!(ids.len() <= MAX_INPUTS && answer.body().len() <= MAX_SENT);
        }
    }
    naive::agree(state);
}

fn check_replay(before: &State, applied: &Applied) {
    let Some(commit) = &applied.commit else {
        return assert_eq!(before, &applied.next, "no commit, no change");
    };
    let replayed = before.replay(commit).expect("it follows");
    assert_eq!(&replayed, &applied.next);
    assert_eq!(replayed.digest(), commit.header.state);
    for change in &commit.changes {
        let Some(key) = change.key().as_document() else { continue };
        if let (Some(after), Some((map, _))) =
            (change.after(), applied.next.document(key.kind.as_str(), key.id.as_str()))
        {
            assert_eq!(
                serde_json::to_string(&map).expect("JSON"),
                after.as_str(),
                "what is read is what was recorded"
            );
        }
    }
}

fn check_usage(state: &State) {
    for kind in state.kinds().referable() {
        for id in state.ids(kind.name().as_str()) {
            let key = fleet::DocumentKey::new(kind.name(), id);
            let users = state.users(kind.name().as_str(), id.as_str()).count();
            assert_eq!(users > 0, state.usage(&key) > 0, "{key}: {users} users");
            assert!(state.usage(&key) >= users, "{key}");
        }
    }
}

/// Undoes a commit and shows that everything is as before, but for tombstones of clusters that it created.
fn check_inverse(before: &State, applied: &Applied, commit: &Commit, now: i64) {
    let operations = match inverse(before, commit) {
        Ok(operations) => operations,
        Err(Irreversible::Forgotten(_) | Irreversible::Kind(_) | Irreversible::System(_)) => return,
    };
    let transaction = |operations: Vec<Operation>, confirm| Transaction {
        operations,
        derived: true,
        confirm,
        origin: origin(u128::MAX, now),
    };
    let undone = match apply(&applied.next, &TIGHT, &transaction(operations.clone(), None)) {
        Err(Rejection::Confirm(stopped)) => {
            apply(&applied.next, &TIGHT, &transaction(operations, Some(stopped.digest)))
        }
        Ok(undone) => {
            assert!(undone.removals.is_empty(), "what a revert removes is never named");
            Ok(undone)
        }
        refused => refused,
    };
    let undone = match undone {
        Ok(undone) => undone.next,
        Err(Rejection::Allowance(_)) => return,
        Err(rejection) if rejection.reason() == Some(&Reason::Protected) => return,
        Err(rejection) => panic!("the inverse was rejected: {rejection:#?}"),
    };
    let dns =
        |state: &State| state.tombstones().iter().map(|t| t.doc.dns.to_string()).collect::<BTreeSet<_>>();
    let more: Vec<Operation> = dns(&undone)
        .difference(&dns(before))
        .map(|dns| Operation::Forget { dns: dns.as_str().into() })
        .collect();
    let cleaned = apply(&undone, &TIGHT, &transaction(more, None)).expect("tombstones can be forgotten").next;
    let replaced = before
        .tombstones()
        .iter()
        .any(|t| cleaned.tombstone(t.doc.dns.as_str()).map(|now| now.doc.uid) != Some(t.doc.uid));
    if !replaced {
        assert_eq!(contents(&cleaned), contents(before));
    }
}

/// What effects say must be what a comparison of all answers says.
fn check_effects(before: &State, after: &State, commit: &Commit) {
    type Seen = BTreeSet<(String, String, String, &'static str)>;
    let answers = |state: &State| {
        let mut all = BTreeMap::new();
        for cluster in state.clusters() {
            for kind in state.kinds().referable() {
                for input in naive::inputs(state, cluster.doc.id.as_str(), kind) {
                    all.insert(
                        (
                            cluster.doc.id.to_string(),
                            kind.name().to_string(),
                            input["id"].as_str().expect("an id").to_owned(),
                        ),
                        input,
                    );
                }
            }
        }
        all
    };
    let (was, is) = (answers(before), answers(after));
    let mut expected: Seen = BTreeSet::new();
    for ((cluster, kind, input), value) in &was {
        match is.get(&(cluster.clone(), kind.clone(), input.clone())) {
            None => expected.insert((cluster.clone(), kind.clone(), input.clone(), "removed")),
            Some(now) if now != value => {
                expected.insert((cluster.clone(), kind.clone(), input.clone(), "changed"))
            }
            Some(_) => false,
        };
    }
    expected.extend(
        is.keys()
            .filter(|key| !was.contains_key(*key))
            .map(|(c, k, i)| (c.clone(), k.clone(), i.clone(), "added")),
    );
    let effects = Effects::between(before, after, commit.changes.iter().map(Change::key));
    let mut seen: Seen = BTreeSet::new();
    for effect in &effects.effects {
        let what = match &effect.change {
            InputChange::Added => "added",
            InputChange::Removed => "removed",
            InputChange::Changed(fields) => {
                assert!(!fields.is_empty());
                "changed"
            }
        };
        seen.extend(
            effect.clusters.iter().map(|cluster| {
                (cluster.to_string(), effect.kind.to_string(), effect.input.to_string(), what)
            }),
        );
    }
    assert_eq!(seen, expected);
}

/// What the guard lets through without a confirmation, found out independently.
#[derive(Default)]
struct Watch {
    spent: Vec<(i64, usize, usize)>,
    confirmed: Vec<i64>,
}

impl Watch {
    fn confirmed(&mut self, after: &State) {
        let now = after.time().0;
        self.confirmed.push(now);
        let confirmed = self.confirmed.iter().filter(|at| now - **at < 3_600_000).count();
        assert!(confirmed <= TIGHT.confirmations_per_hour as usize, "{confirmed} confirmations");
    }

    fn unconfirmed(&mut self, before: &State, after: &State, operations: &[Operation], lost: &Lost) {
        let now = after.time().0;
        let gone = |cluster: &str| after.cluster(cluster).is_none();
        let decommissioned: Vec<_> =
            before.clusters().map(|c| c.doc.id.as_str()).filter(|id| gone(id)).collect();
        assert!(decommissioned.len() <= 1, "(d) {decommissioned:?}");
        for removal in lost {
            assert!(
                spells(operations, removal, gone(&removal.0)),
                "{removal:?} was not named by {operations:#?}"
            );
        }
        let clusters: BTreeSet<&str> =
            lost.iter().map(|(cluster, ..)| cluster.as_str()).chain(decommissioned.iter().copied()).collect();
        assert!(clusters.len() <= TIGHT.guard_clusters as usize, "(c) {clusters:?}");
        let living: Lost = lost.iter().filter(|(cluster, ..)| !gone(cluster)).cloned().collect();
        let (had, has) = (installed(before), installed(after));
        let count = |all: &BTreeMap<(String, String, String), Value>, cluster: &str, kind: &str| {
            all.keys().filter(|(c, k, _)| c == cluster && k == kind).count()
        };
        for (cluster, kind, _) in &living {
            let removed = living.iter().filter(|(c, k, _)| c == cluster && k == kind).count();
            assert!(removed < 2 || count(&has, cluster, kind) > 0, "(a) {living:?}");
            assert!(removed < 3 || removed * 2 <= count(&had, cluster, kind), "(b) {living:?}");
        }
        let each = living.iter().filter(|(_, kind, _)| kind == "namespaces" || kind == "clusters").count();
        self.spent.push((now, decommissioned.len() + each, living.len() - each));
        let (deletions, others) = self
            .spent
            .iter()
            .filter(|(at, ..)| now - at < 3_600_000)
            .fold((0, 0), |sum, (_, d, o)| (sum.0 + d, sum.1 + o));
        let mine = self.spent.last().expect("just pushed");
        assert!(mine.1 == 0 || deletions <= TIGHT.deletions_per_hour as usize, "(e) {deletions} deletions");
        assert!(mine.2 == 0 || others <= TIGHT.removals_per_hour as usize, "(e) {others} removals");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_transactions_keeps_every_promise(transactions in transactions()) {
        let mut fleet = start();
        let mut watch = Watch::default();
        for (minutes, operations) in transactions {
            fleet.now += minutes * 60_000;
            let before = fleet.state.clone();
            let (digest, head) = (before.digest(), before.head());
            let result = fleet.try_apply(operations.clone());
            prop_assert_eq!((before.digest(), before.head()), (digest, head), "a state is a value");
            let (applied, confirmed) = match result {
                Ok(applied) => (applied, false),
                Err(Rejection::Refused(violations)) => {
                    prop_assert!(!violations.is_empty() && violations.iter().all(|v| v.operation < operations.len() && !v.message.is_empty()));
                    check_answers(&before);
                    continue;
                }
                Err(Rejection::Confirm(stopped)) => match fleet.send(operations.clone(), Some(stopped.digest)) {
                    Ok(applied) => (applied, true),
                    Err(rejection) => {
                        prop_assert!(matches!(rejection, Rejection::Allowance(_)), "{:?}", rejection);
                        continue;
                    }
                },
                Err(Rejection::Allowance(_)) => continue,
            };
            let after = &applied.next;
            let lost = lost(&before, after);
            let told: Lost = applied.removals.inputs.iter().map(|r| (r.cluster.to_string(), r.kind.to_string(), r.input.to_string())).collect();
            prop_assert_eq!(&told, &lost, "the removals are what Flux would delete");
            if confirmed {
                watch.confirmed(after);
            } else {
                watch.unconfirmed(&before, after, &operations, &lost);
            }
            check_replay(&before, &applied);
            check_answers(after);
            check_usage(after);
            if let Some(commit) = &applied.commit {
                check_effects(&before, after, commit);
                check_inverse(&before, &applied, commit, fleet.now);
            }
        }
    }
}

/// The property above is worth as much as what its generator reaches. This counts it, on the same transactions every time.
#[test]
fn random_transactions_reach_every_outcome() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut count = |what| *seen.entry(what).or_default() += 1;
    for _ in 0..200 {
        let tree = transactions().new_tree(&mut runner).expect("a value");
        let mut fleet = start();
        for (minutes, operations) in proptest::strategy::ValueTree::current(&tree) {
            fleet.now += minutes * 60_000;
            let before = fleet.state.clone();
            match fleet.try_apply(operations.clone()) {
                Ok(applied) if applied.commit.is_none() => count("no change"),
                Ok(applied) => {
                    count(if applied.removals.is_empty() { "accepted" } else { "accepted, with removals" });
                    let undone = inverse(&before, applied.commit.as_ref().expect("a commit"));
                    count(if undone.is_ok() { "can be undone" } else { "cannot be undone" });
                }
                Err(Rejection::Refused(violations)) => count(match violations[0].reason {
                    Reason::Missing => "missing",
                    Reason::Exists => "exists",
                    Reason::InUse { .. } => "in use",
                    _ => "invalid",
                }),
                Err(Rejection::Confirm(stopped)) => {
                    count(match &stopped.because {
                        because if because.contains("by name") => "unnamed",
                        because if because.contains("without any") => "rule a",
                        because if because.contains("would lose") => "rule b",
                        because if because.contains("more than") => "rule c",
                        because if because.contains("at once, the first") => "rule d",
                        because => panic!("{because}"),
                    });
                    if fleet.send(operations, Some(stopped.digest)).is_err() {
                        count("too many confirmations");
                    }
                }
                Err(Rejection::Allowance(_)) => count("rule e"),
            }
        }
    }
    let floors = [
        ("no change", 50),
        ("accepted", 150),
        ("accepted, with removals", 150),
        ("can be undone", 250),
        ("missing", 50),
        ("exists", 30),
        ("in use", 10),
        ("invalid", 50),
        ("unnamed", 50),
        ("rule a", 10),
        ("rule b", 10),
        ("rule c", 5),
        ("rule d", 5),
        ("rule e", 5),
        ("too many confirmations", 5),
    ];
    for (what, floor) in floors {
        assert!(seen.get(what).is_some_and(|count| *count >= floor), "{what} is seldom reached: {seen:#?}");
    }
}
