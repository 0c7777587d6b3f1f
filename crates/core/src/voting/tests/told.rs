//! Tests of what a voter of the next list believes of what it is told, and of what it need not remember.

use crate::{
    membership::RosterConfig,
    ownership::register::Register,
    voting::{
        Times,
        handed_over::all_of,
        lease::MAX_TERMS_SKIPPED,
        records::{self, StoredRow},
        rows::MAX_UNPUBLISHED_OF_ONE,
        voter::{Asked, FORGOTTEN, MAX_ENDED, MAX_ENDED_TOLD, MAX_FORGOTTEN_TERM, MAX_FORGOTTEN_TERM_TOLD, Refusal, Voter},
    },
};
use ed25519_dalek::SigningKey;
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, MAX_EPOCH, SignedClaim},
    time::{Millis, Moment},
    vote::{AcceptedRow, HandedOver, Renewal, Renewed, ReplicaSet, SetNumber, SignedReplicas, Votes},
};
use std::collections::BTreeMap;

const MINUTE: Millis = 60_000;
const DAY: Millis = 1_440 * MINUTE;

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn point(number: u8) -> AccessPoint {
    AccessPoint(key(number).verifying_key().to_bytes())
}

fn claim(number: u8, epoch: u64, owner: u8) -> Claim {
    let (subnet, reason) = (format!("20.0.{number}.0/24").parse().unwrap(), ClaimReason::OwnerDead);
    let owner = point(owner);
    Claim { subnet, epoch, owner, rtt_us: None, runner_up: None, probes: 0, reason, released: false, answers: Vec::new() }
}

fn row(claim: &Claim, term: u64) -> AcceptedRow {
    AcceptedRow { subnet: claim.subnet, epoch: claim.epoch, owner: claim.owner, term }
}

fn publish(register: &mut Register, claim: &Claim, by: u8) {
    let votes = Some(Box::new(Votes { list: 1, term: 1, voters: Vec::new() }));
    register.merge(claim.clone(), &SignedClaim { votes, ..SignedClaim::sign(claim, &key(by)) });
}

fn new_voter() -> Voter {
    Voter::new(Times::of(&RosterConfig::default()), Moment(0), BTreeMap::new(), BTreeMap::new())
}

fn judge(voter: &mut Voter, now: Millis, claim: &Claim, register: &Register) -> Result<(), Refusal> {
    voter.judge(Moment(now), Asked { claim, part: None, term: 1, process: 1 }, register, &mut Vec::new())
}

fn renew(voter: &mut Voter, now: Millis, owner: u8, term: u64, register: &Register) -> Renewed {
    let (known, replicas) = Default::default();
    let (list, incarnation, process, ended, sole, installed, leaving) = (1, 1, 1, [0, 0], true, 1, false);
    let renewal = Renewal { list, term, incarnation, process, ended, sole, installed, leaving, known, replicas };
    voter.renew(Moment(now), point(owner), &renewal, register)
}

fn told(voter: &mut Voter, rows: Vec<AcceptedRow>, ended: Vec<(AccessPoint, u64)>, register: &Register) -> usize {
    let before = HandedOver { rows, ended, ..HandedOver::default() };
    voter.take_in(Moment(0), &before, register, &mut Vec::new())
}

#[test]
fn a_term_that_never_was_locks_nobody_out_whoever_says_that_it_ended() {
    let (mut voter, register) = (new_voter(), Register::default());
    assert!(matches!(renew(&mut voter, 0, 1, 3, &register), Renewed::Granted(_)));
    let ended = vec![(point(1), u64::MAX), (point(1), 3 + MAX_TERMS_SKIPPED + 1), (point(2), u64::MAX), (FORGOTTEN, u64::MAX)];
    assert_eq!(told(&mut voter, Vec::new(), ended, &register), 4);
    assert!(matches!(renew(&mut voter, 1, 1, 3, &register), Renewed::Granted(_)));
    assert!(matches!(renew(&mut voter, 1, 2, 1, &register), Renewed::Granted(_)));
    // A claim that is said to be accepted ends the term that it names when another takes its place.
    let invented = row(&claim(1, 1, 1), u64::MAX);
    assert_eq!(told(&mut voter, vec![invented], Vec::new(), &register), 1);
    assert_eq!(judge(&mut voter, 300_000, &claim(1, 1, 2), &register), Ok(()));
    assert!(matches!(renew(&mut voter, 300_001, 1, 3, &register), Renewed::Granted(_)));
    // What may be true is believed: the owner begins the next term.
    assert_eq!(told(&mut voter, Vec::new(), vec![(point(1), 3)], &register), 0);
    assert_eq!(renew(&mut voter, 300_002, 1, 3, &register), Renewed::Ended(3));
}

