//! Transports: TCP (optionally a pre-shared key, Noise, Yamux), and between members QUIC and relayed connections.

use super::{
    config::StartError,
    dialling::Dialable,
    meter::{Metered, MeteredStreams, SwarmMeter},
    quic::Quic,
    single_ping,
    source::SourceBound,
};
use crate::resolver;
use hickory_resolver::config::ResolverOpts;
use libp2p::{
    PeerId, Transport,
    core::{muxing::StreamMuxerBox, transport::Boxed, upgrade::Version},
    dns,
    futures::{AsyncRead, AsyncWrite},
    identity::Keypair,
    noise, pnet, relay,
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

/// How long connecting may take, all handshakes included.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// A transport that brings connections to peers whose keys are proven.
pub(super) type Secure = Boxed<(PeerId, StreamMuxerBox)>;

/// How a process connects, whoever it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// TCP connections come from this address.
    pub(super) source: Option<IpAddr>,
    /// Only peers with the same key are talked to. QUIC has no such key, so there is only TCP then.
    pub(super) key: Option<[u8; 32]>,
    /// Which addresses may be dialled; all if there is none.
    pub(super) dialable: Option<Dialable>,
    /// Who is asked for the addresses of names; nobody in particular for those that the system asks.
    pub(super) name_servers: Vec<SocketAddr>,
    /// Where its bytes are counted.
    pub(super) meter: Arc<SwarmMeter>,
}

/// TCP alone, for a program that is no member.
pub(super) fn tcp(keypair: &Keypair, line: Line) -> Result<Secure, StartError> {
    let name_servers = line.name_servers.clone();
    Ok(named(direct_tcp(keypair, line)?, &name_servers))
}

/// TCP and QUIC.
pub(super) fn direct(keypair: &Keypair, line: Line) -> Result<Secure, StartError> {
    if line.key.is_some() {
        return tcp(keypair, line);
    }
    let (meter, name_servers) = (Arc::clone(&line.meter), line.name_servers.clone());
    let counted =
        move |(peer, connection), endpoint| (peer, StreamMuxerBox::new(MeteredStreams::quic(peer, connection, &meter, &endpoint)));
    let quic = Quic::new(keypair, line.dialable.clone()).map(counted).boxed();
    Ok(named(quic.or_transport(direct_tcp(keypair, line)?).map(|either, _| either.into_inner()).boxed(), &name_servers))
}

/// TCP, QUIC, and connections through members that relay.
pub(super) fn all(keypair: &Keypair, line: Line, relayed: relay::client::Transport) -> Result<Secure, StartError> {
    let relayed = secure(relayed, keypair)?;
    Ok(relayed.or_transport(direct(keypair, line)?).map(|either, _| either.into_inner()).boxed())
}

/// Names in multiaddrs need a resolver; a machine without a readable resolv.conf can still use addresses.
fn named(transport: Secure, name_servers: &[SocketAddr]) -> Secure {
    if !name_servers.is_empty() {
        return dns::tokio::Transport::custom(transport, resolver::asking(name_servers), ResolverOpts::default()).boxed();
    }
    match hickory_resolver::system_conf::read_system_conf() {
        Ok((config, options)) => dns::tokio::Transport::custom(transport, config, options).boxed(),
        Err(error) => {
            tracing::warn!(%error, "no DNS configuration for connections to members: bootstrap addresses must be IP addresses, not names");
            transport
        }
    }
}

fn direct_tcp(keypair: &Keypair, line: Line) -> Result<Secure, StartError> {
    let meter = line.meter;
    let counted = Arc::clone(&meter);
    let transport = SourceBound::new(line.source, line.dialable).map(move |socket, endpoint| Metered::tcp(socket, &counted, &endpoint));
    let secured = match line.key {
        Some(key) => {
            let pre_shared = pnet::PnetConfig::new(pnet::PreSharedKey::new(key));
            secure(transport.and_then(move |socket, _| pre_shared.handshake(socket)), keypair)?
        }
        None => secure(transport, keypair)?,
    };
    let proven = move |(peer, connection), endpoint| {
        meter.proven(peer, &endpoint);
        (peer, connection)
    };
    Ok(secured.map(proven).boxed())
}

fn secure<T>(transport: T, keypair: &Keypair) -> Result<Secure, StartError>
where
    T: Transport + Send + Unpin + 'static,
    T::Output: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    T::Dial: Send + 'static,
    T::ListenerUpgrade: Send + 'static,
    T::Error: Send + Sync + 'static,
{
    let noise = noise::Config::new(keypair).map_err(|error| StartError::Key(error.to_string()))?;
    Ok(transport
        .upgrade(Version::V1Lazy)
        .authenticate(noise)
        .multiplex(single_ping::Config::default())
        .timeout(CONNECT_WITHIN)
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
        .boxed())
}
