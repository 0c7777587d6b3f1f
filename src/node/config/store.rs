//! How much memory may the store use?

use super::{reader::Section, values};

/// `[store]`: the databases in the state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// Memory for write buffers and block cache together, in bytes.
    pub memory: u64,
}

impl Default for StoreConfig {
    fn default() -> Self {
        StoreConfig { memory: 64 << 20 }
    }
}

impl StoreConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> StoreConfig {
        let default = StoreConfig::default();
        StoreConfig { memory: section.take("memory", default.memory, values::size((8 << 20)..=(16 << 30))) }
    }
}
