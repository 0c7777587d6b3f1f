//! The simulated swarm and its clock: one queue of events in virtual time, and the faults that an experiment can switch on.

use crate::swarm::clocks::wall_time;
use crate::swarm::disk::{Disk, Writes};
use crate::swarm::faults::Faults;
use crate::swarm::ledger::Ledger;
use crate::swarm::network::Exchange;
use crate::swarm::records::Records;
use crate::swarm::sim_event::{Rank, SimEvent, SimEventKind};
use crate::web::table::TableWeb;
use ed25519_dalek::SigningKey;
use nearcrawl_core::{
    crawler::{Crawler, Identity, Settings},
    event::{Command, DiskRoom, Event},
    hierarchy_version::machine::AtHand,
};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{Gate, SignedAdmission},
    edition::Edition,
    fingerprint::FingerprintKey,
    ids::{QuestionId, Ticket, TransferId},
    opt_out::OptOutKey,
    replica::StoreId,
    subnet::Subnet,
    summary::SwarmResults,
    time::{Millis, Moment, Now, WallTime},
    url::PageUrl,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

/// How often an access point that starts dials until another answers.
const DIAL_AGAIN: Millis = 5_000;

/// How often the settled members are written to disk.
const SAVE_MEMBERS: Millis = 1_000;

/// A world's constants.
#[derive(Clone)]
pub struct WorldConfig {
    /// Of everything random.
    pub seed: u64,
    /// How each access point crawls; `own_addresses` and `joins` are set for each.
    pub settings: Settings,
    /// Which subnets there are: distances follow from this one, and access points use it unless they are given another.
    pub hierarchy: Arc<Hierarchy>,
    /// Where each access point stands, between 0 and 100: the way to a server takes as long as the distance.
    pub places: Vec<u8>,
}

/// How far it is in a world whose distances were measured somewhere.
pub trait Latencies {
    /// From an access point, by its number, to a server and back, in microseconds.
    fn to_server(&self, from: usize, address: IpAddr) -> u32;

    /// From one access point to another and back, in microseconds.
    fn between(&self, one: usize, other: usize) -> u32;
}

/// One access point: what runs, and what is on its disk.
pub(super) struct Node {
    pub(super) number: u32,
    /// Its key's name: what members call it. A process with a copied key has the same one, and is kept under another name.
    pub(super) identity: AccessPoint,
    /// Processes that its disk does not tell of, because it was lost meanwhile.
    pub(super) forgotten: u64,
    pub(super) place: u8,
    pub(super) key: SigningKey,
    pub(super) crawler: Option<Crawler>,
    pub(super) life: u64,
    pub(super) disk: Disk,
    pub(super) hierarchy: Arc<Hierarchy>,
    pub(super) wake: Option<Moment>,
    pub(super) saved: Moment,
    pub(super) state_writes: Writes,
    pub(super) cache_free: Moment,
    /// When what the present event orders of the cache will be done; none if it ordered nothing yet.
    pub(super) cache_batch: Option<Moment>,
    /// Questions of the crawler on their way.
    pub(super) waiting: BTreeMap<u64, QuestionId>,
    /// Exchanges of the process, each with whom it is.
    pub(super) exchanges: BTreeMap<TransferId, (AccessPoint, Exchange)>,
    /// Who asked, in which of its processes, and the number and class of the question.
    pub(super) tickets: BTreeMap<Ticket, (AccessPoint, u64, u64, u8)>,
    pub(super) linked: BTreeSet<AccessPoint>,
    /// What it shows others when it connects.
    pub(super) certificate: Option<SignedAdmission>,
    /// Whom it lets in.
    pub(super) gate: Arc<Gate>,
    /// Contacts under way, by address, as places in the ledger.
    pub(super) contacts: BTreeMap<IpAddr, usize>,
    /// Contacts that are over, but whose pages are still being read.
    pub(super) bodies_received: BTreeSet<usize>,
}

