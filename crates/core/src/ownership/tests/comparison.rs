//! Tests that two maps become equal, at what cost, and what members that lie or stall bring about.

use super::super::{Ownership, claims::Checked, comparison::Heard, register::Register};
use crate::{
    context::Context,
    event::{Command, PeerCommand},
    pending::{MapQuestion, Pending},
};
use ed25519_dalek::SigningKey;
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, SignedClaim},
    ids::Ticket,
    message::{Request, Response},
    ownership_map::{ComparedPart, MAX_SENT, MapDigest, MapPart, PARTS},
    subnet::Subnet,
    time::{Millis, Moment},
};
use proptest::prelude::*;
use std::{collections::BTreeSet, net::IpAddr, sync::LazyLock};

const A: AccessPoint = AccessPoint([7; 32]);
const B: AccessPoint = AccessPoint([8; 32]);

/// So many claims are signed for these tests: enough that the map is divided twice.
const MADE: u32 = 2_400;

/// Claims to subnets of their own, at epoch 1 and 2.
static MADE_CLAIMS: LazyLock<Vec<[(Claim, SignedClaim); 2]>> = LazyLock::new(|| {
    let key = SigningKey::from_bytes(&[3; 32]);
    let made = |number: u32, epoch| {
        let claim = Claim {
            subnet: Subnet::around(IpAddr::from((0x0a00_0000 + (number << 8)).to_be_bytes()), 24),
            epoch,
            owner: AccessPoint(key.verifying_key().to_bytes()),
            rtt_us: Some(9),
            runner_up: None,
            probes: 1,
            reason: ClaimReason::Awarded,
            released: false,
            answers: Vec::new(),
        };
        let proof = SignedClaim::sign(&claim, &key);
        (claim, proof)
    };
    (0..MADE).map(|number| [made(number, 1), made(number, 2)]).collect()
});

/// A member with its map.
struct Side {
    cx: Context,
    ownership: Ownership,
    /// Questions that were asked, and the bytes of these and of the answers.
    questions: usize,
    bytes: usize,
}

/// The map with these claims: numbers and epochs.
fn side(claims: impl IntoIterator<Item = (u32, usize)>) -> Side {
    let cx = Context::of_test(1);
    let mut side = Side { ownership: Ownership::new(cx.now.moment, false), cx, questions: 0, bytes: 0 };
    for (number, epoch) in claims {
        let (claim, proof) = MADE_CLAIMS[number as usize][epoch - 1].clone();
        let _ = side.ownership.merge(claim, proof);
    }
    side
}

fn all(claims: std::ops::Range<u32>) -> Side {
    side(claims.map(|number| (number, 1)))
}

impl Side {
    fn register(&self) -> &Register {
        self.ownership.register()
    }

    fn digest(&self) -> MapDigest {
        self.register().digest(MapPart::WHOLE)
    }

    /// What it answers.
    fn serve(&mut self, request: &Request) -> Response {
        match request {
            Request::CompareClaims(parts) => self.ownership.compared(&mut self.cx, Ticket(1), parts),
            Request::SendClaims(wanted) => self.ownership.claims_wanted(&mut self.cx, Ticket(1), wanted),
            other => panic!("{other:?}"),
        }
        match self.cx.take_commands().pop() {
            Some(Command::Peers(PeerCommand::Answer { response, .. })) => response,
            other => panic!("{other:?}"),
        }
    }

    /// Time passes; whoever is due is asked.
    fn tick(&mut self, after: Millis, others: &[AccessPoint]) {
        self.cx.now.moment = self.cx.now.moment.after(after);
        self.ownership.synced |= self.ownership.comparison.is_whole(self.cx.now.moment, others);
        let synced = self.ownership.synced;
        self.ownership.comparison.tick(&mut self.cx, &mut self.ownership.register, others, |_| true, synced);
    }

    /// The oldest question.
    fn asked(&mut self) -> Option<(AccessPoint, MapQuestion, Request)> {
        let Some(Command::Peers(PeerCommand::Ask { to, question, request })) = self.cx.commands.pop_front() else { return None };
        let Some(Pending::Compare(asked)) = self.cx.pending.remove(&question) else { panic!("{question:?}") };
        self.questions += 1;
        self.bytes += postcard::to_stdvec(&request).unwrap().len();
        Some((to, asked, request))
    }

