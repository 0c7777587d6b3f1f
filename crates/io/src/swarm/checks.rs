//! Checks whether we are reached from outside: what members say who tried ([`super::dial_back`]), and how long it holds.

use super::{dial_back::DialedBack, identity::access_point_of, messages::Reached, port::Port};
use libp2p::{Multiaddr, PeerId};
use nearcrawl_model::{access_point::AccessPoint, address::AddressPolicy};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::{Duration, Instant},
};

/// Members that are asked in one round.
pub(super) const MAX_ASKED: usize = 3;

/// How long a round may take.
const ROUND: Duration = Duration::from_secs(12);

/// An address at which we were reached, or seen, is given up if it was not for so long.
const HOLDS_FOR: Duration = Duration::from_secs(3600);

/// The next round comes so long after one in which we were reached, were not, or nobody answered.
const AGAIN_REACHED: Duration = Duration::from_secs(1200);
const AGAIN_NOT_REACHED: Duration = Duration::from_secs(300);
const AGAIN_UNANSWERED: Duration = Duration::from_secs(10);

/// What a member found out.
#[derive(Clone, Debug)]
struct Answer {
    from: PeerId,
    seen: IpAddr,
    ports: Vec<(Port, bool)>,
}

/// The rounds, and what came of them.
#[derive(Debug)]
pub(super) struct Checks {
    state: Reached,
    /// Where we are reached, until when that holds, and by whom.
    confirmed: BTreeMap<Multiaddr, (Instant, Vec<PeerId>)>,
    /// Addresses that members see us at, and until when that holds.
    own: BTreeMap<IpAddr, Instant>,
    answers: Vec<Answer>,
    /// Members that were asked in the last round.
    asked: usize,
    /// When the present round ends.
    ends: Option<Instant>,
    next: Instant,
    /// When the next one comes if nobody answers.
    unanswered: Duration,
}

fn is_global(address: IpAddr) -> bool {
    AddressPolicy::default().check_ip(address).is_ok()
}

impl Checks {
    /// Nothing is known.
    pub(super) fn new(now: Instant) -> Checks {
        Checks {
            state: Reached::Unknown,
            confirmed: BTreeMap::new(),
            own: BTreeMap::new(),
            answers: Vec::new(),
            asked: 0,
            ends: None,
            next: now,
            unanswered: AGAIN_UNANSWERED,
        }
    }

    /// Whether a round is to begin in which so many members would be asked. What one alone said is asked once more when there are two.
    pub(super) fn is_due(&self, now: Instant, members: usize) -> bool {
        let better = self.asked == 1 && members > 1;
        self.ends.is_none() && members > 0 && (now >= self.next || better)
    }

