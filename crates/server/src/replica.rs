//! The fleet as this process knows it, behind an atomic swap: a poll takes it, and waits for nobody.
//!
//! It never goes backwards, and a process that knows a position goes on from it by commits only. A state becomes visible by a [`Turn`]
//! and in no other way: `begin`, once, for a process that knows nothing, then `advance`, which also tells subscribers. It says how
//! long ago the state was known to be the store's head: past `MAX_STALENESS` it gives nothing out. An answer that is missing harms no
//! cluster; an old one beside another replica's new one makes Flux uninstall and install again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use fleet::{Commit, NeedsNewer, Revision, State};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::broadcast;

/// How many commits a subscriber may be behind before it is cut off.
const BACKLOG: usize = 1_024;

/// How long a process answers that has met an entry which it does not understand, however large `MAX_STALENESS` is.
const WITHOUT_UNDERSTANDING: Duration = Duration::from_mins(1);

/// Why nothing is given out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotServing {
    /// Nothing was loaded and confirmed yet.
    #[error("the fleet is not loaded yet")]
    NotLoaded,
    /// The fleet is not complete.
    #[error("the fleet is being filled from a seed")]
    Seeding,
    /// The store's head could not be confirmed for too long.
    #[error("the store has not been confirmed for {0} seconds")]
    Stale(u64),
}

/// A state that does not follow from the one that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the commits do not lead from the state that is known to the one that was given")]
pub struct NotNext;

/// The fleet as this process knows it.
pub struct Replica {
    current: ArcSwapOption<State>,
    /// When it was last known to be the store's head, in milliseconds of [`now`]. 0 for never.
    confirmed: AtomicU64,
    max_staleness: Option<Duration>,
    /// Whether the store holds something that this version does not understand.
    needs_newer: AtomicBool,
    turn: Mutex<Retired>,
    trouble: Mutex<Option<Trouble>>,
    commits: broadcast::Sender<Arc<Commit>>,
}

/// States that a poll may still hold. They are let go here, so that no poll has to drop one.
type Retired = Vec<Arc<State>>;

/// What keeps the head from being confirmed.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Trouble {
    message: String,
    needs: Option<NeedsNewer>,
}

/// Milliseconds since the machine started, time asleep included: a suspended machine's fleet gets old too.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000 + 1
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Replica {
    /// One that knows nothing yet.
    pub fn new(max_staleness: Option<Duration>) -> Self {
        Self {
            current: ArcSwapOption::empty(),
            confirmed: AtomicU64::new(0),
            max_staleness,
            needs_newer: AtomicBool::new(false),
            turn: Mutex::default(),
            trouble: Mutex::default(),
            commits: broadcast::Sender::new(BACKLOG),
        }
    }

    /// The fleet, if it may be given out.
    pub fn serving(&self) -> Result<Arc<State>, NotServing> {
        // In this order: whoever is held up in between has a later state than was confirmed, not an earlier one.
        let behind = self.millis_behind();
        let state = self.current.load_full().ok_or(NotServing::NotLoaded)?;
        // However old a state may get, it was the store's head once, and a store that holds nothing is about to be filled.
        let behind = behind.filter(|_| state.head().revision > Revision(0)).ok_or(NotServing::NotLoaded)?;
        if state.seeding().is_some() {
            return Err(NotServing::Seeding);
        }
        match self.limit() {
            Some(most) if u128::from(behind) > most.as_millis() => Err(NotServing::Stale(behind / 1_000)),
            _ => Ok(state),
        }
    }

    fn limit(&self) -> Option<Duration> {
        if self.needs_newer.load(Ordering::Acquire) {
            return Some(
                self.max_staleness.map_or(WITHOUT_UNDERSTANDING, |most| most.min(WITHOUT_UNDERSTANDING)),
            );
        }
        self.max_staleness
    }

    /// The fleet as far as it is known, however old that is: to go on from, not to give out.
    pub fn known(&self) -> Option<Arc<State>> {
        self.current.load_full()
    }

    /// How long ago the head was confirmed; none if it never was.
    pub fn millis_behind(&self) -> Option<u64> {
        match self.confirmed.load(Ordering::Acquire) {
            0 => None,
            confirmed => Some(now().saturating_sub(confirmed)),
        }
    }

    /// What keeps the head from being confirmed, if something does.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).as_ref().map(|trouble| trouble.message.clone())
    }

    /// What of the store this version does not understand, if there is something.
    pub fn needs(&self) -> Option<NeedsNewer> {
        lock(&self.trouble).as_ref()?.needs.clone()
    }

    /// Every commit from now on, in order.
    pub fn subscribe(&self) -> Subscription {
        Subscription(Some(self.commits.subscribe()))
    }

    /// Takes the turn to go on: the follower while it reads and replays, the writer while it appends. So neither brings what the other is
    /// about to bring, and a process does not read its own commits back.
    pub fn turn(&self) -> Turn<'_> {
        Turn { replica: self, retired: lock(&self.turn) }
    }

    /// The turn, if nobody has it.
    pub fn try_turn(&self) -> Option<Turn<'_>> {
        match self.turn.try_lock() {
            Ok(retired) => Some(Turn { replica: self, retired }),
            Err(TryLockError::Poisoned(poisoned)) => {
                Some(Turn { replica: self, retired: poisoned.into_inner() })
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Notes that at some moment the store's head was what is known here. The writer does so while it has the turn: otherwise the
    /// follower may have met something in between that this would hide.
    pub fn confirm(&self, moment: u64) {
        self.confirmed.fetch_max(moment, Ordering::AcqRel);
        self.needs_newer.store(false, Ordering::Release);
        *lock(&self.trouble) = None;
    }

    /// Notes what keeps the head from being confirmed; `true` if that is news.
    pub fn note(&self, message: &str, needs: Option<NeedsNewer>) -> bool {
        if needs.is_some() {
            self.needs_newer.store(true, Ordering::Release);
        }
        let mut noted = lock(&self.trouble);
        let trouble = Some(Trouble { message: message.to_owned(), needs });
        let news = *noted != trouble;
        *noted = trouble;
        news
    }
}

/// Commits as they become visible, without a gap.
pub struct Subscription(Option<broadcast::Receiver<Arc<Commit>>>);

impl Subscription {
    /// The next commit. None, for good, once more than 1,024 are waiting or there can be no more: then start again from the ledger.
    pub async fn next(&mut self) -> Option<Arc<Commit>> {
        let next = self.0.as_mut()?.recv().await.ok();
        if next.is_none() {
            self.0 = None;
        }
        next
    }
}

/// The right to make the next state visible. One thread has it at a time.
pub struct Turn<'a> {
    replica: &'a Replica,
    retired: MutexGuard<'a, Retired>,
}

