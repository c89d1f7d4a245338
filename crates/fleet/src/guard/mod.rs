//! The guard. Flux turns whatever is missing from an answer into deletion, so what a transaction would make Flux delete is worked out
//! before it happens. Removals that the request did not name, and large ones even if it did, must be confirmed. More than the hourly
//! limits needs an allowance, which no confirmation replaces.

mod removals;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use removals::{Cause, Removal, RemovalGroup, Removals};
pub use tally::{GUARD_WINDOW, Passed, Spent, Tally};

pub(crate) use removals::Named;
pub(crate) use tally::Spending;

use crate::effects::Effects;
use crate::hash::{self, Hash};
use crate::ids::{Id, KindName, Timestamp};
use crate::key::SystemKey;
use crate::sample::Sample;
use crate::space::Allowance;
use crate::state::State;
use crate::transaction::Transaction;

/// How much goes through without a question. It can be raised, not switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// On how many clusters one transaction may remove something.
    pub guard_clusters: u32,
    /// How many decommissions and removals of kinds that are guarded each there may be in an hour.
    pub deletions_per_hour: u32,
    /// How many other removals there may be in an hour.
    pub removals_per_hour: u32,
    /// How many transactions somebody may confirm in an hour.
    pub confirmations_per_hour: u32,
    /// How many clusters one transaction may reach; none for any number.
    pub changed_clusters: Option<u32>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            guard_clusters: 3,
            deletions_per_hour: 10,
            removals_per_hour: 50,
            confirmations_per_hour: 5,
            changed_clusters: None,
        }
    }
}

/// What the guard asks for before a transaction goes through.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Questions {
    /// Why its removals have to be confirmed.
    pub removals: Option<String>,
    /// Why the number of clusters that it reaches has to be confirmed.
    pub reach: Option<String>,
    /// Why it needs an allowance, whether it is confirmed or not.
    pub allowance: Option<String>,
}

impl Questions {
    /// Why a confirmation is needed, if one is.
    pub fn confirmation(&self) -> Option<String> {
        let reasons: Vec<&str> = [&self.removals, &self.reach].into_iter().flatten().map(|s| &**s).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// What confirms a transaction: a digest of what the guard asks about, with causes, and of nothing else, so that an unrelated write does
/// not spoil a confirmation. It is another one in another hour, and accepted in the hour that follows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConfirmDigest(Hash);

impl ConfirmDigest {
    fn of(asked: Hash, hour: i64) -> Self {
        Self(hash::tagged("confirm", &[&hour.to_be_bytes(), &asked.0]))
    }

    /// Reads what `Display` wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Hash::parse(text).map(Self)
    }
}

impl fmt::Display for ConfirmDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ConfirmDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the guard makes of a transaction.
pub(crate) struct Judgement {
    /// What is still missing. If nothing is, the transaction goes through.
    pub(crate) questions: Questions,
    pub(crate) digest: ConfirmDigest,
    /// On what grounds it goes through, if it does.
    pub(crate) passed: Passed,
    /// The allowance that it uses, as it is afterwards; none if that is used up.
    pub(crate) uses: Option<(SystemKey, Option<Allowance>)>,
}

/// A transaction as the guard looks at it.
pub(crate) struct Case<'a> {
    pub(crate) before: &'a State,
    pub(crate) after: &'a State,
    pub(crate) removals: &'a Removals,
    /// What it does to answers; only where the policy asks for the number of clusters.
    pub(crate) effects: Option<&'a Effects>,
    pub(crate) transaction: &'a Transaction,
    /// The time of the commit.
    pub(crate) now: Timestamp,
}

