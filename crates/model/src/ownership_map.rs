//! Comparison of two members' ownership maps: parts of a map, their digests, and what one member requests of another's part.
//!
//! Each subnet has a place: 64 bits of the SHA-256 of its address and length. A part is the claims of all subnets whose places begin with
//! certain bits: the whole map at depth 0, one of 32 parts of a part at each further depth. The digest of a part follows from its claims
//! alone, so two members with equal claims have equal digests, however they came by them:
//!
//! * without claims: zeros
//! * with at most [`MAX_LISTED`] claims, or at the greatest depth: SHA-256 over the digests of its claims, in the order of their places
//! * with more: SHA-256 over the digests of its 32 parts
//!
//! All are cut to 192 bits, so two different maps with one digest cost 2^96 evaluations of SHA-256. Sums or exclusive-ors of the claims'
//! digests would be cheaper to keep up to date, but whoever may choose thousands of claims finds two sets of equal 256-bit sums with some
//! 2^33 evaluations (Wagner's generalised birthday problem). Places are not secret; whoever searches for subnets with nearly equal places
//! makes the map a few parts deeper there, at 32 times the search for each.

use crate::{claim::Claim, subnet::Subnet};
use serde::{Deserialize, Deserializer, Serialize, de};
use sha2::{Digest, Sha256};
use std::{fmt, marker::PhantomData, net::IpAddr};

/// In how many parts a part is divided.
pub const PARTS: usize = 32;

/// The bits of a place that one depth more uses.
const BITS: u32 = 5;

/// The greatest depth of a part.
pub const MAX_DEPTH: u8 = 12;

/// The most claims of a part that are listed one by one: with more it is divided.
pub const MAX_LISTED: usize = 64;

/// The most parts in one comparison.
pub const MAX_COMPARED: usize = 32;

/// The most parts of which one request wants claims.
pub const MAX_WANTED: usize = 64;

/// The most claims in one answer: to check them takes some 15 ms, and they take 60 kB.
pub const MAX_SENT: usize = 256;

/// The bytes of a digest.
const DIGEST_BYTES: usize = 24;

/// The digest of a claim, or of a part of a map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MapDigest([u8; DIGEST_BYTES]);

impl MapDigest {
    /// The digest of a part without claims.
    pub const EMPTY: MapDigest = MapDigest([0; DIGEST_BYTES]);

    /// The digest of a claim. It covers what the order of claims to one subnet goes by ([`Claim::strength`]): of two claims of equal
    /// strength members keep whichever they heard first.
    pub fn of_claim(claim: &Claim) -> MapDigest {
        let mut hash = Sha256::new();
        hash.update(b"nearcrawl claim of a map 1\0");
        hash.update(subnet_bytes(&claim.subnet));
        hash.update(claim.epoch.to_be_bytes());
        hash.update(claim.owner.0);
        hash.update(claim.rtt_us.unwrap_or(u32::MAX).to_be_bytes());
        hash.update([u8::from(claim.released)]);
        MapDigest::cut(hash)
    }

    /// The digest of a part that lists these claims, in the order of their places.
    pub fn of_listed(claims: impl Iterator<Item = MapDigest>) -> MapDigest {
        MapDigest::of_digests(b"nearcrawl listed part 1\0", claims)
    }

    /// The digest of a part that is divided into parts with these digests.
    pub fn of_parts(parts: impl Iterator<Item = MapDigest>) -> MapDigest {
        MapDigest::of_digests(b"nearcrawl divided part 1\0", parts)
    }

    fn of_digests(kind: &[u8], digests: impl Iterator<Item = MapDigest>) -> MapDigest {
        let mut hash = Sha256::new();
        hash.update(kind);
        digests.for_each(|digest| hash.update(digest.0));
        MapDigest::cut(hash)
    }

    fn cut(hash: Sha256) -> MapDigest {
        let mut digest = [0; DIGEST_BYTES];
        digest.copy_from_slice(&hash.finalize()[..DIGEST_BYTES]);
        MapDigest(digest)
    }
}

