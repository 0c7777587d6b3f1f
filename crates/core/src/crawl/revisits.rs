//! A run is over and its time has come again: what did it know, and what need not be downloaded a second time?
//!
//! The journal of the run before is read once more and kept at hand on disk while the new run goes on. Each page is asked for by the
//! version known; if it is still the same, its links are those of then, and the crawl goes on below it as if it had been downloaded.

use crate::crawl::site::{Site, former::Memory};
use crate::{
    crawler::Crawler,
    event::{Command, StoreCommand, WebCommand},
};
use nearcrawl_model::{
    fetch::{FetchError, FetchOrder, FetchPurpose},
    fingerprint::Fingerprint,
    journal::{JournalEntry, JournalKey, VisitOutcome},
    revisit::{Change, FormerPage},
    seen::SeenBatch,
    time::{Millis, WallTime},
    url::Host,
};
use std::net::IpAddr;

/// A tree whose page budget is spent goes on after this long: a day.
const SLOT: Millis = 86_400_000;

/// What the run before knew is kept for so long after the last visit, though nothing waits: other hosts of the tree may still lead
/// here.
const NOTHING_CAME: Millis = SLOT;

impl Crawler {
    /// Trees whose time has come are visited again, under the next run's number.
    pub(crate) fn tick_runs(&mut self) {
        if !self.context.rounds.is_multiple_of(50) || self.held_back().is_some() {
            return;
        }
        let due = |opened: WallTime| self.context.now.wall.0.saturating_sub(opened.0) >= self.context.settings.revisit;
        let over = self.crawl.sites.values().filter(|site| site.finished() && site.is_home() && due(site.opened));
        let over: Vec<_> = over.map(|site| (site.key.host.clone(), site.address, site.key.run + 1)).collect();
        for (host, address, run) in over {
            let tree = host.without_www();
            self.begin_run(host, address, tree, run);
        }
        let rested = self.crawl.sites.values().filter(|site| site.may_resume(self.context.now.wall, SLOT));
        let rested: Vec<_> = rested.map(|site| site.key.host.clone()).collect();
        for host in rested {
            self.journal(&host, JournalEntry::Resumed { at: self.context.now.wall });
            self.want(&host);
        }
    }

    /// Begins the next run of a site from the starting URLs of the last one.
    pub(crate) fn begin_run(&mut self, host: Host, address: IpAddr, tree: Host, run: u32) {
        let Some(old) = self.crawl.sites.remove(&host) else { return };
        self.context.commands.push_back(Command::Store(StoreCommand::DropSeen(old.number)));
        self.crawl.scheduler.drop_site(old.address, &host);
        self.begin_site(JournalKey { run, ..old.key.clone() }, address, tree);
        let urls: Vec<_> = old.starts.into_iter().map(|url| (url, 0, 0)).collect();
        if !urls.is_empty() {
            let Some(site) = self.crawl.sites.get(&host) else { return };
            let questions: Vec<(Fingerprint, u8)> =
                urls.iter().map(|(url, level, _)| (self.context.secret.of(url.as_str()), *level)).collect();
            let batch = SeenBatch { site: site.number, depth: self.context.settings.rules.depth, visited: None, questions };
            self.context.commands.push_back(Command::Store(StoreCommand::Seen { ticket: 0, batches: vec![batch] }));
            self.journal(&host, JournalEntry::Admitted { urls });
        }
        if let Some(older) = self.crawl.superseded.remove(&host) {
            self.drop_former(older);
        }
        self.replication.flush(&mut self.context);
        self.remember_run(&host, old.key);
    }

    /// Has the journal of a site's run before read; the site is not asked anything before it is known.
    pub(crate) fn remember_run(&mut self, host: &Host, journal: JournalKey) {
        let Some(site) = self.crawl.sites.get_mut(host) else { return };
        site.memory = Memory::Reading;
        self.context.commands.push_back(Command::Store(StoreCommand::LoadFormer {
            site: site.number,
            journal: journal.clone(),
            key: self.context.secret,
        }));
        self.crawl.superseded.insert(host.clone(), journal);
    }

