//! Record of the requests of one hour: of each server how often it was asked, when, by which rules and for which hosts.
//!
//! It is what is left of requests for a month where their lines are not kept: some bytes for each server and hour, and not one URL. When
//! exactly something was asked is known of the first and the last request of an hour; of the others, in which five minutes they began.
//!
//! Packed, the values of all servers stand in columns, which compress well. An hour with too many servers is told in less detail: without
//! hosts, then without bytes and seconds, so that it takes no more than [`MAX_PACKED`].

use super::{
    packed::{self, UnpackError},
    requests_made::RequestsQuery,
    time::WallTime,
    url::Host,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The parts of an hour that are told apart, in milliseconds.
pub const SLOT: u64 = 300_000;
/// An hour, in milliseconds.
pub const HOUR: u64 = 3_600_000;

/// Slots of an hour.
pub const SLOTS: u32 = (HOUR / SLOT) as u32;

/// Servers of one hour. More than a daemon of 64 connections can visit at its default pace: robots.txt and one page of each, two seconds
/// apart, are 57,600.
pub const MAX_SERVERS: usize = 60_000;

/// Hosts that are named of one server and hour.
pub const MAX_HOSTS: usize = 4;

/// The bytes of an hour, packed.
pub const MAX_PACKED: usize = 256 << 10;

/// And before that.
const MAX_UNPACKED: usize = 8 << 20;

/// The words of rules by their bits, which never change: new ones are added behind.
const RULES: [&str; 9] = ["robots", "start", "link", "redirect", "second-try", "opt-out", "delegation", "home", "survey"];

/// Set beside the rules if there were more hosts than are named, and if there was another rule.
const MORE_HOSTS: u16 = 1 << 15;
const OTHER_RULE: u16 = 1 << 14;

/// A request that was made.
#[derive(Clone, Debug)]
pub struct AskedServer<'a> {
    /// When it began.
    pub at: WallTime,
    /// The address of the server.
    pub address: IpAddr,
    /// By which rule, one word.
    pub rule: &'a str,
    /// Whom it was for; none of a request to an address without a name.
    pub host: Option<Host>,
    /// Bytes of the answer.
    pub bytes: u64,
}

/// How much is told of each server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Detail {
    #[default]
    Whole,
    /// No hosts.
    NoHosts,
    /// No hosts, bytes and seconds.
    SlotsOnly,
}

/// The requests to one server within an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerHour {
    /// In which five minutes of the hour requests began: a bit for each.
    slots: u16,
    /// How many.
    requests: u32,
    /// The seconds of the hour in which the first and the last one began.
    first: u16,
    last: u16,
    /// By which rules: bits.
    rules: u16,
    /// KiB of the answers, rounded up.
    kib: u32,
    hosts: Vec<Host>,
}

/// The requests of an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHour {
    /// Which hour, counted from 1970.
    pub hour: u32,
    /// Requests to servers for which there was no room: of a server that is not here it is not known whether it was asked.
    pub left_out: u64,
    detail: Detail,
    servers: BTreeMap<IpAddr, ServerHour>,
}

/// Whether something was asked within a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Within {
    /// It was not.
    No,
    /// In five minutes that are partly in it.
    Perhaps,
    /// It was.
    Yes,
}

/// A value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no record of the requests of an hour")]
pub struct ReadHourError;

impl From<UnpackError> for ReadHourError {
    fn from(_: UnpackError) -> ReadHourError {
        ReadHourError
    }
}

/// The hour of a moment, counted from 1970.
pub fn hour_of(moment: WallTime) -> u32 {
    u32::try_from(moment.0 / HOUR).unwrap_or(u32::MAX)
}

/// The five minutes of a moment, counted from 1970.
pub fn slot_of(moment: WallTime) -> u32 {
    u32::try_from(moment.0 / SLOT).unwrap_or(u32::MAX)
}

