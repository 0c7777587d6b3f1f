//! Writes pages as HTML of a size that does not depend on who asks.

use super::{
    links::Link,
    place::{HostName, Path, Place},
    plan::Plan,
};
use std::fmt::Write;

/// More than any link takes as HTML, host and port included.
const LINK: usize = 80;

/// More than all takes that is neither link nor text.
const FRAME: usize = 200;

/// Text on a page at least …
const MIN_TEXT: f64 = 2_000.0;

/// … and at most so much more, most pages having far less.
const MORE_TEXT: f64 = 100_000.0;

const WORDS: &str = "<p>The museum is open from nine to five, and the library on Saturdays too; ask at the desk for the catalogue.</p>\n";

/// How many bytes a page has.
pub(crate) fn size(plan: &Plan, place: &Place, links: &[Link]) -> usize {
    let text = MIN_TEXT + MORE_TEXT * plan.rng.of(7).of(place.number()).unit().powi(12);
    FRAME + LINK * links.len() + text as usize
}

/// How long the server thinks, in milliseconds: what a program makes takes longer than what lies there.
pub(crate) fn thinking(plan: &Plan, place: &Place) -> u64 {
    let made = matches!(place, Place::List { .. } | Place::Item { .. } | Place::Day { .. });
    let rng = plan.rng.of(8).of(place.number());
    if made { 100 + rng.below(200) } else { 10 + rng.below(20) }
}

/// The page itself, of a web whose servers listen on `port`.
pub(crate) fn write(port: u16, plan: &Plan, place: &Place, links: &[Link]) -> String {
    let size = size(plan, place, links);
    let here = HostName::of(plan, place);
    let colon_port = if port == 80 { String::new() } else { format!(":{port}") };
    let mut html = String::with_capacity(size);
    // Writing to a text cannot fail.
    let _ = writeln!(html, "<!doctype html>\n<html><head><title>{here}{}</title></head><body>", Path(place, &here));
    for link in links {
        let _ = match link {
            Link::Inside(to) => {
                let host = HostName::of(plan, to);
                if host.section == here.section {
                    writeln!(html, "<a href=\"{}\">more</a>", Path(to, &host))
                } else {
                    writeln!(html, "<a href=\"http://{host}{colon_port}{}\">more</a>", Path(to, &host))
                }
            }
            Link::Outside(to) => writeln!(html, "<a href=\"{}\">elsewhere</a>", to.at(port)),
        };
    }
    while html.len() < size {
        html.push_str(&WORDS[..WORDS.len().min(size - html.len())]);
    }
    html
}
