//! How do the policies compare at a glance? Probes a site against share of optimal delegations, as an SVG picture.
//!
//! What lies far outside the part that matters (brute force has as many probes as crawlers) stands at the edge, with its figures.

use nearcrawl_lab::delegation::score::Row;
use nearcrawl_model::view::counted;
use std::fmt::Write;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 560.0;
/// Where the plane of the axes begins and ends.
const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 36.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = HEIGHT - 62.0;

/// Probes a site, share of optimal delegations: the paper's evaluation (12 crawlers, 1,000 sites, T = 50 ms).
const PAPER: (f64, f64) = (2.99, 0.746);

/// Of a letter on average, in pixels; enough to keep labels apart.
const LETTER_WIDTH: f64 = 6.6;
const LETTER_HEIGHT: f64 = 13.0;

/// How a policy looks: its colour, and whether its points belong to one line.
fn look(policy: &str) -> (&'static str, bool) {
    match policy {
        "nearcrawl" => ("#1b5faa", true),
        "oracle" => ("#9aa7b5", true),
        "ipmicra" => ("#c4520f", true),
        "random-order" => ("#2e7d4f", false),
        "popular-first" => ("#7d4a9e", false),
        _ => ("#555555", false),
    }
}

/// The diagram as SVG.
pub fn svg(rows: &[Row]) -> String {
    let scale = Scale::of(rows);
    let mut picture = Picture { svg: String::new(), taken: Vec::new() };
    picture.frame(rows, &scale);
    let points: Vec<Point> = rows.iter().map(|row| Point::of(row, &scale)).collect();
    // No label may hide a point, whichever is drawn first.
    let paper = (scale.x(PAPER.0), scale.y(PAPER.1));
    picture.taken.extend(points.iter().map(|point| (point.x, point.y)).chain([paper]).map(|(x, y)| Area::dot(x, y, 5.0)));
    for policy in ["oracle", "ipmicra", "nearcrawl"] {
        picture.line(policy, rows, &points);
    }
    for (row, point) in rows.iter().zip(&points) {
        picture.point(row, point, rows);
    }
    picture.paper(paper);
    picture.svg += "</svg>\n";
    picture.svg
}

/// From figures to pixels.
struct Scale {
    most_probes: f64,
    least_share: f64,
}

impl Scale {
    /// Everything fits but brute force and delegation at random.
    fn of(rows: &[Row]) -> Scale {
        let inner = || rows.iter().filter(|row| !row.policy.starts_with("brute-force") && row.policy != "random-delegation");
        let most = inner().map(|row| row.probes_per_site).fold(PAPER.0 + 0.6, f64::max);
        let least = inner().map(|row| row.optimal).fold(PAPER.1 - 0.05, f64::min);
        Scale { most_probes: (most * 1.06 * 2.0).ceil() / 2.0, least_share: ((least - 0.02) * 10.0).floor().max(0.0) / 10.0 }
    }

    fn x(&self, probes: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (probes / self.most_probes).clamp(0.0, 1.0)
    }

    fn y(&self, share: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * ((share - self.least_share) / (1.0 - self.least_share)).clamp(0.0, 1.0)
    }

    fn holds(&self, probes: f64, share: f64) -> bool {
        probes <= self.most_probes && share >= self.least_share
    }
}

/// Where a row stands in the picture.
struct Point {
    x: f64,
    y: f64,
    /// Half the height of its error bar: one standard error.
    error: f64,
    /// Whether it really stands there, not at the edge for being outside.
    inside: bool,
}

impl Point {
    fn of(row: &Row, scale: &Scale) -> Point {
        let (x, y) = (scale.x(row.probes_per_site), scale.y(row.optimal));
        Point { x, y, error: y - scale.y(row.optimal + row.optimal_se), inside: scale.holds(row.probes_per_site, row.optimal) }
    }
}

/// What is covered already.
#[derive(Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    fn dot(x: f64, y: f64, radius: f64) -> Area {
        Area { left: x - radius, top: y - radius, right: x + radius, bottom: y + radius }
    }

    fn meets(&self, other: &Area) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }
}

struct Picture {
    svg: String,
    taken: Vec<Area>,
}

impl Picture {
    /// A piece of the picture. Writing to a text does not fail.
    fn draw(&mut self, piece: std::fmt::Arguments<'_>) {
        let _ = self.svg.write_fmt(piece);
        self.svg.push('\n');
    }

