//! A stand-in for the node in tests: a task that answers queries from a small made-up swarm.

use crate::node::{
    api::{Api, Local},
    metrics::Metrics,
    query::{Query, QueryHandle},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{AdmissionMode, AdmissionView, CertificateView, ExpulsionView, RootKey},
    allowance::AllowanceView,
    claim::ClaimReason,
    crawled_by::CrawledBy,
    cross_table::{CrossTable, CrossTableView, Pair},
    distinct::{DistinctSets, DistinctView},
    evaluation::Rule,
    exported::ExportedRows,
    facts::{Certificate, Guard, HttpVersion, RobotsSummary, ServerFacts, TlsVersion, Vantage},
    failing_pages::FailingPages,
    fetch::{FetchError, ResolveError},
    fingerprint::FingerprintKey,
    opt_out::{OptOutProof, OptOutView},
    ownership_history::Holding,
    plan::Pace,
    profile::{AllowanceState, ByteLimit, Profile, ToldAllowance, UsedShare},
    record::{HeldBack, RunState, ServerRecord, ServerStatus},
    request_record::{RecordGap, RecordTold, RecordedHour, RecordsAsked, RequestsAnswer},
    requests_made::{MadeRequest, MemberRequests, RequestsMade, RequestsQuery, RequestsView, Verdict},
    run_history::RunSummary,
    server_rows::{HistoryRow, RowsOf, RunRow, ServerOwner, ServerRow, ServerRows},
    subnet::Subnet,
    summary::{Counts, Coverage, Dimension, Summary, SwarmResults},
    survey::{Survey, SurveyMark, SurveyPlan, SurveyState, SurveyView},
    survey_probes::{ProbeOutcome, ProbedServer, SurveyProbes},
    time::WallTime,
    url::{Host, PageUrl},
    view::*,
};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Instant,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

/// A served API with the fake behind it; ends when it is told to.
pub struct FakeNode {
    pub address: SocketAddr,
    pub queries: QueryHandle,
    stop: oneshot::Sender<()>,
    tasks: Vec<JoinHandle<()>>,
}

impl FakeNode {
    pub async fn start(listen: &str) -> FakeNode {
        FakeNode::start_with(listen, Local::default()).await
    }

