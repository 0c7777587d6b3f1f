//! Draws figures as SVG: lines or points with error bands over two axes, and rows of values with their intervals.
//!
//! Every axis has a title with its unit and holds all values drawn: nothing is moved to an edge. Series differ by dash and marker, not by
//! colour alone. Colours follow the reader's light or dark scheme, and print black on white.

use std::fmt::{Arguments, Write};

const WIDTH: f64 = 860.0;
/// Where the plane of the axes begins and ends, from left to right; behind it is the key.
const LEFT: f64 = 78.0;
const RIGHT: f64 = WIDTH - 210.0;
/// Letters of a title and of a name in the key on one line.
const TITLE_LETTERS: usize = 96;
const KEY_LETTERS: usize = 24;
/// Letters on one line below a figure.
const CAPTION_LETTERS: usize = 112;
const LINE: f64 = 17.0;

/// What all figures look like.
pub const STYLE: &str = "\
.figure{--ink:#1d232b;--soft:#55606d;--grid:#dfe3e8;--paper:#fff;--c0:#1b5faa;--c1:#b3470c;--c2:#2e7d4f;--c3:#7d4a9e;--c4:#8a6a12;--c5:#0b7480;\
--c6:#a3264f;--c7:#4d5661;font:12px 'DejaVu Sans',Verdana,sans-serif;background:var(--paper)}\
.figure text{fill:var(--ink)}.figure .soft{fill:var(--soft)}.figure .head{font-size:15px;font-weight:bold}\
.figure .grid{stroke:var(--grid);fill:none}.figure .axis{stroke:var(--ink);fill:none}\
@media (prefers-color-scheme:dark){.figure{--ink:#e8ecf1;--soft:#a9b4c0;--grid:#3a434e;--paper:#14181d;--c0:#7db4ee;--c1:#f0a06a;--c2:#7ccf9c;\
--c3:#c7a0e4;--c4:#d9bb5e;--c5:#6fcfd9;--c6:#f08fb0;--c7:#b4bdc8}}\
@media print{.figure{--ink:#000;--soft:#333;--grid:#ccc;--paper:#fff;--c0:#1b5faa;--c1:#b3470c;--c2:#2e7d4f;--c3:#7d4a9e;--c4:#8a6a12;--c5:#0b7480;\
--c6:#a3264f;--c7:#4d5661}}";

/// How values are laid out along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from 0.
    Linear,
    /// By powers of two.
    Doubling,
    /// By powers of ten.
    Tenfold,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    title: String,
    scale: Scale,
    is_share: bool,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis from 0 up.
    pub fn linear(title: impl Into<String>) -> Axis {
        Axis { title: title.into(), scale: Scale::Linear, is_share: false, from: 0.0, to: 0.0 }
    }

    /// Shares, from 0 to 100 %.
    pub fn share(title: impl Into<String>) -> Axis {
        Axis { is_share: true, to: 1.0, ..Axis::linear(title) }
    }

    /// An axis by powers.
    pub fn powers(title: impl Into<String>, scale: Scale) -> Axis {
        Axis { scale, ..Axis::linear(title) }
    }

    /// Makes room for all these values.
    fn holding(mut self, values: impl Iterator<Item = f64>) -> Axis {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let (least, most) = (values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(0.0, f64::max));
        let base: f64 = if self.scale == Scale::Doubling { 2.0 } else { 10.0 };
        match self.scale {
            Scale::Linear => {
                let step = step_of(most.max(self.to));
                self.to = (most.max(self.to).max(step) / step - 1e-9).ceil() * step;
            }
            _ => {
                let least =
                    values.iter().copied().filter(|value| *value > 0.0).fold(if least > 0.0 { least } else { f64::INFINITY }, f64::min);
                let least = if least.is_finite() { least } else { 1.0 };
                self.from = base.powf((least.log(base) + 1e-9).floor());
                self.to = base.powf((most.max(least).log(base) - 1e-9).ceil()).max(self.from * base);
            }
        }
        self
    }

    /// From 0 to 1 along the axis. What is 0 stands at the beginning of an axis by powers, whose first mark says so.
    fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => value / self.to,
            _ => (value.max(self.from) / self.from).ln() / (self.to / self.from).ln(),
        };
        share.clamp(0.0, 1.0)
    }

    fn marks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = step_of(self.to);
                (0..=(self.to / step).round() as u32).map(|number| f64::from(number) * step).collect()
            }
            scale => {
                let base: f64 = if scale == Scale::Doubling { 2.0 } else { 10.0 };
                let all = (self.to / self.from).log(base).round() as u32;
                let step = (all / 10).max(1);
                (0..=all).step_by(step as usize).map(|number| self.from * base.powi(number as i32)).collect()
            }
        }
    }

    fn name(&self, mark: f64) -> String {
        if self.is_share { format!("{} %", tidy(100.0 * mark)) } else { tidy(mark) }
    }
}

