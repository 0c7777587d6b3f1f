//! Tests that an opt-out is believed, kept, told, and withdrawn by the same proof only, and that a liar stops nobody for long.

use super::{OptOuts, machine::MAX_REFUTED, register::MAX_OF_STRANGERS};
use crate::{
    context::Context,
    event::{Command, PeerCommand, StoreCommand, WebCommand},
    membership::{Member, Membership, Roster, Swim},
};
use ed25519_dalek::SigningKey;
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::NotAdmitted,
    allowance::Rest,
    claim::{Claim, ClaimReason},
    ids::{QuestionId, Ticket},
    message::{Gossip, Request, Response},
    opt_out::{
        MAX_OF_MEMBER, MAX_ORDERS, MAX_STATEMENTS, OptOutKey, OptOutProof, OptOutSubject, OptOutView, ProofLook, SignedStatement, Statement,
    },
    time::{Moment, WallTime},
    url::Host,
};
use std::net::IpAddr;

fn key(number: u32) -> SigningKey {
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&number.to_le_bytes());
    SigningKey::from_bytes(&seed)
}

fn who(number: u32) -> AccessPoint {
    AccessPoint(key(number).verifying_key().to_bytes())
}

fn about(subject: &str, proof: OptOutProof) -> OptOutKey {
    OptOutKey { subject: OptOutSubject::read(subject, false).unwrap(), proof }
}

fn txt(subject: &str) -> OptOutKey {
    about(subject, OptOutProof::Txt)
}

fn says(by: u32, key_of: &OptOutKey, revision: u64, stops: bool) -> SignedStatement {
    let statement = Statement { by: who(by), key: key_of.clone(), revision, stops, at: WallTime(5 + revision) };
    SignedStatement::sign(&statement, &key(by)).unwrap()
}

fn gone() -> ProofLook {
    ProofLook::Gone("there is no TXT record".to_owned())
}

const IN_VAIN: &str = "opt-outs whose proof was looked for in vain";

/// A member with its opt-outs, among others.
struct Point {
    cx: Context,
    members: Membership,
    opt_outs: OptOuts,
    /// Pages as they are on its disk.
    disk: std::collections::BTreeMap<u8, Vec<u8>>,
    asked: u64,
    /// Looks that were ordered and not answered.
    looks: Vec<(QuestionId, OptOutKey)>,
    /// Hosts that are looked up for a look, and addresses that were asked then.
    locating: Vec<(QuestionId, Host)>,
    asked_at: Vec<IpAddr>,
}

