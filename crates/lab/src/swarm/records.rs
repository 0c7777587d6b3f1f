//! What a scenario is judged by, written down while it is played: which pages were asked for and recorded, bytes sent, the longest step.

use nearcrawl_model::{
    access_point::AccessPoint,
    journal::{JournalEntry, JournalKey, JournalRow, VisitOutcome},
    packed_stream::Packer,
    time::{Millis, Moment},
    url::{Host, PageUrl},
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// A page in one run.
#[derive(Clone, Debug, Default)]
struct Page {
    /// Whether the answer is an HTML page.
    is_page: bool,
    /// When it was asked for last.
    asked: Moment,
    /// Whether an answer was written down.
    is_written: bool,
    /// Since when it is recorded.
    recorded: Option<Moment>,
}

/// One run of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// When its first row was stored or its first page asked for.
    pub(crate) begun: Moment,
    /// The run that this one repeats: it began before it was due. Its pages count as those of the other.
    repeats: Option<u32>,
    /// HTML pages that were asked for.
    pub(crate) asked: u64,
    /// HTML pages that are recorded.
    pub(crate) recorded: u64,
}

/// A page that was asked for although it was recorded in the same run.
#[derive(Clone, Debug)]
pub(crate) struct Repeated {
    pub(crate) at: Moment,
    pub(crate) what: String,
}

/// After so long a page whose answer was written down should be recorded, in milliseconds.
const RECORDED_AFTER: Millis = 120_000;

/// A page in one run of its host.
type PageKey = (Host, u32, PageUrl);

/// The stream on which one process asks another short questions, as long as both live and nothing that is sent on it is lost.
#[derive(Default)]
pub(super) struct Stream {
    pub(super) lives: (u64, u64),
    /// What was said, and when something was said last.
    pub(super) questions: (Packer, Option<Moment>),
    pub(super) answers: (Packer, Option<Moment>),
}

/// The streams of those who ask and those who are asked.
type Streams = BTreeMap<(AccessPoint, AccessPoint), Stream>;

/// The records of one scenario. A page counts as recorded when its owner counts it as recorded, whatever is on disks: from then on the
/// swarm has promised it.
#[derive(Default)]
pub(crate) struct Records {
    pages: BTreeMap<PageKey, Page>,
    /// Pages in the rows that an owner wrote into a journal and did not count as recorded yet.
    written: BTreeMap<AccessPoint, BTreeMap<JournalKey, BTreeMap<u64, PageKey>>>,
    runs: BTreeMap<Host, BTreeMap<u32, Run>>,
    /// Pages asked for again: how often, and the first.
    pub(crate) repeated: (u64, Option<Repeated>),
    /// Bytes of all messages, as their senders encoded them, once for each receiver.
    pub(crate) bytes: u64,
    /// The same by what they were about.
    pub(crate) bytes_by_kind: BTreeMap<&'static str, u64>,
    /// What was said on streams, as far as that makes what follows shorter.
    pub(super) streams: Streams,
    /// The longest time that a crawler took for one event.
    pub(crate) longest_step: Duration,
}

impl Records {
    /// Does a step and times it.
    pub(super) fn timed(&mut self, step: impl FnOnce()) {
        let begin = Instant::now();
        step();
        self.longest_step = self.longest_step.max(begin.elapsed());
    }

    /// The number of the run that this one counts as: itself, or the one that it repeats because it was not due yet.
    pub(crate) fn run(&mut self, host: &Host, run: u32, now: Moment, due: Millis) -> u32 {
        let runs = self.runs.entry(host.clone()).or_default();
        if let Some(known) = runs.get(&run) {
            return known.repeats.unwrap_or(run);
        }
        let before = runs.range(..run).next_back().map(|(number, before)| (before.repeats.unwrap_or(*number), before.begun));
        let repeats = before.filter(|(_, begun)| now < begun.after(due)).map(|(number, _)| number);
        runs.insert(run, Run { begun: now, repeats, asked: 0, recorded: 0 });
        repeats.unwrap_or(run)
    }

    /// The number of the run that this one counts as, if it is known.
    pub(crate) fn counts_as(&self, host: &Host, run: u32) -> u32 {
        self.runs.get(host).and_then(|runs| runs.get(&run)?.repeats).unwrap_or(run)
    }

