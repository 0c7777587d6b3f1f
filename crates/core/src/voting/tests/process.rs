//! One access point of a simulated world: its votes, and as much of ownership as decides who fetches.
//!
//! That is a register of claims, claims made and released, and a map that is compared before it is acted on.

use super::random::Random;
use crate::{
    context::Context,
    event::{Command, PeerCommand, StoreCommand},
    membership::{Member, Membership, Roster, RosterConfig, Swim},
    ownership::register::{Merged, Register},
    pending::Pending,
    signal::Signal,
    voting::{Networks, Times, Voting, asker::Asker, machine::VotingReads, proposals::Accepted, records::VotingRecord},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, SignedClaim},
    ids::{QuestionId, Ticket, WriteId},
    message::{Request, Response},
    replica::{NamedReplica, StoreId},
    subnet::Subnet,
    time::{Millis, Moment, WallTime},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

/// For how long one that leaves waits in any case while it is a voter.
const HEARD_OF: Millis = 15_000;

/// For how long one that leaves waits until it is no voter any more.
const PARTING_TIMEOUT: Millis = 120_000;

/// When one that has met nobody acts on the map that it has.
const LONELY_AFTER: Millis = 60_000;

/// What outlives a process.
#[derive(Clone, Default)]
pub(super) struct Disk {
    pub(super) voting: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) claims: BTreeMap<Subnet, SignedClaim>,
    pub(super) incarnation: u64,
    /// The machine on which it was written last.
    pub(super) place: Option<usize>,
    /// The number of the database in which journals are kept.
    pub(super) store: u64,
}

/// What is written.
#[derive(Clone)]
pub(super) enum Write {
    Voting(Vec<VotingRecord>),
    Claims(Vec<SignedClaim>),
}

impl Disk {
    pub(super) fn apply(&mut self, write: Write) {
        match write {
            Write::Voting(records) => {
                for VotingRecord { key, value } in records {
                    match value {
                        Some(value) => drop(self.voting.insert(key, value)),
                        None => drop(self.voting.remove(&key)),
                    }
                }
            }
            Write::Claims(claims) => self.claims.extend(claims.into_iter().map(|proof| (proof.read().unwrap().subnet, proof))),
        }
    }
}

/// The last claim to a subnet, as it is known to one process.
pub(super) type Known = BTreeMap<Subnet, (u64, AccessPoint, bool)>;

/// What one process sends another.
#[derive(Clone)]
pub(super) enum Wire {
    Asked(QuestionId, Request),
    Answered(QuestionId, Response),
    Claims(Vec<SignedClaim>),
    Compare(Known),
    /// What the other lacked, and whether the sender's own map was whole.
    Compared(Vec<SignedClaim>, bool),
    Farewell,
}

/// What a process wants done.
pub(super) enum Wish {
    Ask(AccessPoint, QuestionId, Request),
    /// To the process that asked.
    Answer(usize, QuestionId, Response),
    Gossip(Vec<SignedClaim>),
    Send(AccessPoint, Wire),
    Store(WriteId, Write),
    /// Enough voters accepted this claim of its own, and told who has what was recorded before.
    Accepted(Claim, Vec<Vec<NamedReplica>>),
    /// It knows again who has what it owned in a previous process.
    Resumes(Vec<Subnet>, Vec<Vec<NamedReplica>>),
    /// It recorded something of a subnet: all of these have that.
    Recorded(Subnet, Vec<NamedReplica>),
    /// These have been sent all that was recorded of a subnet that it owns, or, if not, all that it recorded itself before.
    Copied(Subnet, Vec<NamedReplica>, bool),
    Farewell,
}

/// Its part of the ownership map.
#[derive(Default)]
struct Map {
    register: Register,
    /// What it owned when its lease ran out.
    doubtful: BTreeMap<Subnet, u64>,
    storing: BTreeMap<WriteId, Vec<SignedClaim>>,
    /// Claims under way.
    claiming: BTreeSet<(Subnet, u64)>,
    /// Who was compared with, and whether its map was whole.
    compared: BTreeMap<AccessPoint, bool>,
    /// Whether it is acted on.
    whole: bool,
}

