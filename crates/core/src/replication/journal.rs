//! What happened is written down: applied to the site, stored durably, copied to keepers, and only then spoken of.

use crate::{
    crawler::Crawler,
    event::{Command, PeerCommand, StoreCommand},
};
use crate::{
    replication::replicas::KEEPERS,
    routing::outbox::{Item, by_origin},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    journal::{JournalEntry, JournalKey, JournalRow},
    message::Response,
    subnet::Subnet,
    time::Millis,
    url::Host,
};
use std::collections::BTreeMap;

/// Rows wait this long for company before they are stored.
const GATHER: Millis = 200;

/// Or until there are so many.
pub(crate) const MAX_GATHERED: usize = 512;

/// A keeper that did not take rows is tried again after so long.
const COPY_AGAIN: Millis = 1_000;

/// Rows that are being stored.
#[derive(Debug)]
pub(crate) struct Appending {
    heads: BTreeMap<JournalKey, u64>,
    outgoing: Vec<Item>,
}

impl Appending {
    /// Whether rows of this subnet's journals are among them.
    pub(crate) fn concerns(&self, subnet: &Subnet) -> bool {
        self.heads.keys().any(|key| key.subnet == *subnet)
    }
}

/// Which rows of a journal named URLs that have not all been taken in by their owners.
#[derive(Debug, Default)]
pub(crate) struct Forwarding {
    open: BTreeMap<u64, usize>,
    top: u64,
    marked: u64,
}

impl Crawler {
    /// Enters what happened into a site's journal. The site knows it at once; the world hears of it when it is stored.
    pub(crate) fn journal(&mut self, host: &Host, entry: JournalEntry) {
        let Some(site) = self.crawl.sites.get_mut(host) else { return };
        let (key, sequence) = (site.key.clone(), site.next_sequence());
        site.apply(&entry, &self.context.settings.rules, &self.context.secret);
        if let JournalEntry::Visited { outgoing, .. } = &entry {
            let origin = Some((key.clone(), sequence));
            self.replication.row_outgoing.extend(outgoing.iter().map(|arrival| Item { arrival: arrival.clone(), origin: origin.clone() }));
        }
        self.replication.rows.push(JournalRow { key, sequence, entry: encoded(&entry) });
        self.replication.rows_since.get_or_insert(self.context.now.moment);
        self.report.site_changed(host);
        self.keep_front(host);
        // A visit is stored together with what is kept of it.
        if self.replication.rows.len() >= MAX_GATHERED && !matches!(entry, JournalEntry::Visited { .. }) {
            self.flush();
        }
    }

    /// A journal that others kept becomes ours: it counts, and what it names goes on its way, when it is stored here.
    pub(crate) fn adopt(&mut self, key: JournalKey, entries: &[JournalEntry], outgoing: Vec<Item>) {
        let rows = (0u64..).zip(entries).map(|(sequence, entry)| JournalRow { key: key.clone(), sequence, entry: encoded(entry) });
        let rows = rows.collect();
        let receipt = self.number();
        self.replication.appends.insert(receipt, Appending { heads: [(key, entries.len() as u64)].into(), outgoing });
        self.context.commands.push_back(Command::Store(StoreCommand::Append { receipt, rows }));
    }

    /// Has the gathered rows stored.
    pub(crate) fn flush(&mut self) {
        self.replication.rows_since = None;
        if self.replication.rows.is_empty() {
            return;
        }
        let rows = std::mem::take(&mut self.replication.rows);
        let heads = rows.iter().map(|row| (row.key.clone(), row.sequence + 1)).collect();
        let receipt = self.number();
        self.replication.appends.insert(receipt, Appending { heads, outgoing: std::mem::take(&mut self.replication.row_outgoing) });
        self.context.commands.push_back(Command::Store(StoreCommand::Append { receipt, rows }));
    }

    /// Rows or claims are durable: now they count.
    pub(crate) fn stored(&mut self, receipt: u64) {
        if let Some(proofs) = self.ownership.stored(receipt) {
            return self.own_claims_stored(proofs);
        }
        let Some(Appending { heads, outgoing }) = self.replication.appends.remove(&receipt) else { return };
        for (key, upto) in heads {
            self.replication.replicas.stored(&key, upto);
        }
        self.send_out(outgoing);
        self.acknowledge();
    }

