//! May this be probed, and what came of it? Our own prober, for ourselves and for stewards who ask.

use super::{Command, Crawler, Pending};
use crate::model::{
    fetch::{ProbeReport, ProbeTarget},
    message::Response,
    subnet::Subnet,
    url::Host,
};

impl Crawler {
    /// A subnet's steward asks us to probe. Not obeyed blindly: the address must lie there, be allowed and within budget.
    pub(super) fn probe_for(&mut self, ticket: u64, subnet: Subnet, target: ProbeTarget) {
        // By whatever hierarchy the steward goes; the budget goes by ours.
        let fits = subnet.contains(target.address.ip());
        let subnet = self.hierarchy.subnet_of(target.address.ip());
        if !fits || self.held_back().is_some() || !self.may_contact(subnet, &target.host) {
            self.refuse("probes asked of us");
            return self.answer(ticket, Response::ProbeDeclined("outside the subnet, denied, over budget, or not fetching".to_owned()));
        }
        let question = self.number();
        self.probing_for.insert(question, ticket);
        self.counters.probes += 1;
        self.commands.push_back(Command::Probe { question, target });
    }

    /// Whether one more probe of ours may go to this subnet; if so it counts.
    pub(super) fn may_contact(&mut self, subnet: Subnet, host: &Host) -> bool {
        let contacts = self.contacts.get(&subnet).map_or(0, |(contacts, _)| *contacts);
        let may = contacts < self.settings.contacts_per_subnet && !self.settings.scope.denies(host);
        if may {
            self.contacts.insert(subnet, (contacts + 1, self.now.moment));
        }
        may
    }

    /// Our own prober came back: for ourselves as steward, or for the steward who asked.
    pub(super) fn probed_here(&mut self, question: u64, report: ProbeReport) {
        if let Some(ticket) = self.probing_for.remove(&question) {
            return self.answer(ticket, Response::Probed(report));
        }
        if let Some(Pending::Probe { subnet }) = self.pending.remove(&question) {
            self.probe_answered(subnet, self.me, Some(report));
        }
    }
}
