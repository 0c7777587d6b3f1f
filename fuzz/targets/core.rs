//! Fuzz targets for what members and servers say to an access point, and for what is on its disk.
//!
//! They cover robots.txt, journals, datagrams of the membership, stored records, and whole courses of messages.

use ed25519_dalek::SigningKey;
use nearcrawl_core::{
    crawl::{
        politeness::Politeness,
        scope::Scope,
        site::{Site, SiteRules, previous_run::PreviousRunReader, robots::Robots},
    },
    crawler::{Crawler, Identity, Settings},
    delegation::Policy,
    event::{Command, Event, PeerCommand, StoreCommand, WebCommand},
    membership::{Member, RosterConfig, Swim, SwimConfig},
    voting::records,
};
use nearcrawl_hierarchy::{Builder, FurtherPrefix, Hierarchy};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{AdmissionRule, RootKey},
    claim::{Claim, SignedClaim},
    fetch::{FetchError, LocatedHost, ProbeKind, ProbeReport, ResolveError},
    fingerprint::FingerprintKey,
    ids::{QuestionId, SiteNumber, Ticket},
    journal::{JournalEntry, JournalKey},
    message::{Gossip, Request, Response},
    replica::StoreId,
    subnet::Subnet,
    time::{Moment, Now, WallTime},
    url::PageUrl,
    vote::{AcceptedOwner, Votes},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

crate::targets!("core":
    robots,
    site,
    swim,
    stored,
    course,
);

const KEY: FingerprintKey = FingerprintKey([1; 16]);

/// The first line is a path, the rest the file: never more than the longest rule decides, and what stands behind a rule that holds for
/// everybody changes nothing.
fn robots(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let path = format!("/{}", String::from_utf8_lossy(&bytes[..end]));
    let body = &bytes[(end + 1).min(bytes.len())..];
    for token in ["nearcrawl", "other-bot"] {
        let robots = Robots::parse(body, token);
        assert!(robots.allows("/robots.txt"));
        assert_eq!(robots.allows(&path), Robots::parse(body, token).allows(&path));
        // Line ends of all kinds, and a byte order mark, are the same to everybody.
        let marked = [b"\xef\xbb\xbf", body].concat();
        assert!(body.starts_with(b"\xef\xbb\xbf") || Robots::parse(&marked, token).allows(&path) == robots.allows(&path));
    }
    let closed = [b"User-agent: nearcrawl\nDisallow: /\n\n", &b"#"[..]].concat();
    assert!(!Robots::parse(&closed, "nearcrawl").allows("/x"));
}

fn rules() -> SiteRules {
    SiteRules { depth: 3, price: Default::default(), pages_per_run: 0, product_token: "nearcrawl".to_owned() }
}

