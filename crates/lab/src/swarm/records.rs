//! What a scenario is judged by, written down while it is played: which pages were asked for and recorded, bytes sent, the longest step.

use nearcrawl_model::{
    access_point::AccessPoint,
    time::Moment,
    url::{Host, PageUrl},
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// A page in one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    /// Whether the answer is an HTML page.
    pub(super) is_page: bool,
    /// Whose disk has it, until it is recorded.
    pub(super) at: Option<AccessPoint>,
    pub(super) recorded: bool,
}

/// Pages of one run of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunCounts {
    /// HTML pages that were asked for.
    pub(crate) asked: u64,
    /// HTML pages that are recorded.
    pub(crate) recorded: u64,
}

/// A page that was asked for although it was recorded in the same run.
#[derive(Clone, Debug)]
pub(crate) struct Repeated {
    pub(crate) at: Moment,
    /// Who asked, by number.
    pub(crate) by: usize,
    pub(crate) what: String,
}

/// The books of one scenario. A page counts as recorded when its visit is durable on two disks, or on one while nobody else runs.
#[derive(Default)]
pub(crate) struct Records {
    pub(super) pages: BTreeMap<(Host, u32, PageUrl), Page>,
    /// By host and run.
    pub(crate) runs: BTreeMap<Host, BTreeMap<u32, RunCounts>>,
    /// Pages asked for again, the first of them, and how many there are.
    pub(crate) repeated: Vec<Repeated>,
    /// Bytes of all messages, as their senders encoded them, once for each receiver.
    pub(crate) bytes: u64,
    /// The longest time that a crawler took for one event.
    pub(crate) longest_step: Duration,
}

impl Records {
    /// Does a step and times it.
    pub(super) fn timed(&mut self, step: impl FnOnce()) {
        let begin = Instant::now();
        step();
        self.longest_step = self.longest_step.max(begin.elapsed());
    }

    /// A disk is lost: what only it had is not there.
    pub(super) fn forget_copies(&mut self, of: AccessPoint) {
        for page in self.pages.values_mut().filter(|page| page.at == Some(of)) {
            page.at = None;
        }
    }

    /// All recorded pages, in the order of hosts and runs.
    pub(crate) fn all_recorded(&self) -> impl Iterator<Item = (&Host, u32, &PageUrl)> {
        self.pages.iter().filter(|(_, page)| page.recorded).map(|((host, run, url), _)| (host, *run, url))
    }
}
