//! Our own prober, for ourselves and for stewards who ask: checks each order, runs it and keeps its result.
//!
//! No member is obeyed blindly.

use crate::{
    context::Context,
    delegation::{
        contacts::{Contacts, chain::Chain},
        reads::DelegationReads,
    },
    event::{Command, StoreCommand, WebCommand},
    membership::Membership,
    ownership::register::claimable,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{ProbeReason, ProbeReport, ProbeTarget},
    ids::{QuestionId, Ticket},
    message::Response,
    receipt::{Declined, Receipt, SignedReceipt},
    subnet::Subnet,
};
use std::collections::BTreeMap;

/// So many of a subnet's stewards, in our own order, are obeyed: we may differ a little in who is alive.
const STEWARDS_OBEYED: usize = 3;

/// The probes that run here, and all contacts by probes that are known.
#[derive(Debug, Default)]
pub(crate) struct Prober {
    /// By question.
    running: BTreeMap<QuestionId, Probing>,
    contacts: Contacts,
}

/// A probe that runs here.
#[derive(Debug)]
struct Probing {
    /// The steward who asked, with its ticket; none if that is us.
    asked_by: Option<(AccessPoint, Ticket)>,
    order: ProbeOrder,
}

/// One probe of a subnet.
#[derive(Clone, Debug)]
pub(crate) struct ProbeOrder {
    pub(crate) subnet: Subnet,
    pub(crate) target: ProbeTarget,
    /// The receipts of the probes before.
    pub(crate) before: Vec<SignedReceipt>,
}

/// Under which subnet a contact is booked: by our own hierarchy, whatever the steward goes by, for a liar could name a new subnet
/// each time. Never under more than the swarm delegates at a time, whatever our own policy: of a large subnet others may
/// settle many parts, and the receipts about one say nothing of another.
fn account_of(cx: &Context, target: &ProbeTarget) -> Subnet {
    cx.hierarchy.unit_of(target.address.ip())
}

/// The chain of these receipts, if they are about this subnet and of probers that are known here.
pub(super) fn open_chain(cx: &Context, members: &Membership, subnet: Subnet, signed: &[SignedReceipt]) -> Option<Chain> {
    Chain::open(subnet, signed, |who| *who == cx.me || members.knows(who)).ok()
}

impl Prober {
    /// Takes in the pages of the record of contacts that the previous process stored.
    pub(super) fn recall(&mut self, cx: &Context, pages: &[Vec<u8>]) {
        for page in pages {
            self.contacts.recall(page, cx.now.wall);
        }
    }

    /// A subnet's steward asks us to probe. `held_back` is whether nothing may be fetched here now.
    pub(super) fn probe_for(
        &mut self,
        cx: &mut Context,
        others: DelegationReads<'_>,
        steward: (AccessPoint, Ticket),
        order: ProbeOrder,
        held_back: bool,
    ) {
        match self.may_probe_for(cx, others, steward.0, &order, held_back) {
            Ok(()) => {
                cx.counters.probes_for_others += 1;
                self.probe(cx, Some(steward), order);
            }
            Err(why) => {
                *cx.counters.declined.entry(why).or_default() += 1;
                let known = self.known_of(cx, &order.target);
                cx.answer(steward.1, Response::ProbeDeclined(why, known));
            }
        }
    }

    fn may_probe_for(
        &mut self,
        cx: &mut Context,
        others: DelegationReads<'_>,
        from: AccessPoint,
        order: &ProbeOrder,
        held_back: bool,
    ) -> Result<(), Declined> {
        let ProbeOrder { subnet, target, .. } = order;
        if cx.denies(&target.host, Some(target.address.ip())) {
            return Err(Declined::Denied);
        }
        if held_back {
            return Err(Declined::HeldBack);
        }
        if !subnet.contains(target.address.ip()) || !claimable(subnet) {
            return Err(Declined::OutsideTheSubnet);
        }
        let standing = others.ownership.register().around(target.address.ip()).filter(|claim| !claim.released);
        let entitled = match standing {
            // What lies in a larger claimed subnet is for the owner of that to settle.
            Some(claim) if claim.subnet != *subnet && claim.subnet.covers(subnet) => claim.owner == from,
            Some(_) => return Err(Declined::Owned),
            None => others.members.stewards_of(subnet).iter().take(STEWARDS_OBEYED).any(|steward| *steward == from),
        };
        if entitled { self.may_contact(cx, others.members, order) } else { Err(Declined::NoSteward) }
    }

