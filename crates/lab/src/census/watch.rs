//! Watches that totals do not fall while servers are visited again, and members are stopped, killed and join.
//!
//! Several members are asked all the time, in each form in which totals are told: JSON, the page's data, text and CSV.
//!
//! A total may fall by what completed runs explain, and by nothing else: of each figure as much as a server has less of in this run than in
//! the one before, from the moment on at which all that is asked of it was asked. When every member tells the totals of the run that is
//! over. What a member told before it was stopped or killed is held against what it tells when it is there again.

use super::{
    reference::{Asked, Counts, Expected, Run, sums},
    told::{self, FIGURES, Form, Told},
};
use crate::{demo::daemons::Common, web::server::Log};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::task::JoinHandle;

/// How often each is asked for JSON, and, when it has answered, one of them in another form.
const EVERY: Duration = Duration::from_millis(200);

/// How many members are asked at once.
const MEMBERS: usize = 4;

/// A total that fell.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Fall {
    /// When, in milliseconds from the start.
    pub(crate) at_ms: u64,
    pub(crate) member: String,
    pub(crate) form: Form,
    pub(crate) figure: &'static str,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Whose totals had other servers than before, what the answer says of itself, and whether the member was away meanwhile, in words.
    pub(crate) why_text: String,
}

/// What one member told so far in one form.
#[derive(Debug, Default)]
struct Series {
    last: Counts,
    covers: BTreeMap<String, u64>,
    /// By how much it fell in this run.
    fallen: Counts,
    was_away: bool,
}

/// A server whose run explains falls when it is over.
#[derive(Debug)]
struct Pending {
    /// What is asked of it in this run.
    asked: BTreeSet<Asked>,
    /// What it has less of than before.
    less: Counts,
}

#[derive(Debug, Default)]
struct Books {
    /// Who runs.
    running: BTreeSet<Ipv4Addr>,
    series: BTreeMap<(Ipv4Addr, Form), Series>,
    /// Servers whose runs are not known to be over, and where in the servers' log this run began.
    pending: Vec<Pending>,
    since: usize,
    /// What the runs explain that are over.
    explained: Counts,
    /// When runs began or ended, or members came or went: what was asked for before is not held against anything.
    changed: Option<Instant>,
    falls: Vec<Fall>,
    polls: u64,
}

/// By how much less of each figure there is.
fn less(then: &Expected, now: Option<&Expected>) -> Counts {
    let (then, now) = (then.counts(), now.map(Expected::counts).unwrap_or_default());
    let value = |counts: &Counts, figure| counts.get(figure).copied().unwrap_or(0);
    FIGURES.into_iter().map(|figure| (figure, value(&then, figure).saturating_sub(value(&now, figure)))).collect()
}

impl Books {
    fn explained(&self, figure: &str) -> u64 {
        self.explained.get(figure).copied().unwrap_or(0)
    }

    /// Looks whose runs are over: all that is asked of them has been asked.
    fn look_for_ends(&mut self, log: &Log) {
        let requests = log.since(self.since).into_iter().filter(|request| request.method == "GET");
        let seen: BTreeSet<Asked> = requests.map(|request| (request.host, request.path)).collect();
        for Pending { less, .. } in self.pending.extract_if(.., |pending| pending.asked.is_subset(&seen)) {
            less.into_iter().for_each(|(figure, less)| *self.explained.entry(figure).or_default() += less);
        }
    }

