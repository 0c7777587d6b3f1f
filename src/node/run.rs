//! The loop of a daemon: one event at a time to the crawler, its commands to the executor, until it is stopped.

use crate::io::{
    store::Store,
    swarm::{Reachability, Swarm, SwarmCommand, SwarmEvent, SwarmHandle, SwarmSecrets},
    tasks,
};
use crate::node::{
    allowance::{self, OperatorAllowance},
    api::{Api, History, Local, Token},
    changes::Changes,
    clock,
    config::{Config, InUse, Readers},
    error::NodeError,
    executor::{Executor, Inbox},
    fault_injection::{FaultInjection, watch_tasks},
    hierarchy::snapshot_store::{Beginning, SnapshotStore},
    housekeeping::{Admitted, Chore, Done, Housekeeping},
    metrics::Metrics,
    opt_outs::reader_opt_outs::{self, ReaderOptOuts},
    query::{
        NoProbesError, Query, QueryHandle, Reply,
        handler::{Action, QueryHandler},
        seeding::Seeding,
    },
    readers::{self, Asker, public::Openness, relay},
    reload::{self, Reloads, Reread},
    requests::{request_notes::RequestNotes, request_record::RequestRecord, requests_made::Inquiry},
    setup::{self, WebClients},
    start_checks::StartChecks,
    state::{
        acquaintances::Acquaintances,
        keyfile::{self, NodeIdentity},
        persisted_state::{self, PersistedState, Place, StatePart, StatePartKind},
        pins::{Pin, Pins},
        told_totals::ToldTotals,
        write_behind::WriteBehind,
    },
    transfers::peer_transfers::PeerQuestion,
    visits::Visits,
};
use nearcrawl_core::{
    crawl::scope::{EverInScope, Scope},
    crawler::{Crawler, Settings},
    event::{AdmissionEvent, Command, Event},
};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    access_point::AccessPoint,
    address::AddressPolicy,
    address::DeniedRanges,
    admission::{Admission, SignedAdmission},
    exported::{ExportQuery, ExportedRows},
    ids::SiteNumber,
    ids::Ticket,
    message::{PublicRequest, PublicResponse, Request, Response},
    opt_out::{OptOutKey, OptOutView},
    request_record::RequestsAnswer,
    requests_made::RequestsQuery,
    server_rows::{RowsOf, ServerRows},
    summary::SwarmResults,
    survey::{SurveyId, SurveyRef},
    survey_probes::SurveyProbes,
    time::Millis,
    url::{Host, PageUrl},
    view::{Liveness, RefusedSeed, SeedView, StoreView, Subject, counted},
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, oneshot, watch},
    time::{Instant, Interval, MissedTickBehavior, interval, sleep, timeout},
};

/// How often the bootstrap members are dialled while no member is connected.
const CALL_EVERY: Duration = Duration::from_secs(3);

/// How often it is looked whether the remembered members have changed.
const REMEMBER_EVERY: Duration = Duration::from_secs(5);

/// At its end the daemon waits so long for what is kept for the next start.
const KEEP_WITHIN: Duration = Duration::from_secs(5);

/// And so long for its connections to end.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);

/// With more commands than this outside of a full queue to the store the daemon ends: the disk does not come back.
const MAX_BEHIND: usize = 1 << 16;

/// The pause after which a member is to ask again if the store is stalled, in milliseconds.
const COME_AGAIN: Millis = 1_000;

/// The daemon ends within this time after it was asked to stop, whatever happens.
const STOP_WITHIN: Duration = Duration::from_secs(40);

/// Remembered addresses that are dialled at a time; the next ones in the next turn.
const MAX_CALLED: usize = 64;

/// What was read again after SIGHUP and is not taken in yet.
const MAX_REREAD: usize = 4;

/// Events that are handled before the commands are carried out.
const MAX_AT_ONCE: usize = 64;

/// A running daemon.
struct Daemon {
    config: Config,
    identity: NodeIdentity,
    persisted: PersistedState,
    secrets: Option<SwarmSecrets>,
    snapshots: SnapshotStore,
    beginning: Beginning,
    housekeeping: Housekeeping,
    /// Whether secrets of a swarm that let us in are being stored.
    admitting: bool,
    /// Whether the sizes on disk are being measured, and the members stored.
    measuring: bool,
    keeping: bool,
    scope_writes: WriteBehind<EverInScope>,
    seeding: Seeding,
    allowance: OperatorAllowance,
    totals: ToldTotals,
    pins: Pins,
    acquaintances: Acquaintances,
    changes: Changes,
    crawler: Crawler,
    executor: Executor,
    handler: QueryHandler,
    connected: BTreeSet<AccessPoint>,
    /// Which of the remembered addresses is dialled next.
    called: usize,
    certain: VecDeque<Event>,
    finished: bool,
    fault: FaultInjection,
    reloads: Reloads,
    /// The ranges that nothing is sent to, as the clients hold them.
    denied: DeniedRanges,
    /// What the page shows of the configuration.
    settings: InUse,
    reader_opt_outs: ReaderOptOuts,
}

