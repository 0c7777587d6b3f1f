//! Decodes the content encoding of a body: one layer, piece by piece, with limits against decompression bombs.

use super::limits::FetchLimits;
use async_compression::{
    tokio::write::{BrotliDecoder, DeflateDecoder, GzipDecoder, ZstdDecoder},
    zstd::DParameter,
};
use nearcrawl_model::fetch::FetchError;
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The value of the `Accept-Encoding` header.
pub const ACCEPTED: &str = "gzip, deflate, br, zstd";

/// RFC 9659: no larger zstd window than 8 MiB over HTTP.
const ZSTD_WINDOW_LOG: u32 = 23;

/// The content encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The body is not compressed.
    Identity,
    /// gzip (RFC 1952).
    Gzip,
    /// RFC 1950, or the bare RFC 1951 that some servers send under this name.
    Deflate,
    /// Brotli (RFC 7932).
    Brotli,
    /// Zstandard (RFC 8878).
    Zstd,
}

impl Encoding {
    /// Reads the values of `Content-Encoding`. More than one layer is refused: only decompression bombs use it.
    pub fn read<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<Encoding, FetchError> {
        let mut found = Encoding::Identity;
        for value in values {
            for name in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                let next = match name.to_ascii_lowercase().as_slice() {
                    b"" | b"identity" => continue,
                    b"gzip" | b"x-gzip" => Encoding::Gzip,
                    b"deflate" => Encoding::Deflate,
                    b"br" => Encoding::Brotli,
                    b"zstd" => Encoding::Zstd,
                    _ => return Err(FetchError::BadEncoding),
                };
                if found != Encoding::Identity {
                    return Err(FetchError::BadEncoding);
                }
                found = next;
            }
        }
        Ok(found)
    }
}

/// Where the unpacked bytes go: a vector that refuses to grow beyond a limit.
struct Sink {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl AsyncWrite for Sink {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let room = self.limit - self.bytes.len();
        if room == 0 && !bytes.is_empty() {
            self.full = true;
            return Poll::Ready(Err(io::ErrorKind::FileTooLarge.into()));
        }
        let fits = room.min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..fits]);
        Poll::Ready(Ok(fits))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The unpacker in use. Boxed: they carry tables of many kilobytes, and most pages need none.
enum Unpacker {
    Identity(Sink),
    /// The first bytes are not here yet that tell zlib from bare deflate, or ordinary brotli from the large-window kind.
    Undecided(Sink, Vec<u8>),
    Gzip(Box<GzipDecoder<Sink>>),
    Deflate(Box<DeflateDecoder<Sink>>),
    Brotli(Box<BrotliDecoder<Sink>>),
    Zstd(Box<ZstdDecoder<Sink>>),
}

/// Unpacks a body as its pieces come.
pub struct Decoder {
    unpacker: Unpacker,
    encoding: Encoding,
    wire: u64,
    ended: bool,
    ratio: u64,
    ratio_from: u64,
}

impl Decoder {
    /// Unpacks into `buffer`, which is emptied before, at most `limit` bytes.
    pub fn new(encoding: Encoding, mut buffer: Vec<u8>, limit: u64, limits: &FetchLimits) -> Decoder {
        buffer.clear();
        let sink = Sink { bytes: buffer, limit: usize::try_from(limit).unwrap_or(usize::MAX), full: false };
        let unpacker = match encoding {
            Encoding::Identity => Unpacker::Identity(sink),
            _ => Unpacker::Undecided(sink, Vec::new()),
        };
        Decoder { unpacker, encoding, wire: 0, ended: false, ratio: limits.ratio, ratio_from: limits.ratio_from }
    }

    /// Takes the next piece. `DecodedTooLarge` when the limit or the ratio is passed, `BadEncoding` when it cannot be unpacked.
    pub async fn push(&mut self, piece: &[u8]) -> Result<(), FetchError> {
        self.wire += piece.len() as u64;
        // What stands behind the end of the packed data is padding.
        if self.ended || piece.is_empty() {
            return Ok(());
        }
        if let Unpacker::Undecided(sink, head) = &mut self.unpacker {
            head.extend_from_slice(piece);
            if head.len() < 2 {
                return Ok(());
            }
            let head = std::mem::take(head);
            let sink = std::mem::replace(sink, Sink { bytes: Vec::new(), limit: 0, full: false });
            let skipped = self.decide(sink, &head)?;
            return self.write(&head[skipped..]).await;
        }
        self.write(piece).await
    }

