//! Times and bounds of SWIM.

use foca::{Config, PeriodicParams};
use nearcrawl_model::time::Millis;
use std::{
    num::{NonZeroU8, NonZeroUsize},
    time::Duration,
};

/// SWIM's times and bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwimConfig {
    /// How often one member is probed, in milliseconds.
    pub probe_every: Millis,
    /// How long a probe may take before others are asked to probe, in milliseconds; below `probe_every`.
    pub probe_rtt: Millis,
    /// How long a suspect has to speak up, in milliseconds.
    pub suspect_to_down: Millis,
    /// How often a random member is asked for the members it knows, in milliseconds.
    pub announce_every: Millis,
    /// How often those given up are called again, in milliseconds.
    pub recall_every: Millis,
    /// How often changes are spread, in milliseconds.
    pub gossip_every: Millis,
    /// After how long a member that is down is forgotten, in milliseconds.
    pub forget_after: Millis,
    /// The largest datagram, in bytes.
    pub largest_datagram: usize,
    /// How many members are remembered, the silent ones included.
    pub max_members: usize,
    /// Whether a name counts as a member as soon as anybody tells it, whether it ever says hello or not, until a probe of SWIM finds nobody;
    /// never but in a laboratory.
    pub believes_names: bool,
}

impl Default for SwimConfig {
    fn default() -> Self {
        SwimConfig {
            probe_every: 5_000,
            probe_rtt: 2_000,
            suspect_to_down: 5_000,
            announce_every: 60_000,
            recall_every: 10_000,
            gossip_every: 1_000,
            forget_after: 24 * 3_600_000,
            largest_datagram: 8 << 10,
            max_members: 4_096,
            believes_names: false,
        }
    }
}

impl SwimConfig {
    /// For how long at least a member has not answered when it is found to be down, in milliseconds: a probe, and the time to object.
    pub(crate) fn unheard(&self) -> Millis {
        self.probe_every + self.suspect_to_down
    }

    /// All times divided by `factor`: for tests and demonstrations.
    pub fn faster(&self, factor: u64) -> SwimConfig {
        let cut = |millis: Millis| (millis / factor.max(1)).max(2);
        let probe_every = cut(self.probe_every);
        SwimConfig {
            probe_every,
            probe_rtt: cut(self.probe_rtt).min(probe_every - 1),
            suspect_to_down: cut(self.suspect_to_down),
            announce_every: cut(self.announce_every),
            recall_every: cut(self.recall_every),
            gossip_every: cut(self.gossip_every),
            forget_after: self.forget_after,
            largest_datagram: self.largest_datagram,
            max_members: self.max_members,
            believes_names: self.believes_names,
        }
    }

    /// The same for the protocol's crate.
    pub(super) fn foca(&self) -> Config {
        let few = |frequency: Millis, members: usize| {
            NonZeroUsize::new(members).map(|num_members| PeriodicParams { frequency: Duration::from_millis(frequency), num_members })
        };
        Config {
            probe_period: Duration::from_millis(self.probe_every.max(2)),
            probe_rtt: Duration::from_millis(self.probe_rtt.clamp(1, self.probe_every.max(2) - 1)),
            num_indirect_probes: NonZeroUsize::MIN.saturating_add(2),
            max_transmissions: NonZeroU8::MIN.saturating_add(5),
            suspect_to_down_after: Duration::from_millis(self.suspect_to_down.max(1)),
            remove_down_after: Some(Duration::from_millis(self.forget_after)),
            max_packet_size: NonZeroUsize::new(self.largest_datagram).unwrap_or(NonZeroUsize::MIN),
            notify_down_members: true,
            periodic_announce: few(self.announce_every, 1),
            // Done here (see `recall`): foca stops it as soon as no member is alive, which is when it is needed.
            periodic_announce_to_down_members: None,
            periodic_gossip: few(self.gossip_every, 2),
        }
    }
}
