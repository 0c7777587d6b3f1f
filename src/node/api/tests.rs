//! Tests of the API over real sockets.

use super::{
    Api, Token,
    description::Description,
    error::ErrorView,
    fake::{self, FakeNode},
};
use crate::{
    io::tasks::{self, TaskKind},
    node::{
        config::Config,
        metrics::Metrics,
        query::{Query, QueryHandle},
        visits::Visits,
    },
};
use nearcrawl_model::{
    summary::{Dimension, SwarmResults},
    view::{MemberView, OwnershipView, SeedView, ServersPage, State, StatusView, WhyView},
};
use reqwest::{Client, StatusCode, header};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::sync::watch;
use utoipa::OpenApi;

/// All routes with their methods: adding one without describing it, or the other way round, fails.
const ROUTES: [(&str, &str); 42] = [
    ("get", "/"),
    ("get", "/api/admission"),
    ("get", "/api/cross-table"),
    ("get", "/api/distinct"),
    ("get", "/api/events"),
    ("get", "/api/export/rows"),
    ("get", "/api/history"),
    ("get", "/api/log/events"),
    ("get", "/api/log/requests"),
    ("get", "/api/members"),
    ("get", "/api/opt-outs"),
    ("get", "/api/ownership"),
    ("get", "/api/results"),
    ("get", "/api/servers"),
    ("get", "/api/servers/history"),
    ("get", "/api/servers/owners"),
    ("get", "/api/servers/rows"),
    ("get", "/api/settings"),
    ("get", "/api/status"),
    ("get", "/api/sums"),
    ("get", "/api/survey"),
    ("get", "/api/survey/probes"),
    ("get", "/api/surveys"),
    ("get", "/api/verify"),
    ("get", "/api/why"),
    ("get", "/bot"),
    ("get", "/metrics"),
    ("get", "/openapi.json"),
    ("post", "/api/admission"),
    ("post", "/api/declare-lost"),
    ("post", "/api/leave"),
    ("post", "/api/measure"),
    ("post", "/api/move"),
    ("post", "/api/opt-outs"),
    ("post", "/api/opt-outs/withdraw"),
    ("post", "/api/pause"),
    ("post", "/api/pin"),
    ("post", "/api/resume"),
    ("post", "/api/seeds"),
    ("post", "/api/sums"),
    ("post", "/api/survey/state"),
    ("post", "/api/surveys"),
];

fn client() -> Client {
    crate::io::client::client().no_proxy().build().unwrap()
}

async fn get<T: serde::de::DeserializeOwned>(node: &FakeNode, path: &str) -> T {
    let answer = client().get(node.url(path)).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    answer.json().await.unwrap()
}

async fn refused(node: &FakeNode, path: &str, status: StatusCode) -> ErrorView {
    let answer = client().get(node.url(path)).send().await.unwrap();
    assert_eq!(answer.status(), status, "{path}");
    answer.json().await.unwrap()
}

#[tokio::test]
async fn every_question_is_answered_in_its_shape() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let status: StatusView = get(&node, "/api/status").await;
    assert!(status.state_text.starts_with("fetching from"), "{}", status.state_text);
    let members: Vec<MemberView> = get(&node, "/api/members").await;
    assert_eq!(members.iter().filter(|member| member.is_me).count(), 1);
    let why: WhyView = get(&node, "/api/why?q=https://museum.ke.test/a%3Fb=c").await;
    assert_eq!(why.asked, "https://museum.ke.test/a?b=c");

    let all: SwarmResults = get(&node, "/api/results").await;
    assert_eq!(all.summary.by.len(), Dimension::ALL.len());
    let one: SwarmResults = get(&node, "/api/results?by=country").await;
    assert_eq!(one.summary.by.keys().collect::<Vec<_>>(), [&Dimension::Country]);
    let two: SwarmResults = get(&node, "/api/results?by=country,tld").await;
    assert_eq!(two.summary.by.len(), 2);
    let text: Value = get(&node, "/api/results?by=country").await;
    assert!(text["answered_by"].as_str().unwrap().starts_with("12D3KooW"), "{text}");
    assert_eq!(text["summary"]["by"]["country"]["KE"]["servers"], 21);
    assert_eq!(text["whole_runs"], text["summary"]["total"]["unfinished"] == 0, "{text}");
    let table: Value = get(&node, "/api/cross-table?by=country,tld").await;
    assert_eq!((&table["by"], &table["cells"][0]["values"]), (&serde_json::json!(["country", "tld"]), &serde_json::json!(["KE", "ke"])));
    node.end().await;
}

