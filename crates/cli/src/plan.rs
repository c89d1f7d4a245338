//! A plan in words: what the clusters would see of a change, what Flux would delete, and a digest to recognise it by.

use std::fmt::Write;

use api::{Change, Effect, FieldChange, Plan, PlannedDocument, RemovalGroup};

use crate::document::{Difference, differences};
use crate::kinds::is_record;
use crate::output::{BOLD, FAINT, GREEN, RED, YELLOW, styled};
use crate::words::{count, difference, is_cut, names};

/// At most this many different changes of what clusters get are told.
const CHANGES: usize = 40;
/// At most this many different changes of documents are told.
const GROUPS: usize = 20;
/// At most this many fields of each are told.
const FIELDS: usize = 20;
/// A plan that does nothing.
const NOTHING: &str = "Nothing would change.";

/// Whether two plans do the same, and the guard asks the same about them.
pub(crate) fn same(one: &Plan, other: &Plan) -> bool {
    // The digest that confirms is another one in another hour.
    let asked = |plan: &Plan| (plan.asks.clone(), plan.confirm.is_some(), plan.allowance.is_some());
    one.digest == other.digest && asked(one) == asked(other)
}

/// What a plan is called: the beginning of its digest.
pub(crate) fn name(plan: &Plan) -> &str {
    plan.digest.get(..12).unwrap_or(&plan.digest)
}

/// The plan, for people.
pub(crate) fn text(plan: &Plan) -> String {
    let mut text = String::new();
    if plan.changed == 0 {
        return NOTHING.to_owned();
    }
    // The record of a decommission belongs to it.
    let (records, documents): (Vec<&PlannedDocument>, Vec<&PlannedDocument>) = plan
        .documents
        .iter()
        .partition(|document| is_record(&document.kind) && document.change == Change::Added);
    let changed = plan.changed - records.len();
    let clusters = match plan.effects.clusters {
        0 => "no cluster sees a change".to_owned(),
        1 => "1 cluster sees a change".to_owned(),
        number => format!("{number} clusters see a change"),
    };
    let head = format!(
        "Plan {} on revision {}: {} changed, {clusters}",
        name(plan),
        plan.revision,
        count(changed, "document")
    );
    let _ = writeln!(text, "{}", styled(BOLD, head));
    tell_documents(&mut text, &documents, changed);
    if plan.effects.clusters > 0 {
        let totals = plan.effects.totals.iter().map(|(kind, totals)| {
            let parts = [(totals.added, "added"), (totals.changed, "changed"), (totals.removed, "removed")];
            let parts = parts
                .iter()
                .filter(|(number, _)| *number > 0)
                .map(|(number, what)| format!("{number} {what}"));
            format!("{kind} {}", parts.collect::<Vec<_>>().join(", "))
        });
        let _ = writeln!(text, "What the clusters get: {}", totals.collect::<Vec<_>>().join("; "));
        // What goes is told below, with its reason.
        let stays: Vec<&Effect> =
            plan.effects.changes.iter().filter(|effect| effect.change != Change::Removed).collect();
        for effect in stays.iter().take(CHANGES) {
            tell_effect(&mut text, effect);
        }
        if stays.len() > CHANGES {
            let more = stays.len() - CHANGES;
            let _ = writeln!(
                text,
                "    {}",
                styled(FAINT, format_args!("and {more} more; `--plan -o json` has them"))
            );
        }
    }
    tell_removals(&mut text, plan);
    if let Some(because) = &plan.because {
        let _ = writeln!(
            text,
            "{}",
            styled(
                YELLOW,
                format_args!(
                    "{}: {because}",
                    if plan.allowance.is_some() { "The guard stops this" } else { "The guard asks" }
                )
            )
        );
    }
    for warning in &plan.warnings {
        let _ = writeln!(text, "{} {warning}", styled(YELLOW, "warning:"));
    }
    text.trim_end().to_owned()
}

