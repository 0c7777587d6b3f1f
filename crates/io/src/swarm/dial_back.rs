//! Protocol for checking whether others can connect to us.
//!
//! A member that we are connected to tries, at the address that it sees us at and the ports that we name.
//!
//! libp2p's AutoNAT lets the asking side name the addresses, so that a member could have others dial whatever it likes. Here it names ports
//! only: nobody but the one who asks is dialled. The attempt is made under a key that is discarded, beside the connections between
//! members, so that it closes none of them and nothing is asked over it.

use super::{
    dialling::Dialable,
    port::{Port, may_be_named},
    rate::TokenBucket,
    transport::{self, Line},
};
use libp2p::{
    PeerId, Transport,
    core::{
        Endpoint,
        transport::{DialOpts, PortUse},
    },
    identity::Keypair,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Ports that may be named at a time.
pub(super) const MAX_PORTS: usize = 4;

/// The longest question or answer, in bytes.
pub(super) const MAX_DIAL_BACK: usize = 64;

/// How long one attempt may take, and all of a question, which begin together.
const TRIED_FOR: Duration = Duration::from_secs(5);

/// How long an answer may take.
pub(super) const ANSWERED_WITHIN: Duration = Duration::from_secs(8);

/// Questions that are being answered at a time; those of one peer: so many at once, then one in this time.
const MAX_UNDER_WAY: usize = 8;
const AT_ONCE: u32 = 6;
const ONE_EACH: Duration = Duration::from_secs(10);

/// Those of programs that are no members: so many are being answered at a time, and so many at once, then one in [`ONE_EACH`], all together. Their
/// keys cost nothing.
const MAX_READERS_UNDER_WAY: usize = 2;
const READERS_AT_ONCE: u32 = 4;

/// Peers whose questions are counted.
const MAX_ASKING: usize = 4096;

/// "Do you reach me at these ports?" Without ports: "are you there, and where do you see me?"
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DialBack {
    /// At most [`MAX_PORTS`].
    pub(super) ports: Vec<Port>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DialedBack {
    /// The address that the question came from; none if it came through a third member, or if too much is asked at the moment.
    pub(super) seen: Option<IpAddr>,
    /// Of each port in the order of the question whether the one who asked answered there.
    pub(super) reached: Vec<bool>,
}

impl DialedBack {
    /// Nothing was tried.
    pub(super) fn nothing() -> DialedBack {
        DialedBack { seen: None, reached: Vec::new() }
    }
}

/// Answers such questions.
pub(super) struct DialBacks {
    line: Line,
    under_way: Arc<AtomicUsize>,
    asking: HashMap<PeerId, TokenBucket>,
    readers: TokenBucket,
    readers_under_way: Arc<AtomicUsize>,
}

impl DialBacks {
    /// Connecting as the swarm does, to what it may dial.
    pub(super) fn new(source: Option<IpAddr>, key: Option<[u8; 32]>, dialable: Dialable) -> DialBacks {
        DialBacks {
            line: Line { source, key, dialable: Some(dialable), ..Line::default() },
            under_way: Arc::default(),
            asking: HashMap::new(),
            readers: TokenBucket::every(READERS_AT_ONCE, ONE_EACH, Instant::now()),
            readers_under_way: Arc::default(),
        }
    }

    /// Tries these ports of a peer that is connected from this address; none if too much is being tried.
    pub(super) fn answer(
        &mut self,
        peer: PeerId,
        from: IpAddr,
        question: DialBack,
        now: Instant,
    ) -> Option<impl Future<Output = DialedBack> + Send + use<>> {
        if self.asking.len() >= MAX_ASKING && !self.asking.contains_key(&peer) {
            self.asking.retain(|_, bucket| !bucket.is_full(now));
        }
        let room = self.asking.len() < MAX_ASKING || self.asking.contains_key(&peer);
        let in_time = room && self.asking.entry(peer).or_insert_with(|| TokenBucket::every(AT_ONCE, ONE_EACH, now)).take(now);
        if !in_time || question.ports.len() > MAX_PORTS || self.under_way.load(Ordering::Relaxed) >= MAX_UNDER_WAY {
            return None;
        }
        Some(self.try_ports(peer, from, question, self.under_way.clone()))
    }

    /// The same for a program that is no member. Members' questions do not wait for theirs.
    pub(super) fn answer_reader(
        &mut self,
        peer: PeerId,
        from: IpAddr,
        question: DialBack,
        now: Instant,
    ) -> Option<impl Future<Output = DialedBack> + Send + use<>> {
        if question.ports.len() > MAX_PORTS
            || self.readers_under_way.load(Ordering::Relaxed) >= MAX_READERS_UNDER_WAY
            || !self.readers.take(now)
        {
            return None;
        }
        Some(self.try_ports(peer, from, question, self.readers_under_way.clone()))
    }

    fn try_ports(
        &self,
        peer: PeerId,
        from: IpAddr,
        question: DialBack,
        under_way: Arc<AtomicUsize>,
    ) -> impl Future<Output = DialedBack> + Send + use<> {
        let (line, under_way) = (self.line.clone(), UnderWay::begin(under_way));
        async move {
            let tries = question.ports.into_iter().map(|port| reaches(line.clone(), peer, from, port));
            let reached = libp2p::futures::future::join_all(tries).await;
            drop(under_way);
            DialedBack { seen: Some(from), reached }
        }
    }
}

/// Counts a question as long as it is being answered.
struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn begin(count: Arc<AtomicUsize>) -> UnderWay {
        count.fetch_add(1, Ordering::Relaxed);
        UnderWay(count)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether this peer, with its key, answers at this port there. Others may share its address, so other services' ports are not tried.
async fn reaches(line: Line, peer: PeerId, from: IpAddr, port: Port) -> bool {
    if !may_be_named(port.number()) {
        return false;
    }
    let address = port.at(from);
    let Ok(mut transport) = transport::direct(&Keypair::generate_ed25519(), line) else { return false };
    let Ok(dial) = transport.dial(address, DialOpts { role: Endpoint::Dialer, port_use: PortUse::New }) else { return false };
    matches!(tokio::time::timeout(TRIED_FOR, dial).await, Ok(Ok((answered, _))) if answered == peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::messages::SwarmCounters;

    fn dial_backs() -> DialBacks {
        DialBacks::new(None, None, Dialable::new(&[], std::iter::empty(), Arc::<SwarmCounters>::default()))
    }

    /// Ten thousand questions of one member that is connected from a special address: hardly any is tried, and none leaves a packet there.
    #[tokio::test]
    async fn hostile_questions_cause_few_dials_and_none_to_special_addresses() {
        let victim = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = Port::Tcp(victim.local_addr().unwrap().port());
        let (mut dial_backs, peer, now) = (dial_backs(), PeerId::random(), Instant::now());
        let mut tried = Vec::new();
        for _ in 0..10_000 {
            tried.extend(dial_backs.answer(peer, [127, 0, 0, 1].into(), DialBack { ports: vec![port; MAX_PORTS] }, now));
        }
        assert_eq!(tried.len(), AT_ONCE as usize);
        for tried in tried {
            assert_eq!(tried.await.reached, [false; MAX_PORTS]);
        }
        let knock = tokio::time::timeout(Duration::from_millis(200), victim.accept()).await;
        assert!(knock.is_err(), "{knock:?}");
        assert!(dial_backs.answer(peer, [1, 1, 1, 1].into(), DialBack { ports: vec![port; MAX_PORTS + 1] }, now + ONE_EACH).is_none());
    }

    #[tokio::test]
    async fn at_ports_of_other_services_nothing_is_tried_for_others_share_the_address() {
        let (counters, here) = (Arc::<SwarmCounters>::default(), IpAddr::from([127, 0, 0, 1]));
        let mut dial_backs = DialBacks::new(None, None, Dialable::new(&[], std::iter::empty(), counters.clone()));
        let tried = || counters.dials_forbidden.load(Ordering::Relaxed);
        let (peer, now) = (PeerId::random(), Instant::now());
        let ports = [22, 25, 443, 1023].map(Port::Tcp);
        let answer = dial_backs.answer(peer, here, DialBack { ports: ports.to_vec() }, now).unwrap().await;
        assert_eq!(answer, DialedBack { seen: Some(here), reached: vec![false; 4] });
        assert_eq!(tried(), 0, "each attempt at an address like this is counted");
        dial_backs.answer(peer, here, DialBack { ports: vec![Port::Tcp(1024)] }, now).unwrap().await;
        assert_eq!(tried(), 1);
    }

    #[test]
    fn programs_that_are_no_members_cause_few_dials_whatever_their_keys_and_keep_no_member_waiting() {
        let (mut dial_backs, now) = (dial_backs(), Instant::now());
        let question = || DialBack { ports: vec![Port::Tcp(1)] };
        let ask = |dial_backs: &mut DialBacks, now| dial_backs.answer_reader(PeerId::random(), [1, 1, 1, 1].into(), question(), now);
        let under_way: Vec<_> = (0..20).filter_map(|_| ask(&mut dial_backs, now)).collect();
        assert_eq!(under_way.len(), MAX_READERS_UNDER_WAY);
        assert!(dial_backs.answer(PeerId::random(), [1, 1, 1, 1].into(), question(), now).is_some());
        drop(under_way);
        let more = (0..20).filter(|_| ask(&mut dial_backs, now).is_some()).count();
        assert_eq!(more, READERS_AT_ONCE as usize - MAX_READERS_UNDER_WAY);
        assert!(ask(&mut dial_backs, now + ONE_EACH).is_some());
    }

    #[test]
    fn many_who_ask_are_not_remembered_for_ever_and_few_are_answered_at_once() {
        let (mut dial_backs, now) = (dial_backs(), Instant::now());
        let ask =
            |dial_backs: &mut DialBacks, now| dial_backs.answer(PeerId::random(), [1, 1, 1, 1].into(), DialBack { ports: vec![] }, now);
        let under_way: Vec<_> = (0..20).filter_map(|_| ask(&mut dial_backs, now)).collect();
        assert_eq!(under_way.len(), MAX_UNDER_WAY);
        drop(under_way);
        assert!(ask(&mut dial_backs, now).is_some());
        for _ in 0..MAX_ASKING {
            drop(ask(&mut dial_backs, now));
        }
        assert!(ask(&mut dial_backs, now).is_none() && dial_backs.asking.len() == MAX_ASKING);
        assert!(ask(&mut dial_backs, now + ONE_EACH).is_some(), "who asked long ago is forgotten");
    }
}
