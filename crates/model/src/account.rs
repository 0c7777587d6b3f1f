//! Accounts of a run: what changed since the run before, and what each level of a site cost and brought.

use super::{time::Millis, view::counted};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a run found different from the run before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Changes {
    /// The number of the run that it is compared with.
    pub compared_run: u32,
    /// Pages that that run had.
    pub pages_before: u64,
    /// Pages that were none then.
    pub new: u64,
    /// Pages with other content than then.
    pub changed: u64,
    /// Pages that are the same.
    pub unchanged: u64,
    /// Pages (among `unchanged`) of which the server said so: nothing was downloaded.
    pub not_modified: u64,
    /// Pages of then that are none now, or to which no link leads any more; known when nothing waits.
    pub gone: u64,
    /// Pages of then that could not be had now.
    pub missed: u64,
    /// Bytes that need not be downloaded, by the sizes of then.
    pub bytes_saved: u64,
}

impl Changes {
    /// The comparison as one sentence for people, like `Since run 2: 12 new pages, 3 changed, 40 unchanged, 1 gone.`.
    pub fn sentence(&self) -> String {
        let Changes { compared_run, new, changed, unchanged, gone, missed, .. } = self;
        let missed = if *missed > 0 { format!(", {missed} could not be fetched") } else { String::new() };
        format!("Since run {compared_run}: {}, {changed} changed, {unchanged} unchanged, {gone} gone{missed}.", counted(*new, "new page"))
    }
}

/// What one level of a site cost and brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LevelCounts {
    /// HTML pages fetched at this level.
    pub pages: u64,
    /// Requests; those for robots.txt count at level 0.
    pub requests: u64,
    /// Bytes of bodies over the wire; of a page that needed no download, what it took when it did.
    pub bytes: u64,
    /// Response times added up, in milliseconds.
    pub busy_ms: Millis,
    /// External hosts that no page before had named.
    pub external_hosts: u64,
}

impl LevelCounts {
    /// Adds another server's or member's counts of the same level, saturating.
    pub fn add(&mut self, other: &LevelCounts) {
        self.pages = self.pages.saturating_add(other.pages);
        self.requests = self.requests.saturating_add(other.requests);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.busy_ms = self.busy_ms.saturating_add(other.busy_ms);
        self.external_hosts = self.external_hosts.saturating_add(other.external_hosts);
    }

    /// Takes back what was added before.
    pub fn subtract(&mut self, other: &LevelCounts) {
        self.pages = self.pages.saturating_sub(other.pages);
        self.requests = self.requests.saturating_sub(other.requests);
        self.bytes = self.bytes.saturating_sub(other.bytes);
        self.busy_ms = self.busy_ms.saturating_sub(other.busy_ms);
        self.external_hosts = self.external_hosts.saturating_sub(other.external_hosts);
    }
}
