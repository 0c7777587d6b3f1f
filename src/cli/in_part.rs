//! Addresses with many hosts of which not all were visited, as far as rows tell.

use nearcrawl_model::{
    estimates::{Estimate, Estimates},
    view::counted,
};
use serde::{Deserialize, Serialize};

/// How much of the hosts of crowded addresses is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InPartCounts {
    /// Addresses with so many hosts that they are visited one after another, where not all have been.
    pub addresses: u64,
    /// The hosts there.
    pub hosts: u64,
    /// Of these, the ones that were visited in random order, and stand for those that were not.
    pub sampled: u64,
    /// Hosts (among `hosts`) at addresses of which too few were visited to stand for the rest.
    pub not_estimated: u64,
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
/// with failures are called. Behind them: of how many hosts nothing is estimated, and of how many no pages, bytes and failures.
pub fn estimate_columns(failures: &str) -> Vec<String> {
    let figures = ["servers", "up", "pages", "page_bytes", failures];
    let columns = figures.iter().flat_map(|figure| ["estimated", "margin"].map(|what| format!("{figure}_{what}")));
    columns.chain(["hosts_not_estimated", "hosts_sums_not_estimated"].map(str::to_owned)).collect()
}

/// The cells of [`estimate_columns`], in their order; empty ones for what is not told.
pub fn estimate_cells(figures: [Option<Estimate>; 5], not_estimated: Option<u64>) -> impl Iterator<Item = String> {
    let [_, _, pages, ..] = figures;
    let without_sums = not_estimated.zip(pages).map(|(hosts, pages)| pages.not_estimated.max(hosts));
    let figures = figures.into_iter().flat_map(|told| [told.map(|told| told.estimated), told.map(|told| told.margin)]);
    figures.chain([not_estimated, without_sums]).map(|number| number.map(|number| number.to_string()).unwrap_or_default())
}
