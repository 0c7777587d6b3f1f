//! State machine of voting: the votes of this access point, and the votes that it needs.

use crate::{
    context::Context,
    event::{Command, PeerCommand},
    membership::{LeftOut, Membership},
    ownership::register::Register,
    pending::Pending,
    signal::Signal,
    voting::{
        Times,
        asker::Asker,
        ballots::Ballots,
        confirmation::Confirmation,
        installing::Installing,
        keeping::Keeping,
        lease::{Lease, NoLease, Pace},
        lists::Lists,
        networks::Networks,
        plan::{self, Gone},
        process::{self, Process},
        proposals::{Accepted, Proposals},
        records::{self, Restored, StoredProcesses},
        voter::Voter,
    },
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SignedClaim},
    ids::{QuestionId, WriteId},
    message::{Proposal, Request, Response},
    subnet::Subnet,
    time::{Millis, Moment, Now},
    vote::{Ballot, BallotRequest, DoubleVote, Renewal, Renewed, SetNumber, SignedList, SignedPart, VoterList, Votes, sign_installed},
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
};

/// What is done once records are durable.
#[derive(Debug)]
pub(super) enum Durable {
    Answer(Asker, Response),
    Replicas(AccessPoint, SetNumber),
    Term(u64),
    Contested(AccessPoint),
}

/// What this machine reads of others.
#[derive(Clone, Copy)]
pub(crate) struct VotingReads<'a> {
    pub(crate) members: &'a Membership,
    pub(crate) register: &'a Register,
}

/// What is known of voters beyond their lists.
pub(super) struct Standing {
    /// Whether the present list is known to be in force.
    pub(super) confirmation: Confirmation,
    /// The number of the last list for which it is stored here what the voters before had decided.
    pub(super) installed: u64,
    /// The same until what the voters before the last such list had decided was stored here in this process; 0 if none was.
    pub(super) installed_before: u64,
    /// Whether this access point voted by the list before the present one until that was replaced.
    pub(super) voted_before: bool,
    /// Whether the present list followed the one before at once because a voter leaves.
    pub(super) hurried: bool,
    /// Members that an operator declared lost.
    pub(super) lost: BTreeSet<AccessPoint>,
    /// Voters that left for good.
    pub(super) left: BTreeSet<AccessPoint>,
    /// Voters that accepted two claims at one epoch, with the proof: they are as if silent for ever. At most [`MAX_LIARS`].
    pub(super) liars: BTreeMap<AccessPoint, DoubleVote>,
    /// Whether this access point leaves for good.
    pub(super) leaving: bool,
    /// Since when the present list has been known in this process.
    pub(super) adopted_at: Moment,
    /// Whether the present list was known at the start of this process: for how long it had been in force is not.
    pub(super) resumed: bool,
    /// When a list was renewed last with the same voters, because one had lost its disk.
    pub(super) renewed: Option<Moment>,
}

/// A list is renewed with the same voters this often at most, in milliseconds.
const MIN_RENEWAL_INTERVAL: Millis = 3_600_000;

/// By how much a list may be younger than this voter knows the swarm to be.
const AGE_LATITUDE: Millis = 120_000;

/// A voter that has been silent for the time of a lease is asked with every so-manieth renewal, as long as the others renew ours: it may be
/// gone for long, and each question to it may go around through others.
const SILENT_ASKED_EVERY: u64 = 3;

/// Voters that are remembered as liars: each was on a list once.
pub(super) const MAX_LIARS: usize = 1_024;

/// What this access point asks itself as a voter, and answers.
#[derive(Default)]
pub(super) struct Own {
    pub(super) questions: VecDeque<(QuestionId, Request)>,
    pub(super) answers: VecDeque<(QuestionId, Response)>,
}

/// What waits for the disk, or for what others answer.
#[derive(Default)]
pub(super) struct UnderWay {
    /// What is done once these writes are durable.
    pub(super) unstored: BTreeMap<WriteId, Vec<Durable>>,
    /// When a member was asked for lists last.
    pub(super) lists_asked: Option<Moment>,
    /// Members that told a false list of their own accord, and when.
    pub(super) false_lists: BTreeMap<AccessPoint, Moment>,
    /// Voters of the present list that were brought what those before had decided, and when.
    pub(super) brought: BTreeMap<AccessPoint, Moment>,
    /// A list by which this access point may vote once it has heard enough of those that voted before.
    pub(super) installing: Option<Installing>,
    /// The number of a list, and since when it is known here that the voters before have chosen it: they decide nothing by theirs any more.
    pub(super) chosen: Option<(u64, Moment)>,
    /// A term that is being stored.
    pub(super) next_term: Option<u64>,
    /// Claims of ours that enough voters have accepted.
    pub(super) accepted: Vec<Accepted>,
    /// The same when the replicas of the owners before are told to the voters: published when that set is in force.
    pub(super) unpublished: Vec<(SetNumber, SignedClaim)>,
}

