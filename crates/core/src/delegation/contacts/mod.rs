//! Record of contacts by probes, which decides whether a subnet may be contacted by one more.
//!
//! It holds all contacts that this access point made or was shown, and keeps them for thirty days, restarts included.
//!
//! The member that asks us shows the receipts of the probes that came before. So one who is honest cannot exceed the subnet's budget even
//! by mistake, and one who hides receipts is stopped by each member by itself: none probes a subnet twice in thirty days, none passes
//! the budget by what it knows, and none accepts receipts that leave out or contradict what it has seen.
//!
//! Windows are wall time, because they outlast a start of the machine. A clock that is set forward by a month forgets; one that is
//! set back only remembers longer.

pub mod chain;

use chain::Chain;
use nearcrawl_model::{
    access_point::{AccessPoint, ShortId},
    receipt::{Declined, MAX_CONTACTS, ReceiptId, SignedReceipt},
    subnet::Subnet,
    time::{Millis, WallTime},
};
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::Hasher,
    net::IpAddr,
};

/// For how long a contact counts.
pub const WINDOW: Millis = 30 * 86_400_000;

/// Contacts by probes that a block of addresses (/24, /48) may get: it may hold many small subnets.
pub const MAX_IN_BLOCK: usize = 2 * MAX_CONTACTS;

/// Subnets whose contacts are remembered; beyond that none is probed until some are forgotten.
pub const MAX_SUBNETS: usize = 100_000;

/// Whole chains that are kept in memory for stewards who come later.
const MAX_CHAINS: usize = 4_096;

/// Contacts of one subnet that are noted from chains. After [`MAX_CONTACTS`] it is not contacted; the others are kept so that it is not
/// either when the first ones have left the window. Whoever makes up more receipts than that gains nothing by them.
const MAX_NOTED: usize = 4 * MAX_CONTACTS;

/// The same for a block.
const MAX_NOTED_IN_BLOCK: usize = 4 * MAX_IN_BLOCK;

/// The record is stored in so many pages, so that one contact costs little writing.
pub const PAGES: u8 = 64;

/// What is known of the contacts of one subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// Who contacted it, and when.
    contacts: Vec<(ShortId, WallTime)>,
    /// Whether one of them is ours.
    mine: bool,
    /// The last receipt of the longest chain seen, and its place.
    head: Option<(u16, ReceiptId)>,
}

/// The record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contacts {
    entries: BTreeMap<Subnet, Entry>,
    /// When each block was contacted.
    blocks: BTreeMap<Subnet, Vec<WallTime>>,
    chains: BTreeMap<Subnet, Vec<SignedReceipt>>,
    dirty: BTreeSet<u8>,
}

impl Entry {
    fn forget_before(&mut self, then: WallTime) {
        self.contacts.retain(|(_, at)| *at > then);
        if self.contacts.is_empty() {
            *self = Entry::default();
        }
    }
}

/// The block of addresses that a subnet's contacts count against.
fn block_of(subnet: &Subnet) -> Subnet {
    let first = subnet.first();
    Subnet::around(first, subnet.length().min(if first.is_ipv4() { 24 } else { 48 }))
}

fn page_of(subnet: &Subnet) -> u8 {
    let mut hasher = SipHasher13::new();
    match subnet.first() {
        IpAddr::V4(first) => hasher.write(&first.octets()),
        IpAddr::V6(first) => hasher.write(&first.octets()),
    }
    hasher.write_u8(subnet.length());
    (hasher.finish() % u64::from(PAGES)) as u8
}

fn window_before(now: WallTime) -> WallTime {
    WallTime(now.0.saturating_sub(WINDOW))
}

impl Contacts {
    /// Takes in what [`Contacts::page`] gave in a previous process. What cannot be read counts as absent.
    pub(crate) fn recall(&mut self, page: &[u8], now: WallTime) {
        let entries: Vec<(Subnet, Entry)> = postcard::from_bytes(page).unwrap_or_default();
        for (subnet, mut entry) in entries {
            entry.forget_before(window_before(now));
            if !entry.contacts.is_empty() && self.entries.len() < MAX_SUBNETS {
                self.blocks.entry(block_of(&subnet)).or_default().extend(entry.contacts.iter().map(|(_, at)| *at));
                self.entries.insert(subnet, entry);
            }
        }
    }

    /// Pages that changed since they were last asked for, as they are to be stored.
    pub(crate) fn changed_pages(&mut self) -> Vec<(u8, Vec<u8>)> {
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().map(|page| (page, self.page(page))).collect()
    }

    fn page(&self, page: u8) -> Vec<u8> {
        let entries: Vec<_> = self.entries.iter().filter(|(subnet, _)| page_of(subnet) == page).collect();
        #[expect(clippy::expect_used, reason = "postcard writes any book into a growing vector")]
        postcard::to_stdvec(&entries).expect("a page always encodes")
    }

