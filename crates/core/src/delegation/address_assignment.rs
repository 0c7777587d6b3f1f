//! Whose is this address, and who decides if it is nobody's?
//!
//! Members may have different hierarchies for a while: a new one is built every three months, and they do not change over at the
//! same moment. Three rules keep them from ever disagreeing about an owner, and an address from ever being asked by two:
//!
//! 1. **The claims alone say whose an address is**: the longest claimed subnet around it decides ([`Ownership::around`]).
//! 2. **Around an address without any claim, its guardian decides which subnet is to be settled**: the steward of the address itself,
//!    whom everybody finds without a hierarchy. It lends the address to one steward of one subnet, by its own hierarchy, and to no
//!    other until somebody owns it. So an address is never in two procedures at once.
//! 3. **Within a claimed subnet its owner decides**, for it has the politeness of every address there. If its hierarchy knows a smaller
//!    registered subnet in which it crawls nothing yet, it runs the procedure for that one itself before it lets anything in. Where it
//!    crawls already, things stay as they are.
//!
//! How much is delegated for an address is the deciding member's policy ([`Policy::delegates`]): the smallest registered subnet around
//! it, as in the paper, or where that is large only the part around the address. Members with different policies disagree about nobody
//! for the same reason: a guardian lends an address to one steward of one subnet, and of nested claims the longest decides. Who
//! claimed a large subnet as a whole keeps what it covers, but for parts that others claimed meanwhile.
//!
//! Should two claims come to lie within each other all the same (members were cut off from each other), rule 1 says who goes on;
//! the owner of the larger subnet gives up what lies in the smaller one, and a claim is watched before it is acted on.
//!
//! [`Ownership::around`]: crate::ownership::register::Ownership::around
//! [`Policy::delegates`]: crate::delegation::search::Policy::delegates

use crate::crawler::{Crawler, Pending};
use crate::{membership::rendezvous, ownership::register::claimable};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SignedClaim},
    fetch::{LocatedHost, ProbeTarget},
    message::{Request, Response},
    subnet::Subnet,
    time::{Millis, Moment},
    url::{Host, PageUrl},
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// How long whoever settles a subnet may take to find an owner before it is reminded.
const SETTLE_PATIENCE: Millis = 5_000;

/// For so long a guardian sticks to the subnet to which it lent an address; whoever waits for an owner asks much more often.
const LOAN_HOLDS: Millis = 600_000;

/// An address without an owner that its guardian lent to the steward of a subnet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loan {
    /// Which subnet is being settled.
    subnet: Subnet,
    /// When its steward was last told.
    told: Option<Moment>,
    /// When somebody last asked for an owner.
    wanted: Moment,
}

impl Crawler {
    /// Who crawls this host, if that is decided and they can be reached; if not, sees to it that it gets decided.
    pub(crate) fn owner_for(&mut self, located: &LocatedHost) -> Option<AccessPoint> {
        let first = self.routing.first_for(&located.host).cloned();
        if let Some(claim) = self.ownership.register.around(located.address) {
            let (subnet, owner) = (claim.subnet, claim.owner);
            if claim.released {
                return None;
            }
            if owner != self.context.me {
                return self.live().contains(&owner).then_some(owner);
            }
            let settled = !self.replication.is_loading(&subnet) && !self.migration.moves.stopped(&subnet);
            let here = settled && first.is_none_or(|url| self.belongs_here(subnet, located, &url));
            return here.then_some(owner);
        }
        if !self.ownership.is_synced() {
            return None;
        }
        let target = target(&first?, located);
        let guardian = self.guardian_of(located.address);
        if guardian == self.context.me {
            self.lend(target);
        } else {
            let (now, subnet) = (self.context.now.moment, self.context.unit_of(located.address));
            if self.delegation.asked.get(&subnet).is_none_or(|at| now.since(*at) >= SETTLE_PATIENCE) {
                self.delegation.asked.insert(subnet, now);
                self.ask(guardian, Pending::Settle, Request::Settle(subnet, target));
            }
        }
        None
    }

    /// Who decides to which subnet an unowned address belongs: the same for everybody, whatever their hierarchies.
    pub(crate) fn guardian_of(&self, address: IpAddr) -> AccessPoint {
        rendezvous::steward(rendezvous::key_hash(&address.to_string()), &self.live()).unwrap_or(self.context.me)
    }

