//! A client in a loop that confirms whatever it is asked, on random sequences of everything that takes something from a cluster. What it
//! has removed is judged by what polls are answered; whether it was asked or allowed, by plans and allowances.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::*;
use crate::naive;
use crate::properties::{CLUSTERS, COMPONENTS, burst, operation, start};
use fleet::{
    Answer, Grant, Operation, Patch, Policy, Rejection, State, Target, Timestamp, list_clusters, render,
};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

const HOUR: i64 = 3_600_000;
/// What an admin allows, now and then.
const GRANTED: (u32, u32) = (2, 3);

/// A cluster goes, and another id takes over its DNS name with some of what it had.
fn rename() -> impl Strategy<Value = Vec<Operation>> {
    let ids = || select(vec!["c0", "c1", "other-0", "other-1"]);
    (ids(), ids(), select(vec!["c0", "c1"]), subsequence(&COMPONENTS[..6], 0..6)).prop_map(
        |(old, new, dns, components)| {
            let mut body = cluster(new);
            body["cluster_dns"] = json!(format!("{dns}.k8s.example.com"));
            body["platform_components"] = components.iter().map(|id| json!({"id": id})).collect::<Value>();
            let create = Operation::Create { kind: "clusters".into(), body, replace_decommissioned: true };
            vec![delete("clusters", old), create]
        },
    )
}

/// A component of the catalog comes in another way, or from another place.
fn elsewhere() -> impl Strategy<Value = Vec<Operation>> {
    let body = prop_oneof![
        select(vec!["oci://registry.example.com/kk", "oci://registry.example.com/ll"])
            .prop_map(|url| json!({"oci_url": url})),
        any::<bool>().prop_map(|enabled| json!({"cluster_env_enabled": enabled})),
        select(vec!["helm", "kustomize"]).prop_map(|delivery| json!({"delivery": delivery})),
    ];
    (select(vec!["k0", "k1"]), body).prop_map(|(id, body)| vec![strategic("platform_components", id, body)])
}

/// Another version for everybody: it removes nothing, and reaches many.
fn upgrade() -> impl Strategy<Value = Vec<Operation>> {
    (select(COMPONENTS[..6].to_vec()), 2..100_u32)
        .prop_map(|(id, tag)| vec![strategic("platform_components", id, json!({"oci_tag": tag.to_string()}))])
}

fn environment() -> impl Strategy<Value = Vec<Operation>> {
    let target = prop_oneof![
        select(CLUSTERS[..5].to_vec()).prop_map(Target::one),
        select(vec!["id", "environment=dev", "id in (c0,c1)", "id=c2"]).prop_map(selected),
    ];
    (target, select(vec!["dev", "qa", "prod"])).prop_map(|(target, environment)| {
        let patch = Patch::Merge(json!({"environment": environment}));
        vec![Operation::Patch { kind: "clusters".into(), target, patch }]
    })
}

/// What the client does next.
#[derive(Clone, Debug)]
enum Turn {
    /// Sends it; with the digest of its own dry run at once, or only when it is asked.
    Send { operations: Vec<Operation>, is_eager: bool, derived: bool },
    /// An admin allows the client a little.
    Allow,
}

/// What the client does, with the minutes that pass before each turn; and how many clusters a change may reach without a question.
type Game = (Option<u32>, Vec<(i64, Turn)>);

fn games() -> impl Strategy<Value = Game> {
    let operations = prop_oneof![
        3 => burst(),
        2 => prop::collection::vec(operation(), 1..3),
        2 => rename(),
        2 => elsewhere(),
        2 => environment(),
        3 => upgrade(),
    ];
    let send = (operations, any::<bool>(), prop::bool::weighted(0.2))
        .prop_map(|(operations, is_eager, derived)| Turn::Send { operations, is_eager, derived });
    let turn = prop_oneof![12 => send, 1 => Just(Turn::Allow)];
    (prop::option::weighted(0.4, 1..4_u32), prop::collection::vec((0..8_i64, turn), 1..25))
}

/// What each input hangs on, by DNS name, kind and id.
type Polled = BTreeMap<(String, String, String), Value>;

/// What everybody who polls is answered: each DNS name that was ever known, and each list of clusters.
struct Served {
    /// By DNS name, kind and input.
    inputs: Polled,
    /// The DNS name of each listed cluster, and its environment.
    listed: BTreeMap<String, (String, String)>,
}

impl Served {
    fn by(state: &State, names: &BTreeSet<String>) -> Self {
        let mut inputs = Polled::new();
        for (dns, kind) in names.iter().flat_map(|dns| state.kinds().referable().map(move |kind| (dns, kind)))
        {
            let Answer::Inputs(answer) = render(state, dns, kind.path()) else { continue };
            let body: Value = serde_json::from_slice(answer.body()).expect("JSON");
            for input in body["inputs"].as_array().expect("a list").iter().filter(|i| i["enabled"] != false) {
                let id = input["id"].as_str().expect("an id").to_owned();
                inputs.insert((dns.clone(), kind.name().to_string(), id), naive::hangs_on(input));
            }
        }
        let mut listed = BTreeMap::new();
        for environment in state.kinds().environments() {
            let list = list_clusters(state, Some(environment), true).expect("a list");
            let body: Value = serde_json::from_slice(list.body()).expect("JSON");
            for entry in body["inputs"].as_array().expect("a list") {
                let text = |member: &str| entry[member].as_str().expect("a string").to_owned();
                listed.insert(text("id"), (text("cluster_dns"), environment.to_owned()));
            }
        }
        Self { inputs, listed }
    }

