//! Distances between members: measured on our connections, told to every member, and kept for the search for the nearest.

use crate::{
    context::{Context, PAUSE_A_MEMBER, TELL_AGAIN},
    delegation::Knowledge,
    event::{Command, WebCommand},
    membership::Membership,
};
use nearcrawl_model::{
    access_point::{AccessPoint, ShortId},
    distances::{Distances, MAX_TOLD},
    fetch::{ProbeReason, ProbeReport, ProbeTarget},
    ids::QuestionId,
    message::Gossip,
    time::{Millis, Moment},
    url::Host,
};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

/// No two tellings are nearer than this.
const MIN_PAUSE: Millis = 2_000;

/// A distance is told again when it has become less by an eighth, and by this much: members that are nearer to each other than 5 ms count as
/// equally near, in microseconds.
const NEWS_US: u32 = 1_000;

/// Members whose distances are kept, by us and as they told them.
const MAX_HEARD: usize = 4_096;

/// A member's web server is timed a second time this long after the first, for the least of several counts, and then rarely.
const TIME_SOON_AGAIN: Millis = 60_000;
const TIME_AGAIN: Millis = 6 * 3_600_000;

/// After so many failures in a row the swarm connection's ping has to do.
const MAX_FAILURES: u32 = 3;

/// What is known of the members' distances.
#[derive(Debug, Default)]
pub(crate) struct MemberDistances {
    /// The least round trip to each member, in microseconds.
    mine: BTreeMap<AccessPoint, u32>,
    /// The least ping of our connections to each member.
    pings: BTreeMap<AccessPoint, u32>,
    /// The addresses at the other ends of these connections.
    remotes: BTreeMap<AccessPoint, IpAddr>,
    /// The web servers of members who told of one.
    homes: BTreeMap<AccessPoint, Home>,
    /// Those that are being timed, by question.
    timing: BTreeMap<QuestionId, AccessPoint>,
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

impl MemberDistances {
    /// Members whose distance was measured.
    pub(super) fn known(&self) -> usize {
        self.mine.len()
    }

    /// How far they are, in microseconds.
    pub(super) fn round_trips(&self) -> impl Iterator<Item = (AccessPoint, u32)> {
        self.mine.iter().map(|(who, rtt_us)| (*who, *rtt_us))
    }

    /// The address that a member is at: at the other end of our direct connection, else as it tells.
    pub(super) fn address_of(&self, who: &AccessPoint) -> Option<IpAddr> {
        self.remotes.get(who).copied().or_else(|| self.heard.get(who)?.address)
    }

    /// The address that we are at.
    pub(super) fn place(&self, cx: &Context) -> Option<IpAddr> {
        placed_address(cx)
    }

    /// We are where our address is.
    pub(super) fn introduce_me(&self, cx: &Context, knowledge: &mut Knowledge) {
        knowledge.introduce(cx.me, &cx.hierarchy, placed_address(cx), None);
    }

    /// A connection to a member was timed.
    pub(super) fn measured(&mut self, cx: &Context, knowledge: &mut Knowledge, to: AccessPoint, rtt_us: u32, remote: Option<IpAddr>) {
        let full = self.pings.len() >= MAX_HEARD && !self.pings.contains_key(&to);
        if to == cx.me || full {
            return;
        }
        let ping = self.pings.entry(to).or_insert(rtt_us);
        *ping = rtt_us.min(*ping);
        if let Some(remote) = remote {
            self.remotes.insert(to, remote);
        }
        self.update(cx, knowledge, to);
    }

    /// Something new is known of the way to a member.
    fn update(&mut self, cx: &Context, knowledge: &mut Knowledge, to: AccessPoint) {
        let Some(rtt_us) = self.round_trip(to) else { return };
        let known = self.mine.get(&to).copied();
        // A little less again and again changes nothing, and below a millisecond nothing depends on it.
        if known.is_none_or(|known| rtt_us < known.saturating_sub(NEWS_US.max(known / 8))) {
            self.changed = true;
        }
        if known.is_none_or(|known| rtt_us < known) {
            self.mine.insert(to, rtt_us);
            knowledge.between(cx.me, to, rtt_us);
        }
    }

