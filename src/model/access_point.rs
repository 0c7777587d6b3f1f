//! Who is a member? An access point is its Ed25519 public key, written as libp2p writes peer ids.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// One daemon of the swarm, named by its Ed25519 public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AccessPoint(pub [u8; 32]);

/// What stands before the key in a libp2p peer id: identity multihash (0x00, 36 bytes) of the protobuf `{type: Ed25519, data: 32 bytes}`.
const PEER_ID_HEAD: [u8; 6] = [0x00, 0x24, 0x08, 0x01, 0x12, 0x20];

/// A text that is not the peer id of an Ed25519 key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the peer id of an Ed25519 key (they start with 12D3KooW)")]
pub struct BadAccessPoint(pub String);

impl AccessPoint {
    /// The last eight characters of the peer id: enough for people to tell a handful of peers apart.
    pub fn short(&self) -> String {
        let text = self.to_string();
        text[text.len() - 8..].to_owned()
    }
}

impl fmt::Display for AccessPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::with_capacity(38);
        bytes.extend_from_slice(&PEER_ID_HEAD);
        bytes.extend_from_slice(&self.0);
        f.write_str(&bs58::encode(bytes).into_string())
    }
}

impl fmt::Debug for AccessPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessPoint({})", self.short())
    }
}

impl FromStr for AccessPoint {
    type Err = BadAccessPoint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadAccessPoint(text.chars().take(80).collect());
        let bytes = bs58::decode(text).into_vec().map_err(|_| bad())?;
        let key = bytes.strip_prefix(&PEER_ID_HEAD).ok_or_else(bad)?;
        Ok(AccessPoint(key.try_into().map_err(|_| bad())?))
    }
}
