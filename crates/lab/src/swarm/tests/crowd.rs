//! Test of one address with very many hosts beside ordinary servers.
//!
//! These are crawled as if it were not there, and its hosts are visited in keyed order, whoever owns it, so that the totals are right about
//! those not visited yet.
//!
//! `NEARCRAWL_CROWD=100000,1000` has the first number of hosts at the address and the second one of ordinary servers.

use super::*;
use crate::web::Answer;
use nearcrawl_core::{crawl::scheduler::place_of, crawler::NewHostLimits};
use nearcrawl_model::{fingerprint::FingerprintKey, summary::Dimension, time::Moment, url::Host};
use std::{net::IpAddr, time::Instant};

const PLACES: [u8; 3] = [10, 50, 90];
const PAGES: usize = 40;
const HOUR: Millis = 60 * MINUTE;

/// The key of simulated swarms.
const KEY: FingerprintKey = FingerprintKey([7; 16]);

fn portal() -> IpAddr {
    "20.0.0.1".parse().unwrap()
}

fn blog(number: usize) -> String {
    format!("blog{number}.test")
}

/// So many ordinary servers, each at its own address, with 40 pages, a ring of links between them, and among them all a link to each of so many
/// hosts of one address. Three in ten of these have no page.
fn web(hosts: usize, ordinary: usize) -> TableWeb {
    let mut web = TableWeb::default();
    let mut named = 0;
    for server in 0..ordinary {
        web.live(&format!("s{server}.test"), &format!("20.0.{}.{}", 1 + server % 200, 1 + server / 200));
        for page in 0..PAGES {
            let mut links = vec![format!("http://s{server}.test/p{}", page + 1), format!("http://s{}.test/", (server + 1) % ordinary)];
            links.extend((page == 0).then(|| format!("http://s{}.test/", (2 * server + 1) % ordinary)));
            // The pages in the middle name them.
            let until = if page < PAGES / 2 { hosts * (server * PAGES / 2 + page + 1) / (ordinary * PAGES / 2) } else { named };
            links.extend((named..until).map(|number| format!("http://{}/", blog(number))));
            named = until;
            let path = if page == 0 { String::new() } else { format!("p{page}") };
            web.page(&format!("http://s{server}.test/{path}"), &links.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
    for number in 0..hosts {
        web.live(&blog(number), &portal().to_string());
        if number % 10 < 3 {
            web.put(&format!("http://{}/", blog(number)), Answer::Status(404));
        } else {
            web.page(&format!("http://{}/", blog(number)), &[]);
        }
    }
    web
}

fn begin(web: TableWeb) -> World {
    // Every member probes each subnet, so that each has the nearest owner, whatever was known before: what is crawled from afar takes three
    // times as long, and which subnets that would be hangs on the order in which they become known.
    let policy = Policy::Nearcrawl { price_us: 0 };
    let new_hosts = NewHostLimits { per_site: 0, per_domain: 0 };
    let settings = Settings { new_hosts, max_waiting: 50_000, max_in_memory: 65_536, policy, ..settings(60) };
    let mut world = World::new(WorldConfig { seed: 3, settings, hierarchy: hierarchy(201), places: PLACES.to_vec() }, web);
    for number in 0..PLACES.len() {
        world.start(number);
        world.run(300);
    }
    world.seed(0, urls(&["http://s0.test/"]));
    world
}

/// When the last ordinary page was answered, in milliseconds after the first.
fn ordinary_done(world: &World) -> Millis {
    let pages = world.ledger.contacts.iter().filter(|contact| contact.address != portal() && matches!(contact.purpose, Purpose::Page(_)));
    let (begin, end) = pages.fold((Moment(u64::MAX), Moment(0)), |(begin, end), page| (begin.min(page.begin), end.max(page.end)));
    end.since(begin)
}

fn ordinary_pages(world: &World) -> usize {
    world.ledger.contacts.iter().filter(|contact| contact.address != portal() && matches!(contact.purpose, Purpose::Page(_))).count()
}

/// Hosts of the address by the first contact with each, from this contact on.
fn begun(world: &World, from: usize) -> Vec<Host> {
    let mut known = BTreeSet::new();
    let hosts = world.ledger.contacts.iter().enumerate().filter(|(_, contact)| contact.address == portal());
    let hosts = hosts.filter_map(|(number, contact)| match &contact.purpose {
        Purpose::Robots(url) | Purpose::Page(url) => Some((number, url.host())),
        Purpose::Probe => None,
    });
    hosts.filter(|(_, host)| known.insert(host.clone())).filter(|(number, _)| *number >= from).map(|(_, host)| host).collect()
}

/// Servers in the totals: all that are known.
fn servers(world: &World) -> u64 {
    world.results(0).map_or(0, |results| results.summary.total.servers)
}

/// Bytes of journals on all disks.
fn journal_bytes(world: &World) -> u64 {
    let of =
        |number: usize| world.disk(number).unwrap().journals.values().flat_map(BTreeMap::values).map(|row| row.len() as u64).sum::<u64>();
    (0..PLACES.len()).map(of).sum()
}

fn size() -> (usize, usize) {
    let asked = std::env::var("NEARCRAWL_CROWD").ok();
    asked
        .as_deref()
        .and_then(|text| text.split_once(','))
        .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)))
        .unwrap_or((1_500, 60))
}

