//! Buffers for bodies while they are read; they are used again, so that a page costs no allocation.

use std::sync::{Mutex, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The greatest number of free buffers that are kept.
const MAX_BUFFERS: usize = 16;

/// Larger buffers are given back to the system.
const MAX_BUFFER: usize = 512 << 10;

/// Bodies beyond this size count as large.
pub const LARGE: usize = 1 << 20;

/// Large bodies in memory at once. The others wait where they are, at their servers: as many servers are asked at once as somebody
/// likes, but they cannot all together fill the memory.
pub const MAX_LARGE: usize = 16;

/// A few emptied buffers, and the right to fill large ones.
pub struct Buffers {
    kept: Mutex<Vec<Vec<u8>>>,
    large: Semaphore,
}

impl Default for Buffers {
    fn default() -> Self {
        Buffers { kept: Mutex::default(), large: Semaphore::new(MAX_LARGE) }
    }
}

impl Buffers {
    /// A buffer, perhaps with room in it from the last time.
    pub fn take(&self) -> Vec<u8> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Waits until one more large body may be held; it may be as long as the permit lives.
    pub async fn large(&self) -> Option<SemaphorePermit<'_>> {
        self.large.acquire().await.ok()
    }

    /// Large bodies that are held now.
    pub fn large_bodies(&self) -> usize {
        MAX_LARGE - self.large.available_permits()
    }

    /// Gives a buffer back.
    pub fn give(&self, mut buffer: Vec<u8>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_BUFFERS && buffer.capacity() <= MAX_BUFFER {
            buffer.clear();
            kept.push(buffer);
        }
    }
}
