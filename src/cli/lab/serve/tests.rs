//! Tests that a real crawl of the served web finds what the laboratory computes.

use super::*;
use crate::io::tasks::{self, TaskKind};
use crate::node::{
    config::{Config, CrawlRule},
    standalone,
};
use clap::{CommandFactory, Parser};
use nearcrawl_core::crawl::site::{SiteRules, yields::Price};
use nearcrawl_lab::depth::crawl;
use nearcrawl_model::record::ServerRecord;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

#[derive(Debug, Parser)]
struct TestCli {
    #[command(flatten)]
    args: ServeArgs,
}

fn args(line: &str) -> ServeArgs {
    TestCli::try_parse_from(["serve"].into_iter().chain(line.split_whitespace())).unwrap().args
}

#[test]
fn the_help_can_be_typed() {
    TestCli::command().debug_assert();
    for example in EXAMPLES.replace(" \\\n    ", " ").lines().filter_map(|line| line.strip_prefix("  nearcrawl lab serve")) {
        args(example);
    }
    for wrong in ["--sites 0", "--sites 5 --pages 100", "--listen nowhere"] {
        assert!(TestCli::try_parse_from(["serve"].into_iter().chain(wrong.split_whitespace())).is_err(), "{wrong}");
    }
}

#[test]
fn every_site_has_an_address_of_its_own_far_from_its_neighbours() {
    let addresses: BTreeSet<Ipv4Addr> = (0..100_000).map(address_of).collect();
    assert_eq!(addresses.len(), 100_000);
    let blocks: BTreeSet<[u8; 3]> = (0..200).map(|site| address_of(site).octets()[..3].try_into().unwrap()).collect();
    assert_eq!(blocks.len(), 200);
    assert!(address_of(MAX_SITES - 1).is_loopback());
}

/// Pages, distinct external hosts and distinct external URLs of each host.
type Found = BTreeMap<String, (u64, u64, u64)>;

/// What a real crawl found.
async fn crawled(served: &Served, depth: u8, price: Price) -> Found {
    found_by(Config::default(), served, depth, price).await
}

async fn found_by(mut config: Config, served: &Served, depth: u8, price: Price) -> Found {
    config.crawl.depth = depth;
    (config.crawl.rule, config.crawl.yield_price) = (CrawlRule::Yield, price);
    (config.crawl.max_pages_per_run, config.crawl.min_delay, config.crawl.delay_factor) = (None, Duration::ZERO, 0);
    (config.crawl.ports, config.crawl.allow_ranges) = (vec![served.web.port], vec!["127.0.0.0/8".parse().unwrap()]);
    config.dns.servers = served.dns.iter().map(DnsServer::address).collect();
    (config.api.listen, config.contact) = (None, Some("nobody@lab.test".to_owned()));
    let urls = (0..served.sites).filter_map(|site| served.web.url(&served.web.plan(site), &Place::Front)).collect();
    let found = standalone::crawl(config, urls, None, &mut standalone::Unwatched).await.unwrap();
    assert!(found.exact && found.nowhere == 0);
    let counts = |record: ServerRecord| (record.host.to_string(), (record.pages, record.external_hosts, record.external_urls));
    found.servers.into_iter().map(counts).collect()
}

/// The same, as the laboratory computes it.
fn computed(served: &Served, depth: u8, price: Price) -> Found {
    let rules = SiteRules { depth, price, pages_per_run: 0, product_token: "nearcrawl".to_owned() };
    let mut counts: BTreeMap<String, (u64, BTreeSet<_>, BTreeSet<_>)> = BTreeMap::new();
    for site in 0..served.sites {
        let plan = served.web.plan(site);
        for page in crawl::tree(&served.web, site, &rules).pages {
            let count = counts.entry(HostName::of(&plan, &page.place).to_string()).or_default();
            count.0 += 1;
            count.1.extend(page.named.iter().map(|elsewhere| elsewhere.host));
            count.2.extend(page.named);
        }
    }
    counts.into_iter().map(|(host, (pages, hosts, urls))| (host, (pages, hosts.len() as u64, urls.len() as u64))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_crawl_counts_what_the_laboratory_computes() {
    let questions: [(&str, &[(u8, f64)]); 2] = [("", &[(2, 0.0)]), ("--apart", &[(3, 0.0), (3, 0.2)])];
    for (apart, questions) in questions {
        let line = format!("--listen 127.0.0.1:0 --dns 127.0.0.1:0 --sites 9 --seed 3 --change subdomains=4 {apart}");
        let served = Served::start(&args(&line)).await.unwrap();
        for (depth, price) in questions.iter().copied() {
            let price = Price::of(price).unwrap();
            let (real, lab) = (crawled(&served, depth, price).await, computed(&served, depth, price));
            assert_eq!(real, lab, "{apart} to depth {depth} at {price}");
        }
        let pages = |counts: Found| counts.values().map(|(pages, ..)| pages).sum::<u64>();
        let (whole, cut) = (pages(computed(&served, 3, Price::default())), pages(computed(&served, 3, Price::of(0.2).unwrap())));
        assert!(whole > 60 && cut < whole && computed(&served, 3, Price::default()).len() > 9, "{whole} {cut}");
        served.servers.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_whose_reading_panics_counts_as_failed_and_the_crawl_comes_to_its_end() {
    let served = Served::start(&args("--listen 127.0.0.1:0 --dns 127.0.0.1:0 --sites 9 --seed 3")).await.unwrap();
    let pages = |counts: Found| counts.values().map(|(pages, ..)| pages).sum::<u64>();
    let all = pages(crawled(&served, 2, Price::default()).await);
    tasks::inject_panics(TaskKind::PageReading, 2);
    // Pages that are evaluated are read on threads of their own.
    let mut config = Config::default();
    config.crawl.evaluation = true;
    let some = pages(found_by(config, &served, 2, Price::default()).await);
    let panicked = tasks::table().into_iter().find(|line| line.name == TaskKind::PageReading.name()).map_or(0, |line| line.panicked);
    assert!(panicked == 2 && some > 0 && some <= all - 2, "{some} of {all} pages, {panicked} panics");
    served.servers.stop().await;
}

#[tokio::test]
async fn as_many_sites_as_have_the_pages_and_their_front_pages_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let seeds = dir.path().join("seeds.txt");
    let served = Served::start(&args(&format!("--listen 127.0.0.1:0 --pages 5000 --seeds {}", seeds.display()))).await.unwrap();
    let pages: u64 = (0..served.sites).map(|site| served.web.plan(site).pages(20)).sum();
    assert!((5_000..20_000).contains(&pages), "{pages}");
    let urls = std::fs::read_to_string(seeds).unwrap();
    assert_eq!(urls.lines().count() as u64, served.sites);
    assert!(urls.starts_with(&format!("http://s0.test:{}/\n", served.web.port)) && served.told().contains("sites with"));
    served.servers.stop().await;
}
