//! The journal of a site: the only thing that is stored, copied to replicas and handed over.
//!
//! A site tree is the fold of its journal. A new owner who reads it knows which pages were fetched, which wait, what robots.txt
//! said and when the server was last asked, without asking the server again.

use super::{
    claim::MAX_EPOCH,
    crawled_by::{CrawledBy, MAX_BUDGET},
    evaluation::{Evaluation, Rule},
    facts::Fact,
    fetch::{FetchError, PageType, Served},
    fingerprint::Fingerprint,
    ownership_history::OwnershipHistory,
    revisit::{Change, Validators},
    run_history::RunHistory,
    sketch::Sketch,
    subnet::Subnet,
    time::{Millis, WallTime},
    url::{Host, Origin, PageUrl},
};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Which journal: a host's, in one run, filed under the subnet that its address lies in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JournalKey {
    /// The smallest subnet of the host's address.
    pub subnet: Subnet,
    /// The host whose visits the journal records. `www.` and other subdomains are hosts, and have journals, of their own.
    pub host: Host,
    /// The run, from 1.
    pub run: u32,
}

/// One line of a journal as stored and copied: postcard of a [`JournalEntry`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalRow {
    /// The journal that the row belongs to.
    pub key: JournalKey,
    /// From 0, without gaps.
    pub sequence: u64,
    /// The [`JournalEntry`], encoded with postcard.
    pub entry: Vec<u8>,
}

/// Which tree a URL belongs to, and how deep it lies there (LL-2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The tree, by its starting host without `www.`.
    pub tree: Host,
    /// Links from a starting URL; a redirect does not count.
    pub level: u8,
    /// Redirects followed on the way here.
    pub hops: u8,
}

/// A URL on its way to its owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Arrival {
    /// The page's URL, in canonical form.
    pub url: PageUrl,
    /// The tree and level it was found at; none for a starting URL (an external link or a seed).
    pub place: Option<Place>,
    /// The run of the tree that named it.
    pub run: u32,
}

/// How a visit ended, for the record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VisitOutcome {
    /// An HTML page with this status.
    Page(u16),
    /// Something else than HTML.
    NotHtml(u16),
    /// A redirect with this status; its target became a URL to visit (`found` or `outgoing` of the same row).
    Redirect(u16),
    /// An answer with this status that is neither a success nor a usable redirect.
    Status(u16),
    /// No usable answer: the request failed for this reason.
    Failed(FetchError),
    /// An HTML page that asks something of robots, by `X-Robots-Tag` or a meta element. At the end, so that journals written
    /// before it was known can be read.
    RestrictedPage {
        /// The HTTP status of the answer.
        status: u16,
        /// Its content is not to be indexed.
        no_index: bool,
        /// Its links were not followed.
        no_follow: bool,
    },
    /// An HTML page, and as what it came.
    ServedPage {
        /// The HTTP status of the answer.
        status: u16,
        /// Its content is not to be indexed.
        no_index: bool,
        /// Its links were not followed.
        no_follow: bool,
        /// As what it came.
        served: Served,
    },
    /// Something else than HTML, and what.
    NotHtmlAs {
        /// The HTTP status of the answer.
        status: u16,
        /// The content type as the server said it, in lower case without parameters, cut at 64 characters; empty if there was none.
        content_type: String,
    },
    /// A redirect, and where to.
    RedirectTo {
        /// The HTTP status of the answer.
        status: u16,
        /// Where it leads, in canonical form.
        to: PageUrl,
    },
}

impl VisitOutcome {
    /// Whether the answer was an HTML page, restricted or not.
    pub fn is_page(&self) -> bool {
        matches!(self, VisitOutcome::Page(_) | VisitOutcome::RestrictedPage { .. } | VisitOutcome::ServedPage { .. })
    }

    /// Whether the answer led elsewhere.
    pub fn is_redirect(&self) -> bool {
        matches!(self, VisitOutcome::Redirect(_) | VisitOutcome::RedirectTo { .. })
    }

