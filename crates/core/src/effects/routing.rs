//! Effects of URLs on their way to their owners.

use crate::{
    crawler::Crawler,
    pending::Pending,
    routing::arrival::{Bound, Place},
};
use nearcrawl_model::{
    fetch::{LocatedHost, ResolveError},
    ids::QuestionId,
    message::{Request, Response},
    url::{Host, PageUrl},
};

impl Crawler {
    /// People named starting points.
    pub(crate) fn seeds(&mut self, urls: Vec<PageUrl>) {
        if self.context.name(&urls) {
            self.crawl.wishes_changed(&mut self.context);
        }
        self.routing.seeds(&mut self.context, urls);
        self.route();
    }

    /// The DNS answered.
    pub(crate) fn resolved(&mut self, host: &Host, answer: Result<LocatedHost, ResolveError>) {
        let owner_of = |address| self.ownership.register().around(address).map(|claim| claim.owner);
        let found = self.routing.resolved(&mut self.context, host, answer, owner_of);
        match found.to_tell {
            Some((owner, elsewhere)) if owner == self.context.me => {
                if !self.crawl.may_have_moved(&self.context, &elsewhere) {
                    self.routing.has_moved(&mut self.context, elsewhere);
                }
            }
            Some((owner, elsewhere)) => {
                self.context.ask(owner, Pending::HostMoved(elsewhere.clone()), Request::HostMoved(elsewhere));
            }
            None => self.crawl.confirmed(&self.context, host, &found.answer),
        }
        self.route();
    }

    /// The host's steward answered.
    pub(crate) fn located(&mut self, host: &Host, answer: Result<LocatedHost, ResolveError>) {
        if self.routing.located(&mut self.context, host, answer) {
            self.route();
        }
    }

    /// An owner answered a hand-off.
    pub(crate) fn handed_off(&mut self, question: QuestionId, answer: Option<Response>) {
        let done = self.routing.handed_off(&self.context, question, answer);
        self.replication.delivered(&done);
        self.route();
    }

    /// Sends every URL on its way that may have become routable: to its owner, or into a site of ours.
    pub(crate) fn route(&mut self) {
        if self.shutdown.is_over() || (self.shutdown.is_draining() && self.routing.outbox().is_empty()) {
            return;
        }
        let (mut bound, mut own) = (Bound::new(), Vec::new());
        for host in self.routing.due(&self.context) {
            match self.routing.place(&mut self.context, &self.membership, &host) {
                Place::At(located) if self.is_out_of_scope(&located) => {
                    let items = self.routing.not_in_scope(&mut self.context, &host);
                    self.replication.delivered(&items);
                }
                Place::At(located) => {
                    let start = self.routing.first_for(&located.host).cloned();
                    let owner = self.owner_for(&located, start.as_ref());
                    if self.holds_back(&located, owner == Some(self.context.me)) {
                        self.routing.hold_back(&self.context, &host);
                        continue;
                    }
                    own.extend(self.routing.bind(&self.context, &mut bound, located, owner));
                }
                Place::Nowhere(items) => self.replication.delivered(&items),
                Place::Unknown => {}
            }
        }
        self.admit_own(own);
        self.routing.send(&mut self.context, bound);
    }

    /// Whether nothing but links that a survey's countries or organisations might have wanted lead to a host, which is elsewhere.
    fn is_out_of_scope(&self, located: &LocatedHost) -> bool {
        self.routing.outbox().has_links_alone(&located.host) && !self.context.admits_at(&located.host, located.address)
    }

    /// Whether a host's URLs wait here because it moves, or is being looked up. `begins` says whether it would be crawled here from now on.
    fn holds_back(&mut self, located: &LocatedHost, begins: bool) -> bool {
        let ours = self.crawl.site(&located.host).is_some();
        if ours && self.crawl.may_have_moved(&self.context, located) {
            return true;
        }
        if !ours && begins && !self.routing.is_recent(&mut self.context, &self.membership, &located.host) {
            return true;
        }
        let run = if ours { self.routing.newest_run_for(&located.host) } else { 0 };
        self.crawl.holds_back(&self.context, &located.host, run)
    }

    /// Answers every member whose arrivals are recorded by now.
    pub(crate) fn acknowledge(&mut self) {
        let recorded = |key: &_, upto| self.replication.is_recorded(key, upto);
        let delivered = self.routing.acknowledge(&mut self.context, recorded, |key| self.crawl.sites().owns(key));
        self.replication.delivered(&delivered);
    }
}
