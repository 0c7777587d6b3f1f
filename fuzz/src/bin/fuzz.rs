//! Runs a fuzz target with libFuzzer.
//!
//! The target is the one that the environment variable `FUZZ_TARGET` names, like `model/claim`; this measures what memory each run takes.
//! With `CORPUS` it does something with the corpora instead (`nearcrawl_fuzz::files`): a program of its own would lack what instrumented
//! code calls.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nearcrawl_fuzz::{Folder, corpus::Target, files, named};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// The system's allocator, which counts what is allocated now and what was at most since [`Counting::reset`]. There is one thread.
struct Counting {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Counting {
    fn grown(&self, by: usize) {
        let now = self.now.fetch_add(by, Relaxed) + by;
        self.most.fetch_max(now, Relaxed);
    }

    /// What is allocated.
    fn reset(&self) -> usize {
        let now = self.now.load(Relaxed);
        self.most.store(now, Relaxed);
        now
    }
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.grown(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.grown(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        self.now.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.grown(size);
        self.now.fetch_sub(layout.size(), Relaxed);
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATED: Counting = Counting { now: AtomicUsize::new(0), most: AtomicUsize::new(0) };

static TARGET: LazyLock<(&Folder, &Target)> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target, like model/claim");
    let target = named(&name).unwrap_or_else(|| panic!("there is no target {name}"));
    // What a target makes once, for all inputs, is not counted for the first of them.
    (target.1.run)(&[]);
    target
});

fn manage_corpora() {
    let Ok(command) = std::env::var("CORPUS") else { return };
    let outcome = files::run(&command);
    if let Err(why) = &outcome {
        eprintln!("{why}");
    }
    std::process::exit(i32::from(outcome.is_err()));
}

fuzz_target!(init: manage_corpora(), |input: &[u8]| {
    let (folder, target) = *TARGET;
    let before = ALLOCATED.reset();
    (target.run)(input);
    let taken = ALLOCATED.most.load(Relaxed) - before;
    let allowed = folder.memory + folder.memory_a_byte * input.len();
    assert!(taken <= allowed, "{} bytes of input took {taken} bytes of memory; {allowed} are allowed", input.len());
});
