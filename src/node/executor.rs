//! Carries each of the crawler's commands out, with the client that it needs; none is judged here.

use crate::io::{
    fetcher::Wire,
    machine,
    resolver::Resolver,
    store::Store,
    swarm::{SwarmCommand, SwarmHandle, SwarmMeter},
    tasks::{self, TaskKind},
};
use crate::node::{
    hierarchy::snapshot_store::SnapshotStore,
    opt_outs::{opt_out_proofs, reader_opt_outs::ProofTurn},
    own_addresses::OwnAddresses,
    query::{MeasureError, MeasureReply, NoProbesError, Reply},
    readers::{
        self, Asker,
        relay::{self, Relay, RelayError},
    },
    requests::{
        request_notes::{Note, RequestNotes},
        request_record::RequestRecord,
        requests_made::{self, Inquiry, Searches},
    },
    revisit,
    setup::WebClients,
    state::store_queue,
    transfers::{
        exports, measured_transfer,
        peer_transfers::{self, PeerQuestion},
        recovery_budget::{MAX_RECOVERED, RecoveryBudget},
        snapshot_transfer::{self, Wanted},
    },
};
use ipnetwork::IpNetwork;
use nearcrawl_core::{
    event::{Command, CopyAnswer, Event, HierarchyCommand, OptOutEvent, PeerCommand, RecordOrder, WebCommand},
    hierarchy_version::editions::Found,
    report::journal_rows::ExportOrder,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    address::{DeniedRanges, SeenAt},
    edition::Edition,
    exported::{ExportOf, ExportQuery, ExportedRows},
    fetch::{FetchError, FetchOrder, ProbeKind, ProbeReport, ResolveError},
    ids::{QuestionId, Ticket, TransferId},
    message::{PublicResponse, Response},
    opt_out::{OptOutKey, OptOutView, ProofLook},
    request_record::RequestsAnswer,
    server_rows::{RowsOf, ServerRows},
    survey::SurveyId,
    survey_probes::SurveyProbes,
    time::Millis,
    url::Host,
    view::{LimitView, Subject, WhyView},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    net::IpAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    task::JoinSet,
};

/// The greatest number of events of the executor that wait for the loop.
const MAX_EVENTS: usize = 1024;

/// Copies and recoveries at once.
const MAX_TRANSFERS: usize = 32;

/// Questions of these that wait for their answers. Each task that asks waits for one at a time, and these tasks are limited: there are
/// never so many.
const MAX_QUESTIONS: usize = 256;

/// The pause after which a member may ask again if all of them are busy, in milliseconds.
const LENT_AGAIN: Millis = 300;

/// Pieces of hierarchies that are read for members at once.
const MAX_LENT: usize = 4;

/// Lines of the log of requests that the disk did not take.
const REQUESTS_DROPPED: &str = "lines of the log of requests that could not be written";

/// Questions of readers whether members made a request.
const READERS_REFUSED: &str = "questions of readers about requests, of which there were too many";

/// The executor of one node, and the channels by which answers come back.
pub struct Executor {
    web: WebClients,
    /// Addresses of our own that the configuration does not have.
    own: OwnAddresses,
    probe: ProbeKind,
    store: Store,
    swarm: Option<SwarmHandle>,
    store_queue: store_queue::StoreQueue,
    events: mpsc::Sender<Event>,
    asking: mpsc::Sender<PeerQuestion>,
    transfers: Arc<Semaphore>,
    /// What tasks ask members by way of the crawler.
    questions: BTreeMap<TransferId, oneshot::Sender<Option<Response>>>,
    next_question: u64,
    recovery_budget: Arc<RecoveryBudget>,
    /// Where each request is written down; none if that is switched off, and in a crawl without a swarm.
    requests: Option<RequestNotes>,
    /// The records of requests, our own and copies; none in a crawl without a swarm.
    record: Option<RequestRecord>,
    /// The same log, to be searched.
    searches: Searches,
    /// The editions of the hierarchy on disk; none in a crawl without a swarm.
    snapshots: Option<SnapshotStore>,
    /// Answers to members about it that may be under way at once: each waits for the disk.
    lending: Arc<Semaphore>,
    /// How many questions of readers are passed on.
    relay: Relay,
    /// Answers from our journals that may be read at once.
    exporting: Arc<Semaphore>,
    tasks: JoinSet<()>,
}

