//! Reads bodies within limits of time and size.

use super::{
    buffers::{Buffers, LARGE},
    decode::Decoder,
    limits::FetchLimits,
    pace::Deadline,
};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use nearcrawl_model::fetch::FetchError;
use std::{
    error::Error as _,
    io,
    time::{Duration, Instant},
};
use tokio::sync::SemaphorePermit;

/// What reading a body came to.
pub struct BodyRead<'a> {
    /// Bytes as they came over the wire, without the framing of chunks.
    pub wire_bytes: u64,
    /// The unpacked body, or why there is none.
    pub bytes: Result<Vec<u8>, FetchError>,
    /// Whether the body was read to its end, so that the connection may carry another request.
    pub to_the_end: bool,
    /// The right to hold the body, if it is large.
    pub permit: Option<SemaphorePermit<'a>>,
}

/// Longer than any deadline.
const LONG: Duration = Duration::from_secs(86_400);

/// How much of a body is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of it; longer than this over the wire is a failure.
    Whole(u64),
    /// The first this many bytes, unpacked; the rest is cut off.
    Beginning(u64),
}

/// The number of pieces of a body whose size is not checked, however small they are.
const FREE_PIECES: u64 = 8192;

/// Bytes that pieces must have on average beyond that. A chunk costs its sender six bytes and us a walk through the whole machinery:
/// eight million bytes one by one would keep a core busy for seconds.
const MIN_PIECE: u64 = 16;

/// Reads a body through `decoder`, and asks `buffers` before it becomes large. `sent` is when the request was sent, `deadline` when everything must be over.
pub async fn read<'a>(
    mut body: Incoming,
    mut decoder: Decoder,
    wanted: Wanted,
    (limits, buffers): (&FetchLimits, &'a Buffers),
    sent: Instant,
    deadline: &Deadline,
) -> BodyRead<'a> {
    let (mut wire_bytes, mut pieces) = (0u64, 0u64);
    let failed = |wire_bytes, failure| BodyRead { wire_bytes, bytes: Err(failure), to_the_end: false, permit: None };
    let mut permit = None;
    if let Wanted::Whole(most) = wanted
        && body.size_hint().lower() > most
    {
        return failed(0, FetchError::BodyTooLarge);
    }
    loop {
        let piece = match deadline.within(limits.read_idle, body.frame()).await {
            None => return failed(wire_bytes, FetchError::BodyTimeout),
            Some(None) => break,
            Some(Some(Err(error))) => return failed(wire_bytes, body_failure(&error)),
            Some(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        wire_bytes += piece.len() as u64;
        pieces += 1;
        if pieces > FREE_PIECES && wire_bytes < pieces * MIN_PIECE {
            return failed(wire_bytes, FetchError::BodyTooLarge);
        }
        if let Wanted::Whole(most) = wanted
            && wire_bytes > most
        {
            return failed(wire_bytes, FetchError::BodyTooLarge);
        }
        match (decoder.push(&piece).await, wanted) {
            (Ok(()), _) => {}
            // The decoder's limit is where the beginning ends.
            (Err(FetchError::DecodedTooLarge), Wanted::Beginning(_)) => {
                return BodyRead { wire_bytes, bytes: Ok(decoder.into_bytes()), to_the_end: false, permit };
            }
            (Err(failure), _) => return failed(wire_bytes, failure),
        }
        if permit.is_none() && decoder.decoded() > LARGE {
            permit = turn(buffers, deadline).await;
            if permit.is_none() {
                return failed(wire_bytes, FetchError::BodyTimeout);
            }
        }
        let elapsed = sent.elapsed().saturating_sub(deadline.waited());
        if elapsed > limits.slow_start && (wire_bytes as f64) < limits.min_rate as f64 * elapsed.as_secs_f64() && !body.is_end_stream() {
            return failed(wire_bytes, FetchError::BodyTimeout);
        }
    }
    match (decoder.finish().await, wanted) {
        (Err(FetchError::DecodedTooLarge), Wanted::Whole(_)) => failed(wire_bytes, FetchError::DecodedTooLarge),
        (bytes, _) => BodyRead { wire_bytes, bytes, to_the_end: true, permit },
    }
}

/// The right to hold a large body. Where bodies come slowly by our own limit, so do those that hold it now: it is waited for as long as they take.
async fn turn<'a>(buffers: &'a Buffers, deadline: &Deadline) -> Option<SemaphorePermit<'a>> {
    if deadline.waited().is_zero() { deadline.within(LONG, buffers.large()).await.flatten() } else { deadline.aside(buffers.large()).await }
}

/// Reads an unwanted body away if it is small and comes at once. Says how much came, and whether that was all.
pub async fn drain(mut body: Incoming, limits: &FetchLimits, deadline: &Deadline) -> (u64, bool) {
    let mut wire_bytes = 0u64;
    if body.size_hint().lower() > limits.drain_bytes {
        return (0, false);
    }
    let draining = async {
        while wire_bytes <= limits.drain_bytes {
            match body.frame().await {
                None => return true,
                Some(Ok(frame)) => wire_bytes += frame.data_ref().map_or(0, |data| data.len() as u64),
                Some(Err(_)) => return false,
            }
        }
        false
    };
    let to_the_end = deadline.within(limits.drain, draining).await.unwrap_or(false);
    (wire_bytes, to_the_end)
}

/// A body that breaks off was closed by the server; one whose framing is wrong is not HTTP.
fn body_failure(error: &hyper::Error) -> FetchError {
    match io_kind(error) {
        Some(io::ErrorKind::FileTooLarge) => FetchError::BodyTooLarge,
        Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => FetchError::NotHttp,
        _ => FetchError::Closed,
    }
}

/// The kind of the I/O error at the root of a hyper error.
pub fn io_kind(error: &hyper::Error) -> Option<io::ErrorKind> {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        source = inner.source();
    }
    None
}
