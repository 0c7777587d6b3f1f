//! Status of this access point: its own numbers, put together with what only the node knows.

use crate::{
    clock_cache::ClockCache,
    crawl::{admission::MAX_HOSTS_AT_ONE_ADDRESS, link_filter::MAX_HELD_TOGETHER, moved_hosts::MAX_COMING},
    delegation::contacts::MAX_SUBNETS as MAX_PROBED,
    ownership::register::MAX_CLAIMS,
    routing::{
        acknowledgements::MAX_ACKNOWLEDGEMENTS,
        locator::{MAX_LOOKUP_QUESTIONS, MAX_PINS, MAX_RESOLVING},
        outbox::MAX_UNRESOLVED,
    },
};
use crate::{
    crawler::MAX_OUTGOING,
    delegation::{machine::MAX_RESTS, rounds::MAX_QUEUED},
    membership::machine::MAX_ADDRESSED,
    migration::{
        MAX_HISTORIES,
        handover::{MAX_HANDED, MAX_INCOMING, MAX_OUTGOING as MAX_HAND_OVERS},
    },
    relay::{MAX_FORWARDING, MAX_PASSING, MAX_TAKEN, MAX_WAYS},
    replication::{MAX_GATHERED, MAX_LOADS},
    report::{View, stays::MAX_STAYS, tally::MAX_ROLL_UPS},
    survey::probing::MAX_KEPT,
    voting::{
        handed_over::MAX_DECIDED_BYTES,
        lease::NoLease,
        lists::MAX_LISTS,
        networks::MAX_SEEN,
        plan::FEW,
        proposals::MAX_OPEN,
        rows::{MAX_ROWS, MAX_UNPUBLISHED_OF_ONE},
        voter::{MAX_ENDED, MAX_HEARD},
    },
};
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{MAX_CERTIFICATES, MAX_EXPULSIONS},
    allowance::AllowanceView,
    opt_out::{MAX_OF_MEMBER, MAX_STATEMENTS},
    plan::Pace,
    receipt::Declined,
    survey::MAX_LIVING,
    view::{
        Activity, CacheView, DelegationView, HierarchyView, LimitView, MemberCounts, MessagesView, MigrationView, ReachabilityView,
        StatusView, StoreView, TaskView, VotersView, WorkView,
    },
};
use std::{collections::BTreeMap, fmt::Write};

/// What only the node knows of itself.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// The program's version.
    pub version: String,
    /// The swarm's id.
    pub swarm: String,
    /// Addresses at which other members reach it (multiaddr with peer id).
    pub addresses: Vec<String>,
    /// How others get to it.
    pub reachability: ReachabilityView,
    /// Where a site's owner can complain.
    pub contact: Option<String>,
    /// How it introduces itself to web servers.
    pub user_agent: String,
    /// How it visits servers.
    pub pace: Pace,
    /// Why other members could not be reached lately.
    pub connection_errors: Vec<String>,
    /// The file with the token by which changes are allowed.
    pub token_file: Option<String>,
    /// Connections to web servers that are open now.
    pub open_connections: u64,
    /// Sizes on disk.
    pub store: StoreView,
    /// What the executor refused, by class; added to what the crawler refused.
    pub refusals: BTreeMap<String, u64>,
    /// What was sent to members since the start.
    pub messages: Vec<MessagesView>,
    /// What grows outside the crawler, with its limits.
    pub limits: Vec<LimitView>,
    /// The operator's limits.
    pub allowance: AllowanceView,
    /// A limit that stopped the work and that the crawler does not see (a full disk), in words: then it is the reason told.
    pub limit_reached: Option<String>,
    /// The background tasks of the process.
    pub tasks: Vec<TaskView>,
}

