//! What if nobody gives a hierarchy? Then the world's, compiled into the program from the registries' published statistics.
//!
//! data/ATTRIBUTION.md says from which files, of which dates and under which licence.

use super::{snapshot::SnapshotRefusal, tree::Hierarchy};

/// Made by `nearcrawl hierarchy build`; data/README.md has the command.
pub(super) static WORLD: &[u8] = include_bytes!("../../../data/world.snapshot.zst");

impl Hierarchy {
    /// The hierarchy compiled into the program. Takes a fraction of a second: read it once.
    pub fn world() -> Result<Hierarchy, SnapshotRefusal> {
        Hierarchy::from_bytes(WORLD)
    }
}
