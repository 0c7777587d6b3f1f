//! Questions of members to this access point as a voter: leases, votes, ballots, lists.

use super::{
    asker::Asker,
    handed_over::{self, MAX_DECIDED_BYTES},
    installing::Installing,
    machine::{Durable, Voting, VotingReads},
    records::{self, VotingRecord},
    voter::{Asked, Refusal},
};
use crate::{context::Context, membership::LeftOut};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::SignedClaim,
    ids::QuestionId,
    message::{MAX_VOTER_LISTS, Proposal, Request, Response},
    subnet::Subnet,
    time::Millis,
    vote::{
        AcceptedOwner, Ballot, BallotAnswer, BallotRequest, HandedOver, MAX_PROPOSED, Renewal, Renewed, SignedList, SignedPart,
        SignedReplicas, Vote, Voted, VoterList, liars_borne, sign_accepted, sign_installed,
    },
};

/// What is counted when what was decided does not fit into the message that would hand it over.
pub(super) const TOO_MUCH: &str = "changes of the voters' list with more accepted claims than a message holds";

/// What is counted when a voter tells of more that was decided than could be handed on.
pub(super) const TOO_LONG: &str = "words of voters before that are too long";

/// What no registry gave to one holder is not claimed at once if it is wider than this. Members delegate what is registered, or a part of it, and
/// where nothing is registered less: whoever claims more keeps addresses from all others that nobody has found a server at.
const MIN_UNREGISTERED_V4: u8 = 16;
const MIN_UNREGISTERED_V6: u8 = 32;

/// When a voter that lacks what those before had decided is brought it again.
const BRING_AGAIN: Millis = 30_000;

/// Whose claims are voted on.
#[derive(Clone, Copy)]
struct Proposed<'a> {
    from: AccessPoint,
    term: u64,
    process: u64,
    parts: &'a [SignedPart],
}

/// Whether nobody can have been awarded as much at once. Editions of the hierarchy differ, so smaller subnets are not looked up.
fn is_too_wide(hierarchy: &Hierarchy, subnet: Subnet) -> bool {
    let least = if subnet.first().is_ipv4() { MIN_UNREGISTERED_V4 } else { MIN_UNREGISTERED_V6 };
    subnet.length() < least && hierarchy.position(subnet).is_none()
}

/// The place of a set of replicas among those that are told; none if too many are.
fn place_of(set: SignedReplicas, told: &mut Vec<SignedReplicas>) -> Option<u16> {
    let known = told.iter().position(|known| *known == set);
    if known.is_none() && told.len() < MAX_PROPOSED {
        told.push(set);
        return u16::try_from(told.len() - 1).ok();
    }
    u16::try_from(known?).ok()
}

/// What members ask.
impl Voting {
    pub(crate) fn asked(&mut self, cx: &mut Context, others: VotingReads<'_>, asker: Asker, request: Request) {
        let from = match asker {
            Asker::Member(from, _) => from,
            Asker::Own(_) => cx.me,
        };
        match request {
            Request::Renew(renewal) => {
                let mut records = Vec::new();
                self.bring_what_was_decided(cx, others, from, &renewal);
                let answer = Durable::Answer(asker, Response::Renewed(self.renew(cx, others, from, &renewal, &mut records)));
                // Only what is new about its replicas waits for the disk.
                if records.is_empty() {
                    return self.durable(cx, answer);
                }
                self.store(cx, records, vec![Durable::Replicas(from, renewal.known), answer]);
            }
            Request::Propose(proposal) => self.proposed(cx, others, asker, from, proposal),
            Request::Withdraw { process, claims } => {
                let mut records = Vec::new();
                self.voter.withdraw(from, process, &claims, &mut records);
                self.store(cx, records, Vec::new());
                self.answer(cx, asker, Response::Noted);
            }
            Request::Ballot(request) => self.balloted(cx, others, asker, from, *request),
            Request::VoterLists(after) => {
                let lists = self.lists.after(after, MAX_VOTER_LISTS);
                self.answer(cx, asker, Response::VoterLists(lists));
            }
            Request::DoubleVote(proof) => {
                self.convict(cx, others, *proof);
                self.answer(cx, asker, Response::Noted);
            }
            _ => self.answer(cx, asker, Response::Refused("this is not for the voters".to_owned())),
        }
    }