/// Everything about itself, in numbers and one sentence.
pub(super) fn status(view: &View<'_>, outside: Outside) -> StatusView {
    let activity = match outside.limit_reached {
        Some(limit) => Activity::LimitReached { limit },
        None => view.activity(),
    };
    let mut refusals = outside.refusals;
    for (class, count) in refused(view) {
        *refusals.entry(class.to_owned()).or_default() += count;
    }
    let mut limits = limits(view);
    limits.extend(outside.limits);
    StatusView {
        access_point: view.context.me,
        version: outside.version,
        uptime_ms: view.context.now.moment.since(view.context.started),
        swarm: outside.swarm,
        pinned_subnets: Vec::new(),
        addresses: outside.addresses,
        reachability: outside.reachability,
        contact: outside.contact,
        user_agent: outside.user_agent,
        pace: outside.pace,
        token_file: outside.token_file,
        state: activity.state(),
        state_text: sentence(&activity, &outside.connection_errors),
        alone_text: alone(view, &activity),
        connection_errors_text: (!outside.connection_errors.is_empty()).then(|| outside.connection_errors.join("; ")),
        members: member_counts(view),
        voters: voters(view),
        subnets_owned: view.ownership.register().count(&view.context.me) as u64,
        subnets_claimed: view.ownership.register().owners().map(|owner| view.ownership.register().count(&owner) as u64).sum(),
        servers: view.crawl.sites().len() as u64,
        work: work(view),
        failures: view.context.counters.failures.clone(),
        unresolved: view.context.counters.unresolved.clone(),
        delegation: delegation_view(view),
        migration: migration_view(view),
        waiting_urls: view.crawl.sites().all().map(|site| site.frontier.len() as u64).sum(),
        outgoing_urls: view.routing.outbox().len() as u64,
        open_connections: outside.open_connections,
        hierarchy: hierarchy_view(view),
        caches: caches_of(view.crawl.links().caches()),
        store: outside.store,
        allowance: outside.allowance,
        refusals,
        messages: outside.messages,
        limits,
        tasks: outside.tasks,
    }
}

/// What it is doing; if it reaches no member, why not, as far as that is known.
fn sentence(activity: &Activity, connection_errors: &[String]) -> String {
    match activity {
        Activity::NoPeersReachable if !connection_errors.is_empty() => format!("{activity}: {}", connection_errors.join("; ")),
        _ => activity.to_string(),
    }
}

/// That it is the only member, if it is in a swarm and knows of no other.
pub(super) fn alone(view: &View<'_>, activity: &Activity) -> Option<String> {
    let joins = !view.context.settings.member || matches!(activity, Activity::NoPeersReachable | Activity::Starting);
    let alone = !joins && view.membership.standings().is_empty();
    alone.then(|| "it is the only member of its swarm: others join it by its address (`nearcrawl run --bootstrap ADDRESS`)".to_owned())
}

fn member_counts(view: &View<'_>) -> MemberCounts {
    let standings = view.membership.standings();
    let silent = standings.values().filter(|standing| standing.silent_since.is_some()).count() as u64;
    MemberCounts { alive: 1 + standings.len() as u64 - silent, silent, dead: view.given_up().count() as u64 }
}

pub(super) fn voters(view: &View<'_>) -> VotersView {
    let voting = view.voting;
    let Some(list) = voting.list() else { return VotersView { bears_text: NoLease::NoVoters.to_string(), ..VotersView::default() } };
    let (until, _) = voting.lease(view.context.me);
    let left = until.map_or(0, |until| until.since(view.context.now.moment));
    let is_silent = |voter: &&AccessPoint| {
        **voter != view.context.me && view.membership.standings().get(voter).is_none_or(|standing| standing.silent_since.is_some())
    };
    let silent: Vec<AccessPoint> = list.voters.iter().filter(is_silent).copied().collect();
    let mut bears_text = borne(list.voters.len(), list.quorum(), &silent);
    if list.voters.len() < FEW {
        bears_text += "; with fewer than five voters, members that were let in can stop it by voting and leaving";
    }
    let runs = voting.lost().filter(|lost| view.membership.standings().get(lost).is_some_and(|standing| standing.silent_since.is_none()));
    for lost in runs {
        bears_text += &format!(
            "; {} was declared lost here and runs: if its `nearcrawl status` does not show these voters, restart it",
            lost.short()
        );
    }
    VotersView {
        list: list.number,
        voters: list.voters.clone(),
        networks: list.voters.iter().map(|voter| voting.networks().network(voter)).collect(),
        quorum: list.quorum() as u64,
        votes: list.contains(&view.context.me) && voting.votes(view.context.now.moment, view.context.me),
        lease_ms: (left > 0).then_some(left),
        term: voting.term(),
        bears_text,
    }
}

