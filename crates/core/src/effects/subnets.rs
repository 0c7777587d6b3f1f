//! Effects of a subnet that became ours, or is ours no more.

use crate::{crawler::Crawler, replication::loading::JournalCopy, routing::outbox::Item};
use nearcrawl_model::{
    access_point::AccessPoint,
    journal::{JournalEntry, JournalKey},
    message::Response,
    subnet::Subnet,
    url::Host,
};

/// It became ours: its journals come.
impl Crawler {
    /// A member sent all it had of a subnet, or nothing came of asking it.
    pub(crate) fn recovered(
        &mut self,
        subnet: Subnet,
        from: AccessPoint,
        journals: Option<Vec<(JournalKey, Vec<JournalEntry>)>>,
        bytes: usize,
    ) {
        self.replication.recovered(&self.context, subnet, from, journals, bytes);
        self.begin_if_known(subnet);
    }

    /// A member said of which of these subnets it has rows, or did not answer.
    pub(crate) fn told_what_is_there(&mut self, from: AccessPoint, subnets: &[Subnet], answer: Option<Response>) {
        for subnet in self.replication.told_what_is_there(&mut self.context, from, subnets, answer) {
            self.begin_if_known(subnet);
        }
    }

    /// Our own store's journals of a subnet of ours were read.
    pub(crate) fn loaded(&mut self, subnet: Subnet, journals: Vec<(JournalKey, Vec<JournalEntry>)>) {
        self.replication.loaded(self.context.now.moment, subnet, journals);
        self.begin_if_known(subnet);
    }

    /// Replicas that did not answer are asked again, or not waited for.
    pub(crate) fn tick_recovery(&mut self) {
        let (begin, unheard) = self.replication.ask_again(&self.context, &self.membership);
        for subnet in begin {
            self.begin_if_known(subnet);
        }
        for subnet in unheard {
            self.replication.ask_others(&self.context, &self.membership, subnet);
            self.begin_if_known(subnet);
        }
        self.replication.begin_loads(&mut self.context, &self.membership);
        self.replication.ask_what_is_there(&mut self.context);
    }

    /// When all that can be had of a subnet's history is here, its sites stand where their previous owner stood.
    pub(super) fn begin_if_known(&mut self, subnet: Subnet) {
        let epoch = self.ownership.register().claim(&subnet).map_or(0, |claim| claim.epoch);
        let Some(found) = self.replication.take_found(&subnet, epoch) else { return };
        (0..found.refused()).for_each(|_| self.context.refuse("journals of epochs that their subnet has not come to"));
        self.replication.begin_loads(&mut self.context, &self.membership);
        self.report.mark_changed();
        let claim = self.ownership.register().claim(&subnet).filter(|claim| claim.owner == self.context.me);
        let Some((reason, epoch)) = claim.map(|claim| (claim.reason, claim.epoch)) else { return };
        if let Some(rest) = found.rest_after(reason) {
            self.delegation.rest_subnet(&self.context, subnet, rest);
        }
        self.migration.read_history(&self.context, subnet, found.ownership_histories());
        let mut outgoing = Vec::new();
        for (copy, previous) in found.into_journals() {
            outgoing.extend(self.begin_from(copy, previous, epoch));
        }
        self.crawl.await_stewards(&self.context, &subnet);
        // Not before all stand: what leads from one to another must not open it anew.
        self.send_out(outgoing);
        self.yield_to_smaller(subnet);
        self.routing.wake_all();
    }

    /// A site begins where another's journal ends. Returns what that named for others, if it may go on its way at once.
    pub(super) fn begin_from(&mut self, copy: JournalCopy, previous: Option<JournalCopy>, epoch: u64) -> Vec<Item> {
        let (crawl, cx, replication, others) = self.crawling();
        crawl.begin_from(cx, replication, others, copy, previous, epoch)
    }
}

/// It is ours no more.
impl Crawler {
    /// A subnet is not ours any more: nothing of it is asked, counted or sent from here. If another one has it, it is handed what
    /// its sites began with and what waits here: its claim may be as old as ours, or our replicas could not tell it.
    pub(crate) fn give_up(&mut self, subnet: Subnet) {
        let reroute = self.ownership.register().claim(&subnet).is_some();
        self.replication.stop_loading(&subnet);
        self.ownership.unwatch(&subnet);
        self.migration.forget_accesses(&subnet);
        self.dissolve(subnet, reroute);
        self.report.mark_changed();
    }

    /// Gives up the sites of a subnet of ours that lie in smaller claimed ones by now.
    pub(super) fn yield_to_smaller(&mut self, subnet: Subnet) {
        let lost = self.crawl.sites().lost_within(self.context.me, self.ownership.register(), &subnet);
        if !lost.is_empty() {
            self.dissolve_hosts(subnet, lost, true);
            self.report.mark_changed();
        }
    }

    /// Forgets a subnet's sites. With `reroute` their waiting URLs go on their way again.
    pub(crate) fn dissolve(&mut self, subnet: Subnet, reroute: bool) {
        let hosts = self.crawl.sites().within(&subnet).cloned().collect();
        self.dissolve_hosts(subnet, hosts, reroute);
    }

    /// The same for some of a subnet's sites.
    pub(super) fn dissolve_hosts(&mut self, subnet: Subnet, hosts: Vec<Host>, reroute: bool) {
        let items = self.crawl.dissolve(&mut self.context, &mut self.replication, &subnet, &hosts, reroute);
        self.routing.put(items);
        hosts.iter().for_each(|host| self.report.forget_site(host));
        // The member that handed us URLs of these sites that were not recorded yet hears that they are not here.
        self.acknowledge();
    }
}
