//! How every change is made: its plan is shown, somebody agrees, and exactly that plan is carried out.
//!
//! The service refuses the change if the fleet is no longer at the revision that the plan was worked out on. Then the plan is worked out
//! again: if it does the same, it is carried out; if not, nothing is, unless somebody agrees to the new one.
//!
//! What the guard asks about is answered by whoever has seen it, never by `--yes`: see [`crate::agree`].

use std::collections::HashSet;

use api::{BatchAnswer, Change as Happens, Operation, Plan, ProblemName};
use clap::{Args, ValueEnum};
use client::{Commitment, Error};
use serde_json::json;

use crate::agree::{agree, may_go_on};
use crate::failure::Failure;
use crate::kinds::is_record;
use crate::parts::Part;
use crate::plan;
use crate::session::Session;

/// At most this often a plan that still does the same is tried again: others change the fleet all the time.
const ATTEMPTS: usize = 20;

/// The flags that every change has.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "How it is changed")]
pub(crate) struct ChangeFlags {
    /// Only show what would happen
    #[arg(long, conflicts_with_all = ["yes", "expect", "max_removals", "max_clusters"])]
    pub plan: bool,
    /// Agree to the plan that is shown, unless the guard asks about it
    #[arg(short, long)]
    pub yes: bool,
    /// Agree only to this plan, which `--plan` showed earlier; if it is another by now, the exit code is 3
    #[arg(long, value_name = "PLAN")]
    pub expect: Option<String>,
    /// Agree, also if the guard asks, as long as at most this many inputs and clusters go
    #[arg(long, value_name = "NUMBER")]
    pub max_removals: Option<usize>,
    /// Agree, also if the guard asks, as long as at most this many clusters are reached
    #[arg(long, value_name = "NUMBER")]
    pub max_clusters: Option<usize>,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// How to tell what was changed (with --plan: what would be)
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<ChangeFormat>,
}

impl ChangeFlags {
    /// Whether nobody has to be asked.
    pub(crate) fn is_agreed(&self) -> bool {
        self.yes || self.expect.is_some() || self.max_removals.is_some() || self.max_clusters.is_some()
    }

    /// The flags for what is left to do after a part of it was done.
    pub(crate) fn after(&self, done: &Done) -> Self {
        let left = |most: Option<usize>, used: usize| most.map(|most| most.saturating_sub(used));
        Self {
            max_removals: left(self.max_removals, done.removals),
            max_clusters: left(self.max_clusters, done.clusters),
            ..self.clone()
        }
    }
}

/// How a result is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ChangeFormat {
    /// As JSON
    Json,
    /// As kind/id, one a line
    Name,
}

/// Operations, and where they come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    /// What to do, all of it or nothing.
    pub operations: Vec<Operation>,
    /// Where each operation comes from, if it is from a file.
    pub sources: Vec<String>,
}

impl From<Vec<Operation>> for Change {
    fn from(operations: Vec<Operation>) -> Self {
        Self { operations, sources: Vec::new() }
    }
}

