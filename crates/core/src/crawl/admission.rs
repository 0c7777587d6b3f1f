//! Deduplicates URLs for our own sites and enters them in the frontier.
//!
//! URLs from outside pass the CLOCK cache and the seen set, enter the site's frontier, and are acknowledged once that is recorded.

use super::{
    Crawl, CrawlReads,
    link_filter::Candidate,
    seen_questions::{AdmissionPart, SeenPurpose},
    site::frontier::Waiting,
};
use crate::{
    context::Context,
    migration::Migration,
    ownership::Ownership,
    replication::Replication,
    routing::{
        acknowledgements::{Acknowledgement, Reply},
        outbox::Item,
    },
    signal::Signal,
};
use nearcrawl_model::{
    fetch::LocatedHost,
    fingerprint::Fingerprint,
    ids::{SeenTicket, SiteNumber},
    journal::{Arrival, JournalEntry},
    message::HandOff,
    seen::{PageState, SeenAnswer, SeenBatch},
    subnet::Subnet,
    url::{Host, PageUrl},
};

/// Hosts that are taken in at one address; further ones are only counted. Each has its journal from the moment that it is named, so that
/// its owner's successor knows of it, too.
pub(crate) const MAX_HOSTS_AT_ONE_ADDRESS: usize = 200_000;

/// URLs are handed to us.
impl Crawl {
    /// Whether nothing may be taken in of a hand-off now: there is no room, or one of its subnets is about to change hands or just did.
    pub(crate) fn is_too_busy(
        &self,
        cx: &Context,
        replication: &Replication,
        ownership: &Ownership,
        migration: &Migration,
        hand_offs: &[HandOff],
    ) -> bool {
        let around = |address| ownership.register().around(address).map(|claim| claim.subnet);
        let changing = |subnet: Subnet| replication.is_loading(&subnet) || migration.has_stopped(&subnet);
        let busy = hand_offs.iter().any(|hand_off| around(hand_off.host.address).is_some_and(changing));
        busy || self.sites.waiting() >= cx.settings.max_waiting || !self.has_disk_space()
    }

    /// Opens the sites that are not open yet and asks the seen set about every URL that the cache does not know.
    pub(crate) fn admit(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        others: CrawlReads<'_>,
        hand_offs: Vec<(LocatedHost, Vec<Arrival>)>,
        reply: Reply,
    ) {
        let mut parts = Vec::new();
        let mut batches = Vec::new();
        for (located, arrivals) in hand_offs {
            if cx.is_denied(&located.host, Some(located.address)) || arrivals.is_empty() {
                continue;
            }
            if self.sites.get(&located.host).is_none() && self.sites.at(located.address) >= MAX_HOSTS_AT_ONE_ADDRESS {
                cx.refuse("hosts beyond the limit for an address");
                continue;
            }
            let root = self.open_site(cx, replication, others, &located, &arrivals);
            let Some((part, depth)) = self.candidates(cx, located.host, arrivals, root) else { continue };
            let questions = part.candidates.iter().map(|c| (c.fingerprint, c.level)).collect();
            batches.push(SeenBatch { site: part.site, depth, visited: None, questions });
            parts.push(part);
        }
        self.questions.ask(cx, batches, SeenPurpose::Admit { parts, reply });
    }

    /// The arrivals at an open site, and its root page if it is one, that the cache does not know; and the depth of its run.
    fn candidates(&mut self, cx: &Context, host: Host, arrivals: Vec<Arrival>, root: Option<PageUrl>) -> Option<(AdmissionPart, u8)> {
        let site = self.sites.get(&host)?;
        let depth = site.depth(&cx.settings.rules);
        let urls = arrivals.into_iter().map(|arrival| {
            let (level, hops) = arrival.place.map_or((0, 0), |place| (place.level, place.hops));
            (arrival.url, level, hops)
        });
        let mut candidates = Vec::new();
        for (url, level, hops) in urls.chain(root.map(|root| (root, 0, 0))) {
            let fingerprint = cx.secret.of(url.as_str());
            let known = self.links.touch(site.number, fingerprint, level);
            let starts = (level, hops) == (0, 0) && !site.starts.contains(&url);
            if (!known || starts) && level <= depth {
                candidates.push(Candidate { url, fingerprint, level, hops });
            }
        }
        Some((AdmissionPart { site: site.number, host, candidates }, depth))
    }

