//! What may a web server do to us? A raw TCP server on loopback that does exactly what a script says.

use bytes::Bytes;
use socket2::SockRef;
use std::{
    mem::MaybeUninit,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// One thing that a server does.
#[derive(Clone)]
pub enum Step {
    /// Sends these bytes.
    Send(Bytes),
    /// Sends these bytes again and again until the other side has had enough, at most 64 MiB.
    Endless(Bytes),
    /// Sends these bytes one by one with this pause, until the other side has had enough.
    Drip(Bytes, Duration),
    /// Says nothing until the other side closes.
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
                serving.spawn(serve(stream, connection, id, script.clone(), seen.clone()));
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

async fn serve(mut stream: TcpStream, connection: usize, id: usize, script: Script, log: Log) {
    let mut steps_left = 10_000;
    let mut request = 0;
    'requests: while let Some(head) = read_head(&mut stream).await {
        request += 1;
        log.lock().unwrap().heads.push(head.clone());
        for step in script(Asked { head, connection, request }) {
            steps_left -= 1;
            assert!(steps_left > 0, "a script without end");
            match step {
                Step::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        break 'requests;
                    }
                }
                Step::Endless(bytes) => {
                    for _ in 0..(64 << 20) / bytes.len() {
                        if stream.write_all(&bytes).await.is_err() {
                            break 'requests;
                        }
                    }
                }
                Step::Drip(bytes, pause) => {
                    for byte in bytes.iter() {
                        if stream.write_all(&[*byte]).await.is_err() {
                            break 'requests;
                        }
                        tokio::time::sleep(pause).await;
                    }
                }
                Step::Hold => {
                    let _ = stream.read(&mut [0; 1]).await;
                    break 'requests;
                }
                Step::Close => break 'requests,
                Step::Reset => {
                    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
                    log.lock().unwrap().open.retain(|(other, _)| *other != id);
                    return;
                }
            }
        }
    }
    // The log has the socket, too: without this the connection would stay open until the next accept.
    let _ = stream.shutdown().await;
    log.lock().unwrap().open.retain(|(other, _)| *other != id);
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