/// What the loop listens to.
pub struct Inbox {
    /// Events from the executor.
    pub events: mpsc::Receiver<Event>,
    /// Answers of the store, or its failure.
    pub outcomes: mpsc::Receiver<(store_queue::Outcome, store_queue::Turn)>,
    /// Questions of exchanges with a member.
    pub transfers: mpsc::Receiver<PeerQuestion>,
}

impl Executor {
    /// With these clients; begins the task of the store queue.
    pub fn new(web: WebClients, probe: ProbeKind, store: Store, swarm: Option<SwarmHandle>) -> (Executor, Inbox) {
        let (events, heard) = mpsc::channel(MAX_EVENTS);
        let (asking, transfers) = mpsc::channel(MAX_TRANSFERS);
        let (outcome, outcomes) = mpsc::channel(MAX_EVENTS);
        let mut set = JoinSet::new();
        let (store_queue, serving) = store_queue::StoreQueue::new(store.clone(), outcome);
        set.spawn(async move {
            // After a panic no outcomes are sent any more: the loop sees that the queue has ended.
            let _ = tasks::run(TaskKind::StoreQueue, serving).await;
        });
        let (transfer_turns, lending) = (Arc::new(Semaphore::new(MAX_TRANSFERS)), Arc::new(Semaphore::new(MAX_LENT)));
        let meter = swarm.as_ref().map(|swarm| Arc::clone(&swarm.counters().meter));
        let executor = Executor {
            own: OwnAddresses::new(web.seen_at.clone()),
            web,
            probe,
            store,
            swarm,
            store_queue,
            events,
            asking,
            transfers: transfer_turns,
            questions: BTreeMap::new(),
            next_question: 0,
            recovery_budget: Arc::default(),
            requests: None,
            record: None,
            searches: Searches::new(None),
            snapshots: None,
            lending,
            relay: Relay::new(meter, Instant::now()),
            exporting: Arc::new(Semaphore::new(exports::MAX_AT_ONCE)),
            tasks: set,
        };
        (executor, Inbox { events: heard, outcomes, transfers })
    }

    /// Another key for fingerprints: the swarm that let us in has one.
    pub fn set_web(&mut self, web: WebClients) {
        self.own.tell(web.seen_at.clone());
        self.web = web;
    }

    /// Sets where requests are written down, in which directory the log is searched, and the records, of which ours is stored and sent from now
    /// on: what is new so often.
    pub fn set_request_notes(
        &mut self,
        requests: Option<RequestNotes>,
        directory: Option<PathBuf>,
        (record, copies_every): (RequestRecord, Duration),
    ) {
        let log = requests.as_ref().map(|notes| notes.log.clone());
        self.searches = Searches::new(directory.map(|directory| (directory, log)));
        self.requests = requests;
        let (serving, asking, meter) = (record.clone(), self.asking.clone(), self.swarm_meter());
        self.tasks.spawn(async move {
            // After a panic it is told in the status, and what is not stored is not covered.
            let _ = tasks::run(TaskKind::RequestRecord, serving.serve(asking, copies_every, meter)).await;
        });
        self.record = Some(record);
    }

    /// These members keep copies of our journals.
    pub fn replicas(&self, replicas: BTreeSet<AccessPoint>) {
        if let Some(record) = &self.record {
            record.replicas(replicas);
        }
    }

    /// What is known of requests to a server lately, in words; none in a crawl without a swarm.
    pub fn requests_lately(&self, address: IpAddr) -> Option<String> {
        self.record.as_ref().map(|record| record.lately(address))
    }

