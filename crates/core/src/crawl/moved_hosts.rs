//! Hosts that move to another address: our hosts to look up before their next run, those that leave, and those on their way to us.
//!
//! Before each run the steward of a host is asked whether it is still at its address: some time ahead, so that no run begins late. If no
//! answer comes in time, the run begins at the address that is known.
//!
//! A host that has moved leaves in five steps. Whoever dies between them loses nothing, since each can be found out from journals, and is
//! done again without harm:
//! 1. whose its new address is gets known; until then it may be asked where it was;
//! 2. it is asked nothing more; what is under way comes to its end;
//! 3. [`JournalEntry::Moved`](nearcrawl_model::journal::JournalEntry::Moved) is written as the journal's last row, and recorded: whoever
//!    has this journal from now on asks nothing, and goes on with step 4;
//! 4. the owner of the new address is asked to take the host until it says that it has recorded its journals under its own subnet;
//! 5. the site is forgotten and its journals are dropped.

use super::site::Site;
use crate::replication::loading::JournalCopy;
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::{LocatedHost, ResolveError},
    journal::{JournalEntry, JournalKey},
    message::MAX_PINNED,
    subnet::Subnet,
    time::{Millis, Moment},
    url::Host,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

/// So long before its run is due a host is looked up, or a quarter of the time between two runs if that is less.
const LOOK_AHEAD: Millis = 30_000;

/// A run does not wait for longer than this for the answer.
const LOOK_UP_TIMEOUT: Millis = 20_000;

/// After so long the steward is asked again: another member may be it by now.
const ASK_AGAIN: Millis = 4_000;

/// For how long an answer is good.
const ANSWER_HOLDS: Millis = 300_000;

/// Hosts that may be looked up at a time.
const MAX_ASKED_AT_ONCE: usize = 64;

/// So many hosts on their way are taken a step further at a time.
const MAX_STEPS: usize = 64;

/// After so long the next owner is asked again.
const OFFER_AGAIN: Millis = 2_000;

/// Hosts whose journals are on their way to us.
pub(crate) const MAX_COMING: usize = 16;

/// How long journals may be on their way to us before their owner may offer them again.
const COMING_TIMEOUT: Millis = 60_000;

/// How long before its run is due a host is looked up.
pub(super) fn look_ahead(revisit: Millis) -> Millis {
    LOOK_AHEAD.min(revisit / 4)
}

/// So many steps are taken a second to find out which members are the stewards of hosts: one for each living member.
const MAX_STEPS_TO_STEWARDS: usize = 100_000;

/// What is known of where a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Its steward has not answered yet.
    Asked,
    /// It is where it was.
    Stays,
    /// Its name has no address any more.
    Gone,
}

/// A question about a host of ours to its steward.
#[derive(Debug)]
struct Check {
    begun: Moment,
    asked: Option<Moment>,
    standing: Standing,
}

/// Whether a site's next run may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayBegin {
    /// It is being found out where the host is, or it is on its way to another owner.
    NotYet,
    /// At the address that is known.
    Now,
}

/// A host of ours that has another address.
#[derive(Debug)]
pub(crate) struct Leaving {
    /// Where it is now.
    pub(crate) located: LocatedHost,
    /// Whether it is asked nothing more.
    stopped: bool,
    /// When its next owner was asked last.
    offered: Option<Moment>,
    /// The journal as it stands in our own store, if the new address is ours, too.
    pub(crate) own_copy: Option<(JournalKey, Vec<JournalEntry>)>,
}

/// A host of another owner that has an address of ours now.
#[derive(Debug)]
pub(crate) struct Coming {
    pub(crate) from: AccessPoint,
    pub(crate) located: LocatedHost,
    pub(crate) journal: JournalKey,
    pub(crate) rows: u64,
    pub(crate) since: Moment,
}

