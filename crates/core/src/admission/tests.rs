//! Tests that expulsions are kept, told and obeyed, and that nothing counts that the root key does not stand behind.

use super::{Admissions, room::KEPT_AFTER_END};
use crate::{
    context::Context,
    event::{Command, PeerCommand, StoreCommand},
    membership::{Member, Membership, Roster, Swim},
    pending::Pending,
};
use ed25519_dalek::SigningKey;
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{
        Admission, AdmissionMode, AdmissionRule, Certificate, Expulsion, Issuer, MAX_CERTIFICATES, MAX_OF_INVITER, RootKey, SignedAdmission,
    },
    message::{Gossip, Request},
    time::{Moment, WallTime},
};
use std::{collections::BTreeMap, sync::Arc};

fn key(number: u32) -> SigningKey {
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&number.to_le_bytes());
    SigningKey::from_bytes(&seed)
}

fn who(number: u32) -> AccessPoint {
    AccessPoint(key(number).verifying_key().to_bytes())
}

const ROOT: u32 = 1_000_000;

fn root() -> RootKey {
    RootKey(key(ROOT).verifying_key().to_bytes())
}

/// When certificates end here, unless it is said.
const END: u64 = 100_000_000;

fn certificate(member: u32, issuer: Issuer, expires: u64) -> Admission {
    let (issued, expires) = (WallTime(1_000), WallTime(expires));
    let may_invite = issuer == Issuer::Root;
    Admission::Certificate(Certificate { swarm: root(), issuer, member: who(member), may_invite, issued, expires, label: String::new() })
}

fn expulsion(member: u32, issuer: Issuer) -> Admission {
    Admission::Expulsion(Expulsion { swarm: root(), issuer, member: who(member), serial: 1, at: WallTime(5), reason: "a test".to_owned() })
}

fn by_root(statement: &Admission) -> SignedAdmission {
    SignedAdmission::by_root(statement, &key(ROOT)).unwrap()
}

fn invited(member: u32) -> SignedAdmission {
    by_root(&certificate(member, Issuer::Root, END))
}

fn by_inviter(inviter: u32, statement: &Admission) -> SignedAdmission {
    SignedAdmission::by_inviter(statement, &key(inviter), &invited(inviter)).unwrap()
}

fn invited_by(inviter: u32, member: u32) -> SignedAdmission {
    by_inviter(inviter, &certificate(member, Issuer::Inviter(who(inviter)), END))
}

/// A member among others.
struct Point {
    cx: Context,
    members: Membership,
    admissions: Admissions,
    /// Pages as they are on its disk.
    disk: BTreeMap<u8, Vec<u8>>,
    /// Whom it lets in, as it told the process.
    gate: Arc<nearcrawl_model::admission::Gate>,
    given: u64,
}

impl Point {
    fn new(number: u32, others: &[u32]) -> Point {
        Point::waking(number, others, Some(invited(number)), BTreeMap::new())
    }

    fn waking(number: u32, others: &[u32], own: Option<SignedAdmission>, disk: BTreeMap<u8, Vec<u8>>) -> Point {
        Point::waking_at(Context::of_test(number as u8).now.wall.0, number, others, own, disk)
    }

