//! Dispatches members' requests to the machine that answers them, and members' answers to the machine that waits for them.

use crate::{
    context::Context,
    crawler::Crawler,
    delegation::prober::ProbeOrder,
    effects::EXCLUDED,
    event::{Command, HierarchyCommand, PeerCommand, RecordOrder, StoreCommand},
    migration::handover::Offer,
    pending::Pending,
    relay::{Relay, machine::RelayReads},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    exported::ExportedRows,
    ids::{QuestionId, Ticket, TransferId},
    message::{Award, MAX_SUBJECT, Request, Response},
    requests_made::RequestsMade,
    server_rows::RowsOf,
    time::Millis,
};

/// The pause after which a member may ask for rows again if as many answers are read as may be, in milliseconds.
const EXPORT_AGAIN: Millis = 300;

/// What members say goes through the relay.
impl Crawler {
    /// The relay, with what it reads and where its commands go.
    fn relaying(&mut self) -> (&mut Relay, &mut Context, RelayReads<'_>) {
        let voters = self.voting.list().map_or(&[][..], |list| &list.voters);
        (&mut self.relay, &mut self.context, RelayReads { members: &self.membership, voters })
    }

    /// The next command as it goes out.
    pub(crate) fn next_sent(&mut self) -> Option<Command> {
        loop {
            let command = self.context.commands.pop_front()?;
            let Command::Peers(message) = command else { return Some(command) };
            let (relay, context, others) = self.relaying();
            if let Some(message) = relay.sent(context, others, message) {
                return Some(Command::Peers(message));
            }
        }
    }

    /// The process asks a member.
    pub(crate) fn transfer(&mut self, transfer: TransferId, to: AccessPoint, request: Request) {
        self.context.ask(to, Pending::Transfer(transfer), request);
    }

    /// A question of a member came, directly.
    pub(crate) fn question_came(&mut self, from: AccessPoint, ticket: Ticket, request: Request) {
        // It is for the process that holds the lease of our key. What is not answered is asked through a third member, which may reach that.
        if self.voting.is_a_copy(self.context.now.moment, self.context.me) {
            return;
        }
        if let Some(why) = self.context.excluded.get(&from).map(ToString::to_string) {
            self.context.refuse(EXCLUDED);
            return self.answer(ticket, Response::Refused(why));
        }
        self.relay.heard(&self.context, from);
        if !matches!(request, Request::Farewell(_)) {
            self.membership.heard(&mut self.context, from, false);
        }
        self.asked(from, ticket, request);
    }

    /// A question that was sent was answered, or was not.
    pub(crate) fn answer_came(&mut self, question: QuestionId, from: AccessPoint, answer: Option<Response>) {
        match &answer {
            // Whoever refuses everything is no member of ours.
            Some(Response::Refused(_) | Response::Busy(_)) => {}
            Some(_) => self.membership.heard(&mut self.context, from, true),
            None => self.membership.unanswered(self.context.now.moment, &from),
        }
        let (relay, context, others) = self.relaying();
        if let Some((question, from, answer)) = relay.answered(context, others, question, from, answer) {
            self.answered(question, from, answer);
        }
    }
}

impl Crawler {
    pub(crate) fn answer(&mut self, ticket: Ticket, response: Response) {
        self.context.answer(ticket, response);
    }