    /// A member asks us, the guardian of an address, to see to it that it gets an owner. Which subnet is settled is ours to say.
    pub(crate) fn settle_for(&mut self, ticket: u64, target: ProbeTarget) {
        let standing = self.standing_around(target.address.ip());
        if standing.is_none() {
            self.lend(target);
        }
        self.answer(ticket, Response::Settling(standing));
    }

    /// The guardian of an address lends it to us, the steward of the subnet that is to be settled.
    pub(crate) fn lent_for(&mut self, ticket: u64, subnet: Subnet, target: ProbeTarget) {
        if !subnet.contains(target.address.ip()) || !claimable(&subnet) {
            self.refuse("invalid delegation requests");
            return self.answer(ticket, Response::Refused("the address is not in the subnet, or the subnet cannot be owned".to_owned()));
        }
        let standing = self.standing_around(target.address.ip());
        if standing.is_none() {
            self.settle(subnet, target);
        }
        self.answer(ticket, Response::Settling(standing));
    }

    /// The claim that says whose an address is, with its proof, if it is anybody's.
    pub(crate) fn standing_around(&self, address: IpAddr) -> Option<SignedClaim> {
        let claim = self.ownership.register.around(address).filter(|claim| !claim.released)?;
        self.ownership.register.latest(&claim.subnet).map(|held| held.proof.clone())
    }

    /// As guardian of an address that nobody owns: lend it to the steward of its subnet. The subnet stays the same for as long as
    /// anybody wants an owner, whatever hierarchy we may change to meanwhile.
    pub(crate) fn lend(&mut self, target: ProbeTarget) {
        let (address, now) = (target.address.ip(), self.context.now.moment);
        if !self.ownership.is_synced() || self.ownership.register.around(address).is_some() {
            return;
        }
        if self.delegation.reserved.len() >= crate::delegation::rounds::MAX_QUEUED {
            self.end_loans();
            if self.delegation.reserved.len() >= crate::delegation::rounds::MAX_QUEUED && !self.delegation.reserved.contains_key(&address) {
                return self.refuse("address reservations beyond the limit");
            }
        }
        let subnet = self.context.unit_of(address);
        let loan = self.delegation.reserved.entry(address).or_insert(Loan { subnet, told: None, wanted: now });
        loan.wanted = now;
        let subnet = loan.subnet;
        let due = loan.told.is_none_or(|told| now.since(told) >= SETTLE_PATIENCE);
        let steward = self.stewards_of(&subnet).first().copied().unwrap_or(self.context.me);
        if steward == self.context.me {
            self.settle(subnet, target);
        } else if due {
            if let Some(loan) = self.delegation.reserved.get_mut(&address) {
                loan.told = Some(now);
            }
            self.ask(steward, Pending::Settle, Request::Lend(subnet, target));
        }
    }

    /// Forgets loans that nobody has asked for in a while.
    pub(crate) fn end_loans(&mut self) {
        let now = self.context.now.moment;
        self.delegation.reserved.retain(|_, loan| now.since(loan.wanted) < LOAN_HOLDS);
    }

    /// Whether it is ours to settle this subnet, beginning with this address: nobody's at all, or we own what lies around it.
    pub(crate) fn may_settle(&self, subnet: &Subnet, address: IpAddr) -> bool {
        self.ownership.register.around(address).is_none_or(|claim| {
            let larger = claim.subnet != *subnet && claim.subnet.covers(subnet);
            larger && claim.owner == self.context.me && !claim.released
        })
    }

    /// Whether somebody may award us a subnet: if a larger one is claimed, only its owner.
    pub(crate) fn may_award(&self, from: AccessPoint, subnet: &Subnet) -> bool {
        claimable(subnet) && self.ownership.register.covering(subnet).is_none_or(|claim| claim.owner == from && !claim.released)
    }

    /// Whether a host in a claimed subnet of ours is crawled as part of it. If our hierarchy knows a smaller subnet there in which
    /// nothing is crawled yet, that one is settled first and the host has to wait.
    pub(crate) fn belongs_here(&mut self, subnet: Subnet, located: &LocatedHost, url: &PageUrl) -> bool {
        let Some(smaller) = self.smaller_subnet(subnet, located) else { return true };
        if !self.ownership.is_watched(&subnet) {
            self.settle(smaller, target(url, located));
        }
        false
    }

