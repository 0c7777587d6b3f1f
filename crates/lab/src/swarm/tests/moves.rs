//! Tests of subnets that move while they are crawled: nothing is lost, requested twice or left alone, whichever member dies on the way.

use super::*;
use nearcrawl_core::migration::handover::Stage;
use nearcrawl_model::{
    claim::ClaimReason,
    view::{EventKind, EventOutcome, Subject},
};

const SHAPE: TableShape = TableShape { hosts: 12, hosts_per_subnet: 4, pages: 16, shared: 0 };
const PLACES: [u8; 5] = [5, 25, 50, 75, 95];

/// Who hands what over to whom.
#[derive(Clone, Copy)]
struct Move {
    subnet: Subnet,
    from: usize,
    to: usize,
}

impl Move {
    /// How far the move is, as this one sees it.
    fn stage(&self, world: &World, number: usize) -> Option<Stage> {
        world.crawler(number).and_then(|crawler| crawler.view().moving(&self.subnet))
    }

    /// The subnet's owner as this one sees it.
    fn owner(&self, world: &World, number: usize) -> Option<usize> {
        let owner = world.crawler(number)?.view().claim_of(&self.subnet)?.owner;
        (0..PLACES.len()).find(|number| world.member(*number) == owner)
    }
}

/// How often servers of a subnet were asked for something, by everybody or by one.
fn requests(world: &World, subnet: Subnet, by: Option<usize>) -> usize {
    let contacts = world.ledger.contacts.iter().filter(|contact| contact.purpose != Purpose::Probe && subnet.contains(contact.address));
    contacts.filter(|contact| by.is_none_or(|by| contact.by == world.member(by))).count()
}

/// A swarm in the middle of its crawl that begins to move a subnet.
#[track_caller]
fn moving(seed: u64, settings: Settings) -> (World, Truth, Move) {
    let (mut world, truth) = swarm(seed, &PLACES, &SHAPE, settings);
    world.run(2 * MINUTE);
    world.seed(0, urls(&["http://s0.test/"]));
    let subnet = *subnets(&world).iter().nth(seed as usize % 3).unwrap();
    assert!(world.run_until(2 * MINUTE, |world| requests(world, subnet, None) >= 20), "it is crawled");
    let from = Move { subnet, from: 0, to: 0 }.owner(&world, 0).unwrap();
    let to = (from + 1 + seed as usize % (PLACES.len() - 1)) % PLACES.len();
    let the_move = Move { subnet, from, to };
    world.move_subnet(from, subnet, to);
    assert_eq!(the_move.stage(&world, from), Some(Stage::Offered));
    (world, truth, the_move)
}

#[test]
fn a_moved_subnet_goes_on_where_it_stood_and_nothing_is_asked_twice() {
    for seed in 1..6 {
        let (mut world, truth, the_move) = moving(seed, settings(6));
        let Move { subnet, from, to } = the_move;
        let offered = world.now();
        assert!(world.run_up_to(20_000, |world| the_move.owner(world, from) != Some(from)), "it is released");
        let released = world.now();
        let told = world.crawler(from).unwrap().view().events();
        let event = told.events.iter().find(|event| event.kind == EventKind::Move).expect("the move is told by who gave it away");
        assert_eq!((event.subnet, event.outcome, event.to), (subnet, EventOutcome::Released, world.member(to)));
        assert_eq!((event.from, event.probes, event.duration_ms), (Some(world.member(from)), None, released.since(offered)));
        assert!(world.run_up_to(20_000, |world| the_move.owner(world, to) == Some(to)), "it is claimed");
        assert!(world.now().since(released) < 1_000, "without an owner for {} ms", world.now().since(released));
        let claim = world.crawler(to).unwrap().view().claim_of(&subnet).unwrap();
        assert_eq!((claim.reason, claim.epoch), (ClaimReason::Moved, 2));
        let results = finish(&mut world, &truth, 20 * MINUTE);
        let asked = |by: usize| requests(&world, subnet, Some(by));
        assert!(asked(from) > 10 && asked(to) > 10, "in the middle of its crawl: {} and {}", asked(from), asked(to));
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_one_owner_each(&world);
    }
}

