//! What can be read of an access point? All machines; and in order, page by page: who is there, what is whose, which servers are on record.

use super::{Counters, Report, machine::whereabouts, tally::Whereabouts};
use crate::{
    context::Context,
    crawl::{Crawl, site::Site},
    delegation::Delegation,
    hierarchy_version::HierarchyVersion,
    membership::{Membership, Shutdown},
    migration::{
        Migration,
        handover::{Immovable, Stage, Surroundings},
    },
    ownership::Ownership,
    relay::Relay,
    replication::Replication,
    routing::Routing,
};
use nearcrawl_model::{
    access_point::{AccessPoint, ShortId},
    claim::Claim,
    cross_table::{CrossTableView, Pair},
    distinct::DistinctView,
    edition::Edition,
    journal::JournalKey,
    ownership_map::{MapDigest, MapPart},
    run_history::RunSummary,
    server_rows::{HistoryRow, MAX_OWNERS, RowsOf, RunRow, ServerOwner, ServerRow, ServerRows},
    subnet::Subnet,
    summary::{RollUp, SwarmResults},
    time::{Millis, Moment},
    url::Host,
    view::{Liveness, MemberView, OwnershipView, ProgressView, ServersPage},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

/// All machines of an access point, to be read: what the process and people may ask. It changes none of them.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) context: &'a Context,
    pub(crate) membership: &'a Membership,
    pub(crate) shutdown: &'a Shutdown,
    pub(crate) hierarchy_version: &'a HierarchyVersion,
    pub(crate) ownership: &'a Ownership,
    pub(crate) delegation: &'a Delegation,
    pub(crate) routing: &'a Routing,
    pub(crate) crawl: &'a Crawl,
    pub(crate) replication: &'a Replication,
    pub(crate) migration: &'a Migration,
    pub(crate) voting: &'a crate::voting::Voting,
    pub(crate) report: &'a Report,
    pub(crate) relay: &'a Relay,
}

impl<'a> View<'a> {
    /// Rows of a journal of its own below this one are recorded.
    pub fn recorded(&self, journal: &JournalKey) -> u64 {
        self.replication.recorded(journal)
    }

    /// How many bytes of journal rows it has from other members and does not use yet.
    pub fn recovered_bytes(&self) -> usize {
        self.replication.recovered_bytes()
    }

    /// What migration reads.
    pub(crate) fn surroundings(&self) -> Surroundings<'a> {
        Surroundings {
            membership: self.membership,
            ownership: self.ownership,
            crawl: self.crawl,
            replication: self.replication,
            delegation: self.delegation,
            report: self.report,
            held_back: self.held_back().is_some(),
        }
    }
}

impl<'a> View<'a> {
    /// The members: itself first, then the others in order, then those that were given up and still own something.
    pub fn members(&self) -> Vec<MemberView> {
        let now = self.context.now.moment;
        let me = self.member(self.context.me, Liveness::Alive, now.since(self.context.started));
        let others = self.membership.standings().iter().map(|(member, standing)| match standing.silent_since {
            Some(since) => self.member(*member, Liveness::Silent, now.since(since)),
            // A short silence that ended is forgotten: it is alive for as long as it is a member.
            None => self.member(*member, Liveness::Alive, now.since(standing.member_since)),
        });
        let dead = self.given_up().map(|(member, since)| self.member(member, Liveness::Dead, now.since(since)));
        std::iter::once(me).chain(others).chain(dead).collect()
    }

    /// Owners that are no members any more, and since when.
    pub(super) fn given_up(&self) -> impl Iterator<Item = (AccessPoint, Moment)> {
        // Owners that were never met are entered with the moment at which they will be given up.
        let (now, standings) = (self.context.now.moment, self.membership.standings());
        self.ownership.dead_since().filter(move |(member, since)| *since <= now && !standings.contains_key(member))
    }

    /// This access point.
    pub fn me(&self) -> AccessPoint {
        self.context.me
    }

    /// How alive a member is; none if it was never met.
    pub(super) fn liveness(&self, peer: AccessPoint) -> Option<Liveness> {
        if peer == self.context.me {
            return Some(Liveness::Alive);
        }
        match self.membership.standings().get(&peer) {
            Some(standing) if standing.silent_since.is_some() => Some(Liveness::Silent),
            Some(_) => Some(Liveness::Alive),
            None => self.given_up().any(|(gone, _)| gone == peer).then_some(Liveness::Dead),
        }
    }

