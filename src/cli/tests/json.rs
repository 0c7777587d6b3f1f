//! Tests that all JSON outputs follow the rules of docs/JSON.md, and that every name in them is explained.
//!
//! The explanation is there or in the API's description.

use super::type_in;
use crate::{
    cli::{crawl::CrawlView, doctor::look},
    io::request_log::RequestLine,
    node::{
        api::fake::{self, FakeNode},
        config::Config,
        standalone::Findings,
    },
};
use nearcrawl_lab::scenario::Violation;
use nearcrawl_model::{
    evaluation::{Evaluation, EvaluationCounts, Gate},
    fetch::{FetchError, ResolveError},
    summary::Summary,
    time::WallTime,
    view::RefusedSeed,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path};

/// The rules, and the names that only commands have.
const DOCUMENT: &str = include_str!("../../../docs/JSON.md");

/// Objects whose keys are data: status codes, reasons, countries.
const MAPS: [&str; 16] = [
    "labels",
    "by",
    "by_failure",
    "by_status",
    "declined",
    "declined_by_others",
    "delegated_by_probes",
    "failing_pages",
    "failures",
    "refusals",
    "registries",
    "subnets_by_country",
    "unresolved",
    "records",
    "bad",
    "refused",
];

/// Names that hold an access point's full id.
const ACCESS_POINTS: [&str; 8] = ["access_point", "answered_by", "creator", "expelled_by", "invited_by", "owner", "runner_up", "to"];

/// Names that hold one word of an enumeration.
const WORDS: [&str; 8] = ["gate", "kind", "liveness", "policy", "reason", "rule", "state", "status"];

/// What must not be said, as a name or as its end.
const FORBIDDEN: [&str; 13] =
    ["peer", "peer_id", "peers", "most", "least", "whole", "_us", "_permille", "_percent", "_share", "_kb", "_kib", "_sentence"];

/// Names of what is data, in the words of others or of the person who asks, and of answers to requests that were not granted.
const FREE: [&str; 10] =
    ["content_usage", "error", "generator", "hint", "issuer", "name", "organisation", "robots_content_usage", "title", "values"];

/// The text, or the texts of a list.
fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    std::iter::once(value).chain(list).filter_map(Value::as_str)
}

/// Whether a text is a sentence, or more than a word or a name.
fn is_sentence(text: &str) -> bool {
    text.split(' ').filter(|word| word.chars().any(char::is_alphabetic)).count() > 2
}

/// What is wrong with a value under this name.
fn wrong(name: &str, value: &Value) -> Option<&'static str> {
    let is_text_or_nothing =
        value.is_string() || value.is_null() || value.as_array().is_some_and(|lines| lines.iter().all(Value::is_string));
    let is_number_or_nothing = value.as_f64().is_some_and(|number| number >= 0.0) || value.is_null();
    let is_of_numbers = value.as_object().is_some_and(|members| members.values().all(|one| one.is_number() || one.is_null()));
    let text = value.as_str();
    let is_moment = |text: &str| text.parse::<WallTime>().is_ok();
    let forbidden = |word: &&str| if word.starts_with('_') { name.ends_with(word) } else { name == *word };
    match name {
        _ if FORBIDDEN.iter().any(forbidden) => Some("is a name that is not used"),
        _ if name.starts_with("since") || name.ends_with("since") => Some("does not say whether it is a moment or a duration"),
        // Of many durations the mean, median and so on stand in an object of that name.
        _ if name.ends_with("_ms") && !is_number_or_nothing && !is_of_numbers => Some("is no duration in milliseconds"),
        _ if name.ends_with("bytes") && !(value.is_u64() || value.is_object()) => Some("is no number of bytes"),
        _ if name.ends_with("_ratio") && !is_number_or_nothing => Some("is no ratio"),
        _ if name.ends_with("_at") && !value.is_null() && !text.is_some_and(is_moment) => Some("is no moment in UTC"),
        _ if !name.ends_with("_at") && text.is_some_and(is_moment) => Some("is a moment, which its name does not say"),
        _ if name.ends_with("_text") && !is_text_or_nothing => Some("is no text"),
        _ if !name.ends_with("_text") && !FREE.contains(&name) && texts(value).any(is_sentence) => {
            Some("is a sentence, which its name does not say")
        }
        _ if ACCESS_POINTS.contains(&name) && text.is_some_and(|id| id.len() != 52 || !id.starts_with("12D3KooW")) => Some("is no full id"),
        _ if WORDS.contains(&name) && text.is_some_and(|word| word.contains(' ') || word.is_empty()) => Some("is not one word"),
        _ => None,
    }
}

