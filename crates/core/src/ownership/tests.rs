//! Tests that a claim counts only when it is stored, told and undisputed, and that its journal comes from where it is.

mod comparison;

use super::{
    Ownership,
    claims::{Checked, Holding, JournalsAt},
};
use crate::{
    context::Context,
    delegation::Knowledge,
    event::{Command, PeerCommand, StoreCommand},
    membership::{Member, Membership, Roster, Swim},
    signal::Signal,
};
use nearcrawl_model::{
    access_point::{AccessPoint, ShortId},
    claim::{Answer, Claim, ClaimReason, MAX_ANSWERS, SignedClaim},
    ids::WriteId,
    message::{Gossip, MAX_GOSSIP},
    time::Moment,
    vote::{Endorsed, MAX_VOTERS, Votes},
};
use std::collections::BTreeSet;

const OTHER: AccessPoint = AccessPoint([9; 32]);

/// An access point that remembers these members.
fn among(others: &[AccessPoint]) -> (Context, Membership, Ownership) {
    let cx = Context::of_test(1);
    let remembered: BTreeSet<_> = others.iter().copied().collect();
    let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
    let roster = Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &remembered);
    let ownership = Ownership::new(cx.now.moment, others.is_empty());
    (cx, Membership::with_lease(swim, roster), ownership)
}

fn claim(owner: AccessPoint, epoch: u64, reason: ClaimReason, released: bool) -> Claim {
    let (subnet, rtt_us) = ("9.0.0.0/24".parse().unwrap(), Some(8_000));
    Claim { subnet, epoch, owner, rtt_us, runner_up: None, probes: 0, reason, released, answers: Vec::new() }
}

/// After how many seconds at the latest we claim what a member left that died after an hour: three others have been here for all the hour, like
/// it, twelve for as many seconds. `here` is for how many seconds we have been.
fn claimed_after(here: u64, newcomers: u64, votes: bool) -> u64 {
    const DIED: u64 = 3_600_000;
    let (mut cx, mut members, mut ownership) = among(&[]);
    cx.started = Moment(DIED - here * 1_000);
    let me = cx.me;
    (1..=3).for_each(|number| members.meet(Moment(0), AccessPoint([number; 32])));
    (101..=112).for_each(|number| members.meet(Moment(DIED - newcomers * 1_000), AccessPoint([number; 32])));
    for number in 0..40 {
        let left = Claim { subnet: format!("9.0.{number}.0/24").parse().unwrap(), ..claim(OTHER, 1, ClaimReason::Awarded, false) };
        assert!(ownership.merge(left.clone(), accepted_by(1, &left, &cx)).is_some());
    }
    ownership.dead(Moment(DIED), OTHER);
    for second in 0..300 {
        cx.now.moment = Moment(DIED + second * 1_000);
        ownership.take_over(&mut cx, &members, &Knowledge::new(), |who| votes && *who == me, |_, _| false);
        if ownership.inheriting.len() == 40 {
            return second;
        }
    }
    300
}

#[test]
fn those_that_came_of_late_take_no_turn_before_the_others() {
    assert_eq!(claimed_after(3_600, 60, false), 30, "each of four has its turn in forty seconds");
    assert!(claimed_after(60, 60, false) >= 100, "one of sixteen that came of late comes after all others");
    assert_eq!(claimed_after(60, 60, true), 30, "who votes is not one of them");
    assert!(claimed_after(3_600, 600, false) >= 100, "all have been here for long");
}

#[test]
fn a_claim_of_ours_is_told_when_it_is_stored_and_holds() {
    let (mut cx, members, mut ownership) = among(&[]);
    let ours = claim(cx.me, 1, ClaimReason::Awarded, false);
    ownership.make_claims(&mut cx, vec![ours.clone()]);
    assert!(cx.take_commands().is_empty(), "it needs votes first");
    let Some(Signal::ClaimsToVote(proofs, None)) = cx.signals.pop_front() else { panic!("no votes are wanted") };
    ownership.store_own(&mut cx, proofs);
    let commands = cx.take_commands();
    let [Command::Store(StoreCommand::StoreClaims { write: Some(write), .. })] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!((ownership.stored(WriteId(write.0 + 1)), ownership.register.claim(&ours.subnet)), (None, None));
    let proof = ownership.stored(*write).unwrap().remove(0);
    assert!(ownership.merge(ours.clone(), proof.clone()).is_some());
    assert_eq!(ownership.own_claim_holds(&mut cx, &members, &ours, proof.clone(), false), None, "no member had it before");
    ownership.tell_claims(&mut cx, &members);
    let commands = cx.take_commands();
    assert!(matches!(&commands[..], [Command::Peers(PeerCommand::Publish(Gossip::Claims(told)))] if *told == [proof]));
}

