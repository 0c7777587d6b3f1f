//! A site begins, goes on from another's journal, begins its next run, and ends. Whatever happens to it stands in its journal.

use super::{
    Crawl, Others,
    fetches::Fetches,
    link_filter::LinkFilter,
    revisits::{self, NextRun, Runs},
    seen_questions::{SeenPurpose, SeenQuestions},
    site::{
        Site,
        previous_run::Memory,
        replay::{Replayed, replay},
    },
    sites::Sites,
};
use crate::{
    context::Context,
    crawler::Settings,
    event::{Command, StoreCommand, WebCommand},
    replication::{Replication, loading::JournalCopy},
    routing::outbox::Item,
    signal::Signal,
};
use nearcrawl_model::{
    fetch::LocatedHost,
    fingerprint::Fingerprint,
    ids::{SeenTicket, SiteNumber},
    journal::{Arrival, JournalEntry, JournalKey, Place},
    seen::SeenBatch,
    subnet::Subnet,
    url::{Host, PageUrl},
};
use std::net::IpAddr;

/// What it is told.
impl Crawl {
    /// No site is open. The first gets the number after `last_number`, which is also that of the URLs that leave our sites.
    pub(crate) fn new(settings: &Settings, last_number: u64) -> Crawl {
        Crawl {
            sites: Sites::new(last_number),
            fetches: Fetches::new(settings.politeness.clone()),
            questions: SeenQuestions::default(),
            links: LinkFilter::new(settings.cache_entries, SiteNumber(last_number)),
            runs: Runs::default(),
            disk_has_space: true,
        }
    }

    /// The disk has space, or has none any more.
    pub(crate) fn disk_space(&mut self, has_space: bool) {
        self.disk_has_space = has_space;
    }

    /// Counts the URLs that wait at all sites together.
    pub(crate) fn count_waiting(&mut self) {
        self.sites.count_waiting();
    }

    /// Forgets what rested long ago.
    pub(crate) fn tidy(&mut self, cx: &Context) {
        self.fetches.tidy(cx.now.moment);
    }
}

/// What happens to every site.
impl Crawl {
    /// Enters what happened into a site's journal. The site knows it at once; the world hears of it when it is stored.
    pub(crate) fn journal(&mut self, cx: &mut Context, replication: &mut Replication, host: &Host, entry: JournalEntry) {
        let Some(site) = self.sites.get_mut(host) else { return };
        let (key, sequence) = (site.key.clone(), site.next_sequence());
        site.apply(&entry, &cx.settings.rules, &cx.secret);
        replication.push(cx, key, sequence, &entry);
        cx.signal(Signal::SiteChanged(host.clone()));
        self.questions.keep_front(cx, &mut self.sites, host);
        replication.flush_if_full(cx, &entry);
    }

    /// This site has something to ask, if it has.
    pub(super) fn want(&mut self, cx: &Context, host: &Host) {
        let Some(site) = self.sites.get(host) else { return };
        if site.wants(&cx.settings.rules) && !self.sites.is_asleep(site) {
            self.fetches.want(site.address, host);
        }
    }

    /// The sites of a subnet may ask again, if they have something to ask.
    pub(crate) fn resume_subnet(&mut self, cx: &Context, subnet: &Subnet) {
        let hosts: Vec<_> = self.sites.within(subnet).cloned().collect();
        for host in hosts {
            self.want(cx, &host);
        }
    }
}

/// Sites begin.
impl Crawl {
    /// Opens the host's site if it is not open, or its next run if that is due. Returns the root page if the host thereby starts
    /// a tree: it is a starting URL too (LL-26).
    pub(super) fn open_site(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        others: Others<'_>,
        located: &LocatedHost,
        arrivals: &[Arrival],
    ) -> Option<PageUrl> {
        let host = &located.host;
        let starting = arrivals.iter().find(|arrival| arrival.place.is_none()).map(|arrival| arrival.url.root());
        if let Some(site) = self.sites.get(host) {
            // It was a part of its tree until now. (While nothing is known of it, the member that opened it brings a root page along.)
            let root = starting.filter(|_| site.starts.is_empty() && site.record.known > 0 && host.may_start(&site.tree));
            // Another host of its tree leads here in the next run: this one begins it, too. A home follows no other tree than its own.
            let follows = |place: &Place| place.tree == site.tree || !site.is_home();
            let runs = arrivals.iter().filter(|arrival| arrival.place.as_ref().is_some_and(follows)).map(|arrival| arrival.run);
            if let Some(run) = runs.max().filter(|run| *run > site.key.run && site.finished()) {
                let next = NextRun { host: host.clone(), address: site.address, tree: site.tree.clone(), run };
                self.begin_run(cx, replication, others, next);
            }
            return root;
        }
        let wanted = arrivals.iter().filter(|arrival| arrival.place.is_some()).map(|arrival| arrival.run).max();
        // Filed under what is claimed, not under what our own hierarchy says: so every member finds it.
        let claim = others.ownership.register().around(located.address);
        let subnet = claim.map_or_else(|| cx.unit_of(located.address), |claim| claim.subnet);
        let place = arrivals.iter().find_map(|arrival| arrival.place.as_ref());
        let tree = place.filter(|_| starting.is_none()).map_or_else(|| host.without_www(), |place| place.tree.clone());
        let run = if starting.is_some() { 1 } else { wanted.unwrap_or(1) };
        let key = JournalKey { subnet, host: host.clone(), run };
        self.begin_site(cx, replication, others, key, located.address, tree);
        starting
    }

