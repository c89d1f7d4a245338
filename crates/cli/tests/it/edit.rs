//! `edit`: what an editor makes of a document, and what others do to it meanwhile.

use crate::frs::{Desk, FRS, World, script};
use crate::proxy::{Fate, between, is_commit};
use crate::snapshot::snapshot;
use crate::terminal::Terminal;

/// A command line whose editor is a script; `$1` is the file.
fn with_editor(text: &str) -> World {
    let world = World::new();
    let editor = script(&world.desk, "editor.sh", text);
    world.with("EDITOR", &editor)
}

/// What somebody else does, once, while the editor is open.
fn meanwhile(change: &str) -> String {
    format!("if [ ! -e once ]; then touch once; {FRS} {change} --yes > /dev/null 2>&1; fi\n")
}

fn drafts(desk: &Desk) -> Vec<String> {
    desk.files("").into_iter().filter(|name| name.starts_with("east-")).collect()
}

#[test]
fn what_the_editor_changes_is_sent_and_nothing_else() {
    let world = with_editor("cp \"$1\" shown.yaml\nsed -i 's/node_count: 3/node_count: 5/' \"$1\"\n");
    let run = world.frs("edit cluster east --yes --reason 'more load'").expect(0);
    assert_eq!(world.document("/clusters/east")["node_count"], 5);
    assert_eq!(drafts(&world.desk), Vec::<String>::new());
    snapshot!(format!("{run}\n{}", world.desk.read("shown.yaml")));
}

#[test]
fn lists_and_maps_can_be_edited_too() {
    let world = with_editor(
        "cat > \"$1\" <<'E'\n\
         kind: cluster\nid: east\ncluster_name: east\ncluster_dns: east.k8s.example.com\nenvironment: prod\n\
         labels: {region: us}\nplatform_components: [{id: podinfo, enabled: false}, {id: traefik}]\nE\n",
    );
    let run = world.frs("edit cluster east --max-clusters 1").expect(0);
    let (run, written) = (run.to_string(), world.frs("get cluster east -o yaml").expect(0).to_string());
    snapshot!([run, written].join("\n"));
}

#[test]
fn what_was_only_planned_is_kept_to_be_applied_later() {
    let world = with_editor("sed -i 's/node_count: 3/node_count: 5/' \"$1\"\n");
    let run = world.frs("edit cluster east --plan").expect(0);
    let [draft] = &*drafts(&world.desk) else { panic!("one draft") };
    assert!(
        run.stderr.contains(&format!("What you wrote is in {}", world.desk.path(draft).display())),
        "{run}"
    );
    assert_eq!(world.document("/clusters/east")["node_count"], 3);
    world.frs(&format!("apply -f {draft} --yes")).expect(0);
    assert_eq!(world.document("/clusters/east")["node_count"], 5);
}

#[test]
fn without_a_change_nothing_is_sent() {
    let told = ["true\n", ": > \"$1\"\n", "sed -i '1i # a comment' \"$1\"\n"].map(|editor| {
        let world = with_editor(editor);
        let told = world.harmless(&["edit cluster east --yes"]);
        assert_eq!(drafts(&world.desk), Vec::<String>::new());
        told
    });
    snapshot!(told.join("\n"));
}

#[test]
fn what_cannot_be_used_is_kept_and_named() {
    let told = [
        "printf 'kind: [\\n' > \"$1\"\n",
        "sed -i 's/environment: prod/environment: moon/' \"$1\"\n",
        "sed -i 's/^id: east/id: other/' \"$1\"\n",
        "sed -i 's/^kind: cluster/kind: namespace/' \"$1\"\n",
        "exit 7\n",
    ]
    .map(|editor| {
        let world = with_editor(editor);
        let told = world.harmless(&["edit cluster east --yes"]);
        let [draft] = &*drafts(&world.desk) else { panic!("it is not kept: {told}") };
        assert!(told.contains(draft), "{told}");
        told
    });
    snapshot!(told.join("\n"));
}

#[test]
fn without_anybody_to_ask_it_is_only_shown_and_kept() {
    let world = with_editor("sed -i 's/node_count: 3/node_count: 5/' \"$1\"\n");
    let told = world.harmless(&["edit cluster east"]);
    assert_eq!(drafts(&world.desk).len(), 1);
    snapshot!(told);
}

#[test]
fn somebody_elses_change_elsewhere_stays() {
    let other = meanwhile("patch cluster east --set labels.tier=silver");
    let world = with_editor(&format!("{other}sed -i 's/node_count: 3/node_count: 5/' \"$1\"\n"));
    let run = world.frs("edit cluster east --yes").expect(0);
    let east = world.document("/clusters/east");
    assert_eq!((&east["node_count"], &east["labels"]["tier"]), (&5.into(), &"silver".into()));
    snapshot!(run.to_string());
}

#[test]
fn somebody_elses_change_of_the_same_field_opens_the_editor_again() {
    let other = meanwhile("patch cluster east --set node_count=4");
    let world = with_editor(&format!(
        "cp \"$1\" last.yaml\n{other}\
         sed -i -e 's/node_count: 5/node_count: 6/' -e 's/node_count: 3/node_count: 5/' -e 's/tier: gold/tier: silver/' \"$1\"\n"
    ));
    let run = world.frs("edit cluster east --yes").expect(0);
    let east = world.document("/clusters/east");
    assert_eq!((&east["node_count"], &east["labels"]["tier"]), (&6.into(), &"silver".into()));
    snapshot!(format!("{run}\n{}", world.desk.read("last.yaml")));
}

