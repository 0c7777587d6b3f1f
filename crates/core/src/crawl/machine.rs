//! State machine of the sites: begins them, resumes them from another owner's journal, begins their next runs, and ends them.
//!
//! Whatever happens to a site stands in its journal.

use super::{
    Crawl, CrawlReads,
    fetches::Fetches,
    link_filter::LinkFilter,
    moved_hosts::{Coming, Leaving, MayBegin, MovedHosts, look_ahead},
    release,
    revisits::{self, NextRun, Runs},
    seen_questions::{SeenPurpose, SeenQuestions},
    site::{
        Site,
        previous_run::Memory,
        replay::{Replayed, replay_for},
    },
    sites::Sites,
};
use crate::{
    context::Context,
    crawler::Settings,
    event::{Command, DiskRoom, PeerCommand, PreviousRunRead, StoreCommand, WebCommand},
    replication::{Replication, loading::JournalCopy},
    routing::outbox::Item,
    signal::Signal,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{FetchError, LocatedHost, ResolveError},
    fingerprint::Fingerprint,
    ids::{SeenTicket, SiteNumber},
    journal::{Arrival, JournalEntry, JournalKey, Place, VisitOutcome},
    message::Response,
    seen::SeenBatch,
    subnet::Subnet,
    time::{Millis, Moment, WallTime},
    url::{Host, PageUrl},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

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
            moved: MovedHosts::default(),
            disk: DiskRoom::Enough,
            to_release: false,
        }
    }

    /// The disk has space, or has none any more.
    pub(crate) fn disk_space(&mut self, room: DiskRoom) {
        self.disk = room;
    }

    /// Counts the URLs that wait at all sites together, in line or because of limits.
    pub(crate) fn count_waiting(&mut self) {
        self.sites.count_waiting(self.fetches.scheduler().crowd());
        self.links.count_held_back(self.sites.all());
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
            self.fetches.want(site, &cx.secret);
        }
    }

    /// What surveys wish for a host may be another: something else leads to it now.
    pub(super) fn wish_anew(&mut self, cx: &Context, host: &Host) {
        let Some(site) = self.sites.get_mut(host) else { return };
        let wishes = cx.wishes_for(host, &site.tree, site.address, site.starts.iter());
        site.wish(wishes, &cx.settings.rules);
    }

    /// Surveys began, changed or ended: what they wish for holds from now on.
    pub(crate) fn wishes_changed(&mut self, cx: &mut Context) {
        let hosts: Vec<Host> = self.sites.all().map(|site| site.key.host.clone()).collect();
        for host in hosts {
            let before = self.sites.get(&host).map(|site| site.wishes);
            self.wish_anew(cx, &host);
            if self.sites.get(&host).map(|site| site.wishes) != before {
                cx.signal(Signal::SiteChanged(host.clone()));
                self.want(cx, &host);
            }
        }
    }

    /// Other opt-outs are in force: what is under way at a server that wants no requests is broken off. A large page, or one that comes
    /// slowly, would go on for as long as a request may take.
    pub(crate) fn break_off(&self, cx: &mut Context) {
        let covered = |address: IpAddr, host: &Host| {
            let asked = self.sites.get(host).map(|site| site.asked_host(cx.now.wall));
            asked.iter().chain([host]).any(|host| cx.opted_out.covers(host, Some(address)))
        };
        let addresses: Vec<IpAddr> =
            self.fetches.under_way().filter(|(address, host)| covered(*address, host)).map(|(address, _)| address).collect();
        let close = |address| Command::Web(WebCommand::CloseConnection(address));
        cx.commands.extend(addresses.into_iter().map(close));
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
        others: CrawlReads<'_>,
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
            let later = runs.max().filter(|run| *run > site.key.run && site.finished());
            let is_due = |run: &u32| revisits::may_be(cx, site, *run);
            if later.is_some_and(|run| !is_due(&run)) {
                cx.refuse("runs that are not due");
            } else if let Some(run) = later {
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
        let run = if starting.is_some() { 1 } else { wanted.unwrap_or(1).min(revisits::MAX_FIRST) };
        let key = JournalKey { subnet, host: host.clone(), run };
        let starts: Vec<_> = arrivals.iter().filter(|arrival| arrival.place.is_none()).map(|arrival| &arrival.url).collect();
        self.begin_site(cx, replication, others, key, (located.address, tree), &starts);
        starting
    }

    /// Opens a journal and the site that is its fold.
    fn begin_site(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        others: CrawlReads<'_>,
        key: JournalKey,
        (address, tree): (IpAddr, Host),
        starts: &[&PageUrl],
    ) {
        let number = self.sites.next_number();
        let mut site = Site::open(key.clone(), address, tree.clone(), number, cx.now.wall);
        site.wish(cx.wishes_for(&key.host, &tree, address, starts.iter().copied()), &cx.settings.rules);
        self.sites.insert(site);
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
    fn take_over(&mut self, cx: &mut Context, replication: &mut Replication, others: CrawlReads<'_>, key: &JournalKey, epoch: u64) {
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
        others: CrawlReads<'_>,
        copy: JournalCopy,
        previous: Option<JournalCopy>,
        epoch: u64,
    ) -> Vec<Item> {
        let (key, taken_over, left_over) = (copy.key.clone(), copy.taken_over, copy.left_over);
        let number = self.sites.next_number();
        let Some(replayed) = replay_for(key.clone(), number, &copy.entries, cx) else {
            cx.refuse("journals that do not begin with an opening");
            return Vec::new();
        };
        let Replayed { site, seen, children, cut, outgoing } = replayed;
        // Of a journal on its way from another subnet not all was copied: its owner there goes on.
        if !site.has_ended() && !key.subnet.contains(site.address) {
            cx.refuse("journals of addresses in other subnets");
            return Vec::new();
        }
        if let Some(other) = self.sites.get(&key.host).filter(|other| other.key.subnet != key.subnet) {
            if other.rank() >= site.rank() {
                return Vec::new();
            }
            let filed = other.key.subnet;
            self.dissolve(cx, replication, &filed, std::slice::from_ref(&key.host), false);
        }
        if let Some((_, address)) = site.went_to() {
            self.moved.leave(LocatedHost { host: key.host.clone(), address, valid_for: 0 });
            self.moved.stop(&key.host);
        }
        if left_over {
            // Sums are not exact before it is known whether another owner has it.
            self.moved.check_anew(&key.host, cx.now.moment);
            self.moved.has_come(cx.now.moment);
        }
        // Whatever the journal does not tell was asked after its last line: a whole rest from now is on the safe side.
        let politeness = self.fetches.scheduler().politeness();
        let rest = site.wishes.rest_after(politeness, site.last_took(), site.slowest_crawl_delay()).max(site.last_rest());
        self.fetches.rest(site.address, cx.now.moment.after(rest));
        self.sites.await_seen_set(number, key.host.clone());
        self.to_release |= site.held.counts().is_any();
        // The run before may be of today, too: this one names what that led to by fingerprints only.
        previous.iter().for_each(|previous| self.links.recall(cx, &previous.entries));
        self.links.recall(cx, &copy.entries);
        self.sites.insert(site);
        cx.signal(Signal::SiteChanged(key.host.clone()));
        cx.commands.push_back(Command::Store(StoreCommand::LoadSeen { site: number, seen, children, cut }));
        replication.assign(others.migration.next_owner(&key.subnet), &key);
        let outgoing = outgoing.into_iter().map(|(sequence, arrival)| Item { arrival, origin: Some((key.clone(), sequence)) });
        let outgoing = replication.take_over(cx, copy, outgoing.collect());
        self.goes_on_in(cx, replication, others, &key, previous);
        if taken_over < epoch && epoch > 1 {
            self.take_over(cx, replication, others, &key, epoch);
        }
        outgoing
    }

    /// A site that another one began goes on in this run: it is compared with the run before as long as it is not over. Whoever goes on after
    /// us needs that one, too. `previous` is what others kept of it.
    fn goes_on_in(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        others: CrawlReads<'_>,
        key: &JournalKey,
        previous: Option<JournalCopy>,
    ) {
        let Some(site) = self.sites.get_mut(&key.host).filter(|_| key.run > 1) else { return };
        let known = previous.as_ref().map_or(key.run - 1, |previous| previous.key.run);
        let run = site.record.changes.map_or(known, |changes| changes.compared_run);
        let before = JournalKey { run, ..key.clone() };
        replication.assign(others.migration.next_owner(&key.subnet), &before);
        if let Some(previous) = previous.filter(|previous| previous.key == before) {
            replication.take_over_previous_run(cx, previous);
        }
        if revisits::is_over(cx.now.wall, site) {
            site.counts_as_whole();
            self.runs.supersede(key.host.clone(), before);
        } else {
            self.runs.remember(cx, site, before);
        }
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
    pub(crate) fn tick_runs(&mut self, cx: &mut Context, replication: &mut Replication, others: CrawlReads<'_>) {
        let room = |address| self.fetches.scheduler().room_for_runs(address);
        let ahead = revisits::due(cx, &self.sites, look_ahead, room);
        let now = revisits::due(cx, &self.sites, |_| 0, room);
        for next in ahead {
            self.moved.check(&next.host, cx.now.moment);
        }
        for next in now {
            if self.moved.may_begin(&next.host, cx.now.moment) == MayBegin::Now {
                self.begin_run(cx, replication, others, next);
            }
        }
        for host in revisits::resumable(cx, &self.sites) {
            self.journal(cx, replication, &host, JournalEntry::Resumed { at: cx.now.wall });
            self.want(cx, &host);
        }
    }

    /// The subnets in which something is to be asked until then.
    pub(crate) fn with_work_until(&self, cx: &Context, until: WallTime) -> impl Iterator<Item = Subnet> {
        self.sites.all().filter(move |site| revisits::has_work_until(cx, site, until)).map(|site| site.key.subnet)
    }

    /// Begins the next run of a site from the starting URLs of the last one.
    fn begin_run(&mut self, cx: &mut Context, replication: &mut Replication, others: CrawlReads<'_>, next: NextRun) {
        let NextRun { host, address, tree, run } = next;
        let Some(old) = self.sites.take_for_next_run(&host) else { return };
        let is_gone = self.moved.begins(&host);
        cx.commands.push_back(Command::Store(StoreCommand::DropSeen(old.number)));
        self.fetches.drop_site(&old, &cx.secret);
        let earlier = [old.whole_run(), old.named_row(), old.history_row()];
        let held = old.held.passed_on(run, |arrival| release::in_scope(cx, arrival));
        let starts: Vec<_> = old.starts.iter().collect();
        self.begin_site(cx, replication, others, JournalKey { run, ..old.key.clone() }, (address, tree), &starts);
        for row in earlier.into_iter().flatten().chain(held) {
            self.journal(cx, replication, &host, row);
        }
        let urls: Vec<_> = old.starts.into_iter().map(|url| (url, 0, 0)).collect();
        if !urls.is_empty() {
            let Some(site) = self.sites.get(&host) else { return };
            let questions: Vec<(Fingerprint, u8)> = urls.iter().map(|(url, level, _)| (cx.secret.of(url.as_str()), *level)).collect();
            let batch = SeenBatch { site: site.number, depth: site.depth(&cx.settings.rules), visited: None, questions };
            cx.commands.push_back(Command::Store(StoreCommand::Seen { ticket: SeenTicket::NO_ANSWER, batches: vec![batch] }));
            let starts: Vec<_> = urls.iter().map(|(url, ..)| url.clone()).collect();
            self.journal(cx, replication, &host, JournalEntry::Admitted { urls });
            if is_gone {
                self.not_asked(cx, replication, &host, starts);
            }
        }
        self.runs.drop_older(cx, replication, &old.key);
        replication.flush(cx);
        if let Some(site) = self.sites.get_mut(&host) {
            self.runs.remember(cx, site, old.key);
        }
    }

    /// Limits let go on what they have held back for long enough, and what was not queued for want of room is.
    pub(crate) fn release(&mut self, cx: &mut Context, replication: &mut Replication, others: CrawlReads<'_>) {
        let mut room = release::room(cx, self.sites.waiting());
        let held = self.sites.all().filter(|site| site.held.counts().is_any());
        // Whoever does not know yet where it stands is looked at again.
        self.to_release = held.clone().any(|site| self.sites.is_asleep(site));
        let hosts: Vec<_> = held.filter(|site| self.may_ask(cx, others, site)).map(|site| site.key.host.clone()).collect();
        for host in hosts {
            let Some(site) = self.sites.get_mut(&host) else { continue };
            let (number, depth) = (site.number, site.depth(&cx.settings.rules));
            let pages = if site.held.calls() { site.held.call(room.min(release::QUEUED_AT_ONCE)) } else { Vec::new() };
            let rows = release::rows(cx, &mut self.links, site);
            if !pages.is_empty() {
                room -= pages.len();
                let batch = SeenBatch { site: number, depth, visited: None, questions: pages.clone() };
                self.questions.ask(cx, vec![batch], SeenPurpose::Relax { host: host.clone(), site: number, pages });
            }
            rows.into_iter().for_each(|row| self.journal(cx, replication, &host, row));
        }
    }

    /// Whether limits let go on something that waits.
    pub(crate) fn has_to_release(&self, cx: &Context) -> bool {
        let room = release::room(cx, self.sites.waiting()) > 0;
        let is_due = |site: &Site| !site.has_ended() && (release::is_due(cx, site) || (room && site.held.calls()));
        self.to_release || self.sites.all().any(is_due)
    }

    /// The name of a host has no address any more: nobody is asked for its starting URLs, and the run is over.
    fn not_asked(&mut self, cx: &mut Context, replication: &mut Replication, host: &Host, urls: Vec<PageUrl>) {
        for url in urls {
            let visit = JournalEntry::Visited {
                url,
                level: 0,
                at: cx.now.wall,
                outcome: VisitOutcome::Failed(FetchError::NoAddress),
                took: 0,
                first_byte_us: None,
                bytes: 0,
                software: None,
                children: Vec::new(),
                found: Vec::new(),
                outgoing: Vec::new(),
                beyond_scope: Vec::new(),
                rest: None,
            };
            self.journal(cx, replication, host, visit);
        }
    }

    /// The journal of a site's run before was read.
    pub(crate) fn previous_run_loaded(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        number: SiteNumber,
        journal: &JournalKey,
        read: Option<PreviousRunRead>,
    ) {
        let host = &journal.host;
        let Some(site) = self.sites.numbered_mut(host, number) else { return };
        site.memory = if read.is_some() { Memory::Ready } else { Memory::None };
        let has_begun = site.record.changes.is_some();
        match read {
            Some(PreviousRunRead { pages, rows }) => {
                replication.holds(journal, rows);
                if !has_begun {
                    self.journal(cx, replication, host, JournalEntry::Follows { run: journal.run, pages });
                }
            }
            None => replication.retire(journal),
        }
        self.want(cx, host);
    }

    /// Where a newer run is over, what the one before knew has served.
    pub(crate) fn drop_superseded(&mut self, cx: &mut Context, replication: &mut Replication) {
        self.runs.drop_superseded(cx, replication, &mut self.sites);
    }
}

/// Hosts move.
impl Crawl {
    /// Which hosts leave and come, to be read.
    pub(crate) fn moved(&self) -> &MovedHosts {
        &self.moved
    }

    /// Which hosts' stewards may not know where they are, by steward: members come and go. `steward_of` says who it is in a swarm of so many.
    pub(crate) fn untold_stewards(
        &mut self,
        members: usize,
        steward_of: impl Fn(&Host) -> Option<AccessPoint>,
    ) -> BTreeMap<AccessPoint, Vec<(Host, IpAddr)>> {
        let most = MovedHosts::most_looked_at(members);
        let sites = self.sites.after(self.moved.looked_at()).filter(|site| site.key.host.address().is_none() && !site.has_ended());
        let hosts = sites.take(most).filter_map(|site| Some((site.key.host.clone(), site.address, steward_of(&site.key.host)?)));
        let hosts = hosts.collect();
        self.moved.look_at(hosts, most)
    }

    /// These hosts' steward heard where they are and says nothing else, or it is told again.
    pub(crate) fn stewards_heard(&mut self, hosts: &[Host], agreed: bool) {
        if agreed {
            self.moved.stewards_agree(hosts);
        } else {
            self.moved.not_told(hosts);
        }
    }

    /// Sites of a subnet that became ours begin with copies of their journals, which may be left over of hosts that went to another address
    /// long ago: their stewards are told first.
    pub(crate) fn await_stewards(&mut self, cx: &Context, subnet: &Subnet) {
        let sites = self.sites.within(subnet).filter(|host| host.address().is_none()).cloned();
        self.moved.await_stewards(sites, cx.now.moment);
    }

    /// A member says that a host of ours is elsewhere, or we heard so: it is looked up. Whether the host is ours.
    pub(crate) fn may_have_moved(&mut self, cx: &Context, located: &LocatedHost) -> bool {
        let moved = self.sites.get(&located.host).is_some_and(|site| site.address != located.address);
        if moved && self.moved.destination(&located.host).is_none() {
            self.moved.check(&located.host, cx.now.moment);
        }
        moved
    }

    /// Hosts whose stewards are to be asked now whether they are still at these addresses.
    pub(crate) fn next_to_confirm(&mut self, cx: &Context) -> Vec<(Host, IpAddr)> {
        let hosts = self.moved.next_to_ask(cx.now.moment, |host| self.sites.get(host).is_some());
        hosts.into_iter().filter_map(|host| Some((host.clone(), self.sites.get(&host)?.address))).collect()
    }

    /// The steward of a host said where it is.
    pub(crate) fn confirmed(&mut self, cx: &Context, host: &Host, answer: &Result<LocatedHost, ResolveError>) {
        let Some(site) = self.sites.get(host) else { return };
        let (address, ended) = (site.address, site.has_ended());
        if self.moved.confirmed(host, answer, |located| located.address == address && !ended) {
            self.want(cx, host);
        }
    }

    /// The new owner of a host does not take it: where the host is has to be found out anew.
    pub(crate) fn not_taken(&mut self, cx: &Context, located: &LocatedHost) {
        if self.moved.destination(&located.host).is_some_and(|there| there.address == located.address) {
            self.moved.check_anew(&located.host, cx.now.moment);
        }
    }

    /// Whether no URL may be taken in for a host now: it leaves or comes, or is looked up before its run of this number.
    pub(crate) fn holds_back(&mut self, cx: &Context, host: &Host, run: u32) -> bool {
        if self.moved.is_coming(host) {
            return true;
        }
        let Some(site) = self.sites.get(host) else { return false };
        if site.has_ended() || self.moved.has_stopped(host) {
            return true;
        }
        let begins = run > site.key.run && site.finished();
        begins && self.moved.may_begin(host, cx.now.moment) == MayBegin::NotYet
    }

    /// The hosts whose turn it is to be taken a step further on their way from here.
    pub(crate) fn next_steps(&mut self) -> Vec<Host> {
        self.moved.next_steps()
    }

    /// Asks a host nothing more. Whether nothing of it is under way.
    pub(crate) fn stop_host(&mut self, host: &Host) -> bool {
        self.moved.stop(host);
        let Some(site) = self.sites.get(host) else { return false };
        !site.is_busy() && !self.sites.is_asleep(site) && !self.questions.concern(&BTreeSet::from([host.clone()]))
    }

    /// A host has another address: that stands in its journal from now on. In the same subnet it goes on there.
    pub(crate) fn note_moved(&mut self, cx: &mut Context, replication: &mut Replication, located: &LocatedHost, to: Subnet) {
        let Some(site) = self.sites.get(&located.host) else { return };
        let (from, before) = (site.key.subnet, site.address);
        self.fetches.drop_site(site, &cx.secret);
        self.journal(cx, replication, &located.host, JournalEntry::Moved { from, to, address: located.address });
        replication.flush(cx);
        if before != located.address {
            cx.commands.push_back(Command::Web(WebCommand::CloseConnection(before)));
        }
        if from == to {
            self.sites.moved(before, located.address);
            self.moved.has_moved(&located.host, cx.now.moment);
            self.want(cx, &located.host);
        }
    }

    /// Whether the owner of a host's new address is to be asked now, or our own store be read.
    pub(crate) fn should_offer(&mut self, cx: &Context, host: &Host) -> bool {
        self.moved.should_offer(host, cx.now.moment)
    }

    /// A host of ours that leaves, to be changed.
    pub(crate) fn leaving_mut(&mut self, host: &Host) -> Option<&mut Leaving> {
        self.moved.leaving_mut(host)
    }

    /// Journals of a subnet of ours were read: those of hosts that go on in another subnet of ours.
    pub(crate) fn read_here(&self, journals: &[(JournalKey, Vec<JournalEntry>)]) -> Vec<(JournalKey, Vec<JournalEntry>)> {
        let wanted = self.moved.read_here();
        let ours = |key: &JournalKey| wanted.contains(&key.host) && self.sites.get(&key.host).is_some_and(|site| site.key == *key);
        journals.iter().filter(|(key, _)| ours(key)).cloned().collect()
    }

    /// A host has left: its journals are of no use here any more.
    pub(crate) fn has_left(&mut self, cx: &mut Context, host: &Host) {
        if let Some(site) = self.sites.get(host) {
            let before = JournalKey { run: site.key.run.saturating_add(1), ..site.key.clone() };
            cx.commands.push_back(Command::Store(StoreCommand::DropRuns { before, but_newest: false }));
        }
        self.moved.has_moved(host, cx.now.moment);
    }

    /// A member wants us to take the journals of a host that has an address of ours now. Where the host would go on, if its steward is to be
    /// asked whether it is there; else the answer. `is_resting` is whether we ask nothing at the moment, or stop.
    pub(crate) fn may_come(
        &self,
        cx: &mut Context,
        replication: &Replication,
        others: CrawlReads<'_>,
        coming: &Coming,
        is_resting: bool,
    ) -> Result<Subnet, Response> {
        let Coming { from, located, journal, .. } = coming;
        let latest = others.ownership.register().latest(&journal.subnet);
        if !latest.is_some_and(|held| held.claim.owner == *from && !held.claim.released) || journal.host != located.host {
            cx.refuse("hosts handed over by others than their owners");
            return Err(Response::Refused("the sender does not own the journal's subnet".to_owned()));
        }
        let subnet = others.ownership.own_subnet_around(cx.me, located.address);
        let subnet = subnet.ok_or_else(|| Response::Refused("another member owns the address".to_owned()))?;
        let changing = replication.is_loading(&subnet) || others.migration.has_stopped(&subnet);
        if changing || is_resting || !journal.is_plausible() { Err(Response::Busy(1_000)) } else { Ok(subnet) }
    }

    /// The steward of a host that comes to this subnet of ours said whether it is at the address; none if that is being found out. Has its
    /// journals fetched, unless they are here. The answer: [`Response::Noted`] once they are recorded here.
    pub(crate) fn comes(
        &mut self,
        cx: &mut Context,
        replication: &Replication,
        subnet: Subnet,
        coming: Coming,
        is_there: Option<bool>,
    ) -> Response {
        match is_there {
            None => return Response::Busy(1_000),
            Some(false) => return Response::Refused("the host's steward says otherwise".to_owned()),
            Some(true) => {}
        }
        let site = self.sites.get(&coming.located.host).filter(|site| !site.has_ended());
        if let Some((site, upto)) = site.and_then(|site| Some((site, coming.is_had_by(site, subnet)?))) {
            return if replication.is_recorded(&site.key, upto) { Response::Noted } else { Response::Busy(1_000) };
        }
        let (from, filed, host) = (coming.from, coming.journal.subnet, coming.located.host.clone());
        if self.moved.expect(coming) {
            cx.commands.push_back(Command::Peers(PeerCommand::Recover { subnet: filed, host: Some(host), from }));
            cx.signal(Signal::RollUpChanged);
        }
        Response::Busy(1_000)
    }

    /// They came from a member, who files them under the subnet `filed`, or they did not: then it asks again. Returns the copy that the site
    /// begins with, and that of the run before, if it goes on here.
    pub(crate) fn host_arrived(
        &mut self,
        cx: &mut Context,
        replication: &Replication,
        others: CrawlReads<'_>,
        host: &Host,
        (from, filed): (AccessPoint, Subnet),
        journals: &[(JournalKey, Vec<JournalEntry>)],
    ) -> Option<(JournalCopy, Option<JournalCopy>)> {
        let coming = self.moved.arrived(host, from, &filed)?;
        let subnet = others.ownership.own_subnet_around(cx.me, coming.located.address)?;
        if replication.is_loading(&subnet) || others.migration.has_stopped(&subnet) {
            return None;
        }
        let copy = coming.copy(subnet, journals)?;
        if !coming.leads_here(&copy) {
            cx.refuse("journals of hosts that did not move here");
            return None;
        }
        let previous = coming.previous(&copy, journals);
        Some((copy, previous))
    }

    /// A host goes on here.
    pub(crate) fn has_come(&mut self, cx: &Context) {
        self.moved.has_come(cx.now.moment);
    }

    /// Does not wait any more for hosts that should have come long ago, nor for stewards that should have answered.
    pub(crate) fn expire_hosts(&mut self, cx: &Context) {
        self.moved.expire(cx.now.moment);
    }

    /// Whether our sums may lack a host on its way, or others' have it, too: those told within this time may be of before.
    pub(crate) fn hosts_are_settling(&self, cx: &Context, within: Millis) -> bool {
        self.moved.is_settling(cx.now.moment, within)
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
            self.fetches.drop_site(&site, &cx.secret);
            replication.forget_site(&site.key);
            self.runs.forget(host);
            self.moved.forget(host);
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
        // A home is crawled from its starting URLs again, and finds them again.
        let is_left = !site.is_home() && !site.has_ended();
        let held = site.held.in_line().filter(|_| is_left).flat_map(|(.., urls)| urls.filter(|url| release::in_scope(cx, url)).cloned());
        let items = starts.chain(waiting).chain(held).map(|arrival| Item { arrival, origin: None }).collect();
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

    /// Gives somebody else a turn at an address of ours: when it begins; none if a request is under way there. `asks` is whether we may ask
    /// servers anything ourselves now.
    pub(crate) fn lend(&mut self, cx: &Context, address: IpAddr, length: Millis, asks: bool) -> Option<Moment> {
        self.fetches.lend(address, cx.now.moment, length, asks)
    }

    /// The caches in front of the seen set.
    pub(crate) fn links(&self) -> &LinkFilter {
        &self.links
    }

    /// Whether the disk has space.
    pub(crate) fn has_disk_space(&self) -> bool {
        self.disk == DiskRoom::Enough
    }

    /// Whether the disk has space, and if not, why.
    pub(crate) fn disk_room(&self) -> DiskRoom {
        self.disk
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
