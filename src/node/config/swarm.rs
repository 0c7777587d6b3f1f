//! `[swarm]`: how the daemon finds and reaches other members.

use super::{
    reader::Section,
    values::{self, Parsed},
};
use crate::io::swarm::MIN_PORT;
use libp2p::{Multiaddr, multiaddr::Protocol};
use nearcrawl_model::{
    access_point::AccessPoint,
    profile::{MemberName, MemberNameError},
};
use std::{net::IpAddr, path::PathBuf};
use toml::de::DeValue;

/// Who may read the swarm's results from this access point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readers {
    /// All programs that can connect.
    #[default]
    Anybody,
    /// Members of the swarm: they keep copies of each other's records, and answer their own operators from them.
    Members,
}

/// `[swarm]`: how the daemon finds and reaches other members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwarmConfig {
    /// Where to wait for other members, as multiaddresses (checked).
    pub listen: Vec<String>,
    /// Under which addresses others can reach this access point, if they are not those it listens on; multiaddresses (checked).
    pub advertise: Vec<String>,
    /// The members to connect to first, as multiaddresses (checked); empty for the first member of a swarm.
    pub bootstrap: Vec<String>,
    /// How many members may be connected at once.
    pub max_connected: u32,
    /// A file with a key that all members share, 64 hexadecimal digits (openssl rand -hex 32); none = no such key.
    pub pre_shared_key_file: Option<PathBuf>,
    /// Who may read the results from here.
    pub readers: Readers,
    /// The members whose operators' orders to ask nothing of a server are not obeyed here.
    pub ignore_orders_of: Vec<AccessPoint>,
    /// How other members' operators see this access point called; none if it has no name.
    pub name: Option<MemberName>,
    /// What other members are told of its limits.
    pub tell_allowance: TellAllowance,
}

/// What other members are told of an access point's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TellAllowance {
    /// Nothing.
    #[default]
    Nothing,
    /// Whether one keeps it from crawling, and which.
    State,
    /// That, and how much of those of bytes is used, in steps of ten per cent.
    Shares,
}

impl Default for SwarmConfig {
    fn default() -> Self {
        SwarmConfig {
            listen: vec!["/ip4/0.0.0.0/tcp/4817".to_owned(), "/ip4/0.0.0.0/udp/4817/quic-v1".to_owned()],
            advertise: Vec::new(),
            bootstrap: Vec::new(),
            max_connected: 64,
            pre_shared_key_file: None,
            readers: Readers::Anybody,
            ignore_orders_of: Vec::new(),
            name: None,
            tell_allowance: TellAllowance::Nothing,
        }
    }
}

const READERS: &[(&str, Readers)] = &[("anybody", Readers::Anybody), ("members", Readers::Members)];

const TELL_ALLOWANCE: &[(&str, TellAllowance)] =
    &[("nothing", TellAllowance::Nothing), ("state", TellAllowance::State), ("shares", TellAllowance::Shares)];

/// A name, or none if nothing stands between the quotes.
fn name(value: &DeValue<'_>) -> Parsed<Option<MemberName>> {
    match value.as_str() {
        Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|why: MemberNameError| why.to_string()),
        None => Err("write a name in quotes, like \"Museum in Nairobi\"".to_owned()),
    }
}

impl SwarmConfig {
    pub(super) fn read(mut section: Section<'_, '_>) -> SwarmConfig {
        let default = SwarmConfig::default();
        let config = SwarmConfig {
            listen: section.list("listen", default.listen, listen_address),
            advertise: section.list("advertise", default.advertise, dial_address),
            bootstrap: section.list("bootstrap", default.bootstrap, dial_address),
            max_connected: section.take("max_connected", default.max_connected, values::whole(1..=10_000)),
            pre_shared_key_file: section.path("pre_shared_key_file"),
            readers: section.take("readers", default.readers, values::choice(READERS)),
            ignore_orders_of: section.list("ignore_orders_of", default.ignore_orders_of, peer_id),
            name: section.take("name", None, name),
            tell_allowance: section.take("tell_allowance", TellAllowance::Nothing, values::choice(TELL_ALLOWANCE)),
        };
        let by_quic = |address: &String| address.contains("/quic");
        if config.pre_shared_key_file.is_some() && !config.bootstrap.is_empty() && config.bootstrap.iter().all(by_quic) {
            let told =
                "QUIC has no pre-shared key, so that none of these members can be reached: name their addresses with /tcp/".to_owned();
            section.contradicts(&["bootstrap"], told);
        }
        config
    }

    /// Members to join through that are this access point itself.
    pub(super) fn bootstrap_here(&self) -> impl Iterator<Item = &str> {
        let is_here =
            move |address: &&str| self.listen.iter().chain(&self.advertise).any(|own| is_same_place(&parts(own), &parts(address)));
        self.bootstrap.iter().map(String::as_str).filter(is_here)
    }