/// Walks through an output, and notes what breaks a rule and which names there are.
fn walk(at: &str, value: &Value, known: &dyn Fn(&str) -> bool, broken: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(at, item, known, broken)),
        Value::Object(fields) => {
            let is_map = at.rsplit('/').next().is_some_and(|name| MAPS.contains(&name)) || at.contains("/by/");
            for (name, value) in fields {
                let here = format!("{at}/{name}");
                if !is_map {
                    broken.extend(wrong(name, value).map(|what| format!("{here} {what}: {value}")));
                    if !known(name) {
                        broken.push(format!("{here} is explained neither in docs/JSON.md nor in the API's description"));
                    }
                }
                walk(&here, value, known, broken);
            }
        }
        _ => {}
    }
}

/// What a running daemon answers, by commands and by its API.
async fn of_a_daemon(node: &FakeNode) -> Vec<(String, Value)> {
    let mut outputs = Vec::new();
    let to = fake::access_point(3);
    let (mv, seed) = (format!("move 192.0.2.0/24 {to}"), "seed add http://a.test/ http://b.invalid/");
    let measure = format!("measure {to}");
    for command in [
        "status",
        "members",
        "results",
        "why http://a.test/",
        mv.as_str(),
        "leave",
        measure.as_str(),
        seed,
        "trend --from 1 --to 2 --by tld",
        "results --run 2",
        "results --by country,tld",
        "servers",
        "swarm members",
    ] {
        let text = type_in(&format!("{command} --json --api {}", node.url("/"))).await.unwrap();
        outputs.push((command.to_owned(), serde_json::from_str(&text).unwrap()));
    }
    for path in ["/api/ownership", "/api/servers", "/api/cross-table?by=country,organisation", "/api/why?q=two%20words"] {
        let client = crate::io::client::client().no_proxy().build().unwrap();
        let answer = client.get(node.url(path)).send().await.unwrap();
        outputs.push((path.to_owned(), answer.json().await.unwrap()));
    }
    outputs
}

/// What commands say that need no daemon.
async fn of_commands(directory: &Path) -> Vec<(String, Value)> {
    let write = |name: &str, text: String| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let record = serde_json::to_string(&fake::server(1)).unwrap();
    let records = write("records.jsonl", record);
    let config = write(
        "node.toml",
        format!(
            "state_dir = {:?}\ncontact = \"crawl@museum.ke\"\n[crawl]\nmin_delay = \"1s\"\n",
            directory.join("state").display().to_string()
        ),
    );
    let page = write("page.html", "<!doctype html><html><body><img src=a.png></body></html>".to_owned());
    let root = directory.join("ROOT.key").display().to_string();
    let scenario = write("quiet.toml", "members = 2\nsubnets = 2\nhosts = 2\nminutes = 1\n".to_owned());
    let lines = [
        format!("lab swarm --scenario {scenario} --json"),
        "lab map --claims 200 --json".to_owned(),
        format!("plan --coverage 0.9 --records {records} --assumed --config {config} --json"),
        format!("check --config {config} --json"),
        format!("init --config {config} --json"),
        format!("swarm init --out {root} --json"),
        format!("swarm invite --key {root} {} --label Nairobi --json", fake::access_point(1)),
        format!("evaluate {page} --json"),
        "hierarchy show 41.90.0.1 --json".to_owned(),
        "hierarchy stats --json".to_owned(),
        "hierarchy diff built-in built-in --json".to_owned(),
    ];
    let mut outputs = Vec::new();
    for line in lines {
        let text = type_in(&line).await.unwrap_or_else(|why| panic!("{line}: {why}"));
        outputs.push((line.split(' ').take(2).collect::<Vec<_>>().join(" "), serde_json::from_str(&text).unwrap()));
    }
    let doctor = "contact = \"crawl@museum.ke\"\n[dns]\nservers = [\"127.0.79.54\"]\ntimeout = \"100ms\"\nattempts = 1\n";
    let view = look(&Config::parse(doctor, directory).unwrap()).await;
    outputs.push(("doctor".to_owned(), serde_json::to_value(view).unwrap()));
    outputs
}

