//! Short questions and their answers, over one stream for each member and direction that stays open.
//!
//! A stream for each question costs more than most questions and answers themselves: both sides name the protocol, in seven frames of yamux
//! and as many records of Noise. Long questions, and those whose answers are long, have streams of their own all the same
//! (libp2p's request-response), so that no short one waits behind them.
//!
//! A frame is two bytes with the length of its text, two with the number of the question on this stream, and the text, packed by what was
//! said on the stream before. In place of an answer may stand nothing (there is none), or [`TOO_LONG`] (ask again over a stream of its
//! own). A text that cannot be unpacked ends its stream, since what follows it would refer to it.

use super::{
    codec::{Arrived, Wire},
    protocol,
};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, StreamExt};
use libp2p::{PeerId, Stream, StreamProtocol, core::upgrade::NegotiationError};
use libp2p_stream::{AlreadyRegistered, Behaviour, Control, IncomingStreams, OpenStreamError};
use nearcrawl_model::{
    message::{Request, Response},
    packed_stream::{Packer, Unpacker},
};
use std::{
    collections::{HashMap, HashSet},
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

/// The longest question or answer, in bytes before it is packed: a slow line carries it in a second.
const MAX_MESSAGE: usize = 32 << 10;

/// The length of what stands before the text.
const HEAD: usize = 4;

/// In place of an answer: it is too long for a frame. No packed message begins so.
const TOO_LONG: u8 = 0xff;

/// Frames that wait to be written on one stream: more than there are questions at a time ([`super::peers::MAX_OPEN`]), and SWIM's.
const MAX_FRAMES: usize = 256;

/// Frames that wait are written together up to about so many bytes.
const TOGETHER: usize = 16 << 10;

/// A frame waits for so long for others to the same member: what is asked at one time, and what is answered to that, then goes in one packet
/// each. A packet of its own costs ten times what most frames have to say.
const GATHERED_FOR: Duration = Duration::from_millis(2);

/// What the streams tell at a time; then they wait.
const MAX_EVENTS: usize = 256;

/// Streams on which one peer asks: one for each of its connections.
const MAX_STREAMS_OF_ONE: usize = 4;

/// How long a stream may take to open, or to take what is written.
const STALLED: Duration = Duration::from_secs(20);

const PROTOCOL: StreamProtocol = StreamProtocol::new(protocol::BRIEF);

/// The number of a question of ours: which stream, and which question on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BriefId {
    stream: u64,
    number: u16,
}

/// What came over the streams.
pub(super) enum BriefEvent {
    /// A peer asks.
    Asked { peer: PeerId, request: Arrived<Request>, reply: Reply },
    /// A peer answered, or said that it does not.
    Answered { peer: PeerId, id: BriefId, answer: BriefAnswer },
    /// A stream of ours has ended, with all its questions. `spoken`: the peer knows such streams.
    Ended { peer: PeerId, stream: u64, spoken: bool },
}

/// An answer to one of our questions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BriefAnswer {
    /// It is this.
    Whole(Box<Response>),
    /// It is too long for a frame.
    TooLong,
    /// There is none.
    Dropped,
    /// It is no message.
    Broken,
}

impl BriefAnswer {
    /// The next answer of a stream, and whether what follows can be understood.
    fn read(text: &[u8], said: &mut Unpacker) -> (BriefAnswer, bool) {
        match text {
            [] => (BriefAnswer::Dropped, true),
            [TOO_LONG] => (BriefAnswer::TooLong, true),
            _ => {
                let (response, goes_on) = read_message(text, said);
                (response.map_or(BriefAnswer::Broken, |response| BriefAnswer::Whole(Box::new(response))), goes_on)
            }
        }
    }
}

/// The next question or answer of a stream, if the text is one, and whether what follows can be understood.
fn read_message<M: Wire>(text: &[u8], said: &mut Unpacker) -> (Option<M>, bool) {
    said.unpack(text, MAX_MESSAGE).map_or((None, false), |message| (M::read(&message), true))
}

fn write_message<M: Wire>(message: &M) -> Option<Text> {
    message.write().ok().filter(|bytes| bytes.len() <= MAX_MESSAGE).map(Text::Message)
}

