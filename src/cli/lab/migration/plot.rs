//! How do the rules compare at a glance? The paper's figures: totals by run (2, and 3 if the world changes), and runs until all sites are
//! right, against access points and against sites (4).

use nearcrawl_lab::migration::{
    Outcome,
    score::{Reached, Row},
};
use std::fmt::{Arguments, Write};

const WIDTH: f64 = 860.0;
/// Where the axes begin and end.
const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 170.0;
/// How high a figure is, and how far its axes stay from its ends.
const FIGURE: f64 = 400.0;
const ABOVE: f64 = 44.0;
const BELOW: f64 = 60.0;

/// How a rule looks.
fn colour(policy: &str) -> &'static str {
    match policy {
        "oma" => "#b0862a",
        "twoma" => "#c4520f",
        "nearcrawl" => "#1b5faa",
        "uniform" => "#9aa7b5",
        _ => "#222222",
    }
}

/// The picture: figure 2 or 3, and figure 4 for as many numbers as there were of access points and of sites.
pub fn svg(outcome: &Outcome) -> String {
    let count = |of: &dyn Fn(&Reached) -> usize| {
        let mut all: Vec<usize> = outcome.reached.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (access_points, sites) = (count(&|reached| reached.access_points), count(&|reached| reached.sites));
    let mut picture = Picture { svg: String::new(), figures: 0 };
    picture.totals(outcome, access_points.len() * sites.len() > 1);
    if access_points.len() > 1 {
        let largest = sites.last().copied().unwrap_or(0);
        let those: Vec<&Reached> = outcome.reached.iter().filter(|reached| reached.sites == largest).collect();
        picture.reached("access points", &format!("runs until all {largest} sites are right (figure 4)"), &those, |reached| {
            reached.access_points
        });
    }
    if sites.len() > 1 {
        for access_points in access_points {
            let those: Vec<&Reached> = outcome.reached.iter().filter(|reached| reached.access_points == access_points).collect();
            picture.reached("sites", &format!("runs until all are right, {access_points} access points (figure 4)"), &those, |reached| {
                reached.sites
            });
        }
    }
    let height = picture.figures as f64 * FIGURE;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
        <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n{}</svg>\n",
        picture.svg
    )
}

/// A scale from 0, or of powers of two.
#[derive(Clone, Copy)]
enum Scale {
    Plain { most: f64 },
    Doubling { least: f64, most: f64 },
}

impl Scale {
    fn share(self, value: f64) -> f64 {
        match self {
            Scale::Plain { most } => value / most,
            Scale::Doubling { least, most } => (value / least).log2() / (most / least).log2(),
        }
    }

    /// The marks of an axis.
    fn marks(self) -> Vec<f64> {
        match self {
            Scale::Plain { most } => {
                let rough = most / 8.0;
                let power = 10_f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * power).find(|step| *step >= rough).unwrap_or(rough);
                (0..=(most / step).floor() as u32).map(|number| f64::from(number) * step).collect()
            }
            Scale::Doubling { least, most } => {
                let step = ((most / least).log2() / 8.0).ceil().max(1.0);
                (0..).map(|number| least * (step * f64::from(number)).exp2()).take_while(|mark| *mark <= most * 1.001).collect()
            }
        }
    }
}

struct Picture {
    svg: String,
    figures: usize,
}

impl Picture {
    /// A piece of the picture. Writing to a text does not fail.
    fn draw(&mut self, piece: Arguments<'_>) {
        let _ = self.svg.write_fmt(piece);
        self.svg.push('\n');
    }

    fn at(&self, x: Scale, y: Scale, (across, up): (f64, f64)) -> (f64, f64) {
        let top = (self.figures - 1) as f64 * FIGURE;
        let (lowest, highest) = (top + FIGURE - BELOW, top + ABOVE);
        (LEFT + (RIGHT - LEFT) * x.share(across), lowest - (lowest - highest) * y.share(up).min(1.0))
    }

