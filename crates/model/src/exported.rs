//! Pages and links on their way to a reader.
//!
//! As with servers, each row is the JSON that its owner writes; here are the fields that this version knows, and the place at which a
//! reader goes on.

use super::{
    access_point::AccessPoint,
    fetch::FetchError,
    fingerprint::{Fingerprint, FingerprintKey},
    ownership_map::at_most,
    record::RunState,
    revisit::Change,
    time::{Millis, WallTime},
    url::{Host, PageUrl},
    view::{EventRow, EventView, EventsHead},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt::Write;
use utoipa::ToSchema;

/// Rows in one answer.
pub const MAX_EXPORTED: usize = 4_096;

/// Bytes of rows in one answer, unless the first one is longer: half of the longest message.
pub const MAX_EXPORTED_BYTES: usize = 512 << 10;

/// Links and names in one [`LinkRow`]: a page with more has several rows.
pub const MAX_IDS: usize = 4_096;

/// Bytes of names in one [`LinkRow`], unless the first one is longer.
pub const MAX_NAME_BYTES: usize = 128 << 10;

/// What is exported, host by host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExportOf {
    /// Only the names of the hosts, each a row.
    Hosts,
    /// A [`PageRow`] for each visit.
    Pages,
    /// [`LinkRow`]s that name other hosts, and only count links within the host.
    HostLinks,
    /// [`LinkRow`]s that name pages.
    PageLinks,
    /// No rows of hosts: an [`EventRow`] for each delegation, judgement and hand-over that ended lately at the member that is asked, behind an
    /// [`EventsHead`]. A member tells only its own, and passes this question on to no other one.
    Events,
}

/// How far a reader is: everything before this is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct ExportPlace {
    /// A host.
    #[schema(value_type = String)]
    pub host: Host,
    /// Where in its journal; none if all of it is known, and the next host is wanted.
    pub within: Option<JournalPlace>,
}

/// A place in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct JournalPlace {
    /// Which run; 0 for the one that answers at present, from its beginning.
    pub run: u32,
    /// The first row of it of which not all is known.
    pub sequence: u64,
    /// How many of the rows that it leads to are known.
    pub part: u32,
}

/// A question for rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportQuery {
    /// Of what.
    pub of: ExportOf,
    /// From where on; none from the first host on.
    pub from: Option<ExportPlace>,
}

/// Some of the rows, in the order of hosts and within a host in the order of its journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExportedRows {
    /// One JSON object each (host names as they are), at most [`MAX_EXPORTED`].
    #[serde(deserialize_with = "at_most::<_, _, MAX_EXPORTED>")]
    pub rows: Vec<String>,
    /// Where to go on; none at the end.
    pub next: Option<ExportPlace>,
}

impl ExportPlace {
    /// Whether this is behind another one, as it has to be if a reader is to come to an end.
    pub fn is_behind(&self, before: Option<&ExportPlace>) -> bool {
        let Some(before) = before else { return true };
        let rank = |place: &ExportPlace| place.within.map_or((1, 0, 0), |within| (0, within.sequence, within.part));
        (&self.host, rank(self)) > (&before.host, rank(before))
    }
}

/// The host of places among events, which belong to none. No server can have this name (RFC 6761).
const OF_EVENTS: &str = "events.invalid";

impl ExportPlace {
    /// Behind the events up to this number.
    fn behind_event(number: u64) -> Option<ExportPlace> {
        let within = Some(JournalPlace { run: 0, sequence: number.saturating_add(1), part: 0 });
        Some(ExportPlace { host: OF_EVENTS.parse().ok()?, within })
    }
}

impl ExportedRows {
    /// As many of these numbered events as fit into an answer, from a place on; before the first one what is not kept any more.
    pub fn of_events(
        me: AccessPoint,
        from: Option<&ExportPlace>,
        dropped: u64,
        events: impl Iterator<Item = (u64, EventView)>,
    ) -> ExportedRows {
        let first = from.and_then(|from| from.within).map_or(0, |within| within.sequence);
        let mut rows: Vec<String> = if from.is_none() { as_json(&EventsHead { dropped }).into_iter().collect() } else { Vec::new() };
        let (mut bytes, mut last) = (0, None);
        for (number, event) in events.filter(|(number, _)| *number >= first) {
            let Some(row) = as_json(&EventRow { access_point: me, event }) else { continue };
            bytes += row.len();
            if rows.len() >= MAX_EXPORTED || (last.is_some() && bytes > MAX_EXPORTED_BYTES) {
                return ExportedRows { rows, next: last.and_then(ExportPlace::behind_event) };
            }
            rows.push(row);
            last = Some(number);
        }
        ExportedRows { rows, next: None }
    }

