//! `@?allowances`: what somebody may remove beyond the guard's hourly budgets, for a while. Each is used up by what it lets through.

use serde_json::{Map, Value, json};

use crate::canonical::Canonical;
use crate::commit::Origin;
use crate::finding::Finding;
use crate::guard::Tally;
use crate::ids::{Id, Timestamp};
use crate::key::SystemKey;
use crate::pointer::Pointer;
use crate::space::{Space, SystemEntry};
use crate::state::State;

pub(super) const SPACE: &str = "@?allowances";

/// The longest life of an allowance, in minutes.
const MAX_MINUTES: u32 = 4 * 60;
/// The most deletions, and the most removals, of one allowance.
const MAX_ALLOWED: u32 = 10_000;
/// The most allowances at a time.
const MAX_ALLOWANCES: usize = 100;
const MAX_ACTOR: usize = 256;

/// What somebody is to be allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The actor.
    pub to: Box<str>,
    /// How many decommissions, and removals of kinds that are guarded each.
    pub deletions: u32,
    /// How many other removals.
    pub removals: u32,
    /// For how long.
    pub minutes: u32,
}

/// What somebody is allowed, as far as it is not used up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// The actor.
    pub to: Box<str>,
    /// How many decommissions, and removals of kinds that are guarded each.
    pub deletions: u32,
    /// How many other removals.
    pub removals: u32,
    /// When it ends.
    pub until: Timestamp,
    /// Who granted it.
    pub by: Box<str>,
    /// Why.
    pub reason: Box<str>,
}

impl State {
    /// The allowances that are in force at a moment, with their ids, in the order in which they end.
    pub fn allowances(&self, now: Timestamp) -> Vec<(&Id, &Allowance)> {
        let mut live: Vec<_> = self.all_allowances().filter(|(_, allowance)| now < allowance.until).collect();
        live.sort_by_key(|(id, allowance)| (allowance.until, *id));
        live
    }

    fn all_allowances(&self) -> impl Iterator<Item = (&Id, &Allowance)> {
        self.system_entries().filter_map(|(key, entry)| match entry {
            SystemEntry::Allowance(allowance) => Some((&key.id, allowance)),
            SystemEntry::Seed(_) | SystemEntry::Opaque(_) => None,
        })
    }

    /// The allowance of that id, in force or not.
    pub(crate) fn allowance(&self, id: &str) -> Option<&Allowance> {
        match self.system(&key(id))? {
            SystemEntry::Allowance(allowance) => Some(allowance),
            SystemEntry::Seed(_) | SystemEntry::Opaque(_) => None,
        }
    }
}

fn key(id: &str) -> SystemKey {
    SystemKey { space: Space::Allowances, id: id.into() }
}

