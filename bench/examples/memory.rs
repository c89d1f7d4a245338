//! How much memory a cluster takes: allocated bytes of a generated fleet, divided by its clusters. `make bench-core` runs it.

use std::time::Instant;

use bench::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

fn main() {
    for clusters in [1_000, 10_000, 100_000] {
        let (before, resident, started) = (ALLOCATOR.live(), resident_kib(), Instant::now());
        let state = bench::fleet(clusters);
        let bytes = ALLOCATOR.live() - before;
        println!(
            "{clusters:>7} clusters: {:>5} bytes each allocated, {:>5} resident, made in {:.1} s",
            bytes / clusters,
            (resident_kib().saturating_sub(resident)) * 1024 / clusters,
            started.elapsed().as_secs_f64()
        );
        drop(state);
    }
}
