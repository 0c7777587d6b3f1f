//! Parts of the ownership map and their digests.
//!
//! A tree over the places of the subnets, see [`nearcrawl_model::ownership_map`]. A part with more than [`MAX_LISTED`] claims is divided;
//! how deep the tree is somewhere follows from the claims there. A change makes the digests of the parts around it unknown, some four among
//! a million claims; they are computed anew by [`Parts::refresh`], after each message with claims. What is not computed yet is computed
//! when it is asked for, so that forgetting to refresh costs time only.

use nearcrawl_model::{
    ownership_map::{MAX_DEPTH, MAX_LISTED, MapDigest, MapPart, place},
    subnet::Subnet,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    ops::Bound,
};

/// A part that is divided, or that a divided part is divided into.
#[derive(Debug, Default)]
struct Node {
    /// How many subnets are in it; never 0.
    count: usize,
    /// None if a claim in it has changed since it was computed.
    digest: Option<MapDigest>,
}

/// The parts of an ownership map.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// All subnets, by their places.
    order: BTreeSet<(u64, Subnet)>,
    nodes: BTreeMap<MapPart, Node>,
}

impl Parts {
    /// The claim to a subnet is another one now, or the first.
    pub(crate) fn changed(&mut self, subnet: &Subnet) {
        let place = place(subnet);
        let new = self.order.insert((place, *subnet));
        for depth in 0..=MAX_DEPTH {
            let part = MapPart::around(place, depth);
            let node = self.nodes.entry(part).or_default();
            node.count += usize::from(new);
            node.digest = None;
            if node.count <= MAX_LISTED || depth == MAX_DEPTH {
                break;
            }
            if new && node.count == MAX_LISTED + 1 {
                self.divide(part);
                break;
            }
        }
    }

    /// Counts what is in each part of a part that has just become too large to be listed.
    fn divide(&mut self, part: MapPart) {
        let depth = part.depth() + 1;
        let inner: Vec<_> = self.within(part, None).map(|(place, _)| MapPart::around(*place, depth)).collect();
        for inner in inner {
            let node = self.nodes.entry(inner).or_default();
            node.count += 1;
            // Only if all are in one of its parts.
            if node.count > MAX_LISTED && depth < MAX_DEPTH {
                self.divide(inner);
            }
        }
    }

    /// What is in a part behind this subnet (from its beginning, if none), in the order of places.
    pub(crate) fn within(&self, part: MapPart, after: Option<Subnet>) -> impl Iterator<Item = &(u64, Subnet)> {
        // No subnet is less than this one.
        let first = (part.first_place(), Subnet::around(IpAddr::from([0; 4]), 0));
        let after = after.map(|subnet| (place(&subnet), subnet)).filter(|after| *after >= first);
        let from = after.map_or(Bound::Included(first), Bound::Excluded);
        self.order.range((from, Bound::Unbounded)).take_while(move |(place, _)| part.contains(*place))
    }

    /// How many subnets are in a part. Costs no more than listing [`MAX_LISTED`].
    pub(crate) fn count(&self, part: MapPart) -> usize {
        // What has no node is within a part that is not divided.
        self.nodes.get(&part).map_or_else(|| self.within(part, None).count(), |node| node.count)
    }

    /// Whether a part is listed and not divided.
    pub(crate) fn is_listed(&self, part: MapPart) -> bool {
        part.depth() == MAX_DEPTH || self.count(part) <= MAX_LISTED
    }

    /// The digest of a part; `of` has those of the claims.
    pub(crate) fn digest(&self, part: MapPart, of: &impl Fn(&Subnet) -> MapDigest) -> MapDigest {
        match self.nodes.get(&part).and_then(|node| node.digest) {
            Some(digest) => digest,
            None if self.is_listed(part) => self.listed(part, of),
            None => MapDigest::of_parts(part.parts().map(|inner| self.digest(inner, of))),
        }
    }

    fn listed(&self, part: MapPart, of: &impl Fn(&Subnet) -> MapDigest) -> MapDigest {
        let mut subnets = self.within(part, None).peekable();
        if subnets.peek().is_none() {
            return MapDigest::EMPTY;
        }
        MapDigest::of_listed(subnets.map(|(_, subnet)| of(subnet)))
    }

    /// Computes the digests that claims changed since the last time. Costs some 10 µs for each changed claim.
    pub(crate) fn refresh(&mut self, of: &impl Fn(&Subnet) -> MapDigest) {
        self.refresh_part(MapPart::WHOLE, of);
    }

