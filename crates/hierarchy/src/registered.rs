//! Networks and their holders from WHOIS objects: the attributes of five registries become one kind of record.
//!
//! * RPSL (AFRINIC, APNIC, RIPE NCC): `org:` names the holder, else the first `mnt-by:` that is not a registry's own.
//! * LACNIC: RPSL with prefixes like `24.232.16/24`; `ownerid:` names the holder, else `owner:`.
//! * ARIN: `OrgID:` names the holder; its country stands in the object of the organisation.
//!
//! Descriptions (`descr:`, `Comment:`) are not read, because they may name persons.

use super::{
    cells::{name, prefix},
    delegated::{MAX_HOLDER, country, date, is_registry},
    objects::{Class, Object},
    prefix::SHORTEST,
    report::LineError,
};
use std::net::IpAddr;

/// What an object contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Addresses with a holder.
    Network(Registered),
    /// A place-holder: addresses without a holder, or managed by another registry.
    Unheld,
    /// The name and country of an organisation.
    Organisation { registry: Option<String>, id: String, name: String, country: [u8; 2] },
}

/// A network as a WHOIS object registers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registered {
    pub v6: bool,
    /// First and last addresses; more than one range only at ARIN.
    pub ranges: Vec<(u128, u128)>,
    /// None where the object does not say.
    pub registry: Option<String>,
    /// `ZZ` where the object does not say.
    pub country: [u8; 2],
    /// The holder's id; none if the object names no holder.
    pub holder: Option<String>,
    /// What it is called.
    pub name: String,
    /// When that was changed last: YYYYMMDD, 0 unknown.
    pub date: u32,
}

/// Maintainers that register for everybody else: of registries, and of the national ones below APNIC. Were they taken for holders, a whole country
/// would be one organisation.
const REGISTRARS: [&str; 14] = [
    "AFRINIC-HM-MNT",
    "APNIC-HM",
    "APNIC-ERX",
    "LACNIC-HM",
    "MAINT-APNIC-AP",
    "MAINT-CNNIC-AP",
    "MAINT-IN-IRINN",
    "MAINT-JPNIC",
    "MAINT-TW-TWNIC",
    "MAINT-VN-VNNIC",
    "MNT-APJII-ID",
    "MNT-IDNIC",
    "MNT-KRNIC-AP",
    "NRO-MNT",
];

/// What an object says.
pub(super) fn read(object: &Object) -> Result<Told, LineError> {
    match object.class {
        Class::Inetnum | Class::Inet6num => inetnum(object),
        Class::Net | Class::V6Net => net(object),
        Class::Organisation => organisation(object, "org-name", "country", "source"),
        Class::Org => organisation(object, "OrgName", "Country", "Source"),
    }
}

/// `RIPE` is what the statistics call ripencc.
fn registry(source: Option<&str>) -> Option<String> {
    let name = source?.to_ascii_lowercase();
    let name = name.split_whitespace().next()?;
    let name = name.strip_suffix("-grs").unwrap_or(name);
    is_registry(name).then(|| if name == "ripe" { "ripencc".to_owned() } else { name.to_owned() })
}

fn country_of(value: Option<&str>) -> Result<[u8; 2], LineError> {
    country(value.unwrap_or_default()).ok_or(LineError::Country)
}

/// As much of an id as can be stored.
fn holder(id: &str) -> Option<String> {
    let mut kept: String = id.chars().filter(|c| !c.is_control()).collect();
    kept.truncate(kept.floor_char_boundary(MAX_HOLDER));
    let kept = kept.trim();
    (!kept.is_empty()).then(|| kept.to_owned())
}

