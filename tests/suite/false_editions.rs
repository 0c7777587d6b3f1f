//! Test of a member that announces hierarchies that it does not have.
//!
//! Each is requested once, refused and counted, and the others continue.

use crate::{
    shared_hierarchy::{all_use, built, date, give, hashes, hex, prepare, status},
    support::Swarm,
};
use nearcrawl::io::swarm::{Swarm as Peer, SwarmCommand, SwarmConfig, SwarmEvent, SwarmHandle};
use nearcrawl_core::membership::{Member, Output, Swim, SwimConfig};
use nearcrawl_hierarchy::{CHUNK_LENGTH, MAX_FILE, Manifest};
use nearcrawl_model::{
    edition::{Edition, Endorsement},
    ids::QuestionId,
    message::{Gossip, Request, Response},
    time::Moment,
};
use serde::Serialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, task::JoinHandle, time::interval};

const SOON: Duration = Duration::from_secs(40);

/// By how much a daemon may grow while it is lied to, in KiB: a fraction of what it is promised, which is 128 MiB.
const MAX_GROWTH_KIB: u64 = 48 << 10;

/// What the liar says of an edition, and what it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// It votes for nothing yet.
    Nothing,
    /// Its manifest is of a file that nobody may have.
    Size,
    /// Its pieces are not those of its manifest.
    WrongPieces,
    /// Its manifest is of the largest file, and every piece has all the room of a message.
    EndlessPieces,
    /// Its pieces are right, and together they are no hierarchy.
    NoHierarchy,
}

/// The lies in the order in which they are told, and what is counted for each: things that were not what they were called.
const LIES: [(Lie, u64); 4] = [(Lie::Size, 1), (Lie::WrongPieces, 1), (Lie::EndlessPieces, 1), (Lie::NoHierarchy, 1)];

/// A manifest as it travels.
#[derive(Serialize)]
struct Manifested {
    hash: [u8; 32],
    length: u64,
    built: u32,
    subnets: u32,
    digests: Vec<[u8; 32]>,
}

impl Lie {
    fn edition(self) -> Edition {
        Edition { hash: [0xf0 | self as u8; 32], built: date(0).parse().unwrap() }
    }

    fn answer(self, request: &Request) -> Response {
        let hash = self.edition().hash;
        let file = vec![9; CHUNK_LENGTH];
        let of = |length, digests| Manifested { hash, length, built: 0, subnets: 0, digests };
        let encoded = |manifest: &Manifested| Response::HierarchyManifest(Some(postcard::to_stdvec(manifest).unwrap()));
        match (self, request) {
            (Lie::Size, Request::HierarchyManifest(_)) => encoded(&of(u64::MAX, vec![[7; 32]; 4])),
            (Lie::EndlessPieces, Request::HierarchyManifest(_)) => {
                encoded(&of(MAX_FILE, vec![[7; 32]; (MAX_FILE / CHUNK_LENGTH as u64) as usize]))
            }
            (Lie::WrongPieces | Lie::NoHierarchy, Request::HierarchyManifest(_)) => {
                Response::HierarchyManifest(Some(postcard::to_stdvec(&Manifest::of(hash, &file)).unwrap()))
            }
            (Lie::NoHierarchy, Request::HierarchyChunk { .. }) => Response::HierarchyChunk(Some(file)),
            (Lie::WrongPieces, Request::HierarchyChunk { .. }) => Response::HierarchyChunk(Some(vec![8; CHUNK_LENGTH])),
            (Lie::EndlessPieces, Request::HierarchyChunk { .. }) => Response::HierarchyChunk(Some(vec![8; 1_000_000])),
            _ => Response::Busy(1_000),
        }
    }
}

/// A member that is alive and does nothing but lie.
struct Liar {
    lie: Arc<Mutex<Lie>>,
    /// How many pieces it was asked for.
    pieces: Arc<AtomicUsize>,
    life: JoinHandle<()>,
}

impl Liar {
    fn join(at: Ipv4Addr, bootstrap: String) -> Liar {
        let config = SwarmConfig { listen: vec![format!("/ip4/{at}/tcp/0")], source_address: Some(at.into()), ..SwarmConfig::default() };
        let (handle, events) = Peer::start(config, [205; 32]).unwrap();
        let (lie, pieces) = (Arc::new(Mutex::new(Lie::Nothing)), Arc::<AtomicUsize>::default());
        handle.tell(SwarmCommand::Dial { address: bootstrap }).unwrap();
        let life = tokio::spawn(live(handle, events, lie.clone(), pieces.clone()));
        Liar { lie, pieces, life }
    }

    fn say(&self, lie: Lie) {
        *self.lie.lock().unwrap() = lie;
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.life.abort();
    }
}

