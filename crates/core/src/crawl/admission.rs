//! Ours: is it new? URLs from outside pass the CLOCK cache and the seen set, enter the site's frontier, and are acknowledged
//! once that is recorded.

use crate::{
    crawl::{Crawl, site::Site},
    crawler::Crawler,
    event::{Command, StoreCommand},
    routing::{
        acknowledgements::{Acknowledgement, Reply},
        outbox::Item,
    },
};
use nearcrawl_model::{
    fetch::LocatedHost,
    fingerprint::Fingerprint,
    journal::{Arrival, JournalEntry, JournalKey, Place},
    message::{HandOff, Response},
    seen::{PageState, SeenAnswer, SeenBatch},
    subnet::Subnet,
    url::{Host, PageUrl},
};
use std::collections::BTreeSet;

/// A URL with everything that the seen test needs.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub url: PageUrl,
    pub fingerprint: Fingerprint,
    pub level: u8,
    pub hops: u8,
}

/// What the seen set was asked for.
#[derive(Debug)]
pub(crate) enum SeenPurpose {
    /// Arrivals of several hosts, one batch each, and who waits.
    Admit { parts: Vec<(Host, u64, Vec<Candidate>)>, reply: Reply },
    /// A visit, its links, and what leaves the site.
    Digest(Box<crate::crawl::fetch_cycle::Digest>),
    /// Pages behind one that came nearer.
    Relax { host: Host, site: u64, pages: Vec<(Fingerprint, u8)> },
    /// The links of a page that came nearer are being read.
    Children { host: Host, site: u64, level: u8 },
    /// URLs that came nearer are being read: they had been cut, or wait far back.
    Nearer { host: Host, site: u64, pages: Vec<(Fingerprint, u8, PageState)> },
    /// URLs that wait far back are being called to the front.
    Scheduler { host: Host, site: u64, pages: Vec<Fingerprint> },
    /// URLs that waited far back at a site that is not ours any more are on their way to whoever has it.
    Elsewhere { tree: Host, run: u32, pages: Vec<(Fingerprint, u8)> },
}

impl SeenPurpose {
    /// Whether it is about one of these hosts.
    pub(crate) fn concerns(&self, hosts: &BTreeSet<Host>) -> bool {
        match self {
            SeenPurpose::Admit { parts, .. } => parts.iter().any(|(host, ..)| hosts.contains(host)),
            SeenPurpose::Digest(digest) => hosts.contains(digest.host()),
            SeenPurpose::Relax { host, .. }
            | SeenPurpose::Children { host, .. }
            | SeenPurpose::Nearer { host, .. }
            | SeenPurpose::Scheduler { host, .. } => hosts.contains(host),
            SeenPurpose::Elsewhere { .. } => false,
        }
    }
}

impl Crawler {
    /// A member hands URLs to us. All hosts of one message are answered together.
    pub(crate) fn take_in(&mut self, ticket: u64, parcels: Vec<HandOff>) {
        let around = |address| self.ownership.register.around(address).map(|claim| claim.subnet);
        let changing = |subnet: Subnet| self.replication.is_loading(&subnet) || self.migration.has_stopped(&subnet);
        let busy = parcels.iter().any(|parcel| around(parcel.host.address).is_some_and(changing));
        let crowded = self.crawl.waiting >= self.context.settings.max_waiting || !self.crawl.disk_has_space;
        if busy || crowded || self.shutdown.is_stopping() || !self.ownership.is_synced() {
            return self.answer(ticket, Response::Busy(1_000));
        }
        let mut not_mine = Vec::new();
        let mut ours = Vec::new();
        for parcel in parcels {
            let claim =
                self.ownership.register.around(parcel.host.address).filter(|claim| claim.owner == self.context.me && !claim.released);
            let mine = claim.map(|claim| claim.subnet);
            let fits = parcel.arrivals.iter().all(|arrival| arrival.url.host() == parcel.host.host);
            let first = parcel.arrivals.first().map(|arrival| arrival.url.clone());
            if let (Some(subnet), true, Some(url)) = (mine, fits, first)
                && self.belongs_here(subnet, &parcel.host, &url)
            {
                ours.push((parcel.host, parcel.arrivals));
            } else {
                not_mine.push(parcel.host.host);
            }
        }
        self.admit_all(ours, Reply::Member { ticket, not_mine });
    }

