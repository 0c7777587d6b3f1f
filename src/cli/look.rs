//! `status`, `members`, `why`, `move`, `leave`: ask a running daemon and print its answer.

use super::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
    json,
    table::{Style, Table, bytes, facts, paragraph},
};
use crate::node::clock;
use clap::Args;
use nearcrawl_model::{
    access_point::AccessPoint,
    allowance::AllowanceView,
    claim::ClaimReason,
    evaluation::Rule,
    failing_pages::FailingPage,
    ownership_history::Holding,
    profile::Profile,
    subnet::Subnet,
    survey::SurveyMark,
    view::{
        DeclaredLostView, DelegationView, HierarchyView, LeaveView, MemberView, MoveView, PinView, Span, StatusView, StoreView, Subject,
        VotersView, WhyView, WorkView, counted,
    },
};
use serde_json::json;

/// Shown under `status --help`.
pub const STATUS_EXAMPLES: &str = "Examples:\n  \
    nearcrawl status\n  \
    nearcrawl status --json | jq -r .state_text\n  \
    nearcrawl status --api http://127.10.0.1:4880";

/// Shown under `members --help`.
pub const MEMBERS_EXAMPLES: &str = "Examples:\n  \
    nearcrawl members\n  \
    nearcrawl members --json | jq '.[] | select(.liveness != \"alive\")'";

/// Shown under `leave --help`.
pub const LEAVE_EXAMPLES: &str = "Examples:\n  \
    nearcrawl leave              release all subnets, then end\n  \
    systemctl stop nearcrawl     only stop: back within 45 s, it keeps its subnets";

/// Shown under `declare-lost --help`.
pub const DECLARE_LOST_EXAMPLES: &str = "Only needed when so many voters are gone for good that the others cannot decide (see `nearcrawl status`): say it at \
    every voter that remains, or at every member if none does. Never declare a member lost that may still run: two could fetch from one server. One that comes \
    back goes by the list of the others.\n\nExamples:\n  \
    nearcrawl status                              the list of voters\n  \
    nearcrawl declare-lost UzbhKMUf 9r3ANabb    these two will not come back";

/// Arguments of `declare-lost`.
#[derive(Args, Clone, Debug)]
pub struct DeclareLostArgs {
    /// Members that will not come back: peer ids, or the last characters of them as `status` shows them
    #[arg(value_name = "MEMBER", value_parser = peer, required = true)]
    members: Vec<String>,
    #[command(flatten)]
    api: ApiArgs,
}

/// Shown under `move --help`.
pub const MOVE_EXAMPLES: &str = "Examples:\n  \
    nearcrawl members                        members that can receive it\n  \
    nearcrawl move 192.0.2.0/24 UzbhKMUf   hand it over: its crawl continues there\n  \
    nearcrawl move --pin 192.0.2.0/24      keep it here, whoever is nearer or idle\n  \
    nearcrawl move --unpin 192.0.2.0/24\n  \
    nearcrawl why 192.0.2.0/24             its present and previous owners";

/// Arguments of `move`.
#[derive(Args, Clone, Debug)]
pub struct MoveArgs {
    /// A subnet that this access point owns
    subnet: Subnet,
    /// The member that receives it: its peer id, or the last characters of it as `members` shows them
    #[arg(value_name = "MEMBER", value_parser = peer, required_unless_present_any = ["pin", "unpin"])]
    to: Option<String>,
    /// Keep the subnet here: neither nearness nor load moves it
    #[arg(long, conflicts_with_all = ["to", "unpin"])]
    pin: bool,
    /// Let it move again
    #[arg(long, conflicts_with = "to")]
    unpin: bool,
    #[command(flatten)]
    api: ApiArgs,
}

/// Shown under `why --help`.
pub const WHY_EXAMPLES: &str = "Examples:\n  \
    nearcrawl why https://museum.or.ke/exhibits\n  \
    nearcrawl why museum.or.ke\n  \
    nearcrawl why 192.0.2.0/24\n  \
    nearcrawl why 192.0.2.7 --json\n  \
    nearcrawl why museum.or.ke --peer UzbhKMUf    by what that member knows";

