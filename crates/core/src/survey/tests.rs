//! Tests that members believe what creators signed, and nothing else.

use super::Surveys;
use crate::{
    context::Context,
    event::{Command, PeerCommand, StoreCommand},
    membership::{Member, Membership, Roster, Swim},
};
use ed25519_dalek::SigningKey;
use nearcrawl_model::{
    access_point::AccessPoint,
    ids::Ticket,
    message::{Gossip, Request, Response},
    survey::{MAX_LIVING, MAX_OF_CREATOR, MAX_SURVEYS, SignedSurvey, Survey, SurveyEntry, SurveyPlan, SurveyState},
    time::{Moment, WallTime},
    url::PageUrl,
};

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn who(number: u8) -> AccessPoint {
    AccessPoint(key(number).verifying_key().to_bytes())
}

fn plan(name: &str) -> SurveyPlan {
    let entry = |url: &str| SurveyEntry { url: PageUrl::parse(url).unwrap(), labels: Vec::new() };
    SurveyPlan { name: name.to_owned(), entries: vec![entry("https://a.ke/"), entry("https://b.ke/")], ..SurveyPlan::default() }
}

fn survey(creator: u8, name: &str, revision: u64, state: SurveyState) -> Survey {
    Survey { creator: who(creator), revision, state, created_at: WallTime(5), changed_at: WallTime(5), plan: plan(name) }
}

fn signed(creator: u8, name: &str, revision: u64, state: SurveyState) -> SignedSurvey {
    SignedSurvey::sign(&survey(creator, name, revision, state), &key(creator)).unwrap()
}

/// A member with its surveys, among others.
struct Point {
    cx: Context,
    members: Membership,
    surveys: Surveys,
}

impl Point {
    fn new(number: u8, others: &[u8]) -> Point {
        let mut cx = Context::of_test(number);
        cx.key = key(number);
        cx.me = who(number);
        let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
        let mut members = Membership::new(swim, Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &Default::default()));
        others.iter().for_each(|other| members.meet(Moment(0), who(*other)));
        Point { cx, members, surveys: Surveys::default() }
    }

    /// Hears a survey, and the disk stores it.
    fn hear(&mut self, signed: SignedSurvey) -> Vec<Command> {
        self.surveys.hear(&mut self.cx, signed);
        self.store()
    }

    fn store(&mut self) -> Vec<Command> {
        let mut others = Vec::new();
        for command in self.cx.take_commands() {
            match command {
                Command::Store(StoreCommand::StoreSurvey { write, .. }) => {
                    assert!(self.surveys.stored(&mut self.cx, &self.members, write));
                }
                other => others.push(other),
            }
        }
        others.extend(self.cx.take_commands());
        others
    }

    fn refused(&self, class: &str) -> u64 {
        self.cx.counters.refused.get(class).copied().unwrap_or(0)
    }

    fn state(&self, creator: u8, name: &str) -> Option<(u64, SurveyState)> {
        let kept = self.surveys.register().get(&survey(creator, name, 1, SurveyState::Running).id())?;
        Some((kept.survey.revision, kept.survey.state))
    }
}

fn asked(commands: Vec<Command>) -> Vec<Request> {
    let request = |command| match command {
        Command::Peers(PeerCommand::Ask { request, .. }) => Some(request),
        _ => None,
    };
    commands.into_iter().filter_map(request).collect()
}

fn answered(commands: Vec<Command>) -> Option<Response> {
    commands.into_iter().find_map(|command| match command {
        Command::Peers(PeerCommand::Answer { response, .. }) => Some(response),
        _ => None,
    })
}

#[test]
fn only_the_creator_changes_a_survey_and_the_revision_decides_in_whatever_order_it_comes() {
    let versions = [(1, SurveyState::Running), (3, SurveyState::Running), (2, SurveyState::Paused)];
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut point = Point::new(1, &[]);
        for at in order {
            point.hear(signed(2, "unis", versions[at].0, versions[at].1));
        }
        assert_eq!(point.state(2, "unis"), Some((3, SurveyState::Running)));
        // Another signs it, or changes what was signed.
        let forged = SignedSurvey::sign(&survey(2, "unis", 9, SurveyState::Ended), &key(3)).unwrap();
        point.hear(forged);
        let SignedSurvey { bytes, signature } = signed(2, "unis", 4, SurveyState::Running);
        point.hear(SignedSurvey { bytes: bytes.iter().map(|byte| byte ^ 1).collect(), signature });
        assert_eq!(point.state(2, "unis"), Some((3, SurveyState::Running)));
        let classes = ["surveys that their creators did not sign", "surveys that cannot be read or are too large"];
        assert_eq!(classes.map(|class| point.refused(class)), [1, 1]);
    }
}

