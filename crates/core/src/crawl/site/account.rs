//! Keeps a site's record: requests, outcomes, levels, external hosts, and what changed since the run before.

use super::{MAX_EXTERNAL_HOSTS, MAX_NAMED, Site, SiteRules, asks_for_patience, facts::Learning, frontier::Waiting, yields::Price};
use nearcrawl_model::{
    account::LevelCounts,
    evaluation::Evaluation,
    facts::{Fact, FrontPage, ServerFacts, Vantage},
    fetch::{FetchError, FetchReport},
    fingerprint::{Fingerprint, FingerprintKey},
    journal::VisitOutcome,
    revisit::Change,
    time::{Millis, WallTime},
    url::{Host, Origin, PageUrl},
};

/// What a server's answers say of it besides its pages.
impl Site {
    /// Whether a page of it may be its front page: the root, or the first that comes.
    pub(super) fn may_be_front(&self, url: &PageUrl) -> bool {
        self.record.pages == 0 || url.path_and_query() == "/"
    }

    /// What an answer says of the server that is not known yet. `vantage`: where this access point is.
    pub(crate) fn news(&self, report: &FetchReport, vantage: &Vantage) -> Vec<Fact> {
        if report.url.host() != self.key.host {
            return Vec::new();
        }
        let none = ServerFacts::default();
        let known = self.record.facts.as_deref().unwrap_or(&none);
        self.learning.news(known, report, vantage, self.may_be_front(&report.url))
    }

    /// Takes in what was learnt.
    pub(super) fn learn(&mut self, facts: &[Fact]) {
        let known = self.record.facts.get_or_insert_default();
        facts.iter().for_each(|fact| self.learning.learn(known, fact));
    }

    /// A request brought its first byte after so long. One that no distance was measured from says nothing of where that was.
    pub(super) fn answered_after(&mut self, first_byte_us: u32) {
        if let Some(known) = self.record.facts.as_mut().filter(|known| self.learning.measures(known)) {
            known.first_byte_us = Some(known.first_byte_us.map_or(first_byte_us, |known| known.min(first_byte_us)));
        }
    }

    /// What the run before knew of the front page holds until that is downloaded again.
    pub(super) fn remember_front_page(&mut self) {
        let Some(before) = self.whole.facts() else { return };
        let page = Learning::default().front_page(before);
        if page != FrontPage::default() {
            self.learn(&[Fact::FrontPage(page)]);
        }
    }

    /// What the run before knew of the software holds until a page is downloaded again: many servers do not name it in a 304.
    pub(super) fn remember_software(&mut self) {
        let Some(before) = self.whole.last().and_then(|last| last.software.clone()) else { return };
        (self.record.software, self.software_was) = (Some(before), true);
    }

    /// Whether it is worth writing down that an answer names this software: it is not on record, or only by the record of the run before.
    pub(crate) fn is_new_software(&self, software: &str) -> bool {
        self.software_was || self.record.software.as_deref() != Some(software)
    }

    /// Takes in the software that an answer names, if that is new.
    pub(super) fn learn_software(&mut self, software: Option<&String>, outcome: &VisitOutcome) {
        let is_download = outcome.is_page() && outcome.status() != Some(304);
        if software.is_some() || (self.software_was && is_download) {
            (self.record.software, self.software_was) = (software.cloned(), false);
        }
    }

    /// What an origin's robots.txt comes to.
    pub(super) fn sum_up_robots(&mut self, origin: &Origin) {
        let Some(standing) = self.robots.get(origin) else { return };
        let (summary, usage) = (standing.summary(), standing.content_usage().map(str::to_owned));
        let known = self.record.facts.get_or_insert_default();
        (known.robots, known.robots_content_usage) = (summary, usage);
    }
}

/// Counts.
impl Site {
    /// Whether this URL, which another one of its script had kept out of the line, would take that one's place.
    pub(crate) fn would_win(&self, url: &PageUrl, level: u8, hops: u8, key: &FingerprintKey) -> bool {
        let Some(script) = url.script().map(|script| key.of(script)) else { return false };
        let waiting = Waiting { url: url.clone(), fingerprint: key.of(url.as_str()), level, hops };
        !self.is_done_with(script) && self.frontier.would_win(&waiting, script)
    }

    /// Whether this page was visited and redirects within the site: where it leads lies at its own level.
    pub fn redirects(&self, page: Fingerprint) -> bool {
        self.redirects.contains(&page)
    }

    /// Whether the journal has named this link to another site.
    pub(crate) fn has_named(&self, link: Fingerprint) -> bool {
        self.named.contains(&link) || self.named.len() >= MAX_NAMED
    }

    /// Counts what came of looking for failures in a page, by this version of the rule set.
    pub(super) fn count_evaluation(&mut self, evaluation: &Evaluation, took_us: u32, rules: u32) {
        self.record.evaluation.get_or_insert_default().count(evaluation, took_us);
        let oldest = self.record.evaluation_rules.map_or(rules, |known| known.min(rules));
        self.record.evaluation_rules = Some(oldest);
    }

    /// Enters the page that was visited last into the sample of those that fail its rules.
    pub(super) fn note_failing(&mut self, page: Fingerprint, evaluation: &Evaluation, lines: &[u32], key: &FingerprintKey) {
        let Some(url) = self.visited_last.as_ref().filter(|url| key.of(url.as_str()) == page) else { return };
        for (rule, line) in evaluation.failures.keys().zip(lines) {
            self.record.failing_pages.note(*rule, url, *line, |url| key.of(url.as_str()));
        }
    }