/// Runs until all ordinary pages were asked for, and says how long that took in the swarm, and in how many messages.
fn crawl(hosts: usize, ordinary: usize) -> (World, Millis) {
    let begun = Instant::now();
    let mut world = begin(web(hosts, ordinary));
    // The last page of each links to one that is not there.
    while ordinary_pages(&world) < ordinary * (PAGES + 1) {
        assert!(world.now() < Moment(1_000_000 + 10 * HOUR), "{} pages", ordinary_pages(&world));
        world.run(1_000);
    }
    world.run(1_000);
    let (took, asked) = (ordinary_done(&world), world.questions.values().sum::<u64>());
    let (bytes, real) = (journal_bytes(&world), begun.elapsed());
    println!(
        "{hosts} hosts at one address, {ordinary} others: {took} ms, {asked} messages, {bytes} bytes of journals; simulated in {real:?}"
    );
    (world, took)
}

#[test]
fn an_address_with_very_many_hosts_does_not_delay_the_others_and_is_sampled_in_keyed_order() {
    let (hosts, ordinary) = size();
    let (_, alone) = crawl(0, ordinary);
    let (mut world, beside) = crawl(hosts, ordinary);
    assert!(beside.abs_diff(alone) * 20 <= alone, "{beside} ms beside the crowd, {alone} ms without");
    assert_polite(&world);

    let all = (hosts + ordinary) as u64;
    let known = world.run_until(HOUR, |world| servers(world) == all);
    assert!(known, "{:?}", world.results(0).map(|results| results.summary.total));
    let from = world.ledger.contacts.len();
    // The owner dies half way: its successor goes on in the same order.
    world.run(2 * MINUTE);
    let subnet = "20.0.0.0/24".parse().unwrap();
    let owner = (0..PLACES.len()).find(|number| world.owners_of(&subnet).contains(&Some(world.member(*number)))).unwrap();
    world.kill(owner);
    let asked = (0..PLACES.len()).find(|number| *number != owner).unwrap();
    world.run(6 * MINUTE);
    let begun = begun(&world, from);
    let places: Vec<_> = begun.iter().map(|host| place_of(host, &KEY)).collect();
    let out_of_turn = places.windows(2).position(|two| two[0] > two[1]);
    assert!(places.len() > 100 && out_of_turn.is_none(), "{} begun, the first out of turn is {out_of_turn:?}", places.len());

    let exact = |world: &World| world.results(asked).is_some_and(|results| results.exact);
    assert!(world.run_until(10 * MINUTE, exact), "{:?}", world.results(asked));
    let results = world.results(asked).unwrap();
    let (estimates, total) = (&results.summary.estimates, &results.summary.total);
    assert_eq!((total.servers, estimates.addresses, estimates.hosts), (all, 1, hosts as u64));
    assert!(estimates.sampled > 100 && estimates.sampled < hosts as u64 && estimates.not_estimated == 0, "{estimates:?}");
    let up = (ordinary + (0..hosts).filter(|number| number % 10 >= 3).count()) as u64;
    assert!(estimates.up.margin > 0 && estimates.up.estimated.abs_diff(up) <= 2 * estimates.up.margin, "{:?} of {up}", estimates.up);
    let none = estimates.servers(Dimension::Status, "no-pages").unwrap();
    assert!(none.estimated.abs_diff(all - up) <= 2 * none.margin, "{none:?} of {}", all - up);
    assert!(total.up < up, "what is counted is not estimated: {}", total.up);
}