/// The arguments of `why`.
#[derive(Args, Clone, Debug)]
pub struct WhyArgs {
    /// A URL, a host, an IP address or a subnet
    #[arg(value_name = "URL|HOST|IP|SUBNET")]
    what: String,
    /// By what this member knows: its peer id, or the last characters of it as `members` shows them
    #[arg(long, value_name = "MEMBER", value_parser = peer)]
    peer: Option<String>,
    #[command(flatten)]
    api: ApiArgs,
}

/// `status`: the daemon's identity, counters and limits.
pub async fn status(args: &ApiArgs, style: Style) -> Result<String, CommandError> {
    let view: StatusView = ApiClient::new(args)?.get("/api/status", &[]).await?;
    if args.json { json(&view) } else { Ok(status_text(&view, style)) }
}

fn swarm(view: &StatusView) -> String {
    let name = if view.swarm.is_empty() { "none joined yet" } else { &view.swarm };
    let members = &view.members;
    format!("{name}: {} alive, {} silent, {} dead", members.alive, members.silent, members.dead)
}

fn store(view: &StoreView, allowance: &AllowanceView) -> String {
    let silent = view.silent_for_ms.map_or(String::new(), |silent| format!("; the disk has not answered for {}", Span(silent)));
    let limit = allowance.disk_limit_bytes.map_or(String::new(), |limit| format!(", of {} (allowance.disk)", bytes(limit)));
    format!("{} state, {} cache{limit}{silent}", bytes(view.state_bytes), bytes(view.cache_bytes))
}

fn used(moved: u64, limit: Option<u64>, when: &str) -> String {
    let limit = limit.map_or(String::new(), |limit| format!(" of {}", bytes(limit)));
    format!("{}{limit} {when}", bytes(moved))
}

/// What was moved to and from web servers, of the operator's limits if there are any.
fn crawl_bytes(view: &AllowanceView) -> String {
    let rate = view.rate_limit_bytes.map_or(String::new(), |rate| format!(", at most {} a second", bytes(rate)));
    let (day, month) = (used(view.day_bytes, view.day_limit_bytes, "today"), used(view.month_bytes, view.month_limit_bytes, "this month"));
    format!("{day}, {month}{rate}")
}

/// The same to and from members.
fn swarm_bytes(view: &AllowanceView) -> String {
    let day = used(view.swarm_day_bytes, view.swarm_day_limit_bytes, "today");
    format!("{day}, {}", used(view.swarm_month_bytes, None, "this month"))
}

/// What is used of the memory or the disk, of what it may use.
fn part(used: u64, limit: Option<u64>) -> String {
    limit.map_or_else(|| bytes(used), |limit| format!("{} of {}", bytes(used), bytes(limit)))
}

/// What name servers were asked.
fn questions(view: &AllowanceView) -> String {
    let delayed = view.dns_questions_delayed;
    let waited = if delayed == 0 { String::new() } else { format!(", {delayed} of them waited for their turn (dns.max_per_second)") };
    format!("{} to name servers{waited}", counted(view.dns_questions, "question"))
}

fn fetched(work: &WorkView) -> String {
    let (pages, requests) = (counted(work.pages, "page"), counted(work.requests, "request"));
    format!("{pages} in {requests}, {}, {} failed", bytes(work.bytes), work.failed)
}

fn hierarchy(view: &HierarchyView) -> String {
    let hash: String = view.hash.chars().take(12).collect();
    format!("{}, {} ({hash})", counted(view.subnets, "subnet"), view.sources_text)
}

