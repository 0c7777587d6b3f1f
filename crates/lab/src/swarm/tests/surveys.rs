//! Tests of surveys in the simulated swarm: all members come to the same ones, and crawl by them, whoever dies or comes late.

use super::*;
use crate::swarm::{clocks::wall_time, ledger::Purpose};
use nearcrawl_core::event::{Event, SurveyEvent};
use nearcrawl_model::{
    message::Gossip,
    record::ServerRecord,
    server_rows::{RowsOf, ServerRow},
    survey::{SurveyEntry, SurveyHead, SurveyPlan, SurveyRef, SurveyScope, SurveyState, SurveyView, Wishes, survey_id},
    survey_probes::{ProbeOutcome, SurveyProbes},
    url::Host,
};

const SHAPE: TableShape = TableShape { hosts: 12, hosts_per_subnet: 2, pages: 12, shared: 0 };
const PLACES: [u8; 5] = [5, 25, 50, 75, 95];

fn entries(hosts: &[usize]) -> Vec<SurveyEntry> {
    let labels = |host: usize| vec![("parity".to_owned(), if host.is_multiple_of(2) { "even" } else { "odd" }.to_owned())];
    let entry = |host: &usize| SurveyEntry { url: PageUrl::parse(&format!("http://s{host}.test/")).unwrap(), labels: labels(*host) };
    hosts.iter().map(entry).collect()
}

fn plan(hosts: &[usize], depth: u8) -> SurveyPlan {
    let wishes = Wishes { depth: Some(depth), ..Wishes::default() };
    SurveyPlan { name: "some".to_owned(), wishes, entries: entries(hosts), ..SurveyPlan::default() }
}

/// A swarm that crawls nothing but what it is told, with so many running.
fn quiet(seed: u64, running: usize) -> World {
    let settings = Settings { scope: Scope::default(), ..settings(2) };
    let web = TableWeb::random(&SHAPE, seed);
    let hierarchy = hierarchy(SHAPE.hosts.div_ceil(SHAPE.hosts_per_subnet));
    let mut world = World::new(WorldConfig { seed, settings, hierarchy, places: PLACES.to_vec() }, web);
    for number in 0..running {
        world.start(number);
        world.run(300);
    }
    world.run(MINUTE);
    world
}

fn make(world: &mut World, number: usize, plan: SurveyPlan) {
    let signed = world.crawler(number).unwrap().view().new_survey(plan).unwrap();
    world.tell_member(number, Event::Survey(SurveyEvent::Made(signed)));
}

fn change(world: &mut World, number: usize, state: SurveyState) {
    let signed = world.crawler(number).unwrap().view().changed_survey("some", state).unwrap();
    world.tell_member(number, Event::Survey(SurveyEvent::Made(signed)));
}

fn seen_by(world: &World, number: usize) -> Option<SurveyView> {
    let which: SurveyRef = "some".parse().unwrap();
    world.crawler(number)?.view().survey(&which).ok()
}

fn all_see(world: &World, state: SurveyState) -> bool {
    world.running().into_iter().all(|number| seen_by(world, number).is_some_and(|survey| survey.state == state))
}

/// What a crawl from the list, as deep as the survey wants it, comes to: each host by itself, because links to others are not followed.
fn truth(world: &World, hosts: &[usize], depth: u8) -> Truth {
    let mut all = Truth::default();
    for entry in entries(hosts) {
        let scope = Scope { hosts: [entry.url.host()].into(), ..Scope::default() };
        let one = walk(&world.web, &[entry.url], &scope, depth, "nearcrawl");
        all.asked.extend(one.asked);
        all.hosts.extend(one.hosts);
        (all.pages, all.cut) = (all.pages + one.pages, all.cut + one.cut);
    }
    all
}

