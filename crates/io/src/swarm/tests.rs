//! Tests of the swarm over real sockets on loopback, each daemon on an address of its own.

mod nat;

use super::{
    behaviour::HelloBehaviour,
    codec::{Arrived, MessageCodec},
    hello::{Hello, HelloAnswer},
    peers::MAX_HELLOS,
    run::MAX_DIALS,
    *,
};
use ed25519_dalek::SigningKey;
use libp2p::{
    Multiaddr, StreamProtocol,
    futures::StreamExt,
    identity::Keypair,
    multiaddr::Protocol,
    request_response::{self, Message, OutboundFailure, ProtocolSupport},
    swarm::{self as swarm_of, NetworkBehaviour, dial_opts::DialOpts},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{
        Admission, AdmissionMode, AdmissionRule, Certificate, Expulsion, Gate, Issuer, KnownExpulsion, NotAdmitted, RootKey,
        SignedAdmission,
    },
    fingerprint::FingerprintKey,
    ids::{QuestionId, Ticket},
    message::{Gossip, MAX_MESSAGE, PublicRequest, PublicResponse, Request, Response},
    packed_stream::Packer,
    receipt::Declined,
    summary::{RollUp, Summary},
    time::WallTime,
};
use std::{
    collections::VecDeque,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

const WITHIN: Duration = Duration::from_secs(20);
const SECRETS: SwarmSecrets = SwarmSecrets { swarm: [7; 16], fingerprint_key: FingerprintKey([8; 16]) };

/// One daemon's swarm, with the events that were passed over while waiting for another one.
struct Daemon {
    handle: SwarmHandle,
    events: mpsc::Receiver<SwarmEvent>,
    passed: VecDeque<SwarmEvent>,
    address: String,
}

fn config(number: u8) -> SwarmConfig {
    SwarmConfig {
        listen: vec![format!("/ip4/127.0.77.{number}/tcp/0")],
        source_address: Some(std::net::Ipv4Addr::new(127, 0, 77, number).into()),
        secrets: Some(SECRETS),
        answer_within: Duration::from_secs(5),
        ..SwarmConfig::default()
    }
}

impl Daemon {
    async fn start(number: u8, config: SwarmConfig) -> Daemon {
        let (handle, events) = Swarm::start(config, [number; 32]).unwrap();
        let mut daemon = Daemon { handle, events, passed: VecDeque::new(), address: String::new() };
        daemon.address =
            daemon.find(|event| if let SwarmEvent::Listening { address } = event { Some(address.clone()) } else { None }).await;
        daemon
    }

    /// Waits for an event and takes it out; the others stay.
    async fn find<T>(&mut self, wanted: impl Fn(&SwarmEvent) -> Option<T>) -> T {
        if let Some((place, found)) = self.passed.iter().enumerate().find_map(|(place, event)| Some((place, wanted(event)?))) {
            self.passed.remove(place);
            return found;
        }
        let search = async {
            loop {
                let event = self.events.recv().await.expect("the swarm runs");
                if let Some(found) = wanted(&event) {
                    return found;
                }
                self.passed.push_back(event);
            }
        };
        let found = tokio::time::timeout(WITHIN, search).await.ok();
        found.unwrap_or_else(|| panic!("{:?} waited in vain; it saw {:?}", self.handle.me(), self.passed))
    }

    fn tell(&self, command: SwarmCommand) {
        self.handle.tell(command).unwrap();
    }

    fn dial(&self, other: &Daemon) {
        self.tell(SwarmCommand::Dial { address: other.address.clone() });
    }

    async fn connected(&mut self, other: AccessPoint) -> Vec<String> {
        self.find(|event| match event {
            SwarmEvent::Connected { peer, addresses, .. } if *peer == other => Some(addresses.clone()),
            _ => None,
        })
        .await
    }

    /// Waits until the way to this one was timed.
    async fn timed(&mut self, other: AccessPoint) {
        self.find(|event| matches!(event, SwarmEvent::Timed { peer, .. } if *peer == other).then_some(())).await;
    }

    async fn asked(&mut self) -> (AccessPoint, Ticket, Request) {
        self.find(
            |event| if let SwarmEvent::Asked { from, ticket, request } = event { Some((*from, *ticket, request.clone())) } else { None },
        )
        .await
    }

    async fn answered(&mut self, number: u64) -> Result<Response, AskError> {
        self.find(|event| match event {
            SwarmEvent::Answered { question, result, .. } if *question == QuestionId(number) => Some(result.clone()),
            _ => None,
        })
        .await
    }

    async fn refused_by(&mut self) -> String {
        self.find(|event| if let SwarmEvent::RefusedBy { reason, .. } = event { Some(reason.clone()) } else { None }).await
    }

    async fn refused(&mut self) -> HelloError {
        self.find(|event| if let SwarmEvent::Refused { reason, .. } = event { Some(reason.clone()) } else { None }).await
    }

    fn me(&self) -> AccessPoint {
        self.handle.me()
    }

    /// Stops, and waits until the task has ended.
    async fn stop(mut self) {
        self.tell(SwarmCommand::Stop);
        let ended = async { while self.events.recv().await.is_some() {} };
        tokio::time::timeout(WITHIN, ended).await.expect("it ends");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_joiner_is_admitted_and_both_ask_each_other() {
    let mut first = Daemon::start(1, config(1)).await;
    let mut joiner = Daemon::start(2, SwarmConfig { secrets: None, incarnation: 5, ..config(2) }).await;
    joiner.dial(&first);
    let admitted =
        joiner.find(|event| if let SwarmEvent::Admitted { swarm, key, by } = event { Some((*swarm, *key, *by)) } else { None }).await;
    assert_eq!(admitted, (SECRETS.swarm, SECRETS.fingerprint_key, first.me()));
    assert!(first.address.starts_with(&joiner.connected(first.me()).await[0]), "the port is known");
    assert!(first.connected(joiner.me()).await[0].starts_with("/ip4/127.0.77.2/tcp/"));
    // Well before the next ping: how far members are decides who gets a subnet.
    first.timed(joiner.me()).await;
    joiner.timed(first.me()).await;

    joiner.tell(SwarmCommand::Ask { to: first.me(), question: QuestionId(11), request: Request::Swim(vec![1, 2, 3]) });
    let (from, ticket, request) = first.asked().await;
    assert_eq!((from, request), (joiner.me(), Request::Swim(vec![1, 2, 3])));
    first.tell(SwarmCommand::Answer { ticket, response: Response::Noted });
    assert_eq!(joiner.answered(11).await, Ok(Response::Noted));

    first.tell(SwarmCommand::Ask { to: joiner.me(), question: QuestionId(12), request: Request::Swim(vec![9; 900_000]) });
    let (_, ticket, _) = joiner.asked().await;
    joiner.tell(SwarmCommand::Answer { ticket, response: Response::ProbeDeclined(Declined::HeldBack, Vec::new()) });
    assert_eq!(first.answered(12).await, Ok(Response::ProbeDeclined(Declined::HeldBack, Vec::new())));

    let me = joiner.me();
    joiner.stop().await;
    first.find(|event| (*event == SwarmEvent::Disconnected { peer: me }).then_some(())).await;
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_does_not_fit_is_refused_and_both_sides_know_why() {
    let mut first = Daemon::start(11, config(11)).await;
    let mut stranger = Daemon::start(12, SwarmConfig { secrets: Some(SwarmSecrets { swarm: [1; 16], ..SECRETS }), ..config(12) }).await;
    let mut elsewhere = Daemon::start(13, SwarmConfig { secrets: Some(SwarmSecrets { swarm: [2; 16], ..SECRETS }), ..config(13) }).await;
    let mut lost = Daemon::start(14, SwarmConfig { secrets: None, ..config(14) }).await;
    stranger.dial(&first);
    assert!(stranger.refused_by().await.contains("bootstrap"));
    assert!(matches!(first.refused().await, HelloError::OtherSwarm { .. }));
    // A question that waits for the refused connection is answered, too.
    elsewhere.tell(SwarmCommand::Remember { peer: first.me(), addresses: vec![first.address.clone()] });
    elsewhere.tell(SwarmCommand::Ask { to: first.me(), question: QuestionId(1), request: Request::Farewell(true) });
    assert!(matches!(elsewhere.answered(1).await, Err(AskError::NotLetIn(_))));
    assert!(elsewhere.refused_by().await.contains("bootstrap"));
    assert!(matches!(first.refused().await, HelloError::OtherSwarm { .. }));
    // Nobody can be made to join by connecting to it.
    first.dial(&lost);
    assert!(first.refused_by().await.contains("not joined"));
    assert_eq!(lost.refused().await, HelloError::NoSwarmYet);
    assert_eq!(first.handle.counters().connected.load(Ordering::Relaxed), 0);
    for daemon in [first, stranger, elsewhere, lost] {
        daemon.stop().await;
    }
}

/// The root key of a swarm that is not open.
fn root_key() -> SigningKey {
    SigningKey::from_bytes(&[99; 32])
}

fn rule() -> AdmissionRule {
    let swarm = Some(RootKey(root_key().verifying_key().to_bytes()));
    AdmissionRule { mode: AdmissionMode::Invite, swarm, ..AdmissionRule::default() }
}

/// A member that asks others for certificates, and has one until then.
fn invited(number: u8, expires: WallTime) -> SwarmConfig {
    let (swarm, issued) = (rule().swarm.unwrap(), WallTime(1));
    let (member, label) = (access_point_of_seed([number; 32]), String::new());
    let certificate = Certificate { swarm, issuer: Issuer::Root, member, may_invite: false, issued, expires, label };
    let certificate = Some(SignedAdmission::by_root(&Admission::Certificate(certificate), &root_key()).unwrap());
    SwarmConfig { gate: Arc::new(Gate { rule: rule(), ..Gate::default() }), certificate, ..config(number) }
}

fn expulsion(member: AccessPoint) -> (SignedAdmission, Gate) {
    let (swarm, at) = (rule().swarm.unwrap(), WallTime(5));
    let one = Expulsion { swarm, issuer: Issuer::Root, member, serial: 5, at, reason: "a test".to_owned() };
    let signed = SignedAdmission::by_root(&Admission::Expulsion(one), &root_key()).unwrap();
    let known = Arc::new(KnownExpulsion { reason: "a test".to_owned(), signed: signed.clone() });
    (signed, Gate { rule: rule(), expelled: [(member, [(Issuer::Root, known)].into())].into(), ..Gate::default() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_not_invited_is_refused_and_who_is_expelled_is_hung_up_on_and_shown_why() {
    let forever = WallTime(u64::MAX);
    let mut first = Daemon::start(91, invited(91, forever)).await;
    let mut second = Daemon::start(92, invited(92, forever)).await;
    second.dial(&first);
    first.connected(second.me()).await;
    second.connected(first.me()).await;
    // Not without a certificate, whoever dials, nor with one of another member; and nobody is given the swarm's secrets.
    let of_first = invited(91, forever).certificate;
    let mut uninvited = Daemon::start(93, SwarmConfig { secrets: None, certificate: None, ..config(93) }).await;
    let thief = Daemon::start(94, SwarmConfig { certificate: of_first, ..config(94) }).await;
    uninvited.dial(&first);
    assert!(uninvited.refused_by().await.starts_with("not invited: this swarm takes members by invitation"));
    assert_eq!(first.refused().await, HelloError::NotAdmitted(NotAdmitted::NoCertificate));
    assert!(!uninvited.passed.iter().any(|event| matches!(event, SwarmEvent::Admitted { .. })));
    first.dial(&thief);
    assert!(first.refused().await.to_string().contains("made out to"));
    // The second is expelled: its connections end, and it is shown the expulsion when it comes back.
    let (signed, gate) = expulsion(second.me());
    first.tell(SwarmCommand::Guard(Arc::new(gate)));
    let (me, gone) = (first.me(), second.me());
    first.find(|event| (*event == SwarmEvent::Disconnected { peer: gone }).then_some(())).await;
    second.find(|event| (*event == SwarmEvent::Disconnected { peer: me }).then_some(())).await;
    second.dial(&first);
    let (reason, proof) = second
        .find(|event| match event {
            SwarmEvent::RefusedBy { reason, proof, .. } => Some((reason.clone(), proof.clone())),
            _ => None,
        })
        .await;
    assert_eq!((&*reason, proof.as_deref()), ("expelled: a test (by the root key)", Some(&signed)));
    for daemon in [first, second, uninvited, thief] {
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_ends_with_the_certificate() {
    let soon = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(3);
    let mut first = Daemon::start(95, invited(95, WallTime(u64::MAX))).await;
    let mut second = Daemon::start(96, invited(96, WallTime(soon.as_millis() as u64))).await;
    second.dial(&first);
    first.connected(second.me()).await;
    let gone = second.me();
    first.find(|event| (*event == SwarmEvent::Disconnected { peer: gone }).then_some(())).await;
    assert!(matches!(first.refused().await, HelloError::NotAdmitted(NotAdmitted::Ended(_))));
    second.dial(&first);
    assert!(second.refused_by().await.starts_with("not invited: the certificate ended"));
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gossip_reaches_everybody_also_those_without_a_direct_connection() {
    let mut chain = Vec::new();
    for number in 21..=24 {
        chain.push(Daemon::start(number, config(number)).await);
    }
    // Publishing alone is no error, and gets lost.
    chain[0].tell(SwarmCommand::Publish(Gossip::Claims(Vec::new())));
    for place in 1..chain.len() {
        chain[place].dial(&chain[place - 1]);
        let (left, right) = (chain[place - 1].me(), chain[place].me());
        chain[place].connected(left).await;
        chain[place - 1].connected(right).await;
    }
    let author = chain[0].me();
    let said = |version: u64| {
        Gossip::RollUp(Box::new(RollUp {
            owner: author,
            version,
            claims_digest: 0,
            subnets: 0,
            sure_of: 0,
            busy_permille: 0,
            price_permille: 1000,
            summary: Summary::default(),
        }))
    };
    // The mesh takes a few heartbeats to form: until then what is said may not come far.
    let mut reached = None;
    for number in 1..=40 {
        chain[0].tell(SwarmCommand::Publish(said(number)));
        let last = &mut chain[3];
        let arrival = last.find(|event| match event {
            SwarmEvent::Gossiped { from, author, gossip } => Some((*from, *author, gossip.clone())),
            _ => None,
        });
        if let Ok(arrival) = tokio::time::timeout(Duration::from_millis(500), arrival).await {
            reached = Some(arrival);
            break;
        }
    }
    let (from, by, _) = reached.expect("gossip comes to the end of the chain");
    assert_eq!((from, by), (chain[2].me(), author), "passed on by the neighbour, signed by the author");
    for daemon in chain {
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_connects_first_and_tells_when_nobody_is_there() {
    let first = Daemon::start(31, config(31)).await;
    let mut second = Daemon::start(32, config(32)).await;
    let mut third = Daemon::start(33, config(33)).await;
    second.tell(SwarmCommand::Remember { peer: third.me(), addresses: vec![third.address.clone()] });
    second.tell(SwarmCommand::Ask { to: third.me(), question: QuestionId(1), request: Request::Farewell(false) });
    let (from, ticket, _) = third.asked().await;
    assert_eq!(from, second.me());
    third.tell(SwarmCommand::Answer { ticket, response: Response::Noted });
    assert_eq!(second.answered(1).await, Ok(Response::Noted));

    second.tell(SwarmCommand::Ask { to: first.me(), question: QuestionId(2), request: Request::Farewell(false) });
    assert!(matches!(second.answered(2).await, Err(AskError::Unreachable(_))), "its address is not known");
    let (gone, address) = (first.me(), first.address.clone());
    first.stop().await;
    second.tell(SwarmCommand::Remember { peer: gone, addresses: vec![address.clone()] });
    second.tell(SwarmCommand::Ask { to: gone, question: QuestionId(3), request: Request::Farewell(false) });
    assert!(matches!(second.answered(3).await, Err(AskError::Unreachable(_))));
    second.tell(SwarmCommand::Dial { address });
    second.find(|event| matches!(event, SwarmEvent::DialFailed { .. }).then_some(())).await;
    second.tell(SwarmCommand::Dial { address: "nonsense".to_owned() });
    second.find(|event| matches!(event, SwarmEvent::DialFailed { reason, .. } if reason.contains("not a multiaddr")).then_some(())).await;
    // Never answered: the question ends by itself, on the side whose clock comes first, and the connection stands, for others are answered.
    second.tell(SwarmCommand::Ask { to: third.me(), question: QuestionId(4), request: Request::Farewell(false) });
    third.asked().await;
    second.tell(SwarmCommand::Ask { to: third.me(), question: QuestionId(6), request: Request::Swim(Vec::new()) });
    let (_, ticket, _) = third.asked().await;
    third.tell(SwarmCommand::Answer { ticket, response: Response::Noted });
    assert_eq!(second.answered(6).await, Ok(Response::Noted));
    let ended = second.answered(4).await;
    assert!(matches!(ended, Err(AskError::TimedOut | AskError::Dropped)), "{ended:?}");
    second.tell(SwarmCommand::Ask { to: third.me(), question: QuestionId(5), request: Request::Farewell(true) });
    let ticket = third
        .find(|event| match event {
            SwarmEvent::Asked { ticket, request: Request::Farewell(true), .. } => Some(*ticket),
            _ => None,
        })
        .await;
    third.tell(SwarmCommand::Answer { ticket, response: Response::Noted });
    assert_eq!(second.answered(5).await, Ok(Response::Noted));
    second.stop().await;
    third.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_open_questions_and_too_fast_ones_are_held_back() {
    let mut patient = Daemon::start(41, config(41)).await;
    let mut strict = Daemon::start(43, SwarmConfig { requests_per_second: 1, ..config(43) }).await;
    let mut asker = Daemon::start(42, config(42)).await;
    for other in [&patient, &strict] {
        asker.dial(other);
        asker.connected(other.me()).await;
    }
    // Nobody answers these, so they stay open.
    for question in 0..70 {
        asker.tell(SwarmCommand::Ask { to: patient.me(), question: QuestionId(question), request: Request::CompareClaims(Vec::new()) });
    }
    for question in 64..70 {
        assert_eq!(asker.answered(question).await, Err(AskError::TooManyOpen));
    }
    for _ in 0..64 {
        patient.asked().await;
    }
    // The burst of four is asked, the others are told to come back; SWIM is not held back by that.
    for question in 100..130 {
        asker.tell(SwarmCommand::Ask { to: strict.me(), question: QuestionId(question), request: Request::CompareClaims(Vec::new()) });
    }
    asker.find(|event| matches!(event, SwarmEvent::Answered { result: Ok(Response::Busy(_)), .. }).then_some(())).await;
    asker.tell(SwarmCommand::Ask { to: strict.me(), question: QuestionId(200), request: Request::Swim(vec![1]) });
    let ticket = strict
        .find(|event| if let SwarmEvent::Asked { ticket, request: Request::Swim(_), .. } = event { Some(*ticket) } else { None })
        .await;
    strict.tell(SwarmCommand::Answer { ticket, response: Response::Noted });
    assert_eq!(asker.answered(200).await, Ok(Response::Noted));
    assert!(strict.handle.counters().rate_limited.load(Ordering::Relaxed) >= 20);
    for daemon in [asker, patient, strict] {
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dials_beyond_the_limit_are_refused_and_counted() {
    // The kernel takes the connections and nobody says anything, so the dials stay under way.
    let silent = tokio::net::TcpListener::bind("127.0.77.90:0").await.unwrap();
    let address = format!("/ip4/127.0.77.90/tcp/{}", silent.local_addr().unwrap().port());
    let mut daemon = Daemon::start(91, SwarmConfig { max_connections: 4_096, ..config(91) }).await;
    for _ in 0..MAX_DIALS + 10 {
        daemon.tell(SwarmCommand::Dial { address: address.clone() });
    }
    for _ in 0..10 {
        let reason = daemon.find(|event| if let SwarmEvent::DialFailed { reason, .. } = event { Some(reason.clone()) } else { None }).await;
        assert!(reason.contains("too many dials"), "{reason}");
    }
    assert_eq!(daemon.handle.counters().dials_refused.load(Ordering::Relaxed), 10);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_reads_without_being_a_member() {
    let mut first = Daemon::start(51, config(51)).await;
    let address = first.address.clone();
    let reading = tokio::spawn(async move { ask_public(&address, PublicRequest::Results, WITHIN).await });
    let ticket = first.find(|event| if let SwarmEvent::PublicAsked { ticket, .. } = event { Some(*ticket) } else { None }).await;
    let answer = PublicResponse::Refused("members only".to_owned());
    first.tell(SwarmCommand::AnswerPublic { ticket, response: answer.clone() });
    assert_eq!(reading.await.unwrap(), Ok(answer));
    let own = |event: &SwarmEvent| matches!(event, SwarmEvent::Reachable(_));
    let meter = &first.handle.counters().meter;
    assert!(meter.moved() > 0 && meter.of_strangers() == meter.moved(), "{meter:?}");
    assert!(first.passed.iter().all(own), "a reader passes nothing on: {:?}", first.passed);
    assert!(matches!(ask_public("/ip4/127.0.77.52/tcp/9", PublicRequest::Results, WITHIN).await, Err(AskError::Unreachable(_))));
    assert!(matches!(ask_public("nonsense", PublicRequest::Results, WITHIN).await, Err(AskError::Unreachable(_))));
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pre_shared_key_keeps_out_who_does_not_have_it() {
    let mut first = Daemon::start(61, SwarmConfig { pre_shared_key: Some([3; 32]), ..config(61) }).await;
    let mut second = Daemon::start(62, SwarmConfig { pre_shared_key: Some([3; 32]), ..config(62) }).await;
    let outsider = tokio::time::timeout(WITHIN, ask_public(&first.address, PublicRequest::Results, Duration::from_secs(15))).await.unwrap();
    assert!(outsider.is_err(), "{outsider:?}");
    second.dial(&first);
    second.connected(first.me()).await;
    first.connected(second.me()).await;
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_member_is_announced_again_and_its_connections_come_from_its_address() {
    let mut first = Daemon::start(71, config(71)).await;
    let second = Daemon::start(72, config(72)).await;
    let it = second.me();
    second.dial(&first);
    first.connected(it).await;
    second.stop().await;
    first.find(|event| (*event == SwarmEvent::Disconnected { peer: it }).then_some(())).await;
    let mut again = Daemon::start(72, SwarmConfig { incarnation: 2, ..config(72) }).await;
    again.dial(&first);
    let life = first.find(|event| if let SwarmEvent::Connected { incarnation, .. } = event { Some(*incarnation) } else { None }).await;
    assert_eq!(life, 2);
    again.connected(first.me()).await;
    first.stop().await;
    again.stop().await;
}

#[test]
fn what_cannot_be_started_says_what_to_do() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let nonsense = Swarm::start(SwarmConfig { listen: vec!["0.0.0.0:4001".to_owned()], ..config(81) }, [81; 32]).unwrap_err();
        assert!(nonsense.to_string().contains("write it like /ip4/0.0.0.0/tcp/4817"), "{nonsense}");
        let elsewhere =
            Swarm::start(SwarmConfig { listen: vec!["/ip4/192.0.2.1/tcp/4001".to_owned()], ..config(81) }, [81; 32]).unwrap_err();
        let said = elsewhere.to_string();
        assert!(said.starts_with("swarm.listen = \"/ip4/192.0.2.1/tcp/4001\": cannot listen: Cannot assign requested address"), "{said}");
        assert!(said.ends_with("the address is not one of this machine"), "{said}");
    });
}

/// A peer that speaks our protocols without our manners.
#[derive(NetworkBehaviour)]
struct Rude {
    hello: HelloBehaviour,
    member: request_response::Behaviour<MessageCodec<Request, Response>>,
}

impl Rude {
    fn swarm() -> swarm_of::Swarm<Rude> {
        Rude::speaking(&["/nearcrawl/hello/1"], &["/nearcrawl/member/1"])
    }

    fn speaking(hello: &'static [&'static str], member: &'static [&'static str]) -> swarm_of::Swarm<Rude> {
        let protocols = |names: &'static [&'static str]| names.iter().map(|name| (StreamProtocol::new(name), ProtocolSupport::Full));
        let keypair = Keypair::generate_ed25519();
        let transport = transport::tcp(&keypair, transport::Line::default()).unwrap();
        let within = request_response::Config::default().with_request_timeout(Duration::from_secs(5));
        let behaviour = Rude {
            hello: request_response::Behaviour::with_codec(MessageCodec::new(1 << 20), protocols(hello), within.clone()),
            member: request_response::Behaviour::with_codec(MessageCodec::new(4 << 20), protocols(member), within),
        };
        swarm_of::Swarm::new(
            transport,
            behaviour,
            keypair.public().to_peer_id(),
            swarm_of::Config::with_tokio_executor().with_idle_connection_timeout(WITHIN),
        )
    }

    fn hello() -> Hello {
        Hello {
            protocol: PROTOCOL,
            swarm: Some(SECRETS.swarm),
            hierarchy_hash: [0; 32],
            incarnation: 1,
            software: "rude".to_owned(),
            reader: false,
            addresses: Vec::new(),
            oldest: PROTOCOL,
            certificate: None,
        }
    }

    /// Runs until it has seen what is wanted.
    async fn until<T>(rude: &mut swarm_of::Swarm<Rude>, mut wanted: impl FnMut(swarm_of::SwarmEvent<RudeEvent>) -> Option<T>) -> T {
        let search = async {
            loop {
                if let Some(found) = wanted(rude.select_next_some().await) {
                    return found;
                }
            }
        };
        tokio::time::timeout(WITHIN, search).await.expect("it happens")
    }

    async fn connect(rude: &mut swarm_of::Swarm<Rude>, daemon: &Daemon) -> libp2p::PeerId {
        rude.dial(DialOpts::from(daemon.address.parse::<Multiaddr>().unwrap())).unwrap();
        Rude::until(
            rude,
            |event| if let swarm_of::SwarmEvent::ConnectionEstablished { peer_id, .. } = event { Some(peer_id) } else { None },
        )
        .await
    }
}

/// The first protocol is proposed together with the hello, so that it is not spoken there comes to light only when the answer is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_does_not_speak_our_protocols_is_refused_without_delay() {
    let mut first = Daemon::start(98, config(98)).await;
    let mut other = Rude::speaking(&[], &[]);
    other.listen_on("/ip4/127.0.77.99/tcp/0".parse().unwrap()).unwrap();
    let address = loop {
        if let swarm_of::SwarmEvent::NewListenAddr { address, .. } = other.select_next_some().await {
            break address;
        }
    };
    let serving = tokio::spawn(async move {
        loop {
            other.select_next_some().await;
        }
    });
    first.tell(SwarmCommand::Dial { address: address.to_string() });
    assert_eq!(first.refused().await, HelloError::NoSwarm);
    serving.abort();
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_hello_nothing_is_heard_and_the_connection_ends() {
    let mut first = Daemon::start(91, config(91)).await;
    let mut rude = Rude::swarm();
    let peer = Rude::connect(&mut rude, &first).await;
    for _ in 0..20 {
        rude.behaviour_mut().member.send_request(&peer, Arrived::of(Request::Farewell(true)));
    }
    let refused = Rude::until(&mut rude, |event| match event {
        swarm_of::SwarmEvent::Behaviour(RudeEvent::Member(request_response::Event::Message {
            message: Message::Response { response, .. },
            ..
        })) => Some(response),
        _ => None,
    })
    .await;
    assert!(matches!(refused, Response::Refused(text) if text.contains("hello")), "what is more than can be held is refused");
    Rude::until(&mut rude, |event| matches!(event, swarm_of::SwarmEvent::ConnectionClosed { .. }).then_some(())).await;
    assert_eq!(first.refused().await, HelloError::NoHello(5));
    assert!(!first.passed.iter().any(|event| matches!(event, SwarmEvent::Asked { .. })));
    first.stop().await;
}

impl Rude {
    /// The next answer to a hello; none if the connection has ended.
    async fn greeted(rude: &mut swarm_of::Swarm<Rude>) -> Option<HelloAnswer> {
        Rude::until(rude, |event| match event {
            swarm_of::SwarmEvent::Behaviour(RudeEvent::Hello(request_response::Event::Message {
                message: Message::Response { response, .. },
                ..
            })) => Some(Some(response)),
            swarm_of::SwarmEvent::ConnectionClosed { .. } => Some(None),
            _ => None,
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_refused_is_hung_up_on_however_often_it_says_hello() {
    let mut first = Daemon::start(89, config(89)).await;
    let mut rude = Rude::swarm();
    let peer = Rude::connect(&mut rude, &first).await;
    let hello = || Arrived::of(Hello { swarm: Some([1; 16]), ..Rude::hello() });
    for _ in 0..MAX_HELLOS + 2 {
        rude.behaviour_mut().hello.send_request(&peer, hello());
        let Some(HelloAnswer::Refused(..)) = Rude::greeted(&mut rude).await else { panic!("it is refused") };
    }
    let counters = first.handle.counters();
    let counted = || (counters.refused.load(Ordering::Relaxed), counters.malformed.load(Ordering::Relaxed));
    assert_eq!(counted(), (1, 2), "it is judged once, and more than a few hellos are an offence");
    // Each of these comes sooner than it would have been hung up on after the one before.
    let mut again = tokio::time::interval(Duration::from_millis(300));
    let ended = async {
        while rude.is_connected(&peer) {
            tokio::select! {
                _ = again.tick() => drop(rude.behaviour_mut().hello.send_request(&peer, hello())),
                _ = rude.select_next_some() => {}
            }
        }
    };
    tokio::time::timeout(WITHIN, ended).await.expect("the connection ends");
    assert!(matches!(first.refused().await, HelloError::OtherSwarm { .. }));
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_says_that_it_only_reads_is_none_any_more() {
    let mut first = Daemon::start(90, config(90)).await;
    let mut rude = Rude::swarm();
    let peer = Rude::connect(&mut rude, &first).await;
    rude.behaviour_mut().hello.send_request(&peer, Arrived::of(Rude::hello()));
    let Some(HelloAnswer::Welcome { .. }) = Rude::greeted(&mut rude).await else { panic!("it is let in") };
    let me = access_point_of(rude.local_peer_id()).unwrap();
    first.connected(me).await;
    rude.behaviour_mut().hello.send_request(&peer, Arrived::of(Hello { reader: true, ..Rude::hello() }));
    let Some(HelloAnswer::Refused(..)) = Rude::greeted(&mut rude).await else { panic!("it is refused") };
    first.find(|event| (*event == SwarmEvent::Disconnected { peer: me }).then_some(())).await;
    assert_eq!(first.handle.counters().connected.load(Ordering::Relaxed), 0);
    assert_eq!(Rude::greeted(&mut rude).await, None, "and the connection ends");
    first.stop().await;
}

/// A release with the next protocol version is let in. What it says that is not known here is refused, and it is not shut out for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_of_the_next_protocol_version_is_let_in_and_may_say_what_is_not_known() {
    let mut first = Daemon::start(96, config(96)).await;
    let mut next = Rude::swarm();
    let peer = Rude::connect(&mut next, &first).await;
    let hello = Hello { protocol: PROTOCOL + 1, oldest: PROTOCOL, ..Rude::hello() };
    next.behaviour_mut().hello.send_request(&peer, Arrived::of(hello));
    Rude::until(&mut next, |event| match event {
        swarm_of::SwarmEvent::Behaviour(RudeEvent::Hello(request_response::Event::Message {
            message: Message::Response { response: HelloAnswer::Welcome { .. }, .. },
            ..
        })) => Some(()),
        _ => None,
    })
    .await;
    for count in 1..=20 {
        // Longer than allowed is as unreadable as a question that is not known.
        next.behaviour_mut().member.send_request(&peer, Arrived::of(Request::Swim(vec![0; MAX_MESSAGE + 1])));
        let answer = Rude::until(&mut next, |event| match event {
            swarm_of::SwarmEvent::Behaviour(RudeEvent::Member(request_response::Event::Message {
                message: Message::Response { response, .. },
                ..
            })) => Some(response),
            _ => None,
        })
        .await;
        assert!(matches!(&answer, Response::Refused(text) if text.contains("does not know")), "{answer:?}");
        assert_eq!(first.handle.counters().unknown.load(Ordering::Relaxed), count);
    }
    next.behaviour_mut().member.send_request(&peer, Arrived::of(Request::Farewell(false)));
    let polling = tokio::spawn(async move {
        loop {
            next.select_next_some().await;
        }
    });
    first.find(|event| matches!(event, SwarmEvent::Asked { request: Request::Farewell(false), .. }).then_some(())).await;
    assert_eq!(first.handle.counters().malformed.load(Ordering::Relaxed), 0);
    polling.abort();
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversized_messages_change_nothing_are_counted_and_at_last_shut_the_peer_out() {
    let mut first = Daemon::start(95, config(95)).await;
    let mut rude = Rude::swarm();
    let peer = Rude::connect(&mut rude, &first).await;
    rude.behaviour_mut().hello.send_request(&peer, Arrived::of(Rude::hello()));
    Rude::until(&mut rude, |event| match event {
        swarm_of::SwarmEvent::Behaviour(RudeEvent::Hello(request_response::Event::Message {
            message: Message::Response { response: HelloAnswer::Welcome { .. }, .. },
            ..
        })) => Some(()),
        _ => None,
    })
    .await;
    for count in 1..=16 {
        rude.behaviour_mut().member.send_request(&peer, Arrived::of(Request::Swim(vec![0; MAX_MESSAGE + 1])));
        let failure = Rude::until(&mut rude, |event| match event {
            swarm_of::SwarmEvent::Behaviour(RudeEvent::Member(request_response::Event::OutboundFailure { error, .. })) => Some(error),
            _ => None,
        })
        .await;
        assert!(matches!(failure, OutboundFailure::Io(_) | OutboundFailure::ConnectionClosed), "{failure:?}");
        assert_eq!(first.handle.counters().malformed.load(Ordering::Relaxed), count);
    }
    assert_eq!(first.refused().await, HelloError::Misbehaved(16));
    assert_eq!(first.handle.counters().shut_out.load(Ordering::Relaxed), 1);
    assert!(!first.passed.iter().any(|event| matches!(event, SwarmEvent::Asked { .. })), "nothing of it was taken");
    first.stop().await;
}

/// Passes connections on to a daemon.
struct Between {
    address: String,
    /// What passed, in both directions.
    bytes: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
    /// So many of the connections stay open, but nothing passes them any more.
    lost: Arc<AtomicU64>,
}

async fn between(to: &Daemon, number: u8) -> Between {
    let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 77, number), 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let target: Multiaddr = to.address.parse().unwrap();
    let parts: Vec<_> = target.iter().collect();
    let [Protocol::Ip4(ip), Protocol::Tcp(there), ..] = parts[..] else { panic!("{target}") };
    let peer = peer_id_of(to.me()).unwrap();
    let address = format!("/ip4/127.0.77.{number}/tcp/{port}/p2p/{peer}");
    let [bytes, connections, lost] = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
    let seen = Between { address, bytes: bytes.clone(), connections: connections.clone(), lost: lost.clone() };
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let this = connections.fetch_add(1, Ordering::Relaxed);
            let far = TcpStream::connect((ip, there)).await.unwrap();
            let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
            for (mut from, mut to) in [(near_read, far_write), (far_read, near_write)] {
                let (bytes, lost) = (bytes.clone(), lost.clone());
                tokio::spawn(async move {
                    let mut buffer = [0; 4096];
                    while let Ok(read @ 1..) = from.read(&mut buffer).await {
                        if this < lost.load(Ordering::Relaxed) {
                            continue;
                        }
                        bytes.fetch_add(read as u64, Ordering::Relaxed);
                        to.write_all(&buffer[..read]).await.unwrap();
                    }
                    if this < lost.load(Ordering::Relaxed) {
                        std::future::pending::<()>().await;
                    }
                });
            }
        }
    });
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_on_which_nothing_comes_any_more_is_replaced() {
    let mut first = Daemon::start(64, config(64)).await;
    let mut second = Daemon::start(65, config(65)).await;
    let way = between(&first, 66).await;
    second.tell(SwarmCommand::Remember { peer: first.me(), addresses: vec![way.address.clone()] });
    second.tell(SwarmCommand::Ask { to: first.me(), question: QuestionId(1), request: Request::Farewell(false) });
    let (_, ticket, _) = first.asked().await;
    first.tell(SwarmCommand::Answer { ticket, response: Response::Noted });
    assert_eq!(second.answered(1).await, Ok(Response::Noted));

    // As when the network is parted: nobody hangs up.
    way.lost.store(way.connections.load(Ordering::Relaxed), Ordering::Relaxed);
    second.tell(SwarmCommand::Ask { to: first.me(), question: QuestionId(2), request: Request::Farewell(false) });
    assert_eq!(second.answered(2).await, Err(AskError::TimedOut));
    second.find(|event| matches!(event, SwarmEvent::Disconnected { .. }).then_some(())).await;
    second.tell(SwarmCommand::Ask { to: first.me(), question: QuestionId(3), request: Request::Farewell(true) });
    let ticket = first
        .find(|event| match event {
            SwarmEvent::Asked { ticket, request: Request::Farewell(true), .. } => Some(*ticket),
            _ => None,
        })
        .await;
    first.tell(SwarmCommand::Answer { ticket, response: Response::Noted });
    assert_eq!(second.answered(3).await, Ok(Response::Noted));
    second.stop().await;
    first.stop().await;
}

/// What the laboratory counts for each question and each answer, beside their packed texts (`FRAMING` in crates/lab/src/swarm/network.rs).
const FRAMING: u64 = 34;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_question_adds_little_to_what_it_says() {
    let mut first = Daemon::start(61, config(61)).await;
    let mut second = Daemon::start(62, config(62)).await;
    let Between { address, bytes, .. } = between(&first, 63).await;
    second.tell(SwarmCommand::Dial { address });
    first.connected(second.me()).await;
    second.connected(first.me()).await;
    let (mut before, questions) = (0, 100);
    // The first opens the stream.
    for number in 0..=questions {
        if number == 1 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            before = bytes.load(Ordering::Relaxed);
        }
        second.tell(SwarmCommand::Ask { to: first.me(), question: QuestionId(number), request: Request::Swim(vec![7; 50]) });
        let (_, ticket, _) = first.asked().await;
        first.tell(SwarmCommand::Answer { ticket, response: Response::Noted });
        assert_eq!(second.answered(number).await, Ok(Response::Noted));
    }
    let text = |message: Vec<u8>| {
        let mut said = Packer::default();
        said.pack(&message);
        said.pack(&message).len()
    };
    let question = postcard::to_stdvec(&Request::Swim(vec![7; 50])).unwrap();
    let said = text(question) + text(postcard::to_stdvec(&Response::Noted).unwrap());
    let each = (bytes.load(Ordering::Relaxed) - before) / questions;
    println!("{each} bytes a question and answer, whose texts take {said}");
    // Heartbeats of gossip may come in between.
    let expected = said as u64 + 2 * FRAMING;
    assert!((expected..expected + 12).contains(&each), "{each} bytes for a question and an answer, not {expected}");
}

/// What cannot be packed.
fn noise(bytes: usize) -> Vec<u8> {
    let next = |state: &mut u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((*state >> 56) as u8)
    };
    std::iter::from_fn({
        let mut state = 7u64;
        move || next(&mut state)
    })
    .take(bytes)
    .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_among_members_are_counted_at_both_ends_by_tcp_and_by_quic() {
    const BYTES: usize = 600_000;
    let by_quic = |number: u8| SwarmConfig { listen: vec![format!("/ip4/127.0.77.{number}/udp/0/quic-v1")], ..config(number) };
    for (numbers, [one, other]) in [((111, 112), [config(111), config(112)]), ((113, 114), [by_quic(113), by_quic(114)])] {
        let mut first = Daemon::start(numbers.0, one).await;
        let mut second = Daemon::start(numbers.1, other).await;
        first.dial(&second);
        first.connected(second.me()).await;
        second.connected(first.me()).await;
        let moved = |daemon: &Daemon| daemon.handle.counters().meter.moved();
        let strangers = |daemon: &Daemon| daemon.handle.counters().meter.of_strangers();
        // Until a hello is accepted its sender may be anybody. Whom we dial was named to us.
        let unknown = strangers(&second);
        assert!((300..20_000).contains(&unknown), "{numbers:?}: {unknown}");
        let before = [moved(&first), moved(&second)];
        assert!(before.iter().all(|bytes| (1_000..100_000).contains(bytes)), "hellos: {before:?}");
        first.tell(SwarmCommand::Ask { to: second.me(), question: QuestionId(1), request: Request::Swim(noise(BYTES)) });
        let (_, ticket, _) = second.asked().await;
        second.tell(SwarmCommand::Answer { ticket, response: Response::Noted });
        assert_eq!(first.answered(1).await, Ok(Response::Noted));
        for (daemon, before) in [&first, &second].into_iter().zip(before) {
            let counted = moved(daemon) - before;
            // Headers, acknowledgements, and what else members say meanwhile.
            assert!((BYTES as u64..BYTES as u64 * 115 / 100).contains(&counted), "{numbers:?}: {counted}");
        }
        // Each finds out whether the other one is reached, by connections that say no hello.
        assert!(strangers(&first).max(strangers(&second)) < 40_000, "{numbers:?}: {} and {}", strangers(&first), strangers(&second));
        first.stop().await;
        second.stop().await;
    }
}
