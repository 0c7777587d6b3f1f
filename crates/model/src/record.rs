//! Record of a server after a run: counts and outcomes, folded from its journal.

use super::{
    account::{Changes, LevelCounts},
    crawled_by::CrawledBy,
    evaluation::EvaluationCounts,
    facts::ServerFacts,
    failing_pages::{FailingPage, FailingPages},
    fetch::FetchError,
    time::{Millis, WallTime},
    url::Host,
    view::counted,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, net::IpAddr};
use utoipa::ToSchema;

/// Why a run of a site is not going on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// URLs wait to be fetched, or are being fetched.
    #[default]
    Running,
    /// Every page within the depth was asked for.
    Complete,
    /// Complete, and the depth cut something off.
    CutByDepth,
    /// The page budget is spent; goes on in the next slot.
    PausedByBudget,
    /// Complete, and pages that could not be expected to name enough new external hosts were left out.
    CutByYield,
    /// Every page that was queued was asked for; a limit holds back what else was named (`held_back`), and it comes later.
    HeldBack,
}

/// What the server is, in one word, by its answers so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServerStatus {
    /// Not asked yet.
    #[default]
    Waiting,
    /// Answered with a page.
    Up,
    /// Answered, but never with a page (errors, redirects elsewhere, no HTML).
    NoPages,
    /// Answered 401, 403, 429, 451 or a guard's challenge only: refused at the edge, which is not down.
    Refused,
    /// robots.txt forbids every page that is known, or demands a longer pause than is waited.
    Robots,
    /// Could not be connected to.
    Down,
    /// The server answers, but robots.txt could not be had (429, 5xx, or it moved to where this access point may not ask), which counts as
    /// a refusal of everything.
    RobotsUnavailable,
}

impl ServerStatus {
    /// As it is written, as in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            ServerStatus::Waiting => "waiting",
            ServerStatus::Up => "up",
            ServerStatus::NoPages => "no-pages",
            ServerStatus::Refused => "refused",
            ServerStatus::Robots => "robots",
            ServerStatus::Down => "down",
            ServerStatus::RobotsUnavailable => "robots-unavailable",
        }
    }
}

