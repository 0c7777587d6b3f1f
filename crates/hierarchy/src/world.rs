//! The built-in hierarchy of the world, used if none is configured; made from the registries' published statistics.
//!
//! data/ATTRIBUTION.md says from which files, of which dates and under which licence.

use super::{
    snapshot::{SnapshotError, unpack},
    tree::Hierarchy,
};

/// The packed snapshot compiled into the program. Made by `nearcrawl hierarchy build`; data/README.md has the command.
pub static WORLD: &[u8] = include_bytes!("../../../data/world.snapshot.zst");

/// The hierarchy compiled into the program, unpacked in memory, which takes a fraction of a second: read it once. Who has a directory
/// unpacks [`WORLD`] there.
pub fn world() -> Result<Hierarchy, SnapshotError> {
    unpack(WORLD)
}
