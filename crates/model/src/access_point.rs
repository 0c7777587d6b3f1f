//! Identity of a member: an access point is its Ed25519 public key, written as libp2p writes peer ids.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{cmp::Ordering, fmt, str::FromStr};

/// One daemon of the swarm, named by its Ed25519 public key. In JSON it is its peer id, between members its 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AccessPoint(pub [u8; 32]);

/// By their bytes. The first eight are compared as one number: they nearly always decide, and maps by access point are looked up in all the time.
impl Ord for AccessPoint {
    #[inline]
    fn cmp(&self, other: &AccessPoint) -> Ordering {
        let first = |point: &AccessPoint| {
            let [a, b, c, d, e, f, g, h, ..] = point.0;
            u64::from_be_bytes([a, b, c, d, e, f, g, h])
        };
        first(self).cmp(&first(other)).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for AccessPoint {
    #[inline]
    fn partial_cmp(&self, other: &AccessPoint) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The prefix of the key in a libp2p peer id: identity multihash (0x00, 36 bytes) of the protobuf `{type: Ed25519, data: 32 bytes}`.
const PEER_ID_HEAD: [u8; 6] = [0x00, 0x24, 0x08, 0x01, 0x12, 0x20];

/// The first eight bytes of an access point's key: enough to tell members apart where many are named in little space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShortId(pub [u8; 8]);

impl fmt::Display for ShortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The error for a text that is not the peer id of an Ed25519 key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the peer id of an Ed25519 key (they start with 12D3KooW)")]
pub struct ParseAccessPointError(pub String);

impl AccessPoint {
    /// The last eight characters of the peer id: enough for people to tell a handful of members apart.
    pub fn short(&self) -> String {
        let text = self.to_string();
        text[text.len() - 8..].to_owned()
    }
}

impl From<AccessPoint> for ShortId {
    fn from(whole: AccessPoint) -> Self {
        ShortId(std::array::from_fn(|place| whole.0[place]))
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
    type Err = ParseAccessPointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || ParseAccessPointError(text.chars().take(80).collect());
        let bytes = bs58::decode(text).into_vec().map_err(|_| bad())?;
        let key = bytes.strip_prefix(&PEER_ID_HEAD).ok_or_else(bad)?;
        Ok(AccessPoint(key.try_into().map_err(|_| bad())?))
    }
}

impl Serialize for AccessPoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for AccessPoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
        } else {
            Ok(AccessPoint(<[u8; 32]>::deserialize(deserializer)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AccessPoint;
    use proptest::prelude::*;

    #[test]
    fn people_read_the_peer_id_and_members_exchange_the_bare_key() {
        let me = AccessPoint([7; 32]);
        let json = serde_json::to_string(&me).unwrap();
        assert!(json.starts_with("\"12D3KooW"), "{json}");
        assert_eq!(serde_json::from_str::<AccessPoint>(&json).unwrap(), me);
        assert_eq!(postcard::to_stdvec(&me).unwrap(), [7; 32]);
        assert_eq!(postcard::from_bytes::<AccessPoint>(&[7; 32]).unwrap(), me);
        assert!(serde_json::from_str::<AccessPoint>("\"nobody\"").is_err());
    }

    /// Bytes that differ early, late and nowhere.
    fn bytes() -> impl Strategy<Value = [u8; 32]> {
        (0..3_u8, 0..3_u8, 0..32_usize).prop_map(|(first, later, at)| {
            let mut bytes = [first; 32];
            bytes[at] = later;
            bytes
        })
    }

    proptest! {
        #[test]
        fn access_points_are_in_the_order_of_their_bytes(one in bytes(), other in bytes()) {
            prop_assert_eq!(AccessPoint(one).cmp(&AccessPoint(other)), one.cmp(&other));
        }
    }
}
