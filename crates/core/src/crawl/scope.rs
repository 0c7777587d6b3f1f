//! Scope of the crawl: which external hosts become starting hosts (LL-8, LL-27); the rest is counted, never fetched.

use nearcrawl_model::{subnet::Subnet, url::Host};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, net::IpAddr};

/// Which hosts may be crawled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Every host.
    pub open: bool,
    /// Hosts under these top-level domains.
    pub tlds: BTreeSet<String>,
    /// These hosts and their subdomains.
    pub hosts: BTreeSet<Host>,
    /// Hosts whose address is in these ranges.
    pub ranges: Vec<Subnet>,
    /// Hosts whose address belongs to these autonomous systems, by the hierarchy.
    pub asns: BTreeSet<u32>,
    /// Never these hosts and their subdomains, whichever page names them. A top-level domain denies all under it.
    pub denied: BTreeSet<Host>,
    /// Never servers in these ranges.
    pub denied_ranges: Vec<Subnet>,
    /// Never servers in these autonomous systems, by the hierarchy.
    pub denied_asns: BTreeSet<u32>,
    /// What was in scope at any time, this scope included.
    pub ever: EverInScope,
}

/// Entries of one list in [`EverInScope`]; of more, everything counts as having been in scope.
const MAX_EVER: usize = 100_000;

/// What an operator's scopes had in them, one after another: links may have led to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EverInScope {
    open: bool,
    tlds: BTreeSet<String>,
    hosts: BTreeSet<Host>,
    ranges: BTreeSet<Subnet>,
    asns: BTreeSet<u32>,
}

impl EverInScope {
    /// Whether nothing was.
    pub(crate) fn is_empty(&self) -> bool {
        *self == EverInScope::default()
    }

    /// What this scope has in it was in scope, too. Whether that was not known.
    pub fn add(&mut self, scope: &Scope) -> bool {
        let before = self.clone();
        self.open |= scope.open;
        self.tlds.extend(scope.tlds.iter().cloned());
        self.hosts.extend(scope.hosts.iter().cloned());
        self.ranges.extend(scope.ranges.iter().copied());
        self.asns.extend(scope.asns.iter().copied());
        let most = self.tlds.len().max(self.hosts.len()).max(self.ranges.len()).max(self.asns.len());
        if self.open || most > MAX_EVER {
            *self = EverInScope { open: true, ..EverInScope::default() };
        }
        *self != before
    }

    fn had(&self, host: &Host, address: IpAddr, asn: impl FnOnce() -> Option<u32>) -> bool {
        self.open
            || host.tld().is_some_and(|tld| self.tlds.contains(tld))
            || within_any(host, &self.hosts)
            || self.ranges.iter().any(|range| range.contains(address))
            || (!self.asns.is_empty() && asn().is_some_and(|asn| self.asns.contains(&asn)))
    }
}

impl Scope {
    /// Whether the operator forbids this host.
    pub fn denies(&self, host: &Host) -> bool {
        within_any(host, &self.denied)
    }

    /// Whether the operator forbids this address; which autonomous system it belongs to is asked only if that matters.
    pub fn denies_at(&self, address: IpAddr, asn: impl FnOnce() -> Option<u32>) -> bool {
        within(address, &self.denied_ranges) || (!self.denied_asns.is_empty() && asn().is_some_and(|asn| self.denied_asns.contains(&asn)))
    }

    /// Whether the address of a host decides whether it is in scope, if its name does not.
    pub fn is_of_places(&self) -> bool {
        !self.ranges.is_empty() || !self.asns.is_empty()
    }

    /// Whether a link to a host at this address makes it a starting host, whatever its name.
    pub fn covers(&self, address: IpAddr, asn: impl FnOnce() -> Option<u32>) -> bool {
        within(address, &self.ranges) || (!self.asns.is_empty() && asn().is_some_and(|asn| self.asns.contains(&asn)))
    }

    /// Whether a host was in scope, and is no more: the operator took it out.
    pub fn has_taken_out(&self, host: &Host, address: IpAddr, asn: impl Fn() -> Option<u32>) -> bool {
        self.ever.had(host, address, &asn) && !self.admits(host) && !self.covers(address, &asn)
    }

    /// Whether a link to this host makes it a starting host.
    pub fn admits(&self, host: &Host) -> bool {
        let named = self.open || host.tld().is_some_and(|tld| self.tlds.contains(tld)) || within_any(host, &self.hosts);
        named && !self.denies(host)
    }
}

