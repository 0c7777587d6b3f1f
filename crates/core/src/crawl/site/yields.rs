//! Expected yield of a site's pages: one is requested only if it can be expected to name enough hosts that are new to the site.
//!
//! Good and Turing: how likely the next draw is new is told by how many things were new, or seen only once, a moment ago. A journal says
//! which hosts a page was the first to name, so what is counted is how many the last requests brought. Pages are no draws from one urn,
//! though: a directory of links goes on naming hosts while the archive beside it never does. So each *branch* of a site (its first
//! directory) is counted for itself, and judged the more by its own record the longer that is: it is taken to name others at a steady rate
//! (Poisson), which before anything is known of it lies anywhere around the site's own (Gamma).
//!
//! A branch that names hosts which the site has named before looks outward, too: every such link tells of its rate, and what part of the
//! links name a new host is told by the whole site. Only what stands on page after page, as in a menu, tells nothing.
//!
//! Everything follows from the journal, so every member that reads it back decides alike.

use nearcrawl_model::{
    fingerprint::{Fingerprint, FingerprintKey},
    url::PageUrl,
};
use std::{collections::BTreeMap, fmt};

/// New external hosts that a request must be expected to bring, in millionths; nothing is left out at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price(u32);

/// What is taken for granted before anything is known of a site: that so many requests have brought so many hosts.
const FIRST_GUESS: Brought = Brought { requests: 2.0, links: 1.0, hosts: 1.0 };

/// How alike the branches of a site are: the shape of the Gamma distribution of their rates. At 0.2 one branch in five has four fifths of
/// the new hosts, and most have nearly none, as is usual for such things.
const LIKENESS: f64 = 0.2;

/// How many requests are remembered, on average: the older, the less they count. Pages of one level tell of the next, those of the top do not
/// tell of the bottom.
const MEMORY: f64 = 200.0;

/// How many branches of a site are told apart; further ones are judged together.
const MAX_BRANCHES: usize = 1_000;

/// A link that stands on more than one of so many pages belongs to what all pages have in common.
const PAGES_TO_A_LINK: u32 = 5;

/// How many links of a page count beside its new hosts: so a page can take only so much from what is expected of others.
const MAX_OLD_LINKS: u64 = 10;

/// How many links of a site are remembered; further ones tell nothing.
const MAX_LINKS: usize = 20_000;

impl Price {
    /// So many hosts for a request, from 0 to 1,000; none for anything else.
    pub fn of(hosts: f64) -> Option<Price> {
        (0.0..=1_000.0).contains(&hosts).then(|| Price((hosts * 1e6).round() as u32))
    }

    /// Hosts for a request, in millionths.
    pub fn millionths(self) -> u32 {
        self.0
    }

    /// Hosts for a request.
    pub fn hosts(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hosts().fmt(f)
    }
}

/// What requests brought, the latest counting most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Brought {
    requests: f64,
    /// Links to new hosts, and others that tell something.
    links: f64,
    hosts: f64,
}

impl Brought {
    fn request(&mut self) {
        let kept = 1.0 - 1.0 / MEMORY;
        *self = Brought { requests: self.requests * kept + 1.0, links: self.links * kept, hosts: self.hosts * kept };
    }

    fn name(&mut self, links: u64, hosts: u64) {
        self.links += links as f64;
        self.hosts += hosts as f64;
    }
}

/// What the page that was asked for last has named so far.
#[derive(Clone, Copy, Debug)]
struct Page {
    branch: Fingerprint,
    links: u64,
    hosts: u64,
}

impl Default for Page {
    fn default() -> Page {
        Page::of(Fingerprint(0))
    }
}

impl Page {
    fn of(branch: Fingerprint) -> Page {
        Page { branch, links: 0, hosts: 0 }
    }

    fn telling(&self) -> u64 {
        self.hosts + self.links.saturating_sub(self.hosts).min(MAX_OLD_LINKS)
    }
}

/// Since which request a link is known, and on how many pages it stood.
#[derive(Clone, Copy, Debug)]
struct Link {
    since: u32,
    pages: u32,
}

/// What a site's pages brought so far, and which were left out for it.
#[derive(Debug, Default)]
pub(crate) struct Yields {
    whole: Brought,
    branches: BTreeMap<Fingerprint, Brought>,
    requests: u32,
    last: Page,
    links: BTreeMap<u32, Link>,
}

impl Yields {
    /// A page was asked for. What it names is told by [`Self::name`].
    pub(crate) fn ask(&mut self, url: &PageUrl, key: &FingerprintKey) {
        let branch = self.known(branch(url), key);
        self.whole.request();
        self.branches.entry(branch).or_default().request();
        self.last = Page::of(branch);
        self.requests = self.requests.saturating_add(1);
    }

