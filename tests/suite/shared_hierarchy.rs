//! How do real daemons share a hierarchy? One gets a newer edition; the others fetch it from each other, look at it, and use it.

use crate::support::{Ground, Habits, Judge, SmallWeb, Swarm};
use nearcrawl::{
    logic::hierarchy::{Builder, Hierarchy},
    model::subnet::Subnet,
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

const LONG_ENOUGH: Duration = Duration::from_secs(90);

/// Adopting takes until members count as settled, and two rounds of gossip.
const SOON: Duration = Duration::from_secs(40);

/// The date that the made-up registry files of the web bear, and one of two months before.
const NEW_DATE: &str = "20261121";
const OLD_DATE: &str = "20260915";

/// A swarm of three whose registry files are two months old, and the files as they were made.
async fn prepare(hosts: usize, pages: usize) -> (Swarm, Arc<SmallWeb>, Vec<(PathBuf, String)>) {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, hosts, pages, 10));
    let points: Vec<Ipv4Addr> = [0, 1, 3].iter().map(|point| web.places.access_points[*point]).collect();
    let habits = Habits { threshold_ms: 4, ..Habits::default() };
    let swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    let files: Vec<(PathBuf, String)> =
        swarm.common.registries.iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect();
    for (path, text) in &files {
        std::fs::write(path, text.replace(NEW_DATE, OLD_DATE)).unwrap();
    }
    (swarm, web, files)
}

/// The hierarchy of registry files.
fn built(files: &[(PathBuf, String)]) -> Hierarchy {
    let mut builder = Builder::new();
    for (path, text) in files {
        builder.read_delegated(&path.display().to_string(), text.as_bytes()).unwrap();
    }
    builder.finish().unwrap()
}