/// Whether the answer to this may well be long: then it is asked over a stream of its own at once.
fn is_answered_at_length(request: &Request) -> bool {
    matches!(
        request,
        Request::SendClaims(_)
            | Request::Recall(..)
            | Request::HierarchyManifest(_)
            | Request::HierarchyChunk { .. }
            | Request::VoterLists(_)
            | Request::Ballot(_)
            | Request::ServerRows(_)
            | Request::HistoryRows(_)
            | Request::ExportRows(_)
            | Request::SendSurveys(_)
            | Request::SendOptOuts(_)
            | Request::Distinct(_)
            | Request::SurveyProbes(_)
            | Request::RequestsMade(_)
            | Request::Why(_)
            | Request::Records(_)
    )
}

/// What a frame says.
#[derive(Clone, Debug)]
enum Text {
    /// A question or an answer, which is packed when it is written: in the order in which frames are.
    Message(Vec<u8>),
    /// There is no answer.
    Dropped,
    /// The answer is too long for a frame.
    TooLong,
}

/// A frame that waits to be written: the number of the question, and the text.
type Frame = (u16, Text);

/// With what a question that came over such a stream is answered, once. Dropped, it says that there is no answer.
#[derive(Debug)]
pub(super) struct Reply {
    number: u16,
    frames: Option<mpsc::Sender<Frame>>,
    until: Instant,
}

impl Reply {
    /// Whether the asker still waits.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        now < self.until && self.frames.as_ref().is_some_and(|frames| !frames.is_closed())
    }

    pub(super) fn send(mut self, response: &Response) {
        self.write(write_message(response).unwrap_or(Text::TooLong));
    }

    fn write(&mut self, text: Text) {
        if let Some(frames) = self.frames.take() {
            // Who does not read what it is answered does without.
            let _ = frames.try_send((self.number, text));
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.write(Text::Dropped);
    }
}

/// A stream of ours to a peer.
struct Outgoing {
    stream: u64,
    next: u16,
    frames: mpsc::Sender<Frame>,
}

/// All these streams.
pub(super) struct BriefStreams {
    control: Control,
    events: mpsc::Sender<BriefEvent>,
    outgoing: HashMap<PeerId, Outgoing>,
    /// Peers that do not know such streams.
    without: HashSet<PeerId>,
    next: u64,
}

impl BriefStreams {
    /// Takes streams from now on; questions that came over them are answered within this time or not at all.
    pub(super) fn start(behaviour: &Behaviour, within: Duration) -> Result<(BriefStreams, mpsc::Receiver<BriefEvent>), AlreadyRegistered> {
        let mut control = behaviour.new_control();
        let (events, told) = mpsc::channel(MAX_EVENTS);
        tokio::spawn(take_streams(control.accept(PROTOCOL)?, events.clone(), within));
        Ok((BriefStreams { control, events, outgoing: HashMap::new(), without: HashSet::new(), next: 0 }, told))
    }

    /// Asks a connected peer, if such a stream is right for the question and has room for it.
    pub(super) fn ask(&mut self, peer: PeerId, request: &Request) -> Option<BriefId> {
        if self.without.contains(&peer) || is_answered_at_length(request) {
            return None;
        }
        let text = write_message(request)?;
        if self.outgoing.get(&peer).is_none_or(|outgoing| outgoing.frames.is_closed()) {
            self.open(peer);
        }
        let outgoing = self.outgoing.get_mut(&peer)?;
        outgoing.next = outgoing.next.wrapping_add(1);
        outgoing.frames.try_send((outgoing.next, text)).ok()?;
        Some(BriefId { stream: outgoing.stream, number: outgoing.next })
    }

    fn open(&mut self, peer: PeerId) {
        self.next += 1;
        let (frames, waiting) = mpsc::channel(MAX_FRAMES);
        self.outgoing.insert(peer, Outgoing { stream: self.next, next: 0, frames });
        tokio::spawn(ask_over(self.control.clone(), peer, self.next, waiting, self.events.clone()));
    }

    /// A stream has ended.
    pub(super) fn ended(&mut self, peer: PeerId, stream: u64, spoken: bool) {
        if self.outgoing.get(&peer).is_some_and(|outgoing| outgoing.stream == stream) {
            self.outgoing.remove(&peer);
        }
        if !spoken {
            self.without.insert(peer);
        }
    }

