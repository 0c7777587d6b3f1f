//! Tests that the servers log what really happens: raw clients bound to chosen addresses ask, and the log is compared with it.

use super::*;
use std::time::Instant;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
};

/// Two hosts; 127.0.0.7 is 60 ms away, everybody else 5 ms.
struct TwoHosts;

impl HttpSite for TwoHosts {
    fn respond(&self, host: &str, path: &str) -> HttpAnswer {
        match (host, path) {
            ("a.test", "/") => HttpAnswer::html("<a href=/b>b</a>"),
            ("a.test", "/old") => HttpAnswer::redirect(302, "/"),
            ("b.test", "/?q=1") => HttpAnswer::ok("application/pdf", "pdf"),
            _ => HttpAnswer::status(404),
        }
    }
    fn delay(&self, _: IpAddr, peer: IpAddr) -> Duration {
        Duration::from_millis(if peer.to_string() == "127.0.0.7" { 60 } else { 5 })
    }
}

async fn start() -> WebServers {
    let addresses = ["127.0.0.1:0", "127.0.0.2:0"].map(|address| address.parse().unwrap());
    WebServers::start(addresses, Arc::new(TwoHosts)).await.unwrap()
}

async fn connect(from: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    socket.connect(to).await.unwrap()
}

/// Sends one request on a kept connection and reads the answer's head with whatever came along.
async fn ask(stream: &mut TcpStream, method: &str, host: &str, path: &str) -> String {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}:8080\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

/// Waits until `condition` holds, for at most five seconds.
async fn until(condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(5), "the condition never came");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn hosts_are_told_apart_and_every_request_is_logged() {
    let web = start().await;
    let mut stream = connect("127.0.0.6", web.addresses()[0]).await;
    assert!(ask(&mut stream, "GET", "a.test", "/").await.contains("<a href=/b>"));
    assert!(ask(&mut stream, "GET", "A.TEST", "/old").await.to_lowercase().contains("location: /"));
    assert!(ask(&mut stream, "GET", "b.test", "/?q=1").await.contains("application/pdf"));
    assert!(ask(&mut stream, "HEAD", "b.test", "/robots.txt").await.starts_with("HTTP/1.1 404"));
    assert!(ask(&mut stream, "POST", "b.test", "/").await.starts_with("HTTP/1.1 405"));
    let requests = web.log().requests();
    let seen: Vec<_> = requests.iter().map(|r| (r.method.as_str(), r.host.as_str(), r.path.as_str(), r.status)).collect();
    assert_eq!(
        seen,
        [
            ("GET", "a.test", "/", Some(200)),
            ("GET", "a.test", "/old", Some(302)),
            ("GET", "b.test", "/?q=1", Some(200)),
            ("HEAD", "b.test", "/robots.txt", Some(404)),
            ("POST", "b.test", "/", Some(405)),
        ]
    );
    assert!(requests.iter().all(|r| r.peer.to_string() == "127.0.0.6" && r.server.to_string() == "127.0.0.1"));
    assert_eq!((web.log().connections(), web.log().probes(), web.log().fetches().len()), (1, 1, 3));
    drop(stream);
    web.stop().await;
}

#[tokio::test]
async fn the_answer_is_as_slow_as_the_asker_is_far_away() {
    let web = start().await;
    for (from, least) in [("127.0.0.6", 5), ("127.0.0.7", 60)] {
        let mut stream = connect(from, web.addresses()[0]).await;
        let started = Instant::now();
        ask(&mut stream, "HEAD", "a.test", "/robots.txt").await;
        assert!(started.elapsed() >= Duration::from_millis(least), "{from} had its answer after {:?}", started.elapsed());
    }
    let requests = web.log().requests();
    let lasted = |index: usize| requests[index].end.unwrap() - requests[index].start;
    assert!(lasted(0) < lasted(1), "{:?} and {:?}", lasted(0), lasted(1));
    web.stop().await;
}

#[tokio::test]
async fn one_after_the_other_counts_as_one_at_once_even_when_the_server_had_no_time_to_notice() {
    let web = start().await;
    for _ in 0..50 {
        let mut stream = connect("127.0.0.6", web.addresses()[0]).await;
        ask(&mut stream, "GET", "a.test", "/").await;
        drop(stream);
    }
    assert_eq!(web.log().connections(), 50);
    assert_eq!((web.log().most_connections_at_once().at_once, web.log().most_requests_at_once().at_once), (1, 1));
    until(|| web.log().open_connections() == 0).await;
    web.stop().await;
}

#[tokio::test]
async fn two_at_once_are_seen_whoever_they_are() {
    let web = start().await;
    let address = web.addresses()[1];
    let (mut one, mut two) = (connect("127.0.0.6", address).await, connect("127.0.0.7", address).await);
    tokio::join!(ask(&mut one, "GET", "a.test", "/"), ask(&mut two, "GET", "a.test", "/"));
    let server = Some(address.ip());
    assert_eq!(web.log().most_connections_at_once(), Most { at_once: 2, server });
    assert_eq!(web.log().most_requests_at_once(), Most { at_once: 2, server });
    assert_eq!(web.log().shortest_pause().unwrap().lasted, Duration::ZERO);
    web.stop().await;
}

#[tokio::test]
async fn who_goes_away_before_the_answer_leaves_no_request_behind() {
    let web = start().await;
    let mut stream = connect("127.0.0.7", web.addresses()[0]).await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await.unwrap();
    until(|| web.log().len() == 1).await;
    drop(stream);
    until(|| web.log().requests()[0].end.is_some()).await;
    let mut stream = connect("127.0.0.6", web.addresses()[0]).await;
    ask(&mut stream, "GET", "a.test", "/").await;
    assert_eq!(web.log().most_requests_at_once().at_once, 1);
    web.stop().await;
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let web = start().await;
    let taken = web.addresses()[0];
    let refused = WebServers::start([taken], Arc::new(TwoHosts)).await.unwrap_err();
    assert!(refused.to_string().contains(&taken.to_string()), "{refused}");
    web.stop().await;
}