    fn renew(
        &mut self,
        cx: &mut Context,
        others: VotingReads<'_>,
        from: AccessPoint,
        renewal: &Renewal,
        records: &mut Vec<VotingRecord>,
    ) -> Renewed {
        let number = self.lists.number();
        self.catch_up(cx, from, renewal.list);
        // Whoever was declared lost is not if it is here before the list is changed, nor once it goes by a list that was chosen without it.
        let back = self.lists.current().is_some_and(|list| list.number == renewal.list) && !self.ballots.is_sealed(number);
        if back && from != cx.me && self.standing.lost.remove(&from) {
            records.push(records::not_lost(from));
        }
        match self.voter.renew(cx.now.moment, from, renewal, others.register) {
            Renewed::Granted(_) if renewal.list != number => Renewed::OtherList(number),
            Renewed::Granted(_) if !self.votes(cx.now.moment, cx.me) || self.ballots.is_sealed(number) => Renewed::Changing,
            Renewed::Granted(mut grant) => {
                let is_new = self.voter.note_replicas(from, renewal, records);
                grant.stored = if is_new { renewal.known } else { self.voter.stored_number(&from) };
                let unknown = self.voter.replicas_of(&from).filter(|set| set.number() > renewal.known);
                grant.replicas = unknown.cloned().map(Box::new);
                Renewed::Granted(grant)
            }
            other => other,
        }
    }

    /// A voter that was not there when the list came into force, nor soon after, votes once it has what the voters before had decided: those
    /// that vote bring it that. Not to one that has voted by this list, as its disk or its signature tells: it would not know any more what
    /// it accepted. Nor to one that knows of no list before: its disk may have been lost.
    fn bring_what_was_decided(&mut self, cx: &mut Context, others: VotingReads<'_>, to: AccessPoint, renewal: &Renewal) {
        let now = cx.now.moment;
        let Some(signed) = self.lists.signed().filter(|signed| signed.list.contains(&to) && signed.list.number == renewal.list) else {
            return;
        };
        let number = signed.list.number;
        let lacks = (1..number).contains(&renewal.installed);
        let voted =
            signed.installed.iter().any(|by| by.voter == to) || self.voter.heard_of(&to).is_some_and(|heard| heard.installed >= number);
        let lately = self.under_way.brought.get(&to).is_some_and(|at| now.since(*at) < BRING_AGAIN);
        if to == cx.me || !lacks || voted || lately || !self.votes(cx.now.moment, cx.me) || self.ballots.is_sealed(number) {
            return;
        }
        if !self.voter.can_hand_over() {
            return cx.refuse(TOO_MUCH);
        }
        let request = BallotRequest::Install { list: signed.clone(), before: self.voter.hand_over(true, others.register) };
        self.under_way.brought.insert(to, now);
        self.tell(cx, to, Request::Ballot(Box::new(request)));
    }

    fn proposed(&mut self, cx: &mut Context, others: VotingReads<'_>, asker: Asker, from: AccessPoint, proposal: Proposal) {
        let number = self.lists.number();
        self.catch_up(cx, from, proposal.list);
        let refusal = if proposal.list != number {
            Some(Voted::OtherList(number))
        } else if !self.votes(cx.now.moment, cx.me) || self.ballots.is_sealed(number) {
            Some(Voted::Later)
        } else if proposal.claims.len() > MAX_PROPOSED {
            cx.refuse("proposals of too many claims");
            Some(Voted::Later)
        } else if !self.voter.holds_lease(cx.now.moment, &from, proposal.term, proposal.process) {
            Some(Voted::NoLease)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return self.answer(cx, asker, Response::Voted(refusal));
        }
        let (mut records, mut told) = (Vec::new(), Vec::new());
        let asked = Proposed { from, term: proposal.term, process: proposal.process, parts: &proposal.parts };
        let votes = proposal.claims.iter().map(|proof| self.vote(cx, others, asked, proof, (&mut records, &mut told))).collect();
        self.store(cx, records, vec![Durable::Answer(asker, Response::Voted(Voted::Votes(votes, told)))]);
    }

