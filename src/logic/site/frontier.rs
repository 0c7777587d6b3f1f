//! Which URL of a site is first in line? By level, then by the order in which they were found (LL-22).

use crate::model::{fingerprint::Fingerprint, revisit::content_of, url::PageUrl};
use std::collections::BTreeMap;

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

/// Level, then place in line: the root, then the other starting URLs by a hash of their texts, in whatever order they arrive;
/// behind them what pages name, in the order of discovery. So two access points that know the same starting URLs when they begin
/// go through a site in the same order.
type Rank = (u8, u64);

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

/// The waiting URLs of one site.
#[derive(Debug, Default)]
pub struct Frontier {
    line: BTreeMap<Rank, (Waiting, Option<Fingerprint>)>,
    places: BTreeMap<Fingerprint, Rank>,
    /// The one waiting URL of each script.
    scripts: BTreeMap<Fingerprint, Rank>,
    entered: u64,
}

impl Frontier {
    /// Puts a URL in line, or moves it forward if it waits at a deeper level. Of several URLs of one `script` only the first in
    /// line stays, so that an endless calendar costs one place.
    pub fn enter(&mut self, waiting: Waiting, script: Option<Fingerprint>) -> Entered {
        if let Some(rank) = self.places.get(&waiting.fingerprint).copied() {
            if waiting.level < rank.0 {
                self.line.remove(&rank);
                self.place(waiting, script);
            }
            return Entered::default();
        }
        let mut beaten = false;
        if let Some(holder) = script.and_then(|script| self.scripts.get(&script)).copied() {
            if holder <= self.rank(&waiting) {
                return Entered { new: true, beaten: true };
            }
            if let Some((loser, _)) = self.line.remove(&holder) {
                self.places.remove(&loser.fingerprint);
            }
            beaten = true;
        }
        self.place(waiting, script);
        Entered { new: true, beaten }
    }

    fn place(&mut self, waiting: Waiting, script: Option<Fingerprint>) {
        let rank = self.rank(&waiting);
        self.entered += 1;
        self.places.insert(waiting.fingerprint, rank);
        if let Some(script) = script {
            self.scripts.insert(script, rank);
        }
        self.line.insert(rank, (waiting, script));
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
    pub fn would_win(&self, waiting: &Waiting, script: Fingerprint) -> bool {
        self.scripts.get(&script).is_some_and(|holder| self.rank(waiting) < *holder)
    }

    /// Takes a URL out of the line; false if it is not in it.
    pub fn remove(&mut self, fingerprint: Fingerprint) -> bool {
        let Some(rank) = self.places.remove(&fingerprint) else { return false };
        let script = self.line.remove(&rank).and_then(|(_, script)| script);
        if let Some(script) = script
            && self.scripts.get(&script) == Some(&rank)
        {
            self.scripts.remove(&script);
        }
        true
    }

    /// The first in line.
    pub fn first(&self) -> Option<&Waiting> {
        self.line.first_key_value().map(|(_, (waiting, _))| waiting)
    }

    /// A waiting URL by its fingerprint.
    pub fn get(&self, fingerprint: Fingerprint) -> Option<&Waiting> {
        self.line.get(self.places.get(&fingerprint)?).map(|(waiting, _)| waiting)
    }

    /// Whether this URL waits.
    pub fn contains(&self, fingerprint: Fingerprint) -> bool {
        self.places.contains_key(&fingerprint)
    }

    /// All that wait, first in line first.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.line.values().map(|(waiting, _)| waiting)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
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
        frontier.iter().map(|w| (w.url.path_and_query(), w.level)).collect()
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
}
