//! Tests that subnets go to the nearest with few probes, within the limits, and to those who measured them when their owner goes.

use super::*;
use nearcrawl_core::{delegation::drawn, event::Event, report::Outside};
use nearcrawl_model::{
    access_point::AccessPoint,
    fetch::ProbeTarget,
    ids::Ticket,
    message::Request,
    view::{DelegationView, EventKind, EventOutcome, Subject, WhyView},
};
use std::net::IpAddr;

const SHAPE: TableShape = TableShape { hosts: 24, hosts_per_subnet: 1, pages: 4, shared: 0 };
const PLACES: [u8; 5] = [5, 25, 50, 75, 95];

fn delegation(world: &World, number: usize) -> DelegationView {
    world.crawler(number).unwrap().view().status(Outside::default()).delegation
}

/// Who of these is nearest to a subnet.
fn nearest(world: &World, subnet: &Subnet, of: &[usize]) -> u32 {
    of.iter().map(|number| world.round_trip_us(world.member(*number), subnet.first())).min().unwrap()
}

#[test]
fn the_nearest_gets_it_with_few_probes_and_everybody_learns_what_they_measured() {
    let mut extra = Vec::new();
    for seed in 1..4 {
        let (mut world, truth) = swarm(seed, &PLACES, &SHAPE, settings(4));
        world.run(MINUTE);
        for number in 0..PLACES.len() {
            assert_eq!(delegation(&world, number).members_measured, 4, "each knows how far it is to each other");
        }
        world.seed(0, urls(&["http://s0.test/"]));
        finish(&mut world, &truth, 20 * MINUTE);
        let views: Vec<_> = (0..PLACES.len()).map(|number| delegation(&world, number)).collect();
        let settled: u64 = views.iter().map(|view| view.delegated).sum();
        assert_eq!(settled, subnets(&world).len() as u64, "each subnet is settled once");
        let told: u64 = views.iter().flat_map(|view| &view.delegated_by_probes).map(|(probes, subnets)| u64::from(*probes) * subnets).sum();
        assert_eq!(told, world.ledger.probes(), "every probe is accounted for");
        let events: Vec<_> = (0..PLACES.len())
            .flat_map(|number| world.crawler(number).unwrap().view().events().events)
            .filter(|event| event.kind != EventKind::Judgement)
            .collect();
        assert_eq!((events.len() as u64, events.iter().filter_map(|event| event.probes).map(u64::from).sum::<u64>()), (settled, told));
        for event in events {
            assert_eq!((event.kind, event.outcome, event.from), (EventKind::Delegation, EventOutcome::Owned, None));
            let rests = u64::from(event.probes.unwrap_or(0).saturating_sub(1)) * MIN_DELAY;
            assert!((rests..20 * MINUTE).contains(&event.duration_ms), "{event:?}: the address rests between its probes");
            assert_eq!(world.crawler(0).unwrap().view().claim_of(&event.subnet).unwrap().owner, event.to);
        }
        assert!(told < 4 * settled, "{told} probes for {settled} subnets: asking everybody takes five each");
        for subnet in subnets(&world) {
            let owner = world.crawler(0).unwrap().view().claim_of(&subnet).unwrap().owner;
            extra.push(world.round_trip_us(owner, subnet.first()) - nearest(&world, &subnet, &[0, 1, 2, 3, 4]));
        }
        assert!(views.iter().all(|view| view.observations > 0), "what one measured everybody learns from its claim");
    }
    let mean = extra.iter().sum::<u32>() / extra.len() as u32;
    assert!(mean < 15_000, "{mean} µs farther than need be");
}

#[test]
fn the_paper_s_procedure_can_be_chosen() {
    let settings = Settings { policy: Policy::Ipmicra { threshold_us: 15_000 }, ..settings(4) };
    let (mut world, truth) = swarm(1, &PLACES, &SHAPE, settings);
    world.run(MINUTE);
    world.seed(0, urls(&["http://s0.test/"]));
    finish(&mut world, &truth, 20 * MINUTE);
    assert_one_owner_each(&world);
    assert_eq!(delegation(&world, 2).policy, "ipmicra");
}

/// Subnets are drawn, and would move for nearness if the policy let them.
fn drawing() -> Settings {
    let migration = MigrationSettings { rule: Rule::Nearcrawl, requests_per_access: 4, ..MigrationSettings::default() };
    Settings { policy: Policy::Random, migration, ..settings(4) }
}

fn why(world: &World, number: usize, subnet: Subnet) -> WhyView {
    world.crawler(number).unwrap().view().why(&Subject::Subnet(subnet), &Default::default())
}

