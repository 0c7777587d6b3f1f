//! Searches the log for requests to an address at a certain time.
//!
//! The log is read from a day before on: whether a daemon was killed about then is said by what follows.

use super::{
    Reader, RequestKind, RequestLine, files,
    reader::{Entry, covers_from},
};
use nearcrawl_model::{
    requests_made::{LATEST_END, MadeRequest, RequestsMade, RequestsQuery, Uncovered},
    time::WallTime,
};
use std::{io, ops::ControlFlow, path::Path};

/// So many requests are listed; all are counted.
const MAX_LISTED: usize = 1_000;

const DAY: u64 = 86_400_000;

/// What is known of the log that is not in its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writing {
    /// The present moment.
    pub now: WallTime,
    /// Lines of which nothing in it tells, [`super::RequestLog::unwritten`], as far as that is known.
    pub unwritten: u64,
}

/// What the log says.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Since when all its lines are there.
    pub log_begins_at: Option<WallTime>,
    /// Requests in that time.
    pub requests: u64,
    /// The first of them.
    pub lines: Vec<RequestLine>,
    /// Lines that are missing at that time.
    pub lines_missing: u64,
    /// Whether the daemon was killed about then, so that what was under way is missing.
    pub killed: bool,
    /// Why there may have been others than are found; none if the log covers that time.
    pub uncovered: Option<Uncovered>,
}

impl Found {
    /// What others are told of it: time, rule and host.
    pub fn told(self, most: usize) -> RequestsMade {
        let lines = self.lines.into_iter().take(most);
        let told = |line: RequestLine| MadeRequest { asked_at: line.asked_at, reason: line.reason, host: line.host.parse().ok() };
        RequestsMade { requests: self.requests, lines: lines.map(told).collect(), uncovered: self.uncovered }
    }
}

/// A time in which requests may have begun that have no line: from its first moment until a line comes that is not older than all before it.
/// As long as the clock shows an earlier time than it did, nobody can say how long that was.
#[derive(Clone, Copy, Debug, Default)]
struct Hole {
    from: WallTime,
    killed: bool,
    lines: u64,
}

/// What was read of the log so far.
struct Scan<'a> {
    query: &'a RequestsQuery,
    found: Found,
    /// The last line of a daemon that has not ended cleanly.
    running: Option<WallTime>,
    /// The last line, and the latest one.
    last: WallTime,
    latest: WallTime,
    hole: Option<Hole>,
}

impl Scan<'_> {
    fn line(&mut self, line: &RequestLine) {
        let RequestsQuery { address, from, until } = *self.query;
        match line.kind {
            RequestKind::Gap => self.hole(self.last, Hole { lines: line.lines.unwrap_or(1), ..Hole::default() }),
            RequestKind::Begin => {
                if let Some(last) = self.running {
                    self.hole(last, Hole { killed: true, ..Hole::default() });
                }
            }
            kind if kind.is_contact() && line.address == Some(address) && (from..=until).contains(&line.asked_at) => {
                self.found.requests += 1;
                if self.found.lines.len() < MAX_LISTED {
                    self.found.lines.push(line.clone());
                }
            }
            _ => {}
        }
        if line.asked_at >= self.latest {
            self.close(line.asked_at);
        }
        self.last = line.asked_at;
        self.latest = self.latest.max(line.asked_at);
        self.running = (line.kind != RequestKind::End).then_some(line.asked_at);
    }

    /// Requests that had begun so long before this moment, and later, may lack.
    fn hole(&mut self, since: WallTime, hole: Hole) {
        let from = WallTime(since.0.saturating_sub(LATEST_END));
        let before = self.hole.unwrap_or(Hole { from, ..Hole::default() });
        let lines = before.lines.saturating_add(hole.lines);
        self.hole = Some(Hole { from: before.from.min(from), killed: before.killed || hole.killed, lines });
    }

    fn close(&mut self, at: WallTime) {
        let Some(hole) = self.hole.take() else { return };
        if hole.from <= self.query.until && at >= self.query.from {
            self.found.killed |= hole.killed;
            self.found.lines_missing = self.found.lines_missing.saturating_add(hole.lines);
        }
    }

    /// There are no more lines.
    fn end(mut self, writing: &Writing, is_written: bool) -> Found {
        if writing.unwritten > 0 {
            self.hole(self.last, Hole { lines: writing.unwritten, ..Hole::default() });
        }
        if let Some(last) = self.running.filter(|_| !is_written) {
            self.hole(last, Hole { killed: true, ..Hole::default() });
        }
        self.close(WallTime(u64::MAX));
        let RequestsQuery { from, .. } = *self.query;
        let mut found = self.found;
        found.uncovered = match found.log_begins_at {
            None => Some(Uncovered::NoLog),
            Some(_) if found.lines_missing > 0 => Some(Uncovered::LinesMissing),
            Some(_) if found.killed => Some(Uncovered::Killed),
            Some(begins) if begins > from => Some(Uncovered::BeginsLater),
            Some(_) if self.query.known_at() > writing.now => Some(Uncovered::TooRecent),
            Some(_) => None,
        };
        found
    }
}

/// Searches the log in this directory.
///
/// # Errors
/// It cannot be read.
pub fn search(directory: &Path, query: &RequestsQuery, writing: &Writing) -> io::Result<Found> {
    let query = RequestsQuery { address: query.address.to_canonical(), ..*query };
    // Asked first: a writer that ends meanwhile says so in the log.
    let (is_written, begins) = (files::is_written(directory), covers_from(directory)?);
    let (last, latest) = (begins.unwrap_or_default(), WallTime(0));
    let mut scan =
        Scan { query: &query, found: Found { log_begins_at: begins, ..Found::default() }, running: None, last, latest, hole: None };
    // What came before says whether a daemon that begins had ended cleanly.
    let earlier = files::day_before(directory, WallTime(query.from.0.saturating_sub(DAY)))?;
    // To the end: where the clock was set back, lines of that time may come late.
    Reader::new(directory, earlier).read_all(&mut |entry| {
        match entry {
            Entry::Line(line) => scan.line(&line),
            Entry::Bad => scan.hole(scan.last, Hole { lines: 1, ..Hole::default() }),
        }
        ControlFlow::Continue(())
    })?;
    Ok(scan.end(writing, is_written))
}