    /// The page that was asked for last has these external links, and was the first of its site to name so many external hosts. May be told
    /// in parts, each link once.
    pub(crate) fn name(&mut self, links: &[u32], hosts: u64) {
        let before = self.last.telling();
        for link in links {
            self.last.links += u64::from(self.tells(*link));
        }
        self.last.hosts += hosts;
        let links = self.last.telling() - before;
        self.whole.name(links, hosts);
        self.branches.entry(self.last.branch).or_default().name(links, hosts);
    }

    /// Whether a page named this as an external link.
    pub(crate) fn has_met(&self, link: u32) -> bool {
        self.links.contains_key(&link)
    }

    /// Enters that a link stands on the page, and says whether it is new or stood on few pages before.
    fn tells(&mut self, link: u32) -> bool {
        let room = self.links.len() < MAX_LINKS;
        match self.links.get_mut(&link) {
            None if room => {
                self.links.insert(link, Link { since: self.requests, pages: 1 });
                true
            }
            None => false,
            Some(known) => {
                let before = known.pages;
                known.pages = before.saturating_add(1);
                before.saturating_mul(PAGES_TO_A_LINK) <= self.requests - known.since
            }
        }
    }

    /// How many hosts this page can be expected to name that its site has not named yet.
    pub(crate) fn expected(&self, url: &PageUrl, key: &FingerprintKey) -> f64 {
        expected(self.whole, self.branches.get(&self.known(branch(url), key)).copied().unwrap_or_default())
    }

    /// Whether this page might be left out for what `read`, which is being read, turns out to name. Every new host lets more be expected
    /// of every other page, so the worst is that it names none; and either no link that tells anything, or as many as count: what
    /// is expected is monotone in their number.
    pub(crate) fn may_be_too_little(&self, url: &PageUrl, read: &PageUrl, price: Price, key: &FingerprintKey) -> bool {
        if price == Price::default() {
            return false;
        }
        let (mine, other) = (self.known(branch(url), key), self.known(branch(read), key));
        if self.branches.len() + 1 >= MAX_BRANCHES && !self.branches.contains_key(&mine) {
            // Whether this branch is counted for itself may depend on whether the other one comes first.
            return true;
        }
        let known = self.branches.get(&mine).copied().unwrap_or_default();
        [0, MAX_OLD_LINKS].into_iter().any(|links| {
            let after = |mut brought: Brought| {
                brought.request();
                brought.name(links, 0);
                brought
            };
            let known = if mine == other { after(known) } else { known };
            expected(after(self.whole), known) < price.hosts()
        })
    }

    /// Whether this page is to be left out.
    pub(crate) fn too_little(&self, url: &PageUrl, price: Price, key: &FingerprintKey) -> bool {
        price > Price::default() && self.expected(url, key) < price.hosts()
    }

    /// The fingerprint of a branch, or of all that are too many.
    fn known(&self, branch: &str, key: &FingerprintKey) -> Fingerprint {
        let print = key.of(branch);
        if self.branches.contains_key(&print) || self.branches.len() < MAX_BRANCHES { print } else { Fingerprint(0) }
    }
}

/// What one more request can be expected to bring: of links, the mean of the Gamma distribution that has [`LIKENESS`] for its shape and the
/// site's mean, after what the branch brought; of these, the part that names new hosts all over the site.
fn expected(whole: Brought, branch: Brought) -> f64 {
    let new = (FIRST_GUESS.hosts + whole.hosts) / (FIRST_GUESS.links + whole.links);
    let mean = (FIRST_GUESS.links + whole.links) / (FIRST_GUESS.requests + whole.requests);
    new * (LIKENESS + branch.links) / (LIKENESS / mean + branch.requests)
}

