//! The store of one simulated access point, which survives a kill.
//!
//! It has the rules of the real one: journals without gaps, claims, the seen set, and what is done about damaged values.

use nearcrawl_core::{
    crawl::site::previous_run::PreviousRunReader,
    event::{PreviousRunRead, StoreCommand},
    report::journal_rows::{ExportOrder, JournalRows},
    voting::records::VotingRecord,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::SignedClaim,
    exported::{ExportPlace, ExportedRows},
    fingerprint::{Fingerprint, FingerprintKey},
    ids::SiteNumber,
    journal::{JournalEntry, JournalKey, JournalRow},
    links::Link,
    previous_run::{PreviousPage, PreviousRow, PreviousVersion},
    rows_digest::{Digests, InCommon, Told},
    seen::{DEEPEST_LEVEL, PageState, SeenAnswer, SeenBatch},
    subnet::Subnet,
    time::{Millis, Moment},
    url::{Host, PageUrl},
};
use std::collections::{BTreeMap, BTreeSet};

/// What the key of a row counts for, in bytes.
const ROW_KEY: usize = 48;

/// A place in a subnet's journals to go on from.
pub(super) type Cursor = (JournalKey, u64);

/// By how many bytes the journals of each subnet grow.
pub(super) type Growth = BTreeMap<Subnet, i64>;

/// Journals with their decoded entries.
pub(super) type Journals = Vec<(JournalKey, Vec<JournalEntry>)>;

/// The store of one simulated access point: what survives a crash.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Rows by journal and sequence number.
    pub journals: BTreeMap<JournalKey, BTreeMap<u64, Vec<u8>>>,
    /// The claim last stored for each subnet.
    pub claims: BTreeMap<Subnet, SignedClaim>,
    /// The settled members.
    pub members: BTreeSet<AccessPoint>,
    /// What concerns votes.
    pub voting: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The pages of the record of contacts.
    pub contacts: BTreeMap<u8, Vec<u8>>,
    /// What is said of opt-outs, by page.
    pub opt_outs: BTreeMap<u8, Vec<u8>>,
    /// Pages of certificates and expulsions.
    pub admissions: BTreeMap<u8, Vec<u8>>,
    /// The surveys, by slot.
    pub surveys: BTreeMap<u16, Vec<u8>>,
    /// What was probed for them, by slot.
    pub survey_probes: BTreeMap<u16, Vec<u8>>,
    seen: BTreeMap<(SiteNumber, Fingerprint), (u8, PageState)>,
    children: BTreeMap<(SiteNumber, Fingerprint), Vec<Fingerprint>>,
    cut: BTreeMap<(SiteNumber, Fingerprint), String>,
    previous_texts: BTreeMap<(SiteNumber, Fingerprint), String>,
    previous_pages: BTreeMap<(SiteNumber, Fingerprint), PreviousPage>,
    damage: Damage,
}

/// Values that do not match their checksums.
#[derive(Clone, Debug, Default)]
struct Damage {
    rows: BTreeMap<JournalKey, BTreeSet<u64>>,
    claims: bool,
}

/// When writes of the state are durable: those that wait are committed with one sync, as the daemon's store does it, so that a slow disk makes
/// all wait, and nobody for longer than two syncs.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// When the last commit begins: until then writes join it.
    begins: Moment,
    /// When it is durable.
    ends: Moment,
    /// Events that ordered something so far.
    events: u64,
    /// When what the present event ordered is durable, if it ordered something.
    present: Option<Moment>,
}

impl Writes {
    /// What is ordered from now on is ordered by another event.
    pub(super) fn next_event(&mut self) {
        self.present = None;
    }

    /// The present event orders a write, on a disk on which a commit takes so long. When it is durable, and its place among all that have been
    /// ordered.
    pub(super) fn order(&mut self, now: Moment, takes: Millis) -> (Moment, u64) {
        if self.present.is_none() {
            self.events += 1;
            if now >= self.begins {
                self.begins = self.ends.max(now);
                self.ends = self.begins.after(takes);
            }
        }
        (*self.present.get_or_insert(self.ends), self.events)
    }
}

