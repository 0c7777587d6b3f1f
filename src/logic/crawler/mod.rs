//! The one room that knows the others. Facts come in as [`Event`]s, wishes go out as [`Command`]s; nothing here touches the world.
//!
//! * `arrival`: a URL is named → which host, which address, which subnet, whose? → to its owner
//! * `placing`: whose is this address, and who decides if it is nobody's?
//! * `settlement`, `probing`, `claiming`: nobody's? → who is nearest? → a claim
//! * `admission`, `visiting`: ours → seen test → frontier → fetch → links → arrival
//! * `revisiting`: the next run, which asks only for what changed
//! * `journaling`: what happened is stored, copied to keepers, recorded
//! * `migrating`, `moving`: is a subnet better off elsewhere, and how does it get there?
//! * `members`, `spread`, `succession`: who is alive, what everybody knows, who takes over
//! * `versioning`: which hierarchy is used
//! * `telling`: what people are told

mod admission;
mod arrival;
mod claiming;
mod counters;
mod distances;
pub mod event;
mod fronting;
mod journaling;
mod landing;
mod looking;
pub mod members;
pub mod migrating;
pub mod moving;
mod placing;
mod probing;
mod revisiting;
mod robots;
mod search;
mod settlement;
mod spread;
mod succession;
pub mod telling;
pub mod versioning;
mod visiting;

use crate::{
    logic::{
        clock_cache::shadow::ShadowedCache,
        contacts::Contacts,
        delegation::{Delegated, Knowledge, Verdict},
        front::{Front, Politeness},
        hierarchy::Hierarchy,
        keeping::Keeping,
        locator::Locator,
        membership::{Member, Membership, MembershipConfig, Roster, RosterConfig},
        newcomers::Newcomers,
        outbox::Outbox,
        ownership::Ownership,
        scope::Scope,
        site::{Site, SiteRules},
        tally::{RollUps, Tally},
    },
    model::{
        access_point::AccessPoint,
        claim::SignedClaim,
        fetch::{ProbeKind, ProbeTarget},
        fingerprint::FingerprintKey,
        journal::{JournalKey, JournalRow},
        message::Request,
        receipt::SignedReceipt,
        subnet::Subnet,
        time::{Millis, Moment, Now},
        url::{Host, PageUrl},
    },
};
pub use counters::Counters;
use ed25519_dalek::SigningKey;
use event::{Command, Event};
pub use search::Policy;
use search::Search;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
    sync::Arc,
};

/// How often time is looked at even if nothing happens.
pub const TICK: Millis = 100;

/// URLs on their way to owners beyond which nothing new is fetched: back-pressure.
pub const MOST_OUTGOING: usize = 200_000;

/// How this access point crawls.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Depth, budget, product token.
    pub rules: SiteRules,
    /// Which external hosts become starting hosts.
    pub scope: Scope,
    /// How patient with servers.
    pub politeness: Politeness,
    /// By which procedure nobody's subnets are given away.
    pub policy: Policy,
    /// How subnets move to better owners.
    pub migration: migrating::Migration,
    /// How nearness is measured: downloads are timed alike.
    pub probe: ProbeKind,
    /// The port of a web server at our own address, for other members to time the way by.
    pub home_port: Option<u16>,
    /// Delegation procedures at once.
    pub settle_at_once: usize,
    /// Contacts by probes that one subnet may get from the swarm in thirty days, as far as this access point knows.
    pub contacts_per_subnet: u32,
    /// When a tree is visited again after its run began.
    pub revisit: Millis,
    /// URLs that may wait here, all sites together.
    pub most_waiting: usize,
    /// URLs of all sites together that wait in memory; the others wait on disk.
    pub most_near: usize,
    /// Entries of each CLOCK cache.
    pub cache_entries: usize,
    /// This access point's own addresses: their subnets are its own (IPMicra §4.1).
    pub own_addresses: Vec<IpAddr>,
    /// Whether there is anybody to join: then nothing is fetched before the first comparison of claims.
    pub joins: bool,
    /// Whether a swarm has let us in, or began here. If not, nothing is fetched however long nobody answers.
    pub member: bool,
    /// SWIM's times.
    pub membership: MembershipConfig,
    /// How long the swarm waits.
    pub roster: RosterConfig,
}

