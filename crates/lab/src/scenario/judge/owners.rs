//! Tracks the owner of each subnet, and how long it had none.

use crate::swarm::Played;
use nearcrawl_core::{crawler::Crawler, membership::HeldBack};
use nearcrawl_model::{access_point::AccessPoint, subnet::Subnet, time::Millis, url::Host, vote::quorum_of};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

/// How long before the end a page must have been recorded for the hosts that it names to have owners.
const NAMED_BEFORE: Millis = 180_000;

/// A subnet with servers.
#[derive(Debug)]
struct Place {
    address: IpAddr,
    /// When it was last seen with an owner; none if it never had one.
    owned: Option<Millis>,
    /// Whether a page that is recorded leads there.
    named: bool,
    /// The processes that owned it at the last look.
    owners: BTreeSet<AccessPoint>,
}

/// A place whose owner ended.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    since: Millis,
    /// For how long nobody could have taken it over, because too few voters could have been asked.
    undecidable: Millis,
}

impl Waiting {
    fn from(now: Millis) -> Waiting {
        Waiting { since: now, undecidable: 0 }
    }

    fn until(self, now: Millis) -> FailoverTime {
        let all = now - self.since;
        FailoverTime { all, with_quorum: all.saturating_sub(self.undecidable) }
    }
}

/// How long a subnet of a member that ended had no owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailoverTime {
    pub(super) all: Millis,
    /// Without the time in which no member reached as many voters as must agree.
    pub(super) with_quorum: Millis,
}

/// All subnets with servers.
#[derive(Debug, Default)]
pub(super) struct Owners {
    places: BTreeMap<Subnet, Place>,
    /// Places whose owner ended.
    waiting: BTreeMap<Subnet, Waiting>,
    failovers: Vec<FailoverTime>,
    /// Members that lost their disks, as long as they do not vote: what a voter has decided is not known to it then, so it can agree to nothing.
    forgetful: BTreeSet<usize>,
    /// When it was looked last.
    looked: Millis,
    /// The longest time for which a subnet that once had an owner had none.
    pub(super) ownerless: Millis,
}

impl Owners {
    /// Notes where hosts are.
    pub(super) fn learn_places(&mut self, world: &Played) {
        for address in world.hosts().values() {
            let place = Place { address: *address, owned: None, named: false, owners: BTreeSet::new() };
            self.places.entry(Subnet::around(*address, 24)).or_insert(place);
        }
    }