impl Coming {
    /// Whether a site that is open here is this host already, or newer: then up to which of its rows all must be recorded before its former
    /// owner may drop its own. `subnet` is ours, that of the new address.
    pub(super) fn is_had_by(&self, site: &Site, subnet: Subnet) -> Option<u64> {
        let is_it = site.key.subnet == subnet && site.key.run == self.journal.run && site.came_from(&self.journal.subnet);
        if is_it {
            // Rows that its owner wrote since then say nothing that is needed here.
            return Some(self.rows.min(site.next_sequence()));
        }
        ((site.key.run, site.next_sequence()) >= (self.journal.run, self.rows)).then_some(1)
    }

    /// The journal of one run out of those that came, as it goes on in this subnet: up to its first row that no honest owner writes.
    fn copy_of_run(&self, run: u32, subnet: Subnet, journals: &[(JournalKey, Vec<JournalEntry>)]) -> Option<JournalCopy> {
        let theirs = JournalKey { run, ..self.journal.clone() };
        let (_, entries) = journals.iter().find(|(key, _)| *key == theirs)?;
        let plausible = entries.iter().take_while(|entry| entry.is_plausible()).cloned().collect();
        Some(JournalCopy::new(JournalKey { subnet, ..theirs }, plausible, false))
    }

    /// Out of the journals that came, the copy that the site begins with in this subnet, if it has all rows that were announced.
    pub(super) fn copy(&self, subnet: Subnet, journals: &[(JournalKey, Vec<JournalEntry>)]) -> Option<JournalCopy> {
        self.copy_of_run(self.journal.run, subnet, journals).filter(|copy| copy.entries.len() as u64 >= self.rows)
    }

    /// Whether the last move that the copy tells of leads to the new address.
    pub(super) fn leads_here(&self, copy: &JournalCopy) -> bool {
        let mut moves = copy.entries.iter().filter_map(|entry| match entry {
            JournalEntry::Moved { to, address, .. } => Some((*to, *address)),
            _ => None,
        });
        moves.next_back() == Some((copy.key.subnet, self.located.address))
    }

    /// The journal of the run that this one is compared with, if it came, too.
    pub(super) fn previous(&self, copy: &JournalCopy, journals: &[(JournalKey, Vec<JournalEntry>)]) -> Option<JournalCopy> {
        let of_host = |key: &JournalKey| key.subnet == self.journal.subnet && key.host == self.journal.host;
        let runs = journals.iter().filter(|(key, _)| of_host(key) && copy.follows(key.run)).map(|(key, _)| key.run);
        self.copy_of_run(runs.max()?, copy.key.subnet, journals)
    }
}

/// Hosts that are looked up, leave, or come.
#[derive(Debug, Default)]
pub(crate) struct MovedHosts {
    /// At most one for each site.
    checks: BTreeMap<Host, Check>,
    /// At most one for each site.
    leaving: BTreeMap<Host, Leaving>,
    /// The host that was taken a step further last.
    stepped: Option<Host>,
    /// At most [`MAX_COMING`].
    coming: BTreeMap<Host, Coming>,
    /// When a host left or came last.
    last: Option<Moment>,
    /// Which steward knows where a host of ours is. At most one for each site.
    stewards: BTreeMap<Host, AccessPoint>,
    /// The site whose steward was looked at last.
    looked_at: Option<Host>,
    /// Hosts that began with a copy of their journal and of which their stewards have not said yet that they are here, since when. At most one
    /// for each site.
    unsure: BTreeMap<Host, Moment>,
}

/// Hosts are looked up.
impl MovedHosts {
    /// A host is to be looked up, unless it was a moment ago.
    pub(super) fn check(&mut self, host: &Host, now: Moment) {
        if host.address().is_some() || self.leaving.contains_key(host) {
            return;
        }
        let check = self.checks.get(host).filter(|check| now.since(check.begun) < ANSWER_HOLDS);
        if check.is_none() {
            self.checks.insert(host.clone(), Check { begun: now, asked: None, standing: Standing::Asked });
        }
    }

