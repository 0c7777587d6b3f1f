//! A member of a swarm that keeps to no limit.
//!
//! It says hello as everybody does, and from then on sends whatever bytes it is given, as fast as they go.

use ed25519_dalek::{Signer, SigningKey};
use libp2p::{
    Multiaddr, PeerId, StreamProtocol, Transport,
    core::{muxing::StreamMuxerBox, transport::Boxed, upgrade::Version},
    futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, StreamExt},
    identity::Keypair,
    noise,
    request_response::{self, Codec, Event, Message, OutboundRequestId, ProtocolSupport},
    swarm::{self, NetworkBehaviour, SwarmEvent},
    tcp, yamux,
};
use nearcrawl::io::swarm::{PROTOCOL, SwarmSecrets, peer_id_of};
use nearcrawl_model::packed::{pack, unpack};
use nearcrawl_model::{
    access_point::AccessPoint,
    message::{Gossip, Request, Response},
};
use serde::Deserialize;
use std::{
    io,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// The largest message of a member, unpacked, in bytes.
const MAX_UNPACKED: usize = 1 << 20;

const HELLO: StreamProtocol = StreamProtocol::new("/nearcrawl/hello/1");
const MEMBER: StreamProtocol = StreamProtocol::new("/nearcrawl/member/1");
const GOSSIP: StreamProtocol = StreamProtocol::new("/meshsub/1.1.0");

/// How long a hello or an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes out, bytes in.
#[derive(Clone, Default)]
struct Bytes;

impl Codec for Bytes {
    type Protocol = StreamProtocol;
    type Request = Vec<u8>;
    type Response = Vec<u8>;

    async fn read_request<T: AsyncRead + Unpin + Send>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        io.read_to_end(&mut bytes).await?;
        Ok(bytes)
    }

    async fn read_response<T: AsyncRead + Unpin + Send>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        io.read_to_end(&mut bytes).await?;
        Ok(bytes)
    }

    async fn write_request<T: AsyncWrite + Unpin + Send>(&mut self, _: &StreamProtocol, io: &mut T, bytes: Vec<u8>) -> io::Result<()> {
        io.write_all(&bytes).await
    }

    async fn write_response<T: AsyncWrite + Unpin + Send>(&mut self, _: &StreamProtocol, io: &mut T, bytes: Vec<u8>) -> io::Result<()> {
        io.write_all(&bytes).await
    }
}

/// What is put into a channel goes out on one stream: gossipsub takes few streams of one connection.
#[derive(Clone, Default)]
struct Feed;

impl Codec for Feed {
    type Protocol = StreamProtocol;
    type Request = mpsc::Receiver<Vec<u8>>;
    type Response = ();

    /// What it is told it throws away.
    async fn read_request<T: AsyncRead + Unpin + Send>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Self::Request> {
        let mut buffer = vec![0; 16 << 10];
        while io.read(&mut buffer).await? > 0 {}
        Ok(mpsc::channel(1).1)
    }

    async fn read_response<T: AsyncRead + Unpin + Send>(&mut self, _: &StreamProtocol, _: &mut T) -> io::Result<()> {
        Ok(())
    }

    async fn write_request<T: AsyncWrite + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        mut frames: Self::Request,
    ) -> io::Result<()> {
        while let Some(frames) = frames.recv().await {
            io.write_all(&frames).await?;
            io.flush().await?;
        }
        Ok(())
    }

    async fn write_response<T: AsyncWrite + Unpin + Send>(&mut self, _: &StreamProtocol, _: &mut T, (): ()) -> io::Result<()> {
        Ok(())
    }
}

type Exchange = request_response::Behaviour<Bytes>;

#[derive(NetworkBehaviour)]
struct Raw {
    hello: Exchange,
    member: Exchange,
    gossip: request_response::Behaviour<Feed>,
}

/// A hello as it stands on the wire, without what later versions added.
type Hello = (u32, Option<[u8; 16]>, [u8; 32], u64, String, bool, Vec<String>);

#[derive(Deserialize)]
enum HelloAnswer {
    Welcome { _hello: Hello, secrets: Option<SwarmSecrets> },
    Refused(String),
}

