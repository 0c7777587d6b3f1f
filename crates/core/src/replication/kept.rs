//! Disk space that the journals of each owner take here.
//!
//! Copies are kept for others, so each owner has a quota here. What is counted is all rows of a subnet's journals, whoever wrote them, for
//! the owner that the map names: if it changes, so does whose quota they take.

use nearcrawl_model::{access_point::AccessPoint, ids::Ticket, subnet::Subnet};
use std::collections::BTreeMap;

/// The journals on our disk, by subnet and by owner. One entry for each subnet with journals; a subnet with rows was claimed, so the limit of
/// claims limits this as well.
#[derive(Debug, Default)]
pub(super) struct Kept {
    subnets: BTreeMap<Subnet, (AccessPoint, u64)>,
    owners: BTreeMap<AccessPoint, u64>,
    /// Rows that are being stored for others and count already.
    arriving: BTreeMap<Ticket, (AccessPoint, u64)>,
}

impl Kept {
    /// The journals of a subnet grew by so many bytes, or shrank.
    pub(super) fn resized(&mut self, subnet: Subnet, owner: AccessPoint, growth: i64) {
        let bytes = self.subnets.get(&subnet).map_or(0, |(_, bytes)| *bytes).saturating_add_signed(growth);
        self.set(subnet, owner, bytes);
    }

    /// A subnet has another owner.
    pub(super) fn owned_by(&mut self, subnet: Subnet, owner: AccessPoint) {
        if let Some((_, bytes)) = self.subnets.get(&subnet) {
            self.set(subnet, owner, *bytes);
        }
    }

    fn set(&mut self, subnet: Subnet, owner: AccessPoint, bytes: u64) {
        if let Some((before, bytes)) = self.subnets.remove(&subnet) {
            self.take(before, bytes);
        }
        if bytes > 0 {
            self.subnets.insert(subnet, (owner, bytes));
            let sum = self.owners.entry(owner).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }

    fn take(&mut self, owner: AccessPoint, bytes: u64) {
        if let Some(sum) = self.owners.get_mut(&owner) {
            *sum = sum.saturating_sub(bytes);
            if *sum == 0 {
                self.owners.remove(&owner);
            }
        }
    }

    /// Rows of this owner are about to be stored.
    pub(super) fn arrive(&mut self, ticket: Ticket, owner: AccessPoint, bytes: u64) {
        self.arriving.insert(ticket, (owner, bytes));
        let sum = self.owners.entry(owner).or_default();
        *sum = sum.saturating_add(bytes);
    }

    /// They are stored: what they add to the journals is told besides.
    pub(super) fn arrived(&mut self, ticket: Ticket) {
        if let Some((owner, bytes)) = self.arriving.remove(&ticket) {
            self.take(owner, bytes);
        }
    }

    /// Whether there are journals of a subnet on our disk.
    pub(super) fn has(&self, subnet: &Subnet) -> bool {
        self.subnets.contains_key(subnet)
    }

    /// What the journals of an owner's subnets take, in bytes.
    pub(super) fn of(&self, owner: &AccessPoint) -> u64 {
        self.owners.get(owner).copied().unwrap_or(0)
    }

    /// The most that the journals of any owner but this one take, in bytes.
    pub(super) fn most_but(&self, me: &AccessPoint) -> u64 {
        self.owners.iter().filter(|(owner, _)| *owner != me).map(|(_, bytes)| *bytes).max().unwrap_or(0)
    }
}
