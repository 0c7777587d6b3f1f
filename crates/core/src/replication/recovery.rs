//! A subnet became ours, or is ours no more: its history is fetched and read, its sites begin where the former owner stood, or are dissolved.

use crate::{
    crawl::site::replay::replay,
    crawler::Crawler,
    event::{Command, PeerCommand, StoreCommand, WebCommand},
    routing::outbox::Item,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::ClaimReason,
    journal::{Arrival, JournalEntry, JournalKey},
    subnet::Subnet,
    time::{Millis, Moment},
    url::Host,
};
use std::collections::{BTreeMap, BTreeSet};

/// One copy of a host's journal, here or at a keeper.
#[derive(Debug)]
pub(crate) struct JournalCopy {
    key: JournalKey,
    entries: Vec<JournalEntry>,
    /// The epoch of the owner who wrote its end, as far as that took over from another.
    taken_over: u64,
    /// Whether this is what our own store has.
    own: bool,
}

impl JournalCopy {
    fn rank(&self) -> (u64, u32, usize, bool) {
        (self.taken_over, self.key.run, self.entries.len(), self.own)
    }
}

/// A subnet that became ours and whose history is being fetched or read.
#[derive(Debug)]
pub(crate) struct Loading {
    /// Members still asked for what they kept; whoever did not answer is asked again then.
    asked: BTreeMap<AccessPoint, Option<Moment>>,
    /// Whether anybody answered.
    heard: bool,
    /// Whoever has not answered by then is not waited for; if nobody has, others are asked.
    until: Moment,
    /// How often nobody had answered by then.
    silences: u32,
    /// Whether our own store has been read.
    read: bool,
    /// The best copy of each host's journal so far.
    best: BTreeMap<Host, JournalCopy>,
    /// Of the run before each of these, if somebody kept it.
    former: BTreeMap<Host, JournalCopy>,
}

impl Loading {
    /// Keeps the better copy of each host's journal: that of the latest owner, of it the latest run, of it the longest.
    fn gather(&mut self, subnet: Subnet, journals: Vec<(JournalKey, Vec<JournalEntry>)>, own: bool) {
        for (key, entries) in journals {
            if key.subnet != subnet || !matches!(entries.first(), Some(JournalEntry::Opened { .. })) {
                continue;
            }
            let epochs = entries.iter().filter_map(|entry| if let JournalEntry::TakenOver { epoch } = entry { Some(*epoch) } else { None });
            let copy = JournalCopy { taken_over: epochs.max().unwrap_or(0), own, key, entries };
            let host = copy.key.host.clone();
            let beaten = match self.best.get(&host) {
                Some(known) if known.rank() >= copy.rank() => Some(copy),
                _ => self.best.insert(host.clone(), copy),
            };
            // What the run before it knew saves the new owner downloads.
            if let Some(other) = beaten.filter(|other| self.best.get(&host).is_some_and(|best| other.key.run + 1 == best.key.run))
                && self.former.get(&host).is_none_or(|known| (known.key.run, known.entries.len()) < (other.key.run, other.entries.len()))
            {
                self.former.insert(host, other);
            }
        }
    }
}

/// How long keepers may take to send what they kept.
const RECALL_PATIENCE: Millis = 20_000;

/// After how long a keeper that did not answer is asked again.
const RECALL_AGAIN: Millis = 2_000;

/// If no keeper at all answers, how many times that long a new owner waits before it begins from nothing: what others kept is worth
/// more than five minutes.
const MAX_SILENCES: u32 = 15;

/// Keepers that are asked: the two there should be, and one more in case the living changed meanwhile.
const KEEPERS_ASKED: usize = 3;

/// An owner without any history here rests its servers for so long (the former owner may have asked a moment ago).
const UNKNOWN_REST: Millis = 30_000;

impl Crawler {
    /// A subnet became ours, or was ours at the last stop: its history first, from our own store and from whoever kept it.
    pub(crate) fn load(&mut self, subnet: Subnet, asked: BTreeSet<AccessPoint>) {
        for from in &asked {
            self.context.commands.push_back(Command::Peers(PeerCommand::Recover { subnet, from: *from }));
        }
        self.context.commands.push_back(Command::Store(StoreCommand::Load(subnet)));
        let until = self.context.now.moment.after(RECALL_PATIENCE);
        let asked = asked.into_iter().map(|keeper| (keeper, None)).collect();
        self.replication.loading.insert(
            subnet,
            Loading { asked, heard: false, until, silences: 0, read: false, best: BTreeMap::new(), former: BTreeMap::new() },
        );
    }

    /// The same, from whoever should have kept it.
    pub(crate) fn load_from_keepers(&mut self, subnet: Subnet) {
        let keepers = self.likely_keepers(&subnet);
        self.load(subnet, keepers);
    }

