//! Streaming reader of the registries' statistics files (delegated and delegated-extended), line by line.
//!
//! ```text
//! 2|afrinic|20181013|9373|00000000|20181013|00000                 version line
//! afrinic|*|ipv4|*|3759|summary                                   summary line
//! afrinic|ZA|ipv4|41.0.0.0|2097152|20071126|allocated|F36B9F4B    record: registry|cc|type|start|value|date|status|opaque-id
//! ```

use super::{
    lines::text_lines,
    prefix::{Prefix, SHORTEST, family_bits},
    report::{LineError, ReadError, ReadReport, SummaryMismatch},
};
use std::{
    collections::BTreeMap,
    io::BufRead,
    net::{Ipv4Addr, Ipv6Addr},
};

/// The longest id of a holder; real ones have up to 36 bytes.
pub(super) const MAX_HOLDER: usize = 64;

/// The longest name of a registry; real ones have up to 7 bytes.
pub(super) const MAX_REGISTRY: usize = 32;

/// A usable record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// Addresses that somebody holds.
    Block { v6: bool, first: u128, last: u128, held: Held<'a> },
    /// Numbers of autonomous systems that somebody holds.
    Systems { first: u32, count: u32, held: Held<'a> },
}

/// Who holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held<'a> {
    pub registry: &'a str,
    pub country: [u8; 2],
    /// The opaque-id; in files without them each record is its own holder, named by where it starts.
    pub holder: &'a str,
    /// YYYYMMDD, 0 if there is no such date.
    pub date: u32,
}

/// A name like `ripencc`.
pub(super) fn is_registry(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=MAX_REGISTRY).contains(&name.len()) && name.bytes().all(plain)
}

/// A country code in capitals; none given is `ZZ`.
pub(super) fn country(code: &str) -> Option<[u8; 2]> {
    match *code.as_bytes() {
        [] | [b'*'] => Some(*b"ZZ"),
        [a, b] if a.is_ascii_alphabetic() && b.is_ascii_alphabetic() => Some([a.to_ascii_uppercase(), b.to_ascii_uppercase()]),
        _ => None,
    }
}

/// A date between the first registry's and the next century, YYYYMMDD; 00000000 and the like are none.
pub(super) fn date(text: &str) -> Option<u32> {
    let digits = text.get(..8).filter(|d| text.len() == 8 && d.bytes().all(|b| b.is_ascii_digit()))?;
    let date: u32 = digits.parse().ok()?;
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    ((1970..2100).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day)).then_some(date)
}

/// An id that can be stored and shown.
pub(super) fn is_holder(id: &str) -> bool {
    (1..=MAX_HOLDER).contains(&id.len()) && !id.chars().any(char::is_control)
}

/// Reads one line that is a record. `Ok(None)`: a record of something that nobody holds.
fn record<'a>(fields: &[&'a str]) -> Result<Option<Record<'a>>, LineError> {
    let [registry, cc, kind, start, value, date, status, rest @ ..] = fields else { return Err(LineError::MissingFields) };
    if !matches!(*kind, "ipv4" | "ipv6" | "asn") {
        return Err(LineError::Type);
    }
    let held = match *status {
        "allocated" | "assigned" => true,
        "available" | "reserved" => false,
        _ => return Err(LineError::Status),
    };
    if !held {
        return Ok(None);
    }
    if !is_registry(registry) {
        return Err(LineError::Registry);
    }
    let country = country(cc).ok_or(LineError::Country)?;
    let holder = rest.first().copied().filter(|id| !id.is_empty()).unwrap_or(start);
    if !is_holder(holder) {
        return Err(LineError::Holder);
    }
    let held = Held { registry, country, holder, date: self::date(date).unwrap_or(0) };
    let value = value.parse::<u64>().ok().filter(|v| *v > 0 || *kind == "ipv6").ok_or(LineError::Count)?;
    match *kind {
        "ipv4" => {
            let first = u64::from(start.parse::<Ipv4Addr>().map_err(|_| LineError::Start)?.to_bits());
            let last = first.checked_add(value - 1).filter(|l| *l <= u64::from(u32::MAX)).ok_or(LineError::Overflow)?;
            if value > 1 << (32 - SHORTEST) {
                return Err(LineError::TooLarge);
            }
            Ok(Some(Record::Block { v6: false, first: first.into(), last: last.into(), held }))
        }
        "ipv6" => {
            let first = start.parse::<Ipv6Addr>().map_err(|_| LineError::Start)?.to_bits();
            let length = u8::try_from(value).ok().filter(|l| *l <= family_bits(true)).ok_or(LineError::PrefixTooLong)?;
            if length < SHORTEST {
                return Err(LineError::TooLarge);
            }
            if first.trailing_zeros() < u32::from(128 - length) {
                return Err(LineError::HostBits);
            }
            let last = Prefix { v6: true, first, length }.last();
            Ok(Some(Record::Block { v6: true, first, last, held }))
        }
        _ => {
            let first = start.parse::<u32>().map_err(|_| LineError::Start)?;
            let last = u64::from(first) + (value - 1);
            if value > u64::from(u32::MAX) || last > u64::from(u32::MAX) {
                return Err(LineError::Overflow);
            }
            Ok(Some(Record::Systems { first, count: value as u32, held }))
        }
    }
}

