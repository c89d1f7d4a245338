//! Following the ledger: replay and load arrive where `apply` did, notice what was tampered with, and never validate.

use crate::common::*;
use fleet::{
    Canonical, Change, ChangesDigest, Commit, Diverged, DocumentKey, Epoch, Hash, Header, Key, Kind, Loader,
    NeedsNewer, Origin, Policy, Position, Reserved, Revision, Row, State, StateDigest, Tally, Timestamp,
    Transaction, Uid, apply,
};
use serde_json::json;

/// A fleet, and every commit that made it.
fn history() -> (Fleet, Vec<Commit>) {
    let mut fleet = Fleet::small();
    let mut commits = fleet.commits.clone();
    for operations in [
        vec![strategic(
            "clusters",
            "dev-1",
            json!({"platform_components": [{"id": "grafana", "oci_tag": "9.9.9"}]}),
        )],
        vec![unassign("dev-1", "namespaces", "team-c"), delete("namespaces", "team-c")],
        vec![delete("clusters", "prod-1")],
        vec![
            tiny_kind(&json!({})),
            create("tinies", json!({"id": "one"})),
            assign("dev-1", "tinies", "one", json!(null)),
        ],
    ] {
        commits.extend(fleet.accept(operations).commit);
    }
    (fleet, commits)
}

/// A commit made by somebody whose rules are not ours.
fn forged(state: &State, after: &State, changes: Vec<Change>) -> Commit {
    let header = Header {
        at: Position { revision: state.head().revision.next(), hash: Hash::default() },
        previous: state.head().hash,
        epoch: Epoch::default(),
        state: after.digest(),
        origin: Origin { time: state.time(), version: "9.9.9".into(), ..origin(77, 0) },
        removals: Tally::default(),
        changes: ChangesDigest::of(&changes),
    };
    let mut commit = Commit { header, changes };
    commit.header.at.hash = commit.header.expected_hash();
    commit
}

/// A change that makes an entry.
fn made(key: Key, body: &str) -> Change {
    Change::new(key, Uid(1), Some(Canonical::stored(body)))
}

/// The commit of some new entries, whatever they are, and the state that it makes.
fn forged_with(fleet: &Fleet, changes: Vec<Change>) -> Commit {
    // The digest that they make is found by loading them beside what is there.
    let revision = fleet.state.head().revision.next();
    let added = changes.iter().map(|change| Row {
        key: change.key().clone(),
        body: change.after().expect("a put").clone(),
        revision,
        uid: change.uid(),
    });
    let all = store(&fleet.commits).into_iter().chain(added).collect();
    let after = load(&fleet.state, all, None).expect("they load");
    forged(&fleet.state, &after, changes)
}

#[test]
fn replay_arrives_where_apply_did() {
    let (fleet, commits) = history();
    let replayed =
        commits.iter().fold(State::empty(), |state, commit| state.replay(commit).expect("it follows"));
    assert_eq!(replayed, fleet.state);
    assert_eq!(replayed.head(), commits.last().expect("some").header.at);
}

#[test]
fn a_tombstone_that_a_new_cluster_replaces_is_gone() {
    let mut fleet = Fleet::small();
    let (before, body) = (contents(&fleet.state), fleet.document("clusters", "prod-1"));
    fleet.accept(vec![delete("clusters", "prod-1")]);
    fleet.accept(vec![fleet::Operation::Create {
        kind: "clusters".into(),
        body,
        replace_decommissioned: true,
    }]);
    assert_eq!(contents(&fleet.state), before);
}

