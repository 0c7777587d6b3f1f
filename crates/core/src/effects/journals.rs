//! Rows are written, stored and copied, and a subnet's journals are read or closed: which machines hear of it, and in which order?

use crate::{crawler::Crawler, replication::loading::JournalCopy, routing::outbox::Item};
use nearcrawl_model::{
    access_point::AccessPoint,
    journal::{JournalEntry, JournalKey},
    subnet::Subnet,
    url::Host,
};
use std::collections::BTreeMap;

/// Rows.
impl Crawler {
    /// Enters what happened into a site's journal.
    pub(crate) fn journal(&mut self, host: &Host, entry: JournalEntry) {
        self.crawl.journal(&mut self.context, &mut self.replication, host, entry);
    }

    /// Rows are durable: what they name goes on its way, and who waited for them is answered.
    pub(crate) fn rows_stored(&mut self, receipt: u64) {
        let Some(outgoing) = self.replication.stored(receipt) else { return };
        self.send_out(outgoing);
        self.acknowledge();
    }

    /// URLs named by stored rows go on their way.
    pub(crate) fn send_out(&mut self, items: Vec<Item>) {
        if items.is_empty() {
            return;
        }
        self.replication.forward(&items);
        self.routing.put(items);
        self.route();
    }

    /// Rows are stored and copied, and what is of no use any more is dropped.
    pub(crate) fn tick_journals(&mut self) {
        self.replication.tick(&mut self.context);
        if self.context.rounds.is_multiple_of(50) {
            for (host, before) in self.replication.newly_forwarded() {
                self.journal(&host, JournalEntry::Forwarded { before });
            }
            self.crawl.drop_superseded(&mut self.context, &mut self.replication);
        }
    }

    /// A replica answered a copy, or did not.
    pub(crate) fn copied(&mut self, to: AccessPoint, sent: &BTreeMap<JournalKey, u64>, heads: Option<Vec<(JournalKey, u64)>>) {
        self.replication.copied(&self.context, to, sent, heads);
        self.acknowledge();
        self.replication.send_copies(&mut self.context);
    }

    /// The living changed: so may the replicas.
    pub(crate) fn assign_replicas(&mut self) {
        for site in self.crawl.sites().all() {
            let next_owner = self.migration.next_owner(&site.key.subnet);
            self.replication.assign(&self.context, &self.membership, next_owner, &site.key);
        }
        self.acknowledge();
    }
}

/// A subnet became ours, or is ours no more.
impl Crawler {
    /// A replica sent all it had of a subnet, or nothing came of asking it.
    pub(crate) fn recovered(&mut self, subnet: Subnet, from: AccessPoint, journals: Option<Vec<(JournalKey, Vec<JournalEntry>)>>) {
        self.replication.recovered(&self.context, subnet, from, journals);
        self.begin_if_known(subnet);
    }

    /// Our own store's journals of a subnet of ours were read.
    pub(crate) fn loaded(&mut self, subnet: Subnet, journals: Vec<(JournalKey, Vec<JournalEntry>)>) {
        self.replication.loaded(subnet, journals);
        self.begin_if_known(subnet);
    }

    /// Replicas that did not answer are asked again, or not waited for.
    pub(crate) fn tick_recovery(&mut self) {
        let (begin, unheard) = self.replication.ask_again(&mut self.context);
        for subnet in begin {
            self.begin_if_known(subnet);
        }
        for subnet in unheard {
            self.replication.ask_others(&mut self.context, &self.membership, subnet);
            self.begin_if_known(subnet);
        }
    }

    /// When all that can be had of a subnet's history is here, its sites stand where their former owner stood.
    fn begin_if_known(&mut self, subnet: Subnet) {
        let Some(found) = self.replication.take_found(&subnet) else { return };
        self.report.mark_changed();
        let claim = self.ownership.register().claim(&subnet).filter(|claim| claim.owner == self.context.me);
        let Some((reason, epoch)) = claim.map(|claim| (claim.reason, claim.epoch)) else { return };
        if let Some(rest) = found.rest_after(reason) {
            self.delegation.rest_subnet(&self.context, subnet, rest);
        }
        self.migration.read_history(&self.context, subnet, found.ownership_histories());
        let mut outgoing = Vec::new();
        for (copy, former) in found.into_journals() {
            outgoing.extend(self.begin_from(copy, former, epoch));
        }
        // Not before all stand: what leads from one to another must not open it anew.
        self.send_out(outgoing);
        self.yield_to_smaller(subnet);
        self.routing.wake_all();
    }

    /// A site begins where another's journal ends. Returns what that named for others, if it may go on its way at once.
    fn begin_from(&mut self, copy: JournalCopy, former: Option<JournalCopy>, epoch: u64) -> Vec<Item> {
        let (crawl, cx, replication, others) = self.crawling();
        crawl.begin_from(cx, replication, others, copy, former, epoch)
    }

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

    /// Forgets a subnet's sites. With `reroute` their waiting URLs go on their way again.
    pub(crate) fn dissolve(&mut self, subnet: Subnet, reroute: bool) {
        let hosts = self.crawl.sites().within(&subnet).cloned().collect();
        self.dissolve_hosts(subnet, hosts, reroute);
    }

    /// The same for some of a subnet's sites.
    pub(crate) fn dissolve_hosts(&mut self, subnet: Subnet, hosts: Vec<Host>, reroute: bool) {
        let items = self.crawl.dissolve(&mut self.context, &mut self.replication, &subnet, &hosts, reroute);
        self.routing.put(items);
        hosts.iter().for_each(|host| self.report.forget_site(host));
        // Whoever handed us URLs of these sites that were not recorded yet hears that they are not here.
        self.acknowledge();
    }
}
