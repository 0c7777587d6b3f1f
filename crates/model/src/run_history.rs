//! Summaries of a site's runs.
//!
//! There is one small summary for each run, kept for years: the journal of each run begins with those of all runs before it.

use super::{
    crawled_by::CrawledBy,
    evaluation::EvaluationCounts,
    facts::cleaned,
    record::{RunState, ServerRecord, ServerStatus},
    time::WallTime,
};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use utoipa::ToSchema;

/// How many runs of one site are kept. Of more, runs between older ones are left out: the first one and the later half stay.
pub const MAX_RUNS: usize = 240;

/// The longest summary of a run as it is stored and copied, in bytes.
pub const MAX_PACKED: usize = 300;

/// The longest software that is kept, in bytes.
const MAX_SOFTWARE: usize = 40;

/// The longest name of a language that is kept, in bytes.
const MAX_LANGUAGE: usize = 16;

/// What one run of one site came to. A later version may have more fields, at the end only: [`PackedRun::unpack`] reads what earlier versions
/// wrote, too, as long as a zero stands for a field that they did not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RunSummary {
    /// The number of the run, from 1.
    pub run: u32,
    /// The address that the host had.
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// What the server's answers said of it, as one word.
    pub status: ServerStatus,
    /// How the run ended; `running` or `paused-by-budget` if it has not.
    pub state: RunState,
    /// When the first request was sent; none before it.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub first_visit_at: Option<WallTime>,
    /// When the last request was sent; none before the first.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_visit_at: Option<WallTime>,
    /// URLs known, whatever became of them.
    pub known: u64,
    /// HTML pages fetched.
    pub pages: u64,
    /// Size of the pages, in bytes.
    pub page_bytes: u64,
    /// Bytes of bodies over the wire in this run.
    pub bytes: u64,
    /// Requests sent, robots.txt included.
    pub requests: u64,
    /// Requests without a usable answer.
    pub failed: u64,
    /// Sum of response times, in milliseconds.
    pub busy_ms: u64,
    /// Distinct external hosts that its pages link to.
    pub external_hosts: u64,
    /// Distinct URLs of external hosts that its pages link to.
    pub external_urls: u64,
    /// Distinct registrable domains of the external hosts.
    pub external_domains: u64,
    /// The number of the run that its pages were compared with; none if there was none.
    pub compared_run: Option<u32>,
    /// Pages that that run had.
    pub pages_before: u64,
    /// Pages that were none then.
    pub new_pages: u64,
    /// Pages with other content than then.
    pub changed_pages: u64,
    /// Pages of then that are none now.
    pub gone_pages: u64,
    /// Pages that were evaluated for accessibility failures.
    pub evaluated: u64,
    /// Pages (among `evaluated`) with a detected failure.
    pub failing: u64,
    /// Failures that were detected, of all rules.
    pub detected_failures: u64,
    /// The version of the rule set; none if no page was evaluated.
    pub evaluation_rules: Option<u32>,
    /// The `Server` header, cut at 40 bytes.
    pub software: Option<String>,
    /// The language that its front page declares, cut at 16 bytes.
    pub language: Option<String>,
    /// By which rules its pages were chosen, at the end of the run; none if no page was asked for, or an earlier version recorded it.
    pub crawled_by: Option<CrawledBy>,
}

/// How many fields [`RunSummary`] has got since the first version, which wrote nothing for them.
const LATER_FIELDS: usize = 1;

impl RunSummary {
    /// What matters of a record in years to come.
    pub fn of(record: &ServerRecord) -> RunSummary {
        let changes = record.changes.unwrap_or_default();
        let evaluation = record.evaluation.as_ref();
        let language = record.facts.as_ref().and_then(|facts| facts.language.as_deref());
        RunSummary {
            run: record.run,
            address: record.address,
            status: record.status,
            state: record.state,
            first_visit_at: record.first_visit_at,
            last_visit_at: record.last_visit_at,
            known: record.known,
            pages: record.pages,
            page_bytes: record.page_bytes,
            bytes: record.bytes,
            requests: record.requests,
            failed: record.failed,
            busy_ms: record.busy_ms,
            external_hosts: record.external_hosts,
            external_urls: record.external_urls,
            external_domains: record.external_domains,
            compared_run: record.changes.map(|changes| changes.compared_run),
            pages_before: changes.pages_before,
            new_pages: changes.new,
            changed_pages: changes.changed,
            gone_pages: changes.gone,
            evaluated: evaluation.map_or(0, |sums| sums.pages),
            failing: evaluation.map_or(0, |sums| sums.failing),
            detected_failures: evaluation.map_or(0, EvaluationCounts::detected),
            evaluation_rules: record.evaluation_rules,
            software: record.software.as_deref().and_then(|software| cleaned(software, MAX_SOFTWARE)),
            language: language.and_then(|language| cleaned(language, MAX_LANGUAGE)),
            crawled_by: record.crawled_by,
        }
    }

