//! Whose servers are surveyed? The scope says which external hosts become starting hosts (LL-8, LL-27); the rest is counted, never fetched.

use nearcrawl_model::url::Host;
use std::collections::BTreeSet;

/// Which hosts may be crawled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Every host.
    pub open: bool,
    /// Hosts under these top-level domains.
    pub tlds: BTreeSet<String>,
    /// These hosts and their subdomains.
    pub hosts: BTreeSet<Host>,
    /// Never these hosts and their subdomains, whichever page names them.
    pub denied: BTreeSet<Host>,
}

impl Scope {
    /// Whether the operator forbids this host.
    pub fn denies(&self, host: &Host) -> bool {
        within_any(host, &self.denied)
    }

    /// Whether a link to this host makes it a starting host.
    pub fn admits(&self, host: &Host) -> bool {
        let named = self.open || host.tld().is_some_and(|tld| self.tlds.contains(tld)) || within_any(host, &self.hosts);
        named && !self.denies(host)
    }
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
            open: false,
            tlds: ["ke".to_owned()].into(),
            hosts: [host("example.org"), host("test")].into(),
            denied: [host("secret.example.org"), host("bad.ke")].into(),
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
    }
}