    /// The round trip to a member, measured like that to any server if it has one of its own. Not before it has told whether.
    fn round_trip(&self, to: AccessPoint) -> Option<u32> {
        let ping = || self.pings.get(&to).copied();
        if self.heard.get(&to)?.home_port.is_none() {
            return ping();
        }
        let home = self.homes.get(&to)?;
        if home.failures < MAX_FAILURES { home.rtt_us } else { ping() }
    }

    /// Times the way to one member's web server whose time has come. The address is that of our connection: no member can name another's.
    fn time_a_home(&mut self, cx: &mut Context) {
        if !cx.may_ask_servers() {
            return;
        }
        let now = cx.now.moment;
        let due = self.homes.iter().filter(|(_, home)| home.due <= now);
        let next = due.filter_map(|(who, _)| {
            let port = self.heard.get(who)?.home_port?;
            let address = SocketAddr::new(*self.remotes.get(who)?, port);
            let host: Host = address.ip().to_string().parse().ok()?;
            (!cx.denies(&host, Some(address.ip()))).then_some((*who, address, host))
        });
        let Some((who, address, host)) = next.min_by_key(|(who, address, _)| (*who, *address)) else { return };
        if let Some(home) = self.homes.get_mut(&who) {
            home.due = now.after(TIME_AGAIN);
        }
        let question = cx.number();
        self.timing.insert(question, who);
        let target = ProbeTarget { address, host, secure: false };
        cx.commands.push_back(Command::Web(WebCommand::Probe { question, target, reason: ProbeReason::Home(who) }));
    }

    /// The way to a member's web server was timed, if this was such a question.
    pub(super) fn home_timed(&mut self, cx: &Context, knowledge: &mut Knowledge, question: QuestionId, report: ProbeReport) -> bool {
        let Some(who) = self.timing.remove(&question) else { return false };
        if let Some(home) = self.homes.get_mut(&who) {
            home.timed += 1;
            if home.timed < MAX_FAILURES {
                home.due = cx.now.moment.after(TIME_SOON_AGAIN);
            }
            match report.rtt_us {
                Ok(rtt_us) => {
                    home.failures = 0;
                    home.rtt_us = Some(home.rtt_us.map_or(rtt_us, |known| known.min(rtt_us)));
                }
                Err(_) => home.failures += 1,
            }
        }
        self.update(cx, knowledge, who);
        true
    }

    /// A member came: it has heard nothing yet, and some may have told of it before it was known here.
    pub(super) fn newcomer(&mut self, cx: &Context, knowledge: &mut Knowledge, members: &Membership, who: AccessPoint) {
        self.changed = true;
        if !self.heard.contains_key(&who) {
            let addresses = members.addresses_of(&who);
            let address = addresses.iter().filter_map(|text| own_ip(text)).find(|address| cx.hierarchy.locate(*address).is_some());
            knowledge.introduce(who, &cx.hierarchy, address, None);
        }
        for told in self.heard.values() {
            if let Some(rtt_us) = round_trip_to(told, who) {
                knowledge.between(told.from, who, rtt_us);
            }
        }
    }

    /// A member is gone for good.
    pub(super) fn forget(&mut self, gone: AccessPoint) {
        self.mine.remove(&gone);
        self.pings.remove(&gone);
        self.remotes.remove(&gone);
        self.homes.remove(&gone);
        self.heard.remove(&gone);
    }

