//! The world of a scenario: what a scenario orders is done to network, processes, clocks and disks here.

use super::{
    clocks::{ClockLine, Clocks, wall_time},
    disk::Disk,
    faults::Liars,
    sim_event::SimEventKind,
    world::{Node, World, key_of},
};
use crate::{rng::KeyedRng, web::Answer};
use ed25519_dalek::SigningKey;
use nearcrawl_core::{
    crawler::Crawler,
    event::{DiskRoom, Event},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    ids::QuestionId,
    message::{Gossip, Request},
    url::{Host, PageUrl},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    ops::{Deref, DerefMut},
};

/// The share of stored values that a damaged disk changes.
const DAMAGED: f64 = 0.02;

/// The world of a scenario: it can be read like any, and takes orders.
pub(crate) struct Played(World);

impl Deref for Played {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}

impl DerefMut for Played {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.0
    }
}

/// What a scenario orders.
impl Played {
    /// From now on this world is a scenario's: machines have clocks of their own.
    pub(crate) fn new(world: World) -> Played {
        let mut played = Played(world);
        played.0.faults.delays_by_distance = true;
        for number in 0..played.0.members.len() as u32 {
            played.set_clocks(number);
        }
        played
    }

    /// A machine's boot clock counts since it was started, some time ago.
    fn set_clocks(&mut self, number: u32) {
        let up = KeyedRng::new(self.0.config.seed).of(0x0063_6c6b).of(number.into()).below(30 * 86_400_000);
        let line = |value| ClockLine { since: self.0.now, value, rate: 1.0 };
        let wall = wall_time(self.0.now);
        self.0.faults.clocks.insert(number, Clocks { boot: line(1_000_000 + up), wall: line(wall) });
    }

    /// A new member with a key and a disk of its own, not started yet; its number.
    pub(crate) fn add_member(&mut self, place: u8) -> usize {
        let number = self.0.members.len() as u32;
        let node = Node::new(number, place, key_of(number), self.0.config.hierarchy.clone());
        self.0.members.push(node.identity);
        self.0.nodes.insert(node.identity, node);
        self.set_clocks(number);
        number as usize
    }

    /// Whoever runs under this number from now on has a new key and an empty disk.
    pub(crate) fn renew_member(&mut self, number: usize) {
        self.kill_all(number);
        let generation = self.0.faults.generations.entry(number as u32).or_default();
        *generation += 1;
        let draw = KeyedRng::new(self.0.config.seed).of(0x006b_6579).of(number as u64).of(*generation);
        let mut bytes = [0; 32];
        for (part, chunk) in (0..).zip(bytes.chunks_exact_mut(8)) {
            chunk.copy_from_slice(&draw.of(part).bits().to_be_bytes());
        }
        let Some(old) = self.0.nodes.remove(&self.0.members[number]) else { return };
        let node = Node::new(old.number, old.place, SigningKey::from_bytes(&bytes), self.0.config.hierarchy.clone());
        self.0.members[number] = node.identity;
        self.0.nodes.insert(node.identity, node);
    }

    /// Starts a member, for the first time or again; it joins the first of the others that runs and that it reaches.
    pub(crate) fn start_member(&mut self, number: usize) {
        let me = self.0.members[number];
        if self.0.runs(me) {
            return;
        }
        let others = || self.0.members.iter().copied().filter(|other| *other != me && self.0.runs(*other) && !self.is_frozen(other));
        let reached = others().find(|other| self.0.together(me, *other) && self.0.together(*other, me));
        // If nobody runs it dials a member again and again until one does; only the first of all begins a swarm.
        let absent =
            || self.0.members.iter().copied().find(|other| *other != me).filter(|_| self.0.nodes.values().any(|node| node.life > 0));
        let first = reached.or_else(|| others().next()).or_else(absent).unwrap_or(me);
        self.0.start_process(me, first);
    }

    /// Ends all processes of a member.
    pub(crate) fn kill_all(&mut self, number: usize) {
        for process in self.processes_of(number) {
            self.0.stop(process);
        }
    }

    /// The processes of a member that run.
    pub(crate) fn processes_of(&self, number: usize) -> Vec<AccessPoint> {
        self.0.processes().into_iter().filter(|process| self.0.number_of(*process) == Some(number) && self.0.runs(*process)).collect()
    }

    /// Ends a member and empties its disk; only the key is left.
    pub(crate) fn wipe(&mut self, number: usize) {
        self.kill_all(number);
        let who = self.0.members[number];
        if let Some(node) = self.0.nodes.get_mut(&who) {
            node.disk = Disk::default();
            node.forgotten = node.life;
        }
        if let Some(records) = &mut self.0.records {
            records.forget_copies(who);
        }
    }

