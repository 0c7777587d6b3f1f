//! Tests with members that lie about others: SWIM machines joined by a network, and datagrams that no honest one would send.

use super::{
    hearsay::{Datagram, Update},
    member::Member,
    swim::{Output, Swim},
    swim_config::SwimConfig,
};
use foca::{Header, Message, State};
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
};
use std::collections::{BTreeMap, BTreeSet};

const SECOND: Millis = 1_000;
const STEP: Millis = 100;

/// A start number that no member reaches.
const GREATEST: u64 = (1 << 40) - 1;

fn ap(number: usize) -> AccessPoint {
    AccessPoint([number as u8 + 1; 32])
}

fn at(number: usize) -> Vec<String> {
    vec![format!("/ip4/198.51.100.{number}/tcp/4817")]
}

fn false_address() -> Vec<String> {
    vec!["/ip4/203.0.113.9/tcp/22".to_owned()]
}

/// What one of them has found out.
#[derive(Default)]
struct Known {
    up: BTreeMap<AccessPoint, Vec<String>>,
    /// Since when a member has been down.
    down: BTreeMap<AccessPoint, Moment>,
    longest_down: Millis,
    /// Whom it wanted to reach where.
    reached: BTreeSet<(AccessPoint, Vec<String>)>,
}

struct Net {
    now: Moment,
    swims: Vec<Option<Swim>>,
    known: Vec<Known>,
    under_way: Vec<(usize, AccessPoint, Vec<u8>)>,
    cut: BTreeSet<(usize, usize)>,
    config: SwimConfig,
    /// Datagrams, but for those of `lie`.
    sent: usize,
}

impl Net {
    /// So many that know each other.
    fn of(members: usize) -> Net {
        let config = SwimConfig::default();
        let (swims, known, under_way, cut) = Default::default();
        let mut net = Net { now: Moment(1_000_000), swims, known, under_way, cut, config, sent: 0 };
        for number in 0..members {
            net.add(number, 1);
        }
        net.run(20 * SECOND);
        for number in 0..members {
            assert_eq!(net.known[number].up.len(), members - 1, "{number}");
        }
        net
    }

    /// Starts a member for the so manieth time; it asks the first other that runs to let it in.
    fn add(&mut self, number: usize, incarnation: u64) {
        while self.swims.len() <= number {
            self.swims.push(None);
            self.known.push(Known::default());
        }
        let mut swim = Swim::new(Member::new(ap(number), incarnation, at(number)), self.config.clone(), incarnation << 8 | number as u64);
        let door = (0..self.swims.len()).find(|other| *other != number && self.swims[*other].is_some());
        if let Some(door) = door {
            swim.join(self.now, Member::new(ap(door), 1, at(door)));
        }
        (self.swims[number], self.known[number]) = (Some(swim), Known::default());
    }

    fn run(&mut self, lasts: Millis) {
        self.run_with(lasts, |_| {});
    }

    /// Runs, and does something once a second.
    fn run_with(&mut self, lasts: Millis, mut each_second: impl FnMut(&mut Net)) {
        for step in 0..lasts / STEP {
            if step % (SECOND / STEP) == 0 {
                each_second(self);
            }
            self.now = self.now.after(STEP);
            for (to, from, bytes) in std::mem::take(&mut self.under_way) {
                if let Some(swim) = &mut self.swims[to] {
                    let _ = swim.receive(self.now, from, &bytes);
                }
            }
            for number in 0..self.swims.len() {
                self.tick(number);
            }
        }
    }

    fn tick(&mut self, number: usize) {
        let Some(swim) = &mut self.swims[number] else { return };
        swim.tick(self.now);
        for output in swim.drain().collect::<Vec<_>>() {
            match output {
                Output::Send { to, addresses, bytes } => {
                    self.sent += 1;
                    self.known[number].reached.insert((to, addresses));
                    let receiver = (0..self.swims.len()).find(|other| ap(*other) == to);
                    if let Some(receiver) = receiver.filter(|receiver| !self.is_cut(number, *receiver)) {
                        self.under_way.push((receiver, ap(number), bytes));
                    }
                }
                Output::Up(member) => {
                    self.known[number].up.insert(member.access_point, member.addresses);
                    self.known[number].down.remove(&member.access_point);
                }
                Output::Down(who) => {
                    self.known[number].up.remove(&who);
                    self.known[number].down.insert(who, self.now);
                }
                Output::Renewed(_) => {}
            }
        }
        let known = &mut self.known[number];
        let longest = known.down.values().map(|since| self.now.since(*since)).max().unwrap_or(0);
        known.longest_down = known.longest_down.max(longest);
    }

    fn is_cut(&self, one: usize, other: usize) -> bool {
        self.cut.contains(&(one.min(other), one.max(other)))
    }

