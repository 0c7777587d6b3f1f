//! Encoding of messages: one message a stream and direction, in postcard, ended by closing the stream, of limited length.
//!
//! Those between members are packed if they are long.

use libp2p::{
    StreamProtocol,
    futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    request_response,
};
use nearcrawl_model::packed::{pack, unpack, unpacked_len};
use std::{io, marker::PhantomData, sync::Arc};
use tokio::sync::{AcquireError, Semaphore};

/// Messages up to this size are read without asking for room, in bytes.
const SMALL: u64 = 64 << 10;

/// How many larger messages may be read at the same time, over all connections: bounds the memory peers can make us use. Others wait for
/// their turn, in the order in which they came.
const MAX_LARGE_READS: usize = 64;

/// The same for one connection, so that none keeps the others waiting.
const MAX_LARGE_READS_OF_ONE: usize = 4;

/// What arrived as a request. A broken one is reported, so that it can be counted against the peer that sent it.
#[derive(Debug)]
pub(super) enum Arrived<T> {
    /// A decoded message, and how many bytes it had.
    Whole(T, usize),
    /// Something else: too long, or no message of this protocol.
    Broken,
}

impl<T> Arrived<T> {
    /// One that is sent.
    pub(super) fn of(message: T) -> Arrived<T> {
        Arrived::Whole(message, 0)
    }
}

/// Values that are sent: encoded with postcard, unless the type has its own encoding.
pub(super) trait Wire: Sized + Send + Sync {
    /// Whether they are packed.
    const PACKED: bool = false;
    /// The encoded bytes.
    fn write(&self) -> Result<Vec<u8>, postcard::Error>;
    /// The value, if the bytes are one.
    fn read(bytes: &[u8]) -> Option<Self>;
}

/// Implements [`Wire`] by postcard for the types that are named.
macro_rules! wire {
    ($packed:literal: $($type:ty),*) => { $(
        impl Wire for $type {
            const PACKED: bool = $packed;

            fn write(&self) -> Result<Vec<u8>, postcard::Error> {
                postcard::to_stdvec(self)
            }

            fn read(bytes: &[u8]) -> Option<Self> {
                postcard::from_bytes(bytes).ok()
            }
        }
    )* };
}

wire!(true: nearcrawl_model::message::Request, nearcrawl_model::message::Response);
wire!(false: nearcrawl_model::message::PublicRequest, nearcrawl_model::message::PublicResponse);
wire!(false: super::dial_back::DialBack, super::dial_back::DialedBack);

impl Wire for super::hello::Hello {
    fn write(&self) -> Result<Vec<u8>, postcard::Error> {
        Ok([postcard::to_stdvec(self)?, self.rest()?].concat())
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        super::hello::read_hello(bytes)
    }
}

impl Wire for super::hello::HelloAnswer {
    fn write(&self) -> Result<Vec<u8>, postcard::Error> {
        Ok([postcard::to_stdvec(self)?, self.rest()?].concat())
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        super::hello::read_answer(bytes)
    }
}

/// Questions `Q` and answers `A`, each at most `largest` bytes.
pub(super) struct MessageCodec<Q, A> {
    largest: u64,
    large_reads: Arc<Semaphore>,
    /// Those of the connection that this codec is for; none if it is the one that all of them are cloned from.
    of_connection: Option<Arc<Semaphore>>,
    messages: PhantomData<fn() -> (Q, A)>,
}

/// libp2p clones the codec for each connection, and that clone for each stream.
impl<Q, A> Clone for MessageCodec<Q, A> {
    fn clone(&self) -> Self {
        let of_connection = self.of_connection.clone().unwrap_or_else(|| Arc::new(Semaphore::new(MAX_LARGE_READS_OF_ONE)));
        MessageCodec {
            largest: self.largest,
            large_reads: self.large_reads.clone(),
            of_connection: Some(of_connection),
            messages: PhantomData,
        }
    }
}

impl<Q, A> MessageCodec<Q, A> {
    /// A codec for messages of at most `largest` bytes.
    pub(super) fn new(largest: usize) -> Self {
        let large_reads = Arc::new(Semaphore::new(MAX_LARGE_READS));
        MessageCodec { largest: largest as u64, large_reads, of_connection: None, messages: PhantomData }
    }