    /// Starts a second process with a copy of a member's key and disk.
    pub(crate) fn clone_member(&mut self, number: usize) {
        let original = self.0.members[number];
        let Some(node) = self.0.nodes.get(&original) else { return };
        let mut copy = Node::new(node.number, node.place, node.key.clone(), node.hierarchy.clone());
        (copy.disk, copy.life, copy.forgotten) = (node.disk.clone(), node.life, node.forgotten);
        let mut process = original;
        process.0[0] ^= 0xa5;
        process.0[1] ^= self.0.faults.clones.len() as u8;
        self.0.faults.clones.push((number as u32, process));
        self.0.nodes.insert(process, copy);
        let first = self.0.members.iter().copied().find(|member| *member != original && self.0.runs(*member));
        self.0.start_process(process, first.unwrap_or(process));
    }

    /// A member's processes stand still.
    pub(crate) fn freeze(&mut self, number: usize) {
        for process in self.processes_of(number) {
            self.0.faults.frozen.entry(process).or_default();
        }
    }

    /// Its processes go on, and notice how late it is.
    pub(crate) fn wake(&mut self, number: usize) {
        for process in self.processes_of(number) {
            if let Some(node) = self.0.nodes.get_mut(&process) {
                node.wake = None;
            }
            self.0.tell(process, Event::Tick);
        }
    }

    /// They take in what came meanwhile.
    pub(crate) fn thaw(&mut self, number: usize) {
        for process in self.processes_of(number) {
            for event in self.0.faults.frozen.remove(&process).unwrap_or_default() {
                self.0.take(event);
            }
        }
    }

    /// Whether a process stands still.
    pub(crate) fn is_frozen(&self, process: &AccessPoint) -> bool {
        self.0.faults.frozen.contains_key(process)
    }

    /// No messages from the first to the second of these pairs; `id` names this cut.
    pub(crate) fn cut(&mut self, id: u64, pairs: Vec<(u32, u32)>) {
        self.0.faults.cuts.insert(id, pairs);
        self.0.faults.gather_cuts();
        self.drop_links();
    }

    /// A cut ends.
    pub(crate) fn end_cut(&mut self, id: u64) {
        self.0.faults.cuts.remove(&id);
        self.0.faults.gather_cuts();
    }

    /// The network falls into parts; without any it is whole.
    pub(crate) fn part(&mut self, groups: &[Vec<u32>]) {
        self.0.faults.parts.clear();
        for (part, group) in (1..).zip(groups) {
            self.0.faults.parts.extend(group.iter().map(|number| (*number, part)));
        }
        self.drop_links();
    }

    /// Cuts, partitions and losses end.
    pub(crate) fn heal_all(&mut self) {
        self.0.faults.cuts.clear();
        self.0.faults.gather_cuts();
        self.part(&[]);
        self.lose(0.0);
    }

    /// This share of messages is lost; as many come twice, as many late.
    pub(crate) fn lose(&mut self, share: f64) {
        (self.0.loss, self.0.gossip_loss, self.0.faults.disorder) = (share, share, share);
    }

    /// These members lie by what they do with questions.
    pub(crate) fn have_lie(&mut self, liars: Liars) {
        self.0.faults.liars = liars;
    }

    /// As a voter, a process accepts second claims at an epoch, or does so no more.
    pub(crate) fn accept_twice(&mut self, process: AccessPoint, twice: bool) {
        if let Some(crawler) = self.0.nodes.get_mut(&process).and_then(|node| node.crawler.as_mut()) {
            crawler.accept_twice(twice);
        }
    }

    /// Nobody keeps more connections.
    pub(crate) fn limit_links(&mut self, limit: Option<usize>) {
        self.0.faults.limit = limit;
        self.drop_links();
    }