    /// Sets the store of the editions of the hierarchy.
    pub fn set_snapshots(&mut self, snapshots: SnapshotStore) {
        self.snapshots = Some(snapshots);
    }

    /// The swarm, if there is one.
    pub fn swarm(&self) -> Option<&SwarmHandle> {
        self.swarm.as_ref()
    }

    /// The queue to the store.
    pub fn store_queue(&mut self) -> &mut store_queue::StoreQueue {
        &mut self.store_queue
    }

    /// How many commands wait outside of the queue to the store, because it is full.
    pub fn behind(&self) -> usize {
        self.store_queue.behind()
    }

    /// For how long the store has been at one action without an end.
    pub fn store_silent_for(&self) -> Duration {
        self.store.silent_for()
    }

    /// Waits until the queue to the store has room.
    pub fn room(&self) -> impl Future<Output = ()> + use<> {
        self.store_queue.room()
    }

    /// Others see us at these addresses, so no server is looked for there.
    pub fn is_seen_at(&mut self, own: &[IpAddr]) {
        self.own.seen(own);
    }

    /// Neither is one at the addresses of this machine's interfaces and in their IPv6 networks, which may change while it runs. Ranges that the
    /// operator opened are left out: a laboratory's servers may be on this machine.
    pub fn look_at_interfaces(&mut self, opened: &[IpNetwork]) {
        self.own.interfaces(machine::interfaces(), opened);
    }

    /// Nor where the names lead under which the operator says that others reach us: they are looked up, now and again.
    pub fn look_up_own_names(&mut self, advertised: &[String]) {
        for name in self.own.due(advertised, Instant::now()) {
            let (own, resolver) = (self.own.clone(), self.web.resolver.clone());
            self.spawn(TaskKind::Resolve, None, async move {
                let found = name.look_up(&resolver).await;
                own.looked_up(name, found, Instant::now());
                None
            });
        }
    }

    /// Which addresses these are; it is kept as it is now.
    pub fn own_addresses(&self) -> SeenAt {
        self.web.seen_at.clone()
    }

    /// The ranges that nothing is sent to; a change of them holds here, too.
    pub fn denied_ranges(&self) -> DeniedRanges {
        self.web.denied.clone()
    }

    /// Connections to web servers that are open.
    pub fn open_connections(&self) -> u64 {
        self.web.fetcher.open_connections() as u64
    }

    /// The bytes of all connections to web servers.
    pub fn wire(&self) -> Arc<Wire> {
        self.web.fetcher.wire()
    }

    /// The bytes of all connections to members; none in a process that is no member.
    pub fn swarm_meter(&self) -> Option<Arc<SwarmMeter>> {
        self.swarm.as_ref().map(|swarm| Arc::clone(&swarm.counters().meter))
    }

    /// Asks name servers.
    pub fn resolver(&self) -> &Resolver {
        &self.web.resolver
    }

    /// Whether the share that programs which are no members have of the operator's limit is spent.
    pub fn readers_spent(&self) -> bool {
        self.swarm.as_ref().is_some_and(|swarm| swarm.counters().meter.readers_spent())
    }

    /// Cancels all requests under way and closes all connections to web servers.
    pub fn stop_fetching(&mut self) {
        let fetcher = self.web.fetcher.clone();
        self.spawn(TaskKind::Close, None, async move {
            fetcher.close_all().await;
            None
        });
    }

    /// The crawler has taken in an event with so many bytes of rows of another member, and holds so many of this and others now.
    pub fn recovered(&self, bytes: usize, held: usize) {
        self.recovery_budget.arrived(bytes, held);
    }

    /// What was refused since the start, by class.
    pub fn refusals(&self) -> BTreeMap<String, u64> {
        let of_swarm = self.swarm.iter().flat_map(|swarm| swarm.counters().refusals());
        let of_log = self.requests.iter().map(|notes| (REQUESTS_DROPPED, notes.log.dropped()));
        let of_records = self.record.iter().flat_map(RequestRecord::refusals);
        let of_readers = [(READERS_REFUSED, self.relay.refused_searches())];
        let refused = self.recovery_budget.refusals().into_iter().chain(of_swarm).chain(of_log).chain(of_records).chain(of_readers);
        refused.filter(|(_, count)| *count > 0).map(|(class, count)| (class.to_owned(), count)).collect()
    }