#[test]
fn a_survey_is_crawled_once_though_its_creator_dies_and_is_known_to_who_comes_late() {
    for seed in 1..4 {
        let mut world = quiet(seed, 4);
        let hosts = [0, 3, 4, 7, 10];
        make(&mut world, 1, plan(&hosts, 5));
        assert!(world.run_up_to(2_000, |world| all_see(world, SurveyState::Running)), "all hear of it at once");
        world.kill(1);
        let truth = truth(&world, &hosts, 5);
        assert!(truth.asked.len() > 20, "the web is worth a crawl: {}", truth.asked.len());
        // A forger says that there is a newer version, and has none.
        let head = SurveyHead { id: survey_id(&world.member(1), "some"), revision: 9, digest: [0xff; 16] };
        world.tell_member(0, Event::Gossiped { author: world.member(2), gossip: Gossip::Surveys(vec![head]) });
        world.run(MINUTE);
        world.start(4);
        assert!(world.run_until(2 * MINUTE, |world| all_see(world, SurveyState::Running)), "who comes late asks");
        finish(&mut world, &truth, 30 * MINUTE);
        assert_fetched(&world, &truth, &BTreeSet::new());
        assert_polite(&world);
        let late = seen_by(&world, 4).unwrap();
        assert_eq!((late.revision, late.entries.len(), late.creator, late.is_mine), (1, hosts.len(), world.member(1), false));
        let label = world.crawler(4).unwrap().view().why(&"s3.test".parse().unwrap(), &Default::default());
        assert_eq!(label.surveys[0].labels["parity"], ["odd".to_owned()].into());
    }
}

#[test]
fn a_paused_survey_stops_requests_and_a_resumed_one_goes_on_where_it_stood() {
    let mut world = quiet(7, 3);
    let hosts = [1, 2, 5];
    let truth = truth(&world, &hosts, 6);
    make(&mut world, 0, plan(&hosts, 6));
    let fetched = |world: &World| world.ledger.fetches().len();
    assert!(world.run_until(5 * MINUTE, |world| fetched(world) >= 8), "it is crawled");
    change(&mut world, 0, SurveyState::Paused);
    assert!(world.run_until(MINUTE, |world| all_see(world, SurveyState::Paused)));
    world.run(10_000);
    let before = fetched(&world);
    assert!(before < truth.asked.len(), "in the middle of it: {before} of {}", truth.asked.len());
    world.run(5 * MINUTE);
    assert_eq!(fetched(&world), before, "nothing is asked");
    change(&mut world, 0, SurveyState::Running);
    finish(&mut world, &truth, 30 * MINUTE);
    assert_fetched(&world, &truth, &BTreeSet::new());
}

#[test]
fn an_end_date_ends_it_everywhere_and_who_was_cut_off_hears_of_it_when_the_network_is_whole() {
    let mut world = quiet(3, 4);
    world.split(&[&[0, 1], &[2, 3]]);
    let ends_at = world.crawler(0).map(|_| WallTime(u64::MAX / 2));
    make(&mut world, 0, SurveyPlan { ends_at, ..plan(&[0], 1) });
    world.run(10_000);
    assert!(seen_by(&world, 1).is_some() && seen_by(&world, 3).is_none(), "it cannot come over");
    world.heal();
    assert!(world.run_until(5 * MINUTE, |world| all_see(world, SurveyState::Running)));
    change(&mut world, 0, SurveyState::Ended);
    assert!(world.run_until(MINUTE, |world| all_see(world, SurveyState::Ended)));
}

#[test]
fn an_end_date_ends_a_survey_by_itself_in_the_middle_of_it() {
    let mut world = quiet(9, 3);
    let hosts = [0, 3, 4, 7];
    let truth = truth(&world, &hosts, 6);
    let end = wall_time(world.now()) + 2 * MINUTE;
    // So slow that two minutes are not enough.
    let wishes = Wishes { min_delay_ms: Some(20_000), ..plan(&hosts, 6).wishes };
    make(&mut world, 0, SurveyPlan { ends_at: Some(WallTime(end)), wishes, ..plan(&hosts, 6) });
    assert!(world.run_up_to(10_000, |world| all_see(world, SurveyState::Running)));
    // Its creator is not needed for that.
    world.kill(0);
    assert!(world.run_until(3 * MINUTE, |world| all_see(world, SurveyState::Ended)), "nobody ends it but the clock");
    assert!(wall_time(world.now()) >= end, "not before its time");
    world.run(10_000);
    let before = world.ledger.fetches().len();
    assert!(before > 0 && before < truth.asked.len(), "in the middle of it: {before} of {}", truth.asked.len());
    world.run(10 * MINUTE);
    assert_eq!(world.ledger.fetches().len(), before, "nothing is asked");
}

