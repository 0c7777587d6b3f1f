//! Answers readers' requests for pages and links.
//!
//! Their owner reads its journals a piece at a time, beside the loop, and not faster than it may.

use crate::io::store::{Store, StoreError};
use nearcrawl_core::report::journal_rows::{ExportOrder, JournalRows};
use nearcrawl_model::exported::{ExportPlace, ExportedRows};
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;

/// Answers to readers that are read from journals at once.
pub const MAX_AT_ONCE: usize = 2;

/// Journals are read in pieces of this size.
const PIECE: usize = 256 << 10;

/// Bytes of journals that are read in a second for each of the answers under way.
const BYTES_PER_SECOND: usize = 16 << 20;

/// Reads what is wanted from our journals. The turn ends when so much may be read again.
pub async fn own(store: Store, order: Box<ExportOrder>, turn: OwnedSemaphorePermit) -> Result<ExportedRows, String> {
    let begun = Instant::now();
    let (rows, bytes) = read(&store, &order).await.map_err(|why| format!("the journals cannot be read: {why}"))?;
    let rest = Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND as f64).saturating_sub(begun.elapsed());
    tokio::spawn(async move {
        tokio::time::sleep(rest).await;
        drop(turn);
    });
    Ok(rows)
}

/// As many rows as one answer takes, and how many bytes of journals were read for them.
pub async fn read(store: &Store, order: &ExportOrder) -> Result<(ExportedRows, usize), StoreError> {
    let (mut answer, mut bytes) = (JournalRows::new(order), 0);
    for journal in &order.journals {
        answer.begin(journal);
        let mut next = journal.from;
        'journal: loop {
            let piece = store.journal_read(journal.key.clone(), next, PIECE).await?;
            let before = next;
            for row in piece {
                // What follows a gap or a row that cannot be read cannot be stood on.
                let Ok(entry) = postcard::from_bytes(&row.entry) else { break 'journal };
                if row.sequence != next {
                    break 'journal;
                }
                bytes += row.entry.len();
                if let Some(place) = answer.take(journal, next, row.entry.len(), entry) {
                    return Ok((answer.answer(Some(place)), bytes));
                }
                next += 1;
            }
            if next == before {
                break;
            }
            // A piece takes some milliseconds: others have their turn in between.
            tokio::task::yield_now().await;
        }
        if next == journal.from {
            answer.missing(journal);
        }
        if let Some(place) = answer.end(journal) {
            return Ok((answer.answer(Some(place)), bytes));
        }
    }
    let last = order.journals.last().filter(|_| order.more);
    let next = last.map(|last| ExportPlace { host: last.key.host.clone(), within: None });
    Ok((answer.answer(next), bytes))
}
