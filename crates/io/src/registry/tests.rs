//! Tests that files arrive whole, against a real server on loopback.
//!
//! Lines break, files change meanwhile, and servers misbehave.

use super::*;
use reqwest::{StatusCode, Url};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

/// What follows after an answer's bytes.
enum Then {
    /// The end of the connection.
    Close,
    /// Nothing, for as long as the client stays.
    Stall,
    /// The same byte for ever.
    Endless,
}

/// A web server that answers as a test wants: by the lines of the request and how many came before.
struct Server {
    url: Url,
    requests: Arc<Mutex<Vec<Vec<String>>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(answer: impl Fn(&[String], usize) -> (Vec<u8>, Then) + Send + 'static) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = Url::parse(&format!("http://{}/stats/delegated", listener.local_addr().unwrap())).unwrap();
        let (requests, over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (told, stopped) = (Arc::clone(&requests), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            // One connection after another, as the client makes them; the last one only wakes this loop.
            while let Ok((stream, _)) = listener.accept() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                serve(stream, &answer, &told);
            }
        });
        Server { url, requests, over, thread: Some(thread) }
    }

    /// Requests for the file itself, without those for its sum.
    fn asked(&self) -> Vec<Vec<String>> {
        self.requests.lock().unwrap().iter().filter(|lines| !lines[0].contains(".md5")).cloned().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.url.port().unwrap()));
        self.thread.take().unwrap().join().unwrap();
    }
}

fn serve(stream: TcpStream, answer: &impl Fn(&[String], usize) -> (Vec<u8>, Then), requests: &Mutex<Vec<Vec<String>>>) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    let lines: Vec<String> =
        BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).map(|l| l.to_lowercase()).collect();
    if lines.is_empty() {
        return;
    }
    let before = {
        let mut requests = requests.lock().unwrap();
        let of_file = requests.iter().filter(|lines: &&Vec<String>| !lines[0].contains(".md5")).count();
        requests.push(lines.clone());
        of_file
    };
    let (bytes, then) = answer(&lines, before);
    let mut writer = &stream;
    // The client may have left.
    let _ = writer.write_all(&bytes);
    match then {
        Then::Close => {}
        // Ends when the client closes, or after the read timeout.
        Then::Stall => drop(std::io::Read::read(&mut &stream, &mut [0])),
        Then::Endless => while writer.write_all(&[b'x'; 4096]).is_ok() {},
    }
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n{body}").into_bytes()
}

/// All of `body`, tagged.
fn whole(body: &str, etag: &str) -> Vec<u8> {
    answer("200 OK", &format!("ETag: \"{etag}\"\r\nContent-Length: {}\r\n", body.len()), body)
}

/// The rest of `body` from where the request wants it.
fn rest(lines: &[String], body: &str, etag: &str) -> Vec<u8> {
    let from: usize = value(lines, "range").unwrap().strip_prefix("bytes=").unwrap().strip_suffix('-').unwrap().parse().unwrap();
    let headers = format!(
        "ETag: \"{etag}\"\r\nContent-Range: bytes {from}-{}/{}\r\nContent-Length: {}\r\n",
        body.len() - 1,
        body.len(),
        body.len() - from
    );
    answer("206 Partial Content", &headers, &body[from..])
}

fn not_found() -> (Vec<u8>, Then) {
    (answer("404 Not Found", "Content-Length: 0\r\n", ""), Then::Close)
}

fn value<'a>(lines: &'a [String], name: &str) -> Option<&'a str> {
    lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn body() -> String {
    (0..400).map(|n| format!("lab|KE|ipv4|10.0.{n}.0|256|20000101|allocated|a\n")).collect()
}

/// Quick, so that tests are.
fn limits() -> DownloadLimits {
    DownloadLimits {
        connect: Duration::from_secs(5),
        head: Duration::from_secs(5),
        total: Duration::from_secs(20),
        window: Duration::from_millis(300),
        least: 100,
        largest: 1 << 20,
        attempts: 3,
        pause: Duration::from_millis(1),
    }
}

/// Fetches into `dir`; also the steps.
async fn visit(server: &Server, dir: &Path, limits: DownloadLimits) -> (Result<Arrival, DownloadError>, Vec<DownloadStep>) {
    let download = Download { name: "lab".to_owned(), url: server.url.clone() };
    let mut steps = Vec::new();
    let check = |path: &Path| match fs::read_to_string(path).unwrap().starts_with("lab|") {
        true => Ok(()),
        false => Err("nothing usable".to_owned()),
    };
    let outcome = fetch(&download, dir, &limits, &mut |step| steps.push(step), &check).await;
    (outcome, steps)
}

fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn copy(dir: &Path) -> String {
    fs::read_to_string(dir.join("lab")).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_comes_once_and_then_only_when_it_changed() {
    let version = Arc::new(Mutex::new((body(), "one")));
    let served = Arc::clone(&version);
    let server = Server::start(move |lines, _| {
        let (body, etag) = served.lock().unwrap().clone();
        if lines[0].contains(".md5") {
            let sum = checksum::sum(body.as_bytes()).unwrap();
            return (answer("200 OK", "", &format!("MD5 (delegated) = {sum}\n")), Then::Close);
        }
        match value(lines, "if-none-match") {
            Some(known) if known == format!("\"{etag}\"") => (answer("304 Not Modified", "", ""), Then::Close),
            _ => (whole(&body, etag), Then::Close),
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let (first, steps) = visit(&server, dir.path(), limits()).await;
    assert_eq!(first, Ok(Arrival::New { bytes: body().len() as u64, resumed: 0, confirmed: true }));
    assert!(
        steps.contains(&DownloadStep::Received(body().len() as u64, Some(body().len() as u64))) && steps.contains(&DownloadStep::Checking)
    );
    assert_eq!((copy(dir.path()), files(dir.path())), (body(), vec!["lab".to_owned(), "lab.notes".to_owned()]));
    assert_eq!(visit(&server, dir.path(), limits()).await.0, Ok(Arrival::Unchanged));
    *version.lock().unwrap() = (body() + "lab|more\n", "two");
    assert!(matches!(visit(&server, dir.path(), limits()).await.0, Ok(Arrival::New { .. })));
    assert!(copy(dir.path()).ends_with("lab|more\n"));
    fs::remove_file(dir.path().join("lab")).unwrap();
    assert!(matches!(visit(&server, dir.path(), limits()).await.0, Ok(Arrival::New { .. })), "notes without a copy ask for nothing less");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cut_connection_is_resumed_where_it_broke() {
    let server = Server::start(move |lines, before| match before {
        _ if lines[0].contains(".md5") => not_found(),
        0 => (whole(&body(), "one")[..8000].to_vec(), Then::Close),
        _ => (rest(lines, &body(), "one"), Then::Close),
    });
    let dir = tempfile::tempdir().unwrap();
    let (outcome, steps) = visit(&server, dir.path(), limits()).await;
    let Ok(Arrival::New { resumed, confirmed: false, .. }) = outcome else { panic!("{outcome:?}") };
    assert!(resumed > 7000 && copy(dir.path()) == body());
    assert!(steps.iter().any(|step| matches!(step, DownloadStep::Again(..))));
    let asked = server.asked();
    assert_eq!((asked.len(), value(&asked[1], "if-range")), (2, Some("\"one\"")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_arrived_is_kept_for_the_next_visit() {
    let server = Server::start(move |lines, before| match before {
        _ if lines[0].contains(".md5") => not_found(),
        0 => (whole(&body(), "one")[..8000].to_vec(), Then::Close),
        _ => (rest(lines, &body(), "one"), Then::Close),
    });
    let dir = tempfile::tempdir().unwrap();
    let once = DownloadLimits { attempts: 1, ..limits() };
    let (outcome, _) = visit(&server, dir.path(), once).await;
    assert!(matches!(outcome, Err(DownloadError::Broken { .. })), "{outcome:?}");
    assert_eq!(files(dir.path()), ["lab.part", "lab.part.notes"]);
    assert!(matches!(visit(&server, dir.path(), once).await.0, Ok(Arrival::New { resumed: 7000.., .. })));
    assert_eq!((copy(dir.path()), files(dir.path()).len()), (body(), 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_changed_during_the_break_comes_anew() {
    let new = body().replace("lab|KE", "lab|UG");
    let expected = new.clone();
    let server = Server::start(move |lines, before| match before {
        _ if lines[0].contains(".md5") => not_found(),
        0 => (whole(&body(), "one")[..8000].to_vec(), Then::Close),
        // As If-Range demands: the whole of the new version.
        _ => (whole(&new, "two"), Then::Close),
    });
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(visit(&server, dir.path(), limits()).await.0, Ok(Arrival::New { resumed: 0, .. })));
    assert_eq!(copy(dir.path()), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_sends_the_rest_of_another_version_is_not_believed() {
    let new = body().replace("lab|KE", "lab|UG");
    let expected = new.clone();
    let server = Server::start(move |lines, before| match before {
        _ if lines[0].contains(".md5") => not_found(),
        0 => (whole(&body(), "one")[..8000].to_vec(), Then::Close),
        1 => (rest(lines, &new, "two"), Then::Close),
        _ => (whole(&new, "two"), Then::Close),
    });
    let dir = tempfile::tempdir().unwrap();
    assert!(visit(&server, dir.path(), limits()).await.0.is_ok());
    assert_eq!(copy(dir.path()), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_part_that_was_complete_already_is_only_checked() {
    let server = Server::start(move |lines, before| match before {
        _ if lines[0].contains(".md5") => not_found(),
        0 => (whole(&body(), "one")[..8000].to_vec(), Then::Close),
        _ => (answer("416 Range Not Satisfiable", &format!("Content-Range: bytes */{}\r\n", body().len()), ""), Then::Close),
    });
    let dir = tempfile::tempdir().unwrap();
    assert!(visit(&server, dir.path(), DownloadLimits { attempts: 1, ..limits() }).await.0.is_err());
    fs::write(dir.path().join("lab.part"), body()).unwrap();
    assert!(matches!(visit(&server, dir.path(), limits()).await.0, Ok(Arrival::New { .. })));
    assert_eq!(copy(dir.path()), body());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wrong_sum_keeps_the_old_copy() {
    let server = Server::start(move |lines, _| match lines[0].contains(".md5") {
        true => (answer("200 OK", "", "0cc175b9c0f1b6a831c399e269772661  delegated\n"), Then::Close),
        false => (whole(&body(), "one"), Then::Close),
    });
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("lab"), "old").unwrap();
    let (outcome, _) = visit(&server, dir.path(), limits()).await;
    assert!(matches!(outcome, Err(DownloadError::Checksum { ref said, .. }) if said.starts_with("0cc1")), "{outcome:?}");
    assert_eq!((copy(dir.path()), files(dir.path())), ("old".to_owned(), vec!["lab".to_owned()]));
    assert_eq!(server.asked().len(), 3, "the file may have changed between the two: it is tried again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_its_reader_refuses_does_not_replace_the_old_one() {
    let server = Server::start(|lines, _| match lines[0].contains(".md5") {
        true => not_found(),
        false => (whole("<html>under construction</html>", "one"), Then::Close),
    });
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("lab"), "old").unwrap();
    let (outcome, _) = visit(&server, dir.path(), limits()).await;
    assert!(matches!(outcome, Err(DownloadError::Refused { ref why, .. }) if why == "nothing usable"), "{outcome:?}");
    assert_eq!((copy(dir.path()), files(dir.path())), ("old".to_owned(), vec!["lab".to_owned()]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_not_there_is_asked_for_once_and_servers_out_of_order_again() {
    let gone = Server::start(|_, _| not_found());
    let dir = tempfile::tempdir().unwrap();
    let (outcome, _) = visit(&gone, dir.path(), limits()).await;
    assert!(matches!(outcome, Err(DownloadError::Status { status: StatusCode::NOT_FOUND, .. })), "{outcome:?}");
    assert_eq!((gone.asked().len(), files(dir.path()).len()), (1, 0));
    let tired = Server::start(|lines, before| match before {
        _ if lines[0].contains(".md5") => not_found(),
        0 | 1 => (answer("503 Service Unavailable", "Content-Length: 0\r\n", ""), Then::Close),
        _ => (whole(&body(), "one"), Then::Close),
    });
    assert!(visit(&tired, dir.path(), limits()).await.0.is_ok());
    assert_eq!(tired.asked().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn endless_and_too_large_bodies_are_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let endless = Server::start(|_, _| (answer("200 OK", "", "lab|"), Then::Endless));
    let announced = Server::start(|_, _| (answer("200 OK", "Content-Length: 9999999999\r\n", "lab|"), Then::Stall));
    for server in [endless, announced] {
        let (outcome, _) = visit(&server, dir.path(), limits()).await;
        assert!(matches!(outcome, Err(DownloadError::TooLarge(_, 1_048_576))), "{outcome:?}");
        assert_eq!(server.asked().len(), 1);
        assert!(fs::metadata(dir.path().join("lab.part")).map_or(0, |m| m.len()) <= 1 << 20);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_falls_silent_is_given_up_and_what_came_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(|_, _| (whole(&body(), "one")[..300].to_vec(), Then::Stall));
    let (outcome, _) = visit(&server, dir.path(), DownloadLimits { attempts: 1, least: 10_000, ..limits() }).await;
    assert!(matches!(outcome, Err(DownloadError::Broken { ref why, .. }) if why.contains("bytes came in")), "{outcome:?}");
    assert_eq!(files(dir.path()), ["lab.part", "lab.part.notes"]);
    let mute = Server::start(|_, _| (Vec::new(), Then::Stall));
    let patience = DownloadLimits { head: Duration::from_millis(200), total: Duration::from_millis(900), attempts: 99, ..limits() };
    let (outcome, _) = visit(&mute, dir.path(), patience).await;
    assert!(matches!(outcome, Err(DownloadError::OutOfTime(_))), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn nobody_there_and_no_room_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(|_, _| (whole(&body(), "one"), Then::Close));
    let (outcome, _) = visit(&server, &dir.path().join("missing"), limits()).await;
    assert!(matches!(outcome, Err(DownloadError::Disk { .. })), "{outcome:?}");
    let nowhere = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let download = Download { name: "lab".to_owned(), url: Url::parse(&format!("http://{nowhere}/x")).unwrap() };
    let outcome = fetch(&download, dir.path(), &limits(), &mut |_| (), &|_| Ok(())).await;
    assert!(matches!(outcome, Err(DownloadError::Broken { ref why, .. }) if why.contains("refused")), "{outcome:?}");
}