/// The first sequence number that is missing.
fn head(rows: &BTreeMap<u64, Vec<u8>>) -> u64 {
    // Without a gap, as nearly always, the last one says it.
    if rows.last_key_value().is_none_or(|(last, _)| *last == rows.len() as u64 - 1) {
        return rows.len() as u64;
    }
    (0u64..).zip(rows.keys()).take_while(|(expected, found)| expected == *found).count() as u64
}

/// What a row takes, in bytes.
fn size_of_row(entry: &[u8]) -> i64 {
    (entry.len() + ROW_KEY) as i64
}

fn size(rows: &BTreeMap<u64, Vec<u8>>) -> i64 {
    rows.values().map(|entry| size_of_row(entry)).sum()
}

/// Damage. A store says so when it reads a value that does not match its checksum, and when it is opened: then its process ends.
impl Disk {
    /// Changes each stored row and claim of which this says so, and something in any case.
    pub(super) fn spoil(&mut self, mut is_spoilt: impl FnMut() -> bool) {
        for (key, journal) in &self.journals {
            let spoilt: BTreeSet<u64> = journal.keys().copied().filter(|_| is_spoilt()).collect();
            if !spoilt.is_empty() {
                self.damage.rows.entry(key.clone()).or_default().extend(spoilt);
            }
        }
        let any_claim = self.claims.keys().filter(|_| is_spoilt()).count() > 0;
        self.damage.claims |= any_claim || self.damage.rows.is_empty();
    }

    /// Whether anything on it is damaged: an opening finds it.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damage.claims || !self.damage.rows.is_empty()
    }

    /// Whether a command reads something that is damaged. Rows are compared with what stands in their places.
    pub(super) fn is_damaged_for(&self, command: &StoreCommand) -> bool {
        let any = |what: &dyn Fn(&JournalKey) -> bool| self.damage.rows.keys().any(what);
        match command {
            StoreCommand::Append { rows, .. } | StoreCommand::KeepRows { rows, .. } => {
                rows.iter().any(|row| self.is_damaged_within(&row.key, row.sequence, row.sequence + 1))
            }
            StoreCommand::Load(subnet) | StoreCommand::RecallRows { subnet, .. } => any(&|key| key.subnet == *subnet),
            StoreCommand::DigestRows { journals, .. } => journals.iter().any(|(key, rows)| self.is_damaged_within(key, 0, *rows)),
            StoreCommand::LoadPreviousRun { journal, .. } => any(&|key| key == journal),
            _ => false,
        }
    }

    /// Whether a row in a range of a journal is damaged.
    pub(super) fn is_damaged_within(&self, key: &JournalKey, from: u64, to: u64) -> bool {
        self.damage.rows.get(key).is_some_and(|rows| rows.range(from..to).next().is_some())
    }
}

impl Disk {
    /// Adds rows; one that differs from what stands there replaces it and all behind it. Returns how far each journal goes, and what that added.
    pub(super) fn append(&mut self, rows: &[JournalRow]) -> (Vec<(JournalKey, u64)>, Growth) {
        let mut growth = Growth::new();
        for row in rows {
            let journal = match self.journals.get_mut(&row.key) {
                Some(journal) => journal,
                None => self.journals.entry(row.key.clone()).or_default(),
            };
            let replaced = match journal.get(&row.sequence) {
                Some(stored) if *stored == row.entry => continue,
                Some(_) => size(&journal.split_off(&row.sequence)),
                None => 0,
            };
            journal.insert(row.sequence, row.entry.clone());
            *growth.entry(row.key.subnet).or_default() += size_of_row(&row.entry) - replaced;
        }
        growth.retain(|_, bytes| *bytes != 0);
        let keys: BTreeSet<_> = rows.iter().map(|row| &row.key).collect();
        (keys.into_iter().map(|key| (key.clone(), self.journals.get(key).map_or(0, head))).collect(), growth)
    }

