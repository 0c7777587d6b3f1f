//! Ledger of the web servers: every contact of any access point with every address, and whether it was polite.

use nearcrawl_model::{
    access_point::AccessPoint,
    opt_out::OptOutKey,
    time::{Millis, Moment},
    url::PageUrl,
};
use std::{collections::BTreeMap, net::IpAddr};

/// What a contact was for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// To measure the round-trip time.
    Probe,
    /// To fetch robots.txt.
    Robots(PageUrl),
    /// To fetch a page.
    Page(PageUrl),
}

/// One contact with one address.
#[derive(Clone, Debug)]
pub struct Contact {
    /// The address contacted.
    pub address: IpAddr,
    /// The access point that made it.
    pub by: AccessPoint,
    /// When it began.
    pub begin: Moment,
    /// When it ended, or will end.
    pub end: Moment,
    /// What it was for.
    pub purpose: Purpose,
}

/// Two contacts with one address that came too close.
#[derive(Clone, Debug)]
pub struct TooClose {
    /// The earlier one.
    pub first: Contact,
    /// The later one.
    pub second: Contact,
    /// How long the address should have rested between them.
    pub rest: Millis,
}

/// All contacts of a world.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// In the order in which they began.
    pub contacts: Vec<Contact>,
    /// Proofs of opt-outs that were looked for, with when and by whom.
    pub looks: Vec<(Moment, AccessPoint, OptOutKey)>,
}

impl Ledger {
    /// How often each page was asked for.
    pub fn fetches(&self) -> BTreeMap<PageUrl, u32> {
        let mut counts = BTreeMap::new();
        for contact in &self.contacts {
            if let Purpose::Page(url) = &contact.purpose {
                *counts.entry(url.clone()).or_default() += 1;
            }
        }
        counts
    }

    /// Requests for pages and robots.txt, probes not counted.
    pub fn requests(&self) -> u64 {
        self.contacts.iter().filter(|contact| contact.purpose != Purpose::Probe).count() as u64
    }

    /// Number of probes.
    pub fn probes(&self) -> u64 {
        self.contacts.len() as u64 - self.requests()
    }

    /// Contacts with one address that overlapped, or between which it rested for less than max(`least`, `factor` x duration).
    pub fn too_close(&self, least: Millis, factor: u64) -> Vec<TooClose> {
        let mut by_address: BTreeMap<IpAddr, Vec<&Contact>> = BTreeMap::new();
        for contact in &self.contacts {
            by_address.entry(contact.address).or_default().push(contact);
        }
        let mut found = Vec::new();
        for contacts in by_address.values() {
            for pair in contacts.windows(2) {
                let rest = least.max(factor * pair[0].end.since(pair[0].begin));
                if pair[1].begin < pair[0].end.after(rest) {
                    found.push(TooClose { first: pair[0].clone(), second: pair[1].clone(), rest });
                }
            }
        }
        found
    }
}