    /// A datagram with these statements, from one to another, that the protocol would not send.
    fn lie(&mut self, from: usize, to: usize, message: Message<Member>, updates: Vec<Update>) {
        let identity = |number: usize| self.swims[number].as_ref().map(|swim| swim.me().clone());
        let (Some(src), Some(dst)) = (identity(from), identity(to)) else { return };
        let datagram = Datagram { header: Header { src, src_incarnation: 0, dst, message }, updates: Some(updates) };
        self.under_way.push((to, ap(from), datagram.write(usize::MAX)));
    }

    /// The same to everybody.
    fn lie_to_all(&mut self, from: usize, updates: &[Update]) {
        for to in (0..self.swims.len()).filter(|to| *to != from) {
            self.lie(from, to, Message::Gossip, updates.to_vec());
        }
    }

    fn me(&self, number: usize) -> Member {
        self.swims[number].as_ref().unwrap().me().clone()
    }

    /// Everybody that runs knows this member at its address.
    fn all_know(&self, number: usize) -> bool {
        let others = (0..self.swims.len()).filter(|other| *other != number && self.swims[*other].is_some());
        others.into_iter().all(|other| self.known[other].up.get(&ap(number)) == Some(&at(number)))
    }
}

fn alive(member: Member) -> Update {
    Update::new(member, 0, State::Alive)
}

fn elsewhere(number: usize, incarnation: u64, renewal: u32) -> Member {
    Member { renewal, ..Member::new(ap(number), incarnation, false_address()) }
}

#[test]
fn nobody_makes_others_ignore_a_member_by_claiming_that_it_has_started_again_elsewhere() {
    let mut net = Net::of(6);
    let mut round = 0;
    net.run_with(90 * SECOND, |net| {
        round += 1;
        let mine = net.me(0);
        let updates = [
            alive(elsewhere(0, GREATEST, round)),
            alive(elsewhere(0, mine.incarnation, mine.renewal)),
            Update::new(elsewhere(0, GREATEST, round), 0, State::Suspect),
            Update::new(elsewhere(0, GREATEST, round), 0, State::Down),
        ];
        net.lie_to_all(5, &updates);
    });
    for number in 1..6 {
        assert_eq!(net.known[number].longest_down, 0, "{number} had it for down");
        assert_eq!(net.known[number].up[&ap(0)], at(0));
        assert!(!net.known[number].reached.contains(&(ap(0), false_address())), "{number} was led to another address");
    }
    assert_eq!(net.known[0].up.len(), 5);
    assert_eq!(net.me(0).renewal, 0, "it had no reason to renew itself");
}

#[test]
fn a_member_that_restarts_while_one_lies_about_it_is_back_at_its_address() {
    let mut net = Net::of(6);
    let lies = |net: &mut Net| net.lie_to_all(5, &[alive(elsewhere(0, GREATEST, 0))]);
    net.swims[0] = None;
    net.run_with(30 * SECOND, lies);
    net.add(0, 2);
    net.run_with(30 * SECOND, lies);
    assert!(net.all_know(0));
    (1..6).for_each(|number| net.known[number].longest_down = 0);
    net.run_with(60 * SECOND, lies);
    assert!(net.all_know(0));
    assert!((1..6).all(|number| net.known[number].longest_down == 0), "and stays");
}

#[test]
fn a_newcomer_of_whom_lies_are_told_before_it_comes_is_let_in() {
    let mut net = Net::of(5);
    let lies = |net: &mut Net| net.lie_to_all(4, &[alive(elsewhere(5, GREATEST, 7))]);
    net.run_with(30 * SECOND, lies);
    net.add(5, 1);
    net.run_with(30 * SECOND, lies);
    assert!(net.all_know(5));
    net.run_with(60 * SECOND, lies);
    assert!(net.all_know(5));
    assert_eq!(net.known[5].up.len(), 5);
}

#[test]
fn restarts_new_addresses_and_lost_disks_are_believed() {
    let mut net = Net::of(5);
    net.swims[0] = None;
    net.run(SECOND);
    net.add(0, 700);
    net.run(15 * SECOND);
    assert!(net.all_know(0), "a restart");
    let moved = vec!["/ip4/198.51.100.99/tcp/4817".to_owned()];
    net.swims[1].as_mut().unwrap().readdress(net.now, moved.clone());
    net.run(15 * SECOND);
    assert!((0..5).filter(|number| *number != 1).all(|number| net.known[number].up.get(&ap(1)) == Some(&moved)), "another address");
    net.swims[0] = None;
    net.run(SECOND);
    net.add(0, 1);
    net.run(30 * SECOND);
    assert!(net.all_know(0), "a lost disk");
}

