//! Counts the bytes to and from members, and to and from others.
//!
//! Of TCP the kernel tells; of QUIC, whose packets are out of sight, bytes are counted at its streams, and what headers and
//! acknowledgements add is an estimate.
//!
//! Whoever connects to us is a stranger until its hello is accepted; whom we dial was named by a member or by the operator. What a stranger
//! moves through a member that relays is that member's.

use crate::tcp_bytes::TcpBytes;
use libp2p::{
    Multiaddr, PeerId,
    core::{
        ConnectedPoint,
        muxing::{StreamMuxer, StreamMuxerBox, StreamMuxerEvent, SubstreamBox},
    },
    futures::{AsyncRead, AsyncWrite},
    tcp::tokio::TcpStream,
};
use std::{
    collections::BTreeMap,
    io::{self, IoSlice, IoSliceMut},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

/// What a packet of QUIC carries, and what its headers (Ethernet's, IP's and UDP's among them) and its share of the acknowledgements take besides,
/// in bytes.
const PACKET: u64 = 1_200;
const PER_PACKET: u64 = 130;

/// What goes the same way on a connection within this time goes in one packet, as long as there is room in it.
const TOGETHER: Duration = Duration::from_millis(5);

/// What a connection costs besides: TCP's handshake and end; QUIC's, whose keys are proven within it.
const PER_TCP: u64 = 400;
const PER_QUIC: u64 = 5_000;

/// The bytes of all connections with members and others, and whether they are spent. Clones of its `Arc` are the same.
#[derive(Debug, Default)]
pub struct SwarmMeter {
    moved: AtomicU64,
    of_strangers: AtomicU64,
    is_spent: AtomicBool,
    readers_spent: AtomicBool,
    connections: Mutex<Connections>,
}

/// Connections that stand, by whose they are.
#[derive(Debug, Default)]
struct Connections {
    /// Taken here, whose other side has not proven its key, by its address.
    unproven: Vec<(Multiaddr, Weak<Account>)>,
    of_peers: BTreeMap<PeerId, PeerAccounts>,
}

#[derive(Debug, Default)]
struct PeerAccounts {
    is_member: bool,
    accounts: Vec<Weak<Account>>,
}

/// Whose bytes those of a connection are.
#[derive(Debug, Default)]
struct Account {
    of_member: AtomicBool,
    /// Of a QUIC connection: the last packets that came and went.
    packets: Mutex<[Packet; 2]>,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug)]
enum Way {
    In,
    Out,
}

/// A packet of QUIC, as far as can be told from what is in it.
#[derive(Debug, Default)]
struct Packet {
    begun: Option<Instant>,
    room: u64,
}

impl Packet {
    /// How many further packets these bytes take.
    fn carry(&mut self, bytes: u64, now: Instant) -> u64 {
        if self.begun.is_none_or(|begun| now.saturating_duration_since(begun) > TOGETHER) {
            self.room = 0;
        }
        let more = bytes.saturating_sub(self.room);
        let packets = more.div_ceil(PACKET);
        if packets > 0 {
            self.begun = Some(now);
        }
        self.room = self.room + packets * PACKET - bytes;
        packets
    }
}

impl Account {
    /// So many bytes of a QUIC connection with their headers.
    fn with_headers(&self, bytes: u64, way: Way) -> u64 {
        let mut packets = self.packets.lock().unwrap_or_else(PoisonError::into_inner);
        bytes + packets[way as usize].carry(bytes, Instant::now()) * PER_PACKET
    }
}

impl SwarmMeter {
    /// Bytes since the start, with what lower layers add.
    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// Of those, the bytes of peers that are no members, or were not known to be.
    pub fn of_strangers(&self) -> u64 {
        self.of_strangers.load(Ordering::Relaxed)
    }

    /// The share of programs that are no members is spent, or is not any more.
    pub fn spend_readers(&self, is_spent: bool) {
        self.readers_spent.store(is_spent, Ordering::Relaxed);
    }

    /// Whether programs that are no members are to be refused.
    pub fn readers_spent(&self) -> bool {
        self.readers_spent.load(Ordering::Relaxed)
    }

