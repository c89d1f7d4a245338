//! A change that is too large for one transaction: it is divided, told as a whole, and carried out part by part.
//!
//! Only the first part can be planned on the fleet that it will meet. So each part is planned when its turn comes, and is then made exactly
//! as planned; before the first is made, every part is tried on the fleet as it is, to find what is wrong early.

mod split;

use std::collections::BTreeMap;
use std::fmt::Write;

use api::{BatchAnswer, Operation, Plan, Problem};
use client::Error;
use serde_json::{Value, json};

pub(crate) use split::{Limits, Name, Part, Piece, Stage, change, ids, split};

use crate::change::{ChangeFlags, ChangeFormat, Done, Outcome, carry_out_part};
use crate::failure::{Failure, Stopped};
use crate::kinds::Kinds;
use crate::output::{BOLD, styled};
use crate::plan;
use crate::session::Session;
use crate::words::count;

/// At most this many lines of a refusal are told of a part that waits for others.
const LINES: usize = 5;

/// What the service says of a part, before any part is made.
enum Tried {
    Planned(Box<Plan>),
    /// It needs the parts before it.
    Waits(Box<Problem>),
}

/// Tells what the parts are, and plans and carries out one after the other.
pub(crate) fn carry_out(
    session: &Session,
    parts: &[Vec<Piece>],
    limits: Limits,
    flags: &ChangeFlags,
) -> Result<Outcome, Failure> {
    if flags.expect.is_some() {
        return Err(Failure::with_next(
            format!(
                "`--expect` agrees to one plan; this takes {} parts, each with its own plan",
                parts.len()
            ),
            "apply fewer documents at once, or agree to the plan of each part with `--yes`, or with `--max-removals` for all of them",
        ));
    }
    let kinds = session.kinds()?;
    let overview = overview(kinds, parts, limits);
    if !flags.plan {
        session.output.note(&overview);
        tried(session, parts)?;
        return one_by_one(session, parts, flags);
    }
    let tried = tried(session, parts)?;
    match flags.output {
        None => session.output.data(&overview)?,
        Some(_) => session.output.note(&overview),
    }
    for (number, (tried, pieces)) in (1..).zip(tried.iter().zip(parts)) {
        show(session, Part { number, of: parts.len() }, tried, pieces, flags)?;
    }
    Ok(Outcome::Shown)
}

/// What is to be done, as the documents say it.
fn overview(kinds: &Kinds, parts: &[Vec<Piece>], limits: Limits) -> String {
    let documents = parts.iter().map(Vec::len).sum();
    let mut text = format!(
        "{} to apply, in {} parts of at most {} and {} MiB each.\n",
        count(documents, "document"),
        parts.len(),
        count(limits.operations, "document"),
        limits.bytes / (1024 * 1024),
    );
    for (number, pieces) in (1..).zip(parts) {
        let mut of_kind: BTreeMap<(Stage, &str), (usize, usize)> = BTreeMap::new();
        for piece in pieces {
            let (all, new) = of_kind.entry((piece.stage, &piece.name.0)).or_default();
            *all += 1;
            *new += usize::from(matches!(piece.operation, Operation::Create { .. }));
        }
        let told = of_kind.iter().map(|((_, kind), (all, new))| {
            let singular = kinds.iter().find(|known| known.name == *kind).map(|known| &*known.singular);
            let name = singular.filter(|_| *all == 1).unwrap_or(kind);
            match new {
                0 => format!("{all} {name}"),
                new => format!("{all} {name} ({new} new)"),
            }
        });
        let part = Part { number, of: parts.len() };
        let _ = writeln!(text, "  {part}: {}", told.collect::<Vec<_>>().join(", "));
    }
    text + "Each part is a transaction of its own, planned when the parts before it are made; clusters see it as soon as it is made."
}

/// Asks the service about every part, on the fleet as it is. What no earlier part can make right is an error.
fn tried(session: &Session, parts: &[Vec<Piece>]) -> Result<Vec<Tried>, Failure> {
    let mut all = Vec::new();
    for (n, pieces) in parts.iter().enumerate() {
        let change = change(pieces);
        all.push(match session.client.plan(&change.operations) {
            Ok(plan) => Tried::Planned(Box::new(plan)),
            Err(Error::Problem(problem)) => match split::wrong_anyhow(&problem, pieces, &parts[..n]) {
                None => Tried::Waits(problem),
                Some(wrong) => {
                    let part = Part { number: n + 1, of: parts.len() };
                    let hint = if part.number < part.of {
                        " If a document of it needs one of a later part, apply those two by themselves first."
                    } else {
                        ""
                    };
                    session.output.note(&format!("Nothing was changed: the service refuses {part}.{hint}"));
                    return Err(Failure::Refused { problem: Box::new(wrong), sources: change.sources });
                }
            },
            Err(other) => return Err(other.into()),
        });
    }
    Ok(all)
}

