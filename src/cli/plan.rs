//! `plan`: estimates the cost and the coverage of a crawl from what was measured so far.

use super::{
    client::{ApiArgs, ApiClient},
    crawl::last_of_each,
    error::{CommandError, Exit},
    json,
    run::{ConfigArgs, results_of_member},
    seed,
    table::{Style, Table, bytes, paragraph},
};
use crate::io::json::wrong;
use clap::Args;
use nearcrawl_core::planning::{self, Basis, Targets};
use nearcrawl_model::{
    plan::{Grounds, Plan, Spread},
    record::ServerRecord,
    summary::{Dimension, SwarmResults},
    url::PageUrl,
    view::{ServersPage, Span, counted},
};
use std::{collections::BTreeSet, path::PathBuf};

/// Shown under `plan --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl plan --coverage 0.95 --seeds seeds.txt\n  \
    nearcrawl plan --coverage 0.8 --tld ke --json\n  \
    nearcrawl plan --coverage 0.95 --records ke.jsonl\n  \
    nearcrawl plan --coverage 0.9 --member /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…\n\n\
    Each record has the cost of each level of a site and the number of external hosts first named there. Their sums (in which a \
    host counts once for each server that names it) are a curve of load \
    against coverage, one point per depth; the lowest depth with enough coverage is chosen: set [crawl] depth to it.\n\n\
    The curve comes from --records (written by `nearcrawl crawl --out FILE.jsonl`), from the daemon of this machine (--api) or from a \
    member (--member). If nothing was measured there, it is that of the paper (Nakahira et al. 2008) with an assumed cost of a server: the \
    answer begins with that, and the exit code is 69 unless --assumed accepts it. The totals do not include servers that are only reached by \
    links from the starting hosts.";

