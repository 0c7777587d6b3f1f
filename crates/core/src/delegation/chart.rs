//! Chart of expected round-trip times from each access point to a subnet: the globe with landmarks, corrected by measurements.
//!
//! A landmark is a place of the globe, or an access point: whatever lies near an access point measures what that one measures.
//! From a place, a round-trip time follows from the distance; what access points and settled subnets near it measured corrects
//! that. So the chart begins with geography and ends with experience.

use super::{
    globe::{kilometres, places_of, usual_ms},
    hypotheses::{Hypotheses, to_log, to_ms},
    places::PLACES,
};
use std::{collections::BTreeMap, ops::Range, sync::OnceLock};

/// Corrections fade with the distance from where they were measured, by 1/e in so many kilometres.
const FADING_KM: f32 = 800.0;

/// Farther away less than a hundredth is left of any correction, which is too little to note: so far away it is not even computed.
const FADED_KM: f32 = 3_800.0;

/// As many answers' worth of doubt remains in every correction.
const DOUBT: f32 = 1.0;

/// A correction is at most this factor (e to the power of one), for a single wrong address must not bend the map.
const MAX_CORRECTION: f32 = 1.0;

/// Standard deviation of the logarithm of a round-trip time predicted from a place, and from an access point: how much routes vary.
const ROUTES_FROM_PLACE: f32 = 0.15;
const ROUTES_FROM_ACCESS_POINT: f32 = 0.15;

/// What a subnet's place within a city or region, and its access line, add or take: milliseconds.
const REGION_MS: f32 = 4.0;

/// What an access point is expected to measure of a subnet beside it, in milliseconds, and how that varies (as a logarithm).
const BESIDE_MS: f32 = 2.0;
const BESIDE_SPREAD: f32 = 0.6;

/// How much of what is registered in a country is thought to be near an access point there, if there is one.
const SHARE_OF_ACCESS_POINTS: f32 = 0.5;

/// How much of what is registered in a country is thought to be in its neighbourhood, and how far that reaches.
const SHARE_OF_NEIGHBOURS: f32 = 0.15;
const NEIGHBOURHOOD_KM: f32 = 800.0;

/// By what share and by how many milliseconds a triangle's side may be longer than the other two together.
const SLACK_SHARE: f32 = 0.1;
const SLACK_MS: f32 = 0.5;

/// How often round-trip times do not keep to triangles at all, because a member's route makes a detour.
const SHARE_OF_DETOURS: f32 = 0.2;

/// What is known to lie between two bounds varies by this share of their distance, and at least so much (as logarithms).
const SPREAD_WITHIN_BOUNDS: f32 = 0.3;
const MIN_SPREAD: f32 = 0.03;

/// Degrees of freedom of Student's distribution, by which answers are judged: one absurd answer cannot rule out all places.
const TAIL: f32 = 4.0;

/// Guesses less likely than this, and those beyond a number, are not worth computing.
const MIN_WEIGHT: f32 = 1e-4;
const MAX_GUESSES: usize = 96;

/// How many access points are considered for a probe.
const SHORTLIST: usize = 24;

/// How many landmarks are remembered of a settled subnet, and how likely each must be.
const MAX_REMEMBERED: usize = 8;
const MIN_REMEMBERED: f32 = 0.01;

/// Landmarks and how likely each is.
pub(super) type Whereabouts = Vec<(u32, f32)>;

/// The landmarks, and the round-trip times to be expected from each: places first, then access points as introduced.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    access_points: usize,
    /// The place that explains each access point's round-trip times best.
    at: Vec<usize>,
    /// By landmark and access point: the logarithm expected without corrections, and with.
    uncorrected: Vec<f32>,
    expected: Vec<f32>,
    /// By landmark and access point: standard deviation of the logarithm.
    spread: Vec<f32>,
    /// By landmark and access point: weighted sum of corrections, and of weights.
    corrections: Vec<f32>,
    evidence: Vec<f32>,
    /// In which country each access point says it is.
    residence: Vec<Option<[u8; 2]>>,
    /// Where subnets of each country may be, computed for those that are asked for, and subnets of which nothing is known.
    countries: BTreeMap<[u8; 2], OnceLock<Vec<f32>>>,
    anywhere: Vec<f32>,
    /// Between access points in milliseconds; not a number where unknown.
    between: Vec<Vec<f32>>,
}