fn status_text(view: &StatusView, style: Style) -> String {
    let work = &view.work;
    let mut lines = vec![
        ("access point", view.access_point.to_string()),
        ("version", format!("{}, up for {}", view.version, Span(view.uptime_ms))),
        ("reached at", if view.addresses.is_empty() { "no address yet".to_owned() } else { view.addresses.join(" ") }),
        ("reachability", view.reachability.state_text.clone()),
        ("swarm", swarm(view)),
        ("voters", voters(&view.voters)),
        (
            "owns",
            format!("{} of {}, {}", view.subnets_owned, counted(view.subnets_claimed, "claimed subnet"), counted(view.servers, "server")),
        ),
        ("pinned", listed(&view.pinned_subnets)),
        ("fetched", fetched(work)),
        ("measured", format!("{}, {}", counted(work.probes, "probe"), counted(work.lookups, "DNS look-up"))),
        ("delegated", delegated(&view.delegation)),
        ("waiting", format!("{} here, {} being sent to their owners", counted(view.waiting_urls, "URL"), view.outgoing_urls)),
        ("connections", format!("{} open to web servers", view.open_connections)),
        ("hierarchy", hierarchy(&view.hierarchy)),
        ("store", store(&view.store, &view.allowance)),
        ("memory", part(view.allowance.memory_bytes, view.allowance.memory_limit_bytes)),
    ];
    lines.retain(|(name, value)| *name != "pinned" || !value.is_empty());
    lines.extend([
        ("web bytes", crawl_bytes(&view.allowance)),
        ("swarm bytes", swarm_bytes(&view.allowance)),
        ("DNS", questions(&view.allowance)),
    ]);
    lines.extend(view.allowance.notes_text.iter().map(|note| ("allowance", note.clone())));
    lines.extend(view.alone_text.iter().map(|alone| ("alone", alone.clone())));
    lines.extend(
        view.connection_errors_text
            .iter()
            .filter(|error| !view.state_text.contains(error.as_str()))
            .map(|error| ("not reached", error.clone())),
    );
    for cache in &view.caches {
        let asked = cache.hits + cache.misses;
        let share = if asked == 0 { 0.0 } else { cache.hits as f64 / asked as f64 * 100.0 };
        lines.push((
            "cache",
            format!("{}: {share:.1} % cache hits, {} of {}", cache.place, cache.entries, counted(cache.capacity, "entry")),
        ));
    }
    lines.extend(view.failures.iter().map(|(failure, count)| ("failed", format!("{}: {failure}", counted(*count, "request")))));
    lines.extend(view.unresolved.iter().map(|(failure, count)| ("unresolved", format!("{}: {failure}", counted(*count, "name")))));
    for (class, count) in &view.refusals {
        lines.push(("refused", format!("{class}: {count}")));
    }
    // Only kinds with a fault: the others are in --json.
    for task in view.tasks.iter().filter(|task| task.panicked > 0) {
        lines.push(("task", format!("{} ({}): {} panicked: see the log", task.name, task.part, task.panicked)));
    }
    // Only limits that are near: the others are in --json.
    for limit in view.limits.iter().filter(|limit| limit.max > 0 && limit.used * 10 >= limit.max * 8) {
        lines.push(("near its limit", format!("{}: {} of {}", limit.name, limit.used, limit.max)));
    }
    format!("{}\n{}", headline(&view.state_text, style), facts(style, &lines))
}

