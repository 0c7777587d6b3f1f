//! What takes several requests to one member? Sending journal rows to a replica, and fetching rows that a replica has. Each is a task of
//! its own.

use super::store_queue::MAX_ROW_BYTES;
use crate::io::store::Store;
use nearcrawl_core::{event::Event, replication::replicas::CopyOrder};
use nearcrawl_model::{
    access_point::AccessPoint,
    journal::{JournalEntry, JournalKey, JournalRow},
    message::{Request, Response},
    subnet::Subnet,
};
use std::{collections::BTreeMap, time::Duration};
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

/// Pieces that one member may send of one subnet, each [`MAX_ROW_BYTES`]: 4 GiB.
const MAX_PIECES: usize = 1 << 14;

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
    let heads = match ask(&asking, to, Request::Keep(rows)).await {
        Some(Response::Kept(heads)) => Some(heads),
        _ => None,
    };
    Event::Copied { to, sent, heads }
}

/// Fetches all that a member has kept of a subnet. The crawler judges the copies; nothing is stored here.
pub async fn recover(asking: mpsc::Sender<PeerQuestion>, subnet: Subnet, from: AccessPoint) -> Event {
    let mut rows: BTreeMap<JournalKey, Vec<JournalRow>> = BTreeMap::new();
    let mut cursor: Option<(JournalKey, u64)> = None;
    for _ in 0..MAX_PIECES {
        let Some(Response::Recalled(piece, next)) = ask(&asking, from, Request::Recall(subnet, cursor.clone())).await else {
            return Event::Recovered { subnet, from, journals: None };
        };
        for row in piece.into_iter().filter(|row| row.key.subnet == subnet) {
            rows.entry(row.key.clone()).or_default().push(row);
        }
        // A cursor that does not move would keep us here.
        if next.is_none() || next == cursor {
            break;
        }
        cursor = next;
    }
    let journals = rows.into_iter().map(|(key, rows)| (key, decode(rows))).collect();
    Event::Recovered { subnet, from, journals: Some(journals) }
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