    /// The seen set answered what is new of arrivals: that is written down, and the member that waits is answered when it is recorded.
    fn admitted(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        parts: Vec<AdmissionPart>,
        answers: Vec<Vec<SeenAnswer>>,
        mut reply: Reply,
    ) {
        let mut needs = Vec::new();
        for (AdmissionPart { host, site, candidates }, answers) in parts.into_iter().zip(answers) {
            if self.sites.numbered(&host, site).is_none() {
                // The site was lost or began anew while the seen set was asked: these URLs have to come again.
                match &mut reply {
                    Reply::Member { not_mine, .. } => not_mine.push(host),
                    Reply::Own(items) => {
                        let again = items.extract_if(.., |item| item.arrival.url.host() == host).collect();
                        cx.signal(Signal::Reroute(again));
                    }
                }
                continue;
            }
            self.enter(cx, replication, &host, candidates, answers);
            if let Some(site) = self.sites.get(&host) {
                needs.push((site.key.clone(), site.next_sequence()));
            }
            self.want(cx, &host);
        }
        cx.signal(Signal::Admitted(Acknowledgement { reply, needs }));
    }

    /// Enters the arrivals at a site that are new, start it, or came nearer.
    fn enter(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        host: &Host,
        candidates: Vec<Candidate>,
        answers: Vec<SeenAnswer>,
    ) {
        let (mut urls, mut nearer, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for (candidate, answer) in candidates.into_iter().zip(answers) {
            let is_start = (candidate.level, candidate.hops) == (0, 0);
            if is_start && answer != SeenAnswer::New && self.sites.get(host).is_some_and(|site| !site.starts.contains(&candidate.url)) {
                starts.push(candidate.url.clone());
            }
            match answer {
                SeenAnswer::New => urls.push((candidate.url, candidate.level, candidate.hops)),
                SeenAnswer::Known => {}
                SeenAnswer::Shorter { was } => nearer.push((candidate, was)),
            }
        }
        if !urls.is_empty() {
            self.journal(cx, replication, host, JournalEntry::Admitted { urls });
        }
        if !starts.is_empty() {
            self.journal(cx, replication, host, JournalEntry::Started { urls: starts });
        }
        self.wish_anew(cx, host);
        self.came_nearer(cx, replication, host, nearer);
    }
}

/// The seen set answers.
impl Crawl {
    /// The seen set answered.
    pub(crate) fn seen(&mut self, cx: &mut Context, replication: &mut Replication, ticket: SeenTicket, answers: Vec<Vec<SeenAnswer>>) {
        match self.questions.answered(ticket) {
            Some(SeenPurpose::Admit { parts, reply }) => self.admitted(cx, replication, parts, answers, reply),
            Some(SeenPurpose::Digest(digest)) => self.digested(cx, replication, *digest, answers),
            Some(SeenPurpose::Relax { host, site, pages }) => {
                let answers = answers.into_iter().next().unwrap_or_default();
                self.relaxed(cx, replication, &host, site, pages.into_iter().zip(answers).collect());
            }
            Some(SeenPurpose::Children { .. } | SeenPurpose::Nearer { .. } | SeenPurpose::Front { .. } | SeenPurpose::Elsewhere { .. })
            | None => {}
        }
    }

    /// The links of a page that came nearer: they are one level behind it, where a redirect leads at its own.
    pub(crate) fn children(&mut self, cx: &mut Context, ticket: SeenTicket, children: Vec<Fingerprint>) {
        let Some(SeenPurpose::Children { host, site, level }) = self.questions.answered(ticket) else { return };
        let Some(depth) = self.sites.numbered(&host, site).map(|site| site.depth(&cx.settings.rules)) else { return };
        if level > depth || children.is_empty() {
            return;
        }
        let pages: Vec<_> = children.into_iter().map(|child| (child, level)).collect();
        let batch = SeenBatch { site, depth, visited: None, questions: pages.clone() };
        self.questions.ask(cx, vec![batch], SeenPurpose::Relax { host, site, pages });
    }