    /// The runs of each host that count, in the order of their numbers.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&Host, Vec<(u32, Run)>)> {
        let counts = |(number, run): (&u32, &Run)| run.repeats.is_none().then_some((*number, *run));
        self.runs.iter().map(move |(host, runs)| (host, runs.iter().filter_map(counts).collect()))
    }

    /// A page is asked for.
    pub(crate) fn asked(&mut self, now: Moment, by: usize, url: &PageUrl, run: u32, is_page: bool) {
        let host = url.host();
        let page = self.pages.entry((host.clone(), run, url.clone())).or_insert_with(|| {
            if let Some(run) = self.runs.get_mut(&host).and_then(|runs| runs.get_mut(&run)) {
                run.asked += u64::from(is_page);
            }
            Page { is_page, ..Page::default() }
        });
        page.asked = now;
        if page.recorded.is_some() {
            self.repeated.0 += 1;
            let what = || format!("member {by} asked for {url} again, which is recorded in run {run}");
            self.repeated.1.get_or_insert_with(|| Repeated { at: now, what: what() });
        }
    }

    /// A row is durable on somebody's disk, who wrote it if it is its `own`.
    pub(super) fn stored(&mut self, now: Moment, who: AccessPoint, row: &JournalRow, own: bool, due: Millis) {
        let host = &row.key.host;
        self.replaced(who, row);
        match postcard::from_bytes(&row.entry) {
            Ok(JournalEntry::Opened { .. }) => drop(self.run(host, row.key.run, now, due)),
            Ok(JournalEntry::Visited { url, outcome, .. }) if !matches!(outcome, VisitOutcome::Failed(_)) => {
                let run = self.counts_as(host, row.key.run);
                // What nobody asked for is no visit, whoever says so.
                let key = (host.clone(), run, url);
                let page = self.pages.get_mut(&key).filter(|page| page.recorded.is_none());
                let Some(page) = page else { return };
                page.is_written = true;
                if own {
                    self.written.entry(who).or_default().entry(row.key.clone()).or_default().insert(row.sequence, key);
                }
            }
            _ => {}
        }
    }

    /// A process stored this row, as owner or as replica of the next one. One of its own that differed from it is not there any more, nor is
    /// what was behind that.
    fn replaced(&mut self, who: AccessPoint, row: &JournalRow) {
        let Some(written) = self.written.get_mut(&who).and_then(|written| written.get_mut(&row.key)) else { return };
        let Some((_, _, before)) = written.get(&row.sequence) else { return };
        let same = matches!(postcard::from_bytes(&row.entry), Ok(JournalEntry::Visited { url, .. }) if url == *before);
        if !same {
            written.split_off(&row.sequence);
        }
    }

    fn is_recorded(&mut self, now: Moment, key: &PageKey) {
        let Some(page) = self.pages.get_mut(key).filter(|page| page.recorded.is_none()) else { return };
        page.recorded = Some(now);
        if let Some(run) = self.runs.get_mut(&key.0).and_then(|runs| runs.get_mut(&key.1)) {
            run.recorded += u64::from(page.is_page);
        }
    }

    /// A process counts the rows of each of its journals before this one as recorded.
    pub(super) fn counted(&mut self, now: Moment, who: AccessPoint, before: impl Fn(&JournalKey) -> u64) {
        let mut recorded = Vec::new();
        for (key, written) in self.written.get_mut(&who).into_iter().flatten() {
            if !written.is_empty() {
                let others = written.split_off(&before(key));
                recorded.extend(std::mem::replace(written, others).into_values());
            }
        }
        recorded.iter().for_each(|key| self.is_recorded(now, key));
    }

    /// The share of pages that were written down long ago and are not recorded, of those that were.
    pub(crate) fn share_not_recorded(&self, now: Moment) -> f64 {
        let written = |page: &&Page| page.is_page && page.is_written && now.since(page.asked) >= RECORDED_AFTER;
        let (mut all, mut missing) = (0, 0);
        for page in self.pages.values().filter(written) {
            all += 1;
            missing += usize::from(page.recorded.is_none());
        }
        missing as f64 / (all.max(1)) as f64
    }

    /// A page is recorded.
    #[cfg(test)]
    pub(crate) fn record(&mut self, url: &PageUrl, run: u32) {
        self.pages.get_mut(&(url.host(), run, url.clone())).unwrap().recorded = Some(Moment(0));
    }

    /// A disk is lost: what only it had is not there.
    pub(super) fn forget_copies(&mut self, of: AccessPoint) {
        self.written.remove(&of);
    }

    /// All recorded pages, in the order of hosts and runs, with the moment at which they were.
    pub(crate) fn all_recorded(&self) -> impl Iterator<Item = (&Host, u32, &PageUrl, Moment)> {
        self.pages.iter().filter_map(|((host, run, url), page)| Some((host, *run, url, page.recorded?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::time::WallTime;

    fn visit(url: &PageUrl) -> JournalEntry {
        JournalEntry::Visited {
            url: url.clone(),
            level: 0,
            at: WallTime(1),
            outcome: VisitOutcome::Page(200),
            took: 1,
            first_byte_us: None,
            bytes: 1,
            software: None,
            children: Vec::new(),
            found: Vec::new(),
            outgoing: Vec::new(),
            beyond_scope: Vec::new(),
            rest: None,
        }
    }

    #[test]
    fn a_row_that_an_owner_replaced_by_anothers_journal_does_not_count_as_recorded() {
        [true, false].into_iter().for_each(replaced_as_owner_or_as_replica);
    }

    fn replaced_as_owner_or_as_replica(as_owner: bool) {
        let (mut records, owner) = (Records::default(), AccessPoint([1; 32]));
        let key = JournalKey { subnet: "20.0.0.0/24".parse().unwrap(), host: "a.test".parse().unwrap(), run: 1 };
        let pages = ["http://a.test/1", "http://a.test/2", "http://a.test/3"].map(|url| PageUrl::parse(url).unwrap());
        let store = |records: &mut Records, own: bool, sequence, entry: &JournalEntry| {
            let entry = postcard::to_stdvec(entry).unwrap();
            records.stored(Moment(0), owner, &JournalRow { key: key.clone(), sequence, entry }, own, 0);
        };
        for (sequence, page) in (4..).zip(&pages) {
            records.asked(Moment(0), 0, page, 1, true);
            store(&mut records, true, sequence, &visit(page));
        }
        // What it had copied to nobody when its lease ended: another one went on from row 5, and it takes that one's journal over.
        store(&mut records, as_owner, 4, &visit(&pages[0]));
        store(&mut records, as_owner, 5, &JournalEntry::TakenOver { epoch: 2 });
        store(&mut records, true, 6, &JournalEntry::TakenOver { epoch: 3 });
        records.counted(Moment(1), owner, |_| 7);
        let recorded: Vec<_> = records.all_recorded().map(|(_, _, url, _)| url.clone()).collect();
        assert_eq!(recorded, pages[..1]);
    }
}