/// Runs a daemon with a configuration that was checked, until SIGTERM, Ctrl-C or `leave`.
pub async fn run(config: Config, checks: StartChecks, reloads: Reloads) -> Result<(), NodeError> {
    watch_tasks();
    let StartChecks { given, pre_shared_key, certificate, .. } = checks;
    let identity = NodeIdentity { certificate, ..keyfile::init(&config)? };
    let store = setup::store(&config)?;
    let snapshots = SnapshotStore::open(&config)?;
    let beginning = snapshots.begin(given, &config)?;
    let hierarchy = Arc::clone(&beginning.hierarchy);
    let persisted = recalled(&config, &store).await?;
    let secrets = known_secrets(&config, &store, &persisted).await?;
    let swarm_config = setup::swarm_config(&config, &identity, secrets, pre_shared_key, &hierarchy, persisted.incarnation);
    let (swarm, swarm_events) = Swarm::start(swarm_config, identity.seed)?;
    let local = local(&config, &reloads)?;
    let api = bound_api(&config, &local).await?;
    // Until a swarm has let us in there is no key; nothing is fetched before, so any will do.
    let provisional = secrets.map_or_else(setup::new_secrets, Ok)?;
    let web = setup::web_clients(&config, provisional.fingerprint_key)?;
    let (executor, inbox) = begun_executor(&config, web, &store, swarm, (&snapshots, identity.access_point)).await?;
    // Rows of the seen set from earlier starts are read back from the journals, under new site numbers.
    store.sites_drop_below(SiteNumber(persisted.incarnation << 32)).await?;
    let (claims, journal_sizes) = (store.claims_all().await?, store.journal_sizes().await?);
    let settings = Settings { member: secrets.is_some(), ..setup::settings(&config, joins(&config, &identity, &persisted)) };
    let mut crawler = setup::crawler(&identity, &persisted, provisional, claims, settings, Arc::clone(&hierarchy), clock::now());
    crawler.handle(clock::now(), Event::JournalsResized { growth: journal_sizes });
    crawler.handle(clock::now(), Event::AtHand(beginning.at_hand.clone()));
    introduce(&identity, &persisted, &hierarchy);
    let (housekeeping, chores) = Housekeeping::start(store, config.clone());
    let mut daemon = Daemon {
        handler: handler(&config, secrets, &executor, &local),
        denied: executor.denied_ranges(),
        allowance: OperatorAllowance::new(&config, persisted.allowance.clone(), executor.wire(), executor.swarm_meter()),
        acquaintances: Acquaintances::begin(persisted.acquaintances.as_deref()),
        pins: Pins::begin(persisted.pins.clone()),
        totals: ToldTotals::begin(persisted.totals.as_deref(), clock::now()),
        config,
        identity,
        persisted,
        secrets,
        snapshots,
        beginning,
        housekeeping,
        admitting: false,
        measuring: false,
        keeping: false,
        scope_writes: WriteBehind::default(),
        seeding: Seeding::default(),
        changes: Changes::default(),
        crawler,
        executor,
        connected: BTreeSet::new(),
        called: 0,
        certain: VecDeque::new(),
        finished: false,
        fault: FaultInjection::of_environment(),
        reloads,
        settings: local.settings,
        reader_opt_outs: ReaderOptOuts::new(Instant::now().into_std()),
    };
    daemon.serve(api, inbox, chores, swarm_events).await
}

/// What answers queries, with what it says of addresses and of the token.
fn handler(config: &Config, secrets: Option<SwarmSecrets>, executor: &Executor, local: &Local) -> QueryHandler {
    let mut handler = QueryHandler::new(config, secrets);
    handler.own_addresses(executor.own_addresses());
    handler.token_is_in(local.token.as_ref().map(Token::file));
    handler
}

/// What was remembered. What is in scope now was so from now on.
async fn recalled(config: &Config, store: &Store) -> Result<PersistedState, NodeError> {
    let mut persisted = persisted_state::recall(store, Place::of(&config.state_dir)).await?;
    if persisted.ever_in_scope.add(&setup::scope(config)) {
        persisted_state::keep(store, StatePart::EverInScope(persisted.ever_in_scope.clone())).await?;
    }
    Ok(persisted)
}

/// What carries commands out, with the snapshots, the log of requests and the record of them.
async fn begun_executor(
    config: &Config,
    web: WebClients,
    store: &Store,
    swarm: SwarmHandle,
    (snapshots, me): (&SnapshotStore, AccessPoint),
) -> Result<(Executor, Inbox), NodeError> {
    let (mut executor, inbox) = Executor::new(web, config.delegation.probe, store.clone(), Some(swarm));
    executor.look_at_interfaces(&config.crawl.allow_ranges);
    executor.look_up_own_names(&config.swarm.advertise);
    executor.set_snapshots(snapshots.clone());
    let record = RequestRecord::begin(store.clone(), me, config.log.requests).await?;
    let notes = setup::request_log(config)?.map(|log| RequestNotes { log, record: record.clone() });
    executor.set_request_notes(notes, config.log.requests.then(|| config.requests_directory()), (record, config.timers.copy_record));
    Ok((executor, inbox))
}

/// Whether there is any member to join. The settled members are remembered with this one among them: a swarm of one has no member to wait for.
fn joins(config: &Config, identity: &NodeIdentity, persisted: &PersistedState) -> bool {
    !config.swarm.bootstrap.is_empty() || persisted.members.iter().any(|member| *member != identity.access_point)
}

/// Requests to web servers that are under way.
fn transfers() -> u64 {
    tasks::table().iter().find(|task| task.name == "fetch").map_or(0, |task| task.running)
}

/// The first line of its log.
fn introduce(identity: &NodeIdentity, persisted: &PersistedState, hierarchy: &Hierarchy) {
    let (me, start, subnets) = (identity.access_point, persisted.incarnation, counted(hierarchy.len(), "subnet"));
    tracing::info!("access point {me}, start number {start}, {subnets} in the hierarchy");
}

/// What the API has to know of this machine.
fn local(config: &Config, reloads: &Reloads) -> Result<Local, NodeError> {
    let token = Token::begin(&config.state_dir)
        .map_err(|why| NodeError::of_file(&config.state_dir, format!("the token of the API cannot be written there: {why}"), &why))?;
    let requests = config.log.requests.then(|| config.requests_directory());
    let (settings, visits) = (InUse::of(&reloads.text()), Visits::by(config));
    let history = History::begin(&config.state_dir);
    Ok(Local { token: Some(token), requests, settings, visits, history, ..Local::default() })
}