/// One site's record of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerRecord {
    /// The server's host name.
    #[schema(value_type = String)]
    pub host: Host,
    /// Its pinned address, if it has one.
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// The starting host of its tree, without `www.`.
    #[schema(value_type = String)]
    pub tree: Host,
    /// The number of the run, from 1.
    pub run: u32,
    /// What the server's answers so far say of it, as one word.
    pub status: ServerStatus,
    /// Whether the run goes on, and why not if it does not.
    pub state: RunState,
    /// The `Server` header; until a page is downloaded, that of the run before: a 304 may leave it out.
    pub software: Option<String>,
    /// HTML pages fetched.
    pub pages: u64,
    /// Requests sent, robots.txt included.
    pub requests: u64,
    /// Bytes of bodies over the wire in this run. What is still the same as in the run before is not sent again; `page_bytes` has it, too.
    pub bytes: u64,
    /// Sum of response times, in milliseconds: the load that a server feels.
    pub busy_ms: u64,
    /// URLs known, whatever became of them: `fetched`, `unanswered`, `waiting`, `set_aside`, refused, cut, or not queued yet.
    pub known: u64,
    /// URLs that were asked for and answered, by a page or otherwise.
    #[serde(default)]
    pub fetched: u64,
    /// URLs that were asked for without a usable answer.
    #[serde(default)]
    pub unanswered: u64,
    /// URLs that wait for their turn.
    #[serde(default)]
    pub waiting: u64,
    /// URLs set aside because the operator denies their host.
    #[serde(default)]
    pub set_aside: u64,
    /// URLs cut by the depth.
    pub cut_by_depth: u64,
    /// URLs set aside because of robots.txt.
    pub refused_by_robots: u64,
    /// URLs set aside because their script had its one URL.
    pub cut_by_script: u64,
    /// URLs left out because too few new external hosts were to be expected of them.
    pub cut_by_yield: u64,
    /// Requests without a usable answer.
    pub failed: u64,
    /// Answers by status code.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub by_status: BTreeMap<u16, u64>,
    /// Distinct external hosts that its pages link to.
    pub external_hosts: u64,
    /// Distinct URLs of external hosts that its pages link to, in scope or not: exact up to 256, then estimated with a standard error of
    /// 3.3 %.
    #[serde(default)]
    pub external_urls: u64,
    /// Distinct registrable domains of the external hosts: exact up to 600, then estimated with a standard error of 1.6 %. Addresses belong to
    /// none.
    #[serde(default)]
    pub external_domains: u64,
    /// Deepest level at which a page was fetched.
    pub deepest: u8,
    /// When the first request of the run was sent; none before it.
    #[serde(alias = "first_visit")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub first_visit_at: Option<WallTime>,
    /// When the latest request of the run was sent; none before the first.
    #[serde(alias = "last_visit")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_visit_at: Option<WallTime>,
    /// Pages (among `pages`) that ask not to be indexed, by `X-Robots-Tag` or a meta element.
    pub no_index: u64,
    /// Pages (among `pages`) whose links were not followed because they ask for that.
    pub no_follow: u64,
    /// The longest Crawl-delay of its robots.txt for us, in milliseconds; beyond 300,000 nothing is asked.
    pub crawl_delay_ms: Option<Millis>,
    /// URLs (among `refused_by_robots`) set aside because that Crawl-delay is longer than is waited.
    pub refused_by_crawl_delay: u64,
    /// URLs (among `refused_by_robots`) set aside because robots.txt could not be had: it was answered with 429 or 5xx, or not at all.
    #[serde(default)]
    pub refused_by_robots_unavailable: u64,
    /// What changed since the run before, if there was one to compare with.
    #[serde(default)]
    pub changes: Option<Changes>,
    /// What each level cost and brought, from level 0 on.
    #[serde(default)]
    pub levels: Vec<LevelCounts>,
    /// Requests without a usable answer (`failed`, and robots.txt among them) by what went wrong.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, u64>)]
    pub by_failure: BTreeMap<FetchError, u64>,
    /// Accessibility failures detected in its pages; none if its pages are not evaluated.
    #[serde(default)]
    pub evaluation: Option<EvaluationCounts>,
    /// The next run, while it is not whole: until then, all the rest is of the last whole one. None also in the first run.
    #[serde(default)]
    pub next_run: Option<RunUnderWay>,
    /// The version of the rule set that its pages were evaluated by: the oldest, if there are several, and 0 if that is not known.
    #[serde(default)]
    pub evaluation_rules: Option<u32>,
    /// Size of its pages: what the body of each took over the wire when it was last downloaded, in this run or an earlier one. Bodies that are no
    /// HTML page (other types, answers like 404) are not among it.
    #[serde(default)]
    pub page_bytes: u64,
    /// What limits hold back. All of it was named by the server's pages, and none of it was asked for yet.
    #[serde(default)]
    pub held_back: HeldBack,
    /// What its answers say of it besides pages: protocols, certificate, language, declared wishes. None before the first answer.
    #[serde(default)]
    pub facts: Option<Box<ServerFacts>>,
    /// A sample of its pages that fail a rule, at most 20 a rule, each with the line in which the first failing element begins; by the rule's
    /// id.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, Vec<FailingPage>>)]
    pub failing_pages: FailingPages,
    /// By which rules its pages were chosen; none before the first page, and of runs of earlier versions.
    #[serde(default)]
    pub crawled_by: Option<CrawledBy>,
}

/// What limits hold back at one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldBack {
    /// New external hosts in scope that wait because the site has led to as many in a day as it may.
    pub hosts_by_site_limit: u64,
    /// New hosts in scope, or of the tree, that wait because so many of their domain were led to in a day as may be.
    pub hosts_by_domain_limit: u64,
    /// URLs at those hosts: all that wait with them.
    pub host_urls: u64,
    /// URLs at new hosts that do not even wait, because too many do; the next run that names them brings them back.
    pub host_urls_not_kept: u64,
    /// URLs of the site itself (among `known`) that were not queued, because as many waited at the access point as may; they are when
    /// there is room.
    pub urls_not_queued: u64,
}