    /// What grows here, with its limits.
    pub fn limits(&self) -> Vec<LimitView> {
        let recovered = self.recovery_budget.used();
        let rows =
            LimitView { name: "bytes of journal rows from other members".to_owned(), used: recovered as u64, max: MAX_RECOVERED as u64 };
        std::iter::once(rows).chain(self.record.iter().flat_map(RequestRecord::limits)).collect()
    }

    /// Has the crawler ask a member what a task needs to know.
    pub fn exchange(&mut self, asked: PeerQuestion) -> Option<Event> {
        if self.questions.len() >= MAX_QUESTIONS {
            // Without an answer it ends; it will be begun again.
            let _ = asked.reply.send(None);
            return None;
        }
        self.next_question += 1;
        let transfer = TransferId(self.next_question);
        self.questions.insert(transfer, asked.reply);
        Some(Event::Transfer { transfer, to: asked.to, request: asked.request })
    }

    /// Carries a command out, or begins to. Returns an event that is already certain, if there is one.
    pub fn perform(&mut self, command: Command) -> Option<Event> {
        // The tasks that have ended are forgotten as new ones begin.
        while self.tasks.try_join_next().is_some() {}
        match command {
            Command::Store(command) => return self.store_queue.give(command),
            Command::Web(command) => self.ask_web(command),
            Command::Peers(command) => return self.tell_peers(command),
            Command::Hierarchy(command) => self.exchange_hierarchies(command),
            Command::Export { ticket, order } => return self.export_to_member(ticket, order),
            Command::TellRequests { ticket, query } => {
                let searched = self.searches.clone().for_member(query);
                let crashed = Event::RequestsTold { ticket, made: None };
                self.spawn(TaskKind::RequestSearch, Some(crashed), async move {
                    Some(Event::RequestsTold { ticket, made: searched.await.map(Box::new) })
                });
            }
            Command::Record { ticket, order } => self.carry_out_record(ticket, order),
            // The loop answers these; in a crawl without a swarm nobody asks.
            Command::Explain { .. } | Command::Finished => {}
        }
        None
    }

    /// Keeps or reads copies of records of requests.
    fn carry_out_record(&mut self, ticket: Ticket, order: RecordOrder) {
        let (record, searches) = (self.record.clone(), self.searches.clone());
        let answered = move |answer: Option<Response>| Event::RecordAnswered { ticket, answer: answer.map(Box::new) };
        self.spawn(TaskKind::RequestSearch, Some(answered(None)), async move {
            let answer = match (record, order) {
                (None, _) => Some(Response::Refused("it keeps no records of requests".to_owned())),
                (Some(record), RecordOrder::Keep(from, parcel)) => record.keep(from, *parcel).await,
                (Some(record), RecordOrder::Compare(from, range)) => Some(record.compare(from, &range).await),
                (Some(record), RecordOrder::Tell(asked)) => searches.in_turn(record.tell(&asked)).await.map(Response::Records),
            };
            Some(answered(answer))
        });
    }

    /// What is written into the log of requests about this one: nothing if it may not begin any more, for then nothing is sent.
    fn note(&self, order: &FetchOrder) -> Note {
        Note::fetch(self.requests.as_ref().filter(|_| self.web.fetcher.may_begin(order)), order)
    }

