//! May this be probed, and what came of it? Our own prober, for ourselves and for stewards who ask; nobody is obeyed blindly.

use super::{Command, Crawler};
use crate::{
    logic::contacts::chain::Chain,
    model::{
        access_point::AccessPoint,
        fetch::{ProbeReport, ProbeTarget},
        message::Response,
        receipt::{Declined, Receipt, SignedReceipt},
        subnet::Subnet,
    },
};
use std::net::{IpAddr, SocketAddr};

/// So many of a subnet's stewards, in our own order, are obeyed: we may differ a little in who is alive.
const STEWARDS_OBEYED: usize = 3;

/// A probe that runs here.
#[derive(Debug)]
pub(super) struct Probing {
    /// The steward who asked, with its ticket; none if that is us.
    asked_by: Option<(AccessPoint, u64)>,
    subnet: Subnet,
    address: SocketAddr,
    /// The receipts of the probes before.
    before: Vec<SignedReceipt>,
}

impl Crawler {
    /// A subnet's steward asks us to probe.
    pub(super) fn probe_for(&mut self, from: AccessPoint, ticket: u64, subnet: Subnet, target: ProbeTarget, before: Vec<SignedReceipt>) {
        match self.may_probe_for(from, subnet, &target, &before) {
            Ok(()) => {
                self.counters.probes_for_others += 1;
                self.probe(Some((from, ticket)), subnet, target, before);
            }
            Err(why) => {
                *self.counters.declined.entry(why).or_default() += 1;
                let known = self.contacts.chain(&self.hierarchy.subnet_of(target.address.ip()));
                self.answer(ticket, Response::ProbeDeclined(why, known));
            }
        }
    }

    fn may_probe_for(&mut self, from: AccessPoint, subnet: Subnet, target: &ProbeTarget, before: &[SignedReceipt]) -> Result<(), Declined> {
        if self.settings.scope.denies(&target.host) {
            Err(Declined::Denied)
        } else if self.held_back().is_some() {
            Err(Declined::HeldBack)
        } else if !subnet.contains(target.address.ip()) {
            Err(Declined::OutsideTheSubnet)
        } else if self.ownership.around(target.address.ip()).is_some_and(|claim| !claim.released && claim.owner != from) {
            Err(Declined::Owned)
        } else if !self.is_steward(from, &subnet) {
            Err(Declined::NoSteward)
        } else {
            self.may_contact(subnet, target.address.ip(), before)
        }
    }

    /// Whether this one may have a subnet probed: one of its stewards, or the owner of what covers it.
    fn is_steward(&self, who: AccessPoint, subnet: &Subnet) -> bool {
        let covering = || self.ownership.covering(subnet).filter(|claim| !claim.released).map(|claim| claim.owner);
        self.stewards_of(subnet).iter().take(STEWARDS_OBEYED).any(|steward| *steward == who) || covering() == Some(who)
    }

    /// Whether one more probe of ours may go to this address, after those before; if so it counts. The steward names the subnet by its
    /// hierarchy; ours decides whose budget it is, else a liar could name a new one each time.
    fn may_contact(&mut self, subnet: Subnet, address: IpAddr, before: &[SignedReceipt]) -> Result<(), Declined> {
        let chain = self.open_chain(subnet, before).ok_or(Declined::BrokenChain)?;
        let most = self.settings.contacts_per_subnet as usize;
        let ours = self.hierarchy.subnet_of(address);
        let taken = self.contacts.take(self.me, ours, &chain, most, self.now.wall);
        // Before the probe goes out: a crash must not make it uncounted.
        self.keep_contacts();
        taken
    }

    pub(super) fn open_chain(&self, subnet: Subnet, signed: &[SignedReceipt]) -> Option<Chain> {
        Chain::open(subnet, signed, |who| *who == self.me || self.incarnations.contains_key(who)).ok()
    }

    /// Has what changed in the book of contacts stored.
    pub(super) fn keep_contacts(&mut self) {
        for (page, bytes) in self.contacts.changed_pages() {
            self.commands.push_back(Command::KeepContacts { page, bytes });
        }
    }

    /// As the steward: probes ourselves, if that is allowed.
    pub(super) fn probe_myself(&mut self, subnet: Subnet, target: ProbeTarget, before: Vec<SignedReceipt>) -> Result<(), Declined> {
        if self.settings.scope.denies(&target.host) {
            return Err(Declined::Denied);
        }
        self.may_contact(subnet, target.address.ip(), &before)?;
        self.probe(None, subnet, target, before);
        Ok(())
    }

