//! Every timer of every machine, in the order in which they are looked at.
//!
//! All share one grid of [`TICK`]: a run of the crawler is then the same whatever woke it up in between. What is due later than the next
//! tick (a patience, a pause) is a moment in the machine's own state, compared when its timer runs.

use crate::crawler::Crawler;
use nearcrawl_model::time::Millis;

/// How often time is looked at even if nothing happens, in milliseconds.
pub const TICK: Millis = 100;

/// One row of the table.
pub(crate) struct Timer {
    /// The machine that it belongs to, by the name of its directory.
    machine: &'static str,
    /// What it does.
    what: &'static str,
    /// After how many ticks it runs again.
    pub(crate) every: u64,
    pub(crate) run: fn(&mut Crawler),
}

const fn timer(machine: &'static str, what: &'static str, every: u64, run: fn(&mut Crawler)) -> Timer {
    Timer { machine, what, every, run }
}

const SECOND: u64 = 10;
const MINUTE: u64 = 600;

/// All timers. The order matters: who is alive is known before what the dead left is taken over, and that before anything is sent.
pub(crate) const TIMERS: &[Timer] = &[
    timer("crawl", "counts the URLs that wait", SECOND, |c| c.crawl.count_waiting()),
    timer("membership", "pings, suspects and gives up members; looks whether it is alone", 1, Crawler::tick_members),
    timer("membership", "tells other members of itself what its operator chose", SECOND, |c| c.membership.tick_profiles(&mut c.context)),
    timer("relay", "asks members directly once more; gives up what was to be passed on", SECOND, |c| {
        c.relay.tick(&mut c.context, &c.membership)
    }),
    timer("voting", "renews the lease, asks for votes, goes on with ballots", 1, Crawler::tick_voting),
    timer("replication", "asks again for journals of subnets that became ours; begins with what came", 1, Crawler::tick_recovery),
    timer("ownership", "claims what dead or leaving members left, when it is our turn", 1, Crawler::tick_take_over),
    timer("migration", "takes each hand-over a step further, or calls it off; forgets offers that came to nothing", 1, Crawler::tick_moves),
    timer("migration", "gives subnets with work away before its operator's hours end", SECOND, Crawler::tick_departure),
    timer("migration", "measures our load; once a minute adjusts the price and sheds load", 1, Crawler::tick_load),
    timer("delegation", "acts on watched claims; next probe, award or reminder of each round that is due", 1, Crawler::tick_settlement),
    timer("routing", "sends URLs whose owner is known, looks again for the others", 1, Crawler::route),
    timer("replication", "chooses replicas in place of those that are gone; counts those that have all", SECOND, Crawler::tick_replicas),
    timer("replication", "stores gathered rows, sends copies, tries failed replicas again", 1, Crawler::tick_copies),
    timer("replication", "writes down which URLs have arrived; drops journals of superseded runs", 5 * SECOND, Crawler::tick_journals),
    timer("context", "carries out what the timers before this one signalled", 1, Crawler::settle_signals),
    timer("ownership", "gossips claims, distances and roll-ups that are due; compares claims with a member", 1, Crawler::tick_gossip),
    timer("crawl", "begins the next run of each tree that is due", 5 * SECOND, Crawler::tick_runs),
    timer("crawl", "lets go on new hosts and URLs that limits have held back for long enough", 5 * SECOND, Crawler::tick_limits),
    timer("context", "carries out what the timers before this one signalled", 1, Crawler::settle_signals),
    timer(
        "crawl",
        "has hosts looked up before their runs; takes those that moved a step further to their new owners",
        1,
        Crawler::tick_moved_hosts,
    ),
    timer("crawl", "tells the stewards of hosts where they are, if others were their stewards before", SECOND, Crawler::tick_stewards),
    timer("hierarchy_version", "announces and adopts editions of the hierarchy", SECOND, Crawler::tick_hierarchy),
    timer("crawl", "forgets addresses whose rest is over", MINUTE, |c| c.crawl.tidy(&c.context)),
    timer(
        "survey",
        "ends surveys, compares them with other members, probes samples, names starting URLs of lists",
        SECOND,
        Crawler::tick_surveys,
    ),
    timer("opt_out", "finds sites that came since and are opted out", 10 * SECOND, Crawler::look_for_proofs),
    timer("admission", "ends certificates; tells and compares them and expulsions with other members", SECOND, Crawler::tick_admissions),
    timer("opt_out", "looks for proofs of opt-outs; compares what is said of them with other members", SECOND, Crawler::tick_opt_outs),
    timer("voting", "forgets accepted claims that every member knows", MINUTE, Crawler::tidy_votes),
    timer("delegation", "forgets rests and reservations that are over", MINUTE, |c| c.delegation.tidy(&c.context)),
    timer("delegation", "stores changed pages of the record of contacts", 1, |c| c.delegation.keep_contacts(&mut c.context)),
    timer("shutdown", "looks whether everything is done before it leaves or stops", 1, Crawler::tick_shutdown),
];

/// The table as text: machine, what its timer does, and after how many milliseconds it does so again.
pub fn table() -> impl Iterator<Item = (&'static str, &'static str, Millis)> {
    TIMERS.iter().map(|timer| (timer.machine, timer.what, timer.every * TICK))
}
