//! Tests of admission in the simulated swarm.
//!
//! Whom the root expels is gone within ten seconds, with whom it invited, and requests nothing after.

use super::*;
use crate::swarm::world::key_of;
use nearcrawl_core::event::{AdmissionEvent, Event};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{Admission, AdmissionMode, AdmissionRule, Certificate, Expulsion, Issuer, RootKey, SignedAdmission},
};

const SHAPE: TableShape = TableShape { hosts: 24, hosts_per_subnet: 1, pages: 60, shared: 0 };
/// The last one is invited by nobody.
const PLACES: [u8; 13] = [4, 12, 20, 28, 36, 44, 52, 60, 68, 76, 84, 92, 50];

const UNINVITED: usize = 12;

/// Within so long every reachable member lets an expelled one in no more.
const SOON: Millis = 10_000;

/// The number of the key that is the swarm's root.
const ROOT: u32 = 5_000;

fn root() -> RootKey {
    RootKey(key_of(ROOT).verifying_key().to_bytes())
}

fn certificate(member: AccessPoint, issuer: Issuer) -> Admission {
    let (issued, expires) = (WallTime(1), WallTime(u64::MAX / 2));
    let may_invite = issuer == Issuer::Root;
    Admission::Certificate(Certificate { swarm: root(), issuer, member, may_invite, issued, expires, label: String::new() })
}

fn by_root(statement: &Admission) -> SignedAdmission {
    SignedAdmission::by_root(statement, &key_of(ROOT)).unwrap()
}

/// Twelve members in the middle of a crawl. The root invited all but two, whom the member `inviter` invited.
fn crawling(seed: u64, inviter: usize, invited: [usize; 2]) -> World {
    let web = TableWeb::random(&SHAPE, seed);
    let admission = AdmissionRule { mode: AdmissionMode::Invite, swarm: Some(root()), ..AdmissionRule::default() };
    let settings = Settings { admission, ..settings(8) };
    let mut world = World::new(WorldConfig { seed, settings, hierarchy: hierarchy(SHAPE.hosts), places: PLACES.to_vec() }, web);
    for number in 0..UNINVITED {
        let statement = |issuer| certificate(world.member(number), issuer);
        let shown = if invited.contains(&number) {
            let own = by_root(&certificate(world.member(inviter), Issuer::Root));
            let statement = statement(Issuer::Inviter(world.member(inviter)));
            SignedAdmission::by_inviter(&statement, &key_of(inviter as u32), &own).unwrap()
        } else {
            by_root(&statement(Issuer::Root))
        };
        world.certify(number, shown);
    }
    for number in 0..UNINVITED {
        world.start(number);
        world.run(300);
    }
    world.run(2 * MINUTE);
    let roots = (0..SHAPE.hosts).map(|host| format!("http://s{host}.test/")).collect::<Vec<_>>();
    world.tell_member(0, Event::Seeds(roots.iter().map(|url| PageUrl::parse(url).unwrap()).collect()));
    world
}

/// The root expels a member; the statement is given to another one.
fn expel(world: &mut World, at: usize, member: usize) {
    let (swarm, member) = (root(), world.member(member));
    let expulsion = Expulsion { swarm, issuer: Issuer::Root, member, serial: 1, at: WallTime(5), reason: "a test".to_owned() };
    let signed = Box::new(by_root(&Admission::Expulsion(expulsion)));
    world.tell_member(at, Event::Admission(AdmissionEvent::Given { number: 1, signed }));
}

/// Whether these members count that one as alive no more.
fn have_done_with(world: &World, members: &[usize], gone: usize) -> bool {
    let gone = world.member(gone);
    members.iter().all(|member| world.crawler(*member).is_some_and(|crawler| !crawler.view().is_alive(&gone)))
}

fn refused(world: &World, member: usize) -> Option<String> {
    world.crawler(member).and_then(|crawler| crawler.view().not_admitted().map(ToString::to_string))
}

/// Contacts that a member made since then: pages, robots.txt and probes.
fn contacts_of(world: &World, member: usize, since: usize) -> usize {
    let by = world.member(member);
    world.ledger.contacts[since..].iter().filter(|contact| contact.by == by).count()
}

#[test]
fn an_expelled_inviter_and_whom_it_invited_are_gone_at_all_nine_others_and_ask_nothing_more() {
    let (gone, stay) = ([9, 10, 11], [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let mut world = crawling(1, 9, [10, 11]);
    let busy = |world: &World| gone.iter().map(|member| contacts_of(world, *member, 0)).sum::<usize>() > 20;
    assert!(world.run_until(10 * MINUTE, busy), "they are at work");
    assert!((0..12).all(|member| refused(&world, member).is_none()));
    expel(&mut world, 3, 9);
    let done = |world: &World| gone.iter().all(|gone| have_done_with(world, &stay, *gone));
    assert!(world.run_up_to(SOON, done), "all nine that can be reached");
    let says = |member: usize, text: &str| refused(&world, member).is_some_and(|why| why.starts_with(text));
    assert!(says(9, "expelled: a test") && says(10, "expelled: the inviter") && says(11, "expelled: the inviter"));
    let since = world.ledger.contacts.len();
    world.run(2 * MINUTE);
    assert_eq!(gone.map(|member| contacts_of(&world, member, since)), [0; 3]);
    let taken_over = |world: &World| {
        let owned = world.crawler(0).unwrap().view().ownership(None, 10_000);
        !owned.iter().any(|row| gone.iter().any(|gone| row.owner == world.member(*gone)))
    };
    assert!(world.run_until(5 * MINUTE, taken_over), "others go on with what they had");
    assert!(stay.iter().any(|member| contacts_of(&world, *member, since) > 0));
    // A restart changes nothing on either side.
    for member in [9, 3] {
        world.kill(member);
        world.run(1_000);
        world.start(member);
    }
    let since = world.ledger.contacts.len();
    world.run(2 * MINUTE);
    assert!(done(&world) && refused(&world, 9).is_some() && contacts_of(&world, 9, since) == 0);
}

#[test]
fn it_comes_to_all_in_time_though_a_third_of_what_is_said_gets_lost() {
    for seed in 1..4 {
        let mut world = crawling(seed, 9, [10, 11]);
        (world.loss, world.gossip_loss) = (0.3, 0.3);
        world.run(5_000);
        expel(&mut world, 4, 7);
        let stay = [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11];
        assert!(world.run_up_to(SOON, |world| have_done_with(world, &stay, 7)), "seed {seed}");
    }
}

#[test]
fn who_was_not_invited_never_becomes_a_member() {
    let mut world = crawling(2, 9, [10, 11]);
    world.start(UNINVITED);
    world.run(2 * MINUTE);
    let members: Vec<usize> = (0..UNINVITED).collect();
    assert!(have_done_with(&world, &members, UNINVITED));
    assert!(refused(&world, UNINVITED).is_some_and(|why| why.starts_with("not invited")));
    assert_eq!(contacts_of(&world, UNINVITED, 0), 0);
}
