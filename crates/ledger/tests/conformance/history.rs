//! Questions about the past: who changed what, when, and what it was then.

use fleet::{Id, Key, KindName, Revision, Timestamp};
use ledger::{Ledger, Query, Record};
use serde_json::json;

use crate::Store;
use crate::fixture::{ALL, Fleet, create, delete, label_namespace};

const EVERYTHING: Query = Query::newest(100);

/// Revision 1: kinds. 2: alice makes namespaces a and b. 3: bob labels a. 4: alice deletes a. 5: bob makes component b. 6: alice
/// makes a again. 7: bob changes namespace a and component b.
async fn past(ledger: &dyn Ledger) -> Fleet {
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
    ledger.append(fleet::Position::default(), group).await.expect("appended");
    fleet
}

async fn revisions(ledger: &dyn Ledger, query: Query) -> Vec<u64> {
    let records = ledger.history(query).await.expect("records");
    records.iter().map(|record| record.at.revision.0).collect()
}

pub(crate) async fn commits_are_told_newest_first_without_bodies(store: Store) {
    let ledger = store.handle();
    let fleet = past(&*ledger).await;
    assert_eq!(revisions(&*ledger, EVERYTHING).await, [7, 6, 5, 4, 3, 2, 1]);
    let commits = ledger.read(fleet::Position::default(), ALL).await.expect("commits");
    let told = ledger.history(Query { revision: Some(Revision(7)), ..EVERYTHING }).await.expect("records");
    let last = &commits[6];
    assert_eq!(
        told,
        [Record {
            at: fleet.state.head(),
            origin: last.origin.clone(),
            removals: last.removals,
            changes: 2,
            keys: vec![Key::new("namespaces", "a"), Key::new("platform_components", "b")],
        }]
    );
}

pub(crate) async fn a_page_goes_on_before_the_last_one(store: Store) {
    let ledger = store.handle();
    past(&*ledger).await;
    let page = async |before| revisions(&*ledger, Query { before, limit: 3, ..EVERYTHING }).await;
    assert_eq!(page(None).await, [7, 6, 5]);
    assert_eq!(page(Some(Revision(5))).await, [4, 3, 2]);
    assert_eq!(page(Some(Revision(2))).await, [1]);
    assert_eq!(page(Some(Revision(1))).await, [0; 0]);
    assert_eq!(page(Some(Revision(u64::MAX))).await, [7, 6, 5]);
    assert_eq!(revisions(&*ledger, Query { limit: 0, ..EVERYTHING }).await, [0; 0]);
}

pub(crate) async fn commits_are_found_by_document_kind_and_id(store: Store) {
    let ledger = store.handle();
    past(&*ledger).await;
    let about = async |kind: Option<&str>, id: Option<&str>| {
        let (kind, id) = (kind.map(KindName::from), id.map(Id::from));
        revisions(&*ledger, Query { kind, id, ..EVERYTHING }).await
    };
    assert_eq!(about(Some("namespaces"), Some("a")).await, [7, 6, 4, 3, 2]);
    // Revision 7 changed a namespace and something called b, but not the namespace b.
    assert_eq!(about(Some("namespaces"), Some("b")).await, [2]);
    assert_eq!(about(None, Some("b")).await, [7, 5, 2]);
    assert_eq!(about(Some("platform_components"), None).await, [7, 5]);
    assert_eq!(about(Some("kinds"), None).await, [1]);
    assert_eq!(about(Some("namespaces"), Some("never")).await, [0; 0]);
}

pub(crate) async fn commits_are_found_by_actor(store: Store) {
    let ledger = store.handle();
    past(&*ledger).await;
    let by =
        async |actor: &str| revisions(&*ledger, Query { actor: Some(actor.to_owned()), ..EVERYTHING }).await;
    assert_eq!(by("alice").await, [6, 4, 2]);
    assert_eq!(by("bob").await, [7, 5, 3]);
    assert_eq!(by("' OR TRUE --").await, [0; 0]);
}

pub(crate) async fn commits_are_found_by_time(store: Store) {
    let ledger = store.handle();
    past(&*ledger).await;
    let time = ledger.history(EVERYTHING).await.expect("records")[4].origin.time;
    let between = async |since, until| revisions(&*ledger, Query { since, until, ..EVERYTHING }).await;
    assert_eq!(between(Some(time), None).await, [7, 6, 5, 4, 3]);
    assert_eq!(between(None, Some(time)).await, [2, 1]);
    assert_eq!(between(Some(time), Some(Timestamp(time.0 + 1))).await, [3]);
}

pub(crate) async fn filters_hold_together(store: Store) {
    let ledger = store.handle();
    past(&*ledger).await;
    let query = Query {
        before: Some(Revision(7)),
        actor: Some("alice".to_owned()),
        kind: Some("namespaces".into()),
        id: Some("a".into()),
        since: Some(Timestamp(0)),
        until: Some(Timestamp(i64::MAX)),
        limit: 2,
        ..EVERYTHING
    };
    assert_eq!(revisions(&*ledger, query.clone()).await, [6, 4]);
    assert_eq!(revisions(&*ledger, Query { revision: Some(Revision(2)), ..query }).await, [2]);
}

pub(crate) async fn a_record_names_no_more_than_its_first_keys(store: Store) {
    let ledger = store.handle();
    let mut fleet = Fleet::new();
    let many = (10..60).map(|n| create("namespaces", json!({"id": format!("n{n}")}))).collect();
    let group = vec![fleet.define_kinds(), fleet.commit(many)];
    ledger.append(fleet::Position::default(), group).await.expect("appended");
    let record = ledger.history(Query { limit: 1, ..EVERYTHING }).await.expect("records").remove(0);
    let first: Vec<Key> = (10..30).map(|n| Key::new("namespaces", &format!("n{n}"))).collect();
    assert_eq!((record.changes, record.keys), (50, first));
}

pub(crate) async fn a_document_is_told_as_it_was_at_each_revision(store: Store) {
    let ledger = store.handle();
    past(&*ledger).await;
    let mut told = Vec::new();
    for revision in 0..=8 {
        let document =
            ledger.document_at(Key::new("namespaces", "a"), Revision(revision)).await.expect("an answer");
        told.push(document.map(|document| document.as_str().to_owned()));
    }
    let made = Some(r#"{"id":"a"}"#.to_owned());
    let labelled = |label| Some(format!(r#"{{"id":"a","labels":{{"label":"{label}"}}}}"#));
    let (one, two) = (labelled("one"), labelled("two"));
    assert_eq!(told, [None, None, made.clone(), one, None, None, made, two.clone(), two]);
    assert_eq!(ledger.document_at(Key::new("namespaces", "never"), Revision(7)).await, Ok(None));
}

pub(crate) async fn changes_come_in_pages(store: Store) {
    let ledger = store.handle();
    past(&*ledger).await;
    let commits = ledger.read(fleet::Position::default(), ALL).await.expect("commits");
    let kinds = &commits[0].changes;
    assert_eq!(kinds.len(), 4);
    let page =
        async |revision, from, limit| ledger.changes(Revision(revision), from, limit).await.expect("changes");
    assert_eq!(page(1, 0, 3).await, kinds[..3]);
    assert_eq!(page(1, 3, 3).await, kinds[3..]);
    assert_eq!(page(1, 4, 3).await, []);
    assert_eq!(page(4, 0, 9).await, commits[3].changes, "a deletion");
    assert_eq!(page(99, 0, 9).await, []);
}
