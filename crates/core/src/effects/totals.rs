//! Effects of what is gossiped from time to time, and of sums over all members that are asked for, told and compared.

use crate::{
    crawler::Crawler,
    report::{self, BesidesSums},
    voting::lease::NoLease,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    cross_table::{CrossTable, Pair},
    distinct::DistinctSets,
    ids::Ticket,
    message::{Gossip, Response},
    server_rows::RowsOf,
    summary::{RollUp, Summary},
    url::Host,
};

/// Totals of members.
impl Crawler {
    /// Tells every member what is new, and repairs what was lost on the way.
    pub(crate) fn tick_gossip(&mut self) {
        let now = self.context.now.moment;
        self.ownership.tell_claims(&mut self.context, &self.membership);
        self.delegation.tick_distances(&mut self.context, &self.membership);
        self.report.count_members(self.membership.count_settled(now));
        let whole = self.ownership.tick_comparison(&mut self.context, &self.membership);
        // Another process with our key tells its own.
        let ours = self.membership.no_lease(now) != Some(NoLease::KeyInUse);
        let due = self.report.is_due(now);
        if ours && (due || self.report.is_stale(&self.context)) {
            let roll_up = Box::new(self.roll_up());
            if due && self.report.tells(now) {
                let others: Vec<_> = self.membership.live().iter().copied().filter(|member| *member != self.context.me).collect();
                // Who comes later is told when our sums have settled, or asks.
                if !others.is_empty() {
                    self.context.tell_all(&others, Gossip::RollUp(roll_up));
                }
            }
        }
        let overdue = self.report.overdue(&self.context, &self.membership, &self.ownership);
        self.compare_totals(overdue);
        if whole {
            self.routing.wake_all();
            self.route();
        }
    }

    /// These are asked to renew our lease, each with a packet that has room for more.
    pub(crate) fn compare_totals_along(&mut self, voters: Vec<AccessPoint>) {
        let asked = self.report.asked_along(&self.context, &self.membership, voters);
        self.compare_totals(asked);
    }

    fn compare_totals(&mut self, members: Vec<AccessPoint>) {
        if !members.is_empty() {
            // Another process with our key tells its own.
            let ours = self.membership.no_lease(self.context.now.moment) != Some(NoLease::KeyInUse);
            let mine = ours.then(|| self.roll_up());
            self.report.ask_whether_they_hold(&mut self.context, members, mine.as_ref());
        }
    }

    /// What we hold and know, as of now.
    fn roll_up(&mut self) -> RollUp {
        // Without a lease, or before what was owned in an earlier term is claimed again, others may have gone on with it.
        let ours = self.membership.may_claim(self.context.now.moment) && !self.ownership.is_doubtful();
        // A host on its way may be in nobody's sums, or in those of two whose last ones are of different moments.
        let settling = report::oldest_told(self.membership.count_settled(self.context.now.moment) + 1);
        let more = BesidesSums {
            load: self.migration.load_told(),
            complete: ours && self.replication.subnets_loading() == 0 && !self.crawl.hosts_are_settling(&self.context, settling),
        };
        self.report.roll_up(&mut self.context, &self.membership, &self.ownership, &self.crawl, more)
    }

    /// The sums over its own sites as they are now; sites that changed since the last time are summed anew.
    pub fn own_summary(&mut self) -> Summary {
        self.report.own_summary(&self.context, &self.crawl)
    }

    /// Brings its own sums up to date, with the estimates that rows of servers speak of: to be done before rows are answered.
    pub fn prepare_rows(&mut self) {
        self.report.enter_dirty(&self.context, &self.crawl);
    }

    /// A member says that its totals of this version hold, and asks whether ours do of that version.
    pub(crate) fn totals_compared(&mut self, from: AccessPoint, ticket: Ticket, theirs: u64, ours: u64) {
        self.report.holds(&self.context, from, theirs);
        self.report.knows(from, ours);
        self.tell_totals(from, ticket, Some(ours));
    }

