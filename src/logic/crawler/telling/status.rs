//! How is this access point doing? Its own numbers, put together with what only the node knows.

use super::super::{
    Crawler, MOST_OUTGOING,
    journaling::MOST_GATHERED,
    moving::{MOST_CHRONICLES, MOST_COMING, MOST_GOING},
    settlement::MOST_QUEUED,
};
use crate::{
    logic::{
        clock_cache::shadow::ShadowedCache,
        contacts::MOST_SUBNETS as MOST_PROBED,
        locator::{MOST_PINS, MOST_RESOLVING},
        ownership::MOST_CLAIMS,
    },
    model::{
        receipt::Declined,
        view::{
            Activity, CacheView, DelegationView, HierarchyView, LimitView, MembersView, MigrationView, ShadowView, StatusView, StoreView,
            WorkView,
        },
    },
};
use std::{collections::BTreeMap, fmt::Write};

/// What only the node knows of itself.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// The program's version.
    pub version: String,
    /// The swarm's id.
    pub swarm: String,
    /// Addresses at which other members reach it (multiaddr with peer id).
    pub addresses: Vec<String>,
    /// Where a site's owner can complain.
    pub contact: Option<String>,
    /// How it introduces itself to web servers.
    pub user_agent: String,
    /// Connections to web servers that are open now.
    pub open_connections: u64,
    /// Sizes on disk.
    pub store: StoreView,
    /// What the hands refused, by class; added to what the crawler refused.
    pub refusals: BTreeMap<String, u64>,
    /// What grows outside the crawler, with its limits.
    pub limits: Vec<LimitView>,
    /// A limit that stopped the work and that the crawler does not see (a full disk), in words: then it is the reason told.
    pub limit_reached: Option<String>,
}

impl Crawler {
    /// Everything about itself, in numbers and one sentence.
    pub fn status(&self, outside: Outside) -> StatusView {
        let activity = match outside.limit_reached {
            Some(limit) => Activity::LimitReached { limit },
            None => self.activity(),
        };
        let mut refusals = outside.refusals;
        for (class, count) in self.refusals() {
            *refusals.entry(class.to_owned()).or_default() += count;
        }
        let mut limits = self.limits();
        limits.extend(outside.limits);
        StatusView {
            access_point: self.me,
            version: outside.version,
            uptime_ms: self.now.moment.since(self.started),
            swarm: outside.swarm,
            addresses: outside.addresses,
            contact: outside.contact,
            user_agent: outside.user_agent,
            state: activity.state(),
            sentence: activity.to_string(),
            members: self.member_counts(),
            subnets_owned: self.ownership.count(&self.me) as u64,
            subnets_claimed: self.ownership.owners().map(|owner| self.ownership.count(&owner) as u64).sum(),
            servers: self.sites.len() as u64,
            work: self.work(),
            failures: self.counters.failures.clone(),
            unresolved: self.counters.unresolved.clone(),
            delegation: self.delegation_view(),
            migration: self.migration_view(),
            waiting_urls: self.sites.values().map(|site| site.frontier.len() as u64).sum(),
            outgoing_urls: self.outbox.len() as u64,
            open_connections: outside.open_connections,
            hierarchy: self.hierarchy_view(),
            caches: vec![cache("frontier", &self.met_frontier), cache("hand-off", &self.met_outgoing)],
            store: outside.store,
            refusals,
            limits,
        }
    }

    fn member_counts(&self) -> MembersView {
        let standings = self.roster.standings();
        let silent = standings.values().filter(|standing| standing.silent_since.is_some()).count() as u64;
        MembersView { alive: 1 + standings.len() as u64 - silent, silent, dead: self.given_up().count() as u64 }
    }

    fn work(&self) -> WorkView {
        let counters = &self.counters;
        WorkView {
            pages: counters.pages,
            requests: counters.requests,
            bytes: counters.bytes,
            not_modified: counters.not_modified,
            failed: counters.failed,
            probes: counters.probes,
            lookups: counters.lookups,
        }
    }