    fn member(&self, access_point: AccessPoint, liveness: Liveness, liveness_for_ms: Millis) -> MemberView {
        let is_me = access_point == self.context.me;
        let addresses = if is_me { self.membership.own_addresses().to_vec() } else { self.membership.addresses_of(&access_point).to_vec() };
        let roll_up = self.report.roll_up_of(&access_point);
        let total = roll_up.map(|(roll_up, _)| roll_up.summary.total).unwrap_or_default();
        MemberView {
            access_point,
            is_me,
            addresses,
            liveness,
            liveness_for_ms,
            subnets: self.ownership.register().count(&access_point) as u64,
            servers: total.servers,
            pages: total.pages,
            roll_up_age_ms: roll_up.map(|(_, at)| self.context.now.moment.since(at)),
        }
    }

    /// Whose the subnets after `after` are, in address order, at most `most` of them.
    pub fn ownership(&self, after: Option<Subnet>, most: usize) -> Vec<OwnershipView> {
        let known = self.known_members();
        let view = |claim| OwnershipView::new(claim, |short| known.get(&short).copied());
        self.ownership.register().after(after).take(most).map(view).collect()
    }

    /// The members that are known here, by what measurements name them by.
    pub(super) fn known_members(&self) -> BTreeMap<ShortId, AccessPoint> {
        self.membership.known().chain([&self.context.me]).map(|member| (ShortId::from(*member), *member)).collect()
    }

    /// The records of its own servers after `after`, in the order of their names, at most `most` of them (at least one).
    pub fn servers(&self, after: Option<&Host>, most: usize) -> ServersPage {
        let mut sites = self.crawl.sites().after(after).filter(|site| !site.has_ended()).peekable();
        let servers: Vec<_> = sites.by_ref().take(most.max(1)).map(Site::published).collect();
        let next = sites.peek().and_then(|_| servers.last()).map(|record| record.host.clone());
        ServersPage { servers, next }
    }

    /// The same for a reader, or their runs: as many as one answer takes, each with where it is.
    pub fn rows(&self, of: RowsOf, after: Option<&Host>) -> ServerRows {
        let sites = self.crawl.sites().after(after).filter(|site| !site.has_ended());
        match of {
            RowsOf::Servers => ServerRows::of(sites.map(|site| (site.key.host.clone(), self.server_row(site)))),
            RowsOf::History => ServerRows::of(sites.map(|site| (site.key.host.clone(), self.history_row(site)))),
        }
    }

    fn server_row(&self, site: &Site) -> ServerRow {
        let record = site.published();
        let Whereabouts { country, registry, organisation } = whereabouts(self.context, Some(site.address));
        ServerRow { access_point: self.context.me, country, registry, organisation, record }
    }

    fn history_row(&self, site: &Site) -> HistoryRow {
        let (runs, runs_left_out) = site.runs();
        let run_row = |summary: RunSummary| {
            let Whereabouts { country, registry, organisation } = whereabouts(self.context, summary.address);
            RunRow { country, registry, organisation, summary }
        };
        let runs = runs.into_iter().map(run_row).collect();
        HistoryRow { access_point: self.context.me, host: site.key.host.clone(), tree: site.tree.clone(), runs_left_out, runs }
    }

    /// The members that have servers on record, this one among them.
    pub fn server_owners(&self) -> Vec<ServerOwner> {
        let of = |member: MemberView| ServerOwner { access_point: member.access_point, servers: member.servers };
        self.members().into_iter().map(of).filter(|owner| owner.servers > 0).take(MAX_OWNERS).collect()
    }

    /// How far it is.
    pub fn progress(&self) -> ProgressView {
        ProgressView {
            pages: self.context.counters.pages,
            waiting: self.crawl.sites().all().map(|site| site.frontier.len() as u64).sum(),
            busy: self.crawl.fetches().in_flight() as u64,
            servers: self.crawl.sites().len() as u64,
            bytes: self.context.counters.bytes,
        }
    }

    /// Whether everything that was named is done and stored. What a spent page budget holds back does not count.
    pub fn all_done(&self) -> bool {
        !self.has_work()
    }

