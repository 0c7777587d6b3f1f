//! The made-up worlds of the experiment: how long sites take from where.
//!
//! The paper leaves their numbers open (§3.1), so here they are.
//!
//! A unit of a site's work takes 1 s at its perfect access point, drawn evenly, and between 1.5 and 4.05 s, drawn evenly, at every other
//! one. With this choice the paper's rule does at eight access points what was measured of it before (ALGORITHMS.md); it was made before
//! the default rule was tried. The rest are the experiment's own numbers:
//!
//! * sizes: one unit each, or log-normal with mean 1 (sigma 1 in logarithms);
//! * noise: each access takes longer or shorter by a log-normal factor of mean 1 and this standard deviation;
//! * access points that differ: the slowest takes 8 times as long for everything as the fastest, the others evenly between in
//!   proportion; hours in which one is not available lengthen everything in proportion, too;
//! * subnets: so many sites stand at one place and take the same from everywhere; one that is not of its kind (1 - purity) stands
//!   elsewhere;
//! * change: all perfect access points are drawn anew, never the same, and so are all other times.

use super::slices::Slices;
use crate::rng::normal;
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// Seconds for a unit of work at the perfect access point.
pub(crate) const PERFECT: f64 = 1.0;

/// Seconds for it elsewhere: from, to.
pub(crate) const ELSEWHERE: (f64, f64) = (1.5, 4.05);

/// How many times as long the slowest access point takes as the fastest, where they differ.
pub(crate) const SLOWEST: f64 = 8.0;

/// The standard deviation of the logarithms of sizes that differ.
pub(crate) const SIGMA: f64 = 1.0;

/// How large sites are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// One unit of work each.
    Equal,
    /// A few are large.
    LogNormal,
}

/// What access points can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// All the same, and never too much.
    Equal,
    /// Some are slower for everything, but nothing is too much for the fast ones.
    UnequalUnlimited,
    /// Some are slower, and all have to be done at the same time: a fast one can be full.
    Unequal,
}

/// One world, but for its seed.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How many sites.
    pub sites: usize,
    /// How many access points.
    pub access_points: usize,
    /// How large sites are.
    pub sizes: Sizes,
    /// The standard deviation of a single access's duration, as a share.
    pub noise: f64,
    /// What access points can do.
    pub capacity: Capacity,
    /// How many sites a subnet has.
    pub sites_per_subnet: usize,
    /// The share of sites that are like their subnet.
    pub purity: f64,
    /// After how many runs everything changes; never, if none.
    pub change_every: Option<usize>,
    /// Hours a day that each access point is available; 24 where none is said.
    pub hours: Vec<f64>,
}

/// A world at one of its runs.
#[derive(Clone, Debug)]
pub struct World {
    access_points: usize,
    sizes: Vec<f32>,
    /// For each site the row that is its own, or its subnet's.
    row_of: Vec<u32>,
    /// The row of each site's subnet.
    subnet_of: Vec<u32>,
    /// Seconds for a unit of work, the access points' speed included.
    rows: Vec<f32>,
    slowness: Vec<f64>,
    course: Course,
}

/// What changes from run to run.
#[derive(Clone, Debug)]
enum Course {
    Drawn { every: Option<usize>, seed: u64, draws: u64 },
    Measured { slices: Slices, columns: Vec<usize>, lines: Vec<usize> },
}

impl World {
    /// The world of this seed, before its first run.
    pub fn new(shape: &Shape, seed: u64) -> World {
        let mut rng = StdRng::seed_from_u64(seed);
        let count = shape.access_points;
        let sizes = sizes(shape.sizes, shape.sites, &mut rng);
        let subnets = shape.sites.div_ceil(shape.sites_per_subnet.max(1));
        let subnet_of: Vec<u32> = (0..shape.sites).map(|site| (site / shape.sites_per_subnet.max(1)) as u32).collect();
        let mut next = subnets as u32;
        let row_of = subnet_of.iter().map(|subnet| {
            if shape.sites_per_subnet > 1 && rng.random::<f64>() >= shape.purity {
                next += 1;
                next - 1
            } else {
                *subnet
            }
        });
        let row_of: Vec<u32> = row_of.collect();
        let slowness = slowness(shape, &mut rng);
        let mut world = World {
            access_points: count,
            sizes,
            row_of,
            subnet_of,
            rows: vec![0.0; next as usize * count],
            slowness,
            course: Course::Drawn { every: shape.change_every, seed: rng.random(), draws: 0 },
        };
        world.draw();
        world
    }