    /// A host has changed hands: there are no rows of it here any more.
    pub fn without(host: &Host, run: u32) -> ExportedRows {
        let missing = MissingRow { host: host.clone(), run, missing_text: "the server has changed hands".to_owned() };
        ExportedRows { rows: as_json(&missing).into_iter().collect(), next: Some(ExportPlace { host: host.clone(), within: None }) }
    }

    /// As many of these names as fit into an answer.
    pub fn of_hosts<'a>(hosts: impl IntoIterator<Item = &'a Host>) -> ExportedRows {
        let (mut rows, mut bytes, mut last): (Vec<String>, usize, Option<&Host>) = (Vec::new(), 0, None);
        for host in hosts {
            bytes += host.as_str().len() + 4;
            if rows.len() >= MAX_EXPORTED || bytes > MAX_EXPORTED_BYTES {
                return ExportedRows { rows, next: last.map(|host| ExportPlace { host: host.clone(), within: None }) };
            }
            rows.push(host.as_str().to_owned());
            last = Some(host);
        }
        ExportedRows { rows, next: None }
    }
}

/// A row as it goes to a reader.
pub fn as_json(row: &impl Serialize) -> Option<String> {
    serde_json::to_string(row).ok()
}

/// What came of a visit, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageOutcome {
    /// An HTML page.
    Page,
    /// Something else than HTML.
    NotHtml,
    /// A redirect.
    Redirect,
    /// An answer that is neither a success nor a usable redirect.
    Status,
    /// No usable answer.
    Failed,
}

/// One visit, as its owner has it on record. `fetch_time`, `fetch_status` and `url` are called as in Common Crawl's index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRow {
    /// The owner, which says all this.
    pub access_point: AccessPoint,
    /// The host of the URL.
    pub host: Host,
    /// The starting host of its tree, without `www.`.
    pub tree: Host,
    /// The number of the run, from 1.
    pub run: u32,
    /// How that run stands; `running` or `paused-by-budget` only if it is the first one of its server.
    pub run_state: RunState,
    /// The URL that was asked for, in canonical form.
    pub url: PageUrl,
    /// Links from a starting URL.
    pub level: u8,
    /// When the request was sent.
    pub fetch_time: WallTime,
    /// The HTTP status; none if there was no usable answer. 304: the page is the version that the run before downloaded.
    pub fetch_status: Option<u16>,
    /// What came of it.
    pub outcome: PageOutcome,
    /// Why there was no usable answer.
    #[serde(default)]
    pub failure: Option<FetchError>,
    /// Where a redirect leads; none if that is not on record.
    #[serde(default)]
    pub fetch_redirect: Option<PageUrl>,
    /// The content type as the server said it, in lower case without parameters; none if it said none, of an answer that is not a success, and of
    /// a page that has not changed.
    #[serde(default)]
    pub content_mime_type: Option<String>,
    /// The content type by the beginning of the page; none if that is of no HTML, and where the body was not read.
    #[serde(default)]
    pub content_mime_detected: Option<String>,
    /// Time from request to last byte.
    pub took_ms: Millis,
    /// Time from request to first byte.
    #[serde(default)]
    pub first_byte_us: Option<u32>,
    /// Bytes of the body over the wire.
    pub bytes: u64,
    /// Size of the page's body over the wire, as it was downloaded last: `bytes`, except of a page that has not changed; 0 of what is no HTML page.
    /// The sum is `page_bytes` of the server.
    pub page_bytes: u64,
    /// It asks not to be indexed.
    pub no_index: bool,
    /// It asks that its links are not followed.
    pub no_follow: bool,
    /// What became of it since the run before; none if it is no page, or nothing is noted.
    #[serde(default)]
    pub change: Option<Change>,
    /// Equal bodies have equal ones: 16 hexadecimal digits. None if it is no page.
    #[serde(default)]
    pub content: Option<String>,
    /// `ETag`, as the server said it.
    #[serde(default)]
    pub etag: Option<String>,
    /// `Last-Modified`, as the server said it.
    #[serde(default)]
    pub last_modified: Option<String>,
    /// Links to pages of its host.
    pub internal_links: u64,
    /// Links to other hosts in scope, those of its tree among them.
    pub external_links: u64,
    /// Links out of scope.
    pub links_beyond_scope: u64,
    /// Accessibility failures that were detected, of all rules; none if it was not evaluated.
    #[serde(default)]
    pub detected_failures: Option<u64>,
    /// The version of the rule set; none if it was not evaluated.
    #[serde(default)]
    pub evaluation_rules: Option<u32>,
}