/// The first of many subnets, and how many more there are.
fn listed(subnets: &[Subnet]) -> String {
    const SHOWN: usize = 8;
    let more = subnets.len().saturating_sub(SHOWN);
    let named = subnets.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

/// A sentence in bold, broken into lines.
fn headline(sentence: &str, style: Style) -> String {
    paragraph(sentence).lines().map(|line| style.heading(line) + "\n").collect()
}

/// How many subnets got an owner here, and with how many probes.
fn delegated(delegation: &DelegationView) -> String {
    let probes: u64 = delegation.delegated_by_probes.iter().map(|(probes, subnets)| u64::from(*probes) * subnets).sum();
    let each = if delegation.delegated == 0 { 0.0 } else { probes as f64 / delegation.delegated as f64 };
    let without = delegation.delegated_without_probe;
    format!("{} ({}), {each:.2} probes each, {without} without a probe", counted(delegation.delegated, "subnet"), delegation.policy)
}

/// `members`: the members of the swarm.
pub async fn members(args: &ApiArgs, style: Style) -> Result<String, CommandError> {
    let view: Vec<MemberView> = ApiClient::new(args)?.get("/api/members", &[]).await?;
    if args.json { json(&view) } else { Ok(members_text(&view, style)) }
}

fn members_text(members: &[MemberView], style: Style) -> String {
    let mut table = Table::new(&["member", "", "state", "since", ">subnets", ">servers", ">pages", "totals", "address"]);
    let mut told = Table::new(&["member", "name", "limits"]);
    for member in members {
        table.row(vec![
            member.access_point.short(),
            if member.is_me { "me" } else { "" }.to_owned(),
            member.liveness.to_string(),
            Span(member.liveness_for_ms).to_string(),
            member.subnets.to_string(),
            member.servers.to_string(),
            member.pages.to_string(),
            member.roll_up_age_ms.map_or("none yet".to_owned(), |age| format!("{} old", Span(age))),
            member.place_text(),
        ]);
        let Profile { name, allowance } = &member.profile;
        if name.is_some() || allowance.is_some() {
            let name = name.as_ref().map(ToString::to_string).unwrap_or_default();
            let allowance = allowance.as_ref().map_or("not told".to_owned(), ToString::to_string);
            told.row(vec![member.access_point.short(), name, allowance]);
        }
    }
    // Most members tell nothing of themselves.
    if members.iter().all(|member| member.profile == Profile::default()) {
        return table.text(style);
    }
    format!("{}\nWhat members tell of themselves:\n{}", table.text(style), told.text(style))
}

/// `why`: who crawls a URL, host, address or subnet, and the reason.
pub async fn why(args: &WhyArgs, style: Style) -> Result<String, CommandError> {
    args.what.parse::<Subject>().map_err(|why| {
        CommandError::new(Exit::Data, why.to_string())
            .hint("write a URL, a host, an address or a subnet, like `nearcrawl why museum.or.ke` or `nearcrawl why 192.0.2.0/24`")
    })?;
    let api = ApiClient::new(&args.api)?;
    let of = match &args.peer {
        None => None,
        Some(end) => Some(member(&api, end).await?.to_string()),
    };
    let mut parameters = vec![("q", args.what.as_str())];
    parameters.extend(of.as_deref().map(|of| ("of", of)));
    let view: WhyView = api.get("/api/why", &parameters).await?;
    if args.api.json { json(&view) } else { Ok(why_text(&view, style)) }
}

fn why_text(view: &WhyView, style: Style) -> String {
    let mut lines = Vec::new();
    let mut say = |name, value: Option<String>| {
        if let Some(value) = value {
            lines.push((name, value));
        }
    };
    say("subject", Some(view.asked.clone()));
    say("host", view.host.as_ref().map(ToString::to_string));
    say("address", view.address.map(|address| address.to_string()));
    say("located in", (!view.path_text.is_empty()).then(|| view.path_text.join(" › ")));
    if let Some(owned) = &view.ownership {
        let alive = view.owner_liveness.map_or(String::new(), |liveness| format!(", {liveness}"));
        let me = if view.owner_is_me { " (me)" } else { "" };
        say("owner", Some(format!("{}{me}{alive}", owned.owner)));
        let reason = view.reason_text.as_deref().unwrap_or(in_words(owned.reason));
        say("because", Some(format!("{reason}; epoch {}, {}", owned.epoch, counted(owned.probes, "probe"))));
        say("distance", owned.rtt_ms.map(|ms| format!("{ms:.1} ms")));
        let measured = owned.measurements.iter().map(|measured| {
            let who = measured.access_point.map_or("a former member".to_owned(), |who| who.short());
            format!("{who} {:.1} ms", measured.rtt_ms)
        });
        say("measured by", (!owned.measurements.is_empty()).then(|| measured.collect::<Vec<_>>().join(", ")));
        say("runner-up", owned.runner_up.as_ref().map(AccessPoint::to_string));
    }
    say("migration", view.judgement_text.clone());
    for held in &view.history {
        say("history", Some(holding_text(held)));
    }
    say(
        "site tree",
        view.tree.as_ref().map(|tree| match view.level {
            Some(level) => format!("{tree}, level {level}"),
            None => tree.to_string(),
        }),
    );
    say("surveys", (!view.surveys.is_empty()).then(|| view.surveys.iter().map(mark_text).collect::<Vec<_>>().join(", ")));
    say("state", view.state_text.clone());
    say("robots.txt", view.robots_text.clone());
    say("requests", view.requests_text.clone());
    view.facts.iter().flat_map(|facts| facts.lines()).for_each(|(name, value)| say(name, Some(value)));
    say("next visit", view.next_visit_in_ms.map(|ms| if ms == 0 { "now".to_owned() } else { format!("in {}", Span(ms)) }));
    for (rule, pages) in view.failing_pages.by_rule() {
        say("failing", Some(failing_text(*rule, pages)));
    }
    format!("{}\n{}", headline(&view.answer_text, style), facts(style, &lines))
}

/// A survey with what it says of a host: `universities (sector=university)`.
fn mark_text(mark: &SurveyMark) -> String {
    let labels: Vec<_> = mark.label_texts().collect();
    if labels.is_empty() { mark.name.clone() } else { format!("{} ({})", mark.name, labels.join(", ")) }
}

/// Some of the pages that fail a rule: `23a2a8 Image has non-empty accessible name: http://a.ke/ line 12, and 3 more`.
fn failing_text(rule: Rule, pages: &[FailingPage]) -> String {
    const SHOWN: usize = 3;
    let mut named: Vec<String> = pages.iter().take(SHOWN).map(|page| format!("{} line {}", page.url, page.line)).collect();
    if pages.len() > SHOWN {
        named.push(format!("and {} more (--json)", pages.len() - SHOWN));
    }
    format!("{} {}: {}", rule.id(), rule.name(), named.join(", "))
}

fn in_words(reason: ClaimReason) -> &'static str {
    match reason {
        ClaimReason::OwnSubnet => "its own address is in the subnet",
        ClaimReason::Awarded => "the delegation round chose it",
        ClaimReason::OwnerDead => "the previous owner died",
        ClaimReason::Released => "the previous owner released it",
        ClaimReason::Moved => "the previous owner handed it over",
    }
}

