//! Reader of routing tables: `first,last,AS number,"organisation"`.
//!
//! The table gives two things: names for autonomous systems, by which organisations get names (the registry files say who holds which
//! AS number), and ranges that are routed apart, which become nested networks.

use super::{
    cells::{name, range, says_nothing, system},
    lines::{fields, text_lines},
    report::{LineError, ReadError, ReadReport},
};
use std::io::BufRead;

/// One line of the table: a range of addresses and the autonomous system that announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub v6: bool,
    pub first: u128,
    pub last: u128,
    pub asn: u32,
    pub name: String,
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
