//! Judges whether the swarm kept its promises.
//!
//! It looks at what servers saw, who owned what, what members answered, and what is left at the end.

mod digest;
pub(super) mod fetches;
pub(super) mod lost;
mod owners;
mod totals;
mod verdict;

pub use verdict::{Failover, Sample, Verdict, Violation};

use super::{
    build::crawl_delay,
    file::{Action, Clock, ClockChange, Scenario},
};
use crate::swarm::Played;
use fetches::Pauses;
use nearcrawl_core::{
    membership::{HeldBack, NoLease},
    report::View,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
};
use owners::{FailoverTime, Owners, able};
use std::collections::BTreeMap;
use totals::{ASK_EVERY, Totals};
use verdict::First;

/// With more pairs of subnets and members than this, owners are looked at only when totals are.
const MANY: usize = 20_000;

/// At the end at most this share of the pages that were written down long ago may be unrecorded: what is recorded is judged by what owners
/// say, so owners that say nothing must not pass.
const MAX_NOT_RECORDED: f64 = 0.05;

const DAY: f64 = 86_400_000.0;

/// What was seen so far.
pub(super) struct Judge {
    begin: Moment,
    owners: Owners,
    totals: Totals,
    first: First,
    /// Time lived by all members together.
    lived: Millis,
    looked: Millis,
    pauses: Pauses,
    course: Vec<Sample>,
    marks: Vec<(Millis, &'static str)>,
}

impl Judge {
    pub(super) fn new(scenario: &Scenario, world: &Played) -> Judge {
        let joined = |action: &Action| if let Action::Join { count, .. } = action { *count } else { 0 };
        let members: u32 = scenario.members + scenario.steps.iter().map(|step| joined(&step.action)).sum::<u32>();
        let fastest = scenario.steps.iter().fold(1.0_f64, |most, step| match step.action {
            Action::Clock { change: ClockChange { rate: Some(rate), clock: Clock::Boot, .. }, .. } => most.max(rate),
            _ => most,
        });
        let mut judge = Judge {
            begin: world.now(),
            owners: Owners::default(),
            totals: Totals::new(members),
            first: First::default(),
            lived: 0,
            looked: 0,
            pauses: Pauses { crawl_delay: crawl_delay(scenario) * 1_000, slack: 1.0 / fastest },
            course: Vec::new(),
            marks: Vec::new(),
        };
        judge.learn_places(world);
        judge
    }

    /// Notes where hosts are.
    pub(super) fn learn_places(&mut self, world: &Played) {
        self.owners.learn_places(world);
    }

    /// Notes at the end which subnets are known because a recorded page leads there.
    pub(super) fn learn_named(&mut self, world: &Played) {
        self.owners.learn_named(world);
    }

    /// Notes what a scenario does.
    pub(super) fn mark(&mut self, at: Millis, verb: &'static str) {
        self.marks.push((at, verb));
    }

    /// A member is about to end without having given anything back.
    pub(super) fn gone(&mut self, world: &Played, number: usize, now: Millis) {
        self.owners.gone(world, number, now);
    }

    /// A member loses its disk.
    pub(super) fn wiped(&mut self, number: usize) {
        self.owners.wiped(number);
    }

    /// A process has ended by itself, without having given anything back.
    pub(super) fn ended(&mut self, process: &AccessPoint, now: Millis) {
        self.owners.ended(process, now);
    }

    /// Asks a member that stood still for its totals, as it goes on.
    pub(super) fn ask(&mut self, world: &Played, number: usize, now: Millis) {
        for process in world.processes_of(number) {
            self.totals.ask(world, number, &process, now);
        }
    }

    /// Looks at everything, once a second.
    pub(super) fn look(&mut self, world: &Played, now: Millis) {
        let running = world.running_processes().len();
        self.lived += (now - self.looked) * running as u64;
        self.looked = now;
        let asks = now.is_multiple_of(ASK_EVERY);
        if asks || self.owners.count() * running < MANY {
            self.owners.look(world, now);
        }
        if asks {
            self.totals.judge(world, now, &mut self.first);
            self.totals.ask_all(world, now);
            let (known, owned) = self.owners.known_and_owned();
            let (able, fetches) = (able(world).len(), world.ledger.requests());
            self.course.push(Sample { at: now, running, able, known, owned, fetches });
        }
    }

