//! A scenario's course: what happens when, what ends when, and who comes back.

use super::{
    build::{self, Matrix, QUIET},
    error::ScenarioError,
    file::{Action, Clock, ClockChange, DiskFault, Lie, Rule, Scenario},
    judge::{Judge, Verdict},
    lies,
};
use crate::{rng::KeyedRng, swarm::Played};
use nearcrawl_core::event::Event;
use nearcrawl_model::{
    claim::{Claim, ClaimReason, SignedClaim},
    message::Gossip,
    subnet::Subnet,
    time::{Millis, Moment},
    url::{Host, PageUrl},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

const SECOND: Millis = 1_000;
const MINUTE: Millis = 60_000;

/// When the starting points are named.
const SEEDED: Millis = 5_000;

/// How long after the quiet time maps and totals may still become equal: a roll-up may be on its way.
const SETTLES: Millis = 60_000;

/// Claims in one gossip message.
const CLAIMS_AT_ONCE: usize = 900;

/// The purposes of random numbers.
const MOVED: u64 = 5;

/// What is to be done at some moment.
#[derive(Clone, Debug)]
enum Deed {
    Do(Action),
    Seed,
    Start(usize),
    /// A member that joined ends, and comes back with a new key.
    Retire(usize, Option<Stay>),
    Renew(usize, Stay),
    End(Ending),
}

/// How long a member stays each time, and how long it is away.
#[derive(Clone, Copy, Debug)]
struct Stay {
    lives: Millis,
    returns: Millis,
}

/// What is over.
#[derive(Clone, Debug)]
enum Ending {
    Cut(u64),
    Partition(u64),
    Loss(u64),
    Limit(u64),
    Freeze(usize),
    Clock(usize),
    Disk(usize, DiskFault),
    Lie(u64),
}

/// A scenario under way.
struct Play<'a> {
    scenario: &'a Scenario,
    seed: u64,
    world: Played,
    judge: Judge,
    begin: Moment,
    agenda: BTreeMap<(Millis, u64), Deed>,
    /// The number of the next deed, which also names what it switches on.
    next: u64,
    /// What replaced whatever there was before: ends that name another one are void.
    partition: u64,
    loss: u64,
    limit: u64,
    liars: BTreeMap<u64, (Vec<usize>, Lie)>,
    /// Members that are handing everything over before they go.
    leaving: BTreeSet<usize>,
    rounds: u64,
    moved: u64,
    fillers: u32,
}

impl Scenario {
    /// Plays it; `minute` is told after each simulated minute. A matrix is needed if it names one.
    ///
    /// # Errors
    ///
    /// It asks for what this program's protocol does not have.
    pub fn play(&self, seed: u64, matrix: Option<Matrix>, minute: &dyn Fn()) -> Result<Verdict, ScenarioError> {
        if self.rule != Rule::Default {
            let message =
                "rule: leases, councils and hellos are not built yet, so nothing can be left out of them; there is default".to_owned();
            return Err(ScenarioError { line: 1, message });
        }
        let world = build::world(self, seed, matrix);
        let begin = world.now();
        let judge = Judge::new(self, &world);
        let mut play = Play {
            scenario: self,
            seed,
            world,
            judge,
            begin,
            agenda: BTreeMap::new(),
            next: 0,
            partition: 0,
            loss: 0,
            limit: 0,
            liars: BTreeMap::new(),
            leaving: BTreeSet::new(),
            rounds: 0,
            moved: 0,
            fillers: 0,
        };
        for number in 0..self.members as usize {
            play.later(number as Millis * 100, Deed::Start(number));
        }
        play.later(SEEDED.max(u64::from(self.members) * 100), Deed::Seed);
        for step in &self.steps {
            play.later(step.at, Deed::Do(step.action.clone()));
        }
        let end = Millis::from(self.minutes) * MINUTE;
        play.run(end, minute);
        play.quieten();
        play.run(end + QUIET * MINUTE, minute);
        let limit = end + QUIET * MINUTE + SETTLES;
        while !play.judge.is_settled(&play.world) && play.now() < limit {
            let until = play.now() + SECOND;
            play.run(until, &|| ());
        }
        let now = play.now();
        Ok(play.judge.verdict(&play.world, seed, now))
    }
}

