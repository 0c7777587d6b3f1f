//! Trial of how long a newcomer takes to get the ownership map, and at what cost: two crawlers and the messages between them.
//!
//! Each message is encoded and decoded as on the wire, and takes half a round trip. What a crawler does with it takes as long as it
//! computes on this machine, one message after the other, so that the time on the trial's clock is what one core and the network need.

use ed25519_dalek::SigningKey;
use nearcrawl_core::{
    crawl::{politeness::Politeness, scope::Scope, site::SiteRules},
    crawler::{Crawler, Identity, Settings, TICK},
    delegation::Policy,
    event::{Command, Event, PeerCommand, StoreCommand},
    membership::{RosterConfig, SwimConfig},
    migration::judge::MigrationSettings,
    routing::locator::MAX_LOOKUPS,
    voting::records,
};
use nearcrawl_hierarchy::{Builder, Hierarchy};
use nearcrawl_model::{
    access_point::{AccessPoint, ShortId},
    claim::{Answer, Claim, ClaimReason, SignedClaim},
    fetch::ProbeKind,
    fingerprint::FingerprintKey,
    ids::{QuestionId, Ticket},
    message::{Gossip, Request, Response},
    subnet::Subnet,
    time::{Millis, Moment, Now, WallTime},
    vote::{AcceptedOwner, Ballot, SignedList, VoterList, Votes, quorum_of, sign_accepted, sign_installed},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc, time::Instant};

/// The most claims of a trial: a map has no more.
pub const MAX_CLAIMS: u32 = 1_000_000;

/// The most voters: those that a daemon has decide.
pub const MAX_VOTERS: u8 = 7;

/// The owners of the claims: members that are silent. With so many of them nobody takes over what they own.
const OWNERS: u8 = 8;

/// When a trial that has come to nothing ends, in milliseconds.
const MAX_TRIAL: Millis = 3_600_000;

/// A trial.
#[derive(Clone, Copy, Debug)]
pub struct MapTrial {
    /// Claims in the map, 1 to [`MAX_CLAIMS`].
    pub claims: u32,
    /// The round-trip time between the two members, in milliseconds.
    pub rtt_ms: u64,
    /// How many voters the claims were decided by, 1 to [`MAX_VOTERS`]: each carries the signatures of their quorum.
    pub voters: u8,
}

/// What was sent to the newcomer's store takes as long as this takes.
pub type StoreClaims<'a> = &'a mut dyn FnMut(Vec<SignedClaim>);

/// What it cost to come from one state to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MapCost {
    /// On the trial's clock, from the newcomer's first question, in milliseconds.
    pub took_ms: u64,
    /// What the newcomer computed, and how long it waited for its store, in milliseconds.
    pub newcomer_ms: u64,
    /// What the answering member computed, in milliseconds.
    pub answering_ms: u64,
    /// The newcomer's questions about the map.
    pub questions: u64,
    /// Their bytes and those of the answers.
    pub bytes: u64,
    /// The longest time that the newcomer computed for one message, in milliseconds.
    pub longest_step_ms: f64,
    /// The same of the answering member.
    pub longest_answer_ms: f64,
}

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MapOutcome {
    /// Claims in the map.
    pub claims: u32,
    /// Between the two members, in milliseconds.
    pub rtt_ms: u64,
    /// By how many voters the claims were decided.
    pub voters: u8,
    /// Memory of a crawler that holds the claims, for each, in bytes; 0 where the allocator does not tell.
    pub memory_bytes_per_claim: u64,
    /// From an empty map until it is acted on.
    pub newcomer: MapCost,
    /// Whether the maps were equal by then.
    pub equal: bool,
    /// A comparison of equal maps.
    pub unchanged: MapCost,
    /// The first comparison after the other member had heard of one newer claim.
    pub one_claim: MapCost,
}

/// How long this thread has computed, in microseconds: what other programs take of the machine is not counted. Where the system does not
/// tell, the time since the first question.
fn computed_us() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: it writes into the variable that it is given.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
    }
    #[cfg(not(target_os = "linux"))]
    {
        static BEGUN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        BEGUN.elapsed().as_micros() as u64
    }
}