/// How a process starts.
pub(super) struct Start<'a> {
    pub(super) number: u8,
    pub(super) config: &'a RosterConfig,
    pub(super) disk: &'a Disk,
    pub(super) now: Moment,
    pub(super) wall: WallTime,
    pub(super) sole: bool,
    pub(super) remembered: &'a BTreeSet<AccessPoint>,
    pub(super) founds: bool,
}

/// A process at one moment of its clock.
pub(super) struct Process {
    pub(super) cx: Context,
    pub(super) voting: Voting,
    pub(super) members: Membership,
    map: Map,
    journals: Journals,
    tickets: BTreeMap<Ticket, (usize, QuestionId)>,
    leaving: Option<Moment>,
    released: bool,
    wishes: Vec<Wish>,
}

/// What it knows of the journals of its subnets.
struct Journals {
    own: NamedReplica,
    /// Its replicas and itself.
    named: Vec<NamedReplica>,
    /// Subnets that were taken over and whose journals have not come yet.
    pending: BTreeSet<Subnet>,
    /// Whether it has held a lease since it started: then it knows what voters know of a previous process.
    resumed: bool,
}

impl Process {
    pub(super) fn start(start: Start<'_>) -> Process {
        let Start { number, config, disk, now, wall, sole, remembered, founds } = start;
        let mut cx = Context::of_test(number);
        cx.settings.roster = config.clone();
        (cx.now.moment, cx.started) = (now, now);
        cx.now.wall = wall;
        let stored: Vec<_> = disk.voting.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let swim = Swim::new(Member::new(cx.me, disk.incarnation, Vec::new()), cx.settings.membership.clone(), 1);
        let members = Membership::new(swim, Roster::new(cx.me, config.clone(), now, remembered));
        let mut voting = Voting::new(Times::of(config), Networks::new(cx.me, Vec::new()), cx.now, disk.incarnation, sole, &stored);
        if founds {
            voting.found(&mut cx);
        }
        let mut map = Map { whole: founds && remembered.len() < 2, ..Map::default() };
        for proof in disk.claims.values() {
            map.register.merge(proof.read().unwrap(), proof);
        }
        let (tickets, leaving, released, wishes) = Default::default();
        let own = NamedReplica { member: cx.me, store: StoreId(disk.store) };
        let journals = Journals { own, named: Vec::new(), pending: BTreeSet::new(), resumed: false };
        let mut process = Process { cx, voting, members, map, journals, tickets, leaving, released, wishes };
        for proof in disk.claims.values() {
            process.doubt_if_over(&proof.read().unwrap(), proof);
        }
        process
    }

    fn voting(&mut self) -> (&mut Voting, &mut Context, VotingReads<'_>) {
        let others = VotingReads { members: &self.members, register: &self.map.register };
        (&mut self.voting, &mut self.cx, others)
    }

    /// Until when it may fetch what, by its own clock.
    pub(super) fn fetches(&self) -> Option<(Moment, Vec<Subnet>)> {
        let until = self.voting.lease(self.cx.me).0.filter(|until| self.cx.now.moment < *until)?;
        let mine = self.map.register.held_by(&self.cx.me).filter(|subnet| self.map.whole && !self.map.doubtful.contains_key(subnet));
        Some((until, mine.collect()))
    }

    pub(super) fn holds_lease(&self) -> bool {
        self.voting.lease(self.cx.me).0.is_some_and(|until| self.cx.now.moment < until)
    }