    fn answered(&mut self, question: MapQuestion, answer: Option<Response>) {
        self.bytes += answer.as_ref().map_or(0, |answer| postcard::to_stdvec(answer).unwrap().len());
        let claims = self.ownership.comparison_answered(&mut self.cx, question, answer);
        let mut heard = Heard::default();
        for (claim, proof) in claims {
            match self.ownership.check(&mut self.cx, &claim, &proof) {
                Checked::New => heard.held += usize::from(self.ownership.merge(claim, proof).is_some()),
                Checked::Forged => heard.forged += 1,
                Checked::Known | Checked::Refused => {}
            }
        }
        let synced = self.ownership.synced;
        self.ownership.comparison.go_on(&mut self.cx, &self.ownership.register, heard, synced);
    }

    /// Asks, as long as it wants to and for so long, those who answer so.
    fn play(&mut self, lasts: Millis, others: &[AccessPoint], mut answer: impl FnMut(AccessPoint, &Request) -> Option<Response>) {
        let end = self.cx.now.moment.after(lasts);
        while self.cx.now.moment < end && !self.ownership.synced {
            match self.asked() {
                Some((to, question, request)) => self.answered(question, answer(to, &request)),
                None => self.tick(100, others),
            }
        }
    }

    /// One pass with another map, which is whole.
    fn pass_with(&mut self, other: &mut Side) {
        other.ownership.synced = true;
        self.ask_all(other);
    }

    fn ask_all(&mut self, other: &mut Side) {
        // Behind any pause.
        self.tick(700_000, &[A]);
        while let Some((_, question, request)) = self.asked() {
            self.answered(question, Some(other.serve(&request)));
        }
    }

    fn refused(&self, class: &str) -> u64 {
        self.cx.counters.refused.iter().filter(|(known, _)| known.contains(class)).map(|(_, count)| count).sum()
    }
}