    /// Notes which hosts are named by pages that are recorded: their subnets are known, whether they ever had an owner or not.
    pub(super) fn learn_named(&mut self, world: &Played) {
        let Some(records) = &world.records else { return };
        let early = |at: &nearcrawl_model::time::Moment| world.now().since(*at) >= NAMED_BEFORE;
        let recorded = records.all_recorded().filter(|(.., at)| early(at));
        let named: BTreeSet<Host> = recorded.flat_map(|(.., url, _)| world.links_of(url)).map(|url| url.host()).collect();
        for address in named.iter().filter_map(|host| world.hosts().get(host)) {
            if let Some(place) = self.places.get_mut(&Subnet::around(*address, 24)) {
                place.named = true;
            }
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// How many had an owner at some time, and how many have one.
    pub(super) fn known_and_owned(&self) -> (usize, usize) {
        let known = self.places.values().filter(|place| place.owned.is_some());
        (known.clone().count(), known.filter(|place| !place.owners.is_empty()).count())
    }

    /// A member is about to end without having given anything back: its subnets wait for another owner, or for its return.
    pub(super) fn gone(&mut self, world: &Played, number: usize, now: Millis) {
        let able: Vec<_> = able(world).into_iter().filter(|process| world.number_of_process(process) == Some(number)).collect();
        for (subnet, place) in &self.places {
            if able.iter().any(|process| owns(world, process, place.address)) {
                self.waiting.entry(*subnet).or_insert(Waiting::from(now));
            }
        }
    }

    /// A member lost its disk.
    pub(super) fn wiped(&mut self, number: usize) {
        self.forgetful.insert(number);
    }

    /// A process has ended: the same, for what it owned at the last look.
    pub(super) fn ended(&mut self, process: &AccessPoint, now: Millis) {
        for (subnet, _) in self.places.iter().filter(|(_, place)| place.owners.contains(process)) {
            self.waiting.entry(*subnet).or_insert(Waiting::from(now));
        }
    }

    /// Looks who owns what.
    pub(super) fn look(&mut self, world: &Played, now: Millis) {
        let able = able_crawlers(world);
        let passed = now - std::mem::replace(&mut self.looked, now);
        let votes = |number: &usize| {
            let processes = world.processes_of(*number);
            processes.iter().filter_map(|process| world.process(process)).any(|crawler| crawler.view().voters().votes)
        };
        self.forgetful.retain(|number| !votes(number));
        if !self.waiting.is_empty() && !can_decide(world, &self.forgetful) {
            self.waiting.values_mut().for_each(|waiting| waiting.undecidable += passed.min(now - waiting.since));
        }
        for (subnet, place) in &mut self.places {
            let owners = able.iter().filter(|(_, name, crawler)| takes_itself_for_owner(crawler, name, place.address));
            place.owners = owners.map(|(process, ..)| *process).collect();
            if place.owners.is_empty() {
                self.ownerless = self.ownerless.max(place.owned.map_or(0, |owned| now - owned));
                continue;
            }
            place.owned = Some(now);
            if let Some(waiting) = self.waiting.remove(subnet) {
                self.failovers.push(waiting.until(now));
            }
        }
    }

    /// How long subnets of members that ended had no owner; those that have none yet, until now.
    pub(super) fn failovers(&mut self, now: Millis) -> Vec<FailoverTime> {
        let waiting = std::mem::take(&mut self.waiting);
        self.failovers.extend(waiting.into_values().map(|waiting| waiting.until(now)));
        std::mem::take(&mut self.failovers)
    }

    /// A known subnet that does not have exactly one process for its owner that lives and may fetch.
    pub(super) fn unsettled(&self, world: &Played) -> Option<String> {
        let crawlers = able_crawlers(world);
        for place in self.places.values().filter(|place| place.named || place.owned.is_some()) {
            let count = crawlers.iter().filter(|(_, name, crawler)| takes_itself_for_owner(crawler, name, place.address)).count();
            if count != 1 {
                return Some(format!("{} has {count} living owners that may fetch", place.address));
            }
        }
        // Subnets without servers, too: all maps are equal when this is asked.
        let names: BTreeSet<_> = crawlers.iter().map(|(_, name, _)| *name).collect();
        let claims = crawlers.first().map(|(.., crawler)| crawler.view().ownership(None, usize::MAX));
        let orphan = claims?.into_iter().find(|claim| !claim.released && !names.contains(&claim.owner))?;
        Some(format!("{} is owned by {}, which does not live or may not fetch", orphan.subnet, orphan.owner.short()))
    }
}

/// The processes that run and may fetch.
pub(super) fn able(world: &Played) -> Vec<AccessPoint> {
    let may_fetch = |process: &AccessPoint| {
        let held_back = world.process(process).and_then(|crawler| crawler.view().held_back());
        !world.is_frozen(process) && !matches!(held_back, Some(HeldBack::NoLease(_) | HeldBack::NotJoined))
    };
    world.running_processes().into_iter().map(|(_, process)| process).filter(may_fetch).collect()
}

/// Whether a member that runs reaches as many voters of the last list as must agree, all of which run, know what they decided before and can
/// write down what they decide.
fn can_decide(world: &Played, forgetful: &BTreeSet<usize>) -> bool {
    let running: Vec<_> = world.running_processes().into_iter().filter(|(_, process)| !world.is_frozen(process)).collect();
    let lists = running.iter().filter_map(|(_, process)| Some(world.process(process)?.view().voters()));
    let Some(list) = lists.max_by_key(|voters| voters.list) else { return false };
    let decides = |number: &usize, process: &AccessPoint| {
        !world.disk_is_full(*number) && !forgetful.contains(number) && list.voters.contains(&world.name_of(*process))
    };
    let voters: Vec<_> = running.iter().filter(|(number, process)| decides(number, process)).map(|(_, voter)| *voter).collect();
    let reached = |process: &AccessPoint| voters.iter().filter(|voter| world.reach_each_other(*process, **voter)).count();
    running.iter().any(|(_, process)| reached(process) >= quorum_of(list.voters.len()))
}

/// Whether a process takes itself for the owner of an address.
pub(super) fn owns(world: &Played, process: &AccessPoint, address: IpAddr) -> bool {
    world.process(process).is_some_and(|crawler| takes_itself_for_owner(crawler, &world.name_of(*process), address))
}

/// The processes that run and may fetch, with their names.
fn able_crawlers(world: &Played) -> Vec<(AccessPoint, AccessPoint, &Crawler)> {
    able(world).into_iter().filter_map(|process| Some((process, world.name_of(process), world.process(&process)?))).collect()
}

fn takes_itself_for_owner(crawler: &Crawler, name: &AccessPoint, address: IpAddr) -> bool {
    crawler.view().claim_around(address).is_some_and(|claim| claim.owner == *name && !claim.released)
}