    fn ask_web(&mut self, command: WebCommand) {
        match command {
            WebCommand::Resolve { host, pinned } => {
                let (resolver, note) = (self.web.resolver.clone(), Note::lookup(self.requests.as_ref(), &host));
                let crashed = Event::Resolved { host: host.clone(), answer: Err(ResolveError::Crashed) };
                self.spawn(TaskKind::Resolve, Some(crashed), async move {
                    let answer = resolver.resolve(&host, pinned).await;
                    note.resolved(&answer);
                    Some(Event::Resolved { host, answer })
                });
            }
            WebCommand::Probe { question, target, reason } => {
                let (prober, kind, note) = (self.web.prober.clone(), self.probe, Note::probe(self.requests.as_ref(), &target, reason));
                let crashed = Event::Probed { question, report: ProbeReport { rtt_us: Err(FetchError::Crashed), took: 0 } };
                self.spawn(TaskKind::Probe, Some(crashed), async move {
                    let report = prober.probe(&target, kind).await;
                    note.probed(&report);
                    Some(Event::Probed { question, report })
                });
            }
            WebCommand::Fetch(order) => {
                let (fetcher, address) = (self.web.fetcher.clone(), order.address);
                let (on_body, note) = (self.on_body(address), self.note(&order));
                // Boxed, so that it is not copied on its way: it takes some kilobytes.
                let fetching = Box::pin(async move {
                    let report = fetcher.fetch_telling(order, on_body).await;
                    note.fetched(&report);
                    report
                });
                // The fetcher reports its own panics.
                self.spawn_told(async move { Some(Event::Fetched { address, report: Box::new(fetching.await) }) });
            }
            WebCommand::Revisit { order, site, page } => {
                let (fetcher, store) = (self.web.fetcher.clone(), self.store.clone());
                let (on_body, note) = (self.on_body(order.address), self.note(&order));
                let revisiting = Box::pin(async move {
                    let event = revisit::revisit(&fetcher, &store, (order, on_body), site, page).await;
                    note.revisited(&event);
                    event
                });
                self.spawn_told(async move { Some(revisiting.await) });
            }
            WebCommand::LookForProof { question, key, at } => self.look_for_proof(question, key, at),
            WebCommand::LocateProof { question, host } => self.locate_proof(question, host),
            WebCommand::CloseConnection(address) => {
                let fetcher = self.web.fetcher.clone();
                self.spawn(TaskKind::Close, None, async move {
                    fetcher.close(address).await;
                    None
                });
            }
        }
    }

    /// Looks for the proof of an opt-out: a record in the DNS, or a file.
    fn look_for_proof(&mut self, question: QuestionId, key: OptOutKey, at: Option<IpAddr>) {
        let (web, log) = (self.web.clone(), self.requests.clone());
        let looked = move |found| Event::OptOut(OptOutEvent::Looked { question, found });
        let crashed = looked(ProofLook::Unclear("nearcrawl itself failed while it looked".to_owned()));
        self.spawn(TaskKind::Proof, Some(crashed), async move { Some(looked(opt_out_proofs::look(&web, log.as_ref(), &key, at).await)) });
    }

    /// Looks a host up whose opt-out a reader wants to be looked for.
    fn locate_proof(&mut self, question: QuestionId, host: Host) {
        let (web, log) = (self.web.clone(), self.requests.clone());
        let located = move |address| Event::OptOut(OptOutEvent::Located { question, address });
        let crashed = located(Err("nearcrawl itself failed while it looked".to_owned()));
        self.spawn(TaskKind::Proof, Some(crashed), async move { Some(located(opt_out_proofs::locate(&web, log.as_ref(), &host).await)) });
    }