#[tokio::test]
async fn long_lists_come_in_pieces_that_join_without_gap_or_overlap() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let whole: Vec<OwnershipView> = get(&node, "/api/ownership").await;
    let first: Vec<OwnershipView> = get(&node, "/api/ownership?limit=7").await;
    let rest: Vec<OwnershipView> = get(&node, &format!("/api/ownership?after={}", first[6].subnet)).await;
    assert_eq!([first, rest].concat(), whole);

    let (mut hosts, mut path) = (Vec::new(), "/api/servers?limit=10".to_owned());
    for _ in 0..10 {
        let page: ServersPage = get(&node, &path).await;
        hosts.extend(page.servers.into_iter().map(|server| server.host));
        match page.next {
            Some(next) => path = format!("/api/servers?limit=10&after={next}"),
            None => break,
        }
    }
    assert_eq!(hosts.len(), 25);
    assert!(hosts.is_sorted());
    node.end().await;
}

#[tokio::test]
async fn after_a_panic_it_is_served_again_at_the_same_address() {
    let (queries, mut asked) = QueryHandle::new();
    let api = Api::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = api.address();
    let (stop, stopped) = watch::channel(false);
    tasks::inject_panics(TaskKind::Api, 1);
    let serving = tokio::spawn(api.keep_serving(queries, Arc::new(Metrics::new()), stopped));
    let answering = tokio::spawn(async move {
        while let Some(query) = asked.recv().await {
            if let Query::Members(reply) = query {
                reply.send(Vec::new()).unwrap();
            }
        }
    });
    let ask = async || client().get(format!("http://{address}/api/members")).send().await;
    while ask().await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(ask().await.unwrap().status(), StatusCode::OK);
    stop.send(true).unwrap();
    serving.await.unwrap();
    answering.await.unwrap();
}

#[tokio::test]
async fn a_request_whose_handler_panics_is_answered_and_counted_and_so_is_the_next_one() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let panicked = || tasks::table().into_iter().find(|line| line.name == "api request").unwrap().panicked;
    tasks::inject_panics(TaskKind::ApiRequest, 1);
    let answer = client().get(node.url("/api/status")).send().await.unwrap();
    assert_eq!((answer.status(), panicked()), (StatusCode::INTERNAL_SERVER_ERROR, 1));
    assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/json");
    assert_eq!(answer.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "as on every answer");
    let view: ErrorView = answer.json().await.unwrap();
    assert!(view.error.contains("api request") && view.hint.contains("log"), "{view:?}");
    let _: StatusView = get(&node, "/api/status").await;
    assert_eq!(panicked(), 1);
    node.end().await;
}