fn inetnum(object: &Object) -> Result<Told, LineError> {
    let v6 = object.class == Class::Inet6num;
    let key = object.key();
    let (written_v6, first, last) = match key.split_once(" - ").or_else(|| key.split_once('-')) {
        Some((first, last)) => ends(first.trim(), last.trim())?,
        None => {
            let prefix = prefix(key)?;
            (prefix.v6, prefix.first, prefix.last())
        }
    };
    // LACNIC writes inetnum for both families.
    if v6 && !written_v6 {
        return Err(LineError::Start);
    }
    let status = object.first("status").unwrap_or_default();
    let netname = object.first("netname").unwrap_or_default();
    let free = ["ALLOCATED UNSPECIFIED", "AVAILABLE", "RESERVED", "UNALLOCATED"].iter().any(|s| status.eq_ignore_ascii_case(s));
    let stand_in = ["IANA-", "NON-", "ERX-NETBLOCK"].iter().any(|start| netname.starts_with(start));
    if free || stand_in {
        return Ok(Told::Unheld);
    }
    fits(written_v6, first, last)?;
    let maintainers =
        || object.all("mnt-by").flat_map(|all| all.split([',', ' '])).map(str::trim).filter(|m| !m.is_empty() && !is_registrar(m));
    let of = object.first("org").or_else(|| maintainers().next()).or(object.first("ownerid")).or(object.first("owner"));
    let changed = object.all("last-modified").chain(object.all("changed")).filter_map(|value| day(value.split_whitespace().last()?));
    Ok(Told::Network(Registered {
        v6: written_v6,
        ranges: vec![(first, last)],
        registry: registry(object.first("source")),
        country: country_of(object.first("country"))?,
        holder: of.and_then(holder),
        name: name(netname),
        date: changed.max().unwrap_or(0),
    }))
}

fn is_registrar(maintainer: &str) -> bool {
    maintainer.starts_with("RIPE-NCC-") || REGISTRARS.contains(&maintainer)
}

/// ARIN: `NetRange: 192.104.33.0 - 192.104.33.255`.
fn net(object: &Object) -> Result<Told, LineError> {
    let v6 = object.class == Class::V6Net;
    let mut ranges = Vec::new();
    for range in object.first("NetRange").ok_or(LineError::MissingFields)?.split(',') {
        let (first, last) = range.split_once('-').ok_or(LineError::End)?;
        let (written_v6, first, last) = ends(first.trim(), last.trim())?;
        if written_v6 != v6 {
            return Err(LineError::Start);
        }
        ranges.push((first, last));
    }
    let kind = object.first("NetType").unwrap_or_default().to_ascii_lowercase();
    let of = object.first("OrgID");
    // The registries' own organisations hold both their offices' networks and everything they delegate from.
    let registrar = of.is_some_and(|id| ["ARIN", "IANA", "RIPE", "APNIC", "AFRINIC", "LACNIC"].contains(&id));
    let wide = |(first, last): &(u128, u128)| last - first >= (if v6 { 1 << 104 } else { 1 << 24 }) - 1;
    if kind.starts_with("iana") || kind.starts_with("reserved") || (registrar && ranges.iter().any(wide)) {
        return Ok(Told::Unheld);
    }
    ranges.iter().try_for_each(|(first, last)| fits(v6, *first, *last))?;
    Ok(Told::Network(Registered {
        v6,
        ranges,
        registry: registry(object.first("Source")),
        country: country_of(object.first("Country"))?,
        holder: of.and_then(holder),
        name: name(object.first("NetName").unwrap_or_default()),
        date: object.first("Updated").and_then(day).unwrap_or(0),
    }))
}

fn organisation(object: &Object, called: &str, country: &str, source: &str) -> Result<Told, LineError> {
    let id = holder(object.key()).ok_or(LineError::Holder)?;
    let name = name(object.first(called).unwrap_or_default());
    // Only what is known better elsewhere would be lost with a bad country.
    let country = country_of(object.first(country)).unwrap_or(*b"ZZ");
    Ok(Told::Organisation { registry: registry(object.first(source)), id, name, country })
}

/// The ends of a range of whatever width.
fn ends(first: &str, last: &str) -> Result<(bool, u128, u128), LineError> {
    let (first, last) = (first.parse().map_err(|_| LineError::Start)?, last.parse().map_err(|_| LineError::End)?);
    match (first, last) {
        (IpAddr::V4(a), IpAddr::V4(b)) if a <= b => Ok((false, a.to_bits().into(), b.to_bits().into())),
        (IpAddr::V6(a), IpAddr::V6(b)) if a <= b => Ok((true, a.to_bits(), b.to_bits())),
        _ => Err(LineError::End),
    }
}

/// Nobody holds more than an eighth of the addresses.
fn fits(v6: bool, first: u128, last: u128) -> Result<(), LineError> {
    if (last - first) >> (if v6 { 128 - SHORTEST } else { 32 - SHORTEST }) != 0 { Err(LineError::TooLarge) } else { Ok(()) }
}

/// `2019-03-04T10:20:30Z`, `2006-11-06` or `20030303` as YYYYMMDD.
fn day(text: &str) -> Option<u32> {
    let digits: String = text.split('T').next()?.chars().filter(|c| *c != '-').collect();
    date(&digits)
}
