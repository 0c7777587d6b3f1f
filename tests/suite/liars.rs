//! Tests of a member that was let in, keeps to no limit, and signs whatever it likes: it gains nothing.
//!
//! There is one part for each kind of lie.

use crate::{
    bad_input::forbidden,
    support::{
        Ground, Habits, SmallWeb, Swarm,
        raw_peer::{RawPeer, Step},
    },
};
use ed25519_dalek::SigningKey;
use nearcrawl_core::membership::{Member, Output, Swim, SwimConfig, stewards_of};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, SignedClaim},
    fetch::{LocatedHost, ProbeTarget},
    journal::{Arrival, JournalKey, JournalRow, Place},
    message::{Gossip, HandOff, Proposal, Request, Response},
    subnet::Subnet,
    summary::{Counts, Dimension, RollUp, Summary},
    time::Moment,
    url::{Host, PageUrl},
    vote::{Ballot, BallotRequest, Renewal, SetNumber, VoterList},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinSet;

/// How long until a lie has been dealt with.
const SOON: Duration = Duration::from_secs(20);

/// `delegation.max_contacts_per_subnet` where the configuration says nothing.
const CONTACTS: u64 = 15;

/// Keys that one address connects with, and how many of them at most are taken.
const KEYS: u8 = 40;
const MOST_OF_ONE: usize = 16;

struct Court {
    swarm: Swarm,
    web: Arc<SmallWeb>,
    point: Ipv4Addr,
    outside: SocketAddr,
    connects: Arc<AtomicUsize>,
    liar: RawPeer,
    sequence: u64,
    _tasks: JoinSet<()>,
}

