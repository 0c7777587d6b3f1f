//! What do people see? Plain values for the API, the page and the command line; nothing here is sent between members.

mod activity;
mod delegation;
mod subject;

pub use activity::{Activity, Span, State, counted};
pub use delegation::{AnswerView, DelegationView, MigrationView};
pub use subject::{NoSubject, Subject};

use super::{
    access_point::AccessPoint,
    chronicle::Holding,
    claim::{Answer, Claim, ClaimReason},
    fetch::{FetchFailure, ResolveFailure},
    record::ServerRecord,
    subnet::Subnet,
    summary::SwarmResults,
    time::{Millis, WallTime},
    url::Host,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, net::IpAddr};
use utoipa::ToSchema;

/// The swarm's totals, as any member answers them.
pub type ResultsView = SwarmResults;

/// One server, as its owner has it on record.
pub type ServerView = ServerRecord;

/// One access point about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusView {
    /// Its peer id.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// The program's version.
    pub version: String,
    /// How long it has been running, in milliseconds.
    pub uptime_ms: Millis,
    /// The swarm's id.
    pub swarm: String,
    /// Addresses at which other members reach it (multiaddr with peer id).
    pub addresses: Vec<String>,
    /// Where a site's owner can complain: from the configuration.
    pub contact: Option<String>,
    /// How it introduces itself to web servers.
    pub user_agent: String,
    /// In one word.
    pub state: State,
    /// Why it is busy or idle, in a sentence.
    pub sentence: String,
    /// Members of the swarm, itself included.
    pub members: MembersView,
    /// Subnets that it holds.
    pub subnets_owned: u64,
    /// Subnets that anybody holds.
    pub subnets_claimed: u64,
    /// Servers that it has on record or in work.
    pub servers: u64,
    /// What it did since it started.
    pub work: WorkView,
    /// Requests without a usable answer since it started, by what went wrong.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, u64>)]
    pub failures: BTreeMap<FetchFailure, u64>,
    /// Names without a usable address that it looked up, by why they have none.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, u64>)]
    pub unresolved: BTreeMap<ResolveFailure, u64>,
    /// How it finds owners for subnets.
    pub delegation: DelegationView,
    /// How subnets move to better owners.
    pub migration: MigrationView,
    /// URLs that wait for their turn here.
    pub waiting_urls: u64,
    /// URLs on their way to other owners, not yet acknowledged.
    pub outgoing_urls: u64,
    /// Connections to web servers that are open now.
    pub open_connections: u64,
    /// The hierarchy in use.
    pub hierarchy: HierarchyView,
    /// The caches of URLs met lately (CLOCK), one line for each place where one stands.
    pub caches: Vec<CacheView>,
    /// Sizes on disk.
    pub store: StoreView,
    /// What was refused, by class: URLs, addresses, probes, hand-overs.
    pub refusals: BTreeMap<String, u64>,
    /// Everything that grows, with the limit that stands against it.
    pub limits: Vec<LimitView>,
}

/// How many members are how alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MembersView {
    /// Answering.
    pub alive: u64,
    /// Not answering, not yet given up.
    pub silent: u64,
    /// Given up.
    pub dead: u64,
}

/// What an access point did since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkView {
    /// HTML pages fetched.
    pub pages: u64,
    /// Requests sent, robots.txt included.
    pub requests: u64,
    /// Bytes of bodies over the wire.
    pub bytes: u64,
    /// Pages (among `pages`) that the server said are the same as in the run before: nothing was downloaded.
    #[serde(default)]
    pub not_modified: u64,
    /// Requests without a usable answer.
    pub failed: u64,
    /// Probes made, for itself and for others.
    pub probes: u64,
    /// Names looked up in the DNS.
    pub lookups: u64,
}

/// How far a crawl is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProgressView {
    /// HTML pages fetched.
    pub pages: u64,
    /// URLs that wait for their turn.
    pub waiting: u64,
    /// Requests under way.
    pub busy: u64,
    /// Servers met.
    pub servers: u64,
    /// Bytes of bodies.
    pub bytes: u64,
}