    /// Takes in a question of a member.
    fn asked(&mut self, from: AccessPoint, ticket: Ticket, request: Request) {
        match request {
            Request::Swim(bytes) => {
                let back = self.membership.receive(&mut self.context, from, &bytes);
                self.settle_signals();
                self.answer(ticket, back.map_or(Response::Noted, Response::Swim));
            }
            Request::Locate(host) => self.routing.locate_for(&mut self.context, ticket, host),
            Request::FindOwner(_, target) => self.find_owner_for(ticket, target),
            Request::Reserve(subnet, target) => self.settle_reserved(ticket, subnet, target),
            Request::Probe(subnet, target, before) => self.probe_for((from, ticket), ProbeOrder { subnet, target, before }),
            Request::Award { award, rest } => self.awarded_by(from, ticket, award, rest),
            Request::Offer { subnet, epoch } => self.offered(ticket, Offer { from, subnet, epoch }),
            Request::TakeOver(release) => self.take_over(from, ticket, release),
            Request::HandOff(hand_offs) => self.take_in(from, ticket, hand_offs),
            // Its owner chooses another replica, and what is here stays.
            Request::Keep(_) if !self.crawl.has_disk_space() => self.answer(ticket, Response::NoRoom),
            Request::Keep(rows) => self.replication.keep(&mut self.context, &self.ownership, from, ticket, rows),
            Request::Recall(subnet, cursor) => {
                self.context.commands.push_back(Command::Store(StoreCommand::RecallRows { ticket, subnet, from: cursor }))
            }
            Request::Confirm(host, address) => drop(self.routing.confirm_for(&mut self.context, Some(ticket), &host, address)),
            Request::HostMoved(located) => self.told_host_moved(ticket, &located),
            Request::Pinned(hosts) => self.told_pins(from, ticket, hosts),
            Request::TakeHost { host, journal, rows } => self.take_host(from, ticket, host, journal, rows),
            Request::Holds(subnets) => self.replication.asked_what_is_here(&mut self.context, ticket, subnets),
            Request::CompareClaims(parts) => self.ownership.compared(&mut self.context, ticket, &parts),
            Request::ServerRows(after) => self.rows_wanted(ticket, RowsOf::Servers, after.as_ref()),
            Request::HistoryRows(after) => self.rows_wanted(ticket, RowsOf::History, after.as_ref()),
            Request::ExportRows(_) if self.view().may_answer_for_all().is_err() => self.exported(ticket, None),
            Request::ExportRows(query) => match self.view().export(&query) {
                Ok(order) => self.context.commands.push_back(Command::Export { ticket, order: Box::new(order) }),
                Err(rows) => self.exported(ticket, Some(rows)),
            },
            Request::RequestsMade(query) if query.is_fair() => self.context.commands.push_back(Command::TellRequests { ticket, query }),
            Request::RequestsMade(_) => self.answer(ticket, Response::Refused("no such time may be asked about".to_owned())),
            // As with rows: its owner chooses another replica, and what is here stays.
            Request::KeepRecord(_) if !self.may_keep_record_of(from) => self.answer(ticket, Response::NoRoom),
            Request::KeepRecord(parcel) => self.order_record(ticket, RecordOrder::Keep(from, parcel)),
            Request::CompareRecord(range) => self.order_record(ticket, RecordOrder::Compare(from, range)),
            Request::Records(wanted) if wanted.query.is_fair() => self.order_record(ticket, RecordOrder::Tell(wanted)),
            Request::Records(_) => self.answer(ticket, Response::Refused("no such time may be asked about".to_owned())),
            Request::Why(subject) if subject.len() <= MAX_SUBJECT => {
                self.context.commands.push_back(Command::Explain { ticket, subject });
            }
            Request::Why(_) => self.answer(ticket, Response::Refused("this is no URL, host, address or subnet".to_owned())),
            Request::Totals => self.tell_totals(from, ticket, None),
            Request::CompareTotals { mine, yours } => self.totals_compared(from, ticket, mine, yours),
            Request::ExchangeTotals(totals, yours) => self.totals_exchanged(from, ticket, *totals, yours),
            Request::CrossTotals(one, other) => self.cross_totals_asked(ticket, (one, other)),
            Request::Distinct(known) => self.sets_asked(ticket, known),
            Request::Tell(gossip) => {
                self.answer(ticket, Response::Noted);
                self.gossiped(from, *gossip);
            }
            Request::SurveyProbes(survey) => self.answer(ticket, Response::SurveyProbes(self.view().survey_probes(&survey).map(Box::new))),
            Request::ProbeTurn(address) => self.probe_turn_wanted(ticket, address),
            Request::CompareSurveys(theirs) => self.surveys.compared(&mut self.context, ticket, theirs),
            Request::SendSurveys(ids) => self.surveys.wanted(&mut self.context, ticket, &ids),
            Request::CompareOptOuts(theirs) => self.opt_outs.compared(&mut self.context, ticket, theirs),
            Request::SendOptOuts(ids) => self.opt_outs.wanted(&mut self.context, ticket, &ids),
            Request::CompareAdmissions(theirs) => self.admissions.compared(&mut self.context, ticket, theirs),
            Request::SendAdmissions(ids) => self.admissions.wanted(&mut self.context, ticket, &ids),
            Request::CompareRows(journals) => self.replication.compare_rows(&mut self.context, &self.ownership, from, ticket, journals),
            Request::TellClaims(proofs) => {
                self.answer(ticket, Response::Noted);
                self.hear_claims(proofs);
            }
            Request::SendClaims(wanted) => self.ownership.claims_wanted(&mut self.context, ticket, &wanted),
            Request::HierarchyManifest(hash) => {
                self.context.commands.push_back(Command::Hierarchy(HierarchyCommand::TellManifest { ticket, hash }))
            }
            Request::HierarchyChunk { manifest, index } => {
                self.context.commands.push_back(Command::Hierarchy(HierarchyCommand::TellChunk { ticket, manifest, index }))
            }
            request @ (Request::Renew(_)
            | Request::Propose(_)
            | Request::Withdraw { .. }
            | Request::Ballot(_)
            | Request::VoterLists(_)
            | Request::DoubleVote(_)) => self.asked_to_vote(from, ticket, request),
            Request::Forward(sealed) => {
                if let Some((from, ticket, request)) = self.relay.asked(&mut self.context, &self.membership, from, ticket, *sealed) {
                    self.asked(from, ticket, request);
                }
            }
            Request::Farewell(leaving) => {
                if leaving {
                    self.voting.member_left(from);
                    self.replica_left(from);
                }
                self.membership.farewell(&mut self.context, from, leaving);
                self.settle_signals();
                self.answer(ticket, Response::Noted);
            }
        }
    }

