//! A real name server on loopback that lies, stalls and loops as its script says.

use hickory_proto::{
    op::{Message, ResponseCode},
    rr::{
        Name, RData, Record, RecordType,
        rdata::{A, AAAA, CNAME},
    },
    serialize::binary::{BinDecodable, BinEncodable},
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UdpSocket},
    task::JoinSet,
};

/// What the server does with a question.
pub enum Reply {
    /// Answers with these records; an empty list means that the name exists.
    Records(Vec<Record>),
    /// Answers with an error.
    Code(ResponseCode),
    /// Answers under another id first, with a wrong address, then rightly.
    WrongIdFirst(Vec<Record>),
    /// Sends bytes that are no message.
    Garbage,
    /// Does not answer.
    Silence,
}

/// A running name server; it ends when this is dropped.
pub struct Dns {
    /// Where it listens, over UDP and TCP.
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, RecordType, IpAddr)>>>,
    _task: JoinSet<()>,
}

/// What is answered over UDP without asking for TCP.
const MAX_DATAGRAM: usize = 1232;

/// The datagrams that answer a question.
fn replies(question: &[u8], zone: &dyn Fn(&str, RecordType) -> Reply) -> Option<(String, RecordType, Vec<Vec<u8>>)> {
    let question = Message::from_bytes(question).ok()?;
    let query = question.queries[0].clone();
    let (name, kind) = (query.name().to_ascii().to_lowercase(), query.query_type());
    let mut answer = Message::response(question.metadata.id, question.metadata.op_code);
    answer.metadata.recursion_available = true;
    answer.add_query(query);
    let mut sent = Vec::new();
    match zone(&name, kind) {
        Reply::Records(records) => {
            answer.add_answers(records);
        }
        Reply::Code(code) => answer.metadata.response_code = code,
        Reply::WrongIdFirst(records) => {
            let mut forged = answer.clone();
            forged.metadata.id ^= 1;
            forged.add_answer(a(&name, 60, "6.6.6.6"));
            sent.push(forged.to_bytes().unwrap());
            answer.add_answers(records);
        }
        Reply::Garbage => return Some((name, kind, vec![b"no".to_vec()])),
        Reply::Silence => return Some((name, kind, Vec::new())),
    }
    sent.push(answer.to_bytes().unwrap());
    Some((name, kind, sent))
}

/// The head of an answer that was too long for a datagram.
fn truncated(answer: &[u8]) -> Vec<u8> {
    let mut message = Message::from_bytes(answer).unwrap();
    message.answers.clear();
    message.metadata.truncation = true;
    message.to_bytes().unwrap()
}

/// A port for both protocols: one that UDP has free may be taken for TCP, by any connection on this machine.
async fn same_port() -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        match TcpListener::bind(socket.local_addr().unwrap()).await {
            Ok(listener) => return (socket, listener),
            Err(why) => assert_eq!(why.kind(), std::io::ErrorKind::AddrInUse),
        }
    }
    panic!("no port of 127.0.0.1 is free for UDP and TCP alike");
}

impl Dns {
    /// A name server on a free port of 127.0.0.1 that answers each name and kind of record by this zone.
    pub async fn start(zone: impl Fn(&str, RecordType) -> Reply + Send + Sync + 'static) -> Dns {
        let (socket, listener) = same_port().await;
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, zone) = (asked.clone(), Arc::new(zone));
        let mut task = JoinSet::new();
        let zone_over_tcp = zone.clone();
        task.spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok((size, peer)) = socket.recv_from(&mut buffer).await {
                let Some((name, kind, sent)) = replies(&buffer[..size], &*zone) else { continue };
                log.lock().unwrap().push((name, kind, peer.ip()));
                for reply in sent {
                    let reply = if reply.len() > MAX_DATAGRAM { truncated(&reply) } else { reply };
                    socket.send_to(&reply, peer).await.unwrap();
                }
            }
        });
        task.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Ok(size) = stream.read_u16().await else { continue };
                let mut question = vec![0; usize::from(size)];
                if stream.read_exact(&mut question).await.is_err() {
                    continue;
                }
                for reply in replies(&question, &*zone_over_tcp).into_iter().flat_map(|(_, _, sent)| sent) {
                    let _ = stream.write_u16(u16::try_from(reply.len()).unwrap()).await;
                    let _ = stream.write_all(&reply).await;
                }
            }
        });
        Dns { address, asked, _task: task }
    }

    /// How many questions came over UDP.
    pub fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Name, kind of record and asker of each question that came over UDP.
    pub fn questions(&self) -> Vec<(String, RecordType, IpAddr)> {
        self.asked.lock().unwrap().clone()
    }
}

/// A name, written with its dots.
pub fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

/// An A record; `ttl` is in seconds.
pub fn a(owner: &str, ttl: u32, address: &str) -> Record {
    Record::from_rdata(name(owner), ttl, RData::A(A(address.parse().unwrap())))
}

/// An AAAA record; `ttl` is in seconds.
pub fn aaaa(owner: &str, ttl: u32, address: &str) -> Record {
    Record::from_rdata(name(owner), ttl, RData::AAAA(AAAA(address.parse().unwrap())))
}

/// A CNAME record; `ttl` is in seconds.
pub fn alias(owner: &str, ttl: u32, to: &str) -> Record {
    Record::from_rdata(name(owner), ttl, RData::CNAME(CNAME(name(to))))
}
