//! Tests of what a stranger, or a voter that lies, can fill up or wear out.

use super::{
    process::{Disk, Process, Start},
    world::World,
};
use crate::{
    membership::RosterConfig,
    ownership::register::Register,
    pending::Pending,
    voting::{
        Times,
        asker::Asker,
        handed_over::{self, MAX_HANDED_BYTES, size_of},
        machine::VotingReads,
        questions::TOO_MUCH,
        records::VotingRecord,
        rows::MAX_UNPUBLISHED_OF_ONE,
        voter::{Asked, Refusal, Voter},
    },
};
use ed25519_dalek::SigningKey;
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, SignedClaim},
    ids::Ticket,
    message::{MAX_MESSAGE, Request, Response},
    replica::{MAX_NAMED, NamedReplica, StoreId},
    subnet::Subnet,
    time::{Millis, Moment, WallTime},
    vote::{
        AcceptedRow, Ballot, BallotAnswer, BallotRequest, Grant, HandedOver, InheritedReplicas, MAX_INHERITED, MAX_REPORTED, Renewal,
        Renewed, ReplicaSet, SetNumber, SignedList, SignedReplicas, Vote, Voted, VoterList, Votes, sign_accepted, sign_installed,
    },
};
use std::{collections::BTreeMap, net::Ipv4Addr};

const MINUTE: Millis = 60_000;

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn point(number: u8) -> AccessPoint {
    AccessPoint(key(number).verifying_key().to_bytes())
}

fn subnet(number: usize) -> Subnet {
    format!("{}/32", Ipv4Addr::from(0x1400_0000 + number as u32)).parse().unwrap()
}

fn claim(number: usize, epoch: u64, owner: AccessPoint) -> Claim {
    let (subnet, reason) = (subnet(number), ClaimReason::Awarded);
    Claim { subnet, epoch, owner, rtt_us: None, runner_up: None, probes: 0, reason, released: false, answers: Vec::new() }
}

fn new_voter() -> Voter {
    Voter::new(Times::of(&RosterConfig::default()), Moment(0), BTreeMap::new(), BTreeMap::new())
}

fn judge(voter: &mut Voter, now: Millis, claim: &Claim, register: &Register) -> Result<(), Refusal> {
    voter.judge(Moment(now), Asked { claim, part: None, term: 1, process: 1 }, register, &mut Vec::new())
}

fn renewal(replicas: Option<Box<SignedReplicas>>) -> Renewal {
    let known = replicas.as_ref().map(|set| set.number()).unwrap_or_default();
    let (list, term, incarnation, process, ended, sole, installed, leaving) = (1, 1, 1, 1, [0, 0], true, 1, false);
    Renewal { list, term, incarnation, process, ended, sole, installed, leaving, known, replicas }
}

/// The claim is known to be published.
fn publish(register: &mut Register, claim: &Claim, by: u8) {
    let votes = Some(Box::new(Votes { list: 1, term: 1, voters: Vec::new() }));
    register.merge(claim.clone(), &SignedClaim { votes, ..SignedClaim::sign(claim, &key(by)) });
}

#[test]
fn one_owner_does_not_take_the_room_for_accepted_claims_from_the_others_and_gets_more_once_its_claims_are_published() {
    let (mut voter, mut register) = (new_voter(), Register::default());
    for number in 0..MAX_UNPUBLISHED_OF_ONE {
        assert_eq!(judge(&mut voter, 0, &claim(number, 1, point(1)), &register), Ok(()));
    }
    let next = MAX_UNPUBLISHED_OF_ONE;
    assert_eq!(judge(&mut voter, 1, &claim(next, 1, point(1)), &register), Err(Refusal::Full));
    assert_eq!(judge(&mut voter, 1, &claim(0, 1, point(1)), &register), Ok(()), "it was accepted already");
    assert_eq!(judge(&mut voter, 1, &claim(next, 1, point(2)), &register), Ok(()), "another owner");
    // What it withdraws itself makes no room: these epochs stay used up.
    voter.withdraw(point(1), 1, &[(subnet(7), 1)], &mut Vec::new());
    assert_eq!(judge(&mut voter, 2_000, &claim(next + 1, 1, point(1)), &register), Err(Refusal::Full));
    (0..100).for_each(|number| publish(&mut register, &claim(number, 1, point(1)), 1));
    for number in next + 1..next + 101 {
        assert_eq!(judge(&mut voter, 4_000, &claim(number, 1, point(1)), &register), Ok(()));
    }
    assert_eq!(judge(&mut voter, 9_000, &claim(next + 101, 1, point(1)), &register), Err(Refusal::Full));
}

