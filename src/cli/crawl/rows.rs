//! Lines of `--pages` and of `--links`.
//!
//! Names are those of `export pages` and `export links`, and of Common Crawl's index where they mean the same.

use nearcrawl_model::{
    fetch::FetchError,
    fingerprint::{Fingerprint, FingerprintKey},
    journal::{JournalEntry, JournalKey, VisitOutcome},
    links::Links,
    time::{Millis, WallTime},
    url::PageUrl,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// One URL that was asked for, and what came of it.
#[derive(Serialize)]
pub(super) struct PageRow<'a> {
    url: &'a str,
    host: &'a str,
    fetch_time: WallTime,
    fetch_status: Option<u16>,
    fetch_redirect: Option<&'a str>,
    content_mime_type: Option<&'a str>,
    content_mime_detected: Option<&'a str>,
    outcome: &'static str,
    failure: Option<FetchError>,
    level: u8,
    bytes: u64,
    took_ms: Millis,
    first_byte_ms: Option<f64>,
    no_index: bool,
    no_follow: bool,
    run: u32,
    row: u64,
}

/// One link of a page.
#[derive(Serialize)]
struct LinkRow<'a> {
    url: &'a str,
    to_url: &'a str,
    host: &'a str,
    to_host: &'a str,
    run: u32,
    row: u64,
}

/// The line of a visit; none if the entry is none.
pub(super) fn page_line(key: &JournalKey, row: u64, entry: &JournalEntry) -> Option<Vec<u8>> {
    let JournalEntry::Visited { url, level, at, outcome, took, first_byte_us, bytes, .. } = entry else { return None };
    let (word, failure) = match outcome {
        VisitOutcome::Page(_) | VisitOutcome::RestrictedPage { .. } | VisitOutcome::ServedPage { .. } => ("page", None),
        VisitOutcome::NotHtml(_) | VisitOutcome::NotHtmlAs { .. } => ("not-html", None),
        VisitOutcome::Redirect(_) | VisitOutcome::RedirectTo { .. } => ("redirect", None),
        VisitOutcome::Status(_) => ("status", None),
        VisitOutcome::Failed(failure) => ("failed", Some(*failure)),
    };
    let (no_index, no_follow) = outcome.asks_of_robots();
    let line = PageRow {
        url: url.as_str(),
        host: key.host.as_str(),
        fetch_time: *at,
        fetch_status: outcome.status(),
        fetch_redirect: outcome.redirect().map(PageUrl::as_str),
        content_mime_type: outcome.content_type(),
        content_mime_detected: outcome.detected_type(),
        outcome: word,
        failure,
        level: *level,
        bytes: *bytes,
        took_ms: *took,
        first_byte_ms: first_byte_us.map(|us| f64::from(us) / 1000.0),
        no_index,
        no_follow,
        run: key.run,
        row,
    };
    line_of(&line)
}

/// The lines of the links of a visit, each once, in the order of the page: those that its answer had, or as far as its journal has them; nothing
/// if the entry is none or has no links.
pub(super) fn link_lines(key: &JournalKey, row: u64, entry: &JournalEntry, links: Option<&Links>, known: &Known) -> Vec<u8> {
    let JournalEntry::Visited { url, .. } = entry else { return Vec::new() };
    let mut lines = Vec::new();
    let mut add = |to_url: &str, to_host: &str| {
        let link = LinkRow { url: url.as_str(), to_url, host: key.host.as_str(), to_host, run: key.run, row };
        lines.extend(line_of(&link).into_iter().flatten());
    };
    match links {
        Some(links) => links.iter().for_each(|(to, _)| add(to.as_str(), to.host_str())),
        None if entry_is_page(entry) => known.links(row, entry).iter().for_each(|(url, host)| add(url, host)),
        None => {}
    }
    lines
}

fn entry_is_page(entry: &JournalEntry) -> bool {
    matches!(entry, JournalEntry::Visited { outcome, .. } if outcome.is_page())
}

pub(super) fn line_of(value: &impl Serialize) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(value).ok()?;
    line.push(b'\n');
    Some(line)
}

/// The URLs that a journal names, by fingerprint: from them the links of a page are known again that was fetched in an earlier call. Links to
/// hosts out of scope are not in it.
#[derive(Default)]
pub(super) struct Known {
    urls: BTreeMap<Fingerprint, (String, String)>,
    /// Links to other sites, by the row of the visit.
    elsewhere: BTreeMap<u64, Vec<Fingerprint>>,
}

impl Known {
    /// Reads a journal.
    pub(super) fn of(entries: &[JournalEntry], key: FingerprintKey) -> Known {
        let mut known = Known::default();
        let mut visit = 0;
        for (row, entry) in (0..).zip(entries) {
            match entry {
                JournalEntry::Admitted { urls } | JournalEntry::Raised { urls, .. } | JournalEntry::Reopened { urls } => {
                    urls.iter().for_each(|(url, ..)| known.add(url.as_str(), url.host_str(), key));
                }
                JournalEntry::Visited { url, found, outgoing, .. } => {
                    visit = row;
                    known.add(url.as_str(), url.host_str(), key);
                    found.iter().for_each(|(url, ..)| known.add(url.as_str(), url.host_str(), key));
                    outgoing.iter().for_each(|arrival| known.add(arrival.url.as_str(), arrival.url.host_str(), key));
                }
                JournalEntry::Kept { elsewhere, named, .. } => {
                    named.iter().for_each(|url| known.add(url.as_str(), url.host_str(), key));
                    known.elsewhere.insert(visit, elsewhere.clone());
                }
                JournalEntry::HeldBack { urls, .. } => {
                    urls.iter().for_each(|arrival| known.add(arrival.url.as_str(), arrival.url.host_str(), key));
                }
                _ => {}
            }
        }
        known
    }

    fn add(&mut self, url: &str, host: &str, key: FingerprintKey) {
        self.urls.entry(key.of(url)).or_insert_with(|| (url.to_owned(), host.to_owned()));
    }

    fn links(&self, row: u64, entry: &JournalEntry) -> Vec<&(String, String)> {
        let JournalEntry::Visited { children, .. } = entry else { return Vec::new() };
        let elsewhere = self.elsewhere.get(&row).map(Vec::as_slice).unwrap_or_default();
        children.iter().chain(elsewhere).filter_map(|fingerprint| self.urls.get(fingerprint)).collect()
    }
}
