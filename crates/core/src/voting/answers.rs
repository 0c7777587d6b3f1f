//! Answers of members to this access point, the lists that it adopts, and what it stores.

use super::{
    ballots::Outcome,
    confirmation::Witnesses,
    handed_over::{self, MAX_DECIDED_BYTES, MAX_MORE_OWNERS},
    installing::Installing,
    lease::Step,
    machine::{Durable, Standing, Voting, VotingReads},
    plan::FEW,
    proposals::{Accepted, may_lie},
    questions::{TOO_LONG, TOO_MUCH},
    records::{self, VotingRecord},
};
use crate::{
    context::Context,
    event::{Command, StoreCommand},
    pending::Pending,
    signal::Signal,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::SignedClaim,
    ids::WriteId,
    message::{MAX_VOTER_LISTS, Request, Response},
    replica::NamedReplica,
    subnet::Subnet,
    time::{Millis, Moment},
    vote::{
        BallotAnswer, BallotRequest, Grant, HandedOver, InheritedReplicas, MAX_REPORTED, Renewed, SetNumber, SignedList, Voted, VoterList,
        liars_borne,
    },
};
use std::collections::BTreeSet;

/// For how long no list of a member is looked at that told a false one of its own accord.
const FALSE_LIST_REST: Millis = 60_000;

/// Members of whom that is remembered.
const MAX_FALSE_LISTS: usize = 1_024;

/// What came of a list that a member goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Adopted,
    /// It is known, or comes later than the next, or was chosen without our voters.
    Nothing,
    /// It is no list: its signatures are not enough.
    False,
}

/// When lists are asked for again.
const ASK_LISTS_AGAIN: Millis = 1_000;

/// What members answer.
impl Voting {
    pub(crate) fn answered(
        &mut self,
        cx: &mut Context,
        others: VotingReads<'_>,
        from: AccessPoint,
        pending: Pending,
        answer: Option<Response>,
    ) {
        let now = cx.now.moment;
        // What a voter says that lied does not count: others that know less may still count it, but an owner that knows does without.
        let lied = self.standing.liars.contains_key(&from) && !matches!(pending, Pending::VoterLists);
        match (pending, answer.filter(|_| !lied)) {
            (Pending::Renew(number), Some(Response::Renewed(renewed))) => self.renewed(cx, others, from, number, renewed),
            (Pending::Propose { list, term, claims }, answer) => {
                self.proposals.answered(from);
                match answer {
                    Some(Response::Voted(Voted::Votes(votes, told))) if list == self.lists.number() && term == self.lease.term() => {
                        self.proposals.voted(from, &claims, (votes, told), list, term);
                        if let Some(list) = self.lists.current().cloned() {
                            self.tick_proposals(cx, others, &list);
                        }
                    }
                    Some(Response::Voted(Voted::OtherList(number))) if number > self.lists.number() => self.ask_for_lists(cx, from),
                    _ => {}
                }
            }
            (Pending::Ballot, Some(Response::Ballot(answer))) => {
                if let BallotAnswer::Decided(number, before) = *answer {
                    return self.told_what_was_decided(cx, others, from, number, before);
                }
                if let BallotAnswer::Accepted(_, told) = answer.as_ref()
                    && handed_over::owners(told) > self.voter.owners_decided() + MAX_MORE_OWNERS
                {
                    return cx.refuse("acceptances of a voters' list with too many owners");
                }
                match self.ballots.answered(now, &self.lists, &self.standing.lost, from, *answer) {
                    Outcome::Nothing => {}
                    Outcome::OtherList(_) => self.ask_for_lists(cx, from),
                    Outcome::TooMuch => cx.refuse(TOO_MUCH),
                    Outcome::Adopted(signed) => {
                        self.adopt(cx, &signed, Vec::new());
                        self.tell_list(cx, others, &signed);
                    }
                }
            }
            (Pending::VoterLists, Some(Response::VoterLists(lists))) => self.told_lists(cx, others, from, &lists),
            _ => {}
        }
    }

