//! What happened is written down: applied to the site, stored durably, copied to keepers, and only then spoken of.

use super::{Command, Crawler, admission};
use crate::{
    logic::{
        keeping::KEEPERS,
        outbox::{Item, Outbox},
    },
    model::{
        access_point::AccessPoint,
        journal::{JournalEntry, JournalKey, JournalRow},
        message::Response,
        subnet::Subnet,
        time::Millis,
        url::Host,
    },
};
use std::collections::BTreeMap;

/// Rows wait this long for company before they are stored.
const GATHER: Millis = 200;

/// Or until there are so many.
pub(super) const MOST_GATHERED: usize = 512;

/// A keeper that did not take rows is tried again after so long.
const COPY_AGAIN: Millis = 1_000;

/// Rows that are being stored.
#[derive(Debug)]
pub(super) struct Appending {
    heads: BTreeMap<JournalKey, u64>,
    outgoing: Vec<Item>,
}

impl Appending {
    /// Whether rows of this subnet's journals are among them.
    pub(super) fn concerns(&self, subnet: &Subnet) -> bool {
        self.heads.keys().any(|key| key.subnet == *subnet)
    }
}

/// Which rows of a journal named URLs that have not all been taken in by their owners.
#[derive(Debug, Default)]
pub(super) struct Forwarding {
    open: BTreeMap<u64, usize>,
    top: u64,
    marked: u64,
}

impl Crawler {
    /// Enters what happened into a site's journal. The site knows it at once; the world hears of it when it is stored.
    pub(super) fn journal(&mut self, host: &Host, entry: JournalEntry) {
        let Some(site) = self.sites.get_mut(host) else { return };
        let (key, sequence) = (site.key.clone(), site.next_sequence());
        site.apply(&entry, &self.settings.rules, &self.secret);
        if let JournalEntry::Visited { outgoing, .. } = &entry {
            let origin = Some((key.clone(), sequence));
            self.row_outgoing.extend(outgoing.iter().map(|arrival| Item { arrival: arrival.clone(), origin: origin.clone() }));
        }
        self.rows.push(JournalRow { key, sequence, entry: encoded(&entry) });
        self.rows_since.get_or_insert(self.now.moment);
        self.dirty.insert(host.clone());
        self.keep_front(host);
        // A visit is stored together with what is kept of it.
        if self.rows.len() >= MOST_GATHERED && !matches!(entry, JournalEntry::Visited { .. }) {
            self.flush();
        }
    }

    /// A journal that others kept becomes ours: it counts, and what it names goes on its way, when it is stored here.
    pub(super) fn adopt(&mut self, key: JournalKey, entries: &[JournalEntry], outgoing: Vec<Item>) {
        let rows = (0u64..).zip(entries).map(|(sequence, entry)| JournalRow { key: key.clone(), sequence, entry: encoded(entry) });
        let rows = rows.collect();
        let receipt = self.number();
        self.appends.insert(receipt, Appending { heads: [(key, entries.len() as u64)].into(), outgoing });
        self.commands.push_back(Command::Append { receipt, rows });
    }

    /// Has the gathered rows stored.
    pub(super) fn flush(&mut self) {
        self.rows_since = None;
        if self.rows.is_empty() {
            return;
        }
        let rows = std::mem::take(&mut self.rows);
        let heads = rows.iter().map(|row| (row.key.clone(), row.sequence + 1)).collect();
        let receipt = self.number();
        self.appends.insert(receipt, Appending { heads, outgoing: std::mem::take(&mut self.row_outgoing) });
        self.commands.push_back(Command::Append { receipt, rows });
    }

    /// Rows or claims are durable: now they count.
    pub(super) fn stored(&mut self, receipt: u64) {
        if let Some(proofs) = self.unstored_claims.remove(&receipt) {
            return self.own_claims_stored(proofs);
        }
        let Some(Appending { heads, outgoing }) = self.appends.remove(&receipt) else { return };
        for (key, upto) in heads {
            self.keeping.stored(&key, upto);
        }
        self.send_out(outgoing);
        self.acknowledge();
    }

    /// URLs named by stored rows go on their way.
    pub(super) fn send_out(&mut self, items: Vec<Item>) {
        for ((key, sequence), count) in admission::by_origin(&items) {
            let forwarding = self.forwarding.entry(key).or_default();
            *forwarding.open.entry(sequence).or_default() += count;
            forwarding.top = forwarding.top.max(sequence + 1);
        }
        if !items.is_empty() {
            put_all(&mut self.outbox, items);
            self.route();
        }
    }

