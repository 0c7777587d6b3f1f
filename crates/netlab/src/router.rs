//! Rules of a router for nftables: which packets it lets through, and under which address.

use std::{fmt::Write, net::Ipv4Addr};

/// Where the one machine behind each router is, and the router as that one sees it.
pub const INSIDE: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 2);
pub(crate) const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 1);

/// What stands between a node and the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Router {
    /// Everything from outside goes to the one machine behind it.
    FullCone,
    /// One port outside for one inside, and in come answers only.
    PortRestricted,
    /// Another port outside for each connection.
    Symmetric,
    /// The same as [`Router::PortRestricted`], and nothing passes by UDP but questions to name servers.
    NoUdp,
}

impl Router {
    /// Its rules: `tun0` is outside, `lan0` inside.
    pub(crate) fn rules(self) -> String {
        let mut rules = String::from("table ip nat {\n");
        if self == Router::FullCone {
            let _ = writeln!(
                rules,
                " chain in {{ type nat hook prerouting priority dstnat; policy accept; iifname \"tun0\" dnat to {INSIDE}; }}"
            );
        }
        let ports = if self == Router::Symmetric { " fully-random" } else { "" };
        let _ = writeln!(
            rules,
            " chain out {{ type nat hook postrouting priority srcnat; policy accept; oifname \"tun0\" masquerade{ports}; }}\n}}"
        );
        let no_udp = if self == Router::NoUdp { "meta l4proto udp udp dport != 53 drop; " } else { "" };
        let all = if self == Router::FullCone { "ct status dnat accept; " } else { "" };
        // What nobody asked for is dropped before the kernel remembers it: otherwise it would take the port that is about to be used.
        let _ = writeln!(
            rules,
            "table inet filter {{\n chain input {{ type filter hook input priority filter; policy drop; iifname \"lo\" accept; \
             ct state established,related accept; iifname \"lan0\" accept; }}\n chain forward {{ type filter hook forward priority filter; \
             policy drop; {no_udp}ct state established,related accept; iifname \"lan0\" accept; {all}}}\n}}"
        );
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routers_differ_in_what_they_let_in() {
        let rules = [Router::FullCone, Router::PortRestricted, Router::Symmetric, Router::NoUdp].map(Router::rules);
        assert!(rules.iter().all(|rules| rules.contains("masquerade") && rules.contains("policy drop")));
        let having = |word: &str| rules.iter().map(|rules| rules.contains(word)).collect::<Vec<_>>();
        assert_eq!(having("dnat to"), [true, false, false, false]);
        assert_eq!(having("fully-random"), [false, false, true, false]);
        assert_eq!(having("udp dport"), [false, false, false, true]);
    }
}