/// The votes.
pub(crate) struct Voting {
    pub(super) times: Times,
    pub(super) process: Process,
    pub(super) lists: Lists,
    pub(super) voter: Voter,
    pub(super) lease: Lease,
    pub(super) proposals: Proposals,
    pub(super) keeping: Keeping,
    pub(super) ballots: Ballots,
    pub(super) standing: Standing,
    /// In which networks this access point saw the others.
    pub(super) networks: Networks,
    pub(super) own: Own,
    pub(super) under_way: UnderWay,
}

/// Its beginning.
impl Voting {
    /// Restores it from its records. `sole` is whether the process before with this key surely has ended.
    pub(crate) fn new(times: Times, networks: Networks, start: Now, incarnation: u64, sole: bool, stored: &[(Vec<u8>, Vec<u8>)]) -> Voting {
        let restored = Restored::read(stored);
        let Restored { lists, term, rows, ended, ballot, installed, lost, processes, liars, replicas, contested, installing } = restored;
        let now = start.moment;
        // The instant of its start, by both clocks, tells it apart from any other process.
        let number = (start.wall.0 << 24 ^ now.0).max(1);
        let before = processes.unwrap_or(StoredProcesses { last: [0, 0], sure: true });
        let ended_before = if sole { before.last } else { [0, 0] };
        let lists = Lists::restored(lists);
        let resumed = lists.number() > 0;
        let installing = installing.filter(|list| list.number > installed && list.number >= lists.number());
        let sole = sole && before.sure;
        Voting {
            times,
            process: Process::new(incarnation, number, ended_before, sole, now).with_contested(contested),
            lists,
            voter: Voter::new(times, now, rows, ended).with_replicas(replicas),
            lease: Lease::new(times, now, term),
            proposals: Proposals::default(),
            keeping: Keeping::new(start.wall.0),
            ballots: Ballots::restored(now, ballot),
            standing: Standing {
                confirmation: Confirmation::new(now, resumed),
                installed,
                installed_before: 0,
                voted_before: false,
                hurried: false,
                lost,
                left: BTreeSet::new(),
                liars,
                leaving: false,
                adopted_at: now,
                resumed,
                renewed: None,
            },
            networks,
            own: Own::default(),
            under_way: UnderWay { installing: installing.map(|list| Installing::new(now, list)), ..UnderWay::default() },
        }
    }

    /// Begins a swarm, unless it is in one.
    pub(crate) fn found(&mut self, cx: &mut Context) {
        if self.lists.number() > 0 {
            return;
        }
        let signed = SignedList::founded_by(&cx.key);
        let installed = records::installed(signed.list.number);
        self.standing.installed = signed.list.number;
        self.adopt(cx, &signed, vec![installed]);
    }

    /// An operator says that these will not come back. If this access point is among them, the others go on without it: it decides nothing, and
    /// adopts the list of theirs.
    pub(crate) fn declare_lost(&mut self, cx: &mut Context, lost: Vec<AccessPoint>) {
        if lost.contains(&cx.me) {
            self.lease.end(cx.now.moment);
        }
        let records: Vec<_> = lost.iter().filter(|who| self.standing.lost.insert(**who)).map(|who| records::lost(*who)).collect();
        self.store(cx, records, Vec::new());
    }

    /// Members that an operator declared lost, and that do not go by a list chosen since.
    pub(crate) fn lost(&self) -> impl Iterator<Item = &AccessPoint> {
        self.standing.lost.iter()
    }

    /// A member left for good.
    pub(crate) fn member_left(&mut self, who: AccessPoint) {
        if self.lists.current().is_some_and(|list| list.contains(&who)) {
            self.standing.left.insert(who);
        }
    }

    /// A member that had left for good may be one again.
    pub(crate) fn member_is_back(&mut self, who: &AccessPoint) {
        self.standing.left.remove(who);
    }

    /// A member is connected from this address.
    pub(crate) fn saw(&mut self, cx: &mut Context, who: AccessPoint, address: IpAddr) {
        self.networks.saw(cx, who, address, self.lists.current());
    }

    /// This access point has this address.
    pub(crate) fn have(&mut self, cx: &Context, address: IpAddr) {
        self.networks.have(cx, address);
    }

    /// In which networks this access point saw the others.
    pub(crate) fn networks(&self) -> &Networks {
        &self.networks
    }

    /// This access point leaves for good: it is a voter no longer than it must be.
    ///
    /// The voters are told at once: others that leave at the same time choose replicas that stay.
    pub(crate) fn leave(&mut self, now: Moment) {
        if !self.standing.leaving {
            self.standing.leaving = true;
            self.lease.renew_now(now);
        }
    }
}

/// Leases.
impl Voting {
    /// The present list.
    pub(crate) fn list(&self) -> Option<&VoterList> {
        self.lists.current()
    }

    /// A laboratory's liar: from now on second claims at an epoch are accepted, too, or are no more. What else is left out stays so.
    pub(crate) fn accept_twice(&mut self, twice: bool) {
        if matches!(self.times.without, None | Some(LeftOut::OneVoteAnEpoch)) {
            self.times.without = twice.then_some(LeftOut::OneVoteAnEpoch);
        }
    }

