//! Simulated world: some access points on one event queue, and what must hold at every instant.

use super::{
    process::{Disk, Process, Start, Wire, Wish, Write},
    random::Random,
};
use crate::{
    membership::{LeftOut, RosterConfig},
    voting::handed_over::size_of,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    ids::{QuestionId, WriteId},
    message::{MAX_MESSAGE, Request, Response},
    replica::NamedReplica,
    subnet::Subnet,
    time::{Millis, Moment, WallTime},
    vote::{AcceptedRow, BallotAnswer, BallotRequest, VoterList},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

/// When a question that was not answered has failed.
const TIMEOUT: Millis = 8_000;

/// After which silence a member is taken for down.
const DOWN_AFTER: Millis = 7_000;

/// What happens when.
pub(super) enum Event {
    Tick,
    Deliver(usize, AccessPoint, Wire),
    Written(Write),
    Stored(WriteId),
    Failed(QuestionId, AccessPoint),
}

/// One machine: its clock, and what runs on it.
pub(super) struct Machine {
    /// The number of its key; a copy has that of its original.
    pub(super) key: u8,
    pub(super) who: AccessPoint,
    pub(super) disk: Disk,
    pub(super) process: Option<Process>,
    pub(super) life: u64,
    offset: Millis,
    /// Its clock's rate, in thousandths.
    rate: u64,
    disk_free: Millis,
    pub(super) disk_slow: bool,
    pub(super) frozen: bool,
    held_up: Vec<Event>,
    /// Whether it never comes back.
    pub(super) gone: bool,
    /// Whether it was wiped or leaves: it is not counted on any more.
    pub(super) spent: bool,
    pub(super) copy: bool,
    /// Whether it accepts whatever is proposed.
    pub(super) lies: bool,
    /// Whether it says to voters of the next list that it has everything by claims that the voters before accepted, and that the leases of
    /// all others have ended.
    pub(super) invents: bool,
    pub(super) remembered: BTreeSet<AccessPoint>,
    /// Where the others see it.
    pub(super) address: IpAddr,
}

/// What the network does to messages.
#[derive(Default)]
pub(super) struct Network {
    /// So many of a thousand are lost, are sent twice, take long.
    pub(super) lost: u64,
    pub(super) twice: u64,
    pub(super) late: u64,
    pub(super) delay: Millis,
    /// The side of a partition on which each machine is.
    pub(super) sides: BTreeMap<usize, u64>,
    /// One-way cuts.
    pub(super) cuts: BTreeSet<(usize, usize)>,
}

impl Network {
    fn is_open(&self, from: usize, to: usize) -> bool {
        let side = |machine| self.sides.get(&machine).copied().unwrap_or(0);
        side(from) == side(to) && !self.cuts.contains(&(from, to))
    }
}

/// What was seen so far, to be compared with what happens.
#[derive(Default)]
pub(super) struct Seen {
    /// Who may fetch what until when.
    fetching: BTreeMap<Subnet, BTreeMap<usize, Millis>>,
    pub(super) lists: BTreeMap<u64, VoterList>,
    accepted: BTreeMap<(Subnet, u64), AccessPoint>,
    /// Who has all that was recorded of each subnet, and who recorded it last.
    replicas: BTreeMap<Subnet, (AccessPoint, BTreeSet<NamedReplica>)>,
    pub(super) claims: u64,
    /// With liars: since when two may fetch a subnet. It may last for ten seconds, as long as both hear of each other.
    pub(super) twice: Option<BTreeMap<Subnet, Millis>>,
    pub(super) overlaps: u64,
    pub(super) wrong: Option<String>,
}

/// All of it.
pub(super) struct World {
    pub(super) chance: Random,
    pub(super) now: Millis,
    queue: BTreeMap<(Millis, u64), (usize, u64, Event)>,
    next: u64,
    pub(super) machines: Vec<Machine>,
    pub(super) network: Network,
    pub(super) config: RosterConfig,
    pub(super) subnets: Vec<Subnet>,
    pub(super) seen: Seen,
    pub(super) trace: bool,
}

impl World {
    pub(super) fn new(seed: u64, config: RosterConfig, subnets: usize) -> World {
        let subnets = (0..subnets).map(|number| format!("9.0.{number}.0/24").parse().unwrap()).collect();
        let (network, queue, machines, seen) = Default::default();
        World { chance: Random::new(seed), now: 0, queue, next: 0, machines, network, config, subnets, seen, trace: false }
    }

    pub(super) fn log(&self, what: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>9} {}", self.now, what());
        }
    }

    /// A machine with a key of its own, or with a copy of that of another, not started yet.
    pub(super) fn add(&mut self, copy_of: Option<usize>) -> usize {
        let number = self.machines.len();
        let key = copy_of.map_or(number as u8 + 1, |original| self.machines[original].key);
        let who = AccessPoint(ed25519_dalek::SigningKey::from_bytes(&[key; 32]).verifying_key().to_bytes());
        let disk = copy_of.map(|original| self.machines[original].disk.clone()).unwrap_or_default();
        let remembered = copy_of.map(|original| self.machines[original].remembered.clone()).unwrap_or_default();
        let (offset, rate) = (self.chance.below(1_000_000), self.chance.between(990, 1_010));
        self.machines.push(Machine {
            key,
            who,
            disk,
            process: None,
            life: 0,
            offset,
            rate,
            disk_free: 0,
            disk_slow: false,
            frozen: false,
            held_up: Vec::new(),
            gone: false,
            spent: false,
            lies: false,
            invents: false,
            copy: copy_of.is_some(),
            remembered,
            address: IpAddr::from([198, 18, number as u8, 1]),
        });
        number
    }

    /// The time by a machine's clock.
    fn clock(&self, number: usize) -> Moment {
        let machine = &self.machines[number];
        Moment(machine.offset + self.now * machine.rate / 1_000)
    }

    pub(super) fn start(&mut self, number: usize, founds: bool) {
        let (now, wall) = (self.clock(number), WallTime(1_700_000_000_000 + self.now));
        let mut config = self.config.clone();
        if self.machines[number].lies {
            config.without = Some(LeftOut::Honesty);
        }
        let store = self.chance.bits();
        let machine = &mut self.machines[number];
        if machine.process.is_some() || machine.gone {
            return;
        }
        if machine.disk.incarnation == 0 {
            machine.disk.store = store;
        }
        machine.disk.incarnation += 1;
        // As src/node does it: the first start with this state, or the same machine as the time before.
        let sole = machine.disk.incarnation == 1 || machine.disk.place == Some(number);
        machine.disk.place = Some(number);
        machine.life += 1;
        (machine.frozen, machine.disk_free) = (false, self.now);
        machine.held_up.clear();
        let (disk, remembered) = (&machine.disk, &machine.remembered);
        let started = Process::start(Start { number: machine.key, config: &config, disk, now, wall, sole, remembered, founds });
        machine.process = Some(started);
        let life = machine.life;
        self.log(|| format!("{number} starts, life {life}, sole {sole}"));
        self.push(0, number, Event::Tick);
        self.after(number);
    }

    /// Ends a process; what it has not stored is lost.
    pub(super) fn stop(&mut self, number: usize) {
        self.log(|| format!("{number} ends"));
        let machine = &mut self.machines[number];
        machine.process = None;
        machine.frozen = false;
        machine.life += 1;
        self.seen.fetching.values_mut().for_each(|by| {
            by.remove(&number);
        });
    }

    /// A frozen process goes on, first with what came meanwhile.
    pub(super) fn thaw(&mut self, number: usize) {
        let held_up = std::mem::take(&mut self.machines[number].held_up);
        self.machines[number].frozen = false;
        for event in held_up {
            self.push(0, number, event);
        }
        if self.machines[number].process.is_some() {
            self.push(1, number, Event::Tick);
        }
    }

    fn push(&mut self, after: Millis, to: usize, event: Event) {
        self.next += 1;
        let life = self.machines[to].life;
        self.queue.insert((self.now + after, self.next), (to, life, event));
    }

    /// Runs until then, or until something is wrong.
    pub(super) fn run(&mut self, until: Millis) {
        while self.seen.wrong.is_none() {
            let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= until) else { break };
            let ((at, _), (to, life, event)) = entry.remove_entry();
            self.now = at;
            self.happen(to, life, event);
        }
        self.now = self.now.max(until);
    }

    fn happen(&mut self, to: usize, life: u64, event: Event) {
        let clock = self.clock(to);
        let machine = &mut self.machines[to];
        if machine.life != life {
            return;
        }
        if let Event::Written(write) = event {
            // The machine goes on writing, also while a process stands still.
            return machine.disk.apply(write);
        }
        if machine.frozen {
            if !matches!(event, Event::Tick) {
                machine.held_up.push(event);
            }
            return;
        }
        let Some(process) = &mut machine.process else { return };
        process.cx.now.moment = clock;
        match event {
            Event::Tick => {
                let subnets = &self.subnets;
                process.tick(&mut self.chance, subnets);
                self.look_around(to);
                self.push(1_000, to, Event::Tick);
            }
            Event::Deliver(from, who, wire) => process.take((from, who), wire),
            Event::Stored(write) => process.stored(write),
            Event::Failed(question, who) => process.answered(question, who, None),
            Event::Written(_) => {}
        }
        self.after(to);
    }

    /// Which members it can reach: what SWIM would find out.
    fn look_around(&mut self, number: usize) {
        let own = self.machines[number].address;
        self.machines[number].process.iter_mut().for_each(|process| process.has(own));
        for other in 0..self.machines.len() {
            let there = &self.machines[other];
            let up = there.process.is_some() && !there.frozen && self.network.is_open(number, other) && self.network.is_open(other, number);
            let (who, address) = (there.who, there.address);
            if who == self.machines[number].who {
                continue;
            }
            let machine = &mut self.machines[number];
            let Some(process) = &mut machine.process else { return };
            if up {
                machine.remembered.insert(who);
                process.saw(who, address);
                process.sees(who, true);
            } else if !self.machines.iter().any(|one| one.who == who && one.process.is_some()) || self.chance.below(DOWN_AFTER / 1_000) == 0
            {
                let process = self.machines[number].process.as_mut();
                process.into_iter().for_each(|process| process.sees(who, false));
            }
        }
    }

    /// Does what a process wants, and looks whether all is as it must be.
    pub(super) fn after(&mut self, number: usize) {
        let Some(process) = &mut self.machines[number].process else { return };
        for wish in process.take_wishes() {
            self.fulfil(number, wish);
        }
        self.check(number);
    }

    /// What a voter that lies hands over.
    fn with_inventions(&self, number: usize, mut wish: Wish) -> Wish {
        let (machine, none) = (&self.machines[number], None);
        let Some(process) = machine.process.as_ref().filter(|_| machine.invents) else { return wish };
        let before = match &mut wish {
            Wish::Ask(_, _, Request::Ballot(request)) => match request.as_mut() {
                BallotRequest::Install { before, .. } => Some(before),
                _ => none,
            },
            Wish::Answer(_, _, Response::Ballot(answer)) => match answer.as_mut() {
                BallotAnswer::Accepted(_, before) | BallotAnswer::Decided(_, before) => Some(before),
                _ => none,
            },
            _ => none,
        };
        if let Some(before) = before {
            let (owner, term) = (machine.who, process.voting.term());
            let invented =
                self.subnets.iter().map(|subnet| AcceptedRow { subnet: *subnet, epoch: process.last_epoch(subnet) + 1, owner, term });
            before.rows.extend(invented);
            let terms = self.machines.iter().filter_map(|other| Some((other.who, other.process.as_ref()?.voting.term())));
            before.ended.extend(terms.filter(|(other, _)| *other != owner));
        }
        wish
    }

    fn fulfil(&mut self, number: usize, wish: Wish) {
        let wish = self.with_inventions(number, wish);
        if let (true, Wish::Answer(to, _, Response::Voted(votes))) = (self.trace, &wish) {
            self.log(|| format!("{number} answers {to}: {votes:.60?}"));
        }
        if let (true, Wish::Answer(to, _, Response::Renewed(renewed))) = (self.trace, &wish) {
            self.log(|| format!("{number} answers {to}: {renewed:.20?}"));
        }
        match wish {
            Wish::Ask(to, question, request) => {
                self.send(number, to, Wire::Asked(question, request));
                if question != QuestionId::NO_ANSWER {
                    self.push(TIMEOUT, number, Event::Failed(question, to));
                }
            }
            Wish::Answer(to, question, response) => self.send_to(number, to, Wire::Answered(question, response)),
            Wish::Send(to, wire) => self.send(number, to, wire),
            Wish::Gossip(claims) => self.tell_all(number, &Wire::Claims(claims)),
            Wish::Store(write, what) => self.write(number, write, what),
            Wish::Recorded(subnet, needed) => {
                let who = self.machines[number].who;
                self.seen.replicas.insert(subnet, (who, needed.into_iter().collect()));
            }
            Wish::Copied(subnet, members, owned) => {
                let who = self.machines[number].who;
                let recorded = self.seen.replicas.get_mut(&subnet).filter(|(by, _)| owned || *by == who);
                recorded.into_iter().for_each(|(_, replicas)| replicas.extend(members.iter().copied()));
            }
            Wish::Resumes(subnets, known) => {
                subnets.iter().for_each(|subnet| self.must_hear_of_replicas(number, subnet, &known));
            }
            Wish::Accepted(claim, told) => {
                self.must_hear_of_replicas(number, &claim.subnet, &told);
                self.seen.claims += 1;
                self.log(|| format!("{number} has {} at epoch {} accepted", claim.subnet, claim.epoch));
                let owner = *self.seen.accepted.entry((claim.subnet, claim.epoch)).or_insert(claim.owner);
                if owner != claim.owner && self.seen.twice.is_none() {
                    self.is_wrong(format!("two owners of {} were accepted at epoch {}", claim.subnet, claim.epoch));
                }
            }
            Wish::Farewell => {
                self.tell_all(number, &Wire::Farewell);
                self.stop(number);
                self.machines[number].gone = true;
            }
        }
    }

    /// Writes are done in order.
    fn write(&mut self, number: usize, write: WriteId, what: Write) {
        let takes = match self.machines[number].disk_slow {
            true => self.chance.between(100, 25_000),
            false => self.chance.between(1, 40),
        };
        let machine = &mut self.machines[number];
        machine.disk_free = machine.disk_free.max(self.now) + takes;
        let done = machine.disk_free - self.now;
        self.push(done, number, Event::Written(what));
        let told = self.chance.between(1, 3);
        self.push(done + told, number, Event::Stored(write));
    }

    fn tell_all(&mut self, from: usize, wire: &Wire) {
        for to in 0..self.machines.len() {
            if self.machines[to].who != self.machines[from].who {
                self.send_to(from, to, wire.clone());
            }
        }
    }

    /// To one of the processes with this key.
    fn send(&mut self, from: usize, to: AccessPoint, wire: Wire) {
        let processes: Vec<_> = (0..self.machines.len())
            .filter(|number| {
                let machine = &self.machines[*number];
                machine.who == to && machine.process.is_some()
            })
            .collect();
        if !processes.is_empty() {
            let to = self.chance.of(&processes);
            self.send_to(from, to, wire);
        }
    }

    fn send_to(&mut self, from: usize, to: usize, wire: Wire) {
        let too_long = match &wire {
            Wire::Asked(_, request @ Request::Ballot(_)) => size_of(request) > MAX_MESSAGE,
            Wire::Answered(_, response @ Response::Ballot(_)) => size_of(response) > MAX_MESSAGE,
            _ => false,
        };
        if too_long {
            return;
        }
        let copies = 1 + u64::from(self.chance.chance(self.network.twice));
        for _ in 0..copies {
            if !self.network.is_open(from, to) || self.chance.chance(self.network.lost) {
                continue;
            }
            let mut delay = 1 + self.chance.below(self.network.delay.max(1));
            if self.chance.chance(self.network.late) {
                delay += self.chance.below(60_000);
            }
            let who = self.machines[from].who;
            self.push(delay, to, Event::Deliver(from, who, wire.clone()));
        }
    }
}

