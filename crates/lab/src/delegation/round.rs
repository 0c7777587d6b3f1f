//! One round: some nodes chosen as crawlers, others put into a random order as sites, and the round-trip times between them.

use super::{
    distances::Distances,
    nodes::{Node, Nodes},
};
use nearcrawl_hierarchy::Hierarchy;
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::{fmt, net::IpAddr};

/// How crawlers are chosen among the nodes that probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Apart: the first at random, each further one where the nearest crawler so far is farthest.
    Spread,
    /// At random, however close they stand.
    Random,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Placement::Spread => "spread",
            Placement::Random => "random",
        })
    }
}

/// Why a round cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExperimentError {
    /// More crawlers than nodes that can be one.
    #[error("{asked} crawlers are too many: only {there} nodes have round-trip times to at least half of the targets; ask for fewer")]
    Crawlers {
        /// How many were asked for.
        asked: usize,
        /// How many can be had.
        there: usize,
    },
    /// No room to keep the round-trip times.
    #[error("{crawlers} crawlers and {sites} sites are more pairs than fit ({}); ask for fewer", super::distances::MAX_CELLS)]
    Pairs {
        /// How many crawlers.
        crawlers: usize,
        /// How many sites.
        sites: usize,
    },
    /// Nothing to evaluate.
    #[error(
        "only {sites} targets have an address and round-trip times from all {crawlers} crawlers, and none is left to evaluate; ask for fewer crawlers, or train on a smaller share"
    )]
    Sites {
        /// How many crawlers.
        crawlers: usize,
        /// How many sites.
        sites: usize,
    },
}

/// One of the crawlers.
#[derive(Clone, Debug)]
pub struct Crawler {
    /// Its name in the swarm. Names are drawn, so that their order means nothing.
    pub who: AccessPoint,
    /// Its address, if known.
    pub address: Option<IpAddr>,
    /// Its country, if the nodes' file says so.
    pub country: Option<[u8; 2]>,
    /// The smallest subnet around its address, which is its own from the start (IPMicra §4.1).
    pub subnet: Option<Subnet>,
    /// The part of that around its address ([`Hierarchy::unit_of`]).
    pub unit: Option<Subnet>,
}

/// One of the sites.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// The smallest registered subnet around its address: what the paper delegates.
    pub subnet: Subnet,
    /// That subnet, or if it is large the part of it around the address ([`Hierarchy::unit_of`]): what the daemons delegate.
    pub unit: Subnet,
    /// The position of that in the hierarchy, if it is registered.
    pub position: Option<u32>,
}

/// The crawlers and sites of one round.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// The crawlers, in the order of their names.
    pub crawlers: Vec<Crawler>,
    /// The sites, in the order in which they are delegated.
    pub sites: Vec<Site>,
    /// How many of the sites only initialise.
    pub initialising: usize,
    /// Whether whole registered subnets are delegated; see [`Setup::whole_subnets`].
    pub whole_subnets: bool,
    /// Whether the times of downloads are learnt from; see [`Setup::downloads_teach`].
    pub downloads_teach: bool,
    /// In milliseconds, a row of all crawlers for each site.
    to_sites: Vec<f32>,
    /// In milliseconds, a row of all crawlers for each crawler; not a number where unknown.
    between: Vec<f32>,
}

/// How a round is set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many crawlers take part.
    pub crawlers: usize,
    /// How they are chosen.
    pub placement: Placement,
    /// The most sites; all without a limit.
    pub sites: Option<usize>,
    /// The share of the sites that initialises, 0 to below 1.
    pub train: f64,
    /// Whether `nearcrawl`, too, gives away whole registered subnets, however large.
    pub whole_subnets: bool,
    /// Whether `nearcrawl` learns from the owners' downloads, too: each measures the round-trip time to its site, without a probe.
    pub downloads_teach: bool,
}

impl Round {
    /// Sets up the round that belongs to this seed.
    pub(crate) fn new(
        setup: &Setup,
        nodes: &Nodes,
        distances: &Distances,
        hierarchy: &Hierarchy,
        seed: u64,
    ) -> Result<Round, ExperimentError> {
        let mut random = StdRng::seed_from_u64(seed);
        let able = able(nodes, distances).0;
        if setup.crawlers > able.len() {
            return Err(ExperimentError::Crawlers { asked: setup.crawlers, there: able.len() });
        }
        // Daemons know how far they are from each other. In a file of measurements nothing is known between two nodes that only probed.
        let known: Vec<usize> = able.iter().copied().filter(|node| is_target(&nodes.list()[*node])).collect();
        let able = if setup.crawlers <= known.len() { known } else { able };
        let chosen = match setup.placement {
            Placement::Spread => spread(&able, setup.crawlers, distances, &mut random),
            Placement::Random => {
                let mut able = able;
                able.shuffle(&mut random);
                able.truncate(setup.crawlers);
                able
            }
        };
        let mut named: Vec<(AccessPoint, usize)> = chosen.iter().map(|node| (AccessPoint(random.random()), *node)).collect();
        named.sort_unstable();
        let crawlers: Vec<usize> = named.iter().map(|(_, node)| *node).collect();

        let mut is_crawler = vec![false; nodes.list().len()];
        crawlers.iter().for_each(|node| is_crawler[*node] = true);
        let mut sites = targets(nodes);
        sites.retain(|site| !is_crawler[*site] && crawlers.iter().all(|crawler| distances.probe_ms(*crawler, *site).is_some()));
        sites.shuffle(&mut random);
        sites.truncate(setup.sites.unwrap_or(usize::MAX));
        if sites.len().max(crawlers.len()).saturating_mul(crawlers.len()) > super::distances::MAX_CELLS {
            return Err(ExperimentError::Pairs { crawlers: crawlers.len(), sites: sites.len() });
        }
        let initialising = (sites.len() as f64 * setup.train).round() as usize;
        if initialising >= sites.len() {
            return Err(ExperimentError::Sites { crawlers: crawlers.len(), sites: sites.len() });
        }

        let table = |rows: &[usize], cell: &dyn Fn(usize, usize) -> Option<f32>| -> Vec<f32> {
            rows.iter().flat_map(|row| crawlers.iter().map(move |crawler| cell(*crawler, *row).unwrap_or(f32::NAN))).collect()
        };
        Ok(Round {
            to_sites: table(&sites, &|crawler, site| distances.probe_ms(crawler, site)),
            between: table(&crawlers, &|a, b| distances.between_ms(a, b)),
            crawlers: named.iter().map(|(who, node)| crawler(*who, nodes, *node, hierarchy)).collect(),
            sites: sites.iter().filter_map(|site| nodes.list()[*site].address).map(|address| site(address, hierarchy)).collect(),
            initialising,
            whole_subnets: setup.whole_subnets,
            downloads_teach: setup.downloads_teach,
        })
    }