    /// The voters' lists that follow the one that is known here.
    fn told_lists(&mut self, cx: &mut Context, others: VotingReads<'_>, from: AccessPoint, lists: &[SignedList]) {
        let more = lists.len() >= MAX_VOTER_LISTS;
        let told = lists.iter().take(MAX_VOTER_LISTS).map(|signed| self.adopt_from(cx, others, from, signed));
        // What follows one that is false need not be checked.
        let adopted = told.take_while(|told| *told != Told::False).filter(|told| *told == Told::Adopted).count();
        self.under_way.lists_asked = None;
        if lists.is_empty() {
            self.standing.confirmation.answered(from);
        }
        if more && adopted > 0 {
            self.ask_for_lists(cx, from);
        }
    }

    fn renewed(&mut self, cx: &mut Context, others: VotingReads<'_>, from: AccessPoint, number: u64, renewed: Renewed) {
        let Some(list) = self.lists.current().cloned() else { return };
        self.vote_as_sole(cx, number, Some((from, &renewed)));
        let step = self.lease.answered(cx.now.moment, number, &list, from, &renewed);
        if let Renewed::Granted(grant) = renewed {
            if from != cx.me && list.contains(&from) {
                self.standing.confirmation.confirm();
            }
            if self.lease.was_sent_by(number, list.number) {
                self.replicas_granted(cx, &list, from, &grant);
            }
            self.publish_or_withdraw(cx, others, from, grant.unpublished);
        }
        match step {
            Step::Nothing => {}
            Step::OtherList(_) => self.ask_for_lists(cx, from),
            Step::NextTerm(term) => self.begin_term(cx, term),
        }
    }

    /// Claims of ours that a voter accepted and has not heard of again: told once more if they are published, else withdrawn.
    fn publish_or_withdraw(&mut self, cx: &mut Context, others: VotingReads<'_>, voter: AccessPoint, claims: Vec<(Subnet, u64)>) {
        let (mut published, mut withdrawn) = (Vec::new(), Vec::new());
        for (subnet, epoch) in claims.into_iter().take(MAX_REPORTED) {
            let known = others.register.latest(&subnet).map(|held| held.claim.epoch);
            if known.is_some_and(|known| known >= epoch) {
                published.push(subnet);
            } else if self.proposals.is_open(&subnet, epoch) {
                continue;
            } else if self.proposals.uses_up(subnet, epoch, known.unwrap_or(0)) {
                // Its epoch is never used again: the withdrawal may be long on its way.
                withdrawn.push((subnet, epoch));
            } else {
                cx.refuse("voters' words about claims of ours that are not likely");
            }
        }
        if !published.is_empty() {
            cx.signal(Signal::ClaimsToTell(published));
        }
        if !withdrawn.is_empty() {
            self.tell(cx, voter, Request::Withdraw { process: self.process.number, claims: withdrawn });
        }
    }

    fn begin_term(&mut self, cx: &mut Context, term: u64) {
        if self.under_way.next_term.is_none() {
            self.under_way.next_term = Some(term);
            self.store(cx, vec![records::term(term)], vec![Durable::Term(term)]);
        }
    }
}

/// Who has what we recorded.
impl Voting {
    fn replicas_granted(&mut self, cx: &mut Context, list: &VoterList, from: AccessPoint, grant: &Grant) {
        let quorum = self.quorum(list);
        if self.keeping.granted(list, quorum, from, grant, cx.me) {
            self.propose_replicas(cx);
        }
        self.publish_in_force(cx);
    }

    fn propose_replicas(&mut self, cx: &Context) {
        self.keeping.propose(cx.me, self.lease.term(), &cx.key);
        self.lease.renew_now(cx.now.moment);
    }

    /// These have all that we recorded, but for what we `released` and nobody owns yet. Without a lease nobody is named: what voters know of
    /// us is not known yet, or is over.
    pub(crate) fn name_replicas(&mut self, cx: &Context, members: Vec<NamedReplica>, released: bool) {
        if self.lease.holds(cx.now.moment) && self.under_way.next_term.is_none() && self.keeping.name(members, released) {
            self.propose_replicas(cx);
        }
    }

