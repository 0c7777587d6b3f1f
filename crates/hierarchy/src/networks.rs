//! Readers of two tables: nested networks (`prefix,country,asn,name`) and countries (`first,last,country`).

use super::{
    cells::{name, prefix, range, says_nothing, system},
    delegated::country,
    lines::{fields, text_lines},
    prefix::{Prefix, SHORTEST},
    report::{LineError, ReadError, ReadReport},
};
use std::io::BufRead;

/// One line of a table of networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Network {
    pub prefix: Prefix,
    /// `ZZ` where the table has none.
    pub country: [u8; 2],
    /// Who announces it, 0 where the table has none.
    pub asn: u32,
    pub name: String,
}

fn network(line: &str) -> Result<Network, LineError> {
    let ([written, country_code, asn], called) = fields::<3>(line);
    let prefix = prefix(written)?;
    if prefix.length < SHORTEST {
        return Err(LineError::TooLarge);
    }
    let country = country(country_code).ok_or(LineError::Country)?;
    Ok(Network { prefix, country, asn: system(asn)?, name: name(&called) })
}

/// Reads a whole table of networks, handing every one to `take`; the report is not judged yet.
pub(super) fn read(
    report: &mut ReadReport,
    input: impl BufRead,
    mut take: impl FnMut(&mut ReadReport, Network) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    text_lines(report, input, |report, line| {
        if says_nothing(report, line) {
            return Ok(Ok(()));
        }
        report.count_record("network");
        match network(line) {
            Err(what) => Ok(Err(what)),
            Ok(network) => take(report, network).map(Ok),
        }
    })
}

/// A range and its country.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CountryRange {
    pub v6: bool,
    pub first: u128,
    pub last: u128,
    pub country: [u8; 2],
}

/// Reads a whole table of countries, handing every range to `take`; the report is not judged yet.
pub(super) fn read_countries(
    report: &mut ReadReport,
    input: impl BufRead,
    mut take: impl FnMut(&mut ReadReport, CountryRange) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    text_lines(report, input, |report, line| {
        if says_nothing(report, line) {
            return Ok(Ok(()));
        }
        report.count_record("country");
        let ([first, last, code], _) = fields::<3>(line);
        let read = || {
            let (v6, first, last) = range(first, last)?;
            Ok(CountryRange { v6, first, last, country: country(code).filter(|_| !code.is_empty()).ok_or(LineError::Country)? })
        };
        match read() {
            Err(what) => Ok(Err(what)),
            Ok(range) => take(report, range).map(Ok),
        }
    })
}
