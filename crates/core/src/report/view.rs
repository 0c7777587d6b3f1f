//! Read-only view of an access point.
//!
//! It covers all machines; and in order, page by page: the members, the claims, and the servers on record.

use super::{
    Counters, Report,
    journal_rows::{ExportOrder, ExportedJournal},
    machine::whereabouts,
    reason,
    tally::Whereabouts,
};
use crate::{
    admission::Admissions,
    context::Context,
    crawl::{Crawl, site::Site},
    delegation::{Delegation, own_ip},
    hierarchy_version::HierarchyVersion,
    membership::{Membership, Shutdown},
    migration::{
        Migration,
        handover::{Immovable, Stage, Surroundings},
    },
    opt_out::OptOuts,
    ownership::Ownership,
    relay::Relay,
    replication::Replication,
    routing::Routing,
    survey::{Surveys, probing::Told},
    wishes::KeptSurvey,
};
use nearcrawl_model::{
    access_point::{AccessPoint, ShortId},
    admission::{AdmissionView, NotAdmitted, SignedAdmission},
    claim::Claim,
    cross_table::{CrossTableView, Pair},
    distinct::DistinctView,
    edition::Edition,
    exported::{ExportOf, ExportPlace, ExportQuery, ExportedRows},
    journal::JournalKey,
    opt_out::{OptOutKey, OptOutProof, OptOutView},
    ownership_map::{MapDigest, MapPart},
    record::ServerRecord,
    run_history::RunSummary,
    server_rows::{HistoryRow, MAX_OWNERS, RowsOf, RunRow, ServerOwner, ServerRow, ServerRows, Today},
    subnet::Subnet,
    summary::{RollUp, SwarmResults},
    survey::{Place, SignedSurvey, SurveyId, SurveyMark, SurveyPlan, SurveyRef, SurveyState, SurveyView, survey_id},
    survey_probes::{MAX_MEMBERS, MAX_ROUND_TRIPS, MemberRoundTrip, ProbedSurvey, SurveyProbes},
    time::{Millis, Moment},
    url::Host,
    view::{EventView, EventsView, Liveness, MemberView, OwnershipView, ProgressView, ServersPage, Span, WhyView},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

/// Journals that are read for one answer to a reader.
const MAX_JOURNALS: usize = 64;

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
    pub(crate) surveys: &'a Surveys,
    pub(crate) opt_outs: &'a OptOuts,
    pub(crate) admissions: &'a Admissions,
}

impl<'a> View<'a> {
    /// Rows of a journal of its own below this one are recorded.
    pub fn recorded(&self, journal: &JournalKey) -> u64 {
        self.replication.recorded(journal)
    }

    /// The members that keep copies of its journals, and of the record of its requests.
    pub fn replicas(&self) -> BTreeSet<AccessPoint> {
        self.replication.keepers().collect()
    }

    /// How many bytes of journal rows it has from other members and does not use yet.
    pub fn recovered_bytes(&self) -> usize {
        self.replication.recovered_bytes()
    }
}