    /// Until when it holds its lease, and why it has none afterwards.
    pub(crate) fn lease(&self, me: AccessPoint) -> (Option<Moment>, NoLease) {
        let until = if self.times.without == Some(LeftOut::Lease) { Some(Moment(u64::MAX)) } else { self.lease.until() };
        let why_not = match self.standing.confirmation.replaced_by() {
            Some(by) => NoLease::Replaced(by),
            None if self.standing.lost.contains(&me) => NoLease::Lost,
            None if self.standing.confirmation.is_asked_for()
                && self.lists.current().is_some_and(|list| self.lease.is_refused_by_enough(list)) =>
            {
                NoLease::Unconfirmed
            }
            None => self.lease.why_not(self.lists.current()),
        };
        (until, why_not)
    }

    /// Whether the lease is over because the boot clock may have stood still.
    pub(crate) fn compare_clocks(&mut self, now: Now) -> bool {
        let over = self.lease.compare_clocks(now);
        if over {
            self.process.clock_stood_still(now.moment);
        }
        over
    }

    /// The term of its lease: what it owns by claims of earlier terms may be others' by now.
    pub(crate) fn term(&self) -> u64 {
        self.lease.term()
    }

    /// Whether another process with our key may hold the lease: what we say of ourselves would be taken for its word.
    pub(crate) fn may_be_a_copy(&self, now: Moment) -> bool {
        !self.lease.holds(now) && (!self.process.is_sole() || self.lease.is_in_use())
    }

    /// Whether another process with our key holds the lease. A member that is connected with this one is to reach that one.
    pub(crate) fn is_a_copy(&self, now: Moment, me: AccessPoint) -> bool {
        !self.lease.holds(now) && self.lists.current().is_some_and(|list| self.lease.is_surely_in_use(now, me, list))
    }

    /// How many votes a claim needs.
    pub(super) fn quorum(&self, list: &VoterList) -> usize {
        if self.times.without == Some(LeftOut::Quorum) { 1 } else { list.quorum() }
    }

    /// How many claims of ours are being voted on.
    pub(crate) fn open_proposals(&self) -> usize {
        self.proposals.len()
    }

    /// How many accepted claims this voter keeps.
    pub(crate) fn rows(&self) -> usize {
        self.voter.rows()
    }

    /// How many of them that are not known to be published are of one owner at most.
    pub(crate) fn most_rows_of_one(&self) -> usize {
        self.voter.most_rows_of_one()
    }

    /// Of how many owners this voter keeps the last ended term.
    pub(crate) fn ended_terms(&self) -> usize {
        self.voter.ended_terms()
    }

    /// The bytes of what must be handed to the next list; if it is more than may be, not how much more.
    pub(crate) fn decided_bytes(&self) -> usize {
        self.voter.decided_bytes()
    }

    /// Of how many owners this voter knows who has what they recorded.
    pub(crate) fn replica_sets(&self) -> usize {
        self.voter.replica_sets()
    }

    /// How many lists it keeps.
    pub(crate) fn list_count(&self) -> usize {
        self.lists.len()
    }

    /// Whether this access point votes by the present list.
    pub(crate) fn votes(&self, now: Moment, me: AccessPoint) -> bool {
        let number = self.lists.number();
        let alone = self.times.without == Some(LeftOut::Quorum);
        let knows = self.standing.installed >= number && self.standing.confirmation.is_given() && !self.standing.lost.contains(&me);
        number > 0 && knows && (alone || self.process.votes(now, number))
    }

    /// Whether this access point takes part in the choice of the next list. A voter that has lost its disk does not know what it accepted, and
    /// leaves it to the others to renew the list. If they cannot, because as many have lost theirs, it takes part after all: when it has been
    /// here for long enough for every lease that it may have renewed to be over, and for the others to have tried, and every other voter
    /// that is not lost answers, none of them by a later list. So what it forgot was either in force, or is known to another.
    pub(super) fn may_choose(&self, now: Moment, me: AccessPoint) -> bool {
        let forgot = self.is_empty_handed(me) && self.standing.confirmation.is_given() && !self.standing.lost.contains(&me);
        self.votes(now, me) || forgot && self.process.votes(now, self.lists.number()) && self.have_all_answered(now, me)
    }

    /// Whether this access point is a voter that does not know what it decided: its disk was lost.
    fn is_empty_handed(&self, me: AccessPoint) -> bool {
        self.standing.installed < self.lists.number() && self.lists.current().is_some_and(|list| list.contains(&me))
    }

    fn have_all_answered(&self, now: Moment, me: AccessPoint) -> bool {
        let Some(list) = self.lists.current() else { return false };
        let mut others = list.voters.iter().filter(|voter| **voter != me && !self.standing.lost.contains(voter));
        let patient = now.since(self.standing.adopted_at) >= 4 * self.times.patience();
        patient && others.all(|voter| self.lease.is_answered_by(now, voter))
    }

    /// Whether this access point is on the list, and others are there that may be on it.
    pub(crate) fn is_listed(&self, me: AccessPoint, members: &Membership) -> bool {
        members.live().len() > 1 && self.lists.current().is_some_and(|list| list.contains(&me))
    }