/// Who is drawn for each subnet, of the members that run.
fn draws(world: &World) -> BTreeMap<Subnet, AccessPoint> {
    let members: Vec<_> = world.running().into_iter().map(|number| world.member(number)).collect();
    subnets(world).into_iter().map(|subnet| (subnet, drawn(&subnet, &members).unwrap())).collect()
}

/// The owner of each subnet, as this one knows it.
fn owners(world: &World, number: usize) -> BTreeMap<Subnet, AccessPoint> {
    let view = world.crawler(number).unwrap().view();
    subnets(world).into_iter().map(|subnet| (subnet, view.claim_of(&subnet).unwrap().owner)).collect()
}

#[test]
fn owners_can_be_drawn_without_a_probe_and_nothing_moves_for_nearness() {
    let shape = TableShape { pages: 16, ..SHAPE };
    for seed in 1..4 {
        let (mut world, truth) = swarm(seed, &PLACES, &shape, drawing());
        world.run(MINUTE);
        world.seed(0, urls(&["http://s0.test/"]));
        let results = finish(&mut world, &truth, 30 * MINUTE);
        assert_totals(&results, &truth);
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_polite(&world);
        assert_one_owner_each(&world);
        assert_eq!(world.ledger.probes(), 0);
        assert_eq!(owners(&world, 0), draws(&world), "each has the one that anybody draws");
        let all = subnets(&world).len() as u64;
        let views: Vec<_> = (0..PLACES.len()).map(|number| delegation(&world, number)).collect();
        assert_eq!(views.iter().map(|view| view.delegated_without_probe).sum::<u64>(), all);
        assert!(views.iter().all(|view| view.policy == "random"));
        let counters = |number| world.crawler(number).unwrap().view().counters();
        let judged: u64 = (0..PLACES.len()).map(|number| counters(number).accesses_judged).sum();
        let offered: u64 = (0..PLACES.len()).map(|number| counters(number).moves_offered).sum();
        assert!(judged > all, "accesses are judged, for the load: {judged}");
        assert_eq!(offered, 0);
        let told: Vec<_> = (0..PLACES.len()).flat_map(|number| world.crawler(number).unwrap().view().events().events).collect();
        let judgements: Vec<_> = told.iter().filter(|event| event.kind == EventKind::Judgement).collect();
        assert_eq!(judgements.len() as u64, judged, "each judgement is told");
        for event in judgements {
            let (requests, took) = (event.requests.unwrap(), event.took_ms.unwrap());
            assert!(requests > 0 && took > 0 && (requests > 1 || event.duration_ms >= took), "{event:?}");
            assert!(event.reason_text.as_ref().is_some_and(|why| why.contains("owners are drawn")), "{event:?}");
            let number = (0..PLACES.len()).find(|number| Some(world.member(*number)) == event.from).unwrap();
            assert!(world.crawler(number).unwrap().view().claim_of(&event.subnet).unwrap().owner == world.member(number), "{event:?}");
        }
        let mut better_off_elsewhere = 0;
        for (subnet, owner) in owners(&world, 0) {
            let number = (0..PLACES.len()).find(|number| world.member(*number) == owner).unwrap();
            let said = why(&world, number, subnet);
            assert_eq!(
                said.reason_text.unwrap(),
                "it was drawn at random among the members, without a probe (delegation.policy = \"random\")"
            );
            let judgement = said.judgement_text.unwrap_or_default();
            assert!(judgement.is_empty() || judgement.contains("it stays, because owners are drawn"), "{judgement}");
            better_off_elsewhere += usize::from(judgement.starts_with("better elsewhere"));
        }
        assert!(better_off_elsewhere > 0, "some subnet would be better off elsewhere");
    }
}

#[test]
fn after_a_death_the_subnets_of_the_dead_are_drawn_anew_and_no_others() {
    let (mut world, truth) = swarm(2, &PLACES, &SHAPE, drawing());
    world.run(2 * MINUTE);
    world.seed(0, urls(&["http://s0.test/"]));
    finish(&mut world, &truth, 20 * MINUTE);
    let before = owners(&world, 0);
    let dead = world.member(3);
    assert!(before.values().any(|owner| *owner == dead), "it owns something");
    world.kill(3);
    world.run(2 * MINUTE);
    assert_one_owner_each(&world);
    let (now, draws) = (owners(&world, 0), draws(&world));
    assert_eq!(now, draws);
    for (subnet, owner) in &before {
        assert!(*owner == dead || now[subnet] == *owner, "{subnet} has no reason to move");
    }
    assert_eq!(world.ledger.probes(), 0);
}