    /// A member told its distances; the node saw to it that it is the author.
    pub(super) fn told(&mut self, cx: &mut Context, knowledge: &mut Knowledge, members: &Membership, told: Distances) {
        let from = told.from;
        let newer = self.heard.get(&from).is_none_or(|known| known.version < told.version);
        let known = self.heard.contains_key(&from);
        if from == cx.me || !newer || (!known && self.heard.len() >= MAX_HEARD) {
            return;
        }
        if told.round_trips.len() > MAX_TOLD {
            return cx.refuse("distance reports with too many members");
        }
        knowledge.introduce(from, &cx.hierarchy, told.address, told.country);
        let members: BTreeMap<ShortId, AccessPoint> = members.known().map(|member| ((*member).into(), *member)).collect();
        for (who, rtt_us) in &told.round_trips {
            // How far it is from here we measure ourselves.
            if let Some(member) = members.get(who).filter(|member| **member != cx.me) {
                knowledge.between(from, *member, *rtt_us);
            }
        }
        if told.home_port.is_some() {
            self.homes.entry(from).or_default();
        } else {
            self.homes.remove(&from);
        }
        self.heard.insert(from, told);
        self.update(cx, knowledge, from);
    }

    /// Times the way to a member's web server, and tells what is new if it is time.
    pub(super) fn tick(&mut self, cx: &mut Context, members: &Membership) {
        self.time_a_home(cx);
        let live = members.live();
        let members = live.len() as u64;
        let pause = MIN_PAUSE.max(PAUSE_A_MEMBER * members);
        let due = |pause: Millis| self.told.is_none_or(|told| cx.now.moment.since(told) >= pause);
        let news = self.changed && due(pause);
        if members < 2 || !(news || due(TELL_AGAIN.max(10 * pause))) {
            return;
        }
        self.changed = false;
        self.told = Some(cx.now.moment);
        // As with roll-ups: wall time keeps versions growing across restarts.
        self.version = (self.version + 1).max(cx.now.wall.0);
        let others: Vec<_> = live.iter().copied().filter(|member| *member != cx.me).collect();
        cx.tell_all(&others, Gossip::Distances(self.to_tell(cx)));
    }

