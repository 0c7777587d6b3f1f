//! Follows a crawl: writes its pages, links and records as they come, and says how far it is.

use super::{
    outputs::{Sink, Written},
    progress::Progress,
    records::Records,
    rows::{Known, link_lines, page_line},
    seeds::{Fate, Fates},
};
use crate::node::{
    NodeError,
    standalone::{Instead, Watcher},
};
use nearcrawl_core::{event::Event, report::View};
use nearcrawl_model::{
    fetch::{FetchOutcome, FetchReport},
    fingerprint::FingerprintKey,
    journal::{JournalEntry, JournalKey, JournalRow},
    links::Links,
    url::{Host, PageUrl},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io, mem,
};

/// Answers whose visits are not recorded yet: more than are under way at once. What is beyond is known by its journal only.
const MAX_ANSWERS: usize = 16_384;

/// Lines, one or more for each visit, and which visits are in a file already.
pub(super) struct Lines {
    sink: Sink,
    written: Written,
}

impl Lines {
    pub(super) fn new(sink: Sink) -> Lines {
        Lines { sink, written: Written::default() }
    }

    fn write(&mut self, lines: Vec<u8>) -> Result<(), NodeError> {
        let written = self.sink.write(lines);
        written.map_err(|why| failed(&self.sink, &why))
    }
}

fn failed(sink: &Sink, why: &io::Error) -> NodeError {
    NodeError::Output { path: sink.name(), why: why.to_string() }
}

/// Where a crawl's lines go.
#[derive(Default)]
pub(super) struct Outputs {
    pub(super) pages: Option<Lines>,
    pub(super) links: Option<Lines>,
    pub(super) records: Option<Records>,
}

impl Outputs {
    fn sinks(&self) -> impl Iterator<Item = &Sink> {
        let lines = self.pages.iter().chain(&self.links).map(|lines| &lines.sink);
        lines.chain(self.records.iter().map(Records::sink_as_it_is))
    }

    fn sinks_mut(&mut self) -> impl Iterator<Item = &mut Sink> {
        let lines = self.pages.iter_mut().chain(&mut self.links).map(|lines| &mut lines.sink);
        lines.chain(self.records.iter_mut().map(Records::sink))
    }
}

/// Follows it.
pub(super) struct Watch {
    outputs: Outputs,
    pub(super) fates: Fates,
    pub(super) progress: Progress,
    key: FingerprintKey,
    /// The links of answers, by the URL that was asked for, until the visit is recorded; the journal has not all of them.
    answers: BTreeMap<String, Links>,
    /// Up to which row each journal has been written.
    written_below: BTreeMap<(Host, u32), u64>,
    /// Servers of which something was recorded since they were at rest.
    touched: BTreeSet<Host>,
}

impl Watch {
    pub(super) fn new(outputs: Outputs, fates: Fates, progress: Progress) -> Watch {
        Watch {
            outputs,
            fates,
            progress,
            key: FingerprintKey([0; 16]),
            answers: BTreeMap::new(),
            written_below: BTreeMap::new(),
            touched: BTreeSet::new(),
        }
    }

    /// Its outputs, when the crawl has ended.
    pub(super) fn finish(self, servers: &[nearcrawl_model::record::ServerRecord]) -> Result<(), NodeError> {
        self.progress.finish();
        let Outputs { pages, links, records } = self.outputs;
        for mut lines in pages.into_iter().chain(links) {
            lines.sink.finish().map_err(|why| failed(&lines.sink, &why))?;
        }
        if let Some(mut records) = records {
            records.finish(servers).map_err(|why| failed(records.sink(), &why))?;
        }
        Ok(())
    }

    fn answered(&mut self, report: &FetchReport) {
        let FetchOutcome::Page { page, .. } = &report.outcome else { return };
        if self.outputs.links.is_none() {
            return;
        }
        if self.answers.len() >= MAX_ANSWERS {
            // Most are of requests that no visit followed, as for robots.txt.
            self.answers.clear();
        }
        self.answers.insert(report.url.to_string(), page.links.clone());
    }

    /// A journal of an earlier call was read back: what of it is in no file yet is written.
    fn read_back(&mut self, key: &JournalKey, entries: &[JournalEntry]) -> Result<(), NodeError> {
        self.touched.insert(key.host.clone());
        let name = (key.host.clone(), key.run);
        let below = self.written_below.insert(name, entries.len() as u64).unwrap_or(0);
        let take = |lines: &mut Option<Lines>| lines.as_mut().map(|lines| lines.written.take(key)).unwrap_or_default();
        let (pages, links) = (take(&mut self.outputs.pages), take(&mut self.outputs.links));
        let mut known = None;
        for (row, entry) in (0..).zip(entries).skip(usize::try_from(below).unwrap_or(usize::MAX)) {
            self.see(entry);
            if let Some(lines) = self.outputs.pages.as_mut().filter(|_| pages.binary_search(&row).is_err()) {
                lines.write(page_line(key, row, entry).unwrap_or_default())?;
            }
            if let Some(lines) = self.outputs.links.as_mut().filter(|_| links.binary_search(&row).is_err()) {
                let known = known.get_or_insert_with(|| Known::of(entries, self.key));
                lines.write(link_lines(key, row, entry, None, known))?;
            }
        }
        Ok(())
    }

