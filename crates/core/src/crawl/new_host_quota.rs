//! Does one domain name hosts without end? Of each registrable domain only so many new hosts a day are followed by links, so that a
//! wildcard in a DNS zone cannot keep a swarm busy. Starting points that people name are not counted.

use nearcrawl_model::{
    fingerprint::Fingerprint,
    time::{Millis, Moment},
    url::Host,
};
use std::collections::{BTreeMap, BTreeSet};

/// New hosts of one registrable domain that are followed in a day.
pub(crate) const MAX_A_DAY: usize = 50;

/// Domains that are watched at once; beyond that the watch begins anew.
const MAX_DOMAINS: usize = 20_000;

const DAY: Millis = 86_400_000;

/// The hosts that links led to today, by registrable domain.
#[derive(Debug, Default)]
pub(crate) struct NewHostQuota {
    domains: BTreeMap<String, (Moment, BTreeSet<Fingerprint>)>,
}

impl NewHostQuota {
    /// Whether a link to this host may be followed; `print` stands for the host. Asking again about the same host changes nothing.
    pub(crate) fn admit(&mut self, host: &Host, print: Fingerprint, now: Moment) -> bool {
        // Addresses have no subdomains, so none can be made up.
        let Some(domain) = host.registrable() else { return true };
        if self.domains.len() >= MAX_DOMAINS && !self.domains.contains_key(domain) {
            self.domains.clear();
        }
        let (since, hosts) = self.domains.entry(domain.to_owned()).or_insert_with(|| (now, BTreeSet::new()));
        if now.since(*since) >= DAY {
            *since = now;
            hosts.clear();
        }
        hosts.contains(&print) || hosts.len() < MAX_A_DAY && hosts.insert(print)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_new_hosts_of_a_domain_a_day_and_no_more() {
        let mut newcomers = NewHostQuota::default();
        let mut admit = |name: &str, n: u64, at: u64| newcomers.admit(&name.parse().unwrap(), Fingerprint(n), Moment(at));
        let admitted = (0..80).filter(|n| admit(&format!("h{n}.trap.ke"), *n, 0)).count();
        assert_eq!(admitted, MAX_A_DAY);
        assert!(admit("h3.trap.ke", 3, 1), "one that was met goes on");
        assert!(admit("h1.other.ke", 99, 1), "another domain has its own");
        assert!(!admit("h70.trap.ke", 70, DAY - 1) && admit("h70.trap.ke", 70, DAY), "the next day begins anew");
        assert!((200..300).all(|n| admit("9.0.0.1", n, 2)), "addresses are not made up");
    }
}