    fn tell_peers(&mut self, command: PeerCommand) -> Option<Event> {
        match command {
            PeerCommand::Ask { to, question, request } => {
                let told = self.tell(SwarmCommand::Ask { to, question, request });
                return (!told && question != QuestionId::NO_ANSWER).then_some(Event::Answered { question, from: to, answer: None });
            }
            PeerCommand::Answer { ticket, response } => {
                self.tell(SwarmCommand::Answer { ticket, response });
            }
            PeerCommand::Publish(gossip) => {
                self.tell(SwarmCommand::Publish(gossip));
            }
            PeerCommand::Guard(gate) => {
                self.tell(SwarmCommand::Guard(gate));
            }
            PeerCommand::Know { access_point, addresses } => {
                self.tell(SwarmCommand::Remember { peer: access_point, addresses });
            }
            PeerCommand::Transferred { transfer, answer } => {
                if let Some(reply) = self.questions.remove(&transfer) {
                    // The task may have ended.
                    let _ = reply.send(answer);
                }
            }
            PeerCommand::Copy(order) => {
                let (store, asking, turn) = (self.store.clone(), self.asking.clone(), Arc::clone(&self.transfers));
                let crashed = Event::Copied { to: order.to, sent: BTreeMap::new(), answer: CopyAnswer::Failed };
                self.spawn(TaskKind::PeerTransfer, Some(crashed), async move {
                    let _turn = turn.acquire_owned().await.ok()?;
                    // Boxed: thousands may wait for their turn, and take little room until then.
                    Some(Box::pin(peer_transfers::copy(store, asking, order)).await)
                });
            }
            PeerCommand::Recover { subnet, host, from } => {
                let (asking, turn, budget) = (self.asking.clone(), Arc::clone(&self.transfers), Arc::clone(&self.recovery_budget));
                let crashed = Event::Recovered { subnet, host: host.clone(), from, journals: None, bytes: 0 };
                self.spawn(TaskKind::PeerTransfer, Some(crashed), async move {
                    let _turn = turn.acquire_owned().await.ok()?;
                    Some(Box::pin(peer_transfers::recover(asking, budget, (subnet, host), from)).await)
                });
            }
        }
        None
    }

    fn exchange_hierarchies(&mut self, command: HierarchyCommand) {
        match command {
            HierarchyCommand::Gather { edition, from, ours } => {
                let (asking, snapshots) = (self.asking.clone(), self.snapshots.clone());
                let crashed = Event::EditionFound { edition, found: Found::Unusable, hierarchy: None, wrong: 0 };
                self.spawn(TaskKind::SnapshotTransfer, Some(crashed), async move {
                    Some(snapshot_transfer::gather(asking, snapshots?, ours, edition, from).await)
                });
            }
            HierarchyCommand::Keep { uses, others } => {
                if let Some(snapshots) = self.snapshots.clone() {
                    self.spawn(TaskKind::SnapshotFiles, None, async move {
                        let kept = tokio::task::spawn_blocking(move || snapshots.keep(&uses, &others)).await;
                        if let Ok(Err(why)) = kept {
                            tracing::warn!(
                                "the note of which hierarchy is in use could not be written, so a restart may begin with another one: {why}"
                            );
                        }
                        None
                    });
                }
            }
            HierarchyCommand::TellManifest { ticket, hash } => self.lend(ticket, Wanted::Manifest(hash)),
            HierarchyCommand::TellChunk { ticket, manifest, index } => self.lend(ticket, Wanted::Chunk { manifest, index }),
        }
    }

    /// Reports to the crawler that a body has been received. If the queue of events is full the report is dropped, and the next request
    /// waits until the page is read.
    fn on_body(&self, address: IpAddr) -> impl FnOnce(Millis) + use<> {
        let events = self.events.clone();
        move |took| drop(events.try_send(Event::BodyReceived { address, took }))
    }

    /// Answers a member about our files of the hierarchy, a few at a time.
    fn lend(&mut self, ticket: Ticket, wanted: Wanted) {
        let turn = if self.relay.is_spent() { None } else { Arc::clone(&self.lending).try_acquire_owned().ok() };
        let (Some(snapshots), Some(turn)) = (self.snapshots.clone(), turn) else {
            self.tell(SwarmCommand::Answer { ticket, response: Response::Busy(LENT_AGAIN) });
            return;
        };
        let swarm = self.swarm.clone();
        self.spawn_told(async move {
            let telling = tasks::run(TaskKind::SnapshotServing, snapshot_transfer::tell(snapshots, wanted));
            let response = telling.await.unwrap_or(Response::Busy(LENT_AGAIN));
            drop(turn);
            if let Some(swarm) = swarm
                && swarm.tell(SwarmCommand::Answer { ticket, response }).is_err()
            {
                tracing::debug!(
                    "a chunk of the hierarchy was not sent, because the swarm task is busy or has ended; the member asks again"
                );
            }
            None
        });
    }

