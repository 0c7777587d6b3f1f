//! A scenario's course: what happens when, what ends when, and who comes back.

use super::{
    agenda::{Deed, Ending, Matter},
    build::{self, QUIET},
    error::ScenarioError,
    file::{Clock, DiskFault, Lie, Scenario, Step},
    judge::{Judge, Verdict},
    latency::Matrix,
    lies,
};
use crate::swarm::Played;
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
};
use std::collections::{BTreeMap, BTreeSet};

const SECOND: Millis = 1_000;
const MINUTE: Millis = 60_000;

/// When the starting points are named.
const SEEDED: Millis = 5_000;

/// How long after each other members start at the beginning, and within which time all of them.
const APART: Millis = 100;
const ALL_THERE: Millis = 4_000;

/// How long after the quiet time maps and totals may still become equal: a roll-up may be on its way.
const SETTLES: Millis = 60_000;

/// How long after the end of a process with a damaged disk its operator moves the state away and starts it again with the old key.
const MOVED_ASIDE: Millis = 60_000;

/// A scenario under way.
pub(super) struct Play<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) seed: u64,
    pub(super) world: Played,
    pub(super) judge: Judge,
    begin: Moment,
    pub(super) agenda: BTreeMap<(Millis, u64), Deed>,
    /// The number of the next deed, which also names what it switches on.
    next: u64,
    /// The newest order in each matter.
    pub(super) newest: BTreeMap<Matter, u64>,
    pub(super) liars: BTreeMap<u64, (Vec<usize>, Lie)>,
    /// Members that are handing everything over before they go.
    pub(super) leaving: BTreeSet<usize>,
    rounds: u64,
    pub(super) moved: u64,
    pub(super) fillers: u32,
}

impl Scenario {
    /// Plays it; `minute` is told after each simulated minute. A matrix is needed if it names one.
    ///
    /// # Errors
    ///
    /// It cannot be played. A file that can be read can, so far.
    pub fn play(&self, seed: u64, matrix: Option<Matrix>, minute: &dyn Fn()) -> Result<Verdict, ScenarioError> {
        let mut play = Play::begin(self, seed, matrix)?;
        let end = Millis::from(self.minutes) * MINUTE;
        play.run(end, minute);
        play.quieten();
        play.run(end + QUIET * MINUTE, minute);
        play.judge.learn_named(&play.world);
        play.settles(SETTLES);
        let now = play.now();
        Ok(play.judge.verdict(&play.world, seed, now))
    }
}

impl<'a> Play<'a> {
    /// All that will happen is on the agenda.
    ///
    /// # Errors
    ///
    /// It cannot be played.
    pub(super) fn begin(scenario: &'a Scenario, seed: u64, matrix: Option<Matrix>) -> Result<Play<'a>, ScenarioError> {
        let world = build::world(scenario, seed, matrix);
        let begin = world.now();
        let judge = Judge::new(scenario, &world);
        let mut play = Play {
            scenario,
            seed,
            world,
            judge,
            begin,
            agenda: BTreeMap::new(),
            next: 0,
            newest: BTreeMap::new(),
            liars: BTreeMap::new(),
            leaving: BTreeSet::new(),
            rounds: 0,
            moved: 0,
            fillers: 0,
        };
        // A network that is cut from the beginning is so before anybody starts; what happens to members happens when all are there.
        let apart = APART.min(ALL_THERE / Millis::from(scenario.members));
        let there = apart * Millis::from(scenario.members);
        let is_first = |step: &&Step| step.at < there && step.action.is_about_the_network();
        let (first, others): (Vec<_>, Vec<_>) = scenario.steps.iter().partition(is_first);
        first.iter().for_each(|step| play.later(step.at, Deed::Do(step.action.clone())));
        for number in 0..scenario.members as usize {
            play.later(number as Millis * apart, Deed::Start(number, 0));
        }
        play.later(SEEDED, Deed::Seed);
        others.iter().for_each(|step| play.later(step.at.max(there), Deed::Do(step.action.clone())));
        Ok(play)
    }

    pub(super) fn now(&self) -> Millis {
        self.world.now().since(self.begin)
    }

    pub(super) fn later(&mut self, at: Millis, deed: Deed) {
        self.next += 1;
        self.agenda.insert((at, self.next), deed);
    }

    pub(super) fn ends(&mut self, lasts: Option<Millis>, ending: Ending) {
        if let Some(lasts) = lasts {
            self.later(self.now() + lasts, Deed::End(ending));
        }
    }

    /// Lets time pass until all is as it should be at the end; false if it is not within this time.
    pub(super) fn settles(&mut self, limit: Millis) -> bool {
        let limit = self.now() + limit;
        loop {
            if self.judge.is_settled(&self.world) {
                return true;
            }
            if self.now() >= limit {
                return false;
            }
            self.run(self.now() + SECOND, &|| ());
        }
    }

    /// Lets time pass until then, and has happen what is due.
    pub(super) fn run(&mut self, until: Millis, minute: &dyn Fn()) {
        loop {
            let now = self.now();
            while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= now) {
                let ((_, id), deed) = entry.remove_entry();
                self.carry_out(id, deed);
            }
            if now >= until {
                return;
            }
            let due = self.agenda.first_key_value().map_or(until, |((at, _), _)| *at);
            // Everything is looked at once a second.
            let second = (now / SECOND + 1) * SECOND;
            self.world.run(due.min(until).min(second) - now);
            if self.now() == second {
                self.each_second(second, minute);
            }
        }
    }

