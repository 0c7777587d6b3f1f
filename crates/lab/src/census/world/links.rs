//! Draws the pages of each host and their links from the seed, such that the result of a crawl does not depend on who comes first.
//!
//! Every host is named by a page of an earlier plain host, so all can be reached from the first three. A page to which other hosts lead
//! besides the front page leads nowhere but to that. What is gone later named no other host. Hosts that a portal may lead to are named by
//! it alone.

use super::{
    draw::pick,
    host::{Content, Door, Host, Link, Nature, Page, Span, Target},
    lists::{FLAWS, OUTSIDE, TLDS},
};
use crate::{
    census::plan::{CensusPlan, DEPTH},
    rng::SplitMix64,
};

/// How many other hosts each plain host brings, besides random ones. A portal brings as many as it may lead to.
const CHILDREN: usize = 3;

/// How many hosts are seeds.
pub(super) const SEEDS: usize = 3;

/// Gives the hosts their pages.
pub(super) fn pages(plan: &CensusPlan, hosts: &mut [Host], rng: &mut SplitMix64) {
    for host in hosts.iter_mut() {
        host.pages = own_pages(plan, host, rng);
    }
    tree(plan, hosts, rng);
    parts(hosts);
    for number in 0..hosts.len() {
        match hosts[number].nature {
            Nature::Plain => across(plan, hosts, number, rng),
            Nature::Portal => portal(plan, hosts, number, rng),
            _ => {}
        }
    }
}

/// The pages of a host, with links among themselves and out of scope.
fn own_pages(plan: &CensusPlan, host: &Host, rng: &mut SplitMix64) -> Vec<Page> {
    let count = match host.nature {
        Nature::Plain => 4 + rng.below(6),
        Nature::Portal | Nature::Part | Nature::Refuses => 4,
        _ => 1,
    };
    let mut pages: Vec<Page> =
        (0..count).map(|page| Page::new(if page == 0 { "/".to_owned() } else { format!("/p{page}.html") })).collect();
    // Names stand for pages, since the host has no number yet: the front page names the first two, any page one that comes later.
    for page in 1..count {
        let from = if page <= 2 { 0 } else { rng.below(page.min(3)) };
        pages[from].link(Target::Text(format!("/p{page}.html")));
    }
    for page in &mut pages {
        page.link(Target::Text("/".to_owned()));
        if rng.below(3) == 0 {
            page.flaws.push(pick(rng, &FLAWS));
        }
        page.titled = rng.below(6) > 0;
        for _ in 0..rng.below(3) {
            page.link(Target::Text(pick(rng, &OUTSIDE).0.to_owned()));
        }
        page.flaws.dedup();
    }
    if host.nature == Nature::Plain {
        oddities(&mut pages, rng);
        changes(plan, &mut pages, count, rng);
    }
    match host.nature {
        Nature::NoPages => pages[0].content = Content::Pdf,
        Nature::Silent => pages[0].content = Content::Silence,
        Nature::Forbids => pages[0].content = Content::Status(403),
        _ => {}
    }
    pages
}

/// What some plain hosts have besides ordinary pages. The front page names all of it.
fn oddities(pages: &mut Vec<Page>, rng: &mut SplitMix64) {
    let path = |text: &str| Target::Text(text.to_owned());
    if rng.below(2) == 0 {
        pages[0].link(path("/private/x.html"));
        pages.push(Page::new("/private/x.html"));
    }
    if rng.below(3) == 0 {
        pages[0].link(path("/missing.html"));
    }
    for (name, content) in [
        ("/old.html", Content::Moved(path("/p1.html"))),
        ("/away.html", Content::Moved(Target::Text(pick(rng, &OUTSIDE).0.to_owned()))),
        ("/report", Content::Pdf),
        ("/broken.html", Content::Status(500)),
        ("/encoded.html", Content::BadEncoding),
        ("/lost.html", Content::BadRedirect),
    ] {
        if rng.below(5) == 0 {
            pages[0].link(path(name));
            pages.push(Page { content, ..Page::new(name) });
        }
    }
    if rng.below(4) == 0 {
        pages[0].links.push(Link { to: path("/map.pdf"), span: Span::ALWAYS, media: true });
    }
    if rng.below(4) == 0 {
        pages[0].link(path("/search?id=1"));
        pages[0].link(path("/search?id=2"));
        pages.extend(["/search?id=1", "/search?id=2"].map(Page::new));
    }
    if rng.below(5) == 0 {
        let mut quiet = Page { no_follow: true, no_index: rng.below(2) == 0, ..Page::new("/quiet.html") };
        quiet.link(path("/orphan.html"));
        pages[0].link(path("/quiet.html"));
        pages.extend([quiet, Page::new("/orphan.html")]);
    }
    if rng.below(6) == 0 {
        let last = DEPTH + 2;
        pages[0].link(path("/deep/1.html"));
        for level in 1..=last {
            let mut page = Page::new(format!("/deep/{level}.html"));
            page.link(path(&format!("/deep/{}.html", level + 1)));
            pages.push(page);
        }
    }
}

/// What changes in a plain host from the second run on. Pages from the fourth on name no host in scope.
fn changes(plan: &CensusPlan, pages: &mut Vec<Page>, ordinary: usize, rng: &mut SplitMix64) {
    if plan.runs < 2 {
        return;
    }
    let later = |rng: &mut SplitMix64| 2 + rng.below(plan.runs as usize - 1) as u32;
    for number in 0..ordinary {
        let run = later(rng);
        match rng.below(8) {
            0 | 1 => pages[number].edits.push(run),
            // Gone, and still named by others.
            2 if number > 3 => pages[number].span.until = run,
            // Nothing names it any more.
            3 if number > 3 => {
                let gone = Target::Text(pages[number].path.clone());
                let links = pages.iter_mut().flat_map(|page| &mut page.links).filter(|link| link.to == gone);
                links.for_each(|link| link.span.until = run);
            }
            4 => {
                let name = format!("/new{number}.html");
                pages[0].link_in(Target::Text(name.clone()), Span { from: run, ..Span::ALWAYS });
                pages.push(Page { span: Span { from: run, ..Span::ALWAYS }, ..Page::new(name) });
            }
            _ => {}
        }
    }
}