    /// Where the answer led; none if it did not, or that is not on record.
    pub fn redirect(&self) -> Option<&PageUrl> {
        if let VisitOutcome::RedirectTo { to, .. } = self { Some(to) } else { None }
    }

    /// The content type as the server said it; none if it said none, or that is not on record.
    pub fn content_type(&self) -> Option<&str> {
        match self {
            VisitOutcome::ServedPage { served, .. } => Some(served.said.name()),
            VisitOutcome::NotHtmlAs { content_type, .. } => Some(content_type.as_str()).filter(|content_type| !content_type.is_empty()),
            _ => None,
        }
    }

    /// The content type by the beginning of the body; none if that was not read, is of no page, or is not on record.
    pub fn detected_type(&self) -> Option<&'static str> {
        if let VisitOutcome::ServedPage { served, .. } = self { served.detected.map(PageType::name) } else { None }
    }

    /// Whether it asks not to be indexed, and whether it asks that its links are not followed.
    pub fn asks_of_robots(&self) -> (bool, bool) {
        match self {
            VisitOutcome::RestrictedPage { no_index, no_follow, .. } | VisitOutcome::ServedPage { no_index, no_follow, .. } => {
                (*no_index, *no_follow)
            }
            _ => (false, false),
        }
    }

    /// The status of the answer, if there was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            VisitOutcome::Page(status)
            | VisitOutcome::NotHtml(status)
            | VisitOutcome::Redirect(status)
            | VisitOutcome::Status(status)
            | VisitOutcome::RestrictedPage { status, .. }
            | VisitOutcome::ServedPage { status, .. }
            | VisitOutcome::NotHtmlAs { status, .. }
            | VisitOutcome::RedirectTo { status, .. } => Some(*status),
            VisitOutcome::Failed(_) => None,
        }
    }
}

