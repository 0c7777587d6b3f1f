//! Checks that answers that are called exact are true.

use super::verdict::First;
use crate::swarm::{Played, records::Run};
use nearcrawl_model::{access_point::AccessPoint, time::Millis, url::Host};
use std::collections::{BTreeMap, VecDeque};

/// How often members are asked for their totals.
pub(super) const ASK_EVERY: Millis = 10_000;

/// An answer that was called exact.
#[derive(Debug)]
struct Told {
    at: Millis,
    number: usize,
    servers: u64,
    pages: u64,
}

/// What is recorded at some moment, of which no exact answer may be short. Members' sums are of different moments, so each host is looked
/// at alone.
#[derive(Debug)]
struct Recorded {
    at: Millis,
    servers: u64,
    /// Of each host the number of its present run and the pages of it.
    pages: BTreeMap<Host, (u32, u64)>,
}

/// Answers, and what they are compared with.
#[derive(Debug)]
pub(super) struct Totals {
    told: Vec<Told>,
    recorded: VecDeque<Recorded>,
    /// How old an exact answer may be, in milliseconds.
    freshness: Millis,
    /// Answers that were called exact and are not.
    pub(super) wrong: u64,
}

impl Totals {
    /// For a swarm of so many members.
    pub(super) fn new(members: u32) -> Totals {
        let freshness = (300 * u64::from(members)).max(30_000);
        Totals { told: Vec::new(), recorded: VecDeque::new(), freshness, wrong: 0 }
    }

    /// Judges the answers of the last time: what was recorded long enough before must be in them, what nobody asked for must not. Where a
    /// run follows on another, either may be told.
    pub(super) fn judge(&mut self, world: &Played, now: Millis, first: &mut First) {
        let Some(records) = &world.records else { return };
        let (mut least, mut most) = (Recorded { at: now, servers: 0, pages: BTreeMap::new() }, (0, 0));
        for (host, runs) in records.runs() {
            let Some((present, pages_least, pages_most)) = pages_of(&runs) else { continue };
            most = (most.0 + 1, most.1 + pages_most);
            least.servers += u64::from(runs.iter().any(|(_, run)| run.recorded > 0));
            least.pages.insert(host.clone(), (present, pages_least));
        }
        self.recorded.push_back(least);
        for told in std::mem::take(&mut self.told) {
            let since = told.at.saturating_sub(self.freshness + ASK_EVERY);
            let floor = floor(self.recorded.iter().filter(|recorded| recorded.at >= since));
            let (servers, pages) = (floor.0..=most.0, floor.1..=most.1);
            if !servers.contains(&told.servers) || !pages.contains(&told.pages) {
                self.wrong += 1;
                let Told { number, servers: told_servers, pages: told_pages, .. } = told;
                first.note(told.at, || {
                    format!(
                        "member {number} called {told_servers} servers and {told_pages} pages exact; recorded are {servers:?} and {pages:?}"
                    )
                });
            }
        }
        while self.recorded.front().is_some_and(|first| first.at + self.freshness + 3 * ASK_EVERY < now) {
            self.recorded.pop_front();
        }
    }

    /// Asks everybody who can answer.
    pub(super) fn ask_all(&mut self, world: &Played, now: Millis) {
        for (number, process) in world.running_processes() {
            if !world.is_frozen(&process) {
                self.ask(world, number, &process, now);
            }
        }
    }

    /// Asks one process.
    pub(super) fn ask(&mut self, world: &Played, number: usize, process: &AccessPoint, at: Millis) {
        let Some(results) = world.process(process).map(|crawler| crawler.view().results()) else { return };
        if results.exact {
            let total = results.summary.total;
            self.told.push(Told { at, number, servers: total.servers, pages: total.pages });
        }
    }
}

/// The fewest servers and pages that an exact answer can count within a time at moments of which this was recorded.
fn floor<'a>(mut recorded: impl Iterator<Item = &'a Recorded>) -> (u64, u64) {
    let Some(first) = recorded.next() else { return (0, 0) };
    let (mut servers, mut pages) = (first.servers, first.pages.clone());
    for later in recorded {
        servers = servers.min(later.servers);
        for (host, floor) in &mut pages {
            let Some((run, count)) = later.pages.get(host) else { continue };
            // Where another run has begun since, there was a moment when none of its pages was recorded.
            *floor = (*run, if *run == floor.0 { floor.1.min(*count) } else { 0 });
        }
    }
    (servers, pages.values().map(|(_, pages)| pages).sum())
}

/// The present run of a host, and the fewest and the most pages that an exact answer can count of it.
fn pages_of(runs: &[(u32, Run)]) -> Option<(u32, u64, u64)> {
    let (number, present) = runs.last()?;
    let before = runs.iter().rev().nth(1).map_or(present, |(_, before)| before);
    Some((*number, present.recorded.min(before.recorded), present.asked.max(before.asked)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(at: Millis, pages: &[(&str, u32, u64)]) -> Recorded {
        let pages = pages.iter().map(|(host, run, pages)| (host.parse().unwrap(), (*run, *pages)));
        Recorded { at, servers: 2, pages: pages.collect() }
    }

    #[test]
    fn an_answer_of_several_moments_may_count_each_host_as_it_was_at_its_least() {
        let moments = [
            recorded(0, &[("a.ke", 1, 100), ("b.ke", 1, 40)]),
            recorded(10, &[("a.ke", 1, 105), ("b.ke", 2, 9)]),
            recorded(20, &[("a.ke", 1, 108), ("b.ke", 2, 20), ("c.ke", 1, 5)]),
        ];
        assert_eq!(floor(moments.iter()), (2, 100), "b.ke began its second run with no page");
        assert_eq!(floor(moments[1..].iter()), (2, 114), "and had some of it from then on; c.ke may be missing");
        assert_eq!(floor(moments[2..].iter()), (2, 133));
        assert_eq!(floor([].iter()), (0, 0));
    }
}