fn some_claims() -> impl Strategy<Value = Vec<(u32, usize)>> {
    prop_oneof![
        prop::collection::vec((0u32..40, 1usize..3), 0..40),
        (0u32..1_000, 0u32..400, 1usize..3)
            .prop_map(|(first, count, epoch)| (first..first + count).map(|number| (number, epoch)).collect()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_two_maps_become_equal(mine in some_claims(), theirs in some_claims()) {
        let (mut one, mut other) = (side(mine), side(theirs));
        one.pass_with(&mut other);
        other.pass_with(&mut one);
        prop_assert_eq!(one.digest(), other.digest());
        prop_assert!(one.register().all().eq(other.register().all()));
        prop_assert!(one.cx.counters.refused.is_empty() && other.cx.counters.refused.is_empty());
        let (questions, bytes) = (one.questions, one.bytes);
        one.pass_with(&mut other);
        prop_assert_eq!(one.questions - questions, 1, "equal maps take one question");
        prop_assert!(one.bytes - bytes <= 100, "{}", one.bytes - bytes);
    }
}

#[test]
fn one_claim_more_costs_four_questions_and_few_bytes() {
    let (mut one, mut other) = (side((1..MADE).map(|number| (number, 1))), all(0..MADE));
    one.pass_with(&mut other);
    assert_eq!(one.digest(), other.digest());
    assert!(one.questions <= 4 && one.bytes <= 4_096, "{} questions, {} bytes", one.questions, one.bytes);
    let newer = side((0..MADE).map(|number| (number, 1 + usize::from(number == 77))));
    let (mut older, mut newer) = (one, newer);
    (older.questions, older.bytes) = (0, 0);
    older.pass_with(&mut newer);
    assert_eq!(older.digest(), newer.digest());
    assert!(older.questions <= 4 && older.bytes <= 4_096, "{} questions, {} bytes", older.questions, older.bytes);
}

#[test]
fn who_has_more_than_the_other_fetches_nothing() {
    let (mut one, mut other) = (all(0..MADE), side([]));
    one.pass_with(&mut other);
    assert_eq!((one.questions, one.register().len()), (1, MADE as usize));
    let mut less = all(0..MADE - 1);
    let known = one.register().len();
    one.pass_with(&mut less);
    assert_eq!(one.register().len(), known);
}

#[test]
fn a_whole_map_is_not_compared_part_by_part_with_one_that_is_just_being_fetched() {
    let (mut one, mut newcomer) = (all(0..MADE), side((0..MADE).step_by(2).map(|number| (number, 1))));
    one.ownership.synced = true;
    one.ask_all(&mut newcomer);
    assert_eq!(one.questions, 1);
    newcomer.pass_with(&mut one);
    one.questions = 0;
    one.pass_with(&mut newcomer);
    assert_eq!((one.questions, one.digest()), (1, newcomer.digest()));
}

#[test]
fn a_newcomer_is_whole_after_two_members_and_gets_everything_in_portions() {
    let mut newcomer = side([]);
    let mut whole = all(0..MADE);
    whole.ownership.synced = true;
    let (mut largest, mut asked_of_b) = (0, 0);
    newcomer.play(60_000, &[A, B], |to, request| {
        let answer = whole.serve(request);
        if let Response::Claims(proofs, _) = &answer {
            largest = largest.max(proofs.len());
        }
        asked_of_b += usize::from(to == B);
        Some(answer)
    });
    assert!(newcomer.ownership.synced && newcomer.digest() == whole.digest());
    assert_eq!(largest, MAX_SENT);
    assert!(asked_of_b > 0 && newcomer.cx.now.moment < Moment(2_000), "two whole maps are enough at once: {:?}", newcomer.cx.now.moment);
}

/// A member that has nothing and says that this is all.
fn nothing(request: &Request) -> Option<Response> {
    Some(match request {
        Request::CompareClaims(parts) => {
            let differs = ComparedPart::Differs(vec![MapDigest::EMPTY; PARTS]);
            Response::Compared { whole: true, parts: vec![differs; parts.len()] }
        }
        _ => Response::Claims(Vec::new(), false),
    })
}

#[test]
fn one_empty_member_makes_no_newcomer_whole() {
    for liar in [A, B] {
        let (mut newcomer, mut honest) = (side([]), all(0..900));
        honest.ownership.synced = true;
        newcomer.play(60_000, &[A, B], |to, request| if to == liar { nothing(request) } else { Some(honest.serve(request)) });
        assert!(newcomer.ownership.synced && newcomer.digest() == honest.digest());
    }
}

#[test]
fn members_that_have_just_started_wait_until_all_were_asked() {
    // Two others without a map, and one that was there.
    let c = AccessPoint([9; 32]);
    let (mut newcomer, mut honest) = (side([]), all(0..300));
    honest.ownership.synced = true;
    let mut asked = Vec::new();
    newcomer.play(60_000, &[A, B, c], |to, request| {
        asked.push(to);
        if to == c { Some(honest.serve(request)) } else { Some(side([]).serve(request)) }
    });
    assert!(newcomer.ownership.synced && newcomer.digest() == honest.digest(), "{asked:?}");
    // None was there: all begin.
    let mut first = side([]);
    first.play(60_000, &[A, B], |_, request| Some(side([]).serve(request)));
    assert!(first.ownership.synced);
}

#[test]
fn the_only_other_member_is_enough_but_not_before_others_could_be_met() {
    let (mut newcomer, mut honest) = (side([]), all(0..100));
    newcomer.play(1_900, &[A], |_, request| Some(honest.serve(request)));
    assert!(!newcomer.ownership.synced && newcomer.digest() == honest.digest());
    newcomer.play(200, &[A], |_, request| Some(honest.serve(request)));
    assert!(newcomer.ownership.synced);
}

#[test]
fn a_member_that_does_not_answer_holds_nobody_up() {
    let (mut newcomer, mut honest) = (side([]), all(0..500));
    honest.ownership.synced = true;
    newcomer.play(60_000, &[A, B], |to, request| (to == B).then(|| honest.serve(request)));
    assert!(newcomer.ownership.synced && newcomer.digest() == honest.digest());
    let mut alone = side([]);
    alone.play(60_000, &[A, B], |_, _| None);
    assert!(!alone.ownership.synced, "nobody has answered");
}

/// Answers that no honest member gives: each ends its pass, is counted by its class, and the member is left alone for ten minutes.
#[test]
fn wrong_answers_end_the_pass_and_are_counted() {
    let key = SigningKey::from_bytes(&[5; 32]);
    let mut honest = all(0..MADE);
    let forged = |proof: SignedClaim| SignedClaim { signature: SignedClaim::sign(&proof.read().unwrap(), &key).signature, ..proof };
    let other =
        |proofs: &[SignedClaim]| MADE_CLAIMS.iter().map(|[(_, proof), _]| proof.clone()).find(|proof| !proofs.contains(proof)).unwrap();
    type Lie<'a> = Box<dyn Fn(Vec<SignedClaim>) -> Response + 'a>;
    let lies: Vec<(&str, Lie<'_>)> = vec![
        ("without claims", Box::new(|_| Response::Claims(Vec::new(), true))),
        ("not asked for", Box::new(|proofs| Response::Claims(vec![proofs[0].clone(), proofs[0].clone()], true))),
        ("not asked for", Box::new(|proofs| Response::Claims(proofs.into_iter().rev().collect(), false))),
        ("not asked for", Box::new(|proofs| Response::Claims([&proofs[..], &[other(&proofs)]].concat()[1..].to_vec(), false))),
        ("forged", Box::new(|proofs| Response::Claims(proofs.into_iter().map(forged).collect(), true))),
        ("decoded", Box::new(|_| Response::Claims(vec![SignedClaim { bytes: vec![1; 90], signature: vec![0; 64], votes: None }], true))),
        ("another kind", Box::new(|_| Response::Noted)),
        ("another kind", Box::new(|_| Response::Compared { whole: true, parts: Vec::new() })),
    ];
    for (class, lie) in &lies {
        let mut newcomer = side([]);
        newcomer.play(300_000, &[A], |_, request| match honest.serve(request) {
            Response::Claims(proofs, _) => Some(lie(proofs)),
            compared => Some(compared),
        });
        assert_eq!(newcomer.refused(class), 1, "{class}: {:?}", newcomer.cx.counters.refused);
        assert!(!newcomer.ownership.synced && newcomer.questions <= 9, "{class}: asked {} times in five minutes", newcomer.questions);
    }
    for parts in [Vec::new(), vec![ComparedPart::Differs(Vec::new())], vec![ComparedPart::Equal; 2]] {
        let mut newcomer = side([]);
        newcomer.play(60_000, &[A], |_, _| Some(Response::Compared { whole: true, parts: parts.clone() }));
        assert_eq!((newcomer.refused("other parts"), newcomer.questions), (1, 1));
        assert!(!newcomer.ownership.synced);
    }
}

#[test]
fn a_member_that_goes_on_for_ever_is_given_up() {
    let mut honest = all(0..MADE);
    let mut newcomer = side([]);
    newcomer.tick(0, &[A]);
    // One claim an answer, nine seconds after the question.
    while let Some((_, question, request)) = newcomer.asked() {
        let answer = match honest.serve(&request) {
            Response::Claims(proofs, _) => Response::Claims(proofs[..1].to_vec(), true),
            other => other,
        };
        newcomer.tick(9_000, &[A, B]);
        newcomer.answered(question, Some(answer));
        if newcomer.cx.now.moment > Moment(70_000) {
            break;
        }
    }
    assert!(std::iter::from_fn(|| newcomer.asked()).any(|(to, ..)| to == B), "the next member has its turn");
    // Digests that are others each time: no more questions than our own map has parts.
    let mut one = all(0..MADE);
    let mut told = 0u8;
    one.ownership.synced = true;
    one.tick(6_000, &[A]);
    while let Some((_, question, request)) = one.asked() {
        told = told.wrapping_add(1);
        let other = MapDigest::of_listed(MADE_CLAIMS[usize::from(told)].iter().map(|(claim, _)| MapDigest::of_claim(claim)));
        one.answered(
            question,
            Some(match request {
                Request::CompareClaims(parts) => {
                    Response::Compared { whole: true, parts: vec![ComparedPart::Differs(vec![other; PARTS]); parts.len()] }
                }
                _ => Response::Claims(Vec::new(), false),
            }),
        );
    }
    assert!(one.questions < 80 && one.register().len() == MADE as usize, "{} questions", one.questions);
}

#[test]
fn maps_that_stay_equal_are_compared_less_often_until_one_changes() {
    let (mut one, mut other) = (all(0..100), all(0..100));
    (one.ownership.synced, other.ownership.synced) = (true, true);
    let mut passes_in = |one: &mut Side, lasts: Millis| {
        let end = one.cx.now.moment.after(lasts);
        let mut passes = BTreeSet::new();
        while one.cx.now.moment < end {
            one.tick(100, &[A]);
            while let Some((_, question, request)) = one.asked() {
                passes.insert(question.pass);
                one.answered(question, Some(other.serve(&request)));
            }
        }
        passes.len()
    };
    assert_eq!(passes_in(&mut one, 60_000), 4, "every 15 s");
    passes_in(&mut one, 300_000);
    assert_eq!(passes_in(&mut one, 600_000), 10, "once a minute");
    let (claim, proof) = MADE_CLAIMS[200][0].clone();
    assert!(one.ownership.merge(claim, proof).is_some());
    assert_eq!(passes_in(&mut one, 60_000), 4, "every 15 s again");
}