/// One thing that happened at a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JournalEntry {
    /// The owner opened the site for this run. Always the first entry.
    Opened {
        /// The pinned address.
        address: IpAddr,
        /// The tree that the site belongs to, by its starting host without `www.`.
        tree: Host,
        /// When the site was opened, by the owner's wall clock.
        at: WallTime,
    },
    /// URLs were taken in from outside: seeds, other sites, other owners.
    Admitted {
        /// The URLs with their level and redirects so far.
        urls: Vec<(PageUrl, u8, u8)>,
    },
    /// robots.txt of an origin was asked for.
    Robots {
        /// The origin (scheme, host, port) whose robots.txt it is.
        origin: Origin,
        /// When the request was sent, by the owner's wall clock.
        at: WallTime,
        /// What came: status and body, or why nothing did.
        answer: Result<(u16, Vec<u8>), FetchError>,
        /// Time from request to last byte, in milliseconds.
        took: Millis,
    },
    /// A page was asked for.
    Visited {
        /// The page's URL.
        url: PageUrl,
        /// Links from the starting URL to this page, 0 for the starting URL itself.
        level: u8,
        /// When the request was sent, by the owner's wall clock.
        at: WallTime,
        /// How the visit ended.
        outcome: VisitOutcome,
        /// Time from request to last byte, in milliseconds.
        took: Millis,
        /// Time from request to first byte, in microseconds; none if no byte came.
        first_byte_us: Option<u32>,
        /// Bytes of the body over the wire.
        bytes: u64,
        /// The server's software, if it said so and it differs from what is known.
        software: Option<String>,
        /// Internal links by fingerprint, so that a shorter way that is found later can be passed on.
        children: Vec<Fingerprint>,
        /// URLs of this site first seen here, with level and redirects: they wait, or are cut if the level is beyond the depth.
        found: Vec<(PageUrl, u8, u8)>,
        /// URLs for other sites, to be handed to their owners.
        outgoing: Vec<Arrival>,
        /// External hosts that are out of scope: counted, never fetched.
        beyond_scope: Vec<Host>,
        /// For how long the server asked to be left alone (Retry-After), if it did.
        rest: Option<Millis>,
    },
    /// Known pages got a shorter level.
    Raised {
        /// The URLs that thereby came within the depth, or wait at a better place, with level and redirects.
        urls: Vec<(PageUrl, u8, u8)>,
        /// Pages already visited that now have this level.
        visited: Vec<(Fingerprint, u8)>,
    },
    /// A URL was set aside without asking the server.
    Skipped {
        /// The URL that was not asked for.
        url: PageUrl,
        /// Why the server was not asked for it.
        reason: SkipReason,
    },
    /// Everything outgoing up to (not including) this sequence number has been taken in by its owners.
    Forwarded {
        /// The first sequence number that may not have been.
        before: u64,
    },
    /// A new owner goes on from here. Of several copies of a journal the one that was taken over last is the true one: its
    /// owner had read all that could be found, and what others wrote behind the same place was never recorded.
    TakenOver {
        /// The epoch of the new owner's claim.
        epoch: u64,
    },
    /// A new slot began: the page budget counts anew.
    Resumed {
        /// When the slot began, by the owner's wall clock.
        at: WallTime,
    },
    /// URLs that had lost to another URL of their script come nearer, and win.
    Reopened {
        /// The URLs with level and redirects.
        urls: Vec<(PageUrl, u8, u8)>,
    },
    /// What this run saw can be compared with the run before it.
    Follows {
        /// The number of that run.
        run: u32,
        /// Pages that it had.
        pages: u64,
    },
    /// What the next run needs of the visit in the row before this one.
    Kept {
        /// The fingerprint of the URL that was visited.
        page: Fingerprint,
        /// The level at which it was visited.
        level: u8,
        /// What the server said of the page's version.
        validators: Validators,
        /// What its content is ([`super::revisit::content_of`]); 0 if it is no page.
        content: u64,
        /// What its body took over the wire when it was last downloaded, in bytes.
        size: u64,
        /// What became of it since the run before; none if it is no page and was none.
        change: Option<Change>,
        /// Its links to other sites in scope, and to other hosts of the tree, in document order.
        elsewhere: Vec<Fingerprint>,
        /// Those of them that this journal had not named before.
        named: Vec<PageUrl>,
    },
    /// Pages known already turned out to be starting URLs: the next run begins with them, too.
    Started {
        /// The starting URLs.
        urls: Vec<PageUrl>,
    },
    /// What the visit before this row named out of scope: counted, never fetched.
    Beyond {
        /// The fingerprint of the URL that was visited.
        page: Fingerprint,
        /// The URLs, each by half its fingerprint.
        urls: Vec<u32>,
    },
    /// What the owner of the subnet knows of its owners, for the next one. Only the last one counts; it stands in one
    /// journal of the subnet at least.
    OwnershipHistory(OwnershipHistory),
    /// What came of looking for failures in the page that was visited last.
    Evaluated {
        /// The fingerprint of the URL that was visited.
        page: Fingerprint,
        /// The failures detected, by rule.
        evaluation: Evaluation,
        /// How long it took, in microseconds; 0 if the page is the version that the run before evaluated.
        took_us: u32,
    },
    /// The host has another address. A journal that is filed under `from` ends here, as long as no further row of this kind leads back; its
    /// copy that is filed under `to` goes on. Both may be the same subnet.
    Moved {
        /// The subnet of the address that it had.
        from: Subnet,
        /// The subnet of the address that it has.
        to: Subnet,
        /// The address that it has.
        address: IpAddr,
    },
    /// What the last whole run came to, in a journal of the next one: it answers until this one is whole. Stands behind the opening.
    WholeRun {
        /// That run's [`ServerRecord`](super::record::ServerRecord) as JSON, which may get further fields.
        record: Vec<u8>,
    },
    /// What came of looking for failures in the page that was visited last, and by which rules. Of an `Evaluated` row the rules are not known.
    EvaluatedBy {
        /// The fingerprint of the URL that was visited.
        page: Fingerprint,
        /// The failures detected, by rule.
        evaluation: Evaluation,
        /// How long it took, in microseconds; 0 if the page is the version that the run before evaluated.
        took_us: u32,
        /// The version of the rule set ([`super::evaluation::RULE_SET`]).
        rules: u32,
    },
    /// The visit before this row, or the run before this one, named hosts that a limit on new hosts holds back. They wait until a `Released`
    /// row names them. Of a host that waits already it says which limit holds it back from now on.
    HeldBack {
        /// Which limit.
        by: HostLimit,
        /// The URLs at these hosts, as they will be handed to their owners.
        urls: Vec<Arrival>,
    },
    /// Limits let go on what they had held back.
    Released {
        /// When, by the owner's wall clock.
        at: WallTime,
        /// The URLs, to be handed to their owners. Nothing more waits for their hosts.
        outgoing: Vec<Arrival>,
    },
    /// Hosts to which earlier runs led: in this one they are not new.
    Followed {
        /// When the day began in which `new` hosts were led to, by the owner's wall clock.
        since: WallTime,
        /// How many external ones were new since then.
        new: u64,
        /// The hosts, each by its fingerprint.
        hosts: Vec<Fingerprint>,
    },
    /// The visit before this row named URLs at new hosts that do not even wait, because too many do.
    NotKept {
        /// How many.
        urls: u64,
    },
    /// URLs that the visit before this row found were not queued, because as many waited at this access point as may. They stand there as
    /// if they lay beyond the depth, and are raised when there is room.
    NotQueued {
        /// Each by its fingerprint, with the level at which it is to be queued.
        urls: Vec<(Fingerprint, u8)>,
    },
    /// What an answer says of the server besides its pages, as far as it was not known.
    Learnt {
        /// Each kind at most once.
        facts: Vec<Fact>,
    },
    /// What came of looking for failures in the page that was visited last, by which rules, and where it fails them.
    EvaluatedAt {
        /// The fingerprint of the URL that was visited.
        page: Fingerprint,
        /// The failures detected, by rule.
        evaluation: Evaluation,
        /// How long it took, in microseconds; 0 if the page is the version that the run before evaluated.
        took_us: u32,
        /// The version of the rule set ([`super::evaluation::RULE_SET`]).
        rules: u32,
        /// The lines, from 1, in which the first element begins that fails each of the rules in the evaluation, in their order; none if that
        /// is not known.
        lines: Vec<u32>,
    },
    /// What earlier runs of the host came to, each in short. Stands behind the opening.
    History(RunHistory),
    /// What the last whole run named, in a journal of the next one: it counts until this one is whole. Stands behind that run's `WholeRun`.
    NamedHosts {
        /// Its external hosts.
        hosts: Sketch,
        /// Their registrable domains.
        domains: Sketch,
    },
    /// By which rules the pages below are chosen, other than those above. Stands before a visit.
    CrawledBy(CrawledBy),
}

