//! Tests that every command whose task panics is answered, and that the next one of its kind works again.

use super::*;
use crate::{
    io::store::StoreConfig,
    node::{clock, config::Config, hierarchy::snapshot_store::SnapshotStore, setup},
};
use ed25519_dalek::SigningKey;
use hickory_resolver::proto::rr::RecordType;
use nearcrawl_core::{
    crawler::{Crawler, Identity},
    replication::replicas::CopyOrder,
};
use nearcrawl_hierarchy::Builder;
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, SignedClaim},
    edition::Edition,
    fetch::{FetchOrder, FetchOutcome, FetchPurpose, ProbeReason, ProbeTarget},
    fingerprint::{Fingerprint, FingerprintKey},
    ids::{QuestionId, SiteNumber},
    journal::{JournalEntry, JournalKey, JournalRow},
    subnet::Subnet,
    time::WallTime,
    url::{Host, PageUrl},
    view::TaskView,
};
use nearcrawl_test_servers::{
    dns::{Dns, Reply, a},
    web::Site,
};
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

/// An executor without a swarm, and a web server that answers everything with a small page.
struct Bench {
    executor: Executor,
    inbox: Inbox,
    site: Site,
    _directory: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Bench {
        Bench::asking("127.0.0.1:9".parse().unwrap()).await
    }

    /// The same with a name server.
    async fn asking(dns: SocketAddr) -> Bench {
        let page = "<a href=/next>next</a>";
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{page}", page.len());
        let site = Site::always(vec![nearcrawl_test_servers::web::Step::Send(answer.into_bytes().into())]).await;
        let directory = tempfile::tempdir().unwrap();
        let mut config =
            Config { state_dir: directory.path().to_owned(), contact: Some("nobody@lab.test".to_owned()), ..Config::default() };
        (config.crawl.ports, config.crawl.allow_ranges) = (vec![site.address.port()], vec!["127.0.0.0/8".parse().unwrap()]);
        config.dns.servers = vec![dns];
        config.crawl.evaluation = true;
        let web = setup::web_clients(&config, FingerprintKey([7; 16])).unwrap();
        let (store, _) = Store::open(&directory.path().join("store"), &StoreConfig::default()).unwrap();
        let (mut executor, inbox) = Executor::new(web, ProbeKind::Tcp, store, None);
        executor.set_snapshots(SnapshotStore::open(&config).unwrap());
        Bench { executor, inbox, site, _directory: directory }
    }

    fn order(&self) -> FetchOrder {
        let url = PageUrl::parse(&format!("http://good.test:{}/", self.site.address.port())).unwrap();
        FetchOrder {
            url,
            address: self.site.address.ip(),
            purpose: FetchPurpose::Page,
            validators: Default::default(),
            front: true,
            evaluate: false,
            reason: Default::default(),
        }
    }

    /// The event that answers a command, whatever is told before it of a page on its way.
    async fn told(&mut self, command: Command) -> Event {
        if let Some(event) = self.executor.perform(command) {
            return event;
        }
        loop {
            let event = tokio::time::timeout(Duration::from_secs(20), self.inbox.events.recv()).await;
            match event.expect("an answer within 20 s").unwrap() {
                Event::BodyReceived { .. } => {}
                event => return event,
            }
        }
    }

    async fn fetched(&mut self) -> FetchOutcome {
        match self.told(Command::Web(WebCommand::Fetch(self.order()))).await {
            Event::Fetched { report, .. } => report.outcome,
            other => panic!("{other:?}"),
        }
    }
}

fn line(kind: TaskKind) -> TaskView {
    tasks::table().into_iter().find(|line| line.name == kind.name()).unwrap_or_default()
}

/// One panic of this kind, then checks that the table of tasks tells of it and that nothing of the kind runs on.
async fn after_a_panic<T>(kind: TaskKind, work: impl Future<Output = T>) -> T {
    let before = line(kind);
    tasks::inject_panics(kind, 1);
    let done = work.await;
    let after = line(kind);
    assert_eq!(after.panicked, before.panicked + 1, "{after:?}");
    // One from before may have ended meanwhile.
    assert!(after.running <= before.running, "{before:?}, then {after:?}");
    done
}

