//! What does somebody see who asks a running daemon? Its status, its peers, and why something is crawled by whom.

use super::{
    client::{ApiArgs, ApiClient},
    failure::{Exit, Failure},
    json,
    table::{Style, Table, bytes, facts},
};
use crate::model::{
    access_point::AccessPoint,
    chronicle::Holding,
    claim::ClaimReason,
    subnet::Subnet,
    view::{DelegationView, LeaveView, MoveView, PeerView, Span, StatusView, WhyView, counted},
};
use clap::Args;
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

/// Shown under `status --help`.
pub const STATUS_EXAMPLES: &str = "Examples:\n  \
    nearcrawl status\n  \
    nearcrawl status --json | jq -r .sentence\n  \
    nearcrawl status --api http://127.10.0.1:4880";

/// Shown under `peers --help`.
pub const PEERS_EXAMPLES: &str = "Examples:\n  \
    nearcrawl peers\n  \
    nearcrawl peers --json | jq '.[] | select(.liveness != \"alive\")'";

/// Shown under `leave --help`.
pub const LEAVE_EXAMPLES: &str = "Examples:\n  \
    nearcrawl leave                           give everything back, then end\n  \
    systemctl stop nearcrawl                  only stop: back within 45 seconds, nothing moves";

/// Shown under `move --help`.
pub const MOVE_EXAMPLES: &str = "Examples:\n  \
    nearcrawl peers                                                 who could have it\n  \
    nearcrawl move 192.0.2.0/24 12D3KooWG4kFggyG5Aq8tFkmFc9BxEZYsuVgNbWzvVA2UzbhKMUf   its crawl goes on there\n  \
    nearcrawl why 192.0.2.0/24                                      who had it before, and why it went";

/// Arguments of `move`.
#[derive(Args, Clone, Debug)]
pub struct MoveArgs {
    /// A subnet that this access point owns
    subnet: Subnet,
    /// The peer id of whoever shall have it
    #[arg(value_name = "ACCESS-POINT")]
    to: AccessPoint,
    #[command(flatten)]
    api: ApiArgs,
}

/// Shown under `why --help`.
pub const WHY_EXAMPLES: &str = "Examples:\n  \
    nearcrawl why https://museum.or.ke/exhibits\n  \
    nearcrawl why museum.or.ke\n  \
    nearcrawl why 192.0.2.0/24\n  \
    nearcrawl why 192.0.2.7 --json";

/// For `why`.
#[derive(Args, Clone, Debug)]
pub struct WhyArgs {
    /// A URL, a host, an IP address or a subnet
    #[arg(value_name = "URL|HOST|IP|SUBNET")]
    what: String,
    #[command(flatten)]
    api: ApiArgs,
}

/// Who the daemon is and what it is doing.
pub async fn status(args: &ApiArgs, style: Style) -> Result<String, Failure> {
    let view: StatusView = ApiClient::new(args)?.get("/api/status", &[]).await?;
    if args.json { json(&view) } else { Ok(status_text(&view, style)) }
}

fn status_text(view: &StatusView, style: Style) -> String {
    let work = &view.work;
    let members = &view.members;
    let mut lines = vec![
        ("access point", view.access_point.to_string()),
        ("version", format!("{}, up for {}", view.version, Span(view.uptime_ms))),
        ("swarm", format!("{}: {} alive, {} silent, {} dead", view.swarm, members.alive, members.silent, members.dead)),
        ("owns", format!("{} of {} claimed subnets, {} servers", view.subnets_owned, view.subnets_claimed, view.servers)),
        ("fetched", format!("{} pages in {} requests, {}, {} failed", work.pages, work.requests, bytes(work.bytes), work.failed)),
        ("asked", format!("{} probes, {} lookups", work.probes, work.lookups)),
        ("gave away", gave_away(&view.delegation)),
        ("waiting", format!("{} URLs here, {} on their way to others", view.waiting_urls, view.outgoing_urls)),
        ("connections", view.open_connections.to_string()),
        (
            "hierarchy",
            format!(
                "{} subnets, {} ({})",
                view.hierarchy.subnets,
                view.hierarchy.version,
                view.hierarchy.hash.chars().take(12).collect::<String>()
            ),
        ),
        ("store", format!("{} state, {} cache", bytes(view.store.state_bytes), bytes(view.store.cache_bytes))),
    ];
    for cache in &view.caches {
        let asked = cache.hits + cache.misses;
        let share = if asked == 0 { 0.0 } else { cache.hits as f64 / asked as f64 * 100.0 };
        lines.push(("cache", format!("{}: {share:.1} % met lately, {} of {} entries", cache.place, cache.entries, cache.capacity)));
    }
    lines.extend(view.failures.iter().map(|(failure, count)| ("failed", format!("{}: {failure}", counted(*count, "request")))));
    lines.extend(view.unresolved.iter().map(|(failure, count)| ("unresolved", format!("{}: {failure}", counted(*count, "name")))));
    for (class, count) in &view.refusals {
        lines.push(("refused", format!("{count} {class}")));
    }
    // Only limits that are near: the others are in --json.
    for limit in view.limits.iter().filter(|limit| limit.most > 0 && limit.used * 10 >= limit.most * 8) {
        lines.push(("near its limit", format!("{}: {} of {}", limit.name, limit.used, limit.most)));
    }
    format!("{}\n\n{}", style.heading(&view.sentence), facts(style, &lines))
}

