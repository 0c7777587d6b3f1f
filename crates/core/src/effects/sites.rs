//! URLs of our own sites are taken in, asked for and answered: who hears of it, and in which order?

use crate::{
    context::Context,
    crawl::{Crawl, Others, fetch_cycle::Turn},
    crawler::Crawler,
    replication::Replication,
    routing::{acknowledgements::Reply, outbox::Item},
};
use nearcrawl_model::{
    fetch::{FetchReport, LocatedHost},
    message::{HandOff, Response},
    revisit::Former,
};
use std::net::IpAddr;

impl Crawler {
    /// The crawl, with what it changes and reads besides.
    pub(super) fn crawling(&mut self) -> (&mut Crawl, &mut Context, &mut Replication, Others<'_>) {
        let Crawler { membership: members, ownership, delegation, migration, routing, .. } = self;
        let others = Others { members, ownership, delegation, migration, routing };
        (&mut self.crawl, &mut self.context, &mut self.replication, others)
    }

    /// A member hands URLs to us. All hosts of one message are answered together.
    pub(crate) fn take_in(&mut self, ticket: u64, parcels: Vec<HandOff>) {
        let changing = self.crawl.is_too_busy(&self.context, &self.replication, &self.ownership, &self.migration, &parcels);
        if changing || self.shutdown.is_stopping() || !self.ownership.is_synced() {
            return self.answer(ticket, Response::Busy(1_000));
        }
        let (mut ours, mut not_mine) = (Vec::new(), Vec::new());
        for HandOff { host, arrivals } in parcels {
            let mine = self.ownership.own_subnet_around(self.context.me, host.address);
            let fits = arrivals.iter().all(|arrival| arrival.url.host() == host.host);
            let first = arrivals.first().filter(|_| fits).map(|arrival| &arrival.url);
            if let (Some(subnet), Some(url)) = (mine, first)
                && self.belongs_here(subnet, &host, url)
            {
                ours.push((host, arrivals));
            } else {
                not_mine.push(host.host);
            }
        }
        let (crawl, cx, replication, others) = self.crawling();
        crawl.admit(cx, replication, others, ours, Reply::Member { ticket, not_mine });
    }

    /// URLs turned out to be for ourselves.
    pub(super) fn admit_own(&mut self, located: LocatedHost, items: Vec<Item>) {
        let arrivals = items.iter().map(|item| item.arrival.clone()).collect();
        let (crawl, cx, replication, others) = self.crawling();
        crawl.admit(cx, replication, others, vec![(located, arrivals)], Reply::Own(items));
    }

    /// Sends what may be sent now.
    pub(crate) fn visit(&mut self) {
        if self.held_back().is_some() {
            return;
        }
        while let Some((address, host)) = self.crawl.next_turn(&self.context) {
            let mut turn = Turn::Again;
            while turn == Turn::Again {
                let (crawl, cx, replication, others) = self.crawling();
                turn = crawl.take_turn(cx, replication, others, address, &host);
                self.settle_signals();
            }
        }
    }

    /// An answer came, or none: it says something of the way, and is read.
    pub(crate) fn fetched(&mut self, address: IpAddr, mut report: Box<FetchReport>, former: Option<Box<Former>>) {
        let Some(answered) = self.crawl.answer_came(&mut self.context, address, &mut report) else { return };
        if let Some(subnet) = answered.subnet {
            if let Some(rtt_us) = answered.rtt_us {
                self.delegation.timed(&mut self.context, subnet, rtt_us);
            }
            self.time_access(subnet, &report);
        }
        self.crawl.read_answer(&mut self.context, &mut self.replication, address, answered, *report, former.map(|former| *former));
    }

    /// Trees whose time has come are visited again.
    pub(crate) fn tick_runs(&mut self) {
        if self.context.rounds.is_multiple_of(50) && self.held_back().is_none() {
            let (crawl, cx, replication, others) = self.crawling();
            crawl.tick_runs(cx, replication, others);
        }
    }
}
