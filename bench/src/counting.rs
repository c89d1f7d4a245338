//! An allocator that counts. A program that measures memory makes it its global one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what is allocated now, and the most that ever was.
pub struct Counting {
    live: AtomicUsize,
    most: AtomicUsize,
}

impl Counting {
    #[expect(clippy::new_without_default, reason = "it is made in a static")]
    pub const fn new() -> Self {
        Self { live: AtomicUsize::new(0), most: AtomicUsize::new(0) }
    }

    /// The bytes that are allocated now.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// The most bytes that were allocated at once since the last [`Counting::begin`].
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Begins to look for the most; gives what is allocated now.
    pub fn begin(&self) -> usize {
        let live = self.live();
        self.most.store(live, Ordering::Relaxed);
        live
    }
}

#[expect(unsafe_code, reason = "a counting allocator has to be one")]
// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = self.live.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        self.most.fetch_max(live, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.live.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}
