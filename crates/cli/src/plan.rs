//! A plan in words: what the clusters would see of a change, what Flux would delete, and a digest to recognise it by.

use std::fmt::Write;

use api::{Change, Effect, EnvironmentTotals, FieldChange, Lacking, Plan, PlannedDocuments, RemovalGroup};
use serde_json::Value;

use crate::kinds::is_record;
use crate::output::{self, BOLD, FAINT, GREEN, RED, YELLOW, styled};
use crate::words::{count, difference, is_cut, line, names};

/// At most this many different changes of what clusters get are told.
const CHANGES: usize = 40;
/// At most this many different changes of documents are told.
const GROUPS: usize = 20;
/// At most this many fields of each are told.
const FIELDS: usize = 20;
/// At most this many lines of a new document are told.
const LINES: usize = 60;
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
    let (records, documents): (Vec<&PlannedDocuments>, Vec<&PlannedDocuments>) =
        plan.documents.iter().partition(|group| is_record(&group.kind) && group.change == Change::Added);
    let changed = plan.changed - records.iter().map(|group| group.count).sum::<usize>();
    let environments = by_environment(&plan.environments, |totals| totals.clusters);
    let clusters = match plan.effects.clusters {
        0 => "no cluster sees a change".to_owned(),
        1 => format!("1 cluster sees a change{environments}"),
        number => format!("{number} clusters see a change{environments}"),
    };
    let head = format!(
        "Plan {} on revision {}: {} changed, {clusters}",
        name(plan),
        plan.revision,
        count(changed, "document")
    );
    let _ = writeln!(text, "{}", styled(BOLD, head));
    tell_documents(&mut text, &documents, changed);
    for lacking in &plan.lacking {
        let _ = writeln!(text, "  {}", styled(YELLOW, in_words(lacking)));
    }
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
    for note in &plan.notes {
        let _ = writeln!(text, "{} {note}", styled(YELLOW, "note:"));
    }
    text.trim_end().to_owned()
}

