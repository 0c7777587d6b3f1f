//! Known distances: access points with their countries and round-trip times, and every answer that a subnet gave.

use super::{
    chart::{Chart, Whereabouts},
    globe::{places_of, shortest_km},
    hypotheses::Hypotheses,
    plane::Plane,
    relatives::Relatives,
};
use nearcrawl_hierarchy::{Hierarchy, OrganisationId};
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet};
use std::{collections::BTreeMap, net::IpAddr, sync::OnceLock};

/// How many subnets' answers are kept at most; the ones measured longest ago go first.
pub const MAX_SUBNETS: usize = 65_536;

/// Light in fibre goes there and back over so many kilometres in a millisecond.
const LIGHT_KM_PER_MS: f32 = 100.0;

/// How far an access point or a border may be from the point that stands for it on our globe.
const BLUR_KM: f32 = 1_000.0;

/// So many subnets of an organisation must have been near everywhere, and at least half of those that several measured.
const MIN_EVERYWHERE: u32 = 3;

/// So many access points that left are remembered beside those that stay, before all is sorted anew.
const MAX_GONE: usize = 64;

/// A round-trip time that is less than this share of the known one counts as new.
const NEWS: f32 = 0.9;

#[derive(Clone, Debug)]
pub(super) struct Introduced {
    who: AccessPoint,
    country: Option<[u8; 2]>,
}

/// What one subnet answered.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// By access point, in microseconds.
    answers: Vec<(usize, u32)>,
    here: Whereabouts,
    /// The number of the observation that came last.
    latest: u64,
    /// Whose the subnet is, and whether its answers were faster than light would allow from any one place.
    judged: Option<(OrganisationId, bool)>,
}

/// How many subnets of an organisation several access points measured, and how many of them were near everywhere.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    measured: u32,
    everywhere: u32,
}

/// Distances, as far as they are known. Equal calls in equal order give equal knowledge.
#[derive(Clone, Debug)]
pub struct Knowledge {
    members: BTreeMap<AccessPoint, usize>,
    /// Also who left lately: answers name access points by their index here.
    pub(super) introduced: Vec<Introduced>,
    /// Between access points, in milliseconds; not a number where unknown.
    rtt: Vec<Vec<f32>>,
    subnets: BTreeMap<Subnet, Memory>,
    /// The subnets by their latest observation.
    by_age: BTreeMap<u64, Subnet>,
    relatives: Relatives,
    organisations: BTreeMap<OrganisationId, Spread>,
    observations: usize,
    /// See [`MAX_SUBNETS`].
    pub(super) most_subnets: usize,
    /// Drawn when needed, and again when access points come or their distances change.
    chart: OnceLock<Chart>,
    plane: OnceLock<Option<Plane>>,
}

impl Default for Knowledge {
    fn default() -> Knowledge {
        Knowledge::new()
    }
}

impl Knowledge {
    /// Knows nothing.
    pub fn new() -> Knowledge {
        Knowledge {
            members: BTreeMap::new(),
            introduced: Vec::new(),
            rtt: Vec::new(),
            subnets: BTreeMap::new(),
            by_age: BTreeMap::new(),
            relatives: Relatives::default(),
            organisations: BTreeMap::new(),
            observations: 0,
            most_subnets: MAX_SUBNETS,
            chart: OnceLock::new(),
            plane: OnceLock::new(),
        }
    }

    /// Notes where an access point is: its country if it says so, else that of its address.
    pub fn introduce(&mut self, who: AccessPoint, hierarchy: &Hierarchy, address: Option<IpAddr>, country: Option<[u8; 2]>) {
        let of_address = || hierarchy.country(hierarchy.locate(address?)?).as_bytes().try_into().ok();
        let country = country.or_else(of_address);
        match self.members.get(&who) {
            Some(known) if self.introduced[*known].country == country => return,
            Some(known) => self.introduced[*known].country = country,
            None => {
                self.members.insert(who, self.introduced.len());
                self.introduced.push(Introduced { who, country });
                self.rtt.iter_mut().for_each(|row| row.push(f32::NAN));
                self.rtt.push(vec![f32::NAN; self.introduced.len()]);
            }
        }
        self.redraw();
    }

    /// Forgets an access point that left.
    pub fn forget(&mut self, hierarchy: &Hierarchy, who: AccessPoint) {
        self.members.remove(&who);
        if self.introduced.len() > 2 * self.members.len() + MAX_GONE {
            self.sort_anew(hierarchy);
        }
    }

    /// Notes the round-trip time between two access points, in microseconds; the least of several counts.
    pub fn between(&mut self, a: AccessPoint, b: AccessPoint, rtt_us: u32) {
        let (Some(&a), Some(&b)) = (self.members.get(&a), self.members.get(&b)) else { return };
        let (ms, known) = (rtt_us as f32 / 1000.0, self.rtt[a][b]);
        if a != b && (known.is_nan() || ms < NEWS * known) {
            self.rtt[a][b] = ms;
            self.rtt[b][a] = ms;
            self.redraw();
        }
    }