    /// Reads up to the end; none if there is more than allowed.
    async fn read<T: AsyncRead + Unpin + Send>(&self, io: &mut T) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let first = SMALL.min(self.largest);
        (&mut *io).take(first + 1).read_to_end(&mut bytes).await?;
        if bytes.len() as u64 > first && self.largest > first {
            let _turn = match &self.of_connection {
                Some(of_connection) => Some(of_connection.acquire().await.map_err(closed)?),
                None => None,
            };
            let _room = self.large_reads.acquire().await.map_err(closed)?;
            (&mut *io).take(self.largest - first).read_to_end(&mut bytes).await?;
        }
        Ok((bytes.len() as u64 <= self.largest).then_some(bytes))
    }

    /// Writes a message, if it is small enough.
    async fn write<M: Wire, T: AsyncWrite + Unpin + Send>(&self, io: &mut T, message: &M) -> io::Result<()> {
        let bytes = message.write().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        if bytes.len() as u64 > self.largest_of::<M>() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} bytes are more than the largest message", bytes.len())));
        }
        io.write_all(&if M::PACKED { pack(&bytes) } else { bytes }).await
    }

    /// How long a message may be when it is not packed: one that cannot be packed takes a byte more.
    fn largest_of<M: Wire>(&self) -> u64 {
        self.largest.saturating_sub(u64::from(M::PACKED))
    }

    /// The message that arrived, if it is one. A large one takes the room of one although it was small on its way.
    async fn decode<M: Wire>(&self, bytes: &[u8]) -> io::Result<Option<M>> {
        if !M::PACKED {
            return Ok(M::read(bytes));
        }
        let Ok(len) = unpacked_len(bytes) else { return Ok(None) };
        let _room = if len as u64 > SMALL { Some(self.large_reads.acquire().await.map_err(closed)?) } else { None };
        let message = unpack(bytes, usize::try_from(self.largest_of::<M>()).unwrap_or(usize::MAX));
        Ok(message.ok().and_then(|message| M::read(&message)))
    }
}

fn closed(_: AcquireError) -> io::Error {
    io::Error::other("no more messages are read")
}

impl<Q: Wire + 'static, A: Wire + 'static> request_response::Codec for MessageCodec<Q, A> {
    type Protocol = StreamProtocol;
    type Request = Arrived<Q>;
    type Response = A;

    async fn read_request<T: AsyncRead + Unpin + Send>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Arrived<Q>> {
        let Some(bytes) = self.read(io).await? else { return Ok(Arrived::Broken) };
        Ok(self.decode(&bytes).await?.map_or(Arrived::Broken, |message| Arrived::Whole(message, bytes.len())))
    }

    async fn read_response<T: AsyncRead + Unpin + Send>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<A> {
        let Some(bytes) = self.read(io).await? else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is longer than allowed"));
        };
        if bytes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the peer did not answer"));
        }
        self.decode(&bytes).await?.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer cannot be decoded"))
    }

    async fn write_request<T: AsyncWrite + Unpin + Send>(&mut self, _: &StreamProtocol, io: &mut T, request: Arrived<Q>) -> io::Result<()> {
        match request {
            Arrived::Whole(message, _) => self.write(io, &message).await,
            Arrived::Broken => Err(io::Error::new(io::ErrorKind::InvalidInput, "a broken request is not sent")),
        }
    }

    async fn write_response<T: AsyncWrite + Unpin + Send>(&mut self, _: &StreamProtocol, io: &mut T, response: A) -> io::Result<()> {
        self.write(io, &response).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libp2p::{futures::io::Cursor, request_response::Codec};
    use nearcrawl_model::message::Request;

    const PROTOCOL: StreamProtocol = StreamProtocol::new("/test/1");

    fn codec(largest: usize) -> MessageCodec<Request, nearcrawl_model::message::Response> {
        MessageCodec::new(largest)
    }

    /// Bytes of which no packer makes fewer (xorshift64).
    fn noise(size: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..size).map(|_| next()).collect()
    }

    #[tokio::test]
    async fn a_message_comes_out_as_it_went_in_up_to_the_limit() {
        for size in [0, 100, 65_000, 65_532, 65_533, 65_534, 200_000] {
            let mut wire = Vec::new();
            codec(1 << 20).write_request(&PROTOCOL, &mut wire, Arrived::of(Request::Swim(noise(size)))).await.unwrap();
            let largest = wire.len();
            assert!(largest > size, "what cannot be packed is sent as it is, with a byte that says so");
            let read = codec(largest).read_request(&PROTOCOL, &mut Cursor::new(&wire)).await.unwrap();
            assert!(matches!(read, Arrived::Whole(Request::Swim(bytes), length) if bytes.len() == size && length == largest), "{size}");
            let read = codec(largest - 1).read_request(&PROTOCOL, &mut Cursor::new(&wire)).await.unwrap();
            assert!(matches!(read, Arrived::Broken), "{size}: one byte more than allowed");
        }
    }

    #[tokio::test]
    async fn a_message_that_is_small_only_on_its_way_is_broken_if_it_is_too_long() {
        let mut wire = Vec::new();
        codec(1 << 20).write_request(&PROTOCOL, &mut wire, Arrived::of(Request::Swim(vec![7; 300_000]))).await.unwrap();
        assert!(wire.len() < 1_000);
        let read = codec(1 << 20).read_request(&PROTOCOL, &mut Cursor::new(&wire)).await.unwrap();
        assert!(matches!(read, Arrived::Whole(Request::Swim(bytes), _) if bytes == vec![7; 300_000]));
        let read = codec(299_999).read_request(&PROTOCOL, &mut Cursor::new(&wire)).await.unwrap();
        assert!(matches!(read, Arrived::Broken));
    }

    #[tokio::test]
    async fn nonsense_is_broken_and_too_long_is_not_sent() {
        let read = codec(100).read_request(&PROTOCOL, &mut Cursor::new([0xff; 50])).await.unwrap();
        assert!(matches!(read, Arrived::Broken));
        let mut wire = Vec::new();
        assert!(codec(100).write_request(&PROTOCOL, &mut wire, Arrived::of(Request::Swim(vec![7; 101]))).await.is_err());
        assert!(wire.is_empty());
    }
}
