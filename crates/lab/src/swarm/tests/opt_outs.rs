//! Tests of opt-outs in the simulated swarm: one "no" stops all members within ten seconds, and a liar nobody for long.

use super::{runs::records, *};
use crate::{swarm::world::key_of, web::Answer};
use nearcrawl_core::event::{Event, OptOutEvent};
use nearcrawl_model::{
    access_point::AccessPoint,
    message::Gossip,
    opt_out::{OptOutKey, OptOutProof, OptOutSubject, SignedStatement, Statement},
    url::Host,
};
use std::net::IpAddr;

const SHAPE: TableShape = TableShape { hosts: 24, hosts_per_subnet: 1, pages: 60, shared: 0 };
const PLACES: [u8; 12] = [4, 12, 20, 28, 36, 44, 52, 60, 68, 76, 84, 92];

/// Within so long every reachable member asks nothing more.
const SOON: Millis = 10_000;

fn key(subject: &str, domain: bool, proof: OptOutProof) -> OptOutKey {
    OptOutKey { subject: OptOutSubject::read(subject, domain).unwrap(), proof }
}

fn name(host: usize) -> Host {
    format!("s{host}.test").parse().unwrap()
}

/// Twelve members, of whom the last has not started, in the middle of a crawl.
fn crawling(seed: u64) -> World {
    let web = TableWeb::random(&SHAPE, seed);
    let mut world =
        World::new(WorldConfig { seed, settings: settings(8), hierarchy: hierarchy(SHAPE.hosts), places: PLACES.to_vec() }, web);
    for number in 0..PLACES.len() - 1 {
        world.start(number);
        world.run(300);
    }
    world.run(MINUTE);
    let roots = (0..SHAPE.hosts).map(|host| format!("http://s{host}.test/")).collect::<Vec<_>>();
    world.tell_member(0, Event::Seeds(roots.iter().map(|url| PageUrl::parse(url).unwrap()).collect()));
    world
}

fn say(world: &mut World, member: usize, key: &OptOutKey, stops: bool, number: u64) {
    world.tell_member(member, Event::OptOut(OptOutEvent::Asked { number, key: key.clone(), stops }));
}

/// Contacts with the servers of these hosts since then: pages, robots.txt and probes.
fn contacts(world: &World, hosts: &[usize], since: usize) -> usize {
    let addresses: BTreeSet<IpAddr> = hosts.iter().map(|host| world.web.addresses[&name(*host)]).collect();
    world.ledger.contacts[since..].iter().filter(|contact| addresses.contains(&contact.address)).count()
}

fn knows(world: &World, member: usize, host: usize) -> bool {
    world
        .crawler(member)
        .is_some_and(|crawler| crawler.view().opted_out(Some(&name(host)), world.web.addresses.get(&name(host)).copied()).is_some())
}