/// What must hold.
impl World {
    pub(super) fn is_wrong(&mut self, what: String) {
        let now = self.now;
        self.seen.wrong.get_or_insert_with(|| format!("at {now} ms: {what}"));
    }

    /// Of the sets of which a successor waits for one member each, one must consist of such as have all that was recorded. An owner that
    /// lies names whom it likes.
    fn must_hear_of_replicas(&mut self, number: usize, subnet: &Subnet, told: &[Vec<NamedReplica>]) {
        let lies = self.machines.iter().any(|machine| machine.invents);
        let is_meant_to_hold = self.seen.twice.is_none() && self.config.without.is_none() && !lies;
        let Some((_, replicas)) = self.seen.replicas.get(subnet).filter(|_| is_meant_to_hold) else { return };
        let has_all = |set: &Vec<NamedReplica>| !set.is_empty() && set.iter().all(|member| replicas.contains(member));
        if !told.iter().any(has_all) {
            let short = |name: &NamedReplica| (name.member.0[0], name.store.0);
            let replicas: Vec<_> = replicas.iter().map(short).collect();
            let told: Vec<Vec<_>> = told.iter().map(|set| set.iter().map(short).collect()).collect();
            self.is_wrong(format!("{number} begins with {subnet} without one of {replicas:?}, it heard of {told:?}"));
        }
    }