/// What the loss of voters does, those counted that do not answer.
fn borne(voters: usize, quorum: usize, silent: &[AccessPoint]) -> String {
    let names = silent.iter().map(AccessPoint::short).collect::<Vec<_>>().join(", ");
    let (absent, more) = match silent.len() {
        0 => (String::new(), ""),
        1 => (format!("{names} does not answer; "), " more"),
        _ => (format!("{names} do not answer; "), " more"),
    };
    let there = voters - silent.len();
    let borne = match there.checked_sub(quorum) {
        None => format!(
            "nothing is fetched until {} of them {} back; if they will not come back: nearcrawl declare-lost",
            quorum - there,
            if quorum - there == 1 { "is" } else { "are" }
        ),
        Some(0) if voters == 1 => "if it fails, the swarm stops until it is back".to_owned(),
        Some(0) => "if one more fails, the swarm stops until it is back".to_owned(),
        Some(1) => format!("the swarm goes on while 1{more} of them fails"),
        Some(bears) => format!("the swarm goes on while up to {bears}{more} of them fail"),
    };
    absent + &borne
}

fn work(view: &View<'_>) -> WorkView {
    let counters = &view.context.counters;
    WorkView {
        pages: counters.pages,
        requests: counters.requests,
        bytes: counters.bytes,
        not_modified: counters.not_modified,
        failed: counters.failed,
        probes: counters.probes,
        lookups: counters.lookups,
        lookups_repeated: counters.lookups_repeated,
    }
}

fn delegation_view(view: &View<'_>) -> DelegationView {
    let counters = &view.context.counters;
    let by_name = |counts: &BTreeMap<Declined, u64>| counts.iter().map(|(why, count)| (why.to_string(), *count)).collect();
    DelegationView {
        policy: view.context.settings.policy.name().to_owned(),
        delegated: counters.settled.values().sum(),
        delegated_without_probe: counters.settled.get(&0).copied().unwrap_or(0),
        delegated_by_probes: counters.settled.clone(),
        probes_for_others: counters.probes_for_others,
        declined: by_name(&counters.declined),
        declined_by_others: by_name(&counters.declined_by_others),
        takeovers_without_probe: counters.deputies,
        passive_timings: counters.passive_timings,
        observations: view.delegation.knowledge().observations() as u64,
        members_measured: view.delegation.members_measured() as u64,
    }
}

fn migration_view(view: &View<'_>) -> MigrationView {
    let counters = &view.context.counters;
    let (busy_permille, price_permille) = view.migration.load_told();
    MigrationView {
        rule: view.context.settings.migration.rule.name().to_owned(),
        judged: counters.accesses_judged,
        offered: counters.moves_offered,
        released: counters.moves_made,
        called_off: counters.moves_called_off,
        refused: counters.moves_refused.iter().map(|(why, count)| (why.to_string(), *count)).collect(),
        received: counters.moves_taken,
        busy_ratio: f64::from(busy_permille) / 1000.0,
        price_ratio: f64::from(price_permille) / 1000.0,
    }
}

