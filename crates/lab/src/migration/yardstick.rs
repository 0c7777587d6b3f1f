//! Bounds that no placement can beat: for each site the best place; with limited capacities the linear program's.
//!
//! The program: minimise T, each site wholly somewhere (in parts, if need be), and no access point busy for longer than T. Any prices
//! y ≥ 0 of the access points that add up to 1 prove that T cannot be less than Σ over sites of min over access points of y · seconds (weak
//! duality); so the bound is certain, however the prices were found. They are found by making the busy dearer.

use super::world::World;

/// How often prices are corrected at most.
const ROUNDS: usize = 400;

/// They are left when so many corrections in a row raised the bound by less than a hundred-thousandth.
const MAX_STALLED: usize = 25;

/// How far above the bound the oracle's access points may be busy.
const SLACK: f64 = 0.003;

/// What no placement does better.
#[derive(Clone, Debug)]
pub(crate) struct Yardstick {
    /// The oracle's place of each site.
    pub places: Vec<u32>,
    /// What all sites together take there.
    pub total: f64,
    /// No placement is finished sooner than this.
    pub bound: f64,
}

impl Yardstick {
    /// Of this world as it is now. If `limited`, the oracle respects that each access point has only so much time.
    pub(super) fn of(world: &World, limited: bool) -> Yardstick {
        let (prices, bound) = prices(world);
        let places = if limited {
            let mut places = cheapest(world, &prices);
            spread(world, &prices, bound * (1.0 + SLACK), &mut places);
            places
        } else {
            cheapest(world, &vec![1.0; world.access_points()])
        };
        Yardstick { total: total(world, &places), places, bound }
    }
}

/// Of a world that is another one in every run: the best that could be done without ever moving, known only afterwards. Its total is the
/// mean of all runs, so that the mean of a rule's shares is its share of the whole.
pub(crate) fn in_hindsight(world: World, runs: usize) -> Vec<(usize, Yardstick)> {
    let mut sums = vec![0.0; world.sites() * world.access_points()];
    let mut course = world.clone();
    for run in 0..=runs {
        course.advance(run);
        for (site, sums) in sums.chunks_exact_mut(world.access_points().max(1)).enumerate() {
            sums.iter_mut().zip(course.row(site)).for_each(|(sum, seconds)| *sum += f64::from(*seconds));
        }
    }
    let least = |sums: &[f64]| (0..sums.len()).min_by(|a, b| sums[*a].total_cmp(&sums[*b])).unwrap_or(0) as u32;
    let places: Vec<u32> = sums.chunks_exact(world.access_points().max(1)).map(least).collect();
    let site = |site: usize| f64::from(world.sizes()[site]) * sums[site * world.access_points()..][places[site] as usize];
    let total = (0..world.sites()).map(site).sum::<f64>() / (runs + 1) as f64;
    let mut course = world;
    let yardstick = |run| {
        course.advance(run);
        (run, Yardstick { total, places: places.clone(), bound: prices(&course).1 })
    };
    (0..=runs).map(yardstick).collect()
}

/// What all sites together take at these places.
pub(super) fn total(world: &World, places: &[u32]) -> f64 {
    places.iter().enumerate().map(|(site, place)| world.seconds(site, *place as usize)).sum()
}

/// How long each access point is busy.
pub(super) fn loads(world: &World, places: &[u32]) -> Vec<f64> {
    let mut loads = vec![0.0; world.access_points()];
    for (site, place) in places.iter().enumerate() {
        loads[*place as usize] += world.seconds(site, *place as usize);
    }
    loads
}

/// Where each site is cheapest.
fn cheapest(world: &World, prices: &[f64]) -> Vec<u32> {
    (0..world.sites()).map(|site| least(world.row(site), prices).0 as u32).collect()
}

fn least(row: &[f32], prices: &[f64]) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (place, (seconds, price)) in row.iter().zip(prices).enumerate() {
        let cost = f64::from(*seconds) * price;
        if cost < best.1 {
            best = (place, cost);
        }
    }
    best
}

/// The best prices found, and the bound that they prove.
fn prices(world: &World) -> (Vec<f64>, f64) {
    let count = world.access_points();
    let mut prices = vec![1.0 / count.max(1) as f64; count];
    let (mut best, mut best_prices, mut patience) = (0.0, prices.clone(), 0);
    for round in 0..ROUNDS {
        let (mut bound, mut busy) = (0.0, vec![0.0; count]);
        for site in 0..world.sites() {
            let (place, cost) = least(world.row(site), &prices);
            let size = f64::from(world.sizes()[site]);
            bound += size * cost;
            busy[place] += size * f64::from(world.row(site)[place]);
        }
        patience = if bound > best * (1.0 + 1e-5) { 0 } else { patience + 1 };
        if bound > best {
            best = bound;
            best_prices.clone_from(&prices);
        }
        if patience > MAX_STALLED {
            break;
        }
        let mean = busy.iter().sum::<f64>() / count as f64;
        let step = 0.5 / (1.0 + round as f64 / 15.0);
        for (price, busy) in prices.iter_mut().zip(&busy) {
            *price *= (busy / mean).clamp(0.2, 5.0).powf(step);
        }
        let sum: f64 = prices.iter().sum();
        prices.iter_mut().for_each(|price| *price /= sum);
    }
    (best_prices, best)
}

/// Moves sites from where it is too much to where there is room, those first for which that is least dear.
fn spread(world: &World, prices: &[f64], most: f64, places: &mut [u32]) {
    let mut loads = loads(world, places);
    for _ in 0..20 {
        let mut moves = Vec::new();
        for (site, place) in places.iter().enumerate().filter(|(_, place)| loads[**place as usize] > most) {
            let row = world.row(site);
            let here = f64::from(row[*place as usize]) * prices[*place as usize];
            let roomy = (0..row.len()).filter(|other| loads[*other] + world.seconds(site, *other) <= most);
            let costs = roomy.map(|other| (f64::from(row[other]) * prices[other] / here, other));
            moves.extend(costs.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(dearer, other)| (dearer, site, other)));
        }
        if moves.is_empty() {
            return;
        }
        moves.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, site, other) in moves {
            let from = places[site] as usize;
            let there = world.seconds(site, other);
            if loads[from] > most && loads[other] + there <= most {
                loads[from] -= world.seconds(site, from);
                loads[other] += there;
                places[site] = other as u32;
            }
        }
    }
}