/// Who this access point is, and what it remembers of its last life.
pub struct Identity {
    /// Signs its claims.
    pub key: SigningKey,
    /// Grows with each start.
    pub incarnation: u64,
    /// Where others reach it.
    pub addresses: Vec<String>,
    /// The swarm's fingerprint key.
    pub fingerprints: FingerprintKey,
    /// Claims known at the last stop, ours and others'.
    pub claims: Vec<SignedClaim>,
    /// The settled members at the last stop.
    pub members: BTreeSet<AccessPoint>,
    /// The pages of the book of contacts, as [`Command::KeepContacts`] had them stored.
    pub contacts: Vec<Vec<u8>>,
}

/// A question of ours that is not answered yet.
#[derive(Debug)]
enum Pending {
    Locate(Host),
    Settle,
    Probe { subnet: Subnet },
    Award { subnet: Subnet },
    Offer { subnet: Subnet },
    HandOff,
    Compare,
}

/// A delegation procedure that we run as the subnet's steward.
#[derive(Debug)]
struct Procedure {
    search: Search,
    target: ProbeTarget,
    state: ProcedureState,
    /// How often it was awarded.
    awards: u32,
    /// Who was chosen and said no: they are about to leave.
    unwilling: BTreeSet<AccessPoint>,
    /// Probes that it took.
    contacts: u16,
    /// Their receipts, after those of a procedure before this one.
    chain: Vec<SignedReceipt>,
}

#[derive(Debug, PartialEq, Eq)]
enum ProcedureState {
    /// The address rests until then; afterwards the next step.
    Resting(Moment),
    /// This access point probes.
    Probing(AccessPoint, Moment),
    /// Awarded; if no claim is seen by then, the chosen one is reminded.
    Awarded(Moment),
    /// To be awarded to the same one again then.
    Awarding(Verdict, Moment),
}

/// What a hand-off or a seed waits for before it is acknowledged.
#[derive(Debug)]
struct Acknowledgement {
    reply: admission::Reply,
    /// Journals that must be recorded up to there.
    needs: Vec<(JournalKey, u64)>,
}

/// One access point's mind.
pub struct Crawler {
    me: AccessPoint,
    key: SigningKey,
    secret: FingerprintKey,
    settings: Settings,
    hierarchy: Arc<Hierarchy>,

    membership: Membership,
    roster: Roster,
    incarnations: BTreeMap<AccessPoint, (u64, Vec<String>)>,

    ownership: Ownership,
    delegated: Delegated,
    procedures: BTreeMap<Subnet, Procedure>,
    settle_queue: VecDeque<(Subnet, ProbeTarget)>,
    knowledge: Knowledge,
    distancing: distances::Distancing,
    contacts: Contacts,
    settle_asked: BTreeMap<Subnet, Moment>,
    /// Addresses without an owner whose guardian we are.
    lent: BTreeMap<IpAddr, placing::Loan>,
    /// Probes that run here, by question.
    probing: BTreeMap<u64, probing::Probing>,
    /// Subnets that were probed a moment ago: their addresses rest.
    rests: BTreeMap<Subnet, Moment>,
    /// New claims of ours that are not acted on yet, and since when they have been watched.
    watched: BTreeMap<Subnet, claiming::Watched>,
    unstored_claims: BTreeMap<u64, Vec<SignedClaim>>,
    news: BTreeMap<Subnet, SignedClaim>,

    locator: Locator,
    newcomers: Newcomers,
    outbox: Outbox,
    sites: BTreeMap<Host, Site>,
    by_subnet: BTreeMap<Subnet, BTreeSet<Host>>,
    front: Front,
    /// URLs that wait, counted a moment ago.
    waiting: usize,
    /// Whether the disk has room.
    room: bool,
    in_flight: BTreeMap<IpAddr, Host>,
    /// Which page of whom is being read while the address may be asked for another.
    landed: BTreeMap<IpAddr, (Host, PageUrl)>,
    met_frontier: ShadowedCache,
    met_outgoing: ShadowedCache,
    loading: BTreeMap<Subnet, succession::Loading>,
    moves: moving::Moves,
    migrating: migrating::Migrating,
    awakening: BTreeMap<u64, Host>,

    rows: Vec<JournalRow>,
    rows_since: Option<Moment>,
    row_outgoing: Vec<crate::logic::outbox::Item>,
    appends: BTreeMap<u64, journaling::Appending>,
    keeping: Keeping,
    /// Keepers that did not take what was sent, and when they are tried again.
    copy_again: BTreeMap<AccessPoint, Moment>,
    acknowledgements: Vec<Acknowledgement>,
    forwarding: BTreeMap<JournalKey, journaling::Forwarding>,

