//! The loop of a daemon: one fact at a time to the mind, its wishes to the hands, until it is told to end.

use super::{
    api::Api,
    birth, clock,
    config::{Config, Readers},
    counter::Counter,
    desk::Desk,
    errands::Errand,
    failure::NodeFailure,
    fault::Fault,
    keyfile::{self, Born},
    library::{Beginning, Given, Library},
    metrics::Metrics,
    perform::{Ears, Hands},
    souvenirs::{self, Souvenirs},
    wondering::Wondering,
};
use crate::{
    io::{
        store::Store,
        swarm::{Swarm, SwarmCommand, SwarmEvent, SwarmSecrets},
    },
    logic::{
        crawler::{
            Crawler, Settings,
            event::{Command, Event},
        },
        hierarchy::Hierarchy,
    },
    model::{
        access_point::AccessPoint,
        edition::Edition,
        message::{Gossip, PublicRequest, PublicResponse, Response},
        url::PageUrl,
        view::{RefusedSeed, SeedView, StoreView},
    },
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, oneshot},
    time::{Instant, MissedTickBehavior, interval, sleep, timeout},
};

/// How often the bootstrap members are called while nobody is connected.
const CALL_EVERY: Duration = Duration::from_secs(3);

/// How often it is looked whether the remembered members have changed.
const REMEMBER_EVERY: Duration = Duration::from_secs(5);

/// With less room on the disk than this nothing is fetched, in bytes.
const LEAST_FREE: u64 = 256 << 20;

/// After being told to stop the daemon ends within this time, whatever happens.
const STOP_WITHIN: Duration = Duration::from_secs(40);

/// Questions of errands are numbered apart from the mind's.
const ERRAND: u64 = 1 << 63;

/// Facts that are taken in before the wishes are carried out.
const MOST_AT_ONCE: usize = 64;

/// A running daemon.
struct Daemon {
    config: Config,
    born: Born,
    souvenirs: Souvenirs,
    secrets: Option<SwarmSecrets>,
    library: Library,
    beginning: Beginning,
    store: Store,
    mind: Crawler,
    hands: Hands,
    counter: Counter,
    connected: BTreeSet<AccessPoint>,
    errands: BTreeMap<u64, oneshot::Sender<Option<Response>>>,
    wondering: Wondering,
    next_errand: u64,
    certain: VecDeque<Event>,
    finished: bool,
    fault: Fault,
}

/// Runs a daemon until SIGTERM, Ctrl-C or `leave`.
pub async fn run(config: Config) -> Result<(), NodeFailure> {
    let given = Given::read(&config)?;
    let born = keyfile::init(&config)?;
    let store = birth::store(&config)?;
    let library = Library::open(&config)?;
    let beginning = library.begin(given, &config)?;
    let hierarchy = Arc::clone(&beginning.hierarchy);
    let souvenirs = souvenirs::recall(&store).await?;
    let mut secrets = souvenirs.secrets;
    if secrets.is_none() && config.swarm.bootstrap.is_empty() {
        let new = birth::new_secrets()?;
        souvenirs::keep_secrets(&store, &new).await?;
        secrets = Some(new);
    }
    let swarm_config = birth::swarm_config(&config, secrets, &hierarchy, souvenirs.incarnation)?;
    let (swarm, swarm_events) = Swarm::start(swarm_config, born.seed)?;
    let api = match config.api.listen {
        Some(listen) => Some(Api::bind(listen).await?),
        None => None,
    };
    // Until a swarm has let us in there is no key; nothing is fetched before, so any will do.
    let provisional = match secrets {
        Some(secrets) => secrets,
        None => birth::new_secrets()?,
    };
    let web = birth::web_hands(&config, provisional.fingerprint_key)?;
    let (mut hands, ears) = Hands::new(web, config.delegation.probe, store.clone(), Some(swarm));
    hands.set_library(library.clone());
    // What the seen set holds of former lives is read back from the journals, under new numbers.
    store.sites_drop_below(souvenirs.incarnation << 32).await?;
    let claims = store.claims_all().await?;
    // The settled members are remembered with this one among them: who was alone has nobody to wait for.
    let joins = !config.swarm.bootstrap.is_empty() || souvenirs.members.iter().any(|member| *member != born.access_point);
    let settings = Settings { member: secrets.is_some(), ..birth::settings(&config, joins) };
    let mut mind = birth::mind(&born, &souvenirs, provisional, claims, settings, Arc::clone(&hierarchy), clock::now());
    mind.handle(clock::now(), Event::AtHand(beginning.at_hand.clone()));
    tracing::info!("access point {}, life {}, {} subnets in the hierarchy", born.access_point, souvenirs.incarnation, hierarchy.len());
    let counter = Counter::new(&config, &hierarchy, secrets);
    let mut daemon = Daemon {
        config,
        born,
        souvenirs,
        secrets,
        library,
        beginning,
        store,
        mind,
        hands,
        counter,
        connected: BTreeSet::new(),
        errands: BTreeMap::new(),
        wondering: Wondering::default(),
        next_errand: ERRAND,
        certain: VecDeque::new(),
        finished: false,
        fault: Fault::of_environment(),
    };
    daemon.serve(api, ears, swarm_events).await
}

