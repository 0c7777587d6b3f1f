//! `[nat]`: what the daemon does for members behind routers.

use super::{reader::Section, values};

/// `[nat]`: members behind routers that forward no port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatConfig {
    /// Whether such members may be reached through this one, once others reach it from outside.
    pub relay: bool,
}

impl Default for NatConfig {
    fn default() -> Self {
        NatConfig { relay: true }
    }
}

impl NatConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> NatConfig {
        NatConfig { relay: section.take("relay", NatConfig::default().relay, values::truth) }
    }
}
