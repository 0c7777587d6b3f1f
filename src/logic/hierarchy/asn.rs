//! Who announces which addresses? A reader of tables of routes, `first,last,AS number,"organisation"`.
//!
//! The table gives two things: names for autonomous systems, by which organisations get names (the registry files say who holds which
//! AS number), and ranges that are routed apart, which become nested networks where they lie strictly inside a block.

use super::{
    delegated::lines,
    prefix::SHORTEST,
    report::{BadLine, ReadRefusal, ReadReport},
};
use std::{io::BufRead, net::IpAddr};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub v6: bool,
    pub first: u128,
    pub last: u128,
    pub asn: u32,
    pub name: String,
}

/// The first three fields and the rest: the name, whose quotes and doubled quotes are undone.
fn fields(line: &str) -> Option<(&str, &str, &str, String)> {
    let mut parts = line.splitn(4, ',');
    let (first, last, asn) = (parts.next()?, parts.next()?, parts.next()?);
    let name = parts.next().unwrap_or_default();
    let unquoted = name.strip_prefix('"').map(|n| n.strip_suffix('"').unwrap_or(n).replace("\"\"", "\""));
    Some((first, last, asn, unquoted.unwrap_or_else(|| name.to_owned())))
}

fn route(line: &str) -> Result<Route, BadLine> {
    let (first, last, asn, name) = fields(line).ok_or(BadLine::MissingFields)?;
    let first: IpAddr = first.parse().map_err(|_| BadLine::Start)?;
    let last: IpAddr = last.parse().map_err(|_| BadLine::Count)?;
    let asn = asn.strip_prefix("AS").unwrap_or(asn).parse().map_err(|_| BadLine::Count)?;
    let (v6, first, last) = match (first, last) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (false, u128::from(a.to_bits()), u128::from(b.to_bits())),
        (IpAddr::V6(a), IpAddr::V6(b)) => (true, a.to_bits(), b.to_bits()),
        _ => return Err(BadLine::Count),
    };
    let span = last.checked_sub(first).ok_or(BadLine::Count)?;
    if span >> (if v6 { 128 - SHORTEST } else { 32 - SHORTEST }) != 0 {
        return Err(BadLine::TooLarge);
    }
    let name: String = name.chars().filter(|c| !c.is_control()).take(60).collect();
    Ok(Route { v6, first, last, asn, name: name.trim().to_owned() })
}

/// Reads a whole table, handing every route to `take`; the report is not judged yet.
pub(super) fn read(
    source_name: &str,
    input: impl BufRead,
    mut take: impl FnMut(&mut ReadReport, Route) -> Result<(), ReadRefusal>,
) -> Result<ReadReport, ReadRefusal> {
    let mut report = ReadReport { source: source_name.to_owned(), ..ReadReport::default() };
    lines(&mut report, input, |report, line| {
        if line.is_empty() || line.starts_with('#') {
            return Ok(Ok(()));
        }
        report.count_record("route");
        match route(line) {
            Err(what) => Ok(Err(what)),
            Ok(route) => take(report, route).map(Ok),
        }
    })?;
    Ok(report)
}
