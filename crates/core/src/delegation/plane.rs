//! Round-trip times as distances in a plane: two answers leave two points, three leave one.
//!
//! Simulated networks are so (OverSim's is), and a single country nearly. The access points are laid out by their own round-trip
//! times; if these fit, and only then, answers are read as circles around them.

use super::hypotheses::{Hypotheses, to_log};

/// Coordinates in milliseconds: the distance of two points is the round-trip time between them.
pub(super) type Point = [f32; 2];

/// The plane is believed if half of the round-trip times between access points differ from it by less than this share.
const MAX_STRAIN: f32 = 0.03;

/// Fewer access points fit into a plane by chance.
const MIN_POINTS: usize = 6;

/// How many points of a circle are looked at.
const BEARINGS: usize = 64;

/// How many places where something is known to be are remembered, to tell where subnets are likely.
const MAX_SEEN: usize = 192;

/// How many access points are considered for a probe.
const SHORTLIST: usize = 24;

/// The access points laid out in a plane.
#[derive(Clone, Debug)]
pub(super) struct Plane {
    at: Vec<Point>,
    /// By which share round-trip times differ from distances.
    strain: f32,
    /// Where subnets were found lately, and access points are.
    seen: Vec<Point>,
    next: usize,
    /// How wide around these others are likely, in milliseconds.
    width: f32,
}

fn distance(a: Point, b: Point) -> f32 {
    let (x, y) = (a[0] - b[0], a[1] - b[1]);
    (x * x + y * y).sqrt()
}

/// How far the distances on the plane are off the measured ones: the median, as a share of the measured distance.
fn strain(rtt: &[Vec<f32>], at: &[Point]) -> f32 {
    let pairs = (0..rtt.len()).flat_map(|a| (0..a).map(move |b| (a, b))).filter(|(a, b)| !rtt[*a][*b].is_nan());
    let mut off: Vec<f32> = pairs.map(|(a, b)| (distance(at[a], at[b]) - rtt[a][b]).abs() / (rtt[a][b] + 2.0)).collect();
    off.sort_by(f32::total_cmp);
    off.get(off.len() / 2).copied().unwrap_or(f32::INFINITY)
}

/// Every member where the others see it: one step of stress majorisation.
fn drawn_together(rtt: &[Vec<f32>], at: &[Point]) -> Vec<Point> {
    let place = |p: usize| {
        let (mut sum, mut count) = ([0.0f32; 2], 0.0f32);
        for q in (0..rtt.len()).filter(|q| *q != p && !rtt[p][*q].is_nan()) {
            let now = distance(at[p], at[q]).max(0.01);
            sum[0] += at[q][0] + (at[p][0] - at[q][0]) * rtt[p][q] / now;
            sum[1] += at[q][1] + (at[p][1] - at[q][1]) * rtt[p][q] / now;
            count += 1.0;
        }
        if count > 0.0 { [sum[0] / count, sum[1] / count] } else { at[p] }
    };
    (0..rtt.len()).map(place).collect()
}

