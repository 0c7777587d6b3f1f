//! Tests that `nearcrawl crawl` does with lists, pipes and mistakes what people expect.
//!
//! They run the program as people start it, and real servers.

use crate::support::{Ended, Ground, nearcrawl};
use nearcrawl_lab::web::{
    dns::{DnsServer, Zone},
    server::{HttpAnswer, HttpSite, WebServers},
};
use nearcrawl_model::url::Host;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};
use tempfile::TempDir;

/// Hosts of many kinds, told by their names.
struct Street;

impl HttpSite for Street {
    fn respond(&self, host: &str, path: &str) -> HttpAnswer {
        match (host, path) {
            ("closed.ke.test", "/robots.txt") => HttpAnswer::ok("text/plain", "User-agent: *\nDisallow: /\n"),
            ("moved.ke.test", "/") => HttpAnswer::redirect(301, "http://elsewhere.test:8080/"),
            ("empty.ke.test", "/") => HttpAnswer::ok("text/plain", "no page"),
            ("long.ke.test", path) if path == "/" || path.starts_with("/p") => {
                let page: u32 = path.strip_prefix("/p").and_then(|number| number.parse().ok()).unwrap_or(0);
                HttpAnswer::html(format!("<a href=/p{}>on</a>", page + 1))
            }
            (_, "/") => HttpAnswer::html("<p>a page</p>"),
            _ => HttpAnswer::status(404),
        }
    }
}

struct Stage {
    ground: Ground,
    web: WebServers,
    dns: DnsServer,
    directory: TempDir,
}

