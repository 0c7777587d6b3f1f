//! Test that all servers of the swarm come out of any member, in every form, once each: real daemons, and the program.

use crate::support::{Ended, Ground, Habits, Judge, SmallWeb, Swarm, nearcrawl};
use nearcrawl_lab::{
    demo::daemons::API_PORT,
    web::{Answer, Web},
};
use nearcrawl_model::{
    exported::{PageOutcome, PageRow},
    url::PageUrl,
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    path::Path,
    process::Command,
    sync::Arc,
    time::Duration,
};

const LONG_ENOUGH: Duration = Duration::from_secs(90);

/// `export servers` with these arguments, by the API of a daemon.
async fn export(swarm: &Swarm, daemon: usize, arguments: &[&str]) -> Ended {
    export_of("servers", swarm, daemon, arguments).await
}

async fn export_of(what: &str, swarm: &Swarm, daemon: usize, arguments: &[&str]) -> Ended {
    let api = format!("http://{}:{API_PORT}", swarm.daemons[daemon].address);
    let all: Vec<&str> = ["export", what, "--api", &api].iter().chain(arguments).copied().collect();
    nearcrawl(&all).await
}

/// What the pages of a web link to, by the web's own word: each link once.
fn links_of<'a>(web: &SmallWeb, pages: impl Iterator<Item = &'a PageUrl>) -> BTreeSet<(String, String)> {
    let links = |page: &PageUrl| match web.answer(page) {
        Answer::Page(links) => links,
        _ => Vec::new(),
    };
    pages.flat_map(|page| links(page).into_iter().map(|to| (page.as_str().to_owned(), to.as_str().to_owned()))).collect()
}

/// Pages and links: every visit once with its owner, and every link, by the API and over the network, as lines and as `lab cache` takes them.
async fn pages_and_links_come_out_too(swarm: &Swarm, web: &SmallWeb, servers: &Rows, page_bytes: u64) {
    let pages = export_of("pages", swarm, 0, &[]).await;
    assert_eq!(pages.code, Some(0), "{pages:?}");
    let rows: Vec<PageRow> =
        pages.said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"))).collect();
    let mut of_server = Rows::new();
    for row in &rows {
        let known = of_server.entry(row.host.to_string()).or_insert((row.access_point.to_string(), 0));
        known.1 += u64::from(row.fetch_status == Some(200));
        assert_eq!(known.0, row.access_point.to_string(), "two owners tell of one server");
    }
    assert_eq!(of_server, *servers);
    for row in rows.iter().filter(|row| row.outcome == PageOutcome::Page) {
        // A page without a link has no markup by which it could be known.
        let is = (row.internal_links + row.external_links > 0).then_some("text/html");
        assert_eq!((row.content_mime_type.as_deref(), row.content_mime_detected.as_deref()), (Some("text/html"), is), "{row:?}");
    }
    assert_eq!(rows.iter().map(|row| row.page_bytes).sum::<u64>(), page_bytes);
    let over_the_network = nearcrawl(&["export", "pages", "--member", &swarm.daemons[2].multiaddress()]).await;
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(sorted(&over_the_network.said), sorted(&pages.said), "{over_the_network:?}");

    let expected = links_of(web, rows.iter().map(|row| &row.url));
    let links = export_of("links", swarm, 1, &["--by", "page"]).await;
    let told = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        (row["url"].as_str().unwrap().to_owned(), row["to_url"].as_str().unwrap().to_owned())
    };
    assert_eq!((links.code, links.said.lines().map(told).collect::<BTreeSet<_>>()), (Some(0), expected.clone()), "{links:?}");
    let hosts = export_of("links", swarm, 2, &[]).await;
    let count = |line: &str| serde_json::from_str::<Value>(line).unwrap()["links"].as_u64().unwrap();
    assert_eq!(hosts.said.lines().map(count).sum::<u64>(), expected.len() as u64, "{hosts:?}");

    let file = |name: &str| swarm.common.directory.join(name).to_str().unwrap().to_owned();
    let (edges, map) = (file("links.tsv"), file("hosts.tsv"));
    let graph = export_of("links", swarm, 0, &["--trace", &edges, "--hosts", &map]).await;
    assert_eq!(graph.code, Some(0), "{graph:?}");
    let requests = async |stream: &str| {
        let cache = ["lab", "cache", "--trace", &edges, "--hosts", &map, "--stream", stream, "--threads", "4", "--sizes", "16", "--json"];
        let ended = nearcrawl(&cache).await;
        let rows: Value = serde_json::from_str(&ended.said).unwrap_or_else(|why| panic!("{why}: {ended:?}"));
        rows[0]["requests"].as_u64().unwrap()
    };
    let host = |url: &str| PageUrl::parse(url).unwrap().host();
    let within = expected.iter().filter(|(from, to)| host(from) == host(to)).count() as u64;
    assert_eq!([requests("within").await, requests("between").await], [within, expected.len() as u64 - within]);
}

