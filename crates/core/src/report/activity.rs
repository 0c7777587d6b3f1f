//! What this access point is doing, why it is not doing more, and whether anything is left to do.

use super::status::{self, Outside};
use crate::{crawler::MAX_OUTGOING, event::DiskRoom, membership::machine::HeldBack, report::View};
use crate::{routing::locator::Lookup, voting::lease::NoLease};
use nearcrawl_model::{
    allowance::Size,
    claim::ClaimReason,
    time::Millis,
    url::Host,
    view::{Activity, StatusView, VotersView, counted},
};
use std::collections::BTreeSet;

/// So long a start may take before people are told that no member answers.
const STARTING: Millis = 5_000;

/// Under which class denied hosts are counted.
const DENIED: &str = "hosts on the deny list";

/// Why the disk has no room, and what helps.
fn no_room(room: DiskRoom) -> String {
    match room {
        DiskRoom::LimitReached(limit) => format!(
            "its files take the {} of the disk that they may (allowance.disk); others get what has work, and it continues by itself when less is \
             taken: or raise the limit and restart",
            Size(limit)
        ),
        _ => "less than 256 MiB are free on the disk; free some space, and it continues by itself".to_owned(),
    }
}

impl View<'_> {
    /// Why nothing may be fetched now, if so.
    pub fn held_back(&self) -> Option<HeldBack> {
        if self.shutdown.is_stopping() {
            Some(HeldBack::Stopping)
        } else if let Some(why) = self.not_admitted() {
            Some(HeldBack::NotAdmitted(why.to_string()))
        } else if let Some(why) = self.membership.no_lease(self.context.now.moment) {
            Some(HeldBack::NoLease(why))
        } else if !self.ownership.is_synced() {
            Some(HeldBack::NotJoined)
        } else if self.routing.outbox().len() > MAX_OUTGOING {
            Some(HeldBack::OutboxFull)
        } else if !self.crawl.has_disk_space() {
            Some(HeldBack::DiskFull)
        } else {
            self.context.rest.clone().map(HeldBack::Resting)
        }
    }

    /// Everything about itself, in numbers and one sentence.
    pub fn status(&self, outside: Outside) -> StatusView {
        status::status(self, outside)
    }

    /// Who decides which member owns what, as far as is known here.
    pub fn voters(&self) -> VotersView {
        status::voters(self)
    }

    /// That it is the only member of its swarm, in a sentence, if so.
    pub fn alone(&self) -> Option<String> {
        status::alone(self, &self.activity())
    }

    /// What it is doing; in words by its `Display`.
    pub fn activity(&self) -> Activity {
        match self.held_back() {
            Some(HeldBack::Stopping) if self.shutdown.is_leaving() => Activity::Leaving,
            Some(HeldBack::Stopping) => Activity::Stopping,
            Some(HeldBack::NotAdmitted(why)) => Activity::NotAdmitted { why },
            Some(HeldBack::NotJoined) => self.joining(),
            Some(HeldBack::NoLease(why)) if why != NoLease::KeyInUse && !self.membership.had_lease() => self.joining(),
            Some(HeldBack::NoLease(why)) => Activity::Fenced { why: why.to_string() },
            Some(HeldBack::OutboxFull) => Activity::LimitReached {
                limit: format!(
                    "more than {MAX_OUTGOING} URLs wait to be sent to their owners; fetching pauses until some are acknowledged"
                ),
            },
            Some(HeldBack::DiskFull) => Activity::LimitReached { limit: no_room(self.crawl.disk_room()) },
            Some(HeldBack::Resting(rest)) => Activity::Resting(rest),
            None => self.working().unwrap_or_else(|| self.idle()),
        }
    }

    /// Members that it knew or was told of have not been heard of since the start.
    fn joining(&self) -> Activity {
        let young = self.context.now.moment.since(self.context.started) < STARTING;
        let alone = self.membership.standings().values().all(|standing| standing.silent_since.is_some());
        match self.membership.no_lease(self.context.now.moment) {
            _ if young => Activity::Starting,
            _ if alone => Activity::NoPeersReachable,
            Some(why) => Activity::Fenced { why: why.to_string() },
            None => Activity::Starting,
        }
    }

    /// What is under way, the most telling first.
    fn working(&self) -> Option<Activity> {
        let fetching = self.crawl.fetches().in_flight() as u64;
        if fetching > 0 {
            return Some(Activity::Fetching { servers: fetching });
        }
        if let Some(due) = self.crawl.fetches().scheduler().next_due() {
            let next = due.since(self.context.now.moment);
            return Some(Activity::WaitingForPoliteness { servers: self.crawl.fetches().scheduler().resting() as u64, next });
        }
        let subnets = self.replication.subnets_loading() as u64;
        if subnets > 0 {
            let waiting = self.replication.loads_parked() as u64;
            return Some(Activity::ReadingBack { subnets, waiting });
        }
        let hosts = self.unplaced().len() as u64;
        if hosts > 0 {
            return Some(Activity::FindingOwners { hosts });
        }
        let urls = self.routing.outbox().len() as u64;
        if urls > 0 {
            return Some(Activity::HandingOver { urls });
        }
        self.has_work().then_some(Activity::Recording)
    }

    /// Hosts whose address or owner is being found, for this access point or, as their steward, for others.
    fn unplaced(&self) -> BTreeSet<&Host> {
        let placed = |host: &Host| match self.routing.locator().lookup(host, self.context.now.moment) {
            Lookup::At(located) => self.ownership.register().around(located.address).is_some_and(|claim| !claim.released),
            Lookup::Nowhere(_) => true,
            Lookup::Later(..) | Lookup::Unknown => false,
        };
        let mine = self.routing.outbox().waiting_hosts().filter(|host| !placed(host));
        mine.chain(self.routing.locator().looking_up()).chain(self.delegation.rounds().hosts()).collect()
    }

    /// Nothing is under way: is everything done, or was there never anything?
    fn idle(&self) -> Activity {
        let (mut spent, mut unwanted) = (0, 0);
        for site in self.crawl.sites().all().filter(|site| !site.finished()) {
            *(if site.wishes.is_unwanted { &mut unwanted } else { &mut spent }) += 1;
        }
        if spent > 0 {
            return Activity::BudgetSpent { servers: spent };
        }
        if unwanted > 0 {
            // Their run is not over, and goes on when the opt-out is taken back.
            let servers = counted(unwanted, "server");
            return Activity::NoServers {
                why: format!(
                    "what waits at {servers} may not be asked for: an opt-out, a survey that rests, or a scope that has them no more"
                ),
            };
        }
        let hosts = self.crawl.sites().all().map(|site| site.held.counts().hosts()).sum();
        if hosts > 0 {
            return Activity::HeldBack { hosts };
        }
        if !self.crawl.sites().is_empty() {
            return Activity::Done { next: self.next_run() };
        }
        // A claim other than to an access point's own subnet was made because a server was named there.
        let named = || self.ownership.register().all().map(|held| &held.claim).filter(|claim| claim.reason != ClaimReason::OwnSubnet);
        if named().any(|claim| claim.owner != self.context.me) {
            return Activity::NoServers { why: "no server named so far is in a subnet of this access point".to_owned() };
        }
        if self.context.counters.nowhere > 0 {
            let urls = counted(self.context.counters.nowhere, "URL");
            return Activity::NoServers { why: format!("no usable address was found for the hosts of {urls}") };
        }
        if self.context.counters.seeds == 0 && named().next().is_none() {
            return Activity::NothingSeeded;
        }
        if self.context.counters.refused.contains_key(DENIED) {
            return Activity::NoServers { why: "every host named so far is denied by the configuration".to_owned() };
        }
        Activity::Done { next: None }
    }

    /// In how long the first tree that is at home here is visited again.
    fn next_run(&self) -> Option<Millis> {
        let home = self.crawl.sites().all().filter(|site| site.is_home());
        home.map(|site| site.opened.0.saturating_add(self.context.settings.revisit).saturating_sub(self.context.now.wall.0)).min()
    }

    /// Whether anything is left to do here before the next run: something waits, is under way, or is not stored and copied yet.
    /// What a spent page budget holds back does not count.
    pub(crate) fn has_work(&self) -> bool {
        let fetching = self.crawl.fetches().in_flight() > 0 || self.crawl.is_asking();
        let sending = !self.routing.outbox().is_empty() || self.replication.has_outgoing() || !self.routing.all_acknowledged();
        let storing = self.replication.rows_waiting() > 0 || self.replication.is_recording() || self.ownership.is_storing();
        let settling = self.delegation.is_busy();
        let reading = self.replication.subnets_loading() > 0
            || self.crawl.sites().is_awaiting_seen_set()
            || self.routing.locator().looking_up().next().is_some();
        fetching
            || sending
            || storing
            || settling
            || reading
            || !self.context.commands.is_empty()
            || self.waits()
            || self.crawl.has_to_release(self.context)
    }

    /// Whether a site has something to ask in this run.
    fn waits(&self) -> bool {
        self.crawl.sites().all().any(|site| site.is_busy() || site.wants(&self.context.settings.rules))
    }
}