#[test]
fn of_two_contents_at_one_revision_all_come_to_the_same() {
    let (one, other) = (signed(2, "unis", 2, SurveyState::Running), signed(2, "unis", 2, SurveyState::Paused));
    let states = [[&one, &other], [&other, &one]].map(|order| {
        let mut point = Point::new(1, &[]);
        order.into_iter().for_each(|signed| drop(point.hear(signed.clone())));
        assert_eq!(point.refused("surveys with two contents at one revision"), 1);
        (point.state(2, "unis"), point.surveys.register().digest())
    });
    assert_eq!(states[0], states[1]);
}

#[test]
fn a_creator_has_ten_that_live_and_ended_ones_make_room() {
    let mut point = Point::new(1, &[]);
    (0..MAX_LIVING + 2).for_each(|number| drop(point.hear(signed(2, &format!("s{number}"), 1, SurveyState::Running))));
    assert_eq!((point.surveys.room().0, point.refused("living surveys beyond the limit for a creator")), (MAX_LIVING, 2));
    assert!(!point.surveys.register().lacks(&signed(2, "s11", 1, SurveyState::Running).head(&survey(2, "s11", 1, SurveyState::Running))));
    point.hear(signed(2, "s0", 2, SurveyState::Ended));
    point.hear(signed(2, "more", 1, SurveyState::Running));
    point.hear(signed(3, "others", 1, SurveyState::Running));
    assert_eq!(point.surveys.room().0, MAX_LIVING + 2);
    (0..MAX_OF_CREATOR).for_each(|number| drop(point.hear(signed(4, &format!("old{number}"), 1, SurveyState::Ended))));
    point.hear(signed(4, "new", 1, SurveyState::Running));
    assert_eq!((point.state(4, "new"), point.refused("ended surveys that made room for others")), (Some((1, SurveyState::Running)), 1));
    assert_eq!(point.surveys.register().count_of(&who(4)), MAX_OF_CREATOR);
}

/// A survey that ended at a moment.
fn ended(creator: u8, name: &str, at: u64) -> SignedSurvey {
    let survey = Survey { changed_at: WallTime(at), ..survey(creator, name, 2, SurveyState::Ended) };
    SignedSurvey::sign(&survey, &key(creator)).unwrap()
}

