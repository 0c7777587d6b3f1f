//! The links of a page: the menu, its neighbours, what stands beneath it, and other sites.

use super::{
    place::{Place, ZONE},
    plan::{HABITS, Kind, Plan},
    shape::Shape,
};
use crate::rng::KeyedRng;
use std::fmt::{self, Display};

/// The most sections that stand in the menu of every page.
const MENU: usize = 8;

/// Where a link leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// To a page of the same site.
    Inside(Place),
    /// To another site.
    Outside(Elsewhere),
}

/// A page of another site, as far as a crawl that does not go there is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Elsewhere {
    /// The host that is named.
    pub host: OtherHost,
    /// Which of its pages; 0 is the front page.
    pub page: u16,
}

/// A host that a page links to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OtherHost {
    /// A site of this web, the more popular the lower its number.
    Site(u64),
    /// Somewhere that only one page in the whole web names.
    Lonely(u64),
}

impl Display for OtherHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OtherHost::Site(number) => write!(f, "s{number}.{ZONE}"),
            OtherHost::Lonely(number) => write!(f, "x{number:016x}.{ZONE}"),
        }
    }
}

impl Elsewhere {
    /// Its URL, on a port.
    pub fn at(&self, port: u16) -> String {
        let port = if port == 80 { String::new() } else { format!(":{port}") };
        match self.page {
            0 => format!("http://{}{port}/", self.host),
            page => format!("http://{}{port}/about/{page}.html", self.host),
        }
    }
}

/// All links of a page, in the order of the document.
pub(crate) fn of(shape: &Shape, plan: &Plan, place: &Place) -> Vec<Link> {
    let mut links = vec![Link::Inside(Place::Front)];
    let at_level_1 = |(_, section): &(usize, &super::plan::Section)| section.level == 1;
    let indexes = plan.sections.iter().enumerate().filter(at_level_1).map(|(number, _)| index(plan, number));
    // The front page leads to all of them, every other page to the first.
    let menu = if *place == Place::Front { usize::MAX } else { MENU };
    links.extend(indexes.take(menu).map(Link::Inside));
    match *place {
        Place::Front => {}
        Place::Shelf { section, page } => shelf(plan, section, page, &mut links),
        Place::List { section, list } => list_page(plan, section, list, &mut links),
        Place::Item { section, list, item } => {
            links.push(Link::Inside(Place::List { section, list }));
            let next = Place::Item { section, list, item: item + 1 };
            links.extend(next.is_in(plan).then_some(Link::Inside(next)));
        }
        Place::Day { section, day } => {
            links.extend([day.saturating_sub(1), day + 1].map(|day| Link::Inside(Place::Day { section, day })));
        }
    }
    outside(shape, plan, place, &mut links);
    links
}

/// The first page of a section.
fn index(plan: &Plan, number: usize) -> Place {
    let section = number as u16;
    match plan.sections[number].kind {
        Kind::Shelf { .. } => Place::Shelf { section, page: 0 },
        Kind::Archive { .. } => Place::List { section, list: 0 },
    }
}

fn shelf(plan: &Plan, number: u16, page: u64, links: &mut Vec<Link>) {
    let section = &plan.sections[usize::from(number)];
    let Kind::Shelf { fan, pages } = section.kind else { return };
    let to = |page: u64| Link::Inside(Place::Shelf { section: number, page });
    if page > 0 {
        // Back, and up; the neighbours stand beneath the same page or the one beside it.
        links.extend([to(page - 1), to((page - 1) / fan)]);
    }
    links.extend((page + 1 < pages).then(|| to(page + 1)));
    links.extend((fan * page + 1..=fan * page + fan).take_while(|page| *page < pages).map(to));
    if section.calendar {
        links.push(Link::Inside(Place::Day { section: number, day: page }));
    }
    // Pages of the first section are the only ones that know of what is hidden.
    if number == 0 && page < 2 {
        let hidden = plan.sections.iter().enumerate().filter(|(_, section)| u64::from(section.level) == page + 2);
        links.extend(hidden.map(|(number, _)| Link::Inside(index(plan, number))));
    }
}

fn list_page(plan: &Plan, section: u16, list: u64, links: &mut Vec<Link>) {
    let Kind::Archive { lists, pages } = plan.sections[usize::from(section)].kind else { return };
    links.extend(list.checked_sub(1).map(|list| Link::Inside(Place::List { section, list })));
    links.extend((0..pages).map(|item| Link::Inside(Place::Item { section, list, item })));
    links.extend((list + 1 < lists).then(|| Link::Inside(Place::List { section, list: list + 1 })));
}

/// Links to other sites: those on every page, then the page's own.
fn outside(shape: &Shape, plan: &Plan, place: &Place, links: &mut Vec<Link>) {
    let habit = |number: u64| Elsewhere { host: popular(plan, plan.rng.of(5).of(number), shape.popular), page: 0 };
    links.extend((0..plan.on_every_page).map(|number| Link::Outside(habit(number))));
    let level = f64::from(place.level(plan));
    let rng = plan.rng.of(6).of(place.number());
    let mean = match place.section().map(|number| &plan.sections[usize::from(number)]) {
        // Front pages have more links to other hosts than other pages.
        None => 2.0 * shape.outward,
        // Programs know no levels.
        Some(section) if matches!(section.kind, Kind::Archive { .. }) => section.outward,
        Some(_) if matches!(place, Place::Day { .. }) => 0.0,
        Some(section) => section.outward * (-level / shape.fade).exp(),
    };
    let lonely = level / (level + shape.lonely);
    links.extend((0..rng.of(0).count(mean)).map(|number| {
        let rng = rng.of(1).of(number);
        Link::Outside(if rng.of(0).chance(shape.habit) {
            habit(rng.of(1).below(HABITS))
        } else if rng.of(2).chance(lonely) {
            Elsewhere { host: OtherHost::Lonely(rng.of(3).bits()), page: 0 }
        } else {
            let page = if rng.of(4).chance(0.6) { 0 } else { rng.of(5).below(1000) as u16 };
            Elsewhere { host: popular(plan, rng.of(6), shape.popular), page }
        })
    }));
}

/// A popular host, not the site itself: the logarithm of its number is even, so the n-th is drawn in proportion to 1/n.
fn popular(plan: &Plan, rng: KeyedRng, hosts: f64) -> OtherHost {
    let number = hosts.powf(rng.unit()) as u64 - 1;
    OtherHost::Site(if number == plan.site { number + 1 } else { number })
}
