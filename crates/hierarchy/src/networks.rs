//! Which networks lie inside the blocks? Readers of tables: nested networks (`prefix,country,asn,name`) and countries (`first,last,country`).

use super::{
    asn::range,
    delegated::country,
    lines::{fields, text_lines},
    prefix::{Prefix, SHORTEST, family_bits},
    report::{LineError, ReadError, ReadReport},
};
use std::{io::BufRead, net::IpAddr};

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

/// Reads `192.0.2.0/24`, and `192.0.2/24` as LACNIC writes it.
pub(super) fn prefix(text: &str) -> Result<Prefix, LineError> {
    let (address, length) = text.split_once('/').ok_or(LineError::Start)?;
    let length: u8 = length.trim().parse().map_err(|_| LineError::Count)?;
    let address = address.trim();
    let dots = address.bytes().filter(|b| *b == b'.').count();
    let address =
        if address.contains(':') || dots == 3 { address.parse() } else { format!("{address}{}", ".0".repeat(3 - dots.min(3))).parse() };
    let (v6, first) = match address.map_err(|_| LineError::Start)? {
        IpAddr::V4(ip) => (false, u128::from(ip.to_bits())),
        IpAddr::V6(ip) => (true, ip.to_bits()),
    };
    let host_bits = family_bits(v6).checked_sub(length).ok_or(LineError::PrefixTooLong)?;
    if first.trailing_zeros() < u32::from(host_bits) && first != 0 {
        return Err(LineError::HostBits);
    }
    Ok(Prefix { v6, first, length })
}

/// An AS number as a table writes it: 0 for none.
pub(super) fn system(text: &str) -> Result<u32, LineError> {
    let digits = text.strip_prefix("AS").unwrap_or(text);
    if text.is_empty() { Ok(0) } else { digits.parse().map_err(|_| LineError::System) }
}

/// A name that can be stored and shown.
pub(super) fn name(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
    plain.trim().to_owned()
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

/// Whether a line says nothing: a comment, or the names of the columns.
pub(super) fn says_nothing(report: &ReadReport, line: &str) -> bool {
    let heading = || report.lines == 1 && !line.contains(|c: char| c.is_ascii_digit()) && line.contains([',', '\t']);
    line.is_empty() || line.starts_with('#') || heading()
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