/// The journal of the run that answers.
fn exported(site: &Site) -> ExportedJournal {
    let published = site.published();
    let key = JournalKey { run: published.run, ..site.key.clone() };
    ExportedJournal { key, tree: site.tree.clone(), state: published.state, from: 0, part: 0 }
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
        let address = addresses.iter().find_map(|address| own_ip(address)).or_else(|| self.delegation.address_of(&access_point));
        let rtt_us = self.delegation.round_trips().find(|(who, _)| *who == access_point).map(|(_, rtt_us)| rtt_us);
        MemberView {
            country: address.map(|address| self.context.place_of(address).country.to_owned()),
            rtt_ms: rtt_us.map(|rtt_us| f64::from(rtt_us) / 1e3),
            access_point,
            is_me,
            address,
            is_relayed: MemberView::relayed(&addresses),
            addresses,
            profile: self.membership.profile_of(self.context, &access_point),
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

    /// The same for a reader, or their runs: as many as one answer takes, each with where it is. The probabilities in them are those of
    /// the last [`crate::crawler::Crawler::prepare_rows`]. Fails as [`View::may_answer_for_all`] does.
    pub fn rows(&self, of: RowsOf, after: Option<&Host>) -> Result<ServerRows, String> {
        self.may_answer_for_all()?;
        let sites = self.sites_after(after);
        Ok(match of {
            RowsOf::Servers => ServerRows::of(sites.map(|site| (site.key.host.clone(), self.server_row(site)))),
            RowsOf::History => ServerRows::of(sites.map(|site| (site.key.host.clone(), self.history_row(site)))),
        })
    }

    fn server_row(&self, site: &Site) -> ServerRow {
        let record = site.published();
        let Whereabouts { country, registry, organisation } = whereabouts(self.context, Some(site.address));
        let (inclusion_probability, surveys) = (self.report.inclusion_probability(&record.host), self.surveys_of(site));
        ServerRow { access_point: self.context.me, country, registry, organisation, inclusion_probability, surveys, record }
    }

    fn history_row(&self, site: &Site) -> HistoryRow {
        let (runs, runs_left_out) = site.runs();
        let run_row = |summary: RunSummary| {
            let Whereabouts { country, registry, organisation } = whereabouts(self.context, summary.address);
            RunRow { country, registry, organisation, summary }
        };
        let runs = runs.into_iter().map(run_row).collect();
        let (host, tree, surveys) = (site.key.host.clone(), site.tree.clone(), self.surveys_of(site));
        let Whereabouts { country, registry, organisation } = whereabouts(self.context, Some(site.address));
        let inclusion_probability = self.report.inclusion_probability(&host);
        let today = Some(Today { address: Some(site.address), country, registry, organisation, inclusion_probability });
        HistoryRow { access_point: self.context.me, host, tree, surveys, runs_left_out, today, runs }
    }

    /// Whether it has the journals of all that it owns: without, rows that are missing could not be told from rows that never were. Fails with
    /// the end of a sentence about this access point.
    pub fn may_answer_for_all(&self) -> Result<(), String> {
        let loading = self.replication.subnets_loading();
        if loading > 0 {
            return Err(format!("is still reading the journals of {loading} subnets; ask again in a moment"));
        }
        if self.crawl.sites().is_empty() && !self.membership.may_claim(self.context.now.moment) {
            return Err("has only just started, and compares what is owned with other members; ask again in a moment".to_owned());
        }
        Ok(())
    }

    /// The servers behind this one.
    fn sites_after(&self, after: Option<&Host>) -> impl Iterator<Item = &'a Site> + use<'a> {
        self.crawl.sites().after(after).filter(|site| !site.has_ended())
    }

    /// Which journals have to be read for a reader; or the answer, if none have.
    ///
    /// # Errors
    ///
    /// The answer.
    pub fn export(&self, query: &ExportQuery) -> Result<ExportOrder, ExportedRows> {
        let (after, within) = match &query.from {
            None => (None, None),
            Some(ExportPlace { host, within: None }) => (Some(host), None),
            Some(ExportPlace { host, within: Some(within) }) => (Some(host), Some((host, *within))),
        };
        if query.of == ExportOf::Events {
            let events = self.context.events.all().into_iter().map(|(number, event)| (*number, shown(event)));
            return Err(ExportedRows::of_events(self.context.me, query.from.as_ref(), self.context.events.dropped(), events));
        }
        if query.of == ExportOf::Hosts {
            return Err(ExportedRows::of_hosts(self.sites_after(after).map(|site| &site.key.host)));
        }
        let begun = within.map(|(host, within)| (host, self.crawl.site(host).filter(|site| !site.has_ended()), within));
        if let Some((host, None, within)) = begun {
            return Err(ExportedRows::without(host, within.run));
        }
        let begun = begun.and_then(|(_, site, within)| Some((site?, within)));
        let begun = begun.map(|(site, within)| {
            let journal = exported(site);
            let run = if within.run == 0 { journal.key.run } else { within.run };
            ExportedJournal { key: JournalKey { run, ..journal.key }, from: within.sequence, part: within.part, ..journal }
        });
        let mut journals: Vec<_> = begun.into_iter().chain(self.sites_after(after).map(exported)).take(MAX_JOURNALS + 1).collect();
        let more = journals.len() > MAX_JOURNALS;
        journals.truncate(MAX_JOURNALS);
        if journals.is_empty() {
            return Err(ExportedRows::default());
        }
        Ok(ExportOrder { of: query.of, me: self.context.me, secret: self.context.secret, journals, more })
    }

    /// The members that have servers on record, this one among them, and those that own subnets and have not told yet of how many servers.
    pub fn server_owners(&self) -> Vec<ServerOwner> {
        // Of who is dead and owns nothing others have everything, although its totals may be remembered for a while.
        let has_any = |member: &MemberView| member.subnets > 0 || (member.servers > 0 && member.liveness != Liveness::Dead);
        let owners = self.members().into_iter().filter(has_any);
        owners.map(|member| ServerOwner { access_point: member.access_point, servers: member.servers }).take(MAX_OWNERS).collect()
    }

    /// How far it is.
    pub fn progress(&self) -> ProgressView {
        ProgressView {
            pages: self.context.counters.pages,
            waiting: self.crawl.sites().all().map(|site| site.frontier.len() as u64).sum(),
            busy: self.crawl.fetches().in_flight() as u64,
            servers: self.crawl.sites().len() as u64,
            bytes: self.context.counters.bytes,
            known: self.crawl.sites().all().map(|site| site.record.known).sum(),
            left_ms: self.time_left(),
        }
    }

    /// How long what waits takes: as long as the slowest address, or as all together with so many at once as may be. Each URL takes what the
    /// answers of its server took on the average, and the pause after it.
    fn time_left(&self) -> Millis {
        let politeness = &self.context.settings.politeness;
        let mut by_address: BTreeMap<IpAddr, Millis> = BTreeMap::new();
        for site in self.crawl.sites().all().filter(|site| !site.frontier.is_empty()) {
            let took = site.record.busy_ms / site.record.requests.max(1);
            let each = took.saturating_add(politeness.rest_after(took, site.record.crawl_delay_ms));
            let left = by_address.entry(site.address).or_default();
            *left = left.saturating_add(each.saturating_mul(site.frontier.len() as u64));
        }
        let slowest = by_address.values().copied().max().unwrap_or(0);
        let all = by_address.values().fold(0, |sum: Millis, left| sum.saturating_add(*left));
        slowest.max(all / (politeness.parallel.max(1) as u64))
    }

    /// What is on record of one of its own servers, if it has it.
    pub fn server(&self, host: &Host) -> Option<ServerRecord> {
        self.crawl.site(host).filter(|site| !site.has_ended()).map(Site::published)
    }

    /// Whether nothing waits and nothing is being asked at one of its own servers; none if it does not have it.
    pub fn is_at_rest(&self, host: &Host) -> Option<bool> {
        let rules = &self.context.settings.rules;
        self.crawl.site(host).filter(|site| !site.has_ended()).map(|site| !site.is_busy() && !site.wants(rules))
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

    /// The delegations, judgements and hand-overs that ended here lately.
    pub fn events(&self) -> EventsView {
        let events = self.context.events.all().into_iter().map(|(_, event)| shown(event));
        EventsView { access_point: self.context.me, dropped: self.context.events.dropped(), events: events.collect() }
    }

    /// How many delegations and hand-overs have ended here since the start.
    pub fn events_ended(&self) -> u64 {
        self.context.events.ended()
    }

    /// The latest of them, at most so many, the oldest first.
    pub fn latest_ended(&self, most: usize) -> Vec<EventView> {
        let latest = self.context.events.latest();
        let older = latest.len().saturating_sub(most);
        latest.skip(older).map(shown).collect()
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
        let results = results.for_readers();
        let why = if results.exact { unsure } else { Some(results.in_transition_text.unwrap_or_else(|| "totals change".to_owned())) };
        match self.report.last_whole_table(self.context, by).filter(|_| !whole) {
            Some((last, age_ms)) => {
                let why = format!("{}; this is the table of {} ago", why.unwrap_or_else(|| "totals change".to_owned()), Span(age_ms));
                CrossTableView::new(self.context.me, last.clone(), Some(why))
            }
            None => CrossTableView::new(self.context.me, table, why),
        }
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
        let held_back = self.held_back();
        let around = Surroundings {
            membership: self.membership,
            ownership: self.ownership,
            crawl: self.crawl,
            replication: self.replication,
            delegation: self.delegation,
            report: self.report,
            held_back: held_back.as_ref(),
        };
        self.migration.may_move(self.context, &around, subnet, to)
    }
}

/// Who may be a member.
impl View<'_> {
    /// The certificates and expulsions that are known here.
    pub fn admission(&self) -> AdmissionView {
        self.admissions.view(self.context, self.membership)
    }

    /// Why a certificate does not count although it is signed by who may: another one that is known here was signed later.
    pub fn replaced_certificate(&self, signed: &SignedAdmission) -> Option<String> {
        self.admissions.is_replaced(signed)
    }

    /// Why this access point is no member; none if it may be one.
    pub fn not_admitted(&self) -> Option<&NotAdmitted> {
        self.context.excluded.get(&self.context.me)
    }

    /// What came of a certificate or an expulsion that people gave, by its number; none if that is not known yet.
    pub fn admission_outcome(&self, number: u64) -> Option<Result<AccessPoint, String>> {
        self.admissions.outcome(number)
    }
}

/// Whom nobody may ask anything.
impl View<'_> {
    /// All opt-outs that are known here, those in force first.
    pub fn opt_outs(&self) -> Vec<OptOutView> {
        self.opt_outs.views(self.context)
    }

    /// A part of them, for who is no member: those behind one, and the last of them if there are more.
    pub fn opt_outs_after(&self, after: Option<&OptOutKey>, most: usize) -> (Vec<OptOutView>, Option<OptOutKey>) {
        self.opt_outs.views_after(self.context, after, most)
    }

    /// One of them, as it stands here.
    pub fn opt_out(&self, key: &OptOutKey) -> OptOutView {
        self.opt_outs.view(self.context, key)
    }

    /// What came of the question of people with this number; none if that is not known yet.
    pub fn opt_out_outcome(&self, number: u64) -> Option<Result<OptOutKey, String>> {
        self.opt_outs.outcome(number)
    }

    /// Why no proof is looked for because a program asks that is no member; none if one is.
    pub fn refuses_opt_out(&self, key: &OptOutKey, stops: bool) -> Option<String> {
        self.opt_outs.refuses_reader(self.context, key, stops)
    }

    /// The same of a host whose URLs are dropped here, because the proof was seen here, or an operator ordered it.
    pub fn never_asked(&self, host: &Host) -> Option<String> {
        self.context.opted_out.surely_covers(host, None).then(|| self.opted_out(Some(host), None)).flatten()
    }

    /// By which opt-out a server of this name, or at this address, is asked nothing, as a sentence; none if by none.
    pub fn opted_out(&self, host: Option<&Host>, address: Option<IpAddr>) -> Option<String> {
        let one = self.context.opted_out.covering(host, address).filter(|one| !one.is_disputed)?;
        let OptOutKey { subject, proof } = &one.key;
        let by = if one.by == self.context.me { "this access point".to_owned() } else { one.by.to_string() };
        let shown = match proof {
            OptOutProof::Order => "order of its operator".to_owned(),
            _ => format!("proof {proof} ({})", proof.published_at(subject)),
        };
        Some(format!("No member asks it anything: {subject} is opted out by {by} at {}, {shown}.", one.at))
    }
}