#[test]
fn each_of_thirty_members_may_have_ten_however_many_have_ended() {
    let old: Vec<SignedSurvey> =
        (0..MAX_SURVEYS).map(|n| ended(100 + (n / MAX_OF_CREATOR) as u8, &format!("old{n}"), 10 + n as u64)).collect();
    let new: Vec<SignedSurvey> =
        (0..300).map(|n| signed(2 + (n / MAX_LIVING) as u8, &format!("new{n}"), 1, SurveyState::Running)).collect();
    let points = [false, true].map(|backwards| {
        // One of the creators of those that have ended is this member, in the second case.
        let mut point = Point::new(if backwards { 100 } else { 1 }, &[]);
        old.iter().for_each(|signed| drop(point.hear(signed.clone())));
        assert_eq!(point.surveys.room(), (MAX_SURVEYS, MAX_SURVEYS));
        let order: Vec<_> = if backwards { new.iter().rev().collect() } else { new.iter().collect() };
        order.into_iter().for_each(|signed| drop(point.hear(signed.clone())));
        assert_eq!(point.cx.wishes.living().count(), 300, "each may start ten");
        assert_eq!((point.surveys.room().0, point.refused("ended surveys that made room for others")), (MAX_SURVEYS, 300));
        point
    });
    let left = |point: &Point| {
        let names = point.surveys.register().all().map(|kept| kept.survey.plan.name.clone()).filter(|name| name.starts_with("old"));
        let mut numbers: Vec<usize> = names.map(|name| name[3..].parse().unwrap()).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(left(&points[0]), (300..400).collect::<Vec<_>>(), "those that ended first are dropped");
    assert_eq!(left(&points[1]), (0..40).chain(340..400).collect::<Vec<_>>(), "and of one's own none");
    // Neither what was dropped is asked for, nor a version of it that had not ended yet.
    let [mut point, _] = points;
    let running = signed(100, "old0", 1, SurveyState::Running);
    for signed in [&running, &old[0]] {
        assert!(!point.surveys.register().lacks(&signed.head(&signed.read().unwrap())));
        point.hear(signed.clone());
        assert_eq!(point.state(100, "old0"), None);
    }
    // One that lives is never dropped: there is no room for more than so many.
    (0..100).for_each(|n| drop(point.hear(signed(40 + (n / MAX_LIVING) as u8, &format!("more{n}"), 1, SurveyState::Running))));
    point.hear(signed(60, "beyond", 1, SurveyState::Running));
    assert_eq!((point.cx.wishes.living().count(), point.state(60, "beyond")), (MAX_SURVEYS, None));
    assert_eq!(point.refused("surveys beyond the limit for the swarm"), 1);
}

#[test]
fn a_member_may_start_surveys_for_ever_and_use_a_name_again_after_many() {
    let (mut point, mut other) = (Point::new(1, &[]), Point::new(2, &[]));
    point.cx.now.wall = WallTime(1_800_000_000_000);
    let make = |point: &mut Point, other: &mut Point, name: &str| {
        let made = point.surveys.drafted(&point.cx, plan(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
        let before = point.state(1, name);
        for point in [&mut *point, other] {
            point.hear(made.clone());
        }
        assert_eq!((before, point.state(1, name)), (None, other.state(1, name)));
        point.cx.now.wall.0 += 60_000;
        let ended = point.surveys.changed(&point.cx, name, SurveyState::Ended).unwrap();
        for point in [&mut *point, other] {
            point.hear(ended.clone());
        }
        point.cx.now.wall.0 += 60_000;
    };
    (0..MAX_OF_CREATOR + 5).for_each(|number| make(&mut point, &mut other, &format!("s{number}")));
    assert_eq!((point.surveys.room().0, point.state(1, "s4"), point.state(1, "s5").is_some()), (MAX_OF_CREATOR, None, true));
    make(&mut point, &mut other, "s0");
    assert_eq!(other.state(1, "s0").map(|(_, state)| state), Some(SurveyState::Ended));
    assert_eq!(point.surveys.register().digest(), other.surveys.register().digest());
}

#[test]
fn it_is_stored_before_it_is_told_and_comes_back_from_the_disk() {
    let mut point = Point::new(1, &[2, 3]);
    let made = point.surveys.drafted(&point.cx, plan("unis")).unwrap();
    point.surveys.make(&mut point.cx, made);
    let commands = point.cx.take_commands();
    let [Command::Store(StoreCommand::StoreSurvey { write, bytes, .. })] = &commands[..] else { panic!("{commands:?}") };
    assert!(point.cx.wishes.living().next().is_none(), "it holds when it is stored");
    point.surveys.stored(&mut point.cx, &point.members, *write);
    assert_eq!(point.cx.wishes.living().count(), 1);
    let told = asked(point.cx.take_commands());
    assert!(matches!(&told[..], [Request::Tell(one), Request::Tell(_)] if matches!(**one, Gossip::Surveys(_))), "{told:?}");
    assert!(point.surveys.drafted(&point.cx, plan("unis")).unwrap_err().contains("choose another name"));
    assert!(point.surveys.changed(&point.cx, "unis", SurveyState::Running).unwrap_err().contains("running already"));
    let mut again = Point::new(1, &[]);
    again.surveys.wake(&mut again.cx, &[bytes.clone(), b"damaged".to_vec()], &[b"damaged".to_vec()]);
    assert_eq!((again.state(1, "unis"), again.cx.wishes.living().count()), (Some((1, SurveyState::Running)), 1));
    let ended = again.surveys.changed(&again.cx, "unis", SurveyState::Ended).unwrap();
    again.hear(ended);
    assert_eq!(again.state(1, "unis"), Some((2, SurveyState::Ended)));
    assert!(again.surveys.changed(&again.cx, "unis", SurveyState::Running).unwrap_err().contains("has ended"));
    assert_eq!(again.surveys.changed(&again.cx, "mine", SurveyState::Paused).unwrap_err(), "there is no survey mine");
    again.hear(signed(3, "theirs", 1, SurveyState::Running));
    let refused = again.surveys.changed(&again.cx, "theirs", SurveyState::Paused).unwrap_err();
    assert!(refused.contains("only the member that made one"), "{refused}");
}

#[test]
fn members_compare_digests_and_ask_for_what_they_lack() {
    let (mut one, mut other) = (Point::new(1, &[2]), Point::new(2, &[1]));
    one.hear(signed(3, "unis", 2, SurveyState::Running));
    other.hear(signed(3, "unis", 1, SurveyState::Running));
    other.hear(signed(4, "museums", 1, SurveyState::Running));
    one.surveys.tick(&mut one.cx, &one.members);
    let requests = asked(one.cx.take_commands());
    let [Request::CompareSurveys(digest)] = requests[..] else { panic!("{requests:?}") };
    other.surveys.compared(&mut other.cx, Ticket(1), digest);
    let Some(Response::SurveyHeads(Some(heads))) = answered(other.cx.take_commands()) else { panic!("they differ") };
    one.surveys.heads_came(&mut one.cx, who(2), &heads);
    let requests = asked(one.cx.take_commands());
    let [Request::SendSurveys(lacking), Request::Tell(missing)] = &requests[..] else { panic!("{requests:?}") };
    other.surveys.wanted(&mut other.cx, Ticket(2), lacking);
    let Some(Response::Surveys(came)) = answered(other.cx.take_commands()) else { panic!("it has them") };
    assert_eq!(came.len(), 1, "only what is lacking is sent");
    one.surveys.came(&mut one.cx, came);
    one.store();
    let Gossip::Surveys(missing) = &**missing else { panic!("{missing:?}") };
    other.surveys.told(&mut other.cx, who(1), missing);
    let requests = asked(other.cx.take_commands());
    let [Request::SendSurveys(lacking)] = &requests[..] else { panic!("{requests:?}") };
    one.surveys.wanted(&mut one.cx, Ticket(3), lacking);
    let Some(Response::Surveys(came)) = answered(one.cx.take_commands()) else { panic!("it has it") };
    other.surveys.came(&mut other.cx, came);
    other.store();
    assert_eq!(one.surveys.register().digest(), other.surveys.register().digest());
    other.surveys.compared(&mut other.cx, Ticket(4), one.surveys.register().digest());
    assert_eq!(answered(other.cx.take_commands()), Some(Response::SurveyHeads(None)), "equal ones cost nothing more");
}

#[test]
fn each_url_of_a_list_is_named_by_one_member_and_by_the_next_when_that_one_is_gone() {
    let mut points = [1, 2, 3].map(|number| {
        let others: Vec<u8> = [1, 2, 3].into_iter().filter(|other| *other != number).collect();
        Point::new(number, &others)
    });
    let mut named = Vec::new();
    for point in &mut points {
        point.hear(signed(2, "unis", 1, SurveyState::Running));
        assert!(point.surveys.next_to_place(&point.cx, &point.members).is_empty(), "not all have heard of it");
        point.cx.now.moment = Moment(5_000);
        named.push(point.surveys.next_to_place(&point.cx, &point.members));
        assert!(point.surveys.next_to_place(&point.cx, &point.members).is_empty(), "once");
    }
    let mut all: Vec<_> = named.concat();
    all.sort();
    assert_eq!(all, ["https://a.ke/", "https://b.ke/"].map(|url| PageUrl::parse(url).unwrap()));
    // Who named one is gone.
    let (gone, urls) = named.iter().enumerate().find(|(_, urls)| !urls.is_empty()).unwrap();
    let alone = (gone as u8 + 1) % 3 + 1;
    let mut successor = Point::new(alone, &[]);
    successor.hear(signed(2, "unis", 1, SurveyState::Running));
    successor.cx.now.moment = Moment(5_000);
    let inherited = successor.surveys.next_to_place(&successor.cx, &successor.members);
    assert!(urls.iter().all(|url| inherited.contains(url)), "{inherited:?}");
}

#[test]
fn a_survey_with_a_sample_keeps_its_list_and_the_size_of_its_sample() {
    let version = |revision, urls: &[&str], probe, by: u8| {
        let entries = urls.iter().map(|url| SurveyEntry { url: PageUrl::parse(url).unwrap(), labels: Vec::new() }).collect();
        let survey = survey(2, "near", revision, if revision == 5 { SurveyState::Paused } else { SurveyState::Running });
        let plan = SurveyPlan { entries, probe, ..survey.plan };
        SignedSurvey::sign(&Survey { plan, ..survey }, &key(by)).unwrap()
    };
    let list = ["https://a.ke/", "https://b.ke/"];
    let mut point = Point::new(1, &[]);
    point.hear(version(1, &list, Some(2), 2));
    point.hear(version(2, &["https://a.ke/", "https://c.ke/"], Some(2), 2));
    point.hear(version(3, &list, Some(1), 2));
    point.hear(version(4, &list, None, 2));
    assert_eq!((point.state(2, "near"), point.refused("surveys whose sample changed")), (Some((1, SurveyState::Running)), 3));
    point.hear(version(4, &list, Some(1), 3));
    assert_eq!((point.refused("surveys whose sample changed"), point.refused("surveys that their creators did not sign")), (3, 1));
    point.hear(version(5, &list, Some(2), 2));
    assert_eq!(point.state(2, "near"), Some((5, SurveyState::Paused)));
}