    /// The world of the slices: some of its nodes are access points, drawn, the others sites. Its time begins with the first slice.
    pub fn measured(slices: &Slices, shape: &Shape, seed: u64) -> World {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut nodes: Vec<usize> = (0..slices.nodes()).collect();
        for place in 0..shape.access_points.min(nodes.len()) {
            let other = rng.random_range(place..nodes.len());
            nodes.swap(place, other);
        }
        let (columns, others) = nodes.split_at(shape.access_points.min(nodes.len()));
        let mut lines: Vec<usize> =
            others.iter().copied().filter(|line| columns.iter().all(|column| slices.knows(*line, *column))).collect();
        lines.sort_unstable();
        let sites = lines.len();
        let sizes = sizes(shape.sizes, sites, &mut rng);
        let mut world = World {
            access_points: columns.len(),
            sizes,
            row_of: (0..sites as u32).collect(),
            subnet_of: (0..sites as u32).collect(),
            rows: vec![0.0; sites * columns.len()],
            slowness: slowness(shape, &mut rng),
            course: Course::Measured { slices: slices.clone(), columns: columns.to_vec(), lines },
        };
        world.advance(0);
        world
    }

    /// Goes on to this run; whether anything changed.
    pub fn advance(&mut self, run: usize) -> bool {
        match &self.course {
            Course::Drawn { every: Some(every), .. } if run > 0 && run.is_multiple_of(*every) => self.draw(),
            Course::Drawn { .. } => return false,
            Course::Measured { slices, columns, lines } => {
                for (row, line) in self.rows.chunks_exact_mut(columns.len().max(1)).zip(lines) {
                    for ((cell, column), slowness) in row.iter_mut().zip(columns).zip(&self.slowness) {
                        *cell = (slices.seconds(run, *line, *column) * slowness) as f32;
                    }
                }
            }
        }
        true
    }

    /// How many sites there are.
    pub fn sites(&self) -> usize {
        self.sizes.len()
    }

    /// How many access points.
    pub fn access_points(&self) -> usize {
        self.access_points
    }

    /// Units of work of each site.
    pub fn sizes(&self) -> &[f32] {
        &self.sizes
    }

    /// Seconds that a unit of the site's work takes from each access point.
    pub fn row(&self, site: usize) -> &[f32] {
        &self.rows[self.row_of[site] as usize * self.access_points..][..self.access_points]
    }

    /// The subnet of a site.
    pub fn subnet(&self, site: usize) -> usize {
        self.subnet_of[site] as usize
    }

    /// How many subnets there are.
    pub fn subnets(&self) -> usize {
        self.subnet_of.last().map_or(0, |last| *last as usize + 1)
    }

    /// Seconds that a unit of work of the subnet's kind of sites takes from each access point: what a probe of the subnet tells of.
    pub(crate) fn subnet_row(&self, subnet: usize) -> &[f32] {
        &self.rows[subnet * self.access_points..][..self.access_points]
    }

    /// Seconds that the site takes from there, on average.
    pub fn seconds(&self, site: usize, access_point: usize) -> f64 {
        f64::from(self.sizes[site]) * f64::from(self.row(site)[access_point])
    }

    fn draw(&mut self) {
        let Course::Drawn { seed, draws, .. } = &mut self.course else { return };
        *draws += 1;
        let mut rng = StdRng::seed_from_u64(seed.wrapping_add(*draws));
        for row in self.rows.chunks_exact_mut(self.access_points) {
            // Before the first draw there was none.
            let proper = |place: &usize| row[*place] / self.slowness[*place] as f32;
            let before = (0..row.len()).min_by(|a, b| proper(a).total_cmp(&proper(b))).filter(|place| row[*place] > 0.0);
            for cell in row.iter_mut() {
                *cell = rng.random_range(ELSEWHERE.0..ELSEWHERE.1) as f32;
            }
            let mut perfect = rng.random_range(0..row.len());
            if Some(perfect) == before && row.len() > 1 {
                perfect = (perfect + rng.random_range(1..row.len())) % row.len();
            }
            row[perfect] = PERFECT as f32;
        }
        for row in self.rows.chunks_exact_mut(self.access_points) {
            row.iter_mut().zip(&self.slowness).for_each(|(cell, slowness)| *cell *= *slowness as f32);
        }
    }
}

fn sizes(sizes: Sizes, sites: usize, rng: &mut StdRng) -> Vec<f32> {
    match sizes {
        Sizes::Equal => vec![1.0; sites],
        Sizes::LogNormal => (0..sites).map(|_| (SIGMA * normal(rng) - SIGMA * SIGMA / 2.0).exp() as f32).collect(),
    }
}

/// How many times as long everything takes at each access point as at the fastest that is always available.
fn slowness(shape: &Shape, rng: &mut StdRng) -> Vec<f64> {
    let count = shape.access_points;
    let steps = count.saturating_sub(1).max(1) as f64;
    let mut slowness: Vec<f64> = match shape.capacity {
        Capacity::Equal => vec![1.0; count],
        _ => (0..count).map(|place| SLOWEST.powf(place as f64 / steps)).collect(),
    };
    for place in 0..count {
        let other = rng.random_range(place..count);
        slowness.swap(place, other);
    }
    slowness.iter().enumerate().map(|(place, slowness)| slowness * 24.0 / shape.hours.get(place).copied().unwrap_or(24.0)).collect()
}