    /// The store gave texts that had been set aside.
    pub(crate) fn cut_taken(&mut self, cx: &mut Context, replication: &mut Replication, ticket: SeenTicket, texts: Vec<Option<String>>) {
        match self.questions.answered(ticket) {
            Some(SeenPurpose::Nearer { host, site, pages }) => self.nearer_taken(cx, replication, &host, site, pages, texts),
            Some(SeenPurpose::Front { host, site, pages }) => {
                let Some(site) = self.sites.numbered_mut(&host, site) else { return };
                site.frontier.come_back(pages.into_iter().zip(texts), |script| cx.secret.of(script));
                self.questions.keep_front(cx, &mut self.sites, &host);
                self.want(cx, &host);
            }
            Some(SeenPurpose::Elsewhere { tree, run, pages }) => {
                let texts = pages.into_iter().zip(texts);
                let waiting = texts.filter_map(|((page, level), text)| Waiting::read(&text?, page, level));
                let items = waiting.map(|waiting| Item { arrival: waiting.arrival(&tree, run), origin: None }).collect();
                cx.signal(Signal::Reroute(items));
            }
            _ => {}
        }
    }
}

/// Pages come nearer.
impl Crawl {
    /// Pages that were known at a deeper level: those that wait move forward, those that were cut begin to wait, and what lies
    /// behind visited ones comes nearer too.
    pub(super) fn came_nearer(&mut self, cx: &mut Context, replication: &mut Replication, host: &Host, pages: Vec<(Candidate, PageState)>) {
        let Some(number) = self.sites.get(host).map(|site| site.number) else { return };
        let (mut urls, mut visited) = (Vec::new(), Vec::new());
        for (candidate, was) in pages {
            let Candidate { url, fingerprint, level, hops } = candidate;
            match was {
                PageState::Visited => visited.push((fingerprint, level)),
                PageState::Cut => urls.push((url, level, hops)),
                PageState::Waiting if self.sites.get(host).is_some_and(|site| site.left_out(fingerprint)) => urls.push((url, level, hops)),
                PageState::Waiting if self.is_in_line(cx, host, &url, fingerprint) => urls.push((url, level, hops)),
                // Another URL of its script stands in line: whichever comes first there is asked for (LL-22).
                PageState::Waiting if self.sites.get(host).is_some_and(|site| site.would_win(&url, level, hops, &cx.secret)) => {
                    self.journal(cx, replication, host, JournalEntry::Reopened { urls: vec![(url, level, hops)] });
                    self.want(cx, host);
                }
                // It was set aside while the seen set was asked.
                PageState::Waiting => {}
            }
        }
        self.raise(cx, replication, (host, number), urls, visited);
    }

    /// Notes that these URLs of a site of this number wait at a shorter level, and these pages were visited at a longer one.
    pub(super) fn raise(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        (host, site): (&Host, SiteNumber),
        urls: Vec<(PageUrl, u8, u8)>,
        visited: Vec<(Fingerprint, u8)>,
    ) {
        for (page, level) in &visited {
            let redirects = self.sites.get(host).is_some_and(|site| site.redirects(*page));
            let level = level + u8::from(!redirects);
            self.questions.ask_children(cx, site, *page, SeenPurpose::Children { host: host.clone(), site, level });
        }
        if !urls.is_empty() || !visited.is_empty() {
            self.journal(cx, replication, host, JournalEntry::Raised { urls, visited });
            self.want(cx, host);
        }
    }

    /// The seen set answered which of the links behind a page that came nearer come nearer, too.
    fn relaxed(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        host: &Host,
        number: SiteNumber,
        answers: Vec<((Fingerprint, u8), SeenAnswer)>,
    ) {
        let Some(site) = self.sites.numbered(host, number) else { return };
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
            self.questions.take_aside(cx, number, pages, SeenPurpose::Nearer { host: host.clone(), site: number, pages: aside });
        }
        self.raise(cx, replication, (host, number), urls, visited);
    }

    /// The texts of URLs that came nearer and had been set aside.
    fn nearer_taken(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        host: &Host,
        number: SiteNumber,
        pages: Vec<(Fingerprint, u8, PageState)>,
        texts: Vec<Option<String>>,
    ) {
        let mut urls = Vec::new();
        for ((page, level, was), text) in pages.into_iter().zip(texts) {
            let Some(site) = self.sites.numbered(host, number) else { return };
            let waiting = match text.and_then(|text| Waiting::read(&text, page, level)) {
                Some(waiting) => waiting,
                // It was called to the front just before.
                None => match site.frontier.get(page) {
                    Some(waiting) => Waiting { level, ..waiting.clone() },
                    None => continue,
                },
            };
            let Waiting { url, hops, .. } = waiting;
            if was == PageState::Cut || self.is_in_line(cx, host, &url, page) {
                urls.push((url, level, hops));
            }
        }
        self.raise(cx, replication, (host, number), urls, Vec::new());
    }

    /// Whether a URL that is about to get a shorter level stands in line, near or far back.
    fn is_in_line(&mut self, cx: &Context, host: &Host, url: &PageUrl, page: Fingerprint) -> bool {
        let script = url.script().map(|script| cx.secret.of(script));
        let Some(site) = self.sites.get_mut(host) else { return false };
        site.frontier.waits_far(page, script);
        site.frontier.contains(page)
    }
}