#[test]
fn an_end_that_nobody_believes_does_not_hide_the_one_that_another_voter_tells() {
    let tell = |term| HandedOver { ended: vec![(point(1), term)], ..HandedOver::default() };
    let before = all_of([tell(u64::MAX), tell(5)].iter()).unwrap();
    let (mut voter, register) = (new_voter(), Register::default());
    voter.take_in(Moment(0), &before, &register, &mut Vec::new());
    assert_eq!(renew(&mut voter, 1, 1, 5, &register), Renewed::Ended(5));
}

#[test]
fn a_claim_that_was_never_accepted_uses_up_no_epochs_and_hides_none_that_was() {
    let (mut voter, mut register) = (new_voter(), Register::default());
    publish(&mut register, &claim(1, 7, 9), 9);
    let far = [MAX_EPOCH, u64::MAX, 7 + 100_000].map(|epoch| row(&claim(1, epoch, 1), 1));
    assert_eq!(told(&mut voter, far.to_vec(), Vec::new(), &register), 3);
    // Of the two that are likely the earlier one was accepted, for an owner that holds its lease; the other one's is over.
    let likely = [(8, 2), (9, 3)].map(|(epoch, owner)| row(&claim(1, epoch, owner), 1));
    assert_eq!(told(&mut voter, likely.to_vec(), Vec::new(), &register), 0);
    renew(&mut voter, 100_000, 2, 1, &register);
    assert_eq!(judge(&mut voter, 110_000, &claim(1, 10, 4), &register), Err(Refusal::Owned));
    assert_eq!(judge(&mut voter, 145_000, &claim(1, 10, 4), &register), Ok(()), "until it is silent");
}

/// A voter by which the term of an owner was ended, whose subnet is another's since, and what it knows of the owner's replicas.
fn with_ended_term(signed: Option<u64>) -> (Voter, Register) {
    let (mut voter, mut register) = (new_voter(), Register::default());
    publish(&mut register, &claim(1, 1, 1), 1);
    // It has been heard, as owners are, since this voter was started.
    assert!(matches!(renew(&mut voter, 0, 1, 1, &register), Renewed::Granted(_)));
    assert_eq!(judge(&mut voter, MINUTE, &claim(1, 2, 2), &register), Ok(()));
    assert_eq!(voter.ended_terms(), 1);
    publish(&mut register, &claim(1, 2, 2), 2);
    if let Some(term) = signed {
        let (members, inherited) = Default::default();
        let set = ReplicaSet { owner: point(1), number: SetNumber { term, version: 1 }, members, inherited };
        let set = SignedReplicas::sign(set, &key(1));
        voter.take_in_replicas(std::slice::from_ref(&set), &mut Vec::new());
        voter.replicas_stored(point(1), set.number());
    }
    (voter, register)
}

/// A liar has a claim accepted, says that it withdraws it, and keeps the votes. The voters forget it with the next list.
#[test]
fn a_claim_that_was_accepted_and_kept_secret_takes_no_subnet_when_it_is_published_under_a_later_list() {
    for epoch in [1, 1_000] {
        let (mut voter, mut register) = (new_voter(), Register::default());
        let secret = Claim { rtt_us: Some(0), ..claim(1, epoch, 1) };
        assert_eq!(judge(&mut voter, 0, &secret, &register), Ok(()));
        voter.withdraw(point(1), 1, &[(secret.subnet, epoch)], &mut Vec::new());
        voter.list_changed(Moment(MINUTE), None);
        voter.tidy(Moment(20 * MINUTE), true, &register, &mut Vec::new());
        let next = claim(1, 1, 2);
        assert_eq!(judge(&mut voter, 21 * MINUTE, &next, &register), Ok(()), "nobody knows of the secret claim any more");
        let proof = |list, claim: &Claim, by| {
            let votes = Some(Box::new(Votes { list, term: 1, voters: Vec::new() }));
            SignedClaim { votes, ..SignedClaim::sign(claim, &key(by)) }
        };
        let both = [(secret.clone(), proof(1, &secret, 1)), (next.clone(), proof(2, &next, 2))];
        both.iter().for_each(|(claim, proof)| drop(register.merge(claim.clone(), proof)));
        let mut other = Register::default();
        both.iter().rev().for_each(|(claim, proof)| drop(other.merge(claim.clone(), proof)));
        for register in [&register, &other] {
            assert_eq!(register.latest(&next.subnet).map(|held| held.claim.owner), Some(point(2)), "{epoch}");
        }
    }
}