    /// URLs that turned out to be for ourselves.
    pub(crate) fn admit_own(&mut self, located: LocatedHost, items: Vec<Item>) {
        let arrivals = items.iter().map(|item| item.arrival.clone()).collect();
        self.admit_all(vec![(located, arrivals)], Reply::Own(items));
    }

    /// Opens the sites that are not open yet and asks the seen set about every URL that the cache does not know.
    pub(crate) fn admit_all(&mut self, parcels: Vec<(LocatedHost, Vec<Arrival>)>, reply: Reply) {
        let mut parts = Vec::new();
        let mut batches = Vec::new();
        for (located, arrivals) in parcels {
            let host = located.host.clone();
            if self.context.settings.scope.denies(&host) || arrivals.is_empty() {
                continue;
            }
            let root = self.open_site(&located, &arrivals);
            let Some(site) = self.crawl.sites.get(&host) else { continue };
            let number = site.number;
            let urls = arrivals.into_iter().map(|arrival| {
                let (level, hops) = arrival.place.map_or((0, 0), |place| (place.level, place.hops));
                (arrival.url, level, hops)
            });
            let mut candidates = Vec::new();
            for (url, level, hops) in urls.chain(root.map(|root| (root, 0, 0))) {
                let fingerprint = self.context.secret.of(url.as_str());
                let known = self.crawl.links.met(number, fingerprint, level);
                let starts = (level, hops) == (0, 0) && self.crawl.sites.get(&host).is_some_and(|site| !site.starts.contains(&url));
                if (!known || starts) && level <= self.context.settings.rules.depth {
                    candidates.push(Candidate { url, fingerprint, level, hops });
                }
            }
            let questions = candidates.iter().map(|c| (c.fingerprint, c.level)).collect();
            batches.push(SeenBatch { site: number, depth: self.context.settings.rules.depth, visited: None, questions });
            parts.push((host, number, candidates));
        }
        let ticket = self.number();
        self.crawl.seen_pending.insert(ticket, SeenPurpose::Admit { parts, reply });
        self.context.commands.push_back(Command::Store(StoreCommand::Seen { ticket, batches }));
    }

    /// Opens the host's site if it is not open, or its next run if that is due. Returns the root page if the host thereby starts
    /// a tree: it is a starting URL too (LL-26).
    pub(crate) fn open_site(&mut self, located: &LocatedHost, arrivals: &[Arrival]) -> Option<PageUrl> {
        let host = &located.host;
        let starting = arrivals.iter().find(|arrival| arrival.place.is_none()).map(|arrival| arrival.url.root());
        if let Some(site) = self.crawl.sites.get(host) {
            // It was a part of its tree until now. (While nothing is known of it, whoever opened it brings a root page along.)
            let root = starting.filter(|_| site.starts.is_empty() && site.record.known > 0 && host.may_start(&site.tree));
            // Another host of its tree leads here in the next run: this one begins it, too. A home follows no other tree than its own.
            let follows = |place: &Place| place.tree == site.tree || !site.is_home();
            let runs = arrivals.iter().filter(|arrival| arrival.place.as_ref().is_some_and(follows)).map(|arrival| arrival.run);
            if let Some(next) = runs.max().filter(|run| *run > site.key.run && site.finished()) {
                let (address, tree) = (site.address, site.tree.clone());
                self.begin_run(host.clone(), address, tree, next);
            }
            return root;
        }
        let wanted = arrivals.iter().filter(|arrival| arrival.place.is_some()).map(|arrival| arrival.run).max();
        // Filed under what is claimed, not under what our own hierarchy says: so every member finds it.
        let subnet =
            self.ownership.register.around(located.address).map_or_else(|| self.context.unit_of(located.address), |claim| claim.subnet);
        let place = arrivals.iter().find_map(|arrival| arrival.place.as_ref());
        let tree = place.filter(|_| starting.is_none()).map_or_else(|| host.without_www(), |place| place.tree.clone());
        let run = if starting.is_some() { 1 } else { wanted.unwrap_or(1) };
        let key = JournalKey { subnet, host: host.clone(), run };
        self.begin_site(key, located.address, tree);
        starting
    }