/// Documents to which the same happens.
struct Alike<'a> {
    kind: &'a str,
    change: Change,
    /// What becomes different; nothing if that was too much to tell.
    fields: Option<Vec<Difference>>,
    ids: Vec<String>,
}

/// The documents, those to which the same happens together, with each field.
fn tell_documents(text: &mut String, documents: &[&PlannedDocument], changed: usize) {
    let mut groups: Vec<Alike> = Vec::new();
    for PlannedDocument { kind, id, change, before, after, untold } in documents {
        let mut fields = differences(before.as_ref(), after.as_ref());
        // A side that has none of the fields is no difference by itself.
        fields.retain(|field| !matches!(&*field.place, "" | "/id"));
        let fields = (!untold).then_some(fields);
        let alike =
            |group: &&mut Alike| group.kind == kind && group.change == *change && group.fields == fields;
        match groups.iter_mut().find(alike) {
            Some(group) => group.ids.push(id.clone()),
            None => groups.push(Alike { kind, change: *change, fields, ids: vec![id.clone()] }),
        }
    }
    let mut told = 0;
    let mut are_cut = false;
    for Alike { kind, change, fields, ids } in groups.iter().take(GROUPS) {
        told += ids.len();
        let (sign, style) = sign(*change);
        let _ =
            writeln!(text, "  {}", styled(style, format_args!("{sign} {kind}/{}", names(ids, ids.len()))));
        let Some(fields) = fields else {
            let what = "what changes in it is too much to tell here; plan fewer documents at once to see it";
            let _ = writeln!(text, "      {}", styled(YELLOW, what));
            continue;
        };
        for Difference { place, old, new } in fields.iter().take(FIELDS) {
            are_cut |= is_cut(old.as_ref(), new.as_ref());
            let _ = writeln!(text, "      {}", difference(place, old.as_ref(), new.as_ref()));
        }
        if fields.len() > FIELDS {
            let more = count(fields.len() - FIELDS, "field");
            let _ = writeln!(
                text,
                "      {}",
                styled(FAINT, format_args!("and {more} more; `--plan -o json` has them"))
            );
        }
    }
    if are_cut {
        let what = "long values are told in part; `--plan -o json` has all of them";
        let _ = writeln!(text, "    {}", styled(FAINT, what));
    }
    if changed > told {
        let _ = writeln!(
            text,
            "    {}",
            styled(FAINT, format_args!("and {} more; `--plan -o json` has more of them", changed - told))
        );
    }
}

fn sign(change: Change) -> (char, anstyle::Style) {
    match change {
        Change::Added => ('+', GREEN),
        Change::Changed => ('~', YELLOW),
        Change::Removed => ('-', RED),
    }
}

fn tell_effect(text: &mut String, effect: &Effect) {
    let (sign, style) = sign(effect.change);
    let what = styled(style, format_args!("{sign} {}/{}", effect.kind, effect.input));
    let clusters = names(&effect.clusters, effect.count);
    let _ = writeln!(text, "  {what} on {}: {clusters}", count(effect.count, "cluster"));
    for field in &effect.fields {
        let _ = writeln!(text, "      {}", change_of(field));
    }
}

fn change_of(field: &FieldChange) -> String {
    difference(&field.pointer, field.old.as_ref(), field.new.as_ref())
}

