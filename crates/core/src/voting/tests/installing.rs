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
    disk: Disk,
    next: SignedList,
    asked: BTreeMap<AccessPoint, QuestionId>,
    has_installed: bool,
    /// Who was answered that it has.
    answered: BTreeSet<usize>,
}

fn started(disk: &Disk, now: Moment) -> Process {
    let (config, none, wall) = (RosterConfig::default(), BTreeSet::new(), WallTime(1_700_000_000_000));
    Process::start(Start { number: NEWCOMER, config: &config, disk, now, wall, sole: true, remembered: &none, founds: false })
}

impl Newcomer {
    fn new() -> Newcomer {
        Newcomer::of(&[1, 2, 3, 4, 5, 6, 7], &[1, 2, 3, 4, LIAR, 6, NEWCOMER], &[LIAR, 1, 2, 3, 4])
    }

    /// One on the second of these lists, which the first of `accepted` proposed.
    fn of(before: &[u8], next: &[u8], accepted: &[u8]) -> Newcomer {
        let (disk, next) = (Disk::default(), list(3, next, accepted, &[]));
        let (asked, answered) = Default::default();
        let process = started(&disk, Moment(1_000_000));
        let mut newcomer = Newcomer { process, disk, next, asked, has_installed: false, answered };
        for known in [SignedList::founded_by(&key(1)), list(2, before, &[1], before)] {
            newcomer.take(1, BallotRequest::Adopt(known));
        }
        assert_eq!(newcomer.process.voting.list().map(|list| list.number), Some(2));
        newcomer
    }

    fn take(&mut self, from: u8, request: BallotRequest) {
        let wire = super::process::Wire::Asked(QuestionId(77), Request::Ballot(Box::new(request)));
        self.process.take((usize::from(from), point(from)), wire);
        self.look();
    }

    /// The list is in force without it.
    fn adopts(&mut self, installed: &[u8]) {
        let list = &self.next.list;
        let signed = SignedList { installed: installed.iter().map(|by| sign_installed(list, &key(*by))).collect(), ..self.next.clone() };
        self.take(1, BallotRequest::Adopt(signed));
        assert_eq!(self.process.voting.list().map(|list| list.number), Some(3));
    }