/// A site is the fold of its journal: the same journal is the same site, and a plausible one can be folded.
fn site(bytes: &[u8]) {
    let Ok(entries) = postcard::from_bytes::<Vec<JournalEntry>>(bytes) else { return };
    let entries: Vec<JournalEntry> = entries.into_iter().take_while(JournalEntry::is_plausible).collect();
    let Some(JournalEntry::Opened { address, tree, at }) = entries.first() else { return };
    let key = JournalKey { subnet: Subnet::around(*address, 24), host: tree.clone(), run: 1 };
    let fold = || {
        let mut site = Site::open(key.clone(), *address, tree.clone(), SiteNumber(1), *at);
        entries.iter().for_each(|entry| site.apply(entry, &rules(), &KEY));
        site
    };
    let site = fold();
    assert_eq!((site.record.clone(), site.frontier.len()), (fold().record, fold().frontier.len()));
    let _ = site.next(WallTime(at.0.saturating_add(1_000)), &rules(), &KEY);
    let mut previous = PreviousRunReader::new(KEY);
    entries.into_iter().for_each(|entry| drop(previous.read(entry)));
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn member(number: u8) -> AccessPoint {
    AccessPoint(key(number).verifying_key().to_bytes())
}

/// Datagrams of the member 2, each behind its length in one byte: members stay as many as may be, and each is who sent it.
fn swim(bytes: &[u8]) {
    let config = SwimConfig { max_members: 8, ..SwimConfig::default() };
    let mut swim = Swim::new(Member::new(member(1), 1, Vec::new()), config, 1);
    let (mut rest, mut now) = (bytes, Moment(1_000));
    while let Some((length, more)) = rest.split_first() {
        let (datagram, after) = more.split_at(usize::from(*length).min(more.len()));
        let _ = swim.receive(now, member(2), datagram);
        now = now.after(u64::from(*length) * 20);
        swim.tick(now);
        assert!(swim.drain().count() < 1_000);
        assert!(swim.members().count() <= 8, "{} members", swim.members().count());
        assert!(swim.members().all(|member| member.addresses.len() <= 4));
        rest = after;
    }
}

fn settings() -> Settings {
    Settings {
        rules: rules(),
        scope: Scope { tlds: ["ke".to_owned()].into(), ..Scope::default() },
        politeness: Politeness { min_delay: 1_000, factor: 10, parallel: 8, per_block: 4 },
        policy: Policy::Nearcrawl { price_us: 5_000 },
        migration: Default::default(),
        probe: ProbeKind::Tcp,
        home_port: None,
        max_parallel_rounds: 4,
        contacts_per_subnet: 15,
        ignore_orders_of: Default::default(),
        admission: AdmissionRule { swarm: Some(RootKey(key(9).verifying_key().to_bytes())), ..AdmissionRule::default() },
        max_lookups: 8,
        revisit: 30 * 86_400_000,
        new_hosts: Default::default(),
        max_waiting: 1_000,
        max_in_memory: 100,
        cache_entries: 100,
        max_kept_per_owner: 1 << 20,
        own_addresses: Vec::new(),
        joins: false,
        founds: true,
        member: true,
        membership: SwimConfig::default(),
        roster: RosterConfig::default(),
    }
}

static HIERARCHY: LazyLock<Arc<Hierarchy>> = LazyLock::new(|| {
    let mut builder = Builder::new();
    for third in 1..=3 {
        let prefix = format!("9.0.{third}.0/24").parse().expect("a prefix");
        let further = FurtherPrefix { prefix, country: "KE".into(), organisation: format!("museum {third}"), registry: String::new() };
        builder.add_prefix(&further).expect("it can be added");
    }
    Arc::new(builder.finish().expect("it is a hierarchy"))
});

/// What an access point may find on its disk.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Remembered {
    claims: Vec<SignedClaim>,
    signed: Vec<(u8, Claim)>,
    members: BTreeSet<AccessPoint>,
    voting: Vec<(Vec<u8>, Vec<u8>)>,
    contacts: Vec<Vec<u8>>,
    incarnation: u32,
}

/// An access point whose commands are carried out at once, by a store that forgets and members that say nothing of themselves.
struct Played {
    crawler: Crawler,
    now: Now,
    /// Open questions with who was asked.
    asked: Vec<(QuestionId, AccessPoint)>,
}

impl Played {
    fn new(told: Remembered) -> Played {
        let now = Now { moment: Moment(1_000_000), wall: WallTime(1_700_000_000_000) };
        let signed = told.signed.into_iter().map(|(by, claim)| accepted(claim, by)).take(8);
        // What is no page of the book is no survey and no statement either, and the other way round.
        let [surveys, survey_probes, opt_outs, admissions] = std::array::from_fn(|_| told.contacts.clone());
        let identity = Identity {
            key: key(1),
            incarnation: u64::from(told.incarnation),
            addresses: vec!["/ip4/9.9.9.9/tcp/4817".to_owned()],
            fingerprints: KEY,
            claims: told.claims.into_iter().chain(signed).collect(),
            members: told.members,
            voting: told.voting,
            sole: true,
            store: StoreId(1),
            contacts: told.contacts,
            surveys,
            survey_probes,
            opt_outs,
            admissions,
            certificate: None,
        };
        let crawler = Crawler::new(identity, settings(), HIERARCHY.clone(), now);
        let mut played = Played { crawler, now, asked: Vec::new() };
        played.obey();
        played
    }

