//! Which waiting URLs are in memory? Those whose turn is near; the texts of the others are set aside in the store, beside those of
//! pages that were cut.

use crate::{
    crawl::admission::SeenPurpose,
    crawler::Crawler,
    event::{Command, StoreCommand},
};
use crate::{crawl::site::frontier::Waiting, routing::outbox::Item};
use nearcrawl_model::{
    fingerprint::Fingerprint,
    journal::{Arrival, Place},
    seen::PageState,
    url::{Host, PageUrl},
};

impl Crawler {
    /// Sets aside what waits too far back, and calls back what comes next. After every change of a frontier.
    pub(crate) fn keep_front(&mut self, host: &Host) {
        let most = (self.context.settings.max_in_memory / self.crawl.sites.len().max(1)).max(1);
        let Some(site) = self.crawl.sites.get_mut(host) else { return };
        let number = site.number;
        let urls = site.frontier.set_aside(most);
        let pages = site.frontier.call_back(most);
        if !urls.is_empty() {
            self.context.commands.push_back(Command::Store(StoreCommand::PutCut { site: number, urls }));
        }
        if !pages.is_empty() {
            self.take_aside(number, pages.clone(), SeenPurpose::Scheduler { host: host.clone(), site: number, pages });
        }
    }

    /// Asks the store for texts that were set aside.
    pub(crate) fn take_aside(&mut self, site: u64, pages: Vec<Fingerprint>, purpose: SeenPurpose) {
        let ticket = self.number();
        self.crawl.seen_pending.insert(ticket, purpose);
        self.context.commands.push_back(Command::Store(StoreCommand::TakeCut { ticket, site, pages }));
    }

    /// Whether a URL that is about to get a shorter level stands in line, near or far back.
    pub(crate) fn is_in_line(&mut self, host: &Host, url: &PageUrl, page: Fingerprint) -> bool {
        let script = url.script().map(|script| self.context.secret.of(script));
        let Some(site) = self.crawl.sites.get_mut(host) else { return false };
        site.frontier.waits_far(page, script);
        site.frontier.contains(page)
    }

    /// The store gave texts that had been set aside.
    pub(crate) fn cut_taken(&mut self, ticket: u64, texts: Vec<Option<String>>) {
        match self.crawl.seen_pending.remove(&ticket) {
            Some(SeenPurpose::Nearer { host, site, pages }) => self.nearer_taken(&host, site, pages, texts),
            Some(SeenPurpose::Scheduler { host, site, pages }) => {
                let Some(site) = self.crawl.sites.get_mut(&host).filter(|known| known.number == site) else { return };
                site.frontier.come_back(pages.into_iter().zip(texts), |script| self.context.secret.of(script));
                self.keep_front(&host);
                self.want(&host);
            }
            Some(SeenPurpose::Elsewhere { tree, run, pages }) => {
                for ((page, level), text) in pages.into_iter().zip(texts) {
                    if let Some(waiting) = text.and_then(|text| Waiting::read(&text, page, level)) {
                        self.send_elsewhere(&tree, run, &waiting);
                    }
                }
            }
            _ => {}
        }
    }

    pub(crate) fn nearer_taken(&mut self, host: &Host, number: u64, pages: Vec<(Fingerprint, u8, PageState)>, texts: Vec<Option<String>>) {
        let mut urls = Vec::new();
        for ((page, level, was), text) in pages.into_iter().zip(texts) {
            let Some(site) = self.crawl.sites.get(host).filter(|known| known.number == number) else { return };
            let waiting = match text.and_then(|text| Waiting::read(&text, page, level)) {
                Some(waiting) => waiting,
                // It was called to the front just before.
                None => match site.frontier.get(page) {
                    Some(waiting) => Waiting { level, ..waiting.clone() },
                    None => continue,
                },
            };
            let Waiting { url, hops, .. } = waiting;
            if was == PageState::Cut || self.is_in_line(host, &url, page) {
                urls.push((url, level, hops));
            }
        }
        self.raise(host, number, urls, Vec::new());
    }

    /// All that waits at a site which is not ours any more goes to whoever has it.
    pub(crate) fn give_away(&mut self, site: &crate::crawl::site::Site) {
        let (tree, run) = (site.tree.clone(), site.key.run);
        site.frontier.near().for_each(|waiting| self.send_elsewhere(&tree, run, waiting));
        let pages: Vec<_> = site.frontier.far().map(|(level, page)| (page, level)).collect();
        if !pages.is_empty() {
            let asked = pages.iter().map(|(page, _)| *page).collect();
            self.take_aside(site.number, asked, SeenPurpose::Elsewhere { tree, run, pages });
        }
    }

    pub(crate) fn send_elsewhere(&mut self, tree: &Host, run: u32, waiting: &Waiting) {
        let place = Place { tree: tree.clone(), level: waiting.level, hops: waiting.hops };
        let starts = (waiting.level, waiting.hops) == (0, 0) && waiting.url.host().may_start(tree);
        let arrival = Arrival { url: waiting.url.clone(), place: (!starts).then_some(place), run };
        self.routing.put([Item { arrival, origin: None }]);
    }
}