    /// A site goes on in a run after the first: if this is not over, what the one before knew is needed still.
    pub(crate) fn recall_run_before(&mut self, key: &JournalKey) {
        let Some(site) = self.crawl.sites.get(&key.host).filter(|_| key.run > 1) else { return };
        let before = JournalKey { run: key.run - 1, ..key.clone() };
        if self.is_over(site) {
            self.crawl.superseded.insert(key.host.clone(), before);
        } else {
            self.remember_run(&key.host, before);
        }
    }

    /// It was read.
    pub(crate) fn former_loaded(&mut self, number: u64, host: &Host, pages: Option<u64>) {
        let Some(site) = self.crawl.sites.get_mut(host).filter(|site| site.number == number) else { return };
        site.memory = if pages.is_some() { Memory::Ready } else { Memory::None };
        // The run before need not be the one numbered so: where others of the tree were ahead, it caught up.
        let run = self.crawl.superseded.get(host).map_or(site.key.run.saturating_sub(1), |before| before.run);
        if let (Some(pages), None) = (pages, site.record.changes) {
            self.journal(host, JournalEntry::Follows { run, pages });
        }
        self.want(host);
    }

    /// How a request is sent: with what the run before knew, if anything can be known.
    pub(crate) fn request(&self, host: &Host, order: FetchOrder) -> Command {
        match self.crawl.sites.get(host) {
            Some(site) if site.memory == Memory::Ready && order.purpose == FetchPurpose::Page => {
                Command::Web(WebCommand::Revisit { page: self.context.secret.of(order.url.as_str()), site: site.number, order })
            }
            _ => Command::Web(WebCommand::Fetch(order)),
        }
    }

    /// The seen set knows a loaded site: it may be visited.
    pub(crate) fn awake(&mut self, number: u64) {
        if let Some(host) = self.crawl.awakening.remove(&number) {
            self.keep_front(&host);
            self.want(&host);
        }
    }

    /// Whether nothing waits at a site, and has not for so long that its run is over.
    pub(crate) fn is_over(&self, site: &Site) -> bool {
        let quiet = self.context.now.wall.0.saturating_sub(site.record.last_visit_at.unwrap_or(site.opened).0);
        site.finished() && quiet >= NOTHING_CAME
    }

    /// When a newer run is over, what the one before knew has served.
    pub(crate) fn drop_superseded(&mut self) {
        let over = |host: &Host| self.crawl.sites.get(host).is_some_and(|site| self.is_over(site));
        let done: Vec<_> = self.crawl.superseded.keys().filter(|host| over(host)).cloned().collect();
        for host in done {
            if let Some(key) = self.crawl.superseded.remove(&host) {
                self.drop_former(key);
            }
            if let Some(site) = self.crawl.sites.get_mut(&host) {
                site.memory = Memory::None;
                self.context.commands.push_back(Command::Store(StoreCommand::DropFormer(site.number)));
            }
        }
    }

    pub(crate) fn drop_former(&mut self, key: JournalKey) {
        self.replication.retire(&key);
        self.context.commands.push_back(Command::Store(StoreCommand::DropJournal(key)));
    }
}

/// What became of a page: of its content as it is now, and as the run before left it.
pub(crate) fn change(outcome: &VisitOutcome, content: u64, not_modified: bool, former: Option<&FormerPage>) -> Option<Change> {
    let former = former.filter(|former| former.is_page());
    match (outcome, former) {
        _ if not_modified => Some(Change::NotModified),
        (VisitOutcome::Failed(failure), Some(_)) if *failure != FetchError::Cancelled => Some(Change::Missed),
        (outcome, Some(former)) if outcome.is_page() => Some(if former.content == content { Change::Unchanged } else { Change::Changed }),
        (outcome, None) if outcome.is_page() => Some(Change::New),
        _ => None,
    }
}