    fn delegation_view(&self) -> DelegationView {
        let counters = &self.counters;
        let by_name = |counts: &BTreeMap<Declined, u64>| counts.iter().map(|(why, count)| (why.to_string(), *count)).collect();
        DelegationView {
            policy: self.settings.policy.name().to_owned(),
            settled: counters.settled.values().sum(),
            settled_without_probe: counters.settled.get(&0).copied().unwrap_or(0),
            settled_by_probes: counters.settled.clone(),
            probes_for_others: counters.probes_for_others,
            declined: by_name(&counters.declined),
            declined_by_others: by_name(&counters.declined_by_others),
            deputies: counters.deputies,
            passive_timings: counters.passive_timings,
            observations: self.knowledge.observations() as u64,
            members_measured: self.distancing.known() as u64,
        }
    }

    fn migration_view(&self) -> MigrationView {
        let counters = &self.counters;
        let (busy_permille, price_permille) = self.load_told();
        MigrationView {
            rule: self.settings.migration.rule.name().to_owned(),
            judged: counters.accesses_judged,
            offered: counters.moves_offered,
            moved: counters.moves_made,
            called_off: counters.moves_called_off,
            refused: counters.moves_refused.iter().map(|(why, count)| (why.to_string(), *count)).collect(),
            taken: counters.moves_taken,
            busy_permille,
            price_permille,
        }
    }

    fn hierarchy_view(&self) -> HierarchyView {
        let mut hash = String::with_capacity(64);
        for byte in self.hierarchy.hash() {
            // Writing into a String cannot fail.
            let _ = write!(hash, "{byte:02x}");
        }
        let sources: Vec<_> = self.hierarchy.sources().iter().map(|source| format!("{} {}", source.name, source.date)).collect();
        let version = if sources.is_empty() { "no sources: every subnet is implicit".to_owned() } else { sources.join(", ") };
        HierarchyView { hash, version, subnets: u64::from(self.hierarchy.len()) }
    }

    /// What was refused here, by class, with what was only counted.
    fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counted = [
            ("links to hosts out of scope", self.counters.beyond_scope),
            ("URLs of hosts without a usable address", self.counters.nowhere),
            ("probes asked of us", self.counters.declined.values().sum()),
        ];
        let refused = self.counters.refused.iter().map(|(class, count)| (*class, *count));
        refused.chain(counted).filter(|(_, count)| *count > 0)
    }

    /// What grows in the crawler.
    fn limits(&self) -> Vec<LimitView> {
        let politeness = self.front.politeness();
        let (going, coming) = self.moves.under_way();
        vec![
            limit("URLs on their way to their owners", self.outbox.len(), MOST_OUTGOING),
            limit("pinned addresses", self.locator.remembered(), MOST_PINS),
            limit("look-ups at once", self.locator.resolving(), MOST_RESOLVING),
            limit("delegation procedures at once", self.procedures.len(), self.settings.settle_at_once),
            limit("subnets waiting for a delegation procedure", self.settle_queue.len(), MOST_QUEUED),
            limit("addresses without an owner that are lent", self.lent.len(), MOST_QUEUED),
            limit("servers asked at once", self.front.busy(), politeness.parallel),
            limit("claimed subnets", self.ownership.len(), MOST_CLAIMS),
            limit("members", self.membership.members().count(), self.settings.membership.most_members),
            limit("journal rows waiting to be stored", self.rows.len(), MOST_GATHERED),
            limit("contacts of one subnet by probes in 30 days", self.contacts.most(), self.settings.contacts_per_subnet as usize),
            limit("subnets whose contacts are remembered", self.contacts.len(), MOST_PROBED),
            limit("subnets on their way to another owner", going, MOST_GOING),
            limit("subnets on their way to this one", coming, MOST_COMING),
            limit("subnets whose owners are remembered", self.moves.chronicles.len(), MOST_CHRONICLES),
        ]
    }
}

fn limit(name: &str, used: usize, most: usize) -> LimitView {
    LimitView { name: name.to_owned(), used: used as u64, most: most as u64 }
}

fn cache(place: &str, cache: &ShadowedCache) -> CacheView {
    let now = cache.statistics();
    let shadows = cache.shadows().map(|shadow| ShadowView { policy: shadow.policy.to_owned(), hits: shadow.hits, misses: shadow.misses });
    CacheView {
        place: place.to_owned(),
        entries: now.len as u64,
        capacity: now.capacity as u64,
        hits: now.hits,
        misses: now.misses,
        shadows: shadows.collect(),
    }
}