/// Which tree of subnets is in use; members with equal hashes place every address alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HierarchyView {
    /// Content hash, in hex.
    pub hash: String,
    /// What it was made of, in words.
    pub version: String,
    /// Subnets in it.
    pub subnets: u64,
}

/// One cache of URLs met lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CacheView {
    /// Where it stands.
    pub place: String,
    /// Entries now.
    pub entries: u64,
    /// Entries at most.
    pub capacity: u64,
    /// Met lately.
    pub hits: u64,
    /// Not met lately.
    pub misses: u64,
    /// What caches of other rules would have met, by a sample of one URL in 64.
    #[serde(default)]
    pub shadows: Vec<ShadowView>,
}

/// What a cache of some rule would have met, had it stood in the place of the one there is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShadowView {
    /// The rule: `clock` as the cache itself, `lru`, `random`, or `lru-16`, with 16 times the entries.
    pub policy: String,
    /// Met lately, of the sample.
    pub hits: u64,
    /// Not met lately, of the sample.
    pub misses: u64,
}

/// Sizes on disk, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreView {
    /// What must not be lost.
    pub state_bytes: u64,
    /// What can be built again.
    pub cache_bytes: u64,
}

/// Something that grows, and the most it may.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitView {
    /// What.
    pub name: String,
    /// Now.
    pub used: u64,
    /// At most.
    pub most: u64,
}

/// How alive a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Liveness {
    /// Answers.
    Alive,
    /// Does not answer; keeps what it owns for now.
    Silent,
    /// Given up: others take over.
    Dead,
}

impl fmt::Display for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Liveness::Alive => "alive",
            Liveness::Silent => "silent",
            Liveness::Dead => "dead",
        })
    }
}

/// One member, as the answering one sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerView {
    /// Its peer id.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// Whether it is the one that answers.
    pub is_me: bool,
    /// Addresses known of it.
    pub addresses: Vec<String>,
    /// How alive.
    pub liveness: Liveness,
    /// For how long it has been so, in milliseconds.
    pub since_ms: Millis,
    /// Subnets that it holds by the ownership map.
    pub subnets: u64,
    /// Servers in its roll-up.
    pub servers: u64,
    /// Pages in its roll-up.
    pub pages: u64,
    /// How old its roll-up is, in milliseconds; none if none came yet.
    pub roll_up_age_ms: Option<Millis>,
}

/// Whose a subnet is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnershipView {
    /// What.
    #[schema(value_type = String)]
    pub subnet: Subnet,
    /// How often it changed hands, plus one.
    pub epoch: u64,
    /// Whose.
    #[schema(value_type = String)]
    pub owner: AccessPoint,
    /// What the owner's probe measured, in microseconds.
    pub rtt_us: Option<u32>,
    /// Probes that the decision took, all access points together.
    pub probes: u16,
    /// By what right: `own-subnet`, `awarded`, `owner-dead`, `released`.
    #[schema(value_type = String)]
    pub reason: ClaimReason,
    /// Who came next.
    #[schema(value_type = Option<String>)]
    pub runner_up: Option<AccessPoint>,
    /// Whether the owner gave it up since.
    pub released: bool,
    /// What the others measured, the nearest first; they are named by the beginning of their keys.
    #[serde(default)]
    pub answers: Vec<AnswerView>,
}

impl From<&Claim> for OwnershipView {
    fn from(claim: &Claim) -> Self {
        OwnershipView {
            subnet: claim.subnet,
            epoch: claim.epoch,
            owner: claim.owner,
            rtt_us: claim.rtt_us,
            probes: claim.probes,
            reason: claim.reason,
            runner_up: claim.runner_up,
            released: claim.released,
            answers: claim.answers.iter().map(AnswerView::from).collect(),
        }
    }
}

