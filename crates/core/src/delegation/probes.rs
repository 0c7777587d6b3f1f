//! May this be probed, and what came of it? Our own prober, for ourselves and for stewards who ask; nobody is obeyed blindly.

use crate::{
    crawler::Crawler,
    event::{Command, StoreCommand, WebCommand},
};
use crate::{delegation::contacts::chain::Chain, ownership::register::claimable};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{ProbeReport, ProbeTarget},
    message::Response,
    receipt::{Declined, Receipt, SignedReceipt},
    subnet::Subnet,
};

/// So many of a subnet's stewards, in our own order, are obeyed: we may differ a little in who is alive.
const STEWARDS_OBEYED: usize = 3;

/// A probe that runs here.
#[derive(Debug)]
pub(crate) struct Probing {
    /// The steward who asked, with its ticket; none if that is us.
    asked_by: Option<(AccessPoint, u64)>,
    subnet: Subnet,
    target: ProbeTarget,
    /// The receipts of the probes before.
    before: Vec<SignedReceipt>,
}

impl Crawler {
    /// A subnet's steward asks us to probe.
    pub(crate) fn probe_for(&mut self, from: AccessPoint, ticket: u64, subnet: Subnet, target: ProbeTarget, before: Vec<SignedReceipt>) {
        match self.may_probe_for(from, subnet, &target, &before) {
            Ok(()) => {
                self.context.counters.probes_for_others += 1;
                self.probe(Some((from, ticket)), subnet, target, before);
            }
            Err(why) => {
                *self.context.counters.declined.entry(why).or_default() += 1;
                let known = self.delegation.contacts.chain(&self.account_of(&target));
                self.answer(ticket, Response::ProbeDeclined(why, known));
            }
        }
    }

    pub(crate) fn may_probe_for(
        &mut self,
        from: AccessPoint,
        subnet: Subnet,
        target: &ProbeTarget,
        before: &[SignedReceipt],
    ) -> Result<(), Declined> {
        if self.context.settings.scope.denies(&target.host) {
            return Err(Declined::Denied);
        }
        if self.held_back().is_some() {
            return Err(Declined::HeldBack);
        }
        if !subnet.contains(target.address.ip()) || !claimable(&subnet) {
            return Err(Declined::OutsideTheSubnet);
        }
        let standing = self.ownership.register.around(target.address.ip()).filter(|claim| !claim.released);
        let entitled = match standing {
            // What lies in a larger claimed subnet is for the owner of that to settle.
            Some(claim) if claim.subnet != subnet && claim.subnet.covers(&subnet) => claim.owner == from,
            Some(_) => return Err(Declined::Owned),
            None => self.stewards_of(&subnet).iter().take(STEWARDS_OBEYED).any(|steward| *steward == from),
        };
        if entitled { self.may_contact(subnet, target, before) } else { Err(Declined::NoSteward) }
    }

    /// Under which subnet a contact is booked: by our own hierarchy, whatever the steward goes by, for a liar could name a new subnet
    /// each time. Never under more than the swarm delegates at a time, whatever our own policy: of a large subnet others may
    /// settle many parts, and the receipts about one say nothing of another.
    pub(crate) fn account_of(&self, target: &ProbeTarget) -> Subnet {
        self.context.hierarchy.unit_of(target.address.ip())
    }

    /// Whether one more probe of ours may go to this subnet, after those before; if so it counts.
    pub(crate) fn may_contact(&mut self, subnet: Subnet, target: &ProbeTarget, before: &[SignedReceipt]) -> Result<(), Declined> {
        let chain = self.open_chain(subnet, before).ok_or(Declined::BrokenChain)?;
        let (account, most) = (self.account_of(target), self.context.settings.contacts_per_subnet as usize);
        let taken = self.delegation.contacts.take(self.context.me, account, &chain, most, self.context.now.wall);
        // Before the probe goes out: a crash must not make it uncounted.
        self.keep_contacts();
        taken
    }

    pub(crate) fn open_chain(&self, subnet: Subnet, signed: &[SignedReceipt]) -> Option<Chain> {
        Chain::open(subnet, signed, |who| *who == self.context.me || self.membership.knows(who)).ok()
    }

    /// Has what changed in the book of contacts stored.
    pub(crate) fn keep_contacts(&mut self) {
        for (page, bytes) in self.delegation.contacts.changed_pages() {
            self.context.commands.push_back(Command::Store(StoreCommand::KeepContacts { page, bytes }));
        }
    }

    /// As the steward: probes ourselves, if that is allowed.
    pub(crate) fn probe_myself(&mut self, subnet: Subnet, target: ProbeTarget, before: Vec<SignedReceipt>) -> Result<(), Declined> {
        if self.context.settings.scope.denies(&target.host) {
            return Err(Declined::Denied);
        }
        self.may_contact(subnet, &target, &before)?;
        self.probe(None, subnet, target, before);
        Ok(())
    }

