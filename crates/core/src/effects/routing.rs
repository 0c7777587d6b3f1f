//! A URL is named, or something becomes known of where it belongs: who hears of it, and in which order?

use crate::{
    crawler::Crawler,
    routing::arrival::{Bound, Place},
};
use nearcrawl_model::{
    fetch::{LocatedHost, ResolveError},
    message::Response,
    url::{Host, PageUrl},
};

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
        let delivered = self.routing.acknowledge(&mut self.context, recorded, |key| self.crawl.sites().owns(key));
        self.replication.delivered(&delivered);
    }
}