#[test]
fn those_that_reach_each_other_only_through_others_hear_of_restarts_too() {
    let mut net = Net::of(5);
    net.cut.insert((0, 1));
    net.run(30 * SECOND);
    assert_eq!(net.known[0].longest_down, 0);
    net.swims[1] = None;
    net.run(2 * SECOND);
    net.add(1, 2);
    net.run(600 * SECOND);
    assert!(net.all_know(1) && net.all_know(0));
}

#[test]
fn who_is_called_down_again_and_again_is_never_down_for_long_and_does_not_renew_itself_without_limit() {
    let mut net = Net::of(6);
    net.run_with(120 * SECOND, |net| {
        let down = Update::new(net.me(0), 0, State::Down);
        net.lie_to_all(5, std::slice::from_ref(&down));
        for _ in 0..100 {
            net.lie(5, 0, Message::TurnUndead, Vec::new());
            net.lie(5, 0, Message::Gossip, vec![Update::new(net.me(0), u16::MAX, State::Suspect)]);
        }
    });
    let longest = (1..5).map(|number| net.known[number].longest_down).max().unwrap();
    assert!(longest < 20 * SECOND, "{longest}");
    assert!(net.me(0).renewal <= 96 + 120 * 4, "{}", net.me(0).renewal);
    net.run(30 * SECOND);
    assert!(net.all_know(0));
}

#[test]
fn nobody_is_probed_for_others_that_is_not_known_or_at_another_address() {
    let mut net = Net::of(4);
    let stranger = Member::new(ap(77), 1, false_address());
    for target in [stranger, elsewhere(2, GREATEST, 0), elsewhere(2, 1, 0)] {
        net.lie(3, 0, Message::PingReq { target: target.clone(), probe_number: 1 }, Vec::new());
        net.lie(3, 0, Message::IndirectAck { target, probe_number: 1 }, Vec::new());
    }
    net.run(5 * SECOND);
    assert!(net.known[0].reached.iter().all(|(_, addresses)| *addresses != false_address()), "{:?}", net.known[0].reached);
}

#[test]
fn names_that_never_existed_leave_room_for_members() {
    let mut net = Net::of(4);
    let name = |number: u64| {
        let mut key = [0xee; 32];
        key[..8].copy_from_slice(&number.to_be_bytes());
        AccessPoint(key)
    };
    for round in 0..100 {
        let names = (0..60).map(|number| alive(Member::new(name(round * 60 + number), 1, false_address())));
        let updates: Vec<_> = names.collect();
        net.lie_to_all(3, &updates);
        net.run(STEP);
    }
    net.add(4, 1);
    net.run(60 * SECOND);
    assert!(net.all_know(4), "a newcomer");
    for number in 0..3 {
        let names = net.known[number].up.len() + net.known[number].down.len();
        assert!(names <= 5 + 2 * 9, "{number} remembers {names}");
        assert!(net.swims[number].as_ref().unwrap().left_aside() > 4_000);
        let strangers = net.known[number].reached.iter().filter(|(_, addresses)| *addresses == false_address()).count();
        assert!(strangers < 32 + 100, "{number} was made to call {strangers} strangers");
    }
}

#[test]
fn a_member_that_fails_is_found_out_while_somebody_invents_names() {
    let mut net = Net::of(6);
    let mut round = 0_u8;
    let invents = |net: &mut Net| {
        round += 1;
        let name = |number: u8| {
            let mut key = [0xee; 32];
            key[..2].copy_from_slice(&[round, number]);
            AccessPoint(key)
        };
        let names: Vec<_> = (0..60).map(|number| alive(Member::new(name(number), 1, false_address()))).collect();
        for again in 0..2 {
            net.lie_to_all(5 - again, &names);
        }
    };
    net.run_with(60 * SECOND, invents);
    net.swims[0] = None;
    net.run(90 * SECOND);
    assert!((1..4).all(|number| net.known[number].down.contains_key(&ap(0))));
    assert!((1..4).all(|number| net.known[number].up.len() < 30), "two that name the same names make few members");
}

#[test]
fn who_is_heard_all_the_time_is_not_pinged_and_is_found_out_when_it_fails() {
    let talk = |net: &mut Net| {
        let running: Vec<usize> = (0..net.swims.len()).filter(|number| net.swims[*number].is_some()).collect();
        for (number, other) in running.iter().flat_map(|number| running.iter().map(move |other| (*number, *other))) {
            net.swims[number].as_mut().unwrap().heard(net.now, ap(other), true);
        }
    };
    let sent_in = |net: &mut Net, lasts: Millis, talk: fn(&mut Net)| {
        let before = net.sent;
        net.run_with(lasts, talk);
        net.sent - before
    };
    let mut net = Net::of(6);
    let minutes = 10;
    let silent = sent_in(&mut net, minutes * 60 * SECOND, |_| {});
    let talking = sent_in(&mut net, minutes * 60 * SECOND, talk);
    // Each asks one a minute for all that it knows, and is answered.
    assert!(talking <= 6 * 2 * (minutes as usize + 1), "{talking} datagrams where there are {silent} without other talk");
    // Without other talk the pings of others are what is heard.
    assert!(silent > 5 * talking, "{silent} datagrams without other talk, {talking} with it");
    net.swims[0] = None;
    net.run_with(45 * SECOND, talk);
    assert!((1..6).all(|number| net.known[number].down.contains_key(&ap(0))), "it has been silent for 45 s");

    let mut net = Net::of(2);
    net.run_with(60 * SECOND, talk);
    net.swims[1] = None;
    let swim = net.swims[0].as_mut().unwrap();
    swim.heard(net.now, ap(1), true);
    swim.unanswered(net.now, &ap(1));
    swim.heard(net.now, ap(1), false);
    net.run(16 * SECOND);
    assert!(net.known[0].down.contains_key(&ap(1)), "who did not answer is pinged at its next turn, though it has asked something since");
}

