//! How are bytes carried? TCP, optionally a pre-shared key, Noise, Yamux.

use super::{config::StartError, dialling::Dialable, source::SourceBound};
use libp2p::{
    PeerId, Transport,
    core::{muxing::StreamMuxerBox, transport::Boxed, upgrade::Version},
    dns,
    futures::{AsyncRead, AsyncWrite},
    identity::Keypair,
    noise, pnet, yamux,
};
use std::{net::IpAddr, time::Duration};

/// How long connecting may take, all handshakes included.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The whole stack. Without `dialable` all addresses may be dialled.
pub(super) fn build(
    keypair: &Keypair,
    source: Option<IpAddr>,
    key: Option<[u8; 32]>,
    dialable: Option<Dialable>,
) -> Result<Boxed<(PeerId, StreamMuxerBox)>, StartError> {
    // Names in multiaddrs need a resolver; a machine without a readable resolv.conf can still use addresses.
    match dns::tokio::Transport::system(SourceBound::new(source, dialable.clone())) {
        Ok(transport) => upgrade(transport, keypair, key),
        Err(error) => {
            tracing::warn!(%error, "no DNS configuration for connections to members: bootstrap addresses must be IP addresses, not names");
            upgrade(SourceBound::new(source, dialable), keypair, key)
        }
    }
}

fn upgrade<T>(transport: T, keypair: &Keypair, key: Option<[u8; 32]>) -> Result<Boxed<(PeerId, StreamMuxerBox)>, StartError>
where
    T: Transport + Send + Unpin + 'static,
    T::Output: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    T::Dial: Send + 'static,
    T::ListenerUpgrade: Send + 'static,
    T::Error: Send + Sync + 'static,
{
    match key {
        Some(key) => {
            let pre_shared = pnet::PnetConfig::new(pnet::PreSharedKey::new(key));
            secure(transport.and_then(move |socket, _| pre_shared.handshake(socket)), keypair)
        }
        None => secure(transport, keypair),
    }
}

fn secure<T>(transport: T, keypair: &Keypair) -> Result<Boxed<(PeerId, StreamMuxerBox)>, StartError>
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
        .multiplex(yamux::Config::default())
        .timeout(CONNECT_WITHIN)
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
        .boxed())
}