/// Reads a whole file, handing every usable record to `take`; the report is not judged yet.
pub(super) fn read(
    report: &mut ReadReport,
    input: impl BufRead,
    mut take: impl FnMut(&mut ReadReport, Record<'_>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut promised: BTreeMap<String, u64> = BTreeMap::new();
    let mut promised_records = None;
    text_lines(report, input, |report, line| {
        if line.is_empty() || line.starts_with('#') {
            return Ok(Ok(()));
        }
        let fields: Vec<&str> = line.split('|').collect();
        if line.starts_with(|c: char| c.is_ascii_digit()) {
            return header(report, &fields, &mut promised_records);
        }
        if fields.last() == Some(&"summary") {
            return Ok(summary(&fields, &mut promised));
        }
        if let Some(kind @ ("ipv4" | "ipv6" | "asn")) = fields.get(2).copied() {
            report.count_record(kind);
        }
        match record(&fields) {
            Err(what) => return Ok(Err(what)),
            Ok(None) => report.unheld += 1,
            Ok(Some(record)) => take(report, record)?,
        }
        Ok(Ok(()))
    })?;
    let found = |kind: &str| report.records.get(kind).copied().unwrap_or(0);
    let total: u64 = report.records.values().sum();
    let mut mismatches: Vec<SummaryMismatch> =
        promised.into_iter().map(|(what, said)| SummaryMismatch { found: found(&what), what, said }).collect();
    mismatches.extend(promised_records.map(|said| SummaryMismatch { what: "records".to_owned(), said, found: total }));
    mismatches.retain(|m| m.said != m.found);
    report.mismatches = mismatches;
    Ok(())
}

/// The version line: `version|registry|serial|records|startdate|enddate|UTCoffset`.
fn header(report: &mut ReadReport, fields: &[&str], promised: &mut Option<u64>) -> Result<Result<(), LineError>, ReadError> {
    if fields.len() < 6 {
        return Ok(Err(LineError::MissingFields));
    }
    if fields[0] != "2" && !fields[0].starts_with("2.") {
        let version = fields[0].chars().take(16).collect();
        return Err(ReadError::Version { source_name: report.source.clone(), version });
    }
    if report.registry.is_some() {
        return Ok(Err(LineError::SecondHeader));
    }
    if !is_registry(fields[1]) {
        return Ok(Err(LineError::Registry));
    }
    report.registry = Some(fields[1].to_owned());
    report.date = date(fields[5]).map(|d| d.to_string());
    // Some writers leave the count of records empty.
    if fields[3].is_empty() {
        return Ok(Ok(()));
    }
    let Ok(count) = fields[3].parse() else { return Ok(Err(LineError::Count)) };
    *promised = Some(count);
    Ok(Ok(()))
}

/// A summary line: `registry|*|type|*|count|summary`.
fn summary(fields: &[&str], promised: &mut BTreeMap<String, u64>) -> Result<(), LineError> {
    let [_, _, kind @ ("ipv4" | "ipv6" | "asn"), _, count, _] = fields else { return Err(LineError::Summary) };
    let count: u64 = count.parse().map_err(|_| LineError::Summary)?;
    // Files of several registries have one line of a type for each.
    let sum = promised.entry((*kind).to_owned()).or_default();
    *sum = sum.saturating_add(count);
    Ok(())
}
