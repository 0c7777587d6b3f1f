//! Test of four members who send all that they can: others neither swell nor become deaf or slow.
//!
//! They have valid keys, were let in, and keep to no limit.

use crate::support::{
    Ground, Habits, SmallWeb, Swarm,
    raw_peer::{RawPeer, Step, frame},
};
use ed25519_dalek::SigningKey;
use nearcrawl::io::client::client;
use nearcrawl_lab::demo::daemons::API_PORT;
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite};
use nearcrawl_model::packed::pack;
use nearcrawl_model::{
    access_point::AccessPoint,
    distances::Distances,
    fetch::LocatedHost,
    journal::{Arrival, JournalKey, JournalRow},
    message::{Gossip, HandOff, Request},
    subnet::Subnet,
    summary::{Counts, Dimension, RollUp, Summary},
    url::PageUrl,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Members who flood.
const FLOODERS: u8 = 4;

/// Each sends at most so many messages a second, half of them gossip, this many at a time.
const MOST: usize = 10_000;
const BATCH: usize = MOST / 2 / 50;

/// For how long.
const LASTS: Duration = Duration::from_secs(30);

/// An honest member may grow by so much meanwhile, in bytes.
const MAX_GROWTH: u64 = 64 << 20;

/// What one honest member tells, the others know after this time, in 99 of 100 cases.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// Different frames of gossip that each flooder signs beforehand: it sends them again when it has sent all.
const PREPARED: u64 = 4_000;

/// Questions of a flooder that are open at a time.
const OPEN: usize = 200;

/// Hosts that are named while the flood lasts, one after the other; each lies in a subnet of its own that somebody has to claim.
const NEW: usize = 24;

/// Pages that lead nowhere.
struct Lone;

impl HttpSite for Lone {
    fn respond(&self, _: &str, path: &str) -> HttpAnswer {
        if path == "/" { HttpAnswer::html("<title>A page</title>") } else { HttpAnswer::status(404) }
    }
}

fn key(number: u64) -> SigningKey {
    let mut seed = [0xf1; 32];
    seed[..8].copy_from_slice(&number.to_be_bytes());
    SigningKey::from_bytes(&seed)
}

fn roll_up(owner: &SigningKey, version: u64, values: usize) -> Gossip {
    let value = |number: usize| (format!("{number:x}"), Counts { servers: 1, ..Counts::default() });
    let by = BTreeMap::from([(Dimension::Software, (0..values).map(value).collect())]);
    Gossip::RollUp(Box::new(RollUp {
        owner: AccessPoint(owner.verifying_key().to_bytes()),
        version,
        claims_digest: version,
        subnets: 0,
        sure_of: 1,
        busy_permille: 0,
        price_permille: 1_000,
        summary: Summary { by, ..Summary::default() },
    }))
}

/// All kinds of gossip that a member can send.
fn prepared(peer: &RawPeer, number: u64) -> Vec<Vec<u8>> {
    let own = &peer.key;
    let noise = vec![0xa5; 200 << 10];
    let several = |sequence: u64| match sequence % 8 {
        0 => peer.gossip(own, sequence, &roll_up(own, sequence, 20)),
        1 => {
            let invented = key(number << 32 | sequence);
            peer.gossip(&invented, sequence, &roll_up(&invented, 1, 20))
        }
        2 => peer.gossip(own, sequence, &Gossip::Claims(Vec::new())),
        3 if sequence % 64 == 3 => frame(own, sequence, "another topic", &noise),
        3 => frame(own, sequence, "another topic", &noise[..2_000]),
        4 if sequence.is_multiple_of(128) => peer.gossip(own, sequence, &roll_up(own, sequence, 8_000)),
        4 if sequence.is_multiple_of(64) => {
            let invented = key(number << 32 | sequence);
            peer.gossip(&invented, sequence, &roll_up(&invented, 1, 8_000))
        }
        5 => frame(own, sequence, &format!("topic {sequence}"), b"x"),
        6 => peer.gossip(own, sequence, &distances(own, sequence)),
        _ => peer.gossip(own, sequence, &roll_up(own, sequence, 1)),
    };
    (0..PREPARED).map(several).collect()
}

fn distances(from: &SigningKey, version: u64) -> Gossip {
    let from = AccessPoint(from.verifying_key().to_bytes());
    Gossip::Distances(Distances { from, version, address: None, country: None, home_port: None, round_trips: Vec::new() })
}

/// All kinds of questions, the large ones rarely.
fn questions(web: &SmallWeb) -> Vec<Vec<u8>> {
    let (host, address) = web.hosts[0].clone();
    let subnet: Subnet = *web.subnets().iter().next().unwrap();
    let arrival = |number: usize| Arrival { url: PageUrl::parse(&format!("http://{host}:8080/x{number}")).unwrap(), place: None, run: 1 };
    let located = LocatedHost { host: host.clone(), address: address.into(), valid_for: 60_000 };
    let hand_off = |count| Request::HandOff(vec![HandOff { host: located.clone(), arrivals: (0..count).map(arrival).collect() }]);
    let key = JournalKey { subnet, host: host.clone(), run: 1 };
    let keep = |bytes| Request::Keep(vec![JournalRow { key: key.clone(), sequence: 0, entry: vec![7; bytes] }]);
    let small = [
        Request::Totals,
        Request::Locate("nowhere.test".parse().unwrap()),
        Request::CompareClaims(Vec::new()),
        Request::Holds(vec![subnet]),
        hand_off(3),
        keep(100),
        Request::Recall(subnet, None),
        Request::VoterLists(0),
        Request::Swim(vec![0xff; 200]),
    ];
    let large = [hand_off(15_000), keep(1_000_000), Request::Swim(vec![0xff; 1_000_000])];
    let mut all = Vec::new();
    for large in large {
        all.extend(small.iter().cycle().take(97).map(|request| pack(&postcard::to_stdvec(request).unwrap())));
        all.push(pack(&postcard::to_stdvec(&large).unwrap()));
    }
    all
}

/// What those who flood have done.
#[derive(Default)]
struct Done {
    ready: AtomicU64,
    gossip: AtomicU64,
    requests: AtomicU64,
}

/// A flooder on a thread of its own, so that it and the test do not keep each other waiting.
fn flooder(number: u8, address: String, questions: Arc<Vec<Vec<u8>>>, done: Arc<Done>) -> std::thread::JoinHandle<u64> {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(flood(number, address, questions, done))
    })
}