    /// How many deletions and how many removals lie between two: clusters that are in no list or not in their environment's, and inputs
    /// that a DNS name no longer gets though a cluster still has it.
    fn lost(&self, after: &Self) -> (usize, usize) {
        let moved = |(id, (_, environment)): (&String, &(String, String))| {
            after.listed.get(id).is_none_or(|(_, now)| now != environment)
        };
        let clusters = self.listed.iter().filter(|entry| moved(*entry)).count();
        let is_listed = |dns: &str| after.listed.values().any(|(listed, _)| listed == dns);
        let lost = |(key, was): &(&(String, String, String), &Value)| {
            is_listed(&key.0) && after.inputs.get(*key) != Some(*was)
        };
        let (each, others): (Vec<_>, Vec<_>) =
            self.inputs.iter().filter(lost).partition(|((_, kind, _), _)| kind == "namespaces");
        (clusters + each.len(), others.len())
    }
}

/// What went through without an allowance, and what was allowed.
#[derive(Default)]
struct Seen {
    on_budget: Vec<(i64, usize, usize)>,
    confirmed: Vec<i64>,
    allowed: (usize, usize),
    allowed_changes: usize,
    grants: usize,
}

impl Seen {
    fn within(&self, policy: &Policy, now: i64) {
        let recent = |at: &i64| now - at < HOUR;
        let (deletions, removals) = self
            .on_budget
            .iter()
            .filter(|(at, ..)| recent(at))
            .fold((0, 0), |sum, (_, deletions, removals)| (sum.0 + deletions, sum.1 + removals));
        assert!(deletions <= policy.deletions_per_hour as usize, "{deletions} deletions within an hour");
        assert!(removals <= policy.removals_per_hour as usize, "{removals} removals within an hour");
        let confirmed = self.confirmed.iter().filter(|at| recent(at)).count();
        assert!(
            confirmed <= policy.confirmations_per_hour as usize,
            "{confirmed} confirmations within an hour"
        );
        let granted = (GRANTED.0 as usize * self.grants, GRANTED.1 as usize * self.grants);
        // Each takes something of an allowance.
        assert!(self.allowed_changes <= granted.0 + granted.1, "{} allowed changes", self.allowed_changes);
        assert!(
            self.allowed.0 <= granted.0 && self.allowed.1 <= granted.1,
            "{:?} of {granted:?}",
            self.allowed
        );
    }
}

/// Plays a sequence, and counts what it has reached.
fn play((reach, turns): Game, mut count: impl FnMut(&'static str)) {
    let mut fleet = start();
    fleet.policy.changed_clusters = reach;
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut seen = Seen::default();
    for (minutes, turn) in turns {
        fleet.now += minutes * 60_000;
        let Turn::Send { operations, is_eager, derived } = turn else {
            fleet.derived = false;
            let (deletions, removals) = GRANTED;
            let grant = Grant { to: "tester".into(), deletions, removals, minutes: 30 };
            fleet.reasoned("a little more", vec![Operation::Allow(grant)]);
            seen.grants += 1;
            continue;
        };
        fleet.derived = derived;
        names.extend(fleet.state.clusters().map(|cluster| cluster.doc.dns.to_string()));
        let before = Served::by(&fleet.state, &names);
        let allowed_before = fleet.state.allowances(Timestamp(fleet.now)).len();
        let left = |fleet: &Fleet| -> u32 {
            let live = fleet.state.allowances(Timestamp(fleet.now));
            live.iter().map(|(_, allowance)| allowance.deletions + allowance.removals).sum()
        };
        let had = left(&fleet);
        let digest = is_eager.then(|| fleet.try_plan(operations.clone()).map(|plan| plan.confirm));
        let Ok(digest) = digest.transpose() else { continue };
        let asked =
            matches!(fleet.try_plan(operations.clone()), Ok(plan) if plan.questions.confirmation().is_some());
        let outcome = match fleet.send(operations.clone(), digest) {
            Err(Rejection::Confirm(stopped)) => fleet.send(operations, Some(stopped.digest)),
            other => other,
        };
        match outcome {
            Err(Rejection::Refused(_)) => continue,
            Err(Rejection::Confirm(stopped)) => panic!("asked twice: {}", stopped.because),
            Err(Rejection::Allowance(_)) => {
                count("stopped for good");
                continue;
            }
            Ok(_) => {}
        }
        names.extend(fleet.state.clusters().map(|cluster| cluster.doc.dns.to_string()));
        let (deletions, removals) = before.lost(&Served::by(&fleet.state, &names));
        let now = fleet.state.time().0;
        let was_allowed =
            left(&fleet) < had || fleet.state.allowances(Timestamp(fleet.now)).len() < allowed_before;
        if was_allowed {
            count(if deletions + removals > 0 { "allowed" } else { "allowed, though it removes nothing" });
            seen.allowed_changes += 1;
            seen.allowed.0 += deletions;
            seen.allowed.1 += removals;
        } else if asked {
            count("confirmed");
            seen.confirmed.push(now);
        } else if deletions + removals > 0 {
            count("on the budget");
            seen.on_budget.push((now, deletions, removals));
        }
        seen.within(&fleet.policy, now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_client_that_confirms_everything_removes_no_more_than_the_hour_allows(game in games()) {
        play(game, |_| {});
    }
}

/// The property is worth as much as what its generator reaches.
#[test]
fn the_confirming_client_reaches_every_end() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for _ in 0..100 {
        let tree = games().new_tree(&mut runner).expect("a value");
        play(proptest::strategy::ValueTree::current(&tree), |what| *seen.entry(what).or_default() += 1);
    }
    for (what, floor) in [
        ("stopped for good", 20),
        ("allowed", 10),
        ("allowed, though it removes nothing", 10),
        ("confirmed", 20),
        ("on the budget", 20),
    ] {
        assert!(seen.get(what).is_some_and(|count| *count >= floor), "{what} is seldom reached: {seen:#?}");
    }
}