/// A short digest of a packed hour, by which a member finds out whether a replica was sent this very copy.
pub fn mark_of(packed: &[u8]) -> u64 {
    let digest: [u8; 32] = Sha256::digest(packed).into();
    digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

/// A digest of hours with their marks, in order.
pub fn digest_of(marks: impl Iterator<Item = (u32, u64)>) -> u64 {
    let digest = marks.fold(Sha256::new(), |digest, (hour, mark)| digest.chain_update(hour.to_be_bytes()).chain_update(mark.to_be_bytes()));
    let digest: [u8; 32] = digest.finalize().into();
    digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

impl ServerHour {
    /// When the first request began, at the earliest, and the last one, at the latest.
    pub fn span(&self, hour: u32) -> (WallTime, WallTime) {
        let second = |second: u16| u64::from(hour) * HOUR + u64::from(second) * 1_000;
        (WallTime(second(self.first)), WallTime(second(self.last) + 999))
    }

    /// How many requests.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Bytes of the answers, rounded up.
    pub fn bytes(&self) -> u64 {
        u64::from(self.kib) << 10
    }

    /// By which rules, each one word.
    pub fn rules(&self) -> impl Iterator<Item = &'static str> {
        let rules = self.rules;
        let other = (rules & OTHER_RULE != 0).then_some("other");
        RULES.iter().enumerate().filter(move |(bit, _)| rules & (1 << bit) != 0).map(|(_, word)| *word).chain(other)
    }

    /// For which hosts, and whether these are all.
    pub fn hosts(&self) -> (&[Host], bool) {
        (&self.hosts, self.rules & MORE_HOSTS == 0)
    }

    fn merge(&mut self, other: &ServerHour) {
        if other.requests == 0 {
            return;
        }
        let is_new = self.requests == 0;
        self.first = if is_new { other.first } else { self.first.min(other.first) };
        self.last = self.last.max(other.last);
        self.slots |= other.slots;
        self.rules |= other.rules;
        self.requests = self.requests.saturating_add(other.requests);
        self.kib = self.kib.saturating_add(other.kib);
        for host in &other.hosts {
            if self.hosts.contains(host) {
                continue;
            }
            if self.hosts.len() < MAX_HOSTS {
                self.hosts.push(host.clone());
            } else {
                self.rules |= MORE_HOSTS;
            }
        }
    }

    /// Takes in what another copy of the same hour says of the server: both count the same requests.
    fn join(&mut self, other: &ServerHour) {
        let (requests, kib) = (self.requests.max(other.requests), self.kib.max(other.kib));
        self.merge(other);
        (self.requests, self.kib) = (requests, kib);
    }

    /// With less detail.
    fn with(&self, detail: Detail) -> ServerHour {
        let mut less = self.clone();
        if detail >= Detail::NoHosts && !less.hosts.is_empty() {
            less.hosts = Vec::new();
            less.rules |= MORE_HOSTS;
        }
        if detail >= Detail::SlotsOnly {
            let (lowest, highest) = (less.slots.trailing_zeros().min(SLOTS - 1), less.slots.checked_ilog2().unwrap_or(0).min(SLOTS - 1));
            let second = |slot: u32| (u64::from(slot) * SLOT / 1_000) as u16;
            (less.first, less.last, less.kib) = (second(lowest), second(highest + 1) - 1, 0);
        }
        less
    }
}

/// An hour as it is packed: the values of all servers in columns, those at IPv4 addresses first. Addresses are told by what they are more
/// than the one before.
#[derive(Debug, Serialize, Deserialize)]
struct Columns {
    hour: u32,
    left_out: u64,
    detail: Detail,
    v4: Vec<u32>,
    v6: Vec<u128>,
    slots: Vec<u16>,
    requests: Vec<u32>,
    rules: Vec<u16>,
    /// Empty from [`Detail::SlotsOnly`] on: seconds, and of the last request how much later it was.
    first: Vec<u16>,
    lasted: Vec<u16>,
    kib: Vec<u32>,
    /// Empty from [`Detail::NoHosts`] on.
    hosts: Vec<Vec<Host>>,
}

impl RequestHour {
    /// An hour without requests.
    pub fn new(hour: u32) -> RequestHour {
        RequestHour { hour, ..RequestHour::default() }
    }

    /// Adds a request that began in this hour.
    pub fn add(&mut self, asked: &AskedServer<'_>) {
        let second = (asked.at.0 % HOUR / 1_000) as u16;
        let rule = RULES.iter().position(|word| *word == asked.rule).map_or(OTHER_RULE, |bit| 1 << bit);
        let one = ServerHour {
            slots: 1 << (asked.at.0 % HOUR / SLOT),
            requests: 1,
            first: second,
            last: second,
            rules: rule,
            kib: u32::try_from(asked.bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX),
            hosts: asked.host.clone().into_iter().collect(),
        };
        self.add_server(asked.address.to_canonical(), &one);
    }

    /// Adds what another record has of the same hour.
    pub fn merge(&mut self, other: &RequestHour) {
        self.left_out = self.left_out.saturating_add(other.left_out);
        self.detail = self.detail.max(other.detail);
        other.servers.iter().for_each(|(address, server)| self.add_server(*address, server));
    }

    fn add_server(&mut self, address: IpAddr, server: &ServerHour) {
        if self.servers.len() >= MAX_SERVERS && !self.servers.contains_key(&address) {
            self.left_out = self.left_out.saturating_add(server.requests.into());
        } else {
            self.servers.entry(address).or_default().merge(server);
        }
    }

    /// What is known of a server; none if it was not asked, unless something was left out.
    pub fn server(&self, address: &IpAddr) -> Option<&ServerHour> {
        self.servers.get(address)
    }

    /// The same of one server only.
    pub fn only(mut self, address: &IpAddr) -> RequestHour {
        self.servers.retain(|server, _| server == address);
        self
    }

    /// Whether a request to a server began within the time that is asked about.
    pub fn within(&self, address: &IpAddr, query: &RequestsQuery) -> Within {
        let Some(server) = self.servers.get(address) else { return Within::No };
        let covers = |from: u64, until: u64| query.from.0 <= from && until <= query.until.0;
        let touches = |from: u64, until: u64| query.from.0 <= until && from <= query.until.0;
        let (begin, (first, last)) = (u64::from(self.hour) * HOUR, server.span(self.hour));
        let seconds = self.detail < Detail::SlotsOnly;
        if seconds && (covers(first.0, first.0 + 999) || covers(last.0 - 999, last.0)) {
            return Within::Yes;
        }
        // Nothing began before the first one, nor after the last.
        let slots = (0..SLOTS).filter(|slot| server.slots & (1 << slot) != 0).map(|slot| begin + u64::from(slot) * SLOT);
        let slots = slots.map(|from| (from.max(first.0), (from + SLOT - 1).min(last.0)));
        let found = slots.map(|(from, until)| match covers(from, until) {
            true => Within::Yes,
            false if touches(from, until) => Within::Perhaps,
            false => Within::No,
        });
        found.max().unwrap_or(Within::No)
    }

    /// How many servers were asked.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Whether nothing was asked.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.left_out == 0
    }

    /// In at most [`MAX_PACKED`] bytes, with as much detail as fits; if need be without some of the servers, which it says.
    pub fn pack(&self) -> Vec<u8> {
        for detail in [Detail::Whole, Detail::NoHosts, Detail::SlotsOnly] {
            if let Some(packed) = self.packed_with(detail.max(self.detail), self.servers.len()) {
                return packed;
            }
        }
        let mut most = self.servers.len() / 2;
        loop {
            if let Some(packed) = self.packed_with(Detail::SlotsOnly, most) {
                return packed;
            }
            // Of none there is always room.
            most /= 2;
        }
    }

    /// This copy of an hour together with a later one, packed: no server that this one names is missing, and none was asked less often.
    /// Where not all fit into [`MAX_PACKED`], servers are left out that only the later one names, which it says. None if it does not fit
    /// even then.
    pub fn pack_with(&self, later: &RequestHour) -> Option<Vec<u8>> {
        let mut both = self.clone();
        both.left_out = both.left_out.max(later.left_out);
        both.detail = both.detail.max(later.detail);
        for (address, server) in &later.servers {
            if both.servers.len() < MAX_SERVERS || both.servers.contains_key(address) {
                both.servers.entry(*address).or_default().join(server);
            } else {
                both.left_out = both.left_out.saturating_add(server.requests.into());
            }
        }
        let details = [Detail::Whole, Detail::NoHosts, Detail::SlotsOnly];
        if let Some(packed) = details.iter().find_map(|detail| both.packed_with((*detail).max(both.detail), both.servers.len())) {
            return Some(packed);
        }
        for (_, server) in both.servers.extract_if(.., |address, _| !self.servers.contains_key(address)) {
            both.left_out = both.left_out.saturating_add(server.requests.into());
        }
        both.packed_with(Detail::SlotsOnly, both.servers.len())
    }

    fn packed_with(&self, detail: Detail, most: usize) -> Option<Vec<u8>> {
        let cut = self.servers.values().skip(most).map(|server| u64::from(server.requests)).fold(0, u64::saturating_add);
        let mut columns = Columns::empty(self.hour, self.left_out.saturating_add(cut), detail);
        let mut before = (0, 0);
        for (address, server) in self.servers.iter().take(most) {
            columns.push(&mut before, address, server.with(detail));
        }
        let bytes = postcard::to_stdvec(&columns).ok().filter(|bytes| bytes.len() <= MAX_UNPACKED)?;
        let packed = packed::pack(&bytes);
        (packed.len() <= MAX_PACKED).then_some(packed)
    }

    /// Reads what [`Self::pack`] wrote.
    ///
    /// # Errors
    ///
    /// It is something else.
    pub fn unpack(packed: &[u8]) -> Result<RequestHour, ReadHourError> {
        let bytes = packed::unpack(packed, MAX_UNPACKED)?;
        let columns: Columns = postcard::from_bytes(&bytes).map_err(|_| ReadHourError)?;
        columns.read().ok_or(ReadHourError)
    }
}

