//! Was a request made to an address at a certain time? The log is read for it from a day before to a day after.

use super::{Reader, RequestKind, RequestLine};
use nearcrawl_model::{
    requests_made::{MadeRequest, RequestsMade, RequestsQuery, Uncovered},
    time::WallTime,
};
use std::{io, ops::ControlFlow, path::Path};

/// So many requests are listed; all are counted.
const MAX_LISTED: usize = 1_000;

/// A request may end, and be written, so long after it began.
const LATEST_END: u64 = 600_000;

const DAY: u64 = 86_400_000;

/// What the log says.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The first day of the log.
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

/// What was read of the log so far.
struct Scan<'a> {
    query: &'a RequestsQuery,
    found: Found,
    /// The last line of a daemon that has not ended in good order.
    running: Option<WallTime>,
    /// Whether the last line was of a time before the end of what is looked for.
    in_time: bool,
}

impl Scan<'_> {
    fn line(&mut self, line: &RequestLine) {
        let RequestsQuery { address, from, until } = *self.query;
        let found = &mut self.found;
        match line.kind {
            // A gap is told by the first line behind it.
            RequestKind::Gap => found.lines_missing += if self.in_time { line.lines.unwrap_or(0) } else { 0 },
            RequestKind::Begin => {
                let killed = self.running.map(|last| (last.0.saturating_sub(LATEST_END), line.asked_at.0));
                found.killed |= killed.is_some_and(|(first, last)| first <= until.0 && last >= from.0);
            }
            kind if kind.is_contact() && line.address == Some(address) && (from..=until).contains(&line.asked_at) => {
                found.requests += 1;
                if found.lines.len() < MAX_LISTED {
                    found.lines.push(line.clone());
                }
            }
            _ => {}
        }
        self.in_time = line.asked_at <= until;
        self.running = (line.kind != RequestKind::End).then_some(line.asked_at);
    }
}

/// Searches the log in this directory.
///
/// # Errors
/// It cannot be read.
pub fn search(directory: &Path, query: &RequestsQuery) -> io::Result<Found> {
    let query = RequestsQuery { address: query.address.to_canonical(), ..*query };
    let begins = Reader::oldest(directory)?;
    // What came before says whether a daemon that begins had ended in good order.
    let earlier = WallTime(query.from.0.saturating_sub(DAY));
    let running = begins.filter(|begins| *begins < earlier);
    let mut scan = Scan { query: &query, found: Found { log_begins_at: begins, ..Found::default() }, running, in_time: true };
    Reader::new(directory, earlier).read(&mut |line| {
        let over = line.asked_at.0 > query.until.0.saturating_add(DAY);
        scan.line(&line);
        if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let mut found = scan.found;
    found.uncovered = match found.log_begins_at {
        None => Some(Uncovered::NoLog),
        Some(_) if found.lines_missing > 0 => Some(Uncovered::LinesMissing),
        Some(_) if found.killed => Some(Uncovered::Killed),
        Some(begins) if begins > query.from => Some(Uncovered::BeginsLater),
        Some(_) => None,
    };
    Ok(found)
}
