//! Views for people: plain values for the API, the page and the command line; nothing here is sent between members.

mod activity;
mod delegation;
mod events;
mod measured_transfer;
mod reachability;
mod subject;
mod visit_state;

pub use activity::{Activity, Age, Span, State, counted};
pub use delegation::{DelegationView, MeasurementView, MigrationView};
pub use events::{EventKind, EventOutcome, EventRow, EventView, EventsHead, EventsView};
pub use measured_transfer::MeasuredTransfer;
pub use reachability::{ConfirmedAddress, ReachState, ReachabilityView};
pub use subject::{Subject, SubjectError};
pub use visit_state::VisitState;

use super::{
    access_point::{AccessPoint, ShortId},
    allowance::AllowanceView,
    claim::{Answer, Claim, ClaimReason},
    facts::ServerFacts,
    failing_pages::{FailingPage, FailingPages},
    fetch::{FetchError, ResolveError},
    ownership_history::Holding,
    plan::Pace,
    profile::Profile,
    record::ServerRecord,
    subnet::Subnet,
    summary::SwarmResults,
    survey::SurveyMark,
    time::{Millis, WallTime},
    url::Host,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, net::IpAddr};
use utoipa::ToSchema;

/// The swarm's totals, as any member answers them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResultsView {
    /// The totals.
    #[serde(flatten)]
    pub results: SwarmResults,
    /// Whether every server is counted with a whole run. If not, `summary.total.unfinished` servers are in their first run, and the sums contain
    /// what there is of it so far: they grow until it is over, and are not exact.
    pub whole_runs: bool,
    /// Where only a part of the hosts of an address was visited: what the totals come to with the others, and from how many, in words; none if all
    /// is counted.
    #[serde(default)]
    pub sample_text: Option<String>,
}

impl From<SwarmResults> for ResultsView {
    fn from(results: SwarmResults) -> ResultsView {
        let sample_text = results.summary.estimates.sentence();
        ResultsView { whole_runs: results.of_whole_runs(), sample_text, results: results.for_readers() }
    }
}

/// One server, as its owner has it on record.
pub(crate) type ServerView = ServerRecord;

/// One access point about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
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
    /// How others get to it.
    #[serde(default)]
    pub reachability: ReachabilityView,
    /// Where a site's owner can complain: from the configuration.
    pub contact: Option<String>,
    /// How it introduces itself to web servers.
    pub user_agent: String,
    /// How it visits servers.
    pub pace: Pace,
    /// Why other members could not be reached lately; none if that did not happen since a swarm admitted this access point.
    pub connection_errors_text: Option<String>,
    /// The file with the token by which changes are allowed: who can read it may change something.
    #[serde(default)]
    pub token_file: Option<String>,
    /// What it is doing.
    pub state: State,
    /// Why it is busy or idle, in a sentence.
    pub state_text: String,
    /// That it is the only member of its swarm, in a sentence; none if there are others or it has not joined one.
    #[serde(default)]
    pub alone_text: Option<String>,
    /// Members of the swarm, itself included.
    pub members: MemberCounts,
    /// Who decides which member owns what.
    #[serde(default)]
    pub voters: VotersView,
    /// Subnets that it holds.
    pub subnets_owned: u64,
    /// Subnets that have an owner.
    pub subnets_claimed: u64,
    /// Servers that it has on record or in work.
    pub servers: u64,
    /// What it did since it started.
    pub work: WorkView,
    /// Requests without a usable answer since it started, by what went wrong.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, u64>)]
    pub failures: BTreeMap<FetchError, u64>,
    /// Names without a usable address that it looked up, by why they have none.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, u64>)]
    pub unresolved: BTreeMap<ResolveError, u64>,
    /// How it finds owners for subnets.
    pub delegation: DelegationView,
    /// How subnets move to better owners.
    pub migration: MigrationView,
    /// Its subnets that its operator pinned: neither nearness nor load moves them.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub pinned_subnets: Vec<Subnet>,
    /// URLs that wait for their turn here.
    pub waiting_urls: u64,
    /// URLs on their way to other owners, not yet acknowledged.
    pub outgoing_urls: u64,
    /// Connections to web servers that are open now.
    pub open_connections: u64,
    /// The hierarchy in use.
    pub hierarchy: HierarchyView,
    /// The caches of recently seen URLs (CLOCK), one line for each place where one is used.
    pub caches: Vec<CacheView>,
    /// Sizes on disk.
    pub store: StoreView,
    /// What its operator lets it do, and how much of that is used.
    #[serde(default)]
    pub allowance: AllowanceView,
    /// What was refused, by class: URLs, addresses, probes, hand-overs.
    pub refusals: BTreeMap<String, u64>,
    /// What was sent to members since the start, by what it is about.
    #[serde(default)]
    pub messages: Vec<MessagesView>,
    /// Everything that grows, with its upper limit.
    pub limits: Vec<LimitView>,
    /// The kinds of background tasks.
    #[serde(default)]
    pub tasks: Vec<TaskView>,
}