    fn probe(&mut self, asked_by: Option<(AccessPoint, u64)>, subnet: Subnet, target: ProbeTarget, before: Vec<SignedReceipt>) {
        let question = self.number();
        self.counters.probes += 1;
        self.probing.insert(question, Probing { asked_by, subnet, address: target.address, before });
        self.commands.push_back(Command::Probe { question, target });
    }

    /// Our own prober came back: for ourselves as steward, or for the steward who asked.
    pub(super) fn probed_here(&mut self, question: u64, report: ProbeReport) {
        if self.home_timed(question, report) {
            return;
        }
        let Some(Probing { asked_by, subnet, address, before }) = self.probing.remove(&question) else { return };
        let receipt = Receipt {
            subnet,
            address,
            prober: self.me,
            steward: asked_by.map_or(self.me, |(steward, _)| steward),
            sequence: before.len() as u16,
            before: before.last().map(SignedReceipt::id).unwrap_or_default(),
            rtt_us: report.rtt_us.ok(),
            at: self.now.wall,
        };
        let receipt = SignedReceipt::sign(&receipt, &self.key);
        self.note_receipts(subnet, [before, vec![receipt.clone()]].concat());
        match asked_by {
            Some((_, ticket)) => self.answer(ticket, Response::Probed(report, receipt)),
            None => self.probe_answered(subnet, self.me, Some((report, receipt))),
        }
    }

    fn note_receipts(&mut self, subnet: Subnet, signed: Vec<SignedReceipt>) {
        if let Some(chain) = self.open_chain(subnet, &signed) {
            let address = chain.receipts().next().map_or(subnet.first(), |receipt| receipt.address.ip());
            self.contacts.extended(self.hierarchy.subnet_of(address), &chain, &signed, self.now.wall);
        }
    }

    /// A prober answered us, the steward.
    pub(super) fn prober_answered(&mut self, subnet: Subnet, from: AccessPoint, answer: Option<Response>) {
        match answer {
            Some(Response::Probed(report, receipt)) => {
                let chain = self.procedures.get(&subnet).map(|procedure| [&procedure.chain[..], &[receipt.clone()]].concat());
                let follows = chain.is_some_and(|chain| self.open_chain(subnet, &chain).is_some());
                let fits = follows && receipt.open().is_ok_and(|opened| opened.prober == from && opened.rtt_us == report.rtt_us.ok());
                if !fits {
                    self.refuse("receipts that do not fit the answer");
                }
                self.probe_answered(subnet, from, fits.then_some((report, receipt)));
            }
            Some(Response::ProbeDeclined(why, known)) => {
                *self.counters.declined_by_others.entry(why).or_default() += 1;
                self.learn_of_probes(subnet, known);
                self.probe_answered(subnet, from, None);
            }
            Some(_) | None => self.probe_answered(subnet, from, None),
        }
    }

    /// Probes of a subnet that somebody made before us, for a steward before us: their answers need not be asked for again.
    pub(super) fn learn_of_probes(&mut self, subnet: Subnet, known: Vec<SignedReceipt>) {
        let Some(chain) = self.open_chain(subnet, &known).filter(|chain| !chain.is_empty()) else { return };
        for receipt in chain.receipts() {
            if let Some(rtt_us) = receipt.rtt_us {
                self.knowledge.measured(&self.hierarchy, subnet, receipt.prober, rtt_us);
            }
        }
        let Some(procedure) = self.procedures.get_mut(&subnet) else { return };
        for receipt in chain.receipts() {
            procedure.search.answer(receipt.prober, receipt.rtt_us);
        }
        // From now on theirs is shown, if it goes on where ours ends.
        if known.len() > procedure.chain.len() && known.starts_with(&procedure.chain) {
            procedure.chain = known;
        }
    }

    /// An answer with its receipt: both go on to whoever is asked next.
    pub(super) fn note_answer(&mut self, subnet: Subnet, from: AccessPoint, report: ProbeReport, receipt: SignedReceipt) {
        if let Ok(rtt_us) = report.rtt_us {
            self.knowledge.measured(&self.hierarchy, subnet, from, rtt_us);
        }
        let Some(procedure) = self.procedures.get_mut(&subnet) else { return };
        procedure.contacts += 1;
        procedure.chain.push(receipt);
        let chain = procedure.chain.clone();
        self.note_receipts(subnet, chain);
    }

    /// What a download of ours says of the way to a subnet, free of charge.
    pub(super) fn timed(&mut self, subnet: Subnet, rtt_us: u32) {
        let known = self.knowledge.measurements(&subnet).find(|(who, _)| *who == self.me).map(|(_, rtt)| rtt);
        if known.is_none_or(|known| rtt_us < known) {
            self.counters.passive_timings += 1;
            self.knowledge.measured(&self.hierarchy, subnet, self.me, rtt_us);
        }
    }
}
