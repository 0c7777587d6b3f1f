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
    /// The same in a swarm of two, where neither can tell a dead peer from a cut line.
    pub pair_patience: Duration,
    /// How long an access point that hears from fewer than half of the members goes on before it stops fetching.
    pub fence_after: Duration,
    /// How long a membership must stand unchanged to count as the one that halves are taken of.
    pub stable_after: Duration,
    /// How often a member is asked whether it is alive.
    pub probe_every: Duration,
    /// How long its answer may take.
    pub probe_timeout: Duration,
    /// How long a member that did not answer may still object to being called silent.
    pub suspect_for: Duration,
}

impl Default for TimersConfig {
    fn default() -> Self {
        TimersConfig {
            dead_after: Duration::from_secs(45),
            pair_patience: Duration::from_secs(600),
            fence_after: Duration::from_secs(30),
            stable_after: Duration::from_secs(30),
            probe_every: Duration::from_secs(1),
            probe_timeout: Duration::from_millis(700),
            suspect_for: Duration::from_secs(5),
        }
    }
}

impl TimersConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> TimersConfig {
        let default = TimersConfig::default();
        let patience = || values::duration(Duration::from_millis(10)..=Duration::from_secs(86_400));
        let config = TimersConfig {
            dead_after: section.take("dead_after", default.dead_after, patience()),
            pair_patience: section.take("pair_patience", default.pair_patience, patience()),
            fence_after: section.take("fence_after", default.fence_after, patience()),
            stable_after: section.take("stable_after", default.stable_after, patience()),
            probe_every: section.take("probe_every", default.probe_every, patience()),
            probe_timeout: section.take("probe_timeout", default.probe_timeout, patience()),
            suspect_for: section.take("suspect_for", default.suspect_for, patience()),
        };
        // A member that is cut off must have stopped before the others begin, or two would ask one server at once.
        if config.fence_after + config.suspect_for > config.dead_after {
            let most = write_duration(config.dead_after);
            section.contradicts(
                &["fence_after", "suspect_for", "dead_after"],
                format!("fence_after and suspect_for together may not exceed dead_after ({most})"),
            );
        }
        if config.probe_timeout >= config.probe_every {
            let most = write_duration(config.probe_every);
            section.contradicts(&["probe_timeout", "probe_every"], format!("probe_timeout must be shorter than probe_every ({most})"));
        }
        if config.pair_patience < config.dead_after {
            let least = write_duration(config.dead_after);
            section.contradicts(&["pair_patience", "dead_after"], format!("pair_patience may not be shorter than dead_after ({least})"));
        }
        config
    }
}
