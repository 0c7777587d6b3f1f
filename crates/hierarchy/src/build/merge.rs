//! Merges what all files say: one statement of each prefix, and every gap in it filled from the subnet around it.
//!
//! * **Doubles.** Of several statements about one prefix the highest ranked is believed; what it leaves open (country, holder) is taken
//!   from the next.
//! * **One holder, two names.** Statistics name holders by opaque ids, WHOIS by its own. Where WHOIS says exactly the same prefix as the
//!   statistics, both mean the same holder; an organisation of WHOIS that so means one holder and no other *is* that holder, in all its
//!   networks.
//! * **Ranges above.** WHOIS and the tables also have ranges that registries delegate *from* (`1.0.0.0/8`). Such a range would put
//!   everything beneath it into one organisation and country: what strictly covers a delegated block, and lies in none, is left out.
//! * **AS numbers** stand for whoever a registry assigned them to; where no statistics say, for an organisation of that number.
//! * **Routes** inside a subnet are networks of the same holder, because a table of routes says who announces, not who registered.
//! * **Countries** inside a subnet are networks only where they differ from it.

use super::{
    super::{
        assemble::AssemblyError,
        entries::{Entry, Origin},
    },
    collected::{Collected, INHERITED, NOWHERE, OWN_TITLE, Systems, Title, UNTOLD, keep_least},
    spelling,
};
use std::collections::BTreeMap;

/// The registry of what no registry is known of.
pub(super) const ELSEWHERE: &str = "other";

/// The prefixes around one, of entries that are visited in address order: the outermost first, with their indices.
#[derive(Default)]
struct Around(Vec<(usize, Entry)>);

impl Around {
    /// Leaves what does not cover the next one.
    fn come_to(&mut self, next: &Entry) {
        while self.0.last().is_some_and(|(_, a)| !a.prefix.covers(&next.prefix)) {
            self.0.pop();
        }
    }
}

impl Collected {
    /// Settles everything that is open in the material.
    pub(crate) fn merge(&mut self) -> Result<(), AssemblyError> {
        self.sort_systems();
        self.name_by_systems();
        let mut same = self.settle_systems()?;
        self.sort();
        self.without_doubles(&mut same);
        self.without_roofs();
        let are_names_told = !(self.learnt.names.is_empty() && self.learnt.titles.is_empty());
        let mut titles: BTreeMap<u32, Title> = BTreeMap::new();
        for (organisation, title) in std::mem::take(&mut self.learnt.titles) {
            keep_least(&mut titles, alias(&same, organisation), title);
        }
        let mut countries: BTreeMap<u32, [u8; 2]> = BTreeMap::new();
        let of_systems = self.systems.iter().map(|s| (s.organisation, s.country)).filter(|(_, country)| *country != NOWHERE);
        for (organisation, country) in std::mem::take(&mut self.learnt.countries).into_iter().chain(of_systems) {
            keep_least(&mut countries, alias(&same, organisation), country);
        }
        self.material.entries.renumber(|_, organisation| *organisation = alias(&same, *organisation));
        self.fill_gaps(&countries)?;
        let holders = &mut self.material.organisations;
        for (organisation, (kind, title)) in titles {
            if kind == OWN_TITLE || holders.get(organisation).name.is_empty() {
                holders.set_name(organisation, &title);
            }
        }
        // What was built before has its spellings.
        if are_names_told {
            spelling::unify(holders);
        }
        Ok(())
    }

    /// Registry and id of an organisation: the same whatever number it has got. Open ones come last.
    fn name_of(&self, organisation: u32) -> (bool, &str, &str) {
        if organisation == INHERITED {
            return (true, "", "");
        }
        let holder = self.material.organisations.get(organisation);
        (false, self.registry_name(holder.registry), holder.id)
    }

    fn registry_name(&self, registry: u16) -> &str {
        self.material.registries.get(usize::from(registry)).map_or("", String::as_str)
    }

    fn sort_systems(&mut self) {
        let mut systems = std::mem::take(&mut self.systems);
        systems.sort_unstable_by(|a, b| {
            let names = || self.name_of(a.organisation).cmp(&self.name_of(b.organisation));
            a.first.cmp(&b.first).then_with(names).then(b.count.cmp(&a.count)).then(a.country.cmp(&b.country))
        });
        self.systems = systems;
    }

    /// Gives every organisation the smallest of its AS numbers and, if any of them has a name, the name of the smallest such.
    fn name_by_systems(&mut self) {
        for Systems { first, count, organisation, .. } in &self.systems {
            let holders = &mut self.material.organisations;
            let known = holders.get(*organisation);
            let (asn, unnamed) = (known.asn, known.name.is_empty());
            if asn == 0 {
                holders.set_asn(*organisation, *first);
            }
            let last = first.saturating_add(count - 1);
            if unnamed && let Some((_, name)) = self.learnt.names.range(first..=&last).next() {
                holders.set_name(*organisation, name);
            }
        }
    }

    /// Whom AS numbers stand for; the organisations that they are the same as.
    fn settle_systems(&mut self) -> Result<BTreeMap<u32, u32>, AssemblyError> {
        let mut same = BTreeMap::new();
        let holders = (0u32..).zip(self.material.organisations.iter());
        let open: Vec<(u32, u32)> = holders.filter(|(_, holder)| holder.registry == UNTOLD).map(|(o, holder)| (o, holder.asn)).collect();
        for (organisation, asn) in open {
            // The nearest assignment before it; one that has the same number twice is settled by the order of the systems.
            let before = self.systems.partition_point(|s| s.first <= asn);
            let start = before.checked_sub(1).map(|last| self.systems.partition_point(|s| s.first < self.systems[last].first));
            let held = start.and_then(|start| self.systems[start..before].iter().find(|s| asn - s.first < s.count));
            let stands_for = match held {
                Some(held) => held.organisation,
                None => {
                    let registry = self.elsewhere()?;
                    let itself = self.organisation(registry, &format!("AS{asn}"));
                    let holders = &mut self.material.organisations;
                    holders.set_asn(itself, asn);
                    if let Some(name) = self.learnt.names.get(&asn) {
                        holders.set_name(itself, name);
                    }
                    itself
                }
            };
            same.insert(organisation, stands_for);
        }
        Ok(same)
    }

