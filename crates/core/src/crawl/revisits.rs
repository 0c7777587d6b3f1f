//! Revisits: the next run of a site, which uses what the run before knew, so that unchanged pages are not downloaded again.
//!
//! The journal of the run before is read once more and kept at hand on disk while the new run goes on. Each page is asked for by the
//! version known; if it is still the same, its links are those of then, and the crawl goes on below it as if it had been downloaded.

use super::{
    scheduler::{InLine, place_of},
    site::{Site, previous_run::Memory},
    sites::Sites,
};
use crate::{
    context::Context,
    event::{Command, StoreCommand, WebCommand},
    replication::Replication,
    signal::Signal,
};
use nearcrawl_model::{
    fetch::{FetchError, FetchOrder, FetchPurpose},
    journal::{JournalKey, VisitOutcome},
    previous_run::PreviousPage,
    record::RunState,
    revisit::Change,
    time::{Millis, WallTime},
    url::Host,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

/// A tree whose page budget is spent goes on after this long: a day.
pub(crate) const SLOT: Millis = 86_400_000;

/// What the run before knew is kept for so long after the last visit, though nothing waits: other hosts of the tree may still lead
/// here.
const NOTHING_CAME: Millis = SLOT;

/// A run that begins where another one ended.
#[derive(Debug)]
pub(super) struct NextRun {
    pub(super) host: Host,
    pub(super) address: IpAddr,
    pub(super) tree: Host,
    pub(super) run: u32,
}

/// The runs before the present ones.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// Journals of earlier runs, dropped when the newer run is complete.
    superseded: BTreeMap<Host, JournalKey>,
}

impl Runs {
    /// The journal of the run before this site's is needed until the site's run is over.
    pub(super) fn supersede(&mut self, host: Host, journal: JournalKey) {
        self.superseded.insert(host, journal);
    }

    /// Has the journal of a site's run before read; the site is not asked anything before it is known.
    pub(super) fn remember(&mut self, cx: &mut Context, site: &mut Site, journal: JournalKey) {
        site.memory = Memory::Reading;
        let (number, key) = (site.number, cx.secret);
        cx.commands.push_back(Command::Store(StoreCommand::LoadPreviousRun { site: number, journal: journal.clone(), key }));
        self.supersede(site.key.host.clone(), journal);
    }

    /// Runs before this one are not needed any more: it is over.
    pub(super) fn drop_older(&mut self, cx: &mut Context, replication: &mut Replication, over: &JournalKey) {
        if let Some(older) = self.superseded.remove(&over.host) {
            replication.retire(&older);
            // All of them: runs in between may have come here as a replica's.
            cx.commands.push_back(Command::Store(StoreCommand::DropRuns { before: over.clone(), but_newest: false }));
        }
    }

    /// Where a newer run is over, what the one before knew has served.
    pub(super) fn drop_superseded(&mut self, cx: &mut Context, replication: &mut Replication, sites: &mut Sites) {
        let over = |host: &&Host| sites.get(host).is_some_and(|site| is_over(cx.now.wall, site));
        let done: Vec<_> = self.superseded.keys().filter(over).cloned().collect();
        for host in done {
            if let Some(site) = sites.get_mut(&host) {
                self.drop_older(cx, replication, &site.key);
                site.memory = Memory::None;
                site.counts_as_whole();
                cx.signal(Signal::SiteChanged(host));
                cx.commands.push_back(Command::Store(StoreCommand::DropPreviousRun(site.number)));
            }
        }
    }

    /// A site is not ours any more.
    pub(super) fn forget(&mut self, host: &Host) {
        self.superseded.remove(host);
    }
}

/// Whether a site has something to be asked until then: a run is under way, or one begins.
pub(super) fn has_work_until(cx: &Context, site: &Site, until: WallTime) -> bool {
    if !site.is_home() || site.has_ended() || site.wishes.is_unwanted {
        return false;
    }
    if site.finished() {
        let next = site.opened.0.saturating_add(site.wishes.interval(&cx.settings));
        return site.is_to_be_deeper(&cx.settings.rules) || next <= until.0;
    }
    let within = until.0.saturating_sub(cx.now.wall.0);
    site.record.state != RunState::PausedByBudget || site.resumes_in(cx.now.wall, SLOT) <= within
}