impl Play<'_> {
    fn now(&self) -> Millis {
        self.world.now().since(self.begin)
    }

    fn later(&mut self, at: Millis, deed: Deed) -> u64 {
        self.next += 1;
        self.agenda.insert((at, self.next), deed);
        self.next
    }

    fn ends(&mut self, lasts: Option<Millis>, ending: Ending) {
        if let Some(lasts) = lasts {
            self.later(self.now() + lasts, Deed::End(ending));
        }
    }

    /// Lets time pass until then, and has happen what is due.
    fn run(&mut self, until: Millis, minute: &dyn Fn()) {
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
        self.judge.look(&self.world, now);
        if now.is_multiple_of(MINUTE) {
            minute();
        }
    }

    fn carry_out(&mut self, id: u64, deed: Deed) {
        match deed {
            Deed::Do(action) => self.act(id, action),
            Deed::Seed => {
                let urls = build::seeds(self.scenario);
                self.world.seed_all(0, &urls);
            }
            // It is started again when it has ended.
            Deed::Start(number) if self.leaving.contains(&number) && !self.world.processes_of(number).is_empty() => {
                self.later(self.now() + SECOND, Deed::Start(number));
            }
            Deed::Start(number) => {
                self.leaving.remove(&number);
                self.world.start_member(number);
            }
            Deed::Retire(number, stay) => {
                self.judge.gone(&self.world, number, self.world.now().since(self.begin));
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
            Deed::End(ending) => self.end(&ending),
        }
    }

    fn act(&mut self, id: u64, action: Action) {
        self.judge.mark(self.now(), action.verb());
        match action {
            Action::Join { count, lives, returns } => {
                for _ in 0..count {
                    let place = build::place_of(self.seed, self.world.numbers() as u32);
                    let number = self.world.add_member(place);
                    self.world.start_member(number);
                    if let Some(lives) = lives {
                        let stay = returns.map(|returns| Stay { lives, returns });
                        self.later(self.now() + lives, Deed::Retire(number, stay));
                    }
                }
            }
            Action::Ghost { count, from } => lies::ghosts(&mut self.world, from as usize, count),
            // An operator's word changes nothing while nobody votes.
            Action::DeclareLost(_) => {}
            Action::Cut { pairs, oneway, lasts } => {
                let both = pairs.iter().flat_map(|(one, other)| [Some((*one, *other)), (!oneway).then_some((*other, *one))]);
                self.world.cut(id, both.flatten().collect());
                self.ends(lasts, Ending::Cut(id));
            }
            Action::Partition(groups, lasts) => {
                self.partition = id;
                self.world.part(&groups);
                self.ends(lasts, Ending::Partition(id));
            }
            Action::Heal => self.world.heal_all(),
            Action::Loss(share, lasts) => {
                self.loss = id;
                self.world.lose(share);
                self.ends(lasts, Ending::Loss(id));
            }
            Action::Limit(connections, lasts) => {
                self.limit = id;
                self.world.limit_links(Some(connections as usize));
                self.ends(lasts, Ending::Limit(id));
            }
            Action::MoveHost(count) => self.move_hosts(count),
            Action::Claims(count) => self.fill_map(count),
            of_members => self.act_on_members(id, of_members),
        }
    }

    /// What happens to members, one by one.
    fn act_on_members(&mut self, id: u64, action: Action) {
        match action {
            Action::Kill(who, lasts) => self.each(&who, |play, number| {
                play.judge.gone(&play.world, number, play.now());
                play.world.kill_all(number);
                play.back(lasts, number);
            }),
            Action::Leave(who, lasts) => self.each(&who, |play, number| {
                play.judge.gone(&play.world, number, play.now());
                play.world.leave(number);
                play.leaving.insert(number);
                play.back(lasts, number);
            }),
            Action::Wipe(who, lasts) => self.each(&who, |play, number| {
                play.judge.gone(&play.world, number, play.now());
                play.world.wipe(number);
                play.back(Some(lasts.unwrap_or(0)), number);
            }),
            Action::Freeze(who, lasts) => self.each(&who, |play, number| {
                play.world.freeze(number);
                play.ends(lasts, Ending::Freeze(number));
            }),
            Action::Clone(who) => self.each(&who, |play, number| play.world.clone_member(number)),
            Action::Clock { who, change } => self.each(&who, |play, number| match change {
                ClockChange::Jump(by) => play.world.jump_clock(number, by),
                ClockChange::Rate(rate, clock) => play.world.rate_clock(number, rate, clock == Clock::Boot),
                ClockChange::Still(lasts) => {
                    play.world.rate_clock(number, 0.0, true);
                    play.ends(lasts, Ending::Clock(number));
                }
            }),
            Action::Disk { who, fault, lasts } => self.each(&who, |play, number| {
                match fault {
                    DiskFault::Slow => play.world.slow_disk(number, true),
                    DiskFault::Full => play.world.fill_disk(number, true),
                    DiskFault::Damaged => play.world.damage_disk(number),
                }
                play.ends(lasts, Ending::Disk(number, fault));
            }),
            Action::Seed(who) => {
                let urls: Vec<PageUrl> = build::seeds(self.scenario);
                self.each(&who, |play, number| play.world.seed_all(number, &urls));
            }
            Action::Lie { who, lie, lasts } => {
                let numbers: Vec<_> = who.iter().map(|number| *number as usize).collect();
                self.judge.lies(&numbers, self.world.now());
                self.liars.insert(id, (numbers, lie));
                self.ends(lasts, Ending::Lie(id));
            }
            // The others are about the network, or about the swarm as a whole.
            _ => {}
        }
    }

    fn each(&mut self, who: &[u32], mut deed: impl FnMut(&mut Self, usize)) {
        for number in who {
            deed(self, *number as usize);
        }
    }

    fn back(&mut self, lasts: Option<Millis>, number: usize) {
        if let Some(lasts) = lasts {
            self.later(self.now() + lasts, Deed::Start(number));
        }
    }

    fn end(&mut self, ending: &Ending) {
        match ending {
            Ending::Cut(id) => self.world.end_cut(*id),
            Ending::Partition(id) if *id == self.partition => self.world.part(&[]),
            Ending::Loss(id) if *id == self.loss => self.world.lose(0.0),
            Ending::Limit(id) if *id == self.limit => self.world.limit_links(None),
            Ending::Partition(_) | Ending::Loss(_) | Ending::Limit(_) => {}
            Ending::Freeze(number) => self.world.thaw(*number),
            Ending::Clock(number) => self.world.rate_clock(*number, 1.0, true),
            Ending::Disk(number, DiskFault::Slow) => self.world.slow_disk(*number, false),
            Ending::Disk(number, DiskFault::Full) => self.world.fill_disk(*number, false),
            // What was changed stays so.
            Ending::Disk(_, DiskFault::Damaged) => {}
            Ending::Lie(id) => drop(self.liars.remove(id)),
        }
    }

    /// The end: whatever is wrong ends, and who is due back is back. Whoever comes and goes comes no more.
    fn quieten(&mut self) {
        self.judge.mark(self.now(), "quiet");
        for deed in std::mem::take(&mut self.agenda).into_values() {
            match deed {
                Deed::Start(number) => drop(self.later(self.now(), Deed::Start(number))),
                Deed::Retire(number, _) => drop(self.later(self.now(), Deed::Retire(number, None))),
                Deed::Do(_) | Deed::Seed | Deed::Renew(..) | Deed::End(_) => {}
            }
        }
        self.liars.clear();
        self.world.heal_all();
        self.world.limit_links(None);
        for number in 0..self.world.numbers() {
            self.world.thaw(number);
            self.world.rate_clock(number, 1.0, true);
            self.world.rate_clock(number, 1.0, false);
            self.world.slow_disk(number, false);
            self.world.fill_disk(number, false);
        }
    }

    /// The names of hosts lead to other subnets.
    fn move_hosts(&mut self, count: u32) {
        let draw = KeyedRng::new(self.seed).of(MOVED);
        let subnets = u64::from(self.scenario.subnets);
        let mut ranked: Vec<u32> = (0..self.scenario.hosts).collect();
        ranked.sort_by_key(|host| draw.of(self.moved).of((*host).into()).bits());
        for host in ranked.into_iter().take(count as usize) {
            self.moved += 1;
            let old = u64::from(host) % subnets;
            // Another one; where there is only one, the one behind it.
            let new = if subnets == 1 { 1 } else { (old + 1 + draw.of(host.into()).below(subnets - 1)) % subnets };
            let address = build::address_in(new as u32, 200 + (self.moved % 50) as u32);
            if let Ok(name) = format!("s{host}.test").parse::<Host>() {
                self.world.move_host(&name, address);
            }
        }
        self.judge.learn_places(&self.world);
    }

    /// Subnets in which nobody named a server were claimed by those who are there, in turn.
    fn fill_map(&mut self, count: u32) {
        let owners: Vec<_> = (0..self.world.numbers()).filter_map(|number| self.world.signer(number)).collect();
        if owners.is_empty() {
            return;
        }
        let mut proofs = Vec::new();
        for (owner, key, _) in (0..count as usize).map(|place| &owners[place % owners.len()]) {
            let first = Ipv4Addr::from(build::FILLERS + (self.fillers << 8));
            self.fillers += 1;
            let claim = Claim {
                subnet: Subnet::around(first.into(), 24),
                epoch: 1,
                owner: *owner,
                rtt_us: Some(20_000),
                runner_up: None,
                probes: 1,
                reason: ClaimReason::Awarded,
                released: false,
                answers: Vec::new(),
            };
            proofs.push(SignedClaim::sign(&claim, key));
        }
        let processes: BTreeSet<_> = self.world.running_processes().into_iter().map(|(_, process)| process).collect();
        for proofs in proofs.chunks(CLAIMS_AT_ONCE) {
            for process in &processes {
                self.world.tell_process(*process, Event::Gossiped(Gossip::Claims(proofs.to_vec())));
            }
        }
    }
}