fn hierarchy_view(view: &View<'_>) -> HierarchyView {
    let mut hash = String::with_capacity(64);
    for byte in view.context.hierarchy.hash() {
        // Writing into a String cannot fail.
        let _ = write!(hash, "{byte:02x}");
    }
    let sources: Vec<_> = view.context.hierarchy.sources().iter().map(|source| format!("{} {}", source.name, source.date)).collect();
    let sources_text = if sources.is_empty() { "no sources, every subnet is implicit".to_owned() } else { sources.join(", ") };
    HierarchyView { hash, sources_text, subnets: u64::from(view.context.hierarchy.len()) }
}

/// What was refused here, by class, with what was only counted.
fn refused(view: &View<'_>) -> impl Iterator<Item = (&'static str, u64)> {
    let counted = [
        ("links to hosts out of scope", view.context.counters.beyond_scope),
        ("URLs of hosts without a usable address", view.context.counters.nowhere),
        ("probes requested by other members", view.context.counters.declined.values().sum()),
    ];
    let refused = view.context.counters.refused.iter().map(|(class, count)| (*class, *count));
    refused.chain(counted).filter(|(_, count)| *count > 0)
}

/// What grows in the crawler.
fn limits(view: &View<'_>) -> Vec<LimitView> {
    let politeness = view.crawl.fetches().scheduler().politeness();
    let (going, coming) = view.migration.under_way();
    let (forwarding, passing) = view.relay.under_way();
    let mut limits = vec![
        limit("URLs being sent to their owners", view.routing.outbox().len(), MAX_OUTGOING),
        limit("URLs waiting for a repeated DNS look-up", view.routing.outbox().unresolved(), MAX_UNRESOLVED),
        limit("URLs at new hosts held back by the limits on those", view.crawl.links().held_back(), MAX_HELD_TOGETHER),
        limit("hosts at one address", view.crawl.sites().most_at_one_address(), MAX_HOSTS_AT_ONE_ADDRESS),
        limit("pinned addresses", view.routing.locator().remembered(), MAX_PINS),
        limit("concurrent DNS look-ups", view.routing.locator().resolving(), MAX_RESOLVING),
        limit("concurrent delegation rounds", view.delegation.rounds().running(), view.context.settings.max_parallel_rounds),
        limit("subnets waiting for a delegation round", view.delegation.rounds().queued(), MAX_QUEUED),
        limit("resting subnets", view.delegation.resting(), MAX_RESTS),
        limit("address reservations", view.delegation.reservations().reserved(), MAX_QUEUED),
        limit("concurrent requests to servers", view.crawl.fetches().scheduler().busy(), politeness.parallel),
        limit("claimed subnets", view.ownership.register().len(), MAX_CLAIMS),
        limit("statements about opt-outs", view.opt_outs.room().0, MAX_STATEMENTS),
        limit("statements about opt-outs of one member", view.opt_outs.room().1, MAX_OF_MEMBER),
        limit("certificates of members", view.admissions.room().0, MAX_CERTIFICATES),
        limit("expulsions", view.admissions.room().1, MAX_EXPULSIONS),
        limit("surveys", view.surveys.room().0, view.surveys.room().1),
        limit("living surveys of one creator", view.surveys.register().most_living(view.context.now.wall), MAX_LIVING),
        limit("servers probed for surveys", view.surveys.probing().kept(), MAX_KEPT),
        limit("members", view.membership.tracked(), view.context.settings.membership.max_members),
        limit("members whose addresses are remembered", view.membership.known().count(), MAX_ADDRESSED),
        limit("members whose totals are kept", view.report.roll_ups(), MAX_ROLL_UPS),
        limit("members of whom it is known how long they were here", view.report.stays(), MAX_STAYS),
        limit("members' questions that wait for a DNS look-up", view.routing.locator().questions(), MAX_LOOKUP_QUESTIONS),
        limit("hand-offs being recorded", view.routing.hand_offs(), MAX_ACKNOWLEDGEMENTS),
        limit("subnets handed over and not claimed yet", view.migration.handed(), MAX_HANDED),
        limit("subnets whose journals are being loaded", view.replication.loads_under_way(), MAX_LOADS),
        LimitView {
            name: "bytes of journals kept for one owner".to_owned(),
            used: view.replication.most_kept(view.context),
            max: view.context.settings.max_kept_per_owner,
        },
        limit("journal rows waiting to be stored", view.replication.rows_waiting(), MAX_GATHERED),
        limit(
            "probe contacts of one subnet in 30 days",
            view.delegation.prober().contacts().most(),
            view.context.settings.contacts_per_subnet as usize,
        ),
        limit("subnets with counted contacts", view.delegation.prober().contacts().len(), MAX_PROBED),
        limit("outgoing hand-overs", going, MAX_HAND_OVERS),
        limit("incoming hand-overs", coming, MAX_INCOMING),
        limit("hosts on their way here from another address", view.crawl.moved().coming(), MAX_COMING),
        limit("subnets with an ownership history", view.migration.histories(), MAX_HISTORIES),
        limit("members that do not answer directly", view.relay.ways(), MAX_WAYS),
        limit("questions sent through a third member", forwarding, MAX_FORWARDING),
        limit("questions passed on for others", passing, MAX_PASSING),
        limit("questions that came through a third member in 15 s", view.relay.taken(), MAX_TAKEN),
    ];
    limits.extend(limits_of_voting(view));
    limits
}

