//! QUIC, by UDP: one round trip less than TCP, and the way by which two members behind routers can meet.
//!
//! Like TCP it asks for each address, right before it connects, whether that may be dialled.

use super::dialling::{Dialable, ip_of};
use libp2p::{
    Multiaddr, PeerId, Transport,
    core::{
        muxing::StreamMuxerBox,
        transport::{DialOpts, ListenerId, TransportError, TransportEvent},
    },
    futures::{TryFutureExt, future::MapOk},
    identity::Keypair,
    quic,
};
use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

/// A connection on which nothing is said is kept open in routers by a packet each so often; most forget what they translated after 30 s
/// without one.
const KEPT_OPEN_EVERY: Duration = Duration::from_secs(15);

/// After so many milliseconds without a packet the other side is taken for gone.
const GONE_AFTER_MS: u32 = 35_000;

type Libp2p = quic::tokio::Transport;

/// The transport.
pub(super) struct Quic {
    quic: Libp2p,
    dialable: Option<Dialable>,
}

impl Quic {
    /// With this key; without `dialable` all addresses may be dialled.
    pub(super) fn new(keypair: &Keypair, dialable: Option<Dialable>) -> Quic {
        let mut config = quic::Config::new(keypair);
        config.keep_alive_interval = KEPT_OPEN_EVERY;
        config.max_idle_timeout = GONE_AFTER_MS;
        Quic { quic: Libp2p::new(config), dialable }
    }
}

impl Transport for Quic {
    type Output = (PeerId, StreamMuxerBox);
    type Error = quic::Error;
    type ListenerUpgrade = MapOk<<Libp2p as Transport>::ListenerUpgrade, fn(<Libp2p as Transport>::Output) -> Self::Output>;
    type Dial = MapOk<<Libp2p as Transport>::Dial, fn(<Libp2p as Transport>::Output) -> Self::Output>;

    fn listen_on(&mut self, id: ListenerId, address: Multiaddr) -> Result<(), TransportError<quic::Error>> {
        self.quic.listen_on(id, address)
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.quic.remove_listener(id)
    }

    fn dial(&mut self, address: Multiaddr, options: DialOpts) -> Result<Self::Dial, TransportError<quic::Error>> {
        // Names were looked up before: this is the very address that is connected to.
        let refused = self.dialable.as_ref().zip(ip_of(&address)).map(|(dialable, ip)| dialable.check(ip));
        if let Some(Err(why)) = refused {
            return Err(TransportError::Other(why.into()));
        }
        let dial = self.quic.dial(address, options)?;
        Ok(dial.map_ok(boxed as fn(_) -> _))
    }

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<TransportEvent<Self::ListenerUpgrade, quic::Error>> {
        let event = Pin::new(&mut self.quic).poll(context);
        event.map(|event| event.map_upgrade(|upgrade| upgrade.map_ok(boxed as fn(_) -> _)))
    }
}

fn boxed((peer, connection): (PeerId, quic::Connection)) -> (PeerId, StreamMuxerBox) {
    (peer, StreamMuxerBox::new(connection))
}
