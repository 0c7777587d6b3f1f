//! Frontier of one site: its waiting URLs by level, then by the order in which they were found (LL-22).
//!
//! A site may have millions of URLs waiting. Those whose turn is near are in memory; of those far back only a fingerprint is, and
//! their texts lie on disk until they come nearer ([`Frontier::set_aside`], [`Frontier::call_back`]).

mod far;

use far::Far;
use nearcrawl_model::{
    fingerprint::{AsTheyAre, Fingerprint},
    journal::{Arrival, Place},
    revisit::content_of,
    url::{Host, PageUrl},
};
use std::collections::HashMap; // unordered: places are looked up by fingerprint only
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A URL whose turn is yet to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The page.
    pub url: PageUrl,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// Links from a starting URL.
    pub level: u8,
    /// Redirects on the way here.
    pub hops: u8,
}

impl Waiting {
    /// How it is written down when it is set aside: the URL, behind the redirects on the way if there were any.
    pub fn text(&self) -> String {
        if self.hops == 0 { self.url.as_str().to_owned() } else { format!("{} {}", self.hops, self.url) }
    }

    /// Reads what [`Waiting::text`] wrote; none if that makes no sense.
    pub fn read(text: &str, fingerprint: Fingerprint, level: u8) -> Option<Waiting> {
        let (hops, url) = match text.split_once(' ') {
            Some((hops, url)) => (hops.parse().ok()?, url),
            None => (0, text),
        };
        Some(Waiting { url: PageUrl::parse(url).ok()?, fingerprint, level, hops })
    }

    /// How it is named to another access point that has its site now, in this run of this tree.
    pub(crate) fn arrival(&self, tree: &Host, run: u32) -> Arrival {
        let place = Place { tree: tree.clone(), level: self.level, hops: self.hops };
        let starts = (self.level, self.hops) == (0, 0) && self.url.host().may_start(tree);
        Arrival { url: self.url.clone(), place: (!starts).then_some(place), run }
    }
}

/// Level, then place in line: the root, then the other starting URLs by a hash of their texts, in whatever order they arrive;
/// behind them what pages name, in the order of discovery. So two access points that know the same starting URLs when they begin
/// go through a site in the same order.
type Rank = (u8, u64);

/// URLs of all sites of a daemon together that wait in memory in full: each takes about 250 bytes there, and 10 when it waits far back.
pub const MAX_IN_MEMORY: usize = 65_536;

/// Starting URLs other than the root have places from here on.
const STARTS: u64 = 1 << 62;

/// From here on places are given in the order of discovery.
const DISCOVERED: u64 = 1 << 63;

/// What entering a URL did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entered {
    /// It was not waiting before.
    pub new: bool,
    /// It, or one that waited before, lost its place because a script has one URL only (LL-7).
    pub beaten: bool,
}

/// One that waits near.
#[derive(Debug)]
struct Near {
    waiting: Waiting,
    script: Option<Fingerprint>,
}

/// The waiting URLs of one site.
#[derive(Debug, Default)]
pub struct Frontier {
    /// In order. What is found now belongs at the end, as a rule. Boxed: most sites have one or two near, and room for four.
    line: VecDeque<(Rank, Box<Near>)>,
    places: HashMap<Fingerprint, Rank, AsTheyAre>, // unordered: looked up by fingerprint only
    /// The one waiting URL of each script, and where it stands in line.
    scripts: BTreeMap<Fingerprint, (Rank, Fingerprint)>,
    entered: u64,
    far: Far,
    /// URLs that wait far back and are about to come forward.
    rising: BTreeSet<Fingerprint>,
    /// Texts of URLs that went far back as they were entered, until they are set aside.
    texts: Vec<(Fingerprint, String)>,
}

impl Frontier {
    /// Puts a URL in line, or moves it forward if it waits near at a deeper level. Of several URLs of one `script` only the first
    /// in line stays, so that an endless calendar costs one place.
    ///
    /// For a URL that waits far back to be moved forward, [`Frontier::waits_far`] must have been said before.
    pub fn enter(&mut self, waiting: Waiting, script: Option<Fingerprint>) -> Entered {
        if let Some(rank) = self.places.get(&waiting.fingerprint).copied() {
            if waiting.level < rank.0 {
                self.leave(rank);
                self.place(waiting, script);
            }
            return Entered::default();
        }
        if self.rising.remove(&waiting.fingerprint) {
            self.far.forget(waiting.fingerprint);
            self.stand_in_line(waiting, script);
            return Entered::default();
        }
        let mut beaten = false;
        if let Some((rank, holder)) = script.and_then(|script| self.scripts.get(&script)).copied() {
            if rank <= self.rank(&waiting) {
                return Entered { new: true, beaten: true };
            }
            match self.places.remove(&holder) {
                Some(rank) => drop(self.leave(rank)),
                None => self.far.forget(holder),
            }
            beaten = true;
        }
        self.stand_in_line(waiting, script);
        Entered { new: true, beaten }
    }