    fn refresh_part(&mut self, part: MapPart, of: &impl Fn(&Subnet) -> MapDigest) {
        if self.nodes.get(&part).is_none_or(|node| node.digest.is_some()) {
            return;
        }
        if !self.is_listed(part) {
            part.parts().for_each(|inner| self.refresh_part(inner, of));
        }
        let digest = self.digest(part, of);
        if let Some(node) = self.nodes.get_mut(&part) {
            node.digest = Some(digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{
        access_point::AccessPoint,
        claim::{Claim, ClaimReason},
    };
    use proptest::prelude::*;

    fn claim(number: u32, epoch: u64) -> Claim {
        let subnet = Subnet::around(IpAddr::from((number << 8).to_be_bytes()), 24);
        let (owner, reason) = (AccessPoint([1; 32]), ClaimReason::Awarded);
        Claim { subnet, epoch, owner, rtt_us: None, runner_up: None, probes: 0, reason, released: false, answers: Vec::new() }
    }

    /// A map of these subnets at these epochs, entered in this order.
    fn map(entered: &[(u32, u64)]) -> (Parts, BTreeMap<Subnet, MapDigest>) {
        let (mut parts, mut claims) = (Parts::default(), BTreeMap::new());
        for (number, epoch) in entered {
            let claim = claim(*number, *epoch);
            claims.insert(claim.subnet, MapDigest::of_claim(&claim));
            parts.changed(&claim.subnet);
            if number % 7 == 0 {
                parts.refresh(&|subnet| claims[subnet]);
            }
        }
        (parts, claims)
    }

    proptest! {
        /// Whatever is kept of counts and digests says the same as a map that is looked at from the beginning.
        #[test]
        fn what_is_kept_is_what_follows_from_the_claims(numbers in prop::collection::vec((0u32..5_000, 1u64..3), 0..700), at in any::<u64>()) {
            let (mut parts, claims) = map(&numbers);
            let fresh = Parts { order: parts.order.clone(), nodes: BTreeMap::new() };
            let of = |subnet: &Subnet| claims[subnet];
            parts.refresh(&of);
            for depth in 0..4 {
                let part = MapPart::around(at, depth);
                prop_assert_eq!(parts.count(part), parts.order.iter().filter(|(place, _)| part.contains(*place)).count());
                prop_assert_eq!(parts.digest(part, &of), fresh.digest(part, &of));
            }
            prop_assert!(parts.nodes.values().all(|node| node.count > 0 && node.digest.is_some()));
        }
    }

    #[test]
    fn one_claim_among_many_changes_the_digests_around_it_and_no_other() {
        let all: Vec<_> = (0..5_000).map(|number| (number, 1)).collect();
        let (parts, claims) = map(&all);
        let (mut changed, mut claims_changed) = map(&all);
        let other = claim(77, 2);
        claims_changed.insert(other.subnet, MapDigest::of_claim(&other));
        changed.changed(&other.subnet);
        for depth in 0..4 {
            let digest = |part| (parts.digest(part, &|subnet| claims[subnet]), changed.digest(part, &|subnet| claims_changed[subnet]));
            let around = MapPart::around(place(&other.subnet), depth);
            for part in MapPart::around(0, depth.saturating_sub(1)).parts().chain([around]) {
                let (before, after) = digest(part);
                assert_eq!(before != after, part.contains(place(&other.subnet)), "{part:?}");
            }
        }
    }

    #[test]
    fn a_part_is_listed_from_any_subnet_on() {
        let (parts, _) = map(&(0..300).map(|number| (number, 1)).collect::<Vec<_>>());
        let part = MapPart::WHOLE.parts().nth(3).unwrap();
        let all: Vec<_> = parts.within(part, None).copied().collect();
        assert!(all.len() > 2 && all.is_sorted() && parts.count(part) == all.len());
        let behind: Vec<_> = parts.within(part, Some(all[1].1)).copied().collect();
        assert_eq!(behind, all[2..]);
        let before = MapPart::WHOLE.parts().nth(2).unwrap();
        let of_before = parts.within(before, None).next().unwrap().1;
        assert_eq!(parts.within(part, Some(of_before)).count(), all.len(), "behind what is before it is all of it");
        assert_eq!(parts.within(before, Some(all[0].1)).count(), 0);
    }
}