/// Who decides which member owns what: the list of voters as this access point knows it, and its own lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VotersView {
    /// The number of the list, from 1; 0 if no member has told it yet.
    pub list: u64,
    /// Their peer ids.
    #[schema(value_type = Vec<String>)]
    pub voters: Vec<AccessPoint>,
    /// The network in which this access point saw each of them last, in their order: there is one vote for each. None where it has not seen it,
    /// where it is this access point itself, or where addresses count one by one.
    #[serde(default)]
    #[schema(value_type = Vec<Option<String>>)]
    pub networks: Vec<Option<Subnet>>,
    /// How many of them decide.
    pub quorum: u64,
    /// Whether this access point votes.
    pub votes: bool,
    /// How much longer its lease lasts without being renewed, in milliseconds; none if it has none.
    pub lease_ms: Option<Millis>,
    /// The term of its lease: one more whenever others may have taken over what it owned.
    pub term: u64,
    /// How many voters may fail before the swarm stops, in a sentence.
    pub bears_text: String,
}

/// Messages of one kind that were sent to members since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessagesView {
    /// What they are about: leases, copies, totals. Gossip counts once, however many members pass it on.
    pub kind: String,
    /// How many were sent, answers among them.
    pub sent: u64,
    /// Their bytes as encoded: before they are packed, without what streams, encryption and packets add.
    pub encoded_bytes: u64,
}

/// Background tasks of one kind since the process started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    /// What they do.
    pub name: String,
    /// The part of the daemon that started them and is told when one panics.
    pub part: String,
    /// How many run now.
    pub running: u64,
    /// How many were started.
    pub started: u64,
    /// How many came to their end, or were called off.
    pub ended: u64,
    /// How many panicked: a fault of nearcrawl. Each counts as a failure of its work.
    pub panicked: u64,
}

/// Members by liveness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberCounts {
    /// Members that answer, this one included.
    pub alive: u64,
    /// Members that do not answer but still count as owners.
    pub silent: u64,
    /// Members whose subnets others take over, because they did not answer for too long.
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
    /// Of these, look-ups that failed for the moment, such as by a time-out, and are repeated.
    #[serde(default)]
    pub lookups_repeated: u64,
}

/// How far a crawl has come, for a progress line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProgressView {
    /// HTML pages fetched.
    pub pages: u64,
    /// URLs that wait for their turn.
    pub waiting: u64,
    /// Requests under way.
    pub busy: u64,
    /// Servers with at least one URL so far.
    pub servers: u64,
    /// Bytes of bodies over the wire.
    pub bytes: u64,
    /// URLs known so far, whatever became of them; those that wait or are being asked for are among them.
    pub known: u64,
    /// How long what waits will take at the present pauses, if nothing more is found, in milliseconds.
    pub left_ms: Millis,
}

/// Which tree of subnets is in use; members with equal hashes place every address alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HierarchyView {
    /// Content hash, in hex.
    pub hash: String,
    /// What it was made of, in words.
    pub sources_text: String,
    /// Subnets in it.
    pub subnets: u64,
}