/// Sends all it can until the time is over, at most [`MOST`] messages a second; comes back when it is shut out. How often it was.
async fn flood(number: u8, address: String, questions: Arc<Vec<Vec<u8>>>, done: Arc<Done>) -> u64 {
    let mut peer = RawPeer::join([number; 32], &address, &[]).await.expect("a member is let in");
    let batches: Vec<Vec<u8>> = prepared(&peer, number.into()).chunks(BATCH).map(<[Vec<u8>]>::concat).collect();
    done.ready.fetch_add(1, Ordering::Relaxed);
    while done.ready.load(Ordering::Relaxed) < FLOODERS.into() {
        peer.stay(Duration::from_millis(20)).await;
    }
    let (began, mut next, mut asked, mut shut_out) = (Instant::now(), 0_usize, 0_usize, 0);
    let mut open = BTreeSet::new();
    let mut tick = tokio::time::interval(Duration::from_millis(20));
    while began.elapsed() < LASTS {
        let closed = tokio::select! {
            step = peer.step() => match step {
                Step::Answered(id, _) => { open.remove(&id); false }
                Step::Closed => true,
                Step::Asked(_) | Step::Other => false,
            },
            _ = tick.tick() => {
                if peer.publish(batches[next % batches.len()].clone()) {
                    next += 1;
                    done.gossip.fetch_add(BATCH as u64, Ordering::Relaxed);
                }
                while open.len() < OPEN {
                    asked += 1;
                    done.requests.fetch_add(1, Ordering::Relaxed);
                    open.insert(peer.ask_bytes(questions[asked % questions.len()].clone()));
                }
                false
            }
        };
        if closed {
            shut_out += 1;
            open.clear();
            // As often as it is let in.
            while began.elapsed() < LASTS {
                match RawPeer::join([number; 32], &address, &[]).await {
                    Ok(again) => {
                        peer = again;
                        break;
                    }
                    Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
                }
            }
        }
    }
    shut_out
}