    /// All that was taken over is at all that have what we recorded: former owners' replicas are not needed any more.
    pub(crate) fn has_copied_all(&mut self, cx: &Context) {
        let idle = self.under_way.accepted.is_empty() && self.under_way.unpublished.is_empty() && self.keeping.is_settled();
        if idle && self.lease.holds(cx.now.moment) && self.keeping.has_copied_all() {
            self.propose_replicas(cx);
        }
    }

    /// Who must have a row before it is recorded; none if nothing is recorded at the moment.
    pub(crate) fn needed_replicas(&self, now: Moment) -> Option<Vec<NamedReplica>> {
        self.lease.holds(now).then(|| self.keeping.needed()).flatten()
    }

    /// Former owners' replicas, of what is not at all of ours yet; none if it is not known yet what this access point took over in a
    /// previous process.
    pub(crate) fn inherited_replicas(&self) -> Option<Vec<InheritedReplicas>> {
        self.lease.until().map(|_| self.keeping.inherited())
    }

    /// Claims of ours that enough voters have accepted, each with the last sets of replicas of the owners before: they wait for
    /// [`Voting::take_over`].
    pub(crate) fn take_accepted(&mut self) -> Vec<Accepted> {
        std::mem::take(&mut self.under_way.accepted)
    }

    /// Claims were accepted, of subnets whose former owners had these replicas. They are published when a quorum of voters knows of them:
    /// an successor of ours must hear of them as well.
    pub(crate) fn take_over(&mut self, cx: &mut Context, claims: Vec<(SignedClaim, Vec<InheritedReplicas>)>) {
        let sets = claims.iter().flat_map(|(_, before)| before.iter().cloned()).collect::<Vec<_>>();
        // The last set that is known may be one of a process before this one, which nobody tells any more.
        if self.keeping.inherit(sets) || !self.keeping.is_proposed() {
            self.propose_replicas(cx);
        }
        let needed = self.keeping.last();
        let at_once = |before: &[InheritedReplicas]| before.iter().all(|set| set.members.is_empty());
        self.under_way
            .unpublished
            .extend(claims.into_iter().map(|(proof, before)| (if at_once(&before) { SetNumber::default() } else { needed }, proof)));
        self.publish_in_force(cx);
    }

    fn publish_in_force(&mut self, cx: &mut Context) {
        let in_force = self.keeping.in_force().unwrap_or_default();
        let claims: Vec<_> = self.under_way.unpublished.extract_if(.., |(needed, _)| *needed <= in_force).map(|(_, proof)| proof).collect();
        if !claims.is_empty() {
            cx.signal(Signal::ClaimsAccepted(claims));
        }
    }
}

/// Lists, and what is stored.
impl Voting {
    /// A member was met: it may know lists that are not known here.
    pub(crate) fn connected(&mut self, cx: &mut Context, who: AccessPoint) {
        if self.lists.number() == 0 || self.standing.confirmation.is_asked_for() {
            self.under_way.lists_asked = None;
            self.ask_for_lists(cx, who);
        }
    }

    /// A claim was heard whose voters' list is not known here.
    pub(crate) fn list_missing(&mut self, cx: &mut Context, from: AccessPoint) {
        self.ask_for_lists(cx, from);
    }

    /// A member goes by another list; if it is a later one, it is asked for it.
    pub(super) fn catch_up(&mut self, cx: &mut Context, from: AccessPoint, number: u64) {
        if number > self.lists.number() && from != cx.me {
            self.ask_for_lists(cx, from);
        }
    }

    pub(super) fn ask_for_lists(&mut self, cx: &mut Context, from: AccessPoint) {
        let now = cx.now.moment;
        if from == cx.me || self.under_way.lists_asked.is_some_and(|asked| now.since(asked) < ASK_LISTS_AGAIN) {
            return;
        }
        self.under_way.lists_asked = Some(now);
        cx.ask(from, Pending::VoterLists, Request::VoterLists(self.lists.number()));
    }