/// Which surveys there are, whether one may be made or changed, and to which a host belongs.
impl<'a> View<'a> {
    /// All surveys, those that run first, by name; without their lists.
    pub fn surveys(&self) -> Vec<SurveyView> {
        let of = |kept| SurveyView::new(kept, &self.context.me, self.context.now.wall);
        let mut views: Vec<_> = self.surveys.register().all().map(|kept| of(&kept.survey)).collect();
        views.sort_by(|one, other| (one.state, &one.name, one.creator).cmp(&(other.state, &other.name, other.creator)));
        views
    }

    /// The survey that people call so, with its list. Of several of one name it is our own.
    ///
    /// # Errors
    ///
    /// There is none, or there are several, as a sentence.
    pub fn survey(&self, wanted: &SurveyRef) -> Result<SurveyView, String> {
        let found = self.kept_survey(wanted)?;
        let view = SurveyView::new(&found.survey, &self.context.me, self.context.now.wall);
        Ok(SurveyView { entries: found.survey.plan.entries.clone(), ..view })
    }

    fn kept_survey(&self, wanted: &SurveyRef) -> Result<&'a KeptSurvey, String> {
        let fits: Vec<_> = self.surveys.register().all().filter(|kept| wanted.fits(&kept.survey.plan.name, &kept.survey.creator)).collect();
        let ours = fits.iter().find(|kept| kept.survey.creator == self.context.me);
        match (&fits[..], ours) {
            ([], _) => Err(format!("this access point knows of no survey {wanted}")),
            (_, Some(found)) | ([found], None) => Ok(*found),
            (several, None) => {
                let names: Vec<_> =
                    several.iter().map(|kept| format!("{}@{}", kept.survey.plan.name, kept.survey.creator.short())).collect();
                Err(format!("{wanted} may be {}: say which", names.join(" or ")))
            }
        }
    }

    /// The same as its creator signed it, with the members that probe its sample.
    ///
    /// # Errors
    ///
    /// There is none, or there are several, or it has no sample, as a sentence.
    pub fn probed_survey(&self, wanted: &SurveyRef) -> Result<ProbedSurvey, String> {
        let kept = self.kept_survey(wanted)?;
        if kept.survey.plan.probe.is_none() {
            return Err(format!("the survey {wanted} was made without --probe: no member probes servers for it"));
        }
        let members = self.members().into_iter().map(|member| member.access_point).take(MAX_MEMBERS).collect();
        Ok(ProbedSurvey { signed: kept.signed.clone(), members })
    }

    /// The survey that people call so, as [`View::survey`] has it.
    ///
    /// # Errors
    ///
    /// There is none, or there are several, as a sentence.
    pub fn survey_called(&self, wanted: &SurveyRef) -> Result<SurveyId, String> {
        self.survey(wanted).map(|view| survey_id(&view.creator, &view.name))
    }

    /// What our probes of a survey's sample came to; none if there is no such survey here, or it has no sample.
    pub fn survey_probes(&self, survey: &SurveyId) -> Option<SurveyProbes> {
        let Told { servers, denied, waiting_for_budget, waiting_for_address, waiting_for_turn, rows } =
            self.surveys.probing().told(survey)?;
        let round_trips = self.delegation.round_trips().take(MAX_ROUND_TRIPS);
        Some(SurveyProbes {
            access_point: self.context.me,
            address: self.delegation.place(self.context),
            servers,
            denied,
            waiting_for_budget,
            waiting_for_address,
            waiting_for_turn,
            rows,
            round_trips: round_trips.map(|(access_point, rtt_us)| MemberRoundTrip { access_point, rtt_us }).collect(),
        })
    }

    /// The version of a survey that is stored here; none if there is none.
    pub fn survey_revision(&self, creator: &AccessPoint, name: &str) -> Option<u64> {
        self.surveys.register().get(&survey_id(creator, name)).map(|kept| kept.survey.revision)
    }

    /// A new survey of our own, signed, to be given to the crawler.
    ///
    /// # Errors
    ///
    /// Why it may not be made, as a sentence.
    pub fn new_survey(&self, plan: SurveyPlan) -> Result<SignedSurvey, String> {
        self.surveys.drafted(self.context, plan)
    }

    /// A survey of our own in another state, signed, to be given to the crawler.
    ///
    /// # Errors
    ///
    /// Why it may not be changed, as a sentence.
    pub fn changed_survey(&self, name: &str, state: SurveyState) -> Result<SignedSurvey, String> {
        self.surveys.changed(self.context, name, state)
    }

    /// Says to which surveys the host belongs that was asked about, and if none of them wants it any more, that.
    pub(super) fn name_surveys(&self, view: &mut WhyView, sentences: &mut Vec<String>) {
        let Some(host) = view.host.clone() else { return };
        let tree = view.tree.clone().unwrap_or_else(|| host.without_www());
        let nowhere = Place { country: "ZZ", organisation: "", asn: None };
        let place = view.address.map_or(nowhere, |address| self.context.place_of(address));
        let surveys = self.context.wishes.having(&host, &tree, &place);
        if surveys.is_empty() {
            return;
        }
        let now = self.context.now.wall;
        let names = surveys.iter().map(|kept| match kept.survey.state_at(now) {
            SurveyState::Running => kept.survey.plan.name.clone(),
            state => format!("{} ({state})", kept.survey.plan.name),
        });
        let names = names.collect::<Vec<_>>().join(", ");
        sentences.push(format!("It belongs to {}: {names}.", if surveys.len() == 1 { "the survey" } else { "the surveys" }));
        let opted_out = self.context.opted_out.covers(&host, view.address);
        if !opted_out && self.crawl.site(&host).is_some_and(|site| site.wishes.is_unwanted) {
            sentences.push("Nothing is asked there, because nobody else wants it.".to_owned());
        }
        view.surveys = surveys.into_iter().map(|kept| kept.mark(&host, &tree)).collect();
    }

    /// The surveys that a site belongs to.
    pub(super) fn surveys_of(&self, site: &Site) -> Vec<SurveyMark> {
        let place = self.context.place_of(site.address);
        let surveys = self.context.wishes.having(&site.key.host, &site.tree, &place);
        surveys.into_iter().map(|kept| kept.mark(&site.key.host, &site.tree)).collect()
    }
}

/// An event with its reason as people read it.
fn shown(event: &EventView) -> EventView {
    EventView { reason_text: event.reason_text.as_deref().map(reason::shown), ..event.clone() }
}
