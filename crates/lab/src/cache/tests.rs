//! Tests of the simulated crawl, and of the requests that caches get from it.

use super::{
    Experiment,
    graph::{self, Graph},
    policies::Policy,
    stream::{self, Part},
    synthetic,
    trace::{Crawl, Order},
};
use crate::reading::InputError;
use std::{collections::BTreeSet, num::NonZero};

const ORDERS: [Order; 3] = [Order::Bfs, Order::Dfs, Order::Random];

fn crawl(order: Order, threads: usize, processes: usize) -> Crawl {
    Crawl { order, threads, processes, seed: 5 }
}

/// Sites of 6 pages in a chain each, the first of which links to that of the next site.
fn chains(sites: u32) -> Graph {
    let in_chain = |page: &u32| page % 6 != 5;
    let mut links: Vec<(u32, u32)> = (0..sites * 6).filter(in_chain).map(|page| (page, page + 1)).collect();
    links.extend((0..sites).map(|site| (site * 6, (site + 1) % sites * 6)));
    let site_of = graph::blocks(&links, 6);
    Graph::new(&links, site_of)
}

#[test]
fn every_page_is_fetched_once_in_any_order() {
    let graph = synthetic::web(1);
    for order in ORDERS {
        for (threads, processes) in [(1, 1), (7, 3), (2_000, 1)] {
            let visits = crawl(order, threads, processes).visits(&graph);
            let pages: BTreeSet<u32> = visits.iter().map(|visit| visit.page).collect();
            assert_eq!((pages.len(), visits.len()), (graph.pages(), graph.pages()), "{order:?} {threads} {processes}");
        }
    }
}

#[test]
fn a_site_is_crawled_by_one_thread_at_a_time_of_its_own_process() {
    let graph = synthetic::web(2);
    let crawl = crawl(Order::Bfs, 20, 3);
    let visits = crawl.visits(&graph);
    // Threads take turns: whoever comes at or before the one before begins a new round.
    let mut round: BTreeSet<u32> = BTreeSet::new();
    let mut before = None;
    for visit in &visits {
        let site = graph.site_of(visit.page);
        assert_eq!(visit.thread as usize / 20, crawl.process_of(site));
        if before.replace(visit.thread).is_some_and(|before| before >= visit.thread) {
            round.clear();
        }
        assert!(round.insert(site), "two requests to site {site} at once");
    }
}

#[test]
fn as_many_sites_are_in_progress_as_there_are_threads() {
    let graph = chains(50);
    let visits = crawl(Order::Bfs, 10, 1).visits(&graph);
    for round in visits.chunks(10).take(30) {
        assert_eq!(round.iter().map(|visit| graph.site_of(visit.page)).collect::<BTreeSet<_>>().len(), 10);
    }
    let alone = crawl(Order::Bfs, 1, 1).visits(&graph);
    let changes = alone.windows(2).filter(|pair| graph.site_of(pair[0].page) != graph.site_of(pair[1].page)).count();
    assert_eq!(changes, 49, "one thread crawls one site after the other");
}