    /// Paper, title, axes.
    fn frame(&mut self, rows: &[Row], scale: &Scale) {
        self.draw(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"'DejaVu Sans', Verdana, sans-serif\" font-size=\"12\" fill=\"#222\">\n\
             <title>Probes a site against share of optimal delegations</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"32\" font-size=\"17\" font-weight=\"bold\">Fewer probes, nearer crawlers</text>"
        ));
        if let Some(row) = rows.first() {
            let placed = if row.placement == "spread" { "placed apart" } else { "placed at random" };
            self.draw(format_args!(
                "<text x=\"{LEFT}\" y=\"54\" fill=\"#555\">{} {placed}, {} a round, {} evaluated after initialising; \
                 mean of {}, bars: ± 1 standard error</text>",
                counted(row.crawlers, "crawler"),
                counted(row.sites, "site"),
                row.evaluated,
                counted(row.rounds, "round")
            ));
        }
        let step = [0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0].into_iter().find(|step| scale.most_probes / step <= 12.0).unwrap_or(1000.0);
        for tick in 0..=(scale.most_probes / step) as u32 {
            let (probes, x) = (f64::from(tick) * step, scale.x(f64::from(tick) * step));
            self.draw(format_args!("<path d=\"M{x:.1} {TOP}V{BOTTOM}\" stroke=\"#e6e6e6\"/>"));
            self.draw(format_args!("<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{probes}</text>", BOTTOM + 20.0));
        }
        let step = if scale.least_share > 0.45 { 0.05 } else { 0.1 };
        for tick in 0..=((1.0 - scale.least_share) / step).round() as u32 {
            let share = scale.least_share + f64::from(tick) * step;
            let y = scale.y(share);
            self.draw(format_args!("<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#e6e6e6\"/>"));
            self.draw(format_args!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{:.0} %</text>", LEFT - 9.0, y + 4.0, 100.0 * share));
        }
        self.draw(format_args!("<path d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\" stroke=\"#444\" fill=\"none\"/>"));
        let (x, y) = ((LEFT + RIGHT) / 2.0, (TOP + BOTTOM) / 2.0);
        self.draw(format_args!("<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">probes a site</text>", HEIGHT - 20.0));
        self.draw(format_args!(
            "<text transform=\"translate(20 {y}) rotate(-90)\" text-anchor=\"middle\">sites that got a nearest crawler</text>"
        ));
    }

    /// Joins the points of one policy, in the order of its number.
    fn line(&mut self, policy: &str, rows: &[Row], points: &[Point]) {
        let number = |row: &Row| row.price.or(row.threshold_ms).unwrap_or(0.0);
        let mut those: Vec<_> = rows.iter().zip(points).filter(|(row, point)| row.policy == policy && point.inside).collect();
        those.sort_by(|a, b| number(a.0).total_cmp(&number(b.0)));
        let path: Vec<String> = those.iter().map(|(_, point)| format!("{:.1},{:.1}", point.x, point.y)).collect();
        // Labels keep off the line, too.
        for pair in those.windows(2) {
            let (from, to) = (pair[0].1, pair[1].1);
            let pieces = ((to.x - from.x).hypot(to.y - from.y) / 6.0).ceil();
            let along = (1..pieces as u32).map(|piece| f64::from(piece) / pieces);
            self.taken.extend(along.map(|t| Area::dot(from.x + t * (to.x - from.x), from.y + t * (to.y - from.y), 2.0)));
        }
        if path.len() > 1 {
            let colour = look(policy).0;
            self.draw(format_args!("<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>", path.join(" ")));
        }
    }

    fn point(&mut self, row: &Row, point: &Point, rows: &[Row]) {
        let (colour, joined) = look(row.policy);
        let Point { x, y, error, inside } = *point;
        if inside && error > 0.5 {
            self.draw(format_args!("<path d=\"M{x:.1} {:.1}V{:.1}\" stroke=\"{colour}\" stroke-opacity=\"0.5\"/>", y - error, y + error));
        }
        let fill = if inside { colour } else { "white" };
        self.draw(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"));
        let first = rows.iter().find(|other| other.policy == row.policy).is_some_and(|other| std::ptr::eq(other, row));
        let several = rows.iter().filter(|other| other.policy == row.policy).count() > 1;
        let number = match (row.price, row.threshold_ms) {
            (Some(price), _) if joined => format!("{price} ms"),
            (None, Some(threshold)) if joined && several => format!("T = {threshold} ms"),
            _ => String::new(),
        };
        let mut label = match (inside, joined && several) {
            (false, _) => format!("{}: {:.1} probes, {:.0} %", row.policy, row.probes_per_site, 100.0 * row.optimal),
            (true, true) if first => format!("{}, {} {number}", row.policy, if row.price.is_some() { "price of a probe" } else { "" }),
            (true, true) => number,
            (true, false) => format!("{} {number}", row.policy),
        };
        label = label.split_whitespace().collect::<Vec<_>>().join(" ").replace(", T", " T");
        // The name must be somewhere; a number may be missing where points are close together.
        self.label(x, y, &label, colour, first || !inside);
    }

    fn paper(&mut self, (x, y): (f64, f64)) {
        self.draw(format_args!("<path d=\"M{x:.1} {:.1}l7 7l-7 7l-7 -7z\" fill=\"white\" stroke=\"black\" stroke-width=\"2\"/>", y - 7.0));
        self.label(x + 2.0, y, "IPMicra's paper: 2.99 probes, 75 % (12 crawlers, T = 50 ms)", "black", true);
    }

    /// Puts a label where nothing is yet. If there is no such place it is left out, or if it must be there put to the right.
    fn label(&mut self, x: f64, y: f64, text: &str, colour: &str, must: bool) {
        let width = text.chars().count() as f64 * LETTER_WIDTH;
        let half = LETTER_HEIGHT / 2.0;
        let beside = [0.0, -12.0, 12.0, 24.0, -24.0].into_iter().flat_map(|dy| [(x + 9.0, y + dy), (x - 9.0 - width, y + dy)]);
        let places = beside.chain([(x - width / 2.0, y - 15.0), (x - width / 2.0, y + 15.0)]);
        let areas = places.map(|(left, middle)| Area { left, top: middle - half, right: left + width, bottom: middle + half });
        let fits = |area: &Area| {
            let inside = area.left >= LEFT && area.right <= WIDTH - 4.0 && area.top >= TOP - 16.0 && area.bottom <= BOTTOM;
            inside && !self.taken.iter().any(|taken| taken.meets(area))
        };
        let anyway = Area { left: x + 9.0, top: y - half, right: x + 9.0 + width, bottom: y + half };
        let Some(area) = areas.into_iter().find(fits).or(must.then_some(anyway)) else { return };
        self.taken.push(area);
        let left = area.left.min(WIDTH - 4.0 - width);
        // A white rim keeps the text readable across lines of the grid.
        self.draw(format_args!(
            "<text x=\"{left:.1}\" y=\"{:.1}\" fill=\"{colour}\" stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\">{text}</text>",
            area.top + half + 4.0
        ));
    }
}