/// What Flux will delete, by name.
fn tell_removals(text: &mut String, plan: &Plan) {
    let removals = &plan.removals;
    if removals.decommissions > 0 {
        let which = names(&removals.decommissioned, removals.decommissions);
        let line = format!("{} will be decommissioned: {which}", count(removals.decommissions, "cluster"));
        let _ = writeln!(text, "{}", styled(RED, line));
    }
    if removals.inputs == 0 {
        return;
    }
    let (inputs, clusters) = (count(removals.inputs, "input"), count(removals.clusters, "cluster"));
    let _ = writeln!(text, "{}", styled(RED, format_args!("Flux will delete {inputs} on {clusters}")));
    // What takes data with it is told whatever else goes.
    let (grave, others): (Vec<&RemovalGroup>, Vec<&RemovalGroup>) =
        removals.groups.iter().partition(|group| group.takes_data() && !group.is_decommission());
    let mut told = 0;
    for group in grave.into_iter().chain(others.into_iter().take(CHANGES)) {
        told += group.count;
        let on = format!("{}: {}", count(group.count, "cluster"), names(&group.clusters, group.count));
        let line = format!("  - {}/{} on {on} ({})", group.kind, group.input, group.cause);
        let _ = writeln!(text, "{}", styled(RED, line));
    }
    if removals.inputs > told {
        let _ = writeln!(
            text,
            "{}",
            styled(
                RED,
                format_args!("    and {} more; `--plan -o json` has more of them", removals.inputs - told)
            )
        );
    }
}

#[cfg(test)]
mod tests {
    use api::Plan;
    use serde_json::{Value, json};

    use super::{name, same, text};
    use crate::output::{RED, styled};

    fn plan(fill: impl FnOnce(&mut Value)) -> Plan {
        let mut plan = json!({
            "revision": 17, "digest": "0123456789abcdef", "changed": 2,
            "documents": [{"kind": "clusters", "id": "east", "change": "changed", "before": {"id": "east", "labels": {"a": "1"}, "protected": true}, "after": {"id": "east", "labels": {"a": "2"}}}, {"kind": "namespaces", "id": "a", "change": "added", "after": {"id": "a", "labels": {"team": "a"}}}],
            "effects": {"clusters": 2, "totals": {"platform_components": {"added": 0, "changed": 2, "removed": 1}}, "changes": [
                {"kind": "platform_components", "input": "podinfo", "change": "changed", "count": 2, "clusters": ["east", "west"],
                 "fields": [{"pointer": "/source/oci_tag", "old": "6.7.1", "new": "6.9.0"}, {"pointer": "/patches/a", "new": "two\nlines"}]},
                {"kind": "platform_components", "input": "agent", "change": "removed", "count": 1, "clusters": ["east"]},
            ]},
            "removals": {"decommissions": 0, "inputs": 1, "clusters": 1, "decommissioned": [],
                "first": [{"cluster": "east", "kind": "platform_components", "input": "agent", "cause": "removed", "named": true}],
                "groups": [{"kind": "platform_components", "input": "agent", "cause": "removed", "guard": "ordinary", "count": 1, "clusters": ["east"]}]},
            "confirm": null,
        });
        fill(&mut plan);
        serde_json::from_value(plan).expect("a plan")
    }

    fn plain(plan: &Plan) -> String {
        anstream::adapter::strip_str(&text(plan)).to_string().replace(name(plan), "DIGEST")
    }

    #[test]
    fn a_plan_tells_documents_then_effects_then_what_is_deleted() {
        let expected = "\
Plan DIGEST on revision 17: 2 documents changed, 2 clusters see a change
  ~ clusters/east
      /labels/a  1 → 2
      /protected  true → (none)
  + namespaces/a
      /labels/team  (none) → a
What the clusters get: platform_components 2 changed, 1 removed
  ~ platform_components/podinfo on 2 clusters: east, west
      /source/oci_tag  6.7.1 → 6.9.0
      /patches/a  (none) → \"two\\nlines\"
Flux will delete 1 input on 1 cluster
  - platform_components/agent on 1 cluster: east (removed)";
        assert_eq!(plain(&plan(|_| {})), expected);
        for line in [
            "Flux will delete 1 input on 1 cluster",
            "  - platform_components/agent on 1 cluster: east (removed)",
        ] {
            assert!(text(&plan(|_| {})).contains(&styled(RED, line)), "what is deleted is red: {line}");
        }
    }

