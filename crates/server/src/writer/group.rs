//! Changes that are decided one after the other, each on what the ones before it leave, to be appended together. It decides nothing
//! itself: `fleet::apply` does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::{Commit, Policy, State, apply};

use super::{Change, Job, NotWritten, Written, still_at};

/// The most transactions that are appended together.
pub(super) const GROUP: usize = 256;
/// The most bytes of bodies that are appended together, but for a single transaction that is larger.
const GROUP_BYTES: usize = 8 * 1024 * 1024;

/// How long others are decided about before the first is appended: nobody waits for many large changes that come after their own.
const GROUP_TIME: Duration = Duration::from_secs(1);

/// The outcome that nobody is there to hear.
fn gone() -> NotWritten {
    NotWritten::Unavailable("whoever asked has gone".to_owned())
}

pub(super) struct Group {
    /// What they rest on.
    pub(super) base: Arc<State>,
    /// What comes of them.
    pub(super) state: State,
    pub(super) commits: Vec<Commit>,
    /// What each will be told once it is safe.
    pub(super) outcomes: Vec<Result<Written, NotWritten>>,
}

impl Group {
    /// Decides about the first of those who wait, as many as fit.
    pub(super) fn decide(base: Arc<State>, policy: &Policy, jobs: &VecDeque<Job>) -> Self {
        let mut group = Self { state: (*base).clone(), base, commits: Vec::new(), outcomes: Vec::new() };
        let (mut bytes, begun) = (0, Instant::now());
        for job in jobs.iter().take(GROUP) {
            let before = group.commits.len();
            // Those before it may have taken long.
            let outcome = if job.begin() { group.add(job, policy) } else { Err(gone()) };
            group.outcomes.push(outcome);
            bytes += group.commits[before..].iter().map(Commit::body_bytes).sum::<usize>();
            if bytes >= GROUP_BYTES || begun.elapsed() >= GROUP_TIME {
                break;
            }
        }
        group
    }

    fn add(&mut self, job: &Job, policy: &Policy) -> Result<Written, NotWritten> {
        still_at(&self.state, job.planned_on)?;
        let now = self.state.head();
        let applied = match &job.change {
            Change::Transaction(transaction) => apply(&self.state, policy, transaction)?,
            Change::Decided(decided) if decided.on == now => decided.applied.clone(),
            Change::Decided(decided) => {
                return Err(NotWritten::Stale { planned_on: decided.on.revision, now: now.revision });
            }
        };
        let changed = applied.changes().map(|change| (change.key().clone(), change.after().is_some()));
        let changed = changed.collect();
        self.state = applied.next.clone();
        self.commits.extend(applied.commit);
        Ok(Written { state: applied.next, changed, warnings: applied.warnings })
    }
}

#[cfg(test)]
mod tests {
    use fleet::{Kind, Operation};
    use serde_json::json;

    use super::*;
    use crate::writer::{Decided, Outcome, Request};

    /// A job that somebody waits for, for as long as the test runs.
    fn wanted((job, outcome): (Job, Outcome)) -> Job {
        std::mem::forget(outcome);
        job
    }

    fn job(operations: Vec<Operation>) -> Job {
        let request = Request {
            operations,
            derived: false,
            confirm: None,
            planned_on: None,
            actor: "file:admin".into(),
            reason: None,
            request: None,
        };
        wanted(Job::new(None, Change::Transaction(request.transaction())))
    }

    fn fleet() -> Arc<State> {
        let kinds = Kind::shipped().into_iter().map(|kind| Operation::Define(Arc::new(kind))).collect();
        let transaction = Request::of_service(kinds, "kinds").transaction();
        let applied = apply(&State::empty(), &Policy::default(), &transaction);
        Arc::new(applied.expect("the kinds are good").next)
    }

    /// Each of them makes a namespace with about so many bytes.
    fn jobs(number: usize, bytes: usize) -> VecDeque<Job> {
        let create = |n: usize| {
            let body = json!({"id": format!("n{n}"), "annotations": {"text": "x".repeat(bytes)}});
            job(vec![Operation::Create { kind: "namespaces".into(), body, replace_decommissioned: false }])
        };
        (0..number).map(create).collect()
    }

