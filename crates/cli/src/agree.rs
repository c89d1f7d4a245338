//! Who agrees to a plan, and how. `--yes` agrees to what the guard has nothing against; what it asks about needs somebody who has seen it:
//! the plan's name, a number that is large enough, or that number typed on a terminal.

use std::fmt::Write;

use api::{Asks, NeededAllowance, Plan};

use crate::ask;
use crate::change::ChangeFlags;
use crate::failure::Failure;
use crate::parts::Part;
use crate::plan;
use crate::session::Session;
use crate::words::count;

/// Whether somebody agrees to this plan, with the flags or on the terminal.
pub(crate) fn agree(
    session: &Session,
    plan: &Plan,
    flags: &ChangeFlags,
    part: Option<Part>,
) -> Result<(), Failure> {
    may_go_on(plan)?;
    keeps_bounds(plan, flags)?;
    if is_answered(plan, flags) {
        return Ok(());
    }
    if !plan.asks.is_empty() && (flags.is_agreed() || !session.output.is_interactive()) {
        let yes = if flags.yes { ", and `--yes` does not answer it" } else { "" };
        return Err(Failure::with_next(
            format!("nothing was changed: the guard asks about this plan{yes}"),
            format!("if this is what you want: {}", flags_that_answer(plan)),
        ));
    }
    if !session.output.is_interactive() {
        return Err(Failure::with_next(
            "nothing was changed: nobody is there to be asked",
            "`--yes` agrees to the plan that is shown, `--plan` only shows it",
        ));
    }
    let is_yes = match to_type(plan) {
        Some((text, what)) => ask::for_text(session.output, &format!("Type {text} to {what}:"), &text),
        None => {
            let question = part.map_or("Carry this out?".to_owned(), |part| format!("Carry out {part}?"));
            ask::confirm(session.output, &question)
        }
    };
    if is_yes { Ok(()) } else { Err(Failure::Declined) }
}

/// Nobody's agreement takes the place of an allowance.
pub(crate) fn may_go_on(plan: &Plan) -> Result<(), Failure> {
    let Some(NeededAllowance { to, deletions, removals }) = &plan.allowance else { return Ok(()) };
    let because = plan.because.as_deref().unwrap_or("its budget of the hour is used up");
    let mut numbers = String::new();
    for (flag, number) in [("deletions", deletions), ("removals", removals)] {
        if *number > 0 {
            let _ = write!(numbers, " --{flag} {number}");
        }
    }
    Err(Failure::with_next(
        format!("nothing was changed: the guard stops this: {because}"),
        format!(
            "wait, or have an admin allow it: `frs guard allow --for {to}{numbers} --minutes 60 --reason WHY`"
        ),
    ))
}

/// A plan beyond the numbers that were given is not carried out, whether the guard asks or not.
fn keeps_bounds(plan: &Plan, flags: &ChangeFlags) -> Result<(), Failure> {
    let removals =
        (flags.max_removals, plan.removals.total(), "--max-removals", "inputs and clusters would be removed");
    let clusters = (flags.max_clusters, plan.reached, "--max-clusters", "clusters would be reached");
    for (most, number, flag, what) in [removals, clusters] {
        if let Some(most) = most.filter(|most| number > *most) {
            let message = format!("nothing was changed: {number} {what}, and `{flag}` is {most}");
            return Err(Failure::failed(message));
        }
    }
    Ok(())
}

/// Whether the flags answer everything that is asked.
fn is_answered(plan: &Plan, flags: &ChangeFlags) -> bool {
    let answers = |asked: &Asks| match asked {
        Asks::Removals => flags.max_clusters.is_some() || flags.max_removals.is_some(),
        Asks::Clusters => flags.max_clusters.is_some(),
    };
    // That it is the expected plan was seen before.
    flags.expect.is_some() || (flags.is_agreed() && plan.asks.iter().all(answers))
}

fn flags_that_answer(plan: &Plan) -> String {
    let number = if plan.asks.contains(&Asks::Clusters) {
        format!("`--max-clusters {}` to any that reaches no more", plan.reached)
    } else {
        format!("`--max-removals {}` to any that removes no more", plan.removals.total())
    };
    format!("`--expect {}` agrees to exactly this plan, {number}", plan::name(plan))
}

/// What somebody types to agree, and what that does; none if a simple yes will do.
fn to_type(plan: &Plan) -> Option<(String, String)> {
    let removals = &plan.removals;
    let asks = |asked| plan.asks.contains(&asked);
    if let ([only], 1) = (&*removals.decommissioned, removals.decommissions) {
        return Some((only.clone(), "decommission this cluster".to_owned()));
    }
    if removals.decommissions > 1 {
        let number = removals.decommissions;
        return Some((number.to_string(), format!("decommission {}", count(number, "cluster"))));
    }
    if asks(Asks::Removals) {
        let (number, clusters) = (removals.inputs, removals.clusters);
        let what = format!("delete {} on {}", count(number, "input"), count(clusters, "cluster"));
        return Some((number.to_string(), what));
    }
    asks(Asks::Clusters).then(|| {
        let number = plan.reached;
        (number.to_string(), format!("change what {} get", count(number, "cluster")))
    })
}