    /// A member told its totals.
    fn heard(&mut self, who: (Ipv4Addr, Form), told: &Told, at: Duration, log: &Log) {
        self.polls += 1;
        let mut series = self.series.remove(&who).unwrap_or_default();
        let covers = std::mem::replace(&mut series.covers, told.covers.clone());
        let was_away = std::mem::take(&mut series.was_away);
        for (figure, now) in &told.figures {
            let before = series.last.insert(figure, *now).unwrap_or(0);
            let fallen = series.fallen.entry(figure).or_default();
            *fallen += before.saturating_sub(*now);
            if *now < before && *fallen > self.explained(figure) {
                self.look_for_ends(log);
            }
            if *now < before && *fallen > self.explained(figure) {
                *fallen = self.explained(figure);
                let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
                let away = was_away.then(|| "it was away".to_owned());
                let why_text =
                    [told.note.clone()].into_iter().chain(others(&covers, &told.covers)).chain(away).collect::<Vec<_>>().join("; ");
                self.falls.push(Fall { at_ms, member: who.0.to_string(), form: who.1, figure, from: before, to: *now, why_text });
            }
        }
        self.series.insert(who, series);
    }
}

/// Whose totals had other servers than before.
fn others(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> Vec<String> {
    let number = |servers: Option<&u64>| servers.map_or("none".to_owned(), u64::to_string);
    let all: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let all = all.into_iter().filter(|member| before.get(*member) != now.get(*member));
    all.map(|member| format!("servers of {member}: {} → {}", number(before.get(member)), number(now.get(member)))).collect()
}

/// What the tasks that ask have in common.
#[derive(Clone, Debug)]
struct Asking {
    books: Arc<Mutex<Books>>,
    client: reqwest::Client,
    common: Common,
    log: Arc<Log>,
    begun: Instant,
}

impl Asking {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, who: Ipv4Addr, form: Form) {
        let asked_at = Instant::now();
        let Some(told) = told::ask(&self.client, &self.common, who, form).await else { return };
        let mut books = self.books();
        if books.running.contains(&who) && books.changed.is_none_or(|changed| changed < asked_at) {
            books.heard((who, form), &told, self.begun.elapsed(), &self.log);
        }
    }

    fn members(&self) -> Vec<Ipv4Addr> {
        self.books().running.iter().take(MEMBERS).copied().collect()
    }

    /// JSON of all members, all the time.
    async fn ask_for_json(self) {
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            futures::future::join_all(self.members().into_iter().map(|who| self.ask(who, Form::Json))).await;
        }
    }

    /// The other forms, of one member after the other.
    async fn ask_for_others(self) {
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for turn in 0.. {
            tick.tick().await;
            let members = self.members();
            if let Some(who) = members.get(turn % members.len().max(1)) {
                futures::future::join_all([Form::Page, Form::Text, Form::Csv].map(|form| self.ask(*who, form))).await;
            }
        }
    }
}

/// Asks, and keeps a record of the answers.
#[derive(Debug)]
pub(crate) struct Watch {
    asking: Asking,
    tasks: [JoinHandle<()>; 2],
}

impl Watch {
    /// Begins; nobody is asked yet.
    pub(crate) fn begin(client: reqwest::Client, common: Common, log: Arc<Log>, begun: Instant) -> Watch {
        let asking = Asking { books: Arc::default(), client, common, log, begun };
        let tasks = [tokio::spawn(asking.clone().ask_for_json()), tokio::spawn(asking.clone().ask_for_others())];
        Watch { asking, tasks }
    }

    /// A daemon runs from now on, or runs anew.
    pub(crate) fn started(&self, who: Ipv4Addr) {
        let mut books = self.asking.books();
        books.running.insert(who);
        books.changed = Some(Instant::now());
    }

    /// A daemon does not run any more.
    pub(crate) fn ended(&self, who: Ipv4Addr) {
        let mut books = self.asking.books();
        books.running.remove(&who);
        books.changed = Some(Instant::now());
        books.series.iter_mut().filter(|((member, _), _)| *member == who).for_each(|(_, series)| series.was_away = true);
    }

