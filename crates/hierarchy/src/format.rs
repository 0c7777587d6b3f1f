//! Recognises the format of a file from its first lines, whatever its name.

use serde::Serialize;
use std::{fmt, net::IpAddr};

/// The formats that a hierarchy is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A registry's delegated or delegated-extended statistics: `registry|cc|type|start|value|date|status|opaque-id`.
    Delegated,
    /// A registry's bulk WHOIS data: RPSL objects (`inetnum:`, `inet6num:`), or ARIN's (`NetHandle:`, `V6NetHandle:`).
    Whois,
    /// Nested networks: `prefix,country,asn,name`, with commas or TABs.
    Networks,
    /// Announced ranges: `first,last,asn,"organisation"`.
    Routes,
    /// Ranges and their countries: `first,last,country`.
    Countries,
}

impl Format {
    /// The format of a file that begins so; none if not one of the lines looks like any.
    pub fn of(head: &[u8]) -> Option<Format> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        // Latin-1 in a comment must not hide the rest.
        head.split(|b| *b == b'\n').filter_map(|line| line_format(String::from_utf8_lossy(line).trim())).next()
    }
}

fn line_format(line: &str) -> Option<Format> {
    if line.is_empty() || line.starts_with(['#', '%']) {
        return None;
    }
    if line.matches('|').count() >= 5 {
        return Some(Format::Delegated);
    }
    if let Some((name, value)) = line.split_once(':')
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'/' | b'_'))
        && (value.is_empty() || value.starts_with([' ', '\t']))
    {
        return Some(Format::Whois);
    }
    let divider = if line.contains('\t') { '\t' } else { ',' };
    let fields: Vec<&str> = line.split(divider).map(|f| f.trim().trim_matches('"')).collect();
    let address = |index: usize| fields.get(index).is_some_and(|f| f.parse::<IpAddr>().is_ok());
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match *fields.first()? {
        first if first.split_once('/').is_some_and(|(a, l)| a.parse::<IpAddr>().is_ok() && number(l)) => Some(Format::Networks),
        _ if !address(0) || !address(1) => None,
        _ => match *fields.get(2)? {
            asn if number(asn.strip_prefix("AS").unwrap_or(asn)) => Some(Format::Routes),
            country if fields.len() == 3 && country.len() == 2 => Some(Format::Countries),
            _ => None,
        },
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::Delegated => "delegated statistics",
            Format::Whois => "WHOIS objects",
            Format::Networks => "nested networks",
            Format::Routes => "routes",
            Format::Countries => "countries",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_recognised_by_its_lines_behind_terms_of_use() {
        let cases: [(&[u8], Option<Format>); 18] = [
            (b"2|afrinic|20181013|9373|00000000|20181013|00000\n", Some(Format::Delegated)),
            (b"\xef\xbb\xbf# terms\n#\n2.3|arin|1|1|1|20181013|-0400\r\n", Some(Format::Delegated)),
            (b"lab|KE|ipv4|127.1.0.0|256|20000101|allocated", Some(Format::Delegated)),
            (b"#\n# terms \xe9\n\n\nas-block:     AS1 - AS2\n", Some(Format::Whois)),
            (b"% tags\n\ninetnum:\n", Some(Format::Whois)),
            (b"\n\nASHandle:       AS0\nOrgID:  IANA\n", Some(Format::Whois)),
            (b"State/Prov:\tDC\n", Some(Format::Whois)),
            (b"1.0.0.0/8\tAU\t\t\n", Some(Format::Networks)),
            (b"prefix,country,asn,name\n2001:db8::/32,KE,64512,Museum\n", Some(Format::Networks)),
            (b"1.0.0.0,1.0.0.255,13335,\"Cloudflare, Inc.\"\n", Some(Format::Routes)),
            (b"2001::,2001::ffff,AS6939,HE\n", Some(Format::Routes)),
            (b"1.0.0.0,1.0.0.255,AU\n", Some(Format::Countries)),
            (b"\"1.0.0.0\",\"1.0.0.255\",\"AU\"\n", Some(Format::Countries)),
            (b"<html>Service unavailable</html>\nhttp://example.org/\n", None),
            (b"", None),
            (b"\xff\xfe2\0|\0a\0", None),
            (b"1.0.0.0\n1.0.0.0,1.0.0.1\n1.0.0.0,x,1\n", None),
            (b"PK\x03\x04", None),
        ];
        for (head, format) in cases {
            assert_eq!(Format::of(head), format, "{}", String::from_utf8_lossy(head));
        }
    }
}
