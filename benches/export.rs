//! How quick is `nearcrawl export`, and what memory does it take? `cargo bench --bench export` writes the journals of a million pages, serves them
//! as an owner does, and runs the real program in each form; other sizes: `cargo bench --bench export -- 100000`.
//!
//! A thousand pages a host, sixteen links a page within it, three to other hosts, one of them named for the first time. Nothing else happens at the
//! owner, and it reads as fast as it can: a daemon reads at most 16 MiB of journals a second for a reader.

use axum::{Json, Router, extract::Query, routing::get};
use nearcrawl::{
    io::store::{Store, StoreConfig},
    node::exports,
};
use nearcrawl_core::report::journal_rows::{ExportOrder, ExportedJournal};
use nearcrawl_model::{
    access_point::AccessPoint,
    exported::{ExportOf, ExportPlace, ExportedRows},
    fingerprint::{Fingerprint, FingerprintKey},
    journal::{JournalEntry, JournalKey, JournalRow, VisitOutcome},
    record::RunState,
    revisit::{Change, Validators},
    server_rows::ServerOwner,
    time::WallTime,
    url::{Host, PageUrl},
};
use serde::Deserialize;
use std::{
    net::{IpAddr, Ipv4Addr},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

const PAGES_OF_HOST: u64 = 1_000;
const SECRET: FingerprintKey = FingerprintKey([7; 16]);
const ME: AccessPoint = AccessPoint([7; 32]);

fn host(number: u64) -> Host {
    format!("host{number:07}.test").parse().expect("a host")
}

fn url(host: u64, page: u64) -> PageUrl {
    PageUrl::parse(&format!("http://host{host:07}.test/articles/2026/page-{page}.html")).expect("a URL")
}

fn print(url: &PageUrl) -> Fingerprint {
    SECRET.of(url.as_str())
}

fn key(number: u64) -> JournalKey {
    JournalKey { subnet: "9.0.0.0/24".parse().expect("a subnet"), host: host(number), run: 1 }
}

/// The journal of a host.
fn journal(number: u64) -> Vec<JournalRow> {
    let address = IpAddr::V4(Ipv4Addr::new(9, 0, 0, 1));
    let mut entries = vec![
        JournalEntry::Opened { address, tree: host(number), at: WallTime(1) },
        JournalEntry::Admitted { urls: (0..PAGES_OF_HOST).map(|page| (url(number, page), 1, 0)).collect() },
    ];
    for page in 0..PAGES_OF_HOST {
        let children = (0..16).map(|child| print(&url(number, (page * 7 + child * child) % PAGES_OF_HOST))).collect();
        let others: Vec<_> = [page / 3, page / 2, page].iter().map(|other| url(number + 1 + other % 50, *other)).collect();
        let at = WallTime(1_760_000_000_000 + 1_000 * page);
        entries.push(JournalEntry::Visited {
            url: url(number, page),
            level: 1,
            at,
            outcome: VisitOutcome::Page(200),
            took: 40,
            first_byte_us: Some(30_000),
            bytes: 20_000,
            software: None,
            children,
            found: Vec::new(),
            outgoing: Vec::new(),
            beyond_scope: Vec::new(),
            rest: None,
        });
        let validators = Validators { etag: Some(format!("\"{page:x}\"")), last_modified: None };
        let (elsewhere, named) = (others.iter().map(print).collect(), others[2..].to_vec());
        let (page, change) = (print(&url(number, page)), Some(Change::New));
        entries.push(JournalEntry::Kept { page, level: 1, validators, content: 7, size: 20_000, change, elsewhere, named });
    }
    let row = |(sequence, entry)| JournalRow { key: key(number), sequence, entry: postcard::to_stdvec(&entry).expect("an entry") };
    (0..).zip(entries).map(row).collect()
}

#[derive(Deserialize)]
struct Asked {
    rows: ExportOf,
    after: Option<String>,
    run: Option<u32>,
    sequence: Option<u64>,
    part: Option<u32>,
}

/// What an owner of so many hosts answers.
async fn answer(store: Store, hosts: u64, asked: Asked) -> ExportedRows {
    let number = |host: &str| host.trim_start_matches("host").trim_end_matches(".test").parse::<u64>().expect("a number");
    let within = asked.run.and(asked.sequence);
    let first = asked.after.map_or(0, |after| number(&after) + u64::from(within.is_none()));
    let some = first..(first + 64).min(hosts);
    if asked.rows == ExportOf::Hosts {
        return ExportedRows::of_hosts((first..hosts).map(host).collect::<Vec<_>>().iter());
    }
    let journal = |number| ExportedJournal {
        key: key(number),
        tree: host(number),
        state: RunState::Complete,
        from: within.filter(|_| number == first).unwrap_or(0),
        part: asked.part.filter(|_| number == first).unwrap_or(0),
    };
    let order =
        ExportOrder { of: asked.rows, me: ME, secret: SECRET, journals: some.clone().map(journal).collect(), more: some.end < hosts };
    let (mut rows, _) = exports::read(&store, &order).await.expect("the store answers");
    if order.journals.is_empty() {
        rows.next = None::<ExportPlace>;
    }
    rows
}

/// Runs the program, and tells how many seconds it took and how many MiB of memory.
fn run(api: &str, arguments: &[&str]) -> (f64, u64) {
    let begun = Instant::now();
    let mut all = vec!["export"];
    all.extend(arguments);
    all.extend(["--api", api]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_nearcrawl")).args(&all).stdout(Stdio::null()).spawn().expect("the program");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        if let Some(ended) = child.try_wait().expect("it can be waited for") {
            assert!(ended.success(), "{all:?}: {ended}");
            return (begun.elapsed().as_secs_f64(), most);
        }
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        most = most.max(peak.unwrap_or(0) / 1024);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn measure(api: &str, directory: &Path, pages: u64) {
    let file = |name: &str| directory.join(name).to_str().expect("a name").to_owned();
    let (parquet, edges, map) = (file("pages.parquet"), file("links.tsv"), file("hosts.tsv"));
    let courses: [&[&str]; 5] = [
        &["pages"],
        &["pages", "--format", "csv"],
        &["pages", "--format", "parquet", "--out", &parquet],
        &["links"],
        &["links", "--trace", &edges, "--hosts", &map],
    ];
    for arguments in courses {
        let (seconds, memory) = run(api, arguments);
        let course: Vec<_> = arguments.iter().filter(|argument| !argument.contains('/')).copied().collect();
        println!("{:36} {seconds:7.1} s  {:8.0} pages/s  {memory:5} MiB", course.join(" "), pages as f64 / seconds);
    }
}

fn main() {
    let pages: u64 = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let hosts = pages.div_ceil(PAGES_OF_HOST);
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let (store, _) = Store::open(directory.path(), &StoreConfig::default()).expect("a store");
    let (begun, filling) = (Instant::now(), store.clone());
    runtime.block_on(async move {
        for number in 0..hosts {
            filling.journal_append(journal(number)).await.expect("it is stored");
        }
    });
    println!("{pages} pages of {hosts} hosts were stored in {:.0} s", begun.elapsed().as_secs_f64());
    let owner = Arc::new(vec![ServerOwner { access_point: ME, servers: hosts }]);
    let router = Router::new()
        .route("/api/servers/owners", get(move || async move { Json(owner.to_vec()) }))
        .route("/api/export/rows", get(move |Query(asked): Query<Asked>| async move { Json(answer(store, hosts, asked).await) }));
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("an address");
    let api = format!("http://{}", listener.local_addr().expect("an address"));
    runtime.spawn(async move { axum::serve(listener, router).await });
    measure(&api, directory.path(), pages);
}
