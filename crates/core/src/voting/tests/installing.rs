//! Tests of whose word a voter of the next list takes for what was decided before.

use super::{
    process::{Disk, Process, Start, Wish},
    random::Random,
    world::World,
};
use crate::membership::RosterConfig;
use ed25519_dalek::SigningKey;
use nearcrawl_model::{
    access_point::AccessPoint,
    ids::QuestionId,
    message::{Request, Response},
    time::{Moment, WallTime},
    vote::{AcceptedRow, Ballot, BallotAnswer, BallotRequest, HandedOver, SignedList, VoterList, sign_accepted, sign_installed},
};
use std::collections::{BTreeMap, BTreeSet};

const NEWCOMER: u8 = 8;
const LIAR: u8 = 5;

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn point(number: u8) -> AccessPoint {
    AccessPoint(key(number).verifying_key().to_bytes())
}

/// The list with this number of these voters, accepted and installed by those.
fn list(number: u64, voters: &[u8], accepted: &[u8], installed: &[u8]) -> SignedList {
    let mut keys: Vec<_> = voters.iter().copied().map(point).collect();
    keys.sort_unstable();
    let list = VoterList { number, voters: keys, age: number * 1_000 };
    let ballot = Ballot { round: 1, proposer: point(accepted[0]) };
    let accepted = accepted.iter().map(|by| sign_accepted(&list, ballot, &key(*by))).collect();
    let installed = installed.iter().map(|by| sign_installed(&list, &key(*by))).collect();
    SignedList { list, ballot, accepted, installed }
}

/// What a quorum of the list before accepted, and nobody published.
fn decided() -> HandedOver {
    let row = AcceptedRow { subnet: "9.0.0.0/24".parse().unwrap(), epoch: 1, owner: point(1), term: 1 };
    HandedOver { rows: vec![row], ended: vec![(point(7), 1)], replicas: Vec::new() }
}

/// A newcomer on the list that follows one of seven, whom it does without the seventh; and what it asks whom.
struct Newcomer {
    process: Process,
    next: SignedList,
    asked: BTreeMap<AccessPoint, QuestionId>,
    has_installed: bool,
}

impl Newcomer {
    fn new() -> Newcomer {
        let (config, disk, none) = (RosterConfig::default(), Disk::default(), BTreeSet::new());
        let (now, wall) = (Moment(1_000_000), WallTime(1_700_000_000_000));
        let start = Start { number: NEWCOMER, config: &config, disk: &disk, now, wall, sole: true, remembered: &none, founds: false };
        let next = list(3, &[1, 2, 3, 4, LIAR, 6, NEWCOMER], &[LIAR, 1, 2, 3, 4], &[]);
        let mut newcomer = Newcomer { process: Process::start(start), next, asked: BTreeMap::new(), has_installed: false };
        let all = [1, 2, 3, 4, 5, 6, 7];
        for known in [SignedList::founded_by(&key(1)), list(2, &all, &[1], &all)] {
            newcomer.take(1, BallotRequest::Adopt(known));
        }
        assert_eq!(newcomer.process.voting.list().map(|list| list.number), Some(2));
        newcomer
    }

    fn take(&mut self, from: u8, request: BallotRequest) {
        let wire = super::process::Wire::Asked(QuestionId(77), Request::Ballot(Box::new(request)));
        self.process.take((0, point(from)), wire);
        self.look();
    }

    fn is_brought(&mut self, from: u8, before: HandedOver) {
        self.take(from, BallotRequest::Install { list: self.next.clone(), before });
    }

    /// One answers what it is asked.
    fn tells(&mut self, who: u8, before: HandedOver) {
        let question = self.asked.remove(&point(who)).unwrap_or_else(|| panic!("{who} is not asked"));
        let answer = Response::Ballot(Box::new(BallotAnswer::Decided(3, before)));
        self.process.answered(question, point(who), Some(answer));
        self.look();
    }

    fn look(&mut self) {
        let mut stored = Vec::new();
        for wish in self.process.take_wishes() {
            match wish {
                Wish::Store(write, _) => stored.push(write),
                Wish::Ask(to, question, Request::Ballot(request)) if *request == BallotRequest::Decided(3) => {
                    self.asked.insert(to, question);
                }
                Wish::Answer(_, _, Response::Ballot(answer)) => {
                    self.has_installed |= matches!(*answer, BallotAnswer::Installed(_));
                }
                _ => {}
            }
        }
        if !stored.is_empty() {
            stored.into_iter().for_each(|write| self.process.stored(write));
            self.look();
        }
    }

    fn has_all(&self) -> bool {
        let voter = &self.process.voting.voter;
        let decided = decided();
        voter.rows.of(&decided.rows[0].subnet).iter().any(|row| row.stored.row == decided.rows[0]) && voter.has_ended(&point(7))
    }

    fn wait(&mut self, millis: u64) {
        self.process.cx.now.moment = self.process.cx.now.moment.after(millis);
        self.process.tick(&mut Random::new(1), &[]);
        self.look();
    }
}