#[test]
fn replay_refuses_what_does_not_follow_or_was_changed_on_the_way() {
    let (_, commits) = history();
    let (start, commits) = commits.split_at(Fleet::small().commits.len());
    let state = start.iter().fold(State::empty(), |state, commit| state.replay(commit).expect("it follows"));
    assert_eq!(state.replay(&commits[1]).expect_err("skips one"), Diverged::Position);
    let next = state.replay(&commits[0]).expect("follows");
    assert_eq!(next.replay(&commits[0]).expect_err("twice"), Diverged::Position);

    let tampered: [fn(&mut Commit); 13] = [
        |commit| commit.header.origin.actor = "somebody else".into(),
        |commit| commit.header.origin.reason = Some("".into()),
        |commit| commit.header.origin.time = Timestamp(0),
        |commit| commit.header.removals.passed = fleet::Passed::Confirmed,
        |commit| commit.header.state = StateDigest::default(),
        |commit| commit.header.at.hash = Hash::default(),
        |commit| commit.header.origin.version = "0.0.0".into(),
        |commit| commit.header.epoch = Epoch(1),
        |commit| {
            commit.header.origin.idempotency =
                Some(fleet::Idempotency { key: "k".into(), request: Hash::default() });
        },
        |commit| commit.header.changes.count += 1,
        |commit| commit.changes.clear(),
        |commit| {
            let change = &commit.changes[0];
            let body = change.after().expect("a put").as_str().replace("9.9.9", "6.6.6");
            commit.changes[0] =
                Change::new(change.key().clone(), change.uid(), Some(Canonical::stored(body)));
        },
        |commit| {
            let change = &commit.changes[0];
            commit.changes[0] = Change::new(change.key().clone(), Uid(7), change.after().cloned());
        },
    ];
    for (n, tamper) in tampered.into_iter().enumerate() {
        let mut commit = commits[0].clone();
        tamper(&mut commit);
        assert_eq!(state.replay(&commit).expect_err("tampered"), Diverged::Commit, "{n}");
        if n >= 10 {
            // Even with hashes that were made anew, the state is not the one that was recorded.
            commit.header.changes = ChangesDigest::of(&commit.changes);
            commit.header.at.hash = commit.header.expected_hash();
            assert_eq!(state.replay(&commit).expect_err("tampered"), Diverged::State, "{n}");
        }
    }
}

#[test]
fn replay_accepts_documents_that_todays_rules_refuse() {
    let mut fleet = Fleet::small();
    let strange = r#"{"annotations":{"a b":"c"},"id":"kube-Strange","more":{"x":[1]}}"#;
    let cluster = r#"{"cluster_dns":"Old.Example","cluster_name":"","environment":"staging","id":"old","namespaces":[{"id":"kube-Strange","more":1}],"patches":{"ghost":{"a":"1","a.b":"2"}},"zone":"z"}"#;
    let changes = vec![
        made(Key::document("clusters", "old"), cluster),
        made(Key::document("namespaces", "kube-Strange"), strange),
    ];
    let commit = forged_with(&fleet, changes);
    fleet.state = fleet.state.replay(&commit).expect("it is followed");
    assert_eq!(
        serde_json::to_string(&fleet.document("clusters", "old")).expect("JSON"),
        cluster,
        "and comes back as it was"
    );
    let fleet::Answer::Inputs(inputs) = fleet::render(&fleet.state, "Old.Example", "namespaces") else {
        panic!("it is served")
    };
    assert_eq!(
        std::str::from_utf8(inputs.body()).expect("text"),
        r#"{"inputs":[{"annotations":{"a b":"c"},"cluster":{"dns":"Old.Example","environment":"staging","name":""},"hash":"576c4c06bc5b4e84","id":"kube-Strange","labels":{}}]}"#
    );
}