#[test]
fn one_no_stops_the_whole_swarm_through_a_partition_a_late_joiner_restarts_and_its_withdrawal() {
    for seed in [1] {
        let mut world = crawling(seed);
        let hosts = [3, 8, 13, 18];
        let begun = |world: &World| hosts.iter().all(|host| contacts(world, &[*host], 0) > 2);
        assert!(world.run_until(20 * MINUTE, begun), "all are being asked");
        // Two members are cut off, and what they own is not theirs for long.
        world.split(&[&[0, 1, 2, 3, 4, 5, 6, 7, 8], &[9, 10]]);
        world.run(1_000);
        let address = world.web.addresses[&name(18)].to_string();
        let keys = [
            key("s3.test", false, OptOutProof::Txt),
            key("s8.test", false, OptOutProof::File),
            key("s13.test", true, OptOutProof::Txt),
            key(&address, false, OptOutProof::Order),
        ];
        world.proofs.extend(keys.iter().cloned());
        for (number, key) in keys.iter().enumerate() {
            say(&mut world, 2 + number, key, true, 1);
        }
        let all_know = |world: &World, members: std::ops::Range<usize>| {
            members.into_iter().all(|member| hosts.iter().all(|host| knows(world, member, *host)))
        };
        assert!(world.run_up_to(SOON, |world| all_know(world, 0..9)), "all that can be reached");
        assert!(!knows(&world, 9, 3), "it cannot come over");
        let of = |world: &World, members: &[usize], since: usize| {
            let members: BTreeSet<_> = members.iter().map(|member| world.member(*member)).collect();
            let addresses: BTreeSet<IpAddr> = hosts.iter().map(|host| world.web.addresses[&name(*host)]).collect();
            world.ledger.contacts[since..]
                .iter()
                .filter(|contact| addresses.contains(&contact.address) && members.contains(&contact.by))
                .count()
        };
        let since = world.ledger.contacts.len();
        world.run(MINUTE);
        assert_eq!(of(&world, &[0, 1, 2, 3, 4, 5, 6, 7, 8], since), 0, "nothing is asked where it is known");
        world.heal();
        assert!(world.run_up_to(60_000, |world| all_know(world, 9..11)), "who was cut off hears of it");
        let since = world.ledger.contacts.len();
        // Those who took it in die, one comes late, one comes back.
        world.kill(2);
        world.kill(5);
        world.start(11);
        world.run(5_000);
        world.start(5);
        assert!(world.run_up_to(60_000, |world| all_know(world, 11..12) && all_know(world, 5..6)));
        world.run(5 * MINUTE);
        assert_eq!(contacts(&world, &hosts, since), 0, "nobody ever asks");
        assert!(world.ledger.contacts.len() > since, "others are");
        let looks = world.ledger.looks.len();
        assert!(looks <= 40, "{looks} looks");
        // The proofs are taken away, and another member is told.
        say(&mut world, 7, &keys[0], false, 2);
        world.run(5_000);
        assert!(knows(&world, 7, 3), "the proof is there still");
        world.proofs.clear();
        for (number, key) in keys[..3].iter().enumerate() {
            say(&mut world, 7, key, false, 3 + number as u64);
        }
        say(&mut world, 7, &keys[3], false, 9);
        let free = |world: &World| world.running().into_iter().all(|member| [3, 8, 13].iter().all(|host| !knows(world, member, *host)));
        // Who never saw a proof looks three times in eleven minutes before it goes by that.
        assert!(world.run_until(15 * MINUTE, free));
        assert!(world.running().into_iter().all(|member| knows(&world, member, 18)), "an order is not for others to take back");
        let asked_again = |world: &World| contacts(world, &[3], since) > 0;
        assert!(world.run_until(20 * MINUTE, asked_again));
        say(&mut world, 5, &keys[3], false, 1);
        assert!(world.run_until(MINUTE, |world| world.running().into_iter().all(|member| !knows(world, member, 18))));
    }
}

#[test]
fn a_page_that_is_on_its_way_is_broken_off_when_its_server_says_no() {
    let mut world = crawling(4);
    let address = world.web.addresses[&name(6)];
    world.slow.insert(address, 3 * MINUTE);
    let last = |world: &World| world.ledger.contacts.iter().rev().find(|contact| contact.address == address).cloned();
    let is_asked = |world: &World| {
        last(world).is_some_and(|contact| matches!(contact.purpose, Purpose::Page(_)) && contact.end > world.now().after(2 * MINUTE))
    };
    assert!(world.run_until(20 * MINUTE, is_asked), "a page is on its way, and takes minutes");
    let key = key("s6.test", false, OptOutProof::Txt);
    world.proofs.insert(key.clone());
    let by_owner = last(&world).unwrap().by;
    let other = world.running().into_iter().find(|number| world.member(*number) != by_owner).unwrap();
    let said = world.now();
    say(&mut world, other, &key, true, 1);
    world.run(SOON);
    let contact = last(&world).unwrap();
    assert!(contact.end <= said.after(SOON), "it ends {} ms later", contact.end.since(said));
    world.run(5 * MINUTE);
    assert_eq!(last(&world).unwrap().begin, contact.begin, "and nothing is asked after it");
    // The opt-out is withdrawn: the page is asked for again.
    world.proofs.clear();
    world.slow.clear();
    say(&mut world, other, &key, false, 2);
    assert!(world.run_until(20 * MINUTE, |world| last(world).unwrap().begin > contact.begin), "its crawl goes on");
}

