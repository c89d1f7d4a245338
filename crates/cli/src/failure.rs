//! Why a command did not do what was asked, how that is said, and the exit code.

use std::process::ExitCode;

use api::{Problem, ProblemName};
use client::Error;

use crate::output::{BOLD, Output, RED, styled};
use crate::parts::Part;
use crate::words::count;

/// What to do when nobody knows whether a change was made.
const LOOK_FIRST: &str = "`frs audit --limit 3` shows whether it was; look before you do it again";

/// Everything but success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line itself is wrong.
    Usage(String),
    /// Something does not work, and what to do about it.
    Failed {
        /// What does not work.
        what: String,
        /// What to do next.
        next: Vec<String>,
    },
    /// What the clusters would see is no longer what was shown.
    Moved(String),
    /// What was found has been shown, and is not well: `diff` found differences, `doctor` something bad.
    Shown,
    /// Nobody knows whether the change was made.
    Unknown(String),
    /// Asked, and the answer was no.
    Declined,
    /// The service did not do it.
    Service(Error),
    /// The service refused a change that was read from these places, one for each operation.
    Refused {
        /// What it says.
        problem: Box<Problem>,
        /// Where each operation comes from.
        sources: Vec<String>,
    },
    /// A change in parts ended before the last of them.
    Stopped(Stopped),
    /// Nobody reads what is said.
    Output(std::io::Error),
}

/// Where a change in parts ended, and why.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub failure: Box<Failure>,
    /// The part that was not made, or of which nobody knows.
    pub part: Part,
    /// The revisions that the parts before it made.
    pub made: Vec<u64>,
}

impl Stopped {
    /// Which parts were made, and which were not.
    fn standing(&self) -> String {
        let Part { number, of } = self.part;
        let parts = |from: usize, to: usize| match to.checked_sub(from) {
            None => None,
            Some(0) => Some(format!("part {from} was")),
            Some(_) => Some(format!("parts {from} to {to} were")),
        };
        let revisions = match &*self.made {
            [] => String::new(),
            [one] => format!(" (revision {one})"),
            [first, .., last] => format!(" (revisions {first} to {last})"),
        };
        // Of this part itself nothing is said if nothing is known.
        let rest = if self.is_open() { number + 1 } else { number };
        let made = parts(1, number - 1).map(|which| format!("{which} made{revisions}"));
        let not_made = parts(rest, of).map(|which| format!("{which} not made"));
        [made, not_made].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// Whether nobody knows if the part was made.
    fn is_open(&self) -> bool {
        match &*self.failure {
            Failure::Unknown(_) => true,
            Failure::Refused { problem, .. } => problem.outcome_unknown,
            _ => false,
        }
    }

    fn in_words(&self) -> (String, Vec<String>) {
        let (what, mut next) = self.failure.in_words();
        let then = match &*self.failure {
            _ if self.is_open() => {
                next.clear();
                "`frs audit --limit 3` shows whether it was; the same command compares again, and goes on with what is left"
            }
            // That nothing was changed is right of this part only.
            Failure::Moved(_) => {
                next.clear();
                "look at what is left with `--plan`; if it is right, run the same command again"
            }
            Failure::Refused { problem, .. } if !problem.violations.is_empty() => {
                "correct that, and run the same command again: it goes on with what is left"
            }
            _ => "run the same command again: it goes on with what is left",
        };
        next.push(then.to_owned());
        (format!("{}: {what}\n{}", self.part, self.standing()), next)
    }
}

impl From<Stopped> for Failure {
    /// If nothing was made, the failure says so itself.
    fn from(stopped: Stopped) -> Self {
        if stopped.part.number == 1 && !stopped.is_open() { *stopped.failure } else { Self::Stopped(stopped) }
    }
}

impl Failure {
    /// Something does not work.
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), next: Vec::new() }
    }

    /// Something does not work, and this is what to do.
    pub(crate) fn with_next(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), next: vec![next.into()] }
    }

    /// The command line is wrong.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::Usage(what.into())
    }

    /// Whether whoever was reading has stopped: `| head`.
    pub(crate) fn is_unread(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// 1 for what failed or differs, 2 for a wrong command line, 3 if the effects moved since the plan.
    pub(crate) fn code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Moved(_) => ExitCode::from(3),
            Self::Stopped(stopped) => stopped.failure.code(),
            // `frs get clusters | head` is no failure.
            unread if unread.is_unread() => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }

    /// What is wrong, and what to do next.
    pub(crate) fn in_words(&self) -> (String, Vec<String>) {
        match self {
            Self::Shown | Self::Declined => ("nothing was changed".to_owned(), Vec::new()),
            Self::Output(error) => (format!("the output cannot be written: {error}"), Vec::new()),
            Self::Usage(what) => (what.clone(), vec!["`--help` says how it is used".to_owned()]),
            Self::Unknown(what) => (
                format!("{what}. Whether the change was made is not known"),
                vec![LOOK_FIRST.to_owned()],
            ),
            Self::Failed { what, next } => (what.clone(), next.clone()),
            Self::Stopped(stopped) => stopped.in_words(),
            Self::Moved(what) => (
                what.clone(),
                vec![
                    "nothing was changed; look at it again with `--plan`, and run the command once more if it is right"
                        .to_owned(),
                ],
            ),
            Self::Service(Error::Problem(problem)) => refused(problem, &[]),
            Self::Refused { problem, sources } => refused(problem, sources),
            Self::Service(error) => (error.to_string(), advice(error)),
        }
    }

    /// Says it.
    pub(crate) fn tell(&self, output: &Output) {
        match self {
            Self::Shown => return,
            unread if unread.is_unread() => return,
            Self::Declined => return output.note("Nothing was changed."),
            Self::Stopped(stopped) if matches!(*stopped.failure, Self::Declined) => {
                return output.note(&format!("Stopped: {}.", stopped.standing()));
            }
            _ => {}
        }
        let (what, next) = self.in_words();
        output.note(&format!("{} {what}", styled(RED, "error:")));
        for next in next {
            output.note(&format!("{} {next}", styled(BOLD, "next:")));
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Service(error)
    }
}

