//! How do the rules compare at a glance? Miss rate against size above, as many times MIN's below: the paper's figures 2 and 3, or 4 and 5.

use nearcrawl_lab::cache::score::Row;
use std::fmt::Write;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 760.0;
/// Where the axes begin and end.
const LEFT: f64 = 64.0;
const RIGHT: f64 = WIDTH - 140.0;
/// Where the two pictures begin and end.
const UPPER: (f64, f64) = (40.0, 350.0);
const LOWER: (f64, f64) = (410.0, 700.0);

/// What is more times MIN's misses stands at the edge.
const MAX_TIMES: f64 = 5.0;

/// How a rule looks: its colour, and whether its line is broken.
fn look(policy: &str) -> (&'static str, bool) {
    match policy {
        "infinite" => ("#9aa7b5", true),
        "min" => ("#222222", false),
        "lru" => ("#2e7d4f", false),
        "clock" => ("#1b5faa", false),
        "random" => ("#c4520f", false),
        "static" => ("#7d4a9e", false),
        "static-charged" => ("#7d4a9e", true),
        "s3fifo" => ("#0f8f9c", false),
        _ => ("#b0862a", false),
    }
}

/// The diagram as SVG.
pub fn svg(rows: &[Row]) -> String {
    let sizes = || rows.iter().map(|row| (row.size as f64).log2());
    let (least, most) = (sizes().fold(f64::INFINITY, f64::min).floor(), sizes().fold(0.0, f64::max).ceil());
    let axes = Axes { least, most: most.max(least + 1.0) };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
        <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    axes.frame(&mut svg, UPPER, "share of look-ups that miss", &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0], |share| format!("{:.0} %", 100.0 * share));
    axes.frame(&mut svg, LOWER, "how many times the misses of MIN", &[0.0, 1.0, 2.0, 3.0, 4.0, MAX_TIMES], |times| format!("{times}"));
    for (number, rows) in rows.chunk_by(|a, b| a.policy == b.policy).enumerate() {
        axes.line(&mut svg, UPPER, 1.0, rows, |row| row.miss_rate);
        axes.line(&mut svg, LOWER, MAX_TIMES, rows, |row| row.vs_min);
        let (y, name) = (UPPER.0 + 12.0 + 20.0 * number as f64, &rows[0].policy);
        let (stroke, text) = (stroke(name), RIGHT + 42.0);
        line_of(&mut svg, format_args!("<path d=\"M{:.1} {y:.1}h24\" {stroke}/>", RIGHT + 12.0));
        line_of(&mut svg, format_args!("<text x=\"{text:.1}\" y=\"{:.1}\">{name}</text>", y + 4.0));
    }
    svg += "</svg>\n";
    svg
}

/// Sizes as powers of two, from left to right.
struct Axes {
    least: f64,
    most: f64,
}

impl Axes {
    fn x(&self, exponent: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (exponent - self.least) / (self.most - self.least)
    }

    fn frame(&self, svg: &mut String, (top, bottom): (f64, f64), title: &str, marks: &[f64], name: impl Fn(f64) -> String) {
        line_of(svg, format_args!("<text x=\"{LEFT}\" y=\"{:.1}\" font-size=\"14\">{title}</text>", top - 12.0));
        let most = marks.last().copied().unwrap_or(1.0);
        for mark in marks {
            let y = bottom - (bottom - top) * mark / most;
            line_of(svg, format_args!("<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#dddddd\"/>"));
            line_of(svg, format_args!("<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", LEFT - 6.0, y + 4.0, name(*mark)));
        }
        let step = ((self.most - self.least) / 13.0).ceil() as usize;
        for exponent in (self.least as u32..=self.most as u32).step_by(step.max(1)) {
            let x = self.x(f64::from(exponent));
            line_of(svg, format_args!("<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"#eeeeee\"/>"));
            // The exponents stand a little higher than the twos.
            let power = format!("2<tspan dy=\"-5\" font-size=\"9\">{exponent}</tspan>");
            line_of(svg, format_args!("<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{power}</text>", bottom + 18.0));
        }
        let (x, y) = ((LEFT + RIGHT) / 2.0, bottom + 38.0);
        line_of(svg, format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">entries</text>"));
    }

    fn line(&self, svg: &mut String, (top, bottom): (f64, f64), most: f64, rows: &[Row], value: impl Fn(&Row) -> f64) {
        let point = |row: &Row| {
            let y = bottom - (bottom - top) * (value(row) / most).clamp(0.0, 1.0);
            format!("{:.1},{y:.1}", self.x((row.size as f64).log2()))
        };
        let points: Vec<String> = rows.iter().map(point).collect();
        line_of(svg, format_args!("<polyline points=\"{}\" {}/>", points.join(" "), stroke(&rows[0].policy)));
    }
}

fn stroke(policy: &str) -> String {
    let (colour, broken) = look(policy);
    format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{}", if broken { " stroke-dasharray=\"6 4\"" } else { "" })
}

fn line_of(svg: &mut String, what: std::fmt::Arguments) {
    // Writing to a text cannot fail.
    let _ = writeln!(svg, "{what}");
}