#[test]
fn claims_with_many_votes_are_told_in_messages_that_are_small_enough_to_be_sent() {
    let (mut cx, members, mut ownership) = among(&[]);
    let vote = Endorsed { voter: OTHER, signature: vec![255; 64] };
    let votes = Votes { list: u64::MAX, term: u64::MAX, voters: vec![vote; MAX_VOTERS] };
    let answers = vec![Answer { rtt_us: u32::MAX, prober: ShortId([255; 8]) }; MAX_ANSWERS];
    for number in 0..1_000u16 {
        let subnet = format!("9.{}.{}.0/24", number / 256, number % 256).parse().unwrap();
        let ours = Claim { subnet, answers: answers.clone(), ..claim(cx.me, u64::from(number), ClaimReason::OwnSubnet, false) };
        let proof = SignedClaim { votes: Some(Box::new(votes.clone())), ..SignedClaim::sign(&ours, &cx.key) };
        ownership.own_claim_holds(&mut cx, &members, &ours, proof, false);
    }
    let mut told = 0;
    while told < 1_000 {
        cx.now.moment = cx.now.moment.after(1_000);
        ownership.tell_claims(&mut cx, &members);
        let commands = cx.take_commands();
        let [Command::Peers(PeerCommand::Publish(gossip @ Gossip::Claims(proofs)))] = &commands[..] else { panic!("{told} were told") };
        assert!(postcard::to_stdvec(gossip).unwrap().len() <= MAX_GOSSIP && !proofs.is_empty());
        told += proofs.len();
    }
}

#[test]
fn what_was_handed_over_is_here_and_what_was_left_is_at_its_replicas() {
    let (mut cx, members, mut ownership) = among(&[]);
    let mut journals = |reason, epoch, released| {
        let ours = claim(cx.me, epoch, reason, released);
        let proof = SignedClaim::sign(&ours, &cx.key);
        ownership.own_claim_holds(&mut cx, &members, &ours, proof, false)
    };
    assert_eq!(journals(ClaimReason::Moved, 3, false), Some(JournalsAt::Here));
    assert_eq!(journals(ClaimReason::OwnerDead, 2, false), Some(JournalsAt::Replicas));
    assert_eq!(journals(ClaimReason::Awarded, 2, false), Some(JournalsAt::Replicas));
    assert_eq!(journals(ClaimReason::OwnSubnet, 1, false), None);
    assert_eq!(journals(ClaimReason::Moved, 3, true), None, "it goes");
    assert_eq!((cx.counters.moves_taken, cx.counters.deputies), (1, 1));
}

#[test]
fn at_the_start_journals_are_here_if_what_was_taken_over_was_begun_here_or_there_is_nobody_to_ask() {
    let at = |others: &[AccessPoint], joins, reason| {
        let (mut cx, members, ownership) = among(others);
        cx.settings.joins = joins;
        ownership.journals_at_start(&cx, &members, &claim(cx.me, 3, reason, false))
    };
    for (reason, begun) in [(ClaimReason::OwnerDead, 3), (ClaimReason::Released, 3), (ClaimReason::Moved, 3), (ClaimReason::Awarded, 0)] {
        assert_eq!(at(&[OTHER], false, reason), JournalsAt::HereIfBegun(begun), "{reason:?}");
        assert_eq!(at(&[], true, reason), JournalsAt::HereIfBegun(begun), "it has yet to meet the others: {reason:?}");
        assert_eq!(at(&[], false, reason), JournalsAt::Here);
    }
}

/// A claim with the votes of the voters of a list.
fn accepted_by(list: u64, claim: &Claim, cx: &Context) -> SignedClaim {
    let votes = Some(Box::new(Votes { list, term: 1, voters: Vec::new() }));
    SignedClaim { votes, ..SignedClaim::sign(claim, &cx.key) }
}

#[test]
fn the_voters_of_a_later_list_did_not_know_of_an_owner_whose_journals_are_asked_for_all_the_same() {
    for (theirs, epoch, forgets) in [(3, 1, true), (3, 3, true), (3, 4, false)] {
        let (mut cx, members, mut ownership) = among(&[]);
        let before = claim(OTHER, theirs, ClaimReason::Awarded, false);
        let proof = accepted_by(1, &before, &cx);
        assert!(!ownership.merge(before, proof).unwrap().forgets_epochs(), "the first one");
        let ours = claim(cx.me, epoch, ClaimReason::Awarded, false);
        let proof = accepted_by(2, &ours, &cx);
        assert_eq!(ownership.merge(ours.clone(), proof.clone()).unwrap().forgets_epochs(), forgets);
        assert_eq!(ownership.own_claim_holds(&mut cx, &members, &ours, proof, true), Some(JournalsAt::Replicas));
    }
}