impl fmt::Debug for MapDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Family, address and length: 18 bytes.
fn subnet_bytes(subnet: &Subnet) -> [u8; 18] {
    let mut bytes = [0; 18];
    match subnet.first() {
        IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes[..16].copy_from_slice(&address.octets()),
    }
    bytes[16] = u8::from(subnet.first().is_ipv6());
    bytes[17] = subnet.length();
    bytes
}

/// The place of a subnet: its claims are in the parts that begin with the same bits.
pub fn place(subnet: &Subnet) -> u64 {
    let mut hash = Sha256::new();
    hash.update(b"nearcrawl place in a map 1\0");
    hash.update(subnet_bytes(subnet));
    let mut place = [0; 8];
    place.copy_from_slice(&hash.finalize()[..8]);
    u64::from_be_bytes(place)
}

/// A part of the ownership map. Ordered by depth, then by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "(u8, u64)", into = "(u8, u64)")]
pub struct MapPart {
    /// 0 to [`MAX_DEPTH`].
    depth: u8,
    /// The first `5 * depth` bits of the places.
    prefix: u64,
}

impl MapPart {
    /// The whole map.
    pub const WHOLE: MapPart = MapPart { depth: 0, prefix: 0 };

    /// The part of this depth around a place; depths beyond [`MAX_DEPTH`] are cut to it.
    pub fn around(place: u64, depth: u8) -> MapPart {
        let depth = depth.min(MAX_DEPTH);
        MapPart { depth, prefix: place.checked_shr(64 - BITS * u32::from(depth)).unwrap_or(0) }
    }

    /// How often the map was divided.
    pub fn depth(&self) -> u8 {
        self.depth
    }

    /// The parts of this part, by their places; none at the greatest depth.
    pub fn parts(&self) -> impl Iterator<Item = MapPart> + use<> {
        let MapPart { depth, prefix } = *self;
        let count = if depth < MAX_DEPTH { PARTS as u64 } else { 0 };
        (0..count).map(move |number| MapPart { depth: depth + 1, prefix: prefix << BITS | number })
    }

    /// The first place in it.
    pub fn first_place(&self) -> u64 {
        self.prefix.checked_shl(64 - BITS * u32::from(self.depth)).unwrap_or(0)
    }

    /// Whether a place lies in it.
    pub fn contains(&self, place: u64) -> bool {
        MapPart::around(place, self.depth) == *self
    }
}

/// The error for a depth or number that no part has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no part {1} of an ownership map at depth {0}")]
pub struct MapPartError(u8, u64);

impl TryFrom<(u8, u64)> for MapPart {
    type Error = MapPartError;

    fn try_from((depth, prefix): (u8, u64)) -> Result<Self, MapPartError> {
        let exists = depth <= MAX_DEPTH && prefix < 1 << (BITS * u32::from(depth));
        if exists { Ok(MapPart { depth, prefix }) } else { Err(MapPartError(depth, prefix)) }
    }
}

impl From<MapPart> for (u8, u64) {
    fn from(part: MapPart) -> Self {
        (part.depth, part.prefix)
    }
}

/// What one member wants of another's map: the claims of a part that it has not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedPart {
    /// Which part.
    pub part: MapPart,
    /// Only the claims behind that to this subnet, in the order of places; all if none.
    pub after: Option<Subnet>,
    /// The digests of the claims that the asking member has in this part, sorted; at most [`MAX_LISTED`].
    #[serde(deserialize_with = "at_most::<_, _, MAX_LISTED>")]
    pub has: Vec<MapDigest>,
}

/// How a part compares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ComparedPart {
    /// The digests are equal.
    Equal,
    /// They are not: the digests of the answering member's [`PARTS`] parts of it.
    Differs(#[serde(deserialize_with = "at_most::<_, _, PARTS>")] Vec<MapDigest>),
}

