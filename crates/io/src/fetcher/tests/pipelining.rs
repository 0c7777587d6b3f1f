//! Tests that the next request is under way on the same connection while a page is read, and is told behind that page.

use super::{config, decoded, fetcher, order, policy};
use crate::fetcher::{FetchLimits, Fetcher, FetcherConfig};
use std::{
    cell::{Cell, RefCell},
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::Duration,
};
use tokio::sync::oneshot;

/// A server of its own thread that answers on one connection and says what it is asked as soon as it is.
fn server(lengths: [usize; 2]) -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, (asked, hear)) = (listener.local_addr().unwrap(), mpsc::sync_channel(16));
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for length in lengths {
            let _ = asked.send(request(&mut stream));
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\n\r\n");
            let _ = stream.write_all(&[head.as_bytes(), &vec![b' '; length]].concat());
        }
    });
    (address, hear)
}

/// The path of the next request.
fn request(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn the_next_request_is_sent_before_the_page_is_read() {
    let (address, asked) = server([20_000, 10]);
    let fetcher = fetcher(FetchLimits::default(), [address.port()]);
    let (received, was_received) = oneshot::channel();
    let took = Cell::new(None);
    let first = async {
        let report = fetcher
            .fetch_telling(order(address, "/one"), |millis| {
                took.set(Some(millis));
                let _ = received.send(());
            })
            .await;
        // Nothing else runs on this thread: what the server is asked now was sent before the page was read.
        let both = [asked.recv_timeout(Duration::from_secs(10)), asked.recv_timeout(Duration::from_secs(10))];
        assert_eq!(both, [Ok("/one".to_owned()), Ok("/two".to_owned())]);
        report
    };
    let second = async {
        was_received.await.unwrap();
        fetcher.fetch(order(address, "/two")).await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!((decoded(&first), decoded(&second), took.get()), (20_000, 10, Some(first.took)));
    assert_eq!(fetcher.opened_connections(), 1);
}

#[tokio::test]
async fn a_small_page_behind_a_large_one_waits_until_that_is_read() {
    // Large enough to be read on another thread, and full of what takes time to look at.
    let (address, asked) = server([4 << 20, 10]);
    let evaluating = FetcherConfig { evaluate: true, ..config(FetchLimits::default()) };
    let fetcher = Fetcher::new(evaluating, policy([address.port()])).unwrap();
    let (received, was_received) = oneshot::channel();
    let told = RefCell::new(Vec::new());
    let first = async {
        let on_body = |_| received.send(()).unwrap();
        let report = fetcher.fetch_telling(order(address, "/large"), on_body).await;
        told.borrow_mut().push(report.url.path().to_owned());
    };
    let second = async {
        was_received.await.unwrap();
        let report = fetcher.fetch(order(address, "/small")).await;
        told.borrow_mut().push(report.url.path().to_owned());
    };
    tokio::join!(first, second);
    assert_eq!(*told.borrow(), ["/large", "/small"]);
    assert_eq!((asked.try_iter().count(), fetcher.opened_connections()), (2, 1));
}
