//! What a change of one cluster costs.

use std::time::{Duration, Instant};

use bench::Client;
use bench::{ADMIN, Process, READER};

/// What writing for some seconds came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) per_second: f64,
    /// How many commits shared one fsync.
    pub(crate) group: f64,
    pub(crate) cpu_micros: f64,
}

/// Some clients set labels of single clusters.
pub(crate) fn write(service: &Process, clusters: usize, clients: usize) -> Written {
    let counted = || {
        let text = Client::open(&service.address).get("/metrics", READER).body;
        let text = String::from_utf8(text).expect("text");
        ["flux_resourceset_commits_total", "flux_resourceset_commit_groups_total"].map(|name| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
            value.unwrap_or(0.0)
        })
    };
    let [commits, groups] = counted();
    let (cpu, started) = (service.cpu_micros(), Instant::now());
    let deadline = started + Duration::from_secs(3);
    let written: u32 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|client| {
                scope.spawn(move || {
                    let mut connection = Client::open(&service.address);
                    let mut count = 0_u32;
                    while Instant::now() < deadline {
                        let cluster = (client * 131 + count as usize * 7919) % clusters;
                        let path = format!("/clusters/{}", bench::cluster_id(cluster));
                        // Another value each time, also in the next round.
                        let at = started.elapsed().as_nanos();
                        let body = format!("{{\"labels\":{{\"bench\":\"c{client}-{at}\"}}}}");
                        assert_eq!(connection.send("PATCH", &path, ADMIN, "", &body).status, 200);
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("it wrote")).sum()
    });
    let (seconds, cpu) = (started.elapsed().as_secs_f64(), service.cpu_micros() - cpu);
    let [commits, groups] = {
        let [c, g] = counted();
        [c - commits, g - groups]
    };
    let written = f64::from(written);
    Written { per_second: written / seconds, group: commits / groups.max(1.0), cpu_micros: cpu / written }
}