    /// Begins what asks another member for a reader, if that may be, and has the outcome answered.
    fn relay<T, E>(
        &mut self,
        asking: impl Future<Output = Result<T, E>> + Send + 'static,
        crashed: E,
        answer: impl FnOnce(Result<T, E>) + Send + 'static,
    ) where
        T: Send + 'static,
        E: From<RelayError> + Send + 'static,
    {
        let turn = match self.relay.turn() {
            Ok(turn) => turn,
            Err(why) => return answer(Err(why.into())),
        };
        self.spawn_told(async move {
            let said = tasks::run(TaskKind::ReaderRelay, asking).await;
            drop(turn);
            answer(said.unwrap_or(Err(crashed)));
            None
        });
    }

    /// Asks a member for the servers that it has on record, or their runs, for a reader.
    pub fn relay_rows(&mut self, of: AccessPoint, rows: RowsOf, after: Option<Host>, asker: Asker<Result<ServerRows, String>>) {
        let answer = asker.answering(self.swarm.clone());
        self.relay(relay::rows(self.asking.clone(), of, rows, after), relay::silent(of), answer);
    }

    /// Asks a member what its probes of a survey's sample came to, for a reader.
    pub fn relay_probes(&mut self, of: AccessPoint, survey: SurveyId, asker: Asker<Result<SurveyProbes, NoProbesError>>) {
        let answer = asker.answering(self.swarm.clone());
        self.relay(relay::probes(self.asking.clone(), of, survey), NoProbesError::NoAnswer(relay::silent(of)), answer);
    }

    /// Asks a member for pages or links of its journals, for a reader.
    pub fn relay_export(&mut self, of: AccessPoint, query: ExportQuery, asker: Asker<Result<ExportedRows, String>>) {
        // What a member of an earlier release cannot read, it takes for an offence; and events are few members' concern.
        if query.of == ExportOf::Events {
            return asker.answer(self.swarm(), Err(format!("{} tells its events only itself; ask it with --member", of.short())));
        }
        let answer = asker.answering(self.swarm.clone());
        self.relay(relay::export(self.asking.clone(), of, query), relay::silent(of), answer);
    }

    /// Asks a member why something is crawled by whom.
    pub fn relay_why(&mut self, of: AccessPoint, subject: Subject, reply: Reply<Result<WhyView, String>>) {
        // Whoever has stopped waiting is no error, here and below.
        self.relay(relay::why(self.asking.clone(), of, subject), relay::silent(of), |said| drop(reply.send(said)));
    }

    /// Measures the connection to a member, which may be reached through a third one.
    pub fn measure(&mut self, (of, is_relayed): (AccessPoint, bool), edition: Edition, bytes: u64, reply: MeasureReply) {
        let measuring = measured_transfer::measure(self.asking.clone(), edition, of, is_relayed, bytes);
        self.relay(measuring, MeasureError::NoFile, |measured| drop(reply.send(measured)));
    }

    /// Tells the owner of a web site what came of an opt-out, when it has come.
    pub fn answer_opt_out(&mut self, ticket: Ticket, said: oneshot::Receiver<Result<OptOutView, String>>, turn: ProofTurn) {
        let swarm = self.swarm.clone();
        self.spawn_told(async move {
            let said = tasks::run(TaskKind::ReaderRelay, said).await;
            drop(turn);
            let said = said.ok().and_then(Result::ok).unwrap_or_else(|| Err("the daemon is busy: ask again".to_owned()));
            Asker::Reader(ticket).answer(swarm.as_ref(), said);
            None
        });
    }