    /// A host is to be looked up, whatever its steward said before.
    pub(super) fn check_anew(&mut self, host: &Host, now: Moment) {
        let asked = self.checks.get(host).is_some_and(|check| check.standing == Standing::Asked);
        if !asked && host.address().is_none() {
            self.checks.insert(host.clone(), Check { begun: now, asked: None, standing: Standing::Asked });
        }
    }

    /// Whether the next run of a host may begin. It is looked up first, if it was not.
    pub(super) fn may_begin(&mut self, host: &Host, now: Moment) -> MayBegin {
        if host.address().is_some() {
            return MayBegin::Now;
        }
        if self.leaving.contains_key(host) {
            return MayBegin::NotYet;
        }
        self.check(host, now);
        match self.checks.get(host) {
            Some(check) if check.standing != Standing::Asked || now.since(check.begun) >= LOOK_UP_TIMEOUT => MayBegin::Now,
            Some(_) | None => MayBegin::NotYet,
        }
    }

    /// The run of a host begins. Whether its name has no address any more.
    pub(super) fn begins(&mut self, host: &Host) -> bool {
        self.checks.remove(host).is_some_and(|check| check.standing == Standing::Gone)
    }

    /// The hosts whose stewards are to be asked now. `is_open` says whether one is ours still.
    pub(super) fn next_to_ask(&mut self, now: Moment, is_open: impl Fn(&Host) -> bool) -> Vec<Host> {
        self.checks.retain(|host, check| now.since(check.begun) < ANSWER_HOLDS && is_open(host));
        let is_due = |check: &Check| check.standing == Standing::Asked && check.asked.is_none_or(|asked| now.since(asked) >= ASK_AGAIN);
        let due = self.checks.iter_mut().filter(|(_, check)| is_due(check)).take(MAX_ASKED_AT_ONCE);
        due.map(|(host, check)| {
            check.asked = Some(now);
            host.clone()
        })
        .collect()
    }

    /// The steward of a host of ours answered. `stays` says whether it is where it was. Returns whether that was waited for.
    pub(super) fn confirmed(
        &mut self,
        host: &Host,
        answer: &Result<LocatedHost, ResolveError>,
        stays: impl Fn(&LocatedHost) -> bool,
    ) -> bool {
        let Some(check) = self.checks.get_mut(host).filter(|check| check.standing == Standing::Asked) else { return false };
        match answer {
            Ok(located) if stays(located) => {
                check.standing = Standing::Stays;
                self.leaving.remove(host);
                self.unsure.remove(host);
            }
            Ok(located) => {
                self.checks.remove(host);
                self.leave(located.clone());
            }
            Err(failure) if failure.is_transient() => check.standing = Standing::Stays,
            Err(_) => check.standing = Standing::Gone,
        }
        true
    }
}

/// Stewards change.
impl MovedHosts {
    /// How many hosts are looked at a second in a swarm of so many.
    pub(super) fn most_looked_at(members: usize) -> usize {
        (MAX_STEPS_TO_STEWARDS / members.max(1)).clamp(64, MAX_PINNED)
    }

    /// The host behind which to look next.
    pub(super) fn looked_at(&self) -> Option<&Host> {
        self.looked_at.as_ref()
    }

    /// Looks at hosts whose stewards are these now. Those are returned whose stewards may not know where they are.
    pub(super) fn look_at(&mut self, hosts: Vec<(Host, IpAddr, AccessPoint)>, most: usize) -> BTreeMap<AccessPoint, Vec<(Host, IpAddr)>> {
        self.looked_at = hosts.last().filter(|_| hosts.len() == most).map(|(host, ..)| host.clone());
        let mut tell: BTreeMap<AccessPoint, Vec<(Host, IpAddr)>> = BTreeMap::new();
        for (host, address, steward) in hosts {
            if self.stewards.insert(host.clone(), steward) != Some(steward) {
                tell.entry(steward).or_default().push((host, address));
            }
        }
        tell
    }

