//! Test that a stranger or a lying member can make a daemon do nothing that it would not do by itself.

use crate::{
    bad_input::forbidden,
    support::{Ground, Habits, SmallWeb, Swarm},
};
use nearcrawl::io::swarm::{Swarm as Member, SwarmCommand, SwarmConfig, SwarmEvent, SwarmHandle, SwarmSecrets};
use nearcrawl_hierarchy::Builder;
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::SignedClaim,
    fetch::{LocatedHost, ProbeTarget},
    fingerprint::FingerprintKey,
    ids::QuestionId,
    journal::{Arrival, JournalKey, JournalRow},
    message::{Award, Gossip, HandOff, Request, Response},
    ownership_map::{MAX_DEPTH, MapDigest, MapPart, WantedPart},
    subnet::Subnet,
    summary::{Counts, Dimension, RollUp, Summary},
    url::PageUrl,
};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
    task::JoinSet,
};

const WITHIN: Duration = Duration::from_secs(20);

/// Somebody who speaks the swarm's protocols.
struct Peer {
    handle: SwarmHandle,
    events: mpsc::Receiver<SwarmEvent>,
    questions: u64,
}

impl Peer {
    fn start(at: Ipv4Addr, number: u8, hierarchy_hash: [u8; 32], secrets: Option<SwarmSecrets>) -> Peer {
        let listen = vec![format!("/ip4/{at}/tcp/0")];
        let config = SwarmConfig { listen, source_address: Some(at.into()), hierarchy_hash, secrets, ..SwarmConfig::default() };
        let (handle, events) = Member::start(config, [number; 32]).unwrap();
        Peer { handle, events, questions: 0 }
    }

    fn tell(&self, command: SwarmCommand) {
        self.handle.tell(command).unwrap();
    }

    /// Waits for an event; questions of the daemon's are left unanswered.
    async fn find<T>(&mut self, what: &str, wanted: impl Fn(SwarmEvent) -> Option<T>) -> T {
        let search = async {
            loop {
                if let Some(found) = wanted(self.events.recv().await.expect("the swarm runs")) {
                    return found;
                }
            }
        };
        tokio::time::timeout(WITHIN, search).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
    }

    async fn refusal(&mut self, address: &str) -> String {
        self.tell(SwarmCommand::Dial { address: address.to_owned() });
        self.find("a refusal", |event| if let SwarmEvent::RefusedBy { reason, .. } = event { Some(reason) } else { None }).await
    }

    async fn ask(&mut self, to: AccessPoint, request: Request) -> Response {
        self.questions += 1;
        let number = QuestionId(self.questions);
        let what = format!("an answer to {request:?}");
        self.tell(SwarmCommand::Ask { to, question: number, request });
        let answer = self.find(&what, |event| match event {
            SwarmEvent::Answered { question, result, .. } if question == number => Some(result),
            _ => None,
        });
        answer.await.unwrap_or_else(|why| panic!("{what}: {why}"))
    }
}

fn hash(hex: &str) -> [u8; 32] {
    std::array::from_fn(|byte| u8::from_str_radix(&hex[2 * byte..2 * byte + 2], 16).unwrap())
}

fn hand_off(host: &str, url: &str, address: IpAddr) -> Request {
    let arrivals = vec![Arrival { url: PageUrl::parse(url).unwrap(), place: None, run: 1 }];
    Request::HandOff(vec![HandOff { host: LocatedHost { host: host.parse().unwrap(), address, valid_for: 60_000 }, arrivals }])
}