    pub(super) fn take(&mut self, from: (usize, AccessPoint), wire: Wire) {
        match wire {
            Wire::Asked(question, mut request) => {
                let ticket = self.cx.number();
                if question != QuestionId::NO_ANSWER {
                    self.tickets.insert(ticket, (from.0, question));
                }
                if let Request::Propose(proposal) = &mut request {
                    let releases = std::mem::take(&mut proposal.releases);
                    self.hear(releases);
                }
                let (voting, cx, others) = self.voting();
                voting.asked(cx, others, Asker::Member(from.1, ticket), request);
                voting.settle(cx, others);
            }
            Wire::Answered(question, response) => self.answered(question, from.1, Some(response)),
            Wire::Claims(claims) => self.hear(claims),
            Wire::Compare(known) => {
                let lacks = |held: &Claim| {
                    known.get(&held.subnet).is_none_or(|(epoch, owner, released)| {
                        held.epoch > *epoch || held.epoch == *epoch && (held.owner, held.released) != (*owner, *released)
                    })
                };
                let lacking = self.map.register.all().filter(|held| lacks(&held.claim)).map(|held| held.proof()).collect();
                let answer = Wire::Compared(lacking, self.map.whole);
                self.wish(Wish::Send(from.1, answer));
            }
            Wire::Compared(claims, whole) => {
                let before = self.cx.counters.refused.clone();
                self.hear(claims);
                // What could not be checked yet was not taken in.
                if self.cx.counters.refused == before {
                    self.map.compared.insert(from.1, whole);
                    let all = self.members.live().iter().all(|who| *who == self.cx.me || self.map.compared.contains_key(who));
                    self.map.whole |= all || self.map.compared.values().filter(|whole| **whole).count() >= 2;
                }
            }
            Wire::Farewell => {
                self.voting.member_left(from.1);
                let now = self.cx.now.moment;
                self.members.roster_mut().farewell(now, from.1, true);
            }
        }
        self.settle();
    }

    pub(super) fn answered(&mut self, question: QuestionId, from: AccessPoint, answer: Option<Response>) {
        let Some(pending) = self.cx.pending.remove(&question) else { return };
        let pending: Pending = pending;
        let (voting, cx, others) = self.voting();
        voting.answered(cx, others, from, pending, answer);
        voting.settle(cx, others);
        self.settle();
    }

    pub(super) fn stored(&mut self, write: WriteId) {
        if let Some(proofs) = self.map.storing.remove(&write) {
            for proof in &proofs {
                let claim = proof.read().unwrap();
                self.map.claiming.remove(&(claim.subnet, claim.epoch));
                if matches!(self.map.register.merge(claim.clone(), proof), Merged::Holds { .. }) {
                    self.map.doubtful.remove(&claim.subnet);
                    self.doubt_if_over(&claim, proof);
                }
            }
            self.wish(Wish::Gossip(proofs));
        } else {
            let (voting, cx, others) = self.voting();
            voting.stored(cx, write);
            voting.settle(cx, others);
        }
        self.settle();
    }

    fn doubt_if_over(&mut self, claim: &Claim, proof: &SignedClaim) {
        let earlier = proof.votes.as_ref().is_some_and(|votes| votes.term < self.voting.term());
        if earlier && claim.owner == self.cx.me && !claim.released {
            self.map.doubtful.insert(claim.subnet, claim.epoch);
        }
    }

    /// Claims of others: those that are proven and stronger are believed.
    fn hear(&mut self, proofs: Vec<SignedClaim>) {
        let mut heard = Vec::new();
        for proof in proofs {
            let Ok(claim) = proof.open() else { panic!("nobody forges claims here") };
            let others = VotingReads { members: &self.members, register: &self.map.register };
            if let Some(held) = others.register.latest(&claim.subnet).filter(|held| held.claim.epoch == claim.epoch) {
                let (at, known, votes) = ((claim.subnet, claim.epoch), held.votes().unwrap(), proof.votes.as_ref().unwrap());
                self.voting.compare_votes(&mut self.cx, others, at, (held.claim.owner, known), (claim.owner, votes));
            }
            if self.map.register.latest(&claim.subnet).is_some_and(|held| held.strength_of(&claim, &proof).is_le()) {
                continue;
            }
            match self.voting.proves(&claim, &proof) {
                Some(true) => {}
                Some(false) => panic!("a claim without enough votes: {claim:?}"),
                None => {
                    self.cx.refuse("of an unknown list");
                    if let Some(member) = self.members.live().iter().copied().find(|member| *member != self.cx.me) {
                        self.voting.list_missing(&mut self.cx, member);
                    }
                    continue;
                }
            }
            if claim.owner != self.cx.me {
                self.map.doubtful.remove(&claim.subnet);
            }
            self.map.register.merge(claim.clone(), &proof);
            self.doubt_if_over(&claim, &proof);
            heard.push(proof);
        }
        if !heard.is_empty() {
            let write = self.cx.number();
            self.wish(Wish::Store(write, Write::Claims(heard)));
        }
    }

    fn wish(&mut self, wish: Wish) {
        self.wishes.push(wish);
    }