    /// Chooses the unpacker; says how many bytes of the head it must not see.
    fn decide(&mut self, sink: Sink, head: &[u8]) -> Result<usize, FetchError> {
        let is_zlib = head[0] & 0x0f == 8 && u16::from_be_bytes([head[0], head[1]]).is_multiple_of(31);
        // The large-window brotli of other protocols may ask for a gigabyte; RFC 7932 reserves its first bits.
        let is_large_window = head[0] & 0x7f == 0x11;
        let (unpacker, skipped) = match self.encoding {
            Encoding::Identity => (Unpacker::Identity(sink), 0),
            Encoding::Gzip => (Unpacker::Gzip(Box::new(GzipDecoder::new(sink))), 0),
            Encoding::Deflate => (Unpacker::Deflate(Box::new(DeflateDecoder::new(sink))), if is_zlib { 2 } else { 0 }),
            Encoding::Brotli if is_large_window => return Err(FetchError::BadEncoding),
            Encoding::Brotli => (Unpacker::Brotli(Box::new(BrotliDecoder::new(sink))), 0),
            Encoding::Zstd => {
                let window = [DParameter::window_log_max(ZSTD_WINDOW_LOG)];
                (Unpacker::Zstd(Box::new(ZstdDecoder::with_params(sink, &window))), 0)
            }
        };
        self.unpacker = unpacker;
        Ok(skipped)
    }

    async fn write(&mut self, piece: &[u8]) -> Result<(), FetchError> {
        let written = match &mut self.unpacker {
            Unpacker::Identity(sink) => sink.write_all(piece).await,
            Unpacker::Undecided(..) => Ok(()),
            Unpacker::Gzip(decoder) => decoder.write_all(piece).await,
            Unpacker::Deflate(decoder) => decoder.write_all(piece).await,
            Unpacker::Brotli(decoder) => decoder.write_all(piece).await,
            Unpacker::Zstd(decoder) => decoder.write_all(piece).await,
        };
        if written.is_err() {
            if self.sink().full {
                return Err(FetchError::DecodedTooLarge);
            }
            // Either the data is broken, or it is complete and something follows: only a complete one can be closed.
            self.end().await?;
            self.ended = true;
        }
        let decoded = self.sink().bytes.len() as u64;
        let is_bomb = self.encoding != Encoding::Identity && decoded > self.ratio_from && decoded / self.ratio.max(1) > self.wire;
        if is_bomb { Err(FetchError::DecodedTooLarge) } else { Ok(()) }
    }

    async fn end(&mut self) -> Result<(), FetchError> {
        let ended = match &mut self.unpacker {
            Unpacker::Identity(_) => Ok(()),
            // An empty body is nothing, however it is said to be packed; a single byte is broken.
            Unpacker::Undecided(_, head) if head.is_empty() => Ok(()),
            Unpacker::Undecided(..) => Err(io::ErrorKind::UnexpectedEof.into()),
            Unpacker::Gzip(decoder) => decoder.shutdown().await,
            Unpacker::Deflate(decoder) => decoder.shutdown().await,
            Unpacker::Brotli(decoder) => decoder.shutdown().await,
            Unpacker::Zstd(decoder) => decoder.shutdown().await,
        };
        match ended {
            Ok(()) => Ok(()),
            Err(_) if self.sink().full => Err(FetchError::DecodedTooLarge),
            Err(_) => Err(FetchError::BadEncoding),
        }
    }

    /// The whole body was pushed: what did it say?
    pub async fn finish(mut self) -> Result<Vec<u8>, FetchError> {
        if !self.ended {
            self.end().await?;
        }
        Ok(self.into_bytes())
    }

    /// What is unpacked up to now, for a body that is cut.
    pub fn into_bytes(self) -> Vec<u8> {
        match self.unpacker {
            Unpacker::Identity(sink) | Unpacker::Undecided(sink, _) => sink.bytes,
            Unpacker::Gzip(decoder) => decoder.into_inner().bytes,
            Unpacker::Deflate(decoder) => decoder.into_inner().bytes,
            Unpacker::Brotli(decoder) => decoder.into_inner().bytes,
            Unpacker::Zstd(decoder) => decoder.into_inner().bytes,
        }
    }

    /// Number of decoded bytes so far.
    pub fn decoded(&self) -> usize {
        self.sink().bytes.len()
    }

    fn sink(&self) -> &Sink {
        match &self.unpacker {
            Unpacker::Identity(sink) | Unpacker::Undecided(sink, _) => sink,
            Unpacker::Gzip(decoder) => decoder.get_ref(),
            Unpacker::Deflate(decoder) => decoder.get_ref(),
            Unpacker::Brotli(decoder) => decoder.get_ref(),
            Unpacker::Zstd(decoder) => decoder.get_ref(),
        }
    }
}
