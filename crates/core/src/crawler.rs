//! The crawler of an access point: all of its state machines, joined.
//!
//! Facts come in as [`Event`]s, what is to be done goes out as [`Command`]s; nothing here touches the world, and nothing is decided here.
//!
//! Which machine a fact is for stands here and, for what members ask and answer, in `requests`; what several machines do about one fact in
//! the files of `effects`; what one machine wants of another is a [`Signal`].

use crate::event::{Command, Event};
use crate::membership::{Member, Roster, Swim};
use crate::{
    context::Context,
    crawl::Crawl,
    delegation::Delegation,
    hierarchy_version::HierarchyVersion,
    membership::{Membership, Parting, Shutdown},
    migration::Migration,
    ownership::Ownership,
    relay::Relay,
    replication::Replication,
    report::{Report, View},
    routing::Routing,
    signal::Signal,
    timers::TIMERS,
    voting::{Networks, Times, Voting},
};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    access_point::AccessPoint,
    message::Response,
    time::{Moment, Now},
};
use std::{collections::BTreeMap, sync::Arc};

pub use crate::{
    settings::{Identity, NewHostLimits, Settings},
    timers::TICK,
};

/// URLs on their way to owners beyond which nothing new is fetched: back-pressure.
pub(crate) const MAX_OUTGOING: usize = 200_000;

/// One access point.
pub struct Crawler {
    pub(crate) context: Context,
    pub(crate) membership: Membership,
    pub(crate) shutdown: Shutdown,
    pub(crate) hierarchy_version: HierarchyVersion,
    pub(crate) ownership: Ownership,
    pub(crate) delegation: Delegation,
    pub(crate) routing: Routing,
    pub(crate) crawl: Crawl,
    pub(crate) replication: Replication,
    pub(crate) migration: Migration,
    pub(crate) voting: Voting,
    pub(crate) report: Report,
    pub(crate) relay: Relay,
    pub(crate) surveys: crate::survey::Surveys,
    pub(crate) opt_outs: crate::opt_out::OptOuts,
    pub(crate) admissions: crate::admission::Admissions,
    /// Whether a signal is being carried out.
    settling: bool,
}

impl Crawler {
    /// Starts: restores its claims, asks for the journals of what it owns, claims its own subnet when it may.
    pub fn new(identity: Identity, settings: Settings, hierarchy: Arc<Hierarchy>, now: Now) -> Crawler {
        let me = AccessPoint(identity.key.verifying_key().to_bytes());
        let member = Member::new(me, identity.incarnation, identity.addresses);
        let networks = Networks::new(me, settings.roster.singly.clone());
        // Each process counts its sites anew; the incarnation keeps their fingerprints apart from those of the processes before.
        let handoff_scope = identity.incarnation << 32;
        let mut crawler = Crawler {
            membership: Membership::new(
                Swim::new(member, settings.membership.clone(), identity.incarnation),
                Roster::new(me, settings.roster.clone(), now.moment, &identity.members),
            ),
            hierarchy_version: HierarchyVersion::default(),
            shutdown: Shutdown::default(),
            ownership: Ownership::new(now.moment, !settings.joins && identity.members.len() < 2),
            delegation: Delegation::default(),
            routing: Routing::default(),
            crawl: Crawl::new(&settings, handoff_scope),
            replication: Replication::default(),
            migration: Migration::default(),
            voting: Voting::new(Times::of(&settings.roster), networks, now, identity.incarnation, identity.sole, &identity.voting),
            report: Report::new(now.moment),
            relay: Relay::new(now),
            surveys: Default::default(),
            opt_outs: Default::default(),
            admissions: Default::default(),
            settling: false,
            context: Context::new((me, identity.key, identity.store), identity.fingerprints, hierarchy, settings, now),
        };
        crawler.wake_votes();
        crawler.delegation.wake(&crawler.context, &identity.contacts);
        crawler.surveys.wake(&mut crawler.context, &identity.surveys, &identity.survey_probes);
        crawler.opt_outs.wake(&mut crawler.context, &identity.opt_outs);
        crawler.admissions.wake(&mut crawler.context, &identity.admissions, identity.certificate);
        crawler.wake_claims(identity.claims);
        crawler
    }

