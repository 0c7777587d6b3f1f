//! Identity of an access point as a member: its key, how often it has started, and where it can be reached.

use nearcrawl_model::access_point::AccessPoint;
use serde::{Deserialize, Serialize};

/// How many addresses a member may announce.
pub(crate) const MAX_ADDRESSES: usize = 4;

/// The longest address, in bytes of its text.
pub(crate) const MAX_ADDRESS: usize = 128;

/// After so many renewals the incarnation leaps: by 1, 2, 4 and so on, at most so often in a process. A million starts are caught up with.
const RENEWALS_A_LEAP: u32 = 4;
const MAX_LEAPS: u32 = 20;

/// An access point, in one of its processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WireMember")]
pub struct Member {
    /// Its key.
    pub access_point: AccessPoint,
    /// How often it has started; kept on disk, one more at each start. More if others know more starts than its disk.
    pub incarnation: u64,
    /// How often it renewed itself within this process: after the others wrongly gave it up, or when its addresses changed.
    pub renewal: u32,
    /// Where it can be reached, as multiaddr texts, at most [`MAX_ADDRESSES`]; they spread with the membership itself.
    pub addresses: Vec<String>,
}

/// A member as it comes from the wire, not yet checked.
#[derive(Deserialize)]
struct WireMember {
    access_point: AccessPoint,
    incarnation: u64,
    renewal: u32,
    addresses: Vec<String>,
}

/// Why a member that came over the wire is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MemberError {
    /// More addresses than [`MAX_ADDRESSES`].
    #[error("the member announces {0} addresses; at most {MAX_ADDRESSES} are allowed")]
    TooManyAddresses(usize),
    /// An address longer than [`MAX_ADDRESS`].
    #[error("the member announces an address of {0} bytes; at most {MAX_ADDRESS} are allowed")]
    AddressTooLong(usize),
}

impl TryFrom<WireMember> for Member {
    type Error = MemberError;

    fn try_from(wire: WireMember) -> Result<Self, MemberError> {
        if wire.addresses.len() > MAX_ADDRESSES {
            return Err(MemberError::TooManyAddresses(wire.addresses.len()));
        }
        if let Some(long) = wire.addresses.iter().find(|address| address.len() > MAX_ADDRESS) {
            return Err(MemberError::AddressTooLong(long.len()));
        }
        let WireMember { access_point, incarnation, renewal, addresses } = wire;
        Ok(Member { access_point, incarnation, renewal, addresses })
    }
}

impl Member {
    /// A member at the start of its process. Addresses that are too long or too many are left out: they could not travel.
    pub fn new(access_point: AccessPoint, incarnation: u64, addresses: Vec<String>) -> Member {
        let addresses = addresses.into_iter().filter(|address| address.len() <= MAX_ADDRESS).take(MAX_ADDRESSES).collect();
        Member { access_point, incarnation, renewal: 0, addresses }
    }
}

impl foca::Identity for Member {
    type Addr = AccessPoint;

    fn renew(&self) -> Option<Self> {
        // The incarnation is on disk and not ours to count up here: the next start would use the same number again. But who lost its disk
        // counts from one, and the others know a later process, which no renewal of this one beats: then they call it back again and again.
        let renewal = self.renewal.wrapping_add(1);
        let leaps = renewal / RENEWALS_A_LEAP;
        let leap = if renewal.is_multiple_of(RENEWALS_A_LEAP) && leaps <= MAX_LEAPS { 1 << (leaps - 1) } else { 0 };
        Some(Member { incarnation: self.incarnation.saturating_add(leap), renewal, ..self.clone() })
    }

    fn addr(&self) -> AccessPoint {
        self.access_point
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        (self.incarnation, self.renewal) > (adversary.incarnation, adversary.renewal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foca::Identity;

    fn member(incarnation: u64) -> Member {
        Member::new(AccessPoint([7; 32]), incarnation, vec!["/ip4/127.0.0.1/tcp/4001".to_owned()])
    }

    #[test]
    fn a_later_life_and_a_renewal_win() {
        assert!(member(2).win_addr_conflict(&member(1)));
        assert!(!member(1).win_addr_conflict(&member(2)));
        let renewed = member(1).renew().unwrap();
        assert!(renewed.win_addr_conflict(&member(1)), "a member that was given up wrongly comes back");
        assert!(member(2).win_addr_conflict(&renewed), "a restart beats the first renewals of the life before");
    }

    #[test]
    fn who_lost_its_disk_is_believed_after_some_renewals_and_nobody_can_have_it_count_for_ever() {
        let (mut member, known) = (member(1), Member { renewal: 3, ..member(700) });
        let mut renewals = 0;
        while !member.win_addr_conflict(&known) {
            let renewed = member.renew().unwrap();
            assert!(renewed.win_addr_conflict(&member));
            (member, renewals) = (renewed, renewals + 1);
        }
        assert_eq!(renewals, 40);
        (0..1_000).for_each(|_| member = member.renew().unwrap());
        assert_eq!(member.incarnation, 1 << MAX_LEAPS);
    }

    #[test]
    fn too_many_or_too_long_addresses_do_not_come_in() {
        let good = postcard::to_stdvec(&member(1)).unwrap();
        assert_eq!(postcard::from_bytes::<Member>(&good).unwrap(), member(1));
        let many = Member { addresses: vec!["/x".to_owned(); MAX_ADDRESSES + 1], ..member(1) };
        assert!(postcard::from_bytes::<Member>(&postcard::to_stdvec(&many).unwrap()).is_err());
        let long = Member { addresses: vec!["x".repeat(MAX_ADDRESS + 1)], ..member(1) };
        assert!(postcard::from_bytes::<Member>(&postcard::to_stdvec(&long).unwrap()).is_err());
        assert_eq!(Member::new(AccessPoint([1; 32]), 1, long.addresses).addresses, Vec::<String>::new());
    }
}
