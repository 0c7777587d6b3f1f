//! Draws the hosts of the made-up web and their properties from the seed.

use super::{
    host::{Door, Host, Nature, Robots, Span, Tls},
    lists::{GENERATORS, SOFTWARE, TLDS, VOICES, WORDS},
    place::Places,
};
use crate::{census::plan::CensusPlan, rng::SplitMix64};

/// One of some.
pub(super) fn pick<T: Copy>(rng: &mut SplitMix64, from: &[T]) -> T {
    from[rng.below(from.len())]
}

/// Natures of which every web has some.
const SPECIAL: [Nature; 10] = [
    Nature::Part,
    Nature::Forbids,
    Nature::Refuses,
    Nature::Expired,
    Nature::BarsAll,
    Nature::NoPages,
    Nature::RobotsFail,
    Nature::Silent,
    Nature::ForOther,
    Nature::Stranger,
];

/// Of so many hosts one more of each of the special ones is there.
const SPECIAL_EVERY: usize = 80;

/// Hosts that only a portal names, beyond the limit.
pub(super) const HIDDEN: usize = 3;

/// All hosts, without pages: portals first, then plain ones, then the others.
pub(super) fn hosts(plan: &CensusPlan, places: &mut Places, rng: &mut SplitMix64) -> Vec<Host> {
    let specials: Vec<Nature> = (0..1 + plan.hosts / SPECIAL_EVERY).flat_map(|_| SPECIAL).collect();
    let portals = 1 + plan.hosts / 200;
    let plain = plan.hosts.saturating_sub(specials.len() + portals + HIDDEN);
    let natures = vec![Nature::Portal; portals].into_iter().chain(vec![Nature::Plain; plain]).chain(specials);
    let natures: Vec<Nature> = natures.chain([Nature::Hidden; HIDDEN]).collect();
    let mut hosts: Vec<Host> = Vec::new();
    for (number, nature) in natures.into_iter().enumerate() {
        let shared = hosts.last().filter(|last| nature == Nature::Plain && last.nature == nature && number % 9 == 5);
        let (place, http10) = (shared.map(|last| (last.address, last.land)), shared.map(|last| last.http10));
        let Some(place) = place.or_else(|| places.take(rng)) else { continue };
        let mut host = host(number, nature, place, places.lands[place.1].country, rng);
        // Who was answered in HTTP/1.0 on a connection goes on in it, whichever host is asked next.
        host.http10 = http10.unwrap_or(host.http10);
        hosts.push(host);
    }
    name_parts(&mut hosts);
    changes(plan, &mut hosts, rng);
    hosts
}

/// The top-level domain of a host: often its country's, where that has one.
fn tld(country: &str, rng: &mut SplitMix64) -> &'static str {
    let (any, stays) = (pick(rng, &TLDS), rng.below(3) > 0);
    TLDS.into_iter().find(|tld| stays && tld.eq_ignore_ascii_case(country)).unwrap_or(any)
}

fn host(number: usize, nature: Nature, (address, land): (std::net::Ipv4Addr, usize), country: &str, rng: &mut SplitMix64) -> Host {
    let domain = format!("{}{number}.{}", pick(rng, &WORDS), tld(country, rng));
    let name = if nature == Nature::Plain && rng.below(6) == 0 { format!("www.{domain}") } else { domain.clone() };
    let door = door(nature, rng);
    let is_secure = door.tls().is_some();
    let voice = pick(rng, &VOICES);
    let alt_svc: [(&str, &[&str]); 2] = [("h3=\":443\"; ma=86400, h2=\":443\"", &["h3", "h2"]), ("h2=\":8443\"", &["h2"])];
    Host {
        tree: domain.clone(),
        name,
        domain,
        address,
        land,
        nature,
        door,
        robots: robots(nature, rng),
        listens: if nature == Nature::Refuses { Span { from: u32::MAX, until: u32::MAX } } else { Span::ALWAYS },
        born: 1,
        of_portal: false,
        latin1: voice.script == Some("Latn") && rng.below(4) == 0 && voice.text.is_ascii(),
        voice,
        later_voice: None,
        software: pick(rng, &SOFTWARE),
        later_software: None,
        generator: pick(rng, &GENERATORS),
        http10: !is_secure && rng.below(12) == 0,
        etags: rng.below(4) > 0,
        alt_svc: (is_secure && rng.below(2) == 0).then(|| pick(rng, &alt_svc)),
        hsts: (is_secure && rng.below(2) == 0).then(|| pick(rng, &[300, 31_536_000])),
        guarded: rng.below(10) == 0,
        content_usage: (rng.below(8) == 0).then_some("train-ai=n, search=y"),
        tdm_header: (rng.below(8) == 0).then(|| rng.below(2) == 0),
        tdm_meta: (rng.below(8) == 0).then(|| rng.below(2) == 0),
        pages: Vec::new(),
    }
}

fn door(nature: Nature, rng: &mut SplitMix64) -> Door {
    let tls = pick(rng, &[Tls::V12, Tls::V13, Tls::V13]);
    match nature {
        Nature::Expired | Nature::ForOther | Nature::Stranger => Door::Https(tls),
        Nature::Portal | Nature::Part | Nature::Silent | Nature::Refuses | Nature::RobotsFail => Door::Http,
        _ => pick(rng, &[Door::Http, Door::Http, Door::Https(tls), Door::Redirects(tls)]),
    }
}

fn robots(nature: Nature, rng: &mut SplitMix64) -> Robots {
    match nature {
        Nature::BarsAll => Robots::BarsAll,
        Nature::RobotsFail => Robots::Fails,
        Nature::Plain => pick(rng, &[Robots::Absent, Robots::AllowsAll, Robots::BarsSome, Robots::BarsSome, Robots::BarsSomeAndWishes]),
        _ => pick(rng, &[Robots::Absent, Robots::AllowsAll]),
    }
}

/// Each part of a tree is a subdomain of another plain host that is named by its registrable domain.
fn name_parts(hosts: &mut [Host]) {
    let mut parents: Vec<String> = hosts.iter().filter(|host| host.nature == Nature::Plain).map(|host| host.domain.clone()).collect();
    parents.reverse();
    for part in hosts.iter_mut().filter(|host| host.nature == Nature::Part) {
        let Some(parent) = parents.pop() else { return };
        (part.name, part.domain, part.tree) = (format!("digital.{parent}"), parent.clone(), parent);
    }
}

/// What changes from the second run on.
fn changes(plan: &CensusPlan, hosts: &mut [Host], rng: &mut SplitMix64) {
    if plan.runs < 2 {
        return;
    }
    for host in hosts {
        let later = 2 + rng.below(plan.runs as usize - 1) as u32;
        if host.nature == Nature::Refuses && rng.below(2) == 0 {
            host.listens.from = later;
        }
        if host.nature == Nature::Plain && rng.below(8) == 0 {
            host.later_software = Some((later, pick(rng, &SOFTWARE)));
        }
        // Its pages are others then, all of them; none of them is in another encoding.
        if host.nature == Nature::Plain && !host.latin1 && rng.below(12) == 0 {
            host.later_voice = Some((later, pick(rng, &VOICES)));
        }
    }
}