impl Columns {
    fn empty(hour: u32, left_out: u64, detail: Detail) -> Columns {
        Columns {
            hour,
            left_out,
            detail,
            v4: Vec::new(),
            v6: Vec::new(),
            slots: Vec::new(),
            requests: Vec::new(),
            rules: Vec::new(),
            first: Vec::new(),
            lasted: Vec::new(),
            kib: Vec::new(),
            hosts: Vec::new(),
        }
    }

    /// The next server in the order of the addresses, behind these.
    fn push(&mut self, before: &mut (u32, u128), address: &IpAddr, server: ServerHour) {
        match address {
            IpAddr::V4(address) => self.v4.push(address.to_bits() - std::mem::replace(&mut before.0, address.to_bits())),
            IpAddr::V6(address) => self.v6.push(address.to_bits() - std::mem::replace(&mut before.1, address.to_bits())),
        }
        self.slots.push(server.slots);
        self.requests.push(server.requests);
        self.rules.push(server.rules);
        if self.detail < Detail::SlotsOnly {
            self.first.push(server.first);
            self.lasted.push(server.last - server.first);
            self.kib.push(server.kib);
        }
        if self.detail < Detail::NoHosts {
            self.hosts.push(server.hosts);
        }
    }

    fn read(self) -> Option<RequestHour> {
        let count = self.v4.len() + self.v6.len();
        let (timed, named) = (self.detail < Detail::SlotsOnly, self.detail < Detail::NoHosts);
        let lengths = [self.slots.len(), self.requests.len(), self.rules.len()].iter().all(|length| *length == count)
            && [self.first.len(), self.lasted.len(), self.kib.len()].iter().all(|length| *length == if timed { count } else { 0 })
            && self.hosts.len() == if named { count } else { 0 };
        if !lengths || count > MAX_SERVERS {
            return None;
        }
        let v4 = self.v4.iter().scan(0_u32, |sum, more| sum.checked_add(*more).inspect(|next| *sum = *next));
        let v6 = self.v6.iter().scan(0_u128, |sum, more| sum.checked_add(*more).inspect(|next| *sum = *next));
        let addresses = v4.map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits))).chain(v6.map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits))));
        let (mut servers, mut hosts) = (BTreeMap::new(), self.hosts.into_iter());
        for (place, address) in addresses.enumerate() {
            let (slots, requests, rules) = (*self.slots.get(place)?, *self.requests.get(place)?, *self.rules.get(place)?);
            let mut server = ServerHour { slots, requests, rules, hosts: hosts.next().unwrap_or_default(), ..ServerHour::default() };
            if timed {
                server.first = *self.first.get(place)?;
                server.last = server.first.checked_add(*self.lasted.get(place)?)?;
                server.kib = *self.kib.get(place)?;
            } else {
                server = server.with(Detail::SlotsOnly);
            }
            let is_fair = (1..1 << SLOTS).contains(&server.slots) && requests > 0 && u64::from(server.last) < HOUR / 1_000;
            if !is_fair || server.hosts.len() > MAX_HOSTS || servers.insert(address, server).is_some() {
                return None;
            }
        }
        (servers.len() == count).then_some(RequestHour { hour: self.hour, left_out: self.left_out, detail: self.detail, servers })
    }
}

#[cfg(test)]
mod tests;