#[test]
fn the_ended_term_of_an_owner_that_is_gone_is_forgotten_after_a_day_and_its_lease_is_not_renewed_all_the_same() {
    let (mut voter, register) = with_ended_term(None);
    let mut records = Vec::new();
    voter.tidy(Moment(DAY - 1), true, &register, &mut records);
    assert!(voter.ended.contains_key(&point(1)));
    voter.tidy(Moment(DAY), true, &register, &mut records);
    assert_eq!(voter.ended, BTreeMap::from([(FORGOTTEN, 1)]));
    // Twenty more that come and go leave nothing.
    for number in 20..40 {
        told(&mut voter, Vec::new(), vec![(point(number), 2)], &register);
    }
    voter.tidy(Moment(2 * DAY), true, &register, &mut records);
    assert_eq!(voter.ended, BTreeMap::from([(FORGOTTEN, 2)]));
    assert_eq!(renew(&mut voter, 2 * DAY, 1, 1, &register), Renewed::Ended(2));
    assert!(matches!(renew(&mut voter, 2 * DAY, 1, 3, &register), Renewed::Granted(_)));
    // Who owns something, or has been heard, is not asked to begin a later term.
    assert!(matches!(renew(&mut voter, 2 * DAY, 2, 1, &register), Renewed::Granted(_)));
    // The next list is told.
    let mut next = new_voter();
    next.take_in(Moment(0), &voter.hand_over(true, &register), &register, &mut Vec::new());
    assert_eq!(renew(&mut next, 1, 1, 1, &register), Renewed::Ended(2));
}

#[test]
fn the_ended_term_of_an_owner_that_signed_something_in_a_later_one_is_forgotten_at_once() {
    for (signed, kept) in [(None, true), (Some(1), true), (Some(2), false)] {
        let (mut voter, mut register) = with_ended_term(signed);
        publish(&mut register, &claim(2, 1, 1), 1);
        voter.tidy(Moment(2 * MINUTE), true, &register, &mut Vec::new());
        assert_eq!(voter.ended.contains_key(&point(1)), kept, "{signed:?}");
        assert!(matches!(renew(&mut voter, 2 * MINUTE, 1, 1, &register), Renewed::Ended(_)), "{signed:?}");
    }
}

#[test]
fn no_more_ended_terms_are_kept_than_may_be_and_none_is_forgotten_that_would_keep_newcomers_out() {
    let (mut voter, mut register) = (new_voter(), Register::default());
    let owner = |number: u16| AccessPoint(std::array::from_fn(|at| if at < 2 { number.to_be_bytes()[at] } else { 7 }));
    let many: Vec<_> = (0..MAX_ENDED as u16 + 5).map(|number| (owner(number), 1)).collect();
    assert_eq!(told(&mut voter, Vec::new(), many, &register), MAX_ENDED - MAX_ENDED_TOLD + 5, "the rest is for what is decided here");
    // Owners of something have more room.
    let many: Vec<_> = (0..MAX_ENDED_TOLD as u16).map(|number| (owner(number + 20_000), 1)).collect();
    many.iter().for_each(|(owner, _)| voter.end(*owner, 1, &mut Vec::new()));
    publish(&mut register, &claim(1, 1, 1), 1);
    assert_eq!(judge(&mut voter, MINUTE, &claim(1, 2, 2), &register), Err(Refusal::Full));
    voter.tidy(Moment(DAY), true, &register, &mut Vec::new());
    assert_eq!(voter.ended_terms(), 1);
    assert_eq!(judge(&mut voter, DAY, &claim(1, 2, 2), &register), Ok(()));
    renew(&mut voter, DAY, 3, MAX_FORGOTTEN_TERM, &register);
    told(&mut voter, Vec::new(), vec![(point(3), MAX_FORGOTTEN_TERM + 1)], &register);
    voter.tidy(Moment(3 * DAY), true, &register, &mut Vec::new());
    assert!(voter.ended.contains_key(&point(3)));
    assert_eq!(voter.ended.get(&FORGOTTEN), Some(&1));
}

