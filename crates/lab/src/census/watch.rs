//! Do totals fall while servers are visited again, members are killed and join? Several members are asked all the time.
//!
//! A total may fall by what completed runs explain: of each figure as much as all servers together have less of in this run than in the one
//! before. A process that begins anew begins a new series.

use super::reference::Run;
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::task::JoinHandle;

/// How often each is asked.
const EVERY: Duration = Duration::from_millis(200);

/// How many members are asked at once.
const MEMBERS: usize = 4;

/// The figures that are watched: all that only grow within a run.
const FIGURES: [&str; 11] = [
    "servers",
    "up",
    "pages",
    "requests",
    "bytes",
    "page_bytes",
    "external_hosts",
    "external_urls",
    "external_domains",
    "evaluated",
    "detected_failures",
];

/// A total that fell.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Fall {
    /// When, in milliseconds from the start.
    pub(crate) at_ms: u64,
    pub(crate) member: String,
    pub(crate) figure: &'static str,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Whose totals had other servers than before, and whether the answer was called exact, in words.
    pub(crate) why_text: String,
}

#[derive(Deserialize)]
struct Told {
    exact: bool,
    in_transition_text: Option<String>,
    covers: Vec<Covered>,
    summary: Sums,
}

/// A member whose totals are in an answer.
#[derive(Deserialize)]
struct Covered {
    access_point: String,
    servers: u64,
}

#[derive(Deserialize)]
struct Sums {
    total: BTreeMap<String, u64>,
}

/// What one process told so far.
#[derive(Debug, Default)]
struct Series {
    last: BTreeMap<&'static str, u64>,
    covers: BTreeMap<String, u64>,
    fallen: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Default)]
struct Books {
    /// Who runs: the process is told apart by its number.
    asked: BTreeMap<Ipv4Addr, u32>,
    series: BTreeMap<(Ipv4Addr, u32), Series>,
    budget: BTreeMap<&'static str, u64>,
    falls: Vec<Fall>,
    polls: u64,
}

impl Books {
    fn heard(&mut self, who: (Ipv4Addr, u32), told: &Told, at: Duration) {
        self.polls += 1;
        let series = self.series.entry(who).or_default();
        let short = |member: &str| member.chars().skip(member.len().saturating_sub(8)).collect::<String>();
        let covers = told.covers.iter().map(|covered| (short(&covered.access_point), covered.servers)).collect();
        let before = std::mem::replace(&mut series.covers, covers);
        let why_text = others(&before, &series.covers, told);
        for figure in FIGURES {
            let now = told.summary.total.get(figure).copied().unwrap_or(0);
            let before = series.last.insert(figure, now).unwrap_or(0);
            let budget = self.budget.get(figure).copied().unwrap_or(0);
            let fallen = series.fallen.entry(figure).or_default();
            *fallen += before.saturating_sub(now);
            if *fallen > budget && now < before {
                *fallen = budget;
                let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
                self.falls.push(Fall { at_ms, member: who.0.to_string(), figure, from: before, to: now, why_text: why_text.clone() });
            }
        }
    }
}

/// Whose totals had other servers than before, and what the answer says of itself.
fn others(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>, told: &Told) -> String {
    let number = |servers: Option<&u64>| servers.map_or("none".to_owned(), u64::to_string);
    let all: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let all = all.into_iter().filter(|member| before.get(*member) != now.get(*member));
    let changes = all.map(|member| format!("servers of {member}: {} → {}", number(before.get(member)), number(now.get(member))));
    let exact = if told.exact { "exact" } else { "in transition" }.to_owned();
    [exact].into_iter().chain(changes).chain(told.in_transition_text.clone()).collect::<Vec<_>>().join("; ")
}

/// Asks and keeps books.
#[derive(Debug)]
pub(crate) struct Watch {
    books: Arc<Mutex<Books>>,
    task: JoinHandle<()>,
}