/// What grows with those who vote, or want votes.
fn limits_of_voting(view: &View<'_>) -> [LimitView; 8] {
    [
        limit("claims being voted on", view.voting.open_proposals(), MAX_OPEN),
        limit("claims accepted as a voter", view.voting.rows(), MAX_ROWS),
        limit("unpublished claims of one owner accepted as a voter", view.voting.most_rows_of_one(), MAX_UNPUBLISHED_OF_ONE),
        limit("owners whose ended term of a lease is kept as a voter", view.voting.ended_terms(), MAX_ENDED),
        limit("bytes of accepted claims for the next list of voters", view.voting.decided_bytes(), MAX_DECIDED_BYTES),
        limit("owners whose replicas this voter knows", view.voting.replica_sets(), MAX_HEARD),
        limit("lists of voters", view.voting.list_count(), MAX_LISTS),
        limit("members whose networks are remembered", view.voting.networks().len(), MAX_SEEN),
    ]
}

fn limit(name: &str, used: usize, max: usize) -> LimitView {
    LimitView { name: name.to_owned(), used: used as u64, max: max as u64 }
}

fn caches_of([frontier, handoff]: [&ClockCache; 2]) -> Vec<CacheView> {
    vec![cache("frontier", frontier), cache("hand-off", handoff)]
}

fn cache(place: &str, cache: &ClockCache) -> CacheView {
    let now = cache.statistics();
    CacheView { place: place.to_owned(), entries: now.len as u64, capacity: now.capacity as u64, hits: now.hits, misses: now.misses }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loss_of_voters_does_counts_those_that_do_not_answer() {
        let [a, b, c] = [1, 2, 3].map(|number| AccessPoint([number; 32]));
        let short = |who: AccessPoint| who.short();
        assert_eq!(borne(1, 1, &[]), "if it fails, the swarm stops until it is back");
        assert_eq!(borne(3, 2, &[]), "the swarm goes on while 1 of them fails");
        assert_eq!(borne(5, 3, &[a]), format!("{} does not answer; the swarm goes on while 1 more of them fails", short(a)));
        assert_eq!(borne(3, 2, &[a]), format!("{} does not answer; if one more fails, the swarm stops until it is back", short(a)));
        let lost = "if they will not come back: nearcrawl declare-lost";
        assert_eq!(
            borne(3, 2, &[a, b]),
            format!("{}, {} do not answer; nothing is fetched until 1 of them is back; {lost}", short(a), short(b))
        );
        let all = format!("{}, {}, {} do not answer; nothing is fetched until 2 of them are back; {lost}", short(a), short(b), short(c));
        assert_eq!(borne(3, 2, &[a, b, c]), all);
    }
}
