//! How is a wish carried out? Each of the mind's commands goes to the hand that it needs; none is judged here.

use super::{
    birth::WebHands,
    clerk,
    errands::{self, Errand},
    exchange::{self, Wanted},
    library::Library,
    revisit,
};
use crate::{
    io::{
        store::Store,
        swarm::{SwarmCommand, SwarmHandle},
    },
    logic::crawler::event::{Command, Event},
    model::{fetch::ProbeKind, message::Response, time::Millis},
};
use std::{future::Future, net::IpAddr, sync::Arc};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

/// Events from hands that wait to be taken in.
const MOST_EVENTS: usize = 1024;

/// Copies and recoveries at once.
const MOST_ERRANDS: usize = 32;

/// Who finds all of that busy may ask again after this long, in milliseconds.
const LENT_AGAIN: Millis = 300;

/// Pieces of hierarchies that are read for members at once.
const MOST_LENT: usize = 4;

/// All hands of one node, and the ways by which their answers come back.
pub struct Hands {
    web: WebHands,
    probe: ProbeKind,
    store: Store,
    swarm: Option<SwarmHandle>,
    clerk: clerk::Orders,
    events: mpsc::Sender<Event>,
    asking: mpsc::Sender<Errand>,
    errands: Arc<Semaphore>,
    /// The editions of the hierarchy on disk; none for who crawls alone.
    library: Option<Library>,
    /// Answers to members about it that may be under way at once: each waits for the disk.
    lending: Arc<Semaphore>,
    tasks: JoinSet<()>,
}

/// What the loop listens to.
pub struct Ears {
    /// Facts from hands.
    pub events: mpsc::Receiver<Event>,
    /// Answers of the store, or its failure.
    pub outcomes: mpsc::Receiver<clerk::Outcome>,
    /// Questions of errands.
    pub errands: mpsc::Receiver<Errand>,
}

impl Hands {
    /// Takes the hands and sets the clerk to work.
    pub fn new(web: WebHands, probe: ProbeKind, store: Store, swarm: Option<SwarmHandle>) -> (Hands, Ears) {
        let (events, heard) = mpsc::channel(MOST_EVENTS);
        let (asking, errands) = mpsc::channel(MOST_ERRANDS);
        let (outcome, outcomes) = mpsc::channel(MOST_EVENTS);
        let mut tasks = JoinSet::new();
        let (clerk, serving) = clerk::Orders::new(store.clone(), swarm.clone(), outcome);
        tasks.spawn(serving);
        let (errand_turns, lending) = (Arc::new(Semaphore::new(MOST_ERRANDS)), Arc::new(Semaphore::new(MOST_LENT)));
        let hands = Hands { web, probe, store, swarm, clerk, events, asking, errands: errand_turns, library: None, lending, tasks };
        (hands, Ears { events: heard, outcomes, errands })
    }

    /// Another key for fingerprints: the swarm that let us in has one.
    pub fn set_web(&mut self, web: WebHands) {
        self.web = web;
    }

    /// Where editions of the hierarchy lie.
    pub fn set_library(&mut self, library: Library) {
        self.library = Some(library);
    }

    /// Connections to web servers that are open.
    pub fn open_connections(&self) -> u64 {
        self.web.fetcher.open_connections() as u64
    }