/// What a row of a journal says of links: where they lead, by numbers that only this run of this host has, and what the numbers mean that
/// come up for the first time. Who reads the rows of a run in order knows every name, except where a journal has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRow {
    /// The host whose journal it is.
    pub host: Host,
    /// The number of the run, from 1.
    pub run: u32,
    /// How that run stands.
    pub run_state: RunState,
    /// The page or redirect whose links these are; none if there are only names.
    #[serde(default)]
    pub url: Option<PageUrl>,
    /// Whether these are further links of the page in the row before.
    #[serde(default)]
    pub goes_on: bool,
    /// How many lead to pages of the same host.
    #[serde(default)]
    pub internal: u64,
    /// Where these lead; empty if only hosts are named.
    #[serde(default)]
    pub children: LinkIds,
    /// Where the links to other hosts in scope lead.
    #[serde(default)]
    pub elsewhere: LinkIds,
    /// Hosts out of scope that it links to.
    #[serde(default)]
    pub beyond: Vec<Host>,
    /// How many links lead there.
    #[serde(default)]
    pub beyond_urls: u64,
    /// The URLs, or only the hosts, of the numbers in `named`, in their order.
    #[serde(default)]
    pub names: Vec<String>,
    /// Numbers that have a name from now on.
    #[serde(default)]
    pub named: LinkIds,
}

/// The owner says that it cannot tell the rows of a host, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingRow {
    /// The host.
    pub host: Host,
    /// The run that was asked for.
    pub run: u32,
    /// Why there are no rows, or no more of them.
    pub missing_text: String,
}

/// Numbers that stand for URLs, in JSON 16 hexadecimal digits each, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkIds(pub Vec<u64>);

impl Serialize for LinkIds {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(16 * self.0.len());
        for id in &self.0 {
            // Writing into a string does not fail.
            let _ = write!(text, "{id:016x}");
        }
        to.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for LinkIds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LinkIds, D::Error> {
        let text = String::deserialize(from)?;
        let (ids, rest) = text.as_bytes().as_chunks::<16>();
        if !rest.is_empty() || ids.len() > 2 * MAX_IDS {
            return Err(de::Error::custom("these are not numbers of links"));
        }
        let read = |id: &[u8; 16]| id.iter().try_fold(0u64, |id, digit| Some(id << 4 | u64::from(char::from(*digit).to_digit(16)?)));
        ids.iter().map(read).collect::<Option<_>>().map(LinkIds).ok_or_else(|| de::Error::custom("these are not numbers of links"))
    }
}

/// Makes the numbers by which the links of one run of one host are told to readers: from fingerprints, which stay secret.
#[derive(Clone, Copy, Debug)]
pub struct LinkNumbers(FingerprintKey);

impl LinkNumbers {
    /// For this run of this host.
    pub fn of(secret: &FingerprintKey, host: &Host, run: u32) -> LinkNumbers {
        let half = |half: u8| secret.of(&format!("links {half} {run} {host}")).0.to_be_bytes();
        let (mut key, (first, second)) = ([0; 16], (half(1), half(2)));
        key[..8].copy_from_slice(&first);
        key[8..].copy_from_slice(&second);
        LinkNumbers(FingerprintKey(key))
    }

