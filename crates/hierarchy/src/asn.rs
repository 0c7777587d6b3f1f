//! Who announces which addresses? A reader of tables of routes, `first,last,AS number,"organisation"`.
//!
//! The table gives two things: names for autonomous systems, by which organisations get names (the registry files say who holds which
//! AS number), and ranges that are routed apart, which become nested networks.

use super::{
    lines::{fields, text_lines},
    networks::{name, says_nothing, system},
    prefix::SHORTEST,
    report::{LineError, ReadError, ReadReport},
};
use std::{io::BufRead, net::IpAddr};

/// One line of the table: a range of addresses and the autonomous system that announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub v6: bool,
    pub first: u128,
    pub last: u128,
    pub asn: u32,
    pub name: String,
}

/// Reads the ends of a range; none if it is not a range that one holder can have.
pub(super) fn range(first: &str, last: &str) -> Result<(bool, u128, u128), LineError> {
    let first: IpAddr = first.parse().map_err(|_| LineError::Start)?;
    let last: IpAddr = last.parse().map_err(|_| LineError::End)?;
    let (v6, first, last) = match (first, last) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (false, u128::from(a.to_bits()), u128::from(b.to_bits())),
        (IpAddr::V6(a), IpAddr::V6(b)) => (true, a.to_bits(), b.to_bits()),
        _ => return Err(LineError::End),
    };
    let span = last.checked_sub(first).ok_or(LineError::End)?;
    if span >> (if v6 { 128 - SHORTEST } else { 32 - SHORTEST }) != 0 {
        return Err(LineError::TooLarge);
    }
    Ok((v6, first, last))
}

fn route(line: &str) -> Result<Route, LineError> {
    let ([first, last, asn], called) = fields::<3>(line);
    if asn.is_empty() {
        return Err(LineError::MissingFields);
    }
    let (v6, first, last) = range(first, last)?;
    Ok(Route { v6, first, last, asn: system(asn)?, name: name(&called) })
}

/// Reads a whole table and passes every route to `take`; the report is returned before the rules that refuse a file are applied.
pub(super) fn read(
    report: &mut ReadReport,
    input: impl BufRead,
    mut take: impl FnMut(&mut ReadReport, Route) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    text_lines(report, input, |report, line| {
        if says_nothing(report, line) {
            return Ok(Ok(()));
        }
        report.count_record("route");
        match route(line) {
            Err(what) => Ok(Err(what)),
            Ok(route) => take(report, route).map(Ok),
        }
    })
}