    /// What a crawler's probe of a site gives, in milliseconds.
    pub(crate) fn probe_ms(&self, site: usize, crawler: usize) -> f32 {
        self.row(site)[crawler]
    }

    /// What all crawlers' probes of a site would give, in milliseconds.
    pub(crate) fn row(&self, site: usize) -> &[f32] {
        &self.to_sites[site * self.crawlers.len()..][..self.crawlers.len()]
    }

    /// The round-trip time between two crawlers in milliseconds, if it was measured.
    pub(crate) fn between_ms(&self, a: usize, b: usize) -> Option<f32> {
        let ms = self.between[a * self.crawlers.len() + b];
        (!ms.is_nan()).then_some(ms)
    }

    /// How many pairs of crawlers do not know how far they are from each other.
    pub(crate) fn unknown_pairs(&self) -> usize {
        let count = self.crawlers.len();
        (0..count).map(|a| (0..a).filter(|b| self.between[a * count + b].is_nan()).count()).sum()
    }

    /// The index of a crawler by its name.
    pub(crate) fn find(&self, who: AccessPoint) -> Option<usize> {
        self.crawlers.binary_search_by_key(&who, |crawler| crawler.who).ok()
    }
}

/// A round-trip time as a probe reports it, in microseconds; nothing is nearer than one.
pub(crate) fn microseconds(ms: f32) -> u32 {
    (f64::from(ms) * 1000.0).round().max(1.0) as u32
}

/// The nodes that can be crawlers: they probed at least half of the targets. And how many probed less than that.
pub fn able(nodes: &Nodes, distances: &Distances) -> (Vec<usize>, usize) {
    let targets = targets(nodes);
    let sources = nodes.list().iter().enumerate().filter(|(index, node)| node.is_source && distances.probes_of(*index));
    let enough = |source: usize| match distances {
        Distances::Plane(_) => true,
        Distances::Measured { .. } => {
            let there = targets.iter().filter(|target| distances.probe_ms(source, **target).is_some()).count();
            there > 0 && 2 * there >= targets.len()
        }
    };
    let (able, lacking): (Vec<usize>, Vec<usize>) = sources.map(|(index, _)| index).partition(|source| enough(*source));
    (able, lacking.len())
}

/// The nodes that can be sites.
fn targets(nodes: &Nodes) -> Vec<usize> {
    nodes.list().iter().enumerate().filter(|(_, node)| is_target(node)).map(|(index, _)| index).collect()
}

fn is_target(node: &Node) -> bool {
    node.is_target && node.address.is_some()
}

/// Greedy farthest-point placement. A pair that was never measured has distance zero, so no node is chosen because its distances are
/// unknown.
fn spread(able: &[usize], count: usize, distances: &Distances, random: &mut StdRng) -> Vec<usize> {
    let mut chosen = Vec::with_capacity(count);
    let mut nearest = vec![f32::INFINITY; able.len()];
    let mut next = random.random_range(0..able.len().max(1));
    while chosen.len() < count {
        chosen.push(able[next]);
        nearest[next] = f32::NEG_INFINITY;
        for (index, node) in able.iter().enumerate() {
            let ms = distances.between_ms(able[next], *node).unwrap_or(0.0);
            nearest[index] = nearest[index].min(ms);
        }
        // Of several equally far the first; the order of the file is as good as any.
        let farthest = nearest.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
        next = farthest.map_or(0, |(index, _)| index);
    }
    chosen
}

fn crawler(who: AccessPoint, nodes: &Nodes, node: usize, hierarchy: &Hierarchy) -> Crawler {
    let node = &nodes.list()[node];
    let subnet = node.address.map(|address| hierarchy.subnet_of(address));
    let unit = node.address.map(|address| hierarchy.unit_of(address));
    Crawler { who, address: node.address, country: node.country, subnet, unit }
}

fn site(address: IpAddr, hierarchy: &Hierarchy) -> Site {
    let position = hierarchy.locate(address).map(|position| position.0);
    Site { subnet: hierarchy.subnet_of(address), unit: hierarchy.unit_of(address), position }
}
