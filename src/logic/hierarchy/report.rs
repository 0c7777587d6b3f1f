//! What did a registry file say, and can it be believed? The count of every line, and the rules that refuse a file.

use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// Of a thousand records, how many may be bad before the file is refused.
pub const MOST_BAD_PER_THOUSAND: u64 = 1;

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum BadLine {
    /// Longer than any record.
    #[error("longer than a record can be")]
    TooLong,
    /// Not UTF-8 (UTF-16, for example).
    #[error("not UTF-8 text")]
    NotText,
    /// Too few fields.
    #[error("fields are missing")]
    MissingFields,
    /// The registry is not a name in lower case.
    #[error("no such registry name")]
    Registry,
    /// The country is not two letters.
    #[error("no country code")]
    Country,
    /// Neither ipv4, ipv6 nor asn.
    #[error("unknown type of record")]
    Type,
    /// Not one of allocated, assigned, available, reserved.
    #[error("unknown status")]
    Status,
    /// The first address or number cannot be read.
    #[error("the start is not an address or number of its type")]
    Start,
    /// The count or length cannot be read, or is zero or negative.
    #[error("the count or prefix length is not a positive number")]
    Count,
    /// Start and count lead past the last address.
    #[error("the range leads past the last address")]
    Overflow,
    /// A prefix longer than its addresses.
    #[error("the prefix is longer than an address")]
    PrefixTooLong,
    /// More than an eighth of the address space.
    #[error("the range is larger than anybody's")]
    TooLarge,
    /// An IPv6 prefix with bits beyond its length.
    #[error("the prefix has bits beyond its length")]
    HostBits,
    /// The holder's id is too long or has control characters.
    #[error("the holder's id is too long or unprintable")]
    Holder,
    /// A summary line that cannot be read.
    #[error("the summary cannot be read")]
    Summary,
    /// A second version line.
    #[error("a second version line")]
    SecondHeader,
}

/// How often one thing was wrong, and where first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BadLines {
    /// How many lines.
    pub count: u64,
    /// Number of the first of them, counted from 1.
    pub first_line: u64,
}

/// A count that the file gives of itself, and does not keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SummaryMismatch {
    /// Of what: a record type, or `records` for the version line.
    pub what: String,
    /// What the file says.
    pub said: u64,
    /// What was found.
    pub found: u64,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReadReport {
    /// The name the file was given.
    pub source: String,
    /// Registry of the version line.
    pub registry: Option<String>,
    /// End date of the version line, as written (YYYYMMDD).
    pub date: Option<String>,
    /// Lines in all, with comments and empty ones.
    pub lines: u64,
    /// Records by type (`ipv4`, `ipv6`, `asn`; `route` in tables of routes), the bad ones whose type could be read included.
    pub records: BTreeMap<String, u64>,
    /// Records that became subnets, or may become them.
    pub used: u64,
    /// Records of addresses that nobody holds (available, reserved).
    pub unheld: u64,
    /// Prefixes that the used records were cut into.
    pub prefixes: u64,
    /// What was wrong, how often, and where first.
    pub bad: BTreeMap<BadLine, BadLines>,
    /// Counts that the file does not keep.
    pub mismatches: Vec<SummaryMismatch>,
}

impl ReadReport {
    /// Bad lines of all kinds.
    pub fn bad_lines(&self) -> u64 {
        self.bad.values().map(|b| b.count).sum()
    }

    pub(super) fn count_bad(&mut self, what: BadLine, line: u64) {
        self.bad.entry(what).or_insert(BadLines { count: 0, first_line: line }).count += 1;
    }

    pub(super) fn count_record(&mut self, kind: &str) {
        match self.records.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.records.insert(kind.to_owned(), 1)),
        }
    }

    /// The rules: nothing usable, a broken summary or more than [`MOST_BAD_PER_THOUSAND`] bad lines refuse a file; the last
    /// two can be overruled.
    pub(super) fn judge(self, overrule: bool) -> Result<ReadReport, ReadRefusal> {
        let records: u64 = self.records.values().sum();
        let bad = self.bad_lines();
        if !overrule && bad * 1000 > MOST_BAD_PER_THOUSAND * records.max(bad) {
            return Err(ReadRefusal::BadLines(Box::new(self)));
        }
        if !overrule && !self.mismatches.is_empty() {
            return Err(ReadRefusal::Summary(Box::new(self)));
        }
        if self.used == 0 { Err(ReadRefusal::Nothing(Box::new(self))) } else { Ok(self) }
    }
}

impl fmt::Display for ReadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} lines, {} used, {} unheld, {} prefixes", self.source, self.lines, self.used, self.unheld, self.prefixes)?;
        for (what, lines) in &self.bad {
            write!(f, "; {} bad (first: line {}): {what}", lines.count, lines.first_line)?;
        }
        for mismatch in &self.mismatches {
            write!(f, "; promises {} {}, has {}", mismatch.said, mismatch.what, mismatch.found)?;
        }
        Ok(())
    }
}

/// Why a file was refused. Nothing of it was taken.
#[derive(Debug, thiserror::Error)]
pub enum ReadRefusal {
    /// It could not be read to its end.
    #[error("{source_name} cannot be read: {error}")]
    Io {
        /// The name the file was given.
        source_name: String,
        /// What the system says.
        #[source]
        error: std::io::Error,
    },
    /// More bytes than any such file has.
    #[error("{0} is larger than any registry file (4 GiB): it is none")]
    TooLarge(String),
    /// A version of the format that this program does not know.
    #[error("{source_name} has format version {version:?}, this program reads 2: look for a newer program")]
    Version {
        /// The name the file was given.
        source_name: String,
        /// The version it says.
        version: String,
    },
    /// Too many lines make no sense.
    #[error("too many bad lines in {0}; download it again, or overrule if you know better")]
    BadLines(Box<ReadReport>),
    /// The file does not keep its own counts: cut off, or changed.
    #[error("the counts do not agree in {0}; download it again, or overrule if you know better")]
    Summary(Box<ReadReport>),
    /// There is nothing usable in it.
    #[error("nothing usable in {0}; is it a delegated-extended statistics file?")]
    Nothing(Box<ReadReport>),
    /// More than a hierarchy may have.
    #[error("{0} has more records than a hierarchy may have subnets: leave out the finest networks")]
    TooMany(String),
}

impl ReadRefusal {
    /// What was read until it was refused, where it got so far.
    pub fn report(&self) -> Option<&ReadReport> {
        match self {
            ReadRefusal::BadLines(report) | ReadRefusal::Summary(report) | ReadRefusal::Nothing(report) => Some(report),
            _ => None,
        }
    }
}
