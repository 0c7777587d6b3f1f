//! Reads a journal for the next run: every page with its version and its links, and every URL by its fingerprint.

use nearcrawl_model::{
    evaluation::Evaluation,
    fingerprint::{Fingerprint, FingerprintKey},
    journal::{JournalEntry, VisitOutcome},
    previous_run::{PreviousPage, PreviousRow},
    revisit::Validators,
    url::{Host, PageUrl},
};

/// How a site stands with what the run before knew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// There is no run before, or nothing is left of it.
    #[default]
    None,
    /// It is being read: nothing is asked before it is known.
    Reading,
    /// It can be asked of each page.
    Ready,
}

/// Reads a journal from its first entry, one entry at a time.
#[derive(Debug)]
pub struct PreviousRunReader {
    key: FingerprintKey,
    /// The last visit; the row behind it may say more of it.
    last: Option<(Fingerprint, PreviousPage)>,
    pages: u64,
}

/// A page as it was visited, without what later rows say of it.
fn visited(outcome: VisitOutcome, bytes: u64, children: Vec<Fingerprint>, beyond_scope: Vec<Host>) -> PreviousPage {
    let (validators, elsewhere, beyond, lines) = (Validators::default(), Vec::new(), Vec::new(), Vec::new());
    PreviousPage {
        outcome,
        validators,
        content: 0,
        size: bytes,
        children,
        elsewhere,
        beyond_scope,
        beyond,
        evaluation: None,
        rules: 0,
        lines,
    }
}

impl PreviousRunReader {
    /// A reader for journals whose fingerprints are made with this key.
    pub fn new(key: FingerprintKey) -> PreviousRunReader {
        PreviousRunReader { key, last: None, pages: 0 }
    }

    /// Takes in the next entry; what is certain by now is told.
    pub fn read(&mut self, entry: JournalEntry) -> Vec<PreviousRow> {
        let text = |url: &PageUrl| PreviousRow::Text(self.key.of(url.as_str()), url.as_str().to_owned());
        let mut rows = Vec::new();
        match entry {
            JournalEntry::Admitted { urls } | JournalEntry::Raised { urls, .. } | JournalEntry::Reopened { urls } => {
                rows.extend(urls.iter().map(|(url, ..)| text(url)));
            }
            JournalEntry::Visited { url, outcome, bytes, children, found, outgoing, beyond_scope, .. } => {
                rows.extend(found.iter().map(|(url, ..)| text(url)));
                rows.extend(outgoing.iter().map(|arrival| text(&arrival.url)));
                rows.extend(self.end());
                self.pages += u64::from(outcome.is_page());
                let page = visited(outcome, bytes, children, beyond_scope);
                self.last = Some((self.key.of(url.as_str()), page));
            }
            JournalEntry::Kept { page, validators, content, size, elsewhere, named, .. } => {
                rows.extend(named.iter().map(text));
                if let Some((_, previous)) = self.last.as_mut().filter(|(visited, _)| *visited == page) {
                    *previous = PreviousPage { validators, content, size, elsewhere, ..previous.clone() };
                }
            }
            JournalEntry::Beyond { page, urls } => {
                if let Some((_, previous)) = self.last.as_mut().filter(|(visited, _)| *visited == page) {
                    previous.beyond = urls;
                }
            }
            JournalEntry::Evaluated { page, evaluation, .. } => self.evaluated(page, evaluation, 0, Vec::new()),
            JournalEntry::EvaluatedBy { page, evaluation, rules, .. } => self.evaluated(page, evaluation, rules, Vec::new()),
            JournalEntry::EvaluatedAt { page, evaluation, rules, lines, .. } => self.evaluated(page, evaluation, rules, lines),
            JournalEntry::HeldBack { urls: arrivals, .. } | JournalEntry::Released { outgoing: arrivals, .. } => {
                rows.extend(arrivals.iter().map(|arrival| text(&arrival.url)));
            }
            JournalEntry::Opened { .. }
            | JournalEntry::Robots { .. }
            | JournalEntry::Skipped { .. }
            | JournalEntry::Forwarded { .. }
            | JournalEntry::TakenOver { .. }
            | JournalEntry::OwnershipHistory(_)
            | JournalEntry::Moved { .. }
            | JournalEntry::WholeRun { .. }
            | JournalEntry::Resumed { .. }
            | JournalEntry::Started { .. }
            | JournalEntry::Follows { .. }
            | JournalEntry::Followed { .. }
            | JournalEntry::NotKept { .. }
            | JournalEntry::NotQueued { .. }
            | JournalEntry::Learnt { .. }
            | JournalEntry::History(_)
            | JournalEntry::NamedHosts { .. }
            | JournalEntry::CrawledBy(_) => {}
        }
        rows
    }

    fn evaluated(&mut self, page: Fingerprint, evaluation: Evaluation, rules: u32, lines: Vec<u32>) {
        if let Some((_, previous)) = self.last.as_mut().filter(|(visited, _)| *visited == page) {
            (previous.evaluation, previous.rules, previous.lines) = (Some(evaluation), rules, lines);
        }
    }

    /// The last visit, which no row can say more of.
    pub fn end(&mut self) -> Option<PreviousRow> {
        self.last.take().map(|(page, previous)| PreviousRow::Page(page, Box::new(previous)))
    }

    /// How many pages there were so far.
    pub fn pages(&self) -> u64 {
        self.pages
    }
}