impl Watch {
    /// Begins; nobody is asked yet.
    pub(crate) fn begin(client: reqwest::Client, port: u16, begun: Instant) -> Watch {
        let books: Arc<Mutex<Books>> = Arc::default();
        let task = tokio::spawn(ask(client, port, begun, books.clone()));
        Watch { books, task }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A daemon runs from now on, or runs anew.
    pub(crate) fn started(&self, who: Ipv4Addr) {
        let mut books = self.books();
        let number = books.series.keys().filter(|(other, _)| *other == who).count() as u32;
        books.asked.insert(who, number);
        // Also one that is never answered has a number of its own.
        books.series.entry((who, number)).or_default();
    }

    /// A daemon does not run any more.
    pub(crate) fn ended(&self, who: Ipv4Addr) {
        self.books().asked.remove(&who);
    }

    /// From now on totals may fall by so much: servers have less of it in this run than in the one before.
    pub(crate) fn allow(&self, before: Option<&Run>, run: &Run) {
        let mut budget: BTreeMap<&'static str, u64> = BTreeMap::new();
        for (host, then) in before.into_iter().flat_map(|before| &before.servers) {
            let (then, now) = (then.counts(), run.servers.get(host).map(super::reference::Expected::counts).unwrap_or_default());
            for figure in FIGURES {
                let value = |counts: &BTreeMap<&'static str, u64>| counts.get(figure).copied().unwrap_or(0);
                *budget.entry(figure).or_default() += value(&then).saturating_sub(value(&now));
            }
        }
        let mut books = self.books();
        books.series.values_mut().for_each(|series| series.fallen.clear());
        books.budget = budget;
    }

    /// Ends; the falls, and how many answers there were.
    pub(crate) fn end(&self) -> (Vec<Fall>, u64) {
        self.task.abort();
        let books = self.books();
        (books.falls.clone(), books.polls)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn ask(client: reqwest::Client, port: u16, begun: Instant, books: Arc<Mutex<Books>>) {
    let lock = || books.lock().unwrap_or_else(PoisonError::into_inner);
    let mut tick = tokio::time::interval(EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let asked: Vec<(Ipv4Addr, u32)> = lock().asked.iter().map(|(who, number)| (*who, *number)).take(MEMBERS).collect();
        let answers = asked.into_iter().map(|who| {
            let request = client.get(format!("http://{}:{port}/api/results", who.0)).send();
            async move { (who, read(request.await).await) }
        });
        for (who, told) in futures::future::join_all(answers).await {
            let mut books = lock();
            // It may have ended meanwhile, and another process answer.
            if books.asked.get(&who.0) == Some(&who.1)
                && let Some(told) = told
            {
                books.heard(who, &told, begun.elapsed());
            }
        }
    }
}

async fn read(answer: reqwest::Result<reqwest::Response>) -> Option<Told> {
    let body = answer.ok()?.bytes().await.ok()?;
    serde_json::from_slice(&body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pages: u64) -> Told {
        let covers = vec![Covered { access_point: "12D3KooWabcdefgh".to_owned(), servers: pages }];
        Told { exact: false, in_transition_text: None, covers, summary: Sums { total: [("pages".to_owned(), pages)].into() } }
    }

    #[test]
    fn a_fall_is_told_once_unless_completed_runs_explain_it() {
        let mut books = Books { budget: [("pages", 5)].into(), ..Books::default() };
        let who = (Ipv4Addr::LOCALHOST, 0);
        for pages in [10, 20, 17, 18, 16, 16, 15, 15] {
            books.heard(who, &told(pages), Duration::from_millis(pages));
        }
        let why_text = "in transition; servers of abcdefgh: 16 → 15".to_owned();
        let fall = Fall { at_ms: 15, member: "127.0.0.1".to_owned(), figure: "pages", from: 16, to: 15, why_text };
        assert_eq!((books.falls.as_slice(), books.polls), (&[fall][..], 8));
        books.heard((Ipv4Addr::LOCALHOST, 1), &told(1), Duration::ZERO);
        assert_eq!(books.falls.len(), 1, "a process that begins anew");
    }
}
