//! Settings of an access point: how it crawls, and what it knows when it starts.

use crate::{
    crawl::{politeness::Politeness, scope::Scope, site::SiteRules},
    membership::{RosterConfig, SwimConfig},
};
use ed25519_dalek::SigningKey;
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{AdmissionRule, SignedAdmission},
    claim::SignedClaim,
    fetch::ProbeKind,
    fingerprint::FingerprintKey,
    replica::StoreId,
    time::Millis,
};
use std::{collections::BTreeSet, net::IpAddr};

/// How this access point crawls.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Depth, budget, product token.
    pub rules: SiteRules,
    /// Which external hosts become starting hosts.
    pub scope: Scope,
    /// How many new hosts links may lead to in a day.
    pub new_hosts: NewHostLimits,
    /// How patient with servers.
    pub politeness: Politeness,
    /// By which procedure subnets without an owner get one.
    pub policy: crate::delegation::Policy,
    /// How subnets move to better owners.
    pub migration: crate::migration::judge::MigrationSettings,
    /// How nearness is measured: downloads are timed alike.
    pub probe: ProbeKind,
    /// The port of a web server at our own address, for other members to time the way by.
    pub home_port: Option<u16>,
    /// Delegation procedures at once.
    pub max_parallel_rounds: usize,
    /// Contacts by probes that one subnet may get from the swarm in thirty days, as far as this access point knows.
    pub contacts_per_subnet: u32,
    /// Look-ups of a host that may fail for the moment, one after another, before it counts as one without an address.
    pub max_lookups: u32,
    /// When a tree is visited again after its run began.
    pub revisit: Millis,
    /// URLs that may wait here, all sites together.
    pub max_waiting: usize,
    /// URLs of all sites together that wait in memory; the others wait on disk.
    pub max_in_memory: usize,
    /// What the journals of one other owner may take on our disk, in bytes.
    pub max_kept_per_owner: u64,
    /// Entries of each CLOCK cache.
    pub cache_entries: usize,
    /// This access point's own addresses: their subnets are its own (IPMicra §4.1).
    pub own_addresses: Vec<IpAddr>,
    /// Whether there is any member to join: then nothing is fetched before the first comparison of claims.
    pub joins: bool,
    /// Whether a swarm begins here if this access point knows of no voters: nobody is named to join.
    pub founds: bool,
    /// Whether a swarm has let us in, or began here. If not, nothing is fetched however long no member answers.
    pub member: bool,
    /// Members whose operators' orders to ask nothing of a server are ignored here.
    pub ignore_orders_of: BTreeSet<AccessPoint>,
    /// Who may be a member.
    pub admission: AdmissionRule,
    /// SWIM's times.
    pub membership: SwimConfig,
    /// How long the swarm waits.
    pub roster: RosterConfig,
}

/// How many new hosts links may lead to in a day; beyond that they wait. Hosts out of scope do not count, nor do starting points that people
/// name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewHostLimits {
    /// External hosts that the pages of one site lead to; 0 is no limit.
    pub per_site: u64,
    /// Hosts of one registrable domain that an access point's sites lead to; 0 is no limit.
    pub per_domain: u64,
}

impl Default for NewHostLimits {
    fn default() -> Self {
        NewHostLimits { per_site: 500, per_domain: 50 }
    }
}

/// Who this access point is, and what it remembers of its previous process.
pub struct Identity {
    /// Signs its claims.
    pub key: SigningKey,
    /// Grows with each start.
    pub incarnation: u64,
    /// Where others reach it.
    pub addresses: Vec<String>,
    /// The swarm's fingerprint key.
    pub fingerprints: FingerprintKey,
    /// Claims known at the last stop, ours and others'.
    pub claims: Vec<SignedClaim>,
    /// The settled members at the last stop.
    pub members: BTreeSet<AccessPoint>,
    /// What concerns votes, as [`StoreCommand::StoreVoting`] had it stored: keys and values.
    pub voting: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether the process before with this key surely has ended: it used the same state directory on the same machine.
    pub sole: bool,
    /// The database that the state is in: another number after the loss of a disk.
    pub store: StoreId,
    /// The pages of the record of contacts, as [`StoreCommand::KeepContacts`] had them stored.
    pub contacts: Vec<Vec<u8>>,
    /// The surveys, as [`StoreCommand::StoreSurvey`] had them stored.
    pub surveys: Vec<Vec<u8>>,
    /// What was probed for them, as [`StoreCommand::StoreSurveyProbes`] had it stored.
    pub survey_probes: Vec<Vec<u8>>,
    /// The statements about opt-outs, as [`StoreCommand::KeepOptOuts`] had them stored.
    pub opt_outs: Vec<Vec<u8>>,
    /// Certificates and expulsions, as [`StoreCommand::KeepAdmissions`] had them stored.
    pub admissions: Vec<Vec<u8>>,
    /// The certificate that people gave this access point.
    pub certificate: Option<SignedAdmission>,
}
