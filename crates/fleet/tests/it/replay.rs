//! Following the ledger: replay and load arrive where `apply` did, notice what was tampered with, and never validate.

use crate::common::*;
use fleet::{
    Canonical, Change, Commit, Diverged, Hash, KINDS, Key, Kind, Loader, Origin, Policy, Position, Revision,
    Row, State, StateDigest, Tally, Timestamp, Transaction, Uid, apply,
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
    let at = Position { revision: state.head().revision.next(), hash: Hash::default() };
    let origin = Origin { time: state.time(), ..origin(77, 0) };
    let mut commit = Commit {
        at,
        previous: state.head().hash,
        state: after.digest(),
        origin,
        removals: Tally::default(),
        changes,
    };
    commit.at.hash = commit.expected_hash();
    commit
}

#[test]
fn replay_arrives_where_apply_did() {
    let (fleet, commits) = history();
    let replayed =
        commits.iter().fold(State::empty(), |state, commit| state.replay(commit).expect("it follows"));
    assert_eq!(replayed, fleet.state);
    assert_eq!(replayed.head(), commits.last().expect("some").at);
}

#[test]
fn a_tombstone_that_a_new_cluster_replaces_leaves_the_digest_too() {
    let mut fleet = Fleet::small();
    let (digest, body) = (fleet.state.digest(), fleet.document("clusters", "prod-1"));
    fleet.accept(vec![delete("clusters", "prod-1")]);
    fleet.accept(vec![fleet::Operation::Create {
        kind: "clusters".into(),
        body,
        replace_decommissioned: true,
    }]);
    assert_eq!(fleet.state.digest(), digest);
}

#[test]
fn replay_refuses_what_does_not_follow_or_was_changed_on_the_way() {
    let (_, commits) = history();
    let (start, commits) = commits.split_at(Fleet::small().commits.len());
    let state = start.iter().fold(State::empty(), |state, commit| state.replay(commit).expect("it follows"));
    assert_eq!(state.replay(&commits[1]).expect_err("skips one"), Diverged::Position);
    let next = state.replay(&commits[0]).expect("follows");
    assert_eq!(next.replay(&commits[0]).expect_err("twice"), Diverged::Position);

    let tampered: [fn(&mut Commit); 8] = [
        |commit| commit.origin.actor = "somebody else".into(),
        |commit| commit.origin.reason = Some("".into()),
        |commit| commit.origin.time = Timestamp(0),
        |commit| commit.removals.confirmed = true,
        |commit| commit.state = StateDigest::default(),
        |commit| commit.at.hash = Hash::default(),
        |commit| commit.changes.clear(),
        |commit| {
            let change = &commit.changes[0];
            let body = change.after().expect("a put").as_str().replace("9.9.9", "6.6.6");
            commit.changes[0] = Change::new(change.key().clone(), Some(Canonical::stored(body)));
        },
    ];
    for (n, tamper) in tampered.into_iter().enumerate() {
        let mut commit = commits[0].clone();
        tamper(&mut commit);
        assert_eq!(state.replay(&commit).expect_err("tampered"), Diverged::Commit, "{n}");
        if n >= 6 {
            // Even with a hash that was made anew, the state is not the one that was recorded.
            commit.at.hash = commit.expected_hash();
            assert_eq!(state.replay(&commit).expect_err("tampered"), Diverged::State, "{n}");
        }
    }
}

#[test]
fn replay_accepts_documents_that_todays_rules_refuse() {
    let mut fleet = Fleet::small();
    let strange = r#"{"annotations":{"a b":"c"},"id":"kube-Strange","more":{"x":[1]}}"#;
    let cluster = r#"{"cluster_dns":"Old.Example","cluster_name":"","environment":"staging","id":"old","namespaces":[{"id":"kube-Strange","more":1}],"patches":{"ghost":{"a":"1","a.b":"2"}},"zone":"z"}"#;
    let change =
        |kind: &str, id: &str, body: &str| Change::new(Key::new(kind, id), Some(Canonical::stored(body)));
    let changes = vec![change("clusters", "old", cluster), change("namespaces", "kube-Strange", strange)];
    // The digest that they make is found by loading them beside what is there.
    let all: Vec<Row> = store(&fleet.commits)
        .into_iter()
        .chain(changes.iter().map(|change| row(change.key().clone(), change.after().expect("a put"))))
        .collect();
    let after = load(&fleet.state, all, None).expect("they load");
    let commit = forged(&fleet.state, &after, changes);
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
        r#"{"inputs":[{"annotations":{"a b":"c"},"cluster":{"dns":"Old.Example","environment":"staging","name":""},"id":"kube-Strange","labels":{}}]}"#
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
        let changes = vec![Change::new(Key::new(kind, "x"), Some(Canonical::stored(body)))];
        let commit = forged(&fleet.state, &fleet.state, changes);
        assert!(matches!(fleet.state.replay(&commit), Err(Diverged::Undecodable { .. })), "{kind} {body}");
    }
}

