//! The opt-outs that are in force here, by name and by address.

use nearcrawl_model::{
    access_point::AccessPoint,
    opt_out::{OptOutKey, OptOutSubject},
    time::WallTime,
    url::Host,
};
use std::{collections::BTreeMap, net::IpAddr};

/// An opt-out that is in force here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InForce {
    pub(crate) key: OptOutKey,
    /// Who took it in first, of those who say so now.
    pub(crate) by: AccessPoint,
    /// When, by the clock there.
    pub(crate) at: WallTime,
    /// Whether it needs no more looking: this access point saw the proof itself, or an operator ordered it.
    pub(crate) is_certain: bool,
    /// Whether at least as many looked for the proof in vain as saw it: who has to do with the server looks itself before it asks anything.
    pub(crate) is_disputed: bool,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptedOut {
    hosts: BTreeMap<String, InForce>,
    domains: BTreeMap<String, InForce>,
    ranges: Vec<InForce>,
}

impl OptedOut {
    /// These. Of several about one subject a certain one is told of.
    pub(crate) fn of(all: impl IntoIterator<Item = InForce>) -> OptedOut {
        let mut opted_out = OptedOut::default();
        for one in all {
            let (map, name) = match &one.key.subject {
                OptOutSubject::Host(name) => (&mut opted_out.hosts, name.as_str().to_owned()),
                OptOutSubject::Domain(name) => (&mut opted_out.domains, name.as_str().to_owned()),
                OptOutSubject::Range(_) => {
                    opted_out.ranges.push(one);
                    continue;
                }
            };
            if map.get(&name).is_none_or(|known| !known.is_certain) {
                map.insert(name, one);
            }
        }
        opted_out
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.domains.is_empty() && self.ranges.is_empty()
    }

    /// The one by which a server of this name, or at this address, is asked nothing; one that is certain, if there is such a one.
    pub(crate) fn covering(&self, host: Option<&Host>, address: Option<IpAddr>) -> Option<&InForce> {
        if self.is_empty() {
            return None;
        }
        let name = host.map_or("", Host::as_str);
        let below = |at: usize| self.domains.get(&name[at..]);
        let domains = std::iter::once(0).chain(name.match_indices('.').map(|(at, _)| at + 1)).filter_map(below);
        let ranges = self.ranges.iter().filter(|range| range.key.subject.covers(host, address));
        let mut all = self.hosts.get(name).into_iter().chain(domains).chain(ranges).peekable();
        let first = all.peek().copied();
        all.find(|one| one.is_certain).or(first)
    }

    /// Whether that is certain, so that nothing need be kept for it either.
    pub(crate) fn surely_covers(&self, host: &Host, address: Option<IpAddr>) -> bool {
        self.covering(Some(host), address).is_some_and(|one| one.is_certain)
    }

    /// Whether a server of this name, or at this address, is asked nothing.
    pub(crate) fn covers(&self, host: &Host, address: Option<IpAddr>) -> bool {
        self.covering(Some(host), address).is_some()
    }
}
