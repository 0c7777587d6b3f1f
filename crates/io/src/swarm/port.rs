//! A port where somebody listens for connections, and what carries them there.

use libp2p::{Multiaddr, multiaddr::Protocol};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Ports below this are other services', mail for example. Behind an address that many share, nobody may have others connect to those.
pub const MIN_PORT: u16 = 1024;

/// Whether a port that somebody else names may be dialled.
pub(super) fn may_be_named(port: u16) -> bool {
    port >= MIN_PORT
}

/// A port where somebody says to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Port {
    /// With TCP.
    Tcp(u16),
    /// With QUIC, by UDP.
    Quic(u16),
}

impl Port {
    /// The port of an address to listen on, if it is one.
    pub(super) fn of(address: &Multiaddr) -> Option<Port> {
        let mut parts = address.iter().skip(1);
        match (parts.next()?, parts.next()) {
            (Protocol::Tcp(port), _) => Some(Port::Tcp(port)),
            (Protocol::Udp(port), Some(Protocol::QuicV1)) => Some(Port::Quic(port)),
            _ => None,
        }
    }

    /// Its number.
    pub(super) fn number(self) -> u16 {
        let (Port::Tcp(number) | Port::Quic(number)) = self;
        number
    }

    /// The multiaddr of this port.
    pub(super) fn at(self, address: IpAddr) -> Multiaddr {
        match self {
            Port::Tcp(port) => Multiaddr::from(address).with(Protocol::Tcp(port)),
            Port::Quic(port) => Multiaddr::from(address).with(Protocol::Udp(port)).with(Protocol::QuicV1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_an_address_and_an_address_a_port() {
        for text in ["/ip4/192.0.2.1/tcp/4817", "/ip6/2001:db8::1/udp/4817/quic-v1"] {
            let address: Multiaddr = text.parse().unwrap();
            let ip = crate::swarm::dialling::ip_of(&address).unwrap();
            assert_eq!(Port::of(&address).unwrap().at(ip), address);
        }
        assert_eq!(Port::of(&"/ip4/192.0.2.1/udp/1".parse().unwrap()), None);
    }
}