    tally: Tally,
    dirty: BTreeSet<Host>,
    /// Journals of earlier runs, dropped when the newer run is complete.
    superseded: BTreeMap<Host, JournalKey>,
    roll_ups: RollUps,
    /// Which hierarchies are at hand; none if the process did not say.
    shelf: Option<versioning::Shelf>,
    roll_up_due: Moment,
    roll_up_version: u64,
    roll_up_changed: bool,
    /// Members that we count, as told in the last roll-up.
    sure_of: usize,

    seen_pending: BTreeMap<u64, admission::SeenPurpose>,
    pending: BTreeMap<u64, Pending>,
    next_number: u64,
    next_site: u64,
    handoff_scope: u64,

    dead_since: BTreeMap<AccessPoint, Moment>,
    freed: BTreeMap<Subnet, Moment>,
    /// Claims to what others left that are being stored.
    inheriting: BTreeSet<(Subnet, u64)>,
    parting_since: Option<Moment>,
    releasing: bool,

    /// When the living last were others than before; none if they never were.
    members_changed_at: Option<Moment>,
    started: Moment,
    now: Now,
    synced: bool,
    draining: bool,
    leaving: bool,
    finished: bool,
    rounds: u64,
    tick_due: Moment,
    compare_due: Moment,
    news_due: Moment,
    counters: Counters,
    commands: VecDeque<Command>,
}

impl Crawler {
    /// Wakes up: remembers its claims, asks for the journals of what it owns, claims its own subnet when it may.
    pub fn new(identity: Identity, settings: Settings, hierarchy: Arc<Hierarchy>, now: Now) -> Crawler {
        let me = AccessPoint(identity.key.verifying_key().to_bytes());
        let member = Member::new(me, identity.incarnation, identity.addresses);
        // Each life counts its sites anew; the incarnation keeps their fingerprints apart from those of the lives before.
        let handoff_scope = identity.incarnation << 32;
        let mut crawler = Crawler {
            me,
            key: identity.key,
            secret: identity.fingerprints,
            hierarchy,
            membership: Membership::new(member, settings.membership.clone(), identity.incarnation),
            roster: Roster::new(me, settings.roster.clone(), now.moment, &identity.members),
            incarnations: BTreeMap::new(),
            ownership: Ownership::default(),
            delegated: Delegated::default(),
            procedures: BTreeMap::new(),
            settle_queue: VecDeque::new(),
            knowledge: Knowledge::new(),
            distancing: distances::Distancing::default(),
            contacts: Contacts::default(),
            settle_asked: BTreeMap::new(),
            lent: BTreeMap::new(),
            probing: BTreeMap::new(),
            rests: BTreeMap::new(),
            watched: BTreeMap::new(),
            unstored_claims: BTreeMap::new(),
            news: BTreeMap::new(),
            locator: Locator::default(),
            newcomers: Newcomers::default(),
            outbox: Outbox::default(),
            sites: BTreeMap::new(),
            by_subnet: BTreeMap::new(),
            front: Front::new(settings.politeness.clone()),
            waiting: 0,
            room: true,
            in_flight: BTreeMap::new(),
            landed: BTreeMap::new(),
            met_frontier: ShadowedCache::with_capacity(settings.cache_entries),
            met_outgoing: ShadowedCache::with_capacity(settings.cache_entries),
            loading: BTreeMap::new(),
            moves: moving::Moves::default(),
            migrating: migrating::Migrating::default(),
            awakening: BTreeMap::new(),
            rows: Vec::new(),
            rows_since: None,
            row_outgoing: Vec::new(),
            appends: BTreeMap::new(),
            keeping: Keeping::default(),
            copy_again: BTreeMap::new(),
            acknowledgements: Vec::new(),
            forwarding: BTreeMap::new(),
            tally: Tally::default(),
            dirty: BTreeSet::new(),
            superseded: BTreeMap::new(),
            roll_ups: RollUps::default(),
            shelf: None,
            roll_up_due: now.moment,
            roll_up_version: 0,
            roll_up_changed: true,
            sure_of: 1,
            seen_pending: BTreeMap::new(),
            pending: BTreeMap::new(),
            next_number: 1,
            next_site: handoff_scope + 1,
            handoff_scope,
            dead_since: BTreeMap::new(),
            freed: BTreeMap::new(),
            inheriting: BTreeSet::new(),
            parting_since: None,
            releasing: false,
            members_changed_at: None,
            started: now.moment,
            now,
            synced: !settings.joins && identity.members.len() < 2,
            draining: false,
            leaving: false,
            finished: false,
            rounds: 0,
            tick_due: now.moment,
            compare_due: now.moment,
            news_due: now.moment,
            counters: Counters::default(),
            commands: VecDeque::new(),
            settings,
        };
        for page in &identity.contacts {
            crawler.contacts.recall(page, now.wall);
        }
        crawler.introduce_myself();
        for proof in identity.claims {
            if let Ok(claim) = proof.read() {
                crawler.hold(claim, proof);
            }
        }
        let mine: Vec<_> = crawler.ownership.held_by(&me).collect();
        for subnet in mine {
            crawler.load(subnet, BTreeSet::new());
        }
        crawler
    }