    /// Drops connections that may not be any more.
    fn drop_links(&mut self) {
        let all = self.0.processes();
        let mut pairs = BTreeSet::new();
        for one in &all {
            let linked = self.0.nodes.get(one).map(|node| node.linked.clone()).unwrap_or_default();
            pairs.extend(linked.into_iter().filter(|other| one < other).map(|other| (*one, other)));
        }
        let draw = KeyedRng::new(self.0.config.seed).of(0x006c_696e);
        let mut ranked: Vec<_> = pairs.into_iter().collect();
        ranked.sort_by_key(|(one, other)| {
            let (one, other) = (self.0.number(*one), self.0.number(*other));
            draw.of(one.min(other).into()).of(one.max(other).into()).bits()
        });
        let mut kept: BTreeMap<AccessPoint, usize> = BTreeMap::new();
        for (one, other) in ranked {
            let count = |who: &AccessPoint| kept.get(who).copied().unwrap_or(0);
            let room = self.0.faults.limit.is_none_or(|limit| count(&one) < limit && count(&other) < limit);
            if room && self.0.together(one, other) && self.0.together(other, one) {
                *kept.entry(one).or_default() += 1;
                *kept.entry(other).or_default() += 1;
                continue;
            }
            for (me, you) in [(one, other), (other, one)] {
                if let Some(node) = self.0.nodes.get_mut(&me) {
                    node.linked.remove(&you);
                }
            }
        }
    }

    /// Changes the clocks of a machine.
    fn change_clocks(&mut self, number: usize, change: impl Fn(&mut ClockLine, &mut ClockLine)) {
        let now = self.0.now;
        let Some(clocks) = self.0.faults.clocks.get_mut(&(number as u32)) else { return };
        for line in [&mut clocks.boot, &mut clocks.wall] {
            (line.value, line.since) = (line.at(now), now);
        }
        change(&mut clocks.boot, &mut clocks.wall);
        // What it waits for is due at another time now.
        for process in self.processes_of(number) {
            if let Some(node) = self.0.nodes.get_mut(&process) {
                node.wake = None;
            }
            if !self.is_frozen(&process) {
                self.0.tell(process, Event::Tick);
            }
        }
    }

    /// A wall clock jumps.
    pub(crate) fn jump_clock(&mut self, number: usize, by: i64) {
        self.change_clocks(number, |_, wall| wall.value = wall.value.saturating_add_signed(by));
    }

    /// A clock goes at this rate; at 0 it stands still.
    pub(crate) fn rate_clock(&mut self, number: usize, rate: f64, is_boot: bool) {
        self.change_clocks(number, |boot, wall| if is_boot { boot.rate = rate } else { wall.rate = rate });
    }

    /// A member's disk becomes slow, or quick again.
    pub(crate) fn slow_disk(&mut self, number: usize, slow: bool) {
        if slow {
            self.0.faults.slow.insert(number as u32);
        } else {
            self.0.faults.slow.remove(&(number as u32));
        }
    }

    /// A member's disk is full, or has room again: then what waits is written.
    pub(crate) fn fill_disk(&mut self, number: usize, full: bool) {
        if full {
            self.0.faults.full.entry(number as u32).or_default();
        }
        let waiting = if full { Vec::new() } else { self.0.faults.full.remove(&(number as u32)).unwrap_or_default() };
        for (place, (process, life, command)) in (0..).zip(waiting) {
            self.0.schedule_in_place(process, life, 0, Some(place), SimEventKind::Stored(command));
        }
        self.order(number, || Event::Room(if full { DiskRoom::LittleFree } else { DiskRoom::Enough }));
    }

    /// Some of the values on a member's disk are changed. The store notices by their checksums when it reads them or is opened.
    pub(crate) fn damage_disk(&mut self, number: usize) {
        let draw = KeyedRng::new(self.0.config.seed).of(0x0064_616d).of(number as u64).of(self.0.now.0);
        let who = self.0.members[number];
        let Some(node) = self.0.nodes.get_mut(&who) else { return };
        let mut count = 0;
        node.disk.spoil(|| {
            count += 1;
            draw.of(count).chance(DAMAGED)
        });
    }

    /// Whether a member's disk is damaged.
    pub(crate) fn is_damaged(&self, number: usize) -> bool {
        self.0.nodes.get(&self.0.members[number]).is_some_and(|node| node.disk.is_damaged())
    }

    /// The store of a member reads everything, as it does when it merges its files: a damaged one ends the process.
    pub(crate) fn read_whole_disk(&mut self, number: usize) {
        let who = self.0.members[number];
        if self.0.runs(who) && self.is_damaged(number) {
            self.0.ends_damaged(who);
        }
    }

    /// The processes that ended, or did not start, since the last time because their disks are damaged.
    pub(crate) fn ended_damaged(&mut self) -> Vec<AccessPoint> {
        std::mem::take(&mut self.0.faults.ended_damaged)
    }

    /// A host's name leads to another address from now on.
    pub(crate) fn move_host(&mut self, host: &Host, address: IpAddr) {
        self.0.web.addresses.insert(host.clone(), address);
    }

