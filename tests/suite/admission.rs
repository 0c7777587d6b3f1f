//! Tests of admission with real daemons, and the program.
//!
//! Who was not invited is told so, and who was expelled is gone within ten seconds, with whom it invited, also after kills.

use crate::support::{Ended, Ground, Habits, SmallWeb, Swarm, nearcrawl};
use nearcrawl_lab::{demo::daemons::API_PORT, web::server::RequestSeen};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

const LONG_ENOUGH: Duration = Duration::from_secs(90);

/// Within so long every reachable member has hung up on an expelled one.
const SOON: Duration = Duration::from_secs(10);

/// A member, an inviter, another member, and one that is not invited at first.
const INVITER: usize = 1;
const LATE: usize = 3;

/// Four daemons in a small web, none of which has an `[admission]` section yet.
async fn prepare() -> (Swarm, Arc<SmallWeb>) {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 8, 400, 10));
    let points: Vec<Ipv4Addr> = [0, 1, 3, 4].map(|point| web.places.access_points[point]).to_vec();
    let habits = Habits { threshold_ms: 4, ..Habits::default() };
    let (registries, names) = (web.places.registry_files(), web.names());
    (Swarm::prepare(ground, web.clone(), registries, names, &points, habits).await, web)
}

fn file(swarm: &Swarm, name: &str) -> String {
    swarm.common.directory.join(name).display().to_string()
}

fn config(swarm: &Swarm, daemon: usize) -> String {
    file(swarm, &format!("{}.toml", swarm.daemons[daemon].address))
}

fn state_dir(swarm: &Swarm, daemon: usize) -> PathBuf {
    swarm.common.directory.join(swarm.daemons[daemon].address.to_string())
}

/// Members of a daemon are asked for certificates from its next start on.
fn guard(swarm: &Swarm, daemon: usize, section: &str) {
    let path = config(swarm, daemon);
    fs::write(&path, format!("{}\n{section}", fs::read_to_string(&path).unwrap())).unwrap();
}

async fn offline(arguments: &[&str]) -> String {
    let Ended { code, said, complained } = nearcrawl(arguments).await;
    assert_eq!(code, Some(0), "{arguments:?}: {complained}");
    said
}

/// Has a certificate made with this key, and put into the state directory.
async fn invite(swarm: &Swarm, daemon: usize, key: &str, more: &[&str]) {
    let (out, config) = (file(swarm, &format!("invitation-{daemon}")), config(swarm, daemon));
    let who = swarm.daemons[daemon].access_point.clone();
    offline(&[&["swarm", "invite", "--key", key, &who, "--out", &out][..], more].concat()).await;
    let said = offline(&["swarm", "join", &out, "--config", &config]).await;
    assert!(said.contains(&who) && said.contains("invited by"), "{said}");
}

async fn status(swarm: &Swarm, daemon: usize) -> Value {
    serde_json::from_str(&swarm.cli(daemon, &["status", "--json"]).await).unwrap()
}

/// Waits until a daemon says of itself what begins so.
async fn says(swarm: &mut Swarm, daemon: usize, field: &str, wanted: &str, limit: Duration) {
    let url = format!("http://{}:{API_PORT}/api/status", swarm.daemons[daemon].address);
    let client = nearcrawl::io::client::client().no_proxy().build().unwrap();
    swarm
        .until(&format!("daemon {daemon} says {wanted:?}"), limit, async || {
            let answer = client.get(&url).send().await.map_err(|why| why.to_string())?;
            let status: Value = answer.json().await.map_err(|why| why.to_string())?;
            let said = status[field].as_str().unwrap_or_default().to_owned();
            if said.contains(wanted) { Ok(()) } else { Err(format!("{said:?}")) }
        })
        .await;
}