impl Chart {
    /// Draws the chart of access points in these countries with these round-trip times in milliseconds, NaN where unknown.
    pub(super) fn new(countries: &[Option<[u8; 2]>], rtt: &[Vec<f32>]) -> Chart {
        let access_points = countries.len();
        let cells = (PLACES.len() + access_points) * access_points;
        let mut chart = Chart {
            access_points,
            at: whereabouts(countries, rtt),
            uncorrected: vec![0.0; cells],
            expected: vec![0.0; cells],
            spread: vec![0.0; cells],
            corrections: vec![0.0; cells],
            evidence: vec![0.0; cells],
            residence: countries.to_vec(),
            countries: PLACES.iter().map(|place| (place.0, OnceLock::new())).collect(),
            anywhere: Vec::new(),
            between: rtt.to_vec(),
        };
        chart.measure_distances();
        for (from, row) in rtt.iter().enumerate() {
            let known = row.iter().enumerate().filter(|(who, ms)| *who != from && !ms.is_nan());
            let known: Vec<(usize, f32)> = known.map(|(who, ms)| (who, to_log(*ms))).collect();
            chart.correct(chart.at[from], 1.0, &known);
        }
        chart.enter_access_points(rtt);
        chart.judge_spread();
        chart.spread_anywhere();
        chart
    }

    fn cell(&self, landmark: usize, access_point: usize) -> usize {
        landmark * self.access_points + access_point
    }

    fn measure_distances(&mut self) {
        for place in 0..PLACES.len() {
            for who in 0..self.access_points {
                let cell = self.cell(place, who);
                self.uncorrected[cell] = to_log(usual_ms(kilometres(place, self.at[who])));
                self.expected[cell] = self.uncorrected[cell];
            }
        }
    }

    /// Something at `place` measured these (access point, logarithm): what lies around will measure the like.
    fn correct(&mut self, place: usize, certainty: f32, measured: &[(usize, f32)]) {
        for near in 0..PLACES.len() {
            let away = kilometres(place, near);
            if away > FADED_KM {
                continue;
            }
            let weight = certainty * (-away / FADING_KM).exp();
            if weight < 0.01 {
                continue;
            }
            for (who, log) in measured {
                let off = log - self.uncorrected[self.cell(place, *who)];
                self.note(near, *who, weight, off);
            }
        }
    }

    fn note(&mut self, landmark: usize, who: usize, weight: f32, off: f32) {
        let cell = self.cell(landmark, who);
        self.corrections[cell] += weight * off.clamp(-MAX_CORRECTION, MAX_CORRECTION);
        self.evidence[cell] += weight;
        self.expected[cell] = self.uncorrected[cell] + self.corrections[cell] / (self.evidence[cell] + DOUBT);
    }

    /// Access points are landmarks that know their round-trip times.
    fn enter_access_points(&mut self, rtt: &[Vec<f32>]) {
        for (landmark, row) in rtt.iter().enumerate() {
            for (who, ms) in row.iter().enumerate() {
                let cell = self.cell(PLACES.len() + landmark, who);
                self.uncorrected[cell] = match ms {
                    _ if landmark == who => to_log(BESIDE_MS),
                    ms if ms.is_nan() => self.expected[self.cell(self.at[landmark], who)],
                    ms => to_log(*ms),
                };
                self.expected[cell] = self.uncorrected[cell];
            }
        }
    }

    fn judge_spread(&mut self) {
        for landmark in 0..PLACES.len() + self.access_points {
            let routes = if landmark < PLACES.len() { ROUTES_FROM_PLACE } else { ROUTES_FROM_ACCESS_POINT };
            for who in 0..self.access_points {
                let cell = self.cell(landmark, who);
                let region = REGION_MS / (to_ms(self.expected[cell]) + 2.0);
                let beside = landmark == PLACES.len() + who;
                self.spread[cell] = if beside { BESIDE_SPREAD } else { routes.hypot(region) };
            }
        }
    }

    fn spread_anywhere(&mut self) {
        // Of what nothing is known is likelier in the large countries, which have several places, and near access points.
        let sizes: Vec<f32> = PLACES.iter().map(|place| place.3 / 100.0 * places_of(place.0).len() as f32).collect();
        let whole: f32 = sizes.iter().sum();
        self.anywhere = sizes.iter().map(|size| (1.0 - SHARE_OF_ACCESS_POINTS) * size / whole).collect();
        self.anywhere.extend(self.at.iter().map(|_| SHARE_OF_ACCESS_POINTS / self.access_points as f32));
    }

