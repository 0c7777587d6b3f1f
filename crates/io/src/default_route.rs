//! Reads the kernel's tables of routes for the interfaces that the default routes go over.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
};

/// Of a router's table no more is read: some 28,000 lines of IPv6, whose default route stands behind the longer prefixes of its table.
const MAX_READ: u64 = 4 << 20;

/// The flags of a route that is in use, and of one that refuses packets.
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;

/// Two tables that are there without the rest of /proc, too.
const IPV4: &str = "/proc/self/net/route";
const IPV6: &str = "/proc/self/net/ipv6_route";

/// The interfaces of the default routes of IPv4 and of IPv6, where there are any.
pub fn interfaces() -> Vec<String> {
    let table = |path: &str, parse: fn(&str) -> Option<Route>| {
        let Ok(file) = File::open(path) else { return None };
        least(BufReader::new(file.take(MAX_READ)).lines().map_while(Result::ok), parse)
    };
    let mut found: Vec<String> = table(IPV4, of_ipv4).into_iter().chain(table(IPV6, of_ipv6)).collect();
    found.dedup();
    found
}

/// A default route.
#[derive(Debug, PartialEq, Eq)]
struct Route {
    metric: u32,
    interface: String,
}

/// The interface of the route with the least metric, and of equal ones the first.
fn least(lines: impl Iterator<Item = String>, parse: fn(&str) -> Option<Route>) -> Option<String> {
    lines.filter_map(|line| parse(&line)).min_by_key(|route| route.metric).map(|route| route.interface)
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

/// Whether packets go this way.
fn passes(flags: u32) -> bool {
    flags & UP != 0 && flags & REJECT == 0
}

/// Interface, destination, gateway, flags, two counters, metric, mask; the metric is decimal.
fn of_ipv4(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [interface, destination, _, flags, _, _, metric, mask, ..] = fields[..] else { return None };
    let is_default = hexadecimal(destination)? == 0 && hexadecimal(mask)? == 0 && passes(hexadecimal(flags)?);
    is_default.then_some(Route { metric: metric.parse().ok()?, interface: interface.to_owned() })
}

/// Destination and its length, source and its length, next hop, metric, two counters, flags, interface.
fn of_ipv6(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [destination, length, _, _, _, metric, _, _, flags, interface] = fields[..] else { return None };
    let is_default = destination.bytes().all(|byte| byte == b'0') && hexadecimal(length)? == 0 && passes(hexadecimal(flags)?);
    is_default.then_some(Route { metric: hexadecimal(metric)?, interface: interface.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two default routes, one by a cable and one by a stick, one that refuses packets, and one that is no default.
    const TABLE_4: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        wwan0\t00000000\t0101A8C0\t0003\t0\t0\t700\t00000000\t0\t0\t0\n\
        eth0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        *\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0\n\
        tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n\
        eth0\t0000A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";

    const NONE: &str = "00000000000000000000000000000000";

    #[test]
    fn the_default_route_of_ipv4_is_that_with_the_least_metric() {
        let of = |text: &str| least(text.lines().map(str::to_owned), of_ipv4);
        assert_eq!(of(TABLE_4).as_deref(), Some("eth0"));
        let unplugged: String = TABLE_4.lines().filter(|line| !line.starts_with("eth0")).map(|line| format!("{line}\n")).collect();
        assert_eq!(of(&unplugged).as_deref(), Some("wwan0"));
        assert_eq!(of("Iface\tDestination\nnonsense\n"), None);
    }

    #[test]
    fn the_default_route_of_ipv6_is_no_route_that_refuses() {
        let line = |length: &str, metric: &str, flags: &str, interface: &str| {
            format!("{NONE} {length} {NONE} 00 fe80000000000000000000000000000{length} {metric} 00000001 00000000 {flags} {interface}\n")
        };
        let of = |text: &str| least(text.lines().map(str::to_owned), of_ipv6);
        let text = line("00", "00000400", "00450003", "usb0")
            + &line("00", "ffffffff", "00200200", "lo")
            + &line("80", "00000000", "80200001", "lo");
        assert_eq!(of(&text).as_deref(), Some("usb0"));
        assert_eq!(of(&(line("00", "00000064", "00000003", "wlan0") + &text)).as_deref(), Some("wlan0"));
        assert_eq!(of(&line("00", "ffffffff", "00200200", "lo")), None);
    }
}