/// Every host but the seeds, the parts and the hidden ones is named by a plain host, or a portal, that comes before it.
fn tree(plan: &CensusPlan, hosts: &mut [Host], rng: &mut SplitMix64) {
    let parents: Vec<usize> = (0..hosts.len()).filter(|host| matches!(hosts[*host].nature, Nature::Plain | Nature::Portal)).collect();
    let named = (0..hosts.len()).filter(|host| !matches!(hosts[*host].nature, Nature::Part | Nature::Hidden)).skip(SEEDS);
    let named: Vec<usize> = named.collect();
    let room = |parent: usize| if hosts[parent].nature == Nature::Portal { plan.new_hosts_per_site() } else { CHILDREN };
    let brings: Vec<usize> = parents.iter().flat_map(|parent| vec![*parent; room(*parent)]).collect();
    let used = parents.iter().position(|parent| brings.get(named.len()).is_some_and(|first| first == parent)).unwrap_or(parents.len());
    let leaves = parents.get((used + 1).max(SEEDS)..).unwrap_or_default();
    for (host, parent) in named.into_iter().zip(brings) {
        if plan.runs > 1 && leaves.contains(&host) && hosts[parent].nature == Nature::Plain {
            fate(plan, hosts, host, rng);
        }
        let page = if hosts[parent].nature == Nature::Portal { 0 } else { rng.below(3) };
        let from = hosts[host].born;
        hosts[host].of_portal = hosts[parent].nature == Nature::Portal;
        hosts[parent].pages[page].link_in(Target::Home(host), Span { from, ..Span::ALWAYS });
    }
}

/// A plain host that brings no other one may be named later only, or go down.
fn fate(plan: &CensusPlan, hosts: &mut [Host], host: usize, rng: &mut SplitMix64) {
    let later = 2 + rng.below(plan.runs as usize - 1) as u32;
    let is_alone = hosts.iter().filter(|other| other.address == hosts[host].address).count() == 1;
    let is_parent = hosts.iter().any(|part| part.nature == Nature::Part && part.domain == hosts[host].domain);
    match rng.below(10) {
        0 if !is_parent => hosts[host].born = later,
        1 if is_alone && !is_parent => hosts[host].listens.until = later,
        _ => {}
    }
}

/// A part of a tree is named by its parent's front page alone, and names that one. Neither loses pages.
fn parts(hosts: &mut [Host]) {
    for part in (0..hosts.len()).filter(|host| hosts[*host].nature == Nature::Part).collect::<Vec<_>>() {
        let Some(parent) = hosts.iter().position(|host| host.nature == Nature::Plain && host.domain == hosts[part].domain) else {
            continue;
        };
        hosts[parent].pages[0].link(Target::Page(part, 0));
        hosts[part].pages[1].link(Target::Home(parent));
        for page in &mut hosts[parent].pages {
            page.span.until = u32::MAX;
            page.links.iter_mut().for_each(|link| link.span.until = u32::MAX);
        }
    }
}

/// Further links of a plain host to others.
fn across(plan: &CensusPlan, hosts: &mut [Host], number: usize, rng: &mut SplitMix64) {
    let room = plan.new_hosts_per_site() - CHILDREN - 2;
    let known: Vec<usize> = (0..hosts.len()).filter(|host| may_be_named(&hosts[*host]) && *host != number).collect();
    for _ in 0..rng.below(room.min(7)) {
        let (page, other) = (rng.below(3), pick(rng, &known));
        hosts[number].pages[page].link(Target::Home(other));
    }
    // A page that other hosts lead to besides the front page.
    let other = pick(rng, &known);
    if rng.below(6) == 0 && hosts[other].nature == Nature::Plain && !matches!(hosts[other].door, Door::Redirects(_)) {
        let mut island = Page::new("/island.html");
        island.link(Target::Text("/".to_owned()));
        if !hosts[other].pages.iter().any(|page| page.path == island.path) {
            hosts[other].pages.push(island);
        }
        let page = hosts[other].pages.iter().position(|page| page.path == "/island.html").unwrap_or_default();
        hosts[number].pages[1].link(Target::Page(other, page));
    }
    // A host without an address.
    if rng.below(6) == 0 {
        hosts[number].pages[2].link(Target::Text(format!("http://nowhere{number}.{}:8080/", pick(rng, &TLDS))));
    }
}

/// Whether further links may lead there: what they bring does not depend on who comes first.
pub(super) fn may_be_named(host: &Host) -> bool {
    !matches!(host.nature, Nature::Part | Nature::Hidden) && host.born == 1 && !host.of_portal
}

/// A portal names more hosts than it may lead to: behind those that it brings, as many as it may, some others and the hidden ones.
fn portal(plan: &CensusPlan, hosts: &mut [Host], number: usize, rng: &mut SplitMix64) {
    let mut others: Vec<usize> = (0..hosts.len()).filter(|host| may_be_named(&hosts[*host]) && *host != number).collect();
    rng.shuffle(&mut others);
    others.truncate(1 + plan.new_hosts_per_site() / 4);
    let hidden = (0..hosts.len()).filter(|host| hosts[*host].nature == Nature::Hidden).collect::<Vec<_>>();
    for to in others.into_iter().chain(hidden) {
        hosts[number].pages[0].link(Target::Home(to));
    }
}