    /// The counts of one level.
    pub(super) fn level(&mut self, level: u8) -> &mut LevelCounts {
        let level = usize::from(level);
        if self.record.levels.len() <= level {
            self.record.levels.resize(level + 1, LevelCounts::default());
        }
        &mut self.record.levels[level]
    }

    pub(super) fn count_external(&mut self, host: &Host, level: u8, key: &FingerprintKey) {
        if self.external.len() < MAX_EXTERNAL_HOSTS && self.external.insert(key.of(host.as_str()).0) {
            self.record.external_hosts += 1;
            self.level(level).external_hosts += 1;
            if host.registrable().is_some_and(|domain| self.external_domains.insert(key.of(domain))) {
                // No estimate claims more domains than hosts, or takes back what was said.
                let domains = self.external_domains.count().min(self.record.external_hosts);
                self.record.external_domains = domains.max(self.record.external_domains);
            }
        }
    }

    /// Enters a page's links to other sites in scope: those that the journal names for the first time, and all.
    pub(super) fn count_named(&mut self, named: &[PageUrl], all: &[Fingerprint], level: u8, rules: &SiteRules, key: &FingerprintKey) {
        let before = self.record.external_hosts;
        let mut external = Vec::new();
        for url in named {
            let link = key.of(url.as_str());
            if self.named.len() < MAX_NAMED {
                self.named.insert(link);
            }
            let host = url.host();
            if !self.is_internal(&host) {
                self.count_external(&host, level, key);
                self.count_external_url(link.half());
                external.push(link.half());
            }
        }
        // Of the others it only says that they lead elsewhere, perhaps to another host of the tree.
        external.extend(all.iter().map(|link| link.half()).filter(|link| self.yields.has_met(*link)));
        self.tell(&external, self.record.external_hosts - before, rules);
    }

    /// What the page that was visited last names, for the rule of yield.
    pub(super) fn tell(&mut self, links: &[u32], hosts: u64, rules: &SiteRules) {
        if rules.price > Price::default() {
            self.yields.name(links, hosts);
        }
    }

    pub(super) fn count_external_url(&mut self, print: u32) {
        if self.external_urls.insert(print) {
            self.record.external_urls = self.external_urls.count().max(self.record.external_urls);
        }
    }

    pub(super) fn count_change(&mut self, change: Option<Change>, level: u8, size: u64) {
        if change == Some(Change::NotModified) {
            let counts = self.level(level);
            counts.bytes = counts.bytes.saturating_add(size);
            self.record.page_bytes = self.record.page_bytes.saturating_add(size);
        }
        let Some(changes) = &mut self.record.changes else { return };
        match change {
            None => {}
            Some(Change::New) => changes.new += 1,
            Some(Change::Changed) => changes.changed += 1,
            Some(Change::Unchanged) => changes.unchanged += 1,
            Some(Change::NotModified) => {
                changes.unchanged += 1;
                changes.not_modified += 1;
                changes.bytes_saved = changes.bytes_saved.saturating_add(size);
            }
            Some(Change::Missed) => changes.missed += 1,
        }
    }

    /// Pages of the run before that this one has not met: they are gone when nothing waits any more.
    pub(super) fn count_gone(&mut self) {
        let record = &mut self.record;
        let Some(changes) = &mut record.changes else { return };
        let compared = changes.changed + changes.unchanged + changes.missed;
        changes.gone = if record.waiting == 0 { changes.pages_before.saturating_sub(compared) } else { 0 };
    }

    pub(super) fn count_request(&mut self, at: WallTime, took: Millis, level: u8) {
        let counts = self.level(level);
        counts.requests += 1;
        counts.busy_ms = counts.busy_ms.saturating_add(took);
        self.last_took = took;
        self.record.requests += 1;
        self.record.busy_ms = self.record.busy_ms.saturating_add(took);
        self.record.first_visit_at.get_or_insert(at);
        self.record.last_visit_at = self.record.last_visit_at.max(Some(at));
    }

    /// Counts refusals for being asked too much; no answer at all says nothing of that.
    pub(super) fn count_setback(&mut self, status: Option<u16>) {
        match status {
            Some(status) if asks_for_patience(status) => self.setbacks = self.setbacks.saturating_add(1),
            Some(_) => self.setbacks = 0,
            None => {}
        }
    }

    pub(super) fn count_outcome(&mut self, outcome: &VisitOutcome, level: u8) {
        match outcome {
            // A guard that wants to see a human is no more patient than one that says 429.
            VisitOutcome::Failed(FetchError::Challenged) => self.count_setback(Some(429)),
            _ => self.count_setback(outcome.status()),
        }
        let (no_index, no_follow) = outcome.asks_of_robots();
        self.record.no_index += u64::from(no_index);
        self.record.no_follow += u64::from(no_follow);
        match outcome {
            VisitOutcome::Page(status) | VisitOutcome::RestrictedPage { status, .. } | VisitOutcome::ServedPage { status, .. } => {
                self.record.pages += 1;
                self.level(level).pages += 1;
                self.record.deepest = self.record.deepest.max(level);
                *self.record.by_status.entry(*status).or_default() += 1;
            }
            VisitOutcome::NotHtml(status)
            | VisitOutcome::NotHtmlAs { status, .. }
            | VisitOutcome::Redirect(status)
            | VisitOutcome::RedirectTo { status, .. }
            | VisitOutcome::Status(status) => {
                *self.record.by_status.entry(*status).or_default() += 1;
            }
            VisitOutcome::Failed(FetchError::Cancelled) => {}
            VisitOutcome::Failed(failure) => self.count_failure(*failure),
        }
    }

    pub(super) fn count_failure(&mut self, failure: FetchError) {
        self.record.failed += 1;
        *self.record.by_failure.entry(failure).or_default() += 1;
    }
}