#[test]
fn orders_differ_as_they_should() {
    // From page 0 to 1, 2 and 3; from each of these to one more.
    let graph = Graph::new(&[(0, 1), (0, 2), (0, 3), (1, 4), (2, 5), (3, 6)], vec![0; 7]);
    let pages = |order| crawl(order, 1, 1).visits(&graph).iter().map(|visit| visit.page).collect::<Vec<_>>();
    assert_eq!(pages(Order::Bfs), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(pages(Order::Dfs), [0, 3, 6, 2, 5, 1, 4]);
}

#[test]
fn caches_see_the_links_that_they_should() {
    let graph = synthetic::web(3);
    let of = |part, dedupe, per_thread, threads, processes| {
        stream::streams(&graph, &crawl(Order::Bfs, threads, processes), part, dedupe, per_thread)
    };
    let count = |streams: &[stream::Stream]| streams.iter().map(|stream| stream.items().len()).sum::<usize>();
    let full = of(Part::Full, false, false, 9, 4);
    assert_eq!(count(&full), graph.link_count());
    let each = of(Part::Full, false, true, 9, 4);
    assert_eq!((each.len(), count(&each)), (9, graph.link_count()));
    assert!(each.iter().map(stream::Stream::distinct).sum::<usize>() > full[0].distinct());

    let kinds = [Part::Within, Part::Between].map(|part| of(part, false, false, 9, 4));
    assert_eq!(kinds.iter().map(|kind| count(kind)).sum::<usize>(), graph.link_count());
    let within = |page: u32| graph.links(page).iter().filter(|target| graph.site_of(**target) == graph.site_of(page)).count();
    assert_eq!(count(&kinds[0]), (0..graph.pages() as u32).map(within).sum::<usize>());

    let once = |page: u32| graph.links(page).iter().collect::<BTreeSet<_>>().len();
    assert_eq!(count(&of(Part::Full, true, false, 9, 4)), (0..graph.pages() as u32).map(once).sum::<usize>());

    let leaves = crawl(Order::Bfs, 9, 4);
    let process = |page: u32| leaves.process_of(graph.site_of(page));
    let first = (0..graph.pages() as u32).filter(|page| process(*page) == 0);
    let expected = first.flat_map(|page| graph.links(page)).filter(|target| process(**target) != 0).count();
    assert_eq!(count(&of(Part::Cross, false, false, 9, 4)), expected);
    assert!(expected > 0);
}

#[test]
fn a_row_tells_of_all_caches_and_of_min() {
    let graph = chains(40);
    let experiment = Experiment { policies: vec![Policy::Lru, Policy::Infinite], sizes: vec![4, 4096], seed: 1 };
    for per_thread in [false, true] {
        let streams = stream::streams(&graph, &crawl(Order::Bfs, 4, 1), Part::Full, false, per_thread);
        let rows = experiment.run(&streams, NonZero::<usize>::MIN, &|| ());
        let named: Vec<_> = rows.iter().map(|row| (row.policy.as_str(), row.size)).collect();
        assert_eq!(named, [("lru", 4), ("lru", 4096), ("infinite", 4), ("infinite", 4096)]);
        let least = streams.iter().map(stream::Stream::distinct).sum::<usize>() as f64 / graph.link_count() as f64;
        assert!(rows.iter().all(|row| row.requests == graph.link_count() as u64 && row.miss_rate >= least));
        assert_eq!((rows[1].miss_rate, rows[1].vs_min, rows[3].miss_rate), (least, 1.0, least));
        assert!(rows[0].vs_min >= 1.0 && rows[2].vs_min <= 1.0);
    }
    assert_eq!(experiment.task_count(), 6, "and MIN, to compare with");
}

#[test]
fn files_are_read_and_refused_with_their_lines() {
    let links = graph::read_links("g", "# remark\n0\t5\n5\t2\n".as_bytes()).unwrap();
    assert_eq!(links, [(0, 5), (5, 2)]);
    assert_eq!(graph::blocks(&links, 4), [0, 0, 0, 0, 1, 1]);
    let sites = graph::read_sites("h", "5\tb\n0\ta\n2\tb\n99\tc\n".as_bytes(), "g", &links).unwrap();
    assert_eq!((sites[5], sites[2], sites[0]), (0, 0, 1));
    let read = |text: &str| graph::read_links("g", text.as_bytes()).unwrap_err();
    assert!(matches!(read("0\t1\n0 1\n"), InputError::Line { line: 2, .. }));
    assert!(matches!(read("0\t-1\n"), InputError::Line { line: 1, .. }));
    assert!(matches!(read(""), InputError::NoLinks { .. }));
    let hosts = |text: &str| graph::read_sites("h", text.as_bytes(), "g", &links).unwrap_err();
    assert!(matches!(hosts("0\ta\n5\tb\n"), InputError::NoHost { page: 2, .. }));
    assert!(matches!(hosts("0\ta\nx\tb\n"), InputError::Line { line: 2, .. }));
}
