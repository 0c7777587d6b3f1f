//! Answers queries: the crawler's views, with what only the process knows added.

use super::{
    AdmissionReply, MeasureError, MeasureReply, NoProbesError, OptOutReply, PauseReply, ProbesReply, Query, Reply, SurveyReply,
    deferred::DeferredQueries,
};
use crate::io::{
    swarm::{Reachability, Reached, SwarmCounters, SwarmHandle, SwarmSecrets},
    tasks,
};
use crate::node::{clock::millis, config::Config, executor::Executor};
use nearcrawl_core::{
    crawler::Crawler,
    event::{AdmissionEvent, Event, OptOutEvent, SurveyEvent},
    migration::handover::Immovable,
    report::Outside,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    address::{AddressError, AddressPolicy, SeenAt},
    admission::SignedAdmission,
    allowance::AllowanceView,
    edition::Edition,
    exported::{ExportQuery, ExportedRows},
    opt_out::OptOutKey,
    plan::Pace,
    request_record::RequestsAnswer,
    requests_made::RequestsQuery,
    server_rows::{RowsOf, ServerRows},
    subnet::Subnet,
    summary::SwarmResults,
    survey::{SignedSurvey, SurveyId, SurveyRef},
    time::Millis,
    url::{Host, PageUrl},
    view::{
        ConfirmedAddress, DeclaredLostView, LeaveView, MemberView, MoveView, PinView, ReachState, ReachabilityView, RefusedSeed, SeedView,
        Span, StatusView, StoreView, Subject, WhyView,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Display,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Failed connections to other members that are remembered for people.
const MAX_CONNECTION_ERRORS: usize = 5;

/// Refused peers that are remembered.
const MAX_REFUSED: usize = 64;

/// Addresses of this access point that are remembered: a machine whose network comes and goes gets new ones all the time.
const MAX_ADDRESSES: usize = 16;

/// A store that has been at one action for so long is told of: its disk stands still, or is very slow.
const SILENT: Duration = Duration::from_millis(300);

/// With a full queue to the store and an action that takes so long, queries wait no longer for what the loop does not take in.
const GATED: Duration = Duration::from_millis(50);

/// What the process knows and the crawler does not.
pub struct QueryHandler {
    user_agent: String,
    pace: Pace,
    contact: Option<String>,
    denied: nearcrawl_core::crawl::scope::Scope,
    /// The number of the last question about an opt-out.
    last_opt_out: u64,
    /// The number of the last certificate or expulsion that people gave.
    last_admission: u64,
    policy: AddressPolicy,
    swarm: String,
    addresses: Vec<String>,
    reachability: Reachability,
    /// Whether the operator says where others reach it.
    advertised: bool,
    connection_errors: VecDeque<String>,
    /// Peers that were refused, and why: at most [`MAX_REFUSED`].
    refused: BTreeMap<AccessPoint, String>,
    deferred: DeferredQueries,
    /// As it was measured last, and when.
    disk: Option<(StoreView, Instant)>,
    token_file: Option<String>,
    /// Subnets that the operator keeps here.
    pinned: BTreeSet<Subnet>,
    allowance: AllowanceView,
}

/// What the loop has to do for a query.
pub enum Action {
    /// Give this to the crawler.
    Handle(Event),
    /// Store these starting points, then give them to the crawler and answer.
    AddSeeds {
        /// The starting points, in canonical form.
        urls: Vec<PageUrl>,
        /// Where the answer goes.
        reply: Reply<SeedView>,
    },
    /// Pause, for so long if that is said.
    Pause {
        /// For how long.
        length: Option<Millis>,
        /// Where the answer goes.
        reply: Reply<PauseReply>,
    },
    /// Go on after a pause.
    Resume(Reply<PauseReply>),
    /// Tell the members, with those that parted lately.
    TellMembers(Reply<Vec<MemberView>>),
    /// Keep a subnet here, or let it move again.
    Pin {
        /// The subnet.
        subnet: Subnet,
        /// Whether it is to stay.
        pinned: bool,
        /// Where the answer goes.
        reply: Reply<PinView>,
    },
    /// Tell how it is.
    TellStatus(Reply<StatusView>),
    /// Tell the totals.
    TellTotals(Reply<SwarmResults>),
    /// Read pages or links that a member has on record, or ask it for them.
    Export {
        /// The member: this one, or another.
        of: AccessPoint,
        /// Which rows.
        query: ExportQuery,
        /// Where the answer goes.
        reply: Reply<Result<ExportedRows, String>>,
    },
    /// Ask a member why something is crawled by whom.
    AskWhy {
        /// What is asked about.
        subject: Subject,
        /// The member.
        of: AccessPoint,
        /// Where the answer goes.
        reply: Reply<Result<WhyView, String>>,
    },
    /// Fetch bytes from a member and discard them.
    Measure {
        /// The member.
        of: AccessPoint,
        /// Whether it is reached through a third one.
        is_relayed: bool,
        /// Of this edition of the hierarchy.
        edition: Edition,
        /// How many.
        bytes: u64,
        /// Where the answer goes.
        reply: MeasureReply,
    },
    /// Ask all members whether they made such requests.
    AskRequests {
        /// Which.
        query: RequestsQuery,
        /// Where the answer goes.
        reply: Reply<RequestsAnswer>,
    },
    /// Ask a member what its probes of a survey's sample came to.
    AskProbes {
        /// The survey.
        survey: SurveyId,
        /// The member.
        of: AccessPoint,
        /// Where the answer goes.
        reply: ProbesReply,
    },
    /// Tell the servers that a member has on record, or their runs, or ask it for them.
    TellRows {
        /// Which of both.
        rows: RowsOf,
        /// The member: this one, or another.
        of: AccessPoint,
        /// Those behind this one.
        after: Option<Host>,
        /// Where the answer goes.
        reply: Reply<Result<ServerRows, String>>,
    },
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl QueryHandler {
    /// At the daemon's start.
    pub fn new(config: &Config, secrets: Option<SwarmSecrets>) -> QueryHandler {
        QueryHandler {
            user_agent: config.user_agent(),
            pace: config.pace(),
            contact: config.contact.clone(),
            last_opt_out: 0,
            last_admission: 0,
            denied: crate::node::setup::scope(config),
            policy: crate::node::setup::policy(config),
            swarm: secrets.map(|secrets| hex(&secrets.swarm)).unwrap_or_default(),
            addresses: Vec::new(),
            reachability: Reachability::default(),
            advertised: !config.swarm.advertise.is_empty(),
            connection_errors: VecDeque::new(),
            refused: BTreeMap::new(),
            deferred: DeferredQueries::default(),
            disk: None,
            token_file: None,
            pinned: BTreeSet::new(),
            allowance: AllowanceView::default(),
        }
    }

    /// An address to be reached at. Beyond [`MAX_ADDRESSES`] the oldest is forgotten.
    pub fn listening(&mut self, address: &str) {
        self.addresses.retain(|known| known != address);
        self.addresses.push(address.to_owned());
        if self.addresses.len() > MAX_ADDRESSES {
            self.addresses.remove(0);
        }
    }

    /// The operator changed which hosts are in scope and which are denied.
    pub fn rules_changed(&mut self, config: &Config) {
        self.denied = crate::node::setup::scope(config);
        self.policy = AddressPolicy { seen_at: self.policy.seen_at.clone(), ..crate::node::setup::policy(config) };
    }

    /// The addresses of this access point that its configuration does not have, as they are known now and later.
    pub fn own_addresses(&mut self, own: SeenAt) {
        self.policy.seen_at = own;
    }

    /// Where we listen.
    #[cfg(test)]
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Where the token is by which changes are allowed.
    pub fn token_is_in(&mut self, file: Option<&Path>) {
        self.token_file = file.map(|file| file.display().to_string());
    }

    /// How others get to us has changed.
    pub fn reachable(&mut self, how: Reachability) {
        self.reachability = how;
    }

    /// How others get to us.
    pub fn reachability(&self) -> &Reachability {
        &self.reachability
    }

    /// The same for people.
    pub fn reachability_view(&self, counters: Option<&SwarmCounters>) -> ReachabilityView {
        let how = &self.reachability;
        let state = match how.reached {
            Reached::Unknown => ReachState::Unknown,
            Reached::Public => ReachState::Public,
            Reached::Behind => ReachState::BehindNat,
        };
        let counted = |counter: fn(&SwarmCounters) -> &AtomicU64| counters.map_or(0, |all| counter(all).load(Ordering::Relaxed));
        ReachabilityView {
            state,
            state_text: ReachabilityView::sentence(state, self.advertised, &how.relays),
            addresses: how.addresses.clone(),
            confirmed: how
                .confirmed
                .iter()
                .map(|(address, by)| ConfirmedAddress { address: address.clone(), confirmed_by: by.clone() })
                .collect(),
            relays: how.relays.clone(),
            own_addresses: how.own.clone(),
            relays_for_others: how.relays_for_others,
            members_connected: counted(|all| &all.connected),
            members_relayed: how.relayed.clone(),
            circuits: counted(|all| &all.circuits),
            dialled_back: counted(|all| &all.dialled_back),
            holes_found: counted(|all| &all.holes_found),
            holes_not_found: counted(|all| &all.holes_not_found),
        }
    }

    /// The sizes on disk were measured.
    pub fn measured(&mut self, disk: StoreView) {
        self.disk = Some((disk, Instant::now()));
    }

    /// How the operator's allowance stands.
    pub fn allowance(&mut self, allowance: AllowanceView) {
        self.allowance = allowance;
    }

    /// A swarm admitted this access point.
    pub fn admitted(&mut self, secrets: SwarmSecrets) {
        self.swarm = hex(&secrets.swarm);
        self.connection_errors.clear();
    }

    /// A member is connected: what went wrong before is over.
    pub fn connected(&mut self) {
        self.connection_errors.clear();
    }

    /// Another member could not be reached, or refused us. It is dialled again and again, so the log has each reason once.
    pub fn connection_failed(&mut self, what: String) {
        if self.connection_errors.contains(&what) {
            return tracing::debug!("{what}");
        }
        tracing::warn!("{what}");
        self.connection_errors.push_back(what);
        while self.connection_errors.len() > MAX_CONNECTION_ERRORS {
            self.connection_errors.pop_front();
        }
    }

    /// We refused a peer, which may come again and again: the log has the same reason once.
    pub fn refused(&mut self, peer: AccessPoint, reason: &dyn Display) {
        let (short, reason) = (peer.short(), reason.to_string());
        if self.refused.get(&peer) == Some(&reason) {
            return tracing::debug!("{short} was refused: {reason}");
        }
        tracing::warn!("{short} was refused: {reason}");
        if self.refused.len() >= MAX_REFUSED {
            self.refused.clear();
        }
        self.refused.insert(peer, reason);
    }

    /// Answers a query, or says what has to be done for it. All that can be asked is answered here.
    pub fn answer(&mut self, query: Query, crawler: &Crawler, executor: &Executor) -> Option<Action> {
        // A caller that has stopped waiting is no error.
        match query {
            Query::Status(reply) => return Some(Action::TellStatus(reply)),
            Query::Events(reply) => drop(reply.send(crawler.view().events())),
            Query::Members(reply) => return Some(Action::TellMembers(reply)),
            Query::Ownership { after, limit, reply } => drop(reply.send(crawler.view().ownership(after, limit))),
            Query::Results(reply) => return Some(Action::TellTotals(reply)),
            Query::Distinct(reply) => {
                drop(reply.send(crawler.view().distinct()));
                return Some(Action::Handle(Event::DistinctWanted));
            }
            Query::CrossTable { by, reply } => {
                if !self.deferred.has_room() {
                    drop(reply.send(crawler.view().cross_table(by)));
                    return None;
                }
                self.deferred.wait_for_table(by, reply);
                return Some(Action::Handle(Event::CrossTableWanted(by)));
            }
            Query::Servers { after, limit, reply } => drop(reply.send(crawler.view().servers(after.as_ref(), limit))),
            Query::ServerOwners(reply) => drop(reply.send(crawler.view().server_owners())),
            Query::ServerRows { rows, of, after, reply } => return Some(Action::TellRows { rows, of, after, reply }),
            Query::WhyAt { subject, of, reply } => return self.answer_by(of, subject, reply, (crawler, executor)),
            Query::RequestsMade { query, reply } => return Some(Action::AskRequests { query, reply }),
            Query::Export { of, query, reply } => return Some(Action::Export { of, query, reply }),
            Query::Why { subject, reply } => return self.answer_why(subject, reply, (crawler, executor)),
            Query::SurveyProbes { which, of, reply } => return probes(crawler, &which, of, reply),
            query @ (Query::Surveys(_) | Query::Survey { .. } | Query::MakeSurvey { .. } | Query::ChangeSurvey { .. }) => {
                return self.answer_surveys(query, crawler);
            }
            query @ (Query::Admission(_) | Query::GiveAdmission { .. } | Query::OptOuts(_) | Query::SayOptOut { .. }) => {
                return self.answer_statements(query, crawler);
            }
            Query::AddSeeds { urls, reply } => return Some(Action::AddSeeds { urls, reply }),
            Query::Measure { of, bytes, reply } => return self.measure(of, bytes, reply, crawler),
            Query::Move { subnet, to, reply } => return self.move_subnet(crawler, subnet, to, reply),
            Query::Pin { subnet, pinned, reply } => return pin(crawler, subnet, pinned, reply),
            Query::DeclareLost { members, reply } => return Some(declare_lost(crawler, members, reply)),
            Query::Pause { length, reply } => return Some(Action::Pause { length, reply }),
            Query::Resume(reply) => return Some(Action::Resume(reply)),
            Query::Leave(reply) => {
                let _ = reply.send(LeaveView { released: crawler.view().subnets_held() as u64 });
                return Some(Action::Handle(Event::Leave));
            }
        }
        None
    }

    /// How it is.
    pub fn status(&self, crawler: &Crawler, executor: &Executor) -> StatusView {
        let is_ours = |subnet: &Subnet| crawler.view().may_move(subnet, &crawler.me()) != Err(Immovable::NotOurs);
        let pinned_subnets = self.pinned.iter().copied().filter(is_ours).collect();
        StatusView { pinned_subnets, ..crawler.view().status(self.outside(executor)) }
    }

    /// The operator keeps these subnets here.
    pub fn pinned(&mut self, subnets: BTreeSet<Subnet>) {
        self.pinned = subnets;
    }

    /// The explanation, with what is said of a subnet of ours that is pinned.
    fn why(&self, crawler: &Crawler, executor: &Executor, subject: &Subject) -> WhyView {
        let mut view = why(crawler, &self.policy, executor, subject);
        let pinned = view.ownership.as_ref().map(|owned| owned.subnet).filter(|subnet| view.owner_is_me && self.pinned.contains(subnet));
        if let Some(subnet) = pinned {
            view.answer_text += &format!(" It is pinned here: neither nearness nor load moves it until `nearcrawl move --unpin {subnet}`.");
        }
        view
    }

    /// Why something is crawled by whom. For a host that is new here its steward is asked first.
    fn answer_why(&mut self, subject: Subject, reply: Reply<WhyView>, (crawler, executor): (&Crawler, &Executor)) -> Option<Action> {
        let waits = self.deferred.has_room() && !is_gated(executor);
        if let Some(host) = crawler.view().unlocated(&subject, &self.policy).filter(|_| waits) {
            self.deferred.wait(subject, reply);
            return Some(Action::Handle(Event::Wanted(host)));
        }
        drop(reply.send(self.why(crawler, executor, &subject)));
        None
    }

    /// The same by what a member knows.
    fn answer_by(
        &self,
        of: AccessPoint,
        subject: Subject,
        reply: Reply<Result<WhyView, String>>,
        (crawler, executor): (&Crawler, &Executor),
    ) -> Option<Action> {
        if of != crawler.view().me() && crawler.view().is_alive(&of) {
            return Some(Action::AskWhy { subject, of, reply });
        }
        let is_me = of == crawler.view().me();
        let said = if is_me { Ok(self.why(crawler, executor, &subject)) } else { Err(format!("{} does not answer", of.short())) };
        drop(reply.send(said));
        None
    }

    /// A subnet is handed over; says whether that has begun.
    fn move_subnet(&self, crawler: &Crawler, subnet: Subnet, to: AccessPoint, reply: Reply<MoveView>) -> Option<Action> {
        if self.pinned.contains(&subnet) {
            let refused_text = Some(format!("it is pinned here; `nearcrawl move --unpin {subnet}` lets it go"));
            drop(reply.send(MoveView { subnet, to, refused_text }));
            return None;
        }
        let refused_text = crawler.view().may_move(&subnet, &to).err().map(|why| why.to_string());
        drop(reply.send(MoveView { subnet, to, refused_text }));
        Some(Action::Handle(Event::Move { subnet, to }))
    }

    /// Has the connection to a member measured, if it is alive.
    fn measure(&self, of: AccessPoint, bytes: u64, reply: MeasureReply, crawler: &Crawler) -> Option<Action> {
        let why_not = if of == crawler.view().me() {
            MeasureError::Oneself
        } else if !crawler.view().is_alive(&of) {
            MeasureError::Silent
        } else if let Some((edition, _)) = crawler.view().editions() {
            let is_relayed = self.reachability.relayed.contains(&of);
            return Some(Action::Measure { of, is_relayed, edition, bytes, reply });
        } else {
            MeasureError::Starting
        };
        drop(reply.send(Err(why_not)));
        None
    }

    /// The same for what is asked and said of opt-outs, and of who may be a member.
    fn answer_statements(&mut self, query: Query, crawler: &Crawler) -> Option<Action> {
        match query {
            Query::Admission(reply) => drop(reply.send(crawler.view().admission())),
            Query::GiveAdmission { signed, reply } => return self.give_admission(signed, reply),
            Query::OptOuts(reply) => drop(reply.send(crawler.view().opt_outs())),
            Query::SayOptOut { key, stops, reply } => return self.say_opt_out(key, stops, reply),
            _ => {}
        }
        None
    }

    /// The same for what is asked and said of surveys.
    fn answer_surveys(&mut self, query: Query, crawler: &Crawler) -> Option<Action> {
        match query {
            Query::Surveys(reply) => drop(reply.send(crawler.view().surveys())),
            Query::Survey { which, reply } => drop(reply.send(crawler.view().survey(&which))),
            Query::MakeSurvey { plan, reply } => return self.make_survey(crawler.view().new_survey(*plan), crawler, reply),
            Query::ChangeSurvey { name, state, reply } => {
                return self.make_survey(crawler.view().changed_survey(&name, state), crawler, reply);
            }
            _ => {}
        }
        None
    }

    /// Has a certificate or an expulsion taken in; the answer follows when it is stored.
    fn give_admission(&mut self, signed: Box<SignedAdmission>, reply: AdmissionReply) -> Option<Action> {
        if !self.deferred.has_room() {
            let _ = reply.send(Err("the daemon is busy: ask again".to_owned()));
            return None;
        }
        self.last_admission += 1;
        self.deferred.wait_for_admission(self.last_admission, reply);
        Some(Action::Handle(Event::Admission(AdmissionEvent::Given { number: self.last_admission, signed })))
    }

    /// Has a proof looked for; the answer follows when what comes of it is stored.
    fn say_opt_out(&mut self, key: OptOutKey, stops: bool, reply: OptOutReply) -> Option<Action> {
        if let Some(busy) = self.is_busy() {
            let _ = reply.send(Err(busy));
            return None;
        }
        let number = self.wait_for_proof(reply);
        Some(Action::Handle(Event::OptOut(OptOutEvent::Asked { number, key, stops })))
    }

    /// The same because a program asks that is no member; what it is not busy for waits.
    pub fn opt_out_of_reader(&mut self, key: OptOutKey, stops: bool, reply: OptOutReply) -> Event {
        let number = self.wait_for_proof(reply);
        Event::OptOut(OptOutEvent::AskedByReader { number, key, stops })
    }

    fn wait_for_proof(&mut self, reply: OptOutReply) -> u64 {
        self.last_opt_out += 1;
        self.deferred.wait_for_proof(self.last_opt_out, reply);
        self.last_opt_out
    }

    /// Why no further question may wait, if none may.
    pub fn is_busy(&self) -> Option<String> {
        (!self.deferred.has_room()).then(|| "the daemon is busy: ask again".to_owned())
    }

    /// Has a survey of our own stored; the answer follows when it is.
    fn make_survey(&mut self, signed: Result<SignedSurvey, String>, crawler: &Crawler, reply: SurveyReply) -> Option<Action> {
        let made = signed.and_then(|signed| {
            let survey = signed.read().map_err(|why| why.to_string())?;
            if self.deferred.has_room() { Ok((signed, survey)) } else { Err("the daemon is busy: ask again".to_owned()) }
        });
        match made {
            Ok((signed, survey)) => {
                let name = format!("{}@{}", survey.plan.name, crawler.me());
                self.deferred.wait_for_survey((name, survey.revision), reply);
                Some(Action::Handle(Event::Survey(SurveyEvent::Made(signed))))
            }
            Err(why) => {
                let _ = reply.send(Err(why));
                None
            }
        }
    }

    /// Answers the deferred queries that can be answered by now, or have waited long enough.
    pub fn settle(&mut self, crawler: &Crawler, executor: &Executor) {
        for (subject, reply) in self.deferred.settled(crawler, &self.policy, is_gated(executor)) {
            // A caller that has stopped waiting is no error.
            let _ = reply.send(why(crawler, &self.policy, executor, &subject));
        }
        for (by, reply) in self.deferred.gathered(crawler, is_gated(executor)) {
            let _ = reply.send(crawler.view().cross_table(by));
        }
        self.deferred.stored(crawler);
        self.deferred.looked(crawler);
        self.deferred.admitted(crawler);
    }

    /// What a member that asks is told of a subject: what is known here, without a look-up.
    pub fn explain(&self, subject: &str, crawler: &Crawler, executor: &Executor) -> Result<String, String> {
        let subject: Subject = subject.parse().map_err(|why| format!("{why}"))?;
        serde_json::to_string(&why(crawler, &self.policy, executor, &subject)).map_err(|why| why.to_string())
    }

    /// When deferred queries are to be looked at again.
    pub fn due(&self) -> Option<tokio::time::Instant> {
        self.deferred.due()
    }

    /// Which starting URLs are accepted, and why the others are refused.
    pub fn seeds(&self, urls: &[PageUrl], crawler: &Crawler) -> SeedView {
        let mut view = SeedView::default();
        for url in urls {
            let opted_out = || crawler.view().never_asked(&url.host());
            match self.seed_refusal(url).or_else(opted_out) {
                Some(why) => view.refused.push(RefusedSeed { url: url.to_string(), reason_text: why }),
                None => view.accepted += 1,
            }
        }
        view
    }

    /// Why a URL would be refused later, by what is known without a look-up of its host: the deny list, its port, an address as its host.
    pub fn seed_refusal(&self, url: &PageUrl) -> Option<String> {
        seed_refusal(&self.denied, &self.policy, url)
    }

    fn disk(&self, executor: &Executor) -> StoreView {
        let measured = self.disk.map(|(disk, at)| StoreView { age_ms: Some(millis(at.elapsed())), ..disk });
        StoreView { silent_for_ms: silent_for(executor), ..measured.unwrap_or_default() }
    }

    fn outside(&self, executor: &Executor) -> Outside {
        Outside {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            swarm: self.swarm.clone(),
            addresses: self.addresses.clone(),
            reachability: self.reachability_view(executor.swarm().map(SwarmHandle::counters)),
            contact: self.contact.clone(),
            user_agent: self.user_agent.clone(),
            pace: self.pace,
            connection_errors: self.connection_errors.iter().cloned().collect(),
            token_file: self.token_file.clone(),
            open_connections: executor.open_connections(),
            store: self.disk(executor),
            refusals: executor.refusals(),
            messages: executor.swarm().map(|swarm| swarm.counters().messages.table()).unwrap_or_default(),
            limits: executor.limits(),
            limit_reached: None,
            allowance: self.allowance.clone(),
            tasks: tasks::table(),
        }
    }
}

/// Why a URL would be refused later, by what is known without a look-up of its host: the deny list, its port, an address as its host.
pub fn seed_refusal(denied: &nearcrawl_core::crawl::scope::Scope, policy: &AddressPolicy, url: &PageUrl) -> Option<String> {
    if denied.denies(&url.host()) {
        return Some("the host is on this access point's deny list (crawl.deny_hosts, crawl.deny_tlds)".to_owned());
    }
    if !policy.ports.contains(&url.port()) {
        return Some(format!("{} (crawl.ports)", AddressError::Port(url.port())));
    }
    match policy.check_ip(url.host().address()?) {
        // Another member may well fetch from this machine, or from its neighbours.
        Ok(()) | Err(AddressError::Own | AddressError::OwnNetwork) => None,
        Err(AddressError::NoContact) => Some("no contact is configured, so only crawl.allow_ranges is crawled (contact)".to_owned()),
        Err(AddressError::Denied) => Some("the address is in a range that the configuration denies (crawl.deny_ranges)".to_owned()),
        Err(why) => Some(format!("{why}, which is not crawled unless crawl.allow_ranges has it")),
    }
}

/// For how long the store has not answered, if that is worth telling.
fn silent_for(executor: &Executor) -> Option<Millis> {
    let is_told = |silent: &Duration| *silent >= SILENT || is_gated(executor);
    Some(executor.store_silent_for()).filter(is_told).map(millis)
}

/// A subnet of ours is to stay, or may move again; any may that is not ours any more.
fn pin(crawler: &Crawler, subnet: Subnet, pinned: bool, reply: Reply<PinView>) -> Option<Action> {
    let not_ours = crawler.view().may_move(&subnet, &crawler.me()).err().filter(|why| *why == Immovable::NotOurs);
    let Some(why) = not_ours.filter(|_| pinned) else { return Some(Action::Pin { subnet, pinned, reply }) };
    drop(reply.send(PinView { subnet, pinned: false, refused_text: Some(why.to_string()) }));
    None
}

/// Members that are not alive are given up for good; says which are alive.
fn declare_lost(crawler: &Crawler, members: Vec<AccessPoint>, reply: Reply<DeclaredLostView>) -> Action {
    let (alive, lost): (Vec<_>, Vec<_>) = members.into_iter().partition(|member| crawler.view().is_alive(member));
    drop(reply.send(DeclaredLostView { lost: lost.clone(), alive }));
    Action::Handle(Event::DeclareLost(lost))
}

/// What our probes for a survey came to; those of another member are asked for.
fn probes(crawler: &Crawler, which: &SurveyRef, of: AccessPoint, reply: ProbesReply) -> Option<Action> {
    let view = crawler.view();
    let silent = || NoProbesError::NoAnswer(format!("{} does not answer", of.short()));
    let sampled = |survey| view.survey_probes(&survey).map(|probes| (survey, probes));
    let without = || NoProbesError::NoSample(format!("the survey {which} was made without --probe: no member probes servers for it"));
    let answer = match view.survey_called(which).map(sampled) {
        Err(why) => Err(NoProbesError::NoSample(why)),
        Ok(None) => Err(without()),
        Ok(Some((_, ours))) if of == view.me() => Ok(ours),
        Ok(Some((survey, _))) if view.is_alive(&of) => return Some(Action::AskProbes { survey, of, reply }),
        Ok(Some(_)) => Err(silent()),
    };
    // A caller that has stopped waiting is no error.
    let _ = reply.send(answer);
    None
}

/// Whether the loop takes in nothing that makes work for the store, because that stands still: nobody knows for how long.
fn is_gated(executor: &Executor) -> bool {
    executor.behind() > 0 && executor.store_silent_for() >= GATED
}

/// The explanation; if the store does not answer, that it lacks what only the store knows.
fn why(crawler: &Crawler, policy: &AddressPolicy, executor: &Executor, subject: &Subject) -> WhyView {
    let mut view = crawler.view().why(subject, policy);
    view.store_silent_for_ms = silent_for(executor);
    view.requests_text = view.address.and_then(|address| executor.requests_lately(address));
    if let Some(silent) = view.store_silent_for_ms {
        let silent = Span(silent);
        view.answer_text += &format!(" The disk of this access point has not answered for {silent}: this is what is known without it.");
    }
    view
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_addresses_are_kept_each_once() {
        let mut handler = QueryHandler::new(&Config::default(), None);
        for number in (0..MAX_ADDRESSES + 3).chain([5]) {
            handler.listening(&format!("/ip4/192.0.2.{number}/tcp/4817"));
        }
        assert_eq!(handler.addresses().len(), MAX_ADDRESSES);
        assert_eq!(handler.addresses()[0], "/ip4/192.0.2.3/tcp/4817");
        assert_eq!(handler.addresses()[MAX_ADDRESSES - 1], "/ip4/192.0.2.5/tcp/4817", "it came again");
    }

    #[test]
    fn what_would_be_refused_later_is_refused_as_a_seed() {
        let text = "contact = \"me@museum.ke\"\n[crawl]\nports = [80, 8080]\nallow_ranges = [\"127.16.0.0/16\"]\ndeny_hosts = [\"bad.test\"]\ndeny_ranges = [\"198.51.100.0/24\"]\n";
        let config = Config::parse(text, Path::new("node.toml")).unwrap();
        let handler = QueryHandler::new(&config, None);
        let refusal = |url: &str| handler.seed_refusal(&PageUrl::parse(url).unwrap());
        for fine in ["http://a.test/", "http://a.test:8080/", "http://127.16.3.1/", "http://9.9.9.9/"] {
            assert_eq!(refusal(fine), None, "{fine}");
        }
        for (url, says) in [
            ("http://a.test:9999/", "port 9999"),
            ("http://10.0.0.1/", "crawl.allow_ranges"),
            ("http://127.0.0.1/", "crawl.allow_ranges"),
            ("http://198.51.100.7/", "crawl.deny_ranges"),
            ("http://www.bad.test/", "crawl.deny_hosts"),
        ] {
            assert!(refusal(url).is_some_and(|why| why.contains(says)), "{url}: {:?}", refusal(url));
        }
        let anonymous = Config::parse("[crawl]\nallow_ranges = [\"127.16.0.0/16\"]\n", Path::new("node.toml")).unwrap();
        let handler = QueryHandler::new(&anonymous, None);
        let refusal = |url: &str| handler.seed_refusal(&PageUrl::parse(url).unwrap());
        assert!(refusal("http://9.9.9.9/").is_some_and(|why| why.contains("no contact is configured")), "{:?}", refusal("http://9.9.9.9/"));
        assert_eq!(refusal("http://127.16.3.1/"), None);
    }
}
