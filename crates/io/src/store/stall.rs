//! A store that stands still, for tests: as long as a file exists, nothing is read from the disk or written to it.
//!
//! Whoever comes to the disk waits here, whichever thread that is: [`super::database`] asks where it reads, writes and flushes. The file is
//! named by `NEARCRAWL_STALL_STORE`. Builds without debug assertions know nothing of it.

use std::{path::PathBuf, sync::OnceLock, thread, time::Duration};

static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Whether the store is to stand still.
fn stands_still() -> bool {
    let file = FILE.get_or_init(|| std::env::var_os("NEARCRAWL_STALL_STORE").map(PathBuf::from).filter(|_| cfg!(debug_assertions)));
    file.as_ref().is_some_and(|file| file.exists())
}

/// Waits as long as the store is to stand still.
pub(super) fn wait() {
    while stands_still() {
        thread::sleep(Duration::from_millis(10));
    }
}
