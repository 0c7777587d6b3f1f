//! Rows of a journal for readers: its visits, or the links that these found, as JSON, a piece at a time.
//!
//! Nothing is remembered from one piece to the next, and a piece takes no more memory than an answer may take.

use nearcrawl_model::{
    access_point::AccessPoint,
    exported::{
        ExportOf, ExportPlace, ExportedRows, JournalPlace, LinkIds, LinkNumbers, LinkRow, MAX_EXPORTED, MAX_EXPORTED_BYTES, MAX_IDS,
        MAX_NAME_BYTES, MissingRow, PageOutcome, PageRow, as_json,
    },
    fingerprint::{Fingerprint, FingerprintKey},
    journal::{JournalEntry, JournalKey, VisitOutcome},
    record::RunState,
    revisit::Change,
    url::{Host, PageUrl},
};
use serde::Serialize;
use std::collections::BTreeSet;

/// Bytes of journals that are read for one answer, at most, and a row.
const MAX_READ: usize = 4 << 20;

/// Which rows of which journals are to be read for a reader.
#[derive(Clone, Debug)]
pub struct ExportOrder {
    /// What the reader wants: pages or links.
    pub of: ExportOf,
    /// This access point, the owner.
    pub me: AccessPoint,
    /// The key of the journals' fingerprints.
    pub secret: FingerprintKey,
    /// The journals, in the order of their hosts.
    pub journals: Vec<ExportedJournal>,
    /// Whether there are more behind them.
    pub more: bool,
}

/// A journal that is read for a reader.
#[derive(Clone, Debug)]
pub struct ExportedJournal {
    /// Which one.
    pub key: JournalKey,
    /// The starting host of its tree.
    pub tree: Host,
    /// How the run stands.
    pub state: RunState,
    /// From which row on.
    pub from: u64,
    /// How many of the rows that this one leads to are left out.
    pub part: u32,
}

/// Puts the rows of one answer together. Entries are given to it journal by journal, in order; it says when the answer is full.
#[derive(Debug)]
pub struct JournalRows<'a> {
    order: &'a ExportOrder,
    rows: Vec<String>,
    bytes: usize,
    /// Bytes of journal entries that were read.
    read: usize,
    numbers: Option<LinkNumbers>,
    /// The visit of which the next rows may say more.
    open: Option<Open>,
    /// Of the entry that is being told: its number, how many rows it led to so far, and how many of these are known.
    entry: u64,
    made: u32,
    known: u32,
    /// The first of them that has no room in the answer.
    overflow: Option<u32>,
}

/// A visit, with the rows behind it.
#[derive(Debug)]
struct Open {
    sequence: u64,
    page: Fingerprint,
    row: PageRow,
    children: Vec<Fingerprint>,
    elsewhere: Vec<Fingerprint>,
    beyond: Vec<Host>,
    names: Vec<PageUrl>,
}

/// Whether a row says more of the visit before it, and nothing else.
fn says_more(entry: &JournalEntry) -> bool {
    matches!(
        entry,
        JournalEntry::Kept { .. }
            | JournalEntry::Beyond { .. }
            | JournalEntry::Evaluated { .. }
            | JournalEntry::EvaluatedBy { .. }
            | JournalEntry::EvaluatedAt { .. }
            | JournalEntry::NotQueued { .. }
    )
}

/// The URLs that an entry names besides a visit.
fn named_by(entry: JournalEntry) -> Vec<PageUrl> {
    match entry {
        JournalEntry::Admitted { urls } | JournalEntry::Raised { urls, .. } | JournalEntry::Reopened { urls } => {
            urls.into_iter().map(|(url, ..)| url).collect()
        }
        JournalEntry::HeldBack { urls: arrivals, .. } | JournalEntry::Released { outgoing: arrivals, .. } => {
            arrivals.into_iter().map(|arrival| arrival.url).collect()
        }
        _ => Vec::new(),
    }
}

