//! Structure of one site: sections of very different sizes, a few of them archives, each with its own rate of links to other sites.

use super::shape::Shape;
use crate::rng::KeyedRng;

/// The most sections of a site.
const MAX_SECTIONS: u64 = 40;

/// Fan-outs of shelves: so many pages stand directly beneath one.
const FAN_OUTS: [u64; 2] = [2, 3];

/// At most so many archives share the lists of a site.
const MAX_ARCHIVES: u64 = 6;

/// Hosts that a site names again and again.
pub(crate) const HABITS: u64 = 10;

/// The golden ratio, less one: multiples of it, without what stands before the point, fill the range from 0 to 1 evenly. So of any
/// stretch of site numbers the same share has archives, and as long ones: a web of other size or seed differs in everything else.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// How the pages of a section hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tree: beneath page k stand the pages `fan * k + 1` to `fan * k + fan`.
    Shelf {
        /// How many stand beneath one.
        fan: u64,
        /// How many there are.
        pages: u64,
    },
    /// A chain of lists, each naming its own pages and the next list.
    Archive {
        /// How many lists.
        lists: u64,
        /// Pages that each names.
        pages: u64,
    },
}

/// One section of a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Section {
    /// What it is.
    pub kind: Kind,
    /// The level of its index page.
    pub level: u32,
    /// Links to other sites on a page of it at level 0, on average.
    pub outward: f64,
    /// Whether it has a calendar.
    pub calendar: bool,
    /// Whether it has a host of its own.
    pub apart: bool,
}

/// The structure of one site.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The number of the site.
    pub site: u64,
    /// The generator of everything random in the site.
    pub rng: KeyedRng,
    /// Its sections; where there are any shelves, the first section is one and lies at level 1.
    pub sections: Vec<Section>,
    /// Hosts (of those that it has a habit of naming) that stand on every page.
    pub on_every_page: u64,
}

impl Plan {
    /// The site of this number.
    pub fn of(web: KeyedRng, site: u64, shape: &Shape) -> Plan {
        let rng = web.of(1).of(site);
        let mut sections = Vec::new();
        let wanted = -rng.of(1).unit().ln() * shape.sections + 0.9;
        for k in 0..(wanted as u64).min(MAX_SECTIONS) {
            sections.push(shelf(rng.of(2).of(k), k > 0, sections.first().copied(), shape));
        }
        let standing = (web.of(2).unit() + site as f64 * GOLDEN).fract();
        if standing < shape.archives {
            // The rarer, the longer.
            let lists = (shape.lists * -(standing / shape.archives).max(1e-9).ln()).ceil().max(1.0);
            let archives = 1 + rng.of(3).below(MAX_ARCHIVES);
            let kind = Kind::Archive { lists: lists as u64, pages: (shape.list_pages / archives as f64) as u64 };
            let archive = Section { kind, level: 1, outward: shape.outward * shape.archive_outward, calendar: false, apart: false };
            sections.extend((0..archives).map(|_| archive));
        }
        Plan { site, rng, sections, on_every_page: rng.of(4).below(3) }
    }

    /// How many pages a crawl to this depth finds, one for each calendar included.
    pub fn pages(&self, depth: u32) -> u64 {
        1 + self.sections.iter().map(|section| section.pages(depth)).sum::<u64>()
    }
}

fn shelf(rng: KeyedRng, may_hide: bool, first: Option<Section>, shape: &Shape) -> Section {
    let hidden = rng.of(3).unit();
    let level = match first.map(|first| first.kind) {
        Some(Kind::Shelf { pages: 2.., .. }) if may_hide && hidden < shape.hidden * shape.hidden => 3,
        Some(_) if may_hide && hidden < shape.hidden => 2,
        _ => 1,
    };
    // What is hidden best is small: nobody hides the greater part of a site.
    let fans = if level > 2 { &FAN_OUTS[..1] } else { &FAN_OUTS };
    let fan = fans[rng.of(1).below(fans.len() as u64) as usize];
    // As many as stand on the levels 1 to `shelves`.
    let most = (fan.pow(shape.shelves as u32) - 1) / (fan - 1);
    let pages = (shape.section_pages * rng.of(2).unit().powf(-1.0 / shape.tail)) as u64;
    Section {
        kind: Kind::Shelf { fan, pages: pages.clamp(1, most.max(1)) },
        level,
        outward: shape.outward * (1.0 + shape.uneven) * rng.of(4).unit().powf(shape.uneven),
        calendar: rng.of(5).chance(shape.calendars),
        apart: rng.of(6).chance(shape.subdomains),
    }
}

impl Section {
    /// The level of a shelf's page.
    pub(crate) fn level_on_shelf(&self, fan: u64, mut page: u64) -> u32 {
        let mut level = self.level;
        while page > 0 {
            page = (page - 1) / fan;
            level += 1;
        }
        level
    }

    fn pages(&self, depth: u32) -> u64 {
        let reached = u64::from((depth + 1).saturating_sub(self.level));
        let calendar = u64::from(self.calendar && reached > 1);
        calendar
            + match self.kind {
                Kind::Shelf { fan, pages } => pages.min((fan.saturating_pow(reached as u32) - 1) / (fan - 1)),
                Kind::Archive { lists, pages } => lists.min(reached) + pages * lists.min(reached.saturating_sub(1)),
            }
    }
}
