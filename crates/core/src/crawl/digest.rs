//! Result of a page request: the outcome as it is written down, the links that are followed, and the rows of the journal that say so.

use super::{
    link_filter::{Candidate, Sorted},
    revisits::change,
};
use crate::{context::Context, report::Counters};
use nearcrawl_model::{
    evaluation::Evaluated,
    fetch::{FetchOutcome, PageFacts},
    fingerprint::Fingerprint,
    ids::SiteNumber,
    journal::{Arrival, JournalEntry, VisitOutcome},
    links::Links,
    previous_run::{PreviousPage, PreviousVersion},
    revisit::{Change, Validators},
    time::Millis,
    url::Host,
};
use std::collections::BTreeMap;

/// Redirects of pages that are followed in a row.
const MAX_PAGE_REDIRECTS: u8 = 5;

/// A visit whose links wait for the seen set.
#[derive(Debug)]
pub(super) struct Digest {
    /// The host whose page was visited.
    pub(super) host: Host,
    /// The number of its site.
    pub(super) site: SiteNumber,
    /// The visit, but for what the seen set will say.
    pub(super) entry: JournalEntry,
    /// What the next run needs of it, and what was named out of scope.
    pub(super) further: Vec<JournalEntry>,
    pub(super) internal: Vec<Candidate>,
    pub(super) outgoing: Vec<Arrival>,
    /// Those of `internal` for which there is no room in the queue, with their levels.
    pub(super) not_queued: BTreeMap<Fingerprint, u8>,
}

/// An answer to the request for a page, read.
#[derive(Debug)]
pub(super) struct Reading {
    outcome: VisitOutcome,
    /// Where to go from here: what the page links to, or where it redirects.
    pub(super) links: Links,
    /// Level and redirects in a row of what it leads to.
    pub(super) level: u8,
    pub(super) hops: u8,
    validators: Validators,
    content: u64,
    size: u64,
    evaluated: Option<Evaluated>,
    not_modified: bool,
    change: Option<Change>,
    /// What the run before knew of the page.
    previous: Option<PreviousPage>,
}

/// How the request for a page went, besides what came of it.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) took: Millis,
    pub(super) first_byte_us: Option<u32>,
    pub(super) wire_bytes: u64,
    pub(super) retry_after: Option<Millis>,
    /// The server's software, if that is new.
    pub(super) software: Option<String>,
}

impl Reading {
    /// Reads what came of a page. `wire_bytes` is the size of the answer.
    pub(super) fn of(outcome: FetchOutcome, page: &Candidate, previous: Option<PreviousVersion>, wire_bytes: u64) -> Reading {
        let (previous, same_links) = previous.map_or((None, Links::default()), |previous| (Some(previous.page), previous.links));
        let not_modified = matches!(outcome, FetchOutcome::NotModified { .. });
        let (mut validators, mut content, mut size, mut evaluated) = (Validators::default(), 0, wire_bytes, None);
        let (outcome, links, level, hops) = match outcome {
            FetchOutcome::Page { status, page: mut facts } => {
                (validators, content) = (std::mem::take(&mut facts.validators), facts.content);
                evaluated = facts.evaluation.take();
                (outcome_of(status, &facts), followed(facts), page.level.saturating_add(1), 0)
            }
            // What the page asks of robots is asked still.
            FetchOutcome::NotModified { validators: now, no_index, no_follow } => {
                let was = previous.as_ref();
                let (before_index, before_follow) = was.map_or((false, false), |was| was.outcome.asks_of_robots());
                (content, size) = was.map_or((0, 0), |was| (was.content, was.size));
                validators = was.map_or(now.clone(), |was| now.or(&was.validators));
                let (no_index, no_follow) = (no_index || before_index, no_follow || before_follow);
                let facts = PageFacts { links: same_links, no_index, no_follow, ..PageFacts::default() };
                (outcome_of(304, &facts), followed(facts), page.level.saturating_add(1), 0)
            }
            FetchOutcome::Redirect { status, to } => {
                (VisitOutcome::RedirectTo { status, to: to.url.clone() }, Links::from_iter([to]), page.level, page.hops.saturating_add(1))
            }
            FetchOutcome::NotHtml { status, content_type } => (VisitOutcome::NotHtmlAs { status, content_type }, Links::default(), 0, 0),
            FetchOutcome::Robots { status, .. } | FetchOutcome::Status(status) => (VisitOutcome::Status(status), Links::default(), 0, 0),
            FetchOutcome::Failed(failure) => (VisitOutcome::Failed(failure), Links::default(), 0, 0),
        };
        let links = if hops > MAX_PAGE_REDIRECTS { Links::default() } else { links };
        let change = change(&outcome, content, not_modified, previous.as_ref());
        Reading { outcome, links, level, hops, validators, content, size, evaluated, not_modified, change, previous }
    }