    /// A member says of its own accord that it goes by this list. Whoever told a false one is not believed for a while: to check one costs
    /// a signature of each voter.
    pub(super) fn told_list(&mut self, cx: &mut Context, others: VotingReads<'_>, from: AccessPoint, signed: &SignedList) {
        let now = cx.now.moment;
        self.under_way.false_lists.retain(|_, at| now.since(*at) < FALSE_LIST_REST);
        if signed.list.number == self.lists.number() + 1 && self.under_way.false_lists.contains_key(&from) {
            return cx.refuse("voter lists of members whose last one was false");
        }
        if self.adopt_from(cx, others, from, signed) == Told::False {
            let noted = &mut self.under_way.false_lists;
            if noted.len() >= MAX_FALSE_LISTS
                && let Some(first) = noted.iter().min_by_key(|(_, at)| **at).map(|(who, _)| *who)
            {
                noted.remove(&first);
            }
            noted.insert(from, now);
        }
    }

    /// A member goes by this list.
    pub(super) fn adopt_from(&mut self, cx: &mut Context, others: VotingReads<'_>, from: AccessPoint, signed: &SignedList) -> Told {
        let Some(current) = self.lists.current().filter(|current| signed.check_form(Some(current)).is_ok()).cloned() else {
            return if self.adopt(cx, signed, Vec::new()) { Told::Adopted } else { Told::Nothing };
        };
        let accepted = signed.accepted_by(&current);
        if signed.is_chosen_by(&accepted, &current, &self.standing.lost) {
            return if self.adopt(cx, signed, Vec::new()) { Told::Adopted } else { Told::False };
        }
        cx.refuse("voter lists that are not agreed on");
        let (owners, voter) = (others.register.owners().count(), &self.voter);
        let has_owned = |member: &AccessPoint| others.register.count(member) > 0 || voter.has_ended(member);
        let witnesses = Witnesses { owners, has_owned: &has_owned, few: FEW };
        let Some(stops) = self.standing.confirmation.contradicted(from, &current, (signed, &accepted), &witnesses) else {
            return Told::False;
        };
        if stops {
            self.lease.end(cx.now.moment);
        }
        Told::Nothing
    }

    /// Whether the list that was known at the start is in force is found out; a list that has replaced it without its voters is adopted.
    pub(super) fn confirm_list(&mut self, cx: &mut Context, others: VotingReads<'_>, list: &VoterList) {
        let now = cx.now.moment;
        if self.standing.confirmation.leased(now, self.lease.holds(now)) {
            for member in others.members.standings().keys() {
                cx.ask(*member, Pending::VoterLists, Request::VoterLists(list.number));
            }
        }
        if !self.standing.confirmation.is_asked_for() {
            return;
        }
        let (owners, voter) = (others.register.owners().count(), &self.voter);
        let has_owned = |member: &AccessPoint| others.register.count(member) > 0 || voter.has_ended(member);
        let witnesses = Witnesses { owners, has_owned: &has_owned, few: FEW };
        let remembered = others.members.standings().keys().copied();
        let replaced = self.standing.confirmation.conclude((now, self.times.confirm_within()), list, remembered, &witnesses);
        if let Some((signed, lost, from)) = replaced
            && self.adopt_with(cx, &signed, &lost, Vec::new())
        {
            self.under_way.lists_asked = None;
            self.ask_for_lists(cx, from);
        }
    }

    /// A voter told what was decided before the list with this number.
    fn told_what_was_decided(&mut self, cx: &mut Context, others: VotingReads<'_>, from: AccessPoint, number: u64, before: HandedOver) {
        // Who has decided more than that says so instead. Whoever took it in could hand nothing over any more.
        if handed_over::size_of_decided(&before) > MAX_DECIDED_BYTES {
            return cx.refuse(TOO_LONG);
        }
        let voted = number.checked_sub(1).and_then(|last| self.lists.get(last)).is_some_and(|list| list.contains(&from));
        let Some(installing) = self.under_way.installing.as_mut().filter(|installing| installing.list().number == number) else { return };
        if voted || installing.list().contains(&from) {
            installing.told(cx.now.moment, from, before);
            self.go_on_installing(cx, others);
        }
    }