/// One cache of recently seen URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CacheView {
    /// Which part of the crawler asks it.
    pub place: String,
    /// URLs in it now.
    pub entries: u64,
    /// URLs that fit in it.
    pub capacity: u64,
    /// Lookups that found the URL in the cache.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
}

/// Sizes on disk, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreView {
    /// Bytes of the state database: what cannot be rebuilt.
    pub state_bytes: u64,
    /// Bytes of the cache database: what can be rebuilt from the state.
    pub cache_bytes: u64,
    /// How long ago both were measured, in milliseconds; none before the first measurement.
    #[serde(default)]
    pub age_ms: Option<Millis>,
    /// For how long the disk has not answered, if it does not: nothing is recorded meanwhile.
    #[serde(default)]
    pub silent_for_ms: Option<Millis>,
}

/// Something that grows, and its upper limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitView {
    /// What is limited, in words.
    pub name: String,
    /// Its present size, in the unit that the name says.
    pub used: u64,
    /// The size that it cannot exceed.
    pub max: u64,
}

/// Whether a member answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Liveness {
    /// Answers, directly or through another member.
    Alive,
    /// Does not answer; still counts as the owner of its subnets.
    Silent,
    /// Did not answer for too long: others take over its subnets.
    Dead,
    /// Left for good, or may be a member no more.
    Left,
}

impl fmt::Display for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Liveness::Alive => "alive",
            Liveness::Silent => "silent",
            Liveness::Dead => "dead",
            Liveness::Left => "left",
        })
    }
}

/// One member, as the answering one sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemberView {
    /// Its peer id.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// Whether it is the one that answers.
    pub is_me: bool,
    /// Addresses known of it.
    pub addresses: Vec<String>,
    /// The IP address that it is at: one of these, else the one at the other end of a direct connection, or that it tells. None if it is not known:
    /// an address through another member is that one's.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// Whether it is only reached through other members, by its addresses.
    #[serde(default)]
    pub is_relayed: bool,
    /// What it tells of itself, if its operator chose so; nobody can check that.
    #[serde(flatten)]
    pub profile: Profile,
    /// Whether it answers.
    pub liveness: Liveness,
    /// For how long it has been in that state, in milliseconds.
    pub liveness_for_ms: Millis,
    /// The country that its address is registered in, by the hierarchy; none if no address of its own is known.
    #[serde(default)]
    pub country: Option<String>,
    /// The round-trip time to it, in milliseconds; none if it was not measured.
    #[serde(default)]
    pub rtt_ms: Option<f64>,
    /// Subnets that it holds by the ownership map.
    pub subnets: u64,
    /// Servers in its roll-up.
    pub servers: u64,
    /// Pages in its roll-up.
    pub pages: u64,
    /// How old its roll-up is, in milliseconds; none if none came yet.
    pub roll_up_age_ms: Option<Millis>,
}

impl MemberView {
    /// Whether these addresses all lead through other members.
    pub fn relayed(addresses: &[String]) -> bool {
        !addresses.is_empty() && addresses.iter().all(|address| address.contains("/p2p-circuit"))
    }

    /// Where it is, for people: as in `/ip4/192.0.2.7/tcp/4817`. Never the address of a member through which it is reached.
    pub fn place_text(&self) -> String {
        let own = self.addresses.iter().find(|address| !address.contains("/p2p-circuit"));
        match (own, self.address) {
            (Some(own), _) => own.split_once("/p2p/").map_or(own.as_str(), |(place, _)| place).to_owned(),
            (None, Some(address)) if self.is_relayed => format!("{address}, through a relay"),
            (None, Some(address)) => address.to_string(),
            (None, None) if self.is_relayed => "unknown, through a relay".to_owned(),
            (None, None) => String::new(),
        }
    }
}