/// A voter accepts a claim of an owner that is never heard again, and is tidied each minute for so many; from `attends` on it holds its
/// lease.
fn owner_vanishes(minutes: u64, attends: u64) -> (Voter, Vec<VotingRecord>) {
    let (mut voter, register, mut records) = (new_voter(), Register::default(), Vec::new());
    voter.renew(Moment(0), point(1), &renewal(None), &register);
    assert_eq!(judge(&mut voter, 0, &claim(0, 1, point(1)), &register), Ok(()));
    for minute in 1..=minutes {
        voter.tidy(Moment(minute * MINUTE), minute >= attends, &register, &mut records);
    }
    (voter, records)
}

#[test]
fn what_an_owner_that_went_away_never_published_is_withdrawn_and_its_term_ends_with_that() {
    let register = Register::default();
    let (voter, _) = owner_vanishes(9, 0);
    assert_eq!(voter.hand_over(false, &register).rows.len(), 1, "it may be published yet");
    let (mut voter, records) = owner_vanishes(12, 0);
    assert_eq!((voter.hand_over(false, &register).rows, voter.decided_bytes() < 100), (Vec::new(), true));
    assert_eq!(records.len(), 2, "both are stored: {records:?}");
    // What may have been published lets nobody have two owners: neither at its epoch, nor when its owner comes back.
    let now = 13 * MINUTE;
    assert_eq!(judge(&mut voter, now, &claim(0, 1, point(2)), &register), Err(Refusal::Epoch(1)));
    assert_eq!(voter.renew(Moment(now), point(1), &renewal(None), &register), Renewed::Ended(1));
    let told = voter.hand_over(true, &register);
    assert_eq!((told.rows.len(), told.ended), (1, vec![(point(1), 1)]), "and the next list is told, as there is room");
    assert_eq!(judge(&mut voter, now, &claim(0, 2, point(2)), &register), Ok(()));
}

#[test]
fn a_voter_that_was_itself_cut_off_or_stood_still_withdraws_nothing_of_those_that_it_did_not_hear() {
    let register = Register::default();
    let (mut voter, _) = owner_vanishes(20, 15);
    assert_eq!(voter.hand_over(false, &register).rows.len(), 1);
    assert!(matches!(voter.renew(Moment(20 * MINUTE + 1), point(1), &renewal(None), &register), Renewed::Granted(_)));
    assert_eq!(owner_vanishes(26, 15).0.hand_over(false, &register).rows, []);
}

