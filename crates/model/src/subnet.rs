//! A subnet: one prefix of the shared hierarchy, the unit of delegation, ownership and migration (IPMicra §4.2).

use ipnetwork::IpNetwork;
use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr, str::FromStr};

/// How much of a text that is no subnet its error repeats, in characters.
const MAX_QUOTED: usize = 120;

/// A prefix with its host bits cleared, so that equal subnets are equal values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "IpNetwork", into = "IpNetwork")]
pub struct Subnet(IpNetwork);

impl Subnet {
    /// The subnet of `length` bits around `address`; lengths beyond the family's are cut to it.
    pub fn around(address: IpAddr, length: u8) -> Subnet {
        let most = if address.is_ipv4() { 32 } else { 128 };
        #[expect(clippy::unwrap_used, reason = "the length was just cut to what the family has")]
        let network = IpNetwork::new(address, length.min(most)).unwrap();
        Subnet::from(network)
    }

    /// Whether `address` lies inside.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(address)
    }

    /// Whether `other` lies inside or is the same.
    pub fn covers(&self, other: &Subnet) -> bool {
        self.length() <= other.length() && self.0.contains(other.0.ip())
    }

    /// The first address.
    pub fn first(&self) -> IpAddr {
        self.0.ip()
    }

    /// The prefix length in bits.
    pub fn length(&self) -> u8 {
        self.0.prefix()
    }

    /// The prefix as `ipnetwork` has it.
    pub fn network(&self) -> IpNetwork {
        self.0
    }
}

impl From<IpNetwork> for Subnet {
    fn from(network: IpNetwork) -> Self {
        #[expect(clippy::unwrap_used, reason = "the prefix length comes from a valid network")]
        Subnet(IpNetwork::new(network.network(), network.prefix()).unwrap())
    }
}

impl From<Subnet> for IpNetwork {
    fn from(subnet: Subnet) -> Self {
        subnet.0
    }
}

/// The error for a text that is no [`Subnet`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a subnet: write an address and a prefix length, at most 32 for IPv4 and 128 for IPv6, like 192.0.2.0/24 or 2001:db8::/48"
)]
pub struct SubnetError(pub String);

impl FromStr for Subnet {
    type Err = SubnetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<IpNetwork>().map(Subnet::from).map_err(|_| SubnetError(text.chars().take(MAX_QUOTED).collect()))
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subnet({})", self.0)
    }
}