    /// Whether this access point, which leaves, is a voter without which the others could not agree on the list that is better without it.
    pub(crate) fn is_needed(&self, cx: &Context, members: &Membership) -> bool {
        let live = members.live();
        let listed = self.lists.current().filter(|list| live.len() > 1 && list.contains(&cx.me));
        listed.is_some_and(|list| self.ballots.is_sealed(list.number) || self.better(cx.now.moment, cx.me, live, list).is_some())
    }

    /// Whether this claim, or the one it releases, was accepted by enough voters; none if their list is not known here yet.
    pub(crate) fn proves(&self, claim: &Claim, proof: &SignedClaim) -> Option<bool> {
        let proven = self.lists.proves(claim, proof);
        if self.times.without == Some(LeftOut::Quorum) { proven.map(|_| proof.votes.is_some()) } else { proven }
    }
}

/// What is done again and again.
impl Voting {
    /// `is_idle` is whether no server is to be asked before a lease that is renewed now would end.
    pub(crate) fn tick(&mut self, cx: &mut Context, others: VotingReads<'_>, is_idle: bool) {
        let now = cx.now.moment;
        self.note_process(cx);
        let Some(list) = self.lists.current().cloned() else { return };
        self.confirm_list(cx, others, &list);
        let Some(list) = self.lists.current().cloned() else { return };
        if self.under_way.next_term.is_none()
            && let Some(number) = self.lease.next_renewal(now, list.number, self.pace(is_idle))
        {
            self.renew_lease(cx, &list, number);
        }
        self.tick_proposals(cx, others, &list);
        self.begin_anew_if_all_are_lost(cx, others, &list);
        if list.contains(&cx.me) && self.may_choose(now, cx.me) {
            self.tick_ballots(cx, others, &list);
        }
        self.go_on_installing(cx, others);
        for (voter, request) in self.ballots.due(now, &list, &self.standing.lost) {
            self.ask(cx, voter, Pending::Ballot, Request::Ballot(Box::new(request)));
        }
        self.settle(cx, others);
    }

    fn pace(&self, is_idle: bool) -> Pace {
        match is_idle {
            _ if !self.keeping.is_settled() => Pace::Soon,
            true => Pace::Idle,
            false => Pace::Usual,
        }
    }

    fn renew_lease(&mut self, cx: &mut Context, list: &VoterList, number: u64) {
        let now = cx.now.moment;
        self.process.asks(now, number, list.number);
        self.vote_as_sole(cx, number, None);
        let renewal = Renewal {
            list: list.number,
            term: self.lease.term(),
            incarnation: self.process.incarnation,
            process: self.process.number,
            ended: self.process.ended,
            sole: self.process.is_sole(),
            installed: self.standing.installed,
            known: self.keeping.last(),
            replicas: None,
            leaving: self.standing.leaving,
        };
        let mut asked = Vec::new();
        for voter in &list.voters {
            if self.lease.holds(now) && self.lease.is_silent(now, voter) && !number.is_multiple_of(SILENT_ASKED_EVERY) {
                continue;
            }
            asked.push(*voter);
            // Who has no lease has nothing recorded that voters must know of.
            let replicas = self.keeping.due(voter).filter(|_| self.lease.holds(now));
            let renewal = Renewal { replicas, sole: self.process.is_sole_to(voter), ..renewal.clone() };
            self.ask(cx, *voter, Pending::Renew(number), Request::Renew(renewal));
        }
        cx.signal(Signal::LeaseAsked(asked));
    }

    /// A voter answered a renewal, or one is sent: whether this process votes, as the only one with its key. What one decided in whose place it
    /// may vote is not known here, as if the disk were lost.
    pub(super) fn vote_as_sole(&mut self, cx: &mut Context, number: u64, answer: Option<(AccessPoint, &Renewed)>) {
        let Some(list) = self.lists.current() else { return };
        let asked = process::Asked { list, me: cx.me, lost: &self.standing.lost };
        match self.process.answered(cx.now.moment, &self.times, number, asked, answer) {
            process::Step::Nothing => {}
            process::Step::Contested => {
                let from = answer.map(|(from, _)| from);
                from.into_iter().for_each(|from| self.store(cx, vec![records::contested(from)], vec![Durable::Contested(from)]));
            }
            process::Step::Votes(votes) => {
                let mut records: Vec<_> = votes.settled.into_iter().map(records::not_contested).collect();
                if votes.forgets {
                    self.standing.installed = 0;
                    self.under_way.installing = None;
                    records.extend([records::installed(0), records::not_installing()]);
                }
                self.store(cx, records, Vec::new());
                if votes.begins {
                    self.lease.renew_now(cx.now.moment);
                }
            }
        }
    }

    /// What is on disk about this process.
    fn note_process(&mut self, cx: &mut Context) {
        if let Some(stored) = self.process.note() {
            self.store(cx, vec![records::processes(stored)], Vec::new());
        }
    }