/// The arguments of `plan`.
#[derive(Args, Clone, Debug)]
pub struct PlanArgs {
    /// The share of the external hosts to find, above 0 and at most 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    coverage: f64,
    /// A file with one starting URL per line; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "tld")]
    seeds: Option<PathBuf>,
    /// All servers on record under this top-level domain
    #[arg(long, value_name = "NAME")]
    tld: Option<String>,
    /// Records from `nearcrawl crawl --out`, instead of a daemon's; --api is not used then
    #[arg(long, value_name = "FILE.jsonl", conflicts_with = "member")]
    records: Option<PathBuf>,
    /// Ask this member over the network, instead of the daemon on this machine; --api is not used then
    #[arg(long, value_name = "MULTIADDR")]
    member: Option<String>,
    /// Plan with the paper's curve if nothing was measured
    #[arg(long)]
    assumed: bool,
    #[command(flatten)]
    api: ApiArgs,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Computes the plan and formats it. That nothing was measured is an error, behind what can be said without.
pub async fn plan(args: &PlanArgs, style: Style) -> Result<(String, Option<CommandError>), CommandError> {
    let config = args.config.load()?;
    let pace = config.pace();
    let hosts = args.seeds.as_deref().map(starting_hosts).transpose()?;
    let tld = args.tld.as_deref().map(|name| name.trim_start_matches('.').to_ascii_lowercase());
    let Measured { basis, targets: under_tld, on_record, is_known, source } = measured(args, tld.as_deref()).await?;
    let targets = hosts.unwrap_or(under_tld);
    let failure = (basis.is_none() && !args.assumed).then(|| {
        CommandError::new(Exit::Unavailable, format!("no measurements: {source}"))
            .hint("measure first: nearcrawl crawl … --out FILE.jsonl, then --records FILE.jsonl; or accept the paper's curve: --assumed")
    });
    let nobody = (is_known && tld.is_some() && matches!(targets, Targets::Count(0)))
        .then(|| CommandError::new(Exit::Data, format!("no server is on record under .{}", tld.as_deref().unwrap_or_default())));
    let failure = failure.or(nobody);
    let plan = planning::plan(&basis.unwrap_or_else(Basis::of_paper), args.coverage, pace, &targets);
    let said = if args.api.json { json(&plan)? } else { text(&plan, &source, tld.as_deref().map(|tld| (tld, on_record)), style) };
    Ok((said, failure))
}

/// What a plan can rest on.
struct Measured {
    /// None if nothing was measured.
    basis: Option<Basis>,
    /// The servers under the top-level domain that was named.
    targets: Targets,
    /// How many the whole swarm has on record there, if that is known.
    on_record: Option<u64>,
    /// Whether it is known which servers are on record there.
    is_known: bool,
    /// Whom the figures are of; if there are none, why.
    source: String,
}

async fn measured(args: &PlanArgs, tld: Option<&str>) -> Result<Measured, CommandError> {
    let (records, results, source) = if let Some(path) = &args.records {
        (read_records(path)?, None, format!("the records in {}", path.display()))
    } else if let Some(member) = &args.member {
        (Vec::new(), Some(results_of_member(member).await?), format!("the totals of {member}"))
    } else {
        match of_daemon(args).await {
            Ok((records, results)) => (records, Some(results), "the daemon of this machine".to_owned()),
            Err(why) if why.exit == Exit::Unavailable => (Vec::new(), None, why.message),
            Err(why) => return Err(why),
        }
    };
    let under = |record: &ServerRecord| tld.is_none_or(|tld| record.host.tld() == Some(tld));
    let swarm = results.as_ref().and_then(Basis::of_results);
    let on_record = results.as_ref().zip(tld).map(|(results, tld)| {
        let values = results.summary.by.get(&Dimension::Tld);
        values.and_then(|values| values.get(tld)).map_or(0, |counts| counts.servers)
    });
    // A country's own servers say more of it than all the others do.
    let (own, all): (Vec<_>, Vec<_>) = records.into_iter().partition(under);
    let hosts: BTreeSet<_> = own.iter().filter(|record| record.requests > 0).map(|record| record.host.clone()).collect();
    let targets = match tld {
        None => Targets::Any,
        // Those with records are counted; only if there are none here, those of the swarm.
        Some(_) if hosts.is_empty() => Targets::Count(on_record.unwrap_or(0)),
        Some(_) => Targets::Hosts(hosts),
    };
    let has_any = !own.is_empty() || !all.is_empty() || results.is_some();
    let own = Basis::of_records(own.clone()).or_else(|| Basis::of_records(own.into_iter().chain(all).collect()));
    let basis = Basis::joined(swarm.filter(|_| tld.is_none()), own);
    let source = match &basis {
        None if has_any || args.records.is_some() => format!("{source}: no external host was found by any server there"),
        _ => source,
    };
    Ok(Measured { basis, targets, on_record, is_known: results.is_some() || args.records.is_some(), source })
}

async fn of_daemon(args: &PlanArgs) -> Result<(Vec<ServerRecord>, SwarmResults), CommandError> {
    let client = ApiClient::new(&args.api)?;
    let results = client.get("/api/results", &[]).await?;
    let mut records = Vec::new();
    let mut after = String::new();
    loop {
        let parameters = [("after", after.as_str())];
        let page: ServersPage = client.get("/api/servers", if after.is_empty() { &[] } else { &parameters }).await?;
        records.extend(page.servers);
        match page.next {
            Some(next) => after = next.to_string(),
            None => return Ok((records, results)),
        }
    }
}

fn read_records(path: &std::path::Path) -> Result<Vec<ServerRecord>, CommandError> {
    let text = seed::read(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let records = lines
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|why| {
                CommandError::new(
                    Exit::Data,
                    format!("{}: line {} is no record of a server: it {}", path.display(), number + 1, wrong(&why)),
                )
                .hint("write records with `nearcrawl crawl … --out FILE.jsonl`")
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    // While a crawl goes on, a server that goes on has several.
    Ok(last_of_each(records))
}

fn starting_hosts(path: &std::path::Path) -> Result<Targets, CommandError> {
    let urls = seed::lines(&seed::read(path)?);
    if urls.is_empty() {
        return Err(CommandError::new(Exit::Data, "the input has no URL").hint("write one URL per line, like https://example.org/"));
    }
    let host = |text: &String| {
        let url = PageUrl::parse(text).map_err(|why| {
            CommandError::new(Exit::Data, format!("{text}: {why}")).hint("write the URL in full, like https://example.org/")
        })?;
        Ok(url.host())
    };
    Ok(Targets::Hosts(urls.iter().map(host).collect::<Result<_, CommandError>>()?))
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a share above 0 and at most 1, like 0.95".to_owned())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// What the estimate rests on, as a sentence.
fn grounds(plan: &Plan, source: &str, deepest: u8) -> String {
    match &plan.grounds {
        Grounds::Measured { servers, cut_short } => {
            let short = if *cut_short > 0 { format!("; not crawled completely: {cut_short} of them") } else { String::new() };
            format!("Measured on {}, down to depth {deepest}{short}; by {source}.", counted(*servers, "server"))
        }
        Grounds::Paper { requests, bytes: size, response_ms } => format!(
            "No measurements ({source}). All figures are assumptions: the curve is that of the paper (Nakahira et al. 2008), and a server is \
             taken to need {} in all, {} and {} each.",
            counted(*requests, "request"),
            bytes(*size),
            Span(*response_ms)
        ),
    }
}

fn text(plan: &Plan, source: &str, tld: Option<(&str, Option<u64>)>, style: Style) -> String {
    let deepest = plan.depths.last().map_or(0, |last| last.depth);
    let mut text = paragraph(&grounds(plan, source, deepest)) + "\n";
    let mut table = Table::new(&[">depth", ">requests", ">bytes", ">server time", ">coverage", ">requests per server", ""]);
    for at in &plan.depths {
        table.row(vec![
            at.depth.to_string(),
            percent(at.load_ratio),
            percent(at.load_bytes_ratio),
            percent(at.load_busy_ratio),
            percent(at.coverage_ratio),
            format!("{:.1}", at.requests),
            if at.depth == plan.chosen.depth { "←".to_owned() } else { String::new() },
        ]);
    }
    text += &table.text(style);
    let chosen = &plan.chosen;
    let heading = format!(
        "Depth {} finds {} of the external hosts with {} of the requests of depth {deepest}.",
        chosen.depth,
        percent(chosen.coverage_ratio),
        percent(chosen.load_ratio)
    );
    text += &format!("\n{}", paragraph(&heading).lines().map(|line| style.heading(line) + "\n").collect::<String>());
    text += &paragraph("External hosts are mentions, summed over servers: a host counts once for each server that names it.");
    text += "\n";
    let mut table = Table::new(&["a server", ">mean", ">median", ">90 %", ">most"]);
    let mut row = |name: &str, spread: &Spread, word: fn(f64) -> String| {
        let maybe = |value: Option<f64>| value.map_or("-".to_owned(), word);
        table.row(vec![name.to_owned(), word(spread.mean), maybe(spread.median), maybe(spread.p90), maybe(spread.max)]);
    };
    let span = |ms: f64| Span(ms.round() as u64).to_string();
    row("requests", &plan.server.requests, |value| format!("{value:.1}"));
    row("bytes", &plan.server.bytes, |value| bytes(value.round() as u64));
    row("server time", &plan.server.busy_ms, span);
    row("duration", &plan.server.duration_ms, span);
    text += &table.text(style);
    text + &total(plan, tld)
}

/// What all servers that it is for cost together, as a paragraph; nothing if they were not named.
fn total(plan: &Plan, tld: Option<(&str, Option<u64>)>) -> String {
    let Some(total) = &plan.total else { return String::new() };
    if let Some((tld, _)) = tld.filter(|_| total.servers == 0) {
        return format!("\n{}", paragraph(&format!("No server is on record under .{tld}.")));
    }
    let whose = match tld {
        Some((tld, on_record)) => {
            let others = on_record
                .filter(|all| *all > total.servers)
                .map_or_else(String::new, |all| format!("; without the {} that other members have on record there", all - total.servers));
            format!("{} on record under .{tld}{others}", counted(total.servers, "server"))
        }
        None => counted(total.servers, "starting host"),
    };
    let sentence = format!(
        "{whose} ({} with records of their own): {}, {}, {} of server time; about {} with {} in parallel and pauses of {} or {} \
         between requests.",
        total.known,
        counted(total.requests, "request"),
        bytes(total.bytes),
        Span(total.busy_ms),
        Span(total.duration_ms),
        counted(plan.pace.max_parallel, "server"),
        Span(plan.pace.min_delay_ms),
        counted(plan.pace.delay_factor, "response time"),
    );
    format!("\n{}", paragraph(&sentence))
}

#[cfg(test)]
mod tests;