impl<'a> JournalRows<'a> {
    /// For an answer.
    pub fn new(order: &'a ExportOrder) -> JournalRows<'a> {
        JournalRows { order, rows: Vec::new(), bytes: 0, read: 0, numbers: None, open: None, entry: 0, made: 0, known: 0, overflow: None }
    }

    /// The entries of this journal follow.
    pub fn begin(&mut self, journal: &ExportedJournal) {
        self.numbers = Some(LinkNumbers::of(&self.order.secret, &journal.key.host, journal.key.run));
    }

    /// Takes in an entry with its number and size. If the answer is full, this is where to go on.
    pub fn take(&mut self, journal: &ExportedJournal, sequence: u64, size: usize, entry: JournalEntry) -> Option<ExportPlace> {
        self.read += size;
        if says_more(&entry) {
            self.add(entry);
            return None;
        }
        self.close(journal);
        if self.overflow.is_none() && self.is_full() {
            self.start(journal, sequence);
            self.overflow = Some(self.known);
        }
        if self.overflow.is_none() {
            match entry {
                JournalEntry::Visited { .. } => self.open = self.opened(journal, sequence, entry),
                entry if self.wants_links() => {
                    self.start(journal, sequence);
                    self.tell_names(journal, None, named_by(entry));
                }
                _ => {}
            }
        }
        self.next(journal)
    }

    /// The journal has no more entries. If the answer is full, this is where to go on.
    pub fn end(&mut self, journal: &ExportedJournal) -> Option<ExportPlace> {
        self.close(journal);
        let behind = || ExportPlace { host: journal.key.host.clone(), within: None };
        self.next(journal).or_else(|| self.is_full().then(behind))
    }

    /// The rows follow that this entry leads to.
    fn start(&mut self, journal: &ExportedJournal, sequence: u64) {
        self.entry = sequence;
        self.made = 0;
        self.known = if sequence == journal.from { journal.part } else { 0 };
    }

    /// Where to go on, if something had no room.
    fn next(&self, journal: &ExportedJournal) -> Option<ExportPlace> {
        let within = JournalPlace { run: journal.key.run, sequence: self.entry, part: self.overflow? };
        Some(ExportPlace { host: journal.key.host.clone(), within: Some(within) })
    }

    /// The journal, or this part of it, is not here.
    pub fn missing(&mut self, journal: &ExportedJournal) {
        let missing_text = format!("the journal of run {} is not where the server is on record", journal.key.run);
        (self.made, self.known) = (0, 0);
        self.tell(&MissingRow { host: journal.key.host.clone(), run: journal.key.run, missing_text });
    }

    /// The answer, with where to go on.
    pub fn answer(self, next: Option<ExportPlace>) -> ExportedRows {
        ExportedRows { rows: self.rows, next }
    }

    fn wants_links(&self) -> bool {
        matches!(self.order.of, ExportOf::PageLinks | ExportOf::HostLinks)
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= MAX_EXPORTED / 2 || self.bytes >= MAX_EXPORTED_BYTES / 2 || self.read >= MAX_READ
    }

    fn tell(&mut self, row: &impl Serialize) {
        let number = self.made;
        self.made += 1;
        if number < self.known || self.overflow.is_some() {
            return;
        }
        let Some(row) = as_json(row) else { return };
        if !self.rows.is_empty() && (self.rows.len() >= MAX_EXPORTED || self.bytes + row.len() > MAX_EXPORTED_BYTES) {
            self.overflow = Some(number);
            return;
        }
        self.bytes += row.len();
        self.rows.push(row);
    }

    fn opened(&self, journal: &ExportedJournal, sequence: u64, entry: JournalEntry) -> Option<Open> {
        let JournalEntry::Visited { url, level, at, outcome, took, first_byte_us, bytes, children, found, outgoing, beyond_scope, .. } =
            entry
        else {
            return None;
        };
        let (no_index, no_follow) = outcome.asks_of_robots();
        let (kind, failure) = match outcome {
            VisitOutcome::Page(_) | VisitOutcome::RestrictedPage { .. } | VisitOutcome::ServedPage { .. } => (PageOutcome::Page, None),
            VisitOutcome::NotHtml(_) | VisitOutcome::NotHtmlAs { .. } => (PageOutcome::NotHtml, None),
            VisitOutcome::Redirect(_) | VisitOutcome::RedirectTo { .. } => (PageOutcome::Redirect, None),
            VisitOutcome::Status(_) => (PageOutcome::Status, None),
            VisitOutcome::Failed(failure) => (PageOutcome::Failed, Some(failure)),
        };
        let mut names: Vec<PageUrl> = found.into_iter().map(|(url, ..)| url).collect();
        names.extend(outgoing.into_iter().map(|arrival| arrival.url));
        let row = PageRow {
            access_point: self.order.me,
            host: url.host(),
            tree: journal.tree.clone(),
            run: journal.key.run,
            run_state: journal.state,
            level,
            fetch_time: at,
            fetch_status: outcome.status(),
            outcome: kind,
            failure,
            fetch_redirect: outcome.redirect().cloned(),
            content_mime_type: outcome.content_type().map(str::to_owned),
            content_mime_detected: outcome.detected_type().map(str::to_owned),
            took_ms: took,
            first_byte_us,
            bytes,
            page_bytes: if kind == PageOutcome::Page { bytes } else { 0 },
            no_index,
            no_follow,
            change: None,
            content: None,
            etag: None,
            last_modified: None,
            internal_links: children.len() as u64,
            external_links: 0,
            links_beyond_scope: 0,
            detected_failures: None,
            evaluation_rules: None,
            url,
        };
        let page = self.order.secret.of(row.url.as_str());
        Some(Open { sequence, page, row, children, elsewhere: Vec::new(), beyond: beyond_scope, names })
    }

    /// What a row says more of the visit before it.
    fn add(&mut self, entry: JournalEntry) {
        let Some(open) = &mut self.open else { return };
        match entry {
            JournalEntry::Kept { page, validators, content, size, change, elsewhere, named, .. } if page == open.page => {
                let row = &mut open.row;
                (row.etag, row.last_modified) = (validators.etag, validators.last_modified);
                row.content = (content != 0).then(|| format!("{content:016x}"));
                row.change = change;
                if change == Some(Change::NotModified) && row.outcome == PageOutcome::Page {
                    row.page_bytes = row.bytes.saturating_add(size);
                }
                row.external_links = elsewhere.len() as u64;
                open.elsewhere = elsewhere;
                open.names.extend(named);
            }
            JournalEntry::Beyond { page, urls } if page == open.page => open.row.links_beyond_scope = urls.len() as u64,
            JournalEntry::Evaluated { page, evaluation, .. } if page == open.page => {
                open.row.detected_failures = Some(evaluation.failures.values().map(|count| u64::from(*count)).sum());
            }
            JournalEntry::EvaluatedBy { page, evaluation, rules, .. } | JournalEntry::EvaluatedAt { page, evaluation, rules, .. }
                if page == open.page =>
            {
                open.row.detected_failures = Some(evaluation.failures.values().map(|count| u64::from(*count)).sum());
                open.row.evaluation_rules = Some(rules);
            }
            _ => {}
        }
    }

    /// No row says more of the last visit: it is told.
    fn close(&mut self, journal: &ExportedJournal) {
        let Some(open) = self.open.take() else { return };
        self.start(journal, open.sequence);
        match self.order.of {
            ExportOf::Hosts | ExportOf::Events => {}
            ExportOf::Pages => self.tell(&open.row),
            ExportOf::HostLinks | ExportOf::PageLinks => self.tell_links(journal, open),
        }
    }

    fn link_row(&self, journal: &ExportedJournal, url: Option<PageUrl>) -> LinkRow {
        LinkRow {
            host: journal.key.host.clone(),
            run: journal.key.run,
            run_state: journal.state,
            url,
            goes_on: false,
            internal: 0,
            children: LinkIds::default(),
            elsewhere: LinkIds::default(),
            beyond: Vec::new(),
            beyond_urls: 0,
            names: Vec::new(),
            named: LinkIds::default(),
        }
    }

    /// The links of a visit, behind the names that it brought.
    fn tell_links(&mut self, journal: &ExportedJournal, open: Open) {
        let Open { row, children, elsewhere, mut beyond, names, .. } = open;
        let internal = children.len() as u64;
        let by_page = self.order.of == ExportOf::PageLinks;
        self.tell_names(journal, Some(&row.url), names);
        if internal == 0 && elsewhere.is_empty() && beyond.is_empty() {
            return;
        }
        let numbers = |prints: &[Fingerprint]| LinkIds(prints.iter().filter_map(|print| self.number(*print)).collect());
        let (mut children, mut elsewhere) = (if by_page { numbers(&children).0 } else { Vec::new() }, numbers(&elsewhere).0);
        let mut first = true;
        while first || !children.is_empty() || !elsewhere.is_empty() || !beyond.is_empty() {
            let cut = |ids: &mut Vec<u64>| LinkIds(ids.drain(..ids.len().min(MAX_IDS)).collect());
            let mut part = self.link_row(journal, Some(row.url.clone()));
            (part.children, part.elsewhere, part.goes_on) = (cut(&mut children), cut(&mut elsewhere), !first);
            part.beyond = beyond.drain(..beyond.len().min(MAX_IDS / 4)).collect();
            if first {
                (part.internal, part.beyond_urls) = (internal, row.links_beyond_scope);
            }
            self.tell(&part);
            first = false;
        }
    }

    fn number(&self, print: Fingerprint) -> Option<u64> {
        self.numbers.as_ref().map(|numbers| numbers.number(print))
    }

    /// Names, and which numbers they have. If only hosts are asked for, URLs of the journal's own are left out.
    fn tell_names(&mut self, journal: &ExportedJournal, page: Option<&PageUrl>, names: Vec<PageUrl>) {
        let by_page = self.order.of == ExportOf::PageLinks;
        let mut part = self.link_row(journal, None);
        let mut bytes = 0;
        let mut said = BTreeSet::new();
        for url in page.cloned().into_iter().filter(|_| by_page).chain(names) {
            if !by_page && url.host_str() == journal.key.host.as_str() {
                continue;
            }
            let Some(number) = self.number(self.order.secret.of(url.as_str())) else { continue };
            if !said.insert(number) {
                continue;
            }
            let name = if by_page { url.as_str() } else { url.host_str() };
            if bytes > 0 && (bytes + name.len() > MAX_NAME_BYTES || part.names.len() >= MAX_IDS) {
                let next = self.link_row(journal, None);
                let full = std::mem::replace(&mut part, next);
                self.tell(&full);
                bytes = 0;
            }
            bytes += name.len();
            part.names.push(name.to_owned());
            part.named.0.push(number);
        }
        if !part.names.is_empty() {
            self.tell(&part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::{
        fetch::{PageType, Served},
        journal::Arrival,
        revisit::Validators,
        time::WallTime,
    };

    const SECRET: FingerprintKey = FingerprintKey([7; 16]);

    fn url(text: &str) -> PageUrl {
        PageUrl::parse(text).unwrap()
    }

    fn print(text: &str) -> Fingerprint {
        SECRET.of(text)
    }

    fn order(of: ExportOf, from: u64) -> ExportOrder {
        let host: Host = "a.ke".parse().unwrap();
        let key = JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: host.clone(), run: 2 };
        let journals = vec![ExportedJournal { key, tree: host, state: RunState::Complete, from, part: 0 }];
        ExportOrder { of, me: AccessPoint([7; 32]), secret: SECRET, journals, more: false }
    }

    fn visited(page: &str, children: &[&str], found: &[&str], outgoing: &[&str]) -> JournalEntry {
        JournalEntry::Visited {
            url: url(page),
            level: 1,
            at: WallTime(1_000),
            outcome: VisitOutcome::Page(200),
            took: 30,
            first_byte_us: Some(9_000),
            bytes: 500,
            software: None,
            children: children.iter().map(|child| print(child)).collect(),
            found: found.iter().map(|found| (url(found), 2, 0)).collect(),
            outgoing: outgoing.iter().map(|to| Arrival { url: url(to), place: None, run: 2 }).collect(),
            beyond_scope: vec!["x.com".parse().unwrap()],
            rest: None,
        }
    }

    fn kept(page: &str, change: Option<Change>, elsewhere: &[&str], named: &[&str]) -> JournalEntry {
        JournalEntry::Kept {
            page: print(page),
            level: 1,
            validators: Validators { etag: Some("\"7\"".to_owned()), last_modified: None },
            content: 0xabc,
            size: 4_000,
            change,
            elsewhere: elsewhere.iter().map(|to| print(to)).collect(),
            named: named.iter().map(|to| url(to)).collect(),
        }
    }

    fn journal() -> Vec<JournalEntry> {
        let (root, page) = ("http://a.ke/", "http://a.ke/p");
        vec![
            JournalEntry::Opened { address: "9.0.0.1".parse().unwrap(), tree: "a.ke".parse().unwrap(), at: WallTime(1) },
            JournalEntry::Admitted { urls: vec![(url(root), 0, 0)] },
            visited(root, &[page], &[page], &["http://b.ke/"]),
            kept(root, Some(Change::New), &["http://b.ke/", "http://c.ke/"], &["http://c.ke/"]),
            JournalEntry::Beyond { page: print(root), urls: vec![1, 2] },
            JournalEntry::Forwarded { before: 3 },
            visited(page, &[root, page], &[], &[]),
            kept(page, Some(Change::NotModified), &["http://b.ke/"], &[]),
        ]
    }

    /// All rows, in answers that each take in so many entries.
    fn rows(of: ExportOf, at_a_time: usize) -> Vec<String> {
        let (mut all, mut from) = (Vec::new(), 0);
        let entries = journal();
        loop {
            let order = order(of, from);
            let mut answer = JournalRows::new(&order);
            let journal = &order.journals[0];
            answer.begin(journal);
            let mut next = None;
            for (number, entry) in entries.iter().enumerate().skip(from as usize) {
                let size = if number + 1 >= from as usize + at_a_time { MAX_READ } else { 1 };
                next = answer.take(journal, number as u64, size, entry.clone());
                if next.is_some() {
                    break;
                }
            }
            if next.is_none() {
                answer.end(journal);
            }
            let told = answer.answer(next.clone());
            all.extend(told.rows);
            let Some(place) = next.and_then(|next| next.within) else { return all };
            assert!(place.sequence > from, "it advances");
            from = place.sequence;
        }
    }

    #[test]
    fn visits_and_links_are_the_same_rows_however_they_are_cut() {
        for of in [ExportOf::Pages, ExportOf::PageLinks, ExportOf::HostLinks] {
            let whole = rows(of, 1_000);
            (2..9).for_each(|at_a_time| assert_eq!(rows(of, at_a_time), whole, "{of:?} {at_a_time}"));
        }
    }

    #[test]
    fn a_visit_has_what_the_rows_behind_it_say_more() {
        let pages = rows(ExportOf::Pages, 1_000);
        assert_eq!(pages.len(), 2);
        let has = |row: usize, text: &str| assert!(pages[row].contains(text), "{text}: {}", pages[row]);
        has(0, r#""url":"http://a.ke/","level":1,"fetch_time":"1970-01-01T00:00:01.000Z","fetch_status":200,"outcome":"page""#);
        has(0, r#""bytes":500,"page_bytes":500"#);
        has(0, r#""internal_links":1,"external_links":2,"links_beyond_scope":2"#);
        has(0, r#""change":"new","content":"0000000000000abc","etag":"\"7\"""#);
        has(1, r#""bytes":500,"page_bytes":4500"#);
    }

    #[test]
    fn a_visit_says_as_what_the_answer_came_and_where_it_led_if_its_journal_does() {
        let told = |outcome: VisitOutcome| {
            let order = order(ExportOf::Pages, 0);
            let (mut answer, mut entry) = (JournalRows::new(&order), visited("http://a.ke/", &[], &[], &[]));
            let JournalEntry::Visited { outcome: was, .. } = &mut entry else { unreachable!() };
            *was = outcome;
            answer.begin(&order.journals[0]);
            answer.take(&order.journals[0], 0, 1, entry);
            answer.end(&order.journals[0]);
            answer.answer(None).rows.remove(0)
        };
        let served = Served { said: PageType::Html, detected: Some(PageType::Xhtml) };
        let page = VisitOutcome::ServedPage { status: 200, no_index: false, no_follow: true, served };
        let pdf = VisitOutcome::NotHtmlAs { status: 206, content_type: "application/pdf".to_owned() };
        let untyped = VisitOutcome::NotHtmlAs { status: 200, content_type: String::new() };
        let moved = VisitOutcome::RedirectTo { status: 308, to: url("https://b.ke/x") };
        let none = r#""fetch_redirect":null,"content_mime_type":null,"content_mime_detected":null"#;
        for (outcome, head, more) in [
            (
                page,
                r#""fetch_status":200,"outcome":"page""#,
                r#""fetch_redirect":null,"content_mime_type":"text/html","content_mime_detected":"application/xhtml+xml""#,
            ),
            // What came is moved, and is no page.
            (VisitOutcome::Status(404), r#""fetch_status":404,"outcome":"status""#, r#""bytes":500,"page_bytes":0,"#),
            (
                pdf,
                r#""fetch_status":206,"outcome":"not-html""#,
                r#""fetch_redirect":null,"content_mime_type":"application/pdf","content_mime_detected":null"#,
            ),
            (untyped, r#""fetch_status":200,"outcome":"not-html""#, none),
            (
                moved,
                r#""fetch_status":308,"outcome":"redirect""#,
                r#""fetch_redirect":"https://b.ke/x","content_mime_type":null,"content_mime_detected":null"#,
            ),
            // What earlier releases wrote down is not known, and nothing is made up.
            (VisitOutcome::Page(200), r#""fetch_status":200,"outcome":"page""#, none),
            (VisitOutcome::Redirect(301), r#""fetch_status":301,"outcome":"redirect""#, none),
        ] {
            let row = told(outcome);
            assert!(row.contains(head) && row.contains(more), "{head} {more}: {row}");
        }
    }

    #[test]
    fn every_link_has_a_name_unless_it_is_out_of_scope_and_fingerprints_stay_secret() {
        let names = LinkNumbers::of(&SECRET, &"a.ke".parse().unwrap(), 2);
        let links = rows(ExportOf::PageLinks, 1_000).concat();
        for name in ["http://a.ke/", "http://a.ke/p", "http://b.ke/", "http://c.ke/"] {
            let (number, secret) = (format!("{:016x}", names.number(print(name))), format!("{:016x}", print(name).0));
            assert!(links.contains(&number) && links.contains(&format!("\"{name}\"")) && !links.contains(&secret), "{name}: {links}");
        }
        assert!(links.contains(r#""beyond":["x.com"],"beyond_urls":2"#), "{links}");
        let hosts = rows(ExportOf::HostLinks, 1_000).concat();
        assert!(hosts.contains(r#""names":["b.ke","c.ke"]"#) && !hosts.contains("http://c.ke/"), "{hosts}");
        assert!(hosts.contains(r#""internal":2,"children":"""#), "{hosts}");
    }
}
