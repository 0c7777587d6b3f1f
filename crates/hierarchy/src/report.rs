//! Report on a file that was read: counts of all lines, and the rules by which a file is refused.

use super::format::Format;
use nearcrawl_model::view::counted;
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// Of a thousand records, how many may be bad before the file is refused.
pub(crate) const MAX_BAD_PER_THOUSAND: u64 = 1;

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum LineError {
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
    /// The last address cannot be read, is of the other family, or comes before the first.
    #[error("the end of the range is no address after its start")]
    End,
    /// The number of an autonomous system cannot be read.
    #[error("the AS number cannot be read")]
    System,
    /// Start and count lead past the last address.
    #[error("the range leads past the last address")]
    Overflow,
    /// A prefix longer than its addresses.
    #[error("the prefix is longer than an address")]
    PrefixTooLong,
    /// More than an eighth of the address space.
    #[error("the range is larger than any holder's")]
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

/// How many examples of one thing that is wrong are kept.
pub(crate) const MAX_EXAMPLES: usize = 3;

/// How much of a bad line is kept, in characters.
const MAX_EXAMPLE: usize = 80;

/// How often one thing was wrong, and where first. For WHOIS the lines are those where the objects begin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineErrors {
    /// How many lines.
    pub count: u64,
    /// The first of them, at most [`MAX_EXAMPLES`].
    pub examples: Vec<LineErrorExample>,
}

impl LineErrors {
    /// Number of the first of them, counted from 1.
    pub(crate) fn first_line(&self) -> u64 {
        self.examples.first().map_or(0, |e| e.line)
    }
}

/// One bad line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineErrorExample {
    /// Its number, counted from 1.
    pub line: u64,
    /// Its beginning, control characters replaced by dots.
    pub text: String,
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
    /// As what it was read.
    pub format: Option<Format>,
    /// Registry of the version line, or of the WHOIS objects.
    pub registry: Option<String>,
    /// End date of the version line, or of the latest change of a WHOIS object (YYYYMMDD).
    pub date: Option<String>,
    /// Lines in all, with comments and empty ones.
    pub lines: u64,
    /// Records by type (`ipv4`, `ipv6`, `asn`; `inetnum`, `inet6num`, `organisation`, `NetHandle`, `V6NetHandle`, `OrgID`; `route`, `network`,
    /// `country`), the bad ones whose type could be read included.
    pub records: BTreeMap<String, u64>,
    /// WHOIS objects of other classes, unread.
    pub skipped: u64,
    /// Records that became subnets, or may become them.
    pub used: u64,
    /// Records of addresses that nobody holds (available, reserved).
    pub unheld: u64,
    /// Prefixes that the used records were cut into.
    pub prefixes: u64,
    /// What was wrong, how often, and where first.
    pub bad: BTreeMap<LineError, LineErrors>,
    /// Counts that the file does not keep.
    pub mismatches: Vec<SummaryMismatch>,
}

impl ReadReport {
    /// Bad lines of all kinds.
    pub(crate) fn bad_lines(&self) -> u64 {
        self.bad.values().map(|b| b.count).sum()
    }

    pub(super) fn count_bad(&mut self, what: LineError, line: u64, text: &[u8]) {
        let bad = self.bad.entry(what).or_default();
        bad.count += 1;
        if bad.examples.len() < MAX_EXAMPLES {
            let beginning = String::from_utf8_lossy(&text[..text.len().min(4 * MAX_EXAMPLE)]).into_owned();
            let text = beginning.chars().take(MAX_EXAMPLE).map(|c| if c.is_control() { '·' } else { c }).collect();
            bad.examples.push(LineErrorExample { line, text });
        }
    }

    pub(super) fn count_record(&mut self, kind: &str) {
        match self.records.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.records.insert(kind.to_owned(), 1)),
        }
    }

    /// The rules: more than [`MAX_BAD_PER_THOUSAND`] bad lines, a broken summary, nothing usable, or data older than that of `in_use` refuse a file,
    /// unless overruled.
    pub(super) fn judge(self, overrule: bool, in_use: Option<&str>) -> Result<ReadReport, ReadError> {
        let records: u64 = self.records.values().sum();
        let bad = self.bad_lines();
        if overrule {
            Ok(self)
        } else if bad * 1000 > MAX_BAD_PER_THOUSAND * records.max(bad) {
            Err(ReadError::LineErrors(Box::new(self)))
        } else if !self.mismatches.is_empty() {
            Err(ReadError::Summary(Box::new(self)))
        } else if self.used == 0 {
            Err(ReadError::Nothing(Box::new(self)))
        } else if let (Some(now), Some(in_use)) = (&self.date, in_use)
            && now.as_str() < in_use
        {
            Err(ReadError::Older { in_use: in_use.to_owned(), report: Box::new(self) })
        } else {
            Ok(self)
        }
    }
}

impl fmt::Display for ReadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lines, prefixes) = (counted(self.lines, "line"), counted(self.prefixes, "prefix"));
        write!(f, "{}: {lines}, {} used, {} unheld, {prefixes}", self.source, self.used, self.unheld)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", counted(self.skipped, "other object"))?;
        }
        for (what, lines) in &self.bad {
            write!(f, "; {} bad (first: line {}): {what}", lines.count, lines.first_line())?;
            lines.examples.iter().try_for_each(|example| write!(f, "\n    {}: {}", example.line, example.text))?;
        }
        for mismatch in &self.mismatches {
            write!(f, "; promises {} {}, has {}", mismatch.said, mismatch.what, mismatch.found)?;
        }
        Ok(())
    }
}

/// Why a file was refused. Nothing of it was taken.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
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
    /// None of the formats that are understood.
    #[error(
        "{0} has none of the formats that are understood (delegated statistics, WHOIS, networks, routes, countries): check that it is the right file"
    )]
    Format(String),
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
    LineErrors(Box<ReadReport>),
    /// The file does not keep its own counts: cut off, or changed.
    #[error("the counts do not agree in {0}; download it again, or overrule if you know better")]
    Summary(Box<ReadReport>),
    /// There is nothing usable in it.
    #[error("nothing usable in {0}; is it the right file, and whole?")]
    Nothing(Box<ReadReport>),
    /// Its data are older than what the hierarchy in use was made of.
    #[error(
        "older data in {report}: the hierarchy in use has that source as of {in_use}; get the newest file, or overrule if you know better"
    )]
    Older {
        /// The date of the data in use.
        in_use: String,
        /// What was read.
        report: Box<ReadReport>,
    },
    /// More than a hierarchy may have.
    #[error("{0} has more records than a hierarchy may have subnets: leave out the finest networks")]
    TooMany(String),
}

impl ReadError {
    /// What was read until it was refused, where it got so far.
    pub fn report(&self) -> Option<&ReadReport> {
        match self {
            ReadError::LineErrors(report) | ReadError::Summary(report) | ReadError::Nothing(report) => Some(report),
            ReadError::Older { report, .. } => Some(report),
            _ => None,
        }
    }
}
