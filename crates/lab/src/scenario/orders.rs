//! The orders of a scenario: each verb of its file, done to the simulated swarm.

use super::{
    agenda::{Deed, Ending, Matter, Stay},
    build,
    file::{Action, Clock, ClockChange, DiskFault, Lie},
    lies,
    play::Play,
};
use crate::{rng::KeyedRng, swarm::Liars};
use ed25519_dalek::SigningKey;
use nearcrawl_core::event::Event;
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, SignedClaim},
    message::Gossip,
    subnet::Subnet,
    time::Millis,
    url::Host,
    vote::{AcceptedOwner, Votes},
};
use std::{collections::BTreeSet, net::Ipv4Addr};

/// Claims in one gossip message.
const CLAIMS_AT_ONCE: usize = 900;

/// The purposes of random numbers.
const MOVED: u64 = 5;

/// A claim to a subnet without servers, one for each number.
pub(super) fn filler(owner: AccessPoint, key: &SigningKey, number: u32) -> SignedClaim {
    let claim = Claim {
        subnet: Subnet::around(Ipv4Addr::from(build::FILLERS + (number << 8)).into(), 24),
        epoch: 1,
        owner,
        rtt_us: Some(20_000),
        runner_up: None,
        probes: 1,
        reason: ClaimReason::Awarded,
        released: false,
        answers: Vec::new(),
    };
    SignedClaim::sign(&claim, key)
}

/// The same claim, as if these voters had accepted it by the list with this number.
pub(super) fn accepted(proof: SignedClaim, list: u64, voters: &[SigningKey]) -> SignedClaim {
    let Ok(Claim { subnet, epoch, owner, .. }) = proof.read() else { return proof };
    let what = AcceptedOwner { list, subnet, epoch, owner, term: 1 };
    let voters = voters.iter().map(|key| what.vote(key)).collect();
    SignedClaim { votes: Some(Box::new(Votes { list, term: 1, voters })), ..proof }
}

