//! The core at fleets of 10 to 100,000 clusters: one-cluster patch, catalog change, render, replay, effects.

use std::hint::black_box;

use bench::{cluster_dns, cluster_id, component_id};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fleet::{
    Answer, CommitId, Effects, Operation, Origin, Patch, Policy, Selector, State, Target, Timestamp,
    Transaction, apply, plan, render,
};
use serde_json::{Value, json};

fn transaction(operation: Operation) -> Transaction {
    let origin = Origin {
        commit: CommitId(7),
        time: Timestamp(1_900_000_000_000),
        actor: "bench".into(),
        ..Origin::default()
    };
    Transaction { operations: vec![operation], derived: false, confirm: None, origin }
}

fn patch_of(kind: &str, id: &str, body: Value) -> Operation {
    Operation::Patch { kind: kind.into(), target: Target::one(id), patch: Patch::Strategic(body) }
}

fn patch(kind: &str, id: &str, body: Value) -> Transaction {
    transaction(patch_of(kind, id, body))
}

/// A catalog change that reaches every cluster: each has one of these five components.
fn everywhere_in_the_catalog() -> Transaction {
    let upgrade = |n: usize| patch_of("platform_components", &component_id(n), json!({"oci_tag": "v2.0.0"}));
    let one = transaction(upgrade(3));
    Transaction { operations: [3, 23, 43, 63, 83].map(upgrade).into(), ..one }
}

fn accepted(state: &State, transaction: &Transaction) -> fleet::Applied {
    apply(state, &Policy::default(), transaction).expect("the benchmark's transaction is a good one")
}

/// A plan, with all that is told of it.
fn planned(state: &State, transaction: &Transaction) -> usize {
    let plan =
        plan(state, &Policy::default(), transaction).expect("the benchmark's transaction is a good one");
    plan.documents().len() + plan.removals().len()
}

fn core(criterion: &mut Criterion) {
    let sizes: Vec<usize> = match std::env::var("BENCH_CLUSTERS") {
        Ok(one) => vec![one.parse().expect("BENCH_CLUSTERS is a number")],
        Err(_) => vec![10, 1_000, 10_000, 100_000],
    };
    for clusters in sizes {
        let state = bench::fleet(clusters);
        let one = |n: usize| (n * 7919) % clusters;
        let mut group = criterion.benchmark_group("core");
        group.sample_size(20);

        let mut n = 0;
        group.bench_function(BenchmarkId::new("patch one cluster", clusters), |bencher| {
            bencher.iter_batched(
                || {
                    n += 1;
                    let component = component_id((one(n) * 7) % 100);
                    patch(
                        "clusters",
                        &cluster_id(one(n)),
                        json!({"patches": {component: {"replicaCount": "77"}}}),
                    )
                },
                |transaction| accepted(&state, &transaction),
                BatchSize::SmallInput,
            );
        });
        let catalog_change =
            patch("platform_components", &component_id(3), json!({"oci_tag": "v2.0.0-longer-than-before"}));
        group.bench_function(BenchmarkId::new("change the catalog", clusters), |bencher| {
            bencher.iter(|| accepted(&state, &catalog_change));
        });
        let rewired = patch(
            "platform_components",
            &component_id(3),
            json!({"oci_url": "oci://registry.example.com/charts/three"}),
        );
        group.bench_function(BenchmarkId::new("change a component's source", clusters), |bencher| {
            bencher.iter(|| accepted(&state, &rewired));
        });
        // One transaction changes at most 10,000 entries.
        if clusters <= 10_000 {
            let everywhere = transaction(Operation::PatchReference {
                clusters: Target::Selected(Selector::parse("id").expect("a selector")),
                kind: "platform_components".into(),
                id: component_id(3).into(),
                patch: Patch::Strategic(json!({"oci_tag": "v2.0.0"})),
            });
            group.bench_function(BenchmarkId::new("set a tag by selector", clusters), |bencher| {
                bencher.iter(|| accepted(&state, &everywhere));
            });
            let labelled = transaction(Operation::Patch {
                kind: "clusters".into(),
                target: Target::Selected(Selector::parse("id").expect("a selector")),
                patch: Patch::Strategic(json!({"labels": {"wave": "2"}})),
            });
            group.bench_function(BenchmarkId::new("set a label by selector", clusters), |bencher| {
                bencher.iter(|| accepted(&state, &labelled));
            });
            for (name, transaction) in [("tag", &everywhere), ("label", &labelled)] {
                let name = format!("plan a {name} by selector");
                group.bench_function(BenchmarkId::new(name, clusters), |bencher| {
                    bencher.iter(|| planned(&state, transaction));
                });
            }
        }
        let everywhere = everywhere_in_the_catalog();
        group.bench_function(
            BenchmarkId::new("plan a catalog change that reaches all", clusters),
            |bencher| {
                bencher.iter(|| planned(&state, &everywhere));
            },
        );
        let applied = accepted(&state, &catalog_change);
        let commit = applied.commit.as_ref().expect("it changes something");
        group.bench_function(BenchmarkId::new("replay a catalog change", clusters), |bencher| {
            bencher.iter(|| state.replay(black_box(commit)).expect("it follows"));
        });
        group.bench_function(BenchmarkId::new("effects of a catalog change", clusters), |bencher| {
            bencher.iter(|| {
                Effects::between(&state, &applied.next, commit.changes.iter().map(fleet::Change::key))
            });
        });

        let Answer::Inputs(inputs) = render(&state, &cluster_dns(0), "platform-components") else {
            panic!("cluster 0 is there")
        };
        group.throughput(Throughput::Bytes(inputs.body().len() as u64));
        let names: Vec<String> = (0..1024).map(|n| cluster_dns(one(n))).collect();
        let mut n = 0;
        group.bench_function(
            BenchmarkId::new(format!("render {} bytes", inputs.body().len()), clusters),
            |bencher| {
                bencher.iter(|| {
                    n += 1;
                    render(&state, black_box(&names[n % names.len()]), "platform-components")
                });
            },
        );
        group.finish();
    }
}

criterion_group!(benches, core);
criterion_main!(benches);
