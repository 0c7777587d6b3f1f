//! Rates of this daemon and totals of the swarm by the minute, for the last 24 hours, for the page's charts.
//!
//! A rate is the growth of a counter of this process by the time between two looks at it, so that neither a restart, where counters begin
//! anew, nor a sleeping machine makes a spike: what was not looked at is a gap. Totals are taken only when they are consistent: between a
//! restart or a take-over and the next consistent answer there is a gap, too, and not a fall and a rise.

use crate::node::{
    clock,
    query::{Query, QueryHandle},
};
use nearcrawl_model::{
    summary::SwarmResults,
    time::{Millis, Moment, Now, WallTime},
    view::{StatusView, WorkView},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use utoipa::ToSchema;

/// The file's name, in the state directory.
const FILE: &str = "history";

/// The version of what is in it; another one is not read.
const VERSION: u8 = 1;

/// A row is about so long.
const EVERY: Millis = 60_000;

/// Rows that are kept: 24 hours.
const MAX_ROWS: u64 = 24 * 60;

/// How often the counters are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Looks further apart than this say nothing about the time between: the machine slept, or the daemon did not answer.
const APART: Millis = 60_000;

/// After so many looks the file is written anew.
const WRITE_AFTER: u32 = 20;

/// A larger file is not read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// What a daemon did and the swarm knew, by the minute. A value is null where nothing was looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryView {
    /// When the first row began; none if there is no row yet.
    #[schema(value_type = Option<String>)]
    pub from_at: Option<WallTime>,
    /// The length of a row, in milliseconds.
    pub every_ms: Millis,
    /// Pages a minute that this access point fetched.
    pub pages_per_minute: Vec<Option<f64>>,
    /// Requests a minute that it sent.
    pub requests_per_minute: Vec<Option<f64>>,
    /// Bytes of bodies a minute over the wire.
    pub bytes_per_minute: Vec<Option<f64>>,
    /// Servers in the swarm's totals.
    pub servers: Vec<Option<u64>>,
    /// Pages in them.
    pub pages: Vec<Option<u64>>,
    /// Size of these pages, in bytes.
    pub page_bytes: Vec<Option<u64>>,
}

/// What was seen of one minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    pages: u64,
    requests: u64,
    bytes: u64,
    /// For how much of it.
    seen: Millis,
    /// Servers, pages and their size, if they were consistent.
    totals: Option<(u64, u64, u64)>,
}

impl Row {
    fn per_minute(&self, count: u64) -> Option<f64> {
        (self.seen > 0).then(|| (count as f64 * EVERY as f64 / self.seen as f64 * 10.0).round() / 10.0)
    }
}

/// The rows by their number since 1970, and the last look.
#[derive(Debug, Default)]
struct Rows {
    rows: BTreeMap<u64, Row>,
    last: Option<(Moment, WorkView)>,
}

impl Rows {
    /// The counters are so by now, and the totals, if these are consistent.
    fn look(&mut self, now: Now, work: WorkView, totals: Option<(u64, u64, u64)>) {
        let at = now.wall.0 / EVERY;
        // A clock that was ahead has left rows of times that have not come yet.
        self.rows.split_off(&(at + 1));
        self.rows = self.rows.split_off(&at.saturating_sub(MAX_ROWS - 1));
        let row = self.rows.entry(at).or_default();
        if let Some((moment, before)) = self.last.replace((now.moment, work)) {
            let apart = now.moment.0.saturating_sub(moment.0);
            if apart <= APART {
                row.pages += work.pages.saturating_sub(before.pages);
                row.requests += work.requests.saturating_sub(before.requests);
                row.bytes += work.bytes.saturating_sub(before.bytes);
                row.seen += apart;
            }
        }
        row.totals = totals.or(row.totals);
    }

