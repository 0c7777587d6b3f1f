//! Tests that a crawl tells what fails in the pages it fetches, if it is asked to.
//!
//! They run the program as people start it, and a real server.

use crate::support::{Ground, nearcrawl};
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite, WebServers};
use nearcrawl_model::{
    evaluation::{EvaluationCounts, Gate, Rule},
    record::ServerRecord,
};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

/// Three pages: one in order, one with failures, one that is written to cost.
struct Gallery;

impl HttpSite for Gallery {
    fn respond(&self, _: &str, path: &str) -> HttpAnswer {
        let links = "<p><a href=/pictures>Pictures</a> <a href=/depths>Depths</a></p>";
        match path {
            "/" => HttpAnswer::html(format!("<!doctype html><html lang=en><title>Gallery</title>{links}")),
            "/pictures" => HttpAnswer::html(
                "<title>Pictures</title>\n<img src=a><img src=b><img src=c alt='A mask'>\n<a href=/><img src=d alt=''></a>",
            ),
            "/depths" => HttpAnswer::html("<div>".repeat(20_000)),
            _ => HttpAnswer::status(404),
        }
    }
}

/// Crawls the gallery with these further arguments; what was printed, and the server's record.
async fn crawl(address: SocketAddr, further: &[&str]) -> (String, ServerRecord) {
    let directory = tempfile::tempdir().unwrap();
    let (out, url) = (directory.path().join("records.jsonl"), format!("http://{address}/"));
    let fixed = ["crawl", &url, "--allow-range", "127.0.0.0/8", "--min-delay", "10ms", "--out", out.to_str().unwrap()];
    let ended = nearcrawl(&[fixed.as_slice(), further].concat()).await;
    assert_eq!(ended.code, Some(0), "{}", ended.complained);
    let records = std::fs::read_to_string(&out).unwrap();
    assert_eq!(records.lines().count(), 1, "{records}");
    (ended.said, serde_json::from_str(&records).unwrap())
}

#[tokio::test]
async fn a_crawl_counts_detected_failures_if_it_is_to() {
    let ground = Ground::claim();
    let address = SocketAddr::from((Ipv4Addr::from_bits(ground.first().to_bits() + 9), 8080));
    let web = WebServers::start([address], Arc::new(Gallery)).await.unwrap();

    let (said, record) = crawl(address, &["--evaluate"]).await;
    let EvaluationCounts { pages, refused, failures, failing, took_us, .. } = record.evaluation.clone().unwrap();
    assert_eq!((record.pages, pages, failing), (3, 2, 1));
    assert_eq!(refused, BTreeMap::from([(Gate::TooDeep, 1)]));
    assert_eq!(failures, BTreeMap::from([(Rule::ImageName, 2), (Rule::LinkName, 1), (Rule::PageLanguage, 1)]));
    let failing: Vec<_> = record.failing_pages.by_rule().iter().map(|(rule, pages)| (*rule, pages[0].line, pages.len())).collect();
    assert_eq!(failing, [(Rule::ImageName, 2, 1), (Rule::LinkName, 3, 1), (Rule::PageLanguage, 1, 1)]);
    assert_eq!(record.failing_pages.by_rule()[&Rule::LinkName][0].url.path_and_query(), "/pictures");
    assert!(took_us > 0, "evaluating is part of the access, and is measured");
    assert!(said.contains("4 accessibility failures detected in 1 of 2 pages evaluated, 1 refused"), "{said}");
    let row = |line: &str| line.starts_with("23a2a8") && line.contains(" 2 ");
    assert!(said.lines().any(row), "{said}");

    let (said, record) = crawl(address, &["--json"]).await;
    assert_eq!((record.pages, record.evaluation), (3, None));
    let totals: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&totals["summary"]["total"]["evaluated"], &totals["summary"]["total"]["detected_failures"]),
        (&0.into(), &0.into()),
        "{said}"
    );
    web.stop().await;
}

/// What people see of `evaluate`: its exit code, and what it prints where.
#[tokio::test]
async fn files_that_are_no_pages_are_named_and_the_others_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("page.html"), "<!doctype html>\n<html lang=en><title>x</title>\n<img src=a>").unwrap();
    let ended =
        nearcrawl(&["evaluate", &path("none.html"), env!("CARGO_BIN_EXE_nearcrawl"), &path("page.html"), "--earl", &path("earl.jsonld")])
            .await;
    assert_eq!(ended.code, Some(66), "{}", ended.complained);
    assert!(ended.said.contains("page.html:3: 23a2a8 Image has non-empty accessible name: <img src=\"a\">"), "{}", ended.said);
    assert!(ended.complained.contains("2 of 3 files were not evaluated:"), "{}", ended.complained);
    assert!(ended.complained.contains("/nearcrawl: it is not HTML"), "{}", ended.complained);
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path("earl.jsonld")).unwrap()).unwrap();
    assert_eq!(report["@graph"].as_array().map(Vec::len), Some(2), "the page, and the program that was refused");

    let program = nearcrawl(&["evaluate", env!("CARGO_BIN_EXE_nearcrawl")]).await;
    assert_eq!((program.code, program.said.contains("failures detected in 0 of 0")), (Some(65), true), "{}", program.said);
    let page = nearcrawl(&["evaluate", "--json", &path("page.html")]).await;
    assert_eq!((page.code, page.complained.as_str()), (Some(0), ""), "what was detected is no failure of the command");
}
