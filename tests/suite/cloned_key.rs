//! Test that a copied state directory is noticed.
//!
//! Two daemons that run with one key must not both act: the one that came first goes on.

use crate::support::{Ground, Habits, Judge, SmallWeb, Swarm, disk::copy};
use nearcrawl_lab::demo::daemons::API_PORT;
use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, Instant},
};

const LONG_ENOUGH: Duration = Duration::from_secs(120);

const SOON: Duration = Duration::from_secs(40);

/// The least pause between two requests to a server.
const MIN_DELAY: Duration = Duration::from_millis(1_000);

/// Whose state directory is copied.
const ORIGINAL: usize = 1;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_daemons_with_one_key_the_second_says_so_and_asks_nothing() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 16, 30, 10));
    let points: Vec<Ipv4Addr> = [0, 1, 3].map(|point| web.places.access_points[point]).to_vec();
    let habits = Habits { threshold_ms: 4, min_delay_ms: MIN_DELAY.as_millis() as u64, ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: MIN_DELAY };
    swarm.start(0..3).await;
    swarm.vote(3, SOON).await;
    swarm.seed(0, &web.seeds()).await;
    swarm.owned_by_the_living(&web.subnets(), LONG_ENOUGH).await;

    // The whole state directory of one that has been stopped and is started again, which is how it is copied by mistake.
    assert!(swarm.daemons[ORIGINAL].stop().await);
    let elsewhere = web.places.access_points[4];
    let clone = swarm.add(elsewhere).await;
    let directory = |point: Ipv4Addr| swarm.common.directory.join(point.to_string());
    fs::remove_dir_all(directory(elsewhere)).unwrap();
    copy(&directory(points[ORIGINAL]), &directory(elsewhere));
    swarm.start([ORIGINAL]).await;
    let theirs = swarm.held_by(ORIGINAL, 0).await;
    assert!(!theirs.is_empty() && judge.all_fetched().is_err());
    swarm.daemons[clone].start(&swarm.common).unwrap();

    let (begun, client) = (Instant::now(), nearcrawl::io::client::client().no_proxy().build().unwrap());
    let said = loop {
        let answer = client.get(format!("http://{elsewhere}:{API_PORT}/api/status")).send().await;
        let status: serde_json::Value = match answer {
            Ok(answer) => answer.json().await.unwrap(),
            Err(_) => serde_json::Value::Null,
        };
        assert_eq!(swarm.daemons[clone].ended().map(|why| why.to_string()), None);
        let text = status["state_text"].as_str().unwrap_or_default().to_owned();
        if text.contains("another process") {
            break text;
        }
        assert!(begun.elapsed() < SOON, "nothing is said: {status}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    println!("{:6.1} s: the copy says after {:?}: {said}", swarm.age(), begun.elapsed());

    // The one that came first goes on to the end, and nobody is asked by the copy.
    let (who, position) = (IpAddr::V4(points[ORIGINAL]), log.len());
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    assert!(log.since(position).iter().any(|request| request.peer == who), "the original does not go on");
    assert_eq!(swarm.held_by(ORIGINAL, 0).await, theirs, "subnets moved");
    let asked: Vec<_> = log.requests().into_iter().filter(|request| request.peer == IpAddr::V4(elsewhere)).collect();
    assert!(asked.is_empty(), "the copy asked: {asked:#?}");
    assert!(swarm.daemons[clone].stop().await);
    swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&[]);
    assert!(swarm.stop().await);
}
