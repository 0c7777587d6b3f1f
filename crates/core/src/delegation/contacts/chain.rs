//! Checks chains of receipts: each by a member of its own, each after the one before, all about one subnet.

use nearcrawl_model::{
    access_point::AccessPoint,
    receipt::{MAX_CONTACTS, Receipt, ReceiptId, SignedReceipt},
    subnet::Subnet,
};
use std::collections::BTreeSet;

/// Why a chain of receipts is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BrokenChain {
    /// Longer than any procedure is.
    #[error("more than {MAX_CONTACTS} receipts")]
    TooLong,
    /// One cannot be decoded, or is not signed by its prober.
    #[error("receipt {0} is forged")]
    Forged(usize),
    /// One is about another subnet, or an address outside.
    #[error("receipt {0} is of another subnet or procedure")]
    OtherSubnet(usize),
    /// One does not come after the one before it.
    #[error("receipt {0} does not follow the one before it")]
    OutOfSequence(usize),
    /// One is by a prober that is no member.
    #[error("receipt {0} is by no member")]
    Stranger(usize),
    /// Two are by the same member.
    #[error("receipt {0} is by a member that was asked before")]
    Twice(usize),
}

/// Receipts that hold together, opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    receipts: Vec<(Receipt, ReceiptId)>,
}

impl Chain {
    /// Checks a chain about `subnet`; `is_member` knows whose receipts count.
    pub(crate) fn open(subnet: Subnet, signed: &[SignedReceipt], is_member: impl Fn(&AccessPoint) -> bool) -> Result<Chain, BrokenChain> {
        if signed.len() > MAX_CONTACTS {
            return Err(BrokenChain::TooLong);
        }
        let mut chain = Chain::default();
        let mut probers = BTreeSet::new();
        for (place, signed) in signed.iter().enumerate() {
            let receipt = signed.open().map_err(|_| BrokenChain::Forged(place))?;
            if receipt.subnet != subnet || !subnet.contains(receipt.address.ip()) {
                return Err(BrokenChain::OtherSubnet(place));
            }
            if usize::from(receipt.sequence) != place || receipt.before != chain.last_id() {
                return Err(BrokenChain::OutOfSequence(place));
            }
            if !is_member(&receipt.prober) {
                return Err(BrokenChain::Stranger(place));
            }
            if !probers.insert(receipt.prober) {
                return Err(BrokenChain::Twice(place));
            }
            chain.receipts.push((receipt, signed.id()));
        }
        Ok(chain)
    }

    /// What the next receipt has to name: the last one, or zeros.
    pub(crate) fn last_id(&self) -> ReceiptId {
        self.receipts.last().map_or(ReceiptId::default(), |(_, id)| *id)
    }

    /// How many probes it tells.
    pub(crate) fn len(&self) -> usize {
        self.receipts.len()
    }

    /// Whether it tells none.
    pub(crate) fn is_empty(&self) -> bool {
        self.receipts.is_empty()
    }

    /// The receipts, the first probe first.
    pub(crate) fn receipts(&self) -> impl Iterator<Item = &Receipt> {
        self.receipts.iter().map(|(receipt, _)| receipt)
    }

    /// The receipt at a place, by its name.
    pub(crate) fn id_at(&self, place: usize) -> Option<ReceiptId> {
        self.receipts.get(place).map(|(_, id)| *id)
    }
}