/// The first directory, or the root for pages in none.
fn branch(url: &PageUrl) -> &str {
    let path = url.path();
    match path[1..].find('/') {
        Some(end) => &path[..end + 2],
        None => "/",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: FingerprintKey = FingerprintKey([7; 16]);

    fn page(path: &str) -> PageUrl {
        PageUrl::parse(&format!("http://a.ke{path}")).unwrap()
    }

    /// How many pages of a branch are asked for that names `hosts` new hosts on every `every`-th page, until it is left out.
    fn pages_of(yields: &mut Yields, branch: &str, every: u64, hosts: u64, price: Price) -> u64 {
        let url = |number| page(&format!("/{branch}/{number}.html"));
        let mut asked = 0;
        while asked < 10_000 && !yields.too_little(&url(asked), price, &KEY) {
            yields.ask(&url(asked), &KEY);
            yields.name(&[], if asked % every == 0 { hosts } else { 0 });
            asked += 1;
        }
        asked
    }

    #[test]
    fn a_branch_goes_on_while_it_brings_what_it_costs_and_others_are_judged_for_themselves() {
        let (mut yields, price) = (Yields::default(), Price::of(0.05).unwrap());
        assert_eq!(pages_of(&mut yields, "links", 3, 2, price), 10_000);
        let archive = pages_of(&mut yields, "archive", 1_000_000, 0, price);
        assert!((3..100).contains(&archive), "{archive}");
        assert!(!yields.too_little(&page("/links/x.html"), price, &KEY));
        assert!(yields.too_little(&page("/archive/x.html"), price, &KEY) && !yields.too_little(&page("/new/"), price, &KEY));
    }

    #[test]
    fn who_names_what_is_known_looks_outward_too_but_not_by_what_stands_on_every_page() {
        let expected_after = |old: &dyn Fn(u32) -> Vec<u32>| {
            let mut yields = Yields::default();
            for number in 0..20 {
                yields.ask(&page("/b/x"), &KEY);
                yields.name(&[1_000_000 + number], 1);
            }
            for number in 0..30 {
                yields.ask(&page("/a/x"), &KEY);
                yields.name(&old(number), 0);
            }
            yields.expected(&page("/a/y"), &KEY)
        };
        let (nothing, menu) = (expected_after(&|_| Vec::new()), expected_after(&|_| vec![1, 2]));
        // Twelve hosts in turn: each stands on every twelfth page.
        let outward = expected_after(&|number| vec![number % 12]);
        assert!(nothing < menu && menu * 5.0 < outward, "{nothing} {menu} {outward}");
        let crowd = expected_after(&|number| (number * 100..number * 100 + 100).collect());
        let few = expected_after(&|number| (number * 100..number * 100 + MAX_OLD_LINKS as u32).collect());
        assert_eq!(crowd, few, "a page can say only so much");
    }

    #[test]
    fn what_a_branch_brought_long_ago_is_forgotten() {
        let (mut yields, price) = (Yields::default(), Price::of(0.01).unwrap());
        for number in 0..50 {
            yields.ask(&page(&format!("/blog/{number}")), &KEY);
            yields.name(&[], 3);
        }
        let fruitless = pages_of(&mut yields, "blog", 1_000_000, 0, price);
        assert!((200..2_000).contains(&fruitless), "{fruitless}");
    }

    #[test]
    fn the_dearer_the_earlier_and_a_small_site_is_never_cut_at_a_low_price() {
        let stop = |price| pages_of(&mut Yields::default(), "all", 1_000_000, 0, Price::of(price).unwrap());
        let stops = [0.5, 0.1, 0.05, 0.01, 0.004].map(stop);
        assert!(stops.is_sorted() && stops[4] >= 30, "{stops:?}");
        assert_eq!(stop(0.0), 10_000, "nothing is left out for nothing");
    }

    #[test]
    fn branches_are_first_directories_and_there_is_an_end_to_them() {
        let names = ["/", "/x.html", "/a/", "/a/b", "/a/b/c?d=/e/", "/b/"].map(|path| branch(&page(path)).to_owned());
        assert_eq!(names, ["/", "/", "/a/", "/a/", "/a/", "/b/"]);
        let mut yields = Yields::default();
        for number in 0..3_000 {
            yields.ask(&page(&format!("/{number}/")), &KEY);
        }
        assert_eq!(yields.branches.len(), MAX_BRANCHES + 1);
    }

    #[test]
    fn a_page_that_will_be_asked_for_even_if_the_one_before_brings_nothing_will_be_asked_for_whatever_that_brings() {
        let (mut allowed, mut waited) = (0, 0);
        // None to three new hosts, none to 19 links of some forty.
        let name = |yields: &mut Yields, hosts: u64, links: u64| {
            let links: Vec<u32> = (0..links % 20).map(|nth| (links.rotate_left(nth as u32 * 3) % 40) as u32).collect();
            yields.name(&links, hosts % 7 / 2 % 4);
        };
        for case in 0..2_000_u64 {
            let roll = |salt: u64| Fingerprint(case).scoped(salt).0;
            let mut yields = Yields::default();
            for number in 0..roll(1) % 60 {
                yields.ask(&page(&format!("/{}/{number}", roll(number + 9) % 4)), &KEY);
                name(&mut yields, roll(number + 99), roll(number + 199));
            }
            let (read, next) = (page(&format!("/{}/x", roll(2) % 4)), page(&format!("/{}/y", roll(3) % 5)));
            let price = Price::of((roll(4) % 200) as f64 / 100.0).unwrap();
            if yields.may_be_too_little(&next, &read, price, &KEY) {
                waited += 1;
                continue;
            }
            allowed += 1;
            yields.ask(&read, &KEY);
            name(&mut yields, roll(5), roll(6));
            assert!(!yields.too_little(&next, price, &KEY), "case {case}");
        }
        assert!(allowed > 500 && waited > 500, "{allowed} {waited}");
    }

    #[test]
    fn prices_are_hosts_for_a_request() {
        assert_eq!(Price::of(0.004).map(Price::hosts), Some(0.004));
        assert_eq!(Price::of(0.004).unwrap().to_string(), "0.004");
        for wrong in [-0.1, 1_000.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Price::of(wrong), None);
        }
    }
}
