//! Many clients that write to one document at the same time.

use std::collections::HashSet;
use std::thread;

use crate::fleet::{Folder, label, small_fleet};
use crate::http::Client;
use crate::service::Settings;

const WRITERS: u64 = 64;
const PATCHES: u64 = 100;

#[test]
fn of_64_writers_with_100_patches_of_one_document_each_none_is_lost() {
    let folder = Folder::new(&small_fleet(["shared".to_owned()]));
    let service = Settings::crud(&folder).start().ready();
    let address = service.address;
    let revisions: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut client = Client::new(address);
                    let mut write = |n: u64| {
                        let request = label("shared", &format!("w{writer}"), &n.to_string(), "a patch");
                        let answer = client.exchange(&request).expect("an answer").expect(200);
                        // What it is told is what it wrote, whatever the others have done.
                        assert_eq!(answer.json()["labels"][format!("w{writer}")], n.to_string());
                        answer.revision()
                    };
                    (1..=PATCHES).map(&mut write).collect()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a writer")).collect()
    });
    assert!(revisions.iter().all(|own| own.is_sorted()), "a writer's patches are in its order");
    let all: HashSet<u64> = revisions.into_iter().flatten().collect();
    assert_eq!(all, (2..2 + WRITERS * PATCHES).collect(), "each patch is a revision of its own");

    let service = {
        service.kill();
        Settings::crud(&folder).start().ready()
    };
    let shared = service.get("/namespaces/shared").expect(200).json();
    for writer in 0..WRITERS {
        assert_eq!(shared["labels"][format!("w{writer}")], PATCHES.to_string(), "w{writer}");
    }
    assert_eq!(service.get("/ready").json()["revision"], 1 + WRITERS * PATCHES);
}
