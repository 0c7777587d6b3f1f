//! Parsers for values: durations with their unit, sizes with theirs, ranges, addresses, choices; each refusal says what is allowed.

use ipnetwork::IpNetwork;
use nearcrawl_model::url::Host;
use std::{
    fmt::Display,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    time::Duration,
};
use toml::de::DeValue;

/// What a value parser answers: the value, or what is wrong and what is allowed.
pub(super) type Parsed<T> = Result<T, String>;

/// Any text that is not empty.
pub(super) fn text(value: &DeValue<'_>) -> Parsed<String> {
    match any_text(value)? {
        "" => Err("this may not be empty; leave the key out instead".to_owned()),
        text => Ok(text.to_owned()),
    }
}

/// A string, whatever it contains.
pub(super) fn any_text<'v>(value: &'v DeValue<'_>) -> Parsed<&'v str> {
    value.as_str().ok_or_else(|| "write a text in quotes".to_owned())
}

/// `true` or `false`.
pub(super) fn truth(value: &DeValue<'_>) -> Parsed<bool> {
    value.as_bool().ok_or_else(|| "write true or false, without quotes".to_owned())
}

/// A whole number within `range`.
pub(super) fn whole<T>(range: RangeInclusive<T>) -> impl Fn(&DeValue<'_>) -> Parsed<T>
where
    T: TryFrom<i64> + PartialOrd + Display + Copy,
{
    move |value| {
        let wanted = || format!("write a whole number from {} to {}", range.start(), range.end());
        let integer = value.as_integer().ok_or_else(wanted)?;
        let number = i64::from_str_radix(integer.as_str(), integer.radix()).map_err(|_| wanted())?;
        T::try_from(number).ok().filter(|number| range.contains(number)).ok_or_else(wanted)
    }
}

/// One of the named choices.
pub(super) fn choice<T: Copy>(choices: &'static [(&'static str, T)]) -> impl Fn(&DeValue<'_>) -> Parsed<T> {
    move |value| {
        let found = value.as_str().and_then(|text| choices.iter().find(|(name, _)| *name == text));
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<String> = choices.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            format!("write {}", either(&names))
        })
    }
}

