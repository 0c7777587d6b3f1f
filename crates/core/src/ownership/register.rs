//! Register of claims, which every access point keeps and which converges without a coordinator.
//!
//! Merging is commutative, associative and idempotent: of two claims to one subnet the stronger one holds
//! ([`Held::strength_of`]), in whatever order and however often they arrive. Signatures are checked before merging.
//!
//! Whose an address is follows from the claims alone ([`Register::around`]): that of the longest claimed subnet around it. So
//! members with different hierarchies never disagree about it; a hierarchy only says which subnet to settle where none is claimed.

use super::parts::Parts;
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SIGNATURE_BYTES, SignedClaim},
    ownership_map::{MAX_SENT, MapDigest, MapPart, WantedPart},
    subnet::Subnet,
    vote::Votes,
};
use siphasher::sip::SipHasher13;
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    hash::{Hash, Hasher},
    net::IpAddr,
    ops::Bound,
};

/// The shortest prefixes that may be claimed: registries give out nothing larger, and a member that could claim everything would be in
/// the way of all that no member has claimed yet.
const MIN_V4: u8 = 8;
const MIN_V6: u8 = 12;

/// Subnets whose claims are kept, released ones included (`nearcrawl lab map` measures what one takes). Of large subnets parts are claimed, and there are
/// sixteen million of them in IPv4 alone.
pub(crate) const MAX_CLAIMS: usize = 1_000_000;

/// Whether a subnet is small enough to be any member's.
pub(crate) fn claimable(subnet: &Subnet) -> bool {
    subnet.length() >= if subnet.first().is_ipv4() { MIN_V4 } else { MIN_V6 }
}

/// A claim with what proves it. The signed bytes are the encoding of the claim, so they need not be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// What is claimed.
    pub claim: Claim,
    signature: [u8; SIGNATURE_BYTES],
    votes: Option<Box<Votes>>,
}

impl Held {
    /// The proof, as it came.
    pub(crate) fn proof(&self) -> SignedClaim {
        SignedClaim::of_parts(&self.claim, &self.signature, self.votes.clone())
    }

    /// The votes that accepted it, or what it releases; none if there were none yet.
    pub(crate) fn votes(&self) -> Option<&Votes> {
        self.votes.as_deref()
    }

    /// How strong another claim to the same subnet is beside this one: first the one that voters of the later list accepted, then
    /// [`Claim::strength`]. Who has votes for a claim, and says that it withdraws it, could publish it when the voters of a later list do not
    /// know of it any more, and have let somebody else claim at that epoch or an earlier one. Who publishes what it has accepted, or does not
    /// hide it from the voters, is no worse off: later lists accept only later epochs then.
    pub(crate) fn strength_of(&self, claim: &Claim, proof: &SignedClaim) -> Ordering {
        let list = |votes: Option<&Votes>| votes.map_or(0, |votes| votes.list);
        list(proof.votes.as_deref()).cmp(&list(self.votes())).then_with(|| claim.strength(&self.claim))
    }

    /// The term of the owner's lease when it was accepted.
    pub(crate) fn term(&self) -> u64 {
        self.votes.as_ref().map_or(0, |votes| votes.term)
    }
}

/// What merging a claim did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    /// The claim holds from now on; this one held before.
    Holds {
        /// The claim that held before, if any.
        before: Option<Claim>,
    },
    /// It is the one that holds already.
    Known,
    /// A stronger one holds, or what came with it is no signature.
    Weaker,
}

/// The register.
#[derive(Debug, Default)]
pub(crate) struct Register {
    /// Boxed: the nodes of a map are a third empty.
    claims: BTreeMap<Subnet, Box<Held>>,
    by_owner: BTreeMap<AccessPoint, BTreeSet<Subnet>>,
    digests: BTreeMap<AccessPoint, u64>,
    parts: Parts,
    /// How many subnets of each length were ever claimed, by family: what is looked for around an address.
    lengths: BTreeMap<(bool, u8), usize>,
}

/// A fixed, unkeyed hash: what an owner says of its claims in its roll-up is compared by it. It guards against loss only: an owner that
/// lies about its claims lies about its own sums.
fn digest(claim: &Claim) -> u64 {
    let mut hasher = SipHasher13::new();
    claim.subnet.network().to_string().hash(&mut hasher);
    (claim.epoch, claim.owner.0, claim.released, claim.rtt_us).hash(&mut hasher);
    hasher.finish()
}

