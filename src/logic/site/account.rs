//! What is on the record besides single answers: levels, external hosts, what changed since the run before?

use super::{MOST_EXTERNAL_HOSTS, MOST_NAMED, Site, frontier::Waiting};
use crate::model::{
    account::LevelCounts,
    fingerprint::{Fingerprint, FingerprintKey},
    revisit::Change,
    url::{Host, PageUrl},
};

impl Site {
    /// Whether this URL, which another one of its script had kept out of the line, would take that one's place.
    pub fn would_win(&self, url: &PageUrl, level: u8, hops: u8, key: &FingerprintKey) -> bool {
        let Some(script) = url.script().map(|script| key.of(script)) else { return false };
        let waiting = Waiting { url: url.clone(), fingerprint: key.of(url.as_str()), level, hops };
        !self.scripts.contains(&script) && self.frontier.would_win(&waiting, script)
    }

    /// Whether this page was visited and redirects within the site: where it leads lies at its own level.
    pub fn redirects(&self, page: Fingerprint) -> bool {
        self.redirects.contains(&page)
    }

    /// Whether the journal has named this link to another site.
    pub fn has_named(&self, link: Fingerprint) -> bool {
        self.named.contains(&link) || self.named.len() >= MOST_NAMED
    }

    /// The counts of one level.
    pub(super) fn level(&mut self, level: u8) -> &mut LevelCounts {
        let level = usize::from(level);
        if self.record.levels.len() <= level {
            self.record.levels.resize(level + 1, LevelCounts::default());
        }
        &mut self.record.levels[level]
    }

    pub(super) fn count_external(&mut self, host: &Host, level: u8, key: &FingerprintKey) {
        if self.external.len() < MOST_EXTERNAL_HOSTS && self.external.insert(key.of(host.as_str()).0) {
            self.record.external_hosts += 1;
            self.level(level).external_hosts += 1;
        }
    }

    pub(super) fn count_change(&mut self, change: Option<Change>, level: u8, size: u64) {
        if change == Some(Change::NotModified) {
            self.level(level).bytes += size;
        }
        let Some(changes) = &mut self.record.changes else { return };
        match change {
            None => {}
            Some(Change::New) => changes.new += 1,
            Some(Change::Changed) => changes.changed += 1,
            Some(Change::Unchanged) => changes.unchanged += 1,
            Some(Change::NotModified) => {
                changes.unchanged += 1;
                changes.not_modified += 1;
                changes.bytes_saved += size;
            }
            Some(Change::Missed) => changes.missed += 1,
        }
    }

    /// Pages of the run before that this one has not met: they are gone when nothing waits any more.
    pub(super) fn count_gone(&mut self) {
        let record = &mut self.record;
        let Some(changes) = &mut record.changes else { return };
        let met = changes.changed + changes.unchanged + changes.missed;
        changes.gone = if record.waiting == 0 { changes.pages_before.saturating_sub(met) } else { 0 };
    }
}