#[test]
fn a_voter_that_brings_the_next_list_first_and_says_that_nothing_was_decided_is_one_of_those_that_are_heard() {
    let mut newcomer = Newcomer::new();
    newcomer.is_brought(LIAR, HandedOver::default());
    assert!(!newcomer.has_installed, "it votes by one word");
    let asked: BTreeSet<_> = newcomer.asked.keys().copied().collect();
    assert_eq!(asked, [1, 2, 3, 4, 6, 7].map(point).into(), "all others that voted before");
    // The seventh is one whose place is another's, and has accepted nothing of late.
    for (number, before) in [(1, decided()), (7, HandedOver::default()), (2, decided())] {
        newcomer.tells(number, before);
        newcomer.is_brought(LIAR, HandedOver::default());
        assert!(!newcomer.has_installed && !newcomer.has_all(), "{number}");
    }
    newcomer.tells(3, decided());
    assert!(newcomer.has_installed && newcomer.has_all(), "five of seven could have chosen the list");
}

#[test]
fn a_newcomer_does_not_wait_for_those_that_are_gone_for_longer_than_a_lease_lasts() {
    let mut newcomer = Newcomer::new();
    newcomer.is_brought(LIAR, HandedOver::default());
    newcomer.tells(1, decided());
    newcomer.wait(44_000);
    newcomer.wait(2_000);
    assert!(!newcomer.has_installed, "two may lie");
    newcomer.tells(2, decided());
    assert!(newcomer.has_installed && newcomer.has_all(), "one of three does not");
}

#[test]
fn a_word_that_could_not_be_handed_on_is_none() {
    let mut newcomer = Newcomer::new();
    newcomer.is_brought(LIAR, HandedOver::default());
    let invented = |number: u32| AcceptedRow {
        subnet: format!("10.{}.{}.0/24", number >> 8, number & 255).parse().unwrap(),
        epoch: 1,
        owner: AccessPoint([number as u8; 32]),
        term: 1,
    };
    newcomer.tells(4, HandedOver { rows: (0..20_000).map(invented).collect(), ..HandedOver::default() });
    (1..4).for_each(|number| newcomer.tells(number, decided()));
    assert!(!newcomer.has_installed, "four words of seven");
    newcomer.tells(6, decided());
    assert!(newcomer.has_installed && newcomer.has_all() && newcomer.process.voting.voter.can_hand_over());
}

#[test]
fn what_a_newcomer_is_told_by_somebody_who_does_not_vote_is_no_word() {
    let mut newcomer = Newcomer::new();
    newcomer.is_brought(LIAR, HandedOver::default());
    let question = newcomer.asked[&point(1)];
    for stranger in 20..30 {
        let answer = Response::Ballot(Box::new(BallotAnswer::Decided(3, HandedOver::default())));
        newcomer.process.answered(question, point(stranger), Some(answer));
    }
    newcomer.look();
    assert!(!newcomer.has_installed);
    // Nor is what is said about another list.
    for number in [1, 2, 3, 4] {
        let question = newcomer.asked.get(&point(number)).copied().unwrap_or(question);
        let answer = Response::Ballot(Box::new(BallotAnswer::Decided(2, HandedOver::default())));
        newcomer.process.answered(question, point(number), Some(answer));
    }
    newcomer.look();
    assert!(!newcomer.has_installed);
}

/// What a voter answers to another one of its list that asks what was decided before the list with this number.
fn says(world: &mut World, number: usize, from: AccessPoint, of: u64) -> Option<BallotAnswer> {
    let process = world.machines[number].process.as_mut().unwrap();
    let wire = super::process::Wire::Asked(QuestionId(7), Request::Ballot(Box::new(BallotRequest::Decided(of))));
    process.take((0, from), wire);
    process.take_wishes().into_iter().find_map(|wish| match wish {
        Wish::Answer(_, QuestionId(7), Response::Ballot(answer)) => Some(*answer),
        _ => None,
    })
}

#[test]
fn who_goes_by_a_list_tells_its_voters_what_was_decided_before_and_nobody_else() {
    let mut world = World::new(1, RosterConfig::default(), 2);
    for number in 0..4 {
        world.add(None);
        world.start(number, number == 0);
    }
    world.run(20 * 60_000);
    let list = world.seen.lists.last_key_value().unwrap().1.clone();
    let voters: Vec<_> = (0..4).filter(|number| list.contains(&world.machines[*number].who)).collect();
    let [first, second, ..] = voters[..] else { panic!("{list:?}") };
    let other = (0..4).find(|number| !voters.contains(number)).unwrap();
    let (asker, stranger) = (world.machines[second].who, world.machines[other].who);
    assert!(matches!(says(&mut world, first, asker, list.number), Some(BallotAnswer::Decided(number, _)) if number == list.number));
    assert_eq!(says(&mut world, first, stranger, list.number), Some(BallotAnswer::Noted));
    // It has accepted no list after this one, and goes on deciding.
    assert_eq!(says(&mut world, first, asker, list.number + 1), Some(BallotAnswer::Noted));
    // Who is no voter knows nothing of it.
    assert_eq!(says(&mut world, other, asker, list.number), Some(BallotAnswer::Noted));
}