/// Everything that a roll-up can exaggerate.
fn boundless(owner: AccessPoint) -> RollUp {
    let most = Counts { servers: u64::MAX, up: u64::MAX, pages: u64::MAX, requests: u64::MAX, bytes: u64::MAX, ..Counts::default() };
    let values = BTreeMap::from([("KE".to_owned(), most), ("\u{1b}[2J".to_owned(), most)]);
    let summary = Summary { total: most, by: BTreeMap::from([(Dimension::Country, values)]), ..Summary::default() };
    RollUp {
        owner,
        version: u64::MAX,
        claims_digest: 7,
        subnets: u64::MAX,
        sure_of: u32::MAX,
        busy_permille: u32::MAX,
        price_permille: 0,
        summary,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_and_liars_change_nothing_and_send_nobody_anywhere() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 6, 3, 0));
    let (net, point) = (ground.net, web.places.access_points[0]);
    let mut tasks = JoinSet::new();
    let outside = SocketAddr::from(([127, net + 100, 0, 9], 8080));
    let connects_outside = forbidden(outside, &mut tasks).await;
    let own = SocketAddr::from((point, 8080));
    let connects_own = forbidden(own, &mut tasks).await;
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &[point], Habits::default()).await;
    swarm.start([0]).await;
    swarm.seed(0, &web.seeds()).await;
    let pages = web.expected(&web.seeds()).pages() as u64;
    swarm.agree(pages, Duration::from_secs(30)).await;
    let asked = swarm.log().len();
    let status = |text: String| serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let before = status(swarm.cli(0, &["status", "--json"]).await);
    let address = swarm.daemons[0].multiaddress();
    let daemon: AccessPoint = swarm.daemons[0].access_point.parse().unwrap();

    // Strangers who do not even speak libp2p, some of whom stay.
    let mut stay = Vec::new();
    for number in 0..40_u8 {
        let mut stream = TcpStream::connect((point, 4817)).await.unwrap();
        let noise = if number % 2 == 0 { b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(200) } else { vec![number; 60_000] };
        // It may hang up meanwhile.
        let _ = stream.write_all(&noise).await;
        stay.push(stream);
    }
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(WITHIN, stay[0].read_to_end(&mut rest)).await.expect("noise is not listened to for ever");
    assert_eq!(swarm.told_to_a_stranger(0).await.unwrap().summary.total.pages, pages, "strangers keep a reader out");

    // Members of something else.
    let right = hash(before["hierarchy"]["hash"].as_str().unwrap());
    let at = |last| Ipv4Addr::new(127, net, 240, last);
    let secrets = SwarmSecrets { swarm: [9; 16], fingerprint_key: FingerprintKey([9; 16]) };
    let why = Peer::start(at(2), 202, right, Some(secrets)).refusal(&address).await;
    assert!(why.contains("this is swarm"), "{why}");

    // A member who was let in, and lies. That it uses another hierarchy is no lie.
    let mut liar = Peer::start(at(3), 203, [9; 32], None);
    let me = liar.handle.me();
    liar.tell(SwarmCommand::Dial { address: address.clone() });
    liar.find("being let in", |event| matches!(event, SwarmEvent::Connected { .. }).then_some(())).await;
    assert_eq!(liar.ask(daemon, Request::Swim(vec![0xff; 500])).await, Response::Noted);
    let other: Subnet = format!("{}/24", outside.ip()).parse().unwrap();
    let said = liar.ask(daemon, hand_off("a.test", "http://a.test:8080/", outside.ip())).await;
    assert_eq!(said, Response::HandedOff { not_mine: vec!["a.test".parse().unwrap()] });
    let said = liar.ask(daemon, hand_off("b.test", "http://c.test:8080/", web.hosts[0].1.into())).await;
    assert_eq!(said, Response::HandedOff { not_mine: vec!["b.test".parse().unwrap()] });
    // The daemon's own address lies in a subnet of its own.
    let said = liar.ask(daemon, hand_off("own.test", "http://own.test:8080/", point.into())).await;
    assert!(matches!(said, Response::HandedOff { .. }), "{said:?}");

    // Where does the hierarchy put that address? Then the lies fit.
    let mut builder = Builder::new();
    for (name, text) in web.places.registry_files() {
        builder.read_delegated(&name, text.as_bytes()).unwrap();
    }
    let subnet = builder.finish().unwrap().subnet_of(outside.ip());
    let target = ProbeTarget { address: outside, host: "a.test".parse().unwrap(), secure: false };
    let said = liar.ask(daemon, Request::Probe(other, target.clone(), Vec::new())).await;
    assert!(!matches!(said, Response::Probed(report, _) if report.rtt_us.is_ok()), "{said:?}");
    let said = liar.ask(daemon, Request::Probe(subnet, target.clone(), Vec::new())).await;
    assert!(!matches!(said, Response::Probed(report, _) if report.rtt_us.is_ok()), "{said:?}");
    let own_target = ProbeTarget { address: own, ..target.clone() };
    let own_subnet: Subnet = web.places.lands[web.places.land_of(point.into()).unwrap()].subnet;
    let said = liar.ask(daemon, Request::Probe(own_subnet, own_target, Vec::new())).await;
    assert!(!matches!(said, Response::Probed(report, _) if report.rtt_us.is_ok()), "{said:?}");
    liar.ask(daemon, Request::FindOwner(subnet, target.clone())).await;
    let award = |subnet, rest| {
        let award = Award { subnet, epoch: 1, rtt_us: Some(1), runner_up: Some(me), probes: 9, answers: Vec::new(), part: None };
        Request::Award { award, rest }
    };
    liar.ask(daemon, award(subnet, 500)).await;
    liar.ask(daemon, award(own_subnet, u64::MAX)).await;
    let said = liar.ask(daemon, hand_off("a.test", "http://a.test:8080/", outside.ip())).await;
    assert!(matches!(said, Response::HandedOff { .. } | Response::Busy(_)), "{said:?}");

    // Nonsense that decodes.
    let key = JournalKey { subnet: own_subnet, host: "a.test".parse().unwrap(), run: u32::MAX };
    let row = |sequence, entry| JournalRow { key: key.clone(), sequence, entry };
    liar.ask(daemon, Request::Keep(vec![row(u64::MAX, vec![0xff; 10_000]), row(0, Vec::new()), row(0, vec![1])])).await;
    liar.ask(daemon, Request::Recall(own_subnet, Some((key.clone(), u64::MAX)))).await;
    let part = MapPart::around(u64::MAX, MAX_DEPTH);
    let said = liar.ask(daemon, Request::CompareClaims(vec![(part, MapDigest::of_listed([].into_iter())); 32])).await;
    assert!(matches!(&said, Response::Compared { whole: true, parts } if parts.len() == 32), "{said:?}");
    assert_eq!(liar.ask(daemon, Request::CompareClaims(Vec::new())).await, Response::Compared { whole: true, parts: Vec::new() });
    let wanted = WantedPart { part, after: Some(own_subnet), has: vec![MapDigest::EMPTY; 64] };
    assert_eq!(liar.ask(daemon, Request::SendClaims(vec![wanted; 64])).await, Response::Claims(Vec::new(), false));
    assert_eq!(liar.ask(daemon, Request::HierarchyManifest([7; 32])).await, Response::HierarchyManifest(None));
    assert_eq!(liar.ask(daemon, Request::HierarchyChunk { manifest: [7; 32], index: u32::MAX }).await, Response::HierarchyChunk(None));
    liar.ask(daemon, Request::Reserve("0.0.0.0/0".parse().unwrap(), ProbeTarget { address: own, ..target.clone() })).await;
    liar.tell(SwarmCommand::Publish(Gossip::Claims(vec![SignedClaim { bytes: vec![0xff; 80], signature: vec![0; 64], votes: None }])));
    liar.tell(SwarmCommand::Publish(Gossip::RollUp(Box::new(boundless(me)))));
    liar.tell(SwarmCommand::Publish(Gossip::RollUp(Box::new(boundless(daemon)))));

    // It still is who it was: nobody was sent anywhere, what it knows stands, what it refused is counted.
    // What it was talked into waits for its turn, comes to nothing, and is given up.
    let api = format!("http://{point}:4880");
    let common = swarm.common.clone();
    let after = swarm
        .until("all lies are dealt with", Duration::from_secs(60), async || {
            let now = status(common.ask(&["status", "--json", "--api", &api]).await.map_err(|why| why.to_string())?);
            let done = now["refusals"]["claims with a bad signature"].as_u64() >= Some(1) && now["waiting_urls"] == 0;
            if done { Ok(now) } else { Err(now.to_string()) }
        })
        .await;
    assert_eq!(after["work"]["pages"], before["work"]["pages"]);
    assert!(after["refusals"]["membership datagrams"].as_u64() >= Some(1), "{after}");
    let again: Vec<_> = swarm.log().since(asked).into_iter().filter(|request| request.method == "GET").collect();
    assert!(again.is_empty(), "{again:?}");
    assert_eq!((connects_outside.load(Ordering::Relaxed), connects_own.load(Ordering::Relaxed)), (0, 0));
    swarm.seed(0, &[web.url(0, 99)]).await;
    let log = swarm.log().clone();
    swarm
        .until("it works on", Duration::from_secs(20), async || {
            let new = log.since(asked);
            new.iter().find(|request| request.path == "/p99.html").map(|_| ()).ok_or(format!("{new:?}"))
        })
        .await;
    let held = swarm.held_by(0, 0).await;
    assert!(web.subnets().is_subset(&held), "{held:?}");
    assert!(swarm.told_to_a_stranger(0).await.is_ok());
    liar.tell(SwarmCommand::Stop);
    drop(tasks);
    assert!(swarm.stop().await);
}