    fn elsewhere(&mut self) -> Result<u16, AssemblyError> {
        let places = self.material.registries.len();
        self.registry(ELSEWHERE).ok_or(AssemblyError::Places(places))
    }

    /// Address order; of one prefix the highest rank first. Ties are broken by names, as numbers depend on the order of the files.
    fn sort(&mut self) {
        let mut entries = std::mem::take(&mut self.material.entries);
        let names = |e: &Entry| (self.registry_name(e.place.registry), self.name_of(e.organisation), e.place.country);
        entries.sort_by(|a, b| names(a).cmp(&names(b)));
        self.material.entries = entries;
    }

    /// Keeps one statement of each prefix, and learns which organisations of WHOIS are whose of the statistics.
    fn without_doubles(&mut self, same: &mut BTreeMap<u32, u32>) {
        let entries = &mut self.material.entries;
        let mut delegated = vec![false; self.material.organisations.len()];
        let official = (0..entries.len()).map(|i| entries.entry(i)).filter(|e| e.rank.origin >= Origin::Delegated);
        official.for_each(|e| delegated[e.organisation as usize] = true);
        let mut meant: BTreeMap<u32, Option<u32>> = BTreeMap::new();
        entries.merge(|kept, next| {
            let open = delegated.get(next.organisation as usize).copied().unwrap_or(true);
            if next.rank.origin == Origin::Registered && kept.rank.origin == Origin::Delegated && !open {
                let holder = meant.entry(next.organisation).or_insert(Some(kept.organisation));
                if *holder != Some(kept.organisation) {
                    *holder = None;
                }
            }
            if kept.place.country == NOWHERE {
                kept.place.country = next.place.country;
            }
            if kept.place.registry == UNTOLD {
                kept.place.registry = next.place.registry;
            }
            if kept.organisation == INHERITED {
                kept.organisation = next.organisation;
            }
        });
        same.extend(meant.into_iter().filter_map(|(organisation, holder)| Some((organisation, holder?))));
    }

    /// Leaves out what covers delegated blocks and lies in none.
    fn without_roofs(&mut self) {
        let entries = &mut self.material.entries;
        let mut roofs = vec![false; entries.len()];
        let mut around = Around::default();
        for i in 0..entries.len() {
            let entry = entries.entry(i);
            around.come_to(&entry);
            if entry.rank.origin >= Origin::Delegated {
                let outermost = around.0.iter().take_while(|(_, a)| a.rank.origin < Origin::Delegated);
                outermost.for_each(|(a, _)| roofs[*a] = true);
            }
            around.0.push((i, entry));
        }
        entries.retain(|i| !roofs[i]);
    }

    /// Takes what is open from the subnet around.
    fn fill_gaps(&mut self, countries: &BTreeMap<u32, [u8; 2]>) -> Result<(), AssemblyError> {
        let len = self.material.entries.len();
        let mut said_already = vec![false; len];
        let mut around = Around::default();
        for (i, said) in said_already.iter_mut().enumerate() {
            let mut entry = self.material.entries.entry(i);
            around.come_to(&entry);
            let outer = around.0.last().map(|(_, outer)| *outer);
            if self.fill_gap(&mut entry, outer, countries)? {
                self.material.entries.set(i, entry.place, entry.organisation);
                around.0.push((i, entry));
            } else {
                *said = true;
            }
        }
        self.material.entries.retain(|i| !said_already[i]);
        Ok(())
    }

    /// Takes what is open in one entry from the one around it; false if it says nothing then.
    fn fill_gap(&mut self, entry: &mut Entry, outer: Option<Entry>, countries: &BTreeMap<u32, [u8; 2]>) -> Result<bool, AssemblyError> {
        if entry.rank.origin >= Origin::Delegated {
            return Ok(true);
        }
        if entry.place.country == NOWHERE && entry.organisation != INHERITED && !(entry.rank.origin == Origin::Routed && outer.is_some()) {
            entry.place.country = countries.get(&entry.organisation).copied().unwrap_or(NOWHERE);
        }
        if let Some(outer) = outer {
            if entry.rank.origin == Origin::Routed || entry.organisation == INHERITED {
                entry.organisation = outer.organisation;
            }
            if entry.place.registry == UNTOLD {
                entry.place.registry = outer.place.registry;
            }
            if entry.place.country == NOWHERE {
                entry.place.country = outer.place.country;
            }
            return Ok(entry.rank.origin != Origin::Placed || entry.place.country != outer.place.country);
        }
        if entry.place.registry == UNTOLD {
            entry.place.registry = match entry.organisation {
                INHERITED => self.elsewhere()?,
                organisation => self.material.organisations.get(organisation).registry,
            };
        }
        if entry.organisation == INHERITED {
            entry.organisation = self.organisation(entry.place.registry, &entry.prefix.subnet().to_string());
        }
        Ok(true)
    }
}

/// The organisation that this one is the same as.
fn alias(same: &BTreeMap<u32, u32>, organisation: u32) -> u32 {
    same.get(&organisation).copied().unwrap_or(organisation)
}
