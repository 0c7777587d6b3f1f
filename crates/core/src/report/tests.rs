//! Tests that reports are true, asked of a crawler whose world is played by hand, one event after another.

mod deaths;
mod estimates;
mod extreme_values;
mod limits;
mod pipelining;
mod robots;
mod sentences;
mod totals;
mod views;

use crate::voting::records;
use crate::{
    crawl::{
        politeness::Politeness,
        scope::{EverInScope, Scope},
        site::SiteRules,
    },
    membership::{Member, Output, RosterConfig, Swim, SwimConfig},
};
use crate::{
    crawler::{Crawler, Identity, Settings},
    delegation::search::Policy,
    event::{Command, Event, PeerCommand, StoreCommand, WebCommand},
};
use ed25519_dalek::SigningKey;
use nearcrawl_hierarchy::{Builder, FurtherPrefix, Hierarchy};
use nearcrawl_model::{
    access_point::AccessPoint,
    address::AddressPolicy,
    claim::{Claim, ClaimReason, SignedClaim},
    fetch::{
        FetchError, FetchOrder, FetchOutcome, FetchPurpose, FetchReport, LocatedHost, PageFacts, ProbeKind, ProbeReport, ResolveError,
    },
    fingerprint::FingerprintKey,
    ids::{QuestionId, SiteNumber, Ticket},
    links::Link,
    message::{Gossip, Request, Response},
    seen::SeenAnswer,
    time::{Millis, Moment, Now, WallTime},
    url::{Host, PageUrl},
    view::{Subject, WhyView},
    vote,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

const FINGERPRINTS: FingerprintKey = FingerprintKey([5; 16]);
const REVISIT: Millis = 7 * 86_400_000;

/// A crawler with what carries its commands out. Answers that a test wants to wait for are kept back.
struct Played {
    crawler: Crawler,
    now: Now,
    names: BTreeMap<Host, IpAddr>,
    seen: BTreeSet<(SiteNumber, u64)>,
    fetches: Vec<FetchOrder>,
    /// Questions to members that want an answer.
    questions: Vec<(AccessPoint, QuestionId, Request)>,
    lookups: Vec<Host>,
    /// Members that answer SWIM.
    answering: BTreeMap<AccessPoint, Swim>,
    /// Whether look-ups wait.
    slow_dns: bool,
    /// What is stored that concerns votes.
    voting: BTreeMap<Vec<u8>, Vec<u8>>,
}

fn settings() -> Settings {
    Settings {
        ignore_orders_of: Default::default(),
        admission: Default::default(),
        rules: SiteRules { depth: 3, price: Default::default(), pages_per_run: 0, product_token: "nearcrawl".to_owned() },
        scope: Scope { tlds: ["ke".to_owned()].into(), denied: [host("bad.ke")].into(), ..Scope::default() },
        politeness: Politeness { min_delay: 1_000, factor: 10, parallel: 8, per_block: 4 },
        policy: Policy::Nearcrawl { price_us: 5_000 },
        migration: Default::default(),
        probe: ProbeKind::Tcp,
        home_port: None,
        max_parallel_rounds: 4,
        contacts_per_subnet: 15,
        max_lookups: crate::routing::locator::MAX_LOOKUPS,
        revisit: REVISIT,
        new_hosts: Default::default(),
        max_waiting: 1_000_000,
        max_in_memory: 1_000,
        cache_entries: 1_000,
        max_kept_per_owner: 1 << 30,
        own_addresses: Vec::new(),
        joins: false,
        founds: true,
        member: true,
        membership: SwimConfig::default(),
        roster: RosterConfig::default(),
    }
}

fn hierarchy() -> Arc<Hierarchy> {
    let mut builder = Builder::new();
    for third in 1..=3 {
        let prefix = format!("9.0.{third}.0/24").parse().unwrap();
        let further = FurtherPrefix { prefix, country: "KE".into(), organisation: format!("museum {third}"), registry: String::new() };
        builder.add_prefix(&further).unwrap();
    }
    Arc::new(builder.finish().unwrap())
}

fn host(text: &str) -> Host {
    text.parse().unwrap()
}

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

/// A claim of another member, accepted by the founder of the swarm: [`Played::alone`] is that one, and its only voter.
fn voted(claim: &Claim, number: u8) -> SignedClaim {
    let Claim { subnet, epoch, owner, .. } = *claim;
    let vote = vote::AcceptedOwner { list: 1, subnet, epoch, owner, term: 1 }.vote(&key(1));
    let votes = Some(Box::new(vote::Votes { list: 1, term: 1, voters: vec![vote] }));
    SignedClaim { votes, ..SignedClaim::sign(claim, &key(number)) }
}

/// What is on the disk of a member of a swarm of five voters.
fn among_five_voters() -> Vec<(Vec<u8>, Vec<u8>)> {
    let founded = vote::SignedList::founded_by(&key(1));
    let mut voters: Vec<_> = (1..=5).map(member).collect();
    voters.sort_unstable();
    let list = vote::VoterList { number: 2, voters, age: 60 };
    let ballot = vote::Ballot { round: 1, proposer: member(1) };
    let installed = (1..=5).map(|number| vote::sign_installed(&list, &key(number))).collect();
    let second = vote::SignedList { accepted: vec![vote::sign_accepted(&list, ballot, &key(1))], installed, ballot, list };
    let stored = [records::list(&founded), records::list(&second), records::installed(2)];
    stored.into_iter().filter_map(|record| Some((record.key, record.value?))).collect()
}

fn member(number: u8) -> AccessPoint {
    AccessPoint(key(number).verifying_key().to_bytes())
}

impl Played {
    /// Alone, with nothing remembered.
    fn alone() -> Played {
        Played::new(settings(), &[])
    }

    fn new(settings: Settings, remembered: &[u8]) -> Played {
        let now = Now { moment: Moment(1_000_000), wall: WallTime(1_700_000_000_000) };
        let identity = Identity {
            key: key(1),
            incarnation: 1,
            addresses: vec!["/ip4/9.9.9.9/tcp/4817".to_owned()],
            fingerprints: FINGERPRINTS,
            claims: Vec::new(),
            members: remembered.iter().map(|number| member(*number)).collect(),
            voting: if remembered.is_empty() { Vec::new() } else { among_five_voters() },
            sole: true,
            store: Default::default(),
            contacts: Vec::new(),
            surveys: Vec::new(),
            survey_probes: Vec::new(),
            opt_outs: Vec::new(),
            admissions: Vec::new(),
            certificate: None,
        };
        let crawler = Crawler::new(identity, settings, hierarchy(), now);
        let names = [("a.ke", "9.0.1.1"), ("b.ke", "9.0.1.2"), ("c.ke", "9.0.2.1")];
        let names = names.map(|(name, address)| (host(name), address.parse().unwrap())).into();
        let (fetches, questions, lookups) = (Vec::new(), Vec::new(), Vec::new());
        let (seen, answering) = (BTreeSet::new(), BTreeMap::new());
        let mut played =
            Played { crawler, now, names, seen, fetches, questions, lookups, answering, slow_dns: false, voting: BTreeMap::new() };
        played.handle(Event::Tick);
        played
    }

    fn handle(&mut self, event: Event) {
        let mut events = vec![event];
        for _ in 0..10_000 {
            let Some(event) = events.pop() else { return };
            self.crawler.handle(self.now, event);
            while let Some(command) = self.crawler.next_command() {
                events.extend(self.perform(command));
            }
        }
        panic!("it does not come to rest");
    }

    fn perform(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::Store(StoreCommand::StoreClaims { write, .. }) => write.map(|write| Event::ClaimsStored { write }),
            Command::Store(StoreCommand::StoreVoting { write, records }) => {
                self.voting.extend(records.into_iter().filter_map(|record| Some((record.key, record.value?))));
                Some(Event::VotingStored { write })
            }
            Command::Store(StoreCommand::Append { write, .. }) => Some(Event::RowsStored { write, growth: BTreeMap::new() }),
            Command::Store(StoreCommand::Load(subnet)) => Some(Event::Loaded { subnet, journals: Vec::new() }),
            Command::Web(WebCommand::Probe { question, .. }) => {
                Some(Event::Probed { question, report: ProbeReport { rtt_us: Ok(8_000), took: 10 } })
            }
            Command::Web(WebCommand::Resolve { host, .. }) if self.slow_dns => {
                self.lookups.push(host);
                None
            }
            Command::Web(WebCommand::Resolve { host, .. }) => Some(self.answer_of_dns(host)),
            Command::Store(StoreCommand::Seen { ticket, batches }) => {
                let answers = batches.iter().map(|batch| {
                    let questions = batch.questions.iter();
                    let new = |print: u64| if self.seen.insert((batch.site, print)) { SeenAnswer::New } else { SeenAnswer::Known };
                    questions.map(|(print, _)| print.0).map(new).collect()
                });
                Some(Event::Seen { ticket, answers: answers.collect() })
            }
            Command::Web(WebCommand::Fetch(order)) => {
                self.fetches.push(order);
                None
            }
            Command::Peers(PeerCommand::Ask { to, request: Request::Swim(bytes), .. }) => {
                if let Some(membership) = self.answering.get_mut(&to) {
                    membership.receive(self.now.moment, member(1), &bytes).unwrap();
                }
                None
            }
            Command::Peers(PeerCommand::Ask { to, question, request }) => {
                self.questions.push((to, question, request));
                None
            }
            _ => None,
        }
    }

    fn answer_of_dns(&self, host: Host) -> Event {
        let address = self.names.get(&host).copied().ok_or(ResolveError::NoSuchName);
        let answer = address.map(|address| LocatedHost { host: host.clone(), address, valid_for: 86_400_000 });
        Event::Resolved { host, answer }
    }

    /// The DNS answers what it kept back.
    fn dns_answers(&mut self) {
        self.slow_dns = false;
        for host in std::mem::take(&mut self.lookups) {
            let answer = self.answer_of_dns(host);
            self.handle(answer);
        }
    }

    /// Time passes, in steps of a tick.
    fn pass(&mut self, millis: Millis) {
        for _ in 0..millis.div_ceil(100) {
            self.now = Now { moment: self.now.moment.after(100), wall: WallTime(self.now.wall.0 + 100) };
            self.handle(Event::Tick);
            self.swim();
        }
    }

    fn seed(&mut self, text: &str) {
        self.handle(Event::Seeds(vec![url(text)]));
    }

    /// The web answers one request: no robots.txt, and pages with these links.
    fn web_answers(&mut self, links: &[&str]) {
        let order = self.fetches.pop().expect("a request is under way");
        let link = |text: &&str| Link { url: url(text), fingerprint: FINGERPRINTS.of(text) };
        let outcome = match order.purpose {
            FetchPurpose::Robots => FetchOutcome::Status(404),
            FetchPurpose::Page => {
                FetchOutcome::Page { status: 200, page: PageFacts { links: links.iter().map(link).collect(), ..PageFacts::default() } }
            }
        };
        let report = FetchReport {
            url: order.url,
            outcome,
            took: 20,
            connect_us: None,
            first_byte_us: Some(9_000),
            wire_bytes: 500,
            software: None,
            retry_after: None,
            facts: Vec::new(),
        };
        self.handle(Event::Fetched { address: order.address, report: Box::new(report) });
    }

    /// Everything under way is done, and time passes, until nothing is left to do.
    fn finish(&mut self, links: &[&str]) {
        for _ in 0..1_000 {
            if self.crawler.view().all_done() {
                return;
            }
            if self.fetches.is_empty() { self.pass(100) } else { self.web_answers(links) }
        }
        panic!("never done: {}", self.crawler.view().activity());
    }

    /// Another member is met, and answers SWIM from now on.
    fn meet(&mut self, number: u8) {
        let addresses = vec![format!("/ip4/9.9.9.{number}/tcp/4817")];
        let other = Member::new(member(number), 1, addresses.clone());
        let mut membership = Swim::new(other, SwimConfig::default(), u64::from(number));
        membership.join(self.now.moment, Member::new(member(1), 1, Vec::new()));
        self.answering.insert(member(number), membership);
        self.handle(Event::Connected { access_point: member(number), incarnation: 1, addresses, remote: None });
        self.pass(3_000);
    }

    /// What the members that answer SWIM have to say by now.
    fn swim(&mut self) {
        let mut said = Vec::new();
        for (from, membership) in &mut self.answering {
            membership.tick(self.now.moment);
            for output in membership.drain() {
                if let Output::Send { to, bytes, .. } = output
                    && to == member(1)
                {
                    said.push(Event::Asked { from: *from, ticket: Ticket(0), request: Request::Swim(bytes) });
                }
            }
        }
        said.into_iter().for_each(|event| self.handle(event));
    }

    /// Another member says that a subnet is its own, or not any more.
    fn claimed_by(&mut self, number: u8, subnet: &str, released: bool) {
        let claim = Claim {
            subnet: subnet.parse().unwrap(),
            epoch: 1,
            owner: member(number),
            rtt_us: Some(4_000),
            runner_up: None,
            probes: 2,
            reason: ClaimReason::Awarded,
            released,
            answers: Vec::new(),
        };
        self.handle(Event::Gossiped { author: member(number), gossip: Gossip::Claims(vec![voted(&claim, number)]) });
    }

    /// Answers the questions of this kind that wait.
    fn answer(&mut self, response: impl Fn(&Request) -> Option<Response>) {
        for (from, question, request) in std::mem::take(&mut self.questions) {
            if let Some(answer) = response(&request) {
                self.handle(Event::Answered { question, from, answer: Some(answer) });
            }
        }
    }

    fn sentence(&self) -> String {
        self.crawler.view().activity().to_string()
    }

    fn why(&self, text: &str) -> WhyView {
        self.crawler.view().why(&text.parse::<Subject>().unwrap(), &AddressPolicy::default())
    }
}