    /// Rows were read for a reader; none if too much is read at the moment, or not all journals are here yet.
    pub(crate) fn exported(&mut self, ticket: Ticket, rows: Option<ExportedRows>) {
        self.answer(ticket, rows.map_or(Response::Busy(EXPORT_AGAIN), Response::ExportedRows));
    }

    /// The log of requests was searched; none if too much is searched at the moment.
    pub(crate) fn requests_told(&mut self, ticket: Ticket, made: Option<Box<RequestsMade>>) {
        self.answer(ticket, made.map_or(Response::Busy(EXPORT_AGAIN), Response::RequestsMade));
    }

    /// Whether a copy of a member's record of requests is kept here. There is room for few: keys that own nothing, and so ask no servers,
    /// must not take it.
    fn may_keep_record_of(&self, owner: AccessPoint) -> bool {
        self.crawl.has_disk_space() && self.ownership.register().count(&owner) > 0
    }

    fn order_record(&mut self, ticket: Ticket, order: RecordOrder) {
        self.context.commands.push_back(Command::Record { ticket, order });
    }

    /// Records of requests were kept or read; none if too much is read at the moment.
    pub(crate) fn record_answered(&mut self, ticket: Ticket, answer: Option<Box<Response>>) {
        self.answer(ticket, answer.map_or(Response::Busy(EXPORT_AGAIN), |answer| *answer));
    }

    /// A steward, or the owner of what lies around it, awards us a subnet.
    fn awarded_by(&mut self, from: AccessPoint, ticket: Ticket, award: Award, rest: Millis) {
        let (_, context, others) = self.delegating();
        if let Some(why) = others.refuses_award(context) {
            return self.answer(ticket, Response::Refused(why.to_owned()));
        }
        let subnet = award.subnet;
        let may = self.ownership.may_be_awarded(from, &subnet);
        if may {
            if self.ownership.register().claim(&subnet).is_none() {
                self.delegation.rest_subnet_as_told(&mut self.context, subnet, rest);
            }
            self.ownership.awarded(&mut self.context, &self.membership, &self.shutdown, award);
        }
        // Whose it is already, the steward has not heard yet.
        let covering = self.ownership.register().covering(&subnet).map(|claim| claim.subnet).filter(|_| !may);
        let standing = self.ownership.register().latest(&covering.unwrap_or(subnet)).filter(|held| !held.claim.released);
        let standing = standing.map(|held| held.proof());
        self.answer(ticket, Response::FindingOwner(standing));
    }

    /// A member answered our membership datagram with one of its own; what that leads to goes in another question.
    fn swim_answered(&mut self, from: AccessPoint, bytes: &[u8]) {
        if let Some(bytes) = self.membership.receive(&mut self.context, from, bytes) {
            self.context.ask(from, Pending::Swim, Request::Swim(bytes));
        }
        self.settle_signals();
    }

    /// Takes in an answer to what we asked or told of opt-outs and admissions.
    fn compared(&mut self, from: AccessPoint, pending: Pending, answer: Option<Response>) {
        match (pending, answer) {
            (Pending::OptOutHeads, Some(Response::OptOutHeads(theirs))) => {
                self.opt_outs.heads_came(&mut self.context, from, theirs.as_deref())
            }
            (Pending::OptOuts, Some(Response::OptOuts(signed))) => self.hear_opt_outs(signed),
            (Pending::OptOutsTold(ids), Some(_)) => self.opt_outs.acknowledged(from, &ids),
            (Pending::AdmissionHeads, Some(Response::AdmissionHeads(theirs))) => {
                self.admissions.heads_came(&mut self.context, from, theirs.as_deref())
            }
            (Pending::Admissions, Some(Response::Admissions(signed))) => self.admissions.hear(&mut self.context, signed),
            (Pending::AdmissionsTold(ids), Some(Response::Noted)) => self.admissions.acknowledged(from, &ids),
            _ => {}
        }
    }