    /// A member tells its totals and asks whether ours of this version hold.
    pub(crate) fn totals_exchanged(&mut self, from: AccessPoint, ticket: Ticket, totals: RollUp, ours: u64) {
        if totals.owner != from {
            self.context.refuse("totals in the name of another member");
            return self.answer(ticket, Response::Refused("these are not the sender's totals".to_owned()));
        }
        let version = totals.version;
        self.report.hear(&mut self.context, &self.membership, &self.ownership, totals);
        self.totals_compared(from, ticket, version, ours);
    }

    /// A member asks for our totals, unless they still are those of the version that it knows.
    pub(crate) fn tell_totals(&mut self, to: AccessPoint, ticket: Ticket, known: Option<u64>) {
        // Who holds no lease may be the one that told them.
        if let Some(known) = known.filter(|_| self.membership.may_claim(self.context.now.moment)) {
            self.report.is_known_as(known);
        }
        let recent = self.report.recent(&self.context).filter(|totals| known.is_none_or(|known| known <= totals.version));
        let totals = recent.unwrap_or_else(|| self.roll_up());
        let hold = known == Some(totals.version);
        self.report.knows(to, totals.version);
        self.answer(ticket, if hold { Response::TotalsHold } else { Response::Totals(Box::new(totals)) });
    }
}

/// Tables, rows and distinct sets that readers ask for.
impl Crawler {
    /// People want the sums of the swarm by two dimensions: all members are asked for theirs.
    pub(crate) fn cross_table_wanted(&mut self, by: Pair) {
        let own = self.report.own_table(&self.context, &self.crawl, by);
        self.report.gather(&mut self.context, &self.membership, own);
        if !self.report.cross_table(by).1 {
            self.compare_table(by);
        }
    }

    /// A member told its sums by two dimensions, or did not.
    pub(crate) fn cross_totals_came(&mut self, from: AccessPoint, by: Pair, table: Option<CrossTable>) {
        if self.report.cross_totals_came(from, by, table) {
            self.compare_table(by);
        }
    }

    fn compare_table(&mut self, by: Pair) {
        let results = self.report.results(&self.context, &self.membership, &self.ownership);
        self.report.compare_table(by, &results);
    }

    /// A member asks for our sums by two dimensions.
    pub(crate) fn cross_totals_asked(&mut self, ticket: Ticket, by: Pair) {
        let answer = if self.report.may_make_table(self.context.now.moment) {
            Response::CrossTotals(Box::new(self.report.own_table(&self.context, &self.crawl, by)))
        } else {
            self.context.refuse("questions for tables beyond the limit");
            Response::Refused("it is asked for tables too often".to_owned())
        };
        self.answer(ticket, answer);
    }

    /// A member asks for rows of our servers on behalf of a reader.
    pub(crate) fn rows_wanted(&mut self, ticket: Ticket, of: RowsOf, after: Option<&Host>) {
        self.prepare_rows();
        let rows = self.view().rows(of, after);
        self.answer(ticket, rows.map_or_else(Response::Refused, Response::ServerRows));
    }

    /// People want to know how many different ones there are: all members are asked for their sets.
    pub(crate) fn distinct_wanted(&mut self) {
        self.report.gather_sets(&mut self.context, &self.membership, &self.crawl);
        if self.report.has_all_sets() {
            self.compare_sets();
        }
    }

    /// A member told its distinct sets, said that they are still the same, or did not answer.
    pub(crate) fn sets_came(&mut self, from: AccessPoint, answer: Option<Option<DistinctSets>>) {
        if self.report.sets_came(from, answer) {
            self.compare_sets();
        }
    }

    fn compare_sets(&mut self) {
        let results = self.report.results(&self.context, &self.membership, &self.ownership);
        self.report.compare_sets(&self.context, &results);
    }

    /// A member asks for our distinct sets; it knows those with this digest.
    pub(crate) fn sets_asked(&mut self, ticket: Ticket, known: u64) {
        let (sets, digest) = self.report.own_sets(&self.context, &self.crawl);
        let news = (digest != known).then(|| Box::new((*sets).clone()));
        self.answer(ticket, Response::Distinct(news));
    }
}
