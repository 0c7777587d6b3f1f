//! Are answers that are called exact true?

use super::verdict::First;
use crate::swarm::{Played, records::Run};
use nearcrawl_model::{access_point::AccessPoint, time::Millis};
use std::collections::VecDeque;

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

/// Sums of what is recorded at some moment, of which no exact answer may be short.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    at: Millis,
    servers: u64,
    pages: u64,
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
        let (mut least, mut most) = (Recorded { at: now, servers: 0, pages: 0 }, (0, 0));
        for runs in records.runs() {
            let Some((pages_least, pages_most)) = pages_of(&runs) else { continue };
            most = (most.0 + 1, most.1 + pages_most);
            least.servers += u64::from(runs.iter().any(|(_, run)| run.recorded > 0));
            least.pages += pages_least;
        }
        self.recorded.push_back(least);
        for told in std::mem::take(&mut self.told) {
            let since = told.at.saturating_sub(self.freshness + ASK_EVERY);
            let recent = self.recorded.iter().filter(|recorded| recorded.at >= since);
            let floor = recent.fold((u64::MAX, u64::MAX), |floor, at| (floor.0.min(at.servers), floor.1.min(at.pages)));
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

/// The fewest and the most pages that an exact answer can count of a host.
fn pages_of(runs: &[(u32, Run)]) -> Option<(u64, u64)> {
    let (_, present) = runs.last()?;
    let before = runs.iter().rev().nth(1).map_or(present, |(_, before)| before);
    Some((present.recorded.min(before.recorded), present.asked.max(before.asked)))
}