#[tokio::test]
async fn bad_questions_are_told_what_to_do() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let cases = [
        ("/api/results?by=planet", "split by country, tld"),
        ("/api/results?of=country", "/openapi.json"),
        ("/api/why", "/openapi.json"),
        ("/api/why?q=two%20words", "q=museum.or.ke"),
        ("/api/ownership?after=everything", "after=192.0.2.0/24"),
        ("/api/ownership?limit=0", "1 to 10000"),
        ("/api/servers?after=..", "after=museum.or.ke"),
        ("/api/servers?limit=10001", "1 to 10000"),
    ];
    for (path, hint) in cases {
        let view = refused(&node, path, StatusCode::BAD_REQUEST).await;
        assert!(view.hint.contains(hint) && !view.error.is_empty(), "{path}: {view:?}");
    }
    assert!(refused(&node, "/api/nothing", StatusCode::NOT_FOUND).await.error.contains("/api/nothing"));
    refused(&node, "/page/..%2F..%2Fmod.rs", StatusCode::NOT_FOUND).await;
    refused(&node, "/api/seeds", StatusCode::METHOD_NOT_ALLOWED).await;
    node.end().await;
}

#[tokio::test]
async fn only_hosts_of_this_machine_are_answered() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let ask = async |host: &str| client().get(node.url("/api/status")).header(header::HOST, host).send().await.unwrap().status();
    for host in ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.9:1", "[::1]:4880"] {
        assert_eq!(ask(host).await, StatusCode::OK, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:4880", "192.0.2.1", "127.0.0.1@evil.example", "", "a b"]
    {
        let status = ask(host).await;
        assert!(matches!(status, StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST), "{host}: {status}");
    }
    node.end().await;
}

#[tokio::test]
async fn the_address_it_listens_on_is_a_name_for_it_too() {
    let node = FakeNode::start("127.10.0.1:0").await;
    let _: StatusView = get(&node, "/api/status").await;
    node.end().await;
}

