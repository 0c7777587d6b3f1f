//! Claims of ownership of a subnet, signed by the owner and ordered by epoch.

use super::{
    access_point::{AccessPoint, ShortId},
    subnet::Subnet,
    vote::Votes,
};
use ed25519_dalek::{Signer, SigningKey, Verifier, VerifyingKey};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// The greatest epoch of a claim. No subnet comes near it: at one owner a millisecond it would take 8,900 years. Claims beyond it are
/// refused, so that there is always a next epoch.
pub const MAX_EPOCH: u64 = 1 << 48;

/// Why an access point may claim a subnet at the next epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimReason {
    /// The access point's own address lies in it (IPMicra §4.1).
    OwnSubnet,
    /// The subnet had no owner; its steward awarded it to the nearest access point (IPMicra's procedure).
    Awarded,
    /// The previous owner was silent for as long as the swarm waits.
    OwnerDead,
    /// The previous owner released it.
    Released,
    /// The previous owner found that it is better off here, and handed it over with its journals.
    Moved,
}

/// The greatest number of answers in a claim.
pub const MAX_ANSWERS: usize = 15;

/// One access point's measurement of a subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Answer {
    /// Round-trip time in microseconds.
    pub rtt_us: u32,
    /// The access point that measured it, by its short id.
    pub prober: ShortId,
}

/// An owner's statement about a subnet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// The subnet claimed.
    pub subnet: Subnet,
    /// One more than the epoch of the claim before; the first is 1.
    pub epoch: u64,
    /// The access point that will crawl it; it signs the claim.
    pub owner: AccessPoint,
    /// Round-trip time from the owner, in microseconds; none if it was not probed.
    pub rtt_us: Option<u32>,
    /// The second nearest by the probes: it takes over without new probes if the owner dies. None if no other member answered.
    pub runner_up: Option<AccessPoint>,
    /// How many probes the decision took, all access points together.
    pub probes: u16,
    /// Why the owner may claim it.
    pub reason: ClaimReason,
    /// True if the owner gives the subnet up: it has no owner then, and the next claim is at `epoch + 1`.
    pub released: bool,
    /// What other members measured, the nearest first, at most [`MAX_ANSWERS`]: candidates to take over, and samples for every member's
    /// model of distances.
    pub answers: Vec<Answer>,
}

impl Claim {
    /// The total order of claims to one subnet that voters of one list accepted: the greater one holds. Higher epoch, then lower round-trip time (none is
    /// worst), then smaller owner; a release of the same claim beats the claim itself.
    pub fn strength(&self, other: &Claim) -> Ordering {
        self.epoch
            .cmp(&other.epoch)
            .then_with(|| other.rtt_us.unwrap_or(u32::MAX).cmp(&self.rtt_us.unwrap_or(u32::MAX)))
            .then_with(|| other.owner.cmp(&self.owner))
            .then_with(|| self.released.cmp(&other.released))
    }
}

/// A claim as it travels: the signed bytes themselves, so that nothing is ever re-encoded before it is checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedClaim {
    /// The claim, encoded with postcard.
    pub bytes: Vec<u8>,
    /// Ed25519 over [`CLAIM_CONTEXT`] and `bytes`, by the claim's owner.
    pub signature: Vec<u8>,
    /// The votes that accepted the claim, or the claim that is released; none while it is being voted on.
    pub votes: Option<Box<Votes>>,
}

/// The domain separator of the signature, so that a signature of a claim is valid for nothing else.
pub(crate) const CLAIM_CONTEXT: &[u8] = b"nearcrawl claim 2\0";

/// Why a signed claim is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The bytes do not decode to a claim.
    #[error("the claim cannot be decoded")]
    Malformed,
    /// It contains more answers than any procedure collects.
    #[error("the claim tells more than {MAX_ANSWERS} answers")]
    TooManyAnswers,
    /// The signature does not verify with the owner's key.
    #[error("the claim's signature is not its owner's")]
    BadSignature,
}

/// The bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;

fn encode(claim: &Claim) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "postcard writes any claim into a growing vector")]
    let bytes = postcard::to_stdvec(claim).expect("a claim always encodes");
    bytes
}

/// The bytes that are signed.
fn signed_bytes(bytes: &[u8]) -> Vec<u8> {
    [CLAIM_CONTEXT, bytes].concat()
}