    /// URLs named by stored rows go on their way.
    pub(crate) fn send_out(&mut self, items: Vec<Item>) {
        for ((key, sequence), count) in by_origin(&items) {
            let forwarding = self.replication.forwarding.entry(key).or_default();
            *forwarding.open.entry(sequence).or_default() += count;
            forwarding.top = forwarding.top.max(sequence + 1);
        }
        if !items.is_empty() {
            self.routing.put(items);
            self.route();
        }
    }

    /// These URLs have been taken in by their owners, or lead nowhere.
    pub(crate) fn delivered(&mut self, items: Vec<Item>) {
        for ((key, sequence), count) in by_origin(&items) {
            let Some(forwarding) = self.replication.forwarding.get_mut(&key) else { continue };
            if let Some(open) = forwarding.open.get_mut(&sequence) {
                *open = open.saturating_sub(count);
                if *open == 0 {
                    forwarding.open.remove(&sequence);
                }
            }
        }
    }

    pub(crate) fn tick_journals(&mut self) {
        if self.replication.rows_since.is_some_and(|since| self.context.now.moment.since(since) >= GATHER) {
            self.flush();
        }
        let now = self.context.now.moment;
        for keeper in self.replication.copy_again.extract_if(.., |_, due| *due <= now).map(|(keeper, _)| keeper) {
            self.replication.replicas.failed(keeper);
        }
        self.context.commands.extend(self.replication.replicas.orders().into_iter().map(|order| Command::Peers(PeerCommand::Copy(order))));
        if self.context.rounds.is_multiple_of(50) {
            self.mark_forwarded();
            self.drop_superseded();
        }
    }

    /// Writes down how far everything outgoing has arrived, so that a successor need not send it again.
    pub(crate) fn mark_forwarded(&mut self) {
        let mut marks = Vec::new();
        for (key, forwarding) in &mut self.replication.forwarding {
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
    pub(crate) fn copied(&mut self, to: AccessPoint, sent: BTreeMap<JournalKey, u64>, heads: Option<Vec<(JournalKey, u64)>>) {
        let arrived = heads.iter().flatten().any(|(key, head)| sent.get(key).is_some_and(|upto| head >= upto));
        if let Some(heads) = heads {
            self.replication.replicas.answered(to, &heads, &sent);
        }
        if !arrived {
            // Refused, lost, or to no effect: the same again at once would go round in circles.
            self.replication.replicas.pause(to);
            self.replication.copy_again.insert(to, self.context.now.moment.after(COPY_AGAIN));
        }
        self.acknowledge();
        self.context.commands.extend(self.replication.replicas.orders().into_iter().map(|order| Command::Peers(PeerCommand::Copy(order))));
    }

    /// An owner asks us to keep rows. Only the owner of a subnet may.
    pub(crate) fn keep(&mut self, from: AccessPoint, ticket: u64, rows: Vec<JournalRow>) {
        let allowed = rows.iter().all(|row| self.ownership.register.claim(&row.key.subnet).is_none_or(|claim| claim.owner == from));
        if !allowed {
            self.refuse("journal rows of subnets that the sender does not own");
            return self.answer(ticket, Response::Refused("the sender does not own the subnet".to_owned()));
        }
        // A new run begins: the one before is still needed until it is complete, those before that are not.
        for row in rows.iter().filter(|row| row.sequence == 0 && row.key.run > 2) {
            self.context
                .commands
                .push_back(Command::Store(StoreCommand::DropJournal(JournalKey { run: row.key.run - 2, ..row.key.clone() })));
        }
        self.context.commands.push_back(Command::Store(StoreCommand::KeepRows { ticket, rows }));
    }

    /// Who keeps copies for us: the next stewards of the subnet, and whoever is to have it next.
    pub(crate) fn keepers_of(&self, subnet: &Subnet) -> Vec<AccessPoint> {
        let mut keepers: Vec<_> = self.stewards_of(subnet).into_iter().filter(|keeper| *keeper != self.context.me).take(KEEPERS).collect();
        keepers.extend(self.migration.moves.next_owner(subnet).filter(|next| !keepers.contains(next)));
        keepers
    }

    pub(crate) fn assign_keepers_of(&mut self, key: &JournalKey) {
        let keepers = self.keepers_of(&key.subnet);
        self.replication.replicas.assign(key, &keepers);
    }

    /// The living changed: so may the keepers.
    pub(crate) fn assign_keepers(&mut self) {
        let keys: Vec<_> = self.crawl.sites.values().map(|site| site.key.clone()).collect();
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
