//! Bad input: what each is told, and that nothing happens.

mod clusters;
mod delivery;
mod dependencies;
mod documents;
mod kinds;
mod kubernetes;
mod namespaces;
mod references;
mod transactions;

#[track_caller]
fn assert_contains(complaints: &[String], expected: &[&str]) {
    for part in expected {
        assert!(
            complaints.iter().any(|complaint| complaint.contains(part)),
            "{part:?} is not in {complaints:#?}"
        );
    }
    assert_eq!(complaints.len(), expected.len(), "{complaints:#?}");
}
