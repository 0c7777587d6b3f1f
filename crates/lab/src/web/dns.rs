//! The name server of the made-up zone: a small DNS server over UDP on a loopback address, whose answers can be changed while it runs.

use hickory_proto::{
    op::{Message, MessageType, OpCode, ResponseCode},
    rr::{
        RData, Record, RecordType,
        rdata::{A, AAAA, TXT},
    },
};
use nearcrawl_model::url::Host;
use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{net::UdpSocket, task::JoinHandle};

/// For how long an answer may be remembered, in seconds.
pub(crate) const TTL_SECONDS: u32 = 300;

/// The answer for one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The name has these addresses; A and AAAA are told apart, an empty list means that it has none.
    Addresses(Vec<IpAddr>),
    /// The name has TXT records with these texts, and no address.
    Texts(Vec<String>),
    /// The response code SERVFAIL.
    ServerFailure,
    /// No answer at all.
    Silence,
}

/// The names and what was asked of them. Names that are not in it do not exist (NXDOMAIN).
#[derive(Debug, Default)]
pub struct Zone {
    names: Mutex<BTreeMap<Host, (Reply, u64)>>,
}

impl Zone {
    /// A zone of names with one address each.
    pub fn new(names: impl IntoIterator<Item = (Host, IpAddr)>) -> Zone {
        let zone = Zone::default();
        for (host, address) in names {
            zone.set(host, Reply::Addresses(vec![address]));
        }
        zone
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<Host, (Reply, u64)>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is answered for a name from now on.
    pub fn set(&self, host: Host, reply: Reply) {
        self.names().entry(host).or_insert((Reply::Silence, 0)).0 = reply;
    }

    /// From now on the name does not exist.
    pub fn remove(&self, host: &Host) {
        self.names().remove(host);
    }

    /// How many questions came for a name since it exists.
    pub fn asked(&self, host: &Host) -> u64 {
        self.names().get(host).map_or(0, |(_, asked)| *asked)
    }

    /// The answer to one datagram; none if it is no question, or none is to be given.
    fn answer(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        let question = Message::from_vec(datagram).ok()?;
        if question.metadata.message_type != MessageType::Query {
            return None;
        }
        let mut answer = Message::response(question.metadata.id, question.metadata.op_code);
        answer.metadata.recursion_desired = question.metadata.recursion_desired;
        answer.metadata.recursion_available = true;
        answer.metadata.authoritative = true;
        let query = question.queries.first().filter(|_| question.metadata.op_code == OpCode::Query);
        let Some(query) = query.cloned() else {
            answer.metadata.response_code = ResponseCode::NotImp;
            return answer.to_vec().ok();
        };
        let reply = query.name.to_ascii().parse::<Host>().ok().and_then(|host| {
            let mut names = self.names();
            let (reply, asked) = names.get_mut(&host)?;
            *asked += 1;
            Some(reply.clone())
        });
        match reply {
            None => answer.metadata.response_code = ResponseCode::NXDomain,
            Some(Reply::Silence) => return None,
            Some(Reply::ServerFailure) => answer.metadata.response_code = ResponseCode::ServFail,
            Some(Reply::Texts(texts)) if query.query_type == RecordType::TXT => {
                for text in texts {
                    answer.add_answer(Record::from_rdata(query.name.clone(), TTL_SECONDS, RData::TXT(TXT::new(vec![text]))));
                }
            }
            Some(Reply::Texts(_)) => {}
            Some(Reply::Addresses(addresses)) => {
                for address in addresses {
                    let data = match (address, query.query_type) {
                        (IpAddr::V4(address), RecordType::A) => RData::A(A(address)),
                        (IpAddr::V6(address), RecordType::AAAA) => RData::AAAA(AAAA(address)),
                        _ => continue,
                    };
                    answer.add_answer(Record::from_rdata(query.name.clone(), TTL_SECONDS, data));
                }
            }
        }
        answer.add_query(query);
        answer.to_vec().ok()
    }
}

/// The running server; it ends when this is dropped.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    zone: Arc<Zone>,
    task: JoinHandle<()>,
}

impl DnsServer {
    /// Answers on `listen` (port 0: any free one) until dropped.
    pub async fn start(listen: SocketAddr, zone: Zone) -> io::Result<DnsServer> {
        let socket = UdpSocket::bind(listen).await?;
        let address = socket.local_addr()?;
        let zone = Arc::new(zone);
        let task = tokio::spawn(serve(socket, zone.clone()));
        Ok(DnsServer { address, zone, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The names that it answers.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers one datagram after the other.
async fn serve(socket: UdpSocket, zone: Arc<Zone>) {
    let mut buffer = vec![0; 4096];
    loop {
        // An error here is about an earlier answer that nobody waited for (ICMP unreachable), not about this socket.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
        if let Some(answer) = zone.answer(&buffer[..length]) {
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::{op::Query, rr::Name};
    use std::time::Duration;

    async fn ask(server: &DnsServer, name: &str, kind: RecordType) -> Option<Message> {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut question = Message::new(77, MessageType::Query, OpCode::Query);
        question.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
        socket.send_to(&question.to_vec().unwrap(), server.address()).await.unwrap();
        let mut buffer = [0; 1024];
        let (length, _) = tokio::time::timeout(Duration::from_millis(800), socket.recv_from(&mut buffer)).await.ok()?.unwrap();
        Some(Message::from_vec(&buffer[..length]).unwrap())
    }

    #[tokio::test]
    async fn names_have_addresses_and_others_do_not_exist_until_told_otherwise() {
        let museum: Host = "museum.ke.test".parse().unwrap();
        let zone = Zone::new([(museum.clone(), "127.16.1.9".parse().unwrap())]);
        let server = DnsServer::start("127.0.0.1:0".parse().unwrap(), zone).await.unwrap();

        let answer = ask(&server, "Museum.KE.test.", RecordType::A).await.unwrap();
        assert_eq!((answer.metadata.id, answer.metadata.response_code), (77, ResponseCode::NoError));
        assert_eq!(answer.answers.len(), 1);
        assert_eq!(answer.answers[0].data, RData::A(A("127.16.1.9".parse().unwrap())));
        assert_eq!(ask(&server, "museum.ke.test.", RecordType::AAAA).await.unwrap().answers.len(), 0);
        assert_eq!(server.zone().asked(&museum), 2);

        let missing = ask(&server, "nobody.ke.test.", RecordType::A).await.unwrap();
        assert_eq!(missing.metadata.response_code, ResponseCode::NXDomain);

        let record: Host = "_nearcrawl.museum.ke.test".parse().unwrap();
        server.zone().set(record, Reply::Texts(vec!["no-crawl".to_owned()]));
        let answer = ask(&server, "_nearcrawl.museum.ke.test.", RecordType::TXT).await.unwrap();
        assert_eq!(answer.answers[0].data, RData::TXT(TXT::new(vec!["no-crawl".to_owned()])));

        server.zone().set(museum.clone(), Reply::ServerFailure);
        assert_eq!(ask(&server, "museum.ke.test.", RecordType::A).await.unwrap().metadata.response_code, ResponseCode::ServFail);
        server.zone().set(museum.clone(), Reply::Silence);
        assert!(ask(&server, "museum.ke.test.", RecordType::A).await.is_none());
        server.zone().remove(&museum);
        assert_eq!(ask(&server, "museum.ke.test.", RecordType::A).await.unwrap().metadata.response_code, ResponseCode::NXDomain);
    }
}