    /// If an operator declared all voters lost, the first of the living begins the next list alone; who was not told so does not adopt it.
    fn begin_anew_if_all_are_lost(&mut self, cx: &mut Context, others: VotingReads<'_>, list: &VoterList) {
        let lost = list.voters.iter().all(|voter| self.standing.lost.contains(voter));
        if !lost || self.standing.lost.contains(&cx.me) || others.members.live().first() != Some(&cx.me) {
            return;
        }
        let age = self.age(cx.now.moment, list) / 1_000;
        let next = VoterList { number: list.number + 1, voters: vec![cx.me], age };
        let (ballot, installed) = (Ballot { round: 0, proposer: cx.me }, vec![sign_installed(&next, &cx.key)]);
        let signed = SignedList { list: next, ballot, accepted: Vec::new(), installed };
        self.standing.installed = signed.list.number;
        let record = records::installed(signed.list.number);
        if self.adopt(cx, &signed, vec![record]) {
            self.tell_list(cx, others, &signed);
        }
    }

    /// Tells all members of a list that is in force from now on.
    pub(super) fn tell_list(&mut self, cx: &mut Context, others: VotingReads<'_>, signed: &SignedList) {
        let me = cx.me;
        for member in others.members.live().iter().copied().filter(|member| *member != me) {
            self.tell(cx, member, Request::Ballot(Box::new(BallotRequest::Adopt(signed.clone()))));
        }
    }

    /// Two claims to one subnet at one epoch were published, with these votes: who voted for both lied.
    pub(crate) fn compare_votes(
        &mut self,
        cx: &mut Context,
        others: VotingReads<'_>,
        claim: (Subnet, u64),
        one: (AccessPoint, &Votes),
        other: (AccessPoint, &Votes),
    ) {
        if one.0 != other.0 && one.1.list == other.1.list {
            let proofs = DoubleVote::among(claim.0, claim.1, one, other);
            proofs.into_iter().for_each(|proof| self.convict(cx, others, proof));
        }
    }

    /// A voter is proven to have lied: it is as if silent for ever, and every member is told.
    pub(super) fn convict(&mut self, cx: &mut Context, others: VotingReads<'_>, proof: DoubleVote) {
        let who = proof.voter();
        let voted = self.lists.get(proof.list()).is_some_and(|list| list.contains(&who));
        if self.standing.liars.contains_key(&who) || self.standing.liars.len() >= MAX_LIARS || !voted || !proof.holds() {
            return;
        }
        cx.refuse("votes for two owners at one epoch");
        self.standing.liars.insert(who, proof.clone());
        self.store(cx, vec![records::double_vote(&proof)], Vec::new());
        self.tell_of_liar(cx, others, proof);
    }

    fn tell_of_liar(&mut self, cx: &mut Context, others: VotingReads<'_>, proof: DoubleVote) {
        let (me, liar) = (cx.me, proof.voter());
        for member in others.members.live().iter().copied().filter(|member| *member != me && *member != liar) {
            self.tell(cx, member, Request::DoubleVote(Box::new(proof.clone())));
        }
    }

    /// Forgets what every member has heard of long ago.
    pub(crate) fn tidy(&mut self, cx: &mut Context, others: VotingReads<'_>) {
        let mut records = Vec::new();
        // Whoever has accepted the next list may have no lease, as nobody renews any; others answer it all the same, or it would not vote.
        let in_touch = self.lease.holds(cx.now.moment) || self.ballots.is_sealed(self.lists.number());
        let attends = in_touch && self.votes(cx.now.moment, cx.me);
        self.voter.tidy(cx.now.moment, attends, others.register, &mut records);
        self.proposals.tidy(cx.now.moment, |subnet| others.register.latest(subnet).map_or(0, |held| held.claim.epoch));
        self.store(cx, records, Vec::new());
        // Who was not told, or was not there, is told as long as it matters.
        let listed = |who: &AccessPoint| self.lists.current().is_some_and(|list| list.contains(who));
        let proofs: Vec<_> = self.standing.liars.iter().filter(|(who, _)| listed(who)).map(|(_, proof)| proof.clone()).collect();
        proofs.into_iter().for_each(|proof| self.tell_of_liar(cx, others, proof));
    }

    pub(super) fn tick_proposals(&mut self, cx: &mut Context, others: VotingReads<'_>, list: &VoterList) {
        let now = cx.now.moment;
        if self.lease.holds(now) || self.times.without == Some(LeftOut::Lease) {
            let (number, term) = (list.number, self.lease.term());
            for (voter, claims) in self.proposals.due(now, list) {
                let asked: Vec<_> = claims.iter().filter_map(|proof| proof.read().ok()).map(|claim| (claim.subnet, claim.epoch)).collect();
                let released = |subnet: &Subnet| others.register.latest(subnet).filter(|held| held.claim.released);
                let releases = claims.iter().filter_map(|proof| released(&proof.read().ok()?.subnet)).map(|held| held.proof()).collect();
                let parts = self.proposals.parts_of(&asked);
                let proposal = Proposal { list: number, term, process: self.process.number, claims, releases, parts };
                self.ask(cx, voter, Pending::Propose { list: number, term, claims: asked }, Request::Propose(proposal));
            }
        }
        let live = others.members.live();
        let decided = self.proposals.decide(now, list, (self.quorum(list), self.lease.term()), cx.me, live);
        for (voter, claims) in decided.withdrawn {
            self.tell(cx, voter, Request::Withdraw { process: self.process.number, claims });
        }
        if !decided.given_up.is_empty() {
            cx.signal(Signal::ClaimsGivenUp(decided.given_up));
        }
        self.under_way.accepted.extend(decided.accepted);
    }