/// One previous or present owner: `epoch 2, 3 min 5 s ago: …8dWcTn1V, the previous owner died`.
fn holding_text(held: &Holding) -> String {
    let now = clock::now().wall.0;
    let ago = Span(now.saturating_sub(held.claimed_at.0));
    let left = held.released_text.as_ref().map_or(String::new(), |why| format!("; handed over: {why}"));
    format!("epoch {}, {ago} ago: {}, {}{left}", held.epoch, held.owner.short(), in_words(held.reason))
}

/// `move`: hands a subnet over.
pub async fn hand_over(args: &MoveArgs) -> Result<String, CommandError> {
    let subnet = args.subnet;
    let client = ApiClient::new(&args.api)?;
    let Some(to) = &args.to else { return pinned(args, &client).await };
    let to = member(&client, to).await?;
    let view: MoveView = client.post("/api/move", &json!({ "subnet": subnet, "to": to })).await?;
    match &view.refused_text {
        Some(why_not) => Err(CommandError::new(Exit::Data, format!("{subnet} is not handed over: {why_not}"))),
        None if args.api.json => json(&view),
        None => Ok(format!("handing {subnet} over to {}: its journal first, its claim last\n", to.short())),
    }
}

/// `move --pin`, `move --unpin`: whether a subnet stays.
async fn pinned(args: &MoveArgs, client: &ApiClient) -> Result<String, CommandError> {
    let subnet = args.subnet;
    let view: PinView = client.post("/api/pin", &json!({ "subnet": subnet, "pinned": args.pin })).await?;
    match &view.refused_text {
        Some(why_not) if args.pin => Err(CommandError::new(Exit::Data, format!("{subnet} is not pinned: {why_not}"))),
        Some(why_not) => Err(CommandError::new(Exit::Data, format!("{subnet} is still pinned: {why_not}"))),
        None if args.api.json => json(&view),
        None if view.pinned => Ok(format!("{subnet} is pinned here: neither nearness nor load moves it\n")),
        None => Ok(format!("{subnet} is not pinned any more\n")),
    }
}