/// Waits until these daemons count so many as alive.
async fn count(swarm: &mut Swarm, daemons: &[usize], alive: u64, limit: Duration) {
    let (asker, points) = (swarm.asker.clone(), daemons.iter().map(|daemon| swarm.daemons[*daemon].address).collect::<Vec<_>>());
    swarm
        .until(&format!("{daemons:?} count {alive} as alive"), limit, async || {
            let mut known = Vec::new();
            for point in &points {
                known.push(asker.alive(*point).await.unwrap_or(0));
            }
            if known.iter().all(|known| *known == alive) { Ok(()) } else { Err(format!("{known:?}")) }
        })
        .await;
}

/// The certificate in the state directory is read again.
fn hang_up(swarm: &Swarm, daemon: usize) {
    let process = swarm.daemons[daemon].process().unwrap();
    // SAFETY: plain system call; the test has started the process and not waited for its end.
    unsafe { libc::kill(process.cast_signed(), libc::SIGHUP) };
}

/// Requests that these daemons made.
fn requests_of(swarm: &Swarm, daemons: &[usize]) -> Vec<RequestSeen> {
    let by: BTreeSet<IpAddr> = daemons.iter().map(|daemon| swarm.daemons[*daemon].address.into()).collect();
    swarm.log().requests().into_iter().filter(|seen| by.contains(&seen.peer)).collect()
}