    fn vote(
        &mut self,
        cx: &mut Context,
        others: VotingReads<'_>,
        Proposed { from, term, process, parts }: Proposed<'_>,
        proof: &SignedClaim,
        (records, told): (&mut Vec<VotingRecord>, &mut Vec<SignedReplicas>),
    ) -> Vote {
        let claim = match proof.open() {
            Ok(claim) if claim.owner == from => claim,
            Ok(_) | Err(_) => {
                cx.refuse("proposals of invalid claims");
                return Vote::Invalid;
            }
        };
        let what = AcceptedOwner { list: self.lists.number(), subnet: claim.subnet, epoch: claim.epoch, owner: from, term };
        if self.times.without == Some(LeftOut::Honesty) {
            return Vote::Accepted(what.vote(&cx.key), Vec::new());
        }
        if others.register.latest(&claim.subnet).is_none() && is_too_wide(&cx.hierarchy, claim.subnet) {
            cx.refuse("first claims of more than any registry gave to one holder");
            return Vote::Invalid;
        }
        let part = parts.iter().find(|part| part.awarded.part == claim.subnet);
        match self.voter.judge(cx.now.moment, Asked { claim: &claim, part, term, process }, others.register, records) {
            Ok(()) => {
                let before = self.voter.replicas_before(&claim, others.register);
                Vote::Accepted(what.vote(&cx.key), before.into_iter().filter_map(|set| place_of(set, told)).collect())
            }
            Err(Refusal::Epoch(last)) if last == claim.epoch && self.times.without == Some(LeftOut::OneVoteAnEpoch) => {
                Vote::Accepted(what.vote(&cx.key), Vec::new())
            }
            Err(Refusal::Owned) => Vote::Owned,
            Err(Refusal::Full) => {
                cx.refuse("proposals of owners with too many claims that are not published");
                Vote::Owned
            }
            Err(Refusal::Epoch(last)) => Vote::Epoch(last),
            Err(Refusal::Invalid) => {
                cx.refuse("proposals of invalid claims");
                Vote::Invalid
            }
        }
    }

    fn balloted(&mut self, cx: &mut Context, others: VotingReads<'_>, asker: Asker, from: AccessPoint, request: BallotRequest) {
        let number = self.lists.number();
        let other_list = |voting: &mut Voting, cx: &mut Context| {
            voting.answer(cx, asker, Response::Ballot(Box::new(BallotAnswer::OtherList(number))));
        };
        // Only voters of the present list propose the next, each in its own name.
        let proposes = self.lists.current().is_some_and(|list| list.contains(&from)) && !self.standing.liars.contains_key(&from);
        let may = match &request {
            BallotRequest::Prepare { ballot, .. } | BallotRequest::Accept { ballot, .. } => {
                proposes && ballot.proposer == from && self.ballots.is_near(ballot)
            }
            BallotRequest::Install { list, .. } => proposes || list.list.contains(&from),
            BallotRequest::Adopt(_) | BallotRequest::Decided(_) => true,
        };
        if !may {
            cx.refuse("ballots of those who may not propose");
            return self.answer(cx, asker, Response::Ballot(Box::new(BallotAnswer::Noted)));
        }
        match request {
            BallotRequest::Prepare { number: of, ballot, wanted } => {
                self.catch_up(cx, from, of);
                if of != number || !self.may_choose(cx.now.moment, cx.me) {
                    return other_list(self, cx);
                }
                self.prepare(cx, asker, ballot, &wanted);
            }
            BallotRequest::Accept { ballot, list } => {
                self.catch_up(cx, from, list.number.saturating_sub(1));
                if list.number != number + 1 || !self.may_choose(cx.now.moment, cx.me) {
                    return other_list(self, cx);
                }
                self.accept(cx, others, asker, ballot, &list);
            }
            BallotRequest::Install { list, before } => self.install(cx, others, (asker, from), &list, before),
            BallotRequest::Decided(of) => self.asked_what_was_decided(cx, others, (asker, from), of),
            BallotRequest::Adopt(signed) => {
                self.catch_up(cx, from, signed.list.number.saturating_sub(1));
                self.told_list(cx, others, from, &signed);
                self.answer(cx, asker, Response::Ballot(Box::new(BallotAnswer::Noted)));
            }
        }
    }

    /// Promises to take part in no earlier ballot. Who accepted a list says so whatever is wanted now. The others promise nothing to a list
    /// that they would not accept: so it is not accepted by few, who would decide nothing any more until the others agree.
    fn prepare(&mut self, cx: &mut Context, asker: Asker, ballot: Ballot, wanted: &VoterList) {
        let number = self.lists.number();
        if !self.ballots.is_sealed(number) {
            if !self.voter.can_hand_over() {
                return self.hands_over_too_much(cx, asker);
            }
            if !self.goes_along(cx, ballot.proposer, wanted) {
                return self.answer(cx, asker, Response::Ballot(Box::new(BallotAnswer::Noted)));
            }
        }
        let answer = self.ballots.prepare(cx.now.moment, number, ballot);
        let record = records::ballot(self.ballots.state());
        self.store(cx, vec![record], vec![Durable::Answer(asker, Response::Ballot(Box::new(answer)))]);
    }