    /// Asks all members whether they made these requests.
    pub fn requests_made(&mut self, inquiry: Inquiry, asker: Asker<RequestsAnswer>) {
        let turn = match &asker {
            Asker::Local(_) => None,
            Asker::Reader(ticket) => match self.relay.search_turn(Instant::now()) {
                Ok(turn) => Some(turn),
                Err(why) => return readers::respond(self.swarm(), *ticket, PublicResponse::Refused(why.into())),
            },
        };
        let (asking, searches, record, swarm) = (self.asking.clone(), self.searches.clone(), self.record.clone(), self.swarm.clone());
        self.spawn_told(async move {
            let all = inquiry.clone();
            let said = tasks::run(TaskKind::RequestSearch, requests_made::of_all(searches, record, asking, inquiry)).await;
            drop(turn);
            asker.answer(swarm.as_ref(), said.unwrap_or_else(|_| all.unanswered()));
            None
        });
    }

    /// Reads pages or links from our journals for a reader, who waits while others are answered.
    pub fn export(&mut self, order: Box<ExportOrder>, asker: Asker<Result<ExportedRows, String>>) {
        if self.relay.is_spent() && matches!(asker, Asker::Reader(_)) {
            return asker.answer(self.swarm(), Err(RelayError::Spent.into()));
        }
        let (store, swarm, exporting) = (self.store.clone(), self.swarm.clone(), Arc::clone(&self.exporting));
        self.spawn_told(async move {
            // It is never closed.
            let turn = exporting.acquire_owned().await.ok()?;
            let rows = tasks::run(TaskKind::Export, exports::own(store, order, turn)).await;
            asker.answer(swarm.as_ref(), rows.unwrap_or_else(|_| Err("reading the journals failed".to_owned())));
            None
        });
    }

    /// The same for a member, which asks for a reader, and is told to ask again while others are answered.
    fn export_to_member(&mut self, ticket: Ticket, order: Box<ExportOrder>) -> Option<Event> {
        let turn = if self.relay.is_spent() { None } else { Arc::clone(&self.exporting).try_acquire_owned().ok() };
        let told = move |rows| Event::Exported { ticket, rows };
        let Some(turn) = turn else { return Some(told(None)) };
        let store = self.store.clone();
        self.spawn(TaskKind::Export, Some(told(None)), async move { Some(told(exports::own(store, order, turn).await.ok())) });
        None
    }

    /// Sends a command to the swarm task; false if it cannot take it.
    pub fn tell(&self, command: SwarmCommand) -> bool {
        self.swarm.as_ref().is_some_and(|swarm| swarm.tell(command).is_ok())
    }

    /// Begins a task. After a panic the event for its failure is sent instead of its own.
    fn spawn(&mut self, kind: TaskKind, crashed: Option<Event>, task: impl Future<Output = Option<Event>> + Send + 'static) {
        self.spawn_told(async move { tasks::run(kind, task).await.unwrap_or(crashed) });
    }

    /// Begins a task that reports its panics itself.
    fn spawn_told(&mut self, task: impl Future<Output = Option<Event>> + Send + 'static) {
        let events = self.events.clone();
        self.tasks.spawn(async move {
            if let Some(event) = task.await {
                // The loop has ended: no event is needed any more.
                let _ = events.send(event).await;
            }
        });
    }

    /// Closes every connection to a web server, and opens no other.
    pub fn close_web(&self) -> impl Future<Output = ()> + use<> {
        self.wire().close(true);
        let fetcher = self.web.fetcher.clone();
        async move { fetcher.close_all().await }
    }

    /// Closes every connection and ends every task.
    pub async fn rest(&mut self) {
        self.end().await;
        self.store.close().await;
    }

    /// The same, but commands that wait for the store are discarded: for a store that is not used again.
    pub async fn rest_for_good(&mut self) {
        self.end().await;
        self.store.discard().await;
    }

    async fn end(&mut self) {
        self.web.fetcher.close_all().await;
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
        if let Some(notes) = self.requests.take() {
            // It waits for the disk.
            let _ = tokio::task::spawn_blocking(move || notes.log.close()).await;
        }
        if let Some(record) = self.record.take() {
            record.end().await;
        }
    }
}

#[cfg(test)]
mod tests;
