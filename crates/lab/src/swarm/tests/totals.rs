//! Tests that totals do not fall for people who ask again and again: only members' own may, not because a subnet is on its way.

use super::*;
use nearcrawl_model::summary::Counts;

const SHAPE: TableShape = TableShape { hosts: 12, hosts_per_subnet: 2, pages: 16, shared: 0 };
const PLACES: [u8; 5] = [5, 25, 50, 75, 95];

/// Somebody who asks every member five times a second.
#[derive(Default)]
struct Asker {
    last: BTreeMap<usize, Counts>,
    /// How many answers were exact, and how many were of before a change.
    exact: usize,
    kept: usize,
}

impl Asker {
    /// Lets time pass.
    #[track_caller]
    fn watch(&mut self, world: &mut World, time: Millis, what: &str) {
        for _ in 0..time / 200 {
            world.run(200);
            let running = world.running();
            self.last.retain(|number, _| running.contains(number));
            for number in running {
                let results = world.results(number).unwrap();
                let (total, why) = (results.summary.total, &results.in_transition_text);
                let last = self.last.insert(number, total).unwrap_or_default();
                let seen = (total.servers, total.pages, last.servers, last.pages);
                assert!(total.servers >= last.servers, "{what}: servers fell at {number}, {} ms: {seen:?} {why:?}", world.now().0);
                assert!(total.pages >= last.pages, "{what}: pages fell at {number}, {} ms: {seen:?} {why:?}", world.now().0);
                assert_eq!(results.exact, why.is_none());
                assert!(!results.exact || results.consistent_age_ms.is_none(), "{what}: exact, and of before a change");
                self.exact += usize::from(results.exact);
                self.kept += usize::from(results.consistent_age_ms.is_some());
            }
        }
    }
}

fn owner(world: &World, subnet: Subnet) -> Option<usize> {
    let owner = world.crawler(0)?.view().claim_of(&subnet)?.owner;
    (0..PLACES.len()).find(|number| world.member(*number) == owner)
}

/// Hands every subnet to the next member that runs.
fn move_all(world: &mut World, asker: &mut Asker, what: &str) {
    for subnet in subnets(world) {
        let Some(from) = owner(world, subnet).filter(|from| world.running().contains(from)) else { continue };
        let running = world.running();
        let to = running[(running.iter().position(|number| *number == from).unwrap() + 1) % running.len()];
        world.move_subnet(from, subnet, to);
        asker.watch(world, 3_000, what);
    }
    asker.watch(world, MINUTE, what);
}

#[test]
fn totals_that_are_asked_for_again_and_again_do_not_fall() {
    for seed in seeds(2) {
        let settings = Settings { revisit: 15 * MINUTE, ..settings(6) };
        let web = TableWeb::random(&SHAPE, seed);
        let truth = walk(&web, &urls(&["http://s0.test/"]), &settings.scope, settings.rules.depth, "nearcrawl");
        let mut world = World::new(WorldConfig { seed, settings, hierarchy: hierarchy(6), places: PLACES.to_vec() }, web);
        (0..4).for_each(|number| world.start(number));
        let mut asker = Asker::default();
        asker.watch(&mut world, 2 * MINUTE, "start");
        world.seed(0, urls(&["http://s0.test/"]));
        asker.watch(&mut world, MINUTE, "growth");
        assert!(asker.last[&0].pages > 20, "totals of a crawl grow while it goes on: {:?}", asker.last[&0]);
        move_all(&mut world, &mut asker, "moves in a crawl");
        asker.watch(&mut world, 8 * MINUTE, "growth");
        assert!((0..4).all(|number| asker.last[&number].pages == truth.pages), "{:?}", asker.last);
        let exact = std::mem::take(&mut asker.exact);
        assert!(exact > 1_000, "{exact}");
        // It is visited again from now on.
        move_all(&mut world, &mut asker, "moves");
        assert!(asker.kept > 10, "{}", asker.kept);
        asker.watch(&mut world, 5 * MINUTE, "visits");
        world.start(4);
        asker.watch(&mut world, 2 * MINUTE, "a join");
        move_all(&mut world, &mut asker, "moves to the new one");
        world.kill(1);
        asker.watch(&mut world, 5 * MINUTE, "a kill");
        let results = agreed(&world).expect("all is exact again");
        assert_eq!((results.summary.total.servers, results.summary.total.pages), (truth.hosts.len() as u64, truth.pages));
    }
}
