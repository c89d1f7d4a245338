//! Questions about the past: who changed what, when, and what it was then.

use fleet::{Key, Revision, Timestamp};
use ledger::{Edit, Most, Opened, Paged, Query, Record, Version};
use serde_json::json;

use crate::Store;
use crate::fixture::{ALL, Fleet, Writing, create, delete, label_namespace};

const EVERYTHING: Query = Query::newest(100);

/// Revision 1: kinds. 2: alice makes namespaces a and b. 3: bob labels a. 4: alice deletes a. 5: bob makes component b. 6: alice
/// makes a again. 7: bob changes namespace a and component b.
fn past(ledger: &mut Opened) -> Fleet {
    let mut fleet = Fleet::new();
    let component =
        json!({"id": "b", "component_path": "x", "oci_url": "https://charts.example.com", "oci_tag": "1"});
    let mut group = vec![fleet.define_kinds()];
    let steps = [
        ("alice", vec![create("namespaces", json!({"id": "a"})), create("namespaces", json!({"id": "b"}))]),
        ("bob", vec![label_namespace("a", "one")]),
        ("alice", vec![delete("namespaces", "a")]),
        ("bob", vec![create("platform_components", component)]),
        ("alice", vec![create("namespaces", json!({"id": "a"}))]),
        (
            "bob",
            vec![
                label_namespace("a", "two"),
                crate::fixture::patch("platform_components", "b", json!({"oci_tag": "2"})),
            ],
        ),
    ];
    for (actor, operations) in steps {
        fleet.actor = actor.into();
        group.push(fleet.commit(operations));
    }
    ledger.append(fleet::Position::default(), &group).expect("appended");
    fleet
}

fn revisions(ledger: &Opened, query: &Query) -> Vec<u64> {
    let records = ledger.history.history(query).expect("records");
    records.iter().map(|record| record.header.at.revision.0).collect()
}

pub fn commits_are_told_newest_first_without_bodies(store: &Store) {
    let mut ledger = store.open();
    past(&mut ledger);
    assert_eq!(revisions(&ledger, &EVERYTHING), [7, 6, 5, 4, 3, 2, 1]);
    let commits = ledger.follow.read(fleet::Position::default(), ALL).expect("commits");
    let told = ledger.history.history(&Query { revision: Some(Revision(7)), ..EVERYTHING }).expect("records");
    let last = &commits[6];
    assert_eq!(
        told,
        [Record {
            header: last.header.clone(),
            keys: vec![Key::document("namespaces", "a"), Key::document("platform_components", "b")],
        }]
    );
}

pub fn a_page_goes_on_before_the_last_one(store: &Store) {
    let mut ledger = store.open();
    past(&mut ledger);
    let page = |before| revisions(&ledger, &Query { before, limit: 3, ..EVERYTHING });
    assert_eq!(page(None), [7, 6, 5]);
    assert_eq!(page(Some(Revision(5))), [4, 3, 2]);
    assert_eq!(page(Some(Revision(2))), [1]);
    assert_eq!(page(Some(Revision(1))), [0; 0]);
    assert_eq!(page(Some(Revision(u64::MAX))), [7, 6, 5]);
    assert_eq!(revisions(&ledger, &Query { limit: 0, ..EVERYTHING }), [0; 0]);
}

pub fn commits_are_found_by_document_kind_and_id(store: &Store) {
    let mut ledger = store.open();
    past(&mut ledger);
    let about = |space: Option<&str>, id: Option<&str>| {
        let (space, id) = (space.map(ToOwned::to_owned), id.map(ToOwned::to_owned));
        revisions(&ledger, &Query { space, id, ..EVERYTHING })
    };
    assert_eq!(about(Some("namespaces"), Some("a")), [7, 6, 4, 3, 2]);
    // Revision 7 changed a namespace and something called b, but not the namespace b.
    assert_eq!(about(Some("namespaces"), Some("b")), [2]);
    assert_eq!(about(None, Some("b")), [7, 5, 2]);
    assert_eq!(about(Some("platform_components"), None), [7, 5]);
    assert_eq!(about(Some("@kinds"), None), [1]);
    assert_eq!(about(Some("namespaces"), Some("never")), [0; 0]);
}