    /// By how many bytes the journals of each subnet exceed none: what there is at a start.
    pub(super) fn sizes(&self) -> Growth {
        let mut sizes = Growth::new();
        self.journals.iter().for_each(|(key, rows)| *sizes.entry(key.subnet).or_default() += size(rows));
        sizes
    }

    /// A journal's rows in a range up to the first that is damaged, at most `room` bytes but at least one; what they cost is taken off the room.
    pub fn read(&self, key: &JournalKey, from: u64, to: u64, room: &mut usize) -> Vec<JournalRow> {
        let mut rows = Vec::new();
        for (sequence, entry) in self.journals.get(key).into_iter().flat_map(|rows| rows.range(from..to)) {
            if *room == 0 || self.is_damaged_within(key, *sequence, *sequence + 1) {
                break;
            }
            *room = room.saturating_sub(entry.len() + 32);
            rows.push(JournalRow { key: key.clone(), sequence: *sequence, entry: entry.clone() });
        }
        rows
    }

    /// Pages or links of journals, as many as one answer takes.
    pub fn export(&self, order: &ExportOrder) -> ExportedRows {
        let mut answer = JournalRows::new(order);
        for journal in &order.journals {
            answer.begin(journal);
            let rows = self.journals.get(&journal.key);
            let whole = rows.map_or(0, head);
            if whole <= journal.from {
                answer.missing(journal);
            }
            for (sequence, row) in rows.into_iter().flat_map(|rows| rows.range(journal.from..whole.max(journal.from))) {
                let Ok(entry) = postcard::from_bytes(row) else { break };
                if let Some(next) = answer.take(journal, *sequence, row.len(), entry) {
                    return answer.answer(Some(next));
                }
            }
            if let Some(next) = answer.end(journal) {
                return answer.answer(Some(next));
            }
        }
        let next = order.journals.last().filter(|_| order.more).map(|last| ExportPlace { host: last.key.host.clone(), within: None });
        answer.answer(next)
    }

    /// What is told of a copy to those who compare it with theirs, which has so many rows.
    pub(super) fn digests(&self, key: &JournalKey, rows: u64) -> Digests {
        let rows = self.journals.get(key).map_or(0, head).min(rows);
        let mut told = Told::of(rows);
        self.read(key, 0, rows, &mut usize::MAX.clone()).iter().for_each(|row| told.add(&row.entry));
        told.digests()
    }

    /// How many rows a journal has in common with another copy, of which this was told.
    pub(super) fn rows_in_common(&self, key: &JournalKey, told: Digests) -> u64 {
        let mut common = InCommon::with(told);
        self.read(key, 0, common.wanted(), &mut usize::MAX.clone()).iter().for_each(|row| common.add(&row.entry));
        common.rows()
    }

    /// A subnet's rows from a place on, at most `room` bytes, and where to go on.
    pub fn recall(&self, subnet: &Subnet, from: Option<&Cursor>, mut room: usize) -> (Vec<JournalRow>, Option<Cursor>) {
        let mut rows: Vec<JournalRow> = Vec::new();
        for key in self.journals.keys().filter(|key| key.subnet == *subnet) {
            let first = match from {
                Some((at, _)) if key < at => continue,
                Some((at, sequence)) if key == at => *sequence,
                Some(_) | None => 0,
            };
            rows.extend(self.read(key, first, u64::MAX, &mut room));
            if room == 0 {
                let next = rows.last().map(|row| (row.key.clone(), row.sequence + 1));
                return (rows, next);
            }
        }
        (rows, None)
    }

    /// Stores what concerns votes.
    pub(super) fn store_voting(&mut self, records: Vec<VotingRecord>) {
        for VotingRecord { key, value } in records {
            match value {
                Some(value) => drop(self.voting.insert(key, value)),
                None => drop(self.voting.remove(&key)),
            }
        }
    }