    /// What an entry says of a starting URL.
    fn see(&mut self, entry: &JournalEntry) {
        match entry {
            JournalEntry::Visited { url, outcome, found, outgoing, .. } if self.fates.is_one(url.as_str()) => {
                let next = || found.first().map(|(to, ..)| to).or(outgoing.first().map(|arrival| &arrival.url));
                let to = outcome.redirect().or_else(next).map(PageUrl::to_string);
                self.fates.tell(url.as_str(), Fate::Visited(outcome.clone(), to));
            }
            JournalEntry::Skipped { url, reason } => self.fates.tell(url.as_str(), Fate::Skipped(*reason)),
            _ => {}
        }
    }

    /// Writes a row that is going to be stored.
    fn stored(&mut self, row: &JournalRow) -> Result<(), NodeError> {
        let JournalRow { key, sequence, entry } = row;
        if !self.touched.contains(&key.host) {
            self.touched.insert(key.host.clone());
        }
        let below = self.written_below.entry((key.host.clone(), key.run)).or_default();
        if *sequence < *below {
            return Ok(());
        }
        *below = sequence + 1;
        let Ok(entry) = postcard::from_bytes::<JournalEntry>(entry) else { return Ok(()) };
        self.see(&entry);
        let JournalEntry::Visited { url, .. } = &entry else { return Ok(()) };
        let links = self.answers.remove(url.as_str());
        if let Some(lines) = &mut self.outputs.pages {
            lines.write(page_line(key, *sequence, &entry).unwrap_or_default())?;
        }
        if let Some(lines) = &mut self.outputs.links {
            lines.write(link_lines(key, *sequence, &entry, links.as_ref(), &Known::default()))?;
        }
        Ok(())
    }
}

impl Watcher for Watch {
    fn begins(&mut self, journals: &[(JournalKey, u64)], key: FingerprintKey) -> Result<(), NodeError> {
        self.key = key;
        for (lines, each_once) in [(&mut self.outputs.pages, true), (&mut self.outputs.links, false)] {
            if let Some(lines) = lines {
                let begun = Written::begin(&mut lines.sink, journals, each_once);
                lines.written = begun.map_err(|why| failed(&lines.sink, &why))?;
            }
        }
        if let Some(records) = &mut self.outputs.records {
            let hosts: BTreeSet<&str> = journals.iter().map(|(key, _)| key.host.as_str()).collect();
            records.begin(|host| hosts.contains(host)).map_err(|why| failed(records.sink(), &why))?;
        }
        Ok(())
    }

    fn hears(&mut self, event: &Event) -> Result<(), NodeError> {
        match event {
            Event::Fetched { report, .. } | Event::Revisited { report, .. } => self.answered(report),
            Event::Resolved { host, answer: Err(why) } => self.fates.unresolved(host, *why),
            Event::Loaded { journals, .. } => {
                for (key, entries) in journals {
                    self.read_back(key, entries)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn stores(&mut self, rows: &[JournalRow]) -> Result<(), NodeError> {
        rows.iter().try_for_each(|row| self.stored(row))
    }

    fn looks(&mut self, view: &View<'_>) -> Result<Vec<Instead>, NodeError> {
        let mut further = Vec::new();
        for host in mem::take(&mut self.touched) {
            match view.is_at_rest(&host) {
                Some(true) => {
                    let Some(record) = view.server(&host) else { continue };
                    match self.fates.further(&record) {
                        Some(instead) => further.push(instead),
                        None => {
                            if let Some(records) = &mut self.outputs.records {
                                records.tell(&record).map_err(|why| failed(records.sink(), &why))?;
                            }
                        }
                    }
                }
                Some(false) => drop(self.touched.insert(host)),
                None => {}
            }
        }
        for sink in self.outputs.sinks_mut() {
            sink.pass_on().map_err(|why| failed(sink, &why))?;
        }
        self.progress.show(view);
        Ok(further)
    }

    fn is_behind(&self) -> bool {
        self.outputs.sinks().any(Sink::is_behind)
    }

    fn has_enough(&self) -> bool {
        self.outputs.sinks().any(Sink::is_closed)
    }
}