fn hex(hash: [u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn status(swarm: &Swarm, daemon: usize) -> Value {
    serde_json::from_str(&swarm.cli(daemon, &["status", "--json"]).await).unwrap()
}

async fn hashes(swarm: &Swarm) -> Vec<String> {
    let mut hashes = Vec::new();
    for daemon in swarm.running() {
        hashes.push(status(swarm, daemon).await["hierarchy"]["hash"].as_str().unwrap().to_owned());
    }
    hashes
}

/// Gives a daemon another hierarchy: its configuration names it from now on.
fn give(swarm: &Swarm, daemon: usize, hierarchy: &Hierarchy) {
    let point = swarm.daemons[daemon].address;
    let path = swarm.common.directory.join(format!("{point}.snapshot"));
    std::fs::write(&path, hierarchy.to_bytes()).unwrap();
    let config = swarm.common.directory.join(format!("{point}.toml"));
    let text = std::fs::read_to_string(&config).unwrap();
    let lines = text.lines().map(|line| if line.starts_with("delegated = ") { format!("snapshot = {path:?}") } else { line.to_owned() });
    std::fs::write(&config, lines.collect::<Vec<_>>().join("\n")).unwrap();
}

/// Waits until every daemon uses this hierarchy.
async fn all_use(swarm: &mut Swarm, hash: [u8; 32]) {
    let wanted = hex(hash);
    for daemon in swarm.running() {
        let api = format!("http://{}:4880", swarm.daemons[daemon].address);
        let (common, wanted) = (swarm.common.clone(), wanted.clone());
        let what = format!("daemon {daemon} uses the new hierarchy");
        swarm
            .until(&what, SOON, async || {
                let said = common.ask(&["status", "--json", "--api", &api]).await.map_err(|why| why.to_string())?;
                let now: Value = serde_json::from_str(&said).map_err(|why| why.to_string())?;
                if now["hierarchy"]["hash"] == *wanted { Ok(()) } else { Err(now["hierarchy"].to_string()) }
            })
            .await;
    }
}

#[tokio::test]
async fn a_newer_edition_goes_from_one_daemon_to_all_and_nothing_is_delegated_or_fetched_anew() {
    let (mut swarm, web, files) = prepare(12, 30).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, least_delay: Duration::from_millis(100) };
    swarm.start(0..3).await;
    swarm.seed(0, &web.seeds()).await;
    swarm.owned_by_the_living(&web.subnets(), LONG_ENOUGH).await;
    let before = hashes(&swarm).await;
    assert!(before.iter().all(|hash| *hash == before[0]));
    let owners = swarm.owners(0).await;

    // The same world three months later: a block that nobody had before.
    let net = web.hosts[0].1.octets()[1];
    let newcomer = (format!("127.{net}.249.0"), IpAddr::from([127, net, 249, 9]));
    let mut newer = files.clone();
    let (_, text) = newer.first_mut().unwrap();
    let registry = text.lines().find(|line| line.starts_with("2|")).unwrap().split('|').nth(1).unwrap().to_owned();
    let summary = text.lines().find(|line| line.ends_with("|summary")).unwrap().to_owned();
    let count = text.lines().find(|line| line.starts_with("2|")).unwrap().split('|').nth(3).unwrap().parse::<usize>().unwrap();
    *text = text
        .replace(&summary, &summary.replace(&format!("|{count}|"), &format!("|{}|", count + 1)))
        .replace(&format!("|{NEW_DATE}|{count}|"), &format!("|{NEW_DATE}|{}|", count + 1));
    *text += &format!("{registry}|KE|ipv4|{}|256|20260101|allocated|newcomer\n", newcomer.0);
    let new = built(&newer);
    assert_eq!(new.subnet_of(newcomer.1).to_string(), format!("{}/24", newcomer.0));

    assert!(swarm.daemons[1].stop().await);
    give(&swarm, 1, &new);
    swarm.start([1]).await;
    all_use(&mut swarm, new.hash()).await;
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&[]);
    let after: BTreeMap<Subnet, _> = swarm.owners(2).await;
    for (subnet, owner) in owners {
        assert_eq!(after.get(&subnet), Some(&owner), "{subnet} moved");
    }

    // Whoever stops and comes back still uses it, though its configuration names the old one.
    assert!(swarm.daemons[2].stop().await);
    swarm.start([2]).await;
    assert_eq!(status(&swarm, 2).await["hierarchy"]["hash"], *hex(new.hash()));
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn an_edition_that_changes_more_than_time_explains_is_used_by_nobody() {
    let (mut swarm, web, _) = prepare(6, 2).await;
    swarm.start(0..3).await;
    let before = hashes(&swarm).await;
    // Nothing of the world before is in it.
    let forged = {
        let mut builder = Builder::new();
        for number in 0..40 {
            let prefix = format!("127.{}.{number}.0/25", web.hosts[0].1.octets()[1]).parse().unwrap();
            let further = nearcrawl::logic::hierarchy::FurtherPrefix {
                prefix,
                country: "KE".to_owned(),
                organisation: format!("forger {number}"),
                registry: "made-up".to_owned(),
            };
            builder.add_prefix(&further).unwrap();
        }
        builder.read_delegated("dated", format!("2|made-up|{NEW_DATE}|0|19700101|{NEW_DATE}|+0000\n").as_bytes()).unwrap();
        builder.finish().unwrap()
    };
    assert!(swarm.daemons[1].stop().await);
    give(&swarm, 1, &forged);
    swarm.start([1]).await;
    for daemon in [0, 2] {
        let api = format!("http://{}:4880", swarm.daemons[daemon].address);
        let common = swarm.common.clone();
        swarm
            .until(&format!("daemon {daemon} has looked at it"), SOON, async || {
                let said = common.ask(&["status", "--json", "--api", &api]).await.map_err(|why| why.to_string())?;
                let now: Value = serde_json::from_str(&said).map_err(|why| why.to_string())?;
                let counted = now["refusals"]["hierarchies that change more than time explains"].as_u64() >= Some(1);
                if counted { Ok(()) } else { Err(now["refusals"].to_string()) }
            })
            .await;
        assert_eq!(status(&swarm, daemon).await["hierarchy"]["hash"], *before[0]);
    }
    assert!(swarm.stop().await);
}