    /// What is not as it should be at the end.
    pub(super) fn unsettled(&self, world: &Played) -> Option<String> {
        let running = world.running_processes();
        let views: Vec<_> = running.iter().filter_map(|(number, process)| Some((*number, world.process(process)?.view()))).collect();
        let Some((first, view)) = views.first() else { return Some("no member runs".to_owned()) };
        if let Some((other, _)) = views.iter().find(|(_, other)| other.map_digest() != view.map_digest()) {
            return Some(format!("the maps of members {first} and {other} differ"));
        }
        if let Some(what) = self.owners.unsettled(world) {
            return Some(what);
        }
        let missing = world.records.as_ref().map_or(0.0, |records| records.share_not_recorded(world.now()));
        if missing > MAX_NOT_RECORDED {
            return Some(format!("{:.0} % of the pages written down two minutes ago and before are not recorded", 100.0 * missing));
        }
        // Who is held back because another process has its key knows that it knows nothing.
        let held = Some(HeldBack::NoLease(NoLease::KeyInUse));
        let telling = views.iter().filter(|(_, view)| view.held_back() != held);
        let totals: Vec<_> = telling.map(|(number, view)| (number, view.results())).collect();
        if let Some((number, results)) = totals.iter().find(|(_, results)| !results.exact) {
            let why = results.in_transition_text.clone().unwrap_or_default();
            return Some(format!("the totals of member {number} are not exact: {why}"));
        }
        let (one, of_one) = totals.first()?;
        // As long as sites are crawled, members' sums are of different moments, none older than exact totals may be: what they know of one
        // moment must be the same.
        if of_one.summary.total.unfinished > 0 {
            return same_versions_differ(&views, &running);
        }
        let differ = totals.iter().find(|(_, results)| results.summary != of_one.summary);
        differ.map(|(other, _)| format!("the totals of members {one} and {other} differ"))
    }

    /// What is wrong with the owners at the end.
    #[cfg(test)]
    pub(super) fn unsettled_owners(&self, world: &Played) -> Option<String> {
        self.owners.unsettled(world)
    }

    /// As if no subnet had ever had an owner.
    #[cfg(test)]
    pub(super) fn forget_owners(&mut self) {
        self.owners = Owners::default();
    }

    /// Whether all is as it should be at the end.
    pub(super) fn is_settled(&self, world: &Played) -> bool {
        self.unsettled(world).is_none()
    }

    /// All figures.
    pub(super) fn verdict(mut self, world: &Played, seed: u64, now: Millis) -> Verdict {
        self.totals.judge(world, now, &mut self.first);
        self.totals.ask_all(world, now);
        self.totals.judge(world, now, &mut self.first);
        let (overlaps, pauses) = (fetches::overlaps(world, &self.pauses), fetches::broken_pauses(world, &self.pauses));
        let (lost, lost_what) = lost::lost(world);
        let (fetched_twice, repeated) = world.records.as_ref().map_or((0, None), |records| records.repeated.clone());
        let repeated = repeated.map(|repeated| (repeated.at, repeated.what));
        let unsettled = self.unsettled(world);
        for (at, what) in [overlaps.first, pauses.first, repeated].into_iter().flatten() {
            self.first.note(at.since(self.begin), || what);
        }
        for what in [lost_what, unsettled.clone()].into_iter().flatten() {
            self.first.note(now, || what);
        }
        let (bytes, longest) = world.records.as_ref().map_or((0, 0.0), |records| (records.bytes, records.longest_step.as_secs_f64()));
        // Each message leaves one member and comes to another.
        let a_day = |bytes: u64| (2.0 * bytes as f64 / (self.lived.max(1) as f64 / DAY)) as u64;
        let by_kind = world.records.iter().flat_map(|records| &records.bytes_by_kind);
        let times = self.owners.failovers(now);
        let sorted = |time: fn(&FailoverTime) -> Millis| {
            let mut times: Vec<_> = times.iter().map(time).collect();
            times.sort_unstable();
            times
        };
        let (failovers, failovers_with_quorum) = (sorted(|time| time.all), sorted(|time| time.with_quorum));
        let counts = [overlaps.count, pauses.count, fetched_twice, lost, self.totals.wrong];
        let mut verdict = Verdict {
            seed,
            digest: String::new(),
            fetches: world.ledger.requests(),
            overlaps: overlaps.count,
            overlap_ms_max: overlaps.longest,
            pauses_broken: pauses.count,
            fetched_twice,
            lost,
            exact_but_wrong: self.totals.wrong,
            ownerless_ms_max: self.owners.ownerless,
            failover_ms: Failover::of(&failovers),
            failover_with_quorum_ms: Failover::of(&failovers_with_quorum),
            failovers,
            failovers_with_quorum,
            bytes_member_day: a_day(bytes),
            bytes_by_kind: by_kind.map(|(kind, bytes)| (*kind, a_day(*bytes))).collect(),
            longest_step_ms: 0.0,
            first_violation: self.first.0,
            holds: unsettled.is_none() && counts == [0; 5],
            course: self.course,
            marks: self.marks,
        };
        verdict.digest = digest::digest(world, &verdict);
        verdict.longest_step_ms = (longest * 1e6).round() / 1e3;
        verdict
    }
}

/// Whether two members know different sums of one version of an owner's totals.
fn same_versions_differ(views: &[(usize, View<'_>)], owners: &[(usize, AccessPoint)]) -> Option<String> {
    let mut known = BTreeMap::new();
    for (number, view) in views {
        for told in owners.iter().filter_map(|(_, owner)| view.totals_of(owner)) {
            let (first, summary) = known.entry((told.owner, told.version)).or_insert((*number, &told.summary));
            if *summary != &told.summary {
                return Some(format!("members {first} and {number} know different totals of one owner's version {}", told.version));
            }
        }
    }
    None
}