impl HeldBack {
    /// New hosts that wait.
    pub fn hosts(&self) -> u64 {
        self.hosts_by_site_limit + self.hosts_by_domain_limit
    }

    /// What is held back by which limit, in a sentence; none if nothing is.
    pub fn sentence(&self) -> Option<String> {
        let parts = [
            (self.hosts_by_site_limit, "new host", "by the limit for a site and day"),
            (self.hosts_by_domain_limit, "new host", "by the limit for a domain and day"),
            (self.host_urls_not_kept, "URL", "at further new hosts until the next run"),
            (self.urls_not_queued, "URL", "not queued because too many waited"),
        ];
        let told = parts.iter().filter(|(count, ..)| *count > 0).map(|(count, what, why)| format!("{} {why}", counted(*count, what)));
        let told: Vec<_> = told.collect();
        (!told.is_empty()).then(|| format!("Held back: {}.", told.join(", ")))
    }

    /// Whether any limit holds anything back.
    pub fn is_any(&self) -> bool {
        *self != HeldBack::default()
    }
}

/// How far a run is whose results do not count yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunUnderWay {
    /// The number of the run.
    pub run: u32,
    /// Whether it goes on, and why not if it does not.
    pub state: RunState,
    /// HTML pages fetched in it so far.
    pub pages: u64,
    /// URLs that wait in it.
    pub waiting: u64,
}

impl ServerRecord {
    /// As journals keep it.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// What a journal keeps.
    pub fn from_json(json: &[u8]) -> Option<ServerRecord> {
        serde_json::from_slice(json).ok()
    }

    /// What went wrong most often, if something did.
    pub fn main_failure(&self) -> Option<FetchError> {
        self.by_failure.iter().max_by_key(|(_, count)| **count).map(|(failure, _)| *failure)
    }

    /// How a run stands in which nothing waits for its turn.
    pub fn state_when_over(&self) -> RunState {
        if self.held_back.is_any() {
            RunState::HeldBack
        } else if self.cut_by_yield > 0 {
            RunState::CutByYield
        } else if self.cut_by_depth > 0 {
            RunState::CutByDepth
        } else {
            RunState::Complete
        }
    }

    /// What became of the URLs known: each is counted once.
    pub fn accounted(&self) -> u64 {
        let cut = self.cut_by_depth + self.cut_by_script + self.cut_by_yield;
        self.fetched + self.unanswered + self.refused_by_robots + cut + self.set_aside + self.waiting + self.held_back.urls_not_queued
    }

    /// How whole the run is, in words.
    pub fn completeness(&self) -> String {
        let mut rest = Vec::new();
        let mut more = |count: u64, what: &str| {
            if count > 0 {
                rest.push(format!("{count} {what}"));
            }
        };
        let forbidden = self.refused_by_robots.saturating_sub(self.refused_by_robots_unavailable + self.refused_by_crawl_delay);
        more(forbidden, "refused by robots.txt");
        more(self.refused_by_robots_unavailable, "not requested because robots.txt could not be had");
        more(self.refused_by_crawl_delay, "not requested because robots.txt demands too long a pause");
        more(self.unanswered, "failed");
        more(self.cut_by_depth, "cut by the depth limit");
        more(self.cut_by_script, "cut by the limit of one URL per script");
        more(self.cut_by_yield, "left out by the yield rule");
        more(self.set_aside, "set aside");
        more(self.waiting, if self.state == RunState::PausedByBudget { "waiting because the page budget is used up" } else { "waiting" });
        let rest = if rest.is_empty() { String::new() } else { format!(", {}", rest.join(", ")) };
        let held_back = self.held_back.sentence().map(|held_back| format!(" {held_back}")).unwrap_or_default();
        format!("Of {} known, {} fetched ({}){rest}.{held_back}", counted(self.known, "URL"), self.fetched, counted(self.pages, "page"))
    }
}