    /// Opens a journal and the site that is its fold.
    fn begin_site(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        others: Others<'_>,
        key: JournalKey,
        address: IpAddr,
        tree: Host,
    ) {
        let number = self.sites.next_number();
        self.sites.insert(Site::open(key.clone(), address, tree.clone(), number, cx.now.wall));
        if let Some(until) = others.delegation.rests_until(&key.subnet) {
            self.fetches.rest(address, until);
        }
        replication.assign(others.migration.next_owner(&key.subnet), &key);
        self.journal(cx, replication, &key.host, JournalEntry::Opened { address, tree, at: cx.now.wall });
        let epoch = others.ownership.register().claim(&key.subnet).map_or(0, |claim| claim.epoch);
        if epoch > 1 {
            self.take_over(cx, replication, others, &key, epoch);
        }
    }

    /// In a journal that begins, or begins again with us, stands whose it was: since which epoch it is ours, and in the subnet's first
    /// what is known of the owners before.
    fn take_over(&mut self, cx: &mut Context, replication: &mut Replication, others: Others<'_>, key: &JournalKey, epoch: u64) {
        self.journal(cx, replication, &key.host, JournalEntry::TakenOver { epoch });
        if let Some(row) = others.migration.first_row(self, &key.subnet, &key.host) {
            self.journal(cx, replication, &key.host, row);
        }
    }

    /// A site begins where another's journal ends. `epoch` is that of our claim. Returns what the journal named for others, if that may go
    /// on its way at once.
    pub(crate) fn begin_from(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        others: Others<'_>,
        copy: JournalCopy,
        previous: Option<JournalCopy>,
        epoch: u64,
    ) -> Vec<Item> {
        let (key, taken_over) = (copy.key.clone(), copy.taken_over);
        let number = self.sites.next_number();
        let Some(replayed) = replay(key.clone(), number, &copy.entries, &cx.settings.rules, &cx.secret) else {
            cx.refuse("journals that do not begin with an opening");
            return Vec::new();
        };
        let Replayed { site, seen, children, cut, outgoing } = replayed;
        // Whatever the journal does not tell was asked after its last line: a whole rest from now is on the safe side.
        let politeness = self.fetches.scheduler().politeness();
        let rest = politeness.rest_after(site.last_took(), site.slowest_crawl_delay()).max(site.last_rest());
        self.fetches.rest(site.address, cx.now.moment.after(rest));
        let over = revisits::is_over(cx.now.wall, &site);
        self.sites.await_seen_set(number, key.host.clone());
        self.sites.insert(site);
        cx.signal(Signal::SiteChanged(key.host.clone()));
        cx.commands.push_back(Command::Store(StoreCommand::LoadSeen { site: number, seen, children, cut }));
        replication.assign(others.migration.next_owner(&key.subnet), &key);
        let outgoing = outgoing.into_iter().map(|(sequence, arrival)| Item { arrival, origin: Some((key.clone(), sequence)) });
        let outgoing = replication.take_over(cx, copy, outgoing.collect());
        if let Some(previous) = previous {
            replication.assign(others.migration.next_owner(&key.subnet), &previous.key);
            replication.take_over_previous_run(cx, previous);
        }
        if key.run > 1 {
            let before = JournalKey { run: key.run - 1, ..key.clone() };
            match self.sites.get_mut(&key.host) {
                Some(site) if !over => self.runs.remember(cx, site, before),
                _ => self.runs.supersede(key.host.clone(), before),
            }
        }
        if taken_over < epoch && epoch > 1 {
            self.take_over(cx, replication, others, &key, epoch);
        }
        outgoing
    }

    /// The seen set knows a loaded site: it may be visited.
    pub(crate) fn awake(&mut self, cx: &mut Context, number: SiteNumber) {
        if let Some(host) = self.sites.seen_set_knows(number) {
            self.questions.keep_front(cx, &mut self.sites, &host);
            self.want(cx, &host);
        }
    }
}

/// Sites are visited again.
impl Crawl {
    /// Trees whose time has come are visited again, under the next run's number; those whose budget was spent go on.
    pub(crate) fn tick_runs(&mut self, cx: &mut Context, replication: &mut Replication, others: Others<'_>) {
        for next in revisits::due(cx, &self.sites) {
            self.begin_run(cx, replication, others, next);
        }
        for host in revisits::resumable(cx, &self.sites) {
            self.journal(cx, replication, &host, JournalEntry::Resumed { at: cx.now.wall });
            self.want(cx, &host);
        }
    }