/// Reads a list of at most `MAX` values. A longer one is refused by its length, before anything of it is read.
pub(crate) fn at_most<'de, D, T, const MAX: usize>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct AtMost<T, const MAX: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MAX: usize> de::Visitor<'de> for AtMost<T, MAX> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {MAX} values")
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, mut values: A) -> Result<Vec<T>, A::Error> {
            let told = values.size_hint().unwrap_or(0);
            if told > MAX {
                return Err(de::Error::invalid_length(told, &self));
            }
            let mut all = Vec::with_capacity(told);
            while let Some(value) = values.next_element()? {
                if all.len() == MAX {
                    return Err(de::Error::invalid_length(MAX + 1, &self));
                }
                all.push(value);
            }
            Ok(all)
        }
    }

    from.deserialize_seq(AtMost::<T, MAX>(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        claim::SignedClaim,
        message::{Request, Response},
    };
    use proptest::prelude::*;

    #[test]
    fn a_part_that_does_not_exist_is_not_read() {
        let read = |depth: u8, prefix: u64| postcard::from_bytes::<MapPart>(&postcard::to_stdvec(&(depth, prefix)).unwrap());
        assert_eq!(read(0, 0), Ok(MapPart::WHOLE));
        assert!(read(1, 31).is_ok() && read(MAX_DEPTH, (1 << 60) - 1).is_ok());
        for (depth, prefix) in [(0, 1), (1, 32), (2, 1024), (MAX_DEPTH, 1 << 60), (MAX_DEPTH + 1, 0), (13, u64::MAX), (255, 0)] {
            assert!(read(depth, prefix).is_err(), "{depth} {prefix}");
        }
    }

    proptest! {
        #[test]
        fn the_parts_of_a_part_cover_it_and_no_place_twice(at in any::<u64>(), depth in 0u8..MAX_DEPTH) {
            let part = MapPart::around(at, depth);
            prop_assert!(part.contains(at) && part.contains(part.first_place()));
            let around: Vec<_> = part.parts().filter(|part| part.contains(at)).collect();
            prop_assert_eq!(around, [MapPart::around(at, depth + 1)]);
            prop_assert!(part.parts().all(|inner| part.contains(inner.first_place())));
            prop_assert_eq!(MapPart::around(at, MAX_DEPTH).parts().count(), 0);
        }
    }

    /// What is longer than allowed is refused, however it is filled.
    #[test]
    fn lists_that_are_too_long_are_refused() {
        let parts = |count| postcard::to_stdvec(&Request::CompareClaims(vec![(MapPart::WHOLE, MapDigest::EMPTY); count])).unwrap();
        let wanted = |count, has| {
            let part = WantedPart { part: MapPart::WHOLE, after: None, has: vec![MapDigest::EMPTY; has] };
            postcard::to_stdvec(&Request::SendClaims(vec![part; count])).unwrap()
        };
        let read = |bytes: Vec<u8>| postcard::from_bytes::<Request>(&bytes).is_ok();
        assert!(read(parts(MAX_COMPARED)) && !read(parts(MAX_COMPARED + 1)));
        assert!(read(wanted(MAX_WANTED, MAX_LISTED)) && !read(wanted(MAX_WANTED + 1, 0)) && !read(wanted(1, MAX_LISTED + 1)));
        let differs = |count| {
            let parts = vec![ComparedPart::Differs(vec![MapDigest::EMPTY; count])];
            postcard::to_stdvec(&Response::Compared { whole: true, parts }).unwrap()
        };
        let claims = |count| {
            postcard::to_stdvec(&Response::Claims(vec![SignedClaim { bytes: vec![], signature: vec![], votes: None }; count], true))
                .unwrap()
        };
        let read = |bytes: Vec<u8>| postcard::from_bytes::<Response>(&bytes).is_ok();
        assert!(read(differs(PARTS)) && !read(differs(PARTS + 1)));
        assert!(read(claims(MAX_SENT)) && !read(claims(MAX_SENT + 1)));
        // A length without what it announces.
        let mut promised = parts(1);
        promised.truncate(1);
        promised.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert!(postcard::from_bytes::<Request>(&promised).is_err());
    }

    #[test]
    fn equal_maps_are_compared_in_a_hundred_bytes() {
        let request = postcard::to_stdvec(&Request::CompareClaims(vec![(MapPart::WHOLE, MapDigest::EMPTY)])).unwrap();
        let answer = postcard::to_stdvec(&Response::Compared { whole: true, parts: vec![ComparedPart::Equal] }).unwrap();
        assert!(request.len() + answer.len() <= 40, "{} {}", request.len(), answer.len());
    }
}