/// A tenth to a fifth of it: 1, 2 or 5 times a power of ten.
fn step_of(most: f64) -> f64 {
    let rough = if most > 0.0 { most / 10.0 } else { 0.1 };
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * power).find(|step| *step >= rough * 0.999).unwrap_or(rough)
}

/// A number as short as it can be written: `0.5`, `20`, `1,000`, `2 M`.
fn tidy(value: f64) -> String {
    let whole = value.abs() >= 100.0 || (value - value.round()).abs() < 1e-9;
    match value.abs() {
        big if big >= 1e9 => format!("{} G", tidy((value / 1e7).round() / 100.0)),
        big if big >= 1e6 => format!("{} M", tidy((value / 1e4).round() / 100.0)),
        big if big >= 1e4 => format!("{} k", tidy((value / 1e2).round() / 10.0)),
        _ if whole => format!("{:.0}", value),
        small if small >= 0.01 => format!("{:.2}", value).trim_end_matches('0').to_owned(),
        _ => format!("{value:.4}").trim_end_matches('0').to_owned(),
    }
}

/// A value, and the interval that it lies in by its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// How much.
    pub y: f64,
    /// From where to where it may be, if that is known.
    pub interval: Option<(f64, f64)>,
}

/// Standard deviations of a mean to each side that hold 95 %, by Student's distribution, for two measurements and more.
const STUDENT: [f64; 9] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26];

impl Point {
    /// The mean of measurements that do not depend on each other, with its 95 % interval; one alone has none.
    pub fn mean(x: f64, values: &[f64]) -> Point {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let Some(rest) = values.len().checked_sub(2) else { return Point { x, y: mean, interval: None } };
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let error = STUDENT.get(rest).copied().unwrap_or(2.0) * (squares / (count - 1.0) / count).sqrt();
        Point { x, y: mean, interval: Some(((mean - error).max(0.0), mean + error)) }
    }
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Point {
        Point { x, y, interval: None }
    }
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// As it stands in the key.
    pub name: String,
    /// From left to right.
    pub points: Vec<Point>,
    /// Whether they are joined; their errors are a band then, and bars else.
    pub is_line: bool,
}

impl Series {
    /// A line.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = impl Into<Point>>) -> Series {
        Series { name: name.into(), points: points.into_iter().map(Into::into).collect(), is_line: true }
    }

    /// Points by themselves.
    pub fn points(name: impl Into<String>, points: impl IntoIterator<Item = impl Into<Point>>) -> Series {
        Series { is_line: false, ..Series::line(name, points) }
    }
}

/// One value in a row of its own.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What it is of.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Where it lies by its error, or from the first to the last tenth.
    pub interval: (f64, f64),
    /// Where the middle half lies.
    pub middle: Option<(f64, f64)>,
    /// Written at the end of the row.
    pub note: String,
}

/// A figure.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What is drawn.
    pub plot: Plot,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub enum Plot {
    /// Lines and points over two axes.
    Plane {
        /// From left to right.
        x: Axis,
        /// From bottom to top.
        y: Axis,
        /// What is drawn, in the order of the key.
        series: Vec<Series>,
    },
    /// A row for each value.
    Rows {
        /// From left to right.
        x: Axis,
        /// From top to bottom.
        rows: Vec<Bar>,
        /// What the lines are, like "95 % interval".
        key: String,
    },
}

impl Chart {
    /// The figure as an SVG picture of its own. `id` tells it apart from others on one page.
    pub fn svg(&self, id: &str) -> String {
        let (picture, height) = self.drawn();
        picture_of(id, &self.title, &[], height, &picture)
    }

    /// The same with paragraphs below it, which are its description, too.
    pub fn svg_with(&self, id: &str, caption: &[String]) -> String {
        let (svg, mut height) = self.drawn();
        let mut picture = Picture { svg };
        for line in caption.iter().flat_map(|paragraph| wrapped(paragraph, CAPTION_LETTERS)) {
            height += LINE;
            picture.text("soft", 14.0, height - LINE, "start", &line);
        }
        picture_of(id, &self.title, caption, height, &picture.svg)
    }