    /// Takes in one fact; afterwards [`Crawler::next_command`] has what is to be done.
    pub fn handle(&mut self, now: Now, event: Event) {
        self.now = now;
        match event {
            Event::Tick => {}
            Event::Room(room) => self.room = room,
            Event::Seeds(urls) => self.seeds(urls),
            Event::Wanted(host) => self.find(&host),
            Event::Leave => self.leave(),
            Event::Drain => self.draining = true,
            Event::Move { subnet, to } => self.hand_over(subnet, to, "its operator gave it away".to_owned()),
            Event::Listening(address) => self.listening(address),
            Event::Met { access_point, incarnation, addresses } => self.met(access_point, incarnation, addresses),
            Event::Asked { from, ticket, request } => self.asked(from, ticket, request),
            Event::Answered { question, from, answer } => self.answered(question, from, answer),
            Event::Gossiped(gossip) => self.gossiped(gossip),
            Event::Distance { to, rtt_us, remote } => self.distance_measured(to, rtt_us, remote),
            Event::Resolved { host, answer } => self.resolved(host, answer),
            Event::Probed { question, report } => self.probed_here(question, report),
            Event::Landed { address, took } => self.landed(address, took),
            Event::Fetched { address, report } => self.fetched(address, *report, None),
            Event::Revisited { address, report, former } => self.fetched(address, *report, former.map(|former| *former)),
            Event::FormerLoaded { site, host, pages } => self.former_loaded(site, &host, pages),
            Event::Seen { ticket, answers } => self.seen(ticket, answers),
            Event::Children { ticket, children } => self.children(ticket, children),
            Event::CutTaken { ticket, urls } => self.cut_taken(ticket, urls),
            Event::Stored { receipt } => self.stored(receipt),
            Event::Copied { to, sent, heads } => self.copied(to, sent, heads),
            Event::Recovered { subnet, from, journals } => self.recovered(subnet, from, journals),
            Event::Loaded { subnet, journals } => self.loaded(subnet, journals),
            Event::SeenLoaded { site } => self.awake(site),
            Event::Hierarchy(hierarchy) => self.change_hierarchy(hierarchy),
            Event::AtHand(at_hand) => self.at_hand(at_hand),
            Event::Given { edition, hierarchy } => self.given(edition, hierarchy),
            Event::EditionFound { edition, found, hierarchy, wrong } => self.edition_found(edition, found, hierarchy, wrong),
        }
        if now.moment >= self.tick_due {
            self.tick_due = now.moment.after(TICK);
            self.tick();
        }
        self.visit();
    }

    /// What happens whether or not anything happens.
    fn tick(&mut self) {
        self.rounds += 1;
        if self.rounds.is_multiple_of(10) {
            self.waiting = self.sites.values().map(|site| site.frontier.len()).sum();
        }
        self.tick_members();
        self.tick_succession();
        self.tick_moves();
        self.tick_load();
        self.tick_settlement();
        self.route();
        self.tick_journals();
        self.tick_spread();
        self.tick_runs();
        self.tick_editions();
        if self.rounds.is_multiple_of(600) {
            self.front.tidy(self.now.moment);
            self.end_loans();
            self.rests.retain(|_, until| *until > self.now.moment);
            self.contacts.tidy(self.now.wall);
        }
        self.keep_contacts();
        self.tick_end();
    }

    /// The next wish, oldest first.
    pub fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// When to call again with [`Event::Tick`], if nothing happens before.
    pub fn wake_at(&self) -> Moment {
        self.front.next_due().map_or(self.tick_due, |due| due.min(self.tick_due))
    }

    /// This access point.
    pub fn me(&self) -> AccessPoint {
        self.me
    }

    fn ask(&mut self, to: AccessPoint, pending: Pending, request: Request) {
        let question = self.number();
        self.pending.insert(question, pending);
        self.commands.push_back(Command::Ask { to, question, request });
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn live(&self) -> Vec<AccessPoint> {
        self.roster.live()
    }
}
