//! Tests of what a volunteer reads who has a daemon that could not run, and one that could.

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
async fn each_mistake_of_the_configuration_is_a_finding() {
    let directory = tempfile::tempdir().unwrap();
    let more = "[swarm]\npre_shared_key_file = \"none.key\"\n[api]\nlisten = \"192.0.2.1:4880\"\n[hierarchy]\nsnapshot = \"none.zst\"\n";
    let findings = checks::all(&config(directory.path(), more)).await;
    let mistakes = of(&findings, "configuration");
    assert!(mistakes.len() == 3 && mistakes.iter().all(|finding| finding.state == State::Failed), "{findings:?}");
    for named in ["none.key", "192.0.2.1:4880", "none.zst"] {
        assert!(mistakes.iter().any(|finding| finding.found_text.contains(named)), "{named}: {findings:?}");
    }
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

#[test]
fn what_members_found_out_of_the_running_daemon_is_told_with_who_found_it() {
    use nearcrawl_model::{
        access_point::AccessPoint,
        view::{ConfirmedAddress, ReachState, ReachabilityView},
    };
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), "");
    let (one, other) = (AccessPoint([1; 32]), AccessPoint([2; 32]));
    let at = ConfirmedAddress { address: "/ip4/192.0.2.1/tcp/4817".to_owned(), confirmed_by: vec![one, other] };
    let public = ReachabilityView { state: ReachState::Public, confirmed: vec![at], ..ReachabilityView::default() };
    let findings = reachability::told(&config, &public);
    let [found] = &findings[..] else { panic!("{findings:?}") };
    assert!(found.state == State::Good && found.key.is_some(), "{found:?}");
    for said in ["/ip4/192.0.2.1/tcp/4817".to_owned(), one.short(), other.short()] {
        assert!(found.found_text.contains(&said), "{found:?}");
    }
    let behind = ReachabilityView {
        state: ReachState::BehindNat,
        relays: vec![one],
        own_addresses: vec!["192.0.2.7".parse().unwrap()],
        holes_not_found: 3,
        ..ReachabilityView::default()
    };
    let findings = reachability::told(&config, &behind);
    assert!(findings[0].found_text.contains("192.0.2.7") && findings[0].found_text.contains(&one.short()), "{findings:?}");
    assert!(findings[0].state == State::Warning && findings[0].remedy_text.as_ref().unwrap().contains("port 4817"), "{findings:?}");
    assert!(findings[1].check == "NAT" && findings[1].found_text.contains("another port for each connection"), "{findings:?}");
}
