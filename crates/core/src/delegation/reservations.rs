//! Reservations of addresses without an owner.
//!
//! The steward of such an address names its subnet once, and sticks to it until a member owns it.

use crate::delegation::rounds::MAX_QUEUED;
use nearcrawl_model::{
    subnet::Subnet,
    time::{Millis, Moment},
};
use std::{collections::BTreeMap, net::IpAddr};

/// How long the member that settles a subnet may take to find an owner before it is reminded.
pub(super) const SETTLEMENT_TIMEOUT: Millis = 5_000;

/// For so long an address's steward sticks to the subnet for which it reserved the address; the member that waits for an owner asks much
/// more often.
const RESERVATION_HOLDS: Millis = 600_000;

/// An address without an owner that is reserved for one subnet.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    /// The subnet that is being settled.
    subnet: Subnet,
    /// When its steward was last told.
    told: Option<Moment>,
    /// When a member last asked for an owner.
    wanted: Moment,
}

/// Addresses without an owner: those whose steward we are, and those whose steward we asked.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    reserved: BTreeMap<IpAddr, Reservation>,
    /// When the steward of an address was last asked for an owner, by the subnet that we would settle.
    asked: BTreeMap<Subnet, Moment>,
}

impl Reservations {
    /// Reserves an address for this subnet, unless it is reserved for another one already. Returns for which; none if there is no room.
    pub(super) fn reserve(&mut self, address: IpAddr, subnet: Subnet, now: Moment) -> Option<Subnet> {
        if self.reserved.len() >= MAX_QUEUED {
            self.forget_unwanted(now);
            if self.reserved.len() >= MAX_QUEUED && !self.reserved.contains_key(&address) {
                return None;
            }
        }
        let reservation = self.reserved.entry(address).or_insert(Reservation { subnet, told: None, wanted: now });
        reservation.wanted = now;
        Some(reservation.subnet)
    }

    /// Whether the steward of a reserved address's subnet is to be told now: true at most once in [`SETTLEMENT_TIMEOUT`].
    pub(super) fn should_tell(&mut self, address: IpAddr, now: Moment) -> bool {
        let Some(reservation) = self.reserved.get_mut(&address) else { return false };
        let due = reservation.told.is_none_or(|told| now.since(told) >= SETTLEMENT_TIMEOUT);
        if due {
            reservation.told = Some(now);
        }
        due
    }

    /// Whether the steward of an address is to be asked now: true at most once in [`SETTLEMENT_TIMEOUT`] for each subnet.
    pub(super) fn should_ask(&mut self, subnet: Subnet, now: Moment) -> bool {
        let due = self.asked.get(&subnet).is_none_or(|at| now.since(*at) >= SETTLEMENT_TIMEOUT);
        if due {
            self.asked.insert(subnet, now);
        }
        due
    }

    /// A claim decides whose the addresses of its subnet are.
    pub(super) fn decided(&mut self, claimed: &Subnet) {
        self.asked.retain(|asked, _| !asked.covers(claimed) && !claimed.covers(asked));
        self.reserved.retain(|address, _| !claimed.contains(*address));
    }

    /// Forgets reservations that no member has asked for in a while.
    pub(super) fn forget_unwanted(&mut self, now: Moment) {
        self.reserved.retain(|_, reservation| now.since(reservation.wanted) < RESERVATION_HOLDS);
    }

    /// The subnets are others from now on: the stewards of addresses may be asked at once.
    pub(super) fn forget_asked(&mut self) {
        self.asked.clear();
    }

    /// Forgets whom we asked if that is too much to remember.
    pub(super) fn limit_asked(&mut self) {
        if self.asked.len() > MAX_QUEUED {
            self.asked.clear();
        }
    }

    /// How many addresses are reserved.
    pub(crate) fn reserved(&self) -> usize {
        self.reserved.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(text: &str) -> Subnet {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_stays_reserved_for_one_subnet_while_anybody_wants_an_owner() {
        let mut reservations = Reservations::default();
        let address: IpAddr = "10.1.0.1".parse().unwrap();
        assert_eq!(reservations.reserve(address, subnet("10.1.0.0/16"), Moment(0)), Some(subnet("10.1.0.0/16")));
        let another = subnet("10.1.0.0/24");
        assert_eq!(reservations.reserve(address, another, Moment(RESERVATION_HOLDS - 1)), Some(subnet("10.1.0.0/16")));
        reservations.forget_unwanted(Moment(2 * RESERVATION_HOLDS - 2));
        assert_eq!(reservations.reserved(), 1, "it was wanted again in between");
        reservations.forget_unwanted(Moment(2 * RESERVATION_HOLDS - 1));
        assert_eq!(reservations.reserve(address, another, Moment(2 * RESERVATION_HOLDS)), Some(another));
    }

    #[test]
    fn stewards_of_subnets_and_of_addresses_are_reminded_only_after_a_while() {
        let mut reservations = Reservations::default();
        let (address, around): (IpAddr, _) = ("10.1.0.1".parse().unwrap(), subnet("10.1.0.0/16"));
        assert!(!reservations.should_tell(address, Moment(0)), "nothing is reserved");
        reservations.reserve(address, around, Moment(0));
        let told = [0, 1, SETTLEMENT_TIMEOUT - 1, SETTLEMENT_TIMEOUT].map(|at| reservations.should_tell(address, Moment(at)));
        assert_eq!(told, [true, false, false, true]);
        let asked = [0, SETTLEMENT_TIMEOUT - 1, SETTLEMENT_TIMEOUT].map(|at| reservations.should_ask(around, Moment(at)));
        assert_eq!(asked, [true, false, true]);
        reservations.decided(&subnet("10.1.0.0/24"));
        assert_eq!(reservations.reserved(), 0, "a member owns it");
        assert!(reservations.should_ask(around, Moment(SETTLEMENT_TIMEOUT)), "what is asked about a larger subnet is another question now");
    }
}
