//! Queue of rows of our journals on their way to the disk.
//!
//! They are gathered and stored many at a time; what they name goes on its way when they are durable.

use crate::{
    context::Context,
    event::{Command, StoreCommand},
    routing::outbox::Item,
};
use nearcrawl_model::{
    ids::WriteId,
    journal::{JournalEntry, JournalKey, JournalRow},
    subnet::Subnet,
    time::{Millis, Moment},
};
use std::collections::BTreeMap;

/// Rows wait this long for company before they are stored.
const GATHER: Millis = 200;

/// Or until there are so many.
pub(crate) const MAX_GATHERED: usize = 512;

/// Rows that are being stored.
#[derive(Debug)]
pub(super) struct Append {
    /// Up to where each journal is durable then (exclusive).
    pub(super) heads: BTreeMap<JournalKey, u64>,
    /// URLs for others that these rows name.
    pub(super) outgoing: Vec<Item>,
    /// Whether it is a journal that others wrote.
    pub(super) adopted: bool,
}

/// Rows that are not durable yet.
#[derive(Debug, Default)]
pub(super) struct AppendQueue {
    rows: Vec<JournalRow>,
    /// When the first of them came.
    since: Option<Moment>,
    outgoing: Vec<Item>,
    /// By the number of the write.
    appends: BTreeMap<WriteId, Append>,
}

impl AppendQueue {
    /// Queues what happened at a site as the row of this sequence number.
    pub(super) fn push(&mut self, now: Moment, key: JournalKey, sequence: u64, entry: &JournalEntry) {
        if let JournalEntry::Visited { outgoing, .. } | JournalEntry::Released { outgoing, .. } = entry {
            let origin = Some((key.clone(), sequence));
            self.outgoing.extend(outgoing.iter().map(|arrival| Item { arrival: arrival.clone(), origin: origin.clone() }));
        }
        self.rows.push(JournalRow { key, sequence, entry: encoded(entry) });
        self.since.get_or_insert(now);
    }

    /// Whether as many rows have gathered as may.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= MAX_GATHERED
    }

    /// Whether rows have waited for long enough.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        self.since.is_some_and(|since| now.since(since) >= GATHER)
    }

    /// Has the gathered rows stored.
    pub(super) fn flush(&mut self, cx: &mut Context) {
        self.since = None;
        if self.rows.is_empty() {
            return;
        }
        let rows = std::mem::take(&mut self.rows);
        let heads = rows.iter().map(|row| (row.key.clone(), row.sequence + 1)).collect();
        let outgoing = std::mem::take(&mut self.outgoing);
        self.append(cx, rows, Append { heads, outgoing, adopted: false });
    }

    /// Has a whole journal stored that others wrote.
    pub(super) fn adopt(&mut self, cx: &mut Context, key: JournalKey, entries: &[JournalEntry], outgoing: Vec<Item>) {
        let rows = (0u64..).zip(entries).map(|(sequence, entry)| JournalRow { key: key.clone(), sequence, entry: encoded(entry) });
        let rows = rows.collect();
        self.append(cx, rows, Append { heads: [(key, entries.len() as u64)].into(), outgoing, adopted: true });
    }

    fn append(&mut self, cx: &mut Context, rows: Vec<JournalRow>, append: Append) {
        let write = cx.number();
        self.appends.insert(write, append);
        cx.commands.push_back(Command::Store(StoreCommand::Append { write, rows }));
    }

    /// The rows of this write are durable.
    pub(super) fn stored(&mut self, write: WriteId) -> Option<Append> {
        self.appends.remove(&write)
    }

    /// The journals of a journal's host in its subnet are not ours any more: what waits of them is dropped.
    pub(super) fn forget_host(&mut self, key: &JournalKey) {
        let is_theirs = |other: &JournalKey| other.subnet == key.subnet && other.host == key.host;
        self.rows.retain(|row| !is_theirs(&row.key));
        self.outgoing.retain(|item| item.origin.as_ref().is_none_or(|(origin, _)| !is_theirs(origin)));
    }

    /// Rows that wait to be stored.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether rows that wait name URLs for others.
    pub(super) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether rows are being stored.
    pub(super) fn is_appending(&self) -> bool {
        !self.appends.is_empty()
    }

    /// Whether journals that others wrote are being stored.
    pub(super) fn is_adopting(&self) -> bool {
        self.appends.values().any(|append| append.adopted)
    }

    /// Whether a row of this subnet's journals waits or is being stored.
    pub(super) fn concerns(&self, subnet: &Subnet) -> bool {
        self.rows.iter().any(|row| row.key.subnet == *subnet)
            || self.appends.values().any(|append| append.heads.keys().any(|key| key.subnet == *subnet))
    }
}

fn encoded(entry: &JournalEntry) -> Vec<u8> {
    // Most entries fit, so that nothing is moved while they are written: a fingerprint takes up to ten bytes.
    let room = match entry {
        JournalEntry::Visited { children, found, .. } => 256 + 10 * children.len() + 96 * found.len(),
        _ => 128,
    };
    let room = Vec::with_capacity(room);
    #[expect(clippy::expect_used, reason = "postcard writes any entry into a growing vector")]
    let mut row = postcard::to_extend(entry, room).expect("a journal entry always encodes");
    row.shrink_to_fit();
    row
}