    pub(crate) fn probe(&mut self, asked_by: Option<(AccessPoint, u64)>, subnet: Subnet, target: ProbeTarget, before: Vec<SignedReceipt>) {
        let question = self.number();
        self.context.counters.probes += 1;
        self.delegation.probing.insert(question, Probing { asked_by, subnet, target: target.clone(), before });
        self.context.commands.push_back(Command::Web(WebCommand::Probe { question, target }));
    }

    /// Our own prober came back: for ourselves as steward, or for the steward who asked.
    pub(crate) fn probed_here(&mut self, question: u64, report: ProbeReport) {
        if self.home_timed(question, report) {
            return;
        }
        let Some(Probing { asked_by, subnet, target, before }) = self.delegation.probing.remove(&question) else { return };
        let receipt = Receipt {
            subnet,
            address: target.address,
            prober: self.context.me,
            steward: asked_by.map_or(self.context.me, |(steward, _)| steward),
            sequence: before.len() as u16,
            before: before.last().map(SignedReceipt::id).unwrap_or_default(),
            rtt_us: report.rtt_us.ok(),
            at: self.context.now.wall,
        };
        let receipt = SignedReceipt::sign(&receipt, &self.context.key);
        self.note_receipts(subnet, &target, [before, vec![receipt.clone()]].concat());
        match asked_by {
            Some((_, ticket)) => self.answer(ticket, Response::Probed(report, receipt)),
            None => self.probe_answered(subnet, self.context.me, Some((report, receipt))),
        }
    }

    pub(crate) fn note_receipts(&mut self, subnet: Subnet, target: &ProbeTarget, signed: Vec<SignedReceipt>) {
        if let Some(chain) = self.open_chain(subnet, &signed) {
            let account = self.account_of(target);
            self.delegation.contacts.extended(account, &chain, &signed, self.context.now.wall);
        }
    }

    /// A prober answered us, the steward.
    pub(crate) fn prober_answered(&mut self, subnet: Subnet, from: AccessPoint, answer: Option<Response>) {
        match answer {
            Some(Response::Probed(report, receipt)) => {
                let chain =
                    self.delegation.rounds.get(&subnet).map(|procedure| [&procedure.chain[..], std::slice::from_ref(&receipt)].concat());
                let follows = chain.is_some_and(|chain| self.open_chain(subnet, &chain).is_some());
                let fits = follows && receipt.open().is_ok_and(|opened| opened.prober == from && opened.rtt_us == report.rtt_us.ok());
                if !fits {
                    self.refuse("receipts that do not match the probe's answer");
                }
                self.probe_answered(subnet, from, fits.then_some((report, receipt)));
            }
            Some(Response::ProbeDeclined(why, known)) => {
                *self.context.counters.declined_by_others.entry(why).or_default() += 1;
                self.learn_of_probes(subnet, known);
                self.probe_answered(subnet, from, None);
            }
            Some(_) | None => self.probe_answered(subnet, from, None),
        }
    }

    /// What a steward of this subnet before us found out, if it asked us too.
    pub(crate) fn recall_probes(&mut self, subnet: Subnet) {
        let account = self.delegation.rounds.get(&subnet).map(|procedure| self.account_of(&procedure.target));
        if let Some(account) = account {
            self.learn_of_probes(subnet, self.delegation.contacts.chain(&account));
        }
    }

    /// Probes of a subnet that somebody made before us, for a steward before us: their answers need not be asked for again.
    pub(crate) fn learn_of_probes(&mut self, subnet: Subnet, known: Vec<SignedReceipt>) {
        let Some(chain) = self.open_chain(subnet, &known).filter(|chain| !chain.is_empty()) else { return };
        let Some(procedure) = self.delegation.rounds.get_mut(&subnet) else { return };
        for receipt in chain.receipts() {
            procedure.search.answer(receipt.prober, receipt.rtt_us);
        }
        // From now on theirs is shown, if it goes on where ours ends.
        if known.len() > procedure.chain.len() && known.starts_with(&procedure.chain) {
            procedure.chain = known;
        }
    }

    /// A receipt goes on to whoever is asked next. What was measured is for the search to remember, and for everybody to learn from the
    /// claim: known twice, an answer would look more certain than it is.
    pub(crate) fn note_receipt(&mut self, subnet: Subnet, receipt: SignedReceipt) {
        let Some(procedure) = self.delegation.rounds.get_mut(&subnet) else { return };
        procedure.contacts += 1;
        procedure.chain.push(receipt);
        let (target, chain) = (procedure.target.clone(), procedure.chain.clone());
        self.note_receipts(subnet, &target, chain);
    }

    /// What a download of ours says of the way to a subnet, free of charge.
    pub(crate) fn timed(&mut self, subnet: Subnet, rtt_us: u32) {
        let known = self.delegation.knowledge.measurements(&subnet).find(|(who, _)| *who == self.context.me).map(|(_, rtt)| rtt);
        if known.is_none_or(|known| rtt_us < known) {
            self.context.counters.passive_timings += 1;
            self.delegation.knowledge.measured(&self.context.hierarchy, subnet, self.context.me, rtt_us);
        }
    }
}