    /// Carries a wish out, or begins to. Returns an event that is already certain, if there is one.
    pub fn perform(&mut self, command: Command) -> Option<Event> {
        // The tasks that have ended are forgotten as new ones begin.
        while self.tasks.try_join_next().is_some() {}
        match command {
            Command::Ask { to, question, request } => {
                let told = self.tell(SwarmCommand::Ask { to, question, request });
                return (!told && question != 0).then_some(Event::Answered { question, from: to, answer: None });
            }
            Command::Answer { ticket, response } => {
                self.tell(SwarmCommand::Answer { ticket, response });
            }
            Command::Publish(gossip) => {
                self.tell(SwarmCommand::Publish(gossip));
            }
            Command::Know { access_point, addresses } => {
                self.tell(SwarmCommand::Remember { peer: access_point, addresses });
            }
            Command::Resolve(host) => {
                let resolver = self.web.resolver.clone();
                self.spawn(async move {
                    let answer = resolver.resolve(&host).await;
                    Some(Event::Resolved { host, answer })
                });
            }
            Command::Probe { question, target } => {
                let (prober, kind) = (self.web.prober.clone(), self.probe);
                self.spawn(async move { Some(Event::Probed { question, report: prober.probe(&target, kind).await }) });
            }
            Command::Fetch(order) => {
                let (fetcher, address) = (self.web.fetcher.clone(), order.address);
                let landed = self.landing(address);
                // Boxed, so that it is not copied on its way: it takes some kilobytes.
                let fetching = Box::pin(async move { fetcher.fetch_telling(order, landed).await });
                self.spawn(async move { Some(Event::Fetched { address, report: Box::new(fetching.await) }) });
            }
            Command::Revisit { order, site, page } => {
                let (fetcher, store) = (self.web.fetcher.clone(), self.store.clone());
                let landed = self.landing(order.address);
                let revisiting = Box::pin(async move { revisit::revisit(&fetcher, &store, (order, landed), site, page).await });
                self.spawn(async move { Some(revisiting.await) });
            }
            Command::CloseConnection(address) => {
                let fetcher = self.web.fetcher.clone();
                self.spawn(async move {
                    fetcher.close(address).await;
                    None
                });
            }
            Command::Copy(order) => {
                let (store, asking, turn) = (self.store.clone(), self.asking.clone(), Arc::clone(&self.errands));
                self.spawn(async move {
                    let _turn = turn.acquire_owned().await.ok()?;
                    Some(errands::copy(store, asking, order).await)
                });
            }
            Command::Recover { subnet, from } => {
                let (asking, turn) = (self.asking.clone(), Arc::clone(&self.errands));
                self.spawn(async move {
                    let _turn = turn.acquire_owned().await.ok()?;
                    Some(errands::recover(asking, subnet, from).await)
                });
            }
            Command::GatherHierarchy { edition, from, ours } => {
                let (asking, library) = (self.asking.clone(), self.library.clone());
                self.spawn(async move { Some(exchange::gather(asking, library?, ours, edition, from).await) });
            }
            Command::KeepHierarchies { uses, others } => {
                if let Some(library) = self.library.clone() {
                    self.spawn(async move {
                        let kept = tokio::task::spawn_blocking(move || library.keep(&uses, &others)).await;
                        if let Ok(Err(why)) = kept {
                            tracing::warn!("which hierarchy is used could not be noted: {why}");
                        }
                        None
                    });
                }
            }
            Command::TellManifest { ticket, hash } => self.lend(ticket, Wanted::Manifest(hash)),
            Command::TellChunk { ticket, manifest, index } => self.lend(ticket, Wanted::Chunk { manifest, index }),
            Command::Finished => {}
            stored => return self.clerk.give(stored),
        }
        None
    }

    /// Tells the mind that a page is here. If too much else waits to be heard, the next request waits until it is read.
    fn landing(&self, address: IpAddr) -> impl FnOnce(Millis) + use<> {
        let events = self.events.clone();
        move |took| drop(events.try_send(Event::Landed { address, took }))
    }

    /// Answers a member about our files of the hierarchy, a few at a time.
    fn lend(&mut self, ticket: u64, wanted: Wanted) {
        let (Some(library), Ok(turn)) = (self.library.clone(), Arc::clone(&self.lending).try_acquire_owned()) else {
            self.tell(SwarmCommand::Answer { ticket, response: Response::Busy(LENT_AGAIN) });
            return;
        };
        let swarm = self.swarm.clone();
        self.spawn(async move {
            let response = exchange::tell(library, wanted).await;
            drop(turn);
            if let Some(swarm) = swarm
                && swarm.tell(SwarmCommand::Answer { ticket, response }).is_err()
            {
                tracing::debug!("a piece of the hierarchy was not sent: the swarm is busy or gone");
            }
            None
        });
    }

    /// Tells the swarm; false if it cannot take it.
    pub fn tell(&self, command: SwarmCommand) -> bool {
        self.swarm.as_ref().is_some_and(|swarm| swarm.tell(command).is_ok())
    }

    fn spawn(&mut self, task: impl Future<Output = Option<Event>> + Send + 'static) {
        let events = self.events.clone();
        self.tasks.spawn(async move {
            if let Some(event) = task.await {
                // The loop has ended: nobody needs to know any more.
                let _ = events.send(event).await;
            }
        });
    }

    /// Closes every connection and ends every task.
    pub async fn rest(&mut self) {
        self.end().await;
        self.store.close().await;
    }

    /// The same, when nobody will want to know what is stored.
    pub async fn rest_for_good(&mut self) {
        self.end().await;
        self.store.discard().await;
    }

    async fn end(&mut self) {
        self.web.fetcher.close_all().await;
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
    }
}
