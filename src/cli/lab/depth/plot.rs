//! How do depth and yield compare at a glance? The paper's figures 1 to 3, with the rule of yield in the third.

use nearcrawl_lab::depth::score::Row;
use std::fmt::{Arguments, Display, Write};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 1_090.0;
/// Where the axes begin and end.
const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 170.0;
/// Where the three pictures begin and end.
const FIGURES: [(f64, f64); 3] = [(40.0, 320.0), (390.0, 600.0), (670.0, 1_030.0)];

const PAGES: &str = "#1b5faa";
const URLS: &str = "#c4520f";
const HOSTS: &str = "#2e7d4f";

/// The diagrams as SVG.
pub fn svg(rows: &[Row]) -> String {
    let mut picture = Picture { svg: String::new() };
    picture.draw(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
        <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>"
    ));
    let by_depth: Vec<&Row> = rows.iter().filter(|row| row.rule == "depth").collect();
    let mut by_yield: Vec<&Row> = rows.iter().filter(|row| row.rule == "yield").collect();
    by_yield.sort_by(|a, b| a.load.total_cmp(&b.load));
    picture.found_by_depth(&by_depth);
    picture.trees_by_depth(&by_depth);
    picture.coverage_by_load(&by_depth, &by_yield);
    picture.svg += "</svg>\n";
    picture.svg
}

struct Picture {
    svg: String,
}

/// Where figures stand in one of the pictures.
struct Axes {
    area: (f64, f64),
    /// The greatest values: at the right, and at the top.
    most: (f64, f64),
}

impl Axes {
    fn x(&self, value: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (value / self.most.0).clamp(0.0, 1.0)
    }

    fn y(&self, value: f64) -> f64 {
        self.area.1 - (self.area.1 - self.area.0) * (value / self.most.1).clamp(0.0, 1.0)
    }
}

impl Picture {
    /// A piece of the picture. Writing to a text cannot fail.
    fn draw(&mut self, piece: Arguments) {
        let _ = writeln!(self.svg, "{piece}");
    }

    fn frame(&mut self, axes: &Axes, title: &str, below: &str, marks: (f64, f64), name: impl Fn(f64) -> String) {
        let (top, bottom) = axes.area;
        self.draw(format_args!("<text x=\"{LEFT}\" y=\"{:.1}\" font-size=\"14\">{title}</text>", top - 12.0));
        for number in 0..=(axes.most.1 / marks.1).round() as u32 {
            let value = f64::from(number) * marks.1;
            let (y, name) = (axes.y(value), name(value));
            self.draw(format_args!("<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#dddddd\"/>"));
            self.draw(format_args!("<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>", LEFT - 6.0, y + 4.0));
        }
        for number in 0..=(axes.most.0 / marks.0).round() as u32 {
            let value = f64::from(number) * marks.0;
            let x = axes.x(value);
            let name = if axes.most.0 == 1.0 { percent(value) } else { value.to_string() };
            self.draw(format_args!("<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"#eeeeee\"/>"));
            self.draw(format_args!("<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>", bottom + 18.0));
        }
        let (x, y) = ((LEFT + RIGHT) / 2.0, bottom + 38.0);
        self.draw(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{below}</text>"));
    }

    fn line(&mut self, axes: &Axes, colour: &str, broken: bool, points: &[(f64, f64)]) {
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{:.1},{:.1}", axes.x(*x), axes.y(*y))).collect();
        let dashes = if broken { " stroke-dasharray=\"6 4\"" } else { "" };
        self.draw(format_args!("<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>", path.join(" ")));
        for (x, y) in points {
            self.draw(format_args!("<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", axes.x(*x), axes.y(*y)));
        }
    }

    fn key(&mut self, axes: &Axes, number: usize, colour: &str, broken: bool, name: impl Display) {
        let (x, y) = (RIGHT + 12.0, axes.area.0 + 12.0 + 20.0 * number as f64);
        let dashes = if broken { " stroke-dasharray=\"6 4\"" } else { "" };
        self.draw(format_args!("<path d=\"M{x:.1} {y:.1}h24\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>"));
        self.draw(format_args!("<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>", x + 30.0, y + 4.0));
    }

    /// Figure 1: pages and external URLs, each as a share of all, so that both fit one axis.
    fn found_by_depth(&mut self, rows: &[&Row]) {
        let most = rows.last().map_or(1.0, |row| f64::from(row.depth)).max(1.0);
        let all = rows.last().map_or(1.0, |row| row.pages as f64).max(1.0);
        let axes = Axes { area: FIGURES[0], most: (most, 1.0) };
        self.frame(&axes, "pages and external URLs collected (figure 1)", "depth", (1.0, 0.2), percent);
        self.line(&axes, PAGES, false, &rows.iter().map(|row| (f64::from(row.depth), row.pages as f64 / all)).collect::<Vec<_>>());
        self.line(&axes, URLS, false, &rows.iter().map(|row| (f64::from(row.depth), row.coverage_urls)).collect::<Vec<_>>());
        self.key(&axes, 0, PAGES, false, "pages");
        self.key(&axes, 1, URLS, false, "external URLs");
    }

    /// The trees by depth, as in the paper's figure 2.
    fn trees_by_depth(&mut self, rows: &[&Row]) {
        let depths = rows.last().map_or(1.0, |row| f64::from(row.depth)).max(1.0);
        let most = rows.iter().map(|row| row.trees).max().unwrap_or(0).max(1) as f64;
        let step = 10_f64.powf(most.log10().floor()) / if most.log10().fract() < 0.5 { 2.0 } else { 1.0 };
        let axes = Axes { area: FIGURES[1], most: (depths, (most / step).ceil() * step) };
        self.frame(&axes, "trees whose deepest page lies there (figure 2)", "depth", (1.0, step), |value| value.to_string());
        self.line(&axes, PAGES, false, &rows.iter().map(|row| (f64::from(row.depth), row.trees as f64)).collect::<Vec<_>>());
        self.key(&axes, 0, PAGES, false, "trees");
    }

    /// Coverage by load, as in the paper's figure 3.
    fn coverage_by_load(&mut self, by_depth: &[&Row], by_yield: &[&Row]) {
        let axes = Axes { area: FIGURES[2], most: (1.0, 1.0) };
        self.frame(&axes, "coverage by load (figure 3)", "requests, as a share of the deepest crawl's", (0.1, 0.2), percent);
        let urls = |rows: &[&Row]| rows.iter().map(|row| (row.load, row.coverage_urls)).collect::<Vec<_>>();
        let hosts = |rows: &[&Row]| rows.iter().map(|row| (row.load, row.coverage_hosts)).collect::<Vec<_>>();
        self.line(&axes, URLS, true, &urls(by_depth));
        self.line(&axes, HOSTS, true, &hosts(by_depth));
        self.key(&axes, 0, URLS, true, "URLs, by depth");
        self.key(&axes, 1, HOSTS, true, "hosts, by depth");
        if !by_yield.is_empty() {
            self.line(&axes, HOSTS, false, &hosts(by_yield));
            self.key(&axes, 2, HOSTS, false, "hosts, by yield");
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
