//! Measures how well the daemons delegated, by what they measured themselves: probes against nearness, in the laboratory's measures.

use crate::support::RealPlaces;
use nearcrawl_hierarchy::{Builder, Hierarchy};
use nearcrawl_model::{
    access_point::AccessPoint,
    subnet::Subnet,
    view::{MeasurementView, OwnershipView},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
};

/// The measures that daemons and laboratory are compared by.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Probes for each site.
    pub probes: f64,
    /// Share of sites whose owner is a nearest one.
    pub optimal: f64,
    /// Share of sites whose owner is at most 10 % or 2 ms slower than the nearest.
    pub within: f64,
}

impl Figures {
    /// `ms` is the round trip of a site and a point, `owner_of` the point that holds a site.
    pub fn new(
        places: &RealPlaces,
        probes: usize,
        ms: impl Fn(Ipv4Addr, Ipv4Addr) -> f64,
        owner_of: impl Fn(Ipv4Addr) -> Ipv4Addr,
    ) -> Figures {
        let (mut optimal, mut within) = (0, 0);
        for site in &places.sites {
            let least = places.points.iter().map(|point| ms(site.address, point.address)).fold(f64::INFINITY, f64::min);
            let got = ms(site.address, owner_of(site.address));
            optimal += usize::from(got <= least);
            within += usize::from(got <= least * 1.1 || got <= least + 2.0);
        }
        let share = |count: usize| count as f64 / places.sites.len() as f64;
        Figures { probes: share(probes), optimal: share(optimal), within: share(within) }
    }
}

/// What the daemons say of subnets, put together with what is known of the places.
pub struct Outcome {
    /// What became of each subnet.
    pub claims: BTreeMap<Subnet, OwnershipView>,
    points: BTreeMap<AccessPoint, Ipv4Addr>,
}

impl Outcome {
    /// `points` are the addresses of the members.
    pub fn new(views: Vec<OwnershipView>, points: BTreeMap<AccessPoint, Ipv4Addr>) -> Outcome {
        Outcome { claims: views.into_iter().map(|view| (view.subnet, view)).collect(), points }
    }

    /// The claim that says whose a site is: that to the smallest claimed subnet around it.
    pub fn claim_of(&self, site: Ipv4Addr) -> &OwnershipView {
        let around = self.claims.values().filter(|claim| claim.subnet.contains(site.into()));
        around.max_by_key(|claim| claim.subnet.length()).unwrap_or_else(|| panic!("nobody holds {site}"))
    }

    /// The address of the one who holds a site.
    pub fn owner_of(&self, site: Ipv4Addr) -> Ipv4Addr {
        self.points[&self.claim_of(site).owner]
    }

    /// What is held from this address.
    pub fn held_by(&self, point: Ipv4Addr) -> BTreeSet<Subnet> {
        self.claims.values().filter(|claim| self.points[&claim.owner] == point).map(|claim| claim.subnet).collect()
    }

    /// All that was measured of a subnet, in milliseconds by the address of who measured it.
    pub fn measured(&self, claim: &OwnershipView) -> BTreeMap<Ipv4Addr, f64> {
        // What was not probed for this claim is known of an earlier one.
        let of_owner = |who: AccessPoint| who == claim.owner && claim.probes == 0;
        let known = claim.measurements.iter().filter_map(|measured| Some((measured.access_point?, measured.rtt_ms)));
        known.filter(|(who, _)| !of_owner(*who)).map(|(who, rtt_ms)| (self.points[&who], rtt_ms)).collect()
    }

    /// What others than the owner measured of a subnet, the nearest first.
    pub fn others(claim: &OwnershipView) -> impl Iterator<Item = &MeasurementView> {
        claim.measurements.iter().filter(|measured| measured.access_point != Some(claim.owner))
    }
}

/// The hierarchy that the daemons build of their registry files.
pub fn hierarchy_of(places: &RealPlaces) -> Hierarchy {
    let mut builder = Builder::new();
    for (name, text) in places.registry_files() {
        builder.read_delegated(&name, text.as_bytes()).expect("a registry's file");
    }
    builder.finish().expect("a hierarchy")
}

/// The round trips as they were measured: on two busy cores many answers come late, and the laboratory is to use the same times.
pub struct Measured<'a> {
    places: &'a RealPlaces,
    answers: BTreeMap<(Ipv4Addr, Ipv4Addr), f64>,
    /// By how much answers came late, in ascending order.
    late: Vec<f64>,
}

impl<'a> Measured<'a> {
    /// `probed` are the sites that were probed, by the probing point.
    pub fn new(places: &'a RealPlaces, outcome: &Outcome, probed: impl Iterator<Item = (IpAddr, IpAddr)>) -> Measured<'a> {
        let (mut answers, mut late) = (BTreeMap::new(), Vec::new());
        for (site, point) in probed {
            let (IpAddr::V4(site), IpAddr::V4(point)) = (site, point) else { unreachable!("all of it is IPv4") };
            if let Some(measured) = outcome.measured(outcome.claim_of(site)).get(&point) {
                let real = places.ms(site, point).expect("measured from everywhere") * places.scale;
                answers.insert((site, point), measured / places.scale);
                late.push(measured - real);
            }
        }
        late.sort_by(f64::total_cmp);
        Measured { places, answers, late }
    }

    /// By how many milliseconds answers came late; of ten equal parts of them the last of this one.
    pub fn late(&self, decile: usize) -> f64 {
        self.late.get((self.late.len().saturating_sub(1)) * decile / 10).copied().unwrap_or(0.0)
    }

    /// How many answers there were.
    pub fn count(&self) -> usize {
        self.late.len()
    }

    /// The round trip between a site and a point in milliseconds of the real world. One that nobody measured would have been as late as
    /// others.
    pub fn ms(&self, site: Ipv4Addr, point: Ipv4Addr) -> f64 {
        let unmeasured = || self.places.ms(site, point).expect("measured from everywhere") + self.late(5) / self.places.scale;
        self.answers.get(&(site, point)).copied().unwrap_or_else(unmeasured)
    }
}