    /// What is drawn, and how high it is.
    fn drawn(&self) -> (String, f64) {
        let mut picture = Picture { svg: String::new() };
        let height = match &self.plot {
            Plot::Plane { x, y, series } => picture.plane(&self.title, x, y, series),
            Plot::Rows { x, rows, key } => picture.rows(&self.title, x, rows, key),
        };
        (picture.svg, height)
    }
}

/// Several figures in one picture, one below the other.
pub fn stacked(id: &str, title: &str, charts: &[Chart]) -> String {
    let (mut all, mut top) = (String::new(), 0.0);
    for chart in charts {
        let (picture, height) = chart.drawn();
        // Writing to a text does not fail.
        let _ = writeln!(all, "<g transform=\"translate(0 {top})\">\n{picture}</g>");
        top += height + 12.0;
    }
    picture_of(id, title, &[], top, &all)
}

fn picture_of(id: &str, title: &str, description: &[String], height: f64, picture: &str) -> String {
    let (mut described, mut desc) = (String::new(), String::new());
    if !description.is_empty() {
        described = format!(" aria-describedby=\"{id}-desc\"");
        desc = format!("<desc id=\"{id}-desc\">{}</desc>\n", escaped(&description.join(" ")));
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"figure\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-labelledby=\"{id}-title\"{described}>\n<title id=\"{id}-title\">{}</title>\n{desc}<style>{STYLE}</style>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"var(--paper)\"/>\n\
         {picture}</svg>\n",
        escaped(title)
    )
}

struct Picture {
    svg: String,
}

impl Picture {
    /// A piece of the picture. Writing to a text does not fail.
    fn draw(&mut self, piece: Arguments<'_>) {
        let _ = self.svg.write_fmt(piece);
        self.svg.push('\n');
    }