    fn waking_at(wall: u64, number: u32, others: &[u32], own: Option<SignedAdmission>, disk: BTreeMap<u8, Vec<u8>>) -> Point {
        let mut cx = Context::of_test(number as u8);
        cx.now.wall = WallTime(wall);
        (cx.key, cx.me) = (key(number), who(number));
        cx.settings.admission = AdmissionRule { mode: AdmissionMode::Invite, swarm: Some(root()), ..AdmissionRule::default() };
        let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
        let mut members = Membership::new(swim, Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &Default::default()));
        others.iter().for_each(|other| members.meet(Moment(0), who(*other)));
        let mut admissions = Admissions::default();
        let pages: Vec<Vec<u8>> = disk.values().cloned().collect();
        admissions.wake(&mut cx, &pages, own);
        let mut point = Point { cx, members, admissions, disk, gate: Arc::default(), given: 0 };
        point.settle();
        point
    }

    /// The disk stores; what is said to members comes back, and the order in which the gate was shut.
    fn settle(&mut self) -> Vec<(Option<AccessPoint>, Option<Request>)> {
        let mut said = Vec::new();
        loop {
            let commands = self.cx.take_commands();
            if commands.is_empty() {
                return said;
            }
            for command in commands {
                match command {
                    Command::Store(StoreCommand::KeepAdmissions { write, page, bytes }) => {
                        self.disk.insert(page, bytes);
                        self.admissions.stored(&mut self.cx, &self.members, write);
                    }
                    Command::Peers(PeerCommand::Ask { to, question, request }) => {
                        if let Some(Pending::AdmissionsTold(ids)) = self.cx.pending.remove(&question) {
                            self.admissions.acknowledged(to, &ids);
                        }
                        said.push((Some(to), Some(request)));
                    }
                    Command::Peers(PeerCommand::Guard(gate)) => {
                        self.gate = gate;
                        said.push((None, None));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn tick_at(&mut self, wall: u64, moment: u64) {
        (self.cx.now.wall, self.cx.now.moment) = (WallTime(wall), Moment(moment));
        self.admissions.tick(&mut self.cx, &self.members);
        self.settle();
    }

    fn hear(&mut self, all: &[SignedAdmission]) {
        self.admissions.hear(&mut self.cx, all.to_vec());
        self.settle();
    }

    fn give(&mut self, signed: SignedAdmission) -> Result<AccessPoint, String> {
        self.given += 1;
        self.admissions.given(&mut self.cx, self.given, signed);
        self.settle();
        self.admissions.outcome(self.given).unwrap()
    }

    fn refused(&self, class: &str) -> u64 {
        self.cx.counters.refused.get(class).copied().unwrap_or(0)
    }

    fn lets_in(&self, number: u32, shown: &SignedAdmission) -> bool {
        self.gate.judge_shown(&who(number), Some(shown), self.cx.now.wall).is_ok()
    }

    fn excludes(&self, number: u32) -> bool {
        self.cx.excluded.contains_key(&who(number))
    }
}

#[test]
fn an_expulsion_is_stored_then_told_to_all_and_to_whom_it_is_about_and_then_the_gate_is_shut() {
    let mut point = Point::new(1, &[2, 3]);
    point.hear(&[invited(2), invited(3)]);
    assert!(point.lets_in(2, &invited(2)) && !point.excludes(2));
    point.admissions.given(&mut point.cx, 9, by_root(&expulsion(2, Issuer::Root)));
    assert!(point.admissions.outcome(9).is_none() && !point.excludes(2), "nothing is said before it is durable");
    let said = point.settle();
    assert_eq!(point.admissions.outcome(9), Some(Ok(who(2))));
    let told: Vec<_> = said.iter().take_while(|(to, _)| to.is_some()).filter_map(|(to, _)| *to).collect();
    assert!(told.contains(&who(2)) && told.contains(&who(3)), "all are told, the expelled too: {said:?}");
    assert_eq!(said.iter().filter(|(to, _)| to.is_none()).count(), 1, "and only then the gate is shut");
    assert!(point.excludes(2) && !point.lets_in(2, &invited(2)) && point.lets_in(3, &invited(3)));
    let again = Point::waking(1, &[], Some(invited(1)), point.disk.clone());
    assert!(again.excludes(2) && !again.lets_in(2, &invited(2)), "also after a restart");
}

#[test]
fn who_is_expelled_hears_it_and_knows_it_after_a_restart() {
    let mut point = Point::new(2, &[1]);
    assert!(point.cx.excluded.is_empty());
    point.hear(&[by_root(&expulsion(2, Issuer::Root))]);
    let why = |point: &Point| point.cx.excluded[&point.cx.me].to_string();
    assert_eq!(why(&point), "expelled: a test (by the root key)");
    assert_eq!(why(&Point::waking(2, &[], Some(invited(2)), point.disk.clone())), why(&point));
    let uninvited = Point::waking(5, &[], None, BTreeMap::new());
    assert!(why(&uninvited).starts_with("not invited: "));
    let of_another = Point::waking(5, &[], Some(invited(6)), BTreeMap::new());
    assert!(why(&of_another).contains("made out to"), "a certificate of another key is none");
}

#[test]
fn an_inviter_is_gone_with_all_whom_it_invited_unless_they_are_invited_anew() {
    let mut point = Point::new(1, &[2, 3, 4]);
    point.hear(&[invited(2), invited_by(2, 3), invited_by(2, 4), invited(5)]);
    point.hear(&[by_root(&expulsion(2, Issuer::Root))]);
    assert!(point.excludes(2) && point.excludes(3) && point.excludes(4) && !point.excludes(5));
    assert!(!point.lets_in(3, &invited_by(2, 3)) && point.lets_in(3, &invited(3)));
    point.hear(&[invited(3)]);
    assert!(!point.excludes(3) && point.excludes(4), "the root answers for it now");
}

#[test]
fn an_inviter_expels_whom_it_invited_and_nobody_else() {
    let mut point = Point::new(1, &[]);
    point.hear(&[invited(2), invited(3), invited_by(3, 4), invited_by(2, 5)]);
    let by_2 = |member| by_inviter(2, &expulsion(member, Issuer::Inviter(who(2))));
    point.hear(&[by_2(3), by_2(4), by_2(5)]);
    assert!(!point.excludes(3) && !point.excludes(4) && point.excludes(5));
}

#[test]
fn an_expulsion_that_would_change_nothing_is_refused_with_the_reason() {
    let mut point = Point::new(1, &[]);
    point.hear(&[invited(2), invited(3), invited_by(3, 4), invited_by(2, 5)]);
    let by_2 = |member| by_inviter(2, &expulsion(member, Issuer::Inviter(who(2))));
    for other in [3, 4, 6] {
        let why = point.give(by_2(other)).unwrap_err();
        assert!(why.contains("the root key expels it, or its inviter does"), "{why}");
    }
    assert_eq!(point.admissions.room().1, 0, "and none is kept");
    assert_eq!(point.give(by_2(5)), Ok(who(5)));
    assert!(point.excludes(5));
    for mode in [AdmissionMode::Open, AdmissionMode::Closed] {
        let mut point = Point::new(1, &[]);
        point.hear(&[invited(2), invited_by(2, 5)]);
        point.cx.settings.admission.mode = mode;
        let why = point.give(by_2(5)).unwrap_err();
        assert!(why.contains("only the root key expels"), "{why}");
        assert_eq!(point.give(by_root(&expulsion(5, Issuer::Root))), Ok(who(5)));
        assert!(point.excludes(5));
    }
}

/// A certificate of the root key that was signed then.
fn signed_at(issued: u64, member: u32, may_invite: bool, expires: u64) -> SignedAdmission {
    let Admission::Certificate(one) = certificate(member, Issuer::Root, expires) else { unreachable!() };
    by_root(&Admission::Certificate(Certificate { issued: WallTime(issued), may_invite, ..one }))
}

#[test]
fn who_is_an_inviter_no_more_invites_nobody_and_keeps_whom_it_has_invited() {
    let mut point = Point::new(1, &[2, 3]);
    let invited_at = |issued: u64, member: u32| {
        let Admission::Certificate(one) = certificate(member, Issuer::Inviter(who(2)), END) else { unreachable!() };
        // The inviter holds on to the certificate by which it was one.
        by_inviter(2, &Admission::Certificate(Certificate { issued: WallTime(issued), ..one }))
    };
    point.hear(&[invited(2), invited_at(1_500, 3), invited_at(2_500, 4)]);
    assert!(!point.excludes(3) && !point.excludes(4));
    assert_eq!(point.give(signed_at(2_000, 2, false, END)), Ok(who(2)), "it is demoted");
    assert!(!point.excludes(2) && !point.excludes(3), "it is a member still, and so is whom it invited before");
    assert!(point.excludes(4) && !point.lets_in(5, &invited_at(2_500, 5)), "what it signed after that is void");
    let why = point.cx.excluded[&who(4)].to_string();
    assert!(why.contains("has been no inviter since"), "{why}");
    point.hear(&[signed_at(3_000, 2, true, END)]);
    assert!(!point.excludes(4), "it is one again");
}

#[test]
fn a_certificate_beside_which_a_later_one_counts_is_refused_with_the_reason() {
    let wall = Context::of_test(1).now.wall.0;
    let (short, long) = (signed_at(3_000, 1, true, wall + 5_000), invited(1));
    let mut point = Point::new(1, &[]);
    point.hear(std::slice::from_ref(&short));
    assert!(point.admissions.is_replaced(&short).is_none());
    let why = point.give(long.clone()).unwrap_err();
    assert!(why.contains("signed later") && why.contains("ends"), "{why}");
    // The one that its people gave it at its next start, too.
    let mut point = Point::waking_at(wall, 1, &[], Some(long), point.disk);
    assert!(!point.excludes(1), "the other one holds still");
    point.tick_at(wall + 5_000, 0);
    let why = point.cx.excluded[&who(1)].to_string();
    assert!(why.contains("does not count") && why.contains("signed later"), "{why}");
}

#[test]
fn what_the_root_does_not_stand_behind_is_not_kept() {
    let mut point = Point::new(1, &[]);
    let unsigned = |mut signed: SignedAdmission| {
        signed.statement.signature[3] ^= 1;
        signed
    };
    point.hear(&[unsigned(by_root(&expulsion(1, Issuer::Root))), unsigned(invited(7))]);
    assert_eq!(point.refused("certificates and expulsions that nobody who may signed"), 2);
    assert_eq!((point.admissions.room(), point.cx.excluded.len()), ((1, 0), 0));
    let other_root = {
        let other = key(77);
        let Admission::Certificate(one) = certificate(7, Issuer::Root, END) else { unreachable!() };
        let swarm = RootKey(other.verifying_key().to_bytes());
        SignedAdmission::by_root(&Admission::Certificate(Certificate { swarm, ..one }), &other).unwrap()
    };
    assert!(point.give(other_root).unwrap_err().contains("is of swarm"));
    point.cx.settings.admission.swarm = None;
    assert!(point.give(invited(8)).unwrap_err().contains("no root key"));
}

#[test]
fn a_certificate_ends_by_the_clock_and_is_forgotten_a_month_later() {
    let mut point = Point::new(1, &[2]);
    let end = point.cx.now.wall.0 + 5_000;
    point.hear(&[by_root(&certificate(2, Issuer::Root, end))]);
    point.cx.now.wall = WallTime(end - 1);
    point.admissions.tick(&mut point.cx, &point.members);
    assert!(!point.excludes(2));
    point.cx.now.wall = WallTime(end);
    point.admissions.tick(&mut point.cx, &point.members);
    assert!(point.excludes(2));
    assert!(point.cx.excluded[&who(2)].to_string().contains("ended"));
    let Admission::Certificate(one) = certificate(2, Issuer::Root, end + 60_000) else { unreachable!() };
    point.hear(&[by_root(&Admission::Certificate(Certificate { issued: WallTime(2_000), ..one }))]);
    assert!(!point.excludes(2), "it has another one");
    point.tick_at(END + KEPT_AFTER_END, KEPT_AFTER_END);
    point.tick_at(END + KEPT_AFTER_END, KEPT_AFTER_END + 3_600_000);
    assert_eq!(point.admissions.room().0, 1, "this one's has ended, too, and is kept");
}

#[test]
fn a_clock_that_ran_ahead_and_was_set_back_leaves_nothing_behind() {
    let far = 4_000_000_000_000;
    let mut point = Point::new(1, &[2, 3]);
    point.hear(&[invited(2)]);
    let (disk, now) = (point.disk.clone(), point.cx.now.wall.0);
    // It starts with the clock far ahead, once with what it knew and once with nothing, and hears of a third.
    for disk in [disk, BTreeMap::new()] {
        let mut ahead = Point::waking_at(far, 1, &[2, 3], Some(invited(1)), disk);
        ahead.tick_at(far, 1_000);
        ahead.hear(&[invited(2), invited(3)]);
        assert!(ahead.excludes(1), "by that clock its certificate has ended");
        let kept = ahead.admissions.room().0;
        ahead.tick_at(now, 2_000);
        assert!(!ahead.excludes(1) && !ahead.excludes(2) && ahead.lets_in(2, &invited(2)));
        let head = invited(3).head(&invited(3).read().unwrap());
        ahead.admissions.heads_came(&mut ahead.cx, who(2), Some(&[head]));
        assert!(ahead.settle().iter().any(|(_, said)| *said == Some(Request::SendAdmissions(vec![head.id]))), "asked for again");
        ahead.tick_at(now, 3_700_000);
        assert!(ahead.admissions.room().0 >= kept.max(1), "and nothing is deleted");
        let again = Point::waking(1, &[], None, ahead.disk.clone());
        assert!(!again.excludes(1), "it is stored, too");
    }
    // An hour later a clock that stays ahead has others deleted, its own certificate never.
    let mut ahead = Point::waking_at(far, 1, &[], Some(invited(1)), point.disk.clone());
    [0, 3_600_000].into_iter().for_each(|moment| ahead.tick_at(far, moment));
    assert_eq!(ahead.admissions.room().0, 1);
    ahead.tick_at(now, 3_601_000);
    assert!(!ahead.excludes(1));
}

#[test]
fn no_inviter_takes_the_room_of_the_others() {
    let mut point = Point::new(1, &[]);
    let of_one: Vec<_> = (0..MAX_OF_INVITER as u32 + 3).map(|number| invited_by(2, 10_000 + number)).collect();
    point.hear(&of_one);
    assert_eq!(point.admissions.room().0, MAX_OF_INVITER + 1);
    assert_eq!(point.refused("certificates and expulsions beyond the limit for an inviter"), 3);
    for inviter in 3..9 {
        point.hear(&(0..MAX_OF_INVITER as u32).map(|number| invited_by(inviter, 10_000 * inviter + number)).collect::<Vec<_>>());
    }
    assert_eq!(point.admissions.room().0, MAX_CERTIFICATES / 4 * 3 + 1, "a quarter is the root's");
    let of_root: Vec<_> = (0..MAX_CERTIFICATES as u32 / 4 + 5).map(|number| invited(200_000 + number)).collect();
    point.hear(&of_root);
    assert_eq!(point.admissions.room().0, MAX_CERTIFICATES);
    let view = point.admissions.view(&point.cx, &point.members);
    let of_root_kept = view.certificates.iter().filter(|one| one.invited_by.is_none()).count();
    assert_eq!(of_root_kept, of_root.len() + 1, "and these are all kept");
    point.hear(&[by_root(&expulsion(2, Issuer::Root))]);
    assert!(point.excludes(2), "expulsions have room of their own");
}

#[test]
fn a_member_that_shows_a_new_certificate_is_told_of_and_two_that_compare_have_the_same_afterwards() {
    let mut one = Point::new(1, &[2]);
    one.admissions.shown(&mut one.cx, invited(7));
    let told = |said: Vec<(Option<AccessPoint>, Option<Request>)>| {
        said.into_iter().filter(|(to, request)| *to == Some(who(2)) && matches!(request, Some(Request::Tell(_)))).count()
    };
    assert_eq!(told(one.settle()), 1);
    one.admissions.shown(&mut one.cx, invited(7));
    assert_eq!(told(one.settle()), 0, "once");
    let mut other = Point::new(2, &[1]);
    other.hear(&[by_root(&expulsion(9, Issuer::Root))]);
    // The other compares with the one: it lacks a certificate, and has an expulsion that this one lacks.
    let heads: Vec<_> = [invited(1), invited(7)].iter().map(|signed| signed.head(&signed.read().unwrap())).collect();
    other.admissions.heads_came(&mut other.cx, who(1), Some(&heads));
    let said = other.settle();
    let asked = said.iter().find_map(|(_, request)| match request {
        Some(Request::SendAdmissions(ids)) => Some(ids.len()),
        _ => None,
    });
    assert_eq!(asked, Some(2));
    let missing = said.iter().find_map(|(_, request)| match request {
        Some(Request::Tell(gossip)) => match &**gossip {
            Gossip::Admissions(signed) => Some(signed.clone()),
            _ => None,
        },
        _ => None,
    });
    one.hear(&missing.unwrap());
    other.hear(&[invited(1), invited(7)]);
    assert_eq!(one.gate, other.gate);
    assert_eq!(one.admissions.room(), other.admissions.room());
}