/// Which limit holds a new host back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HostLimit {
    /// New external hosts of one site in a day.
    Site,
    /// New hosts of one registrable domain in a day.
    Domain,
}

/// The most facts that a row has: more than there are kinds.
const MAX_FACTS: usize = 32;

/// The longest record of a whole run that a row holds, in bytes.
const MAX_RECORD: usize = 65_536;

/// The longest time a request can have taken, in milliseconds: a day. Far beyond every configurable limit.
const MAX_TOOK: Millis = 86_400_000;

/// The most bytes that one visit can have moved: a tebibyte.
const MAX_BYTES: u64 = 1 << 40;

/// The deepest level that a row can name: one below the deepest that is fetched.
const MAX_LEVEL: u8 = 64;

/// The most redirects that a row can name.
const MAX_HOPS: u8 = 16;

impl JournalKey {
    /// Whether an honest owner can have written such a journal; there is always a run after it.
    pub fn is_plausible(&self) -> bool {
        self.run < u32::MAX
    }
}

impl JournalEntry {
    /// Whether an honest owner can have written this. Journals come from other members, too, and what they say is added up: numbers within
    /// these limits cannot overflow the sums.
    pub fn is_plausible(&self) -> bool {
        let plausible = |urls: &[(PageUrl, u8, u8)]| urls.iter().all(|(_, level, hops)| *level <= MAX_LEVEL && *hops <= MAX_HOPS);
        match self {
            JournalEntry::Admitted { urls } | JournalEntry::Reopened { urls } => plausible(urls),
            JournalEntry::Raised { urls, visited } => plausible(urls) && visited.iter().all(|(_, level)| *level <= MAX_LEVEL),
            JournalEntry::Robots { took, .. } => *took <= MAX_TOOK,
            JournalEntry::Visited { level, took, bytes, found, .. } => {
                *level <= MAX_LEVEL && *took <= MAX_TOOK && *bytes <= MAX_BYTES && plausible(found)
            }
            JournalEntry::Kept { level, size, .. } => *level <= MAX_LEVEL && *size <= MAX_BYTES,
            JournalEntry::Follows { run, pages } => *run < u32::MAX && *pages <= MAX_BYTES,
            JournalEntry::TakenOver { epoch } => *epoch <= MAX_EPOCH,
            JournalEntry::Moved { to, address, .. } => to.contains(*address),
            JournalEntry::WholeRun { record } => record.len() <= MAX_RECORD,
            JournalEntry::HeldBack { urls: arrivals, .. } | JournalEntry::Released { outgoing: arrivals, .. } => {
                let fits = |place: &Place| place.level <= MAX_LEVEL && place.hops <= MAX_HOPS;
                arrivals.iter().all(|arrival| arrival.place.as_ref().is_none_or(fits))
            }
            JournalEntry::Followed { new, .. } => *new <= MAX_BYTES,
            JournalEntry::NotKept { urls } => *urls <= MAX_BYTES,
            JournalEntry::NotQueued { urls } => urls.iter().all(|(_, level)| *level <= MAX_LEVEL),
            JournalEntry::Learnt { facts } => facts.len() <= MAX_FACTS && facts.iter().all(Fact::is_plausible),
            JournalEntry::EvaluatedAt { lines, .. } => lines.len() <= Rule::ALL.len(),
            JournalEntry::History(history) => history.is_plausible(),
            JournalEntry::CrawledBy(by) => by.depth <= MAX_LEVEL && by.max_pages_per_run <= MAX_BUDGET,
            JournalEntry::Opened { .. }
            | JournalEntry::Skipped { .. }
            | JournalEntry::Forwarded { .. }
            | JournalEntry::Resumed { .. }
            | JournalEntry::Started { .. }
            | JournalEntry::Beyond { .. }
            | JournalEntry::OwnershipHistory(_)
            | JournalEntry::Evaluated { .. }
            | JournalEntry::EvaluatedBy { .. }
            | JournalEntry::NamedHosts { .. } => true,
        }
    }
}

