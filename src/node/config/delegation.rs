//! `[delegation]`: the procedure by which a subnet without an owner gets one.

use super::{reader::Section, values};
use nearcrawl_core::migration::judge::{MigrationSettings, Rule};
use nearcrawl_model::fetch::ProbeKind;
use std::time::Duration;

/// The procedure that assigns subnets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DelegationPolicy {
    /// nearcrawl's: a model of distances says which member to ask for a probe next, and when to stop.
    #[default]
    Nearcrawl,
    /// The procedure of the IPMicra paper, within the daemon's probe budgets.
    Ipmicra,
    /// For comparison: a member is drawn, without a probe, and no subnet moves for nearness afterwards.
    Random,
}

/// `[delegation]`: how subnets without an owner get one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelegationConfig {
    /// The procedure by which a subnet without an owner gets one.
    pub policy: DelegationPolicy,
    /// With `nearcrawl`: a probe is made if it can be expected to bring the owner nearer by this much.
    pub probe_price: Duration,
    /// With `ipmicra`: the first access point that probes a subnet within this time gets it (IPMicra §4.2).
    pub threshold: Duration,
    /// By which rule subnets move to better owners, in how many states, and how many requests make an access.
    pub migration: MigrationSettings,
    /// How nearness is measured.
    pub probe: ProbeKind,
    /// The port of a web server at this access point's own address. The other members measure the round-trip time to it as they do to
    /// any server; without one they take the swarm connection's ping.
    pub home_port: Option<u16>,
    /// How many procedures a steward runs at once.
    pub max_parallel_rounds: u32,
    /// How many contacts by probes one subnet may get in 30 days, from the whole swarm.
    pub max_contacts_per_subnet: u32,
}

impl Default for DelegationConfig {
    fn default() -> Self {
        DelegationConfig {
            policy: DelegationPolicy::Nearcrawl,
            probe_price: PRICE,
            threshold: Duration::from_millis(50),
            migration: MigrationSettings::default(),
            probe: ProbeKind::Tcp,
            home_port: None,
            max_parallel_rounds: 8,
            max_contacts_per_subnet: 15,
        }
    }
}

/// The default price of a probe: on measured round-trip times between hosts all over the world two to three probes a
/// subnet, whether the swarm has a dozen members or fifty (docs/RESULTS.md).
pub const PRICE: Duration = Duration::from_micros(300);

const POLICIES: &[(&str, DelegationPolicy)] =
    &[("nearcrawl", DelegationPolicy::Nearcrawl), ("ipmicra", DelegationPolicy::Ipmicra), ("random", DelegationPolicy::Random)];
const RULES: &[(&str, Rule)] = &[("nearcrawl", Rule::Nearcrawl), ("twoma", Rule::Twoma), ("none", Rule::None)];
const PROBES: &[(&str, ProbeKind)] = &[("tcp", ProbeKind::Tcp), ("http-head", ProbeKind::HttpHead)];

impl DelegationConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> DelegationConfig {
        let default = DelegationConfig::default();
        DelegationConfig {
            policy: section.take("policy", default.policy, values::choice(POLICIES)),
            probe_price: section.take(
                "probe_price",
                default.probe_price,
                values::duration(Duration::from_micros(10)..=Duration::from_secs(1)),
            ),
            threshold: section.take("threshold", default.threshold, values::duration(Duration::from_millis(1)..=Duration::from_secs(5))),
            migration: MigrationSettings {
                rule: section.take("migration", default.migration.rule, values::choice(RULES)),
                states: section.take("migration_states", default.migration.states, values::whole(1..=32)),
                requests_per_access: section.take("requests_per_access", default.migration.requests_per_access, values::whole(1..=10_000)),
            },
            probe: section.take("probe", default.probe, values::choice(PROBES)),
            home_port: section.take("home_port", default.home_port, |value| values::whole(1..=65_535)(value).map(Some)),
            max_parallel_rounds: section.take("max_parallel_rounds", default.max_parallel_rounds, values::whole(1..=256)),
            max_contacts_per_subnet: section.take("max_contacts_per_subnet", default.max_contacts_per_subnet, values::whole(1..=15)),
        }
    }
}