    fn handle(&mut self, event: Event) {
        self.crawler.handle(self.now, event);
        self.obey();
    }

    fn pass(&mut self, millis: u64) {
        self.now.moment = self.now.moment.after(millis);
        self.now.wall = WallTime(self.now.wall.0.saturating_add(millis));
        self.handle(Event::Tick);
    }

    fn obey(&mut self) {
        for _ in 0..10_000 {
            let Some(command) = self.crawler.next_command() else { return };
            let event = match command {
                Command::Store(command) => stored_at_once(command),
                Command::Web(WebCommand::Probe { question, .. }) => {
                    Some(Event::Probed { question, report: ProbeReport { rtt_us: Err(FetchError::Unreachable), took: 1 } })
                }
                Command::Web(WebCommand::Resolve { host, .. }) => {
                    let address = "9.0.1.1".parse().expect("an address");
                    let named = host.tld() == Some("ke");
                    let located = LocatedHost { host: host.clone(), address, valid_for: 60_000 };
                    Some(Event::Resolved { host, answer: if named { Ok(located) } else { Err(ResolveError::NoSuchName) } })
                }
                Command::Peers(PeerCommand::Ask { to, question, request }) => {
                    check_sent(&request);
                    if question != QuestionId::NO_ANSWER {
                        self.asked.push((question, to));
                    }
                    None
                }
                Command::Peers(PeerCommand::Publish(gossip)) => {
                    check_sent(&gossip);
                    None
                }
                Command::Peers(PeerCommand::Answer { response, .. }) => {
                    check_sent(&response);
                    None
                }
                Command::Peers(PeerCommand::Recover { subnet, host, from }) => {
                    Some(Event::Recovered { subnet, host, from, journals: Some(Vec::new()), bytes: 0 })
                }
                _ => None,
            };
            if let Some(event) = event {
                self.crawler.handle(self.now, event);
            }
        }
        panic!("ten thousand commands follow from one event");
    }
}

/// What is sent can be read, and fits into a message.
fn check_sent<T: Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(message: &T) {
    let bytes = postcard::to_stdvec(message).expect("it can be written");
    assert!(bytes.len() <= 1 << 20, "a message of {} bytes", bytes.len());
    assert_eq!(postcard::from_bytes::<T>(&bytes).as_ref(), Ok(message));
}

fn stored_at_once(command: StoreCommand) -> Option<Event> {
    match command {
        StoreCommand::Append { write, .. } => Some(Event::RowsStored { write, growth: BTreeMap::new() }),
        StoreCommand::StoreClaims { write: Some(write), .. } => Some(Event::ClaimsStored { write }),
        StoreCommand::StoreVoting { write, .. } => Some(Event::VotingStored { write }),
        StoreCommand::KeepRows { ticket, .. } => Some(Event::RowsKept { ticket, heads: Vec::new(), growth: BTreeMap::new() }),
        StoreCommand::Load(subnet) => Some(Event::Loaded { subnet, journals: Vec::new() }),
        StoreCommand::LoadSeen { site, .. } => Some(Event::SeenLoaded { site }),
        StoreCommand::Children { ticket, .. } => Some(Event::Children { ticket, children: Vec::new() }),
        StoreCommand::TakeCut { ticket, pages, .. } => Some(Event::CutTaken { ticket, urls: vec![None; pages.len()] }),
        _ => None,
    }
}

/// A claim by the member with this number, accepted by the founder: it is the only voter.
fn accepted(mut claim: Claim, by: u8) -> SignedClaim {
    claim.owner = member(by);
    let Claim { subnet, epoch, owner, .. } = claim;
    let vote = AcceptedOwner { list: 1, subnet, epoch, owner, term: 1 }.vote(&key(1));
    SignedClaim { votes: Some(Box::new(Votes { list: 1, term: 1, voters: vec![vote] })), ..SignedClaim::sign(&claim, &key(by)) }
}