    /// Takes in an answer to a question of ours.
    fn answered(&mut self, question: QuestionId, from: AccessPoint, answer: Option<Response>) {
        let Some(pending) = self.context.pending.remove(&question) else { return };
        match (pending, answer) {
            (Pending::Locate(host), Some(Response::Located(located))) => self.located(&host, located),
            (Pending::Locate(host), _) => self.routing.not_located(&host),
            (Pending::Confirm(host), Some(Response::Located(located))) => self.confirmed(&host, located),
            (Pending::Confirm(_), _) => {}
            (Pending::HostMoved(located), Some(Response::Refused(_))) => self.routing.has_moved(&mut self.context, located),
            (Pending::HostMoved(_), _) => {}
            (Pending::Pinned(hosts), answer) => self.crawl.stewards_heard(&hosts, answer == Some(Response::Noted)),
            (Pending::TakeHost(located), answer) => self.host_taken(&located, answer),
            (Pending::FindOwner | Pending::Award { .. }, Some(Response::FindingOwner(Some(proof)))) => self.hear_claims(vec![proof]),
            (Pending::Award { subnet }, Some(Response::Refused(_))) => self.delegation.award_declined(&self.context, subnet, from),
            (Pending::FindOwner, _) | (Pending::Award { .. }, Some(_)) => {}
            (Pending::Award { subnet }, None) => {
                let (delegation, context, others) = self.delegating();
                delegation.award_failed(context, others, subnet)
            }
            (Pending::Probe { subnet }, answer) => {
                let (delegation, context, others) = self.delegating();
                delegation.prober_answered(context, others, subnet, from, answer)
            }
            (Pending::Offer { subnet }, answer) => self.offer_answered(subnet, from, answer),
            (Pending::HandOff, answer) => self.handed_off(question, answer),
            (Pending::Transfer(transfer), answer) => {
                self.context.commands.push_back(Command::Peers(PeerCommand::Transferred { transfer, answer }))
            }
            (Pending::Swim, Some(Response::Swim(bytes))) => self.swim_answered(from, &bytes),
            (Pending::Swim, _) => {}
            (Pending::Totals { mine, .. }, Some(Response::Totals(totals))) if totals.owner == from => {
                self.report.knows(from, mine);
                self.report.hear(&mut self.context, &self.membership, &self.ownership, *totals)
            }
            (Pending::Totals { mine, yours }, Some(Response::TotalsHold)) => {
                self.report.knows(from, mine);
                self.report.holds(&self.context, from, yours);
            }
            (Pending::Totals { .. } | Pending::Told, _) => {}
            (Pending::CrossTotals(by), Some(Response::CrossTotals(table))) => self.cross_totals_came(from, by, Some(*table)),
            (Pending::CrossTotals(by), _) => self.cross_totals_came(from, by, None),
            (Pending::ProbeTurn, Some(Response::ProbeTurn(after))) => self.surveys.turn_told(&self.context, Some(after)),
            (Pending::ProbeTurn, _) => self.surveys.turn_told(&self.context, None),
            (Pending::SurveyHeads, Some(Response::SurveyHeads(Some(theirs)))) => self.surveys.heads_came(&mut self.context, from, &theirs),
            (Pending::Surveys, Some(Response::Surveys(signed))) => self.surveys.came(&mut self.context, signed),
            (Pending::SurveyHeads | Pending::Surveys, _) => {}
            (it @ (Pending::OptOutHeads | Pending::OptOuts | Pending::OptOutsTold(_)), answer) => self.compared(from, it, answer),
            (it @ (Pending::AdmissionHeads | Pending::Admissions | Pending::AdmissionsTold(_)), answer) => self.compared(from, it, answer),
            (Pending::Distinct, Some(Response::Distinct(sets))) => self.sets_came(from, Some(sets.map(|sets| *sets))),
            (Pending::Distinct, _) => self.sets_came(from, None),
            (Pending::Compare(question), answer) => self.compare_answered(question, answer),
            (Pending::StoreOf, answer) => self.replication.uses_store(&self.context, from, answer),
            (Pending::Holds(subnets), answer) => self.told_what_is_there(from, &subnets, answer),
            (pending @ (Pending::Renew(_) | Pending::Propose { .. } | Pending::Ballot | Pending::VoterLists), answer) => {
                self.vote_answered(from, pending, answer)
            }
        }
    }
}