    /// Accepts a list, and decides nothing more by the present one.
    fn accept(&mut self, cx: &mut Context, others: VotingReads<'_>, asker: Asker, ballot: Ballot, list: &VoterList) {
        let sealed = self.ballots.is_sealed(self.lists.number());
        if !sealed && !self.voter.can_hand_over() {
            return self.hands_over_too_much(cx, asker);
        }
        if !self.goes_along(cx, ballot.proposer, list) {
            return self.answer(cx, asker, Response::Ballot(Box::new(BallotAnswer::Noted)));
        }
        let answer = match self.ballots.accept(cx.now.moment, ballot, list) {
            Some(later) => BallotAnswer::Outvoted(later),
            // Once it has accepted a list nobody decides, so it says no more than it must: with what others say it must fit.
            None => BallotAnswer::Accepted(sign_accepted(list, ballot, &cx.key), self.voter.hand_over(!sealed, others.register)),
        };
        let record = records::ballot(self.ballots.state());
        self.store(cx, vec![record], vec![Durable::Answer(asker, Response::Ballot(Box::new(answer)))]);
    }

    /// The present list stays in force: what this voter accepted by it could not be handed over, and without that nobody would vote any
    /// more.
    fn hands_over_too_much(&mut self, cx: &mut Context, asker: Asker) {
        cx.refuse(TOO_MUCH);
        self.answer(cx, asker, Response::Ballot(Box::new(BallotAnswer::Noted)));
    }

    /// Whether this voter accepts a list: it has before, or could have proposed it, or more voters propose it than may lie.
    fn goes_along(&mut self, cx: &mut Context, proposer: AccessPoint, list: &VoterList) -> bool {
        if self.ballots.has_accepted(list) || self.agrees(cx.now.moment, cx.me, proposer, list) {
            return true;
        }
        let current = self.lists.current().filter(|current| list.number == current.number + 1).cloned();
        let yields = current.is_some_and(|current| self.ballots.yields(proposer, list, &current));
        if !yields {
            cx.refuse("voter lists that this voter does not agree with");
        }
        yields
    }

    /// A voter of the list with this number asks what was decided before it. Who has accepted that list, or goes by it, decides nothing more
    /// by the one before. Who neither voted before nor votes now does not know.
    fn asked_what_was_decided(&mut self, cx: &mut Context, others: VotingReads<'_>, (asker, from): (Asker, AccessPoint), of: u64) {
        let chosen = self.ballots.accepted_after(self.lists.number()).filter(|list| list.number == of);
        let knows = self.standing.installed > 0 && self.standing.installed + 1 >= of;
        let present = self.lists.current().filter(|list| list.number == of && knows);
        let told = if !chosen.or(present).is_some_and(|list| list.contains(&from)) {
            BallotAnswer::Noted
        } else if self.voter.can_hand_over() {
            BallotAnswer::Decided(of, self.voter.hand_over(true, others.register))
        } else {
            return self.hands_over_too_much(cx, asker);
        };
        // What it tells of is on its way to the disk, and so may be its acceptance of that list.
        self.store(cx, Vec::new(), vec![Durable::Answer(asker, Response::Ballot(Box::new(told)))]);
    }

    /// Stores what the voters before had decided, as a voter of the list that was chosen.
    fn install(
        &mut self,
        cx: &mut Context,
        others: VotingReads<'_>,
        (asker, from): (Asker, AccessPoint),
        signed: &SignedList,
        before: HandedOver,
    ) {
        let (list, number) = (&signed.list, self.lists.number());
        self.catch_up(cx, from, list.number.saturating_sub(1));
        let next = list.number == number + 1;
        let known = self.lists.current().is_some_and(|current| current == list);
        if !list.contains(&cx.me) || !(next || known) {
            return self.answer(cx, asker, Response::Ballot(Box::new(BallotAnswer::OtherList(number))));
        }
        if next && signed.check_accepted(self.lists.current(), &self.standing.lost).is_err() {
            cx.refuse("voter lists that are not agreed on");
            return self.answer(cx, asker, Response::Ballot(Box::new(BallotAnswer::OtherList(number))));
        }
        if next && self.under_way.chosen.is_none_or(|(chosen, _)| chosen != list.number) {
            self.under_way.chosen = Some((list.number, cx.now.moment));
        }
        let voted = if next { self.votes_by_present(cx.now.moment, cx.me) } else { self.standing.voted_before };
        let mut records = Vec::new();
        // Once is enough: what comes later is no decision of the voters before.
        if self.standing.installed < list.number {
            let last = self.lists.get(list.number - 1);
            if voted && last.is_some_and(|last| list.quorum() >= last.quorum()) {
                self.voter.take_in_replicas(&before.replicas, &mut records);
                self.standing.installed_before = self.standing.installed;
            } else if voted
                && liars_borne(list.voters.len()) == 0
                && self.is_word_of_all(from, signed, &before)
                && self.voter.has_room_for(&before, others.register)
            {
                // It knows what it decided itself, and by the proposer what those did who accepted the list: of them one is in each quorum
                // of before, as their signatures prove. A proposer that lies hides nothing where five follow seven unless it is one of the
                // five, as any three of these share a voter with each quorum of seven. Of five, and of fewer, none may lie in any case.
                self.take_in_decided(cx, others, list, &[&before], &mut records);
            } else {
                return self.brought(cx, others, (asker, from), signed, before);
            }
        }
        self.note_installed(cx, list, [asker], &before.replicas, records);
    }

