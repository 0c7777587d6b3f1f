//! Assigns addresses to owners, and decides who settles an address that has no owner.
//!
//! Members may have different hierarchies for a while: a new one is built every three months, and they do not change over at the
//! same moment. Three rules keep them from ever disagreeing about an owner, and an address from ever being asked by two:
//!
//! 1. **The claims alone say whose an address is**: the longest claimed subnet around it decides ([`Ownership::around`]).
//! 2. **Around an address without any claim, the address's steward decides which subnet is to be settled**: every member finds it by the
//!    address alone, without a hierarchy. It reserves the address for one steward of one subnet, by its own hierarchy, and for no
//!    other until a member owns it. So an address is never in two procedures at once.
//! 3. **Within a claimed subnet its owner decides**, for it has the politeness of every address there. If its hierarchy knows a smaller
//!    registered subnet in which it crawls nothing yet, it runs the procedure for that one itself before it lets anything in. Where it
//!    crawls already, things stay as they are.
//!
//! How much is delegated for an address is the deciding member's policy ([`Policy::delegates`]): the smallest registered subnet around
//! it, as in the paper, or where that is large only the part around the address. Members with different policies do not disagree about
//! owners for the same reason: an address's steward reserves it for one steward of one subnet, and of nested claims the longest decides.
//! Who claimed a large subnet as a whole keeps what it covers, but for parts that others claimed meanwhile.
//!
//! Should two claims come to lie within each other all the same (members were cut off from each other), rule 1 says who goes on;
//! the owner of the larger subnet gives up what lies in the smaller one, and a claim is watched before it is acted on.
//!
//! [`Ownership::around`]: crate::ownership::register::Ownership::around
//! [`Policy::delegates`]: crate::delegation::search::Policy::delegates

use crate::{
    context::Context,
    delegation::{Delegation, reads::DelegationReads},
    membership::{Membership, rendezvous},
    ownership::Ownership,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::SignedClaim,
    fetch::{LocatedHost, ProbeTarget},
    subnet::Subnet,
    url::PageUrl,
};
use std::net::{IpAddr, SocketAddr};

impl Delegation {
    /// Who crawls this host, if that is decided and they can be reached; if not, sees to it that it gets decided. `first` is the first
    /// URL of the host that waits, `changing` whether a subnet of ours is being read back or given away; `crawls` is as in
    /// [`Delegation::belongs_here`].
    #[must_use]
    pub(crate) fn owner_for(
        &mut self,
        cx: &mut Context,
        others: DelegationReads<'_>,
        located: &LocatedHost,
        first: Option<&PageUrl>,
        changing: impl Fn(&Subnet) -> bool,
        crawls: impl Fn(&Subnet, &Subnet) -> bool,
    ) -> Option<AccessPoint> {
        if let Some(claim) = others.ownership.register().around(located.address) {
            let (subnet, owner) = (claim.subnet, claim.owner);
            if claim.released {
                return None;
            }
            if owner != cx.me {
                return others.members.live().contains(&owner).then_some(owner);
            }
            let here = !changing(&subnet) && first.is_none_or(|url| self.belongs_here(cx, others, subnet, located, url, crawls));
            return here.then_some(owner);
        }
        if others.ownership.is_synced() {
            self.find_owner(cx, others, target(first?, located));
        }
        None
    }

    /// Whether a host in a claimed subnet of ours is crawled as part of it. If our hierarchy knows a smaller subnet there in which
    /// nothing is crawled yet, that one is settled first and the host has to wait. `crawls` is whether the host, or anything in the
    /// second subnet, is crawled as part of the first one.
    #[must_use]
    pub(crate) fn belongs_here(
        &mut self,
        cx: &mut Context,
        others: DelegationReads<'_>,
        subnet: Subnet,
        located: &LocatedHost,
        url: &PageUrl,
        crawls: impl Fn(&Subnet, &Subnet) -> bool,
    ) -> bool {
        let Some(smaller) = smaller_subnet(cx, subnet, located).filter(|smaller| !crawls(&subnet, smaller)) else { return true };
        if !others.ownership.is_watched(&subnet) {
            self.settle(cx, others, smaller, target(url, located));
        }
        false
    }
}

/// The steward of an address without an owner, who decides to which subnet it belongs: the same for every member, whatever their
/// hierarchies.
pub(super) fn address_steward_of(me: AccessPoint, members: &Membership, address: IpAddr) -> AccessPoint {
    rendezvous::steward(rendezvous::key_hash(&address.to_string()), members.live()).unwrap_or(me)
}

/// The claim that says whose an address is, with its proof, if it is any member's.
pub(super) fn standing_around(ownership: &Ownership, address: IpAddr) -> Option<SignedClaim> {
    let claim = ownership.register().around(address).filter(|claim| !claim.released)?;
    ownership.register().latest(&claim.subnet).map(|held| held.proof())
}

/// Whether it is ours to settle this subnet, beginning with this address: it has no owner at all, or we own what lies around it.
pub(super) fn may_settle(me: AccessPoint, ownership: &Ownership, subnet: &Subnet, address: IpAddr) -> bool {
    ownership.register().around(address).is_none_or(|claim| {
        let larger = claim.subnet != *subnet && claim.subnet.covers(subnet);
        larger && claim.owner == me && !claim.released
    })
}

/// The smaller subnet around a host that may be settled within a claimed one of ours, if there is one.
fn smaller_subnet(cx: &Context, subnet: Subnet, located: &LocatedHost) -> Option<Subnet> {
    // Registered, that is: of a large subnet that was claimed as a whole no part is given away just for being one.
    let registered = cx.hierarchy.locate(located.address).map(|position| cx.hierarchy.subnet(position))?;
    let is_smaller = subnet != registered && subnet.covers(&registered);
    is_smaller.then(|| cx.unit_of(located.address))
}

/// Whom to probe on behalf of a host.
fn target(url: &PageUrl, located: &LocatedHost) -> ProbeTarget {
    ProbeTarget { address: SocketAddr::new(located.address, url.port()), host: located.host.clone(), secure: url.origin().secure }
}