    #[test]
    fn a_plan_is_the_same_wherever_it_was_worked_out_and_another_if_it_does_something_else() {
        let one = plan(|_| {});
        let later = plan(|plan| plan["revision"] = 18.into());
        let other = plan(|plan| plan["digest"] = "another".into());
        let asked = plan(|plan| plan["confirm"] = "the guard asks by now".into());
        assert!(same(&one, &later));
        assert!(!same(&one, &other));
        assert!(!same(&one, &asked));
        assert_eq!((name(&one), name(&other)), ("0123456789ab", "another"));
    }

    #[test]
    fn a_list_of_removals_that_was_cut_is_counted_whole() {
        let plan = plan(|plan| {
            plan["removals"]["inputs"] = 5_004.into();
            plan["removals"]["clusters"] = 5_000.into();
            plan["removals"]["groups"][0]["count"] = 5_000.into();
        });
        let text = plain(&plan);
        assert!(
            text.ends_with(
                "- platform_components/agent on 5000 clusters: east and 4999 more (removed)\n    and 4 more; `--plan -o json` has more of them"
            ),
            "{text}"
        );
    }

    /// What the clusters no longer get is more than what Flux deletes: a component that was disabled is gone already. The counts of one
    /// were told as those of the other, and hid removals that came after.
    #[test]
    fn what_is_deleted_is_not_counted_by_what_is_no_longer_told() {
        let plan = plan(|plan| {
            plan["effects"]["changes"][1]["count"] = 3.into();
            plan["removals"]["inputs"] = 2.into();
        });
        let text = plain(&plan);
        assert!(
            text.ends_with("- platform_components/agent on 1 cluster: east (removed)\n    and 1 more; `--plan -o json` has more of them"),
            "{text}"
        );
    }

    /// Forty components that go from two clusters hid the one namespace that went with all its data.
    #[test]
    fn what_takes_data_with_it_is_never_left_out() {
        let plan = plan(|plan| {
            let group = |kind: &str, input: &str, guard: &str, cause: &str| json!({"kind": kind, "input": input, "cause": cause, "guard": guard, "count": 2, "clusters": ["a", "b"]});
            let mut groups: Vec<Value> = (0..60)
                .map(|n| group("platform_components", &format!("c{n}"), "ordinary", "removed"))
                .collect();
            groups.push(group("namespaces", "payments", "each", "removed"));
            groups.push(group("namespaces", "of-a-decommissioned-one", "each", "decommissioned"));
            plan["removals"]["inputs"] = 124.into();
            plan["removals"]["groups"] = groups.into();
        });
        let text = plain(&plan);
        assert!(text.contains("  - namespaces/payments on 2 clusters: a, b (removed)"), "{text}");
        assert!(!text.contains("of-a-decommissioned-one"), "{text}");
        assert!(text.ends_with("    and 42 more; `--plan -o json` has more of them"), "{text}");
    }

    /// They were compared after they were cut, and told as one.
    #[test]
    fn documents_whose_long_values_differ_at_the_end_are_not_the_same() {
        let plan = plan(|plan| {
            let new = |id: &str, end: &str| json!({"kind": "namespaces", "id": id, "change": "added", "after": {"id": id, "annotations": {"n": "x".repeat(120) + end}}});
            plan["documents"] = json!([new("one", "1"), new("two", "2")]);
        });
        let text = plain(&plan);
        assert!(text.contains("  + namespaces/one\n") && text.contains("  + namespaces/two\n"), "{text}");
        assert!(text.contains("long values are told in part"), "{text}");
    }

    #[test]
    fn a_document_whose_changes_are_not_told_says_so() {
        let plan = plan(|plan| {
            plan["documents"][0] =
                json!({"kind": "clusters", "id": "east", "change": "changed", "untold": true});
        });
        let text = plain(&plan);
        assert!(
            text.contains("  ~ clusters/east\n      what changes in it is too much to tell here"),
            "{text}"
        );
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(plain(&plan(|plan| plan["changed"] = 0.into())), "Nothing would change.");
    }
}
