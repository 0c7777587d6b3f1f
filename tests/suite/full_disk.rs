//! Test of a daemon whose file system is filled: it stops fetching before that hurts, loses nothing, and goes on by itself.
//!
//! The file system is a small one in memory, in a mount namespace of its own: it is gone with the process that holds the namespace,
//! whatever happens to this test. Without root a user namespace is tried; where that is forbidden, the test says so and ends.

use crate::support::{
    Ground, Habits, Judge, Kill, SmallWeb, Swarm,
    disk::{copy, visited},
};
use nearcrawl_lab::{demo::daemons::DaemonError, web::server::Log};
use serde_json::Value;
use std::{
    fs::{self, File},
    io::{self, Write},
    net::Ipv4Addr,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// The size of the file system: with less than 256 MiB of it free nothing is fetched.
const SIZE_MIB: usize = 300;

/// It goes on within this after there is room.
const GOES_ON_WITHIN: Duration = Duration::from_secs(60);

const LONG_ENOUGH: Duration = Duration::from_secs(120);

const SOON: Duration = Duration::from_secs(40);

const MIN_DELAY: Duration = Duration::from_millis(500);

/// A file system in memory.
struct SmallDisk {
    /// Where it can be reached from outside of its namespace.
    root: PathBuf,
    _holder: Child,
}

impl SmallDisk {
    /// Mounts one over a directory.
    async fn mount(directory: &Path) -> Result<SmallDisk, String> {
        let script = "mount -t tmpfs -o \"size=$1m,mode=700\" tmpfs \"$2\" && echo mounted && exec sleep 3600";
        // SAFETY: plain system call without arguments.
        let user: &[&str] = if unsafe { libc::geteuid() } == 0 { &[] } else { &["--user", "--map-root-user"] };
        let mut command = Command::new("unshare");
        command.args(user).args(["--mount", "sh", "-c", script, "sh", &SIZE_MIB.to_string()]).arg(directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut holder = command.spawn().map_err(|why| format!("unshare: {why}"))?;
        let mut said = String::new();
        let stdout = holder.stdout.take().ok_or("no output")?;
        BufReader::new(stdout).read_line(&mut said).await.map_err(|why| why.to_string())?;
        let process = holder.id().filter(|_| said == "mounted\n").ok_or("a mount namespace is not allowed here")?;
        let root = Path::new("/proc").join(process.to_string()).join("root").join(directory.strip_prefix("/").unwrap_or(directory));
        Ok(SmallDisk { root, _holder: holder })
    }

    /// Fills it: so many MiB, or as much as there is room for.
    fn fill(&self, name: &str, mib: usize) -> io::Result<()> {
        let mut ballast = File::create(self.root.join(name))?;
        (0..mib * 16).try_for_each(|_| ballast.write_all(&[7; 64 << 10]))
    }

    fn empty(&self) {
        for name in ["some", "all"] {
            fs::remove_file(self.root.join(name)).unwrap();
        }
    }
}

async fn status(swarm: &Swarm) -> Value {
    serde_json::from_str(&swarm.cli(0, &["status", "--json"]).await).unwrap()
}

/// Waits until it says that the disk is full, and sees that it asks nothing then.
async fn stops(swarm: &mut Swarm, log: &Log) {
    let begun = Instant::now();
    let text = loop {
        let status = status(swarm).await;
        if status["state"] == "stopped" {
            break status["state_text"].as_str().unwrap().to_owned();
        }
        assert!(begun.elapsed() < SOON, "it goes on: {}", status["state_text"]);
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    println!("{:6.1} s: after {:?}: {text}", swarm.age(), begun.elapsed());
    assert!(text.contains("256 MiB are free on the disk") && text.contains("free some space"), "{text}");
    // What was under way may end; then there is nothing for many pauses.
    tokio::time::sleep(2 * MIN_DELAY).await;
    let asked = log.len();
    tokio::time::sleep(8 * MIN_DELAY).await;
    assert_eq!(log.since(asked), [], "asked without room for the answers");
}

/// Kills it on the full disk and starts it again: it runs, or ends with the reason, to be started again by a service manager.
async fn dies_on_it(swarm: &mut Swarm) -> Kill {
    swarm.daemons[0].kill().await;
    let kill = Kill { who: swarm.daemons[0].address, when: swarm.log().now() };
    swarm.daemons[0].start(&swarm.common).unwrap();
    let begun = Instant::now();
    while swarm.asker.alive(swarm.daemons[0].address).await.is_err() {
        match swarm.daemons[0].ended() {
            Some(DaemonError::Failed { status, said, .. }) => {
                println!("{:6.1} s: it ended with {status}: {said}", swarm.age());
                assert_eq!(status.code(), Some(75), "{said}");
                assert!(said.contains("No space left") || said.contains("no space left") || said.contains("disk is full"), "{said}");
                break;
            }
            Some(other) => panic!("{other}"),
            None => assert!(begun.elapsed() < SOON, "neither answers nor ends"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    kill
}

/// Makes room; it is started again if it has ended. How long until it asks again.
async fn goes_on(swarm: &mut Swarm, disk: &SmallDisk) -> Duration {
    let (asked, begun) = (swarm.log().len(), Instant::now());
    disk.empty();
    if swarm.daemons[0].ended().is_some() {
        swarm.daemons[0].start(&swarm.common).unwrap();
    }
    let log = swarm.log().clone();
    let asks = async || if log.len() > asked { Ok(()) } else { Err("nothing".to_owned()) };
    swarm.until("it asks again", GOES_ON_WITHIN, asks).await;
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_on_a_small_file_system_that_is_filled_stops_loses_nothing_and_goes_on() {
    let below = tempfile::tempdir().unwrap();
    let disk = match SmallDisk::mount(below.path()).await {
        Ok(disk) => disk,
        Err(why) => return println!("not tested: {why}"),
    };
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 8, 60, 10));
    let point: Ipv4Addr = web.places.access_points[0];
    let habits = Habits { threshold_ms: 4, min_delay_ms: MIN_DELAY.as_millis() as u64, ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &[], habits).await;
    let state = disk.root.join("state");
    fs::create_dir(&state).unwrap();
    symlink(&state, swarm.common.directory.join(point.to_string())).unwrap();
    swarm.add(point).await;
    swarm.start([0]).await;
    let (expected, log) = (web.expected(&web.seeds()), swarm.log().clone());
    let judge = Judge { expected: &expected, log: &log, min_delay: MIN_DELAY };
    swarm.seed(0, &web.seeds()).await;
    let wanted = expected.fetched.len() / 5;
    let far_enough = async || if judge.fetched() >= wanted { Ok(()) } else { Err(format!("{} URLs", judge.fetched())) };
    swarm.until("a fifth is fetched", LONG_ENOUGH, far_enough).await;

    disk.fill("some", SIZE_MIB / 3).unwrap();
    stops(&mut swarm, &log).await;
    let told = swarm.asker.results(point).await.unwrap().summary.total.pages;
    assert_eq!(disk.fill("all", SIZE_MIB).unwrap_err().kind(), io::ErrorKind::StorageFull);
    stops(&mut swarm, &log).await;
    let kill = dies_on_it(&mut swarm).await;
    // The daemon may not write where it cannot, but what it had written is there.
    let copied = swarm.common.directory.join("copy");
    copy(&state, &copied);
    let durable = visited(&copied).await;
    assert_eq!(durable.len() as u64, told, "what it told before the disk was full is not what it stored");

    let took = goes_on(&mut swarm, &disk).await;
    println!("{:6.1} s: it asks again {took:?} after there was room", swarm.age());
    swarm.until("everything is fetched", LONG_ENOUGH, async || judge.all_fetched()).await;
    swarm.agree(expected.pages() as u64, SOON).await;
    judge.check(&[kill]);
    let requests = log.requests().into_iter().filter(|request| request.method == "GET" && request.start > kill.when);
    let again: Vec<_> = requests.filter(|request| durable.contains(&(request.host.clone(), request.path.clone()))).collect();
    assert!(again.is_empty(), "asked for again: {again:#?}");
    assert!(swarm.stop().await);
}
