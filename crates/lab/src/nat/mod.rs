//! Trial of members behind routers: how soon each is a full member, and whether two connect directly, or through whom.
//!
//! Real daemons of this program run, each in a network namespace, some behind a router of a certain kind.

mod pairs;
mod world;

pub use pairs::{NatPlan, NatTable, Pair, measure};
pub use world::{Around, NatDaemon, NatError, NatWorld, Place};

/// What may be between a daemon and the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Nothing.
    Open,
    /// A router that lets everything in.
    FullCone,
    /// A router that lets in answers only, and uses one port outside for one inside.
    PortRestricted,
    /// A router that uses another port outside for each connection.
    Symmetric,
    /// A router that lets nothing pass by UDP.
    NoUdp,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [Kind::Open, Kind::FullCone, Kind::PortRestricted, Kind::Symmetric, Kind::NoUdp];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Open => "open",
            Kind::FullCone => "full-cone",
            Kind::PortRestricted => "port-restricted",
            Kind::Symmetric => "symmetric",
            Kind::NoUdp => "no-udp",
        }
    }

    /// Whether two daemons behind these can connect directly: one is reached from outside, or each router uses one port and lets UDP pass.
    pub fn meets(self, other: Kind) -> bool {
        let is_reached = |kind| matches!(kind, Kind::Open | Kind::FullCone);
        is_reached(self) || is_reached(other) || (self == Kind::PortRestricted && other == Kind::PortRestricted)
    }
}