/// Why a URL was set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// robots.txt says no.
    Robots,
    /// robots.txt could not be had (5xx or unreachable), so nothing may be asked.
    RobotsUnavailable,
    /// Another URL of the same script was fetched (LL-7).
    Script,
    /// Crawl-delay is longer than 300 s.
    CrawlDelay,
    /// The operator's deny list.
    Denied,
    /// Too many redirects on the way.
    TooManyRedirects,
    /// Too few new external hosts are to be expected of it.
    Yield,
    /// It was a guess: a host was named without a scheme, its robots.txt could not be had over https, and it is asked over http instead. What
    /// was counted of it before ([`SkipReason::RobotsUnavailable`]) is taken back.
    OtherScheme,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Journals of earlier versions have to be read for ever: what is told apart keeps its number, and new kinds get the next ones.
    #[test]
    fn kinds_of_rows_and_outcomes_keep_their_numbers() {
        let net = |text: &str| text.parse::<Subnet>().unwrap();
        let number = |entry: JournalEntry| postcard::to_stdvec(&entry).unwrap()[0];
        assert_eq!(number(JournalEntry::Admitted { urls: Vec::new() }), 1);
        assert_eq!(number(JournalEntry::Raised { urls: Vec::new(), visited: Vec::new() }), 4);
        assert_eq!(number(JournalEntry::Forwarded { before: 1 }), 6);
        assert_eq!(number(JournalEntry::TakenOver { epoch: 1 }), 7);
        assert_eq!(number(JournalEntry::Resumed { at: WallTime(1) }), 8);
        assert_eq!(number(JournalEntry::Reopened { urls: Vec::new() }), 9);
        assert_eq!(number(JournalEntry::Follows { run: 1, pages: 1 }), 10);
        assert_eq!(number(JournalEntry::Started { urls: Vec::new() }), 12);
        assert_eq!(number(JournalEntry::Beyond { page: Fingerprint(1), urls: Vec::new() }), 13);
        assert_eq!(number(JournalEntry::OwnershipHistory(OwnershipHistory::default())), 14);
        assert_eq!(number(JournalEntry::Evaluated { page: Fingerprint(1), evaluation: Evaluation::default(), took_us: 1 }), 15);
        let moved = JournalEntry::Moved { from: net("9.0.0.0/24"), to: net("9.0.1.0/24"), address: "9.0.1.7".parse().unwrap() };
        assert!(moved.is_plausible());
        assert_eq!(number(moved), 16);
        assert_eq!(number(JournalEntry::WholeRun { record: Vec::new() }), 17);
        let by = JournalEntry::EvaluatedBy { page: Fingerprint(1), evaluation: Evaluation::default(), took_us: 1, rules: 1 };
        assert_eq!(number(by), 18);
        assert_eq!(number(JournalEntry::HeldBack { by: HostLimit::Site, urls: Vec::new() }), 19);
        assert_eq!(number(JournalEntry::Released { at: WallTime(1), outgoing: Vec::new() }), 20);
        assert_eq!(number(JournalEntry::Followed { since: WallTime(1), new: 1, hosts: Vec::new() }), 21);
        assert_eq!(number(JournalEntry::NotKept { urls: 1 }), 22);
        assert_eq!(number(JournalEntry::NotQueued { urls: Vec::new() }), 23);
        assert_eq!(number(JournalEntry::Learnt { facts: Vec::new() }), 24);
        assert_eq!(number(JournalEntry::History(RunHistory::default())), 26);
        assert_eq!(number(JournalEntry::NamedHosts { hosts: Sketch::default(), domains: Sketch::default() }), 27);
        let by = |depth| JournalEntry::CrawledBy(CrawledBy::new(depth, 4_000, 1_000));
        assert!(number(by(3)) == 28 && by(MAX_LEVEL).is_plausible() && !by(MAX_LEVEL + 1).is_plausible());
        let unclean = |usage: &str| JournalEntry::Learnt { facts: vec![Fact::ContentUsage(usage.to_owned())] };
        assert!(unclean("train-ai=n").is_plausible() && !unclean("a\u{7}").is_plausible());
        let at = |lines| {
            let (page, evaluation) = (Fingerprint(1), Evaluation::default());
            JournalEntry::EvaluatedAt { page, evaluation, took_us: 1, rules: 1, lines }
        };
        assert_eq!(number(at(Vec::new())), 25);
        assert!(at(vec![1; 34]).is_plausible() && !at(vec![1; 35]).is_plausible());
        assert!(!JournalEntry::WholeRun { record: vec![0; MAX_RECORD + 1] }.is_plausible());
        let outcome = |outcome: VisitOutcome| postcard::to_stdvec(&outcome).unwrap()[0];
        assert_eq!((outcome(VisitOutcome::Page(200)), outcome(VisitOutcome::Status(404))), (0, 3));
        assert_eq!(outcome(VisitOutcome::RestrictedPage { status: 200, no_index: true, no_follow: true }), 5);
    }
}