/// The API, bound but not served yet; none if it is switched off.
async fn bound_api(config: &Config, local: &Local) -> Result<Option<Api>, NodeError> {
    match config.api.listen {
        Some(listen) => Ok(Some(Api::bind(listen).await?.with(local.clone()))),
        None => Ok(None),
    }
}

/// The secrets of the swarm that it is in; of a new one if it is in none and shall join none.
async fn known_secrets(config: &Config, store: &Store, persisted: &PersistedState) -> Result<Option<SwarmSecrets>, NodeError> {
    match persisted.secrets {
        None if config.swarm.bootstrap.is_empty() => found_swarm(store).await.map(Some),
        known => Ok(known),
    }
}

/// Makes the secrets of a new swarm and keeps them.
async fn found_swarm(store: &Store) -> Result<SwarmSecrets, NodeError> {
    let new = setup::new_secrets()?;
    persisted_state::keep_secrets(store, &new).await?;
    Ok(new)
}

impl Daemon {
    async fn serve(
        &mut self,
        api: Option<Api>,
        inbox: Inbox,
        chores: mpsc::Receiver<Done>,
        swarm: mpsc::Receiver<SwarmEvent>,
    ) -> Result<(), NodeError> {
        self.pinned();
        let (queries, questions) = QueryHandle::new();
        let (stop_api, stopped) = watch::channel(false);
        let serving = api.map(|api| {
            tracing::info!("the page and the API are at http://{}/", api.address());
            tokio::spawn(api.keep_serving(queries.clone(), Arc::new(Metrics::new()), stopped))
        });
        let ended = self.live(inbox, chores, swarm, questions).await;
        drop(stop_api);
        if let Some(serving) = serving {
            let _ = timeout(Duration::from_secs(2), serving).await;
        }
        ended
    }

