//! Measures how many bytes a second come from a member.
//!
//! Pieces of the hierarchy's file, which every member has, are fetched from it and discarded.

use crate::node::{
    query::MeasureError,
    transfers::{
        peer_transfers::{self, PeerQuestion},
        snapshot_transfer::manifest_of,
    },
};
use futures::{StreamExt, stream};
use nearcrawl_hierarchy::CHUNK_LENGTH;
use nearcrawl_model::{
    access_point::AccessPoint,
    edition::Edition,
    message::{Request, Response},
    time::Millis,
    view::MeasuredTransfer,
};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout_at},
};

/// Bytes that one measurement fetches at most: what a slow connection brings in [`WITHIN`], and little of a day's budget.
pub const MAX_BYTES: u64 = 4 << 20;

/// For how long it goes on, less than who asks waits.
const WITHIN: Duration = Duration::from_secs(8);

/// Pieces under way at once, as when an edition is fetched.
const PIECES_AT_ONCE: usize = 4;

/// From the beginning of one question to that of the next: half of the rate at which a member answers another, so that nothing else that is
/// asked of it is refused for this.
const BETWEEN: Duration = Duration::from_millis(20);

/// Fetches as many whole pieces from a member, round and round, as have `bytes` together. `is_relayed`: whether it is reached through a third one.
pub async fn measure(
    asking: mpsc::Sender<PeerQuestion>,
    edition: Edition,
    of: AccessPoint,
    is_relayed: bool,
    bytes: u64,
) -> Result<MeasuredTransfer, MeasureError> {
    let began = Instant::now();
    let until = began + WITHIN;
    let asked = timeout_at(until, manifest_of(&asking, of, &edition)).await;
    let manifest = asked.ok().and_then(|told| told.manifest()).ok_or(MeasureError::NoFile)?;
    let (id, whole) = (manifest.id(), manifest.length() / CHUNK_LENGTH as u64);
    if whole == 0 {
        return Err(MeasureError::TooSmall(manifest.length()));
    }
    let pieces = usize::try_from(bytes.min(MAX_BYTES).div_ceil(CHUNK_LENGTH as u64)).unwrap_or(usize::MAX);
    let first = Instant::now();
    let (asking, asked) = (&asking, &AtomicU64::new(0));
    let mut questions = (0..whole).cycle().take(pieces).zip(0_u32..).map(|(index, turn)| async move {
        sleep_until(first + BETWEEN * turn).await;
        asked.fetch_add(1, Ordering::Relaxed);
        (index as usize, peer_transfers::ask(asking, of, Request::HierarchyChunk { manifest: id, index: index as u32 }).await)
    });
    // The first one alone: of several that share a slow line none would be whole in time.
    let alone = stream::iter(questions.next()).buffer_unordered(1);
    let mut answers = std::pin::pin!(alone.chain(stream::iter(questions).buffer_unordered(PIECES_AT_ONCE)));
    let (mut came, mut good) = (0, 0);
    while let Ok(Some((index, answer))) = timeout_at(until, answers.next()).await {
        match answer {
            Some(Response::HierarchyChunk(Some(piece))) if manifest.accepts(index, &piece) => {
                (came, good) = (came + piece.len() as u64, good + 1)
            }
            Some(Response::HierarchyChunk(Some(_))) => return Err(MeasureError::WrongBytes),
            Some(Response::HierarchyChunk(None)) => return Err(MeasureError::Gone),
            _ => {}
        }
    }
    let unanswered = asked.load(Ordering::Relaxed).saturating_sub(good);
    let took_ms = Millis::try_from(began.elapsed().as_millis()).unwrap_or(Millis::MAX);
    let (direct_bytes, relayed_bytes) = if is_relayed { (0, came) } else { (came, 0) };
    Ok(MeasuredTransfer { access_point: of, direct_bytes, relayed_bytes, took_ms, unanswered })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_hierarchy::Manifest;

    const EDITION: Edition = Edition { hash: [3; 32], built: 20_260_701 };

    /// A member that has a file of two whole pieces and a part of one, and answers what `answers` makes of the right answer.
    async fn measured(bytes: u64, answers: impl Fn(Response) -> Option<Response>) -> Result<MeasuredTransfer, MeasureError> {
        with_file(2 * CHUNK_LENGTH + 1_000, bytes, answers).await
    }

    async fn with_file(
        length: usize,
        bytes: u64,
        answers: impl Fn(Response) -> Option<Response>,
    ) -> Result<MeasuredTransfer, MeasureError> {
        let file: Vec<u8> = (0..length).map(|at| (at / 999) as u8).collect();
        let manifest = Manifest::of(EDITION.hash, &file);
        let (asking, mut asked) = mpsc::channel::<PeerQuestion>(4);
        let measuring = tokio::spawn(measure(asking, EDITION, AccessPoint([7; 32]), true, bytes));
        while let Some(PeerQuestion { request, reply, .. }) = asked.recv().await {
            let right = match request {
                Request::HierarchyManifest(_) => Response::HierarchyManifest(postcard::to_stdvec(&manifest).ok()),
                Request::HierarchyChunk { index, .. } => {
                    Response::HierarchyChunk(Manifest::chunk(&file, index as usize).map(<[u8]>::to_vec))
                }
                _ => panic!("{request:?}"),
            };
            drop(reply.send(answers(right)));
        }
        measuring.await.unwrap()
    }

    #[tokio::test]
    async fn pieces_come_round_and_round_until_there_are_enough() {
        let got = measured(1 << 20, Some).await.unwrap();
        assert_eq!(got.relayed_bytes, 1 << 20);
        assert_eq!((got.direct_bytes, got.unanswered, got.access_point), (0, 0, AccessPoint([7; 32])));
        assert_eq!(with_file(CHUNK_LENGTH - 1, 1 << 20, Some).await, Err(MeasureError::TooSmall(CHUNK_LENGTH as u64 - 1)));
        let most = measured(u64::MAX, Some).await.unwrap();
        assert_eq!(most.bytes(), MAX_BYTES);
    }

    #[tokio::test]
    async fn a_member_that_lies_or_is_silent_gives_no_bytes() {
        let wrong = |right| match right {
            Response::HierarchyChunk(Some(mut piece)) => {
                piece[5] ^= 1;
                Some(Response::HierarchyChunk(Some(piece)))
            }
            right => Some(right),
        };
        assert_eq!(measured(1 << 20, wrong).await, Err(MeasureError::WrongBytes));
        assert_eq!(measured(1 << 20, |_| None).await, Err(MeasureError::NoFile));
        assert_eq!(measured(1 << 20, |_| Some(Response::HierarchyManifest(None))).await, Err(MeasureError::NoFile));
        let gone = |right| match right {
            Response::HierarchyChunk(_) => Some(Response::HierarchyChunk(None)),
            right => Some(right),
        };
        assert_eq!(measured(1 << 20, gone).await, Err(MeasureError::Gone));
        let only_the_manifest = |right| matches!(right, Response::HierarchyManifest(_)).then_some(right);
        let got = measured(1 << 20, only_the_manifest).await.unwrap();
        assert_eq!((got.bytes(), got.unanswered), (0, 4));
    }
}