    /// Notes that an access point measured a subnet, in microseconds: the answer to a probe, or the timing of a download. The least of
    /// several counts.
    pub fn measured(&mut self, hierarchy: &Hierarchy, subnet: Subnet, by: AccessPoint, rtt_us: u32) {
        self.note(hierarchy, subnet, by, rtt_us, |known| if rtt_us as f32 >= NEWS * known as f32 { rtt_us.min(known) } else { rtt_us });
    }

    /// The same where the ways may have changed since: what was measured now counts, be it more or less than before.
    pub(crate) fn measured_anew(&mut self, hierarchy: &Hierarchy, subnet: Subnet, by: AccessPoint, rtt_us: u32) {
        self.note(hierarchy, subnet, by, rtt_us, |_| rtt_us);
    }

    fn note(&mut self, hierarchy: &Hierarchy, subnet: Subnet, by: AccessPoint, rtt_us: u32, now_known: impl Fn(u32) -> u32) {
        let Some(&by) = self.members.get(&by) else { return };
        if self.plane().is_none() {
            // Now, before the answer is in what a chart drawn anew would learn from.
            self.chart();
        }
        let memory = self.subnets.entry(subnet).or_default();
        match memory.answers.iter_mut().find(|(who, _)| *who == by) {
            Some((_, known)) => {
                let before = std::mem::replace(known, now_known(*known));
                let (less, more) = (before.min(*known), before.max(*known));
                if less as f32 >= NEWS * more as f32 {
                    return;
                }
            }
            None => memory.answers.push((by, rtt_us)),
        }
        self.by_age.remove(&memory.latest);
        self.observations += 1;
        memory.latest = self.observations as u64;
        self.by_age.insert(memory.latest, subnet);
        self.settle(hierarchy, subnet, Some(by));
        if self.subnets.len() > self.most_subnets
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.lose(hierarchy, oldest);
        }
    }

    /// The hierarchy is another one now: who is related to whom is read from it.
    pub(crate) fn relocate(&mut self, hierarchy: &Hierarchy) {
        self.relatives = Relatives::default();
        self.organisations.clear();
        for (subnet, memory) in &mut self.subnets {
            self.relatives.add(hierarchy, *subnet, &memory.here);
            memory.judged = None;
        }
        let subnets: Vec<Subnet> = self.subnets.keys().copied().collect();
        subnets.into_iter().for_each(|subnet| self.judge(hierarchy, subnet));
    }

    /// What is known of a subnet without asking any member: who measured it, in microseconds.
    pub fn measurements(&self, subnet: &Subnet) -> impl Iterator<Item = (AccessPoint, u32)> + '_ {
        let answers = self.subnets.get(subnet).into_iter().flat_map(|memory| &memory.answers);
        answers.map(|(who, rtt_us)| (self.introduced[*who].who, *rtt_us))
    }

    /// Whether the subnet answers faster from several places than light would allow if it were at one, or most subnets of its
    /// organisation that were measured do.
    pub(crate) fn anycast(&self, hierarchy: &Hierarchy, subnet: &Subnet) -> bool {
        match self.subnets.get(subnet).and_then(|memory| memory.judged) {
            Some((_, everywhere)) => everywhere,
            None => hierarchy.locate(subnet.first()).is_some_and(|position| {
                let spread = self.organisations.get(&hierarchy.organisation(position)).copied().unwrap_or_default();
                spread.everywhere >= MIN_EVERYWHERE && 2 * spread.everywhere >= spread.measured
            }),
        }
    }

    /// How many answers were noted, since the start.
    pub fn observations(&self) -> usize {
        self.observations
    }

    /// Whether two of the answers (access point, milliseconds) are too fast for one place: the countries of these access points are
    /// farther apart than light comes on the way over a server that answers so. Where the access points' own round-trip times do
    /// not fit their countries, that says nothing.
    pub(super) fn faster_than_light(&self, answers: &[(usize, f32)]) -> bool {
        if answers.len() < 2 || self.plane().is_some() {
            return false;
        }
        let country = |who: usize| self.introduced[who].country.map(places_of).filter(|places| !places.is_empty());
        let too_fast = |(a, near): &(usize, f32), (b, far): &(usize, f32)| {
            let (Some(here), Some(there)) = (country(*a), country(*b)) else { return false };
            let light_ms = (shortest_km(here, there) - BLUR_KM) / LIGHT_KM_PER_MS;
            near + far < light_ms && self.rtt[*a][*b] > light_ms
        };
        answers.iter().enumerate().any(|(nth, one)| answers[..nth].iter().any(|other| too_fast(one, other)))
    }

    pub(super) fn index(&self, who: AccessPoint) -> Option<usize> {
        self.members.get(&who).copied()
    }

    /// What the access points in `open` would measure of a subnet that gave these answers (access point, milliseconds); columns are
    /// indices into `open` of those that are considered.
    pub(super) fn hypotheses(
        &self,
        hierarchy: &Hierarchy,
        subnet: Subnet,
        answers: &[(usize, f32)],
        open: &[usize],
    ) -> (Vec<usize>, Hypotheses) {
        if let Some(plane) = self.plane() {
            return plane.hypotheses(answers, open);
        }
        let chart = self.chart();
        chart.hypotheses(self.relatives.expected_nearness(chart, hierarchy, subnet), answers, open)
    }

    fn plane(&self) -> Option<&Plane> {
        self.plane.get_or_init(|| Plane::fit(&self.rtt)).as_ref()
    }

    /// A chart of the access points, corrected by all that subnets answered.
    fn chart(&self) -> &Chart {
        self.chart.get_or_init(|| {
            let countries: Vec<_> = self.introduced.iter().map(|introduced| introduced.country).collect();
            let mut chart = Chart::new(&countries, &self.rtt);
            for memory in self.by_age.values().filter_map(|subnet| self.subnets.get(subnet)) {
                chart.learn(&memory.here, &in_ms(&memory.answers));
            }
            chart
        })
    }

    fn redraw(&mut self) {
        self.chart = OnceLock::new();
        self.plane = OnceLock::new();
    }

    /// Finds out where a subnet is after what it answered; the chart learns from the newest answer.
    fn settle(&mut self, hierarchy: &Hierarchy, subnet: Subnet, newest: Option<usize>) {
        let flat = self.plane().is_some();
        self.judge(hierarchy, subnet);
        let Some(memory) = self.subnets.get_mut(&subnet) else { return };
        let answers = in_ms(&memory.answers);
        if flat {
            if let Some(plane) = self.plane.get_mut().and_then(Option::as_mut).filter(|_| answers.len() > 1) {
                plane.learn(&answers);
            }
            return;
        }
        self.relatives.remove(hierarchy, subnet, &memory.here);
        let Some(chart) = self.chart.get_mut() else { return };
        memory.here = chart.settle(self.relatives.expected_nearness(chart, hierarchy, subnet), &answers);
        let new: Vec<(usize, f32)> = answers.into_iter().filter(|(who, _)| Some(*who) == newest).collect();
        chart.learn(&memory.here, &new);
        self.relatives.add(hierarchy, subnet, &memory.here);
    }

    /// Counts a subnet that several measured for its organisation.
    fn judge(&mut self, hierarchy: &Hierarchy, subnet: Subnet) {
        let Some(memory) = self.subnets.get(&subnet).filter(|memory| memory.answers.len() > 1) else { return };
        let Some(position) = hierarchy.locate(subnet.first()) else { return };
        let organisation = hierarchy.organisation(position);
        let everywhere = self.faster_than_light(&in_ms(&memory.answers));
        let before = memory.judged;
        self.uncount(before);
        let spread = self.organisations.entry(organisation).or_default();
        spread.measured += 1;
        spread.everywhere += u32::from(everywhere);
        if let Some(memory) = self.subnets.get_mut(&subnet) {
            memory.judged = Some((organisation, everywhere));
        }
    }

    fn uncount(&mut self, judged: Option<(OrganisationId, bool)>) {
        let Some((organisation, everywhere)) = judged else { return };
        if let Some(spread) = self.organisations.get_mut(&organisation) {
            spread.measured -= 1;
            spread.everywhere -= u32::from(everywhere);
            if spread.measured == 0 {
                self.organisations.remove(&organisation);
            }
        }
    }

    fn lose(&mut self, hierarchy: &Hierarchy, subnet: Subnet) {
        if let Some(memory) = self.subnets.remove(&subnet) {
            self.relatives.remove(hierarchy, subnet, &memory.here);
            self.uncount(memory.judged);
        }
    }

    /// Drops who left, and gives those who stay new indices.
    fn sort_anew(&mut self, hierarchy: &Hierarchy) {
        let old = std::mem::take(self);
        let stays: Vec<usize> = old.members.values().copied().collect();
        let new: BTreeMap<usize, usize> = stays.iter().enumerate().map(|(new, old)| (*old, new)).collect();
        self.members = old.members.keys().enumerate().map(|(new, who)| (*who, new)).collect();
        self.introduced = stays.iter().map(|index| old.introduced[*index].clone()).collect();
        self.rtt = stays.iter().map(|a| stays.iter().map(|b| old.rtt[*a][*b]).collect()).collect();
        self.observations = old.observations;
        for (latest, subnet) in old.by_age {
            let Some(memory) = old.subnets.get(&subnet) else { continue };
            let answers: Vec<_> = memory.answers.iter().filter_map(|(who, rtt_us)| Some((*new.get(who)?, *rtt_us))).collect();
            if !answers.is_empty() {
                self.by_age.insert(latest, subnet);
                self.subnets.insert(subnet, Memory { answers, latest, ..Memory::default() });
                if self.plane().is_none() {
                    self.chart();
                }
                self.settle(hierarchy, subnet, None);
            }
        }
        self.redraw();
    }
}

fn in_ms(answers: &[(usize, u32)]) -> Vec<(usize, f32)> {
    answers.iter().map(|(who, rtt_us)| (*who, *rtt_us as f32 / 1000.0)).collect()
}