fn gave_away(delegation: &DelegationView) -> String {
    let probes: u64 = delegation.settled_by_probes.iter().map(|(probes, subnets)| u64::from(*probes) * subnets).sum();
    let each = if delegation.settled == 0 { 0.0 } else { probes as f64 / delegation.settled as f64 };
    let without = delegation.settled_without_probe;
    format!("{} subnets ({}), {each:.2} probes each, {without} without any", delegation.settled, delegation.policy)
}

/// The members of the swarm.
pub async fn peers(args: &ApiArgs, style: Style) -> Result<String, Failure> {
    let view: Vec<PeerView> = ApiClient::new(args)?.get("/api/peers", &[]).await?;
    if args.json { json(&view) } else { Ok(peers_text(&view, style)) }
}

fn peers_text(peers: &[PeerView], style: Style) -> String {
    let mut table = Table::new(&["peer", "", "state", "since", ">subnets", ">servers", ">pages", "numbers", "address"]);
    for peer in peers {
        table.row(vec![
            peer.access_point.short(),
            if peer.is_me { "me" } else { "" }.to_owned(),
            peer.liveness.to_string(),
            Span(peer.since_ms).to_string(),
            peer.subnets.to_string(),
            peer.servers.to_string(),
            peer.pages.to_string(),
            peer.roll_up_age_ms.map_or("none yet".to_owned(), |age| format!("{} old", Span(age))),
            peer.addresses.first().cloned().unwrap_or_default(),
        ]);
    }
    table.text(style)
}

/// Why something is crawled by whom, and when.
pub async fn why(args: &WhyArgs, style: Style) -> Result<String, Failure> {
    let view: WhyView = ApiClient::new(&args.api)?.get("/api/why", &[("q", &args.what)]).await?;
    if args.api.json { json(&view) } else { Ok(why_text(&view, style)) }
}

fn why_text(view: &WhyView, style: Style) -> String {
    let mut lines = Vec::new();
    let mut say = |name, value: Option<String>| {
        if let Some(value) = value {
            lines.push((name, value));
        }
    };
    say("asked", Some(view.asked.clone()));
    say("host", view.host.as_ref().map(ToString::to_string));
    say("address", view.address.map(|address| address.to_string()));
    say("lives in", (!view.path.is_empty()).then(|| view.path.join(" › ")));
    if let Some(owned) = &view.ownership {
        let alive = view.owner_liveness.map_or(String::new(), |liveness| format!(", {liveness}"));
        let me = if view.owner_is_me { " (me)" } else { "" };
        say("owner", Some(format!("{}{me}{alive}", owned.owner)));
        say("because", Some(format!("{}; epoch {}, {} probes", in_words(owned.reason), owned.epoch, owned.probes)));
        say("distance", owned.rtt_us.map(|us| format!("{:.1} ms", f64::from(us) / 1000.0)));
        let answers = view.answers.iter().map(|answer| {
            let whole = &answer.access_point;
            let short = whole.get(whole.len().saturating_sub(8)..).unwrap_or(whole);
            format!("{short} {:.1} ms", f64::from(answer.rtt_us) / 1000.0)
        });
        say("measured by", (!view.answers.is_empty()).then(|| answers.collect::<Vec<_>>().join(", ")));
        say("next in line", owned.runner_up.as_ref().map(AccessPoint::to_string));
    }
    say("judged", view.judged.clone());
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
    say("state", view.state.clone());
    say("robots.txt", view.robots.clone());
    say("next visit", view.next_visit_in_ms.map(|ms| if ms == 0 { "now".to_owned() } else { format!("in {}", Span(ms)) }));
    format!("{}\n\n{}", style.heading(&view.sentence), facts(style, &lines))
}

fn in_words(reason: ClaimReason) -> &'static str {
    match reason {
        ClaimReason::OwnSubnet => "it lives there itself",
        ClaimReason::Awarded => "nobody had it, and it was near",
        ClaimReason::OwnerDead => "the owner before it died",
        ClaimReason::Released => "the owner before it gave it up",
        ClaimReason::Moved => "it is better off here than at the owner before it",
    }
}

/// One owner's time with a subnet: `epoch 2, 3 min 5 s ago: …8dWcTn1V, for the owner before it died`.
fn holding_text(held: &Holding) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let ago = Span(now.saturating_sub(held.since.0));
    let left = held.left_because.as_ref().map_or(String::new(), |why| format!("; left, {why}"));
    format!("epoch {}, {ago} ago: {}, for {}{left}", held.epoch, held.owner.short(), in_words(held.reason))
}

/// Hands a subnet over.
pub async fn hand_over(args: &MoveArgs) -> Result<String, Failure> {
    let MoveArgs { subnet, to, .. } = args;
    let view: MoveView = ApiClient::new(&args.api)?.post("/api/move", &json!({ "subnet": subnet, "to": to })).await?;
    match &view.why_not {
        Some(why_not) => Err(Failure::new(Exit::Unavailable, format!("{subnet} stays: {why_not}"))),
        None if args.api.json => json(&view),
        None => Ok(format!("{subnet} is on its way to {}: its history first, its claim last\n", to.short())),
    }
}

/// Leaves the swarm for good.
pub async fn leave(args: &ApiArgs) -> Result<String, Failure> {
    let view: LeaveView = ApiClient::new(args)?.post("/api/leave", &json!({})).await?;
    if args.json { json(&view) } else { Ok(format!("leaving: {} subnets are given back, then the daemon ends\n", view.released)) }
}