    /// The same with what is on this machine.
    pub async fn start_with(listen: &str, local: Local) -> FakeNode {
        let (queries, questions) = QueryHandle::new();
        let answering = tokio::spawn(answer_all(questions));
        let api = Api::bind(listen.parse().unwrap()).await.unwrap().with(local);
        let address = api.address();
        let (stop, stopped) = oneshot::channel();
        let serving = api.serve(queries.clone(), Arc::new(Metrics::new()), async {
            let _ = stopped.await;
        });
        let serving = tokio::spawn(async { serving.await.unwrap() });
        FakeNode { address, queries, stop, tasks: vec![answering, serving] }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Stops serving and waits for everything that was started.
    pub async fn end(self) {
        self.stop.send(()).unwrap();
        drop(self.queries);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

async fn answer_all(mut questions: mpsc::Receiver<Query>) {
    let started = Instant::now();
    while let Some(query) = questions.recv().await {
        answer(query, started.elapsed().as_millis() as u64);
    }
}

pub fn access_point(number: u8) -> AccessPoint {
    AccessPoint([number.wrapping_mul(37).wrapping_add(11); 32])
}

fn answer(query: Query, age: u64) {
    // A caller that has stopped waiting is no error.
    match query {
        Query::Status(reply) => drop(reply.send(status(age))),
        Query::Events(reply) => drop(reply.send(events())),
        Query::Members(reply) => drop(reply.send(members(age))),
        Query::Ownership { after, limit, reply } => {
            let all = (0..40).map(ownership).filter(|row| after.is_none_or(|after| row.subnet > after));
            drop(reply.send(all.take(limit).collect()));
        }
        Query::Results(reply) => drop(reply.send(results(age))),
        Query::CrossTable { by, reply } => drop(reply.send(cross_table(by))),
        Query::Distinct(reply) => drop(reply.send(distinct())),
        Query::Why { subject, reply } => drop(reply.send(why(&subject))),
        Query::AddSeeds { urls, reply } => drop(reply.send(seeds(&urls))),
        Query::Servers { after, limit, reply } => {
            let mut all: Vec<_> = (0..25).map(server).filter(|s| after.as_ref().is_none_or(|after| s.host > *after)).collect();
            let more = all.len() > limit;
            all.truncate(limit);
            let next = all.last().filter(|_| more).map(|s| s.host.clone());
            drop(reply.send(ServersPage { servers: all, next }));
        }
        Query::ServerOwners(reply) => drop(reply.send(vec![ServerOwner { access_point: access_point(0), servers: 25 }])),
        Query::ServerRows { rows, of, after, reply } => drop(reply.send(Ok(server_rows(rows, of, after.as_ref())))),
        Query::Export { reply, .. } => drop(reply.send(Ok(ExportedRows::of_hosts(&[])))),
        Query::WhyAt { subject, reply, .. } => drop(reply.send(Ok(why(&subject)))),
        Query::RequestsMade { query, reply } => drop(reply.send(requests_made(&query))),
        Query::Admission(reply) => drop(reply.send(admission())),
        Query::GiveAdmission { reply, .. } => drop(reply.send(Ok(access_point(1)))),
        Query::OptOuts(reply) => drop(reply.send(vec![opt_out()])),
        Query::SayOptOut { reply, .. } => drop(reply.send(Ok(opt_out()))),
        Query::Surveys(reply) => drop(reply.send(vec![survey()])),
        Query::Survey { reply, .. } | Query::MakeSurvey { reply, .. } | Query::ChangeSurvey { reply, .. } => drop(reply.send(Ok(survey()))),
        Query::SurveyProbes { of, reply, .. } => drop(reply.send(Ok(survey_probes(of)))),
        Query::Measure { of, bytes, reply } => {
            let measured = MeasuredTransfer { relayed_bytes: bytes, took_ms: 800, ..MeasuredTransfer::new(of) };
            drop(reply.send(Ok(measured)))
        }
        Query::Pin { subnet, pinned, reply } => drop(reply.send(PinView { subnet, pinned, refused_text: None })),
        Query::Move { subnet, to, reply } => drop(reply.send(MoveView { subnet, to, refused_text: None })),
        Query::DeclareLost { members, reply } => drop(reply.send(DeclaredLostView { lost: members, alive: Vec::new() })),
        Query::Pause { reply, .. } => drop(reply.send(Ok(AllowanceView { paused: true, ..AllowanceView::default() }))),
        Query::Resume(reply) => drop(reply.send(Ok(AllowanceView::default()))),
        Query::Leave(reply) => drop(reply.send(LeaveView { released: 14 })),
    }
}

fn mark() -> SurveyMark {
    let labels = [("sector".to_owned(), ["university".to_owned()].into())].into();
    SurveyMark { name: "universities".to_owned(), creator: access_point(0), labels }
}

fn admission() -> AdmissionView {
    let (issued_at, expires_at) = (WallTime(1_775_002_600_000), WallTime(1_806_538_600_000));
    let certificate = |number, may_invite, invited_by| CertificateView {
        access_point: access_point(number),
        label: "Nairobi".to_owned(),
        may_invite,
        invited_by,
        issued_at,
        expires_at,
        alive: true,
        refused_text: None,
    };
    AdmissionView {
        mode: AdmissionMode::Invite,
        swarm: Some(RootKey([7; 32])),
        refused_text: None,
        certificates: vec![certificate(0, true, None), certificate(1, false, Some(access_point(0)))],
        expulsions: vec![ExpulsionView {
            access_point: access_point(2),
            expelled_by: None,
            expelled_at: issued_at,
            reason_text: "asked too much".to_owned(),
        }],
    }
}

fn opt_out() -> OptOutView {
    OptOutView {
        subject: "museum.or.ke".to_owned(),
        kind: "host".to_owned(),
        proof: OptOutProof::Txt,
        in_force: true,
        opted_out_at: WallTime(1_775_002_600_000),
        said_by: vec![access_point(0)],
        denied_by: Vec::new(),
        revision: 1,
        state_text: "in force: the proof was seen here".to_owned(),
    }
}

pub(crate) fn survey() -> SurveyView {
    let plan = SurveyPlan { name: "universities".to_owned(), licence: "CC-BY-4.0".to_owned(), ..SurveyPlan::default() };
    let (creator, at) = (access_point(0), WallTime(1_775_001_600_000));
    let survey = Survey { creator, revision: 1, state: SurveyState::Running, created_at: at, changed_at: at, plan };
    SurveyView::new(&survey, &creator, WallTime(1_775_002_600_000))
}

fn survey_probes(access_point: AccessPoint) -> SurveyProbes {
    let row = ProbedServer {
        host: "museum.or.ke".parse().unwrap(),
        address: Some("192.0.2.7".parse().unwrap()),
        at: WallTime(1_775_002_000_000),
        outcome: ProbeOutcome::Answered,
        rtt_us: Some(41_500),
    };
    SurveyProbes {
        access_point,
        address: None,
        servers: 1,
        denied: 0,
        waiting_for_budget: 0,
        waiting_for_address: 0,
        waiting_for_turn: 0,
        rows: vec![row],
        round_trips: Vec::new(),
    }
}

/// The servers behind a host, or their first two runs, in the second of which each has a page more.
pub fn server_rows(rows: RowsOf, access_point: AccessPoint, after: Option<&Host>) -> ServerRows {
    let all = (0..25).map(server).filter(|record| after.is_none_or(|after| record.host > *after));
    let place = || ("KE".to_owned(), "afrinic".to_owned(), "Museum".to_owned());
    match rows {
        RowsOf::Servers => ServerRows::of(all.map(|record| {
            let (country, registry, organisation) = place();
            let (inclusion_probability, surveys) = (Some(1.0), vec![mark()]);
            (record.host.clone(), ServerRow { access_point, country, registry, organisation, inclusion_probability, surveys, record })
        })),
        RowsOf::History => ServerRows::of(all.map(|record| {
            let (host, tree) = (record.host.clone(), record.tree.clone());
            let runs = [1, 2].map(|run| {
                let (country, registry, organisation) = place();
                let pages = record.pages + u64::from(run) - 1;
                let record = ServerRecord { run, pages, state: RunState::Complete, ..record.clone() };
                RunRow { country, registry, organisation, summary: RunSummary::of(&record) }
            });
            (host.clone(), HistoryRow { access_point, host, tree, surveys: vec![mark()], runs_left_out: 0, today: None, runs: runs.into() })
        })),
    }
}

pub fn status(age: u64) -> StatusView {
    let doing = Activity::Fetching { servers: 3 + age / 1000 % 4 };
    StatusView {
        access_point: access_point(0),
        version: "0.1.0".into(),
        uptime_ms: 4_000_000 + age,
        swarm: "6fa0c31d".into(),
        addresses: vec![format!("/ip4/127.10.0.1/tcp/4817/p2p/{}", access_point(0))],
        reachability: ReachabilityView {
            state: ReachState::Public,
            state_text: ReachabilityView::sentence(ReachState::Public, false, &[]),
            ..ReachabilityView::default()
        },
        contact: Some("crawl@museum.or.ke".into()),
        user_agent: "nearcrawl/0.1".into(),
        pace: Pace { min_delay_ms: 2_000, delay_factor: 10, max_parallel: 64 },
        connection_errors_text: None,
        alone_text: None,
        pinned_subnets: Vec::new(),
        token_file: None,
        state: doing.state(),
        state_text: doing.to_string(),
        members: MemberCounts { alive: 4, silent: 0, dead: 1 },
        voters: VotersView {
            list: 3,
            voters: (0..3).map(access_point).collect(),
            networks: (0..3).map(|number| Some(Subnet::around(IpAddr::from([192, 0, number, 0]), 24))).collect(),
            quorum: 2,
            votes: true,
            lease_ms: Some(27_000),
            term: 1,
            bears_text: "the swarm goes on while 1 of them fails".into(),
        },
        subnets_owned: 14,
        subnets_claimed: 55,
        servers: 16,
        work: WorkView {
            pages: 180 + age / 300,
            requests: 213 + age / 280,
            bytes: 4_812_233 + age * 9,
            not_modified: 0,
            failed: 3,
            probes: 61,
            lookups: 70,
            lookups_repeated: 2,
        },
        failures: BTreeMap::from([(FetchError::HeadTimeout, 2), (FetchError::CertificateExpired, 1)]),
        unresolved: BTreeMap::from([(ResolveError::NoSuchName, 4)]),
        migration: MigrationView {
            rule: "nearcrawl".into(),
            judged: 40,
            offered: 2,
            released: 1,
            busy_ratio: 0.25,
            price_ratio: 1.5,
            ..MigrationView::default()
        },
        delegation: DelegationView {
            policy: "nearcrawl".into(),
            delegated: 21,
            delegated_without_probe: 2,
            delegated_by_probes: BTreeMap::from([(0, 2), (1, 9), (2, 8), (3, 2)]),
            probes_for_others: 40,
            observations: 118,
            members_measured: 4,
            ..DelegationView::default()
        },
        waiting_urls: 96,
        outgoing_urls: 4,
        open_connections: 3,
        hierarchy: HierarchyView {
            hash: "a3f9".repeat(16),
            sources_text: "registry files of 2018-10-13 and 2026-05-05".into(),
            subnets: 55,
        },
        caches: vec![CacheView { place: "frontier".into(), entries: 256, capacity: 256, hits: 9_120, misses: 411 }],
        allowance: AllowanceView { day_bytes: 81_000_000, day_limit_bytes: Some(2 << 30), ..AllowanceView::default() },
        store: StoreView { state_bytes: 412_000, cache_bytes: 3_900_000, age_ms: Some(1_200), silent_for_ms: None },
        refusals: BTreeMap::from([("url: only http and https".into(), 12), ("address: private".into(), 1)]),
        messages: vec![MessagesView { kind: "leases".into(), sent: 2_880, encoded_bytes: 190_000 }],
        limits: vec![LimitView { name: "waiting URLs".into(), used: 96, max: 1_000_000 }],
        tasks: vec![TaskView { name: "fetch".into(), part: "fetcher".into(), running: 3, started: 213, ended: 210, panicked: 0 }],
    }
}

/// The name of one is markup: it must be shown as text.
fn profile(i: usize) -> Profile {
    let used: Vec<_> = UsedShare::new(ByteLimit::CrawlDay, 40, Some(100)).into_iter().collect();
    let allowance = |state| Some(ToldAllowance { state, used: used.clone() });
    match i {
        1 => Profile { name: "Museum in Nairobi".parse().ok(), allowance: allowance(AllowanceState::WithinLimits) },
        2 => Profile { name: "<b>x</b> & <img src=x>".parse().ok(), allowance: allowance(AllowanceState::OutsideHours) },
        _ => Profile::default(),
    }
}

pub fn members(age: u64) -> Vec<MemberView> {
    [14, 9, 17, 11, 4]
        .into_iter()
        .enumerate()
        .map(|(i, subnets)| MemberView {
            access_point: access_point(i as u8),
            is_me: i == 0,
            address: (i != 3).then(|| format!("127.{}.0.1", 10 + i).parse().unwrap()),
            is_relayed: i == 3,
            addresses: vec![match i {
                3 => format!("/ip4/127.11.0.1/tcp/4817/p2p/{}/p2p-circuit", access_point(1)),
                _ => format!("/ip4/127.{}.0.1/tcp/4817", 10 + i),
            }],
            profile: profile(i),
            liveness: [Liveness::Alive, Liveness::Alive, Liveness::Alive, Liveness::Silent, Liveness::Dead][i],
            country: (i != 3).then(|| "KE".to_owned()),
            rtt_ms: Some(12.5),
            liveness_for_ms: 61_000 * (i as u64 + 1) + age,
            subnets,
            servers: subnets + 2,
            pages: subnets * 11,
            roll_up_age_ms: (i != 4).then_some(800 * i as u64),
        })
        .collect()
}

fn events() -> EventsView {
    let event = |probes: Option<u16>| EventView {
        kind: if probes.is_some() { EventKind::Delegation } else { EventKind::Move },
        begun_at: WallTime(1_790_000_000_000),
        duration_ms: 4_250,
        subnet: "127.16.3.0/24".parse().unwrap(),
        outcome: if probes.is_some() { EventOutcome::Owned } else { EventOutcome::Released },
        from: probes.is_none().then(|| access_point(0)),
        to: access_point(1),
        probes,
        policy: probes.map(|_| "nearcrawl".into()),
        reason_text: probes.is_none().then(|| "moved by its operator".into()),
        requests: None,
        took_ms: None,
    };
    EventsView { access_point: access_point(0), dropped: 7, events: vec![event(Some(2)), event(None)] }
}

pub fn ownership(i: u8) -> OwnershipView {
    OwnershipView {
        subnet: format!("127.16.{i}.0/24").parse().unwrap(),
        epoch: 1 + u64::from(i.is_multiple_of(3)),
        owner: access_point(i % 5),
        rtt_ms: (!i.is_multiple_of(7)).then_some(8.0 + f64::from(i) * 0.211),
        probes: 1 + u16::from(i % 4),
        reason: if i.is_multiple_of(3) { ClaimReason::OwnerDead } else { ClaimReason::Awarded },
        runner_up: i.is_multiple_of(2).then(|| access_point((i + 1) % 5)),
        released: false,
        measurements: vec![
            MeasurementView { access_point: Some(access_point(i % 5)), rtt_ms: 8.2 },
            MeasurementView { access_point: None, rtt_ms: 9.1 },
        ],
    }
}

pub fn facts() -> ServerFacts {
    let at = |millis: u64| WallTime(1_790_000_000_000 + millis);
    ServerFacts {
        rtt_us: Some(8_250),
        first_byte_us: Some(21_000),
        vantage: Some(Vantage { country: Some("KE".into()), asn: Some(64_512) }),
        http_version: Some(HttpVersion::Http11),
        alt_svc: vec!["h3".into()],
        tls_version: Some(TlsVersion::Tls13),
        certificate: Some(Certificate { issuer: "An Authority of Certificates, Inc.".into(), not_before_at: at(0), not_after_at: at(1) }),
        hsts_ms: Some(31_536_000_000),
        redirects_to_https: true,
        guard: Some(Guard::Cloudflare),
        language: Some("sw".into()),
        script: Some("Latn".into()),
        charset: Some("UTF-8".into()),
        generator: Some("A Program That Makes Pages 2".into()),
        title: Some("The museum of the old town".into()),
        robots: Some(RobotsSummary::BarsSome),
        content_usage: Some("train-ai=n, search=y, more=n".into()),
        robots_content_usage: None,
        tdm_reserved: Some(true),
    }
}

pub fn server(i: u8) -> ServerRecord {
    let host: Host = format!("s{i:02}.ke.test").parse().unwrap();
    ServerRecord {
        tree: host.clone(),
        host,
        address: Some(format!("127.16.{i}.1").parse().unwrap()),
        run: 1,
        status: ServerStatus::Up,
        state: RunState::Running,
        software: Some("nginx".into()),
        pages: 9,
        requests: 12,
        bytes: 40_000,
        busy_ms: 300,
        known: 14,
        fetched: 10,
        unanswered: 0,
        waiting: 1,
        set_aside: 0,
        cut_by_depth: 0,
        refused_by_robots: 1,
        cut_by_script: 2,
        cut_by_yield: 0,
        failed: 0,
        by_status: BTreeMap::from([(200, 9), (404, 1)]),
        external_hosts: 4,
        external_urls: 7,
        external_domains: 3,
        deepest: 5,
        first_visit_at: Some(WallTime(1_790_000_000_000)),
        last_visit_at: Some(WallTime(1_790_000_100_000)),
        no_index: 0,
        no_follow: 0,
        crawl_delay_ms: None,
        refused_by_crawl_delay: 0,
        refused_by_robots_unavailable: 0,
        changes: None,
        levels: Vec::new(),
        by_failure: BTreeMap::new(),
        evaluation: None,
        next_run: None,
        evaluation_rules: None,
        page_bytes: 40_000,
        held_back: HeldBack::default(),
        facts: Some(Box::new(facts())),
        failing_pages: Default::default(),
        crawled_by: Some(CrawledBy::new(8, 0, 1_000)),
    }
}

const ORGANISATIONS: &[(&str, u64)] = &[
    ("Kenya Education Network", 19),
    ("University of Dar es Salaam", 13),
    ("A very long organisation name that has to be cut somewhere, Limited Liability Partnership of Nairobi", 11),
    ("(other)", 9),
];

type Split = (Dimension, &'static [(&'static str, u64)]);

pub fn results(age: u64) -> SwarmResults {
    let splits: [Split; 12] = [
        (Dimension::Country, &[("KE", 21), ("TZ", 14), ("UG", 9), ("RW", 6), ("ZZ", 2)]),
        (Dimension::Tld, &[("ke", 20), ("tz", 15), ("org", 9), ("<b>x</b>", 8)]),
        (Dimension::Registry, &[("afrinic", 44), ("ripencc", 8)]),
        (Dimension::Organisation, ORGANISATIONS),
        (Dimension::Software, &[("nginx", 30), ("Apache", 18), ("(unknown)", 4)]),
        (Dimension::Status, &[("up", 44), ("no-pages", 3), ("refused", 2), ("down: head-timeout", 2), ("robots", 1)]),
        (Dimension::Language, &[("sw", 25), ("en", 20), ("undeclared", 7)]),
        (Dimension::Script, &[("Latn", 44), ("Ethi", 2), ("unknown", 6)]),
        (Dimension::Http, &[("1.1", 40), ("1.1, offers h3", 8), ("unknown", 4)]),
        (Dimension::Tls, &[("1.3", 30), ("1.2", 6), ("none", 12), ("unknown", 4)]),
        (Dimension::Family, &[("ipv4", 49), ("ipv6", 3)]),
        (Dimension::RuleSet, &[("2", 40), ("1", 7), ("none", 5)]),
    ];
    let growth = age / 400;
    let counts = |servers: u64| Counts {
        servers,
        up: servers - servers / 8,
        pages: servers * (9 + growth),
        requests: servers * (11 + growth),
        bytes: servers * (2 + growth) * 35_211,
        busy_ms: servers * 900,
        external_hosts: servers * 3,
        external_urls: servers * 5,
        external_domains: servers * 2,
        cut_by_depth: servers / 3,
        refused_by_robots: servers / 4,
        failed: servers / 9,
        unfinished: servers / 5,
        evaluated: servers * 9,
        detected_failures: servers * 31,
        page_bytes: servers * (9 + growth) * 35_211,
        waiting_urls: servers * 2,
        waiting_urls_by_budget: servers / 2,
        urls_not_queued: servers / 10,
        hosts_held_by_site_limit: servers / 4,
        hosts_held_by_domain_limit: servers / 7,
    };
    let by = splits.iter().map(|(d, values)| (*d, values.iter().map(|(v, n)| ((*v).to_owned(), counts(*n))).collect())).collect();
    // Tests that read rows end before it: there are fewer of these than servers in the totals.
    let exact = age / 60_000 % 3 != 1;
    SwarmResults {
        answered_by: access_point(0),
        exact,
        in_transition_text: (!exact).then(|| "3 subnets of …tEr4fvbW are being taken over".to_owned()),
        oldest_roll_up_age_ms: 1_900,
        covers: (0..4)
            .map(|i| Coverage { access_point: access_point(i), roll_up_age_ms: 1_900 - u64::from(i) * 300, subnets: 14, servers: 13 })
            .collect(),
        summary: Summary { total: counts(52), by, ..Summary::default() },
        consistent_age_ms: (!exact).then_some(2_400),
    }
}

pub fn distinct() -> DistinctView {
    let key = FingerprintKey([1; 16]);
    let set = |to: u32| (0..to).map(|number| key.of(&number.to_string())).collect();
    let sets = DistinctSets {
        servers: 52,
        unknown: 0,
        addresses: set(40),
        domains: set(47),
        external_hosts: set(2_000),
        external_domains: set(191),
    };
    DistinctView { age_ms: Some(0), ..DistinctView::new(access_point(0), &sets, 4) }
}

pub fn cross_table(by: Pair) -> CrossTableView {
    let mut table = CrossTable::new(by);
    for (one, other, servers) in [("KE", "ke", 20), ("KE", "org", 1), ("TZ", "tz", 14)] {
        table.add((one.to_owned(), other.to_owned()), &Counts { servers, up: servers, ..Counts::default() });
    }
    CrossTableView::new(access_point(0), table, None)
}

fn why(subject: &Subject) -> WhyView {
    WhyView {
        asked: subject.to_string(),
        answer_text: "Crawled from …8dWcTn1V, 8.2 ms away: it won after 3 probes, because the owner before it died.".into(),
        host: Some("museum.ke.test".parse().unwrap()),
        address: Some("127.16.3.7".parse().unwrap()),
        path_text: ["registry afrinic", "country KE", "Kenya Education Network", "127.16.0.0/20", "127.16.3.0/24"]
            .map(String::from)
            .to_vec(),
        subnet: Some("127.16.3.0/24".parse().unwrap()),
        ownership: Some(ownership(3)),
        history: vec![Holding {
            owner: access_point(3),
            epoch: 1,
            reason: ClaimReason::Awarded,
            claimed_at: WallTime(1_780_000_000_000),
            released_text: Some("the owner before it died".into()),
        }],
        reason_text: Some("the previous owner died".into()),
        judgement_text: Some("keep here: 41 ms a request, estimated 90 ms at …tEr4fvbW".into()),
        owner_liveness: Some(Liveness::Alive),
        owner_is_me: true,
        tree: Some("museum.ke.test".parse().unwrap()),
        level: Some(2),
        state: Some(VisitState::NotWaiting),
        state_text: Some("fetched with 200".into()),
        last_visit_at: Some(WallTime(1_790_000_000_000)),
        next_visit_in_ms: Some(1_400),
        robots_text: Some("allowed; robots.txt read 2 min ago".into()),
        facts: Some(Box::new(facts())),
        store_silent_for_ms: None,
        failing_pages: failing_pages(),
        surveys: vec![mark()],
        no_address_reason: None,
        requests_text: Some("none since 2026-11-26T08:00:00.000Z".into()),
    }
}

/// One member made a request, another does not answer, of whose record a replica has a copy.
pub fn requests_made(query: &RequestsQuery) -> RequestsAnswer {
    let line = MadeRequest { asked_at: query.from, reason: "link".into(), host: Some("museum.ke.test".parse().unwrap()) };
    let made = RequestsMade { requests: 1, lines: vec![line], uncovered: None };
    let members = [(0, Some(made)), (1, None), (2, None)].map(|(number, made)| MemberRequests::of(access_point(number), made));
    let view = RequestsView::new(query, members.into());
    let hour = RecordedHour {
        first_at: query.from,
        last_at: query.until,
        requests: 3,
        bytes: 4_096,
        reasons: vec!["robots".into(), "link".into()],
        hosts: vec!["museum.ke.test".parse().unwrap()],
        all_hosts: true,
    };
    let told = RecordTold {
        access_point: access_point(1),
        answered_by: access_point(0),
        gone_at: Some(query.from),
        verdict: Verdict::Yes,
        hours: vec![hour],
        gap: Some(RecordGap::NoRecord),
    };
    let asked = RecordsAsked {
        absent: [(access_point(1), Some(query.from)), (access_point(2), None)].into(),
        owners: [access_point(1), access_point(2)].into(),
        unanswered: [access_point(3)].into(),
    };
    RequestsAnswer::new(query, view, vec![told], &asked)
}

/// Five pages with a picture that has no name.
fn failing_pages() -> FailingPages {
    let (mut pages, key) = (FailingPages::default(), FingerprintKey([1; 16]));
    for number in 1..=5 {
        let url = PageUrl::parse(&format!("https://museum.ke.test/{number}")).unwrap();
        pages.note(Rule::ImageName, &url, 12, |url| key.of(url.as_str()));
    }
    pages
}

fn seeds(urls: &[PageUrl]) -> SeedView {
    let (refused, taken): (Vec<_>, Vec<_>) = urls.iter().partition(|url| url.host().as_str().ends_with(".invalid"));
    let refused = refused.into_iter().map(|url| RefusedSeed { url: url.to_string(), reason_text: "out of scope".into() }).collect();
    SeedView { accepted: taken.len() as u64, refused, not_durable: 0 }
}