    /// Whether `me` may probe `subnet` once more after the probes that `chain` tells. If so, the contact counts from now on. What the
    /// chain tells is noted in any case.
    pub(crate) fn take(&mut self, me: AccessPoint, subnet: Subnet, chain: &Chain, most: usize, now: WallTime) -> Result<(), Declined> {
        self.forget_old(&subnet, now);
        if !self.entries.contains_key(&subnet) && self.entries.len() >= MAX_SUBNETS {
            return Err(Declined::BookFull);
        }
        let head = self.entries.get(&subnet).and_then(|entry| entry.head);
        self.note(subnet, chain, now);
        if let Some((place, id)) = head {
            match chain.id_at(usize::from(place)) {
                None => return Err(Declined::ChainTooShort),
                Some(shown) if shown != id => return Err(Declined::ForkedChain),
                Some(_) => {}
            }
        }
        let entry = self.entries.entry(subnet).or_default();
        if entry.mine || chain.receipts().any(|receipt| receipt.prober == me) {
            return Err(Declined::ProbedAlready);
        }
        if entry.contacts.len() >= most.min(MAX_CONTACTS) {
            return Err(Declined::SubnetBudget);
        }
        let block = self.blocks.entry(block_of(&subnet)).or_default();
        if block.len() >= MAX_IN_BLOCK {
            return Err(Declined::BlockBudget);
        }
        block.push(now);
        entry.mine = true;
        entry.contacts.push((me.into(), now));
        self.dirty.insert(page_of(&subnet));
        Ok(())
    }

    /// Whether `me` may contact `subnet` once more of its own accord: no search asks for it, so no chain leads to it. If so, the contact counts
    /// from now on. A subnet may be contacted several times so, for several servers in it; it is no probe of a search, so it does not keep this
    /// member from taking part in one.
    pub(crate) fn take_alone(&mut self, me: AccessPoint, subnet: Subnet, most: usize, now: WallTime) -> Result<(), Declined> {
        self.forget_old(&subnet, now);
        if !self.entries.contains_key(&subnet) && self.entries.len() >= MAX_SUBNETS {
            return Err(Declined::BookFull);
        }
        if self.entries.get(&subnet).is_some_and(|entry| entry.contacts.len() >= most.min(MAX_CONTACTS)) {
            return Err(Declined::SubnetBudget);
        }
        let block = self.blocks.entry(block_of(&subnet)).or_default();
        if block.len() >= MAX_IN_BLOCK {
            return Err(Declined::BlockBudget);
        }
        block.push(now);
        self.entries.entry(subnet).or_default().contacts.push((me.into(), now));
        self.dirty.insert(page_of(&subnet));
        Ok(())
    }

    /// The chain as it is now, checked before: the member that asks us next has to show it.
    pub(crate) fn extended(&mut self, subnet: Subnet, chain: &Chain, signed: &[SignedReceipt], now: WallTime) {
        self.note(subnet, chain, now);
        let entry = self.entries.entry(subnet).or_default();
        let longer = chain.len() > entry.head.map_or(0, |(place, _)| usize::from(place) + 1);
        if longer && !entry.contacts.is_empty() {
            entry.head = Some((chain.len() as u16 - 1, chain.last_id()));
            self.dirty.insert(page_of(&subnet));
            if self.chains.len() >= MAX_CHAINS && !self.chains.contains_key(&subnet) {
                self.chains.pop_first();
            }
            self.chains.insert(subnet, signed.to_vec());
        }
    }

    /// The receipts that are remembered of a subnet, for a steward who does not know them.
    pub(crate) fn chain(&self, subnet: &Subnet) -> Vec<SignedReceipt> {
        self.chains.get(subnet).cloned().unwrap_or_default()
    }

    /// Subnets with contacts in the window.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    #[cfg(test)]
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The most contacts that one subnet had.
    pub(crate) fn most(&self) -> usize {
        self.entries.values().map(|entry| entry.contacts.len()).max().unwrap_or(0)
    }

    /// Forgets what is older than the window.
    pub(crate) fn tidy(&mut self, now: WallTime) {
        let then = window_before(now);
        for (subnet, entry) in &mut self.entries {
            let before = entry.contacts.len();
            entry.forget_before(then);
            if entry.contacts.len() != before {
                self.dirty.insert(page_of(subnet));
            }
        }
        self.entries.retain(|_, entry| !entry.contacts.is_empty());
        self.chains.retain(|subnet, _| self.entries.contains_key(subnet));
        for times in self.blocks.values_mut() {
            times.retain(|at| *at > then);
        }
        self.blocks.retain(|_, times| !times.is_empty());
    }

    fn forget_old(&mut self, subnet: &Subnet, now: WallTime) {
        let then = window_before(now);
        if let Some(entry) = self.entries.get_mut(subnet) {
            entry.forget_before(then);
            if entry.contacts.is_empty() {
                self.entries.remove(subnet);
                self.chains.remove(subnet);
            }
        }
        if let Some(times) = self.blocks.get_mut(&block_of(subnet)) {
            times.retain(|at| *at > then);
        }
    }

    /// Counts the contacts that a chain tells. A prober's clock may be wrong: what it dates in the future happened now.
    fn note(&mut self, subnet: Subnet, chain: &Chain, now: WallTime) {
        let then = window_before(now);
        for receipt in chain.receipts() {
            let (who, at) = (ShortId::from(receipt.prober), receipt.at.min(now));
            let known = self.entries.get(&subnet).is_some_and(|entry| entry.contacts.iter().any(|(known, _)| *known == who));
            let full = !self.entries.contains_key(&subnet) && self.entries.len() >= MAX_SUBNETS;
            if at > then && !known && !full {
                let (entry, block) = (self.entries.entry(subnet).or_default(), self.blocks.entry(block_of(&subnet)).or_default());
                if block.len() < MAX_NOTED_IN_BLOCK {
                    block.push(at);
                }
                if entry.contacts.len() >= MAX_NOTED {
                    continue;
                }
                entry.contacts.push((who, at));
                self.dirty.insert(page_of(&subnet));
            }
        }
    }
}

#[cfg(test)]
mod tests;