/// Trees whose time comes within `ahead`, by the interval between their runs, to be visited again under the next run's number. Where a survey
/// wants a deeper run than the present one, that is as soon as it is over. `room` says how many runs may begin at an address: of more than that
/// the first in line are meant, and the others have no journal of a run that only waits.
pub(super) fn due(cx: &Context, sites: &Sites, ahead: impl Fn(Millis) -> Millis, room: impl Fn(IpAddr) -> usize) -> Vec<NextRun> {
    let is_due = |site: &Site| {
        let interval = site.wishes.interval(&cx.settings);
        site.is_to_be_deeper(&cx.settings.rules) || cx.now.wall.0.saturating_add(ahead(interval)).saturating_sub(site.opened.0) >= interval
    };
    let goes_on = |site: &Site| site.is_home() && !site.has_ended() && !site.wishes.is_unwanted;
    let over = sites.all().filter(|site| site.finished() && goes_on(site) && is_due(site));
    let next = over.map(|site| (site.key.host.clone(), site.address, site.key.run.saturating_add(1)));
    let mut due: Vec<_> = next.map(|(host, address, run)| NextRun { tree: host.without_www(), host, address, run }).collect();
    let mut here: BTreeMap<IpAddr, usize> = BTreeMap::new();
    due.iter().for_each(|next| *here.entry(next.address).or_default() += 1);
    here.retain(|address, runs| *runs > room(*address));
    if here.is_empty() {
        return due;
    }
    let in_line = |next: &NextRun| InLine { run: next.run, place: place_of(&next.host, &cx.secret) };
    let mut first: BTreeMap<IpAddr, BTreeSet<InLine>> = BTreeMap::new();
    for next in due.iter().filter(|next| here.contains_key(&next.address) && room(next.address) > 0) {
        let first = first.entry(next.address).or_default();
        first.insert(in_line(next));
        if first.len() > room(next.address) {
            first.pop_last();
        }
    }
    let is_first = |next: &NextRun| first.get(&next.address).is_some_and(|first| first.contains(&in_line(next)));
    due.retain(|next| !here.contains_key(&next.address) || is_first(next));
    due
}

/// A part of a tree is opened some time after its home, whose time it is that counts: it may be led to after so much less than the whole one.
const SOONER: u64 = 4;

/// The highest number that the first run of a part of a tree may have here: it was sent by another member.
pub(super) const MAX_FIRST: u32 = 1 << 24;

/// Whether others of its tree may have come to this run since a site's present one began: nobody has servers visited again before it is due.
pub(super) fn may_be(cx: &Context, site: &Site, run: u32) -> bool {
    let age = cx.now.wall.0.saturating_sub(site.opened.0);
    let passed =
        age.saturating_mul(SOONER) / site.wishes.interval(&cx.settings).max(1) + u64::from(site.is_to_be_deeper(&cx.settings.rules));
    u64::from(run.saturating_sub(site.key.run)) <= passed
}

/// Sites that were paused by their page budget and may go on.
pub(super) fn resumable(cx: &Context, sites: &Sites) -> Vec<Host> {
    sites.all().filter(|site| !site.has_ended() && site.may_resume(cx.now.wall, SLOT)).map(|site| site.key.host.clone()).collect()
}

/// Whether nothing waits at a site, and has not for so long that its run is over.
pub(super) fn is_over(now: WallTime, site: &Site) -> bool {
    let quiet = now.0.saturating_sub(site.record.last_visit_at.unwrap_or(site.opened).0);
    site.finished() && quiet >= NOTHING_CAME
}

/// So many surveys are named as a reason for one request.
const MAX_SURVEYS_NAMED: usize = 4;

/// How a request is sent: with its reason, and with what the run before knew, if anything can be known.
pub(super) fn request(cx: &Context, site: &Site, mut order: FetchOrder) -> Command {
    order.reason = site.reason();
    if cx.wishes.living().next().is_some() {
        let place = cx.place_of(site.address);
        let having = cx.wishes.living().filter(|kept| kept.has(&site.key.host, &site.tree, &place));
        order.reason.surveys = having.take(MAX_SURVEYS_NAMED).map(|kept| kept.survey.plan.name.clone()).collect();
    }
    if site.memory == Memory::Ready && order.purpose == FetchPurpose::Page {
        Command::Web(WebCommand::Revisit { page: cx.secret.of(order.url.as_str()), site: site.number, order })
    } else {
        Command::Web(WebCommand::Fetch(order))
    }
}

/// What became of a page: of its content as it is now, and as the run before left it.
pub(super) fn change(outcome: &VisitOutcome, content: u64, not_modified: bool, previous: Option<&PreviousPage>) -> Option<Change> {
    let previous = previous.filter(|previous| previous.is_page());
    match (outcome, previous) {
        _ if not_modified => Some(Change::NotModified),
        (VisitOutcome::Failed(failure), Some(_)) if *failure != FetchError::Cancelled => Some(Change::Missed),
        (outcome, Some(previous)) if outcome.is_page() => {
            Some(if previous.content == content { Change::Unchanged } else { Change::Changed })
        }
        (outcome, None) if outcome.is_page() => Some(Change::New),
        _ => None,
    }
}