fn advice(error: &Error) -> Vec<String> {
    let next = match error {
        Error::Unreachable { .. } => {
            "is the service running, and the address right? `frs doctor` looks at both; `make run` starts one here"
        }
        Error::Foreign { .. } => {
            "something else answers there: `frs doctor` shows which address is used, and why"
        }
        Error::Settings(_) | Error::Name(_) | Error::Problem(_) => return Vec::new(),
    };
    vec![next.to_owned()]
}

/// A problem with everything that is wrong, and where.
fn refused(problem: &Problem, sources: &[String]) -> (String, Vec<String>) {
    let what = match &*problem.violations {
        [] => problem.detail.clone(),
        [only] if only.also == 0 => violation(only, sources),
        several => {
            let lines = several.iter().map(|one| format!("\n  {}", violation(one, sources)));
            let total: usize = several.iter().map(|one| 1 + one.also).sum();
            format!("{total} things are wrong:{}", lines.collect::<String>())
        }
    };
    let is = |name: ProblemName| problem.urn == name.urn();
    let is_about_a_document = problem.violations.iter().any(|violation| violation.document.is_some());
    let next = if is(ProblemName::TooLarge) && !sources.is_empty() && !is_about_a_document {
        "`frs apply --batch-size N` sends fewer documents at a time"
    } else if is(ProblemName::Unauthorised) {
        "set FLUX_API_TOKEN, or choose a context with the right token (`frs config get-contexts`); `frs doctor` shows which one is used"
    } else if is(ProblemName::Forbidden) {
        "use a token with the role that it needs: FLUX_API_WRITE_TOKEN, or `frs config set-context`; `frs doctor` shows whom the service takes you for"
    } else if problem.outcome_unknown {
        LOOK_FIRST
    } else if is(ProblemName::Unavailable) {
        "try again in a few seconds; `frs doctor` shows how the service is"
    } else if problem.detail == api::NO_SUCH_PATH {
        "this process only answers clusters; the fleet is managed at the address of one in crud mode. `frs doctor` shows which is used"
    } else {
        ""
    };
    (what, Some(next).filter(|next| !next.is_empty()).map(ToOwned::to_owned).into_iter().collect())
}

fn violation(violation: &api::Violation, sources: &[String]) -> String {
    // What is about no document counts others by itself.
    let also = match violation.also {
        0 => None,
        also => violation
            .document
            .as_ref()
            .map(|document| format!("{document} and {} more", count(also, "document"))),
    };
    let document = also.as_deref().or(violation.document.as_deref());
    let place = [sources.get(violation.operation).map(String::as_str), document];
    let place = place.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let at = if violation.pointer.is_empty() { String::new() } else { format!("`{}`", violation.pointer) };
    let place = [place, at].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    if place.is_empty() { violation.message.clone() } else { format!("{place}: {}", violation.message) }
}