impl Register {
    /// Takes a claim in whose signature was checked.
    pub(crate) fn merge(&mut self, claim: Claim, proof: &SignedClaim) -> Merged {
        let held = self.claims.get(&claim.subnet);
        match held.map(|held| held.strength_of(&claim, proof)) {
            Some(Ordering::Equal) => return Merged::Known,
            Some(Ordering::Less) => return Merged::Weaker,
            Some(Ordering::Greater) | None => {}
        }
        let before = held.map(|held| held.claim.clone());
        let Ok(signature) = proof.signature.as_slice().try_into() else { return Merged::Weaker };
        if let Some(old) = &before {
            self.forget(old);
        } else {
            *self.lengths.entry((claim.subnet.first().is_ipv6(), claim.subnet.length())).or_default() += 1;
        }
        if !claim.released {
            *self.digests.entry(claim.owner).or_default() ^= digest(&claim);
            self.by_owner.entry(claim.owner).or_default().insert(claim.subnet);
        }
        self.parts.changed(&claim.subnet);
        self.claims.insert(claim.subnet, Box::new(Held { claim, signature, votes: proof.votes.clone() }));
        Merged::Holds { before }
    }

    fn forget(&mut self, old: &Claim) {
        if old.released {
            return;
        }
        *self.digests.entry(old.owner).or_default() ^= digest(old);
        if let Some(subnets) = self.by_owner.get_mut(&old.owner) {
            subnets.remove(&old.subnet);
            if subnets.is_empty() {
                self.by_owner.remove(&old.owner);
                self.digests.remove(&old.owner);
            }
        }
    }

    /// The claim that holds for exactly this subnet, unless it was released.
    pub(crate) fn claim(&self, subnet: &Subnet) -> Option<&Claim> {
        self.claims.get(subnet).map(|held| &held.claim).filter(|claim| !claim.released)
    }

    /// The claim that decides whose an address is: that to the longest subnet around it that was ever claimed. One that was released
    /// still counts (without an owner for the moment, its next owner goes on where the last one stopped), or else the history of a small
    /// subnet would begin anew at the owner of a large one whenever a member leaves. Costs one look-up for each length in use.
    pub(crate) fn around(&self, address: IpAddr) -> Option<&Claim> {
        self.longest(Subnet::around(address.to_canonical(), u8::MAX), true)
    }

    /// The same for the addresses of a subnet that is not claimed itself: the longest claimed subnet that covers it and is larger.
    pub(crate) fn covering(&self, subnet: &Subnet) -> Option<&Claim> {
        self.longest(*subnet, false)
    }

    fn longest(&self, inside: Subnet, itself: bool) -> Option<&Claim> {
        let v6 = inside.first().is_ipv6();
        let most = if itself { Bound::Included((v6, inside.length())) } else { Bound::Excluded((v6, inside.length())) };
        let lengths = self.lengths.range((Bound::Included((v6, 0)), most)).rev();
        let mut around = lengths.map(|((_, length), _)| Subnet::around(inside.first(), *length));
        around.find_map(|subnet| self.claims.get(&subnet)).map(|held| &held.claim)
    }

    /// The last claim for exactly this subnet, released or not, with its proof.
    pub(crate) fn latest(&self, subnet: &Subnet) -> Option<&Held> {
        self.claims.get(subnet).map(Box::as_ref)
    }

    /// The epoch at which the subnet may be claimed next.
    pub(crate) fn next_epoch(&self, subnet: &Subnet) -> u64 {
        self.claims.get(subnet).map_or(1, |held| held.claim.epoch.saturating_add(1))
    }

