//! `[store]`: the memory that the store may use, and the disk space for the journals of other owners.

use super::{reader::Section, values};

/// `[store]`: the databases in the state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// Memory for write buffers and block cache together, in bytes.
    pub memory: u64,
    /// Copies that are kept for any one other owner, in bytes of journal rows before compression.
    pub max_bytes_per_owner: u64,
}

impl Default for StoreConfig {
    fn default() -> Self {
        StoreConfig { memory: 64 << 20, max_bytes_per_owner: 4 << 30 }
    }
}

impl StoreConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> StoreConfig {
        let default = StoreConfig::default();
        StoreConfig {
            memory: section.take("memory", default.memory, values::size((8 << 20)..=(16 << 30))),
            max_bytes_per_owner: section.take("max_bytes_per_owner", default.max_bytes_per_owner, values::size((1 << 20)..=(1 << 50))),
        }
    }
}
