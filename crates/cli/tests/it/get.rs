//! `get` and `kinds`.

use std::io::pipe;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::frs::{FRS, World};
use crate::service::Service;
use crate::snapshot::snapshot;

#[test]
fn tables_have_the_columns_that_are_worth_reading() {
    let world = World::new();
    snapshot!(world.harmless(&[
        "get clusters",
        "get clusters -o wide",
        "get components",
        "get components -o wide",
        "get namespaces",
        "get namespaces -o wide",
        "get rolebindings",
    ]));
}

#[test]
fn documents_are_shown_as_apply_reads_them() {
    let world = World::new();
    snapshot!(world.harmless(&[
        "get cluster east -o yaml",
        "get cluster east -o json",
        "get namespaces -o yaml",
        "get namespaces -o json",
        "get rolebinding viewers -o yaml",
        "get clusters -o name",
    ]));
}

#[test]
fn a_kind_may_be_called_by_any_of_its_names() {
    let world = World::new();
    let names = |kind: &str| world.frs(&format!("get {kind} -o name")).expect(0).stdout;
    for (kind, typed) in [
        ("platform_components", "platform-components platform_component component comp pc"),
        ("clusters", "cluster cl Clusters"),
        ("namespaces", "namespace ns"),
        ("rolebindings", "rolebinding rb role"),
    ] {
        for typed in typed.split(' ') {
            assert_eq!(names(typed), names(kind), "{typed}");
        }
    }
}

#[test]
fn lists_can_be_narrowed_by_selector_and_by_field() {
    let world = World::new();
    snapshot!(world.harmless(&[
        "get clusters -l region=eu -o name",
        "get clusters -l 'environment=prod,region in (eu,us)' -o name",
        "get clusters --selector '!tier' -o name",
        "get namespaces -l team=b -o name",
        "get clusters --filter environment=dev -o name",
        "get components --filter delivery=helm --filter oci_tag=6.7.1 -o name",
        "get clusters -l region=nowhere",
        "get clusters -l region=nowhere -o json",
        "get clusters -l region=nowhere -o yaml",
        "get clusters -l region=nowhere -o name",
        "get clusters -l 'region in ('",
        "get clusters --filter colour=red",
        "get clusters --filter environment",
    ]));
}

#[test]
fn what_is_there_is_shown_and_what_is_missing_is_said() {
    let world = World::new();
    snapshot!(world.harmless(&[
        "get clusters east west",
        "get clusters east nobody",
        "get clusters nobody east nothing",
        "get clusters/east clusters/west -o name",
        "get cluster ..",
        "get clusters east nobody -o json",
        "get cluster nobody",
        "get namespace modern",
        "get pods",
        "get n",
    ]));
}

#[test]
fn an_empty_fleet_is_said_to_be_empty() {
    let world = World::of(Service::with(&json!({}), &[]));
    snapshot!(world.harmless(&[
        "get clusters",
        "get clusters -o wide",
        "get clusters -o json",
        "get namespaces -o yaml",
        "get components -o name",
        "get decommissioned",
        "export",
    ]));
}

#[test]
fn records_of_decommissioned_clusters_can_be_shown() {
    let world = World::new();
    let none = world.harmless(&["get decommissioned", "get decommissioned -o json"]);
    world.frs("decommission west --yes").expect(0);
    let one = world.harmless(&[
        "get decommissioned",
        "get dec -o name",
        "get decommissioned -o json",
        "get decommissioned -o yaml",
        "get decommissioned west",
        "get decommissioned --watch",
    ]);
    snapshot!([none, one].join("\n"));
}

#[test]
fn a_list_of_several_pages_is_shown_whole() {
    let many: Vec<Value> = (0..2_345).map(|number| json!({"id": format!("n-{number:04}")})).collect();
    let world = World::of(Service::with(&json!({ "namespaces": many }), &[]));
    let names = world.frs("get namespaces -o name").expect(0).stdout;
    assert_eq!((names.lines().count(), names.lines().last()), (2_345, Some("namespaces/n-2344")));
    let exported = world.frs("export").expect(0).stdout;
    assert_eq!(exported.matches("kind: namespace\n").count(), 2_345);
}

#[test]
fn kinds_are_those_of_the_service() {
    let world = World::new();
    snapshot!(world.harmless(&["kinds", "kinds -o name"]));
    let schemas = world.frs("kinds -o json").expect(0).json();
    assert_eq!(schemas, world.document("/kinds"));
    let yaml = world.frs("kinds -o yaml").expect(0).stdout;
    assert!(yaml.contains("singular: rolebinding\n"), "{yaml}");
}

#[test]
fn a_reader_who_goes_away_is_no_failure() {
    let world = World::new();
    for line in [&["get", "clusters"][..], &["export"], &["kinds", "-o", "json"], &["completion", "bash"]] {
        let (reader, writer) = pipe().expect("a pipe");
        drop(reader);
        let mut command = world.desk.command(FRS);
        let output = command.args(line).stdout(writer).stdin(Stdio::null()).output().expect("an end");
        assert_eq!(output.status.code(), Some(0), "{line:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line:?}");
    }
}
