//! `export`: the fleet as files.

use crate::frs::{World, told};
use crate::snapshot::snapshot;

#[test]
fn the_whole_fleet_is_written_to_stdout() {
    let world = World::new();
    snapshot!(world.harmless(&["export", "export namespaces rb", "export pods"]));
}

#[test]
fn each_document_is_a_file() {
    let world = World::new();
    let run = world.frs("export -o fleet").expect(0);
    let files = world.desk.files("fleet");
    snapshot!(format!("{run}\n{}", told(&world.desk, &files)));
}

#[test]
fn export_then_apply_changes_nothing() {
    let world = World::new();
    // What YAML might take for something else.
    world.desk.file(
        "odd.json",
        r#"[{"kind": "ns", "id": "odd", "annotations": {"example.com/a": "yes", "example.com/b": "1e3", "example.com/c": " x\n\ty: z # ", "example.com/d": "", "example.com/e": "null", "example.com/f": "ä\u2028'\"\\", "example.com/g": "a\n\n\nb\n", "example.com/h": "0o7", "example.com/i": "2026-11-16", "example.com/j": "{{ x }}", "example.com/k": "- a", "example.com/l": "~"}}, {"kind": "ns", "id": "null"}, {"kind": "ns", "id": "007"}, {"kind": "ns", "id": "true"}]"#,
    );
    world.frs("apply -f odd.json --yes").expect(0);
    world.frs("export -o fleet").expect(0);
    let head = world.service.head();
    let files = world.frs("apply -f fleet --yes").expect(0);
    let stream = world.frs("export").expect(0).stdout;
    let piped = world.desk.piped("apply -f - --yes", &stream).expect(0);
    for run in [files, piped] {
        assert!(run.stderr.contains("Nothing would change."), "{run}");
        assert!(run.stdout.lines().all(|line| line.ends_with(" unchanged")), "{run}");
    }
    assert_eq!(world.service.head(), head, "there is no new revision");
    world.frs("diff -f fleet").expect(0);
    for format in ["yaml", "json"] {
        let shown = world.frs(&format!("get ns -o {format}")).expect(0).stdout;
        world.desk.piped("diff -f -", &shown).expect(0);
    }
}

#[test]
fn a_file_of_a_document_that_is_gone_is_told_and_removed_on_demand() {
    let world = World::new();
    world.frs("export -o fleet").expect(0);
    world.frs("delete namespace spare --yes").expect(0);
    let warned = world.frs("export -o fleet").expect(0);
    assert!(world.desk.path("fleet/namespaces/spare.yaml").exists());
    world.desk.file("fleet/namespaces/README.md", "not ours");
    let pruned = world.frs("export -o fleet --prune").expect(0);
    assert!(!world.desk.path("fleet/namespaces/spare.yaml").exists());
    assert!(world.desk.path("fleet/namespaces/README.md").exists());
    let again = world.frs("export -o fleet --prune").expect(0);
    world.desk.file("occupied", "");
    let occupied = world.frs("export -o occupied").expect(1);
    snapshot!([warned, pruned, again, occupied].map(|run| run.to_string()).join("\n"));
}

#[test]
fn credentials_and_signatures_of_a_source_go_through_every_command() {
    let world = World::new();
    let text = world.transcript(&[
        "patch component podinfo --set secretRef.name=registry --set verify.provider=cosign --set verify.secretRef.name=keys --yes",
        "get component podinfo -o yaml",
        "get component podinfo -o wide",
        "describe component podinfo",
        "inputs west platform_components -o yaml",
    ]);
    let exported = world.frs("export pc").expect(0).stdout;
    world.desk.piped("diff -f -", &exported).expect(0);
    world.desk.piped("apply -f - --yes", &exported).expect(0);
    assert_eq!(world.service.head(), 2);
    let without = exported.replace("  name: registry\n", "  name: another\n");
    let diff = world.desk.piped("diff -f -", &without).expect(1);
    let gone = world.frs("patch component podinfo --unset secretRef --unset verify --yes").expect(0);
    snapshot!([text, diff.to_string(), gone.to_string()].join("\n"));
}