fn within(address: IpAddr, ranges: &[Subnet]) -> bool {
    ranges.iter().any(|range| range.contains(address))
}

/// Whether the host or a name above it is in the set. A name listed by the operator covers its subdomains even if it is a public
/// suffix: the operator said so.
fn within_any(host: &Host, set: &BTreeSet<Host>) -> bool {
    if set.is_empty() {
        return false;
    }
    if set.contains(host) {
        return true;
    }
    host.address().is_none()
        && host.as_str().match_indices('.').any(|(at, _)| host.as_str()[at + 1..].parse::<Host>().is_ok_and(|above| set.contains(&above)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    #[test]
    fn scope_goes_by_label_boundaries_and_denial_wins() {
        let scope = Scope {
            tlds: ["ke".to_owned()].into(),
            hosts: [host("example.org"), host("test")].into(),
            denied: [host("secret.example.org"), host("bad.ke")].into(),
            ..Scope::default()
        };
        for (name, in_scope) in [
            ("a.ke", true),
            ("ke.com", false),
            ("example.org", true),
            ("www.example.org", true),
            ("notexample.org", false),
            ("x.docs.test", true),
            ("secret.example.org", false),
            ("deep.secret.example.org", false),
            ("bad.ke", false),
            ("notbad.ke", true),
        ] {
            assert_eq!(scope.admits(&host(name)), in_scope, "{name}");
        }
        let open = Scope { open: true, ..scope };
        assert!(open.admits(&host("anything.example")) && !open.admits(&host("www.bad.ke")));
        let without = Scope { denied: [host("ke")].into(), ..open };
        assert!(without.denies(&host("a.co.ke")) && !without.denies(&host("ke.com")), "a top-level domain denies all under it");
    }

    #[test]
    fn what_any_scope_had_and_this_one_has_not_was_taken_out() {
        let at = "192.0.2.9".parse::<IpAddr>().unwrap();
        let wide =
            Scope { tlds: ["ke".to_owned(), "tz".to_owned()].into(), ranges: vec!["192.0.2.0/24".parse().unwrap()], ..Scope::default() };
        let mut narrow = Scope { tlds: ["ke".to_owned()].into(), ..Scope::default() };
        assert!(!narrow.has_taken_out(&host("a.tz"), at, || None), "nothing is known of before");
        assert!(narrow.ever.add(&wide) && !narrow.ever.add(&wide));
        let elsewhere = "198.51.100.1".parse::<IpAddr>().unwrap();
        let taken = |scope: &Scope, name: &str, at| scope.has_taken_out(&host(name), at, || Some(64_500));
        assert!(taken(&narrow, "a.tz", elsewhere) && taken(&narrow, "a.org", at));
        assert!(
            !taken(&narrow, "a.ke", at) && !taken(&narrow, "a.org", elsewhere),
            "that one was named by people, or by another member's scope"
        );
        let again = Scope { asns: [64_500].into(), ..narrow.clone() };
        assert!(!taken(&again, "a.tz", elsewhere), "in scope again");
        narrow.ever.add(&Scope { open: true, ..Scope::default() });
        assert!(taken(&narrow, "a.org", elsewhere));
        let many = Scope { asns: (0..=MAX_EVER as u32).collect(), ..Scope::default() };
        let mut ever = EverInScope::default();
        assert!(ever.add(&many) && ever.open && ever.asns.is_empty());
    }

    #[test]
    fn addresses_are_denied_and_admitted_by_range_and_autonomous_system() {
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let scope = Scope {
            ranges: vec!["192.0.2.0/24".parse().unwrap()],
            asns: [64_500].into(),
            denied_ranges: vec!["2001:db8::/32".parse().unwrap()],
            denied_asns: [64_501].into(),
            ..Scope::default()
        };
        assert!(scope.is_of_places() && !Scope::default().is_of_places());
        assert!(scope.denies_at(at("2001:db8::7"), || None) && scope.denies_at(at("9.0.0.1"), || Some(64_501)));
        assert!(!scope.denies_at(at("9.0.0.1"), || Some(64_500)) && !scope.denies_at(at("9.0.0.1"), || None));
        assert!(
            scope.covers(at("192.0.2.9"), || None) && scope.covers(at("9.0.0.1"), || Some(64_500)) && !scope.covers(at("9.0.0.1"), || None)
        );
        assert!(!Scope::default().denies_at(at("9.0.0.1"), || unreachable!("no rule is about systems")));
    }
}
