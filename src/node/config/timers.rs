//! `[timers]`: how patient the swarm is with a member that falls silent.

use super::{
    reader::Section,
    values::{self, write_duration},
};
use nearcrawl_core::record_deliveries::SEND_EVERY;
use std::time::Duration;

/// `[timers]`: how silence is judged. All members of a swarm should use the same ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimersConfig {
    /// How long the voters must not have renewed a member's lease before they let others take its subnets over.
    pub dead_after: Duration,
    /// After which silence a voter is replaced.
    pub replace_voter_after: Duration,
    /// For how long a lease lasts: an access point that too few voters hear stops fetching when it ends.
    pub lease: Duration,
    /// For how long an access point must have held leases before it may vote, at least.
    pub vote_after: Duration,
    /// How often a member is asked whether it is alive.
    pub ping_interval: Duration,
    /// How long its answer may take.
    pub ping_timeout: Duration,
    /// How long a member that did not answer may still object to being called silent.
    pub suspicion_timeout: Duration,
    /// How often replicas get what is new of the record of requests.
    pub copy_record: Duration,
}

impl Default for TimersConfig {
    fn default() -> Self {
        TimersConfig {
            dead_after: Duration::from_secs(45),
            replace_voter_after: Duration::from_secs(600),
            lease: Duration::from_secs(30),
            vote_after: Duration::from_secs(30),
            ping_interval: Duration::from_secs(5),
            ping_timeout: Duration::from_secs(2),
            suspicion_timeout: Duration::from_secs(5),
            copy_record: Duration::from_millis(SEND_EVERY),
        }
    }
}

impl TimersConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> TimersConfig {
        let default = TimersConfig::default();
        let patience = || values::duration(Duration::from_millis(10)..=Duration::from_secs(86_400));
        let config = TimersConfig {
            dead_after: section.take("dead_after", default.dead_after, patience()),
            replace_voter_after: section.take("replace_voter_after", default.replace_voter_after, patience()),
            lease: section.take("lease", default.lease, patience()),
            vote_after: section.take("vote_after", default.vote_after, patience()),
            ping_interval: section.take("ping_interval", default.ping_interval, patience()),
            ping_timeout: section.take("ping_timeout", default.ping_timeout, patience()),
            suspicion_timeout: section.take("suspicion_timeout", default.suspicion_timeout, patience()),
            copy_record: section.take(
                "copy_record",
                default.copy_record,
                values::duration(Duration::from_secs(1)..=Duration::from_secs(3_600)),
            ),
        };
        // A member that is cut off must have stopped before the others begin, or two would ask one server at once.
        if config.lease + config.suspicion_timeout > config.dead_after {
            let most = write_duration(config.dead_after);
            section.contradicts(
                &["lease", "suspicion_timeout", "dead_after"],
                format!("lease and suspicion_timeout together may not exceed dead_after ({most})"),
            );
        }
        if config.ping_timeout >= config.ping_interval {
            let most = write_duration(config.ping_interval);
            section.contradicts(&["ping_timeout", "ping_interval"], format!("ping_timeout must be shorter than ping_interval ({most})"));
        }
        // Nobody would be asked before it counts as dead.
        if config.ping_interval >= config.dead_after {
            let most = write_duration(config.dead_after);
            section.contradicts(&["ping_interval", "dead_after"], format!("ping_interval must be shorter than dead_after ({most})"));
        }
        if config.replace_voter_after < config.dead_after {
            let least = write_duration(config.dead_after);
            section.contradicts(
                &["replace_voter_after", "dead_after"],
                format!("replace_voter_after may not be shorter than dead_after ({least})"),
            );
        }
        config
    }
}
