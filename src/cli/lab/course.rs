//! Picture of what a simulated swarm did over time, as SVG.
//!
//! It has members that may fetch, subnets with an owner and requests, with what happened to the swarm.

use nearcrawl_lab::scenario::{Sample, Verdict};
use std::fmt::Write;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 520.0;
/// Where the panels begin and end.
const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 30.0;
const TOP: f64 = 92.0;
const PANEL: f64 = 110.0;
const GAP: f64 = 22.0;

/// A panel: what it shows, the line that can at most be reached, and what is reached.
struct Panel {
    title: &'static str,
    most: fn(&Sample) -> f64,
    value: fn(&Sample, &Sample) -> f64,
}

/// Each value sees the sample before, too.
const PANELS: [Panel; 3] = [
    Panel { title: "members that may fetch, of those that run", most: |at| at.running as f64, value: |at, _| at.able as f64 },
    Panel { title: "subnets with an owner that may fetch, of those known", most: |at| at.known as f64, value: |at, _| at.owned as f64 },
    Panel {
        title: "requests a second",
        most: |_| 0.0,
        value: |at, before| (at.fetches - before.fetches) as f64 * 1_000.0 / (at.at - before.at).max(1) as f64,
    },
];

/// The picture as SVG.
pub fn svg(verdict: &Verdict) -> String {
    let mut svg = String::new();
    // Writing to a text does not fail.
    let mut draw = |piece: std::fmt::Arguments<'_>| {
        let _ = writeln!(svg, "{piece}");
    };
    let end = verdict.course.last().map_or(1.0, |last| last.at as f64);
    let x = |at: u64| LEFT + (RIGHT - LEFT) * at as f64 / end;
    let bottom = TOP + 3.0 * PANEL + 2.0 * GAP;
    draw(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"'DejaVu Sans', Verdana, sans-serif\" font-size=\"12\" fill=\"#222\">\n<title>A simulated swarm over time</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"30\" font-size=\"17\" font-weight=\"bold\">{}</text>\n\
         <text x=\"{LEFT}\" y=\"50\" fill=\"#555\">seed {}; overlaps {}, pauses broken {}, fetched twice {}, lost {}, exact but wrong {}</text>",
        if verdict.holds { "All promises kept" } else { "Promises broken" },
        verdict.seed,
        verdict.overlaps,
        verdict.pauses_broken,
        verdict.fetched_twice,
        verdict.lost,
        verdict.exact_but_wrong,
    ));
    for (number, (at, verb)) in verdict.marks.iter().enumerate() {
        let (x, y) = (x(*at), TOP - 24.0 + 12.0 * (number % 2) as f64);
        draw(format_args!("<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#c4520f\" stroke-dasharray=\"2 3\"/>"));
        draw(format_args!("<text x=\"{x:.1}\" y=\"{y}\" font-size=\"10\" fill=\"#c4520f\">{verb}</text>"));
    }
    if let Some(first) = &verdict.first_violation {
        let x = x(first.at_ms);
        draw(format_args!("<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#b00020\" stroke-width=\"1.5\"/>"));
    }
    for (number, panel) in PANELS.iter().enumerate() {
        let floor = TOP + PANEL + (PANEL + GAP) * number as f64;
        let pairs = || verdict.course.iter().zip(verdict.course.iter().skip(1));
        let highest = pairs().map(|(before, at)| (panel.value)(at, before).max((panel.most)(at))).fold(1.0, f64::max);
        let y = |value: f64| floor - (PANEL - 16.0) * value / highest;
        let line = |value: &dyn Fn(&Sample, &Sample) -> f64| {
            let mut path = String::new();
            for (place, (before, at)) in pairs().enumerate() {
                let _ = write!(path, "{}{:.1} {:.1}", if place == 0 { 'M' } else { 'L' }, x(at.at), y(value(at, before)));
            }
            path
        };
        draw(format_args!("<path d=\"M{LEFT} {floor}H{RIGHT}\" stroke=\"#999\"/>"));
        draw(format_args!("<text x=\"{LEFT}\" y=\"{:.1}\" fill=\"#555\">{}</text>", floor - PANEL + 10.0, panel.title));
        draw(format_args!("<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{highest:.0}</text>", LEFT - 8.0, y(highest) + 4.0));
        draw(format_args!("<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">0</text>", LEFT - 8.0, floor + 4.0));
        draw(format_args!("<path d=\"{}\" fill=\"none\" stroke=\"#9aa7b5\"/>", line(&|at, _| (panel.most)(at))));
        draw(format_args!("<path d=\"{}\" fill=\"none\" stroke=\"#1b5faa\" stroke-width=\"1.6\"/>", line(&panel.value)));
    }
    for tick in 0..=(end / 600_000.0) as u64 {
        let x = x(tick * 600_000);
        draw(format_args!("<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} min</text>", bottom + 18.0, tick * 10));
    }
    draw(format_args!("</svg>"));
    svg
}