/// ` (prod 3, dev 12)`: how much of something there is in each environment that has any. Of one alone, which.
fn by_environment(totals: &[EnvironmentTotals], number: impl Fn(&EnvironmentTotals) -> usize) -> String {
    let told: Vec<&EnvironmentTotals> = totals.iter().filter(|totals| number(totals) > 0).collect();
    match &*told {
        [] => String::new(),
        [only] => format!(" ({})", only.environment),
        several => {
            let each = several.iter().map(|totals| format!("{} {}", totals.environment, number(totals)));
            format!(" ({})", each.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Which of the clusters that a selector chose stay as they are.
fn in_words(Lacking { selector, kind, id, selected, lacking, clusters, .. }: &Lacking) -> String {
    let have = selected - lacking;
    format!(
        "{kind}/{id}: {have} of {selected} clusters that match `{selector}` have it; {lacking} do not: {}",
        names(clusters, *lacking)
    )
}

/// The documents, those to which the same happens together: what becomes different, or what a new one says.
fn tell_documents(text: &mut String, groups: &[&PlannedDocuments], changed: usize) {
    let mut told = 0;
    let mut are_cut = false;
    for PlannedDocuments { kind, change, fields, document, count: number, ids } in
        groups.iter().copied().take(GROUPS)
    {
        told += number;
        let (sign, style) = sign(*change);
        let _ = writeln!(text, "  {}", styled(style, format_args!("{sign} {kind}/{}", names(ids, *number))));
        let mut lines: Vec<String> = Vec::new();
        for FieldChange { pointer, old, new } in fields.iter().take(FIELDS) {
            are_cut |= is_cut(old.as_ref(), new.as_ref());
            lines.push(difference(pointer, old.as_ref(), new.as_ref()));
        }
        let content = document.as_ref().map(content).unwrap_or_default();
        for (line, is_cut) in content.iter().take(LINES).map(|text| line(text)) {
            are_cut |= is_cut;
            lines.push(line);
        }
        for line in lines {
            let _ = writeln!(text, "      {line}");
        }
        let more = match (fields.len().checked_sub(FIELDS + 1), content.len().checked_sub(LINES + 1)) {
            (Some(more), _) => count(more + 1, "field"),
            (_, Some(more)) => count(more + 1, "line"),
            _ => continue,
        };
        let more = format!("and {more} more; `--plan -o json` has them");
        let _ = writeln!(text, "      {}", styled(FAINT, more));
    }
    if are_cut {
        let what = "long values are told in part; `--plan -o json` has all of them";
        let _ = writeln!(text, "    {}", styled(FAINT, what));
    }
    if changed > told {
        let more = count(changed - told, "document");
        let _ = writeln!(
            text,
            "    {}",
            styled(FAINT, format_args!("and {more} more; `--plan -o json` has them"))
        );
    }
}

/// What a new document says, as one would write it.
fn content(document: &Value) -> Vec<String> {
    if document.as_object().is_some_and(serde_json::Map::is_empty) {
        return Vec::new();
    }
    let text = output::yaml(document).unwrap_or_else(|_| document.to_string());
    text.lines().map(ToOwned::to_owned).collect()
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
    let (left, groups): (Vec<&RemovalGroup>, Vec<&RemovalGroup>) =
        removals.groups.iter().partition(|group| group.is_left_environment());
    for group in &left {
        let which = names(&group.clusters, group.count);
        let of = count(group.count, "cluster");
        let line = format!("{of} will leave the list of the environment {}: {which}", group.input);
        let _ = writeln!(text, "{}", styled(RED, line));
    }
    // Flux deletes nothing for that; whoever makes machines from the list may.
    let deleted = removals.inputs - left.iter().map(|group| group.count).sum::<usize>().min(removals.inputs);
    if deleted == 0 {
        return;
    }
    let environments = by_environment(&plan.environments, |totals| totals.removals);
    let on = match &*left {
        [] => format!("{}{environments}", count(removals.clusters, "cluster")),
        _ => "these clusters".to_owned(),
    };
    let line = format!("Flux will delete {} on {on}", count(deleted, "input"));
    let _ = writeln!(text, "{}", styled(RED, line));
    // What takes data with it is told whatever else goes.
    let (grave, others): (Vec<&RemovalGroup>, Vec<&RemovalGroup>) =
        groups.into_iter().partition(|group| group.takes_data() && !group.is_decommission());
    let mut told = 0;
    for group in grave.into_iter().chain(others.into_iter().take(CHANGES)) {
        told += group.count;
        let on = format!("{}: {}", count(group.count, "cluster"), names(&group.clusters, group.count));
        let line = format!("  - {}/{} on {on} ({})", group.kind, group.input, group.cause);
        let _ = writeln!(text, "{}", styled(RED, line));
    }
    if deleted > told {
        let _ = writeln!(
            text,
            "{}",
            styled(RED, format_args!("    and {} more; `--plan -o json` has them", deleted - told))
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
            "documents": [
                {"kind": "clusters", "change": "changed", "count": 1, "ids": ["east"], "fields": [{"pointer": "/labels/a", "old": "1", "new": "2"}, {"pointer": "/protected", "old": true}]},
                {"kind": "namespaces", "change": "added", "count": 1, "ids": ["a"], "document": {"labels": {"team": "a"}}},
            ],
            "environments": [{"environment": "prod", "clusters": 1, "removals": 0}, {"environment": "dev", "clusters": 1, "removals": 1}],
            "effects": {"clusters": 2, "totals": {"platform_components": {"added": 0, "changed": 2, "removed": 1}}, "changes": [
                {"kind": "platform_components", "input": "podinfo", "change": "changed", "count": 2, "clusters": ["east", "west"],
                 "fields": [{"pointer": "/source/oci_tag", "old": "6.7.1", "new": "6.9.0"}, {"pointer": "/patches/a", "new": "two\nlines"}]},
                {"kind": "platform_components", "input": "agent", "change": "removed", "count": 1, "clusters": ["east"]},
            ]},
            "reached": 2,
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
Plan DIGEST on revision 17: 2 documents changed, 2 clusters see a change (prod 1, dev 1)
  ~ clusters/east
      /labels/a  1 → 2
      /protected  true → (none)
  + namespaces/a
      labels:
        team: a
What the clusters get: platform_components 2 changed, 1 removed
  ~ platform_components/podinfo on 2 clusters: east, west
      /source/oci_tag  6.7.1 → 6.9.0
      /patches/a  (none) → \"two\\nlines\"
Flux will delete 1 input on 1 cluster (dev)
  - platform_components/agent on 1 cluster: east (removed)";
        assert_eq!(plain(&plan(|_| {})), expected);
        for line in [
            "Flux will delete 1 input on 1 cluster (dev)",
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
                "- platform_components/agent on 5000 clusters: east and 4999 more (removed)\n    and 4 more; `--plan -o json` has them"
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
            text.ends_with("- platform_components/agent on 1 cluster: east (removed)\n    and 1 more; `--plan -o json` has them"),
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
        assert!(text.ends_with("    and 42 more; `--plan -o json` has them"), "{text}");
    }

    #[test]
    fn a_change_of_hundreds_of_clusters_is_one_group_and_production_is_named_first() {
        let plan = plan(|plan| {
            let ids: Vec<String> =
                ["prod-1".to_owned()].into_iter().chain((0..724).map(|n| format!("dev-{n}"))).collect();
            plan["changed"] = 725.into();
            plan["documents"] = json!([{"kind": "clusters", "change": "changed", "count": 725, "ids": ids, "fields": [{"pointer": "/labels/wave", "new": "2"}]}]);
        });
        let text = plain(&plan);
        assert!(
            text.contains("  ~ clusters/prod-1, dev-0, dev-1, dev-2, dev-3, dev-4, dev-5, dev-6 and 717 more\n      /labels/wave  (none) → 2\nWhat the"),
            "{text}"
        );
    }

    #[test]
    fn clusters_that_lack_what_a_selector_was_to_change_are_told() {
        let plan = plan(|plan| {
            plan["lacking"] = json!([{"operation": 0, "selector": "tier=1", "kind": "platform_components", "id": "podinfo", "selected": 212, "lacking": 44, "clusters": ["prod-9"]}]);
        });
        let text = plain(&plan);
        assert!(
            text.contains("\n  platform_components/podinfo: 168 of 212 clusters that match `tier=1` have it; 44 do not: prod-9 and 43 more\n"),
            "{text}"
        );
    }

    #[test]
    fn a_long_new_document_is_told_in_part_and_says_so() {
        let plan = plan(|plan| {
            let fields: serde_json::Map<String, Value> = (0..65)
                .map(|n| (format!("f{n:02}"), json!("x".repeat(if n == 0 { 120 } else { 1 }))))
                .collect();
            plan["documents"][1]["document"] = fields.into();
        });
        let text = plain(&plan);
        assert!(text.contains("  + namespaces/a\n      f00: >-\n        xxx"), "{text}");
        assert!(text.contains("      f58: x\n      and 6 lines more; `--plan -o json` has them\n    long values are told in part"), "{text}");
    }

    #[test]
    fn what_flux_may_prune_and_what_changes_nothing_is_said_in_words() {
        let plan = plan(|plan| {
            plan["warnings"] = json!(["the path of `a` changes"]);
            plan["notes"] = json!(["no object changes"]);
        });
        assert!(plain(&plan).ends_with("\nwarning: the path of `a` changes\nnote: no object changes"));
    }

    #[test]
    fn a_cluster_that_leaves_an_environment_is_not_told_as_deleted_by_flux() {
        let left = json!({"kind": "clusters", "input": "prod", "cause": "left_environment", "guard": "each", "count": 2, "clusters": ["a", "b"]});
        let only = plan(|plan| {
            plan["removals"]["inputs"] = 2.into();
            plan["removals"]["groups"] = json!([left]);
        });
        let text = plain(&only);
        assert!(text.contains("\n2 clusters will leave the list of the environment prod: a, b"), "{text}");
        assert!(!text.contains("Flux will delete"), "{text}");
        let with_one = plan(|plan| {
            plan["removals"]["inputs"] = 3.into();
            let agent = plan["removals"]["groups"][0].clone();
            plan["removals"]["groups"] = json!([left, agent]);
        });
        assert!(
            plain(&with_one)
                .contains("\nFlux will delete 1 input on these clusters\n  - platform_components/agent")
        );
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(plain(&plan(|plan| plan["changed"] = 0.into())), "Nothing would change.");
    }
}