/// The answer to `--plan`, for one part.
fn show(
    session: &Session,
    part: Part,
    tried: &Tried,
    pieces: &[Piece],
    flags: &ChangeFlags,
) -> Result<(), Failure> {
    let output = session.output;
    let on = if part.number == 1 { "" } else { ", without the parts before it" };
    match (flags.output, tried) {
        (None, Tried::Planned(plan)) => {
            let head = format!("Part {} of {}, planned on the fleet as it is now{on}:", part.number, part.of);
            output.data(&format!("{}\n{}", styled(BOLD, head), plan::text(plan)))
        }
        (None, Tried::Waits(problem)) => {
            let head = format!(
                "Part {} of {} can be planned only when the parts before it are made. On the fleet as it is now the service refuses it:",
                part.number, part.of
            );
            let refused = Failure::Refused { problem: problem.clone(), sources: change(pieces).sources };
            let (because, _) = refused.in_words();
            let mut lines: Vec<&str> = because.lines().take(LINES).collect();
            if because.lines().count() > LINES {
                lines.push("  …");
            }
            output.data(&format!("{}\n  {}", styled(BOLD, head), lines.join("\n  ")))
        }
        (Some(ChangeFormat::Json), tried) => {
            let mut told = match tried {
                Tried::Planned(plan) => {
                    let mut told = json!(plan);
                    told["plan"] = plan::name(plan).into();
                    told
                }
                Tried::Waits(problem) => json!({ "waits": problem }),
            };
            part.put_into(&mut told);
            output.data(&format!("{told:#}"))
        }
        (Some(ChangeFormat::Name), Tried::Planned(plan)) => {
            let names = plan.names().map(|(kind, id, _)| format!("{kind}/{id}"));
            output.data(&names.collect::<Vec<_>>().join("\n"))
        }
        // The service names none of them.
        (Some(ChangeFormat::Name), Tried::Waits(_)) => {
            let names = pieces.iter().map(|piece| format!("{}/{}", piece.name.0, piece.name.1));
            output.data(&names.collect::<Vec<_>>().join("\n"))
        }
    }
}

fn one_by_one(session: &Session, parts: &[Vec<Piece>], flags: &ChangeFlags) -> Result<Outcome, Failure> {
    let answer = BatchAnswer { revision: 0, changed: 0, documents: Vec::new() };
    let mut total = Done { answer, removals: 0, clusters: 0 };
    let mut made = Vec::new();
    let mut unwritten = None;
    let mut flags = flags.clone();
    for (number, pieces) in (1..).zip(parts) {
        let part = Part { number, of: parts.len() };
        let on = match number {
            1 => "as it is now".to_owned(),
            2 => "after part 1".to_owned(),
            _ => format!("after parts 1 to {}", number - 1),
        };
        let head = format!("Part {number} of {}, planned on the fleet {on}:", parts.len());
        session.output.note(&styled(BOLD, head));
        match carry_out_part(session, &change(pieces), &flags, Some(part)) {
            Ok(Outcome::Done(done)) => {
                flags = flags.after(&done);
                made.push(done.answer.revision);
                total.answer.revision = done.answer.revision;
                total.answer.changed += done.answer.changed;
                total.answer.documents.extend(done.answer.documents);
                total.removals += done.removals;
                total.clusters += done.clusters;
            }
            Ok(Outcome::Shown) => session.output.note(&format!("Nothing to do for {part}.")),
            // It was made, and nobody reads that: no reason to stop halfway.
            Err(failure @ Failure::Output(_)) => unwritten = Some(failure),
            Err(failure) => return Err(Stopped { failure: failure.into(), part, made }.into()),
        }
    }
    match unwritten {
        Some(failure) => Err(failure),
        None if made.is_empty() => Ok(Outcome::Shown),
        None => Ok(Outcome::Done(total)),
    }
}

impl Part {
    /// Says in an answer for programs which part it is about.
    pub(crate) fn put_into(self, answer: &mut Value) {
        answer["part"] = self.number.into();
        answer["parts"] = self.of.into();
    }
}
