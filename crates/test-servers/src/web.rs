//! Scripted web server for tests: raw TCP on loopback that does exactly what a script says.

use bytes::Bytes;
use socket2::SockRef;
use std::{
    mem::MaybeUninit,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// A body packed in this way.
pub async fn pack(name: &str, plain: &[u8]) -> Vec<u8> {
    use async_compression::tokio::write::{BrotliEncoder, DeflateEncoder, GzipEncoder, ZstdEncoder};
    macro_rules! with {
        ($encoder:ident) => {{
            let mut encoder = $encoder::new(Vec::new());
            encoder.write_all(plain).await.unwrap();
            encoder.shutdown().await.unwrap();
            encoder.into_inner()
        }};
    }
    match name {
        "gzip" => with!(GzipEncoder),
        "deflate" => with!(DeflateEncoder),
        "br" => with!(BrotliEncoder),
        _ => with!(ZstdEncoder),
    }
}

/// One thing that a server does.
#[derive(Clone)]
pub enum Step {
    /// Sends these bytes.
    Send(Bytes),
    /// Sends these bytes again and again until the other side has had enough, at most 64 MiB.
    Endless(Bytes),
    /// Sends these bytes one by one with this pause, until the other side has had enough.
    Drip(Bytes, Duration),
    /// Says nothing until the other side closes, and reads nothing.
    Hold,
    /// Closes; without it the server waits for the next request.
    Close,
    /// Closes with a reset.
    Reset,
}

/// What was asked.
pub struct Asked {
    /// The head of the request.
    pub head: String,
    /// Which connection of this server, from 1.
    pub connection: usize,
    /// Which request of this connection, from 1.
    pub request: usize,
}

impl Asked {
    /// The path and query.
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

/// What one or more servers saw.
#[derive(Default)]
pub struct Seen {
    /// Heads of all requests.
    pub heads: Vec<String>,
    /// Who connected, in order.
    pub peers: Vec<SocketAddr>,
    /// The most connections that were open at the same moment, told at each accept.
    pub most_open: usize,
    open: Vec<(usize, socket2::Socket)>,
}

/// A handle on [`Seen`]; several servers may share one.
pub type Log = Arc<Mutex<Seen>>;

/// A running server; it ends when this is dropped.
pub struct Site {
    /// Where it listens.
    pub address: SocketAddr,
    /// What it saw.
    pub log: Log,
    _task: JoinSet<()>,
}

type Script = Arc<dyn Fn(Asked) -> Vec<Step> + Send + Sync>;

/// Whether the other side of a connection has closed, seen below all buffering.
fn has_ended(socket: &socket2::Socket) -> bool {
    match socket.peek(&mut [MaybeUninit::uninit()]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

impl Site {
    /// A server on a free port of 127.0.0.1.
    pub async fn start(script: impl Fn(Asked) -> Vec<Step> + Send + Sync + 'static) -> Site {
        Site::start_at("127.0.0.1".parse().unwrap(), Log::default(), script).await
    }

    /// A server that answers everything with these steps.
    pub async fn always(steps: Vec<Step>) -> Site {
        Site::start(move |_| steps.clone()).await
    }

    /// A server on a free port of this address that writes into this log.
    pub async fn start_at(ip: IpAddr, log: Log, script: impl Fn(Asked) -> Vec<Step> + Send + Sync + 'static) -> Site {
        Site::listen(ip, log, true, script).await
    }

    /// A server on a free port of this address that does its steps as soon as somebody connects, whatever is asked.
    pub async fn unasked(ip: IpAddr, steps: Vec<Step>) -> Site {
        Site::listen(ip, Log::default(), false, move |_| steps.clone()).await
    }

    async fn listen(ip: IpAddr, log: Log, reads: bool, script: impl Fn(Asked) -> Vec<Step> + Send + Sync + 'static) -> Site {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let script: Script = Arc::new(script);
        let mut task = JoinSet::new();
        let seen = log.clone();
        task.spawn(async move {
            let mut serving = JoinSet::new();
            let mut connection = 0;
            while let Ok((stream, peer)) = listener.accept().await {
                connection += 1;
                let id = usize::from(address.port()) * 1000 + connection;
                {
                    let mut seen = seen.lock().unwrap();
                    seen.open.retain(|(_, socket)| !has_ended(socket));
                    seen.open.push((id, SockRef::from(&stream).try_clone().unwrap()));
                    seen.most_open = seen.most_open.max(seen.open.len());
                    seen.peers.push(peer);
                }
                let (script, log) = (script.clone(), seen.clone());
                serving.spawn(async move {
                    let mut stream = stream;
                    let last = if reads {
                        serve(&mut stream, connection, &script, &log).await
                    } else {
                        perform(&mut stream, script(Asked { head: String::new(), connection, request: 1 })).await
                    };
                    if last == After::Reset {
                        let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
                    } else {
                        // The log has the socket, too: without this the connection would stay open until the next accept.
                        let _ = stream.shutdown().await;
                    }
                    log.lock().unwrap().open.retain(|(other, _)| *other != id);
                });
            }
        });
        Site { address, log, _task: task }
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.log.lock().unwrap().peers.len()
    }

    /// The heads of all requests.
    pub fn heads(&self) -> Vec<String> {
        self.log.lock().unwrap().heads.clone()
    }

    /// Waits until no connection is open any more, at most 5 s.
    pub async fn until_all_closed(&self) {
        for _ in 0..500 {
            {
                let mut seen = self.log.lock().unwrap();
                seen.open.retain(|(_, socket)| !has_ended(socket));
                if seen.open.is_empty() {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("a connection stayed open");
    }
}

/// How a connection is after some steps.
#[derive(PartialEq, Eq)]
enum After {
    Open,
    Closed,
    Reset,
}

/// Answers requests until a step ends it.
async fn serve(stream: &mut TcpStream, connection: usize, script: &Script, log: &Log) -> After {
    for request in 1..10_000 {
        let Some(head) = read_head(stream).await else { return After::Closed };
        log.lock().unwrap().heads.push(head.clone());
        let after = perform(stream, script(Asked { head, connection, request })).await;
        if after != After::Open {
            return after;
        }
    }
    panic!("a script without end");
}

async fn perform(stream: &mut TcpStream, steps: Vec<Step>) -> After {
    for step in steps {
        let stands = match step {
            Step::Send(bytes) => stream.write_all(&bytes).await.is_ok(),
            Step::Endless(bytes) => {
                let mut stands = true;
                for _ in 0..(64 << 20) / bytes.len() {
                    stands = stands && stream.write_all(&bytes).await.is_ok();
                }
                stands
            }
            Step::Drip(bytes, pause) => {
                let mut stands = true;
                for byte in bytes.iter() {
                    if stands {
                        stands = stream.write_all(&[*byte]).await.is_ok();
                        tokio::time::sleep(pause).await;
                    }
                }
                stands
            }
            Step::Hold => {
                // What is sent meanwhile is not read.
                while stream.ready(Interest::READABLE).await.is_ok_and(|ready| !ready.is_read_closed()) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                false
            }
            Step::Close => false,
            Step::Reset => return After::Reset,
        };
        if !stands {
            return After::Closed;
        }
    }
    After::Open
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte).await {
            Ok(1) if head.len() < 16_384 => head.push(byte[0]),
            _ => return None,
        }
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// One step that sends a text.
pub fn send(text: impl Into<Bytes>) -> Step {
    Step::Send(text.into())
}

/// An answer of HTML with its length.
pub fn html(body: &str) -> Step {
    answer("200 OK", "Content-Type: text/html; charset=utf-8\r\n", body.as_bytes())
}

/// An answer with its length; each line of `headers` ends with CRLF.
pub fn answer(status: &str, headers: &str, body: &[u8]) -> Step {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    send([head.as_bytes(), body].concat())
}
