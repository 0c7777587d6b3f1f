//! The connections to a peer, directly or through a third member that relays.
//!
//! Decided here: which connection is one too many, and when a direct one is tried again where there is a relayed one.

use libp2p::{Multiaddr, PeerId, core::ConnectedPoint, multiaddr::Protocol, swarm::ConnectionId};
use std::{
    collections::BTreeMap,
    net::IpAddr,
    time::{Duration, Instant},
};

/// Who is reached only through a third member is dialled again after so long, then after twice as long each time, at most so long.
const TRY_AFTER: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(1800));

/// The second time it is dialled again so long after the first: by then libp2p has given up to look for a hole.
const SECOND_AFTER: Duration = Duration::from_secs(30);

/// A connection that is one too many is closed when nothing is under way between both, after so long at the latest; not at once, for the other
/// side may not know the better one yet.
const CLOSED_AFTER: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));

/// One connection.
#[derive(Clone, Debug)]
pub(super) struct Way {
    id: ConnectionId,
    pub(super) dialled: bool,
    pub(super) remote: Multiaddr,
    relayed: bool,
}

impl Way {
    /// Whether it is by QUIC, directly.
    pub(super) fn is_quic(&self) -> bool {
        !self.relayed && self.remote.iter().any(|part| part == Protocol::QuicV1)
    }
}

/// The connections of one peer, the latest one last.
#[derive(Debug, Default)]
pub(super) struct Ways {
    ways: Vec<Way>,
    /// Whether it offers to relay.
    pub(super) relays: bool,
    /// When it is dialled again, and the pause after that.
    again: Option<(Instant, Duration)>,
    surplus: Vec<(ConnectionId, Instant)>,
}

/// What an address is good for.
pub(super) fn is_circuit(address: &Multiaddr) -> bool {
    address.iter().any(|part| part == Protocol::P2pCircuit)
}

/// Whether this is an address of QUIC, and not one through a third member.
pub(super) fn is_quic(address: &Multiaddr) -> bool {
    !is_circuit(address) && address.iter().any(|part| part == Protocol::QuicV1)
}

/// Which of a peer's addresses are dialled: QUIC where there is no other, or when the others failed. It costs packets that keep it open,
/// while TCP is silent for as long as nothing is said.
pub(super) fn to_dial(known: Vec<Multiaddr>, failed: bool, quic: bool) -> Vec<Multiaddr> {
    let tcp = known.iter().any(|address| !is_quic(address) && !is_circuit(address));
    known.into_iter().filter(|address| !is_quic(address) || (quic && (failed || !tcp))).collect()
}

impl Ways {
    fn is_direct(&self) -> bool {
        self.ways.iter().any(|way| !way.relayed)
    }

    /// A direct connection that we made: the address at which the peer is reached; TCP before QUIC.
    pub(super) fn dialled(&self) -> Option<&Multiaddr> {
        let ours = || self.ways.iter().filter(|way| way.dialled && !way.relayed);
        ours().find(|way| !way.is_quic()).or_else(|| ours().next()).map(|way| &way.remote)
    }

    /// Whether there is a direct connection by QUIC that we made.
    pub(super) fn has_quic(&self) -> bool {
        self.ways.iter().any(|way| way.dialled && way.is_quic())
    }

    /// The address at the other end of a direct connection.
    pub(super) fn direct_from(&self) -> Option<IpAddr> {
        self.ways.iter().filter(|way| !way.relayed).find_map(|way| super::dialling::ip_of(&way.remote))
    }
}

/// The connections of all peers. As many as the swarm has.
#[derive(Debug, Default)]
pub(super) struct AllWays {
    peers: BTreeMap<PeerId, Ways>,
    /// When peers that are gone would be dialled again, and the pause after that: who comes back through a third member is not new.
    pauses: BTreeMap<PeerId, (Instant, Duration)>,
}

/// Peers of whom that is remembered.
const MAX_PAUSES: usize = 1024;