#[test]
fn replay_refuses_what_it_cannot_represent() {
    let fleet = Fleet::small();
    for (kind, body) in [
        ("namespaces", "[]"),
        ("namespaces", "{"),
        ("clusters", r#"{"id":"x"}"#),
        ("no-such-kind", r#"{"id":"x"}"#),
    ] {
        let commit = forged(&fleet.state, &fleet.state, vec![made(Key::document(kind, "x"), body)]);
        assert!(matches!(fleet.state.replay(&commit), Err(Diverged::Undecodable { .. })), "{kind} {body}");
    }
}

/// The rows of a store after some commits.
fn store(commits: &[Commit]) -> Vec<Row> {
    let mut rows: std::collections::BTreeMap<Key, Row> = std::collections::BTreeMap::new();
    for commit in commits {
        for change in &commit.changes {
            match Row::after(&commit.header, change) {
                Some(row) => rows.insert(change.key().clone(), row),
                None => rows.remove(change.key()),
            };
        }
    }
    rows.into_values().collect()
}

/// Loads rows, against the digest that the head's commit has, or against whatever they come to.
fn load(state: &State, rows: Vec<Row>, head: Option<&Header>) -> Result<State, Diverged> {
    let (kinds, others): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| matches!(row.key, Key::Kind(_)));
    let mut loader = Loader::new(kinds)?;
    loader.push(others.into_iter().rev())?;
    match head {
        Some(head) => loader.finish(head, []),
        None => {
            let mut header = forged(state, state, Vec::new()).header;
            header.state = loader.digest();
            header.at.hash = header.expected_hash();
            loader.finish(&header, [])
        }
    }
}

#[test]
fn a_loaded_state_serves_what_the_replayed_one_does() {
    let (fleet, _) = history();
    let head = fleet.commits.last().map(|commit| &commit.header);
    let loaded = load(&fleet.state, store(&fleet.commits), head).expect("it loads");
    assert_eq!((loaded.head(), loaded.digest()), (fleet.state.head(), fleet.state.digest()));
    for (cluster, path) in [
        ("dev-1", "platform-components"),
        ("dev-1", "namespaces"),
        ("dev-1", "tinies"),
        ("prod-1", "namespaces"),
    ] {
        let body = |state: &State| match fleet::render(state, &format!("{cluster}.k8s.example.com"), path) {
            fleet::Answer::Inputs(inputs) => inputs.into_body(),
            other => panic!("{other:?}"),
        };
        assert_eq!(body(&loaded), body(&fleet.state), "{cluster} {path}");
    }
    let team_a = DocumentKey::new("namespaces", "team-a");
    assert_eq!(loaded.usage(&team_a), fleet.state.usage(&team_a));
    // And it goes on from there as the other would.
    let transaction = Transaction {
        operations: vec![delete("clusters", "dev-1")],
        derived: false,
        confirm: None,
        origin: origin(500, fleet.now),
    };
    let on_loaded = apply(&loaded, &Policy::default(), &transaction).expect("good").commit;
    assert_eq!(on_loaded, apply(&fleet.state, &Policy::default(), &transaction).expect("good").commit);
}

#[test]
fn an_edited_missing_or_added_row_is_noticed_at_load() {
    let (fleet, _) = history();
    let good = store(&fleet.commits);
    let head = fleet.commits.last().map(|commit| &commit.header);
    for n in 0..good.len() {
        let mut missing = good.clone();
        let gone = missing.remove(n);
        if !matches!(gone.key, Key::Kind(_)) {
            assert_eq!(
                load(&fleet.state, missing, head).expect_err("a row is missing"),
                Diverged::State,
                "{}",
                gone.key
            );
        }
        let mut edited = good.clone();
        let body = edited[n].body.as_str().replacen('e', "f", 1);
        edited[n].body = Canonical::stored(body);
        assert!(load(&fleet.state, edited, head).is_err(), "{} was edited", gone.key);
        // Tokens, freezes and tags will rest on these two.
        let edits: [fn(&mut Row); 2] = [|row| row.uid.0 ^= 1, |row| row.revision.0 += 1];
        for edit in edits {
            let mut edited = good.clone();
            edit(&mut edited[n]);
            assert_eq!(
                load(&fleet.state, edited, head).expect_err("edited"),
                Diverged::State,
                "{}",
                gone.key
            );
        }
    }
    let mut added = good.clone();
    added.push(Row {
        key: Key::document("namespaces", "extra"),
        body: Canonical::stored(r#"{"id":"extra"}"#),
        revision: Revision(1),
        uid: Uid(1),
    });
    assert_eq!(load(&fleet.state, added, head).expect_err("a row was added"), Diverged::State);
}

#[test]
fn the_guard_remembers_the_last_hour_over_a_restart() {
    let mut fleet = Fleet::small();
    fleet.policy.deletions_per_hour = 1;
    let commit = fleet.accept(vec![unassign("dev-1", "namespaces", "team-c")]).commit.expect("a commit");
    let (kinds, others): (Vec<Row>, Vec<Row>) =
        store(&fleet.commits).into_iter().partition(|row| matches!(row.key, Key::Kind(_)));
    let mut loader = Loader::new(kinds).expect("kinds");
    loader.push(others).expect("rows");
    let header = &commit.header;
    fleet.state = loader.finish(header, [(header.origin.time, header.removals)]).expect("it loads");
    assert!(matches!(
        fleet.reject(vec![unassign("dev-1", "namespaces", "team-b")]),
        fleet::Rejection::Allowance(_)
    ));
}

#[test]
fn a_kind_of_another_time_is_followed_though_it_could_not_be_brought_into_force_today() {
    let mut fleet = Fleet::empty();
    let file = json!({
        "kind": "batch", "apiVersion": "v1",
        "schema": {"key": {"name": "id", "schema": {"type": "string"}}, "items": {"type": "object", "properties": {"id": {"type": "string", "format": "dns-label"}}, "required": ["id"]}},
    });
    let routes = Reserved { kinds: vec!["batch"], ..Reserved::none() };
    assert!(Kind::parse(&file.to_string(), &routes).is_err(), "the name is a fixed route's");
    let commit = forged_with(&fleet, vec![made(Key::kind("batch"), &file.to_string())]);
    fleet.state = fleet.state.replay(&commit).expect("it is followed");
    assert!(fleet.state.kinds().get("batch").is_some());
}

#[test]
fn entries_of_a_later_version_that_may_be_ignored_are_kept_and_change_no_answer() {
    let mut fleet = Fleet::small();
    let before = fleet.state.clone();
    let changes =
        vec![made(Key::parse("@?future", "a"), "{\"b\":1}"), made(Key::parse("@?future", "c"), "[]")];
    let commit = forged_with(&fleet, changes);
    fleet.state = fleet.state.replay(&commit).expect("it is followed");
    fleet.commits.push(commit);
    assert_ne!(fleet.state.digest(), before.digest(), "they are part of the digest");
    for cluster in ["dev-1", "prod-1"] {
        for path in ["platform-components", "namespaces", "rolebindings"] {
            let body = |state: &State| match fleet::render(state, &format!("{cluster}.k8s.example.com"), path)
            {
                fleet::Answer::Inputs(inputs) => inputs.into_body(),
                other => panic!("{other:?}"),
            };
            assert_eq!(body(&fleet.state), body(&before));
        }
    }
    let head = fleet.commits.last().map(|commit| &commit.header);
    assert_eq!(load(&fleet.state, store(&fleet.commits), head).as_ref(), Ok(&fleet.state));
    // Changes go on beside them, and they can go again.
    fleet.accept(vec![delete("platform_components", "logging")]);
    let gone = Change::new(Key::parse("@?future", "a"), Uid(1), None);
    let rest: Vec<Row> = store(&fleet.commits).into_iter().filter(|row| row.key != *gone.key()).collect();
    let after = load(&fleet.state, rest, None).expect("they load");
    fleet.state = fleet.state.replay(&forged(&fleet.state, &after, vec![gone])).expect("it is followed");
}

#[test]
fn an_entry_of_a_later_version_that_must_be_understood_is_not_followed() {
    let fleet = Fleet::small();
    let change = made(Key::parse("@future", "a"), "{}");
    let commit = forged(&fleet.state, &fleet.state, vec![change.clone()]);
    let needs = |version: Option<&str>| NeedsNewer {
        key: change.key().clone(),
        revision: commit.header.at.revision,
        version: version.map(Into::into),
    };
    let diverged = fleet.state.replay(&commit).expect_err("it is not understood");
    assert_eq!(diverged, Diverged::Newer(needs(Some("9.9.9"))));
    assert_eq!(
        diverged.to_string(),
        "revision 3 has an entry `@future` that this version does not understand; it was written by version 9.9.9: run that version or a later one"
    );
    let row = Row::after(&commit.header, &change).expect("a row");
    let rows = store(&fleet.commits).into_iter().chain([row]).collect();
    assert_eq!(load(&fleet.state, rows, None).expect_err("not understood"), Diverged::Newer(needs(None)));
}