    /// Takes in one fact; afterwards [`Crawler::next_command`] has what is to be done.
    pub fn handle(&mut self, now: Now, event: Event) {
        self.context.now = now;
        self.compare_clocks();
        match event {
            Event::Tick => {}
            Event::Room(room) => self.crawl.disk_space(room),
            Event::Rest(rest) => self.context.rest = rest,
            Event::Outlook(outlook) => self.context.outlook = outlook,
            Event::Profile(profile) => self.membership.tell_profile(profile),
            Event::Seeds(urls) => self.seeds(urls),
            Event::Superseded(urls) => self.superseded(urls),
            Event::Wanted(host) => self.routing.find(&mut self.context, &self.membership, &host),
            Event::CrossTableWanted(by) => self.cross_table_wanted(by),
            Event::DistinctWanted => self.distinct_wanted(),
            Event::Leave => self.shutdown.leave(now.moment),
            Event::Drain => self.shutdown.drain(now.moment),
            Event::Move { subnet, to } => self.hand_over(subnet, to, "its operator gave it away".to_owned()),
            Event::Pinned(subnets) => self.migration.pin(subnets),
            Event::Reached(addresses) => self.reached_at(addresses),
            Event::Connected { access_point, incarnation, addresses, remote } => {
                self.seen_at(access_point, remote);
                self.relay.connected(&self.context, access_point);
                self.membership.connected(&mut self.context, access_point, incarnation, addresses)
            }
            Event::Asked { from, ticket, request } => self.question_came(from, ticket, request),
            Event::Answered { question, from, answer } => self.answer_came(question, from, answer),
            Event::Transfer { transfer, to, request } => self.transfer(transfer, to, request),
            Event::Gossiped { author, gossip } => self.gossiped(author, gossip),
            Event::Distance { to, rtt_us, remote } => {
                self.seen_at(to, remote);
                self.delegation.distance_measured(&self.context, to, rtt_us, remote)
            }
            Event::Resolved { host, answer } => self.resolved(&host, answer),
            Event::Probed { question, report } => self.probed(question, report),
            Event::BodyReceived { address, took } => self.crawl.body_received(&self.context, address, took),
            Event::Fetched { address, report } => self.fetched(address, report, None),
            Event::Revisited { address, report, previous } => self.fetched(address, report, previous),
            Event::PreviousRunLoaded { site, journal, read } => {
                self.crawl.previous_run_loaded(&mut self.context, &mut self.replication, site, &journal, read)
            }
            Event::Seen { ticket, answers } => self.crawl.seen(&mut self.context, &mut self.replication, ticket, answers),
            Event::Children { ticket, children } => self.crawl.children(&mut self.context, ticket, children),
            Event::CutTaken { ticket, urls } => self.crawl.cut_taken(&mut self.context, &mut self.replication, ticket, urls),
            Event::RowsStored { write, growth } => self.rows_stored(write, growth),
            Event::JournalsResized { growth } => self.replication.resized(&self.context, &self.ownership, None, growth),
            Event::RowsKept { ticket, heads, growth } => self.rows_kept(ticket, heads, growth),
            Event::RowsRead { ticket, rows, next } => self.answer(ticket, Response::Recalled(rows, next)),
            Event::RowsDigested { ticket, told } => self.answer(ticket, Response::RowsCompared(told)),
            Event::Exported { ticket, rows } => self.exported(ticket, rows),
            Event::Explained { ticket, said } => self.answer(ticket, said.map_or_else(Response::Refused, Response::Why)),
            Event::RequestsTold { ticket, made } => self.requests_told(ticket, made),
            Event::RecordAnswered { ticket, answer } => self.record_answered(ticket, answer),
            Event::ClaimsStored { write } => self.claims_stored(write),
            Event::VotingStored { write } => self.voting_stored(write),
            Event::DeclareLost(lost) => self.declare_lost(lost),
            Event::Copied { to, sent, answer } => self.copied(to, &sent, answer),
            Event::Recovered { subnet, host: Some(host), from, journals, .. } => self.host_arrived(&host, from, subnet, journals),
            Event::Recovered { subnet, host: None, from, journals, bytes } => self.recovered(subnet, from, journals, bytes),
            Event::Loaded { subnet, journals } => {
                self.carry_here(&journals);
                self.loaded(subnet, journals)
            }
            Event::SeenLoaded { site } => self.crawl.awake(&mut self.context, site),
            Event::Survey(event) => self.survey(event),
            Event::OptOut(event) => self.opt_out(event),
            Event::Scope(scope) => self.change_scope(*scope),
            Event::Admission(event) => self.admission(event),
            Event::Hierarchy(hierarchy) => self.change_hierarchy(hierarchy),
            Event::AtHand(at_hand) => self.hierarchy_version.at_hand(&self.context, at_hand),
            Event::Given { edition, hierarchy } => self.hierarchy_version.given(&mut self.context, edition, hierarchy),
            Event::EditionFound { edition, found, hierarchy, wrong } => {
                self.hierarchy_version.found(&mut self.context, edition, found, hierarchy, wrong)
            }
        }
        self.settle_signals();
        if now.moment >= self.context.tick_due {
            self.context.tick_due = now.moment.after(TICK);
            self.tick();
        }
        self.visit();
    }