#[test]
fn what_is_handed_over_fits_into_a_message_whatever_owners_name() {
    let (mut voter, mut register) = (new_voter(), Register::default());
    let named = |number: u8| {
        (0..MAX_NAMED as u8).map(move |other| NamedReplica { member: AccessPoint([other; 32]), store: StoreId(u64::from(number)) })
    };
    for number in 1..=250 {
        let members: Vec<_> = named(number).collect();
        let inherited = (0..MAX_INHERITED).map(|_| InheritedReplicas { members: members.clone(), patience_s: 1 }).collect();
        let set = ReplicaSet { owner: point(number), number: SetNumber { term: 1, version: 1 }, members, inherited };
        let renewal = renewal(Some(Box::new(SignedReplicas::sign(set, &key(number)))));
        assert!(voter.note_replicas(point(number), &renewal, &mut Vec::new()));
    }
    let last = (1..=250).map(point).max().unwrap();
    let number = (1..=250).find(|number| point(*number) == last).unwrap();
    publish(&mut register, &claim(0, 1, last), number);
    (1..9_000).for_each(|number| assert_eq!(judge(&mut voter, 0, &claim(number, 1, point(1)), &register), Ok(())));
    assert!(voter.can_hand_over());
    let before = voter.hand_over(true, &register);
    assert_eq!(before.rows.len(), 8_999);
    assert!(before.replicas.iter().any(|set| set.replicas.owner == last), "of those that own something first");
    assert!(before.replicas.len() > 100 && size_of(&before) <= MAX_HANDED_BYTES, "{}", size_of(&before));
    let mut voters: Vec<_> = (1..=21).map(point).collect();
    voters.sort_unstable();
    let list = VoterList { number: 2, voters, age: 0 };
    let (ballot, keys) = (Ballot { round: 1, proposer: point(1) }, || (1..=21).map(key));
    let accepted = keys().map(|key| sign_accepted(&list, ballot, &key)).collect();
    let installed = keys().map(|key| sign_installed(&list, &key)).collect();
    let list = SignedList { list, ballot, accepted, installed };
    let request = Request::Ballot(Box::new(BallotRequest::Install { list, before }));
    assert!(size_of(&request) < MAX_MESSAGE - 1_024);
}

/// A voter that accepted, at one time, claims to all that so many of twelve members owned that had a hundred thousand subnets together.
fn after_deaths(dead: usize) -> Voter {
    let (mut voter, register) = (new_voter(), Register::default());
    for number in 0..dead * 100_000_usize.div_ceil(12) {
        let successor = point(1 + (number % (12 - dead)) as u8);
        assert_eq!(judge(&mut voter, 0, &claim(number, 200, successor), &register), Ok(()));
    }
    voter
}

#[test]
fn what_one_of_twelve_members_with_a_hundred_thousand_subnets_leaves_behind_is_handed_over_and_more_at_once_waits() {
    let voter = after_deaths(1);
    assert!(voter.can_hand_over(), "{} bytes", voter.decided_bytes());
    let told: Vec<_> = (0..7).map(|_| voter.hand_over(true, &Register::default())).collect();
    let before = handed_over::all_of(told.iter()).expect("it fits together");
    assert_eq!(before.rows.len(), 8_334);
    // Of two that die at once the list is not changed before those claims are ten minutes old: no dead voter is replaced earlier.
    assert!(!after_deaths(2).can_hand_over());
}

#[test]
fn what_no_registry_gave_to_one_holder_is_nobodys_first_claim() {
    let mut world = World::new(1, RosterConfig::default(), 0);
    world.add(None);
    world.start(0, true);
    world.run(2 * MINUTE);
    let class = "first claims of more than any registry gave to one holder";
    for (subnet, counted) in [("9.0.0.0/8", 1), ("9.16.0.0/12", 2), ("2a00::/12", 3), ("9.1.0.0/16", 3), ("2a01::/32", 3)] {
        world.machines[0].process.as_mut().unwrap().propose(subnet.parse().unwrap(), 1, ClaimReason::OwnSubnet);
        world.after(0);
        world.run(world.now + 5_000);
        assert_eq!(refused(world.machines[0].process.as_ref().unwrap(), class), counted, "{subnet}");
    }
    assert_eq!(world.seen.claims, 2);
}

