//! What is this access point doing, and why is it not doing more? Is anything left to do?

use super::super::{Crawler, MOST_OUTGOING, members::HeldBack};
use crate::{
    logic::{locator::Lookup, membership::FenceReason},
    model::{
        claim::ClaimReason,
        time::Millis,
        url::Host,
        view::{Activity, counted},
    },
};
use std::collections::BTreeSet;

/// So long a start may take before people are told that nobody answers.
const STARTING: Millis = 5_000;

/// Under which class denied hosts are counted.
const DENIED: &str = "hosts on the deny list";

impl Crawler {
    /// What it is doing; in words by its `Display`.
    pub fn activity(&self) -> Activity {
        match self.held_back() {
            Some(HeldBack::Stopping) if self.leaving => Activity::Leaving,
            Some(HeldBack::Stopping) => Activity::Stopping,
            Some(HeldBack::Fenced(FenceReason::NotHeardSinceStart) | HeldBack::NotJoined) => self.joining(),
            Some(HeldBack::Fenced(reason)) => Activity::Fenced { why: reason.to_string() },
            Some(HeldBack::OutboxFull) => Activity::LimitReached {
                limit: format!("more than {MOST_OUTGOING} URLs wait for their owners; nothing is fetched until some were taken in"),
            },
            Some(HeldBack::DiskFull) => {
                Activity::LimitReached { limit: "less than 256 MiB are free on the disk; make room, and it goes on by itself".to_owned() }
            }
            None => self.working().unwrap_or_else(|| self.idle()),
        }
    }

    /// Members that it knew or was told of have not been heard of since the start.
    fn joining(&self) -> Activity {
        let young = self.now.moment.since(self.started) < STARTING;
        let alone = self.roster.standings().values().all(|standing| standing.silent_since.is_some());
        match self.roster.fenced(self.now.moment) {
            _ if young => Activity::Starting,
            _ if alone => Activity::NoPeersReachable,
            Some(reason) => Activity::Fenced { why: reason.to_string() },
            None => Activity::Starting,
        }
    }

    /// What is under way, the most telling first.
    fn working(&self) -> Option<Activity> {
        let fetching = self.in_flight.len() as u64;
        if fetching > 0 {
            return Some(Activity::Fetching { servers: fetching });
        }
        if let Some(due) = self.front.next_due() {
            let next = due.since(self.now.moment);
            return Some(Activity::WaitingForPoliteness { servers: self.front.resting() as u64, next });
        }
        let subnets = self.loading.len() as u64;
        if subnets > 0 {
            return Some(Activity::ReadingBack { subnets });
        }
        let hosts = self.unplaced().len() as u64;
        if hosts > 0 {
            return Some(Activity::FindingOwners { hosts });
        }
        let urls = self.outbox.len() as u64;
        if urls > 0 {
            return Some(Activity::HandingOver { urls });
        }
        self.has_work().then_some(Activity::Recording)
    }

    /// Hosts whose address or owner is being found, for this access point or, as their steward, for others.
    fn unplaced(&self) -> BTreeSet<&Host> {
        let placed = |host: &Host| match self.locator.lookup(host, self.now.moment) {
            Lookup::At(located) => self.ownership.around(located.address).is_some_and(|claim| !claim.released),
            Lookup::Nowhere(_) => true,
            Lookup::Unknown => false,
        };
        let mine = self.outbox.waiting_hosts().filter(|host| !placed(host));
        let settling = self.procedures.values().map(|procedure| &procedure.target.host);
        let queued = self.settle_queue.iter().map(|(_, target)| &target.host);
        mine.chain(self.locator.looking_up()).chain(settling).chain(queued).collect()
    }

    /// Nothing is under way: is everything done, or was there never anything?
    fn idle(&self) -> Activity {
        let spent = self.sites.values().filter(|site| !site.finished()).count() as u64;
        if spent > 0 {
            return Activity::BudgetSpent { servers: spent };
        }
        if !self.sites.is_empty() {
            return Activity::Done { next: self.next_run() };
        }
        // A claim other than to an access point's own subnet was made because somebody named a server there.
        let named = || self.ownership.all().map(|held| &held.claim).filter(|claim| claim.reason != ClaimReason::OwnSubnet);
        if named().any(|claim| claim.owner != self.me) {
            return Activity::NoServers { why: "no server named so far lives in a subnet of this access point".to_owned() };
        }
        if self.counters.nowhere > 0 {
            let urls = counted(self.counters.nowhere, "URL");
            return Activity::NoServers { why: format!("no usable address was found for the hosts of {urls}") };
        }
        if self.counters.seeds == 0 && named().next().is_none() {
            return Activity::NothingSeeded;
        }
        if self.counters.refused.contains_key(DENIED) {
            return Activity::NoServers { why: "every host that was named is denied by the configuration".to_owned() };
        }
        Activity::Done { next: None }
    }

    /// In how long the first tree that is at home here is visited again.
    fn next_run(&self) -> Option<Millis> {
        let home = self.sites.values().filter(|site| site.is_home());
        home.map(|site| site.opened.0.saturating_add(self.settings.revisit).saturating_sub(self.now.wall.0)).min()
    }

    /// Whether anything is left to do here before the next run: something waits, is under way, or is not stored and copied yet.
    /// What a spent page budget holds back does not count.
    pub fn has_work(&self) -> bool {
        let fetching = !self.in_flight.is_empty() || !self.seen_pending.is_empty();
        let sending = !self.outbox.is_empty() || !self.row_outgoing.is_empty() || !self.acknowledgements.is_empty();
        let storing = !self.rows.is_empty() || !self.appends.is_empty() || !self.unstored_claims.is_empty() || !self.keeping.settled();
        let settling = !self.procedures.is_empty() || !self.settle_queue.is_empty() || !self.probing.is_empty();
        let reading = !self.loading.is_empty() || !self.awakening.is_empty() || self.locator.looking_up().next().is_some();
        fetching || sending || storing || settling || reading || !self.commands.is_empty() || self.waits()
    }

    /// Whether a site has something to ask in this run.
    fn waits(&self) -> bool {
        self.sites.values().any(|site| site.is_busy() || site.wants(&self.settings.rules))
    }

    /// Whether everything that was named is done and stored.
    pub fn all_done(&self) -> bool {
        !self.has_work()
    }
}