    /// Begins the next run of a site from the starting URLs of the last one.
    fn begin_run(&mut self, cx: &mut Context, replication: &mut Replication, others: Others<'_>, next: NextRun) {
        let NextRun { host, address, tree, run } = next;
        let Some(old) = self.sites.take_for_next_run(&host) else { return };
        cx.commands.push_back(Command::Store(StoreCommand::DropSeen(old.number)));
        self.fetches.drop_site(&old);
        self.begin_site(cx, replication, others, JournalKey { run, ..old.key.clone() }, address, tree);
        let urls: Vec<_> = old.starts.into_iter().map(|url| (url, 0, 0)).collect();
        if !urls.is_empty() {
            let Some(site) = self.sites.get(&host) else { return };
            let questions: Vec<(Fingerprint, u8)> = urls.iter().map(|(url, level, _)| (cx.secret.of(url.as_str()), *level)).collect();
            let batch = SeenBatch { site: site.number, depth: cx.settings.rules.depth, visited: None, questions };
            cx.commands.push_back(Command::Store(StoreCommand::Seen { ticket: SeenTicket::NO_ANSWER, batches: vec![batch] }));
            self.journal(cx, replication, &host, JournalEntry::Admitted { urls });
        }
        self.runs.drop_older(cx, replication, &host);
        replication.flush(cx);
        if let Some(site) = self.sites.get_mut(&host) {
            self.runs.remember(cx, site, old.key);
        }
    }

    /// The journal of a site's run before was read.
    pub(crate) fn previous_run_loaded(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        number: SiteNumber,
        host: &Host,
        pages: Option<u64>,
    ) {
        let Some(site) = self.sites.numbered_mut(host, number) else { return };
        site.memory = if pages.is_some() { Memory::Ready } else { Memory::None };
        if let (Some(pages), None) = (pages, site.record.changes) {
            let run = self.runs.before(site);
            self.journal(cx, replication, host, JournalEntry::Follows { run, pages });
        }
        self.want(cx, host);
    }

    /// Where a newer run is over, what the one before knew has served.
    pub(crate) fn drop_superseded(&mut self, cx: &mut Context, replication: &mut Replication) {
        self.runs.drop_superseded(cx, replication, &mut self.sites);
    }
}

/// Sites end.
impl Crawl {
    /// Forgets these sites of a subnet. With `reroute`, returns what they began with and what waits there, for their owner.
    pub(crate) fn dissolve(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        subnet: &Subnet,
        hosts: &[Host],
        reroute: bool,
    ) -> Vec<Item> {
        let mut items = Vec::new();
        for host in hosts {
            let Some(site) = self.sites.remove(subnet, host) else { continue };
            if reroute {
                items.extend(self.give_away(cx, &site));
            }
            self.fetches.drop_site(&site);
            replication.forget_site(&site.key);
            self.runs.forget(host);
            cx.commands.push_back(Command::Web(WebCommand::CloseConnection(site.address)));
            cx.commands.push_back(Command::Store(StoreCommand::DropSeen(site.number)));
        }
        items
    }

    /// What a site which is not ours any more began with, and all that waits there, for its owner. What was set aside is asked for.
    fn give_away(&mut self, cx: &mut Context, site: &Site) -> Vec<Item> {
        let (tree, run) = (&site.tree, site.key.run);
        let starts = site.starts.iter().filter(|_| site.is_home());
        let starts = starts.map(|url| Arrival { url: url.clone(), place: None, run });
        let waiting = site.frontier.near().map(|waiting| waiting.arrival(tree, run));
        let items = starts.chain(waiting).map(|arrival| Item { arrival, origin: None }).collect();
        let pages: Vec<_> = site.frontier.far().map(|(level, page)| (page, level)).collect();
        if !pages.is_empty() {
            let asked = pages.iter().map(|(page, _)| *page).collect();
            self.questions.take_aside(cx, site.number, asked, SeenPurpose::Elsewhere { tree: tree.clone(), run, pages });
        }
        items
    }
}

/// What others read.
impl Crawl {
    /// The sites that are open.
    pub(crate) fn sites(&self) -> &Sites {
        &self.sites
    }

    /// The site of a host, if it is open.
    pub(crate) fn site(&self, host: &Host) -> Option<&Site> {
        self.sites.get(host)
    }

    /// What is under way at servers.
    pub(crate) fn fetches(&self) -> &Fetches {
        &self.fetches
    }

    /// The caches in front of the seen set.
    pub(crate) fn links(&self) -> &LinkFilter {
        &self.links
    }

    /// Whether the disk has space.
    pub(crate) fn has_disk_space(&self) -> bool {
        self.disk_has_space
    }

    /// Whether the seen set, or the store of URLs set aside, has not answered yet.
    pub(crate) fn is_asking(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Whether nothing of a subnet's sites is under way: no request, no question to the seen set.
    pub(crate) fn is_quiet(&self, subnet: &Subnet) -> bool {
        let Some(hosts) = self.sites.hosts_of(subnet) else { return true };
        let busy = |host: &_| self.sites.get(host).is_some_and(|site| site.is_busy() || self.sites.is_asleep(site));
        !hosts.iter().any(busy) && !self.questions.concern(hosts)
    }
}