#[tokio::test]
async fn who_is_not_invited_is_told_so_and_an_expelled_inviter_is_gone_with_whom_it_invited() {
    let (mut swarm, web) = prepare().await;
    let root_key = file(&swarm, "ROOT.key");
    let made: Value = serde_json::from_str(&offline(&["swarm", "init", "--out", &root_key, "--json"]).await).unwrap();
    assert_eq!(fs::metadata(&root_key).unwrap().permissions().mode() & 0o777, 0o600);
    let again = nearcrawl(&["swarm", "init", "--out", &root_key]).await;
    assert!(again.code == Some(73) && again.complained.contains("never overwritten"), "{again:?}");
    let section = format!("[admission]\nmode = \"invite\"\nswarm = \"{}\"\n", made["swarm"].as_str().unwrap());
    for (daemon, more) in [(0, &[][..]), (INVITER, &["--inviter", "--label", "Mombasa"]), (2, &["--expires", "90d"])] {
        guard(&swarm, daemon, &section);
        invite(&swarm, daemon, &root_key, more).await;
    }
    // A certificate is for one access point only.
    let foreign = nearcrawl(&["swarm", "join", &file(&swarm, "invitation-0"), "--config", &config(&swarm, 2)]).await;
    assert!(foreign.code == Some(65) && foreign.complained.contains("made out to"), "{foreign:?}");
    swarm.start(0..3).await;
    swarm.vote(3, LONG_ENOUGH).await;

    // One without a certificate hears why it is not let in: from the others, and, when it knows the rule, by itself.
    swarm.daemons[LATE].start(&swarm.common).unwrap();
    says(&mut swarm, LATE, "connection_errors_text", "not invited: this swarm takes members by invitation", LONG_ENOUGH).await;
    let log = fs::read_to_string(file(&swarm, &format!("{}.log", swarm.daemons[LATE].address))).unwrap();
    assert!(log.contains("not invited"), "{log}");
    count(&mut swarm, &[0, INVITER, 2], 3, SOON).await;
    assert!(swarm.daemons[LATE].stop().await);
    guard(&swarm, LATE, &section);
    swarm.daemons[LATE].start(&swarm.common).unwrap();
    says(&mut swarm, LATE, "state_text", "not invited: ", LONG_ENOUGH).await;

    // The inviter invites it, with the key of its daemon; it makes no inviters.
    let inviters_key = state_dir(&swarm, INVITER).join("key").display().to_string();
    let late = swarm.daemons[LATE].access_point.clone();
    let refused = nearcrawl(&["swarm", "invite", "--key", &inviters_key, &late, "--inviter"]).await;
    assert!(refused.code == Some(65) && refused.complained.contains("only the root key"), "{refused:?}");
    // It goes in while it runs, once with a certificate that ends soon, and once with the one that follows.
    invite(&swarm, LATE, &inviters_key, &["--label", "Kisumu", "--expires", "40s"]).await;
    hang_up(&swarm, LATE);
    count(&mut swarm, &[0, INVITER, 2, LATE], 4, LONG_ENOUGH).await;
    invite(&swarm, LATE, &inviters_key, &["--label", "Kisumu"]).await;
    hang_up(&swarm, LATE);
    let log = file(&swarm, &format!("{}.log", swarm.daemons[LATE].address));
    let shown = async || {
        let said = fs::read_to_string(&log).unwrap();
        if said.matches("another certificate is shown to members").count() == 2 { Ok(()) } else { Err(said) }
    };
    swarm.until("the second certificate is shown", LONG_ENOUGH, shown).await;
    tokio::time::sleep(Duration::from_secs(41)).await;
    count(&mut swarm, &[0, INVITER, 2, LATE], 4, SOON).await;
    let listed: Value = serde_json::from_str(&swarm.cli(2, &["swarm", "members", "--json"]).await).unwrap();
    let of_late = listed["certificates"].as_array().unwrap().iter().find(|one| one["access_point"] == *late).unwrap().clone();
    assert_eq!((of_late["invited_by"].as_str(), of_late["label"].as_str()), (Some(&*swarm.daemons[INVITER].access_point), Some("Kisumu")));
    let table = swarm.cli(0, &["swarm", "members"]).await;
    assert!(table.contains("Mombasa") && table.contains("root key"), "{table}");

    // All are at work when the root expels the inviter.
    swarm.seed(0, &web.seeds()).await;
    let log = swarm.log().clone();
    let points: Vec<IpAddr> = swarm.daemons.iter().map(|daemon| daemon.address.into()).collect();
    swarm
        .until("all four are at work", LONG_ENOUGH, async || {
            let seen = log.requests();
            let idle = points.iter().filter(|point| !seen.iter().any(|request| request.peer == **point)).count();
            if idle == 0 { Ok(()) } else { Err(format!("{idle} are idle")) }
        })
        .await;
    let inviter = swarm.daemons[INVITER].access_point.clone();
    let told_at = swarm.log().now();
    let said = swarm.cli(0, &["swarm", "expel", &inviter, "--key", &root_key, "--reason", "a test"]).await;
    assert!(said.contains("is expelled by the root key"), "{said}");
    count(&mut swarm, &[0, 2], 2, SOON).await;
    says(&mut swarm, INVITER, "state_text", "expelled: a test (by the root key)", SOON).await;
    says(&mut swarm, LATE, "state_text", "expelled: the inviter", SOON).await;

    // Killed and started again, each side knows it still.
    for daemon in [0, INVITER] {
        swarm.daemons[daemon].kill().await;
        swarm.daemons[daemon].start(&swarm.common).unwrap();
    }
    count(&mut swarm, &[0, 2], 2, LONG_ENOUGH).await;
    says(&mut swarm, INVITER, "state_text", "expelled: a test (by the root key)", LONG_ENOUGH).await;
    let gone = [inviter, late];
    let url = format!("http://{}:{API_PORT}/api/ownership?limit=10000", swarm.daemons[2].address);
    let client = nearcrawl::io::client::client().no_proxy().build().unwrap();
    swarm
        .until("the others own what the expelled did", LONG_ENOUGH, async || {
            let answer = client.get(&url).send().await.map_err(|why| why.to_string())?;
            let owned: Value = answer.json().await.map_err(|why| why.to_string())?;
            let left = owned.as_array().into_iter().flatten().filter(|row| gone.iter().any(|gone| row["owner"] == **gone)).count();
            if left == 0 { Ok(()) } else { Err(format!("{left} subnets")) }
        })
        .await;
    let (log, points) = (swarm.log().clone(), [0, 2].map(|daemon| IpAddr::from(swarm.daemons[daemon].address)));
    swarm
        .until("the others go on", LONG_ENOUGH, async || {
            let goes_on = |seen: &RequestSeen| seen.start > told_at + SOON && points.contains(&seen.peer);
            if log.requests().iter().any(goes_on) { Ok(()) } else { Err("nothing is asked".to_owned()) }
        })
        .await;
    // What was on its way when it heard of it has arrived.
    let late: Vec<_> = requests_of(&swarm, &[INVITER, LATE]).into_iter().filter(|seen| seen.start > told_at + SOON / 4).collect();
    assert!(late.is_empty(), "who is expelled asks no server: {late:?}");
    assert!(status(&swarm, 0).await["members"]["alive"] == 2);
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn what_is_said_to_a_daemon_before_a_swarm_lets_it_in_is_not_lost() {
    let (mut swarm, _) = prepare().await;
    let root_key = file(&swarm, "ROOT.key");
    let made: Value = serde_json::from_str(&offline(&["swarm", "init", "--out", &root_key, "--json"]).await).unwrap();
    let section = format!("[admission]\nmode = \"invite\"\nswarm = \"{}\"\n", made["swarm"].as_str().unwrap());
    for daemon in [0, 2] {
        guard(&swarm, daemon, &section);
        invite(&swarm, daemon, &root_key, &[]).await;
    }
    // Nobody is there yet who could let it in.
    swarm.daemons[2].start(&swarm.common).unwrap();
    says(&mut swarm, 2, "state_text", "", LONG_ENOUGH).await;
    let gone = swarm.daemons[LATE].access_point.clone();
    let said = swarm.cli(2, &["swarm", "expel", &gone, "--key", &root_key, "--reason", "a test"]).await;
    assert!(said.contains("is expelled by the root key"), "{said}");
    swarm.daemons[0].start(&swarm.common).unwrap();
    count(&mut swarm, &[0, 2], 2, LONG_ENOUGH).await;
    let client = nearcrawl::io::client::client().no_proxy().build().unwrap();
    for daemon in [2, 0] {
        let url = format!("http://{}:{API_PORT}/api/admission", swarm.daemons[daemon].address);
        swarm
            .until(&format!("daemon {daemon} knows who is expelled"), LONG_ENOUGH, async || {
                let answer = client.get(&url).send().await.map_err(|why| why.to_string())?;
                let known: Value = answer.json().await.map_err(|why| why.to_string())?;
                let is_gone = known["expulsions"].as_array().is_some_and(|all| all.iter().any(|one| one["access_point"] == *gone));
                if is_gone { Ok(()) } else { Err(known["expulsions"].to_string()) }
            })
            .await;
    }
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn on_the_way_from_open_to_invited_who_was_given_a_certificate_is_let_in_without_a_restart() {
    let (mut swarm, _) = prepare().await;
    let root_key = file(&swarm, "ROOT.key");
    let made: Value = serde_json::from_str(&offline(&["swarm", "init", "--out", &root_key, "--json"]).await).unwrap();
    let section = format!("[admission]\nmode = \"invite\"\nswarm = \"{}\"\n", made["swarm"].as_str().unwrap());
    for daemon in [0, 2] {
        swarm.daemons[daemon].start(&swarm.common).unwrap();
    }
    count(&mut swarm, &[0, 2], 2, LONG_ENOUGH).await;
    for daemon in [0, 2] {
        invite(&swarm, daemon, &root_key, &[]).await;
        hang_up(&swarm, daemon);
        let log = file(&swarm, &format!("{}.log", swarm.daemons[daemon].address));
        let shown = async || {
            let said = fs::read_to_string(&log).unwrap();
            if said.contains("another certificate is shown to members") { Ok(()) } else { Err(said) }
        };
        swarm.until("the certificate is shown", LONG_ENOUGH, shown).await;
    }
    // The first that asks for certificates lets in the one whose configuration still asks for none.
    assert!(swarm.daemons[2].stop().await);
    guard(&swarm, 2, &section);
    swarm.daemons[2].start(&swarm.common).unwrap();
    count(&mut swarm, &[0, 2], 2, LONG_ENOUGH).await;
    assert!(swarm.stop().await);
}