/// Bytes that are allocated.
fn allocated() -> u64 {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it reads the allocator's own figures, under its own locks.
        let info = unsafe { libc::mallinfo2() };
        (info.uordblks + info.hblkhd) as u64
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    0
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn access_point(number: u8) -> AccessPoint {
    AccessPoint(key(number).verifying_key().to_bytes())
}

/// The claim to the subnet of this number, as an award after four probes leaves it.
fn signed(number: u32, epoch: u64, voters: &[SigningKey]) -> SignedClaim {
    let owner = 10 + (number % u32::from(OWNERS)) as u8;
    let answers = (1..4).map(|place| Answer { rtt_us: 20_000 + place, prober: ShortId::from(access_point(owner)) }).collect();
    let claim = Claim {
        subnet: Subnet::around(Ipv4Addr::from(0x1000_0000 + (number << 8)).into(), 24),
        epoch,
        owner: access_point(owner),
        rtt_us: Some(20_000),
        runner_up: Some(access_point(9)),
        probes: 4,
        reason: ClaimReason::Awarded,
        released: false,
        answers,
    };
    let what = AcceptedOwner { list: DECIDED_BY, subnet: claim.subnet, epoch, owner: claim.owner, term: 1 };
    let enough = voters.iter().take(quorum_of(voters.len()));
    let votes = Some(Box::new(Votes { list: DECIDED_BY, term: 1, voters: enough.map(|key| what.vote(key)).collect() }));
    SignedClaim { votes, ..SignedClaim::sign(&claim, &key(owner)) }
}

/// The list whose voters accepted the claims.
const DECIDED_BY: u64 = 2;

/// The lists of voters so far: the other member alone, then the voters of the claims, then the other member alone again, so that the
/// newcomer has a lease.
fn lists(voters: &[SigningKey]) -> Vec<SignedList> {
    let founder = key(1 + OTHER as u8);
    let mut lists = vec![SignedList::founded_by(&founder)];
    let alone = [founder];
    for (keys, before) in [(voters, &alone[..]), (&alone[..], voters)] {
        let mut points: Vec<_> = keys.iter().map(|key| AccessPoint(key.verifying_key().to_bytes())).collect();
        points.sort_unstable();
        let list = VoterList { number: lists.len() as u64 + 1, voters: points, age: 0 };
        let ballot = Ballot { round: 0, proposer: access_point(1 + OTHER as u8) };
        let accepted = before.iter().map(|key| sign_accepted(&list, ballot, key)).collect();
        let installed = keys.iter().map(|key| sign_installed(&list, key)).collect();
        lists.push(SignedList { list, ballot, accepted, installed });
    }
    lists
}

fn settings(joins: bool) -> Settings {
    Settings {
        rules: SiteRules { depth: 5, price: Default::default(), pages_per_run: 0, product_token: "nearcrawl".to_owned() },
        scope: Scope::default(),
        politeness: Politeness { min_delay: 500, factor: 10, parallel: 32, per_block: 4 },
        policy: Policy::Nearcrawl { price_us: 5_000 },
        migration: MigrationSettings::default(),
        probe: ProbeKind::Tcp,
        home_port: None,
        max_parallel_rounds: 8,
        contacts_per_subnet: 15,
        ignore_orders_of: Default::default(),
        admission: Default::default(),
        max_lookups: MAX_LOOKUPS,
        revisit: 86_400_000,
        new_hosts: Default::default(),
        max_waiting: 1_000_000,
        max_in_memory: 1_000,
        cache_entries: 1_000,
        max_kept_per_owner: 4 << 30,
        own_addresses: Vec::new(),
        joins,
        founds: !joins,
        member: true,
        membership: SwimConfig::default(),
        roster: RosterConfig::default(),
    }
}

/// What is on its way to a member.
enum Arrival {
    Event(Event),
    Asked { question: QuestionId, about_map: bool, bytes: Vec<u8> },
    Answered { question: QuestionId, about_map: bool, bytes: Vec<u8> },
}

struct Side {
    crawler: Crawler,
    /// Until when it is at what came before, in microseconds.
    busy: u64,
    worked: u64,
    longest: u64,
    /// Questions by their tickets here.
    tickets: BTreeMap<Ticket, (QuestionId, bool)>,
}

struct Exchange<'a> {
    sides: [Side; 2],
    /// In microseconds; the second number keeps the order of what comes at once.
    queue: BTreeMap<(u64, u64), (usize, Arrival)>,
    now: u64,
    order: u64,
    half_rtt: u64,
    /// Questions of the newcomer about the map, and bytes of both ways.
    questions: u64,
    bytes: u64,
    store: StoreClaims<'a>,
    /// What the newcomer has waited for its store, in microseconds.
    stored_us: u64,
}

