//! How far are the members from each other? Measured on our connections, told to everybody, and kept for the search for the nearest.

use crate::{
    crawler::Crawler,
    event::{Command, PeerCommand, WebCommand},
};
use nearcrawl_model::{
    access_point::{AccessPoint, ShortId},
    distances::{Distances, MAX_TOLD},
    fetch::{ProbeReport, ProbeTarget},
    message::Gossip,
    time::{Millis, Moment},
};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

/// For each member there is this much time between two tellings of one: what everybody hears stays the same in a growing swarm.
const PAUSE_A_MEMBER: Millis = 300;

/// No two tellings are nearer than this.
const MIN_PAUSE: Millis = 2_000;

/// What has not changed is told this often again, for those who missed it.
const TELL_AGAIN: Millis = 600_000;

/// Members whose distances are kept, by us and as they told them.
const MAX_HEARD: usize = 4_096;

/// A member's web server is timed a second time this long after the first, for the least of several counts, and then rarely.
const TIME_SOON_AGAIN: Millis = 60_000;
const TIME_AGAIN: Millis = 6 * 3_600_000;

/// After so many failures in a row the swarm connection's ping has to do.
const MAX_FAILURES: u32 = 3;

/// What is known of the members' distances.
#[derive(Debug, Default)]
pub(crate) struct Distancing {
    /// The least round trip to each member, in microseconds.
    mine: BTreeMap<AccessPoint, u32>,
    /// The least ping of our connections to each member.
    pings: BTreeMap<AccessPoint, u32>,
    /// The addresses at the other ends of these connections.
    remotes: BTreeMap<AccessPoint, IpAddr>,
    /// The web servers of members who told of one.
    homes: BTreeMap<AccessPoint, Home>,
    /// Those that are being timed, by question.
    timing: BTreeMap<u64, AccessPoint>,
    /// What others told last.
    heard: BTreeMap<AccessPoint, Distances>,
    changed: bool,
    told: Option<Moment>,
    version: u64,
}

/// How far it is to a member's web server.
#[derive(Clone, Copy, Debug, Default)]
struct Home {
    rtt_us: Option<u32>,
    due: Moment,
    timed: u32,
    failures: u32,
}

impl Distancing {
    /// The round trip to a member, measured like that to any server if it has one of its own. Not before it has told whether.
    fn round_trip(&self, to: AccessPoint) -> Option<u32> {
        let ping = || self.pings.get(&to).copied();
        if self.heard.get(&to)?.home_port.is_none() {
            return ping();
        }
        let home = self.homes.get(&to)?;
        if home.failures < MAX_FAILURES { home.rtt_us } else { ping() }
    }

    /// Members whose distance was measured.
    pub fn known(&self) -> usize {
        self.mine.len()
    }
}

impl Crawler {
    /// We are where our address is.
    pub(crate) fn introduce_myself(&mut self) {
        let address = self.placed_address();
        self.delegation.knowledge.introduce(self.context.me, &self.context.hierarchy, address, None);
    }

    /// An address of ours that the hierarchy knows.
    pub(crate) fn placed_address(&self) -> Option<IpAddr> {
        let own = &self.context.settings.own_addresses;
        own.iter().copied().find(|address| self.context.hierarchy.locate(*address).is_some())
    }

    /// A connection to a member was timed.
    pub(crate) fn distance_measured(&mut self, to: AccessPoint, rtt_us: u32, remote: Option<IpAddr>) {
        let full = self.delegation.distances.pings.len() >= MAX_HEARD && !self.delegation.distances.pings.contains_key(&to);
        if to == self.context.me || full {
            return;
        }
        let ping = self.delegation.distances.pings.entry(to).or_insert(rtt_us);
        *ping = rtt_us.min(*ping);
        if let Some(remote) = remote {
            self.delegation.distances.remotes.insert(to, remote);
        }
        self.distance_known(to);
    }

    /// Something new is known of the way to a member.
    pub(crate) fn distance_known(&mut self, to: AccessPoint) {
        let Some(rtt_us) = self.delegation.distances.round_trip(to) else { return };
        let known = self.delegation.distances.mine.get(&to).copied();
        // A little less again and again is no news.
        if known.is_none_or(|known| rtt_us < known - known / 8) {
            self.delegation.distances.changed = true;
        }
        if known.is_none_or(|known| rtt_us < known) {
            self.delegation.distances.mine.insert(to, rtt_us);
            self.delegation.knowledge.between(self.context.me, to, rtt_us);
        }
    }

    /// Times the way to one member's web server whose time has come. The address is that of our connection: nobody can name another's.
    pub(crate) fn time_a_home(&mut self) {
        let now = self.context.now.moment;
        let due = self.delegation.distances.homes.iter().filter(|(_, home)| home.due <= now);
        let next = due.filter_map(|(who, _)| {
            let port = self.delegation.distances.heard.get(who)?.home_port?;
            Some((*who, SocketAddr::new(*self.delegation.distances.remotes.get(who)?, port)))
        });
        let Some((who, address)) = next.min() else { return };
        let Ok(host) = address.ip().to_string().parse() else { return };
        if let Some(home) = self.delegation.distances.homes.get_mut(&who) {
            home.due = now.after(TIME_AGAIN);
        }
        let question = self.number();
        self.delegation.distances.timing.insert(question, who);
        self.context.commands.push_back(Command::Web(WebCommand::Probe { question, target: ProbeTarget { address, host, secure: false } }));
    }