    /// The edition of the hierarchy in use, and the one that this access point votes for; none if the process did not say what it has.
    pub fn editions(&self) -> Option<(Edition, Edition)> {
        self.hierarchy_version.editions()
    }

    /// Whether a member is alive, as far as is known here; this access point is.
    pub fn is_alive(&self, who: &AccessPoint) -> bool {
        self.membership.live().contains(who)
    }

    /// The members that count, to be remembered for the next start.
    pub fn settled_members(&self) -> BTreeSet<AccessPoint> {
        self.membership.settled(self.context.now.moment)
    }

    /// Where other members can be reached, as complete multiaddrs.
    pub fn member_addresses(&self) -> Vec<String> {
        self.membership.all_addresses().cloned().collect()
    }

    /// How many subnets an access point holds, as far as this one knows.
    pub fn subnets_of(&self, owner: &AccessPoint) -> usize {
        self.ownership.register().count(owner)
    }

    /// How many subnets this access point holds.
    pub fn subnets_held(&self) -> usize {
        self.ownership.register().count(&self.context.me)
    }

    /// The claim that holds for exactly this subnet, as far as this access point knows.
    pub fn claim_of(&self, subnet: &Subnet) -> Option<&'a Claim> {
        self.ownership.register().claim(subnet)
    }

    /// The claim that says whose an address is, as far as this access point knows; a released one says that it has no owner for the moment.
    pub fn claim_around(&self, address: IpAddr) -> Option<&'a Claim> {
        self.ownership.register().around(address)
    }

    /// The digest of the ownership map: equal maps have equal ones.
    pub fn map_digest(&self) -> MapDigest {
        self.ownership.register().digest(MapPart::WHOLE)
    }

    /// The digest of what a member holds, as far as this access point knows.
    pub fn digest_of(&self, owner: &AccessPoint) -> u64 {
        self.ownership.register().digest_of(owner)
    }

    /// The run of a host's site; none if it is not open here.
    pub fn run_of(&self, host: &Host) -> Option<u32> {
        self.crawl.site(host).map(|site| site.key.run)
    }

    /// What it did and refused since it started.
    pub fn counters(&self) -> &'a Counters {
        &self.context.counters
    }

    /// The last totals that an owner told, as far as this access point knows.
    pub fn totals_of(&self, owner: &AccessPoint) -> Option<&'a RollUp> {
        self.report.roll_up_of(owner).map(|(roll_up, _)| roll_up)
    }

    /// What the swarm knows so far, as far as this access point knows.
    pub fn results(&self) -> SwarmResults {
        self.report.results(self.context, self.membership, self.ownership)
    }

    /// The sums of the swarm by two dimensions, as far as members told them since [`crate::event::Event::CrossTableWanted`].
    pub fn cross_table(&self, by: Pair) -> CrossTableView {
        let (results, (table, gathering)) = (self.results(), self.report.cross_table(by));
        let whole = !gathering && table.total() == results.summary.total;
        let unsure = (!whole).then(|| "not every member told its part of this table as it is now".to_owned());
        let why = if results.exact { unsure } else { Some(results.in_transition_text.unwrap_or_else(|| "totals change".to_owned())) };
        CrossTableView::new(self.context.me, table, why)
    }

    /// How many different hosts, domains and addresses the swarm has, as far as members told it since [`crate::event::Event::DistinctWanted`].
    pub fn distinct(&self) -> DistinctView {
        self.report.distinct(self.context)
    }

    /// Whether members have still to tell their parts of a table.
    pub fn is_gathering(&self, by: Pair) -> bool {
        self.report.cross_table(by).1
    }

    /// How far everything is that is being handed over from here or to us.
    pub fn stages(&self) -> impl Iterator<Item = Stage> + use<'a> {
        self.migration.stages()
    }

    /// How far a subnet is on its way from here to another owner, or from another owner to us.
    pub fn moving(&self, subnet: &Subnet) -> Option<Stage> {
        self.migration.stage_of(subnet)
    }

    /// Whether a subnet can be handed over to another member now; the epoch of our claim to it.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    pub fn may_move(&self, subnet: &Subnet, to: &AccessPoint) -> Result<u64, Immovable> {
        self.migration.may_move(self.context, &self.surroundings(), subnet, to)
    }
}