/// The newcomer and the other member.
const NEWCOMER: usize = 0;
const OTHER: usize = 1;

impl Exchange<'_> {
    fn send(&mut self, to: usize, at: u64, arrival: Arrival) {
        self.order += 1;
        self.queue.insert((at, self.order), (to, arrival));
    }

    /// Until it is so, or too long. Whether it is.
    fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + MAX_TRIAL * 1_000;
        while let Some(((at, _), (who, arrival))) = self.queue.pop_first() {
            self.now = at;
            if at > end {
                return false;
            }
            // It comes to it when it is through with what came before.
            if self.sides[who].busy > at {
                let busy = self.sides[who].busy;
                self.send(who, busy, arrival);
                continue;
            }
            self.deliver(who, arrival);
            if done(self) {
                return true;
            }
        }
        false
    }

    fn deliver(&mut self, who: usize, arrival: Arrival) {
        let (begun, stored) = (computed_us(), self.stored_us);
        let side = &mut self.sides[who];
        let now = Now { moment: Moment(self.now / 1_000), wall: WallTime(1_700_000_000_000 + self.now / 1_000) };
        let from = access_point(2 - who as u8);
        let tick = matches!(arrival, Arrival::Event(Event::Tick));
        let event = match arrival {
            Arrival::Event(event) => event,
            Arrival::Asked { question, about_map, bytes } => {
                self.order += 1;
                let ticket = Ticket(self.order);
                side.tickets.insert(ticket, (question, about_map));
                Event::Asked { from, ticket, request: read(&bytes) }
            }
            Arrival::Answered { question, about_map, bytes } => {
                if about_map && who == NEWCOMER {
                    self.bytes += bytes.len() as u64;
                }
                Event::Answered { question, from, answer: Some(read(&bytes)) }
            }
        };
        side.crawler.handle(now, event);
        let mut sent = Vec::new();
        while let Some(command) = self.sides[who].crawler.next_command() {
            sent.extend(self.perform(who, command));
        }
        let stored = self.stored_us - stored;
        let took = computed_us() - begun + stored;
        let side = &mut self.sides[who];
        (side.worked, side.longest) = (side.worked + took, side.longest.max(took - stored));
        side.busy = self.now + took;
        let arrives = side.busy + self.half_rtt;
        for arrival in sent {
            self.send(1 - who, arrives, arrival);
        }
        if tick {
            let next = (self.now + TICK * 1_000).max(self.sides[who].busy);
            self.send(who, next, Arrival::Event(Event::Tick));
        }
    }

    fn perform(&mut self, who: usize, command: Command) -> Option<Arrival> {
        match command {
            Command::Peers(PeerCommand::Ask { to, question, .. }) if to != access_point(2 - who as u8) => {
                let at = self.now;
                self.send(who, at, Arrival::Event(Event::Answered { question, from: to, answer: None }));
            }
            Command::Peers(PeerCommand::Ask { question, request, .. }) => {
                let bytes = written(&request);
                let about_map = matches!(request, Request::CompareClaims(_) | Request::SendClaims(_));
                if about_map && who == NEWCOMER {
                    self.questions += 1;
                    self.bytes += bytes.len() as u64;
                }
                return Some(Arrival::Asked { question, about_map, bytes });
            }
            Command::Peers(PeerCommand::Answer { ticket, response }) => {
                let (question, about_map) = self.sides[who].tickets.remove(&ticket)?;
                return Some(Arrival::Answered { question, about_map, bytes: written(&response) });
            }
            Command::Peers(PeerCommand::Publish(gossip)) => {
                let (author, gossip) = (access_point(who as u8 + 1), read(&written(&gossip)));
                return Some(Arrival::Event(Event::Gossiped { author, gossip }));
            }
            Command::Store(StoreCommand::StoreClaims { write, claims }) => {
                if who == NEWCOMER {
                    let begun = Instant::now();
                    (self.store)(claims);
                    self.stored_us += begun.elapsed().as_micros() as u64;
                }
                if let Some(write) = write {
                    let at = self.now;
                    self.send(who, at, Arrival::Event(Event::ClaimsStored { write }));
                }
            }
            _ => {}
        }
        None
    }

    /// Whether the newcomer acts on its map: it says so to whoever compares.
    fn is_whole(&mut self) -> bool {
        let now = Now { moment: Moment(self.now / 1_000), wall: WallTime(1_700_000_000_000 + self.now / 1_000) };
        let crawler = &mut self.sides[NEWCOMER].crawler;
        crawler.handle(now, Event::Asked { from: access_point(1), ticket: Ticket(0), request: Request::CompareClaims(Vec::new()) });
        let mut whole = false;
        let mut sent = Vec::new();
        while let Some(command) = self.sides[NEWCOMER].crawler.next_command() {
            match command {
                Command::Peers(PeerCommand::Answer { response: Response::Compared { whole: told, .. }, .. }) => whole = told,
                command => sent.extend(self.perform(NEWCOMER, command)),
            }
        }
        let arrives = self.now + self.half_rtt;
        for arrival in sent {
            self.send(OTHER, arrives, arrival);
        }
        whole
    }

    fn equal(&self) -> bool {
        self.sides[NEWCOMER].crawler.view().map_digest() == self.sides[OTHER].crawler.view().map_digest()
    }

    /// Whether none of the newcomer's questions about the map is under way.
    fn is_answered(&self) -> bool {
        let under_way = |(to, arrival): &(usize, Arrival)| match arrival {
            Arrival::Asked { about_map, .. } => *to == OTHER && *about_map,
            Arrival::Answered { about_map, .. } => *to == NEWCOMER && *about_map,
            Arrival::Event(_) => false,
        };
        !self.queue.values().any(under_way)
    }

    /// What it costs until it is so.
    fn cost(&mut self, done: impl FnMut(&mut Self) -> bool) -> MapCost {
        (self.questions, self.bytes) = (0, 0);
        for side in &mut self.sides {
            (side.worked, side.longest) = (0, 0);
        }
        let begun = self.now;
        self.until(done);
        let ms = |micros: u64| micros as f64 / 1e3;
        let [newcomer, other] = &self.sides;
        MapCost {
            took_ms: (self.now - begun) / 1_000,
            newcomer_ms: newcomer.worked / 1_000,
            answering_ms: other.worked / 1_000,
            questions: self.questions,
            bytes: self.bytes,
            longest_step_ms: ms(newcomer.longest),
            longest_answer_ms: ms(other.longest),
        }
    }
}

