//! A store that has gone back: the real program refuses it, in both modes, until somebody accepts it. Each of these was once answered
//! with less than before, or lost what had been acknowledged, without a word. `ledger` · `damaged` has every byte of every file.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use harness::within;

use crate::fleet::{Folder, POLLS, admin, label, small_fleet};
use crate::pollers::{Pollers, Right};
use crate::service::{Service, Settings};

const A_FEW_SECONDS: Duration = Duration::from_secs(15);

/// A store whose last revisions take something away from a cluster, or give it something, killed so that they are in the `-wal`.
fn killed_with_ten_writes() -> (Folder, Settings, Right) {
    let folder = Folder::new(&small_fleet(["spare".to_owned()]));
    let settings = Settings::crud(&folder);
    let service = settings.start().ready();
    for n in 0..9 {
        service.exchange(&label("spare", "n", &n.to_string(), "a change")).expect(200);
    }
    let assign = admin("PUT", "/clusters/one/namespaces/spare", &[], None);
    service.exchange(&assign).expect(200);
    let right = Right::of(&service);
    service.kill();
    (folder, settings, right)
}

fn flip(folder: &Folder, part: &str, at: impl Fn(u64) -> u64) {
    let file = OpenOptions::new().read(true).write(true).open(folder.file(part)).expect("opened");
    let place = at(file.metadata().expect("a file").len());
    let mut byte = [0];
    file.read_exact_at(&mut byte, place).expect("read");
    file.write_all_at(&[byte[0] ^ 4], place).expect("written");
}

/// Neither mode serves it, and both say what to do.
fn is_refused(folder: &Folder, settings: &Settings) {
    let (code, log) = settings.run();
    assert!(code == Some(1) && log.contains("accept-store"), "{log}");
    let reader = Settings::read_only(folder).start();
    within(A_FEW_SECONDS, "a warning", || reader.log().contains("accept-store").then_some(()));
    for poll in POLLS {
        assert_eq!(reader.poll(poll).status, 503);
    }
    assert_eq!(reader.get("/ready").status, 503);
}

fn accept(settings: &Settings, expect: &[&str]) -> (Option<i32>, String) {
    settings.clone().with_arguments(["accept-store"].iter().chain(expect)).run()
}

/// The line that `accept-store` prints to be run.
fn expected(printed: &str) -> String {
    let line = printed.lines().find(|line| line.contains("--expect ")).unwrap_or_else(|| panic!("{printed}"));
    line.split("--expect ").nth(1).expect("a position").to_owned()
}

/// Attack 1: one bit of the `-wal`, and revision 11 became 9, with 200 and an empty log.
#[test]
fn a_flipped_bit_in_the_wal_is_refused_until_the_store_is_accepted() {
    let (folder, settings, right) = killed_with_ten_writes();
    flip(&folder, "store.db-wal", |length| length / 10 * 9);
    is_refused(&folder, &settings);

    let (code, printed) = accept(&settings, &[]);
    assert!(code == Some(0) && printed.contains("head mark:  revision 11"), "{printed}");
    assert!(printed.contains("acknowledged and"), "{printed}");
    let position = expected(&printed);
    let (code, printed) = accept(&settings, &["--expect", "11:00"]);
    assert!(code == Some(64) && printed.contains("must be REVISION:HASH"), "{printed}");
    let other = format!("11:{}", position.split(':').nth(1).expect("a hash"));
    let (code, printed) = accept(&settings, &["--expect", &other]);
    assert!(code == Some(1) && printed.contains("nothing was changed"), "{printed}");
    is_refused(&folder, &settings);

    let (code, printed) = accept(&settings, &["--expect", &position]);
    assert!(code == Some(0) && printed.contains("The store is accepted"), "{printed}");
    let service = settings.start().ready();
    assert_ne!(
        Right::of_any(&service),
        right,
        "the last revision is lost, and somebody has said that this is meant"
    );
    let (code, printed) = accept(&settings, &[]);
    assert!(code == Some(1) && printed.contains("Stop all processes"), "{printed}");
}

/// Attack 2: six writes were acknowledged after `rm db-wal`, and lost by the next restart.
#[test]
fn a_wal_that_is_removed_or_replaced_under_a_process_takes_no_more_writes() {
    for replaced in [false, true] {
        let folder = Folder::new(&small_fleet(["spare".to_owned()]));
        let settings = Settings::crud(&folder);
        let service = settings.start().ready();
        let right = Right::of(&service);
        let pollers = Pollers::start(service.address, 1, Duration::from_millis(10), &right);
        service.exchange(&label("spare", "before", "1", "acknowledged")).expect(200);
        let copy = fs::read(folder.file("store.db-wal")).expect("read");
        fs::remove_file(folder.file("store.db-wal")).expect("removed");
        if replaced {
            fs::write(folder.file("store.db-wal"), copy).expect("written");
        }
        for n in 0..6 {
            let answer = service.exchange(&label("spare", "after", &n.to_string(), "refused"));
            assert_eq!(answer.status, 503, "{}", answer.text());
        }
        pollers.see_right();
        pollers.stop();
        service.kill();
        // What was acknowledged is there, or the store is refused.
        match start_or_refuse(&settings) {
            None => assert!(!replaced, "what was acknowledged was in the file that was put back"),
            Some(service) => {
                let labels = service.get("/namespaces/spare").expect(200).json()["labels"].clone();
                assert_eq!((&labels["before"], labels.get("after")), (&serde_json::json!("1"), None));
            }
        }
    }
}

fn start_or_refuse(settings: &Settings) -> Option<Service> {
    let (code, log) = accept(settings, &[]);
    assert_eq!(code, Some(0), "{log}");
    if log.contains("there is nothing to accept") { Some(settings.start().ready()) } else { None }
}

#[test]
fn an_older_backup_in_place_of_the_store_is_refused() {
    let folder = Folder::new(&small_fleet(["spare".to_owned()]));
    let settings = Settings::crud(&folder);
    settings.start().ready().terminate();
    let backup = fs::read(folder.database()).expect("read");
    let service = settings.start().ready();
    service.exchange(&label("spare", "later", "1", "not in the backup")).expect(200);
    service.terminate();
    fs::write(folder.database(), backup).expect("written");
    is_refused(&folder, &settings);
}

#[test]
fn a_missing_store_beside_its_mark_is_not_made_anew_from_the_seed() {
    let folder = Folder::new(&small_fleet([]));
    let settings = Settings::crud(&folder);
    settings.start().ready().terminate();
    for part in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = fs::remove_file(folder.file(part));
    }
    let (code, log) = settings.run();
    assert!(code == Some(1) && log.contains("its `-mark` is there: there was a store here"), "{log}");
    assert!(!folder.database().exists());
}

/// What is in the database alone cannot be lost with the `-wal`.
#[test]
fn a_clean_stop_leaves_an_empty_wal() {
    let folder = Folder::new(&small_fleet(["spare".to_owned()]));
    let service = Settings::crud(&folder).start().ready();
    service.exchange(&label("spare", "n", "1", "a change")).expect(200);
    let length = || fs::metadata(folder.file("store.db-wal")).expect("a file").len();
    assert!(length() > 0);
    service.terminate();
    assert_eq!(length(), 0);
}