/// What `crawl --json` says of a crawl that had everything.
fn of_a_crawl() -> Value {
    let mut evaluation = EvaluationCounts::default();
    evaluation.count(&Evaluation::refused(Gate::NotHtml), 1_500);
    let summary = Summary { evaluation, levels: vec![Default::default()], ..fake::results(0).summary };
    let mut server = fake::server(1);
    server.by_failure = BTreeMap::from([(FetchError::HeadTimeout, 1)]);
    server.changes = Some(Default::default());
    let findings = Findings {
        summary,
        servers: vec![server.clone()],
        exact: true,
        external_hosts: 1,
        external_urls: 1,
        external_domains: 1,
        beyond_scope: 0,
        nowhere: 0,
        unresolved: BTreeMap::from([(ResolveError::NoSuchName, 1)]),
        signal: None,
    };
    let without = [RefusedSeed { url: "https://a.test/".to_owned(), reason_text: "no such host".to_owned() }];
    json!([CrawlView::of(&findings, &without), server])
}

/// A line of the log of requests that has everything.
fn of_the_log() -> Value {
    json!(RequestLine {
        asked_at: WallTime(1_790_000_000_000),
        reason: "second-try".to_owned(),
        host: "a.test".to_owned(),
        address: "192.0.2.1".parse().ok(),
        port: Some(443),
        path: Some("/".to_owned()),
        path_sha256: Some("00".repeat(32)),
        level: Some(1),
        tree: Some("a.test".to_owned()),
        run: Some(1),
        surveys: vec!["unis".to_owned()],
        access_point: Some(fake::access_point(3)),
        fetch_status: Some(200),
        failure: Some("closed".to_owned()),
        bytes: Some(1),
        took_ms: Some(1),
        lines: Some(1),
        ..RequestLine::default()
    })
}

#[tokio::test]
async fn every_output_follows_the_rules_and_is_explained() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let directory = tempfile::tempdir().unwrap();
    let client = crate::io::client::client().no_proxy().build().unwrap();
    let description: Value = client.get(node.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
    let schemas = description["components"]["schemas"].as_object().unwrap();
    let described = |name: &str| schemas.values().any(|schema| schema.to_string().contains(&format!("\"{name}\":")));
    let known = |name: &str| described(name) || DOCUMENT.contains(&format!("`{name}`"));

    let mut outputs = of_a_daemon(&node).await;
    outputs.extend(of_commands(directory.path()).await);
    outputs.push(("crawl".to_owned(), of_a_crawl()));
    outputs.push(("log".to_owned(), of_the_log()));
    let broken = Violation { at_ms: 1, what: "two members fetched one subnet at one time".to_owned() };
    outputs.push(("a broken promise".to_owned(), json!({ "first_violation": broken })));
    // The commands of the laboratory have names of their own, which are in no description of the API.
    let verdict = &outputs.iter().find(|(name, _)| name == "lab swarm").unwrap().1;
    let document = |name: &String| !DOCUMENT.contains(&format!("`{name}`"));
    let missing: Vec<&String> = verdict.as_object().unwrap().keys().filter(|name| document(name)).collect();
    assert!(missing.is_empty(), "docs/JSON.md does not explain {missing:?}");
    let mut broken = Vec::new();
    for (name, output) in &outputs {
        walk(name, output, &known, &mut broken);
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    node.end().await;
}

#[test]
fn the_rules_find_what_breaks_them() {
    let cases = [
        (json!({"peer_id": "12D3KooWx"}), true),
        (json!({"owner": "0202020202020202"}), true),
        (json!({"owner": null}), false),
        (json!({"since_ms": 3}), true),
        (json!({"age_ms": "3 s"}), true),
        (json!({"age_ms": 3.5}), false),
        (json!({"visited": "2026-11-22T20:17:14.000Z"}), true),
        (json!({"visited_at": 1_790_000_000_000_u64}), true),
        (json!({"visited_at": "2026-11-22T20:17:14.000Z"}), false),
        (json!({"state": "is complete: 7 pages fetched"}), true),
        (json!([{"state": "complete"}]), false),
        (json!({"path": ["block 9.0.1.0/24, its own subnet"]}), true),
        (json!({"path_text": ["block 9.0.1.0/24, its own subnet"], "error": "it is not there"}), false),
        (json!({"busy_permille": 250}), true),
        (json!({"wire_bytes": "3 KiB"}), true),
        (json!({"by_status": {"200": 1}}), false),
    ];
    for (output, breaks) in cases {
        let mut broken = Vec::new();
        walk("", &output, &|_| true, &mut broken);
        assert_eq!(!broken.is_empty(), breaks, "{output}: {broken:?}");
    }
}