#[expect(clippy::expect_used, reason = "these are messages of the program itself")]
fn written(message: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(message).expect("a message always encodes")
}

#[expect(clippy::expect_used, reason = "these are messages of the program itself")]
fn read<T: DeserializeOwned>(bytes: &[u8]) -> T {
    postcard::from_bytes(bytes).expect("what was written can be read")
}

impl MapTrial {
    /// Plays it; `store` gets what the newcomer stores.
    pub fn run(&self, store: StoreClaims<'_>) -> MapOutcome {
        let hierarchy = match Builder::new().finish() {
            Ok(hierarchy) => Arc::new(hierarchy),
            Err(why) => unreachable!("a hierarchy without subnets is whole: {why}"),
        };
        let before = allocated();
        let voters: Vec<_> = (0..self.voters.clamp(1, MAX_VOTERS)).map(|number| key(100 + number)).collect();
        let claims = (0..self.claims).map(|number| signed(number, 1, &voters)).collect();
        let other = side(OTHER, claims, lists(&voters), &hierarchy);
        let memory = allocated().saturating_sub(before);
        let newcomer = side(NEWCOMER, Vec::new(), Vec::new(), &hierarchy);
        let half_rtt = self.rtt_ms * 500;
        let (queue, now, order) = (BTreeMap::new(), 0, 0);
        let mut exchange = Exchange { sides: [newcomer, other], queue, now, order, half_rtt, questions: 0, bytes: 0, store, stored_us: 0 };
        for who in [NEWCOMER, OTHER] {
            let (access_point, addresses) = (access_point(2 - who as u8), Vec::new());
            let connected = Event::Connected { access_point, incarnation: 1, addresses, remote: None };
            exchange.send(who, 0, Arrival::Event(connected));
            exchange.send(who, 0, Arrival::Event(Event::Tick));
        }
        let newcomer = exchange.cost(Exchange::is_whole);
        let equal = exchange.equal();
        let unchanged = exchange.cost(|exchange| exchange.questions > 0 && exchange.is_answered());
        let now = exchange.now;
        let gossiped = Event::Gossiped { author: access_point(2), gossip: Gossip::Claims(vec![signed(self.claims / 2, 2, &voters)]) };
        exchange.send(OTHER, now, Arrival::Event(gossiped));
        exchange.until(|exchange| !exchange.equal());
        let one_claim = exchange.cost(|exchange| exchange.equal());
        MapOutcome {
            claims: self.claims,
            rtt_ms: self.rtt_ms,
            voters: self.voters,
            memory_bytes_per_claim: memory / u64::from(self.claims),
            newcomer,
            equal,
            unchanged,
            one_claim,
        }
    }
}