impl Point {
    fn new(number: u32, others: &[u32]) -> Point {
        let mut cx = Context::of_test(number as u8);
        cx.key = key(number);
        cx.me = who(number);
        let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
        let mut members = Membership::new(swim, Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &Default::default()));
        others.iter().for_each(|other| members.meet(Moment(0), who(*other)));
        let (disk, looks) = Default::default();
        Point { cx, members, opt_outs: OptOuts::default(), disk, asked: 0, looks, locating: Vec::new(), asked_at: Vec::new() }
    }

    /// The disk stores, the looks are noted; what is said to members comes back.
    fn settle(&mut self) -> Vec<Request> {
        let mut requests = Vec::new();
        loop {
            let commands = self.cx.take_commands();
            if commands.is_empty() {
                return requests;
            }
            for command in commands {
                match command {
                    Command::Store(StoreCommand::KeepOptOuts { write, page, bytes }) => {
                        self.disk.insert(page, bytes);
                        self.opt_outs.stored(&mut self.cx, &self.members, write);
                    }
                    Command::Web(WebCommand::LookForProof { question, key, at }) => {
                        self.looks.push((question, key));
                        self.asked_at.extend(at);
                    }
                    Command::Web(WebCommand::LocateProof { question, host }) => self.locating.push((question, host)),
                    Command::Peers(PeerCommand::Ask { request, .. }) => requests.push(request),
                    Command::Peers(PeerCommand::Publish(_)) => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn hear(&mut self, all: Vec<SignedStatement>) {
        self.opt_outs.hear(&mut self.cx, &self.members, all);
        self.settle();
    }

    /// People ask, and this is found, if it is looked.
    fn ask(&mut self, key: &OptOutKey, stops: bool, found: ProofLook) -> Result<OptOutView, String> {
        self.asked += 1;
        self.opt_outs.asked(&mut self.cx, self.asked, key.clone(), stops);
        self.settle();
        if let Some((question, looked)) = self.looks.pop() {
            assert_eq!(looked, *key);
            assert!(self.opt_outs.outcome(self.asked).is_none());
            self.opt_outs.looked(&mut self.cx, question, found);
            self.settle();
        }
        self.opt_outs.outcome(self.asked).unwrap().map(|key| self.opt_outs.view(&self.cx, &key))
    }

    /// A program that is no member asks, whose host is here by this claim; why that is refused, or else how many requests it comes to.
    fn reader_asks(&mut self, key: &OptOutKey, address: &str, claim: Option<&Claim>) -> Result<usize, String> {
        self.asked += 1;
        self.opt_outs.asked_by_reader(&mut self.cx, self.asked, key.clone(), true);
        self.settle();
        if let Some((question, _)) = self.locating.pop() {
            let address = Ok(address.parse().unwrap());
            self.opt_outs.located(&mut self.cx, &self.members, question, address, claim);
            self.settle();
        }
        if let Some(refused) = self.opt_outs.outcome(self.asked) {
            assert!(self.looks.is_empty());
            return Err(refused.unwrap_err());
        }
        Ok(self.found(&ProofLook::Stands))
    }

    /// It owns a server of this name, and time passes.
    fn owns(&mut self, hosts: &[&str]) {
        let hosts: Vec<(Host, IpAddr)> = hosts.iter().map(|name| (name.parse().unwrap(), "9.0.0.1".parse().unwrap())).collect();
        self.opt_outs.look_for(&self.cx, hosts.iter().map(|(host, address)| (host, *address)));
        self.opt_outs.tick(&mut self.cx, &self.members);
        self.settle();
    }

    fn found(&mut self, found: &ProofLook) -> usize {
        let looks = std::mem::take(&mut self.looks);
        for (question, _) in &looks {
            self.opt_outs.looked(&mut self.cx, *question, found.clone());
        }
        self.settle();
        looks.len()
    }

    /// It owns a server of this name, whose proof it finds at no look, for a day; when it looked.
    fn looks_in_vain(&mut self, host: &str) -> Vec<u64> {
        let (start, mut looked) = (self.cx.now.moment, Vec::new());
        for second in 0..86_400 / 20 {
            self.cx.now.moment = start.after(second * 20_000);
            self.owns(&[host]);
            if self.found(&gone()) > 0 {
                looked.push(second * 20_000);
            }
        }
        looked
    }

    /// So many seconds pass, and this is found at each look; when it looked.
    fn looks_alone(&mut self, found: &ProofLook, seconds: u64) -> Vec<u64> {
        let (start, mut looked) = (self.cx.now.moment, Vec::new());
        for second in (0..=seconds).step_by(20) {
            self.cx.now.moment = start.after(second * 1_000);
            self.owns(&[]);
            if self.found(found) > 0 {
                looked.push(second * 1_000);
            }
        }
        looked
    }

    fn stops(&self, host: &str) -> bool {
        self.cx.denies(&host.parse().unwrap(), Some("9.0.0.1".parse().unwrap()))
    }

    fn refused(&self, class: &str) -> u64 {
        self.cx.counters.refused.get(class).copied().unwrap_or(0)
    }
}

fn told(requests: Vec<Request>) -> Vec<SignedStatement> {
    let statements = requests.into_iter().filter_map(|request| match request {
        Request::Tell(gossip) => match *gossip {
            Gossip::OptOuts(statements) => Some(statements),
            other => panic!("{other:?}"),
        },
        _ => None,
    });
    statements.flatten().collect()
}

#[test]
fn an_opt_out_needs_its_proof_and_is_withdrawn_when_that_is_gone_and_not_before() {
    let mut point = Point::new(1, &[]);
    let key = txt("museum.or.ke");
    let refused = point.ask(&key, true, gone()).unwrap_err();
    assert!(refused.contains("_nearcrawl.museum.or.ke") && refused.contains("no TXT record") && !point.stops("museum.or.ke"), "{refused}");
    let unclear = point.ask(&key, true, ProofLook::Unclear("the name server failed".to_owned())).unwrap_err();
    assert!(unclear.contains("the name server failed") && !point.stops("museum.or.ke"), "{unclear}");
    let view = point.ask(&key, true, ProofLook::Stands).unwrap();
    assert!(view.in_force && point.stops("museum.or.ke") && !point.stops("www.museum.or.ke"), "{view:?}");
    let still = point.ask(&key, false, ProofLook::Stands).unwrap_err();
    assert!(still.contains("still there") && point.stops("museum.or.ke"), "{still}");
    assert!(point.ask(&key, false, ProofLook::Unclear("no answer".to_owned())).is_err() && point.stops("museum.or.ke"));
    let other = point.ask(&about("museum.or.ke", OptOutProof::File), false, gone()).unwrap_err();
    assert!(other.contains("no opt-out of museum.or.ke by a file proof"), "{other}");
    let view = point.ask(&key, false, gone()).unwrap();
    assert!(view.in_force && view.state_text.contains("taken back here") && point.stops("museum.or.ke"), "until it is sure: {view:?}");
    assert_eq!(point.looks_alone(&gone(), 20 * 60), [60_000, 660_000]);
    let view = point.opt_outs.view(&point.cx, &key);
    assert_eq!((view.in_force, view.revision, point.stops("museum.or.ke")), (false, 2, false));
    assert!(point.opt_outs.views(&point.cx).is_empty() && point.refused(IN_VAIN) == 0);
}

/// Anybody can say again and again that it is withdrawn, until one machine of several does not have the proof.
#[test]
fn a_withdrawal_at_a_moment_when_the_proof_was_not_seen_is_not_hurried_and_comes_to_nothing_if_it_is_there() {
    let key = txt("a.ke");
    for restarts in [false, true] {
        let mut point = Point::new(1, &[]);
        point.ask(&key, true, ProofLook::Stands).unwrap();
        for _ in 0..5 {
            assert!(point.ask(&key, false, gone()).unwrap().in_force);
        }
        if restarts {
            let pages: Vec<_> = point.disk.values().cloned().collect();
            point = Point::new(1, &[]);
            point.opt_outs.wake(&mut point.cx, &pages);
        }
        assert!(point.stops("a.ke"));
        let looked = point.looks_alone(&gone(), 5 * 60);
        assert!(point.stops("a.ke") && (1..=2).contains(&looked.len()), "{looked:?}");
        point.looks_alone(&ProofLook::Stands, 20 * 60);
        let view = &point.opt_outs.views(&point.cx)[0];
        assert!(point.stops("a.ke") && view.in_force && view.said_by == [who(1)], "{view:?}");
    }
    // People see it in between.
    let mut point = Point::new(1, &[]);
    point.ask(&key, true, ProofLook::Stands).unwrap();
    point.ask(&key, false, gone()).unwrap();
    assert!(point.ask(&key, false, ProofLook::Stands).unwrap_err().contains("still there") && point.stops("a.ke"));
    assert_eq!((point.looks_alone(&gone(), 20 * 60), point.stops("a.ke")), (Vec::new(), true));
}

#[test]
fn it_is_stored_before_it_is_told_and_comes_back_from_the_disk() {
    let mut point = Point::new(1, &[2, 3]);
    point.opt_outs.asked(&mut point.cx, 1, about("192.0.2.0/24", OptOutProof::Order), true);
    let commands = point.cx.take_commands();
    let [Command::Store(StoreCommand::KeepOptOuts { write, bytes, .. })] = &commands[..] else { panic!("{commands:?}") };
    assert!(point.cx.denies(&"a.ke".parse().unwrap(), Some("192.0.2.9".parse().unwrap())), "it holds at once");
    assert!(point.opt_outs.outcome(1).is_none(), "but nobody is told");
    point.opt_outs.compared(&mut point.cx, Ticket(1), Default::default());
    let [Command::Peers(PeerCommand::Answer { response: Response::OptOutHeads(heads), .. })] = &point.cx.take_commands()[..] else {
        panic!("it compares")
    };
    assert!(heads.as_ref().is_none_or(Vec::is_empty), "{heads:?}");
    point.opt_outs.stored(&mut point.cx, &point.members, *write);
    assert!(point.opt_outs.outcome(1).unwrap().is_ok());
    assert_eq!(told(point.settle()).len(), 2, "both others are told");
    let mut again = Point::new(1, &[]);
    again.opt_outs.wake(&mut again.cx, &[bytes.clone(), b"damaged".to_vec()]);
    assert!(again.cx.denies(&"a.ke".parse().unwrap(), Some("192.0.2.9".parse().unwrap())));
    assert_eq!(again.opt_outs.views(&again.cx)[0].said_by, [who(1)]);
}

#[test]
fn only_what_is_signed_counts_and_the_revision_decides_in_whatever_order_it_comes() {
    let key = about("192.0.2.7", OptOutProof::Order);
    let versions = [says(2, &key, 1, true), says(2, &key, 2, false), says(2, &key, 3, true)];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut point = Point::new(1, &[2]);
        order.into_iter().for_each(|at| point.hear(vec![versions[at].clone()]));
        assert_eq!(point.opt_outs.views(&point.cx)[0].revision, 3);
        let mut forged = says(2, &key, 9, false);
        forged.signature[3] ^= 1;
        point.hear(vec![forged]);
        point.hear(vec![SignedStatement { bytes: b"none".to_vec(), signature: Vec::new() }]);
        assert!(point.opt_outs.views(&point.cx)[0].in_force);
        let classes = ["opt-outs that the members they name did not sign", "opt-outs that cannot be read or are out of range"];
        assert_eq!(classes.map(|class| point.refused(class)), [1, 1]);
    }
}

#[test]
fn an_order_is_withdrawn_by_the_operator_that_gave_it_only_and_may_be_ignored() {
    let key = about("museum.or.ke", OptOutProof::Order);
    let mut point = Point::new(1, &[2, 3, 4]);
    point.hear(vec![says(2, &key, 1, true), says(3, &key, 1, false), says(4, &key, 1, false)]);
    assert!(point.stops("museum.or.ke"), "what others say of it does not count");
    let why = point.ask(&key, false, gone()).unwrap_err();
    assert!(why.contains(&who(2).to_string()), "{why}");
    point.hear(vec![says(2, &key, 2, false)]);
    assert!(!point.stops("museum.or.ke"));
    let mut deaf = Point::new(1, &[2]);
    deaf.cx.settings.ignore_orders_of.insert(who(2));
    deaf.hear(vec![says(2, &key, 1, true)]);
    assert!(!deaf.stops("museum.or.ke") && deaf.opt_outs.views(&deaf.cx)[0].state_text.contains("ignored"));
}

#[test]
fn an_owner_looks_once_before_it_believes_and_until_then_asks_nothing() {
    let mut owner = Point::new(1, &[]);
    owner.hear(vec![says(2, &txt("a.ke"), 1, true), says(2, &txt("b.ke"), 1, true), says(2, &txt("elsewhere.ke"), 1, true)]);
    assert!(owner.stops("a.ke") && owner.stops("elsewhere.ke"));
    owner.owns(&["a.ke"]);
    assert_eq!(owner.looks.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>(), [txt("a.ke")], "of its own sites only");
    assert_eq!(owner.found(&ProofLook::Unclear("no answer".to_owned())), 1);
    assert!(owner.stops("a.ke"), "it holds until it is clear");
    owner.cx.now.moment = Moment(59_000);
    owner.owns(&["a.ke"]);
    assert!(owner.looks.is_empty(), "not at once");
    owner.cx.now.moment = Moment(60_000);
    owner.owns(&["a.ke"]);
    assert_eq!(owner.found(&ProofLook::Stands), 1);
    owner.cx.now.moment = Moment(9_000_000);
    owner.owns(&["a.ke"]);
    assert_eq!((owner.looks.len(), owner.stops("a.ke")), (0, true), "once");
    // Who says nothing of it itself counts.
    let mut other = Point::new(3, &[]);
    other.hear(vec![says(2, &txt("a.ke"), 1, true), says(1, &txt("a.ke"), 1, false)]);
    assert!(!other.opt_outs.views(&other.cx)[0].in_force, "one says so, one does not");
    assert!(other.stops("a.ke"), "but it would look itself before it asks");
    assert_eq!(other.looks_in_vain("a.ke"), [0, 60_000, 660_000]);
    assert!(!other.stops("a.ke"));
}

#[test]
fn a_look_that_comes_too_early_loses_no_true_no() {
    let mut owner = Point::new(1, &[]);
    owner.hear(vec![says(2, &txt("a.ke"), 1, true)]);
    for moment in [0, 60_000] {
        owner.cx.now.moment = Moment(moment);
        owner.owns(&["a.ke"]);
        assert_eq!(owner.found(&gone()), 1);
        owner.owns(&["a.ke"]);
        assert!(owner.looks.is_empty() && owner.stops("a.ke") && owner.opt_outs.views(&owner.cx)[0].in_force, "it has not come there yet");
    }
    owner.cx.now.moment = Moment(660_000);
    owner.owns(&["a.ke"]);
    assert_eq!(owner.found(&ProofLook::Stands), 1);
    assert!(owner.stops("a.ke") && owner.refused(IN_VAIN) == 0);
    // After a restart one look is enough to go on.
    let mut again = Point::new(1, &[]);
    again.hear(vec![says(2, &txt("b.ke"), 1, true), says(1, &txt("b.ke"), 1, false)]);
    let pages: Vec<_> = again.disk.values().cloned().collect();
    let mut again = Point::new(1, &[]);
    again.opt_outs.wake(&mut again.cx, &pages);
    assert!(again.stops("b.ke"));
    again.owns(&["b.ke"]);
    assert_eq!((again.found(&gone()), again.stops("b.ke")), (1, false));
}

#[test]
fn what_cannot_be_found_out_for_hours_is_not_proven_unless_it_was_seen_here() {
    let unclear = || ProofLook::Unclear("no answer".to_owned());
    for seen in [false, true] {
        let mut owner = Point::new(1, &[]);
        if seen {
            owner.ask(&txt("a.ke"), true, ProofLook::Stands).unwrap();
        }
        owner.hear(vec![says(2, &txt("a.ke"), 2, !seen)]);
        let (mut looks, mut ended) = (0, None);
        for minute in 0..24 * 60 {
            owner.cx.now.moment = Moment(minute * 60_000);
            owner.owns(&["a.ke"]);
            looks += owner.found(&unclear());
            ended = ended.or((!owner.stops("a.ke")).then_some(minute));
        }
        assert!(if seen { ended.is_none() } else { ended.is_some_and(|minute| (360..=440).contains(&minute)) }, "{seen}: {ended:?}");
        assert!(if seen { (20..40).contains(&looks) } else { (6..20).contains(&looks) }, "{seen}: {looks}");
        assert_eq!(owner.refused(IN_VAIN), u64::from(!seen));
    }
}

#[test]
fn while_the_operator_lets_nothing_be_asked_proofs_are_looked_for_only_if_people_ask() {
    let mut owner = Point::new(1, &[]);
    owner.cx.rest = Some(Rest::Paused { until: None });
    owner.hear(vec![says(2, &txt("a.ke"), 1, true)]);
    owner.owns(&["a.ke"]);
    assert!(owner.looks.is_empty() && owner.stops("a.ke"));
    assert!(owner.ask(&txt("b.ke"), true, ProofLook::Stands).unwrap().in_force);
    owner.cx.rest = None;
    owner.owns(&["a.ke"]);
    assert_eq!(owner.looks.len(), 1);
}

#[test]
fn who_is_no_member_gives_no_orders_and_says_little_at_nobody_s_cost() {
    let order = says(9, &about("a.ke", OptOutProof::Order), 1, true);
    let mut point = Point::new(1, &[]);
    point.hear(vec![order.clone()]);
    assert!(!point.stops("a.ke"));
    assert_eq!(point.refused("opt-outs of those who are no members"), 1);
    point.members.meet(Moment(0), who(9));
    point.hear(vec![order]);
    assert!(point.stops("a.ke"), "it is taken as soon as it is a member");
    let host = |number: u32| format!("h{number}.ke");
    let many: Vec<_> = (0..MAX_OF_STRANGERS as u32 + 5).map(|number| says(100 + number, &txt(&host(number)), 1, true)).collect();
    point.hear(many.clone());
    let class = "opt-outs beyond the limit for those who are no members";
    assert_eq!((point.opt_outs.room().0, point.refused(class)), (MAX_OF_STRANGERS + 1, 5));
    let last = many.last().unwrap();
    point.members.meet(Moment(0), last.read().unwrap().by);
    point.hear(vec![last.clone()]);
    assert!(point.stops(&host(MAX_OF_STRANGERS as u32 + 4)), "a member's is taken");
    // A forged one that there is no room for keeps nobody's own out.
    let mut full = Point::new(1, &[2]);
    full.hear((0..MAX_ORDERS as u32).map(|number| says(2, &about(&host(number), OptOutProof::Order), 1, true)).collect());
    let mut forged = says(2, &about("z.ke", OptOutProof::Order), 1, true);
    let true_head = forged.head(&forged.read().unwrap());
    forged.signature[3] ^= 1;
    full.hear(vec![forged]);
    full.opt_outs.heads_came(&mut full.cx, who(2), Some(&[true_head]));
    assert!(full.settle().iter().any(|request| matches!(request, Request::SendOptOuts(ids) if ids[..] == [true_head.id])));
}

#[test]
fn a_withdrawal_makes_those_look_who_saw_the_proof_and_a_false_one_changes_nothing() {
    let key = txt("a.ke");
    let mut maker = Point::new(1, &[2]);
    maker.ask(&key, true, ProofLook::Stands).unwrap();
    for revision in 1..6 {
        maker.hear(vec![says(2, &key, revision, revision % 2 == 0)]);
        maker.owns(&[]);
        maker.found(&ProofLook::Stands);
        assert!(maker.stops("a.ke"), "it looks itself");
    }
    assert!(maker.looks.is_empty());
    maker.hear(vec![says(2, &key, 7, false)]);
    maker.owns(&[]);
    assert!(maker.looks.is_empty(), "not again and again");
    maker.cx.now.moment = Moment(3_600_000);
    maker.owns(&[]);
    assert_eq!(maker.found(&gone()), 1);
    assert!(maker.stops("a.ke") && maker.opt_outs.views(&maker.cx)[0].state_text.contains("not at the last look"), "once is not enough");
    assert_eq!(maker.looks_alone(&gone(), 20 * 60), [60_000, 660_000]);
    assert!(!maker.stops("a.ke"), "now it is gone");
    // It comes back, at another member.
    maker.hear(vec![says(2, &key, 8, true)]);
    assert!(maker.stops("a.ke"), "at once, until it has looked");
    maker.cx.now.moment = Moment(9_600_000);
    maker.owns(&[]);
    maker.found(&ProofLook::Stands);
    assert!(maker.opt_outs.views(&maker.cx)[0].in_force);
}

/// One of two machines behind an address does not have the file, or a name server lags behind.
#[test]
fn a_proof_that_was_seen_is_not_gone_by_one_answer_nor_after_a_restart() {
    let key = txt("a.ke");
    let mut owner = Point::new(1, &[2]);
    owner.ask(&key, true, ProofLook::Stands).unwrap();
    owner.hear(vec![says(2, &key, 1, false)]);
    for answers in [[gone(), ProofLook::Stands], [gone(), gone()]] {
        for found in answers {
            owner.cx.now.moment = owner.cx.now.moment.after(60_000);
            owner.owns(&["a.ke"]);
            owner.found(&found);
            assert!(owner.stops("a.ke"));
        }
        owner.cx.now.moment = owner.cx.now.moment.after(3_600_000);
        owner.hear(vec![says(2, &key, 2, false)]);
    }
    let pages: Vec<_> = owner.disk.values().cloned().collect();
    let mut again = Point::new(1, &[2]);
    again.opt_outs.wake(&mut again.cx, &pages);
    again.owns(&["a.ke"]);
    assert_eq!((again.found(&gone()), again.stops("a.ke")), (1, true), "after a restart, too");
    assert_eq!((again.looks_alone(&gone(), 20 * 60).len(), again.stops("a.ke")), (2, false));
}

#[test]
fn who_repeats_what_is_not_there_holds_nothing_up_and_who_publishes_it_later_is_obeyed() {
    let key = OptOutKey { subject: OptOutSubject::read("a.ke", true).unwrap(), proof: OptOutProof::Txt };
    let mut owner = Point::new(1, &[2]);
    owner.hear(vec![says(2, &key, 1, true)]);
    assert!(owner.stops("www.a.ke"), "at once, as long as nobody has looked");
    assert_eq!(owner.looks_in_vain("www.a.ke").len(), 3);
    assert!(!owner.stops("www.a.ke"));
    // A day later it is heard once more, and then no more that day.
    let mut held = 0;
    for revision in 2..22 {
        owner.hear(vec![says(2, &key, revision, true)]);
        for _ in 0..60 {
            held += u64::from(owner.stops("www.a.ke"));
            owner.cx.now.moment = owner.cx.now.moment.after(60_000);
            owner.owns(&["www.a.ke"]);
            owner.found(&gone());
        }
    }
    assert!((1..=20).contains(&held), "{held} minutes of 20 hours");
    assert!(owner.refused(IN_VAIN) > 5, "each series of looks is counted: {}", owner.refused(IN_VAIN));
    // Others are heard once, but not as many as one likes.
    let heard: Vec<bool> = (3..8)
        .map(|by| {
            owner.hear(vec![says(by, &key, 1, true)]);
            let is_held = owner.stops("www.a.ke");
            owner.looks_alone(&gone(), 20 * 60);
            assert!(!owner.stops("www.a.ke"));
            is_held
        })
        .collect();
    assert_eq!(heard, [true, true, false, false, false]);
    owner.looks_alone(&ProofLook::Unclear("no answer".to_owned()), 3 * 3_600);
    assert!(!owner.stops("www.a.ke"));
    // It is published.
    let looked = owner.looks_alone(&ProofLook::Stands, 2 * 3_600);
    assert_eq!((looked.len(), owner.stops("www.a.ke")), (1, true), "{looked:?}");
    assert!(owner.opt_outs.views(&owner.cx)[0].in_force);
}

#[test]
fn a_member_that_makes_opt_outs_up_stops_nobody_for_long() {
    let mut owner = Point::new(1, &[]);
    let hosts: Vec<String> = (0..50).map(|number| format!("h{number}.ke")).collect();
    let file = |host: &str| about(host, OptOutProof::File);
    owner.hear(hosts.iter().map(|host| says(2, &file(host), 1, true)).collect());
    owner.hear(vec![says(2, &txt("record.ke"), 1, true)]);
    let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
    assert!(hosts.iter().all(|host| owner.stops(host)));
    let mut looked = 0;
    for minute in 0..20 {
        owner.cx.now.moment = Moment(minute * 60_000);
        for _ in 0..20 {
            owner.owns(&names);
            looked += owner.found(&gone());
        }
    }
    assert!(looked < 3 * hosts.len(), "{looked} looks, and it is not believed any more");
    assert!(!hosts.iter().any(|host| owner.stops(host)));
    assert!(owner.refused(IN_VAIN) >= MAX_REFUTED as u64);
    assert!(owner.stops("record.ke"), "a look at a record costs the server nothing");
    // An honest one is.
    owner.hear(vec![says(3, &file("h1.ke"), 1, true), says(3, &file("h40.ke"), 1, true)]);
    assert!(owner.stops("h1.ke") && owner.stops("h40.ke"));
    owner.cx.now.moment = Moment(9_000_000);
    owner.owns(&names);
    owner.found(&ProofLook::Stands);
    assert!(owner.stops("h1.ke") && owner.stops("h40.ke"));
}

#[test]
fn what_one_member_says_has_limits_and_one_with_much_makes_room_for_one_with_little() {
    let mut point = Point::new(1, &(2..=20).collect::<Vec<u32>>());
    let range = |number: usize| about(&format!("192.0.{}.{}", number / 256, number % 256), OptOutProof::Order);
    point.hear((0..MAX_ORDERS + 3).map(|number| says(2, &range(number), 1, true)).collect());
    assert_eq!((point.opt_outs.room().0, point.refused("opt-outs by order beyond the limit for a member")), (MAX_ORDERS, 3));
    let many =
        |by: u32, most: usize| (0..most).map(move |number| says(by, &txt(&format!("h{number}.m{by}.ke")), 1, true)).collect::<Vec<_>>();
    point.hear(many(3, MAX_OF_MEMBER + 2));
    assert_eq!((point.opt_outs.room().1, point.refused("opt-outs beyond the limit for a member")), (MAX_OF_MEMBER, 2));
    for by in 4..13 {
        point.hear(many(by, MAX_OF_MEMBER));
    }
    assert_eq!(point.opt_outs.room().0, MAX_STATEMENTS);
    point.hear(vec![says(20, &txt("museum.or.ke"), 1, true)]);
    assert!(point.stops("museum.or.ke"), "room is made");
    point.ask(&txt("b.ke"), true, ProofLook::Stands).unwrap();
    assert_eq!((point.opt_outs.room().0, point.refused("opt-outs dropped for those of members with fewer") >= 2), (MAX_STATEMENTS, true));
}

/// What is withdrawn or was looked for in vain makes room first, then what nobody looked for here; what was seen here last.
#[test]
fn many_members_with_a_few_made_up_ones_each_cut_nobody_down_whose_proofs_were_seen() {
    let mut point = Point::new(1, &(2..=210).collect::<Vec<u32>>());
    let host = |by: u32, number: usize| txt(&format!("h{number}.m{by}.ke"));
    let has = |point: &Point, by: u32, key: &OptOutKey| point.opt_outs.view(&point.cx, key).said_by.contains(&who(by));
    let kept = |point: &Point, by: u32, most: usize| (0..most).filter(|number| has(point, by, &host(by, *number))).count();
    // The honest one: this access point saw the proofs of its 300, and of one more it says that it is gone.
    point.hear((0..300).map(|number| says(2, &host(2, number), 1, true)).collect());
    for number in 0..300 {
        point.ask(&host(2, number), true, ProofLook::Stands).unwrap();
    }
    let withdrawn = txt("withdrawn.ke");
    point.hear(vec![says(2, &withdrawn, 2, false)]);
    point.hear((3..203).flat_map(|by| (0..49).map(move |number| says(by, &host(by, number), 1, true))).collect());
    assert_eq!((point.opt_outs.room().0, kept(&point, 2, 300)), (MAX_STATEMENTS, 300));
    assert!(point.opt_outs.view(&point.cx, &withdrawn).denied_by.is_empty(), "it went first");
    // What is looked for in vain goes next, whoever has most.
    let made_up = (0..49).find(|number| has(&point, 3, &host(3, *number))).unwrap();
    let name = format!("h{made_up}.m3.ke");
    for moment in [0, 60_000, 660_000] {
        point.cx.now.moment = Moment(moment);
        point.owns(&[&name]);
        assert_eq!(point.found(&gone()), 1);
    }
    assert!(has(&point, 3, &host(3, made_up)) && !point.stops(&name));
    point.hear(vec![says(205, &txt("b.ke"), 1, true)]);
    assert!(has(&point, 205, &txt("b.ke")) && !has(&point, 3, &host(3, made_up)));
    // Then what was not looked for, of whoever has most of that.
    point.hear(vec![says(206, &txt("c.ke"), 1, true)]);
    assert_eq!((has(&point, 206, &txt("c.ke")), kept(&point, 2, 300), point.opt_outs.room().0), (true, 300, MAX_STATEMENTS));
}

#[test]
fn members_compare_digests_and_ask_for_what_they_lack() {
    let (mut one, mut other) = (Point::new(1, &[2]), Point::new(2, &[1]));
    one.hear(vec![says(3, &txt("a.ke"), 2, true)]);
    other.hear(vec![says(3, &txt("a.ke"), 1, true), says(4, &txt("b.ke"), 1, true)]);
    one.opt_outs.tick(&mut one.cx, &one.members);
    let requests = one.settle();
    let [Request::CompareOptOuts(digest)] = requests[..] else { panic!("{requests:?}") };
    let answered = |point: &mut Point| match &point.cx.take_commands()[..] {
        [Command::Peers(PeerCommand::Answer { response, .. })] => response.clone(),
        other => panic!("{other:?}"),
    };
    other.opt_outs.compared(&mut other.cx, Ticket(1), digest);
    let Response::OptOutHeads(Some(heads)) = answered(&mut other) else { panic!("they differ") };
    one.opt_outs.heads_came(&mut one.cx, who(2), Some(&heads));
    let requests = one.settle();
    let Some(Request::SendOptOuts(ids)) = requests.first() else { panic!("{requests:?}") };
    other.opt_outs.wanted(&mut other.cx, Ticket(2), ids);
    let Response::OptOuts(came) = answered(&mut other) else { panic!("it has it") };
    one.hear(came);
    other.hear(told(requests));
    other.opt_outs.compared(&mut other.cx, Ticket(3), digest);
    let Response::OptOutHeads(Some(heads)) = answered(&mut other) else { panic!("one has more now") };
    assert_eq!(heads.len(), 2);
    one.opt_outs.compare_with(&mut one.cx, who(2));
    let [Request::CompareOptOuts(digest)] = one.settle()[..] else { panic!("it asks") };
    other.opt_outs.compared(&mut other.cx, Ticket(4), digest);
    assert_eq!(answered(&mut other), Response::OptOutHeads(None), "equal ones cost nothing more");
    // Who has nothing asks nobody.
    let mut empty = Point::new(5, &[1]);
    empty.opt_outs.tick(&mut empty.cx, &empty.members);
    assert!(empty.settle().is_empty());
}

#[test]
fn who_lost_its_state_speaks_on_where_it_had_stopped() {
    let key = about("a.ke", OptOutProof::Order);
    let mut point = Point::new(1, &[2]);
    point.ask(&key, true, gone()).unwrap();
    point.hear(vec![says(1, &key, 6, false)]);
    let view = &point.opt_outs.views(&point.cx)[0];
    assert_eq!((view.in_force, view.revision), (true, 7), "what was said since holds, above what others have");
}

fn held_by(owner: u32, released: bool) -> Claim {
    let subnet = "9.0.0.0/24".parse().unwrap();
    let (reason, answers) = (ClaimReason::Awarded, Vec::new());
    Claim { subnet, epoch: 1, owner: who(owner), rtt_us: None, runner_up: None, probes: 0, reason, released, answers }
}

/// Three members as each sees the others.
fn three() -> [Point; 3] {
    [Point::new(1, &[2, 3]), Point::new(2, &[1, 3]), Point::new(3, &[1, 2])]
}

#[test]
fn a_stranger_has_only_the_member_that_looks_after_a_server_ask_it_for_a_file() {
    let claim = held_by(2, false);
    // With an owner, and of an address that nobody has: of whatever name, one member asks.
    for (claim, address) in [(Some(&claim), "9.0.0.1"), (None, "9.0.1.1"), (None, "2001:db8::1")] {
        let mut sources = Vec::new();
        for host in 0..20 {
            for (number, mut point) in three().into_iter().enumerate() {
                let addresses = |who: &AccessPoint| vec![format!("/ip4/192.0.2.1/tcp/4817/p2p/{who}")];
                for other in 1..=3 {
                    point.members.know(&mut point.cx, who(other), addresses(&who(other)));
                }
                point.cx.take_commands();
                match point.reader_asks(&about(&format!("h{host}.ke"), OptOutProof::File), address, claim) {
                    Ok(looks) => {
                        assert_eq!((looks, &point.asked_at[..]), (1, &[address.parse().unwrap()][..]), "there, and not where else it is");
                        sources.push(number);
                    }
                    Err(why) => assert!(why.contains("by ") && why.contains("--member /ip4/192.0.2.1/tcp/4817/p2p/12D3"), "{why}"),
                }
            }
        }
        sources.dedup();
        assert_eq!(sources.len(), 1, "{address}: {sources:?}");
        assert!(claim.is_none() || sources == [1]);
    }
    let [mut point, ..] = three();
    let why = point.reader_asks(&about("a.ke", OptOutProof::File), "9.0.0.1", Some(&held_by(1, true))).unwrap_err();
    assert!(why.contains("nobody looks after 9.0.0.1 for the moment"), "{why}");
    assert_eq!(point.reader_asks(&txt("a.ke"), "9.0.0.1", Some(&claim)), Ok(1), "a record is looked up by anybody");
}

#[test]
fn a_stranger_has_nothing_asked_that_the_configuration_denies_nor_by_one_that_is_no_member() {
    let mine = held_by(1, false);
    let file = |host: &str| about(host, OptOutProof::File);
    let mut point = Point::new(1, &[]);
    point.cx.settings.scope.denied = ["bad.ke".parse().unwrap(), "de".parse().unwrap()].into();
    point.cx.settings.scope.denied_ranges = vec!["9.0.0.128/25".parse().unwrap()];
    for (key, address) in
        [(file("www.bad.ke"), "9.0.0.1"), (txt("bad.ke"), "9.0.0.1"), (file("a.de"), "9.0.0.1"), (file("a.ke"), "9.0.0.200")]
    {
        let why = point.reader_asks(&key, address, Some(&mine)).unwrap_err();
        assert!(why.contains("deny lists"), "{key:?}: {why}");
    }
    let why = point.reader_asks(&about("a.ke", OptOutProof::Order), "9.0.0.1", Some(&mine)).unwrap_err();
    assert!(why.contains("by the operator of a member"), "{why}");
    assert_eq!(point.opt_outs.refuses_reader(&point.cx, &txt("a.ke"), false).unwrap(), "no opt-out of a.ke by a txt proof is known here");
    point.cx.excluded.insert(point.cx.me, NotAdmitted::NoCertificate);
    for key in [file("a.ke"), txt("a.ke")] {
        assert!(point.reader_asks(&key, "9.0.0.1", Some(&mine)).unwrap_err().contains("does not have this access point"));
    }
    point.cx.excluded.clear();
    point.cx.rest = Some(Rest::Paused { until: None });
    assert!(point.reader_asks(&file("a.ke"), "9.0.0.1", Some(&mine)).unwrap_err().contains("may ask nothing now"));
    point.cx.rest = None;
    assert_eq!(point.reader_asks(&file("a.ke"), "9.0.0.1", Some(&mine)), Ok(1));
}

#[test]
fn a_record_is_looked_up_for_who_is_no_member_while_the_operator_lets_servers_be_asked_nothing() {
    let mut point = Point::new(1, &[]);
    point.cx.rest = Some(Rest::Paused { until: None });
    assert_eq!(point.reader_asks(&txt("a.ke"), "9.0.0.1", None), Ok(1));
    assert!(point.stops("a.ke") && point.opt_outs.views(&point.cx)[0].in_force);
}

#[test]
fn a_program_that_is_no_member_is_told_all_of_them_part_by_part() {
    let mut point = Point::new(1, &[]);
    let names: Vec<String> = (10..30).map(|number| format!("h{number}.ke")).collect();
    point.hear(names.iter().flat_map(|name| [2, 3].map(|by| says(by, &txt(name), 1, true))).collect());
    // Withdrawn, it is no opt-out any more, and holds nobody up.
    point.hear(vec![says(2, &txt("h15.ke"), 2, false), says(3, &txt("h15.ke"), 2, false)]);
    let mut all = point.opt_outs.views(&point.cx);
    all.sort_by(|one, other| one.subject.cmp(&other.subject));
    assert_eq!(all.len(), 19);
    for most in [1, 7, 30, 1_000] {
        let (mut told, mut after, mut parts) = (Vec::new(), None, 0);
        loop {
            let (views, next) = point.opt_outs.views_after(&point.cx, after.as_ref(), most);
            assert!(views.len() <= most.div_ceil(3), "{} of {most}", views.len());
            (told, parts) = ([told, views].concat(), parts + 1);
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!((told, parts == 1), (all.clone(), most == 1_000), "{most}, {parts} parts");
    }
    assert_eq!(point.opt_outs.views_after(&point.cx, Some(&txt("h29.ke")), 7), (Vec::new(), None));
}
