//! Tests that the rules on hosts change without a restart, and only when the file has no mistake: real daemons, and servers that count.

use crate::support::{Ground, Habits, SmallWeb, Swarm};
use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// Longer than the pause between two requests to one server.
const SEVERAL_PAUSES: Duration = Duration::from_millis(2_500);

fn file(swarm: &Swarm, ending: &str) -> PathBuf {
    swarm.common.directory.join(format!("{}.{ending}", swarm.daemons[0].address))
}

fn hang_up(process: u32) {
    // SAFETY: plain system call; the test has started the process and not waited for its end.
    unsafe { libc::kill(process.cast_signed(), libc::SIGHUP) };
}

/// Writes other rules into the file, and has the daemon read it; waits until its log says so.
async fn reload(swarm: &mut Swarm, rules: &str, says: &str) {
    let text = std::fs::read_to_string(file(swarm, "toml")).unwrap();
    let (before, rest) = text.split_once("# rules\n").unwrap();
    let (_, after) = rest.split_once("# end of rules\n").unwrap();
    std::fs::write(file(swarm, "toml"), format!("{before}# rules\n{rules}\n# end of rules\n{after}")).unwrap();
    let log = file(swarm, "log");
    let said = || std::fs::read_to_string(&log).unwrap().lines().filter(|line| line.contains("SIGHUP") && line.contains(says)).count();
    let known = said();
    hang_up(swarm.daemons[0].process().unwrap());
    swarm.until(says, LONG_ENOUGH, async || if said() > known { Ok(()) } else { Err("nothing yet".to_owned()) }).await;
}

fn asked(swarm: &Swarm, host: &str) -> usize {
    swarm.log().requests().iter().filter(|request| request.host == host).count()
}

/// Waits until so many requests to this host were seen.
async fn goes_on(swarm: &mut Swarm, host: &str) {
    let (log, known) = (swarm.log().clone(), asked(swarm, host));
    let look = async || {
        let now = log.requests().iter().filter(|request| request.host == host).count();
        if now > known { Ok(()) } else { Err(format!("{now} requests")) }
    };
    swarm.until(&format!("{host} is asked again"), LONG_ENOUGH, look).await;
}

/// Whether nothing is asked of a host for several pauses, while another one is.
async fn is_left_alone(swarm: &mut Swarm, host: &str, other: &str) {
    // A request that is under way is finished.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (before, since) = (asked(swarm, host), Instant::now());
    while since.elapsed() < SEVERAL_PAUSES {
        goes_on(swarm, other).await;
    }
    assert_eq!(asked(swarm, host), before, "{host} is denied");
}

#[tokio::test]
async fn rules_on_hosts_are_read_again_on_sighup_and_only_whole() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 3, 400, 0));
    let point = web.places.access_points[0];
    let habits = Habits { min_delay_ms: 400, delay_factor: 0, crawl: "# rules\n# end of rules\n".to_owned(), ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &[point], habits).await;
    let hosts: Vec<(String, std::net::IpAddr)> = web.names().into_iter().map(|(host, at)| (host.as_str().to_owned(), at)).collect();
    let [first, second, third] = [0, 1, 2].map(|number: usize| hosts[number].0.clone());

    // A signal while it starts waits until it can be heard: the log has not begun when it is handled.
    swarm.daemons[0].start(&swarm.common).unwrap();
    let process = swarm.daemons[0].process().unwrap();
    let handled = || {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let caught =
            status.lines().find_map(|line| line.strip_prefix("SigCgt:")).and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_some_and(|mask| mask & 1 == 1)
    };
    // Looked for every millisecond: the swarm's own looks are so far apart that the daemon may have started between two of them.
    let begun = Instant::now();
    while !handled() {
        assert!(begun.elapsed() < LONG_ENOUGH, "SIGHUP is handled");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let log = file(&swarm, "log");
    let began = std::fs::read_to_string(&log).unwrap_or_default();
    assert!(!began.contains("in the hierarchy"), "it is handled only when the daemon has started: {began}");
    hang_up(process);
    let heard = async || {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        if said.contains("SIGHUP: the rules on hosts have not changed") { Ok(()) } else { Err(said) }
    };
    swarm.until("the early signal is heard", LONG_ENOUGH, heard).await;
    swarm.together().await;

    let seeds: Vec<String> = hosts.iter().map(|(host, _)| format!("http://{host}:8080/")).collect();
    swarm.seed(0, &seeds).await;
    for host in [&first, &second, &third] {
        goes_on(&mut swarm, host).await;
    }
    reload(&mut swarm, &format!("deny_hosts = [\"{first}\"]"), "denied 1 host").await;
    is_left_alone(&mut swarm, &first, &second).await;
    let said = swarm.cli(0, &["why", &first]).await;
    assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(&format!("denies {first}")), "{said}");

    // With a mistake the rules stay as they are, and the log names it with its line.
    reload(&mut swarm, "deny_hosts = [\"http://not-a-host/\"]\ndeny_tlds = [\"test\"]", "stay as they are").await;
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(said.contains("crawl.deny_hosts = "), "{said}");
    is_left_alone(&mut swarm, &first, &third).await;

    // A range: that of the second host.
    let range = format!("{}/32", hosts[1].1);
    reload(&mut swarm, &format!("deny_ranges = [\"{range}\"]\nmax_parallel = 7"), "denied 1 range").await;
    is_left_alone(&mut swarm, &second, &third).await;
    assert!(std::fs::read_to_string(&log).unwrap().contains("other values in [crawl]"), "that is read at a start only");
    let said = swarm.cli(0, &["why", &second]).await;
    assert!(said.contains("crawl.deny_ranges"), "{said}");

    // A whole top-level domain.
    reload(&mut swarm, "deny_tlds = [\"test\"]", "denied 1 top-level domain").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = swarm.log().requests().len();
    tokio::time::sleep(SEVERAL_PAUSES).await;
    assert_eq!(swarm.log().requests().len(), before, "nothing under .test is asked");
    assert!(swarm.stop().await);
}

#[tokio::test]
async fn what_links_led_to_is_left_alone_once_it_is_out_of_scope_and_after_the_next_start_too() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 3, 400, 0));
    let point = web.places.access_points[0];
    let habits = Habits { min_delay_ms: 400, delay_factor: 0, ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &[point], habits).await;
    let [named, linked] = [0, 2].map(|number: usize| web.hosts[number].0.to_string());
    swarm.start([0]).await;
    swarm.seed(0, &[web.url(0, 0)]).await;
    goes_on(&mut swarm, &linked).await;

    let text = std::fs::read_to_string(file(&swarm, "toml")).unwrap();
    assert!(text.contains("tlds = [\"test\"]"), "{text}");
    std::fs::write(file(&swarm, "toml"), text.replace("tlds = [\"test\"]", "tlds = [\"example\"]")).unwrap();
    hang_up(swarm.daemons[0].process().unwrap());
    let log = file(&swarm, "log");
    let heard = async || {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        if said.contains("SIGHUP: other rules on hosts hold") { Ok(()) } else { Err(said) }
    };
    swarm.until("another scope holds", LONG_ENOUGH, heard).await;
    is_left_alone(&mut swarm, &linked, &named).await;
    let said = swarm.cli(0, &["why", &linked]).await;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!("took {linked} out of the scope")) && said.contains("nothing is asked there"), "{said}");

    assert!(swarm.daemons[0].stop().await);
    swarm.start([0]).await;
    goes_on(&mut swarm, &named).await;
    is_left_alone(&mut swarm, &linked, &named).await;
    assert!(swarm.stop().await);
}
