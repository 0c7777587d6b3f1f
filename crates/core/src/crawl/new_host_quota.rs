//! Does one domain name hosts without end? Of each registrable domain only so many new hosts a day are led to by links, so that a
//! wildcard in a DNS zone cannot keep a swarm busy. Starting points that people name are not counted, and hosts out of scope never get here.

use super::site::held_back::DAY;
use nearcrawl_model::{fingerprint::Fingerprint, time::Moment, url::Host};
use std::collections::{BTreeMap, BTreeSet};

/// Domains that are watched at once, and hosts of all of them; beyond that the watch begins anew.
const MAX_DOMAINS: usize = 20_000;
const MAX_HOSTS: usize = 500_000;

/// Hosts of one domain wait for at most so many days.
const MAX_DAYS: u64 = 20;

/// A registrable domain that links led to.
#[derive(Debug, Default)]
struct Domain {
    /// When the day began in which so many of its hosts were new.
    since: Moment,
    today: u64,
    /// All of its hosts that were led to.
    hosts: BTreeSet<Fingerprint>,
}

/// The hosts that links led to, by registrable domain.
#[derive(Debug, Default)]
pub(crate) struct NewHostQuota {
    domains: BTreeMap<String, Domain>,
    /// Hosts of all domains.
    hosts: usize,
    /// How many hosts of each domain wait, counted a moment ago.
    waiting: BTreeMap<String, u64>,
}

impl NewHostQuota {
    /// Whether a link to this host may be followed, at most so many new ones a day; `print` stands for the host. Asking again about the same
    /// host changes nothing.
    pub(crate) fn admit(&mut self, host: &Host, print: Fingerprint, per_domain: u64, now: Moment) -> bool {
        // Addresses have no subdomains, so none can be made up.
        let Some(name) = host.registrable().filter(|_| per_domain > 0) else { return true };
        if self.hosts >= MAX_HOSTS || self.domains.len() >= MAX_DOMAINS && !self.domains.contains_key(name) {
            (self.domains, self.hosts) = (BTreeMap::new(), 0);
        }
        let domain = self.domains.entry(name.to_owned()).or_insert_with(|| Domain { since: now, ..Domain::default() });
        if now.since(domain.since) >= DAY {
            (domain.since, domain.today) = (now, 0);
        }
        let known = domain.hosts.contains(&print);
        let admitted = known || domain.today < per_domain;
        if admitted && !known {
            domain.hosts.insert(print);
            domain.today += 1;
            self.hosts += 1;
        }
        admitted
    }

    /// Whether one more host of this one's domain may wait until its day comes.
    pub(crate) fn may_wait(&self, host: &Host, per_domain: u64) -> bool {
        let waiting = host.registrable().and_then(|name| self.waiting.get(name)).copied().unwrap_or(0);
        waiting < per_domain.saturating_mul(MAX_DAYS)
    }

    /// Counts the hosts that wait because of their domain.
    pub(crate) fn count_waiting(&mut self, hosts: impl Iterator<Item = Host>) {
        self.waiting.clear();
        for host in hosts {
            if let Some(name) = host.registrable() {
                *self.waiting.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 50;

    #[test]
    fn fifty_new_hosts_of_a_domain_a_day_and_no_more() {
        let mut newcomers = NewHostQuota::default();
        let mut admit = |name: &str, n: u64, at: u64| newcomers.admit(&name.parse().unwrap(), Fingerprint(n), LIMIT, Moment(at));
        let admitted = (0..80).filter(|n| admit(&format!("h{n}.trap.ke"), *n, 0)).count() as u64;
        assert_eq!(admitted, LIMIT);
        assert!(admit("h3.trap.ke", 3, 1), "one that was met goes on");
        assert!(admit("h1.other.ke", 99, 1), "another domain has its own");
        assert!(!admit("h70.trap.ke", 70, DAY - 1) && admit("h70.trap.ke", 70, DAY), "the next day begins anew");
        assert!((200..300).all(|n| admit("9.0.0.1", n, 2)), "addresses are not made up");
    }

    #[test]
    fn a_host_that_was_led_to_on_an_earlier_day_is_not_new() {
        let mut newcomers = NewHostQuota::default();
        let mut admit = |n: u64, at: u64| newcomers.admit(&format!("h{n}.blogs.ke").parse().unwrap(), Fingerprint(n), LIMIT, Moment(at));
        assert!((0..50).all(|n| admit(n, 0)) && !admit(50, 0));
        assert!((0..50).all(|n| admit(n, DAY)) && (50..100).all(|n| admit(n, DAY)) && !admit(100, DAY));
    }

    #[test]
    fn without_a_limit_all_are_admitted_and_with_one_so_many_wait_as_come_in_twenty_days() {
        let mut newcomers = NewHostQuota::default();
        let host = |n: u64| -> Host { format!("h{n}.trap.ke").parse().unwrap() };
        assert!((0..200).all(|n| newcomers.admit(&host(n), Fingerprint(n), 0, Moment(0))));
        newcomers.count_waiting((0..39).map(host));
        assert!(newcomers.may_wait(&host(40), 2));
        newcomers.count_waiting((0..40).map(host));
        assert!(!newcomers.may_wait(&host(40), 2) && newcomers.may_wait(&"a.other.ke".parse().unwrap(), 2));
    }
}