impl Grant {
    /// What a transaction does that grants this: a new entry under the id of the commit, and those that have ended go.
    pub(crate) fn changes(
        &self,
        before: &State,
        origin: &Origin,
    ) -> Result<Vec<(SystemKey, Option<SystemEntry>)>, Vec<Finding>> {
        let mut findings = Vec::new();
        let mut wrong = |member: &str, message: String| {
            findings.push(Finding::new(Pointer::to(member), message));
        };
        if self.to.is_empty() || self.to.len() > MAX_ACTOR || self.to.chars().any(char::is_control) {
            wrong(
                "for",
                format!(
                    "must be an actor as the audit log shows it, such as `file:alice`, of at most {MAX_ACTOR} bytes"
                ),
            );
        }
        for (member, number) in [("deletions", self.deletions), ("removals", self.removals)] {
            if number > MAX_ALLOWED {
                wrong(member, format!("is {number}; at most {MAX_ALLOWED} can be allowed at once"));
            }
        }
        if self.deletions == 0 && self.removals == 0 {
            wrong("deletions", "an allowance of no deletions and no removals allows nothing".to_owned());
        }
        if !(1..=MAX_MINUTES).contains(&self.minutes) {
            wrong("minutes", format!("is {}; it must be 1 to {MAX_MINUTES}", self.minutes));
        }
        let Some(reason) = origin.reason.clone() else {
            wrong(
                "reason",
                "an allowance is granted for a reason, which is the reason of the change".to_owned(),
            );
            return Err(findings);
        };
        let live = before.allowances(origin.time).len();
        if live >= MAX_ALLOWANCES {
            wrong("for", format!("{live} allowances are in force, and that is the most; revoke one first"));
        }
        if !findings.is_empty() {
            return Err(findings);
        }
        let allowance = Allowance {
            to: self.to.clone(),
            deletions: self.deletions,
            removals: self.removals,
            until: Timestamp(origin.time.0.saturating_add(i64::from(self.minutes) * 60_000)),
            by: origin.actor.clone(),
            reason,
        };
        let ended = before.all_allowances().filter(|(_, allowance)| allowance.until <= origin.time);
        let mut changes: Vec<_> = ended.map(|(id, _)| (key(id.as_str()), None)).collect();
        changes.push((key(&origin.commit.to_string()), Some(SystemEntry::Allowance(allowance))));
        Ok(changes)
    }
}

impl Allowance {
    /// What a transaction does that takes an allowance back.
    pub(crate) fn revocation(id: &str) -> (SystemKey, Option<SystemEntry>) {
        (key(id), None)
    }

    /// The allowance of an actor that covers removals, and what is left of it after them; nothing is left of one that is used up.
    pub(crate) fn covering(
        state: &State,
        actor: &str,
        now: Timestamp,
        removals: Tally,
    ) -> Option<(SystemKey, Option<Self>)> {
        let (deletions, removals) = removals.to_be_allowed();
        state.allowances(now).into_iter().filter(|(_, allowance)| &*allowance.to == actor).find_map(
            |(id, allowance)| {
                let left = Self {
                    deletions: allowance.deletions.checked_sub(deletions)?,
                    removals: allowance.removals.checked_sub(removals)?,
                    ..allowance.clone()
                };
                let is_used_up = left.deletions == 0 && left.removals == 0;
                Some((key(id.as_str()), (!is_used_up).then_some(left)))
            },
        )
    }

    /// A field that this version does not know may say that it allows less: then the entry is not understood.
    pub(super) fn decode(mut map: Map<String, Value>) -> Result<Self, Finding> {
        fn take<T>(
            map: &mut Map<String, Value>,
            member: &str,
            expected: &str,
            read: impl Fn(&Value) -> Option<T>,
        ) -> Result<T, Finding> {
            let value = map.remove(member);
            let wrong = || Finding::new(Pointer::to(member), format!("must be {expected}"));
            value.as_ref().and_then(read).ok_or_else(wrong)
        }
        let text = |map: &mut _, member| take(map, member, "a string", |value| value.as_str().map(Box::from));
        let number =
            |map: &mut _, member| take(map, member, "a number", |value| u32::try_from(value.as_u64()?).ok());
        let allowance = Self {
            to: text(&mut map, "for")?,
            deletions: number(&mut map, "deletions")?,
            removals: number(&mut map, "removals")?,
            until: take(&mut map, "until", "a number of milliseconds", |value| {
                value.as_i64().map(Timestamp)
            })?,
            by: text(&mut map, "by")?,
            reason: text(&mut map, "reason")?,
        };
        match map.keys().next() {
            None => Ok(allowance),
            Some(unknown) => Err(Finding::new(Pointer::to(unknown), "is not known to this version")),
        }
    }

    pub(super) fn canonical(&self) -> Canonical {
        let Self { to, deletions, removals, until, by, reason } = self;
        let value = json!({
            "for": &**to, "deletions": deletions, "removals": removals, "until": until.0, "by": &**by, "reason": &**reason,
        });
        Canonical::of(value.as_object().expect("it is one"))
    }
}