    /// Behind all others of its level, near or far.
    fn stand_in_line(&mut self, waiting: Waiting, script: Option<Fingerprint>) {
        let rank = self.rank(&waiting);
        if rank.1 < DISCOVERED || self.far.first_level().is_none_or(|level| level > waiting.level) {
            return self.place(waiting, script);
        }
        self.entered += 1;
        if let Some(script) = script {
            self.scripts.insert(script, (rank, waiting.fingerprint));
        }
        self.far.push_last(waiting.level, waiting.fingerprint);
        self.texts.push((waiting.fingerprint, waiting.text()));
    }

    fn place(&mut self, waiting: Waiting, script: Option<Fingerprint>) {
        let rank = self.rank(&waiting);
        self.entered += 1;
        self.places.insert(waiting.fingerprint, rank);
        if let Some(script) = script {
            self.scripts.insert(script, (rank, waiting.fingerprint));
        }
        let at = self.at(rank).unwrap_or_else(|at| at);
        self.line.insert(at, (rank, Box::new(Near { waiting, script })));
    }

    /// Where in the line this rank stands, or would.
    fn at(&self, rank: Rank) -> Result<usize, usize> {
        // Nearly always the first is asked for, or the place behind the last.
        match (self.line.front(), self.line.back()) {
            (Some((first, _)), _) if *first == rank => return Ok(0),
            (_, Some((last, _))) if *last < rank => return Err(self.line.len()),
            _ => {}
        }
        self.line.binary_search_by_key(&rank, |(rank, _)| *rank)
    }

    fn leave(&mut self, rank: Rank) -> Option<Box<Near>> {
        let at = self.at(rank).ok()?;
        self.line.remove(at).map(|(_, near)| near)
    }

    /// Leaves at most `most` URLs near, and gives the texts of those that go far back with their fingerprints: the caller has to
    /// keep them. Nothing moves before twice as many are near, so that they go in batches.
    pub fn set_aside(&mut self, most: usize) -> Vec<(Fingerprint, String)> {
        if self.line.len() > most.saturating_mul(2) {
            while self.line.len() > most
                // Starting URLs have their places by another order; they are few.
                && self.line.back().is_some_and(|((_, place), _)| *place >= DISCOVERED)
                && let Some((rank, near)) = self.line.pop_back()
            {
                let fingerprint = near.waiting.fingerprint;
                self.places.remove(&fingerprint);
                self.far.push_first(rank.0, fingerprint);
                self.texts.push((fingerprint, near.waiting.text()));
            }
        }
        std::mem::take(&mut self.texts)
    }

    /// Once none is near: whose texts are wanted back, at most `most`; none while others are on their way.
    pub fn call_back(&mut self, most: usize) -> Vec<Fingerprint> {
        if self.line.is_empty() { self.far.call(most) } else { Vec::new() }
    }

    /// Texts that were called back have come, in the order of the call; one that was lost is none.
    pub fn come_back(&mut self, texts: impl IntoIterator<Item = (Fingerprint, Option<String>)>, script_of: impl Fn(&str) -> Fingerprint) {
        let Some(level) = self.far.came() else { return };
        for (fingerprint, text) in texts {
            if self.far.release(level, fingerprint)
                && let Some(waiting) = text.and_then(|text| Waiting::read(&text, fingerprint, level))
            {
                let script = waiting.url.script().map(&script_of);
                self.place(waiting, script);
            }
        }
    }

    /// Where a URL would stand if it were entered now.
    fn rank(&self, waiting: &Waiting) -> Rank {
        if waiting.level > 0 || waiting.hops > 0 {
            return (waiting.level, DISCOVERED + self.entered);
        }
        let place = content_of(waiting.url.as_str().as_bytes()) >> 2;
        (0, if waiting.url.path_and_query() == "/" { place } else { STARTS + place })
    }

    /// Whether a URL of this level would take the place of the one that waits for its script.
    pub(crate) fn would_win(&self, waiting: &Waiting, script: Fingerprint) -> bool {
        self.scripts.get(&script).is_some_and(|(rank, _)| self.rank(waiting) < *rank)
    }