    /// A peer is let in as a member, or is none any more.
    pub(super) fn known(&self, peer: PeerId, is_member: bool) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let of_peer = connections.of_peers.entry(peer).or_default();
        of_peer.is_member = is_member;
        of_peer.accounts.retain(|account| account.strong_count() > 0);
        of_peer.accounts.iter().filter_map(Weak::upgrade).for_each(|account| account.of_member.store(is_member, Ordering::Relaxed));
        if !is_member && of_peer.accounts.is_empty() {
            connections.of_peers.remove(&peer);
        }
    }

    /// A connection stands, whoever the other side is.
    fn opened(&self, endpoint: &ConnectedPoint) -> Arc<Account> {
        let account = Arc::new(Account { of_member: AtomicBool::new(endpoint.is_dialer()), ..Account::default() });
        if let ConnectedPoint::Listener { send_back_addr, .. } = endpoint {
            let unproven = &mut self.connections.lock().unwrap_or_else(PoisonError::into_inner).unproven;
            unproven.retain(|(_, account)| account.strong_count() > 0);
            unproven.push((send_back_addr.clone(), Arc::downgrade(&account)));
        }
        account
    }

    /// Its other side has proven its key.
    pub(super) fn proven(&self, peer: PeerId, endpoint: &ConnectedPoint) {
        let ConnectedPoint::Listener { send_back_addr, .. } = endpoint else { return };
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = connections.unproven.iter().position(|(address, _)| address == send_back_addr) else { return };
        let (_, account) = connections.unproven.swap_remove(at);
        connections.of_peers.retain(|_, of_peer| {
            of_peer.accounts.retain(|account| account.strong_count() > 0);
            of_peer.is_member || !of_peer.accounts.is_empty()
        });
        let of_peer = connections.of_peers.entry(peer).or_default();
        if of_peer.is_member
            && let Some(account) = account.upgrade()
        {
            account.of_member.store(true, Ordering::Relaxed);
        }
        of_peer.accounts.push(account);
    }

    /// The operator's limit is reached, or is not any more.
    pub fn spend(&self, is_spent: bool) {
        self.is_spent.store(is_spent, Ordering::Relaxed);
    }

    /// Whether nothing large is to be sent to members.
    pub fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    /// So many bytes came from a member or a stranger, or went there, headers included.
    pub fn add(&self, bytes: u64, of_member: bool) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
        if !of_member {
            self.of_strangers.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// A stream whose bytes are counted.
pub(super) struct Metered<S> {
    stream: S,
    /// What the kernel counts of it; nothing for a stream in a QUIC connection.
    tcp: Option<TcpBytes>,
    meter: Arc<SwarmMeter>,
    account: Arc<Account>,
}

impl Metered<TcpStream> {
    /// A TCP connection that stands.
    pub(super) fn tcp(stream: TcpStream, meter: &Arc<SwarmMeter>, endpoint: &ConnectedPoint) -> Metered<TcpStream> {
        meter.add(PER_TCP, endpoint.is_dialer());
        let tcp = Some(TcpBytes::of(&stream.0, stream.0.peer_addr().ok()));
        Metered { stream, tcp, meter: Arc::clone(meter), account: meter.opened(endpoint) }
    }
}

impl<S> Metered<S> {
    /// So many bytes were read or written.
    fn count_polled(&mut self, polled: &Poll<io::Result<usize>>, way: Way) {
        if let Poll::Ready(Ok(moved)) = polled {
            let moved = *moved as u64;
            let bytes = match &mut self.tcp {
                Some(tcp) => tcp.more(moved),
                None => self.account.with_headers(moved, way),
            };
            self.add(bytes);
        }
    }

    fn add(&self, bytes: u64) {
        self.meter.add(bytes, self.account.of_member.load(Ordering::Relaxed));
    }
}

impl<S> Drop for Metered<S> {
    fn drop(&mut self) {
        let rest = self.tcp.as_mut().map_or(0, TcpBytes::rest);
        self.add(rest);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.count_polled(&polled, Way::In);
        polled
    }

    fn poll_read_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffers: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_read_vectored(cx, buffers);
        self.count_polled(&polled, Way::In);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.count_polled(&polled, Way::Out);
        polled
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffers: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.count_polled(&polled, Way::Out);
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}

/// A QUIC connection whose streams are counted.
pub(super) struct MeteredStreams {
    connection: StreamMuxerBox,
    meter: Arc<SwarmMeter>,
    account: Arc<Account>,
}

impl MeteredStreams {
    /// A connection that stands.
    pub(super) fn quic(peer: PeerId, connection: StreamMuxerBox, meter: &Arc<SwarmMeter>, endpoint: &ConnectedPoint) -> MeteredStreams {
        meter.add(PER_QUIC, endpoint.is_dialer());
        let account = meter.opened(endpoint);
        meter.proven(peer, endpoint);
        MeteredStreams { connection, meter: Arc::clone(meter), account }
    }

    fn metered<E>(&self, polled: Poll<Result<SubstreamBox, E>>) -> Poll<Result<Metered<SubstreamBox>, E>> {
        polled.map_ok(|stream| Metered { stream, tcp: None, meter: Arc::clone(&self.meter), account: Arc::clone(&self.account) })
    }
}

impl StreamMuxer for MeteredStreams {
    type Substream = Metered<SubstreamBox>;
    type Error = <StreamMuxerBox as StreamMuxer>::Error;

    fn poll_inbound(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Self::Substream, Self::Error>> {
        let polled = Pin::new(&mut self.connection).poll_inbound(cx);
        self.metered(polled)
    }

    fn poll_outbound(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Self::Substream, Self::Error>> {
        let polled = Pin::new(&mut self.connection).poll_outbound(cx);
        self.metered(polled)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Pin::new(&mut self.connection).poll_close(cx)
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<StreamMuxerEvent, Self::Error>> {
        Pin::new(&mut self.connection).poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_together_shares_a_packet_of_quic() {
        let (mut packet, now) = (Packet::default(), Instant::now());
        let mut at = |ms, bytes| packet.carry(bytes, now + Duration::from_millis(ms));
        assert_eq!((at(0, 2), at(1, 40), at(2, 1_100)), (1, 0, 0));
        assert_eq!(at(3, 100), 1, "there is no room");
        assert_eq!((at(20, 10), at(20, 5_000)), (1, 4), "later, and much");
    }
}
