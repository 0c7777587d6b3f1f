//! Tests of how real daemons share a hierarchy: one gets a newer edition; the others fetch it from each other, look at it, and use it.

use crate::support::{Ground, Habits, Judge, SmallWeb, Swarm};
use nearcrawl_hierarchy::{Builder, Hierarchy, pack};
use nearcrawl_model::subnet::Subnet;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const LONG_ENOUGH: Duration = Duration::from_secs(90);

/// What each daemon counts of its probes.
const PROBES: &str = "nearcrawl_probes_total";

/// Adopting takes until members count as settled, and two rounds of gossip.
const SOON: Duration = Duration::from_secs(40);

/// The date that the made-up registry files of the web bear.
const MADE_UP_DATE: &str = "20261121";

/// Blocks elsewhere: in a small world one more subnet would be more than time explains.
const FURTHER_BLOCKS: usize = 60;

/// The date so many days ago as YYYYMMDD: nobody follows a stranger into the future, so the dates go with the clock.
pub fn date(days_ago: i64) -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    // Civil date from days (Howard Hinnant): years begin in March.
    let days = seconds / 86_400 - days_ago + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = 400 * era + year_of_era + i64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}")
}

/// A registry file with further records, `(first address, addresses, holder)`, counted as they must be.
fn with_records(text: &str, records: &[(String, u32, String)]) -> String {
    let field = |line: &str, number: usize| line.split('|').nth(number).unwrap().to_owned();
    let header = text.lines().find(|line| line.starts_with("2|")).unwrap();
    let registry = field(header, 1);
    let counted = |line: &str, count: usize| {
        let mut fields: Vec<String> = line.split('|').map(str::to_owned).collect();
        let more = fields[count].parse::<usize>().unwrap() + records.len();
        fields[count] = more.to_string();
        fields.join("|")
    };
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| match line {
            line if line.starts_with("2|") => counted(line, 3),
            line if line.ends_with("|summary") => counted(line, 4),
            line => line.to_owned(),
        })
        .collect();
    lines.extend(records.iter().map(|(start, count, holder)| format!("{registry}|KE|ipv4|{start}|{count}|20260101|allocated|{holder}")));
    lines.join("\n") + "\n"
}

/// A swarm of three whose registry files are two months old, and the files as they are today.
pub async fn prepare(hosts: usize, pages: usize) -> (Swarm, Arc<SmallWeb>, Vec<(PathBuf, String)>) {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, hosts, pages, 10));
    let points: Vec<Ipv4Addr> = [0, 1, 3].iter().map(|point| web.places.access_points[*point]).collect();
    let habits = Habits { threshold_ms: 4, ..Habits::default() };
    let swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    let elsewhere: Vec<_> = (0..FURTHER_BLOCKS).map(|n| (format!("20.7.{n}.0"), 256, format!("elsewhere-{}", n % 7))).collect();
    let mut files = Vec::new();
    for (number, path) in swarm.common.registries.iter().enumerate() {
        let made_up = std::fs::read_to_string(path).unwrap();
        let text = if number == 0 { with_records(&made_up, &elsewhere) } else { made_up };
        std::fs::write(path, text.replace(MADE_UP_DATE, &date(67))).unwrap();
        files.push((path.clone(), text.replace(MADE_UP_DATE, &date(0))));
    }
    (swarm, web, files)
}

/// The hierarchy of registry files.
pub fn built(files: &[(PathBuf, String)]) -> Hierarchy {
    let mut builder = Builder::new();
    for (path, text) in files {
        builder.read_delegated(&path.display().to_string(), text.as_bytes()).unwrap();
    }
    builder.finish().unwrap()
}

pub fn hex(hash: [u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub async fn status(swarm: &Swarm, daemon: usize) -> Value {
    serde_json::from_str(&swarm.cli(daemon, &["status", "--json"]).await).unwrap()
}

pub async fn hashes(swarm: &Swarm) -> Vec<String> {
    let mut hashes = Vec::new();
    for daemon in swarm.running() {
        hashes.push(status(swarm, daemon).await["hierarchy"]["hash"].as_str().unwrap().to_owned());
    }
    hashes
}

/// Gives a daemon another hierarchy: its configuration names it from now on.
pub fn give(swarm: &Swarm, daemon: usize, hierarchy: &Hierarchy) {
    let point = swarm.daemons[daemon].address;
    let path = swarm.common.directory.join(format!("{point}.snapshot"));
    std::fs::write(&path, pack(hierarchy)).unwrap();
    let config = swarm.common.directory.join(format!("{point}.toml"));
    let text = std::fs::read_to_string(&config).unwrap();
    let lines = text.lines().map(|line| if line.starts_with("delegated = ") { format!("snapshot = {path:?}") } else { line.to_owned() });
    std::fs::write(&config, lines.collect::<Vec<_>>().join("\n")).unwrap();
}

/// Waits until every daemon uses this hierarchy.
pub async fn all_use(swarm: &mut Swarm, wanted: &str) {
    for daemon in swarm.running() {
        let api = format!("http://{}:4880", swarm.daemons[daemon].address);
        let (common, wanted) = (swarm.common.clone(), wanted.to_owned());
        let what = format!("daemon {daemon} uses the hierarchy {wanted}");
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
    let (mut swarm, web, files) = prepare(12, 50).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: Duration::from_millis(100) };
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
    newer[0].1 = with_records(&files[0].1, &[(newcomer.0.clone(), 256, "newcomer".to_owned())]);
    let new = built(&newer);
    assert_eq!(new.subnet_of(newcomer.1).to_string(), format!("{}/24", newcomer.0));

    assert!(swarm.daemons[1].stop().await);
    let probes = swarm.metrics(PROBES).await;
    assert!(probes > 0.0);
    give(&swarm, 1, &new);
    swarm.start([1]).await;
    all_use(&mut swarm, &hex(new.hash())).await;
    assert!(judge.all_fetched().is_err(), "they change over while they crawl");
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&[]);
    let after: BTreeMap<Subnet, _> = swarm.owners(2).await;
    for (subnet, owner) in owners {
        assert_eq!(after.get(&subnet), Some(&owner), "{subnet} moved");
    }
    // Two of them counted before, the third began anew: nobody probed again for what is owned.
    assert_eq!(swarm.metrics(PROBES).await, probes, "something was probed again");

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
    let net = web.hosts[0].1.octets()[1];
    let forged: Vec<_> = (0..40).map(|number| (format!("127.{net}.{number}.0"), 128, format!("forger {number}"))).collect();
    let today = date(0);
    let empty = format!("2|made-up|{today}|0|19700101|{today}|+0000\nmade-up|*|ipv4|*|0|summary\n");
    let forged = built(&[("forged".into(), with_records(&empty, &forged))]);
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
                let counted = now["refusals"]["hierarchies that differ too much from the one in use"].as_u64() >= Some(1);
                if counted { Ok(()) } else { Err(now["refusals"].to_string()) }
            })
            .await;
        assert_eq!(status(&swarm, daemon).await["hierarchy"]["hash"], *before[0]);
    }
    // The one whose operator was deceived goes with the others, too.
    all_use(&mut swarm, &before[0]).await;
    assert!(swarm.stop().await);
}