#[tokio::test]
async fn other_sites_can_neither_add_seeds_nor_make_it_leave() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let ask = async |path: &str, headers: &[(&str, &str)]| {
        let moving = format!(r#"{{"subnet":"192.0.2.0/24","to":"{}"}}"#, super::fake::access_point(1));
        let body = match path {
            "/api/move" => moving,
            "/api/declare-lost" => format!(r#"{{"members":["{}"]}}"#, super::fake::access_point(1)),
            _ => r#"{"urls":["http://a.test/"]}"#.to_owned(),
        };
        let mut request = client().post(node.url(path)).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap().status()
    };
    let json = ("content-type", "application/json");
    for path in ["/api/seeds", "/api/leave", "/api/move", "/api/declare-lost"] {
        assert_eq!(ask(path, &[]).await, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"] {
            assert_eq!(ask(path, &[("content-type", kind)]).await, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
        }
        assert_eq!(ask(path, &[json, ("origin", "https://evil.example")]).await, StatusCode::FORBIDDEN);
        assert_eq!(ask(path, &[json, ("origin", "null")]).await, StatusCode::FORBIDDEN);
        assert_eq!(ask(path, &[json, ("sec-fetch-site", "cross-site")]).await, StatusCode::FORBIDDEN);
        assert_eq!(ask(path, &[json, ("host", "evil.example")]).await, StatusCode::FORBIDDEN);
        let own = format!("http://{}", node.address);
        assert_eq!(ask(path, &[json, ("origin", &own), ("sec-fetch-site", "same-origin")]).await, StatusCode::OK);
        assert_eq!(ask(path, &[("content-type", "application/json; charset=utf-8")]).await, StatusCode::OK);
    }
    let read = async |path: &str, name: &str, value: &str| {
        let answer = client().get(node.url(path)).header(name, value).send().await.unwrap();
        assert!(!answer.headers().contains_key("access-control-allow-origin"));
        answer.status()
    };
    for path in ["/api/status", "/api/why?q=a.test", "/api/distinct"] {
        assert_eq!(read(path, "origin", "https://evil.example").await, StatusCode::FORBIDDEN, "{path}");
        assert_eq!(read(path, "sec-fetch-site", "cross-site").await, StatusCode::FORBIDDEN, "{path}");
        assert_eq!(read(path, "sec-fetch-site", "same-site").await, StatusCode::FORBIDDEN, "{path}");
        assert_eq!(read(path, "sec-fetch-site", "same-origin").await, StatusCode::OK, "{path}");
        assert_eq!(read(path, "sec-fetch-site", "none").await, StatusCode::OK, "{path}");
    }
    assert_eq!(read("/", "sec-fetch-site", "cross-site").await, StatusCode::OK, "a link to the page");
    node.end().await;
}

#[tokio::test]
async fn with_a_token_nothing_is_changed_without_it() {
    let directory = tempfile::tempdir().unwrap();
    let token = Token::begin(directory.path()).unwrap();
    let secret = super::read_token(token.file()).unwrap();
    let local = super::Local { token: Some(token), ..super::Local::default() };
    let node = FakeNode::start_with("127.0.0.1:0", local).await;
    let post = async |path: &str, given: &[&str]| {
        let mut request = client().post(node.url(path)).header("content-type", "application/json").body("{}");
        for token in given {
            request = request.header(super::TOKEN_HEADER, *token);
        }
        request.send().await.unwrap()
    };
    for (_, path) in ROUTES.iter().filter(|(method, _)| *method == "post") {
        for given in [&[][..], &["0"], &[&"0".repeat(64)], &[&secret[1..]], &[&secret, &secret]] {
            let answer = post(path, given).await;
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{path} {given:?}");
            let view: ErrorView = answer.json().await.unwrap();
            assert!(view.hint.contains("api.token") && view.hint.contains(super::TOKEN_HEADER), "{view:?}");
        }
        assert_ne!(post(path, &[&secret]).await.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
    let _: StatusView = get(&node, "/api/status").await;
    node.end().await;
}

#[tokio::test]
async fn seeds_are_taken_in_or_named_with_the_reason() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let urls = ["http://a.test/", "http://b.invalid/", "mailto:me@a.test", "nonsense"];
    let answer = client().post(node.url("/api/seeds")).json(&serde_json::json!({ "urls": urls })).send().await.unwrap();
    let view: SeedView = answer.json().await.unwrap();
    assert_eq!(view.accepted, 1);
    let refused: Vec<_> = view.refused.iter().map(|refused| refused.url.as_str()).collect();
    assert_eq!(refused, ["http://b.invalid/", "mailto:me@a.test", "nonsense"]);

    for body in [r#"{"urls":[]}"#, r#"{"url":"http://a.test/"}"#, "[]", "", "{"] {
        let request = client().post(node.url("/api/seeds")).header("content-type", "application/json").body(body);
        assert_eq!(request.send().await.unwrap().status(), StatusCode::BAD_REQUEST, "{body}");
    }
    let huge = format!(r#"{{"urls":["{}"]}}"#, "x".repeat(super::MAX_BODY));
    let request = client().post(node.url("/api/seeds")).header("content-type", "application/json").body(huge);
    assert_eq!(request.send().await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
    node.end().await;
}

#[tokio::test]
async fn sums_that_one_gives_are_told_to_all_who_ask_the_same() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let give = async |body: Value| client().post(node.url("/api/sums")).json(&body).send().await.unwrap().status();
    let none = super::KeptSumsView::default();
    assert_eq!(get::<super::KeptSumsView>(&node, "/api/sums?question=a%20b").await, none);
    let sums = serde_json::json!({ "servers": 9 });
    assert_eq!(give(serde_json::json!({ "question": "a b", "sums": sums })).await, StatusCode::OK);
    let kept: super::KeptSumsView = get(&node, "/api/sums?question=a%20b").await;
    assert!(kept.sums == sums && kept.age_ms.is_some_and(|age| age < 60_000), "{kept:?}");
    assert_eq!(get::<super::KeptSumsView>(&node, "/api/sums?question=a").await, none);
    for body in [
        serde_json::json!({ "question": "", "sums": sums }),
        serde_json::json!({ "question": "x".repeat(1_025), "sums": sums }),
        serde_json::json!({ "question": "a", "sums": 9 }),
        serde_json::json!({ "question": "a" }),
    ] {
        assert_eq!(give(body).await, StatusCode::BAD_REQUEST);
    }
    let metrics = client().get(node.url("/metrics")).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("nearcrawl_limit_used{limit=\"questions with kept sums\"} 1\n"), "{metrics}");
    // Tables over rows are larger than other bodies may be.
    for (bytes, status) in [(2 * super::MAX_BODY, StatusCode::OK), (super::sums::MAX_BODY, StatusCode::PAYLOAD_TOO_LARGE)] {
        let long = serde_json::json!({ "question": "long", "sums": { "text": "x".repeat(bytes) } });
        assert_eq!(give(long).await, status, "{bytes} bytes");
    }
    node.end().await;
}

#[tokio::test]
async fn the_description_and_the_routes_agree() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let described: Value = get(&node, "/openapi.json").await;
    let mut listed = Vec::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        listed.extend(methods.as_object().unwrap().keys().map(|method| (method.clone(), path.clone())));
    }
    listed.sort();
    assert_eq!(listed, ROUTES.map(|(method, path)| (method.to_owned(), path.to_owned())));
    for (method, path) in ROUTES {
        let request = client().request(method.to_uppercase().parse().unwrap(), node.url(path));
        let status = request.header("content-type", "application/json").body("{}").send().await.unwrap().status();
        assert!(status != StatusCode::NOT_FOUND && status != StatusCode::METHOD_NOT_ALLOWED, "{method} {path}: {status}");
    }
    // Every schema that is referred to is there.
    let text = Description::openapi().to_json().unwrap();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(described["components"]["schemas"].get(name).is_some(), "{name} is referred to but not described");
    }
    node.end().await;
}

