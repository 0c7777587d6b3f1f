//! Rendezvous hashing of keys to live members: the first of the highest-random-weight order serves, the next ones are its deputies.
//!
//! When a member goes, only the keys that it served move; when one comes, it takes an equal share from every member.
//! The weights are part of the protocol: all members must compute the same ones.

use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet};
use siphasher::sip::SipHasher24;
use std::{cmp::Reverse, hash::Hasher};

/// The hash of a key's text (a host name, a subnet), the same at every member and in every version.
pub(crate) fn key_hash(text: &str) -> u64 {
    let mut hasher = SipHasher24::new_with_keys(0x6e65_6172_6372_6177, 0x6c20_7374_6577_6172);
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// What `member` weighs for a key.
pub(crate) fn weight(key_hash: u64, member: &AccessPoint) -> u64 {
    let mut hasher = SipHasher24::new_with_keys(key_hash, 0x7765_6967_6874_2031);
    hasher.write(&member.0);
    hasher.finish()
}

/// All of `live`, in the order in which they serve the key.
pub(crate) fn order(key_hash: u64, live: &[AccessPoint]) -> Vec<AccessPoint> {
    let mut weighed: Vec<_> = live.iter().map(|member| (Reverse(weight(key_hash, member)), *member)).collect();
    weighed.sort_unstable();
    weighed.into_iter().map(|(_, member)| member).collect()
}

/// These members, in the order in which they serve a subnet as its stewards.
pub fn stewards_of(subnet: &Subnet, live: &[AccessPoint]) -> Vec<AccessPoint> {
    order(key_hash(&subnet.to_string()), live)
}

/// Who serves the key: the first of [`order`]; none if no member lives.
pub(crate) fn steward(key_hash: u64, live: &[AccessPoint]) -> Option<AccessPoint> {
    live.iter().copied().min_by_key(|member| (Reverse(weight(key_hash, member)), *member))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn members(count: u8) -> Vec<AccessPoint> {
        (1..=count).map(|number| AccessPoint([number; 32])).collect()
    }

    #[test]
    fn the_order_is_the_same_in_every_version() {
        let numbers = |key: &str| order(key_hash(key), &members(6)).iter().map(|member| member.0[0]).collect::<Vec<_>>();
        // Computed by an independent SipHash-2-4 that was checked against its authors' vectors.
        assert_eq!(key_hash("example.org"), 0xe06d_64fa_ece0_6c54);
        assert_eq!(numbers("example.org"), [1, 6, 2, 4, 5, 3]);
        assert_eq!(numbers("192.0.2.0/24"), [3, 2, 4, 1, 5, 6]);
    }

    #[test]
    fn the_steward_is_the_first_of_the_order_whatever_the_order_of_the_list() {
        let mut live = members(9);
        for key in 0..200 {
            let first = order(key, &live)[0];
            assert_eq!(steward(key, &live), Some(first));
            live.rotate_left(1);
        }
        assert_eq!(steward(1, &[]), None);
    }

    #[test]
    fn a_death_moves_only_the_keys_of_the_dead() {
        let all = members(8);
        let survivors: Vec<_> = all.iter().copied().filter(|member| member.0[0] != 3).collect();
        for key in (0..2_000).map(|number| key_hash(&format!("host{number}.example"))) {
            let before = order(key, &all);
            let after = steward(key, &survivors).unwrap();
            let expected = if before[0].0[0] == 3 { before[1] } else { before[0] };
            assert_eq!(after, expected, "the first deputy takes over, nothing else moves");
        }
    }

    #[test]
    fn everybody_serves_an_equal_share() {
        let live = members(5);
        let mut shares = BTreeMap::<AccessPoint, u32>::new();
        for number in 0..10_000 {
            *shares.entry(steward(key_hash(&format!("host{number}.example")), &live).unwrap()).or_default() += 1;
        }
        assert_eq!(shares.len(), 5);
        // 2,000 each, standard deviation 40.
        assert!(shares.values().all(|share| (1_800..2_200).contains(share)), "{shares:?}");
    }
}
