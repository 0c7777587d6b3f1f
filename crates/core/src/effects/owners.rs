//! Effects of subnets without an owner getting one.

use crate::{
    crawler::Crawler,
    delegation::{self, prober::ProbeOrder},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{LocatedHost, ProbeTarget},
    ids::Ticket,
    message::Response,
    subnet::Subnet,
    url::PageUrl,
};

impl Crawler {
    /// Who crawls this host, if that is decided and they can be reached; if not, sees to it that it gets decided. `start` is a URL of it to
    /// be asked for.
    pub(super) fn owner_for(&mut self, located: &LocatedHost, start: Option<&PageUrl>) -> Option<AccessPoint> {
        let Crawler { delegation, context, membership: members, ownership, shutdown, crawl, replication, migration, .. } = self;
        let changing = |subnet: &Subnet| replication.is_loading(subnet) || migration.has_stopped(subnet);
        let crawls = |subnet: &Subnet, smaller: &Subnet| crawl.sites().is_crawled(&located.host, subnet, smaller);
        let others = delegation::DelegationReads { members, ownership, shutdown };
        let owner = delegation.owner_for(context, others, located, start, changing, crawls);
        self.settle_signals();
        owner
    }

    /// Whether a host in a claimed subnet of ours is crawled as part of it; if not, it waits until a smaller subnet is settled.
    pub(crate) fn belongs_here(&mut self, subnet: Subnet, located: &LocatedHost, url: &PageUrl) -> bool {
        let Crawler { delegation, context, membership: members, ownership, shutdown, crawl, .. } = self;
        let crawls = |subnet: &Subnet, smaller: &Subnet| crawl.sites().is_crawled(&located.host, subnet, smaller);
        let others = delegation::DelegationReads { members, ownership, shutdown };
        let here = delegation.belongs_here(context, others, subnet, located, url, crawls);
        self.settle_signals();
        here
    }

    /// A member asks us, the steward of an address, to see to it that it gets an owner.
    pub(crate) fn find_owner_for(&mut self, ticket: Ticket, target: ProbeTarget) {
        let (delegation, context, others) = self.delegating();
        let standing = delegation.find_owner_for(context, others, target);
        self.settle_signals();
        self.answer(ticket, Response::FindingOwner(standing));
    }

    /// The steward of an address reserved it for us, the steward of the subnet that is to be settled.
    pub(crate) fn settle_reserved(&mut self, ticket: Ticket, subnet: Subnet, target: ProbeTarget) {
        let (delegation, context, others) = self.delegating();
        let answer = delegation.settle_reserved(context, others, subnet, target);
        self.settle_signals();
        self.answer(ticket, answer);
    }

    /// A subnet's steward asks us to probe.
    pub(crate) fn probe_for(&mut self, steward: (AccessPoint, Ticket), order: ProbeOrder) {
        let held_back = self.view().held_back().is_some() || !self.context.takes_subnets();
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