impl Turn<'_> {
    /// The fleet as far as it is known.
    pub fn known(&self) -> Option<Arc<State>> {
        self.replica.known()
    }

    /// Begins with a state that was loaded. Only a process that knows nothing does.
    pub fn begin(&mut self, state: State) -> Result<(), NotNext> {
        if self.known().is_some() {
            return Err(NotNext);
        }
        self.replica.current.store(Some(Arc::new(state)));
        Ok(())
    }

    /// Goes on to the state that some commits lead to, and tells subscribers of each. Positions are compared by their hashes.
    pub fn advance(&mut self, state: State, commits: Vec<Commit>) -> Result<(), NotNext> {
        let known = self.known().ok_or(NotNext)?;
        let mut at = known.head();
        for Commit { header, .. } in &commits {
            if header.previous != at.hash || header.at.revision != at.revision.next() {
                return Err(NotNext);
            }
            at = header.at;
        }
        if at != state.head() {
            return Err(NotNext);
        }
        if commits.is_empty() {
            return Ok(());
        }
        self.replica.current.store(Some(Arc::new(state)));
        self.retired.push(known);
        self.retired.retain(|old| Arc::strong_count(old) > 1);
        for commit in commits {
            // Nobody may be listening.
            let _ = self.replica.commits.send(Arc::new(commit));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fleet::{Applied, CommitId, Key, Kind, Operation, Origin, Policy, Revision, Transaction};

    use super::*;

    fn applied(state: &State, operations: Vec<Operation>) -> Applied {
        let commit = CommitId(u128::from(state.head().revision.0) + 1);
        let origin = Origin { commit, actor: "tester".into(), ..Origin::default() };
        let transaction = Transaction { operations, derived: false, confirm: None, origin };
        fleet::apply(state, &Policy::default(), &transaction).expect("accepted")
    }

    fn kinds() -> Applied {
        let kinds = Kind::shipped().into_iter().map(|kind| Operation::Define(Arc::new(kind)));
        applied(&State::empty(), kinds.collect())
    }

    fn namespace(state: &State, id: &str) -> Applied {
        let body = serde_json::json!({"id": id});
        applied(
            state,
            vec![Operation::Create { kind: "namespaces".into(), body, replace_decommissioned: false }],
        )
    }

    fn began(max_staleness: Option<Duration>) -> Replica {
        let replica = Replica::new(max_staleness);
        replica.turn().begin(kinds().next).expect("it knows nothing");
        replica
    }

    const MINUTE: Option<Duration> = Some(Duration::from_mins(1));

    #[test]
    fn nothing_is_served_before_it_is_loaded_and_confirmed() {
        let replica = Replica::new(MINUTE);
        assert_eq!(replica.serving().err(), Some(NotServing::NotLoaded));
        replica.turn().begin(kinds().next).expect("it knows nothing");
        assert_eq!(replica.serving().err(), Some(NotServing::NotLoaded), "loaded is not confirmed");
        replica.confirm(now());
        assert!(replica.serving().is_ok());
    }

    /// With unlimited staleness, a new store was served before it was filled: 200 with an empty list of clusters.
    #[test]
    fn a_store_that_holds_nothing_is_not_served_however_old_answers_may_get() {
        let replica = Replica::new(None);
        replica.turn().begin(State::empty()).expect("it knows nothing");
        assert_eq!(replica.serving().err(), Some(NotServing::NotLoaded));
        replica.confirm(now());
        assert_eq!(replica.serving().err(), Some(NotServing::NotLoaded), "it is about to be filled");
        assert_eq!(began(None).serving().err(), Some(NotServing::NotLoaded), "never confirmed");
    }

    #[test]
    fn what_was_not_confirmed_for_too_long_is_not_served() {
        let replica = began(MINUTE);
        replica.confirm(now().saturating_sub(61_000).max(1));
        assert!(matches!(replica.serving(), Err(NotServing::Stale(seconds)) if seconds >= 61));
        let unlimited = began(None);
        unlimited.confirm(1);
        assert!(unlimited.serving().is_ok());
    }

    #[test]
    fn what_is_not_understood_ends_service_after_a_minute_even_if_staleness_is_unlimited() {
        let replica = began(None);
        replica.confirm(now().saturating_sub(61_000).max(1));
        assert!(replica.serving().is_ok());
        let needs = NeedsNewer { key: Key::parse("@future", "x"), revision: Revision(2), version: None };
        assert!(replica.note("not understood", Some(needs.clone())));
        assert!(matches!(replica.serving(), Err(NotServing::Stale(_))));
        assert_eq!(replica.needs(), Some(needs));
    }

    #[test]
    fn a_late_confirmation_of_an_early_moment_does_not_make_it_older() {
        let replica = began(MINUTE);
        replica.confirm(now());
        replica.confirm(1);
        assert!(replica.serving().is_ok());
    }

    #[test]
    fn a_known_position_advances_by_commits_only() {
        let replica = began(None);
        let known = replica.known().expect("it began");
        let (one, other) = (namespace(&known, "a"), namespace(&known, "b"));
        let two = namespace(&one.next, "c");
        let commit = |applied: &Applied| applied.commit.clone().expect("a commit");
        let mut turn = replica.turn();
        assert_eq!(turn.begin(one.next.clone()), Err(NotNext), "a snapshot is for who knows nothing");
        assert_eq!(turn.advance(two.next.clone(), vec![]), Err(NotNext));
        assert_eq!(turn.advance(two.next.clone(), vec![commit(&two)]), Err(NotNext), "one is missing");
        assert_eq!(turn.advance(other.next, vec![commit(&one)]), Err(NotNext), "another state");
        assert_eq!(turn.advance(two.next.clone(), vec![commit(&one), commit(&two)]), Ok(()));
        assert_eq!(turn.advance(one.next.clone(), vec![commit(&one)]), Err(NotNext), "backwards");
        drop(turn);
        assert_eq!(replica.known().expect("known").head(), two.next.head());
    }

    #[tokio::test]
    async fn a_subscriber_gets_every_commit_in_order_and_is_cut_off_when_it_is_slow() {
        let replica = began(None);
        let (mut quick, mut slow) = (replica.subscribe(), replica.subscribe());
        for n in 0..=BACKLOG {
            let next = namespace(&replica.known().expect("known"), &format!("n{n}"));
            let commit = next.commit.expect("a commit");
            let at = commit.header.at;
            replica.turn().advance(next.next, vec![commit]).expect("it follows");
            assert_eq!(quick.next().await.expect("a commit").header.at, at);
        }
        assert!(slow.next().await.is_none() && slow.next().await.is_none(), "and gets nothing with a gap");
    }
}
