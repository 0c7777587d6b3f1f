//! Quota of new hosts for each registrable domain.
//!
//! Links may lead to only so many new hosts of a domain a day, so that a wildcard in a DNS zone cannot keep a swarm busy. Starting points
//! that people name are not counted, and hosts out of scope never get here. The count is kept in memory only: journals name the hosts that
//! links led to, with the time, and are read at each start and when a subnet comes from another member.

use super::site::held_back::DAY;
use nearcrawl_model::{
    fingerprint::Fingerprint,
    time::{Millis, Moment},
    url::Host,
};
use std::collections::{BTreeMap, BTreeSet};

/// Domains that are watched at once, and hosts of all of them; beyond that those that have used least of their quota are forgotten.
const MAX_DOMAINS: usize = 20_000;
const MAX_HOSTS: usize = 500_000;

/// How many domains, and hosts, are left when there was no room: forgetting looks at all of them, and is not to be done for each host.
const DOMAINS_LEFT: usize = MAX_DOMAINS / 4 * 3;
const HOSTS_LEFT: usize = MAX_HOSTS / 4 * 3;

/// Hosts of one domain wait for at most so many days.
const MAX_DAYS: u64 = 20;

/// How fine it is counted when hosts were new.
const HOUR: Millis = 3_600_000;

/// A registrable domain that links led to.
#[derive(Debug, Default)]
struct Domain {
    /// How many of its hosts were new in each hour of the last day. Journals are read in any order, and what they tell ends no later hour.
    hours: BTreeMap<u64, u64>,
    /// All of its hosts that were led to.
    hosts: BTreeSet<Fingerprint>,
}

impl Domain {
    /// How many were new within the last day.
    fn today(&mut self, now: Moment) -> u64 {
        self.hours.retain(|hour, _| now.since(Moment(hour * HOUR)) < DAY);
        self.hours.values().sum()
    }