impl Court {
    async fn start() -> Court {
        let ground = Ground::claim();
        let web = Arc::new(SmallWeb::new(&ground, 4, 3, 0));
        let point = web.places.access_points[0];
        let mut tasks = JoinSet::new();
        let outside = SocketAddr::from(([127, ground.net + 100, 0, 9], 4817));
        let connects = forbidden(outside, &mut tasks).await;
        let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &[point], Habits::default()).await;
        swarm.start([0]).await;
        swarm.seed(0, &web.seeds()).await;
        let pages = web.expected(&web.seeds()).pages() as u64;
        swarm.agree(pages, Duration::from_secs(60)).await;
        let away = format!("/ip4/{}/tcp/{}", outside.ip(), outside.port());
        let liar = RawPeer::join([0x51; 32], &swarm.daemons[0].multiaddress(), &[&away]).await.unwrap();
        Court { swarm, web, point, outside, connects, liar, sequence: 1, _tasks: tasks }
    }

    async fn status(&self) -> Value {
        serde_json::from_str(&self.swarm.cli(0, &["status", "--json"]).await).unwrap()
    }

    async fn refusals(&self, class: &str) -> u64 {
        self.status().await["refusals"][class].as_u64().unwrap_or(0)
    }

    /// Waits until a class of refusals has been counted so often; the liar goes on listening.
    async fn refused(&mut self, class: &str, times: u64) {
        let begun = std::time::Instant::now();
        while self.refusals(class).await < times {
            assert!(begun.elapsed() < SOON, "not refused {times} times: {class}; {}", self.status().await["refusals"]);
            self.liar.stay(Duration::from_millis(50)).await;
        }
    }

    async fn gossip(&mut self, author: &SigningKey, gossip: &Gossip) {
        self.sequence += 1;
        let frame = self.liar.gossip(author, self.sequence, gossip);
        assert!(self.liar.publish(frame));
        self.liar.stay(Duration::from_millis(5)).await;
    }

    /// A host of the web, its address and the subnet that the daemon owns around it.
    fn site(&self) -> (Host, IpAddr, Subnet) {
        let (host, address) = self.web.hosts[0].clone();
        let land = self.web.places.land_of(address.into()).unwrap();
        (host, address.into(), self.web.places.lands[land].subnet)
    }

    fn hand_off(&self, host: &Host, run: u32, place: Option<Place>) -> HandOff {
        let (_, address, _) = self.site();
        let url = PageUrl::parse(&format!("http://{host}:8080/")).unwrap();
        HandOff { host: LocatedHost { host: host.clone(), address, valid_for: 604_800_000 }, arrivals: vec![Arrival { url, place, run }] }
    }
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn roll_up(owner: &SigningKey, values: usize) -> Gossip {
    let value = |number: usize| (format!("{number}"), Counts { servers: 1, pages: 1_000, ..Counts::default() });
    let by = BTreeMap::from([(Dimension::Software, (0..values).map(value).collect())]);
    let total = Counts { pages: 1_000_000, ..Counts::default() };
    Gossip::RollUp(Box::new(RollUp {
        owner: AccessPoint(owner.verifying_key().to_bytes()),
        version: u64::MAX,
        claims_digest: 0,
        subnets: 1,
        sure_of: 1,
        busy_permille: 0,
        price_permille: 1_000,
        summary: Summary { total, by, ..Summary::default() },
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_signs_what_it_likes_gains_nothing() {
    let mut court = Court::start().await;
    let before = court.swarm.ownership(0).await;
    let (status, asked) = (court.status().await, court.swarm.log().len());
    invented_sums(&mut court).await;
    claims_without_votes(&mut court).await;
    false_hand_offs(&mut court).await;
    addresses_that_are_not_to_be_dialled(&mut court).await;
    probes_for_hire(&mut court).await;
    journals_of_others(&mut court).await;
    forged_votes(&mut court).await;

    let mut after = court.swarm.ownership(0).await;
    after.retain(|view| before.iter().any(|known| known.subnet == view.subnet));
    let epochs =
        |views: &[nearcrawl_model::view::OwnershipView]| views.iter().map(|view| (view.subnet, view.owner, view.epoch)).collect::<Vec<_>>();
    assert_eq!(epochs(&after), epochs(&before), "who owns what is as it was");
    assert_eq!(court.connects.load(Ordering::Relaxed), 0, "nobody is connected to because a member says so");
    let again: Vec<_> = court.swarm.log().since(asked).into_iter().filter(|request| request.method == "GET").collect();
    assert!(again.is_empty(), "{again:?}");
    let now = court.status().await;
    assert_eq!((&now["work"]["pages"], &now["servers"]), (&status["work"]["pages"], &status["servers"]));
    let pages = court.web.expected(&court.web.seeds()).pages() as u64;
    court.swarm.seed(0, &[court.web.url(0, 99)]).await;
    let log = court.swarm.log().clone();
    let works = async || log.since(asked).iter().find(|request| request.path == "/p99.html").map(|_| ()).ok_or(String::new());
    court.swarm.until("it works on", SOON, works).await;
    assert_eq!(court.swarm.asker.results(court.point).await.unwrap().summary.total.pages, pages);
    assert!(court.swarm.stop().await);
}

/// B1: sums of access points that do not exist, and of more values than anybody tells.
async fn invented_sums(court: &mut Court) {
    for number in 0..50 {
        court.gossip(&key(100 + number), &roll_up(&key(100 + number), 5)).await;
    }
    court.refused("totals of access points that are no members", 50).await;
    let own = court.liar.key.clone();
    let other = key(7);
    court.gossip(&own, &roll_up(&other, 1)).await;
    court.refused("totals in the name of another member", 1).await;
    let told = court.swarm.asker.results(court.point).await.unwrap();
    assert!(told.summary.total.pages < 1_000, "{told:?}");
}

/// B2: claims that no voter accepted, at the next epoch and at the last one.
async fn claims_without_votes(court: &mut Court) {
    let (_, _, subnet) = court.site();
    let own = court.liar.key.clone();
    let claim = |epoch| Claim {
        subnet,
        epoch,
        owner: AccessPoint(own.verifying_key().to_bytes()),
        rtt_us: Some(0),
        runner_up: None,
        probes: 0,
        reason: ClaimReason::OwnerDead,
        released: false,
        answers: Vec::new(),
    };
    court.gossip(&own, &Gossip::Claims(vec![SignedClaim::sign(&claim(9), &own), SignedClaim::sign(&claim(u64::MAX), &own)])).await;
    court.refused("claims without enough votes", 1).await;
    court.refused("claims with an epoch that no subnet reaches", 1).await;
    let forged = SignedClaim { signature: vec![7; 64], ..SignedClaim::sign(&claim(10), &own) };
    court.gossip(&own, &Gossip::Claims(vec![forged])).await;
    court.refused("claims with a bad signature", 1).await;
}

/// B3: hosts at addresses that are not theirs, hosts that do not exist or are out of scope, runs that are not due.
async fn false_hand_offs(court: &mut Court) {
    let bank: Host = "bank.test".parse().unwrap();
    let there = court.hand_off(&bank, 1, None);
    let said = court.liar.answer(&Request::HandOff(vec![there])).await;
    assert_eq!(said, Some(Response::HandedOff { not_mine: vec![bank] }));
    let invented: Vec<HandOff> = (0..200).map(|number| court.hand_off(&format!("x{number}.invalid").parse().unwrap(), 1, None)).collect();
    let said = court.liar.answer(&Request::HandOff(invented)).await;
    assert!(
        matches!(&said, Some(Response::HandedOff { not_mine }) if not_mine.len() == 200) || matches!(said, Some(Response::Busy(_))),
        "{said:?}"
    );
    let (host, ..) = court.site();
    for run in [2, 1_000, u32::MAX] {
        let place = Place { tree: host.without_www(), level: 0, hops: 0 };
        let forced = court.hand_off(&host, run, Some(place));
        court.liar.answer(&Request::HandOff(vec![forced])).await;
    }
}

/// B4: its own hello named an address that is not public, and now a datagram of the membership's names others that do not exist there.
async fn addresses_that_are_not_to_be_dialled(court: &mut Court) {
    let away = format!("/ip4/{}/tcp/{}", court.outside.ip(), court.outside.port());
    let config = SwimConfig::default();
    let daemon: AccessPoint = court.swarm.daemons[0].access_point.parse().unwrap();
    let mut sender = Swim::new(Member::new(court.liar.me(), 1, vec![away.clone()]), config.clone(), 1);
    let now = Moment(1_000_000);
    let asks = |sender: &mut Swim, who: AccessPoint| {
        let mut swim = Swim::new(Member::new(who, 1, vec![away.clone()]), config.clone(), 2);
        swim.join(now, sender.me().clone());
        for output in swim.drain().collect::<Vec<_>>() {
            if let Output::Send { bytes, .. } = output {
                let _ = sender.receive(now, who, &bytes);
            }
        }
    };
    invented().for_each(|who| asks(&mut sender, who));
    sender.drain().for_each(drop);
    // The daemon asks to be let in; the answer names everybody.
    let asked = async {
        loop {
            if let Step::Asked(Request::Swim(bytes)) = court.liar.step().await {
                return bytes;
            }
        }
    };
    let asked = tokio::time::timeout(SOON, asked).await.expect("the daemon looks for members");
    sender.receive(now, daemon, &asked).unwrap();
    for output in sender.drain().collect::<Vec<_>>() {
        if let Output::Send { to, bytes, .. } = output
            && to == daemon
        {
            court.liar.answer(&Request::Swim(bytes)).await;
        }
    }
    court.refused("addresses of members that may not be dialled", 3).await;
}

/// Members that it told the daemon of, and that do not exist.
fn invented() -> impl Iterator<Item = AccessPoint> {
    (0..20).map(|number| AccessPoint(key(150 + number).verifying_key().to_bytes()))
}

/// B5: addresses at which nobody named a server are to be probed. A subnet's steward may have that done, so it chooses one whose steward it is; but
/// the subnet gets no more probes than the swarm allows itself, however often they are asked for.
async fn probes_for_hire(court: &mut Court) {
    let IpAddr::V4(outside) = court.outside.ip() else { unreachable!("loopback of IPv4") };
    let [first, second, ..] = outside.octets();
    let members: Vec<_> = invented().chain([court.liar.me(), court.swarm.daemons[0].access_point.parse().unwrap()]).collect();
    let subnets = (0..=u8::MAX).map(|third| Subnet::around(Ipv4Addr::new(first, second, third, 0).into(), 24));
    let its = |subnet: &Subnet| stewards_of(subnet, &members).first() == Some(&court.liar.me());
    let subnet = subnets.into_iter().find(its).expect("it is the first of 22 for some of 256 subnets");
    let target = ProbeTarget { address: SocketAddr::new(subnet.first(), 8080), host: "victim.test".parse().unwrap(), secure: false };
    let probes = async |court: &Court| court.status().await["work"]["probes"].as_u64().unwrap();
    let before = probes(court).await;
    for _ in 0..CONTACTS {
        for request in [
            Request::FindOwner(subnet, target.clone()),
            Request::Reserve(subnet, target.clone()),
            Request::Probe(subnet, target.clone(), Vec::new()),
        ] {
            court.liar.answer(&request).await;
        }
    }
    court.liar.stay(Duration::from_secs(1)).await;
    let ordered = probes(court).await - before;
    assert!((1..=CONTACTS).contains(&ordered), "{ordered} probes of a subnet for {} requests", 3 * CONTACTS);
}

/// B6: rows of journals of subnets that it does not own, and of subnets that nobody owns.
async fn journals_of_others(court: &mut Court) {
    let (host, _, subnet) = court.site();
    for subnet in [subnet, Subnet::around(court.outside.ip(), 24)] {
        let key = JournalKey { subnet, host: host.clone(), run: 1 };
        let row = JournalRow { key, sequence: 0, entry: vec![7; 100_000] };
        let said = court.liar.answer(&Request::Keep(vec![row])).await;
        assert!(matches!(said, Some(Response::Refused(_))), "{said:?}");
    }
    court.refused("journal rows of subnets that the sender does not own", 2).await;
}

/// Votes, renewals, lists and withdrawals that are not its to give.
async fn forged_votes(court: &mut Court) {
    let (_, _, subnet) = court.site();
    let own = court.liar.key.clone();
    let me = court.liar.me();
    let renewal = Renewal {
        list: 1,
        term: u64::MAX,
        incarnation: u64::MAX,
        process: 1,
        ended: [0; 2],
        sole: true,
        installed: u64::MAX,
        leaving: false,
        known: SetNumber::default(),
        replicas: None,
    };
    court.liar.answer(&Request::Renew(renewal)).await;
    let claim = Claim {
        subnet,
        epoch: 9,
        owner: me,
        rtt_us: None,
        runner_up: None,
        probes: 0,
        reason: ClaimReason::Awarded,
        released: false,
        answers: Vec::new(),
    };
    let claims = vec![SignedClaim::sign(&claim, &own)];
    let proposal = Proposal { list: 1, term: u64::MAX, process: 1, claims, releases: Vec::new(), parts: Vec::new() };
    court.liar.answer(&Request::Propose(proposal)).await;
    let daemon: AccessPoint = court.swarm.daemons[0].access_point.parse().unwrap();
    let others = Claim { owner: daemon, epoch: 10, ..claim };
    let released = SignedClaim::sign(&Claim { released: true, ..others.clone() }, &own);
    let proposal = Proposal {
        list: 1,
        term: 1,
        process: 1,
        claims: vec![SignedClaim::sign(&others, &own)],
        releases: vec![released.clone()],
        parts: Vec::new(),
    };
    court.liar.answer(&Request::Propose(proposal)).await;
    court.liar.answer(&Request::TakeOver(released)).await;
    let withdrawn = (0..10).map(|epoch| (subnet, epoch)).collect();
    court.liar.answer(&Request::Withdraw { process: 1, claims: withdrawn }).await;
    let ballot = Ballot { round: u64::MAX, proposer: me };
    let list = VoterList { number: 2, voters: vec![me], age: u64::MAX };
    for request in [BallotRequest::Prepare { number: 1, ballot, wanted: list.clone() }, BallotRequest::Accept { ballot, list }] {
        court.liar.answer(&Request::Ballot(Box::new(request))).await;
    }
    court.refused("ballots of those who may not propose", 1).await;
    let voters = court.status().await["voters"].clone();
    assert_eq!((&voters["list"], voters["voters"].as_array().map(Vec::len)), (&Value::from(1), Some(1)), "{voters}");
    assert!(voters["lease_ms"].as_u64() > Some(0), "{voters}");
}

/// B7: many keys from one address leave room for others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_keys_from_one_address_leave_room_for_others() {
    let mut court = Court::start().await;
    let address = court.swarm.daemons[0].multiaddress();
    let mut keys = Vec::new();
    for number in 0..KEYS {
        if let Ok(peer) = RawPeer::join([number + 60; 32], &address, &[]).await {
            keys.push(peer);
        }
    }
    assert!(keys.len() < MOST_OF_ONE, "the first liar is one of them, too: {}", keys.len());
    assert!(court.refusals("connections beyond those of one address or of strangers").await >= u64::from(KEYS) - MOST_OF_ONE as u64);
    // A member from elsewhere is let in.
    let second = court.swarm.add(court.web.places.access_points[1]).await;
    court.swarm.daemons[second].start(&court.swarm.common).unwrap();
    let (asker, peer) = (court.swarm.asker.clone(), court.swarm.daemons[second].address);
    court
        .swarm
        .until("another member is let in", SOON, async || match asker.alive(peer).await {
            Ok(alive) if alive >= 2 => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    drop(keys);
    assert!(court.swarm.stop().await);
}
