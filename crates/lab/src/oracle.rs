//! Oracle: the pages a crawl must fetch, by a traversal with the crawler's rules, written without the crawler, to compare it with.
//!
//! The rules: a seed and every external link in scope is a starting URL at level 0 of its host's tree; a host belongs to the tree of its
//! nearest ancestor that is a starting host, else it starts its own, named without `www.`, and then its root page is a starting URL too; an
//! internal link is one level deeper; a redirect keeps the level; robots.txt and the depth are obeyed; one query URL is asked of each
//! script; what is no HTML page is fetched once and has no links.
//!
//! Levels are corrected until nothing gets shallower, so the outcome does not depend on the order of discovery, with two
//! exceptions, which worlds made for exact comparison avoid: which query URL of a script comes first, and which of two starting
//! hosts, parent or subdomain, is reached first.

use crate::web::{Answer, Web};
use nearcrawl_model::url::{Host, PageUrl};
use std::collections::{BTreeMap, BTreeSet};

/// How many redirects are followed in a row.
pub(crate) const MAX_HOPS: u8 = 5;

/// What kind of answer a fetched URL gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An HTML page.
    Page,
    /// A redirect with a usable target.
    Redirect,
    /// A success without HTML.
    NotHtml,
    /// Another answer, with this status.
    Status(u16),
    /// No usable answer.
    Broken,
}

/// A URL that must be fetched, exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedVisit {
    /// The starting host of its tree, without `www.`.
    pub tree: Host,
    /// Its least level.
    pub level: u8,
    /// The kind of answer that it gets.
    pub kind: Kind,
}

/// What a crawl of a web must come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Every URL to be fetched exactly once, robots.txt files not among them.
    pub fetched: BTreeMap<PageUrl, ExpectedVisit>,
    /// Never to be fetched: robots.txt says no.
    pub refused_by_robots: BTreeSet<PageUrl>,
    /// Never to be fetched: too deep.
    pub cut_by_depth: BTreeSet<PageUrl>,
    /// Never to be fetched: another query URL of the same script was.
    pub cut_by_script: BTreeSet<PageUrl>,
    /// Hosts that are linked to and not in scope.
    pub out_of_scope: BTreeSet<Host>,
    /// Which tree each host belongs to.
    pub trees: BTreeMap<Host, Host>,
}

impl Expected {
    /// How many of the URLs are HTML pages.
    pub fn pages(&self) -> usize {
        self.fetched.values().filter(|visit| visit.kind == Kind::Page).count()
    }

    #[cfg(test)]
    /// How many of the URLs of one host are to be fetched.
    pub(crate) fn of_host(&self, host: &Host) -> usize {
        self.fetched.keys().filter(|url| url.host() == *host).count()
    }

    /// Why a URL must not be fetched; none if it must, or if nothing links to it.
    pub fn forbidden(&self, url: &PageUrl) -> Option<&'static str> {
        if self.refused_by_robots.contains(url) {
            Some("robots.txt says no")
        } else if self.cut_by_depth.contains(url) {
            Some("it lies too deep")
        } else if self.cut_by_script.contains(url) {
            Some("its script had its one URL")
        } else if self.out_of_scope.contains(&url.host()) {
            Some("its host is not in scope")
        } else {
            None
        }
    }
}

/// Where a URL was named.
#[derive(Clone)]
struct NamedAt {
    tree: Host,
    level: u8,
    hops: u8,
}

/// The state of one traversal.
struct Traversal<'a, P> {
    pages: &'a P,
    depth: u8,
    outcome: Expected,
    starting: BTreeSet<Host>,
    levels: BTreeMap<PageUrl, NamedAt>,
    waiting: BTreeMap<(u8, u64), (PageUrl, NamedAt)>,
    sequence: u64,
    scripts: BTreeMap<String, PageUrl>,
    answers: BTreeMap<PageUrl, Answer>,
}