    /// Asks for the words that are missing before this access point votes by a list, or takes in what it was told if that is enough.
    pub(super) fn go_on_installing(&mut self, cx: &mut Context, others: VotingReads<'_>) {
        let Some(mut installing) = self.under_way.installing.take() else { return };
        let (now, number) = (cx.now.moment, installing.list().number);
        if self.lists.number() > number || self.standing.installed >= number {
            self.store(cx, vec![records::not_installing()], Vec::new());
            let answer = Response::Ballot(Box::new(BallotAnswer::OtherList(self.lists.number())));
            return installing.into_askers().for_each(|asker| self.answer(cx, asker, answer.clone()));
        }
        let (before, in_force) = (self.lists.get(number - 1), self.lists.number() == number);
        if installing.is_enough(now, (self.times.patience(), in_force), before, &self.standing.lost) {
            return self.take_in_words(cx, others, installing);
        }
        let due = installing.due(now, before, in_force);
        self.under_way.installing = Some(installing);
        for voter in due {
            self.ask(cx, voter, Pending::Ballot, Request::Ballot(Box::new(BallotRequest::Decided(number))));
        }
    }

    fn take_in_words(&mut self, cx: &mut Context, others: VotingReads<'_>, installing: Installing) {
        let (words, mut records) = (installing.words().collect::<Vec<_>>(), vec![records::not_installing()]);
        self.take_in_decided(cx, others, installing.list(), &words, &mut records);
        let sets: Vec<_> = words.into_iter().flat_map(|word| &word.replicas).cloned().collect();
        let list = installing.list().clone();
        self.note_installed(cx, &list, installing.into_askers(), &sets, records);
    }

    /// Takes in what was decided before this list, as these words of voters tell. What few of them tell is no more than could be handed on.
    pub(super) fn take_in_decided(
        &mut self,
        cx: &mut Context,
        others: VotingReads<'_>,
        list: &VoterList,
        words: &[&HandedOver],
        records: &mut Vec<VotingRecord>,
    ) {
        let (now, register) = (cx.now.moment, others.register);
        let may_lie = may_lie(self.lists.get(list.number - 1).unwrap_or(list).voters.len());
        words.iter().for_each(|word| self.voter.take_in_replicas(&word.replicas, records));
        let ended = HandedOver { ended: handed_over::ended_of(words, may_lie), ..HandedOver::default() };
        let mut refused = self.voter.take_in(now, &ended, register, records);
        let room = MAX_DECIDED_BYTES.saturating_sub(self.voter.decided_bytes());
        let (rows, left_out) = handed_over::rows_of(words, may_lie, room, |row| self.voter.knows(row, register));
        refused += left_out + self.voter.take_in(now, &HandedOver { rows, ..HandedOver::default() }, register, records);
        (0..refused).for_each(|_| cx.refuse("words of voters before about claims and terms that are not likely"));
        self.standing.installed_before = self.standing.installed;
    }

    pub(super) fn adopt(&mut self, cx: &mut Context, signed: &SignedList, records: Vec<VotingRecord>) -> bool {
        let lost = self.standing.lost.clone();
        self.adopt_with(cx, signed, &lost, records)
    }

    /// Of the voters of the present list those in `lost` do not count.
    fn adopt_with(&mut self, cx: &mut Context, signed: &SignedList, lost: &BTreeSet<AccessPoint>, mut records: Vec<VotingRecord>) -> bool {
        let before = self.lists.current().cloned();
        let voted = self.votes_by_present(cx.now.moment, cx.me);
        let in_time = before.as_ref().is_none_or(|before| self.need_not_wait(cx.now.moment, before, &signed.list.voters));
        match self.lists.adopt(signed, lost) {
            Ok(true) => {}
            Ok(false) => return false,
            Err(_) => {
                cx.refuse("voter lists that are not agreed on");
                return false;
            }
        }
        let now = cx.now.moment;
        self.standing.confirmation.adopted();
        // Whoever was declared lost and is chosen anew has come back, and so has this access point, if it goes by others' list.
        let chosen = signed.list.voters.iter().filter(|voter| before.as_ref().is_some_and(|before| !before.contains(voter)));
        let back = chosen.chain((!signed.list.contains(&cx.me)).then_some(&cx.me));
        records.extend(back.filter(|member| self.standing.lost.remove(member)).map(|member| records::not_lost(*member)));
        records.push(records::list(signed));
        let knows_leases = before.as_ref().is_some_and(|before| self.knows_leases(now, before, &signed.list));
        let silent_from = self.silent_from(now, signed.list.number);
        if before.is_some_and(|before| before.voters == signed.list.voters) {
            self.standing.renewed = Some(now);
        }
        (self.standing.adopted_at, self.standing.resumed) = (now, false);
        (self.standing.voted_before, self.standing.hurried) = (voted, !in_time);
        self.standing.left.retain(|who| signed.list.contains(who));
        self.voter.list_changed(now, (!knows_leases).then_some(silent_from));
        self.lease.list_changed(now, &signed.list);
        self.ballots.list_changed(signed.list.number);
        self.proposals.begin_anew();
        self.keeping.list_changed();
        self.under_way.brought.clear();
        records.push(records::ballot(self.ballots.state()));
        self.store(cx, records, Vec::new());
        true
    }