    /// As journals have it, in at most [`MAX_PACKED`] bytes.
    fn pack(&self) -> Option<PackedRun> {
        postcard::to_stdvec(self).ok().map(PackedRun).filter(|packed| packed.0.len() <= MAX_PACKED)
    }
}

/// A [`RunSummary`] as it is stored and copied. Who cannot read it, because a later version wrote it, passes it on as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedRun(Vec<u8>);

impl PackedRun {
    /// What it says; none if this version cannot read it. What a later version adds at the end is left aside, what an earlier one did not have
    /// is none.
    pub fn unpack(&self) -> Option<RunSummary> {
        let read = |bytes: &[u8]| postcard::take_from_bytes(bytes).ok().map(|(summary, _)| summary);
        read(&self.0).or_else(|| read(&[self.0.as_slice(), &[0; LATER_FIELDS]].concat()))
    }

    /// The number of the run: every version has it first.
    fn run(&self) -> u32 {
        postcard::take_from_bytes(&self.0).map_or(0, |(run, _)| run)
    }
}

/// The runs of a site before its present one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHistory {
    /// The runs in order, at most [`MAX_RUNS`].
    runs: Vec<PackedRun>,
    /// How many were left out because there were more.
    left_out: u64,
}

impl RunHistory {
    /// Enters what a run came to, behind those before it.
    pub fn enter(&mut self, record: &ServerRecord) {
        if self.runs.last().is_some_and(|last| last.run() >= record.run) {
            return;
        }
        self.runs.extend(RunSummary::of(record).pack());
        if self.runs.len() > MAX_RUNS {
            self.runs.remove(self.densest());
            self.left_out += 1;
        }
    }

    /// Which run of the earlier half can be left out most easily: the one whose neighbours lie closest together; never the first one.
    fn densest(&self) -> usize {
        let runs: Vec<u32> = self.runs.iter().map(PackedRun::run).collect();
        let gap = |at: &usize| runs[at + 1].saturating_sub(runs[at - 1]);
        (1..=runs.len() / 2).filter(|at| at + 1 < runs.len()).min_by_key(gap).unwrap_or(0)
    }

    /// The runs that this version can read, in order.
    pub fn summaries(&self) -> impl Iterator<Item = RunSummary> {
        self.runs.iter().filter_map(PackedRun::unpack)
    }

    /// How many runs were left out because there were more than are kept.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether there was no run before.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The number of the last run; none if there was none.
    pub fn last_run(&self) -> Option<u32> {
        self.runs.last().map(PackedRun::run)
    }