/// A member of a later release: it refuses every hello with these words, as such a release does.
pub async fn refuse_hellos_at(address: &str, number: [u8; 32], words: &str) {
    let keypair = Keypair::ed25519_from_bytes(number).unwrap();
    let exchange = Exchange::with_codec(Bytes, [(HELLO, ProtocolSupport::Full)], request_response::Config::default());
    let config = swarm::Config::with_tokio_executor().with_idle_connection_timeout(ANSWER_TIMEOUT);
    let mut swarm = swarm::Swarm::new(transport(&keypair), exchange, keypair.public().to_peer_id(), config);
    swarm.listen_on(address.parse().unwrap()).unwrap();
    // The second variant of the answer.
    let refusal = postcard::to_stdvec(&(1_u32, words)).unwrap();
    loop {
        if let SwarmEvent::Behaviour(Event::Message { message: Message::Request { channel, .. }, .. }) = swarm.select_next_some().await {
            let _ = swarm.behaviour_mut().send_response(channel, refusal.clone());
        }
    }
}

fn transport(keypair: &Keypair) -> Boxed<(PeerId, StreamMuxerBox)> {
    tcp::tokio::Transport::new(tcp::Config::new())
        .upgrade(Version::V1Lazy)
        .authenticate(noise::Config::new(keypair).unwrap())
        .multiplex(yamux::Config::default())
        .timeout(ANSWER_TIMEOUT)
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
        .boxed()
}

/// What came of one step.
#[derive(Debug)]
pub enum Step {
    /// An answer to a question.
    Answered(OutboundRequestId, Option<Response>),
    /// A question, which is left unanswered.
    Asked(Request),
    /// The connection ended.
    Closed,
    /// Something else.
    Other,
}

/// The peer.
pub struct RawPeer {
    pub key: SigningKey,
    swarm: swarm::Swarm<Raw>,
    /// The member that it is connected to.
    peer: PeerId,
    frames: mpsc::Sender<Vec<u8>>,
    topic: String,
}