    pub(crate) fn likely_keepers(&self, subnet: &Subnet) -> BTreeSet<AccessPoint> {
        self.stewards_of(subnet).into_iter().filter(|keeper| *keeper != self.context.me).take(KEEPERS_ASKED).collect()
    }

    /// A keeper sent all it had, or nothing came of asking it.
    pub(crate) fn recovered(&mut self, subnet: Subnet, from: AccessPoint, journals: Option<Vec<(JournalKey, Vec<JournalEntry>)>>) {
        let Some(loading) = self.replication.loading.get_mut(&subnet) else { return };
        let Some(again) = loading.asked.get_mut(&from) else { return };
        let Some(journals) = journals else {
            *again = Some(self.context.now.moment.after(RECALL_AGAIN));
            return;
        };
        loading.asked.remove(&from);
        loading.heard = true;
        loading.gather(subnet, journals, false);
        self.begin_if_known(subnet);
    }

    /// Our own store's journals of a subnet of ours were read.
    pub(crate) fn loaded(&mut self, subnet: Subnet, journals: Vec<(JournalKey, Vec<JournalEntry>)>) {
        let Some(loading) = self.replication.loading.get_mut(&subnet) else { return };
        loading.read = true;
        loading.gather(subnet, journals, true);
        self.begin_if_known(subnet);
    }

    pub(crate) fn stop_waiting_for_keepers(&mut self) {
        let now = self.context.now.moment;
        let (mut late, mut unheard) = (Vec::new(), Vec::new());
        for (subnet, loading) in &mut self.replication.loading {
            for (from, again) in &mut loading.asked {
                if again.is_some_and(|due| due <= now) {
                    *again = None;
                    self.context.commands.push_back(Command::Peers(PeerCommand::Recover { subnet: *subnet, from: *from }));
                }
            }
            if loading.until > now || loading.asked.is_empty() {
                continue;
            }
            if loading.heard || !loading.best.is_empty() || loading.silences >= MAX_SILENCES {
                loading.asked.clear();
                late.push(*subnet);
            } else {
                unheard.push(*subnet);
            }
        }
        for subnet in late {
            self.begin_if_known(subnet);
        }
        for subnet in unheard {
            let keepers = self.likely_keepers(&subnet);
            let Some(loading) = self.replication.loading.get_mut(&subnet) else { continue };
            loading.until = now.after(RECALL_PATIENCE);
            loading.silences += 1;
            loading.asked = keepers.iter().map(|keeper| (*keeper, None)).collect();
            self.context.commands.extend(keepers.into_iter().map(|from| Command::Peers(PeerCommand::Recover { subnet, from })));
            self.begin_if_known(subnet);
        }
    }

    /// When all that can be had of a subnet's history is here, its sites stand where their former owner stood.
    pub(crate) fn begin_if_known(&mut self, subnet: Subnet) {
        if self.replication.loading.get(&subnet).is_none_or(|loading| !loading.read || !loading.asked.is_empty()) {
            return;
        }
        let Some(loading) = self.replication.loading.remove(&subnet) else { return };
        self.report.mark_changed();
        let claim = self.ownership.register.claim(&subnet).filter(|claim| claim.owner == self.context.me);
        let Some((reason, epoch)) = claim.map(|claim| (claim.reason, claim.epoch)) else { return };
        if loading.best.is_empty() && matches!(reason, ClaimReason::OwnerDead | ClaimReason::Released | ClaimReason::Moved) {
            self.front_rest_subnet(subnet, UNKNOWN_REST);
        }
        let Loading { best, mut former, .. } = loading;
        let told = best.values().flat_map(|copy| &copy.entries);
        let told: Vec<_> =
            told.filter_map(|entry| if let JournalEntry::Chronicled(chronicle) = entry { Some(chronicle.clone()) } else { None }).collect();
        self.read_chronicles(subnet, told);
        let mut outgoing = Vec::new();
        for (host, copy) in best {
            let former = former.remove(&host).filter(|former| former.key.run + 1 == copy.key.run);
            outgoing.extend(self.begin_from(copy, former, epoch));
        }
        // Not before all stand: what leads from one to another must not open it anew.
        self.send_out(outgoing);
        self.yield_to_smaller(subnet);
        self.routing.wake_all();
    }