impl SignedClaim {
    /// Signs a claim with its owner's key.
    pub fn sign(claim: &Claim, key: &SigningKey) -> SignedClaim {
        let bytes = encode(claim);
        let signature = key.sign(&signed_bytes(&bytes)).to_bytes().to_vec();
        SignedClaim { bytes, signature, votes: None }
    }

    /// Decodes the claim and checks that its owner signed it.
    pub fn open(&self) -> Result<Claim, ClaimError> {
        let claim = self.read()?;
        self.verify(&claim)?;
        Ok(claim)
    }

    /// Checks what [`SignedClaim::read`] decoded: that its owner signed it, and that it tells no more answers than it may.
    pub fn verify(&self, claim: &Claim) -> Result<(), ClaimError> {
        if claim.answers.len() > MAX_ANSWERS {
            return Err(ClaimError::TooManyAnswers);
        }
        let key = VerifyingKey::from_bytes(&claim.owner.0).map_err(|_| ClaimError::BadSignature)?;
        let signature = self.signature.as_slice().try_into().map_err(|_| ClaimError::BadSignature)?;
        key.verify(&signed_bytes(&self.bytes), &signature).map_err(|_| ClaimError::BadSignature)
    }

    /// Decodes the claim without checking the signature: for what we checked before we stored it. Only the bytes that
    /// [`SignedClaim::sign`] writes are a claim: with others, an owner could have members keep and pass on whatever follows it.
    pub fn read(&self) -> Result<Claim, ClaimError> {
        let claim = postcard::from_bytes(&self.bytes).map_err(|_| ClaimError::Malformed)?;
        if encode(&claim) == self.bytes { Ok(claim) } else { Err(ClaimError::Malformed) }
    }

    /// A claim that was read, and its signature, as they came: a claim has one encoding.
    pub fn of_parts(claim: &Claim, signature: &[u8; SIGNATURE_BYTES], votes: Option<Box<Votes>>) -> SignedClaim {
        SignedClaim { bytes: encode(claim), signature: signature.to_vec(), votes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(key: &SigningKey, answers: usize) -> Claim {
        let answer = |number: usize| Answer { rtt_us: 40_000 + number as u32, prober: ShortId([number as u8; 8]) };
        Claim {
            subnet: "192.0.2.0/24".parse().unwrap(),
            epoch: 1,
            owner: AccessPoint(key.verifying_key().to_bytes()),
            rtt_us: Some(8_000),
            runner_up: Some(AccessPoint([2; 32])),
            probes: answers as u16 + 1,
            reason: ClaimReason::Awarded,
            released: false,
            answers: (0..answers).map(answer).collect(),
        }
    }

    #[test]
    fn bytes_that_are_not_the_encoding_of_a_claim_are_no_claim() {
        let key = SigningKey::from_bytes(&[1; 32]);
        let signed = SignedClaim::sign(&claim(&key, 2), &key);
        let again = |bytes: Vec<u8>| {
            let signature = key.sign(&signed_bytes(&bytes)).to_bytes().to_vec();
            SignedClaim { bytes, signature, votes: None }.open()
        };
        assert_eq!(again(signed.bytes.clone()), Ok(claim(&key, 2)));
        assert_eq!(again([&signed.bytes[..], &[0; 1000]].concat()), Err(ClaimError::Malformed), "something follows");
        assert_eq!(SignedClaim::of_parts(&claim(&key, 2), signed.signature.as_slice().try_into().unwrap(), None), signed);
    }

    #[test]
    fn an_answer_costs_eleven_bytes_and_more_than_fifteen_are_not_believed() {
        let key = SigningKey::from_bytes(&[1; 32]);
        let size = |answers| postcard::to_stdvec(&SignedClaim::sign(&claim(&key, answers), &key)).unwrap().len();
        assert_eq!(size(3) - size(0), 33);
        assert!(size(1) < 170, "{}", size(1));
        assert!(SignedClaim::sign(&claim(&key, MAX_ANSWERS), &key).open().is_ok());
        assert_eq!(SignedClaim::sign(&claim(&key, MAX_ANSWERS + 1), &key).open(), Err(ClaimError::TooManyAnswers));
    }
}
