//! Why a transaction was refused. Knows no HTTP: the server maps a [`Reason`] to a status in one place.

use std::collections::BTreeMap;
use std::fmt;

use crate::finding::Finding;
use crate::guard::{ConfirmDigest, Removals};
use crate::ids::{Id, Revision};
use crate::key::Key;
use crate::pointer::Pointer;
use crate::sample::{REPORTED, Sample};

/// What sort of violation it is, with what a caller needs to act on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The document or the cluster that an operation is about does not exist.
    Missing,
    /// The expected revision is not the document's revision.
    Stale {
        /// The revision that the document has now.
        now: Revision,
    },
    /// There is already a document of that id, or a cluster or tombstone of that DNS name.
    Exists,
    /// The cluster is protected from deletion.
    Protected,
    /// Something still refers to what would be deleted.
    InUse {
        /// Who does.
        by: Sample<Id>,
    },
    /// A document or an answer would be over its limit.
    TooLarge,
    /// The request or the resulting document breaks a rule.
    Invalid,
}

impl Reason {
    /// When several things are wrong, the refusal as a whole is of the most basic sort.
    fn rank(&self) -> u8 {
        match self {
            Self::Missing => 0,
            Self::Stale { .. } => 1,
            Self::Exists => 2,
            Self::Protected => 3,
            Self::InUse { .. } => 4,
            Self::Invalid => 5,
            Self::TooLarge => 6,
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The index of the operation that caused it.
    pub operation: usize,
    /// The document it is in, if it is in one.
    pub key: Option<Key>,
    /// Where in the resulting document.
    pub pointer: Pointer,
    /// What is wrong and what would be right.
    pub message: String,
    /// What sort of thing it is.
    pub reason: Reason,
    /// In how many more documents of the operation exactly this is wrong.
    pub also: usize,
}

/// A transaction that was refused. Nothing of it happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rejection {
    /// Rules are broken: all of them, never only the first. Not empty.
    Refused(Vec<Violation>),
    /// The guard asks about it, and nobody has confirmed exactly this.
    Confirm(Box<Confirmation>),
    /// The guard's budget of the hour is used up, and no allowance covers this.
    Allowance(Box<NeedsAllowance>),
}

/// What has to be confirmed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Confirmation {
    /// What Flux would delete.
    pub removals: Removals,
    /// What to send with the transaction to confirm exactly this.
    pub digest: ConfirmDigest,
    /// Why a confirmation is needed.
    pub because: String,
}

/// What only an allowance lets through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeedsAllowance {
    /// What Flux would delete.
    pub removals: Removals,
    /// Who needs the allowance.
    pub actor: Box<str>,
    /// Why it is needed.
    pub because: String,
}

impl Rejection {
    /// What sort of refusal the whole is; none if the guard has stopped it.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Refused(violations) => {
                violations.iter().map(|v| &v.reason).min_by_key(|reason| reason.rank())
            }
            Self::Confirm(_) | Self::Allowance(_) => None,
        }
    }

    /// How many things are wrong, those included that are told together.
    pub fn total(&self) -> usize {
        self.violations().iter().map(|violation| 1 + violation.also).sum()
    }

    /// The violations; none if the guard has stopped it.
    pub fn violations(&self) -> &[Violation] {
        match self {
            Self::Refused(violations) => violations,
            Self::Confirm(_) | Self::Allowance(_) => &[],
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(violations) => {
                let told =
                    violations.iter().map(|v| format!("{}: {}", v.pointer, v.message)).collect::<Vec<_>>();
                f.write_str(&told.join("; "))
            }
            Self::Confirm(stopped) => write!(f, "waits for a confirmation: {}", stopped.because),
            Self::Allowance(stopped) => write!(f, "waits for an allowance: {}", stopped.because),
        }
    }
}

impl std::error::Error for Rejection {}

/// Collects what is wrong with a transaction.
#[derive(Default)]
pub(crate) struct Violations(Vec<Violation>);

impl Violations {
    pub(crate) fn add(&mut self, operation: usize, key: Option<Key>, reason: Reason, finding: Finding) {
        let Finding { pointer, message } = finding;
        self.0.push(Violation { operation, key, pointer, message, reason, also: 0 });
    }

    pub(crate) fn invalid(
        &mut self,
        operation: usize,
        key: impl Into<Key>,
        findings: impl IntoIterator<Item = Finding>,
    ) {
        let key = key.into();
        for finding in findings {
            self.add(operation, Some(key.clone()), Reason::Invalid, finding);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In the order of operations and documents. What is wrong in the same way in many documents is told once; of an operation that breaks
    /// rules in many ways, the first documents and a count.
    pub(crate) fn finish(mut self) -> Vec<Violation> {
        self.0.sort_by(|a, b| (a.operation, &a.key, &a.pointer).cmp(&(b.operation, &b.key, &b.pointer)));
        let mut kept: Vec<Violation> = Vec::new();
        for of_operation in self.0.chunk_by(|a, b| a.operation == b.operation) {
            let alike = told_once(of_operation);
            let documents: Vec<&[Violation]> = alike.chunk_by(|a, b| a.key == b.key).collect();
            let (first, rest) = documents.split_at(documents.len().min(REPORTED));
            kept.extend(first.iter().copied().flatten().cloned());
            let left_out: Vec<&Violation> = rest.iter().copied().flatten().collect();
            let reasons = left_out.iter().map(|violation| &violation.reason);
            if let Some(reason) = reasons.min_by_key(|reason| reason.rank()) {
                let more = left_out.iter().map(|violation| 1 + violation.also).sum::<usize>();
                kept.push(Violation {
                    operation: of_operation[0].operation,
                    key: None,
                    pointer: Pointer::root(),
                    message: format!("and {more} more things like these"),
                    reason: reason.clone(),
                    also: more - 1,
                });
            }
        }
        kept
    }
}

/// The same in several documents as one, where it is found first.
fn told_once(violations: &[Violation]) -> Vec<Violation> {
    let mut known: BTreeMap<(&Pointer, &str), Vec<usize>> = BTreeMap::new();
    let mut told: Vec<Violation> = Vec::new();
    for violation in violations {
        let same = known.entry((&violation.pointer, &violation.message)).or_default();
        let found = same.iter().copied().find(|at| {
            let other = &told[*at];
            // Two that are about no document, or about the same, are two.
            other.reason == violation.reason
                && other.key.is_some()
                && violation.key.is_some()
                && other.key != violation.key
        });
        match found {
            Some(at) => told[at].also += 1,
            None => {
                same.push(told.len());
                told.push(violation.clone());
            }
        }
    }
    told
}