    /// The newest run's journal of each host of a subnet, up to its first gap.
    pub fn load(&self, subnet: &Subnet) -> Journals {
        let newest: BTreeMap<&Host, &JournalKey> =
            self.journals.keys().filter(|key| key.subnet == *subnet).map(|key| (&key.host, key)).collect();
        let rows = |key: &JournalKey| self.read(key, 0, self.journals.get(key).map_or(0, head), &mut usize::MAX.clone());
        newest.into_values().map(|key| (key.clone(), decode(rows(key).iter()))).collect()
    }

    /// The journals of a site's runs before this one; with `but_newest` except the newest of them that has its first row.
    pub fn older_runs(&self, before: &JournalKey, but_newest: bool) -> Vec<JournalKey> {
        let of_site = |other: &JournalKey| (other.subnet, &other.host) == (before.subnet, &before.host) && other.run < before.run;
        let older = || self.journals.iter().filter(|(key, _)| of_site(key));
        let whole = older().filter(|(_, rows)| rows.contains_key(&0)).map(|(key, _)| key);
        let stays = whole.max_by_key(|key| key.run).filter(|_| but_newest);
        older().map(|(key, _)| key).filter(|key| Some(*key) != stays).cloned().collect()
    }

    /// Forgets journals. Returns what that took off.
    pub(super) fn drop_journals(&mut self, keys: &[JournalKey]) -> Growth {
        let mut growth = Growth::new();
        for key in keys {
            *growth.entry(key.subnet).or_default() -= self.journals.remove(key).map_or(0, |rows| size(&rows));
            self.damage.rows.remove(key);
        }
        growth.retain(|_, bytes| *bytes != 0);
        growth
    }

    /// Enters a visit and answers questions.
    pub(crate) fn ask_seen(&mut self, batch: SeenBatch) -> Vec<SeenAnswer> {
        if let Some(visit) = batch.visited {
            let level = visit.level.min(DEEPEST_LEVEL);
            let page = self.seen.entry((batch.site, visit.page)).or_insert((level, PageState::Visited));
            *page = (page.0.min(level), PageState::Visited);
            self.children.insert((batch.site, visit.page), visit.children);
        }
        let mut answers = Vec::with_capacity(batch.questions.len());
        for (page, level) in batch.questions {
            let level = level.min(DEEPEST_LEVEL);
            let within = if level <= batch.depth { PageState::Waiting } else { PageState::Cut };
            answers.push(match self.seen.get_mut(&(batch.site, page)) {
                None => {
                    self.seen.insert((batch.site, page), (level, within));
                    SeenAnswer::New
                }
                Some(known) if known.0 <= level => SeenAnswer::Known,
                Some(known) => {
                    let was = known.1;
                    *known = (level, if was == PageState::Cut { within } else { was });
                    SeenAnswer::Shorter { was }
                }
            });
        }
        answers
    }

    /// The links of a visited page.
    pub fn children(&self, site: SiteNumber, page: Fingerprint) -> Vec<Fingerprint> {
        self.children.get(&(site, page)).cloned().unwrap_or_default()
    }

    /// Remembers URLs beyond the depth.
    pub(crate) fn put_cut(&mut self, site: SiteNumber, urls: Vec<(Fingerprint, String)>) {
        self.cut.extend(urls.into_iter().map(|(page, url)| ((site, page), url)));
    }

    /// Gives them out again, once.
    pub(crate) fn take_cut(&mut self, site: SiteNumber, pages: &[Fingerprint]) -> Vec<Option<String>> {
        pages.iter().map(|page| self.cut.remove(&(site, *page))).collect()
    }

    /// Makes the seen set know a site.
    pub(crate) fn load_seen(
        &mut self,
        site: SiteNumber,
        seen: Vec<(Fingerprint, u8, PageState)>,
        children: Vec<(Fingerprint, Vec<Fingerprint>)>,
        cut: Vec<(Fingerprint, String)>,
    ) {
        self.seen.extend(seen.into_iter().map(|(page, level, state)| ((site, page), (level, state))));
        self.children.extend(children.into_iter().map(|(page, links)| ((site, page), links)));
        self.put_cut(site, cut);
    }