    /// Where a subnet may be that is registered in this country.
    fn within(&self, country: [u8; 2]) -> Vec<f32> {
        let own = places_of(country);
        let away = |place: usize| own.clone().map(|own| kilometres(own, place)).fold(f32::INFINITY, f32::min);
        let nearness: Vec<f32> = (0..PLACES.len()).map(|place| (-away(place) / NEIGHBOURHOOD_KM).exp()).collect();
        let resident = |who: usize| own.contains(&self.at[who]) && self.residence[who].is_none_or(|c| c == country);
        let residents = (0..self.access_points).filter(|who| resident(*who)).count();
        let beside = if residents == 0 { 0.0 } else { SHARE_OF_ACCESS_POINTS };
        let abroad: f32 = (0..PLACES.len()).filter(|place| !own.contains(place)).map(|place| nearness[place]).sum::<f32>()
            + self.at.iter().map(|place| nearness[*place]).sum::<f32>();
        let place = |place: usize| {
            let home = (1.0 - SHARE_OF_NEIGHBOURS) * (1.0 - beside) * PLACES[place].3 / 100.0;
            if own.contains(&place) { home } else { SHARE_OF_NEIGHBOURS * nearness[place] / abroad }
        };
        let access_point = |who: usize| {
            let home = (1.0 - SHARE_OF_NEIGHBOURS) * beside / residents.max(1) as f32;
            if resident(who) { home } else { SHARE_OF_NEIGHBOURS * nearness[self.at[who]] / abroad }
        };
        (0..PLACES.len()).map(place).chain((0..self.access_points).map(access_point)).collect()
    }

    /// How likely each landmark is for a subnet that is registered in this country, and for one of which nothing is known.
    pub(super) fn country(&self, country: [u8; 2]) -> Option<&[f32]> {
        self.countries.get(&country).map(|of| of.get_or_init(|| self.within(country)).as_slice())
    }

    /// See [`Chart::country`].
    pub(crate) fn anywhere(&self) -> &[f32] {
        &self.anywhere
    }

    /// How likely each landmark is after these answers (access point, milliseconds), if it was so likely before.
    fn after(&self, mut weights: Vec<f32>, answers: &[(usize, f32)]) -> Vec<f32> {
        for (who, ms) in answers {
            let log = to_log(*ms);
            for (landmark, weight) in weights.iter_mut().enumerate() {
                let cell = self.cell(landmark, *who);
                let z = (log - self.expected[cell]) / self.spread[cell];
                *weight *= (1.0 + z * z / TAIL).powf(-(TAIL + 1.0) / 2.0) / self.spread[cell];
            }
            let sum: f32 = weights.iter().sum();
            weights.iter_mut().for_each(|weight| *weight /= sum.max(f32::MIN_POSITIVE));
        }
        weights
    }

    /// Where a subnet is that gave these answers, as far as it is worth remembering.
    pub(super) fn settle(&self, prior: Vec<f32>, answers: &[(usize, f32)]) -> Whereabouts {
        let after = self.after(prior, answers).into_iter().enumerate().filter(|(_, weight)| *weight > MIN_REMEMBERED);
        let mut likely: Whereabouts = after.map(|(landmark, weight)| (landmark as u32, weight)).collect();
        likely.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        likely.truncate(MAX_REMEMBERED);
        likely
    }

    /// Learns from answers (access point, milliseconds) of a subnet that is probably here.
    pub(super) fn learn(&mut self, here: &Whereabouts, answers: &[(usize, f32)]) {
        let logs: Vec<(usize, f32)> = answers.iter().map(|(who, ms)| (*who, to_log(*ms))).collect();
        for (landmark, weight) in here.iter().map(|(landmark, weight)| (*landmark as usize, *weight)) {
            if landmark < PLACES.len() {
                self.correct(landmark, weight, &logs);
            } else {
                for (who, log) in logs.iter().filter(|(who, _)| PLACES.len() + who != landmark) {
                    let off = log - self.uncorrected[self.cell(landmark, *who)];
                    self.note(landmark, *who, weight, off);
                }
            }
        }
    }