/// Four of whom three vote, and a stranger had each of them accept so many claims, the same or others. A voter leaves. The world then, the
/// list, its voters, and the others.
fn filled(claims: usize, same: bool) -> (World, VoterList, Vec<usize>, Vec<usize>) {
    let mut world = World::new(1, RosterConfig { vote_after: 30_000, ..RosterConfig::default() }, 0);
    world.network.delay = 50;
    for number in 0..4 {
        world.add(None);
        world.start(number, number == 0);
    }
    world.run(15 * MINUTE);
    let list = world.seen.lists.last_key_value().unwrap().1.clone();
    assert_eq!(list.voters.len(), 3);
    let voters: Vec<_> = (0..4).filter(|number| list.contains(&world.machines[*number].who)).collect();
    for (place, number) in voters.iter().enumerate() {
        let first = if same { 0 } else { place * claims };
        let owner = |number: usize| point(200 + (number / 12_000) as u8);
        let rows = (first..first + claims).map(|number| AcceptedRow { subnet: subnet(number), epoch: 1, owner: owner(number), term: 1 });
        let before = HandedOver { rows: rows.collect(), ..HandedOver::default() };
        let process = world.machines[*number].process.as_mut().unwrap();
        process.voting.voter.take_in(process.cx.now.moment, &before, &Register::default(), &mut Vec::new());
        assert_eq!(process.voting.voter.can_hand_over(), !same);
    }
    let others: Vec<_> = (0..4).filter(|number| *number != voters[2]).collect();
    world.machines[voters[2]].process.as_mut().unwrap().leave();
    (world, list, voters, others)
}

fn all_leased(world: &World, among: &[usize]) -> bool {
    among.iter().all(|number| world.machines[*number].process.as_ref().unwrap().holds_lease())
}

#[test]
fn voters_that_could_not_hand_over_what_they_accepted_go_on_by_the_present_list_until_they_can() {
    let (mut world, list, voters, others) = filled(25_000, true);
    world.run(world.now + 5 * MINUTE);
    assert!(all_leased(&world, &others), "they go on");
    assert_eq!(world.seen.lists.last_key_value().unwrap().1, &list);
    let refused = |number: &usize| world.machines[*number].process.as_ref().unwrap().cx.counters.refused.contains_key(TOO_MUCH);
    assert!(voters[..2].iter().all(refused), "and say why the list does not change");
    world.run(world.now + 20 * MINUTE);
    let next = world.seen.lists.last_key_value().unwrap().1.clone();
    assert!(!next.contains(&world.machines[voters[2]].who), "nobody owns anything by these claims: {next:?}");
    assert!(all_leased(&world, &others));
    assert_eq!(world.seen.wrong, None);
}

#[test]
fn voters_that_together_have_more_to_hand_over_than_fits_into_a_message_do_not_stand_still_for_ever() {
    let (mut world, list, _, others) = filled(12_000, false);
    world.run(world.now + 25 * MINUTE);
    let next = world.seen.lists.last_key_value().unwrap().1.clone();
    assert!(next.number > list.number && all_leased(&world, &others), "{next:?}");
    assert_eq!(world.seen.wrong, None);
}

/// The only member of a swarm.
fn founder() -> Process {
    let (config, disk, remembered) = (RosterConfig::default(), Disk::default(), Default::default());
    let (now, wall) = (Moment(1_000), WallTime(1_700_000_000_000));
    let start = Start { number: 1, config: &config, disk: &disk, now, wall, sole: true, remembered: &remembered, founds: true };
    let mut process = Process::start(start);
    // What it stores is on disk at once.
    stored(&mut process);
    process
}

fn stored(process: &mut Process) {
    let writes: Vec<_> = process.voting.under_way.unstored.keys().copied().collect();
    for write in writes {
        assert!(process.voting.stored(&mut process.cx, write));
    }
}

fn refused(process: &Process, class: &str) -> u64 {
    process.cx.counters.refused.get(class).copied().unwrap_or(0)
}

fn asks(process: &mut Process, from: u8, request: BallotRequest) {
    let others = VotingReads { members: &process.members, register: &Register::default() };
    process.voting.asked(&mut process.cx, others, Asker::Member(point(from), Ticket::from(1)), Request::Ballot(Box::new(request)));
}