    fn view(&self) -> HistoryView {
        let Some(((first, _), (last, _))) = self.rows.first_key_value().zip(self.rows.last_key_value()) else {
            return HistoryView { every_ms: EVERY, ..HistoryView::default() };
        };
        let rows: Vec<Option<&Row>> = (*first..=*last).map(|at| self.rows.get(&at)).collect();
        let rate = |count: fn(&Row) -> u64| rows.iter().map(|row| row.and_then(|row| row.per_minute(count(row)))).collect();
        let total = |part: fn((u64, u64, u64)) -> u64| rows.iter().map(|row| row.and_then(|row| row.totals).map(part)).collect();
        HistoryView {
            from_at: Some(WallTime(first * EVERY)),
            every_ms: EVERY,
            pages_per_minute: rate(|row| row.pages),
            requests_per_minute: rate(|row| row.requests),
            bytes_per_minute: rate(|row| row.bytes),
            servers: total(|(servers, ..)| servers),
            pages: total(|(_, pages, _)| pages),
            page_bytes: total(|(.., bytes)| bytes),
        }
    }
}

/// Totals are drawn if they are the same at every member, or the last that were.
fn consistent(results: &SwarmResults) -> Option<(u64, u64, u64)> {
    let total = &results.summary.total;
    (results.exact || results.consistent_age_ms.is_some()).then_some((total.servers, total.pages, total.page_bytes))
}

/// The rows, shared by who looks and who asks; kept in a file over a restart.
#[derive(Clone, Debug, Default)]
pub struct History {
    rows: Arc<Mutex<Rows>>,
    file: Option<PathBuf>,
}

impl History {
    /// With what was kept in this directory. What cannot be read is left out: there is a gap then.
    pub fn begin(directory: &Path) -> History {
        let file = directory.join(FILE);
        let rows = read(&file).unwrap_or_else(|why| {
            tracing::warn!("the page's charts begin anew: {} cannot be read: {why}", file.display());
            BTreeMap::new()
        });
        History { rows: Arc::new(Mutex::new(Rows { rows, last: None })), file: Some(file) }
    }

    /// Looks at the counters until it is to stop, and writes the file now and then and at the end.
    pub async fn watch(self, queries: QueryHandle, mut stop: watch::Receiver<bool>) {
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looks = 0;
        loop {
            tokio::select! {
                () = async { drop(stop.wait_for(|stop| *stop).await) } => break,
                _ = look.tick() => self.look(&queries).await,
            }
            looks += 1;
            if looks % WRITE_AFTER == 0 {
                self.write().await;
            }
        }
        self.write().await;
    }

    /// The rows.
    pub(super) fn view(&self) -> HistoryView {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).view()
    }

    async fn look(&self, queries: &QueryHandle) {
        // Without an answer there is a gap.
        let Ok(StatusView { work, .. }) = queries.ask(Query::Status).await else { return };
        let Ok(results) = queries.ask(Query::Results).await else { return };
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).look(clock::now(), work, consistent(&results));
    }

    async fn write(&self) {
        let Some(file) = self.file.clone() else { return };
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).rows.clone();
        let written = tokio::task::spawn_blocking(move || write(&file, &rows)).await;
        if let Ok(Err(why)) = written {
            tracing::warn!("the page's charts are not kept over a restart: {why}");
        }
    }
}

fn write(file: &Path, rows: &BTreeMap<u64, Row>) -> io::Result<()> {
    let aside = file.with_extension("new");
    fs::write(&aside, postcard::to_allocvec(&(VERSION, rows)).map_err(io::Error::other)?)?;
    fs::rename(aside, file)
}

fn read(file: &Path) -> io::Result<BTreeMap<u64, Row>> {
    let bytes = match fs::metadata(file) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Ok(about) if about.len() > MAX_FILE => return Err(io::Error::other("it is too long")),
        _ => fs::read(file)?,
    };
    let (version, rows): (u8, BTreeMap<u64, Row>) = postcard::from_bytes(&bytes).map_err(io::Error::other)?;
    if version != VERSION || rows.len() as u64 > MAX_ROWS {
        return Err(io::Error::other("another version of nearcrawl wrote it"));
    }
    if !is_sound(&rows) {
        return Err(io::Error::other("it is damaged"));
    }
    Ok(rows)
}