/// `leave`: leaves the swarm for good.
pub async fn leave(args: &ApiArgs) -> Result<String, CommandError> {
    let view: LeaveView = ApiClient::new(args)?.post("/api/leave", &json!({})).await?;
    if args.json { json(&view) } else { Ok(format!("leaving: {} released, then the daemon ends\n", counted(view.released, "subnet"))) }
}

/// `declare-lost`: members will not come back.
pub async fn declare_lost(args: &DeclareLostArgs) -> Result<String, CommandError> {
    let client = ApiClient::new(&args.api)?;
    let status: StatusView = client.get("/api/status", &[]).await?;
    let mut members = Vec::new();
    for end in &args.members {
        let fitting: Vec<_> = status.voters.voters.iter().filter(|voter| voter.to_string().ends_with(end.as_str())).collect();
        members.push(if let [only] = fitting[..] { *only } else { member(&client, end).await? });
    }
    let view: DeclaredLostView = client.post("/api/declare-lost", &json!({ "members": members })).await?;
    if let Some(alive) = view.alive.first() {
        let what = format!("{} is alive: it was not declared lost", alive.short());
        return Err(CommandError::new(Exit::Data, what).hint("stop it for good first"));
    }
    if args.api.json { json(&view) } else { Ok(format!("{} declared lost\n", counted(view.lost.len(), "member"))) }
}

fn voters(view: &VotersView) -> String {
    if view.voters.is_empty() {
        return view.bears_text.clone();
    }
    let network = |number: usize| view.networks.get(number).copied().flatten().map_or_else(String::new, |network| format!(" ({network})"));
    let names: Vec<_> = view.voters.iter().enumerate().map(|(number, voter)| format!("{}{}", voter.short(), network(number))).collect();
    let lease = view.lease_ms.map_or("no lease".to_owned(), |left| format!("lease for {}", Span(left)));
    let votes = if view.votes { ", this one votes" } else { "" };
    format!("{} (list {}, {} decide{votes}; {lease}); {}", names.join(" "), view.list, view.quorum, view.bears_text)
}

/// A peer id or the end of one: `12D3KooW…` in full, `UzbhKMUf` or `…UzbhKMUf`.
pub(super) fn peer(text: &str) -> Result<String, String> {
    let end = text.trim_start_matches('…');
    let fits = (4..=64).contains(&end.len()) && end.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if fits { Ok(end.to_owned()) } else { Err("write a peer id, or its last characters as `nearcrawl members` shows them".to_owned()) }
}

/// The member whose peer id is, or ends in, `end`.
pub(super) async fn member(client: &ApiClient, end: &str) -> Result<AccessPoint, CommandError> {
    if let Ok(whole) = end.parse() {
        return Ok(whole);
    }
    let members: Vec<MemberView> = client.get("/api/members", &[]).await?;
    let mut fitting = members.iter().map(|member| member.access_point).filter(|member| member.to_string().ends_with(end));
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => {
            Err(CommandError::new(Exit::Data, format!("no member's peer id ends in {end}")).hint("`nearcrawl members` lists the members"))
        }
        _ => Err(CommandError::new(Exit::Data, format!("several members' peer ids end in {end}")).hint("write more of the peer id")),
    }
}

#[cfg(test)]
mod tests {
    use super::{VotersView, voters};

    #[test]
    fn without_voters_only_the_reason_is_said() {
        let view = VotersView { bears_text: "no member has said yet who votes in this swarm".to_owned(), ..VotersView::default() };
        assert_eq!(voters(&view), view.bears_text);
    }
}