    /// These URLs have been taken in by their owners, or lead nowhere.
    pub(super) fn delivered(&mut self, items: Vec<Item>) {
        for ((key, sequence), count) in admission::by_origin(&items) {
            let Some(forwarding) = self.forwarding.get_mut(&key) else { continue };
            if let Some(open) = forwarding.open.get_mut(&sequence) {
                *open = open.saturating_sub(count);
                if *open == 0 {
                    forwarding.open.remove(&sequence);
                }
            }
        }
    }

    pub(super) fn tick_journals(&mut self) {
        if self.rows_since.is_some_and(|since| self.now.moment.since(since) >= GATHER) {
            self.flush();
        }
        let now = self.now.moment;
        for keeper in self.copy_again.extract_if(.., |_, due| *due <= now).map(|(keeper, _)| keeper) {
            self.keeping.failed(keeper);
        }
        self.commands.extend(self.keeping.orders().into_iter().map(Command::Copy));
        if self.rounds.is_multiple_of(50) {
            self.mark_forwarded();
            self.drop_superseded();
        }
    }

    /// Writes down how far everything outgoing has arrived, so that a successor need not send it again.
    fn mark_forwarded(&mut self) {
        let mut marks = Vec::new();
        for (key, forwarding) in &mut self.forwarding {
            let before = forwarding.open.first_key_value().map_or(forwarding.top, |(first, _)| *first);
            if before > forwarding.marked {
                forwarding.marked = before;
                marks.push((key.host.clone(), before));
            }
        }
        for (host, before) in marks {
            self.journal(&host, JournalEntry::Forwarded { before });
        }
    }

    /// A keeper answered a copy, or did not.
    pub(super) fn copied(&mut self, to: AccessPoint, sent: BTreeMap<JournalKey, u64>, heads: Option<Vec<(JournalKey, u64)>>) {
        let arrived = heads.iter().flatten().any(|(key, head)| sent.get(key).is_some_and(|upto| head >= upto));
        if let Some(heads) = heads {
            self.keeping.answered(to, &heads, &sent);
        }
        if !arrived {
            // Refused, lost, or to no effect: the same again at once would go round in circles.
            self.keeping.pause(to);
            self.copy_again.insert(to, self.now.moment.after(COPY_AGAIN));
        }
        self.acknowledge();
        self.commands.extend(self.keeping.orders().into_iter().map(Command::Copy));
    }

    /// An owner asks us to keep rows. Only the owner of a subnet may.
    pub(super) fn keep(&mut self, from: AccessPoint, ticket: u64, rows: Vec<JournalRow>) {
        let allowed = rows.iter().all(|row| self.ownership.claim(&row.key.subnet).is_none_or(|claim| claim.owner == from));
        if !allowed {
            self.refuse("rows of subnets that the sender does not own");
            return self.answer(ticket, Response::Refused("you do not own that subnet".to_owned()));
        }
        // A new run begins: the one before is still needed until it is complete, those before that are not.
        for row in rows.iter().filter(|row| row.sequence == 0 && row.key.run > 2) {
            self.commands.push_back(Command::DropJournal(JournalKey { run: row.key.run - 2, ..row.key.clone() }));
        }
        self.commands.push_back(Command::KeepRows { ticket, rows });
    }

    /// Who keeps copies for us: the next stewards of the subnet, and whoever is to have it next.
    fn keepers_of(&self, subnet: &Subnet) -> Vec<AccessPoint> {
        let mut keepers: Vec<_> = self.stewards_of(subnet).into_iter().filter(|keeper| *keeper != self.me).take(KEEPERS).collect();
        keepers.extend(self.moves.next_owner(subnet).filter(|next| !keepers.contains(next)));
        keepers
    }

    pub(super) fn assign_keepers_of(&mut self, key: &JournalKey) {
        let keepers = self.keepers_of(&key.subnet);
        self.keeping.assign(key, &keepers);
    }

    /// The living changed: so may the keepers.
    pub(super) fn assign_keepers(&mut self) {
        let keys: Vec<_> = self.sites.values().map(|site| site.key.clone()).collect();
        for key in keys {
            self.assign_keepers_of(&key);
        }
        self.acknowledge();
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

fn put_all(outbox: &mut Outbox, items: Vec<Item>) {
    for item in items {
        outbox.put(item);
    }
}