    /// Carries signals out, and gathers what is wanted.
    fn settle(&mut self) {
        loop {
            while let Some(signal) = self.cx.signals.pop_front() {
                self.carry_out(signal);
            }
            self.take_over_accepted();
            let commands = self.cx.take_commands();
            if commands.is_empty() && self.cx.signals.is_empty() {
                return;
            }
            for command in commands {
                match command {
                    Command::Peers(PeerCommand::Ask { to, question, request }) => self.wish(Wish::Ask(to, question, request)),
                    Command::Peers(PeerCommand::Answer { ticket, response }) => {
                        if let Some((process, question)) = self.tickets.remove(&ticket) {
                            self.wish(Wish::Answer(process, question, response));
                        }
                    }
                    Command::Store(StoreCommand::StoreVoting { write, records }) => self.wish(Wish::Store(write, Write::Voting(records))),
                    other => panic!("voting wants {other:?}"),
                }
            }
        }
    }

    fn carry_out(&mut self, signal: Signal) {
        match signal {
            Signal::ClaimsAccepted(proofs) => {
                for proof in &proofs {
                    let claim = proof.open().unwrap();
                    assert_eq!(self.voting.proves(&claim, proof), Some(true), "{claim:?}");
                }
                self.store(proofs);
            }
            Signal::ClaimsGivenUp(claims) => claims.iter().for_each(|claim| {
                self.map.claiming.remove(claim);
            }),
            Signal::ClaimsToTell(subnets) => {
                let held = subnets.iter().filter_map(|subnet| self.map.register.latest(subnet));
                let mine = held.filter(|held| held.claim.owner == self.cx.me).map(|held| held.proof()).collect();
                self.wish(Wish::Gossip(mine));
            }
            Signal::TermBegan => {
                for subnet in self.map.register.held_by(&self.cx.me).collect::<Vec<_>>() {
                    let epoch = self.map.register.claim(&subnet).map_or(0, |claim| claim.epoch);
                    self.map.doubtful.entry(subnet).or_insert(epoch);
                }
            }
            // No totals are compared here.
            Signal::LeaseAsked(_) => {}
            other => panic!("voting says {other:?}"),
        }
    }

    fn take_over_accepted(&mut self) {
        let mut claims = Vec::new();
        for Accepted { proof, before } in self.voting.take_accepted() {
            let claim = proof.open().unwrap();
            let told = before.iter().flat_map(|set| set.replicas.inherited.iter().map(|set| &set.members).chain([&set.replicas.members]));
            self.wish(Wish::Accepted(claim.clone(), told.cloned().collect()));
            let sets = before.into_iter().map(|set| set.replicas);
            let (handed, _) = crate::replication::taken_over(sets, self.journals.own, |_| None, 0);
            if !handed.is_empty() {
                self.journals.pending.insert(claim.subnet);
            }
            claims.push((proof, handed));
        }
        if !claims.is_empty() {
            self.voting.take_over(&mut self.cx, claims);
        }
    }

    fn store(&mut self, proofs: Vec<SignedClaim>) {
        let write = self.cx.number();
        self.map.storing.insert(write, proofs.clone());
        self.wish(Wish::Store(write, Write::Claims(proofs)));
    }

    /// What it wants done now.
    pub(super) fn take_wishes(&mut self) -> Vec<Wish> {
        std::mem::take(&mut self.wishes)
    }
}

/// What a process does of its own accord.
impl Process {
    /// Once a second or so.
    pub(super) fn tick(&mut self, chance: &mut Random, subnets: &[Subnet]) {
        let now = self.cx.now.moment;
        self.members.roster_mut().tick(now);
        if self.leaving.is_some() {
            self.voting.leave(now);
        }
        let (voting, cx, others) = self.voting();
        voting.tick(cx, others, false);
        self.settle();
        if !self.map.whole && self.members.live().len() < 2 && now.since(self.cx.started) >= LONELY_AFTER {
            self.map.whole = true;
        }
        if chance.chance(20) {
            let (voting, cx, others) = self.voting();
            voting.tidy(cx, others);
        }
        if self.holds_lease() {
            self.claim_again();
            if self.map.whole && self.leaving.is_none() {
                self.claim_some(chance, subnets);
            }
        }
        self.keep_journals(chance);
        self.go(now);
        if chance.chance(200) {
            self.compare(chance);
        }
        self.settle();
    }