    /// Makes a site know what the run before it knew; none if there is no such journal.
    pub fn load_previous_run(&mut self, site: SiteNumber, journal: &JournalKey, key: FingerprintKey) -> Option<PreviousRunRead> {
        let rows = self.journals.get(journal)?;
        let entries: Vec<_> = decode(self.read(journal, 0, head(rows), &mut usize::MAX.clone()).iter());
        let (mut reader, rows) = (PreviousRunReader::new(key), entries.len() as u64);
        let mut known: Vec<_> = entries.into_iter().flat_map(|entry| reader.read(entry)).collect();
        known.extend(reader.end());
        for row in known {
            match row {
                PreviousRow::Text(of, text) => drop(self.previous_texts.insert((site, of), text)),
                PreviousRow::Page(of, page) => drop(self.previous_pages.insert((site, of), *page)),
            }
        }
        (rows > 0).then(|| PreviousRunRead { pages: reader.pages(), rows })
    }

    /// A page as the run before left it.
    pub fn previous_version(&self, site: SiteNumber, page: Fingerprint) -> Option<PreviousVersion> {
        let page = self.previous_pages.get(&(site, page))?.clone();
        let link = |of: &Fingerprint| {
            let url = PageUrl::parse(self.previous_texts.get(&(site, *of))?).ok()?;
            Some(Link { url, fingerprint: *of })
        };
        let links = page.children.iter().chain(&page.elsewhere).filter_map(link).collect();
        Some(PreviousVersion { page, links })
    }

    /// Forgets what the run before knew.
    pub(crate) fn drop_previous_run(&mut self, site: SiteNumber) {
        self.previous_texts.retain(|(of, _), _| *of != site);
        self.previous_pages.retain(|(of, _), _| *of != site);
    }

    /// Forgets a site's part of the seen set.
    pub(crate) fn drop_seen(&mut self, site: SiteNumber) {
        self.drop_previous_run(site);
        self.seen.retain(|(of, _), _| *of != site);
        self.children.retain(|(of, _), _| *of != site);
        self.cut.retain(|(of, _), _| *of != site);
    }
}

/// Entries of rows; from the first that cannot be read on, nothing.
fn decode<'a>(rows: impl Iterator<Item = &'a JournalRow>) -> Vec<JournalEntry> {
    rows.map_while(|row| postcard::from_bytes(&row.entry).ok()).collect()
}

/// Sorts rows that came from a replica into journals, each up to its first gap.
pub(super) fn sort_rows(rows: Vec<JournalRow>) -> Journals {
    let mut journals: BTreeMap<JournalKey, BTreeMap<u64, JournalRow>> = BTreeMap::new();
    for row in rows {
        journals.entry(row.key.clone()).or_default().insert(row.sequence, row);
    }
    let whole = |rows: BTreeMap<u64, JournalRow>| {
        let rows: Vec<_> = (0u64..).zip(rows).take_while(|(expected, (found, _))| expected == found).map(|(_, (_, row))| row).collect();
        decode(rows.iter())
    };
    journals.into_iter().map(|(key, rows)| (key, whole(rows))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_slow_disk_all_that_waits_is_one_write_so_that_nobody_waits_longer_than_for_two() {
        let mut writes = Writes::default();
        let mut durable = Vec::new();
        for now in (0..20_000).step_by(100).map(Moment) {
            writes.next_event();
            let (end, place) = writes.order(now, 5_000);
            assert_eq!(writes.order(now, 5_000), (end, place), "one event is not divided");
            assert!(now.after(5_000) <= end && end <= now.after(10_000), "{now:?} {end:?}");
            durable.push((end, place));
        }
        assert!(durable.is_sorted() && durable.windows(2).all(|pair| pair[0].1 < pair[1].1), "in the order in which it was ordered");
        assert_eq!(durable.iter().map(|(end, _)| *end).collect::<BTreeSet<_>>().len(), 5);
    }
}