    /// Its process ends, and another one begins with what is on its disk.
    fn starts_again(&mut self) {
        let now = self.process.cx.now.moment;
        (self.process, self.asked) = (started(&self.disk, now), BTreeMap::new());
        self.wait(1_000);
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
                Wish::Store(write, what) => {
                    self.disk.apply(what);
                    stored.push(write);
                }
                Wish::Ask(to, question, Request::Ballot(request)) if *request == BallotRequest::Decided(3) => {
                    self.asked.insert(to, question);
                }
                Wish::Answer(to, _, Response::Ballot(answer)) if matches!(*answer, BallotAnswer::Installed(_)) => {
                    self.has_installed = true;
                    self.answered.insert(to);
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

/// So many claims of 200 owners.
fn invented(by: u8, rows: u32) -> HandedOver {
    let row = |number: u32| AcceptedRow {
        subnet: format!("{by}.{}.{}.0/24", number >> 8, number & 255).parse().unwrap(),
        epoch: 1,
        owner: AccessPoint([(number % 200) as u8; 32]),
        term: 1,
    };
    HandedOver { rows: (0..rows).map(row).collect(), ..HandedOver::default() }
}

#[test]
fn a_word_that_could_not_be_handed_on_is_none_whether_it_is_told_or_brought() {
    let mut newcomer = Newcomer::new();
    newcomer.is_brought(LIAR, invented(10, 20_000));
    newcomer.tells(4, invented(11, 20_000));
    (1..4).for_each(|number| newcomer.tells(number, decided()));
    newcomer.tells(6, decided());
    assert!(!newcomer.has_installed, "four words of seven");
    newcomer.tells(7, decided());
    assert!(newcomer.has_installed && newcomer.has_all() && newcomer.process.voting.voter.can_hand_over());
}

#[test]
fn voters_that_invent_as_much_as_fits_displace_nothing_that_others_tell_and_what_is_believed_can_be_handed_on() {
    let mut newcomer = Newcomer::new();
    newcomer.is_brought(LIAR, invented(10, 15_000));
    newcomer.tells(4, invented(11, 15_000));
    newcomer.tells(1, decided());
    newcomer.tells(2, decided());
    // What one alone tells of a few thousand claims is less than its share.
    newcomer.tells(3, invented(12, 3_000));
    assert!(newcomer.has_installed && newcomer.has_all());
    let voter = &newcomer.process.voting.voter;
    assert!(voter.can_hand_over(), "{} bytes", voter.decided_bytes());
    let of_third = voter.hand_over(false, &crate::ownership::register::Register::default()).rows;
    let third = invented(12, 3_000).rows;
    assert!(third.iter().all(|row| of_third.contains(row)), "of {} claims", of_third.len());
}

#[test]
fn below_seven_voters_one_word_is_not_enough_for_as_long_as_accepted_claims_are_kept() {
    // One that stays a voter brings what it knows itself: nothing.
    for (before, next, accepted, others) in
        [(&[1, 2, 3][..], &[1, 2, NEWCOMER][..], &[1, 2][..], 0), (&[1, 2, 3, 4, 5], &[1, 2, 3, 4, NEWCOMER], &[1, 3, 4], 1)]
    {
        let mut newcomer = Newcomer::of(before, next, accepted);
        newcomer.is_brought(2, HandedOver::default());
        newcomer.adopts(accepted);
        (3..3 + others).for_each(|number| newcomer.tells(number, HandedOver::default()));
        newcomer.wait(46_000);
        newcomer.wait(500_000);
        assert!(!newcomer.has_installed, "of {before:?} others may have decided");
        newcomer.tells(1, decided());
        assert!(newcomer.has_installed && newcomer.has_all(), "of {before:?} one is in each quorum");
        // If nobody else ever comes back, what those that are gone had accepted was published long ago, or counts as withdrawn.
        let mut newcomer = Newcomer::of(before, next, accepted);
        newcomer.is_brought(2, decided());
        newcomer.adopts(accepted);
        newcomer.wait(599_000);
        assert!(!newcomer.has_installed);
        newcomer.wait(2_000);
        assert!(newcomer.has_installed && newcomer.has_all());
    }
}

#[test]
fn words_of_voters_of_the_next_list_do_not_make_up_for_those_that_voted_before() {
    let mut newcomer = Newcomer::of(&[1, 2, 3, 4, 5, 6, 7], &[1, 2, 3, 4, LIAR, 9, NEWCOMER], &[LIAR, 1, 2, 3, 4]);
    newcomer.is_brought(LIAR, HandedOver::default());
    newcomer.adopts(&[1, 2, 3, 4, LIAR]);
    newcomer.wait(3_000);
    newcomer.tells(4, HandedOver::default());
    newcomer.tells(9, HandedOver::default());
    newcomer.wait(46_000);
    assert!(!newcomer.has_installed, "two may lie by the list before, and two by this one");
    newcomer.tells(1, decided());
    assert!(newcomer.has_installed && newcomer.has_all());
}

#[test]
fn below_seven_a_newcomer_that_the_others_need_waits_some_seconds_for_who_dies_when_it_has_accepted_the_list() {
    let mut newcomer = Newcomer::of(&[1, 2, 3], &[1, 2, NEWCOMER], &[1, 2]);
    newcomer.is_brought(1, decided());
    newcomer.wait(4_000);
    assert!(!newcomer.has_installed, "others may say more");
    newcomer.wait(2_000);
    assert!(newcomer.has_installed && newcomer.has_all(), "the proposer brought what both told it");
    // Once the others decide, nobody waits for the newcomer.
    let mut newcomer = Newcomer::of(&[1, 2, 3], &[1, 2, NEWCOMER], &[1, 2]);
    newcomer.is_brought(1, decided());
    newcomer.adopts(&[1, 2]);
    newcomer.wait(44_000);
    assert!(!newcomer.has_installed);
    newcomer.wait(2_000);
    assert!(newcomer.has_installed);
}

#[test]
fn what_a_proposer_says_of_itself_later_takes_nothing_back_of_what_others_told_it() {
    let mut newcomer = Newcomer::of(&[1, 2, 3], &[1, 2, NEWCOMER], &[1, 2]);
    newcomer.is_brought(1, decided());
    newcomer.is_brought(1, HandedOver::default());
    newcomer.tells(2, HandedOver::default());
    assert!(newcomer.has_installed && newcomer.has_all());
}

#[test]
fn a_newcomer_that_starts_again_while_it_waits_asks_of_its_own_accord() {
    let mut newcomer = Newcomer::of(&[1, 2, 3], &[1, 2, NEWCOMER], &[1, 2]);
    newcomer.is_brought(2, HandedOver::default());
    newcomer.adopts(&[1, 2]);
    newcomer.starts_again();
    let asked: BTreeSet<_> = newcomer.asked.keys().copied().collect();
    assert!(asked.is_superset(&[1, 2, 3].map(point).into()), "nobody brings it the list again: {asked:?}");
    newcomer.tells(1, decided());
    newcomer.tells(2, HandedOver::default());
    assert!(newcomer.has_all() && newcomer.process.voting.standing.installed == 3);
    // It has voted since then: nothing is asked after the next start, nor where the disk was lost.
    newcomer.starts_again();
    assert!(newcomer.asked.is_empty() && newcomer.process.voting.standing.installed == 3);
}

#[test]
fn a_voter_that_repeats_itself_takes_nobody_the_answer() {
    let mut newcomer = Newcomer::new();
    newcomer.is_brought(1, decided());
    for _ in 0..5 {
        newcomer.is_brought(LIAR, HandedOver::default());
    }
    (2..5).for_each(|number| newcomer.tells(number, decided()));
    assert_eq!(newcomer.answered, [1, usize::from(LIAR)].into());
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
