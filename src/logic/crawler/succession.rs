//! Who comes after? An owner died, left, or lost: its subnets go to the runner-up or the next steward, with their history.

use super::{Command, Crawler};
use crate::{
    logic::{outbox::Item, site::replay::replay},
    model::{
        access_point::{AccessPoint, ShortId},
        claim::{Answer, Claim, ClaimReason, MOST_ANSWERS, SignedClaim},
        journal::{Arrival, JournalEntry, JournalKey},
        message::Request,
        subnet::Subnet,
        time::{Millis, Moment},
        url::Host,
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// One copy of a host's journal, here or at a keeper.
#[derive(Debug)]
pub(super) struct Copy {
    key: JournalKey,
    entries: Vec<JournalEntry>,
    /// The epoch of the owner who wrote its end, as far as that took over from another.
    taken_over: u64,
    /// Whether this is what our own store has.
    own: bool,
}

impl Copy {
    fn rank(&self) -> (u64, u32, usize, bool) {
        (self.taken_over, self.key.run, self.entries.len(), self.own)
    }
}

/// A subnet that became ours and whose history is being fetched or read.
#[derive(Debug)]
pub(super) struct Loading {
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
    best: BTreeMap<Host, Copy>,
    /// Of the run before each of these, if somebody kept it.
    former: BTreeMap<Host, Copy>,
}

impl Loading {
    /// Keeps the better copy of each host's journal: that of the latest owner, of it the latest run, of it the longest.
    fn gather(&mut self, subnet: Subnet, journals: Vec<(JournalKey, Vec<JournalEntry>)>, own: bool) {
        for (key, entries) in journals {
            if key.subnet != subnet || !matches!(entries.first(), Some(JournalEntry::Opened { .. })) {
                continue;
            }
            let epochs = entries.iter().filter_map(|entry| if let JournalEntry::TakenOver { epoch } = entry { Some(*epoch) } else { None });
            let copy = Copy { taken_over: epochs.max().unwrap_or(0), own, key, entries };
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

/// How long each next successor waits for the one before it to claim.
const TURN: Millis = 10_000;

/// How long keepers may take to send what they kept.
const RECALL_PATIENCE: Millis = 20_000;

/// After how long a keeper that did not answer is asked again.
const RECALL_AGAIN: Millis = 2_000;

/// If no keeper at all answers, how many times that long a new owner waits before it begins from nothing: what others kept is worth
/// more than five minutes.
const MOST_SILENCES: u32 = 15;

/// Keepers that are asked: the two there should be, and one more in case the living changed meanwhile.
const KEEPERS_ASKED: usize = 3;

/// An owner without any history here rests its servers for so long (the former owner may have asked a moment ago).
const UNKNOWN_REST: Millis = 30_000;

/// How long a leaver or a stopping daemon waits for its keepers.
const PARTING_PATIENCE: Millis = 15_000;

impl Crawler {
    /// The roster gave somebody up.
    pub(super) fn dead(&mut self, gone: AccessPoint) {
        self.dead_since.insert(gone, self.now.moment);
        self.tick_succession();
    }

    /// An owner released a subnet.
    pub(super) fn freed(&mut self, claim: &Claim) {
        self.freed.insert(claim.subnet, self.now.moment);
    }

    /// Takes over what is ours to take over.
    pub(super) fn tick_succession(&mut self) {
        let now = self.now.moment;
        self.stop_waiting_for_keepers();
        if !self.synced || self.leaving || self.draining || !self.roster.may_claim(now) {
            return;
        }
        let mut claims = Vec::new();
        let owners: Vec<_> = self.ownership.owners().filter(|owner| *owner != self.me).collect();
        self.dead_since.retain(|gone, _| owners.contains(gone));
        for owner in owners {
            if self.roster.standings().contains_key(&owner) {
                self.dead_since.remove(&owner);
                continue;
            }
            // Somebody whom we never met died before our time, or is about to be met.
            let patience = self.settings.roster.dead_after;
            let since = *self.dead_since.entry(owner).or_insert(now.after(patience));
            claims.extend(self.heir_to(&owner, since));
        }
        let freed: Vec<_> = self.freed.iter().map(|(subnet, since)| (*subnet, *since)).collect();
        for (subnet, since) in freed {
            match self.ownership.latest(&subnet).map(|held| held.claim.clone()) {
                Some(claim) if claim.released => {
                    let handed = self.was_handed(&subnet, claim.epoch);
                    let reason = if handed { ClaimReason::Moved } else { ClaimReason::Released };
                    claims.extend(self.heir_of(&claim, since, reason));
                }
                _ => {
                    self.freed.remove(&subnet);
                }
            }
        }
        claims.retain(|claim| self.inheriting.insert((claim.subnet, claim.epoch)));
        self.make_claims(claims);
    }

    fn heir_to(&self, owner: &AccessPoint, since: Moment) -> Vec<Claim> {
        let held = self.ownership.held_by(owner).filter_map(|subnet| self.ownership.claim(&subnet));
        held.filter_map(|claim| self.heir_of(claim, since, ClaimReason::OwnerDead)).collect()
    }

    /// Our claim to what this one leaves, if it is our turn.
    fn heir_of(&self, last: &Claim, since: Moment, reason: ClaimReason) -> Option<Claim> {
        let live = self.live();
        let heirs = self.heirs(last, &live);
        let turn = heirs.iter().position(|heir| *heir == self.me)? as u64;
        if self.now.moment < since.after(turn * TURN) {
            return None;
        }
        // What was measured goes on to those who come after us; the one before us may come back.
        let mine = ShortId::from(self.me);
        let timed = self.knowledge.measurements(&last.subnet).find(|(who, _)| *who == self.me).map(|(_, rtt)| rtt);
        let answered = last.answers.iter().find(|answer| answer.prober == mine).map(|answer| answer.rtt_us);
        let rtt_us = timed.into_iter().chain(answered).min();
        // Whoever released it said how far it has come to be from there.
        let said = last.answers.iter().any(|answer| answer.prober == ShortId::from(last.owner));
        let before = last.rtt_us.filter(|_| !said).map(|rtt_us| Answer { rtt_us, prober: last.owner.into() });
        let mut answers: Vec<_> = last.answers.iter().copied().filter(|answer| answer.prober != mine).chain(before).collect();
        answers.sort_unstable();
        answers.truncate(MOST_ANSWERS);
        let runner_up = measured_heirs(&answers, &live).next();
        let (subnet, epoch, owner) = (last.subnet, last.epoch + 1, self.me);
        Some(Claim { subnet, epoch, owner, rtt_us, runner_up, probes: 0, reason, released: false, answers })
    }

    /// Who may take over, in the order of their turns: the runner-up, those who measured the subnet, the nearest first, then its
    /// stewards. The claim alone says so: everybody has the same order, as far as they agree on who is alive.
    fn heirs(&self, last: &Claim, live: &[AccessPoint]) -> Vec<AccessPoint> {
        let mut heirs: Vec<AccessPoint> = Vec::new();
        // Whom a release names may be claiming at this moment: that it seems silent to us does not make it our turn, only its death does.
        let released_to = |heir: &AccessPoint| last.released && (*heir == self.me || self.roster.standings().contains_key(heir));
        let runner_up = last.runner_up.filter(|heir| live.contains(heir) || released_to(heir));
        let stewards = self.stewards_of(&last.subnet);
        for heir in runner_up.into_iter().chain(measured_heirs(&last.answers, live)).chain(stewards) {
            if !heirs.contains(&heir) {
                heirs.push(heir);
            }
        }
        heirs
    }

    /// Claims of ours are durable: they hold, are told, and bring their history.
    pub(super) fn own_claims_stored(&mut self, proofs: Vec<SignedClaim>) {
        for proof in proofs {
            let Ok(claim) = proof.read() else { continue };
            let (subnet, epoch, released) = (claim.subnet, claim.epoch, claim.released);
            self.inheriting.remove(&(subnet, epoch));
            let awarded = claim.reason == ClaimReason::Awarded && !released;
            let (inherited, moved) = match claim.reason {
                ClaimReason::OwnerDead | ClaimReason::Released => (!released, false),
                ClaimReason::Moved => (false, !released),
                ClaimReason::OwnSubnet | ClaimReason::Awarded => (false, false),
            };
            let measured = claim.rtt_us.is_some();
            if !self.hold(claim, proof.clone()) {
                continue;
            }
            if inherited && measured {
                self.counters.deputies += 1;
            }
            if released {
                self.released_for_good(subnet, proof.clone());
            } else {
                self.freed.remove(&subnet);
            }
            self.news.insert(subnet, proof);
            if awarded {
                self.watch_claim(subnet);
            }
            if moved {
                self.counters.moves_taken += 1;
                self.load(subnet, BTreeSet::new());
            } else if !released && epoch > 1 {
                self.load_from_keepers(subnet);
            }
        }
        self.tell_news();
        self.outbox.wake_all();
        self.route();
    }

    /// A subnet became ours, or was ours at the last stop: its history first, from our own store and from whoever kept it.
    pub(super) fn load(&mut self, subnet: Subnet, asked: BTreeSet<AccessPoint>) {
        for from in &asked {
            self.commands.push_back(Command::Recover { subnet, from: *from });
        }
        self.commands.push_back(Command::Load(subnet));
        let until = self.now.moment.after(RECALL_PATIENCE);
        let asked = asked.into_iter().map(|keeper| (keeper, None)).collect();
        self.loading.insert(
            subnet,
            Loading { asked, heard: false, until, silences: 0, read: false, best: BTreeMap::new(), former: BTreeMap::new() },
        );
    }

    /// The same, from whoever should have kept it.
    pub(super) fn load_from_keepers(&mut self, subnet: Subnet) {
        let keepers = self.likely_keepers(&subnet);
        self.load(subnet, keepers);
    }

    fn likely_keepers(&self, subnet: &Subnet) -> BTreeSet<AccessPoint> {
        self.stewards_of(subnet).into_iter().filter(|keeper| *keeper != self.me).take(KEEPERS_ASKED).collect()
    }

    /// A keeper sent all it had, or nothing came of asking it.
    pub(super) fn recovered(&mut self, subnet: Subnet, from: AccessPoint, journals: Option<Vec<(JournalKey, Vec<JournalEntry>)>>) {
        let Some(loading) = self.loading.get_mut(&subnet) else { return };
        let Some(again) = loading.asked.get_mut(&from) else { return };
        let Some(journals) = journals else {
            *again = Some(self.now.moment.after(RECALL_AGAIN));
            return;
        };
        loading.asked.remove(&from);
        loading.heard = true;
        loading.gather(subnet, journals, false);
        self.begin_if_known(subnet);
    }

    /// Our own store's journals of a subnet of ours were read.
    pub(super) fn loaded(&mut self, subnet: Subnet, journals: Vec<(JournalKey, Vec<JournalEntry>)>) {
        let Some(loading) = self.loading.get_mut(&subnet) else { return };
        loading.read = true;
        loading.gather(subnet, journals, true);
        self.begin_if_known(subnet);
    }

    fn stop_waiting_for_keepers(&mut self) {
        let now = self.now.moment;
        let (mut late, mut unheard) = (Vec::new(), Vec::new());
        for (subnet, loading) in &mut self.loading {
            for (from, again) in &mut loading.asked {
                if again.is_some_and(|due| due <= now) {
                    *again = None;
                    self.commands.push_back(Command::Recover { subnet: *subnet, from: *from });
                }
            }
            if loading.until > now || loading.asked.is_empty() {
                continue;
            }
            if loading.heard || !loading.best.is_empty() || loading.silences >= MOST_SILENCES {
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
            let Some(loading) = self.loading.get_mut(&subnet) else { continue };
            loading.until = now.after(RECALL_PATIENCE);
            loading.silences += 1;
            loading.asked = keepers.iter().map(|keeper| (*keeper, None)).collect();
            self.commands.extend(keepers.into_iter().map(|from| Command::Recover { subnet, from }));
            self.begin_if_known(subnet);
        }
    }

    /// When all that can be had of a subnet's history is here, its sites stand where their former owner stood.
    fn begin_if_known(&mut self, subnet: Subnet) {
        if self.loading.get(&subnet).is_none_or(|loading| !loading.read || !loading.asked.is_empty()) {
            return;
        }
        let Some(loading) = self.loading.remove(&subnet) else { return };
        self.roll_up_changed = true;
        let claim = self.ownership.claim(&subnet).filter(|claim| claim.owner == self.me);
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
        self.outbox.wake_all();
    }

    /// A site begins where the journal ends. Returns what it named for others, if that may go on its way at once.
    fn begin_from(&mut self, copy: Copy, former: Option<Copy>, epoch: u64) -> Vec<Item> {
        let Copy { key, entries, taken_over, own } = copy;
        self.next_site += 1;
        let number = self.next_site;
        let Some(replayed) = replay(key.clone(), number, &entries, &self.settings.rules, &self.secret) else {
            self.refuse("journals that do not begin with an opening");
            return Vec::new();
        };
        let (site, host, subnet) = (replayed.site, key.host.clone(), key.subnet);
        // Whatever the journal does not tell was asked after its last line: a whole rest from now is on the safe side.
        let rest = self.front.politeness().rest_after(site.last_took(), site.slowest_crawl_delay()).max(site.last_rest());
        self.front.rest(site.address, self.now.moment.after(rest));
        let upto = site.next_sequence();
        let run_before = (key.run > 1).then(|| JournalKey { run: key.run - 1, ..key.clone() });
        let over = self.is_over(&site);
        self.awakening.insert(number, host.clone());
        self.by_subnet.entry(subnet).or_default().insert(host.clone());
        self.dirty.insert(host.clone());
        self.sites.insert(host.clone(), site);
        self.assign_keepers_of(&key);
        self.commands.push_back(Command::LoadSeen { site: number, seen: replayed.seen, children: replayed.children, cut: replayed.cut });
        let outgoing = replayed.outgoing.into_iter();
        let mut outgoing: Vec<_> = outgoing.map(|(sequence, arrival)| Item { arrival, origin: Some((key.clone(), sequence)) }).collect();
        if own {
            self.keeping.stored(&key, upto);
        } else {
            self.adopt(key, &entries, std::mem::take(&mut outgoing));
        }
        if let Some(former) = former {
            self.assign_keepers_of(&former.key);
            self.adopt(former.key, &former.entries, Vec::new());
        }
        match run_before {
            Some(run) if over => drop(self.superseded.insert(host.clone(), run)),
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
    pub(super) fn awake(&mut self, number: u64) {
        if let Some(host) = self.awakening.remove(&number) {
            self.keep_front(&host);
            self.want(&host);
        }
    }

    /// A subnet is not ours any more: nothing of it is asked, counted or sent from here. If another one has it, it is handed what
    /// its sites began with and what waits here: its claim may be as old as ours, or our keepers could not tell it.
    pub(super) fn give_up(&mut self, subnet: Subnet) {
        let reroute = self.ownership.claim(&subnet).is_some();
        self.loading.remove(&subnet);
        self.watched.remove(&subnet);
        self.forget_accesses(&subnet);
        self.dissolve(subnet, reroute);
        self.roll_up_changed = true;
    }

    /// Forgets a subnet's sites. With `reroute` their waiting URLs go on their way again.
    pub(super) fn dissolve(&mut self, subnet: Subnet, reroute: bool) {
        let hosts = self.by_subnet.get(&subnet).into_iter().flatten().cloned().collect();
        self.dissolve_hosts(subnet, hosts, reroute);
    }

    /// The same for some of a subnet's sites.
    pub(super) fn dissolve_hosts(&mut self, subnet: Subnet, hosts: Vec<Host>, reroute: bool) {
        for host in hosts {
            if let Some(here) = self.by_subnet.get_mut(&subnet) {
                here.remove(&host);
            }
            let Some(site) = self.sites.remove(&host) else { continue };
            if reroute {
                let starts = site.starts.iter().map(|url| Arrival { url: url.clone(), place: None, run: site.key.run });
                starts.filter(|_| site.is_home()).for_each(|arrival| self.outbox.put(Item { arrival, origin: None }));
                self.give_away(&site);
            }
            self.front.drop_site(site.address, &host);
            self.keeping.forget(&site.key);
            self.forwarding.remove(&site.key);
            self.tally.remove(&host);
            self.dirty.remove(&host);
            self.superseded.remove(&host);
            self.awakening.remove(&site.number);
            self.commands.push_back(Command::CloseConnection(site.address));
            self.commands.push_back(Command::DropSeen(site.number));
            self.rows.retain(|row| row.key != site.key);
            self.row_outgoing.retain(|item| item.origin.as_ref().is_none_or(|(key, _)| *key != site.key));
        }
        if self.by_subnet.get(&subnet).is_some_and(BTreeSet::is_empty) {
            self.by_subnet.remove(&subnet);
        }
        // Whoever handed us URLs of these sites that were not recorded yet hears that they are not here.
        self.acknowledge();
    }

    /// People want us to go for good.
    pub(super) fn leave(&mut self) {
        if !self.leaving {
            self.leaving = true;
            self.parting_since = Some(self.now.moment);
        }
    }

    /// On the way out: finish what is under way, see it kept, give back what is to be given back, say good-bye.
    pub(super) fn tick_end(&mut self) {
        if self.finished || !(self.leaving || self.draining) {
            return;
        }
        let now = self.now.moment;
        let since = *self.parting_since.get_or_insert(now);
        let patient = now.since(since) < PARTING_PATIENCE;
        self.flush();
        let under_way = !self.in_flight.is_empty() || !self.landed.is_empty() || !self.seen_pending.is_empty();
        let unkept = !self.appends.is_empty() || !self.keeping.settled() || self.leaving && !self.outbox.is_empty();
        if patient && (under_way || unkept) {
            return;
        }
        if self.leaving {
            let held: Vec<_> = self.ownership.held_by(&self.me).filter_map(|subnet| self.ownership.claim(&subnet).cloned()).collect();
            if !held.is_empty() && !self.releasing {
                self.releasing = true;
                self.make_claims(held.into_iter().map(|claim| Claim { released: true, ..claim }).collect());
                return;
            }
            if patient && (!self.unstored_claims.is_empty() || !self.news.is_empty()) {
                return;
            }
        }
        let leaving = self.leaving;
        for peer in self.live() {
            if peer != self.me {
                self.commands.push_back(Command::Ask { to: peer, question: 0, request: Request::Farewell(leaving) });
            }
        }
        self.finished = true;
        self.commands.push_back(Command::Finished);
    }
}

/// Of those who answered, the living, the nearest first.
fn measured_heirs(answers: &[Answer], live: &[AccessPoint]) -> impl Iterator<Item = AccessPoint> {
    answers.iter().filter_map(|answer| live.iter().copied().find(|heir| ShortId::from(*heir) == answer.prober))
}