    /// Whether this access point votes by the present list.
    pub(super) fn votes_by_present(&self, now: Moment, me: AccessPoint) -> bool {
        let Some(list) = self.lists.current() else { return false };
        self.standing.installed == list.number && self.votes(now, me) && list.contains(&me)
    }

    /// Whether this access point may count by the next list for how long owners were silent to it by the one before: it voted by that one,
    /// for so long that all leases of lists before are over, and of so many of the voters before as are a quorum of the next list more than
    /// may lie by the next list are in each quorum that renewed a lease. So each quorum of the next list, all of which count so, has heard
    /// of it. Of any other quorum of the next list one counts from when no lease of before could be renewed any more.
    fn knows_leases(&self, now: Moment, before: &VoterList, next: &VoterList) -> bool {
        let Standing { installed, installed_before, adopted_at, .. } = self.standing;
        let voted = installed == before.number || installed == next.number && installed_before == before.number;
        let shared = (next.quorum() + before.quorum()).saturating_sub(before.voters.len());
        voted && now.since(adopted_at) >= self.times.patience() && shared > liars_borne(next.voters.len())
    }

    /// From when on an owner that is not heard is silent to a voter of this list that does not know the leases of before. Those who have
    /// chosen the list renew none, and without them there is no quorum of before: so from when that was known here, though it may have been
    /// long until the list is in force. But owners have some seconds from now on, as they did not ask this voter before.
    fn silent_from(&mut self, now: Moment, number: u64) -> Moment {
        let chosen = self.under_way.chosen.take().filter(|(chosen, _)| *chosen == number).map_or(now, |(_, at)| at);
        chosen.max(now.before(self.times.patience().saturating_sub(self.times.confirm_within())))
    }

    pub(super) fn store(&mut self, cx: &mut Context, records: Vec<VotingRecord>, then: Vec<Durable>) {
        if records.is_empty() && self.under_way.unstored.is_empty() {
            return then.into_iter().for_each(|what| self.durable(cx, what));
        }
        if records.is_empty() && then.is_empty() {
            return;
        }
        // What was decided before, and is not stored yet, is stored first: writes are done in order.
        let write = cx.number();
        self.under_way.unstored.insert(write, then);
        cx.commands.push_back(Command::Store(StoreCommand::StoreVoting { write, records }));
    }

    /// Records are durable. Whether these were of this machine.
    pub(crate) fn stored(&mut self, cx: &mut Context, write: WriteId) -> bool {
        let Some(done) = self.under_way.unstored.remove(&write) else { return false };
        done.into_iter().for_each(|what| self.durable(cx, what));
        true
    }

    pub(super) fn durable(&mut self, cx: &mut Context, what: Durable) {
        match what {
            Durable::Answer(asker, response) => self.answer(cx, asker, response),
            Durable::Replicas(owner, number) => self.voter.replicas_stored(owner, number),
            Durable::Contested(voter) => self.process.is_contested_by(voter),
            Durable::Term(term) => {
                self.under_way.next_term = None;
                self.keeping.term_began();
                self.lease.begin_term(cx.now.moment, term);
                self.proposals.begin_anew();
                cx.signal(Signal::TermBegan);
            }
        }
    }
}
