//! What a plan costs: CPU and the most memory that it takes at once, for changes that reach every cluster. `make bench-core` runs it.

use bench::Counting;
use fleet::{
    CommitId, Operation, Origin, Patch, Policy, Selector, State, Target, Timestamp, Transaction, plan,
};
use serde_json::json;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// The CPU time of this process in milliseconds; the kernel counts it in hundredths of a second.
fn cpu_millis() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |n: usize| fields.get(n).and_then(|field| field.parse::<u64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) * 10
}

fn tell(name: &str, state: &State, operations: Vec<Operation>) {
    const RUNS: u64 = 5;
    let origin = Origin {
        commit: CommitId(7),
        time: Timestamp(1_900_000_000_000),
        actor: "bench".into(),
        ..Origin::default()
    };
    let transaction = Transaction { operations, derived: false, confirm: None, origin };
    let (live, before) = (ALLOCATOR.begin(), cpu_millis());
    let (mut reached, mut groups) = (0, 0);
    for _ in 0..RUNS {
        let plan = plan(state, &Policy::default(), &transaction).expect("a good transaction");
        groups = plan.documents().len();
        reached = plan.effects.clusters;
    }
    println!(
        "{:>7} clusters, {name}: {} ms of CPU, {} MiB at most; {groups} groups of documents, {reached} clusters reached",
        state.cluster_count(),
        (cpu_millis() - before) / RUNS,
        (ALLOCATOR.most() - live) >> 20,
    );
}

fn main() {
    let all = || Target::Selected(Selector::parse("id").expect("a selector"));
    for clusters in [10_000, 100_000] {
        let state = bench::fleet(clusters);
        if clusters <= 10_000 {
            let patch = Patch::Strategic(json!({"labels": {"wave": "2"}}));
            let label = Operation::Patch { kind: "clusters".into(), target: all(), patch };
            tell("a label by selector", &state, vec![label]);
            let tag = |n: usize| Operation::PatchReference {
                clusters: all(),
                kind: "platform_components".into(),
                id: bench::component_id(n).into(),
                patch: Patch::Strategic(json!({"oci_tag": "v2.0.0"})),
            };
            tell("a tag by selector on all", &state, [3, 23, 43, 63, 83].map(tag).into());
        }
        let upgrade = |n: usize| Operation::Patch {
            kind: "platform_components".into(),
            target: Target::one(&bench::component_id(n)),
            patch: Patch::Strategic(json!({"oci_tag": "v2.0.0"})),
        };
        tell("a catalog change that reaches all", &state, [3, 23, 43, 63, 83].map(upgrade).into());
    }
}
