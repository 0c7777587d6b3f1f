//! Where do bodies lie while they are read? In memory that is used again, so that a page costs no allocation.

use std::sync::{Mutex, PoisonError};

/// Buffers kept.
const MOST_BUFFERS: usize = 16;

/// Larger buffers are given back to the system.
const LARGEST_BUFFER: usize = 512 << 10;

/// A few emptied buffers.
#[derive(Default)]
pub struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// A buffer, perhaps with room in it from the last time.
    pub fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub fn give(&self, mut buffer: Vec<u8>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST_BUFFERS && buffer.capacity() <= LARGEST_BUFFER {
            buffer.clear();
            kept.push(buffer);
        }
    }
}