    /// The loop: one arm for each thing that is waited for, and before each wait all that is ordered is carried out.
    async fn live(
        &mut self,
        mut inbox: Inbox,
        mut chores: mpsc::Receiver<Done>,
        mut swarm: mpsc::Receiver<SwarmEvent>,
        mut queries: mpsc::Receiver<Query>,
    ) -> Result<(), NodeError> {
        let failed = |_| NodeError::Ended("signal handling");
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let [mut call, mut remember, mut watchdog, mut look] =
            [CALL_EVERY, REMEMBER_EVERY, watchdog_every(), allowance::LOOK_EVERY].map(every);
        // Before anything is asked of a server.
        self.look_at_allowance();
        let (tell_reread, mut reread) = mpsc::channel(MAX_REREAD);
        let mut stop_at: Option<Instant> = None;
        if self.secrets.is_some() {
            self.seed_again();
        }
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
        loop {
            self.carry_out();
            self.handler.settle(&self.crawler, &self.executor);
            if self.finished {
                break;
            }
            if self.executor.behind() > MAX_BEHIND {
                return Err(NodeError::StoreBehind(self.executor.behind()));
            }
            let wait = Duration::from_millis(self.crawler.wake_at().since(clock::now().moment));
            tokio::select! {
                event = inbox.events.recv(), if self.executor.behind() == 0 => {
                    let event = event.ok_or(NodeError::Ended("a task"))?;
                    self.hear(event);
                    for _ in 0..MAX_AT_ONCE {
                        let Ok(event) = inbox.events.try_recv() else { break };
                        self.hear(event);
                    }
                }
                told = inbox.outcomes.recv() => {
                    let (outcome, _turn) = told.ok_or(NodeError::Ended("the store queue"))?;
                    if let Some(event) = outcome? {
                        self.hear(event);
                    }
                }
                () = self.executor.room(), if self.executor.behind() > 0 => self.executor.store_queue().catch_up(),
                // Events after the admission wait until the secrets are stored.
                event = swarm.recv(), if !self.admitting => self.swarm_said(event.ok_or(NodeError::Ended("the swarm"))?),
                done = chores.recv() => self.chore_done(done.ok_or(NodeError::Ended("housekeeping"))?)?,
                () = until(self.seeding.due()) => self.answer_late_seeds(),
                // Before the next wait the queries are looked at again.
                () = until(self.handler.due()) => {}
                Some(question) = inbox.transfers.recv() => self.ask_peer(question),
                // What people say while the secrets are stored waits for the crawler that begins anew then.
                Some(query) = queries.recv(), if !self.admitting => self.answer(query),
                _ = sleep(wait) => self.hear(Event::Tick),
                _ = call.tick() => self.call(),
                _ = remember.tick() => self.remember(),
                _ = look.tick() => {
                    self.look_at_allowance();
                    self.tell_changes();
                }
                () = self.allowance.running_out() => self.look_at_allowance(),
                () = until(self.allowance.ends().map(Instant::from)) => self.look_at_allowance(),
                _ = watchdog.tick() => {
                    let _ = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]);
                }
                () = self.reloads.next() => self.look_again(&tell_reread),
                Some(reread) = reread.recv() => self.take_in(reread),
                _ = terminate.recv() => stop_at = self.stop(stop_at),
                _ = interrupt.recv() => stop_at = self.stop(stop_at),
                () = until(stop_at) => {
                    tracing::warn!("stopping is cut short, after 40 s or by a second signal; pages that are not recorded will be fetched again");
                    break;
                }
            }
        }
        self.end(&mut chores, &mut swarm).await;
        Ok(())
    }

    /// The loop has ended: keeps what is not kept yet, and closes everything.
    async fn end(&mut self, chores: &mut mpsc::Receiver<Done>, swarm: &mut mpsc::Receiver<SwarmEvent>) {
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
        self.remember();
        let _ = timeout(KEEP_WITHIN, self.chores_done(chores)).await;
        // The last messages (farewells, released claims) still have to be sent.
        sleep(Duration::from_millis(300)).await;
        self.executor.tell(SwarmCommand::Stop);
        // The last bytes of a connection are counted when it ends: that is before it is stored how many there were.
        let (web_closed, swarm_ended) = (self.executor.close_web(), async { while swarm.recv().await.is_some() {} });
        let _ = timeout(CLOSE_WITHIN, async { tokio::join!(web_closed, swarm_ended) }).await;
        let due = self.allowance.end(clock::now().wall);
        self.keep(due.map(Box::new).map(StatePart::Allowance));
        let _ = timeout(KEEP_WITHIN, self.chores_done(chores)).await;
        self.executor.rest().await;
        tracing::info!("stopped");
    }

    fn hear(&mut self, event: Event) {
        let rows = if let Event::Recovered { bytes, .. } = &event { *bytes } else { 0 };
        self.crawler.handle(clock::now(), event);
        self.executor.recovered(rows, self.crawler.view().recovered_bytes());
        self.fault.strike(&self.crawler);
    }

    /// Passes the commands to the executor; events that follow from them at once go back to the crawler.
    fn carry_out(&mut self) {
        loop {
            while let Some(command) = self.crawler.next_command() {
                self.finished |= matches!(command, Command::Finished);
                if let Command::Explain { ticket, subject } = command {
                    let said = self.handler.explain(&subject, &self.crawler, &self.executor);
                    self.certain.push_back(Event::Explained { ticket, said });
                    continue;
                }
                self.certain.extend(self.executor.perform(command));
            }
            match self.certain.pop_front() {
                Some(event) => self.hear(event),
                None => break,
            }
        }
    }

    /// SIGHUP: the operator may have changed the rules on hosts, put another hierarchy where the configuration names one, or another
    /// certificate into the state directory. The rest of the configuration is read at the next start.
    fn look_again(&self, tell: &mpsc::Sender<Reread>) {
        let known = self.crawler.view().editions().map(|(_, known)| known);
        self.reloads.read(&self.config, known, self.snapshots.clone(), tell.clone());
    }

    /// Takes in what was read again.
    fn take_in(&mut self, reread: Reread) {
        match reread {
            Reread::Hierarchy(edition, hierarchy) => self.hear(Event::Given { edition, hierarchy }),
            Reread::Certificate(signed) => self.renew(*signed),
            Reread::Rules(rules, text) => {
                self.settings.adopt(&text, reload::is_rule);
                let before = setup::scope(&self.config);
                reload::adopt(&mut self.config, &rules.0, &rules.1);
                let scope = setup::scope(&self.config);
                if scope == before {
                    return tracing::info!("SIGHUP: the rules on hosts have not changed");
                }
                tracing::info!("SIGHUP: other rules on hosts hold from now on: {}", reload::in_words(&self.config));
                self.denied.replace(self.config.crawl.deny_ranges.clone());
                self.handler.rules_changed(&self.config);
                if self.persisted.ever_in_scope.add(&scope) {
                    self.scope_writes.put(self.persisted.ever_in_scope.clone());
                    self.keep_scope();
                }
                let ever = self.persisted.ever_in_scope.clone();
                self.hear(Event::Scope(Box::new(Scope { ever, ..scope })));
            }
        }
    }

    /// A certificate is in the state directory: if it is another one, and made out to this access point, it is shown from now on.
    fn renew(&mut self, signed: SignedAdmission) {
        if self.identity.certificate.as_ref() == Some(&signed) {
            return;
        }
        // As at a start: also a daemon that asks nobody for a certificate shows its own, to those that ask.
        let asked = self.config.admission.rule.swarm;
        let root = asked.map_or_else(|| signed.read().map(|statement| statement.swarm()), Ok);
        let certificate = match root.and_then(|root| signed.open(&root)) {
            Ok(Admission::Certificate(one)) if one.expires <= clock::now().wall => {
                return tracing::error!("SIGHUP: the certificate ended {}, and the one before is shown", one.expires);
            }
            Ok(Admission::Certificate(one)) if one.member == self.identity.access_point => one,
            Ok(Admission::Certificate(one)) => {
                return tracing::error!("SIGHUP: the certificate is made out to {}, and the one before is shown", one.member);
            }
            Ok(Admission::Expulsion(_)) => return tracing::error!("SIGHUP: an expulsion is no certificate, and the one before is shown"),
            Err(why) => return tracing::error!("SIGHUP: the certificate does not count, and the one before is shown: {why}"),
        };
        if let Some(why) = self.crawler.view().replaced_certificate(&signed) {
            return tracing::error!("SIGHUP: the certificate does not count, and the one before is shown: {why}");
        }
        tracing::info!("SIGHUP: another certificate is shown to members from now on, until {}", certificate.expires);
        self.identity.certificate = Some(signed.clone());
        self.executor.tell(SwarmCommand::Show(Box::new(signed.clone())));
        self.shown(Some(Box::new(signed)));
    }

    /// The first request to stop begins it; a second one ends it.
    fn stop(&mut self, stopping: Option<Instant>) -> Option<Instant> {
        if stopping.is_some() {
            return Some(Instant::now());
        }
        tracing::info!("stopping: requests under way are finished, and what they brought is stored and replicated");
        self.hear(Event::Drain);
        Some(Instant::now() + STOP_WITHIN)
    }

    /// Dials the known members while none is connected: those of the configuration, and some of the others in turn.
    fn call(&mut self) {
        if self.connected.is_empty() {
            let (next, remembered) = in_turn(&self.persisted.addresses, self.called, MAX_CALLED);
            self.called = next;
            for address in self.config.swarm.bootstrap.iter().chain(remembered) {
                self.executor.tell(SwarmCommand::Dial { address: address.clone() });
            }
        }
    }

    /// Has the disk measured, and the members and their addresses kept for the next start if they have changed.
    fn remember(&mut self) {
        self.executor.look_at_interfaces(&self.config.crawl.allow_ranges);
        self.executor.look_up_own_names(&self.config.swarm.advertise);
        self.executor.replicas(self.crawler.view().replicas());
        if !self.measuring {
            self.measuring = self.housekeeping.give(Chore::Measure);
        }
        let members = self.crawler.view().settled_members();
        let addresses = self.crawler.view().member_addresses();
        if !self.keeping && (members != self.persisted.members || addresses != self.persisted.addresses) {
            self.keeping = self.housekeeping.give(Chore::Members { members, addresses });
        }
        self.keep_scope();
    }

    /// Has what was ever in scope stored, if it is not.
    fn keep_scope(&mut self) {
        let due = self.scope_writes.next();
        self.keep(due.map(StatePart::EverInScope));
    }

    /// Has a part of the state stored for the next start, if it is due. Where there is no room for the chore that has failed.
    fn keep(&mut self, due: Option<StatePart>) {
        let Some(part) = due else { return };
        let kind = part.kind();
        if !self.housekeeping.give(Chore::Keep(part)) {
            self.kept(kind, Err("the disk does not answer".to_owned()));
        }
    }

    /// A part of the state was stored, or could not be.
    fn kept(&mut self, part: StatePartKind, kept: Result<(), String>) {
        let is_stored = kept.is_ok();
        match part {
            StatePartKind::EverInScope => self.scope_writes.has_stored(is_stored),
            StatePartKind::Acquaintances => self.acquaintances.has_stored(is_stored, clock::now().moment),
            StatePartKind::Totals => {
                let next = self.totals.has_stored(is_stored);
                self.keep(next.map(StatePart::Totals));
            }
            StatePartKind::Pins => {
                let (changed, next) = self.pins.has_stored(kept);
                if changed {
                    self.pinned();
                }
                self.keep(next.map(StatePart::Pins));
            }
            StatePartKind::Allowance => {
                self.allowance.kept(kept, std::time::Instant::now());
                // What is not stored waits for the next look.
                if is_stored {
                    self.look_at_allowance();
                }
            }
        }
    }

    /// Tells the crawler what its operator lets it do now, and has kept how much of that is used.
    fn look_at_allowance(&mut self) {
        let look = self.allowance.look(clock::now().wall, std::time::Instant::now());
        self.handler.allowance(self.allowance.whole_view(self.executor.resolver(), clock::now().wall, transfers()));
        for event in look.events {
            self.hear(event);
        }
        if look.stop {
            self.executor.stop_fetching();
        }
        self.keep(look.keep.map(Box::new).map(StatePart::Allowance));
        self.allowance.answer_repeated();
    }

    /// Lines for the log about what has changed.
    fn tell_changes(&mut self) {
        for line in self.changes.look(&self.crawler, std::time::Instant::now()) {
            tracing::info!("{line}");
        }
        self.look_at_members();
    }

    /// Who is there, and who parted: for people, and for those who ask about requests.
    fn look_at_members(&mut self) {
        let (now, members) = (clock::now(), self.crawler.view().members());
        let due = self.acquaintances.look(&members, self.crawler.parted(), now);
        self.keep(due.map(StatePart::Acquaintances));
    }

    /// Takes in what came of a chore.
    fn chore_done(&mut self, done: Done) -> Result<(), NodeError> {
        match done {
            Done::Measured { damage: Some(damage), .. } => return Err(damage.into()),
            Done::Measured { free, state, all, damage: None } => {
                self.measuring = false;
                if let Some(free) = free {
                    self.handler.measured(StoreView { state_bytes: state, cache_bytes: all.saturating_sub(state), ..StoreView::default() });
                    let room = self.allowance.disk_measured(all, free, std::time::Instant::now());
                    self.hear(Event::Room(room));
                }
            }
            Done::Members(kept) => {
                self.keeping = false;
                match kept {
                    Ok((members, addresses)) => (self.persisted.members, self.persisted.addresses) = (members, addresses),
                    // A full disk is no reason to end; it is tried again in a few seconds.
                    Err(why) => tracing::warn!("the list of members could not be stored, and is tried again in a few seconds: {why}"),
                }
            }
            Done::Admitted(admitted) => {
                self.admitting = false;
                self.admitted((*admitted)?);
            }
            Done::Seeds { number, result } => self.seeds_kept(number, result),
            Done::Kept(part, kept) => {
                if let (Err(why), Some(what)) = (&kept, part.if_not_stored()) {
                    tracing::warn!("{what}: {why}");
                }
                self.kept(part, kept);
            }
        }
        Ok(())
    }

    /// Takes in what comes of all chores that were given.
    async fn chores_done(&mut self, chores: &mut mpsc::Receiver<Done>) {
        while self.measuring || self.keeping || self.scope_writes.is_storing() || self.allowance.is_keeping() {
            let Some(done) = chores.recv().await else { return };
            if let Err(why) = self.chore_done(done) {
                tracing::warn!("the last writes before the end failed: {why}");
            }
        }
    }

    /// Starting points added here before this start: their owners have them, or did not get them in time.
    fn seed_again(&mut self) {
        if !self.persisted.seeds.is_empty() {
            self.hear(Event::Seeds(self.persisted.seeds.clone()));
        }
    }

    fn ask_peer(&mut self, asked: PeerQuestion) {
        if let Some(event) = self.executor.exchange(asked) {
            self.hear(event);
        }
    }

    fn swarm_said(&mut self, event: SwarmEvent) {
        match event {
            SwarmEvent::Listening { address } => {
                tracing::info!("listening for other members at {address}");
                self.handler.listening(&address);
            }
            SwarmEvent::Reachable(how) => self.reachable(how),
            SwarmEvent::Admitted { swarm, key, by } => {
                tracing::info!("accepted into the swarm by {by}");
                let secrets = SwarmSecrets { swarm, fingerprint_key: key };
                self.admitting = self.secrets.is_none() && self.housekeeping.give(Chore::Secrets(secrets));
            }
            SwarmEvent::Connected { peer, addresses, incarnation, software, remote, certificate } => {
                tracing::info!("connected to {} ({software}, start number {incarnation})", peer.short());
                self.connected.insert(peer);
                self.handler.connected();
                self.shown(certificate);
                self.hear(Event::Connected { access_point: peer, incarnation, addresses, remote });
            }
            SwarmEvent::Timed { peer, rtt_us, remote } => self.hear(Event::Distance { to: peer, rtt_us, remote }),
            SwarmEvent::Disconnected { peer } => {
                self.connected.remove(&peer);
            }
            // A request that needs the store while it is stalled is to be sent again later.
            SwarmEvent::Asked { ticket, request, .. } if self.executor.behind() > 0 && needs_rows(&request) => {
                self.executor.tell(SwarmCommand::Answer { ticket, response: Response::Busy(COME_AGAIN) });
            }
            SwarmEvent::Asked { from, ticket, request } => self.hear(Event::Asked { from, ticket, request }),
            SwarmEvent::Answered { question, from, result } => self.hear(Event::Answered { question, from, answer: result.ok() }),
            SwarmEvent::Gossiped { gossip, author, .. } => self.hear(Event::Gossiped { author, gossip }),
            SwarmEvent::PublicAsked { ticket, remote, request } => self.asked_by_reader(ticket, remote, request),
            SwarmEvent::Refused { reason, address: Some(address), .. } => {
                self.handler.connection_failed(format!("cannot join through {address}: {reason}"))
            }
            SwarmEvent::Refused { peer, reason, address: None } => self.handler.refused(peer, &reason),
            SwarmEvent::RefusedBy { peer, reason, address, proof } => {
                self.shown(proof);
                let who = address.unwrap_or_else(|| peer.short());
                self.handler.connection_failed(format!("{who} refuses this access point: {reason}"));
            }
            SwarmEvent::DialFailed { address, reason } => self.handler.connection_failed(format!("cannot reach {address}: {reason}")),
        }
    }

    /// The totals as they are told; what has changed in them is stored for the next start.
    fn tell_totals(&mut self) -> SwarmResults {
        let now = clock::now();
        let told = self.totals.answer(self.crawler.view().results(), now.moment);
        let due = self.totals.told(&told, now);
        self.keep(due.map(StatePart::Totals));
        told
    }

    /// The operator keeps other subnets here than before.
    fn pinned(&mut self) {
        let held = self.pins.held().clone();
        self.handler.pinned(held.clone());
        self.hear(Event::Pinned(held));
    }

    /// A peer showed a certificate, or an expulsion as its reason to refuse this access point.
    fn shown(&mut self, signed: Option<Box<SignedAdmission>>) {
        if let Some(signed) = signed.filter(|_| self.config.admission.rule.swarm.is_some()) {
            self.hear(Event::Admission(AdmissionEvent::Shown(signed)));
        }
    }

    /// A program that is no member asks.
    fn asked_by_reader(&mut self, ticket: Ticket, remote: Option<IpAddr>, request: PublicRequest) {
        let openness = Openness {
            members_only: self.config.swarm.readers == Readers::Members,
            is_resting: self.allowance.is_resting(),
            is_spent: self.executor.readers_spent(),
        };
        if let Some(why) = openness.refuses(&request) {
            return readers::respond(self.executor.swarm(), ticket, PublicResponse::Refused(why.into()));
        }
        let view = self.crawler.view();
        let response = match request {
            PublicRequest::Results => PublicResponse::Results(Box::new(self.tell_totals())),
            PublicRequest::Distinct => {
                let view = view.distinct();
                self.hear(Event::DistinctWanted);
                PublicResponse::Distinct(Box::new(view))
            }
            PublicRequest::Owners => PublicResponse::Owners(view.server_owners()),
            PublicRequest::ServerRows { of, after } => return self.asked_for_rows(of, RowsOf::Servers, after, Asker::Reader(ticket)),
            PublicRequest::HistoryRows { of, after } => return self.asked_for_rows(of, RowsOf::History, after, Asker::Reader(ticket)),
            PublicRequest::RequestsMade(query) => return self.requests_made(query, Asker::Reader(ticket)),
            PublicRequest::ExportRows { of, query } => return self.export(of, query, Asker::Reader(ticket)),
            PublicRequest::ProbedSurvey(name) => {
                let survey = name.parse().map_err(|why| format!("{why}")).and_then(|which: SurveyRef| view.probed_survey(&which));
                survey.map_or_else(PublicResponse::Refused, |survey| PublicResponse::ProbedSurvey(Box::new(survey)))
            }
            PublicRequest::SurveyProbes { of, survey } => return self.asked_for_probes(of, survey, Asker::Reader(ticket)),
            PublicRequest::OptOut(key, stops) => return self.opt_out_of_reader((ticket, remote), key, stops),
            PublicRequest::OptOuts { after } => reader_opt_outs::list(&view, after.as_ref()),
        };
        readers::respond(self.executor.swarm(), ticket, response);
    }

    /// The owner of a web site says that nothing is to be asked there, or takes that back.
    fn opt_out_of_reader(&mut self, (ticket, remote): (Ticket, Option<IpAddr>), key: OptOutKey, stops: bool) {
        // What is refused anyway takes no turn.
        let refused = self.crawler.view().refuses_opt_out(&key, stops).or_else(|| self.handler.is_busy());
        let turn = refused.map_or_else(|| self.reader_opt_outs.take(remote, &key, Instant::now().into_std()), Err);
        match turn {
            Err(why) => Asker::Reader(ticket).answer(self.executor.swarm(), Err::<OptOutView, _>(why)),
            Ok(turn) => {
                let (reply, said) = oneshot::channel();
                let event = self.handler.opt_out_of_reader(key, stops, reply);
                self.hear(event);
                self.executor.answer_opt_out(ticket, said, turn);
            }
        }
    }

    /// A reader asks for servers that a member has on record, or their runs.
    fn asked_for_rows(&mut self, of: AccessPoint, rows: RowsOf, after: Option<Host>, asker: Asker<Result<ServerRows, String>>) {
        let answer = if of == self.identity.access_point {
            self.crawler.prepare_rows();
            self.crawler.view().rows(rows, after.as_ref()).map_err(|why| format!("{} {why}", of.short()))
        } else if self.crawler.view().is_alive(&of) {
            return self.executor.relay_rows(of, rows, after, asker);
        } else {
            Err(relay::silent(of))
        };
        asker.answer(self.executor.swarm(), answer);
    }

    /// A reader asks what a member's probes of a survey's sample came to.
    fn asked_for_probes(&mut self, of: AccessPoint, survey: SurveyId, asker: Asker<Result<SurveyProbes, NoProbesError>>) {
        let view = self.crawler.view();
        let answer = if of == self.identity.access_point {
            view.survey_probes(&survey).ok_or_else(|| NoProbesError::NoSample(format!("{} has no such survey with a sample", of.short())))
        } else if view.is_alive(&of) {
            return self.executor.relay_probes(of, survey, asker);
        } else {
            Err(NoProbesError::NoAnswer(relay::silent(of)))
        };
        asker.answer(self.executor.swarm(), answer);
    }

    /// A reader asks for pages or links of a member.
    fn export(&mut self, of: AccessPoint, query: ExportQuery, asker: Asker<Result<ExportedRows, String>>) {
        let view = self.crawler.view();
        let answer = if of != self.identity.access_point {
            if view.is_alive(&of) {
                return self.executor.relay_export(of, query, asker);
            }
            Err(relay::silent(of))
        } else if let Err(why) = view.may_answer_for_all() {
            Err(format!("{} {why}", of.short()))
        } else {
            match view.export(&query) {
                Ok(order) => return self.executor.export(Box::new(order), asker),
                Err(rows) => Ok(rows),
            }
        };
        asker.answer(self.executor.swarm(), answer);
    }

    /// Whether any member made these requests is asked.
    fn requests_made(&mut self, query: RequestsQuery, asker: Asker<RequestsAnswer>) {
        let view = self.crawler.view();
        let known = view.members();
        let owners = view.why(&Subject::Address(query.address), &AddressPolicy::default()).history;
        let absent = self.acquaintances.absent(&query, &known, &owners);
        let listed = known.iter().filter(|member| !self.acquaintances.parted_before(&member.access_point, &query));
        let mut members: BTreeMap<_, _> = absent.into_iter().map(|member| (member, false)).collect();
        members.extend(listed.map(|member| (member.access_point, member.liveness == Liveness::Alive)));
        let gone = members.keys().filter_map(|member| Some((*member, self.acquaintances.parted_at(member)?))).collect();
        let (me, members) = (self.identity.access_point, members.into_iter().collect());
        self.executor.requests_made(Inquiry { me, members, gone, query }, asker);
    }

    /// How others get to us has changed.
    fn reachable(&mut self, how: Reachability) {
        let before = self.handler.reachability().reached;
        self.executor.is_seen_at(&how.own);
        self.hear(Event::Reached(how.addresses.clone()));
        self.handler.reachable(how);
        if self.handler.reachability().reached != before {
            tracing::info!("reachability: {}", self.handler.reachability_view(None).state_text);
        }
    }

    /// A swarm let us in: its fingerprint key is ours from now on, so crawler and fetcher begin anew with it.
    fn admitted(&mut self, admitted: Admitted) {
        let Admitted { secrets, web, claims, opt_outs, admissions } = admitted;
        if self.secrets.is_some() {
            return;
        }
        self.secrets = Some(secrets);
        (self.persisted.opt_outs, self.persisted.admissions) = (opt_outs, admissions);
        self.denied = web.denied.clone();
        // It may have been opened with what the configuration said at the start.
        self.denied.replace(self.config.crawl.deny_ranges.clone());
        self.executor.set_web(web);
        let settings = setup::settings(&self.config, true);
        let Beginning { hierarchy, at_hand } = self.beginning.clone();
        self.crawler = setup::crawler(&self.identity, &self.persisted, secrets, claims, settings, hierarchy, clock::now());
        self.allowance.begin_anew(self.executor.wire());
        self.look_at_allowance();
        self.hear(Event::AtHand(at_hand));
        self.pinned();
        self.handler.admitted(secrets);
        self.handler.own_addresses(self.executor.own_addresses());
        self.hear(Event::Reached(self.handler.reachability().addresses.clone()));
        self.seed_again();
    }

    fn answer(&mut self, query: Query) {
        match self.handler.answer(query, &self.crawler, &self.executor) {
            None => {}
            Some(Action::Handle(event)) => self.hear(event),
            Some(Action::AddSeeds { urls, reply }) => self.add_seeds(urls, reply),
            Some(Action::Export { of, query, reply }) => self.export(of, query, Asker::Local(reply)),
            Some(Action::Pause { length, reply }) => {
                self.allowance.pause(clock::now().wall, length, reply);
                self.look_at_allowance();
            }
            Some(Action::Resume(reply)) => {
                self.allowance.resume(reply);
                self.look_at_allowance();
            }
            Some(Action::TellTotals(reply)) => {
                let told = self.tell_totals();
                // A caller that has stopped waiting is no error.
                let _ = reply.send(told);
            }
            Some(Action::Pin { subnet, pinned, reply }) => {
                let due = self.pins.ask(Pin { subnet, pinned, reply });
                self.keep(due.map(StatePart::Pins));
            }
            Some(Action::TellMembers(reply)) => {
                let told = self.acquaintances.with_parted(self.crawler.view().members(), clock::now().wall);
                let _ = reply.send(told);
            }
            Some(Action::TellStatus(reply)) => {
                let mut told = self.handler.status(&self.crawler, &self.executor);
                let members = self.acquaintances.with_parted(self.crawler.view().members(), clock::now().wall);
                told.members.dead = members.iter().filter(|member| member.liveness == Liveness::Dead).count() as u64;
                let _ = reply.send(told);
            }
            Some(Action::AskWhy { subject, of, reply }) => self.executor.relay_why(of, subject, reply),
            Some(Action::Measure { of, is_relayed, edition, bytes, reply }) => {
                self.executor.measure((of, is_relayed), edition, bytes, reply);
            }
            Some(Action::AskRequests { query, reply }) => self.requests_made(query, Asker::Local(reply)),
            Some(Action::AskProbes { survey, of, reply }) => self.executor.relay_probes(of, survey, Asker::Local(reply)),
            Some(Action::TellRows { rows, of, after, reply }) => self.asked_for_rows(of, rows, after, Asker::Local(reply)),
        }
    }

    /// Starting points are stored before the answer says that they are accepted, unless that takes too long.
    fn add_seeds(&mut self, urls: Vec<PageUrl>, reply: Reply<SeedView>) {
        let seeds = &mut self.persisted.seeds;
        persisted_state::extend_seeds(seeds, &urls, |url| self.handler.seed_refusal(url).is_some());
        let number = self.seeding.number();
        if self.housekeeping.give(Chore::Seeds { number, seeds: seeds.clone() }) {
            self.seeding.wait(number, urls, reply);
        } else {
            let _ = reply.send(not_stored(&urls, "the disk does not answer; name it again later"));
        }
    }

    fn seeds_kept(&mut self, number: u64, result: Result<(), String>) {
        match (self.seeding.done(number), result) {
            (Some(waiting), Ok(())) => {
                // A caller that has stopped waiting is no error.
                let _ = waiting.reply.send(self.handler.seeds(&waiting.urls, &self.crawler));
                self.hear(Event::Seeds(waiting.urls));
            }
            (Some(waiting), Err(why)) => {
                let _ = waiting.reply.send(not_stored(&waiting.urls, &format!("could not be stored: {why}")));
            }
            (None, Ok(())) => {}
            (None, Err(why)) => tracing::warn!("starting points could not be stored, and have to be added again after a restart: {why}"),
        }
    }

    /// Takes in the starting points that the disk keeps waiting, and says that they are not durable yet.
    fn answer_late_seeds(&mut self) {
        while let Some(late) = self.seeding.late() {
            let view = self.handler.seeds(&late.urls, &self.crawler);
            let _ = late.reply.send(SeedView { not_durable: view.accepted, ..view });
            self.hear(Event::Seeds(late.urls));
        }
    }
}