    /// What is due although nothing happened: see [`TIMERS`].
    pub(crate) fn tick(&mut self) {
        self.context.rounds += 1;
        let rounds = self.context.rounds;
        for timer in TIMERS.iter().filter(|timer| rounds.is_multiple_of(timer.every)) {
            (timer.run)(self);
        }
    }

    /// The next command, oldest first.
    pub fn next_command(&mut self) -> Option<Command> {
        self.next_sent()
    }

    /// When to call again with [`Event::Tick`], if nothing happens before.
    pub fn wake_at(&self) -> Moment {
        if self.view().held_back().is_some() {
            // Servers whose rest is over wait for something else.
            return self.context.tick_due;
        }
        self.crawl.fetches().scheduler().next_due().map_or(self.context.tick_due, |due| due.min(self.context.tick_due))
    }

    /// All machines, to be read: whatever the process asks is answered from here.
    pub fn view(&self) -> View<'_> {
        View {
            context: &self.context,
            membership: &self.membership,
            shutdown: &self.shutdown,
            hierarchy_version: &self.hierarchy_version,
            ownership: &self.ownership,
            delegation: &self.delegation,
            routing: &self.routing,
            crawl: &self.crawl,
            replication: &self.replication,
            migration: &self.migration,
            voting: &self.voting,
            report: &self.report,
            relay: &self.relay,
            surveys: &self.surveys,
            opt_outs: &self.opt_outs,
            admissions: &self.admissions,
        }
    }

    /// This access point.
    pub fn me(&self) -> AccessPoint {
        self.context.me
    }

    /// Members of the last day that are none any more: how, and since when they said nothing.
    pub fn parted(&self) -> &BTreeMap<AccessPoint, (Parting, Moment)> {
        self.membership.parted()
    }

    /// Carries out what machines want of each other, in the order in which they said so, one after the other: what is signalled meanwhile
    /// follows when what is being carried out has come to its end.
    pub(crate) fn settle_signals(&mut self) {
        if self.settling {
            return;
        }
        self.settling = true;
        while let Some(signal) = self.context.signals.pop_front() {
            self.dispatch(signal);
        }
        self.settling = false;
    }

    fn dispatch(&mut self, signal: Signal) {
        match signal {
            Signal::HierarchyChanged(hierarchy) => self.change_hierarchy(hierarchy),
            Signal::Claim(claims) => self.ownership.make_claims(&mut self.context, claims),
            Signal::ClaimsToVote(claims, part) => self.propose(claims, part),
            Signal::ClaimsAccepted(claims) => self.ownership.store_own(&mut self.context, claims),
            Signal::ClaimsGivenUp(claims) => claims.into_iter().for_each(|(subnet, epoch)| self.ownership.end_claim(subnet, epoch)),
            Signal::ClaimsToTell(subnets) => self.ownership.tell_again(self.context.me, subnets),
            Signal::LeaseAsked(voters) => self.compare_totals_along(voters),
            Signal::TermBegan => {
                self.routing.was_away(&self.context);
                self.ownership.term_began(&mut self.context);
            }
            Signal::ClaimProven(subnet) => self.claim_proven(subnet),
            Signal::ClaimDoubtful(subnet) => self.claim_doubtful(subnet),
            Signal::Awarded(award) => self.ownership.awarded(&mut self.context, &self.membership, &self.shutdown, award),
            Signal::MemberCame(who) => {
                let (delegation, context, others) = self.delegating();
                delegation.member_came(context, others, who)
            }
            Signal::MemberConnected(who) => self.member_connected(who),
            Signal::MemberDied(gone) => self.dead(gone),
            Signal::AdmissionChanged(who) => self.admission_changed(who),
            Signal::NextOwnerChanged(subnet) => self.next_owner_changed(subnet),
            Signal::HandOverCalledOff(subnet) => self.hand_over_called_off(subnet),
            Signal::HandOverCloses(last_row) => self.hand_over_closes(last_row.map(|row| *row)),
            Signal::WayMeasured { subnet, rtt_us } => self.delegation.way_changed(&self.context, subnet, rtt_us),
            Signal::MembersChanged => self.members_changed(),
            Signal::Reroute(items) => self.routing.put(items),
            Signal::Locate(host) => self.routing.find(&mut self.context, &self.membership, &host),
            Signal::Admitted(acknowledgement) => {
                self.routing.await_recording(acknowledgement);
                self.acknowledge();
            }
            Signal::SiteFinished(subnet) => self.end_access(subnet),
            // It may be gone since.
            Signal::SiteChanged(host) if self.crawl.site(&host).is_none() => {}
            Signal::SiteChanged(host) => self.report.site_changed(host),
            Signal::RollUpChanged => self.report.mark_changed(),
        }
    }
}