#[test]
fn a_member_that_makes_opt_outs_up_holds_nobody_up_for_long() {
    let shape = TableShape { hosts: 16, hosts_per_subnet: 2, pages: 12, shared: 0 };
    let (mut world, truth) = swarm(5, &[5, 25, 50, 75], &shape, settings(8));
    world.run(MINUTE);
    let liar = key_of(77);
    let by = AccessPoint(liar.verifying_key().to_bytes());
    let lie = |host: usize| {
        let key = key(&format!("s{host}.test"), false, OptOutProof::Txt);
        SignedStatement::sign(&Statement { by, key, revision: 1, stops: true, at: WallTime(5) }, &liar).unwrap()
    };
    let lies: Vec<_> = (0..shape.hosts).map(lie).collect();
    for member in 0..4 {
        world.tell_member(member, Event::Gossiped { author: by, gossip: Gossip::OptOuts(lies.clone()) });
    }
    world.run(1_000);
    assert!((0..4).all(|member| knows(&world, member, 3)), "it is heard");
    world.tell_member(0, Event::Seeds(urls(&["http://s0.test/"])));
    // Each server waits until its owner has looked three times in eleven minutes, and others are found after that only.
    finish(&mut world, &truth, 120 * MINUTE);
    assert_fetched(&world, &truth, &BTreeSet::new());
    let looks = world.ledger.looks.len();
    assert!((1..=4 * 16).contains(&looks), "{looks} looks");
}

#[test]
fn it_comes_to_all_in_time_though_a_third_of_what_is_said_gets_lost() {
    for seed in 1..4 {
        let mut world = crawling(seed);
        (world.loss, world.gossip_loss) = (0.3, 0.3);
        world.run(5_000);
        let lost = key("s5.test", false, OptOutProof::Txt);
        world.proofs.insert(lost.clone());
        say(&mut world, 4, &lost, true, 1);
        let all_know = |world: &World| world.running().into_iter().all(|member| knows(world, member, 5));
        assert!(world.run_up_to(SOON, all_know), "seed {seed}");
    }
}

#[test]
fn a_robots_txt_that_moved_to_a_host_that_is_opted_out_ends_the_run_here_and_at_a_successor() {
    let mut web = TableWeb::random(&TableShape { hosts: 4, hosts_per_subnet: 1, pages: 2, shared: 0 }, 3);
    // One moved to a host at its own address, the other to one that lives elsewhere.
    for (tree, address, elsewhere) in [("a.test", "20.0.1.9", "20.0.1.9"), ("b.test", "20.0.2.9", "20.0.2.10")] {
        web.live(tree, address);
        web.live(&format!("www.{tree}"), elsewhere);
        let to = PageUrl::parse(&format!("http://www.{tree}/robots.txt")).unwrap();
        web.put(&format!("http://{tree}/robots.txt"), Answer::Redirect(to));
        web.page(&format!("http://{tree}/"), &[]);
        web.page(&format!("http://{tree}/more"), &[]);
    }
    let config = WorldConfig { seed: 3, settings: settings(3), hierarchy: hierarchy(4), places: vec![5, 25, 50, 75] };
    let mut world = World::new(config, web);
    for number in 0..4 {
        world.start(number);
        world.run(300);
    }
    world.run(MINUTE);
    let unwanted = ["www.a.test", "www.b.test"].map(|name| key(name, false, OptOutProof::Txt));
    world.proofs.extend(unwanted.iter().cloned());
    for (number, key) in unwanted.iter().enumerate() {
        say(&mut world, number, key, true, 1);
    }
    world.run(SOON);
    let refused = |world: &World, pages: u64| {
        let records = records(world);
        let of = |tree: &str| records.iter().find(|record| record.host.as_str() == tree).cloned();
        ["a.test", "b.test"].iter().all(|tree| {
            of(tree).is_some_and(|record| record.refused_by_robots_unavailable == pages && record.waiting == 0 && record.requests <= 4)
        })
    };
    let trees = ["http://a.test/", "http://b.test/"];
    world.seed(0, urls(&trees));
    assert!(world.run_until(5 * MINUTE, |world| refused(world, 1)), "{:?}", records(&world));
    let address = world.web.addresses[&"a.test".parse::<Host>().unwrap()];
    let owner = world.crawler(0).unwrap().view().claim_around(address).unwrap().owner;
    let owner = (0..4).find(|number| world.member(*number) == owner).unwrap();
    // Its journal is copied.
    world.run(MINUTE);
    world.kill(owner);
    let named_by = world.running()[0];
    world.seed(named_by, urls(&["http://a.test/more", "http://b.test/more"]));
    assert!(world.run_until(10 * MINUTE, |world| refused(world, 2)), "{:?}", records(&world));
    let asked = |what: &str| {
        let urls = world.ledger.contacts.iter().filter_map(|contact| match &contact.purpose {
            Purpose::Robots(url) | Purpose::Page(url) => Some(url),
            _ => None,
        });
        urls.filter(|url| url.as_str().starts_with(what)).count()
    };
    assert_eq!((asked("http://www."), asked("http://a.test/"), asked("http://b.test/")), (0, 1, 1), "robots.txt of each, once");
}