impl From<&Answer> for AnswerView {
    fn from(answer: &Answer) -> Self {
        AnswerView { access_point: answer.prober.to_string(), rtt_us: answer.rtt_us }
    }
}

/// Why is this URL, host or address crawled by whom, and when? What is not known here is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhyView {
    /// What was asked, in canonical form.
    pub asked: String,
    /// The answer in one or two sentences.
    pub sentence: String,
    /// The host.
    #[schema(value_type = Option<String>)]
    pub host: Option<Host>,
    /// The address that the swarm pinned, or the one that was asked for.
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// The way down the hierarchy, one line a step, from the root to the smallest subnet.
    pub path: Vec<String>,
    /// The smallest subnet.
    #[schema(value_type = Option<String>)]
    pub subnet: Option<Subnet>,
    /// Who holds it, if anybody.
    pub ownership: Option<OwnershipView>,
    /// Who was asked how near the subnet is, and what they measured, the nearest first.
    pub answers: Vec<AnswerView>,
    /// Who had the subnet, as far as is known here: the first one first, the present owner last.
    #[serde(default)]
    pub history: Vec<Holding>,
    /// How the last access to the subnet was judged by the rule of migration, in a sentence.
    #[serde(default)]
    pub judged: Option<String>,
    /// How alive the owner is.
    pub owner_liveness: Option<Liveness>,
    /// Whether the owner is the one that answers: only then the rest is known.
    pub owner_is_me: bool,
    /// The starting host of the site tree, without `www.`.
    #[schema(value_type = Option<String>)]
    pub tree: Option<Host>,
    /// The level in it.
    pub level: Option<u8>,
    /// What became of the URL so far (waiting, fetched with 200, cut by depth, refused by robots.txt …).
    pub state: Option<String>,
    /// When the server was last asked, in milliseconds since 1970.
    #[schema(value_type = Option<u64>)]
    pub last_visit: Option<WallTime>,
    /// In how many milliseconds it may be asked again; 0 is now.
    pub next_visit_in_ms: Option<Millis>,
    /// What robots.txt says of it, and how old that is, in words.
    pub robots: Option<String>,
}

/// What came of URLs that were given as starting points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeedView {
    /// How many were taken in.
    pub accepted: u64,
    /// Those that were not, and why.
    pub refused: Vec<RefusedSeed>,
}

/// A starting point that was not taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedSeed {
    /// As it was given.
    pub url: String,
    /// Why.
    pub why: String,
}

/// Some of the servers on record here, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServersPage {
    /// These.
    pub servers: Vec<ServerView>,
    /// Ask for those after this one, if there are more.
    #[schema(value_type = Option<String>)]
    pub next: Option<Host>,
}

/// What came of asking an access point to leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaveView {
    /// Subnets that it gives back.
    pub released: u64,
}

/// What came of asking an access point to hand a subnet over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MoveView {
    /// Which.
    #[schema(value_type = String)]
    pub subnet: Subnet,
    /// To whom.
    #[schema(value_type = String)]
    pub to: AccessPoint,
    /// Why it stays, in a sentence; none if it is on its way.
    pub why_not: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ownership_reads_as_text_in_json() {
        let claim = Claim {
            subnet: "127.16.3.7/24".parse().unwrap(),
            epoch: 2,
            owner: AccessPoint([1; 32]),
            rtt_us: Some(8_200),
            runner_up: None,
            probes: 3,
            reason: ClaimReason::OwnerDead,
            released: false,
            answers: vec![Answer { rtt_us: 9_100, prober: AccessPoint([2; 32]).into() }],
        };
        let json = serde_json::to_value(OwnershipView::from(&claim)).unwrap();
        assert_eq!(json["subnet"], "127.16.3.0/24");
        assert_eq!(json["owner"], AccessPoint([1; 32]).to_string());
        assert_eq!(json["reason"], "owner-dead");
        assert_eq!(json["probes"], 3);
        assert_eq!(json["answers"], serde_json::json!([{"access_point": "0202020202020202", "rtt_us": 9_100}]));
    }
}
