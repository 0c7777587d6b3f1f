//! How is memory kept small? Threads share it, and what is not needed any more goes back to the system.

/// For the beginning of the program, before there are threads: they share two heaps. Each would get its own, and what a thread of the store
/// or of RocksDB has freed would be of no use to the others: 8 of 100 MB after a crawl of 28,000 pages, for no time that could be measured.
pub fn share_heaps() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets a number that is read when a thread asks for memory for the first time.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Gives back what was freed. The allocator would keep it for later; after unpacking a hierarchy that is 50 MB and no later comes.
pub fn give_back_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time from any thread, and takes nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