impl Plane {
    /// Lays out access points by their round-trip times in milliseconds, NaN where unknown; none if they do not fit.
    pub(crate) fn fit(rtt: &[Vec<f32>]) -> Option<Plane> {
        let n = rtt.len();
        if n < MIN_POINTS {
            return None;
        }
        let known = |a: usize, b: usize| (!rtt[a][b].is_nan()).then_some(rtt[a][b]);
        // Two far ones, and one far from their line, fix the frame.
        let far = |from: usize| (0..n).filter(|b| *b != from).filter_map(|b| Some((known(from, b)?, b))).max_by(|a, b| a.0.total_cmp(&b.0));
        let (_, first) = far(0)?;
        let (base, second) = far(first)?;
        let corner = |p: usize| -> Option<Point> {
            let (a, b) = (known(first, p)?, known(second, p)?);
            let x = (a * a - b * b + base * base) / (2.0 * base);
            Some([x, (a * a - x * x).max(0.0).sqrt()])
        };
        let others = || (0..n).filter(|p| *p != first && *p != second);
        let third = others().filter_map(|p| Some((corner(p)?, p))).max_by(|a, b| a.0[1].total_cmp(&b.0[1]))?;
        let mut at = vec![[base / 2.0, 0.0]; n];
        at[first] = [0.0, 0.0];
        at[second] = [base, 0.0];
        at[third.1] = third.0;
        for p in others().filter(|p| *p != third.1) {
            let (Some(up), Some(d)) = (corner(p), known(third.1, p)) else { continue };
            let down = [up[0], -up[1]];
            at[p] = if (distance(up, third.0) - d).abs() <= (distance(down, third.0) - d).abs() { up } else { down };
        }
        let mut best = strain(rtt, &at);
        // Every member moves to where the others see it, until that does not help any more (stress majorisation).
        for _ in 0..20 {
            if best < MAX_STRAIN / 10.0 {
                break;
            }
            at = drawn_together(rtt, &at);
            best = strain(rtt, &at);
        }
        if best > MAX_STRAIN {
            return None;
        }
        // As many of the access points as there is room for, evenly from the list.
        let seen: Vec<Point> = (0..n.min(MAX_SEEN)).map(|i| at[i * n / n.min(MAX_SEEN)]).collect();
        let mut plane = Plane { at, strain: best.max(0.002), seen, next: 0, width: 1.0 };
        plane.width = plane.usual_gap();
        Some(plane)
    }

    /// Half of what has been seen has its next neighbour within this distance.
    fn usual_gap(&self) -> f32 {
        let nearest =
            |i: usize| (0..self.seen.len()).filter(|j| *j != i).map(|j| distance(self.seen[i], self.seen[j])).fold(f32::INFINITY, f32::min);
        let mut gaps: Vec<f32> = (0..self.seen.len()).map(nearest).collect();
        gaps.sort_by(f32::total_cmp);
        gaps.get(gaps.len() / 2).copied().unwrap_or(1.0).max(1.0)
    }

    /// Notes the answers of a subnet (access point, milliseconds): where it must be is where others are likely, too.
    pub(super) fn learn(&mut self, answers: &[(usize, f32)]) {
        let points = self.points(answers);
        let Some((_, point)) = points.into_iter().find(|(weight, _)| *weight > 0.8) else { return };
        if self.seen.len() < MAX_SEEN {
            self.seen.push(point);
        } else {
            self.seen[self.next] = point;
            self.next = (self.next + 1) % MAX_SEEN;
        }
    }

    fn density(&self, point: Point) -> f32 {
        let near = |seen: &Point| {
            let d = distance(*seen, point) / self.width;
            // A heavy tail, so that no place is impossible.
            1.0 / (1.0 + d * d).powi(2)
        };
        self.seen.iter().map(near).sum()
    }

    /// How far a round-trip time may be from the distance.
    fn tolerance(&self, ms: f32) -> f32 {
        0.05 + self.strain * (ms + 2.0)
    }

    /// Where a subnet may be that gave these answers (access point, milliseconds), likeliest first; weights add up to one.
    fn points(&self, answers: &[(usize, f32)]) -> Vec<(f32, Point)> {
        let nearest = answers.iter().filter(|(who, _)| *who < self.at.len()).min_by(|a, b| a.1.total_cmp(&b.1));
        let mut points: Vec<(f32, Point)> = match nearest {
            None => self.seen.iter().step_by(self.seen.len().div_ceil(BEARINGS)).map(|p| (1.0, *p)).collect(),
            Some((who, ms)) => (0..BEARINGS)
                .map(|i| {
                    let (sin, cos) = (std::f32::consts::TAU * i as f32 / BEARINGS as f32).sin_cos();
                    (1.0, [self.at[*who][0] + ms * cos, self.at[*who][1] + ms * sin])
                })
                .collect(),
        };
        if answers.len() > 1 {
            for (_, point) in &mut points {
                *point = self.settle(*point, answers);
            }
            let mut apart: Vec<(f32, Point)> = Vec::new();
            for (_, point) in points {
                if apart.iter().all(|(_, other)| distance(*other, point) > 1.0) {
                    apart.push((1.0, point));
                }
            }
            points = apart;
        }
        if !answers.is_empty() {
            for (weight, point) in &mut points {
                let off = |(who, ms): &(usize, f32)| {
                    let z = (distance(self.at[*who], *point) - ms) / self.tolerance(*ms);
                    // Student's t with four degrees of freedom: a single liar cannot decide.
                    (1.0 + z * z / 4.0).powf(-2.5)
                };
                *weight = self.density(*point) * answers.iter().map(off).product::<f32>().max(1e-30);
            }
        }
        let sum: f32 = points.iter().map(|p| p.0).sum();
        points.iter_mut().for_each(|p| p.0 /= sum);
        points.sort_by(|a, b| b.0.total_cmp(&a.0));
        points
    }