#[test]
fn ended_terms_of_owners_that_never_were_leave_room_for_take_overs_and_are_forgotten() {
    let (mut voter, mut register) = (new_voter(), Register::default());
    let invented = |number: usize| AccessPoint(std::array::from_fn(|at| if at < 2 { (number as u16).to_be_bytes()[at] } else { 7 }));
    for term in [MAX_TERMS_SKIPPED, MAX_FORGOTTEN_TERM] {
        told(&mut voter, Vec::new(), (0..MAX_ENDED).map(|number| (invented(number), term)).collect(), &register);
    }
    assert_eq!(
        told(&mut voter, Vec::new(), vec![(FORGOTTEN, MAX_FORGOTTEN_TERM)], &register),
        1,
        "who begins anew would never be forgotten"
    );
    publish(&mut register, &claim(1, 1, 1), 1);
    publish(&mut register, &claim(2, 1, 2), 2);
    assert_eq!(told(&mut voter, Vec::new(), vec![(point(2), 5)], &register), 0, "an owner of something");
    assert_eq!(judge(&mut voter, MINUTE, &claim(1, 2, 3), &register), Ok(()));
    voter.tidy(Moment(2 * DAY), true, &register, &mut Vec::new());
    assert!(voter.ended_terms() <= 3, "{}", voter.ended_terms());
    const { assert!(MAX_FORGOTTEN_TERM_TOLD < MAX_FORGOTTEN_TERM) };
}

#[test]
fn rows_that_one_voter_invents_displace_none_that_another_one_tells() {
    let (mut voter, mut register) = (new_voter(), Register::default());
    publish(&mut register, &claim(1, 100, 9), 9);
    let real = row(&claim(1, 101, 1), 1);
    // Many of the same subnet at earlier epochs, and many of the same owner in subnets before it.
    let same_subnet = (1..=100).map(|number| AcceptedRow { epoch: number, owner: point(number as u8), ..real });
    let subnet = |number: u32| format!("10.{}.{}.0/24", number >> 8, number & 255).parse().unwrap();
    let same_owner = (0..MAX_UNPUBLISHED_OF_ONE as u32).map(|number| AcceptedRow { subnet: subnet(number), epoch: 1, ..real });
    let liar = HandedOver { rows: same_owner.chain(same_subnet).collect(), ..HandedOver::default() };
    let honest = HandedOver { rows: vec![row(&claim(2, 1, 5), 1), real], ..HandedOver::default() };
    let before = all_of([liar, honest].iter()).unwrap();
    voter.take_in(Moment(0), &before, &register, &mut Vec::new());
    assert!(voter.rows.of(&real.subnet).iter().any(|row| row.stored.row == real));
}

#[test]
fn what_was_decided_here_is_not_forgotten_over_a_restart_for_an_earlier_claim_that_others_tell() {
    let (mut voter, register, mut records) = (new_voter(), Register::default(), Vec::new());
    let mine = claim(1, 6, 1);
    voter.judge(Moment(0), Asked { claim: &mine, part: None, term: 1, process: 1 }, &register, &mut records).unwrap();
    let before = HandedOver { rows: (1..6).map(|epoch| row(&claim(1, epoch, 2), 1)).collect(), ..HandedOver::default() };
    voter.take_in(Moment(0), &before, &register, &mut records);
    let written: BTreeMap<_, _> = records.into_iter().map(|record| (record.key, record.value)).collect();
    assert_eq!(voter.rows.of(&mine.subnet).len(), 6);
    let kept: Vec<_> = written.values().flatten().collect();
    assert_eq!(kept.len(), 1, "a subnet has one record");
    assert!(*kept[0] == records::row(&StoredRow { row: row(&mine, 1), process: 1, withdrawn: false, before: Vec::new() }).value.unwrap());
}