/// What in a text breaks the rules of OpenMetrics or its conventions: base units, `_total` for counters, families in one piece.
fn against_conventions(text: &str) -> Vec<String> {
    let (mut kinds, mut units, mut series) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    let (mut helped, mut family, mut broken) = (BTreeSet::new(), "", Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "EOF"] => {}
            ["#", "HELP", name, help] => {
                family = name;
                if !helped.insert(*name) || help.trim_end_matches('.').is_empty() {
                    broken.push(format!("{name} is in two pieces, or has no help"));
                }
            }
            ["#", "TYPE", name, kind] => {
                kinds.insert(*name, *kind);
            }
            ["#", "UNIT", name, unit] => {
                units.insert(*name, *unit);
            }
            _ => {
                let (name, value) = line.rsplit_once(' ').unwrap_or((line, ""));
                let base = name.split('{').next().unwrap_or_default();
                let counter = kinds.get(family) == Some(&"counter");
                let expected = if counter { format!("{family}_total") } else { family.to_owned() };
                let units_fit = units.get(family).is_none_or(|unit| family.ends_with(&format!("_{unit}")));
                let odd = ["_permille", "_percent", "_ms", "_us", "_kb", "_minutes", "_most", "_least"];
                let plain = base.starts_with("nearcrawl_") && base.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
                if base != expected || !units_fit || !plain || odd.iter().any(|end| family.ends_with(end)) {
                    broken.push(format!("{line} does not fit its family {family}"));
                }
                if !series.insert(name.to_owned()) || value.parse::<f64>().is_err() || name.contains("{name=") {
                    broken.push(format!("{line} is there twice, is no number, or has a label that says nothing"));
                }
            }
        }
    }
    if !text.ends_with("# EOF\n") {
        broken.push("the end is missing".to_owned());
    }
    broken
}