pub fn commits_are_found_by_actor(store: &Store) {
    let mut ledger = store.open();
    past(&mut ledger);
    let by = |actor: &str| revisions(&ledger, &Query { actor: Some(actor.to_owned()), ..EVERYTHING });
    assert_eq!(by("alice"), [6, 4, 2]);
    assert_eq!(by("bob"), [7, 5, 3]);
    assert_eq!(by("' OR TRUE --"), [0; 0]);
}

pub fn commits_are_found_by_time(store: &Store) {
    let mut ledger = store.open();
    past(&mut ledger);
    let time = ledger.history.history(&EVERYTHING).expect("records")[4].header.origin.time;
    let between = |since, until| revisions(&ledger, &Query { since, until, ..EVERYTHING });
    assert_eq!(between(Some(time), None), [7, 6, 5, 4, 3]);
    assert_eq!(between(None, Some(time)), [2, 1]);
    assert_eq!(between(Some(time), Some(Timestamp(time.0 + 1))), [3]);
}

pub fn filters_hold_together(store: &Store) {
    let mut ledger = store.open();
    past(&mut ledger);
    let query = Query {
        before: Some(Revision(7)),
        actor: Some("alice".to_owned()),
        space: Some("namespaces".into()),
        id: Some("a".into()),
        since: Some(Timestamp(0)),
        until: Some(Timestamp(i64::MAX)),
        limit: 2,
        ..EVERYTHING
    };
    assert_eq!(revisions(&ledger, &query), [6, 4]);
    assert_eq!(revisions(&ledger, &Query { revision: Some(Revision(2)), ..query }), [2]);
}

pub fn a_record_names_no_more_than_its_first_keys(store: &Store) {
    let mut ledger = store.open();
    let mut fleet = Fleet::new();
    let many = (10..60).map(|n| create("namespaces", json!({"id": format!("n{n}")}))).collect();
    let group = vec![fleet.define_kinds(), fleet.commit(many)];
    ledger.append(fleet::Position::default(), &group).expect("appended");
    let record = ledger.history.history(&Query { limit: 1, ..EVERYTHING }).expect("records").remove(0);
    let first: Vec<Key> = (10..30).map(|n| Key::document("namespaces", &*format!("n{n}"))).collect();
    assert_eq!((record.header.changes.count, record.keys), (50, first));
}

