//! Answers readers' requests for pages and links.
//!
//! Their owner reads its journals a piece at a time, beside the loop, and not faster than it may.

use crate::io::{
    store::{Store, StoreError},
    swarm::{SwarmCommand, SwarmHandle},
};
use crate::node::{query::Reply, transfers::peer_transfers};
use nearcrawl_core::{
    event::Event,
    report::journal_rows::{ExportOrder, JournalRows},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    exported::{ExportPlace, ExportQuery, ExportedRows},
    ids::Ticket,
    message::{PublicResponse, Request, Response},
};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// Answers to readers that are read from journals at once.
pub const MAX_AT_ONCE: usize = 2;

/// Journals are read in pieces of this size.
const PIECE: usize = 256 << 10;

/// Bytes of journals that are read in a second for each of the answers under way.
const BYTES_PER_SECOND: usize = 16 << 20;

/// Who asked for pages or links.
pub enum ExportAsker {
    /// A member, for a reader.
    Member(Ticket),
    /// A program that is no member.
    Reader(Ticket),
    /// Somebody on this machine.
    Here(Reply<Result<ExportedRows, String>>),
}

/// Gives an answer to who asked. A member's is an event: the crawler knows the way by which the question came.
pub fn answer(swarm: Option<&SwarmHandle>, asker: ExportAsker, answer: Result<ExportedRows, String>) -> Option<Event> {
    match asker {
        ExportAsker::Member(ticket) => return Some(Event::Exported { ticket, rows: answer.ok() }),
        // Whoever has stopped waiting is no error.
        ExportAsker::Here(reply) => drop(reply.send(answer)),
        ExportAsker::Reader(ticket) => {
            let response = answer.map_or_else(PublicResponse::Refused, PublicResponse::ExportedRows);
            let told = swarm.is_some_and(|swarm| swarm.tell(SwarmCommand::AnswerPublic { ticket, response }).is_ok());
            if !told {
                tracing::debug!("a reader was not answered, because the swarm task is busy or has ended");
            }
        }
    }
    None
}

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

/// Asks the owner.
pub async fn of_another(
    asking: mpsc::Sender<peer_transfers::PeerQuestion>,
    of: AccessPoint,
    query: ExportQuery,
) -> Result<ExportedRows, String> {
    match peer_transfers::ask(&asking, of, Request::ExportRows(query)).await {
        Some(Response::ExportedRows(rows)) => Ok(rows),
        Some(Response::Refused(why)) => Err(format!("{} refuses: {why}", of.short())),
        _ => Err(format!("{} does not answer", of.short())),
    }
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