    /// The last connection to a peer has ended.
    pub(super) fn disconnected(&mut self, peer: &PeerId) {
        self.outgoing.remove(peer);
        self.without.remove(peer);
    }
}

impl BriefId {
    /// Whether it was asked on this stream.
    pub(super) fn is_of(&self, stream: u64) -> bool {
        self.stream == stream
    }
}

/// Our questions to one peer, and its answers.
async fn ask_over(mut control: Control, peer: PeerId, stream: u64, mut waiting: mpsc::Receiver<Frame>, events: mpsc::Sender<BriefEvent>) {
    let spoken = match timeout(STALLED, control.open_stream(peer, PROTOCOL)).await {
        Ok(Ok(opened)) => {
            let (mut reader, mut writer) = opened.split();
            let reading = async {
                let (mut said, mut goes_on) = (Unpacker::default(), true);
                while goes_on {
                    let (number, text) = read_frame(&mut reader).await?;
                    let answer;
                    (answer, goes_on) = BriefAnswer::read(&text, &mut said);
                    let id = BriefId { stream, number };
                    events.send(BriefEvent::Answered { peer, id, answer }).await.map_err(io::Error::other)?;
                }
                Ok(())
            };
            let ended: io::Result<()> = tokio::select! {
                ended = reading => ended,
                ended = write_frames(&mut writer, &mut waiting) => ended,
            };
            // That the other side does not know the protocol may show only here: it is proposed together with the first question.
            !ended.is_err_and(|error| is_refused(&error))
        }
        Ok(Err(OpenStreamError::UnsupportedProtocol(_))) => false,
        Ok(Err(_)) | Err(_) => true,
    };
    drop(waiting);
    let _ = events.send(BriefEvent::Ended { peer, stream, spoken }).await;
}

fn is_refused(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<NegotiationError>());
    matches!(inner, Some(NegotiationError::Failed))
}

/// How many streams each peer asks on.
type Taken = Arc<Mutex<HashMap<PeerId, usize>>>;

/// Streams on which others ask.
async fn take_streams(mut incoming: IncomingStreams, events: mpsc::Sender<BriefEvent>, within: Duration) {
    let taken = Taken::default();
    while let Some((peer, stream)) = incoming.next().await {
        {
            let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
            let streams = taken.entry(peer).or_default();
            if *streams >= MAX_STREAMS_OF_ONE {
                continue;
            }
            *streams += 1;
        }
        let (events, taken) = (events.clone(), taken.clone());
        tokio::spawn(async move {
            // However it ended: the other side opens another one, if it has more to ask.
            let _ = answer_over(peer, stream, events, within).await;
            let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
            match taken.get_mut(&peer) {
                Some(streams) if *streams > 1 => *streams -= 1,
                _ => drop(taken.remove(&peer)),
            }
        });
    }
}

/// A peer's questions on one stream, and our answers.
async fn answer_over(peer: PeerId, stream: Stream, events: mpsc::Sender<BriefEvent>, within: Duration) -> io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    let (frames, mut answers) = mpsc::channel(MAX_FRAMES);
    let reading = async {
        let (mut said, mut goes_on) = (Unpacker::default(), true);
        while goes_on {
            let (number, text) = read_frame(&mut reader).await?;
            let reply = Reply { number, frames: Some(frames.clone()), until: Instant::now() + within };
            let request;
            (request, goes_on) = read_message(&text, &mut said);
            let request = request.map_or(Arrived::Broken, |request| Arrived::Whole(request, text.len()));
            events.send(BriefEvent::Asked { peer, request, reply }).await.map_err(io::Error::other)?;
        }
        Ok(())
    };
    tokio::select! {
        ended = reading => ended,
        ended = write_frames(&mut writer, &mut answers) => ended,
    }
}