    /// A run begins at this place of the servers' log: what it explains are the servers that have less of something than before.
    pub(crate) fn run_begins(&self, since: usize, before: Option<&Run>, run: &Run) {
        let host_of = |(authority, _): &Asked| authority.split(':').next().unwrap_or_default().to_owned();
        let mut asked: BTreeMap<String, BTreeSet<Asked>> = BTreeMap::new();
        for url in run.asked.keys() {
            asked.entry(host_of(url)).or_default().insert(url.clone());
        }
        let servers = before.into_iter().flat_map(|before| &before.servers);
        let pending =
            servers.map(|(host, then)| Pending { asked: asked.remove(host).unwrap_or_default(), less: less(then, run.servers.get(host)) });
        let pending = pending.filter(|pending| pending.less.values().any(|less| *less > 0)).collect();
        let mut books = self.asking.books();
        (books.pending, books.since) = (pending, since);
    }

    /// Every member told the totals of the run: from now on nothing explains that there is less.
    pub(crate) fn run_is_over(&self, run: &Run) {
        let totals = sums(run.servers.values());
        let mut books = self.asking.books();
        (books.pending, books.explained) = (Vec::new(), Counts::new());
        books.changed = Some(Instant::now());
        for series in books.series.values_mut() {
            series.fallen.clear();
            series.last.iter_mut().for_each(|(figure, last)| *last = totals.get(figure).copied().unwrap_or(0).min(*last));
        }
    }

    /// Ends; the falls, and how many answers there were.
    pub(crate) fn end(&self) -> (Vec<Fall>, u64) {
        self.tasks.iter().for_each(JoinHandle::abort);
        let books = self.asking.books();
        (books.falls.clone(), books.polls)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::server::RequestSeen;

    const WHO: (Ipv4Addr, Form) = (Ipv4Addr::LOCALHOST, Form::Json);

    fn told(pages: u64) -> Told {
        let covers = [("abcdefgh".to_owned(), pages)].into();
        Told { figures: [("pages", pages)].into(), covers, note: "in transition".to_owned() }
    }

    #[test]
    fn a_fall_is_told_once_unless_a_run_that_is_over_explains_it() {
        let log: Arc<Log> = Arc::default();
        let asked = BTreeSet::from([("a.test".to_owned(), "/".to_owned())]);
        let mut books = Books { pending: vec![Pending { asked, less: [("pages", 5)].into() }], ..Books::default() };
        for pages in [10, 20, 17] {
            books.heard(WHO, &told(pages), Duration::from_millis(pages), &log);
        }
        let why_text = "in transition; servers of abcdefgh: 20 → 17".to_owned();
        let fall = Fall { at_ms: 17, member: "127.0.0.1".to_owned(), form: Form::Json, figure: "pages", from: 20, to: 17, why_text };
        assert_eq!((books.falls.as_slice(), books.polls), (&[fall][..], 3), "the run is not over");
        log.asked(RequestSeen {
            start: Duration::ZERO,
            end: None,
            server: Ipv4Addr::LOCALHOST.into(),
            peer: Ipv4Addr::LOCALHOST.into(),
            method: "GET".to_owned(),
            host: "a.test".to_owned(),
            path: "/".to_owned(),
            status: None,
        });
        for pages in [18, 16, 16, 13, 12, 12] {
            books.heard(WHO, &told(pages), Duration::from_millis(pages), &log);
        }
        assert_eq!(books.falls.iter().map(|fall| (fall.from, fall.to)).collect::<Vec<_>>(), [(20, 17), (13, 12)]);
    }

    #[test]
    fn what_was_told_before_the_end_of_a_process_counts() {
        let (mut books, log): (Books, Arc<Log>) = (Books::default(), Arc::default());
        books.heard(WHO, &told(9), Duration::ZERO, &log);
        books.series.values_mut().for_each(|series| series.was_away = true);
        books.heard(WHO, &told(0), Duration::ZERO, &log);
        books.heard(WHO, &told(9), Duration::ZERO, &log);
        assert_eq!(books.falls.len(), 1);
        assert!(books.falls[0].why_text.ends_with("it was away"), "{:?}", books.falls);
    }
}
