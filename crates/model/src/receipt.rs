//! Signed receipts of probes.
//!
//! A receipt is signed by the prober and names the receipt before it, so that a search cannot hide its probes from the member that it asks
//! next.

use super::{access_point::AccessPoint, subnet::Subnet, time::WallTime};
use ed25519_dalek::{Signer, SigningKey, Verifier, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;

/// The most contacts that one subnet may get by probes in thirty days: no chain is longer.
pub const MAX_CONTACTS: usize = 15;

/// Identifies a receipt by the hash of its content.
pub type ReceiptId = [u8; 16];

/// The result of a probe, and its number in the search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The subnet that the search is for.
    pub subnet: Subnet,
    /// The address and port that were contacted.
    pub address: SocketAddr,
    /// The access point that probed; it signs the receipt.
    pub prober: AccessPoint,
    /// The steward that asked for the probe.
    pub steward: AccessPoint,
    /// Number of probes of this subnet before this one.
    pub sequence: u16,
    /// The id of the receipt before; zeros for the first.
    pub before: ReceiptId,
    /// The round-trip time in microseconds; none if there was no answer.
    pub rtt_us: Option<u32>,
    /// When it was probed, by the prober's wall clock.
    pub at: WallTime,
}

/// A receipt as it is sent: the signed bytes themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedReceipt {
    /// The receipt, encoded with postcard.
    pub bytes: Vec<u8>,
    /// Ed25519 over [`RECEIPT_CONTEXT`] and `bytes`, by the prober.
    pub signature: Vec<u8>,
}

/// The domain separator of the signature, so that a signature of a receipt is valid for nothing else.
pub(crate) const RECEIPT_CONTEXT: &[u8] = b"nearcrawl receipt 1\0";

/// Why a signed receipt is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// The bytes do not decode to a receipt.
    #[error("the receipt cannot be decoded")]
    Malformed,
    /// The signature does not verify with the prober's key.
    #[error("the receipt's signature is not its prober's")]
    BadSignature,
}

impl SignedReceipt {
    /// Signs a receipt with its prober's key.
    pub fn sign(receipt: &Receipt, key: &SigningKey) -> SignedReceipt {
        #[expect(clippy::expect_used, reason = "postcard writes any receipt into a growing vector")]
        let bytes = postcard::to_stdvec(receipt).expect("a receipt always encodes");
        let signature = key.sign(&[RECEIPT_CONTEXT, &bytes].concat()).to_bytes().to_vec();
        SignedReceipt { bytes, signature }
    }

    /// Decodes the receipt and checks that its prober signed it.
    pub fn open(&self) -> Result<Receipt, ReceiptError> {
        let receipt: Receipt = postcard::from_bytes(&self.bytes).map_err(|_| ReceiptError::Malformed)?;
        let key = VerifyingKey::from_bytes(&receipt.prober.0).map_err(|_| ReceiptError::BadSignature)?;
        let signature = self.signature.as_slice().try_into().map_err(|_| ReceiptError::BadSignature)?;
        key.verify(&[RECEIPT_CONTEXT, &self.bytes].concat(), &signature).map_err(|_| ReceiptError::BadSignature)?;
        Ok(receipt)
    }

    /// The id by which the next receipt names this one.
    pub fn id(&self) -> ReceiptId {
        let digest = Sha256::digest(&self.bytes);
        std::array::from_fn(|place| digest[place])
    }
}

/// Why a member refuses to probe for a steward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Declined {
    /// It does not fetch at the moment (fenced, starting, stopping or at a limit).
    #[error("it fetches nothing at the moment")]
    HeldBack,
    /// The address does not lie in the subnet.
    #[error("the address does not lie in the subnet")]
    OutsideTheSubnet,
    /// Its configuration denies the host.
    #[error("its configuration denies the host")]
    Denied,
    /// The sender is neither one of the subnet's stewards nor the owner of a covering subnet.
    #[error("the requester is no steward of the subnet")]
    NoSteward,
    /// The subnet has an owner, so there is nothing to find out.
    #[error("the subnet has an owner")]
    Owned,
    /// The receipts of the earlier probes do not form a chain.
    #[error("the receipts do not form a chain")]
    BrokenChain,
    /// The receipts leave out probes that are known to have been made.
    #[error("the receipts leave out probes that were made")]
    ChainTooShort,
    /// The receipts contradict those that are known: the procedure was run twice.
    #[error("the receipts contradict others of the same subnet")]
    ForkedChain,
    /// It has probed this subnet already and answered.
    #[error("it has probed this subnet already")]
    ProbedAlready,
    /// The subnet has reached its limit of contacts.
    #[error("the subnet's contact budget for thirty days is used up")]
    SubnetBudget,
    /// The block of addresses around it has reached its limit of contacts.
    #[error("the contact budget of the address block for thirty days is used up")]
    BlockBudget,
    /// Its table of probed subnets is full.
    #[error("its table of contacts is full")]
    BookFull,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_opens_with_its_probers_signature_only_and_is_small() {
        let key = SigningKey::from_bytes(&[3; 32]);
        let prober = AccessPoint(key.verifying_key().to_bytes());
        let receipt = Receipt {
            subnet: "192.0.2.0/24".parse().unwrap(),
            address: "192.0.2.7:443".parse().unwrap(),
            prober,
            steward: AccessPoint([2; 32]),
            sequence: 3,
            before: [5; 16],
            rtt_us: Some(41_000),
            at: WallTime(1_790_000_000_000),
        };
        let signed = SignedReceipt::sign(&receipt, &key);
        assert_eq!(signed.open(), Ok(receipt.clone()));
        assert!(postcard::to_stdvec(&signed).unwrap().len() < 200, "fifteen of them go along with a question");
        let other = SigningKey::from_bytes(&[4; 32]);
        assert_eq!(SignedReceipt::sign(&receipt, &other).open(), Err(ReceiptError::BadSignature));
        // A claim's signature cannot pass for a receipt's: the contexts differ.
        let bare = SignedReceipt { signature: key.sign(&signed.bytes).to_bytes().to_vec(), ..signed.clone() };
        assert_eq!(bare.open(), Err(ReceiptError::BadSignature));
        assert_ne!(signed.id(), SignedReceipt::sign(&Receipt { sequence: 4, ..receipt }, &key).id());
    }
}