    /// Records something of what it owns, chooses other replicas now and then, reads journals that it took over.
    fn keep_journals(&mut self, chance: &mut Random) {
        let Some((_, owned)) = self.fetches() else { return };
        if !std::mem::replace(&mut self.journals.resumed, true) {
            let known = self.voting.inherited_replicas().unwrap_or_default().into_iter().map(|set| set.members).collect();
            self.journals.pending.extend(&owned);
            self.wish(Wish::Resumes(owned.clone(), known));
        }
        let came: Vec<_> = self.journals.pending.iter().copied().filter(|_| chance.chance(100)).collect();
        self.journals.pending.retain(|subnet| !came.contains(subnet));
        if self.journals.named.is_empty() || chance.chance(50) {
            let replicas =
                (0..chance.between(1, 2)).map(|_| NamedReplica { member: AccessPoint([chance.below(5) as u8; 32]), store: StoreId(0) });
            self.journals.named = [self.journals.own].into_iter().chain(replicas).collect();
        }
        let named = self.journals.named.clone();
        let read = |subnet: &&Subnet| !self.journals.pending.contains(subnet);
        let whole: Vec<_> = owned.iter().filter(read).copied().collect();
        // Who is named has been sent all that was recorded, but for what has not come yet.
        for subnet in self.map.register.held_by(&self.cx.me).collect::<Vec<_>>().iter().filter(read).copied().collect::<Vec<_>>() {
            self.wish(Wish::Copied(subnet, named.clone(), whole.contains(&subnet)));
        }
        let is_ours = |held: &&crate::ownership::register::Held| held.claim.released && held.claim.owner == self.cx.me;
        let released = self.map.register.all().any(|held| is_ours(&held));
        self.voting.name_replicas(&self.cx, named, released);
        // What it reads of a claim that waits for a slow disk is copied when it owns that: as in replication, which expects it until then.
        if self.journals.pending.is_empty() && self.map.storing.is_empty() && !released && chance.chance(300) {
            self.voting.has_copied_all(&self.cx);
        }
        if let Some(needed) = self.voting.needed_replicas(self.cx.now.moment) {
            whole.iter().for_each(|subnet| self.wish(Wish::Recorded(*subnet, needed.clone())));
        }
    }

    /// Has a claim voted on.
    pub(super) fn propose(&mut self, subnet: Subnet, epoch: u64, reason: ClaimReason) {
        if !self.map.claiming.insert((subnet, epoch)) {
            return;
        }
        let (rtt_us, runner_up, answers) = (None, None, Vec::new());
        let claim = Claim { subnet, epoch, owner: self.cx.me, rtt_us, runner_up, probes: 0, reason, released: false, answers };
        let proof = SignedClaim::sign(&claim, &self.cx.key);
        let (voting, cx, others) = self.voting();
        voting.propose(cx, others, vec![proof], None);
        voting.settle(cx, others);
        self.settle();
    }

    fn claim_again(&mut self) {
        let held: Vec<_> = self.map.doubtful.keys().filter_map(|subnet| self.map.register.claim(subnet).cloned()).collect();
        let me = self.cx.me;
        for claim in held.into_iter().filter(|claim| claim.owner == me) {
            self.propose(claim.subnet, claim.epoch + 1, ClaimReason::OwnerDead);
        }
    }

    /// Claims what has no owner or what seems to have none, and now and then what has one; gives up some.
    fn claim_some(&mut self, chance: &mut Random, subnets: &[Subnet]) {
        for subnet in subnets {
            let Some(held) = self.map.register.latest(subnet).map(|held| held.claim.clone()) else {
                if chance.chance(60) {
                    self.propose(*subnet, 1, ClaimReason::Awarded);
                }
                continue;
            };
            let mine = held.owner == self.cx.me && !held.released;
            if mine {
                if chance.chance(4) && !self.map.doubtful.contains_key(subnet) {
                    self.release(*subnet);
                }
                continue;
            }
            let dead = !self.members.standings().contains_key(&held.owner);
            if chance.chance(if held.released || dead { 40 } else { 5 }) {
                self.propose(*subnet, held.epoch + 1, ClaimReason::Released);
            }
        }
    }