    /// Opens a journal and the site that is its fold.
    pub(crate) fn begin_site(&mut self, key: JournalKey, address: std::net::IpAddr, tree: Host) {
        self.crawl.next_site += 1;
        let site = Site::open(key.clone(), address, tree.clone(), self.crawl.next_site, self.context.now.wall);
        self.crawl.by_subnet.entry(key.subnet).or_default().insert(key.host.clone());
        self.crawl.sites.insert(key.host.clone(), site);
        if let Some(until) = self.delegation.rests_until(&key.subnet) {
            self.crawl.scheduler.rest(address, until);
        }
        let host = key.host.clone();
        self.replication.assign(&self.context, &self.membership, &self.migration, &key);
        self.journal(&host, JournalEntry::Opened { address, tree, at: self.context.now.wall });
        let epoch = self.ownership.register.claim(&key.subnet).map_or(0, |claim| claim.epoch);
        if epoch > 1 {
            self.journal(&host, JournalEntry::TakenOver { epoch });
            self.carry_history(key.subnet, &host);
        }
    }

    /// The seen set answered.
    pub(crate) fn seen(&mut self, ticket: u64, answers: Vec<Vec<SeenAnswer>>) {
        match self.crawl.seen_pending.remove(&ticket) {
            Some(SeenPurpose::Admit { parts, reply }) => self.admitted(parts, answers, reply),
            Some(SeenPurpose::Digest(digest)) => self.digested(*digest, answers),
            Some(SeenPurpose::Relax { host, site, pages }) => {
                let answers = answers.into_iter().next().unwrap_or_default();
                self.relaxed(&host, site, pages.into_iter().zip(answers).collect());
            }
            Some(
                SeenPurpose::Children { .. } | SeenPurpose::Nearer { .. } | SeenPurpose::Scheduler { .. } | SeenPurpose::Elsewhere { .. },
            )
            | None => {}
        }
    }

    pub(crate) fn admitted(&mut self, parts: Vec<(Host, u64, Vec<Candidate>)>, answers: Vec<Vec<SeenAnswer>>, mut reply: Reply) {
        let mut needs = Vec::new();
        for ((host, number, candidates), answers) in parts.into_iter().zip(answers) {
            if self.crawl.sites.get(&host).is_none_or(|site| site.number != number) {
                // The site was lost or began anew while the seen set was asked: these URLs have to come again.
                match &mut reply {
                    Reply::Member { not_mine, .. } => not_mine.push(host),
                    Reply::Own(items) => {
                        self.routing.put(items.extract_if(.., |item| item.arrival.url.host() == host));
                    }
                }
                continue;
            }
            let mut urls = Vec::new();
            let mut nearer = Vec::new();
            let mut starts = Vec::new();
            for (candidate, answer) in candidates.into_iter().zip(answers) {
                let is_start = (candidate.level, candidate.hops) == (0, 0);
                if is_start
                    && answer != SeenAnswer::New
                    && self.crawl.sites.get(&host).is_some_and(|site| !site.starts.contains(&candidate.url))
                {
                    starts.push(candidate.url.clone());
                }
                match answer {
                    SeenAnswer::New => urls.push((candidate.url, candidate.level, candidate.hops)),
                    SeenAnswer::Known => {}
                    SeenAnswer::Shorter { was } => nearer.push((candidate, was)),
                }
            }
            if !urls.is_empty() {
                self.journal(&host, JournalEntry::Admitted { urls });
            }
            if !starts.is_empty() {
                self.journal(&host, JournalEntry::Started { urls: starts });
            }
            self.came_nearer(&host, nearer);
            if let Some(site) = self.crawl.sites.get(&host) {
                needs.push((site.key.clone(), site.next_sequence()));
            }
            self.want(&host);
        }
        self.routing.await_recording(Acknowledgement { reply, needs });
        self.acknowledge();
    }

