//! What a volunteer reads who has a daemon that could not run, and one that could.

use super::*;
use std::{net::TcpListener, path::Path};

fn config(directory: &Path, more: &str) -> Config {
    let text = format!(
        "contact = \"me@museum.or.ke\"\nstate_dir = {:?}\n[dns]\nservers = [\"127.0.79.53\"]\ntimeout = \"100ms\"\nattempts = 1\n{more}",
        directory.join("state").display().to_string()
    );
    Config::parse(&text, &directory.join("node.toml")).unwrap()
}

fn of<'a>(findings: &'a [Finding], check: &str) -> Vec<&'a Finding> {
    findings.iter().filter(|finding| finding.check == check).collect()
}

#[tokio::test]
async fn what_keeps_a_daemon_from_its_work_is_named_with_its_key_and_what_helps() {
    let directory = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.79.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = config(
        directory.path(),
        &format!(
            "[swarm]\nlisten = [\"/ip4/127.0.79.1/tcp/{port}\"]\nbootstrap = [\"/ip4/127.0.79.2/tcp/9\"]\n[api]\nlisten = \"127.0.79.1:4881\"\n"
        ),
    );
    let findings = checks::all(&config).await;
    for (check, key) in [("port", "swarm.listen"), ("DNS", "dns.servers"), ("member", "swarm.bootstrap")] {
        let failed: Vec<_> = of(&findings, check).into_iter().filter(|finding| finding.state == State::Failed).collect();
        let [failed] = failed[..] else { panic!("{check}: {findings:?}") };
        assert!(failed.key == Some(key) && failed.remedy_text.is_some(), "{failed:?}");
    }
    assert!(of(&findings, "member")[0].found_text.contains("/ip4/127.0.79.2/tcp/9"), "{findings:?}");
    assert!(of(&findings, "port").iter().any(|finding| finding.state == State::Good && finding.key == Some("api.listen")));
    for good in ["configuration", "contact", "disk"] {
        assert_eq!(of(&findings, good)[0].state, State::Good, "{findings:?}");
    }
    assert!(!directory.path().join("state").exists(), "nothing is written");
}

#[tokio::test]
async fn what_the_daemon_will_do_is_said_before_it_does_anything() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), "[scope]\ntlds = [\"ke\"]\n[crawl]\ndepth = 3\nmax_parallel = 7\n");
    let intent = checks::intent(&config).join("\n");
    for said in
        ["hosts in .ke, 3 levels deep", "at most 7 servers at once", "me@museum.or.ke", "a swarm of its own", "/ip4/0.0.0.0/tcp/4817"]
    {
        assert!(intent.contains(said), "{said}: {intent}");
    }
}