/// Who owns a subnet, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OwnershipView {
    /// The subnet claimed.
    #[schema(value_type = String)]
    pub subnet: Subnet,
    /// How many claims the subnet has had, this one included.
    pub epoch: u64,
    /// The access point that claimed it.
    #[schema(value_type = String)]
    pub owner: AccessPoint,
    /// What the owner's probe measured, in milliseconds; none if it was not probed.
    pub rtt_ms: Option<f64>,
    /// Probes that the decision took, all access points together.
    pub probes: u16,
    /// Why the owner could claim it: `own-subnet`, `awarded`, `owner-dead`, `released`.
    #[schema(value_type = String)]
    pub reason: ClaimReason,
    /// The second nearest, which takes over first; none if no other member measured.
    #[schema(value_type = Option<String>)]
    pub runner_up: Option<AccessPoint>,
    /// Whether the owner has released it since.
    pub released: bool,
    /// What it and the others measured before the claim was made, the nearest first.
    #[serde(default)]
    pub measurements: Vec<MeasurementView>,
}

impl OwnershipView {
    /// Of a claim; `known` names the members that measured.
    pub fn new(claim: &Claim, known: impl Fn(ShortId) -> Option<AccessPoint>) -> OwnershipView {
        let own = claim.rtt_us.filter(|_| claim.reason != ClaimReason::OwnSubnet);
        let own = own.map(|rtt_us| Answer { rtt_us, prober: claim.owner.into() });
        let mut answers: Vec<Answer> = claim.answers.iter().copied().chain(own).collect();
        answers.sort_unstable();
        let named = |answer: Answer| MeasurementView { access_point: known(answer.prober), rtt_ms: millis(answer.rtt_us) };
        OwnershipView {
            subnet: claim.subnet,
            epoch: claim.epoch,
            owner: claim.owner,
            rtt_ms: claim.rtt_us.map(millis),
            probes: claim.probes,
            reason: claim.reason,
            runner_up: claim.runner_up,
            released: claim.released,
            measurements: answers.into_iter().map(named).collect(),
        }
    }
}

/// Microseconds as milliseconds, in which JSON has all durations.
fn millis(micros: u32) -> f64 {
    f64::from(micros) / 1000.0
}

/// Why is this URL, host or address crawled by whom, and when? What is not known here is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhyView {
    /// What was asked, in canonical form.
    pub asked: String,
    /// The answer in a few sentences.
    pub answer_text: String,
    /// The host, if a URL or a host was asked about.
    #[schema(value_type = Option<String>)]
    pub host: Option<Host>,
    /// The address that the swarm pinned, or the one that was asked for.
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// The way down the hierarchy, one line a step, from the root to the smallest subnet.
    pub path_text: Vec<String>,
    /// The smallest subnet.
    #[schema(value_type = Option<String>)]
    pub subnet: Option<Subnet>,
    /// The claim of its owner, if it has one.
    pub ownership: Option<OwnershipView>,
    /// Who had the subnet, as far as is known here: the first one first, the present owner last.
    #[serde(default)]
    pub history: Vec<Holding>,
    /// Why its owner could claim the subnet, in words; none if it has no owner.
    #[serde(default)]
    pub reason_text: Option<String>,
    /// How the last access to the subnet was judged by the rule of migration, in a sentence.
    #[serde(default)]
    pub judgement_text: Option<String>,
    /// How alive the owner is.
    pub owner_liveness: Option<Liveness>,
    /// Whether the owner is the one that answers: only then the rest is known.
    pub owner_is_me: bool,
    /// The starting host of the site tree, without `www.`.
    #[schema(value_type = Option<String>)]
    pub tree: Option<Host>,
    /// The level in it.
    pub level: Option<u8>,
    /// What became of the URL so far, or how the run of the host stands.
    pub state: Option<VisitState>,
    /// The same in words, with numbers.
    pub state_text: Option<String>,
    /// When the server was last asked.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_visit_at: Option<WallTime>,
    /// In how many milliseconds it may be asked again; 0 is now.
    pub next_visit_in_ms: Option<Millis>,
    /// What robots.txt says of it, and how old that is, in words.
    pub robots_text: Option<String>,
    /// What the server's answers say of it besides pages: of a host of this access point's, if it has answered.
    #[serde(default)]
    pub facts: Option<Box<ServerFacts>>,
    /// For how long the disk of the access point that answers has not answered, if it does not: this is what is known without it.
    #[serde(default)]
    pub store_silent_for_ms: Option<Millis>,
    /// If a host was asked about and its pages are evaluated: a sample of those that fail a rule, at most 20 a rule, each with the line in
    /// which the first failing element begins; by the rule's id.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, Vec<FailingPage>>)]
    pub failing_pages: FailingPages,
    /// The surveys that the host belongs to, those that are paused or have ended among them, with what they say of it.
    #[serde(default)]
    pub surveys: Vec<SurveyMark>,
    /// Why the host has no address to which requests are sent, if it was looked up and has none.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub no_address_reason: Option<ResolveError>,
    /// What the access point that answers has asked of the address within this hour, and in its first quarter in the one before, or that it
    /// does not know, in words.
    #[serde(default)]
    pub requests_text: Option<String>,
}