    fn release(&mut self, subnet: Subnet) {
        let Some(held) = self.map.register.latest(&subnet) else { return };
        let claim = Claim { released: true, ..held.claim.clone() };
        let votes = held.votes().cloned().map(Box::new);
        let proof = SignedClaim { votes, ..SignedClaim::sign(&claim, &self.cx.key) };
        self.store(vec![proof]);
    }

    /// Releases everything and says good-bye once it is no voter any more.
    fn go(&mut self, now: Moment) {
        let Some(since) = self.leaving else { return };
        let needed = self.voting.is_needed(&self.cx, &self.members) && now.since(since) < PARTING_TIMEOUT;
        if needed || self.voting.is_listed(self.cx.me, &self.members) && now.since(since) < HEARD_OF {
            return;
        }
        if !self.released && self.holds_lease() {
            self.released = true;
            self.map.register.held_by(&self.cx.me).collect::<Vec<_>>().into_iter().for_each(|subnet| self.release(subnet));
        } else if self.map.storing.is_empty() {
            self.wish(Wish::Farewell);
        }
    }

    fn compare(&mut self, chance: &mut Random) {
        let others: Vec<_> = self.members.live().iter().copied().filter(|who| *who != self.cx.me).collect();
        if !others.is_empty() {
            let known = self.map.register.all().map(|held| (held.claim.subnet, (held.claim.epoch, held.claim.owner, held.claim.released)));
            let known = known.collect();
            self.wish(Wish::Send(chance.of(&others), Wire::Compare(known)));
        }
    }

    /// A member is connected from this address.
    pub(super) fn saw(&mut self, who: AccessPoint, address: IpAddr) {
        self.voting.saw(&mut self.cx, who, address);
    }

    /// It has this address itself.
    pub(super) fn has(&mut self, address: IpAddr) {
        self.voting.have(&self.cx, address);
    }

    /// A member can be reached, or not.
    pub(super) fn sees(&mut self, who: AccessPoint, up: bool) {
        let now = self.cx.now.moment;
        let was = self.members.standings().get(&who).is_some_and(|standing| standing.silent_since.is_none());
        if up && !was {
            self.members.roster_mut().up(now, who);
            self.voting.connected(&mut self.cx, who);
        } else if !up && was {
            self.members.roster_mut().down(now, who);
        }
    }

    /// It leaves for good.
    pub(super) fn leave(&mut self) {
        self.leaving.get_or_insert(self.cx.now.moment);
    }

    /// How it stands as a voter.
    pub(super) fn standing(&self) -> String {
        let (number, voting) = (self.voting.list().map(|list| list.number), &self.voting);
        let accepted = voting
            .ballots
            .state()
            .accepted
            .as_ref()
            .map(|(ballot, list)| (ballot.round, list.voters.iter().map(|who| who.0[0]).collect::<Vec<_>>()));
        let voters = voting.list().map(|list| list.voters.iter().map(|who| who.0[0]).collect::<Vec<_>>());
        let (votes, term, me) = (voting.votes(self.cx.now.moment, self.cx.me), voting.term(), self.cx.me.0[0]);
        format!(
            "{me} list {number:?} of {voters:?} votes {votes} term {term} accepted {accepted:?} lease {}: {:?}",
            self.holds_lease(),
            voting.lease(self.cx.me).1
        )
    }

    /// The last epoch of a subnet that it knows of.
    pub(super) fn last_epoch(&self, subnet: &Subnet) -> u64 {
        self.map.register.latest(subnet).map_or(0, |held| held.claim.epoch)
    }

    /// What it thinks of a subnet.
    pub(super) fn opinion(&self, subnet: &Subnet) -> String {
        let held = self.map.register.latest(subnet).map(|held| (held.claim.epoch, held.claim.owner.0[0], held.claim.released, held.term()));
        let claiming: Vec<_> = self.map.claiming.iter().filter(|(of, _)| of == subnet).map(|(_, epoch)| *epoch).collect();
        format!("{held:?} doubtful {:?} claiming {claiming:?} whole {}", self.map.doubtful.get(subnet), self.map.whole)
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }
}