/// The steps of a hand-over: what is seen when each is reached.
type Step = (&'static str, fn(&Move, &World) -> bool);

const STEPS: [Step; 10] = [
    ("offered", |a, world| a.stage(world, a.from) == Some(Stage::Offered)),
    ("accepted", |a, world| a.stage(world, a.to) == Some(Stage::Coming)),
    ("copying", |a, world| a.stage(world, a.from) == Some(Stage::Copying)),
    ("stopping", |a, world| a.stage(world, a.from) == Some(Stage::Stopping)),
    ("closing", |a, world| a.stage(world, a.from) == Some(Stage::Closing)),
    ("releasing", |a, world| a.stage(world, a.from) == Some(Stage::Releasing)),
    ("released", |a, world| a.owner(world, a.from).is_none()),
    ("handed", |a, world| a.stage(world, a.to) == Some(Stage::Handed)),
    ("claimed", |a, world| a.owner(world, a.to) == Some(a.to)),
    ("known", |a, world| a.owner(world, a.from) == Some(a.to)),
];

/// Kills at one step, and has the dead return after a while or not at all.
#[track_caller]
fn kill_at((name, reached): &Step, seed: u64, sender: bool, receiver: bool, back_after: Option<Millis>) {
    let (mut world, truth, the_move) = moving(seed, settings(6));
    assert!(world.run_up_to(30_000, |world| reached(&the_move, world)), "never {name}");
    let before: BTreeSet<_> = world.ledger.fetches().into_keys().collect();
    let kept: BTreeSet<_> = (0..PLACES.len()).flat_map(|number| recorded(&world, number)).collect();
    let victims = [(sender, the_move.from), (receiver, the_move.to)];
    let victims: Vec<usize> = victims.into_iter().filter_map(|(dies, number)| dies.then_some(number)).collect();
    victims.iter().for_each(|victim| world.kill(*victim));
    world.run(back_after.unwrap_or(70_000));
    if back_after.is_some() {
        victims.iter().for_each(|victim| world.start(*victim));
    }
    let results = finish(&mut world, &truth, 20 * MINUTE);
    assert_fetched(&world, &truth, &before.difference(&kept).cloned().collect());
    assert_totals(&results, &truth);
    assert_polite(&world);
    assert_one_owner_each(&world);
}

#[test]
fn whichever_member_dies_at_whatever_step_nothing_recorded_is_lost_or_fetched_again() {
    for (number, step) in STEPS.iter().enumerate() {
        for (sender, receiver) in [(true, false), (false, true), (true, true)] {
            for back_after in [None, Some(4_000)] {
                eprintln!("{}: sender {sender}, receiver {receiver}, back after {back_after:?}", step.0);
                kill_at(step, 1 + number as u64 % 4, sender, receiver, back_after);
            }
        }
    }
}

/// What requests for pages take on average from now on, in milliseconds.
fn mean_access(world: &World, since: nearcrawl_model::time::Moment) -> f64 {
    let pages = world.ledger.contacts.iter().filter(|contact| contact.begin > since && contact.purpose != Purpose::Probe);
    let took: Vec<f64> = pages.map(|contact| contact.end.since(contact.begin) as f64).collect();
    took.iter().sum::<f64>() / took.len() as f64
}

#[test]
fn a_member_that_is_far_all_at_once_gives_what_it_has_to_the_near_and_the_swarm_is_quick_again() {
    for rule in [Rule::Nearcrawl, Rule::None] {
        let mut settings = settings(12);
        settings.migration = MigrationSettings { rule, requests_per_access: 6, ..MigrationSettings::default() };
        let shape = TableShape { hosts: 24, hosts_per_subnet: 2, pages: 400, shared: 0 };
        let (mut world, truth) = swarm(3, &PLACES, &shape, settings);
        world.run(2 * MINUTE);
        world.seed(0, urls(&["http://s0.test/"]));
        world.run(MINUTE);
        let begun = world.now();
        let owned = |world: &World, number: usize| {
            subnets(world)
                .iter()
                .filter(|subnet| world.crawler(0).unwrap().view().claim_of(subnet).is_some_and(|claim| claim.owner == world.member(number)))
                .count()
        };
        let far = (1..PLACES.len()).max_by_key(|number| owned(&world, *number)).unwrap();
        let (before, held) = (mean_access(&world, nearcrawl_model::time::Moment(0)), owned(&world, far));
        world.detour(far, 150_000);
        world.run(90_000);
        let during = mean_access(&world, begun);
        let late = world.now();
        world.run(60_000);
        let after = mean_access(&world, late);
        eprintln!("{rule:?}: {before:.1} ms, then {during:.1}, then {after:.1}; it held {held}, now {}", owned(&world, far));
        let moved: u64 = (0..PLACES.len()).map(|number| world.crawler(number).unwrap().view().counters().moves_made).sum();
        if rule == Rule::Nearcrawl {
            assert!(owned(&world, far) * 4 <= held && after < 1.3 * before, "{moved} moves");
        } else {
            assert_eq!(moved, 0);
        }
        let results = finish(&mut world, &truth, 60 * MINUTE);
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_one_owner_each(&world);
    }
}

#[test]
fn a_member_that_is_too_busy_gives_work_to_those_that_are_not_and_all_is_done_sooner() {
    let crawl = |rule| {
        let mut settings = settings(12);
        settings.migration = MigrationSettings { rule, requests_per_access: 6, ..MigrationSettings::default() };
        // One request at a time, and all but a few servers are nearest to the first.
        settings.politeness.parallel = 1;
        let shape = TableShape { hosts: 40, hosts_per_subnet: 2, pages: 160, shared: 0 };
        let (mut world, truth) = swarm(3, &[40, 97, 99], &shape, settings);
        world.run(2 * MINUTE);
        world.seed(0, urls(&["http://s0.test/"]));
        let begun = world.now();
        let results = finish(&mut world, &truth, 120 * MINUTE);
        assert_totals(&results, &truth);
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_polite(&world);
        assert_one_owner_each(&world);
        let given_away = |why: &str| {
            let given = |subnet: &&Subnet| {
                let history = world.crawler(0).unwrap().view().why(&Subject::Subnet(**subnet), &Default::default()).history;
                history.iter().any(|holding| holding.released_text.as_ref().is_some_and(|said| said.contains(why)))
            };
            subnets(&world).iter().filter(given).count()
        };
        (world.now().since(begun), given_away("overloaded"), given_away(""))
    };
    let (balanced, busy, all) = crawl(Rule::Nearcrawl);
    let (alone, ..) = crawl(Rule::None);
    eprintln!("{balanced} ms with {all} moves, {busy} of them because one was overloaded; {alone} ms without");
    assert!(busy > 0 && balanced * 10 < alone * 9);
}