/// The first so many ask each of those that they take to be alive something.
fn ask_all(net: &mut Net, members: usize) {
    let all = net.swims.len();
    for (number, other) in (0..members).flat_map(|number| (0..all).map(move |other| (number, other))) {
        if number != other && net.known[number].up.contains_key(&ap(other)) {
            let answers = net.swims[other].is_some() && !net.is_cut(number, other);
            let (now, swim) = (net.now, net.swims[number].as_mut().unwrap());
            if answers { swim.heard(now, ap(other), true) } else { swim.unanswered(now, &ap(other)) }
        }
    }
}

#[test]
fn of_many_that_vanish_together_each_is_found_out_as_soon_as_it_leaves_a_question_unanswered() {
    let mut net = Net::of(5);
    for number in 5..45 {
        net.add(number, 1);
    }
    net.run(90 * SECOND);
    assert!((0..5).all(|number| net.known[number].up.len() == 44), "all have come");
    (5..45).for_each(|number| net.swims[number] = None);
    net.run_with(12 * SECOND, |net| ask_all(net, 5));
    for number in 0..5 {
        let up: Vec<_> = net.known[number].up.keys().map(|who| who.0[0]).collect();
        assert_eq!(up, (1..=5).filter(|other| *other != number as u8 + 1).collect::<Vec<_>>(), "as {number} sees it");
    }
}

#[test]
fn who_answers_only_through_others_is_not_taken_for_one_that_vanished() {
    let mut net = Net::of(5);
    net.cut.insert((0, 1));
    let before = net.sent;
    net.run_with(300 * SECOND, |net| ask_all(net, 5));
    assert!((0..5).all(|number| net.known[number].longest_down == 0));
    assert!(net.sent - before < 5 * 300, "{} datagrams in five minutes", net.sent - before);
}

#[test]
fn who_is_down_for_a_member_to_which_it_talks_hears_so_and_comes_back() {
    let talk = |net: &mut Net| {
        for (number, other) in (0..6).flat_map(|number| (0..6).map(move |other| (number, other))).filter(|(number, other)| number != other)
        {
            net.swims[number].as_mut().unwrap().heard(net.now, ap(other), true);
        }
    };
    let mut net = Net::of(6);
    net.run_with(60 * SECOND, talk);
    // Many are gone, and each is called in its turn.
    for number in 6..30 {
        net.add(number, 1);
    }
    net.run(60 * SECOND);
    (6..30).for_each(|number| net.swims[number] = None);
    net.run_with(120 * SECOND, talk);
    assert!(!net.known[1].down.contains_key(&ap(0)) && net.known[1].down.len() >= 20);
    // One that did not reach it says that it is down.
    let down = Update::new(net.me(0), 0, State::Down);
    net.lie(2, 1, Message::Gossip, vec![down]);
    net.run(SECOND);
    assert!(net.known[1].down.contains_key(&ap(0)));
    net.run_with(5 * SECOND, talk);
    assert!(!net.known[1].down.contains_key(&ap(0)) && net.known[1].up.contains_key(&ap(0)), "it heard that it is down, and objected");
}

#[test]
fn a_ping_that_has_news_to_tell_is_sent_whoever_was_heard() {
    let swim = Net::of(2).swims[0].take().unwrap();
    let (me, other) = (swim.me().clone(), Member::new(ap(1), 1, at(1)));
    let ping = |updates: Vec<Update>| {
        let header = Header { src: me.clone(), src_incarnation: 0, dst: other.clone(), message: Message::Ping(7) };
        Datagram { header, updates: Some(updates) }.write(usize::MAX)
    };
    let known = alive(other.clone());
    assert!(super::hearsay::Hearsay::answer(&ping(Vec::new()), &known).is_some());
    assert_eq!(super::hearsay::Hearsay::answer(&ping(vec![alive(elsewhere(5, 1, 0))]), &known), None);
}