/// Breakdowns of `results` for which servers' rows have a column.
const GROUPS: [&str; 8] = ["country", "tld", "status", "language", "script", "http", "tls", "family"];

/// The same numbers, as DuckDB and pandas read them from Parquet; and what `results` breaks down by, they group by.
async fn parquet_opens(swarm: &Swarm, servers: u64, pages: u64, page_bytes: u64) {
    let directory = swarm.common.directory.join("parquet");
    std::fs::create_dir_all(&directory).unwrap();
    for what in ["servers", "history", "pages", "links"] {
        let file = directory.join(format!("{what}.parquet"));
        let ended = export_of(what, swarm, 0, &["--format", "parquet", "--out", file.to_str().unwrap()]).await;
        assert_eq!(ended.code, Some(0), "{what}: {ended:?}");
    }
    for by in GROUPS {
        let api = format!("http://{}:{API_PORT}", swarm.daemons[0].address);
        let told = nearcrawl(&["results", "--api", &api, "--by", by, "--csv"]).await;
        assert_eq!(told.code, Some(0), "{by}: {told:?}");
        std::fs::write(directory.join(format!("{by}.csv")), told.said).unwrap();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = Command::new(root.join("scripts/python.sh")).output().unwrap();
    assert!(python.status.success(), "{python:?}");
    let python = String::from_utf8(python.stdout).unwrap();
    let reads = Command::new(python.trim()).arg(root.join("tests/data/read_parquet.py")).arg(&directory).output().unwrap();
    let said = String::from_utf8_lossy(&reads.stdout).into_owned();
    let expected = format!("{servers} {pages} {page_bytes}\n");
    assert_eq!(said, expected.repeat(4), "{}", String::from_utf8_lossy(&reads.stderr));
}

/// The hosts of a Parquet file, as DuckDB reads them.
fn hosts_in(file: &str) -> Vec<String> {
    let python = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/python.sh")).output().unwrap();
    let script =
        "import duckdb, sys; [print(*row) for row in duckdb.sql(f\"select url_host_name from '{sys.argv[1]}' order by 1\").fetchall()]";
    let reads = Command::new(String::from_utf8(python.stdout).unwrap().trim()).args(["-c", script, file]).output().unwrap();
    assert!(reads.status.success(), "{reads:?}");
    String::from_utf8(reads.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// While a member does not answer, a Parquet file has the others' rows, and goes on with its own when it is there again; also if the export was
/// killed within a row.
async fn parquet_is_gone_on_with(swarm: &mut Swarm, file: &str, servers: &Rows, missing: usize) {
    assert_eq!(hosts_in(file).len(), servers.len() - missing);
    let rest = format!("{file}.part");
    let rows = std::fs::read(&rest).unwrap();
    std::fs::write(&rest, &rows[..rows.len() * 2 / 3]).unwrap();
    std::fs::remove_file(file).unwrap();
    swarm.start([1]).await;
    let api = format!("http://{}:{API_PORT}", swarm.daemons[0].address);
    let resumes = ["export", "servers", "--api", &api, "--format", "parquet", "--out", file, "--resume"];
    let whole = swarm.until("the export is whole", LONG_ENOUGH, async || {
        let ended = nearcrawl(&resumes).await;
        if ended.code == Some(0) { Ok(()) } else { Err(format!("{ended:?}")) }
    });
    whole.await;
    assert_eq!(hosts_in(file), servers.keys().cloned().collect::<Vec<_>>());
    assert!(!Path::new(&rest).exists());
}

/// What a member did, by its API and over the network, as lines and as CSV.
async fn events_come_out_of_any_member(swarm: &Swarm) {
    let (mut kinds, lines) = (BTreeSet::new(), |said: &str| said.lines().map(str::to_owned).collect::<BTreeSet<_>>());
    for daemon in 0..swarm.daemons.len() {
        let told = export_of("events", swarm, daemon, &[]).await;
        assert_eq!(told.code, Some(0), "{told:?}");
        let address = swarm.daemons[daemon].multiaddress();
        let over_the_network = nearcrawl(&["export", "events", "--member", &address]).await;
        assert!(over_the_network.code == Some(0) && lines(&over_the_network.said).is_superset(&lines(&told.said)), "{over_the_network:?}");
        for line in told.said.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            assert_eq!(row["access_point"].as_str(), Some(swarm.daemons[daemon].access_point.as_str()), "{line}");
            kinds.insert(row["kind"].as_str().unwrap().to_owned());
        }
        let csv = nearcrawl(&["export", "events", "--member", &address, "--format", "csv"]).await;
        let mut reader = csv::Reader::from_reader(csv.said.as_bytes());
        assert_eq!(reader.records().count(), over_the_network.said.lines().count(), "{csv:?}");
    }
    assert!(kinds.contains("delegation"), "{kinds:?}");
    let unnamed = nearcrawl(&["export", "events", "--member", "/ip4/192.0.2.7/tcp/4817"]).await;
    assert_eq!(unnamed.code, Some(64), "{unnamed:?}");
}

/// What another export would add rows to stays as it is, and it is said why.
async fn another_export_does_not_touch_a_file(swarm: &Swarm, file: &str) {
    let before = std::fs::read(file).unwrap();
    for (what, options, says) in [
        ("pages", &[][..], "it has servers, not pages"),
        ("servers", &["--format", "csv"], "it is jsonl, not csv"),
        ("servers", &["--survey", "unis"], "those of all servers, not of the survey unis"),
    ] {
        let refused = export_of(what, swarm, 0, &[&["--out", file, "--resume"], options].concat()).await;
        assert!(refused.code == Some(65) && refused.complained.contains(says), "{refused:?}");
    }
    assert_eq!(std::fs::read(file).unwrap(), before);
}

/// Host → who says it, and how many pages it has.
type Rows = BTreeMap<String, (String, u64)>;

fn rows_of(jsonl: &str) -> Rows {
    let read = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
        let text = |key: &str| row[key].as_str().unwrap_or_else(|| panic!("{key}: {line}")).to_owned();
        assert_eq!(text("country").len(), 2, "{line}");
        (text("host"), (text("access_point"), row["pages"].as_u64().unwrap()))
    };
    let rows: Vec<_> = jsonl.lines().map(read).collect();
    let once: Rows = rows.iter().cloned().collect();
    assert_eq!(once.len(), rows.len(), "a host comes twice: {rows:?}");
    once
}

fn rows_of_csv(text: &str) -> Rows {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().unwrap().clone();
    let at = |name: &str| head.iter().position(|column| column == name).unwrap();
    let (host, owner, pages) = (at("host"), at("access_point"), at("pages"));
    let rows = reader.records().map(|row| row.unwrap());
    rows.map(|row| (row[host].to_owned(), (row[owner].to_owned(), row[pages].parse().unwrap()))).collect()
}

#[tokio::test]
async fn every_server_of_the_swarm_comes_out_of_any_member_once_and_the_rows_add_up_to_the_results() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 12, 8, 10));
    let points: Vec<Ipv4Addr> = [0, 1, 3].map(|point| web.places.access_points[point]).to_vec();
    let habits = Habits { threshold_ms: 4, ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(100) };
    swarm.start(0..3).await;
    swarm.seed(0, &web.seeds()).await;
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    let told = swarm.agree(expected.pages() as u64, LONG_ENOUGH).await;

    let all = export(&swarm, 0, &[]).await;
    assert_eq!(all.code, Some(0), "{all:?}");
    let rows = rows_of(&all.said);
    assert_eq!((rows.len() as u64, rows.values().map(|(_, pages)| pages).sum()), (told.summary.total.servers, told.summary.total.pages));
    let owners: BTreeSet<_> = rows.values().map(|(owner, _)| owner.clone()).collect();
    assert!(owners.len() > 1, "one member owns everything: nothing was asked of another");

    let address = swarm.daemons[2].multiaddress();
    let of_a_member = nearcrawl(&["export", "servers", "--member", &address]).await;
    assert_eq!((of_a_member.code, rows_of(&of_a_member.said)), (Some(0), rows.clone()), "{of_a_member:?}");
    let csv = export(&swarm, 1, &["--format", "csv"]).await;
    assert_eq!((csv.code, rows_of_csv(&csv.said)), (Some(0), rows.clone()), "{csv:?}");

    let totals = told.summary.total;
    pages_and_links_come_out_too(&swarm, &web, &rows, totals.page_bytes).await;
    parquet_opens(&swarm, totals.servers, totals.pages, totals.page_bytes).await;
    crate::reports::agree_with_the_rows(&swarm, &all.said).await;

    events_come_out_of_any_member(&swarm).await;

    // It is cut off in the middle of a row, and goes on behind the last whole one.
    let file = swarm.common.directory.join("servers.jsonl");
    let name = file.to_str().unwrap();
    std::fs::write(&file, &all.said[..all.said.len() * 2 / 3]).unwrap();
    let resumed = export(&swarm, 0, &["--out", name, "--resume"]).await;
    assert_eq!((resumed.code, resumed.said.as_str()), (Some(0), ""), "{resumed:?}");
    assert_eq!(rows_of(&std::fs::read_to_string(&file).unwrap()), rows);
    let written: u64 = resumed.complained.split(' ').next().unwrap().parse().unwrap();
    assert!(written < rows.len() as u64, "nothing was left out: {resumed:?}");

    another_export_does_not_touch_a_file(&swarm, name).await;

    // Who is dead does not answer: its rows are missing, and that is said.
    let gone = swarm.daemons[1].access_point.clone();
    let theirs = rows.values().filter(|(owner, _)| *owner == gone).count();
    swarm.daemons[1].kill().await;
    // Both at once: soon another member has what it had.
    let file = swarm.common.directory.join("resumed.parquet").to_str().unwrap().to_owned();
    let into_a_file = ["--format", "parquet", "--out", &file, "--resume"];
    let (partly, parquet) = tokio::join!(export(&swarm, 0, &[]), export(&swarm, 0, &into_a_file));
    if theirs > 0 {
        assert_eq!(partly.code, Some(69), "{partly:?}");
        assert!(partly.complained.contains("rows are missing"), "{partly:?}");
        assert_eq!(rows_of(&partly.said).len(), rows.len() - theirs);
        assert_eq!(parquet.code, Some(69), "{parquet:?}");
        parquet_is_gone_on_with(&mut swarm, &file, &rows, theirs).await;
    }
    assert!(swarm.stop().await);
}