    fn each_second(&mut self, now: Millis, minute: &dyn Fn()) {
        self.rounds += 1;
        for (numbers, lie) in self.liars.values().cloned().collect::<Vec<_>>() {
            for number in numbers {
                lies::tell(&mut self.world, number, lie, self.rounds);
            }
        }
        for process in self.world.ended_damaged() {
            self.ended_damaged(process, now);
        }
        self.judge.look(&self.world, now);
        if now.is_multiple_of(MINUTE) {
            minute();
        }
    }

    fn carry_out(&mut self, id: u64, deed: Deed) {
        match deed {
            Deed::Do(action) => self.act(id, action),
            Deed::Seed if self.world.processes_of(0).is_empty() => self.later(self.now() + SECOND, Deed::Seed),
            Deed::Seed => self.seed(0),
            Deed::Start(number, since) if !self.is_newest(Matter::Absence(number), since) => {}
            // It is started again when it has ended.
            Deed::Start(number, since) if self.leaving.contains(&number) && !self.world.processes_of(number).is_empty() => {
                self.later(self.now() + SECOND, Deed::Start(number, since));
            }
            Deed::Start(number, _) => {
                self.leaving.remove(&number);
                self.world.start_member(number);
            }
            Deed::Retire(number, stay) => {
                self.judge.gone(&self.world, number, self.now());
                self.world.kill_all(number);
                if let Some(stay) = stay {
                    self.later(self.now() + stay.returns, Deed::Renew(number, stay));
                }
            }
            Deed::Renew(number, stay) => {
                self.world.renew_member(number);
                self.world.start_member(number);
                self.later(self.now() + stay.lives, Deed::Retire(number, Some(stay)));
            }
            // It has another disk by now.
            Deed::MoveAside(number, _) if !self.world.is_damaged(number) => {}
            Deed::MoveAside(number, since) => {
                self.judge.wiped(number);
                self.world.wipe(number);
                if self.is_newest(Matter::Absence(number), since) {
                    self.world.start_member(number);
                }
            }
            Deed::End(ending) => self.end(&ending),
        }
    }

    /// A process has ended because its disk is damaged. A copy with a copied key is not started again.
    fn ended_damaged(&mut self, process: AccessPoint, now: Millis) {
        self.judge.ended(&process, now);
        if let Some(number) = (0..self.world.numbers()).find(|number| self.world.member(*number) == process) {
            let since = self.newest.get(&Matter::Absence(number)).copied().unwrap_or(0);
            self.later(now + MOVED_ASIDE, Deed::MoveAside(number, since));
        }
    }

    fn is_newest(&self, matter: Matter, id: u64) -> bool {
        self.newest.get(&matter).copied().unwrap_or(0) == id
    }

    fn end(&mut self, ending: &Ending) {
        match ending {
            Ending::Cut(id) => self.world.end_cut(*id),
            Ending::Partition(id) if self.is_newest(Matter::Partition, *id) => self.world.part(&[]),
            Ending::Loss(id) if self.is_newest(Matter::Loss, *id) => self.world.lose(0.0),
            Ending::Limit(id) if self.is_newest(Matter::Limit, *id) => self.world.limit_links(None),
            Ending::Freeze(number, id) if self.is_newest(Matter::Freeze(*number), *id) => self.thaw(*number),
            Ending::Jump(number, by) => self.world.jump_clock(*number, -by),
            Ending::Rate(number, clock, id) if self.is_newest(Matter::of_clock(*number, *clock), *id) => {
                self.world.rate_clock(*number, 1.0, *clock == Clock::Boot);
            }
            Ending::Disk(number, fault, id) if self.is_newest(Matter::of_disk(*number, *fault), *id) => match fault {
                DiskFault::Slow => self.world.slow_disk(*number, false),
                DiskFault::Full => self.world.fill_disk(*number, false),
                DiskFault::Damaged => self.world.read_whole_disk(*number),
            },
            Ending::Lie(id) => {
                self.liars.remove(id);
                self.choose_liars();
            }
            // Another order came since.
            _ => {}
        }
    }

    /// A process goes on. Who asked it for totals meanwhile is answered before it has taken in what came meanwhile.
    fn thaw(&mut self, number: usize) {
        if self.world.processes_of(number).iter().any(|process| self.world.is_frozen(process)) {
            self.world.wake(number);
            self.judge.ask(&self.world, number, self.now());
            self.world.thaw(number);
        }
    }

    /// The end: whatever is wrong ends, and who is due back is back. Whoever comes and goes comes no more; whose time is over within the
    /// quiet time goes at its beginning.
    pub(super) fn quieten(&mut self) {
        self.judge.mark(self.now(), "quiet");
        let (now, end) = (self.now(), self.now() + QUIET * MINUTE + SETTLES);
        for ((at, id), deed) in std::mem::take(&mut self.agenda) {
            match deed {
                Deed::Start(..) | Deed::MoveAside(..) => drop(self.agenda.insert((now, id), deed)),
                Deed::Retire(number, _) if at <= end => drop(self.agenda.insert((now, id), Deed::Retire(number, None))),
                Deed::End(Ending::Jump(..)) => drop(self.agenda.insert((now, id), deed)),
                Deed::Do(_) | Deed::Seed | Deed::Retire(..) | Deed::Renew(..) | Deed::End(_) => {}
            }
        }
        self.liars.clear();
        self.choose_liars();
        self.world.heal_all();
        self.world.limit_links(None);
        for number in 0..self.world.numbers() {
            self.thaw(number);
            self.world.rate_clock(number, 1.0, true);
            self.world.rate_clock(number, 1.0, false);
            self.world.slow_disk(number, false);
            self.world.fill_disk(number, false);
            self.world.read_whole_disk(number);
        }
    }
}
