//! Restarts under polls: whatever a cluster is told in between, it is not that there is less.

use std::thread;
use std::time::Duration;

use crate::fleet::{Folder, small_fleet};
use crate::pollers::{Pollers, Right, Tally};
use crate::service::{Settings, free_port};

/// Restarts a process again and again, by kill -9 and by SIGTERM, before and after it is ready.
fn restarts(number: u32, settings: &Settings, right: &Right) -> Tally {
    let port = free_port();
    let settings = settings.clone().with("LISTEN_ADDR", format!("127.0.0.1:{port}"));
    let pollers = Pollers::start(([127, 0, 0, 1], port).into(), 3, Duration::from_millis(2), right);
    for n in 0..number {
        let service = settings.start();
        if n % 5 == 4 {
            // Before it is ready, or as it becomes so.
            thread::sleep(Duration::from_millis(u64::from(n) % 12));
        } else {
            pollers.see_right();
        }
        if n % 2 == 0 {
            service.kill();
        } else {
            let (status, log) = service.terminate();
            assert_eq!(status.code(), Some(0), "{log}");
        }
        pollers.check();
    }
    pollers.stop()
}

#[test]
fn two_hundred_restarts_of_a_read_only_process_never_answer_less() {
    let folder = Folder::new(&small_fleet([]));
    let writer = Settings::crud(&folder).start().ready();
    let right = Right::of(&writer);
    let tally = restarts(200, &Settings::read_only(&folder), &right);
    assert!(tally.right >= 160 && tally.failed > 0, "{tally:?}");
    // The process that writes was not hurt by any of it.
    assert_eq!(Right::of(&writer), right);
}

#[test]
fn forty_restarts_of_a_crud_process_never_answer_less() {
    let folder = Folder::new(&small_fleet([]));
    let settings = Settings::crud(&folder);
    let writer = settings.start().ready();
    let right = Right::of(&writer);
    writer.kill();
    let tally = restarts(40, &settings, &right);
    assert!(tally.right >= 32 && tally.failed > 0, "{tally:?}");
}
