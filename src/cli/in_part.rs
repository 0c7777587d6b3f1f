//! Addresses with many hosts of which not all were visited, as far as rows tell.

use nearcrawl_model::{
    estimates::{Estimate, Estimates},
    view::counted,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, net::IpAddr};

/// How much of the hosts of crowded addresses is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InPartCounts {
    /// Addresses with so many hosts that they are visited one after another, where not all have been.
    pub addresses: u64,
    /// The hosts there.
    pub hosts: u64,
    /// Of these, the ones that were visited, and are a random sample.
    pub sampled: u64,
    /// The hosts at those addresses where too few were visited to stand for the rest.
    pub not_estimated: u64,
}

/// Counts them, row by row.
#[derive(Debug, Default)]
pub struct InPart {
    /// Hosts, and those that are in a sample.
    addresses: BTreeMap<IpAddr, [u64; 2]>,
}

impl InPart {
    /// One more row: its address, and the probability with which it is in the sample of the hosts there.
    pub fn enter(&mut self, address: Option<IpAddr>, inclusion_probability: Option<f64>) {
        let Some(address) = address.filter(|_| inclusion_probability != Some(1.0)) else { return };
        let [hosts, sampled] = self.addresses.entry(address).or_default();
        *hosts += 1;
        *sampled += u64::from(inclusion_probability.is_some_and(|probability| probability > 0.0));
    }

    /// The sums over all addresses.
    pub fn counts(&self) -> InPartCounts {
        let sum = |part: usize| self.addresses.values().map(|counts| counts[part]).sum();
        let not_estimated = self.addresses.values().filter(|[_, sampled]| *sampled == 0).map(|[hosts, _]| hosts).sum();
        InPartCounts { addresses: self.addresses.len() as u64, hosts: sum(0), sampled: sum(1), not_estimated }
    }
}

impl InPartCounts {
    /// How many were visited; none if there is no such address.
    pub fn sentence(&self) -> Option<String> {
        let places = if self.addresses == 1 { "1 address".to_owned() } else { format!("{} addresses", self.addresses) };
        let hosts = counted(self.hosts, "host");
        (self.addresses > 0).then(|| format!("{} of {hosts} at {places} with many were visited so far, in random order", self.sampled))
    }
}

impl From<&Estimates> for InPartCounts {
    fn from(of: &Estimates) -> InPartCounts {
        InPartCounts { addresses: of.addresses, hosts: of.hosts, sampled: of.sampled, not_estimated: of.not_estimated }
    }
}

/// The names of what rows of a CSV say of estimates: what the sums come to with the hosts that were not visited. `failures` is what pages
/// with failures are called.
pub fn estimate_columns(failures: &str) -> Vec<String> {
    let figures = ["servers", "up", "pages", "page_bytes", failures];
    let columns = figures.iter().flat_map(|figure| ["estimated", "margin"].map(|what| format!("{figure}_{what}")));
    columns.chain(["hosts_not_estimated".to_owned()]).collect()
}

/// The cells of [`estimate_columns`], in their order; empty ones for what is not told.
pub fn estimate_cells(figures: [Option<Estimate>; 5], not_estimated: Option<u64>) -> impl Iterator<Item = String> {
    let figures = figures.into_iter().flat_map(|told| [told.map(|told| told.estimated), told.map(|told| told.margin)]);
    figures.chain([not_estimated]).map(|number| number.map(|number| number.to_string()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_crowded_addresses_are_told_and_others_are_not() {
        let mut in_part = InPart::default();
        let at = |address: &str| Some(address.parse().unwrap());
        in_part.enter(at("192.0.2.1"), Some(1.0));
        in_part.enter(None, None);
        assert_eq!((in_part.counts(), in_part.counts().sentence()), (InPartCounts::default(), None));
        (0..12).for_each(|_| in_part.enter(at("192.0.2.2"), Some(0.1)));
        (0..108).for_each(|_| in_part.enter(at("192.0.2.2"), None));
        let said = in_part.counts().sentence();
        assert_eq!(said.as_deref(), Some("12 of 120 hosts at 1 address with many were visited so far, in random order"));
        (0..3).for_each(|_| in_part.enter(at("192.0.2.3"), None));
        assert_eq!(in_part.counts(), InPartCounts { addresses: 2, hosts: 123, sampled: 12, not_estimated: 3 });
    }
}