    fn tick_ballots(&mut self, cx: &mut Context, others: VotingReads<'_>, list: &VoterList) {
        let now = cx.now.moment;
        let live = others.members.live();
        let gone = self.gone(now, cx.me, list);
        let lives = |voter: &&AccessPoint| live.binary_search(voter).is_ok() && !gone.contains(voter);
        let rank = list.voters.iter().filter(lives).take_while(|voter| **voter != cx.me).count();
        let (candidates, never) = self.eligible(now, cx.me, live, list, &gone);
        let better = self.ballots.plan().better(list, Gone { now: &gone, for_good: &never }, &candidates, &self.networks);
        let better = better.filter(|next| self.can_be_chosen(now, cx.me, list, next));
        let better = better.or_else(|| self.has_lost_disk(now, cx.me, list).then(|| list.voters.clone()));
        let timely = better.filter(|voters| self.is_timely(now, list, voters));
        let age = self.age(now, list) / 1_000;
        let next = || Some(VoterList { number: list.number + 1, voters: timely?, age });
        self.ballots.tick(now, list, cx.me, rank as u64, next);
    }

    /// Voters that do not count at present.
    fn gone(&self, now: Moment, me: AccessPoint, list: &VoterList) -> BTreeSet<AccessPoint> {
        let silent = |voter: &AccessPoint| {
            let silent = self.voter.silent_for(now, voter) >= self.times.forget_after;
            *voter != me && (silent || self.voter.is_empty_handed(now, voter, list.number))
        };
        list.voters.iter().filter(|voter| self.is_out(me, voter) || silent(voter)).copied().collect()
    }

    /// The voters of a better list, if there is one.
    fn better(&self, now: Moment, me: AccessPoint, live: &[AccessPoint], list: &VoterList) -> Option<Vec<AccessPoint>> {
        let gone = self.gone(now, me, list);
        let (candidates, never) = self.eligible(now, me, live, list, &gone);
        plan::better(list, Gone { now: &gone, for_good: &never }, &candidates, &self.networks)
    }

    /// Who may become a voter in place of those that are gone, the best first; and which voters of the list never come back.
    fn eligible(
        &self,
        now: Moment,
        me: AccessPoint,
        live: &[AccessPoint],
        list: &VoterList,
        gone: &BTreeSet<AccessPoint>,
    ) -> (Vec<AccessPoint>, BTreeSet<AccessPoint>) {
        let candidates = self.candidates(now, me, list, gone, |who| live.binary_search(who).is_ok() && !self.is_out(me, who));
        (candidates, list.voters.iter().filter(|voter| self.is_out(me, voter)).copied().collect())
    }

    /// Whether the voters of the present list that answer may choose these. Where they may not, because too many have lost their disks, the
    /// list is renewed with all of them.
    fn can_be_chosen(&self, now: Moment, me: AccessPoint, list: &VoterList, next: &[AccessPoint]) -> bool {
        let silent = |voter: &AccessPoint| self.voter.silent_for(now, voter) >= self.times.forget_after;
        let answers = |voter: &&AccessPoint| **voter == me || !silent(voter) && !self.voter.is_empty_handed(now, voter, list.number);
        let next = VoterList { number: list.number + 1, voters: next.to_vec(), age: list.age };
        list.may_choose(&mut list.voters.iter().filter(answers), &next, &self.standing.lost)
    }

    /// For how long the swarm has existed, in milliseconds.
    fn age(&self, now: Moment, list: &VoterList) -> Millis {
        list.age.saturating_mul(1_000).saturating_add(now.since(self.standing.adopted_at))
    }

    /// Whether a member has said that it leaves for good, as far as we hear that as a voter.
    fn leaves(&self, who: &AccessPoint) -> bool {
        self.voter.heard_of(who).is_some_and(|heard| heard.leaving)
    }

    /// Whether it said so lately: who was a voter hears no more of who came back.
    pub(crate) fn is_about_to_leave(&self, now: Moment, who: &AccessPoint) -> bool {
        self.leaves(who) && self.voter.heard_of(who).is_some_and(|heard| now.since(heard.last) < self.times.patience())
    }

    /// Whether an access point is no voter any more, or none for much longer, for another reason than that it is silent.
    fn is_out(&self, me: AccessPoint, who: &AccessPoint) -> bool {
        let Standing { lost, left, liars, leaving, .. } = &self.standing;
        let leaves = if *who == me { *leaving } else { self.leaves(who) };
        lost.contains(who) || left.contains(who) || liars.contains_key(who) || leaves
    }

