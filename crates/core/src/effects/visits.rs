//! Effects of visits to our own sites: URLs are taken in, pages asked for, answers read and timed.

use crate::{
    crawl::fetch_cycle::Turn,
    crawler::Crawler,
    routing::{
        acknowledgements::Reply,
        outbox::{Item, MAX_IN_BATCH},
    },
};
use nearcrawl_model::{
    access_point::AccessPoint,
    allowance::Rest,
    fetch::{FetchReport, LocatedHost},
    ids::Ticket,
    journal::Arrival,
    message::{HandOff, Response},
    previous_run::PreviousVersion,
    subnet::Subnet,
    url::PageUrl,
};
use std::net::IpAddr;

/// So many URLs are taken of one hand-off: a member sends 256 at most, and each costs the loop time.
const MAX_HANDED_OVER: usize = 1_024;

/// URLs are taken in.
impl Crawler {
    /// A member hands URLs to us. All hosts of one message are answered together.
    pub(crate) fn take_in(&mut self, from: AccessPoint, ticket: Ticket, hand_offs: Vec<HandOff>) {
        let changing = self.crawl.is_too_busy(&self.context, &self.replication, &self.ownership, &self.migration, &hand_offs);
        let is_full = matches!(self.context.rest, Some(Rest::MemoryFull { .. }));
        if changing || is_full || self.shutdown.is_stopping() || !self.ownership.is_synced() {
            return self.answer(ticket, Response::Busy(1_000));
        }
        if hand_offs.iter().map(|hand_off| hand_off.arrivals.len()).sum::<usize>() > MAX_HANDED_OVER {
            self.context.refuse("hand-offs of more URLs than a member sends");
            return self.answer(ticket, Response::Refused("more URLs than a member hands over at once".to_owned()));
        }
        if !self.routing.has_room_for_hand_offs() {
            self.context.refuse("hand-offs beyond the limit of those being recorded");
            return self.answer(ticket, Response::Busy(1_000));
        }
        let (mut ours, mut not_mine) = (Vec::new(), Vec::new());
        for HandOff { host, arrivals } in hand_offs {
            let mine = self.ownership.own_subnet_around(self.context.me, host.address);
            let fits = arrivals.iter().all(|arrival| arrival.url.host() == host.host);
            let first = arrivals.first().filter(|_| fits).map(|arrival| &arrival.url);
            if let (Some(subnet), Some(url)) = (mine, first)
                && self.belongs_here(subnet, &host, url)
                && self.is_at(from, &host)
                && !self.crawl.holds_back(&self.context, &host.host, newest_run(&arrivals))
            {
                ours.push((host, arrivals));
            } else {
                not_mine.push(host.host);
            }
        }
        let (crawl, cx, replication, others) = self.crawling();
        crawl.admit(cx, replication, others, ours, Reply::Member { ticket, not_mine });
    }

    /// Whether a host that a member hands over has this address: it is ours already, or its steward says so.
    fn is_at(&mut self, from: AccessPoint, located: &LocatedHost) -> bool {
        let open = self.crawl.site(&located.host).is_some_and(|site| site.address == located.address);
        let routing = &mut self.routing;
        open || (routing.confirms(&mut self.context, &self.membership, from, located)
            && routing.is_recent(&mut self.context, &self.membership, &located.host))
    }

    /// URLs turned out to be for ourselves. As many hosts as a member hands over at once are taken in together.
    pub(super) fn admit_own(&mut self, hosts: Vec<(LocatedHost, Vec<Item>)>) {
        if !hosts.is_empty() {
            self.routing.takes_own(&self.context);
        }
        for hosts in hosts.chunks(MAX_IN_BATCH) {
            let arrivals = |items: &[Item]| items.iter().map(|item| item.arrival.clone()).collect();
            let hand_offs = hosts.iter().map(|(located, items)| (located.clone(), arrivals(items))).collect();
            let items = hosts.iter().flat_map(|(_, items)| items).cloned().collect();
            let (crawl, cx, replication, others) = self.crawling();
            crawl.admit(cx, replication, others, hand_offs, Reply::Own(items));
        }
    }

    /// Others take the place of starting points.
    pub(crate) fn superseded(&mut self, urls: Vec<PageUrl>) {
        for url in urls {
            self.crawl.supersede(&mut self.context, &mut self.replication, url);
        }
    }
}

/// Pages are asked for.
impl Crawler {
    /// Sends what may be sent now.
    pub(crate) fn visit(&mut self) {
        if self.view().held_back().is_some() {
            return;
        }
        while let Some((address, host)) = self.crawl.next_turn(&self.context) {
            for again in 0.. {
                let (crawl, cx, replication, others) = self.crawling();
                let turn = crawl.take_turn(cx, replication, others, (address, &host), again);
                self.settle_signals();
                if turn != Turn::Again {
                    break;
                }
            }
        }
    }

    /// An answer came, or none: it says something of the way, and is read.
    pub(crate) fn fetched(&mut self, address: IpAddr, mut report: Box<FetchReport>, previous: Option<Box<PreviousVersion>>) {
        let Some(answered) = self.crawl.answer_came(&mut self.context, address, &mut report) else { return };
        if let Some(subnet) = answered.subnet {
            if let Some(rtt_us) = answered.rtt_us {
                self.delegation.timed(&mut self.context, subnet, rtt_us);
            }
            self.time_access(subnet, &report);
        }
        self.crawl.read_answer(&mut self.context, &mut self.replication, address, answered, *report, previous.map(|previous| *previous));
    }

    /// A request to a server of ours ended.
    fn time_access(&mut self, subnet: Subnet, report: &FetchReport) {
        // Nothing is judged while there is no other member: no page need pay for gathering what a judgement reads.
        if self.membership.standings().is_empty() {
            return;
        }
        self.migrate(|migration, cx, around| migration.time_access(cx, around, subnet, report));
    }

    /// A tree of a subnet of ours is done for this time.
    pub(crate) fn end_access(&mut self, subnet: Subnet) {
        self.migrate(|migration, cx, around| migration.end_access(cx, around, subnet));
    }

    /// Trees whose time has come are visited again.
    pub(crate) fn tick_runs(&mut self) {
        if self.view().held_back().is_none() {
            let (crawl, cx, replication, others) = self.crawling();
            crawl.tick_runs(cx, replication, others);
        }
        self.settle_signals();
    }

    /// Limits let go on what they have held back for long enough.
    pub(crate) fn tick_limits(&mut self) {
        if self.view().held_back().is_none() {
            let (crawl, cx, replication, others) = self.crawling();
            crawl.release(cx, replication, others);
        }
        self.settle_signals();
    }
}

/// The latest run in which one of these was named; 0 if none was named at a page of its tree.
fn newest_run(arrivals: &[Arrival]) -> u32 {
    arrivals.iter().filter(|arrival| arrival.place.is_some()).map(|arrival| arrival.run).max().unwrap_or(0)
}