    /// Pages that were known at a deeper level: those that wait move forward, those that were cut begin to wait, and what lies
    /// behind visited ones comes nearer too.
    pub(crate) fn came_nearer(&mut self, host: &Host, pages: Vec<(Candidate, PageState)>) {
        let Some(number) = self.crawl.sites.get(host).map(|site| site.number) else { return };
        let (mut urls, mut visited) = (Vec::new(), Vec::new());
        for (candidate, was) in pages {
            let Candidate { url, fingerprint, level, hops } = candidate;
            match was {
                PageState::Visited => visited.push((fingerprint, level)),
                PageState::Cut => urls.push((url, level, hops)),
                PageState::Waiting if self.crawl.sites.get(host).is_some_and(|site| site.left_out(fingerprint)) => {
                    urls.push((url, level, hops))
                }
                PageState::Waiting if self.is_in_line(host, &url, fingerprint) => urls.push((url, level, hops)),
                // Another URL of its script stands in line: whichever comes first there is asked for (LL-22).
                PageState::Waiting
                    if self.crawl.sites.get(host).is_some_and(|site| site.would_win(&url, level, hops, &self.context.secret)) =>
                {
                    self.journal(host, JournalEntry::Reopened { urls: vec![(url, level, hops)] });
                    self.want(host);
                }
                // It was set aside while the seen set was asked.
                PageState::Waiting => {}
            }
        }
        self.raise(host, number, urls, visited);
    }

    pub(crate) fn raise(&mut self, host: &Host, site: u64, urls: Vec<(PageUrl, u8, u8)>, visited: Vec<(Fingerprint, u8)>) {
        for (page, level) in &visited {
            let ticket = self.number();
            let redirects = self.crawl.sites.get(host).is_some_and(|site| site.redirects(*page));
            let level = level + u8::from(!redirects);
            self.crawl.seen_pending.insert(ticket, SeenPurpose::Children { host: host.clone(), site, level });
            self.context.commands.push_back(Command::Store(StoreCommand::Children { ticket, site, page: *page }));
        }
        if !urls.is_empty() || !visited.is_empty() {
            self.journal(host, JournalEntry::Raised { urls, visited });
            self.want(host);
        }
    }

    /// The links of a page that came nearer: they are one level behind it, where a redirect leads at its own.
    pub(crate) fn children(&mut self, ticket: u64, children: Vec<Fingerprint>) {
        let Some(SeenPurpose::Children { host, site, level }) = self.crawl.seen_pending.remove(&ticket) else { return };
        if level > self.context.settings.rules.depth || children.is_empty() {
            return;
        }
        let pages: Vec<_> = children.into_iter().map(|child| (child, level)).collect();
        let ticket = self.number();
        let batch = SeenBatch { site, depth: self.context.settings.rules.depth, visited: None, questions: pages.clone() };
        self.crawl.seen_pending.insert(ticket, SeenPurpose::Relax { host, site, pages });
        self.context.commands.push_back(Command::Store(StoreCommand::Seen { ticket, batches: vec![batch] }));
    }

    pub(crate) fn relaxed(&mut self, host: &Host, number: u64, answers: Vec<((Fingerprint, u8), SeenAnswer)>) {
        let Some(site) = self.crawl.sites.get(host).filter(|site| site.number == number) else { return };
        let (mut urls, mut visited, mut aside) = (Vec::new(), Vec::new(), Vec::new());
        for ((page, level), answer) in answers {
            match (answer, site.frontier.get(page)) {
                (SeenAnswer::Shorter { was: PageState::Waiting }, Some(waiting)) => urls.push((waiting.url.clone(), level, waiting.hops)),
                (SeenAnswer::Shorter { was: PageState::Visited }, _) => visited.push((page, level)),
                (SeenAnswer::Shorter { was }, _) => aside.push((page, level, was)),
                (SeenAnswer::New | SeenAnswer::Known, _) => {}
            }
        }
        if !aside.is_empty() {
            let pages = aside.iter().map(|(page, ..)| *page).collect();
            self.take_aside(number, pages, SeenPurpose::Nearer { host: host.clone(), site: number, pages: aside });
        }
        self.raise(host, number, urls, visited);
    }
}

impl Crawl {
    /// Whether a journal is that of a site of ours.
    pub(crate) fn owns(&self, key: &JournalKey) -> bool {
        self.sites.get(&key.host).is_some_and(|site| site.key.subnet == key.subnet)
    }
}