    /// What the others are told: the nearest.
    fn to_tell(&self, cx: &Context) -> Distances {
        let mut nearest: Vec<_> = self.mine.iter().map(|(who, rtt)| (*rtt, ShortId::from(*who))).collect();
        nearest.sort_unstable();
        nearest.truncate(MAX_TOLD);
        Distances {
            from: cx.me,
            version: self.version,
            address: placed_address(cx),
            country: None,
            home_port: cx.settings.home_port,
            round_trips: nearest.into_iter().map(|(rtt, who)| (who, rtt)).collect(),
        }
    }
}

/// An address of ours that the hierarchy knows.
fn placed_address(cx: &Context) -> Option<IpAddr> {
    cx.settings.own_addresses.iter().copied().find(|address| cx.hierarchy.locate(*address).is_some())
}

fn round_trip_to(told: &Distances, who: AccessPoint) -> Option<u32> {
    told.round_trips.iter().find(|(short, _)| *short == who.into()).map(|(_, rtt)| *rtt)
}

/// The address at the beginning of a multiaddr, unless it is that of a third member through which the other one is reached.
pub(crate) fn own_ip(multiaddr: &str) -> Option<IpAddr> {
    if multiaddr.contains("/p2p-circuit") {
        return None;
    }
    let mut parts = multiaddr.split('/').skip(1);
    matches!(parts.next()?, "ip4" | "ip6").then(|| parts.next()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::{Member, Roster, Swim};
    use nearcrawl_model::{admission::NotAdmitted, allowance::Rest, fetch::FetchError};
    use std::collections::BTreeSet;

    const OTHER: AccessPoint = AccessPoint([7; 32]);

    fn told(version: u64, home_port: Option<u16>) -> Distances {
        Distances { from: OTHER, version, address: None, country: None, home_port, round_trips: Vec::new() }
    }

    fn no_members(cx: &Context) -> Membership {
        let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
        Membership::with_lease(swim, Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &BTreeSet::new()))
    }

    #[test]
    fn a_member_without_a_web_server_is_as_far_as_its_least_ping() {
        let (mut cx, mut distances, mut knowledge) = (Context::of_test(1), MemberDistances::default(), Knowledge::new());
        let members = no_members(&cx);
        distances.measured(&cx, &mut knowledge, OTHER, 9_000, None);
        assert_eq!(distances.round_trip(OTHER), None, "it has not told whether it has one");
        distances.told(&mut cx, &mut knowledge, &members, told(2, None));
        distances.measured(&cx, &mut knowledge, OTHER, 8_000, None);
        distances.measured(&cx, &mut knowledge, OTHER, 8_500, None);
        assert_eq!((distances.round_trip(OTHER), distances.known()), (Some(8_000), 1));
        distances.told(&mut cx, &mut knowledge, &members, told(1, Some(80)));
        assert_eq!(distances.round_trip(OTHER), Some(8_000), "that is older");
        distances.forget(OTHER);
        assert_eq!((distances.round_trip(OTHER), distances.known()), (None, 0));
    }

    #[test]
    fn a_members_web_server_is_timed_where_its_connection_comes_from_until_it_fails_too_often() {
        let (mut cx, mut distances, mut knowledge) = (Context::of_test(1), MemberDistances::default(), Knowledge::new());
        let members = no_members(&cx);
        distances.measured(&cx, &mut knowledge, OTHER, 9_000, Some("192.0.2.7".parse().unwrap()));
        distances.told(&mut cx, &mut knowledge, &members, told(1, Some(81)));
        assert_eq!(distances.round_trip(OTHER), None, "a ping is not like the way to a server");
        cx.rest = Some(Rest::Paused { until: None });
        distances.tick(&mut cx, &members);
        cx.rest = None;
        cx.excluded.insert(cx.me, NotAdmitted::NoCertificate);
        distances.tick(&mut cx, &members);
        cx.excluded.clear();
        cx.settings.scope.denied.insert("192.0.2.7".parse().unwrap());
        distances.tick(&mut cx, &members);
        assert!(cx.take_commands().is_empty(), "nothing is asked while nothing may be, nor whom nobody may ask");
        cx.settings.scope.denied.clear();
        let answers = [Ok(5_000), Err(FetchError::ConnectTimeout), Err(FetchError::ConnectTimeout), Err(FetchError::ConnectTimeout)];
        let mut known = Vec::new();
        for rtt_us in answers {
            distances.tick(&mut cx, &members);
            let [Command::Web(WebCommand::Probe { question, target, .. })] = &cx.take_commands()[..] else { panic!("it is timed") };
            assert_eq!(target.address, "192.0.2.7:81".parse().unwrap());
            assert!(distances.home_timed(&cx, &mut knowledge, *question, ProbeReport { rtt_us, took: 10 }));
            known.push(distances.round_trip(OTHER));
            cx.now.moment = cx.now.moment.after(TIME_AGAIN);
        }
        assert_eq!(known, [Some(5_000), Some(5_000), Some(5_000), Some(9_000)]);
        assert!(
            !distances.home_timed(&cx, &mut knowledge, QuestionId(0), ProbeReport { rtt_us: Ok(1), took: 1 }),
            "it was no such question"
        );
    }

    #[test]
    fn addresses_are_read_off_multiaddresses() {
        assert_eq!(own_ip("/ip4/192.0.2.7/tcp/4817/p2p/12D3KooW"), Some("192.0.2.7".parse().unwrap()));
        assert_eq!(own_ip("/ip6/2001:db8::1/tcp/4817"), Some("2001:db8::1".parse().unwrap()));
        for none in ["/dns4/example.org/tcp/1", "/ip4/nonsense", "", "/sim/3"] {
            assert_eq!(own_ip(none), None, "{none}");
        }
    }
}