fn row(key: Key, body: &Canonical) -> Row {
    Row { uid: Uid(1), revision: Revision(1), body: body.clone(), key }
}

/// The rows of a store after some commits.
fn store(commits: &[Commit]) -> Vec<Row> {
    let mut rows: std::collections::BTreeMap<Key, Row> = std::collections::BTreeMap::new();
    for commit in commits {
        for change in &commit.changes {
            match Row::after(rows.get(change.key()), commit, change) {
                Some(row) => rows.insert(change.key().clone(), row),
                None => rows.remove(change.key()),
            };
        }
    }
    rows.into_values().collect()
}

/// Loads rows; against the digest of the state, or against whatever they come to.
fn load(state: &State, rows: Vec<Row>, digest: Option<StateDigest>) -> Result<State, Diverged> {
    let mut loader = Loader::new(rows.clone())?;
    for row in rows.into_iter().rev() {
        loader.push(row)?;
    }
    let digest = digest.unwrap_or_else(|| loader.digest());
    loader.finish(state.head(), state.time(), digest, [])
}

#[test]
fn a_loaded_state_serves_what_the_replayed_one_does() {
    let (fleet, _) = history();
    let loaded = load(&fleet.state, store(&fleet.commits), Some(fleet.state.digest())).expect("it loads");
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
    assert_eq!(
        loaded.usage(&Key::new("namespaces", "team-a")),
        fleet.state.usage(&Key::new("namespaces", "team-a"))
    );
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
    let digest = Some(fleet.state.digest());
    for n in 0..good.len() {
        let mut missing = good.clone();
        let gone = missing.remove(n);
        if gone.key.kind.as_str() != KINDS {
            assert_eq!(
                load(&fleet.state, missing, digest).expect_err("a row is missing"),
                Diverged::State,
                "{}",
                gone.key
            );
        }
        let mut edited = good.clone();
        let body = edited[n].body.as_str().replacen('e', "f", 1);
        edited[n].body = Canonical::stored(body);
        assert!(load(&fleet.state, edited, digest).is_err(), "{} was edited", gone.key);
    }
    let mut added = good.clone();
    added.push(row(Key::new("namespaces", "extra"), &Canonical::stored(r#"{"id":"extra"}"#)));
    assert_eq!(load(&fleet.state, added, digest).expect_err("a row was added"), Diverged::State);
}

#[test]
fn the_guard_remembers_the_last_hour_over_a_restart() {
    let mut fleet = Fleet::small();
    fleet.policy.deletions_per_hour = 1;
    let commit = fleet.accept(vec![unassign("dev-1", "namespaces", "team-c")]).commit.expect("a commit");
    let rows = store(&fleet.commits);
    let mut loader = Loader::new(rows.clone()).expect("kinds");
    for row in rows {
        loader.push(row).expect("rows");
    }
    fleet.state = loader
        .finish(fleet.state.head(), fleet.state.time(), commit.state, [(commit.origin.time, commit.removals)])
        .expect("it loads");
    assert!(matches!(
        fleet.reject(vec![unassign("dev-1", "namespaces", "team-b")]),
        fleet::Rejection::Confirm(_)
    ));
}

#[test]
fn a_kind_of_another_time_is_followed_though_it_could_not_be_brought_into_force_today() {
    let mut fleet = Fleet::empty();
    let file = json!({
        "kind": "batch", "apiVersion": "v1",
        "schema": {"key": {"name": "id", "schema": {"type": "string"}}, "items": {"type": "object", "properties": {"id": {"type": "string", "format": "dns-label"}}, "required": ["id"]}},
    });
    assert!(Kind::parse(&file.to_string()).is_err(), "the name is a fixed route's");
    let body = Canonical::stored(file.to_string());
    let all = store(&fleet.commits).into_iter().chain([row(Key::new(KINDS, "batch"), &body)]).collect();
    let after = load(&fleet.state, all, None).expect("it loads");
    let commit = forged(&fleet.state, &after, vec![Change::new(Key::new(KINDS, "batch"), Some(body))]);
    fleet.state = fleet.state.replay(&commit).expect("it is followed");
    assert!(fleet.state.kinds().get("batch").is_some());
}