fn side(who: usize, claims: Vec<SignedClaim>, lists: Vec<SignedList>, hierarchy: &Arc<Hierarchy>) -> Side {
    let number = 1 + who as u8;
    let installed = lists.last().map(|last| records::installed(last.list.number));
    let voting = lists.iter().map(records::list).chain(installed).filter_map(|record| Some((record.key, record.value?)));
    let identity = Identity {
        key: key(number),
        incarnation: 1,
        addresses: Vec::new(),
        fingerprints: FingerprintKey([5; 16]),
        claims,
        members: (0..OWNERS).map(|owner| access_point(10 + owner)).collect(),
        voting: voting.collect(),
        sole: true,
        store: Default::default(),
        contacts: Vec::new(),
        surveys: Vec::new(),
        survey_probes: Vec::new(),
        opt_outs: Vec::new(),
        admissions: Vec::new(),
        certificate: None,
    };
    let now = Now { moment: Moment(0), wall: WallTime(1_700_000_000_000) };
    let crawler = Crawler::new(identity, settings(who == NEWCOMER), hierarchy.clone(), now);
    Side { crawler, busy: 0, worked: 0, longest: 0, tickets: BTreeMap::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_newcomer_gets_the_map_and_then_little_is_asked() {
        let mut stored = BTreeSet::new();
        let outcome =
            MapTrial { claims: 3_000, rtt_ms: 20, voters: 3 }.run(&mut |claims| stored.extend(claims.into_iter().map(|claim| claim.bytes)));
        assert!(outcome.equal && stored.len() >= 3_000, "{} stored: {outcome:?}", stored.len());
        assert!(outcome.newcomer.questions >= 3_000 / 256 && outcome.newcomer.bytes > 3_000 * (150 + 2 * 98), "{outcome:?}");
        assert!(outcome.unchanged.bytes <= 100, "{outcome:?}");
        assert!(outcome.one_claim.questions <= 4 && outcome.one_claim.bytes <= 4_096, "{outcome:?}");
    }
}