impl Stage {
    /// Serves these names, at so many addresses.
    async fn of(names: impl IntoIterator<Item = String>, addresses: u32) -> Stage {
        let ground = Ground::claim();
        let address = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(ground.first().to_bits() + 9 + ((number % addresses) << 8)));
        let sockets: BTreeSet<_> = (0..addresses).map(|number| SocketAddr::new(address(number), 8080)).collect();
        let web = WebServers::start(sockets, Arc::new(Street)).await.unwrap();
        let silent = Ipv4Addr::from_bits(ground.first().to_bits() + (240 << 8) + 1);
        let named = (0..).zip(names).map(|(number, name)| (name.parse::<Host>().unwrap(), address(number)));
        let all: Vec<_> = named.chain([("silent.ke.test".parse().unwrap(), IpAddr::V4(silent))]).collect();
        let dns = DnsServer::start(SocketAddr::from(([127, ground.net, 250, 53], 0)), Zone::new(all)).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("nearcrawl.toml"), "[crawl]\nports = [8080]\ndelay_factor = 0\nmin_delay = \"0ms\"\n").unwrap();
        Stage { ground, web, dns, directory }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    /// The arguments of every crawl.
    fn arguments(&self) -> Vec<String> {
        let (range, dns, config) = (self.ground.range(), self.dns.address().to_string(), self.path("nearcrawl.toml"));
        ["crawl", "--config", &config, "--allow-range", &range, "--dns", &dns].map(str::to_owned).to_vec()
    }

    async fn crawl(&self, further: &[&str]) -> Ended {
        let all = self.arguments();
        nearcrawl(&all.iter().map(String::as_str).chain(further.iter().copied()).collect::<Vec<_>>()).await
    }

    fn rows(&self, name: &str) -> Vec<Value> {
        rows(&fs::read_to_string(self.path(name)).unwrap())
    }
}

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{line}: {why}"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_thousands_is_crawled_and_what_is_wrong_with_it_is_told_by_line() {
    const REAL: usize = 400;
    let stage = Stage::of((0..REAL).map(|number| format!("h{number}.ke.test")), 40).await;
    let mut list = String::from("# our hosts\n\n");
    for number in 0..2_998 {
        list += &match number {
            // Line 103, 203 and so on.
            number if number % 100 == 0 => "not a host\n".to_owned(),
            number if number < 2 * REAL && number % 2 == 1 => format!("  http://h{}.ke.test:8080/  # a comment\r\n", number / 2),
            number => format!("http://gone{number}.ke.test:8080/\n"),
        };
    }
    fs::write(stage.path("seeds.txt"), list).unwrap();
    let (seeds, out) = (stage.path("seeds.txt"), stage.path("out.jsonl"));
    let ended = stage.crawl(&["--seeds", &seeds, "--out", &out]).await;
    assert_eq!(ended.code, Some(65), "{}", ended.complained);
    assert!(ended.complained.contains("30 lines refused"), "{}", ended.complained);
    for line in ["line 3: not a host", "line 103: not a host", "and 10 more"] {
        assert!(ended.complained.contains(line), "{line} is missing in {}", ended.complained);
    }
    let without = 2_998 - 30 - REAL;
    assert!(ended.complained.contains(&format!("no page of {without} starting URLs")), "{}", ended.complained);
    assert!(ended.complained.contains(&format!("and {} more", without - 20)), "{}", ended.complained);
    assert!(ended.complained.contains("http://gone2.ke.test:8080/: no such host"), "{}", ended.complained);
    let records = stage.rows("out.jsonl");
    let up: BTreeSet<_> = records.iter().filter(|record| record["pages"] == 1).map(|record| record["host"].to_string()).collect();
    assert_eq!((records.len(), up.len()), (REAL, REAL));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_nothing_was_fetched_is_told_for_each_starting_url_and_by_the_exit_code() {
    let stage = Stage::of(["closed.ke.test", "moved.ke.test", "empty.ke.test", "plain.ke.test"].map(str::to_owned), 4).await;
    let reasons = [
        ("http://gone.ke.test:8080/", "no such host"),
        ("http://10.0.0.7:8080/", "address not allowed: a private address"),
        ("http://closed.ke.test:9999/", "address not allowed: port 9999"),
        ("http://closed.ke.test:8080/", "robots.txt forbids it"),
        ("http://silent.ke.test:8080/", "no connection: it refused the connection"),
        ("http://moved.ke.test:8080/", "it redirects to http://elsewhere.test:8080/"),
        ("http://empty.ke.test:8080/", "no HTML page"),
        ("https://plain.ke.test:8080/", "TLS: "),
    ];
    let all = reasons.map(|(url, _)| url);
    let ended = stage.crawl(&all).await;
    assert_eq!(ended.code, Some(69), "{}", ended.complained);
    for (url, why) in reasons {
        assert!(ended.complained.contains(&format!("{url}: {why}")), "{url}: {}", ended.complained);
    }
    let ended = stage.crawl(&["http://closed.ke.test:8080/", "--json"]).await;
    let (totals, error): (Value, Value) = (serde_json::from_str(&ended.said).unwrap(), last_json(&ended.complained));
    assert_eq!((ended.code, &error["exit_code"]), (Some(69), &69.into()), "{error}");
    assert_eq!(totals["seeds_without_page"][0]["reason_text"], "robots.txt forbids it", "{totals}");
    // Nothing was sent where nothing may be.
    assert!(stage.web.log().requests().iter().all(|request| request.host != "10.0.0.7"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_host_that_answers_over_http_only_the_guess_of_https_does_not_count() {
    let stage = Stage::of(["plain.ke.test".to_owned()], 1).await;
    let out = stage.path("records.jsonl");
    let ended = stage.crawl(&["plain.ke.test:8080", "--out", &out]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.complained);
    let record: Value = serde_json::from_str(fs::read_to_string(&out).unwrap().trim()).unwrap();
    let counts = ["pages", "known", "fetched", "refused_by_robots", "refused_by_robots_unavailable", "waiting"];
    assert_eq!(counts.map(|name| record[name].as_u64()), [1, 1, 1, 0, 0, 0].map(Some), "{record}");
    // What was asked was asked: it took three tries to find out.
    assert!(record["failed"].as_u64() > Some(0), "{record}");
}

/// The last line of standard error.
fn last_json(complained: &str) -> Value {
    serde_json::from_str(complained.lines().last().unwrap()).unwrap_or_else(|why| panic!("{why}: {complained}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_go_to_a_pipe_and_whoever_has_read_enough_ends_the_crawl() {
    let stage = Stage::of(["a.ke.test", "b.ke.test", "long.ke.test"].map(str::to_owned), 3).await;
    let piped = stage.crawl(&["http://a.ke.test:8080/", "http://b.ke.test:8080/", "--pages", "-"]).await;
    assert_eq!(piped.code, Some(0), "{}", piped.complained);
    let urls: BTreeSet<_> = rows(&piped.said).iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect();
    assert_eq!(urls, ["http://a.ke.test:8080/", "http://b.ke.test:8080/"].map(str::to_owned).into());
    assert!(piped.complained.contains("2 pages from 2 servers"), "totals are on standard error: {}", piped.complained);
    let first = &rows(&piped.said)[0];
    for (name, value) in [
        ("fetch_status", json!(200)),
        ("level", json!(0)),
        ("content_mime_type", json!("text/html")),
        ("content_mime_detected", json!("text/html")),
    ] {
        assert_eq!(first[name], value, "{first}");
    }
    let quiet = stage.crawl(&["http://a.ke.test:8080/", "--out", "-", "--quiet"]).await;
    assert_eq!((quiet.code, rows(&quiet.said).len(), quiet.complained.as_str()), (Some(0), 1, ""));

    // A site without an end: only the closed pipe ends it.
    let mut command = tokio::process::Command::new("bash");
    let script = "set -o pipefail; \"$0\" \"$@\" | head -n 2";
    command.args(["-c", script, env!("CARGO_BIN_EXE_nearcrawl")]).args(stage.arguments());
    command.args(["http://long.ke.test:8080/", "--depth", "60", "--pages", "-"]);
    command.env_remove("NEARCRAWL_CONFIG").env("TMPDIR", stage.directory.path()).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(60), command.output()).await.expect("it ends").unwrap();
    let (said, complained) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!((ended.status.code(), said.lines().count()), (Some(0), 2), "{complained}");
    assert!(!complained.contains("nearcrawl:"), "{complained}");
    let left = fs::read_dir(stage.directory.path()).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count();
    assert_eq!(left, 0, "nothing is left behind");
}
