//! What several machines do about one fact, in order. Nothing is decided here.

use crate::{
    crawler::Crawler,
    routing::{
        arrival::{Bound, Place},
        outbox::Item,
    },
};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{LocatedHost, ResolveError},
    journal::{JournalEntry, JournalKey},
    message::Response,
    url::{Host, PageUrl},
};
use std::collections::BTreeMap;

/// URLs on their way to their owners.
impl Crawler {
    /// People named starting points.
    pub(crate) fn seeds(&mut self, urls: Vec<PageUrl>) {
        self.routing.seeds(&mut self.context, urls);
        self.route();
    }

    /// The DNS answered.
    pub(crate) fn resolved(&mut self, host: &Host, answer: Result<LocatedHost, ResolveError>) {
        self.routing.resolved(&mut self.context, host, answer);
        self.route();
    }

    /// The host's steward answered.
    pub(crate) fn located(&mut self, host: &Host, answer: Result<LocatedHost, ResolveError>) {
        if self.routing.located(&mut self.context, host, answer) {
            self.route();
        }
    }

    /// An owner answered a hand-off.
    pub(crate) fn handed_off(&mut self, question: u64, answer: Option<Response>) {
        let done = self.routing.handed_off(&self.context, question, answer);
        self.replication.delivered(&done);
        self.route();
    }

    /// Sends every URL on its way that may have become routable: to its owner, or into a site of ours.
    pub(crate) fn route(&mut self) {
        if self.shutdown.is_over() || (self.shutdown.is_draining() && self.routing.outbox().is_empty()) {
            return;
        }
        let mut bound = Bound::new();
        for host in self.routing.due(&self.context) {
            match self.routing.place(&mut self.context, &self.membership, &host) {
                Place::At(located) => {
                    let owner = self.owner_for(&located);
                    if let Some((located, items)) = self.routing.bind(&self.context, &mut bound, located, owner) {
                        self.admit_own(located, items);
                    }
                }
                Place::Nowhere(items) => self.replication.delivered(&items),
                Place::Unknown => {}
            }
        }
        self.routing.send(&mut self.context, bound);
    }

    /// Answers everybody whose arrivals are recorded by now.
    pub(crate) fn acknowledge(&mut self) {
        let recorded = |key: &_, upto| self.replication.is_recorded(key, upto);
        let delivered = self.routing.acknowledge(&mut self.context, recorded, |key| self.crawl.owns(key));
        self.replication.delivered(&delivered);
    }
}

/// Journals.
impl Crawler {
    /// Enters what happened into a site's journal. The site knows it at once; the world hears of it when it is stored.
    pub(crate) fn journal(&mut self, host: &Host, entry: JournalEntry) {
        let Some(site) = self.crawl.sites.get_mut(host) else { return };
        let (key, sequence) = (site.key.clone(), site.next_sequence());
        site.apply(&entry, &self.context.settings.rules, &self.context.secret);
        self.replication.push(&self.context, key, sequence, &entry);
        self.report.site_changed(host);
        self.keep_front(host);
        self.replication.flush_if_full(&mut self.context, &entry);
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

    pub(crate) fn tick_journals(&mut self) {
        self.replication.tick(&mut self.context);
        if self.context.rounds.is_multiple_of(50) {
            for (host, before) in self.replication.newly_forwarded() {
                self.journal(&host, JournalEntry::Forwarded { before });
            }
            self.drop_superseded();
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
        for site in self.crawl.sites.values() {
            self.replication.assign(&self.context, &self.membership, &self.migration, &site.key);
        }
        self.acknowledge();
    }
}