impl Change {
    fn refused(&self, error: Error) -> Failure {
        match error {
            Error::Problem(problem) => Failure::Refused { problem, sources: self.sources.clone() },
            other => other.into(),
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It was carried out.
    Done(Done),
    /// It was only shown, or there was nothing to do.
    Shown,
}

/// A plan that was carried out.
#[derive(Debug)]
pub(crate) struct Done {
    /// What it changed.
    pub answer: BatchAnswer,
    /// How many inputs and clusters went.
    pub removals: usize,
    /// How many clusters it reached.
    pub clusters: usize,
}

/// Shows the plan of a change, asks, and carries it out.
pub(crate) fn carry_out(session: &Session, change: &Change, flags: &ChangeFlags) -> Result<Outcome, Failure> {
    carry_out_part(session, change, flags, None)
}

/// The same for a change that may be a part of a larger one.
pub(crate) fn carry_out_part(
    session: &Session,
    change: &Change,
    flags: &ChangeFlags,
    part: Option<Part>,
) -> Result<Outcome, Failure> {
    let reason = flags.reason.as_deref().map(reason).transpose()?;
    // Before anything is done: an error afterwards would hide what was done.
    session.kinds()?;
    let mut shown = session.client.plan(&change.operations).map_err(|error| match flags.expect {
        // What was agreed to was possible, and is not any more.
        Some(_) if is_impossible(&error) => Failure::Moved(error.to_string()),
        _ => change.refused(error),
    })?;
    show(session, &shown, flags)?;
    if let Some(expected) = flags.expect.as_deref().filter(|expected| *expected != plan::name(&shown)) {
        return Err(Failure::Moved(format!("this is plan {}, not {expected}", plan::name(&shown))));
    }
    if flags.plan || shown.changed == 0 {
        if !flags.plan {
            let answer = BatchAnswer { revision: shown.revision, changed: 0, documents: Vec::new() };
            tell_json(session, flags, part, &json!(answer))?;
        }
        return Ok(Outcome::Shown);
    }
    agree(session, &shown, flags, part)?;
    for _ in 0..ATTEMPTS {
        let under =
            Commitment { planned_on: shown.revision, confirm: shown.confirm.clone(), reason: reason.clone() };
        let error = match session.client.commit(&change.operations, &under) {
            Ok(done) => {
                // What the plan has said already is not said again.
                for warning in done.warnings.iter().filter(|warning| !shown.warnings.contains(warning)) {
                    session.output.warn(warning);
                }
                tell(session, &shown, &done.answer, flags, part)?;
                let (removals, clusters) = (shown.removals.total(), shown.reached);
                return Ok(Outcome::Done(Done { answer: done.answer, removals, clusters }));
            }
            Err(error) => error,
        };
        // A proxy that answers for the service does not say what the service has done.
        if let Error::Unreachable { .. } | Error::Foreign { .. } = error {
            return Err(Failure::Unknown(error.to_string()));
        }
        // The fleet has moved, or with it what Flux would delete, or the guard's budget.
        let moved = [ProblemName::Stale, ProblemName::Confirm, ProblemName::Allowance];
        if !moved.into_iter().any(|name| error.is(name)) {
            return Err(change.refused(error));
        }
        let now = match session.client.plan(&change.operations) {
            Err(error) if flags.is_agreed() && is_impossible(&error) => {
                return Err(Failure::Moved(error.to_string()));
            }
            other => other.map_err(|error| change.refused(error))?,
        };
        if !plan::same(&now, &shown) {
            session.output.note("The fleet has changed since the plan was shown. It would now do this:");
            show(session, &now, flags)?;
            may_go_on(&now)?;
            if flags.is_agreed() {
                return Err(Failure::Moved("the effects moved since the plan was shown".to_owned()));
            }
            if now.changed == 0 {
                return Ok(Outcome::Shown);
            }
            agree(session, &now, flags, part)?;
        }
        shown = now;
    }
    Err(Failure::with_next(
        match part {
            None => "the fleet changes faster than this could be carried out; nothing was changed",
            Some(_) => "the fleet changes faster than this could be carried out",
        },
        "try again",
    ))
}

/// Whether the fleet, as it is now, is what a change cannot be made to.
fn is_impossible(error: &Error) -> bool {
    error.problem().is_some_and(|problem| matches!(problem.status, 404 | 409 | 412 | 413 | 422))
}

/// A reason as a header can carry it.
pub(crate) fn reason(text: &str) -> Result<String, Failure> {
    if text.chars().any(char::is_control) {
        return Err(Failure::usage("`--reason` must be one line"));
    }
    Ok(text.to_owned())
}

/// The plan is what was asked for with `--plan`, and else something to look at.
fn show(session: &Session, plan: &Plan, flags: &ChangeFlags) -> Result<(), Failure> {
    match (flags.plan, flags.output) {
        (true, Some(ChangeFormat::Json)) => {
            let mut told = json!(plan);
            told["plan"] = plan::name(plan).into();
            session.output.data(&format!("{told:#}"))
        }
        (true, Some(ChangeFormat::Name)) => {
            let names: Vec<String> = plan.names().map(|(kind, id, _)| format!("{kind}/{id}")).collect();
            tell_names(session, names.into_iter(), plan.changed)
        }
        (true, None) => session.output.data(&plan::text(plan)),
        (false, _) => {
            session.output.note(&plan::text(plan));
            Ok(())
        }
    }
}

fn tell_json(
    session: &Session,
    flags: &ChangeFlags,
    part: Option<Part>,
    value: &serde_json::Value,
) -> Result<(), Failure> {
    if flags.output != Some(ChangeFormat::Json) {
        return Ok(());
    }
    let mut value = value.clone();
    if let Some(part) = part {
        part.put_into(&mut value);
    }
    session.output.data(&format!("{value:#}"))
}

/// Those that the service names; it does not name all of very many.
fn tell_names(
    session: &Session,
    names: impl ExactSizeIterator<Item = String>,
    changed: usize,
) -> Result<(), Failure> {
    if changed > names.len() {
        session.output.warn(&format!("these are the first {} of {changed}", names.len()));
    }
    session.output.data(&names.collect::<Vec<_>>().join("\n"))
}

/// What was changed, a line for each document.
fn tell(
    session: &Session,
    plan: &Plan,
    answer: &BatchAnswer,
    flags: &ChangeFlags,
    part: Option<Part>,
) -> Result<(), Failure> {
    let told = tell_documents(session, plan, answer, flags, part);
    // Even if that cannot be written: it was done.
    match part {
        Some(part) => session.output.note(&format!("Made {part}: revision {}.", answer.revision)),
        None if flags.output.is_none() => session.output.note(&format!("Revision {}.", answer.revision)),
        None => {}
    }
    told
}

fn tell_documents(
    session: &Session,
    plan: &Plan,
    answer: &BatchAnswer,
    flags: &ChangeFlags,
    part: Option<Part>,
) -> Result<(), Failure> {
    let kinds = session.kinds()?;
    let created: HashSet<(&str, &str)> = plan
        .names()
        .filter(|(_, _, change)| *change == Happens::Added)
        .map(|(kind, id, _)| (kind, id))
        .collect();
    let happened = |kind: &str, id: &str, deleted: bool| match created.contains(&(kind, id)) {
        _ if deleted => kinds.deletion(kind),
        true => "created",
        false => "changed",
    };
    match flags.output {
        Some(ChangeFormat::Json) => return tell_json(session, flags, part, &json!(answer)),
        Some(ChangeFormat::Name) => {
            let names = answer.documents.iter().map(|document| format!("{}/{}", document.kind, document.id));
            return tell_names(session, names, answer.changed);
        }
        None => {}
    }
    let documents = answer.documents.iter().filter(|document| document.deleted || !is_record(&document.kind));
    let mut lines: Vec<String> = documents
        .map(|document| {
            let what = happened(&document.kind, &document.id, document.deleted);
            format!("{}/{} {what}", document.kind, document.id)
        })
        .collect();
    if answer.changed > answer.documents.len() {
        lines.push(format!("and {} more", answer.changed - answer.documents.len()));
    }
    session.output.data(&lines.join("\n"))
}