/// Whatever is on the disk, the access point starts, and goes on.
fn stored(bytes: &[u8]) {
    let Ok(told) = postcard::from_bytes::<Remembered>(bytes) else { return };
    assert!(records::lists_in(&told.voting).len() <= told.voting.len());
    let mut played = Played::new(told);
    for millis in [100, 1_000, 10_000, 60_000] {
        played.pass(millis);
    }
    read_all(&played);
}

/// All that people may ask.
fn read_all(played: &Played) {
    let view = played.crawler.view();
    let _ = (view.members(), view.ownership(None, 100), view.servers(None, 100), view.progress(), view.status(Default::default()));
}

/// What happens to an access point.
#[derive(Debug, Serialize, Deserialize)]
enum Step {
    /// So many milliseconds pass.
    Passes(u16),
    /// A member says hello.
    Connected(u8),
    Asked(u8, Request),
    /// The last question is answered.
    Answered(Option<Response>),
    Gossiped(Gossip),
    /// A member tells a claim that was accepted.
    Claimed(u8, Claim),
    /// A member hands a subnet over.
    Released(u8, Claim),
    Seeds(Vec<PageUrl>),
    /// The journals of a subnet come from a member.
    Recovered(u8, Subnet, Vec<(JournalKey, Vec<JournalEntry>)>),
    Distance(u8, u32),
    Lost(u8),
}

/// Who signs a message of gossip, if it is to be believed.
fn author(gossip: &Gossip) -> AccessPoint {
    match gossip {
        Gossip::Claims(_) => member(2),
        Gossip::RollUp(roll_up) => roll_up.owner,
        Gossip::Endorsement(endorsement) => endorsement.by,
        Gossip::Distances(told) => told.from,
        Gossip::Profile(told) => told.from,
        Gossip::Surveys(_) | Gossip::OptOuts(_) | Gossip::Admissions(_) | Gossip::Leaving => member(2),
    }
}

/// A course of messages: nothing breaks, whatever members say and in whatever order.
fn course(bytes: &[u8]) {
    let Ok(steps) = postcard::from_bytes::<Vec<Step>>(bytes) else { return };
    let mut played = Played::new(Remembered { incarnation: 1, ..Remembered::default() });
    played.pass(60_000);
    for (number, step) in steps.into_iter().take(64).enumerate() {
        let ticket = Ticket(number as u64 + 1);
        match step {
            Step::Passes(millis) => played.pass(u64::from(millis)),
            Step::Connected(by) => {
                played.handle(Event::Connected { access_point: member(by), incarnation: 1, addresses: Vec::new(), remote: None })
            }
            Step::Asked(by, request) => played.handle(Event::Asked { from: member(by), ticket, request }),
            Step::Answered(answer) => {
                if let Some((question, from)) = played.asked.pop() {
                    played.handle(Event::Answered { question, from, answer });
                }
            }
            Step::Gossiped(gossip) => played.handle(Event::Gossiped { author: author(&gossip), gossip }),
            Step::Claimed(by, claim) => {
                let gossip = Gossip::Claims(vec![accepted(claim, by)]);
                played.handle(Event::Gossiped { author: member(by), gossip })
            }
            Step::Released(by, claim) => {
                let request = Request::TakeOver(accepted(Claim { released: true, ..claim }, by));
                played.handle(Event::Asked { from: member(by), ticket, request })
            }
            Step::Seeds(urls) => played.handle(Event::Seeds(urls)),
            Step::Recovered(by, subnet, journals) => {
                played.handle(Event::Recovered { subnet, host: None, from: member(by), journals: Some(journals), bytes: 0 })
            }
            Step::Distance(to, rtt_us) => played.handle(Event::Distance { to: member(to), rtt_us, remote: None }),
            Step::Lost(who) => played.handle(Event::DeclareLost(vec![member(who)])),
        }
    }
    played.pass(1_000);
    read_all(&played);
}