impl Node {
    /// One that has never run.
    pub(super) fn new(number: u32, place: u8, key: SigningKey, hierarchy: Arc<Hierarchy>) -> Node {
        Node {
            number,
            identity: AccessPoint(key.verifying_key().to_bytes()),
            forgotten: 0,
            place,
            key,
            crawler: None,
            life: 0,
            disk: Disk::default(),
            hierarchy,
            wake: None,
            saved: Moment(0),
            state_writes: Writes::default(),
            cache_free: Moment(0),
            cache_batch: None,
            waiting: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            tickets: BTreeMap::new(),
            linked: BTreeSet::new(),
            certificate: None,
            gate: Arc::default(),
            contacts: BTreeMap::new(),
            bodies_received: BTreeSet::new(),
        }
    }

    /// How often it has started, as far as its disk knows.
    pub(super) fn incarnation(&self) -> u64 {
        self.life - self.forgotten
    }
}

/// The key of an access point, by its number.
pub(super) fn key_of(number: u32) -> SigningKey {
    let [high @ .., low] = (number + 1).to_be_bytes();
    let mut bytes = [low; 32];
    for (byte, more) in bytes.iter_mut().zip(high) {
        *byte ^= more;
    }
    SigningKey::from_bytes(&bytes)
}

/// The address at which an access point is: each has a /24 of its own.
pub(crate) fn own_address(number: usize) -> IpAddr {
    let bits = 0x1e00_0001 + ((number as u32) << 8);
    IpAddr::from(Ipv4Addr::from(bits))
}

/// What a hierarchy is called among members.
pub(super) fn edition_of(hierarchy: &Hierarchy) -> Edition {
    let label = hierarchy.label();
    Edition { hash: label.hash, built: label.built }
}

/// A swarm, its web and its clock.
pub struct World {
    pub(super) config: WorldConfig,
    pub(super) web: TableWeb,
    pub(super) nodes: BTreeMap<AccessPoint, Node>,
    pub(super) members: Vec<AccessPoint>,
    pub(super) now: Moment,
    /// What will happen, by time, access point and kind; only what is alike in all of these goes by the order in which it was ordered.
    /// Boxed, because what is put into the middle of a map moves all behind it.
    pub(super) queue: BTreeMap<(Moment, u32, Rank, u64), Box<SimEvent>>,
    pub(super) order: u64,
    pub(super) wires: u64,
    /// Messages so far, by sender, receiver and class.
    pub(super) sent: BTreeMap<(u32, u32, u8), u64>,
    pub(super) groups: BTreeMap<AccessPoint, usize>,
    pub(super) detours: BTreeMap<AccessPoint, u32>,
    /// What a scenario does to network, processes, clocks and disks.
    pub(super) faults: Faults,
    /// What a scenario is judged by; none if nobody asks.
    pub(crate) records: Option<Box<Records>>,
    /// Distances; none if they follow from the places.
    pub latencies: Option<Box<dyn Latencies>>,
    /// The share of questions and answers that get lost.
    pub loss: f64,
    /// The share of gossip that gets lost, at each receiver.
    pub gossip_loss: f64,
    /// How long a page is read after it came; meanwhile the next may be asked for.
    pub reading: Millis,
    /// Servers that take so long to answer for a page, in milliseconds, beside the way.
    pub(crate) slow: BTreeMap<IpAddr, Millis>,
    /// For how long the name servers' answers hold, in milliseconds.
    pub names_hold: Millis,
    /// Messages that arrived, by sender, receiver and class; none if nobody asks.
    pub(crate) arrivals: Option<BTreeMap<(u32, u32, u8), u64>>,
    /// How many questions of each kind were asked.
    pub questions: BTreeMap<&'static str, u64>,
    /// Editions of the hierarchy that can be fetched from members that announce them. If there are any, members exchange their votes.
    pub editions: BTreeMap<[u8; 32], Arc<Hierarchy>>,
    /// The proofs of opt-outs that can be seen in the DNS and at web servers.
    pub proofs: BTreeSet<OptOutKey>,
    /// What the web servers saw.
    pub ledger: Ledger,
    /// Access points that ended by themselves, after leaving or draining.
    pub ended: BTreeSet<AccessPoint>,
}