    fn is_new_at(&mut self, at: Moment) {
        *self.hours.entry(at.0 / HOUR).or_default() += 1;
    }
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
        if !self.has_room(name) {
            self.make_room(now);
        }
        let domain = self.domains.entry(name.to_owned()).or_default();
        let known = domain.hosts.contains(&print);
        let admitted = known || domain.today(now) < per_domain;
        if admitted && !known {
            domain.hosts.insert(print);
            domain.is_new_at(now);
            self.hosts += 1;
        }
        admitted
    }

    /// Whether a host of this domain can be added without forgetting others.
    fn has_room(&self, domain: &str) -> bool {
        self.hosts < MAX_HOSTS && (self.domains.len() < MAX_DOMAINS || self.domains.contains_key(domain))
    }

    /// Forgets a quarter: first domains without a new host within the last day, then those with the fewest, and of equals those with the fewest
    /// known hosts. A domain whose quota is used up, as that of a wildcard is, so is the last to be given another one.
    fn make_room(&mut self, now: Moment) {
        let mut by_use: Vec<(u64, usize, String)> =
            self.domains.iter_mut().map(|(name, domain)| (domain.today(now), domain.hosts.len(), name.clone())).collect();
        by_use.sort_unstable();
        for (_, hosts, name) in by_use {
            if self.domains.len() <= DOMAINS_LEFT && self.hosts <= HOSTS_LEFT {
                break;
            }
            self.domains.remove(&name);
            self.hosts -= hosts;
        }
    }

    /// A link led to this host so long ago, as a journal says: a restart, or a move of its subnet, lets no more hosts in. One that was led to
    /// more than a day ago is known, and no more than that; if there is no room for it, it is not.
    pub(crate) fn recall(&mut self, host: &Host, print: Fingerprint, ago: Millis, now: Moment) {
        let Some(name) = host.registrable() else { return };
        if !self.has_room(name) {
            if ago >= DAY {
                return;
            }
            self.make_room(now);
        }
        // The clock begins with the boot of the machine: what was before is as if it had been then.
        let at = Moment(now.0.saturating_sub(ago));
        let domain = self.domains.entry(name.to_owned()).or_default();
        if !domain.hosts.insert(print) {
            return;
        }
        self.hosts += 1;
        if ago < DAY {
            domain.is_new_at(at);
        }
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
    fn what_journals_say_counts_as_if_it_had_been_led_to_here() {
        let host = |n: u64| -> Host { format!("h{n}.trap.ke").parse().unwrap() };
        let now = Moment(30 * DAY);
        let hour = DAY / 24;
        let mut newcomers = NewHostQuota::default();
        let recall = |quota: &mut NewHostQuota, n: u64, ago: Millis| quota.recall(&host(n), Fingerprint(n), ago, now);
        // Of two journals, the later half first; each host comes twice, as two pages name it.
        for n in (20..40).chain(0..20).chain(0..40) {
            recall(&mut newcomers, n, if n < 20 { 5 * hour } else { 2 * hour });
        }
        recall(&mut newcomers, 99, 3 * DAY);
        let mut admit = |n: u64, at: Moment| newcomers.admit(&host(n), Fingerprint(n), LIMIT, at);
        assert!(admit(99, now) && admit(0, now), "those that were led to before are not new");
        assert_eq!((100..200).filter(|n| admit(*n, now)).count(), 10, "ten are left of fifty");
        assert!(!admit(199, now.after(19 * hour - 1)), "the day began with the first of them");
        assert!(admit(199, now.after(19 * hour)));
        // On a machine that was booted a moment ago they are as if they had come then.
        let mut booted = NewHostQuota::default();
        (0..50).for_each(|n| booted.recall(&host(n), Fingerprint(n), 5 * hour, Moment(1_000)));
        assert!(!booted.admit(&host(50), Fingerprint(50), LIMIT, Moment(2_000)));
        assert!(booted.admit(&host(50), Fingerprint(50), LIMIT, Moment(DAY)));
    }

    #[test]
    fn what_a_journal_says_of_long_ago_ends_the_day_of_later_ones_no_sooner() {
        let host = |n: u64| -> Host { format!("h{n}.trap.ke").parse().unwrap() };
        let (now, hour) = (Moment(30 * DAY), DAY / 24);
        let mut newcomers = NewHostQuota::default();
        assert!((0..49).all(|n| newcomers.admit(&host(n), Fingerprint(n), LIMIT, now)));
        // A subnet comes from another member, with one that was led to almost a day ago.
        newcomers.recall(&host(200), Fingerprint(200), 23 * hour, now);
        let mut admitted = |hours: u64| {
            let numbers = 1_000 + hours * 100..1_100 + hours * 100;
            numbers.filter(|n| newcomers.admit(&host(*n), Fingerprint(*n), LIMIT, now.after(hours * hour))).count()
        };
        assert_eq!((admitted(0), admitted(2), admitted(23), admitted(24)), (0, 1, 0, 49));
    }

    #[test]
    fn a_domain_whose_quota_is_used_up_is_not_forgotten_for_the_many_that_were_met_once() {
        let mut newcomers = NewHostQuota::default();
        let domains = 3 * MAX_DOMAINS as u64;
        let once = |n: u64| -> Host { format!("www.d{n}.ke").parse().unwrap() };
        let trap = |n: u64| -> Host { format!("h{n}.trap.ke").parse().unwrap() };
        let prints = |n: u64| Fingerprint(1_000 + n);
        let spent = (0..LIMIT).all(|n| newcomers.admit(&trap(n), Fingerprint(n), LIMIT, Moment(0)));
        assert!(spent && (0..domains).all(|n| newcomers.admit(&once(n), prints(n), LIMIT, Moment(1))));
        assert!(!newcomers.admit(&trap(LIMIT), Fingerprint(LIMIT), LIMIT, Moment(2)), "its quota is used up, whoever came since");
        assert!(newcomers.admit(&trap(3), Fingerprint(3), LIMIT, Moment(2)), "and its hosts are known");
        assert!(
            newcomers.domains.len() <= MAX_DOMAINS && newcomers.hosts == newcomers.domains.values().map(|d| d.hosts.len()).sum::<usize>()
        );
        // What journals say of today takes the place of those met once; what they say of earlier days does not.
        (domains..domains + MAX_DOMAINS as u64).for_each(|n| newcomers.recall(&once(n), prints(n), 2 * DAY, Moment(2)));
        assert_eq!(newcomers.domains.len(), MAX_DOMAINS);
        let other = |n: u64| -> Host { format!("h{n}.other.ke").parse().unwrap() };
        (0..LIMIT).for_each(|n| newcomers.recall(&other(n), Fingerprint(500 + n), 0, Moment(2)));
        assert!(!newcomers.admit(&other(LIMIT), Fingerprint(500 + LIMIT), LIMIT, Moment(3)));
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