    /// What the access points in `open` would measure of a subnet that gave these answers (access point, milliseconds) and was so
    /// likely to be at each landmark before; and which of them are considered: indices into `open`, the columns of the guesses.
    pub(crate) fn hypotheses(&self, prior: Vec<f32>, answers: &[(usize, f32)], open: &[usize]) -> (Vec<usize>, Hypotheses) {
        let after = self.after(prior, answers);
        let mut likely: Vec<(usize, f32)> = after.into_iter().enumerate().filter(|(_, weight)| *weight > MIN_WEIGHT).collect();
        likely.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        likely.truncate(MAX_GUESSES);
        let columns = self.shortlist(&likely, open);
        let whole: f32 = likely.iter().map(|(_, weight)| weight).sum();
        let bounds: Vec<(f32, f32)> = columns.iter().map(|column| self.bounds(answers, open[*column])).collect();
        let mut guesses = Hypotheses { columns: columns.len(), ..Hypotheses::default() };
        for (landmark, weight) in likely {
            let free: Vec<(f32, f32)> = columns
                .iter()
                .map(|column| self.cell(landmark, open[*column]))
                .map(|cell| (self.expected[cell], self.spread[cell]))
                .collect();
            let bound: Vec<(f32, f32)> = free.iter().zip(&bounds).map(|(foretold, bounds)| keep(*foretold, *bounds)).collect();
            let weight = weight / whole;
            if bound == free {
                guesses.add(weight, &free);
            } else {
                guesses.add(weight * (1.0 - SHARE_OF_DETOURS), &bound);
                guesses.add(weight * SHARE_OF_DETOURS, &free);
            }
        }
        (columns, guesses)
    }

    /// Between which logarithms an access point's answer must lie after these answers (access point, milliseconds), by the triangles
    /// of the two access points and the subnet.
    fn bounds(&self, answers: &[(usize, f32)], who: usize) -> (f32, f32) {
        let (mut low, mut high) = (0.0f32, f32::MAX);
        for (asked, ms) in answers {
            let between = self.between[*asked][who];
            if !between.is_nan() {
                low = low.max((ms - between).abs() - SLACK_SHARE * ms.max(between) - SLACK_MS);
                high = high.min(ms + between + 2.0 * SLACK_MS);
            }
        }
        (to_log(low.min(high)), to_log(high))
    }

    /// Those that are nearest to likely landmarks, or not much farther than the nearest.
    fn shortlist(&self, likely: &[(usize, f32)], open: &[usize]) -> Vec<usize> {
        let mut promise = vec![0.0f32; open.len()];
        if open.len() > SHORTLIST {
            for (landmark, weight) in likely {
                let row = &self.expected[self.cell(*landmark, 0)..self.cell(*landmark + 1, 0)];
                let least = open.iter().map(|who| row[*who]).fold(f32::INFINITY, f32::min);
                for (promise, who) in promise.iter_mut().zip(open) {
                    // Who is a third farther than the nearest counts for less than half of it.
                    *promise += weight * (3.0 * (least - row[*who])).exp();
                }
            }
        }
        let mut short: Vec<usize> = (0..open.len()).collect();
        short.sort_by(|a, b| promise[*b].total_cmp(&promise[*a]).then(a.cmp(b)));
        short.truncate(SHORTLIST);
        short
    }
}

/// What is predicted (logarithm, spread), kept within bounds.
fn keep((expected, spread): (f32, f32), (low, high): (f32, f32)) -> (f32, f32) {
    (expected.clamp(low, high), spread.min((SPREAD_WITHIN_BOUNDS * (high - low)).max(MIN_SPREAD)))
}

/// At which place of its country is each access point? Where its round-trip times to the others fit their places best.
fn whereabouts(countries: &[Option<[u8; 2]>], rtt: &[Vec<f32>]) -> Vec<usize> {
    let choices =
        |country: &Option<[u8; 2]>| -> Range<usize> { country.map(places_of).filter(|own| !own.is_empty()).unwrap_or(0..PLACES.len()) };
    let choices: Vec<Range<usize>> = countries.iter().map(choices).collect();
    let largest = |own: &Range<usize>| own.clone().max_by(|a, b| PLACES[*a].3.total_cmp(&PLACES[*b].3)).unwrap_or(0);
    let mut at: Vec<usize> = choices.iter().map(largest).collect();
    // Each in turn, as the others stand; four rounds, for by then no member moves.
    for _ in 0..4 {
        for (who, own) in choices.iter().enumerate().filter(|(_, own)| own.len() > 1) {
            let misfit = |place: usize| -> f32 {
                let known = rtt[who].iter().enumerate().filter(|(other, ms)| *other != who && !ms.is_nan());
                let off = known.map(|(other, ms)| {
                    let z = (to_log(*ms) - to_log(usual_ms(kilometres(place, at[other])))) / 0.3;
                    (TAIL + 1.0) / 2.0 * (1.0 + z * z / TAIL).ln()
                });
                off.sum::<f32>() - 0.5 * PLACES[place].3.ln()
            };
            let misfits: Vec<f32> = own.clone().map(misfit).collect();
            let best = misfits.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(nth, _)| nth);
            at[who] = own.start + best;
        }
    }
    at
}
