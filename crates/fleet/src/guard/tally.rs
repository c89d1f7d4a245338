//! What removals count, and how much of the hour is used up.

use std::sync::Arc;

use crate::ids::Timestamp;

/// How many removals a commit made, and on what grounds the guard let it pass.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Clusters decommissioned.
    pub decommissions: u32,
    /// Clusters that left the list of an environment, and removed inputs of kinds that are guarded each; but for those of
    /// decommissioned clusters.
    pub each: u32,
    /// Removed inputs of other kinds, but for those of decommissioned clusters.
    pub ordinary: u32,
    pub passed: Passed,
}

/// On what grounds the guard let a commit pass. The numbers are part of a commit's hash.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Passed {
    /// No rule asked: what it removes counts against the budgets of the hour.
    #[default]
    OnBudget = 0,
    /// A rule asked, and somebody confirmed exactly this: it counts as one of the confirmations of the hour.
    Confirmed = 1,
    /// An allowance covered it: it counts against that and nothing else.
    Allowed = 2,
}

impl Passed {
    const ALL: [Self; 3] = [Self::OnBudget, Self::Confirmed, Self::Allowed];

    /// Reads what [`Passed::number`] gave.
    pub fn parse(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|passed| passed.number() == number)
    }

    /// The number that stores and hashes have for it.
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl Tally {
    /// What counts against the deletions of an hour.
    pub fn deletions(self) -> u32 {
        self.decommissions.saturating_add(self.each)
    }

    /// The deletions and the other removals that an allowance has to cover. A change that removes nothing takes a removal of it, so that
    /// no allowance covers such changes without end.
    pub fn to_be_allowed(self) -> (u32, u32) {
        match (self.deletions(), self.ordinary) {
            (0, 0) => (0, 1),
            needed => needed,
        }
    }

    fn counts(self) -> bool {
        match self.passed {
            Passed::OnBudget => self.deletions() > 0 || self.ordinary > 0,
            Passed::Confirmed => true,
            Passed::Allowed => false,
        }
    }
}

/// What is used up of an hour.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spent {
    /// Decommissions and removals of kinds that are guarded each.
    pub deletions: u32,
    /// Other removals.
    pub removals: u32,
    /// Transactions that somebody confirmed.
    pub confirmations: u32,
}

/// How long removals and confirmations count, in milliseconds.
pub const GUARD_WINDOW: i64 = 3_600_000;

/// The commits of the last hour that count, by their times.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Spending(Arc<[(Timestamp, Tally)]>);

impl Spending {
    /// From the last hour's commits, oldest first.
    pub(crate) fn of(commits: impl IntoIterator<Item = (Timestamp, Tally)>) -> Self {
        commits.into_iter().fold(Self::default(), |spending, (time, tally)| spending.after(time, tally))
    }

    /// The spending after a commit.
    pub(crate) fn after(&self, time: Timestamp, tally: Tally) -> Self {
        let recent = |(at, _): &&(Timestamp, Tally)| is_within_the_hour(*at, time);
        if !tally.counts() && self.0.iter().all(|spent| recent(&spent)) {
            return self.clone();
        }
        Self(self.0.iter().filter(recent).copied().chain(tally.counts().then_some((time, tally))).collect())
    }

    /// What is used up of the hour before a moment.
    pub(crate) fn within_the_hour_before(&self, now: Timestamp) -> Spent {
        let mut spent = Spent::default();
        for (_, tally) in self.0.iter().filter(|(at, _)| is_within_the_hour(*at, now)) {
            match tally.passed {
                Passed::OnBudget => {
                    spent.deletions = spent.deletions.saturating_add(tally.deletions());
                    spent.removals = spent.removals.saturating_add(tally.ordinary);
                }
                Passed::Confirmed => spent.confirmations += 1,
                Passed::Allowed => {}
            }
        }
        spent
    }
}

fn is_within_the_hour(at: Timestamp, now: Timestamp) -> bool {
    now.0.saturating_sub(at.0) < GUARD_WINDOW
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removals(n: u32) -> Tally {
        Tally { ordinary: n, ..Tally::default() }
    }

    #[test]
    fn spending_forgets_after_an_hour_to_the_millisecond() {
        let spending = Spending::of([(Timestamp(0), removals(3)), (Timestamp(10), removals(4))]);
        assert_eq!(spending.within_the_hour_before(Timestamp(GUARD_WINDOW - 1)).removals, 7);
        assert_eq!(spending.within_the_hour_before(Timestamp(GUARD_WINDOW)).removals, 4);
        assert_eq!(spending.within_the_hour_before(Timestamp(GUARD_WINDOW + 10)).removals, 0);
        assert_eq!(spending.after(Timestamp(GUARD_WINDOW), removals(1)).0.len(), 2);
    }

    #[test]
    fn a_commit_that_removes_nothing_spends_nothing() {
        assert_eq!(Spending::of([(Timestamp(0), Tally::default())]), Spending::default());
    }

    #[test]
    fn a_confirmed_commit_spends_a_confirmation_and_an_allowed_one_spends_nothing() {
        let of = |passed| {
            let tally = Tally { passed, decommissions: 1, each: 2, ordinary: 100 };
            Spending::of([(Timestamp(0), tally)]).within_the_hour_before(Timestamp(1))
        };
        assert_eq!(of(Passed::OnBudget), Spent { deletions: 3, removals: 100, confirmations: 0 });
        assert_eq!(of(Passed::Confirmed), Spent { deletions: 0, removals: 0, confirmations: 1 });
        assert_eq!(of(Passed::Allowed), Spent::default());
    }

    #[test]
    fn on_what_grounds_a_commit_passed_reads_back_from_its_number() {
        assert_eq!(Passed::ALL.map(|passed| Passed::parse(passed.number())), Passed::ALL.map(Some));
        assert_eq!(Passed::parse(3), None);
    }
}