const MEMBER: AccessPoint = AccessPoint([3; 32]);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_task_panics_fails_and_the_next_one_works() {
    let mut bench = Bench::new().await;
    assert!(matches!(bench.fetched().await, FetchOutcome::Page { .. }));
    for kind in [TaskKind::Fetch, TaskKind::PageReading] {
        assert_eq!(after_a_panic(kind, bench.fetched()).await, FetchOutcome::Failed(FetchError::Crashed));
        assert!(matches!(bench.fetched().await, FetchOutcome::Page { .. }), "after {kind:?}");
    }
    // A connection that nobody drives is no failure of the server: it is closed, and the next request opens another one.
    let close = Command::Web(WebCommand::CloseConnection(bench.site.address.ip()));
    assert!(bench.executor.perform(close.clone()).is_none());
    while line(TaskKind::Close).running > 0 || line(TaskKind::Close).started == 0 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(after_a_panic(TaskKind::Connection, bench.fetched()).await, FetchOutcome::Failed(_)));
    assert!(matches!(bench.fetched().await, FetchOutcome::Page { .. }));

    let ended = line(TaskKind::Close).panicked;
    tasks::inject_panics(TaskKind::Close, 1);
    assert!(bench.executor.perform(close).is_none());
    while line(TaskKind::Close).panicked == ended {
        tokio::task::yield_now().await;
    }
    assert!(matches!(bench.fetched().await, FetchOutcome::Page { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_known_of_a_page_is_done_without_if_reading_it_panics() {
    let mut bench = Bench::new().await;
    let revisit = Command::Web(WebCommand::Revisit { order: bench.order(), site: SiteNumber(1), page: Fingerprint(1) });
    match after_a_panic(TaskKind::PreviousPage, bench.told(revisit)).await {
        Event::Revisited { report, previous: None, .. } => assert!(matches!(report.outcome, FetchOutcome::Page { .. })),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_and_a_look_up_whose_tasks_panic_fail() {
    let mut bench = Bench::new().await;
    let address = bench.site.address;
    let probe = |question| {
        let question = QuestionId(question);
        Command::Web(WebCommand::Probe {
            question,
            target: ProbeTarget { address, host: "good.test".parse().unwrap(), secure: false },
            reason: ProbeReason::Delegation(None),
        })
    };
    match after_a_panic(TaskKind::Probe, bench.told(probe(1))).await {
        Event::Probed { question: QuestionId(1), report } => assert_eq!(report.rtt_us, Err(FetchError::Crashed)),
        other => panic!("{other:?}"),
    }
    match bench.told(probe(2)).await {
        Event::Probed { question: QuestionId(2), report } => assert!(report.rtt_us.is_ok(), "{report:?}"),
        other => panic!("{other:?}"),
    }
    let resolve = Command::Web(WebCommand::Resolve { host: "museum.test".parse().unwrap(), pinned: None });
    match after_a_panic(TaskKind::Resolve, bench.told(resolve)).await {
        Event::Resolved { answer, .. } => assert_eq!(answer, Err(ResolveError::Crashed)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_whose_task_panics_counts_as_not_answered() {
    let mut bench = Bench::new().await;
    let copy = Command::Peers(PeerCommand::Copy(CopyOrder { to: MEMBER, compares: false, ranges: Vec::new() }));
    match after_a_panic(TaskKind::PeerTransfer, bench.told(copy)).await {
        Event::Copied { to: MEMBER, answer: CopyAnswer::Failed, .. } => {}
        other => panic!("{other:?}"),
    }
    let recover = Command::Peers(PeerCommand::Recover { subnet: "9.0.0.0/24".parse().unwrap(), host: None, from: MEMBER });
    match after_a_panic(TaskKind::PeerTransfer, bench.told(recover)).await {
        Event::Recovered { journals: None, .. } => {}
        other => panic!("{other:?}"),
    }
    let ours = Arc::new(Builder::new().finish().unwrap());
    let gather = Command::Hierarchy(HierarchyCommand::Gather { edition: Edition { hash: [1; 32], built: 0 }, from: vec![MEMBER], ours });
    match after_a_panic(TaskKind::SnapshotTransfer, bench.told(gather)).await {
        Event::EditionFound { found: Found::Unusable, hierarchy: None, .. } => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.executor.transfers.available_permits(), MAX_TRANSFERS, "every turn was given back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_store_queue_is_seen() {
    tasks::inject_panics(TaskKind::StoreQueue, 1);
    let mut bench = Bench::new().await;
    assert!(bench.inbox.outcomes.recv().await.is_none(), "the loop ends the daemon at this");
}

const SUBNETS: u32 = 4_000;

/// A claim of ours to one of many subnets, and the journal of its only host.
fn held(number: u32, key: &SigningKey) -> (SignedClaim, JournalRow) {
    let first = Ipv4Addr::from(0x1400_0000 + (number << 8));
    let (subnet, owner) = (Subnet::around(first.into(), 24), AccessPoint(key.verifying_key().to_bytes()));
    let (reason, answers) = (ClaimReason::Awarded, Vec::new());
    let claim = Claim { subnet, epoch: 1, owner, rtt_us: None, runner_up: None, probes: 0, reason, released: false, answers };
    let host: Host = format!("h{number}.test").parse().unwrap();
    let opened = JournalEntry::Opened { address: first.into(), tree: host.clone(), at: WallTime(1) };
    let row = JournalRow { key: JournalKey { subnet, host, run: 1 }, sequence: 0, entry: postcard::to_stdvec(&opened).unwrap() };
    (SignedClaim::sign(&claim, key), row)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journals_of_some_thousand_subnets_are_loaded_without_a_backlog_at_the_store() {
    let Bench { mut executor, mut inbox, .. } = Bench::new().await;
    let key = SigningKey::from_bytes(&[5; 32]);
    let (claims, rows): (Vec<_>, Vec<_>) = (0..SUBNETS).map(|number| held(number, &key)).unzip();
    executor.store.journal_append(rows).await.unwrap();
    let identity = Identity {
        key,
        incarnation: 1,
        addresses: Vec::new(),
        fingerprints: FingerprintKey([7; 16]),
        claims,
        members: Default::default(),
        voting: Vec::new(),
        sole: true,
        store: Default::default(),
        contacts: Vec::new(),
        surveys: Vec::new(),
        survey_probes: Vec::new(),
        opt_outs: Vec::new(),
        admissions: Vec::new(),
        certificate: None,
    };
    let hierarchy = Arc::new(Builder::new().finish().unwrap());
    let mut crawler = Crawler::new(identity, setup::settings(&Config::default(), false), hierarchy, clock::now());
    let mut most = 0;
    let status = |crawler: &Crawler| crawler.view().status(Default::default());
    while status(&crawler).servers < u64::from(SUBNETS) {
        while let Some(command) = crawler.next_command() {
            // No server is asked anything: only the store's part is of interest here.
            let event = if let Command::Store(_) = command { executor.perform(command) } else { None };
            event.into_iter().for_each(|event| crawler.handle(clock::now(), event));
            most = most.max(executor.behind());
        }
        let outcome = tokio::time::timeout(Duration::from_secs(20), inbox.outcomes.recv()).await.expect("the store goes on");
        if let (Ok(Some(event)), _turn) = outcome.unwrap() {
            crawler.handle(clock::now(), event);
        }
        executor.store_queue().catch_up();
    }
    assert!(most < 1_024, "{most} commands did not fit into the queue");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_of_interfaces_have_no_servers_but_in_ranges_that_are_opened_and_stay_known_when_they_cannot_be_read() {
    let mut bench = Bench::new().await;
    let opened: [IpNetwork; 1] = ["127.0.0.0/8".parse().unwrap()];
    let at = |text: &str| text.parse::<IpAddr>().unwrap();
    let (here, seen) = ([bench.site.address.ip(), at("192.0.2.7"), at("2001:db8::7")], at("203.0.113.9"));
    let network = |address: IpAddr| IpNetwork::new(address, if address.is_ipv4() { 24 } else { 64 }).unwrap();
    let interfaces = |bench: &Bench, here: Option<&[IpAddr]>, opened: &[IpNetwork]| {
        bench.executor.own.interfaces(here.map(|here| here.iter().copied().map(network).collect()), opened);
    };
    bench.executor.is_seen_at(&[seen]);
    interfaces(&bench, Some(&here), &opened);
    assert_eq!(bench.executor.own_addresses().get(), [seen, here[1], here[2]]);
    assert!(matches!(bench.fetched().await, FetchOutcome::Page { .. }), "a laboratory's server on this machine");
    interfaces(&bench, None, &opened);
    assert_eq!(bench.executor.own_addresses().get(), [seen, here[1], here[2]], "the system did not tell");
    interfaces(&bench, Some(&here[..1]), &[]);
    assert_eq!(bench.executor.own_addresses().get(), [seen, here[0]]);
    assert_eq!(bench.fetched().await, FetchOutcome::Failed(FetchError::ForbiddenAddress));
    interfaces(&bench, Some(&[]), &[]);
    assert_eq!(bench.executor.own_addresses().get(), [seen]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neighbours_in_the_ipv6_network_of_an_interface_or_of_an_address_that_others_see_are_not_asked() {
    let mut bench = Bench::new().await;
    let neighbours = ["2a00:1:2:3::8", "2a00:5:6:7::8"].map(|text| text.parse::<IpAddr>().unwrap());
    bench.executor.is_seen_at(&["2a00:1:2:3::7".parse().unwrap()]);
    bench.executor.own.interfaces(Some(vec!["2a00:5:6:7::7/64".parse().unwrap()]), &[]);
    for address in neighbours {
        let order = FetchOrder { address, ..bench.order() };
        let Event::Fetched { report, .. } = bench.told(Command::Web(WebCommand::Fetch(order))).await else { panic!("{address}") };
        assert_eq!(report.outcome, FetchOutcome::Failed(FetchError::ForbiddenAddress), "{address}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_server_is_asked_where_a_name_in_swarm_advertise_leads() {
    let dns = Dns::start(|name, kind| match (name, kind) {
        ("home.dyn.test.", RecordType::A) => Reply::Records(vec![a(name, 60, "127.0.0.1"), a(name, 60, "203.0.113.9")]),
        _ => Reply::Records(Vec::new()),
    })
    .await;
    let mut bench = Bench::asking(dns.address).await;
    assert_eq!(bench.site.address.ip(), IpAddr::from([127, 0, 0, 1]));
    assert!(matches!(bench.fetched().await, FetchOutcome::Page { .. }));
    bench.executor.look_up_own_names(&["/dns4/home.dyn.test/tcp/4817".to_owned()]);
    let own = bench.executor.own_addresses();
    let known = async {
        while own.get().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), known).await.expect("the name is looked up");
    assert_eq!(bench.fetched().await, FetchOutcome::Failed(FetchError::ForbiddenAddress));
}

/// What each question that is passed on to another member comes to, in words; those that need an answer of it get `answer`.
async fn relayed(bench: &mut Bench, answer: Option<Response>) -> [String; 5] {
    let (rows, told_rows) = oneshot::channel();
    bench.executor.relay_rows(MEMBER, RowsOf::Servers, None, Asker::Local(rows));
    let (probes, told_probes) = oneshot::channel();
    bench.executor.relay_probes(MEMBER, SurveyId([1; 16]), Asker::Local(probes));
    let (export, told_export) = oneshot::channel();
    bench.executor.relay_export(MEMBER, ExportQuery { of: ExportOf::Pages, from: None }, Asker::Local(export));
    let (why, told_why) = oneshot::channel();
    bench.executor.relay_why(MEMBER, "museum.test".parse().unwrap(), why);
    let (measured, told_measured) = oneshot::channel();
    bench.executor.measure((MEMBER, false), Edition { hash: [1; 32], built: 0 }, 1, measured);
    let words = async {
        [
            told_rows.await.unwrap().unwrap_err(),
            told_probes.await.unwrap().unwrap_err().to_string(),
            told_export.await.unwrap().unwrap_err(),
            told_why.await.unwrap().unwrap_err(),
            told_measured.await.unwrap().unwrap_err().to_string(),
        ]
    };
    let answering = async {
        while let Some(PeerQuestion { to, reply, .. }) = bench.inbox.transfers.recv().await {
            assert_eq!(to, MEMBER);
            reply.send(answer.clone()).unwrap();
        }
    };
    let told = async {
        tokio::select! {
            words = words => words,
            () = answering => panic!("the executor has ended"),
        }
    };
    tokio::time::timeout(Duration::from_secs(20), told).await.expect("each is answered")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_member_is_asked_for_a_reader_while_the_bytes_among_members_are_spent() {
    let mut bench = Bench::new().await;
    let meter: Arc<SwarmMeter> = Arc::default();
    bench.executor.relay = Relay::new(Some(Arc::clone(&meter)), Instant::now());
    let asked = relayed(&mut bench, Some(Response::Refused("has none".to_owned()))).await;
    assert_eq!(&asked[..2], [format!("{} has none", MEMBER.short()), format!("{} does not answer", MEMBER.short())]);
    assert!(asked.iter().all(|why| !why.contains("are spent (")), "{asked:?}");
    meter.spend(true);
    // Whoever were asked would answer so.
    let spent = relayed(&mut bench, None).await;
    assert_eq!(spent, std::array::from_fn(|_| RelayError::Spent.why().to_owned()));
}