#[test]
fn after_a_death_who_measured_a_subnet_takes_it_without_a_probe() {
    let (mut world, truth) = swarm(2, &PLACES, &SHAPE, settings(4));
    world.run(2 * MINUTE);
    world.seed(0, urls(&["http://s0.test/"]));
    finish(&mut world, &truth, 20 * MINUTE);
    let claims = |world: &World| -> BTreeMap<Subnet, _> {
        let first = world.crawler(world.running()[0]).unwrap();
        subnets(world).into_iter().map(|subnet| (subnet, first.view().claim_of(&subnet).unwrap().clone())).collect()
    };
    let before = claims(&world);
    let probes = world.ledger.probes();
    let held = |who| before.values().filter(|claim| claim.owner == who && !claim.answers.is_empty()).count();
    let victim = (1..PLACES.len()).max_by_key(|number| held(world.member(*number))).unwrap();
    let dead = world.member(victim);
    assert!(held(dead) > 0, "a member owns what others measured too");
    world.kill(victim);
    world.run(2 * MINUTE);
    assert_one_owner_each(&world);
    let alive: BTreeMap<_, _> = world.running().into_iter().map(|n| (world.member(n), n)).collect();
    let mut deputies = 0;
    for (subnet, now) in claims(&world) {
        let was = &before[&subnet];
        if was.owner != dead {
            assert_eq!(now.owner, was.owner, "{subnet} has no reason to move");
            continue;
        }
        let living = |answer: &&nearcrawl_model::claim::Answer| alive.keys().any(|who| answer.prober == (*who).into());
        if let Some(best) = was.answers.iter().find(living) {
            assert_eq!((best.prober, Some(best.rtt_us)), (now.owner.into(), now.rtt_us), "{subnet} goes to the next best answer");
            let remembered = now.answers.iter().any(|answer| answer.prober == dead.into());
            assert!(remembered || was.rtt_us.is_none(), "the dead one's answer is remembered: it may return");
            deputies += 1;
        }
    }
    assert_eq!(world.ledger.probes(), probes, "no server was probed");
    let counted: u64 = alive.values().map(|number| delegation(&world, *number).takeovers_without_probe).sum();
    assert!(counted >= deputies && deputies > 0, "{counted} counted, {deputies} seen");
}

#[test]
fn a_lying_steward_gets_fewer_than_fifteen_contacts_out_of_eleven_honest_members() {
    let places: Vec<u8> = (0..12).map(|number| number * 8).collect();
    let (mut world, _) = swarm(3, &places, &SHAPE, settings(4));
    world.run(2 * MINUTE);
    let liar = world.member(11);
    let victims: Vec<IpAddr> = (0..24).map(|third| IpAddr::from([20, 0, third, 1])).collect();
    // It shows no receipts, gives itself other subnets around the address, and tries again after everybody has started anew.
    for round in 0..4u8 {
        for (number, address) in victims.iter().enumerate() {
            let exact = world.config.hierarchy.subnet_of(*address);
            for subnet in [exact, Subnet::around(*address, 25 + round), Subnet::around(*address, 16)] {
                for honest in 0..11 {
                    let target =
                        ProbeTarget { address: (*address, 80).into(), host: format!("s{number}.test").parse().unwrap(), secure: false };
                    let request = Request::Probe(subnet, target, Vec::new());
                    let (who, ticket) = (world.member(honest), Ticket(1_000_000 + number as u64));
                    world.tell(who, Event::Asked { from: liar, ticket, request });
                }
                world.run(1_000);
            }
        }
        if round == 1 {
            for honest in 0..11 {
                world.kill(honest);
                world.start(honest);
            }
            world.run(2 * MINUTE);
        }
    }
    let mut by_address: BTreeMap<IpAddr, Vec<AccessPoint>> = BTreeMap::new();
    for contact in &world.ledger.contacts {
        by_address.entry(contact.address).or_default().push(contact.by);
    }
    let most = by_address.values().map(Vec::len).max().unwrap_or(0);
    assert!(most > 0, "it is a steward of something, and obeyed there");
    assert!(most <= 11, "{most} contacts with one address: each honest member makes one in thirty days, restarts or not");
    let declined = delegation(&world, 0).declined;
    for why in ["the requester is no steward of the subnet", "the receipts leave out probes that were made"] {
        let any_member = (0..11).any(|number| delegation(&world, number).declined.contains_key(why));
        assert!(any_member, "{why}: {declined:?}");
    }
}
