//! Places of pages in the made-up web: from a URL to a place, and back.

use super::plan::{Kind, Plan};
use nearcrawl_model::url::PageUrl;
use std::fmt::{self, Display};

/// The domain that all hosts of the web lie under: it exists in no public DNS.
pub(crate) const ZONE: &str = "test";

/// A page, within its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The front page.
    Front,
    /// A page of a shelf (a tree of pages); 0 is its index.
    Shelf {
        /// The section's number.
        section: u16,
        /// The page's number in the shelf.
        page: u64,
    },
    /// A list of an archive; 0 is its index.
    List {
        /// The section's number.
        section: u16,
        /// The list's number in the archive.
        list: u64,
    },
    /// A page that a list names.
    Item {
        /// The section's number.
        section: u16,
        /// The number of the list that names it.
        list: u64,
        /// Its number in that list, from 0.
        item: u64,
    },
    /// A day of a calendar: a script, whose query says which day.
    Day {
        /// The section's number.
        section: u16,
        /// The day's number.
        day: u64,
    },
}

impl Place {
    /// The section; none for the front page.
    pub fn section(&self) -> Option<u16> {
        match self {
            Place::Front => None,
            Place::Shelf { section, .. } | Place::List { section, .. } | Place::Item { section, .. } | Place::Day { section, .. } => {
                Some(*section)
            }
        }
    }

    /// A number that no other place of the site has, for its rng.
    pub fn number(&self) -> u64 {
        let (kind, section, first, second) = match *self {
            Place::Front => (0, 0, 0, 0),
            Place::Shelf { section, page } => (1, section, page, 0),
            Place::List { section, list } => (2, section, list, 0),
            Place::Item { section, list, item } => (3, section, list, item),
            Place::Day { section, day } => (4, section, day, 0),
        };
        kind | u64::from(section) << 3 | first << 16 | second << 48
    }

    /// Whether the site has such a page.
    pub(crate) fn is_in(&self, plan: &Plan) -> bool {
        let Some(section) = self.section() else { return true };
        let Some(section) = plan.sections.get(usize::from(section)) else { return false };
        match (*self, section.kind) {
            (Place::Shelf { page, .. }, Kind::Shelf { pages, .. }) => page < pages,
            (Place::List { list, .. }, Kind::Archive { lists, .. }) => list < lists,
            (Place::Item { list, item, .. }, Kind::Archive { lists, pages }) => list < lists && item < pages,
            // A calendar has a day for everything.
            (Place::Day { .. }, _) => section.calendar,
            _ => false,
        }
    }

    /// The level at which a crawl from the front page finds it.
    pub fn level(&self, plan: &Plan) -> u32 {
        let Some(section) = self.section().and_then(|section| plan.sections.get(usize::from(section))) else { return 0 };
        match (*self, section.kind) {
            (Place::Shelf { page, .. }, Kind::Shelf { fan, .. }) => section.level_on_shelf(fan, page),
            (Place::List { list, .. }, _) => section.level + list as u32,
            (Place::Item { list, .. }, _) => section.level + list as u32 + 1,
            (Place::Day { .. }, _) => section.level + 1,
            _ => 0,
        }
    }
}

/// A page's host: that of its site, or of its section.
pub struct HostName {
    /// The number of the site.
    pub site: u64,
    /// Which section, if it has a name of its own.
    pub section: Option<u16>,
}

impl Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(section) = self.section {
            write!(f, "d{section}.")?;
        }
        write!(f, "s{}.{ZONE}", self.site)
    }
}

impl HostName {
    /// Where a place of a site lies.
    pub fn of(plan: &Plan, place: &Place) -> HostName {
        let apart = |section: &u16| plan.sections.get(usize::from(*section)).is_some_and(|section| section.apart);
        HostName { site: plan.site, section: place.section().filter(apart) }
    }

    /// Reads a name; none if it is no host of this web.
    pub fn read(name: &str) -> Option<HostName> {
        let labels: Vec<&str> = name.split('.').collect();
        let (section, site) = match labels[..] {
            [site, ZONE] => (None, site),
            [section, site, ZONE] => (Some(small(section.strip_prefix('d')?)?), site),
            _ => return None,
        };
        Some(HostName { site: number(site.strip_prefix('s')?)?, section })
    }
}

/// The path of a place on its host.
pub(crate) struct Path<'a>(pub &'a Place, pub &'a HostName);

impl Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.1.section, self.0.section()) {
            (None, Some(section)) => write!(f, "/d{section}/")?,
            _ => write!(f, "/")?,
        }
        match self.0 {
            Place::Front | Place::Shelf { page: 0, .. } | Place::List { list: 0, .. } => Ok(()),
            Place::Shelf { page, .. } => write!(f, "{page}.html"),
            Place::List { list, .. } => write!(f, "page/{list}"),
            Place::Item { list, item, .. } => write!(f, "{list}-{item}.html"),
            Place::Day { day, .. } => write!(f, "calendar?day={day}"),
        }
    }
}

/// Reads the path of a URL on a host of the web; none if the site has no such page.
pub(crate) fn read(host: &HostName, plan: &Plan, path_and_query: &str) -> Option<Place> {
    let path = path_and_query.strip_prefix('/')?;
    let (section, rest) = match host.section {
        Some(section) => (section, path),
        None if path.is_empty() => return Some(Place::Front),
        None => {
            let (section, rest) = path.strip_prefix('d')?.split_once('/')?;
            (small(section)?, rest)
        }
    };
    let archive = matches!(plan.sections.get(usize::from(section))?.kind, Kind::Archive { .. });
    let place = if let Some(day) = rest.strip_prefix("calendar?day=") {
        Place::Day { section, day: number(day)? }
    } else if let Some(list) = rest.strip_prefix("page/") {
        Place::List { section, list: number(list)? }
    } else if rest.is_empty() && archive {
        Place::List { section, list: 0 }
    } else if rest.is_empty() {
        Place::Shelf { section, page: 0 }
    } else {
        let name = rest.strip_suffix(".html")?;
        match name.split_once('-') {
            Some((list, item)) => Place::Item { section, list: number(list)?, item: number(item)? },
            None => Place::Shelf { section, page: number(name)? },
        }
    };
    // One page has one URL: what would be written otherwise (`/d0/0.html`, `/d07/`) does not exist.
    let there = place.is_in(plan) && HostName::of(plan, &place).section == host.section;
    (there && Path(&place, host).to_string() == path_and_query).then_some(place)
}

/// The whole URL of a place, on a port.
pub(crate) fn url(plan: &Plan, place: &Place, port: u16) -> Option<PageUrl> {
    let host = HostName::of(plan, place);
    let path = Path(place, &host);
    let text = if port == 80 { format!("http://{host}{path}") } else { format!("http://{host}:{port}{path}") };
    PageUrl::parse(&text).ok()
}

fn number(text: &str) -> Option<u64> {
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    let number = canonical.then(|| text.parse().ok())??;
    // Room for all numbers that rng are asked for.
    (number < 1 << 32).then_some(number)
}

fn small(text: &str) -> Option<u16> {
    number(text)?.try_into().ok()
}