impl Play<'_> {
    /// Names the starting points to a member.
    pub(super) fn seed(&mut self, number: usize) {
        let urls = build::seeds(self.scenario);
        self.world.order(number, || Event::Seeds(urls.clone()));
    }

    pub(super) fn act(&mut self, id: u64, action: Action) {
        self.judge.mark(self.now(), action.verb());
        match action {
            Action::Join { count, lives, returns } => {
                for _ in 0..count {
                    self.join(lives, returns);
                }
            }
            Action::Ghost { count, from } => lies::ghosts(&mut self.world, from as usize, count),
            Action::DeclareLost(lost) => {
                let lost: Vec<_> = lost.iter().map(|number| self.world.member(*number as usize)).collect();
                for (number, _) in self.world.running_processes() {
                    self.world.order(number, || Event::DeclareLost(lost.clone()));
                }
            }
            Action::Cut { pairs, oneway, lasts } => {
                let both = pairs.iter().flat_map(|(one, other)| [Some((*one, *other)), (!oneway).then_some((*other, *one))]);
                self.world.cut(id, both.flatten().collect());
                self.ends(lasts, Ending::Cut(id));
            }
            Action::Partition(groups, lasts) => {
                self.newest.insert(Matter::Partition, id);
                self.world.part(&groups);
                self.ends(lasts, Ending::Partition(id));
            }
            Action::Heal => self.world.heal_all(),
            Action::Loss(share, lasts) => {
                self.newest.insert(Matter::Loss, id);
                self.world.lose(share);
                self.ends(lasts, Ending::Loss(id));
            }
            Action::Limit(connections, lasts) => {
                self.newest.insert(Matter::Limit, id);
                self.world.limit_links(Some(connections as usize));
                self.ends(lasts, Ending::Limit(id));
            }
            Action::MoveHost(count) => self.move_hosts(count),
            Action::Claims(count) => self.fill_map(count, None),
            of_members => self.act_on_members(id, of_members),
        }
    }

    fn join(&mut self, lives: Option<Millis>, returns: Option<Millis>) {
        let place = build::place_of(self.seed, self.world.numbers() as u32);
        let number = self.world.add_member(place);
        self.world.start_member(number);
        if let Some(lives) = lives {
            let stay = returns.map(|returns| Stay { lives, returns });
            self.later(self.now() + lives, Deed::Retire(number, stay));
        }
    }

    /// What happens to members, one by one.
    fn act_on_members(&mut self, id: u64, action: Action) {
        match action {
            Action::Kill(who, lasts) => self.each(&who, |play, number| {
                play.judge.gone(&play.world, number, play.now());
                play.world.kill_all(number);
                play.away(id, lasts, number);
            }),
            Action::Leave(who, lasts) => self.each(&who, |play, number| {
                if play.world.processes_of(number).is_empty() {
                    return;
                }
                play.world.order(number, || Event::Leave);
                play.leaving.insert(number);
                play.away(id, lasts, number);
            }),
            Action::Wipe(who, lasts) => self.each(&who, |play, number| {
                play.judge.gone(&play.world, number, play.now());
                play.judge.wiped(number);
                play.world.wipe(number);
                play.away(id, Some(lasts.unwrap_or(0)), number);
            }),
            Action::Freeze(who, lasts) => self.each(&who, |play, number| {
                play.newest.insert(Matter::Freeze(number), id);
                play.world.freeze(number);
                play.ends(lasts, Ending::Freeze(number, id));
            }),
            Action::Clone(who) => self.each(&who, |play, number| play.world.clone_member(number)),
            Action::Clock { who, change, lasts } => self.each(&who, |play, number| play.change_clock(id, number, change, lasts)),
            Action::Disk { who, fault, lasts } => self.each(&who, |play, number| {
                match fault {
                    DiskFault::Slow => play.world.slow_disk(number, true),
                    DiskFault::Full => play.world.fill_disk(number, true),
                    DiskFault::Damaged => play.world.damage_disk(number),
                }
                play.newest.insert(Matter::of_disk(number, fault), id);
                play.ends(lasts, Ending::Disk(number, fault, id));
            }),
            Action::Seed(who) => self.each(&who, Self::seed),
            Action::Lie { who, lie, lasts } => {
                let numbers: Vec<_> = who.iter().map(|number| *number as usize).collect();
                self.liars.insert(id, (numbers, lie));
                self.choose_liars();
                self.ends(lasts, Ending::Lie(id));
            }
            // The others are about the network, or about the swarm as a whole.
            _ => {}
        }
    }

    /// Has those forward nothing, hide what they know or have, or accept twice that lie so, and all others be honest that do not lie any
    /// more.
    pub(super) fn choose_liars(&mut self) {
        let lies = |number: &usize| self.liars.values().any(|(who, lie)| *lie == Lie::DoubleAccept && who.contains(number));
        let twice: Vec<_> = self.world.running_processes().into_iter().map(|(number, process)| (process, lies(&number))).collect();
        twice.into_iter().for_each(|(process, twice)| self.world.accept_twice(process, twice));
        let who = |about: Lie| -> BTreeSet<u32> {
            let liars = self.liars.values().filter(|(_, lie)| *lie == about);
            liars.flat_map(|(numbers, _)| numbers).map(|number| *number as u32).collect()
        };
        let (drops, hides, silent, denies) = (who(Lie::Forward), who(Lie::HandOver), who(Lie::Silence), who(Lie::Deny));
        self.world.have_lie(Liars { drops, hides, silent, denies });
    }

    fn change_clock(&mut self, id: u64, number: usize, change: ClockChange, lasts: Option<Millis>) {
        if let Some(by) = change.jump {
            self.world.jump_clock(number, by);
            self.ends(lasts, Ending::Jump(number, by));
        }
        if let Some(rate) = change.rate {
            self.newest.insert(Matter::of_clock(number, change.clock), id);
            self.world.rate_clock(number, rate, change.clock == Clock::Boot);
            self.ends(lasts, Ending::Rate(number, change.clock, id));
        }
    }

    fn each(&mut self, who: &[u32], mut deed: impl FnMut(&mut Self, usize)) {
        for number in who {
            deed(self, *number as usize);
        }
    }

    /// A member is gone for so long, or for good: nothing that was ordered earlier brings it back.
    fn away(&mut self, id: u64, lasts: Option<Millis>, number: usize) {
        self.newest.insert(Matter::Absence(number), id);
        match lasts {
            Some(lasts) => self.later(self.now() + lasts, Deed::Start(number, id)),
            None => self.agenda.retain(|_, deed| !matches!(deed, Deed::Retire(who, _) | Deed::Renew(who, _) if *who == number)),
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

    /// The number of the list of voters that a running member goes by, and the keys of those of them that run.
    pub(super) fn voters(&self) -> (u64, Vec<SigningKey>) {
        let running = self.world.running_processes();
        let lists = running.iter().filter_map(|(_, process)| Some(self.world.process(process)?.view().voters()));
        let Some(list) = lists.max_by_key(|voters| voters.list) else { return (0, Vec::new()) };
        let keys = (0..self.world.numbers()).filter_map(|number| self.world.signer(number));
        (list.list, keys.filter(|(who, ..)| list.voters.contains(who)).map(|(_, key, _)| key).collect())
    }

    /// Subnets in which nobody named a server were claimed by those who are there, in turn, or all by one of them.
    pub(super) fn fill_map(&mut self, count: u32, by: Option<usize>) {
        let numbers = (0..self.world.numbers()).filter(|number| by.is_none_or(|by| by == *number));
        let owners: Vec<_> = numbers.filter_map(|number| self.world.signer(number)).collect();
        if owners.is_empty() {
            return;
        }
        let (list, voters) = self.voters();
        let mut proofs = Vec::new();
        for (owner, key, _) in (0..count as usize).map(|place| &owners[place % owners.len()]) {
            proofs.push(accepted(filler(*owner, key, self.fillers), list, &voters));
            self.fillers += 1;
        }
        let processes: BTreeSet<_> = self.world.running_processes().into_iter().map(|(_, process)| process).collect();
        for proofs in proofs.chunks(CLAIMS_AT_ONCE) {
            for process in &processes {
                self.world.tell_process(*process, Event::Gossiped { author: *process, gossip: Gossip::Claims(proofs.to_vec()) });
            }
        }
    }
}