impl AllWays {
    /// A connection stands.
    pub(super) fn opened(&mut self, peer: PeerId, id: ConnectionId, end: &ConnectedPoint, now: Instant) {
        let ways = self.peers.entry(peer).or_default();
        let way = Way { id, dialled: end.is_dialer(), remote: end.get_remote_address().clone(), relayed: end.is_relayed() };
        let surplus = |old: &&Way| old.relayed;
        ways.surplus.extend(ways.ways.iter().filter(surplus).map(|old| (old.id, now)));
        if way.relayed && ways.is_direct() {
            ways.surplus.push((id, now));
        }
        if !way.relayed {
            ways.again = None;
        } else if ways.again.is_none() && !ways.is_direct() {
            let again = self.pauses.remove(&peer).unwrap_or((now + TRY_AFTER.0, TRY_AFTER.0));
            ways.again = Some((again.0.max(now + TRY_AFTER.0), again.1));
        }
        ways.ways.push(way);
    }

    /// A connection has ended.
    pub(super) fn closed(&mut self, peer: &PeerId, id: ConnectionId, now: Instant) {
        let Some(ways) = self.peers.get_mut(peer) else { return };
        ways.ways.retain(|way| way.id != id);
        ways.surplus.retain(|(surplus, _)| *surplus != id);
        if ways.ways.is_empty() {
            let again = self.peers.remove(peer).and_then(|ways| ways.again);
            if self.pauses.len() >= MAX_PAUSES {
                self.pauses.retain(|_, (when, _)| now < *when);
            }
            if let Some(again) = again.filter(|_| self.pauses.len() < MAX_PAUSES) {
                self.pauses.insert(*peer, again);
            }
        } else if !ways.is_direct() && ways.again.is_none() {
            ways.again = Some((now + TRY_AFTER.0, TRY_AFTER.0));
        }
    }

    /// The address at the other end of this connection, if it is direct.
    pub(super) fn from(&self, peer: &PeerId, id: ConnectionId) -> Option<IpAddr> {
        let way = self.peers.get(peer)?.ways.iter().find(|way| way.id == id)?;
        if way.relayed { None } else { super::dialling::ip_of(&way.remote) }
    }

    /// Whether a peer offers to relay.
    pub(super) fn relays(&mut self, peer: &PeerId, relays: bool) {
        if let Some(ways) = self.peers.get_mut(peer) {
            ways.relays = relays;
        }
    }

    /// The connections of this peer.
    pub(super) fn of(&self, peer: &PeerId) -> Option<&Ways> {
        self.peers.get(peer)
    }

    /// Peers with a direct connection.
    pub(super) fn direct(&self) -> impl Iterator<Item = (&PeerId, &Ways)> {
        self.peers.iter().filter(|(_, ways)| ways.is_direct())
    }

    /// Peers that are reached through others only.
    pub(super) fn relayed(&self) -> impl Iterator<Item = &PeerId> {
        self.peers.iter().filter(|(_, ways)| !ways.is_direct()).map(|(peer, _)| peer)
    }

    /// Peers that are to be dialled now, and whether it is ours to dial once more through the third member, too: libp2p looks for a hole
    /// only when such a connection is new.
    pub(super) fn due(&mut self, now: Instant) -> BTreeMap<PeerId, bool> {
        let mut due = BTreeMap::new();
        for (peer, ways) in &mut self.peers {
            let Some((_, pause)) = ways.again.filter(|(when, _)| now >= *when) else { continue };
            let next = (pause * 2).clamp(SECOND_AFTER, TRY_AFTER.1);
            ways.again = Some((now + next, next));
            due.insert(*peer, pause > TRY_AFTER.0 && ways.ways.iter().any(|way| way.dialled));
        }
        due
    }