impl Daemon {
    async fn serve(&mut self, api: Option<Api>, ears: Ears, swarm: mpsc::Receiver<SwarmEvent>) -> Result<(), NodeFailure> {
        let (desk, questions) = Desk::new();
        let (stop_api, stopped) = oneshot::channel::<()>();
        let serving = api.map(|api| {
            tracing::info!("the page is at http://{}/", api.address());
            tokio::spawn(api.serve(desk.clone(), Arc::new(Metrics::new()), async move {
                let _ = stopped.await;
            }))
        });
        let ended = self.live(ears, swarm, questions).await;
        drop(stop_api);
        if let Some(serving) = serving {
            let _ = timeout(Duration::from_secs(2), serving).await;
        }
        ended
    }

    async fn live(
        &mut self,
        mut ears: Ears,
        mut swarm: mpsc::Receiver<SwarmEvent>,
        mut questions: mpsc::Receiver<super::desk::Asked>,
    ) -> Result<(), NodeFailure> {
        let failed = |_| NodeFailure::Ended("signal handling");
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut hang_up = signal(SignalKind::hangup()).map_err(failed)?;
        let mut call = interval(CALL_EVERY);
        let mut remember = interval(REMEMBER_EVERY);
        let mut watchdog = interval(watchdog_every());
        for timer in [&mut call, &mut remember, &mut watchdog] {
            timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        let (given, mut given_again) = mpsc::channel(1);
        let mut stop_at: Option<Instant> = None;
        if self.secrets.is_some() {
            self.seed_again();
        }
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
        loop {
            self.carry_out();
            self.wondering.settle(&self.mind);
            if self.finished {
                break;
            }
            let wait = Duration::from_millis(self.mind.wake_at().since(clock::now().moment));
            tokio::select! {
                event = ears.events.recv() => {
                    let event = event.ok_or(NodeFailure::Ended("a hand"))?;
                    self.hear(event);
                    for _ in 0..MOST_AT_ONCE {
                        let Ok(event) = ears.events.try_recv() else { break };
                        self.hear(event);
                    }
                }
                outcome = ears.outcomes.recv() => {
                    if let Some(event) = outcome.ok_or(NodeFailure::Ended("the clerk"))?? {
                        self.hear(event);
                    }
                }
                event = swarm.recv() => self.swarm_said(event.ok_or(NodeFailure::Ended("the swarm"))?).await?,
                Some(errand) = ears.errands.recv() => self.run_errand(errand),
                Some(asked) = questions.recv() => self.asked_at_desk(asked).await?,
                _ = sleep(wait) => self.hear(Event::Tick),
                _ = call.tick() => self.call(),
                _ = remember.tick() => self.remember().await?,
                _ = watchdog.tick() => {
                    let _ = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]);
                }
                _ = hang_up.recv() => self.look_again(&given),
                Some((edition, hierarchy)) = given_again.recv() => self.hear(Event::Given { edition, hierarchy }),
                _ = terminate.recv() => stop_at = self.stop(stop_at),
                _ = interrupt.recv() => stop_at = self.stop(stop_at),
                () = until(stop_at) => {
                    tracing::warn!("stopping took too long; what is not recorded will be fetched again");
                    break;
                }
            }
        }
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
        self.remember().await?;
        // What was told last (good-byes, released claims) still has to go out.
        sleep(Duration::from_millis(300)).await;
        self.hands.tell(SwarmCommand::Stop);
        self.hands.rest().await;
        tracing::info!("stopped");
        Ok(())
    }

    fn hear(&mut self, event: Event) {
        self.mind.handle(clock::now(), event);
        self.fault.strike(&self.mind);
    }

    /// Hands the mind's wishes over; what they make certain at once goes back in.
    fn carry_out(&mut self) {
        loop {
            while let Some(command) = self.mind.next_command() {
                self.finished |= matches!(command, Command::Finished);
                self.certain.extend(self.hands.perform(command));
            }
            match self.certain.pop_front() {
                Some(event) => self.hear(event),
                None => break,
            }
        }
    }

    /// SIGHUP: the operator may have put another hierarchy where the configuration names one. The rest of the configuration is read at
    /// the next start.
    fn look_again(&self, given: &mpsc::Sender<(Edition, Arc<Hierarchy>)>) {
        let Some((_, known)) = self.mind.editions() else { return };
        let (library, config, given) = (self.library.clone(), self.config.clone(), given.clone());
        tokio::task::spawn_blocking(move || match library.given_again(&config, &known) {
            Ok(None) => tracing::info!("SIGHUP: the hierarchy is the one that is known"),
            Ok(Some((edition, hierarchy))) => {
                tracing::info!("SIGHUP: the hierarchy {edition} is proposed to the other members");
                // Whoever has just been told one is told the next one at the next signal.
                let _ = given.try_send((edition, hierarchy));
            }
            Err(why) => tracing::error!("SIGHUP: the hierarchy cannot be read, the one in use stays: {why}"),
        });
    }

    /// The first request to stop begins it; a second one ends it.
    fn stop(&mut self, stopping: Option<Instant>) -> Option<Instant> {
        if stopping.is_some() {
            return Some(Instant::now());
        }
        tracing::info!("stopping: finishing what is under way");
        self.hear(Event::Drain);
        Some(Instant::now() + STOP_WITHIN)
    }

    /// Calls the members we know of, while nobody is connected.
    fn call(&mut self) {
        if self.connected.is_empty() {
            for address in self.config.swarm.bootstrap.iter().chain(&self.souvenirs.addresses) {
                self.hands.tell(SwarmCommand::Dial { address: address.clone() });
            }
        }
    }

    /// Members and their addresses, for the next life; and whether the disk has room for it.
    async fn remember(&mut self) -> Result<(), NodeFailure> {
        let free = self.store.free_space().await.unwrap_or(u64::MAX);
        self.hear(Event::Room(free >= LEAST_FREE));
        let members = self.mind.settled_members();
        let addresses = self.mind.member_addresses();
        if members != self.souvenirs.members || addresses != self.souvenirs.addresses {
            if let Err(why) = souvenirs::keep_members(&self.store, &members, &addresses).await {
                // A full disk is no reason to end; it is tried again in a few seconds.
                tracing::warn!("the members could not be stored: {why}");
                return Ok(());
            }
            self.souvenirs.members = members;
            self.souvenirs.addresses = addresses;
        }
        Ok(())
    }

    /// Starting points named here in former lives: their owners know them, or did not hear of them in time.
    fn seed_again(&mut self) {
        if !self.souvenirs.seeds.is_empty() {
            self.hear(Event::Seeds(self.souvenirs.seeds.clone()));
        }
    }

    fn run_errand(&mut self, errand: Errand) {
        self.next_errand += 1;
        let question = self.next_errand;
        if self.hands.tell(SwarmCommand::Ask { to: errand.to, question, request: errand.request }) {
            self.errands.insert(question, errand.reply);
        } else {
            // The errand is over; it will be run again.
            let _ = errand.reply.send(None);
        }
    }

    async fn swarm_said(&mut self, event: SwarmEvent) -> Result<(), NodeFailure> {
        match event {
            SwarmEvent::Listening { address } => {
                tracing::info!("listening at {address}");
                self.counter.listening(&address);
                self.reachable_at(address);
            }
            SwarmEvent::Admitted { swarm, key, by } => {
                tracing::info!("let into the swarm by {by}");
                self.admitted(SwarmSecrets { swarm, fingerprint_key: key }).await?;
            }
            SwarmEvent::Connected { peer, addresses, incarnation, software } => {
                tracing::info!("met {} ({software}, life {incarnation})", peer.short());
                self.connected.insert(peer);
                self.hear(Event::Met { access_point: peer, incarnation, addresses });
            }
            SwarmEvent::Timed { peer, rtt_us, remote } => self.hear(Event::Distance { to: peer, rtt_us, remote }),
            SwarmEvent::Disconnected { peer } => {
                self.connected.remove(&peer);
            }
            SwarmEvent::Asked { from, ticket, request } => self.hear(Event::Asked { from, ticket, request }),
            SwarmEvent::Answered { question, from, result } => match self.errands.remove(&question) {
                Some(reply) => {
                    let _ = reply.send(result.ok());
                }
                None => self.hear(Event::Answered { question, from, answer: result.ok() }),
            },
            // A roll-up is believed of its owner alone, and distances of who measured them; claims carry their owners' signatures.
            SwarmEvent::Gossiped { gossip: Gossip::RollUp(roll_up), author, .. } if roll_up.owner != author => {}
            SwarmEvent::Gossiped { gossip: Gossip::Distances(told), author, .. } if told.from != author => {}
            SwarmEvent::Gossiped { gossip: Gossip::Endorsement(endorsement), author, .. } if endorsement.by != author => {}
            SwarmEvent::Gossiped { gossip, .. } => self.hear(Event::Gossiped(gossip)),
            SwarmEvent::PublicAsked { ticket, request: PublicRequest::Results } => {
                let response = match self.config.swarm.readers {
                    Readers::Anybody => PublicResponse::Results(Box::new(self.mind.results())),
                    Readers::Members | Readers::Nobody => {
                        PublicResponse::Refused("this access point does not answer readers; ask another one".into())
                    }
                };
                self.hands.tell(SwarmCommand::AnswerPublic { ticket, response });
            }
            SwarmEvent::PublicAnswered { .. } => {}
            SwarmEvent::Refused { peer, reason } => tracing::warn!("{} was not let in: {reason}", peer.short()),
            SwarmEvent::RefusedBy { peer, reason } => {
                tracing::warn!("{} does not let us in: {reason}", peer.short());
                self.counter.trouble(format!("{} does not let us in: {reason}", peer.short()));
            }
            SwarmEvent::DialFailed { address, reason } => {
                tracing::debug!("cannot reach {address}: {reason}");
                self.counter.trouble(format!("cannot reach {address}: {reason}"));
            }
        }
        Ok(())
    }

    /// Others reach us where we listen, or where the configuration says instead: behind a router only that is of use to them.
    fn reachable_at(&mut self, listening: String) {
        let advertised = &self.config.swarm.advertise;
        let told = if advertised.is_empty() { vec![listening] } else { advertised.clone() };
        for address in told {
            self.hear(Event::Listening(address));
        }
    }

    /// A swarm let us in: its fingerprint key is ours from now on, so mind and fetcher begin anew with it.
    async fn admitted(&mut self, secrets: SwarmSecrets) -> Result<(), NodeFailure> {
        if self.secrets.is_some() {
            return Ok(());
        }
        souvenirs::keep_secrets(&self.store, &secrets).await?;
        self.secrets = Some(secrets);
        self.hands.set_web(birth::web_hands(&self.config, secrets.fingerprint_key)?);
        let claims = self.store.claims_all().await?;
        let settings = birth::settings(&self.config, true);
        let Beginning { hierarchy, at_hand } = self.beginning.clone();
        self.mind = birth::mind(&self.born, &self.souvenirs, secrets, claims, settings, hierarchy, clock::now());
        self.hear(Event::AtHand(at_hand));
        self.counter.admitted(secrets);
        for address in self.counter.addresses().to_vec() {
            self.reachable_at(address);
        }
        self.seed_again();
        Ok(())
    }

    async fn asked_at_desk(&mut self, (question, reply): super::desk::Asked) -> Result<(), NodeFailure> {
        let unlocated = match &question {
            super::desk::Question::Why(subject) if self.wondering.has_room() => {
                self.mind.unlocated(subject).map(|host| (host, subject.clone()))
            }
            _ => None,
        };
        match unlocated {
            Some((host, subject)) => {
                self.hear(Event::Wanted(host));
                self.wondering.wait(subject, reply);
            }
            None => {
                // An asker who went away is no error.
                let _ = reply.send(self.ask_at_desk(question).await?);
            }
        }
        Ok(())
    }

    async fn ask_at_desk(&mut self, question: super::desk::Question) -> Result<super::desk::Answer, NodeFailure> {
        use super::desk::{Answer, Question};
        match question {
            Question::AddSeeds(urls) => {
                // Persist before we speak.
                self.souvenirs.seeds.extend(urls.iter().filter(|url| !self.souvenirs.seeds.contains(url)).cloned().collect::<Vec<_>>());
                if let Err(why) = souvenirs::keep_seeds(&self.store, &self.souvenirs.seeds).await {
                    let refused = |url: &PageUrl| RefusedSeed { url: url.to_string(), why: format!("could not be stored: {why}") };
                    return Ok(Answer::Seeds(SeedView { accepted: 0, refused: urls.iter().map(refused).collect() }));
                }
                let answer = self.counter.seeds(&self.mind, &urls);
                self.hear(Event::Seeds(urls));
                Ok(Answer::Seeds(answer))
            }
            Question::Move(subnet, to) => {
                let answer = self.counter.moving(&self.mind, subnet, to);
                self.hear(Event::Move { subnet, to });
                Ok(Answer::Moving(answer))
            }
            Question::Leave => {
                let answer = self.counter.leaving(&self.mind);
                self.hear(Event::Leave);
                Ok(Answer::Leaving(answer))
            }
            other => {
                let all = self.store.disk_usage().await.unwrap_or(0);
                let state = self.store.state_usage().await.unwrap_or(0);
                let disk = StoreView { state_bytes: state, cache_bytes: all.saturating_sub(state) };
                Ok(self.counter.answer(&self.mind, &self.hands, disk, other))
            }
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Half of what systemd asks for, or a minute.
fn watchdog_every() -> Duration {
    sd_notify::watchdog_enabled().map_or(Duration::from_secs(60), |within| within / 2)
}
