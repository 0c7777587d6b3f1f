//! Transfers that take several requests to one member, each a task of its own.
//!
//! They send journal rows to a replica, and fetch rows that a replica has.

use crate::io::store::Store;
use crate::node::{
    state::store_queue::MAX_ROW_BYTES,
    transfers::recovery_budget::{RecoveryBudget, Share},
};
use nearcrawl_core::{
    event::{CopyAnswer, Event},
    replication::replicas::CopyOrder,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    journal::{JournalEntry, JournalKey, JournalRow},
    message::{Request, Response},
    rows_digest::{Digests, InCommon},
    subnet::Subnet,
    url::Host,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot};

/// A request that a task sends to a member by way of the loop.
#[derive(Debug)]
pub struct PeerQuestion {
    /// The member that is asked.
    pub to: AccessPoint,
    /// The request.
    pub request: Request,
    /// Where the answer goes; none if there is none.
    pub reply: oneshot::Sender<Option<Response>>,
}

/// Pieces that one member may send of one subnet. They are at most [`MAX_ROW_BYTES`] long and most of them nearly so: 256 of those are
/// all that [`recovery_budget::MAX_RECOVERED_ONCE`](crate::node::transfers::recovery_budget::MAX_RECOVERED_ONCE) allows.
const MAX_PIECES: usize = 1 << 12;

/// What a row takes in memory besides its entry: its key with a short host name, its number and the allocations, in bytes.
const ROW_OVERHEAD: usize = 128;

/// A member that says it is busy is asked again so often.
const MAX_TRIES: usize = 5;

/// Asks a member, and again if it is busy; none if nothing comes of it.
pub async fn ask(asking: &mpsc::Sender<PeerQuestion>, to: AccessPoint, request: Request) -> Option<Response> {
    for _ in 0..MAX_TRIES {
        let (reply, answer) = oneshot::channel();
        asking.send(PeerQuestion { to, request: request.clone(), reply }).await.ok()?;
        match answer.await.ok()?? {
            Response::Busy(pause) => tokio::time::sleep(Duration::from_millis(pause.clamp(50, 5_000))).await,
            answer => return Some(answer),
        }
    }
    None
}

/// Sends a replica the rows that it lacks, as many as fit into one message.
pub async fn copy(store: Store, asking: mpsc::Sender<PeerQuestion>, order: CopyOrder) -> Event {
    let to = order.to;
    if order.compares {
        return compare(&store, &asking, order).await;
    }
    let mut rows = Vec::new();
    let mut sent = BTreeMap::new();
    let mut room = MAX_ROW_BYTES;
    for (key, from, upto) in order.ranges {
        if room == 0 {
            break;
        }
        let Ok(piece) = store.journal_read(key.clone(), from, room).await else { break };
        for row in piece.into_iter().filter(|row| row.sequence < upto) {
            room = room.saturating_sub(row.entry.len() + 64);
            sent.insert(key.clone(), row.sequence + 1);
            rows.push(row);
        }
    }
    let answer = match ask(&asking, to, Request::Keep(rows)).await {
        Some(Response::Kept(heads)) => CopyAnswer::Kept(heads),
        Some(Response::NoRoom) => {
            tracing::info!("{} has no room for more copies of our journals: another replica is chosen", to.short());
            CopyAnswer::NoRoom
        }
        _ => CopyAnswer::Failed,
    };
    Event::Copied { to, sent, answer }
}

/// Asks a replica with how many of our rows its copies begin.
async fn compare(store: &Store, asking: &mpsc::Sender<PeerQuestion>, CopyOrder { to, ranges, .. }: CopyOrder) -> Event {
    let ours: BTreeMap<_, _> = ranges.into_iter().map(|(key, _, rows)| (key, rows)).collect();
    let mut heads = Vec::new();
    let request = Request::CompareRows(ours.iter().map(|(key, rows)| (key.clone(), *rows)).collect());
    if let Some(Response::RowsCompared(told)) = ask(asking, to, request).await {
        for (key, told) in told.into_iter().filter(|(key, _)| ours.contains_key(key)) {
            let Some(rows) = rows_in_common(store, &key, told).await else { break };
            heads.push((key, rows));
        }
    }
    let sent = heads.iter().cloned().collect();
    Event::Copied { to, sent, answer: if heads.is_empty() { CopyAnswer::Failed } else { CopyAnswer::Compared(heads) } }
}

