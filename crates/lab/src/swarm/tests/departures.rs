//! Tests of an access point that will request nothing for long: others go on with its subnets, or it keeps them if there is nobody else.

use super::*;
use crate::swarm::clocks::wall_time;
use nearcrawl_core::{allowance::Outlook, event::Event};
use nearcrawl_model::{allowance::Rest, time::Moment};

const SHAPE: TableShape = TableShape { hosts: 16, hosts_per_subnet: 4, pages: 100, shared: 0 };
const PLACES: [u8; 4] = [10, 40, 60, 90];
const HOUR: Millis = 60 * MINUTE;

/// The subnets of one as it sees them.
fn owned(world: &World, number: usize) -> BTreeSet<Subnet> {
    let view = world.crawler(number).unwrap().view();
    let mine = |subnet: &Subnet| view.claim_of(subnet).is_some_and(|claim| claim.owner == world.member(number) && !claim.released);
    subnets(world).into_iter().filter(mine).collect()
}

/// A swarm in the middle of its crawl, and somebody in it who has work.
fn crawling(seed: u64) -> (World, Truth, usize) {
    let (mut world, truth) = swarm(seed, &PLACES, &SHAPE, settings(6));
    world.run(2 * MINUTE);
    world.seed(0, urls(&["http://s0.test/"]));
    world.run(25_000);
    let busiest = (0..PLACES.len()).max_by_key(|number| owned(&world, *number).len()).unwrap();
    assert!(!owned(&world, busiest).is_empty());
    (world, truth, busiest)
}

/// Requests of one to the servers of others from a moment on, probes included.
fn asked_since(world: &World, number: usize, since: Moment) -> usize {
    let contacts = world.ledger.contacts.iter();
    contacts.filter(|contact| contact.by == world.member(number) && contact.begin > since).count()
}

/// An access point is about to ask nothing for so long; none: it is not.
fn departs(world: &mut World, number: usize, back_in: Option<Millis>) {
    let back_at = back_in.map(|back_in| WallTime(wall_time(world.now().after(back_in))));
    world.tell_member(number, Event::Outlook(Outlook { back_at, ..Outlook::default() }));
}

fn night() -> Option<Rest> {
    Some(Rest::OutsideHours { opens_in: 14 * HOUR })
}

#[test]
fn what_has_work_goes_to_those_who_are_awake_before_the_hours_end() {
    for seed in 1..5 {
        let (mut world, truth, leaver) = crawling(seed);
        let before = owned(&world, leaver);
        departs(&mut world, leaver, Some(14 * HOUR));
        let goes = |world: &World| owned(world, leaver).len() < before.len();
        assert!(world.run_up_to(MINUTE, goes), "seed {seed}: it still owns {before:?}");
        world.run(MINUTE);
        let left = owned(&world, leaver);
        assert!(left.is_subset(&before) && left != before, "it was given something: {left:?}");
        world.tell_member(leaver, Event::Rest(night()));
        world.run(MIN_DELAY * 20);
        let since = world.now();
        // The others finish while it rests.
        let results = finish(&mut world, &truth, HOUR);
        assert_eq!(asked_since(&world, leaver, since), 0, "it was asked to do something");
        assert_eq!(owned(&world, leaver), left, "what had no work stays, and nothing comes");
        assert!(world.crawler(leaver).unwrap().view().held_back().is_some());
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_one_owner_each(&world);
    }
}

#[test]
fn nothing_moves_if_everybody_is_about_to_rest_or_the_rest_has_no_work_in_it() {
    let (mut world, truth, leaver) = crawling(1);
    let before = owned(&world, leaver);
    (0..PLACES.len()).for_each(|number| departs(&mut world, number, Some(14 * HOUR)));
    world.run(3 * MINUTE);
    assert_eq!(owned(&world, leaver), before);
    // In the morning all go on.
    (0..PLACES.len()).for_each(|number| departs(&mut world, number, None));
    let results = finish(&mut world, &truth, HOUR);
    assert_fetched(&world, &truth, &BTreeSet::new());
    assert_totals(&results, &truth);
    // All is fetched, and the next run is in a week.
    let before = owned(&world, leaver);
    assert!(!before.is_empty());
    departs(&mut world, leaver, Some(14 * HOUR));
    world.run(10 * MINUTE);
    assert_eq!(owned(&world, leaver), before, "its servers rest anyway");
    departs(&mut world, leaver, Some(8 * 24 * HOUR));
    let movable = |world: &World| owned(world, leaver).len() < before.len();
    assert!(world.run_up_to(10 * MINUTE, movable), "the next run begins meanwhile");
    assert_polite(&world);
}

#[test]
fn who_uses_too_much_memory_asks_nothing_and_gives_what_has_work_to_others() {
    for seed in 1..4 {
        let (mut world, truth, full) = crawling(seed);
        let before = owned(&world, full);
        world.tell_member(full, Event::Rest(Some(Rest::MemoryFull { limit: 1 << 20 })));
        let back_at = Some(WallTime(wall_time(world.now().after(HOUR))));
        world.tell_member(full, Event::Outlook(Outlook { back_at, memory_nearly_full: true, ..Outlook::default() }));
        world.run(MIN_DELAY * 20);
        let since = world.now();
        let goes = |world: &World| owned(world, full).len() < before.len();
        assert!(world.run_up_to(2 * MINUTE, goes), "seed {seed}: it still owns {before:?}");
        let results = finish(&mut world, &truth, HOUR);
        assert_eq!(asked_since(&world, full, since), 0, "it was asked to do something");
        assert!(owned(&world, full).is_subset(&before), "it was given something");
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_one_owner_each(&world);
    }
}

#[test]
fn who_comes_on_a_metered_line_gives_what_has_work_to_others_after_a_while_and_takes_nothing() {
    for seed in 1..4 {
        let (mut world, truth, metered) = crawling(seed);
        let held = owned(&world, metered);
        world.tell_member(metered, Event::Rest(Some(Rest::Metered { interface: "wwan0".to_owned() })));
        world.run(10_000);
        let before = owned(&world, metered);
        assert!(held.is_subset(&before), "seed {seed}: a line that is back at once moves nothing");
        let since = world.now();
        departs(&mut world, metered, Some(HOUR));
        let goes = |world: &World| owned(world, metered).len() < before.len();
        assert!(world.run_up_to(2 * MINUTE, goes), "seed {seed}: it still owns {before:?}");
        let results = finish(&mut world, &truth, HOUR);
        assert_eq!(asked_since(&world, metered, since), 0, "it was asked to do something");
        assert!(owned(&world, metered).is_subset(&before), "it was given something");
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_totals(&results, &truth);
        assert_polite(&world);
        assert_one_owner_each(&world);
    }
}
