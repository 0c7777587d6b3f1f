//! How many bytes go to and from members? Counted at TCP's sockets; of QUIC, whose packets are out of sight, at its streams. What headers and
//! acknowledgements add is an estimate in both.

use libp2p::{
    core::muxing::{StreamMuxer, StreamMuxerBox, StreamMuxerEvent, SubstreamBox},
    futures::{AsyncRead, AsyncWrite},
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

/// What a packet carries, and what its headers and its share of the acknowledgements take besides, in bytes.
const PACKET: u64 = 1_400;
const PER_PACKET: u64 = 78;

/// What a connection costs besides: TCP's handshake and end; QUIC's, whose keys are proven within it.
const PER_TCP: u64 = 400;
const PER_QUIC: u64 = 5_000;

/// The bytes of all connections with members, and whether they are spent. Clones of its `Arc` are the same.
#[derive(Debug, Default)]
pub struct SwarmMeter {
    moved: AtomicU64,
    is_spent: AtomicBool,
}

impl SwarmMeter {
    /// Bytes since the start, with what lower layers add by estimate.
    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// The operator's limit is reached, or is not any more.
    pub fn spend(&self, is_spent: bool) {
        self.is_spent.store(is_spent, Ordering::Relaxed);
    }

    /// Whether nothing large is to be sent to members.
    pub fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    /// So many bytes came or went.
    pub(crate) fn count(&self, bytes: usize) {
        let bytes = bytes as u64;
        if bytes > 0 {
            self.moved.fetch_add(bytes + bytes.div_ceil(PACKET) * PER_PACKET, Ordering::Relaxed);
        }
    }

    fn count_polled(&self, polled: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = polled {
            self.count(*bytes);
        }
    }
}

/// A stream whose bytes are counted.
pub(super) struct Metered<S> {
    stream: S,
    meter: Arc<SwarmMeter>,
}

impl<S> Metered<S> {
    /// A TCP connection that stands.
    pub(super) fn tcp(stream: S, meter: &Arc<SwarmMeter>) -> Metered<S> {
        meter.moved.fetch_add(PER_TCP, Ordering::Relaxed);
        Metered { stream, meter: Arc::clone(meter) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.meter.count_polled(&polled);
        polled
    }

    fn poll_read_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffers: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_read_vectored(cx, buffers);
        self.meter.count_polled(&polled);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.meter.count_polled(&polled);
        polled
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffers: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.meter.count_polled(&polled);
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}

/// A QUIC connection whose streams are counted.
pub(super) struct MeteredStreams {
    connection: StreamMuxerBox,
    meter: Arc<SwarmMeter>,
}

impl MeteredStreams {
    /// A connection that stands.
    pub(super) fn quic(connection: StreamMuxerBox, meter: &Arc<SwarmMeter>) -> MeteredStreams {
        meter.moved.fetch_add(PER_QUIC, Ordering::Relaxed);
        MeteredStreams { connection, meter: Arc::clone(meter) }
    }

    fn metered<E>(&self, polled: Poll<Result<SubstreamBox, E>>) -> Poll<Result<Metered<SubstreamBox>, E>> {
        polled.map_ok(|stream| Metered { stream, meter: Arc::clone(&self.meter) })
    }
}

impl StreamMuxer for MeteredStreams {
    type Substream = Metered<SubstreamBox>;
    type Error = <StreamMuxerBox as StreamMuxer>::Error;

    fn poll_inbound(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Self::Substream, Self::Error>> {
        let polled = Pin::new(&mut self.connection).poll_inbound(cx);
        self.metered(polled)
    }

    fn poll_outbound(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Self::Substream, Self::Error>> {
        let polled = Pin::new(&mut self.connection).poll_outbound(cx);
        self.metered(polled)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Pin::new(&mut self.connection).poll_close(cx)
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<StreamMuxerEvent, Self::Error>> {
        Pin::new(&mut self.connection).poll(cx)
    }
}
