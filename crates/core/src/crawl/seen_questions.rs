//! Open questions to the seen set and to the store of URLs set aside; each waits here for its answer.

use super::{digest::Digest, link_filter::Candidate, sites::Sites};
use crate::{
    context::Context,
    event::{Command, StoreCommand},
    routing::acknowledgements::Reply,
};
use nearcrawl_model::{
    fingerprint::Fingerprint,
    ids::{SeenTicket, SiteNumber},
    seen::{PageState, SeenBatch},
    url::Host,
};
use std::collections::{BTreeMap, BTreeSet};

/// Arrivals at one site that the seen set is asked about.
#[derive(Debug)]
pub(super) struct AdmissionPart {
    pub(super) host: Host,
    /// The number of the site.
    pub(super) site: SiteNumber,
    pub(super) candidates: Vec<Candidate>,
}

/// What the seen set was asked for.
#[derive(Debug)]
pub(super) enum SeenPurpose {
    /// Arrivals of several hosts, one batch each, and who waits.
    Admit { parts: Vec<AdmissionPart>, reply: Reply },
    /// A visit, its links, and what leaves the site.
    Digest(Box<Digest>),
    /// Pages behind one that came nearer.
    Relax { host: Host, site: SiteNumber, pages: Vec<(Fingerprint, u8)> },
    /// The links of a page that came nearer are being read.
    Children { host: Host, site: SiteNumber, level: u8 },
    /// URLs that came nearer are being read: they had been cut, or wait far back.
    Nearer { host: Host, site: SiteNumber, pages: Vec<(Fingerprint, u8, PageState)> },
    /// URLs that wait far back are being called to the front.
    Front { host: Host, site: SiteNumber, pages: Vec<Fingerprint> },
    /// URLs that waited far back at a site that is not ours any more are on their way to their owner.
    Elsewhere { tree: Host, run: u32, pages: Vec<(Fingerprint, u8)> },
}

impl SeenPurpose {
    /// Whether it is about one of these hosts.
    fn concerns(&self, hosts: &BTreeSet<Host>) -> bool {
        match self {
            SeenPurpose::Admit { parts, .. } => parts.iter().any(|part| hosts.contains(&part.host)),
            SeenPurpose::Digest(digest) => hosts.contains(&digest.host),
            SeenPurpose::Relax { host, .. }
            | SeenPurpose::Children { host, .. }
            | SeenPurpose::Nearer { host, .. }
            | SeenPurpose::Front { host, .. } => hosts.contains(host),
            SeenPurpose::Elsewhere { .. } => false,
        }
    }
}

/// Questions without an answer yet, by ticket.
#[derive(Debug, Default)]
pub(crate) struct SeenQuestions {
    pending: BTreeMap<SeenTicket, SeenPurpose>,
}

impl SeenQuestions {
    /// Asks the seen set which of these URLs are new.
    pub(super) fn ask(&mut self, cx: &mut Context, batches: Vec<SeenBatch>, purpose: SeenPurpose) {
        let ticket = self.insert_pending(cx, purpose);
        cx.commands.push_back(Command::Store(StoreCommand::Seen { ticket, batches }));
    }

    /// Asks the seen set for the links of a visited page of a site.
    pub(super) fn ask_children(&mut self, cx: &mut Context, site: SiteNumber, page: Fingerprint, purpose: SeenPurpose) {
        let ticket = self.insert_pending(cx, purpose);
        cx.commands.push_back(Command::Store(StoreCommand::Children { ticket, site, page }));
    }

    /// Asks the store for texts of a site that were set aside.
    pub(super) fn take_aside(&mut self, cx: &mut Context, site: SiteNumber, pages: Vec<Fingerprint>, purpose: SeenPurpose) {
        let ticket = self.insert_pending(cx, purpose);
        cx.commands.push_back(Command::Store(StoreCommand::TakeCut { ticket, site, pages }));
    }

    /// Sets aside what waits too far back at a site, and calls back what comes next. After every change of a frontier.
    pub(super) fn keep_front(&mut self, cx: &mut Context, sites: &mut Sites, host: &Host) {
        let Some(most) = sites.share_of(host, cx.settings.max_in_memory) else { return };
        let Some(site) = sites.get_mut(host) else { return };
        let number = site.number;
        let urls = site.frontier.set_aside(most);
        let pages = site.frontier.call_back(most);
        if !urls.is_empty() {
            cx.commands.push_back(Command::Store(StoreCommand::PutCut { site: number, urls }));
        }
        if !pages.is_empty() {
            self.take_aside(cx, number, pages.clone(), SeenPurpose::Front { host: host.clone(), site: number, pages });
        }
    }

    /// An answer came: what it was asked for.
    pub(super) fn answered(&mut self, ticket: SeenTicket) -> Option<SeenPurpose> {
        self.pending.remove(&ticket)
    }

    /// Whether a question is about one of these hosts.
    pub(super) fn concern(&self, hosts: &BTreeSet<Host>) -> bool {
        self.pending.values().any(|purpose| purpose.concerns(hosts))
    }

    /// Whether every question is answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// A question is under way; the ticket under which its answer comes.
    fn insert_pending(&mut self, cx: &mut Context, purpose: SeenPurpose) -> SeenTicket {
        let ticket = cx.number();
        self.pending.insert(ticket, purpose);
        ticket
    }
}