#[test]
fn who_tells_a_false_list_is_not_listened_to_for_a_minute() {
    let mut process = founder();
    let mut voters = vec![point(2), point(3)];
    voters.sort_unstable();
    let (list, ballot) = (VoterList { number: 2, voters, age: 0 }, Ballot { round: 1, proposer: point(2) });
    let signed = |by: u8| SignedList {
        list: list.clone(),
        ballot,
        accepted: vec![sign_accepted(&list, ballot, &key(by))],
        installed: [2, 3].map(|by| sign_installed(&list, &key(by))).to_vec(),
    };
    let mut forged = signed(1);
    forged.accepted[0].signature[0] ^= 1;
    let resting = "voter lists of members whose last one was false";
    for (from, now, looked_at, rests) in [(2, 0, 1, 0), (2, 1, 1, 1), (3, 2, 2, 1), (2, 59_999, 2, 2), (2, 60_000, 3, 2)] {
        process.cx.now.moment = Moment(1_000 + now);
        asks(&mut process, from, BallotRequest::Adopt(forged.clone()));
        let counted = (refused(&process, "voter lists that are not agreed on"), refused(&process, resting));
        assert_eq!(counted, (looked_at, rests), "{from} at {now}");
    }
    asks(&mut process, 4, BallotRequest::Adopt(signed(1)));
    assert_eq!(process.voting.list(), Some(&list), "others are");
}

#[test]
fn a_voter_that_tells_of_ever_so_many_owners_is_not_counted_among_those_that_accept_a_list() {
    let mut process = founder();
    let others = VotingReads { members: &process.members, register: &Register::default() };
    let list = VoterList { number: 2, voters: vec![point(1)], age: 0 };
    let by = sign_accepted(&list, Ballot { round: 1, proposer: point(1) }, &key(1));
    let owner = |number: u16| AccessPoint(std::array::from_fn(|at| number.to_le_bytes()[at % 2]));
    let told = HandedOver { ended: (0..5_000).map(|number| (owner(number), u64::MAX)).collect(), ..HandedOver::default() };
    let answer = Response::Ballot(Box::new(BallotAnswer::Accepted(by, told)));
    process.voting.answered(&mut process.cx, others, point(1), Pending::Ballot, Some(answer));
    assert_eq!(refused(&process, "acceptances of a voters' list with too many owners"), 1);
}

#[test]
fn what_a_voter_answers_has_no_more_values_than_were_asked_for() {
    let grant = |reported: usize| Grant { unpublished: (0..reported).map(|number| (subnet(number), 1)).collect(), ..Grant::default() };
    let reads = |grant: &Grant| postcard::from_bytes::<Grant>(&postcard::to_stdvec(grant).unwrap()).is_ok();
    assert!(reads(&grant(MAX_REPORTED)) && !reads(&grant(MAX_REPORTED + 1)));
    let voted = postcard::to_stdvec(&Voted::Votes(vec![Vote::Owned; 129], Vec::new())).unwrap();
    assert!(postcard::from_bytes::<Voted>(&voted).is_err());
}

#[test]
fn one_voter_that_lies_about_claims_of_ours_uses_up_no_epochs_of_a_subnet() {
    let mut process = founder();
    let lies = |process: &mut Process, reported: Vec<(Subnet, u64)>| {
        let others = VotingReads { members: &process.members, register: &Register::default() };
        let renewed = Renewed::Granted(Box::new(Grant { unpublished: reported, ..Grant::default() }));
        process.voting.answered(&mut process.cx, others, point(9), Pending::Renew(1), Some(Response::Renewed(renewed)));
    };
    lies(&mut process, vec![(subnet(0), u64::MAX), (subnet(1), 5_000), (subnet(2), 3)]);
    assert_eq!(refused(&process, "voters' words about claims of ours that are not likely"), 2);
    for (number, epoch) in [(0, 1), (1, 1), (2, 4)] {
        process.propose(subnet(number), 1, ClaimReason::Awarded);
        assert!(process.voting.proposals.is_open(&subnet(number), epoch), "{number}");
    }
}