impl World {
    /// A world in which no access point runs yet. Access points are numbered as their places are.
    pub fn new(config: WorldConfig, web: TableWeb) -> World {
        let mut nodes = BTreeMap::new();
        let mut members = Vec::new();
        for (number, place) in (0u32..).zip(&config.places) {
            let key = key_of(number);
            let me = AccessPoint(key.verifying_key().to_bytes());
            members.push(me);
            nodes.insert(me, Node::new(number, *place, key, config.hierarchy.clone()));
        }
        World {
            config,
            web,
            nodes,
            members,
            now: Moment(1_000_000),
            queue: BTreeMap::new(),
            order: 0,
            wires: 0,
            sent: BTreeMap::new(),
            groups: BTreeMap::new(),
            detours: BTreeMap::new(),
            faults: Faults::default(),
            records: None,
            latencies: None,
            loss: 0.0,
            gossip_loss: 0.0,
            reading: 0,
            slow: BTreeMap::new(),
            names_hold: 7 * 86_400_000,
            arrivals: None,
            questions: BTreeMap::new(),
            editions: BTreeMap::new(),
            proofs: BTreeSet::new(),
            ledger: Ledger::default(),
            ended: BTreeSet::new(),
        }
    }

    /// The access point with this number, from 0.
    pub fn member(&self, number: usize) -> AccessPoint {
        self.members[number]
    }

    /// This access point is given a certificate, which it shows from its next start on.
    #[cfg(test)]
    pub(crate) fn certify(&mut self, number: usize, shown: SignedAdmission) {
        if let Some(node) = self.nodes.get_mut(&self.members[number]) {
            node.certificate = Some(shown);
        }
    }

    /// The present moment.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// Both clocks of an access point: the simulated time as boot clock and as wall clock, unless a scenario says otherwise.
    pub(super) fn clocks(&self, number: u32) -> Now {
        let now = Now { moment: self.now, wall: WallTime(wall_time(self.now)) };
        self.faults.clocks(number, now)
    }

    /// Starts an access point, for the first time or again, with what is on its disk. All but the first to run join the first.
    pub fn start(&mut self, number: usize) {
        let first = self.members[0];
        self.start_process(self.members[number], first);
    }

    /// Starts a process, which joins `first` unless that is itself. One whose disk is damaged ends at once.
    pub(super) fn start_process(&mut self, me: AccessPoint, first: AccessPoint) {
        let Some(number) = self.nodes.get(&me).map(|node| node.number as usize) else { return };
        if self.nodes.get(&me).is_some_and(|node| node.disk.is_damaged()) {
            return self.ends_damaged(me);
        }
        let now = self.clocks(number as u32);
        let joins = me != first;
        let mut settings = self.config.settings.clone();
        settings.joins = joins;
        settings.founds = !joins;
        settings.own_addresses = vec![own_address(number)];
        let Some(node) = self.nodes.get_mut(&me) else { return };
        let hierarchy = node.hierarchy.clone();
        node.life += 1;
        let identity = Identity {
            key: node.key.clone(),
            incarnation: node.incarnation(),
            addresses: vec![format!("/sim/{number}")],
            fingerprints: FingerprintKey([7; 16]),
            claims: node.disk.claims.values().cloned().collect(),
            members: node.disk.members.clone(),
            voting: node.disk.voting.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            sole: node.identity == me && node.forgotten == 0,
            store: StoreId(node.forgotten + 1),
            contacts: node.disk.contacts.values().cloned().collect(),
            surveys: node.disk.surveys.values().cloned().collect(),
            survey_probes: node.disk.survey_probes.values().cloned().collect(),
            opt_outs: node.disk.opt_outs.values().cloned().collect(),
            admissions: node.disk.admissions.values().cloned().collect(),
            certificate: node.certificate.clone(),
        };
        let mut crawler = Crawler::new(identity, settings, Arc::clone(&hierarchy), now);
        let sizes = node.disk.sizes();
        if !sizes.is_empty() {
            crawler.handle(now, Event::JournalsResized { growth: sizes });
        }
        if !self.editions.is_empty() {
            crawler.handle(now, Event::AtHand(AtHand { uses: edition_of(&hierarchy), given: None, pinned: false }));
        }
        node.crawler = Some(crawler);
        node.wake = None;
        (node.state_writes, node.cache_free) = (Writes::default(), self.now);
        let identity = node.identity;
        let known: Vec<_> = node.disk.members.iter().copied().filter(|member| *member != identity).collect();
        self.ended.remove(&me);
        if joins {
            self.schedule(me, 0, SimEventKind::Dial(first));
        }
        for member in known {
            self.schedule(me, 0, SimEventKind::Dial(member));
        }
        self.tell(me, Event::Reached(vec![format!("/sim/{number}")]));
        if self.faults.disk_is_full(number as u32) {
            self.tell(me, Event::Room(DiskRoom::LittleFree));
        }
    }