    /// The way to a member's web server was timed, if this was such a question.
    pub(crate) fn home_timed(&mut self, question: u64, report: ProbeReport) -> bool {
        let Some(who) = self.delegation.distances.timing.remove(&question) else { return false };
        if let Some(home) = self.delegation.distances.homes.get_mut(&who) {
            home.timed += 1;
            if home.timed < MAX_FAILURES {
                home.due = self.context.now.moment.after(TIME_SOON_AGAIN);
            }
            match report.rtt_us {
                Ok(rtt_us) => {
                    home.failures = 0;
                    home.rtt_us = Some(home.rtt_us.map_or(rtt_us, |known| known.min(rtt_us)));
                }
                Err(_) => home.failures += 1,
            }
        }
        self.distance_known(who);
        true
    }

    /// A member came: it has heard nothing yet, and some may have told of it before it was known here.
    pub(crate) fn newcomer(&mut self, who: AccessPoint) {
        self.delegation.distances.changed = true;
        if !self.delegation.distances.heard.contains_key(&who) {
            let addresses = self.membership.addresses_of(&who);
            let address =
                addresses.iter().filter_map(|text| address_in(text)).find(|address| self.context.hierarchy.locate(*address).is_some());
            self.delegation.knowledge.introduce(who, &self.context.hierarchy, address, None);
        }
        let told: Vec<_> =
            self.delegation.distances.heard.values().flat_map(|told| round_trip_to(told, who).map(|rtt| (told.from, rtt))).collect();
        for (from, rtt_us) in told {
            self.delegation.knowledge.between(from, who, rtt_us);
        }
        // What it measured in claims that came before it.
        let short = ShortId::from(who);
        let measured = self.ownership.register.all().flat_map(|held| {
            let answers = held.claim.answers.iter().filter(|answer| answer.prober == short);
            answers.map(|answer| (held.claim.subnet, answer.rtt_us))
        });
        for (subnet, rtt_us) in measured {
            self.delegation.knowledge.measured(&self.context.hierarchy, subnet, who, rtt_us);
        }
    }

    /// A member is gone for good.
    pub(crate) fn forget_distances(&mut self, gone: AccessPoint) {
        self.delegation.distances.mine.remove(&gone);
        self.delegation.distances.pings.remove(&gone);
        self.delegation.distances.remotes.remove(&gone);
        self.delegation.distances.homes.remove(&gone);
        self.delegation.distances.heard.remove(&gone);
        self.delegation.knowledge.forget(&self.context.hierarchy, gone);
    }

    /// A member told its distances; the node saw to it that it is the author.
    pub(crate) fn distances_told(&mut self, told: Distances) {
        let newer = self.delegation.distances.heard.get(&told.from).is_none_or(|known| known.version < told.version);
        let known = self.delegation.distances.heard.contains_key(&told.from);
        if told.from == self.context.me || !newer || (!known && self.delegation.distances.heard.len() >= MAX_HEARD) {
            return;
        }
        if told.round_trips.len() > MAX_TOLD {
            return self.refuse("distance reports with too many members");
        }
        self.delegation.knowledge.introduce(told.from, &self.context.hierarchy, told.address, told.country);
        let members: BTreeMap<ShortId, AccessPoint> = self.membership.known().map(|member| ((*member).into(), *member)).collect();
        for (who, rtt_us) in &told.round_trips {
            // How far it is from here we measure ourselves.
            if let Some(member) = members.get(who).filter(|member| **member != self.context.me) {
                self.delegation.knowledge.between(told.from, *member, *rtt_us);
            }
        }
        let from = told.from;
        if told.home_port.is_some() {
            self.delegation.distances.homes.entry(from).or_default();
        } else {
            self.delegation.distances.homes.remove(&from);
        }
        self.delegation.distances.heard.insert(from, told);
        self.distance_known(from);
    }

    pub(crate) fn tick_distances(&mut self) {
        self.time_a_home();
        let members = self.live().len() as u64;
        let pause = MIN_PAUSE.max(PAUSE_A_MEMBER * members);
        let due = |pause: Millis| self.delegation.distances.told.is_none_or(|told| self.context.now.moment.since(told) >= pause);
        let news = self.delegation.distances.changed && due(pause);
        if members < 2 || !(news || due(TELL_AGAIN.max(10 * pause))) {
            return;
        }
        let mut nearest: Vec<_> = self.delegation.distances.mine.iter().map(|(who, rtt)| (*rtt, ShortId::from(*who))).collect();
        nearest.sort_unstable();
        nearest.truncate(MAX_TOLD);
        let address = self.placed_address();
        self.delegation.distances.changed = false;
        self.delegation.distances.told = Some(self.context.now.moment);
        // As with roll-ups: wall time keeps versions growing across restarts.
        self.delegation.distances.version = (self.delegation.distances.version + 1).max(self.context.now.wall.0);
        self.context.commands.push_back(Command::Peers(PeerCommand::Publish(Gossip::Distances(Distances {
            from: self.context.me,
            version: self.delegation.distances.version,
            address,
            country: None,
            home_port: self.context.settings.home_port,
            round_trips: nearest.into_iter().map(|(rtt, who)| (who, rtt)).collect(),
        }))));
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
