//! Finds subnets that two members fetched from, and addresses that were not left alone for as long as they ask.

use super::super::build::{DELAY_FACTOR, MIN_DELAY};
use crate::swarm::{
    Played,
    ledger::{Contact, Purpose},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    subnet::Subnet,
    time::{Millis, Moment},
};
use std::{collections::BTreeMap, net::IpAddr};

/// Fetches of one subnet by two members belong to one overlap if no more time passes between them.
const OVERLAP_GAP: Millis = 60_000;

/// What broke a promise: how often, for how long at most, and the first time.
#[derive(Default)]
pub(in crate::scenario) struct Found {
    pub(in crate::scenario) count: u64,
    pub(in crate::scenario) longest: Millis,
    pub(in crate::scenario) first: Option<(Moment, String)>,
}

/// How long addresses rest in a scenario.
pub(in crate::scenario) struct Pauses {
    /// What robots.txt asks for, in milliseconds.
    pub(in crate::scenario) crawl_delay: Millis,
    /// By which factor the quickest clock may shorten a pause: 1 if no clock is quick.
    pub(in crate::scenario) slack: f64,
}

impl Pauses {
    /// Until when an address rests after one contact, if another is the next. Who asked for a page knows what its robots.txt asks for.
    fn until(&self, first: &Contact, second: &Contact) -> Moment {
        let asked = match (&first.purpose, &second.purpose) {
            (Purpose::Page(first), Purpose::Page(second)) if first.host() == second.host() => self.crawl_delay,
            _ => 0,
        };
        let rest = MIN_DELAY.max(DELAY_FACTOR * first.end.since(first.begin)).max(asked);
        first.end.after((rest as f64 * self.slack) as Millis)
    }

    /// Until when a contact can matter to a later one.
    fn longest(&self, contact: &Contact) -> Moment {
        contact.end.after(self.crawl_delay.max(MIN_DELAY).max(DELAY_FACTOR * contact.end.since(contact.begin)))
    }
}

/// Pairs of fetches of one subnet by two members at one time, or of one address before its pause was over; and the longest time in which two
/// members fetched one subnet.
pub(in crate::scenario) fn overlaps(world: &Played, pauses: &Pauses) -> Found {
    let mut recent: BTreeMap<Subnet, Vec<&Contact>> = BTreeMap::new();
    let mut spans: BTreeMap<(Subnet, AccessPoint, AccessPoint), (Moment, Moment)> = BTreeMap::new();
    let mut found = Found::default();
    for contact in world.ledger.contacts.iter().filter(|contact| contact.purpose != Purpose::Probe) {
        let subnet = Subnet::around(contact.address, 24);
        let before = recent.entry(subnet).or_default();
        before.retain(|other| pauses.longest(other) > contact.begin);
        for other in before.iter().filter(|other| other.by != contact.by) {
            // Pauses are those of addresses: who takes a subnet over may go on with one that has rested.
            let until = if other.address == contact.address { pauses.until(other, contact) } else { other.end };
            if until <= contact.begin {
                continue;
            }
            found.count += 1;
            found.first.get_or_insert_with(|| {
                let number = |who| world.number_of_process(&who).map_or_else(|| "?".to_owned(), |number| number.to_string());
                (contact.begin, format!("members {} and {} fetched at {}", number(other.by), number(contact.by), contact.address))
            });
            let key = (subnet, other.by.min(contact.by), other.by.max(contact.by));
            let span = spans.entry(key).or_insert((other.begin, contact.end));
            if contact.begin.since(span.1) > OVERLAP_GAP {
                span.0 = other.begin;
            }
            span.1 = span.1.max(contact.end);
            found.longest = found.longest.max(span.1.since(span.0));
        }
        before.push(contact);
    }
    found
}

/// Contacts with an address, whoever made them and what for, before the pause after the last one was over.
pub(in crate::scenario) fn broken_pauses(world: &Played, pauses: &Pauses) -> Found {
    let mut last: BTreeMap<IpAddr, &Contact> = BTreeMap::new();
    let mut found = Found::default();
    for contact in &world.ledger.contacts {
        if let Some(before) = last.insert(contact.address, contact)
            && contact.begin < pauses.until(before, contact)
        {
            found.count += 1;
            let what = || format!("{} was asked again before its pause was over", contact.address);
            found.first.get_or_insert_with(|| (contact.begin, what()));
        }
    }
    found
}
