//! Checks whether an address could be bound, with a socket that never listens and is closed at once.

use socket2::{Domain, Socket, Type};
use std::{
    io,
    net::{SocketAddr, UdpSocket},
};

/// Binds a TCP socket to `address` and closes it. Fails with `AddrInUse` if another socket listens there, whether or not that one shares its
/// port.
pub fn try_bind(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // Connections that linger after a restart are no listeners.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())
}

/// Whether a socket can listen at this address now.
pub fn is_free(address: SocketAddr) -> io::Result<()> {
    try_bind(address)
}

/// The same by UDP.
pub fn is_free_by_udp(address: SocketAddr) -> io::Result<()> {
    UdpSocket::bind(address).map(drop)
}

/// The same, but an address that is in use is fine: it may be free when it is needed, and a daemon that runs holds its own.
pub fn could_bind(address: SocketAddr) -> io::Result<()> {
    match try_bind(address) {
        Err(why) if why.kind() == io::ErrorKind::AddrInUse => Ok(()),
        tried => tried,
    }
}