/// Answers SWIM as a member does, announces hierarchies that it does not have, and answers requests for them.
async fn live(handle: SwarmHandle, mut events: mpsc::Receiver<SwarmEvent>, lie: Arc<Mutex<Lie>>, pieces: Arc<AtomicUsize>) {
    let (began, me) = (Instant::now(), handle.me());
    let now = || Moment(began.elapsed().as_millis() as u64);
    let mut membership = Swim::new(Member::new(me, 1, Vec::new()), SwimConfig::default().faster(5), 1);
    let mut beat = interval(Duration::from_millis(100));
    let mut version = 0;
    loop {
        tokio::select! {
            event = events.recv() => match event {
                None => return,
                Some(SwarmEvent::Listening { address }) => membership.readdress(now(), vec![address]),
                Some(SwarmEvent::Connected { peer, incarnation, addresses, .. }) => {
                    membership.join(now(), Member::new(peer, incarnation, addresses));
                }
                Some(SwarmEvent::Asked { from, ticket, request }) => {
                    pieces.fetch_add(usize::from(matches!(request, Request::HierarchyChunk { .. })), Ordering::Relaxed);
                    let response = match &request {
                        Request::Swim(bytes) => membership.receive(now(), from, bytes).map_or(Response::Busy(1_000), |()| Response::Noted),
                        other => lie.lock().unwrap().answer(other),
                    };
                    // Whoever asked may be gone.
                    let _ = handle.tell(SwarmCommand::Answer { ticket, response });
                }
                Some(_) => {}
            },
            _ = beat.tick() => {
                membership.tick(now());
                let lie = *lie.lock().unwrap();
                version += 1;
                if lie != Lie::Nothing && version % 5 == 0 {
                    let endorsement = Endorsement { by: me, version, uses: lie.edition(), endorses: lie.edition() };
                    let _ = handle.tell(SwarmCommand::Publish(Gossip::Endorsement(endorsement)));
                }
            }
        }
        let outputs: Vec<_> = membership.drain().collect();
        for output in outputs {
            if let Output::Send { to, addresses, bytes } = output {
                let _ = handle.tell(SwarmCommand::Remember { peer: to, addresses });
                let _ = handle.tell(SwarmCommand::Ask { to, question: QuestionId::NO_ANSWER, request: Request::Swim(bytes) });
            }
        }
    }
}

/// The most memory that a daemon has had so far, in KiB.
fn max_memory(swarm: &Swarm, daemon: usize) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", swarm.daemons[daemon].process().unwrap())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// What a daemon has refused, by reason.
async fn refusals(swarm: &Swarm, daemon: usize) -> BTreeMap<String, u64> {
    serde_json::from_value(status(swarm, daemon).await["refusals"].clone()).unwrap()
}

#[tokio::test]
async fn a_member_that_vouches_for_what_it_does_not_have_is_refused_and_counted_and_the_honest_edition_is_used() {
    let (mut swarm, web, files) = prepare(6, 2).await;
    swarm.start(0..2).await;
    let before = hashes(&swarm).await;
    let net = web.hosts[0].1.octets()[1];
    let liar = Liar::join(Ipv4Addr::new(127, net, 240, 5), swarm.daemons[0].multiaddress());
    let points = [0, 1].map(|daemon: usize| swarm.daemons[daemon].address);
    let asker = swarm.asker.clone();
    swarm
        .until("the liar is a member", SOON, async || {
            let known = [asker.alive(points[0]).await.unwrap_or(0), asker.alive(points[1]).await.unwrap_or(0)];
            if known == [3, 3] { Ok(()) } else { Err(format!("{known:?}")) }
        })
        .await;
    let memory = [max_memory(&swarm, 0), max_memory(&swarm, 1)];
    let (mut wrong, mut unusable) = (0, 0);
    for (lie, counted) in LIES {
        liar.say(lie);
        (wrong, unusable) = (wrong + counted, unusable + 1);
        for daemon in [0, 1] {
            let api = format!("http://{}:4880", points[daemon]);
            let common = swarm.common.clone();
            let what = format!("daemon {daemon} has seen through {lie:?}");
            swarm
                .until(&what, SOON, async || {
                    let said = common.ask(&["status", "--json", "--api", &api]).await.map_err(|why| why.to_string())?;
                    let now: Value = serde_json::from_str(&said).map_err(|why| why.to_string())?;
                    let seen = now["refusals"]["hierarchies that could not be fetched or are damaged"].as_u64() >= Some(unusable);
                    if seen { Ok(()) } else { Err(now["refusals"].to_string()) }
                })
                .await;
        }
    }
    for daemon in [0, 1] {
        let refused = refusals(&swarm, daemon).await;
        // Of a file of many pieces some are asked for before the first has come.
        let counted = refused["invalid manifests or chunks of hierarchies"];
        assert!((wrong..wrong + 4).contains(&counted), "{counted} were counted: {refused:?}");
        assert_eq!(refused["hierarchies that could not be fetched or are damaged"], unusable);
        let growth = max_memory(&swarm, daemon) - memory[daemon];
        assert!(growth < MAX_GROWTH_KIB, "daemon {daemon} grew by {growth} KiB");
        println!("daemon {daemon} counted {counted} wrong things and grew by {growth} KiB");
    }
    assert!(liar.pieces.load(Ordering::Relaxed) <= 2 * 6, "{:?} pieces were asked for", liar.pieces);
    assert_eq!(hashes(&swarm).await, before);

    // The liar goes on, and an operator has a real one.
    let new = built(&files);
    assert!(swarm.daemons[1].stop().await);
    give(&swarm, 1, &new);
    swarm.daemons[1].start(&swarm.common).unwrap();
    all_use(&mut swarm, &hex(new.hash())).await;
    drop(liar);
    assert!(swarm.stop().await);
}