    /// Takes a URL out of the line; false if it is not in it.
    pub fn remove(&mut self, fingerprint: Fingerprint) -> bool {
        if let Some(rank) = self.places.remove(&fingerprint) {
            let script = self.leave(rank).and_then(|near| near.script);
            if let Some(script) = script
                && self.scripts.get(&script).is_some_and(|(_, holder)| *holder == fingerprint)
            {
                self.scripts.remove(&script);
            }
            return true;
        }
        // It may have gone far back while it was being asked for: rare enough for a look at all of them.
        let far = self.far.iter().any(|(_, page)| page == fingerprint);
        if far {
            self.far.forget(fingerprint);
            self.scripts.retain(|_, (_, holder)| *holder != fingerprint);
        }
        far
    }

    /// The seen set says that this URL waits, at a deeper level than the one that it is going to be entered with. If it waits far
    /// back (and did not lose its place to another URL of its script) it will be moved.
    pub(crate) fn waits_far(&mut self, fingerprint: Fingerprint, script: Option<Fingerprint>) {
        let beaten = script.is_some_and(|script| self.scripts.get(&script).is_none_or(|(_, holder)| *holder != fingerprint));
        if !beaten && !self.places.contains_key(&fingerprint) && self.far.len() > 0 {
            self.rising.insert(fingerprint);
        }
    }

    /// The first in line, if it is near.
    pub fn first(&self) -> Option<&Waiting> {
        self.line.front().map(|(_, near)| &near.waiting)
    }

    /// A URL that waits near, by its fingerprint.
    pub fn get(&self, fingerprint: Fingerprint) -> Option<&Waiting> {
        self.at(*self.places.get(&fingerprint)?).ok().map(|at| &self.line[at].1.waiting)
    }

    /// Whether this URL waits near, or is about to come forward.
    pub fn contains(&self, fingerprint: Fingerprint) -> bool {
        self.places.contains_key(&fingerprint) || self.rising.contains(&fingerprint)
    }

    /// All that wait near, first in line first.
    pub(crate) fn near(&self) -> impl Iterator<Item = &Waiting> {
        self.line.iter().map(|(_, near)| &near.waiting)
    }