    fn check(&mut self, number: usize) {
        let machine = &self.machines[number];
        let Some(process) = &machine.process else { return };
        let fetches = process.fetches();
        let list = process.voting.list().cloned();
        let until =
            fetches.as_ref().map_or(0, |(until, _)| until.0.saturating_sub(machine.offset).saturating_mul(1_000).div_ceil(machine.rate));
        let fetches = fetches.map(|(_, subnets)| subnets).unwrap_or_default();
        for subnet in &self.subnets.clone() {
            let by = self.seen.fetching.entry(*subnet).or_default();
            let before = by.remove(&number).is_some_and(|until| until > self.now);
            if !fetches.contains(subnet) {
                continue;
            }
            by.insert(number, until);
            let other = by.iter().find(|(other, until)| **other != number && **until > self.now).map(|(other, until)| (*other, *until));
            if !before {
                self.log(|| format!("{number} fetches {subnet} until {until}"));
            }
            if let (Some(_), Some(twice)) = (other, &mut self.seen.twice) {
                self.seen.overlaps += u64::from(!twice.contains_key(subnet));
                let since = *twice.entry(*subnet).or_insert(self.now);
                if self.now - since > 10_000 {
                    self.is_wrong(format!("two fetch {subnet} since {since}"));
                }
            } else if let Some((other, until)) = other {
                self.is_wrong(format!("{number} and {other} (until {until}) may both fetch {subnet}"));
            }
        }
        if let Some(list) = list {
            let known = self.seen.lists.get(&list.number);
            if known.is_none() {
                let voters: Vec<_> = list.voters.iter().map(|who| self.machines.iter().position(|machine| machine.who == *who)).collect();
                self.log(|| format!("{number} has list {} of {voters:?}", list.number));
                self.seen.lists.insert(list.number, list);
            } else if known != Some(&list) {
                self.is_wrong(format!("two lists have the number {}", list.number));
            }
        }
    }
}