    /// These hosts' steward did not hear where they are.
    pub(super) fn not_told(&mut self, hosts: &[Host]) {
        for host in hosts {
            self.stewards.remove(host);
        }
    }

    /// These hosts began with copies of their journals: no sums are whole before their stewards know them here.
    pub(super) fn await_stewards(&mut self, hosts: impl Iterator<Item = Host>, now: Moment) {
        for host in hosts {
            self.stewards.remove(&host);
            self.unsure.insert(host, now);
        }
    }

    /// The steward of these hosts has them where they are.
    pub(super) fn stewards_agree(&mut self, hosts: &[Host]) {
        for host in hosts {
            self.unsure.remove(host);
        }
    }
}

/// Hosts leave.
impl MovedHosts {
    /// A host of ours has this address now.
    pub(super) fn leave(&mut self, located: LocatedHost) {
        let host = located.host.clone();
        if self.leaving.get(&host).is_none_or(|leaving| leaving.located.address != located.address) {
            self.leaving.insert(host, Leaving { located, stopped: false, offered: None, own_copy: None });
        }
    }

    /// The hosts whose turn it is to be taken a step further on their way from here.
    pub(super) fn next_steps(&mut self) -> Vec<Host> {
        use std::ops::Bound::{Excluded, Unbounded};
        let behind = self.stepped.as_ref().map_or(Unbounded, Excluded);
        let hosts: Vec<_> = self.leaving.range::<Host, _>((behind, Unbounded)).map(|(host, _)| host.clone()).take(MAX_STEPS).collect();
        self.stepped = hosts.last().filter(|_| hosts.len() == MAX_STEPS).cloned();
        hosts
    }

    /// Where a host of ours is by now, if it has moved.
    pub(crate) fn destination(&self, host: &Host) -> Option<&LocatedHost> {
        self.leaving.get(host).map(|leaving| &leaving.located)
    }

    /// A host that has moved, to be changed.
    pub(super) fn leaving_mut(&mut self, host: &Host) -> Option<&mut Leaving> {
        self.leaving.get_mut(host)
    }

    /// Nothing more is asked of a host.
    pub(super) fn stop(&mut self, host: &Host) {
        if let Some(leaving) = self.leaving.get_mut(host) {
            leaving.stopped = true;
        }
    }

    /// Whether nothing may be asked of a host, because it is about to leave.
    pub(super) fn has_stopped(&self, host: &Host) -> bool {
        self.leaving.get(host).is_some_and(|leaving| leaving.stopped)
    }

    /// Whether the next owner is to be asked now, or our own store be read: at most once in [`OFFER_AGAIN`].
    pub(super) fn should_offer(&mut self, host: &Host, now: Moment) -> bool {
        let Some(leaving) = self.leaving.get_mut(host) else { return false };
        let is_due = leaving.offered.is_none_or(|at| now.since(at) >= OFFER_AGAIN);
        if is_due {
            leaving.offered = Some(now);
        }
        is_due
    }

    /// The hosts that go to another subnet of ours and whose journals are read from our own store.
    pub(super) fn read_here(&self) -> BTreeSet<Host> {
        let read = self.leaving.iter().filter(|(_, leaving)| leaving.offered.is_some() && leaving.own_copy.is_none());
        read.map(|(host, _)| host.clone()).collect()
    }

    /// A host has left, or goes on in another subnet of ours.
    pub(super) fn has_moved(&mut self, host: &Host, now: Moment) {
        self.forget(host);
        self.last = Some(now);
    }

    /// A site is not ours any more.
    pub(super) fn forget(&mut self, host: &Host) {
        self.checks.remove(host);
        self.leaving.remove(host);
        self.stewards.remove(host);
        self.unsure.remove(host);
    }
}

/// Hosts come.
impl MovedHosts {
    /// Whether a host's journals are on their way to us.
    pub(super) fn is_coming(&self, host: &Host) -> bool {
        self.coming.contains_key(host)
    }

