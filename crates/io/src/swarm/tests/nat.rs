//! Tests with members that nobody reaches.
//!
//! They are on loopback, and listen nowhere.

use super::*;

/// More than a connection through a third member carries before it is closed, in pieces.
const HANDED: usize = 72 << 20;
const PIECE: usize = 900 << 10;

fn open(number: u8) -> SwarmConfig {
    SwarmConfig { allow_ranges: vec!["127.0.77.0/24".parse().unwrap()], ..config(number) }
}

/// Nobody connects to this one.
fn start_behind(number: u8) -> Daemon {
    let config = SwarmConfig { listen: Vec::new(), ..open(number) };
    let (handle, events) = Swarm::start(config, [number; 32]).unwrap();
    Daemon { handle, events, passed: VecDeque::new(), address: String::new() }
}

impl Daemon {
    /// Waits until others get to this one in such a way.
    async fn reached(&mut self, wanted: impl Fn(&Reachability) -> bool) -> Reachability {
        self.find(|event| match event {
            SwarmEvent::Reachable(how) if wanted(how) => Some(how.clone()),
            _ => None,
        })
        .await
    }
}

/// Bytes that cannot be packed.
fn piece(number: u32) -> Vec<u8> {
    let mut state = u64::from(number) + 1;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(PIECE).collect()
}

/// Answers questions for pieces, until it is stopped.
async fn hand_over(mut from: Daemon) {
    while let Some(event) = from.events.recv().await {
        if let SwarmEvent::Asked { ticket, request: Request::HierarchyChunk { index, .. }, .. } = event {
            from.tell(SwarmCommand::Answer { ticket, response: Response::HierarchyChunk(Some(piece(index))) });
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_nobody_reaches_are_reached_through_another_and_hand_over_more_than_one_connection_carries() {
    let mut hub = Daemon::start(91, open(91)).await;
    let (mut asker, mut owner) = (start_behind(92), start_behind(93));
    asker.dial(&hub);
    owner.dial(&hub);
    let how = hub.reached(|how| how.reached == Reached::Public).await;
    assert!(how.relays_for_others && how.addresses.contains(&hub.address), "{how:?}");
    let behind = owner.reached(|how| !how.relays.is_empty()).await;
    assert_eq!((behind.reached, &*behind.relays), (Reached::Behind, &[hub.me()][..]));
    let (to, manifest) = (owner.me(), [0; 32]);
    asker.tell(SwarmCommand::Remember { peer: to, addresses: behind.addresses });
    let handing = tokio::spawn(hand_over(owner));
    let (mut handed, mut number, mut lost) = (0, 0, 0);
    while handed < HANDED {
        let question = QuestionId(1000 + number);
        let index = u32::try_from(number - lost).unwrap();
        asker.tell(SwarmCommand::Ask { to, question, request: Request::HierarchyChunk { manifest, index } });
        number += 1;
        match asker.answered(question.0).await {
            Ok(Response::HierarchyChunk(Some(bytes))) => {
                assert_eq!(bytes, piece(index));
                handed += bytes.len();
            }
            other => {
                lost += 1;
                assert!(lost < 50, "{other:?} after {handed} bytes");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    assert!(lost > 0, "one connection carries less");
    assert!(hub.handle.counters().circuits.load(Ordering::Relaxed) >= 2);
    handing.abort();
    for daemon in [hub, asker] {
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_meet_by_quic_and_not_with_a_pre_shared_key() {
    let by_quic = |number: u8| SwarmConfig { listen: vec![format!("/ip4/127.0.77.{number}/udp/0/quic-v1")], ..open(number) };
    let mut first = Daemon::start(94, by_quic(94)).await;
    let mut second = Daemon::start(95, by_quic(95)).await;
    assert!(first.address.contains("/quic-v1/p2p/"));
    second.dial(&first);
    second.connected(first.me()).await;
    first.connected(second.me()).await;
    let how = first.reached(|how| how.reached == Reached::Public).await;
    assert_eq!(how.addresses, [first.address.clone()]);
    let keyed = SwarmConfig { pre_shared_key: Some([1; 32]), ..by_quic(96) };
    let tcp = "/ip4/127.0.77.96/tcp/0".to_owned();
    let keyed = Daemon::start(96, SwarmConfig { listen: [keyed.listen.clone(), vec![tcp]].concat(), ..keyed }).await;
    assert!(keyed.address.contains("/tcp/"), "{}", keyed.address);
    for daemon in [first, second, keyed] {
        daemon.stop().await;
    }
}

/// What a member finds that a program asks which is none and listens here; the program connects from 127.0.77.98.
async fn found_by(member: &mut Daemon, listen: &str) -> SeenFrom {
    let reader = ReaderConfig { source_address: Some(Ipv4Addr::new(127, 0, 77, 98).into()), ..ReaderConfig::default() };
    let (address, listen) = (member.address.clone(), [listen.to_owned()]);
    let asking = tokio::spawn(async move { seen_from(&reader, &address, &listen, WITHIN).await });
    let ticket = member.find(|event| if let SwarmEvent::PublicAsked { ticket, .. } = event { Some(*ticket) } else { None }).await;
    member.tell(SwarmCommand::AnswerPublic { ticket, response: PublicResponse::Refused("for members only".to_owned()) });
    asking.await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_is_no_member_yet_learns_whether_others_will_reach_it() {
    let mut member = Daemon::start(97, open(97)).await;
    let open_port = found_by(&mut member, "/ip4/127.0.77.98/tcp/0").await;
    assert_eq!((open_port.member, open_port.seen), (Some(member.me()), Some(Ipv4Addr::new(127, 0, 77, 98).into())));
    let [(address, true)] = &open_port.tried[..] else { panic!("{open_port:?}") };
    assert!(address.starts_with("/ip4/127.0.77.98/tcp/"), "{address}");
    // It waits at another address than the one that it is seen at, as behind a router that forwards nothing.
    let closed = found_by(&mut member, "/ip4/127.0.77.99/tcp/0").await;
    assert!(matches!(closed.tried[..], [(_, false)]), "{closed:?}");
    let mut secluded = Daemon::start(89, SwarmConfig { tries_readers: false, ..open(89) }).await;
    let untried = found_by(&mut secluded, "/ip4/127.0.77.98/tcp/0").await;
    assert_eq!((untried.seen, untried.tried.len()), (None, 0), "it tells members only");
    for daemon in [member, secluded] {
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_says_where_it_is_reached_and_who_listens_nowhere_learn_at_which_addresses_others_see_them_all_the_same() {
    let hub = Daemon::start(86, open(86)).await;
    let announce = "/dns4/home.dyn.test/tcp/4817";
    let mut advertised = Daemon::start(87, SwarmConfig { announce: vec![announce.to_owned()], ..open(87) }).await;
    let mut behind = start_behind(88);
    advertised.dial(&hub);
    behind.dial(&hub);
    let own = |number: u8| [std::net::IpAddr::from([127, 0, 77, number])];
    let how = advertised.reached(|how| !how.own.is_empty()).await;
    assert_eq!(how.own, own(87));
    assert!(how.addresses.len() == 1 && how.addresses[0].starts_with(announce), "what the operator says is told: {how:?}");
    assert!(how.reached == Reached::Public && how.confirmed.is_empty() && how.relays.is_empty(), "{how:?}");
    let how = behind.reached(|how| !how.own.is_empty()).await;
    assert_eq!((how.own, how.reached), (own(88).to_vec(), Reached::Behind));
    for daemon in [hub, advertised, behind] {
        daemon.stop().await;
    }
}