/// The records of all members, each host's once, with the names of its surveys.
fn records(world: &World) -> BTreeMap<String, (ServerRecord, BTreeSet<String>)> {
    let mut records = BTreeMap::new();
    for number in world.running() {
        let view = world.crawler(number).unwrap().view();
        let mut after: Option<Host> = None;
        loop {
            let page = view.rows(RowsOf::Servers, after.as_ref()).unwrap();
            for row in page.rows.iter().map(|row| ServerRow::read(row).unwrap()) {
                let surveys = row.surveys.iter().map(|mark| mark.name.clone()).collect();
                let known = records.insert(row.record.host.to_string(), (row.record, surveys));
                assert!(known.is_none(), "two members tell of {known:?}");
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    records
}

#[test]
fn two_surveys_that_share_a_host_crawl_it_once_by_the_deeper_depth_and_each_reads_its_record() {
    for seed in 1..3 {
        let mut world = quiet(seed, 3);
        let mut expected = truth(&world, &[0], 1);
        let deep = truth(&world, &[3, 7], 5);
        let shallow = truth(&world, &[3], 1).pages;
        let of_shared = truth(&world, &[3], 5).pages;
        assert!(of_shared > shallow, "seed {seed}: the depth matters: {of_shared} and {shallow}");
        expected.asked.extend(deep.asked);
        expected.hosts.extend(deep.hosts);
        (expected.pages, expected.cut) = (expected.pages + deep.pages, expected.cut + deep.cut);
        make(&mut world, 0, plan(&[0, 3], 1));
        make(&mut world, 1, SurveyPlan { name: "other".to_owned(), ..plan(&[3, 7], 5) });
        finish(&mut world, &expected, 30 * MINUTE);
        assert_fetched(&world, &expected, &BTreeSet::new());
        assert_polite(&world);
        let records = records(&world);
        let of = |survey: &str| {
            let those = records.iter().filter(|(_, (_, surveys))| surveys.contains(survey));
            those.map(|(host, (record, _))| (host.as_str(), record.pages)).collect::<BTreeMap<_, _>>()
        };
        let (some, other) = (of("some"), of("other"));
        assert_eq!(
            (some.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>()),
            (vec![&"s0.test", &"s3.test"], vec![&"s3.test", &"s7.test"])
        );
        assert_eq!((some["s3.test"], other["s3.test"]), (of_shared, of_shared), "seed {seed}");
    }
}

#[test]
fn a_run_is_due_by_the_interval_of_a_survey_and_not_without_it() {
    let mut world = quiet(4, 2);
    let hourly = plan(&[0], 1);
    make(&mut world, 0, SurveyPlan { wishes: Wishes { interval_ms: Some(60 * MINUTE), ..hourly.wishes }, ..hourly });
    make(&mut world, 1, SurveyPlan { name: "once".to_owned(), ..plan(&[7], 1) });
    let runs = |world: &World| records(world).into_iter().map(|(host, (record, _))| (host, record.run)).collect::<BTreeMap<_, _>>();
    let both = |one, other| BTreeMap::from([("s0.test".to_owned(), one), ("s7.test".to_owned(), other)]);
    assert!(world.run_until(10 * MINUTE, |world| agreed(world).is_some_and(|results| results.summary.total.servers == 2)));
    assert_eq!(runs(&world), both(1, 1));
    world.run(40 * MINUTE);
    assert_eq!(runs(&world), both(1, 1), "an hour is not over");
    world.run(30 * MINUTE);
    assert_eq!(runs(&world), both(2, 1), "the interval of the configuration is a week");
    assert_polite(&world);
}

#[test]
fn a_survey_of_a_country_follows_links_to_servers_there_and_contacts_no_others() {
    let mut world = quiet(5, 3);
    let scope = SurveyScope { countries: ["KE".to_owned()].into(), ..SurveyScope::default() };
    make(&mut world, 2, SurveyPlan { scope, ..plan(&[0], 6) });
    let kenyan = |host: usize| (host / SHAPE.hosts_per_subnet).is_multiple_of(2);
    let fetched = |world: &World| {
        let hosts = world.ledger.fetches().keys().map(|url| url.host().to_string()).collect::<BTreeSet<_>>();
        hosts.into_iter().map(|host| host[1..].trim_end_matches(".test").parse::<usize>().unwrap()).collect::<BTreeSet<_>>()
    };
    assert!(world.run_until(20 * MINUTE, |world| agreed(world).is_some() && fetched(world).len() > 1), "{:?}", fetched(&world));
    world.run(2 * MINUTE);
    let hosts = fetched(&world);
    assert!(hosts.len() > 1 && hosts.iter().all(|host| kenyan(*host)), "{hosts:?}");
    let elsewhere: Vec<_> =
        world.web.addresses.iter().filter(|(host, _)| !kenyan(host.as_str()[1..].trim_end_matches(".test").parse().unwrap())).collect();
    let contacted = |address| world.ledger.contacts.iter().any(|contact| contact.address == address);
    assert!(elsewhere.iter().all(|(_, address)| !contacted(**address)), "not even by a probe");
}

fn probes_of(world: &World, number: usize, creator: usize) -> Option<SurveyProbes> {
    world.crawler(number)?.view().survey_probes(&survey_id(&world.member(creator), "some"))
}

/// Each member's row of the matrix is whole, its servers were contacted once by each, and no contact came too close to another.
#[test]
fn every_member_probes_each_server_of_the_sample_once_though_some_end_and_start_again() {
    for seed in 1..4 {
        let mut world = quiet(seed, 4);
        let hosts = [0, 1, 3, 4, 7, 9, 10];
        make(&mut world, 1, SurveyPlan { probe: Some(5), ..plan(&hosts, 4) });
        let done = |world: &World, number| probes_of(world, number, 1).map_or(0, |probes| probes.done());
        assert!(world.run_until(20 * MINUTE, |world| done(world, 2) >= 2), "seed {seed}: member 2 has begun");
        world.kill(2);
        world.run(2 * MINUTE);
        world.start(2);
        // The creator is not needed.
        world.kill(1);
        world.start(4);
        let whole = |world: &World, number| probes_of(world, number, 1).is_some_and(|probes| probes.is_whole());
        let all_whole = |world: &World| world.running().into_iter().all(|number| whole(world, number));
        assert!(world.run_until(60 * MINUTE, all_whole), "seed {seed}: {:?}", probes_of(&world, 4, 1));
        let whole: Vec<_> = world.running().into_iter().map(|number| (number, probes_of(&world, number, 1).unwrap())).collect();
        let names = |probes: &SurveyProbes| probes.rows.iter().map(|row| row.host.clone()).collect::<Vec<_>>();
        assert_eq!(whole.len(), 4, "seed {seed}");
        assert!(whole.iter().all(|(_, probes)| names(probes) == names(&whole[0].1) && probes.rows.len() == 5), "seed {seed}: {whole:?}");
        for (number, probes) in &whole {
            let answered = probes.rows.iter().filter(|row| row.outcome == ProbeOutcome::Answered && row.rtt_us.is_some()).count();
            assert!(answered >= 4, "seed {seed}: one may have been under way at {number}'s end: {probes:?}");
            let at_survey = |row: &&nearcrawl_model::survey_probes::ProbedServer| {
                let me = world.member(*number);
                let there = world.ledger.contacts.iter().filter(|contact| Some(contact.address) == row.address && contact.by == me);
                let probes = there.filter(|contact| contact.purpose == Purpose::Probe).count();
                // Another server at this address, and the search for the owner of its subnet, may have needed one each.
                !(1..=3).contains(&probes)
            };
            assert!(probes.rows.iter().find(at_survey).is_none(), "seed {seed}: {probes:?}");
        }
        assert_polite(&world);
    }
}

#[test]
fn a_paused_survey_has_nothing_probed_and_a_resumed_one_goes_on() {
    let mut world = quiet(5, 3);
    make(&mut world, 0, SurveyPlan { probe: Some(6), ..plan(&[0, 1, 3, 4, 7, 9], 1) });
    let done = |world: &World| world.running().into_iter().filter_map(|n| probes_of(world, n, 0)).map(|probes| probes.done()).sum::<u32>();
    assert!(world.run_until(20 * MINUTE, |world| done(world) >= 3));
    change(&mut world, 0, SurveyState::Paused);
    assert!(world.run_until(MINUTE, |world| all_see(world, SurveyState::Paused)));
    world.run(10_000);
    let before = (done(&world), world.ledger.probes());
    assert!(before.0 < 18, "in the middle of it");
    world.run(10 * MINUTE);
    assert_eq!((done(&world), world.ledger.probes()), before);
    change(&mut world, 0, SurveyState::Running);
    assert!(world.run_until(60 * MINUTE, |world| done(world) == 18), "{}", done(&world));
    assert_polite(&world);
}