    /// Counts the page.
    pub(super) fn count(&self, counters: &mut Counters) {
        match &self.outcome {
            outcome if outcome.is_page() => {
                counters.pages += 1;
                counters.not_modified += u64::from(self.not_modified);
            }
            VisitOutcome::Failed(_) => counters.failed += 1,
            _ => {}
        }
    }

    /// The visit as it is written down when the seen set has said which of its links are new.
    pub(super) fn digest(
        mut self,
        cx: &Context,
        (host, site): (Host, SiteNumber),
        page: Candidate,
        request: Request,
        mut sorted: Sorted,
    ) -> Digest {
        if self.not_modified
            && let Some(previous) = &mut self.previous
        {
            let (rules, lines) = (previous.rules, std::mem::take(&mut previous.lines));
            self.evaluated = previous.evaluation.take().map(|evaluation| Evaluated { evaluation, took_us: 0, rules, lines });
            sorted.beyond_scope.append(&mut previous.beyond_scope);
            sorted.beyond.append(&mut previous.beyond);
        }
        let (internal, outgoing) = (std::mem::take(&mut sorted.internal), std::mem::take(&mut sorted.outgoing));
        let not_queued = std::mem::take(&mut sorted.not_queued);
        let (children, beyond_scope) = (std::mem::take(&mut sorted.children), std::mem::take(&mut sorted.beyond_scope));
        let further = further_rows(&page, self.validators, (self.content, self.size), self.change, self.evaluated, sorted);
        let entry = JournalEntry::Visited {
            url: page.url,
            level: page.level,
            at: cx.now.wall,
            outcome: self.outcome,
            took: request.took,
            first_byte_us: request.first_byte_us,
            bytes: request.wire_bytes,
            software: request.software,
            children,
            found: Vec::new(),
            outgoing: Vec::new(),
            beyond_scope,
            rest: request.retry_after,
        };
        Digest { host, site, entry, further, internal, outgoing, not_queued }
    }
}

/// What is written down of a page besides the visit.
fn further_rows(
    page: &Candidate,
    validators: Validators,
    (content, size): (u64, u64),
    change: Option<Change>,
    evaluated: Option<Evaluated>,
    sorted: Sorted,
) -> Vec<JournalEntry> {
    let Sorted { elsewhere, named, beyond, held_back, not_kept, .. } = sorted;
    let (page, level) = (page.fingerprint, page.level);
    let keep = change.is_some() || !elsewhere.is_empty();
    let kept = keep.then_some(JournalEntry::Kept { page, level, validators, content, size, change, elsewhere, named });
    let beyond = (!beyond.is_empty()).then_some(JournalEntry::Beyond { page, urls: beyond });
    let evaluated = evaluated.map(|evaluated| {
        let Evaluated { evaluation, took_us, rules, lines } = evaluated;
        JournalEntry::EvaluatedAt { page, evaluation, took_us, rules, lines }
    });
    let held_back = held_back.into_iter().map(|(by, urls)| JournalEntry::HeldBack { by, urls });
    let not_kept = (not_kept > 0).then_some(JournalEntry::NotKept { urls: not_kept });
    kept.into_iter().chain(beyond).chain(evaluated).chain(held_back).chain(not_kept).collect()
}

/// How a page is written down: what it asks of robots is kept, even if it has been obeyed already by leaving out the links.
fn outcome_of(status: u16, page: &PageFacts) -> VisitOutcome {
    let PageFacts { no_index, no_follow, served, .. } = *page;
    match served {
        Some(served) => VisitOutcome::ServedPage { status, no_index, no_follow, served },
        None if no_index || no_follow => VisitOutcome::RestrictedPage { status, no_index, no_follow },
        None => VisitOutcome::Page(status),
    }
}

/// The links that may be followed: none if the page says so, whatever the hand that read it brought.
fn followed(page: PageFacts) -> Links {
    if page.no_follow { Links::default() } else { page.links }
}
