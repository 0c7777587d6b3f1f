//! Test that a join that fails says why: in `status`, in the sentence that the page shows, and in the log.
//!
//! It runs real daemons, each with another reason why it cannot join.

use crate::support::{Ground, Habits, SmallWeb, Swarm, raw_peer::refuse_hellos_at};
use nearcrawl_lab::demo::daemons::{API_PORT, Daemon};
use nearcrawl_model::view::StatusView;
use std::{net::Ipv4Addr, sync::Arc, time::Duration};
use tokio::{io::AsyncWriteExt, net::TcpListener};

const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// A daemon that cannot join: through whom it tries, its pre-shared key if it has one, and what it must say.
struct Case {
    through: String,
    key: Option<&'static str>,
    says: &'static [&'static str],
}

impl Case {
    fn new(through: impl Into<String>, key: Option<&'static str>, says: &'static [&'static str]) -> Case {
        Case { through: through.into(), key, says }
    }
}

/// A daemon that is ready to start at this address, with this key.
async fn daemon(swarm: &Swarm, address: Ipv4Addr, through: Option<&str>, key: Option<&str>) -> Daemon {
    let daemon = swarm.common.prepare(address, through).await.unwrap();
    if let Some(key) = key {
        let file = swarm.common.write(&format!("{address}.key"), &key.repeat(32)).unwrap();
        let text = swarm.common.configuration(address, through);
        let named = format!("[swarm]\npre_shared_key_file = {:?}\n", file.display().to_string());
        swarm.common.write(&format!("{address}.toml"), &text.replace("[swarm]\n", &named)).unwrap();
    }
    daemon
}

async fn status(address: Ipv4Addr) -> Result<StatusView, String> {
    let client = nearcrawl::io::client::client().no_proxy().build().unwrap();
    let answer = client.get(format!("http://{address}:{API_PORT}/api/status")).send().await.map_err(|why| why.to_string())?;
    answer.json().await.map_err(|why| why.to_string())
}

/// A program that answers everything with these words.
async fn answers(address: Ipv4Addr, words: &'static str) {
    let listener = TcpListener::bind((address, 4817)).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut heard = [0; 64];
                let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut heard).await;
                let _ = stream.write_all(words.as_bytes()).await;
            });
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_that_fails_says_why() {
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 2, 2, 0));
    let (net, point) = (ground.net, web.places.access_points[0]);
    let at = |last: u8| Ipv4Addr::new(127, net, 240, last);
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &[point], Habits::default()).await;
    swarm.start([0]).await;
    let open = swarm.daemons[0].multiaddress();
    let mut keyed = daemon(&swarm, at(1), None, Some("a1")).await;
    keyed.start(&swarm.common).unwrap();
    answers(at(2), "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").await;
    let newer = "protocol version 9 cannot talk to version 5: install releases of nearcrawl in the swarm that are at most one protocol version apart";
    let (newer_at, later) = (format!("/ip4/{}/tcp/4817", at(3)), [7; 32]);
    let listening = newer_at.clone();
    let newer = tokio::spawn(async move { refuse_hellos_at(&listening, later, newer).await });

    let nobody = format!("/ip4/{}/tcp/4817", at(250));
    let (place, _) = open.split_once("/p2p/").unwrap();
    let wrong = format!("{place}/p2p/{}", keyed.access_point);
    let http = format!("/ip4/{}/tcp/4817", at(2));
    let cases = [
        Case::new(nobody, None, &["nothing listens at that port", "is its daemon running"]),
        Case::new(wrong, None, &["has another peer id", "correct what follows /p2p/"]),
        Case::new("/dns4/no-such-name.invalid/tcp/4817", None, &["there is no such name", "spelled rightly"]),
        Case::new(keyed.multiaddress(), None, &["has a pre-shared key and this access point has none", "set swarm.pre_shared_key_file"]),
        Case::new(keyed.multiaddress(), Some("b2"), &["another pre-shared key", "swarm.pre_shared_key_file"]),
        Case::new(place, Some("b2"), &["has no pre-shared key and this access point has one"]),
        Case::new(&*http, None, &["no swarm is there", "HTTP/1.1 400 Bad Request"]),
        Case::new(http, Some("b2"), &["no swarm is there", "HTTP/1.1 400 Bad Request"]),
        Case::new(newer_at, None, &["refuses this access point: protocol version 9 cannot talk to version 5", "install releases"]),
    ];
    let mut alone = Vec::new();
    for (number, case) in (100..).zip(&cases) {
        let mut daemon = daemon(&swarm, at(number), Some(&case.through), case.key).await;
        daemon.start(&swarm.common).unwrap();
        alone.push(daemon);
    }
    for (case, daemon) in cases.iter().zip(&alone) {
        let said = swarm.until(case.says[0], LONG_ENOUGH, async || {
            let text = status(daemon.address).await?.state_text;
            if case.says.iter().all(|words| text.contains(words)) { Ok(text) } else { Err(format!("{}: {text}", case.through)) }
        });
        let said = said.await;
        assert!(said.starts_with("no member reachable: ") && said.contains(&case.through), "{said}");
        let printed = swarm.common.ask(&["status", "--api", &format!("http://{}:{API_PORT}", daemon.address)]).await.unwrap();
        let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(printed.contains(case.says[0]), "{printed}");
        let log = std::fs::read_to_string(swarm.common.directory.join(format!("{}.log", daemon.address))).unwrap();
        let lines = log.lines().filter(|line| case.says.iter().all(|words| line.contains(words))).count();
        assert_eq!(lines, 1, "each reason is in the log once: {log}");
        assert_eq!(status(daemon.address).await.unwrap().alone_text, None, "it is in no swarm");
    }
    // The one that began the swarm is alone in it, and says so.
    let printed = swarm.cli(0, &["status"]).await;
    assert!(printed.contains("only member of its swarm"), "{printed}");
    for mut daemon in alone.into_iter().chain([keyed]) {
        daemon.kill().await;
    }
    newer.abort();
    assert!(swarm.stop().await);
}