/// What came of URLs that were given as starting points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeedView {
    /// How many were taken in.
    pub accepted: u64,
    /// How many of these are not on the disk yet, because it did not answer in time: a crash may lose them.
    #[serde(default)]
    pub not_durable: u64,
    /// Those that were not, and why.
    pub refused: Vec<RefusedSeed>,
}

/// A starting point that was not taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedSeed {
    /// As it was given.
    pub url: String,
    /// Why, in words.
    pub reason_text: String,
}

/// Some of the servers on record here, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServersPage {
    /// At most one page of them.
    pub servers: Vec<ServerView>,
    /// The host to ask for the next page after; none on the last page.
    #[schema(value_type = Option<String>)]
    pub next: Option<Host>,
}

/// The answer to a request to leave the swarm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaveView {
    /// Subnets that it releases.
    pub released: u64,
}

/// The answer to an operator's word that members will not come back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeclaredLostView {
    /// Those that were declared lost.
    #[schema(value_type = Vec<String>)]
    pub lost: Vec<AccessPoint>,
    /// Those that were refused, because they are alive.
    #[schema(value_type = Vec<String>)]
    pub alive: Vec<AccessPoint>,
}

/// The answer to a request to hand a subnet over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MoveView {
    /// The subnet to be handed over.
    #[schema(value_type = String)]
    pub subnet: Subnet,
    /// The access point that is to own it.
    #[schema(value_type = String)]
    pub to: AccessPoint,
    /// Why it stays, in a sentence; none if the hand-over has begun.
    pub refused_text: Option<String>,
}

/// The answer to a subnet that is to stay, or may move again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PinView {
    /// The subnet.
    #[schema(value_type = String)]
    pub subnet: Subnet,
    /// Whether it is pinned now.
    pub pinned: bool,
    /// Why nothing was changed, in a sentence; none if it is as was asked.
    pub refused_text: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ownership_reads_as_text_in_json() {
        let [owner, other, gone] = [1, 2, 3].map(|number| AccessPoint([number; 32]));
        let claim = Claim {
            subnet: "127.16.3.7/24".parse().unwrap(),
            epoch: 2,
            owner,
            rtt_us: Some(8_200),
            runner_up: None,
            probes: 3,
            reason: ClaimReason::OwnerDead,
            released: false,
            answers: vec![Answer { rtt_us: 7_300, prober: gone.into() }, Answer { rtt_us: 9_100, prober: other.into() }],
        };
        let known = |short| [owner, other].into_iter().find(|known| ShortId::from(*known) == short);
        let json = serde_json::to_value(OwnershipView::new(&claim, known)).unwrap();
        assert_eq!(json["subnet"], "127.16.3.0/24");
        assert_eq!((json["owner"].as_str(), &json["rtt_ms"]), (Some(owner.to_string().as_str()), &8.2.into()));
        assert_eq!(json["reason"], "owner-dead");
        assert_eq!(json["probes"], 3);
        let measured = serde_json::json!([
            {"access_point": null, "rtt_ms": 7.3},
            {"access_point": owner.to_string(), "rtt_ms": 8.2},
            {"access_point": other.to_string(), "rtt_ms": 9.1},
        ]);
        assert_eq!(json["measurements"], measured, "the nearest first, by full ids, and none that is not known");
    }
}
