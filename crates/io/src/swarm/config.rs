//! Configuration of the swarm at its start.

use super::hello::SwarmSecrets;
use ipnetwork::IpNetwork;
use nearcrawl_model::admission::{Gate, SignedAdmission};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

/// How this access point takes part.
#[derive(Clone, Debug)]
pub struct SwarmConfig {
    /// Where to listen, as multiaddrs, for example `/ip4/0.0.0.0/tcp/4001`; port 0 takes any.
    pub listen: Vec<String>,
    /// Where others can reach this access point, if that differs from what it listens on (behind a router), as multiaddrs.
    pub announce: Vec<String>,
    /// Members that the operator named, as multiaddrs. Where these, `listen` and `announce` have a private address, members with such
    /// ones are dialled, too.
    pub bootstrap: Vec<String>,
    /// Special ranges in which members are dialled.
    pub allow_ranges: Vec<IpNetwork>,
    /// Outgoing connections come from this address.
    pub source_address: Option<IpAddr>,
    /// Who is asked for the addresses of members' names; nobody in particular for those that the system asks.
    pub name_servers: Vec<SocketAddr>,
    /// Only peers with the same key can connect at all.
    pub pre_shared_key: Option<[u8; 32]>,
    /// The swarm; none to join that of the first member that lets us in.
    pub secrets: Option<SwarmSecrets>,
    /// Whom it lets in, until [`super::SwarmCommand::Guard`] says otherwise.
    pub gate: Arc<Gate>,
    /// The certificate that it shows others, until [`super::SwarmCommand::Show`] gives another.
    pub certificate: Option<SignedAdmission>,
    /// Which hierarchy addresses are placed by.
    pub hierarchy_hash: [u8; 32],
    /// How often this access point has started.
    pub incarnation: u64,
    /// Name and version, for people.
    pub software: String,
    /// Connections at the same time, both directions together.
    pub max_connections: u32,
    /// New connections are refused when the process uses more memory than this, in bytes.
    pub max_memory: usize,
    /// How long a question may take.
    pub answer_within: Duration,
    /// Requests a second from one peer, after a burst of four times as many; SWIM is counted apart.
    pub requests_per_second: u32,
    /// Whether members that nobody reaches may be reached through this access point, once it is reached from outside itself.
    pub relays: bool,
    /// Whether programs that are no members are told if this access point reaches them.
    pub tries_readers: bool,
    /// Public requests a second from all peers together, after a burst of four times as many.
    pub public_per_second: u32,
}

impl Default for SwarmConfig {
    fn default() -> Self {
        SwarmConfig {
            listen: vec!["/ip4/0.0.0.0/tcp/4001".to_owned()],
            announce: Vec::new(),
            bootstrap: Vec::new(),
            allow_ranges: Vec::new(),
            source_address: None,
            name_servers: Vec::new(),
            pre_shared_key: None,
            secrets: None,
            gate: Arc::default(),
            certificate: None,
            hierarchy_hash: [0; 32],
            incarnation: 1,
            software: concat!("nearcrawl/", env!("CARGO_PKG_VERSION")).to_owned(),
            max_connections: 512,
            max_memory: 2 << 30,
            answer_within: Duration::from_secs(20),
            requests_per_second: 100,
            relays: true,
            tries_readers: true,
            public_per_second: 20,
        }
    }
}

/// What to do about the system's reason for not listening.
fn listen_advice(reason: &str) -> &'static str {
    if reason.contains("in use") {
        "; is another daemon running? Stop it, or choose another port"
    } else if reason.contains("assign") {
        "; the address is not one of this machine"
    } else if reason.contains("ermission") {
        "; ports below 1024 need root or CAP_NET_BIND_SERVICE: choose a higher one"
    } else {
        ""
    }
}

/// Why the swarm could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address in the configuration is no multiaddr.
    #[error("{address:?} cannot be used ({reason}); write it like /ip4/0.0.0.0/tcp/4817")]
    BadAddress {
        /// The address as it was configured.
        address: String,
        /// What is wrong.
        reason: String,
    },
    /// The address cannot be listened on.
    #[error("swarm.listen = \"{address}\": cannot listen: {reason}{}", listen_advice(.reason))]
    Listen {
        /// The address as it was configured.
        address: String,
        /// The reason that the system gives.
        reason: String,
    },
    /// The access point's key cannot be used.
    #[error("the access point's key cannot be used: {0}")]
    Key(String),
    /// libp2p refused its configuration: a defect of this program.
    #[error("the peer-to-peer library refused its configuration: {0}")]
    Library(String),
}
