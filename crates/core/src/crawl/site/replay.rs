//! Replays a journal into a site in the state of its previous owner, and into what the seen set must know.

use super::{Site, SiteRules};
use crate::{context::Context, wishes::SiteWishes};
use nearcrawl_model::{
    fingerprint::{Fingerprint, FingerprintKey},
    ids::SiteNumber,
    journal::{Arrival, JournalEntry, JournalKey, SkipReason},
    seen::PageState,
    url::PageUrl,
};
use std::collections::BTreeMap;

/// What a journal comes to.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// The site as its previous owner had it.
    pub site: Site,
    /// For the seen set: every page met, with its level and what became of it.
    pub seen: Vec<(Fingerprint, u8, PageState)>,
    /// For the seen set: the links of visited pages.
    pub children: Vec<(Fingerprint, Vec<Fingerprint>)>,
    /// URLs beyond the depth, should a shorter way be found.
    pub cut: Vec<(Fingerprint, String)>,
    /// URLs for others that may not have arrived, with the sequence number of the row that named them.
    pub outgoing: Vec<(u64, Arrival)>,
}

/// The pages that a journal names.
#[derive(Default)]
struct Pages {
    /// The least level at which each was named, and what became of it.
    states: BTreeMap<Fingerprint, (u8, PageState)>,
    /// The URLs of those that are beyond the depth.
    cut: BTreeMap<Fingerprint, String>,
}

impl Pages {
    /// A page is named at a level.
    fn note(&mut self, fingerprint: Fingerprint, url: &PageUrl, level: u8, depth: u8) {
        let state = if level > depth { PageState::Cut } else { PageState::Waiting };
        if state == PageState::Cut {
            self.cut.insert(fingerprint, url.as_str().to_owned());
        } else {
            self.cut.remove(&fingerprint);
        }
        let page = self.states.entry(fingerprint).or_insert((level, state));
        page.0 = page.0.min(level);
        if page.1 == PageState::Cut {
            page.1 = state;
        }
    }

    /// A page was visited, and is now named at this level.
    fn visited_at(&mut self, fingerprint: Fingerprint, level: u8) {
        let page = self.states.entry(fingerprint).or_insert((level, PageState::Visited));
        page.0 = page.0.min(level);
    }

    /// The next row of the journal.
    fn read(&mut self, entry: &JournalEntry, depth: u8, secret: &FingerprintKey) {
        let of = |url: &PageUrl| secret.of(url.as_str());
        match entry {
            JournalEntry::Admitted { urls } | JournalEntry::Reopened { urls } => {
                urls.iter().for_each(|(url, level, _)| self.note(of(url), url, *level, depth));
            }
            JournalEntry::Raised { urls, visited } => {
                urls.iter().for_each(|(url, level, _)| self.note(of(url), url, *level, depth));
                visited.iter().for_each(|(fingerprint, level)| self.visited_at(*fingerprint, *level));
            }
            JournalEntry::Visited { url, level, found, .. } => {
                self.note(of(url), url, *level, depth);
                found.iter().for_each(|(url, level, _)| self.note(of(url), url, *level, depth));
                self.done(of(url));
            }
            // A starting URL that names it again brings it back.
            JournalEntry::Skipped { reason: SkipReason::Yield, .. } => {}
            JournalEntry::Skipped { url, .. } => self.done(of(url)),
            JournalEntry::Opened { .. }
            | JournalEntry::Robots { .. }
            | JournalEntry::Resumed { .. }
            | JournalEntry::Forwarded { .. }
            | JournalEntry::TakenOver { .. }
            | JournalEntry::OwnershipHistory(_)
            | JournalEntry::Moved { .. }
            | JournalEntry::WholeRun { .. }
            | JournalEntry::Started { .. }
            | JournalEntry::Follows { .. }
            | JournalEntry::Kept { .. }
            | JournalEntry::Beyond { .. }
            | JournalEntry::Evaluated { .. }
            | JournalEntry::EvaluatedBy { .. }
            | JournalEntry::HeldBack { .. }
            | JournalEntry::Released { .. }
            | JournalEntry::Followed { .. }
            | JournalEntry::NotKept { .. }
            | JournalEntry::NotQueued { .. }
            | JournalEntry::Learnt { .. }
            | JournalEntry::EvaluatedAt { .. }
            | JournalEntry::History(_)
            | JournalEntry::NamedHosts { .. }
            | JournalEntry::CrawledBy(_) => {}
        }
    }

    /// A page that was named is not asked for again.
    fn done(&mut self, fingerprint: Fingerprint) {
        if let Some(page) = self.states.get_mut(&fingerprint) {
            page.1 = PageState::Visited;
        }
    }
}

/// Reads a journal as [`replay`] does, by the rules that hold for its host here.
pub(crate) fn replay_for(key: JournalKey, number: SiteNumber, entries: &[JournalEntry], cx: &Context) -> Option<Replayed> {
    let JournalEntry::Opened { address, tree, .. } = entries.first()? else { return None };
    let starts = entries.iter().flat_map(|entry| match entry {
        JournalEntry::Admitted { urls } => urls.iter().filter(|(_, level, hops)| (*level, *hops) == (0, 0)).map(|(url, ..)| url).collect(),
        JournalEntry::Started { urls } => urls.iter().collect(),
        _ => Vec::new(),
    });
    let wishes = cx.wishes_for(&key.host, tree, *address, starts);
    replay_with(key, number, entries, (&cx.settings.rules, wishes), &cx.secret)
}

/// Reads a journal from its first entry; none if that is not an opening (then there is nothing to stand on).
#[cfg(test)]
pub(crate) fn replay(
    key: JournalKey,
    number: SiteNumber,
    entries: &[JournalEntry],
    rules: &SiteRules,
    secret: &FingerprintKey,
) -> Option<Replayed> {
    replay_with(key, number, entries, (rules, SiteWishes::default()), secret)
}

fn replay_with(
    key: JournalKey,
    number: SiteNumber,
    entries: &[JournalEntry],
    (rules, wishes): (&SiteRules, SiteWishes),
    secret: &FingerprintKey,
) -> Option<Replayed> {
    let JournalEntry::Opened { address, tree, at } = entries.first()? else { return None };
    let mut site = Site::open(key, *address, tree.clone(), number, *at);
    site.wish(wishes, rules);
    let mut pages = Pages::default();
    let mut children = Vec::new();
    let mut outgoing: Vec<(u64, Arrival)> = Vec::new();
    for (sequence, entry) in (0..).zip(entries) {
        site.apply(entry, rules, secret);
        pages.read(entry, site.depth(rules), secret);
        match entry {
            JournalEntry::Visited { url, children: links, outgoing: named, .. } => {
                if !links.is_empty() {
                    children.push((secret.of(url.as_str()), links.clone()));
                }
                outgoing.extend(named.iter().map(|arrival| (sequence, arrival.clone())));
            }
            JournalEntry::Released { outgoing: named, .. } => outgoing.extend(named.iter().map(|arrival| (sequence, arrival.clone()))),
            JournalEntry::Forwarded { before } => outgoing.retain(|(sequence, _)| sequence >= before),
            _ => {}
        }
    }
    let seen = pages.states.into_iter().map(|(fingerprint, (level, state))| (fingerprint, level, state)).collect();
    Some(Replayed { site, seen, children, cut: pages.cut.into_iter().collect(), outgoing })
}