/// How many rows a journal has in common with another copy, of which this was told; none if it cannot be read.
async fn rows_in_common(store: &Store, key: &JournalKey, told: Digests) -> Option<u64> {
    let (mut common, mut next) = (InCommon::with(told), 0);
    while next < common.wanted() {
        let piece = store.journal_read(key.clone(), next, MAX_ROW_BYTES).await.ok()?;
        let rows = piece.iter().zip(next..common.wanted()).take_while(|(row, expected)| row.sequence == *expected);
        let before = next;
        for (row, expected) in rows {
            common.add(&row.entry);
            next = expected + 1;
        }
        if next == before {
            break;
        }
    }
    Some(common.rows())
}

/// Where a member is to go on; none for the beginning, or at the end.
type Cursor = Option<(JournalKey, u64)>;

/// Why a member's rows of a subnet do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// It did not answer, or with something else.
    #[error("no answer")]
    Unanswered,
    /// Its cursor stands still, goes back or leaves the subnet; or a piece that is not the last one is empty.
    #[error("the pieces do not advance")]
    Stuck,
    /// The rows of all transfers take as much memory as they may.
    #[error("the rows of all transfers are as many as may be in memory")]
    NoRoom,
}

/// Fetches all that a member has kept of a subnet, or of one host in it, as far as that is allowed. The crawler judges the copies; nothing
/// is stored here.
pub async fn recover(
    asking: mpsc::Sender<PeerQuestion>,
    budget: Arc<RecoveryBudget>,
    (subnet, host): (Subnet, Option<Host>),
    from: AccessPoint,
) -> Event {
    match fetch(&asking, &budget, (subnet, host.as_ref()), from).await {
        Ok((rows, share)) => {
            let journals = rows.into_iter().map(|(key, rows)| (key, decode(rows))).collect();
            Event::Recovered { subnet, host, from, journals: Some(journals), bytes: share.hand_over() }
        }
        Err(why) => {
            if why == RecoverError::Stuck {
                budget.stuck();
            }
            tracing::debug!("rows of {subnet} that {} kept do not count: {why}", from.short());
            Event::Recovered { subnet, host, from, journals: None, bytes: 0 }
        }
    }
}

/// The rows of a subnet, or of one host in it, that a member has kept, and what they take of the budget.
async fn fetch(
    asking: &mpsc::Sender<PeerQuestion>,
    budget: &Arc<RecoveryBudget>,
    (subnet, host): (Subnet, Option<&Host>),
    from: AccessPoint,
) -> Result<(BTreeMap<JournalKey, Vec<JournalRow>>, Share), RecoverError> {
    let mut rows: BTreeMap<JournalKey, Vec<JournalRow>> = BTreeMap::new();
    let mut share = budget.share();
    let mut cursor: Cursor = host.map(|host| (JournalKey { subnet, host: host.clone(), run: 0 }, 0));
    for _ in 0..MAX_PIECES {
        let Some(Response::Recalled(piece, next)) = ask(asking, from, Request::Recall(subnet, cursor.clone())).await else {
            return Err(RecoverError::Unanswered);
        };
        if !advances(subnet, &piece, cursor.as_ref(), next.as_ref()) {
            return Err(RecoverError::Stuck);
        }
        let bytes = piece.iter().map(|row| row.entry.len() + row.key.host.as_str().len() + ROW_OVERHEAD).sum();
        if !share.has_room(bytes) {
            // What came before counts: asked again, the member would send the same.
            return Ok((rows, share));
        }
        if !share.take(bytes) {
            return Err(RecoverError::NoRoom);
        }
        let wanted = |key: &JournalKey| host.is_none_or(|host| *host == key.host);
        for row in piece.into_iter().filter(|row| row.key.subnet == subnet && wanted(&row.key)) {
            rows.entry(row.key.clone()).or_default().push(row);
        }
        if next.as_ref().is_none_or(|(key, _)| !wanted(key)) {
            break;
        }
        cursor = next;
    }
    Ok((rows, share))
}

/// Whether a piece leads on: the last one does, and one with rows whose cursor is behind the one before and in the same subnet.
fn advances(subnet: Subnet, piece: &[JournalRow], before: Option<&(JournalKey, u64)>, next: Option<&(JournalKey, u64)>) -> bool {
    next.is_none_or(|next| !piece.is_empty() && next.0.subnet == subnet && before.is_none_or(|before| before < next))
}

/// The entries of a journal up to its first gap or broken line: what follows cannot be stood on.
pub fn decode(rows: Vec<JournalRow>) -> Vec<JournalEntry> {
    let mut entries = Vec::new();
    for row in rows {
        match postcard::from_bytes(&row.entry) {
            Ok(entry) if row.sequence == entries.len() as u64 => entries.push(entry),
            _ => break,
        }
    }
    entries
}

#[cfg(test)]
mod tests;
