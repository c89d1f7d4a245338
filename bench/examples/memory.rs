//! How much memory a cluster takes: allocated bytes of a generated fleet, divided by its clusters. `make bench-core` runs it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Counts what is allocated now.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "a counting allocator has to be one")]
// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

fn main() {
    for clusters in [1_000, 10_000, 100_000] {
        let (before, resident, started) = (LIVE.load(Ordering::Relaxed), resident_kib(), Instant::now());
        let state = bench::fleet(clusters);
        let bytes = LIVE.load(Ordering::Relaxed) - before;
        println!(
            "{clusters:>7} clusters: {:>5} bytes each allocated, {:>5} resident, made in {:.1} s",
            bytes / clusters,
            (resident_kib().saturating_sub(resident)) * 1024 / clusters,
            started.elapsed().as_secs_f64()
        );
        drop(state);
    }
}
