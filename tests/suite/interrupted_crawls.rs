//! Tests of what is left of a `crawl` that is ended before its end, and that it goes on there.

use crate::support::{Ground, Judge, SmallWeb};
use nearcrawl_lab::web::{
    dns::{DnsServer, Zone},
    server::{RequestSeen, WebServers},
};
use nearcrawl_model::record::ServerRecord;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::SocketAddr,
    path::Path,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::process::{Child, Command};

const HOSTS: usize = 4;
const PAGES: usize = 14;

/// How long a server rests after an answer: all of it takes some ten seconds.
const REST: Duration = Duration::from_millis(700);

const SOON: Duration = Duration::from_secs(60);

struct Stage {
    web: Arc<SmallWeb>,
    servers: WebServers,
    dns: DnsServer,
    ground: Ground,
    directory: tempfile::TempDir,
}

impl Stage {
    async fn set() -> Stage {
        let ground = Ground::claim();
        let web = Arc::new(SmallWeb::new(&ground, HOSTS, PAGES, 0));
        let addresses: BTreeSet<SocketAddr> = web.names().iter().map(|(_, address)| SocketAddr::new(*address, 8080)).collect();
        let servers = WebServers::start(addresses, Arc::clone(&web)).await.unwrap();
        let dns = DnsServer::start(SocketAddr::from(([127, ground.net, 250, 53], 0)), Zone::new(web.names())).await.unwrap();
        Stage { web, servers, dns, ground, directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// The same command each time.
    fn crawl(&self, state: Option<&Path>) -> Child {
        let config = self.path("nearcrawl.toml");
        fs::write(&config, "[crawl]\nports = [8080]\ndelay_factor = 0\n").unwrap();
        fs::create_dir_all(self.path("scratch")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nearcrawl"));
        command.args(["crawl", "--json", "--follow", "tld:test", "--min-delay", &format!("{}ms", REST.as_millis())]);
        command.arg("--config").arg(config).args(["--allow-range", &self.ground.range(), "--dns", &self.dns.address().to_string()]);
        for (option, file) in [("--out", "records.jsonl"), ("--pages", "pages.jsonl"), ("--links", "links.jsonl")] {
            command.arg(option).arg(self.path(file));
        }
        command.env("TMPDIR", self.path("scratch")).env("XDG_CACHE_HOME", self.path("cache"));
        command.args(state.iter().flat_map(|state| ["--state".as_ref(), state.as_os_str()])).args(self.web.seeds());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
    }

    fn log(&self) -> Vec<RequestSeen> {
        self.servers.log().requests()
    }

    /// The records in the file: of each server the last one.
    fn records(&self) -> BTreeMap<String, ServerRecord> {
        let records = self.rows("records.jsonl").into_iter().map(|row| serde_json::from_value::<ServerRecord>(row).unwrap());
        records.map(|record| (record.host.to_string(), record)).collect()
    }

    /// The whole lines of a file.
    fn rows(&self, file: &str) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.path(file)).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{line}: {why}"))).collect()
    }

    /// The URLs of pages in the file.
    fn pages(&self) -> Vec<String> {
        let pages = self.rows("pages.jsonl").into_iter().filter(|row| row["outcome"] == "page");
        pages.map(|row| row["url"].as_str().unwrap().to_owned()).collect()
    }

    fn recorded(&self) -> u64 {
        self.pages().len() as u64
    }

    /// Waits until so many pages are in the file while it crawls.
    async fn until_recorded(&self, pages: u64) {
        let begun = Instant::now();
        while self.recorded() < pages {
            assert!(begun.elapsed() < SOON, "{} pages are in the file", self.recorded());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn left_in_scratch(&self) -> usize {
        fs::read_dir(self.path("scratch")).unwrap().count()
    }
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: plain system call; the child has not been waited for, so the id is still its own.
    assert_eq!(unsafe { libc::kill(child.id().unwrap().cast_signed(), signal) }, 0);
}

/// The end of a crawl with this exit code, and its totals.
async fn ended_with(code: i32, child: Child) -> serde_json::Value {
    let output = tokio::time::timeout(SOON, child.wait_with_output()).await.expect("it ends").unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn ended(child: Child) -> serde_json::Value {
    ended_with(0, child).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crawl_that_is_ended_by_sigterm_leaves_its_records_and_nothing_else() {
    let stage = Stage::set().await;
    let child = stage.crawl(None);
    stage.until_recorded(4).await;
    assert_eq!(stage.left_in_scratch(), 1);
    signal(&child, libc::SIGTERM);
    let totals = ended_with(143, child).await;
    assert_eq!(totals["exact"], false, "{totals}");
    let pages = totals["summary"]["total"]["pages"].as_u64().unwrap();
    assert!((4..(HOSTS * PAGES) as u64).contains(&pages), "{totals}");
    assert_eq!(stage.recorded(), pages, "the file has what the totals have");
    assert_eq!(
        stage.records().values().map(|record| record.pages).sum::<u64>(),
        pages,
        "so have the records, of servers that have not finished"
    );
    assert_eq!(stage.left_in_scratch(), 0, "its own state is gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crawl_that_is_ended_while_it_begins_leaves_nothing() {
    let stage = Stage::set().await;
    let child = stage.crawl(None);
    let begun = Instant::now();
    while stage.left_in_scratch() == 0 {
        assert!(begun.elapsed() < SOON, "it makes a directory");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    signal(&child, libc::SIGTERM);
    let totals = ended_with(143, child).await;
    assert_eq!((&totals["exact"], stage.left_in_scratch()), (&false.into(), 0), "{totals}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crawl_with_a_state_directory_goes_on_where_it_was_ended_or_killed() {
    let stage = Stage::set().await;
    let state = stage.path("state");
    let (terminated, killed) = (stage.crawl(Some(&state)), 12);
    stage.until_recorded(4).await;
    signal(&terminated, libc::SIGTERM);
    let first = ended_with(143, terminated).await;
    assert_eq!(first["exact"], false);

    let interrupted = stage.crawl(Some(&state));
    stage.until_recorded(8).await;
    signal(&interrupted, libc::SIGINT);
    ended_with(130, interrupted).await;

    let mut child = stage.crawl(Some(&state));
    stage.until_recorded(killed).await;
    child.kill().await.unwrap();
    let at_kill = stage.recorded();
    assert!(at_kill >= killed, "the file is whole after a kill");

    let totals = ended(stage.crawl(Some(&state))).await;
    let expected = stage.web.expected(&stage.web.seeds());
    assert_eq!(totals["exact"], true);
    assert_eq!(totals["summary"]["total"]["pages"], expected.pages());
    let pages = stage.pages();
    assert_eq!(pages.iter().collect::<BTreeSet<_>>().len(), expected.pages(), "{pages:?}");
    assert_eq!(pages.len(), expected.pages(), "a page is in the file twice: {pages:?}");
    let links = stage.rows("links.jsonl");
    let named = |row: &serde_json::Value| (row["url"].as_str().unwrap().to_owned(), row["to_url"].as_str().unwrap().to_owned());
    let told: BTreeSet<_> = links.iter().map(named).collect();
    let path = |url: &str| url.splitn(4, '/').nth(3).map(|path| format!("/{path}")).unwrap();
    let host = |url: &str| url["http://".len()..].split(':').next().unwrap().to_owned();
    let wanted = pages.iter().flat_map(|url| stage.web.links(&host(url), &path(url)).unwrap().into_iter().map(|to| (url.clone(), to)));
    let wanted: BTreeSet<_> = wanted.collect();
    assert_eq!((told.len(), &told), (links.len(), &wanted), "each link is in the file, once");
    let records = stage.rows("records.jsonl");
    assert_eq!((records.len(), stage.records().len()), (HOSTS, HOSTS), "one line a server at the end");
    let log = stage.servers.log();
    Judge { expected: &expected, log, min_delay: REST }.pauses_kept();
    // What was under way or not yet durable at the kill is asked for again: at most one page a server.
    let mut asked: BTreeMap<(String, String), usize> = BTreeMap::new();
    for request in stage.log().into_iter().filter(|request| request.method == "GET" && request.path != "/robots.txt") {
        *asked.entry((request.host, request.path)).or_default() += 1;
    }
    assert_eq!(asked.len(), expected.pages());
    let again: Vec<_> = asked.iter().filter(|(_, times)| **times > 1).collect();
    assert!(again.len() <= HOSTS, "{again:?}");

    let requests = stage.log().len();
    let again = ended(stage.crawl(Some(&state))).await;
    assert_eq!((again["summary"]["total"]["pages"].clone(), again["exact"].clone()), (expected.pages().into(), true.into()));
    assert_eq!(stage.log().len(), requests, "a crawl that is complete asks for nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_cannot_be_written_are_told_before_anything_is_crawled() {
    let stage = Stage::set().await;
    fs::create_dir(stage.path("records.jsonl")).unwrap();
    let output = stage.crawl(None).wait_with_output().await.unwrap();
    let complained = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(73) && complained.contains("name a file"), "{complained}");
    assert_eq!(stage.log().len(), 0);
}
