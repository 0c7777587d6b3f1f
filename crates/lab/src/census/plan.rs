//! Plan of a census: what to make up, and what to do with it.

/// The size of a census.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CensusPlan {
    /// Decides everything that is random: the web, what changes in it, who is killed when.
    pub seed: u64,
    /// How many hosts the web has.
    pub hosts: usize,
    /// How many daemons crawl it.
    pub daemons: usize,
    /// How often each server is visited.
    pub runs: u32,
    /// How many daemons are killed.
    pub kills: usize,
}

/// The fewest and the most hosts.
pub const HOSTS: std::ops::RangeInclusive<usize> = 20..=2_000;

/// The most daemons.
pub const MAX_DAEMONS: usize = 12;

/// The most runs.
pub const MAX_RUNS: u32 = 5;

/// How deep sites are crawled.
pub(crate) const DEPTH: u8 = 4;

impl CensusPlan {
    /// How many new hosts in scope the pages of one site may lead to in a day: fewer than a portal names, more than any other site does.
    pub(crate) fn new_hosts_per_site(&self) -> usize {
        if self.hosts < 100 { 7 } else { 24 }
    }

    /// Whether pages are evaluated in this run (from 1): only after the first one, if there are several.
    pub(crate) fn evaluates(&self, run: u32) -> bool {
        self.runs == 1 || run > 1
    }

    /// The run in which the daemon of this number is killed: the last one first.
    pub(crate) fn run_of_kill(&self, kill: usize) -> u32 {
        self.runs - (kill as u32 % self.runs)
    }
}
