//! Keyed 64-bit fingerprints of URLs: short, equal at every member, and not to be forged by a web site.

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;
use std::{
    fmt,
    hash::{BuildHasherDefault, Hasher},
};

/// 64 bits that stand for a URL. At 10^9 URLs a peer about 0.03 collisions are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// The same thing seen in another `scope` (a run, a level): a different fingerprint, mixed by a bijection of each scope.
    pub fn scoped(self, scope: u64) -> Fingerprint {
        // The finaliser of MurmurHash3: every input bit reaches every output bit.
        let mut x = self.0 ^ scope.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        Fingerprint(x ^ (x >> 33))
    }

    /// The lower 32 bits: for estimating how many there are, not for recognising one.
    pub fn half(self) -> u32 {
        self.0 as u32
    }
}

/// The hasher of tables keyed by fingerprints: it uses the fingerprint as its hash, because no one without the key can choose them.
pub type AsTheyAre = BuildHasherDefault<AsItIs>;

/// Returns the fingerprint itself as its hash.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}

/// The swarm's fingerprint key: every member holds the same one, so fingerprints can move with a subnet; no site knows it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FingerprintKey(pub [u8; 16]);

impl FingerprintKey {
    /// The fingerprint of a text, normally a canonical URL.
    pub fn of(&self, text: &str) -> Fingerprint {
        self.of_bytes(text.as_bytes())
    }

    /// The fingerprint of bytes.
    pub(crate) fn of_bytes(&self, bytes: &[u8]) -> Fingerprint {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(bytes);
        Fingerprint(hasher.finish())
    }

    /// Another number for a fingerprint: who has not this key learns nothing from it.
    pub fn of_fingerprint(&self, other: Fingerprint) -> Fingerprint {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(&other.0.to_be_bytes());
        Fingerprint(hasher.finish())
    }
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FingerprintKey(secret)")
    }
}
