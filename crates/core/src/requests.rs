//! Which machine answers what a member asked, and which one waits for what a member answered?

use crate::{
    crawler::Crawler,
    delegation::prober::ProbeOrder,
    event::{Command, HierarchyCommand, StoreCommand},
    migration::handover::Offer,
    pending::Pending,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    ids::{QuestionId, Ticket},
    message::{Award, Request, Response},
    time::Millis,
};

impl Crawler {
    /// Takes in a question of a member.
    pub(crate) fn asked(&mut self, from: AccessPoint, ticket: Ticket, request: Request) {
        match request {
            Request::Swim(bytes) => {
                self.membership.receive(&mut self.context, from, &bytes);
                self.settle_signals();
                self.answer(ticket, Response::Noted);
            }
            Request::Locate(host) => self.routing.locate_for(&mut self.context, ticket, host),
            Request::FindOwner(_, target) => self.find_owner_for(ticket, target),
            Request::Reserve(subnet, target) => self.settle_reserved(ticket, subnet, target),
            Request::Probe(subnet, target, before) => self.probe_for((from, ticket), ProbeOrder { subnet, target, before }),
            Request::Award { .. } if self.shutdown.is_leaving() => {
                self.answer(ticket, Response::Refused("it is leaving the swarm".to_owned()))
            }
            // It may be claimed already, or lie in what is: we have not heard of it yet.
            Request::Award { .. } if !self.ownership.is_synced() => {
                self.answer(ticket, Response::Refused("its ownership map is not whole yet".to_owned()))
            }
            Request::Award { award, rest } => self.awarded_by(from, ticket, award, rest),
            Request::Offer { subnet, epoch } => self.offered(ticket, Offer { from, subnet, epoch }),
            Request::TakeOver(release) => self.take_over(from, ticket, release),
            Request::HandOff(hand_offs) => self.take_in(from, ticket, hand_offs),
            Request::Keep(rows) => self.replication.keep(&mut self.context, &self.ownership, from, ticket, rows),
            Request::Recall(subnet, cursor) => {
                self.context.commands.push_back(Command::Store(StoreCommand::RecallRows { ticket, subnet, from: cursor }))
            }
            Request::Holds(subnets) => self.replication.asked_what_is_here(&mut self.context, ticket, subnets),
            Request::CompareClaims(parts) => self.ownership.compared(&mut self.context, ticket, &parts),
            Request::Totals => self.tell_totals(ticket),
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

    /// A steward, or the owner of what lies around it, awards us a subnet.
    fn awarded_by(&mut self, from: AccessPoint, ticket: Ticket, award: Award, rest: Millis) {
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

    /// Takes in an answer to a question of ours.
    pub(crate) fn answered(&mut self, question: QuestionId, from: AccessPoint, answer: Option<Response>) {
        let Some(pending) = self.context.pending.remove(&question) else { return };
        match (pending, answer) {
            (Pending::Locate(host), Some(Response::Located(located))) => self.located(&host, located),
            (Pending::Locate(host), _) => self.routing.not_located(&host),
            (Pending::FindOwner | Pending::Award { .. }, Some(Response::FindingOwner(Some(proof)))) => self.hear_claims(vec![proof]),
            (Pending::Award { subnet }, Some(Response::Refused(_))) => self.delegation.award_declined(&self.context, subnet, from),
            (Pending::FindOwner | Pending::Award { .. }, Some(_)) => {}
            (Pending::FindOwner, None) => {}
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
            (Pending::Totals, Some(Response::Totals(totals))) if totals.owner == from => self.report.hear(&mut self.context, *totals),
            (Pending::Totals, _) => {}
            (Pending::Compare(question), answer) => self.compare_answered(question, answer),
            (Pending::StoreOf, answer) => self.replication.uses_store(from, answer),
            (Pending::Holds(subnets), answer) => self.told_what_is_there(from, &subnets, answer),
            (pending @ (Pending::Renew(_) | Pending::Propose { .. } | Pending::Ballot | Pending::VoterLists), answer) => {
                self.vote_answered(from, pending, answer)
            }
        }
    }
}