    /// How many are on their way to us: at most [`MAX_COMING`].
    pub(crate) fn coming(&self) -> usize {
        self.coming.len()
    }

    /// A host's journals are to be fetched, unless they are being fetched already or too many are. Whether they are to be.
    pub(super) fn expect(&mut self, coming: Coming) -> bool {
        let begins = !self.is_coming(&coming.located.host) && self.coming.len() < MAX_COMING;
        if begins {
            self.coming.insert(coming.located.host.clone(), coming);
        }
        begins
    }

    /// A host's journals came from a member, or did not.
    pub(super) fn arrived(&mut self, host: &Host, from: AccessPoint, filed: &Subnet) -> Option<Coming> {
        let expected = self.coming.get(host).is_some_and(|coming| coming.from == from && coming.journal.subnet == *filed);
        expected.then(|| self.coming.remove(host)).flatten()
    }

    /// A host came.
    pub(super) fn has_come(&mut self, now: Moment) {
        self.last = Some(now);
    }

    /// Journals that are on their way for too long may be offered again, and stewards are not waited for longer than a look-up.
    pub(super) fn expire(&mut self, now: Moment) {
        self.coming.retain(|_, coming| now.since(coming.since) < COMING_TIMEOUT);
        self.unsure.retain(|_, since| now.since(*since) < LOOK_UP_TIMEOUT);
    }

