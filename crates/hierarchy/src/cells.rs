//! Parsers for the cells of tables: prefixes, ranges, AS numbers and names; recognises lines without content.

use super::{
    prefix::{Prefix, SHORTEST, family_bits},
    report::{LineError, ReadReport},
};
use std::net::IpAddr;

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

/// Whether a line says nothing: a comment, or the names of the columns.
pub(super) fn says_nothing(report: &ReadReport, line: &str) -> bool {
    let heading = || report.lines == 1 && !line.contains(|c: char| c.is_ascii_digit()) && line.contains([',', '\t']);
    line.is_empty() || line.starts_with('#') || heading()
}