    /// Connections to be closed now. `is_quiet`: nothing is under way between us and this peer.
    pub(super) fn superfluous(&mut self, now: Instant, is_quiet: impl Fn(&PeerId) -> bool) -> Vec<ConnectionId> {
        let mut closed = Vec::new();
        for (peer, ways) in &mut self.peers {
            let after = if is_quiet(peer) { CLOSED_AFTER.0 } else { CLOSED_AFTER.1 };
            ways.surplus.retain(|(id, since)| {
                let due = now.saturating_duration_since(*since) >= after;
                if due {
                    closed.push(*id);
                }
                !due
            });
        }
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libp2p::core::{Endpoint, transport::PortUse};

    fn dialler(address: &str) -> ConnectedPoint {
        ConnectedPoint::Dialer { address: address.parse().unwrap(), role_override: Endpoint::Dialer, port_use: PortUse::New }
    }

    const RELAYED: &str = "/ip4/192.0.2.1/tcp/1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN/p2p-circuit";

    #[test]
    fn a_relayed_connection_ends_when_a_direct_one_stands_and_not_before() {
        let (now, peer) = (Instant::now(), PeerId::random());
        let mut ways = AllWays::default();
        let id = ConnectionId::new_unchecked;
        ways.opened(peer, id(1), &dialler(RELAYED), now);
        assert_eq!((ways.relayed().count(), ways.from(&peer, id(1))), (1, None));
        assert!(ways.superfluous(now + CLOSED_AFTER.1, |_| true).is_empty());
        ways.opened(peer, id(2), &dialler("/ip4/192.0.2.2/udp/1/quic-v1"), now);
        assert_eq!(ways.from(&peer, id(2)), Some("192.0.2.2".parse().unwrap()));
        assert!(ways.superfluous(now + CLOSED_AFTER.0, |_| false).is_empty(), "something is under way");
        assert_eq!(ways.superfluous(now + CLOSED_AFTER.0, |_| true), [id(1)]);
        ways.closed(&peer, id(1), now);
        assert!(ways.due(now + TRY_AFTER.1).is_empty());
        ways.opened(peer, id(3), &dialler(RELAYED), now);
        assert_eq!(ways.superfluous(now + CLOSED_AFTER.1, |_| false), [id(3)], "the direct one is there");
    }

    #[test]
    fn who_is_reached_through_others_only_is_tried_again_and_again() {
        let (mut now, peer) = (Instant::now(), PeerId::random());
        let mut ways = AllWays::default();
        ways.opened(peer, ConnectionId::new_unchecked(1), &dialler(RELAYED), now);
        let (mut tried, end) = (Vec::new(), now + Duration::from_secs(7200));
        while now < end {
            tried.extend(ways.due(now).into_values());
            now += Duration::from_secs(1);
        }
        assert!((7..12).contains(&tried.len()), "{tried:?}");
        assert!(!tried[0] && tried[1..].iter().all(|again| *again), "the first time libp2p looks for a hole by itself");
        ways.closed(&peer, ConnectionId::new_unchecked(1), now);
        assert!(ways.due(end + TRY_AFTER.1).is_empty());
        ways.opened(peer, ConnectionId::new_unchecked(2), &dialler(RELAYED), now);
        assert!(ways.due(now + TRY_AFTER.0).is_empty(), "who comes back at once waits for as long as before");
        assert_eq!(ways.due(now + TRY_AFTER.1).len(), 1);
    }

    #[test]
    fn quic_is_dialled_where_there_is_no_other_way_and_after_a_failure() {
        let known = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Multiaddr>>();
        let all = known(&["/ip4/192.0.2.1/tcp/1", "/ip4/192.0.2.1/udp/1/quic-v1", RELAYED]);
        assert_eq!(to_dial(all.clone(), false, true), [all[0].clone(), all[2].clone()]);
        assert_eq!(to_dial(all.clone(), true, true), all);
        assert_eq!(to_dial(all.clone(), true, false).len(), 2, "there is a pre-shared key");
        assert_eq!(to_dial(all[1..].to_vec(), false, true), all[1..]);
    }
}