    /// Where the links of a page lead.
    pub(crate) fn links_of(&self, url: &PageUrl) -> Vec<PageUrl> {
        if let Answer::Page(links) = self.0.web.answer(url) { links } else { Vec::new() }
    }

    /// Where hosts are.
    pub(crate) fn hosts(&self) -> &BTreeMap<Host, IpAddr> {
        &self.0.web.addresses
    }

    /// An operator's order for all processes of a member; one that stands still takes it in when it goes on.
    pub(crate) fn order(&mut self, number: usize, event: impl Fn() -> Event) {
        for process in self.processes_of(number) {
            self.0.schedule(process, 0, SimEventKind::Event(Box::new(event())));
        }
    }

    /// Whether copies of rows are acknowledged without being kept: what the swarm is without replicas.
    pub(crate) fn keep_no_copies(&mut self, none: bool) {
        self.0.faults.no_copies = none;
    }

    /// A member's process and its key, if it runs: for messages that its crawler would not send.
    pub(crate) fn signer(&self, number: usize) -> Option<(AccessPoint, SigningKey, u64)> {
        let node = self.0.nodes.get(&self.0.members[number]).filter(|node| node.crawler.is_some())?;
        Some((self.0.members[number], node.key.clone(), node.incarnation()))
    }

    /// Has a member send this.
    pub(crate) fn inject(&mut self, from: AccessPoint, to: AccessPoint, request: Request) {
        self.0.ask(from, to, QuestionId::NO_ANSWER, request);
    }

    /// Has a member tell everybody this.
    pub(crate) fn inject_gossip(&mut self, from: AccessPoint, gossip: &Gossip) {
        self.0.publish(from, gossip);
    }

    /// Tells a process something, unless it stands still.
    pub(crate) fn tell_process(&mut self, process: AccessPoint, event: Event) {
        if !self.is_frozen(&process) {
            self.0.tell(process, event);
        }
    }

    /// What runs as this process.
    pub(crate) fn process(&self, process: &AccessPoint) -> Option<&Crawler> {
        self.0.nodes.get(process)?.crawler.as_ref()
    }

    /// What is on its disk.
    pub(crate) fn disk_of(&self, process: &AccessPoint) -> Option<&Disk> {
        self.0.nodes.get(process).map(|node| &node.disk)
    }

    /// All processes that run, with the numbers of their members.
    pub(crate) fn running_processes(&self) -> Vec<(usize, AccessPoint)> {
        let all = self.0.processes().into_iter().filter(|process| self.0.runs(*process));
        all.filter_map(|process| Some((self.0.number_of(process)?, process))).collect()
    }

    /// The number of a process, whether it runs or not.
    pub(crate) fn number_of_process(&self, process: &AccessPoint) -> Option<usize> {
        self.0.number_of(*process)
    }

    /// Whether messages pass between two processes that run, both ways.
    pub(crate) fn reach_each_other(&self, one: AccessPoint, other: AccessPoint) -> bool {
        one == other || self.0.together(one, other) && self.0.together(other, one)
    }

    /// Whether a member's disk takes no more.
    pub(crate) fn disk_is_full(&self, number: usize) -> bool {
        self.0.faults.disk_is_full(number as u32)
    }

    /// What a process is called among members.
    pub(crate) fn name_of(&self, process: AccessPoint) -> AccessPoint {
        self.0.identity_of(process)
    }

    /// How many numbers are given.
    pub(crate) fn numbers(&self) -> usize {
        self.0.members.len()
    }
}

/// What tests look at, and change.
#[cfg(test)]
impl Played {
    /// What both clocks of a member show.
    pub(crate) fn clocks_of(&self, number: usize) -> nearcrawl_model::time::Now {
        self.0.clocks(number as u32)
    }

    /// What a batch of writes takes on a member's disk, if that is slow.
    pub(crate) fn write_takes(&self, number: usize) -> Option<nearcrawl_model::time::Millis> {
        self.0.faults.write_takes(number as u32)
    }

    /// How many connections a member has.
    pub(crate) fn connections(&self, number: usize) -> usize {
        self.0.nodes[&self.0.members[number]].linked.len()
    }

    /// How long the next question from one to another is under way.
    pub(crate) fn delay_of(&mut self, from: AccessPoint, to: AccessPoint) -> nearcrawl_model::time::Millis {
        self.0.transmission(from, to, 0, 0.0).delay
    }

    /// Changes what is on a member's disk.
    pub(crate) fn change_disk(&mut self, number: usize, change: impl FnOnce(&mut Disk)) {
        change(&mut self.0.nodes.get_mut(&self.0.members[number]).unwrap().disk);
    }
}