    /// Moves a point to where the circles of the answers come nearest to each other: Gauss and Newton, steps damped.
    fn settle(&self, mut point: Point, answers: &[(usize, f32)]) -> Point {
        for _ in 0..12 {
            let (mut xx, mut xy, mut yy, mut x, mut y) = (1e-6f32, 0.0f32, 1e-6f32, 0.0f32, 0.0f32);
            for (who, ms) in answers {
                let center = self.at[*who];
                let d = distance(center, point).max(0.01);
                let weight = self.tolerance(*ms).powi(-2);
                let (dx, dy) = ((point[0] - center[0]) / d, (point[1] - center[1]) / d);
                xx += weight * dx * dx;
                xy += weight * dx * dy;
                yy += weight * dy * dy;
                x += weight * dx * (ms - d);
                y += weight * dy * (ms - d);
            }
            let damp = 0.01 * (xx + yy);
            let (xx, yy) = (xx + damp, yy + damp);
            let determinant = xx * yy - xy * xy;
            let step = [(yy * x - xy * y) / determinant, (xx * y - xy * x) / determinant];
            if !(step[0].is_finite() && step[1].is_finite()) {
                break;
            }
            point = [point[0] + step[0], point[1] + step[1]];
            if step[0].abs() + step[1].abs() < 0.01 {
                break;
            }
        }
        point
    }

    /// What the access points in `open` would measure of a subnet that gave these answers (access point, milliseconds), and which
    /// of them are considered: indices into `open`, the columns of the guesses.
    pub(crate) fn hypotheses(&self, answers: &[(usize, f32)], open: &[usize]) -> (Vec<usize>, Hypotheses) {
        let points = self.points(answers);
        // Points of a circle stand for the arc around them.
        let blur = match answers {
            [] => self.width,
            [(_, ms)] => ms * std::f32::consts::PI / BEARINGS as f32,
            _ => 0.0,
        };
        let mut score = vec![0.0f32; open.len()];
        let mut row = vec![0.0f32; open.len()];
        for (weight, point) in &points {
            for (ms, who) in row.iter_mut().zip(open) {
                *ms = distance(self.at[*who], *point);
            }
            let least = row.iter().copied().fold(f32::INFINITY, f32::min);
            for (score, ms) in score.iter_mut().zip(&row) {
                let ratio = (least + 2.0) / (ms + 2.0);
                *score += weight * ratio * ratio * ratio;
            }
        }
        let mut short: Vec<usize> = (0..open.len()).collect();
        short.sort_by(|a, b| score[*b].total_cmp(&score[*a]).then(a.cmp(b)));
        short.truncate(SHORTLIST);
        let mut guesses = Hypotheses { columns: short.len(), ..Hypotheses::default() };
        for (weight, point) in points {
            guesses.weights.push(weight);
            for column in &short {
                let ms = distance(self.at[open[*column]], point);
                guesses.expected.push(to_log(ms));
                guesses.spread.push((self.tolerance(ms) + blur) / (ms + 2.0 + blur));
            }
        }
        (short, guesses)
    }
}