/// Whether a daemon may have seen these rows. There is no checksum, and what one flipped bit makes of them would end the process.
fn is_sound(rows: &BTreeMap<u64, Row>) -> bool {
    let of_one_day = rows.keys().next().zip(rows.keys().next_back()).is_none_or(|(first, last)| last - first < MAX_ROWS);
    let in_time = rows.keys().all(|at| *at < u64::MAX / EVERY);
    let small = |row: &Row| [row.pages, row.requests, row.bytes, row.seen].into_iter().all(|count| count < 1 << 53);
    of_one_day && in_time && rows.values().all(small)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many seconds after the machine started, at ten minutes past midnight of some day.
    fn at(second: u64) -> Now {
        Now { moment: Moment(second * 1000), wall: WallTime((20_000 * 24 * 60 + 10) * EVERY + second * 1000) }
    }

    fn work(pages: u64) -> WorkView {
        WorkView { pages, requests: pages * 2, bytes: pages * 1000, ..WorkView::default() }
    }

    #[test]
    fn rates_are_of_a_minute_however_long_was_looked() {
        let mut rows = Rows::default();
        for second in (0..=75).step_by(15) {
            rows.look(at(second), work(second), Some((1, second, 7)));
        }
        let view = rows.view();
        assert_eq!(view.pages_per_minute, [Some(60.0), Some(60.0)], "45 s of the first minute, and 30 s that end in the second");
        assert_eq!((view.requests_per_minute[0], view.bytes_per_minute[0]), (Some(120.0), Some(60_000.0)));
        assert_eq!((view.pages, view.servers), (vec![Some(45), Some(75)], vec![Some(1), Some(1)]));
    }

    #[test]
    fn neither_a_restart_nor_a_sleep_nor_totals_in_transition_make_a_spike() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(FILE);
        let mut rows = Rows::default();
        rows.look(at(0), work(1_000), Some((5, 1_000, 1)));
        rows.look(at(30), work(1_010), Some((5, 1_010, 1)));
        write(&file, &rows.rows).unwrap();

        // Five minutes later, with counters that begin anew and totals that come bit by bit.
        let mut rows = Rows { rows: read(&file).unwrap(), last: None };
        rows.look(at(330), work(0), None);
        rows.look(at(345), work(5), None);
        // Then it sleeps for an hour: what it did meanwhile is none of a minute.
        rows.look(at(3945), work(5_000), Some((5, 1_015, 1)));
        rows.look(at(3960), work(5_005), Some((5, 1_020, 1)));
        let view = rows.view();
        let known: Vec<_> = view.pages_per_minute.iter().enumerate().filter_map(|(minute, rate)| Some((minute, (*rate)?))).collect();
        assert_eq!(known, [(0, 20.0), (5, 20.0), (66, 20.0)], "gaps between");
        let totals: Vec<_> = view.pages.iter().flatten().collect();
        assert_eq!(totals, [&1_010, &1_015, &1_020], "no fall and no rise");
    }

    #[test]
    fn a_day_is_kept_and_no_more_and_a_clock_that_was_ahead_leaves_nothing() {
        let mut rows = Rows::default();
        for minute in 0..2 * MAX_ROWS {
            rows.look(at(minute * 60), work(minute), None);
        }
        assert_eq!((rows.rows.len() as u64, rows.view().pages.len() as u64), (MAX_ROWS, MAX_ROWS));
        rows.look(at(60), work(0), Some((1, 1, 1)));
        assert_eq!(rows.view().servers, [Some(1)], "the rest is in the future");
    }

    #[test]
    fn a_damaged_file_is_a_gap_and_not_an_end() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FILE), b"\xff\xff\xff\xff no rows").unwrap();
        assert!(read(&directory.path().join(FILE)).is_err());
        let history = History::begin(directory.path());
        assert_eq!(history.rows.lock().unwrap().view(), HistoryView { every_ms: EVERY, ..HistoryView::default() });
    }

    #[test]
    fn a_flipped_bit_in_a_minute_or_a_count_is_a_gap_too() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(FILE);
        let row = Row { pages: 3, seen: 1_000, ..Row::default() };
        write(&file, &BTreeMap::from([(7, row), (8, row)])).unwrap();
        assert_eq!(read(&file).unwrap().len(), 2);
        for damaged in [BTreeMap::from([(7, row), (7 | 1 << 40, row)]), BTreeMap::from([(7, Row { pages: 3 | 1 << 63, ..row })])] {
            write(&file, &damaged).unwrap();
            assert!(read(&file).is_err());
        }
    }
}