/// Follows `pages` from the seeds, `depth` levels deep in each tree.
pub fn traverse<P: Web>(pages: &P, seeds: &[PageUrl], depth: u8) -> Expected {
    let mut traversal = Traversal {
        pages,
        depth,
        outcome: Expected::default(),
        starting: BTreeSet::new(),
        levels: BTreeMap::new(),
        waiting: BTreeMap::new(),
        sequence: 0,
        scripts: BTreeMap::new(),
        answers: BTreeMap::new(),
    };
    for seed in seeds {
        traversal.arrive_from_outside(seed);
    }
    while let Some((_, (url, at))) = traversal.waiting.pop_first() {
        traversal.visit(url, at);
    }
    let mut outcome = traversal.outcome;
    let levels = traversal.levels;
    outcome.cut_by_depth.retain(|url| !levels.contains_key(url));
    outcome
}

impl<P: Web> Traversal<'_, P> {
    /// A page or a redirect named this URL.
    fn arrive(&mut self, url: &PageUrl, at: NamedAt) {
        let host = url.host();
        let elsewhere = self.outcome.trees.get(&host).is_some_and(|tree| *tree != at.tree);
        if host.is_within(&at.tree) && !elsewhere {
            self.outcome.trees.insert(host, at.tree.clone());
            self.place(url, at);
        } else {
            self.arrive_from_outside(url);
        }
    }

    /// A seed or an external link: level 0 of the host's own tree.
    fn arrive_from_outside(&mut self, url: &PageUrl) {
        let host = url.host();
        if !self.pages.in_scope(&host) {
            self.outcome.out_of_scope.insert(host);
            return;
        }
        let tree = match self.outcome.trees.get(&host) {
            Some(tree) => tree.clone(),
            None => self.plant(&host),
        };
        let begins = self.starting.insert(host.clone()) && host.may_start(&tree);
        self.place(url, NamedAt { tree: tree.clone(), level: 0, hops: 0 });
        if begins {
            self.place(&url.root(), NamedAt { tree, level: 0, hops: 0 });
        }
    }

    /// The tree of a host that is not known yet: its nearest starting ancestor's, or its own.
    fn plant(&mut self, host: &Host) -> Host {
        let mut ancestor = host.parent();
        while let Some(candidate) = ancestor {
            if self.starting.contains(&candidate)
                && let Some(tree) = self.outcome.trees.get(&candidate).cloned()
            {
                self.outcome.trees.insert(host.clone(), tree.clone());
                return tree;
            }
            ancestor = candidate.parent();
        }
        let tree = host.without_www();
        self.outcome.trees.insert(host.clone(), tree.clone());
        tree
    }

    /// Records a URL of a tree at its level, if it was not known at this level or a lower one.
    fn place(&mut self, url: &PageUrl, at: NamedAt) {
        if at.level > self.depth {
            self.outcome.cut_by_depth.insert(url.clone());
            return;
        }
        if self.levels.get(url).is_some_and(|known| known.level <= at.level) {
            return;
        }
        self.levels.insert(url.clone(), at.clone());
        self.sequence += 1;
        self.waiting.insert((at.level, self.sequence), (url.clone(), at));
    }

    /// A URL's turn has come; it may come again when a shorter way to it is found, then only its links are placed anew.
    fn visit(&mut self, url: PageUrl, at: NamedAt) {
        if self.levels.get(&url).is_some_and(|known| known.level < at.level) {
            return;
        }
        if !self.pages.allowed(&url) {
            self.outcome.refused_by_robots.insert(url);
            return;
        }
        if let Some(script) = url.script()
            && *self.scripts.entry(script.to_owned()).or_insert_with(|| url.clone()) != url
        {
            self.outcome.cut_by_script.insert(url);
            return;
        }
        let pages = self.pages;
        let answer = self.answers.entry(url.clone()).or_insert_with(|| pages.answer(&url)).clone();
        let kind = match &answer {
            Answer::Page(_) => Kind::Page,
            Answer::Redirect(_) => Kind::Redirect,
            Answer::NotHtml => Kind::NotHtml,
            Answer::Status(status) => Kind::Status(*status),
            Answer::Broken => Kind::Broken,
        };
        self.outcome.fetched.insert(url, ExpectedVisit { tree: at.tree.clone(), level: at.level, kind });
        match answer {
            Answer::Page(links) => {
                for link in &links {
                    self.arrive(link, NamedAt { tree: at.tree.clone(), level: at.level.saturating_add(1), hops: 0 });
                }
            }
            Answer::Redirect(to) if at.hops < MAX_HOPS => self.arrive(&to, NamedAt { hops: at.hops + 1, ..at }),
            Answer::Redirect(_) | Answer::NotHtml | Answer::Status(_) | Answer::Broken => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A web written down as a table; a path under `/private` is refused by robots.txt, `.com` is out of scope.
    struct Table(BTreeMap<&'static str, Answer>);

    impl Web for Table {
        fn answer(&self, url: &PageUrl) -> Answer {
            self.0.get(url.as_str()).cloned().unwrap_or(Answer::Status(404))
        }
        fn allowed(&self, url: &PageUrl) -> bool {
            !url.path().starts_with("/private")
        }
        fn in_scope(&self, host: &Host) -> bool {
            host.tld() == Some("test")
        }
    }

    fn url(text: &str) -> PageUrl {
        PageUrl::parse(text).unwrap()
    }

    fn page(links: &[&str]) -> Answer {
        Answer::Page(links.iter().map(|link| url(link)).collect())
    }

    fn crawl(table: &[(&'static str, Answer)], depth: u8) -> Expected {
        traverse(&Table(table.iter().cloned().collect()), &[url("http://a.ke.test/")], depth)
    }

    fn level(outcome: &Expected, text: &str) -> Option<u8> {
        outcome.fetched.get(&url(text)).map(|visit| visit.level)
    }

    #[test]
    fn internal_links_go_deeper_and_external_ones_start_again_with_the_root() {
        let outcome = crawl(
            &[
                ("http://a.ke.test/", page(&["http://a.ke.test/1", "http://b.ke.test/x"])),
                ("http://a.ke.test/1", page(&["http://a.ke.test/2", "http://shop.com/"])),
                ("http://b.ke.test/x", page(&["http://b.ke.test/y"])),
            ],
            8,
        );
        assert_eq!(level(&outcome, "http://a.ke.test/2"), Some(2));
        assert_eq!(level(&outcome, "http://b.ke.test/x"), Some(0));
        assert_eq!(level(&outcome, "http://b.ke.test/"), Some(0));
        assert_eq!(level(&outcome, "http://b.ke.test/y"), Some(1));
        assert_eq!(outcome.forbidden(&url("http://shop.com/")), Some("its host is not in scope"));
        assert_eq!((outcome.fetched.len(), outcome.pages()), (6, 3));
    }

    #[test]
    fn a_shorter_way_found_later_reopens_what_the_depth_cut() {
        let outcome = crawl(
            &[
                ("http://a.ke.test/", page(&["http://a.ke.test/1"])),
                ("http://a.ke.test/1", page(&["http://a.ke.test/2"])),
                ("http://a.ke.test/2", page(&["http://a.ke.test/3", "http://b.ke.test/"])),
                ("http://a.ke.test/3", page(&["http://a.ke.test/4"])),
                ("http://a.ke.test/4", page(&["http://a.ke.test/5"])),
                ("http://a.ke.test/5", page(&["http://a.ke.test/6"])),
                ("http://b.ke.test/", page(&["http://a.ke.test/4"])),
            ],
            2,
        );
        assert_eq!(level(&outcome, "http://a.ke.test/4"), Some(0));
        assert_eq!(level(&outcome, "http://a.ke.test/6"), Some(2));
        assert_eq!(outcome.cut_by_depth, [url("http://a.ke.test/3")].into());
    }

    #[test]
    fn subdomains_stay_in_the_tree_of_their_starting_ancestor() {
        let outcome = crawl(
            &[
                ("http://a.ke.test/", page(&["http://sub.a.ke.test/p", "http://b.ke.test/"])),
                ("http://b.ke.test/", page(&["http://other.a.ke.test/q"])),
            ],
            8,
        );
        assert_eq!(level(&outcome, "http://sub.a.ke.test/p"), Some(1));
        assert_eq!(level(&outcome, "http://sub.a.ke.test/"), None);
        assert_eq!(level(&outcome, "http://other.a.ke.test/q"), Some(0));
        assert_eq!(level(&outcome, "http://other.a.ke.test/"), None);
        assert!(outcome.trees.iter().all(|(host, tree)| host == tree || tree.as_str() == "a.ke.test"));
    }

    #[test]
    fn a_tree_that_starts_at_www_has_the_bare_name_and_all_below_it() {
        let table = [
            ("http://www.b.ke.test/", page(&["http://b.ke.test/x", "http://sub.b.ke.test/", "http://c.ke.test/"])),
            ("http://c.ke.test/", page(&["http://b.ke.test/y"])),
        ];
        let outcome = traverse(&Table(table.into()), &[url("http://www.b.ke.test/")], 8);
        assert_eq!((level(&outcome, "http://b.ke.test/x"), level(&outcome, "http://sub.b.ke.test/")), (Some(1), Some(1)));
        assert_eq!((level(&outcome, "http://b.ke.test/y"), level(&outcome, "http://b.ke.test/")), (Some(0), Some(0)), "named from outside");
        let trees: Vec<_> = outcome.trees.values().map(Host::as_str).collect();
        assert_eq!(trees, ["b.ke.test", "c.ke.test", "b.ke.test", "b.ke.test"]);
    }

    #[test]
    fn one_query_url_a_script_and_the_plain_page_besides() {
        let outcome =
            crawl(&[("http://a.ke.test/", page(&["http://a.ke.test/s?id=2", "http://a.ke.test/s?id=1", "http://a.ke.test/s"]))], 8);
        assert_eq!(level(&outcome, "http://a.ke.test/s?id=2"), Some(1));
        assert_eq!(level(&outcome, "http://a.ke.test/s"), Some(1));
        assert_eq!(outcome.cut_by_script, [url("http://a.ke.test/s?id=1")].into());
    }

    #[test]
    fn redirects_keep_the_level_end_after_five_and_robots_is_obeyed() {
        let hop = |to: &str| Answer::Redirect(url(to));
        let outcome = crawl(
            &[
                ("http://a.ke.test/", page(&["http://a.ke.test/r1", "http://a.ke.test/private/x"])),
                ("http://a.ke.test/r1", hop("http://a.ke.test/r2")),
                ("http://a.ke.test/r2", hop("http://a.ke.test/r3")),
                ("http://a.ke.test/r3", hop("http://a.ke.test/r4")),
                ("http://a.ke.test/r4", hop("http://a.ke.test/r5")),
                ("http://a.ke.test/r5", hop("http://a.ke.test/r6")),
                ("http://a.ke.test/r6", hop("http://a.ke.test/r7")),
            ],
            8,
        );
        assert_eq!(level(&outcome, "http://a.ke.test/r6"), Some(1));
        assert_eq!(level(&outcome, "http://a.ke.test/r7"), None);
        assert_eq!(outcome.refused_by_robots, [url("http://a.ke.test/private/x")].into());
        assert_eq!(outcome.forbidden(&url("http://a.ke.test/private/x")), Some("robots.txt says no"));
        assert_eq!(outcome.forbidden(&url("http://a.ke.test/")), None);
    }
}
