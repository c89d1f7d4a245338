//! `decommission` and `forget`: the end of a cluster.

use crate::fleet::{READER, fleet};
use crate::frs::World;
use crate::service::Service;
use crate::snapshot::snapshot;

#[test]
fn a_cluster_is_decommissioned_and_then_forgotten() {
    let world = World::new();
    let text = world.transcript(&[
        "decommission west --plan",
        "decommission west --yes --reason 'end of life'",
        "get clusters -o name",
        "get decommissioned",
        "inputs west namespaces",
        "forget west.k8s.example.com --plan",
        "forget west.k8s.example.com --yes",
        "get decommissioned",
    ]);
    assert_eq!(world.service.head(), 3);
    snapshot!(text);
}

#[test]
fn one_that_is_protected_unknown_or_not_decommissioned_is_not() {
    let world = World::new();
    snapshot!(world.harmless(&[
        "decommission north --yes",
        "decommission nobody --yes",
        "forget east.k8s.example.com --yes",
    ]));
}

#[test]
fn the_plan_says_what_the_guard_thinks_of_it() {
    let world = World::of(Service::with(&fleet(), &[("GUARD_DELETIONS_PER_HOUR", "0")]));
    snapshot!(world.transcript(&["decommission west --plan", "decommission west --yes", "audit --limit 1"]));
}

#[test]
fn a_token_that_may_only_read_decommissions_nothing() {
    let world = World::new().with("FLUX_API_TOKEN", READER);
    snapshot!(world.harmless(&["decommission west --yes"]));
}