    fn text(&mut self, class: &str, x: f64, y: f64, anchor: &str, text: &str) {
        self.draw(format_args!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escaped(text)));
    }

    /// The title; returns where it ends.
    fn title(&mut self, title: &str) -> f64 {
        let lines = wrapped(title, TITLE_LETTERS);
        for (number, line) in lines.iter().enumerate() {
            self.text("head", 14.0, 26.0 + 20.0 * number as f64, "start", line);
        }
        26.0 + 20.0 * lines.len() as f64
    }

    fn across(&mut self, x: &Axis, left: f64, top: f64, bottom: f64) {
        for mark in x.marks() {
            let at = left + (RIGHT - left) * x.place(mark);
            self.draw(format_args!("<path class=\"grid\" d=\"M{at:.1} {top:.1}V{bottom:.1}\"/>"));
            self.text("", at, bottom + 18.0, "middle", &x.name(mark));
        }
        self.text("soft", (left + RIGHT) / 2.0, bottom + 40.0, "middle", &x.title);
    }

    fn plane(&mut self, title: &str, x: &Axis, y: &Axis, series: &[Series]) -> f64 {
        let mut series = series.to_vec();
        if y.is_share {
            // An interval of Student's distribution may reach beyond what a share can be.
            let points = series.iter_mut().flat_map(|series| &mut series.points).filter(|point| point.y <= 1.0);
            points.filter_map(|point| point.interval.as_mut()).for_each(|interval| interval.1 = interval.1.min(1.0));
        }
        let points = || series.iter().flat_map(|series| &series.points);
        let x = x.clone().holding(points().map(|point| point.x));
        let highest = |point: &Point| point.interval.map_or(point.y, |interval| interval.1.max(point.y));
        let lows = points().map(|point| point.interval.map_or(point.y, |interval| interval.0.min(point.y)));
        let y = y.clone().holding(points().map(highest).chain(lows));
        let top = self.title(title) + 6.0;
        let names: Vec<Vec<String>> = series.iter().map(|series| wrapped(&series.name, KEY_LETTERS)).collect();
        let key = names.iter().map(|lines| LINE * lines.len() as f64 + 5.0).sum::<f64>();
        let bottom = top + key.max(330.0);
        for mark in y.marks() {
            let at = bottom - (bottom - top) * y.place(mark);
            self.draw(format_args!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>"));
            self.text("", LEFT - 8.0, at + 4.0, "end", &y.name(mark));
        }
        self.across(&x, LEFT, top, bottom);
        let middle = (top + bottom) / 2.0;
        self.draw(format_args!(
            "<text class=\"soft\" transform=\"translate(18 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escaped(&y.title)
        ));
        self.draw(format_args!("<path class=\"axis\" d=\"M{LEFT} {top:.1}V{bottom:.1}H{RIGHT}\"/>"));
        let at = |across: f64, up: f64| (LEFT + (RIGHT - LEFT) * x.place(across), bottom - (bottom - top) * y.place(up));
        let mut down = top + 10.0;
        for (number, (series, name)) in series.iter().zip(&names).enumerate() {
            self.series(number, series, &at);
            self.mark(number, series.is_line, RIGHT + 16.0, down);
            for line in name {
                self.text("", RIGHT + 50.0, down + 4.0, "start", line);
                down += LINE;
            }
            down += 5.0;
        }
        bottom + 56.0
    }

    /// A series: its errors, its line, its points.
    fn series(&mut self, number: usize, series: &Series, at: &impl Fn(f64, f64) -> (f64, f64)) {
        let colour = number % 8;
        let with_error: Vec<_> = series.points.iter().filter_map(|point| point.interval.map(|interval| (point.x, interval))).collect();
        if series.is_line && with_error.len() > 1 {
            let upper = with_error.iter().map(|(x, interval)| at(*x, interval.1));
            let lower = with_error.iter().rev().map(|(x, interval)| at(*x, interval.0));
            let path: Vec<String> = upper.chain(lower).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            self.draw(format_args!("<polygon points=\"{}\" fill=\"var(--c{colour})\" fill-opacity=\"0.16\"/>", path.join(" ")));
        } else {
            for (x, interval) in with_error {
                let ((x, low), (_, high)) = (at(x, interval.0), at(x, interval.1));
                self.draw(format_args!(
                    "<path d=\"M{x:.1} {low:.1}V{high:.1}m-4 0h8M{:.1} {low:.1}h8\" stroke=\"var(--c{colour})\"/>",
                    x - 4.0
                ));
            }
        }
        let places: Vec<(f64, f64)> = series.points.iter().map(|point| at(point.x, point.y)).collect();
        if series.is_line && places.len() > 1 {
            let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            self.draw(format_args!("<polyline points=\"{}\" {}/>", path.join(" "), stroke(number)));
        }
        let step = (places.len() / 24).max(1);
        for (x, y) in places.into_iter().step_by(step) {
            self.marker(number, x, y);
        }
    }

    /// A series in the key.
    fn mark(&mut self, number: usize, is_line: bool, x: f64, y: f64) {
        if is_line {
            self.draw(format_args!("<path d=\"M{x:.1} {y:.1}h28\" {}/>", stroke(number)));
        }
        self.marker(number, x + 14.0, y);
    }

    fn marker(&mut self, number: usize, x: f64, y: f64) {
        let shape = match number % 6 {
            0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\""),
            1 => format!("<path d=\"M{:.1} {:.1}h6.4v6.4h-6.4z\"", x - 3.2, y - 3.2),
            2 => format!("<path d=\"M{x:.1} {:.1}l4 7h-8z\"", y - 4.2),
            3 => format!("<path d=\"M{x:.1} {:.1}l4.4 4.4l-4.4 4.4l-4.4 -4.4z\"", y - 4.4),
            4 => format!("<path d=\"M{x:.1} {:.1}l4 -7h-8z\"", y + 4.2),
            _ => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill-opacity=\"0\""),
        };
        self.draw(format_args!("{shape} fill=\"var(--c{0})\" stroke=\"var(--c{0})\" stroke-width=\"1.4\"/>", number % 8));
    }

    fn rows(&mut self, title: &str, x: &Axis, rows: &[Bar], key: &str) -> f64 {
        let ends = rows.iter().flat_map(|row| [row.value, row.interval.0, row.interval.1]);
        let x = x.clone().holding(ends);
        let longest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).min(34);
        let left = (longest as f64 * 7.4 + 24.0).max(LEFT);
        let top = self.title(title) + 24.0;
        let bottom = top + 22.0 * rows.len().max(1) as f64;
        self.text("soft", RIGHT, top - 9.0, "end", key);
        self.across(&x, left, top, bottom);
        self.draw(format_args!("<path class=\"axis\" d=\"M{left:.1} {top:.1}V{bottom:.1}H{RIGHT}\"/>"));
        let at = |value: f64| left + (RIGHT - left) * x.place(value);
        for (number, row) in rows.iter().enumerate() {
            let y = top + 22.0 * number as f64 + 11.0;
            self.text("", left - 8.0, y + 4.0, "end", &cut(&row.name, 34));
            let (low, high) = (at(row.interval.0), at(row.interval.1));
            self.draw(format_args!(
                "<path d=\"M{low:.1} {y:.1}H{high:.1}m0 -4v8M{low:.1} {:.1}v8\" stroke=\"var(--c0)\" stroke-width=\"1.5\"/>",
                y - 4.0
            ));
            if let Some((from, to)) = row.middle {
                let (from, to) = (at(from), at(to));
                let width = (to - from).max(0.5);
                self.draw(format_args!(
                    "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"9\" fill=\"var(--c0)\" fill-opacity=\"0.35\"/>",
                    y - 4.5
                ));
            }
            self.draw(format_args!("<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"var(--c0)\"/>", at(row.value)));
            self.text("soft", RIGHT + 12.0, y + 4.0, "start", &cut(&row.note, 28));
        }
        bottom + 56.0
    }
}

