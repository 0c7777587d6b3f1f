//! Source address of our connections. libp2p's TCP transport lets the kernel choose; this one binds first.
//!
//! Wraps the TCP transport: listening is passed on, dialling is done here when a source address is configured. Matters on
//! machines with several addresses, and in laboratories where every daemon has a loopback address of its own.

use super::{
    config::StartError,
    dialling::{Dialable, ip_of, plain},
    port::Port,
};
use crate::sockets::{could_bind, try_bind};
use libp2p::{
    Multiaddr,
    core::{
        multiaddr::Protocol,
        transport::{DialOpts, ListenerId, PortUse, TransportError, TransportEvent},
    },
    futures::future::BoxFuture,
    tcp,
};
use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    pin::Pin,
    task::{Context, Poll},
};
use tokio::net::{TcpSocket, TcpStream};

/// TCP that dials from a given address.
pub(super) struct SourceBound {
    tcp: tcp::tokio::Transport,
    source: Option<IpAddr>,
    dialable: Option<Dialable>,
}

impl SourceBound {
    /// TCP from this address, or from any.
    pub(super) fn new(source: Option<IpAddr>, dialable: Option<Dialable>) -> SourceBound {
        SourceBound { tcp: tcp::tokio::Transport::new(tcp::Config::new()), source, dialable }
    }
}

/// The address and port at the beginning of a multiaddr, if it has both and the port is given; what follows (`/p2p/…`) is not TCP's
/// business.
pub(super) fn socket_address(address: &Multiaddr) -> Option<SocketAddr> {
    ip_and_port(address).filter(|address| address.port() != 0)
}

/// The address and port at the beginning of a multiaddr, port 0 (any) among them.
fn ip_and_port(address: &Multiaddr) -> Option<SocketAddr> {
    let mut parts = address.iter();
    let ip = match parts.next()? {
        Protocol::Ip4(ip) => IpAddr::from(ip),
        Protocol::Ip6(ip) => IpAddr::from(ip),
        _ => return None,
    };
    match parts.next()? {
        Protocol::Tcp(port) => Some(SocketAddr::new(ip, port)),
        _ => None,
    }
}

/// Connects from this address, or from any.
pub(super) async fn connect(source: Option<IpAddr>, target: SocketAddr) -> io::Result<TcpStream> {
    let socket = if target.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(source) = source.filter(|source| source.is_ipv4() == target.is_ipv4()) {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    socket.set_nodelay(true)?;
    socket.connect(target).await
}

/// What carries a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// TCP.
    Tcp,
    /// QUIC, by UDP.
    Udp,
}

/// Where a swarm that is to listen on `address` binds a socket. Whether another process listens there is not asked.
///
/// # Errors
/// The address is none of TCP or QUIC, or this machine or this user cannot listen on it.
pub fn listen_address(address: &str) -> Result<(SocketAddr, Carrier), StartError> {
    let bad = |reason: &str| StartError::BadAddress { address: address.to_owned(), reason: reason.to_owned() };
    let parsed = address.parse::<Multiaddr>().map_err(|_| bad("it is no multiaddr"))?;
    if let (Some(ip), Some(Port::Quic(port))) = (ip_of(&parsed), Port::of(&parsed)) {
        let socket = SocketAddr::new(ip, port);
        return match UdpSocket::bind(socket) {
            Err(why) if why.kind() != io::ErrorKind::AddrInUse => {
                Err(StartError::Listen { address: address.to_owned(), reason: why.to_string() })
            }
            _ => Ok((socket, Carrier::Udp)),
        };
    }
    let socket = ip_and_port(&parsed).ok_or_else(|| bad("an IP address and a TCP port are needed to listen on"))?;
    could_bind(socket).map_err(|why| StartError::Listen { address: address.to_owned(), reason: why.to_string() })?;
    Ok((socket, Carrier::Tcp))
}

impl libp2p::Transport for SourceBound {
    type Output = tcp::tokio::TcpStream;
    type Error = io::Error;
    type ListenerUpgrade = <tcp::tokio::Transport as libp2p::Transport>::ListenerUpgrade;
    type Dial = BoxFuture<'static, io::Result<Self::Output>>;

    fn listen_on(&mut self, id: ListenerId, address: Multiaddr) -> Result<(), TransportError<io::Error>> {
        // libp2p shares the port with whoever shares it too, another daemon of the same user for example: each would get some of the
        // other's connections, without an error.
        socket_address(&address).map_or(Ok(()), try_bind).map_err(TransportError::Other)?;
        self.tcp.listen_on(id, address)
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.tcp.remove_listener(id)
    }