    /// Ends an access point as kill -9 does: what is not durable is gone, what is being asked breaks off.
    pub fn kill(&mut self, number: usize) {
        self.stop(self.members[number]);
    }

    pub(super) fn stop(&mut self, who: AccessPoint) {
        let Some(node) = self.nodes.get_mut(&who) else { return };
        node.crawler = None;
        node.life += 1;
        node.waiting.clear();
        node.exchanges.clear();
        node.tickets.clear();
        node.linked.clear();
        node.bodies_received.clear();
        self.faults.stopped(&who);
        for contact in std::mem::take(&mut node.contacts).into_values() {
            if let Some(contact) = self.ledger.contacts.get_mut(contact) {
                contact.end = contact.end.min(self.now);
            }
        }
        for other in self.nodes.values_mut() {
            other.linked.remove(&who);
        }
    }

    /// A process ends because its disk is damaged, and does not start on it again.
    pub(super) fn ends_damaged(&mut self, who: AccessPoint) {
        self.stop(who);
        self.faults.ended_damaged.push(who);
    }

    /// Gives an access point another hierarchy, for now and for its later processes.
    pub fn change_hierarchy(&mut self, number: usize, hierarchy: Arc<Hierarchy>) {
        let who = self.members[number];
        if let Some(node) = self.nodes.get_mut(&who) {
            node.hierarchy = hierarchy.clone();
        }
        self.tell(who, Event::Hierarchy(hierarchy));
    }

    /// The operator of an access point configures another edition.
    pub fn give(&mut self, number: usize, hierarchy: Arc<Hierarchy>) {
        self.tell(self.members[number], Event::Given { edition: edition_of(&hierarchy), hierarchy });
    }

    /// Names starting points to an access point.
    pub fn seed(&mut self, number: usize, urls: Vec<PageUrl>) {
        self.tell(self.members[number], Event::Seeds(urls));
    }

    /// Sends an access point an event that comes from its operator or its machine.
    pub(crate) fn tell_member(&mut self, number: usize, event: Event) {
        self.tell(self.members[number], event);
    }

    /// Has an access point give everything back and go.
    pub fn leave(&mut self, number: usize) {
        self.tell(self.members[number], Event::Leave);
    }

    /// Has an access point stop for a while.
    pub fn drain(&mut self, number: usize) {
        self.tell(self.members[number], Event::Drain);
    }

    /// Has an access point hand a subnet of its own over to another one.
    pub(crate) fn move_subnet(&mut self, from: usize, subnet: Subnet, to: usize) {
        self.tell(self.members[from], Event::Move { subnet, to: self.members[to] });
    }

    /// Cuts the network into parts; those who are not named are a part of their own together.
    pub fn split(&mut self, parts: &[&[usize]]) {
        self.groups.clear();
        for (part, numbers) in parts.iter().enumerate() {
            self.groups.extend(numbers.iter().map(|number| (self.members[*number], part + 1)));
        }
        let groups = self.groups.clone();
        let part = |who: &AccessPoint| groups.get(who).copied().unwrap_or(0);
        for (who, node) in &mut self.nodes {
            node.linked.retain(|other| part(other) == part(who));
        }
    }

    /// Makes the network whole again.
    pub(crate) fn heal(&mut self) {
        self.split(&[]);
    }

    /// Lets so much time pass.
    pub fn run(&mut self, millis: Millis) {
        self.run_until(millis, |_| false);
    }

    /// Lets time pass until something holds, looked at every 100 ms; false if it does not within `limit`.
    pub fn run_until(&mut self, limit: Millis, holds: impl Fn(&World) -> bool) -> bool {
        let end = self.now.after(limit);
        loop {
            if holds(self) {
                return true;
            }
            if self.now >= end {
                return false;
            }
            let step = self.now.after(100).min(end);
            while let Some(entry) = self.queue.first_entry() {
                if entry.key().0 > step {
                    break;
                }
                let ((when, ..), event) = entry.remove_entry();
                self.now = self.now.max(when);
                self.take(*event);
            }
            self.now = step;
        }
    }