    /// Whether the present list has been in force for long enough to be followed by one of these voters. Each change may give all owners
    /// their full time again before anybody may take over from them, so lists that follow each other at once would keep the subnets of the
    /// dead from everybody. Only who does not vote any more is taken off at once; and as voters may say ever again that they leave, one
    /// list at most follows at once because of those that do.
    fn is_timely(&self, now: Moment, list: &VoterList, next: &[AccessPoint]) -> bool {
        let leaves = |who: &AccessPoint| self.standing.left.contains(who) || self.leaves(who);
        let is_rid_of_leavers = !self.standing.hurried && list.voters.iter().any(|voter| !next.contains(voter) && leaves(voter));
        self.need_not_wait(now, list, next) || is_rid_of_leavers
    }

    /// Whether a list of these voters may follow the present one whoever leaves.
    pub(super) fn need_not_wait(&self, now: Moment, list: &VoterList, next: &[AccessPoint]) -> bool {
        let Standing { lost, liars, adopted_at, .. } = &self.standing;
        let is_out = |who: &AccessPoint| lost.contains(who) || liars.contains_key(who);
        // Since when it is in force is not known of a list that was known at the start.
        let settled = *adopted_at == self.process.started || now.since(*adopted_at) >= 2 * self.times.patience();
        settled || list.voters.len() < plan::MIN_VOTERS || list.voters.iter().any(|voter| !next.contains(voter) && is_out(voter))
    }

    /// Who may become a voter, the longest leased first. Of newcomers only so many may as do not stop the voters that are heard, and those that have
    /// held leases for long, when they vanish together. If nobody would be left, whoever holds a lease may.
    fn candidates(
        &self,
        now: Moment,
        me: AccessPoint,
        list: &VoterList,
        gone: &BTreeSet<AccessPoint>,
        may: impl Fn(&AccessPoint) -> bool,
    ) -> Vec<AccessPoint> {
        let age = self.age(now, list);
        let there = list.voters.len() - gone.len();
        let (needed, long) = if there == 0 { (0, 0) } else { (self.tenure(age, list.voters.len()), self.long(age)) };
        let patience = self.times.patience();
        let heard = self.voter.heard().filter(|(who, heard)| now.since(heard.last) < patience && !list.contains(who) && may(who));
        let mut tenured: Vec<_> = heard.map(|(who, heard)| (heard.since, *who)).filter(|(since, _)| now.since(*since) >= needed).collect();
        tenured.sort_unstable();
        let longest = tenured.iter().filter(|(since, _)| now.since(*since) >= long).count();
        let heard = list.voters.iter().filter(|voter| !gone.contains(voter) && self.is_heard(now, me, voter)).count();
        tenured.truncate(longest + plan::most_newcomers(heard + longest));
        tenured.into_iter().map(|(_, who)| who).collect()
    }

    /// For how long those have held leases at least who do not count as newcomers: a day, or as long as those who began the swarm.
    fn long(&self, age: Millis) -> Millis {
        self.tenure(age + age / 2, plan::FEW)
    }

    /// Whether a voter holds its lease, as far as this one knows: it can decide at present.
    fn is_heard(&self, now: Moment, me: AccessPoint, voter: &AccessPoint) -> bool {
        *voter == me || self.voter.heard_of(voter).is_some_and(|heard| now.since(heard.last) < self.times.patience())
    }

    /// Who has started again does not know how old the swarm has become, and takes nobody for one of those who began it.
    fn tenure(&self, age: Millis, voters: usize) -> Millis {
        let Times { least_tenure, forget_after, .. } = self.times;
        let least = if self.standing.resumed { least_tenure.max(forget_after) } else { least_tenure };
        plan::tenure_needed(age, voters, least, forget_after)
    }

    /// Whether a voter of this list has lost its disk and is here again: it votes again once the list is renewed, which it is for another
    /// voter once an hour at most.
    fn has_lost_disk(&self, now: Moment, me: AccessPoint, list: &VoterList) -> bool {
        let Standing { renewed, .. } = &self.standing;
        if self.is_empty_handed(me) && self.may_choose(now, me) {
            return true;
        }
        let recent = renewed.is_some_and(|at| now.since(at) < MIN_RENEWAL_INTERVAL);
        let back = |voter: &AccessPoint| {
            let heard = self.voter.heard_of(voter).is_some_and(|heard| now.since(heard.last) < self.times.patience());
            heard && self.voter.is_empty_handed(now, voter, list.number) && !self.is_out(me, voter)
        };
        !recent && list.voters.iter().any(|voter| *voter != me && back(voter))
    }