    /// A site begins where the journal ends. Returns what it named for others, if that may go on its way at once.
    pub(crate) fn begin_from(&mut self, copy: JournalCopy, former: Option<JournalCopy>, epoch: u64) -> Vec<Item> {
        let JournalCopy { key, entries, taken_over, own } = copy;
        self.crawl.next_site += 1;
        let number = self.crawl.next_site;
        let Some(replayed) = replay(key.clone(), number, &entries, &self.context.settings.rules, &self.context.secret) else {
            self.refuse("journals that do not begin with an opening");
            return Vec::new();
        };
        let (site, host, subnet) = (replayed.site, key.host.clone(), key.subnet);
        // Whatever the journal does not tell was asked after its last line: a whole rest from now is on the safe side.
        let rest = self.crawl.scheduler.politeness().rest_after(site.last_took(), site.slowest_crawl_delay()).max(site.last_rest());
        self.crawl.scheduler.rest(site.address, self.context.now.moment.after(rest));
        let upto = site.next_sequence();
        let run_before = (key.run > 1).then(|| JournalKey { run: key.run - 1, ..key.clone() });
        let over = self.is_over(&site);
        self.crawl.awakening.insert(number, host.clone());
        self.crawl.by_subnet.entry(subnet).or_default().insert(host.clone());
        self.report.site_changed(&host);
        self.crawl.sites.insert(host.clone(), site);
        self.replication.assign(&self.context, &self.membership, &self.migration, &key);
        self.context.commands.push_back(Command::Store(StoreCommand::LoadSeen {
            site: number,
            seen: replayed.seen,
            children: replayed.children,
            cut: replayed.cut,
        }));
        let outgoing = replayed.outgoing.into_iter();
        let mut outgoing: Vec<_> = outgoing.map(|(sequence, arrival)| Item { arrival, origin: Some((key.clone(), sequence)) }).collect();
        if own {
            self.replication.was_stored(&key, upto);
        } else {
            self.replication.adopt(&mut self.context, key, &entries, std::mem::take(&mut outgoing));
        }
        if let Some(former) = former {
            self.replication.assign(&self.context, &self.membership, &self.migration, &former.key);
            self.replication.adopt(&mut self.context, former.key, &former.entries, Vec::new());
        }
        match run_before {
            Some(run) if over => drop(self.crawl.superseded.insert(host.clone(), run)),
            Some(run) => self.remember_run(&host, run),
            None => {}
        }
        if taken_over < epoch && epoch > 1 {
            self.journal(&host, JournalEntry::TakenOver { epoch });
            self.carry_chronicle(subnet, &host);
        }
        outgoing
    }

    /// The seen set knows a loaded site: it may be visited.
    pub(crate) fn awake(&mut self, number: u64) {
        if let Some(host) = self.crawl.awakening.remove(&number) {
            self.keep_front(&host);
            self.want(&host);
        }
    }

    /// A subnet is not ours any more: nothing of it is asked, counted or sent from here. If another one has it, it is handed what
    /// its sites began with and what waits here: its claim may be as old as ours, or our keepers could not tell it.
    pub(crate) fn give_up(&mut self, subnet: Subnet) {
        let reroute = self.ownership.register.claim(&subnet).is_some();
        self.replication.loading.remove(&subnet);
        self.ownership.unwatch(&subnet);
        self.forget_accesses(&subnet);
        self.dissolve(subnet, reroute);
        self.report.mark_changed();
    }

    /// Forgets a subnet's sites. With `reroute` their waiting URLs go on their way again.
    pub(crate) fn dissolve(&mut self, subnet: Subnet, reroute: bool) {
        let hosts = self.crawl.by_subnet.get(&subnet).into_iter().flatten().cloned().collect();
        self.dissolve_hosts(subnet, hosts, reroute);
    }

    /// The same for some of a subnet's sites.
    pub(crate) fn dissolve_hosts(&mut self, subnet: Subnet, hosts: Vec<Host>, reroute: bool) {
        for host in hosts {
            if let Some(here) = self.crawl.by_subnet.get_mut(&subnet) {
                here.remove(&host);
            }
            let Some(site) = self.crawl.sites.remove(&host) else { continue };
            if reroute {
                let starts = site.starts.iter().map(|url| Arrival { url: url.clone(), place: None, run: site.key.run });
                self.routing.put(starts.filter(|_| site.is_home()).map(|arrival| Item { arrival, origin: None }));
                self.give_away(&site);
            }
            self.crawl.scheduler.drop_site(site.address, &host);
            self.replication.forget(&site.key);
            self.report.forget_site(&host);
            self.crawl.superseded.remove(&host);
            self.crawl.awakening.remove(&site.number);
            self.context.commands.push_back(Command::Web(WebCommand::CloseConnection(site.address)));
            self.context.commands.push_back(Command::Store(StoreCommand::DropSeen(site.number)));
        }
        if self.crawl.by_subnet.get(&subnet).is_some_and(BTreeSet::is_empty) {
            self.crawl.by_subnet.remove(&subnet);
        }
        // Whoever handed us URLs of these sites that were not recorded yet hears that they are not here.
        self.acknowledge();
    }
}
