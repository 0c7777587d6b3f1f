//! Opens connections to web servers: here and nowhere else in the program; the address check stands right before it.

use nearcrawl_model::{address::AddressPolicy, fetch::FetchError};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use tokio::net::{TcpSocket, TcpStream};

/// Opens a TCP connection to exactly `address`, from `source` if one is given. Of what is not read yet the system holds about `buffer` bytes, if
/// that is given.
///
/// Nothing is sent to an address that `policy` refuses.
pub async fn dial(
    address: SocketAddr,
    source: Option<IpAddr>,
    policy: &AddressPolicy,
    patience: Duration,
    buffer: Option<u32>,
) -> Result<TcpStream, FetchError> {
    let socket = socket(address, source)?;
    if let Some(buffer) = buffer {
        // Before connecting, for it limits the window. Failing, the rate is the same over a longer time, and more comes that no limit counts.
        let _ = socket.set_recv_buffer_size(buffer);
    }
    policy.check(address).map_err(|_| FetchError::ForbiddenAddress)?;
    let connecting = socket.connect(address);
    debug_assert!(policy.check(address).is_ok(), "a forbidden address must never be dialled: {address}");
    let stream = tokio::time::timeout(patience, connecting).await.map_err(|_| FetchError::ConnectTimeout)?;
    let stream = stream.map_err(|error| connect_failure(&error))?;
    // A request is one small write: waiting for more of it would only add to the response time. Failing costs no more.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

fn socket(address: SocketAddr, source: Option<IpAddr>) -> Result<TcpSocket, FetchError> {
    let made = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let socket = made.map_err(|_| FetchError::Unreachable)?;
    if let Some(source) = source {
        // Ports in TIME_WAIT may be bound again: otherwise a source address runs out of them after 28,000 servers a minute.
        let bound = socket.set_reuseaddr(true).and_then(|()| socket.bind(SocketAddr::new(source, 0)));
        bound.map_err(|_| FetchError::Unreachable)?;
    }
    Ok(socket)
}

fn connect_failure(error: &io::Error) -> FetchError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => FetchError::ConnectionRefused,
        io::ErrorKind::TimedOut => FetchError::ConnectTimeout,
        _ => FetchError::Unreachable,
    }
}
