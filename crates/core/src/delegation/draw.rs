//! Draws a member for a subnet by a hash of the subnet and of every member, where nearness does not count.
//!
//! Whoever draws for the same subnet from the same members draws the same one (rendezvous hashing): each member with the same chance. If a
//! member goes, only the subnets for which it was drawn are drawn anew, and the next in their order is drawn.

use super::{Step, Verdict};
use crate::membership::rendezvous;
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet};

/// All of `members`, in the order in which they are drawn for a subnet.
///
/// The hash is another one than that by which a subnet has its steward: the steward draws, and is not drawn more often than others.
pub(crate) fn drawn_in_order(subnet: &Subnet, members: &[AccessPoint]) -> Vec<AccessPoint> {
    rendezvous::order(key_of(subnet), members)
}

/// Who of `members` is drawn for a subnet; none if there are none.
pub fn drawn(subnet: &Subnet, members: &[AccessPoint]) -> Option<AccessPoint> {
    rendezvous::steward(key_of(subnet), members)
}

/// One delegation: who is drawn gets the subnet, and nobody is asked to probe it. `live` is never empty.
pub(crate) fn settle(subnet: &Subnet, live: &[AccessPoint]) -> Step {
    let owner = drawn(subnet, live).unwrap_or(live[0]);
    Step::Settle(Verdict { owner, rtt_us: None, runner_up: None, probes: 0, by_load: false })
}

fn key_of(subnet: &Subnet) -> u64 {
    rendezvous::key_hash(&format!("drawn owner of {subnet}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeMap, net::IpAddr};

    const SUBNETS: u32 = 10_000;

    fn members(count: u8) -> Vec<AccessPoint> {
        (1..=count).map(|number| AccessPoint([number; 32])).collect()
    }

    fn subnets() -> impl Iterator<Item = Subnet> {
        (0..SUBNETS).map(|number| Subnet::around(IpAddr::from((0x1400_0000 + number * 256).to_be_bytes()), 24))
    }

    /// How far these counts are from equal ones, as chi square.
    fn chi_square(counts: impl Iterator<Item = u32> + Clone) -> f64 {
        let expected = f64::from(counts.clone().sum::<u32>()) / counts.clone().count() as f64;
        counts.map(|count| (f64::from(count) - expected).powi(2) / expected).sum()
    }

    #[test]
    fn each_of_seven_members_is_drawn_with_the_same_chance() {
        let all = members(7);
        let mut shares: BTreeMap<AccessPoint, u32> = all.iter().map(|who| (*who, 0)).collect();
        for subnet in subnets() {
            *shares.get_mut(&drawn(&subnet, &all).unwrap()).unwrap() += 1;
        }
        // 1,429 each, standard deviation 35; with six degrees of freedom one uniform draw in a thousand has more than 22.46.
        let chi_square = chi_square(shares.values().copied());
        assert!(chi_square < 22.46, "{chi_square}: {shares:?}");
        assert!(shares.values().all(|share| (1_290..1_570).contains(share)), "{shares:?}");
    }

    #[test]
    fn who_is_drawn_does_not_depend_on_who_draws() {
        let all = members(7);
        let mut pairs: BTreeMap<(AccessPoint, AccessPoint), u32> = BTreeMap::new();
        for who in &all {
            pairs.extend(all.iter().map(|other| ((*who, *other), 0)));
        }
        for subnet in subnets() {
            let steward = rendezvous::steward(rendezvous::key_hash(&subnet.to_string()), &all).unwrap();
            *pairs.get_mut(&(steward, drawn(&subnet, &all).unwrap())).unwrap() += 1;
        }
        // 49 pairs: 48 degrees of freedom, of which one uniform draw in a thousand has more than 84.04.
        let chi_square = chi_square(pairs.values().copied());
        assert!(chi_square < 84.04, "{chi_square}");
    }

    #[test]
    fn everybody_draws_the_same_in_whatever_order_it_knows_the_members() {
        let mut known = members(7);
        for subnet in subnets().take(200) {
            let first = drawn(&subnet, &members(7));
            known.rotate_left(1);
            assert_eq!((drawn(&subnet, &known), drawn_in_order(&subnet, &known).first().copied()), (first, first));
        }
        assert_eq!(drawn(&subnets().next().unwrap(), &[]), None);
    }

    #[test]
    fn if_a_member_leaves_only_its_own_subnets_are_drawn_anew() {
        let all = members(7);
        for gone in &all {
            let left: Vec<AccessPoint> = all.iter().copied().filter(|who| who != gone).collect();
            let mut successors: BTreeMap<AccessPoint, u32> = BTreeMap::new();
            for subnet in subnets() {
                let before = drawn_in_order(&subnet, &all);
                let after = drawn(&subnet, &left).unwrap();
                assert_eq!(after, if before[0] == *gone { before[1] } else { before[0] }, "{subnet}");
                *successors.entry(after).or_default() += u32::from(before[0] == *gone);
            }
            // About 238 for each of the six, standard deviation 14; five degrees of freedom: 20.52.
            assert!(chi_square(successors.values().copied()) < 20.52, "{successors:?}");
        }
    }
}