    /// The number of a URL.
    pub fn number(&self, url: Fingerprint) -> u64 {
        self.0.of_fingerprint(url).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{EventKind, EventOutcome};

    #[test]
    fn numbers_of_links_are_read_as_they_were_written_and_nothing_else_is() {
        let ids = LinkIds(vec![0, 1, u64::MAX, 0x0123_4567_89ab_cdef]);
        let text = serde_json::to_string(&ids).unwrap();
        assert_eq!(text, "\"00000000000000000000000000000001ffffffffffffffff0123456789abcdef\"");
        assert_eq!(serde_json::from_str::<LinkIds>(&text).unwrap(), ids);
        for wrong in ["\"0\"", "\"000000000000000g\"", "\"+00000000000000f\"", "7", "\"00000000000000é\""] {
            assert!(serde_json::from_str::<LinkIds>(wrong).is_err(), "{wrong}");
        }
        let too_many = format!("\"{}\"", "0".repeat(16 * (2 * MAX_IDS + 1)));
        assert!(serde_json::from_str::<LinkIds>(&too_many).is_err());
    }

    #[test]
    fn events_are_told_a_piece_at_a_time_and_each_once() {
        let event = |number: u64| EventView {
            kind: EventKind::Judgement,
            begun_at: WallTime(number),
            duration_ms: 1,
            subnet: "192.0.2.0/24".parse().unwrap(),
            outcome: EventOutcome::Rewarded,
            from: None,
            to: AccessPoint([2; 32]),
            probes: None,
            policy: None,
            reason_text: Some("x".repeat(200)),
            requests: Some(16),
            took_ms: Some(3),
        };
        let (me, mut from, mut told, mut pieces) = (AccessPoint([1; 32]), None::<ExportPlace>, Vec::new(), 0);
        loop {
            let piece = ExportedRows::of_events(me, from.as_ref(), 7, (7..5_000).map(|number| (number, event(number))));
            assert!(piece.rows.iter().map(String::len).sum::<usize>() <= MAX_EXPORTED_BYTES + 64);
            pieces += 1;
            told.extend(piece.rows);
            let Some(next) = piece.next else { break };
            assert!(next.is_behind(from.as_ref()));
            from = Some(next);
        }
        assert!(pieces > 2 && serde_json::from_str::<EventsHead>(&told[0]).unwrap() == EventsHead { dropped: 7 }, "{pieces} pieces");
        let rows: Vec<EventRow> = told[1..].iter().map(|row| serde_json::from_str(row).unwrap()).collect();
        assert!(rows.iter().map(|row| row.event.begun_at.0).eq(7..5_000) && rows.iter().all(|row| row.access_point == me));
    }

    #[test]
    fn a_place_is_behind_another_one_only_if_there_is_an_end_of_that() {
        let place = |host: &str, within: Option<(u32, u64)>| ExportPlace {
            host: host.parse().unwrap(),
            within: within.map(|(run, sequence)| JournalPlace { run, sequence, part: run }),
        };
        let places = [
            place("a.ke", Some((9, 0))),
            place("a.ke", Some((1, 7))),
            place("a.ke", Some((2, 7))),
            place("a.ke", None),
            place("b.ke", Some((1, 1))),
        ];
        for (number, one) in places.iter().enumerate() {
            assert!(one.is_behind(None) && !one.is_behind(Some(one)));
            assert!(places.iter().enumerate().all(|(other, before)| one.is_behind(Some(before)) == (number > other)));
        }
    }

    #[test]
    fn a_link_has_another_number_in_every_run_of_every_host() {
        let secret = FingerprintKey([7; 16]);
        let number = |host: &str, run| LinkNumbers::of(&secret, &host.parse().unwrap(), run).number(Fingerprint(5));
        let all = [number("a.ke", 1), number("a.ke", 2), number("b.ke", 1), 5];
        assert!((0..4).all(|one| (0..one).all(|other| all[one] != all[other])));
        assert_eq!(number("a.ke", 1), all[0]);
    }

    #[test]
    fn hosts_come_in_pieces() {
        let hosts: Vec<Host> = (0..MAX_EXPORTED + 2).map(|number| format!("h{number:05}.ke").parse().unwrap()).collect();
        let first = ExportedRows::of_hosts(&hosts);
        assert_eq!((first.rows.len(), &first.next.unwrap().host), (MAX_EXPORTED, &hosts[MAX_EXPORTED - 1]));
        let rest = ExportedRows::of_hosts(&hosts[MAX_EXPORTED..]);
        assert_eq!((rest.rows.len(), rest.next), (2, None));
    }
}