    /// Whether this is what all that accepted a list told its proposer, as that says: who brings it later does not have the same, and
    /// brings the signatures of voters of the list with it.
    fn is_word_of_all(&self, from: AccessPoint, signed: &SignedList, before: &HandedOver) -> bool {
        let chosen = |last: &VoterList| signed.is_chosen_by(&signed.accepted_by(last), last, &self.standing.lost);
        from == signed.ballot.proposer
            && !self.standing.liars.contains_key(&from)
            && signed.installed.is_empty()
            && handed_over::size_of_decided(before) <= MAX_DECIDED_BYTES
            && self.lists.get(signed.list.number.saturating_sub(1)).is_some_and(chosen)
    }

    /// A voter brought what was decided before a list by which this access point did not vote yet, nor by the one before. It is one word among
    /// those that it takes: the others are asked.
    fn brought(
        &mut self,
        cx: &mut Context,
        others: VotingReads<'_>,
        (asker, from): (Asker, AccessPoint),
        signed: &SignedList,
        before: HandedOver,
    ) {
        if self.standing.liars.contains_key(&from) {
            return self.answer(cx, asker, Response::Ballot(Box::new(BallotAnswer::Noted)));
        }
        let (now, list) = (cx.now.moment, &signed.list);
        let known = self.under_way.installing.take().filter(|known| known.list() == list);
        if known.is_none() {
            // The next process of this access point goes on with it, as it may be brought to it by nobody.
            self.store(cx, vec![records::installing(list)], Vec::new());
        }
        let mut installing = known.unwrap_or_else(|| Installing::new(now, list.clone()));
        if handed_over::size_of_decided(&before) > MAX_DECIDED_BYTES {
            cx.refuse(TOO_LONG);
        } else {
            if self.is_word_of_all(from, signed, &before)
                && let Some(last) = self.lists.get(list.number - 1)
            {
                installing.told_for(signed.accepted_by(last));
            }
            installing.told(now, from, before);
        }
        let earlier = installing.waits(from, asker);
        self.under_way.installing = Some(installing);
        if let Some(earlier) = earlier {
            self.answer(cx, earlier, Response::Ballot(Box::new(BallotAnswer::Noted)));
        }
        self.go_on_installing(cx, others);
    }

    /// It has what the voters before had decided, these sets of replicas among it, and says so once that is stored.
    pub(super) fn note_installed(
        &mut self,
        cx: &mut Context,
        list: &VoterList,
        askers: impl IntoIterator<Item = Asker>,
        sets: &[SignedReplicas],
        mut records: Vec<VotingRecord>,
    ) {
        let waited = self.under_way.installing.take_if(|installing| installing.list() == list);
        records.extend(waited.as_ref().map(|_| records::not_installing()));
        let askers = askers.into_iter().chain(waited.into_iter().flat_map(Installing::into_askers));
        let signature = sign_installed(list, &cx.key);
        self.standing.installed = self.standing.installed.max(list.number);
        records.push(records::installed(self.standing.installed));
        // Of what was told that is stored which was taken in: the rest may be forged.
        let taken_in = sets.iter().filter(|set| self.voter.replicas_of(&set.replicas.owner) == Some(*set));
        let mut then: Vec<_> = taken_in.map(|set| Durable::Replicas(set.replicas.owner, set.number())).collect();
        then.extend(askers.map(|asker| Durable::Answer(asker, Response::Ballot(Box::new(BallotAnswer::Installed(signature.clone()))))));
        self.store(cx, records, then);
    }

    pub(super) fn answer(&mut self, cx: &mut Context, asker: Asker, response: Response) {
        match asker {
            Asker::Member(_, ticket) => cx.answer(ticket, response),
            Asker::Own(QuestionId::NO_ANSWER) => {}
            Asker::Own(question) => self.own.answers.push_back((question, response)),
        }
    }
}