impl RawPeer {
    /// Connects to a member and is let in; or why not. `addresses` is where it says that it can be reached.
    pub async fn join(number: [u8; 32], address: &str, addresses: &[&str]) -> Result<RawPeer, String> {
        let key = SigningKey::from_bytes(&number);
        let keypair = Keypair::ed25519_from_bytes(number).unwrap();
        let long = request_response::Config::default().with_request_timeout(Duration::from_secs(600)).with_max_concurrent_streams(1000);
        let exchange = |protocol| Exchange::with_codec(Bytes, [(protocol, ProtocolSupport::Full)], long.clone());
        let gossip = request_response::Behaviour::with_codec(Feed, [(GOSSIP, ProtocolSupport::Full)], long.clone());
        let behaviour = Raw { hello: exchange(HELLO), member: exchange(MEMBER), gossip };
        let config = swarm::Config::with_tokio_executor().with_idle_connection_timeout(Duration::from_secs(600));
        let mut swarm = swarm::Swarm::new(transport(&keypair), behaviour, keypair.public().to_peer_id(), config);
        let target: Multiaddr = address.parse().unwrap();
        let Some(libp2p::multiaddr::Protocol::P2p(peer)) = target.iter().last() else { panic!("{address} names no peer") };
        swarm.dial(target).map_err(|why| why.to_string())?;
        let (frames, feed) = mpsc::channel(64);
        let mut raw = RawPeer { key, swarm, peer, frames, topic: String::new() };
        let said: Hello =
            (PROTOCOL, None, [9; 32], 1, "raw/1".to_owned(), false, addresses.iter().map(|text| (*text).to_owned()).collect());
        let hello = [postcard::to_stdvec(&said).unwrap(), postcard::to_stdvec(&PROTOCOL).unwrap()].concat();
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, raw.greet(hello)).await.map_err(|_| "no answer to the hello".to_owned())??;
        match postcard::take_from_bytes(&answer).map_err(|why| why.to_string())?.0 {
            HelloAnswer::Welcome { secrets: Some(secrets), .. } => {
                let name: String = secrets.swarm.iter().map(|byte| format!("{byte:02x}")).collect();
                raw.topic = format!("nearcrawl/1/{name}");
                raw.swarm.behaviour_mut().gossip.send_request(&peer, feed);
                Ok(raw)
            }
            HelloAnswer::Welcome { secrets: None, .. } => Err("let in, but not told the secrets".to_owned()),
            HelloAnswer::Refused(why) => Err(why),
        }
    }

    async fn greet(&mut self, hello: Vec<u8>) -> Result<Vec<u8>, String> {
        self.swarm.behaviour_mut().hello.send_request(&self.peer, hello);
        loop {
            match self.swarm.select_next_some().await {
                SwarmEvent::Behaviour(RawEvent::Hello(Event::Message { message: Message::Response { response, .. }, .. })) => {
                    return Ok(response);
                }
                SwarmEvent::Behaviour(RawEvent::Hello(Event::OutboundFailure { error, .. })) => return Err(error.to_string()),
                SwarmEvent::OutgoingConnectionError { error, .. } => return Err(error.to_string()),
                SwarmEvent::ConnectionClosed { .. } => return Err("the connection was closed".to_owned()),
                _ => {}
            }
        }
    }

    /// Who it is.
    pub fn me(&self) -> AccessPoint {
        AccessPoint(self.key.verifying_key().to_bytes())
    }

    /// Sends a question without waiting for anything.
    pub fn ask(&mut self, request: &Request) -> OutboundRequestId {
        self.ask_bytes(pack(&postcard::to_stdvec(request).unwrap()))
    }

    /// The same with any bytes.
    pub fn ask_bytes(&mut self, bytes: Vec<u8>) -> OutboundRequestId {
        self.swarm.behaviour_mut().member.send_request(&self.peer, bytes)
    }

    /// Asks and waits for the answer; none if the stream or the connection was closed instead.
    pub async fn answer(&mut self, request: &Request) -> Option<Response> {
        let asked = self.ask(request);
        let answered = async {
            loop {
                match self.step().await {
                    Step::Answered(id, response) if id == asked => return response,
                    Step::Closed => return None,
                    _ => {}
                }
            }
        };
        tokio::time::timeout(ANSWER_TIMEOUT, answered).await.unwrap_or_else(|_| panic!("no answer to {request:?}"))
    }

    /// Sends frames of gossip (see [`RawPeer::gossip`]); false if too much waits already, because the other side does not read it.
    pub fn publish(&mut self, frames: Vec<u8>) -> bool {
        self.frames.try_send(frames).is_ok()
    }

    /// What happens next.
    pub async fn step(&mut self) -> Step {
        match self.swarm.select_next_some().await {
            SwarmEvent::Behaviour(RawEvent::Member(Event::Message { message: Message::Response { request_id, response }, .. })) => {
                Step::Answered(request_id, read(&response))
            }
            SwarmEvent::Behaviour(RawEvent::Member(Event::OutboundFailure { request_id, .. })) => Step::Answered(request_id, None),
            SwarmEvent::Behaviour(RawEvent::Member(Event::Message { message: Message::Request { request, .. }, .. })) => {
                read(&request).map_or(Step::Other, Step::Asked)
            }
            SwarmEvent::ConnectionClosed { .. } => Step::Closed,
            _ => Step::Other,
        }
    }

    /// Lets the network work for so long; whether it is still connected.
    pub async fn stay(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while let Ok(step) = tokio::time::timeout(end.saturating_duration_since(Instant::now()), self.step()).await {
            if matches!(step, Step::Closed) {
                return false;
            }
        }
        self.swarm.is_connected(&self.peer)
    }

    /// A frame of gossip in this swarm, signed by whom one likes.
    pub fn gossip(&self, author: &SigningKey, sequence: u64, gossip: &Gossip) -> Vec<u8> {
        frame(author, sequence, &self.topic, &postcard::to_stdvec(gossip).unwrap())
    }
}

/// A frame of gossipsub's protocol with one signed message.
pub fn frame(author: &SigningKey, sequence: u64, topic: &str, data: &[u8]) -> Vec<u8> {
    let from = peer_id_of(AccessPoint(author.verifying_key().to_bytes())).unwrap().to_bytes();
    let mut message = Vec::with_capacity(data.len() + 256);
    field(&mut message, 1, &from);
    field(&mut message, 2, data);
    field(&mut message, 3, &sequence.to_be_bytes());
    field(&mut message, 4, topic.as_bytes());
    let signature = author.sign(&[b"libp2p-pubsub:", &message[..]].concat());
    field(&mut message, 5, &signature.to_bytes());
    let mut rpc = Vec::with_capacity(message.len() + 8);
    field(&mut rpc, 2, &message);
    let mut frame = Vec::with_capacity(rpc.len() + 8);
    number(&mut frame, rpc.len());
    frame.extend(rpc);
    frame
}

/// A field of bytes in protobuf.
fn field(to: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    to.push(tag << 3 | 2);
    number(to, bytes.len());
    to.extend_from_slice(bytes);
}

/// A number of any length.
fn number(to: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// A message as members send them.
fn read<M: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<M> {
    postcard::from_bytes(&unpack(bytes, MAX_UNPACKED).ok()?).ok()
}