    /// The next round comes now: something has changed.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.next = now;
    }

    /// Nobody can reach us: we listen nowhere.
    pub(super) fn listens_nowhere(&mut self) {
        self.confirmed.clear();
        self.state = Reached::Behind;
    }

    /// So many members were asked whether they reach us at these ports; without any, where they see us.
    pub(super) fn begin(&mut self, now: Instant, members: usize, ports: &[Port]) {
        self.asked = members;
        // Members of earlier versions do not answer that.
        self.unanswered = if ports.is_empty() { AGAIN_NOT_REACHED } else { AGAIN_UNANSWERED };
        self.answers.clear();
        self.ends = Some(now + ROUND);
    }

    /// A member answered; what it says without having been asked, or of other ports, is left aside.
    pub(super) fn answered(&mut self, from: PeerId, ports: &[Port], answer: DialedBack) {
        let DialedBack { seen: Some(seen), reached } = answer else { return };
        let new = self.answers.len() < MAX_ASKED && self.answers.iter().all(|answer| answer.from != from);
        if self.ends.is_some() && new && reached.len() == ports.len() {
            let ports = ports.iter().copied().zip(reached).collect();
            self.answers.push(Answer { from, seen: seen.to_canonical(), ports });
        }
    }

    /// Looks at the clock. `open`: answers that are still awaited.
    pub(super) fn tick(&mut self, now: Instant, open: usize) {
        self.confirmed.retain(|_, (until, _)| now < *until);
        self.own.retain(|_, until| now < *until);
        if self.confirmed.is_empty() && self.state == Reached::Public {
            self.state = Reached::Unknown;
        }
        if self.ends.is_some_and(|ends| now >= ends || open == 0) {
            self.ends = None;
            self.judge(now);
        }
    }

    fn judge(&mut self, now: Instant) {
        // Who is in our own network says nothing about others, if there are others.
        let inside = self.answers.iter().filter(|answer| !is_global(answer.seen)).count();
        let mut asked = self.asked;
        if inside < self.answers.len() {
            self.answers.retain(|answer| is_global(answer.seen));
            asked = asked.saturating_sub(inside);
        }
        let answers = std::mem::take(&mut self.answers);
        // One of several may be wrong, or lie: two are believed, or the only one that there is to ask.
        let enough = asked.min(2);
        if answers.len() < enough.max(1) {
            self.next = now + self.unanswered;
            return;
        }
        let mut tried: BTreeMap<(IpAddr, Port), Vec<PeerId>> = BTreeMap::new();
        let mut seen: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for answer in &answers {
            *seen.entry(answer.seen).or_default() += 1;
            for (port, reached) in &answer.ports {
                tried.entry((answer.seen, *port)).or_default().extend(reached.then_some(answer.from));
            }
        }
        let own: BTreeSet<IpAddr> = seen.iter().filter(|(_, count)| **count >= enough).map(|(address, _)| *address).collect();
        // If members do not agree, or came by the other family, it is where it was last.
        self.own.retain(|known, _| !own.iter().any(|new| new.is_ipv4() == known.is_ipv4()));
        self.own.extend(own.iter().map(|address| (*address, now + HOLDS_FOR)));
        let families: BTreeSet<bool> = seen.keys().map(IpAddr::is_ipv4).collect();
        let is_four = |address: &Multiaddr| matches!(address.iter().next(), Some(libp2p::multiaddr::Protocol::Ip4(_)));
        self.confirmed.retain(|address, _| !families.contains(&is_four(address)));
        let confirmed = tried.into_iter().filter(|((seen, _), by)| by.len() >= enough.max(1) && own.contains(seen));
        self.confirmed.extend(confirmed.map(|((seen, port), by)| (port.at(seen), (now + HOLDS_FOR, by))));
        (self.state, self.next) =
            if self.confirmed.is_empty() { (Reached::Behind, now + AGAIN_NOT_REACHED) } else { (Reached::Public, now + AGAIN_REACHED) };
    }

    /// Whether others reach us.
    pub(super) fn state(&self) -> Reached {
        self.state
    }

    /// Where they do.
    pub(super) fn confirmed(&self) -> impl Iterator<Item = &Multiaddr> {
        self.confirmed.keys()
    }

    /// The same with the members that reached us there.
    pub(super) fn confirmed_by(&self) -> impl Iterator<Item = (&Multiaddr, Vec<AccessPoint>)> {
        self.confirmed.iter().map(|(address, (_, by))| (address, by.iter().filter_map(access_point_of).collect()))
    }

    /// The addresses that members see us at.
    pub(super) fn own(&self) -> impl Iterator<Item = IpAddr> {
        self.own.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: [Port; 2] = [Port::Tcp(4817), Port::Quic(4817)];

    /// A round in which members see us at these addresses, and reach us or not.
    fn round(checks: &mut Checks, now: Instant, answers: &[(&str, bool)]) -> Vec<String> {
        assert!(checks.is_due(now, 2));
        checks.begin(now, answers.len().max(1), &PORTS);
        for (seen, reached) in answers {
            let answer = DialedBack { seen: Some(seen.parse().unwrap()), reached: vec![*reached; 2] };
            checks.answered(PeerId::random(), &PORTS, answer);
        }
        checks.tick(now, 0);
        checks.confirmed().map(ToString::to_string).collect()
    }

    #[test]
    fn what_two_say_or_all_is_believed() {
        let now = Instant::now();
        let at = |checks: &Checks| checks.state();
        let mut checks = Checks::new(now);
        assert_eq!(at(&checks), Reached::Unknown);
        assert_eq!(round(&mut checks, now, &[("1.1.1.1", true)]), ["/ip4/1.1.1.1/tcp/4817", "/ip4/1.1.1.1/udp/4817/quic-v1"]);
        assert_eq!((at(&checks), checks.own().count()), (Reached::Public, 1));
        let now = now + AGAIN_REACHED;
        assert!(round(&mut checks, now, &[("1.1.1.1", true), ("1.1.1.1", false)]).is_empty());
        assert_eq!(at(&checks), Reached::Behind);
        let now = now + AGAIN_NOT_REACHED;
        assert_eq!(round(&mut checks, now, &[("1.1.1.1", true), ("1.1.1.1", true), ("9.9.9.9", false)]).len(), 2);
        assert_eq!(checks.own().collect::<Vec<_>>(), ["1.1.1.1".parse::<IpAddr>().unwrap()], "one alone does not say where we are");
    }

    #[test]
    fn one_liar_among_three_neither_makes_us_public_nor_says_where_we_are() {
        let now = Instant::now();
        let mut checks = Checks::new(now);
        assert!(round(&mut checks, now, &[("1.1.1.1", false), ("1.1.1.1", false), ("9.9.9.9", true)]).is_empty());
        assert_eq!(checks.state(), Reached::Behind);
        // The others are kept from answering.
        let now = now + AGAIN_NOT_REACHED;
        checks.begin(now, 3, &PORTS);
        checks.answered(PeerId::random(), &PORTS, DialedBack { seen: Some("9.9.9.9".parse().unwrap()), reached: vec![true; 2] });
        checks.tick(now, 0);
        assert_eq!((checks.state(), checks.confirmed().count()), (Reached::Behind, 0));
        assert!(!checks.own().any(|own| own == "9.9.9.9".parse::<IpAddr>().unwrap()));
    }

    #[test]
    fn who_is_in_our_own_network_does_not_say_that_others_reach_us() {
        let now = Instant::now();
        let mut checks = Checks::new(now);
        assert!(round(&mut checks, now, &[("192.168.1.5", true), ("1.1.1.1", false)]).is_empty());
        assert_eq!(checks.state(), Reached::Behind);
        let mut alone = Checks::new(now);
        assert_eq!(round(&mut alone, now, &[("192.168.1.5", true)]).len(), 2, "a swarm in one network");
    }

    #[test]
    fn an_address_is_forgotten_when_it_changes_and_when_nobody_confirms_it() {
        let now = Instant::now();
        let mut checks = Checks::new(now);
        round(&mut checks, now, &[("1.1.1.1", true)]);
        let now = now + AGAIN_REACHED;
        assert_eq!(round(&mut checks, now, &[("8.8.8.8", true)])[0], "/ip4/8.8.8.8/tcp/4817");
        assert_eq!(round(&mut checks, now + AGAIN_REACHED, &[]).len(), 2, "nobody answered");
        checks.tick(now + HOLDS_FOR, 0);
        assert_eq!((checks.confirmed().count(), checks.state()), (0, Reached::Unknown));
    }

    #[test]
    fn where_we_are_seen_holds_until_members_agree_on_another_address_of_that_family_or_for_an_hour() {
        let begun = Instant::now();
        let mut checks = Checks::new(begun);
        let own = |checks: &Checks| checks.own().map(|own| own.to_string()).collect::<Vec<_>>();
        round(&mut checks, begun, &[("1.1.1.1", false), ("1.1.1.1", false)]);
        let now = begun + AGAIN_NOT_REACHED;
        round(&mut checks, now, &[("8.8.8.8", false), ("9.9.9.9", false)]);
        assert_eq!(own(&checks), ["1.1.1.1"], "each says something else");
        let now = now + AGAIN_NOT_REACHED;
        round(&mut checks, now, &[("2606:4700::1", false), ("2606:4700::1", false)]);
        assert_eq!(own(&checks), ["1.1.1.1", "2606:4700::1"], "the members of this round have IPv6");
        checks.tick(begun + HOLDS_FOR, 0);
        assert_eq!(own(&checks), ["2606:4700::1"], "nobody has said so for an hour");
        round(&mut checks, begun + HOLDS_FOR, &[("2606:4700::2", false), ("2606:4700::2", false)]);
        assert_eq!(own(&checks), ["2606:4700::2"]);
    }

    #[test]
    fn who_listens_nowhere_learns_where_it_is_and_asks_seldom_if_nobody_answers() {
        let now = Instant::now();
        let mut checks = Checks::new(now);
        checks.begin(now, 1, &[]);
        checks.tick(now, 0);
        assert!(!checks.is_due(now + AGAIN_UNANSWERED, 1) && checks.is_due(now + AGAIN_NOT_REACHED, 1));
        checks.begin(now, 1, &[]);
        checks.answered(PeerId::random(), &[], DialedBack { seen: Some("1.1.1.1".parse().unwrap()), reached: Vec::new() });
        checks.tick(now, 0);
        assert_eq!((checks.own().count(), checks.confirmed().count(), checks.state()), (1, 0, Reached::Behind));
    }

    #[test]
    fn answers_that_do_not_fit_and_second_ones_are_left_aside() {
        let now = Instant::now();
        let mut checks = Checks::new(now);
        let (peer, seen) = (PeerId::random(), Some("1.1.1.1".parse().unwrap()));
        checks.answered(peer, &PORTS, DialedBack { seen, reached: vec![true; 2] });
        checks.begin(now, 1, &PORTS);
        checks.answered(peer, &PORTS, DialedBack { seen, reached: vec![true; 5] });
        checks.answered(peer, &PORTS, DialedBack::nothing());
        checks.tick(now, 0);
        assert_eq!(checks.state(), Reached::Unknown);
        let soon = now + AGAIN_UNANSWERED / 2;
        assert!(!checks.is_due(soon, 1) && checks.is_due(soon, 2) && checks.is_due(now + AGAIN_UNANSWERED, 1));
        assert!(!checks.is_due(now + AGAIN_UNANSWERED, 0), "nobody is there");
    }
}