    #[test]
    fn a_group_is_bounded_by_its_number_and_by_its_bytes() {
        let taken = |jobs: &VecDeque<Job>| {
            let group = Group::decide(fleet(), &Policy::default(), jobs);
            (group.outcomes.len(), group.commits.len())
        };
        assert_eq!(taken(&jobs(300, 1)), (GROUP, GROUP));
        let some = GROUP_BYTES / 60_000 + 1;
        assert_eq!(taken(&jobs(200, 60_000)), (some, some));
    }

    #[test]
    fn each_of_a_group_is_decided_on_what_the_ones_before_it_leave() {
        let twice: VecDeque<Job> = jobs(1, 1).into_iter().chain(jobs(1, 1)).collect();
        let group = Group::decide(fleet(), &Policy::default(), &twice);
        let outcomes: Vec<bool> = group.outcomes.iter().map(Result::is_ok).collect();
        assert_eq!((outcomes, group.commits.len()), (vec![true, false], 1));
    }

    #[test]
    fn what_was_decided_before_is_not_made_on_another_fleet_of_the_same_revision() {
        let namespace = |id: &str| {
            let body = json!({"id": id});
            let create = Operation::Create { kind: "namespaces".into(), body, replace_decommissioned: false };
            Request::of_service(vec![create], "a namespace")
        };
        let decided = |state: &State, id: &str| {
            Decided::on(state, &Policy::default(), namespace(id)).expect("a good one")
        };
        let one = decided(&fleet(), "a");
        let other = Arc::new(decided(&fleet(), "c").next().clone());
        assert_eq!(other.head().revision, one.next().head().revision);
        let queue =
            || VecDeque::from([wanted(Job::new(None, Change::Decided(Box::new(decided(one.next(), "b")))))]);
        let group = Group::decide(Arc::new(one.next().clone()), &Policy::default(), &queue());
        assert_eq!(group.commits[0].changes[0].key().to_string(), "namespaces/b");
        assert!(group.outcomes[0].is_ok() && group.commits[0].header.previous == one.next().head().hash);
        let stale = Group::decide(other, &Policy::default(), &queue());
        assert!(matches!(stale.outcomes[0], Err(NotWritten::Stale { .. })) && stale.commits.is_empty());
    }

    #[test]
    fn of_a_group_only_those_are_decided_whom_somebody_waits_for() {
        let create = |id: &str| {
            let body = json!({"id": id});
            Operation::Create { kind: "namespaces".into(), body, replace_decommissioned: false }
        };
        let request = Request::of_service(vec![create("left")], "a test");
        let (left, outcome) = Job::of(request);
        drop(outcome);
        let queue: VecDeque<Job> =
            [job(vec![create("first")]), left, job(vec![create("last")])].into_iter().collect();
        let group = Group::decide(fleet(), &Policy::default(), &queue);
        let outcomes: Vec<bool> = group.outcomes.iter().map(Result::is_ok).collect();
        assert_eq!((outcomes, group.commits.len()), (vec![true, false, true], 2));
        assert!(group.state.definition("namespaces", "left").is_none(), "it was never made");
    }

    #[test]
    fn a_plan_is_stale_once_another_of_the_same_group_has_changed_the_fleet() {
        let fleet = fleet();
        let on_head = |job: Job| Job { planned_on: Some(fleet.head().revision), ..job };
        let nothing = || job(Vec::new());
        let queue = [nothing()].into_iter().chain(jobs(2, 1)).chain([nothing()]).map(on_head).collect();
        let group = Group::decide(fleet.clone(), &Policy::default(), &queue);
        let told = |outcome: &Result<Written, NotWritten>| match outcome {
            Ok(written) => written.state.head().revision.to_string(),
            Err(error) => error.to_string(),
        };
        let stale = "the fleet is at revision 2, and this was planned on revision 1; plan it again";
        assert_eq!(group.outcomes.iter().map(told).collect::<Vec<_>>(), ["1", "2", stale, stale]);
        assert_eq!(group.commits.len(), 1);
    }
}