fn not_stored(urls: &[PageUrl], why: &str) -> SeedView {
    let refused = |url: &PageUrl| RefusedSeed { url: url.to_string(), reason_text: why.to_owned() };
    SeedView { refused: urls.iter().map(refused).collect(), ..SeedView::default() }
}

/// So many of these from a place on, round and round, but each once; and the place to go on from.
fn in_turn<T>(all: &[T], first: usize, most: usize) -> (usize, impl Iterator<Item = &T>) {
    let (first, count) = (first.checked_rem(all.len()).unwrap_or(0), most.min(all.len()));
    (first + count, all.iter().cycle().skip(first).take(count))
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// A timer; what it missed while the daemon was busy, it does not catch up on.
fn every(period: Duration) -> Interval {
    let mut timer = interval(period);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    timer
}

/// Half of what systemd asks for, or a minute.
fn watchdog_every() -> Duration {
    sd_notify::watchdog_enabled().map_or(Duration::from_secs(60), |within| within / 2)
}

/// Whether a request is about rows on our disk, be it that it came through another member.
fn needs_rows(request: &Request) -> bool {
    match request {
        Request::Keep(_) | Request::Recall(..) => true,
        Request::Forward(sealed) => {
            let asked = sealed.read().ok().and_then(|question| postcard::from_bytes::<Request>(&question.request).ok());
            matches!(asked, Some(Request::Keep(_) | Request::Recall(..)))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_have_their_turn_and_none_twice_at_a_time() {
        let (mut first, mut turns) = (0, Vec::new());
        for _ in 0..3 {
            let (next, some) = in_turn(&[0, 1, 2, 3, 4], first, 2);
            turns.push(some.copied().collect::<Vec<_>>());
            first = next;
        }
        assert_eq!(turns, [vec![0, 1], vec![2, 3], vec![4, 0]]);
        assert_eq!(in_turn(&[0, 1], 7, 64).1.collect::<Vec<_>>(), [&1, &0]);
        assert_eq!(in_turn::<u8>(&[], 7, 64).1.count(), 0);
    }
}