#[test]
fn what_was_awarded_in_company_is_told_before_it_is_acted_on() {
    let awarded = |others: &[AccessPoint], around: Option<AccessPoint>, reason| {
        let (mut cx, members, mut ownership) = among(others);
        if let Some(owner) = around {
            let larger = Claim { subnet: "9.0.0.0/16".parse().unwrap(), ..claim(owner, 1, ClaimReason::Awarded, false) };
            let proof = SignedClaim::sign(&larger, &cx.key);
            assert!(ownership.merge(larger, proof).is_some());
        }
        let ours = claim(cx.me, 1, reason, false);
        let proof = SignedClaim::sign(&ours, &cx.key);
        ownership.own_claim_holds(&mut cx, &members, &ours, proof, false);
        let watched = |ownership: &mut Ownership, cx: &mut Context, at| {
            cx.now.moment = Moment(at);
            ownership.tick_watched(cx, &members);
            ownership.is_watched(&ours.subnet)
        };
        [1_000, 3_000, 11_000].map(|at| watched(&mut ownership, &mut cx, at))
    };
    assert_eq!(awarded(&[OTHER], None, ClaimReason::Awarded), [true, false, false], "others may have had its addresses probed");
    assert_eq!(awarded(&[OTHER], Some(OTHER), ClaimReason::Awarded), [true, true, false], "the owner around it has to stop");
    assert_eq!(awarded(&[OTHER], None, ClaimReason::OwnSubnet), [false; 3], "no other member can be chosen for it");
    assert_eq!(awarded(&[], None, ClaimReason::Awarded), [false; 3], "there is no other member");
}

#[test]
fn a_claim_that_was_stored_at_a_later_epoch_than_was_wanted_is_not_under_way_any_more() {
    let (_, _, mut ownership) = among(&[]);
    let subnet = claim(AccessPoint([1; 32]), 1, ClaimReason::OwnerDead, false).subnet;
    assert!(ownership.begin_claim(subnet, 3) && !ownership.begin_claim(subnet, 3));
    ownership.end_claims_upto(subnet, 2);
    assert!(!ownership.begin_claim(subnet, 3), "what was stored before is another");
    // Voters knew of later epochs, so it was made at one that follows these.
    ownership.end_claims_upto(subnet, 7);
    assert!(ownership.inheriting.is_empty());
}

#[test]
fn our_claim_ends_by_anothers_or_by_our_release_but_only_once() {
    let me = AccessPoint([1; 32]);
    let ours = |epoch, released| claim(me, epoch, ClaimReason::Awarded, released);
    let theirs = claim(OTHER, 2, ClaimReason::Awarded, false);
    let ends = |claim: Claim, before: Option<Claim>| Holding { claim, before }.ends_claim_of(me);
    assert!(ends(theirs.clone(), Some(ours(1, false))) && ends(ours(1, true), Some(ours(1, false))));
    assert!(!ends(theirs.clone(), Some(ours(1, true))) && !ends(theirs, None) && !ends(ours(2, false), Some(ours(1, false))));
}

#[test]
fn claims_that_are_known_or_badly_signed_or_too_large_are_not_entered() {
    let (mut cx, _, mut ownership) = among(&[OTHER]);
    let good = claim(cx.me, 1, ClaimReason::Awarded, false);
    let proof = SignedClaim::sign(&good, &cx.key);
    assert_eq!(ownership.check(&mut cx, &good, &proof), Checked::New);
    assert!(ownership.merge(good.clone(), proof.clone()).is_some());
    assert_eq!(ownership.check(&mut cx, &good, &proof), Checked::Known);
    let mut checked = |claim: Claim| {
        let proof = SignedClaim::sign(&claim, &cx.key);
        ownership.check(&mut cx, &claim, &proof)
    };
    assert_eq!(checked(Claim { subnet: "8.0.0.0/7".parse().unwrap(), ..good.clone() }), Checked::Refused);
    assert_eq!(checked(Claim { owner: OTHER, epoch: 9, ..good.clone() }), Checked::Forged);
    assert_eq!(cx.counters.refused.values().sum::<u64>(), 2);
}