    /// Whether sums may lack a host on its way, or have it twice: one leaves, or may be elsewhere, or one left or came within this time.
    pub(super) fn is_settling(&self, now: Moment, within: Millis) -> bool {
        let stopped = self.leaving.values().any(|leaving| leaving.stopped);
        stopped || !self.unsure.is_empty() || !self.coming.is_empty() || self.last.is_some_and(|last| now.since(last) < within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use nearcrawl_model::{ids::SiteNumber, time::WallTime};

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    fn at(address: &str) -> LocatedHost {
        LocatedHost { host: host("a.ke"), address: address.parse().unwrap(), valid_for: 60_000 }
    }

    fn stays(located: &LocatedHost) -> bool {
        *located == at("9.0.0.1")
    }

    #[test]
    fn a_run_waits_for_the_steward_for_a_while_and_asks_it_again_meanwhile() {
        let (mut moved, a) = (MovedHosts::default(), host("a.ke"));
        let mut asked = Vec::new();
        for now in (0..40_000).step_by(100).map(Moment) {
            let may_begin = moved.may_begin(&a, now) == MayBegin::Now;
            assert_eq!(may_begin, now >= Moment(LOOK_UP_TIMEOUT), "{now:?}");
            asked.extend(moved.next_to_ask(now, |_| true).into_iter().map(|_| now.0));
        }
        assert_eq!(asked[..4], [0, ASK_AGAIN, 2 * ASK_AGAIN, 3 * ASK_AGAIN]);
        assert!(!moved.begins(&a), "its name was not found to be gone");
        assert_eq!(moved.may_begin(&host("9.0.0.1"), Moment(0)), MayBegin::Now, "an address does not move");
    }

    #[test]
    fn what_the_steward_says_decides_and_holds_for_one_run() {
        let (mut moved, a) = (MovedHosts::default(), host("a.ke"));
        assert!(!moved.confirmed(&a, &Ok(at("9.0.1.1")), stays), "nobody asked");
        for (answer, gone) in [(Ok(at("9.0.0.1")), false), (Err(ResolveError::TimedOut), false), (Err(ResolveError::NoSuchName), true)] {
            moved.check(&a, Moment(0));
            assert!(moved.confirmed(&a, &answer, stays));
            assert_eq!((moved.may_begin(&a, Moment(1)), moved.begins(&a)), (MayBegin::Now, gone), "{answer:?}");
        }
        assert_eq!(moved.may_begin(&a, Moment(2)), MayBegin::NotYet, "the next run is another matter");
        moved.confirmed(&a, &Ok(at("9.0.1.1")), stays);
        assert_eq!(moved.may_begin(&a, Moment(90_000)), MayBegin::NotYet);
        assert_eq!(moved.destination(&a), Some(&at("9.0.1.1")));
        moved.check_anew(&a, Moment(90_000));
        moved.confirmed(&a, &Ok(at("9.0.0.1")), stays);
        assert_eq!(moved.may_begin(&a, Moment(90_000)), MayBegin::Now, "it moved back before it left");
        assert_eq!(moved.destination(&a), None);
    }

    #[test]
    fn every_host_gets_its_turn_however_many_leave() {
        let mut moved = MovedHosts::default();
        for number in 0..150 {
            moved.leave(LocatedHost { host: host(&format!("a{number}.ke")), ..at("9.0.1.1") });
        }
        let turns: Vec<_> = (0..3).map(|_| moved.next_steps()).collect();
        assert_eq!(turns.iter().map(Vec::len).collect::<Vec<_>>(), [MAX_STEPS, MAX_STEPS, 150 - 2 * MAX_STEPS]);
        assert_eq!(turns.concat().iter().collect::<BTreeSet<_>>().len(), 150);
        assert_eq!(moved.next_steps(), turns[0]);
    }

    fn key(subnet: &str, run: u32) -> JournalKey {
        JournalKey { subnet: subnet.parse().unwrap(), host: host("a.ke"), run }
    }

    fn moved(from: &str, to: &str, address: &str) -> JournalEntry {
        JournalEntry::Moved { from: from.parse().unwrap(), to: to.parse().unwrap(), address: address.parse().unwrap() }
    }

    /// Where the host was and where it comes to.
    const THERE: &str = "9.0.0.0/24";
    const HERE: &str = "9.0.1.0/24";

    fn coming(run: u32, rows: u64) -> Coming {
        Coming { from: AccessPoint([2; 32]), located: at("9.0.1.1"), journal: key(THERE, run), rows, since: Moment(0) }
    }

    #[test]
    fn a_site_begins_with_the_announced_run_if_all_its_rows_came_and_it_moved_here() {
        let (opened, here) = (JournalEntry::Resumed { at: WallTime(0) }, moved(THERE, HERE, "9.0.1.1"));
        let begins = |entries: &[JournalEntry], rows| {
            let coming = coming(3, rows);
            let journals = [(key(THERE, 2), vec![opened.clone()]), (key(THERE, 3), entries.to_vec()), (key(HERE, 3), Vec::new())];
            let copy = coming.copy(HERE.parse().unwrap(), &journals)?;
            Some((copy.key.clone(), copy.entries.len(), coming.leads_here(&copy)))
        };
        assert_eq!(begins(&[opened.clone(), here.clone()], 2), Some((key(HERE, 3), 2, true)));
        assert_eq!(begins(&[opened.clone(), here.clone()], 3), None, "a row is missing");
        let implausible = JournalEntry::TakenOver { epoch: u64::MAX };
        assert_eq!(begins(&[implausible, here.clone()], 1), None, "no honest owner wrote its first row");
        assert_eq!(begins(std::slice::from_ref(&opened), 1), Some((key(HERE, 3), 1, false)), "it does not say that it moved");
        let elsewhere = moved(THERE, "9.0.2.0/24", "9.0.2.1");
        assert_eq!(begins(&[here.clone(), elsewhere.clone()], 2), Some((key(HERE, 3), 2, false)), "it went on from here");
        assert_eq!(begins(&[elsewhere, here.clone()], 2), Some((key(HERE, 3), 2, true)));
        assert_eq!(begins(&[moved(THERE, HERE, "9.0.1.2")], 1), Some((key(HERE, 3), 1, false)), "another address of ours");
    }

    #[test]
    fn the_run_before_comes_along_if_it_is_the_one_that_is_compared_with() {
        let before = |runs: &[u32]| {
            let journals: Vec<_> = runs.iter().map(|run| (key(THERE, *run), vec![moved(THERE, HERE, "9.0.1.1")])).collect();
            let coming = coming(5, 1);
            let copy = coming.copy(HERE.parse().unwrap(), &journals).unwrap();
            coming.previous(&copy, &journals).map(|previous| previous.key)
        };
        assert_eq!(before(&[3, 4, 5, 6]), Some(key(HERE, 4)));
        assert_eq!(before(&[5, 6]), None);
    }

    #[test]
    fn what_is_here_already_or_newer_is_not_fetched_again() {
        let open = |subnet: &str, run| Site::open(key(subnet, run), "9.0.1.1".parse().unwrap(), host("a.ke"), SiteNumber(1), WallTime(0));
        let had = |site: &Site, run, rows| coming(run, rows).is_had_by(site, HERE.parse().unwrap());
        assert_eq!(had(&open(HERE, 2), 1, 9), Some(1), "a later run");
        assert_eq!(had(&open(HERE, 2), 2, 9), None, "more rows than are here");
        assert_eq!(had(&open(HERE, 2), 3, 0), None);
        let mut site = open(HERE, 2);
        let cx = Context::of_test(1);
        site.apply(&moved(THERE, HERE, "9.0.1.1"), &cx.settings.rules, &cx.secret);
        assert_eq!(had(&site, 2, 9), Some(site.next_sequence()), "it is the one: its rows from then on are not needed");
        assert_eq!(had(&site, 2, 0), Some(0));
    }

    #[test]
    fn so_many_hosts_come_at_a_time_and_each_once() {
        let mut moved = MovedHosts::default();
        let from = |number: usize| LocatedHost { host: host(&format!("a{number}.ke")), ..at("9.0.1.1") };
        let begun: Vec<bool> = (0..=MAX_COMING).map(|number| moved.expect(Coming { located: from(number), ..coming(1, 1) })).collect();
        assert_eq!(begun, [vec![true; MAX_COMING], vec![false]].concat());
        moved.expire(Moment(COMING_TIMEOUT));
        assert!(moved.expect(coming(1, 1)), "those are not waited for any more");
        assert!(!moved.expect(coming(1, 1)), "it is being fetched");
    }

    #[test]
    fn sums_are_in_transition_while_a_host_moves_and_for_a_while_after() {
        let (mut moved, a) = (MovedHosts::default(), host("a.ke"));
        moved.leave(at("9.0.1.1"));
        assert!(!moved.is_settling(Moment(0), 30_000), "it is counted where it was");
        moved.stop(&a);
        assert!(moved.is_settling(Moment(500_000), 30_000));
        moved.has_moved(&a, Moment(500_000));
        assert!(moved.is_settling(Moment(529_999), 30_000) && !moved.is_settling(Moment(530_000), 30_000));
    }

    #[test]
    fn sums_are_not_whole_before_the_steward_of_a_host_that_began_with_a_copy_knows_it_here() {
        let (mut moved, a) = (MovedHosts::default(), host("a.ke"));
        for agreed in [true, false] {
            moved.look_at(vec![(a.clone(), at("9.0.0.1").address, AccessPoint([1; 32]))], 10);
            moved.await_stewards([a.clone()].into_iter(), Moment(0));
            let told = moved.look_at(vec![(a.clone(), at("9.0.0.1").address, AccessPoint([1; 32]))], 10);
            assert_eq!(told.len(), 1, "the steward is told, as if it were another");
            moved.expire(Moment(LOOK_UP_TIMEOUT - 1));
            assert!(moved.is_settling(Moment(1_000), 30_000));
            if agreed {
                moved.stewards_agree(std::slice::from_ref(&a));
            } else {
                // Nobody answers.
                moved.expire(Moment(LOOK_UP_TIMEOUT));
            }
            assert!(!moved.is_settling(Moment(1_000), 30_000));
        }
    }
}