    #[cfg(test)]
    /// Lets time pass until something holds, looked at after everything that happens; false if it does not within `limit`.
    pub(crate) fn run_up_to(&mut self, limit: Millis, holds: impl Fn(&World) -> bool) -> bool {
        let end = self.now.after(limit);
        while !holds(self) {
            match self.queue.first_entry() {
                Some(entry) if entry.key().0 <= end => {
                    let ((when, ..), event) = entry.remove_entry();
                    self.now = self.now.max(when);
                    self.take(*event);
                }
                Some(_) | None => return false,
            }
        }
        true
    }

    /// The crawler state of an access point that runs.
    pub fn crawler(&self, number: usize) -> Option<&Crawler> {
        self.nodes.get(&self.members[number])?.crawler.as_ref()
    }

    /// The numbers of those who run.
    pub fn running(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|number| self.crawler(*number).is_some()).collect()
    }

    /// What an access point answers to `results`.
    pub fn results(&self, number: usize) -> Option<SwarmResults> {
        self.crawler(number).map(|crawler| crawler.view().results())
    }

    /// What is on an access point's disk.
    pub fn disk(&self, number: usize) -> Option<&Disk> {
        self.nodes.get(&self.members[number]).map(|node| &node.disk)
    }

    #[cfg(test)]
    /// Who holds a subnet, as each running access point sees it.
    pub(crate) fn owners_of(&self, subnet: &Subnet) -> BTreeSet<Option<AccessPoint>> {
        self.nodes.values().filter_map(|node| node.crawler.as_ref()).map(|c| c.view().claim_of(subnet).map(|claim| claim.owner)).collect()
    }

    /// The way to a server and back, in microseconds.
    pub(crate) fn round_trip_us(&self, from: AccessPoint, address: IpAddr) -> u32 {
        if let (Some(latencies), Some(number)) = (&self.latencies, self.number_of(from)) {
            return latencies.to_server(number, address);
        }
        let bits = match self.config.hierarchy.unit_of(address).first() {
            IpAddr::V4(address) => u32::from(address),
            IpAddr::V6(_) => 0,
        };
        let place = (bits.wrapping_mul(0x9e37_79b1) >> 16) % 101;
        let mine = self.nodes.get(&from).map_or(0, |node| u32::from(node.place));
        4_000 + 800 * mine.abs_diff(place) + self.detours.get(&from).copied().unwrap_or(0)
    }

    pub(super) fn number_of(&self, who: AccessPoint) -> Option<usize> {
        self.nodes.get(&who).map(|node| node.number as usize)
    }

    /// Makes every way from an access point to servers so much longer, in microseconds.
    pub(crate) fn detour(&mut self, number: usize, more_us: u32) {
        self.detours.insert(self.members[number], more_us);
    }

    /// The way from one access point to another and back, in microseconds.
    pub(crate) fn distance_us(&self, one: AccessPoint, other: AccessPoint) -> u32 {
        if let (Some(latencies), Some(one), Some(other)) = (&self.latencies, self.number_of(one), self.number_of(other)) {
            return latencies.between(one, other);
        }
        let place = |who: AccessPoint| self.nodes.get(&who).map_or(0, |node| u32::from(node.place));
        4_000 + 800 * place(one).abs_diff(place(other))
    }

    /// Puts an event of the present process of an access point into the queue, so many milliseconds from now.
    pub(super) fn schedule(&mut self, node: AccessPoint, after: Millis, kind: SimEventKind) {
        let Some(life) = self.nodes.get(&node).map(|node| node.life) else { return };
        self.schedule_for_life(node, life, after, kind);
    }

    pub(super) fn schedule_for_life(&mut self, node: AccessPoint, life: u64, after: Millis, kind: SimEventKind) {
        self.schedule_in_place(node, life, after, None, kind);
    }

    /// The same for the present process, in this place among what is alike and due at the same instant.
    pub(super) fn schedule_behind(&mut self, node: AccessPoint, after: Millis, place: u64, kind: SimEventKind) {
        let Some(life) = self.nodes.get(&node).map(|node| node.life) else { return };
        self.schedule_in_place(node, life, after, Some(place), kind);
    }

    pub(super) fn schedule_in_place(&mut self, node: AccessPoint, life: u64, after: Millis, place: Option<u64>, kind: SimEventKind) {
        self.order += 1;
        let number_of = |who: &AccessPoint| self.nodes.get(who).map_or(u32::MAX, |node| node.number);
        let (sort, concerns, class) = kind.rank(number_of);
        let rank = (sort, place.map_or(concerns, u128::from), class);
        self.queue.insert((self.now.after(after), number_of(&node), rank, self.order), Box::new(SimEvent { node, life, kind }));
    }

    /// Passes an event to an access point's crawler and carries out its commands.
    pub(super) fn tell(&mut self, who: AccessPoint, event: Event) {
        let Some(number) = self.nodes.get(&who).map(|node| node.number) else { return };
        let (now, sim) = (self.clocks(number), self.now);
        let Some(node) = self.nodes.get_mut(&who) else { return };
        let Some(crawler) = node.crawler.as_mut() else { return };
        node.state_writes.next_event();
        node.cache_batch = None;
        let may_record = matches!(event, Event::Copied { .. } | Event::RowsStored { .. });
        match &mut self.records {
            None => crawler.handle(now, event),
            Some(records) => {
                records.timed(|| crawler.handle(now, event));
                if may_record {
                    records.counted(sim, who, |key| crawler.view().recorded(key));
                }
            }
        }
        let mut commands = Vec::new();
        while let Some(command) = crawler.next_command() {
            commands.push(command);
        }
        let wake = self.faults.moment_of(number, crawler.wake_at(), sim).max(sim.after(1));
        if sim.since(node.saved) >= SAVE_MEMBERS {
            node.saved = sim;
            node.disk.members = crawler.view().settled_members();
        }
        if node.wake.is_none_or(|due| wake < due) {
            node.wake = Some(wake);
            self.schedule(who, wake.since(sim), SimEventKind::Wake);
        }
        for command in commands {
            if matches!(command, Command::Finished) {
                self.ended.insert(who);
                self.stop(who);
                return;
            }
            self.perform(who, command);
        }
    }

    pub(super) fn take(&mut self, event: SimEvent) {
        let Some(event) = self.hold(event) else { return };
        let SimEvent { node: who, life, kind } = event;
        let Some(node) = self.nodes.get_mut(&who) else { return };
        if node.life != life || node.crawler.is_none() {
            if let SimEventKind::Asked { from, life, wire, class, .. } = kind {
                // The process has ended: the asker is told so by its own machine.
                self.schedule_for_life(from, life, 20, SimEventKind::Answered { wire, from: who, class, response: None });
            }
            return;
        }
        match kind {
            SimEventKind::Wake => {
                if node.wake.is_some_and(|due| due <= self.now) {
                    node.wake = None;
                    self.tell(who, Event::Tick);
                }
            }
            SimEventKind::Dial(other) => {
                if !self.link(who, other) {
                    self.schedule(who, DIAL_AGAIN, SimEventKind::Dial(other));
                }
            }
            SimEventKind::Event(event) => self.tell(who, *event),
            SimEventKind::Asked { from, life, wire, request, .. } => self.arrived(who, from, life, wire, *request),
            SimEventKind::Answered { wire, from, class, response } => {
                self.answer_arrived(who, wire, from, class, response.map(|response| *response))
            }
            SimEventKind::Gossiped { from, class, gossip } => {
                // A cut that came meanwhile holds it up, too.
                if self.together(from, who) || self.relays(from).is_some_and(|ways| ways.contains_key(&who)) {
                    self.count_arrival(from, who, class);
                    self.tell(who, Event::Gossiped { author: self.identity_of(from), gossip });
                }
            }
            SimEventKind::Stored(command) => self.stored(who, command),
            SimEventKind::Copy(order) => self.copy(who, order),
            SimEventKind::BodyReceived { contact, address, took } => {
                if node.contacts.get(&address) == Some(&contact) {
                    node.contacts.remove(&address);
                    node.bodies_received.insert(contact);
                    self.tell(who, Event::BodyReceived { address, took });
                }
            }
            SimEventKind::Fetched { contact, address, report, previous } => {
                if node.bodies_received.remove(&contact) || node.contacts.get(&address) == Some(&contact) {
                    node.contacts.retain(|_, open| *open != contact);
                    self.tell(who, Event::Revisited { address, report, previous });
                }
            }
        }
    }
}