    /// An address to listen at whose port is one of other services, if there is one; 0 is any port.
    pub(super) fn low_port(&self) -> Option<&str> {
        let is_low = |part: Protocol<'_>| matches!(part, Protocol::Tcp(port) | Protocol::Udp(port) if (1..MIN_PORT).contains(&port));
        self.listen.iter().find(|address| parts(address).into_iter().any(is_low)).map(String::as_str)
    }
}

/// A member's peer id.
pub(super) fn peer_id(value: &DeValue<'_>) -> Parsed<AccessPoint> {
    let text = values::any_text(value)?;
    text.parse().map_err(|_| "write a member's peer id, as `nearcrawl members --json` shows it, like \"12D3KooW…\"".to_owned())
}

/// How a multiaddress is written, for messages.
const LISTEN_LIKE: &str = "write an IP address and a port of this machine as a multiaddress in quotes, like \"/ip4/0.0.0.0/tcp/4817\", or \
                           \"/ip4/0.0.0.0/udp/4817/quic-v1\" for QUIC";
const DIAL_LIKE: &str = "write a multiaddress, like \"/ip4/192.0.2.1/tcp/4817\" or \"/dns4/ap.example.org/tcp/4817/p2p/12D3KooW…\"";

/// Where to listen: an IP address and a port of TCP or QUIC, which may be 0. The text is kept, so that only the swarm module depends on the type.
fn listen_address(value: &DeValue<'_>) -> Parsed<String> {
    let text = values::any_text(value)?;
    let parts = parts(text);
    let fits = matches!(
        parts.as_slice(),
        [Protocol::Ip4(_) | Protocol::Ip6(_), Protocol::Tcp(_)] | [Protocol::Ip4(_) | Protocol::Ip6(_), Protocol::Udp(_), Protocol::QuicV1]
    );
    match parts.first().and_then(ip_of) {
        Some(address) if fits && values::is_of_many(address) => {
            Err(format!("no member can connect to a multicast or broadcast address; {LISTEN_LIKE}"))
        }
        Some(_) if fits => Ok(text.to_owned()),
        _ => Err(LISTEN_LIKE.to_owned()),
    }
}

/// Where a member is reached.
fn dial_address(value: &DeValue<'_>) -> Parsed<String> {
    let text = values::any_text(value)?;
    check_dial_address(text).map(|()| text.to_owned())
}

/// Whether members can be dialled at an address like this: a place, a port of TCP or QUIC that is not 0, and the member's peer id or nothing.
///
/// # Errors
/// How such an address is written.
pub fn check_dial_address(text: &str) -> Result<(), String> {
    let parts = parts(text);
    let reached = match parts.as_slice() {
        [place, Protocol::Tcp(1..), rest @ ..] | [place, Protocol::Udp(1..), Protocol::QuicV1, rest @ ..] => {
            let named = matches!(
                place,
                Protocol::Ip4(_) | Protocol::Ip6(_) | Protocol::Dns(_) | Protocol::Dns4(_) | Protocol::Dns6(_) | Protocol::Dnsaddr(_)
            );
            named && matches!(rest, [] | [Protocol::P2p(_)])
        }
        _ => false,
    };
    match parts.first().and_then(ip_of) {
        _ if !reached => Err(DIAL_LIKE.to_owned()),
        Some(address) if !values::is_of_one_machine(address) => Err(format!("no member can be reached there; {DIAL_LIKE}")),
        _ => Ok(()),
    }
}

/// The IP address of a part, if it is one.
fn ip_of(part: &Protocol<'_>) -> Option<IpAddr> {
    match part {
        Protocol::Ip4(address) => Some((*address).into()),
        Protocol::Ip6(address) => Some((*address).into()),
        _ => None,
    }
}

/// Whether who dials `other` comes to `own`, whichever peer ids they name; an unspecified address has those of the loopback interface.
fn is_same_place(own: &[Protocol<'static>], other: &[Protocol<'static>]) -> bool {
    let place = |parts: &[Protocol<'static>]| parts.iter().filter(|part| !matches!(part, Protocol::P2p(_))).cloned().collect::<Vec<_>>();
    let (own, other) = (place(own), place(other));
    let everywhere = match (own.first().and_then(ip_of), other.first().and_then(ip_of)) {
        (Some(own), Some(other)) => own.is_unspecified() && other.is_loopback() && own.is_ipv4() == other.is_ipv4(),
        _ => false,
    };
    own.get(1..) == other.get(1..) && (everywhere || own.first() == other.first())
}

/// The parts of a multiaddress; none if it is none.
fn parts(text: &str) -> Vec<Protocol<'static>> {
    let address = text.parse::<Multiaddr>().unwrap_or_else(|_| Multiaddr::empty());
    address.iter().map(Protocol::acquire).collect()
}