/// The memory of a process, in bytes.
fn memory(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// The value below which 99 of 100 lie.
fn p99(times: &mut [Duration]) -> Duration {
    times.sort();
    times[(times.len() * 99).div_ceil(100) - 1]
}

/// What was seen while the flood lasted.
#[derive(Default)]
struct Seen {
    most: BTreeMap<u32, u64>,
    answers: Vec<Duration>,
    seeded: Vec<Duration>,
    known: BTreeMap<Subnet, BTreeMap<usize, Instant>>,
}

impl Seen {
    async fn look(&mut self, swarm: &Swarm, client: &reqwest::Client, wanted: &BTreeSet<Subnet>) {
        for index in swarm.running() {
            let process = swarm.daemons[index].process().unwrap();
            let most = self.most.entry(process).or_default();
            *most = memory(process).max(*most);
            let asked = Instant::now();
            let url = format!("http://{}:{API_PORT}/api/status", swarm.daemons[index].address);
            client.get(&url).send().await.unwrap().bytes().await.unwrap();
            self.answers.push(asked.elapsed());
            for subnet in swarm.owners(index).await.into_keys().filter(|subnet| wanted.contains(subnet)) {
                self.known.entry(subnet).or_default().entry(index).or_insert_with(Instant::now);
            }
        }
    }

    /// Names a page, however long that takes.
    async fn seed(&mut self, client: &reqwest::Client, (daemon, token): (Ipv4Addr, String), page: String) {
        let asked = Instant::now();
        let request = client
            .post(format!("http://{daemon}:{API_PORT}/api/seeds"))
            .header("x-nearcrawl-token", token)
            .json(&serde_json::json!({ "urls": [page] }));
        request.send().await.unwrap().error_for_status().unwrap();
        self.seeded.push(asked.elapsed());
    }

    /// How long after the first member each other one knew of a new owner.
    fn ways(&self) -> Vec<Duration> {
        let after = |times: &BTreeMap<usize, Instant>| {
            let first = *times.values().min().unwrap();
            let mut after: Vec<_> = times.values().map(|time| *time - first).collect();
            after.sort();
            after.split_off(1)
        };
        self.known.values().flat_map(after).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn four_members_who_flood_neither_swell_nor_deafen_the_others() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, NEW + 6, 1, 0));
    let points: Vec<Ipv4Addr> = web.places.access_points[..3].to_vec();
    let mut swarm = Swarm::prepare(ground, Arc::new(Lone), web.places.registry_files(), web.names(), &points, Habits::default()).await;
    swarm.start(0..3).await;
    swarm.vote(3, Duration::from_secs(60)).await;
    for host in 0..6 {
        swarm.seed(host % 3, &[web.url(host, 0)]).await;
    }
    swarm.agree(6, Duration::from_secs(60)).await;
    let questions = Arc::new(questions(&web));
    let client = client().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
    let wanted = web.subnets();
    let mut calm = Seen::default();
    for _ in 0..20 {
        calm.look(&swarm, &client, &BTreeSet::new()).await;
    }

    let done = Arc::new(Done::default());
    let flooders: Vec<_> = (0..FLOODERS)
        .map(|number| {
            let address = swarm.daemons[usize::from(number) % 3].multiaddress();
            flooder(200 + number, address, questions.clone(), done.clone())
        })
        .collect();
    while done.ready.load(Ordering::Relaxed) < FLOODERS.into() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (began, mut named, mut seen) = (Instant::now(), 0, Seen::default());
    seen.known = swarm.owners(0).await.into_keys().map(|subnet| (subnet, BTreeMap::new())).collect();
    let before: BTreeSet<Subnet> = seen.known.keys().copied().collect();
    seen.known.clear();
    let new: BTreeSet<Subnet> = wanted.difference(&before).copied().collect();
    while began.elapsed() < LASTS {
        if named < NEW && began.elapsed() > LASTS * named as u32 / (NEW as u32 + 2) {
            seen.seed(&client, (swarm.daemons[named % 3].address, swarm.token(named % 3)), web.url(6 + named, 0)).await;
            named += 1;
        }
        seen.look(&swarm, &client, &new).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut shut_out = 0;
    for flooder in flooders {
        shut_out += flooder.join().expect("no flooder panics");
    }
    assert_eq!(named, NEW, "the test itself was kept from its work");
    let settled = Instant::now();
    while seen.known.values().filter(|times| times.len() == 3).count() < new.len() {
        assert!(settled.elapsed() < Duration::from_secs(60), "not all know who owns what: {:?}", seen.known);
        seen.look(&swarm, &client, &new).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let growth: Vec<u64> = seen.most.iter().map(|(process, most)| most.saturating_sub(calm.most[process])).collect();
    let (mut ways, mut answers) = (seen.ways(), seen.answers.clone());
    println!(
        "{} messages of gossip and {} requests sent, shut out {shut_out} times; growth {:?} MiB; heard after {:?} (p99 of {}); answers {:?} (p99), calm {:?}; pages \
         named within {:?} (p99)",
        done.gossip.load(Ordering::Relaxed),
        done.requests.load(Ordering::Relaxed),
        growth.iter().map(|bytes| bytes >> 20).collect::<Vec<_>>(),
        p99(&mut ways),
        ways.len(),
        p99(&mut answers),
        p99(&mut calm.answers.clone()),
        p99(&mut seen.seeded.clone()),
    );
    for index in 0..3 {
        let status: serde_json::Value = serde_json::from_str(&swarm.cli(index, &["status", "--json"]).await).unwrap();
        println!("{}: {}", swarm.daemons[index].address, status["refusals"]);
    }
    assert!(growth.iter().all(|growth| *growth <= MAX_GROWTH), "{growth:?}");
    assert!(p99(&mut ways) <= HEARD_WITHIN, "{ways:?}");
    assert!(p99(&mut answers) <= Duration::from_secs(2), "{answers:?}");
    swarm.agree(6 + NEW as u64, Duration::from_secs(60)).await;
    assert!(swarm.stop().await);
}