fn stroke(number: usize) -> String {
    let dashes = ["", "7 4", "2 3", "9 3 2 3", "12 4", "4 4"][number % 6];
    let dashes = if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
    format!("fill=\"none\" stroke=\"var(--c{})\" stroke-width=\"2\"{dashes}", number % 8)
}

fn cut(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters { text.to_owned() } else { text.chars().take(letters - 1).chain(['…']).collect() }
}

/// Lines of at most so many letters, broken at spaces where there are some.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').map(|word| cut(word, letters)) {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > letters {
            lines.push(word);
        } else if let Some(last) = lines.last_mut() {
            last.push_str(if line > 0 { " " } else { "" });
            last.push_str(&word);
        }
    }
    lines
}

/// Text as XML and HTML have it; control characters are left out.
pub fn escaped(text: &str) -> String {
    let one = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        c if c.is_control() => String::new(),
        c => c.to_string(),
    };
    text.chars().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All numbers of the attribute in the picture.
    fn numbers(svg: &str, attribute: &str) -> Vec<f64> {
        svg.split(&format!(" {attribute}=\"")).skip(1).map(|rest| rest[..rest.find('"').unwrap()].parse().unwrap()).collect()
    }

    #[test]
    fn every_value_stands_where_its_axis_says_and_inside_the_frame() {
        let values = [(0.5, 0.07), (12.0, 1.0), (2.99, 0.746), (40_000.0, 0.2)];
        for x in [Axis::linear("probes a site"), Axis::powers("probes a site", Scale::Tenfold)] {
            let plot = Plot::Plane { x: x.clone(), y: Axis::share("share"), series: vec![Series::points("a", values)] };
            let svg = Chart { title: "T".to_owned(), plot }.svg("f");
            let axis = x.holding(values.iter().map(|value| value.0));
            let circles: Vec<_> = numbers(&svg, "cx").into_iter().zip(numbers(&svg, "cy")).take(values.len()).collect();
            for ((across, up), (cx, cy)) in values.iter().zip(&circles) {
                assert!((LEFT..=RIGHT).contains(cx), "{cx}");
                assert!((cx - (LEFT + (RIGHT - LEFT) * axis.place(*across))).abs() < 0.06);
                let (low, high) = (circles[1].1, 376.0 + 6.0);
                assert!((cy - (high - (high - low) * up)).abs() < 1.1, "{up} at {cy}");
            }
            assert!(svg.contains(">probes a site<") && svg.contains(">share<") && !svg.contains("NaN"), "{svg}");
        }
    }

    #[test]
    fn axes_begin_at_zero_and_hold_errors_and_labels_stay_short() {
        let axis = Axis::linear("ms").holding([61.0, 97.0].into_iter());
        assert_eq!((axis.place(0.0), axis.to, axis.marks()[0]), (0.0, 100.0, 0.0));
        let axis = Axis::powers("entries", Scale::Doubling).holding([3.0, 1_000.0].into_iter());
        assert_eq!((axis.from, axis.to), (2.0, 1024.0));
        let shares = Axis::share("share").holding([0.3].into_iter());
        assert_eq!((shares.to, shares.name(0.5)), (1.0, "50 %".to_owned()));
        let rows = vec![Bar {
            name: "A very long name of an organisation that holds a subnet <&>".to_owned(),
            value: 0.5,
            interval: (0.4, 0.6),
            middle: None,
            note: "3 of 6".to_owned(),
        }];
        let plot = Plot::Rows { x: Axis::share("share of servers"), rows, key: "95 % interval".to_owned() };
        let svg = Chart { title: "word ".repeat(60), plot }.svg("f");
        let longest =
            svg.split("<text").skip(1).map(|text| text[text.find('>').unwrap() + 1..text.find('<').unwrap()].chars().count()).max();
        assert!(longest <= Some(TITLE_LETTERS) && !svg.contains("<&>"), "{longest:?}");
        assert_eq!(["0.5", "20", "12 k", "1.5 M"].map(str::to_owned), [0.5, 20.0, 12_000.0, 1_500_000.0].map(tidy));
    }
}
