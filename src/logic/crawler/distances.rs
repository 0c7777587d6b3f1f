//! How far are the members from each other? Measured on our connections, told to everybody, and kept for the search for the nearest.

use super::{Command, Crawler};
use crate::model::{
    access_point::{AccessPoint, ShortId},
    distances::{Distances, MOST_TOLD},
    message::Gossip,
    time::{Millis, Moment},
};
use std::{collections::BTreeMap, net::IpAddr};

/// For each member there is this much time between two tellings of one: what everybody hears stays the same in a growing swarm.
const PAUSE_A_MEMBER: Millis = 300;

/// No two tellings are nearer than this.
const LEAST_PAUSE: Millis = 2_000;

/// What has not changed is told this often again, for those who missed it.
const TELL_AGAIN: Millis = 600_000;

/// Members whose distances are kept as they told them.
const MOST_HEARD: usize = 4_096;

/// What is known of the members' distances.
#[derive(Debug, Default)]
pub(super) struct Distancing {
    /// The least round trip to each member on our own connections, in microseconds.
    pub mine: BTreeMap<AccessPoint, u32>,
    /// What others told last.
    heard: BTreeMap<AccessPoint, Distances>,
    changed: bool,
    told: Option<Moment>,
    version: u64,
}

impl Crawler {
    /// We are where our address is.
    pub(super) fn introduce_myself(&mut self) {
        let address = self.placed_address();
        self.knowledge.introduce(self.me, &self.hierarchy, address, None);
    }

    /// An address of ours that the hierarchy knows.
    fn placed_address(&self) -> Option<IpAddr> {
        let own = &self.settings.own_addresses;
        own.iter().copied().find(|address| self.hierarchy.locate(*address).is_some())
    }

    /// A connection to a member was timed.
    pub(super) fn distance_measured(&mut self, to: AccessPoint, rtt_us: u32) {
        if to == self.me {
            return;
        }
        let known = self.distancing.mine.get(&to).copied();
        // A little less again and again is no news.
        if known.is_none_or(|known| rtt_us < known - known / 8) {
            self.distancing.changed = true;
        }
        if known.is_none_or(|known| rtt_us < known) {
            self.distancing.mine.insert(to, rtt_us);
            self.knowledge.between(self.me, to, rtt_us);
        }
    }

    /// A member came: it has heard nothing yet, and some may have told of it before it was known here.
    pub(super) fn newcomer(&mut self, who: AccessPoint) {
        self.distancing.changed = true;
        if !self.distancing.heard.contains_key(&who) {
            let addresses = self.incarnations.get(&who).map(|(_, addresses)| addresses.as_slice()).unwrap_or_default();
            let address = addresses.iter().filter_map(|text| address_in(text)).find(|address| self.hierarchy.locate(*address).is_some());
            self.knowledge.introduce(who, &self.hierarchy, address, None);
        }
        let told: Vec<_> = self.distancing.heard.values().flat_map(|told| round_trip_to(told, who).map(|rtt| (told.from, rtt))).collect();
        for (from, rtt_us) in told {
            self.knowledge.between(from, who, rtt_us);
        }
    }

    /// A member is gone for good.
    pub(super) fn forget_distances(&mut self, gone: AccessPoint) {
        self.distancing.mine.remove(&gone);
        self.distancing.heard.remove(&gone);
        self.knowledge.forget(gone);
    }

    /// A member told its distances; the node saw to it that it is the author.
    pub(super) fn distances_told(&mut self, told: Distances) {
        let newer = self.distancing.heard.get(&told.from).is_none_or(|known| known.version < told.version);
        let known = self.distancing.heard.contains_key(&told.from);
        if told.from == self.me || !newer || (!known && self.distancing.heard.len() >= MOST_HEARD) {
            return;
        }
        if told.round_trips.len() > MOST_TOLD {
            return self.refuse("distances to more members than are told");
        }
        self.knowledge.introduce(told.from, &self.hierarchy, told.address, told.country);
        let members: BTreeMap<ShortId, AccessPoint> = self.incarnations.keys().map(|member| ((*member).into(), *member)).collect();
        for (who, rtt_us) in &told.round_trips {
            // How far it is from here we measure ourselves.
            if let Some(member) = members.get(who).filter(|member| **member != self.me) {
                self.knowledge.between(told.from, *member, *rtt_us);
            }
        }
        self.distancing.heard.insert(told.from, told);
    }

    pub(super) fn tick_distances(&mut self) {
        let pause = LEAST_PAUSE.max(PAUSE_A_MEMBER * self.live().len() as u64);
        let due = |pause: Millis| self.distancing.told.is_none_or(|told| self.now.moment.since(told) >= pause);
        let news = self.distancing.changed && due(pause);
        if self.distancing.mine.is_empty() || !(news || due(TELL_AGAIN.max(10 * pause))) {
            return;
        }
        let mut nearest: Vec<_> = self.distancing.mine.iter().map(|(who, rtt)| (*rtt, ShortId::from(*who))).collect();
        nearest.sort_unstable();
        nearest.truncate(MOST_TOLD);
        let address = self.placed_address();
        self.distancing.changed = false;
        self.distancing.told = Some(self.now.moment);
        // As with roll-ups: wall time keeps versions growing across restarts.
        self.distancing.version = (self.distancing.version + 1).max(self.now.wall.0);
        self.commands.push_back(Command::Publish(Gossip::Distances(Distances {
            from: self.me,
            version: self.distancing.version,
            address,
            country: None,
            round_trips: nearest.into_iter().map(|(rtt, who)| (who, rtt)).collect(),
        })));
    }
}

fn round_trip_to(told: &Distances, who: AccessPoint) -> Option<u32> {
    told.round_trips.iter().find(|(short, _)| *short == who.into()).map(|(_, rtt)| *rtt)
}

/// The address at the beginning of a multiaddr.
fn address_in(multiaddr: &str) -> Option<IpAddr> {
    let mut parts = multiaddr.split('/').skip(1);
    matches!(parts.next()?, "ip4" | "ip6").then(|| parts.next()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_off_multiaddresses() {
        assert_eq!(address_in("/ip4/192.0.2.7/tcp/4817/p2p/12D3KooW"), Some("192.0.2.7".parse().unwrap()));
        assert_eq!(address_in("/ip6/2001:db8::1/tcp/4817"), Some("2001:db8::1".parse().unwrap()));
        for none in ["/dns4/example.org/tcp/1", "/ip4/nonsense", "", "/sim/3"] {
            assert_eq!(address_in(none), None, "{none}");
        }
    }
}