async fn read_frame(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<(u16, Vec<u8>)> {
    let mut head = [0; HEAD];
    reader.read_exact(&mut head).await?;
    let [l0, l1, n0, n1] = head;
    let mut text = vec![0; usize::from(u16::from_be_bytes([l0, l1]))];
    reader.read_exact(&mut text).await?;
    Ok((u16::from_be_bytes([n0, n1]), text))
}

/// Writes frames until there are none any more, those that wait together.
async fn write_frames(writer: &mut (impl AsyncWrite + Unpin), frames: &mut mpsc::Receiver<Frame>) -> io::Result<()> {
    let mut said = Packer::default();
    while let Some(first) = frames.recv().await {
        if frames.is_empty() {
            sleep(GATHERED_FOR).await;
        }
        let mut bytes = Vec::new();
        let mut next = Some(first);
        while let Some((number, text)) = next {
            let text = match text {
                Text::Message(message) => said.pack(&message),
                Text::Dropped => Vec::new(),
                Text::TooLong => vec![TOO_LONG],
            };
            let length = u16::try_from(text.len()).map_err(io::Error::other)?;
            bytes.extend(length.to_be_bytes());
            bytes.extend(number.to_be_bytes());
            bytes.extend(text);
            next = if bytes.len() < TOGETHER { frames.try_recv().ok() } else { None };
        }
        let written = async {
            writer.write_all(&bytes).await?;
            writer.flush().await
        };
        timeout(STALLED, written).await.map_err(io::Error::other)??;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_come_out_as_they_went_in_and_those_that_wait_go_together() {
        let (frames, mut waiting) = mpsc::channel(8);
        let long: Vec<u8> = (0..MAX_MESSAGE as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let sent = [(1, Text::Message(b"one".to_vec())), (u16::MAX, Text::Dropped), (3, Text::Message(long.clone())), (4, Text::TooLong)];
        for frame in &sent {
            frames.try_send(frame.clone()).unwrap();
        }
        drop(frames);
        let mut wire = Vec::new();
        write_frames(&mut wire, &mut waiting).await.unwrap();
        let (mut reader, mut said) = (futures::io::Cursor::new(wire), Unpacker::default());
        for (number, text) in sent {
            let (came, bytes) = read_frame(&mut reader).await.unwrap();
            assert_eq!(came, number);
            match text {
                Text::Message(message) => assert_eq!(said.unpack(&bytes, MAX_MESSAGE), Ok(message)),
                Text::Dropped => assert!(bytes.is_empty()),
                Text::TooLong => assert_eq!(bytes, [TOO_LONG]),
            }
        }
        assert!(read_frame(&mut reader).await.is_err(), "there are no more");
    }

    #[tokio::test]
    async fn who_drops_a_question_says_so_and_a_long_answer_is_told_as_such() {
        let (frames, mut written) = mpsc::channel(8);
        let reply = |number| Reply { number, frames: Some(frames.clone()), until: Instant::now() + STALLED };
        drop(reply(1));
        reply(2).send(&Response::Noted);
        reply(3).send(&Response::Swim(vec![0; MAX_MESSAGE]));
        let mut wire = Vec::new();
        drop(frames);
        write_frames(&mut wire, &mut written).await.unwrap();
        let (mut reader, mut said, mut told) = (futures::io::Cursor::new(wire), Unpacker::default(), Vec::new());
        while let Ok((number, text)) = read_frame(&mut reader).await {
            told.push((number, BriefAnswer::read(&text, &mut said)));
        }
        let noted = BriefAnswer::Whole(Box::new(Response::Noted));
        let each_once = [(1, (BriefAnswer::Dropped, true)), (2, (noted, true)), (3, (BriefAnswer::TooLong, true))];
        assert_eq!(told, each_once, "each is answered once");
        assert_eq!(BriefAnswer::read(b"nonsense", &mut said), (BriefAnswer::Broken, false));
        let (frames, _written) = mpsc::channel(8);
        let open = Reply { number: 4, frames: Some(frames), until: Instant::now() + STALLED };
        assert!(open.is_open(Instant::now()) && !open.is_open(Instant::now() + STALLED));
    }

    #[test]
    fn no_packed_message_begins_like_the_word_for_a_long_one() {
        let mut said = Packer::default();
        for message in [Vec::new(), vec![0; 10_000], (0..255).collect()] {
            assert!(said.pack(&message)[0] < TOO_LONG);
        }
    }
}