    /// Whether this voter could have proposed this list itself, with some latitude: others have not seen what it saw. So one that lies alone
    /// neither replaces voters that are there nor makes voters of its friends, or of more than one in a network.
    pub(super) fn agrees(&self, now: Moment, me: AccessPoint, proposer: AccessPoint, next: &VoterList) -> bool {
        let Some(list) = self.lists.current() else { return false };
        let age = self.age(now, list);
        let of_age = next.is_well_formed() && next.age.saturating_mul(1_000) >= (age - age / 16).saturating_sub(AGE_LATITUDE);
        let gone: BTreeSet<_> =
            list.voters.iter().filter(|voter| self.may_be_gone(now, me, voter) || **voter == proposer).copied().collect();
        let removed =
            list.voters.iter().filter(|voter| !next.contains(voter) && !gone.contains(voter) && !self.is_surplus(list, next, voter));
        let removed = removed.count();
        let added: Vec<_> = next.voters.iter().filter(|voter| !list.contains(voter)).collect();
        // A smaller list of odd size may have to do without one that is there.
        let fair = removed == 0 || removed == 1 && added.is_empty();
        let timely = self.is_timely(now, list, &next.voters);
        let different = next.voters != list.voters || self.has_lost_disk(now, me, list);
        let bereft = list.voters.iter().all(|voter| gone.contains(voter));
        let leaves: BTreeSet<_> = gone.into_iter().filter(|who| !next.contains(who)).collect();
        let out: BTreeSet<_> = list.voters.iter().filter(|voter| self.is_out(me, voter)).copied().collect();
        let size = if next.voters.len() > plan::FEW { plan::FEW } else { list.voters.len() };
        let needed = if bereft { 0 } else { self.tenure(age, size) };
        let stay = next.voters.iter().filter(|who| list.contains(who) && self.is_heard(now, me, who)).count();
        let long = self.long(age);
        let newcomers = added.iter().filter(|who| !self.may_be_voter(now, long, me, who)).count();
        let borne = bereft || newcomers <= plan::most_newcomers(stay + added.len() - newcomers);
        of_age
            && fair
            && timely
            && borne
            && different
            && (plan::is_no_worse(list, &leaves, &next.voters) || plan::is_rid_of(&out, list, &leaves, &next.voters))
            && added.into_iter().all(|who| self.may_be_voter(now, needed, me, who) && self.has_place(next, who))
    }

    /// Whether a newcomer may be a voter beside the others of this list, as far as this voter saw where they are.
    fn has_place(&self, next: &VoterList, newcomer: &AccessPoint) -> bool {
        let mut others = next.voters.iter().filter(|other| *other != newcomer);
        !self.networks.is_crowded(newcomer, next.voters.len(), &next.voters) && !others.any(|other| self.networks.excludes(newcomer, other))
    }

    /// Whether a voter may make room for another although it is there: one that stays is in the same network, or it is one of too many of
    /// one autonomous system.
    fn is_surplus(&self, list: &VoterList, next: &VoterList, voter: &AccessPoint) -> bool {
        next.voters.iter().any(|other| self.networks.together(voter, other))
            || self.networks.is_crowded(voter, next.voters.len(), &list.voters)
    }

    fn may_be_gone(&self, now: Moment, me: AccessPoint, voter: &AccessPoint) -> bool {
        let silent = || {
            let forget_after = self.times.forget_after;
            self.voter.silent_for(now, voter) >= forget_after - forget_after / 4
                || self.voter.is_empty_handed(now, voter, self.lists.number())
        };
        self.is_out(me, voter) || *voter != me && silent()
    }

    /// Whether an access point has held leases for long enough, or for nearly as long as we can tell.
    fn may_be_voter(&self, now: Moment, needed: Millis, me: AccessPoint, who: &AccessPoint) -> bool {
        let Some(heard) = self.voter.heard_of(who).filter(|heard| now.since(heard.last) < self.times.patience()) else { return false };
        let held = now.since(heard.since);
        let as_long_as_we = heard.since.since(self.process.started) <= self.times.patience() && held >= self.times.patience();
        let long = held >= needed - needed / 4 || as_long_as_we;
        long && !self.is_out(me, who)
    }

    pub(super) fn ask(&mut self, cx: &mut Context, to: AccessPoint, pending: Pending, request: Request) {
        if to == cx.me {
            let question = cx.number();
            cx.pending.insert(question, pending);
            self.own.questions.push_back((question, request));
        } else {
            cx.ask(to, pending, request);
        }
    }

    pub(super) fn tell(&mut self, cx: &mut Context, to: AccessPoint, request: Request) {
        if to == cx.me {
            self.own.questions.push_back((QuestionId::NO_ANSWER, request));
        } else {
            cx.commands.push_back(Command::Peers(PeerCommand::Ask { to, question: QuestionId::NO_ANSWER, request }));
        }
    }

    /// Answers what this access point asks itself, as a voter, and takes these answers in.
    pub(crate) fn settle(&mut self, cx: &mut Context, others: VotingReads<'_>) {
        loop {
            if let Some((question, request)) = self.own.questions.pop_front() {
                self.asked(cx, others, Asker::Own(question), request);
            } else if let Some((question, answer)) = self.own.answers.pop_front() {
                if let Some(pending) = cx.pending.remove(&question) {
                    self.answered(cx, others, cx.me, pending, Some(answer));
                }
            } else {
                return;
            }
        }
    }
}

/// Claims of ours.
impl Voting {
    /// These claims of ours are to be voted on. `part` if one of them is within another's subnet.
    pub(crate) fn propose(&mut self, cx: &mut Context, others: VotingReads<'_>, claims: Vec<SignedClaim>, part: Option<Box<SignedPart>>) {
        self.proposals.propose(cx.now.moment, claims, part, &cx.key);
        if let Some(list) = self.lists.current().cloned() {
            self.tick_proposals(cx, others, &list);
        }
    }
}
