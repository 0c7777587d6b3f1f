//! Tests that the corpus is what the tests that crawl it take it for.

use super::*;
use nearcrawl_lab::oracle::Kind;
use nearcrawl_lab::web::dns::{DnsServer, Zone};
use nearcrawl_lab::web::server::WebServers;
use std::sync::Arc;

#[test]
fn a_thousand_real_pages_hang_together_over_twenty_hosts_and_more() {
    let corpus = Corpus::open(CorpusPlan::default()).unwrap_or_else(|why| panic!("{why}"));
    let expected = corpus.expected();
    let hosts: BTreeSet<Host> = expected.fetched.keys().map(PageUrl::host).collect();
    let files: usize = corpus.hosts.iter().map(|host| host.pages).sum();
    println!(
        "{} hosts, {files} files; {} URLs, {} pages, {} cut by depth, {} refused, {} by script",
        hosts.len(),
        expected.fetched.len(),
        expected.pages(),
        expected.cut_by_depth.len(),
        expected.refused_by_robots.len(),
        expected.cut_by_script.len()
    );
    assert!(hosts.len() >= 20, "{hosts:?}");
    assert_eq!(hosts.len(), corpus.hosts.len(), "a host is not reached");
    assert!((600..=1500).contains(&expected.pages()), "{} pages", expected.pages());
    assert!(expected.pages() <= files);
    // One host a tree: the directories were split so that nothing depends on the order in which hosts are reached.
    assert!(expected.trees.iter().all(|(host, tree)| host == tree));
    let (closed, path) = corpus.closed();
    let refused: Vec<String> = expected.refused_by_robots.iter().map(ToString::to_string).collect();
    assert!(refused.iter().any(|url| url.contains(closed.name.as_str()) && url.contains(path)), "{refused:?}");
    let chain: Vec<&PageUrl> = expected.fetched.keys().filter(|url| url.host().as_str() == CHAIN_HOST).collect();
    // The root redirects to page 1 at the same level 0, so pages 1 to 9 are within eight levels.
    assert_eq!(chain.len(), 1 + 9, "{chain:?}");
    assert!(expected.fetched.values().any(|visit| visit.kind == Kind::Redirect && visit.level == 0));
    assert!(expected.out_of_scope.iter().any(|host| LEFT_OUT.ends_with(host.as_str())));
}

#[tokio::test]
async fn it_is_served_with_links_that_cross_hosts() {
    let corpus = Arc::new(Corpus::open(CorpusPlan { net: 41, ..CorpusPlan::default() }).unwrap_or_else(|why| panic!("{why}")));
    let web = WebServers::start(corpus.web_servers(), corpus.clone()).await.unwrap();
    let dns = DnsServer::start(corpus.name_server(), Zone::new(corpus.names())).await.unwrap();
    assert_eq!(dns.address().ip(), corpus.name_server().ip());
    let client = nearcrawl::io::client::client().no_proxy().build().unwrap();
    let mut crossing = 0;
    for host in &corpus.hosts {
        let url = PageUrl::parse(&format!("http://{}:{PORT}{}", host.name, host.first_page)).unwrap();
        let dialled = format!("http://{}:{PORT}{}", host.address, url.path_and_query());
        let answer = client.get(dialled).header("host", url.origin().authority()).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{url}");
        let body = answer.bytes().await.unwrap();
        let others = links::of(&body, &url).into_iter().filter(|link| link.host() != host.name);
        crossing += others.filter(|link| link.host().tld() == Some(TLD)).count();
    }
    assert!(crossing > 100, "{crossing}");
    assert_eq!((web.log().len(), web.log().most_requests_at_once().at_once), (corpus.hosts.len(), 1));
    drop(client);
    web.stop().await;
}

#[test]
fn without_a_corpus_it_is_said_how_to_get_it() {
    let missing = CorpusMissing("/nowhere".into(), "no such directory".to_owned());
    assert!(missing.to_string().contains("scripts/corpus.sh"));
}
