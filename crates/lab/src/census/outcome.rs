//! Outcome of a census: for programs, and as a table with a verdict.

use super::{compare::Wrong, watch::Fall};
use nearcrawl_model::view::counted;
use serde::Serialize;
use std::fmt::Write;

/// How many wrong cells of a report, and how many requests or falls, are named.
const NAMED: usize = 12;

/// One report against the reference.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// How it is asked for.
    pub(crate) name: String,
    /// Rows compared, in all runs together.
    pub(crate) rows: u64,
    /// Cells, or whole rows, that are not as they must be.
    pub(crate) wrong: u64,
    /// The first of these.
    pub(crate) first_wrong: Vec<WrongIn>,
}

/// A wrong cell, and after which run it was.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WrongIn {
    /// The run (from 1).
    pub(crate) run: u32,
    #[serde(flatten)]
    pub(crate) wrong: Wrong,
}

impl Report {
    /// Nothing was compared yet.
    pub(crate) fn new(name: &str) -> Report {
        Report { name: name.to_owned(), rows: 0, wrong: 0, first_wrong: Vec::new() }
    }

    /// Enters what a comparison after a run came to.
    pub(crate) fn enter(&mut self, run: u32, rows: u64, wrong: Vec<Wrong>) {
        self.rows += rows;
        self.wrong += wrong.len() as u64;
        let room = NAMED.saturating_sub(self.first_wrong.len());
        self.first_wrong.extend(wrong.into_iter().take(room).map(|wrong| WrongIn { run, wrong }));
    }
}

/// The verdict on everything.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub(crate) seed: u64,
    pub(crate) hosts: usize,
    pub(crate) daemons: usize,
    pub(crate) runs: u32,
    /// Daemons that were killed, that came back, and that joined late.
    pub(crate) killed: usize,
    pub(crate) restarted: usize,
    pub(crate) joined: usize,
    /// Subnets that were handed over by order, in the middle of runs.
    pub(crate) moved: usize,
    /// How long it took, in milliseconds.
    pub(crate) took_ms: u64,
    pub(crate) reports: Vec<Report>,
    pub(crate) falls: u64,
    pub(crate) extra_requests: u64,
    pub(crate) missing_pages: u64,
    /// Requests, probes apart, and those made again because who had made them ended before they were recorded.
    pub(crate) requests: u64,
    pub(crate) probes: u64,
    pub(crate) requests_again: u64,
    /// How many answers the falls were looked for in.
    pub(crate) polls: u64,
    pub(crate) first_falls: Vec<Fall>,
    pub(crate) first_extra: Vec<String>,
    pub(crate) first_missing: Vec<String>,
}

/// The first of some.
pub(crate) fn first<T: Clone>(all: &[T]) -> Vec<T> {
    all.iter().take(NAMED).cloned().collect()
}

impl Outcome {
    /// Whether everything is as it must be.
    pub fn holds(&self) -> bool {
        self.reports.iter().all(|report| report.wrong == 0 && report.rows > 0)
            && self.falls == 0
            && self.extra_requests == 0
            && self.missing_pages == 0
    }

    /// As JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// As a table.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:30} {:>9} {:>7}", "report", "rows", "wrong");
        for report in &self.reports {
            let mark = if report.wrong > 0 || report.rows == 0 { "  WRONG" } else { "" };
            let _ = writeln!(text, "{:30} {:>9} {:>7}{mark}", report.name, report.rows, report.wrong);
        }
        let _ = writeln!(text, "\n{:30} {:>9} {:>7}", "what else", "of", "wrong");
        for (name, of, wrong) in [
            ("falls of totals", self.polls, self.falls),
            ("requests that nothing explains", self.requests, self.extra_requests),
            ("pages not fetched", self.requests, self.missing_pages),
        ] {
            let mark = if wrong > 0 { "  WRONG" } else { "" };
            let _ = writeln!(text, "{name:30} {of:>9} {wrong:>7}{mark}");
        }
        for WrongIn { run, wrong } in self.reports.iter().flat_map(|report| &report.first_wrong) {
            let Wrong { member, cell, expected, found } = wrong;
            let _ = writeln!(text, "\nrun {run}, {member}: {cell}\n  expected {expected}\n  found    {found}");
        }
        for Fall { at_ms, member, form, figure, from, to, why_text } in &self.first_falls {
            let at = *at_ms as f64 / 1_000.0;
            let _ = writeln!(text, "\n{at:.1} s, {member} ({form:?}): {figure} fell from {from} to {to} ({why_text})");
        }
        self.first_extra.iter().for_each(|request| text.push_str(&format!("\nnothing explains: {request}\n")));
        self.first_missing.iter().for_each(|page| text.push_str(&format!("\nnot fetched: {page}\n")));
        let _ = writeln!(text, "\n{}", self.verdict());
        text
    }

    fn verdict(&self) -> String {
        let rows: u64 = self.reports.iter().map(|report| report.rows).sum();
        let wrong: u64 = self.reports.iter().map(|report| report.wrong).sum();
        let what = format!("{} of {} compared", counted(rows, "row"), counted(self.reports.len() as u64, "report"));
        if self.holds() {
            return format!("All is as it must be: {what}.");
        }
        let silent = self.reports.iter().filter(|report| report.rows == 0).count() as u64;
        format!(
            "NOT as it must be: {what}, {} wrong, {} without rows; {}, {} too many, {} not fetched.",
            counted(wrong, "cell"),
            counted(silent, "report"),
            counted(self.falls, "fall"),
            counted(self.extra_requests, "request"),
            counted(self.missing_pages, "page"),
        )
    }
}
