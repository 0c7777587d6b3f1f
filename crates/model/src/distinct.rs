//! Counts of different hosts, domains and addresses over several members.
//!
//! Each member gives sketches of its sets, whose union is counted: unlike sums over servers, which count twice what two servers name.

use super::{
    access_point::AccessPoint,
    fingerprint::FingerprintKey,
    sketch::{ERROR_RATIO, Sketch},
    time::Millis,
    view::counted,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What one member has, or several together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DistinctSets {
    /// Servers (hosts) with a record.
    pub servers: u64,
    /// Servers (among `servers`) of which it is not known what their last whole run named: earlier versions did not keep that.
    pub unknown: u64,
    /// The addresses of the servers.
    pub addresses: Sketch,
    /// The registrable domains of the servers.
    pub domains: Sketch,
    /// The external hosts that the servers' pages link to.
    pub external_hosts: Sketch,
    /// The registrable domains of those.
    pub external_domains: Sketch,
}

impl DistinctSets {
    /// Adds another member's sets.
    pub fn merge(&mut self, other: &DistinctSets) {
        self.servers = self.servers.saturating_add(other.servers);
        self.unknown = self.unknown.saturating_add(other.unknown);
        self.addresses.merge(&other.addresses);
        self.domains.merge(&other.domains);
        self.external_hosts.merge(&other.external_hosts);
        self.external_domains.merge(&other.external_domains);
    }

    /// By which two members see whether they know the same; never 0.
    pub fn digest(&self) -> u64 {
        let bytes = postcard::to_stdvec(self).unwrap_or_default();
        FingerprintKey([0; 16]).of_bytes(&bytes).0.max(1)
    }
}

/// How many different ones there are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DistinctCount {
    /// How many.
    pub count: u64,
    /// The standard error of an estimate, as a share of `count`; 0 if nothing is estimated: then the count is exact, if the sets are whole.
    pub error_ratio: f64,
}

impl DistinctCount {
    fn of(sketch: &Sketch) -> DistinctCount {
        DistinctCount { count: sketch.count(), error_ratio: if sketch.is_exact() { 0.0 } else { ERROR_RATIO } }
    }

    /// `191 domains`, or `≈ 12,400 domains ± 2 %`.
    pub fn told(&self, what: &str) -> String {
        let number = counted(self.count, what);
        if self.error_ratio == 0.0 { number } else { format!("≈ {number} ± {:.0} %", (self.error_ratio * 100.0).ceil()) }
    }
}

/// How many different hosts, domains and addresses the swarm has met: counts of sets, not sums over servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DistinctView {
    /// The access point that put this answer together.
    #[schema(value_type = String)]
    pub answered_by: AccessPoint,
    /// How long ago the members were asked, in milliseconds; none if they have not told yet what they have.
    pub age_ms: Option<Millis>,
    /// If not every member told its sets as they are now, why, in words.
    pub in_transition_text: Option<String>,
    /// Members whose sets are in it.
    pub members: u64,
    /// Servers (hosts) in these sets.
    pub servers: u64,
    /// Servers (among `servers`) whose external hosts and domains are not in it, because an earlier version did not keep them.
    pub servers_not_counted: u64,
    /// Distinct addresses of the servers.
    pub addresses: DistinctCount,
    /// Distinct registrable domains of the servers.
    pub domains: DistinctCount,
    /// Distinct external hosts that the servers' pages link to.
    pub external_hosts: DistinctCount,
    /// Distinct registrable domains of those.
    pub external_domains: DistinctCount,
}

impl DistinctView {
    /// What these sets, the union of so many members', come to.
    pub fn new(answered_by: AccessPoint, sets: &DistinctSets, members: u64) -> DistinctView {
        DistinctView {
            answered_by,
            age_ms: None,
            in_transition_text: None,
            members,
            servers: sets.servers,
            servers_not_counted: sets.unknown,
            addresses: DistinctCount::of(&sets.addresses),
            domains: DistinctCount::of(&sets.domains),
            external_hosts: DistinctCount::of(&sets.external_hosts),
            external_domains: DistinctCount::of(&sets.external_domains),
        }
    }

    /// Whether the members are yet to tell what they have now.
    pub fn is_awaited(&self) -> bool {
        self.age_ms.is_none()
    }

    /// In two sentences for people.
    pub fn told(&self) -> String {
        let servers = DistinctCount { count: self.servers, error_ratio: 0.0 }.told("host");
        let own = format!("distinct servers: {servers} at {} in {}", self.addresses.told("address"), self.domains.told("domain"));
        let linked = format!("distinct external: {} in {}", self.external_hosts.told("host"), self.external_domains.told("domain"));
        let left_out = match self.servers_not_counted {
            0 => String::new(),
            some => format!(" (without those of {}, of an earlier version)", counted(some, "server")),
        };
        let so_far = self.in_transition_text.as_ref().map_or_else(String::new, |why| format!("; counted so far: {why}"));
        format!("{own}; {linked}{left_out}{so_far}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_sets_merge_and_what_is_an_estimate_says_so() {
        let key = FingerprintKey([1; 16]);
        let set = |numbers: std::ops::Range<u32>| numbers.map(|number| key.of(&number.to_string())).collect::<Sketch>();
        let member = |from: u32| DistinctSets {
            servers: 3,
            unknown: u64::from(from == 0),
            addresses: set(0..1),
            domains: set(from..from + 2),
            external_hosts: set(from..from + 20_000),
            external_domains: set(0..191),
        };
        let mut sum = member(0);
        sum.merge(&member(10_000));
        let view = DistinctView::new(AccessPoint([1; 32]), &sum, 2);
        let told = view.told();
        assert!(told.starts_with("distinct servers: 6 hosts at 1 address in 4 domains; distinct external: ≈ "), "{told}");
        assert!(told.ends_with(" hosts ± 2 % in 191 domains (without those of 1 server, of an earlier version)"), "{told}");
        let silent = DistinctView { in_transition_text: Some("x did not tell".to_owned()), ..view.clone() };
        assert_eq!(silent.told(), format!("{told}; counted so far: x did not tell"));
        let (count, error) = (view.external_hosts.count as f64, view.external_hosts.error_ratio);
        assert!((count / 30_000.0 - 1.0).abs() < 4.0 * error, "{count}");
        assert!(member(0).digest() == member(0).digest() && member(0).digest() != member(1).digest());
        assert!(postcard::to_stdvec(&sum).unwrap().len() < 5_000, "{}", postcard::to_stdvec(&sum).unwrap().len());
    }
}