#[test]
fn who_closes_the_editor_at_that_has_not_overwritten_the_other() {
    let other = meanwhile("patch cluster east --set node_count=4");
    let world = with_editor(&format!("{other}sed -i 's/node_count: 3/node_count: 5/' \"$1\"\n"));
    let run = world.frs("edit cluster east --yes").expect(3);
    assert_eq!(world.document("/clusters/east")["node_count"], 4);
    assert_eq!(drafts(&world.desk).len(), 1);
    snapshot!(run.to_string());
}

#[test]
fn what_somebody_else_adds_to_what_is_taken_away_stays() {
    let other = meanwhile("patch cluster east --set labels.theirs=x");
    let world =
        with_editor(&format!("{other}sed -i -e '/^labels:/d' -e '/^  region:/d' -e '/^  tier:/d' \"$1\"\n"));
    world.frs("edit cluster east --yes").expect(0);
    assert_eq!(world.document("/clusters/east")["labels"], serde_json::json!({"theirs": "x"}));
}

/// An override that was taken out in the editor stayed as an empty one, and took the definition's own labels away on the cluster.
#[test]
fn an_override_that_is_taken_out_is_gone_and_the_catalog_counts_again() {
    let world = with_editor("sed -i '/^- id: team-a$/,/over: ride/{/labels:/d;/over:/d}' \"$1\"\n");
    let before = world.document("/clusters/east");
    world.frs("assign namespace team-a --cluster east 'labels={\"over\":\"ride\"}' --yes").expect(0);
    assert_ne!(world.document("/clusters/east"), before);
    world.frs("edit cluster east --yes").expect(0);
    assert_eq!(world.document("/clusters/east"), before);
}

/// What is left out is not asked for by name, here as in every other way to leave something out.
#[test]
fn a_reference_that_is_left_out_in_the_editor_needs_a_confirmation() {
    let world = with_editor("sed -i '/^- id: team-a$/d' \"$1\"\n");
    let run = world.frs("edit cluster east --plan").expect(0);
    assert!(run.stdout.contains("1 removal was not asked for by name, on `east`"), "{run}");
}

#[test]
fn a_reference_that_somebody_takes_away_is_not_brought_back_by_a_field_of_it() {
    let other = meanwhile("unassign component podinfo --cluster east");
    let world = with_editor(&format!("{other}sed -i 's/6\\.8\\.0/6.9.9/' \"$1\"\n"));
    world.frs("edit cluster east --yes").expect(3);
    let components = world.document("/clusters/east")["platform_components"].to_string();
    assert!(!components.contains("podinfo"), "{components}");
}

/// Both took something away, which looked as if both wanted the same; and the reference came back, enabled.
#[test]
fn a_reference_that_somebody_takes_away_is_not_brought_back_by_taking_out_a_field_of_it() {
    let other = meanwhile("unassign component podinfo --cluster east");
    let world = with_editor(&format!("{other}sed -i '/oci_tag:/d' \"$1\"\n"));
    world.frs("edit cluster east --yes").expect(3);
    let components = world.document("/clusters/east")["platform_components"].to_string();
    assert!(!components.contains("podinfo"), "{components}");
}

#[test]
fn a_document_that_is_deleted_meanwhile_is_not_made_again() {
    let other = meanwhile("delete namespace spare");
    let world = with_editor(&format!("{other}echo 'labels: {{a: b}}' >> \"$1\"\n"));
    let run = world.frs("edit namespace spare --yes").expect(1);
    assert_eq!(world.service.head(), 2);
    snapshot!(run.to_string());
}

#[test]
fn visual_comes_first_and_an_editor_may_have_arguments() {
    let world = with_editor("exit 1\n");
    let editor = script(
        &world.desk,
        "other.sh",
        "[ \"$1\" = --wait ]\nsed -i 's/node_count: 3/node_count: 9/' \"$2\"\n",
    );
    let world = world.with("VISUAL", &format!("{editor} --wait"));
    world.frs("edit cluster east --yes").expect(0);
    assert_eq!(world.document("/clusters/east")["node_count"], 9);
    let nowhere = world.with("VISUAL", "no-such-editor");
    snapshot!(nowhere.harmless(&["edit cluster east --yes", "edit cluster nobody --yes"]));
}

/// Who did not want to edit it again was told that nothing was changed, which nobody knew.
#[test]
fn an_answer_that_is_lost_is_not_said_to_be_nothing() {
    let world = with_editor("sed -i 's/node_count: 3/node_count: 5/' \"$1\"\n").with("NO_COLOR", "1");
    let url =
        between(world.service.address, |request| if is_commit(request) { Fate::Lose } else { Fate::Forward });
    let world = world.with("FLUX_API_URL", &url);
    let terminal = Terminal::start(&world.desk, "edit cluster east").until("Carry this out? [y/N] ");
    let (code, screen) = terminal.types("y\n").end();
    assert_eq!((code, &world.document("/clusters/east")["node_count"]), (Some(1), &5.into()), "{screen}");
    assert!(screen.contains("Whether the change was made is not known"), "{screen}");
    assert!(!screen.contains("Nothing was changed") && !screen.contains("Edit it again?"), "{screen}");
}

#[test]
fn on_a_terminal_a_mistake_can_be_mended() {
    let world = with_editor(
        "if [ ! -e once ]; then touch once; sed -i 's/node_count: 3/node_count: many/' \"$1\"\n\
         else sed -i 's/node_count: many/node_count: 8/' \"$1\"; fi\n",
    )
    .with("NO_COLOR", "1");
    let terminal =
        Terminal::start(&world.desk, "edit cluster east").until("Edit it again? [y/N] ").types("y\n");
    let (code, screen) = terminal.until("Carry this out? [y/N] ").types("y\n").end();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(world.document("/clusters/east")["node_count"], 8);
    snapshot!(screen);
}
