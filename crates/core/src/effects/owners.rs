//! An owner is found for a subnet, or a smaller subnet has one: who hears of it, and in which order?

use crate::{
    context::Context,
    crawler::Crawler,
    delegation::{Delegation, Others, prober::ProbeOrder},
};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{LocatedHost, ProbeTarget},
    message::Response,
    subnet::Subnet,
    url::PageUrl,
};
use std::sync::Arc;

/// Owners are found.
impl Crawler {
    /// Delegation, with what it reads and where its commands go.
    pub(crate) fn delegating(&mut self) -> (&mut Delegation, &mut Context, Others<'_>) {
        let others = Others { members: &self.membership, ownership: &self.ownership, shutdown: &self.shutdown };
        (&mut self.delegation, &mut self.context, others)
    }

    /// Who crawls this host, if that is decided and they can be reached; if not, sees to it that it gets decided.
    pub(crate) fn owner_for(&mut self, located: &LocatedHost) -> Option<AccessPoint> {
        let Crawler { delegation, context, membership: members, ownership, shutdown, crawl, routing, replication, migration, .. } = self;
        let first = routing.first_for(&located.host);
        let changing = |subnet: &Subnet| replication.is_loading(subnet) || migration.has_stopped(subnet);
        let crawls = |subnet: &Subnet, smaller: &Subnet| crawl.sites().is_crawled(&located.host, subnet, smaller);
        let others = Others { members, ownership, shutdown };
        let owner = delegation.owner_for(context, others, located, first, changing, crawls);
        self.settle_signals();
        owner
    }

    /// Whether a host in a claimed subnet of ours is crawled as part of it; if not, it waits until a smaller subnet is settled.
    pub(crate) fn belongs_here(&mut self, subnet: Subnet, located: &LocatedHost, url: &PageUrl) -> bool {
        let Crawler { delegation, context, membership: members, ownership, shutdown, crawl, .. } = self;
        let crawls = |subnet: &Subnet, smaller: &Subnet| crawl.sites().is_crawled(&located.host, subnet, smaller);
        let others = Others { members, ownership, shutdown };
        let here = delegation.belongs_here(context, others, subnet, located, url, crawls);
        self.settle_signals();
        here
    }

    /// A member asks us, the coordinator of an address, to see to it that it gets an owner.
    pub(crate) fn settle_for(&mut self, ticket: u64, target: ProbeTarget) {
        let (delegation, context, others) = self.delegating();
        let standing = delegation.settle_for(context, others, target);
        self.settle_signals();
        self.answer(ticket, Response::Settling(standing));
    }

    /// The coordinator of an address reserved it for us, the steward of the subnet that is to be settled.
    pub(crate) fn settle_reserved(&mut self, ticket: u64, subnet: Subnet, target: ProbeTarget) {
        let (delegation, context, others) = self.delegating();
        let answer = delegation.settle_reserved(context, others, subnet, target);
        self.settle_signals();
        self.answer(ticket, answer);
    }

    /// A subnet's steward asks us to probe.
    pub(crate) fn probe_for(&mut self, steward: (AccessPoint, u64), order: ProbeOrder) {
        let held_back = self.held_back().is_some();
        let (delegation, context, others) = self.delegating();
        delegation.probe_for(context, others, steward, order, held_back);
    }

    /// Claims are watched, procedures go on.
    pub(crate) fn tick_settlement(&mut self) {
        self.ownership.tick_watched(&mut self.context, &self.membership);
        self.settle_signals();
        for subnet in self.delegation.due(&self.context) {
            let (delegation, context, others) = self.delegating();
            delegation.go_on(context, others, subnet);
            self.settle_signals();
        }
        while let Some((subnet, target)) = self.delegation.next_queued(&self.context) {
            let (delegation, context, others) = self.delegating();
            delegation.settle(context, others, subnet, target);
            self.settle_signals();
        }
        self.delegation.limit_asked();
    }
}

/// What is ours changes.
impl Crawler {
    /// Gives up the sites of a subnet of ours that lie in smaller claimed ones by now.
    pub(crate) fn yield_to_smaller(&mut self, subnet: Subnet) {
        let lost = self.crawl.sites().lost_within(self.context.me, self.ownership.register(), &subnet);
        if !lost.is_empty() {
            self.dissolve_hosts(subnet, lost, true);
            self.report.mark_changed();
        }
    }

    /// Somebody else's claim holds: what we crawled in its subnet as part of a larger one is its owner's now.
    pub(crate) fn yield_to(&mut self, claimed: Subnet) {
        for ours in self.crawl.sites().larger_than(&claimed) {
            self.yield_to_smaller(ours);
        }
    }

    /// From now on this hierarchy is used. Claims, journals and everything under way stay as they are: whose an address is does not
    /// depend on it.
    pub(crate) fn change_hierarchy(&mut self, hierarchy: Arc<Hierarchy>) {
        self.context.hierarchy = hierarchy;
        self.delegation.relocate(&self.context, &self.ownership);
        // Which country and organisation a site counts for may be another now.
        self.crawl.sites().hosts().for_each(|host| self.report.site_changed(host.clone()));
        self.routing.wake_all();
        self.route();
    }
}