pub fn changes_come_in_pages_with_what_was_before(store: &Store) {
    let mut ledger = store.open();
    past(&mut ledger);
    let commits = ledger.follow.read(fleet::Position::default(), ALL).expect("commits");
    let page = |revision, from, limit| {
        ledger.history.changes(Revision(revision), from, Most::items(limit)).expect("changes")
    };
    let changes = |edits: Vec<Edit>| edits.into_iter().map(|edit| edit.change).collect::<Vec<_>>();
    let kinds = &commits[0].changes;
    assert_eq!(kinds.len(), 4);
    assert!(page(1, 0, 9).iter().all(|edit| edit.before.is_none()), "there was nothing before");
    assert_eq!(changes(page(1, 0, 3)), kinds[..3]);
    assert_eq!(changes(page(1, 3, 3)), kinds[3..]);
    assert_eq!(page(1, 4, 3), []);
    assert_eq!(page(99, 0, 9), []);

    let before = |revision: u64| {
        let edits = page(revision, 0, 9);
        assert_eq!(changes(edits.clone()), commits[usize::try_from(revision).expect("small") - 1].changes);
        edits.iter().map(|edit| edit.before.as_ref().map(|body| body.as_str().to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(before(2), [None, None]);
    assert_eq!(before(3), [Some(A.to_owned())]);
    assert_eq!(before(4), [Some(labelled("one"))], "a deletion");
    assert_eq!(before(6), [None], "it had been deleted");
    let component = commits[4].changes[0].after().map(|body| body.as_str().to_owned());
    assert_eq!(before(7), [Some(A.to_owned()), component]);
}

const A: &str = r#"{"id":"a"}"#;

fn labelled(label: &str) -> String {
    format!(r#"{{"id":"a","labels":{{"label":"{label}"}}}}"#)
}

pub fn versions_of_a_document_come_newest_first_with_before_and_after(store: &Store) {
    let mut ledger = store.open();
    past(&mut ledger);
    let commits = ledger.follow.read(fleet::Position::default(), ALL).expect("commits");
    let of = |id| ledger.history.versions(&Key::document("namespaces", id), None, Most::items(100));
    let Paged { items: versions, more } = of("a").expect("versions");
    assert!(!more);
    for version in &versions {
        let commit = commits.iter().find(|commit| commit.header.at == version.header.at).expect("a commit");
        assert_eq!(version.header.origin, commit.header.origin);
    }
    let text = |body: &Option<fleet::Canonical>| body.as_ref().map(|body| body.as_str().to_owned());
    let told: Vec<_> =
        versions.iter().map(|one| (one.header.at.revision.0, text(&one.before), text(&one.after))).collect();
    let (made, one, two) = (Some(A.to_owned()), Some(labelled("one")), Some(labelled("two")));
    assert_eq!(
        told,
        [
            (7, made.clone(), two),
            (6, None, made.clone()),
            (4, one.clone(), None),
            (3, made.clone(), one),
            (2, None, made),
        ]
    );
    assert_eq!(of("never"), Ok(Paged { items: vec![], more: false }));
}

pub fn versions_come_in_pages(store: &Store) {
    let mut ledger = store.open();
    past(&mut ledger);
    let key = Key::document("namespaces", "a");
    let page = |before, limit| {
        let Paged { items, more } =
            ledger.history.versions(&key, before, Most::items(limit)).expect("versions");
        (items, more)
    };
    let (all, _) = page(None, 100);
    let some = |range: std::ops::Range<usize>, more| (all[range].to_vec(), more);
    assert_eq!(page(None, 2), some(0..2, true), "with what was before the last of them");
    assert_eq!(page(Some(all[1].header.at.revision), 2), some(2..4, true));
    assert_eq!(page(Some(all[3].header.at.revision), 2), some(4..5, false));
    assert_eq!(page(Some(Revision(0)), 2), some(0..0, false));
    assert_eq!(page(Some(Revision(u64::MAX)), 100), some(0..5, false));
    assert_eq!(page(None, 5), some(0..5, false), "exactly as many as there are");
}

pub fn pages_of_large_bodies_are_shorter_and_have_at_least_one_item(store: &Store) {
    let mut ledger = store.open();
    past(&mut ledger);
    let key = Key::document("namespaces", "a");
    let most = |bytes| Most { items: 100, bytes };
    let whole = ledger.history.versions(&key, None, most(usize::MAX)).expect("versions").items;
    let bytes = |body: Option<&fleet::Canonical>| body.map_or(0, |body| body.as_str().len());
    let size = |version: &Version| bytes(version.before.as_ref()) + bytes(version.after.as_ref());
    let versions = |bytes| {
        let page = ledger.history.versions(&key, None, most(bytes)).expect("versions");
        assert_eq!(page.items, whole[..page.items.len()], "each with what was before it");
        (page.items.len(), page.more)
    };
    assert_eq!(versions(0), (1, true));
    assert_eq!(versions(size(&whole[0]) - 1), (1, true));
    assert_eq!(versions(size(&whole[0])), (2, true), "it ends after what is over the bytes");
    let all = whole.iter().map(size).sum::<usize>();
    assert_eq!(versions(all), (5, false));

    let all = ledger.history.changes(Revision(7), 0, most(usize::MAX)).expect("changes");
    assert_eq!(all.len(), 2);
    let changes = |from, bytes| ledger.history.changes(Revision(7), from, most(bytes)).expect("changes");
    assert_eq!(changes(0, 0), all[..1]);
    assert_eq!(changes(1, 0), all[1..]);
    assert_eq!(changes(0, bytes(all[0].before.as_ref()) + bytes(all[0].change.after())), all);
}