/// `a`, `a or b`, `a, b or c`.
fn either(names: &[String]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// The units of a duration, in microseconds, longest first.
const DURATION_UNITS: [(&str, u64); 6] =
    [("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)];

/// A duration within `range`, written like `"45s"`.
pub(super) fn duration(range: RangeInclusive<Duration>) -> impl Fn(&DeValue<'_>) -> Parsed<Duration> {
    move |value| {
        let wanted = || "write a duration in quotes: a whole number and its unit (us, ms, s, m, h or d), like \"45s\"".to_owned();
        let micros = with_unit(value.as_str().ok_or_else(wanted)?, &DURATION_UNITS).ok_or_else(wanted)?;
        let duration = Duration::from_micros(micros);
        if range.contains(&duration) {
            Ok(duration)
        } else {
            Err(format!("write a duration from \"{}\" to \"{}\"", write_duration(*range.start()), write_duration(*range.end())))
        }
    }
}

/// A duration as the configuration writes it: `"7d"`, `"45s"`.
pub(super) fn write_duration(duration: Duration) -> String {
    write_with_unit(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX), &DURATION_UNITS)
}

/// The units of a size, in bytes, largest first.
const SIZE_UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A size in bytes within `range`, written like `"8MiB"`.
pub(super) fn size(range: RangeInclusive<u64>) -> impl Fn(&DeValue<'_>) -> Parsed<u64> {
    move |value| {
        let wanted = || "write a size in quotes: a whole number and its unit (B, KiB, MiB or GiB), like \"8MiB\"".to_owned();
        let bytes = parse_size(value.as_str().ok_or_else(wanted)?).ok_or_else(wanted)?;
        if range.contains(&bytes) {
            Ok(bytes)
        } else {
            let (least, most) = (write_size(*range.start()), write_size(*range.end()));
            Err(format!("write a size from \"{least}\" to \"{most}\""))
        }
    }
}

/// A size as the configuration writes it: `"8MiB"`.
pub(super) fn write_size(bytes: u64) -> String {
    write_with_unit(bytes, &SIZE_UNITS)
}

/// A size as the configuration writes it: `8MiB`.
pub fn parse_size(text: &str) -> Option<u64> {
    with_unit(text, &SIZE_UNITS)
}

fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn write_with_unit(number: u64, units: &[(&str, u64)]) -> String {
    let unit = units.iter().find(|(_, factor)| number >= *factor && number.is_multiple_of(*factor)).or(units.last());
    unit.map_or_else(String::new, |(name, factor)| format!("{}{name}", number / factor))
}

/// A range of addresses with its host bits clear, like `10.0.0.0/8`.
pub(super) fn range(value: &DeValue<'_>) -> Parsed<IpNetwork> {
    let wanted = || "write a range of addresses in quotes, like \"192.0.2.0/24\" or \"2001:db8::/32\"".to_owned();
    let text = value.as_str().filter(|text| text.contains('/')).ok_or_else(wanted)?;
    let network: IpNetwork = text.parse().map_err(|_| wanted())?;
    if network.ip() == network.network() {
        Ok(network)
    } else {
        Err(format!("the address has bits beyond the prefix; write \"{}/{}\"", network.network(), network.prefix()))
    }
}

/// The number of an autonomous system: 36924 or "AS36924".
pub(super) fn as_number(value: &DeValue<'_>) -> Parsed<u32> {
    let digits = value.as_str().map(|text| text.trim_start_matches("AS").trim_start_matches("as"));
    let named = digits.and_then(|digits| digits.parse().ok()).filter(|number| *number > 0);
    let number = || value.as_integer()?.as_str().parse::<u32>().ok();
    named
        .or_else(number)
        .filter(|number| *number > 0)
        .ok_or_else(|| "write the number of an autonomous system, like 36924 or \"AS36924\"".to_owned())
}

/// A top-level domain, without its dot.
pub(super) fn top_level_domain(value: &DeValue<'_>) -> Parsed<String> {
    let wanted = "write a top-level domain in quotes, like \"ke\"; whole hosts belong under scope.hosts or crawl.deny_hosts";
    let text = any_text(value)?;
    let host: Host = text.trim_start_matches('.').parse().map_err(|_| wanted.to_owned())?;
    match host.tld() {
        Some(tld) if tld == host.as_str() => Ok(tld.to_owned()),
        _ => Err(wanted.to_owned()),
    }
}

/// An IP address.
pub(super) fn address(value: &DeValue<'_>) -> Parsed<IpAddr> {
    let wanted = || "write an IP address in quotes, like \"192.0.2.1\"".to_owned();
    value.as_str().and_then(|text| text.parse().ok()).ok_or_else(wanted)
}

/// Whether one machine can have this address: it is no multicast, no broadcast and no unspecified one.
pub(super) fn is_of_one_machine(address: IpAddr) -> bool {
    let address = address.to_canonical();
    !address.is_unspecified() && !is_of_many(address)
}

/// Whether it is a multicast address, or that of all machines of a network.
pub(super) fn is_of_many(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// An IP address with an optional port.
pub(super) fn socket_or_port(port: u16) -> impl Fn(&DeValue<'_>) -> Parsed<SocketAddr> {
    move |value| {
        let wanted =
            || format!("write an IP address in quotes, with a port if it is not {port}, like \"192.0.2.53\" or \"127.0.0.1:5353\"");
        let text = value.as_str().ok_or_else(wanted)?;
        let bare = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, port));
        text.parse().or(bare).map_err(|_| wanted())
    }
}

/// A host name.
pub(super) fn host(value: &DeValue<'_>) -> Parsed<Host> {
    let wanted = || "write a host name in quotes, like \"example.org\", without http:// and without a path".to_owned();
    value.as_str().filter(|text| !text.contains('/')).and_then(|text| text.parse().ok()).ok_or_else(wanted)
}