    fn dial(&mut self, address: Multiaddr, opts: DialOpts) -> Result<Self::Dial, TransportError<io::Error>> {
        // Names were looked up before: this is the very address that is connected to. Of any other shape libp2p takes the last IP address and
        // port in it, whatever was checked.
        let target = socket_address(&address).filter(|target| !target.ip().is_unspecified() && plain(&address) == Some(*target));
        let Some(target) = target else { return Err(TransportError::MultiaddrNotSupported(address)) };
        if let Some(dialable) = &self.dialable {
            dialable.check(target.ip()).map_err(TransportError::Other)?;
        }
        match self.source {
            Some(source) if source.is_ipv4() == target.is_ipv4() => {
                Ok(Box::pin(async move { Ok(tcp::tokio::TcpStream(connect(Some(source), target).await?)) }))
            }
            // The listening port is not reused for dialling: two daemons on one machine that dial each other at the same
            // time would want the same pair of ports.
            _ => {
                let there = Multiaddr::from(target.ip()).with(Protocol::Tcp(target.port()));
                self.tcp.dial(there, DialOpts { port_use: PortUse::New, ..opts })
            }
        }
    }

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<TransportEvent<Self::ListenerUpgrade, io::Error>> {
        Pin::new(&mut self.tcp).poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libp2p::{Transport, core::Endpoint};
    use std::net::Ipv4Addr;

    #[tokio::test]
    async fn connections_come_from_the_configured_address() {
        let listener = tokio::net::TcpListener::bind("127.0.78.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for source in [Some(Ipv4Addr::new(127, 0, 78, 9)), None] {
            let mut transport = SourceBound::new(source.map(IpAddr::from), None);
            let address = format!("/ip4/127.0.78.1/tcp/{port}").parse().unwrap();
            let dial = transport.dial(address, DialOpts { role: Endpoint::Dialer, port_use: PortUse::Reuse }).unwrap();
            let (dialled, accepted) = tokio::join!(dial, listener.accept());
            let from = accepted.unwrap().1.ip();
            assert!(dialled.is_ok());
            assert_eq!(from, source.unwrap_or(Ipv4Addr::LOCALHOST));
        }
        let nobody = SourceBound::new(None, None)
            .dial("/ip4/127.0.78.1/udp/1".parse().unwrap(), DialOpts { role: Endpoint::Dialer, port_use: PortUse::New });
        assert!(nobody.is_err());
    }

    #[tokio::test]
    async fn what_stands_behind_a_public_address_is_not_connected_to() {
        let inside = tokio::net::TcpListener::bind("127.0.78.5:0").await.unwrap();
        let port = inside.local_addr().unwrap().port();
        let dialable = Dialable::new(&[], std::iter::empty(), std::sync::Arc::default());
        let id = libp2p::PeerId::random();
        for text in [
            format!("/ip4/1.1.1.1/tcp/1/ip4/127.0.78.5/tcp/{port}"),
            format!("/p2p/{id}/ip4/127.0.78.5/tcp/{port}"),
            format!("/ip4/127.0.78.5/tcp/{port}"),
        ] {
            let mut transport = SourceBound::new(None, Some(dialable.clone()));
            let dial = transport.dial(text.parse().unwrap(), DialOpts { role: Endpoint::Dialer, port_use: PortUse::New });
            assert!(dial.is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn a_port_that_another_daemon_listens_on_is_not_shared() {
        let mut first = SourceBound::new(None, None);
        let free = std::net::TcpListener::bind("127.0.78.2:0").unwrap().local_addr().unwrap().port();
        let address: Multiaddr = format!("/ip4/127.0.78.2/tcp/{free}").parse().unwrap();
        first.listen_on(ListenerId::next(), address.clone()).unwrap();
        let refused = SourceBound::new(None, None).listen_on(ListenerId::next(), address.clone());
        assert!(matches!(refused, Err(TransportError::Other(why)) if why.kind() == io::ErrorKind::AddrInUse));
        let other = "/ip4/127.0.78.3/tcp/".to_owned() + &free.to_string();
        SourceBound::new(None, None).listen_on(ListenerId::next(), other.parse().unwrap()).unwrap();
        drop(first);
        SourceBound::new(None, None).listen_on(ListenerId::next(), address).unwrap();
    }
}
