//! The largest transactions of some shapes that the core still accepts, and how long each takes: nobody else's change is decided in that
//! time. `make bench-work` runs it. What counts is CPU time: the machine may be busy.

use std::time::Duration;

use bench::component_id;
use fleet::{
    CommitId, Operation, Origin, Patch, Policy, Reason, Rejection, Selector, State, Target, Timestamp,
    Transaction, apply,
};
use serde_json::{Value, json};

/// The CPU time of this thread.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent = stat.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(spent.expect("the kernel counts"))
}

fn decide(state: &State, operations: Vec<Operation>) -> (Duration, Result<(), Rejection>) {
    let origin = Origin { commit: CommitId(7), time: Timestamp(1_900_000_000_000), ..Origin::default() };
    let transaction = Transaction { operations, derived: false, confirm: None, origin };
    let before = cpu();
    let outcome = apply(state, &Policy::default(), &transaction).map(drop);
    (cpu().saturating_sub(before), outcome)
}

fn is_too_large(outcome: &Result<(), Rejection>) -> bool {
    outcome.as_ref().is_err_and(|rejection| rejection.reason() == Some(&Reason::TooLarge))
}

/// Finds the largest one that is not too large, of at most so many, and says how long it takes, and its refusal.
fn largest(shape: &str, most: usize, state: &State, operations: impl Fn(usize) -> Vec<Operation>) {
    let (mut fits, mut too_large) = (1, most + 1);
    if is_too_large(&decide(state, operations(most)).1) {
        too_large = most;
        while too_large - fits > fits / 8 + 1 {
            let middle = fits.midpoint(too_large);
            let refused = is_too_large(&decide(state, operations(middle)).1);
            *(if refused { &mut too_large } else { &mut fits }) = middle;
        }
    } else {
        fits = most;
    }
    let (took, outcome) = decide(state, operations(fits));
    let outcome = if outcome.is_ok() { "accepted" } else { "refused for another reason" };
    print!("  {shape}: {fits} are {outcome} in {:.2} s", took.as_secs_f64());
    if too_large <= most {
        let (took, _) = decide(state, operations(most));
        print!(", {most} are too large after {:.2} s", took.as_secs_f64());
    }
    println!();
}

fn all(operation: impl Fn(usize) -> Operation) -> impl Fn(usize) -> Vec<Operation> {
    move |count| (0..count).map(&operation).collect()
}

fn selected(selector: &str) -> Target {
    Target::Selected(Selector::parse(selector).expect("a selector"))
}

fn patch(target: Target, patch: Patch) -> Operation {
    Operation::Patch { kind: "clusters".into(), target, patch }
}

fn label(n: usize) -> Patch {
    Patch::Strategic(json!({"labels": {"wave": n.to_string()}}))
}

fn items(count: usize) -> Patch {
    let item = json!({"op": "add", "path": "/namespaces/0", "value": {"id": "namespace-001"}});
    Patch::Json(Value::Array(vec![item; count]))
}

fn component(n: usize, body: Value) -> Operation {
    let kind = "platform_components".into();
    Operation::Patch { kind, target: Target::one(&component_id(n)), patch: Patch::Strategic(body) }
}

fn main() {
    for clusters in [800, 10_000, 100_000] {
        println!("{clusters} clusters:");
        let state = bench::fleet(clusters);
        if clusters <= 10_000 {
            largest(
                "a label on all of them, n times",
                10_000,
                &state,
                all(|n| patch(selected("id"), label(n))),
            );
            largest(
                "a JSON patch of all of them, n times",
                10_000,
                &state,
                all(|n| {
                    let item = json!([{"op": "add", "path": "/labels/wave", "value": n.to_string()}]);
                    patch(selected("id"), Patch::Json(item))
                }),
            );
            largest("n items of a JSON patch of all of them", 20_000, &state, |n| {
                vec![patch(selected("id"), items(n))]
            });
        } else {
            largest("a label on all of them", 1, &state, all(|n| patch(selected("id"), label(n))));
        }
        largest("n items of a JSON patch of one of them", 100_000, &state, |n| {
            vec![patch(Target::one(&bench::cluster_id(1)), items(n))]
        });
        largest(
            "n selectors of one cluster",
            10_000,
            &state,
            all(|n| patch(selected("id=cluster-000001"), label(n))),
        );
        largest(
            "n deletions of what is in use",
            100,
            &state,
            all(|n| Operation::Delete {
                kind: "platform_components".into(),
                target: Target::one(&component_id(n)),
            }),
        );
        largest(
            "n components with another tag",
            100,
            &state,
            all(|n| component(n, json!({"oci_tag": "v1.0.0-longer"}))),
        );
        largest(
            "n components with other dependencies",
            100,
            &state,
            all(|n| component(n, json!({"depends_on": [component_id((n + 1) % 100)]}))),
        );
        let new = |n: usize| {
            let body = bench::cluster(1_000_000 + n);
            Operation::Create { kind: "clusters".into(), body, replace_decommissioned: false }
        };
        largest("n new clusters", 10_000, &state, all(new));
    }
}