    /// As the steward: probes ourselves, if that is allowed.
    pub(super) fn probe_myself(&mut self, cx: &mut Context, members: &Membership, order: ProbeOrder) -> Result<(), Declined> {
        if cx.denies(&order.target.host, Some(order.target.address.ip())) {
            return Err(Declined::Denied);
        }
        // Who is alone leaves nothing to others by saying no.
        let leaves_it = !cx.takes_subnets() && members.live().len() > 1;
        if !cx.may_ask_servers() || leaves_it {
            return Err(Declined::HeldBack);
        }
        self.may_contact(cx, members, &order)?;
        self.probe(cx, None, order);
        Ok(())
    }

    /// Whether one more probe of ours may go to this subnet, after those before; if so it counts.
    fn may_contact(&mut self, cx: &mut Context, members: &Membership, order: &ProbeOrder) -> Result<(), Declined> {
        let chain = open_chain(cx, members, order.subnet, &order.before).ok_or(Declined::BrokenChain)?;
        let (account, most) = (account_of(cx, &order.target), cx.settings.contacts_per_subnet as usize);
        let taken = self.contacts.take(cx.me, account, &chain, most, cx.now.wall);
        // Before the probe goes out: a crash must not make it uncounted.
        self.keep_contacts(cx);
        taken
    }

    /// Whether a survey's probe of ours may go to this server; if so it counts.
    pub(super) fn contact_for_survey(&mut self, cx: &mut Context, target: &ProbeTarget) -> Result<(), Declined> {
        let (account, most) = (account_of(cx, target), cx.settings.contacts_per_subnet as usize);
        let taken = self.contacts.take_alone(cx.me, account, most, cx.now.wall);
        self.keep_contacts(cx);
        taken
    }

    fn probe(&mut self, cx: &mut Context, asked_by: Option<(AccessPoint, Ticket)>, order: ProbeOrder) {
        let question = cx.number();
        cx.counters.probes += 1;
        let (target, reason) = (order.target.clone(), ProbeReason::Delegation(asked_by.map(|(steward, _)| steward)));
        self.running.insert(question, Probing { asked_by, order });
        cx.commands.push_back(Command::Web(WebCommand::Probe { question, target, reason }));
    }

    /// A probe of ours ended. The steward who asked is answered; if that is us, returns the subnet and the receipt.
    pub(super) fn ended(
        &mut self,
        cx: &mut Context,
        members: &Membership,
        question: QuestionId,
        report: ProbeReport,
    ) -> Option<(Subnet, SignedReceipt)> {
        let Probing { asked_by, order: ProbeOrder { subnet, target, before } } = self.running.remove(&question)?;
        let receipt = Receipt {
            subnet,
            address: target.address,
            prober: cx.me,
            steward: asked_by.map_or(cx.me, |(steward, _)| steward),
            sequence: before.len() as u16,
            before: before.last().map(SignedReceipt::id).unwrap_or_default(),
            rtt_us: report.rtt_us.ok(),
            at: cx.now.wall,
        };
        let receipt = SignedReceipt::sign(&receipt, &cx.key);
        self.note(cx, members, subnet, &target, [before, vec![receipt.clone()]].concat());
        let Some((_, ticket)) = asked_by else { return Some((subnet, receipt)) };
        cx.answer(ticket, Response::Probed(report, receipt));
        None
    }

    /// Records the contacts that these receipts tell of.
    pub(super) fn note(&mut self, cx: &Context, members: &Membership, subnet: Subnet, target: &ProbeTarget, signed: Vec<SignedReceipt>) {
        if let Some(chain) = open_chain(cx, members, subnet, &signed) {
            self.contacts.extended(account_of(cx, target), &chain, &signed, cx.now.wall);
        }
    }

    /// The receipts that are remembered here of the subnet around a target.
    pub(super) fn known_of(&self, cx: &Context, target: &ProbeTarget) -> Vec<SignedReceipt> {
        self.contacts.chain(&account_of(cx, target))
    }

    /// Has what changed in the record of contacts stored.
    pub(super) fn keep_contacts(&mut self, cx: &mut Context) {
        for (page, bytes) in self.contacts.changed_pages() {
            cx.commands.push_back(Command::Store(StoreCommand::KeepContacts { page, bytes }));
        }
    }

    /// Forgets contacts that count no more.
    pub(super) fn tidy(&mut self, cx: &Context) {
        self.contacts.tidy(cx.now.wall);
    }

    /// Whether a probe of a subnet runs here.
    pub(crate) fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    /// The record of contacts.
    pub(crate) fn contacts(&self) -> &Contacts {
        &self.contacts
    }
}