    pub(crate) fn smaller_subnet(&self, subnet: Subnet, located: &LocatedHost) -> Option<Subnet> {
        // Registered, that is: of a large subnet that was claimed as a whole no part is given away just for being one.
        let registered = self.context.hierarchy.locate(located.address).map(|position| self.context.hierarchy.subnet(position))?;
        let is_smaller = subnet != registered && subnet.covers(&registered);
        if !is_smaller || self.crawl.sites.get(&located.host).is_some_and(|site| site.key.subnet == subnet) {
            return None;
        }
        let smaller = self.context.unit_of(located.address);
        self.hosts_within(&subnet, &smaller).next().is_none().then_some(smaller)
    }

    /// Hosts that we crawl as part of one subnet and that live in a smaller one.
    pub(crate) fn hosts_within(&self, subnet: &Subnet, smaller: &Subnet) -> impl Iterator<Item = Host> {
        let hosts = self.crawl.by_subnet.get(subnet).into_iter().flatten();
        hosts.filter(|host| self.crawl.sites.get(*host).is_some_and(|site| smaller.contains(site.address))).cloned()
    }

    /// A claim holds that did not hold before: procedures and loans that it decides are over, and what we crawled in its subnet as part of
    /// a larger one is its owner's now.
    pub(crate) fn placed_by(&mut self, claim: &Claim) {
        let subnet = claim.subnet;
        self.delegation.asked.retain(|asked, _| !asked.covers(&subnet) && !subnet.covers(asked));
        self.delegation.reserved.retain(|address, _| !subnet.contains(*address));
        self.delegation.rounds.retain(|_, procedure| !subnet.contains(procedure.target.address.ip()));
        if claim.owner != self.context.me {
            let larger: Vec<_> = self.crawl.by_subnet.keys().filter(|ours| **ours != subnet && ours.covers(&subnet)).copied().collect();
            for ours in larger {
                self.yield_to_smaller(ours);
            }
        }
    }

    /// Gives up the sites of a subnet of ours that lie in smaller claimed ones by now.
    pub(crate) fn yield_to_smaller(&mut self, subnet: Subnet) {
        let hosts = self.crawl.by_subnet.get(&subnet).into_iter().flatten();
        let theirs = |host: &&Host| {
            let claim = self.crawl.sites.get(*host).and_then(|site| self.ownership.register.around(site.address));
            claim.is_some_and(|claim| claim.subnet != subnet && claim.owner != self.context.me)
        };
        let lost: Vec<_> = hosts.filter(theirs).cloned().collect();
        if !lost.is_empty() {
            self.dissolve_hosts(subnet, lost, true);
            self.report.mark_changed();
        }
    }

    /// Notes in the hierarchy who holds a subnet. Who holds a part of one stands for it until somebody holds the whole: the paper's
    /// procedure, if it is ours, asks there first.
    pub(crate) fn populate(&mut self, claim: &Claim) {
        let whole = self.context.hierarchy.position(claim.subnet);
        let Some(position) = whole.or_else(|| self.context.hierarchy.locate(claim.subnet.first())) else { return };
        let held = self.delegation.delegated.at(position.0);
        match whole {
            Some(_) => self.delegation.delegated.set(position.0, (!claim.released).then_some(claim.owner)),
            None if claim.released && held == Some(claim.owner) => self.delegation.delegated.set(position.0, None),
            None if claim.released => {}
            None => {
                let around = self.ownership.register.claim(&self.context.hierarchy.subnet(position));
                self.delegation.delegated.set(position.0, Some(around.map_or(claim.owner, |around| around.owner)));
            }
        }
    }

    /// From now on this hierarchy is used. Claims, journals and everything under way stay as they are: whose an address is does not
    /// depend on it. What is known by position is built anew from the claims, without a message or a probe.
    pub(crate) fn change_hierarchy(&mut self, hierarchy: Arc<Hierarchy>) {
        self.context.hierarchy = hierarchy;
        self.delegation.delegated = Default::default();
        self.delegation.knowledge.relocate(&self.context.hierarchy);
        let claims: Vec<_> = self.ownership.register.all().map(|held| &held.claim).filter(|claim| !claim.released).cloned().collect();
        claims.iter().for_each(|claim| self.populate(claim));
        // Which country and organisation a site counts for may be another now.
        self.crawl.sites.keys().for_each(|host| self.report.site_changed(host));
        self.delegation.asked.clear();
        self.routing.wake_all();
        self.route();
    }
}

/// Whom to probe on behalf of a host.
fn target(url: &PageUrl, located: &LocatedHost) -> ProbeTarget {
    ProbeTarget { address: SocketAddr::new(located.address, url.port()), host: located.host.clone(), secure: url.origin().secure }
}
