//! How patient is the swarm with a member that falls silent?

use super::{
    reader::Section,
    values::{self, write_duration},
};
use std::time::Duration;

/// `[timers]`: how silence is judged. All members of a swarm should use the same ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimersConfig {
    /// How long a member must be silent before others take its subnets over.
    pub dead_after: Duration,
    /// The same in a swarm of two, where neither can tell a dead member from a cut connection.
    pub pair_dead_after: Duration,
    /// How long an access point that hears from fewer than half of the members goes on before it stops fetching.
    pub fence_after: Duration,
    /// How long a membership must stand unchanged to count as the one that halves are taken of.
    pub stable_after: Duration,
    /// How often a member is asked whether it is alive.
    pub ping_interval: Duration,
    /// How long its answer may take.
    pub ping_timeout: Duration,
    /// How long a member that did not answer may still object to being called silent.
    pub suspicion_timeout: Duration,
}

impl Default for TimersConfig {
    fn default() -> Self {
        TimersConfig {
            dead_after: Duration::from_secs(45),
            pair_dead_after: Duration::from_secs(600),
            fence_after: Duration::from_secs(30),
            stable_after: Duration::from_secs(30),
            ping_interval: Duration::from_secs(1),
            ping_timeout: Duration::from_millis(700),
            suspicion_timeout: Duration::from_secs(5),
        }
    }
}

impl TimersConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> TimersConfig {
        let default = TimersConfig::default();
        let patience = || values::duration(Duration::from_millis(10)..=Duration::from_secs(86_400));
        let config = TimersConfig {
            dead_after: section.take("dead_after", default.dead_after, patience()),
            pair_dead_after: section.take("pair_dead_after", default.pair_dead_after, patience()),
            fence_after: section.take("fence_after", default.fence_after, patience()),
            stable_after: section.take("stable_after", default.stable_after, patience()),
            ping_interval: section.take("ping_interval", default.ping_interval, patience()),
            ping_timeout: section.take("ping_timeout", default.ping_timeout, patience()),
            suspicion_timeout: section.take("suspicion_timeout", default.suspicion_timeout, patience()),
        };
        // A member that is cut off must have stopped before the others begin, or two would ask one server at once.
        if config.fence_after + config.suspicion_timeout > config.dead_after {
            let most = write_duration(config.dead_after);
            section.contradicts(
                &["fence_after", "suspicion_timeout", "dead_after"],
                format!("fence_after and suspicion_timeout together may not exceed dead_after ({most})"),
            );
        }
        if config.ping_timeout >= config.ping_interval {
            let most = write_duration(config.ping_interval);
            section.contradicts(&["ping_timeout", "ping_interval"], format!("ping_timeout must be shorter than ping_interval ({most})"));
        }
        if config.pair_dead_after < config.dead_after {
            let least = write_duration(config.dead_after);
            section
                .contradicts(&["pair_dead_after", "dead_after"], format!("pair_dead_after may not be shorter than dead_after ({least})"));
        }
        config
    }
}
