//! Who stands in for the node in tests? A task that answers at the desk with a small, lively, made-up swarm.

use crate::model::{
    access_point::AccessPoint,
    claim::ClaimReason,
    fetch::{FetchFailure, ResolveFailure},
    record::{RunState, ServerRecord, ServerStatus},
    summary::{Counts, Coverage, Dimension, Summary, SwarmResults},
    time::WallTime,
    url::{Host, PageUrl},
    view::*,
};
use crate::node::{
    api::Api,
    desk::{Answer, Asked, Desk, Question},
    metrics::Metrics,
};
use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Instant};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

/// A served API with the fake behind it; ends when it is told to.
pub struct FakeNode {
    pub address: SocketAddr,
    pub desk: Desk,
    stop: oneshot::Sender<()>,
    tasks: Vec<JoinHandle<()>>,
}

impl FakeNode {
    pub async fn start(listen: &str) -> FakeNode {
        let (desk, questions) = Desk::new();
        let answering = tokio::spawn(answer_all(questions));
        let api = Api::bind(listen.parse().unwrap()).await.unwrap();
        let address = api.address();
        let (stop, stopped) = oneshot::channel();
        let serving = api.serve(desk.clone(), Arc::new(Metrics::new()), async {
            let _ = stopped.await;
        });
        let serving = tokio::spawn(async { serving.await.unwrap() });
        FakeNode { address, desk, stop, tasks: vec![answering, serving] }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Stops serving and waits for everything that was started.
    pub async fn end(self) {
        self.stop.send(()).unwrap();
        drop(self.desk);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

async fn answer_all(mut questions: mpsc::Receiver<Asked>) {
    let started = Instant::now();
    while let Some((question, reply)) = questions.recv().await {
        let _ = reply.send(answer(question, started.elapsed().as_millis() as u64));
    }
}

pub fn access_point(number: u8) -> AccessPoint {
    AccessPoint([number.wrapping_mul(37).wrapping_add(11); 32])
}

fn answer(question: Question, age: u64) -> Answer {
    match question {
        Question::Status => Answer::Status(Box::new(status(age))),
        Question::Peers => Answer::Peers(peers(age)),
        Question::Ownership { after, most } => {
            let all = (0..40).map(ownership).filter(|row| after.is_none_or(|after| row.subnet > after));
            Answer::Ownership(all.take(most).collect())
        }
        Question::Results => Answer::Results(Box::new(results(age))),
        Question::Why(subject) => Answer::Why(Box::new(why(&subject))),
        Question::AddSeeds(urls) => Answer::Seeds(seeds(&urls)),
        Question::Servers { after, most } => {
            let mut all: Vec<_> = (0..25).map(server).filter(|s| after.as_ref().is_none_or(|after| s.host > *after)).collect();
            let more = all.len() > most;
            all.truncate(most);
            let next = all.last().filter(|_| more).map(|s| s.host.clone());
            Answer::Servers(ServersPage { servers: all, next })
        }
        Question::Move(subnet, to) => Answer::Moving(MoveView { subnet, to, why_not: None }),
        Question::Leave => Answer::Leaving(LeaveView { released: 14 }),
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
        contact: Some("crawl@museum.or.ke".into()),
        user_agent: "nearcrawl/0.1".into(),
        state: doing.state(),
        sentence: doing.to_string(),
        members: MembersView { alive: 4, silent: 0, dead: 1 },
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
        },
        failures: BTreeMap::from([(FetchFailure::HeadTimeout, 2), (FetchFailure::CertificateExpired, 1)]),
        unresolved: BTreeMap::from([(ResolveFailure::NoSuchName, 4)]),
        migration: MigrationView { rule: "nearcrawl".into(), judged: 40, offered: 2, moved: 1, ..MigrationView::default() },
        delegation: DelegationView {
            policy: "nearcrawl".into(),
            settled: 21,
            settled_without_probe: 2,
            settled_by_probes: BTreeMap::from([(0, 2), (1, 9), (2, 8), (3, 2)]),
            probes_for_others: 40,
            observations: 118,
            members_measured: 4,
            ..DelegationView::default()
        },
        waiting_urls: 96,
        outgoing_urls: 4,
        open_connections: 3,
        hierarchy: HierarchyView { hash: "a3f9".repeat(16), version: "registry files of 2018-10-13 and 2026-05-05".into(), subnets: 55 },
        caches: vec![CacheView {
            place: "links of pages".into(),
            entries: 256,
            capacity: 256,
            hits: 9_120,
            misses: 411,
            shadows: Vec::new(),
        }],
        store: StoreView { state_bytes: 412_000, cache_bytes: 3_900_000 },
        refusals: BTreeMap::from([("url: only http and https".into(), 12), ("address: private".into(), 1)]),
        limits: vec![LimitView { name: "waiting URLs".into(), used: 96, most: 1_000_000 }],
    }
}

pub fn peers(age: u64) -> Vec<PeerView> {
    [14, 9, 17, 11, 4]
        .into_iter()
        .enumerate()
        .map(|(i, subnets)| PeerView {
            access_point: access_point(i as u8),
            is_me: i == 0,
            addresses: vec![format!("/ip4/127.{}.0.1/tcp/4817", 10 + i)],
            liveness: [Liveness::Alive, Liveness::Alive, Liveness::Alive, Liveness::Silent, Liveness::Dead][i],
            since_ms: 61_000 * (i as u64 + 1) + age,
            subnets,
            servers: subnets + 2,
            pages: subnets * 11,
            roll_up_age_ms: (i != 4).then_some(800 * i as u64),
        })
        .collect()
}

pub fn ownership(i: u8) -> OwnershipView {
    OwnershipView {
        subnet: format!("127.16.{i}.0/24").parse().unwrap(),
        epoch: 1 + u64::from(i.is_multiple_of(3)),
        owner: access_point(i % 5),
        rtt_us: (!i.is_multiple_of(7)).then_some(8_000 + u32::from(i) * 211),
        probes: 1 + u16::from(i % 4),
        reason: if i.is_multiple_of(3) { ClaimReason::OwnerDead } else { ClaimReason::Awarded },
        runner_up: i.is_multiple_of(2).then(|| access_point((i + 1) % 5)),
        released: false,
        answers: Vec::new(),
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
        first_visit: Some(WallTime(1_790_000_000_000)),
        last_visit: Some(WallTime(1_790_000_100_000)),
        no_index: 0,
        no_follow: 0,
        crawl_delay_ms: None,
        refused_by_crawl_delay: 0,
        changes: None,
        levels: Vec::new(),
        by_failure: BTreeMap::new(),
        evaluation: None,
    }
}

pub fn results(age: u64) -> SwarmResults {
    let splits: [(Dimension, &[(&str, u64)]); 6] = [
        (Dimension::Country, &[("KE", 21), ("TZ", 14), ("UG", 9), ("RW", 6), ("ZZ", 2)]),
        (Dimension::Tld, &[("ke", 20), ("tz", 15), ("org", 9), ("<b>x</b>", 8)]),
        (Dimension::Registry, &[("afrinic", 44), ("ripencc", 8)]),
        (
            Dimension::Organisation,
            &[
                ("Kenya Education Network", 19),
                ("University of Dar es Salaam", 13),
                ("A very long organisation name that has to be cut somewhere, Limited Liability Partnership of Nairobi", 11),
                ("(other)", 9),
            ],
        ),
        (Dimension::Software, &[("nginx", 30), ("Apache", 18), ("(unknown)", 4)]),
        (Dimension::Status, &[("up", 44), ("no-pages", 3), ("refused", 2), ("down: head-timeout", 2), ("robots", 1)]),
    ];
    let growth = age / 400;
    let counts = |servers: u64| Counts {
        servers,
        up: servers - servers / 8,
        pages: servers * (9 + growth),
        requests: servers * (11 + growth),
        bytes: servers * (9 + growth) * 35_211,
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
    };
    let by = splits.iter().map(|(d, values)| (*d, values.iter().map(|(v, n)| ((*v).to_owned(), counts(*n))).collect())).collect();
    let exact = age / 4000 % 3 != 1;
    SwarmResults {
        answered_by: access_point(0),
        exact,
        in_transition: (!exact).then(|| "3 subnets of …tEr4fvbW are being taken over".to_owned()),
        oldest_ms: 1_900,
        covers: (0..4)
            .map(|i| Coverage { access_point: access_point(i), age_ms: 1_900 - u64::from(i) * 300, subnets: 14, servers: 13 })
            .collect(),
        summary: Summary { total: counts(52), by, ..Summary::default() },
    }
}

fn why(subject: &Subject) -> WhyView {
    WhyView {
        asked: subject.to_string(),
        sentence: "Crawled from …8dWcTn1V, 8.2 ms away: it won after 3 probes, because the owner before it died.".into(),
        host: Some("museum.ke.test".parse().unwrap()),
        address: Some("127.16.3.7".parse().unwrap()),
        path: ["registry afrinic", "country KE", "Kenya Education Network", "127.16.0.0/20", "127.16.3.0/24"].map(String::from).to_vec(),
        subnet: Some("127.16.3.0/24".parse().unwrap()),
        ownership: Some(ownership(3)),
        answers: vec![AnswerView { access_point: access_point(3).to_string(), rtt_us: 8_200 }],
        history: Vec::new(),
        judged: Some("rewarded: a request takes 41 ms here and would take 90 ms elsewhere".into()),
        owner_liveness: Some(Liveness::Alive),
        owner_is_me: true,
        tree: Some("museum.ke.test".parse().unwrap()),
        level: Some(2),
        state: Some("fetched with 200".into()),
        last_visit: Some(WallTime(1_790_000_000_000)),
        next_visit_in_ms: Some(1_400),
        robots: Some("allowed; robots.txt read 2 min ago".into()),
    }
}

fn seeds(urls: &[PageUrl]) -> SeedView {
    let (refused, taken): (Vec<_>, Vec<_>) = urls.iter().partition(|url| url.host().as_str().ends_with(".invalid"));
    let refused = refused.into_iter().map(|url| RefusedSeed { url: url.to_string(), why: "out of scope".into() }).collect();
    SeedView { accepted: taken.len() as u64, refused }
}