    /// What an access point holds, in address order.
    pub(crate) fn held_by(&self, owner: &AccessPoint) -> impl Iterator<Item = Subnet> + '_ {
        self.by_owner.get(owner).into_iter().flatten().copied()
    }

    /// The same after this subnet, or from the first one on.
    pub(crate) fn held_after(&self, owner: &AccessPoint, after: Option<Subnet>) -> impl Iterator<Item = Subnet> + '_ {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_owner.get(owner).into_iter().flat_map(move |subnets| subnets.range((from, Bound::Unbounded))).copied()
    }

    /// How many subnets an access point holds.
    pub(crate) fn count(&self, owner: &AccessPoint) -> usize {
        self.by_owner.get(owner).map_or(0, BTreeSet::len)
    }

    /// Every member who holds something, in order.
    pub(crate) fn owners(&self) -> impl Iterator<Item = AccessPoint> + '_ {
        self.by_owner.keys().copied()
    }

    /// Whether one more subnet's claim can be kept.
    pub(crate) fn has_room_for(&self, subnet: &Subnet) -> bool {
        self.claims.len() < MAX_CLAIMS || self.claims.contains_key(subnet)
    }

    /// How many subnets were ever claimed.
    pub(crate) fn len(&self) -> usize {
        self.claims.len()
    }

    /// How many subnets were released and not claimed since: their servers are in nobody's totals.
    pub(crate) fn released(&self) -> usize {
        self.claims.len() - self.by_owner.values().map(BTreeSet::len).sum::<usize>()
    }

    /// All claims, released ones too, in address order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Held> {
        self.claims.values().map(Box::as_ref)
    }

    /// The claims to the subnets after this one (from the first one, if none), released ones too, in address order.
    pub(crate) fn after(&self, subnet: Option<Subnet>) -> impl Iterator<Item = &Claim> {
        let from = subnet.map_or(Bound::Unbounded, Bound::Excluded);
        self.claims.range((from, Bound::Unbounded)).map(|(_, held)| &held.claim)
    }

    /// XOR of the digests of all an access point holds: it says so itself in its roll-up.
    pub(crate) fn digest_of(&self, owner: &AccessPoint) -> u64 {
        self.digests.get(owner).copied().unwrap_or(0)
    }

    /// The parts in which the map is compared.
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Computes the digests of the parts that changed.
    pub(crate) fn refresh(&mut self) {
        let claims = &self.claims;
        self.parts.refresh(&|subnet| digest_in(claims, subnet));
    }

    /// The digest of a part of the map.
    pub(crate) fn digest(&self, part: MapPart) -> MapDigest {
        self.parts.digest(part, &|subnet| digest_in(&self.claims, subnet))
    }

    /// The digests of the claims in a part behind that to this subnet, sorted; none if there are more than `most`.
    pub(crate) fn digests_in(&self, part: MapPart, after: Option<Subnet>, most: usize) -> Option<Vec<MapDigest>> {
        let subnets = self.parts.within(part, after).take(most + 1);
        let mut digests: Vec<_> = subnets.map(|(_, subnet)| digest_in(&self.claims, subnet)).collect();
        digests.sort_unstable();
        (digests.len() <= most).then_some(digests)
    }

    /// Proofs of the first claims that are wanted, at most [`MAX_SENT`], and whether there are more. Costs no more than the digests of all
    /// claims that the asking member has, and what is sent.
    pub(crate) fn wanted(&self, wanted: &[WantedPart]) -> (Vec<SignedClaim>, bool) {
        let lacking = wanted.iter().flat_map(|WantedPart { part, after, has }| {
            let held = self.parts.within(*part, *after).filter_map(|(_, subnet)| self.claims.get(subnet));
            held.filter(|held| has.is_empty() || !has.contains(&MapDigest::of_claim(&held.claim)))
        });
        let mut proofs: Vec<_> = lacking.take(MAX_SENT + 1).map(|held| held.proof()).collect();
        let more = proofs.len() > MAX_SENT;
        proofs.truncate(MAX_SENT);
        (proofs, more)
    }
}