    /// Begins a figure: title, axes, marks.
    fn frame(&mut self, title: &str, below: &str, x: Scale, y: Scale) {
        self.figures += 1;
        let top = (self.figures - 1) as f64 * FIGURE;
        let (lowest, highest) = (top + FIGURE - BELOW, top + ABOVE);
        self.draw(format_args!("<text x=\"{LEFT}\" y=\"{}\" font-size=\"14\">{title}</text>", highest - 14.0));
        for mark in y.marks() {
            let height = lowest - (lowest - highest) * y.share(mark);
            self.draw(format_args!("<path d=\"M{LEFT} {height:.1}H{RIGHT}\" stroke=\"#dddddd\"/>"));
            self.draw(format_args!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", LEFT - 6.0, height + 4.0, tidy(mark)));
        }
        for mark in x.marks() {
            let across = LEFT + (RIGHT - LEFT) * x.share(mark);
            self.draw(format_args!("<path d=\"M{across:.1} {highest}V{lowest}\" stroke=\"#eeeeee\"/>"));
            self.draw(format_args!("<text x=\"{across:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>", lowest + 18.0, tidy(mark)));
        }
        let middle = (LEFT + RIGHT) / 2.0;
        self.draw(format_args!("<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{below}</text>", lowest + 38.0));
    }

    fn line(&mut self, x: Scale, y: Scale, stroke: &str, points: &[(f64, f64)], dots: bool) {
        let places: Vec<(f64, f64)> = points.iter().map(|point| self.at(x, y, *point)).collect();
        let path: Vec<String> = places.iter().map(|(across, down)| format!("{across:.1},{down:.1}")).collect();
        self.draw(format_args!("<polyline points=\"{}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"2\"/>", path.join(" ")));
        for (across, down) in places.iter().filter(|_| dots) {
            self.draw(format_args!("<circle cx=\"{across:.1}\" cy=\"{down:.1}\" r=\"3\" fill=\"{stroke}\"/>"));
        }
    }

    fn key(&mut self, number: usize, stroke: &str, name: &str) {
        let (x, y) = (RIGHT + 12.0, (self.figures - 1) as f64 * FIGURE + ABOVE + 12.0 + 20.0 * number as f64);
        self.draw(format_args!("<path d=\"M{x:.1} {y:.1}h24\" stroke=\"{stroke}\" stroke-width=\"2\"/>"));
        self.draw(format_args!("<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>", x + 30.0, y + 4.0));
    }

    /// Figures 2 and 3.
    fn totals(&mut self, outcome: &Outcome, several: bool) {
        let last = outcome.rows.iter().map(|row| row.run).max().unwrap_or(1).max(1) as f64;
        let most = outcome.rows.iter().map(|row| row.total_vs_oracle).fold(1.0, f64::max).min(20.0);
        let (x, y) = (Scale::Plain { most: last }, Scale::Plain { most: most * 1.05 });
        let changes = if outcome.changes { "the world changes: figure 3" } else { "figure 2" };
        self.frame(&format!("what all sites take, over the oracle ({changes})"), "runs", x, y);
        let same = |a: &Row, b: &Row| a.policy == b.policy && a.access_points == b.access_points && a.sites == b.sites;
        for (drawn, rows) in outcome.rows.chunk_by(same).enumerate() {
            let points: Vec<(f64, f64)> = rows.iter().map(|row| (row.run as f64, row.total_vs_oracle)).collect();
            let (policy, stroke) = (&rows[0].policy, colour(&rows[0].policy));
            self.line(x, y, stroke, &points, false);
            let name = if several { format!("{policy} {}, {}", rows[0].access_points, rows[0].sites) } else { policy.clone() };
            if drawn < 16 {
                self.key(drawn, stroke, &name);
            }
        }
    }

    /// Figure 4, against one of its two numbers.
    fn reached(&mut self, below: &str, title: &str, those: &[&Reached], number: impl Fn(&Reached) -> usize) {
        let numbers = || those.iter().map(|reached| number(reached) as f64);
        let (least, most) = (numbers().fold(f64::INFINITY, f64::min), numbers().fold(1.0, f64::max));
        let longest = those.iter().filter_map(|reached| reached.all_right).fold(1.0, f64::max);
        let (x, y) = (Scale::Doubling { least, most }, Scale::Plain { most: longest * 1.05 });
        self.frame(title, below, x, y);
        let mut policies: Vec<&str> = those.iter().map(|reached| reached.policy.as_str()).collect();
        policies.sort_unstable();
        policies.dedup();
        for (place, policy) in policies.into_iter().enumerate() {
            let of_it = those.iter().filter(|reached| reached.policy == policy);
            let mut points: Vec<(f64, f64)> = of_it.filter_map(|reached| Some((number(reached) as f64, reached.all_right?))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            self.line(x, y, colour(policy), &points, true);
            self.key(place, colour(policy), if points.is_empty() { "never" } else { policy });
        }
    }
}

fn tidy(mark: f64) -> String {
    format!("{}", (mark * 1e6).round() / 1e6)
}