    /// Whether an honest owner of this version or a later one can have written it.
    pub fn is_plausible(&self) -> bool {
        let in_order = self.runs.windows(2).all(|pair| pair[0].run() < pair[1].run());
        self.runs.len() <= MAX_RUNS
            && in_order
            && self.left_out <= u64::from(u32::MAX)
            && self.runs.iter().all(|run| run.0.len() <= MAX_PACKED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(run: u32) -> ServerRecord {
        let record = serde_json::json!({
            "host": "museum.or.ke", "address": "196.201.214.7", "tree": "museum.or.ke", "run": run, "status": "up", "state": "cut-by-depth",
            "software": "Apache/2.4.57 (Debian) OpenSSL/3.0.11 mod_fcgid/2.3.9 PHP/8.2.7", "pages": 812, "requests": 1044,
            "bytes": 31_004_112, "busy_ms": 412_345, "known": 5012, "cut_by_depth": 3900, "refused_by_robots": 12, "cut_by_script": 40,
            "cut_by_yield": 0, "failed": 3, "by_status": {"200": 1000}, "external_hosts": 214, "external_urls": 911, "external_domains": 180,
            "deepest": 3, "first_visit_at": "2026-11-25T08:00:00.000Z", "last_visit_at": "2026-11-25T13:00:00.000Z", "no_index": 0,
            "no_follow": 0, "crawl_delay_ms": null, "refused_by_crawl_delay": 0, "page_bytes": 44_123_456, "evaluation_rules": 3,
            "crawled_by": {"depth": 3, "yield_price_millionths": 4000, "max_pages_per_run": 1000},
        });
        serde_json::from_value(record).unwrap()
    }

    /// Every number and text at its longest.
    fn longest() -> RunSummary {
        let most = u64::MAX;
        RunSummary {
            run: u32::MAX,
            address: Some("2001:db8::1".parse().unwrap()),
            status: ServerStatus::RobotsUnavailable,
            state: RunState::HeldBack,
            first_visit_at: Some(WallTime(most)),
            last_visit_at: Some(WallTime(most)),
            known: most,
            pages: most,
            page_bytes: most,
            bytes: most,
            requests: most,
            failed: most,
            busy_ms: most,
            external_hosts: most,
            external_urls: most,
            external_domains: most,
            compared_run: Some(u32::MAX),
            pages_before: most,
            new_pages: most,
            changed_pages: most,
            gone_pages: most,
            evaluated: most,
            failing: most,
            detected_failures: most,
            evaluation_rules: Some(u32::MAX),
            software: Some("x".repeat(MAX_SOFTWARE)),
            language: Some("x".repeat(MAX_LANGUAGE)),
            crawled_by: Some(CrawledBy::new(u8::MAX, u32::MAX, most)),
        }
    }

    #[test]
    fn a_run_takes_about_a_hundred_bytes_and_never_more_than_three_hundred() {
        let usual = RunSummary::of(&record(12));
        let packed = usual.pack().unwrap();
        assert_eq!(packed.unpack().as_ref(), Some(&usual));
        assert!(packed.0.len() <= 120, "{} bytes", packed.0.len());
        let packed = longest().pack().expect("the longest one is kept, too");
        assert_eq!(packed.unpack(), Some(longest()));
        assert_eq!(usual.software.as_deref(), Some("Apache/2.4.57 (Debian) OpenSSL/3.0.11 mo"));
    }

    #[test]
    fn what_a_later_version_adds_is_passed_on_and_left_aside() {
        let mut packed = RunSummary::of(&record(12)).pack().unwrap();
        packed.0.extend([1, 2, 3]);
        assert_eq!(packed.unpack(), Some(RunSummary::of(&record(12))));
        let unknown = PackedRun(vec![13, 0, 99, 99]);
        let mut history = RunHistory { runs: vec![packed, unknown.clone()], left_out: 0 };
        history.enter(&record(14));
        assert_eq!(history.summaries().map(|summary| summary.run).collect::<Vec<_>>(), [12, 14]);
        assert!(history.runs[1] == unknown && history.is_plausible());
    }

    /// What the version before this one stored of a run: nothing behind the language.
    #[test]
    fn a_run_of_the_version_before_is_read_and_its_rules_are_not_known() {
        let known = RunSummary::of(&record(12));
        let without = RunSummary { crawled_by: None, ..known.clone() };
        let mut packed = without.pack().unwrap();
        assert_eq!(packed.0.pop(), Some(0));
        assert_eq!((packed.unpack(), packed.run()), (Some(without), 12));
        assert_eq!(known.pack().unwrap().unpack().unwrap().crawled_by, Some(CrawledBy::new(3, 4_000, 1_000)));
        packed.0.pop();
        assert_eq!(packed.unpack().map(|summary| summary.language), None, "half a record is none");
    }

    #[test]
    fn of_a_thousand_runs_the_first_and_the_latest_are_kept_whole_and_the_others_evenly() {
        let mut history = RunHistory::default();
        (1..=1000).for_each(|run| history.enter(&record(run)));
        history.enter(&record(1000));
        let runs: Vec<u32> = history.summaries().map(|summary| summary.run).collect();
        assert_eq!((runs.len(), runs[0], history.last_run(), history.left_out()), (MAX_RUNS, 1, Some(1000), 760));
        assert_eq!(runs[MAX_RUNS - 100..].to_vec(), (901..=1000).collect::<Vec<_>>());
        let gaps: Vec<u32> = runs.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| *gap <= 16), "{gaps:?}");
        assert!(history.is_plausible());
        let bytes = postcard::to_stdvec(&history).unwrap().len();
        assert!(bytes <= MAX_RUNS * MAX_PACKED, "{bytes}");
        history.runs.swap(3, 4);
        assert!(!history.is_plausible());
    }
}