fn digest_in(claims: &BTreeMap<Subnet, Box<Held>>, subnet: &Subnet) -> MapDigest {
    claims.get(subnet).map_or(MapDigest::EMPTY, |held| MapDigest::of_claim(&held.claim))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::SigningKey;
    use nearcrawl_model::claim::ClaimReason;
    use proptest::prelude::*;

    fn made(subnet: u8, epoch: u64, owner: u8, rtt_us: Option<u32>, released: bool) -> (Claim, SignedClaim) {
        let key = SigningKey::from_bytes(&[owner; 32]);
        let claim = Claim {
            subnet: format!("10.{subnet}.0.0/16").parse().unwrap(),
            epoch,
            owner: AccessPoint(key.verifying_key().to_bytes()),
            rtt_us,
            runner_up: None,
            probes: 0,
            reason: ClaimReason::Awarded,
            released,
            answers: Vec::new(),
        };
        let proof = SignedClaim::sign(&claim, &key);
        (claim, proof)
    }

    /// Claims to nested subnets of a small part of the address space, some released.
    fn nested_claim() -> impl Strategy<Value = (Claim, SignedClaim)> {
        (any::<u16>(), 16u8..=32, 1u8..4, any::<bool>()).prop_map(|(low, length, owner, released)| {
            let (mut claim, _) = made(0, 1, owner, None, released);
            claim.subnet = Subnet::around(IpAddr::from([10, 0, (low >> 8) as u8, low as u8]), length);
            let proof = SignedClaim::sign(&claim, &SigningKey::from_bytes(&[owner; 32]));
            (claim, proof)
        })
    }

    /// With the votes of voters of a list, if any accepted it.
    fn voted((claim, proof): (Claim, SignedClaim), list: Option<u64>) -> (Claim, SignedClaim) {
        let votes = list.map(|list| Box::new(Votes { list, term: 1, voters: Vec::new() }));
        (claim, SignedClaim { votes, ..proof })
    }

    fn any_claim() -> impl Strategy<Value = (Claim, SignedClaim)> {
        (0u8..3, 1u64..4, 1u8..4, prop::option::of(1u32..4), any::<bool>(), prop::option::of(1u64..4))
            .prop_map(|(s, e, o, r, rel, list)| voted(made(s, e, o, r, rel), list))
    }

    proptest! {
        #[test]
        fn any_order_and_repetition_gives_the_same_register(claims in prop::collection::vec(any_claim(), 1..12), seed in any::<u64>()) {
            let mut one = Register::default();
            for (claim, proof) in &claims { one.merge(claim.clone(), proof); }
            let mut other = Register::default();
            let mut order: Vec<usize> = (0..claims.len()).chain(0..claims.len()).collect();
            order.sort_by_key(|i| (seed ^ (*i as u64)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for i in order { other.merge(claims[i].0.clone(), &claims[i].1); }
            let held = |register: &Register| register.all().map(|h| (h.claim.clone(), h.votes().map(|v| v.list))).collect::<Vec<_>>();
            prop_assert_eq!(held(&one), held(&other));
            prop_assert_eq!(one.digest(MapPart::WHOLE), other.digest(MapPart::WHOLE));
            for owner in one.owners() { prop_assert_eq!(one.digest_of(&owner), other.digest_of(&owner)); }
            prop_assert!(one.owners().eq(other.owners()));
        }
    }

    proptest! {
        #[test]
        fn the_longest_claimed_subnet_around_an_address_decides(claims in prop::collection::vec(nested_claim(), 0..24), address in any::<u16>()) {
            let mut register = Register::default();
            for (claim, proof) in claims { register.merge(claim, &proof); }
            let address = IpAddr::from([10, 0, (address >> 8) as u8, address as u8]);
            let naive = register.all().map(|held| &held.claim).filter(|claim| claim.subnet.contains(address));
            prop_assert_eq!(register.around(address), naive.max_by_key(|claim| claim.subnet.length()));
            for held in register.all() {
                let larger = register.all().map(|held| &held.claim).filter(|c| c.subnet.covers(&held.claim.subnet) && c.subnet != held.claim.subnet);
                prop_assert_eq!(register.covering(&held.claim.subnet), larger.max_by_key(|claim| claim.subnet.length()));
            }
        }
    }

    #[test]
    fn no_member_may_claim_more_than_a_registry_gives_out() {
        let claimable = |text: &str| super::claimable(&text.parse().unwrap());
        assert!(claimable("9.0.0.0/8") && claimable("2a00::/12") && claimable("9.9.9.9/32"));
        assert!(!claimable("8.0.0.0/7") && !claimable("0.0.0.0/0") && !claimable("::/0") && !claimable("2000::/3"));
    }

    #[test]
    fn a_released_subnet_has_no_owner_and_the_next_epoch_takes_it() {
        let mut register = Register::default();
        let (claim, proof) = made(1, 1, 1, Some(5), false);
        register.merge(claim.clone(), &proof);
        assert_eq!(register.claim(&claim.subnet).unwrap().owner, claim.owner);
        let (released, proof) = made(1, 1, 1, Some(5), true);
        assert!(matches!(register.merge(released, &proof), Merged::Holds { before: Some(_) }));
        assert!(register.claim(&claim.subnet).is_none());
        assert_eq!((register.count(&claim.owner), register.digest_of(&claim.owner)), (0, 0));
        assert_eq!((register.next_epoch(&claim.subnet), register.released()), (2, 1));
        let (again, proof) = made(1, 2, 2, Some(5), false);
        register.merge(again, &proof);
        assert_eq!(register.released(), 0);
    }

    #[test]
    fn a_forged_claim_does_not_open() {
        let (claim, proof) = made(1, 1, 1, None, false);
        let other = SigningKey::from_bytes(&[9; 32]);
        assert!(proof.open().is_ok());
        assert!(SignedClaim::sign(&claim, &other).open().is_err());
        let mut bent = proof;
        bent.bytes[8] ^= 1;
        assert!(bent.open().is_err());
    }
}