    /// All that wait far back with their levels, first in line first; without those that are on their way.
    pub fn far(&self) -> impl Iterator<Item = (u8, Fingerprint)> {
        self.far.iter()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.line.len() + self.far.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(path: &str, level: u8) -> Waiting {
        let url = PageUrl::parse(&format!("http://a.ke{path}")).unwrap();
        let fingerprint = Fingerprint(path.bytes().fold(7, |h, b| h * 31 + u64::from(b)));
        Waiting { url, fingerprint, level, hops: 0 }
    }

    fn line(frontier: &Frontier) -> Vec<(&str, u8)> {
        frontier.near().map(|w| (w.url.path_and_query(), w.level)).collect()
    }

    #[test]
    fn levels_first_then_order_of_discovery_and_a_shorter_way_moves_forward() {
        let mut frontier = Frontier::default();
        for (path, level) in [("/b", 2), ("/a", 1), ("/c", 1), ("/d", 3)] {
            assert!(frontier.enter(waiting(path, level), None).new);
        }
        assert!(!frontier.enter(waiting("/d", 4), None).new);
        frontier.enter(waiting("/d", 1), None);
        assert_eq!(line(&frontier), [("/a", 1), ("/c", 1), ("/d", 1), ("/b", 2)]);
        frontier.remove(waiting("/c", 0).fingerprint);
        assert_eq!((frontier.len(), frontier.contains(waiting("/c", 0).fingerprint)), (3, false));
    }

    #[test]
    fn starting_urls_stand_in_one_order_however_they_arrive_with_the_root_before_them() {
        let paths = ["/b", "/", "/a", "/c?x=1"];
        let mut lines = Vec::new();
        for turn in 0..paths.len() {
            let mut frontier = Frontier::default();
            frontier.enter(waiting("/found", 1), None);
            for path in paths.iter().cycle().skip(turn).take(paths.len()) {
                frontier.enter(waiting(path, 0), None);
            }
            lines.push(line(&frontier).into_iter().map(|(path, _)| path.to_owned()).collect::<Vec<_>>());
        }
        assert!(lines[0][0] == "/" && lines[0][4] == "/found" && lines.iter().all(|other| *other == lines[0]), "{lines:?}");
    }

    #[test]
    fn one_url_of_a_script_waits_the_shallowest_first_found_one_in_either_order() {
        let script = Some(Fingerprint(1));
        for order in [["/i?id=1", "/i?id=2"], ["/i?id=2", "/i?id=1"]] {
            let mut frontier = Frontier::default();
            for path in order {
                let level = if path.ends_with('1') { 3 } else { 2 };
                frontier.enter(waiting(path, level), script);
            }
            assert_eq!(line(&frontier), [("/i?id=2", 2)], "{order:?}");
            assert_eq!(frontier.enter(waiting("/i?id=3", 2), script), Entered { new: true, beaten: true });
            frontier.remove(waiting("/i?id=2", 0).fingerprint);
            assert!(frontier.is_empty());
        }
    }

    /// The frontier with almost nothing near, its disk, and one with everything near: both must give the same order.
    struct Pair {
        small: Frontier,
        disk: BTreeMap<Fingerprint, String>,
        large: Frontier,
        known: BTreeMap<String, u8>,
    }

    impl Pair {
        fn enter(&mut self, path: &str, level: u8, script: Option<Fingerprint>) {
            let page = waiting(path, level);
            // What the seen set answers: known, or a shorter way was found, or new.
            match self.known.insert(path.to_owned(), level) {
                Some(was) if was <= level => {
                    self.known.insert(path.to_owned(), was);
                    return;
                }
                Some(_) => self.small.waits_far(page.fingerprint, script),
                None => {}
            }
            assert_eq!(self.large.enter(page.clone(), script).beaten, self.small.enter(page, script).beaten, "{path} {level}");
            self.disk.extend(self.small.set_aside(2));
        }

        fn take(&mut self) -> Option<String> {
            let called = self.small.call_back(2);
            let texts: Vec<_> = called.into_iter().map(|page| (page, self.disk.remove(&page))).collect();
            self.small.come_back(texts, |script| Fingerprint(script.len() as u64));
            assert_eq!((self.small.len(), self.small.is_empty()), (self.large.len(), self.large.is_empty()));
            // Starting URLs stay near: they are few, and their order is another.
            let near = self.small.line.iter().filter(|((_, place), _)| *place >= DISCOVERED).count();
            assert!(near <= 5, "{near} near");
            let first = self.large.first().cloned();
            assert_eq!(self.small.first(), first.as_ref());
            self.large.remove(first.as_ref()?.fingerprint);
            self.small.remove(first.as_ref()?.fingerprint);
            first.map(|first| first.url.path_and_query().to_owned())
        }
    }

    proptest::proptest! {
        #[test]
        fn what_waits_on_disk_comes_in_the_same_order_as_from_memory(steps in proptest::collection::vec((0u8..40, 0u8..5, 0u8..4), 1..300)) {
            let mut pair = Pair { small: Frontier::default(), disk: BTreeMap::new(), large: Frontier::default(), known: BTreeMap::new() };
            let mut taken = std::collections::BTreeSet::new();
            for (page, level, what) in steps {
                let path = if what == 0 { format!("/s{}?q={page}", page % 3) } else { format!("/p{page}") };
                let script = (what == 0).then(|| Fingerprint(format!("http://a.ke/s{}", page % 3).len() as u64));
                match what {
                    3 => taken.extend(pair.take()),
                    _ if taken.contains(&path) => {}
                    _ => pair.enter(&path, level, script),
                }
            }
            while pair.take().is_some() {}
            proptest::prop_assert!(pair.small.is_empty() && pair.large.is_empty());
        }
    }

    #[test]
    fn redirects_on_the_way_are_not_forgotten_on_disk() {
        let mut page = waiting("/a?b=1", 3);
        for hops in [0, 1, 5] {
            page.hops = hops;
            assert_eq!(Waiting::read(&page.text(), page.fingerprint, 3), Some(page.clone()));
        }
        assert_eq!(Waiting::read("x http://a.ke/", page.fingerprint, 3), None);
    }

    #[test]
    fn a_lost_text_does_not_keep_the_line_waiting_for_ever() {
        let mut frontier = Frontier::default();
        for n in 0..10 {
            frontier.enter(waiting(&format!("/{n}"), 1), None);
        }
        assert_eq!(frontier.set_aside(1).len(), 9);
        frontier.remove(frontier.first().unwrap().fingerprint);
        let called = frontier.call_back(100);
        assert_eq!((called.len(), frontier.len(), frontier.call_back(100).len()), (9, 9, 0));
        frontier.come_back(called.into_iter().map(|page| (page, None)), |_| Fingerprint(0));
        assert!(frontier.is_empty());
    }
}