impl Case<'_> {
    pub(crate) fn judge(&self, policy: &Policy) -> Judgement {
        let mut questions = Questions {
            removals: self.why_confirm_removals(policy),
            reach: self.why_confirm_reach(policy),
            allowance: None,
        };
        let asked = self.asked(questions.reach.is_some());
        let hour = self.now.0.div_euclid(GUARD_WINDOW);
        let digest = ConfirmDigest::of(asked, hour);
        let is_asked = questions.confirmation().is_some();
        let is_confirmed = match self.transaction.confirm {
            None => false,
            Some(given) if given == digest || given == ConfirmDigest::of(asked, hour - 1) => true,
            Some(_) => {
                let other = "this is not what was confirmed, or it was confirmed more than an hour ago";
                questions.removals = Some(other.to_owned());
                false
            }
        };
        let tally = self.removals.tally();
        let spent = self.before.spending().within_the_hour_before(self.now);
        let exceeded = if is_asked {
            too_many_confirmations(policy, spent)
        } else {
            exceeds_the_hour(policy, spent, tally)
        };
        let uses = exceeded
            .as_ref()
            .and_then(|_| Allowance::covering(self.before, &self.transaction.origin.actor, self.now, tally));
        if uses.is_none() {
            questions.allowance = exceeded;
        }
        if is_asked && is_confirmed {
            (questions.removals, questions.reach) = (None, None);
        }
        // A confirmation that no rule asked for counts for nothing.
        let passed = match (&uses, is_asked && is_confirmed) {
            (Some(_), _) => Passed::Allowed,
            (None, true) => Passed::Confirmed,
            (None, false) => Passed::OnBudget,
        };
        Judgement { questions, digest, passed, uses }
    }

    /// A digest of what is asked about: the removals, and the effects if their reach is asked about.
    fn asked(&self, asks_about_reach: bool) -> Hash {
        let reach = self.effects.filter(|_| asks_about_reach).map_or(Hash::default(), Effects::digest);
        hash::tagged("asked", &[&self.removals.digest().0, &reach.0])
    }

    fn why_confirm_reach(&self, policy: &Policy) -> Option<String> {
        let most = policy.changed_clusters?;
        // A cluster that is new has nothing that could go wrong.
        let known = |id: &&Id| self.before.cluster(id.as_str()).is_some();
        let effects = &self.effects?.effects;
        let reached =
            effects.iter().flat_map(|effect| &effect.clusters).filter(known).collect::<BTreeSet<_>>().len();
        (reached > most as usize).then(|| format!("it changes what {reached} clusters get, more than {most}"))
    }

    fn why_confirm_removals(&self, policy: &Policy) -> Option<String> {
        let removals = self.removals;
        let unnamed = removals.inputs.iter().filter(|r| !r.named && r.cause != Cause::Decommissioned);
        let clusters = || unnamed.clone().map(|removal| &removal.cluster).collect::<BTreeSet<_>>();
        match (unnamed.clone().count(), removals.unnamed_decommissions.as_slice()) {
            (0, []) => {}
            (_, [_, ..]) => {
                let by = removals.unnamed_decommissions.iter().collect::<Sample<_>>();
                return Some(format!("the decommission of {by} was not asked for by name"));
            }
            (1, []) => {
                let on = clusters().into_iter().collect::<Sample<_>>();
                return Some(format!("1 removal was not asked for by name, on {on}"));
            }
            (n, []) => {
                let on = clusters().into_iter().collect::<Sample<_>>();
                return Some(format!("{n} removals were not asked for by name, on {on}"));
            }
        }
        if let [first, _, ..] = removals.decommissions.as_slice() {
            return Some(format!(
                "{} clusters are decommissioned at once, the first of them `{first}`",
                removals.decommissions.len()
            ));
        }
        let clusters = removals.clusters();
        if clusters.len() > policy.guard_clusters as usize {
            return Some(format!(
                "something is removed on {} clusters, more than {} at once",
                clusters.len(),
                policy.guard_clusters
            ));
        }
        self.empties_a_kind()
    }

    fn empties_a_kind(&self) -> Option<String> {
        let mut removed: BTreeMap<(&Id, &KindName), usize> = BTreeMap::new();
        for removal in self.removals.inputs.iter().filter(|removal| removal.cause != Cause::Decommissioned) {
            *removed.entry((&removal.cluster, &removal.kind)).or_default() += 1;
        }
        for ((cluster, kind), removed) in removed {
            let enabled = |state: &State| {
                let cluster = state.cluster(cluster.as_str());
                cluster.map_or(0, |c| c.doc.inputs_of(kind.as_str()).filter(|(_, enabled)| *enabled).count())
            };
            if removed >= 2 && enabled(self.after) == 0 {
                return Some(format!("`{cluster}` would be left without any {kind}"));
            }
            let had = enabled(self.before);
            if removed >= 3 && removed * 2 > had {
                return Some(format!("`{cluster}` would lose {removed} of its {had} {kind}"));
            }
        }
        None
    }
}

fn too_many_confirmations(policy: &Policy, spent: Spent) -> Option<String> {
    let most = policy.confirmations_per_hour;
    (spent.confirmations >= most).then(|| {
        format!(
            "{} changes were confirmed within an hour, and {most} are the most; one more needs an allowance",
            spent.confirmations
        )
    })
}

fn exceeds_the_hour(policy: &Policy, spent: Spent, tally: Tally) -> Option<String> {
    let deletions = spent.deletions.saturating_add(tally.deletions());
    if tally.deletions() > 0 && deletions > policy.deletions_per_hour {
        return Some(format!(
            "{deletions} deletions within an hour (clusters, and kinds that are guarded each), and {} are the most; more need an allowance",
            policy.deletions_per_hour
        ));
    }
    let removals = spent.removals.saturating_add(tally.ordinary);
    (tally.ordinary > 0 && removals > policy.removals_per_hour).then(|| {
        format!(
            "{removals} removals within an hour, and {} are the most; more need an allowance",
            policy.removals_per_hour
        )
    })
}
