//! Yamux with a single measurement of the round-trip time for each connection.
//!
//! Yamux pings every ten seconds on each side of a connection on which anything is sent, to size its receive windows, and cannot be told not
//! to. Among idle members that is a quarter of all packets, and more in larger swarms. Here the first ping of each side is sent and every
//! later one is dropped: Yamux goes on waiting for its answer, sends no further one, and keeps the first measurement.

use libp2p::{
    core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade, UpgradeInfo},
    futures::{AsyncRead, AsyncWrite},
    yamux,
};
use std::{
    io::{self, IoSliceMut},
    pin::Pin,
    task::{Context, Poll, ready},
};

/// The length of a frame's header: version, type, flags (2 bytes), stream (4), length of the body or number of the ping (4).
const HEADER: usize = 12;

/// Types of frames.
const DATA: u8 = 0;
const PING: u8 = 2;

/// The flag of a ping that asks.
const SYN: u16 = 1;

/// The configuration of such connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Config(yamux::Config);

impl UpgradeInfo for Config {
    type Info = <yamux::Config as UpgradeInfo>::Info;
    type InfoIter = <yamux::Config as UpgradeInfo>::InfoIter;

    fn protocol_info(&self) -> Self::InfoIter {
        self.0.protocol_info()
    }
}

impl<C: AsyncRead + AsyncWrite + Send + Unpin + 'static> InboundConnectionUpgrade<C> for Config {
    type Output = yamux::Muxer<SinglePing<C>>;
    type Error = io::Error;
    type Future = <yamux::Config as InboundConnectionUpgrade<SinglePing<C>>>::Future;

    fn upgrade_inbound(self, io: C, info: Self::Info) -> Self::Future {
        self.0.upgrade_inbound(SinglePing::new(io), info)
    }
}

impl<C: AsyncRead + AsyncWrite + Send + Unpin + 'static> OutboundConnectionUpgrade<C> for Config {
    type Output = yamux::Muxer<SinglePing<C>>;
    type Error = io::Error;
    type Future = <yamux::Config as OutboundConnectionUpgrade<SinglePing<C>>>::Future;

    fn upgrade_outbound(self, io: C, info: Self::Info) -> Self::Future {
        self.0.upgrade_outbound(SinglePing::new(io), info)
    }
}

/// A connection below Yamux that lets one ping through. What is read is passed on as it is.
#[derive(Debug)]
pub(super) struct SinglePing<C> {
    connection: C,
    outgoing: Outgoing,
    /// A header that was let through and is not written yet.
    held: Vec<u8>,
}

/// Where in the outgoing frames the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outgoing {
    /// So much of a header is known; whether a ping was let through.
    Header { bytes: [u8; HEADER], known: usize, pinged: bool },
    /// So much of a body is left.
    Body { left: u64, pinged: bool },
    /// A second ping was dropped: there will be no third one, and frames need not be looked at.
    Anything,
}

impl Outgoing {
    fn frame(pinged: bool) -> Outgoing {
        Outgoing::Header { bytes: [0; HEADER], known: 0, pinged }
    }
}

impl<C> SinglePing<C> {
    fn new(connection: C) -> SinglePing<C> {
        SinglePing { connection, outgoing: Outgoing::frame(false), held: Vec::new() }
    }

    /// A header is whole: is it written, and what follows it?
    fn judge(&mut self, bytes: [u8; HEADER], pinged: bool) {
        let [_, kind, f0, f1, _, _, _, _, l0, l1, l2, l3] = bytes;
        let asks = kind == PING && u16::from_be_bytes([f0, f1]) & SYN != 0;
        if asks && pinged {
            self.outgoing = Outgoing::Anything;
            return;
        }
        self.held.extend(bytes);
        let body = if kind == DATA { u32::from_be_bytes([l0, l1, l2, l3]) } else { 0 };
        let pinged = pinged || asks;
        self.outgoing = if body > 0 { Outgoing::Body { left: body.into(), pinged } } else { Outgoing::frame(pinged) };
    }
}

impl<C: AsyncWrite + Unpin> SinglePing<C> {
    fn write_held(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let written = ready!(Pin::new(&mut self.connection).poll_write(cx, &self.held))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.held.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for SinglePing<C> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_read(cx, buffer)
    }

    fn poll_read_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffers: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_read_vectored(cx, buffers)
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for SinglePing<C> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.write_held(cx))?;
        match self.outgoing {
            Outgoing::Header { bytes: mut header, known, pinged } => {
                let taken = bytes.len().min(HEADER - known);
                header[known..known + taken].copy_from_slice(&bytes[..taken]);
                if known + taken == HEADER {
                    self.judge(header, pinged);
                } else {
                    self.outgoing = Outgoing::Header { bytes: header, known: known + taken, pinged };
                }
                Poll::Ready(Ok(taken))
            }
            Outgoing::Body { left, pinged } => {
                let most = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let written = ready!(Pin::new(&mut self.connection).poll_write(cx, &bytes[..most]))?;
                let left = left.saturating_sub(written as u64);
                self.outgoing = if left > 0 { Outgoing::Body { left, pinged } } else { Outgoing::frame(pinged) };
                Poll::Ready(Ok(written))
            }
            Outgoing::Anything => Pin::new(&mut self.connection).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_held(cx))?;
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_held(cx))?;
        Pin::new(&mut self.connection).poll_close(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libp2p::futures::{AsyncWriteExt, executor::block_on, io::Cursor};

    fn frame(kind: u8, flags: u16, number: u32, body: &[u8]) -> Vec<u8> {
        [&[0, kind][..], &flags.to_be_bytes(), &7_u32.to_be_bytes(), &number.to_be_bytes(), body].concat()
    }

    fn data(body: &[u8]) -> Vec<u8> {
        frame(DATA, 0, body.len() as u32, body)
    }

    /// What comes out if the frames are written in pieces of this size.
    fn written(frames: &[Vec<u8>], piece: usize) -> Vec<u8> {
        let mut connection = SinglePing::new(Cursor::new(Vec::new()));
        for part in frames.concat().chunks(piece) {
            block_on(connection.write_all(part)).unwrap();
        }
        block_on(connection.flush()).unwrap();
        connection.connection.into_inner()
    }

    #[test]
    fn one_ping_goes_out_and_everything_else_as_it_is() {
        // Bodies and answers that look like pings are none.
        let lookalike = data(&frame(PING, SYN, 9, &[]));
        let answer = frame(PING, 2, 0, &[]);
        let ping = |number| frame(PING, SYN, number, &[]);
        let frames =
            [data(b"a"), ping(0), lookalike.clone(), answer.clone(), frame(1, 0, 1 << 18, &[]), ping(1), data(b"bc"), answer, lookalike];
        let without_the_second: Vec<_> = frames.iter().filter(|frame| **frame != ping(1)).cloned().collect();
        for piece in [1, 5, HEADER, 13, 1_000] {
            assert_eq!(written(&frames, piece), without_the_second.concat(), "pieces of {piece}");
        }
    }
}