#[tokio::test]
async fn metrics_are_well_formed_and_follow_the_status() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let text = client().get(node.url("/metrics")).send().await.unwrap().text().await.unwrap();
    let broken = against_conventions(&text);
    assert!(broken.is_empty(), "{}\n{text}", broken.join("\n"));
    let expected = [
        "nearcrawl_subnets_owned 14",
        "nearcrawl_state{state=\"fetching\"} 1",
        "nearcrawl_state{state=\"fenced\"} 0",
        "nearcrawl_members{liveness=\"alive\"} 4",
        "nearcrawl_probes_total 61",
        "nearcrawl_busy_ratio 0.25",
        "nearcrawl_price_ratio 1.5",
        "nearcrawl_uptime_seconds 4000",
        "nearcrawl_failures_total{reason=\"certificate-expired\"} 1",
        "nearcrawl_unresolved_names_total{reason=\"no-such-name\"} 4",
        "nearcrawl_cache_hits_total{cache=\"frontier\"} 9120",
        "nearcrawl_limit_max{limit=\"waiting URLs\"} 1000000",
        "nearcrawl_limit_used{limit=\"questions with kept sums\"} 0",
        "nearcrawl_limit_max{limit=\"bytes of kept sums\"} 16777216",
        "nearcrawl_tasks_running{kind=\"fetch\"} 3",
        "nearcrawl_task_panics_total{kind=\"fetch\"} 0",
    ];
    for line in expected {
        assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
    }
    node.end().await;
}

#[test]
fn of_the_series_of_states_exactly_that_of_the_present_one_is_1() {
    let metrics = Metrics::new();
    for state in State::ALL {
        metrics.update(&StatusView { state, ..fake::status(0) });
        let text = metrics.text();
        let series: Vec<&str> = text.lines().filter(|line| line.starts_with("nearcrawl_state{")).collect();
        let ones: Vec<&str> = series.iter().copied().filter(|line| !line.ends_with(" 0")).collect();
        assert_eq!((series.len(), ones), (State::ALL.len(), vec![format!("nearcrawl_state{{state=\"{}\"}} 1", state.name()).as_str()]));
    }
}

#[tokio::test]
async fn the_page_is_whole_and_loads_nothing_from_elsewhere() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let page = client().get(node.url("/")).send().await.unwrap();
    let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let html = page.text().await.unwrap();
    let mut named = 0;
    for attribute in ["src=\"", "href=\""] {
        for rest in html.split(attribute).skip(1) {
            let target = rest.split('"').next().unwrap();
            assert!(target.starts_with('/') || target.starts_with('#'), "{target}");
            if target.starts_with('/') {
                assert_eq!(client().get(node.url(target)).send().await.unwrap().status(), StatusCode::OK, "{target}");
                named += 1;
            }
        }
    }
    assert!(named >= 2, "the page names its style and its script");
    assert!(!html.contains("style=") && !html.contains("onclick"), "the policy would refuse it");
    for file in ["map.js", "charts.js", "page.js"] {
        let script = client().get(node.url(&format!("/page/{file}"))).send().await.unwrap().text().await.unwrap();
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!script.contains(way), "text from web servers must not become markup: {way} in {file}");
        }
    }
    node.end().await;
}

#[tokio::test]
async fn owners_of_web_sites_read_how_to_keep_it_out() {
    let config = Config { contact: Some("crawl@museum.or.ke".to_owned()), ..Config::default() };
    let local = super::Local { visits: Visits::by(&config), ..super::Local::default() };
    let node = FakeNode::start_with("127.0.0.1:0", local).await;
    let text = client().get(node.url("/bot")).send().await.unwrap().text().await.unwrap();
    assert!(text.contains("Disallow: /") && text.contains("crawl@museum.or.ke") && text.contains("TCP connections"), "{text}");
    node.end().await;
}

#[tokio::test]
async fn an_address_in_use_is_said_so() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let failure = super::Api::bind(node.address).await.unwrap_err();
    assert!(failure.to_string().contains("is in use by another program"), "{failure}");
    let failure = super::Api::bind("192.0.2.1:1".parse().unwrap()).await.unwrap_err();
    assert!(failure.to_string().contains("must be an address of this machine"), "{failure}");
    node.end().await;
}
